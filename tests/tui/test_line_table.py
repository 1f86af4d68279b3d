from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.strip import Strip

from kubectl_qos.present.columns import Align
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import Look
from kubectl_qos.tui.widgets.table_layout import Layout, fitted, measured
from kubectl_qos.tui.widgets.table_order import outwards

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    name: str
    size: int


@dataclass(frozen=True)
class Column:
    key: str
    header: str
    align: Align
    width: int
    cell: Any
    sort_key: Any


NAME = Column("name", "NAME", Align.LEFT, 8, lambda row, _: row.name, lambda row: row.name)
SIZE = Column("size", "SIZE", Align.RIGHT, 6, lambda row, _: str(row.size), lambda row: -row.size)
WIDE = Column("wide", "WIDE", Align.LEFT, 8, lambda _row, _now: "w" * 50, lambda _: 0)
COLUMNS = (NAME, SIZE)


def many(number: int) -> list[Row]:
    return [Row(f"row-{index:06}", index * 7919 % 100_003) for index in range(number)]


class CountingTable(LineTable[Row]):
    made = 0

    def _made(self, row: Row, look: Look, *, marked: bool, changed: frozenset[str]) -> Strip:
        self.made += 1
        return super()._made(row, look, marked=marked, changed=changed)


class TableApp(App[None]):
    def __init__(self, rows: Sequence[Row], columns: Sequence[Column] = COLUMNS, fixed: int = 0) -> None:
        super().__init__()
        self.rows = rows
        self.columns = columns
        self.fixed = fixed
        self.events: list[tuple[str, Any]] = []

    def compose(self) -> ComposeResult:
        yield CountingTable(natural="name", key=lambda row: row.name, token=lambda _row, _key: "")

    @property
    def table(self) -> CountingTable:
        return self.query_one(CountingTable)

    def show(self, rows: Sequence[Row], empty: str = "") -> None:
        def fitting(_: int) -> Layout[Row]:
            return Layout(self.columns, measured(self.columns, rows, NOW), self.fixed)

        self.table.load(rows, fitting, NOW, empty=empty)

    def on_mount(self) -> None:
        self.show(self.rows)

    def on_line_table_highlighted(self, event: LineTable.Highlighted) -> None:
        self.events.append((type(event).__name__, event.row))

    def on_line_table_selected(self, event: LineTable.Selected) -> None:
        self.events.append((type(event).__name__, event.row))

    def on_line_table_sorted(self, event: LineTable.Sorted) -> None:
        self.events.append((type(event).__name__, event.row))


def lines(app: TableApp) -> list[str]:
    return [app.table.render_line(y).text.rstrip() for y in range(app.table.size.height)]


async def test_of_100000_rows_only_those_in_sight_are_made() -> None:
    app = TableApp(many(100_000))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.pause()
        assert 0 < app.table.made <= 2 * 24
        assert app.table.virtual_size.height == 100_001


async def test_cells_are_measured_on_a_sample_only() -> None:
    asked = []

    def cell(row: Row, _: datetime) -> str:
        asked.append(row)
        return row.name

    counting = Column("name", "NAME", Align.LEFT, 8, cell, None)
    measured((counting,), many(100_000), NOW)
    assert len(asked) <= 300


async def test_a_cursor_key_makes_two_lines_and_no_more() -> None:
    app = TableApp(many(100_000))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.pause()
        app.table.made = 0
        await pilot.press("down")
        await pilot.pause()
        assert app.table.made == 2
        app.table.made = 0
        await pilot.press("up")
        await pilot.pause()
        assert app.table.made == 0, "both lines were made before, and are kept"


async def test_the_last_of_many_rows_is_one_key_away() -> None:
    app = TableApp(many(100_000))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        assert app.table.row == app.rows[-1]
        assert lines(app)[-1].startswith("> row-099999")
        await pilot.press("g")
        await pilot.pause()
        assert lines(app)[1].startswith("> row-000000")


async def test_header_and_rows_are_aligned() -> None:
    app = TableApp([Row("a", 1), Row("long-name", 12345678)])
    async with app.run_test(size=(40, 6)) as pilot:
        await pilot.pause()
        assert lines(app) == [
            "  NAME▼          SIZE",
            "> a                 1",
            "  long-name  12345678",
            "",
            "",
            "",
        ]


async def test_the_cursor_follows_its_row_into_another_order() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("down", "down")
        app.table.sort_by("size")
        await pilot.pause()
        assert [row.name for row in app.table.rows] == ["b", "c", "a"]
        assert app.table.row == Row("c", 2)
        assert app.table.cursor == 1
        app.table.sort_by("size", turned=True)
        assert [row.name for row in app.table.rows] == ["a", "c", "b"]
        app.table.sort_by("name", turned=True)
        assert [row.name for row in app.table.rows] == ["c", "b", "a"]
        assert app.table.cursor == 0


async def test_the_cursor_follows_its_row_through_a_refresh() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("down", "down")
        app.show([Row("c", 9), Row("a", 1), Row("b", 3)])
        await pilot.pause()
        assert app.table.row == Row("c", 9)
        assert app.table.cursor == 0


async def test_the_order_is_kept_through_a_refresh() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        app.table.sort_by("size")
        app.show([Row("a", 5), Row("b", 1), Row("c", 7)])
        await pilot.pause()
        assert [row.name for row in app.table.rows] == ["c", "a", "b"]


async def test_a_row_that_goes_leaves_the_cursor_at_its_place() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("G")
        app.show([Row("a", 1), Row("b", 3)])
        await pilot.pause()
        assert app.table.row == Row("b", 3)


async def test_fewer_rows_than_the_scroll_position_are_all_in_sight() -> None:
    app = TableApp(many(500))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        app.show(many(3))
        await pilot.pause()
        assert [line[:12].rstrip() for line in lines(app)[1:4]] == [
            "  row-000000",
            "  row-000001",
            "> row-000002",
        ]


async def test_an_empty_table_says_why_and_bears_every_key() -> None:
    app = TableApp([])
    async with app.run_test(size=(40, 6)) as pilot:
        app.show([], empty="nothing here")
        await pilot.press("up", "down", "g", "G", "pageup", "pagedown", "left", "right", "enter")
        await pilot.pause()
        assert lines(app)[2] == "  nothing here"
        assert app.table.row is None
        assert not [event for event in app.events if event[0] == "Selected"]


async def test_pages_move_by_what_is_in_sight() -> None:
    app = TableApp(many(100))
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+f")
        assert app.table.cursor == 10
        await pilot.press("pagedown", "ctrl+b")
        assert app.table.cursor == 10
        await pilot.press("pageup", "pageup")
        assert app.table.cursor == 0


async def test_a_click_on_the_header_sorts_and_a_second_turns() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.click(CountingTable, offset=(14, 0))
        assert [row.name for row in app.table.rows] == ["b", "c", "a"]
        assert "SIZE▼" in lines(app)[0]
        await pilot.click(CountingTable, offset=(14, 0))
        assert [row.name for row in app.table.rows] == ["a", "c", "b"]
        assert "SIZE▲" in lines(app)[0]
        await pilot.click(CountingTable, offset=(39, 0))
        assert app.table.sorted_by == ("size", True), "beside the columns there is nothing to sort by"


async def test_a_click_takes_the_row_and_two_open_it() -> None:
    app = TableApp([Row("a", 1), Row("b", 3)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.events.clear()
        await pilot.click(CountingTable, offset=(3, 2))
        assert app.table.row == Row("b", 3)
        assert app.events == [("Highlighted", Row("b", 3))]
        await pilot.click(CountingTable, offset=(3, 1), times=2)
        assert ("Selected", Row("a", 1)) in app.events
        await pilot.click(CountingTable, offset=(3, 8))
        assert app.table.row == Row("a", 1), "below the rows there is none to take"


async def test_the_wheel_scrolls_and_the_cursor_stays() -> None:
    app = TableApp(many(100))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.table.scroll_to(y=20, animate=False)
        await pilot.pause()
        assert lines(app)[1].strip().startswith("row-000020")
        assert app.table.cursor == 0
        await pilot.click(CountingTable, offset=(3, 3))
        assert app.table.row == app.rows[22]


async def test_sideways_the_fixed_columns_stay() -> None:
    app = TableApp([Row("a", 1)], (NAME, WIDE, SIZE), fixed=1)
    async with app.run_test(size=(30, 6)) as pilot:
        await pilot.press(*["right"] * 6)
        await pilot.pause()
        assert app.table.scroll_offset.x > 0
        text = app.table.render_line(1).text
        assert text.startswith("> a   ")
        assert text.rstrip().endswith("1")
        await pilot.press(*["left"] * 9)
        await pilot.pause()
        assert app.table.scroll_offset.x == 0


async def test_a_click_on_a_header_that_was_scrolled_to_sorts_by_it() -> None:
    app = TableApp([Row("a", 1), Row("b", 2)], (NAME, WIDE, SIZE), fixed=1)
    async with app.run_test(size=(30, 6)) as pilot:
        await pilot.press(*["right"] * 6)
        await pilot.pause()
        await pilot.click(CountingTable, offset=(26, 0))
        assert app.table.sorted_by == ("size", False)
        await pilot.click(CountingTable, offset=(3, 0))
        assert app.table.sorted_by == ("name", False)


async def test_marked_rows_bear_a_sign() -> None:
    app = TableApp([Row("a", 1), Row("b", 2)])
    async with app.run_test(size=(30, 6)) as pilot:
        app.table.mark(frozenset({"a", "b"}))
        await pilot.pause()
        assert lines(app)[1].startswith(">*a")
        assert lines(app)[2].startswith(" *b")


async def test_pinned_rows_stay_on_top_in_every_order() -> None:
    class PinnedApp(TableApp):
        def compose(self) -> ComposeResult:
            yield CountingTable(
                natural="name", key=lambda row: row.name, token=lambda _row, _key: "", pinned=1
            )

    app = PinnedApp([Row("all", 0), Row("a", 1), Row("b", 2)])
    async with app.run_test(size=(30, 6)):
        for turned, order in ((False, ["all", "b", "a"]), (True, ["all", "a", "b"])):
            app.table.sort_by("size", turned=turned)
            assert [row.name for row in app.table.rows] == order
        app.table.sort_by("name", turned=True)
        assert [row.name for row in app.table.rows] == ["all", "b", "a"]


async def test_another_theme_repaints_the_lines() -> None:
    app = TableApp([Row("a", 1)])
    async with app.run_test(size=(30, 6)) as pilot:
        await pilot.pause()
        before = list(app.table.render_line(1))
        app.theme = "textual-light"
        await pilot.pause()
        after = list(app.table.render_line(1))
        assert before[0].text == after[0].text == "> "
        assert before[0].style != after[0].style


@pytest.mark.parametrize(
    ("text", "width", "align", "cell"),
    [
        ("abc", 5, Align.LEFT, "abc  "),
        ("abc", 5, Align.RIGHT, "  abc"),
        ("abcdef", 5, Align.LEFT, "abcd…"),
        ("", 2, Align.LEFT, "  "),
        ("日本語", 5, Align.LEFT, "日本…"),
        ("日本", 5, Align.RIGHT, " 日本"),
        ("ab", 1, Align.LEFT, "…"),
    ],
)
def test_text_is_cut_or_filled_to_its_cell(text: str, width: int, align: Align, cell: str) -> None:
    assert fitted(text, width, align) == cell


def test_numbers_reserve_their_width_and_text_takes_what_it_needs() -> None:
    assert measured((NAME, SIZE), [Row("ab", 1)], NOW) == [4, 6]
    assert measured((NAME, SIZE), [Row("a" * 99, 1234567)], NOW) == [60, 7]


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_row_of_the_cursor_is_looked_for_from_its_place_outwards(start: int, count: int) -> None:
    found = list(outwards(start, count))
    assert sorted(found) == list(range(count))
    assert [abs(index - start) for index in found] == sorted(abs(index - start) for index in found)


async def test_lines_that_nobody_sees_are_not_kept() -> None:
    app = TableApp(many(50))
    async with app.run_test(size=(60, 20)) as pilot:
        table = app.query_one(LineTable)
        await pilot.pause()
        assert len(table._strips)
        table.display = False
        await pilot.pause()
        assert not len(table._strips)
