"""Defaulting against what a real API server stored, and the priorities of system classes."""

import json
from typing import Any

import msgspec
import pytest

from kubectl_qos.cluster.documents import ParsedObjects
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import JsonDecoder, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.oom_score import is_critical, is_node_critical
from kubectl_qos.qos.qos_class import computed_class
from tests.cluster.replay import exchanges, recorded

RELEASE = Release.of("1.36")
CREATED = [
    str(exchange["name"])
    for exchange in exchanges()
    if exchange["name"].startswith("pod-create-") and exchange["response"]["status"] == 201
]


def sent_and_stored(name: str) -> tuple[Pod, Pod]:
    exchange = recorded(name)
    sent, stored = exchange["request"]["body"], exchange["response"]["body"]
    sent = json.loads(sent) if isinstance(sent, str) else sent
    decode = JsonDecoder(Pod).decode
    return decode(msgspec.json.encode(sent)), decode(msgspec.json.encode(stored))


@pytest.mark.parametrize("name", [name for name in CREATED if "limitrange" not in name])
def test_resources_are_defaulted_as_the_server_did(name: str) -> None:
    sent, stored = sent_and_stored(name)
    ours = default_pod(sent, RELEASE)
    for mine, theirs in zip(
        (*ours.containers, *ours.init_containers),
        (*stored.containers, *stored.init_containers),
        strict=True,
    ):
        assert mine.requests == theirs.requests
        assert mine.limits == theirs.limits
    mine_pod, their_pod = ours.spec.resources, stored.spec.resources
    assert (mine_pod and mine_pod.requests) == (their_pod and their_pod.requests)
    assert (mine_pod and mine_pod.limits) == (their_pod and their_pod.limits)
    assert computed_class(ours, RELEASE).value == stored.status.qos_class


@pytest.mark.parametrize("name", CREATED)
def test_a_defaulted_pod_is_a_fixed_point(name: str) -> None:
    once = default_pod(sent_and_stored(name)[0], RELEASE)
    assert default_pod(once, RELEASE) == once


def spec(name: str, **more: Any) -> dict[str, Any]:
    return {"priorityClassName": name, "containers": [{"name": "c"}], **more}


def from_file(metadata: dict[str, Any], **spec: Any) -> Pod:
    objects = ParsedObjects()
    text = json.dumps({"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec})
    objects.add_file(text.encode(), "p.json")
    return objects.pods[0]


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical", "gold", ""])
def test_a_template_and_a_manifest_become_as_critical_as_their_class(name: str) -> None:
    template = pod_from_workload("DaemonSet", {"spec": {"template": {"spec": spec(name)}}})
    for pod in (template, from_file({}, **spec(name))):
        assert is_critical(pod) is name.startswith("system-")
        assert is_node_critical(pod) is (name == "system-node-critical")


def test_a_given_priority_counts() -> None:
    given = spec("system-node-critical", priority=5)
    template = pod_from_workload("DaemonSet", {"spec": {"template": {"spec": given}}})
    assert template.spec.priority == 5
    assert not is_critical(template)


def test_the_priority_of_a_pod_from_a_server_is_its_own() -> None:
    """A server without that admission plugin sets none, and its kubelet uses that."""
    stored = from_file({"uid": "u"}, **spec("system-node-critical"))
    assert stored.spec.priority is None
    assert not is_critical(stored)
