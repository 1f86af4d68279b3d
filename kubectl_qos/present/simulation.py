"""A simulation in words: its steps as a table, its outcome as a sentence, and its estimates."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from kubectl_qos.analysis.deaths import VictimRow, identity, reach_rows, victim_rows
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.defaulting import SYSTEM_PRIORITIES
from kubectl_qos.k8s.kubelet import ALLOCATABLE_MEMORY_AVAILABLE, Origin
from kubectl_qos.k8s.objects import CPU
from kubectl_qos.present.format import UNKNOWN, binary, count, cpu, escape, full_name, mebibytes
from kubectl_qos.present.killers import WORDS, killer_name
from kubectl_qos.present.list_notes import killer_notes, own_memory_phrase, setting_notes
from kubectl_qos.present.next_death import (
    AT_MOST,
    KUBELET_CHECKS,
    distance,
    grace_period,
    killer_words,
    outside_notes,
    rival_condition,
    victim,
)
from kubectl_qos.present.output import BYTES, NUMBER, Align, Column, cell_table, column, fitted_table
from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.killers import BY_RANK
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.resize import node_fit
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, MemoryLevel, Scenario
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep, eviction_left_out
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import Importance, ImportanceReason, NodeState

NO_USAGE: Final = "without memory usage nothing can be freed and nothing grows"
BUDGETS_NOT_READ: Final = "PodDisruptionBudgets are read only from manifests (-f FILE.yaml)"


def simulation_lines(
    node_state: NodeState,
    simulation: Simulation,
    next_death: NextDeath | None = None,
    width: int | None = None,
) -> Iterator[str]:
    """Yield the node, what happens there, and the outcome, with tables that fit into a terminal."""
    yield simulation_subject(node_state)
    yield question(node_state, simulation.scenario, simulation, next_death)
    for rows, columns in ((victim_rows(simulation), STEP_COLUMNS), (reach_rows(simulation), REACH_COLUMNS)):
        if rows:
            yield ""
            yield from fitted_table(rows, columns, width, ("note",), ("qos", "free_after", "score"))
    yield ""
    yield simulation_summary(node_state, simulation)


def simulation_subject(node_state: NodeState) -> str:
    """Return the node, and how full it is."""
    setup = node_state.setup
    node = f"node {escape(setup.node.name)}" if setup.node.name else "a node"
    swap = f" and {binary(node_state.swap_bytes)} of swap" if node_state.swap_bytes else ""
    capacity = f"{binary(node_state.capacity_bytes)}{swap}"
    least = "at least " if node_state.without_usage else ""
    used = f"its pods use {least}{binary(node_state.used_bytes)} of {capacity}"
    used = f"it has {capacity}; the usage of its pods is unknown" if node_state.is_unmeasured else used
    return f"{node}, kubelet {setup.release}: {used}{own_memory_phrase(node_state.own_bytes)}"


def scenario_sentence(node_state: NodeState, scenario: Scenario) -> str:
    """Put the scenario into words."""
    if scenario.free_bytes is not None:
        return f"free {binary(scenario.free_bytes)}"
    if scenario.growth:
        return "; ".join(_growth(node_state, growth) for growth in scenario.growth)
    if scenario.all_at_limit:
        return "each container that has a limit grows to it"
    if scenario.until_oom:
        return "all containers grow by the same share of their usage"
    return "nothing grows"


def question(
    node_state: NodeState, scenario: Scenario, simulation: Simulation, next_death: NextDeath | None
) -> str:
    """Put the scenario into words, and name the next death where that is another one."""
    words = scenario_sentence(node_state, scenario)
    victims = [first.key for first in simulation.distances] or [step.key for step in simulation.steps]
    if next_death is None or victims[:1] == [next_death.key]:
        return words
    far = "" if next_death.waits else f", {distance(next_death)}"
    return f"{words} (the next death is of {victim(next_death)}, {killer_words(next_death)}{far})"


def _growth(node_state: NodeState, growth: ContainerGrowth) -> str:
    who, used = "the node itself", node_state.own_bytes
    if growth.container is not None:
        container = node_state.containers[growth.container]
        who = f"{full_name(*node_state.pod_for(container).key)}, container {escape(container.name)},"
        used = container.used_bytes if container.has_usage else None
    more = f" by {binary(growth.to_bytes - (used or 0))}" if used is not None or growth.is_more else ""
    size = "" if used is None and growth.is_more else f" to {binary(growth.to_bytes)}"
    return f"{who} grows{more}{size}"


def simulation_summary(node_state: NodeState, simulation: Simulation, eviction_by: str = "--eviction") -> str:
    """Return how much is free after how many kills, the first important victim, and evictions left out.

    `eviction_by` is the flag or key that simulates evictions.
    """
    parts, first, unforeseen = [_outcome(simulation)], simulation.first_important, simulation.unforeseen
    evicted = eviction_left_out(node_state, simulation.scenario)
    if evicted is not None:
        place, key = evicted
        when = f"after step {place}" if place else "first"
        parts[0] = (
            f"the kubelet would evict {full_name(*key)} {when} ({eviction_by} simulates that); otherwise"
            f" {parts[0]}"
        )
    if first is not None:
        step = simulation.steps[first - 1]
        verb = "evicted" if step.evicts else "killed"
        parts.append(f"the first important pod, {full_name(*step.key)}, is {verb} at step {first}")
    elif simulation.steps:
        parts.append("no important pod is killed")
    if unforeseen is not None and unforeseen.step <= len(simulation.steps):
        name = WORDS[unforeseen.mechanism].name
        parts.append(f"from step {unforeseen.step} on {name} may kill first, and its victim is unknown")
    return "; ".join(parts)


def _outcome(simulation: Simulation) -> str:
    scenario, steps = simulation.scenario, simulation.steps
    if scenario.until_oom and not simulation.is_over:
        return _first_kill(simulation)
    free = _free(simulation)
    if not steps:
        if scenario.free_bytes:
            return "there is nothing to kill"
        nothing = "nothing is killed or evicted" if scenario.eviction else "nothing is killed"
        return f"{nothing}: {free}" + (" then" if scenario.growth or scenario.all_at_limit else "")
    evictions = sum(step.evicts for step in steps)
    counts = [(evictions, "eviction"), (len(steps) - evictions, "kill")]
    after = f"after {' and '.join(count(number, noun) for number, noun in counts if number)} {free}"
    if scenario.until_oom:
        return f"{after}, without any growth"
    if scenario.free_bytes is not None and not simulation.is_reached:
        size = binary(scenario.free_bytes)
        if all(step.is_measured for step in steps):
            return f"{after}: {size} cannot be freed"
        return f"{after}: whether {size} can be freed is unknown"
    if scenario.growth and not simulation.is_reached:
        if len(scenario.growth) == 1:
            return f"{after}, and what grows is killed before it reaches its size"
        return f"{after}, and some growing pods are killed before they reach their size"
    return after


def _free(simulation: Simulation) -> str:
    """Say what is free in the end, or available to the kubelet."""
    evicts, after, steps = simulation.scenario.eviction, simulation.after, simulation.steps
    left, of = _shown_bytes(after, evicts=evicts), of_limit(after) if evicts else ""
    free = f"nothing{of} is available" if of else "the node is full"
    if left >= 0:
        free = f"{_at_most(simulation)}{binary(left)}{of} is {'available' if evicts else 'free'}"
    return f"{free} in the end" if steps and after != steps[-1].level else free


def of_limit(level: MemoryLevel) -> str:
    """Return ` of the kubepods limit` if that is what decides whether the kubelet evicts, or ""."""
    return " of the kubepods limit" if level.signal == ALLOCATABLE_MEMORY_AVAILABLE else ""


def _at_most(simulation: Simulation) -> str:
    return AT_MOST if simulation.is_upper_bound else ""


def _first_kill(simulation: Simulation) -> str:
    if not simulation.distances:
        return "nothing is killed, however much all containers grow"
    first = simulation.distances[0]
    if not first.key[1]:
        by = WORDS[first.mechanism].name
        return f"at most {binary(first.more_bytes)} more until {by} kills; its victim is unknown"
    container = f", container {escape(first.container)}" if first.container else ""
    by = "its own limit" if first.is_own else WORDS[first.mechanism].name
    more = f"{_at_most(simulation)}{binary(first.more_bytes)} more"
    return (
        f"{more}, each container at {_percent(first)}, until the first is killed:"
        f" {full_name(*first.key)}{container}, by {by}"
    )


def simulation_notes(
    node_state: NodeState, simulation: Simulation, restarts_by: str = "--restarts"
) -> Iterator[str]:
    """Yield what is left out, estimated or unknown; `restarts_by` is the flag or key of restarts."""
    steps, scenario = simulation.steps, simulation.scenario
    yield from _still(simulation)
    yield from killer_notes({"": node_state.setup}, has_ranks=False)
    if any(not container.processes for container in node_state.containers):
        yield "a container counts as one process with all of its memory"
    counted = "the working set" if node_state.by_working_set else "swap and the larger of RSS and working set"
    if not node_state.is_unmeasured:
        yield f"memory is {counted}: the kernel counts mapped memory and swap, which may be less"
    if node_state.without_usage:
        yield f"{count(node_state.without_usage, 'pod')} without usage: free memory is an upper bound"
    yield from _node_notes(node_state, simulation)
    yield from _admission_notes(node_state)
    yield from setting_notes(node_state.setup, escape(node_state.setup.node.name) or "the node")
    if node_state.kubepods_bytes is None:
        yield "the kubepods limit is unknown: only the node's memory bounds all pods together"
    if not node_state.has_oom_group:
        yield "memory.oom.group is not set: the kernel kills only one of several processes of a container"
    if scenario.eviction:
        yield from _eviction_notes(node_state, simulation)
    if scenario.restarts:
        yield (
            "a restarted container uses its present memory again at once, and is killed only once; the"
            " kubelet backs off, up to 5 minutes"
        )
    elif any(_restarts(node_state, step) for step in steps):
        yield f"killed containers do not restart here: {restarts_by} simulates restarts"
    if any(reason.reason is Importance.BUDGET for step in steps for reason in step.important):
        yield "neither the kernel nor node-pressure eviction respects PodDisruptionBudgets"


def _still(simulation: Simulation) -> Iterator[str]:
    """Say that nothing grows, if that is why nothing happens."""
    nothing = Scenario(eviction=True, restarts=simulation.scenario.restarts)
    if simulation.scenario == nothing and not simulation.steps:
        yield "nothing grows here: add --grow, --all-at-limit or --until-oom to see who dies from growth"


def _node_notes(node_state: NodeState, simulation: Simulation) -> Iterator[str]:
    if any(growth.container is None for growth in simulation.scenario.growth):
        yield "the growth of the node itself counts as one process with oom_score_adj 0"
    if node_state.own_bytes is None:
        yield "the memory of the node's own processes is unknown, so the node runs out earlier"
    if not node_state.own_processes:
        yield from outside_notes(
            [
                full_name(*step.key, step.container)
                for step in simulation.steps
                if step.mechanism == BY_RANK.id and step.qos is QosClass.GUARANTEED
            ]
        )


def _admission_notes(node_state: NodeState) -> Iterator[str]:
    """Name pods of manifests that the kubelet would not admit beside the others."""
    pods, setup = [simulated.pod for simulated in node_state.pods], node_state.setup
    waiting = [simulated.pod for simulated in node_state.without_stats]
    new = [item.pod for item in node_state.pods if not (item.pod.status.phase or item.critical)]
    if not new:
        return
    names = first_few(sorted(full_name(*pod.key) for pod in new))
    for fit in node_fit(new[0], [pod for pod in (*pods, *waiting) if pod is not new[0]], setup):
        amount = cpu if fit.resource == CPU else binary
        if not fit.fits:
            yield (
                f"the kubelet would not admit {'all of ' if len(new) > 1 else ''}{names}: with"
                f" {'them' if len(new) > 1 else 'it'} {amount(fit.used + fit.needed)} of {fit.resource} is"
                f" requested, and {amount(fit.capacity)} is allocatable"
            )


def _eviction_notes(node_state: NodeState, simulation: Simulation) -> Iterator[str]:
    thresholds, soft = node_state.thresholds, ""
    if thresholds.soft_bytes is not None:
        period = grace_period(thresholds.soft_grace_seconds)
        soft = f"less than {binary(thresholds.soft_bytes)} of the node is available for {period}"
        yield f"the kubelet evicts when {soft}; the simulation skips that time, in which more may die"
    threshold = thresholds.node_bytes
    if threshold is None:
        hard = "the kubelet has no hard memory.available threshold: it"
        yield f"{hard} evicts only by the soft one" if soft else f"{hard} never evicts"
    else:
        reclaim = thresholds.reclaim_bytes
        more = f", until {binary(reclaim)} more is" if reclaim else ""
        is_assumed = node_state.setup.kubelet.origin("eviction_hard") is Origin.ASSUMED
        assumed = " (assumed)" if is_assumed else ""
        kubepods = thresholds.kubepods_bytes
        other = f"{binary(kubepods)} " if kubepods not in {None, threshold} else ""
        where = f" of the node or {other}of the kubepods limit" if kubepods is not None else ""
        yield f"the kubelet evicts when less than {binary(threshold)}{where} is available{more}{assumed}"
    if node_state.due is not Due.NO:
        yield "the node reports memory pressure, which may have just ended: here usage decides"
    if simulation.refused:
        yield f"critical pods are not evicted: {', '.join(full_name(*key) for key in simulation.refused)}"
    if threshold is not None or soft:
        yield f"{KUBELET_CHECKS} and evicts one pod at a time: the kernel may be faster"


def _restarts(node_state: NodeState, step: SimulationStep) -> bool:
    return not step.evicts and any(
        container.restart is not Restart.NONE
        and step.container in {"", container.name}
        and node_state.pod_for(container).key == step.key
        for container in node_state.containers
    )


def _shown_bytes(level: MemoryLevel, *, evicts: bool) -> int:
    return level.available_bytes if evicts else level.free_bytes


def _percent(reach: MechanismDistance) -> str:
    return f"{100 * reach.factor:.0f}%"


def _step(row: VictimRow) -> SimulationStep:
    assert row.step is not None, "the row of a step"
    return row.step


def _freed(row: VictimRow) -> int | None:
    step = _step(row)
    return _shown_bytes(step.freed, evicts=row.evicts) if step.is_measured else None


def _reach(row: VictimRow) -> MechanismDistance:
    assert row.reach is not None, "the row of a mechanism"
    return row.reach


def step_note(row: VictimRow) -> str:
    """Return the notes on a victim: who may die instead, why it is important, what is refused."""
    step, notes = row.step, list[str]()
    if step is None:
        return ""
    if step.important:
        mark = "! first important" if row.is_important else "important"
        notes.append(f"{mark}: {', '.join(map(_reason, step.important))}")
    if step.restarts or step.restart is Restart.POD:
        notes.append(step.restart.value)
    if step.tied:
        notes.append(f"tied with {step.tied}")
    if step.rival is not None:
        notes.append(rival_condition(step.rival))
    if step.qos is None:
        notes.append("a process of the node")
    if step.refused:
        notes.append(f"{', '.join(full_name(*key) for key in step.refused)} refused: critical")
    return "; ".join(notes)


def _reason(reason: ImportanceReason) -> str:
    what = escape(reason.message)
    if reason.reason is Importance.PRIORITY:
        return what if what in SYSTEM_PRIORITIES else f"priority {what}"
    if reason.reason is Importance.BUDGET:
        return f"PodDisruptionBudget {what} is violated"
    return f"labels {what}" if reason.reason is Importance.LABELS else reason.reason.value


STEP_COLUMNS: Final[tuple[Column[VictimRow], ...]] = (
    column("step", lambda row: row.place, type=NUMBER, align=Align.LEFT, ascending=True),
    column("by", lambda row: killer_name(_step(row).mechanism, is_own=_step(row).is_own), width=4),
    column("victim", lambda row: full_name(*row.key), width=4),
    column("container", lambda row: _step(row).container, width=4),
    column("qos", lambda row: qos.value if (qos := _step(row).qos) is not None else "", width=4),
    column("score", lambda row: _step(row).score, type=NUMBER, header="OOM_SCORE", empty="-"),
    column("freed", _freed, type=BYTES, width=4),
    column(
        "free_after",
        lambda row: _shown_bytes(_step(row).level, evicts=row.evicts),
        type=BYTES,
        width=4,
        cell=lambda row: (
            (AT_MOST if row.is_bound else "") + mebibytes(_shown_bytes(_step(row).level, evicts=row.evicts))
        ),
    ),
    column("note", step_note, width=4, empty=""),
)
REACH_COLUMNS: Final[tuple[Column[VictimRow], ...]] = (
    column("by", lambda row: killer_name(_reach(row).mechanism, is_own=_reach(row).is_own), width=4),
    column("more", lambda row: _reach(row).more_bytes, type=BYTES, header="NODE+", width=4),
    column(
        "growth", lambda row: _reach(row).factor, type=NUMBER, width=4, cell=lambda row: _percent(_reach(row))
    ),
    column("victim", lambda row: full_name(*row.key) if row.key[1] else UNKNOWN, width=4),
    column("container", lambda row: _reach(row).container, width=4, empty=""),
)


def what_if_lines(now: Simulation, then: Simulation, width: int | None = None) -> Iterator[str]:
    """Yield the victims before and after a change, side by side; `*` marks steps that differ."""
    cells: list[Sequence[str]] = []
    for number, (old, new) in enumerate(zip_longest(now.steps, then.steps), start=1):
        mark = "*" if identity(old) != identity(new) else ""
        cells.append((mark, str(number), *_what_if_cells(old), *_what_if_cells(new)))
    headers = ("", "STEP", "NOW", "BY", "FREED", "THEN", "THEN_BY", "THEN_FREED")
    return cell_table(cells, headers, width, right=("FREED", "THEN_FREED"))


def _what_if_cells(step: SimulationStep | None) -> tuple[str, str, str]:
    if step is None:
        return "-", "", ""
    mark = " !" if step.important else ""
    freed = mebibytes(step.freed.free_bytes) if step.is_measured else UNKNOWN
    victim = f"{full_name(*step.key, step.container)}{mark}"
    return victim, killer_name(step.mechanism, is_own=step.is_own), freed
