from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.snapshot import Missing, Scope, Snapshot
from kubectl_qos.tui import follower
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.base import TitleLine
from tests.tui.sources import (
    ScriptedSource,
    demo,
    main_of,
    names,
    press,
    screen_text,
    settled,
    until,
    with_usage,
    without,
)

GIB = 1 << 30
UNREACHABLE = ServerUnreachable("The connection to the server 10.0.0.1:6443 was refused", hint="is it up?")


def title(pilot: Pilot[Any]) -> str:
    return str(pilot.app.screen.query_one(TitleLine).render())


async def refresh(pilot: Pilot[Any]) -> None:
    await press(pilot, "r")
    await settled(pilot)


async def test_a_refresh_re_sorts_and_the_cursor_stays_on_its_pod() -> None:
    before = demo()
    after = with_usage(before, "thumbs-", 6 * GIB)
    async with QosApp(ScriptedSource(before, after), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "j", "j")
        pods = main_of(pilot).table
        assert pods.row is not None
        held = pods.row.name
        place = names(pilot).index(held)
        await refresh(pilot)
        assert names(pilot)[0] == "thumbs-28934-d5k8p"
        assert names(pilot).index(held) == place + 1
        assert pods.row.name == held
        assert f"{held} is " in screen_text(pilot)


async def test_a_pod_that_is_gone_leaves_the_cursor_where_it_was() -> None:
    before = demo()
    async with QosApp(ScriptedSource(before, without(before, "notebook-0")), Scope()).run_test() as pilot:
        await settled(pilot)
        await press(pilot, "j", "j")
        await refresh(pilot)
        pods = main_of(pilot).table
        assert len(names(pilot)) == 59
        assert pods.cursor == 2


async def test_a_refresh_keeps_node_filter_order_and_marks() -> None:
    before = demo()
    after = with_usage(before, "thumbs-", 6 * GIB)
    async with QosApp(ScriptedSource(before, after), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "tab", "j", "j", "enter", "space", "s")
        screen = main_of(pilot)
        view, order, marked = screen.view, screen.table.sorted_by, screen.table.marked
        chosen = screen.side.nodes.row
        assert view.node == "worker-1"
        assert chosen is not None
        await refresh(pilot)
        assert (screen.view, screen.table.sorted_by, screen.table.marked) == (view, order, marked)
        assert screen.side.nodes.row is not None
        assert screen.side.nodes.row.key == "worker-1"
        assert screen.side.nodes.row.used != chosen.used


async def test_a_chosen_node_that_is_gone_gives_way_to_all_of_them() -> None:
    before = demo()
    pods = tuple(pod for pod in before.pods if pod.node_name != "worker-1")
    nodes = {name: node for name, node in before.nodes.items() if name != "worker-1"}
    source = ScriptedSource(before, replace(before, pods=pods, nodes=nodes))
    async with QosApp(source, Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "tab", "j", "j")
        assert main_of(pilot).view.node == "worker-1"
        await refresh(pilot)
        assert main_of(pilot).view.node is None
        assert len(names(pilot)) == len(pods)


async def test_an_error_keeps_the_rows_and_says_since_when_they_are_stale() -> None:
    source = ScriptedSource(demo(), UNREACHABLE, demo())
    async with QosApp(source, Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        assert "live" in title(pilot)
        source.later(60)
        await refresh(pilot)
        assert len(names(pilot)) == 60
        assert "! stale since 12:00:00 UTC" in title(pilot)
        assert "The connection to the server 10.0.0.1:6443 was refused" in screen_text(pilot)
        assert "is it up?" in screen_text(pilot)
        await refresh(pilot)
        assert "stale" not in title(pilot)
        assert "refused" not in screen_text(pilot)


async def test_a_first_failure_says_why_and_r_tries_again() -> None:
    async with QosApp(ScriptedSource(UNREACHABLE, demo()), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = screen_text(pilot)
        assert "! The connection to the server 10.0.0.1:6443 was refused" in text
        assert "is it up?" in text
        assert "r retries" in text
        assert "! no answer" in title(pilot)
        for key in ("d", "e", "c", "x", "space", "s", "S", "z", "z", "w", "n", "tab", "j", "enter"):
            await press(pilot, key)
        await refresh(pilot)
        assert len(names(pilot)) == 60


async def test_loading_says_what_is_asked_and_bears_every_key() -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Loading pods from scripted" in screen_text(pilot)
        assert "loading …" in title(pilot)
        for key in (
            "d",
            "e",
            "c",
            "x",
            "space",
            "s",
            "S",
            "z",
            "w",
            "n",
            "tab",
            "j",
            "enter",
            "G",
            "slash",
            "a",
        ):
            await press(pilot, key)
        await press(pilot, "escape", "colon", "n", "escape")
        source.hold.set()
        await settled(pilot)
        assert names(pilot)


async def test_asking_again_while_a_question_is_under_way_asks_once_more() -> None:
    source = ScriptedSource(demo(), without(demo(), "db-0"))
    source.hold.clear()
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(source.asked) == 1)
        await press(pilot, "r")
        source.hold.set()
        await until(pilot, lambda: len(names(pilot)) == 59)
        assert len(source.asked) == 2


async def test_nothing_new_is_shown_while_paused_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "BATCH_SECONDS", 0.001)
    monkeypatch.setattr(follower, "_SHARE_OF_A_CORE", 0)
    source = ScriptedSource(demo())
    source.every_seconds = 0.001
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(source.asked) > 2)
        await press(pilot, "p")
        assert "paused" in title(pilot)
        asked = []
        for _ in range(4):
            before = len(source.asked)
            await refresh(pilot)
            await until(pilot, lambda before=before: len(source.asked) > before)  # type: ignore[misc]
            asked.append(len(source.asked))
        assert asked == [*range(asked[0], asked[0] + 4)], "r asks all the same, once"
        await press(pilot, "p")
        assert "paused" not in title(pilot)
        await until(pilot, lambda: len(source.asked) > asked[-1] + 2)


async def test_the_narrower_question_is_remembered_and_said() -> None:
    refusal = ApiError("Error from server (Forbidden): pods is forbidden", status=403, reason="Forbidden")

    def own_only(scope: Scope) -> Snapshot:
        if scope.namespace is None:
            raise refusal
        return demo()

    source = ScriptedSource(own_only, default_namespace="shop")
    async with QosApp(source, Scope()).run_test(size=(120, 24)) as pilot:
        await settled(pilot)
        assert "note: only namespace shop is shown: Error from server (Forbidden)" in screen_text(pilot)
        await refresh(pilot)
        assert [scope.namespace for scope in source.asked] == [None, "shop", "shop"]


async def test_what_is_missing_is_said() -> None:
    missing = Missing("memory usage", "Metrics API not available", "install metrics-server")
    bare = replace(demo(), usage={}, missing=(missing,))
    async with QosApp(ScriptedSource(bare), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        text = screen_text(pilot)
        assert "note: memory usage is missing: Metrics API not available (install metrics-server)" in text
        assert "no usage" in title(pilot)
        assert "usage unknown" in text


async def test_a_preview_says_what_it_would_need_to_know() -> None:
    missing = Missing("the rest of these nodes' pods", "forbidden", "grant list on pods")
    source = ScriptedSource(replace(demo(), missing=(missing,)))
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "e")
        assert "note: the rest of these nodes' pods is missing: forbidden" in screen_text(pilot)


async def test_what_a_server_says_is_only_text() -> None:
    nasty = ApiError("Error from server: [bold red]x[/] \x1b[2J", status=500, hint="[/nothing]")
    async with QosApp(ScriptedSource(nasty), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "! Error from server: [bold red]x[/] \\x1b[2J" in screen_text(pilot)
        assert "[/nothing]" in screen_text(pilot)


async def test_what_is_read_once_is_not_asked_again() -> None:
    once = ScriptedSource(demo())
    once.is_live = False
    async with QosApp(once, Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "j")
        assert len(once.asked) == 1


async def test_unknown_capacity_is_said() -> None:
    async with QosApp(ScriptedSource(replace(demo(), nodes={})), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        text = screen_text(pilot)
        assert "rank unknown: the node's memory capacity is unknown" in text
        assert "3..999" in text


async def test_leaving_does_not_wait_for_a_server_that_hangs() -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    begin = time.monotonic()
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await press(pilot, "q")
    asking = [thread for thread in threading.enumerate() if thread.name == "qos-follower"]
    assert asking
    assert all(thread.daemon for thread in asking)
    assert time.monotonic() - begin < 8
    source.hold.set()
    for thread in asking:
        thread.join(10)


async def test_screens_that_do_not_follow_say_of_when_they_are() -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "v")
        assert "as of 12:00:00 UTC" in screen_text(pilot)
        await press(pilot, "escape", "e")
        assert "on worker-2, as of 12:00:00 UTC" in screen_text(pilot)
        await press(pilot, "escape")
        await refresh(pilot)


async def test_pausing_what_is_read_once_says_so() -> None:
    source = ScriptedSource(demo())
    source.is_live = False
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "p")
        said = [one.message for one in pilot.app._notifications]
        assert said == ["scripted is read once, there is nothing to pause"]
