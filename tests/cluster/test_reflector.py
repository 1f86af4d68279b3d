"""Following a cluster: what is held is what the server has, after every kind of change and interruption."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from msgspec import Raw

from kubectl_qos.cluster import informer, reflector
from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.informer import Informer, Store
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.reflector import EventHandler, Reflector
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport.client import Connection
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import PageSize
from tests.cluster.following import (
    NODES,
    PODS,
    Follow,
    cluster,
    fails,
    has,
    held,
    missing,
    names,
    wait_for,
    wait_until_read,
)
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.object_server import forbidden, status
from tests.cluster.watch_faults import event
from tests.cluster.watch_server import Line, WatchServer

TOO_OLD_EVENT = event("ERROR", json.loads(status(410, "Expired", "too old resource version").body))


def queries(server: HttpsServer, path: str = PODS, *, watch: bool) -> list[dict[str, str]]:
    """The queries of watches or of lists, without those for the newest revision alone."""
    return [
        dict(request.query)
        for request in list(server.requests)
        if request.path == path and ("watch" in request.query) is watch and request.query != {"limit": "1"}
    ]


@pytest.mark.parametrize("streams", [True, False])
def test_changes_arrive(follow: Follow, streams: bool) -> None:
    objects = cluster("a", "b", streams=streams)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.put(pod("c", request="1Gi"))
    followed.until(has("a", "b", "c"))
    objects.delete(pod("a"))
    before = held(followed.until(has("b", "c")))
    objects.put(node("worker-2"))
    after = held(followed.until(lambda update: len(held(update).nodes) == 2))
    assert after.by_node()["worker-1"] is before.by_node()["worker-1"]
    assert len(queries(server, watch=False)) == (0 if streams else 1)


@pytest.mark.parametrize("streams", [True, False])
def test_pods_are_held_while_the_first_list_arrives(
    follow: Follow, page_size: PageSize, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    page_size(2)
    monkeypatch.setattr(reflector, "PAGE_SIZE", 2)
    monkeypatch.setattr(informer, "GROWTH", 1)
    goes_on = threading.Event()

    class Slow(WatchServer):
        def __call__(self, request: Request) -> Answer:
            assert "continue" not in request.query or goes_on.wait(120)
            return super().__call__(request)

    def hold_second_batch(request: Request, lines: Iterator[Line]) -> Iterator[Line]:
        for number, line in enumerate(lines):
            if number == 2 and request.path == PODS:
                assert goes_on.wait(120)
            yield line

    objects = Slow(pods=[pod(name) for name in "abcdef"], nodes=[node()], streams=streams)
    if streams:
        objects.on_watch = hold_second_batch
    followed, _ = follow(objects)
    first = followed.ever(lambda update: update.arrived is not None and len(held(update).pods) == 2)
    assert first.arrived is not None
    assert (first.arrived.items, first.arrived.total) == (2, None if streams else 6)
    assert first.arrived.size_bytes > 200
    assert names(first) == ["a", "b"]
    assert list(held(first).nodes) == ["worker-1"], "nodes are there first"
    goes_on.set()
    followed.until(has(*"abcdef"))
    objects.on_watch = None
    objects.forget()
    objects.end_watches()
    followed.until(has(*"abcdef"))
    objects.put(pod("g"))
    followed.until(has(*"abcdefg"))
    assert [update.arrived is None for update in followed.updates] == sorted(
        update.arrived is None for update in followed.updates
    ), "a list that is read again shows nothing half"


def test_a_streaming_list_is_requested_once_of_a_server_without_them(follow: Follow) -> None:
    objects = cluster("a", streams=False)
    followed, server = follow(objects)
    followed.until(has("a"))
    objects.end_watches(abruptly=True)
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    watches = queries(server, watch=True)
    assert [query.get("sendInitialEvents") for query in watches][:2] == ["true", None]
    assert sum("sendInitialEvents" in query for query in watches) == 1
    assert [query["resourceVersion"] for query in queries(server, watch=False)] == ["0"]


@pytest.mark.parametrize("abruptly", [True, False])
@pytest.mark.parametrize("streams", [True, False])
def test_a_watch_that_ends_goes_on_where_it_was(follow: Follow, streams: bool, abruptly: bool) -> None:
    objects = cluster("a", streams=streams)
    followed, server = follow(objects)
    followed.until(has("a"))
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    objects.end_watches(abruptly=abruptly)
    objects.put(pod("c"))
    objects.delete(pod("a"))
    followed.until(has("b", "c"))
    assert len(queries(server, watch=False)) == (0 if streams else 1), "nothing is listed again"
    assert any(int(query.get("resourceVersion", 0)) >= 1001 for query in queries(server, watch=True))


@pytest.mark.parametrize("streams", [True, False])
def test_a_revision_that_is_too_old_means_a_new_list(follow: Follow, streams: bool) -> None:
    objects = cluster("a", "b", streams=streams)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.faults[f"watch {PODS}"] = Answer(hangs_up=True)
    objects.end_watches(abruptly=True)
    objects.delete(pod("a"))
    objects.put(pod("c"))
    objects.forget()
    followed.until(fails())
    del objects.faults[f"watch {PODS}"]
    followed.until(has("b", "c"))
    lists = queries(server, watch=False)
    again = {"resourceVersion": "1000", "resourceVersionMatch": "NotOlderThan"}
    assert lists == ([] if streams else [{"resourceVersion": "0", "limit": "500"}, again]), "of the cache"


def test_a_bookmark_spares_a_new_list(follow: Follow) -> None:
    objects = cluster("a", streams=False)
    followed, server = follow(objects, Scope(node="worker-1"))
    followed.until(has("a"))
    for number in range(3):
        objects.put(pod(f"elsewhere-{number}", node="worker-2"))
    objects.bookmark()
    wait_until_read(followed, objects)
    objects.forget()
    objects.end_watches()
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    assert len(queries(server, watch=False)) == 1


def test_while_the_server_is_away_the_last_snapshot_is_stale(follow: Follow) -> None:
    objects, began = cluster("a"), datetime.now(UTC)
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.faults[f"watch {PODS}"] = status(503, "ServiceUnavailable", "etcd is away")
    objects.end_watches()
    bad = followed.until(fails("Error from server (ServiceUnavailable): etcd is away"))
    assert names(bad) == ["a"]
    assert bad.health.since is not None
    assert began <= bad.health.since <= datetime.now(UTC)
    assert bad.taken == bad.health.since
    assert bad.health.retry_at > 0
    del objects.faults[f"watch {PODS}"]
    followed.until(has("a"))


def test_retry_after_is_obeyed(follow: Follow) -> None:
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    tried: list[float] = []

    def busy(_: object) -> Answer | None:
        tried.append(time.monotonic())
        if len(tried) > 1:
            return None
        answer = status(429, "TooManyRequests", "slow down")
        return Answer(429, answer.body, headers={"Retry-After": "1"})

    objects.faults[f"watch {PODS}"] = busy
    objects.end_watches()
    followed.ever(fails("Error from server (TooManyRequests): slow down"))
    followed.until(has("a"))
    assert tried[1] - tried[0] >= 1


def test_a_refresh_retries_at_once(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 600.0)
    monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 600.0)
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.faults[f"watch {PODS}"] = Answer(hangs_up=True)
    objects.end_watches()
    followed.until(fails())
    objects.faults.clear()
    followed.stream.refresh()
    followed.until(has("a"))


def test_what_may_not_be_watched_is_polled(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.cluster.informer.POLL_SECONDS", 0.05)
    objects = cluster("a")
    objects.faults[f"watch {PODS}"] = forbidden
    followed, _ = follow(objects)
    followed.until(has("a"))
    followed.until(lambda update: missing(update) == ["the watch of pods"])
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    del objects.faults[f"watch {PODS}"]
    followed.until(lambda update: has("a", "b")(update) and missing(update) == [])
    monkeypatch.setattr("kubectl_qos.cluster.informer.POLL_SECONDS", 600.0)
    objects.put(pod("c"))
    followed.until(has("a", "b", "c"))


def test_what_is_polled_is_polled_every_refresh_seconds(follow: Follow) -> None:
    objects = cluster("a")
    objects.faults[f"watch {PODS}"] = forbidden
    followed, _ = follow(objects, refresh_seconds=1.0)
    followed.until(has("a"))
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    objects.put(pod("c"))
    found = held(followed.until(has("a", "b", "c"))).missing
    assert [one.remedy for one in found if one.what == "the watch of pods"] == [
        "grant watch on pods; until then they are listed every 1 s"
    ]


def test_without_the_nodes_the_servers_release_counts(follow: Follow) -> None:
    objects = cluster("a")
    objects.forbidden.add(NODES)
    followed, _ = follow(objects)
    update = followed.until(has("a"))
    assert held(update).server_version == "v1.36.2"
    assert missing(update) == ["the nodes' memory capacity"]


def test_with_one_namespace_only_that_is_followed(follow: Follow) -> None:
    objects = WatchServer(pods=[pod("a"), pod("x", namespace="other")], nodes=[node()])
    objects.forbidden.add(PODS)
    followed, server = follow(objects, Scope(namespace="shop"))
    assert missing(followed.until(has("a"))) == ["the rest of these nodes' pods"]
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    assert queries(server, "/api/v1/namespaces/shop/pods", watch=True)


def test_where_the_cluster_is_forbidden_the_default_namespace_is_followed(follow: Follow) -> None:
    objects = WatchServer(pods=[pod("a", namespace="default")], nodes=[node()])
    objects.forbidden.add(PODS)
    followed, _ = follow(objects)
    update = followed.until(has("a"))
    assert update.scope.namespace == "default"
    assert update.notice.startswith("only namespace default is shown: Error from server (Forbidden)")


def test_without_any_permission_there_is_no_snapshot(follow: Follow) -> None:
    objects = cluster("a")
    objects.forbidden |= {PODS, "/api/v1/namespaces/default/pods"}
    followed, _ = follow(objects)
    update = followed.until(fails())
    assert update.snapshot is None
    assert "pods is forbidden" in str(update.health.error)


def test_usage_comes_with_the_first_update_and_again(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.cluster.informer.POLL_SECONDS", 0.05)
    objects = WatchServer(pods=[pod("a")], nodes=[node()], metrics=[metrics("a", "5Mi")])
    followed, _ = follow(objects, usage=UsageChoice.METRICS)
    assert held(followed.until(has("a"))).usage["shop", "a"].working_set_bytes == 5 << 20
    objects.metrics = [metrics("a", "6Mi")]
    followed.until(lambda update: held(update).usage["shop", "a"].working_set_bytes == 6 << 20)


def test_an_event_without_changes_makes_no_update(follow: Follow) -> None:
    """Most events of nodes and pods are heartbeats and probes, which change nothing that is read."""
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    assert isinstance(followed.stream, Informer)
    store = followed.stream._store
    version = store._version
    for _ in range(5):
        objects.put(pod("a"))
        objects.put(node())
    wait_until_read(followed, objects)
    assert store._version == version
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    assert store._version == version + 1


def test_what_is_too_old_is_listed_again_at_once(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also right after the first list, before any event; only the next time it waits."""
    objects = cluster("a", streams=False)
    expired: list[Request] = []

    def expire(request: Request, lines: Iterator[Line]) -> Iterator[Line]:
        if request.path == PODS and len(expired) < 1:
            expired.append(request)
            return iter([TOO_OLD_EVENT])
        return lines

    objects.on_watch = expire
    followed, server = follow(objects)
    monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 600.0)
    monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 600.0)
    followed.until(has("a"))
    wait_for(lambda: len(queries(server, watch=False)) == 2)
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    assert {update.health.error for update in followed.updates} == {None}


def test_what_is_too_old_after_failed_connections_is_listed_again_at_once(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = cluster("a", streams=False)
    followed, server = follow(objects)
    followed.until(has("a"))
    answers = iter([Answer(hangs_up=True), Answer(hangs_up=True), Answer(chunks=[TOO_OLD_EVENT])])

    def fail_then_expire(_: Request) -> Answer | None:
        answer = next(answers, None)
        if answer is not None and answer.chunks is not None:
            monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 600.0)
            monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 600.0)
        return answer

    objects.faults[f"watch {PODS}"] = fail_then_expire
    objects.put(pod("b"))
    objects.end_watches(abruptly=True)
    followed.ever(fails())
    wait_for(lambda: len(queries(server, watch=False)) == 2)
    objects.put(pod("c"))
    followed.until(has("a", "b", "c"))


def test_lists_that_are_always_too_old_come_less_and_less(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    original = Store.out_of_sync

    def out_of_sync(self: Store, name: str, error: QosError, retry_seconds: float | None) -> None:
        waited.extend([retry_seconds] if retry_seconds is not None else [])
        original(self, name, error, retry_seconds)

    monkeypatch.setattr(Store, "out_of_sync", out_of_sync)
    objects = cluster("a", streams=False)
    objects.on_watch = lambda request, lines: iter([TOO_OLD_EVENT]) if request.path == PODS else lines
    follow(objects)
    wait_for(lambda: len(waited) >= 4)
    assert waited[3] >= 0.05


def test_a_watch_is_live_with_its_first_event_and_not_before(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = cluster("a", streams=False)
    followed, _ = follow(objects)
    followed.until(has("a"))
    monkeypatch.setattr(reflector, "ACCEPTED_SECONDS", 600.0)
    objects.faults[f"watch {PODS}"] = Answer(hangs_up=True)
    objects.end_watches(abruptly=True)
    followed.until(fails())
    opened = threading.Event()

    def open_(request: Request, lines: Iterator[Line]) -> Iterator[Line]:
        if request.path == PODS:
            opened.set()
        return lines

    objects.on_watch = open_
    del objects.faults[f"watch {PODS}"]
    assert opened.wait(120)
    assert followed.updates[-1].health.error is not None
    objects.bookmark()
    followed.until(has("a"))


def test_a_server_that_is_ready_again_is_requested_at_once(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 600.0)
    monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 600.0)
    monkeypatch.setattr(informer, "PROBE_SECONDS", 0.2)
    requested = threading.Event()

    def is_away(_: object) -> Answer:
        requested.set()
        return status(503, "ServiceUnavailable", "etcd is away")

    objects.faults |= {f"watch {PODS}": Answer(hangs_up=True), "/readyz": is_away}
    objects.end_watches(abruptly=True)
    followed.until(fails())
    assert requested.wait(120)
    objects.faults.clear()
    objects.put(pod("b"))
    followed.until(has("a", "b"))


AWAY = ServerUnreachable("The connection to the server was refused")
NOT_YET = ApiError("storage is (re)initializing", status=429, reason="TooManyRequests")


@pytest.mark.parametrize(
    ("is_ready", "error", "failures", "shortest", "longest"),
    [
        (False, AWAY, 5000, 15, 30),
        (False, NOT_YET, 9, 15, 30),
        (True, AWAY, 9, 0.8, 2),
        (True, NOT_YET, 9, 0.8, 2),
        (True, NOT_YET, 5000, 15, 30),
        (True, QosError("it cannot be read"), 9, 15, 30),
    ],
)
def test_a_server_that_says_it_is_ready_is_retried_soon(
    monkeypatch: pytest.MonkeyPatch,
    is_ready: bool,
    error: QosError,
    failures: int,
    shortest: float,
    longest: float,
) -> None:
    """Its storage may take longer than it admits; but not for ever, and not what is wrong in its answers."""
    retries: list[float] = []
    ignore: Any = lambda *_: None  # noqa: E731
    handler: Any = EventHandler
    nothing = handler(*[ignore] * 5, lambda _, seconds: retries.append(seconds), *[ignore] * 3)
    client = RestClient(cast("Connection", None))
    follower = Reflector(client, PODS, {}, Pod, lambda pod: pod, nothing, 1.0)
    monkeypatch.setattr(follower._wake, "wait", lambda _: None)
    follower.note_server(ready=is_ready)
    follower._failures = failures
    follower._wait_for_retry(error)
    assert shortest <= retries[0] <= longest


def test_a_streaming_list_that_ends_before_its_bookmark_is_not_called_a_short_watch() -> None:
    follower = Reflector(cast("RestClient", None), PODS, {}, Pod, lambda pod: pod, cast("Any", None), 1.0)
    follower._has_listed = True
    raw = Raw(json.dumps(pod("a")).encode())
    with pytest.raises(QosError, match=f"^{PODS}: the list ended before it was complete$"):
        follower._read_initial(iter([("ADDED", raw)]), {})


def test_what_failed_while_a_server_was_away_does_not_count_once_it_is_ready() -> None:
    follower = Reflector(cast("RestClient", None), PODS, {}, Pod, lambda pod: pod, cast("Any", None), 1.0)
    follower.note_server(ready=False)
    follower._failures = 9
    follower.note_server(ready=False)
    assert (follower._failures, follower._wake.is_set()) == (9, False)
    follower.note_server(ready=True)
    assert (follower._failures, follower._wake.is_set()) == (0, True)
