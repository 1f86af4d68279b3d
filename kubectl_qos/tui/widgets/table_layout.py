"""Where a table's columns are: their widths, and cells cut or filled to them. Pure, no widgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, Final, Generic, Protocol, TypeVar

from rich.cells import cell_len, set_cell_size

from kubectl_qos.present.columns import Align

RowT = TypeVar("RowT")
RowT_contra = TypeVar("RowT_contra", contravariant=True)

GAP: Final = 2
"""Empty cells after each column; the sign of the sorted column stands in the first of them."""
GUTTER: Final = 2
"""Cells before the first column, for the signs of the cursor and of marked rows."""
SAMPLE: Final = 250
"""So many rows, spread over all, decide how wide the columns are."""
WIDEST: Final = 60


class TableColumn(Protocol[RowT_contra]):
    """What a table asks of a column; `present.columns.Column` is one of pods."""

    @property
    def key(self) -> str:
        """What the column is called in code."""

    @property
    def header(self) -> str:
        """What stands above it."""

    @property
    def align(self) -> Align:
        """Text to the left, numbers to the right."""

    @property
    def width(self) -> int:
        """How wide it is at least."""

    @property
    def cell(self) -> Callable[[RowT_contra, datetime], str]:
        """What people read of a row."""

    @property
    def sort_key(self) -> Callable[[RowT_contra], Any]:
        """By what rows are ordered."""


@dataclass(frozen=True, slots=True)
class Layout(Generic[RowT]):
    """Columns, how wide each is, and how many of them stay when the others scroll sideways."""

    columns: Sequence[TableColumn[RowT]] = ()
    widths: Sequence[int] = ()
    fixed: int = 0

    @property
    def line_width(self) -> int:
        """The cells of a whole line."""
        return GUTTER + sum(self.widths) + GAP * max(len(self.widths) - 1, 0)

    @property
    def fixed_width(self) -> int:
        """The cells of the gutter and the columns that stay."""
        return GUTTER + sum(self.widths[: self.fixed]) + GAP * self.fixed

    def column(self, key: str) -> TableColumn[RowT] | None:
        """The column of that key, None if it is not among them."""
        return next((one for one in self.columns if one.key == key), None)

    def column_at(self, x: int) -> TableColumn[RowT] | None:
        """The column at a cell of the whole line, None beside them."""
        ends = accumulate((width + GAP for width in self.widths), initial=GUTTER)
        begins = list(ends)
        for column, begin, end in zip(self.columns, begins, begins[1:], strict=False):
            if begin <= x < end:
                return column
        return None


Fitting = Callable[[int], Layout[RowT]]
"""The columns and widths for so many cells."""


def measured(columns: Sequence[TableColumn[RowT]], rows: Sequence[RowT], now: datetime) -> list[int]:
    """How wide each column has to be for its header and a sample of the rows.

    Columns of numbers reserve their `width`, because numbers change with every refresh.
    """
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    widths = []
    for column in columns:
        texts = {column.cell(row, now) for row in sample}
        longest = max(map(cell_len, texts), default=0)
        reserved = column.width if column.align is Align.RIGHT else 0
        widths.append(min(max(reserved, cell_len(column.header), longest), WIDEST))
    return widths


def shortened(text: str, width: int) -> str:
    """A name of at most this width, cut in its middle: names of a cluster begin alike or end alike."""
    if len(text) <= width or width < 1 or " " in text or not text.isascii():
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def fitted(text: str, width: int, align: Align) -> str:
    """Text in a cell of this width, cut with a sign where it is longer."""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        return set_cell_size(text, max(width - 1, 0)) + "…"
    space = " " * (width - length)
    return space + text if align is Align.RIGHT else text + space
