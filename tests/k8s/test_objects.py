"""Decoding: only what is read, shared where it repeats, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import NodeObject, Pod, json_decoder, resource_list

RECORDED = Path(__file__).parents[1] / "recordings" / "apiserver-1.36"
PODS = json_decoder(Pod)


def recorded(name: str) -> bytes:
    body = json.loads((RECORDED / name).read_text())["response"]["body"]
    return msgspec.json.encode(body)


def test_a_recorded_pod_is_decoded_into_what_we_read() -> None:
    pod = PODS.decode(recorded("028-pod-get.json"))
    assert (pod.namespace, pod.name) == ("rec", "burstable")
    assert str(pod.containers[0].requests["memory"]) == "64Mi"
    assert pod.status.qos_class == "Burstable"


def test_a_recorded_node_is_decoded() -> None:
    node = json_decoder(NodeObject).decode(recorded("041-node-get.json"))
    assert node.status.capacity is not None
    assert node.status.capacity["memory"].value() > 0


def test_equal_resource_lists_and_labels_are_the_same_object() -> None:
    text = b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}'
    first, second = PODS.decode(text), PODS.decode(text)
    assert first.containers[0].resources.limits is second.containers[0].resources.limits
    assert first.metadata.labels is second.metadata.labels


def test_an_absent_map_is_told_from_an_empty_one() -> None:
    absent = PODS.decode(b'{"spec":{"containers":[{"name":"a","resources":{}}]}}')
    empty = PODS.decode(b'{"spec":{"containers":[{"name":"a","resources":{"limits":{}}}]}}')
    assert absent.containers[0].resources.limits is None
    assert empty.containers[0].resources.limits == {}


def test_a_bare_number_keeps_its_spelling() -> None:
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
