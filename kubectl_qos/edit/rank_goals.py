"""The least memory request with which a pod is killed late enough on its node.

The kernel goes by usage and oom_score_adj, and the kubelet makes the latter of Burstable containers from
their memory requests. Goals about the class itself are in goals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, apply
from kubectl_qos.edit.goals import Goal, Obstacle, ObstacleReason, goal
from kubectl_qos.edit.preview import as_new, neighbours_without
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY, Container, Pod, ResourceRequirements
from kubectl_qos.k8s.quantity import ZERO, Format, Quantity
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.resources import aggregate_requests, is_sidecar
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.oom_score import (
    BEST_EFFORT_ADJ,
    GUARANTEED_ADJ,
    LOWEST_BURSTABLE_ADJ,
    Kernel,
    PodAdj,
    kernel_formula,
    restrict_adj,
)
from kubectl_qos.qos.qos_class import QosClass, computed_class, is_decided_at_pod_level
from kubectl_qos.qos.ranking import Basis, RankedPod, Ranking, rank_node

UNIT_BYTES: Final = 1 << 20
"""Requests are raised to whole Mi: less than that nobody writes, and few nodes have steps that are finer."""

Usage = Mapping[PodKey, PodUsage]
_Reached = Callable[[Ranking, RankedPod], bool]


def outlive(
    pod: Pod,
    other: Pod,
    setup: NodeSetup,
    neighbours: Sequence[Pod],
    usage: Usage | None = None,
    *,
    may_be_guaranteed: bool = False,
) -> Goal:
    """The least memory requests with which a pod is killed after another one of its node.

    After means a higher kill rank: two that the kernel cannot tell apart do not outlive each other. Usage is
    taken to stay as it is, and what is added is counted in whole Mi (`UNIT_BYTES`): one of them less does not
    do. Requests of containers are raised, each as far as it has to be; where spec.resources decides the pod's
    class, its request alone, because it is what the containers share. A limit is raised where the request
    would exceed it, and to one Mi above the request where the pod would be Guaranteed otherwise. Nothing is
    ever lowered. What the node has free does not count here: the preview tells it.

    Args:
        pod: as stored or written, not defaulted by us.
        other: the one to outlive, among the neighbours.
        setup: the node.
        neighbours: the pods of the node, the pod itself may be among them.
        usage: memory by pod; those without count as using nothing.
        may_be_guaranteed: whether the class Guaranteed is an answer where no request is enough.
    """
    others = neighbours_without(pod, neighbours, setup.release)
    rows = rank_node(others, setup.node, setup.release, usage).pods
    key = (other.kind, other.namespace, other.name)
    its = next((row for row in rows if (row.pod.kind, row.pod.namespace, row.pod.name) == key), None)
    if not setup.node.memory_capacity_bytes:
        return _impossible(Obstacle(ObstacleReason.NO_CAPACITY))
    if its is None:
        return _impossible(Obstacle(ObstacleReason.OTHER_NOT_THERE))
    if its.worst is None or its.worst.points is None:
        return _impossible(Obstacle(ObstacleReason.OTHER_HAS_NO_PROCESSES))
    search = _RankSearch(pod, setup, others, usage, its.worst.points)
    return search.found(may_be_guaranteed=may_be_guaranteed)


def rank_at_least(
    pod: Pod,
    rank: int,
    setup: NodeSetup,
    neighbours: Sequence[Pod],
    usage: Usage | None = None,
    *,
    may_be_guaranteed: bool = False,
) -> Goal:
    """The least memory requests with which a pod is the `rank`-th of its node to be killed, or a later one.

    Rank 1 is the next victim, so a later death is a higher number: 10 asks for the rank 10, 11 or any beyond
    it, which is at least nine pods that are killed before it. The rest is as in `outlive`.
    """
    others = neighbours_without(pod, neighbours, setup.release)
    if not setup.node.memory_capacity_bytes:
        return _impossible(Obstacle(ObstacleReason.NO_CAPACITY))
    rows = rank_node(others, setup.node, setup.release, usage).pods
    points = [row.worst.points for row in rows if row.worst is not None and row.worst.points is not None]
    if rank <= 1:
        return Goal(())
    if rank > len(points) + 1:
        return _impossible(Obstacle(ObstacleReason.TOO_FEW_PODS, ranked=len(points) + 1))
    search = _RankSearch(pod, setup, others, usage, sorted(points, reverse=True)[rank - 2])
    return search.found(may_be_guaranteed=may_be_guaranteed)


def _impossible(obstacle: Obstacle) -> Goal:
    return Goal((), obstacle=obstacle)


@dataclass(frozen=True, slots=True)
class _RaisedRequest:
    """A place with a memory request, and what it is raised to. In bytes."""

    owner: str
    to: int


class _RankSearch:
    """The search for one pod: it has to come below so many points."""

    def __init__(
        self, pod: Pod, setup: NodeSetup, others: Sequence[Pod], usage: Usage | None, points: int
    ) -> None:
        self._pod = pod
        self._setup = setup
        self._others = others
        self._usage = usage
        self._points = points
        self._release = setup.release
        self._capacity = setup.node.memory_capacity_bytes or 0
        self._new = default_pod(as_new(pod), setup.release)
        self._own = (_memory(self._new.spec.resources, "requests") or ZERO).value()
        self._is_pod_level = is_decided_at_pod_level(self._new, setup.release)

    def found(self, *, may_be_guaranteed: bool) -> Goal:
        """The edits, or what stands in the way."""
        ranking, mine = self._ranked(default_pod(self._pod, self._release))
        if mine.worst is None:
            return _impossible(Obstacle(ObstacleReason.NO_PROCESSES))
        if ranking.basis is Basis.USAGE and mine.usage is None:
            return _impossible(Obstacle(ObstacleReason.NO_USAGE))
        if self._is_reached(mine):
            return Goal(())
        burstable = self._burstable(mine)
        if burstable.obstacle is None or not may_be_guaranteed:
            return burstable
        if burstable.obstacle.why is not ObstacleReason.BEYOND_BURSTABLE:
            return burstable
        return self._guaranteed(mine)

    def _burstable(self, mine: RankedPod) -> Goal:
        """By requests alone."""
        qos = computed_class(self._new, self._release)
        fixed = PodAdj(self._new, qos, self._capacity, self._release).fixed
        highest = self._highest_adj(mine)
        name, needed = min(highest.items(), key=lambda item: item[1])
        if fixed is not None and fixed.adj != BEST_EFFORT_ADJ:
            why = ObstacleReason.GUARANTEED if qos is QosClass.GUARANTEED else ObstacleReason.CRITICAL
            return _impossible(Obstacle(why, name, needed, fixed.adj))
        runtime = self._setup.node.runtime_oom_score_adj
        least = restrict_adj(LOWEST_BURSTABLE_ADJ, runtime)
        if needed < least:
            by_runtime = needed >= LOWEST_BURSTABLE_ADJ
            why = ObstacleReason.RESTRICTED if by_runtime else ObstacleReason.BEYOND_BURSTABLE
            return _impossible(Obstacle(why, name, needed, least))
        bytes_needed = {name: self._bytes_for(adj) for name, adj in highest.items()}
        raises = self._pod_level(bytes_needed) if self._is_pod_level else self._containers(bytes_needed)
        edits = self._still_burstable([edit for one in raises or self._any() for edit in self._edits(one)])
        if not self._does(edits):
            return _impossible(Obstacle(ObstacleReason.NOT_BY_REQUESTS, name, needed))
        return Goal(tuple(self._needed(edits)))

    def _does(self, edits: Iterable[Edit]) -> bool:
        """Whether a server takes the edits, and they are enough without making the pod Guaranteed."""
        changed = default_pod(as_new(apply(self._pod, edits)), self._release)
        if pod_refusals(changed, self._release):
            return False
        if computed_class(changed, self._release) is QosClass.GUARANTEED:
            return False
        return self._is_reached(self._ranked(changed)[1])

    def _needed(self, edits: list[Edit]) -> list[Edit]:
        """Without those that need not be: a request that is not written is its limit."""
        for edit in edits:
            others = [one for one in edits if one is not edit]
            if self._does(others):
                return self._needed(others)
        return edits

    def _guaranteed(self, mine: RankedPod) -> Goal:
        found = goal(self._pod, QosClass.GUARANTEED, self._release)
        least = restrict_adj(GUARANTEED_ADJ, self._setup.node.runtime_oom_score_adj)
        name, needed = min(self._highest_adj(mine).items(), key=lambda item: item[1])
        if needed < least:
            return _impossible(Obstacle(ObstacleReason.BEYOND_GUARANTEED, name, needed, least))
        return found

    # -- what the kernel makes of it --------------------------------------------------------------

    def _ranked(self, pod: Pod) -> tuple[Ranking, RankedPod]:
        ranking = rank_node([pod, *self._others], self._setup.node, self._release, self._usage)
        return ranking, next(row for row in ranking.pods if row.pod is pod)

    def _is_reached(self, mine: RankedPod) -> bool:
        return mine.worst is not None and mine.worst.points is not None and mine.worst.points < self._points

    def _highest_adj(self, mine: RankedPod) -> dict[str, int]:
        """The oom_score_adj of each container with processes that is just low enough.

        `badness` turned round: used pages and adj * (total / 1000) have to stay below the points. Kernels
        before 5.9 know nothing below one point.
        """
        node = self._setup.node
        page = node.page_size_bytes
        thousandth = ((node.memory_capacity_bytes or 0) + node.swap_capacity_bytes) // page // 1000
        most = self._points - 1
        if kernel_formula(node.kernel) is not Kernel.SIGNED and most < 1:
            most = _OUT_OF_REACH
        found = {}
        for one in mine.alive():
            used = one.usage.kernel_bytes // page if one.usage is not None else 0
            if thousandth:
                found[one.name] = (most - used) // thousandth
            else:
                found[one.name] = BEST_EFFORT_ADJ if used <= most else _OUT_OF_REACH
        return found

    # -- what the kubelet makes of requests -------------------------------------------------------

    def _bytes_for(self, adj: int) -> int:
        """The least request with at most this oom_score_adj: `1000 - 1000 * request / capacity` turned round.

        999 is what any Burstable container has at most.
        """
        return 0 if adj >= BEST_EFFORT_ADJ - 1 else -(-(1000 - adj) * self._capacity // 1000)

    def _pod_level(self, needed: Mapping[str, int]) -> list[_RaisedRequest]:
        """The pod's request, of which every container has an equal part of what none of them claims."""
        containers = [*self._new.containers, *self._new.init_containers]
        share = max(needed[one.name] - self._held(one) for one in containers if one.name in needed)
        to = _whole_units(self._claimed() + len(containers) * max(share, 0))
        return [_RaisedRequest(POD_LEVEL, to)] if to > self._own else []

    def _claimed(self) -> int:
        """What the containers request in all: the pod cannot request less."""
        return aggregate_requests(self._new, self._release).get(MEMORY, ZERO).value()

    def _held(self, container: Container) -> int:
        """What counts as a container's request: a sidecar is spared like the least of the app containers."""
        held = _request(container)
        if not self._is_like_an_app(container):
            return held
        return max(held, min(map(_request, self._new.containers)))

    def _is_like_an_app(self, container: Container) -> bool:
        if not self._release.has(Change.SIDECAR_OOM_SCORE) or not is_sidecar(container, self._release):
            return False
        return any(container.name == init.name for init in self._new.init_containers)

    def _containers(self, needed: Mapping[str, int]) -> list[_RaisedRequest]:
        """Requests of containers, the fewest bytes in all.

        A sidecar comes out as well by its own request as by those of all app containers, so both are tried
        for each.
        """
        sidecars = [one for one in self._new.init_containers if self._is_like_an_app(one)]
        floors = {0, *(needed.get(one.name, 0) for one in sidecars)}
        tried = [self._with_floor(needed, floor) for floor in sorted(floors)]
        held = {one.name: _request(one) for one in (*self._new.containers, *self._new.init_containers)}
        return min(tried, key=lambda raises: sum(one.to - held[one.owner] for one in raises))

    def _with_floor(self, needed: Mapping[str, int], floor: int) -> list[_RaisedRequest]:
        """The raises where every app container requests at least `floor`."""
        raises: list[_RaisedRequest] = []
        for one in self._new.containers:
            raises += _raised(one, max(needed.get(one.name, 0), floor))
        reached = {one.owner: one.to for one in raises}
        least = min(reached.get(one.name, _request(one)) for one in self._new.containers)
        for one in self._new.init_containers:
            wanted = needed.get(one.name, 0)
            if not (self._is_like_an_app(one) and least >= wanted):
                raises += _raised(one, wanted)
        return raises

    def _any(self) -> list[_RaisedRequest]:
        """The least request there is: it makes a BestEffort pod Burstable."""
        if self._is_pod_level:
            least = max(self._own + 1, self._claimed())
            return [_RaisedRequest(POD_LEVEL, _whole_units(least))]
        first = self._new.containers[0]
        return [_RaisedRequest(first.name, _whole_units(_request(first) + 1))]

    # -- edits ------------------------------------------------------------------------------------

    def _edits(self, raised: _RaisedRequest) -> Iterable[Edit]:
        """The request, and the limit where it would be below; a limit of 0 is none, and goes."""
        quantity = _quantity(raised.to)
        yield Edit(raised.owner, Side.REQUESTS, MEMORY, quantity)
        limit = self._limit(raised.owner)
        if limit is not None and limit < quantity:
            yield Edit(raised.owner, Side.LIMITS, MEMORY, None if limit.is_zero else quantity)

    def _limit(self, owner: str) -> Quantity | None:
        if owner == POD_LEVEL:
            return _memory(self._new.spec.resources, "limits")
        containers = (*self._new.containers, *self._new.init_containers)
        return next(_memory(one.resources, "limits") for one in containers if one.name == owner)

    def _still_burstable(self, edits: list[Edit]) -> list[Edit]:
        """The edits with one limit above its request, where requests that meet all limits are Guaranteed."""
        changed = default_pod(as_new(apply(self._pod, edits)), self._release)
        if computed_class(changed, self._release) is not QosClass.GUARANTEED:
            return edits
        last = next(edit for edit in reversed(edits) if edit.side is Side.REQUESTS)
        assert last.quantity is not None, "requests are raised, never removed"
        above = Edit(last.owner, Side.LIMITS, MEMORY, _quantity(last.quantity.value() + UNIT_BYTES))
        return [edit for edit in edits if edit.target != above.target] + [above]


_OUT_OF_REACH: Final = -(1 << 62)


def _memory(resources: ResourceRequirements | None, side: str) -> Quantity | None:
    found = (getattr(resources, side) if resources is not None else None) or EMPTY_RESOURCES
    quantity: Quantity | None = found.get(MEMORY)
    return quantity


def _request(container: Container) -> int:
    return container.requests.get(MEMORY, ZERO).value()


def _raised(container: Container, needed: int) -> list[_RaisedRequest]:
    return [_RaisedRequest(container.name, _whole_units(needed))] if needed > _request(container) else []


def _whole_units(needed: int) -> int:
    return -(-needed // UNIT_BYTES) * UNIT_BYTES


def _quantity(amount: int) -> Quantity:
    return Quantity(amount, 0, Format.BINARY_SI)
