"""Lists that take long are built in a thread: what is shown meanwhile, and afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.base import ListCache, ListQuery, ListRows
from kubectl_qos.tui.lists.groups import NamespaceList, NodeList, WorkloadList
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import Run, ScriptedSource, demo, running, without

SLOW = (NodeList, NamespaceList, WorkloadList)


class Gate:
    """Work that waits in its thread until it is let through, one piece after the other."""

    def __init__(self) -> None:
        self.requested: list[tuple[ViewModel, View]] = []
        self.threads: list[str] = []
        self.through = threading.Semaphore(0)
        self.open = False
        self.failing = False

    def wait(self, view_model: ViewModel, view: View) -> None:
        self.requested.append((view_model, view))
        self.threads.append(threading.current_thread().name)
        if not self.open:
            assert self.through.acquire(timeout=120)
        if self.failing:
            raise RuntimeError("broken")

    def let(self) -> None:
        """One piece of work goes on."""
        self.through.release()

    def let_all(self) -> None:
        """Nothing waits any more."""
        self.open = True
        for _ in range(20):
            self.through.release()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Nodes, namespaces and workloads wait at it."""
    found = Gate()
    for definition in SLOW:
        honest = definition.build

        def build(
            self: Any, view_model: ViewModel, view: View, before: ListRows | None, honest: Any = honest
        ) -> ListRows:
            found.wait(view_model, view)
            built: ListRows = honest(self, view_model, view, before)
            return built

        monkeypatch.setattr(definition, "build", build)
    yield found
    found.let_all()
    for thread in [one for one in threading.enumerate() if one.name == "qos-worker"]:
        thread.join(20)


def view_model(without_pod: str = "") -> ViewModel:
    snapshot = without(demo(), without_pod) if without_pod else demo()
    return build_view_model(snapshot, Scope(), DEMO_TIME)


LISTS = list_definitions(Trends())
NODES, NAMESPACES, PODS = LISTS[ListKind.NODES], LISTS[ListKind.NAMESPACES], LISTS[ListKind.PODS]
ALL_NODES = ListQuery(NODES, View(ListKind.NODES))


def build(lists: ListCache, query: ListQuery, now: ViewModel) -> QosError | None:
    """Build in this thread what a thread would build."""
    work = lists.work_for(query, now)
    assert work is not None
    return lists.take(work())


def names_in(rows: ListRows | None) -> list[str]:
    return [str(row.key) for row in rows.rows] if rows is not None else []


def test_pods_are_there_at_once() -> None:
    lists, now, query = ListCache(), view_model(), ListQuery(PODS, View())
    rows = lists.rows(query, now)
    assert rows is not None
    assert len(rows.rows) == 60
    assert lists.work_for(query, now) is None
    assert lists.build(now) is None


def test_the_pods_of_a_view_are_selected_once_and_those_of_older_view_models_are_not_kept() -> None:
    lists, old, new = ListCache(), view_model(), view_model("db-0")
    shop, data = View(namespace="shop"), View(namespace="data")
    rows = lists.rows(ListQuery(PODS, shop.unfiltered), old)
    assert rows is not None
    assert lists.rows(ListQuery(PODS, replace(shop, at_risk=True, wide=True).unfiltered), old) is rows
    for now, view in ((old, data), (new, data), (new, shop), (old, shop)):
        other = lists.rows(ListQuery(PODS, view.unfiltered), now)
        assert other is not None
        assert sorted(row.key for row in other.rows) == sorted(row.key for row in view.pod_rows(now))
    lists.rows(ALL_NODES, new)
    assert lists._quick is None, "they would keep every pod that there was"


def test_a_list_is_built_once() -> None:
    lists, now = ListCache(), view_model()
    query = ListQuery(NAMESPACES, View(ListKind.NAMESPACES))
    assert lists.rows(query, now) is None
    assert build(lists, query, now) is None
    rows = lists.rows(query, now)
    assert "shop" in names_in(rows)
    narrowed = ListQuery(NAMESPACES, View(ListKind.NAMESPACES, at_risk=True, wide=True).unfiltered)
    assert lists.rows(narrowed, now) is rows
    assert lists.work_for(narrowed, now) is None


def test_rows_of_an_older_view_model_stay_until_an_update_brings_newer_ones() -> None:
    lists, old, new = ListCache(), view_model(), view_model("db-0")
    assert lists.build(old) is None, "nothing is shown yet"
    lists.rows(ALL_NODES, old)
    build(lists, ALL_NODES, old)
    first = lists.rows(ALL_NODES, old)
    assert lists.rows(ALL_NODES, new) is first
    update = lists.build(new)
    assert update is not None
    assert lists.take(update, is_update=True) is None
    second = lists.rows(ALL_NODES, new)
    assert second is not first
    assert second is not None
    assert second.rows == NODES.build(new, View(ListKind.NODES), None).rows
    assert lists.work_for(ALL_NODES, new) is None, "no thread but the follower's has to build it"


def test_an_update_replaces_what_is_being_built_from_an_older_view_model() -> None:
    lists, old, new = ListCache(), view_model(), view_model("db-0")
    lists.rows(ALL_NODES, old)
    slow = lists.work_for(ALL_NODES, old)
    assert slow is not None
    update = lists.build(new)
    assert update is not None
    lists.take(update, is_update=True)
    newer = lists.rows(ALL_NODES, new)
    assert newer is not None
    lists.take(slow())
    assert lists.rows(ALL_NODES, new) is newer


def test_another_view_never_shows_the_rows_of_this_one() -> None:
    lists, now = ListCache(), view_model()
    workloads = LISTS[ListKind.WORKLOADS]
    shop = ListQuery(workloads, View(ListKind.WORKLOADS, namespace="shop"))
    data = ListQuery(workloads, View(ListKind.WORKLOADS, namespace="data"))
    assert lists.rows(shop, now) is None
    work = lists.work_for(shop, now)
    assert work is not None
    assert lists.rows(data, now) is None
    assert lists.work_for(data, now) is None, "one at a time"
    lists.take(work())
    assert lists.rows(data, now) is None, "the list was another one"
    build(lists, data, now)
    rows = lists.rows(data, now)
    assert rows is not None
    assert {row.key.namespace for row in rows.rows} == {"data"}


def test_an_error_is_returned_once_and_the_list_can_be_chosen_again(gate: Gate) -> None:
    lists, now = ListCache(), view_model()
    gate.open = gate.failing = True
    lists.rows(ALL_NODES, now)
    assert "broken" in str(build(lists, ALL_NODES, now))
    assert lists.rows(ALL_NODES, now) is None
    assert lists.work_for(ALL_NODES, now) is None, "it would fail again and again"
    gate.failing = False
    lists.rows(ListQuery(PODS, View()), now)
    assert lists.rows(ALL_NODES, now) is None
    assert build(lists, ALL_NODES, now) is None
    assert lists.rows(ALL_NODES, now) is not None


def test_after_clearing_nothing_older_is_shown_or_taken() -> None:
    lists, old, new = ListCache(), view_model(), view_model("db-0")
    lists.rows(ALL_NODES, old)
    late = lists.work_for(ALL_NODES, old)
    assert late is not None
    lists.clear()
    assert lists.rows(ALL_NODES, new) is None
    lists.take(late())
    assert lists.rows(ALL_NODES, new) is None
    build(lists, ALL_NODES, new)
    rows = lists.rows(ALL_NODES, new)
    assert rows is not None
    assert rows.rows == NODES.build(new, View(ListKind.NODES), None).rows
    lists.clear()
    assert lists.rows(ALL_NODES, new) is None


async def waits_for(pilot: Run, gate: Gate, number: int) -> None:
    await pilot.until(lambda: len(gate.requested) == number)


def rows(pilot: Run) -> Sequence[Any]:
    return pilot.main.table.rows


def row(pilot: Run) -> Any:
    return pilot.main.table.row


async def test_while_a_list_is_worked_out_it_says_so_and_the_last_key_counts(gate: Gate) -> None:
    async with running(ScriptedSource(demo()), "2") as pilot:
        await waits_for(pilot, gate, 1)
        assert "Building the list …" in pilot.text
        for key in ("d", "e", "i", "c", "x", "space", "s", "S", "z", "z", "w", "w", "enter", "G", "n", "j"):
            await pilot.keys(key)
        await pilot.keys("1")
        assert not rows(pilot)
        await pilot.keys("3")
        assert not rows(pilot)
        gate.let()
        await waits_for(pilot, gate, 2)
        assert not rows(pilot), "namespaces are not what is wanted any more"
        assert pilot.main.view.kind is ListKind.WORKLOADS
        gate.let()
        await pilot.until(lambda: bool(rows(pilot)))
        assert sum(one.pods for one in rows(pilot)) == 58, "two of the 60 have ended"
        assert [view.kind for _, view in gate.requested] == [ListKind.NAMESPACES, ListKind.WORKLOADS]


async def test_an_update_comes_with_its_list_from_the_thread_that_follows(gate: Gate) -> None:
    source = ScriptedSource(demo(), without(demo(), "db-0"), without(demo(), "db-1"))
    async with running(source) as pilot:
        gate.open = True
        await pilot.keys("3")
        await pilot.until(lambda: bool(rows(pilot)))
        assert gate.threads == ["qos-worker"]
        for number in (2, 3):
            await pilot.keys("r")
            await waits_for(pilot, gate, number)
            await pilot.settled()
            assert gate.requested[-1] == (pilot.app.view_model, View(ListKind.WORKLOADS))  # type: ignore[attr-defined]
            assert sum(one.pods for one in rows(pilot)) == 57
        assert gate.threads == ["qos-worker", "qos-follower", "qos-follower"]


async def test_a_list_that_comes_while_another_screen_is_open_is_there_afterwards(gate: Gate) -> None:
    async with running(ScriptedSource(demo()), "2") as pilot:
        await waits_for(pilot, gate, 1)
        await pilot.keys("question_mark")
        gate.let_all()
        await pilot.until(lambda: bool(rows(pilot)))
        await pilot.keys("escape")
        assert "namespace shop: " in " ".join(pilot.text.split())


async def test_leaving_does_not_wait_for_a_list(gate: Gate) -> None:
    async with running(ScriptedSource(demo()), "1", size=(80, 24)) as pilot:
        await waits_for(pilot, gate, 1)
        await pilot.keys("q")
    assert pilot.app.return_code == 0
    waiting = [thread for thread in threading.enumerate() if thread.name == "qos-worker"]
    assert waiting
    assert all(thread.daemon for thread in waiting)
    gate.let_all()
    for thread in waiting:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive()


async def test_a_list_that_cannot_be_built_is_said_and_the_others_go_on(gate: Gate) -> None:
    async with running(ScriptedSource(demo())) as pilot:
        gate.failing = gate.open = True
        await pilot.keys("2")
        await pilot.until(lambda: bool(pilot.notifications))
        (said,) = pilot.notifications
        assert said.startswith("unexpected RuntimeError: broken")
        gate.failing = False
        await pilot.keys("3")
        await pilot.until(lambda: bool(rows(pilot)))
        await pilot.keys("2")
        await pilot.until(lambda: bool(rows(pilot)))


async def test_another_cluster_is_never_shown_with_the_rows_of_the_one_before(gate: Gate) -> None:
    source = ScriptedSource(demo())
    async with running(source) as pilot:
        gate.let()
        await pilot.keys("2")
        await pilot.until(lambda: bool(rows(pilot)))
        app = pilot.app
        assert isinstance(app, QosApp)
        app.view_model = None
        await pilot.pause()
        app.view_model = view_model("db-0")
        await waits_for(pilot, gate, 2)
        assert not rows(pilot)
