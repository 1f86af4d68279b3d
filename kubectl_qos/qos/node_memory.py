"""The memory of a node: what its pods use, ask for and may grow to, and how far away eviction is.

Not here: who is killed or evicted first (ranking.py, eviction.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import Node, NodeSetup, parse_threshold
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO, Format, Quantity
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import Count, pod_limits, pod_requests
from kubectl_qos.qos.cgroup.node import PODS
from kubectl_qos.qos.flags import is_resizing
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerKind, RankedPod, Ranking, has_processes

SIGNAL: Final = "memory.available"
_IGNORED: Final = frozenset({"0%", "100%"})


class NodeMemory(NamedTuple):
    """The pods of a node that can have processes, added up. Bytes.

    `used` is None where pods have processes and none has usage; one without counts as using nothing.
    `unlimited_pods` have a container that nothing limits: `limits_bytes` has what is limited of them, and
    `worst_bytes` what that container uses now.
    """

    pods: int
    used: Mapping[QosClass, int] | None
    requests_bytes: int
    limits_bytes: int
    unlimited_pods: int
    worst_bytes: int

    @property
    def used_bytes(self) -> int | None:
        """What all of them use."""
        return None if self.used is None else sum(self.used.values())


class MemoryAtLimits(NamedTuple):
    """What a pod can use at most by its limits, or more if it is `unlimited`."""

    memory_bytes: int
    unlimited: bool


def node_memory(ranking: Ranking, release: Release) -> NodeMemory:
    """The sums over a node's pods.

    Requests and limits are those that `kubectl describe node` adds up (PodRequests and PodLimits with
    UseStatusResources): pods that have not ended, and of one that is being resized the larger of what it
    has and what it asks for. Source: k8s.io/kubectl/pkg/describe/describe.go (getPodsTotalRequestsAndLimits).
    """
    running = [row for row in ranking.pods if has_processes(row.pod)]
    used = dict.fromkeys(QosClass, 0)
    requests = limits = unlimited = worst = 0
    for row in running:
        if row.usage is not None:
            used[row.qos] += row.usage.working_set_bytes
        requests += _requests(row, release)
        limits += _limits(row, release)
        growth = at_limits(row)
        unlimited += growth.unlimited
        worst += growth.memory_bytes
    known = not running or any(row.usage is not None for row in running)
    return NodeMemory(len(running), used if known else None, requests, limits, unlimited, worst)


def at_limits(row: RankedPod) -> MemoryAtLimits:
    """A pod's memory if each of its containers that has a limit reaches it, and others stay as they are.

    Containers that have ended count for nothing, nor do init containers that wait for the one that runs. App
    containers come after it, sidecars are beside both. Where the pod's own cgroup has a memory.max, which is
    PodLimits, it is the most that all of them can have, those without a limit among them. Never less than is
    used now.
    Source: pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod).
    """
    profile = row.profile
    limits = {one.name: one.limit_bytes for one in profile.containers}
    used = row.usage.working_set_bytes if row.usage is not None else 0
    sums = dict.fromkeys(ContainerKind, 0)
    unlimited = False
    for one in row.alive():
        most = limits[one.name]
        if not most:
            unlimited = True
            most = one.usage.working_set_bytes if one.usage is not None else 0
        sums[one.kind] += most
    if unlimited and profile.limit_bytes:
        return MemoryAtLimits(max(profile.limit_bytes, used), unlimited=False)
    app, init = sums[ContainerKind.APP], sums[ContainerKind.INIT]
    total = max(app, init) + sums[ContainerKind.SIDECAR] + sums[ContainerKind.EPHEMERAL]
    if profile.limit_bytes:
        overhead = (row.pod.spec.overhead or EMPTY_RESOURCES).get(MEMORY, ZERO).value()
        total = min(total + overhead, profile.limit_bytes)
    return MemoryAtLimits(max(total, used), unlimited)


def memory_threshold(text: str | None, capacity_bytes: int) -> int | None:
    """A threshold of memory.available in bytes; None where it is not set, or set so that it never counts.

    Source: pkg/kubelet/eviction/helpers.go (parseThresholdStatement ignores 0% and 100%).
    """
    if text is None or text in _IGNORED:
        return None
    return parse_threshold(text, Quantity(capacity_bytes, 0, Format.BINARY_SI)).value() or None


def to_hard_eviction(setup: NodeSetup, pods_bytes: int, node_bytes: int | None = None) -> int | None:
    """How much more memory may be used before the kubelet evicts; below zero it already does.

    The kubelet evicts when memory.available is below the hard threshold, and, as it enforces the pods'
    allocatable, also when allocatableMemory.available is: the limit of kubepods minus the pods' working set,
    with the same threshold (a percentage of that limit). The nearer of the two counts.

    `node_bytes` is the working set of the whole node. Where it is not known, the pods' stands in, which
    makes of the first signal an upper bound. None without a threshold or the node's capacity. Source:
    pkg/kubelet/eviction/helpers.go (makeSignalObservations, addAllocatableThresholds), 1.20 and later.
    """
    node, kubelet = setup.node, setup.kubelet
    text = kubelet.eviction_hard.get(SIGNAL)
    distances = []
    if PODS in kubelet.enforce_node_allocatable and node.allocatable_memory_bytes is not None:
        distances.append(_distance(text, node.allocatable_memory_bytes, pods_bytes))
    if node.memory_capacity_bytes:
        distances.append(_distance(text, node.memory_capacity_bytes, node_bytes or pods_bytes))
    return min((one for one in distances if one is not None), default=None)


def to_soft_eviction(setup: NodeSetup, pods_bytes: int, node_bytes: int | None = None) -> int | None:
    """The same for the soft threshold, which is of memory.available alone."""
    text, capacity = setup.kubelet.eviction_soft.get(SIGNAL), setup.node.memory_capacity_bytes
    return _distance(text, capacity, node_bytes or pods_bytes) if capacity else None


def schedulable_bytes(node: Node) -> int | None:
    """What requests are counted against: status.allocatable, None where it is not known."""
    return node.status_allocatable[MEMORY].value() if MEMORY in node.status_allocatable else None


def _distance(text: str | None, capacity_bytes: int, used_bytes: int) -> int | None:
    kept_free = memory_threshold(text, capacity_bytes)
    return None if kept_free is None else capacity_bytes - used_bytes - kept_free


def _requests(row: RankedPod, release: Release) -> int:
    if not is_resizing(row.pod):
        return row.profile.request_bytes
    return pod_requests(row.pod, release, count=_count(release)).get(MEMORY, ZERO).value()


def _limits(row: RankedPod, release: Release) -> int:
    """What is limited of a pod, even if not all of it is."""
    profile, pod = row.profile, row.pod
    if is_resizing(pod):
        return _limits_of(pod, release, _count(release))
    if profile.limit_bytes:
        return profile.limit_bytes
    return _limits_of(pod, release, Count.SPEC) if any(one.limit_bytes for one in profile.containers) else 0


def _limits_of(pod: Pod, release: Release, count: Count) -> int:
    return pod_limits(pod, release, count=count).get(MEMORY, ZERO).value()


def _count(release: Release) -> Count:
    """What counts of a pod that is being resized."""
    if release.enabled(Gate.IN_PLACE_RESIZE_POD_LEVEL):
        return Count.STATUS_WITH_POD_LEVEL
    return Count.STATUS if release.enabled(Gate.IN_PLACE_RESIZE) else Count.SPEC
