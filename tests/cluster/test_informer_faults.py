"""Following a cluster through what befalls servers: restarts, expired tokens, parts of it that are down."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from kubectl_qos.cluster import reflector
from kubectl_qos.cluster.usage import UsageChoice
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
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer

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
    follow: Follow, serve: Serve, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """Restored from a backup, it waits for revisions that we have seen: its silence gives it away."""
    monkeypatch.setattr(reflector, "MAX_EMPTY_WATCH_SECONDS", 0.0)
    monkeypatch.setattr(reflector, "_MIN_WATCH_SECONDS", 0.0)
    objects = cluster("a", "b", streams=streams)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    server.stop()
    restored = cluster("a", "c", streams=streams)
    restored._revision = restored._oldest = 10
    again = serve(restored, port=server.port)
    wait_for(lambda: {PODS, NODES} <= set(again.paths()))
    followed.until(has("a", "b"))
    restored.put(pod("d"))
    restored.end_watches()
    followed.until(has("a", "c", "d"))
    restored.put(pod("e"))
    followed.until(has("a", "c", "d", "e"))
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
    monkeypatch.setattr("kubectl_qos.cluster.informer.USAGE_SECONDS", 0.02)
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
    assert sum(request.path == PODS for request in server.requests[requested:]) < 10


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
    objects.faults[PODS] = lambda request: DOWN if "continue" in request.query else None
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
