"""`kubectl qos fix [TYPE/NAME]`: changes that prevent the next deaths, each tried in the simulation.

The full preview of a change, and applying it, is in commands/set.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kubectl_qos.cli import flags, output, resources, sources
from kubectl_qos.cli.commands import set as set_command
from kubectl_qos.cli.options import KUSTOMIZE, ApplyOptions, SetOptions, SourceOptions, TableFormat
from kubectl_qos.errors import InputError, QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.analysis.fix_list import FixList, PriorityPlans
    from kubectl_qos.cli.set_edits import PlannedEdits
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Scope, Snapshot
    from kubectl_qos.present.fix_sentences import FixRow

DESCRIPTION: Final = """\
Show changes that prevent the next deaths: a limit with room above usage, a request that
makes others die first, a limit for a neighbour without one. Each change is tried in the
simulation before it is offered. Without a name, fix covers the first death of each
node; with a node, pod or workload, all of its deaths. A terminal shows the first ten
fixes, --all and a pipe show all.

--priorities finds pods that die before a pod of lower priority on their node, and the
fewest requests to raise to change that. It never lowers a value or changes a class, and
says which cases remain and why.

For a single node, -o kubelet-config prints kubelet settings that make the kubelet
evict before the kernel kills. The kubelet checks every 10 seconds, and memory may grow
in between: --growth says how fast.

--apply does what `set` does with the same values: preview, dry run of the server and
confirmation.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos fix                                      # the first death of each node
  kubectl qos fix --all-contexts                       # of each node of every cluster
  kubectl qos fix node/worker-2                        # all deaths of one node
  kubectl qos fix pod/search-0 -n shop                 # what kills this pod
  kubectl qos fix deploy/api -n shop                   # the same change for all of its pods
  kubectl qos fix deploy/api -n shop --apply 1 --dry-run=client  # what the first change does, in full
  kubectl qos fix deploy/api -n shop --apply 1         # apply it
  kubectl qos fix deploy/api -n shop --apply 1 --for 10m --undo-if oom  # and see whether it helps
  kubectl qos fix deploy/api -n shop --apply 1 --write ~/gitops --into overlay  # in Git
  kubectl qos fix deploy/api -n shop -o kustomize      # the first one as a patch file for Kustomize
  kubectl qos fix deploy/api -n shop --apply 2 -o patch  # the second one as a patch for kubectl
  kubectl qos fix node/worker-2 --growth 20Mi -o kubelet-config  # settings for its kubelet
  kubectl qos fix --priorities                         # which pod dies before a less important one
  kubectl qos fix --priorities node/worker-2 -o patch  # all of their patches
  kubectl qos fix --priorities -n shop                 # only pods of this namespace are changed
"""
KUBELET_CONFIG: Final = "kubelet-config"


class Options(NamedTuple):
    """What to fix, how it is printed, and which fix is applied, if any."""

    source: SourceOptions
    apply: ApplyOptions
    target: tuple[str, ...]
    number: int | None
    priorities: bool
    growth: str | None
    all: bool
    headers: bool
    output: str | None
    write: str | None
    into: Literal["base", "overlay"] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fix`."""
    flags.add_target(parser, "pod/search-0, deployment/api or node/worker-2; every node without it")
    of_fix = flags.whole_number("the number of a fix: 1 is the first one", 1)
    parser.add_argument("--apply", dest="number", type=of_fix, metavar="N", help="apply fix N")
    flags.add_switch(
        parser,
        "--priorities",
        help="find pods that die before less important ones (of lower priority), and the requests to raise",
    )
    parser.add_argument(
        "--growth",
        metavar="SIZE",
        help="for a single node: how much its memory grows per second, such as 20Mi",
    )
    flags.add_switch(parser, "--all", help="show every fix on a terminal, not only the first ten")
    flags.add_no_headers(parser)
    flags.add_contexts(parser)
    help_ = (
        "every column, every fix with its proof, the strategic merge patch of one, a patch file of its"
        " workload for Kustomize, or a KubeletConfiguration;"
        " nothing is sent without --yes"
    )
    flags.add_output(parser, "wide", "json", "yaml", "patch", KUSTOMIZE, KUBELET_CONFIG, help_=help_)
    flags.add_write_flags(parser)
    flags.add_trial_flags(flags.add_apply_flags(parser))


def run(options: Options) -> int:
    """Print the fixes, or apply one; 1 if a document could not be read. Raises QosError."""
    node, reference = resources.parse_node_or_reference(
        options.target, "one node, pod or workload can be fixed at a time"
    )
    from kubectl_qos.analysis.fix_list import FixList

    node = node or options.source.node
    like_set = SetOptions(
        source=options.source.on_node(node),
        apply=options.apply,
        target=options.target,
        output=options.output if options.output != "wide" else None,
        write=options.write,
        into=options.into,
    )
    given = (
        *options.apply.cluster_flags,
        *(("--dry-run",) if options.apply.dry_run != "none" else ()),
        *(("--write",) if options.write is not None else ()),
    )
    if options.source.is_fleet:
        return _run_fleet(options, node, reference, given)
    _check_flags(options, node, reference, given)
    set_command.check_flags(like_set)
    shell = None
    if options.number is not None and like_set.applies:
        from kubectl_qos.cli.apply_shell import ApplyShell, resolve_cluster

        resolved, settings = resolve_cluster(like_set.source, options.apply)
        shell = ApplyShell(resolved, options.apply, settings, options.output)
    else:
        # Kernel logs of a single node name containers by their ids.
        is_one = node is not None or reference is not None
        needs = sources.SourceNeeds(ids="all" if is_one else "pods", living_demo=True)
        resolved = sources.resolve_source(like_set.source, needs)
    answer, snapshot = _find(reference, node, resolved, options)
    of_patch = answer if options.output in {"patch", KUSTOMIZE} and isinstance(answer, FixList) else None
    if options.number is None and of_patch is None:
        _print(answer, snapshot, options, resolved.source.now())
        return resolved.print_notes()
    planned, strategy = _planned(answer, options.number or 1, snapshot, resolved)
    if of_patch is not None:
        from kubectl_qos.present.fix_sentences import fix_effect

        output.note(fix_effect(of_patch.fixes[(options.number or 1) - 1]))
    set_command.change(planned, shell, like_set._replace(by=strategy) if shell is not None else like_set)
    return resolved.print_notes()


def _check_flags(
    options: Options, node: str | None, reference: resources.Reference | None, given: Sequence[str]
) -> None:
    """Raise UsageError for flags that do not go together; `given` are flags that only --apply reads."""
    if options.number is None and given:
        raise UsageError(f"{given[0]} needs --apply N", hint="--apply 1 applies the first fix")
    if options.priorities and reference is not None:
        raise UsageError(
            "--priorities takes a node, not a pod or workload", hint="it compares all pods of a node"
        )
    if options.priorities and options.output == KUSTOMIZE and options.number is None:
        raise UsageError("--priorities -o kustomize needs --apply N", hint="-o patch prints all patches")
    of_kubelet = ["--growth"] if options.growth is not None else []
    of_kubelet += [f"-o {KUBELET_CONFIG}"] if options.output == KUBELET_CONFIG else []
    if of_kubelet and (node is None or options.priorities or options.number is not None):
        raise UsageError(f"{of_kubelet[0]} needs a single node", hint=f"fix node/worker-1 {of_kubelet[0]} …")
    if options.growth is not None and options.output in {None, "wide", "patch", KUSTOMIZE}:
        raise UsageError(
            "--growth is for the settings of a kubelet", hint=f"add -o {KUBELET_CONFIG} or -o json"
        )


def _planned(
    answer: FixList | PriorityPlans, number: int, snapshot: Snapshot, resolved: sources.ResolvedSource
) -> tuple[PlannedEdits, Literal["in-place", "template"] | None]:
    """Return the edits of the fix with this number, and its strategy. Raises InputError."""
    from kubectl_qos.analysis.fix_list import FixList
    from kubectl_qos.cli.set_edits import EditRequest, PlannedEdits
    from kubectl_qos.edit.fixes import Fix
    from kubectl_qos.edit.preview import StrategyKind

    fixes = answer.fixes if isinstance(answer, FixList) else [row.move for row in answer.rows]
    if number > len(fixes):
        numbers = f"the last one is {len(fixes)}" if fixes else "there is none"
        raise InputError(f"there is no fix {number}: {numbers}", hint="leave out --apply to list the fixes")
    fix = fixes[number - 1]
    pod = fix.pod
    if isinstance(fix, Fix) and fix.workload is not None:
        pod = resources.find_pod(resources.Reference(*fix.workload), snapshot, resolved)
    elif not isinstance(fix, Fix) and fix.workload is not None:
        pod = resolved.source.find(*fix.workload)
    by: dict[StrategyKind, Literal["in-place", "template"]] = {
        StrategyKind.IN_PLACE: "in-place",
        StrategyKind.TEMPLATE: "template",
    }
    request = EditRequest((), (), False)
    return PlannedEdits(pod, fix.edits, snapshot, resolved, request), by.get(fix.strategy)


def _run_fleet(
    options: Options, node: str | None, reference: resources.Reference | None, given: Sequence[str]
) -> int:
    """Print the fixes of several clusters, each with its number there; a fix is applied to one cluster."""
    from kubectl_qos.cli import tables

    of_one = {"--apply": options.number, "--priorities": options.priorities, "--growth": options.growth}
    of_one |= {f"-o {name}": options.output == name for name in ("patch", KUSTOMIZE, KUBELET_CONFIG)}
    tables.refuse_for_several(options.source, {**of_one, **dict.fromkeys(given, True)})

    def read(source: SourceOptions) -> TableView[FixRow]:
        from kubectl_qos.analysis.fix_list import FixList
        from kubectl_qos.cli.tables import TableView
        from kubectl_qos.edit.fixes import order_of_fixes
        from kubectl_qos.present import fix_sentences as present
        from kubectl_qos.present.list_notes import missing_sentence
        from kubectl_qos.present.values.fixes import fix_values, unfixed_values

        resolved = sources.resolve_source(source.on_node(node))
        fixes, snapshot = _find(reference, node, resolved, options._replace(source=source))
        assert isinstance(fixes, FixList), "--priorities is refused"
        rows = present.numbered(fixes)
        return TableView(
            kind="Fix",
            rows=rows[: _most(options)],
            columns=present.COLUMNS,
            notes=(*map(missing_sentence, snapshot.missing), *present.notes(fixes, _most(options))),
            key=lambda row: row.number,
            reference=lambda row: present.fix_object(row.fix),
            nothing=present.nothing_sentence(fixes),
            facts={"unfixed": list(map(unfixed_values, fixes.unfixed))},
            order=lambda row: order_of_fixes(row.fix),
            values=lambda row: fix_values(*row),
        )

    format_ = TableFormat(options.output, options.headers)
    return tables.print_tables(options.source, format_, "Fix", read, {"unfixed": [], "kubelet": None})


def _find(
    reference: resources.Reference | None,
    node: str | None,
    resolved: sources.ResolvedSource,
    options: Options,
) -> tuple[FixList | PriorityPlans, Snapshot]:
    """Return the fixes or plans for the named target, and the snapshot. Raises QosError."""
    from kubectl_qos.analysis.fix_list import fixes_for_pods, of_template, with_refusals

    # Who dies depends on all pods of a node: namespace and labels only say whose deaths count.
    # A template has pods on other nodes too.
    scope = resolved.scope._replace(names=frozenset(), node=None if options.priorities else node)
    if reference is None:
        scope = scope._replace(namespace=options.source.namespace)
    is_pod = reference is not None and reference.kind == "Pod"
    of_pod = resolved.named(reference.name) if reference and is_pod else scope
    snapshot, _ = resources.with_limit_ranges(resolved, of_pod)
    resources.require_places(resolved, snapshot)
    if reference is None:
        return _find_on_nodes(node, snapshot, scope, resolved, options)
    members = resources.find_members(reference, snapshot, resolved, ended=True)
    keys = [pod.key for pod in members]
    subject = resources.find_pod(reference, snapshot, resolved)
    read = _reader(resolved)
    workload, related = None if is_pod else reference, read(subject)
    with resources.with_unreadable(snapshot):
        fixes = fixes_for_pods(snapshot, keys, workload, related=related)
    fixes = fixes if is_pod else of_template(fixes, subject)
    return with_refusals(fixes, lambda pod: related if is_pod else read(pod)), snapshot


def _find_on_nodes(
    node: str | None, snapshot: Snapshot, scope: Scope, resolved: sources.ResolvedSource, options: Options
) -> tuple[FixList | PriorityPlans, Snapshot]:
    """Return the fixes or plans for a node or for each, and the snapshot with autoscalers."""
    from kubectl_qos.analysis.fix_list import fixes_on_nodes, plans_of_nodes, with_refusals

    is_fleet = options.source.is_fleet
    may_be_none = is_fleet or resolved.source.is_live
    nodes = resources.find_nodes(node, snapshot, scope, may_be_none=may_be_none)
    if options.priorities:
        with resources.with_unreadable(snapshot):
            plans = plans_of_nodes(snapshot, nodes, scope)
        return with_refusals(plans, _reader(resolved)), snapshot
    snapshot = resolved.source.with_autoscalers(snapshot, scope.namespace)
    most = options.number or _most(options) or (1 if options.output in {"patch", KUSTOMIZE} else None)
    only_nearest = is_fleet and node is None
    with resources.with_unreadable(snapshot):
        fixes = fixes_on_nodes(snapshot, nodes, scope, only_nearest=only_nearest, most=most)
    if not resolved.source.is_live:
        fixes = with_refusals(fixes, _reader(resolved))
    return fixes if node is None else _with_kubelet(fixes, node, resolved, options), snapshot


def _with_kubelet(fixes: FixList, node: str, resolved: sources.ResolvedSource, options: Options) -> FixList:
    """Add the settings of the node's kubelet; print why there are none if -o requests them."""
    from kubectl_qos.analysis.fix_list import missed_kill, node_model
    from kubectl_qos.edit.fixes import fix_kubelet
    from kubectl_qos.present import fix_sentences as present
    from kubectl_qos.qos.kills.analyze import find_kills

    growth = sources.parse_size(options.growth, "--growth", "20Mi") if options.growth else 0
    model = node_model(fixes.snapshot, node)
    fixes = replace(fixes, kubelet=fix_kubelet(model, growth))
    if options.output == KUBELET_CONFIG and fixes.kubelet is None:
        kills = find_kills(fixes.snapshot, resolved.source.event_list(None), resolved.source.kernel_logs())
        why = present.unknown_text(fixes) or present.no_kubelet_fix(model, missed_kill(model, growth, kills))
        output.print_text(f"# {why}\n")
    return fixes


def _most(options: Options) -> int | None:
    """Return how many fixes are shown: only the first ones on a terminal, None for all."""
    from kubectl_qos.present.fix_sentences import MOST_ROWS

    is_table = options.output in {None, "wide"} and output.terminal_width() is not None
    return MOST_ROWS if is_table and not options.all else None


def _reader(resolved: sources.ResolvedSource) -> Callable[[Pod], RelatedObjects | None]:
    """Return a reader of the objects around pods or workloads: None if the object itself cannot be read."""
    related = resolved.source.related_reader()

    def read(pod: Pod) -> RelatedObjects | None:
        try:
            return related(pod)
        except QosError as error:
            output.note(str(error))
            return None

    return read


def _print(answer: FixList | PriorityPlans, snapshot: Snapshot, options: Options, now: datetime) -> None:
    from kubectl_qos.analysis.fix_list import FixList
    from kubectl_qos.present import fix_sentences as present
    from kubectl_qos.present.list_notes import missing_notes, missing_sentence, old_usage_notes
    from kubectl_qos.present.values.fixes import fix_list_values, priority_values

    if options.output not in {None, "wide", "patch", KUBELET_CONFIG}:
        values = fix_list_values(answer) if isinstance(answer, FixList) else priority_values(answer)
        output.print_document(values, str(options.output))
        return
    width = output.terminal_width() if options.output != "wide" else None
    if not isinstance(answer, FixList):
        notes, nothing = _print_plans(answer, options, width), []
    elif options.output == KUBELET_CONFIG:
        notes = list(map(missing_sentence, snapshot.missing))
        if answer.kubelet is not None:
            warnings = list(present.kubelet_warnings(answer.kubelet))
            output.print_text("".join(f"# {warning}\n" for warning in warnings))
            output.print_yaml(answer.kubelet.configuration)
            # A terminal shows the comments too.
            shown = [] if output.terminal_width() is None else warnings
            notes += (note for note in present.kubelet_notes(answer.kubelet) if note not in shown)
        output.notes(notes)
        return
    else:
        most = _most(options)
        output.print_lines(present.lines(answer, headers=options.headers, width=width, most=most))
        notes, nothing = list(present.notes(answer, most)), [present.nothing_sentence(answer)]
    missing = missing_notes(snapshot.missing, [*nothing, *notes])
    output.notes([*missing, *notes, *old_usage_notes(snapshot, now)])


def _print_plans(plans: PriorityPlans, options: Options, width: int | None) -> list[str]:
    """Print the table of --priorities or its patches; return the notes."""
    from kubectl_qos.present import priorities

    lines = priorities.lines(plans, headers=options.headers, width=width)
    if options.output == "patch":
        for how, patch in priorities.patches(plans):
            output.print_text(f"---\n# {how}\n")
            output.print_yaml(patch)
        lines = (f"# {line}" for line in lines) if not plans.rows else iter(())
    output.print_lines(lines)
    return list(priorities.notes(plans))
