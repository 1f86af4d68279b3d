"""The table of a list: its rows and columns of the moment, and their text for the clipboard and for files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from textual.content import Content

from kubectl_qos.config.state import State
from kubectl_qos.present.columns import ColumnOf
from kubectl_qos.present.table import table
from kubectl_qos.tui.lists.base import Listing, Narrowed
from kubectl_qos.tui.view import View
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import Token
from kubectl_qos.tui.widgets.table_layout import Layout


class ListTable(LineTable[Any]):
    """Shows one listing; keeps its order, its marks and the columns that a person chose."""

    def __init__(self, listing: Listing[Any]) -> None:
        super().__init__(
            natural=listing.natural,
            key=listing.key,
            token=self._token_of,
            unflashed=frozenset({"age"}),
            id=listing.kind.value,
        )
        self.listing = listing
        self.chosen: tuple[str, ...] | None = None
        self.marked: frozenset[Hashable] = frozenset()
        self._title = ""

    def _token_of(self, row: Any, key: str) -> Token:
        column = self.columns.column(key)
        return self.listing.token(row, key, column.width if column is not None else 0)

    def show(
        self, view: View, rows: Sequence[Any], now: datetime, empty: str, narrowed: Narrowed | None = None
    ) -> None:
        """Other rows, or others of them, with the columns for the view."""

        def fitting(available: int) -> Layout[Any]:
            return self.listing.layout(view, self.chosen, self.rows, now, available)

        self.load(rows, fitting, now, empty=empty, narrowed=narrowed)

    def entitle(self, title: str) -> None:
        """What stands above it; the same again is nothing to paint."""
        if title != self._title:
            self._title = title
            self.border_title = Content(title)

    def restore(self, state: State) -> None:
        """Order, columns and their widths as an earlier run left them."""
        name, known = self.listing.kind.value, self.listing.columns
        columns = state.columns.get(name, ())
        if columns and all(key in known for key in columns):
            self.chosen = tuple(columns)
        key, turned = state.sort.get(name, (self.listing.natural, False))
        if key in known:
            self._order.sort_by(known[key], turned=turned)
        self.widths = {key: width for key, width in state.widths.get(name, {}).items() if key in known}

    def kept(self, state: State) -> State:
        """The state with this table's order, columns and widths."""
        name = self.listing.kind.value
        return replace(
            state,
            sort={**state.sort, name: self.sorted_by},
            columns={**state.columns, name: self.chosen or ()},
            widths={**state.widths, name: dict(self.widths)},
        )

    def toggle_mark(self) -> None:
        """Mark the row, or take its mark away, and go on to the next."""
        if self.row is not None:
            self.mark_all(self.marked ^ {self.listing.key(self.row)})
            self.action_down()

    def mark_all(self, keys: frozenset[Hashable]) -> None:
        """Mark the rows of these keys and no others."""
        self.marked = keys
        self.mark(keys)

    @property
    def marked_rows(self) -> list[Any]:
        """The marked rows that are shown; where none is marked, the one under the cursor."""
        if self.marked:
            return [row for row in self.rows if self.listing.key(row) in self.marked]
        return [self.row] if self.row is not None else []

    @property
    def shown_columns(self) -> list[ColumnOf[Any]]:
        """The columns that are shown, in their full form."""
        known = self.listing.columns
        return [known[column.key] for column in self.columns.columns]

    def text(self, rows: Sequence[Any], now: datetime) -> str:
        """Rows as a table, as `kubectl qos top` prints them."""
        return "\n".join(table(rows, self.shown_columns, now))
