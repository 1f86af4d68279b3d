"""The table of a list: its rows and columns of the moment, and their text for the clipboard and for files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from textual.content import Content
from textual.message import Message
from textual.message_pump import MessagePump

from kubectl_qos.config.state import UiState
from kubectl_qos.present.output import Column, table
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.lists.base import ListDefinition, ListRows, RowSelection
from kubectl_qos.tui.view import View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import Layout, Token


class ListTable(LineTable[Any]):
    """Shows one listing; keeps its order, its marks and the columns that a person chose."""

    def __init__(self, listing: ListDefinition[Any]) -> None:
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
        self, view: View, rows: Sequence[Any], now: datetime, empty: str, narrowed: RowSelection | None = None
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

    def restore(self, state: UiState) -> None:
        """Order, columns and their widths as an earlier run left them."""
        name, known = self.listing.kind.value, self.listing.columns
        columns = state.columns.get(name, ())
        if columns and all(key in known for key in columns):
            self.chosen = tuple(columns)
        key, turned = state.sort.get(name, (self.listing.natural, False))
        if key in known:
            self._order.sort_by(known[key], turned=turned)
        self.widths = {key: width for key, width in state.widths.get(name, {}).items() if key in known}

    def kept(self, state: UiState) -> UiState:
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
    def shown_columns(self) -> list[Column[Any]]:
        """The columns that are shown, in their full form."""
        known = self.listing.columns
        return [known[column.key] for column in self.columns.columns]

    def text(self, rows: Sequence[Any], now: datetime) -> str:
        """Rows as a table, as `kubectl qos top` prints them."""
        return "\n".join(table(rows, self.shown_columns, now))


class _ListRequest(NamedTuple):
    listing: ListDefinition[Any]
    facts: ViewModel
    view: View


class ListBuilt(Message):
    """A list was worked out in a thread, or could not be: then `answer` is the exception."""

    def __init__(self, question: _ListRequest, answer: ListRows | Exception) -> None:
        super().__init__()
        self.question = question
        self.answer = answer


class ListWorker:
    """Answers from what is known, and has older answers made anew; its owner hands the messages to `take`."""

    def __init__(self, pump: MessagePump) -> None:
        self._pump = pump
        self._question: _ListRequest | None = None
        self._answer: ListRows | None = None
        self._running: _ListRequest | None = None
        self._quick: tuple[_ListRequest, ListRows] | None = None

    def of(self, listing: ListDefinition[Any], facts: ViewModel, view: View) -> ListRows | None:
        """The rows of a view, from older facts while those of the newest are worked out; None at first."""
        asked = _ListRequest(listing, facts, view.whole)
        if self._quick is not None and self._quick[0].facts is not facts:
            self._quick = None
        if listing.is_quick:
            if self._quick is None or self._quick[0] != asked:
                self._quick = asked, listing.work_out(facts, asked.view, None)
            return self._quick[1]
        known = self._answer if self._is_alike(asked) else None
        if known is None or self._question is None or self._question.facts is not facts:
            self._work_out(asked, known)
        return known

    def forget(self) -> None:
        """Know nothing: from now on facts are those of another cluster."""
        self._question = self._answer = self._running = self._quick = None

    def take(self, message: ListBuilt) -> None:
        """An answer has come. Raises what working it out has raised."""
        if message.question is not self._running:
            return
        self._running = None
        if isinstance(message.answer, Exception):
            raise message.answer
        self._question, self._answer = message.question, message.answer

    def _is_alike(self, asked: _ListRequest) -> bool:
        """Whether the last answer is one to this question, if perhaps of older facts."""
        known = self._question
        return known is not None and known.listing is asked.listing and known.view == asked.view

    def _work_out(self, asked: _ListRequest, before: ListRows | None) -> None:
        """Begin, unless something is being worked out: its answer makes the screen ask again."""
        if self._running is not None:
            return
        self._running = asked

        def work() -> ListBuilt:
            try:
                return ListBuilt(asked, asked.listing.work_out(asked.facts, asked.view, before))
            except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
                return ListBuilt(asked, error)

        in_background(self._pump, work)
