"""What servers and kubelets refuse: a recorded answer, and sentences that the golden cases do not reach."""

import json

import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import kubelet_refusals, pod_refusals
from tests.cluster.replay import recorded


@pytest.mark.parametrize(
    ("kubelet", "release", "sentence"),
    [
        (Kubelet(memory_throttling_factor=1.5), "1.36", "memoryThrottlingFactor 1.5 must be greater than 0"),
        (Kubelet(enforce_node_allocatable=("pods", "pods")), "1.36", 'duplicated enforcements "pods"'),
        (Kubelet(enforce_node_allocatable=("none", "pods")), "1.36", "may not contain additional"),
        (Kubelet(enforce_node_allocatable=("kube-reserved",)), "1.31", 'when "kube-reserved" contained'),
        (
            Kubelet(enforce_node_allocatable=("kube-reserved-compressible",)),
            "1.36",
            'kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or',
        ),
        (
            Kubelet(
                enforce_node_allocatable=("kube-reserved", "kube-reserved-compressible"),
                kube_reserved_cgroup="/podruntime",
            ),
            "1.36",
            "cannot be specified together",
        ),
    ],
)
def test_a_configuration_is_refused(kubelet: Kubelet, release: str, sentence: str) -> None:
    refusals = kubelet_refusals(kubelet, Release.of(release))
    assert any(sentence in refusal for refusal in refusals), refusals


def test_a_period_out_of_range_is_refused_once_the_gate_allows_any() -> None:
    refusals = kubelet_refusals(Kubelet(cpu_cfs_quota_period_us=2_000_000), Release.of("1.36"))
    subject = "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period)"
    assert refusals == [f"{subject} {{2s}} must be between 1ms and 1sec, inclusive"]


@pytest.mark.parametrize("minor", range(25, 38))
def test_the_defaults_of_every_release_are_accepted(minor: int) -> None:
    release = Release.of(f"1.{minor}")
    assert kubelet_refusals(Kubelet.defaults(release), release) == []


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [(0, "0s"), (50, "50µs"), (1000, "1ms"), (123_456, "123.456ms"), (150_000, "150ms"), (1_500_000, "1.5s")],
)
def test_durations_are_printed_as_go_does(duration_us: int, text: str) -> None:
    [sentence] = kubelet_refusals(Kubelet(cpu_cfs_quota_period_us=duration_us), Release.of("1.31"))
    assert f" {{{text}}} requires feature gate" in sentence


def test_a_request_above_its_limit_is_refused_in_the_servers_words() -> None:
    exchange = recorded("pod-create-invalid-limit-below-request-422")
    body = exchange["request"]["body"]
    release = Release.of("1.36")
    pod = default_pod(convert(json.loads(body) if isinstance(body, str) else body, Pod), release)
    refusals = [str(refusal) for refusal in pod_refusals(pod, release)]
    assert refusals
    assert all(refusal in exchange["response"]["body"]["message"] for refusal in refusals)
