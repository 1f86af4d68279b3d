"""An update stream read in a thread, as the UI reads it, and what is asked of its updates."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster import reflector
from kubectl_qos.cluster.informer import Informer
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.source import LIVE, Update, UpdateStream
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.transport.client import Connection
from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import HttpsServer
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


def cluster(*pods: str, **options: Any) -> WatchServer:
    """A server of these pods and one node."""
    return WatchServer(pods=[pod(name) for name in pods], nodes=[node()], **options)


class Followed:
    """A stream read in a thread; `updates` is what came."""

    def __init__(self, stream: UpdateStream) -> None:
        self.stream = stream
        self.updates: list[Update] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (update := self.stream.next()) is not None:
            self.updates.append(update)

    def until(self, condition: Callable[[Update], bool], seconds: float = 60) -> Update:
        """Wait for a last update that meets a condition."""
        return self._wait(lambda: self.updates[-1:], condition, seconds)

    def ever(self, condition: Callable[[Update], bool], seconds: float = 60) -> Update:
        """Wait until some update has met a condition."""
        return self._wait(lambda: list(self.updates), condition, seconds)

    def _wait(
        self, candidates: Callable[[], list[Update]], condition: Callable[[Update], bool], seconds: float
    ) -> Update:
        found: list[Update] = []

        def is_reached() -> bool:
            found.extend(update for update in candidates() if condition(update))
            return bool(found)

        wait_for(is_reached, seconds, lambda: str([_short(update) for update in self.updates[-3:]]))
        return found[0]

    def end(self) -> None:
        """Close the stream; its reader must return at once."""
        self.stream.close()
        self._thread.join(2)
        assert not self._thread.is_alive()


def _short(update: Update) -> object:
    return update.snapshot and requests(update), update.health


@pytest.fixture
def follow(
    serve: Serve, connect_to: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Followed, HttpsServer]]]:
    """Follow a server's objects; what fails is retried soon."""
    monkeypatch.setattr(reflector, "FIRST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(reflector, "MAX_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(reflector, "ACCEPTED_SECONDS", 0.05)
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
    for followed in started:
        followed.end()


Follow = Callable[..., tuple[Followed, HttpsServer]]


def held(update: Update) -> Snapshot:
    assert update.snapshot is not None
    return update.snapshot


def names(update: Update) -> list[str]:
    """The names of an update's pods, in order."""
    return sorted(found.name for found in held(update).pods)


def requests(update: Update) -> dict[str, str]:
    found = {pod.name: (pod.spec.containers or ())[0].resources.requests for pod in held(update).pods}
    return {name: str(memory["memory"]) if memory else "" for name, memory in found.items()}


def missing(update: Update) -> list[str]:
    return [one.what for one in held(update).missing]


def has(*pods: str) -> Callable[[Update], bool]:
    """Whether an update is live and has these pods."""
    return lambda update: (
        update.snapshot is not None
        and update.arrived is None
        and update.health is LIVE
        and names(update) == sorted(pods)
    )


def fails(sentence: str = "") -> Callable[[Update], bool]:
    """Whether an update has an error, and this one if it is given."""
    return lambda update: update.health.error is not None and sentence in {"", str(update.health.error)}


def wait_for(condition: Callable[[], bool], seconds: float = 60, state: Callable[[], str] = str) -> None:
    """Wait until a condition is met; the failure shows the state."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never so: {state()}"
        time.sleep(0.005)


def wait_until_read(followed: Followed, objects: WatchServer) -> None:
    """Wait until every watch has read what the server has sent so far."""
    # The last change is of one kind: the watch of the other kind stays one revision behind.
    sent = int(objects.list_revision()) - 1
    assert isinstance(followed.stream, Informer)
    reflectors = followed.stream._reflectors
    wait_for(lambda: all(int(reflector._revision or 0) >= sent for reflector in reflectors))


def ranks(snapshot: Snapshot) -> list[tuple[str, int | None, str, str]]:
    """The table of a snapshot: node, rank and name of each pod."""
    return sorted(
        ((row.node, row.rank, row.pod.namespace, row.name) for row in build_rows(snapshot, Scope()).rows),
        key=str,
    )


def assert_as_listed(followed: Followed, connection: Connection) -> None:
    """What is held is, pod by pod and rank by rank, what a new list says."""
    listed = LiveSource(connection, usage=UsageChoice.NONE).snapshot(Scope())
    last = held(followed.updates[-1])

    def by_name(snapshot: Snapshot) -> list[Pod]:
        return sorted(snapshot.pods, key=lambda pod: (pod.namespace, pod.name))

    def without_revision(node: NodeObject) -> NodeObject:
        return replace(node, metadata=replace(node.metadata, resource_version=""))

    assert by_name(last) == by_name(listed)
    assert {name: last.nodes[name] for name in listed.nodes} == {
        name: without_revision(node) for name, node in listed.nodes.items()
    }
    assert ranks(last) == ranks(listed)
