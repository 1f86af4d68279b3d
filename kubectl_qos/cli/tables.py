"""Tables of commands: printed once, followed with -w, or merged from several clusters.

On a terminal a followed table is redrawn. Elsewhere, as with `kubectl get -w`, every row is printed once and
then each row that has changed; deleted rows are not printed. To save memory, only the texts or values of a
cluster's rows are kept. Not here: which contexts are read, and how many at once (cluster/background.py).
"""

from __future__ import annotations

import gc
import shutil
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cli import output
from kubectl_qos.cli.options import SourceOptions, TableFormat
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.cluster.source import Health, UpdateStream
from kubectl_qos.errors import EXIT_ERROR, QosError, UsageError, first_few
from kubectl_qos.k8s.snapshot import Arrived, Scope, Snapshot
from kubectl_qos.present.format import UNKNOWN, arrived_text, escape
from kubectl_qos.present.output import (
    SEPARATOR,
    Align,
    Column,
    RowT,
    Table,
    column,
    fit_columns,
    fitted_table,
    hidden_note,
    row_values,
    table,
    table_values,
    text_columns,
    to_csv,
)
from kubectl_qos.present.values import ClusterValues

T = TypeVar("T")

REDRAW_SECONDS: Final = 1.0
READ_SECONDS: Final = 2.0
"""The pause between two reads of a whole node, which load it."""
_CLEAR: Final = "\x1b[H\x1b[J"


class TableView(NamedTuple, Generic[RowT]):
    """Rows with their columns and notes."""

    kind: str
    rows: Sequence[RowT]
    columns: Sequence[Column[RowT]]
    notes: tuple[str, ...]
    key: Callable[[RowT], Hashable]
    """Identifies a row."""
    reference: Callable[[RowT], str]
    """The name of a row for `-o name`."""
    nothing: str
    """The sentence for a table without rows."""
    missing: tuple[QosError, ...] = ()
    ages: tuple[str, ...] = ()
    """Notes about the age of data, which change with the time; documents omit them."""
    facts: Mapping[str, Any] = {}
    """Further keys of a document."""
    at: str = ""
    """The time of a table of the past."""
    order: Callable[[RowT], Any] = lambda _: 0
    """A sort key of a row among the rows of several clusters."""
    group: Callable[[RowT], str] | None = None
    """The heading above a row's group on a terminal; it replaces the column NODE."""
    hidden_first: Sequence[str] = ()
    """The columns that a narrow terminal hides first."""
    values: Callable[[RowT], Any] | None = None
    """Makes the item of a row for documents; without it, items have the values of the columns."""


class TableCommand(Protocol):
    """Makes a table from a snapshot."""

    def scope(self, resolved: ResolvedSource) -> Scope:
        """Return the scope to read."""

    def view(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[Any]:
        """Return the table of a snapshot."""


def print_table(view: TableView[Any], format_: TableFormat, now: datetime) -> None:
    """Print the rows in the format of -o."""
    if format_.has_values:
        values = table_values(view.kind, view.rows, view.columns, view.notes) | dict(view.facts)
        output.print_document(values, str(format_.output), headers=format_.headers, at=view.at)
    elif format_.output == "csv":
        output.print_text(to_csv(view.rows, view.columns))
    elif format_.output == "name":
        output.print_lines(map(view.reference, view.rows))
    elif not view.rows:
        output.notes(filter(None, [view.nothing]))
    else:
        width = output.terminal_width()
        if width is None:
            output.print_lines(table(view.rows, view.columns, now, headers=format_.headers))
        else:
            lines, hidden = _terminal_table(view, format_, now, width)
            output.print_lines(lines)
            output.notes(hidden)


def _terminal_table(
    view: TableView[Any], format_: TableFormat, now: datetime, width: int
) -> tuple[list[str], list[str]]:
    """Return the lines of a table, each group below its heading, and a note about hidden columns."""
    shown = columns = [column for column in view.columns if view.group is None or column.key != "node"]
    if format_.output != "wide":
        shown = [*fit_columns(view.rows, columns, view.hidden_first, width, now)]
    table_lines = table(view.rows, shown, now, headers=format_.headers)
    lines, heading = list(islice(table_lines, int(format_.headers))), ""
    for row, line in zip(view.rows, table_lines, strict=True):
        if view.group is not None and view.group(row) != heading:
            heading = view.group(row)
            lines.append(heading)
        lines.append(line)
    return lines, hidden_note(columns, shown, width)


def watch(command: TableCommand, resolved: ResolvedSource, format_: TableFormat) -> int:
    """Show the table until stdout is closed. Raises UsageError for a source that does not change."""
    if not resolved.source.is_live:
        raise UsageError(f"-w needs a cluster: {resolved.source.title} does not change")
    with closing(resolved.source.follow(command.scope(resolved))) as stream:
        _follow(stream, command, resolved, _printer(format_))
    return 0


def watch_reads(read: Callable[[], TableView[Any]], title: str, format_: TableFormat) -> int:
    """Read and show a table at intervals, until stdout is closed: its source reports no changes."""
    printer = _printer(format_)
    while not output.is_stdout_closed():
        view, now = read(), datetime.now(UTC)
        printer.show(view, _Moment(now, _live(title, now)))
        time.sleep(READ_SECONDS)
    return 0


def _follow(
    stream: UpdateStream, command: TableCommand, resolved: ResolvedSource, printer: _Redrawn | _Appended
) -> None:
    trends, first = Trends(), Snapshot()
    while (update := stream.next()) is not None:
        if update.snapshot is None:
            if update.health.error is not None:
                raise update.health.error
            continue
        now = resolved.source.now()
        if update.arrived is not None:  # Not final: ranks depend on the pods that have not arrived yet.
            if isinstance(printer, _Redrawn) and update.snapshot is not first:
                first = update.snapshot
                printer.show_first(command.view(first, update.scope, now), now, update.arrived)
            continue
        view = command.view(trends.with_rates(update.snapshot), update.scope, now)
        if view.missing and not view.rows:
            raise view.missing[0]
        health = stream.health()
        state = _state(health, resolved)
        printer.show(view, _Moment(resolved.source.now(), state, update.notice, health.error is not None))
        if output.is_stdout_closed():
            return
        time.sleep(REDRAW_SECONDS)


class _Moment(NamedTuple):
    """The time of a table, how fresh it is, and a notice about it."""

    now: datetime
    state: str
    notice: str = ""
    is_stale: bool = False


def _printer(format_: TableFormat) -> _Redrawn | _Appended:
    on_terminal = sys.stdout.isatty() and format_.output in {None, "wide"}
    return _Redrawn(format_) if on_terminal else _Appended(format_)


class _Redrawn:
    """A terminal that is cleared and refilled."""

    def __init__(self, format_: TableFormat) -> None:
        self._format = format_

    def show(self, view: TableView[Any], at: _Moment) -> None:
        notes = [escape(note) for note in (at.notice, *view.ages, *view.notes) if note][:3]
        output.print_text(_CLEAR + "\n".join(_screen(view, self._format, at, notes)) + "\n")

    def show_first(self, view: TableView[Any], now: datetime, arrived: Arrived) -> None:
        """Show dimmed rows of the pods that have arrived."""
        lines = _screen(view, self._format, _arriving(now, arrived)) if view.rows else ()
        output.print_text("".join((_CLEAR, *(f"\x1b[2m{line}\x1b[m\n" for line in lines))))


def _arriving(now: datetime, arrived: Arrived) -> _Moment:
    return _Moment(now, f"~ {arrived_text(*arrived)} so far: the order may still change")


def _screen(
    view: TableView[Any], format_: TableFormat, at: _Moment, notes: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a terminal: the state, as many rows as fit, and notes."""
    width, height = shutil.get_terminal_size()
    room = max(height - 3 - len(notes), 1)
    rows = list(view.rows[: room - 1] if len(view.rows) > room else view.rows)
    while view.group is not None and len(rows) + len(list(groupby(rows, view.group))) >= room:
        rows.pop()
    lines = [at.state, *_terminal_table(view._replace(rows=rows), format_, at.now, width)[0]]
    if len(rows) < len(view.rows):
        lines.append(f"… {len(view.rows) - len(rows):,} more")
    if not view.rows:
        lines.append(view.nothing)
    for line in (*lines, *notes):
        yield line if len(line) <= width else f"{line[: width - 1]}…"


def first_rows(
    view: Callable[[Snapshot, Scope, datetime], TableView[Any]], format_: TableFormat
) -> Callable[[Snapshot, Arrived], bool] | None:
    """Return a function that shows the pods that have arrived; None in a pipe and for documents.

    The function returns whether it showed any rows.
    """
    if output.terminal_width() is None or not sys.stderr.isatty() or format_.output not in {None, "wide"}:
        return None

    def show(snapshot: Snapshot, arrived: Arrived) -> bool:
        now = datetime.now(UTC)
        first = view(snapshot, Scope(), now)
        if first.rows:
            output.show_first_rows([*_screen(first, format_, _arriving(now, arrived))])
        return bool(first.rows)

    return show


class _Appended:
    """Output that is appended to: every row once, then each changed row."""

    def __init__(self, format_: TableFormat) -> None:
        self._format = format_
        self._before: Mapping[Hashable, Sequence[Any]] | None = None
        self._table: Table[Any] | None = None
        self._columns: Sequence[Column[Any]] = ()
        self._noted: set[str] = set()
        self._was_stale = False

    def show(self, view: TableView[Any], at: _Moment) -> None:
        # The columns stay as they were in the header.
        self._columns = self._columns or view.columns
        values = {view.key(row): [column.value(row) for column in self._columns] for row in view.rows}
        before = self._before if self._before is not None else {}
        changed = [row for row in view.rows if values[view.key(row)] != before.get(view.key(row))]
        is_first = self._before is None
        self._print(view._replace(rows=changed, columns=self._columns), at.now, is_first=is_first)
        self._before = values
        notes = [note for note in (at.notice, *view.notes) if note and note not in self._noted]
        self._noted.update(notes)
        output.notes(notes)
        if at.is_stale or self._was_stale:
            output.note(at.state)
        self._was_stale = at.is_stale

    def _print(self, changed: TableView[Any], now: datetime, *, is_first: bool) -> None:
        format_ = self._format.output
        if self._format.has_values:
            for number, row in enumerate(changed.rows):
                output.print_lines(["---"] if format_ == "yaml" else [])
                value = {"kind": changed.kind, **row_values(row, changed.columns)}
                headers = self._format.headers and is_first and not number
                output.print_document(value, str(format_), headers=headers)
        elif format_ == "csv":
            text = to_csv(changed.rows, changed.columns)
            output.print_text(text if is_first else text.partition("\n")[2])
        elif format_ == "name" or not changed.rows:
            if is_first or changed.rows:
                print_table(changed, self._format, now)
        else:
            self._table = self._table or Table(changed.columns, headers=self._format.headers)
            output.print_lines(self._table.lines(changed.rows, now))


def _state(health: Health, resolved: ResolvedSource) -> str:
    now = resolved.source.now()
    if health.error is None:
        return _live(resolved.source.title, now)
    words = [f"stale since {health.since:%H:%M:%S %Z}"] if health.since is not None else []
    if health.retry_at:
        retry = now + timedelta(seconds=max(health.retry_at - time.monotonic(), 0))
        words.append(f"next try at {retry:%H:%M:%S}")
    return f"! {', '.join(words)}: {escape(str(health.error))}"


def _live(title: str, now: datetime) -> str:
    return f"{escape(title)}  live  {now:%H:%M:%S %Z}"


class _Answer(NamedTuple):
    """A cluster's table; a row has its sort key, and its cells, values or name."""

    headers: Mapping[str, Align]
    """The columns of the cells."""
    rows: list[tuple[Any, Any]]
    notes: tuple[str, ...]
    facts: Mapping[str, Any]
    nothing: str
    missing: tuple[QosError, ...]
    hidden_first: tuple[str, ...] = ()


def refuse_for_several(source: SourceOptions, flags: Mapping[str, object]) -> None:
    """Raise UsageError if one of these flags, which need a single cluster, is given for several clusters."""
    for flag, value in flags.items():
        if source.is_fleet and value:
            name = "--all-contexts" if source.all_contexts else "--contexts"
            raise UsageError(f"{flag} and {name} cannot be used together", hint="--context names one cluster")


def read_clusters(
    source: SourceOptions, work: Callable[[SourceOptions], T]
) -> tuple[dict[str, T], dict[str, QosError]]:
    """Return the answer or the error of each cluster, in the kubeconfig's order, and print the errors.

    Raises UsageError for flags that are wrong for every cluster.
    """
    from kubectl_qos.cluster.background import find_contexts, read_each

    connection = source.connection
    others = {"--demo": source.demo, "-f": source.files, "-k": source.kustomize, "--at": source.at}
    others["--contexts"] = source.contexts if source.all_contexts else ()
    refuse_for_several(source, {**others, **connection.cluster_flags})
    patterns = None if source.all_contexts else ",".join(source.contexts).split(",")
    contexts = find_contexts(connection, patterns)
    read: dict[str, T | QosError] = {}
    gc.freeze()
    for name, answer in read_each(contexts, lambda name: work(source._replace(connection=contexts[name]))):
        gc.collect()  # an error's traceback can be in a reference cycle that keeps its cluster's objects
        if isinstance(answer, UsageError):
            raise answer
        read[name] = answer
    answers: dict[str, T] = {}
    errors: dict[str, QosError] = {}
    for name in contexts:
        if isinstance(answer := read[name], QosError):
            errors[name] = answer
            output.note(f"{name}: {answer}")
        else:
            answers[name] = answer
    return answers, errors


def print_tables(
    source: SourceOptions,
    format_: TableFormat,
    kind: str,
    read: Callable[[SourceOptions], TableView[Any]],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Print the tables of all clusters as one; exit code 1 if a cluster failed or lacks a named object.

    `facts` are further keys of documents; lists among them hold the values of all clusters.
    """
    answers, errors = read_clusters(source, lambda cluster: _reduced(read(cluster), format_))
    for name, answer in answers.items():
        for error in answer.missing:
            errors.setdefault(name, error)
            output.note(f"{name}: {error}")
    rows = [(order, name, content) for name, answer in answers.items() for order, content in answer.rows]
    rows.sort(key=lambda row: row[0])
    notes = merged_notes({name: answer.notes for name, answer in answers.items()})
    contents = [row[1:] for row in rows]
    has_items = any(not isinstance(content, str) for _, content in contents)
    if format_.has_values or (format_.output == "name" and has_items):
        document = {"kind": f"{kind}List", "items": _items(contents), "notes": list(notes), **facts}
        for key in (key for key, value in facts.items() if isinstance(value, list)):
            document[key] = _items(
                (name, item) for name, answer in answers.items() for item in answer.facts[key]
            )
        document["clusters"] = clusters(answers, errors)
        output.print_document(document, str(format_.output), headers=format_.headers)
    elif format_.output == "csv":
        _print_csv(contents)
    elif format_.output == "name":
        output.print_lines(dict.fromkeys(content for _, content in contents))
    elif contents:
        _print_cells(contents, answers, format_)
    elif not errors:
        output.note(next(iter(answers.values())).nothing)
    if format_.output != "name":
        output.notes(notes)
    return EXIT_ERROR if errors else 0


def _items(named_values: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows' values, each with its cluster."""
    return [{"cluster": name, **msgspec.to_builtins(values)} for name, values in named_values]


def _print_csv(contents: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    def of_row(field: str) -> Column[tuple[str, Mapping[str, Any]]]:
        return column(field, lambda row: row[1].get(field), field=field)

    fields = dict.fromkeys(field for _, content in contents for field in content)
    output.print_text(to_csv(contents, [column("cluster", lambda row: row[0]), *map(of_row, fields)]))


def _print_cells(
    contents: Iterable[tuple[str, str]], answers: Mapping[str, _Answer], format_: TableFormat
) -> None:
    """Print the union of the clusters' columns, ordered as in the widest table."""
    aligns: dict[str, Align] = {}
    for answer in sorted(answers.values(), key=lambda answer: -len(answer.headers)):
        aligns |= answer.headers

    def cells(name: str, content: str) -> list[str]:
        by_header = dict(zip(answers[name].headers, content.split(SEPARATOR), strict=True))
        return [escape(name), *(by_header.get(header, UNKNOWN) for header in aligns)]

    rows, columns = [cells(*row) for row in contents], text_columns({"CLUSTER": Align.LEFT, **aligns})
    width = output.terminal_width() if format_.output != "wide" else None
    hidden_first = [header for answer in answers.values() for header in answer.hidden_first]
    output.print_lines(fitted_table(rows, columns, width, (), hidden_first, headers=format_.headers))


def merged_notes(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return each note once, after the names of its clusters unless every cluster has it."""
    about: dict[str, list[str]] = {}
    for name, texts in notes.items():
        for text in dict.fromkeys(texts):
            about.setdefault(text, []).append(name)
    return tuple(
        text if len(names) == len(notes) > 1 else f"{first_few(names)}: {text}"
        for text, names in about.items()
    )


def clusters(answered: Iterable[str], errors: Mapping[str, QosError]) -> tuple[ClusterValues, ...]:
    """Return the clusters, each with its error if it has one, for a document."""
    names = [*(name for name in answered if name not in errors), *errors]
    rows = [(name, errors.get(name)) for name in names]
    return tuple(
        ClusterValues(cluster=name, error=str(error) if error else None, hint=(error and error.hint) or None)
        for name, error in rows
    )


def _reduced(view: TableView[Any], format_: TableFormat) -> _Answer:
    if view.missing and not view.rows:
        raise view.missing[0]
    now = datetime.now(UTC)
    headers = {column.key: column.header for column in view.columns}
    return _Answer(
        headers={column.header: column.align for column in view.columns},
        rows=[(view.order(row), _content(row, view, format_, now)) for row in view.rows],
        notes=(*view.ages, *view.notes),
        facts=view.facts,
        nothing=view.nothing,
        missing=view.missing,
        hidden_first=tuple(headers[key] for key in view.hidden_first if key in headers),
    )


def _content(row: RowT, view: TableView[RowT], format_: TableFormat, now: datetime) -> Any:
    """Return what is kept of a row: its item, its values, its name, or its cells as one text."""
    if view.values is not None and (format_.has_values or format_.output == "name"):
        return view.values(row)
    if format_.has_every_column:
        return row_values(row, view.columns)
    if format_.output == "name":
        return view.reference(row)
    return SEPARATOR.join(column.cell(row, now) for column in view.columns)
