"""Eviction under memory pressure: the kubelet's order, the distance to its thresholds, a node's memory.

The order differs from the kernel's and ignores the QoS class. Not here: disks and process IDs.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Final, NamedTuple

from kubectl_qos.k8s.allocation import desired_pod, is_resizing
from kubectl_qos.k8s.kubelet import (
    ENFORCE_PODS,
    MEMORY_AVAILABLE,
    Node,
    NodeSetup,
    hugepages_bytes,
    threshold_bytes,
)
from kubectl_qos.k8s.objects import DISRUPTION_TARGET, EMPTY_RESOURCES, MEMORY, UNKNOWN_CONTAINER, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity, parse_duration, parse_time
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import admission_count, pod_limits, pod_requests
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerKind, RankedPod, Ranking, has_processes

EvictionKey = tuple[int, int, int]
"""Sort key of a pod; the smallest is evicted first."""

_NANO: Final = 10**9
_IGNORED: Final = frozenset({"0%", "100%"})
_ANY_CAPACITY: Final = 1 << 40


def eviction_ranks(
    pods: Sequence[Pod], working_sets: Sequence[int | None], requests: Sequence[Quantity]
) -> list[int]:
    """Return the eviction rank of each pod: 1 is evicted first, equal pods share a rank.

    Usage over request comes first, then lower priority, then the larger excess. `working_sets` are bytes,
    None if the kubelet has no stats; `requests` are each pod's `eviction_request`, which changed in 1.34.
    Source: pkg/kubelet/eviction/helpers.go (rankMemoryPressure), unchanged from 1.20 to 1.36.
    """
    keys = [
        eviction_key(pod.spec.priority or 0, None if used is None else used * _NANO - request.nano)
        for pod, used, request in zip(pods, working_sets, requests, strict=True)
    ]
    places: dict[EvictionKey, int] = {}
    for place, key in enumerate(sorted(keys), start=1):
        places.setdefault(key, place)
    return [places[key] for key in keys]


def node_eviction_ranks(ranking: Ranking, setup: NodeSetup) -> dict[PodKey, int]:
    """Return the eviction rank of each evictable pod: first those without stats, then by usage.

    There is none where the kubelet evicts no pod for memory.
    """
    if not evicts_for_memory(setup):
        return {}
    rows = [
        row
        for row in ranking.pods
        if is_without_stats(row)
        or (row.usage is not None and has_processes(row.pod) and not is_critical(row.pod))
    ]
    used = [row.usage.working_set_bytes if row.usage is not None else None for row in rows]
    ranks = eviction_ranks([row.pod for row in rows], used, [row.profile.eviction_request for row in rows])
    return {row.pod.key: rank for row, rank in zip(rows, ranks, strict=True)}


def eviction_key(priority: int, over_request: int | None) -> EvictionKey:
    """Return the sort key for usage above the request, in units of 1e-9; None: no stats."""
    if over_request is None:
        return 0, priority, 0
    return 1 if over_request > 0 else 2, priority, -over_request


def lacks_stats(pod: Pod) -> bool:
    """Return whether the kubelet has no stats of the pod, because no container runs, and may evict it.

    Such a pod is evicted before all others, and frees nothing. Manifests, which have no phase, and running
    pods without container statuses are not such pods, nor are pods of which only sums are known.
    Source: pkg/kubelet/eviction/helpers.go (exceedMemoryRequests), stats/cri_stats_provider.go (skips pods
    without a running container).
    """
    if not (pod.status.phase and pod.spec.node_name) or pod.is_terminal or is_critical(pod):
        return False
    statuses = [status for status in pod.status.every_container if status.name != UNKNOWN_CONTAINER]
    is_known = bool(statuses) or pod.status.phase == "Pending"
    return is_known and not any(status.has_processes for status in statuses)


def is_without_stats(row: RankedPod) -> bool:
    """Return whether a ranked pod lacks stats, and no sample says otherwise."""
    return row.usage is None and row.worst is None and lacks_stats(row.pod)


def memory_threshold(text: str | None, capacity_bytes: int) -> int | None:
    """Return a threshold of memory.available in bytes, None if it is unset or disabled.

    Source: pkg/kubelet/eviction/helpers.go (parseThresholdStatement ignores 0% and 100%).
    """
    return None if text in _IGNORED else threshold_bytes(text, capacity_bytes) or None


def evicts_for_memory(setup: NodeSetup) -> bool:
    """Return whether the kubelet has a threshold of memory.available, hard or soft."""
    settings = (setup.kubelet.eviction_hard, setup.kubelet.eviction_soft)
    return any(memory_threshold(texts.get(MEMORY_AVAILABLE), _ANY_CAPACITY) for texts in settings)


def evictable_capacity(setup: NodeSetup) -> int | None:
    """Return the bytes that memory.available is measured from (without hugepages from 1.37), None if unknown.

    Source: pkg/kubelet/server/stats/summary.go (PR 138127); the eviction manager adds the working set to what
    is available.
    """
    capacity = setup.node.memory_capacity_bytes
    if capacity is None or not setup.release.enabled(Gate.HUGEPAGE_AWARE_EVICTION):
        return capacity
    return max(capacity - hugepages_bytes(setup.node.capacity), 0)


class Due(Enum):
    """Whether the node's status shows that the kubelet evicts now."""

    NO = "no"
    NOW = "now"
    MAYBE = "maybe"
    """The node reports pressure, but a newer sample shows enough memory: the condition may be out of date."""


_SHORTAGE_SECONDS: Final = 60
"""How long a shortage lasts although samples show a little free memory: an eviction takes up to 40 seconds,
and pods soon use what it frees."""


def is_short(left_bytes: int, capacity_bytes: int) -> bool:
    """Return whether less than 5 % of a node's memory is left."""
    return 20 * left_bytes < capacity_bytes


def eviction_due(setup: NodeSetup, pods: Iterable[tuple[Pod, PodUsage | None]], own_bytes: int | None) -> Due:
    """Return whether the kubelet evicts now, according to the node, its pods and their usage.

    The kubelet reports MemoryPressure from the first shortage until some time after the last one
    (evictionPressureTransitionPeriod, by default 5 minutes). So a newer sample of the whole node with enough
    free memory means that the pressure may be over. Events of the node, and conditions of evicted pods, show
    a shortage before the node reports it, and count until the node reports its end. An evicted pod that has
    ended since the sample no longer uses what the sample shows.
    Source: pkg/kubelet/eviction/eviction_manager.go (synchronize), helpers.go (nodeConditionsObservedSince).
    """
    node, used_bytes, newest, evicted_at, freed_at = setup.node, 0, "", list[str](), list[str]()
    for pod, usage in pods:
        # The message is of pkg/kubelet/eviction/helpers.go (evictionMessage).
        evictions = [
            condition.last_transition_time or ""
            for condition in pod.status.conditions or ()
            if condition.type == DISRUPTION_TARGET and "low on resource: memory" in condition.message
        ]
        evicted_at += evictions
        if usage is not None:
            newest = max(newest, usage.timestamp)
            freed_at += evictions if pod.is_terminal else ()
            used_bytes += 0 if pod.is_terminal else usage.working_set_bytes
    sampled, since, sent = map(parse_time, (newest, node.pressure_since, node.pressure_sent))
    shortages = [*map(parse_time, (node.short_at, *evicted_at)), since if node.reports_pressure else None]
    last = max(filter(None, shortages), default=None)
    if last is not None and not node.reports_pressure and since is not None and since >= last:
        return Due.NO
    if sampled is not None and last is not None:
        whole = used_bytes + own_bytes if own_bytes is not None else None
        distances = to_hard_eviction(setup, used_bytes, whole), to_soft_eviction(setup, used_bytes, whole)
        left = min((distance for distance in distances if distance is not None), default=0)
        has_room = whole is not None and not is_short(left, node.memory_capacity_bytes or 0)
        freed = max(filter(None, map(parse_time, freed_at)), default=None)
        short, lasting = parse_time(node.short_at) or since or last, timedelta(seconds=_SHORTAGE_SECONDS)
        if has_room and freed is not None and max(sampled, short) <= freed <= sampled + lasting:
            return Due.MAYBE if node.reports_pressure else Due.NO
        if sampled <= last + (timedelta() if has_room else lasting):
            return Due.NOW
    if not node.reports_pressure:
        return Due.NO
    is_newer = sampled is not None and (sent is None or sampled > sent)
    return Due.MAYBE if is_newer and own_bytes is not None else Due.NOW


def to_hard_eviction(
    setup: NodeSetup, pods_bytes: int, node_bytes: int | None = None, due: Due = Due.NO
) -> int | None:
    """Return the bytes of growth until the kubelet evicts (at most 0 if due), None without a threshold.

    The hard threshold applies to memory.available and, if the pods' allocatable is enforced, to
    allocatableMemory.available (limit of kubepods minus the pods' working set); the nearer one counts.
    `node_bytes` is the working set of the whole node; without it, the pods' gives an upper bound for the
    first signal. None without the node's capacity too. Source: pkg/kubelet/eviction/helpers.go
    (makeSignalObservations, addAllocatableThresholds), 1.20 and later.
    """
    kubelet, pods_capacity = setup.kubelet, setup.node.allocatable_memory_bytes
    if ENFORCE_PODS not in kubelet.enforce_node_allocatable:
        pods_capacity = None
    text = kubelet.eviction_hard.get(MEMORY_AVAILABLE)
    signals = ((pods_capacity, pods_bytes), (evictable_capacity(setup) or None, node_bytes or pods_bytes))
    distances = (_distance(text, capacity, used) for capacity, used in signals)
    near = [distance for distance in distances if distance is not None]
    # With both thresholds the kubelet reports the soft one first.
    is_due = due is Due.NOW and MEMORY_AVAILABLE not in kubelet.eviction_soft
    return min((*near, 0) if is_due and near else near, default=None)


def to_soft_eviction(
    setup: NodeSetup, pods_bytes: int, node_bytes: int | None = None, due: Due = Due.NO
) -> int | None:
    """Return the bytes of growth until the soft threshold, which has only memory.available."""
    text, capacity = setup.kubelet.eviction_soft.get(MEMORY_AVAILABLE), evictable_capacity(setup) or None
    distance = _distance(text, capacity, node_bytes or pods_bytes)
    return min(distance, 0) if distance is not None and due is Due.NOW else distance


def _distance(text: str | None, capacity_bytes: int | None, used_bytes: int) -> int | None:
    threshold = memory_threshold(text, capacity_bytes) if capacity_bytes is not None else None
    return None if capacity_bytes is None or threshold is None else capacity_bytes - used_bytes - threshold


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
    measured = used if not pods or any(row.usage is not None for row in pods) else None
    at_worst = worst if is_worst_known else None
    return NodeMemory(len(pods), measured, unmeasured, requests, limits, unlimited, at_worst)


def at_limits(row: RankedPod) -> MemoryAtLimits:
    """Return a pod's usage if every container with a limit reaches it, never less than its usage now.

    Ended containers and waiting init containers do not count. App containers run after init containers,
    sidecars with both. A memory.max of the pod's own cgroup (PodLimits) bounds the sum.
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
    """Return requests and limits in bytes; limits count even if some containers have none."""
    profile, pod = row.profile, row.pod
    if is_resizing(pod):
        pod, count = desired_pod(pod), admission_count(release)
        requests, limits = pod_requests(pod, release, count=count), pod_limits(pod, release, count=count)
        return requests.get(MEMORY, ZERO).value(), limits.get(MEMORY, ZERO).value()
    limit = profile.limit_bytes
    if not limit and any(container.limit_bytes for container in profile.containers):
        limit = pod_limits(pod, release).get(MEMORY, ZERO).value()
    return profile.request_bytes, limit


class Thresholds(NamedTuple):
    """Available memory below which the kubelet evicts (None: never)."""

    node_bytes: int | None
    kubepods_bytes: int | None
    reclaim_bytes: int
    """How much more than the threshold the kubelet frees (minimum reclaim)."""
    hugepages_bytes: int = 0
    """Subtracted from available memory (1.37 and later)."""
    soft_bytes: int | None = None
    soft_grace_seconds: int = 0
    """How long the soft threshold must be crossed."""


def thresholds_on(setup: NodeSetup, capacity: int, kubepods: int | None) -> Thresholds:
    """Return the hard thresholds of both signals, memory.available and allocatableMemory.available.

    The second signal has the threshold of the first; percentages are of its own capacity.
    Source: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, addAllocatableThresholds).
    """
    kubelet = setup.kubelet
    text = kubelet.eviction_hard.get(MEMORY_AVAILABLE)
    reclaim = kubelet.eviction_minimum_reclaim.get(MEMORY_AVAILABLE)
    evictable = evictable_capacity(setup) or 0
    grace = kubelet.eviction_soft_grace_period.get(MEMORY_AVAILABLE)
    return Thresholds(
        memory_threshold(text, evictable),
        memory_threshold(text, kubepods) if kubepods is not None else None,
        memory_threshold(reclaim, evictable) or 0,
        capacity - evictable,
        memory_threshold(kubelet.eviction_soft.get(MEMORY_AVAILABLE), evictable),
        parse_duration(grace) // 10**9 if grace else 0,
    )
