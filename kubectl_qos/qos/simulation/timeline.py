"""The memory of a node as it fills: what is used when, and which limit is met first.

Everything that grows does so at once and steadily, and reaches its target at the same moment: usage is
`used + rate × time`, time runs from 0 to its end. Bytes throughout.

Not here: who dies of a limit (simulation.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.qos.simulation.node_state import NodeState
from kubectl_qos.qos.simulation.scenario import Mechanism, MemoryLevel, Scenario


class LimitHit(NamedTuple):
    """When a limit is met, and whose it is: the place of a member or tenant, -1 for those of the node."""

    when: float
    mechanism: Mechanism
    place: int = -1


class MemoryTimeline:
    """Usage over time. Members are those of the situation, by their places.

    `living` may be killed; `present` hold memory, which those that came back after a kill do too.
    """

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        members = node_state.members
        self._at = node_state
        self._used = [one.used_bytes for one in members]
        self._rate = _rates(node_state, scenario)
        self._end = inf if scenario.until_oom else 1.0
        self._own_rate = _own_rate(node_state, scenario)
        self._own_base = node_state.own_bytes
        self._base, self._rate_of_all = sum(self._used), sum(self._rate)
        self._working_base = sum(one.working_set_bytes for one in members)
        self._pod_base = [0] * len(node_state.tenants)
        self._pod_working_base = [0] * len(node_state.tenants)
        self._pod_rate = [0] * len(node_state.tenants)
        self.of_pod: list[list[int]] = [[] for _ in node_state.tenants]
        for index, one in enumerate(members):
            self._pod_base[one.tenant] += self._used[index]
            self._pod_working_base[one.tenant] += one.working_set_bytes
            self._pod_rate[one.tenant] += self._rate[index]
            self.of_pod[one.tenant].append(index)
        self.now = 0.0
        self.living = list(range(len(members)))
        self.present = set(self.living)
        self.reclaiming = False
        self._evicts = scenario.eviction
        # A cgroup above containers has no limit of swap itself: what it holds is what they may swap.
        self._pod_most = [
            tenant.limit_bytes + node_state.may_swap(members[one] for one in self.of_pod[place])
            for place, tenant in enumerate(node_state.tenants)
        ]
        swap = node_state.may_swap(members)
        kubepods = node_state.kubepods_bytes
        self._kubepods_most = kubepods + swap if kubepods is not None else None
        self._most = node_state.capacity_bytes + min(swap + node_state.own_bytes, node_state.swap_bytes)
        # What is not met at this pace is not met at a slower one either, and nothing gets faster.
        self._bounded = sorted(
            (when, index)
            for index, one in enumerate(members)
            if one.most_bytes and self._rate[index]
            for when in [(one.most_bytes - self._used[index]) / self._rate[index]]
            if when < self._end
        )
        self._bounded_pods = [
            index
            for index, one in enumerate(node_state.tenants)
            if one.limit_bytes and self._pod_rate[index]
            if (self._pod_most[index] - self._pod_base[index]) / self._pod_rate[index] < self._end
        ]

    @property
    def grows(self) -> bool:
        """Whether any container still does."""
        return self._rate_of_all > 0

    @property
    def growing(self) -> list[int]:
        """The members that still do."""
        return [index for index in self.living if self._rate[index]]

    def level(self) -> MemoryLevel:
        """How full the node is."""
        grown = self._own_base + int((self._rate_of_all + self._own_rate) * self.now)
        return MemoryLevel(
            self._most - self._base - grown, self._at.capacity_bytes - self._working_base - grown
        )

    def used(self, member: int) -> int:
        """What a container uses now by the kernel's count, in bytes."""
        return self._used[member] + int(self._rate[member] * self.now)

    def usages(self, members: Iterable[int]) -> list[int]:
        """The same of several."""
        used, rate, now = self._used, self._rate, self.now
        return [used[one] + int(rate[one] * now) for one in members]

    def working_set(self, member: int) -> int:
        """What it uses now by the kubelet's, in bytes."""
        return self._at.members[member].working_set_bytes + int(self._rate[member] * self.now)

    def pod_working_set(self, tenant: int) -> int:
        """What a pod uses now by the kubelet's count, in bytes."""
        return self._pod_working_base[tenant] + int(self._pod_rate[tenant] * self.now)

    def is_present(self, tenant: int) -> bool:
        """Whether a pod holds memory still."""
        return not self.present.isdisjoint(self.of_pod[tenant])

    def grown_bytes(self, when: float) -> int:
        """By how much containers have grown then."""
        return int(self._rate_of_all * when)

    def finish(self) -> None:
        """Go to the end, if there is one."""
        if self._end < inf:
            self.now = self._end

    def kill(self, member: int, *, comes_back: bool) -> None:
        """A container ends. One that comes back has what it had at first, and does not grow again."""
        rate = self._rate[member]
        self.living.remove(member)
        self._rate[member] = 0
        self._rate_of_all -= rate
        self._pod_rate[self._at.members[member].tenant] -= rate
        if not comes_back:
            self._leave(member)

    def evict(self, tenant: int) -> None:
        """A pod ends with all that it has."""
        for member in self.of_pod[tenant]:
            if member in self.living:
                self.kill(member, comes_back=False)
            elif member in self.present:
                self._leave(member)

    def lose_own(self, freed_bytes: int) -> None:
        """A process of the node ends."""
        self._own_base -= freed_bytes

    def _leave(self, member: int) -> None:
        one = self._at.members[member]
        self.present.discard(member)
        self._base -= self._used[member]
        self._working_base -= one.working_set_bytes
        self._pod_base[one.tenant] -= self._used[member]
        self._pod_working_base[one.tenant] -= one.working_set_bytes

    def next_met(self, exhausted: set[tuple[Mechanism, int]]) -> Iterator[LimitHit]:
        """What each mechanism meets next, but for those that can do nothing any more.

        A limit that is only reached at the very end is kept.
        """
        for met in self._all_met(exhausted):
            if met.when < self._end and met[1:] not in exhausted:
                yield met

    def _all_met(self, exhausted: set[tuple[Mechanism, int]]) -> Iterator[LimitHit]:
        bounded = self._bounded
        while bounded and not self._rate[bounded[0][1]]:
            bounded.pop(0)
        for when, member in bounded:
            if self._rate[member] and (Mechanism.CONTAINER, member) not in exhausted:
                yield LimitHit(when, Mechanism.CONTAINER, member)
                break
        for pod in self._bounded_pods:
            rate = self._pod_rate[pod]
            if rate:
                yield LimitHit((self._pod_most[pod] - self._pod_base[pod]) / rate, Mechanism.POD, pod)
        kubepods = self._kubepods_most
        if kubepods is not None and self._rate_of_all:
            yield LimitHit((kubepods - self._base) / self._rate_of_all, Mechanism.KUBEPODS)
        rate = self._rate_of_all + self._own_rate
        if rate:
            yield LimitHit((self._most - self._own_base - self._base) / rate, Mechanism.NODE)
        if self._evicts:
            too_little = self._eviction()
            if too_little is not None:
                yield LimitHit(too_little, Mechanism.EVICTION)

    def _eviction(self) -> float | None:
        """When the kubelet next finds too little available, None if it never will.

        Once it has, it wants the minimum reclaim on top (eviction_manager.go, thresholdsMet).
        """
        found = []
        for capacity, kept_free, base, rate in self._signals():
            wanted = kept_free + (self._at.thresholds.reclaim_bytes if self.reclaiming else 0)
            if capacity - base - int(rate * self.now) < wanted:
                return self.now
            if rate:
                found.append((capacity - kept_free - base) / rate)
        self.reclaiming = False
        return min(found, default=None)

    def _signals(self) -> Iterator[tuple[int, int, int, int]]:
        """memory.available and allocatableMemory.available: capacity, threshold, use and its rate."""
        at, thresholds = self._at, self._at.thresholds
        if thresholds.node_bytes is not None:
            base, rate = self._own_base + self._working_base, self._rate_of_all + self._own_rate
            yield at.capacity_bytes, thresholds.node_bytes, base, rate
        if thresholds.kubepods_bytes is not None and at.kubepods_bytes is not None:
            yield at.kubepods_bytes, thresholds.kubepods_bytes, self._working_base, self._rate_of_all


def _rates(node_state: NodeState, scenario: Scenario) -> list[int]:
    """By how much each container grows. Raises InputError for growth to less than is used."""
    members = node_state.members
    if scenario.until_oom:
        return [one.used_bytes for one in members]
    if scenario.all_at_limit:
        return [max(one.limit_bytes - one.used_bytes, 0) for one in members]
    rates = [0] * len(members)
    for member, to_bytes in scenario.growth:
        if member is not None:
            one = members[member]
            rates[member] = _difference(one.used_bytes, to_bytes, f"container {one.container}")
    return rates


def _own_rate(node_state: NodeState, scenario: Scenario) -> int:
    targets = [one.to_bytes for one in scenario.growth if one.member is None]
    return _difference(node_state.own_bytes, targets[-1], "the node itself") if targets else 0


def _difference(used: int, to_bytes: int, what: str) -> int:
    if to_bytes < used:
        raise InputError(
            f"{what} uses {used >> 20}Mi already, more than what it is to grow to",
            hint="give a larger size, or how much more: +512Mi",
        )
    return to_bytes - used
