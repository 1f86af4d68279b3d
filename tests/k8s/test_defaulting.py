"""Defaulting against what a real API server stored."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Pod, json_decoder
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.qos_class import computed_class

RECORDED = Path(__file__).parents[1] / "recordings" / "apiserver-1.36"
RELEASE = Release.of("1.36")
CREATED = sorted(path.name for path in RECORDED.glob("0*-pod-create-*.json") if path.name[0:3] < "016")


def exchange(name: str) -> tuple[Pod, Pod]:
    """The pod that was sent and the pod that the server stored."""
    found = json.loads((RECORDED / name).read_text())
    sent, stored = found["request"]["body"], found["response"]["body"]
    sent = json.loads(sent) if isinstance(sent, str) else sent
    decode = json_decoder(Pod).decode
    return decode(msgspec.json.encode(sent)), decode(msgspec.json.encode(stored))


@pytest.mark.parametrize("name", CREATED)
def test_resources_are_defaulted_as_the_server_did(name: str) -> None:
    sent, stored = exchange(name)
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
    once = default_pod(exchange(name)[0], RELEASE)
    assert default_pod(once, RELEASE) == once


def test_a_request_above_its_limit_is_refused_in_the_servers_words() -> None:
    found = json.loads((RECORDED / "016-pod-create-invalid-limit-below-request-422.json").read_text())
    sent = found["request"]["body"]
    sent = json.loads(sent) if isinstance(sent, str) else sent
    pod = default_pod(json_decoder(Pod).decode(msgspec.json.encode(sent)), RELEASE)
    refusals = [str(refusal) for refusal in pod_refusals(pod, RELEASE)]
    message = found["response"]["body"]["message"]
    assert refusals
    assert all(refusal in message for refusal in refusals)
