"""`-w`: a table that follows its cluster. On a terminal it is drawn anew, elsewhere changed rows follow.

As `kubectl get -w` does it, what is no terminal gets every row once and then each row that has changed; a
row that is gone gets no line.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.cli.tables import TableCommand, TableView, print_table
from kubectl_qos.cluster.source import Update, UpdateStream
from kubectl_qos.errors import UsageError
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, Table, table, to_csv, to_json, to_yaml

REDRAW_SECONDS: Final = 1.0
READ_SECONDS: Final = 2.0
"""Between two reads of a whole node, which cost it something."""
_CLEARED: Final = "\x1b[H\x1b[J"


def watch(tabled: TableCommand, wanted: ResolvedSource, options: argparse.Namespace) -> int:
    """Show the table until it is interrupted, or until nobody reads it any more.

    Raises UsageError for a source that does not change.
    """
    if not wanted.source.is_live:
        raise UsageError(f"-w needs a cluster: {wanted.source.title} does not change")
    feed = wanted.source.follow(tabled.scope(wanted))
    try:
        _follow(feed, tabled, wanted, _screen(options))
    finally:
        feed.close()
    return 0


def watch_reads(read: Callable[[], TableView[Any]], title: str, options: argparse.Namespace) -> int:
    """Show what is read anew each time, as nobody tells of its changes, until nobody reads it any more."""
    screen = _screen(options)
    while not streams.is_stdout_closed():
        shown, now = read(), datetime.now(UTC)
        screen.show(shown, _Time(now, _live(title, now)))
        time.sleep(READ_SECONDS)
    return 0


@dataclass(frozen=True, slots=True)
class _Time:
    """When it is, how fresh what is shown is, and what else there is to say of it."""

    now: datetime
    state: str
    notice: str = ""
    is_stale: bool = False


def _screen(options: argparse.Namespace) -> _Drawn | _Appended:
    on_terminal = sys.stdout.isatty() and getattr(options, "output", None) in {None, "wide"}
    return _Drawn(options) if on_terminal else _Appended(options)


def _follow(
    feed: UpdateStream, tabled: TableCommand, wanted: ResolvedSource, screen: _Drawn | _Appended
) -> None:
    while (moment := feed.next()) is not None:
        if moment.snapshot is None:
            if moment.health.error is not None:
                raise moment.health.error
            continue
        shown = tabled.shown(moment.snapshot, moment.scope, wanted.source.now())
        if shown.missing and not shown.rows:
            raise shown.missing[0]
        is_stale = moment.health.error is not None
        screen.show(shown, _Time(wanted.source.now(), _state(moment, wanted), moment.notice, is_stale))
        if streams.is_stdout_closed():
            return
        time.sleep(REDRAW_SECONDS)


class _Drawn:
    """A terminal that is cleared and filled, as far as there is room."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._headers = not getattr(options, "no_headers", False)

    def show(self, shown: TableView[Any], at: _Time) -> None:
        width, height = shutil.get_terminal_size()
        notes = [escape(note) for note in (at.notice, *shown.ages, *shown.notes) if note][:3]
        room = max(height - 3 - len(notes), 1)
        rows = shown.rows[: room - 1] if len(shown.rows) > room else shown.rows
        lines = [at.state, *table(rows, shown.columns, at.now, headers=self._headers)]
        if len(rows) < len(shown.rows):
            lines.append(f"… {len(shown.rows) - len(rows):,} more")
        if not shown.rows:
            lines.append(shown.nothing)
        cut = (line if len(line) <= width else f"{line[: width - 1]}…" for line in (*lines, *notes))
        streams.out_text(_CLEARED + "\n".join(cut) + "\n")


class _Appended:
    """A stream that gets every row, and then those that change."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._output = getattr(options, "output", None)
        self._before: Mapping[Hashable, Sequence[Any]] | None = None
        self._table: Table[Any] | None = None
        self._columns: Sequence[Column[Any]] = ()
        self._said: set[str] = set()

    def show(self, shown: TableView[Any], at: _Time) -> None:
        # The columns stay those of the beginning: a reader cannot be told of others.
        self._columns = self._columns or shown.columns
        values = {shown.key(row): [column.value(row) for column in self._columns] for row in shown.rows}
        before = self._before if self._before is not None else {}
        changed = [row for row in shown.rows if values[shown.key(row)] != before.get(shown.key(row))]
        is_first = self._before is None
        self._print(replace(shown, rows=changed, columns=self._columns), at.now, is_first=is_first)
        self._before = values
        notes = [note for note in (at.notice, *shown.notes) if note and note not in self._said]
        self._said.update(notes)
        streams.notes(notes)
        if at.is_stale:
            streams.note(at.state)

    def _print(self, changed: TableView[Any], now: datetime, *, is_first: bool) -> None:
        if self._output in {"json", "yaml"}:
            for row in changed.rows:
                value = {column.key: column.value(row) for column in changed.columns}
                streams.out_text(to_json(value) if self._output == "json" else f"---\n{to_yaml(value)}")
        elif self._output == "csv":
            text = to_csv(changed.rows, changed.columns)
            streams.out_text(text if is_first else text.partition("\n")[2])
        elif self._output == "name" or not changed.rows:
            if is_first or changed.rows:
                print_table(changed, self._options, now)
        else:
            headers = not getattr(self._options, "no_headers", False)
            self._table = self._table or Table(changed.columns, headers=headers)
            streams.out(self._table.lines(changed.rows, now))


def _state(moment: Update, wanted: ResolvedSource) -> str:
    """Whether what is shown is what is."""
    now, health = wanted.source.now(), moment.health
    if health.error is None:
        return _live(wanted.source.title, now)
    again = now + timedelta(seconds=max(health.retry_at - time.monotonic(), 0))
    since = f"stale since {health.since:%H:%M:%S %Z}, " if health.since is not None else ""
    return f"! {since}next try at {again:%H:%M:%S}: {escape(str(health.error))}"


def _live(title: str, now: datetime) -> str:
    return f"{escape(title)}  live  {now:%H:%M:%S %Z}"
