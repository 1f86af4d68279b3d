"""A table's cells as styled pieces of text, and which of them read otherwise than before. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import dropwhile
from typing import Final, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kubectl_qos.present.columns import Align
from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout, TableColumn, fitted, shortened

RowT = TypeVar("RowT")

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
