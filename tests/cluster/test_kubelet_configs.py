"""The kubelets' own configuration: read where it may be read, assumed without a word or a wait elsewhere."""

import json
from typing import Any

import pytest

from kubectl_qos.cluster.kube_api import MAX_CONFIGZ_NODES, UsageChoice
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.kubelet import CgroupDriver, Origin
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from tests.cluster.cluster_objects import node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.object_server import ObjectServer
from tests.cluster.replay import recorded
from tests.cluster.serving import Serve
from tests.recordings.files import read_json


def path_of(name: str) -> str:
    return f"/api/v1/nodes/{name}/proxy/configz"


def recorded_configz(**changes: Any) -> dict[str, Any]:
    found = read_json("node-1.36/configz-systemd.json")
    return {"kubeletconfig": {**found.get("kubeletconfig", found), **changes}}


def cluster_of(count: int, **others: Any) -> ObjectServer:
    names = [f"worker-{number}" for number in range(1, count + 1)]
    return ObjectServer(
        pods=[pod(f"pod-of-{name}", node=name) for name in names],
        nodes=[node(name) for name in names],
        others=others,
    )


def source_of(server: HttpsServer, connect_to: ConnectTo) -> LiveSource:
    return LiveSource(connect_to(server), usage=UsageChoice.NONE)


def driver(snapshot: Snapshot, name: str) -> tuple[CgroupDriver, Origin]:
    kubelet = snapshot.setup(name).kubelet
    return kubelet.cgroup_driver, kubelet.origin("cgroup_driver")


def test_the_recorded_configuration_is_read_and_said_to_be(serve: Serve, connect_to: ConnectTo) -> None:
    objects = cluster_of(2)
    objects.others[path_of("worker-1")] = recorded_configz(cgroupDriver="cgroupfs")
    objects.others[path_of("worker-2")] = recorded_configz(featureGates={"MemoryQoS": True})
    snapshot = source_of(serve(objects), connect_to).snapshot(Scope())
    assert driver(snapshot, "worker-1") == (CgroupDriver.CGROUPFS, Origin.CONFIGZ)
    assert driver(snapshot, "worker-2") == (CgroupDriver.SYSTEMD, Origin.CONFIGZ)
    assert snapshot.setup("worker-2").kubelet.feature_gates == {"MemoryQoS": True}


def test_each_kubelet_is_read_once(serve: Serve, connect_to: ConnectTo) -> None:
    objects = cluster_of(1)
    objects.others[path_of("worker-1")] = recorded_configz()
    server = serve(objects)
    source = source_of(server, connect_to)
    first, second = source.snapshot(Scope()), source.snapshot(Scope())
    assert first.kubelets == second.kubelets != {}
    assert server.paths().count(path_of("worker-1")) == 1


def test_without_the_right_one_kubelet_is_tried_and_nothing_reported(
    serve: Serve, connect_to: ConnectTo
) -> None:
    objects = cluster_of(3)
    for name in ("worker-1", "worker-2", "worker-3"):
        objects.faults[path_of(name)] = Answer(
            403, b'{"message": "nodes is forbidden", "reason": "Forbidden"}'
        )
    server = serve(objects)
    snapshot = source_of(server, connect_to).snapshot(Scope())
    assert sum("configz" in path for path in server.paths()) == 1
    assert driver(snapshot, "worker-1") == (CgroupDriver.SYSTEMD, Origin.ASSUMED)
    assert snapshot.missing == ()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, json.dumps(recorded("node-proxy-unreachable-500")["response"]["body"]).encode()),
        Answer(200, b'{"kubeletconfig": {"cgroupDriver": "other"}}'),
        Answer(200, b'{"kubeletconfig": {"qosReserved": {"memory": "half"}}}'),
        Answer(200, b"no json"),
        Answer(200, json.dumps(recorded_configz(cgroupDriver="cgroupfs")).encode(), delay_seconds=20),
    ],
    ids=["unreachable", "unknown driver", "wrong number", "no json", "too late"],
)
def test_a_kubelet_that_does_not_answer_is_assumed(
    serve: Serve, connect_to: ConnectTo, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer.delay_seconds:
        monkeypatch.setattr("kubectl_qos.cluster.live.CONFIGZ_SECONDS", 0.3)
    objects = cluster_of(2)
    objects.faults[path_of("worker-1")] = answer
    objects.others[path_of("worker-2")] = recorded_configz(cgroupDriver="cgroupfs")
    snapshot = source_of(serve(objects), connect_to).snapshot(Scope())
    assert driver(snapshot, "worker-1") == (CgroupDriver.SYSTEMD, Origin.ASSUMED)
    if not answer.delay_seconds:
        assert driver(snapshot, "worker-2") == (CgroupDriver.CGROUPFS, Origin.CONFIGZ)


def test_a_large_cluster_is_not_read_node_by_node(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(cluster_of(MAX_CONFIGZ_NODES + 1))
    source_of(server, connect_to).snapshot(Scope())
    assert not [path for path in server.paths() if "configz" in path]
