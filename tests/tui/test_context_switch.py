"""Going from one cluster to another without leaving the UI."""

from __future__ import annotations

import threading
from typing import Any

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.config.state import UiState
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.search import SelectDialog
from kubectl_qos.tui.shell import ContextSwitch
from kubectl_qos.tui.view import ListKind, View, view_values
from tests.tui.sources import Run, ScriptedSource, demo, running, with_usage, without
from tests.tui.test_past import Store


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

    def open(self, name: str | None) -> Source:
        if name not in self.sources:
            raise QosError(f'context "{name}" does not exist', hint="--context takes one of: prod, test")
        return self.sources[name]

    def app(self, **options: Any) -> QosApp:
        contexts = ContextSwitch(self.names, self.open, lambda _: Store())
        return QosApp(self.sources["prod"], Scope(), contexts=contexts, **options)


def under_cursor(pilot: Run) -> str:
    row = pilot.main.table.row
    return row.name if row is not None else ""


def said(pilot: Run) -> str:
    return " ".join(pilot.notifications)


async def test_another_context_is_chosen_among_those_that_there_are() -> None:
    async with running(Clusters().app()) as pilot:
        await pilot.go_to("ctx")
        await pilot.keys("escape")
        assert len(pilot.main.table.rows) == 60
        assert "kubectl qos  prod" in pilot.text
        # A context that cannot be opened leaves everything as it is.
        await pilot.go_to("ctx gone")
        await pilot.until(lambda: 'context "gone" does not exist; --context takes' in said(pilot))
        assert len(pilot.main.table.rows) == 60
        # Another context is chosen among those that there are.
        await pilot.go_to("ctx")
        assert isinstance(pilot.app.screen, SelectDialog)
        assert "> prod" in pilot.text, "where we are"
        await pilot.keys("j", "enter")
        await pilot.until(lambda: len(pilot.main.table.rows) == 59)
        assert "kubectl qos  test" in pilot.text
        await pilot.go_to("ctx prod")
        await pilot.until(lambda: len(pilot.main.table.rows) == 60)
        # Screens of the other cluster read the other cluster.
        await pilot.go_to("ctx test")
        await pilot.until(lambda: len(pilot.main.table.rows) == 59)
        for key in ("d", "e", "v", "u"):
            await pilot.keys(key)
            assert "crunch-x2k9f" in pilot.text, "the next victim where api is gone"
            await pilot.keys("escape")


async def test_without_a_kubeconfig_there_is_nowhere_to_go() -> None:
    async with running(ScriptedSource(demo()), size=(120, 30)) as pilot:
        await pilot.go_to("ctx")
        assert "scripted has no other contexts" in said(pilot)


async def test_a_late_answer_of_the_context_that_was_left_is_dropped() -> None:
    clusters = Clusters()
    slow = clusters.sources["prod"]
    app = clusters.app()
    async with running(app) as pilot:
        slow.hold.clear()
        try:
            await pilot.keys("r")
            await pilot.go_to("ctx test")
            await pilot.until(lambda: app.view_model is not None and len(pilot.main.table.rows) == 59)
        finally:
            slow.hold.set()
        await pilot.until(lambda: [one.name for one in threading.enumerate()].count("qos-follower") == 1)
        await pilot.pause()
        assert len(pilot.main.table.rows) == 59


async def test_trends_are_of_one_cluster() -> None:
    clusters = Clusters()
    grown = with_usage(demo(), "crunch-", 2 << 30)
    clusters.sources["prod"].answers = [demo(), with_usage(demo(), "crunch-", 3 << 30)]
    clusters.sources["test"].answers = [grown]
    app = clusters.app()
    async with running(app, "r") as pilot:
        await pilot.until(lambda: bool(app.trends.of(("batch", "crunch-x2k9f"))))
        await pilot.go_to("ctx test")
        await pilot.until(lambda: app.view_model is not None and app.source.title == "test")
        assert not app.trends.of(("batch", "crunch-x2k9f"))


async def test_each_context_shows_what_was_last_shown_of_it_and_keeps_its_own_rules() -> None:
    state = UiState().with_view("test", view_values(View(ListKind.NODES)))
    said = UserSettings(contexts={"test": ContextSettings(readonly=True)})
    clusters = Clusters()
    app = clusters.app(state=state, settings=said)
    async with running(app) as pilot:
        assert not app.readonly
        await pilot.keys("5")
        hold = clusters.sources["test"].hold
        hold.clear()
        await pilot.go_to("ctx test")
        await pilot.until(lambda: pilot.main.view.kind is ListKind.NODES)
        assert app.status.loading
        hold.set()
        await pilot.settled()
        assert app.readonly
        await pilot.keys("left_square_bracket")
        assert pilot.main.view.kind is ListKind.NODES, "history is of one cluster"
        await pilot.go_to("ctx prod")
        await pilot.until(lambda: pilot.main.view.kind is ListKind.CONTAINERS)


async def test_clusters_are_listed_with_their_failures_and_entered_and_each_keeps_its_rules() -> None:
    clusters = Clusters()
    own = {"test": ContextSettings(readonly=True), "prod": ContextSettings(confirm="name")}
    state = UiState().with_view("test", view_values(View(ListKind.NODES)))
    app = clusters.app(settings=UserSettings(contexts=own), state=state)
    prod, test = clusters.sources["prod"], clusters.sources["test"]

    def answered() -> bool:
        rows = pilot.main.table.rows
        return len(rows) == 3 and all(row.taken or row.error for row in rows)

    def listed() -> dict[str, Any]:
        return {row.name: row for row in pilot.main.table.rows}

    async with running(app, size=(120, 40)) as pilot:
        requests = len(prod.requested)
        await pilot.keys("5", "0")
        await pilot.until(answered)
        assert "clusters  3 clusters" in pilot.text
        assert 'context "gone" does not exist' in pilot.text, "a failure is said in its row"
        assert listed()["prod"].is_open
        assert under_cursor(pilot) == "prod", "the cursor is where we are"
        assert len(prod.requested) == requests, "the open cluster is not asked for what is followed"
        assert test.requested == [Scope()]
        # What cannot be gone into says so in its row, and covers nothing.
        await pilot.filter_by("gone")
        await pilot.keys("enter")
        await pilot.until(lambda: "gone cannot be opened: see below the list" in said(pilot))
        await pilot.keys("escape")
        pilot.main.table.move_to("prod")
        # Nothing is done with a row of another cluster: first one goes into it.
        await pilot.keys("e", "o", "K", "F")
        assert pilot.screen_name == "MainScreen"
        assert "e does nothing here" in said(pilot)
        await pilot.keys("?")
        await pilot.seen("In a list (here)")
        here = pilot.text.partition("In a list (here)")[2].partition("(here)")[0]
        assert "filter" in here
        assert "explain" not in here
        await pilot.keys("escape")
        # Into the open one: its last view, without connecting again.
        await pilot.keys("enter")
        assert pilot.main.view.kind is ListKind.CONTAINERS
        assert app.source is prod
        assert app.writing.confirms_by_name(app.source.title)
        # Back, and into the other one: the view that it was left with, and its own rules.
        await pilot.go_to("clusters")
        await pilot.until(lambda: len(test.requested) == 2)
        await pilot.filter_by("test")
        await pilot.keys("enter")
        await pilot.until(lambda: app.source is test and app.view_model is not None)
        assert str(pilot.main.view.kind) == "nodes"
        assert app.readonly
        assert not app.writing.confirms_by_name("test")
        await pilot.keys("0")
        await pilot.until(lambda: listed()["test"].is_open and not listed()["prod"].is_open)


async def test_a_cluster_that_fails_can_be_left_through_the_list_and_one_alone_says_so() -> None:
    clusters = Clusters()
    clusters.sources["prod"].answers = [QosError("no route to host")]
    async with running(clusters.app(), size=(120, 40)) as pilot:
        await pilot.keys("0")
        await pilot.until(lambda: any(row.taken for row in pilot.main.table.rows))
        assert under_cursor(pilot) == "prod"
        await pilot.seen("prod: no route to host")
        assert "r retries, as every 60s; kubectl get nodes --context prod shows" in pilot.words
        await pilot.keys("g", "enter")
        await pilot.until(lambda: len(pilot.main.side.nodes.rows) > 1)
        # Where nothing is known, nothing of the cluster before is left.
        await pilot.go_to("ctx prod")
        await pilot.until(lambda: [row.key for row in pilot.main.side.nodes.rows] == [None])
    async with running(ScriptedSource(demo()), "0", size=(120, 30)) as pilot:
        await pilot.seen("scripted has no other contexts: this list is of one cluster")
        assert [row.name for row in pilot.main.table.rows] == ["scripted"]
