"""The edits towards a class: they reach it, and none of them can be left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, apply
from kubectl_qos.edit.goals import Goal, goal
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Container, Pod, PodSpec, ResourceList, ResourceRequirements
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.qos_class import ClassStep, ClassStepKind, QosClass, computed_class

RELEASE = Release.of("1.36")


def pod(*containers: str, more: str = "") -> Pod:
    listed = ", ".join(f"{{name: {'abc'[at]}, resources: {{{held}}}}}" for at, held in enumerate(containers))
    return pod_from_yaml(f"kind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{listed}]{more}}}\n")


def said(edits: tuple[Edit, ...]) -> list[str]:
    return [f"{one.owner or 'pod'} {one.side.value}.{one.resource}={one.quantity}" for one in edits]


def test_missing_limits_take_the_request_and_other_requests_the_limit() -> None:
    subject = pod("requests: {cpu: 250m, memory: 1Gi}, limits: {memory: 2Gi}")
    found = goal(subject, QosClass.GUARANTEED, RELEASE)
    assert said(found.edits) == ["a limits.cpu=250m", "a requests.memory=2Gi"]
    assert found.to_choose == ()


def test_a_number_that_nobody_wrote_has_to_be_chosen() -> None:
    subject = pod("limits: {memory: 1Gi}", "requests: {cpu: 1}")
    found = goal(subject, QosClass.GUARANTEED, RELEASE)
    assert said(found.edits) == ["b limits.cpu=1"]
    assert found.to_choose == (
        ClassStep(ClassStepKind.CHOOSE_LIMIT, "a", "cpu"),
        ClassStep(ClassStepKind.CHOOSE_LIMIT, "b", "memory"),
    )


def test_to_burstable_a_cpu_limit_goes_whose_request_is_written() -> None:
    subject = pod("limits: {cpu: 1, memory: 1Gi}", "limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1}")
    assert said(goal(subject, QosClass.BURSTABLE, RELEASE).edits) == ["b limits.cpu=None"]


def test_what_a_best_effort_pod_should_request_has_to_be_chosen() -> None:
    found = goal(pod(""), QosClass.BURSTABLE, RELEASE)
    assert found == Goal((), (ClassStep(ClassStepKind.ADD_ANY_REQUEST, ""),))


def test_to_best_effort_zeros_and_other_resources_stay() -> None:
    subject = pod("requests: {cpu: 0, memory: 1Gi, ephemeral-storage: 1Gi}", "requests: {cpu: 0}")
    assert said(goal(subject, QosClass.BEST_EFFORT, RELEASE).edits) == ["a requests.memory=None"]


def test_the_resources_of_the_pod_decide_where_it_has_them() -> None:
    subject = pod("", more=", resources: {requests: {cpu: 1, memory: 1Gi}}")
    assert said(goal(subject, QosClass.GUARANTEED, RELEASE).edits) == [
        "pod limits.cpu=1",
        "pod limits.memory=1Gi",
    ]


def test_once_the_pods_own_are_gone_the_containers_count() -> None:
    newest = Release.of("1.37")
    subject = pod("requests: {memory: 64Mi}", more=", resources: {requests: {cpu: 0, memory: 1Gi}}")
    assert said(goal(subject, QosClass.BEST_EFFORT, newest).edits) == ["pod requests.memory=None"]
    subject = pod("requests: {memory: 64Mi}", more=", resources: {limits: {memory: 0}}")
    assert said(goal(subject, QosClass.BEST_EFFORT, RELEASE).edits) == ["pod limits.memory=None"]
    subject = pod("limits: {memory: 64Mi}", more=", resources: {requests: {memory: 1Gi}}")
    assert said(goal(subject, QosClass.BEST_EFFORT, newest).edits) == [
        "pod requests.memory=None",
        "a limits.memory=None",
    ]


@pytest.mark.parametrize("target", list(QosClass))
def test_a_pod_of_that_class_stays_as_it_is(target: QosClass) -> None:
    of_class = {
        QosClass.GUARANTEED: "limits: {cpu: 1, memory: 1Gi}",
        QosClass.BURSTABLE: "limits: {cpu: 1}",
        QosClass.BEST_EFFORT: "limits: {cpu: 0}",
    }
    assert goal(pod(of_class[target]), target, RELEASE) == Goal((), ())


def quantities(texts: list[str]) -> st.SearchStrategy[Quantity]:
    return st.sampled_from([Quantity.parse(text) for text in texts])


SIDES = st.none() | st.fixed_dictionaries(
    {},
    optional={"cpu": quantities(["0", "100m", "1"]), "memory": quantities(["0", "64Mi", "1Gi"])},
).map(ResourceList)


def requirements() -> st.SearchStrategy[ResourceRequirements]:
    return st.builds(ResourceRequirements, requests=SIDES, limits=SIDES)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    containers = tuple(
        Container(name=name, resources=draw(requirements())) for name in "ab"[: draw(st.integers(1, 2))]
    )
    init = tuple(Container(name="i", resources=draw(requirements())) for _ in range(draw(st.integers(0, 1))))
    own = draw(st.none() | requirements())
    return Pod(spec=PodSpec(containers=containers, init_containers=init, resources=own))


RELEASES = st.sampled_from([Release.of(text) for text in ("1.28", "1.32", "1.34", "1.36", "1.37")])


@given(pods(), st.sampled_from(list(QosClass)), RELEASES)
def test_a_goal_without_choices_is_reached_and_smallest(
    subject: Pod, target: QosClass, release: Release
) -> None:
    if pod_refusals(default_pod(subject, release), release):
        return
    found = goal(subject, target, release)
    if found.to_choose:
        return

    def reached(edits: tuple[Edit, ...]) -> bool:
        return computed_class(default_pod(apply(subject, edits), release), release) is target

    assert reached(found.edits)
    for at in range(len(found.edits)):
        assert not reached((*found.edits[:at], *found.edits[at + 1 :]))


@given(pods(), RELEASES)
def test_only_numbers_are_left_to_choose(subject: Pod, release: Release) -> None:
    for target in QosClass:
        for step in goal(subject, target, release).to_choose:
            assert step.kind is not ClassStepKind.REMOVE_ALL


def test_the_owner_of_pod_level_edits_is_the_pod() -> None:
    subject = pod("", more=", resources: {limits: {memory: 1Gi}}")
    (edit,) = goal(subject, QosClass.BEST_EFFORT, RELEASE).edits
    assert edit == Edit(POD_LEVEL, Side.LIMITS, "memory", None)
