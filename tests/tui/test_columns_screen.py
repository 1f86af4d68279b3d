"""Which columns a list shows, chosen in a dialog."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.search import ColumnsScreen
from kubectl_qos.tui.widgets.line_table import LineTable
from tests.tui.sources import main_of, names, press, screen_text, settled, until


@pytest.fixture(params=[(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def pilot(request: pytest.FixtureRequest) -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=request.param) as found:
        await settled(found)
        yield found


def shown(pilot: Pilot[Any]) -> list[str]:
    """The columns of the list."""
    return [column.key for column in main_of(pilot).table.columns.columns]


def dialog(pilot: Pilot[Any]) -> LineTable[Any]:
    assert isinstance(pilot.app.screen, ColumnsScreen)
    return pilot.app.screen.query_one(LineTable)


def choices(pilot: Pilot[Any]) -> list[tuple[str, bool]]:
    return [(choice.column.key, choice.shown) for choice in dialog(pilot).rows]


async def listed(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: not main_of(pilot).is_building)


async def test_those_that_are_shown_come_first_then_all_others(pilot: Pilot[Any]) -> None:
    for key in "12345":
        await press(pilot, key)
        await listed(pilot)
        columns, known = shown(pilot), list(main_of(pilot).definition.columns)
        await press(pilot, "C")
        assert choices(pilot) == [
            *((key, True) for key in columns),
            *((key, False) for key in known if key not in columns),
        ]
        assert dialog(pilot).has_focus
        text = screen_text(pilot)
        assert "WHAT IT SAYS" in text
        assert main_of(pilot).definition.columns[columns[0]].header in text
        await press(pilot, "enter")
        assert shown(pilot) == columns, "taken as they are"
        await press(pilot, "C", "d")


async def test_space_hides_and_shows_and_goes_on(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", "j", "space", "space")
    assert dialog(pilot).cursor == 3
    assert [key for key, is_shown in choices(pilot) if is_shown] == [before[0], *before[3:]]
    await press(pilot, "k", "space", "enter")
    assert isinstance(pilot.app.screen, MainScreen)
    assert shown(pilot) == [before[0], before[2], *before[3:]]
    assert len(names(pilot)) == 60


async def test_a_column_is_moved_and_the_cursor_stays_on_it(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", "J", "J", "J", "K")
    row = dialog(pilot).row
    assert row is not None
    assert row.column.key == before[0]
    assert dialog(pilot).cursor == 2
    await press(pilot, "g", "K", "G", "J")
    assert [key for key, _ in choices(pilot)[:4]] == [before[1], before[2], before[0], before[3]]
    await press(pilot, "enter")
    assert shown(pilot)[:4] == [before[1], before[2], before[0], before[3]]


async def test_any_column_can_be_shown_and_the_order_stays_through_a_refresh(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", "G", "space", "enter")
    assert shown(pilot) == [*before, "trend"]
    await press(pilot, "r")
    await settled(pilot)
    assert shown(pilot) == [*before, "trend"]
    await press(pilot, "w")
    assert "eviction" in shown(pilot), "wide gives up the choice"
    await press(pilot, "w")
    assert shown(pilot) == before


async def test_escape_leaves_all_as_it_was_and_d_gives_up_the_choice(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", "space", "J", "escape")
    assert shown(pilot) == before
    await press(pilot, "C", "space", "enter")
    assert shown(pilot) == before[1:]
    await press(pilot, "C", "d")
    assert shown(pilot) == before


async def test_none_at_all_is_what_fits(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", *["space"] * len(before), "enter")
    assert shown(pilot) == before


async def test_each_list_has_its_own_columns(pilot: Pilot[Any]) -> None:
    await press(pilot, "C", "space", "enter")
    pods = shown(pilot)
    await press(pilot, "3")
    await listed(pilot)
    workloads = shown(pilot)
    await press(pilot, "C", "j", "space", "enter")
    assert shown(pilot) == [workloads[0], *workloads[2:]]
    await press(pilot, "4")
    assert shown(pilot) == pods


async def test_a_click_on_the_header_changes_nothing(pilot: Pilot[Any]) -> None:
    await press(pilot, "C")
    before = choices(pilot)
    for _ in range(2):
        await pilot.click(LineTable, offset=(4, 0))
        await pilot.pause()
        assert choices(pilot) == before
    await press(pilot, "space")
    assert choices(pilot) == [(before[0][0], False), *before[1:]]


async def test_a_double_click_takes_them(pilot: Pilot[Any]) -> None:
    before = shown(pilot)
    await press(pilot, "C", "space")
    await pilot.click(LineTable, offset=(4, 2), times=2)
    await pilot.pause()
    assert isinstance(pilot.app.screen, MainScreen)
    assert shown(pilot) == before[1:]
