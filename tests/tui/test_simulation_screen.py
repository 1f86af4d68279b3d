"""The simulation screen: its options, what comes of them, and how it follows keys, mouse and updates."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from textual.widgets import Static

from kubectl_qos.analysis.deaths import VictimRow, reach_rows, victim_rows
from kubectl_qos.k8s.snapshot import Missing, Snapshot
from kubectl_qos.present.killers import killer_name
from kubectl_qos.present.output import NO_AGES, Column
from kubectl_qos.present.simulation import REACH_COLUMNS, STEP_COLUMNS, simulation_summary, step_note
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node
from kubectl_qos.tui.screens import simulation as simulation_screen
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.simulation import Mode, SimulationScreen, first_options, step_bytes
from kubectl_qos.tui.widgets.line_table import HEADER
from kubectl_qos.tui.widgets.simulation import NodeBar, OptionBar, Slider, memory_later
from kubectl_qos.tui.widgets.text_view import TextView
from tests.tui.sources import Run, ScriptedSource, demo, renamed, running, with_usage, without

GI = 1 << 30
API = "shop/api-7d9c5b6f8-x2mzq"
CRUNCH = "batch/crunch-x2k9f"


@asynccontextmanager
async def simulating(
    *pressed: str, source: ScriptedSource | None = None, size: tuple[int, int] = (120, 40), ready: bool = True
) -> AsyncIterator[Run]:
    """The screen, opened by these keys."""
    async with running(source, *(pressed or ("o",)), size=size) as pilot:
        if ready:
            await pilot.until(lambda: screen(pilot)._node_state is not None)
        yield pilot


def screen(pilot: Run) -> SimulationScreen:
    found = pilot.app.screen
    assert isinstance(found, SimulationScreen)
    return found


def requested(pilot: Run) -> str:
    return str(screen(pilot).query_one("#question", Static).render()).partition(" (the next death")[0]


def outcome(pilot: Run) -> str:
    return str(screen(pilot).query_one("#outcome", Static).render())


def victims(pilot: Run) -> list[str]:
    """Those who are killed; the rows of others are dimmed."""
    table = screen(pilot).table
    dimmed = [table._token(row, "victim") == "muted" for row in table.rows]
    assert dimmed == sorted(dimmed)
    return ["/".join(row.key) for row in table.rows if row.is_reached]


def worker_2(snapshot: Snapshot | None = None) -> NodeState:
    snapshot = snapshot or demo()
    return state_of_node(snapshot, "worker-2")


def killed(**given: Any) -> list[str]:
    simulation = simulate(worker_2(), Scenario(**given))
    return ["/".join(step.key) for step in simulation.steps]


async def notified(pilot: Run, text: str) -> None:
    await pilot.until(lambda: any(text in one for one in pilot.notifications))


def whole_notes(pilot: Run) -> str:
    document = pilot.app.screen.query_one(TextView)
    return " ".join(line.text.strip() for line in document.text_lines(60))


def cells(
    rows: Iterable[VictimRow], key: str, columns: Sequence[Column[VictimRow]] = REACH_COLUMNS
) -> list[str]:
    shown = next(column for column in columns if column.key == key)
    return [shown.cell(row, NO_AGES) for row in rows]


def test_memory_later_rises_until_a_kill_falls_by_it_and_stays() -> None:
    state = worker_2()
    used = state.used_bytes
    freed = simulate(state, Scenario(free_bytes=4 * GI))
    left = used
    points = []
    for step in freed.steps:
        left -= step.freed.free_bytes
        points.append((left >> 10, True))
    assert list(memory_later(state, freed)) == points
    grown = state.find_container("crunch-x2k9f", "c", "batch")
    growth = ContainerGrowth(grown, state.containers[grown].used_bytes + 8 * GI)
    (top, _), (after, is_kill), *_ = memory_later(state, simulate(state, Scenario(growth=(growth,))))
    assert used >> 10 < top > after, "it grows until one is killed"
    assert is_kill
    assert list(memory_later(state, simulate(state, Scenario()))) == [], "nothing changes"
    restarted = list(memory_later(state, simulate(state, Scenario(free_bytes=GI, restarts=True))))
    assert restarted[0] == (used >> 10, True), "it is used again at once"


async def test_the_least_terminal_shows_who_dies_and_at_what_growth() -> None:
    async with simulating(size=(60, 15)) as pilot:
        lines = pilot.text.splitlines()
        assert "node worker-2, kubelet 1.36: its pods use" in lines[5], "the title of the table has the node"
        assert [line[8:22] for line in lines[7:13]] == ["kernel: node …"] * 6
        assert "shop/api-7d9c5b6f8-x2mzq   1930Mi" in lines[7]
        await pilot.keys("tab", "tab", "tab")
        assert "own limit        361Mi    102%  data/importe…f7b9c-2vtxk" in pilot.text
        assert "kubepods limit   687Mi    105%  shop/api-7d9c5b6f8-x2mzq" in pilot.text
        await pilot.resize_terminal(120, 40)
        await pilot.settled()
        assert "Who dies, in order" in pilot.text
        assert "free memory   pod grows   at limits > until OOM" in pilot.text


def test_first_a_part_of_what_is_used_is_freed() -> None:
    assert first_options(worker_2(), None).free_bytes == GI
    nearly_empty = state_of_node(demo(), "control-1")
    assert first_options(nearly_empty, None).free_bytes * 8 <= nearly_empty.used_bytes < 2 * GI


async def test_what_is_shown_is_what_the_command_says() -> None:
    async with simulating() as pilot:
        await pilot.keys(*["shift+right"] * 3)
        assert requested(pilot) == "free 4Gi"
        assert victims(pilot) == killed(free_bytes=4 * GI)
        assert outcome(pilot) == "after 3 kills 5.3Gi is free; no important pod is killed"
        row = screen(pilot).table.rows[0]
        assert "/".join(row.key) == API
        assert screen(pilot).table._token(row, "victim") == "victim"
        assert "node worker-2, kubelet 1.36: its pods use 14.8Gi of 16Gi" in pilot.words
        assert "a container counts as one process" in pilot.words
        # The first important one is marked.
        await pilot.keys("g", "home", "shift+right")
        await pilot.keys("end", "G")
        table = screen(pilot).table
        marked = [row for row in table.rows if table._token(row, "victim") == "warning"]
        assert [row.key[1] for row in marked] == ["cni-agent-bx9td"]
        assert step_note(marked[0]).startswith("! first important: system-")
        # Copy has all of it.
        await pilot.keys("g", "home", "shift+right")
        await pilot.keys("shift+right", "c")
        lines = pilot.app.clipboard.splitlines()
        assert lines[0] == "node worker-2, kubelet 1.36: its pods use 14.8Gi of 16Gi"
        assert lines[4].split()[4:6] == [API, "c"]
        assert lines[-1].startswith("killed containers do not restart here")
        # A victim is explained and back leads here.
        await pilot.keys("g", "home", "shift+right")
        await pilot.keys("shift+right", "down", "enter")
        assert isinstance(pilot.app.screen, ExplainScreen)
        await pilot.keys("escape", "d")
        assert isinstance(pilot.app.screen, ExplainScreen)
        assert f"pod {CRUNCH}" in pilot.words
        await pilot.keys("escape")
        assert requested(pilot) == "free 2Gi"
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_the_modes_simulate_what_the_command_does() -> None:
    async with simulating("j", "o") as pilot:
        await pilot.keys("tab")
        assert requested(pilot) == f"{CRUNCH}, container c, grows by 1Gi to 2.2Gi"
        await pilot.keys("tab")
        assert requested(pilot) == "each container that has a limit grows to it"
        assert victims(pilot) == killed(all_at_limit=True)
        assert not screen(pilot).query_one(Slider).display
        await pilot.keys("tab")
        assert requested(pilot) == "all containers grow by the same share of their usage"
        now = simulate(worker_2(), Scenario(until_oom=True))
        assert outcome(pilot) == simulation_summary(worker_2(), now, "E")
        names = [killer_name(one.mechanism, is_own=one.is_own) for one in now.distances]
        assert cells(screen(pilot).table.rows, "by") == names
        assert "own limit" in names
        await pilot.keys("E")
        assert "kubelet evicts" in cells(screen(pilot).table.rows, "by")
        await pilot.keys("tab")
        assert requested(pilot) == "free 1Gi"
        assert victims(pilot) == killed(free_bytes=GI, eviction=True)
        await pilot.keys("E")
        assert any("R simulates restarts" in note for note in screen(pilot).notes_now())
        await pilot.keys("R")
        assert victims(pilot) == killed(free_bytes=GI, restarts=True)


SLIDES = (
    ("left", "896Mi"),
    ("h", "768Mi"),
    ("right", "896Mi"),
    ("l", "1Gi"),
    ("shift+right", "2Gi"),
    ("L", "3Gi"),
    ("shift+left", "2Gi"),
    ("H", "1Gi"),
    ("end", "14.8Gi"),
)


async def test_each_mode_has_a_slider_of_its_own_that_stays_within_its_ends() -> None:
    async with simulating() as pilot:
        for key, amount in SLIDES:
            await pilot.keys(key)
            assert requested(pilot) == f"free {amount}"
        await pilot.keys("home", "left", "shift+left")
        assert requested(pilot) == "free 0"
        assert not victims(pilot)
        assert outcome(pilot).startswith("nothing is killed: ")
        await pilot.keys("tab", "end", "right", "l", "L")
        assert requested(pilot).startswith(f"{API}, container c, grows by 16Gi")
        await pilot.keys("h")
        assert "grows by 15.9Gi" in requested(pilot)
        await pilot.keys("shift+tab")
        assert requested(pilot) == "free 0"
        await pilot.keys("end")
        assert len(victims(pilot)) == len(worker_2().containers)
        assert "cannot be freed" not in outcome(pilot)
        await pilot.keys("left", "left")
        assert requested(pilot) == "free 14.6Gi"
        # Another pod can be chosen to grow.
        await pilot.keys("tab", "home", "shift+right", "f")
        await pilot.type("search")
        await pilot.keys("enter")
        assert requested(pilot).startswith("shop/search-0, container c, grows by 1Gi to 3.8Gi")
        await pilot.keys("f", "escape")
        assert "search-0" in requested(pilot)


def place_of(pilot: Run, name: str) -> tuple[int, int]:
    line = next(one for one in pilot.text.splitlines() if name in one)
    return line.index(name), 0


async def test_the_mouse_slides_chooses_and_opens() -> None:
    async with simulating() as pilot:
        await pilot.mouse_down(screen(pilot).query_one(Slider), offset=(60, 0))
        await pilot.keys("escape")
        assert pilot.app.mouse_captured is None
        # The mouse slides chooses and opens.
        await pilot.keys("o")
        await pilot.until(lambda: requested(pilot) == "free 1Gi")
        slider = screen(pilot).query_one(Slider)
        await pilot.mouse_down(slider, offset=(60, 0))
        await pilot.pause()
        half = screen(pilot)._options
        assert half is not None
        assert 6 * GI < half.free_bytes < 9 * GI
        assert half.free_bytes % step_bytes(worker_2()) == 0
        await pilot.hover(slider, offset=(118, 0))
        await pilot.pause()
        assert requested(pilot) == "free 14.8Gi"
        await pilot.mouse_up(slider, offset=(118, 0))
        await pilot.hover(slider, offset=(30, 0))
        await pilot.pause()
        assert requested(pilot) == "free 14.8Gi"
        await pilot.click(slider, offset=(1, 0))
        await pilot.pause()
        assert requested(pilot) == "free 0"
        await pilot.click(OptionBar, offset=place_of(pilot, "at limits"))
        await pilot.pause()
        assert requested(pilot) == "each container that has a limit grows to it"
        for name in ("eviction", "restarts"):
            await pilot.click(OptionBar, offset=place_of(pilot, name))
            await pilot.pause()
            assert f"[x] {name}" in pilot.words
        await pilot.click(screen(pilot).table, offset=(9, 1 + HEADER), times=2)
        await pilot.until(lambda: isinstance(pilot.app.screen, ExplainScreen))


async def test_the_list_of_nodes_simulates_its_node_and_a_place_any() -> None:
    async with running(None, "1") as pilot:
        # The next victim is red only on a node in trouble.
        for down, node, token in ((), "worker-2", "victim"), (("j",), "worker-1", ""):
            await pilot.keys(*down, "o", "shift+right")
            assert f"node {node}" in pilot.words
            await pilot.until(lambda: bool(screen(pilot).table.rows))
            table = screen(pilot).table
            assert table._token(table.rows[0], "victim") == token
            await pilot.keys("escape")
        await pilot.go_to("sim worker-3")
        await pilot.until(lambda: "node worker-3" in pilot.words)
        await pilot.keys("tab")
        await pilot.until(lambda: "grows" in requested(pilot))
        assert not requested(pilot).startswith(API), "its own victim"
        await pilot.keys("escape", "2")
        await pilot.go_to("sim")
        await pilot.until(lambda: "node worker-2" in pilot.words)


async def test_new_facts_are_followed_and_the_slider_stays() -> None:
    more = with_usage(demo(), "crunch-", 3 * GI)
    source = ScriptedSource(demo(), more, without(more, "crunch-"))
    async with simulating(source=source) as pilot:
        await pilot.keys("shift+right", "down")
        assert victims(pilot)[:2] == [API, CRUNCH]
        await pilot.keys("r")
        await pilot.until(lambda: victims(pilot)[:1] == [CRUNCH])
        assert requested(pilot) == "free 2Gi"
        assert "/".join(screen(pilot).table.row.key) == CRUNCH  # type: ignore[union-attr]
        await pilot.keys("r")
        await pilot.until(lambda: CRUNCH not in victims(pilot))
        assert requested(pilot) == "free 2Gi"


async def test_who_grows_stays_the_same_and_says_so_when_it_is_gone() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), "api-", 20), without(demo(), "api-7d9c5b6f8-x2mzq"))
    async with simulating("o", source=source) as pilot:
        await pilot.keys("tab", "r")
        await pilot.until(lambda: "grows by 1Gi to 1Gi" in requested(pilot))
        assert requested(pilot).startswith(API)
        await pilot.keys("r")
        await pilot.until(lambda: "pod api-7d9c5b6f8-x2mzq has no processes" in outcome(pilot))
        assert not victims(pilot)
        await pilot.keys("tab")
        assert victims(pilot)


async def test_a_node_that_is_gone_stays_as_it_was_last() -> None:
    def only_others(snapshot: Snapshot) -> Snapshot:
        nodes = {name: node for name, node in snapshot.nodes.items() if name != "worker-2"}
        pods = tuple(pod for pod in snapshot.pods if pod.node_name != "worker-2")
        return replace(snapshot, nodes=nodes, pods=pods)

    source = ScriptedSource(demo(), only_others(demo()), demo())
    async with simulating(source=source) as pilot:
        before = victims(pilot)
        await pilot.keys("r")
        await pilot.until(lambda: ", gone since 12:00:00 UTC; last known state" in pilot.words)
        assert victims(pilot) == before
        await pilot.keys("enter")
        assert isinstance(pilot.app.screen, SimulationScreen)
        await pilot.keys("r")
        await pilot.until(lambda: "gone since" not in pilot.words)


async def test_without_usage_it_says_what_can_be_simulated_all_the_same() -> None:
    async with simulating(source=ScriptedSource(replace(demo(), usage={}, node_usage={}))) as pilot:
        assert outcome(pilot).startswith("! without memory usage nothing can be freed and nothing grows")
        assert "at limits and pod grows work" in pilot.words
        assert not screen(pilot).query_one(Slider).display
        await pilot.keys("tab", "tab")
        assert requested(pilot) == "each container that has a limit grows to it"


async def test_without_the_capacity_of_the_node_it_says_so() -> None:
    nodes = {
        name: msgspec.structs.replace(
            node, status=msgspec.structs.replace(node.status, capacity={}, allocatable={})
        )
        for name, node in demo().nodes.items()
    }
    source = ScriptedSource(replace(demo(), nodes=nodes), demo())
    async with simulating(source=source, ready=False) as pilot:
        await pilot.until(lambda: "! the memory capacity of control-1 is unknown" in pilot.words)
        keys = ("left", "right", "home", "end", "tab", "E", "R", "f", "d", "n", "c", "G", "enter")
        await pilot.keys(*keys)
        assert isinstance(pilot.app.screen, SimulationScreen)
        await pilot.keys("r")
        await pilot.until(lambda: requested(pilot) == "free 128Mi")


async def test_what_could_not_be_read_is_a_note() -> None:
    missing = Missing("the list of pods of other namespaces", "it is [forbidden]\x1b", "ask for it")
    source = ScriptedSource(replace(demo(), missing=(missing,)))
    async with simulating(source=source, size=(80, 24)) as pilot:
        assert "the list of pods of other namespaces is missing" in pilot.words
        await pilot.keys("n")
        assert "it is [forbidden]\\x1b (ask for it)" in whole_notes(pilot)
        assert "PodDisruptionBudgets are read only from" in whole_notes(pilot)


async def test_it_is_working_it_out_until_it_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()
    made = state_of_node

    def slowly(*arguments: Any) -> NodeState:
        assert hold.wait(120)
        return made(*arguments)

    monkeypatch.setattr(simulation_screen, "state_of_node", slowly)
    async with simulating(ready=False) as pilot:
        assert "Simulating …" in pilot.words
        await pilot.keys("right", "end", "tab", "E", "f", "d", "c", "enter")
        assert isinstance(pilot.app.screen, SimulationScreen)
        await pilot.keys("escape")
        hold.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        await pilot.keys("o")
        await pilot.until(lambda: requested(pilot) == "free 1Gi")


async def test_what_should_not_happen_in_the_thread_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> NodeState:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(simulation_screen, "state_of_node", broken)
    async with simulating(ready=False) as pilot:
        await pilot.until(lambda: "! unexpected ZeroDivisionError: no" in pilot.words)


async def test_before_the_first_answer_there_is_no_node() -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with running(source, size=(120, 40), ready=False) as pilot:
        for key, sentence_ in (
            ("o", "the cluster has not answered yet"),
            ("K", "the cluster has not answered"),
        ):
            await pilot.keys(key)
            await notified(pilot, sentence_)
            assert isinstance(pilot.app.screen, MainScreen)
        source.hold.set()


async def test_a_cluster_without_nodes_opens_nothing() -> None:
    async with running(ScriptedSource(Snapshot()), "o") as pilot:
        await notified(pilot, "there is no node to simulate")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_names_are_only_text() -> None:
    nasty = renamed(demo(), "api-7d9c5b6f8-x2mzq", "[b]x\x1b[31m")
    source = ScriptedSource(with_usage(nasty, "[b]x", 5 * GI))
    async with simulating(source=source) as pilot:
        await pilot.keys("tab")
        assert "shop/[b]x\\x1b[31m, container c, grows" in pilot.words
        await pilot.keys("shift+tab")
        assert "shop/[b]x\\x1b[31m" in pilot.words


async def test_nothing_that_matters_is_cut_and_more_lines_have_room_for_all_notes() -> None:
    async with simulating() as pilot:
        for size in ((60, 15), (80, 24), (300, 20)):
            await pilot.keys("escape")
            await pilot.resize_terminal(*size)
            await pilot.keys("o")
            await pilot.until(lambda: requested(pilot) == "free 1Gi")
            for text in ("free 1Gi", "VICTIM", "[ ] eviction", "[ ] restarts"):
                assert text in pilot.text, size
        await pilot.resize_terminal(120, 24)
        await pilot.seen("(n: 3 notes)")
        await pilot.resize_terminal(120, 40)
        await pilot.seen("R simulates restarts")
        assert "(n: 3 notes)" not in pilot.words
        # The border has the note of a row where the table has not.
        table = screen(pilot).table
        await pilot.resize_terminal(200, 50)
        await pilot.until(lambda: not table.border_subtitle)
        await pilot.resize_terminal(80, 24)
        await pilot.until(lambda: "1748Mi" in str(table.border_subtitle))


def test_every_step_and_reach_is_a_row_that_sorts_by_what_it_means() -> None:
    simulation = simulate(worker_2(), Scenario(free_bytes=4 * GI))
    rows = victim_rows(simulation)
    assert cells(rows, "victim", STEP_COLUMNS) == ["/".join(step.key) for step in simulation.steps]
    freed = next(column for column in STEP_COLUMNS if column.key == "freed")
    assert cells(sorted(rows, key=freed.sort_key), "freed", STEP_COLUMNS) == ["1930Mi", "1240Mi", "1105Mi"]
    step = STEP_COLUMNS[0]
    assert sorted(rows, key=step.sort_key) == rows
    reaches = reach_rows(simulate(worker_2(), Scenario(until_oom=True)))
    growth = next(column for column in REACH_COLUMNS if column.key == "growth")
    assert cells([min(reaches, key=growth.sort_key)], "growth") == ["108%"]
    assert [row.place for row in reaches] == list(range(1, len(reaches) + 1))


def test_the_slider_never_ends_below_where_it_stands() -> None:
    node_state = worker_2()
    options = first_options(node_state, None).with_amount(40 * GI)
    assert options.mode is Mode.FREE
    assert options.top(node_state) == 40 * GI
    assert options.with_next_mode(2).with_amount(5) == options.with_next_mode(2)
    assert options.with_amount(-5).free_bytes == 0
    assert options.with_next_mode(1).with_amount(-5).more_bytes == 0


async def test_the_bar_goes_hollow_and_marks_say_where_one_dies() -> None:
    async with simulating() as pilot:
        await pilot.keys("home")

        def bar() -> str:
            return screen(pilot).query_one(NodeBar).render().plain

        def track() -> str:
            return screen(pilot).query_one(Slider).render().plain

        full, marks = bar(), track().count("◇")
        assert "░" not in full
        assert len(screen(pilot).table.rows) == len(killed(free_bytes=64 * GI)), "the whole order at once"
        assert marks > 5
        hollow, reached, reached_dead = 0, 0, 0
        for _ in range(4):
            await pilot.keys("shift+right", "shift+right")
            assert len(bar()) == len(full)
            amount = screen(pilot)._options.free_bytes  # type: ignore[union-attr]
            dead = len(killed(free_bytes=amount))
            assert (bar().count("░") > hollow) == (dead > reached_dead)
            reached_dead = dead
            hollow, reached = bar().count("░"), track().count("◆")
            assert reached + track().count("◇") in {marks, marks + 1}, "one may be below the knob"
            assert victims(pilot) == killed(free_bytes=amount)
        assert reached
        # Where one pod grows, the mark is where its limit is.
        await pilot.keys("tab", "home")
        assert victims(pilot) == []
        limit = 2 * GI - 1930 * (1 << 20)
        assert screen(pilot)._whole_now().kill_points[0] == pytest.approx(limit, abs=2 << 20)  # type: ignore[union-attr]
        await pilot.keys("shift+right")
        assert victims(pilot) == [API]
