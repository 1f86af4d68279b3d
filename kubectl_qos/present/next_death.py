"""The next deaths in words and as a table; timeline.py draws how far away they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_qos.analysis.deaths import DeathRow, Deaths, NodeDeaths, deaths_of_named
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.kubelet import hugepages_bytes
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present import list_notes
from kubectl_qos.present.format import (
    UNKNOWN,
    binary,
    count,
    duration,
    escape,
    eta,
    full_name,
    mebibytes,
    percent,
    rounded,
)
from kubectl_qos.present.killers import WORDS, actor, killer_name
from kubectl_qos.present.output import BYTES, NUMBER, Column, Section, column, sentences
from kubectl_qos.present.reasons import cache_text
from kubectl_qos.present.restart_notes import loop_notes
from kubectl_qos.qos.eviction import Due, evictable_capacity, evicts_for_memory, lacks_stats
from kubectl_qos.qos.killers import EVICTING
from kubectl_qos.qos.killers.killer import Contender
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import CeilingScope
from kubectl_qos.qos.simulation.next_death import FAR_PERCENT, NextDeath
from kubectl_qos.qos.simulation.node_state import NodeState

AT_MOST: Final = "at most "
_NEAR: Final = 0.9
"""The fraction of a limit from which on the parts of a working set matter."""
_MOST: Final = 5
_DUE: Final = {
    Due.NO: "",
    Due.NOW: ", unless pressure just ended",
    Due.MAYBE: " (pressure ended, MemoryPressure stays up to 5 min)",
}
ITS_DEATH: Final = "Its death"
_UNKNOWN_VICTIM: Final = "unknown"
BEFORE: Final = "BEFORE: how many others the same killer ends first; IN includes the memory that they free"
KUBELET_CHECKS: Final = f"the kubelet checks every {EVICTING.delay_seconds} s"
NO_STATS: Final = "no container is running, so the kubelet has no stats for the pod"


def notes(deaths: Deaths) -> Iterator[str]:
    """Yield what is unknown, why, and what distances are based on; without rows the first note says why."""
    snapshot, states = deaths.snapshot, deaths.states
    if deaths.rows and deaths.state is not None and not any(row.is_expected for row in deaths.rows):
        yield f"everything is below {FAR_PERCENT} %, and growth is unknown: whatever grows first dies first"
    yield from list_notes.unmeasured_notes(snapshot, states)
    yield from capacity_notes(states)
    yield from deaths.problems
    setups = {name: state.setup for name, state in states.items()}
    yield from loop_notes(deaths.pods, snapshot.usage, setups)
    if deaths.rows:
        yield from mechanism_notes(row.death for row in deaths.rows)
        yield from state_notes(states, snapshot.usage)
        yield from _other_pressure(snapshot, states)
        near = dict[str, list[str]]()
        for death in (row.death for row in deaths.rows if row.death.is_own):
            if death.limit_bytes and (death.used_bytes or 0) >= _NEAR * death.limit_bytes:
                text = cache_text(snapshot.usage.get(death.key), death.container)
                near.setdefault(text, []).append(victim(death))
        yield from (f"{first_few(victims)}: {text}" for text, victims in near.items() if text)
        evicting = {row.node for row in deaths.rows if row.death.killer.evicts}
        unmeasured = (pod for pod in snapshot.pods if pod.key not in snapshot.usage)
        first = [pod for pod in unmeasured if pod.spec.node_name in evicting and lacks_stats(pod)]
        if first:
            names = [full_name(pod.namespace, pod.name) for pod in first]
            yield f"the kubelet evicts {first_few(names)} before all others, which frees nothing: {NO_STATS}"
        yield from victim_notes(deaths.rows)
        yield from _late_kubelet(deaths)
        on_nodes = ((name, states[name]) for name in evicting)
        yield from list_notes.eviction_notes(
            {
                name: state.thresholds.node_bytes
                for name, state in on_nodes
                if state.setup.kubelet.evicts_by_default
            }
        )
        if snapshot.history.containers:
            yield list_notes.history_note(snapshot.history)
        starting = {key for state in states.values() for key in state.growth.starting}
        if starting:
            names = [full_name(*pod, container) for pod, container in sorted(starting)]
            yield f"{first_few(names)}: growth in the first minutes after a start does not count as a trend"


def first_of_named(deaths: Deaths) -> Iterator[str]:
    """Say which of several named pods of a node dies first, and what would make another one the first."""
    for node, first, others, full in deaths_of_named(deaths):
        by = f"{killer_words(first)}, {in_time(first)}{death_condition(first)}"
        texts = [f"{victim(first)} ({by})", *(_instead(first, other, alone) for other, alone in others)]
        if full is not None:
            if_large = death_condition(full, names_other=False)
            texts.append(f"on a full node the kernel kills {victim(full)} first{if_large} (RANK in top)")
        yield f"first on {escape(node) or 'the node'}: {'; '.join(texts)}"


def apart_notes(deaths: Deaths) -> Iterator[str]:
    """Say that named pods of several nodes do not kill each other."""
    if deaths.rows and len({pod.node_name for pod in deaths.pods}) > 1:
        yield "pods on different nodes do not compete for memory"


def _instead(first: NextDeath, other: NextDeath, alone: NextDeath | None) -> str:
    """Say by how much another pod has to grow to die before the first, or else when it dies."""
    if alone is not None:
        grows = distance(alone).lstrip("+")
        return f"{victim(alone)} only if it alone grows by {grows} ({killer_words(alone)})"
    grown = next((_from(contender) for contender in first.growing if contender.key == other.key), "")
    if grown:
        return f"{grown}, if it alone grows"
    return f"then {victim(other)} ({killer_words(other)}{turn(other)}, {in_time(other)})"


def _late_kubelet(deaths: Deaths) -> Iterator[str]:
    """Say that the kernel may kill before the kubelet checks; for a single node, from which growth on."""
    of_node = [row.death for row in deaths.rows if row.death.killer.is_node_wide]
    fast = [death for death in of_node if death.killer.evicts and death.seconds is not None]
    if any(death.earlier is not None and death.earlier.killer.is_kernel for death in fast):
        yield (
            f"{KUBELET_CHECKS}: memory may run out in between, so either the kubelet evicts first or the"
            " kernel kills first"
        )
        return
    evictions = [death for death in of_node if death.killer.evicts and death.grace_seconds is None]
    kills = [death.distance_bytes for death in of_node if death.killer.is_kernel]
    if deaths.state is not None and evictions and kills:
        more = (min(kills) - evictions[0].distance_bytes) // EVICTING.delay_seconds
        if more > 0:
            yield (
                f"{KUBELET_CHECKS}: if memory grows by more than {binary(more)} per second, the kernel may"
                " kill first"
            )


def nothing(deaths: Deaths) -> str:
    """Say why there is no row."""
    alive = [pod for pod in deaths.pods if not pod.is_terminal]
    foreseen = "no death is foreseen: no limit, threshold or killer reaches these pods"
    if deaths.pods and not alive:
        foreseen = "no death is foreseen: these pods have ended"
    elif any(not pod.containers for pod in alive):
        foreseen = "who dies next is unknown: what was read does not show the limits of these pods"
    why = foreseen if deaths.states else list_notes.NO_PODS_ON_NODES
    return next(notes(deaths), others_first_text(deaths.others_first) or why)


def others_first_text(nodes: Iterable[str]) -> str:
    """Say that other pods die first on these nodes; "" without nodes."""
    names = sorted(escape(name) or "the node" for name in nodes)
    return f"no limit of these pods is near, and on {first_few(names)} others die first" if names else ""


def capacity_notes(states: Mapping[str, NodeState]) -> Iterator[str]:
    """Name nodes with pods whose memory capacity is unknown, and say what is known without it."""
    unsized = (name for name, state in states.items() if state.pods and not state.capacity_bytes)
    names = [escape(name) or "the node" for name in unsized]
    if names:
        yield (
            f"the memory capacity of {first_few(names)} is unknown: only limits of containers and pods,"
            " and evictions that are due, are known (--node-memory 16Gi assumes one)"
        )


def victim_notes(rows: Sequence[DeathRow]) -> Iterator[str]:
    """Yield who else may die in place of the victims, once for each node."""
    nodes: dict[str, list[NextDeath]] = {}
    kernels = (row.death for row in rows if row.death.killer.is_kernel)
    full = [death for death in kernels if death.killer.scope is CeilingScope.NODE]
    yield from outside_notes([victim(death) for death in full if death.qos is QosClass.GUARANTEED])
    for row in rows:
        if row.death.rival is not None or row.death.growing:
            nodes.setdefault(row.node, []).append(row.death)
    is_one = len({row.node for row in rows}) == 1
    for node, deaths in list(nodes.items())[:_MOST]:
        where = "" if is_one else f"{escape(node)}: "
        yield from (f"{where}{note}" for note in (*_rival_note(deaths), *_growing_note(deaths)))
    if len(nodes) > _MOST:
        yield f"on {count(len(nodes) - _MOST, 'more node')} another pod may die instead: see -o json"


def outside_notes(guaranteed: Sequence[str]) -> Iterator[str]:
    """Say who dies before these victims on a full node, which are of Guaranteed pods.

    They have -997: even the smallest process with 0 has more points.
    """
    if guaranteed:
        yield (
            f"{first_few(guaranteed)}: on a full node the kernel kills processes outside pods before a"
            " Guaranteed pod, unless their oom_score_adj is as low: kubectl qos host shows it"
        )


def _rival_note(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """Say who dies if a victim's memory is spread over several processes."""
    killers: dict[str, list[str]] = {}
    for death in deaths:
        if death.rival is not None:
            killers.setdefault(_name(death.rival), []).append(killer_words(death))
    texts = [f"{name} dies ({', '.join(by)})" for name, by in killers.items()]
    if texts:
        yield f"if no process holds that much, {', '.join(texts)}"


def _growing_note(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """Say which pods become victims by growing alone, those that need to grow least first."""
    least: dict[PodKey, tuple[Contender, str]] = {}
    for death in deaths:
        for other in death.growing:
            if other.key not in least or other.size_bytes < least[other.key][0].size_bytes:
                least[other.key] = other, killer_words(death)
    by_growth = sorted(least.values(), key=lambda pair: pair[0].size_bytes - pair[0].used_bytes)
    texts = [f"{_from(other)} ({killer})" for other, killer in by_growth]
    if texts:
        yield f"if one pod alone grows, it may die instead: {first_few(texts)}"


def rank_notes(deaths: Mapping[str, Sequence[NextDeath]]) -> Iterator[str]:
    """Yield nodes on which another pod may have RANK 1, by their first deaths."""
    firsts = {
        escape(node): f"{victim(death)}{death_condition(death)}"
        for node, on_node in deaths.items()
        for death in on_node
        if death.killer.has_ranks and death.rival is not None
    }
    if len(firsts) > 1:
        nodes = count(len(firsts), "node")
        yield f"RANK 1 of {nodes} depends on the sizes of processes: kubectl qos next node/NAME"
    for node, first in firsts.items() if len(firsts) == 1 else ():
        yield f"RANK 1 of {node}: {first}"


def _other_pressure(snapshot: Snapshot, names: Iterable[str]) -> Iterator[str]:
    """Say which nodes evict for something else than memory."""
    for node in filter(None, map(snapshot.nodes.get, names)):
        reported = {item.type for item in node.status.conditions or () if item.status == "True"}
        if pressures := sorted(reported & {"DiskPressure", "PIDPressure"}):
            what = " and ".join(pressures)
            yield f"{escape(node.name)} reports {what}: the kubelet may evict pods for that, in another order"


def _from(contender: Contender) -> str:
    return f"{_name(contender)} from {_up(contender.size_bytes)}"


def _name(contender: Contender) -> str:
    return full_name(*contender.key, contender.container)


def dies_next(on_node: NodeDeaths | None) -> Section | None:
    """Show what ends a pod, the first death as the answer; None if its node is unknown."""
    if on_node is None or not (on_node.deaths or on_node.state.setup.node.name):
        return None
    several = len({death.container for death in on_node.deaths if death.container}) > 1
    texts = [
        f"{escape(death.container)}: {how(death)}" if several and death.container else how(death)
        for death in on_node.deaths
    ]
    first, *others = texts or [without_deaths(on_node.state)]
    return Section(ITS_DEATH, first, sentences(*others))


def without_deaths(state: NodeState) -> str:
    """Return why no death of a pod is known on its node."""
    if any(not container.has_usage for container in state.containers):
        return "unknown: memory usage is unknown"
    return "none: no killer of its node reaches it"


def _up(size_bytes: int) -> str:
    """Return whole Mi, rounded up from bytes."""
    return mebibytes(size_bytes + (1 << 20) - 1)


def mechanism_notes(deaths: Iterable[NextDeath]) -> Iterator[str]:
    """Explain limits that belong to no pod, each once."""
    notes = {death.mechanism: WORDS[death.mechanism].note for death in deaths}
    yield from filter(None, notes.values())


def state_notes(states: Mapping[str, NodeState], usage: Mapping[PodKey, PodUsage]) -> Iterator[str]:
    """Yield what is unknown about nodes, and who else kills there."""
    yield from list_notes.killer_notes({name: state.setup for name, state in states.items()}, has_ranks=False)
    without = sum(state.without_usage for state in states.values() if not state.is_unmeasured)
    if without:
        yield f"{count(without, 'pod')} {list_notes.WITHOUT_USAGE}"
    for state in states.values() if len(states) == 1 else ():
        pods, more = state.use.may_swap, state.use.most_bytes - state.regular_bytes - state.use.may_swap
        if pods:
            yield f"distances to the kubepods limit and a full node include {binary(pods)} that pods may swap"
        if more:
            yield f"the distance to a full node includes {binary(more)} that processes outside pods may swap"
    for name, state in states.items():
        node = escape(name) or "the node"
        yield from list_notes.setting_notes(state.setup, node)
        capacity, pages = state.setup.node.memory_capacity_bytes, hugepages_bytes(state.setup.node.capacity)
        if pages and evictable_capacity(state.setup) == capacity and evicts_for_memory(state.setup):
            counted = f"its hugepages, {binary(pages)}, as available memory"
            yield f"the kubelet of {node} counts {counted}: before 1.37 it evicts that much too late"
    yield from list_notes.never_evicted_notes({name: state.setup for name, state in states.items()})
    own = {name: state.own_bytes for name, state in states.items() if state.capacity_bytes}
    yield from list_notes.own_memory_notes(own, usage)


def distance(death: NextDeath) -> str:
    """Return how far away a death is: `+361Mi`, `+0.4Mi`, `due`, or `again` if unknown."""
    size = death.distance_bytes
    if size <= 0:
        return "again" if death.waits else "due"
    far = rounded(size) if size >= 1 << 20 else f"{max(size / (1 << 20), 0.1):.1f}Mi"
    return f"{AT_MOST if death.is_upper_bound else ''}+{far}"


def in_time(death: NextDeath) -> str:
    """Return how far away a death is, in bytes and at the present growth: `+361Mi, ~38 s`."""
    return ", ".join(filter(None, (distance(death), eta(death.seconds or None))))


def bounded(death: NextDeath) -> str:
    """Return how far away a death is, for a sentence: `+361Mi`, `+361Mi at most`."""
    bound = f" {AT_MOST.strip()}" if death.is_upper_bound else ""
    return f"{distance(death).removeprefix(AT_MOST)}{bound}"


def victim(death: NextDeath) -> str:
    """Return who dies: a container as `shop/api-0:app`, a pod, a process of the node, or `unknown`."""
    if not death.has_victim:
        return _UNKNOWN_VICTIM
    if not death.key[0] and death.qos is None:
        return f"{escape(death.key[1])} (a process of the node)"
    return full_name(*death.key, death.container)


def short_victim(death: NextDeath) -> str:
    """Return the name of the pod or process that dies."""
    return escape(death.key[1]) if death.has_victim else _UNKNOWN_VICTIM


def killed_by(death: NextDeath) -> str:
    """Return the killer, its reason and condition: `own limit 98%`, `node full, if one process holds 2Gi`."""
    return f"{killer_words(death)}{death_condition(death, names_other=False)}"


def death_condition(death: NextDeath | None, *, names_other: bool = True) -> str:
    """Return on what a death depends: `, if one process holds 2Gi, else shop/db-0:db`; "" if on nothing."""
    if death is None:
        return ""
    parts = []
    if death.grown_bytes is not None:
        parts.append(f"if it alone grows (the victim from {_up(death.grown_bytes)} on)")
    if death.unless is not None:
        parts.append(f"unless a process of {_name(death.unless)} holds {_up(death.unless.size_bytes)}")
    if death.earlier is not None:  # before the rival: narrow lines are cut at their end
        killer, whom = death.earlier.killer, f" {victim(death.earlier)}" if names_other else ""
        name = WORDS[killer.id].name if killer.is_daemon else f"the {actor(killer)}"
        verb = "evicts" if killer.evicts else "kills"
        parts.append(f"unless {name} {verb}{whom if death.earlier.has_victim else ''} first")
    if death.rival is not None:
        parts.append(rival_condition(death.rival, names_other=names_other))
    return "".join(f", {part}" for part in parts)


def rival_condition(rival: Contender, *, names_other: bool = True) -> str:
    """Return when a victim dies instead of its rival: `if one process holds 2Gi, else shop/db-0:db`."""
    other = f", else {_name(rival)}" if names_other else ""
    return f"if one process holds {_up(rival.size_bytes)}{other}"


def killer_words(death: NextDeath) -> str:
    """Return the killer and its reason: `own limit 98%`, `kubelet evicts`, `kernel: node full`."""
    start = " at its next start" if death.starts else " if it uses as much as before" if death.waits else ""
    return f"{killer_label(death)}{start}{_DUE[death.due]}"


def killer_label(death: NextDeath, *, with_fullness: bool = True) -> str:
    """Return the killer in few words: without the remark on a due eviction."""
    by = killer_name(death.mechanism, is_own=death.is_own)
    swap = " and swap" if death.limit_bytes and death.ceiling_bytes > death.limit_bytes else ""
    is_known = death.limit_bytes and with_fullness and not death.waits
    full = f" {percent(death.fullness, 1)}" if is_known else ""
    grace = f" after {grace_period(death.grace_seconds)}" if death.grace_seconds is not None else ""
    return f"{by}{swap}{full}{grace}"


def grace_period(seconds: int) -> str:
    """Return the period of a soft threshold, which only a configuration of the kubelet has: 0 is unknown."""
    return duration(seconds) if seconds else "its grace period"


def _precedent(death: NextDeath) -> str:
    return f", {death.precedent.value}" if death.precedent else ""


def racing(death: NextDeath) -> tuple[NextDeath, ...]:
    """Return a death, and another one of the same pod that may come before it; the nearer one is first."""
    other = death.earlier
    if other is None or other.key != death.key or not death.has_victim:
        return (death,)
    return (death, other) if death.distance_bytes < other.distance_bytes else (other, death)


def foretold(death: NextDeath, node: str = "", *, is_first: bool = True, with_else: bool = True) -> str:
    """Predict a death in a sentence: who dies, when, by whom, how far away that is, and who else may die."""
    who = victim(death) if death.has_victim else "an unknown victim"
    where = f" on {escape(node)}" if node else ""
    first, *others = racing(death) if is_first else (death,)
    verb = "dies" if others else WORDS[death.mechanism].dies
    far, when = f", {distance(first)}", "next"
    if first.distance_bytes <= 0:
        far, when = "", "again" if first.waits else "at any moment"
    elif first.seconds is not None:
        when = f"in {eta(first.seconds)}"
    elif is_first and first.is_full:
        when = "at any allocation"
    elif is_first and not (row := DeathRow(node, death)).is_expected:
        when = "next if it grows" if row.is_far else "next unless another pod grows first"
    elif not is_first:
        far, when = turn(death), f"at {bounded(death)}"
    by = f": {' or '.join(map(killer_words, (first, *others)))}"
    if not others and death.killer.evicts and death.grace_seconds is None:
        by = by.removeprefix(f": {WORDS[death.mechanism].by}")  # the verb says it
    by += f"{far}{_precedent(death)}"
    if not with_else:
        return f"{who}{where} {verb} {when}{by}"
    condition = death_condition(death._replace(earlier=None) if others else death)
    if others and condition:  # an eviction has no condition
        condition = f", the {'former' if death is first else 'latter'}{condition.removeprefix(',')}"
    return f"{who}{where} {verb} {when}{by}{condition}"


def how(death: NextDeath) -> str:
    """Say how a pod dies: `own limit 98%, +2Mi, ~38 s`, with its turn, fullness and condition."""
    by = f"{killer_words(death)}{turn(death)}"
    full = "" if death.limit_bytes or death.before else f"{percent(death.fullness, 1)} full"
    far = "" if death.waits else distance(death)
    when = ", ".join(filter(None, (by, far, full, eta(death.seconds))))
    others = "" if death.before else death_condition(death)
    return f"{when}{_precedent(death)}{others}{'' if death.has_victim else ', its victim is unknown'}"


def turn(death: NextDeath) -> str:
    """Return `, after 2 other deaths` if others die before by the same killer, or ""."""
    return f", after {count(death.before, 'other death')}" if death.before else ""


def _fullness(death: NextDeath) -> str:
    if death.waits:
        return UNKNOWN
    return f"{percent(death.fullness, 1)}{'+' if death.is_upper_bound else ''}"


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
        "when, if memory keeps growing at its present rate (-w, --watch-for, a store of metrics)",
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
        "how full the limit or threshold is at which the killer acts",
        NUMBER,
        field="fullnessPercent",
        cell=lambda row: _fullness(row.death),
    ),
    column("by", lambda row: f"{killed_by(row.death)}{_precedent(row.death)}", "which limit or which killer"),
    column("frees", lambda row: row.death.frees_bytes, "what the node gets back", BYTES),
    column(
        "before", lambda row: row.death.before, "how many are killed before it by the same killer", NUMBER
    ),
)


def columns(rows: Sequence[DeathRow]) -> list[Column[DeathRow]]:
    """Return the columns of the table: ETA only if growth is known, BEFORE only if others die before."""
    shown = {"eta": any(row.seconds for row in rows), "before": any(row.death.before for row in rows)}
    return [column for column in COLUMNS if shown.get(column.key, True)]
