"""Totals over a pod's containers: PodRequests, PodLimits and what counts as declared.

Source: k8s.io/component-helpers/resource/helpers.go (1.32 and later) and
pkg/api/v1/resource/helpers.go (1.25 to 1.31). A total is a plain dict of resource name to Quantity; a key
is present if any contributor has it.

Not here: filling in requests that were left out (defaulting.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    Container,
    ContainerStatus,
    Pod,
    ResourceList,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release

Totals = dict[str, Quantity]
_Resources = Mapping[str, Quantity]


class Count(Enum):
    """Which resources of a pod are counted."""

    SPEC = "spec"
    """What was asked for."""
    STATUS = "status"
    """What is allocated or actual where larger: the scheduler and admission, during a resize."""
    STATUS_WITH_POD_LEVEL = "status with pod level"
    """As STATUS, for pod-level resources too (1.35 and later)."""


class Declared(NamedTuple):
    """Whether every container limits a resource, so that the pod's cgroup is limited too."""

    cpu: bool
    memory: bool


def is_sidecar(container: Container, release: Release) -> bool:
    """Whether an init container keeps running (`restartPolicy: Always`, 1.28 and later)."""
    return container.restart_policy == "Always" and release.has(Change.SIDECARS)


def is_supported_at_pod_level(name: str, release: Release) -> bool:
    """`IsSupportedPodLevelResource`: cpu and memory, hugepages since 1.33."""
    if name.startswith(HUGEPAGES_PREFIX):
        return release.has(Change.POD_LEVEL_HUGEPAGES)
    return name in {CPU, MEMORY}


def has_pod_level_requests(pod: Pod, release: Release) -> bool:
    """`IsPodLevelRequestsSet`: spec.resources requests something that may be set there."""
    resources = pod.spec.resources
    return resources is not None and any(
        is_supported_at_pod_level(name, release) for name in resources.requests or ()
    )


def has_pod_level_resources(pod: Pod, release: Release) -> bool:
    """`IsPodLevelResourcesSet`: spec.resources requests or limits something supported."""
    resources = pod.spec.resources
    return resources is not None and any(
        is_supported_at_pod_level(name, release)
        for name in (*(resources.requests or ()), *(resources.limits or ()))
    )


def pod_requests(
    pod: Pod,
    release: Release,
    *,
    count: Count = Count.SPEC,
    pod_level: bool | None = None,
    containers: bool = True,
    overhead: bool = True,
) -> Totals:
    """What the pod requests in all (`PodRequests`).

    Args:
        pod: a defaulted pod.
        release: rules of that minor release, with its gates.
        count: spec alone, or status where it is larger.
        pod_level: whether spec.resources replaces the containers' sum; by default as the gate says.
        containers: whether containers are counted at all.
        overhead: whether the RuntimeClass overhead is added.
    """
    totals: Totals = {}
    if containers:
        totals = aggregate_requests(pod, release, count=count)
    if _uses_pod_level(pod_level, release) and has_pod_level_requests(pod, release):
        asked = _pod_level(pod, "requests")
        effective = _effective_pod_level(pod, release, "requests", count)
        for name, quantity in asked.items():
            if is_supported_at_pod_level(name, release):
                totals[name] = quantity if effective is None else effective.get(name, ZERO)
    if overhead and pod.spec.overhead:
        _add(totals, pod.spec.overhead)
    return totals


def pod_limits(
    pod: Pod,
    release: Release,
    *,
    count: Count = Count.SPEC,
    pod_level: bool | None = None,
    overhead: bool = True,
) -> Totals:
    """What the pod is limited to in all (`PodLimits`); overhead is added only to non-zero limits.

    The sum leaves out containers without a limit: see `declared_limits` before believing it.
    """
    totals = aggregate_limits(pod, release, count=count)
    if _uses_pod_level(pod_level, release) and has_pod_level_resources(pod, release):
        asked = _pod_level(pod, "limits")
        effective = _effective_pod_level(pod, release, "limits", count)
        for name, quantity in asked.items():
            if is_supported_at_pod_level(name, release):
                totals[name] = quantity if effective is None else effective.get(name, ZERO)
    if overhead and pod.spec.overhead:
        for name, quantity in pod.spec.overhead.items():
            if name in totals and not totals[name].is_zero:
                totals[name] = totals[name] + quantity
    return totals


def kubelet_count(release: Release) -> Count:
    """What the kubelet sizes a pod's cgroup by: from 1.27 to 1.31 allocated resources if resizable."""
    allocated = release.enabled(Gate.IN_PLACE_RESIZE) and not release.has(Change.STATUS_RESOURCES)
    return Count.STATUS if allocated else Count.SPEC


def aggregate_requests(pod: Pod, release: Release, *, count: Count = Count.SPEC) -> Totals:
    """The containers' requests as scheduled (`AggregateContainerRequests`): init containers by maximum."""
    return _aggregate(pod, release, _effective_requests(pod, release, count))[0]


def aggregate_limits(pod: Pod, release: Release, *, count: Count = Count.SPEC) -> Totals:
    """The containers' limits by the same arithmetic (`AggregateContainerLimits`)."""
    return _aggregate(pod, release, _effective_limits(pod, release, count))[0]


def declared_limits(pod: Pod, release: Release) -> Declared:
    """Whether all containers limit CPU, and memory (`ResourceConfigForPod`, its ContainerFn).

    From 1.28 an init container counts with the sidecars started before it, so one without a limit of its
    own may count as declared. A pod-level limit always declares.
    """
    uses = _aggregate(pod, release, lambda container, _: container.limits)[1]
    if not release.has(Change.INIT_CONTAINERS_DECLARE_LIMITS):
        uses = uses[: len(pod.containers)]
    cpu = all(not use.get(CPU, ZERO).is_zero for use in uses)
    memory = all(not use.get(MEMORY, ZERO).is_zero for use in uses)
    limits = pod_level_limits(pod, release)
    cpu = cpu or not limits.get(CPU, ZERO).is_zero
    memory = memory or not limits.get(MEMORY, ZERO).is_zero
    return Declared(cpu, memory)


def pod_level_limits(pod: Pod, release: Release) -> ResourceList:
    """The limits that the pod's containers share (spec.resources), where the release honours them."""
    return _pod_level(pod, "limits") if release.enabled(Gate.POD_LEVEL_RESOURCES) else EMPTY_RESOURCES


def eviction_request(pod: Pod, release: Release, name: str) -> Quantity:
    """The request that node-pressure eviction compares usage with (`GetResourceRequestQuantity`).

    Up to 1.33 a sidecar counts as a plain init container; from 1.34 sidecars are added, and any pod-level
    resource hides the containers' requests altogether.
    """
    total = ZERO
    if release.has(Change.EVICTION_COUNTS_POD_REQUESTS):
        hides = release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_resources(pod, release)
        requests = pod_requests(pod, release, pod_level=True, containers=not hides, overhead=False)
        if name in requests:
            total = total + requests[name]
    else:
        for container in pod.containers:
            if name in container.requests:
                total = total + container.requests[name]
        for container in pod.init_containers:
            if name in container.requests:
                request = container.requests[name]
                total = max(_compared(total, request), request)
    overhead = pod.spec.overhead or EMPTY_RESOURCES
    if name in overhead and not total.is_zero:
        total = total + overhead[name]
    return total


def is_resize_infeasible(pod: Pod, release: Release) -> bool:
    """Whether the node has refused a pending resize: its new spec is then not counted."""
    if not release.has(Change.ALLOCATED_STATUS):
        return pod.status.resize == "Infeasible"
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def largest(first: _Resources, *others: _Resources, ties_to_first: bool = True) -> Totals:
    """The larger quantity of each resource; of equals, the first as it was written."""
    result = dict(first)
    for other in others:
        for name, quantity in other.items():
            held = result.get(name)
            if held is None:
                result[name] = quantity
            elif quantity > held or (not ties_to_first and quantity == held):
                result[name] = _compared(quantity, held)
            elif not ties_to_first:
                result[name] = _compared(held, quantity)
    return result


_Effective = Callable[[Container, bool], _Resources]


def _uses_pod_level(asked: bool | None, release: Release) -> bool:
    return release.enabled(Gate.POD_LEVEL_RESOURCES) if asked is None else asked


def _pod_level(pod: Pod, side: str) -> ResourceList:
    resources = pod.spec.resources
    return (getattr(resources, side) if resources else None) or EMPTY_RESOURCES


def _aggregate(pod: Pod, release: Release, effective: _Effective) -> tuple[Totals, list[_Resources]]:
    """The total, and what each app and then each init container counted with."""
    totals: Totals = {}
    uses: list[_Resources] = []
    for container in pod.containers:
        use = effective(container, False)
        uses.append(use)
        _add(totals, use)
    sidecars: Totals = {}
    initial: Totals = {}
    for container in pod.init_containers:
        use = effective(container, True)
        if is_sidecar(container, release):
            _add(totals, use)
            _add(sidecars, use)
            use = dict(sidecars)
        elif sidecars:
            combined = dict(use)
            _add(combined, sidecars)
            use = combined
        uses.append(use)
        _raise_to(initial, use)
    _raise_to(totals, initial)
    return totals, uses


def _add(totals: Totals, more: _Resources) -> None:
    for name, quantity in more.items():
        totals[name] = totals[name] + quantity if name in totals else quantity


def _raise_to(totals: Totals, floor: _Resources) -> None:
    for name, quantity in floor.items():
        held = totals.get(name)
        if held is None:
            totals[name] = quantity
        elif quantity > held:
            totals[name] = _compared(quantity, held)


def _compared(quantity: Quantity, other: Quantity) -> Quantity:
    """The quantity after Go's Cmp: comparing with a decimal makes it one, and so changes its overflow."""
    return quantity.as_decimal() if other.is_decimal else quantity


def _statuses(pod: Pod, release: Release) -> dict[str, ContainerStatus]:
    found: Iterable[ContainerStatus] = pod.status.container_statuses or ()
    if release.has(Change.ALLOCATED_STATUS):
        found = (*found, *(pod.status.init_container_statuses or ()))
    return {status.name: status for status in found}


def _effective_requests(pod: Pod, release: Release, count: Count) -> _Effective:
    """Which requests a container counts with."""
    if count is Count.SPEC:
        return lambda container, _: container.requests
    if not release.has(Change.STATUS_RESOURCES):
        return _allocated_requests(pod, release)
    statuses = _statuses(pod, release)
    infeasible = is_resize_infeasible(pod, release)
    newer = release.has(Change.ALLOCATED_STATUS)

    def effective(container: Container, init: bool) -> _Resources:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return container.requests
        if init and not (newer and is_sidecar(container, release)):
            return container.requests
        actual = status.resources.requests or EMPTY_RESOURCES
        if not newer:
            if infeasible:
                return actual
            return largest(container.requests, actual, ties_to_first=False)
        allocated = status.allocated_resources or EMPTY_RESOURCES
        if infeasible:
            return largest(actual, allocated)
        return largest(container.requests, actual, allocated)

    return effective


def _allocated_requests(pod: Pod, release: Release) -> _Effective:
    """1.27 to 1.31: app containers count with allocatedResources where larger."""
    statuses = _statuses(pod, release)
    infeasible = is_resize_infeasible(pod, release)

    def effective(container: Container, init: bool) -> _Resources:
        status = statuses.get(container.name)
        if init or status is None:
            return container.requests
        allocated = status.allocated_resources or EMPTY_RESOURCES
        if infeasible:
            return allocated
        return largest(container.requests, allocated, ties_to_first=False)

    return effective


def _effective_limits(pod: Pod, release: Release, count: Count) -> _Effective:
    """Which limits a container counts with."""
    if count is Count.SPEC or not release.has(Change.STATUS_RESOURCES):
        return lambda container, _: container.limits
    statuses = _statuses(pod, release)
    infeasible = is_resize_infeasible(pod, release)
    newer = release.has(Change.ALLOCATED_STATUS)

    def effective(container: Container, init: bool) -> _Resources:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return container.limits
        if init and not (newer and is_sidecar(container, release)):
            return container.limits
        actual = status.resources.limits or EMPTY_RESOURCES
        return actual if infeasible else largest(container.limits, actual, ties_to_first=newer)

    return effective


def _effective_pod_level(pod: Pod, release: Release, side: str, count: Count) -> _Resources | None:
    """The pod-level values that count in place of the spec's, or None where the spec counts."""
    if count is not Count.STATUS_WITH_POD_LEVEL or pod.status.resources is None:
        return None
    asked = _pod_level(pod, side)
    actual = getattr(pod.status.resources, side)
    infeasible = is_resize_infeasible(pod, release)
    if side == "limits":
        return actual if infeasible else largest(asked, actual or EMPTY_RESOURCES)
    allocated = pod.status.allocated_resources or EMPTY_RESOURCES
    if infeasible:
        return largest(actual or EMPTY_RESOURCES, allocated)
    return largest(asked, actual or EMPTY_RESOURCES, allocated)
