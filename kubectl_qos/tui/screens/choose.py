"""One of several names to choose."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import Align, ColumnOf
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.screens.once import Question
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_layout import GUTTER, Layout


class Choose(Question[str | None]):
    """Names below each other; enter chooses one, escape none. `present` is the one that holds now."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.CHOOSE)
    CSS_PATH = "dialog_table.tcss"

    def __init__(self, title: str, names: Sequence[str], present: str) -> None:
        super().__init__()
        self._title = title
        self._names = tuple(names)
        self._present = present

    def compose(self) -> ComposeResult:
        """The names."""
        with Vertical(id="choose", classes="dialog-table"):
            yield LineTable[str](natural="", key=str, token=lambda *_: "")

    def on_mount(self) -> None:
        """The present one is under the cursor."""
        self.query_one("#choose").border_title = self._title
        table = self.query_one(LineTable)
        table.load(self._names, partial(_layout, self._title.upper()), datetime.now(UTC))
        table.move_to(self._present)

    @on(LineTable.Selected)
    def _chosen(self, event: LineTable.Selected) -> None:
        self.dismiss(event.row)

    def action_leave(self) -> None:
        """As it was."""
        self.dismiss(None)


def _name(name: str, _: datetime) -> str:
    return escape(name)


def _layout(header: str, available: int) -> Layout[str]:
    column = ColumnOf("name", header, Align.LEFT, 8, _name, str, str, "its name")
    return Layout((column,), (max(available - GUTTER, 1),))
