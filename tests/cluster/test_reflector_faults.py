"""Every fault of a watch: what was shown stays, the fault is reported, and in the end nothing is missed."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.source import Update
from tests.cluster.cluster_objects import node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.following import (
    PODS,
    Follow,
    Followed,
    assert_as_listed,
    fails,
    has,
    held,
    names,
    requests,
    wait_for,
)
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.watch_faults import (
    BROKEN_OFF,
    INSTEAD,
    REPORTED,
    SILENCE_SECONDS,
    SPOILED,
    BreakableServer,
    Fault,
)

EVERYWHERE = [*BROKEN_OFF, *SPOILED, *REPORTED, *INSTEAD]
INSIDE = [*BROKEN_OFF, *SPOILED[:2]]


@pytest.fixture(autouse=True)
def _poll_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not be watched is polled often."""
    monkeypatch.setattr("kubectl_qos.cluster.informer.POLL_SECONDS", 0.05)


@pytest.fixture
def short_read_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches of pods may be silent for a update only."""
    request_once = RestClient.request_once

    def soon(self: RestClient, path: str, query: Any, *, watch_seconds: float | None = None) -> Any:
        seconds = SILENCE_SECONDS if watch_seconds is not None and path.endswith("/pods") else watch_seconds
        return request_once(self, path, query, watch_seconds=seconds)

    monkeypatch.setattr(RestClient, "request_once", soon)
    monkeypatch.setattr("kubectl_qos.cluster.reflector.set_read_timeout", lambda *_: None)


def cluster(*, streams: bool) -> BreakableServer:
    return BreakableServer(
        streams=streams, pods=[pod("a", request="100Mi"), pod("b", request="1Gi")], nodes=[node()]
    )


def fails_by(fault: Fault) -> Callable[[Update], bool]:
    return lambda update: fails()(update) and str(update.health.error).startswith(fault.sentence)


def request_of_a(update: Update) -> str:
    """How much memory `a` requests."""
    return requests(update)["a"]


def capacity(update: Update) -> str:
    found = held(update).nodes["worker-1"].status.capacity
    return "" if found is None else str(found["memory"])


def keeps(followed: Followed, *wanted: list[str]) -> None:
    """Every snapshot of a complete list so far had these pods or those, and no others."""
    complete = (update for update in followed.updates if update.arrived is None)
    found = [names(update) for update in complete if update.snapshot is not None]
    assert found
    assert [pods for pods in found if pods not in wanted] == []


def ends_well(
    followed: Followed, objects: BreakableServer, server: HttpsServer, connect_to: ConnectTo
) -> None:
    """Everything changes, the fault ends, and what is held is what the server has."""
    objects.delete(pod("b"))
    objects.put(pod("c", limit="64Mi"))
    objects.put(pod("a", request="2Gi"))
    objects.put(node(memory="8Gi"))
    objects.mend()
    followed.until(lambda update: has("a", "c")(update) and request_of_a(update) == "2Gi")
    followed.until(lambda update: capacity(update) == "8Gi")
    assert_as_listed(followed, connect_to(server))


@pytest.mark.usefixtures("short_read_timeout")
@pytest.mark.parametrize(
    ("fault", "streams"),
    [*((fault, True) for fault in EVERYWHERE), *((fault, False) for fault in EVERYWHERE[::4])],
    ids=lambda value: value.name if isinstance(value, Fault) else "streaming" if value else "plain",
)
def test_between_events(follow: Follow, connect_to: ConnectTo, fault: Fault, streams: bool) -> None:
    objects, began = cluster(streams=streams), datetime.now(UTC)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.break_watches(fault)
    if fault.sentence:
        bad = followed.ever(fails_by(fault))
        assert bad.snapshot is not None
        assert bad.health.since is not None
        assert began <= bad.taken == bad.health.since <= datetime.now(UTC)
        assert bad.health.retry_at > 0
    keeps(followed, ["a", "b"])
    ends_well(followed, objects, server, connect_to)


@pytest.mark.usefixtures("short_read_timeout")
@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "plain"])
@pytest.mark.parametrize("fault", INSIDE, ids=lambda fault: fault.name)
def test_in_the_middle_of_an_event(
    follow: Follow, connect_to: ConnectTo, fault: Fault, streams: bool
) -> None:
    objects = cluster(streams=streams)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.break_watches(fault, inside=True)
    assert followed.ever(fails()).snapshot is not None
    keeps(followed, ["a", "b"])
    assert {request_of_a(update) for update in followed.updates if update.snapshot is not None} == {"100Mi"}
    ends_well(followed, objects, server, connect_to)


@pytest.mark.usefixtures("short_read_timeout")
@pytest.mark.parametrize("fault", [*BROKEN_OFF, *SPOILED[:3]], ids=lambda fault: fault.name)
def test_a_streaming_list_before_its_end(follow: Follow, connect_to: ConnectTo, fault: Fault) -> None:
    """Half a list is none; and where streaming lists break, plain ones get through."""
    objects = cluster(streams=True)
    objects.break_watches(fault)
    followed, server = follow(objects)
    followed.until(lambda update: update.snapshot is not None and update.arrived is None)
    keeps(followed, ["a", "b"])
    ends_well(followed, objects, server, connect_to)


def test_half_a_streaming_list_takes_the_place_of_nothing(follow: Follow, connect_to: ConnectTo) -> None:
    """A new list, because the watch is too old, that breaks off after one of two objects."""
    objects = cluster(streams=True)
    followed, server = follow(objects)
    followed.until(has("a", "b"))
    objects.faults[PODS] = objects.faults[f"watch {PODS}"] = Answer(hangs_up=True)
    objects.end_watches(abruptly=True)
    followed.ever(fails())
    objects.bookmark()
    objects.forget()
    objects.break_watches(BROKEN_OFF[0])
    del objects.faults[f"watch {PODS}"]
    requested = len(server.requests)
    wait_for(lambda: "sendInitialEvents" in str([one.query for one in server.requests[requested:]]))
    keeps(followed, ["a", "b"])
    objects.faults.clear()
    ends_well(followed, objects, server, connect_to)
