"""What happens on a node as its memory fills: kill after kill by the kernel, eviction after eviction.

Sources: Linux mm/oom_kill.c and mm/memcontrol.c (who is killed where, see oom_kill.py),
pkg/kubelet/eviction/eviction_manager.go (synchronize: one pod a round until the threshold and the minimum
reclaim are met; evictPod refuses critical pods). Bytes throughout.

Not here: the facts of the node (situation.py), growth (filling.py) and the words (present/simulation.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.eviction import measured_key
from kubectl_qos.qos.oom_score import Kernel, badness, proc_oom_score
from kubectl_qos.qos.process_order import NEVER
from kubectl_qos.qos.simulation.node_state import Importance, ImportanceReason, NodeState
from kubectl_qos.qos.simulation.scenario import (
    Mechanism,
    MechanismDistance,
    MemoryLevel,
    Scenario,
    Simulation,
    SimulationStep,
)
from kubectl_qos.qos.simulation.timeline import LimitHit, MemoryTimeline


def simulate(node_state: NodeState, scenario: Scenario) -> Simulation:
    """What happens on that node. Raises InputError for growth to less than is used."""
    run = _Run(node_state, scenario)
    if scenario.free_bytes is not None:
        return run.result(is_met=run.free(scenario.free_bytes))
    if scenario.until_oom:
        reaches = tuple(sorted(run.reaches(), key=lambda one: (one.factor, _EARLIER[one.mechanism])))
        run.go(most_steps=1)
        return run.result(is_met=bool(run.steps), reaches=reaches)
    return run.result(is_met=run.go())


_NANO: Final = 10**9
_EARLIER: Final = {
    # A pod's cgroup holds its pause container too, so of equal limits its own is met before a container's.
    mechanism: order
    for order, mechanism in enumerate(
        (Mechanism.EVICTION, Mechanism.POD, Mechanism.CONTAINER, Mechanism.KUBEPODS, Mechanism.NODE)
    )
}


class _Run:
    """One simulation as it goes."""

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        self.steps: list[SimulationStep] = []
        self._at = node_state
        self._scenario = scenario
        self._page = node_state.setup.node.page_size_bytes
        self._kernel = node_state.kernel
        self._filling = MemoryTimeline(node_state, scenario)
        self._before = self._filling.level()
        self._own = list(node_state.own)
        self._evicted: set[int] = set()
        self._refused: dict[PodKey, None] = {}
        self._exhausted: set[tuple[Mechanism, int]] = set()
        self._disrupted: dict[str, set[PodKey]] = {}
        self._keys: list[tuple[int, int, int, int]] | None = None
        self._ranked_by = [(one.pod.spec.priority or 0, one.request.nano) for one in node_state.tenants]
        self._is_still = not self._filling.grows
        self._immune = {index for index, one in enumerate(node_state.members) if one.adj == NEVER}
        self._points: dict[int, list[int]] = {}
        self._adj_points: dict[int, list[int]] = {}

    def free(self, wanted: int) -> bool:
        """Kills or evictions until so much is free that was not, for good; whether that comes about."""
        evicts, lasting = self._scenario.eviction, 0
        while lasting < wanted:
            step = self._evict() if evicts else None
            step = step or self._kill(LimitHit(0.0, Mechanism.NODE))
            if step is None:
                return False
            if not step.comes_back:
                lasting += step.freed.available_bytes if evicts else step.freed.free_bytes
        return True

    def go(self, most_steps: int | None = None) -> bool:
        """Everything grows to its end, or to so many steps; whether all of it lives to see that."""
        filling = self._filling
        growing = filling.growing
        while most_steps is None or len(self.steps) < most_steps:
            met = min(filling.next_met(self._exhausted), key=_order_of, default=None)
            if met is None:
                break
            filling.now = max(filling.now, met.when)
            done = self._evict() if met.mechanism is Mechanism.EVICTION else self._kill(met)
            if done is None:
                self._exhausted.add(met[1:])
        if most_steps is None:
            filling.finish()
        return set(growing) <= set(filling.living)

    def reaches(self) -> Iterator[MechanismDistance]:
        """How far each mechanism is if all grow alike, and whom it would hit if nothing came before."""
        nearest: dict[Mechanism, LimitHit] = {}
        for met in self._filling.next_met(self._exhausted):
            known = nearest.get(met.mechanism)
            if known is None or met.when < known.when:
                nearest[met.mechanism] = met
        pod, container = nearest.get(Mechanism.POD), nearest.get(Mechanism.CONTAINER)
        if pod and container and pod.when == container.when:
            # Of equal limits one is met: see _EARLIER.
            del nearest[Mechanism.CONTAINER]
        for met in nearest.values():
            alone = _Run(self._at, self._scenario)
            when = alone._filling.now = max(met.when, 0.0)
            step = alone._evict() if met.mechanism is Mechanism.EVICTION else alone._kill(met)
            if step is not None:
                more = self._filling.grown_bytes(when)
                yield MechanismDistance(met.mechanism, more, 1 + when, step.key, step.container)

    def result(self, *, is_met: bool, reaches: tuple[MechanismDistance, ...] = ()) -> Simulation:
        """What has happened."""
        return Simulation(
            scenario=self._scenario,
            steps=tuple(self.steps),
            before=self._before,
            after=self._filling.level(),
            is_met=is_met,
            reaches=reaches,
            refused=tuple(self._refused),
        )

    def _kill(self, met: LimitHit) -> SimulationStep | None:
        """The kernel's choice where memory ran out, None if nobody there may be killed."""
        at, filling = self._at, self._filling
        pool, total = self._pool(met), max(self._scale(met) // self._page, 1)
        points = self._badness(pool, total)
        own = [
            badness(one.used_bytes // self._page, one.adj, total, self._kernel) if one.adj != NEVER else None
            for one in (self._own if met.mechanism is Mechanism.NODE else ())
        ]
        most = max([*points, *(one for one in own if one is not None)], default=None)
        if most is None:
            return None
        tied = points.count(most) + own.count(most) - 1
        if most not in points:
            return self._lose_own(own.index(most), most, tied)
        member = pool[points.index(most)]
        one = at.members[member]
        tenant = at.tenants[one.tenant]
        freed = MemoryLevel(filling.used(member), filling.working_set(member))
        comes_back = self._scenario.restarts and one.restarts
        filling.kill(member, comes_back=comes_back)
        self._keys = None
        return self._add(
            SimulationStep(
                mechanism=met.mechanism,
                key=tenant.key,
                container=one.container,
                qos=tenant.qos,
                adj=one.adj,
                points=most,
                score=self._score(freed.free_bytes, one.adj),
                tied=tied,
                freed=freed,
                level=filling.level(),
                comes_back=comes_back,
                important=(*tenant.important, *self._disrupts(tenant.key)),
            )
        )

    def _lose_own(self, place: int, points: int, tied: int) -> SimulationStep:
        """A process of the node is the victim."""
        lost = self._own.pop(place)
        self._filling.lose_own(lost.used_bytes)
        return self._add(
            SimulationStep(
                mechanism=Mechanism.NODE,
                key=("", lost.name),
                adj=lost.adj,
                points=points,
                score=self._score(lost.used_bytes, lost.adj),
                tied=tied,
                freed=MemoryLevel(lost.used_bytes, lost.used_bytes),
                level=self._filling.level(),
            )
        )

    def _score(self, used_bytes: int, adj: int) -> int:
        """What /proc shows, by the memory of the machine whatever limit is met."""
        total = self._at.total_bytes // self._page
        return proc_oom_score(
            badness(used_bytes // self._page, adj, total, self._kernel), total, self._kernel
        )

    def _pool(self, met: LimitHit) -> Sequence[int]:
        """Who is in the running: what lives where memory ran out."""
        found: Sequence[int] = self._filling.living
        if met.mechanism is Mechanism.CONTAINER:
            found = [met.place]
        elif met.mechanism is Mechanism.POD:
            living = set(found)
            found = [index for index in self._filling.of_pod[met.place] if index in living]
        return [index for index in found if index not in self._immune] if self._immune else found

    def _scale(self, met: LimitHit) -> int:
        """What oom_score_adj is scaled by there (`constrained_alloc`)."""
        at = self._at
        if met.mechanism is Mechanism.CONTAINER:
            return at.members[met.place].most_bytes
        if met.mechanism is Mechanism.POD:
            return at.tenants[met.place].limit_bytes + at.swap_bytes
        if met.mechanism is Mechanism.KUBEPODS and at.kubepods_bytes is not None:
            return at.kubepods_bytes + at.swap_bytes
        return at.total_bytes

    def _badness(self, pool: Sequence[int], total: int) -> Sequence[int]:
        """The points of each. Where nothing grows they stay, and are worked out for all at once."""
        members = self._at.members
        if self._is_still:
            held = self._points.get(total)
            if held is None:
                held = self._points[total] = self._points_of(range(len(members)), total)
            return held if len(pool) == len(members) else [held[one] for one in pool]
        return self._points_of(pool, total)

    def _points_of(self, pool: Sequence[int], total: int) -> list[int]:
        """Pages are added to the points of oom_score_adj, which stay the same."""
        adj = self._adj_points.get(total)
        if adj is None:
            adj = self._adj_points[total] = [badness(0, one.adj, total) for one in self._at.members]
        page = self._page
        usages = self._filling.usages(pool)
        points = [used // page + adj[one] for used, one in zip(usages, pool, strict=True)]
        return points if self._kernel is Kernel.SIGNED else [max(one, 1) for one in points]

    def _evict(self) -> SimulationStep | None:
        """The next pod of the kubelet's order that it may evict; critical ones before it are refused."""
        filling, tenants = self._filling, self._at.tenants
        keys = self._eviction_keys()
        left = [one for one in range(len(tenants)) if one not in self._evicted and filling.is_present(one)]
        chosen = min((one for one in left if not tenants[one].critical), key=keys.__getitem__, default=None)
        before = [
            one for one in left if tenants[one].critical and (chosen is None or keys[one] < keys[chosen])
        ]
        refused = [tenants[one].key for one in sorted(before, key=keys.__getitem__)]
        new = tuple(key for key in refused if key not in self._refused)
        self._refused |= dict.fromkeys(refused)
        if chosen is None:
            return None
        tenant = self._at.tenants[chosen]
        present = [index for index in filling.of_pod[chosen] if index in filling.present]
        freed = MemoryLevel(sum(map(filling.used, present)), sum(map(filling.working_set, present)))
        filling.evict(chosen)
        filling.reclaiming = True
        self._evicted.add(chosen)
        return self._add(
            SimulationStep(
                mechanism=Mechanism.EVICTION,
                key=tenant.key,
                qos=tenant.qos,
                freed=freed,
                level=filling.level(),
                important=(*tenant.important, *self._disrupts(tenant.key)),
                refused=new,
            )
        )

    def _eviction_keys(self) -> list[tuple[int, int, int, int]]:
        """What the kubelet sorts each pod by (`rank_memory`); where nothing grows that stays."""
        if self._keys is None or self._filling.grows:
            working_set = self._filling.pod_working_set
            self._keys = []
            for place, (priority, request) in enumerate(self._ranked_by):
                over = working_set(place) * _NANO - request
                self._keys.append(measured_key(over, priority, over))
        return self._keys

    def _disrupts(self, key: PodKey) -> Iterator[ImportanceReason]:
        """The budgets that this pod's end oversteps; neither kernel nor kubelet asks them."""
        for budget in self._at.budgets:
            if key in budget.pods:
                away = self._disrupted.setdefault(budget.name, set())
                away.add(key)
                if len(away) > budget.allowed:
                    yield ImportanceReason(Importance.BUDGET, budget.name)

    def _add(self, step: SimulationStep) -> SimulationStep:
        self.steps.append(step)
        return step


def _order_of(met: LimitHit) -> tuple[float, int]:
    return max(met.when, 0.0), _EARLIER[met.mechanism]
