from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from kubectl_qos.present.output import Align, Column, ColumnType, column
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import GUTTER, Layout, LineStyles, fitted, measured

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    name: str
    size: int


NAME: Column[Row] = column("name", lambda row: row.name, width=8)
SIZE: Column[Row] = column(
    "size", lambda row: row.size, type=ColumnType.NUMBER, width=6, cell=lambda row: str(row.size)
)
WIDE: Column[Row] = column("wide", lambda _: "w" * 50, width=8, sort_key=lambda _: 0)
COLUMNS = (NAME, SIZE)


def many(number: int) -> list[Row]:
    return [Row(f"row-{index:06}", index * 7919 % 100_003) for index in range(number)]


STEPS = st.sampled_from(
    ["change", "change", "swap", "fewer", "mark", "hide", "size", "j", "k", "G", "g", "pagedown", "tab"]
)


class CountingTable(LineTable[Row]):
    made = 0

    def _make_strip(self, line: Any, look: LineStyles) -> Strip:
        self.made += 1
        return super()._make_strip(line, look)


class TableApp(App[None]):
    def __init__(self, rows: Sequence[Row], columns: Sequence[Column[Row]] = COLUMNS, fixed: int = 0) -> None:
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
        def fitting(*_: object) -> Layout[Row]:
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


async def test_a_list_that_was_hidden_keeps_its_place() -> None:
    app = TableApp(many(100))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.press(*["pagedown"] * 2, *["up"] * 5)
        place = app.table.cursor, app.table.scroll_offset.y
        app.table.display = False
        await pilot.pause()
        app.table.display = True
        app.show(many(100))
        await pilot.pause()
        assert (app.table.cursor, app.table.scroll_offset.y) == place


async def test_a_row_is_in_sight_that_the_cursor_went_to_before_there_was_a_scrollbar() -> None:
    app = TableApp([])
    async with app.run_test(size=(60, 24)) as pilot:
        app.show(many(100))
        assert app.table.move_to("row-000050")
        await pilot.pause()
        assert any("row-000050" in line for line in lines(app))


async def test_of_100000_rows_only_those_in_sight_are_made() -> None:
    app = TableApp(many(100_000))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.pause()
        assert 0 < app.table.made <= 2 * 24
        assert app.table.virtual_size.height == 100_001
        # A cursor key makes two lines and no more.
        await pilot.pause()
        app.table.made = 0
        await pilot.press("down")
        await pilot.pause()
        assert app.table.made == 2
        app.table.made = 0
        await pilot.press("up")
        await pilot.pause()
        assert app.table.made == 0, "both lines were made before, and are kept"
        # The last of many rows is one key away.
        await pilot.press("G")
        await pilot.pause()
        assert app.table.row == app.rows[-1]
        assert lines(app)[-1].startswith("> row-099999")
        await pilot.press("g")
        await pilot.pause()
        assert lines(app)[1].startswith("> row-000000")


async def test_cells_are_measured_on_a_sample_only() -> None:
    requested = []

    def cell(row: Row, _: datetime) -> str:
        requested.append(row)
        return row.name

    counting = structs.replace(NAME, cell=cell)
    measured((counting,), many(100_000), NOW)
    assert len(requested) <= 300


async def test_order_and_cursor_stay_through_a_refresh() -> None:
    app = TableApp(three := [Row("a", 1), Row("b", 3), Row("c", 2)])

    async def as_at_first(pilot: Pilot[Any], *keys: str) -> None:
        app.table.sort_by("name")
        app.show(three)
        await pilot.press("g", *keys)

    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("down", "down")
        app.table.sort_by("size")
        await pilot.pause()
        assert [row.name for row in app.table.rows] == ["b", "c", "a"]
        assert app.table.cursor == 0, "another order begins at its top"
        app.table.sort_by("size", is_reversed=True)
        assert [row.name for row in app.table.rows] == ["a", "c", "b"]
        app.table.sort_by("name", is_reversed=True)
        assert [row.name for row in app.table.rows] == ["c", "b", "a"]
        assert app.table.cursor == 0
        # The cursor follows its row through a refresh.
        await as_at_first(pilot, "down", "down")
        app.show([Row("c", 9), Row("a", 1), Row("b", 3)])
        await pilot.pause()
        assert app.table.row == Row("c", 9)
        assert app.table.cursor == 0
        # A row that goes leaves the cursor at its place.
        await as_at_first(pilot, "G")
        app.show([Row("a", 1), Row("b", 3)])
        await pilot.pause()
        assert app.table.row == Row("b", 3)
        # The order is kept through a refresh.
        await as_at_first(pilot)
        app.table.sort_by("size")
        app.show([Row("a", 5), Row("b", 1), Row("c", 7)])
        await pilot.pause()
        assert [row.name for row in app.table.rows] == ["c", "a", "b"]


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
        app.show([], empty="nothing here, and a key that leads to something elsewhere")
        await pilot.pause()
        assert lines(app)[2:4] == ["  nothing here, and a key that leads to", "  something elsewhere"]
        assert app.table.row is None
        assert not [event for event in app.events if event[0] == "Selected"]


async def test_pages_move_by_what_is_in_sight_and_the_wheel_leaves_the_cursor() -> None:
    app = TableApp(many(100))
    async with app.run_test(size=(40, 11)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+f")
        assert app.table.cursor == 10
        await pilot.press("pagedown", "ctrl+b")
        assert app.table.cursor == 10
        await pilot.press("pageup", "pageup")
        assert app.table.cursor == 0
        # The wheel scrolls and the cursor stays.
        await pilot.pause()
        app.table.scroll_to(y=20, animate=False)
        await pilot.pause()
        assert lines(app)[1].strip().startswith("row-000020")
        assert app.table.cursor == 0
        await pilot.click(CountingTable, offset=(3, 3))
        assert app.table.row == app.rows[22]


async def test_rows_and_headers_are_clicked() -> None:
    app = TableApp([Row("a", 1), Row("b", 3), Row("c", 2)])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.click(CountingTable, offset=(14, 0))
        assert [row.name for row in app.table.rows] == ["b", "c", "a"]
        assert "SIZE▼" in lines(app)[0]
        await pilot.click(CountingTable, offset=(14, 0))
        assert [row.name for row in app.table.rows] == ["a", "c", "b"]
        assert "SIZE▲" in lines(app)[0]
        await pilot.click(CountingTable, offset=(39, 0))
        assert app.table.sorted_by == ("size", True), "right of the columns nothing is sorted"
        # A click takes the row and two open it.
        app.table.sort_by("name")
        app.show([Row("a", 1), Row("b", 3)])
        await pilot.press("g")
        await pilot.pause()
        app.events.clear()
        await pilot.click(CountingTable, offset=(3, 2))
        assert app.table.row == Row("b", 3)
        assert app.events == [("Highlighted", Row("b", 3))]
        await pilot.click(CountingTable, offset=(3, 1), times=2)
        assert ("Selected", Row("a", 1)) in app.events
        await pilot.click(CountingTable, offset=(3, 8))
        assert app.table.row == Row("a", 1), "below the rows there is none to take"


async def test_sideways_the_fixed_columns_stay_and_headers_are_clicked() -> None:
    app = TableApp([Row("a", 1)], (NAME, WIDE, SIZE), fixed=1)
    async with app.run_test(size=(30, 6)) as pilot:
        await pilot.pause()
        assert app.table.render_line(0).text[-2:] == " →"
        assert "←" not in app.table.render_line(0).text
        await pilot.press(*["right"] * 6)
        await pilot.pause()
        assert app.table.scroll_offset.x > 0
        assert app.table.render_line(0).text.startswith("  NAME▼←")
        assert "→" not in app.table.render_line(0).text
        text = app.table.render_line(1).text
        assert text.startswith("> a   ")
        assert text.rstrip().endswith("1")
        await pilot.press(*["left"] * 9)
        await pilot.pause()
        assert app.table.scroll_offset.x == 0
        # A click on a header that was scrolled to sorts by it.
        await pilot.press(*["right"] * 6)
        await pilot.pause()
        await pilot.click(CountingTable, offset=(12, 0))
        assert app.table.sorted_by == ("size", False)
        await pilot.click(CountingTable, offset=(3, 0))
        assert app.table.sorted_by == ("name", False)


async def test_another_order_begins_at_its_top_with_its_column_in_sight() -> None:
    columns: list[Column[Row]] = [
        NAME,
        *(structs.replace(SIZE, key=f"c{place}", header=f"{place}" * 8) for place in range(9)),
    ]
    app = TableApp(many(90), columns, fixed=1)
    async with app.run_test(size=(36, 6)) as pilot:
        await pilot.pause()
        for key, first in (("c5", "4"), ("c2", "2"), ("c3", "2"), ("c8", "7"), ("c0", "0")):
            await pilot.press("G")
            app.table.sort_by(key)
            await pilot.pause()
            assert app.table.row is app.table.rows[0]
            assert lines(app)[1].startswith("> ")
            header = lines(app)[0]
            assert f"{key[1]}▼" in header
            assert next(sign for sign in header if sign.isdigit()) == first


async def test_sideways_every_column_in_sight_is_whole_or_alone() -> None:
    columns: list[Column[Row]] = [
        column(f"c{place}", lambda _: "v" * 8, header=f"{place}" * 8) for place in range(9)
    ]
    app = TableApp(many(9), columns, fixed=1)
    async with app.run_test(size=(33, 6)) as pilot:
        await pilot.pause()
        for first in (*range(1, 8), 7):
            header, row = lines(app)[:2]
            digits = [sign for sign in dict.fromkeys(header) if sign.isdigit()]
            assert digits == ["0", f"{first}", f"{first + 1}"]
            assert [header.count(digit) for digit in digits[1:]] == [8, 8]
            assert row.count("v") == 24
            await pilot.press("right")
            await pilot.pause()


async def test_marked_rows_bear_a_sign_and_another_theme_repaints_the_lines() -> None:
    app = TableApp([Row("a", 1), Row("b", 2)])
    async with app.run_test(size=(30, 6)) as pilot:
        app.table.mark(frozenset({"a", "b"}))
        await pilot.pause()
        assert lines(app)[1].startswith(">*a")
        assert lines(app)[2].startswith(" *b")
        # Another theme repaints the lines.
        app.table.mark(frozenset())
        await pilot.pause()
        before = list(app.table.render_line(1))
        app.theme = "textual-light"
        await pilot.pause()
        after = list(app.table.render_line(1))
        assert before[0].text == after[0].text == "> "
        assert before[0].style != after[0].style


async def test_pinned_rows_stay_on_top_in_every_order() -> None:
    class PinnedApp(TableApp):
        def compose(self) -> ComposeResult:
            yield CountingTable(
                natural="name", key=lambda row: row.name, token=lambda _row, _key: "", pinned=1
            )

    app = PinnedApp([Row("all", 0), Row("a", 1), Row("b", 2)])
    async with app.run_test(size=(30, 6)) as pilot:
        await pilot.press("down")
        for is_reversed, order in ((False, ["all", "b", "a"]), (True, ["all", "a", "b"])):
            app.table.sort_by("size", is_reversed=is_reversed)
            assert [row.name for row in app.table.rows] == order
        app.table.sort_by("name", is_reversed=True)
        assert [row.name for row in app.table.rows] == ["all", "b", "a"]
        assert app.table.row == Row("a", 1), "what is chosen stays chosen"


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


async def test_a_refresh_paints_what_reads_otherwise_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = TableApp(rows := many(50))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await pilot.press("j")
        await pilot.pause()
        painted: list[int] = []
        paint = app.table.render_line

        def counted(y: int) -> Strip:
            painted.append(y)
            return paint(y)

        monkeypatch.setattr(app.table, "render_line", counted)

        async def shown(new: Sequence[Row]) -> list[int]:
            painted.clear()
            app.show(new)
            await pilot.pause()
            await pilot.pause()
            return painted

        assert await shown(list(rows)) == []
        assert await shown([replace(row) for row in rows]) == [], "equal rows read the same"
        changed = [replace(row, size=7) if at in {2, 5, 49} else row for at, row in enumerate(rows)]
        assert await shown(changed) == [3, 6]
        app.table.mark(frozenset({rows[4].name}))
        await pilot.pause()
        assert painted == [3, 6, 5]
        app.columns = (SIZE, NAME)
        assert sorted(await shown(changed)) == list(range(20)), "the header too, though no wider"
        wider = [replace(row, name=f"{row.name}-long") if at == 40 else row for at, row in enumerate(changed)]
        assert sorted(await shown(wider)) == list(range(20)), "another width is another table"


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=6), st.integers(0, 2**32))
def test_whatever_is_done_the_screen_is_that_of_a_table_painted_again(steps: list[str], seed: int) -> None:
    asyncio.run(painted_again(steps, random.Random(seed)))


async def painted_again(steps: list[str], chance: random.Random) -> None:
    """Do it step by step; after each, all lines are painted once more, and nothing may look otherwise."""
    app = TableApp(rows := many(30))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        for step in steps:
            if step == "change":
                rows = [
                    replace(row, size=chance.randrange(9)) if chance.random() < 0.3 else row for row in rows
                ]
                app.show(rows)
            elif step == "swap":
                chance.shuffle(rows)
                app.show(list(rows))
            elif step == "fewer":
                rows = [row for row in rows if chance.random() < 0.7]
                app.show(rows, empty="gone")
            elif step == "mark":
                app.table.mark(frozenset(row.name for row in rows if chance.random() < 0.3))
            elif step == "hide":
                app.table.display = not app.table.display
            elif step == "size":
                await pilot.resize_terminal(chance.randrange(20, 50), chance.randrange(5, 20))
            else:
                await pilot.press(step)
            await pilot.pause()
            await pilot.pause()
            seen = screen_of(app)
            app.table.notify_style_update()
            app.table.refresh()
            await pilot.pause()
            await pilot.pause()
            assert screen_of(app) == seen, step


def screen_of(app: TableApp) -> list[Strip]:
    """What is on the screen, with its styles."""
    return app.screen._compositor.render_strips()


async def test_lines_that_nobody_sees_are_not_kept() -> None:
    app = TableApp(many(50))
    async with app.run_test(size=(60, 20)) as pilot:
        table = app.query_one(LineTable)
        await pilot.pause()
        assert len(table._strips)
        table.display = False
        await pilot.pause()
        assert not len(table._strips)


async def test_columns_give_way_to_the_scrollbar_at_once() -> None:
    app = TableApp([])
    async with app.run_test(size=(40, 12)) as pilot:
        app.table.styles.scrollbar_size_vertical = 1
        for count in (3, 100):
            app.table.load(many(count), lambda _, __, room: Layout((NAME,), (room - GUTTER,)), NOW)
            await pilot.pause()
            await pilot.pause()
        assert app.table.show_vertical_scrollbar
        assert app.table.columns.line_width == 39
        assert not app.table.show_horizontal_scrollbar
