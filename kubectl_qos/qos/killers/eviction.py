"""The kubelet, which evicts pods under memory pressure.

Source: pkg/kubelet/eviction/eviction_manager.go (synchronize: one pod a round until the threshold and the
minimum reclaim are met; evictPod refuses critical pods). Thresholds and sort keys are in qos/eviction.py.
"""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from kubectl_qos.qos.eviction import Due, EvictionKey, eviction_key
from kubectl_qos.qos.killers.killer import Choice, Contender, Killer, Order
from kubectl_qos.qos.simulation.ceiling import Ceiling, CeilingScope, MemoryTimeline
from kubectl_qos.qos.simulation.node_state import NodeState

_NANO: Final = 10**9


class EvictionOrder(Order):
    """The kubelet's order of pods that hold memory."""

    def __init__(self, memory: MemoryTimeline) -> None:
        self._memory, self._pods = memory, memory.state.pods
        self._priorities = [(pod.pod.spec.priority or 0, pod.request.nano) for pod in self._pods]
        self._order: list[tuple[EvictionKey, bool, int]] = []
        self._kills = -1

    def first(self, owner: int) -> Choice:
        """Return the next pod that it may evict, and the critical pods before it."""
        refused = list[int]()
        for _, is_critical, index in self._in_order():
            if self._memory.is_present(index):
                if not is_critical:
                    return Choice(index, refused=tuple(refused))
                refused.append(index)
        return Choice(None, refused=tuple(refused))

    def growing(self, owner: int, room_bytes: int, ended: Collection[int]) -> tuple[Contender, ...]:
        """Return pods that would exceed their requests by more than the victim, or have a lower priority."""
        memory, victim = self._memory, self.first(owner).victim
        if not isinstance(victim, int):
            return ()
        priority, request = self._priorities[victim]
        excess = memory.pod_working_set(victim) * _NANO - request
        near = []
        for index, (own_priority, own_request) in enumerate(self._priorities):
            if not memory.is_present(index):
                continue
            pod = self._pods[index]
            is_out = pod.critical or all(container in ended for container in memory.pod_containers[index])
            if index == victim or is_out or (excess > 0 and own_priority > priority):
                continue
            used, needed = memory.pod_working_set(index), excess if own_priority == priority else 0
            size = (needed + own_request) // _NANO + 1
            if used < size <= used + room_bytes:
                near.append((size - used, Contender(*pod.key, "", pod.qos, used, size)))
        return tuple(contender for _, contender in sorted(near))

    def _in_order(self) -> list[tuple[EvictionKey, bool, int]]:
        """Return the pods in the kubelet's order; constant between kills if nothing grows."""
        memory = self._memory
        if self._kills != memory.kills or memory.grows:
            self._kills = memory.kills
            self._order = sorted(
                (
                    eviction_key(priority, memory.pod_working_set(index) * _NANO - request),
                    self._pods[index].critical,
                    index,
                )
                for index, (priority, request) in enumerate(self._priorities)
                if memory.is_present(index)
            )
        while self._order and not memory.is_present(self._order[0][2]):
            del self._order[0]
        return self._order


class Eviction(Killer):
    """The kubelet at its hard thresholds, and at the soft one after its grace period."""

    id = "kubelet eviction"
    scope = CeilingScope.NODE
    measures = frozenset({CeilingScope.PODS, CeilingScope.NODE})
    ends_whole_pods = True
    evicts = True
    delay_seconds = 10
    """pkg/kubelet/kubelet.go (evictionMonitoringPeriod)."""

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield memory.available, allocatableMemory.available and the soft threshold, if set.

        The node reports the soft one if there is one (nodeConditions).
        """
        thresholds, use = state.thresholds, state.use
        node = use.own + use.working_set
        ceiling = partial(Ceiling, self.id, owner=-1, by_working_set=True)
        if not state.capacity_bytes:
            if state.due is Due.NOW:
                yield ceiling(
                    CeilingScope.NODE, used_bytes=node, at_bytes=node, is_polled=True, due=state.due
                )
            return
        evictable = state.capacity_bytes - thresholds.hugepages_bytes
        due = Due.NO if thresholds.soft_bytes is not None else state.due
        ceiling = partial(ceiling, is_polled=True, reclaim_bytes=thresholds.reclaim_bytes)
        hard = partial(ceiling, due=due)
        if thresholds.node_bytes is not None:
            yield hard(CeilingScope.NODE, used_bytes=node, at_bytes=evictable - thresholds.node_bytes)
        if thresholds.kubepods_bytes is not None and state.kubepods_bytes is not None:
            at_bytes = state.kubepods_bytes - thresholds.kubepods_bytes
            yield hard(CeilingScope.PODS, used_bytes=use.working_set, at_bytes=at_bytes)
        if thresholds.soft_bytes is not None:
            at_bytes, grace = evictable - thresholds.soft_bytes, thresholds.soft_grace_seconds
            soft = partial(ceiling, is_soft=True, grace_seconds=grace, due=state.due)
            yield soft(CeilingScope.NODE, used_bytes=node, at_bytes=at_bytes)

    def order(self, memory: MemoryTimeline) -> EvictionOrder:
        """Order pods by usage above their requests, and by priority."""
        return EvictionOrder(memory)


EVICTION: Final = Eviction()
