"""The next deaths in words and as a table; timeline.py has the picture of how far away they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.format import count, duration, escape, eta, full_name, mebibytes
from kubectl_qos.present.output import BYTES, NUMBER, Column, column
from kubectl_qos.present.reasons import history_note, killer_notes
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, next_deaths, times_on_node
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node

EVERYWHERE: Final = Scope()
UPPER_BOUND: Final = (
    "distances count the memory of pods: what the node's own processes use makes them shorter"
)


KUBEPODS: Final = (
    "kubepods limit: the memory limit of all pods together: what the node has, less what is reserved"
)


BEFORE: Final = "BEFORE: how many others the same killer ends first; IN counts what they have freed"


class DeathRow(NamedTuple):
    """A death to come on a node; `seconds` until then by the growth that a store of metrics has seen."""

    node: str
    death: NextDeath
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths to come, the nearest first; `state` is that of the node where all are of one."""

    rows: tuple[DeathRow, ...]
    notes: tuple[str, ...]
    state: NodeState | None = None


class NodeDeaths(NamedTuple):
    """All that wait on one node, the nearest first."""

    state: NodeState
    deaths: tuple[NextDeath, ...]


def deaths_on_node(snapshot: Snapshot, node: str) -> NodeDeaths:
    """What waits on one node. Raises InputError where nothing can be said of it."""
    state = state_of_node(snapshot, node)
    return NodeDeaths(state, tuple(next_deaths(state)))


def deaths_on_nodes(
    snapshot: Snapshot, nodes: Sequence[str], scope: Scope = EVERYWHERE, *, only_next: bool = False
) -> Deaths:
    """All that wait on one node, or the next one on each of several, of the pods of a scope.

    With `only_next` also of one node. Raises InputError where nothing can be said of a single node.
    """
    rows, problems, states = [], [], {}
    only_next = only_next or len(nodes) > 1
    for name in nodes:
        try:
            states[name] = state_of_node(snapshot, name)
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        of_scope = {pod.key for pod in states[name].pods if scope.matches(pod.pod)}
        is_whole = len(of_scope) == len(states[name].pods)
        waiting = next_deaths(states[name], 1 if only_next and is_whole else None)
        mine = [death for death in waiting if is_whole or death.key in of_scope]
        rows += _rows(snapshot, name, mine[:1] if only_next else mine)
    rows.sort(key=lambda row: row.death.distance_bytes)
    only = states[nodes[0]] if len(nodes) == 1 else None
    notes = (*mechanism_notes(row.death for row in rows), *state_notes(states), *_history_notes(snapshot))
    return Deaths(tuple(rows), (*problems, *notes), only)


def deaths_of_pods(snapshot: Snapshot, pods: Sequence[Pod]) -> Deaths:
    """What kills some pods. Raises InputError where nothing can be said of their nodes."""
    states = {name: state_of_node(snapshot, name) for name in sorted({pod.node_name for pod in pods})}
    keys, rows = {(pod.namespace, pod.name) for pod in pods}, []
    for name, state in states.items():
        rows += _rows(snapshot, name, deaths_of(state, keys))
    rows.sort(key=lambda row: row.death.distance_bytes)
    notes = (*mechanism_notes(row.death for row in rows), *state_notes(states), *_history_notes(snapshot))
    return Deaths(tuple(rows), notes)


def _rows(snapshot: Snapshot, node: str, deaths: Iterable[NextDeath]) -> list[DeathRow]:
    """Deaths with their times: of the first victim of each killer, as growth says nothing of later ones."""
    times = times_on_node(snapshot, node) if snapshot.history.containers else {}
    keys = ((death, (death.mechanism, death.key, death.container)) for death in deaths)
    return [DeathRow(node, death, None if death.before else times.get(key)) for death, key in keys]


def _history_notes(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.history.containers:
        yield history_note(snapshot.history)


def mechanism_notes(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """What a limit is that no pod has."""
    if any(one.mechanism is Mechanism.KUBEPODS_LIMIT for one in deaths):
        yield KUBEPODS


def state_notes(states: Mapping[str, NodeState]) -> Iterator[str]:
    """What is not known of nodes, and who else kills there."""
    yield from killer_notes({name: state.setup for name, state in states.items()})
    without = sum(state.without_usage for state in states.values())
    if without:
        yield f"{count(without, 'pod')} without usage counted as using nothing"
    if not any(state.own_bytes for state in states.values()):
        yield UPPER_BOUND


def distance(death: NextDeath) -> str:
    """How far away: `+361Mi`, or `now`."""
    return f"+{mebibytes(death.distance_bytes)}" if death.distance_bytes > 0 else "now"


def victim(death: NextDeath) -> str:
    """Who dies: a container as `shop/api-0:app`, a pod, or a process of the node."""
    if not death.key[0] and death.qos is None:
        return f"{escape(death.key[1])} (a process of the node)"
    return full_name(*death.key) + (f":{escape(death.container)}" if death.container else "")


def killed_by(death: NextDeath) -> str:
    """By whom, and why: `own limit 98%`, `kubelet evicts`, `kernel: node full`."""
    if death.mechanism is Mechanism.EVICTION:
        grace = f" after {duration(death.grace_seconds)}" if death.grace_seconds is not None else ""
        return f"kubelet evicts{grace}"
    if death.mechanism is Mechanism.KUBEPODS_LIMIT:
        return "kubepods limit"
    if death.mechanism is Mechanism.NODE:
        return "kernel: node full"
    whose = "own limit" if death.is_own else "pod limit"
    if not death.limit_bytes or death.used_bytes is None:
        return whose
    return f"{whose} {100 * death.used_bytes / death.limit_bytes:.0f}%"


def turn(death: NextDeath) -> str:
    """Whether others die before it by the same killer: `, after 2 other deaths`."""
    return f", after {count(death.before, 'other death')}" if death.before else ""


COLUMNS: Final[tuple[Column[DeathRow], ...]] = (
    column("node", lambda row: row.node, "the node's name", width=12),
    column(
        "distance",
        lambda row: row.death.distance_bytes,
        "how much more memory until then, of the container, the pod, all pods or the node",
        BYTES,
        cell=lambda row: distance(row.death),
        header="IN",
    ),
    column(
        "eta",
        lambda row: None if row.seconds is None else round(row.seconds),
        "when, if memory goes on growing in a straight line (--at, --usage=prometheus)",
        NUMBER,
        field="etaSeconds",
        cell=lambda row: eta(row.seconds) or "-",
    ),
    column(
        "victim", lambda row: victim(row.death), "the container that is killed, or the pod that is evicted"
    ),
    column("by", lambda row: killed_by(row.death), "which limit or which killer"),
    column("frees", lambda row: row.death.frees_bytes, "what the node gets back", BYTES),
    column(
        "before", lambda row: row.death.before, "how many are killed before it by the same killer", NUMBER
    ),
)


def columns(rows: Sequence[DeathRow]) -> list[Column[DeathRow]]:
    """Those of the table: when, only where growth is known; how many before it, only where there are some."""
    shown = {"eta": any(row.seconds for row in rows), "before": any(row.death.before for row in rows)}
    return [one for one in COLUMNS if shown.get(one.key, True)]
