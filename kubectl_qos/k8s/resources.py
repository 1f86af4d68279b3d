"""Totals over a pod's containers: PodRequests, PodLimits and what counts as declared.

Source: k8s.io/component-helpers/resource/helpers.go (1.32 and later) and
pkg/api/v1/resource/helpers.go (1.25 to 1.31). A total has a resource if any container has it.
defaulting.py fills in absent requests.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    Container,
    Pod,
    ResourceList,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release

Totals = dict[str, Quantity]
_Resources = Mapping[str, Quantity]


class Count(Enum):
    """Which resources of a pod count: those of its spec, or during a resize also those of its status."""

    SPEC = "spec"
    STATUS = "status"
    """Allocated or actual resources if larger, as the scheduler and admission count."""
    STATUS_WITH_POD_LEVEL = "status with pod level"
    """The same for pod-level resources too (1.35 and later)."""


class Declared(NamedTuple):
    """True if every container limits a resource, so that the pod's cgroup is limited too."""

    cpu: bool
    memory: bool


def is_sidecar(container: Container, release: Release) -> bool:
    """Return whether an init container keeps running (`restartPolicy: Always`, 1.28 and later)."""
    return container.restart_policy == "Always" and release.has(Change.SIDECARS)


def is_supported_at_pod_level(name: str, release: Release) -> bool:
    """Return `IsSupportedPodLevelResource`: cpu and memory, hugepages since 1.33."""
    if name.startswith(HUGEPAGES_PREFIX):
        return release.has(Change.POD_LEVEL_HUGEPAGES)
    return name in {CPU, MEMORY}


def is_extended(name: str) -> bool:
    """Return whether a resource is outside of kubernetes.io, such as a device; these are whole numbers."""
    return "/" in name and "kubernetes.io/" not in name


def is_container_resource(name: str) -> bool:
    """Return `IsStandardContainerResourceName`, or whether the name has a domain."""
    return name in {CPU, MEMORY, EPHEMERAL_STORAGE} or name.startswith(HUGEPAGES_PREFIX) or "/" in name


def resources_of_pod(pod: Pod, side: str) -> ResourceList:
    """Return the `requests` or `limits` of spec.resources, empty if absent."""
    return getattr(pod.spec.resources, side, None) or EMPTY_RESOURCES


def has_pod_level_requests(pod: Pod, release: Release) -> bool:
    """Return `IsPodLevelRequestsSet`: spec.resources requests something supported."""
    requests = resources_of_pod(pod, "requests")
    return bool(requests) and any(is_supported_at_pod_level(name, release) for name in requests)


def has_pod_level_resources(pod: Pod, release: Release) -> bool:
    """Return `IsPodLevelResourcesSet`: spec.resources requests or limits something supported."""
    if pod.spec.resources is None:
        return False
    names = (*resources_of_pod(pod, "requests"), *resources_of_pod(pod, "limits"))
    return any(is_supported_at_pod_level(name, release) for name in names)


def pod_requests(
    pod: Pod,
    release: Release,
    *,
    count: Count = Count.SPEC,
    pod_level: bool | None = None,
    containers: bool = True,
    overhead: bool = True,
) -> Totals:
    """Return the total requests of a defaulted pod (`PodRequests`).

    With `pod_level`, spec.resources replaces the containers' sum (None: if the feature gate is on);
    `containers` False leaves them out, `overhead` adds the RuntimeClass overhead.
    """
    totals: Totals = {}
    if containers:
        totals = aggregate_requests(pod, release, count=count)
    if pod_level is None:
        pod_level = release.enabled(Gate.POD_LEVEL_RESOURCES)
    if pod_level and has_pod_level_requests(pod, release):
        _set_pod_level(totals, pod, release, "requests", count)
    if overhead and pod.spec.overhead:
        _add(totals, pod.spec.overhead)
    return totals


def pod_limits(pod: Pod, release: Release, *, count: Count = Count.SPEC, overhead: bool = True) -> Totals:
    """Return the total limits of a pod (`PodLimits`); overhead is added only to non-zero limits.

    Containers without a limit are left out: `declared_limits` says whether there are any.
    """
    totals = aggregate_limits(pod, release, count=count)
    if release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_resources(pod, release):
        _set_pod_level(totals, pod, release, "limits", count)
    if overhead and pod.spec.overhead:
        for name, quantity in pod.spec.overhead.items():
            if name in totals and not totals[name].is_zero:
                totals[name] = totals[name] + quantity
    return totals


def kubelet_count(release: Release) -> Count:
    """Return what the kubelet counts for a pod's cgroup: from 1.27 to 1.31 allocated resources."""
    allocated = release.enabled(Gate.IN_PLACE_RESIZE) and not release.has(Change.STATUS_RESOURCES)
    return Count.STATUS if allocated else Count.SPEC


def admission_count(release: Release) -> Count:
    """Return what quotas and `kubectl describe node` count: also the status, if pods can be resized."""
    if not release.enabled(Gate.IN_PLACE_RESIZE):
        return Count.SPEC
    pod_level = release.enabled(Gate.IN_PLACE_RESIZE_POD_LEVEL)
    return Count.STATUS_WITH_POD_LEVEL if pod_level else Count.STATUS


def aggregate_requests(pod: Pod, release: Release, *, count: Count = Count.SPEC) -> Totals:
    """Return the requests as scheduled (`AggregateContainerRequests`): init containers by maximum."""
    return _aggregate(pod, release, _effective(pod, release, "requests", count))[0]


def aggregate_limits(pod: Pod, release: Release, *, count: Count = Count.SPEC) -> Totals:
    """Return the limits, added up as requests are (`AggregateContainerLimits`)."""
    return _aggregate(pod, release, _effective(pod, release, "limits", count))[0]


def declared_limits(pod: Pod, release: Release) -> Declared:
    """Return whether all containers limit CPU, and memory (`ResourceConfigForPod`, its ContainerFn).

    From 1.28 an init container counts with the sidecars started before it, so one without a limit of its
    own may count as declared. A pod-level limit always declares.
    """
    uses: list[_Resources] = [container.limits for container in pod.containers]
    if pod.init_containers:
        uses = _aggregate(pod, release, _SPEC["limits"])[1]
    if not release.has(Change.INIT_CONTAINERS_DECLARE_LIMITS):
        uses = uses[: len(pod.containers)]
    limits = pod_level_limits(pod, release)

    def is_declared(name: str) -> bool:
        own = all(not use.get(name, ZERO).is_zero for use in uses)
        return own or not limits.get(name, ZERO).is_zero

    return Declared(is_declared(CPU), is_declared(MEMORY))


def pod_level_limits(pod: Pod, release: Release) -> ResourceList:
    """Return the limits that the pod's containers share (spec.resources), empty if the gate is off."""
    return resources_of_pod(pod, "limits") if release.enabled(Gate.POD_LEVEL_RESOURCES) else EMPTY_RESOURCES


def eviction_request(pod: Pod, release: Release, name: str) -> Quantity:
    """Return the request that node-pressure eviction compares usage with (`GetResourceRequestQuantity`).

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
        for request in [item.requests[name] for item in pod.containers if name in item.requests]:
            total = total + request
        for request in [item.requests[name] for item in pod.init_containers if name in item.requests]:
            total = max(_compared(total, request), request)
    overhead = pod.spec.overhead or EMPTY_RESOURCES
    if name in overhead and not total.is_zero:
        total = total + overhead[name]
    return total


_Effective = Callable[[Container, bool], _Resources]


def _aggregate(pod: Pod, release: Release, effective: _Effective) -> tuple[Totals, list[_Resources]]:
    """Return the total, and the amounts that count for each app container, then for each init container."""
    totals: Totals = {}
    uses: list[_Resources] = []
    for container in pod.containers:
        use = effective(container, False)
        uses.append(use)
        _add(totals, use)
    sidecars: Totals = {}
    highest: Totals = {}
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
        _raise_to(highest, use)
    _raise_to(totals, highest)
    return totals, uses


def _add(totals: Totals, more: _Resources) -> None:
    for name, quantity in more.items():
        totals[name] = totals[name] + quantity if name in totals else quantity


def _raise_to(totals: Totals, floor: _Resources) -> None:
    for name, quantity in floor.items():
        current = totals.get(name)
        if current is None:
            totals[name] = quantity
        elif quantity > current:
            totals[name] = _compared(quantity, current)


def _compared(quantity: Quantity, other: Quantity) -> Quantity:
    """Return the quantity after Go's Cmp, which turns it into a decimal if the other one is a decimal."""
    return quantity.as_decimal() if other.is_decimal else quantity


def _is_resize_infeasible(pod: Pod, release: Release) -> bool:
    """Return whether the node has refused a pending resize, so that its new spec does not count."""
    if not release.has(Change.ALLOCATED_STATUS):
        return pod.status.resize == "Infeasible"
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _largest(first: _Resources, *others: _Resources, ties_to_first: bool = True) -> Totals:
    """Return the larger quantity of each resource; the first if they are equal."""
    result = dict(first)
    for other in (other for other in others if other is not first):
        for name, quantity in other.items():
            current = result.get(name)
            if current is None:
                result[name] = quantity
            elif quantity > current or (not ties_to_first and quantity == current):
                result[name] = _compared(quantity, current)
            elif not ties_to_first:
                result[name] = _compared(current, quantity)
    return result


_SPEC: Final[Mapping[str, _Effective]] = {
    "requests": lambda container, _: container.requests,
    "limits": lambda container, _: container.limits,
}


def _effective(pod: Pod, release: Release, side: str, count: Count) -> _Effective:
    has_resources = release.has(Change.STATUS_RESOURCES)
    if count is Count.SPEC or (side == "limits" and not has_resources):
        return _SPEC[side]
    is_infeasible = _is_resize_infeasible(pod, release)
    has_allocated = release.has(Change.ALLOCATED_STATUS)
    of_init = (pod.status.init_container_statuses or ()) if has_allocated else ()
    statuses = {status.name: status for status in (*(pod.status.container_statuses or ()), *of_init)}

    def effective(container: Container, is_init: bool) -> _Resources:
        spec: ResourceList = getattr(container, side)
        status = statuses.get(container.name)
        if status is None or (is_init and not (has_allocated and is_sidecar(container, release))):
            return spec
        allocated = status.allocated_resources or EMPTY_RESOURCES
        if not has_resources:
            return allocated if is_infeasible else _largest(spec, allocated, ties_to_first=False)
        if status.resources is None:
            return spec
        actual: ResourceList = getattr(status.resources, side) or EMPTY_RESOURCES
        if side == "limits" or not has_allocated:
            return actual if is_infeasible else _largest(spec, actual, ties_to_first=has_allocated)
        return _largest(actual, allocated) if is_infeasible else _largest(spec, actual, allocated)

    return effective


def _set_pod_level(totals: Totals, pod: Pod, release: Release, side: str, count: Count) -> None:
    spec = resources_of_pod(pod, side)
    effective: _Resources = spec
    if count is Count.STATUS_WITH_POD_LEVEL and pod.status.resources is not None:
        actual: ResourceList | None = getattr(pod.status.resources, side)
        allocated = (pod.status.allocated_resources if side == "requests" else None) or EMPTY_RESOURCES
        if not _is_resize_infeasible(pod, release):
            effective = _largest(spec, actual or EMPTY_RESOURCES, allocated)
        elif side == "requests" or actual is not None:
            effective = _largest(actual or EMPTY_RESOURCES, allocated)
    for name in spec:
        if is_supported_at_pod_level(name, release):
            totals[name] = effective.get(name, ZERO)
