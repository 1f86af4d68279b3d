"""Which columns a list shows, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Label

from kubectl_qos.present.output import Column, column
from kubectl_qos.tui.actions import BindingGroup, actions_in_group, bindings
from kubectl_qos.tui.app_protocol import host
from kubectl_qos.tui.screens.base import Dialog
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import GAP, GUTTER, Layout, measured


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column, and whether it is shown."""

    column: Column[Any]
    shown: bool


def _as_chosen(_: ColumnChoice) -> int:
    """The header sorts nothing: the order of the rows is the choice."""
    return 0


_COLUMNS: Final[tuple[Column[ColumnChoice], ...]] = (
    column("shown", lambda choice: "yes" if choice.shown else "", empty="", sort_key=_as_chosen),
    column("column", lambda choice: choice.column.header, sort_key=_as_chosen),
    column("help", lambda choice: choice.column.help, empty="", header="WHAT IT SAYS", sort_key=_as_chosen),
)


class ColumnsScreen(Dialog[tuple[str, ...] | None]):
    """The columns of a list to choose among; the answer are keys in order, none for `as it fits`.

    Args:
        known: every column of the list.
        shown: the keys of those that are shown now, in their order.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.COLUMNS)
    CSS_PATH = "dialog_table.tcss"

    def __init__(self, known: Mapping[str, Column[Any]], shown: Sequence[str]) -> None:
        super().__init__()
        others = (key for key in known if key not in shown)
        self._choices = [ColumnChoice(known[key], shown=True) for key in shown]
        self._choices += [ColumnChoice(known[key], shown=False) for key in others]

    def compose(self) -> ComposeResult:
        """The table, and what its keys do."""
        with Vertical(id="columns", classes="dialog-table"):
            yield LineTable[ColumnChoice](
                natural="", key=lambda choice: choice.column.key, token=lambda choice, _: _token(choice)
            )
            yield Label(self._keys_line(), markup=False)

    def _keys_line(self) -> str:
        keys = host(self.app).keys
        return ", ".join(
            f"{keys.shown(action)} {action.label}" for action in actions_in_group(BindingGroup.COLUMNS)
        )

    @property
    def _table(self) -> LineTable[ColumnChoice]:
        return self.query_one(LineTable)

    def on_mount(self) -> None:
        """What is chosen now."""
        self.query_one("#columns").border_title = "Columns"
        self._show()

    def _show(self) -> None:
        choices = tuple(self._choices)
        self._table.load(choices, partial(_layout, choices), datetime.now(UTC))

    def action_show(self) -> None:
        """Show or hide the column, and go on to the next."""
        at = self._table.cursor
        self._choices[at] = replace(self._choices[at], shown=not self._choices[at].shown)
        self._show()
        self._table.action_down()

    def action_lower(self) -> None:
        """One place further to the right."""
        self._swap(1)

    def action_raise(self) -> None:
        """One place further to the left."""
        self._swap(-1)

    def _swap(self, by: int) -> None:
        at = self._table.cursor
        if 0 <= at + by < len(self._choices):
            self._choices[at], self._choices[at + by] = self._choices[at + by], self._choices[at]
            self._show()

    def action_fitting(self) -> None:
        """No choice: the most important that fit."""
        self.dismiss(())

    def action_take(self) -> None:
        """These."""
        self.dismiss(tuple(choice.column.key for choice in self._choices if choice.shown))

    def on_line_table_selected(self) -> None:
        """Enter in the table."""
        self.action_take()

    def action_leave(self) -> None:
        """As before."""
        self.dismiss(None)


def _token(choice: ColumnChoice) -> str:
    return "" if choice.shown else "muted"


def _layout(choices: Sequence[ColumnChoice], available: int) -> Layout[ColumnChoice]:
    shown, column, _ = measured(_COLUMNS, choices, datetime.now(UTC))
    return Layout(_COLUMNS, (shown, column, max(available - GUTTER - shown - column - 2 * GAP, GAP)))
