"""The changes against the deaths to come of nodes or pods: `fix`. Their words are in present/fixes.py.

Not here: how a change is found (edit/fix_search.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import structs

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, current_value
from kubectl_qos.edit.fix_search import fixes_of_node, fixes_of_pods, next_urgency, strategy_for
from kubectl_qos.edit.fixes import (
    Evidence,
    EvidenceKind,
    Fix,
    NodeModel,
    Unfixed,
    memory_value,
    order_of_fixes,
)
from kubectl_qos.edit.kubelet_settings import KubeletFix, evicts_first
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.managers import Manager, as_manager, find_recommending, matching_autoscalers
from kubectl_qos.k8s.objects import CPU, ContainerState, ContainerStateTerminated, Pod, all_containers
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.killers import KILLERS, Killer
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import kubelet_kill
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ProfileCache, Profiles
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import Urgency
from kubectl_qos.qos.simulation.node_state import NodeState, growth_on


class Throttled(NamedTuple):
    """A container that its CPU limit holds back: in which part of its periods, and its class without it.

    How much CPU would be enough is not known from that, so that no value is offered.
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
    """Fixes, the nearest death first, the deaths without any, and settings of a single node's kubelet.

    `states` are the nodes whose deaths these are, `problems` why nothing is known of others; `managers`
    recommend other values. `ended` are pods that were evicted, OOMKilled or never admitted. `absent` are the
    containers that a template lacks, `left_out` how many changes were only of those. `further` is on how many
    more nodes deaths wait that come later, against which nothing was looked for. `others_first` are nodes
    where no limit of the requested pods is near, and other pods die first.
    """

    fixes: tuple[Fix, ...]
    unfixed: tuple[Unfixed, ...]
    snapshot: Snapshot
    states: Mapping[str, NodeState] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    managers: tuple[Manager, ...] = ()
    throttled: tuple[Throttled, ...] = ()
    ended: tuple[Pod, ...] = ()
    kubelet: KubeletFix | None = None
    absent: tuple[str, ...] = ()
    left_out: int = 0
    further: int = 0
    others_first: tuple[str, ...] = ()


class _Waiting(NamedTuple):
    """A node, the requested pods, None if all are, and how urgent its first death is, where that is known."""

    urgency: Urgency | None
    model: NodeModel
    keys: set[PodKey] | None


def fixes_on_nodes(
    snapshot: Snapshot,
    nodes: Sequence[str],
    scope: Scope,
    *,
    only_nearest: bool = False,
    most: int | None = None,
) -> FixList:
    """Find fixes against all deaths on one node, or the nearest on each of several, of the pods of a scope.

    With `only_nearest` also of one node, with `most` of several nodes no more than so many: those against the
    deaths that come first. Raises InputError where nothing can be said of a single node.
    """
    fixes, unfixed, others_first = list[Fix](), list[Unfixed](), list[str]()
    models, throttled, states = list[NodeModel](), list[Throttled](), dict[str, NodeState]()
    is_one = len(nodes) == 1
    waiting, problems = _waiting(snapshot, nodes, scope, by_urgency=most is not None and not is_one)
    while waiting:
        urgency, model, keys = waiting[0]
        # Those that surely come first: what this node has may come between the others.
        if most and urgency is not None and sum(fix.death.urgency < urgency for fix in fixes) >= most:
            break
        del waiting[0]
        try:
            of_node = fixes_of_node(model, keys, only_nearest=only_nearest or not is_one)
        except InputError as error:
            if is_one:
                raise
            problems.append(str(error))
            continue
        models.append(model)
        states.update(of_node.states)
        if keys is not None and not of_node.fixes and not of_node.unfixed:
            others_first += [name for name, state in of_node.states.items() if state.is_known]
        fixes += of_node.fixes
        unfixed += of_node.unfixed
        if is_one:
            throttled += _throttled([model], keys, snapshot)
    in_order = tuple(sorted(fixes, key=order_of_fixes))
    further = {node.model.setup.node.name for node in waiting}
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
        _managers_of(in_order, models),
        tuple(throttled),
        ended_pods(models, scope),
        further=len(further),
        others_first=tuple(others_first),
    )


def ended_pods(models: Iterable[NodeModel], scope: Scope) -> tuple[Pod, ...]:
    """The pods of some nodes that have ended for want of resources."""
    return tuple(pod for model in models for pod in model.pods if scope.matches(pod) and _was_ended(pod))


def _waiting(
    snapshot: Snapshot, nodes: Iterable[str], scope: Scope, *, by_urgency: bool
) -> tuple[list[_Waiting], list[str]]:
    """The nodes, those without a death first if by urgency, and why nothing can be said of others."""
    waiting, problems = list[_Waiting](), list[str]()
    profiles: ProfileCache = {}
    for name in nodes:
        model = node_model(snapshot, name, profiles)
        keys = keys_in_scope(model, scope)
        try:
            waiting.append(_Waiting(next_urgency(model, keys) if by_urgency else None, model, keys))
        except InputError as error:
            problems.append(str(error))
    return sorted(waiting, key=lambda node: (node.urgency is not None, node.urgency)), problems


def fixes_for_pods(
    snapshot: Snapshot,
    keys: Sequence[PodKey],
    workload: tuple[str, str] | None = None,
    by: Collection[Killer] = KILLERS,
    related: RelatedObjects | None = None,
) -> FixList:
    """Find fixes against what kills some pods, if by these killers.

    Of a workload, its kind and name, all of its pods get the same edits. A single pod that has ended is as if
    it ran again and used what it was killed at: what follows it needs a limit above that.
    `related` is what is around the pod or workload: a VerticalPodAutoscaler may recommend other values.

    Raises InputError where nothing can be said of their nodes.
    """
    wanted = set(keys)
    pods = [pod for pod in snapshot.pods if pod.kind == "Pod" and (pod.namespace, pod.name) in wanted]
    ended = pods[0] if len(pods) == 1 and pods[0].is_terminal else None
    if ended is not None and kubelet_kill(ended, ()) is not None:
        return FixList((), (), snapshot, ended=(ended,))
    if ended is not None:
        snapshot, workload = _as_running(snapshot, ended), None
        by = [killer for killer in by if not killer.picks_among_pods]
    nodes = sorted({pod.node_name for pod in pods})
    models = [node_model(snapshot, name) for name in nodes]
    managers: tuple[Manager, ...] = ()
    if related is not None:
        chain = [related.raw, *(owner.raw for owner in related.owners)]
        autoscaler = find_recommending(chain, related.autoscalers)
        recommending = dict.fromkeys(keys, autoscaler) if autoscaler is not None else {}
        models = [replace(model, recommending=recommending) for model in models]
        managers = matching_autoscalers(chain, related.autoscalers)
    of_pods = fixes_of_pods(models, keys, workload, by)
    fixes = of_pods.fixes
    managers = tuple(dict.fromkeys((*managers, *_managers_of(fixes, models))))
    if ended is not None:
        fixes = tuple(replace(fix, pod=ended, strategy=strategy_for(ended, fix.preview)) for fix in fixes)
    throttled = tuple(_throttled(models, keys, snapshot))
    is_empty = not fixes and not of_pods.unfixed
    lost = (ended,) if ended is not None and _was_ended(ended) and is_empty else ()
    return FixList(fixes, of_pods.unfixed, snapshot, of_pods.states, (), managers, throttled, lost)


def _was_ended(pod: Pod) -> bool:
    """Whether the pod has ended for want of resources."""
    kill = kubelet_kill(pod, ()) if pod.is_terminal else None
    if kill is not None:
        return kill.is_for_resources
    return pod.is_terminal and any(status.was_oom_killed for status in pod.status.every_container)


def _managers_of(fixes: Iterable[Fix], models: Iterable[NodeModel]) -> tuple[Manager, ...]:
    """The autoscalers that set the values of these pods."""
    keys = [(fix.pod.namespace, fix.pod.name) for fix in fixes]
    advised = [model.recommending for model in models if model.recommending]
    setting = (scalers[key] for scalers in advised for key in keys if key in scalers)
    return tuple(dict.fromkeys(as_manager(scaler) for scaler in setting if scaler.mode != "Off"))


def _as_running(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """As if a pod that has ended ran again, and used what it was killed at: its limits."""
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
    usage = {**snapshot.usage, (pod.namespace, pod.name): PodUsage.of_containers(limits)}
    pods = tuple(runs if other is pod else other for other in snapshot.pods)
    return replace(snapshot, pods=pods, usage=usage)


def node_model(snapshot: Snapshot, node: str, profiles: ProfileCache | None = None) -> NodeModel:
    """The node of a snapshot to try edits on; `profiles` are shared by the nodes of a snapshot."""
    pods, own = snapshot.by_node().get(node, ()), snapshot.own_bytes(node)
    history = {
        key: Evidence(EvidenceKind.HISTORY, past.peak_bytes, past.is_leak)
        for key, past in snapshot.history.of(pods).items()
    }
    targets = {
        Workload(scaler.spec.target_ref.kind, scaler.metadata.namespace, scaler.spec.target_ref.name): scaler
        for scaler in snapshot.autoscalers
        if scaler.recommended
    }
    scalers = ((pod, targets.get(find_workload(pod))) for pod in pods if targets)
    recommending = {(pod.namespace, pod.name): scaler for pod, scaler in scalers if scaler is not None}
    setup = snapshot.setup(node)
    key = setup.node.memory_capacity_bytes, setup.release
    return NodeModel(
        setup,
        pods,
        snapshot.usage,
        history,
        offers=snapshot.offers,
        recommending=recommending,
        growth=growth_on(snapshot, node),
        own_bytes=own,
        profiles=None if profiles is None else profiles.setdefault(key, Profiles(*key)),
    )


def keys_in_scope(model: NodeModel, scope: Scope) -> set[PodKey] | None:
    """The selected pods of a node; None where that is each of them."""
    keys = {(pod.namespace, pod.name) for pod in model.pods if scope.matches(pod)}
    return None if len(keys) == len(model.pods) else keys


def _throttled(
    models: Iterable[NodeModel], keys: Collection[PodKey] | None, snapshot: Snapshot
) -> Iterator[Throttled]:
    history = snapshot.history
    for model in models if history.containers else ():
        for (key, name), past in history.of(model.pods).items():
            pod = next(pod for pod in model.pods if (pod.namespace, pod.name) == key)
            limit = current_value(pod, name, Side.LIMITS, CPU)
            if past.throttled and limit is not None and (keys is None or key in keys):
                edits = (Edit(name, Side.LIMITS, CPU, None),)
                before, after = model.qos_class(pod), model.qos_class(pod, edits)
                yield Throttled(key, name, past.throttled, limit, edits, before, after)


def of_template(fixes: FixList, template: Pod) -> FixList:
    """Leave out the changes of containers that only the pods have: what injects those decides about them."""
    names = {POD_LEVEL, *(container.name for container in all_containers(template))}
    owners = [{edit.owner for edit in fix.edits} - names if fix.workload else set() for fix in fixes.fixes]
    kept = tuple(fix for fix, absent in zip(fixes.fixes, owners, strict=True) if not absent)
    if len(kept) == len(fixes.fixes):
        return fixes
    absent = tuple(sorted(set().union(*owners)))
    return replace(fixes, fixes=kept, absent=absent, left_out=len(fixes.fixes) - len(kept))


def missed_kill(model: NodeModel, growth_bytes: int, kills: Iterable[Kill]) -> Kill | None:
    """Return the kernel kill that a kubelet was too late for, or may have been if nobody knows who killed.

    None if the kubelet's threshold is enough. Raises InputError if no threshold is.
    """
    name = model.setup.node.name
    kills = [] if growth_bytes else [kill for kill in kills if kill.node == name]
    missed = list(filter(_is_by_kernel, kills)) or list(filter(_is_unexplained, kills))
    if missed:
        return missed[0]
    if evicts_first(model, growth_bytes):
        return None
    raise InputError(
        f"no threshold lets the kubelet of {name} evict before the kernel kills",
        hint="nothing there can be evicted, or memory grows by more than the node has before it looks again",
    )


def _is_by_kernel(kill: Kill) -> bool:
    """Whether the kernel killed because the node, or what all its pods may use, was full."""
    killer = kill.diagnosis.killer
    return killer is not None and killer.is_kernel and killer.picks_among_pods


def _is_unexplained(kill: Kill) -> bool:
    """Whether a container without a limit was killed and only its status says so."""
    is_lost = ContainerStateTerminated(reason=kill.reason).is_made_up
    return kill.diagnosis.mechanism in {Mechanism.UNKNOWN, Mechanism.KERNEL} and not is_lost
