"""Lists that take long are worked out in a thread: what is shown meanwhile, and what comes of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual.message import Message
from textual.message_pump import MessagePump
from textual.pilot import Pilot

from kubectl_qos.cluster.demo import DEMO_TIME
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.base import ListRows
from kubectl_qos.tui.lists.groups import NamespaceList, WorkloadList
from kubectl_qos.tui.lists.nodes import NodeList
from kubectl_qos.tui.lists.registry import listings
from kubectl_qos.tui.lists.table import ListBuilt, ListWorker
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import Trends, ViewModel, build_view_model
from tests.tui.sources import ScriptedSource, demo, main_of, press, screen_text, settled, until, without

SLOW = (NodeList, NamespaceList, WorkloadList)


class Gate:
    """Work that waits in its thread until it is let through, one piece after the other."""

    def __init__(self) -> None:
        self.asked: list[tuple[ViewModel, View]] = []
        self.through = threading.Semaphore(0)
        self.open = False
        self.failing = False

    def wait(self, facts: ViewModel, view: View) -> None:
        self.asked.append((facts, view))
        if not self.open:
            assert self.through.acquire(timeout=20)
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
    for listing in SLOW:
        honest = listing.work_out

        def work_out(
            self: Any, facts: ViewModel, view: View, before: ListRows | None, honest: Any = honest
        ) -> ListRows:
            found.wait(facts, view)
            worked_out: ListRows = honest(self, facts, view, before)
            return worked_out

        monkeypatch.setattr(listing, "work_out", work_out)
    yield found
    found.let_all()
    for thread in [one for one in threading.enumerate() if one.name == "qos-question"]:
        thread.join(20)


class Pump(MessagePump):
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[Message] = []
        self.came = threading.Semaphore(0)

    def post_message(self, message: Message) -> bool:
        self.posted.append(message)
        self.came.release()
        return True

    def next(self) -> ListBuilt:
        """The next answer."""
        assert self.came.acquire(timeout=20)
        message = self.posted.pop(0)
        assert isinstance(message, ListBuilt)
        return message


def facts(without_pod: str = "") -> ViewModel:
    snapshot = without(demo(), without_pod) if without_pod else demo()
    return build_view_model(snapshot, Scope(), DEMO_TIME)


KNOWN = listings(Trends())
NODES, NAMESPACES, PODS = KNOWN[ListKind.NODES], KNOWN[ListKind.NAMESPACES], KNOWN[ListKind.PODS]


def names_in(answer: ListRows | None) -> list[str]:
    return [str(row.key) for row in answer.rows] if answer is not None else []


def test_pods_are_there_at_once() -> None:
    found = ListWorker(Pump()).of(PODS, facts(), View())
    assert found is not None
    assert len(found.rows) == 60


def test_the_pods_of_a_view_are_selected_once_and_older_facts_are_not_kept() -> None:
    lister, old, new = ListWorker(Pump()), facts(), facts("db-0")
    shop, data = View(namespace="shop"), View(namespace="data")
    found = lister.of(PODS, old, shop)
    assert found is not None
    assert lister.of(PODS, old, replace(shop, at_risk=True, wide=True)) is found
    for now, view in ((old, data), (new, data), (new, shop), (old, shop)):
        answer = lister.of(PODS, now, view)
        assert answer is not None
        assert list(answer.rows) == list(view.pod_rows(now))
    lister.of(NODES, new, View(ListKind.NODES))
    assert lister._quick is None, "they would keep every pod that there was"


def test_a_question_is_answered_once_and_then_known() -> None:
    pump, now = Pump(), facts()
    lister = ListWorker(pump)
    view = View(ListKind.NAMESPACES)
    assert lister.of(NAMESPACES, now, view) is None
    assert lister.of(NAMESPACES, now, view) is None
    lister.take(pump.next())
    found = lister.of(NAMESPACES, now, view)
    assert "shop" in names_in(found)
    assert lister.of(NAMESPACES, now, View(ListKind.NAMESPACES, at_risk=True, wide=True)) is found
    assert not pump.posted


def test_older_facts_answer_until_newer_ones_are_worked_out_from_their_answer() -> None:
    pump, old, new = Pump(), facts(), facts("db-0")
    lister = ListWorker(pump)
    view = View(ListKind.NODES)
    lister.of(NODES, old, view)
    lister.take(pump.next())
    first = lister.of(NODES, old, view)
    assert lister.of(NODES, new, view) is first
    lister.take(pump.next())
    second = lister.of(NODES, new, view)
    assert second is not first
    assert second is not None
    assert second.rows == NODES.work_out(new, view, None).rows


def test_another_view_is_never_answered_with_the_rows_of_this_one(gate: Gate) -> None:
    pump, now = Pump(), facts()
    lister = ListWorker(pump)
    workloads = KNOWN[ListKind.WORKLOADS]
    shop, data = View(ListKind.WORKLOADS, namespace="shop"), View(ListKind.WORKLOADS, namespace="data")
    assert lister.of(workloads, now, shop) is None
    assert lister.of(workloads, now, data) is None, "it has to wait"
    assert lister.of(NODES, now, View(ListKind.NODES)) is None
    gate.let()
    lister.take(pump.next())
    assert lister.of(workloads, now, data) is None, "the answer was to another question"
    gate.let()
    lister.take(pump.next())
    found = lister.of(workloads, now, data)
    assert found is not None
    assert {row.key.namespace for row in found.rows} == {"data"}
    assert [view for _, view in gate.asked] == [shop, data], "one at a time, and nothing twice"


def test_what_failed_is_raised_where_it_is_taken_and_can_be_asked_again(gate: Gate) -> None:
    pump, now = Pump(), facts()
    lister = ListWorker(pump)
    gate.failing = True
    assert lister.of(NODES, now, View(ListKind.NODES)) is None
    gate.let_all()
    with pytest.raises(RuntimeError, match="broken"):
        lister.take(pump.next())
    gate.failing = False
    assert lister.of(NODES, now, View(ListKind.NODES)) is None
    lister.take(pump.next())
    assert lister.of(NODES, now, View(ListKind.NODES)) is not None


def test_after_forgetting_nothing_older_is_shown_or_taken(gate: Gate) -> None:
    pump, old, new = Pump(), facts(), facts("db-0")
    lister = ListWorker(pump)
    view = View(ListKind.NODES)
    assert lister.of(NODES, old, view) is None
    lister.forget()
    assert lister.of(NODES, new, view) is None
    gate.let_all()
    answers = [pump.next(), pump.next()]
    for answer in sorted(answers, key=lambda one: one.question.facts is new):
        lister.take(answer)
        if answer.question.facts is old:
            assert lister.of(NODES, new, view) is None
    found = lister.of(NODES, new, view)
    assert found is not None
    assert found.rows == NODES.work_out(new, view, None).rows
    lister.forget()
    assert lister.of(NODES, new, view) is None


async def asked(pilot: Pilot[Any], gate: Gate, number: int) -> None:
    await until(pilot, lambda: len(gate.asked) == number)


def rows(pilot: Pilot[Any]) -> Sequence[Any]:
    return main_of(pilot).table.rows


def row(pilot: Pilot[Any]) -> Any:
    return main_of(pilot).table.row


async def test_while_a_list_is_worked_out_it_says_so_and_the_last_wish_counts(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await asked(pilot, gate, 1)
        assert "Working out the list …" in screen_text(pilot)
        for key in ("d", "e", "i", "c", "x", "space", "s", "S", "z", "z", "w", "w", "enter", "G", "n", "j"):
            await press(pilot, key)
        await press(pilot, "1")
        assert not rows(pilot)
        await press(pilot, "3")
        assert not rows(pilot)
        gate.let()
        await asked(pilot, gate, 2)
        assert not rows(pilot), "namespaces are not what is wanted any more"
        assert main_of(pilot).view.kind is ListKind.WORKLOADS
        gate.let()
        await until(pilot, lambda: bool(rows(pilot)))
        assert sum(one.pods for one in rows(pilot)) == 60
        assert [view.kind for _, view in gate.asked] == [ListKind.NAMESPACES, ListKind.WORKLOADS]


async def test_pods_are_not_disturbed_by_a_list_that_comes_late(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await asked(pilot, gate, 1)
        await press(pilot, "4", "j", "j")
        gate.let_all()
        await until(pilot, lambda: main_of(pilot)._lister._running is None)
        assert len(rows(pilot)) == 60
        assert main_of(pilot).table.cursor == 2


async def test_facts_that_change_meanwhile_are_worked_out_after_it(gate: Gate) -> None:
    source = ScriptedSource(demo(), without(demo(), "db-0"), without(demo(), "db-1"))
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "2", "3")
        await asked(pilot, gate, 1)
        for _ in range(2):
            await press(pilot, "r")
            await settled(pilot)
        gate.let()
        await asked(pilot, gate, 2)
        gate.let()
        await until(pilot, lambda: bool(rows(pilot)))
        assert sum(one.pods for one in rows(pilot)) == 59
        assert gate.asked[-1] == (pilot.app.facts, View(ListKind.WORKLOADS))  # type: ignore[attr-defined]
        assert len(gate.asked) == 2, "what was in between is skipped"


async def test_older_rows_stay_with_the_cursor_until_the_newer_ones_come(gate: Gate) -> None:
    source = ScriptedSource(demo(), without(demo(), "api-7d9c5b6f8-x2mzq"))
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        gate.let()
        await press(pilot, "3")
        await until(pilot, lambda: bool(rows(pilot)))
        await press(pilot, "r")
        await settled(pilot)
        await asked(pilot, gate, 2)
        assert sum(one.pods for one in rows(pilot)) == 60
        assert row(pilot).key.name == "api"
        assert row(pilot).worst.name == "api-7d9c5b6f8-x2mzq"
        for key in ("d", "e", "v", "u", "i"):
            await press(pilot, key)
            assert len(pilot.app.screen_stack) == 1, "its worst pod is gone"
        gate.let_all()
        await until(pilot, lambda: sum(one.pods for one in rows(pilot)) == 59)
        assert row(pilot).key.name == "api"
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, ExplainScreen)


async def test_a_list_that_comes_while_another_screen_is_open_is_there_afterwards(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await asked(pilot, gate, 1)
        await press(pilot, "question_mark")
        gate.let_all()
        await until(pilot, lambda: bool(rows(pilot)))
        await press(pilot, "escape")
        assert "namespace shop: " in " ".join(screen_text(pilot).split())


async def test_leaving_does_not_wait_for_a_list(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "1")
        await asked(pilot, gate, 1)
        await press(pilot, "q")
    assert pilot.app.return_code == 0
    waiting = [thread for thread in threading.enumerate() if thread.name == "qos-question"]
    assert waiting
    assert all(thread.daemon for thread in waiting)
    gate.let_all()
    for thread in waiting:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive()


async def test_a_list_that_cannot_be_worked_out_is_said_and_the_others_go_on(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        gate.failing = gate.open = True
        await press(pilot, "2")
        await until(pilot, lambda: bool(pilot.app._notifications))
        (said,) = [one.message for one in pilot.app._notifications]
        assert said.startswith("unexpected RuntimeError: broken")
        gate.failing = False
        await press(pilot, "3")
        await until(pilot, lambda: bool(rows(pilot)))
        await press(pilot, "2")
        await until(pilot, lambda: bool(rows(pilot)))


async def test_what_is_wanted_by_now_is_worked_out_after_a_list_that_could_not_be(gate: Gate) -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        gate.failing = True
        await press(pilot, "2")
        await asked(pilot, gate, 1)
        await press(pilot, "3")
        gate.let()
        await until(pilot, lambda: bool(pilot.app._notifications))
        gate.failing = False
        gate.let_all()
        await until(pilot, lambda: bool(rows(pilot)))


async def test_another_cluster_is_never_shown_with_the_rows_of_the_one_before(gate: Gate) -> None:
    source = ScriptedSource(demo())
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        gate.let()
        await press(pilot, "2")
        await until(pilot, lambda: bool(rows(pilot)))
        app = pilot.app
        assert isinstance(app, QosApp)
        app.facts = None
        await pilot.pause()
        app.facts = facts("db-0")
        await asked(pilot, gate, 2)
        assert not rows(pilot)
