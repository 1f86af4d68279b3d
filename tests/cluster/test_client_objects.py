"""Objects of the official Python client are predicted like the JSON that they came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes.client import ApiClient, V1Container, V1Node, V1NodeStatus, V1ObjectMeta, V1Pod, V1PodSpec
from kubernetes.client import V1ResourceRequirements as Resources

from kubectl_qos import node_from_client, pod_from_client, predict
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod, json_decoder
from tests.cluster.cluster_objects import recorded_node, recorded_pods


def of_client(raw: Any, kind: str) -> Any:
    """What the client makes of a server's answer."""
    return ApiClient().deserialize(json.dumps(raw), kind, "application/json")


def test_every_recorded_pod_is_predicted_as_from_its_json() -> None:
    node = node_from_client(of_client(recorded_node(), "V1Node"))
    assert node.memory_capacity_bytes == 3984140 * 1024
    for raw in recorded_pods():
        from_client = predict(pod_from_client(of_client(raw, "V1Pod")), node, release="1.36")
        from_json = predict(json_decoder(Pod).decode(json.dumps(raw).encode()), node, release="1.36")
        assert from_client.qos_class is from_json.qos_class
        assert from_client.containers == from_json.containers
        assert dict(from_client.cgroup.files) == dict(from_json.cgroup.files)


def test_a_pod_made_in_a_program() -> None:
    container = V1Container(name="a", resources=Resources(requests={"memory": "1Gi"}))
    pod = V1Pod(metadata=V1ObjectMeta(name="p"), spec=V1PodSpec(containers=[container]))
    node = V1Node(
        metadata=V1ObjectMeta(name="n"), status=V1NodeStatus(capacity={"memory": "16Gi", "cpu": "4"})
    )
    result = predict(pod_from_client(pod), node_from_client(node))
    assert result.containers[0].oom_score_adj == 938


def test_anything_else_is_refused() -> None:
    wrong: list[Any] = [V1Node(), {"spec": {}}, None]
    for one in wrong:
        with pytest.raises(InputError, match=r"a kubernetes\.client\.V1Pod was expected, not"):
            pod_from_client(one)
    container = V1Container(name="a", resources=Resources(requests={"memory": "1GG"}))
    with pytest.raises(InputError, match="memory: '1GG': unable to parse"):
        pod_from_client(V1Pod(spec=V1PodSpec(containers=[container])))
