"""A simulation of a node whose memory fills: killers end containers or pods, one after another.

qos/killers/ decides who acts, and on whom. Bytes throughout. Not here: growth (ceiling.py) and the words
(present/simulation.py).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.killers import BY_ID, PRECEDENCE, killers_on
from kubectl_qos.qos.killers.killer import NOBODY, Choice, Contender, Order
from kubectl_qos.qos.oom_score import badness, proc_oom_score
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.ceiling import (
    GROWN_PROCESS,
    Ceiling,
    CeilingScope,
    LimitHit,
    MemoryLevel,
    MemoryTimeline,
    Scenario,
)
from kubectl_qos.qos.simulation.node_state import Importance, ImportanceReason, NodeProcess, NodeState


class SimulationStep(msgspec.Struct, frozen=True, kw_only=True):
    """A container that is killed, or a pod that is evicted or killed whole (no `container`).

    `points` is the victim's badness in pages, `score` its score in /proc; both and `adj` are None if they do
    not decide. `tied` others have equal points. `freed` is the usage before, by both counts, known if
    `is_measured`; `level` is what is free after the step. The `rival` dies instead unless one process of the
    victim is that large. `refused` are pods whose eviction was refused before. For a process of the node,
    `qos` is None and `key` has only its name. `restart` is what the kubelet does next; `restarts`: the memory
    is used again at once. `is_own`: at a limit of the pod's only container. `grown` is the share of all
    growth so far, from 0 to 1.
    """

    mechanism: str
    key: PodKey
    container: str = ""
    qos: QosClass | None = None
    adj: int | None = None
    points: int | None = None
    score: int | None = None
    tied: int = 0
    rival: Contender | None = None
    freed: MemoryLevel
    level: MemoryLevel
    restarts: bool = False
    restart: Restart = Restart.NONE
    important: tuple[ImportanceReason, ...] = ()
    refused: tuple[PodKey, ...] = ()
    grown: float = 0.0
    is_measured: bool = True
    is_own: bool = False

    @property
    def evicts(self) -> bool:
        """Whether the kubelet evicts the pod; otherwise it is killed."""
        return BY_ID[self.mechanism].evicts


class Ended(NamedTuple):
    """What a killer has ended: a container, a pod (no `container`) or a process of the node.

    `freed` is the usage before. `members` are all containers of the victim, `living` those that were ended
    now. `refused` are pods whose eviction was refused before.
    """

    choice: Choice
    key: PodKey
    qos: QosClass | None
    freed: MemoryLevel
    container: str = ""
    members: Sequence[int] = ()
    living: Sequence[int] = ()
    refused: tuple[PodKey, ...] = ()
    important: tuple[ImportanceReason, ...] = ()


class MechanismDistance(NamedTuple):
    """Growth until this mechanism acts, if no other acts before, and the pod that it hits.

    It is an upper bound if the killer's trigger is unknown; the pod is "" if the victim is unknown. `factor`
    is the usage of every container then, relative to the present.
    """

    mechanism: str
    more_bytes: int
    factor: float
    key: PodKey
    container: str
    is_own: bool = False


class Unforeseen(NamedTuple):
    """A killer that may act before a step (counted from 1) on an unknown victim."""

    mechanism: str
    step: int


class Simulation(msgspec.Struct, frozen=True):
    """The steps in order, as far as they can be predicted: the victims of an `unforeseen` killer cannot.

    `is_reached`: the goal was met (memory freed, or all growth complete). `refused` are pods that the kubelet
    would not evict. Free memory `is_upper_bound` if some usage is unknown.
    """

    scenario: Scenario
    steps: tuple[SimulationStep, ...]
    before: MemoryLevel
    after: MemoryLevel
    is_reached: bool
    distances: tuple[MechanismDistance, ...] = ()
    refused: tuple[PodKey, ...] = ()
    is_upper_bound: bool = False
    unforeseen: Unforeseen | None = None

    @property
    def is_over(self) -> bool:
        """Whether a killer of the whole node acts without growth."""
        first = next(iter(self.steps), None)
        return first is not None and first.grown <= 0 and BY_ID[first.mechanism].is_node_wide

    @property
    def first_important(self) -> int | None:
        """Number of the first step that hits an important pod, counted from 1."""
        return next((number for number, step in enumerate(self.steps, start=1) if step.important), None)


def simulate(node_state: NodeState, scenario: Scenario) -> Simulation:
    """Simulate a scenario on a node. Raises InputError for growth to less than is used."""
    run = Run(node_state, scenario)
    if scenario.free_bytes is not None:
        return run.result(is_reached=run.free(scenario.free_bytes))
    if scenario.until_oom:
        distances = sorted(run.distances(), key=lambda item: (item.factor, PRECEDENCE[item.mechanism]))
        run.grow(to_first=True)
        return run.result(is_reached=bool(run.steps), distances=tuple(distances))
    return run.result(is_reached=run.grow())


def eviction_left_out(node_state: NodeState, scenario: Scenario) -> tuple[int, PodKey] | None:
    """Return the first pod that the kubelet would evict as memory grows, and after how many steps.

    None if evictions are simulated, if nothing grows, or if the kubelet evicts nobody.
    """
    if scenario.eviction or scenario.free_bytes is not None:
        return None
    steps = enumerate(simulate(node_state, scenario._replace(eviction=True)).steps)
    return next(((place, step.key) for place, step in steps if step.evicts), None)


class Run:
    """A simulation in progress."""

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        self.steps: list[SimulationStep] = []
        self._state = node_state
        self._scenario = scenario
        self._page = node_state.setup.node.page_size_bytes
        self._on_node = killers_on(node_state.setup)
        if not node_state.capacity_bytes:
            self._on_node = [killer for killer in self._on_node if killer.evicts or not killer.scope.is_wide]
        self._killers = [killer for killer in self._on_node if scenario.eviction or not killer.evicts]
        self.timeline = MemoryTimeline(node_state, scenario)
        self._before = self.timeline.level()
        self._orders: dict[str, Order | None] = {}
        self._refused: dict[PodKey, None] = {}
        self._exhausted: set[tuple[str, int]] = set()
        self._disrupted: dict[str, set[PodKey]] = {}
        self._unforeseen: Unforeseen | None = None
        self._without_stats = list(node_state.without_stats)
        self._is_still = not self.timeline.grows
        self._is_watching = False
        self._unknown = node_state.use.unmeasured.difference(self.timeline.growing)
        """Containers of unknown usage that do not grow to a known one."""

    @cached_property
    def ceilings(self) -> dict[str, Sequence[Ceiling]]:
        """Ceilings of each killer, with or without eviction."""
        return {killer.id: tuple(killer.ceilings(self._state)) for killer in self._on_node}

    def _next_hits(self) -> Iterator[LimitHit]:
        if not self._is_watching:
            self._is_watching = True
            self.timeline.watch(chain.from_iterable(self.ceilings[killer.id] for killer in self._killers))
        return self.timeline.next_hits(self._exhausted)

    def free(self, goal_bytes: int) -> bool:
        """Kill or evict until `goal_bytes` are freed for good; return whether that succeeds."""
        evicts, freed = self._scenario.eviction, 0
        of_node = [LimitHit(0.0, killer.id) for killer in self._killers if killer.scope is CeilingScope.NODE]
        while freed < goal_bytes:
            step = next(filter(None, map(self.act, of_node)), None)
            if step is None:
                return False
            if not step.restarts:
                freed += step.freed.available_bytes if evicts else step.freed.free_bytes
        return True

    def grow(self, *, to_first: bool = False) -> bool:
        """Grow to the end; return whether everything that grows survives.

        `to_first`: grow to the first step. If limits of the node are exceeded now, more steps follow until
        none is.
        """
        timeline, growing = self.timeline, self.timeline.growing
        while True:
            hits, is_over = self._next_hits(), to_first and bool(self.steps)
            due = (hit for hit in hits if not is_over or (hit.is_wide and hit.time <= 0))
            hit = min(due, key=_precedence, default=None)
            if hit is None:
                break
            timeline.now = max(timeline.now, hit.time)
            if self.act(hit) is None:
                self._exhausted.add(hit[1:])
        if not to_first:
            timeline.finish()
        own_is_killed = any(step.key == ("", GROWN_PROCESS) for step in self.steps)
        return set(growing) <= set(timeline.living) and not own_is_killed

    def distances(self) -> Iterator[MechanismDistance]:
        """Yield the distance of each mechanism if everything grows alike, and its victim if it acts first."""
        nearest: dict[str, LimitHit] = {}
        for hit in self._next_hits():
            before = nearest.get(hit.mechanism)
            if before is None or hit.time < before.time:
                nearest[hit.mechanism] = hit
        own = sorted((hit for hit in nearest.values() if not hit.is_wide), key=_precedence)
        for hit in own[1:]:
            if hit.time == own[0].time:  # A pod and its container have equal limits: only one is hit.
                del nearest[hit.mechanism]
        for hit in nearest.values():
            alone = Run(self._state, self._scenario)
            time = alone.timeline.now = max(hit.time, 0.0)
            step, more = alone.act(hit), self.timeline.grown_bytes(time)
            if step is not None:
                yield MechanismDistance(hit.mechanism, more, 1 + time, step.key, step.container, step.is_own)
            elif self.order(hit.mechanism) is None:
                yield MechanismDistance(hit.mechanism, more, 1 + time, ("", ""), "")

    def result(self, *, is_reached: bool, distances: tuple[MechanismDistance, ...] = ()) -> Simulation:
        """Return the simulation so far."""
        return Simulation(
            scenario=self._scenario,
            steps=tuple(self.steps),
            before=self._before,
            after=self.timeline.level(),
            is_reached=is_reached,
            distances=distances,
            refused=tuple(self._refused),
            is_upper_bound=bool(self._unknown),
            unforeseen=self._unforeseen,
        )

    def choose(self, mechanism: str, owner: int = -1) -> Choice:
        """Return a killer's victim if the memory of the owner has reached its ceiling."""
        order = self.order(mechanism)
        return NOBODY if order is None else order.first(owner)

    def order(self, mechanism: str) -> Order | None:
        """Return a killer's order of victims, None if unknown."""
        if mechanism not in self._orders:
            self._orders[mechanism] = BY_ID[mechanism].order(self.timeline)
        return self._orders[mechanism]

    def act(self, hit: LimitHit) -> SimulationStep | None:
        """Kill or evict at a limit; return None if there is no victim, or it is unknown."""
        ended = self.end(hit.mechanism, hit.owner)
        if ended is None:
            return None
        killer, choice, containers = BY_ID[hit.mechanism], ended.choice, self._state.containers
        victim, is_measured = choice.victim, self._unknown.isdisjoint(ended.members)
        stays_dead = {containers[place].restart for place in ended.living} <= {Restart.NONE}
        step = SimulationStep(
            mechanism=killer.id,
            key=ended.key,
            container=ended.container,
            qos=ended.qos,
            freed=ended.freed,
            level=self.timeline.level(),
            restarts=any(map(self._restarts, ended.living)) and not killer.evicts,
            restart=Restart.NONE if killer.evicts or stays_dead else Restart.CONTAINER,
            important=(*ended.important, *self._violated_budgets(ended.key)),
            refused=ended.refused,
            grown=0.0 if self._is_still else self.timeline.now,
            is_measured=is_measured,
        )
        container = containers[victim] if ended.container and isinstance(victim, int) else None
        if container is not None:
            members = self.timeline.pod_containers[container.pod_index]
            is_own = not killer.scope.is_wide and len(members) == 1
            step = structs.replace(step, restart=container.restart, is_own=is_own, rival=choice.rival)
        scored = victim if isinstance(victim, NodeProcess) else container
        if scored is not None:
            step = structs.replace(step, adj=scored.adj, tied=choice.tied)
            if is_measured:
                alone = ended.freed.free_bytes - (container.others_bytes if container is not None else 0)
                score = self._proc_score(alone, scored.adj)
                step = structs.replace(step, points=choice.points, score=score)
        self.steps.append(step)
        return step

    def end(self, mechanism: str, owner: int = -1) -> Ended | None:
        """Kill or evict as `act` does, but do not record a step, which takes longer."""
        killer, timeline = BY_ID[mechanism], self.timeline
        if killer.evicts and self._without_stats:
            # No container of the pod runs: nothing is freed.
            pod = self._without_stats.pop(0)
            return Ended(NOBODY, pod.key, pod.qos, MemoryLevel(0, 0), important=pod.important)
        if self._unforeseen is None and self.order(mechanism) is None:
            self._unforeseen = Unforeseen(mechanism, len(self.steps) + 1)
        choice = self.choose(mechanism, owner)
        refused = [self._state.pods[index].key for index in choice.refused]
        new = tuple([key for key in refused if key not in self._refused])
        self._refused |= dict.fromkeys(refused)
        victim = choice.victim
        if victim is None:
            return None
        timeline.reclaiming.add(mechanism)
        if isinstance(victim, NodeProcess):
            timeline.end_process(victim)
            used = victim.used_bytes
            return Ended(choice, ("", victim.name), None, MemoryLevel(used, used))
        if killer.ends_whole_pods:
            pod, name, members = self._state.pods[victim], "", timeline.pod_containers[victim]
        else:
            container, members = self._state.containers[victim], [victim]
            pod, name = self._state.pod_for(container), container.name
        living = [place for place in members if place in timeline.living]
        if killer.evicts:
            freed = timeline.usage_of([place for place in members if place in timeline.present])
            freed = MemoryLevel(freed.free_bytes + pod.left_bytes, freed.available_bytes + pod.left_bytes)
            timeline.evict(victim)
        else:
            freed = timeline.usage_of(living)
            for place in living:
                timeline.kill(place, restarts=self._restarts(place))
        return Ended(choice, pod.key, pod.qos, freed, name, members, living, new, pod.important)

    def _restarts(self, container: int) -> bool:
        return self._scenario.restarts and self._state.containers[container].restart is not Restart.NONE

    def _proc_score(self, used_bytes: int, adj: int) -> int | None:
        """Return the score in /proc, which is scaled by the machine's memory even at a limit."""
        total, kernel = self._state.total_bytes // self._page, self._state.kernel
        if not total:
            return None
        return proc_oom_score(badness(used_bytes // self._page, adj, total, kernel), total, kernel)

    def _violated_budgets(self, key: PodKey) -> Iterator[ImportanceReason]:
        """Yield the budgets that this pod's end violates; neither kernel nor kubelet checks them."""
        for budget in self._state.budgets:
            if key in budget.pods:
                disrupted = self._disrupted.setdefault(budget.name, set())
                disrupted.add(key)
                if len(disrupted) > budget.allowed:
                    yield ImportanceReason(Importance.BUDGET, budget.name)


def _precedence(hit: LimitHit) -> tuple[float, int]:
    return max(hit.time, 0.0), PRECEDENCE[hit.mechanism]
