"""Dialogs with a table: to find a pod or a command, to choose columns or a context, and a row's menu."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.markup import escape as escape_markup
from textual.widget import Widget
from textual.widgets import Input, Label

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, column
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.lists.pods import pod_token
from kubectl_qos.tui.screens.base import Dialog
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.table import GAP, GUTTER, Fitting, Layout, fitting_columns, measured, unsorted

RowT = TypeVar("RowT")


class SearchDialog(Dialog[RowT | None], group=BindingGroup.SEARCH):
    """An input that searches the rows of a table; enter takes the row under the cursor."""

    enter_does = "take it"
    AUTO_FOCUS = "Input"

    dialog_title: str
    placeholder: str
    what: str

    def __init__(self, table: LineTable[RowT], fitting: Fitting[RowT], now: datetime) -> None:
        super().__init__()
        self._table, self._fitting = table, fitting
        self._now = now

    @abstractmethod
    def find(self, query: str) -> Sequence[RowT]:
        """Return the rows for a query, the likeliest first."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = self.dialog_title
            yield Input(placeholder=self.placeholder, compact=True, max_length=LONGEST_QUERY)
            self._table.can_focus = False
            yield self._table

    def on_mount(self) -> None:
        self._show("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    def _show(self, query: str) -> None:
        rows = self.find(query)
        empty = f"No {self.what} matches {escape(query)}." if query else f"There are no {self.what}s."
        self._table.load(rows, self._fitting, self._now, empty=empty)
        self._table.action_first()

    @on(Input.Submitted)
    @on(LineTable.Selected)
    def _selected(self) -> None:
        self.dismiss(self._table.row)

    def action_above(self) -> None:
        self._table.action_up()

    def action_below(self) -> None:
        self._table.action_down()


LONGEST_QUERY: Final = 100
MOST: Final = 200
"""How many rows are found at most."""
_MAX_BY_WORDS, _MAX_BY_LETTERS = 20_000, 2_000
"""How many rows with the words, or only with the letters, are compared at most."""
_FITTING: Final[Fitting[PodRow]] = partial(
    fitting_columns,
    [BY_KEY[key] for key in ("namespace", "pod", "qos", "node", "rank")],
    "pod namespace rank node pod namespace node qos",
    {"pod": 32, "namespace": 12, "node": 12},
)


def fuzzy_matches(query: str, rows: Sequence[PodRow], most: int) -> list[PodRow]:
    """Return the rows whose namespace/name has the letters of each word in this order, the best rows first.

    Best are names in which the words begin parts of the name, then those with the words, then those with the
    letters near each other; equal ones are in kill order. Textual's fuzzy search takes 10 to 60 times as
    long, and exponentially long if letters repeat.
    """
    words = query.casefold()[:LONGEST_QUERY].split()
    whole: Sequence[PodRow] = rows if words else ()
    for word in words:
        whole = [row for row in whole if word in row.words]
    begins = [re.compile(rf"(?<![^\W_]){re.escape(word)}").search for word in words]
    placed: list[tuple[int, PodRow]] = []
    firsts = 0
    for row in whole[:_MAX_BY_WORDS]:
        name = row.words.partition(" ")[0]
        if all(word in name for word in words):
            placed.append((sum(not search(name) for search in begins), row))
            firsts += not placed[-1][0]
            if firsts == most:
                break
    best = [row for _, row in sorted(placed, key=itemgetter(0))[:most]]
    return best if len(best) == most else [*best, *_scattered(words, rows, best)][:most]


def _scattered(words: Sequence[str], rows: Sequence[PodRow], best: Sequence[PodRow]) -> list[PodRow]:
    """Return the other rows that have the letters of each word, those with the shortest match first."""
    taken = set(map(id, best))
    for word in words:
        match = re.compile(_letters(word)).match
        rows = [row for row in rows if match(row.words)]
    nearest = [re.compile(f"(?=({re.escape(word[0])}{_letters(word[1:])}))").findall for word in words]
    others = islice((row for row in rows if id(row) not in taken), _MAX_BY_LETTERS)
    names = ((row.words.partition(" ")[0], row) for row in others)
    matches = [(sum(min(map(len, find(name))) for find in nearest), row) for name, row in names]
    return [row for _, row in sorted(matches, key=itemgetter(0))]


def _letters(word: str) -> str:
    """Return an expression for the letters of a word in their order, up to a space, that never backtracks."""
    return "".join(f"[^ {letter}]*+{letter}" for letter in map(re.escape, word))


class Finder(SearchDialog[PodRow]):
    """Finds a pod by some letters of its name."""

    placeholder = "some letters of a pod's name"
    what = "pod"

    def __init__(self, rows: Sequence[PodRow], now: datetime, *, title: str = "Find a pod") -> None:
        super().__init__(LineTable(natural="", key=lambda row: row.key, token=pod_token), _FITTING, now)
        self.dialog_title = title
        self._rows = rows

    def find(self, query: str) -> Sequence[PodRow]:
        return fuzzy_matches(query, self._rows, MOST)


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the palette; `key` is "" if there is none."""

    name: str
    key: str
    help: str
    run: Callable[[], object]


_COMMAND_COLUMNS: Final[tuple[Column[Command], ...]] = (
    column("name", lambda command: command.name, header="COMMAND"),
    column("key", lambda command: command.key, empty=""),
    column("help", lambda command: command.help, empty="", header="WHAT IT DOES"),
)


class Palette(SearchDialog[Command]):
    """Finds a command by some letters of its name, or by words of its help."""

    enter_does = "run it"
    dialog_title = "Commands"
    placeholder = "what to do"
    what = "command"

    def __init__(self, commands: Sequence[Command], now: datetime) -> None:
        tokens = {"key": "accent", "help": "muted"}
        table = LineTable[Command](
            natural="", key=lambda row: (row.name, row.key), token=lambda _, key: tokens.get(key, "")
        )
        self._commands = tuple(commands)
        # All commands are measured, so that columns do not move while a query is typed.
        whole = partial(_last_takes_rest, _COMMAND_COLUMNS, self._commands)
        super().__init__(table, lambda _, now, available: whole(now, available), now)

    def on_mount(self) -> None:
        _fit_dialog(self.query_one(".dialog-table"), _COMMAND_COLUMNS, self._commands)
        super().on_mount()

    def find(self, query: str) -> Sequence[Command]:
        """Return the commands whose names match, the best first, then those whose help has the words."""
        if not query.strip():
            return self._commands
        search = FuzzySearch()
        scores = {command: search.match(query, command.name)[0] for command in self._commands}
        words = query.casefold().split()
        return [
            *sorted(filter(scores.__getitem__, scores), key=scores.__getitem__, reverse=True),
            *(
                command
                for command in scores
                if not scores[command] and all(word in command.help.casefold() for word in words)
            ),
        ]

    @on(LineTable.Highlighted)
    def _describe(self, event: LineTable.Highlighted) -> None:
        """Show the help of the command on the border if the column cuts it."""
        text = event.row.help if event.row is not None else ""
        is_cut = cell_len(text) > event.table.columns.widths[-1]
        if is_cut:
            self.query_one(".dialog-table").border_subtitle = escape_markup(text)
        else:
            self.show_keys()


def _fit_dialog(
    dialog: Widget, columns: Sequence[Column[RowT]], rows: Sequence[RowT], least: int = 0
) -> None:
    """Make a dialog as wide as its table; the style sheet limits it."""
    widths = measured(columns, rows, datetime.now(UTC), dialog.screen.size.width)
    frame = 2 * _FRAME + dialog.styles.scrollbar_size_vertical
    dialog.styles.width = max(GUTTER + sum(widths) + GAP * len(widths) + frame, least, 32)


_FRAME: Final = 2
"""Border and padding of a dialog on one side."""


def _last_takes_rest(
    columns: Sequence[Column[RowT]], rows: Sequence[RowT], now: datetime, available: int
) -> Layout[RowT]:
    *widths, _ = measured(columns, rows, now)
    rest = available - GUTTER - sum(widths) - GAP * len(widths)
    return Layout(columns, (*widths, max(rest, GAP)))


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column, and whether it is shown."""

    column: Column[Any]
    shown: bool


_CHOICE_COLUMNS: Final[tuple[Column[ColumnChoice], ...]] = (
    column("shown", lambda choice: "yes" if choice.shown else "", empty="", sort_key=unsorted),
    column("column", lambda choice: choice.column.header, sort_key=unsorted),
    column("help", lambda choice: choice.column.help, empty="", header="WHAT IT SAYS", sort_key=unsorted),
)


class ColumnsScreen(Dialog[tuple[str, ...] | None], group=BindingGroup.COLUMNS):
    """Chooses the columns of a list. The result is their keys in order, none for the default.

    The column `name` cannot be hidden.
    """

    def __init__(self, columns: Mapping[str, Column[Any]], shown: Sequence[str], name: str) -> None:
        super().__init__()
        self._name_column = name
        hidden = (key for key in columns if key not in shown)
        self._choices = [ColumnChoice(columns[key], shown=True) for key in shown]
        self._choices += [ColumnChoice(columns[key], shown=False) for key in hidden]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = "Columns"
            yield LineTable[ColumnChoice](
                natural="",
                key=lambda choice: choice.column.key,
                token=lambda choice, _: "" if choice.shown else "muted",
            )
            yield Label(markup=False)

    @property
    def _table(self) -> LineTable[ColumnChoice]:
        return self.query_one(LineTable)

    def on_mount(self) -> None:
        _fit_dialog(self.query_one(".dialog-table"), _CHOICE_COLUMNS, self._choices)
        self._show()

    def _show(self) -> None:
        choices = tuple(self._choices)
        self._table.load(choices, partial(_last_takes_rest, _CHOICE_COLUMNS), datetime.now(UTC))

    @on(LineTable.Highlighted)
    def _describe(self, event: LineTable.Highlighted) -> None:
        """Show the whole help of the column."""
        if event.row is not None:
            self.query_one(Label).update(f"{event.row.column.header}: {event.row.column.help}")

    def action_show(self) -> None:
        index = self._table.cursor
        choice = self._choices[index]
        if choice.column.key == self._name_column:
            self.qos.warn(f"{choice.column.header} is always shown")
        else:
            self._choices[index] = replace(choice, shown=not choice.shown)
        self._show()
        self._table.action_down()

    def action_lower(self) -> None:
        self._swap(1)

    def action_raise(self) -> None:
        self._swap(-1)

    def _swap(self, by: int) -> None:
        index = self._table.cursor
        other = index + by
        if 0 <= other < len(self._choices):
            self._choices[index], self._choices[other] = self._choices[other], self._choices[index]
            self._show()

    def action_fitting(self) -> None:
        self.dismiss(())

    @on(LineTable.Selected)
    def action_take(self) -> None:
        self.dismiss(tuple(choice.column.key for choice in self._choices if choice.shown))


class SelectDialog(Dialog[str | None], group=BindingGroup.SELECT):
    """Chooses a name; the cursor begins on `current`."""

    enter_does = "take it"

    def __init__(self, title: str, names: Sequence[str], current: str, *, header: str = "") -> None:
        super().__init__()
        self._title = title
        self._header = header or title.upper()
        self._names = tuple(names)
        self._current = current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = self._title
            table = LineTable[str](natural="", key=str, token=lambda *_: "")
            table.styles.height = len(self._names) + HEADER
            yield table

    def on_mount(self) -> None:
        columns = (column("name", str, header=self._header, cell=escape),)
        _fit_dialog(self.query_one(".dialog-table"), columns, self._names, cell_len(self._title) + 4 * _FRAME)
        table = self.query_one(LineTable)
        table.load(self._names, partial(_last_takes_rest, columns), datetime.now(UTC))
        table.move_to(self._current)

    @on(LineTable.Selected)
    def _selected(self, event: LineTable.Selected) -> None:
        self.dismiss(event.row)


class Menu(SelectDialog):
    """The actions on a row. Each line begins with its key, which works here too."""

    enter_does = "do it"

    def on_key(self, event: events.Key) -> None:
        name = next((name for name in self._names if name.split()[0] == event.character), None)
        if name is not None:
            event.stop()
            event.prevent_default()
            self.dismiss(name)
