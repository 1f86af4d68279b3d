"""A line to type in, and below it what that may mean: the form of the pod switcher and of the palette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input

from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.fuzzy import LONGEST_QUERY
from kubectl_qos.tui.screens.once import Question
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_layout import Layout

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Searched(Generic[RowT]):
    """What is searched.

    Attributes:
        title: what the dialog is called.
        placeholder: what an empty line says.
        found: what typed letters may mean, the likeliest first.
        fitting: the columns for rows and so many cells.
        nothing: why there is no row for what was typed.
    """

    title: str
    placeholder: str
    found: Callable[[str], Sequence[RowT]]
    fitting: Callable[[Sequence[RowT], int], Layout[RowT]]
    nothing: Callable[[str], str]


class Search(Question[RowT | None]):
    """Type, choose with the arrows, take it with enter."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.FINDER)
    CSS_PATH = "dialog_table.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, searched: Searched[RowT], table: LineTable[RowT], now: datetime) -> None:
        super().__init__()
        self._searched = searched
        self._table = table
        self._now = now

    def compose(self) -> ComposeResult:
        """What is typed, above what it may mean."""
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = self._searched.title
            yield Input(placeholder=self._searched.placeholder, compact=True, max_length=LONGEST_QUERY)
            self._table.can_focus = False
            yield self._table

    def on_mount(self) -> None:
        """Everything there is."""
        self._show("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    def _show(self, query: str) -> None:
        searched = self._searched
        rows = searched.found(query)
        self._table.load(rows, partial(searched.fitting, rows), self._now, empty=searched.nothing(query))
        self._table.action_first()

    @on(Input.Submitted)
    @on(LineTable.Selected)
    def _chosen(self) -> None:
        self.dismiss(self._table.row)

    def action_above(self) -> None:
        """The one above."""
        self._table.action_up()

    def action_below(self) -> None:
        """The one below."""
        self._table.action_down()

    def action_leave(self) -> None:
        """Take nothing."""
        self.dismiss(None)
