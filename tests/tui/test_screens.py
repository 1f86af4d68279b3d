"""Pictures of every screen, compared with those in snapshots/tui (--snapshot-update renews them)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.k8s.snapshot import Missing, Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.themes import THEMES
from tests.tui.sources import ScriptedSource, demo, press, settled, type_text, until

Size = tuple[int, int]
Compare = Callable[..., bool]
Steps = Callable[[Pilot[Any]], Awaitable[None]]

BOTH = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


def keys(*pressed: str) -> Steps:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, *pressed)

    return steps


def demo_app() -> QosApp:
    return QosApp(DemoSource(), Scope())


@pytest.mark.parametrize(
    "size", [(80, 24), (100, 30), (120, 40), (200, 60)], ids=["80x24", "100x30", "120x40", "200x60"]
)
def test_main(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys())


@BOTH
def test_one_node(snap_compare: Compare, size: Size) -> None:
    steps = keys("tab", "j", "enter", "j", "space")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_panes_of_a_narrow_terminal(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("tab", "j", "tab", "j"))


@BOTH
def test_wide_scrolled(snap_compare: Compare, size: Size) -> None:
    steps = keys("w", "right", "right", "right", "s", "S")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_while_typing(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "shop")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_that_is_wrong(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "-l app=a b")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_without_a_hit(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "nothing-like-this")
        await press(pilot, "enter")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_going_to_a_place(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "colon")
        await type_text(pilot, "pods sh")
        await pilot.pause(0.1)

    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=steps)


@BOTH
def test_explain(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("d"))


def test_explain_folded(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("d", "z", "tab", "enter"))


@BOTH
def test_compare(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "u")
        await type_text(pilot, "1.37 memory=32Gi")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_tree(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("v"))


def opened(name: str, *pressed: str) -> Steps:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, name)
        await press(pilot, "enter", "e", *pressed)

    return steps


@BOTH
def test_edit_unchanged(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=opened("api-7d9c5b6f8-x2mzq"))


@BOTH
def test_edit_changed(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_made_guaranteed(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "ctrl+g")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_wrong_quantity(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "x")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_what_a_server_refuses(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "3", "G", "i")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_pod_level(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=opened("trainer-gpu", "tab", "1", "G"))


@BOTH
def test_patch(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "ctrl+s")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_manifest(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await opened("api-7d9c5b6f8-x2mzq", "ctrl+g", "ctrl+s", "m")(pilot)
        await until(pilot, lambda: getattr(pilot.app.screen, "text", None) is not None)

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_question_before_leaving(snap_compare: Compare) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "escape")
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=steps)


def test_question_for_a_file_name(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("x"))


@BOTH
def test_help(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("question_mark"))


def test_help_further_down(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(120, 40), run_before=keys("question_mark", "G"))


@BOTH
def test_loading(snap_compare: Compare, size: Size) -> None:
    source = ScriptedSource(demo())
    source.hold.clear()

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.pause()

    try:
        assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=steps)
    finally:
        source.hold.set()


REFUSED = ServerUnreachable(
    "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
    hint="kubectl config get-contexts lists the clusters that are configured",
)


@BOTH
def test_no_answer(snap_compare: Compare, size: Size) -> None:
    app = QosApp(ScriptedSource(REFUSED), Scope())
    assert snap_compare(app, terminal_size=size, run_before=keys())


@BOTH
def test_stale(snap_compare: Compare, size: Size) -> None:
    source = ScriptedSource(demo(), REFUSED)

    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        source.later(75)
        await press(pilot, "r")
        await settled(pilot)

    assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=steps)


@BOTH
def test_empty_cluster(snap_compare: Compare, size: Size) -> None:
    app = QosApp(DemoSource(), Scope(namespace="nothing-here"))
    assert snap_compare(app, terminal_size=size, run_before=keys())


@BOTH
def test_without_usage_and_capacity(snap_compare: Compare, size: Size) -> None:
    missing = Missing("memory usage", "Metrics API not available", "install metrics-server")
    source = ScriptedSource(replace(demo(), usage={}, nodes={}, missing=(missing,)))
    assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=keys())


def test_too_small(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(59, 14), run_before=keys())


def test_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(demo_app(), terminal_size=(120, 40), run_before=keys("j", "space"))


@pytest.mark.parametrize("name", [theme.name for theme in THEMES[1:]])
def test_theme(snap_compare: Compare, name: str) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        pilot.app.theme = name
        await pilot.pause()

    assert snap_compare(demo_app(), terminal_size=(120, 40), run_before=steps)
