"""A simulation in words: its steps as a table, what comes of it in a sentence, and what was estimated."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from kubectl_qos.k8s.kubelet import Origin
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import NONE, binary, escape, mebibytes
from kubectl_qos.present.output import lines
from kubectl_qos.present.pod_columns import Align, ColumnOf, largest_first
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep
from kubectl_qos.qos.simulation.node_state import (
    ContainerGrowth,
    Importance,
    ImportanceReason,
    NodeState,
    Scenario,
)
from kubectl_qos.qos.simulation.timeline import MemoryLevel

STEP_TITLES: Final = ("STEP", "BY", "VICTIM", "CONTAINER", "QOS", "SCORE", "FREED", "FREE_AFTER", "NOTE")
_L, _R = Align.LEFT, Align.RIGHT
STEP_ALIGNS: Final = (_L, _L, _L, _L, _L, _R, _R, _R, _L)
REACH_TITLES: Final = ("BY", "MORE", "GROWTH", "VICTIM", "CONTAINER")
REACH_ALIGNS: Final = (_L, _R, _R, _L, _L)
_WHAT_IF_TITLES: Final = ("", "STEP", "NOW", "BY", "FREED", "THEN", "BY", "FREED")
_OF_NODE: Final = "a process of the node"

NO_USAGE: Final = "no memory usage is known: nothing can be freed and nothing grows"
NO_USAGE_HINT: Final = (
    "it comes from the metrics API, or with -f from the PodMetrics in the files;"
    " --all-at-limit and --grow go without it"
)
BUDGETS_NOT_ASKED: Final = (
    "PodDisruptionBudgets are not asked for: they count where the files of -f have them"
)


def simulation_subject(node_state: NodeState) -> str:
    """Which node, and how full it is."""
    setup = node_state.setup
    node = f"node {escape(setup.node.name)}" if setup.node.name else "a node"
    capacity = binary(node_state.total_bytes)
    used = f"its pods use {binary(node_state.used_bytes)} of {capacity}"
    own = f", the node itself {binary(node_state.own_bytes)}" if node_state.own_bytes else ""
    return f"{node}, kubelet {setup.release}: {used}{own}"


def question(node_state: NodeState, scenario: Scenario) -> str:
    """What is asked, as a sentence says it."""
    if scenario.free_bytes is not None:
        return f"free {binary(scenario.free_bytes)}"
    if scenario.growth:
        return "; ".join(_growth(node_state, one) for one in scenario.growth)
    if scenario.all_at_limit:
        return "each container that has a limit grows to it"
    if scenario.until_oom:
        return "all containers grow alike, each by the same part of what it uses"
    return "nothing grows"


def simulation_lines(node_state: NodeState, simulation: Simulation) -> Iterator[str]:
    """The node, what happens there and what comes of it."""
    yield simulation_subject(node_state)
    for table in (step_lines(simulation), reach_lines(simulation)):
        for number, line in enumerate(table):
            if not number:
                yield ""
            yield line
    yield ""
    yield sentence(simulation)


def step_lines(simulation: Simulation) -> Iterator[str]:
    """The table of the steps, nothing without any."""
    if simulation.steps:
        yield from lines(step_cells(simulation), STEP_ALIGNS, STEP_TITLES)


def reach_lines(simulation: Simulation) -> Iterator[str]:
    """How far each mechanism is, the nearest first."""
    if simulation.distances:
        yield from lines(reach_cells(simulation), REACH_ALIGNS, REACH_TITLES)


def what_if_lines(now: Simulation, then: Simulation) -> Iterator[str]:
    """Who dies now beside who would; `*` marks the steps that differ."""
    cells = []
    for number, (was, would) in enumerate(zip_longest(now.steps, then.steps), start=1):
        differs = _identity(was) != _identity(would)
        cells.append(("*" if differs else "", str(number), *_side(was), *_side(would)))
    if cells:
        yield from lines(cells, (_L, _L, _L, _L, _R, _L, _L, _R), _WHAT_IF_TITLES)


def sentence(simulation: Simulation) -> str:
    """What comes of it: how much is free after how many steps, and when an important pod is hit."""
    parts = [_outcome(simulation)]
    first = simulation.first_important
    if first is not None:
        step = simulation.steps[first - 1]
        verb = "is evicted" if step.mechanism is Mechanism.EVICTION else "dies"
        parts.append(f"the first important pod, {_name(step.key)}, {verb} at step {first}")
    elif simulation.steps:
        parts.append("no important pod is hit")
    return "; ".join(parts)


def simulation_notes(node_state: NodeState, simulation: Simulation) -> Iterator[str]:
    """What is estimated, assumed or not known, one sentence each."""
    steps, scenario = simulation.steps, simulation.scenario
    yield "a container counts as one process that holds all of its memory; page cache is not counted"
    if node_state.by_working_set:
        yield "memory is the working set: the kernel counts RSS and swap, which may be less"
    if node_state.without_usage:
        pods = "1 pod" if node_state.without_usage == 1 else f"{node_state.without_usage} pods"
        yield f"{pods} without usage counted as using nothing"
    if not node_state.own_bytes:
        yield (
            "what the node's own processes use is not known: the node is full that much earlier, and those"
            " with oom_score_adj 0 die before Guaranteed pods"
        )
    if node_state.kubepods_bytes is None:
        yield "no limit of kubepods is known: pods as a whole are bounded by the node alone"
    if not node_state.has_oom_group:
        yield "memory.oom.group is not set: of a container with several processes the kernel kills one"
    if scenario.eviction:
        yield from _eviction_notes(node_state, simulation)
    if scenario.restarts:
        yield (
            "a container that restarts has the memory it has now again at once, and is killed once only; the"
            " kubelet waits longer and longer, up to 5 minutes"
        )
    elif any(_restarts(node_state, step) for step in steps):
        yield "killed containers that restart need their memory again: --restarts counts what lasts"
    if any(reason.why is Importance.BUDGET for step in steps for reason in step.important):
        yield "neither the kernel nor node-pressure eviction asks PodDisruptionBudgets"


def simulation_values(node_state: NodeState, simulation: Simulation) -> dict[str, Any]:
    """The same as plain values."""
    scenario = simulation.scenario
    return {
        "kind": "Simulation",
        "node": node_state.setup.node.name,
        "scenario": {
            "freeBytes": scenario.free_bytes,
            "grow": [
                {**_growing(node_state, one.container), "toBytes": one.to_bytes} for one in scenario.growth
            ],
            "untilOom": scenario.until_oom,
            "allAtLimit": scenario.all_at_limit,
            "eviction": scenario.eviction,
            "restarts": scenario.restarts,
        },
        "totalBytes": node_state.total_bytes,
        "before": _level(simulation.before),
        "after": _level(simulation.after),
        "reached": simulation.is_reached,
        "firstImportantStep": simulation.first_important,
        "steps": [_step(number, step) for number, step in enumerate(simulation.steps, start=1)],
        "reaches": [_reach(one) for one in simulation.distances],
        "refused": ["/".join(key) for key in simulation.refused],
        "summary": sentence(simulation),
        "notes": list(simulation_notes(node_state, simulation)),
    }


def step_cells(simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """What the table says of each step."""
    evicts = simulation.scenario.eviction
    first = simulation.first_important
    for number, step in enumerate(simulation.steps, start=1):
        yield (
            str(number),
            mechanism_name(step.mechanism),
            _name(step.key),
            escape(step.container) or NONE,
            step.qos.value if step.qos is not None else NONE,
            str(step.score) if step.score is not None else "-",
            mebibytes(_amount(step.freed, evicts=evicts)),
            mebibytes(_amount(step.level, evicts=evicts)),
            "; ".join(_step_notes(step, is_first=number == first)),
        )


def reach_cells(simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """What the table says of each mechanism that may act first."""
    for one in simulation.distances:
        whom = _name(one.key), escape(one.container)
        yield mechanism_name(one.mechanism), mebibytes(one.more_bytes), _percent(one), *whom


def _growth(node_state: NodeState, growth: ContainerGrowth) -> str:
    if growth.container is None:
        who, used = "the node itself", node_state.own_bytes
    else:
        one = node_state.containers[growth.container]
        who = f"{_name(node_state.pod_for(one).key)}, container {escape(one.name)},"
        used = one.used_bytes
    return f"{who} grows by {binary(growth.to_bytes - used)} to {binary(growth.to_bytes)}"


def _amount(level: MemoryLevel, *, evicts: bool) -> int:
    """What a person is shown: with eviction the kubelet's count, else the kernel's."""
    return level.available_bytes if evicts else level.free_bytes


def _step_notes(step: SimulationStep, *, is_first: bool) -> Iterator[str]:
    if step.important:
        mark = "! first important" if is_first else "important"
        yield f"{mark}: {', '.join(map(_reason, step.important))}"
    if step.restarts:
        yield "restarts"
    if step.tied:
        yield f"tied with {step.tied}"
    if step.qos is None:
        yield _OF_NODE
    if step.refused:
        yield f"{', '.join(map(_name, step.refused))} refused: critical"


def _reason(reason: ImportanceReason) -> str:
    what = escape(reason.what)
    if reason.why is Importance.PRIORITY:
        return f"priority {what}"
    if reason.why is Importance.BUDGET:
        return f"PodDisruptionBudget {what} is overstepped"
    return f"labels {what}" if reason.why is Importance.LABELS else reason.why.value


def _outcome(simulation: Simulation) -> str:
    scenario, steps = simulation.scenario, simulation.steps
    if scenario.until_oom:
        return _first_of_all(simulation)
    left = _amount(simulation.after, evicts=scenario.eviction)
    word = "available" if scenario.eviction else "free"
    amount = f"{binary(left)} {'is' if left < 1 << 20 else 'are'} {word}" if left >= 0 else "the node is full"
    if not steps:
        if scenario.free_bytes:
            return "there is nothing to kill"
        nothing = "nothing is killed or evicted" if scenario.eviction else "nothing is killed"
        return f"{nothing}: {amount}" + (" then" if scenario.growth or scenario.all_at_limit else "")
    after = f"after {_counted(steps)} {amount}"
    if scenario.free_bytes is not None and not simulation.is_reached:
        return f"{after}: {binary(scenario.free_bytes)} cannot be freed"
    if scenario.growth and not simulation.is_reached:
        return f"{after}, and not all that was to grow lives to reach its size"
    return after


def _first_of_all(simulation: Simulation) -> str:
    if not simulation.distances:
        return "nothing is killed, however much all containers grow"
    first = simulation.distances[0]
    whom = f"{_name(first.key)}, container {escape(first.container)}" if first.container else _name(first.key)
    return (
        f"{binary(first.more_bytes)} more, each container at {_percent(first)}, until the first is hit:"
        f" {whom}, by {_by(first.mechanism)}"
    )


def mechanism_name(mechanism: Mechanism) -> str:
    """As the column BY has it; nothing here is preempted, so an eviction needs no kubelet before it."""
    return "eviction" if mechanism is Mechanism.EVICTION else mechanism.value


def _by(mechanism: Mechanism) -> str:
    if mechanism is Mechanism.NODE:
        return "the kernel, as the node is full"
    name = mechanism_name(mechanism)
    return name if mechanism is Mechanism.EVICTION else f"the {name}"


def _counted(steps: Iterable[SimulationStep]) -> str:
    evictions = kills = 0
    for step in steps:
        evictions += step.mechanism is Mechanism.EVICTION
        kills += step.mechanism is not Mechanism.EVICTION
    words = [(evictions, "eviction"), (kills, "kill")]
    return " and ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in words if number)


def _eviction_notes(node_state: NodeState, simulation: Simulation) -> Iterator[str]:
    kept_free = node_state.thresholds.node_bytes
    if kept_free is None:
        yield "the kubelet has no hard threshold of memory.available: it evicts nobody by itself"
    else:
        assumed = node_state.setup.kubelet.origin("eviction_hard") is Origin.ASSUMED
        given = ", which is assumed" if assumed else ""
        reclaim = node_state.thresholds.reclaim_bytes
        more = f", then until {binary(reclaim)} more is" if reclaim else ""
        yield f"the kubelet evicts when less than {binary(kept_free)} is available{more}{given}"
    if simulation.refused:
        yield f"critical pods are not evicted: {', '.join(map(_name, simulation.refused))}"
    yield "the kubelet looks every 10 s and evicts one pod at a time: faster growth meets the kernel first"


def _restarts(node_state: NodeState, step: SimulationStep) -> bool:
    return step.mechanism is not Mechanism.EVICTION and any(
        one.restarts and one.name == step.container and node_state.pod_for(one).key == step.key
        for one in node_state.containers
    )


def _name(key: tuple[str, str]) -> str:
    return escape("/".join(filter(None, key)))


def _percent(reach: MechanismDistance) -> str:
    return f"{100 * reach.factor:.0f}%"


def _identity(step: SimulationStep | None) -> object:
    return step and (step.mechanism, step.key, step.container)


def _side(step: SimulationStep | None) -> tuple[str, str, str]:
    if step is None:
        return "-", "", ""
    victim = f"{_name(step.key)}:{escape(step.container)}" if step.container else _name(step.key)
    mark = " !" if step.important else ""
    return f"{victim}{mark}", mechanism_name(step.mechanism), mebibytes(step.freed.free_bytes)


def _growing(node_state: NodeState, index: int | None) -> dict[str, Any]:
    if index is None:
        return {"namespace": None, "pod": None, "container": None}
    container = node_state.containers[index]
    namespace, name = node_state.pod_for(container).key
    return {"namespace": namespace, "pod": name, "container": container.name}


def _level(level: MemoryLevel) -> dict[str, int]:
    return {"freeBytes": level.free_bytes, "availableBytes": level.available_bytes}


def _step(number: int, step: SimulationStep) -> dict[str, Any]:
    return {
        "step": number,
        "by": mechanism_name(step.mechanism),
        "namespace": step.key[0],
        "pod": step.key[1] if step.qos is not None else None,
        "process": step.key[1] if step.qos is None else None,
        "container": step.container or None,
        "qosClass": step.qos.value if step.qos is not None else None,
        "oomScoreAdj": step.adj,
        "oomScore": step.score,
        "points": step.points,
        "tied": step.tied,
        "freedBytes": step.freed.free_bytes,
        "freedWorkingSetBytes": step.freed.available_bytes,
        "after": _level(step.level),
        "restarts": step.restarts,
        "important": [{"why": reason.why.value, "what": reason.what} for reason in step.important],
        "refused": ["/".join(key) for key in step.refused],
    }


def _reach(reach: MechanismDistance) -> dict[str, Any]:
    return {
        "by": mechanism_name(reach.mechanism),
        "moreBytes": reach.more_bytes,
        "factor": round(reach.factor, 4),
        "namespace": reach.key[0],
        "pod": reach.key[1],
        "container": reach.container or None,
    }


@dataclass(frozen=True, slots=True)
class VictimRow:
    """A step, or the first victim of a mechanism; `key` is its pod, `identity` what stays the same of it.

    `is_next` is true of the very first one, `is_important` of the first step that hits an important pod.
    """

    place: int
    key: PodKey
    identity: Hashable
    cells: Mapping[str, str]
    is_next: bool
    is_important: bool = False


VictimColumn = ColumnOf[VictimRow]
"""A column of victims."""


def victim_rows(simulation: Simulation) -> list[VictimRow]:
    """The steps in order."""
    first = simulation.first_important
    return [
        VictimRow(
            place,
            step.key,
            (step.mechanism, step.key, step.container),
            _named(STEP_TITLES, cells),
            is_next=place == 1,
            is_important=place == first,
        )
        for place, (step, cells) in enumerate(
            zip(simulation.steps, step_cells(simulation), strict=True), start=1
        )
    ]


def reach_rows(simulation: Simulation) -> list[VictimRow]:
    """Whom each mechanism would hit first, the nearest first."""
    return [
        VictimRow(place, one.key, one.mechanism, _named(REACH_TITLES, cells), is_next=place == 1)
        for place, (one, cells) in enumerate(
            zip(simulation.distances, reach_cells(simulation), strict=True), start=1
        )
    ]


def _named(titles: Iterable[str], cells: Sequence[str]) -> dict[str, str]:
    return dict(zip(titles, cells, strict=True))


def _column(title: str, align: Align) -> VictimColumn:
    def text(row: VictimRow) -> str:
        return row.cells.get(title, "")

    def sort_key(row: VictimRow) -> object:
        if title == STEP_TITLES[0]:
            return row.place
        if align is Align.LEFT:
            return text(row)
        number = text(row).rstrip("Mi%")
        return largest_first(int(number) if number.lstrip("-").isdigit() else None)

    return ColumnOf(title.lower(), title, align, 4, lambda row, _: text(row), text, sort_key, "")


STEP_COLUMNS: Final = tuple(map(_column, STEP_TITLES, STEP_ALIGNS))
REACH_COLUMNS: Final = tuple(map(_column, REACH_TITLES, REACH_ALIGNS))
