"""`kubectl qos compare TYPE/NAME --to RELEASE --assume KEY=VALUE`: what an upgrade or a setting changes."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_output, add_target
from kubectl_qos.cli.resources import find_pods_or_template, parse_node_or_reference, require_places
from kubectl_qos.cli.sources import flag_value, parse_settings, resolve_source
from kubectl_qos.errors import InputError, UsageError, first_few

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.edit.compare import Comparison
    from kubectl_qos.edit.preview import Effects, FileChange
    from kubectl_qos.k8s.node_overrides import NodeOverride
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Scope, Snapshot
    from kubectl_qos.present.output import Section

DESCRIPTION: Final = (
    "Show what an upgrade of Kubernetes (--to) or another setting (--assume, --feature-gates) would change"
    " for the pods of a node, or of every node."
)


EXAMPLES: Final = """\
examples:
  kubectl qos compare --to 1.37                                  # what an upgrade to 1.37 changes
  kubectl qos compare node/worker-2 --to 1.37                    # the same of one node
  kubectl qos compare pod/db-0 -n data --assume cgroupVersion=1  # every value of one pod
  kubectl qos compare -n shop --to 1.37 --feature-gates MemoryQoS=true
"""


class Options(NamedTuple):
    """Which pods are compared, and the settings that they are compared with."""

    source: SourceOptions
    target: tuple[str, ...]
    release: str | None
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    add_target(parser, "pod/db-0 in full; node/worker-2, or nothing, as a table")
    parser.add_argument(
        "--to", dest="release", metavar="RELEASE", help="the kubelet's release after an upgrade, such as 1.37"
    )
    add_output(parser, "wide", "json", "yaml")


def more_help() -> Iterator[str]:
    """Yield the keys of --assume for --help."""
    from kubectl_qos.present.node_settings import node_settings

    yield from ("", "keys of --assume, in every command:")
    for key, type_, default, effect in node_settings():
        yield from (f"  {key}={type_}", f"      default: {default}", f"      changes: {effect}")


def run(options: Options) -> int:
    """Print what changes; exit code 1 if a document could not be read. Raises QosError."""
    from kubectl_qos.k8s.releases import Release
    from kubectl_qos.present import effects as present
    from kubectl_qos.present.list_notes import missing_sentence
    from kubectl_qos.present.preview import node_deaths_sections

    source, settings = options.source._replace(assume=(), feature_gates=()), parse_settings(options.source)
    if options.release is not None:
        flag_value(Release.of, options.release)
        if any(text.startswith("kubeletVersion=") for text in options.source.assume):
            raise UsageError(
                "--to and --assume kubeletVersion= name two releases", hint="leave one of them out"
            )
    elif not settings:
        hint = "add --to 1.37 or --assume cgroupDriver=cgroupfs; next pod/a pod/b compares two pods"
        raise UsageError("nothing to compare with", hint)
    node, reference = parse_node_or_reference(
        options.target,
        "one pod, workload or node can be compared at a time",
        any_kind=options.source.has_files,
    )
    resolved = resolve_source(source.on_node(node))
    scope = resolved.scope_of([reference] if reference else ())
    snapshot = resolved.source.snapshot(scope)
    pods = find_pods_or_template(reference, snapshot, resolved) if reference else []
    pod = pods[0] if len(pods) == 1 else None
    if len(pods) > 1:
        scope = resolved.named(*(pod.name for pod in pods))
    require_places(resolved, snapshot)
    notes: set[str] = set()
    comparisons = _noted(_compare(snapshot, scope, settings, options.release, pod), notes)
    if options.output not in {None, "wide"}:
        from kubectl_qos.present.values.changes import comparison_values

        values = (comparison_values(item, settings, _in_scope(item, scope, pod)) for item in comparisons)
        output.print_items(values, str(options.output))
    elif pod is not None:
        comparison = next(comparisons)
        sections = (
            *present.kubelet_sections(comparison),
            *node_deaths_sections(comparison, snapshot.own_bytes(pod.node_name)),
            *present.pod_sections(comparison.of(pod)),
        )
        output.print_sections(present.comparison_subject(comparison, settings), sections)
    else:
        _print_nodes(comparisons, settings, scope, snapshot, is_wide=options.output == "wide")
    output.notes((*notes, *map(missing_sentence, snapshot.missing)))
    return resolved.print_notes()


def _compare(
    snapshot: Snapshot, scope: Scope, settings: Sequence[NodeOverride], release: str | None, pod: Pod | None
) -> Iterator[Comparison]:
    """Yield a comparison of each node that has pods in scope, with all of its pods, because they share ranks.

    A generator: for 50,000 pods all comparisons together take a gigabyte.
    """
    from kubectl_qos.edit.compare import compare
    from kubectl_qos.k8s.node_overrides import apply_overrides

    by_node = {
        name: [other for other in pods if not other.is_terminal] for name, pods in snapshot.by_node().items()
    }
    if pod is not None:
        names = [pod.node_name]
        if all(other is not pod for other in by_node.get(pod.node_name, ())):
            by_node.setdefault(pod.node_name, []).append(pod)
    else:
        in_scope = (other for other in snapshot.pods if scope.matches(other) and not other.is_terminal)
        names = sorted({other.node_name for other in in_scope})
    if not names:
        raise InputError("no pods to compare", hint="look at the namespace, the node and the selector")
    setups = {name: snapshot.setup(name) for name in names}
    return (
        compare(by_node[name], setup, apply_overrides(setup, settings, release), snapshot.usage)
        for name, setup in setups.items()
    )


def _noted(comparisons: Iterable[Comparison], notes: set[str]) -> Iterator[Comparison]:
    from kubectl_qos.present.effects import file_notes

    for comparison in comparisons:
        notes.update(file_notes([comparison]))
        yield comparison


def _in_scope(comparison: Comparison, scope: Scope, pod: Pod | None) -> list[Effects]:
    if pod is not None:
        return [comparison.of(pod)]
    return [effects for effects in comparison.pods if scope.matches(effects.before.pod)]


def _print_nodes(
    comparisons: Iterable[Comparison],
    settings: Sequence[NodeOverride],
    scope: Scope,
    snapshot: Snapshot,
    *,
    is_wide: bool,
) -> None:
    from kubectl_qos.present import effects as present
    from kubectl_qos.present.preview import node_deaths_sections

    changed: list[list[str]] = []
    kinds = Counter[str]()
    same: dict[str, FileChange] = {}
    nodes: list[tuple[str, list[Section]]] = []
    pods = refusing = short = 0
    moved = Counter[str]()
    for comparison in comparisons:
        deaths = node_deaths_sections(comparison, snapshot.own_bytes(comparison.before.node.name))
        sections = *present.kubelet_sections(comparison), *deaths, *present.node_sections(comparison)
        of_node = [section for section in sections if section.changed or section.warns or is_wide]
        nodes.append((present.comparison_subject(comparison, settings), of_node))
        shown = _in_scope(comparison, scope, None)
        pods += len(shown)
        refusing += bool(present.kubelet_refusals(comparison))
        short += bool(present.missing_bytes(comparison))
        moved.update(section.answer for section in deaths)
        changed += present.changed_cells(shown)
        files = chain(comparison.node_files, chain.from_iterable(effects.same_effect for effects in shown))
        same |= {file.file: file for file in files if file.same_effect}
        kinds.update(chain.from_iterable(map(present.changed_kinds, shown)))
    if pods:
        output.print_prose(
            [
                present.comparison_answer(
                    pods, len(changed), kinds, refusing=refusing, short=short, moved=moved
                )
            ]
        )
    unchanged: dict[str, list[str]] = {}
    for subject, of_node in nodes:
        if of_node:
            output.print_sections(subject, of_node)
        else:
            name, _, difference = subject.partition(", ")
            unchanged.setdefault(difference, []).append(name)
    for difference, names in unchanged.items():
        output.print_prose([f"{first_few(names)}{': ' if len(names) > 1 else ', '}{difference}"])
    if changed:
        width = output.terminal_width() if not is_wide else None
        output.print_lines(["", *present.comparison_table(changed, width)])
    output.notes(filter(None, [present.same_effect_sentence(same.values())]))
