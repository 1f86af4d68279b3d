"""The edits towards a class; that they reach it, and none can be left out, is in test_edit_laws.py."""

from __future__ import annotations

import pytest

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side
from kubectl_qos.edit.goals import Goal, reach_class
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.qos_class import ClassStep, ClassStepKind, QosClass

RELEASE = Release.of("1.36")


def pod(*containers: str, more: str = "") -> Pod:
    listed = ", ".join(f"{{name: {'abc'[at]}, resources: {{{held}}}}}" for at, held in enumerate(containers))
    return pod_from_yaml(f"kind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{listed}]{more}}}\n")


def said(edits: tuple[Edit, ...]) -> list[str]:
    return [f"{one.owner or 'pod'} {one.side.value}.{one.resource}={one.quantity}" for one in edits]


def test_missing_limits_take_the_request_and_other_requests_the_limit() -> None:
    subject = pod("requests: {cpu: 250m, memory: 1Gi}, limits: {memory: 2Gi}")
    found = reach_class(subject, QosClass.GUARANTEED, RELEASE)
    assert said(found.edits) == ["a limits.cpu=250m", "a requests.memory=2Gi"]
    assert found.to_choose == ()


def test_a_number_that_nobody_wrote_has_to_be_chosen() -> None:
    subject = pod("limits: {memory: 1Gi}", "requests: {cpu: 1}")
    found = reach_class(subject, QosClass.GUARANTEED, RELEASE)
    assert said(found.edits) == ["b limits.cpu=1"]
    assert found.to_choose == (
        ClassStep(ClassStepKind.CHOOSE_LIMIT, "a", "cpu"),
        ClassStep(ClassStepKind.CHOOSE_LIMIT, "b", "memory"),
    )


def test_to_burstable_a_cpu_limit_goes_whose_request_is_written() -> None:
    subject = pod("limits: {cpu: 1, memory: 1Gi}", "limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1}")
    assert said(reach_class(subject, QosClass.BURSTABLE, RELEASE).edits) == ["b limits.cpu=None"]


def test_what_a_best_effort_pod_should_request_has_to_be_chosen() -> None:
    found = reach_class(pod(""), QosClass.BURSTABLE, RELEASE)
    assert found == Goal((), (ClassStep(ClassStepKind.ADD_ANY_REQUEST, ""),))


def test_to_best_effort_zeros_and_other_resources_stay() -> None:
    subject = pod("requests: {cpu: 0, memory: 1Gi, ephemeral-storage: 1Gi}", "requests: {cpu: 0}")
    assert said(reach_class(subject, QosClass.BEST_EFFORT, RELEASE).edits) == ["a requests.memory=None"]


def test_the_resources_of_the_pod_decide_where_it_has_them() -> None:
    subject = pod("", more=", resources: {requests: {cpu: 1, memory: 1Gi}}")
    assert said(reach_class(subject, QosClass.GUARANTEED, RELEASE).edits) == [
        "pod limits.cpu=1",
        "pod limits.memory=1Gi",
    ]


def test_once_the_pods_own_are_gone_the_containers_count() -> None:
    newest = Release.of("1.37")
    subject = pod("requests: {memory: 64Mi}", more=", resources: {requests: {cpu: 0, memory: 1Gi}}")
    assert said(reach_class(subject, QosClass.BEST_EFFORT, newest).edits) == ["pod requests.memory=None"]
    subject = pod("requests: {memory: 64Mi}", more=", resources: {limits: {memory: 0}}")
    assert said(reach_class(subject, QosClass.BEST_EFFORT, RELEASE).edits) == ["pod limits.memory=None"]
    subject = pod("limits: {memory: 64Mi}", more=", resources: {requests: {memory: 1Gi}}")
    assert said(reach_class(subject, QosClass.BEST_EFFORT, newest).edits) == [
        "pod requests.memory=None",
        "a limits.memory=None",
    ]


def test_requests_of_containers_go_with_the_pods_own_that_have_to_cover_them() -> None:
    """A server refuses pod-level requests below the sum of the containers'."""
    subject = pod("requests: {memory: 64Mi}", more=", resources: {requests: {memory: 64Mi}}")
    assert said(
        reach_class(subject, QosClass.BEST_EFFORT, Release.of("1.32", {"PodLevelResources": True})).edits
    ) == [
        "pod requests.memory=None",
        "a requests.memory=None",
    ]


@pytest.mark.parametrize("target", list(QosClass))
def test_a_pod_of_that_class_stays_as_it_is(target: QosClass) -> None:
    of_class = {
        QosClass.GUARANTEED: "limits: {cpu: 1, memory: 1Gi}",
        QosClass.BURSTABLE: "limits: {cpu: 1}",
        QosClass.BEST_EFFORT: "limits: {cpu: 0}",
    }
    assert reach_class(pod(of_class[target]), target, RELEASE) == Goal((), ())


def test_the_owner_of_pod_level_edits_is_the_pod() -> None:
    subject = pod("", more=", resources: {limits: {memory: 1Gi}}")
    (edit,) = reach_class(subject, QosClass.BEST_EFFORT, RELEASE).edits
    assert edit == Edit(POD_LEVEL, Side.LIMITS, "memory", None)
