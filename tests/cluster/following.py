"""A feed read in a thread, as the UI reads it, and what is asked of its moments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubectl_qos.cluster import reflector as watch
from kubectl_qos.cluster.informer import Update, UpdateStream
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.store import LIVE
from kubectl_qos.cluster.usage import UsageChoice
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.pod_rows import build_rows
from tests.cluster.https_server import HttpsServer
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


class Followed:
    """A feed read in a thread, as the UI reads it; `moments` is what it said."""

    def __init__(self, feed: UpdateStream) -> None:
        self.feed = feed
        self.moments: list[Update] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (moment := self.feed.next()) is not None:
            self.moments.append(moment)

    def until(self, condition: Callable[[Update], bool], seconds: float = 10) -> Update:
        """Wait for a last moment of which something is so."""
        return self._wait(lambda: self.moments[-1:], condition, seconds)

    def ever(self, condition: Callable[[Update], bool], seconds: float = 10) -> Update:
        """Wait until some moment has been of which something is so."""
        return self._wait(lambda: list(self.moments), condition, seconds)

    def _wait(
        self, looked_at: Callable[[], list[Update]], condition: Callable[[Update], bool], seconds: float
    ) -> Update:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for moment in looked_at():
                if condition(moment):
                    return moment
            time.sleep(0.005)
        raise AssertionError(f"never so; the last moments: {[_short(one) for one in self.moments[-3:]]}")

    def end(self) -> None:
        """Close the feed; it must let its reader go at once."""
        self.feed.close()
        self._thread.join(2)
        assert not self._thread.is_alive()


def _short(moment: Update) -> object:
    return moment.snapshot and requests(moment), moment.health


@pytest.fixture
def follow(
    serve: Serve, connect_to: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Followed, HttpsServer]]]:
    """Follow a server's objects; what fails is tried again soon."""
    monkeypatch.setattr(watch, "FIRST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(watch, "LONGEST_RETRY_SECONDS", 0.1)
    started: list[Followed] = []

    def start(
        objects: WatchServer,
        scope: Scope | None = None,
        *,
        user: dict[str, Any] | None = None,
        **options: Any,
    ) -> tuple[Followed, HttpsServer]:
        server = serve(objects)
        source = LiveSource(connect_to(server, user=user), **({"usage": UsageChoice.NONE} | options))
        started.append(Followed(source.follow(scope or Scope())))
        return started[-1], server

    yield start
    for one in started:
        one.end()


Follow = Callable[..., tuple[Followed, HttpsServer]]


def names(moment: Update) -> list[str]:
    """The names of a moment's pods, in order."""
    assert moment.snapshot is not None
    return sorted(found.name for found in moment.snapshot.pods)


def requests(moment: Update) -> dict[str, str]:
    """How much memory each pod requests."""
    assert moment.snapshot is not None
    found = {pod.name: (pod.spec.containers or ())[0].resources.requests for pod in moment.snapshot.pods}
    return {name: str(asked["memory"]) if asked else "" for name, asked in found.items()}


def missing(moment: Update) -> list[str]:
    """What a moment says that it lacks."""
    assert moment.snapshot is not None
    return [one.what for one in moment.snapshot.missing]


def has(*wanted: str) -> Callable[[Update], bool]:
    """Whether a moment is live and has these pods."""
    return lambda moment: (
        moment.snapshot is not None and moment.health is LIVE and names(moment) == sorted(wanted)
    )


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never so"
        time.sleep(0.005)


def says(sentence: str) -> Callable[[Update], bool]:
    """Whether a moment's error is this one."""
    return lambda moment: str(moment.health.error) == sentence


def ranks(snapshot: Snapshot) -> list[tuple[str, int | None, str, str]]:
    """The table of a snapshot: node, rank and name of each pod."""
    return sorted(
        ((row.node, row.rank, row.pod.namespace, row.name) for row in build_rows(snapshot, Scope()).rows),
        key=str,
    )


def assert_as_listed(followed: Followed, source: LiveSource) -> None:
    """What is held is, pod by pod and rank by rank, what a fresh list says."""
    listed = source.snapshot(Scope())
    held = followed.moments[-1].snapshot
    assert held is not None

    def by_name(snapshot: Snapshot) -> list[Any]:
        return sorted(snapshot.pods, key=lambda pod: (pod.namespace, pod.name))

    assert by_name(held) == by_name(listed)
    assert {name: held.nodes[name] for name in listed.nodes} == {
        name: _without_revision(node) for name, node in listed.nodes.items()
    }
    assert ranks(held) == ranks(listed)


def _without_revision(node: Any) -> Any:
    from msgspec.structs import replace

    return replace(node, metadata=replace(node.metadata, resource_version=""))
