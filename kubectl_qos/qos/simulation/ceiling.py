"""Memory over time, and the ceilings where killers act.

All growth is linear and reaches its target at the same moment: usage is `used + rate × time`, with time from
0 to 1, or unbounded. Bytes throughout. qos/killers/ has the killers and their victims.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from math import inf
from typing import Final, Literal, NamedTuple

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import ALLOCATABLE_MEMORY_AVAILABLE, MEMORY_AVAILABLE
from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.simulation.node_state import NodeProcess, NodeState

GROWN_PROCESS: Final = "a process that has grown"
"""Name of the process that holds the node's own growth."""


class CeilingScope(Enum):
    """Whose memory is bounded."""

    CONTAINER = "a container"
    POD = "a pod"
    PODS = "all pods of a node"
    NODE = "the whole node"

    def __init__(self, owner: str) -> None:
        self.is_wide = owner in {"all pods of a node", "the whole node"}
        """Whether all pods of a node are bounded."""


class ContainerGrowth(NamedTuple):
    """Growth of a container, by its index in `NodeState.containers`.

    None is the node itself: an additional process with oom_score_adj 0 holds its growth. `is_more`: an amount
    was asked for, not a size; unknown usage counts as 0.
    """

    container: int | None
    to_bytes: int
    is_more: bool = False


class Scenario(NamedTuple):
    """What to simulate: at most one of the first four. Without them, only evictions that are due happen.

    With `eviction`, the kubelet evicts before the kernel kills. With `restarts`, a restarted container uses
    its memory again at once, so its death frees nothing.
    """

    free_bytes: int | None = None
    growth: tuple[ContainerGrowth, ...] = ()
    until_oom: bool = False
    all_at_limit: bool = False
    eviction: bool = False
    restarts: bool = False


class Ceiling(NamedTuple):
    """Bytes in use at which a killer acts.

    `owner` is the index of a container or pod, -1 for all pods and for the node. `at_bytes` is None if
    unknown: the killer then acts at `bound_bytes` at the latest. `by_working_set`: the kubelet's count
    decides, not the kernel's. A soft ceiling must be exceeded for `grace_seconds`; a simulation has no clock,
    so there that time always passes.

    `is_polled`: the killer checks periodically, so it also acts without growth, and kills until
    `reclaim_bytes` more are free. `due`: the node reports that the ceiling is reached.
    """

    killer: str
    scope: CeilingScope
    owner: int
    used_bytes: int
    at_bytes: int | None
    bound_bytes: int = 0
    by_working_set: bool = False
    is_soft: bool = False
    grace_seconds: int | None = None
    is_polled: bool = False
    reclaim_bytes: int = 0
    due: Due = Due.NO

    @property
    def latest_bytes(self) -> int:
        """Bytes in use at which the killer acts at the latest."""
        return self.bound_bytes if self.at_bytes is None else self.at_bytes

    @property
    def distance_bytes(self) -> int:
        """Bytes of growth until the killer acts at the latest; negative if due."""
        distance = (self.bound_bytes if self.at_bytes is None else self.at_bytes) - self.used_bytes
        return min(distance, 0) if self.due is Due.NOW else distance


class MemoryLevel(msgspec.Struct, frozen=True, rename="camel"):
    """Memory that is free for the kernel, and that is left by the kubelet's signal nearest its threshold."""

    free_bytes: int
    available_bytes: int
    signal: Literal["memory.available", "allocatableMemory.available"] = MEMORY_AVAILABLE


class LimitHit(NamedTuple):
    """When a limit is hit, and its owner: the index of a container or pod, -1 for limits of the node."""

    time: float
    mechanism: str
    owner: int = -1

    @property
    def is_wide(self) -> bool:
        """Whether the limit is one of all pods, or of the node."""
        return self.owner < 0


class MemoryTimeline:
    """Usage over time, and when it reaches the ceilings; containers and pods by their index in `state`."""

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        use = node_state.use
        self.state = node_state
        self._evictable = node_state.capacity_bytes - node_state.thresholds.hugepages_bytes
        self._end = inf if scenario.until_oom else 1.0
        self._used, self._working_sets, self.pod_containers = use.containers, use.working_sets, use.members
        self._rate = _rates(node_state, scenario)
        own = [growth.to_bytes for growth in scenario.growth if growth.container is None]
        own_bytes = node_state.own_bytes or 0
        self._own_rate = _difference(own_bytes, own[-1], "the node itself") if own else 0
        self._own_used = use.own
        self._total_used, self._total_rate = use.total, sum(self._rate)
        self._total_working_set = use.working_set
        self._pod_used, self._pod_working_set = list(use.pods), list(use.pod_working_sets)
        self._pod_rate = [0] * len(use.members)
        for index, rate in enumerate(self._rate):
            if rate:
                self._pod_rate[node_state.containers[index].pod_index] += rate
        self.now = 0.0
        self.living = dict.fromkeys(range(len(use.containers)))
        """Containers that may be killed."""
        self.present = set(self.living)
        """Containers that hold memory, also after a kill and a restart."""
        self.immune = use.immune
        self.own_processes = list(node_state.own_processes)
        self.reclaiming: set[str] = set()
        """Killers that have acted, and go on until `reclaim_bytes` more are free."""
        self._most = use.most_bytes
        self.kills = 0
        self._container_hits: list[LimitHit] = []
        self._pod_ceilings: list[Ceiling] = []
        self._wide_ceilings: list[Ceiling] = []
        self._polled: dict[str, list[Ceiling]] = {}

    def watch(self, ceilings: Iterable[Ceiling]) -> None:
        """Set the ceilings for `next_hits`, without limits that are never hit: growth only gets slower."""
        for ceiling in ceilings:
            if ceiling.scope is CeilingScope.CONTAINER:
                rate = self._rate[ceiling.owner]
                time = (ceiling.latest_bytes - ceiling.used_bytes) / rate if rate else inf
                if time < self._end:
                    self._container_hits.append(LimitHit(time, ceiling.killer, ceiling.owner))
            elif ceiling.scope is CeilingScope.POD:
                rate = self._pod_rate[ceiling.owner]
                if rate and (ceiling.latest_bytes - ceiling.used_bytes) / rate < self._end:
                    self._pod_ceilings.append(ceiling)
            elif ceiling.is_polled:
                self._polled.setdefault(ceiling.killer, []).append(ceiling)
            else:
                self._wide_ceilings.append(ceiling)
        self._container_hits.sort(key=lambda hit: (hit.time, hit.owner))

    @property
    def grows(self) -> bool:
        """Whether any container still grows."""
        return self._total_rate > 0

    @property
    def growing(self) -> list[int]:
        """Living containers that still grow."""
        return [index for index in self.living if self._rate[index]]

    def node_processes(self) -> list[NodeProcess]:
        """Return the processes of the node, with the one that holds the node's growth."""
        grown = int(self._own_rate * self.now)
        return [*self.own_processes, *([NodeProcess(GROWN_PROCESS, 0, grown)] if grown else [])]

    def end_process(self, process: NodeProcess) -> None:
        """End a process of the node."""
        if process in self.own_processes:
            self.own_processes.remove(process)
            self._own_used -= process.used_bytes
        else:
            self._own_rate = 0

    def level(self) -> MemoryLevel:
        """Return the node's free memory now."""
        grown = self._own_used + int((self._total_rate + self._own_rate) * self.now)
        free, thresholds = self._most - self._total_used - grown, self.state.thresholds
        available = self._evictable - self._total_working_set - grown
        if thresholds.kubepods_bytes is not None and self.state.kubepods_bytes is not None:
            pods = self.state.kubepods_bytes - self._total_working_set - int(self._total_rate * self.now)
            most = max(thresholds.node_bytes or 0, thresholds.soft_bytes or 0)
            if pods - thresholds.kubepods_bytes < available - most:
                return MemoryLevel(free, pods, ALLOCATABLE_MEMORY_AVAILABLE)
        return MemoryLevel(free, available)

    def usages(self, containers: Iterable[int]) -> list[int]:
        """Return the bytes in use by each of these containers, by the kernel's count."""
        used, rate, now = self._used, self._rate, self.now
        return [used[index] + int(rate[index] * now) for index in containers]

    def usage_of(self, containers: Iterable[int]) -> MemoryLevel:
        """Return the usage of these containers, by the kernel's and by the kubelet's count."""
        grown = [(index, int(self._rate[index] * self.now)) for index in containers]
        used = sum([self._used[index] + more for index, more in grown])
        return MemoryLevel(used, sum([self._working_sets[index] + more for index, more in grown]))

    def pod_working_set(self, pod: int) -> int:
        """Return the bytes in use by a pod, by the kubelet's count."""
        return self._pod_working_set[pod] + int(self._pod_rate[pod] * self.now)

    def is_present(self, pod: int) -> bool:
        """Return whether a pod still holds memory."""
        return not self.present.isdisjoint(self.pod_containers[pod])

    def grown_bytes(self, time: float) -> int:
        """Return the bytes by which containers have grown at that time."""
        return int(self._total_rate * time)

    def finish(self) -> None:
        """Advance to the end, if there is one."""
        if self._end < inf:
            self.now = self._end

    def kill(self, container: int, *, restarts: bool) -> None:
        """End a container; after a restart it has its initial memory, and does not grow."""
        self.kills += 1
        self._end_container(container)
        if not restarts:
            self._free(container)

    def _end_container(self, container: int) -> None:
        rate = self._rate[container]
        del self.living[container]
        self._rate[container] = 0
        self._total_rate -= rate
        self._pod_rate[self.state.containers[container].pod_index] -= rate

    def evict(self, pod: int) -> None:
        """End a pod with all its containers and its volumes in memory."""
        self._total_used -= self.state.pods[pod].left_bytes
        self._total_working_set -= self.state.pods[pod].left_bytes
        for container in self.pod_containers[pod]:
            if container in self.living:
                self._end_container(container)
            if container in self.present:
                self._free(container)

    def _free(self, container: int) -> None:
        pod, working_set = self.state.containers[container].pod_index, self._working_sets[container]
        self.present.discard(container)
        self._total_used -= self._used[container]
        self._total_working_set -= working_set
        self._pod_used[pod] -= self._used[container]
        self._pod_working_set[pod] -= working_set

    def next_hits(self, exhausted: set[tuple[str, int]]) -> Iterator[LimitHit]:
        """Yield the next hit of each killer, except at limits where no victim is left.

        A limit that is reached exactly at the end is not exceeded, so not hit.
        """
        for hit in self._all_hits(exhausted):
            if hit.time < self._end and hit[1:] not in exhausted:
                yield hit

    def _all_hits(self, exhausted: set[tuple[str, int]]) -> Iterator[LimitHit]:
        hits = self._container_hits
        while hits and not self._rate[hits[0].owner]:
            hits.pop(0)
        for hit in hits:
            if self._rate[hit.owner] and hit[1:] not in exhausted:
                yield hit
                break
        for ceiling in self._pod_ceilings:
            rate = self._pod_rate[ceiling.owner]
            if rate:
                time = (ceiling.latest_bytes - self._pod_used[ceiling.owner]) / rate
                yield LimitHit(time, ceiling.killer, ceiling.owner)
        for ceiling in self._wide_ceilings:
            used, rate = self._use_and_rate(ceiling)
            if rate:
                yield LimitHit((ceiling.latest_bytes - used) / rate, ceiling.killer)
        for killer, ceilings in self._polled.items():
            next_time = self._next_poll(killer, ceilings)
            if next_time is not None:
                yield LimitHit(next_time, killer)

    def _next_poll(self, killer: str, ceilings: Sequence[Ceiling]) -> float | None:
        """Return when a polling killer next finds too little free memory, None for never.

        After an eviction it also reclaims the minimum reclaim (eviction_manager.go, thresholdsMet).
        """
        times = []
        for ceiling in ceilings:
            used, rate = self._use_and_rate(ceiling)
            reclaim = ceiling.reclaim_bytes if killer in self.reclaiming else 0
            if ceiling.latest_bytes - used - int(rate * self.now) < reclaim:
                return self.now
            if rate:
                times.append((ceiling.latest_bytes - used) / rate)
        self.reclaiming.discard(killer)
        return min(times, default=None)

    def _use_and_rate(self, ceiling: Ceiling) -> tuple[int, int]:
        """Return the usage of all pods or the node at the start, and its growth rate."""
        used = self._total_working_set if ceiling.by_working_set else self._total_used
        if ceiling.scope is CeilingScope.PODS:
            return used, self._total_rate
        return self._own_used + used, self._total_rate + self._own_rate


def _rates(node_state: NodeState, scenario: Scenario) -> list[int]:
    """Return the growth of each container. Raises InputError for growth to less than is used."""
    containers = node_state.containers
    if scenario.until_oom:
        return [container.used_bytes for container in containers]
    if scenario.all_at_limit:
        return _rates_to_limits(node_state)
    rates = [0] * len(containers)
    for index, to_bytes, _ in scenario.growth:
        if index is not None:
            container = containers[index]
            rates[index] = _difference(container.used_bytes, to_bytes, f"container {container.name}")
    return rates


def _rates_to_limits(node_state: NodeState) -> list[int]:
    """Return each container's growth to its limit; without one, its share of what the pod's limit leaves."""
    containers = node_state.containers
    rates = [max(container.limit_bytes - container.used_bytes, 0) for container in containers]
    for pod, used, members in zip(node_state.pods, node_state.use.pods, node_state.use.members, strict=True):
        unlimited = [index for index in members if not containers[index].limit_bytes]
        left = pod.limit_bytes - used - sum(rates[index] for index in members)
        for index in unlimited if left > 0 else ():
            rates[index] = left // len(unlimited)
    return rates


def _difference(used: int, to_bytes: int, what: str) -> int:
    if to_bytes < used:
        raise InputError(
            f"{what} already uses {used >> 20}Mi, more than the requested size",
            hint="give a larger size, or how much more: +512Mi",
        )
    return to_bytes - used
