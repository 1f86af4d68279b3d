"""The widgets of the simulation screen: the memory of the node, a slider, options, the table of victims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from kubectl_qos.analysis.deaths import VictimRow, reach_rows, victim_rows
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import binary
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.present.simulation import REACH_COLUMNS, STEP_COLUMNS
from kubectl_qos.qos.simulation.engine import Simulation
from kubectl_qos.qos.simulation.node_state import NodeState, SimulatedContainer
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import fitting_columns
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, style_of


class NodeBar(Widget):
    """A node's memory in one line, with a segment for each container; the next victim is the last one.

    Segments of killed and evicted containers are hollow.
    """

    def __init__(self) -> None:
        super().__init__()
        self._segments: tuple[tuple[int, str, str, str], ...] = ()
        self._total = 1

    def show(self, node_state: NodeState | None, whole: Simulation | None, reached: int) -> None:
        """Show a node whose first `reached` victims of the whole simulation are dead."""
        self._segments = tuple(_segments(node_state, whole, reached)) if node_state is not None else ()
        self._total = node_state.total_bytes if node_state is not None else 1
        self.refresh()

    def render(self) -> Content:
        cells = self.content_size.width
        parts, position, end = [], 0, 0
        for used, sign, style, letter in self._segments:
            end += used
            here = min(round(cells * end / self._total), cells) - position
            if here > 0:
                gap = _ENDS.get(sign, sign) if here > 1 else sign
                bar, middle = sign * (here - 1) + gap, here // 2
                if letter and here >= _MIN_LETTERED:
                    parts.append(Content.styled(bar[:middle], style))
                    parts.append(Content.styled(letter, f"reverse {style}"))
                    bar = bar[middle + 1 :]
                parts.append(Content.styled(bar, style))
                position += here
        if self._segments:
            parts.append(Content.styled("·" * (cells - position), "$secondary"))
        return Content.assemble(*parts)


def memory_later(node_state: NodeState, simulation: Simulation) -> Iterator[tuple[int, bool]]:
    """Yield the memory of all pods in KiB before and after each kill, and at the end.

    The boolean says whether a kill has just happened.
    """
    used = now = node_state.used_bytes
    for step in simulation.steps:
        after = now + simulation.before.free_bytes - step.level.free_bytes
        if not step.restarts and (grown := after + step.freed.free_bytes) > used:
            yield grown >> 10, False
        yield after >> 10, True
        used = after
    end = now + simulation.before.free_bytes - simulation.after.free_bytes
    if end != used:
        yield end >> 10, False


_MIN_LETTERED: Final = 4
"""From this width on a segment has the letter of its class."""
_USED, _FREED, _OWN = "█", "░", "▒"
_ENDS: Final = {_USED: "▊", _FREED: " "}
"""The last cell of a segment, so that segments can be told apart."""


def _segments(
    node_state: NodeState, whole: Simulation | None, reached: int
) -> Iterator[tuple[int, str, str, str]]:
    """Yield the bytes, fill, style and class letter of each container, the next victim last."""
    steps = whole.steps if whole is not None else ()
    places: dict[tuple[PodKey, str], int] = {}
    for place, step in enumerate(steps):
        places.setdefault((step.key, step.container), place)
    if node_state.own_bytes:
        yield node_state.own_bytes, _OWN, "$secondary", ""
    last = len(steps)

    def place_of(container: SimulatedContainer) -> int:
        key = node_state.pod_for(container).key
        return min(places.get((key, container.name), last), places.get((key, ""), last))

    for container in sorted(node_state.containers, key=place_of, reverse=True):
        of_class = CLASSES[node_state.pod_for(container).qos]
        if place_of(container) < reached:
            yield container.used_bytes, _FREED, "$secondary", ""
        else:
            yield container.used_bytes, _USED, style_of(of_class.token), of_class.letter


class Slider(Widget):
    """An amount between 0 and a maximum, which the mouse sets; amounts at which pods die are marked.

    `left` and `right` are the words at its ends; by default the right one is the maximum in bytes.
    """

    @dataclass
    class Moved(Message):
        """A person has set the amount."""

        amount: int

    def __init__(self, left: str = "0", right: str = "") -> None:
        super().__init__()
        self._left, self._given_right = f"{left} ", right
        self._amount, self._top, self._step = 0, 1, 1
        self._marks: tuple[int, ...] = ()
        self._held = False

    def show(self, amount: int, top: int, step: int, marks: Sequence[int] = ()) -> None:
        """Show an amount, the maximum `top`, and marked amounts; the mouse sets multiples of `step`."""
        if (amount, top, step, tuple(marks)) != (self._amount, self._top, self._step, self._marks):
            self._amount, self._top, self._step, self._marks = amount, top, step, tuple(marks)
            self.refresh()

    @property
    def _right(self) -> str:
        return f" {self._given_right or binary(self._top)}"

    @property
    def _cells(self) -> int:
        return max(self.content_size.width - cell_len(self._left) - cell_len(self._right), 2)

    def _cell(self, amount: int) -> int:
        return round((self._cells - 1) * min(amount, self._top) / self._top)

    def render(self) -> Content:
        knob, marks = self._cell(self._amount), {self._cell(mark) for mark in self._marks}
        past = "".join("◆" if cell in marks else "━" for cell in range(knob))
        later = "".join("◇" if cell in marks else "─" for cell in range(knob + 1, self._cells))
        return Content.assemble(
            Content.styled(self._left, "$secondary"),
            Content.styled(past, "$accent"),
            Content.styled("●", "bold $accent"),
            Content.styled(later, "$secondary"),
            Content.styled(self._right, "$secondary"),
        )

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._held = True
        self.capture_mouse()
        self._go_to(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._held:
            self._go_to(event)

    def on_mouse_up(self) -> None:
        self._held = False
        self.release_mouse()

    def _go_to(self, event: events.MouseEvent) -> None:
        cell = event.screen_x - self.content_region.x - cell_len(self._left)
        part = max(min(cell, self._cells - 1), 0) / (self._cells - 1)
        amount = self._top if part == 1 else round(part * self._top / self._step) * self._step
        if amount != self._amount:
            self.post_message(self.Moved(amount))


Option = tuple[str, str, bool]
"""The name of an option, its text with the gap before it, and whether it is on."""


class OptionBar(TextView):
    """Options side by side, in as many lines as they need."""

    _lines: Sequence[Sequence[Option]] = ()

    def show_options(self, options: Sequence[Option]) -> None:
        def layout(width: int) -> list[TextLine]:
            lines: list[list[Option]] = [[]]
            for option in options:
                if lines[-1] and sum(cell_len(text) for _, text, _ in (*lines[-1], option)) > width:
                    lines.append([])
                lines[-1].append(option)
            self._lines = lines
            return [
                TextLine.of(*((text, "title" if is_on else "") for _, text, is_on in line)) for line in lines
            ]

        self.show(layout)

    def option_at(self, x: int, y: int) -> str | None:
        """Return the name of the option that a cell shows."""
        place = self.part_at(x, y)
        return self._lines[place[0]][place[1]][0] if place is not None else None


_IMPORTANCE: Final = (
    "victim more growth by freed step container victim by container free_after note qos note score"
)
_SQUEEZED: Final = {"victim": 24, "by": 14, "container": 6, "note": 24}


class VictimTable(LineTable[VictimRow]):
    """The victims of a simulation in order; without steps, the distance to each mechanism."""

    def __init__(self) -> None:
        super().__init__(natural="step", key=lambda row: row.identity, token=self._token_for)
        self.flashes = False
        self._is_in_danger = False

    def show(
        self, simulation: Simulation | None, now: datetime, whole: Simulation | None, *, in_danger: bool
    ) -> None:
        """Show the steps of a simulation, and those that follow in the whole one."""
        self._is_in_danger = in_danger
        rows, columns = list[VictimRow](), STEP_COLUMNS
        if simulation is not None and simulation.distances:
            rows, columns = reach_rows(simulation), REACH_COLUMNS
        elif simulation is not None:
            rows = victim_rows(simulation, whole)
        self.load(rows, partial(fitting_columns, columns, _IMPORTANCE, _SQUEEZED), now)

    def _token_for(self, row: VictimRow, key: str) -> str:
        if row.is_important and (key == "note" or (key == "victim" and row.is_reached)):
            return "warning"
        if not row.is_reached:
            return "muted"
        if row.place == 1 and key == "victim":
            return "victim" if self._is_in_danger else ""
        if key == "qos" and row.step is not None and row.step.qos is not None:
            return CLASSES[row.step.qos].token
        return "muted" if key in {"free_after", "container"} else ""
