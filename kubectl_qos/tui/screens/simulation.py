"""Who dies on a node as its memory fills, with a slider for how much: the screen of `kubectl qos simulate`.

What the node is like is worked out in a thread, once for each facts; what happens on it is worked out here,
at each move of the slider, which takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.present.simulation import (
    BUDGETS_NOT_READ,
    NO_USAGE,
    NO_USAGE_HINT,
    scenario_sentence,
    simulation_lines,
    simulation_notes,
    simulation_subject,
    simulation_summary,
)
from kubectl_qos.qos.simulation.engine import Simulation, simulate
from kubectl_qos.qos.simulation.node_state import NodeState, Scenario
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.go_to import Detail
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.simulation_options import (
    FAR,
    MODES,
    Mode,
    SimulationOptions,
    find_growing,
    first_options,
    step_bytes,
)
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.choices import Option, OptionBar
from kubectl_qos.tui.widgets.footer import KeyFooter, unwatch
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.slider import Slider
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, escape_lines, note_lines
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.widgets.victim_table import VictimTable
from kubectl_qos.tui.workers import NodeStateBuilt, load_node_state

_ROOMY: Final = 30
"""So many lines have room for all notes."""
_EVICTION: Final = "eviction"
_RESTARTS: Final = "restarts"


class SimulationScreen(QosScreen):
    """The victims in order, the next one first. `key` is the pod that grows where one does."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.SIMULATION)
    CSS_PATH = "simulation.tcss"
    AUTO_FOCUS = "VictimTable"
    rooms = (BindingGroup.SIMULATION,)

    def __init__(self, node: str, facts: ViewModel, key: PodKey | None = None) -> None:
        super().__init__()
        self._node = node
        self._key = key
        self._facts = self._wanted = facts
        self._is_working = False
        self._node_state: NodeState | None = None
        self._wish: SimulationOptions | None = None
        self._shown: tuple[Scenario, Simulation] | None = None
        self._problem: QosError | None = None
        self._loss = ""

    def compose(self) -> ComposeResult:
        """The node, what is asked of it, what comes of it."""
        yield TitleLine()
        yield Static(id="subject", markup=False)
        yield OptionBar()
        yield Static(id="question", markup=False)
        yield Slider()
        yield Static(id="outcome", markup=False)
        yield VictimTable()
        yield TextView(self._notes_layout, id="simulation-notes")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Work out what the node is like, now and whenever that may have changed."""
        self.qos.show_title()
        self._work_out()
        self._show()
        self.watch(self.app, "facts", self._follow)

    def on_resize(self) -> None:
        """More notes, or fewer."""
        self.query_one(TextView).show(self._notes_layout)

    def on_unmount(self) -> None:
        """Follow nothing any more."""
        unwatch(self.app, self)

    @property
    def table(self) -> VictimTable:
        """The victims."""
        return self.query_one(VictimTable)

    def _follow(self, facts: ViewModel | None) -> None:
        """One situation at a time: of facts that come meanwhile, the newest are next."""
        if facts is not None and facts is not self._wanted:
            self._wanted = facts
            if not self._is_working:
                self._work_out()

    def _work_out(self) -> None:
        self._is_working = True
        in_background(self, partial(load_node_state, self._node, self._wanted))

    def on_node_state_built(self, message: NodeStateBuilt) -> None:
        """The same question, of the node as it is now; as it was last where it is gone."""
        self._is_working = False
        found, since = message.found, f"{message.facts.taken:%H:%M:%S %Z}"
        self._facts = message.facts
        if found is None:
            self._loss = self._loss or f", gone since {since}; as it was last"
        elif isinstance(found, QosError):
            self._problem, self._node_state, self._shown = found, None, None
        else:
            self._loss, self._node_state = "", found
            self._wish = self._wish or first_options(found, self._key)
        self._show()
        if self._wanted is not message.facts:
            self._work_out()

    def _show(self) -> None:
        node_state, wish = self._node_state, self._wish
        if node_state is not None and wish is not None:
            self._simulate(node_state, wish)
        text = simulation_subject(node_state) if node_state is not None else f"node {escape(self._node)}"
        self.query_one("#subject", Static).update(Content(text + self._loss))
        on = wish.mode if wish is not None else Mode.FREE
        self.query_one(OptionBar).show(
            [
                *(Option(mode.value, mode is on) for mode in MODES),
                Option(_EVICTION, wish is not None and wish.eviction, is_switch=True),
                Option(_RESTARTS, wish is not None and wish.restarts, is_switch=True),
            ]
        )
        slider = self.query_one(Slider)
        slider.display = self._shown is not None and wish is not None and wish.has_slider
        if node_state is not None and wish is not None:
            slider.show(wish.amount, wish.top(node_state), step_bytes(node_state))
        self._show_words()
        self.table.show(self._shown[1] if self._shown is not None else None, self.qos.source.now())
        self.query_one("#simulation-notes", TextView).show(self._notes_layout)

    def _simulate(self, node_state: NodeState, wish: SimulationOptions) -> None:
        """What happens, or why that cannot be said."""
        self._shown = self._problem = None
        try:
            if not node_state.used_bytes and wish.mode in {Mode.FREE, Mode.UNTIL_OOM}:
                raise InputError(NO_USAGE, hint=NO_USAGE_HINT)
            scenario = wish.scenario(node_state)
            self._shown = scenario, simulate(node_state, scenario)
        except QosError as error:
            self._problem = error

    def _show_words(self) -> None:
        shown, node_state = self._shown, self._node_state
        asked = (
            scenario_sentence(node_state, shown[0]) if shown is not None and node_state is not None else ""
        )
        line = self.query_one("#question", Static)
        line.update(Content(asked))
        line.display = bool(asked)
        outcome = self.query_one("#outcome", Static)
        outcome.set_class(self._problem is not None, "wrong")
        if self._problem is not None:
            hint = f"\n{self._problem.hint}" if self._problem.hint else ""
            outcome.update(Content(escape_lines(f"! {self._problem}{hint}")))
        else:
            outcome.update(Content(simulation_summary(shown[1]) if shown is not None else "Working it out …"))

    def notes_now(self) -> list[str]:
        """What is estimated, assumed, missing or not asked for."""
        found = [missing_sentence(missing) for missing in self._facts.snapshot.missing]
        if self._node_state is not None and self._shown is not None:
            found += simulation_notes(self._node_state, self._shown[1])
            found += [BUDGETS_NOT_READ] if self.qos.source.is_live else []
        return [escape_lines(note) for note in found]

    def _notes_layout(self, width: int) -> list[TextLine]:
        key, is_roomy = self.qos.keys.first("simulation.notes"), self.app.size.height >= _ROOMY
        return list(note_lines(self.notes_now(), key, width, is_roomy=is_roomy))

    def _ask(self, other: Callable[[SimulationOptions], SimulationOptions]) -> None:
        """Another question, made of the present one."""
        if self._wish is not None and (wish := other(self._wish)) != self._wish:
            self._wish = wish
            self._show()

    def _slide(self, steps: int) -> None:
        if self._node_state is not None:
            node_state = self._node_state
            self._ask(lambda wish: wish.slid(steps, node_state))

    def action_less(self) -> None:
        """A step to the left."""
        self._slide(-1)

    def action_more(self) -> None:
        """A step to the right."""
        self._slide(1)

    def action_far_less(self) -> None:
        """A larger step to the left."""
        self._slide(-FAR)

    def action_far_more(self) -> None:
        """A larger step to the right."""
        self._slide(FAR)

    def action_least(self) -> None:
        """Nothing."""
        self._ask(lambda wish: wish.moved(0))

    def action_most(self) -> None:
        """All of it."""
        node_state = self._node_state
        if node_state is not None:
            self._ask(lambda wish: wish.moved(wish.top(node_state)))

    @on(Slider.Moved)
    def _slid(self, event: Slider.Moved) -> None:
        self._ask(lambda wish: wish.moved(event.amount))

    @on(OptionBar.Clicked)
    def _clicked(self, event: OptionBar.Clicked) -> None:
        if event.name == _EVICTION:
            self.action_eviction()
        elif event.name == _RESTARTS:
            self.action_restarts()
        else:
            self._ask(lambda wish: replace(wish, mode=Mode(event.name)))

    def action_mode(self) -> None:
        """The next one."""
        self._ask(lambda wish: wish.turned(1))

    def action_mode_before(self) -> None:
        """The one before."""
        self._ask(lambda wish: wish.turned(-1))

    def action_eviction(self) -> None:
        """The kubelet evicts before the kernel kills, or does not."""
        self._ask(lambda wish: replace(wish, eviction=not wish.eviction))

    def action_restarts(self) -> None:
        """Killed containers come back, or do not."""
        self._ask(lambda wish: replace(wish, restarts=not wish.restarts))

    def action_who(self) -> None:
        """Choose the pod that grows."""
        ranked = self._facts.rows.nodes.get(self._node)
        if self._node_state is not None:
            rows = ranked.rows if ranked is not None else ()
            self.qos.push_screen(Finder(rows, self.qos.source.now(), title="Which pod grows?"), self._grows)

    def _grows(self, row: PodRow | None) -> None:
        if row is not None and self._node_state is not None:
            grower = find_growing(self._node_state, (row.pod.metadata.namespace, row.pod.metadata.name))
            self._ask(lambda wish: replace(wish, mode=Mode.GROW, grower=grower))

    @on(LineTable.Selected)
    def action_explain(self) -> None:
        """Why the victim stands where it stands."""
        row = self.table.row
        pod = pod_named(self._facts, row.key, self._node) if row is not None else None
        if pod is None:
            self.qos.tell("there is no pod to open", wrong=True)
        elif self.is_uppermost:
            self.qos.open(Detail.EXPLAIN, pod)

    def action_notes(self) -> None:
        """Whole."""
        notes = self.notes_now()
        if notes:
            self.qos.read("Notes", notes)
        else:
            self.qos.tell("there are no notes")

    def action_copy(self) -> None:
        """The same as text, as the command prints it."""
        if self._shown is None or self._node_state is None:
            self.qos.tell("there is no simulation to copy", wrong=True)
            return
        lines = simulation_lines(self._node_state, self._shown[1])
        self.qos.copy("\n".join([*lines, *self.notes_now()]) + "\n", "the simulation")

    def action_back(self) -> None:
        """Back to the list."""
        self.dismiss()
