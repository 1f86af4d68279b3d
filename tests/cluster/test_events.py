"""Events of a pod: what is asked of a server, in which order they come, and what cannot be had."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_qos.cluster import kube_api as cluster_events
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource, FileSource
from kubectl_qos.cluster.http import PAGE_SIZE
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.events import NODE_MEMORY_REASONS, Event
from kubectl_qos.k8s.objects import Annotations, ObjectMeta, Pod, PodSpec
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.cluster_objects import pod as pod_object
from tests.cluster.cluster_objects import recorded_events
from tests.cluster.conftest import ConnectTo, PageSize
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.replay import Replay, recorded
from tests.cluster.serving import Serve

OF_NODE = "/api/v1/namespaces/default/events"
OF_SHOP = "/api/v1/namespaces/shop/events"


def pod(name: str, uid: str = "", *, namespace: str = "default", node: str = "node1") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid), spec=PodSpec(node_name=node))


def event(name: str, **fields: Any) -> dict[str, Any]:
    involved = {"kind": "Pod", "namespace": "shop", "name": "web", "uid": "uid-of-web"}
    found: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "shop"},
        "involvedObject": {**involved, **fields.pop("involved", {})},
        "reason": "BackOff",
        "type": "Warning",
        "lastTimestamp": "2026-11-20T12:00:00Z",
    }
    return found | fields


def of_node(name: str, reason: str, message: str = "", node: str = "node1") -> dict[str, Any]:
    """An event about a node, as kubelets make them."""
    involved = {"kind": "Node", "name": node}
    found = event(name, reason=reason, message=message) | {"involvedObject": involved}
    return found | {"metadata": {"name": name, "namespace": "default"}}


Read = Callable[[ObjectServer, Pod], tuple[Event, ...]]


@pytest.fixture
def read(connect_to: ConnectTo) -> Read:
    """Read the events of a pod from a server of these objects."""
    return lambda objects, requested: LiveSource(connect_to(objects)).events(requested)


def reasons(found: tuple[Event, ...]) -> list[str]:
    return [one.reason for one in found]


def recording(name: str) -> list[dict[str, Any]]:
    return [found for which, found in recorded_events() if which == name]


def uid_of(name: str) -> str:
    uids = {
        found["involvedObject"]["name"]: found["involvedObject"].get("uid") for _, found in recorded_events()
    }
    assert uids[name]
    return str(uids[name])


def test_the_events_of_a_recorded_eviction(read: Read) -> None:
    found = read(ObjectServer(events=recording("oom-eviction")), pod("ev-be-200", uid_of("ev-be-200")))
    of_pod = [one for one in found if not one.is_of_node]
    assert sorted(reasons(tuple(of_pod))) == [
        "Created",
        "Evicted",
        "Killing",
        "Pulled",
        "Scheduled",
        "Started",
    ]
    (killing,) = (one for one in found if one.reason == "Killing")
    assert (killing.component, killing.container) == ("kubelet", "c")
    (evicting,) = (one for one in found if one.reason == "Evicted")
    assert evicting.container == ""
    assert "low on resource: memory" in evicting.message
    (scheduled,) = (one for one in found if one.reason == "Scheduled")
    assert scheduled.component == "default-scheduler", "the newer form of a source"
    assert scheduled.first == scheduled.last != ""
    assert {one.reason for one in found if one.is_of_node} == {
        "EvictionThresholdMet",
        "NodeHasInsufficientMemory",
        "NodeHasSufficientMemory",
    }
    assert [one.last for one in found] == sorted(one.last for one in found)


def test_a_node_oom_is_an_event_of_each_of_its_pods(read: Read) -> None:
    objects = ObjectServer(events=recording("oom-global-A"))
    found = read(objects, pod("oa-gu-200", uid_of("oa-gu-200")))
    assert reasons(found).count("SystemOOM") == 5
    assert len(found) == 9
    elsewhere = read(objects, pod("oa-gu-200", uid_of("oa-gu-200"), node="node2"))
    assert "SystemOOM" not in reasons(elsewhere)


def test_a_list_of_a_real_server_is_decoded(serve: Serve, connect_to: ConnectTo) -> None:
    body = json.dumps(recorded("events-list")["response"]["body"] | {"metadata": {}}).encode()
    server = serve(lambda _: Answer(200, body))
    found = LiveSource(connect_to(server)).events(pod("db-0", node=""))
    assert sorted(set(reasons(found))) == ["FailedScheduling", "SuccessfulCreate"]
    assert all(parse_time(one.last) for one in found)


def test_the_requests_are_those_of_kubectl_describe(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    source = LiveSource(connect_to(server))
    assert source.events(pod("web", "uid-of-web", namespace="shop")) == ()
    assert {request.path: request.query for request in server.requests} == {
        OF_SHOP: {
            "fieldSelector": "involvedObject.name=web,involvedObject.uid=uid-of-web",
            "limit": str(PAGE_SIZE),
        },
        OF_NODE: {
            "fieldSelector": "involvedObject.kind=Node,involvedObject.name=node1",
            "limit": str(PAGE_SIZE),
        },
    }


def test_events_of_a_pod_without_a_uid_are_requested_by_kind_and_name(
    serve: Serve, connect_to: ConnectTo
) -> None:
    other = event("b", involved={"kind": "PodMetrics"})
    server = serve(ObjectServer(events=[event("a"), other]))
    found = LiveSource(connect_to(server)).events(pod("web", namespace="shop", node=""))
    assert len(found) == 1
    (requested,) = server.requests
    assert requested.query["fieldSelector"] == "involvedObject.name=web,involvedObject.kind=Pod"


def test_events_of_a_static_pod_are_requested_by_the_id_of_its_kubelet(read: Read) -> None:
    objects = ObjectServer(events=[event("a", involved={"uid": "hash"})])
    mirror = msgspec.structs.replace(
        pod("web", "uid-of-web", namespace="shop", node=""),
        metadata=ObjectMeta(
            name="web", namespace="shop", uid="uid-of-web", annotations=Annotations(config_mirror="hash")
        ),
    )
    assert len(read(objects, mirror)) == 1


def test_all_pages_are_read(serve: Serve, connect_to: ConnectTo, page_size: PageSize) -> None:
    page_size(3)
    times = [f"2026-11-20T12:00:{second:02}Z" for second in range(10)]
    server = serve(ObjectServer(events=[event(time, lastTimestamp=time) for time in reversed(times)]))
    found = LiveSource(connect_to(server)).events(pod("web", "uid-of-web", namespace="shop", node=""))
    assert [one.last for one in found] == times
    assert len(server.requests) == 4


@pytest.mark.parametrize("path", [OF_SHOP, OF_NODE])
def test_a_refused_node_is_left_out_and_a_refused_pod_is_said(connect_to: ConnectTo, path: str) -> None:
    objects = ObjectServer(events=[event("a"), of_node("n", "SystemOOM")])
    objects.forbidden = {path}
    source = LiveSource(connect_to(objects, user={"token": "viewer"}))
    requested = pod("web", "uid-of-web", namespace="shop")
    if path == OF_NODE:
        assert reasons(source.events(requested)) == ["BackOff"]
        return
    with pytest.raises(ApiError) as caught:
        source.events(requested)
    assert caught.value.status == 403
    assert 'cannot list resource "events"' in str(caught.value)
    assert caught.value.hint == "grant list on events in the namespace shop, as docs/rbac/events.yaml does"


def test_a_real_servers_404_is_a_refusal(connect_to: ConnectTo) -> None:
    with pytest.raises(ApiError) as caught:
        LiveSource(connect_to(Replay())).events(pod("web"))
    assert caught.value.status == 404
    assert caught.value.hint == ""


def test_a_server_that_is_gone_is_unreachable(connect_to: ConnectTo) -> None:
    with pytest.raises(ServerUnreachable):
        LiveSource(connect_to("https://127.0.0.1:1")).events(pod("web"))


@pytest.mark.parametrize(
    "odd",
    [{"message": 5}, {"series": "often"}, {"involvedObject": []}, {"count": "many"}, {"metadata": {}}],
    ids=str,
)
def test_a_malformed_event_is_an_error_of_the_pod_and_nothing_of_the_node(
    connect_to: ConnectTo, odd: dict[str, Any]
) -> None:
    whole = json.dumps({"kind": "EventList", "metadata": {}, "items": [event("a") | odd]}).encode()
    objects = ObjectServer(events=[event("b")])
    source = LiveSource(connect_to(objects))
    requested = pod("web", "uid-of-web", namespace="shop")
    objects.faults[OF_NODE] = Answer(200, whole)
    assert len(source.events(requested)) == 1
    objects.faults[OF_SHOP] = Answer(200, whole)
    with pytest.raises(QosError, match="cannot be read"):
        source.events(requested)


def test_a_node_that_hangs_does_not_hold_up_the_pods_events(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_events, "NODE_SECONDS", 0.01)
    objects = ObjectServer(events=[event("a"), of_node("n", "SystemOOM")])
    released, gave_up = threading.Event(), threading.Event()

    def hang(_: Request) -> Answer:
        released.wait(120)
        gave_up.set()
        return status(503, "ServiceUnavailable", "too late")

    objects.faults[OF_NODE] = hang
    try:
        found = read(objects, pod("web", "uid-of-web", namespace="shop"))
        assert reasons(found) == ["BackOff"]
        assert not gave_up.is_set()
    finally:
        released.set()


def test_of_a_node_only_events_about_memory_are_read(read: Read) -> None:
    others = ["NodeReady", "Rebooted", "NodeHasDiskPressure", "Starting"]
    objects = ObjectServer(
        events=[
            *[of_node(f"a{number}", reason, "memory") for number, reason in enumerate(NODE_MEMORY_REASONS)],
            *[of_node(f"b{number}", reason, "memory") for number, reason in enumerate(others)],
            of_node("c", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage"),
            of_node("d", "SystemOOM", node="node2"),
        ]
    )
    found = read(objects, pod("web", "uid-of-web", namespace="shop"))
    assert sorted(reasons(found)) == sorted(NODE_MEMORY_REASONS)


def test_a_file_has_the_events_that_are_in_it(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    items = [
        pod_object("web", node="node1"),
        event("a") | {"kind": "Event", "apiVersion": "v1"},
        event("other", involved={"uid": "another", "name": "web"}) | {"kind": "Event", "apiVersion": "v1"},
        of_node("n", "SystemOOM") | {"kind": "Event", "apiVersion": "v1"},
        {"kind": "Event", "apiVersion": "example.com/v1", "metadata": {"name": "party"}, "count": "many"},
    ]
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    source = FileSource([str(dump)])
    (web,) = source.snapshot(Scope()).pods
    assert sorted(reasons(source.events(web))) == ["BackOff", "SystemOOM"]
    assert source.notes == ("ignored, without pods: 1 Event",)


def test_a_pod_of_a_manifest_has_none(tmp_path: Path) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text("kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c}]}\n")
    source = FileSource([str(manifest)])
    assert source.events(source.snapshot(Scope()).pods[0]) == ()


def test_a_file_of_events_alone(tmp_path: Path) -> None:
    dump = tmp_path / "events.json"
    dump.write_text(
        json.dumps({"kind": "List", "items": [event("a") | {"kind": "Event", "apiVersion": "v1"}]})
    )
    source = FileSource([str(dump)])
    assert not list(source.snapshot(Scope()).pods)
    assert len(source.event_list(None).events) == 1


def test_the_demos_events_fit_its_pods() -> None:
    source = DemoSource()
    snapshot = source.snapshot(Scope())
    created = {found.metadata.uid: found.metadata.creation_timestamp for found in snapshot.pods}
    events = {found.name: source.events(found) for found in snapshot.pods}
    for one in {one.metadata.name: one for found in events.values() for one in found}.values():
        first, last = parse_time(one.first), parse_time(one.last)
        assert first is not None
        assert last is not None
        assert first <= last <= DEMO_TIME
        if not one.is_of_node:
            born = parse_time(created[one.involved_object.uid])
            assert born is not None
            assert born <= first
    crunch = next(found for found in snapshot.pods if found.name == "crunch-x2k9f")
    (container,) = crunch.status.container_statuses or ()
    assert container.last_state is not None
    assert container.last_state.terminated is not None
    (oom,) = (one for one in events["crunch-x2k9f"] if one.reason == "SystemOOM")
    assert oom.last == container.last_state.terminated.finished_at
    assert events["db-2"] == ()
