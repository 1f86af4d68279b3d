"""The deaths to come of nodes or pods, the most urgent first (`next`), and the victims of a simulation.

The order of deaths is `NextDeath.urgency` everywhere. Not here: words (present/next_death.py, simulation.py).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kubectl_qos.analysis.pod_table import PodRow, PodRows, kill_order
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep
from kubectl_qos.qos.simulation.next_death import (
    NextDeath,
    deaths_of,
    first_deaths,
    next_deaths,
    times_on_node,
)
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node

EVERYWHERE: Final = Scope()
FEW_NODES: Final = 40
"""Up to so many, the next deaths of all nodes are known at once; else of those that are looked at."""
FAR_PERCENT: Final = 80
"""A limit that is less full is far away, unless something says that it is reached."""


class DeathRow(NamedTuple):
    """A death to come on a node; `seconds` until then by the growth that a store of metrics has seen."""

    node: str
    death: NextDeath
    seconds: float | None = None

    @property
    def own_words(self) -> tuple[str, ...]:
        """Its victim."""
        return ("/".join(self.death.key), self.death.container)

    @property
    def common_words(self) -> tuple[str, ...]:
        """Its node, and what kills."""
        return (self.node, self.death.mechanism.value)

    @property
    def words(self) -> str:
        """Both in one line, in lower case."""
        return " ".join((*self.own_words, *self.common_words)).casefold()

    @property
    def is_far(self) -> bool:
        """Whether it is at an own limit that is not full, not approached, and never ended a container."""
        is_waiting = self.death.killer.picks_among_pods or self.death.precedent or self.seconds is not None
        return not is_waiting and self.death.fullness * 100 < FAR_PERCENT


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths to come, the most urgent first; `state` is that of the node where all are of one.

    `pods` and `states` are the pods and nodes whose deaths these are; `problems` say why those of others, or
    all of them, are unknown. `others_first` are nodes where no limit of these pods is near, and others die
    first.
    """

    rows: tuple[DeathRow, ...]
    snapshot: Snapshot
    pods: Sequence[Pod] = ()
    states: Mapping[str, NodeState] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    state: NodeState | None = None
    others_first: tuple[str, ...] = ()


class NodeDeaths(NamedTuple):
    """All that wait on one node, the most urgent first."""

    state: NodeState
    deaths: tuple[NextDeath, ...]


def deaths_on_node(snapshot: Snapshot, node: str) -> NodeDeaths:
    """Return what waits on one node. Raises InputError where nothing can be said of it."""
    state = state_of_node(snapshot, node)
    return NodeDeaths(state, tuple(next_deaths(state)))


def deaths_on_nodes(
    snapshot: Snapshot, nodes: Sequence[str], scope: Scope = EVERYWHERE, *, only_next: bool = False
) -> Deaths:
    """Return all that wait on one node, or the next one on each of several, of the pods of a scope.

    With `only_next` also of one node. Raises InputError where nothing can be said of a single node.
    """
    rows, problems, states = list[DeathRow](), list[str](), dict[str, NodeState]()
    others_first = list[str]()
    profiles: ProfileCache = {}
    only_next = only_next or len(nodes) > 1
    for name in nodes:
        try:
            state = state_of_node(snapshot, name, profiles=profiles)
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        of_scope = {pod.key for pod in state.pods if scope.matches(pod.pod)}
        is_whole = len(of_scope) == len(state.pods)
        waiting = (first_deaths if only_next and is_whole else next_deaths)(state, contests=True)
        states[name] = replace(state)  # A copy: what was added up of it is let go.
        deaths = [death for death in waiting if is_whole or death.key in of_scope or not death.has_victim]
        rows += death_rows(snapshot, name, deaths[:1] if only_next else deaths)
        others_first += [name] if waiting and not deaths else []
    pods = [pod for name in states for pod in snapshot.by_node().get(name, ()) if scope.matches(pod)]
    alone = states[nodes[0]] if len(nodes) == 1 else None
    return Deaths(_in_order(rows), snapshot, pods, states, tuple(problems), alone, tuple(others_first))


def first_deaths_of(snapshot: Snapshot, rows: PodRows) -> dict[str, Sequence[NextDeath]]:
    """Return the first deaths of the nodes of these rows, by the node; nothing where they are many."""
    names, deaths = [name for name in rows.nodes if name], dict[str, Sequence[NextDeath]]()
    for name in names if len(names) <= FEW_NODES else ():
        with suppress(InputError):
            deaths[name] = first_deaths(state_of_node(snapshot, name))
    return deaths


def by_node(
    rows: PodRows, deaths: Mapping[str, Sequence[NextDeath]]
) -> Callable[[PodRow], tuple[object, ...]]:
    """Return a sort key that brings rows together by node, the nodes by the first of their deaths.

    Nodes without a known death come after the others, by the score of their first pod. Pods without a node
    come last.
    """
    first = {name: on_node[0].urgency for name, on_node in deaths.items() if on_node}
    places = {
        name: (not name, name not in first, first[name] if name in first else kill_order(node.rows[0]), name)
        for name, node in rows.nodes.items()
        if node.rows
    }
    return lambda row: places[row.node]


def deaths_of_pods(snapshot: Snapshot, pods: Sequence[Pod]) -> Deaths:
    """Return what kills some pods. Raises InputError where nothing can be said of their nodes."""
    states = {name: state_of_node(snapshot, name) for name in sorted({pod.node_name for pod in pods})}
    keys, rows = {(pod.namespace, pod.name) for pod in pods}, list[DeathRow]()
    for name, state in states.items():
        rows += death_rows(snapshot, name, deaths_of(state, keys, contests=True))
    return Deaths(_in_order(rows), snapshot, pods, states)


def without_far(deaths: Deaths) -> Deaths:
    """Leave out own limits that are far away: not full, not approached, never the end of a container.

    The first death stays whatever it is.
    """
    return replace(deaths, rows=tuple(row for row in deaths.rows if row is deaths.rows[0] or not row.is_far))


def foremost(deaths: Sequence[NextDeath], most: int) -> list[NextDeath]:
    """So many deaths in their order: the next one, the killers of the whole node, then earlier ones."""
    of_node = [death for death in deaths if death.killer.picks_among_pods]
    chosen = list(dict.fromkeys([*deaths[:1], *of_node, *deaths[1:most]]))[:most]
    return sorted(chosen, key=deaths.index)


def deaths_of_pod(snapshot: Snapshot, pod: Pod) -> NodeDeaths | None:
    """Return what kills a pod, with its rivals; None where nothing is known of its node, or it has ended."""
    key = pod.namespace, pod.name
    try:
        state = state_of_node(snapshot, pod.node_name)
    except InputError:
        return None
    if all(running.key != key for running in state.pods):
        return None
    return NodeDeaths(state, tuple(deaths_of(state, {key}, contests=True)))


def _in_order(rows: Iterable[DeathRow]) -> tuple[DeathRow, ...]:
    return tuple(sorted(rows, key=lambda row: row.death.urgency))


def death_rows(snapshot: Snapshot, node: str, deaths: Iterable[NextDeath]) -> list[DeathRow]:
    """Deaths with their times, which count from the present usage even where the snapshot has peaks."""
    times = times_on_node(snapshot, node) if snapshot.history.stat else {}
    keys = ((death, (death.mechanism, death.key, death.container)) for death in deaths)
    return [
        DeathRow(node, death, None if death.before else times.get(key, death.seconds)) for death, key in keys
    ]


@dataclass(frozen=True, slots=True)
class VictimRow:
    """A step, or the first victim of a mechanism: its pod, and what stays when values change.

    `is_important` marks the first step that hits an important pod; `evicts` counts as the kubelet does.
    `is_reached` is False for what would follow. What is free is an upper bound if it `is_bound`.
    """

    place: int
    key: PodKey
    identity: Hashable
    step: SimulationStep | None = None
    reach: MechanismDistance | None = None
    evicts: bool = False
    is_important: bool = False
    is_reached: bool = True
    is_bound: bool = False


def victim_rows(simulation: Simulation, whole: Simulation | None = None) -> list[VictimRow]:
    """The steps in order, then those that would follow in the `whole` simulation, which begins with them."""
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
    """Whether a simulation of more memory hits the same victims first."""
    steps = whole.steps[: len(simulation.steps)]
    return list(map(identity, steps)) == list(map(identity, simulation.steps))


def reach_rows(simulation: Simulation) -> list[VictimRow]:
    """The first victim of each mechanism, the nearest first."""
    return [
        VictimRow(place, reach.key, reach.mechanism, reach=reach)
        for place, reach in enumerate(simulation.distances, start=1)
    ]


def identity(step: SimulationStep | None) -> Hashable:
    """Return what stays the same of a step when values change."""
    return step and (step.mechanism, step.key, step.container)
