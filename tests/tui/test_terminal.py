"""The UI in a terminal of its own, keys typed ahead, and what its lists say where something is missing."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App, ComposeResult

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.output import Align, Column
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui import key_order
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import Trends, build_view_model
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import GUTTER, Layout, fitted, shortened
from tests.tui.sources import (
    ScriptedSource,
    app_of,
    demo,
    main_of,
    names,
    pod_named,
    press,
    renamed,
    screen_text,
    settled,
    type_text,
    until,
    words,
)

LONG = "x" * 253


class Terminal:
    """The program in a terminal of its own: what it paints, and what becomes of it."""

    def __init__(self, state: Path, *, size: tuple[int, int] = (24, 80), **environment: str) -> None:
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, size)
        self.ours = ours
        self.painted = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kubectl_qos", "--demo"],
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "KUBECTL_QOS_CONFIG": "",
                "KUBECTL_QOS_STATE": str(state),
                **environment,
            },
        )
        os.close(its)

    def read(self, seconds: float) -> bool:
        """Take what it paints within so long; whether there was anything."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        try:
            found = os.read(self.ours, 65536)
        except OSError:  # nobody is at the other end any more
            return False
        self.painted += found
        return bool(found)

    def until_painted(self, text: str) -> None:
        """Wait for a text."""
        end = time.monotonic() + 60
        while text.encode() not in self.painted and time.monotonic() < end:
            self.read(0.1)
        assert text.encode() in self.painted

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.process.wait(1)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        with suppress(OSError):
            os.close(self.ours)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def open_one(**given: Any) -> Terminal:
        opened.append(Terminal(tmp_path / "state", **given))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_told_to_end_it_gives_the_terminal_back_and_keeps_what_q_keeps(
    terminals: Any, tmp_path: Path
) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.write(terminal.ours, b"2")
    terminal.until_painted("8 namespaces")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM
    assert b"\x1b[?1049l" in terminal.painted, "the screen as it was before"
    assert b"\x1b[?1000l" in terminal.painted, "no mouse any more"
    assert '"namespaces"' in (tmp_path / "state" / "state.json").read_text(encoding="utf-8")


def test_when_its_terminal_is_closed_it_ends_and_keeps_what_q_keeps(terminals: Any, tmp_path: Path) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.close(terminal.ours)
    terminal.process.send_signal(signal.SIGHUP)  # which shells send; here it leads its own session
    assert terminal.process.wait(30) == 128 + signal.SIGHUP
    assert (tmp_path / "state" / "state.json").exists()


def test_when_its_terminal_goes_away_without_a_word_it_ends_too(terminals: Any) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.close(terminal.ours)
    assert terminal.process.wait(30) == 128 + signal.SIGHUP


def test_a_terminal_without_a_size_gets_the_usual_one(terminals: Any) -> None:
    terminal = terminals(size=(0, 0))
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    assert termios.tcgetwinsize(terminal.ours) == (24, 80)


def test_ctrl_z_suspends_and_back_in_front_everything_is_painted_again(terminals: Any) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.write(terminal.ours, b"\x1a")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        terminal.read(0.05)
        pid, status = os.waitpid(terminal.process.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            break
    else:
        pytest.fail("it goes on")
    while terminal.read(0.2):
        pass
    assert b"\x1b[?1049l" in terminal.painted
    terminal.painted = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    terminal.until_painted("quit")


def test_a_terminal_that_cannot_be_painted_on_is_refused(terminals: Any) -> None:
    terminal = terminals(TERM="dumb")
    assert terminal.ended() == 1
    said = re.sub(r"\s+", " ", terminal.painted.decode())
    assert "TERM=dumb" in said
    assert "kubectl qos top prints the ranking" in said


def without_namespace(snapshot: Snapshot, namespace: str) -> Snapshot:
    return replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.namespace != namespace))


def told(pilot: Any) -> str:
    """What was said in passing last."""
    return [str(one.message) for one in pilot.app._notifications][-1]


async def go_to(pilot: Any, place: str) -> None:
    await press(pilot, "colon")
    await type_text(pilot, place)
    await press(pilot, "enter")


def typed(pilot: Any, *keys: str) -> None:
    """What is typed faster than it is taken."""
    named = {"/": "slash", ":": "colon", " ": "space", "-": "minus", "\r": "enter", "\x1b": "escape"}
    for key in keys:
        pilot.app._driver.send_message(events.Key(named.get(key, key), key))


async def test_the_letters_of_a_filter_typed_at_once_are_no_commands() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        typed(pilot, *"/edex")
        await until(pilot, lambda: main_of(pilot).view.filter.text == "edex")
        assert not main_of(pilot).view.wide
        assert len(pilot.app.screen_stack) == 1


async def test_what_is_typed_behind_enter_goes_where_enter_led() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        typed(pilot, *":node worker-1\rjj fcart\r")
        await until(pilot, lambda: names(pilot)[main_of(pilot).table.cursor].startswith("cart-"))
        assert main_of(pilot).view.node == "worker-1"
        assert len(main_of(pilot).table.marked) == 1


async def test_keys_after_escape_are_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "PATIENCE_SECONDS", 60)
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        for _ in range(3):
            typed(pilot, *"d\x1bj")
        await until(pilot, lambda: main_of(pilot).table.cursor == 3)
        assert len(pilot.app.screen_stack) == 1


async def test_a_key_whose_way_is_lost_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        monkeypatch.setattr(QosApp, "on_passed", lambda *_: None)
        typed(pilot, *"jjj")
        await until(pilot, lambda: main_of(pilot).table.cursor == 3)


async def test_a_namespace_whose_pods_are_all_replaced_stays_chosen() -> None:
    source = ScriptedSource(demo(), without_namespace(demo(), "ml"), demo())
    async with QosApp(source, Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ns ml")
        assert len(names(pilot)) == 7
        await press(pilot, "r")
        await settled(pilot)
        assert main_of(pilot).view.namespace == "ml", "not the pods of everybody, under the same keys"
        assert names(pilot) == []
        assert "There are no pods in namespace ml. tab goes to other panes." in screen_text(pilot)
        await press(pilot, "r")
        await settled(pilot)
        assert len(names(pilot)) == 7


async def test_a_chosen_node_that_is_gone_is_told() -> None:
    pods = tuple(pod for pod in demo().pods if pod.node_name != "worker-1")
    nodes = {name: node for name, node in demo().nodes.items() if name != "worker-1"}
    source = ScriptedSource(demo(), replace(demo(), pods=pods, nodes=nodes))
    async with QosApp(source, Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await go_to(pilot, "node worker-1")
        await press(pilot, "r")
        await settled(pilot)
        assert main_of(pilot).view.node is None
        assert told(pilot) == "worker-1 is gone: all nodes are shown"


async def test_an_empty_list_says_what_was_asked_for() -> None:
    class Nowhere(DemoSource):
        def snapshot(self, scope: Scope) -> Snapshot:
            return replace(super().snapshot(scope), pods=())

    async with QosApp(Nowhere(), Scope(namespace="nope")).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "There are no pods in namespace nope of demo." in screen_text(pilot)


async def test_a_filter_among_those_at_risk_does_not_promise_all() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "z", "slash")
        await type_text(pilot, "untrusted")
        await press(pilot, "enter")
        assert "No pod at risk matches untrusted. esc clears the filter." in screen_text(pilot)


@pytest.mark.parametrize("width", [59, 68, 79, 87])
@pytest.mark.parametrize("kind", list(ListKind))
def test_one_long_name_hides_no_other_columns(kind: ListKind, width: int) -> None:
    def keys(snapshot: Snapshot) -> list[str]:
        view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
        listing = list_definitions(Trends())[kind]
        rows = listing.build(view_model, View(kind), None).rows
        layout = listing.layout(View(kind), None, rows, DEMO_TIME, width)
        assert layout.line_width <= width
        return [column.key for column in layout.columns]

    needed = {
        ListKind.NODES: {"node", "memory", "used_percent"},
        ListKind.NAMESPACES: {"namespace", "rank", "pods", "qos"},
        ListKind.WORKLOADS: {"workload", "rank", "pods", "qos"},
        ListKind.PODS: {"rank", "pod", "qos"},
        ListKind.CONTAINERS: {"rank", "container", "pod"},
    }[kind]
    assert needed <= set(keys(renamed(demo(), "crunch", LONG)))


def test_the_score_stays_beside_a_long_name_at_80_columns() -> None:
    rows = build_rows(renamed(demo(), "crunch", LONG), Scope()).rows
    layout = PodList(Trends()).layout(View(), None, rows, DEMO_TIME, 79)
    assert {"rank", "pod", "node", "qos", "oom_score"} <= {column.key for column in layout.columns}


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("worker-1", 8, "worker-1"),
        ("gke-prod-pool-3f2a-x8k2", 11, "gke-p…-x8k2"),
        ("gke-prod-pool-3f2a-x8k2", 2, "g…"),
        ("gke-prod-pool-3f2a-x8k2", 1, "…"),
        ("NEAR-LIMIT OVER-REQUEST", 12, "NEAR-LIMIT O…"[:11] + "…"),
        ("日本語日本語", 5, "日本…"),
    ],
)
def test_a_name_is_cut_in_its_middle_for_nodes_begin_alike(name: str, width: int, shown: str) -> None:
    assert fitted(shortened(name, width), width, Align.LEFT) == shown


async def test_percentages_of_one_node_are_the_same_everywhere() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        beside = next(group for group in facts_now(pilot).nodes if group.key == "worker-2")
        assert "pods use 93%" in screen_text(pilot)
        assert beside.percent == 93


def facts_now(pilot: Any) -> Any:
    view_model = app_of(pilot).view_model
    assert view_model is not None
    return view_model


async def test_r_shows_that_a_server_takes_its_time() -> None:
    source = ScriptedSource(demo())
    async with QosApp(source, Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "live" in screen_text(pilot).splitlines()[0]
        source.hold.clear()
        await press(pilot, "r")
        assert "loading …" in screen_text(pilot).splitlines()[0]
        source.hold.set()
        await settled(pilot)
        assert "live" in screen_text(pilot).splitlines()[0]


async def test_a_container_is_judged_by_its_own_rank() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "5")
        await until(pilot, lambda: bool(main_of(pilot).table.rows))
        row = next(row for row in main_of(pilot).table.rows if row.rank and row.rank > 5 and not row.tied)
        main_of(pilot).table.move_to(row.key)
        await pilot.pause()
        said = f"container {row.container} of {row.pod.namespace}/{row.name}: rank {row.rank} among"
        assert said in words(pilot)


async def test_a_node_without_pods_says_so() -> None:
    bare = replace(demo(), pods=tuple(pod for pod in demo().pods if pod.node_name != "worker-3"))
    async with QosApp(ScriptedSource(bare), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "1")
        await until(pilot, lambda: bool(main_of(pilot).table.rows))
        main_of(pilot).table.move_to("worker-3")
        await pilot.pause()
        assert "worker-3: it has no pods, nothing would be killed" in screen_text(pilot)


async def test_marks_are_counted_and_hidden_ones_never_give_way_to_the_cursor() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await press(pilot, "space", "space")
        assert "60 pods  2 marked  by RANK" in screen_text(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "warehouse")
        await press(pilot, "enter", "c")
        assert told(pilot) == "no marked row is shown; esc unmarks all"
        assert app_of(pilot).clipboard == ""
        await press(pilot, "escape", "slash")
        await type_text(pilot, "crunch")
        await press(pilot, "enter", "c")
        assert told(pilot).startswith("copied 1 row of 2 marked")
        await press(pilot, "escape", "escape")
        assert "marked" not in screen_text(pilot).splitlines()[2]


async def test_a_long_name_leaves_the_edit_screen_its_subject() -> None:
    snapshot = renamed(demo(), "crunch", LONG)
    async with QosApp(ScriptedSource(snapshot), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app_of(pilot).edit(pod_named(snapshot, LONG))
        await until(pilot, lambda: isinstance(pilot.app.screen, EditScreen))
        assert "x" * 60 in screen_text(pilot)


class Narrow(App[None]):
    """A table of one column that takes all the room there is."""

    CSS = "LineTable { scrollbar-size: 1 1; }"

    def compose(self) -> ComposeResult:
        yield LineTable[str](natural="", key=str, token=lambda *_: "")

    def load(self, count: int) -> LineTable[str]:
        column: Column[str] = Column("name", "NAME", Align.LEFT, 4, lambda row, _: row, str, str, "")
        table = self.query_one(LineTable)
        rows = [str(number) for number in range(count)]
        table.load(rows, lambda available: Layout((column,), (available - GUTTER,)), DEMO_TIME)
        return table


async def test_columns_give_way_to_the_scrollbar_at_once() -> None:
    app = Narrow()
    async with app.run_test(size=(40, 12)) as pilot:
        app.load(3)
        await pilot.pause()
        table = app.load(100)
        await pilot.pause()
        await pilot.pause()
        assert table.show_vertical_scrollbar
        assert table.columns.line_width == 39
        assert not table.show_horizontal_scrollbar
