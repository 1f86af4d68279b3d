from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from kubectl_qos.present.output import Column
from kubectl_qos.tui.widgets import line_table
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import STYLES, Layout, Token, measured
from tests.tui.test_line_table import COLUMNS, NOW, Row


@pytest.fixture(autouse=True)
def _long_underlined_flashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a busy machine takes to look."""
    monkeypatch.setattr(line_table, "FLASH_SECONDS", 3600)
    monkeypatch.setitem(STYLES, "changed", "underline")


class FlashApp(App[None]):
    def __init__(self, unflashed: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.unflashed = unflashed
        self.animation_level = "full"

    def compose(self) -> ComposeResult:
        def token(_row: Row, _key: str) -> Token:
            return ""

        yield LineTable[Row](natural="name", key=lambda row: row.name, token=token, unflashed=self.unflashed)

    @property
    def table(self) -> LineTable[Row]:
        return self.query_one(LineTable)

    def show(self, *rows: Row, columns: Sequence[Column[Row]] = COLUMNS) -> None:
        self.table.load(rows, lambda *_: Layout(columns, measured(columns, rows, NOW)), NOW)

    def flashed(self) -> list[str]:
        """The texts that are shown in the style of a change."""
        found = []
        for y in range(self.table.size.height):
            for text, style, _ in self.table.render_line(y):
                if style is not None and style.underline:
                    found.append(text.strip())
        return found


async def shown(
    app: FlashApp, pilot: Pilot[Any], *rows: Row, columns: Sequence[Column[Row]] = COLUMNS
) -> list[str]:
    app.show(*rows, columns=columns)
    await pilot.pause()
    return app.flashed()


async def test_only_cells_with_another_text_are_highlighted() -> None:
    app = FlashApp()
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert await shown(app, pilot, Row("a", 1), Row("b", 2)) == [], "nothing was there before"
        assert await shown(app, pilot, Row("a", 1), Row("b", 3)) == ["3"]
        assert await shown(app, pilot, Row("b", 4), Row("a", 1), Row("c", 9)) == ["4"]
        assert await shown(app, pilot, Row("b", 4)) == [], "fewer rows are no change of a text"
        # Sorting ends it and other columns are no change.
        await pilot.pause()
        await shown(app, pilot, Row("a", 1), Row("b", 2))
        await shown(app, pilot, Row("a", 1), Row("b", 3))
        app.table.sort_by("size")
        assert app.flashed() == []
        assert await shown(app, pilot, Row("a", 5), Row("b", 3), columns=COLUMNS[1:]) == []


async def test_a_change_stops_flashing_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    app = FlashApp()
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        await shown(app, pilot, Row("a", 1), Row("b", 2))
        assert await shown(app, pilot, Row("a", 1), Row("b", 3)) == ["3"]
        timer = app.table._flash_end
        assert timer is not None
        assert timer._interval == line_table.FLASH_SECONDS
        painted: list[int] = []
        monkeypatch.setattr(app.table, "refresh_line", painted.append)
        app.table._end_flash()
        assert painted == [2], "no other line is painted again"
        assert app.flashed() == []
        assert app.table._flash_end is None


async def test_what_changes_all_the_time_and_who_wants_no_motion_are_spared() -> None:
    app = FlashApp(unflashed=frozenset({"size"}))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        await shown(app, pilot, Row("a", 1))
        assert await shown(app, pilot, Row("a", 2)) == []
    for still in ("flashes", "animation"):
        app = FlashApp()
        async with app.run_test(size=(40, 10)) as pilot:
            await pilot.pause()
            if still == "flashes":
                app.table.flashes = False
            else:
                app.animation_level = "none"
            await shown(app, pilot, Row("a", 1))
            assert await shown(app, pilot, Row("a", 2)) == []


async def test_of_many_rows_only_those_in_sight_are_compared() -> None:
    requested: list[str] = []

    def cell(row: Row, _: object) -> str:
        requested.append(row.name)
        return str(row.size)

    columns = (structs.replace(COLUMNS[1], cell=cell),)
    app = FlashApp()
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        for size in (1, 2):
            rows = [Row(f"{number}", size) for number in range(10_000)]
            requested.clear()
            app.table.load(rows, lambda *_: Layout(columns, [6]), NOW)
            await pilot.pause()
        assert 9 <= len(requested) <= 6 * 9
        assert app.flashed() == ["2"] * 9
