"""The QoS class of a pod, what keeps it from another class, and the smallest changes to reach one.

Source: pkg/apis/core/v1/helper/qos/qos.go (ComputePodQOS, GetPodQOS), 1.20 to 1.37. Only cpu and memory
count, zero counts as absent, init containers and sidecars count like app containers, ephemeral ones never.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.allocation import desired_pod
from kubectl_qos.k8s.objects import CPU, EMPTY_RESOURCES, MEMORY, Pod, ResourceList, ResourceRequirements
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import has_pod_level_resources
from kubectl_qos.qos.reason import Reason, Rule


class QosClass(StrEnum):
    """QoS class, by its name in status.qosClass."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


SPEC_RESOURCES: Final = "spec.resources"
"""`ClassStep.owner` of pod-level resources."""

_BY_NAME: Final = {qos.value: qos for qos in QosClass}
_COUNTED: Final = (CPU, MEMORY)


def qos_class(pod: Pod, release: Release) -> QosClass:
    """Return the class that the node acts on (`GetPodQOS`).

    From 1.29, a stored status.qosClass wins over the spec.
    """
    stored = pod.status.qos_class
    if stored and release.has(Change.STORED_QOS_CLASS) and stored in _BY_NAME:
        return _BY_NAME[stored]
    return computed_class(pod, release)


def computed_class(pod: Pod, release: Release) -> QosClass:
    """Return the class of a defaulted pod's spec (`ComputePodQOS`), which no resize may change."""
    pod = desired_pod(pod)
    resources = pod.spec.resources
    if resources is not None and is_decided_at_pod_level(pod, release):
        return _decide([resources], limits_may_be_missing=not resources.limits)
    return _decide([container.resources for container in (*pod.containers, *pod.init_containers)])


def is_decided_at_pod_level(pod: Pod, release: Release) -> bool:
    """Return whether spec.resources alone decides; up to 1.36 even if it is empty."""
    resources = pod.spec.resources
    if resources is None or not release.enabled(Gate.POD_LEVEL_RESOURCES):
        return False
    if release.enabled(Gate.POD_LEVEL_FIX_QOS_CLASS):
        return has_pod_level_resources(pod, release)
    return True


def _decide(resources: Iterable[ResourceRequirements], *, limits_may_be_missing: bool = False) -> QosClass:
    """Decide by the sums of positive cpu and memory, in exact units of 1e-9.

    If a limit is missing, the pod cannot be Guaranteed, so the first positive value decides.
    """
    requested = {CPU: 0, MEMORY: 0}
    limited = {CPU: 0, MEMORY: 0}
    counted, all_limited = False, True
    for part in resources:
        requests, limits = part.requests or EMPTY_RESOURCES, part.limits or EMPTY_RESOURCES
        for name in _COUNTED:
            request, limit = requests.get(name), limits.get(name)
            if request is not None and request.unscaled > 0:
                requested[name] += request.nano
                counted = True
            if limit is not None and limit.unscaled > 0:
                limited[name] += limit.nano
                counted = True
            elif not limits_may_be_missing:
                all_limited = False
            if counted and not all_limited:
                return QosClass.BURSTABLE
    if not counted:
        return QosClass.BEST_EFFORT
    if all_limited and requested == limited:
        return QosClass.GUARANTEED
    return QosClass.BURSTABLE


def class_reason(pod: Pod, computed: QosClass, release: Release) -> Reason:
    """Explain the class: what each container lacks for Guaranteed, and a stored class that wins.

    `computed` is the class of the spec.
    """
    rule = Rule.CLASS_POD_LEVEL if is_decided_at_pod_level(pod, release) else _RULES[computed]
    reason = Reason(rule, computed, children=tuple(_lacking(pod, release)))
    stored = pod.status.qos_class
    if stored and release.has(Change.STORED_QOS_CLASS):
        inputs = {"stored": stored, "computed": computed}
        return Reason(Rule.CLASS_STORED, qos_class(pod, release), inputs, (reason,))
    return reason


_RULES: Final = {
    QosClass.BEST_EFFORT: Rule.CLASS_BEST_EFFORT,
    QosClass.BURSTABLE: Rule.CLASS_BURSTABLE,
    QosClass.GUARANTEED: Rule.CLASS_GUARANTEED,
}


def _lacking(pod: Pod, release: Release) -> Iterator[Reason]:
    for owner, requests, limits in _deciding(pod, release):
        whose = "pod" if owner == SPEC_RESOURCES else owner
        for name in _COUNTED:
            limit, request = limits.get(name), requests.get(name)
            inputs = {"owner": whose, "resource": name, "request": request, "limit": limit}
            if limit is None or limit.sign <= 0:
                yield Reason(Rule.LACKS_LIMIT, None, inputs)
            elif request is not None and request.sign <= 0:
                yield Reason(Rule.REQUEST_ZERO, None, inputs)
            elif request is None or request != limit:
                yield Reason(Rule.REQUEST_DIFFERS, None, inputs)


def _deciding(pod: Pod, release: Release) -> Iterator[tuple[str, ResourceList, ResourceList]]:
    """Yield the owners that decide the class, with requests and limits, in the order of the spec."""
    resources = pod.spec.resources
    if resources is not None and is_decided_at_pod_level(pod, release):
        yield SPEC_RESOURCES, resources.requests or EMPTY_RESOURCES, resources.limits or EMPTY_RESOURCES
        return
    yield from _containers(pod)


def _containers(pod: Pod) -> Iterator[tuple[str, ResourceList, ResourceList]]:
    for container in (*pod.init_containers, *pod.containers):
        yield container.name, container.requests, container.limits


class ClassStepKind(StrEnum):
    """How a value is changed."""

    SET_LIMIT = "set-limit"
    SET_REQUEST = "set-request"
    CHOOSE_LIMIT = "choose-limit"
    REMOVE_ALL = "remove-all"
    ADD_ANY_REQUEST = "add-any-request"
    LOWER_A_REQUEST = "lower-a-request"


class ClassStep(NamedTuple):
    """A change; `owner` is a container's name, `spec.resources`, or "" for any."""

    kind: ClassStepKind
    owner: str
    resource: str = ""
    value: Quantity | None = None


def steps_to(pod: Pod, target: QosClass, release: Release) -> list[ClassStep]:
    """Return the changes that give a defaulted pod the target class.

    Guaranteed needs equal requests and limits for cpu and memory in every container: a missing limit becomes
    the request, a different request becomes the limit, and if both are missing, a value has to be chosen.
    """
    computed = computed_class(pod, release)
    if computed is target:
        return []
    if target is QosClass.GUARANTEED:
        return [step for deciding in _deciding(pod, release) for step in _equalize(*deciding)]
    if target is QosClass.BEST_EFFORT:
        # A server refuses pod-level requests below those of the containers, so these go too.
        is_pod_level = is_decided_at_pod_level(pod, release)
        return [
            ClassStep(ClassStepKind.REMOVE_ALL, owner)
            for owner, requests, limits in (
                *_deciding(pod, release),
                *(_containers(pod) if is_pod_level else ()),
            )
            if any(name in requests or name in limits for name in _COUNTED)
        ]
    owner = SPEC_RESOURCES if is_decided_at_pod_level(pod, release) else ""
    has_none = computed is QosClass.BEST_EFFORT
    return [ClassStep(ClassStepKind.ADD_ANY_REQUEST if has_none else ClassStepKind.LOWER_A_REQUEST, owner)]


def steps_by_class(pod: Pod, release: Release) -> dict[QosClass, list[ClassStep]]:
    """Return the changes to each class. None lead to BestEffort if a LimitRange sets removed values again."""
    steps = {target: steps_to(pod, target, release) for target in QosClass}
    if pod.annotations.limit_ranger:
        steps[QosClass.BEST_EFFORT] = []
    return steps


def _equalize(owner: str, requests: ResourceList, limits: ResourceList) -> Iterator[ClassStep]:
    for name in _COUNTED:
        request, limit = requests.get(name), limits.get(name)
        has_request = request is not None and request.sign > 0
        has_limit = limit is not None and limit.sign > 0
        if has_limit:
            if not has_request or request != limit:
                yield ClassStep(ClassStepKind.SET_REQUEST, owner, name, limit)
        elif has_request:
            yield ClassStep(ClassStepKind.SET_LIMIT, owner, name, request)
        else:
            yield ClassStep(ClassStepKind.CHOOSE_LIMIT, owner, name)
