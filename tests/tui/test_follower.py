from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.source import LIVE, StaticStream, Update, UpdateStream
from kubectl_qos.errors import ApiError, InputError, QosError, ServerUnreachable
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui import follower as following
from kubectl_qos.tui.follower import Follower, Updated, UpdateFailed, message_for_update
from tests.tui.sources import ScriptedSource, demo, pod_named

FORBIDDEN = ApiError("Error from server (Forbidden): pods is forbidden", status=403, reason="Forbidden")


def moment(source: ScriptedSource, scope: Scope) -> Update:
    found = source.follow(scope).next()
    assert found is not None
    return found


def test_an_answer_carries_facts_of_the_snapshot() -> None:
    found = message_for_update(moment(ScriptedSource(demo()), Scope(namespace="shop")), None, None)
    assert isinstance(found, Updated)
    assert {row.pod.namespace for row in found.view_model.rows.rows} == {"shop"}
    assert found.view_model.notice == ""
    assert found.target is None


def test_where_the_cluster_is_forbidden_the_own_namespace_is_requested() -> None:
    def own_only(scope: Scope) -> Snapshot:
        if scope.namespace is None:
            raise FORBIDDEN
        return demo()

    source = ScriptedSource(own_only, default_namespace="shop")
    stream = source.follow(Scope())
    found = stream.next()
    assert found is not None
    assert [scope.namespace for scope in source.requested] == [None, "shop"]
    assert found.scope.namespace == "shop"
    assert found.notice == f"only namespace shop is shown: {FORBIDDEN}"
    answer = message_for_update(found, None, None)
    assert isinstance(answer, Updated)
    assert {row.pod.namespace for row in answer.view_model.rows.rows} == {"shop"}
    stream.refresh()
    stream.next()
    assert [scope.namespace for scope in source.requested] == [None, "shop", "shop"]


def test_other_errors_are_the_answer() -> None:
    cases: list[tuple[QosError, str | None, Scope]] = [
        (FORBIDDEN, None, Scope()),
        (FORBIDDEN, "shop", Scope(namespace="data")),
        (ServerUnreachable("no answer"), "shop", Scope()),
        (ApiError("no", status=401), "shop", Scope()),
    ]
    for error, own, scope in cases:
        source = ScriptedSource(error, default_namespace=own)
        found = message_for_update(moment(source, scope), None, None)
        assert isinstance(found, UpdateFailed)
        assert found.health.error is error
        assert not found.fatal
        assert len(source.requested) == 1


def test_an_error_keeps_the_snapshot_and_the_moment_of_the_last_answer() -> None:
    source = ScriptedSource(demo(), FORBIDDEN, FORBIDDEN, demo())
    stream = source.follow(Scope(namespace="shop"))
    seen = []
    for _ in range(4):
        seen.append(stream.next())
        source.later(60)
        stream.refresh()
    good, bad, worse, again = (one for one in seen if one is not None)
    assert good.health is again.health is LIVE
    assert bad.snapshot is worse.snapshot is good.snapshot
    assert bad.health.since == worse.health.since == good.taken == DEMO_TIME
    assert again.taken > good.taken


def test_a_closed_stream_lets_go_of_who_waits() -> None:
    stream = StaticStream(lambda _: demo(), Scope(), lambda: DEMO_TIME)
    assert stream.next() is not None
    stream.close()
    assert stream.next() is None


def test_the_pod_to_open_is_found_in_the_first_snapshot() -> None:
    at = moment(ScriptedSource(demo()), Scope())
    found = message_for_update(at, None, lambda snapshot: pod_named(snapshot, "db-0"))
    assert isinstance(found, Updated)
    assert found.target is not None
    assert found.target.name == "db-0"


def test_a_pod_to_open_that_does_not_exist_ends_everything() -> None:
    def none(_: Snapshot) -> Pod:
        raise InputError('pods "x" not found')

    found = message_for_update(moment(ScriptedSource(demo()), Scope()), None, none)
    assert isinstance(found, UpdateFailed)
    assert found.fatal


def test_what_is_the_same_as_before_is_taken_over() -> None:
    at = moment(ScriptedSource(demo()), Scope())
    first = message_for_update(at, None, None)
    assert isinstance(first, Updated)
    again = message_for_update(at, first.view_model, None)
    assert isinstance(again, Updated)
    assert again.view_model.rows.rows == first.view_model.rows.rows


class Rests(threading.Event):
    """What a follower waits for between updates: each wait does the next thing instead of taking time."""

    def __init__(self, *actions: Callable[[], None]) -> None:
        super().__init__()
        self._actions = list(actions)
        self.seconds = list[float | None]()

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self._actions.pop(0)()
        assert timeout is not None or self.is_set(), "it would wait for ever"
        return self.is_set()


def test_nothing_new_is_read_while_paused_unless_it_is_requested() -> None:
    source = ScriptedSource(demo())
    source.every_seconds = 0
    posted: list[Any] = []
    pump: Any = SimpleNamespace(post_message=posted.append)
    counts: list[int] = []

    def then(action: Callable[[], None] = lambda: None) -> Callable[[], None]:
        def counted() -> None:
            counts.append(len(posted))
            action()

        return counted

    follower = Follower(pump, source, Scope(), Trends(), lambda _: None)
    follower._requested = Rests(
        then(),
        then(lambda: follower.pause(paused=True)),
        then(),
        then(follower.refresh),
        then(),
        then(follower.refresh),
        then(),
        then(lambda: follower.pause(paused=False)),
        then(),
        then(follower.close),
    )
    follower._run()
    assert counts == [1, 2, 3, 3, 4, 4, 5, 5, 6, 7]
    assert all(isinstance(message, Updated) for message in posted)


def test_what_is_shown_is_as_old_as_its_snapshot_and_renewed_soon_after_long_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, ages = SimpleNamespace(seconds=0.0, is_current=True), list[float]()
    clock = SimpleNamespace(monotonic=lambda: now.seconds, thread_time=lambda: now.seconds)
    monkeypatch.setattr(following, "time", clock)
    monkeypatch.setattr(UpdateStream, "is_current", lambda _: now.is_current)

    def look(seconds: float = 0.0) -> None:
        now.seconds += seconds
        ages.append(follower.behind_seconds())

    def change() -> None:
        look()
        now.is_current = False
        look(2)

    def end() -> None:
        look()
        follower.close()

    source, pump = ScriptedSource(demo()), SimpleNamespace(post_message=lambda _: None)
    source.every_seconds = 0
    follower = Follower(pump, source, Scope(), Trends(), lambda _: look(7))  # type: ignore[arg-type]
    follower._requested = rests = Rests(change, end)
    follower._run()
    assert rests.seconds == [5, 5], "not three times the 7 seconds"
    assert ages == [7, 0, 2, 2 + 7, 7], "while computing, after it, with news, computing, shown late"
