"""The next deaths in words and as a table; timeline.py has the picture of how far away they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_qos.analysis.deaths import DeathRow, Deaths, contested_deaths
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present.crash_loops import loop_notes
from kubectl_qos.present.format import count, duration, escape, eta, first_few, full_name, mebibytes
from kubectl_qos.present.killers import WORDS
from kubectl_qos.present.output import BYTES, NUMBER, Column, Line, Section, column
from kubectl_qos.present.reasons import (
    PAGE_CACHE,
    WITHOUT_USAGE,
    history_note,
    killer_notes,
    own_memory_notes,
    unmeasured_notes,
)
from kubectl_qos.qos.eviction import Due, lacks_stats
from kubectl_qos.qos.killers.badness import Contender
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import NodeState

AT_MOST: Final = "at most "
_NEAR: Final = 0.9
"""The part of a limit from which on it matters what a working set consists of."""
_MOST: Final = 5
_DUE: Final = {
    Due.NO: "",
    Due.NOW: ", or pressure just ended",
    Due.MAYBE: " (now, if MemoryPressure has not ended)",
}
DIES_NEXT: Final = "Dies next"
BEFORE: Final = "BEFORE: how many others the same killer ends first; IN counts what they have freed"
NO_STATS: Final = "no container runs, so the kubelet has no stats of the pod"


def notes(deaths: Deaths) -> Iterator[str]:
    """What is unknown, why, and what the distances rest on; without rows the first note says why."""
    snapshot, states = deaths.snapshot, deaths.states
    yield from unmeasured_notes(snapshot, states)
    yield from capacity_notes(states)
    yield from deaths.problems
    releases = {name: state.setup.release for name, state in states.items()}
    yield from loop_notes(deaths.pods, snapshot.usage, releases)
    if deaths.rows:
        yield from mechanism_notes(row.death for row in deaths.rows)
        yield from state_notes(states, snapshot.usage)
        near = [
            victim(row.death)
            for row in deaths.rows
            if states[row.node].by_working_set and row.death.is_own and row.death.limit_bytes
            if (row.death.used_bytes or 0) >= _NEAR * row.death.limit_bytes
        ]
        if near:
            yield f"{first_few(near)}: {PAGE_CACHE}"
        evicting = {row.node for row in deaths.rows if row.death.killer.evicts}
        unmeasured = (pod for pod in snapshot.pods if (pod.namespace, pod.name) not in snapshot.usage)
        first = [pod for pod in unmeasured if pod.spec.node_name in evicting and lacks_stats(pod)]
        if first:
            names = [full_name(pod.namespace, pod.name) for pod in first]
            yield f"kubelet evicts: {first_few(names)} before all others, which frees nothing: {NO_STATS}"
        conditions = list(filter(None, (condition(row.death) for row in deaths.rows)))
        yield from conditions[:_MOST]
        if len(conditions) > _MOST:
            yield f"{len(conditions) - _MOST} more deaths may hit another victim: -o json has whom"
        if snapshot.history.containers:
            yield history_note(snapshot.history)
        starting = {key for state in states.values() for key in state.growth.starting}
        if starting:
            names = [f"{full_name(*pod)}:{escape(name)}" for pod, name in sorted(starting)]
            yield f"{first_few(names)}: growth in the first minutes is that of a start, not a trend"


def nothing(deaths: Deaths) -> str:
    """Say why there is no row."""
    why = "no death is known: no limit, no threshold and no killer of a node reaches these pods"
    return next(notes(deaths), others_first_text(deaths.others_first) or why)


def others_first_text(nodes: Iterable[str]) -> str:
    """Say that pods are not those which die first on their nodes; empty without such a node."""
    names = sorted(escape(name) or "the node" for name in nodes)
    return f"no limit of these pods is near, and on {first_few(names)} others die first" if names else ""


def capacity_notes(states: Mapping[str, NodeState]) -> Iterator[str]:
    """Say of which nodes with pods the memory is unknown, and what is known without it."""
    unsized = (name for name, state in states.items() if state.pods and not state.capacity_bytes)
    names = [escape(name) or "the node" for name in unsized]
    if names:
        yield (
            f"the memory capacity of {first_few(names)} is unknown: only limits of containers and pods,"
            " and evictions that are due, are known (--node-memory 16Gi assumes one)"
        )


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
        what = (
            "pod that alone grows is evicted"
            if death.killer.evicts
            else "container that alone grows is killed"
        )
        parts.append(f"a {what} itself: {first_few(sizes)}")
    return f"{killed_by(death)}: {'; '.join(parts)}" if parts else ""


def dies_next(snapshot: Snapshot, pod: Pod) -> Section | None:
    """What ends a pod, the first of it as the answer; None where nothing is known to."""
    deaths = contested_deaths(snapshot, pod)
    if not deaths:
        return None
    lines = [Line(how(death)) for death in deaths[1:]]
    rivals = (condition(death._replace(growing=())) for death in deaths if death.grown_bytes is None)
    return Section(DIES_NEXT, how(deaths[0]), (*lines, *map(Line, filter(None, rivals))))


def _up(size_bytes: int) -> str:
    """Whole Mi, rounded up."""
    return mebibytes(size_bytes + (1 << 20) - 1)


def mechanism_notes(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """What a limit is that no pod has, each once."""
    notes = {death.mechanism: WORDS[death.mechanism].note for death in deaths}
    yield from filter(None, notes.values())


def state_notes(states: Mapping[str, NodeState], usage: Mapping[PodKey, PodUsage]) -> Iterator[str]:
    """What is not known of nodes, and who else kills there."""
    yield from killer_notes({name: state.setup for name, state in states.items()})
    without = sum(state.without_usage for state in states.values() if not state.is_unmeasured)
    if without:
        yield f"{count(without, 'pod')} {WITHOUT_USAGE}"
    own = {name: state.own_bytes for name, state in states.items() if state.capacity_bytes}
    yield from own_memory_notes(own, usage)


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
    by = WORDS[death.mechanism].by
    if death.killer.evicts:
        grace = f" after {duration(death.grace_seconds)}" if death.grace_seconds is not None else ""
        return f"{by}{grace}{_DUE[death.due]}{grown}"
    if death.killer.picks_among_pods:
        return f"{by}{grown}"
    whose = WORDS[Mechanism.CONTAINER_LIMIT].by if death.is_own else by
    if not death.limit_bytes or death.used_bytes is None:
        return whose
    return f"{whose} {100 * death.used_bytes / death.limit_bytes:.0f}%{grown}"


def _by(death: NextDeath) -> str:
    """By whom, and what says that it comes to that."""
    return f"{killed_by(death)}{f', {death.precedent.value}' if death.precedent else ''}"


def foretold(death: NextDeath, node: str = "", *, is_first: bool = True) -> str:
    """Who dies, when, by whom and how far away that is, the first death of its node or another."""
    where = f" on {escape(node)}" if node else ""
    verb, rest = "is evicted" if death.killer.evicts else "dies", f": {_by(death)}"
    if death.distance_bytes <= 0:
        return f"{victim(death)}{where} {verb} now{rest}"
    if death.seconds is not None:
        return f"{victim(death)}{where} {verb} in {eta(death.seconds)}{rest}, {distance(death)}"
    if is_first:
        return f"{victim(death)}{where} {verb} next{rest}, {distance(death)}"
    return f"{victim(death)}{where} {verb} at {distance(death)}{rest}{turn(death)}"


def how(death: NextDeath) -> str:
    """By whom, in which turn, how far away and when: `own limit 98%, +2Mi, ~38 s`."""
    return ", ".join(filter(None, (f"{_by(death)}{turn(death)}", distance(death), eta(death.seconds))))


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
    column(
        "full",
        lambda row: round(100 * row.death.fullness),
        "how much of the ceiling is in use, at which the killer acts",
        NUMBER,
        field="fullnessPercent",
        cell=lambda row: f"{100 * row.death.fullness:.0f}%{'+' if row.death.is_upper_bound else ''}",
    ),
    column("by", lambda row: _by(row.death), "which limit or which killer"),
    column("frees", lambda row: row.death.frees_bytes, "what the node gets back", BYTES),
    column(
        "before", lambda row: row.death.before, "how many are killed before it by the same killer", NUMBER
    ),
)


def columns(rows: Sequence[DeathRow]) -> list[Column[DeathRow]]:
    """Those of the table: when, only where growth is known; how many before it, only where there are some."""
    shown = {"eta": any(row.seconds for row in rows), "before": any(row.death.before for row in rows)}
    return [column for column in COLUMNS if shown.get(column.key, True)]
