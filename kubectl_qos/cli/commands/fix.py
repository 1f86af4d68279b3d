"""`kubectl qos fix [TYPE/NAME]`: what to change about the next deaths, proven before it is offered.

What a change does in full, and applying it, is that of `set` (commands/set.py).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from kubectl_qos.cli import output, resources
from kubectl_qos.cli.commands import set as set_command
from kubectl_qos.cli.flags import (
    add_apply_flags,
    add_no_headers,
    add_output,
    add_target,
    add_trial_flags,
    add_write_flags,
)
from kubectl_qos.errors import InputError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import ApplyOptions, SourceOptions
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.present.fixes import FixList

DESCRIPTION: Final = """\
What to change about the next deaths: a limit with room above what is used, a request
with which others die first, a limit for a neighbour without one. Each change is tried
in the simulation before it is offered. Without a name, the nearest death of each node;
of a node, pod or workload all that wait.

--apply does what `set` does with the same values: preview, dry run of the server and
confirmation.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos fix                              the nearest death of each node
  kubectl qos fix node/worker-2                all that wait on one node
  kubectl qos fix pod/api-0 -n shop            what kills this pod
  kubectl qos fix deploy/api -n shop           the same change for all of its pods
  kubectl qos fix pod/api-0 --apply 1 --dry-run=client  what the first change does, in full
  kubectl qos fix pod/api-0 --apply 1          apply it
  kubectl qos fix pod/api-0 --apply 1 --for 10m --undo-if oom  and see whether it helps
  kubectl qos fix pod/api-0 --apply 1 --write ~/gitops --into overlay  in Git
  kubectl qos fix pod/api-0 -o patch           the patch of the first one, or of --apply N
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Of what, how it is printed, and which fix is applied, if any."""

    source: SourceOptions
    apply: ApplyOptions
    target: tuple[str, ...]
    number: int | None
    headers: bool
    output: str | None
    write: str | None
    into: Literal["base", "overlay"] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fix`."""
    add_target(parser, "pod/web-0, deployment/api or node/worker-1; every node without it")
    parser.add_argument(
        "--apply", dest="number", type=_parse_number, metavar="N", help="apply the fix of this number"
    )
    add_no_headers(parser)
    help_ = "every fix with its proof, or the strategic merge patch of one; nothing is sent without --yes"
    add_output(parser, "json", "yaml", "patch", help_=help_)
    add_write_flags(parser)
    add_trial_flags(add_apply_flags(parser))


def _parse_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a fix: 1 is the first one")
    return int(text)


def run(options: Options) -> int:
    """Print the fixes, or apply one; 1 if a document could not be read. Raises QosError."""
    node, reference = resources.parse_node_or_reference(
        options.target, "one node, pod or workload can be fixed at a time"
    )
    node = node or options.source.node
    like_set = _set_options(options, node)
    given = (
        *options.apply.cluster_flags,
        *(("--dry-run",) if options.apply.dry_run != "none" else ()),
        *(("--write",) if options.write is not None else ()),
    )
    if options.number is None and given:
        raise UsageError(f"{given[0]} needs --apply N", hint="--apply 1 applies the first fix")
    set_command.check_flags(like_set)
    shell = None
    if options.number is not None and like_set.applies:
        from kubectl_qos.cli.apply import ApplyShell, resolve_cluster

        resolved, settings = resolve_cluster(like_set.source, options.apply)
        shell = ApplyShell(resolved, options.apply, settings, options.output)
    else:
        resolved = resources.resolve_source(like_set.source, lives=like_set.tree is not None)
    found, snapshot = _find(reference, node, resolved, options)
    if options.number is None and options.output != "patch":
        _print(found, snapshot, options)
        return resolved.print_notes()
    from kubectl_qos.cli.set_edits import EditRequest
    from kubectl_qos.edit.preview import StrategyKind

    number = options.number or 1
    if number > len(found.fixes):
        known = f"the last one is {len(found.fixes)}" if found.fixes else "there is none"
        raise InputError(f"no fix has the number {number}: {known}", hint="without --apply they are listed")
    fix = found.fixes[number - 1]
    pod = fix.pod
    if fix.workload is not None:
        pod = resources.find_pod(resources.Reference(*fix.workload), snapshot, resolved)
    if shell is not None:
        by: dict[StrategyKind, Literal["in-place", "template"]] = {
            StrategyKind.IN_PLACE: "in-place",
            StrategyKind.TEMPLATE: "template",
        }
        like_set = replace(like_set, by=by.get(fix.strategy))
    set_command.change(pod, fix.edits, snapshot, resolved, shell, like_set, EditRequest((), (), False))
    return resolved.print_notes()


def _set_options(options: Options, node: str | None) -> set_command.Options:
    """Those with which `set` would make the same change."""
    return set_command.Options(
        source=options.source.on_node(node),
        apply=options.apply,
        target=options.target,
        requests=None,
        limits=None,
        containers=(),
        pod_level=False,
        target_class=None,
        outlive=None,
        rank_below=None,
        by=None,
        output=options.output,
        exit_code=False,
        write=options.write,
        into=options.into,
    )


def _find(
    reference: resources.Reference | None,
    node: str | None,
    resolved: resources.ResolvedSource,
    options: Options,
) -> tuple[FixList, Snapshot]:
    """The fixes of what is named, and what they are of. Raises QosError."""
    from kubectl_qos.k8s.kinds import belongs_to
    from kubectl_qos.present import fixes as present

    # Who dies depends on all pods of a node: namespace and labels only say whose deaths count.
    scope = replace(resolved.scope, names=frozenset(), node=node)
    if reference is None:
        scope = replace(scope, namespace=options.source.namespace)
    is_pod = reference is not None and reference.kind == "Pod"
    snapshot = resolved.source.snapshot(resolved.named([reference]) if reference and is_pod else scope)
    resources.require_places(resolved, snapshot)
    if reference is None:
        if node is not None:
            resources.require_node(node, snapshot)
        nodes = [node] if node is not None else sorted(snapshot.by_node().keys() - {""})
        if not nodes:
            raise InputError("no pods that are on a node", hint="kubectl qos explain shows pods without one")
        return present.fixes_on_nodes(snapshot, nodes, scope), snapshot
    if is_pod:
        pod = resources.find_pod(reference, snapshot, resolved)
        resources.require_cgroup(pod)
        return present.fixes_for_pods(snapshot, [(pod.namespace, pod.name)]), snapshot
    mine = [
        (pod.namespace, pod.name)
        for pod in snapshot.pods
        if pod.kind == "Pod" and pod.node_name and not pod.is_terminal
        if scope.namespace in {None, pod.namespace} and belongs_to(pod, *reference)
    ]
    if not mine:
        resources.find_pod(reference, snapshot, resolved)
        raise InputError(f"{reference} has no pods on a node: nothing waits for them")
    return present.fixes_for_pods(snapshot, mine, reference), snapshot


def _print(found: FixList, snapshot: Snapshot, options: Options) -> None:
    from kubectl_qos.present import fixes as present
    from kubectl_qos.present.reasons import missing_sentence

    if options.output is not None:
        from kubectl_qos.present.values.fixes import fix_list_values

        output.print_document(fix_list_values(found), options.output)
        return
    output.print_lines(present.lines(found, headers=options.headers))
    output.notes([*map(missing_sentence, snapshot.missing), *present.notes(found)])
