"""Plain text tables as kubectl prints them: upper-case headers, three spaces, no borders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, Generic

from kubectl_qos.present.columns import Align, ColumnOf, RowT

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
