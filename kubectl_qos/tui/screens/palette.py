"""The command palette: every action of the screen by its name, with its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from textual.fuzzy import FuzzySearch

from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import Align, ColumnOf
from kubectl_qos.tui.screens.search import Search, Searched
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout, measured


@dataclass(frozen=True, slots=True)
class Command:
    """Something that can be done; `key` is as people write it, empty where there is none."""

    name: str
    key: str
    help: str
    run: Callable[[], object]


def _text(key: str, header: str, read: Callable[[Command], str]) -> ColumnOf[Command]:
    return ColumnOf(key, header, Align.LEFT, 4, lambda row, _: read(row), read, read, "")


_COLUMNS: Final = (
    _text("name", "COMMAND", lambda command: command.name),
    _text("key", "KEY", lambda command: command.key),
    _text("help", "WHAT IT DOES", lambda command: command.help),
)


class Palette(Search[Command]):
    """Commands by some letters of what they are called, or of what they do."""

    def __init__(self, commands: Sequence[Command], now: datetime) -> None:
        table = LineTable[Command](natural="", key=lambda row: (row.name, row.key), token=_token)
        super().__init__(
            Searched("Commands", "what to do", self._found, self._fitting, self._nothing), table, now
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
