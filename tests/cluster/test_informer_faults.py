"""Following a cluster through what befalls servers: restarts, expired tokens, parts
that are down, lines that are cut anywhere, odd, unreadable, or do not come at all."""

import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cluster import informer, reflector
from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.informer import PODS as PODS_WATCH
from kubectl_qos.cluster.informer import Informer, Store
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.certificates import Authority
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo, PageSize
from tests.cluster.following import (
    NODES,
    PODS,
    Follow,
    assert_as_listed,
    cluster,
    fails,
    has,
    held,
    missing,
    names,
    ranks,
    wait_for,
)
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import Object, status
from tests.cluster.serving import Serve
from tests.cluster.watch_faults import BROKEN_OFF, SPOILED, BreakableServer, event
from tests.cluster.watch_server import Line, WatchServer

METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
DOWN = status(503, "ServiceUnavailable", "the server is starting")
SAID_DOWN = "Error from server (ServiceUnavailable): the server is starting"


def test_a_server_that_is_away_for_a_while(follow: Follow, serve: Serve, connect_to: ConnectTo) -> None:
    objects = cluster("a", "b")
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    server.stop()
    bad = followed.until(
        fails(
            f"The connection to the server 127.0.0.1:{server.port} was refused - did you specify the right"
            " host or port?"
        )
    )
    assert names(bad) == ["a", "b"]
    objects.delete(pod("a"))
    objects.put(pod("c"))
    again = serve(objects, port=server.port)
    followed.until(has("b", "c"))
    assert_as_listed(followed, connect_to(again))


@pytest.mark.parametrize("streams", [True, False])
def test_a_server_with_another_past(
    follow: Follow, serve: Serve, connect_to: ConnectTo, streams: bool
) -> None:
    """Restored from a backup, it would wait for the revision that we have seen, and say nothing."""
    objects = cluster("a", "b", streams=streams)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    server.stop()
    restored = cluster("a", "c", streams=streams)
    restored.revision = restored._oldest = 10
    again = serve(restored, port=server.port)
    followed.until(has("a", "c"))
    restored.put(pod("d"))
    followed.until(has("a", "c", "d"))
    assert_as_listed(followed, connect_to(again))


def test_a_certificate_that_nobody_vouches_for_any_more(follow: Follow, serve: Serve) -> None:
    objects = cluster("a")
    followed, server = follow(objects)
    followed.until(has("a"))
    server.stop()
    other = serve(objects, port=server.port, authority=Authority("other"))
    bad = followed.until(
        fails(
            "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by"
            " unknown authority"
        )
    )
    assert names(bad) == ["a"]
    other.stop()
    serve(objects, port=server.port)
    objects.put(pod("b"))
    followed.until(has("a", "b"))


def test_a_name_that_is_not_found_for_a_while(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))

    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", nowhere)
        objects.end_watches(abruptly=True)
        sentence = "Unable to connect to the server: dial tcp: lookup 127.0.0.1: no such host"
        assert names(followed.until(fails(sentence))) == ["a"]
    objects.put(pod("b"))
    followed.until(has("a", "b"))


class Rotating(WatchServer):
    """Takes one token at a time."""

    token = "first"

    def __call__(self, request: Request) -> Answer:
        if request.token != self.token:
            return status(401, "Unauthorized", "Unauthorized")
        user = {**request.headers, "authorization": "Bearer admin"}
        return super().__call__(Request(request.method, request.path, request.query, user))


def test_a_token_that_expires_and_is_renewed(follow: Follow, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    objects = Rotating(pods=[pod("a")], nodes=[node()])
    followed, _ = follow(objects, user={"tokenFile": str(file)})
    followed.until(has("a"))
    objects.token = "second"
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    objects.end_watches()
    bad = followed.until(fails("You must be logged in to the server (Unauthorized)"))
    assert names(bad) == ["a", "b"]
    objects.put(pod("c"))
    file.write_text("second")
    followed.until(has("a", "b", "c"))


def test_nodes_that_cannot_be_listed_at_first_keep_no_pods_away(follow: Follow) -> None:
    objects = cluster("a")
    objects.faults |= {NODES: DOWN, f"watch {NODES}": DOWN}
    followed, _ = follow(objects)
    bad = followed.until(lambda update: update.snapshot is not None)
    assert names(bad) == ["a"]
    assert missing(bad) == ["the nodes' memory capacity"]
    assert str(bad.health.error) == SAID_DOWN
    assert held(bad).server_version == "v1.36.2"
    objects.put(pod("b"))
    followed.until(lambda update: names(update) == ["a", "b"])
    objects.faults.clear()
    good = followed.until(has("a", "b"))
    assert missing(good) == []
    assert list(held(good).nodes) == ["worker-1"]


def test_nodes_that_are_known_stay_known(follow: Follow) -> None:
    objects = cluster("a")
    followed, _ = follow(objects)
    good = followed.until(has("a"))
    objects.faults |= {NODES: DOWN, f"watch {NODES}": DOWN}
    objects.end_watches()
    bad = followed.until(fails(SAID_DOWN))
    objects.put(pod("b"))
    followed.until(lambda update: names(update) == ["a", "b"])
    assert held(bad).nodes == held(good).nodes
    assert missing(bad) == []


@pytest.mark.parametrize("code", [503, 404])
def test_usage_stays_while_the_metrics_api_is_away(
    follow: Follow, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr("kubectl_qos.cluster.informer.POLL_SECONDS", 0.02)
    objects = WatchServer(
        pods=[pod("a"), pod("b")], nodes=[node()], metrics=[metrics("a", "5Mi"), metrics("b", "9Mi")]
    )
    followed, _ = follow(objects, usage=UsageChoice.METRICS)
    good = held(followed.until(has("a", "b")))
    assert [row[1:] for row in ranks(good)] == [(1, "shop", "b"), (2, "shop", "a")]
    objects.faults[METRICS] = Answer(code, b"no such service\n", "text/plain")
    bad = followed.until(lambda update: missing(update) == ["newer memory usage"])
    assert ranks(held(bad)) == ranks(good)
    objects.delete(pod("b"))
    followed.until(lambda update: list(held(update).usage) == [("shop", "a")])
    objects.metrics = [metrics("a", "6Mi")]
    del objects.faults[METRICS]
    again = held(followed.until(lambda update: missing(update) == []))
    assert again.usage["shop", "a"].working_set_bytes == 6 << 20


def test_a_revision_that_is_too_old_is_no_error(follow: Follow) -> None:
    objects = cluster("a", streams=False)
    followed, server = follow(objects, Scope(node="worker-1"))
    followed.until(has("a"))
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    for number in range(3):
        objects.put(pod(f"elsewhere-{number}", node="worker-2"))
    objects.forget()
    requested = len(server.requests)
    objects.end_watches()
    objects.put(pod("c"))
    followed.until(has("a", "b", "c"))
    assert "too old" not in str([update.health.error for update in followed.updates])
    assert sum(request.path == PODS for request in server.requests[requested:]) < 15


def test_a_pod_that_comes_back_elsewhere_is_held_once(follow: Follow) -> None:
    objects = cluster("a", "b")
    followed, _ = follow(objects)
    followed.until(has("a", "b"))
    objects.put(pod("a", node="worker-2"))
    moved = followed.until(lambda update: has("a", "b")(update) and "worker-2" in held(update).by_node())
    assert {name: len(pods) for name, pods in held(moved).by_node().items()} == {"worker-1": 1, "worker-2": 1}
    objects.delete(pod("a", node="worker-3"))
    followed.until(has("b"))


def test_a_busy_server_is_named_while_it_is_waited_for(follow: Follow) -> None:
    objects = cluster("a", streams=False)
    busy = Answer(503, DOWN.body, headers={"Retry-After": "20"})
    objects.faults[PODS] = lambda request: busy if "limit" in request.query else None
    followed, _ = follow(objects)
    bad = followed.until(fails(SAID_DOWN))
    assert bad.snapshot is None
    assert bad.health.retry_at > time.monotonic() + 10
    objects.faults.clear()
    followed.stream.refresh()
    followed.until(has("a"))


def test_a_later_page_that_fails_takes_nothing_away(
    follow: Follow, connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(2)
    everything = [f"p{number}" for number in range(5)]
    objects = cluster(*everything, streams=False)
    followed, server = follow(objects)
    followed.until(has(*everything))

    def of_etcd_alone(request: Request) -> Answer | None:
        """The watch cache is behind, and what etcd has comes in pages that break off."""
        if "resourceVersionMatch" in request.query:
            return status(504, "Timeout", "Too large resource version: 1000, current: 900")
        return DOWN if "continue" in request.query else None

    objects.faults[PODS] = of_etcd_alone
    objects.faults[f"watch {PODS}"] = Answer(hangs_up=True)
    objects.end_watches()
    followed.ever(fails())
    objects.delete(pod("p1"))
    objects.forget()
    del objects.faults[f"watch {PODS}"]
    assert names(followed.until(fails(SAID_DOWN))) == everything
    objects.faults.clear()
    followed.until(has("p0", "p2", "p3", "p4"))
    assert_as_listed(followed, connect_to(server))


@pytest.mark.parametrize("streams", [True, False])
def test_what_a_server_may_say_though_it_means_nothing(
    follow: Follow, connect_to: ConnectTo, streams: bool
) -> None:
    """Nothing of this is an error, and nothing of it changes what is so."""
    objects = cluster("a", "b", streams=streams)
    odd = [
        b"\n",
        b"\r\n  \n",
        event("ADDED", stamped(pod("a"), "1000")),
        event("ADDED", stamped(pod("b"), "1000")) * 2,
        event("DELETED", stamped(pod("never-there"), "1000")),
        event("BOOKMARK", {"metadata": {"resourceVersion": "1000"}}),
        event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "1000", "annotations": None}}),
    ]

    def with_oddities(_: Request, lines: Iterator[Line]) -> Iterator[Line]:
        for line in lines:
            yield from odd if b'"name":"c"' in (line or b"") else ()
            yield line

    objects.on_watch = with_oddities
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.put(pod("c"))
    followed.until(has("a", "b", "c"))
    assert {names(update)[:2] == ["a", "b"] for update in followed.updates} == {True}
    assert {str(update.health.error) for update in followed.updates} == {"None"}
    assert_as_listed(followed, connect_to(server))


def stamped(found: dict[str, Any], revision: str) -> Object:
    return {**found, "metadata": {**found["metadata"], "resourceVersion": revision}}


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_a_line_is_cut_by_reads_wherever_they_end(
    follow: Follow, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(reflector, "_READ_BYTES", size)
    objects = cluster("a")
    followed, server = follow(objects)
    followed.until(has("a"))
    objects.put(pod("b", labels={f"label-{number}": "x" * 60 for number in range(2000 if size > 7 else 3)}))
    objects.put(pod("c"))
    followed.until(has("a", "b", "c"))
    assert_as_listed(followed, connect_to(server))


def test_a_read_that_ends_one_event_begins_the_next(follow: Follow) -> None:
    def shifted(request: Request, lines: Iterator[Line]) -> Iterator[Line]:
        held = b""
        for line in lines:
            sent = held + (line or b"")
            yield sent[:-9]
            held = sent[-9:]

    objects = cluster("a", streams=False)
    objects.on_watch = shifted
    followed, server = follow(objects)
    wait_for(lambda: any("resourceVersion" in one.query and "watch" in one.query for one in server.requests))
    followed.until(has("a"))
    for name in ("b", "c", "d"):
        objects.put(pod(name))
    followed.until(has("a", "b", "c"))
    assert not any("cannot be read" in str(update.health.error) for update in followed.updates)
    assert sum(one.path == PODS and "limit" in one.query for one in server.requests) == 1


@pytest.mark.parametrize("streams", [True, False])
def test_an_event_that_cannot_be_read_is_got_around(
    follow: Follow, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """It would come again with every watch from the same revision, long after its pod is gone."""
    monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 1.0)
    monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 1.0)

    def spoiled(_: Request, lines: Iterator[Line]) -> Iterator[Line]:
        for line in lines:
            yield line.replace(b'"spec":{', b'"spec":[{') if line and b'"name":"bad"' in line else line

    objects = cluster("a", streams=streams)
    objects.on_watch = spoiled
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.put(pod("bad"))
    followed.ever(lambda update: "cannot be read" in str(update.health.error))
    objects.delete(pod("bad"))
    objects.put(pod("b"))
    followed.until(has("a", "b"))


def test_a_defect_is_said_and_not_the_end(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    share = Interner.pod
    defects = ["what is this?"]

    def defective(self: Interner, found: Any) -> Any:
        if found.name == "b" and defects:
            raise ValueError(defects[0])
        return share(self, found)

    monkeypatch.setattr(Interner, "pod", defective)
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.put(pod("b"))
    assert names(followed.ever(fails("unexpected ValueError: what is this?"))) == ["a"]
    defects.clear()
    followed.until(has("a", "b"))


def test_silence_is_borne_in_a_watch_but_not_in_a_list(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "LIST_SILENCE_SECONDS", 0.5)
    objects = BreakableServer(pods=[pod("a")], nodes=[node()])
    objects.break_watches(BROKEN_OFF[1])
    followed, server = follow(objects)
    assert names(followed.ever(lambda update: update.snapshot is not None)) == ["a"]
    objects.mend()
    objects.end_watches()
    followed.until(has("a"))
    quiet, _ = follow(cluster("b"))
    quiet.until(has("b"))
    assert isinstance(quiet.stream, Informer)
    responses = [one._response for one in quiet.stream._reflectors]
    timeouts = [getattr(one, "connection").sock.gettimeout() for one in responses]  # noqa: B009 - by its type it may have none
    assert min(timeouts) > reflector.LIST_SILENCE_SECONDS
    assert any("limit" in request.query for request in server.requests), "a plain list got through"


class Hanging(WatchServer):
    """Takes connections and requests while it hangs, as a stopped process does, and answers none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.runs = threading.Event()
        self.runs.set()

    def __call__(self, request: Request) -> Answer:
        self.runs.wait(120)
        return super().__call__(request)


def test_a_server_that_hangs_is_noticed_by_a_request(follow: Follow, connect_to: ConnectTo) -> None:
    """Its watches stay open and bring nothing, as those of a quiet cluster do; said within 20 seconds."""
    objects = Hanging(pods=[pod("a")], nodes=[node()])
    followed, server = follow(objects)
    followed.until(has("a"))
    objects.runs.clear()
    stopped = datetime.now(UTC)
    bad = followed.until(fails(), seconds=20)
    assert bad.health.since is not None
    assert bad.health.since <= stopped, "since it was heard, not since it was missed"
    assert str(bad.health.error).startswith("Unable to connect to the server: read tcp 127.0.0.1:")
    assert names(bad) == ["a"]
    assert "/version" in server.paths()
    objects.put(pod("b"))
    objects.runs.set()
    followed.until(has("a", "b"), seconds=10)
    assert_as_listed(followed, connect_to(server))


@pytest.mark.parametrize("answer", [None, status(403, "Forbidden", "forbidden"), status(503, "", "")])
def test_a_quiet_server_that_answers_is_live(
    follow: Follow, monkeypatch: pytest.MonkeyPatch, answer: Answer | None
) -> None:
    """Whatever it answers."""
    probed: list[float] = []
    probe = RestClient.probe

    def patient(self: RestClient, seconds: float) -> None:
        probe(self, 20)
        probed.append(seconds)

    monkeypatch.setattr(RestClient, "probe", patient)
    monkeypatch.setattr(informer, "PROBE_SECONDS", 0.05)
    objects = cluster("a")
    objects.faults |= {"/version": answer} if answer is not None else {}
    followed, server = follow(objects)
    followed.until(has("a"))
    wait_for(lambda: len(probed) >= 3)
    assert {update.health.error for update in followed.updates} == {None}
    assert sum(request.path == PODS for request in server.requests) == 1, "its watch goes on"
    assert set(probed) == {0.025}


def test_a_silent_watch_is_opened_again_from_where_it_was(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection may be gone without a sign; that is no error, and no new list."""
    monkeypatch.setattr(reflector, "SILENCE_SECONDS", 0.1)
    objects = cluster("a")
    followed, server = follow(objects)
    followed.until(has("a"))
    wait_for(lambda: sum(request.path == PODS for request in server.requests) >= 4)
    objects.put(pod("b"))
    followed.until(has("a", "b"))
    assert {update.health.error for update in followed.updates} == {None}
    first, *others = (request.query for request in server.requests if request.path == PODS)
    assert "sendInitialEvents" in first
    assert {"sendInitialEvents" in query or query.get("limit") == "500" for query in others} == {False}


def test_an_event_without_end_is_not_kept_for_ever(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "_MAX_LINE_BYTES", 5000)
    objects = cluster("a")
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.put(pod("b", labels={f"label-{number}": "x" * 60 for number in range(2000)}))
    bad = followed.ever(fails("the server's answer for /api/v1/pods cannot be read: an event has no end"))
    assert names(bad) == ["a"]


@pytest.mark.parametrize("fault", [BROKEN_OFF[2], SPOILED[0]], ids=lambda fault: fault.name)
def test_a_server_that_goes_on_failing_is_retried_less_and_less(
    follow: Follow, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    waited: list[float] = []
    original = Store.out_of_sync

    def out_of_sync(self: Store, name: str, error: Any, retry_seconds: float | None) -> None:
        waited.extend([retry_seconds] if name == PODS_WATCH and retry_seconds is not None else [])
        original(self, name, error, retry_seconds)

    monkeypatch.setattr(Store, "out_of_sync", out_of_sync)
    objects = BreakableServer(pods=[pod("a")], nodes=[node()])
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.break_watches(fault)
    wait_for(lambda: len(waited) >= 5)
    assert waited[3] >= 0.05
    assert min(waited[4:]) >= 0.05
