"""`kubectl qos set TYPE/NAME --requests … --limits …`: what a change does, its patch, and doing it.

Files, the demo and -o without --yes end with what is printed. A cluster is changed by land.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.targets import Target, find_pod, parse_targets, reference
from kubectl_qos.cli.wish import build_edits, dry_run, parse_set_options
from kubectl_qos.edit.patch import build_manifest, build_patch, kubectl_command
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.errors import EXIT_ERROR, InputError, QosError, UsageError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.effects import change_section, never_sentence, preview_sections
from kubectl_qos.present.output import marked_lines, to_json, to_yaml
from kubectl_qos.present.reasons import capacity_sentence, missing_sentence, pod_subject

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer

EXIT_CHANGES: Final = 1
"""With --exit-code, as `kubectl diff` ends where something differs."""
EXIT_TROUBLE: Final = 2
"""With --exit-code, the least of an error."""


def run(options: argparse.Namespace) -> int:
    """Print what the change does, or the change; 1 where it cannot be made, or as --exit-code has it."""
    if not getattr(options, "exit_code", False):
        return EXIT_ERROR if _set(options).failed else 0
    try:
        done = _set(options)
    except QosError as error:
        error.exit_code = max(error.exit_code, EXIT_TROUBLE)
        raise
    if done.failed:
        return EXIT_TROUBLE
    return EXIT_CHANGES if done.changes else 0


class _Done(NamedTuple):
    """Whether the change changes anything, and whether a document of the input was wanting."""

    changes: bool
    failed: bool


def _set(options: argparse.Namespace) -> _Done:
    wish = parse_set_options(options)
    targets = _targets(options)
    writes = getattr(options, "write", False)
    if writes:
        _check_write(options)
    lands = _lands(options)
    wanted, writer = _writable(options) if lands else (resolve_source(options), None)
    scope = replace(wanted.scope, names=frozenset(target.name for target in targets))
    snapshot = wanted.source.snapshot(scope)
    pod = _the_one(targets, snapshot, wanted)
    setup = snapshot.setup(pod.node_name)
    neighbours = snapshot.by_node().get(pod.node_name, ())
    found = preview(pod, build_edits(wish, pod, snapshot), setup, neighbours, snapshot.usage)
    _print(found, pod, wanted, options, with_flags=wish.has_goal, lands=lands)
    streams.notes(_notes(found, snapshot))
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    if found.edits:
        _complain(found, writes=writes)
        if lands:
            _land(found, pod, wanted, snapshot, writer, options)
    elif lands:
        streams.note(f"nothing is sent: {reference(pod)} is like that already")
    if writes:
        streams.note(_written(found, pod, wanted))
    return _Done(bool(found.edits), wanted.failed)


def _targets(options: argparse.Namespace) -> list[Target]:
    """The one that is named, none where files say it. Raises UsageError."""
    targets = parse_targets(getattr(options, "target", []))
    if len(targets) > 1:
        raise UsageError("one pod or workload can be changed at a time")
    if not targets and not getattr(options, "filename", None):
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos set pod/web-0 --limits memory=1Gi, or kubectl qos set -f pod.yaml …",
        )
    return targets


def _lands(options: argparse.Namespace) -> bool:
    """Whether it is about a cluster, and about more than a patch or manifest to take elsewhere.

    Raises UsageError for flags about writing where nothing can be written.
    """
    if getattr(options, "filename", None) or getattr(options, "demo", False):
        where = "-f" if getattr(options, "filename", None) else "--demo"
        given = [flag for name, flag in _OF_CLUSTERS if hasattr(options, name)]
        if dry_run(options) == "server":
            given.append("--dry-run=server")
        if given:
            raise UsageError(f"{given[0]} is about a cluster, and {where} is none")
        return False
    if getattr(options, "write", False):
        return False
    shows_only = hasattr(options, "output") and not getattr(options, "yes", False)
    return not shows_only or dry_run(options) == "server"


def _writable(options: argparse.Namespace) -> tuple[ResolvedSource, Writer | None]:
    """What the flags name, and who writes to it: refused here, nothing is sent at all. Raises QosError."""
    from kubectl_qos.cli import land

    land.prepare(options)
    wanted = resolve_source(options)
    return wanted, land.resolve_writer(options, wanted)


_OF_CLUSTERS: Final = (("yes", "--yes"), ("by", "--by"), ("wait", "--wait"), ("timeout", "--timeout"))


def _land(
    found: Preview,
    pod: Pod,
    wanted: ResolvedSource,
    snapshot: Snapshot,
    writer: Writer | None,
    options: argparse.Namespace,
) -> None:
    """Show how the change can land, then do it as far as the flags go."""
    from kubectl_qos.cli import land
    from kubectl_qos.edit.strategy import find_strategies

    related = wanted.source.related(pod)
    all_strategies = find_strategies(pod, found.edits, found, related)
    usage = snapshot.usage.get((pod.namespace, pod.name)) if pod.kind == "Pod" else None
    by = getattr(options, "by", None)
    shown = land.strategy_report(found, related, all_strategies, usage, by)
    if hasattr(options, "output"):
        streams.notes(shown)
    else:
        streams.out(shown)
    streams.notes(land.related_notes(related))
    strategy = land.choose_strategy(all_strategies, options, reference(pod))
    assert strategy.request is not None, "a way that is chosen has its request"
    if writer is None:
        land.refuse_what_a_server_would(found, related, strategy, usage, reference(pod))
    land.land(land.Plan(found, strategy, strategy.request), writer, options)


def _the_one(targets: Sequence[Target], snapshot: Snapshot, wanted: ResolvedSource) -> Pod:
    """The pod or workload that is meant. Raises InputError where that could be several."""
    scope = wanted.scope
    for_names = replace(scope, namespace=None)
    matching = [
        pod
        for pod in snapshot.pods
        if scope.namespace is None or pod.namespace in {scope.namespace, ""}
        if (
            any((pod.kind, pod.name) == (target.kind, target.name) for target in targets)
            if targets
            else for_names.matches(pod)
        )
    ]
    if len(matching) > 1:
        places = wanted.source.locations(matching)
        if targets:
            raise InputError(
                f"{reference(matching[0])} is in {len(places)} places: {', '.join(places)}",
                hint="say which one: -n has its namespace, -f its file",
            )
        raise InputError(
            f"there are {len(places)} pods and workloads: {', '.join(places)}",
            hint=f"name the one to change, such as {reference(matching[0])}",
        )
    if targets:
        return find_pod(targets[0], snapshot, wanted)
    if not matching:
        raise InputError(
            "no pod or workload to change", hint="look at the namespace, the node and the selector"
        )
    return matching[0]


def _print(
    found: Preview,
    pod: Pod,
    wanted: ResolvedSource,
    options: argparse.Namespace,
    *,
    with_flags: bool,
    lands: bool,
) -> None:
    """The preview, the patch or the manifest; of what is sent, -o shows what the server answers."""
    output = getattr(options, "output", None)
    if lands and output is not None:
        return
    if output == "patch":
        streams.out_text(to_yaml(build_patch(pod, found.edits) if found.edits else {}))
        if not getattr(options, "write", False):
            streams.notes(_how_to_apply(found, pod))
    elif output is not None:
        manifest = build_manifest(wanted.source.raw(pod), pod, found.edits)
        streams.out_text(to_yaml(manifest) if output == "yaml" else to_json(manifest))
    else:
        parts = [change_section(pod, found.edits, with_flags=with_flags)]
        if found.edits:
            parts += preview_sections(found)
        streams.out([pod_subject(found.before), *marked_lines(parts)])


def _how_to_apply(found: Preview, pod: Pod) -> Iterator[str]:
    if not found.edits or found.refusals:
        return
    if found.strategy_kind is StrategyKind.RECREATE:
        yield "a server refuses this patch: take the manifest of -o yaml, delete the pod and create it anew"
    elif found.strategy_kind is not StrategyKind.NEVER:
        yield kubectl_command(pod, in_place=found.strategy_kind is StrategyKind.IN_PLACE)


def _notes(found: Preview, snapshot: Snapshot) -> Iterator[str]:
    yield from map(missing_sentence, snapshot.missing)
    node = found.after.setup.node
    if node.memory_capacity_bytes is None:
        yield capacity_sentence([node.name])


def _check_write(options: argparse.Namespace) -> None:
    files = getattr(options, "filename", [])
    if not files:
        raise UsageError("--write changes a manifest file", hint="give it with -f FILE")
    if "-" in files:
        raise UsageError(
            "--write cannot change standard input",
            hint="give a file, or take what -o yaml prints without --write",
        )
    if dry_run(options):
        raise UsageError(
            "--write and --dry-run exclude each other", hint="without --write nothing is written"
        )


def _written(found: Preview, pod: Pod, wanted: ResolvedSource) -> str:
    """Write the edits to the file that holds the object, and say so."""
    if not found.edits:
        return f"nothing is written: {reference(pod)} is like that already in {wanted.source.title}"
    return f"{reference(pod)} is changed in {wanted.source.change_file(pod, found.edits)}"


def _complain(found: Preview, *, writes: bool) -> None:
    """Raise InputError where the change cannot be made, after it was shown.

    A manifest may be written whose object cannot be changed: it can be created anew from it.
    """
    pod = found.before.pod
    if found.refusals:
        first, *others = found.refusals
        error = InputError(
            f"{reference(pod)}: a server would refuse this: {first}",
            hint="change values that belong together in one command"
            + ("; nothing is written" if writes else ""),
        )
        for other in others:
            error.add_note(f"{reference(pod)}: {other}")
        raise error
    if found.strategy_kind is StrategyKind.NEVER and not writes:
        what, _, remedy = never_sentence(found).partition(": ")
        raise InputError(f"{reference(pod)}: {what}", hint=remedy)
