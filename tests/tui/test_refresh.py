"""What the first screen shows when facts change, are late, or do not come."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.color import ColorSystem
from textual._compositor import LayoutUpdate

from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.tui.screens.base import TitleLine
from kubectl_qos.tui.widgets.line_table import LineTable
from tests.tui.sources import Run, ScriptedSource, demo, running, with_usage, without

GIB = 1 << 30
UNREACHABLE = ServerUnreachable("The connection to the server 10.0.0.1:6443 was refused", hint="is it up?")
MORE = with_usage(demo(), "thumbs-", 6 * GIB)
KEYS = ("d", "e", "c", "x", "space", "s", "S", "z", "z", "w", "n", "tab", "j", "enter", "G")


def title(pilot: Run) -> str:
    return str(pilot.app.screen.query_one(TitleLine).render())


async def test_a_refresh_re_sorts_and_the_cursor_stays_on_its_pod() -> None:
    more = with_usage(demo(), "report-cron-", 6 * GIB)
    source = ScriptedSource(demo(), more, without(more, "crunch-"))
    async with running(source, "j", "j") as pilot:
        pods = pilot.main.table
        assert pods.row is not None
        held = pods.row.name
        place = pilot.names.index(held)
        await pilot.refresh()
        assert pilot.names[0] == "report-cron-28934-lw4pz"
        assert pilot.names.index(held) == place + 1
        assert pods.row.name == held
        assert f"ml/{held}:c dies at " in pilot.text
        await pilot.keys("k")
        place = pods.cursor
        assert pods.row.name == "crunch-x2k9f"
        await pilot.refresh()
        assert len(pilot.names) == 59
        assert pods.cursor == place, "a pod that is gone leaves the cursor where it was"


async def test_the_age_of_the_usage_is_the_last_word_that_the_title_gives_up() -> None:
    source = ScriptedSource(demo())
    source.title = "/tmp/a-rather-long-folder/recorded-yesterday-evening"
    source.moment += timedelta(days=5)
    async with running(source, size=(70, 24)) as pilot:
        assert title(pilot).startswith("kubectl qos  /tmp/a-rather")
        assert " usage 5d old " in title(pilot)
        assert "note: memory usage is from the metrics API, 5d old: growth since" in pilot.text


async def test_a_refresh_keeps_node_filter_order_and_marks() -> None:
    async with running(ScriptedSource(demo(), MORE), "tab", "j", "j", "enter", "space", "s") as pilot:
        screen = pilot.main
        view, order, marked = screen.view, screen.table.sorted_by, screen.table.marked
        chosen = screen.side.nodes.row
        assert view.node == "worker-1"
        assert chosen is not None
        await pilot.refresh()
        assert (screen.view, screen.table.sorted_by, screen.table.marked) == (view, order, marked)
        assert screen.side.nodes.row is not None
        assert screen.side.nodes.row.key == "worker-1"
        assert screen.side.nodes.row.used != chosen.used


async def test_a_refresh_renews_the_fixes_and_the_cursor_stays_on_its_fix() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), "importer-", 117 << 20))
    async with running(source, "F") as pilot:
        await pilot.seen("own limit 98%: +2Mi")
        fixes = pilot.app.screen.query_one(LineTable)
        await pilot.keys("j")
        before = fixes.row
        pilot.qos.action_refresh()
        await pilot.until(lambda: fixes.row is not before)
        assert fixes.row is not None
        assert before is not None
        assert fixes.row.pod.name == before.pod.name
        assert "as of" not in pilot.text


async def test_a_refresh_that_moves_no_line_lays_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    little = with_usage(demo(), "prometheus-", 2 << 20)
    async with running(ScriptedSource(demo(), little), size=(120, 40), painted=True) as pilot:
        app, shown = pilot.qos, []
        app._output.write(app.screen._compositor.render_full_update(), ColorSystem.TRUECOLOR)
        monkeypatch.setattr(app, "_display", lambda _, update: shown.append(update))
        before = pilot.text
        await pilot.refresh()
        assert pilot.text != before
        updates = [update for update in shown if update is not None]
        assert not [update for update in updates if isinstance(update, LayoutUpdate)]
        written = sum(len(app._output.write(update, ColorSystem.TRUECOLOR)) for update in updates)
        assert 0 < written < 3_000


async def test_a_chosen_node_that_is_gone_gives_way_to_all_of_them() -> None:
    pods = tuple(pod for pod in demo().pods if pod.node_name != "worker-1")
    nodes = {name: node for name, node in demo().nodes.items() if name != "worker-1"}
    async with running(ScriptedSource(demo(), replace(demo(), pods=pods, nodes=nodes))) as pilot:
        await pilot.go_to("node worker-1")
        assert pilot.main.view.node == "worker-1"
        await pilot.refresh()
        assert pilot.main.view.node is None
        assert len(pilot.names) == len(pods)
        assert pilot.notifications == ["worker-1 is gone: all nodes are shown"]


async def test_a_namespace_whose_pods_are_all_replaced_stays_chosen() -> None:
    others = replace(demo(), pods=tuple(pod for pod in demo().pods if pod.namespace != "ml"))
    async with running(ScriptedSource(demo(), others, demo())) as pilot:
        await pilot.go_to("ns ml")
        assert len(pilot.names) == 7
        await pilot.refresh()
        assert pilot.main.view.namespace == "ml", "not the pods of everybody, under the same keys"
        assert pilot.names == []
        assert "There are no pods in namespace ml. tab goes to other panes." in pilot.text
        await pilot.refresh()
        assert len(pilot.names) == 7


async def test_an_error_keeps_the_rows_and_goes_with_the_next_answer() -> None:
    source = ScriptedSource(demo(), UNREACHABLE, demo())
    async with running(source) as pilot:
        source.later(60)
        await pilot.refresh()
        assert len(pilot.names) == 60
        assert "! stale since 12:00:00 UTC" in title(pilot)
        assert "The connection to the server 10.0.0.1:6443 was refused" in pilot.text
        assert "is it up?" in pilot.text
        await pilot.refresh()
        assert "stale" not in title(pilot)
        assert "refused" not in pilot.text


async def test_a_first_failure_is_only_text_and_r_tries_again() -> None:
    nasty = ApiError("Error from server: [bold red]x[/] \x1b[2J", status=500, hint="[/nothing]")
    async with running(ScriptedSource(nasty, demo()), size=(80, 24)) as pilot:
        assert "! Error from server: [bold red]x[/] \\x1b[2J" in pilot.text
        assert "[/nothing]" in pilot.text
        assert "! no answer" in title(pilot)
        await pilot.seen(" : go to ? help q quit")
        assert "explain" not in pilot.words, "the footer has only what works"
        await pilot.keys(*KEYS)
        await pilot.refresh()
        assert len(pilot.names) == 60
        await pilot.seen(" d explain e edit ")


async def test_loading_says_so_and_bears_every_key() -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with running(source, size=(80, 24), ready=False) as pilot:
        await pilot.pause()
        assert "loading …" in title(pilot)
        await pilot.keys(*KEYS, "slash", "a", "escape", "colon", "n", "escape")
        source.hold.set()
        await pilot.settled()
        assert pilot.names
        assert "live" in title(pilot)
        source.hold.clear()
        await pilot.keys("r")
        assert "loading …" in title(pilot), "the server takes its time"
        source.hold.set()
        await pilot.settled()
        assert "live" in title(pilot)


async def test_a_refresh_during_a_request_sends_one_more() -> None:
    source = ScriptedSource(demo(), without(demo(), "db-0"))
    source.hold.clear()
    async with running(source, size=(80, 24), ready=False) as pilot:
        await pilot.until(lambda: len(source.requested) == 1)
        await pilot.keys("r")
        source.hold.set()
        await pilot.until(lambda: len(pilot.names) == 59)
        assert len(source.requested) == 2


async def test_a_preview_names_what_is_missing_and_its_time() -> None:
    missing = Missing("the rest of these nodes' pods", "forbidden", "grant list on pods")
    async with running(ScriptedSource(replace(demo(), missing=(missing,))), "e") as pilot:
        assert "note: the rest of these nodes' pods is missing" in pilot.text
        assert "on worker-2, as of 12:00:00 UTC" in pilot.text


async def test_what_is_read_once_is_not_read_again_nor_paused() -> None:
    once = ScriptedSource(demo())
    once.is_live = False
    async with running(once, "j", "p", size=(80, 24)) as pilot:
        assert len(once.requested) == 1
        assert pilot.notifications == ["scripted is read once, there is nothing to pause"]


async def test_leaving_does_not_wait_for_a_server_that_hangs() -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with running(source, size=(80, 24), ready=False) as pilot:
        await pilot.pause()
        await pilot.keys("q")
    waiting = [thread for thread in threading.enumerate() if thread.name == "qos-follower"]
    assert waiting
    assert all(thread.daemon for thread in waiting)
    source.hold.set()
    for thread in waiting:
        thread.join(10)
