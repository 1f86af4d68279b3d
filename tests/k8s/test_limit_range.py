"""LimitRange: rows of the table in docs/rules.md, and what a real server defaulted and refused."""

from typing import Any

import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quota import LimitRange, limit_range_refusals, with_limit_ranges
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.qos_class import QosClass, steps_by_class
from tests.cluster.replay import recorded
from tests.qos.corner import file_of, on, one, spec

R136 = Release.of("1.36")


def limits(**item: Any) -> LimitRange:
    return convert({"spec": {"limits": [{"type": "Container", **item}]}}, LimitRange)


def admitted(pod: Pod, *ranges: LimitRange) -> Pod:
    return with_limit_ranges(default_pod(pod, R136), ranges)


def test_row_020_a_maximum_alone_becomes_default_and_request() -> None:
    prediction = on(admitted(one(""), limits(max={"cpu": "1"})))
    assert prediction.qos_class is QosClass.BURSTABLE
    assert prediction.container("c1").cri_resources.cpu_shares == 1024
    assert file_of(prediction, "c1", "cpu.max") == "100000 100000"


def test_row_021_equal_defaults_make_guaranteed() -> None:
    same = {"cpu": "500m", "memory": "256Mi"}
    assert on(admitted(one(""), limits(default=same, defaultRequest=same))).qos_class is QosClass.GUARANTEED


def test_row_022_a_default_limit_below_the_request_is_refused() -> None:
    pod = admitted(one("requests: {cpu: 1}"), limits(default={"cpu": "500m"}))
    assert [refusal.message for refusal in pod_refusals(pod, R136)] == [
        'Invalid value: "1": must be less than or equal to cpu limit of 500m'
    ]


def test_row_023_the_apis_own_defaulting_runs_first() -> None:
    pod = admitted(one("limits: {cpu: 2}"), limits(defaultRequest={"cpu": "100m"}, default={"cpu": "1"}))
    assert str(pod.containers[0].requests["cpu"]) == "2"


def test_the_first_limit_range_wins_and_explicit_zero_is_kept() -> None:
    first, second = limits(default={"memory": "1Gi"}), limits(default={"memory": "2Gi"})
    assert str(admitted(one(""), first, second).containers[0].limits["memory"]) == "1Gi"
    kept = admitted(one("requests: {memory: 0}"), first).containers[0]
    assert kept.requests["memory"].is_zero


def test_what_was_added_is_said_as_the_server_says_it() -> None:
    pod = spec(
        "containers: [{name: c1, resources: {requests: {cpu: 1}}},"
        "{name: c2, resources: {limits: {cpu: 1}}}], initContainers: [{name: i1}]"
    )
    created = admitted(pod, limits(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"}))
    assert created.annotations.limit_ranger == (
        "LimitRanger plugin set: memory request for container c1; cpu, memory limit for container c1;"
        " memory request for container c2; memory limit for container c2;"
        " cpu, memory request for init container i1; cpu, memory limit for init container i1"
    )
    assert steps_by_class(created, R136)[QosClass.BEST_EFFORT] == [], "they would come back"
    full = default_pod(one("limits: {cpu: 1, memory: 1Gi}"), R136)
    assert with_limit_ranges(full, [limits(default={"cpu": "2"})]) is full
    assert steps_by_class(full, R136)[QosClass.BEST_EFFORT] != []


def test_ephemeral_containers_do_not_change() -> None:
    pod = spec("containers: [{name: c1}], ephemeralContainers: [{name: e1}]")
    assert admitted(pod, limits(default={"memory": "1Gi"})).ephemeral_containers == pod.ephemeral_containers


def test_what_a_real_server_stored_and_defaulted() -> None:
    created = recorded("limitrange-create")
    sent, stored = (convert(created[side]["body"], LimitRange) for side in ("request", "response"))
    completed, item = next(sent.items), stored.spec.limits[0]
    assert completed.default == item.default
    assert completed.default_request == item.default_request
    exchange = recorded("pod-create-limitrange-defaulted")
    pod = admitted(convert(exchange["request"]["body"], Pod), stored)
    expected = convert(exchange["response"]["body"], Pod)
    assert pod.containers[0].resources == expected.containers[0].resources


def test_what_a_real_server_refused() -> None:
    ranges = [convert(recorded("limitrange-create")["response"]["body"], LimitRange)]
    exchange = recorded("pod-create-limitrange-max-403")
    pod = admitted(convert(exchange["request"]["body"], Pod), *ranges)
    message = exchange["response"]["body"]["message"]
    assert message.endswith(f" is forbidden: {', '.join(limit_range_refusals(pod, ranges, R136))}")


MINIMUM = "minimum cpu usage per Container is 1"
MAXIMUM = "maximum cpu usage per Container is 1"
RATIO = "cpu max limit to request ratio per Container is 2, but"


@pytest.mark.parametrize(
    ("bound", "resources", "sentence"),
    [
        ("min: 1", "requests: {cpu: 1m}", f"{MINIMUM}, but request is 1m"),
        ("min: 1", "requests: {cpu: 2}, limits: {cpu: 500m}", f"{MINIMUM}, but limit is 500m"),
        ("min: 1", "requests: {memory: 1Mi}", f"{MINIMUM}.  No request is specified"),
        ("max: 1", "limits: {cpu: 1001m}", f"{MAXIMUM}, but limit is 1001m"),
        ("max: 1", "requests: {cpu: 2}, limits: {cpu: 1}", f"{MAXIMUM}, but request is 2"),
        ("max: 1", "requests: {cpu: 1}", f"{MAXIMUM}.  No limit is specified"),
        ("ratio: 2", "requests: {cpu: 1}, limits: {cpu: 3}", f"{RATIO} provided ratio is 3.000000"),
        ("ratio: 2", "limits: {memory: 1Mi}", f"{RATIO} no request is specified or request is 0"),
        ("ratio: 2", "requests: {cpu: 1}", f"{RATIO} no limit is specified or limit is 0"),
    ],
)
def test_bounds(bound: str, resources: str, sentence: str) -> None:
    name, _, amount = bound.replace("ratio", "maxLimitRequestRatio").partition(": ")
    ranges = [limits(**{name: {"cpu": amount}})]
    assert limit_range_refusals(default_pod(one(resources), R136), ranges, R136) == [sentence]


@pytest.mark.parametrize(
    ("limit", "is_refused"), [("9223372036854775807", True), ("4611686018427387904", False)]
)
def test_bounds_beyond_the_milli_of_an_int64_are_whole_units(limit: str, is_refused: bool) -> None:
    ranges = [limits(max={"memory": "4611686018427387904"})]
    pod = default_pod(one(f"limits: {{memory: {limit}}}"), R136)
    assert bool(limit_range_refusals(pod, ranges, R136)) is is_refused


def test_a_bound_for_pods_is_for_their_sum() -> None:
    bound = convert({"spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}}, LimitRange)
    pod = spec(
        "containers: [{name: a, resources: {limits: {memory: 600Mi}}},"
        " {name: b, resources: {limits: {memory: 600Mi}}}]"
    )
    assert limit_range_refusals(default_pod(pod, R136), [bound], R136) == [
        "maximum memory usage per Pod is 1Gi, but limit is 1200Mi"
    ]
