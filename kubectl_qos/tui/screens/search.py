"""A line to type in, and below it what that may mean: the form of the pod switcher and of the palette."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, TypeVar

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


class Search(Question[RowT | None]):
    """Type, choose with the arrows, take it with enter.

    Subclasses say what is found, how it looks, and the sentence for nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.FINDER)
    CSS_PATH = "dialog_table.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, title: str, placeholder: str, table: LineTable[RowT], now: datetime) -> None:
        super().__init__()
        self._title = title
        self._placeholder = placeholder
        self._table = table
        self._now = now

    def found(self, query: str) -> Sequence[RowT]:
        """What the typed letters may mean, the likeliest first."""
        raise NotImplementedError

    def fitting(self, rows: Sequence[RowT], available: int) -> Layout[RowT]:
        """The columns for so many cells."""
        raise NotImplementedError

    def nothing(self, query: str) -> str:
        """Why there is no row."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """What is typed, above what it may mean."""
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = self._title
            yield Input(placeholder=self._placeholder, compact=True, max_length=LONGEST_QUERY)
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
        rows = self.found(query)
        self._table.load(rows, partial(self.fitting, rows), self._now, empty=self.nothing(query))
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
