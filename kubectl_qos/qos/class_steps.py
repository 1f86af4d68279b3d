"""The smallest change of requests and limits that gives a pod another QoS class."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import CPU, EMPTY_RESOURCES, MEMORY, Pod, ResourceList
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.qos_class import QosClass, computed_class, decided_at_pod_level

SPEC_RESOURCES: Final = "spec.resources"
"""What steps call the pod's own resources."""


class StepKind(StrEnum):
    """What is done to one value."""

    SET_LIMIT = "set-limit"
    SET_REQUEST = "set-request"
    CHOOSE_LIMIT = "choose-limit"
    REMOVE_ALL = "remove-all"
    ADD_ANY_REQUEST = "add-any-request"
    LOWER_A_REQUEST = "lower-a-request"


class Step(NamedTuple):
    """One change; `owner` is a container's name or `spec.resources`, empty for "any"."""

    kind: StepKind
    owner: str
    resource: str = ""
    value: Quantity | None = None


def steps_to(pod: Pod, target: QosClass, release: Release) -> list[Step]:
    """What to change so that a defaulted pod is of the target class; empty if it is already.

    For Guaranteed every container needs equal cpu and memory requests and limits: a missing limit takes the
    request, a differing request takes the limit, and where neither is there a number has to be chosen.
    """
    if computed_class(pod, release) is target:
        return []
    parts = list(_parts(pod, release))
    if target is QosClass.GUARANTEED:
        return [step for owner, requests, limits in parts for step in _equal(owner, requests, limits)]
    if target is QosClass.BEST_EFFORT:
        return [
            Step(StepKind.REMOVE_ALL, owner)
            for owner, requests, limits in parts
            if any(name in requests or name in limits for name in (CPU, MEMORY))
        ]
    if computed_class(pod, release) is QosClass.BEST_EFFORT:
        return [Step(StepKind.ADD_ANY_REQUEST, "")]
    return [Step(StepKind.LOWER_A_REQUEST, "")]


def _parts(pod: Pod, release: Release) -> Iterator[tuple[str, ResourceList, ResourceList]]:
    """The places that decide the class, in the order of the spec."""
    asked = pod.spec.resources
    if asked is not None and decided_at_pod_level(pod, release):
        yield (
            SPEC_RESOURCES,
            asked.requests or EMPTY_RESOURCES,
            asked.limits or EMPTY_RESOURCES,
        )
        return
    for container in (*pod.init_containers, *pod.containers):
        yield container.name, container.requests, container.limits


def _equal(owner: str, requests: ResourceList, limits: ResourceList) -> Iterator[Step]:
    for name in (CPU, MEMORY):
        request, limit = requests.get(name), limits.get(name)
        has_request = request is not None and request.sign > 0
        has_limit = limit is not None and limit.sign > 0
        if has_limit:
            if not has_request or request != limit:
                yield Step(StepKind.SET_REQUEST, owner, name, limit)
        elif has_request:
            yield Step(StepKind.SET_LIMIT, owner, name, request)
        else:
            yield Step(StepKind.CHOOSE_LIMIT, owner, name)
