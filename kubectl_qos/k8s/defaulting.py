"""Fill in what an API server does: resources, priorities, and the overhead of RuntimeClasses.

Sources: pkg/apis/core/v1/defaults.go, pkg/apis/scheduling/types.go,
plugin/pkg/admission/priority/admission.go, plugin/pkg/admission/runtimeclass/admission.go.
"""

from collections.abc import Callable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from kubectl_qos.k8s.objects import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
    all_containers,
)
from kubectl_qos.k8s.quantity import MILLI
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import aggregate_limits, aggregate_requests, is_supported_at_pod_level

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
SYSTEM_NODE_CRITICAL: Final = "system-node-critical"
SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL_PRIORITY + 1_000,
}


def admitted(
    pod: Pod,
    priorities: Mapping[str, int] = SYSTEM_PRIORITIES,
    overheads: Mapping[str, ResourceList] = MappingProxyType({}),
) -> Pod:
    """Return the pod with the values of its PriorityClass and RuntimeClass, which manifests only name.

    `priorities` has the priority of pods without a class under "".
    """
    spec = pod.spec
    priority, overhead = spec.priority, spec.overhead
    if priority is None:
        priority = priorities.get(spec.priority_class_name)
    if overhead is None:
        overhead = overheads.get(spec.runtime_class_name or "")
    return _changed(pod, spec=_changed(spec, priority=priority, overhead=overhead))


def default_pod(pod: Pod, release: Release) -> Pod:
    """Return the pod as the API server of `release` stores it: requests from limits, values in milli.

    If nothing is missing it is the same object, so that a large list is not in memory twice.
    """
    pod_level = pod.spec.resources
    if pod_level is not None and release.enabled(Gate.POD_LEVEL_RESOURCES):
        pod = _changed(pod, spec=with_containers(pod.spec, _requests_from_limits))
        defaulted = _pod_level_defaults(pod, pod_level, release)
        if defaulted != pod_level:
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=defaulted))
    if _is_stored(pod):
        return pod
    spec = with_containers(pod.spec, lambda container: _rounded_container(_requests_from_limits(container)))
    ephemeral = _each(spec.ephemeral_containers, _rounded_container)
    resources, overhead = _rounded_requirements(spec.resources), _rounded(spec.overhead)
    spec = _changed(spec, ephemeral_containers=ephemeral, resources=resources, overhead=overhead)
    return _changed(pod, spec=spec, status=_rounded_status(pod.status))


def _is_stored(pod: Pod) -> bool:
    """Return whether no request is missing and no quantity finer than milli, as in most pods of a server."""
    for container in all_containers(pod):
        resources = container.resources
        requests, limits = resources.requests, resources.limits
        if limits is not None and (requests is None or not limits.keys() <= requests.keys()):
            return False
        if not resources.is_whole_milli:
            return False
    spec, status = pod.spec, pod.status
    for part in (spec.overhead, spec.resources, status.allocated_resources, status.resources):
        if part is not None and not part.is_whole_milli:
            return False
    for of_container in status.every_container:
        for part in (of_container.allocated_resources, of_container.resources):
            if part is not None and not part.is_whole_milli:
                return False
    return True


S = TypeVar("S", bound=msgspec.Struct)


def _changed(value: S, **fields: object) -> S:
    """Return a struct with these fields; the same object if it has them already."""
    for name, field in fields.items():
        if getattr(value, name) is not field:
            return msgspec.structs.replace(value, **fields)
    return value


def _each(values: tuple[S, ...] | None, change: Callable[[S], S]) -> tuple[S, ...] | None:
    """Return the values changed one by one; the same tuple if none differs."""
    if not values:
        return values
    changed = tuple(map(change, values))
    return values if all(map(is_, changed, values)) else changed


def with_containers(spec: PodSpec, change: Callable[[Container], Container]) -> PodSpec:
    """Return the spec with its app and init containers changed."""
    containers, init_containers = _each(spec.containers, change), _each(spec.init_containers, change)
    if containers is spec.containers and init_containers is spec.init_containers:
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init_containers)


def _requests_from_limits(container: Container) -> Container:
    """Make each limit without a request also the request; a request of zero stays."""
    limits = container.resources.limits
    if limits is None:
        return container
    requests = container.resources.requests
    if requests is not None and limits.keys() <= requests.keys():
        return container
    missing = {name: limits[name] for name in limits if name not in (requests or ())}
    resources = ResourceRequirements(requests=ResourceList({**(requests or {}), **missing}), limits=limits)
    return msgspec.structs.replace(container, resources=resources)


def _pod_level_defaults(pod: Pod, pod_level: ResourceRequirements, release: Release) -> ResourceRequirements:
    """Complete spec.resources from the containers and from its own limits."""
    if not (pod_level.requests or pod_level.limits):
        return pod_level
    limits = _pod_level_limits(pod, pod_level, release)
    requests = _pod_level_requests(pod, pod_level.requests, limits, release) if limits else pod_level.requests
    return ResourceRequirements(requests=requests, limits=limits)


def _pod_level_limits(pod: Pod, pod_level: ResourceRequirements, release: Release) -> ResourceList | None:
    """Apply `defaultHugePagePodLimits` (1.33), and since 1.37 CPU and memory that every container limits."""
    if not release.has(Change.POD_LEVEL_HUGEPAGES):
        return pod_level.limits
    limits = dict(pod_level.limits or {})
    containers = (*pod.containers, *pod.init_containers)
    if all(container.limits.keys() <= limits.keys() for container in containers):
        return pod_level.limits
    for name, quantity in aggregate_limits(pod, release).items():
        if name in limits or not is_supported_at_pod_level(name, release):
            continue
        if name.startswith(HUGEPAGES_PREFIX):
            has_request = name in (pod_level.requests or ())
            has_default = not (has_request and release.has(Change.POD_LEVEL_HUGEPAGE_LIMITS))
        else:
            has_default = release.has(Change.POD_LEVEL_DEFAULTS_IN_STRATEGY) and all(
                name in container.limits for container in containers
            )
        if has_default:
            limits[name] = quantity
    return ResourceList(limits) if limits else pod_level.limits


def _pod_level_requests(
    pod: Pod, pod_level: ResourceList | None, limits: ResourceList, release: Release
) -> ResourceList | None:
    """Apply `defaultPodRequests`: from the containers' requests, then from the pod-level limits."""
    requests = dict(pod_level or {})
    if CPU not in requests or MEMORY not in requests:
        for name, quantity in aggregate_requests(pod, release).items():
            if name in {CPU, MEMORY}:
                requests.setdefault(name, quantity)
    for name, quantity in limits.items():
        if is_supported_at_pod_level(name, release):
            requests.setdefault(name, quantity)
    return ResourceList(requests) if requests else pod_level


def _rounded(resources: ResourceList | None) -> ResourceList | None:
    """Round every quantity up to milli (`SetDefaults_ResourceList`)."""
    if resources is None or resources.is_whole_milli:
        return resources
    return ResourceList({name: quantity.rounded_up(MILLI) for name, quantity in resources.items()})


def _rounded_requirements(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    if resources is None or resources.is_whole_milli:
        return resources
    return ResourceRequirements(requests=_rounded(resources.requests), limits=_rounded(resources.limits))


def _rounded_container(container: Container) -> Container:
    if container.resources.is_whole_milli:
        return container
    return _changed(container, resources=_rounded_requirements(container.resources))


def _rounded_container_status(status: ContainerStatus) -> ContainerStatus:
    allocated, resources = _rounded(status.allocated_resources), _rounded_requirements(status.resources)
    return _changed(status, allocated_resources=allocated, resources=resources)


def _rounded_status(status: PodStatus) -> PodStatus:
    return _changed(
        status,
        container_statuses=_each(status.container_statuses, _rounded_container_status),
        init_container_statuses=_each(status.init_container_statuses, _rounded_container_status),
        resources=_rounded_requirements(status.resources),
        allocated_resources=_rounded(status.allocated_resources),
    )
