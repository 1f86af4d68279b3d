"""Changes that prevent coming deaths (`fix`), or make pods die in order of priority (`fix --priorities`).

Their words are in present/fix_sentences.py and present/priorities.py.
Not here: how a change is found (edit/fix_search.py, edit/priorities.py).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from msgspec import structs

from kubectl_qos.edit.edits import FIELD_MANAGER, POD_LEVEL, Edit, Side, current_value, memory_value
from kubectl_qos.edit.findings import Finding, FindingCode, find_findings
from kubectl_qos.edit.fix_search import fixes_of_node, fixes_of_pods, next_urgency
from kubectl_qos.edit.fixes import (
    EvidenceKind,
    Fix,
    KubeletFix,
    NeedEvidence,
    NodeModel,
    Unfixed,
    evicts_first,
    order_of_fixes,
    strategy_for,
)
from kubectl_qos.edit.priorities import Inversion, Move, PriorityPlan, plan_nodes, priority_of
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.managers import (
    ManagedValue,
    Manager,
    as_manager,
    find_managers,
    find_recommending,
    matching_autoscalers,
)
from kubectl_qos.k8s.objects import CPU, ContainerState, ContainerStateTerminated, Pod, all_containers
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import with_requests_added
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.killers import KILLERS, Killer, Mechanism
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import kubelet_kill
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.qos.simulation.next_death import Urgency
from kubectl_qos.qos.simulation.node_state import NodeState, growth_on


class Throttled(NamedTuple):
    """A container that its CPU limit throttles; `share` of its periods, and its class without the limit.

    No new value is offered, because the throttling does not say how much CPU would be enough.
    """

    key: PodKey
    container: str
    share: float
    limit: Quantity
    edits: tuple[Edit, ...]
    class_before: QosClass
    class_after: QosClass


@dataclass(frozen=True, slots=True)
class FixList:
    """Fixes for coming deaths, nearest first; deaths without a fix; kubelet settings of a single node."""

    fixes: tuple[Fix, ...]
    unfixed: tuple[Unfixed, ...]
    snapshot: Snapshot
    states: Mapping[str, NodeState] = field(default_factory=dict)
    """Nodes that were examined."""
    problems: tuple[str, ...] = ()
    """Why other nodes are unknown."""
    managers: tuple[Manager, ...] = ()
    """What sets the values again, and autoscalers that recommend other ones."""
    throttled: tuple[Throttled, ...] = ()
    ended: tuple[Pod, ...] = ()
    """Pods that were evicted, OOMKilled or never admitted."""
    kubelet: KubeletFix | None = None
    absent: tuple[str, ...] = ()
    """Containers that the template lacks."""
    left_out: int = 0
    """Fixes dropped because they change a container that the template lacks."""
    further: int = 0
    """Nodes not searched because their deaths come later."""
    others_first: tuple[str, ...] = ()
    """Nodes where no limit of the requested pods is near, and other pods die first."""
    refusals: tuple[tuple[int, Finding], ...] = ()
    """Findings that refuse a fix, by its number."""


class _Waiting(NamedTuple):
    """A node to search, and the urgency of its first death, None if unknown or without a death."""

    urgency: Urgency | None
    node: str


def fixes_on_nodes(
    snapshot: Snapshot,
    nodes: Sequence[str],
    scope: Scope,
    *,
    only_nearest: bool = False,
    most: int | None = None,
    urgencies: Mapping[str, Urgency] = MappingProxyType({}),
) -> FixList:
    """Find fixes for all deaths in scope on one node, or for the nearest on each of several nodes.

    `only_nearest`: on a single node, too, stop at its nearest death. On several nodes, stop after `most`
    fixes for the most urgent deaths; `urgencies` of the nodes' first deaths need not be found again. Raises
    InputError if a single node's memory is unknown.
    """
    fixes, unfixed, others_first = list[Fix](), list[Unfixed](), list[str]()
    advised, throttled, states = list[NodeModel](), list[Throttled](), dict[str, NodeState]()
    is_one, ended, profiles = len(nodes) == 1, list[Pod](), ProfileCache()
    by_urgency = most is not None and not is_one
    waiting, problems = [_Waiting(None, name) for name in nodes], list[str]()
    if by_urgency:
        waiting, problems = _by_urgency(snapshot, nodes, scope, profiles, urgencies)
    while waiting:
        urgency, name = waiting[0]
        # Count only fixes of deaths that are more urgent than every death on the remaining nodes.
        if most and urgency is not None and sum(fix.death.urgency < urgency for fix in fixes) >= most:
            break
        del waiting[0]
        model = node_model(snapshot, name, profiles)
        keys = keys_in_scope(model, scope)
        try:
            of_node = fixes_of_node(model, keys, only_nearest=only_nearest or not is_one)
        except InputError as error:
            if is_one:
                raise
            problems.append(str(error))
            continue
        ended += ended_pods([model], scope)
        [state] = of_node.states.values()
        states[name] = state if is_one else state.outline()
        if keys is not None and not of_node.fixes and not of_node.unfixed and state.is_known:
            others_first.append(name)
        fixes += of_node.fixes if is_one else map(_without_rankings, of_node.fixes)
        advised += [model] if model.recommending else []
        unfixed += of_node.unfixed
        throttled += _throttled([model], keys, snapshot) if is_one else []
    in_order = tuple(sorted(fixes, key=order_of_fixes))
    further = {name for _, name in waiting}
    if further:
        in_order, rest = in_order[:most], in_order[most:]
        further.update(fix.pod.node_name for fix in rest)
        further.difference_update(fix.pod.node_name for fix in in_order)
    return FixList(
        in_order,
        tuple(unfixed),
        snapshot,
        states,
        tuple(problems),
        _managers_of(in_order, advised),
        tuple(throttled),
        tuple(ended),
        further=len(further),
        others_first=tuple(others_first),
    )


def ended_pods(models: Iterable[NodeModel], scope: Scope) -> tuple[Pod, ...]:
    """Return the pods in scope that ended because they ran out of a resource."""
    return tuple(pod for model in models for pod in model.pods if _lost_resources(pod) and scope.matches(pod))


def _by_urgency(
    snapshot: Snapshot,
    nodes: Iterable[str],
    scope: Scope,
    profiles: ProfileCache,
    urgencies: Mapping[str, Urgency],
) -> tuple[list[_Waiting], list[str]]:
    """Return the nodes by the urgency of their first deaths, and why others are unknown.

    Nodes without a coming death come first, as a search that stops early must still report their ended pods.
    """
    waiting, problems = list[_Waiting](), list[str]()
    for name in nodes:
        urgency = urgencies.get(name)
        try:
            if urgency is None:
                model = node_model(snapshot, name, profiles)
                urgency = next_urgency(model, keys_in_scope(model, scope))
            waiting.append(_Waiting(urgency, name))
        except InputError as error:
            problems.append(str(error))
    return sorted(waiting, key=lambda node: (node.urgency is not None, node.urgency)), problems


def _without_rankings(fix: Fix) -> Fix:
    """Return a fix of many without the kill orders of its node, which no list shows."""
    effects = fix.preview.effects
    nobody = effects.ranking_before._replace(pods=())
    effects = replace(effects, ranking_before=nobody, ranking_after=nobody)
    return replace(fix, preview=structs.replace(fix.preview, effects=effects))


def fixes_for_pods(
    snapshot: Snapshot,
    keys: Sequence[PodKey],
    workload: tuple[str, str] | None = None,
    by: Collection[Killer] = KILLERS,
    related: RelatedObjects | None = None,
) -> FixList:
    """Find fixes for the deaths of these pods by these killers.

    The pods of a workload (kind and name) share their edits. A single pod that has ended is treated as
    running at the limits that killed it. `related`: owners and autoscalers of the pod or workload. Raises
    InputError if a node's memory is unknown.
    """
    wanted = set(keys)
    pods = [pod for pod in snapshot.pods if pod.kind == "Pod" and pod.key in wanted]
    ended = pods[0] if len(pods) == 1 and pods[0].is_terminal else None
    if ended is not None and kubelet_kill(ended, ()) is not None:
        return FixList((), (), snapshot, ended=(ended,))
    if ended is not None:
        snapshot, workload = _as_running(snapshot, ended), None
        by = [killer for killer in by if not killer.is_node_wide]
    nodes = sorted({pod.node_name for pod in pods})
    models = [node_model(snapshot, name) for name in nodes]
    managers: tuple[Manager, ...] = ()
    if related is not None:
        autoscaler = find_recommending(related.chain, related.autoscalers)
        recommending = dict.fromkeys(keys, autoscaler) if autoscaler is not None else {}
        models = [replace(model, recommending=recommending) for model in models]
    of_pods = fixes_of_pods(models, keys, workload, by)
    fixes = of_pods.fixes
    if related is not None:
        values = [ManagedValue(*edit.target) for fix in fixes for edit in fix.edits]
        managers = (
            *(manager for raw in related.chain for manager in find_managers(raw, values, FIELD_MANAGER)),
            *matching_autoscalers(related.chain, related.autoscalers, values),
        )
    managers = tuple(dict.fromkeys((*managers, *_managers_of(fixes, models))))
    if ended is not None:
        fixes = tuple(replace(fix, pod=ended, strategy=strategy_for(ended, fix.preview)) for fix in fixes)
    throttled = tuple(_throttled(models, keys, snapshot))
    is_empty = not fixes and not of_pods.unfixed
    lost = (ended,) if ended is not None and _lost_resources(ended) and is_empty else ()
    return FixList(fixes, of_pods.unfixed, snapshot, of_pods.states, (), managers, throttled, lost)


def _lost_resources(pod: Pod) -> bool:
    kill = kubelet_kill(pod, ()) if pod.is_terminal else None
    if kill is not None:
        return kill.mechanism not in {Mechanism.SHUTDOWN, Mechanism.PREEMPTION, Mechanism.SCHEDULER}
    return pod.is_terminal and any(status.was_oom_killed for status in pod.status.every_container)


def _managers_of(fixes: Iterable[Fix], models: Iterable[NodeModel]) -> tuple[Manager, ...]:
    advised = [model.recommending for model in models if model.recommending]
    setting = (
        scalers[fix.pod.key]
        for scalers in advised
        for fix in fixes
        if fix.pod.key in scalers
        and not scalers[fix.pod.key].leaves([ManagedValue(*edit.target) for edit in fix.edits])
    )
    return tuple(dict.fromkeys(as_manager(scaler) for scaler in setting if scaler.mode != "Off"))


def _as_running(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """Return the snapshot with the ended pod running, and failed containers using their limits."""
    statuses = tuple(
        structs.replace(status, state=None, last_state=status.state or ContainerState())
        for status in pod.status.container_statuses or ()
    )
    status = structs.replace(pod.status, phase="Running", container_statuses=statuses)
    failed = [
        status.name
        for status in statuses
        if status.was_oom_killed or any(end.exit_code for end in status.ends)
    ]
    limits = {name: ContainerUsage(memory_value(pod, name, Side.LIMITS)) for name in failed}
    runs = structs.replace(pod, status=status)
    usage = {**snapshot.usage, pod.key: PodUsage.of_containers(limits)}
    pods = tuple(runs if other is pod else other for other in snapshot.pods)
    return replace(snapshot, pods=pods, usage=usage)


def node_model(snapshot: Snapshot, node: str, profiles: ProfileCache | None = None) -> NodeModel:
    """Return the node of a snapshot as a model for edits; nodes of a snapshot share `profiles`."""
    pods, own = snapshot.by_node().get(node, ()), snapshot.own_bytes(node)
    pasts = snapshot.history.of(pods).items()
    history = {key: NeedEvidence(EvidenceKind.HISTORY, past.peak_bytes, past.is_leak) for key, past in pasts}
    targets = {
        Workload(scaler.spec.target_ref.kind, scaler.metadata.namespace, scaler.spec.target_ref.name): scaler
        for scaler in snapshot.autoscalers
        if scaler.recommended
    }
    scalers = ((pod, targets.get(find_workload(pod))) for pod in pods if targets)
    recommending = {pod.key: scaler for pod, scaler in scalers if scaler is not None}
    setup = snapshot.setup(node)
    return NodeModel(
        setup,
        pods,
        snapshot.usage,
        history,
        offers=snapshot.offers,
        recommending=recommending,
        growth=growth_on(snapshot, node),
        own_bytes=own,
        profiles=None if profiles is None else profiles.for_node(setup),
    )


def keys_in_scope(model: NodeModel, scope: Scope) -> set[PodKey] | None:
    """Return the selected pods of a node, or None for all of them."""
    keys = {pod.key for pod in model.pods if scope.matches(pod)}
    return None if len(keys) == len(model.pods) else keys


def _throttled(
    models: Iterable[NodeModel], keys: Collection[PodKey] | None, snapshot: Snapshot
) -> Iterator[Throttled]:
    history = snapshot.history
    for model in models if history.containers else ():
        by_key = {pod.key: pod for pod in model.pods}
        for (key, name), past in history.of(model.pods).items():
            if not past.throttled or (keys is not None and key not in keys):
                continue
            pod = by_key[key]
            limit = current_value(pod, name, Side.LIMITS, CPU)
            if limit is not None:
                edits = (Edit(name, Side.LIMITS, CPU, None),)
                before, after = model.qos_class(pod), model.qos_class(pod, edits)
                yield Throttled(key, name, past.throttled, limit, edits, before, after)


def of_template(fixes: FixList, template: Pod) -> FixList:
    """Drop fixes that change a container that the template lacks, such as an injected one."""
    names = {POD_LEVEL, *(container.name for container in all_containers(template))}
    owners = [{edit.owner for edit in fix.edits} - names if fix.workload else set() for fix in fixes.fixes]
    kept = tuple(fix for fix, absent in zip(fixes.fixes, owners, strict=True) if not absent)
    if len(kept) == len(fixes.fixes):
        return fixes
    absent = tuple(sorted(set().union(*owners)))
    return replace(fixes, fixes=kept, absent=absent, left_out=len(fixes.fixes) - len(kept))


def missed_kill(model: NodeModel, growth_bytes: int, kills: Iterable[Kill]) -> Kill | None:
    """Return a kernel kill that eviction should have prevented, or a kill by an unknown killer.

    Returns None if the kubelet's threshold is high enough. Raises InputError if no threshold could be high
    enough. Past kills are ignored if `growth_bytes` is given.
    """
    name = model.setup.node.name
    kills = [] if growth_bytes else [kill for kill in kills if kill.node == name]
    by_kernel, unexplained = list[Kill](), list[Kill]()
    for kill in kills:
        killer, mechanism = kill.diagnosis.killer, kill.diagnosis.mechanism
        if killer is not None and killer.is_kernel and killer.is_node_wide:
            by_kernel.append(kill)
        elif mechanism in {Mechanism.UNKNOWN, Mechanism.KERNEL}:
            is_made_up = ContainerStateTerminated(reason=kill.reason).is_made_up
            unexplained += [] if is_made_up else [kill]
    if by_kernel or unexplained:
        return (by_kernel or unexplained)[0]
    if evicts_first(model, growth_bytes):
        return None
    raise InputError(
        f"no threshold lets the kubelet of {name} evict before the kernel kills",
        hint="no pod can be evicted, or memory grows by more than the node has between two eviction checks",
    )


class PlannedMove(NamedTuple):
    """A pod's edits and the plan of its node."""

    plan: PriorityPlan
    move: Move


class MoveRow(NamedTuple):
    """Edits of a pod, or of all pods of a workload, with the plans of their nodes; numbers begin with 1."""

    number: int
    moves: tuple[PlannedMove, ...]

    @property
    def move(self) -> Move:
        """The first move, of the highest priority on its node."""
        return self.moves[0].move

    @property
    def solves(self) -> list[Inversion]:
        """Inversions that end."""
        return [inversion for _, move in self.moves for inversion in move.solves]

    def on_node(self, plan: PriorityPlan) -> list[Move]:
        """Return the moves of pods on a node."""
        return [planned.move for planned in self.moves if planned.plan is plan]

    @property
    def tightest(self) -> tuple[PriorityPlan, int]:
        """The node with the least room for its pods' requests, and the additional bytes."""

        def requested(plan: PriorityPlan) -> int:
            return sum(move.more_bytes for move in self.on_node(plan))

        plans = (plan for plan, _ in self.moves)
        tightest = min(plans, key=lambda plan: (plan.free_bytes or 0) - requested(plan))
        return tightest, requested(tightest)


@dataclass(frozen=True, slots=True)
class PriorityPlans:
    """Plans of several nodes."""

    plans: tuple[PriorityPlan, ...]
    snapshot: Snapshot
    problems: tuple[NodeState | str, ...] = ()
    """Nodes without a plan: NodeState if usage is missing, else a message."""
    refusals: tuple[tuple[int, Finding], ...] = ()
    """Findings that refuse a row, by its number."""

    @property
    def rows(self) -> list[MoveRow]:
        """All moves, numbered, highest priority first; moves of a workload share a number."""
        rows = dict[object, list[PlannedMove]]()
        for plan in self.plans:
            for move in plan.moves:
                rows.setdefault(move.workload or id(move), []).append(PlannedMove(plan, move))
        ordered = sorted(rows.values(), key=lambda moves: -priority_of(moves[0].move.pod))
        return [MoveRow(number, tuple(moves)) for number, moves in enumerate(ordered, start=1)]


def plans_of_nodes(snapshot: Snapshot, nodes: Sequence[str], scope: Scope) -> PriorityPlans:
    """Return a plan for each node, which edits pods in scope and the other pods of their workloads.

    Raises InputError if there is a single node, and its memory is unknown.
    """
    models, problems = dict[str, NodeModel](), list[NodeState | str]()
    for name in nodes:
        model = node_model(snapshot, name)
        try:
            # A copy, so that not all nodes are held ranked at once.
            state = replace(model).state().require_capacity()
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        if state.is_unmeasured:
            problems.append(state)
        else:
            models[name] = model
    keys = [keys_in_scope(model, scope) for model in models.values()]
    workloads = {find_workload(pod) for model in models.values() for pod in model.pods}
    for name, pods in snapshot.by_node().items():
        if name and name not in nodes and not workloads.isdisjoint(map(find_workload, pods)):
            models[name] = node_model(snapshot, name)
            keys.append(set())
    plans = plan_nodes(list(models.values()), keys)
    shown = tuple(plan for plan in plans if plan.moves or plan.node in nodes)
    return PriorityPlans(shown, snapshot, tuple(problems))


_Offers = TypeVar("_Offers", bound=FixList | PriorityPlans)
_REFUSE: Final = {
    FindingCode.LIMIT_RANGE_REFUSES,
    FindingCode.QUOTA_REFUSES,
    FindingCode.NEW_PODS_REFUSED,
    FindingCode.ROLLOUT_STALLS,
}


def with_refusals(offers: _Offers, read: Callable[[Pod], RelatedObjects | None]) -> _Offers:
    """Check each row against LimitRanges and quotas; rows of plans cumulatively: each after those before."""
    refusals, spent = [], dict[str, int]()
    changes: Iterable[tuple[Fix | Move, int]] = (
        [(fix, 0) for fix in offers.fixes]
        if isinstance(offers, FixList)
        else [(row.move, sum(move.more_bytes for _, move in row.moves)) for row in offers.rows]
    )
    for number, (change, more_bytes) in enumerate(changes, 1):
        pod, related = change.pod, read(change.pod)
        if related is None:
            continue
        before = spent.get(pod.namespace, 0)
        quotas = tuple(with_requests_added(quota, before) for quota in related.quotas)
        related = structs.replace(related, quotas=quotas)
        findings = find_findings(change.preview, related, change.strategy, None)
        refusals += [(number, finding) for finding in findings if finding.code in _REFUSE]
        spent[pod.namespace] = before + more_bytes
    return replace(offers, refusals=tuple(refusals))
