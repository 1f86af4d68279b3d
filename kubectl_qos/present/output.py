"""Sections and tables for people (the UI has its own tui/widgets/text_view.py), and JSON, YAML and CSV."""

import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import structs

from kubectl_qos.errors import UsageError
from kubectl_qos.present.format import NONE, UNKNOWN, age, escape, mebibytes, shortened
from kubectl_qos.present.values import API_VERSION, camel

TEXT_WIDTH: Final = 100
ARROW: Final = "→"
_GAP: Final = "   "
_WIDEST_NOTED: Final = 44
"""Notes begin in this cell of a line at the latest."""


class Line(msgspec.Struct, frozen=True):
    """One line, followed by a `note`; `depth` is its indentation."""

    text: str
    note: str = ""
    depth: int = 0


class ValueChange(msgspec.Struct, frozen=True):
    """One value before and after; `delta` is the difference of numbers, the moment, or empty."""

    label: str
    before: str
    after: str
    delta: str = ""

    @property
    def changed(self) -> bool:
        """Return whether the value differs."""
        return self.before != self.after


class Section(msgspec.Struct, frozen=True):
    """A title with its answer, and below it changes and lines; `changed` and `warns` mark it in a preview."""

    title: str
    answer: str = ""
    lines: tuple[Line, ...] = ()
    changes: tuple[ValueChange, ...] = ()
    changed: bool = False
    warns: bool = False

    @property
    def mark(self) -> str:
        """Return `!` for a warning, `*` for a change."""
        return "!" if self.warns else "*" if self.changed else " "

    @property
    def heading(self) -> str:
        """Return the title with the answer in one line."""
        return f"{self.title}: {self.answer}" if self.answer else self.title


def sentences(*texts: str) -> tuple[Line, ...]:
    """Return a line for each text."""
    return tuple(map(Line, texts))


def marked_lines(sections: Iterable[Section]) -> Iterator[str]:
    """Yield sections one below the other, each heading after its mark."""
    for section in sections:
        yield f"{section.mark} {section.heading}"
        yield from _body(section, "    ")


def spaced_lines(sections: Sequence[Section]) -> Iterator[str]:
    """Yield sections with an empty line before each, their answers in a column."""
    width = max(len(section.title) for section in sections) + 3
    for section in sections:
        yield ""
        yield f"{section.title:<{width}}{section.answer}".rstrip()
        yield from _body(section, "  ", TEXT_WIDTH)


def _body(section: Section, margin: str, width: int | None = None) -> Iterator[str]:
    label_width = max((len(change.label) for change in section.changes), default=0)
    for change in section.changes:
        values = f"{change.before} {ARROW} {change.after}" if change.changed else change.before
        delta = f"  ({change.delta})" if change.changed and change.delta else ""
        yield f"{margin}{change.label:<{label_width}}  {values}{delta}"
    noted = [len(line.text) + 2 * line.depth for line in section.lines if line.note]
    note_column = len(margin) + min(max(noted, default=0), _WIDEST_NOTED)
    for line in section.lines:
        indent = margin + "  " * line.depth
        if line.note:
            yield f"{indent + line.text:<{note_column}}   {line.note}"
        elif width is None:
            yield indent + line.text
        else:
            yield from textwrap.wrap(line.text, width, initial_indent=indent, subsequent_indent=indent + "  ")


SEPARATOR: Final = "\0"
"""Joins the cells of a row; no cell contains it, because cells are escaped."""
RowT = TypeVar("RowT")
NO_AGES: Final = datetime.min.replace(tzinfo=UTC)


class Align(StrEnum):
    """Text to the left, numbers to the right."""

    LEFT = "<"
    RIGHT = ">"


class ColumnType(StrEnum):
    """The type of a column's values, which says how they are shown and compared."""

    WORDS = "words"
    NUMBER = "number"
    PERCENT = "percent"
    BYTES = "bytes"
    TIME = "time"
    LEVEL = "level"
    """One of its choices, from the least to the most."""


class Needs(StrEnum):
    """What has to be known, or asked for, before a column is in a table."""

    VALUES = "a format for programs, which has every column"
    CONTAINERS = "a row for each container"
    SUMMARY = "usage that kubelets measured"
    PSI = "pressure that kubelets measured"
    HISTORY = "a store of metrics"


WORDS: Final = ColumnType.WORDS
NUMBER: Final = ColumnType.NUMBER
BYTES: Final = ColumnType.BYTES
PERCENT: Final = ColumnType.PERCENT


class Column(msgspec.Struct, Generic[RowT], frozen=True):
    """One column of a table.

    It is in every table, unless -o wide adds it, or it `needs` something.
    """

    key: str
    field: str
    """Its name in JSON and CSV."""
    header: str
    align: Align
    width: int
    """The least width in the UI, in cells."""
    cell: Callable[[RowT, datetime], str]
    """What people read."""
    value: Callable[[RowT], Any]
    """What JSON and CSV have."""
    sort_key: Callable[[RowT], Any]
    """The order by the meaning of the values, such as the most urgent first; unknown values come last."""
    help: str
    type: ColumnType = WORDS
    choices: tuple[str, ...] = ()
    """The only possible words."""
    names: tuple[str, ...] = ()
    """Other names in flags and filters."""
    wide: int = 0
    """The place among the columns that -o wide adds, 0 for others."""
    needs: Needs | None = None
    """What has to be known or asked for, such as values that only a kubelet has."""

    @property
    def is_default(self) -> bool:
        """Return whether the column is in every table."""
        return not self.wide and self.needs is None


def largest_first(value: float | None) -> float:
    """Return a sort key that puts the largest first and None last."""
    return math.inf if value is None else -value


def column(  # noqa: PLR0913 - the one declaration of a column
    key: str,
    value: Callable[[RowT], Any],
    help: str = "",  # noqa: A002 - the field's name
    type: ColumnType = WORDS,  # noqa: A002 - the field's name
    *,
    field: str = "",
    header: str = "",
    width: int = 0,
    align: Align | None = None,
    empty: str | Callable[[RowT], str] | None = None,
    ascending: bool = False,
    cell: Callable[[RowT], str] | None = None,
    sort_key: Callable[[RowT], Any] | None = None,
    choices: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    wide: int = 0,
    needs: Needs | None = None,
) -> Column[RowT]:
    """Make a column whose cell, alignment and order follow from the type of its values.

    By default the `header` is the key in capitals, the `field` the key in camelCase with its unit. `width`
    counts cells, at least those of the header. `empty` is the cell without a value: `<none>` for words, else
    `<unknown>`. Texts are sorted in order, numbers from the largest, or `ascending`.
    """
    is_number = type in {NUMBER, BYTES, PERCENT}
    header = header or key.upper()

    def default_sort_key(row: RowT) -> Any:
        content = value(row)
        if is_number and ascending:
            return math.inf if content is None else content
        return largest_first(content) if is_number else content or ""

    def rounded(row: RowT) -> float | None:
        percent = value(row)
        return None if percent is None else round(percent, 1)

    if empty is None:
        empty = NONE if type is WORDS else UNKNOWN
    return Column(
        key,
        field or camel(key) + ("Bytes" if type is BYTES else ""),
        header,
        align or (Align.RIGHT if is_number else Align.LEFT),
        width or max(len(header), _LEAST_WIDTHS.get(type, 0)),
        _default_cell(value, type, empty) if cell is None else lambda row, _: cell(row),
        value if type is not PERCENT else rounded,
        sort_key or default_sort_key,
        help,
        type,
        choices,
        names,
        wide,
        needs,
    )


def _default_cell(
    value: Callable[[RowT], Any], type_: ColumnType, empty: str | Callable[[RowT], str]
) -> Callable[[RowT, datetime], str]:
    show = _SHOW.get(type_, str)

    def cell(row: RowT, now: datetime) -> str:
        content = value(row)
        if type_ is ColumnType.TIME:
            return age(content, now)
        if content is None or content == "":
            return empty if isinstance(empty, str) else empty(row)
        return show(content)

    return cell


_LEAST_WIDTHS: Final = {BYTES: 8, PERCENT: 5}
_SHOW: Final[Mapping[ColumnType, Callable[[Any], str]]] = {
    WORDS: lambda value: escape(str(value)),
    PERCENT: "{:.0f}%".format,
    BYTES: mebibytes,
}


_KUBECTL_PATHS: Final = {
    "metadata.name": "name",
    "metadata.namespace": "namespace",
    "spec.nodeName": "node",
    "status.qosClass": "qos",
}
"""Columns that kubectl sorts by as paths."""


def find_column(name: str, columns: Mapping[str, Column[RowT]]) -> Column[RowT]:
    """Return the column with this key, header, field, other name or path of kubectl's.

    Raises UsageError with the existing columns.
    """
    key = _KUBECTL_PATHS.get(name.strip("{}").lstrip("."), name).lower().replace("-", "_")
    named = dict[str, Column[RowT]]()
    for option in columns.values():
        named |= {option.header.lower(): option, option.field.lower(): option}
    for option in columns.values():
        named |= dict.fromkeys(option.names, option)
    named |= columns
    if key not in named:
        raise UsageError(f"there is no column {name!r} to sort by", hint=f"columns are: {', '.join(columns)}")
    return named[key]


class Table(Generic[RowT]):
    """Rows in columns; later rows are as wide as those before them, or wider."""

    def __init__(self, columns: Sequence[Column[RowT]], *, headers: bool = True, gap: str = _GAP) -> None:
        self._columns, self._gap = columns, gap
        self._heads = [[column.header for column in columns]] if headers else []
        self._widths = [0] * len(columns)

    def lines(self, rows: Iterable[RowT], now: datetime = NO_AGES) -> Iterator[str]:
        """Yield the lines of these rows, after the headers if they are the first."""
        cells = ([column.cell(row, now) for column in self._columns] for row in rows)
        heads, self._heads, joined_rows = self._heads, [], []
        for row in chain(heads, cells):
            self._widths = list(map(max, self._widths, map(len, row)))
            # A joined row takes a fifth of the memory of its cells.
            joined_rows.append(SEPARATOR.join(row))
        form = self._gap.join(
            f"{{:{column.align}{width}}}" if width else "{}"
            for column, width in zip(self._columns, self._widths, strict=True)
        )
        for joined in joined_rows:
            yield form.format(*joined.split(SEPARATOR)).rstrip()


def table(
    rows: Iterable[RowT], columns: Sequence[Column[RowT]], now: datetime = NO_AGES, *, headers: bool = True
) -> Iterator[str]:
    """Yield the lines of a whole table."""
    return Table(columns, headers=headers).lines(rows, now)


def fit_columns(
    rows: Sequence[RowT],
    columns: Sequence[Column[RowT]],
    hidden_first: Iterable[str],
    width: int,
    now: datetime = NO_AGES,
) -> list[Column[RowT]]:
    """Hide columns until a table fits into a terminal, then shorten its last texts."""
    widths = {
        column.key: max([len(column.header), *(len(column.cell(row, now)) for row in rows)])
        for column in columns
    }

    def excess() -> int:
        return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width

    for key in hidden_first:
        if excess() > 0:
            widths.pop(key, None)
    longest = widths.copy()
    for column in reversed(columns):
        if column.key in widths and column.align is Align.LEFT:
            least = min(widths[column.key], max(_LEAST_TEXT, len(column.header)))
            widths[column.key] -= min(max(excess(), 0), widths[column.key] - least)
    return [
        column if widths[column.key] == longest[column.key] else _shortened_column(column, widths[column.key])
        for column in columns
        if column.key in widths
    ]


def fitted_table(
    rows: Sequence[RowT],
    columns: Sequence[Column[RowT]],
    width: int | None,
    below: Collection[str],
    hidden_first: Collection[str],
    *,
    headers: bool = True,
) -> Iterator[str]:
    """Yield a table fitted to `width`, and a note on hidden columns.

    If the columns do not fit, those in `below` become paragraphs below each row.
    """
    if width is None:
        yield from table(rows, columns, headers=headers)
        return
    shown = fit_columns(rows, columns, hidden_first, width)
    if not below or all(column in columns for column in shown):
        yield from table(rows, shown, headers=headers)
    else:
        shown = [column for column in columns if column.key not in hidden_first]
        first = [column for column in shown if column.key not in below]
        heads = table(rows, fit_columns(rows, first, (), width), headers=headers)
        yield from islice(heads, int(headers))
        for row, head in zip(rows, heads, strict=True):
            yield head
            for column in shown:
                if column.key in below:
                    text = column.cell(row, NO_AGES)
                    yield from textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="      ")
    yield from wrapped(hidden_note(columns, shown, width), width)


def _shortened_column(column: Column[RowT], width: int) -> Column[RowT]:
    def cell(row: RowT, now: datetime) -> str:
        text = shortened(column.cell(row, now), width)
        return text if len(text) <= width else f"{text[: width - 1]}…"

    return structs.replace(column, cell=cell)


def hidden_note(columns: Iterable[Column[Any]], shown: Iterable[Column[Any]], width: int) -> list[str]:
    """Return a note on the columns that a terminal is too narrow for, or nothing."""
    keys = {column.key for column in shown}
    hidden = [column.header for column in columns if column.key not in keys]
    return [f"hidden at {width} columns: {', '.join(hidden)}; -o wide shows them"] if hidden else []


_LEAST_TEXT: Final = 8


def text_columns(headers: Mapping[str, Align]) -> list[Column[Sequence[str]]]:
    """Return columns of rows that are ready cells."""
    places = {header: itemgetter(place) for place, header in enumerate(headers)}
    return [
        column(header, places[header], header=header, align=align, cell=places[header])
        for header, align in headers.items()
    ]


def cell_table(
    cells: Sequence[Sequence[str]],
    headers: Sequence[str],
    width: int | None = None,
    below: Collection[str] = (),
    hidden_first: Collection[str] = (),
    right: Collection[str] = (),
) -> Iterator[str]:
    """Yield a fitted table of ready cells, nothing without any; those in `right` are aligned to the right."""
    columns = text_columns({header: Align.RIGHT if header in right else Align.LEFT for header in headers})
    return fitted_table(cells, columns, width, below, hidden_first) if cells else iter(())


def wrapped(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Wrap prose at a terminal's width, with its indent; lines with commands are not wrapped."""
    for line in lines:
        if width is None or len(line) <= width or "kubectl " in line:
            yield line
            continue
        indent = " " * (len(line) - len(line.lstrip(" !*")))
        yield from textwrap.wrap(
            line, width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
        )


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Align labels and texts in columns, without headers and closer together."""
    columns = text_columns({str(place): Align.LEFT for place in range(len(cells[0]))}) if cells else []
    return list(Table(columns, headers=False, gap="  ").lines(cells))


_JSON_INDENT: Final = 4
_NOT_ASCII: Final = "[\x7f-\U0010ffff]"
_CONTROLS: Final = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Characters that JSON and YAML do not escape: controls of terminals, lines and direction; lone surrogates.

The patterns are not compiled here, because that takes milliseconds; `re` does so when they are first used.
"""


def json_parts(values: Any, *, ascii_only: bool = False) -> Iterator[str]:
    """Yield indented JSON, without characters that a terminal would act on, in parts: one for each item."""
    import json

    escaped = _NOT_ASCII if ascii_only else _CONTROLS

    def encoded(value: Any, depth: int) -> str:
        text = msgspec.json.format(msgspec.json.encode(value), indent=_JSON_INDENT).decode()
        text = text.replace("\n", "\n" + " " * _JSON_INDENT * depth)
        return re.sub(escaped, lambda match: json.dumps(match[0])[1:-1], text)

    items = values.get("items") if isinstance(values, Mapping) else None
    if not isinstance(items, Iterator):
        yield f"{encoded(values, 0)}\n"
        return
    margin, begin = " " * _JSON_INDENT, "{"
    for key, value in values.items():
        yield f"{begin}\n{margin}{encoded(key, 0)}: "
        begin = ","
        if value is not items:
            yield encoded(value, 1)
            continue
        before = "["
        for item in items:
            yield f"{before}\n{margin * 2}{encoded(item, 2)}"
            before = ","
        yield "[]" if before == "[" else f"\n{margin}]"
    yield "\n}\n"


def to_yaml(values: Any, *, ascii_only: bool = False) -> str:
    """Return block-style YAML in the order of the values, without anchors."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, _: object) -> bool:
            return True

    text = str(yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=not ascii_only))
    if re.search(_CONTROLS, text) is None:
        return text
    return str(yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=False))


def to_csv(rows: Iterable[RowT], columns: Sequence[Column[RowT]]) -> str:
    """Return comma separated values with the columns' fields as header."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.field for column in columns])
    for row in rows:
        writer.writerow([_csv_cell(column.value(row)) for column in columns])
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    """Return a cell that no spreadsheet takes for a formula, with tabs and line ends escaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))
    return f"'{text}" if text.startswith(_FORMULAS) and not isinstance(value, int | float) else text


_FORMULAS: Final = tuple("=+-@＝＋－＠")  # noqa: RUF001 - the wide forms of these signs


def row_values(row: RowT, columns: Iterable[Column[RowT]]) -> dict[str, Any]:
    """Return a row for JSON and YAML; an empty text is null."""
    values = {shown.field: shown.value(row) for shown in columns}
    return {field: None if value == "" else value for field, value in values.items()}


def table_values(
    kind: str, rows: Iterable[RowT], columns: Sequence[Column[RowT]], notes: Iterable[str]
) -> dict[str, Any]:
    """Return a table for JSON and YAML: the notes, and an iterator over the rows."""
    items = (row_values(row, columns) for row in rows)
    return {"apiVersion": API_VERSION, "kind": f"{kind}List", "items": items, "notes": list(notes)}


def with_metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add `metadata.name` and `metadata.namespace` to a document's items, for kubectl's templates."""
    if "items" in document:
        return {**document, "items": [*map(with_metadata, document["items"])]}
    about = document.get("object") or document
    names = (about.get(key) for key in ("name", "workload", "pod", "namespace", "node"))
    name = next((name for name in names if isinstance(name, str)), None)
    if name is None or "metadata" in document:
        return {**document}
    metadata = {"name": name.rpartition("/")[2], "namespace": about.get("namespace")}
    return {**document, "metadata": metadata}


def references(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the objects of a document as `kubectl get -o name` does: `pod/web-0`, once for each item."""
    from kubectl_qos.edit.server_response import with_group

    for item in document.get("items") or document.get("pods") or document.get("steps") or [document]:
        about = item.get("object")
        if item.get("changed") is False:
            continue
        if about is not None:
            yield escape(f"{with_group(about['kind'].lower(), about['kind'])}/{about['name']}")
        elif item.get("pod"):
            yield escape(item["pod"] if "/" in item["pod"] else f"pod/{item['pod']}")
        elif item.get("node"):
            yield escape(f"node/{item['node']}")
