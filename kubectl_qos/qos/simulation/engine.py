"""A simulation of a node whose memory fills: kill after kill by the kernel, eviction after eviction.

Sources: Linux mm/oom_kill.c and mm/memcontrol.c, pkg/kubelet/eviction/eviction_manager.go (synchronize: one
pod a round until the threshold and the minimum reclaim are met; evictPod refuses critical pods). Bytes
throughout. Not here: growth (timeline.py) and the words (present/simulation.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.eviction import EvictionKey, eviction_key
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, badness, proc_oom_score
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.node_state import (
    Importance,
    ImportanceReason,
    NodeProcess,
    NodeState,
    Scenario,
)
from kubectl_qos.qos.simulation.timeline import LimitHit, MemoryLevel, MemoryTimeline


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationStep:
    """One container that is killed, or one pod that is evicted, which has no `container`.

    `points` is the badness in pages where memory ran out, `score` what /proc showed for the victim: None,
    like `adj`, of an eviction. `tied` is how many others had equal points. `freed` is what was used, by both
    counts, `level` what is free after the step. `refused` are pods whose eviction was tried before, and
    refused. A process of the node has no class, and its name as key. `restart` is what the kubelet does
    afterwards, `restarts` whether the memory is used again at once. `grown` is the part of all growth that
    had taken place, from 0 to 1.
    """

    mechanism: Mechanism
    key: PodKey
    container: str = ""
    qos: QosClass | None = None
    adj: int | None = None
    points: int | None = None
    score: int | None = None
    tied: int = 0
    freed: MemoryLevel
    level: MemoryLevel
    restarts: bool = False
    restart: Restart = Restart.NONE
    important: tuple[ImportanceReason, ...] = ()
    refused: tuple[PodKey, ...] = ()
    grown: float = 0.0


class Choice(NamedTuple):
    """Whom the kernel kills: a container by its index, or a process of the node; its points in pages.

    `tied` is how many others have as many.
    """

    victim: int | NodeProcess
    points: int
    tied: int


class Contender(NamedTuple):
    """A container that may die in place of a victim, and the size in bytes that decides."""

    namespace: str
    pod: str
    container: str
    qos_class: QosClass
    used_bytes: int
    size_bytes: int

    @property
    def key(self) -> PodKey:
        """Namespace and name of the pod."""
        return self.namespace, self.pod


class MechanismDistance(NamedTuple):
    """How much more memory until this mechanism acts, if no other does before, and on which pod.

    `factor` is what every container then uses relative to its present usage.
    """

    mechanism: Mechanism
    more_bytes: int
    factor: float
    key: PodKey
    container: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """What happens, in order.

    `is_reached` is whether the goal was: so much was freed, everything grew to its end. `refused` are the
    pods that the kubelet would not evict.
    """

    scenario: Scenario
    steps: tuple[SimulationStep, ...]
    before: MemoryLevel
    after: MemoryLevel
    is_reached: bool
    distances: tuple[MechanismDistance, ...] = ()
    refused: tuple[PodKey, ...] = ()

    @property
    def first_important(self) -> int | None:
        """The number of the first step that hits an important pod, counted from 1."""
        return next((number for number, step in enumerate(self.steps, start=1) if step.important), None)


def simulate(node_state: NodeState, scenario: Scenario) -> Simulation:
    """What happens on that node. Raises InputError for growth to less than is used."""
    run = Run(node_state, scenario)
    if scenario.free_bytes is not None:
        return run.result(is_reached=run.free(scenario.free_bytes))
    if scenario.until_oom:
        distances = sorted(run.distances(), key=lambda one: (one.factor, PRECEDENCE.index(one.mechanism)))
        run.grow(most_steps=1)
        return run.result(is_reached=bool(run.steps), distances=tuple(distances))
    return run.result(is_reached=run.grow())


GROWN_PROCESS: Final = "a process that has grown"
"""The name of the process of the node that holds what the node itself has grown by."""
_NANO: Final = 10**9
PRECEDENCE: Final = (
    Mechanism.EVICTION,
    Mechanism.POD_LIMIT,
    Mechanism.CONTAINER_LIMIT,
    Mechanism.KUBEPODS_LIMIT,
    Mechanism.NODE,
)
"""Which mechanism acts of those whose limits are hit at the same time.

A pod's cgroup holds its pause container too, so of equal limits the pod's is hit before a container's.
"""


class Run:
    """A simulation as it goes on."""

    def __init__(self, node_state: NodeState, scenario: Scenario) -> None:
        self.steps: list[SimulationStep] = []
        self._state = node_state
        self._scenario = scenario
        self._page = node_state.setup.node.page_size_bytes
        self._kernel = node_state.kernel
        self.timeline = MemoryTimeline(node_state, scenario)
        self._before = self.timeline.level()
        self._own_processes = list(node_state.own_processes)
        self._not_evicted = list(range(len(node_state.pods)))
        self._refused: dict[PodKey, None] = {}
        self._exhausted: set[tuple[Mechanism, int]] = set()
        self._disrupted: dict[str, set[PodKey]] = {}
        self._eviction_keys: list[EvictionKey] | None = None
        self._priorities = [(pod.pod.spec.priority or 0, pod.request.nano) for pod in node_state.pods]
        self._is_still = not self.timeline.grows
        self.immune = {
            index
            for index, container in enumerate(node_state.containers)
            if container.adj == OOM_SCORE_ADJ_MIN
        }
        self._points: dict[int, list[int]] = {}
        self._adj_points: dict[int, list[int]] = {}

    def free(self, goal_bytes: int) -> bool:
        """Kills or evictions until so much has been freed for good; whether that succeeds."""
        evicts, freed = self._scenario.eviction, 0
        while freed < goal_bytes:
            step = self._evict() if evicts else None
            step = step or self._kill(LimitHit(0.0, Mechanism.NODE))
            if step is None:
                return False
            if not step.restarts:
                freed += step.freed.available_bytes if evicts else step.freed.free_bytes
        return True

    def grow(self, most_steps: int | None = None) -> bool:
        """Everything grows to its end, or to so many steps; whether all that grows survives."""
        timeline, growing = self.timeline, self.timeline.growing
        while most_steps is None or len(self.steps) < most_steps:
            hit = min(timeline.next_hits(self._exhausted), key=_precedence, default=None)
            if hit is None:
                break
            timeline.now = max(timeline.now, hit.time)
            if self.act(hit) is None:
                self._exhausted.add(hit[1:])
        if most_steps is None:
            timeline.finish()
        own_is_killed = any(step.key == ("", GROWN_PROCESS) for step in self.steps)
        return set(growing) <= set(timeline.living) and not own_is_killed

    def distances(self) -> Iterator[MechanismDistance]:
        """How far each mechanism is if all grow alike, and whom it hits if no other acts before."""
        nearest: dict[Mechanism, LimitHit] = {}
        for hit in self.timeline.next_hits(self._exhausted):
            held = nearest.get(hit.mechanism)
            if held is None or hit.time < held.time:
                nearest[hit.mechanism] = hit
        pod, container = nearest.get(Mechanism.POD_LIMIT), nearest.get(Mechanism.CONTAINER_LIMIT)
        if pod and container and pod.time == container.time:
            # Of equal limits one is hit: see PRECEDENCE.
            del nearest[Mechanism.CONTAINER_LIMIT]
        for hit in nearest.values():
            alone = Run(self._state, self._scenario)
            time = alone.timeline.now = max(hit.time, 0.0)
            step = alone.act(hit)
            if step is not None:
                more = self.timeline.grown_bytes(time)
                yield MechanismDistance(hit.mechanism, more, 1 + time, step.key, step.container)

    def result(self, *, is_reached: bool, distances: tuple[MechanismDistance, ...] = ()) -> Simulation:
        """What has happened so far."""
        return Simulation(
            scenario=self._scenario,
            steps=tuple(self.steps),
            before=self._before,
            after=self.timeline.level(),
            is_reached=is_reached,
            distances=distances,
            refused=tuple(self._refused),
        )

    def act(self, hit: LimitHit) -> SimulationStep | None:
        """Kill or evict where a limit is hit; None if nothing there can be."""
        return self._evict() if hit.mechanism is Mechanism.EVICTION else self._kill(hit)

    def choose(self, hit: LimitHit) -> Choice | None:
        """Whom the kernel kills where memory runs out now, None if every process there is immune."""
        total = max(self.scale_bytes(hit) // self._page, 1)
        candidates, points = self._scores(hit, total)
        processes = self._node_processes() if hit.mechanism is Mechanism.NODE else []
        own = self._own_badness(processes, total)
        most = max([*points, *(score for score in own if score is not None)], default=None)
        if most is None:
            return None
        tied = points.count(most) + own.count(most) - 1
        if most in points:
            return Choice(candidates[points.index(most)], most, tied)
        return Choice(processes[own.index(most)], most, tied)

    def _scores(self, hit: LimitHit, total: int) -> tuple[Sequence[int], Sequence[int]]:
        """The containers that may die there, and their points."""
        candidates = self._candidates(hit)
        if hit.mechanism in {Mechanism.CONTAINER_LIMIT, Mechanism.POD_LIMIT}:
            return candidates, self._few_badness(candidates, total)
        return candidates, self._badness(candidates, total)

    def contest(self, hit: LimitHit, room_bytes: int) -> tuple[Contender | None, tuple[Contender, ...]]:
        """Who dies in place of the victim unless one of its processes holds so much, if that is possible.

        Then those that do once they alone have grown to so much, by `room_bytes` at most; not those that a
        limit of their own ends before.
        """
        choice, page, containers = self.choose(hit), self._page, self._state.containers
        if choice is None:
            return None, ()
        candidates, points = self._scores(hit, max(self.scale_bytes(hit) // page, 1))
        used = dict(zip(candidates, self.timeline.usages(candidates), strict=True))
        scored = zip(points, candidates, strict=True)
        gaps = sorted((choice.points - score, index) for score, index in scored if index != choice.victim)

        def contender(index: int, size_bytes: int) -> Contender:
            pod = self._state.pod_for(containers[index])
            return Contender(*pod.key, containers[index].name, pod.qos, used[index], size_bytes)

        before = [one for one in self.timeline.distances() if max(one.more_bytes, 0) < room_bytes]
        containers_end = {one.owner for one in before if one.mechanism is Mechanism.CONTAINER_LIMIT}
        pods_end = {one.owner for one in before if one.mechanism is Mechanism.POD_LIMIT}
        near = [
            (index, (gap + 1) * page)
            for gap, index in gaps
            if (gap + 1) * page <= room_bytes
            and index not in containers_end
            and containers[index].pod_index not in pods_end
        ]
        growing = tuple(contender(index, used[index] + more) for index, more in near)
        if not gaps or isinstance(choice.victim, NodeProcess):
            return None, growing
        (gap, best), all_of_it = gaps[0], used[choice.victim]
        is_open = all_of_it - gap * page > containers[choice.victim].least_bytes(all_of_it)
        return contender(best, all_of_it - gap * page) if is_open else None, growing

    def _kill(self, hit: LimitHit) -> SimulationStep | None:
        choice = self.choose(hit)
        if choice is None:
            return None
        index, points, tied = choice
        if isinstance(index, NodeProcess):
            return self._kill_own_process(index, points, tied)
        state, timeline = self._state, self.timeline
        container = state.containers[index]
        pod = state.pod_for(container)
        freed = self.held([index])
        restarts = self._scenario.restarts and container.restart is not Restart.NONE
        timeline.kill(index, restarts=restarts)
        self._eviction_keys = None
        return self._add(
            SimulationStep(
                mechanism=hit.mechanism,
                key=pod.key,
                container=container.name,
                qos=pod.qos,
                adj=container.adj,
                points=points,
                score=self._proc_score(freed.free_bytes - container.beside_bytes, container.adj),
                tied=tied,
                freed=freed,
                level=timeline.level(),
                restarts=restarts,
                restart=container.restart,
                important=(*pod.important, *self._violated_budgets(pod.key)),
            )
        )

    def held(self, containers: Sequence[int]) -> MemoryLevel:
        """What these containers use, by both counts."""
        timeline = self.timeline
        return MemoryLevel(sum(timeline.usages(containers)), sum(map(timeline.working_set, containers)))

    def _kill_own_process(self, victim: NodeProcess, points: int, tied: int) -> SimulationStep:
        if victim in self._own_processes:
            self._own_processes.remove(victim)
            self.timeline.end_process(victim.used_bytes)
        else:
            self.timeline.end_own_growth()
        return self._add(
            SimulationStep(
                mechanism=Mechanism.NODE,
                key=("", victim.name),
                adj=victim.adj,
                points=points,
                score=self._proc_score(victim.used_bytes, victim.adj),
                tied=tied,
                freed=MemoryLevel(victim.used_bytes, victim.used_bytes),
                level=self.timeline.level(),
            )
        )

    def _proc_score(self, used_bytes: int, adj: int) -> int:
        """What /proc shows, by the memory of the machine whatever limit is hit."""
        total = self._state.total_bytes // self._page
        points = badness(used_bytes // self._page, adj, total, self._kernel)
        return proc_oom_score(points, total, self._kernel)

    def _candidates(self, hit: LimitHit) -> Sequence[int]:
        timeline = self.timeline
        if hit.mechanism is Mechanism.CONTAINER_LIMIT:
            living = [hit.owner]
        elif hit.mechanism is Mechanism.POD_LIMIT:
            living = [index for index in timeline.pod_containers[hit.owner] if index in timeline.living]
        else:
            living = list(timeline.living)
        return [index for index in living if index not in self.immune] if self.immune else living

    def scale_bytes(self, hit: LimitHit) -> int:
        """RAM and swap by which oom_score_adj is scaled where memory runs out: no limit of its own.

        Source: mm/oom_kill.c (constrained_alloc) and mm/memcontrol.c (mem_cgroup_get_max), `totalpages`.
        """
        state = self._state
        if hit.mechanism is Mechanism.CONTAINER_LIMIT:
            return state.containers[hit.owner].most_bytes
        if hit.mechanism is Mechanism.POD_LIMIT:
            return state.pods[hit.owner].limit_bytes + state.swap_bytes
        if hit.mechanism is Mechanism.KUBEPODS_LIMIT and state.kubepods_bytes is not None:
            return state.kubepods_bytes + state.swap_bytes
        return state.total_bytes

    def _node_processes(self) -> list[NodeProcess]:
        """The node's own processes, with the one that holds what the node itself has grown by."""
        grown = self.timeline.own_grown_bytes()
        return [*self._own_processes, *([NodeProcess(GROWN_PROCESS, 0, grown)] if grown else [])]

    def _own_badness(self, processes: Sequence[NodeProcess], total: int) -> list[int | None]:
        """The points of processes of the node, None for immune ones."""
        return [
            badness(process.used_bytes // self._page, process.adj, total, self._kernel)
            if process.adj != OOM_SCORE_ADJ_MIN
            else None
            for process in processes
        ]

    def _badness(self, containers: Sequence[int], total: int) -> Sequence[int]:
        """The points of each. Where nothing grows they stay, and are computed for all containers at once."""
        if not self._is_still:
            return self._compute_badness(containers, total)
        everyone = range(len(self._state.containers))
        held = self._points.get(total)
        if held is None:
            held = self._points[total] = self._compute_badness(everyone, total)
        return held if len(containers) == len(everyone) else [held[index] for index in containers]

    def _few_badness(self, containers: Sequence[int], total: int) -> list[int]:
        """The points of some containers alone."""
        found = zip(containers, self.timeline.usages(containers), strict=True)
        page, every = self._page, self._state.containers
        return [
            badness((used - every[index].beside_bytes) // page, every[index].adj, total, self._kernel)
            for index, used in found
        ]

    def _compute_badness(self, containers: Sequence[int], total: int) -> list[int]:
        """Pages are added to the points of oom_score_adj, which stay the same."""
        adj_points = self._adj_points.get(total)
        if adj_points is None:
            every = self._state.containers
            each = {adj: badness(0, adj, total) for adj in {container.adj for container in every}}
            adj_points = [each[one.adj] - one.beside_bytes // self._page for one in every]
            self._adj_points[total] = adj_points
        page = self._page
        usages = self.timeline.usages(containers)
        points = [used // page + adj_points[index] for used, index in zip(usages, containers, strict=True)]
        return points if self._kernel is Kernel.SIGNED else [max(score, 1) for score in points]

    def choose_evicted(self) -> tuple[int | None, list[int]]:
        """The next pod of the kubelet's order that it may evict, and the critical ones before it, refused."""
        timeline, pods = self.timeline, self._state.pods
        keys = self._current_eviction_keys()
        left = [index for index in self._not_evicted if timeline.is_present(index)]
        evictable = (index for index in left if not pods[index].critical)
        chosen = min(evictable, key=keys.__getitem__, default=None)
        critical = [
            index for index in left if pods[index].critical and (chosen is None or keys[index] < keys[chosen])
        ]
        return chosen, sorted(critical, key=keys.__getitem__)

    def _evict(self) -> SimulationStep | None:
        timeline, pods = self.timeline, self._state.pods
        chosen, critical = self.choose_evicted()
        refused = [pods[index].key for index in critical]
        new = tuple(key for key in refused if key not in self._refused)
        self._refused |= dict.fromkeys(refused)
        if chosen is None:
            return None
        pod = pods[chosen]
        present = [index for index in timeline.pod_containers[chosen] if index in timeline.present]
        freed = self.held(present)
        timeline.evict(chosen)
        timeline.reclaiming = True
        self._not_evicted.remove(chosen)
        return self._add(
            SimulationStep(
                mechanism=Mechanism.EVICTION,
                key=pod.key,
                qos=pod.qos,
                freed=freed,
                level=timeline.level(),
                important=(*pod.important, *self._violated_budgets(pod.key)),
                refused=new,
            )
        )

    def _current_eviction_keys(self) -> list[EvictionKey]:
        """What the kubelet sorts each pod by; where nothing grows that stays until the next kill."""
        if self._eviction_keys is None or self.timeline.grows:
            working_set = self.timeline.pod_working_set
            self._eviction_keys = [
                eviction_key(priority, working_set(index) * _NANO - request)
                for index, (priority, request) in enumerate(self._priorities)
            ]
        return self._eviction_keys

    def _violated_budgets(self, key: PodKey) -> Iterator[ImportanceReason]:
        """The budgets that this pod's end violates; neither kernel nor kubelet checks them."""
        for budget in self._state.budgets:
            if key in budget.pods:
                disrupted = self._disrupted.setdefault(budget.name, set())
                disrupted.add(key)
                if len(disrupted) > budget.allowed:
                    yield ImportanceReason(Importance.BUDGET, budget.name)

    def _add(self, step: SimulationStep) -> SimulationStep:
        if not self._is_still:
            step = replace(step, grown=self.timeline.now)
        self.steps.append(step)
        return step


def _precedence(hit: LimitHit) -> tuple[float, int]:
    return max(hit.time, 0.0), PRECEDENCE.index(hit.mechanism)
