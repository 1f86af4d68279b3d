"""The memory of a node over the time of a simulation: what is used when, and which limit is hit next.

All growth is steady and reaches its target at the same moment: usage is `used + rate × time`, where time runs
from 0 to 1, or without end. Bytes throughout. Not here: which process dies at a limit (engine.py).
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.node_state import NodeState, Scenario


class MemoryLevel(NamedTuple):
    """How much is free on the node, below zero where more is used than there is.

    `free_bytes` of RAM and swap by the kernel's count, `available_bytes` of RAM by the kubelet's.
    """

    free_bytes: int
    available_bytes: int


class LimitHit(NamedTuple):
    """When a limit is hit, and its owner: the index of a container or pod, -1 for limits of the node."""

    time: float
    mechanism: Mechanism
    owner: int = -1


class Distance(NamedTuple):
    """How many bytes until a limit is hit, below zero where it is; `is_soft` is of a soft threshold."""

    mechanism: Mechanism
    owner: int
    more_bytes: int
    is_soft: bool = False


class MemoryTimeline:
    """Usage over time; containers and pods by their index in the node state.

    `living` may be killed; `present` hold memory, as containers that were killed and restarted do too.
    """

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        pods, containers = node_state.pods, node_state.containers
        self._state = node_state
        self._evicts = scenario.eviction
        self._evictable = node_state.capacity_bytes - node_state.thresholds.hugepages_bytes
        self._end = inf if scenario.until_oom else 1.0
        self._used = [container.used_bytes for container in containers]
        self._rate = _rates(node_state, scenario)
        self._own_rate = _own_rate(node_state, scenario)
        self._own_used = node_state.own_bytes or 0
        self._total_used, self._total_rate = sum(self._used), sum(self._rate)
        self._working_sets = [container.working_set_bytes for container in containers]
        self._total_working_set = sum(self._working_sets)
        self._pod_used = [0] * len(pods)
        self._pod_working_set = [0] * len(pods)
        self._pod_rate = [0] * len(pods)
        self.pod_containers: list[list[int]] = [[] for _ in pods]
        for index, container in enumerate(containers):
            self._pod_used[container.pod_index] += self._used[index]
            self._pod_working_set[container.pod_index] += container.working_set_bytes
            self._pod_rate[container.pod_index] += self._rate[index]
            self.pod_containers[container.pod_index].append(index)
        self.now = 0.0
        self.living = dict.fromkeys(range(len(containers)))
        self.present = set(self.living)
        self.reclaiming = False
        # A cgroup above containers has no swap limit of its own: it holds what they may swap.
        self._pod_most = [pod.limit_bytes for pod in pods]
        if node_state.swap_bytes:
            for index, held in enumerate(self.pod_containers):
                self._pod_most[index] += node_state.may_swap([containers[place] for place in held])
        swap = node_state.may_swap(containers)
        kubepods = node_state.kubepods_bytes
        self._kubepods_most = kubepods + swap if kubepods is not None else None
        self._most = node_state.capacity_bytes + min(swap + self._own_used, node_state.swap_bytes)
        # A limit that is not hit at this pace is not hit at a slower one either, and nothing gets faster.
        self._container_hits = sorted(
            (time, index)
            for index, container in enumerate(containers)
            if self._rate[index] and container.most_bytes
            for time in [(container.most_bytes - self._used[index]) / self._rate[index]]
            if time < self._end
        )
        self._limited_pods = [
            index
            for index, pod in enumerate(pods)
            if self._pod_rate[index] and pod.limit_bytes
            if (self._pod_most[index] - self._pod_used[index]) / self._pod_rate[index] < self._end
        ]

    @property
    def grows(self) -> bool:
        """Whether any container still grows."""
        return self._total_rate > 0

    @property
    def growing(self) -> list[int]:
        """The living containers that still grow."""
        return [index for index in self.living if self._rate[index]]

    def own_grown_bytes(self) -> int:
        """By how much the node itself has grown."""
        return int(self._own_rate * self.now)

    def end_own_growth(self) -> None:
        """The process that holds what the node itself has grown by ends."""
        self._own_rate = 0

    def level(self) -> MemoryLevel:
        """How full the node is now."""
        grown = self._own_used + int((self._total_rate + self._own_rate) * self.now)
        return MemoryLevel(
            self._most - self._total_used - grown, self._evictable - self._total_working_set - grown
        )

    def usages(self, containers: Iterable[int]) -> list[int]:
        """The bytes that each of these containers uses now by the kernel's count."""
        used, rate, now = self._used, self._rate, self.now
        return [used[index] + int(rate[index] * now) for index in containers]

    def working_set(self, container: int) -> int:
        """The bytes that a container uses now by the kubelet's count."""
        return self._working_sets[container] + int(self._rate[container] * self.now)

    def pod_working_set(self, pod: int) -> int:
        """The bytes that a pod uses now by the kubelet's count."""
        return self._pod_working_set[pod] + int(self._pod_rate[pod] * self.now)

    def is_present(self, pod: int) -> bool:
        """Whether a pod still holds memory."""
        return not self.present.isdisjoint(self.pod_containers[pod])

    def grown_bytes(self, time: float) -> int:
        """By how much containers have grown at that time."""
        return int(self._total_rate * time)

    def finish(self) -> None:
        """Advance to the end, if there is one."""
        if self._end < inf:
            self.now = self._end

    def kill(self, container: int, *, restarts: bool) -> None:
        """A container ends. One that restarts has its memory of the start, and does not grow again."""
        rate = self._rate[container]
        del self.living[container]
        self._rate[container] = 0
        self._total_rate -= rate
        self._pod_rate[self._state.containers[container].pod_index] -= rate
        if not restarts:
            self._free(container)

    def evict(self, pod: int) -> None:
        """A pod ends with all its containers."""
        for container in self.pod_containers[pod]:
            if container in self.living:
                self.kill(container, restarts=False)
            elif container in self.present:
                self._free(container)

    def end_process(self, freed_bytes: int) -> None:
        """A process of the node ends."""
        self._own_used -= freed_bytes

    def _free(self, container: int) -> None:
        pod, working_set = self._state.containers[container].pod_index, self._working_sets[container]
        self.present.discard(container)
        self._total_used -= self._used[container]
        self._total_working_set -= working_set
        self._pod_used[pod] -= self._used[container]
        self._pod_working_set[pod] -= working_set

    def next_hits(self, exhausted: set[tuple[Mechanism, int]]) -> Iterator[LimitHit]:
        """The next hit of each mechanism, except of limits at which nothing is left to kill or evict.

        A limit that is reached at the very end is not exceeded, so it is no hit.
        """
        for hit in self._all_hits(exhausted):
            if hit.time < self._end and hit[1:] not in exhausted:
                yield hit

    def _all_hits(self, exhausted: set[tuple[Mechanism, int]]) -> Iterator[LimitHit]:
        hits = self._container_hits
        while hits and not self._rate[hits[0][1]]:
            hits.pop(0)
        for time, container in hits:
            if self._rate[container] and (Mechanism.CONTAINER_LIMIT, container) not in exhausted:
                yield LimitHit(time, Mechanism.CONTAINER_LIMIT, container)
                break
        for pod in self._limited_pods:
            rate = self._pod_rate[pod]
            if rate:
                time = (self._pod_most[pod] - self._pod_used[pod]) / rate
                yield LimitHit(time, Mechanism.POD_LIMIT, pod)
        if self._kubepods_most is not None and self._total_rate:
            time = (self._kubepods_most - self._total_used) / self._total_rate
            yield LimitHit(time, Mechanism.KUBEPODS_LIMIT)
        rate = self._total_rate + self._own_rate
        if rate:
            time = (self._most - self._own_used - self._total_used) / rate
            yield LimitHit(time, Mechanism.NODE)
        eviction = self._next_eviction() if self._evicts else None
        if eviction is not None:
            yield LimitHit(eviction, Mechanism.EVICTION)

    def distances(self) -> Iterator[Distance]:
        """How far away each limit is now, by the growth of its owner alone; of equal ones the first acts."""
        left = [capacity - threshold - used for capacity, threshold, used, _ in self._signals()]
        if left:
            yield Distance(Mechanism.EVICTION, -1, min(left))
        soft = self._state.thresholds.soft_bytes
        if soft is not None:
            used = self._own_used + self._total_working_set
            yield Distance(Mechanism.EVICTION, -1, self._evictable - soft - used, is_soft=True)
        for index, pod in enumerate(self._state.pods):
            if pod.limit_bytes:
                yield Distance(Mechanism.POD_LIMIT, index, self._pod_most[index] - self._pod_used[index])
        own = Mechanism.CONTAINER_LIMIT
        for index, (container, used) in enumerate(zip(self._state.containers, self._used, strict=True)):
            if container.limit_bytes:
                yield Distance(own, index, container.limit_bytes + container.swap_bytes - used)
        if self._kubepods_most is not None:
            yield Distance(Mechanism.KUBEPODS_LIMIT, -1, self._kubepods_most - self._total_used)
        yield Distance(Mechanism.NODE, -1, self._most - self._own_used - self._total_used)

    def _next_eviction(self) -> float | None:
        """When the kubelet next finds too little available, None if it never will.

        From then on it also reclaims the minimum reclaim (eviction_manager.go, thresholdsMet).
        """
        times = []
        for capacity, threshold, used, rate in self._signals():
            needed = threshold + (self._state.thresholds.reclaim_bytes if self.reclaiming else 0)
            if capacity - used - int(rate * self.now) < needed:
                return self.now
            if rate:
                times.append((capacity - threshold - used) / rate)
        self.reclaiming = False
        return min(times, default=None)

    def _signals(self) -> Iterator[tuple[int, int, int, int]]:
        """memory.available and allocatableMemory.available: capacity, threshold, use and its rate."""
        state, thresholds = self._state, self._state.thresholds
        if thresholds.node_bytes is not None:
            used, rate = self._own_used + self._total_working_set, self._total_rate + self._own_rate
            yield self._evictable, thresholds.node_bytes, used, rate
        if thresholds.kubepods_bytes is not None and state.kubepods_bytes is not None:
            yield state.kubepods_bytes, thresholds.kubepods_bytes, self._total_working_set, self._total_rate


def _rates(node_state: NodeState, scenario: Scenario) -> list[int]:
    """By how much each container grows. Raises InputError for growth to less than is used."""
    containers = node_state.containers
    if scenario.until_oom:
        return [container.used_bytes for container in containers]
    if scenario.all_at_limit:
        return [max(container.limit_bytes - container.used_bytes, 0) for container in containers]
    rates = [0] * len(containers)
    for index, to_bytes in scenario.growth:
        if index is not None:
            container = containers[index]
            rates[index] = _difference(container.used_bytes, to_bytes, f"container {container.name}")
    return rates


def _own_rate(node_state: NodeState, scenario: Scenario) -> int:
    targets = [growth.to_bytes for growth in scenario.growth if growth.container is None]
    return _difference(node_state.own_bytes or 0, targets[-1], "the node itself") if targets else 0


def _difference(used: int, to_bytes: int, what: str) -> int:
    if to_bytes < used:
        raise InputError(
            f"{what} uses {used >> 20}Mi already, more than what it is to grow to",
            hint="give a larger size, or how much more: +512Mi",
        )
    return to_bytes - used
