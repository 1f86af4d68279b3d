"""The simulation of kills on a node as its memory fills, with a slider for the amount.

A thread builds the state of the node for each view model. The simulation, which takes a few milliseconds,
runs here at each move of the slider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Final

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.analysis.deaths import begins_with
from kubectl_qos.analysis.group_table import NodeRow, build_node_row
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.usage import ContainerKey, PodKey
from kubectl_qos.present import simulation as present
from kubectl_qos.present.format import escape
from kubectl_qos.present.list_notes import missing_sentence, no_usage_reason
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import Simulation, simulate
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.screens.base import BuiltInBackground, QosScreen
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.view import Detail
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.graph import GRAPH_HEIGHT, LEGEND, SIMULATED, node_graph
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.simulation import (
    NodeBar,
    OptionBar,
    Slider,
    VictimTable,
    memory_later,
)
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, escape_lines, note_lines

_POSITIONS: Final = 128
"""About how many small steps all memory of the node has."""
_MEBIBYTE: Final = 1 << 20
FAR: Final = 8
"""How many small steps a large one has, as does the first amount."""


class Mode(StrEnum):
    """What fills the memory; the value is its name."""

    FREE = "free memory"
    GROW = "pod grows"
    ALL_AT_LIMIT = "at limits"
    UNTIL_OOM = "until OOM"


MODES: Final = tuple(Mode)
_WITH_SLIDER: Final = frozenset({Mode.FREE, Mode.GROW})
"""The modes with an amount to choose."""


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated. `free_bytes` and `more_bytes` are the amounts of the modes FREE and GROW."""

    growing: ContainerKey
    free_bytes: int
    more_bytes: int
    mode: Mode = Mode.FREE
    eviction: bool = False
    restarts: bool = False

    @property
    def amount(self) -> int:
        return self.more_bytes if self.mode is Mode.GROW else self.free_bytes

    def with_amount(self, amount: int) -> SimulationOptions:
        if self.mode is Mode.GROW:
            return replace(self, more_bytes=max(amount, 0))
        return replace(self, free_bytes=max(amount, 0)) if self.mode is Mode.FREE else self

    def with_next_mode(self, by: int) -> SimulationOptions:
        return replace(self, mode=MODES[(MODES.index(self.mode) + by) % len(MODES)])

    def top(self, node_state: NodeState) -> int:
        """Return the maximum of the slider: all used memory, or all memory of the node if a pod grows."""
        most = node_state.total_bytes if self.mode is Mode.GROW else node_state.used_bytes
        return max(most, self.amount, 1)

    def with_steps(self, steps: int, node_state: NodeState) -> SimulationOptions:
        """Return options whose amount is some small steps higher or lower."""
        step = step_bytes(node_state)
        position = self.amount // step if steps > 0 else -(-self.amount // step)
        return self.with_amount(min((position + steps) * step, self.top(node_state)))

    def scenario(self, node_state: NodeState) -> Scenario:
        """Return the scenario for a node state. Raises InputError if the growing container is gone."""
        growth: tuple[ContainerGrowth, ...] = ()
        if self.mode is Mode.GROW:
            (namespace, name), container = self.growing
            index = node_state.find_container(name, container, namespace)
            used = node_state.containers[index].used_bytes
            growth = (ContainerGrowth(index, used + self.more_bytes, is_more=True),)
        return Scenario(
            free_bytes=self.free_bytes if self.mode is Mode.FREE else None,
            growth=growth,
            until_oom=self.mode is Mode.UNTIL_OOM,
            all_at_limit=self.mode is Mode.ALL_AT_LIMIT,
            eviction=self.eviction,
            restarts=self.restarts,
        )


@dataclass(frozen=True, slots=True)
class WholeSimulation:
    """The simulation of the maximum amount, and the amounts at which the victims die."""

    simulation: Simulation
    kill_points: tuple[int, ...]


def simulate_whole(node_state: NodeState, options: SimulationOptions) -> WholeSimulation:
    """Simulate the maximum of a mode with a slider. Raises InputError if the growing container is gone."""
    top = options.top(node_state)
    whole = simulate(node_state, options.with_amount(top).scenario(node_state))
    if options.mode is Mode.FREE:
        freed = [
            0 if step.restarts else step.freed.available_bytes if options.eviction else step.freed.free_bytes
            for step in whole.steps
        ]
        return WholeSimulation(whole, tuple(accumulate(freed[:-1], initial=0)) if freed else ())
    return WholeSimulation(whole, tuple(int(top * step.grown) for step in whole.steps))


def step_bytes(node_state: NodeState) -> int:
    """Return a small step of the slider: a power of two, according to the memory of the node."""
    part: int = node_state.total_bytes // _POSITIONS // _MEBIBYTE
    return _MEBIBYTE << max(part.bit_length() - 1, 0)


def first_options(node_state: NodeState, key: PodKey | None) -> SimulationOptions:
    """Return the first options, which free some memory. `key` is the pod that grows in the mode GROW."""
    step = step_bytes(node_state)
    amount = step * max(min(FAR, node_state.used_bytes // FAR // step), 1)
    return SimulationOptions(find_growing(node_state, key), amount, amount)


def find_growing(node_state: NodeState, key: PodKey | None) -> ContainerKey:
    """Return the container of a pod that uses most memory; without a pod, the next victim's container."""
    if key is None and node_state.containers:
        container = node_state.containers[0]
        return node_state.pod_for(container).key, container.name
    own = [container for container in node_state.containers if node_state.pod_for(container).key == key]
    most = max(own, key=lambda container: container.used_bytes, default=None)
    return key or ("", ""), most.name if most is not None else ""


_LOW, _ROOMY, _GRAPH_FROM = 20, 30, 35
"""The heights below which only the victims are shown, and from which on all notes and a graph are."""
_EVICTION: Final = "eviction"
_RESTARTS: Final = "restarts"


class SimulationScreen(
    QosScreen, BuiltInBackground[tuple[NodeState, NodeRow] | None], group=BindingGroup.SIMULATION
):
    """The victims on a node in order. `key` is the pod that grows in the mode GROW."""

    AUTO_FOCUS = "VictimTable"

    def __init__(self, node: str, view_model: ViewModel, key: PodKey | None = None) -> None:
        super().__init__()
        self._view_model = self._newest = view_model
        self._node = node
        self._key = key
        self._node_state: NodeState | None = None
        self._row: NodeRow | None = None
        self._options: SimulationOptions | None = None
        self._shown: tuple[Scenario, Simulation] | None = None
        self._whole: tuple[object, WholeSimulation] | None = None
        self._error: QosError | None = None
        self._gone = ""

    def compose_content(self) -> ComposeResult:
        yield Static(id="subject", markup=False)
        yield OptionBar()
        yield Static(id="question", markup=False)
        yield NodeBar()
        yield Slider()
        yield Static(id="outcome", markup=False)
        yield TextView(self._graph, id="memory")
        yield VictimTable()
        yield TextView(self._notes_layout, id="simulation-notes")

    def on_mount(self) -> None:
        self.rebuild()
        self._show()
        self.watch(self.app, "view_model", self.follow)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    @property
    def _is_low(self) -> bool:
        """Return whether there is room for little more than the victims."""
        return self.app.size.height < _LOW

    @property
    def table(self) -> VictimTable:
        return self.query_one(VictimTable)

    def build(self, view_model: ViewModel) -> tuple[NodeState, NodeRow] | None:
        """Return the state and row of the node, None if it is gone. For 500 pods it takes 50 ms."""
        snapshot = view_model.snapshot
        pods = snapshot.by_node().get(self._node, ())
        if self._node not in snapshot.nodes and not pods:
            return None
        node_state = state_of_node(snapshot, self._node).require_capacity()
        return node_state, build_node_row(snapshot, self._node)

    def show_built(self, built: tuple[NodeState, NodeRow] | QosError | None) -> None:
        """Simulate the node as it is now, or as it was last if it is gone."""
        if built is None:
            since = f"{self._view_model.taken:%H:%M:%S %Z}"
            self._gone = self._gone or f", gone since {since}; last known state"
        elif isinstance(built, QosError):
            self._error, self._node_state, self._shown = built, None, None
        else:
            self._gone, (self._node_state, self._row) = "", built
            self._options = self._options or first_options(self._node_state, self._key)
        self._show()

    def _show(self) -> None:
        node_state, options = self._node_state, self._options
        subject = f"node {escape(self._node)}{self._gone}"
        if node_state is not None and options is not None:
            subject = f"{present.simulation_subject(node_state)}{self._gone}"
            self._simulate(node_state, options)
        self.query_one("#subject", Static).update(Content(subject))
        self.table.border_title = subject if self._is_low else "Who dies, in order"
        self._show_options()
        simulation = self._shown[1] if self._shown is not None else None
        reached, whole = len(simulation.steps) if simulation is not None else 0, self._whole_now()
        whole_simulation = whole.simulation if whole is not None else simulation
        self.query_one(NodeBar).show(node_state, whole_simulation, reached)
        slider = self.query_one(Slider)
        slider.display = simulation is not None and options is not None and options.mode in _WITH_SLIDER
        if node_state is not None and options is not None:
            kill_points = whole.kill_points if whole is not None else ()
            slider.show(options.amount, options.top(node_state), step_bytes(node_state), kill_points)
        self._show_words()
        memory = self.query_one("#memory", TextView)
        memory.display = self.app.size.height >= _GRAPH_FROM
        memory.show(self._graph)
        in_danger = self._view_model.is_in_danger(self._node)
        self.table.show(simulation, self.qos.source.now(), whole_simulation, in_danger=in_danger)
        self._show_notes()

    def _show_options(self) -> None:
        """Show the modes (a low screen has room for only the present one) and the two switches."""
        options = self._options
        chosen = options.mode if options is not None else Mode.FREE
        modes = [chosen] if self._is_low else MODES
        bar = [(mode.value, f" {'>' if mode is chosen else ' '} {mode}", mode is chosen) for mode in modes]
        for name in (_EVICTION, _RESTARTS):
            is_on = options is not None and getattr(options, name)
            bar.append((name, f"  [{'x' if is_on else ' '}] {name}", is_on))
        self.query_one(OptionBar).show_options(bar)

    @on(LineTable.Highlighted)
    def _show_notes(self) -> None:
        """Show the note of the row in full if the table cuts it, and the notes on the simulation."""
        row = self.table.row
        note = escape(present.step_note(row)) if row is not None else ""
        is_whole = self.table.columns.by_key.get("note", 0) >= cell_len(note)
        self.table.border_subtitle = "" if is_whole else note
        self.query_one("#simulation-notes", TextView).show(self._notes_layout)

    def _graph(self, width: int) -> list[TextLine]:
        """Draw the memory of the node so far, and as simulated."""
        node_state, shown, row = self._node_state, self._shown, self._row
        if node_state is None or shown is None or row is None or row.memory.used is None:
            return []
        later = list(memory_later(node_state, shown[1]))
        now = [used >> 10 for used in row.memory.used.values()]
        classes = self.qos.trends.of_node(self._node) or (now,)
        lines = node_graph(row, classes, GRAPH_HEIGHT, width, later)
        legend = [((f"{LEGEND}, {SIMULATED} as simulated", "muted"),)] if lines else []
        return [TextLine.of(*parts) for parts in (*lines, *legend)]

    def _whole_now(self) -> WholeSimulation | None:
        """Return the simulation of the maximum if the shown one is its beginning; it is cached."""
        node_state, options, shown = self._node_state, self._options, self._shown
        if node_state is None or options is None or shown is None or options.mode not in _WITH_SLIDER:
            return None
        made_from = node_state, options.with_amount(0), options.top(node_state)
        if self._whole is None or self._whole[0] != made_from:
            self._whole = made_from, simulate_whole(node_state, options)
        whole = self._whole[1]
        return whole if begins_with(whole.simulation, shown[1]) else None

    def _simulate(self, node_state: NodeState, options: SimulationOptions) -> None:
        self._shown = self._error = None
        try:
            if node_state.is_unmeasured and options.mode in {Mode.FREE, Mode.UNTIL_OOM}:
                without = f"{Mode.ALL_AT_LIMIT} and {Mode.GROW} work"
                reason = no_usage_reason(self._view_model.snapshot)
                raise InputError(present.NO_USAGE, hint=f"{reason}; {without}")
            scenario = options.scenario(node_state)
            self._shown = scenario, simulate(node_state, scenario)
        except QosError as error:
            self._error = error

    def _show_words(self) -> None:
        shown, node_state = self._shown, self._node_state
        words = ""
        if shown is not None and node_state is not None:
            next_death = None if self._is_low else self._next_death
            words = present.question(node_state, *shown, next_death)
        line = self.query_one("#question", Static)
        line.update(Content(words))
        line.display = bool(words)
        outcome = self.query_one("#outcome", Static)
        outcome.set_class(self._error is not None, "wrong")
        if self._error is not None:
            outcome.update(Content(escape_lines("! " + self._error.with_hint("\n"))))
        else:
            text, key = "Simulating …", self.qos.keys.first("simulation.eviction")
            if shown is not None and node_state is not None:
                text = present.simulation_summary(node_state, shown[1], key)
            outcome.update(Content(text))

    @property
    def _next_death(self) -> NextDeath | None:
        return next(iter(self._view_model.known_deaths(self._node)), None)

    def notes_now(self) -> list[str]:
        notes = [missing_sentence(missing) for missing in self._view_model.snapshot.missing]
        if self._node_state is not None and self._shown is not None:
            restarts_by = self.qos.keys.first("simulation.restarts")
            notes += present.simulation_notes(self._node_state, self._shown[1], restarts_by)
            notes += [] if self.qos.source.is_from_files else [present.BUDGETS_NOT_READ]
        return [escape_lines(note) for note in notes]

    def _notes_layout(self, width: int) -> list[TextLine]:
        key, is_roomy = self.qos.keys.first("simulation.notes"), self.app.size.height >= _ROOMY
        notes, row = self.notes_now(), self.table.row
        is_complete = not self._view_model.snapshot.missing
        if row is not None and (of_row := present.step_note(row)) and is_complete and not is_roomy:
            notes[:1] = [f"step {row.place}: {of_row}"]
        return list(note_lines(notes, key, width, is_roomy=is_roomy))

    def _change(self, change: Callable[[SimulationOptions], SimulationOptions]) -> None:
        if self._options is not None and (options := change(self._options)) != self._options:
            self._options = options
            self._show()

    def _slide(self, steps: int) -> None:
        if self._node_state is not None:
            node_state = self._node_state
            self._change(lambda options: options.with_steps(steps, node_state))

    def action_less(self) -> None:
        self._slide(-1)

    def action_more(self) -> None:
        self._slide(1)

    def action_far_less(self) -> None:
        self._slide(-FAR)

    def action_far_more(self) -> None:
        self._slide(FAR)

    def action_least(self) -> None:
        self._change(lambda options: options.with_amount(0))

    def action_most(self) -> None:
        node_state = self._node_state
        if node_state is not None:
            self._change(lambda options: options.with_amount(options.top(node_state)))

    @on(Slider.Moved)
    def _slid(self, event: Slider.Moved) -> None:
        self._change(lambda options: options.with_amount(event.amount))

    @on(events.Click, "OptionBar")
    def _clicked(self, event: events.Click) -> None:
        name = self.query_one(OptionBar).option_at(event.x, event.y)
        if name == _EVICTION:
            self.action_eviction()
        elif name == _RESTARTS:
            self.action_restarts()
        elif name is not None:
            self._change(lambda options: replace(options, mode=Mode(name)))

    def action_mode(self) -> None:
        self._change(lambda options: options.with_next_mode(1))

    def action_previous_mode(self) -> None:
        self._change(lambda options: options.with_next_mode(-1))

    def action_eviction(self) -> None:
        self._change(lambda options: replace(options, eviction=not options.eviction))

    def action_restarts(self) -> None:
        self._change(lambda options: replace(options, restarts=not options.restarts))

    def action_growing_pod(self) -> None:
        ranked = self._view_model.rows.nodes.get(self._node)
        if self._node_state is not None:
            rows = ranked.rows if ranked is not None else ()
            self.qos.push_screen(Finder(rows, self.qos.source.now(), title="Which pod grows?"), self._grows)

    def _grows(self, row: PodRow | None) -> None:
        if row is not None and self._node_state is not None:
            growing = find_growing(self._node_state, row.pod.key)
            self._change(lambda options: replace(options, mode=Mode.GROW, growing=growing))

    @on(LineTable.Selected)
    def action_explain(self) -> None:
        row = self.table.row
        pod = pod_named(self._view_model, row.key, self._node) if row is not None else None
        if pod is None:
            self.qos.warn("there is no pod to open")
        elif self.is_uppermost:
            self.qos.open(Detail.EXPLAIN, pod)

    def action_copy(self) -> None:
        if self._shown is None or self._node_state is None:
            self.qos.warn("there is no simulation to copy")
            return
        lines = present.simulation_lines(self._node_state, self._shown[1], self._next_death)
        self.qos.copy("\n".join([*lines, *self.notes_now()]) + "\n", "the simulation")
