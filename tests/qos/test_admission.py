"""Admission at the node, and whom the kubelet preempts for a critical pod."""

from __future__ import annotations

import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.admission import may_preempt, not_admitted, preempted_for
from tests.qos.corner import one, spec

R136 = Release.of("1.36")
MI = 1 << 20


def named(name: str, resources: str, more: str = "") -> Pod:
    return default_pod(
        spec(f"containers: [{{name: {name}, resources: {{{resources}}}}}]{', ' + more if more else ''}"), R136
    )


def names(pods: list[Pod] | None) -> list[str] | None:
    return None if pods is None else [pod.containers[0].name for pod in pods]


CRITICAL = named("critical", "", "priorityClassName: system-node-critical, priority: 2000001000")


@pytest.mark.parametrize(("release", "refused"), [("1.33", False), ("1.34", True), ("1.36", True)])
def test_row_036_a_kubelet_without_pod_level_resources_refuses(release: str, *, refused: bool) -> None:
    pod = spec("containers: [{name: c1}], resources: {requests: {memory: 1Gi}}")
    found = not_admitted(pod, Release.of(release, {"PodLevelResources": False}))
    assert (found is not None and found.reason == "PodLevelResourcesNotSupported") is refused
    assert not_admitted(pod, R136) is None


@pytest.mark.parametrize(
    ("resources", "pressure", "refused"),
    [
        ("", [], False),
        ("", ["MemoryPressure"], True),
        ("requests: {cpu: 1m}", ["MemoryPressure"], False),
        ("requests: {cpu: 1m}", ["DiskPressure"], True),
        ("requests: {cpu: 1m}", ["MemoryPressure", "DiskPressure"], True),
    ],
)
def test_admission_under_pressure(resources: str, pressure: list[str], *, refused: bool) -> None:
    assert (not_admitted(one(resources), R136, pressure) is not None) is refused
    assert not_admitted(CRITICAL, R136, pressure) is None


def test_a_toleration_admits_best_effort_under_memory_pressure_only() -> None:
    def admitted(condition: str) -> bool:
        return not_admitted(one(""), R136, [condition], tolerates_memory_pressure=True) is None

    assert admitted("MemoryPressure")
    assert not admitted("PIDPressure")


def test_critical_pods_preempt_others_and_priorities_each_other() -> None:
    low, high = named("low", "", "priority: 1"), named("high", "", "priority: 2")
    assert may_preempt(high, low)
    assert not may_preempt(low, high)
    assert may_preempt(CRITICAL, high)
    assert not may_preempt(named("unset", ""), low)


def test_the_cheapest_class_goes_first_and_no_more_than_needed() -> None:
    guaranteed = named("g", "limits: {cpu: 1, memory: 500Mi}")
    burstable = [named(f"b{size}", f"requests: {{memory: {size}Mi}}") for size in (100, 200, 400)]
    best_effort = named("e", "")
    running = [guaranteed, *burstable, best_effort]
    assert names(preempted_for(CRITICAL, running, {"memory": 150 * MI}, R136)) == ["b200"]
    assert names(preempted_for(CRITICAL, running, {"pods": 1}, R136)) == ["e"]
    assert names(preempted_for(CRITICAL, running, {"memory": 650 * MI}, R136)) == ["b400", "b200", "b100"]
    assert names(preempted_for(CRITICAL, running, {"memory": 1100 * MI}, R136)) == ["b400", "b200", "g"]
    assert preempted_for(CRITICAL, running, {"memory": 1 << 40}, R136) is None
