"""What servers and kubelets refuse: a recorded answer, and sentences that the golden cases do not reach."""

import json
from importlib.metadata import version
from typing import Any

import pytest
import yaml

from kubectl_qos.k8s import validation
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import KINDS, pod_from_workload, pods_from_custom
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import (
    FIELDS_FILE,
    kubelet_config_errors,
    manifest_mistakes,
    odd_size,
    pod_refusals,
    unknown_fields,
)
from tests.cluster.replay import recorded
from tests.k8s import make_fields

LOCKED_CLIENT = "37."


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
    refusals = kubelet_config_errors(kubelet, Release.of(release))
    assert any(sentence in refusal for refusal in refusals), refusals


def test_a_period_out_of_range_is_refused_once_the_gate_allows_any() -> None:
    refusals = kubelet_config_errors(Kubelet(cpu_cfs_quota_period_us=2_000_000), Release.of("1.36"))
    subject = "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period)"
    assert refusals == [f"{subject} {{2s}} must be between 1ms and 1sec, inclusive"]


@pytest.mark.parametrize("minor", range(25, 38))
def test_the_defaults_of_every_release_are_accepted(minor: int) -> None:
    release = Release.of(f"1.{minor}")
    assert kubelet_config_errors(Kubelet.defaults(release), release) == []


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [(0, "0s"), (50, "50µs"), (1000, "1ms"), (123_456, "123.456ms"), (150_000, "150ms"), (1_500_000, "1.5s")],
)
def test_durations_are_printed_as_go_does(duration_us: int, text: str) -> None:
    [sentence] = kubelet_config_errors(Kubelet(cpu_cfs_quota_period_us=duration_us), Release.of("1.31"))
    assert f" {{{text}}} requires feature gate" in sentence


def test_a_request_above_its_limit_is_refused_in_the_servers_words() -> None:
    exchange = recorded("pod-create-invalid-limit-below-request-422")
    body = exchange["request"]["body"]
    release = Release.of("1.36")
    pod = default_pod(convert(json.loads(body) if isinstance(body, str) else body, Pod), release)
    refusals = [str(refusal) for refusal in pod_refusals(pod, release)]
    assert refusals
    assert all(refusal in exchange["response"]["body"]["message"] for refusal in refusals)


@pytest.mark.skipif(not version("kubernetes").startswith(LOCKED_CLIENT), reason="another client's models")
def test_the_fields_are_those_of_the_official_client() -> None:
    assert FIELDS_FILE.read_text(encoding="utf-8") == make_fields.text()


@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        ("Pod", "{spec: {containers: [{name: a, resource: {}}]}}", ["spec.containers[0].resource"]),
        (
            "Pod",
            "{spec: {containers: [{resources: {request: {}}}]}}",
            ["spec.containers[0].resources.request"],
        ),
        ("Pod", "{spce: {}, metadata: {label: {}}}", ["spce", "metadata.label"]),
        ("Pod", "{metadata: {labels: {any: x}, annotations: {thing: y}}, spec: {nodeSelector: {a: b}}}", []),
        (
            "Pod",
            "{spec: {volumes: [{name: a}, {empty: {}}], initContainers: [{livenessProbe: {htpGet: {}}}]}}",
            ["spec.volumes[1].empty", "spec.initContainers[0].livenessProbe.htpGet"],
        ),
        (
            "Deployment",
            "{spec: {replica: 3, template: {spec: {nodeNam: x}}}}",
            ["spec.replica", "spec.template.spec.nodeNam"],
        ),
        (
            "CronJob",
            "{spec: {jobTemplate: {spec: {template: {sepc: {}}}}}}",
            ["spec.jobTemplate.spec.template.sepc"],
        ),
        ("Job", "{spec: 7}", []),
    ],
)
def test_unknown_fields(kind: str, text: str, fields: list[str]) -> None:
    assert list(unknown_fields(yaml.safe_load(text), kind)) == fields


@pytest.mark.parametrize(
    ("resource", "text", "message"),
    [
        ("memory", "512m", "512m is 0.512 bytes; 512Mi was meant?"),
        ("memory", "600", "600 is 600 bytes; 600Mi was meant?"),
        ("memory", "100Ki", "100Ki is 102,400 bytes; 100Mi was meant?"),
        ("memory", "1Mi", ""),
        ("memory", "0", ""),
        ("memory", "-5", ""),
        ("memory", "134217728", ""),
        ("cpu", "1Gi", "1Gi is 1,073,741,824 cores; is it a size of memory?"),
        ("cpu", "500", "500 is 500 cores; 500m was meant?"),
        ("cpu", "1000", "1k is 1,000 cores; 1000m was meant?"),
        ("memory", "1", "1 is 1 byte; 1Mi was meant?"),
        ("cpu", "128", ""),
        ("cpu", "1m", ""),
        ("ephemeral-storage", "1", ""),
        ("example.com/device", "1", ""),
    ],
)
def test_sizes_that_nobody_means(resource: str, text: str, message: str) -> None:
    assert odd_size(resource, Quantity.parse(text)) == message


def mistakes(raw: dict[str, Any]) -> list[tuple[str, bool]]:
    kind = raw["kind"]
    raw = {"apiVersion": "v1" if kind == "Pod" else "apps/v1", **raw}
    pod = convert(raw, Pod) if kind == "Pod" else pod_from_workload(kind, raw)
    return [(one.message, one.is_refused) for one in manifest_mistakes(raw, pod)]


def container(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "a", "resources": resources}]}


def test_a_template_has_the_refusals_of_its_pods_under_its_own_path() -> None:
    sides = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "2Gi"}}
    path = "spec.template.spec.containers[0].resources.requests"
    assert [*mistakes({"kind": "Deployment", "spec": {"template": {"spec": container(**sides)}}})] == [
        (f'{path}: Invalid value: "2": must be less than or equal to cpu limit of 1', True),
        (f'{path}: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi', True),
    ]


def test_a_server_refuses_what_it_cannot_use_and_takes_what_nobody_means() -> None:
    raw = {
        "kind": "Pod",
        "spec": container(limits={"memroy": "1Gi", "cpu": "-1"}, requests={"memory": "512m"}),
    }
    found = [
        (message.removeprefix("spec.containers[0].resources."), refused) for message, refused in mistakes(raw)
    ]
    unknown = 'Invalid value: "memroy": must be a standard resource'
    assert found == [
        (f"limits[memroy]: {unknown} type or fully qualified", True),
        ('limits[cpu]: Invalid value: "-1": must be greater than or equal to 0', True),
        ("requests[memory]: 512m is 0.512 bytes; 512Mi was meant?", False),
    ]


def test_a_name_is_that_of_one_container() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "a"}], "initContainers": [{"name": "b"}, {"name": "a"}]}
    assert mistakes({"kind": "Pod", "spec": spec}) == [
        ('spec.containers[1].name: Duplicate value: "a"', True),
        ('spec.initContainers[1].name: Duplicate value: "a"', True),
    ]


@pytest.mark.parametrize(
    ("kind", "version", "is_refused"),
    [
        ("Deploymnet", "apps/v1", True),
        ("PodTemplate", "v1", False),
        ("Rollout", "argoproj.io/v1alpha1", False),
    ],
)
def test_a_kind_that_a_version_of_kubernetes_does_not_have_is_refused(
    kind: str, version: str, is_refused: bool
) -> None:
    raw = {"kind": kind, "apiVersion": version, "spec": {"template": {"spec": container()}}}
    (pod,) = pods_from_custom(kind, raw)
    expected = [f'no kind "{kind}" is registered for version "{version}"'] if is_refused else []
    assert [one.message for one in manifest_mistakes(raw, pod)] == expected


def test_an_old_version_names_the_present_one_too() -> None:
    spec = {"template": {"spec": container()}}
    ((message, is_refused),) = mistakes(
        {"kind": "Deployment", "apiVersion": "extensions/v1beta1", "spec": spec}
    )
    assert message == (
        'no server has kind "Deployment" of version "extensions/v1beta1" any more: write apps/v1'
    )
    assert not is_refused, "kubectl changes it in its file"


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [
        ("Pod", "v1", None),
        ("Pod", "v2", 'no kind "Pod" is registered for version "v2"'),
        ("Deployment", "v1", 'no kind "Deployment" is registered for version "v1"'),
        ("Job", "batch/v2", 'no kind "Job" is registered for version "batch/v2"'),
    ],
)
def test_a_version_that_a_kind_does_not_have_is_refused(kind: str, version: str, message: str | None) -> None:
    spec = container() if kind == "Pod" else {"template": {"spec": container()}}
    expected = [(message, True)] if message else []
    assert mistakes({"kind": kind, "apiVersion": version, "spec": spec}) == expected


def test_every_kind_has_its_versions() -> None:
    assert validation._VERSIONS.keys() == KINDS.keys() - {"Node"}


def test_a_manifest_without_version_is_taken_and_one_in_a_list_has_that_of_the_list() -> None:
    raw: dict[str, Any] = {"spec": container()}
    pod = convert(raw, Pod)
    assert list(manifest_mistakes(raw, pod)) == []
    (found,) = manifest_mistakes({"kind": "Pod", **raw}, pod)
    assert (found.path, found.is_refused) == ("kind", False)
