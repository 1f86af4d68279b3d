"""Deaths to come of nodes or pods, most urgent first (`next`), and victims of a simulation.

`NextDeath.urgency` is the order everywhere. Not here: words (present/next_death.py, simulation.py).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.analysis.pod_table import PodRow, PodRows, kill_order
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.killers import BY_RANK
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep
from kubectl_qos.qos.simulation.next_death import (
    FAR_PERCENT,
    NextDeath,
    deaths_of,
    first_deaths,
    next_deaths,
    repeated_deaths,
    seconds_by_victim,
)
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node

EVERYWHERE: Final = Scope()
FEW_NODES: Final = 40
"""With more nodes than this, next deaths are computed only for the nodes on the screen."""


class DeathRow(NamedTuple):
    """A death to come on a node; `seconds` until then at the growth seen in the metrics history."""

    node: str
    death: NextDeath
    seconds: float | None = None

    @property
    def own_words(self) -> tuple[str, ...]:
        """Pod and container."""
        return ("/".join(self.death.key), self.death.container)

    @property
    def common_words(self) -> tuple[str, ...]:
        """Node and mechanism."""
        return (self.node, self.death.mechanism)

    @property
    def name(self) -> str:
        """Name of the pod, "" without a victim."""
        return self.death.key[1]

    @property
    def words(self) -> str:
        """Filter text, in lower case."""
        return " ".join((*self.own_words, *self.common_words)).casefold()

    @property
    def is_far(self) -> bool:
        """Whether it is at an own limit that is not full, is not approached, and never killed a container."""
        is_waiting = self.death.killer.is_node_wide or self.death.precedent or self.seconds is not None
        return not is_waiting and self.death.fullness * 100 < FAR_PERCENT

    @property
    def is_expected(self) -> bool:
        """Whether there is more evidence for it than a ceiling that is fuller than others."""
        death = self.death
        is_full = death.fullness * 100 >= FAR_PERCENT or death.distance_bytes <= 0
        return is_full or self.seconds is not None or death.precedent is not None


class Deaths(NamedTuple):
    """Deaths to come, most urgent first."""

    rows: tuple[DeathRow, ...]
    snapshot: Snapshot
    pods: Sequence[Pod] = ()
    """Pods that were examined."""
    states: Mapping[str, NodeState] = {}
    """Nodes that were examined."""
    problems: tuple[str, ...] = ()
    """Why nodes or pods were left out."""
    state: NodeState | None = None
    """State of the only node."""
    others_first: tuple[str, ...] = ()
    """Nodes where no limit of these pods is near, and other pods die first."""


class NamedDeaths(NamedTuple):
    """The deaths of several named pods of a node.

    `others` has the first death of each other pod, and its death at its own limit if that comes before
    `first` when the pod grows alone. `on_full_node` is the kernel's kill on a full node, if `first` is not of
    that pod.
    """

    node: str
    first: NextDeath
    others: tuple[tuple[NextDeath, NextDeath | None], ...]
    on_full_node: NextDeath | None


class NodeDeaths(NamedTuple):
    """The deaths to come on one node, most urgent first."""

    state: NodeState
    deaths: tuple[NextDeath, ...]


def deaths_on_node(snapshot: Snapshot, node: str) -> NodeDeaths:
    """Return the deaths to come on a node. Raises InputError if its memory is unknown."""
    state = state_of_node(snapshot, node)
    return NodeDeaths(state, tuple(next_deaths(state)))


def deaths_on_nodes(
    snapshot: Snapshot, nodes: Sequence[str], scope: Scope = EVERYWHERE, *, only_next: bool = False
) -> Deaths:
    """Return the deaths in scope: all of a single node, or the next one of each node (`only_next`).

    Raises InputError if there is a single node, and its memory is unknown.
    """
    rows, problems, states = list[DeathRow](), list[str](), dict[str, NodeState]()
    others_first = list[str]()
    profiles = ProfileCache()
    only_next = only_next or len(nodes) > 1
    for name in nodes:
        try:
            state = state_of_node(snapshot, name, profiles=profiles)
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        running = [pod.pod for pod in state.pods] + [killed.pod for killed in state.killed]
        of_scope = {pod.key for pod in running if scope.matches(pod)}
        is_whole = all(pod.key in of_scope for pod in running)
        find_deaths = first_deaths if only_next and is_whole else next_deaths
        waiting = find_deaths(state, contests=True)
        # A copy drops the cached values, which take memory.
        states[name] = state.outline() if len(nodes) > 1 else replace(state)
        deaths = [death for death in waiting if is_whole or death.key in of_scope or not death.has_victim]
        rows += death_rows(snapshot, name, deaths[:1] if only_next else deaths)
        others_first += [name] if waiting and not deaths else []
    examined = [pod for name in states for pod in snapshot.by_node().get(name, ()) if scope.matches(pod)]
    alone = states[nodes[0]] if len(nodes) == 1 else None
    return Deaths(_in_order(rows), snapshot, examined, states, tuple(problems), alone, tuple(others_first))


def deaths_of_named(deaths: Deaths) -> Iterator[NamedDeaths]:
    """Yield who dies first on each node that has several of the examined pods."""
    on_nodes, by_distance = Counter(pod.node_name for pod in deaths.pods), attrgetter("distance_bytes")
    for node in [name for name, pods in on_nodes.items() if pods > 1]:
        on_node = [row.death for row in deaths.rows if row.node == node]
        named = {death.key for death in on_node}
        certain = [
            death
            for death in on_node
            if death.grown_bytes is None and (death.unless is None or death.unless.key not in named)
        ]
        if not certain:
            continue
        first, nearest, alone = certain[0], dict[PodKey, NextDeath](), dict[PodKey, NextDeath]()
        for death in certain:
            if death.key != first.key:
                nearest.setdefault(death.key, death)
        for death in sorted(on_node, key=by_distance) if first.killer.is_node_wide else ():
            if not death.killer.is_node_wide and 0 < death.distance_bytes < first.distance_bytes:
                alone.setdefault(death.key, death)
        full = min((death for death in certain if death.killer.has_ranks), key=by_distance, default=first)
        others = tuple((death, alone.get(key)) for key, death in nearest.items())
        yield NamedDeaths(node, first, others, full if full.key != first.key else None)


def first_deaths_of(snapshot: Snapshot, rows: PodRows) -> dict[str, Sequence[NextDeath]]:
    """Return the first deaths on each node of these rows; empty if there are many nodes."""
    names, deaths = [name for name in rows.nodes if name], dict[str, Sequence[NextDeath]]()
    for name in names if len(names) <= FEW_NODES else ():
        with suppress(InputError):
            deaths[name] = first_deaths(state_of_node(snapshot, name), (BY_RANK,))
    return deaths


def by_node(
    rows: PodRows, deaths: Mapping[str, Sequence[NextDeath]]
) -> Callable[[PodRow], tuple[object, ...]]:
    """Return a sort key that groups rows by node; nodes are sorted by the urgency of their first death.

    Nodes without a known death follow, by the score of their first pod. Pods without a node are last.
    """
    first = {name: on_node[0].urgency for name, on_node in deaths.items() if on_node}
    places = {
        name: (not name, name not in first, first[name] if name in first else kill_order(node.rows[0]), name)
        for name, node in rows.nodes.items()
        if node.rows
    }
    return lambda row: places[row.node]


def deaths_of_pods(snapshot: Snapshot, pods: Sequence[Pod]) -> Deaths:
    """Return the deaths of these pods. Raises InputError if the memory of a node is unknown."""
    states = {name: state_of_node(snapshot, name) for name in sorted({pod.node_name for pod in pods})}
    keys, rows = {pod.key for pod in pods}, list[DeathRow]()
    for name, state in states.items():
        rows += death_rows(snapshot, name, deaths_of(state, keys, contests=True))
    return Deaths(_in_order(rows), snapshot, pods, states)


def without_far(rows: Sequence[DeathRow]) -> tuple[DeathRow, ...]:
    """Drop far own limits, except the first death."""
    return tuple(row for row in rows if row is rows[0] or not row.is_far)


def most_important(deaths: Sequence[NextDeath], most: int) -> list[NextDeath]:
    """Choose up to `most` deaths: the next one, the killers of the whole node, then the most urgent."""
    of_node = [death for death in deaths if death.killer.is_node_wide]
    chosen = list(dict.fromkeys([*deaths[:1], *of_node, *deaths[1:most]]))[:most]
    return sorted(chosen, key=deaths.index)


def deaths_of_pod(state: NodeState | None, pod: Pod) -> NodeDeaths | None:
    """Return a pod's deaths with its rivals; None if its node is unknown, or it has ended.

    Those at limits that killed it once come before deaths that follow others.
    """
    if state is None or all(running.key != pod.key for running in state.pods):
        return None
    deaths = deaths_of(state, {pod.key}, contests=True)
    killed = [death for death in repeated_deaths(state) if death.key == pod.key and death not in deaths]
    return NodeDeaths(state, tuple(sorted([*deaths, *killed], key=attrgetter("is_later"))))


def _in_order(rows: Iterable[DeathRow]) -> tuple[DeathRow, ...]:
    return tuple(sorted(rows, key=lambda row: row.death.urgency))


def death_rows(snapshot: Snapshot, node: str, deaths: Iterable[NextDeath]) -> list[DeathRow]:
    """Return deaths with their times, which count from present usage even if the snapshot has peaks."""
    times = seconds_by_victim(snapshot, node) if snapshot.history.stat else {}
    keys = ((death, (death.mechanism, death.key, death.container)) for death in deaths)
    return [
        DeathRow(node, death, None if death.before else times.get(key, death.seconds)) for death, key in keys
    ]


class VictimRow(msgspec.Struct, frozen=True):
    """A step of a simulation, or the first victim of a mechanism."""

    place: int
    key: PodKey
    identity: Hashable
    """Stays the same when values change."""
    step: SimulationStep | None = None
    reach: MechanismDistance | None = None
    evicts: bool = False
    """Whether the simulation is one of eviction."""
    is_important: bool = False
    """The first step that hits an important pod."""
    is_reached: bool = True
    """False for steps beyond the requested memory."""
    is_bound: bool = False
    """Free memory is an upper bound."""


def victim_rows(simulation: Simulation, whole: Simulation | None = None) -> list[VictimRow]:
    """Return the steps of a simulation, then the further steps of the `whole` one."""
    shown, reached = whole or simulation, len(simulation.steps)
    first, evicts = shown.first_important, simulation.scenario.eviction
    return [
        VictimRow(
            place,
            step.key,
            identity(step),
            step,
            evicts=evicts,
            is_important=place == first,
            is_reached=place <= reached,
            is_bound=shown.is_upper_bound,
        )
        for place, step in enumerate(shown.steps, start=1)
    ]


def begins_with(whole: Simulation, simulation: Simulation) -> bool:
    """Return whether a simulation of more memory hits the same victims first."""
    steps = whole.steps[: len(simulation.steps)]
    return list(map(identity, steps)) == list(map(identity, simulation.steps))


def reach_rows(simulation: Simulation) -> list[VictimRow]:
    """Return the first victim of each mechanism, nearest first; of two own limits the nearer one."""
    nearest: dict[Hashable, MechanismDistance] = {}
    for reach in simulation.distances:
        nearest.setdefault((reach.key, reach.container) if reach.is_own else reach.mechanism, reach)
    places = enumerate(nearest.values(), start=1)
    return [VictimRow(place, reach.key, reach.mechanism, reach=reach) for place, reach in places]


def identity(step: SimulationStep | None) -> Hashable:
    """Return a key of a step that stays the same when values change."""
    return step and (step.mechanism, step.key, step.container)
