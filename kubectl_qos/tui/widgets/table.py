"""A table without its widget: column widths, cells, the order of rows. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, compress, count, dropwhile, islice, repeat
from operator import eq, is_, ne
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kubectl_qos.present.format import shortened
from kubectl_qos.present.output import Align, Column

RowT = TypeVar("RowT")

GAP: Final = 2
"""Cells between columns; the first of them has the sign of the sorted column."""
GUTTER: Final = 2
"""Cells before the first column, for the cursor and the mark of a row."""
SAMPLE: Final = 250
"""How many rows, spread over all, are measured for the width of a column."""
MAX_WIDTH: Final = 60


@dataclass(frozen=True, slots=True)
class Layout(Generic[RowT]):
    """Columns with their widths; the first `fixed` ones stay when the others scroll sideways."""

    columns: Sequence[Column[RowT]] = ()
    widths: Sequence[int] = ()
    fixed: int = 0

    @property
    def line_width(self) -> int:
        return GUTTER + sum(self.widths) + GAP * max(len(self.widths) - 1, 0)

    @property
    def fixed_width(self) -> int:
        """Return the cells of the gutter and the columns that stay."""
        return GUTTER + sum(self.widths[: self.fixed]) + GAP * self.fixed

    @property
    def scroll_steps(self) -> list[int]:
        """Return how far to scroll sideways for each column to be the first after the fixed ones."""
        return list(accumulate((width + GAP for width in self.widths[self.fixed : -1]), initial=0))

    def whole_end(self, begin: int, end: int) -> int:
        """Return where the last column ends that is whole between two cells of the line, `end` if none is."""
        if self.line_width <= end:
            return end
        after = (self.fixed_width + step for step in self.scroll_steps[1:])
        return min(max((cell for cell in after if begin < cell - GAP <= end), default=end), end)

    def column(self, key: str) -> Column[RowT] | None:
        return next((column for column in self.columns if column.key == key), None)

    @property
    def by_key(self) -> dict[str, int]:
        return {column.key: width for column, width in zip(self.columns, self.widths, strict=True)}

    def column_at(self, x: int) -> Column[RowT] | None:
        """Return the column at a cell of the line, None if there is none."""
        ends = accumulate((width + GAP for width in self.widths), initial=GUTTER)
        columns = (column for column, end in zip(self.columns, list(ends)[1:], strict=True) if x < end)
        return next(columns, None) if x >= GUTTER else None


Fitting = Callable[[Sequence[RowT], datetime, int], Layout[RowT]]
"""Returns the columns for rows, the time that ages are counted to, and a width in cells."""


def measured(
    columns: Sequence[Column[RowT]], rows: Sequence[RowT], now: datetime, most: int = MAX_WIDTH
) -> list[int]:
    """Return the width that each column needs for its header and a sample of the rows, `most` at most.

    Columns of numbers reserve their `width`, because numbers change with every refresh.
    """
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    widths = []
    for column in columns:
        texts = {column.cell(row, now) for row in sample}
        longest = max(map(cell_len, texts), default=0)
        reserved = column.width if column.align is Align.RIGHT else 0
        widths.append(min(max(reserved, cell_len(column.header), longest), most))
    return widths


def fitted(text: str, width: int, align: Align) -> str:
    """Return text in a cell of this width, cut with a sign if it is longer."""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        return set_cell_size(text, max(width - 1, 0)) + "…"
    space = " " * (width - length)
    return space + text if align is Align.RIGHT else text + space


class Widths:
    """Keeps the width of a column when its texts become shorter, so that columns do not jump."""

    def __init__(self) -> None:
        self._needed: dict[str, int] = {}
        self._available = 0

    def of(self, layout: Layout[RowT], available: int) -> Layout[RowT]:
        """Return the layout with kept widths; for other columns or another `available` width, as it is."""
        measured = layout.by_key
        if measured.keys() != self._needed.keys() or available != self._available:
            self._needed, self._available = {}, available
        kept = {key: max(width, self._needed.get(key, 0)) for key, width in measured.items()}
        _give_back(kept, measured, available)
        self._needed = kept
        return replace(layout, widths=[*kept.values()])


def _give_back(kept: dict[str, int], measured: Mapping[str, int], available: int) -> None:
    """Narrow the last columns to what they need now, as far as the line is too wide."""
    gaps = GUTTER + GAP * max(len(kept) - 1, 0)
    too_wide = sum(kept.values()) - max(available - gaps, sum(measured.values()))
    for key in reversed(kept):
        returned = min(kept[key] - measured[key], max(too_wide, 0))
        kept[key] -= returned
        too_wide -= returned


STYLES: Final = {
    "victim": "bold $error",
    "calm": "$primary",
    **{token: f"${token}" for token in ("success", "warning", "error", "accent")},
    "muted": "$secondary",
    "faint": "$secondary",
    "filled": "$fill",
    # Not of cells.
    "header": "bold $secondary",
    "sorted": "bold $accent",
    "cursor": "$foreground on $block-cursor-background",
    "blurred": "$foreground on $panel",
    "empty": "$secondary",
    "changed": "bold on $flash",
}
"""Styles by token. Component classes would be slower: each is computed again for each table."""
ANSI: Final = {
    "cursor": "reverse $foreground on $block-cursor-background",
    "blurred": "bold $foreground on $panel",
    "changed": "reverse on $flash",
}
"""Other styles in the theme of the terminal's own colours, which has only one background."""
COLOURLESS: Final = {
    **dict.fromkeys(("victim", "error"), "bold $foreground"),
    **dict.fromkeys(("warning", "success", "calm", "filled", "faint"), "$foreground"),
    "changed": "reverse on $flash",
}
"""Other styles without colours."""
INVERSE: Final = "inverse "
"""Before the token of a part: its colour is the background."""
VIVID: Final = frozenset({"victim"})
"""Tokens that keep their colour under the cursor."""

Token = str | tuple[tuple[int, str], ...]
"""One of STYLES or "" for a whole cell, or pairs of a length and a token for its parts."""


@dataclass(frozen=True, slots=True)
class LineStyles:
    """The styles of one line."""

    base: Style
    of_token: Callable[[str], Style]
    changed: Style
    at_cursor: bool

    def style(self, token: str) -> Style:
        """Return the style of a whole cell; under the cursor it has a colour only if VIVID."""
        if not token:
            return self.base
        own = self.of_token(token)
        return self.base + (Style(bold=own.bold) if self.at_cursor and token not in VIVID else own)

    def part(self, token: str) -> Style:
        """Return the style of a part of a cell, which keeps its colour under the cursor."""
        own = self.of_token(token.removeprefix(INVERSE)) if token else Style.null()
        return self.base + own + Style(reverse=True) if token.startswith(INVERSE) else self.base + own


def cell_segments(
    text: str, column: Column[RowT], width: int, token: Token, look: LineStyles, *, changed: bool
) -> Iterator[Segment]:
    """Yield a cell and the gap after it."""
    shown, gap = fitted(shortened(text, width), width, column.align), " " * GAP
    flash = look.changed if changed else Style.null()
    if isinstance(token, str):
        style = look.style(token)
        yield Segment(shown, style + flash)
        yield Segment(gap, style)
        return
    begin = max(width - cell_len(text), 0) if column.align is Align.RIGHT else 0
    yield Segment(shown[:begin], look.base + flash)
    for length, part in token:
        yield Segment(shown[begin : begin + length], look.part(part) + flash)
        begin += length
    yield Segment(shown[begin:], look.base + flash)
    yield Segment(gap, look.base)


def header_segments(layout: Layout[RowT], by: tuple[str, bool], base: Style, lit: Style) -> Iterator[Segment]:
    """Yield the header line."""
    key, is_reversed = by
    yield Segment(" " * GUTTER, base)
    for column, width in zip(layout.columns, layout.widths, strict=True):
        sign = ("▲" if is_reversed else "▼") if column.key == key else ""
        text = fitted(column.header, width, column.align)
        if column.align is Align.LEFT:
            text = text.rstrip()
        yield Segment(f"{text}{sign}".ljust(width + GAP), lit if sign else base)


def cropped(strip: Strip, begin: int, end: int) -> Strip:
    """Return some cells of a line, without a leading combining mark."""
    first, *others = strip.crop(begin, end) or [Segment("")]
    text = "".join(dropwhile(lambda char: not cell_len(char), first.text))
    return Strip([Segment(text, first.style), *others])


class Flash(Generic[RowT]):
    """Finds the cells whose text has just changed, without those of the columns `unflashed`."""

    def __init__(self, unflashed: frozenset[str]) -> None:
        self._unflashed = unflashed
        self._before: Mapping[Hashable, RowT] = {}
        self._columns: Sequence[Column[RowT]] = ()
        self._now = datetime.now(UTC)

    def begin(self, before: Mapping[Hashable, RowT], columns: Sequence[Column[RowT]], now: datetime) -> None:
        """Compare with these rows, as their columns showed them at that time."""
        self._before, self._columns, self._now = before, columns, now

    def end(self) -> None:
        self._before = {}

    def cells(
        self, key: Hashable, row: RowT, columns: Sequence[Column[RowT]], now: datetime
    ) -> frozenset[str]:
        """Return the keys of the columns in which the text of a row has changed."""
        old = self._before.get(key)
        if (
            old is None
            or old is row
            or [column.key for column in columns] != [column.key for column in self._columns]
        ):
            return frozenset()
        return frozenset(
            column.key
            for was, column in zip(self._columns, columns, strict=True)
            if column.key not in self._unflashed and was.cell(old, self._now) != column.cell(row, now)
        )


NEARBY: Final = 500
"""A row is searched this far on either side of its old place before everywhere."""


def unsorted(_: object) -> int:
    """Return a sort key for columns that cannot be sorted by."""
    return 0


class RowSelector(Protocol):
    """Selects rows, each by itself."""

    def selected(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the selected rows, in their order."""

    def implies(self, other: Self) -> bool:
        """Return whether `other` certainly selects every row that this one does."""


class RowOrder(Generic[RowT]):
    """Rows in their natural order, or stably sorted by a column.

    Another filter does not sort again: sorting 150,000 rows takes longer than a key may. Rows are in tuples,
    because garbage collection visits a long list again and again, but a tuple only once. For `natural` and
    `pinned` see LineTable.
    """

    def __init__(self, natural: str, pinned: int) -> None:
        self.natural = natural
        self.pinned = pinned
        self._loaded: Sequence[RowT] = ()
        self._selector: RowSelector | None = None
        self._column: Column[RowT] | None = None
        self._is_reversed = False
        self._sorted: Sequence[RowT] | None = ()
        """All rows in order, if they have been sorted without a selection."""
        self.rows: Sequence[RowT] = ()

    @property
    def by(self) -> tuple[str, bool]:
        return self._column.key if self._column is not None else self.natural, self._is_reversed

    def load(self, rows: Sequence[RowT], selector: RowSelector | None = None) -> bool:
        """Show rows, or those that are selected; return whether they are other ones than before."""
        loaded, before = self._loaded, self._selector
        is_same = rows is loaded or (len(rows) == len(loaded) and all(map(is_, rows, loaded)))
        self._loaded, self._selector = rows, selector
        if not is_same:
            self._sorted = None
            self.rows = self._ordered(self._selected(rows))
        elif selector == before:
            return False
        elif selector is not None and (before is None or selector.implies(before)):
            self.rows = tuple(selector.selected(self.rows))
        elif self._sorted is not None:
            self.rows = self._selected(self._sorted)
        else:
            self.rows = self._ordered(self._selected(rows))
        self._keep_sorted()
        return not is_same

    def sort_by(self, column: Column[RowT] | None, *, is_reversed: bool) -> None:
        self._column, self._is_reversed = column, is_reversed
        shown = set(map(id, self.rows)) if len(self.rows) < len(self._loaded) else None
        rows = self._loaded if shown is None else tuple([row for row in self._loaded if id(row) in shown])
        self._sorted, self.rows = None, self._ordered(rows)
        self._keep_sorted()

    def _keep_sorted(self) -> None:
        if len(self.rows) == len(self._loaded):
            self._sorted = self.rows

    def _selected(self, rows: Sequence[RowT]) -> Sequence[RowT]:
        return rows if self._selector is None else tuple(self._selector.selected(rows))

    def _ordered(self, rows: Sequence[RowT]) -> Sequence[RowT]:
        column, is_reversed = self._column, self._is_reversed
        is_natural = column is None or column.key == self.natural
        if is_natural and not is_reversed:
            return rows
        top = len(self._selected(self._loaded[: self.pinned]))
        pinned, free = rows[:top], rows[top:]
        if column is None or is_natural:
            return (*pinned, *free[::-1])
        return (*pinned, *sorted(free, key=column.sort_key, reverse=is_reversed))


@dataclass(frozen=True, slots=True)
class RowLines:
    """Where the lines of rows are: each row has `height` lines, and those at `starts` a heading above."""

    height: int = 1
    starts: Sequence[int] = ()

    def first(self, index: int) -> int:
        return index * self.height + bisect_right(self.starts, index)

    def top(self, index: int) -> int:
        """Return the line of a row's heading, else its first line."""
        return index * self.height + bisect_left(self.starts, index)

    def at(self, line: int) -> tuple[int, int]:
        """Return the index of the row at a line and which of its lines that is; -1 is its heading."""
        if not self.starts:
            return divmod(line, self.height)
        headings = bisect_right(self.starts, line, key=self.top)
        if headings and self.top(self.starts[headings - 1]) == line:
            return self.starts[headings - 1], -1
        return divmod(line - headings, self.height)

    def count(self, rows: int) -> int:
        return rows * self.height + len(self.starts)


def group_starts(groups: Iterable[Hashable]) -> list[int]:
    """Return the indices at which a group begins; `groups` has the group of each row."""
    keys = tuple(groups)
    return [0, *compress(count(1), map(ne, keys, islice(keys, 1, None)))] if keys else []


def row_index(row: RowT, rows: Sequence[RowT], near: int) -> int | None:
    """Return the index of this very object, None if it is not there."""
    if near < len(rows) and rows[near] is row:
        return near
    return next(compress(count(), map(is_, rows, repeat(row))), None)


def key_index(
    wanted: Hashable, rows: Sequence[RowT], key: Callable[[RowT], Hashable], near: int
) -> int | None:
    """Return the index of the row with a key, None if there is none; search near an index first."""
    for begin, end in ((max(near - NEARBY, 0), near + NEARBY), (0, len(rows))):
        same = map(eq, map(key, rows[begin:end]), repeat(wanted))
        place = next(compress(count(begin), same), None)
        if place is not None:
            return place
    return None


def moved(importance: str, key: str, after: str) -> str:
    """Return the importance with a column right after another one, if it is less important."""
    words = importance.split()
    if key in words and after in words and words.index(key) > words.index(after):
        words.remove(key)
        words.insert(words.index(after) + 1, key)
    return " ".join(words)


def fitting_columns(
    columns: Sequence[Column[RowT]],
    importance: str,
    squeezed: Mapping[str, int],
    rows: Sequence[RowT],
    now: datetime,
    available: int,
) -> Layout[RowT]:
    """Return the columns that fit into `available` cells, in their order; ages are counted to `now`.

    `importance` has their keys, those first that are left out last. Columns of `squeezed` may be cut to these
    widths: their keys are in `importance` twice, for the cut and for the whole column of up to MAX_WIDTH.
    They share the remaining width.
    """
    most = max(available, MAX_WIDTH)
    whole = dict(zip([column.key for column in columns], measured(columns, rows, now, most), strict=True))
    widths = {key: min(width, MAX_WIDTH) for key, width in whole.items()}
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in importance.split():
        if key not in widths:
            continue
        if key in kept:
            width, needed = widths[key], widths[key] - kept[key]
        else:
            width = min(widths[key], squeezed.get(key, MAX_WIDTH))
            # The sign of the sorted column is in the gap; the last column needs no gap when it is cut.
            needed = width if key in squeezed and key == columns[-1].key else width + GAP
        if needed > room:
            break
        kept[key] = width
        room -= needed
    for key in squeezed:
        if key in kept:
            more = min(whole[key] - kept[key], room)
            kept[key] += more
            room -= more
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])
