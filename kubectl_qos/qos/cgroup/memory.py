"""The memory settings of a cgroup beyond its limit: hugepages, swap, MemoryQoS. Amounts are bytes.

Sources: pkg/kubelet/cm/helpers_linux.go (HugePageLimits),
pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (generateLinuxContainerResources).
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.kubelet import MemoryReservationPolicy, Node, NodeSetup, hugepage_size_name
from kubectl_qos.k8s.objects import HUGEPAGES_PREFIX, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity, from_float, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, pod_level_limits
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass

MEMORY_MIN: Final = "memory.min"
MEMORY_LOW: Final = "memory.low"
MEMORY_HIGH: Final = "memory.high"
MEMORY_SWAP_MAX: Final = "memory.swap.max"

# -- hugepages ----------------------------------------------------------------------------------------


def hugepage_limits(resources: Mapping[str, Quantity]) -> dict[int, int]:
    """Return the limit in bytes by page size, for every hugepages entry (`HugePageLimits`)."""
    limits: dict[int, int] = {}
    for name, quantity in resources.items():
        if name.startswith(HUGEPAGES_PREFIX):
            try:
                size = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value()
            except QuantityError:
                size = 0  # as upstream
            limits[size] = limits.get(size, 0) + quantity.value()
    return limits


def pod_hugepage_limits(pod: Pod, requests: Totals, release: Release) -> dict[int, int]:
    """Return the pod cgroup's limits: from its total requests; up to 1.26 summed over the containers."""
    if release.has(Change.HUGEPAGES_FROM_POD_REQUESTS):
        return hugepage_limits(requests)
    limits: dict[int, int] = {}
    for container in pod.containers:
        for size, limit in hugepage_limits(container.requests).items():
            limits[size] = limits.get(size, 0) + limit
    if release.has(Change.INIT_CONTAINERS_DECLARE_LIMITS):
        for container in pod.init_containers:
            for size, limit in hugepage_limits(container.requests).items():
                limits[size] = max(limits.get(size, limit), limit)
    return limits


def container_hugepage_limits(
    pod: Pod, container: Container, sizes: tuple[str, ...], release: Release
) -> dict[str, int]:
    """Return the container's limit for every page size of the node, 0 unless one is set.

    From 1.34, the pod-level limit applies to containers without one.
    """
    limits: dict[str, int] = {}
    if release.has(Change.POD_LEVEL_HUGEPAGE_LIMITS):
        limits = named_hugepage_limits(hugepage_limits(pod_level_limits(pod, release)))
    limits |= named_hugepage_limits(hugepage_limits(container.limits))
    return {size: limits.get(size, 0) for size in sizes}


def named_hugepage_limits(limits: Mapping[int, int], sizes: tuple[str, ...] = ()) -> dict[str, int]:
    """Return limits by the size in file names; `sizes` without a limit get 0."""
    named = {}
    for size, limit in limits.items():
        try:
            named[hugepage_size_name(size)] = limit
        except InputError:
            continue
    return {**named, **{size: 0 for size in sizes if size not in named}}


# -- swap ---------------------------------------------------------------------------------------------

NO_SWAP: Final = "NoSwap"
LIMITED_SWAP: Final = "LimitedSwap"
UNLIMITED_SWAP: Final = "UnlimitedSwap"


class Swap(NamedTuple):
    """Swap settings for the runtime: `swap_max` for cgroup v2, `memory_and_swap` as CRI's total in bytes.

    None and 0 are unset, "max" and -1 unlimited.
    """

    swap_max: str | None = None
    memory_and_swap: int = 0


def container_swap(
    pod: Pod, container: Container, qos: QosClass, memory_limit: int, setup: NodeSetup
) -> Swap:
    """Return the swap settings of one container; `memory_limit` is its limit in bytes, 0 without one."""
    node, release = setup.node, setup.release
    if not release.has(Change.SWAP_BY_UNIFIED):
        if not release.enabled(Gate.NODE_SWAP):
            return Swap()
        unlimited = setup.kubelet.memory_swap_behavior == UNLIMITED_SWAP
        return Swap(memory_and_swap=-1 if unlimited else memory_limit)
    if not node.swap_controller_available:
        return Swap()
    behavior = _swap_behavior(pod, container, qos, setup)
    if behavior == UNLIMITED_SWAP:
        return Swap("max")
    if node.cgroup_version == 1:
        return Swap(memory_and_swap=memory_limit)
    if behavior == LIMITED_SWAP:
        request = container.requests.get(MEMORY, ZERO).value()
        return Swap(str(_burstable_swap(request, node)))
    return Swap("0")


def _swap_behavior(pod: Pod, container: Container, qos: QosClass, setup: NodeSetup) -> str:
    """Return the swap behavior (`GetContainerSwapBehavior`); 1.28 and 1.29 limit only LimitedSwap."""
    release = setup.release
    is_v1 = setup.node.cgroup_version == 1
    behavior = setup.kubelet.memory_swap_behavior
    if not release.enabled(Gate.NODE_SWAP):
        return NO_SWAP
    if not release.has(Change.NO_UNLIMITED_SWAP) and behavior != LIMITED_SWAP:
        return NO_SWAP if is_v1 else UNLIMITED_SWAP
    if behavior != LIMITED_SWAP or is_v1:
        return NO_SWAP
    if release.has(Change.CRITICAL_PODS_DO_NOT_SWAP) and is_critical(pod):
        return NO_SWAP
    request = container.requests.get(MEMORY, ZERO)
    limit = container.limits.get(MEMORY, ZERO)
    if qos is not QosClass.BURSTABLE or request == limit:
        return NO_SWAP
    return LIMITED_SWAP


def _burstable_swap(request: int, node: Node) -> int:
    """Return the container's share of swap: request / capacity, in double precision, floored to a byte.

    Returns 0 if the request exceeds the machine (the kubelet logs an error and disallows swap). Source:
    calcSwapForBurstablePods.
    """
    capacity = node.memory_capacity_bytes or 0
    if capacity <= 0 or request > capacity:
        return 0
    return from_float(request / capacity * float(node.swap_capacity_bytes))


# -- MemoryQoS ----------------------------------------------------------------------------------------


def has_memory_qos(setup: NodeSetup) -> bool:
    """Return whether the gate is on and the node has cgroup v2, which MemoryQoS needs."""
    return setup.node.cgroup_version != 1 and setup.release.enabled(Gate.MEMORY_QOS)


def container_memory_qos(qos: QosClass, request: int, limit: int, setup: NodeSetup) -> dict[str, str]:
    """Return what MemoryQoS sets for a container with this request and limit in bytes (0 without one)."""
    files: dict[str, str] = {}
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        is_protected = request != 0 and _is_tiered(setup)
        files = {_protection(qos): str(request)} if is_protected else {MEMORY_MIN: "0", MEMORY_LOW: "0"}
    elif request != 0:
        files[MEMORY_MIN] = str(request)
    high = _memory_high(request, limit, setup)
    if high is not None:
        files[MEMORY_HIGH] = str(high)
    return files


def pod_memory_qos(qos: QosClass, request: int, limit: int, setup: NodeSetup) -> dict[str, str]:
    """Return the pod cgroup's protection and throttling, from bytes that include overhead.

    `limit` is that of a pod with pod-level resources, 0 if it has none.
    """
    files: dict[str, str] = {}
    if limit and setup.release.has(Change.POD_LEVEL_MEMORY_HIGH):
        high = _memory_high(request, limit, setup)
        files = {MEMORY_HIGH: str(high)} if high is not None else {}
    if request <= 0:
        return files
    if not setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        return files | {MEMORY_MIN: str(request)}
    return files | {_protection(qos): str(request)} if _is_tiered(setup) else files


def class_memory_qos(
    guaranteed: int, burstable: int, setup: NodeSetup
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the protection of kubepods and burstable, from the sums of requests of each class."""
    total = wrap(guaranteed + burstable)
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        if not _is_tiered(setup):
            return {MEMORY_MIN: "0"}, {MEMORY_LOW: "0"}
        return {MEMORY_MIN: str(total)}, {MEMORY_LOW: str(burstable)}
    kubepods, of_burstable = ({MEMORY_MIN: str(size)} if size > 0 else {} for size in (total, burstable))
    return kubepods, of_burstable


class HighTerms(NamedTuple):
    """The terms of memory.high, which is base + factor x (upper - base); `upper` is 0 if it is unknown."""

    base: int
    upper: int
    factor: float


def high_terms(request: int, limit: int, setup: NodeSetup) -> HighTerms:
    """Return the terms for a request and limit in bytes.

    The base is the request from 1.27 on. Without a limit the upper bound is the node's capacity minus
    reserved, of which nothing is reserved where that is unknown.
    """
    all_pods = setup.node.allocatable_memory_bytes
    if all_pods is None:
        all_pods = setup.node.memory_capacity_bytes or 0
    return HighTerms(
        request if setup.release.has(Change.MEMORY_HIGH_ABOVE_REQUEST) else 0,
        limit or all_pods,
        setup.kubelet.memory_throttling_factor or 0.0,
    )


def _memory_high(request: int, limit: int, setup: NodeSetup) -> int | None:
    """Return the throttling threshold, or None if it is not set.

    From 1.27 it is floored to a page. The order of the floating point operations is the kubelet's.
    """
    node, release = setup.node, setup.release
    _, upper, factor = high_terms(request, limit, setup)
    if setup.kubelet.memory_throttling_factor is None or upper <= 0:
        return None
    if not release.has(Change.MEMORY_HIGH_ABOVE_REQUEST):
        high = from_float(float(upper) * factor)
        return high if high > request else None
    counts_when_absent = release.has(Change.MEMORY_HIGH_NEEDS_FACTOR) and request == 0
    if request == limit and not counts_when_absent:
        return None
    middle = float(request) + (float(upper) - float(request)) * float(factor)
    page = node.page_size_bytes
    high = wrap(from_float(math.floor(middle) / float(page)) * page)
    return high if high > max(request, 0) else None


def _is_tiered(setup: NodeSetup) -> bool:
    return setup.kubelet.memory_reservation_policy is MemoryReservationPolicy.TIERED


def _protection(qos: QosClass) -> str:
    """Return the file of a class: Guaranteed memory is never reclaimed, other memory only under pressure."""
    return MEMORY_MIN if qos is QosClass.GUARANTEED else MEMORY_LOW
