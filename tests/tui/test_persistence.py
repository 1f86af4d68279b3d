"""What a person's settings change, and what is kept from one run to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import constants
from textual.widgets import Input

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.config.state import UiState, load_state, save_state
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.explain import CollapsibleTitle
from kubectl_qos.tui.start import settings
from kubectl_qos.tui.themes import ANSI, THEMES
from kubectl_qos.tui.view import ListKind, View, view_from_values, view_values
from tests.tui.sources import running

LAST = THEMES[-1].name


async def left_after(
    *keys: str, state: UiState | None = None, typed: str = "", said: UserSettings | None = None
) -> UiState:
    """The state that a run leaves which begins with one, after some keys."""
    app = QosApp(DemoSource(), Scope(), state=state or UiState(), settings=said or UserSettings())
    async with running(app, *keys, size=(160, 40)) as pilot:
        if typed:
            await pilot.type(typed)
            await pilot.keys("enter")
        await pilot.keys("ctrl+c")
    return app.state


def opened(state: UiState, said: UserSettings | None = None, **options: Any) -> QosApp:
    return QosApp(DemoSource(), Scope(), state=state, settings=said or UserSettings(), **options)


async def test_the_next_run_begins_where_this_one_ended(tmp_path: Path) -> None:
    left = await left_after("tab", "j", "enter", "s", "s", "S", "t", "3", "w")
    assert save_state(tmp_path / "state.json", left)
    app = opened(load_state(tmp_path / "state.json"))
    async with running(app, size=(160, 40)) as pilot:
        screen = pilot.main
        assert (screen.view.kind, screen.view.node) == (ListKind.WORKLOADS, "worker-2")
        assert screen.view.wide
        assert app.theme == THEMES[1].name
        assert screen.side.nodes.row is not None
        assert screen.side.nodes.row.key == "worker-2"
        assert screen.focused is screen.table
        await pilot.keys("4")
        assert screen.table.sorted_by == ("rank", False), "each run opens in kill order"


async def test_chosen_columns_and_lines_are_kept() -> None:
    left = await left_after("C", "space", "enter", "slash", typed="web")
    assert "rank" not in left.columns["pods"]
    assert left.filters == ("web",)
    left = await left_after("colon", state=left, typed="ns shop")
    assert (left.filters, left.places) == (("web",), ("ns shop",))
    app = opened(left)
    async with running(app, size=(160, 40)) as pilot:
        table = pilot.main.table
        assert tuple(column.key for column in table.columns.columns) == left.columns["pods"]
        await pilot.keys("slash", "up")
        assert "web" in pilot.text


async def test_what_does_not_exist_or_would_hide_something_is_not_kept() -> None:
    left = await left_after("slash", typed="zzz")
    async with running(opened(left)) as pilot:
        assert not pilot.main.view.filter


async def test_few_colours_are_the_terminals_own_and_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "COLOR_SYSTEM", "standard")
    light = UiState(theme="qos-light")
    assert opened(light).theme == ANSI.name
    assert opened(light, UserSettings(theme="qos-light")).theme == "qos-light"
    assert (await left_after(state=light)).theme == "qos-light"
    assert (await left_after("t", state=light)).theme == THEMES[0].name
    monkeypatch.setenv("NO_COLOR", "1")
    assert opened(light).theme == "qos-light"


async def test_a_node_that_is_gone_leads_to_all_of_them() -> None:
    gone = UiState().with_view("demo", view_values(View(node="worker-9")))
    async with running(opened(gone)) as pilot:
        await pilot.pause()
        assert pilot.main.view.node is None
        assert len(pilot.main.table.rows) == 60


@pytest.mark.parametrize("kept", [{"sort": {"pods": ("nope", True)}}, {"columns": {"pods": ("nope",)}}])
async def test_what_an_older_or_newer_version_kept_is_left_out(kept: dict[str, Any]) -> None:
    async with running(opened(UiState(theme="nope", **kept))) as pilot:
        table = pilot.main.table
        assert table.sorted_by == ("rank", False)
        assert pilot.app.theme == THEMES[0].name


@pytest.mark.parametrize(
    "view",
    [
        View(),
        View(ListKind.NODES),
        View(ListKind.CONTAINERS, "worker-1", "shop"),
        View(workload=Workload("Deployment", "shop", "api")),
    ],
)
def test_views_are_kept_as_json(view: View) -> None:
    assert view_from_values(view_values(view)) == view


@pytest.mark.parametrize(
    "values", [{}, {"kind": "nope"}, {"kind": "pods", "node": 3}, {"kind": "pods", "workload": ["x"]}]
)
def test_views_of_another_form_are_left_out(values: dict[str, Any]) -> None:
    assert view_from_values(values) is None


def test_flags_say_more_than_the_last_run() -> None:
    kept = UiState().with_view("demo", view_values(View(ListKind.NODES)))
    assert opened(kept).navigation.location.view.kind is ListKind.NODES
    shop = QosApp(DemoSource(), Scope(namespace="shop"), state=kept)
    assert shop.navigation.location.view.kind is ListKind.PODS
    assert opened(kept, UserSettings(view="workloads")).navigation.location.view.kind is ListKind.WORKLOADS


async def test_settings_choose_theme_columns_motion_and_keys() -> None:
    said = UserSettings(
        theme=LAST,
        columns=("pod", "trend", "age"),
        motion="reduced",
        keys={
            "main.explain": ("y",),
            "app.help": ("f1",),
            "table.last": ("f3",),
            "explain.fold": ("f6",),
            "search.leave": ("f9",),
        },
    )
    async with running(opened(UiState(theme=THEMES[1].name), said)) as pilot:
        screen = pilot.main
        assert pilot.app.theme == LAST
        assert pilot.app.animation_level == "none"
        assert [column.key for column in screen.table.columns.columns] == ["pod", "trend", "age"]
        await pilot.keys("d")
        assert pilot.app.screen is screen, "d has lost its meaning"
        await pilot.keys("f1")
        assert "y               explain: why this class, score and rank" in pilot.text
        await pilot.keys("escape", "y")
        assert pilot.app.screen is not screen
        await pilot.keys("f6")
        assert all(title.folded for title in pilot.app.screen.query(CollapsibleTitle))
        await pilot.keys("escape", "G")
        assert screen.table.cursor == 0
        await pilot.keys("f3", "f", "escape", "z")
        assert screen.table.cursor == len(screen.table.rows) - 1
        assert pilot.screen_name == "Finder", "z is typed, escape has lost its meaning"
        await pilot.keys("f9")
        assert pilot.app.screen is screen
        await pilot.keys("escape", "slash")
        assert not screen.query_one("#line", Input).cursor_blink


async def test_sentences_name_the_keys_that_there_are() -> None:
    said = UserSettings(keys={"main.at_risk": ("Z",)})
    async with running(opened(UiState(), said)) as pilot:
        pilot.main.go(View(node="worker-2", namespace="team-a"))
        await pilot.keys("Z")
        assert "Z shows all" in pilot.text


def test_contexts_say_whether_they_are_read_only() -> None:
    said = UserSettings(contexts={"demo": ContextSettings(readonly=True)})
    assert said.for_context("demo").readonly
    assert not said.for_context("other").readonly


def test_a_mistake_in_the_file_is_said_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("theme: qos-light\nkeys:\n  main.explain: e\n")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", str(path))
    with pytest.raises(InputError, match=r"line 3: main\.explain and main\.edit would both have the key e"):
        settings()
    path.write_text("keys:\n  main.explain: G\n")
    with pytest.raises(InputError, match=r"main\.explain and table\.last would both have the key G"):
        settings()
    path.write_text(f"theme: {LAST}\ncolumns: [pod, trend]\nview: nodes\n")
    assert settings().columns == ("pod", "trend")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "")
    assert settings() == UserSettings()
