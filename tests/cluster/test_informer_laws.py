"""Whatever happens to a server and to its watches: in the end, what is held is what it has."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubectl_qos.cluster import reflector
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.cluster.certificates import Authority
from tests.cluster.cluster_objects import node, pod
from tests.cluster.following import NODES, PODS, Followed, assert_as_listed, names
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.watch_server import WatchServer

Step = Callable[[WatchServer], None]
FAILED = status(500, "InternalError", "etcdserver: leader changed")
pods = st.sampled_from(["a", "b", "c", "d"])
nodes = st.sampled_from(["", "worker-1", "worker-2"])


def put(name: str, on: str, size: str) -> Step:
    return lambda objects: objects.put(pod(name, node=on, request=size))


def delete(name: str) -> Step:
    def step(objects: WatchServer) -> None:
        for found in [one for one in objects.pods if one["metadata"]["name"] == name]:
            objects.delete(found)

    return step


def put_node(name: str, size: str) -> Step:
    return lambda objects: objects.put(node(name, memory=size))


def end(abruptly: bool) -> Step:
    return lambda objects: objects.end_watches(abruptly=abruptly)


def fail(what: str) -> Step:
    def step(objects: WatchServer) -> None:
        objects.faults |= {f"{what}{PODS}": FAILED, f"{what}{NODES}": FAILED}

    return step


def break_off(objects: WatchServer) -> None:
    objects.faults |= {f"watch {PODS}": Answer(chunks=[b'{"type":"ADD', None])}


def mend(objects: WatchServer) -> None:
    objects.faults.clear()


def bookmark(objects: WatchServer) -> None:
    objects.bookmark()


def compact(objects: WatchServer) -> None:
    objects.forget()


steps = st.one_of(
    st.builds(put, pods, nodes, st.sampled_from(["1Gi", "2Gi"])),
    st.builds(delete, pods),
    st.builds(put_node, st.sampled_from(["worker-1", "worker-2"]), st.sampled_from(["8Gi", "16Gi"])),
    st.builds(end, st.booleans()),
    st.builds(fail, st.sampled_from(["watch ", ""])),
    st.sampled_from([break_off, mend, bookmark, compact]),
)


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "plain"])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, max_size=12), st.lists(steps, max_size=6))
@example([put("a", "worker-1", "1Gi")], [end(True), delete("a"), compact])
@example([put("a", "", "1Gi"), fail("watch ")], [end(False), put("a", "worker-2", "1Gi"), compact])
def test_in_the_end_everything_is_as_it_is(
    authority: Authority, streams: bool, before: list[Step], after: list[Step]
) -> None:
    """`before` happens while the first list is on its way, `after` when it has come, if it has."""
    objects = WatchServer(streams=streams, pods=[pod("a"), pod("b")], nodes=[node("worker-1")])
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(reflector, "FIRST_RETRY_SECONDS", 0.005)
        patch.setattr(reflector, "MAX_RETRY_SECONDS", 0.02)
        with HttpsServer(objects, folder, authority) as server:
            path = write(folder / "config", kubeconfig(server))
            connection = connect(ConnectionOptions(kubeconfig=str(path)))
            source = LiveSource(connection, usage=UsageChoice.NONE)
            followed = Followed(source.follow(Scope()))
            try:
                for step in before:
                    step(objects)
                followed.ever(lambda _: True)
                for step in after:
                    step(objects)
                mend(objects)
                objects.put(pod("the last"))
                objects.put(node("the last"))
                followed.until(
                    lambda update: (
                        update.snapshot is not None
                        and "the last" in names(update)
                        and "the last" in update.snapshot.nodes
                        and update.health.error is None
                    )
                )
                assert_as_listed(followed, connection)
            finally:
                followed.end()
