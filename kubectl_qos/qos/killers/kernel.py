"""The kernel's OOM killer, at memory limits and on a full node: it kills whoever has the most badness.

Sources: Linux mm/memcontrol.c (mem_cgroup_out_of_memory), mm/oom_kill.c (out_of_memory, select_bad_process,
constrained_alloc).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.killers.killer import NOBODY, Choice, Contender, Killer, Order
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, badness
from kubectl_qos.qos.simulation.ceiling import Ceiling, CeilingScope, MemoryTimeline
from kubectl_qos.qos.simulation.node_state import NodeState


class BadnessOrder(Order):
    """The order of badness below a limit.

    `scale_bytes` returns the RAM and swap that scale oom_score_adj there, by owner index.
    """

    def __init__(
        self, memory: MemoryTimeline, scope: CeilingScope, scale_bytes: Callable[[NodeState, int], int]
    ) -> None:
        self._memory, self._state, self._scope = memory, memory.state, scope
        self._scale_bytes = scale_bytes
        self._page = memory.state.setup.node.page_size_bytes
        self._kernel = memory.state.kernel
        self._is_still = not memory.grows
        self._orders: dict[int, Sequence[tuple[int, int]]] = {}

    def first(self, owner: int) -> Choice:
        """Return the kernel's victim, or NOBODY if every process is immune."""
        candidates = self._in_order(owner)
        of_node = self._memory.node_processes() if self._scope is CeilingScope.NODE else []
        processes = [process for process in of_node if process.adj != OOM_SCORE_ADJ_MIN]
        sizes = [(process.adj, process.used_bytes // self._page) for process in processes]
        own = self._points(sizes, owner) if sizes else []
        if not candidates and not own:
            return NOBODY
        most = max([*own, *(points for points, _ in candidates[:1])])
        fewer = (place for place, (points, _) in enumerate(candidates) if points < most)
        tied = next(fewer, len(candidates)) + own.count(most) - 1
        if candidates and candidates[0][0] == most:
            return Choice(candidates[0][1], most, tied, rival=self._rival(candidates))
        return Choice(processes[own.index(most)], most, tied)

    def _rival(self, candidates: Sequence[tuple[int, int]]) -> Contender | None:
        """Return the second container, if it may beat each single process of the victim."""
        (most, victim), *others = candidates[:2]
        container = self._state.containers[victim]
        if container.processes == 1 or not others:
            return None
        [(points, other)] = others
        if not self._state.containers[other].has_usage:
            return None
        (used,) = self._memory.usages([victim])
        size = used - (most - points) * self._page
        return self._contender(other, size) if size > container.least_bytes(used) else None

    def growing(self, owner: int, room_bytes: int, ended: Collection[int]) -> tuple[Contender, ...]:
        """Return containers that would have as many points as the victim by growing alone."""
        choice, page = self.first(owner), self._page
        if choice.points is None:
            return ()
        needs = [((choice.points - points + 1) * page, index) for points, index in self._in_order(owner)]
        near = [(more, index) for more, index in needs if more <= room_bytes and index not in ended]
        others = [(more, index) for more, index in sorted(near) if index != choice.victim]
        used = self._memory.usages(index for _, index in others)
        return tuple(
            self._contender(index, size + more) for (more, index), size in zip(others, used, strict=True)
        )

    def _contender(self, index: int, size_bytes: int) -> Contender:
        container = self._state.containers[index]
        pod, (used,) = self._state.pod_for(container), self._memory.usages([index])
        return Contender(*pod.key, container.name, pod.qos, used, size_bytes)

    def _points(self, sizes: Iterable[tuple[int, int]], owner: int) -> list[int]:
        """Return the badness of each oom_score_adj and size in pages."""
        total, kernel = max(self._scale_bytes(self._state, owner) // self._page, 1), self._kernel
        return [badness(pages, adj, total, kernel) for adj, pages in sizes]

    def _in_order(self, owner: int) -> Sequence[tuple[int, int]]:
        """Return points and index of each container that may die there: most points first, then by index.

        If nothing grows, points are computed only once.
        """
        memory, order = self._memory, self._orders.get(owner)
        if order is not None and self._is_still:
            order = [candidate for candidate in order if candidate[1] in memory.living]
        else:
            within: Iterable[int] = memory.living
            if self._scope is CeilingScope.CONTAINER:
                within = [owner]
            elif self._scope is CeilingScope.POD:
                within = [index for index in memory.pod_containers[owner] if index in memory.living]
            indices = [index for index in within if index not in memory.immune]
            every, page, usages = self._state.containers, self._page, self._memory.usages(indices)
            pairs = [(every[index], used) for index, used in zip(indices, usages, strict=True)]
            if self._scope.is_wide:
                sizes = [(item.adj, used // page - item.others_bytes // page) for item, used in pairs]
            else:
                sizes = [(item.adj, (used - item.others_bytes) // page) for item, used in pairs]
            points = self._points(sizes, owner)
            order = sorted(zip(points, indices, strict=True), key=itemgetter(0), reverse=True)
        self._orders[owner] = order
        return order


class ContainerLimit(Killer):
    """The kernel at memory.max of a container plus its swap."""

    id = "container limit"
    scope = CeilingScope.CONTAINER
    levels = frozenset({PathLevel.CONTAINER})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the limit of each container that has one."""
        killer, scope = self.id, self.scope
        for index, container in enumerate(state.containers):
            if container.limit_bytes:
                yield Ceiling(killer, scope, index, container.used_bytes, container.most_bytes)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order the container's own processes."""
        return BadnessOrder(memory, self.scope, lambda state, owner: state.containers[owner].most_bytes)


class PodLimit(Killer):
    """The kernel at memory.max of a pod: declared, or the sum of its containers' limits.

    The pod's cgroup contains its pause container too, so its limit is reached before an equal limit of a
    container. A cgroup above containers has no swap limit itself: it may use their swap.
    """

    id = "pod limit"
    scope = CeilingScope.POD
    levels = frozenset({PathLevel.POD})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the limit of each pod that has one."""
        killer, scope, use = self.id, self.scope, state.use
        for index, pod in enumerate(state.pods):
            if pod.limit_bytes:
                yield Ceiling(killer, scope, index, use.pods[index], pod.limit_bytes + use.pod_swap[index])

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order the containers of the pod."""
        return BadnessOrder(
            memory, self.scope, lambda state, owner: state.pods[owner].limit_bytes + state.swap_bytes
        )


class KubepodsLimit(Killer):
    """The kernel at memory.max of kubepods, if the kubelet writes it."""

    id = "kubepods limit"
    scope = CeilingScope.PODS
    levels = frozenset({PathLevel.PODS, PathLevel.QOS_CLASS})
    measures = frozenset({CeilingScope.PODS})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling: the node's allocatable memory plus the containers' swap."""
        if state.kubepods_bytes is not None:
            yield Ceiling(self.id, self.scope, -1, state.use.total, state.kubepods_bytes + state.use.may_swap)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all containers of the node's pods."""
        return BadnessOrder(
            memory, self.scope, lambda state, _: (state.kubepods_bytes or 0) + state.swap_bytes
        )


class FullNode(Killer):
    """The kernel when neither RAM nor swap is free."""

    id = "node"
    scope = CeilingScope.NODE
    levels = frozenset({PathLevel.ABOVE})
    measures = frozenset({CeilingScope.NODE})
    has_ranks = True

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling: RAM plus usable swap."""
        yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, state.use.most_bytes)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all containers and the known processes of the node."""
        return BadnessOrder(memory, self.scope, lambda state, _: state.total_bytes)


CONTAINER_LIMIT: Final = ContainerLimit()
POD_LIMIT: Final = PodLimit()
KUBEPODS_LIMIT: Final = KubepodsLimit()
FULL_NODE: Final = FullNode()
