"""A table on the line API: any number of rows load at once, and only the lines in sight are ever made.

Here: painting, cursor, scrolling, sorting, mouse. Not here: what the rows are, which columns they have and
what their cells mean; the owner says so with columns, a key and a style for each cell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kubectl_qos.present.columns import Align
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Fitting, Layout, TableColumn, fitted

RowT = TypeVar("RowT")

HEADER: Final = 1
TOKENS: Final = ("victim", "success", "warning", "error", "accent", "muted")
VIVID: Final = frozenset({"victim"})
"""Tokens that show under the cursor too."""


class LineTable(ScrollView, Generic[RowT], can_focus=True):
    """Rows in columns with a cursor that follows its row, wherever a refresh or another order puts it.

    Args:
        natural: the key of the column by whose order rows are loaded.
        key: what stays the same of a row when its values change.
        token: which of TOKENS a cell is styled by, empty for none.
        pinned: so many rows stay on top in every order.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.TABLE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-table--header",
        "line-table--sorted",
        "line-table--cursor",
        "line-table--cursor-blurred",
        "line-table--empty",
        *(f"line-table--{token}" for token in TOKENS),
    }

    class Highlighted(Message):
        """The cursor is on another row, or its row has other values; `row` is None in an empty table."""

        def __init__(self, table: LineTable[Any], row: Any) -> None:
            super().__init__()
            self.table = table
            self.row = row

        @property
        def control(self) -> LineTable[Any]:
            """The table."""
            return self.table

    class Selected(Highlighted):
        """A row was opened by enter or a double click."""

    class Sorted(Highlighted):
        """The rows are in another order."""

    def __init__(
        self,
        *,
        natural: str,
        key: Callable[[RowT], Hashable],
        token: Callable[[RowT, str], str],
        pinned: int = 0,
        id: str | None = None,  # noqa: A002 - Textual's name for it
    ) -> None:
        super().__init__(id=id)
        self._natural = natural
        self._key = key
        self._token = token
        self._pinned = pinned
        self._given: Sequence[RowT] = ()
        self._rows: Sequence[RowT] = ()
        self._fitting: Fitting[RowT] = lambda _: Layout()
        self._layout_of: Layout[RowT] = Layout()
        self._now = datetime.now(UTC)
        self._empty = ""
        self._cursor = 0
        self._sort_column: TableColumn[RowT] | None = None
        self._turned = False
        self._marked: frozenset[Hashable] = frozenset()
        self._strips: LRUCache[tuple[int, bool, bool, bool], Strip] = LRUCache(512)

    @property
    def rows(self) -> Sequence[RowT]:
        """The rows in the order in which they are shown."""
        return self._rows

    @property
    def columns(self) -> Layout[RowT]:
        """The columns that are shown."""
        return self._layout_of

    @property
    def cursor(self) -> int:
        """The place of the cursor's row."""
        return self._cursor

    @property
    def row(self) -> RowT | None:
        """The row under the cursor, None in an empty table."""
        return self._rows[self._cursor] if self._rows else None

    @property
    def sorted_by(self) -> tuple[str, bool]:
        """The key of the column that is sorted by, and whether the other way round."""
        return self._sort_column.key if self._sort_column is not None else self._natural, self._turned

    def load(self, rows: Sequence[RowT], fitting: Fitting[RowT], now: datetime, *, empty: str = "") -> None:
        """Show these rows.

        Args:
            rows: in their natural order; never changed.
            fitting: the columns for a width; their cells are made when they come in sight.
            now: for ages.
            empty: the sentence for no rows.
        """
        self._given, self._fitting, self._now, self._empty = rows, fitting, now, empty
        self._fit()
        self._arrange()

    def _fit(self) -> None:
        """Choose the columns for the width; a table that is not displayed has none yet."""
        width = self.scrollable_content_region.width
        if width:
            self._layout_of = self._fitting(width)

    def sort_by(self, key: str, *, turned: bool = False) -> None:
        """Order the rows by a column that is shown; the cursor stays on its row."""
        column = self._layout_of.column(key)
        if column is None:
            return
        self._sort_column, self._turned = column, turned
        self._arrange()
        self.post_message(self.Sorted(self, self.row))

    def mark(self, keys: frozenset[Hashable]) -> None:
        """Show the rows of these keys as marked."""
        self._marked = keys
        self._repaint()

    def move_to(self, key: Hashable) -> bool:
        """Put the cursor on the row of that key; False if there is none."""
        for index, row in enumerate(self._rows):
            if self._key(row) == key:
                self._move(index)
                return True
        return False

    def _arrange(self) -> None:
        """Order the rows anew, find the cursor's row again, and repaint."""
        was = self.row
        self._rows = self._ordered()
        self._cursor = self._place_of(was)
        self.virtual_size = Size(self._layout_of.line_width, len(self._rows) + HEADER)
        self._repaint()
        self._scroll_to_cursor()
        if self.row is not was:
            self.post_message(self.Highlighted(self, self.row))

    def _ordered(self) -> Sequence[RowT]:
        pinned, free = self._given[: self._pinned], self._given[self._pinned :]
        column = self._sort_column
        if column is not None and column.key != self._natural:
            free = sorted(free, key=column.sort_key, reverse=self._turned)
        elif self._turned:
            free = free[::-1]
        return [*pinned, *free] if pinned else free

    def _place_of(self, was: RowT | None) -> int:
        if was is not None:
            for index, row in enumerate(self._rows):
                if row is was:
                    return index
            key = self._key(was)
            for index in _outwards(self._cursor, len(self._rows)):
                if self._key(self._rows[index]) == key:
                    return index
        return max(min(self._cursor, len(self._rows) - 1), 0)

    @property
    def _page(self) -> int:
        """So many rows are in sight."""
        return max(self.scrollable_content_region.height - HEADER, 1)

    def _repaint(self) -> None:
        self._strips.clear()
        self.refresh()

    def _move(self, index: int) -> None:
        """The cursor to another row: two lines are painted anew, or all if it leaves the sight."""
        index = max(min(index, len(self._rows) - 1), 0)
        if index == self._cursor or not self._rows:
            return
        self.refresh_line(self._cursor + HEADER)
        self._cursor = index
        self.refresh_line(index + HEADER)
        self._scroll_to_cursor()
        self.post_message(self.Highlighted(self, self.row))

    def _scroll_to_cursor(self) -> None:
        top = self.scroll_offset.y
        wanted = min(max(top, self._cursor - self._page + 1), self._cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False)

    def on_resize(self) -> None:
        """Other columns fit; the cursor stays in sight."""
        self._fit()
        self._arrange()

    def notify_style_update(self) -> None:
        """Lines are made with the styles of the theme: with another one they are made anew."""
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        """One line of what is in sight: the header, a row, or the sentence for none."""
        width = self.size.width
        if y == 0:
            strip, base = self._header(), self._style("line-table--header")
        else:
            index = self.scroll_offset.y + y - HEADER
            if index >= len(self._rows):
                return self._below(y, width)
            strip, base = self._line(index)
        layout, left = self._layout_of, self.scroll_offset.x
        strip = strip.extend_cell_length(max(width, layout.line_width), base)
        fixed = layout.fixed_width
        if not left or fixed + GAP >= width:
            return strip.crop(left, left + width)
        return Strip.join([strip.crop(0, fixed), strip.crop(fixed + left, left + width)])

    def _header(self) -> Strip:
        base, lit = self._style("line-table--header"), self._style("line-table--sorted")
        segments = [Segment(" " * GUTTER, base)]
        key, turned = self.sorted_by
        for column, width in zip(self._layout_of.columns, self._layout_of.widths, strict=True):
            sign = ("▲" if turned else "▼") if column.key == key else ""
            text = fitted(column.header, width, column.align)
            if column.align is Align.LEFT:
                text = text.rstrip()
            segments.append(Segment(f"{text}{sign}".ljust(width + GAP), lit if sign else base))
        return Strip(segments)

    def _line(self, index: int) -> tuple[Strip, Style]:
        row = self._rows[index]
        at_cursor = index == self._cursor
        marked = self._key(row) in self._marked
        focused = self.has_focus
        base = self.rich_style
        if at_cursor:
            base = self._style("line-table--cursor" if focused else "line-table--cursor-blurred")
        state = (index, at_cursor, marked, focused)
        strip = self._strips.get(state)
        if strip is None:
            strip = self._strips[state] = self._made(row, base, at_cursor=at_cursor, marked=marked)
        return strip, base

    def _made(self, row: RowT, base: Style, *, at_cursor: bool, marked: bool) -> Strip:
        """A row's whole line, however much of it is in sight."""
        segments = [Segment((">" if at_cursor else " ") + ("*" if marked else " "), base)]
        for column, width in zip(self._layout_of.columns, self._layout_of.widths, strict=True):
            text = fitted(column.cell(row, self._now), width, column.align) + " " * GAP
            token = self._token(row, column.key)
            style = base
            if token:
                own = self._style(f"line-table--{token}", partial=True)
                style = base + (Style(bold=own.bold) if at_cursor and token not in VIVID else own)
            segments.append(Segment(text, style))
        return Strip(segments)

    def _below(self, y: int, width: int) -> Strip:
        """The lines below the last row; of an empty table the second one says why."""
        if self._rows or y != HEADER + 1:
            return Strip.blank(width, self.rich_style)
        text = set_cell_size(f"  {self._empty}", width)
        return Strip([Segment(text, self._style("line-table--empty"))], width)

    def _style(self, name: str, *, partial: bool = False) -> Style:
        return self.get_component_rich_style(name, partial=partial)

    def on_click(self, event: events.Click) -> None:
        """The header sorts, a row takes the cursor, a second click on it opens it."""
        place = event.get_content_offset(self)
        if place is None:
            return
        if place.y == 0:
            x = place.x if place.x < self._layout_of.fixed_width else place.x + self.scroll_offset.x
            column = self._layout_of.column_at(x)
            if column is not None:
                key, turned = self.sorted_by
                self.sort_by(column.key, turned=column.key == key and not turned)
            return
        index = self.scroll_offset.y + place.y - HEADER
        if index < len(self._rows):
            self._move(index)
            if event.chain == 2:
                self.action_select()

    def action_up(self) -> None:
        """The row above."""
        self._move(self._cursor - 1)

    def action_down(self) -> None:
        """The row below."""
        self._move(self._cursor + 1)

    def action_first(self) -> None:
        """The first row."""
        self._move(0)

    def action_last(self) -> None:
        """The last row."""
        self._move(len(self._rows) - 1)

    def action_page_up(self) -> None:
        """As many rows up as are in sight."""
        self._move(self._cursor - self._page)

    def action_page_down(self) -> None:
        """As many rows down as are in sight."""
        self._move(self._cursor + self._page)

    def action_left(self) -> None:
        """Columns further to the left."""
        self.scroll_to(x=max(self.scroll_offset.x - 8, 0), animate=False)

    def action_right(self) -> None:
        """Columns further to the right."""
        self.scroll_to(x=self.scroll_offset.x + 8, animate=False)

    def action_select(self) -> None:
        """Open the row."""
        if self.row is not None:
            self.post_message(self.Selected(self, self.row))


def _outwards(start: int, count: int) -> Iterator[int]:
    """Every index, the nearest to a place first: most rows stay about where they were."""
    for distance in range(max(count, start + 1)):
        if start + distance < count:
            yield start + distance
        if 0 < distance <= start and start - distance < count:
            yield start - distance
