"""The edits that the flags of `kubectl qos set` ask for, and their preview."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cli.options import KUSTOMIZE, SetOptions
from kubectl_qos.cli.resources import parse_kind, reference
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.cluster.working_tree import WorkingTree
from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.compare import NodeReplicas, replicas_of
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Amount,
    Edit,
    Side,
    apply_edits,
    build_manifest,
    build_patch,
    format_amounts,
    has_more,
    kubectl_command,
    kustomize_patch,
    lowers_cpu_limit,
    own_edits,
    parse_amounts,
    select_containers,
)
from kubectl_qos.edit.findings import Finding, FindingCode, Severity, find_findings
from kubectl_qos.edit.goals import Goal, RankGoal, highest_goal, outlive, rank_at_least, reach_class
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.server_response import as_created
from kubectl_qos.edit.strategy import topmost_workload
from kubectl_qos.errors import ApiError, InputError, QosError, UsageError, first_few
from kubectl_qos.k8s.managers import ManagedValue, find_managers
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.quota import LimitRange
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.changes import (
    commit_message,
    diff_lines,
    kept_lines,
    recreate_hint,
    write_back_lines,
)
from kubectl_qos.present.effects import change_section, goal_section, never_sentence, preview_sections
from kubectl_qos.present.findings import (
    answer_sentence,
    finding_line,
    findings_section,
    obstacle_remedy,
    obstacle_sentence,
)
from kubectl_qos.present.fix_sentences import THROTTLES
from kubectl_qos.present.list_notes import capacity_sentence, missing_sentence
from kubectl_qos.present.output import Section, marked_lines, to_yaml
from kubectl_qos.present.preview import deaths_section, goal_limits, replicas_section, rollout_section
from kubectl_qos.present.reasons import pod_subject, step_sentence
from kubectl_qos.qos.qos_class import SPEC_RESOURCES, QosClass, computed_class
from kubectl_qos.qos.resize import ResizeStatus
from kubectl_qos.qos.simulation.node_state import growth_on

if TYPE_CHECKING:
    from kubectl_qos.present.values.changes import ChangePreviewValues


class EditRequest(NamedTuple):
    """What the flags of `set` ask for, whatever the pod: amounts, and at most one goal; of `fix` nothing."""

    amounts: tuple[tuple[Side, Amount], ...]
    patterns: tuple[str, ...]
    pod_level: bool
    target: QosClass | None = None
    kill_rank: RankGoal | None = None

    @property
    def has_goal(self) -> bool:
        """Return True if the edits have to be searched for."""
        return self.target is not None or self.kill_rank is not None

    @property
    def is_of_set(self) -> bool:
        """Return whether `set` runs, whose flags may be suggested."""
        return bool(self.amounts) or self.has_goal


class PlannedEdits(NamedTuple):
    """Edits of a pod or workload in a snapshot of its source, and the request behind them."""

    pod: Pod
    edits: Sequence[Edit]
    snapshot: Snapshot
    resolved: ResolvedSource
    request: EditRequest
    ranges: Sequence[LimitRange] = ()
    """LimitRanges of files that complete the pod when it is created."""


def parse_edit_request(options: SetOptions) -> EditRequest:
    """Return what the flags ask for. Raises UsageError if they contradict each other or ask for nothing."""
    given = {Side.REQUESTS: options.requests, Side.LIMITS: options.limits}
    amounts = tuple(
        (side, amount)
        for side, texts in given.items()
        if texts is not None
        for amount in parse_amounts(",".join(texts), f"--{side.value}")
    )
    flags = {
        "--class": options.target_class,
        "--outlive": options.outlive,
        "--rank-below": options.rank_below,
    }
    goals = [flag for flag, value in flags.items() if value is not None]
    if len(goals) > 1:
        raise UsageError(f"{' and '.join(goals)} are two goals", hint="use one at a time")
    if not amounts and not goals:
        raise UsageError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)",
            hint="--class guaranteed finds the values of a class, --outlive pod/web-1 those of a rank",
        )
    if options.containers and options.pod_level:
        raise UsageError(
            "--pod-level changes the pod's own resources, -c those of containers: use only one of them"
        )
    if not amounts and (options.containers or options.pod_level):
        flag = "-c" if options.containers else "--pod-level"
        whole_pod = "a class" if options.target_class is not None else "a kill rank"
        raise UsageError(f"{flag} needs --requests or --limits: {whole_pod} belongs to the whole pod")
    target = next((qos for qos in QosClass if qos.value.lower() == options.target_class), None)
    kill_rank = None
    if options.outlive is not None:
        before, slash, name = options.outlive.rpartition("/")
        kind = parse_kind(before) or "Pod"
        if kind != "Pod":
            raise UsageError(
                f"--outlive {options.outlive}: --outlive takes a pod, not a {kind.lower()}",
                hint="name a pod of the same node",
            )
        if not name or "/" in before or bool(slash) != bool(before):
            raise UsageError(
                f"--outlive {options.outlive!r} does not name a pod",
                hint="write web-0, pod/web-0 or shop/web-0",
            )
        kill_rank = RankGoal(("" if parse_kind(before) else before, name))
    elif options.rank_below is not None:
        kill_rank = RankGoal(rank=options.rank_below)
    return EditRequest(amounts, options.containers, options.pod_level, target, kill_rank)


def build_edits(
    request: EditRequest, pod: Pod, snapshot: Snapshot, ranges: Sequence[LimitRange] = ()
) -> list[Edit]:
    """Return the edits of the flags, and those towards the goal. Raises InputError."""
    setup = snapshot.setup(pod.node_name)
    owners: list[str] = []
    if request.pod_level:
        if not setup.release.enabled(Gate.POD_LEVEL_RESOURCES):
            raise InputError(
                f"{reference(pod)}: Kubernetes {setup.release} has no pod-level resources here",
                hint="leave --pod-level out, or add --feature-gates PodLevelResources=true if it is on",
            )
        owners = [POD_LEVEL]
    elif request.amounts:
        owners = select_containers(pod, request.patterns)
    given = [amount.edit(pod, owner, side) for owner in owners for side, amount in request.amounts]
    if not request.has_goal:
        return given
    if request.target is not None:
        return [*given, *_edits_of_class(request.target, pod, given, setup.release, ranges)]
    assert request.kill_rank is not None, "there is a goal"
    return [*given, *_edits_of_rank(request.kill_rank, pod, given, snapshot)]


def _edits_of_class(
    target: QosClass, pod: Pod, given: Sequence[Edit], release: Release, ranges: Sequence[LimitRange]
) -> Sequence[Edit]:
    """Return the edits with which a pod, as it will be created, gets the class."""

    def created(edits: Sequence[Edit]) -> Pod:
        edited = apply_edits(pod, edits)
        return as_created(edited, ranges, release) if ranges else edited

    edits = _check_goal(reach_class(created(given), target, release), target.value, given, pod)
    if ranges and (qos := computed_class(created([*given, *edits]), release)) is not target:
        names = ", ".join(limits.metadata.name for limits in ranges)
        raise InputError(
            f"{reference(pod)}: LimitRange {names} completes its pods, so they would be {qos.value}"
        )
    return edits


def _edits_of_rank(goal: RankGoal, pod: Pod, given: Sequence[Edit], snapshot: Snapshot) -> Sequence[Edit]:
    """Return the edits with which a pod, or each pod of a workload that it concerns, gets the kill rank."""
    name, other = f"kill rank {goal.rank}", None
    if goal.outlive is not None:
        other = _find_outlived(goal.outlive, pod, snapshot)
        name = f"outliving {reference(other)}"
    replicas = [pod] if pod.kind == "Pod" else _replicas_to_compare(other, pod, snapshot)
    keys = {replica.key for replica in replicas}
    goals = []
    for replica in replicas:
        edited, setup = apply_edits(replica, own_edits(replica, given)), snapshot.setup(replica.node_name)
        pods = snapshot.by_node().get(replica.node_name, ())
        neighbours = [pod for pod in pods if pod.key not in keys]
        if other is not None:
            goals.append(outlive(edited, other, setup, neighbours, snapshot.usage))
        else:
            goals.append(rank_at_least(edited, goal.rank, setup, neighbours, snapshot.usage))
    edits = _check_goal(highest_goal(goals), name, given, pod)
    lacking = [edit.owner for edit in edits if edit not in own_edits(pod, edits)]
    if lacking:
        raise InputError(
            f"{reference(pod)}: {name} needs a request of container {lacking[0]}, which its template lacks",
            hint=f"change a pod alone: {' or '.join(map(reference, replicas))}",
        )
    return edits


def _replicas_to_compare(other: Pod | None, workload: Pod, snapshot: Snapshot) -> list[Pod]:
    """Return the running pods of a workload, those on the node of another pod if one is given."""
    replicas = replicas_of(workload, snapshot.pods)
    name = reference(workload)
    if not replicas:
        raise InputError(f"{name} has no pod on a node, so it has no kill rank")
    if other is None:
        return replicas
    if other in replicas:
        raise InputError(
            f"{reference(other)} is a pod of {name}, whose template has one value for all its pods",
            hint="name the pod to change instead of its workload",
        )
    on_node = [replica for replica in replicas if replica.node_name == other.node_name]
    if not on_node:
        nodes = ", ".join(sorted({replica.node_name for replica in replicas}))
        raise InputError(
            f"{name} has no pod on {other.node_name or 'a node'} with {reference(other)}, only on {nodes}",
            hint="name a pod of one of those nodes: a kernel chooses only among the pods of its node",
        )
    return on_node


def _find_outlived(outlived: PodKey, pod: Pod, snapshot: Snapshot) -> Pod:
    namespace, name = outlived
    pods = (other for other in snapshot.pods if other.kind == "Pod" and other.name == name)
    named = [other for other in pods if namespace in {"", other.namespace}]
    near = [other for other in named if other.namespace == pod.namespace] or named
    if not near:
        raise ApiError.not_found(
            "pods", name, hint="it must run on the same node: kubectl qos top --node lists its pods"
        )
    if len(near) > 1:
        places = ", ".join(other.namespace for other in near)
        raise InputError(
            f"there is a {reference(near[0])} in several namespaces: {places}",
            hint=f"name its namespace: --outlive {near[0].namespace}/{name}",
        )
    if near[0] is pod:
        raise InputError(f"{reference(pod)} cannot outlive itself", hint="name another pod of its node")
    return near[0]


def _check_goal(goal: Goal, name: str, given: Sequence[Edit], pod: Pod) -> Sequence[Edit]:
    """Return the remaining edits. Raises InputError if a person has to decide."""
    if goal.obstacle is not None:
        raise InputError(
            f"{reference(pod)}: no memory request is enough for {name}: {obstacle_sentence(goal.obstacle)}",
            hint=obstacle_remedy(goal.obstacle),
        )
    requested = {edit.target: edit for edit in given}
    for edit in goal.edits:
        if edit.target in requested:
            owner = edit.owner or SPEC_RESOURCES
            kept, needed = (
                format_amounts([Amount(edit.resource, quantity)])
                for quantity in (requested[edit.target].quantity, edit.quantity)
            )
            raise InputError(
                f"{reference(pod)}: {owner}: --{edit.side.value} {kept} contradicts {name},"
                f" which needs {needed}",
                hint="leave out one of the two",
            )
    if goal.to_choose:
        raise InputError(
            f"{reference(pod)}: {name} needs values that you have to choose:"
            f" {'; '.join(map(step_sentence, goal.to_choose))}",
            hint=f"add them to --class {name.lower()} with -c, --requests and --limits",
        )
    return goal.edits


def print_preview(
    change: Apply,
    planned_edits: PlannedEdits,
    options: SetOptions,
    replicas: Sequence[NodeReplicas],
    findings: Sequence[Finding],
) -> None:
    """Print the preview, or with -o the patch, the manifest or a document with all of them."""
    effects, (pod, _, snapshot, resolved, request, _) = change.preview, planned_edits
    goal = list[Section]()
    if request.kill_rank is not None and effects.edits:
        goal = [goal_section(effects, _goal_limits(request.kill_rank, effects, snapshot, replicas))]
    if options.output in {"patch", KUSTOMIZE}:
        if effects.edits or options.output == "patch":
            _print_patch(effects, pod, resolved, options)
        if not effects.edits and not options.writes:
            output.note(nothing_to_change("nothing to change", pod, request))
        output.notes(marked_lines(goal) if not options.writes else ())
    elif options.output == "manifest":
        output.print_yaml(build_manifest(resolved.source.raw(pod), pod, effects.edits))
    elif options.output is not None:
        values = _preview_values(change, planned_edits, replicas)
        output.print_document(values, options.output)
    else:
        changes = change_section(pod, effects.edits, _already(request), with_flags=request.has_goal)
        sections = [changes, *goal]
        if effects.edits:
            workload = resolved.source.raw(pod) if pod.kind != "Pod" else {}
            sections += effect_sections(change, snapshot, replicas, workload, findings)
        lines = [pod_subject(effects.before), *marked_lines(sections)]
        # Stdout has only a commit message or a diff.
        if options.tree is not None or options.is_dry_write:
            for line in lines:
                output.note(line)
        else:
            output.print_prose(lines)


def nothing_to_change(nothing: str, pod: Pod, request: EditRequest, where: str = "") -> str:
    """Say why nothing is done: `nothing to apply: pod/web already has these values`."""
    return f"{nothing}: {reference(pod)} {_already(request) or f'already has these values{where}'}"


def _already(request: EditRequest) -> str:
    """Return which kill rank an unchanged pod has: `already outlives ml/notebook-0`; else ""."""
    goal = request.kill_rank
    if goal is None:
        return ""
    if goal.outlive is None:
        return f"already has kill rank {goal.rank} or a later one"
    return f"already outlives {'/'.join(filter(None, goal.outlive))}"


def _goal_limits(
    goal: RankGoal, preview: Preview, snapshot: Snapshot, replicas: Sequence[NodeReplicas]
) -> Iterator[str]:
    """Say what limits a reached goal, of a workload about the pod that is killed first."""
    pods = [effects for node in replicas for effects in node.effects]
    if goal.outlive is not None:
        namespace, name = goal.outlive
        pods = [
            effects
            for effects in pods
            if any(
                row.pod.name == name and namespace in {"", row.pod.namespace}
                for row in effects.ranking_after.pods
            )
        ]
    effects = min(pods, key=lambda effects: effects.rank_after or 0, default=preview.effects)
    node = effects.before.pod.node_name
    yield from goal_limits(effects, snapshot.own_bytes(node), growth_on(snapshot, node))


def effect_sections(
    change: Apply,
    snapshot: Snapshot,
    replicas: Sequence[NodeReplicas],
    workload: Json,
    findings: Sequence[Finding] = (),
) -> Iterator[Section]:
    """Return what a change does to its pod, or to the pods of a workload; `workload` is empty for a pod."""
    effects, pod = change.preview, change.pod
    if replicas:
        yield replicas_section(replicas)
        yield from filter(None, [rollout_section(replicas, workload)])
    else:
        own, growth = snapshot.own_bytes(pod.node_name), growth_on(snapshot, pod.node_name)
        yield from filter(None, [deaths_section(effects.effects, own, growth)])
    first = replicas[0].first if replicas else None
    yield from preview_sections(effects, first, workload, findings)
    yield from filter(None, [findings_section(findings)])


def _print_patch(effects: Preview, pod: Pod, resolved: ResolvedSource, options: SetOptions) -> None:
    if options.output == KUSTOMIZE:
        namespace = pod.namespace if options.source.files else ""
        entry, patch = kustomize_patch(declared(pod, resolved)[1], effects.edits, namespace)
        listed = to_yaml({"patches": [entry]}, ascii_only=True)
        output.print_text(indent(f"{entry['path']}, and in kustomization.yaml:\n{listed}", "# "))
        output.print_yaml(patch)
        return
    output.print_yaml(build_patch(pod, effects.edits) if effects.edits else {})
    if not options.writes:
        output.notes(_how_to_apply(effects, pod))


def _preview_values(
    change: Apply, planned_edits: PlannedEdits, replicas: Sequence[NodeReplicas]
) -> ChangePreviewValues:
    """Return the preview with findings and strategies, as far as the objects around the pod can be read."""
    from kubectl_qos.present.values.changes import preview_values

    effects, (pod, _, snapshot, resolved, request, _) = change.preview, planned_edits
    notes = [*preview_notes(effects, snapshot, replicas)]
    if effects.edits:
        try:
            related = resolved.source.related(pod)
        except QosError as error:
            notes.append(str(error))
        else:
            notes += map(missing_sentence, related.missing)
            change, _ = change.begin(related)
            if change.error is not None:
                raise change.error
    return preview_values(
        change,
        goal=request.kill_rank,
        patch=build_patch(pod, effects.edits) if effects.edits else None,
        manifest=build_manifest(resolved.source.raw(pod), pod, effects.edits),
        notes=notes,
        replicas=replicas,
    )


def _how_to_apply(effects: Preview, pod: Pod) -> Iterator[str]:
    kind = effects.strategy_kind
    if not effects.edits or effects.refusals:
        return
    if kind not in {StrategyKind.RECREATE, StrategyKind.NEVER}:
        yield kubectl_command(pod, in_place=kind is StrategyKind.IN_PLACE)


def throttling_note(effects: Preview, request: EditRequest) -> Iterator[str]:
    """Say which containers get a CPU limit, or a lower one, that nobody asked for."""
    pod = effects.before.pod
    names = [edit.owner or SPEC_RESOURCES for edit in effects.edits if lowers_cpu_limit(pod, edit)]
    if names and not request.amounts:
        yield f"a CPU limit for {first_few(names)}: {THROTTLES}"


def preview_notes(
    effects: Preview, snapshot: Snapshot, replicas: Sequence[NodeReplicas] = ()
) -> Iterator[str]:
    """Yield what could not be read, and what is unknown about the node."""
    yield from map(missing_sentence, snapshot.missing)
    for edit in effects.edits:
        if edit.warning:
            owner = edit.owner or SPEC_RESOURCES
            yield f"Warning: {owner}: {edit.side.value}.{edit.resource}: {edit.warning}"
    nodes = [node.setup.node for node in replicas] or [effects.after.setup.node]
    unknown = [node.name for node in nodes if node.memory_capacity_bytes is None]
    if unknown:
        yield capacity_sentence(unknown)


def findings_around(change: Apply, resolved: ResolvedSource) -> tuple[Finding, ...]:
    """Return what the objects around the pod add to the preview; print which of them cannot be read."""
    if not change.edits:
        return ()
    effects, related = change.preview, resolved.source.related(change.pod)
    output.notes(map(missing_sentence, related.missing))
    return find_findings(effects, related, effects.strategy_kind, change.usage, change.history)


def finding_notes(findings: Iterable[Finding], options: SetOptions) -> Iterator[str]:
    """Yield what a document or patch does not show and an error will not say."""
    if options.output is not None:
        yield from (finding_line(item) for item in findings if not (item.stops or item.in_preview))


def refusals(
    effects: Preview, findings: Iterable[Finding], resolved: ResolvedSource, snapshot: Snapshot
) -> Iterator[str]:
    """Yield the refusals of a server that the preview does not show.

    A change of files that would stop all new pods is refused too: no server answers before it is rolled out.
    """
    for finding in findings:
        is_refusal = finding.severity is Severity.REFUSAL
        if not resolved.source.is_live and finding.code is FindingCode.NEW_PODS_REFUSED:
            is_refusal = True
        if is_refusal and not finding.in_preview:
            yield finding_line(finding)
    if not (resolved.source.is_live and resolved.changes_persist) and effects.edits:
        yield from _beyond_every_node(effects, snapshot)


def _beyond_every_node(effects: Preview, snapshot: Snapshot) -> Iterator[str]:
    """Yield the requests that no node of a dump can ever hold."""
    allocatable = [snapshot.setup(name).node.status_allocatable for name in snapshot.nodes]
    requests = pod_requests(effects.after.pod, effects.after.setup.release)
    for resource, request in requests.items():
        most = max((amounts[resource] for amounts in allocatable if resource in amounts), default=None)
        if most is not None and request > most:
            yield f"no node can hold it: requests {resource} {request}, at most {most} is allocatable"


def check_possible(effects: Preview, others: Sequence[str], options: SetOptions, *, is_set: bool) -> None:
    """Raise InputError if the change, which was shown, cannot be made.

    The manifest of an object that cannot be changed may be written: the object can be recreated from it.
    `others` are the refusals that the preview does not show; `is_set`: the flags of `set` may be suggested.
    """
    name = reference(effects.before.pod)
    writes = options.writes or options.output == KUSTOMIZE
    if others:
        raise InputError(f"{name}: {others[0]}", hint="nothing is written" if writes else "")
    if effects.refusals:
        first, *more = effects.refusals
        error = InputError(
            f"{name}: a server would refuse this: {first}",
            hint="change values that depend on each other in one command"
            + ("; nothing is written" if writes else ""),
        )
        for other in more:
            error.add_note(f"{name}: {other}")
        raise error
    if effects.strategy_kind is StrategyKind.NEVER and not writes:
        what, _, remedy = never_sentence(effects).partition(": ")
        raise InputError(f"{name}: {what}", hint=remedy)
    if options.applies or writes:
        return
    if effects.strategy_kind is StrategyKind.IN_PLACE and effects.outcome.answer is ResizeStatus.INFEASIBLE:
        raise InputError(f"{name}: the kubelet {answer_sentence(effects.outcome)}")
    if effects.strategy_kind is StrategyKind.RECREATE and options.output == "patch":
        hint = "save the output of -o manifest, then delete and recreate the pod"
        raise InputError(
            f"{name}: the server refuses this patch",
            hint=hint if is_set else recreate_hint(effects.before.pod, effects.edits),
        )


def write_to_tree(planned_edits: PlannedEdits, options: SetOptions) -> None:
    """Write edits to the source of the object, or of the workload that owns the pod. Raises QosError."""
    pod, edits, _, resolved, request, _ = planned_edits
    raw, template = declared(pod, resolved)
    managers = find_managers(raw, [ManagedValue(*edit.target) for edit in edits])
    assert options.tree is not None
    dry_run = options.is_dry_write
    # What a fix does not lower in the cluster, it does not lower in the source.
    raised = [] if request.amounts else [edit for edit in edits if not has_more(pod, edit)]
    tree = WorkingTree(options.tree)
    done = tree.write(template, edits, managers, options.into, dry_run=dry_run, raised=raised)
    if done.kept and not done.edits:
        raise InputError(f"{'; '.join(kept_lines(done))}; nothing is written")
    output.notes(write_back_lines(done, pod, dry_run=dry_run))
    if dry_run and options.output is None:
        output.print_lines(diff_lines(done.files))
    elif done.edits and not dry_run:
        print_message = output.print_lines if options.output is None else output.notes
        print_message(commit_message(done))


def declared(pod: Pod, resolved: sources.ResolvedSource) -> tuple[Mapping[str, Any], Pod]:
    """Return what a manifest declares, the pod or its workload, and the template. Raises QosError."""
    related = resolved.source.related(pod)
    owner = topmost_workload(related)
    if related.owners and owner is None:
        above = f"{related.owners[-1].kind.lower()}/{related.owners[-1].name}"
        raise InputError(
            f"{resources.reference(pod)} is owned by {above}, whose template cannot be read",
            hint="name the workload instead",
        )
    if owner is None or owner.template is None:
        return {"kind": pod.kind, **related.raw}, pod
    return owner.raw, owner.template
