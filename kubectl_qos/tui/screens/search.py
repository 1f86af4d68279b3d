"""A line to type in, and below it what that may mean: the form of the pod switcher and of the palette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.widgets import Input

from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, column
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.fuzzy import LONGEST_QUERY, fuzzy_matches
from kubectl_qos.tui.lists.base import fitting_columns
from kubectl_qos.tui.lists.pods import pod_token
from kubectl_qos.tui.screens.base import Dialog
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import GAP, GUTTER, Layout, measured

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class SearchSpec(Generic[RowT]):
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


class SearchDialog(Dialog[RowT | None]):
    """Type, choose with the arrows, take it with enter."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.FINDER)
    CSS_PATH = "dialog_table.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, searched: SearchSpec[RowT], table: LineTable[RowT], now: datetime) -> None:
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


MOST: Final = 200
_KEYS: Final = ("namespace", "pod", "qos", "node", "rank")
_IMPORTANCE: Final = ("pod", "namespace", "rank", "node", "pod", "namespace", "node", "qos")
_SQUEEZED: Final = {"pod": 32, "namespace": 12, "node": 12}


class Finder(SearchDialog[PodRow]):
    """Pods by some letters of their names, in kill order at first."""

    def __init__(self, rows: Sequence[PodRow], now: datetime, *, title: str = "Find a pod") -> None:
        table = LineTable[PodRow](natural="", key=lambda row: row.key, token=pod_token)
        super().__init__(
            SearchSpec(title, "some letters of a pod's name", self._found, self._fitting, self._nothing),
            table,
            now,
        )
        self._rows = rows

    def _found(self, query: str) -> Sequence[PodRow]:
        """Those whose namespace/name has the letters in their order."""
        return fuzzy_matches(query, self._rows, MOST)

    def _fitting(self, rows: Sequence[PodRow], available: int) -> Layout[PodRow]:
        """What tells pods of similar names apart."""
        columns = [BY_KEY[key] for key in _KEYS]
        return fitting_columns(columns, _IMPORTANCE, rows, self._now, available, _SQUEEZED)

    def _nothing(self, query: str) -> str:
        """Why there is none."""
        return f"No pod has the letters of {escape(query)}." if query else "There are no pods."


@dataclass(frozen=True, slots=True)
class Command:
    """Something that can be done; `key` is as people write it, empty where there is none."""

    name: str
    key: str
    help: str
    run: Callable[[], object]


_COLUMNS: Final[tuple[Column[Command], ...]] = (
    column("name", lambda command: command.name, empty="", header="COMMAND"),
    column("key", lambda command: command.key, empty=""),
    column("help", lambda command: command.help, empty="", header="WHAT IT DOES"),
)


class Palette(SearchDialog[Command]):
    """Commands by some letters of what they are called, or of what they do."""

    def __init__(self, commands: Sequence[Command], now: datetime) -> None:
        table = LineTable[Command](natural="", key=lambda row: (row.name, row.key), token=_token)
        super().__init__(
            SearchSpec("Commands", "what to do", self._found, self._fitting, self._nothing), table, now
        )
        self._commands = tuple(commands)

    def _found(self, query: str) -> Sequence[Command]:
        """Those whose name fits best, then those whose help has the words."""
        if not query.strip():
            return self._commands
        search = FuzzySearch()
        scores = {one: search.match(query, one.name)[0] for one in self._commands}
        named = sorted((one for one in self._commands if scores[one] > 0), key=lambda one: -scores[one])
        words = query.casefold().split()
        return named + [
            one
            for one in self._commands
            if not scores[one] and all(word in one.help.casefold() for word in words)
        ]

    def _fitting(self, rows: Sequence[Command], available: int) -> Layout[Command]:
        """What it does takes what the others leave; nothing moves while it is typed."""
        del rows
        name, key, _ = measured(_COLUMNS, self._commands, self._now)
        return Layout(_COLUMNS, (name, key, max(available - GUTTER - name - key - 2 * GAP, GAP)))

    def _nothing(self, query: str) -> str:
        """Why there is none."""
        return f"No command has the letters of {escape(query)}."


def _token(_: Command, key: str) -> str:
    return {"key": "accent", "help": "muted"}.get(key, "")
