"""Going from one cluster to another without leaving the UI."""

from __future__ import annotations

import threading
from typing import Any

from textual.pilot import Pilot

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import ContextSettings, Settings
from kubectl_qos.config.state import UiState
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.app import ContextSwitch, QosApp
from kubectl_qos.tui.screens.search import SelectDialog
from kubectl_qos.tui.view import ListKind, View, view_values
from tests.tui.sources import (
    ScriptedSource,
    demo,
    main_of,
    press,
    screen_text,
    settled,
    type_text,
    until,
    with_usage,
    without,
)


def source(title: str, snapshot: Snapshot) -> ScriptedSource:
    found = ScriptedSource(snapshot)
    found.title = title
    return found


class Clusters:
    """Two that answer, and one that nobody reaches."""

    def __init__(self) -> None:
        self.sources = {
            "prod": source("prod", demo()),
            "test": source("test", without(demo(), "api-7d9c5b6f8-x2mzq")),
        }

    def names(self) -> tuple[str, ...]:
        return ("gone", "prod", "test")

    def open(self, name: str) -> Source:
        if name not in self.sources:
            raise QosError(f'context "{name}" does not exist', hint="--context takes one of: prod, test")
        return self.sources[name]

    def app(self, **options: Any) -> QosApp:
        contexts = ContextSwitch(self.names, self.open)
        return QosApp(self.sources["prod"], Scope(), contexts=contexts, **options)


async def go_to(pilot: Pilot[Any], text: str) -> None:
    await press(pilot, "colon")
    await type_text(pilot, text)
    await press(pilot, "enter")


def said(pilot: Pilot[Any]) -> str:
    return " ".join(one.message for one in pilot.app._notifications)


async def test_another_context_is_chosen_among_those_that_there_are() -> None:
    clusters = Clusters()
    async with clusters.app().run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ctx")
        assert isinstance(pilot.app.screen, SelectDialog)
        assert "> prod" in screen_text(pilot), "where we are"
        await press(pilot, "j", "enter")
        await until(pilot, lambda: len(main_of(pilot).table.rows) == 59)
        assert "kubectl qos  test" in screen_text(pilot)
        await go_to(pilot, "ctx prod")
        await until(pilot, lambda: len(main_of(pilot).table.rows) == 60)


async def test_escape_stays() -> None:
    async with Clusters().app().run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ctx")
        await press(pilot, "escape")
        assert len(main_of(pilot).table.rows) == 60
        assert "kubectl qos  prod" in screen_text(pilot)


async def test_a_context_that_cannot_be_opened_leaves_everything_as_it_is() -> None:
    async with Clusters().app().run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ctx gone")
        await until(pilot, lambda: 'context "gone" does not exist; --context takes' in said(pilot))
        assert len(main_of(pilot).table.rows) == 60


async def test_without_a_kubeconfig_there_is_nowhere_to_go() -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ctx")
        assert "scripted has no other contexts" in said(pilot)


async def test_a_late_answer_of_the_context_that_was_left_is_dropped() -> None:
    clusters = Clusters()
    slow = clusters.sources["prod"]
    app = clusters.app()
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        slow.hold.clear()
        try:
            await press(pilot, "r")
            await go_to(pilot, "ctx test")
            await until(pilot, lambda: app.view_model is not None and len(main_of(pilot).table.rows) == 59)
        finally:
            slow.hold.set()
        await until(pilot, lambda: [one.name for one in threading.enumerate()].count("qos-follower") == 1)
        await pilot.pause()
        assert len(main_of(pilot).table.rows) == 59


async def test_trends_are_of_one_cluster() -> None:
    clusters = Clusters()
    grown = with_usage(demo(), "crunch-", 2 << 30)
    clusters.sources["prod"].answers = [demo(), with_usage(demo(), "crunch-", 3 << 30)]
    clusters.sources["test"].answers = [grown]
    app = clusters.app()
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: bool(app._trends.of(("batch", "crunch-x2k9f"))))
        await go_to(pilot, "ctx test")
        await until(pilot, lambda: app.view_model is not None and app.source.title == "test")
        assert not app._trends.of(("batch", "crunch-x2k9f"))


async def test_each_context_shows_what_was_last_shown_of_it_and_keeps_its_own_rules() -> None:
    state = UiState().with_view("test", view_values(View(ListKind.NODES)))
    said = Settings(contexts={"test": ContextSettings(readonly=True)})
    app = Clusters().app(state=state, settings=said)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert not app.readonly
        await press(pilot, "5")
        await go_to(pilot, "ctx test")
        await until(pilot, lambda: main_of(pilot).view.kind is ListKind.NODES)
        await settled(pilot)
        assert app.readonly
        await press(pilot, "left_square_bracket")
        assert main_of(pilot).view.kind is ListKind.NODES, "history is of one cluster"
        await go_to(pilot, "ctx prod")
        await until(pilot, lambda: main_of(pilot).view.kind is ListKind.CONTAINERS)


async def test_screens_of_the_other_cluster_ask_the_other_cluster() -> None:
    async with Clusters().app().run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "ctx test")
        await until(pilot, lambda: len(main_of(pilot).table.rows) == 59)
        for key in ("d", "e", "v", "u"):
            await press(pilot, key)
            assert "crunch-x2k9f" in screen_text(pilot), "the next victim where api is gone"
            await press(pilot, "escape")
