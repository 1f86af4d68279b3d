"""The pod switcher: some letters of a name, and the pods that they may mean."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input

from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import BY_KEY
from kubectl_qos.present.rows import PodRow
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.fuzzy import LONGEST_QUERY, found
from kubectl_qos.tui.lists.fitting import most_important
from kubectl_qos.tui.lists.pods import pod_token
from kubectl_qos.tui.screens.once import Question
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_layout import Layout

MOST: Final = 200
_KEYS: Final = ("namespace", "pod", "qos", "node", "rank")
_IMPORTANCE: Final = ("pod", "namespace", "rank", "node", "pod", "namespace", "node", "qos")
_SQUEEZED: Final = {"pod": 32, "namespace": 12, "node": 12}


class Finder(Question[PodRow | None]):
    """Type, choose with the arrows, go there with enter."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.FINDER)
    CSS_PATH = "finder.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, rows: Sequence[PodRow], now: datetime) -> None:
        super().__init__()
        self._rows = rows
        self._now = now

    def compose(self) -> ComposeResult:
        """What is typed, above what it may mean."""
        with Vertical(id="finder"):
            yield Input(placeholder="some letters of a pod's name", compact=True, max_length=LONGEST_QUERY)
            yield LineTable[PodRow](natural="", key=lambda row: row.key, token=pod_token)

    @property
    def _table(self) -> LineTable[PodRow]:
        return self.query_one(LineTable)

    def on_mount(self) -> None:
        """Everything, in kill order."""
        self._table.can_focus = False
        self.query_one("#finder").border_title = "Find a pod"
        self._show("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    def _show(self, query: str) -> None:
        rows = found(query, self._rows, MOST)
        empty = f"No pod has the letters of {escape(query)}." if query else "There are no pods."
        self._table.load(rows, partial(_layout, rows, self._now), self._now, empty=empty)
        self._table.action_first()

    @on(Input.Submitted)
    @on(LineTable.Selected)
    def _chosen(self) -> None:
        self.dismiss(self._table.row)

    def action_above(self) -> None:
        """The pod above."""
        self._table.action_up()

    def action_below(self) -> None:
        """The pod below."""
        self._table.action_down()

    def action_leave(self) -> None:
        """Go nowhere."""
        self.dismiss(None)


def _layout(rows: Sequence[PodRow], now: datetime, available: int) -> Layout[PodRow]:
    return most_important([BY_KEY[key] for key in _KEYS], _IMPORTANCE, rows, now, available, _SQUEEZED)
