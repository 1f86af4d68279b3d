"""Decoding: only named fields, shared parts, and errors with the resource."""

from typing import Any

import msgspec
import pytest

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import JsonDecoder, NodeObject, Pod, nested, nested_list, resource_list
from tests.cluster.replay import recorded

PODS = JsonDecoder(Pod)


def body(name: str) -> bytes:
    return msgspec.json.encode(recorded(name)["response"]["body"])


def test_a_recorded_pod_is_decoded() -> None:
    pod = PODS.decode(body("pod-get"))
    assert (pod.namespace, pod.name) == ("rec", "burstable")
    assert str(pod.containers[0].requests["memory"]) == "64Mi"
    assert pod.status.qos_class == "Burstable"


def test_a_recorded_node_is_decoded() -> None:
    node = JsonDecoder(NodeObject).decode(body("node-get"))
    assert node.status.capacity is not None
    assert node.status.capacity["memory"].value() > 0


def test_equal_resource_lists_and_labels_are_the_same_object() -> None:
    text = b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}'
    first, second = PODS.decode(text), PODS.decode(text)
    assert first.containers[0].resources.limits is second.containers[0].resources.limits
    assert first.metadata.labels is second.metadata.labels


def test_an_absent_map_differs_from_an_empty_one() -> None:
    absent = PODS.decode(b'{"spec":{"containers":[{"name":"a","resources":{}}]}}')
    empty = PODS.decode(b'{"spec":{"containers":[{"name":"a","resources":{"limits":{}}}]}}')
    assert absent.containers[0].resources.limits is None
    assert empty.containers[0].resources.limits == {}


def test_a_bare_number_keeps_its_text() -> None:
    pod = PODS.decode(b'{"spec":{"containers":[{"resources":{"limits":{"cpu":1.50,"memory":1e3}}}]}}')
    limits = pod.containers[0].limits
    assert (str(limits["cpu"]), str(limits["memory"])) == ("1500m", "1e3")


def test_unknown_fields_are_skipped() -> None:
    assert PODS.decode(b'{"metadata":{"name":"a","managedFields":[{"x":1}]},"spec":{"new":{}}}').name == "a"


def test_a_wrong_quantity_names_the_resource() -> None:
    with pytest.raises(QuantityError, match=r"^cpu: '1x': quantities must match"):
        PODS.decode(b'{"spec":{"containers":[{"resources":{"limits":{"cpu":"1x"}}}]}}')


def test_a_resource_list_cannot_be_changed() -> None:
    resources = resource_list({"cpu": "1"})
    with pytest.raises(TypeError):
        resources["cpu"] = resources["cpu"]
    with pytest.raises(TypeError):
        resources.update({})


def test_pods_cannot_be_changed() -> None:
    pod = PODS.decode(b'{"metadata":{"name":"a"}}')
    with pytest.raises(AttributeError):
        pod.metadata.name = "b"  # type: ignore[misc]


def test_what_is_no_object_is_an_empty_one() -> None:
    raw: dict[str, Any] = {"metadata": {"ownerReferences": [None, {"kind": "Node"}, "x"], "labels": None}}
    assert nested(raw, "metadata", "labels") == nested(raw, "spec", "x") == nested(None, "x") == {}
    assert nested_list(raw, "metadata", "ownerReferences") == [{"kind": "Node"}]
    assert nested_list(raw, "metadata", "labels") == []
