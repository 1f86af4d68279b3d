"""The resources that a node has allocated to a pod; during an in-place resize they differ from its spec.

The kubelet creates containers, evicts, preempts and admits by the allocated pod (UpdatePodFromAllocation in
pkg/kubelet/pod_workers.go, getAllocatedPods in pkg/kubelet/kubelet.go). The API shows allocated requests in
allocatedResources, and the limits in force in the resources of a container's status.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kubectl_qos.k8s.defaulting import default_pod, with_containers
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    MEMORY,
    Condition,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    ResourceList,
    ResourceRequirements,
    all_containers,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import declared_limits, pod_level_limits, pod_limits

RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
_WITH_POD_STATUS: Final = Release.of("1.36", {})
"""The first release whose kubelets report status.resources without a gate; older releases count the same."""
_LARGEST_PAGE: Final = 1 << 16


def resize_condition(pod: Pod) -> Condition | None:
    """Return the condition of an unfinished resize; until 1.32, status.resize is its reason."""
    reason = pod.status.resize
    if reason:
        kind = RESIZE_IN_PROGRESS if reason == "InProgress" else RESIZE_PENDING
        return Condition(type=kind, status="True", reason=reason)
    for condition in pod.status.conditions or ():
        if condition.type in {RESIZE_PENDING, RESIZE_IN_PROGRESS} and condition.status == "True":
            return condition
    return None


def shows_resize(pod: Pod) -> bool:
    """Return whether the status has what a kubelet reports only with the gate InPlacePodVerticalScaling."""
    statuses = pod.status.container_statuses or ()
    return bool(pod.status.resize) or any(status.allocated_resources is not None for status in statuses)


class ResizingPod(Pod, frozen=True, kw_only=True):
    """A pod with its allocated resources as spec; `desired` is its real spec."""

    desired: PodSpec


def desired_pod(pod: Pod) -> Pod:
    """Return the pod with the resources of its spec."""
    if not isinstance(pod, ResizingPod):
        return pod
    return Pod(kind=pod.kind, metadata=pod.metadata, spec=pod.desired, status=pod.status)


def resized_pod(pod: Pod) -> Pod:
    """Return the pod as if its node had carried out its spec, with a status that equals the spec."""
    pod = desired_pod(pod)
    status, containers = pod.status, {container.name: container for container in all_containers(pod)}

    def reported(statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
        return statuses and tuple(_reported(item, containers.get(item.name)) for item in statuses)

    resizing = {RESIZE_PENDING, RESIZE_IN_PROGRESS}
    settled = [condition for condition in status.conditions or () if condition.type not in resizing]
    status = msgspec.structs.replace(
        status,
        resize="",
        conditions=status.conditions and tuple(settled),
        allocated_resources=None,
        resources=None,
        container_statuses=reported(status.container_statuses),
        init_container_statuses=reported(status.init_container_statuses),
    )
    return msgspec.structs.replace(pod, status=status)


def _reported(status: ContainerStatus, container: Container | None) -> ContainerStatus:
    if container is None:
        return status
    requests = ResourceList({**container.limits, **container.requests})
    return msgspec.structs.replace(
        status,
        allocated_resources=None if status.allocated_resources is None else requests,
        resources=None if status.resources is None else container.resources,
    )


def is_resizing(pod: Pod) -> bool:
    """Return whether a resize is unfinished: the kubelet says so, or status and spec differ."""
    is_known = isinstance(pod, ResizingPod) or resize_condition(pod) is not None
    return is_known or _has_other_requests(pod) or other_pod_limit(pod) is not None


def other_pod_limit(pod: Pod) -> Quantity | None:
    """Return the memory limit of a pod's cgroup if it differs from the limit that its containers add up to.

    The kubelet reads status.resources back from the cgroup (1.36), in whole pages. It raises the pod's limit
    first; before 1.36.4 never for a container that is killed before the kubelet acts (kubernetes#138760).
    """
    actual = pod.status.resources.limits if pod.status.resources is not None else None
    limit = actual.get(MEMORY) if actual else None
    statuses = pod.status.container_statuses or ()
    if limit is None or (len(statuses) == 1 and statuses[0].resources == pod.status.resources):
        return None  # Most pods: no need to add up.
    running = msgspec.structs.replace(pod, spec=_allocated_spec(pod))
    is_limited = declared_limits(running, _WITH_POD_STATUS).memory
    own = pod_limits(running, _WITH_POD_STATUS).get(MEMORY, ZERO)
    return limit if is_limited and abs(own.value() - limit.value()) >= _LARGEST_PAGE else None


def low_pod_limit(pod: Pod) -> Quantity | None:
    """Return the memory limit of a pod's cgroup if a finished resize has left it too low."""
    pod = desired_pod(pod)
    limit, own = other_pod_limit(pod), pod_limits(pod, _WITH_POD_STATUS).get(MEMORY, ZERO)
    return limit if limit is not None and limit < own and resize_condition(pod) is None else None


def limit_in_force(pod: Pod, container: str, release: Release) -> int:
    """Return the bytes at which a container is killed alone: its limit or the pod's, 0 without either.

    It is also 0 for a container that the pod does not have, because a status may name one.
    """
    own = [item.limits.get(MEMORY, ZERO).value() for item in all_containers(pod) if item.name == container]
    if not own:
        return 0
    low, of_pod = other_pod_limit(pod), pod_level_limits(pod, release).get(MEMORY, ZERO).value()
    return min(filter(None, (own[0], of_pod if low is None else low.value())), default=0)


def running_pod(pod: Pod, release: Release) -> Pod:
    """Return the pod that its node runs: defaulted as by a server of that release, with allocated resources.

    Requests are the allocated ones, limits those in force. Without an unfinished resize it is `default_pod`.
    """
    pod = default_pod(pod, release)
    if isinstance(pod, ResizingPod) or not is_resizing(pod):
        return pod
    spec = msgspec.structs.replace(_allocated_spec(pod), resources=_allocated_at_pod_level(pod))
    return ResizingPod(kind=pod.kind, metadata=pod.metadata, spec=spec, status=pod.status, desired=pod.spec)


def _allocated_spec(pod: Pod) -> PodSpec:
    statuses = {status.name: status for status in pod.status.every_container}
    return with_containers(pod.spec, lambda container: _allocated(container, statuses.get(container.name)))


def _has_other_requests(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    if not statuses:
        return False
    requests = {container.name: container.resources.requests for container in pod.containers}
    return any(
        status.allocated_resources is not None
        and status.allocated_resources is not requests.get(status.name)
        and status.allocated_resources != (requests.get(status.name) or EMPTY_RESOURCES)
        for status in statuses
    )


def _allocated(container: Container, status: ContainerStatus | None) -> Container:
    if status is None or (status.resources is None and status.allocated_resources is None):
        return container
    actual = status.resources or ResourceRequirements()
    requested = actual.requests if status.allocated_resources is None else status.allocated_resources
    resources = ResourceRequirements(
        requests=_with_values_of(container.resources.requests, requested),
        limits=_with_values_of(container.resources.limits, actual.limits)
        if status.resources is not None
        else container.resources.limits,
    )
    return msgspec.structs.replace(container, resources=resources)


def _allocated_at_pod_level(pod: Pod) -> ResourceRequirements | None:
    """Return the allocated spec.resources; the status has the total with overhead (1.35 and later)."""
    spec, status, allocated = pod.spec.resources, pod.status, pod.status.allocated_resources
    if spec is None or allocated is None:
        return spec
    overhead = pod.spec.overhead or EMPTY_RESOURCES
    requested = {name: amount - overhead.get(name, ZERO) for name, amount in allocated.items()}
    limits = status.resources.limits if status.resources is not None else spec.limits
    return ResourceRequirements(
        requests=_with_values_of(spec.requests, requested), limits=_with_values_of(spec.limits, limits)
    )


def _with_values_of(spec: ResourceList | None, status: Mapping[str, Quantity] | None) -> ResourceList | None:
    """Return the spec with CPU and memory of the status; values that the status lacks are dropped."""
    if spec is None:
        return None
    status = status or EMPTY_RESOURCES
    values = {name: status.get(name) if name in {CPU, MEMORY} else amount for name, amount in spec.items()}
    return ResourceList({name: amount for name, amount in values.items() if amount is not None})
