"""Memory of a node: usage, requests and limits of its pods.

Not here: who is killed or evicted first (ranking.py, eviction.py).
"""

from collections.abc import Mapping
from typing import NamedTuple

from kubectl_qos.k8s.allocation import desired_pod, is_resizing
from kubectl_qos.k8s.kubelet import Node
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import admission_count, pod_limits, pod_requests
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerKind, RankedPod, Ranking


class NodeMemory(NamedTuple):
    """Sums over the pods of a node that have not ended, in bytes."""

    pods: int
    used: Mapping[QosClass, int] | None
    """None if no pod has usage; containers without usage count as 0."""
    unmeasured: Mapping[QosClass, int]
    """Pods with a container without usage."""
    requests_bytes: int
    limits_bytes: int
    """Sum of the existing limits."""
    unlimited_pods: int
    """Pods with a container without any limit."""
    worst_bytes: int | None
    """Usage at all limits; unlimited containers count with present usage, None if that is unknown."""

    @property
    def used_bytes(self) -> int | None:
        """Usage of all pods."""
        return None if self.used is None else sum(self.used.values())


class MemoryAtLimits(NamedTuple):
    """Usage of a pod at its limits; more is possible if it is `unlimited` or not `is_known`."""

    memory_bytes: int
    unlimited: bool
    is_known: bool = True


def node_memory(ranking: Ranking, release: Release) -> NodeMemory:
    """Return the sums over a node's pods.

    Requests and limits are those of `kubectl describe node` (PodRequests and PodLimits with
    UseStatusResources): during a resize, the larger of the allocated and the requested value. Source:
    k8s.io/kubectl/pkg/describe/describe.go (getPodsTotalRequestsAndLimits).
    """
    pods = [row for row in ranking.pods if not row.pod.is_terminal]
    used, unmeasured = dict.fromkeys(QosClass, 0), dict.fromkeys(QosClass, 0)
    requests = limits = unlimited = worst = 0
    is_worst_known = True
    for row in pods:
        if row.usage is not None:
            used[row.qos] += row.usage.working_set_bytes
        unmeasured[row.qos] += row.lacks_usage
        pod_requests_bytes, pod_limits_bytes = _requests_and_limits(row, release)
        requests += pod_requests_bytes
        limits += pod_limits_bytes
        grown = at_limits(row)
        unlimited += grown.unlimited
        worst += grown.memory_bytes
        is_worst_known = is_worst_known and grown.is_known
    is_known = not pods or any(row.usage is not None for row in pods)
    return NodeMemory(
        len(pods),
        used if is_known else None,
        unmeasured,
        requests,
        limits,
        unlimited,
        worst if is_worst_known else None,
    )


def at_limits(row: RankedPod) -> MemoryAtLimits:
    """Return a pod's usage if every container with a limit reaches it, never less than its usage now.

    Ended containers and waiting init containers do not count. App containers run after init containers,
    sidecars beside both. A memory.max of the pod's own cgroup (PodLimits) bounds the sum.
    Source: pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod).
    """
    profile = row.profile
    limits = {container.name: container.limit_bytes for container in profile.containers}
    used = row.usage.working_set_bytes if row.usage is not None else 0
    sums = dict.fromkeys(ContainerKind, 0)
    unlimited, is_known = False, True
    for container in row.alive:
        most = limits[container.name]
        if not most:
            unlimited, is_known = True, is_known and container.usage is not None
            most = container.usage.working_set_bytes if container.usage is not None else 0
        sums[container.kind] += most
    if unlimited and profile.limit_bytes:
        return MemoryAtLimits(max(profile.limit_bytes, used), unlimited=False)
    app, init = sums[ContainerKind.APP], sums[ContainerKind.INIT]
    total = max(app, init) + sums[ContainerKind.SIDECAR] + sums[ContainerKind.EPHEMERAL]
    if profile.limit_bytes:
        overhead = (row.pod.spec.overhead or EMPTY_RESOURCES).get(MEMORY, ZERO).value()
        total = min(total + overhead, profile.limit_bytes)
    return MemoryAtLimits(max(total, used), unlimited, is_known)


def schedulable_bytes(node: Node) -> int | None:
    """Return the allocatable memory in bytes (status.allocatable), None if unknown."""
    return node.status_allocatable[MEMORY].value() if MEMORY in node.status_allocatable else None


def _requests_and_limits(row: RankedPod, release: Release) -> tuple[int, int]:
    """Return requests and limits in bytes; partial limits count too."""
    profile, pod = row.profile, row.pod
    if is_resizing(pod):
        pod, count = desired_pod(pod), admission_count(release)
        requests, limits = pod_requests(pod, release, count=count), pod_limits(pod, release, count=count)
        return requests.get(MEMORY, ZERO).value(), limits.get(MEMORY, ZERO).value()
    limit = profile.limit_bytes
    if not limit and any(container.limit_bytes for container in profile.containers):
        limit = pod_limits(pod, release).get(MEMORY, ZERO).value()
    return profile.request_bytes, limit
