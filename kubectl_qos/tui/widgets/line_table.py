"""A table that renders only the lines in sight, so that it loads any number of rows at once.

Here are painting, cursor, scrolling and mouse. The owner gives the columns, a key of each row and a token of
each cell; table.py has widths and order.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import is_
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from kubectl_qos.present.format import NONE, UNKNOWN
from kubectl_qos.present.output import Column
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.widgets import table

RowT = TypeVar("RowT")

HEADER: Final = 1
KEPT_LINES: Final = 96
"""More than most screens have. A line takes some 10 KB."""
RIGHT_BUTTON: Final = 3
MIN_TALL_ROWS: Final = 6
"""Rows have several lines if at least this many of them fit."""
FLASH_SECONDS: Final = 0.8
"""How long a cell is highlighted after its text has changed."""

Spans = tuple[tuple[str, str], ...]
"""Texts of a line with their tokens."""


class _PaintedSpans(NamedTuple):
    """A line without cells: a heading, or a row's line after its first one."""

    spans: Spans
    at_cursor: bool
    focused: bool


class _PaintedRow(NamedTuple):
    """The content of a row's first line. If it is equal, the line is not painted again."""

    at_cursor: bool
    marked: bool
    focused: bool
    changed: frozenset[str]
    cells: tuple[tuple[str, table.Token], ...]


class LineTable(ScrollView, Generic[RowT], can_focus=True):
    """Rows in columns. The cursor stays on its row when rows are loaded again.

    Rows are loaded in the order of the column `natural`. Another order begins at its top; the first `pinned`
    rows stay on top in every order, and then the cursor stays on its row. `key` returns the identity of a
    row, which stays the same when its values change, `token` the style of a cell or of its parts. Changes in
    the columns `unflashed` are not highlighted.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.TABLE)

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row, or the row has changed; `row` is None in an empty table."""

        table: LineTable[Any]
        row: Any

        @property
        def control(self) -> LineTable[Any]:
            return self.table

    class Selected(Highlighted):
        """A row was opened by enter or a double click."""

    class MenuRequested(Highlighted):
        """A row was clicked with the right button."""

    class Sorted(Highlighted):
        """The rows are in another order."""

    def __init__(
        self,
        *,
        natural: str,
        key: Callable[[RowT], Hashable],
        token: Callable[[RowT, str], table.Token],
        pinned: int = 0,
        unflashed: frozenset[str] = frozenset(),
        id: str | None = None,  # noqa: A002 - Textual's name for it
    ) -> None:
        super().__init__(id=id)
        self.flashes = True
        self._key = key
        self._token = token
        self._order: table.RowOrder[RowT] = table.RowOrder(natural, pinned)
        self._fitting: table.Fitting[RowT] = lambda *_: table.Layout()
        self.columns: table.Layout[RowT] = table.Layout()
        self._now = datetime.now(UTC)
        self._empty = ""
        self.cursor = 0
        self.marked: frozenset[Hashable] = frozenset()
        self._base = Style.null()
        self._strips: LRUCache[_PaintedRow, Strip] = LRUCache(KEPT_LINES)
        self._painted: dict[int, Hashable] = {}
        """The content of each line in sight, as it was painted last."""
        self._flash: table.Flash[RowT] = table.Flash(unflashed)
        self._flash_end: Timer | None = None
        self._widths = table.Widths()
        self.group_of: Callable[[RowT], Hashable] | None = None
        """Returns the group of a row: adjacent rows of a group are under one heading."""
        self.heading: Callable[[RowT, int], Spans] = lambda *_: ()
        """Returns the heading above the first row of a group, for a width."""
        self.most_height = self.height = 1
        """The most lines of a row, and its lines now."""
        self.row_line: Callable[[RowT, int, int, table.Layout[RowT], int], Spans] = lambda *_: ()
        """Returns a line after the first one of a row: see ListDefinition.row_line."""
        self.natural_shown = natural
        """The key of the column that shows the natural order."""
        self._lines = table.RowLines()
        self._lines_of: tuple[object, ...] = (None, None, None)
        self._known_starts: tuple[Sequence[RowT], Sequence[int] | None] = (), None

    @property
    def rows(self) -> Sequence[RowT]:
        return self._order.rows

    @property
    def row(self) -> RowT | None:
        return self.rows[self.cursor] if self.rows else None

    @property
    def sorted_by(self) -> tuple[str, bool]:
        """Return the key of the column that is sorted by, and whether it is reversed."""
        return self._order.by

    def load(
        self,
        rows: Sequence[RowT],
        fitting: table.Fitting[RowT],
        now: datetime,
        *,
        empty: str = "",
        selector: table.RowSelector | None = None,
        starts: Sequence[int] | None = None,
    ) -> None:
        """Show rows, or only the selected ones. They are in their natural order and never change.

        `fitting` chooses the columns. Ages are counted to `now`. `empty` is shown if there are no rows.
        `starts` are the indices at which groups begin, if they are known.
        """
        self._begin_flash()
        was, self._known_starts = self.row, (rows, starts)
        self._fitting, self._now, self._empty = fitting, now, empty
        others = self._order.load(rows, selector)
        self._fit()
        self._arrange(was, others=others)

    def _fit(self) -> None:
        """Choose the columns for the width; a table that was never displayed has none."""
        width = self.scrollable_content_region.width
        if not width:
            return
        layout = self._widths.of(self._fitting(self.rows, self._now, width), width)
        if layout != self.columns:
            self.columns = layout
            self._strips.clear()
            self._painted.clear()
            self.refresh()

    def sort_by(self, key: str, *, is_reversed: bool = False) -> None:
        """Order the rows by a column, and go to the first row unless some are pinned."""
        column = self.find_column(key)
        if column is None:
            return
        self._stop_flash()
        was = self.row
        self._order.sort_by(column, is_reversed=is_reversed)
        self._arrange(was, others=False)
        if not self._order.pinned:
            self.action_first()
        self.post_message(self.Sorted(self, self.row))
        self.call_after_refresh(self.scroll_to_sorted)

    def scroll_to_sorted(self) -> None:
        """Bring the column that is sorted by in sight."""
        at = next(
            (at for at, column in enumerate(self.columns.columns) if column.key == self.sorted_by[0]), -1
        )
        if at < self.columns.fixed:
            return
        steps, x = self.columns.scroll_steps, self.scroll_offset.x
        begin, room = steps[at - self.columns.fixed], self.scrollable_content_region.width - self._fixed_width
        least = begin + self.columns.widths[at] - room
        if not least <= x <= begin:
            wanted = begin if x > begin else next((step for step in steps if step >= least), begin)
            self.scroll_to(x=min(wanted, begin), animate=False)

    def find_column(self, key: str) -> Column[RowT] | None:
        return self.columns.column(key)

    def sort_naturally(self) -> None:
        self._order.sort_by(None, is_reversed=False)

    def mark(self, keys: frozenset[Hashable]) -> None:
        self.marked = keys
        self._repaint()

    def move_to(self, key: Hashable) -> bool:
        """Put the cursor on the row with a key; return whether there is one."""
        index = table.key_index(key, self.rows, self._key, self.cursor)
        if index is not None:
            self._move(index)
        return index is not None

    def _arrange(self, was: RowT | None, *, others: bool) -> None:
        """Put the cursor back on its row or, if `others` were loaded, on the row with the same key."""
        index = table.row_index(was, self.rows, self.cursor) if was is not None else None
        if index is None and was is not None and others:
            index = table.key_index(self._key(was), self.rows, self._key, self.cursor)
        self.cursor = index if index is not None else max(min(self.cursor, len(self.rows) - 1), 0)
        self._show()
        if self.row is not was:
            self.post_message(self.Highlighted(self, self.row))

    def _show(self) -> None:
        room = self._page // min(max(len(self.rows), 1), MIN_TALL_ROWS)
        self.height = max(min(room, self.most_height), 1)
        made_from = self.rows, self.height, self.group_of
        if not all(map(is_, made_from, self._lines_of)):
            self._lines, self._lines_of = table.RowLines(self.height, self._starts()), made_from
        lines = self._lines.count(len(self.rows))
        width, room = self.columns.line_width, self.scrollable_content_region.width
        steps = self.columns.scroll_steps if width > room else []
        width = next((step + room for step in steps if step + room >= width), width)
        self.virtual_size = Size(width, lines + HEADER)
        self._repaint()
        self._scroll_to_cursor()

    def _starts(self) -> Sequence[int]:
        loaded, starts = self._known_starts
        if self.group_of is None:
            return ()
        if starts is not None and self.rows is loaded:
            return starts
        return table.group_starts(map(self.group_of, self.rows))

    def _begin_flash(self) -> None:
        self._stop_flash()
        if not self.flashes or self.app.animation_level == "none":
            return
        top = self._lines.at(self.scroll_offset.y)[0]
        in_sight = {self._key(row): row for row in self.rows[top : top + self._page]}
        if in_sight:
            self._flash.begin(in_sight, self.columns.columns, self._now)
            self._flash_end = self.set_timer(FLASH_SECONDS, self._end_flash)

    def _end_flash(self) -> None:
        self._stop_flash()
        self._repaint()

    def _stop_flash(self) -> None:
        if self._flash_end is not None:
            self._flash_end.stop()
            self._flash_end = None
        self._flash.end()

    def on_hide(self) -> None:
        self._strips.clear()

    def on_unmount(self) -> None:
        self._stop_flash()

    @property
    def _page(self) -> int:
        return max(self.scrollable_content_region.height - HEADER, 1)

    def _repaint(self) -> None:
        """Paint the lines in sight whose content has changed."""
        for y, shown in self._painted.items():
            if self._shown(y) != shown:
                self.refresh_line(self.scroll_offset.y + y)

    def _move(self, index: int) -> None:
        """Move the cursor to a row, or to the nearest one that exists."""
        index = max(min(index, len(self.rows) - 1), 0)
        if index == self.cursor or not self.rows:
            return
        self._refresh_row(self.cursor)
        self.cursor = index
        self._refresh_row(index)
        self._scroll_to_cursor()
        self.post_message(self.Highlighted(self, self.row))

    def _refresh_row(self, index: int) -> None:
        for line in range(self._lines.first(index), self._lines.first(index) + self.height):
            self.refresh_line(line + HEADER)

    def _scroll_to_cursor(self) -> None:
        """Bring the cursor in sight."""
        if not self.scrollable_content_region.height:  # not laid out yet, which leads here again
            return
        top = self.scroll_offset.y
        last = self._lines.first(self.cursor) + self.height - 1
        wanted = min(max(top, last - self._page + 1), self._lines.top(self.cursor))
        if wanted != top:
            self.scroll_to(y=wanted, animate=False)

    def on_resize(self) -> None:
        self._fit()
        self._show()

    def watch_show_vertical_scrollbar(self) -> None:
        self.call_after_refresh(self.on_resize)  # the scrollbar takes a column

    def notify_style_update(self) -> None:
        """Render the lines again: their styles are those of the theme."""
        super().notify_style_update()
        self._strips.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return a line in sight: the header, a line of a row, a heading, or the sentence for no rows."""
        width = self.size.width
        shown = self._painted[y] = self._shown(y)
        if isinstance(shown, _PaintedSpans):
            return self._spans_strip(shown, width)
        if isinstance(shown, _PaintedRow):
            strip, base = self._line(shown)
        elif y == 0:
            base, lit = self._style("header"), self._style("sorted")
            key, is_reversed = self.sorted_by
            by = self.natural_shown if key == self._order.natural else key, is_reversed
            strip = Strip(table.header_segments(self.columns, by, base, lit))
        else:
            return self._below(y, width)
        left, fixed = self.scroll_offset.x, self._fixed_width
        strip = strip.extend_cell_length(fixed + left + width, base)
        room = self.scrollable_content_region.width
        begin = fixed + left
        shown = table.cropped(strip, begin, self.columns.whole_end(begin, left + room))
        strip = Strip.join([strip.crop(0, fixed), shown]).extend_cell_length(width, base)
        if y == 0 and left:
            place = max(fixed - 1, 0)
            strip = Strip.join([strip.crop(0, place), Strip([Segment("←", base)]), strip.crop(place + 1)])
        if y == 0 and self.columns.line_width > left + room:
            arrow = Segment("→".ljust(width - room + 1), base)
            strip = Strip.join([strip.crop(0, room - 1), Strip([arrow])])
        return strip

    def _shown(self, y: int) -> Hashable:
        if y == 0:
            return self.sorted_by, self.natural_shown
        index, part = self._lines.at(self.scroll_offset.y + y - HEADER)
        if index >= len(self.rows):
            return self._empty if not self.rows else ""
        row, columns = self.rows[index], self.columns.columns
        if part:
            width, at_cursor = self.size.width, index == self.cursor and part > 0
            if part < 0:
                spans = self.heading(row, width)
            else:
                room = self.scrollable_content_region.width
                spans = self.row_line(row, part, self.height, self.columns, room)
            return _PaintedSpans(spans, at_cursor, self.has_focus)
        key = self._key(row)
        return _PaintedRow(
            index == self.cursor,
            key in self.marked,
            self.has_focus,
            self._flash.cells(key, row, columns, self._now),
            tuple([self._cell(row, column) for column in columns]),
        )

    def _cell(self, row: RowT, column: Column[RowT]) -> tuple[str, table.Token]:
        text = column.cell(row, self._now)
        return text, "faint" if text in {NONE, UNKNOWN} else self._token(row, column.key)

    @property
    def _fixed_width(self) -> int:
        """Return the width of the columns that do not scroll, 0 if no other column would fit next to them."""
        fixed = self.columns.fixed_width
        return fixed if fixed + table.GAP < self.size.width else 0

    def _line_base(self, line: _PaintedRow | _PaintedSpans) -> Style:
        return self._style("cursor" if line.focused else "blurred") if line.at_cursor else self._base

    def _line(self, line: _PaintedRow) -> tuple[Strip, Style]:
        base = self._line_base(line)
        strip = self._strips.get(line)
        if strip is None:
            of_token = self._token_style_on(base)
            changed = self._token_style("changed") if line.changed else Style.null()
            look = table.LineStyles(base, of_token, changed, line.at_cursor)
            strip = self._strips[line] = self._make_strip(line, look)
        return strip, base

    def _make_strip(self, line: _PaintedRow, look: table.LineStyles) -> Strip:
        segments = [Segment((">" if line.at_cursor else " ") + ("*" if line.marked else " "), look.base)]
        layout = self.columns
        for column, width, (text, token) in zip(layout.columns, layout.widths, line.cells, strict=True):
            changed = column.key in line.changed
            segments += table.cell_segments(text, column, width, token, look, changed=changed)
        return Strip(segments)

    def _spans_strip(self, line: _PaintedSpans, width: int) -> Strip:
        base = self._line_base(line)
        of_token = self._token_style_on(base)
        segments = [Segment(text, base + of_token(token) if token else base) for text, token in line.spans]
        return Strip(segments).adjust_cell_length(width, base)

    def _below(self, y: int, width: int) -> Strip:
        """Return a line below the last row; the second one of an empty table says why it is empty."""
        lines = ["", *textwrap.wrap(self._empty, max(width - table.GUTTER, 1))] if not self.rows else []
        if y - HEADER >= len(lines):
            return Strip.blank(width, self.rich_style)
        text = set_cell_size(" " * table.GUTTER + lines[y - HEADER], width)
        return Strip([Segment(text, self._style("empty"))], width)

    def _style(self, name: str) -> Style:
        return self._base + self._token_style(name)

    def _token_style(self, name: str) -> Style:
        app = self.app
        style = table.ANSI.get(name) if app.native_ansi_color else None
        style = table.COLOURLESS.get(name, style) if app.no_color else style
        return app.stylesheet.parse_style(style or table.STYLES[name]).rich_style

    def _token_style_on(self, base: Style) -> Callable[[str], Style]:
        """Return the styles of tokens on a line; on a reversed one a colour would be the background."""
        if not base.reverse:
            return self._token_style
        return lambda name: Style(bold=self._token_style(name).bold)

    def on_click(self, event: events.Click) -> None:
        """Sort by the column of the header, or move the cursor to a row; a double click opens the row."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == 0:
            is_fixed = offset.x < self._fixed_width
            column = self.columns.column_at(offset.x if is_fixed else offset.x + self.scroll_offset.x)
            if column is not None:
                key, is_reversed = self.sorted_by
                self.sort_by(column.key, is_reversed=column.key == key and not is_reversed)
        elif (index := self._lines.at(self.scroll_offset.y + offset.y - HEADER)[0]) < len(self.rows):
            self._move(index)
            if event.button == RIGHT_BUTTON:
                self.post_message(self.MenuRequested(self, self.row))
            elif event.chain == 2:
                self.action_select()

    def action_up(self) -> None:
        self._move(self.cursor - 1)

    def action_down(self) -> None:
        self._move(self.cursor + 1)

    def action_first(self) -> None:
        self._move(0)

    def action_last(self) -> None:
        self._move(len(self.rows) - 1)

    def action_page_up(self) -> None:
        self._move(self.cursor - max(self._page // self.height, 1))

    def action_page_down(self) -> None:
        self._move(self.cursor + max(self._page // self.height, 1))

    def action_left(self) -> None:
        before = [step for step in self.columns.scroll_steps if step < self.scroll_offset.x]
        self.scroll_to(x=max((0, *before)), animate=False)

    def action_right(self) -> None:
        """Scroll to the next column, or through one that is wider than the table."""
        at, room = self.scroll_offset.x, self.scrollable_content_region.width - self._fixed_width
        after = min((step for step in self.columns.scroll_steps if step > at), default=at + room)
        self.scroll_to(x=after if after - at <= room + table.GAP else at + room, animate=False)

    def action_select(self) -> None:
        if self.row is not None:
            self.post_message(self.Selected(self, self.row))
