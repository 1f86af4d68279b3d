"""Parts of pods held once: nothing about a pod changes, not even how a quantity is spelled."""

from __future__ import annotations

import msgspec

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Pod, decoder_of
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.sharing import Sharing
from tests.cluster.cluster_objects import recorded_pods

RELEASE = Release.of("1.36")


def decoded(raw: object) -> Pod:
    return decoder_of(Pod).decode(msgspec.json.encode(raw))


def with_request(memory: str, *, name: str = "a") -> Pod:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]}
    return decoded({"metadata": {"name": name}, "spec": spec})


def test_recorded_pods_stay_as_they_are() -> None:
    sharing = Sharing()
    pods = [decoded(raw) for raw in recorded_pods()]
    assert [sharing.pod(pod) for pod in pods] == pods


def test_pods_of_one_workload_hold_the_same_containers() -> None:
    sharing = Sharing()
    first, second = (sharing.pod(with_request("1Gi", name=name)) for name in "ab")
    assert first.spec.containers is second.spec.containers
    assert (first.name, second.name) == ("a", "b")


def test_equal_quantities_keep_their_own_spelling() -> None:
    sharing = Sharing()
    first, second = sharing.pod(with_request("1Gi")), sharing.pod(with_request("1073741824"))
    assert first == second
    assert [str(pod.containers[0].requests["memory"]) for pod in (first, second)] == ["1Gi", "1073741824"]


def test_a_pod_with_nothing_left_to_default_is_the_same_pod() -> None:
    """So that a ranking does not hold every pod twice."""
    for raw in recorded_pods():
        stored = decoded(raw)
        assert default_pod(stored, RELEASE) is stored
    limited = decoded({"spec": {"containers": [{"resources": {"limits": {"memory": "1Gi"}}}]}})
    assert default_pod(limited, RELEASE) is not limited
