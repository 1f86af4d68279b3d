"""Pods that arrive: what the UI shows before all of them are there, and what it refuses until then."""

from __future__ import annotations

import threading
from dataclasses import replace
from queue import Queue

import pytest

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.source import LIVE, Health, Update, UpdateStream
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Arrived, PodsByNode, Scope, Snapshot
from kubectl_qos.tui import follower
from kubectl_qos.tui.follower import Updated, message_for_update
from kubectl_qos.tui.lists.base import BuiltList
from kubectl_qos.tui.lists.pods import NO_RANK_YET
from kubectl_qos.tui.view import RowCounts, View, list_title
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import API, ScriptedSource, demo, pod_named, running, without

ARRIVED = Arrived(12_400, 20_000, 81_300_000)


class Pushed(UpdateStream):
    """Updates that a test pushes."""

    def __init__(self) -> None:
        self.updates: Queue[Update | None] = Queue()
        self.current = LIVE

    def next(self) -> Update | None:
        return self.updates.get()

    def health(self) -> Health:
        return self.current

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        self.updates.put(None)


class PushedSource(ScriptedSource):
    def __init__(self) -> None:
        super().__init__(demo())
        self.stream = Pushed()

    def follow(self, scope: Scope) -> UpdateStream:
        del scope
        return self.stream

    def push(self, snapshot: Snapshot, arrived: Arrived | None) -> None:
        self.stream.updates.put(Update(snapshot, Scope(), LIVE, DEMO_TIME, arrived=arrived))


def part() -> Snapshot:
    """The demo as it arrives, without its next victim."""
    pods = {node: tuple([pod for pod in pods if pod.name != API]) for node, pods in demo().by_node().items()}
    return replace(demo(), pods=PodsByNode(pods))


def test_rows_that_arrive_have_scores_and_no_ranks() -> None:
    whole = build_view_model(demo(), Scope(), DEMO_TIME)
    model = build_view_model(part(), Scope(), DEMO_TIME, arrived=ARRIVED)
    rows = model.rows.rows
    assert {row.rank for row in rows} == {row.eviction_rank for row in rows} == {None}
    scores = {row.key: row.score for row in whole.rows.rows}
    assert all(row.score == scores[row.key] for row in rows), "a score does not depend on other pods"
    assert [row.key for row in rows] == [row.key for row in whole.rows.rows if row.name != API]
    used = {group.key: group.used for group in whole.nodes}
    assert {group.key: group.used for group in model.nodes} == used, "NodeMetrics has that of all pods"
    assert set(model.by_node) == set(whole.by_node)


def test_what_is_whole_owes_nothing_to_what_had_arrived() -> None:
    before = build_view_model(demo(), Scope(), DEMO_TIME, arrived=ARRIVED)
    whole = build_view_model(before.snapshot, Scope(), DEMO_TIME, before=before)
    fresh = build_view_model(before.snapshot, Scope(), DEMO_TIME)
    assert (whole.rows.rows, whole.nodes, whole.arrived) == (fresh.rows.rows, fresh.nodes, None)


def test_the_title_says_how_much_has_arrived() -> None:
    title = list_title(View(), RowCounts(12_399, 12_400, ended=2, arrived=ARRIVED), "RANK")
    assert title == "all nodes / all namespaces  12,400 of 20,000 pods, 81 MB so far  ━━━╸    in kill order"
    title = list_title(View(), RowCounts(500, 500, arrived=Arrived(500, None, 3_400_000)), "RANK")
    assert title == "all nodes / all namespaces  500 pods, 3 MB so far  in kill order"


def test_the_pod_to_edit_is_looked_for_among_all_pods() -> None:
    update = Update(part(), Scope(), LIVE, DEMO_TIME, arrived=ARRIVED)
    message = message_for_update(update, None, lambda snapshot: pod_named(snapshot, API))
    assert isinstance(message, Updated)
    assert message.target is None


async def test_pods_are_shown_as_they_arrive() -> None:
    source = PushedSource()
    source.push(part(), ARRIVED)
    async with running(source, ready=False) as pilot:
        await pilot.until(lambda: API not in pilot.names and len(pilot.names) > 50)
        assert "12,400 of 20,000 pods, 81 MB so far" in pilot.text
        assert "loading …" in pilot.text
        assert {row.rank for row in pilot.main.table.rows} == {None}
        assert " ~ " in pilot.text
        assert NO_RANK_YET in pilot.words
        first = pilot.names[0]
        await pilot.keys("d")
        assert pilot.screen_name == "MainScreen"
        await pilot.keys("o")
        assert pilot.screen_name == "MainScreen"
        assert pilot.notifications[-1] == "12,400 of 20,000 pods, 81 MB so far: this needs all of them"
        await pilot.keys("1")
        assert "12,400 of 20,000 pods, 81 MB so far: this list needs all of them." in pilot.words
        await pilot.keys("4")
        source.push(demo(), None)
        await pilot.until(lambda: API in pilot.names)
        row = pilot.main.table.row
        assert row is not None
        assert (row.name, row.rank) == ("importer-5f7b9c-2vtxk", 8), "the cursor begins on who dies first"
        assert first != API
        assert "so far" not in pilot.text
        await pilot.keys("d")
        await pilot.until(lambda: pilot.screen_name == "ExplainScreen")


async def test_it_is_stale_and_live_again_while_an_update_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 20,000 pods that takes seconds, and after it the follower rests: the title does not wait."""
    goes_on = threading.Event()
    source = PushedSource()
    async with running(source, ready=False) as pilot:
        source.push(demo(), None)
        await pilot.settled()
        build = pilot.qos._follower._build_list

        def slow(model: ViewModel) -> BuiltList | None:
            assert goes_on.wait(60)
            return build(model)

        monkeypatch.setattr(pilot.qos._follower, "_build_list", slow)
        source.push(demo(), None)
        source.stream.current = Health(QosError("timed out"), DEMO_TIME)
        await pilot.seen("! stale since 12:00:00 UTC")
        await pilot.seen("! timed out")
        source.stream.current = LIVE
        await pilot.until(lambda: "stale" not in pilot.text and "timed out" not in pilot.text)
        goes_on.set()


async def test_a_rest_ends_when_the_cluster_is_live_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the time before are not shown as live for longer than it takes to compute new ones."""
    monkeypatch.setattr(follower, "BATCH_SECONDS", 600.0)
    source = PushedSource()
    async with running(source, ready=False) as pilot:
        source.push(demo(), None)
        await pilot.settled()
        source.stream.current = Health(QosError("timed out"), DEMO_TIME)
        await pilot.seen("! timed out")
        source.push(without(demo(), API), None)
        source.stream.current = LIVE
        await pilot.until(lambda: len(pilot.names) == 59)
