"""The widgets of the simulation screen: a slider, a bar of options, the table of victims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from kubectl_qos.present.format import binary
from kubectl_qos.present.simulation import REACH_COLUMNS, STEP_COLUMNS, VictimRow, reach_rows, victim_rows
from kubectl_qos.qos.simulation.engine import Simulation
from kubectl_qos.tui.lists.base import fitting_columns
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import Layout

_LEFT: Final = "0 "


class Slider(Widget):
    """An amount between 0 and a maximum, set by mouse; keys are the screen's."""

    DEFAULT_CSS = "Slider { height: 1; width: 1fr; }"

    @dataclass
    class Moved(Message):
        """A person has set the amount."""

        amount: int

    def __init__(self) -> None:
        super().__init__()
        self._amount, self._top, self._step = 0, 1, 1
        self._held = False

    def show(self, amount: int, top: int, step: int) -> None:
        """Show an amount, its maximum, and the step that amounts are multiples of."""
        if (amount, top, step) != (self._amount, self._top, self._step):
            self._amount, self._top, self._step = amount, top, step
            self.refresh()

    @property
    def _right(self) -> str:
        return f" {binary(self._top)}"

    @property
    def _cells(self) -> int:
        return max(self.content_size.width - cell_len(_LEFT) - cell_len(self._right), 2)

    def render(self) -> Content:
        knob = round((self._cells - 1) * min(self._amount, self._top) / self._top)
        return Content.assemble(
            Content.styled(_LEFT, "$secondary"),
            Content.styled("━" * knob, "$accent"),
            Content.styled("●", "bold $accent"),
            Content.styled("─" * (self._cells - knob - 1), "$secondary"),
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
        cell = event.screen_x - self.content_region.x - cell_len(_LEFT)
        part = max(min(cell, self._cells - 1), 0) / (self._cells - 1)
        amount = self._top if part == 1 else round(part * self._top / self._step) * self._step
        if amount != self._amount:
            self.post_message(self.Moved(amount))


class Option(NamedTuple):
    """One option; a switch is on or off by itself, of all others one is chosen."""

    name: str
    is_on: bool
    is_switch: bool = False

    @property
    def text(self) -> str:
        """The name with a sign: colour is never the only one."""
        if self.is_switch:
            return f"[{'x' if self.is_on else ' '}] {self.name}"
        return f"{'>' if self.is_on else ' '} {self.name}"

    @property
    def gap(self) -> int:
        """The cells before it."""
        return 2 if self.is_switch else 1


class OptionBar(Widget):
    """Options beside each other, in as many lines as they need."""

    DEFAULT_CSS = "OptionBar { height: auto; width: 1fr; }"

    @dataclass
    class Clicked(Message):
        """An option was clicked."""

        name: str

    def __init__(self) -> None:
        super().__init__()
        self._options: tuple[Option, ...] = ()

    def show(self, options: Sequence[Option]) -> None:
        if tuple(options) != self._options:
            self._options = tuple(options)
            self.refresh(layout=True)

    def _lines(self, width: int) -> list[list[Option]]:
        lines: list[list[Option]] = [[]]
        room = width
        for option in self._options:
            needed = option.gap + cell_len(option.text)
            if needed > room and lines[-1]:
                lines.append([])
                room = width
            lines[-1].append(option)
            room -= needed
        return lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        lines = [
            Content.assemble(
                *(
                    Content.assemble(
                        " " * option.gap, Content.styled(option.text, "bold $accent" if option.is_on else "")
                    )
                    for option in line
                )
            )
            for line in self._lines(self.content_size.width)
        ]
        return Content("\n").join(lines)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        x = offset.x
        for option in self._lines(self.content_size.width)[offset.y]:
            x -= option.gap
            if 0 <= x < cell_len(option.text):
                self.post_message(self.Clicked(option.name))
            x -= cell_len(option.text)


_IMPORTANCE: Final = (
    "victim by more growth step freed free_after note victim note score qos container container"
)
_SQUEEZED: Final = {"victim": 20, "note": 14, "container": 6}


class VictimTable(LineTable[VictimRow]):
    """Those who are killed, the next one first; or whom each mechanism would hit first."""

    def __init__(self) -> None:
        super().__init__(natural="step", key=lambda row: row.identity, token=_token)
        self.flashes = False

    def show(self, simulation: Simulation | None, now: datetime) -> None:
        by_distance = simulation is not None and bool(simulation.distances)
        rows = (
            [] if simulation is None else reach_rows(simulation) if by_distance else victim_rows(simulation)
        )
        columns = REACH_COLUMNS if by_distance else STEP_COLUMNS

        def fitting(available: int) -> Layout[VictimRow]:
            return fitting_columns(columns, _IMPORTANCE, rows, now, available, _SQUEEZED)

        self.load(rows, fitting, now)


def _token(row: VictimRow, key: str) -> str:
    if row.is_important and key in {"victim", "note"}:
        return "warning"
    if row.place == 1 and key == "victim":
        return "victim"
    return "muted" if key in {"free_after", "container"} else ""
