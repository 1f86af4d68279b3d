"""What the lines of a watch may be, and how they may come: cut anywhere, odd, unreadable, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_qos.cluster import reflector
from kubectl_qos.cluster.informer import Informer
from kubectl_qos.cluster.store import PODS as PODS_WATCH
from kubectl_qos.cluster.store import Store
from kubectl_qos.k8s.interning import Interner
from tests.cluster.cluster_objects import node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.following import (
    PODS,
    Follow,
    assert_as_listed,
    cluster,
    fails,
    has,
    names,
    wait_for,
)
from tests.cluster.https_server import Request
from tests.cluster.object_server import Object
from tests.cluster.watch_faults import BROKEN_OFF, SPOILED, BreakableServer, event
from tests.cluster.watch_server import Line


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
def test_an_event_that_cannot_be_read_is_got_around(follow: Follow, streams: bool) -> None:
    """It would come again with every watch from the same revision, long after its pod is gone."""

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

    def out_of_sync(self: Store, name: str, error: Any, retry_seconds: float) -> None:
        waited.extend([retry_seconds] if name == PODS_WATCH else [])
        original(self, name, error, retry_seconds)

    monkeypatch.setattr(Store, "out_of_sync", out_of_sync)
    objects = BreakableServer(pods=[pod("a")], nodes=[node()])
    followed, _ = follow(objects)
    followed.until(has("a"))
    objects.break_watches(fault)
    wait_for(lambda: len(waited) >= 5)
    assert waited[3] >= 0.05
    assert min(waited[4:]) >= 0.05
