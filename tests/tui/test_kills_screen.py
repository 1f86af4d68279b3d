"""What was killed: the list, the evidence, and how it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Missing, Scope
from kubectl_qos.present.kills import detail_lines
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens import kills
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.screens.kills import KillsScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from tests.tui.sources import (
    ScriptedSource,
    demo,
    press,
    renamed,
    settled,
    type_text,
    until,
    with_usage,
    without,
    words,
)

Run = Pilot[Any]
DEMO = ["crunch-x2k9f", "etl-28930-9xw2c", "api-7d9c5b6f8-x2mzq", "promo-7c4b-l9dk2", "search-0"]


@asynccontextmanager
async def killed(
    *before: str, source: Any = None, size: tuple[int, int] = (120, 40), ready: bool = True, **scope: Any
) -> AsyncIterator[Run]:
    """The screen, opened after these keys."""
    async with QosApp(source or DemoSource(), Scope(**scope)).run_test(size=size) as pilot:
        await settled(pilot)
        for key in (*before, "K"):
            await press(pilot, key)
        assert isinstance(pilot.app.screen, KillsScreen)
        if ready:
            await until(pilot, lambda: bool(table(pilot).rows))
        yield pilot


def table(pilot: Run) -> LineTable[Kill]:
    return pilot.app.screen.query_one(LineTable)


def pods(pilot: Run) -> list[str]:
    return [kill.pod for kill in table(pilot).rows]


def details(pilot: Run) -> list[str]:
    document = pilot.app.screen.query_one("#evidence", TextView)
    return [line.text for line in document.text_lines(document.content_size.width)]


async def seen(pilot: Run, text: str) -> None:
    await until(pilot, lambda: text in words(pilot))


async def test_the_newest_is_first_with_its_mechanism_and_how_sure_that_is() -> None:
    async with killed() as pilot:
        assert pods(pilot) == DEMO
        text = words(pilot)
        assert "2026-11-20T09:36:00Z batch crunch-x2k9f c node likely worker-2 137" in text
        assert "likely: killed by the kernel because the node ran out of memory" in text
        assert "event SystemOOM of Node/worker-2: System OOM encountered" in text
        assert "to be certain: the kernel log of worker-2: kubectl qos kills --kernel-log" in text


async def test_the_details_are_those_of_the_command() -> None:
    source = DemoSource()
    kills = find_kills(source.snapshot(Scope()), source.event_list(None))
    async with killed(size=(200, 60)) as pilot:
        for kill in kills:
            width = pilot.app.screen.query_one(TextView).content_size.width
            assert [line for line in details(pilot) if line] == [
                line for line in detail_lines(kill, width) if line
            ]
            await press(pilot, "down")


async def test_what_is_long_is_broken_where_the_terminal_is_narrow() -> None:
    async with killed(size=(80, 24)) as pilot:
        document = pilot.app.screen.query_one(TextView)
        assert all(len(line) <= document.content_size.width for line in details(pilot))
        assert len(details(pilot)) > len(list(detail_lines(table(pilot).rows[0])))
        await press(pilot, "tab", "end")
        assert "--kernel-log worker-2=FILE" in words(pilot)


async def test_a_pod_that_lives_is_explained() -> None:
    async with killed() as pilot:
        await press(pilot, "down")
        for how in ("d", "enter", "double click"):
            if how == "double click":
                await pilot.click(LineTable, offset=(9, 2 + HEADER), times=2)
            else:
                await press(pilot, how)
            assert isinstance(pilot.app.screen, ExplainScreen)
            assert "pod batch/etl-28930-9xw2c" in words(pilot)
            await press(pilot, "escape")
            assert table(pilot).row is table(pilot).rows[1]
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_a_pod_that_is_gone_meanwhile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with killed() as pilot:
        monkeypatch.setattr("kubectl_qos.tui.screens.kills.pod_named", lambda *_: None)
        await press(pilot, "enter")
        await until(pilot, lambda: [one.message for one in pilot.app._notifications] == ["that pod is gone"])
        assert isinstance(pilot.app.screen, KillsScreen)


async def test_it_is_of_the_namespace_of_the_list() -> None:
    source = ScriptedSource(demo())
    async with killed("2", "enter", source=source) as pilot:
        assert "what was killed in namespace shop" in words(pilot)
        assert pods(pilot) == ["api-7d9c5b6f8-x2mzq", "promo-7c4b-l9dk2", "search-0"]
        assert source.asked_what_happened == ["shop"]


async def test_it_is_of_the_node_of_the_list() -> None:
    source = ScriptedSource(demo())
    async with killed("1", "j", "enter", source=source) as pilot:
        assert "what was killed on worker-1" in words(pilot)
        assert pods(pilot) == ["etl-28930-9xw2c", "promo-7c4b-l9dk2"]
        assert source.asked_what_happened == [None]
        await press(pilot, "escape", "1", "K")
        await until(pilot, lambda: pods(pilot) == DEMO)


async def test_it_is_of_the_pods_that_were_asked_for() -> None:
    source = ScriptedSource(demo())
    async with killed(source=source, namespace="batch") as pilot:
        assert pods(pilot) == ["crunch-x2k9f", "etl-28930-9xw2c"]
        assert source.asked_what_happened == ["batch"]


async def test_the_place_leads_there_too() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "colon")
        await type_text(pilot, "kills")
        await press(pilot, "enter")
        await until(pilot, lambda: pods(pilot) == DEMO)


async def test_while_it_reads_it_says_so_and_an_answer_after_leaving_does_nothing() -> None:
    source = ScriptedSource(demo())
    source.hold_happenings.clear()
    async with killed(source=source, ready=False) as pilot:
        assert "Reading …" in words(pilot)
        await press(pilot, "enter", "d", "c", "n", "tab", "down", "r")
        assert isinstance(pilot.app.screen, KillsScreen)
        await press(pilot, "escape")
        source.hold_happenings.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)


async def test_nothing_says_what_would_show_and_how_to_give_a_kernel_log() -> None:
    async with killed("2", "G", "enter", ready=False) as pilot:
        await seen(pilot, "No kills found that memory may explain in team-a namespace.")
        text = words(pilot)
        assert "New kills appear here" in text
        assert "kubectl qos kills --kernel-log NODE=FILE" in text
        for key in ("enter", "d", "c", "n", "tab", "down"):
            await press(pilot, key)
        assert isinstance(pilot.app.screen, KillsScreen)


async def test_reading_again_asks_again_and_keeps_what_was_read_if_that_fails() -> None:
    source = ScriptedSource(demo())
    async with killed(source=source) as pilot:
        source.happened = ServerUnreachable("no [route]\x1b", hint="look at the network")
        await press(pilot, "down", "r")
        await seen(pilot, "! no [route]\\x1b")
        assert "look at the network" in words(pilot)
        assert pods(pilot) == DEMO
        source.happened = EventList(DemoSource().event_list(None).events)
        await press(pilot, "r")
        await until(pilot, lambda: "no [route]" not in words(pilot))
        assert table(pilot).row is table(pilot).rows[1]
        assert len(source.asked_what_happened) == 3
        await press(pilot, "g")
        await seen(pilot, "event SystemOOM of Node/worker-2")


async def test_a_first_reading_that_fails_says_so() -> None:
    source = ScriptedSource(demo())
    source.happened = ApiError("events is forbidden", status=403, reason="Forbidden")
    async with killed(source=source, ready=False) as pilot:
        await seen(pilot, "! events is forbidden")
        assert "Reading …" not in words(pilot)


async def test_without_the_right_to_see_events_a_note_says_so() -> None:
    source = ScriptedSource(demo())
    missing = Missing("the list of events", "events is [forbidden]\x1b", "grant list on events")
    source.happened = EventList(of_nodes=False, missing=missing)
    async with killed(source=source, size=(80, 24)) as pilot:
        assert pods(pilot) == DEMO
        assert "the list of events is missing: events is [forbidden]\\x1b" in words(pilot)
        assert "(n: 1 note)" in words(pilot)
        await press(pilot, "n")
        lines = pilot.app.screen.query_one(TextView).text_lines(60)
        assert "(grant list on events)" in " ".join(line.text.strip() for line in lines)


async def test_other_pods_are_followed_without_asking_again() -> None:
    source = ScriptedSource(demo())
    async with killed(source=source) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        view_model = app.view_model
        await press(pilot, "down")
        app.view_model = replace(view_model, snapshot=without(demo(), "crunch-"))
        await until(pilot, lambda: pods(pilot) == DEMO[1:])
        assert table(pilot).cursor == 0
        assert len(source.asked_what_happened) == 1


async def test_other_usage_is_nothing_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    read = kills.load_kills

    def counted(*arguments: Any) -> tuple[EventList, Sequence[Kill]]:
        asked.append(arguments)
        return read(*arguments)

    monkeypatch.setattr("kubectl_qos.tui.screens.kills.load_kills", counted)
    async with killed(source=ScriptedSource(demo())) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        app.view_model = replace(app.view_model, snapshot=with_usage(app.view_model.snapshot, "crunch-", 5))
        await pilot.pause()
        assert len(asked) == 1


async def test_what_comes_while_it_reads_is_looked_at_next() -> None:
    source = ScriptedSource(demo())
    source.hold_happenings.clear()
    async with killed(source=source, ready=False) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        app.view_model = replace(app.view_model, snapshot=without(demo(), "crunch-"))
        await pilot.pause()
        source.hold_happenings.set()
        await until(pilot, lambda: pods(pilot) == DEMO[1:])


async def test_what_should_not_happen_in_the_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> list[Kill]:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(kills, "find_kills", broken)
    async with killed(ready=False) as pilot:
        await seen(pilot, "! unexpected ZeroDivisionError: no")


async def test_tab_goes_to_the_evidence_which_scrolls() -> None:
    async with killed(size=(80, 15)) as pilot:
        await press(pilot, "tab", "down", "down")
        scroll = pilot.app.screen.query_one(TextScroll)
        assert scroll.has_focus
        assert scroll.scroll_offset.y == 2
        await press(pilot, "shift+tab", "down")
        assert table(pilot).cursor == 1


async def test_names_are_only_text() -> None:
    source = ScriptedSource(renamed(demo(), "crunch-", "[b]x\x1b[31m"))
    async with killed(source=source) as pilot:
        assert "[b]x\\x1b[31m" in words(pilot)
        assert "pod batch/[b]x\\x1b[31m, container c on worker-2" in words(pilot)


async def test_copy_has_every_death_with_its_evidence() -> None:
    async with killed() as pilot:
        await press(pilot, "c")
        text = pilot.app.clipboard
        assert text.startswith("pod batch/crunch-x2k9f, container c on worker-2\n")
        assert all(f"/{name}, container c" in text for name in DEMO)
        assert text.count("to be certain: ") == len(DEMO)
