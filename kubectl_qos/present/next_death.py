"""The next deaths in words and as a table; timeline.py has the picture of how far away they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present.crash_loops import loop_notes
from kubectl_qos.present.format import count, duration, escape, eta, first_few, full_name, mebibytes
from kubectl_qos.present.output import BYTES, NUMBER, Column, column
from kubectl_qos.present.reasons import (
    WITHOUT_USAGE,
    history_note,
    killer_notes,
    own_memory_notes,
    unmeasured_notes,
)
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.engine import Contender
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, next_deaths, times_on_node
from kubectl_qos.qos.simulation.node_state import Growth, NodeState, state_of_node

EVERYWHERE: Final = Scope()
AT_MOST: Final = "at most "
KUBEPODS: Final = (
    "kubepods limit: the memory limit of all pods together: what the node has, less what is reserved"
)


BEFORE: Final = "BEFORE: how many others the same killer ends first; IN counts what they have freed"


class DeathRow(NamedTuple):
    """A death to come on a node; `seconds` until then by the growth that a store of metrics has seen."""

    node: str
    death: NextDeath
    seconds: float | None = None


class Deaths(NamedTuple):
    """Deaths to come, the nearest first; `state` is that of the node where all are of one.

    Without rows the first of the notes, if any, says why.
    """

    rows: tuple[DeathRow, ...]
    notes: tuple[str, ...]
    state: NodeState | None = None

    @property
    def nothing(self) -> str:
        """Say why there is no row."""
        return next(
            iter(self.notes),
            "no death is known: no limit, no threshold and no killer of a node reaches these pods",
        )


class NodeDeaths(NamedTuple):
    """All that wait on one node, the nearest first."""

    state: NodeState
    deaths: tuple[NextDeath, ...]


def deaths_on_node(snapshot: Snapshot, node: str, growth: Growth | None = None) -> NodeDeaths:
    """What waits on one node. Raises InputError where nothing can be said of it."""
    state = state_of_node(snapshot, node)
    return NodeDeaths(state, tuple(next_deaths(replace(state, growth=growth or state.growth))))


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
        waiting = next_deaths(states[name], 1 if only_next and is_whole else None, contests=True)
        mine = [death for death in waiting if is_whole or death.key in of_scope]
        rows += _rows(snapshot, name, mine[:1] if only_next else mine)
    only = states[nodes[0]] if len(nodes) == 1 else None
    pods = [pod for name in states for pod in snapshot.by_node().get(name, ()) if scope.matches(pod)]
    return _deaths(snapshot, rows, states, pods, problems)._replace(state=only)


def deaths_of_pods(snapshot: Snapshot, pods: Sequence[Pod]) -> Deaths:
    """What kills some pods. Raises InputError where nothing can be said of their nodes."""
    states = {name: state_of_node(snapshot, name) for name in sorted({pod.node_name for pod in pods})}
    keys, rows = {(pod.namespace, pod.name) for pod in pods}, []
    for name, state in states.items():
        rows += _rows(snapshot, name, deaths_of(state, keys, contests=True))
    return _deaths(snapshot, rows, states, pods)


def _deaths(
    snapshot: Snapshot,
    rows: list[DeathRow],
    states: Mapping[str, NodeState],
    pods: Iterable[Pod],
    problems: Sequence[str] = (),
) -> Deaths:
    rows.sort(key=lambda row: row.death.distance_bytes)
    releases = {name: state.setup.release for name, state in states.items()}
    notes = [*unmeasured_notes(snapshot, states), *problems, *loop_notes(pods, snapshot.usage, releases)]
    if rows:
        notes += [*mechanism_notes(row.death for row in rows), *state_notes(states, snapshot.usage)]
        notes += filter(None, (condition(row.death) for row in rows))
        notes += [history_note(snapshot.history)] if snapshot.history.containers else []
    return Deaths(tuple(rows), tuple(notes))


def _rows(snapshot: Snapshot, node: str, deaths: Iterable[NextDeath]) -> list[DeathRow]:
    """Deaths with their times: of the first victim of each killer, as growth says nothing of later ones."""
    times = times_on_node(snapshot, node) if snapshot.history.containers else {}
    keys = ((death, (death.mechanism, death.key, death.container)) for death in deaths)
    return [DeathRow(node, death, None if death.before else times.get(key)) for death, key in keys]


def condition(death: NextDeath) -> str:
    """What decides whether it is another victim, empty where nothing does."""

    def named(other: Contender) -> str:
        return victim(death._replace(key=other.key, container=other.container, qos=other.qos_class))

    parts, rival = [], death.rival
    if rival is not None:
        size = _up(rival.size_bytes)
        parts.append(f"{victim(death)} if one of its processes holds {size}, else {named(rival)}")
    if death.growing:
        sizes = [f"{named(other)} from {_up(other.size_bytes)}" for other in death.growing]
        parts.append(f"a container that alone grows is killed itself: {first_few(sizes)}")
    return f"{killed_by(death)}: {'; '.join(parts)}" if parts else ""


def conditions(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """What decides whether the kernel chooses a pod; nothing where its node is not known."""
    with suppress(InputError):
        state = state_of_node(snapshot, pod.node_name)
        for death in deaths_of(state, {(pod.namespace, pod.name)}, contests=True):
            if death.grown_bytes is not None:
                yield f"{distance(death)} {killed_by(death)}"
            elif death.rival is not None:
                yield condition(death._replace(growing=()))


def _up(size_bytes: int) -> str:
    """Whole Mi, rounded up."""
    return mebibytes(size_bytes + (1 << 20) - 1)


def mechanism_notes(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """What a limit is that no pod has."""
    if any(one.mechanism is Mechanism.KUBEPODS_LIMIT for one in deaths):
        yield KUBEPODS


def state_notes(states: Mapping[str, NodeState], usage: Mapping[PodKey, PodUsage]) -> Iterator[str]:
    """What is not known of nodes, and who else kills there."""
    yield from killer_notes({name: state.setup for name, state in states.items()})
    without = sum(state.without_usage for state in states.values() if not state.is_unmeasured)
    if without:
        yield f"{count(without, 'pod')} {WITHOUT_USAGE}"
    yield from own_memory_notes({name: state.own_bytes for name, state in states.items()}, usage)


def distance(death: NextDeath) -> str:
    """How far away: `+361Mi`, `at most +361Mi`, or `now`."""
    if death.distance_bytes <= 0:
        return "now"
    return f"{AT_MOST if death.is_upper_bound else ''}+{mebibytes(death.distance_bytes)}"


def victim(death: NextDeath) -> str:
    """Who dies: a container as `shop/api-0:app`, a pod, or a process of the node."""
    if not death.key[0] and death.qos is None:
        return f"{escape(death.key[1])} (a process of the node)"
    return full_name(*death.key) + (f":{escape(death.container)}" if death.container else "")


def killed_by(death: NextDeath) -> str:
    """By whom, and why: `own limit 98%`, `kubelet evicts`, `kernel: node full`."""
    grown = f", if it alone grows: from {_up(death.grown_bytes)}" if death.grown_bytes is not None else ""
    if death.mechanism is Mechanism.EVICTION:
        grace = f" after {duration(death.grace_seconds)}" if death.grace_seconds is not None else ""
        return f"kubelet evicts{grace}{', or pressure just ended' if death.is_reported else ''}"
    if death.mechanism is Mechanism.KUBEPODS_LIMIT:
        return f"kubepods limit{grown}"
    if death.mechanism is Mechanism.NODE:
        return f"kernel: node full{grown}"
    whose = "own limit" if death.is_own else "pod limit"
    if not death.limit_bytes or death.used_bytes is None:
        return whose
    return f"{whose} {100 * death.used_bytes / death.limit_bytes:.0f}%{grown}"


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
