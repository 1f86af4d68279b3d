"""What was killed: the list, the evidence, and how it is read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.errors import ServerUnreachable
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
from tests.tui.sources import Run, ScriptedSource, demo, renamed, running, with_usage, without

DEMO = ["crunch-x2k9f", "etl-28930-9xw2c", "api-7d9c5b6f8-x2mzq", "promo-7c4b-l9dk2", "search-0"]


@asynccontextmanager
async def killed(
    *before: str,
    source: Any = None,
    size: tuple[int, int] = (120, 40),
    ready: bool = True,
    scope: Scope | None = None,
) -> AsyncIterator[Run]:
    """The screen, opened after these keys."""
    async with running(source or DemoSource(), size=size, scope=scope) as pilot:
        for key in (*before, "K"):
            await pilot.keys(key)
        assert isinstance(pilot.app.screen, KillsScreen)
        if ready:
            await pilot.until(lambda: bool(table(pilot).rows))
        yield pilot


def table(pilot: Run) -> LineTable[Kill]:
    return pilot.app.screen.query_one(LineTable)


def pods(pilot: Run) -> list[str]:
    return [kill.pod for kill in table(pilot).rows]


def details(pilot: Run) -> list[str]:
    document = pilot.app.screen.query_one("#evidence", TextView)
    return [line.text for line in document.text_lines(document.content_size.width)]


async def test_the_details_are_those_of_the_command_and_pods_are_explained() -> None:
    source = DemoSource()
    kills = find_kills(source.snapshot(Scope()), source.event_list(None))
    async with killed(size=(220, 60)) as pilot:
        for kill in kills:
            width = pilot.app.screen.query_one(TextView).content_size.width
            assert [line for line in details(pilot) if line] == [
                line for line in detail_lines(kill, width) if line
            ]
            await pilot.keys("down")
        # Copy has every death with its evidence.
        await pilot.keys("g")
        await pilot.keys("c")
        text = pilot.app.clipboard
        assert text.startswith("pod batch/crunch-x2k9f, container c on worker-2\n")
        assert all(f"/{name}, container c" in text for name in DEMO)
        assert text.count("to be certain: ") == len(DEMO)
        await pilot.keys("n")
        assert pilot.notifications[-1] == "everything was read, except kernel logs"
        await pilot.keys("l")
        await pilot.seen("last lines of container c of pod batch/crunch-x2k9f, OOMKilled")
        await pilot.seen("! demo has no logs of containers")
        await pilot.keys("q")
        # A pod that lives is explained.
        await pilot.keys("g")
        await pilot.keys("down")
        for how in ("d", "enter", "double click"):
            if how == "double click":
                await pilot.click(LineTable, offset=(9, 2 + HEADER), times=2)
            else:
                await pilot.keys(how)
            assert isinstance(pilot.app.screen, ExplainScreen)
            assert "pod batch/etl-28930-9xw2c" in pilot.words
            await pilot.keys("escape")
            assert table(pilot).row is table(pilot).rows[1]
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_what_is_long_is_broken_and_tab_goes_to_it() -> None:
    async with killed(size=(80, 24)) as pilot:
        document = pilot.app.screen.query_one(TextView)
        assert all(len(line) <= document.content_size.width for line in details(pilot))
        assert len(details(pilot)) > len(list(detail_lines(table(pilot).rows[0])))
        await pilot.keys("tab", "end")
        assert "--kernel-log worker-2=FILE" in pilot.words
        # Tab goes to the evidence which scrolls.
        await pilot.keys("home", "tab")
        await pilot.resize_terminal(80, 15)
        await pilot.keys("tab", "down", "down")
        scroll = pilot.app.screen.query_one(TextScroll)
        assert scroll.has_focus
        assert scroll.scroll_offset.y == 2
        await pilot.keys("shift+tab", "down")
        assert table(pilot).cursor == 1


async def test_fixes_are_those_of_the_workload_also_of_a_pod_that_is_gone() -> None:
    async with killed() as pilot:
        kill = next(kill for kill in table(pilot).rows if kill.pod == "api-7d9c5b6f8-x2mzq")
        for name in (kill.pod, "api-7d9c5b6f8-00000"):
            table(pilot).load([structs.replace(kill, pod=name)], table(pilot)._fitting, DEMO_TIME)
            await pilot.keys("F")
            await pilot.seen("shop/deployment/api")
            await pilot.keys("escape")
        assert pilot.notifications == [f"{name} is gone; 2 pods of deployment/api run"]
        table(pilot).load([structs.replace(kill, pod="gone-0")], table(pilot)._fitting, DEMO_TIME)
        await pilot.keys("F")
        assert pilot.notifications[-1] == "gone-0 is gone; 0 pods of its workload run"
        # A single pod that was killed and has ended is as if it ran again, wherever it is listed.
        await pilot.keys("escape")
        await pilot.filter_by("etl-28930")
        await pilot.keys("F")
        await pilot.seen("400Mi")
        assert len(pilot.notifications) == 2
        await pilot.keys("escape")
        # The first fix may be of another pod, whose death is the node's nearest: enter is not of that.
        await pilot.keys("escape")
        await pilot.filter_by("notebook-0")
        await pilot.keys("F")
        await pilot.seen("known from")
        fixes = pilot.app.screen.query_one(LineTable)
        assert fixes.rows[0].pod.name == "importer-5f7b9c-2vtxk"
        assert fixes.rows[fixes.cursor].pod.name == "notebook-0"


async def test_a_fix_that_is_taken_is_edited() -> None:
    async with killed() as pilot:
        await pilot.keys(*["down"] * pods(pilot).index("api-7d9c5b6f8-x2mzq"), "F")
        await pilot.seen("shop/deployment/api")
        await pilot.keys("enter")
        await pilot.seen("edit pod shop/api-7d9c5b6f8-")


async def test_a_pod_that_is_gone_meanwhile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with killed() as pilot:
        monkeypatch.setattr("kubectl_qos.tui.screens.kills.pod_named", lambda *_: None)
        await pilot.keys("enter")
        await pilot.until(lambda: pilot.notifications == ["that pod is gone"])
        assert isinstance(pilot.app.screen, KillsScreen)


@pytest.mark.parametrize(
    ("before", "scope", "sentence", "killed_pods", "request_of"),
    [
        (("2", "enter"), Scope(), "what was killed in namespace shop", DEMO[2:], "shop"),
        (("1", "j", "enter"), Scope(), "what was killed on worker-1", [DEMO[1], DEMO[3]], None),
        ((), Scope(namespace="batch"), "what was killed in namespace batch", DEMO[:2], "batch"),
    ],
)
async def test_it_is_of_what_the_list_shows(
    before: tuple[str, ...], scope: Scope, sentence: str, killed_pods: list[str], request_of: str | None
) -> None:
    source = ScriptedSource(demo())
    async with killed(*before, source=source, scope=scope) as pilot:
        assert sentence in pilot.words
        assert pods(pilot) == killed_pods
        assert source.event_list_requests == [request_of]
        if scope.namespace is None:
            await pilot.keys("escape", "1")
            await pilot.go_to("kills")
            await pilot.until(lambda: pods(pilot) == DEMO)


async def test_while_it_reads_it_says_so_and_an_answer_after_leaving_does_nothing() -> None:
    source = ScriptedSource(demo())
    source.hold_event_list.clear()
    async with killed(source=source, ready=False) as pilot:
        assert "Reading …" in pilot.words
        await pilot.keys("enter", "d", "c", "n", "tab", "down", "r")
        assert isinstance(pilot.app.screen, KillsScreen)
        await pilot.keys("escape")
        source.hold_event_list.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)


async def test_nothing_says_what_would_show_and_how_to_give_a_kernel_log() -> None:
    async with killed("2", "G", "enter", ready=False) as pilot:
        await pilot.seen("No OOM kills or evictions found in team-a namespace.")
        text = pilot.words
        assert "New kills appear here" in text
        assert "kubectl qos kills --kernel-log NODE=FILE" in text
        assert "d explain" not in text
        for key in ("enter", "d", "c", "n", "tab", "down"):
            await pilot.keys(key)
        assert isinstance(pilot.app.screen, KillsScreen)


async def test_reading_again_requests_again_and_keeps_what_was_read_if_that_fails() -> None:
    source = ScriptedSource(demo())
    async with killed(source=source) as pilot:
        source.listed_events = ServerUnreachable("no [route]\x1b", hint="look at the network")
        await pilot.keys("down", "r")
        await pilot.seen("! no [route]\\x1b")
        assert "look at the network" in pilot.words
        assert pods(pilot) == DEMO
        source.listed_events = EventList(DemoSource().event_list(None).events)
        await pilot.keys("r")
        await pilot.until(lambda: "no [route]" not in pilot.words)
        assert table(pilot).row is table(pilot).rows[1]
        assert len(source.event_list_requests) == 3
        await pilot.keys("g")
        await pilot.seen("event SystemOOM of Node/worker-2")


async def test_without_the_right_to_see_events_a_note_says_so() -> None:
    source = ScriptedSource(demo())
    missing = Missing("the list of events", "events is [forbidden]\x1b", "grant list on events")
    source.listed_events = EventList(of_nodes=False, missing=missing)
    async with killed(source=source, size=(80, 24)) as pilot:
        assert pods(pilot) == DEMO
        assert "the list of events is missing: events is [forbidden]\\x1b" in pilot.words
        assert "(n: 1 note)" in pilot.words
        await pilot.keys("n")
        lines = pilot.app.screen.query_one(TextView).text_lines(60)
        assert "(grant list on events)" in " ".join(line.text.strip() for line in lines)


async def test_other_pods_are_followed_without_a_request() -> None:
    source = ScriptedSource(demo())
    async with killed(source=source) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        view_model = app.view_model
        await pilot.keys("down")
        app.view_model = replace(view_model, snapshot=without(demo(), "crunch-"))
        await pilot.until(lambda: pods(pilot) == DEMO[1:])
        assert table(pilot).cursor == 0
        assert len(source.event_list_requests) == 1


async def test_with_other_usage_ages_move_and_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[object] = []
    read = kills.load_kills

    def counted(*arguments: Any) -> kills.Loaded:
        requested.append(arguments)
        return read(*arguments)

    monkeypatch.setattr("kubectl_qos.tui.screens.kills.load_kills", counted)
    source = ScriptedSource(demo())
    async with killed(source=source) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        source.later(10 * 86400)
        app.view_model = replace(app.view_model, snapshot=with_usage(app.view_model.snapshot, "crunch-", 5))
        await pilot.until(lambda: len(re.findall(r" 10d\b.* worker-", pilot.text)) == len(DEMO))
        assert len(requested) == 1


async def test_what_comes_while_it_reads_is_looked_at_next() -> None:
    source = ScriptedSource(demo())
    source.hold_event_list.clear()
    async with killed(source=source, ready=False) as pilot:
        app = pilot.app
        assert isinstance(app, QosApp)
        assert app.view_model is not None
        app.view_model = replace(app.view_model, snapshot=without(demo(), "crunch-"))
        await pilot.pause()
        source.hold_event_list.set()
        await pilot.until(lambda: pods(pilot) == DEMO[1:])


async def test_what_should_not_happen_in_the_thread_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> list[Kill]:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(kills, "find_kills", broken)
    async with killed(ready=False) as pilot:
        await pilot.seen("! unexpected ZeroDivisionError: no")


async def test_names_are_only_text() -> None:
    source = ScriptedSource(renamed(demo(), "crunch-", "[b]x\x1b[31m"))
    async with killed(source=source) as pilot:
        assert "[b]x\\x1b[31m" in pilot.words
        assert "pod batch/[b]x\\x1b[31m, container c on worker-2" in pilot.words
