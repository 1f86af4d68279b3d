"""The pod switcher and the columns of a list, chosen with keys and mouse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.widgets import Input

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.search import ColumnsScreen, Finder
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.line_table import LineTable
from tests.tui.sources import Run, ScriptedSource, demo, running, without

ALL = [row.name for row in build_rows(demo(), Scope()).rows]


@pytest.fixture
async def pilot() -> AsyncIterator[Run]:
    source = ScriptedSource(demo(), without(demo(), "db-1"))
    async with running(source, "f", size=(80, 24)) as found:
        yield found


def found_in(pilot: Run) -> list[str]:
    return [row.name for row in pilot.app.screen.query_one(LineTable).rows]


def chosen(pilot: Run) -> str:
    row = pilot.app.screen.query_one(LineTable).row
    assert row is not None
    return str(row.name)


async def test_a_choice_leads_to_the_pod_on_its_node(pilot: Run) -> None:
    await pilot.keys("ctrl+n", "down")
    assert chosen(pilot) == ALL[2]
    await pilot.type("db-1")
    assert chosen(pilot) == "db-1", "what is typed begins at the best again"
    assert "db-1" in pilot.text
    await pilot.keys("enter")
    assert isinstance(pilot.app.screen, MainScreen)
    row = next(row for row in build_rows(demo(), Scope()).rows if row.name == "db-1")
    screen = pilot.main
    assert screen.view == View(node=row.node)
    assert screen.table.row == row
    assert screen.focused is screen.table
    await pilot.keys("left_square_bracket")
    assert screen.view == View()
    # It opens from every list.
    await pilot.keys("escape")
    for key in "12345":
        await pilot.keys(key, "f")
        assert isinstance(pilot.app.screen, Finder)
        await pilot.type("huge")
        await pilot.keys("enter")
        assert pilot.main.view == View(ListKind.PODS, node="")
        row = pilot.main.table.row
        assert row is not None
        assert row.name == "huge-0"


async def test_the_best_is_chosen_among_what_is_found_and_escape_goes_nowhere(pilot: Run) -> None:
    await pilot.type("db-")
    assert found_in(pilot)[:3] == ["db-0", "db-1", "db-2"]
    await pilot.keys("down", "ctrl+n", "up", "ctrl+p", "ctrl+p", "down")
    assert chosen(pilot) == "db-1"
    await pilot.keys("backspace", "backspace", "backspace")
    assert found_in(pilot) == ALL
    # Escape goes nowhere.
    await pilot.type("db-1")
    await pilot.keys("escape")
    assert pilot.main.view == View()
    assert sorted(pilot.names) == sorted(ALL)
    assert pilot.main.table.cursor == 0
    await pilot.keys("left_square_bracket")
    assert pilot.main.view == View()
    # Letters are letters while they are typed.
    await pilot.keys("f")
    await pilot.type("q1:/x")
    await pilot.keys("left_square_bracket", "question_mark", "space", "asterisk", "backslash")
    assert isinstance(pilot.app.screen, Finder)
    assert pilot.app.screen.query_one(Input).value == "q1:/x[? *\\"
    await pilot.keys("escape")
    assert isinstance(pilot.app.screen, MainScreen)
    # Nothing found is said and enter goes nowhere.
    await pilot.keys("f")
    await pilot.type("zzz")
    assert "No pod matches zzz." in pilot.text
    await pilot.keys("up", "down", "enter")
    assert isinstance(pilot.app.screen, MainScreen)
    assert pilot.main.view == View()
    # The mouse chooses too.
    await pilot.keys("f")
    await pilot.click(LineTable, offset=(8, 3), times=2)
    await pilot.pause()
    assert isinstance(pilot.app.screen, MainScreen)
    row = pilot.main.table.row
    assert row is not None
    assert row.name == ALL[2]


async def test_the_palette_says_in_full_what_its_column_cuts() -> None:
    async with running(size=(80, 24)) as found:
        await found.keys("ctrl+p", "down")
        await found.seen("─ change requests and limits, with a preview ─")
        await found.keys("up")
        assert "─ why this class" not in found.words


async def test_a_pod_that_is_gone_meanwhile_leads_to_its_node(pilot: Run) -> None:
    await pilot.keys("escape")
    await pilot.keys("f")
    await pilot.type("db-1")
    pilot.app.action_refresh()  # type: ignore[attr-defined]
    await pilot.until(lambda: len(pilot.main.table.rows) == 59)
    assert chosen(pilot) == "db-1"
    await pilot.keys("enter")
    assert pilot.main.view.node == "worker-1"
    assert pilot.main.table.cursor == 0


@pytest.fixture
async def listing() -> AsyncIterator[Run]:
    async with running() as found:
        yield found


def shown(listing: Run) -> list[str]:
    """The columns of the list."""
    return [column.key for column in listing.main.table.columns.columns]


def dialog(listing: Run) -> LineTable[Any]:
    assert isinstance(listing.app.screen, ColumnsScreen)
    return listing.app.screen.query_one(LineTable)


def choices(listing: Run) -> list[tuple[str, bool]]:
    return [(choice.column.key, choice.shown) for choice in dialog(listing).rows]


async def test_those_that_are_shown_come_first_then_all_others(listing: Run) -> None:
    for key in "12345":
        await listing.keys(key)
        await listing.listed()
        columns, known = shown(listing), list(listing.main.definition.columns)
        await listing.keys("C")
        assert choices(listing) == [
            *((key, True) for key in columns),
            *((key, False) for key in known if key not in columns),
        ]
        assert dialog(listing).has_focus
        text = listing.text
        assert "WHAT IT SAYS" in text
        assert listing.main.definition.columns[columns[0]].header in text
        await listing.keys("enter")
        assert shown(listing) == columns, "taken as they are"
        await listing.keys("C", "d")


async def test_columns_are_hidden_moved_and_given_back(listing: Run) -> None:
    before = shown(listing)
    assert before[2] == "pod"
    await listing.keys("C", "space", "space", "space")
    assert dialog(listing).cursor == 3
    assert [key for key, is_shown in choices(listing) if is_shown] == before[2:], "POD has to stay"
    assert listing.notifications[-1] == "POD is always shown"
    await listing.keys("home", "space", "enter")
    assert isinstance(listing.app.screen, MainScreen)
    assert shown(listing) == [before[0], before[2], *before[3:]]
    assert len(listing.names) == 60
    # A column is moved and the cursor stays on it.
    await listing.keys("C", "d")
    before = shown(listing)
    await listing.keys("C", "J", "J", "J", "K")
    row = dialog(listing).row
    assert row is not None
    assert row.column.key == before[0]
    assert dialog(listing).cursor == 2
    await listing.keys("g", "K", "G", "J")
    assert [key for key, _ in choices(listing)[:4]] == [before[1], before[2], before[0], before[3]]
    await listing.keys("enter")
    assert shown(listing)[:4] == [before[1], before[2], before[0], before[3]]
    # Escape leaves all as it was and d gives up the choice.
    await listing.keys("C", "d")
    before = shown(listing)
    await listing.keys("C", "space", "J", "escape")
    assert shown(listing) == before
    await listing.keys("C", "space", "enter")
    assert shown(listing) == before[1:]
    await listing.keys("C", "d")
    assert shown(listing) == before
    # A double click takes them.
    await listing.keys("C", "d")
    before = shown(listing)
    await listing.keys("C", "space")
    await listing.click(LineTable, offset=(4, 2), times=2)
    await listing.pause()
    assert isinstance(listing.app.screen, MainScreen)
    assert shown(listing) == before[1:]


async def test_the_choice_stays_through_a_refresh_and_is_of_one_list(listing: Run) -> None:
    before = shown(listing)
    await listing.keys("C", "G", "space", "enter")
    assert shown(listing) == [*before, "eta"]
    await listing.refresh()
    assert shown(listing) == [*before, "eta"]
    await listing.keys("w")
    assert "restarts" in shown(listing), "wide gives up the choice"
    await listing.keys("w")
    assert shown(listing) == before
    # Each list has its own columns.
    await listing.keys("C", "space", "enter")
    pods = shown(listing)
    await listing.keys("3")
    await listing.listed()
    workloads = shown(listing)
    await listing.keys("C", "j", "j", "space", "enter")
    assert shown(listing) == [*workloads[:2], *workloads[3:]]
    await listing.keys("4")
    assert shown(listing) == pods
    # A click on the header changes nothing.
    await listing.keys("C", "d")
    await listing.keys("C")
    rows = choices(listing)
    for _ in range(2):
        await listing.click(LineTable, offset=(4, 0))
        await listing.pause()
        assert choices(listing) == rows
    await listing.keys("space")
    assert choices(listing) == [(rows[0][0], False), *rows[1:]]


async def test_a_narrow_dialog_leaves_keys_out_as_a_whole_and_keeps_the_one_that_closes_it() -> None:
    async with running(None, "C", size=(60, 15)) as pilot:
        assert "enter take space show or hide J down esc cancel" in pilot.words
        await pilot.resize_terminal(80, 24)
        await pilot.settled()
        assert "J down K up d default esc cancel" in pilot.words
