"""The pod switcher, typed and chosen with keys and mouse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.line_table import LineTable
from tests.tui.sources import (
    ScriptedSource,
    demo,
    main_of,
    names,
    press,
    screen_text,
    settled,
    type_text,
    until,
    without,
)

ALL = [row.name for row in build_rows(demo(), Scope()).rows]


@pytest.fixture(params=[(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def pilot(request: pytest.FixtureRequest) -> AsyncIterator[Pilot[Any]]:
    source = ScriptedSource(demo(), without(demo(), "db-1"))
    async with QosApp(source, Scope()).run_test(size=request.param) as found:
        await settled(found)
        await press(found, "f")
        yield found


def found_in(pilot: Pilot[Any]) -> list[str]:
    return [row.name for row in pilot.app.screen.query_one(LineTable).rows]


def chosen(pilot: Pilot[Any]) -> str:
    row = pilot.app.screen.query_one(LineTable).row
    assert row is not None
    return str(row.name)


async def test_everything_is_there_before_something_is_typed(pilot: Pilot[Any]) -> None:
    assert isinstance(pilot.app.screen, Finder)
    assert found_in(pilot) == ALL
    assert isinstance(pilot.app.focused, Input)
    assert "api-7d9c5b6f8-x2mzq" in screen_text(pilot)


async def test_typing_chooses_and_enter_goes_to_the_pod_on_its_node(pilot: Pilot[Any]) -> None:
    await press(pilot, "ctrl+n", "down")
    assert chosen(pilot) == ALL[2]
    await type_text(pilot, "db-1")
    assert chosen(pilot) == "db-1", "what is typed begins at the best again"
    assert "db-1" in screen_text(pilot)
    await press(pilot, "enter")
    assert isinstance(pilot.app.screen, MainScreen)
    row = next(row for row in build_rows(demo(), Scope()).rows if row.name == "db-1")
    screen = main_of(pilot)
    assert screen.view == View(node=row.node)
    assert screen.table.row == row
    assert screen.focused is screen.table
    await press(pilot, "left_square_bracket")
    assert screen.view == View()


async def test_the_arrows_move_through_what_is_found(pilot: Pilot[Any]) -> None:
    await type_text(pilot, "db-")
    assert found_in(pilot)[:3] == ["db-0", "db-1", "db-2"]
    await press(pilot, "down", "ctrl+n", "up", "ctrl+p", "ctrl+p", "down")
    assert chosen(pilot) == "db-1"
    await press(pilot, "backspace", "backspace", "backspace")
    assert found_in(pilot) == ALL


async def test_escape_goes_nowhere(pilot: Pilot[Any]) -> None:
    await type_text(pilot, "db-1")
    await press(pilot, "escape")
    assert main_of(pilot).view == View()
    assert names(pilot) == ALL
    assert main_of(pilot).table.cursor == 0
    await press(pilot, "left_square_bracket")
    assert main_of(pilot).view == View()


async def test_nothing_found_is_said_and_enter_goes_nowhere(pilot: Pilot[Any]) -> None:
    await type_text(pilot, "zzz")
    assert "No pod has the letters of zzz." in screen_text(pilot)
    await press(pilot, "up", "down", "enter")
    assert isinstance(pilot.app.screen, MainScreen)
    assert main_of(pilot).view == View()


async def test_letters_are_letters_while_they_are_typed(pilot: Pilot[Any]) -> None:
    await type_text(pilot, "q1:/x")
    await press(pilot, "left_square_bracket", "question_mark", "space", "asterisk", "backslash")
    assert isinstance(pilot.app.screen, Finder)
    assert pilot.app.screen.query_one(Input).value == "q1:/x[? *\\"
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_the_mouse_chooses_too(pilot: Pilot[Any]) -> None:
    await pilot.click(LineTable, offset=(8, 3), times=2)
    await pilot.pause()
    assert isinstance(pilot.app.screen, MainScreen)
    row = main_of(pilot).table.row
    assert row is not None
    assert row.name == ALL[2]


async def test_a_pod_that_is_gone_meanwhile_leads_to_its_node(pilot: Pilot[Any]) -> None:
    await press(pilot, "escape")
    await press(pilot, "f")
    await type_text(pilot, "db-1")
    pilot.app.action_refresh()  # type: ignore[attr-defined]
    await until(pilot, lambda: len(main_of(pilot).table.rows) == 59)
    assert chosen(pilot) == "db-1"
    await press(pilot, "enter")
    assert main_of(pilot).view.node == "worker-1"
    assert main_of(pilot).table.cursor == 0


async def test_it_opens_from_every_list(pilot: Pilot[Any]) -> None:
    await press(pilot, "escape")
    for key in "12345":
        await press(pilot, key, "f")
        assert isinstance(pilot.app.screen, Finder)
        await type_text(pilot, "huge")
        await press(pilot, "enter")
        assert main_of(pilot).view == View(ListKind.PODS, node="")
        row = main_of(pilot).table.row
        assert row is not None
        assert row.name == "huge-0"
