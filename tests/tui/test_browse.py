from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.pilot import Pilot
from textual.widgets import Input, Label

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.panes import ExplanationPanel
from kubectl_qos.tui.screens.dialogs import SaveAs, TextScreen
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.view import ListKind, View
from tests.tui.sources import demo, main_of, names, press, screen_text, settled, type_text, words

ALL = [row.name for row in build_rows(demo(), Scope()).rows]


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as found:
        await settled(found)
        yield found


@pytest.fixture
async def narrow() -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=(80, 24)) as found:
        await settled(found)
        yield found


def of_node(node: str) -> list[str]:
    return [row.name for row in build_rows(demo(), Scope(node=node)).rows]


def why(pilot: Pilot[Any]) -> str:
    panel = main_of(pilot).query_one(ExplanationPanel)
    return "\n".join(line.text for line in panel.text_lines(200))


async def test_pods_come_in_kill_order_and_the_first_is_explained(pilot: Pilot[Any]) -> None:
    assert names(pilot) == ALL
    assert main_of(pilot).focused is main_of(pilot).table
    assert "is Burstable, the next victim of worker-2: rank 1 of 17, oom_score 1390" in why(pilot)
    assert "c: oom_score_adj = 1000 - 1000 × 512Mi / 16Gi = 969; the pod uses 1.9Gi of 2Gi" in why(pilot)


async def test_why_follows_the_cursor(pilot: Pilot[Any]) -> None:
    await press(pilot, "j")
    assert "batch/crunch-x2k9f is BestEffort, rank 2 of 17 on worker-2" in why(pilot)
    await press(pilot, "G")
    assert "data/migrate-2026-11-tq8zn is Guaranteed, not ranked" in why(pilot)


async def test_a_node_is_chosen_by_moving_onto_it(pilot: Pilot[Any]) -> None:
    await press(pilot, "tab", "j")
    assert names(pilot) == of_node("worker-2")
    await press(pilot, "G")
    assert names(pilot) == ["huge-0"]
    await press(pilot, "g")
    assert names(pilot) == ALL


async def test_node_and_namespace_together(pilot: Pilot[Any]) -> None:
    await press(pilot, "tab", "j", "tab", "down", "down", "enter")
    screen = main_of(pilot)
    assert (screen.view.node, screen.view.namespace) == ("worker-2", "data")
    assert names(pilot) == [
        row.name for row in build_rows(demo(), Scope(node="worker-2", namespace="data")).rows
    ]
    assert screen.focused is screen.table


async def test_another_node_shows_its_next_victim_first(pilot: Pilot[Any]) -> None:
    await press(pilot, "G", "tab", "j")
    screen = main_of(pilot)
    assert screen.table.row is not None
    assert screen.table.row.rank == 1
    assert screen.table.cursor == 0


async def test_tab_goes_round_the_panes_both_ways(pilot: Pilot[Any]) -> None:
    screen = main_of(pilot)
    seen = []
    for key in ("tab", "tab", "tab", "shift+tab", "shift+tab", "shift+tab"):
        await press(pilot, key)
        assert screen.focused is not None
        seen.append(screen.focused.id)
    assert seen == ["side-nodes", "side-namespaces", "pods", "side-namespaces", "side-nodes", "pods"]
    await press(pilot, "tab", "escape")
    assert screen.focused is screen.table


async def test_in_a_narrow_terminal_the_panes_take_turns(narrow: Pilot[Any]) -> None:
    screen = main_of(narrow)
    assert screen.table.region.width == 80
    assert not screen.side.nodes.is_on_screen
    await press(narrow, "tab")
    assert screen.side.nodes.region.width == 80
    assert not screen.table.region
    await press(narrow, "j", "enter")
    assert screen.table.region.width == 80
    assert names(narrow) == of_node("worker-2")
    assert "1     api-7d9c5b6f8-x2mzq      B ◐      969       1390" in screen_text(narrow)


async def test_a_filter_works_while_it_is_typed(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "db-")
    assert names(pilot) == ["db-0", "db-1", "db-2"]
    await press(pilot, "enter")
    assert main_of(pilot).focused is main_of(pilot).table
    assert names(pilot) == ["db-0", "db-1", "db-2"]
    await press(pilot, "escape")
    assert names(pilot) == ALL


async def test_escape_in_the_filter_line_takes_it_back(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "!db-")
    assert len(names(pilot)) == 57
    await press(pilot, "escape")
    assert names(pilot) == ALL
    assert main_of(pilot).focused is main_of(pilot).table


async def test_a_filter_can_be_typed_on(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "db-")
    await press(pilot, "enter", "slash")
    await type_text(pilot, "1")
    assert names(pilot) == ["db-1"]


async def test_a_wrong_selector_is_refused_and_the_last_good_filter_stays(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "-l app")
    shown = names(pilot)
    await type_text(pilot, "=a b")
    assert "unable to parse label selector" in screen_text(pilot)
    await press(pilot, "enter")
    assert isinstance(main_of(pilot).focused, Input), "enter does not leave a wrong filter"
    await press(pilot, "escape")
    assert shown
    assert names(pilot) == ALL


async def test_a_filter_without_a_hit_says_so(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "zzz")
    await press(pilot, "enter")
    assert "No pod matches zzz. esc shows all 60 again." in screen_text(pilot)
    for key in ("d", "e", "c", "x", "space", "s", "S", "enter", "G", "w", "z", "n"):
        await press(pilot, key)
        assert isinstance(pilot.app.screen, MainScreen)
    await press(pilot, "z", "escape")
    assert len(names(pilot)) == 60


async def test_a_broken_or_unsafe_expression_is_said_and_the_last_good_filter_stays(
    pilot: Pilot[Any],
) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "db-")
    await press(pilot, "left_square_bracket")
    assert "! db-[: a ] is missing" in screen_text(pilot)
    assert names(pilot) == ["db-0", "db-1", "db-2"]
    await press(pilot, "0", "1", "right_square_bracket")
    assert "! db-" not in screen_text(pilot)
    assert names(pilot) == ["db-0", "db-1"]


async def test_columns_are_looked_into_and_an_unknown_one_is_said(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "node:worker-2 qos:best")
    rows = build_rows(demo(), Scope(node="worker-2")).rows
    wanted = [row.name for row in rows if row.qos.value == "BestEffort"]
    assert names(pilot) == wanted
    await type_text(pilot, " qos:x")
    assert "! qos is never 'x'; it is " in screen_text(pilot)
    assert names(pilot) == wanted
    await press(pilot, *["backspace"] * 5)
    await type_text(pilot, "nod:x")
    assert "! unknown column 'nod'; columns are: rank, namespace" in words(pilot)


async def test_ages_are_compared_by_the_clock_of_the_source(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "age:")
    await press(pilot, "less_than_sign", "1", "h")
    assert names(pilot) == ["debug-shell"]


async def test_tab_completes_columns_and_their_values(pilot: Pilot[Any]) -> None:
    line = main_of(pilot).query_one("#line", Input)
    await press(pilot, "slash")
    await type_text(pilot, "!q")
    await press(pilot, "tab", "b", "e", "tab")
    assert line.value == "!qos:BestEffort"
    assert len(names(pilot)) == sum(row.qos.value != "BestEffort" for row in build_rows(demo(), Scope()).rows)


async def enter(pilot: Pilot[Any], sign: str, text: str) -> None:
    await press(pilot, sign, "ctrl+u")
    await type_text(pilot, text)
    await press(pilot, "enter")


async def test_up_and_down_walk_through_what_was_entered(pilot: Pilot[Any]) -> None:
    line = main_of(pilot).query_one("#line", Input)
    await enter(pilot, "slash", "db-0")
    await enter(pilot, "slash", "cart")
    await enter(pilot, "colon", "pods shop")
    await press(pilot, "slash", "ctrl+u")
    await type_text(pilot, "ap")
    await press(pilot, "up")
    assert line.value == "cart"
    assert all("cart" in name for name in names(pilot)), "it works as if it were typed"
    await press(pilot, "up")
    assert line.value == "db-0"
    await press(pilot, "up")
    assert line.value == "db-0", "there is nothing earlier"
    await press(pilot, "down", "down")
    assert line.value == "ap", "what was typed is not lost"
    await press(pilot, "escape", "colon", "up")
    assert line.value == "pods shop", "places have a history of their own"


async def test_going_to_places(pilot: Pilot[Any]) -> None:
    screen = main_of(pilot)
    await press(pilot, "colon")
    await type_text(pilot, "node w")
    await press(pilot, "tab", "enter")
    assert names(pilot) == of_node("worker-2")
    assert screen.focused is screen.table
    await press(pilot, "colon")
    await type_text(pilot, "pods data")
    await press(pilot, "enter")
    assert screen.view.namespace == "data"
    await press(pilot, "colon")
    await type_text(pilot, "pods")
    await press(pilot, "enter")
    assert names(pilot) == ALL
    for kind in (ListKind.NAMESPACES, ListKind.NODES, ListKind.WORKLOADS, ListKind.CONTAINERS):
        await press(pilot, "colon")
        await type_text(pilot, kind.value)
        await press(pilot, "enter")
        assert screen.view == View(kind)
        assert screen.focused is screen.table
    await press(pilot, "4")


async def test_a_place_that_is_not_there_is_said_and_can_be_mended(pilot: Pilot[Any]) -> None:
    await press(pilot, "colon")
    await type_text(pilot, "node nope")
    await press(pilot, "enter")
    assert '! node "nope" not found' in screen_text(pilot)
    await press(pilot, "escape")
    assert names(pilot) == ALL


async def test_the_word_q_leaves(pilot: Pilot[Any]) -> None:
    await press(pilot, "colon", "q", "enter")
    assert not pilot.app.is_running or pilot.app._exit


async def test_the_right_arrow_takes_the_completion_too(pilot: Pilot[Any]) -> None:
    await press(pilot, "colon")
    await type_text(pilot, "pods sh")
    await pilot.pause()
    await press(pilot, "right")
    assert main_of(pilot).query_one("#line", Input).value == "pods shop"


async def test_sorting_goes_through_the_columns_and_turns(pilot: Pilot[Any]) -> None:
    screen = main_of(pilot)
    keys = [column.key for column in screen.table.columns.columns]
    await press(pilot, "s")
    assert screen.table.sorted_by == ("pod", False)
    assert names(pilot) == sorted(ALL)
    await press(pilot, "S")
    assert names(pilot) == sorted(ALL, reverse=True)
    for _ in keys[1:]:
        await press(pilot, "s")
    assert screen.table.sorted_by == ("rank", False)
    assert names(pilot) == ALL


async def test_only_pods_at_risk(pilot: Pilot[Any]) -> None:
    await press(pilot, "z")
    risky = {"PRIORITY", "NEAR-LIMIT", "OVER-REQUEST"}
    wanted = [row.name for row in build_rows(demo(), Scope()).rows if risky & set(row.flags)]
    assert names(pilot) == wanted
    await press(pilot, "z")
    assert names(pilot) == ALL


async def test_wide_shows_all_columns(narrow: Pilot[Any]) -> None:
    screen = main_of(narrow)
    before = [column.key for column in screen.table.columns.columns]
    await press(narrow, "w")
    assert {"eviction", "age", "flags", "priority"} <= {c.key for c in screen.table.columns.columns}
    await press(narrow, "right", "right")
    assert screen.table.scroll_offset.x == 16
    await press(narrow, "w")
    assert [column.key for column in screen.table.columns.columns] == before


async def test_marked_rows_are_copied_as_a_table(pilot: Pilot[Any]) -> None:
    await press(pilot, "c")
    assert pilot.app.clipboard.splitlines()[1].split()[:2] == ["1", ALL[0]]
    await press(pilot, "space", "space")
    await press(pilot, "c")
    lines = pilot.app.clipboard.splitlines()
    assert lines[0].split()[:2] == ["RANK", "POD"]
    assert [line.split()[1] for line in lines[1:]] == ALL[:2]
    await press(pilot, "k", "space", "c")
    assert len(pilot.app.clipboard.splitlines()) == 2, "a second space takes the mark away"
    await press(pilot, "escape", "g", "c")
    assert pilot.app.clipboard.splitlines()[1].split()[1] == ALL[0]


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.yaml"])
async def test_what_is_shown_is_exported(pilot: Pilot[Any], name: str, tmp_path: Path) -> None:
    await press(pilot, "slash")
    await type_text(pilot, "db-")
    await press(pilot, "enter", "x")
    assert isinstance(pilot.app.screen, SaveAs)
    pilot.app.screen.query_one(Input).value = str(tmp_path / name)
    await press(pilot, "enter")
    text = (tmp_path / name).read_text()
    if name.endswith(".csv"):
        found = [
            line.split(",")[text.splitlines()[0].split(",").index("pod")] for line in text.splitlines()[1:]
        ]
    else:
        values = json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
        found = [item["pod"] for item in values["items"]]
    assert found == ["db-0", "db-1", "db-2"]
    assert isinstance(pilot.app.screen, MainScreen)


async def test_an_unknown_format_is_refused_in_the_question(pilot: Pilot[Any], tmp_path: Path) -> None:
    await press(pilot, "x")
    pilot.app.screen.query_one(Input).value = str(tmp_path / "out.doc")
    await press(pilot, "enter")
    assert isinstance(pilot.app.screen, SaveAs)
    finding = str(pilot.app.screen.query_one("#verdict", Label).render())
    assert finding == "! out.doc: the extension chooses the format: end it in .csv, .json, .yaml or .txt"
    await press(pilot, "escape")
    assert not (tmp_path / "out.doc").exists()


async def test_themes_go_round_and_all_can_be_used(pilot: Pilot[Any]) -> None:
    seen = [pilot.app.theme]
    for _ in THEMES:
        await press(pilot, "t")
        seen.append(pilot.app.theme)
    assert seen == [*(theme.name for theme in THEMES), THEMES[0].name]


async def test_help_opens_from_everywhere_and_closes_by_its_own_key(pilot: Pilot[Any]) -> None:
    for key in ("escape", "q", "question_mark"):
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, TextScreen)
        assert "why this class, score and rank" in screen_text(pilot)
        await press(pilot, "j", "G", "g", key)
        assert isinstance(pilot.app.screen, MainScreen)


async def test_the_palette_runs_actions_of_the_screen(pilot: Pilot[Any]) -> None:
    await press(pilot, "ctrl+p")
    await type_text(pilot, "risk")
    await pilot.pause()
    await press(pilot, "enter")
    await pilot.pause()
    assert main_of(pilot).view.at_risk


async def test_enter_and_d_explain_e_edits(pilot: Pilot[Any]) -> None:
    for key in ("enter", "d"):
        await press(pilot, key)
        assert isinstance(pilot.app.screen, ExplainScreen)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MainScreen)
    await press(pilot, "e")
    assert isinstance(pilot.app.screen, EditScreen)
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_the_mouse_takes_rows_opens_them_sorts_and_changes_panes(pilot: Pilot[Any]) -> None:
    screen = main_of(pilot)
    await pilot.click("#pods", offset=(12, 4))
    assert screen.table.cursor == 2
    assert ALL[2] in why(pilot)
    await pilot.click("#pods", offset=(9, 1))
    assert screen.table.sorted_by == ("pod", False)
    assert names(pilot) == sorted(ALL)
    await pilot.click("#side-nodes", offset=(4, 3))
    await pilot.pause()
    assert names(pilot) == sorted(of_node("worker-2"))
    assert screen.focused is screen.side.nodes
    await pilot.click("#pods", offset=(12, 2), times=2)
    await pilot.pause()
    assert isinstance(pilot.app.screen, ExplainScreen)


async def test_the_foot_can_be_clicked(pilot: Pilot[Any]) -> None:
    await pilot.click("FooterKey", offset=(1, 0))
    await pilot.pause()
    assert not isinstance(pilot.app.screen, EditScreen)
    keys = [key for key in pilot.app.screen.query("FooterKey") if getattr(key, "key", "") == "d"]
    await pilot.click(keys[0])
    await pilot.pause()
    assert isinstance(pilot.app.screen, ExplainScreen)


async def test_resizing_changes_the_layout_and_keeps_the_cursor(pilot: Pilot[Any]) -> None:
    await press(pilot, "j", "j", "j")
    screen = main_of(pilot)
    for size in ((80, 24), (59, 24), (120, 14), (60, 15), (200, 60), (20, 3), (1, 1), (120, 36)):
        await pilot.resize_terminal(*size)
        await pilot.pause()
        assert screen.table.cursor == 3
    assert len(names(pilot)) == 60


@pytest.mark.parametrize("size", [(59, 24), (120, 14)])
async def test_a_terminal_that_is_too_small_gets_a_sentence(size: tuple[int, int]) -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=size) as pilot:
        await settled(pilot)
        assert "60 columns and 15 lines are needed" in words(pilot)
        assert "api-7d9c5b6f8" not in screen_text(pilot)


async def test_an_empty_scope_says_so() -> None:
    async with QosApp(DemoSource(), Scope(namespace="nope")).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "There are no pods in namespace nope of demo." in screen_text(pilot)


async def test_notes_are_on_the_screen_and_whole_behind_a_key() -> None:
    notes = ["a.yaml: document 2: not a list", "b.yaml: empty"]
    async with QosApp(DemoSource(), Scope(), notes=notes).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "note: a.yaml: document 2: not a list  (n: 1 more)" in screen_text(pilot)
        await press(pilot, "n")
        assert "b.yaml: empty" in screen_text(pilot)


async def test_ages_are_counted_from_the_clock_of_the_source(pilot: Pilot[Any]) -> None:
    assert DemoSource().now() == DEMO_TIME
    assert "usage 12s old" in screen_text(pilot)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_keys_that_leave(pilot: Pilot[Any], key: str) -> None:
    await press(pilot, key)
    assert pilot.app._exit
    assert pilot.app.return_code == 0


async def test_ctrl_c_leaves_while_something_is_typed(pilot: Pilot[Any]) -> None:
    await press(pilot, "slash", "a", "ctrl+c")
    assert pilot.app._exit
