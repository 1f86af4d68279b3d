"""The kernel's order: the container or process with the most points of badness dies.

Sources: Linux mm/oom_kill.c (select_bad_process, constrained_alloc) and mm/memcontrol.c.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import neg

from kubectl_qos.qos.killers.killer import NOBODY, Choice, Contender, Order
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, badness
from kubectl_qos.qos.simulation.ceiling import MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState


class BadnessOrder(Order):
    """The order of badness below a limit.

    `scale_bytes` returns the RAM and swap that scale oom_score_adj there, by owner index.
    """

    def __init__(
        self, memory: MemoryTimeline, scope: Scope, scale_bytes: Callable[[NodeState, int], int]
    ) -> None:
        self._memory, self._state, self._scope = memory, memory.state, scope
        self._scale_bytes = scale_bytes
        self._page = memory.state.setup.node.page_size_bytes
        self._kernel = memory.state.kernel
        self._is_still = not memory.grows
        self._points: dict[int, Sequence[int]] = {}
        self._adj_points: dict[int, list[int]] = {}

    def first(self, owner: int) -> Choice:
        """Return the kernel's victim now, nobody if every process is immune."""
        total = max(self._scale_bytes(self._state, owner) // self._page, 1)
        candidates, points = self._scores(owner, total)
        of_node = self._memory.node_processes() if self._scope is Scope.NODE else []
        processes = [process for process in of_node if process.adj != OOM_SCORE_ADJ_MIN]
        sizes = ((process.used_bytes // self._page, process.adj) for process in processes)
        own = [badness(pages, adj, total, self._kernel) for pages, adj in sizes]
        most = max([*points, *own], default=None)
        if most is None:
            return NOBODY
        tied = points.count(most) + own.count(most) - 1
        if most in points:
            victim = candidates[points.index(most)]
            return Choice(victim, most, tied, rival=self._rival(victim, most, candidates, points))
        return Choice(processes[own.index(most)], most, tied)

    def _rival(
        self, victim: int, most: int, candidates: Sequence[int], points: Sequence[int]
    ) -> Contender | None:
        """Return the container with the next most points, if each process of the victim may have fewer."""
        container = self._state.containers[victim]
        if container.processes == 1 or len(candidates) == 1:
            return None
        others = zip(points, map(neg, candidates), strict=True)
        score, index = max(other for other in others if other[1] != -victim)
        if not self._state.containers[-index].has_usage:
            return None
        (used,) = self._memory.usages([victim])
        size = used - (most - score) * self._page
        return self._contender(-index, size) if size > container.least_bytes(used) else None

    def growing(self, owner: int, room_bytes: int, ended: Collection[int]) -> tuple[Contender, ...]:
        """Return containers that would have as many points as the victim by growing alone."""
        choice, page = self.first(owner), self._page
        if choice.points is None:
            return ()
        candidates, points = self._scores(owner, max(self._scale_bytes(self._state, owner) // page, 1))
        near = sorted(
            ((choice.points - score + 1) * page, index)
            for score, index in zip(points, candidates, strict=True)
            if index != choice.victim and index not in ended
        )
        used = dict(zip(candidates, self._memory.usages(candidates), strict=True))
        return tuple(self._contender(index, used[index] + more) for more, index in near if more <= room_bytes)

    def _contender(self, index: int, size_bytes: int) -> Contender:
        container = self._state.containers[index]
        pod, (used,) = self._state.pod_for(container), self._memory.usages([index])
        return Contender(*pod.key, container.name, pod.qos, used, size_bytes)

    def _scores(self, owner: int, total: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the containers that may die there, and their points."""
        memory = self._memory
        if self._scope is Scope.CONTAINER:
            living: Sequence[int] = [owner]
        elif self._scope is Scope.POD:
            living = [index for index in memory.pod_containers[owner] if index in memory.living]
        else:
            living = list(memory.living)
        if memory.immune:
            living = [index for index in living if index not in memory.immune]
        if self._scope.is_wide:
            return living, self._badness(living, total)
        every, page = self._state.containers, self._page
        used = zip(living, memory.usages(living), strict=True)
        beside = ((every[index], (size - every[index].beside_bytes) // page) for index, size in used)
        return living, [badness(pages, item.adj, total, self._kernel) for item, pages in beside]

    def _badness(self, containers: Sequence[int], total: int) -> Sequence[int]:
        """Return the points of each container; constant and shared if nothing grows."""
        if not self._is_still:
            return self._compute_badness(containers, total)
        everyone = range(len(self._state.containers))
        points = self._points.get(total)
        if points is None:
            points = self._points[total] = self._compute_badness(everyone, total)
        return points if len(containers) == len(everyone) else [points[index] for index in containers]

    def _compute_badness(self, containers: Sequence[int], total: int) -> Sequence[int]:
        """Compute points: pages plus the constant points of oom_score_adj."""
        adj_points = self._adj_points.get(total)
        if adj_points is None:
            every = self._state.containers
            by_adj = {adj: badness(0, adj, total) for adj in {container.adj for container in every}}
            adj_points = [by_adj[container.adj] - container.beside_bytes // self._page for container in every]
            self._adj_points[total] = adj_points
        page = self._page
        usages = self._memory.usages(containers)
        points = [used // page + adj_points[index] for used, index in zip(usages, containers, strict=True)]
        return points if self._kernel is Kernel.SIGNED else [max(score, 1) for score in points]
