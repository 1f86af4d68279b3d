"""Where a table's columns are: their widths, and cells cut or filled to them. Pure, no widgets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, dropwhile
from typing import Any, Final, Generic, Protocol, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kubectl_qos.present.output import Align

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


NARROWEST: Final = 3
"""No column can be made narrower."""


class Widths:
    """What columns needed, and what a person chose instead; all of it in cells, by the column's key.

    A column keeps its width when its texts become shorter, so that columns do not jump with every refresh.
    """

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}
        self._needed: dict[str, int] = {}
        self._available = 0

    @property
    def chosen(self) -> dict[str, int]:
        """What a person chose."""
        return dict(self._chosen)

    @chosen.setter
    def chosen(self, widths: Mapping[str, int]) -> None:
        self._chosen = {key: max(width, NARROWEST) for key, width in widths.items()}

    def forget(self) -> None:
        """Measure anew, but keep what was chosen."""
        self._needed = {}

    def of(self, layout: Layout[RowT], available: int) -> Layout[RowT]:
        """The layout with the widths that its columns have here; others, or another room, begin anew."""
        measured = {column.key: width for column, width in zip(layout.columns, layout.widths, strict=True)}
        if measured.keys() != self._needed.keys() or available != self._available:
            self._needed, self._available = {}, available
        kept = {key: max(width, self._needed.get(key, 0)) for key, width in measured.items()}
        _give_back(kept, measured, available)
        self._needed = kept
        return replace(layout, widths=[self._chosen.get(key, width) for key, width in kept.items()])


def _give_back(kept: dict[str, int], measured: Mapping[str, int], available: int) -> None:
    """What fits when measured fits when kept: the last columns give back what they do not need."""
    gaps = GUTTER + GAP * max(len(kept) - 1, 0)
    too_wide = sum(kept.values()) - max(available - gaps, sum(measured.values()))
    for key in reversed(kept):
        returned = min(kept[key] - measured[key], max(too_wide, 0))
        kept[key] -= returned
        too_wide -= returned


def edge_at(layout: Layout[Any], x: int) -> str | None:
    """The key of the column whose right edge a cell of the whole line is: the one before the next column."""
    end = GUTTER
    for column, width in zip(layout.columns, layout.widths, strict=True):
        end += width + GAP
        if x == end - 1:
            return column.key
    return None


TOKENS: Final = ("victim", "success", "warning", "error", "accent", "muted")
"""What a cell can be styled by."""
VIVID: Final = frozenset({"victim"})
"""Tokens that show under the cursor too."""

Token = str | tuple[tuple[int, str], ...]
"""One of TOKENS or "" for a whole cell, or for so many characters each, from the cell's first one."""


@dataclass(frozen=True, slots=True)
class Look:
    """The styles of one line."""

    base: Style
    of_token: Callable[[str], Style]
    changed: Style
    at_cursor: bool

    def style(self, token: str) -> Style:
        """Of a whole cell: under the cursor only a vivid token has its colour."""
        if not token:
            return self.base
        own = self.of_token(token)
        return self.base + (Style(bold=own.bold) if self.at_cursor and token not in VIVID else own)

    def part(self, token: str) -> Style:
        """Of a part of a cell: its colour says something and stays under the cursor."""
        return self.base + self.of_token(token) if token else self.base


def cell_segments(
    text: str, column: TableColumn[RowT], width: int, token: Token, look: Look, *, changed: bool
) -> Iterator[Segment]:
    """A cell with the gap behind it; its pieces have as many cells as the column and the gap."""
    shown, gap = fitted(shortened(text, width), width, column.align), " " * GAP
    flash = look.changed if changed else Style.null()
    if isinstance(token, str):
        style = look.style(token)
        yield Segment(shown, style + flash)
        yield Segment(gap, style)
        return
    begin = max(width - cell_len(text), 0) if column.align is Align.RIGHT else 0
    yield Segment(shown[:begin], look.base + flash)
    for length, one in token:
        yield Segment(shown[begin : begin + length], look.part(one) + flash)
        begin += length
    yield Segment(shown[begin:], look.base + flash)
    yield Segment(gap, look.base)


def header_segments(layout: Layout[RowT], by: tuple[str, bool], base: Style, lit: Style) -> Iterator[Segment]:
    """The line above the rows; the column that is sorted by bears a sign in the gap behind it."""
    key, turned = by
    yield Segment(" " * GUTTER, base)
    for column, width in zip(layout.columns, layout.widths, strict=True):
        sign = ("▲" if turned else "▼") if column.key == key else ""
        text = fitted(column.header, width, column.align)
        if column.align is Align.LEFT:
            text = text.rstrip()
        yield Segment(f"{text}{sign}".ljust(width + GAP), lit if sign else base)


def cropped(strip: Strip, begin: int, end: int) -> Strip:
    """Some cells of a line, without a mark that combines with the character before them."""
    first, *others = strip.crop(begin, end) or [Segment("")]
    text = "".join(dropwhile(lambda char: not cell_len(char), first.text))
    return Strip([Segment(text, first.style), *others])


class Flash(Generic[RowT]):
    """Which cells have another text than a moment ago.

    Args:
        unflashed: keys of columns that are not looked at.
    """

    def __init__(self, unflashed: frozenset[str]) -> None:
        self._unflashed = unflashed
        self._before: Mapping[Hashable, RowT] = {}
        self._columns: Sequence[TableColumn[RowT]] = ()
        self._now = datetime.now(UTC)

    def begin(
        self, before: Mapping[Hashable, RowT], columns: Sequence[TableColumn[RowT]], now: datetime
    ) -> None:
        """Compare with these rows from now on, as they read in these columns at that time."""
        self._before, self._columns, self._now = before, columns, now

    def end(self) -> None:
        """Compare with nothing."""
        self._before = {}

    def cells(
        self, key: Hashable, row: RowT, columns: Sequence[TableColumn[RowT]], now: datetime
    ) -> frozenset[str]:
        """The keys of the columns in which a row reads otherwise than before; none if they are others."""
        old = self._before.get(key)
        if old is None or old is row or [one.key for one in columns] != [one.key for one in self._columns]:
            return frozenset()
        return frozenset(
            column.key
            for was, column in zip(self._columns, columns, strict=True)
            if column.key not in self._unflashed and was.cell(old, self._now) != column.cell(row, now)
        )
