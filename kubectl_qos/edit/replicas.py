"""The running pods of a workload on all of their nodes, before and once all are recreated with its edits.

Not here: the template itself (preview.py), and the rollout that recreates them (strategy.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from kubectl_qos.edit.edits import POD_LEVEL, Edit, apply_edits
from kubectl_qos.edit.preview import Effects, as_recreated, build_effects
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import desired_pod, running_pod
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod, all_containers
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.prediction import predict, predict_running
from kubectl_qos.qos.ranking import Ranking, rank_node
from kubectl_qos.qos.resize import node_fit
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, next_deaths
from kubectl_qos.qos.simulation.node_state import Growth, growth_on, ranked_node_state


@dataclass(frozen=True, slots=True)
class NodeReplicas:
    """The pods of a workload that one node runs, by their kill ranks there, and all deaths that wait there.

    `mine_*` are those of these pods, the nearest first. `room` is how many further pods with the edits the
    node has requests left for, `room_later` once the old ones are gone; None where what is allocatable is
    unknown.
    """

    setup: NodeSetup
    effects: tuple[Effects, ...]
    deaths_before: tuple[NextDeath, ...]
    deaths_after: tuple[NextDeath, ...]
    mine_before: tuple[NextDeath, ...]
    mine_after: tuple[NextDeath, ...]
    room: int | None
    room_later: int | None

    @property
    def first(self) -> Effects:
        """Those on the pod that dies next, as far as that is known."""
        by_pod = {(pod.before.pod.namespace, pod.before.pod.name): pod for pod in self.effects}
        return by_pod.get(self.mine_before[0].key, self.effects[0]) if self.mine_before else self.effects[0]


def replicas_of(workload: Pod, pods: Iterable[Pod]) -> list[Pod]:
    """The pods of a workload that run on a node."""
    return [pod for pod in _placed(workload, pods) if not pod.is_terminal]


def _placed(workload: Pod, pods: Iterable[Pod]) -> list[Pod]:
    return [
        pod
        for pod in pods
        if pod.kind == "Pod" and pod.node_name
        if pod.namespace == workload.namespace and belongs_to(pod, workload.kind, workload.name)
    ]


def node_of(pod: Pod, pods: Iterable[Pod]) -> str:
    """The node of a pod, of a workload whose pods have all ended that of the newest; empty for others."""
    placed = _placed(pod, pods) if pod.kind != "Pod" else []
    ended = placed if all(replica.is_terminal for replica in placed) else []
    return max(ended, key=lambda replica: replica.metadata.creation_timestamp or "", default=pod).node_name


def with_priority(workload: Pod, pods: Iterable[Pod]) -> Pod:
    """A workload's template with the number of its PriorityClass, which its pods have: it names the class."""
    spec, name = workload.spec, workload.spec.priority_class_name
    if not name or spec.priority is not None:
        return workload
    specs = (pod.spec for pod in replicas_of(workload, pods) if pod.spec.priority_class_name == name)
    priority = next((of_pod.priority for of_pod in specs), None)
    return structs.replace(workload, spec=structs.replace(spec, priority=priority))


def recreate_all(workload: Pod, edits: Sequence[Edit], snapshot: Snapshot) -> tuple[NodeReplicas, ...]:
    """What edits of a workload do to each of its pods; the node where one dies next comes first."""
    by_node: dict[str, list[Pod]] = {}
    for pod in replicas_of(workload, snapshot.pods):
        by_node.setdefault(pod.node_name, []).append(pod)
    nodes = [_on_node(pods, edits, name, snapshot) for name, pods in by_node.items()]
    nodes.sort(key=lambda node: (not node.mine_before, *(death.urgency for death in node.mine_before[:1])))
    return tuple(nodes)


def to_pods(workload: Pod, scope: Scope) -> Scope:
    """The scope with the pods of a workload: those with the labels of its template."""
    labels = ",".join(f"{key}={value}" for key, value in (workload.metadata.labels or {}).items())
    return replace(scope, names=frozenset(), selector=Selector.parse(labels), selector_text=labels)


def usage_of(pod: Pod, snapshot: Snapshot) -> PodUsage | None:
    """The usage of a pod, of a workload that of its pod that uses most; None where it is unknown."""
    usages = (snapshot.usage_now(pod) for pod in (pod, *replicas_of(pod, snapshot.pods)))
    return max(filter(None, usages), key=lambda usage: usage.working_set_bytes, default=None)


def _rank(effects: Effects) -> int:
    return effects.rank_before or len(effects.ranking_before.pods) + 1


def _on_node(pods: Sequence[Pod], edits: Sequence[Edit], name: str, snapshot: Snapshot) -> NodeReplicas:
    setup, names = snapshot.setup(name), {pod.name for pod in pods}
    others = [
        pod
        for pod in snapshot.by_node().get(name, ())
        if pod.name not in names or pod.namespace != pods[0].namespace
    ]
    pairs = [
        (
            predict_running(pod, setup),
            predict(_recreated(pod, edits), setup.node, kubelet=setup.kubelet, release=setup.release),
        )
        for pod in pods
    ]
    running = [running_pod(pod, setup.release) for pod in others]
    before, after = (
        rank_node([pair[side].pod for pair in pairs] + running, setup.node, setup.release, snapshot.usage)
        for side in (0, 1)
    )
    keys, own = {(pod.namespace, pod.name) for pod in pods}, snapshot.own_bytes(name)
    growth = growth_on(snapshot, name)
    (deaths_before, mine_before), (deaths_after, mine_after) = (
        _deaths(ranking, setup, own, keys, growth) for ranking in (before, after)
    )
    return NodeReplicas(
        setup,
        tuple(sorted(build_effects(pairs, before, after), key=_rank)),
        deaths_before,
        deaths_after,
        mine_before,
        mine_after,
        _room(pairs[0][1].pod, map(desired_pod, [*others, *pods]), setup),
        _room(pairs[0][1].pod, map(desired_pod, others), setup),
    )


def _recreated(pod: Pod, edits: Iterable[Edit]) -> Pod:
    names = {POD_LEVEL, *(container.name for container in all_containers(pod))}
    return as_recreated(apply_edits(pod, [edit for edit in edits if edit.owner in names]))


def _deaths(
    ranking: Ranking, setup: NodeSetup, own_bytes: int | None, keys: Collection[PodKey], growth: Growth
) -> tuple[tuple[NextDeath, ...], tuple[NextDeath, ...]]:
    """All that wait on a node, and those of these pods."""
    try:
        state = ranked_node_state(ranking, setup, own_bytes=own_bytes).require_capacity()
        state = replace(state, growth=growth)
    except InputError:
        return (), ()
    return tuple(next_deaths(state)), tuple(deaths_of(state, keys))


def _room(pod: Pod, others: Iterable[Pod], setup: NodeSetup) -> int | None:
    fits = [max(fit.free, 0) // fit.needed for fit in node_fit(pod, others, setup) if fit.needed]
    return min(fits, default=None)
