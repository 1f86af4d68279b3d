"""Tables as kubectl prints them, and JSON, YAML and CSV of values that are already plain."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final, Generic

from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_columns import Align, ColumnOf, RowT

GAP: Final = "   "
_BETWEEN: Final = "\0"
"""Stands in no cell: cells are escaped."""


class Table(Generic[RowT]):
    """Rows in columns; rows that are added later stand as wide as those before them, or wider."""

    def __init__(self, columns: Sequence[ColumnOf[RowT]], *, headers: bool = True) -> None:
        self._columns = columns
        self._lines = Lines(
            [column.align for column in columns], [column.header for column in columns] if headers else None
        )

    def lines(self, rows: Iterable[RowT], now: datetime) -> Iterator[str]:
        """The lines of these rows, after the headers if they are the first."""
        return self._lines.of([column.cell(row, now) for column in self._columns] for row in rows)


def table(
    rows: Iterable[RowT], columns: Sequence[ColumnOf[RowT]], now: datetime, *, headers: bool = True
) -> Iterator[str]:
    """The lines of a whole table."""
    return Table(columns, headers=headers).lines(rows, now)


def lines(
    cells: Iterable[Sequence[str]], aligns: Sequence[Align], titles: Sequence[str] | None = None
) -> Iterator[str]:
    """Cells in columns as wide as their widest cell, without spaces at the end of a line."""
    return Lines(aligns, titles).of(cells)


class Lines:
    """Cells in columns."""

    def __init__(self, aligns: Sequence[Align], titles: Sequence[str] | None) -> None:
        self._aligns = aligns
        self._titles = titles
        self._widths = [0] * len(aligns)

    def of(self, cells: Iterable[Sequence[str]]) -> Iterator[str]:
        """The lines of these cells."""
        titles = [self._titles] if self._titles is not None else []
        widths, self._titles, held = self._widths, None, []
        for row in chain(titles, cells):
            widths = list(map(max, widths, map(len, row)))
            # One text a row takes a fifth of the room of its cells.
            held.append(_BETWEEN.join(row))
        self._widths = widths
        form = GAP.join(
            f"{{:{align}{width}}}" if width else "{}"
            for align, width in zip(self._aligns, widths, strict=True)
        )
        for joined in held:
            yield form.format(*joined.split(_BETWEEN)).rstrip()


_CONTROLS: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls that JSON and YAML let through: of terminals, of lines and of the direction of writing; and halves
of characters, which no encoding has."""


def to_json(values: Any) -> str:
    """Indented JSON with a newline at the end, without characters that a terminal would act on."""
    text = json.dumps(values, indent=4, ensure_ascii=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def to_yaml(values: Any) -> str:
    """Block-style YAML in the order of the values."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = str(yaml.dump(values, Dumper=dumper, sort_keys=False, allow_unicode=True))
    if _CONTROLS.search(text) is None:
        return text
    return str(yaml.dump(values, Dumper=dumper, sort_keys=False, allow_unicode=False))


def to_csv(rows: Iterable[RowT], columns: Sequence[ColumnOf[RowT]]) -> str:
    """Comma separated values with the columns' keys as header; memory in bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.key for column in columns])
    for row in rows:
        writer.writerow([_cell(column.value(row)) for column in columns])
    return out.getvalue()


def table_values(
    kind: str, rows: Iterable[RowT], columns: Sequence[ColumnOf[RowT]], notes: Iterable[str]
) -> dict[str, Any]:
    """Any table for JSON and YAML: one object a row, keys as the columns', and what has to be known."""
    return {
        "kind": kind,
        "items": [{column.key: column.value(row) for column in columns} for row in rows],
        "notes": list(notes),
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))
