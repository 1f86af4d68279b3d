"""MemoryQoS (KEP-2570): memory.high, memory.min and memory.low, cgroup v2 only.

Sources: kuberuntime_container_linux.go (generateLinuxContainerResources), cm/helpers_linux.go
(ResourceConfigForPod), cm/qos_container_manager_linux.go (setMemoryQoS). Bytes throughout; the results are
the texts that are written, by file name.
"""

from __future__ import annotations

import math
from typing import Final

from kubectl_qos.k8s.int64 import from_float, wrap
from kubectl_qos.k8s.kubelet import MemoryReservationPolicy, NodeSetup
from kubectl_qos.k8s.releases import Change, Gate
from kubectl_qos.qos.qos_class import QosClass

MEMORY_MIN: Final = "memory.min"
MEMORY_LOW: Final = "memory.low"
MEMORY_HIGH: Final = "memory.high"


def is_enforced(setup: NodeSetup) -> bool:
    """Whether the gate is on and the node can: only cgroup v2 has these files."""
    return setup.node.cgroup_version != 1 and setup.release.enabled(Gate.MEMORY_QOS)


def container_files(qos: QosClass, request: int, limit: int, setup: NodeSetup) -> dict[str, str]:
    """What MemoryQoS asks for a container; empty unless `is_enforced`.

    `request` and `limit` are the container's own, in bytes, 0 where absent.
    """
    files: dict[str, str] = {}
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        if request != 0 and _is_tiered(setup):
            files[_protection(qos)] = str(request)
        else:
            files[MEMORY_MIN] = "0"
            files[MEMORY_LOW] = "0"
    elif request != 0:
        files[MEMORY_MIN] = str(request)
    high = memory_high(request, limit, setup)
    if high is not None:
        files[MEMORY_HIGH] = str(high)
    return files


def memory_high(request: int, limit: int, setup: NodeSetup) -> int | None:
    """The throttling threshold, or None where it is not set.

    1.22 to 1.26: limit x factor. From 1.27: request + factor x (limit - request), floored to a page. A
    container without a limit uses the node's capacity minus reserved. The order of the floating point
    operations is the kubelet's.
    """
    node, release = setup.node, setup.release
    factor = setup.kubelet.memory_throttling_factor
    if factor is None:
        return None
    upper = limit or node.allocatable_memory_bytes or 0
    if limit == 0 and upper <= 0:
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


def pod_files(qos: QosClass, request: int, setup: NodeSetup) -> dict[str, str]:
    """The pod cgroup's protection, from its total memory request in bytes, including overhead."""
    if request <= 0:
        return {}
    if not setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        return {MEMORY_MIN: str(request)}
    return {_protection(qos): str(request)} if _is_tiered(setup) else {}


def class_files(guaranteed: int, burstable: int, setup: NodeSetup) -> tuple[dict[str, str], dict[str, str]]:
    """Protection of kubepods and of the burstable cgroup, from the sums of requests of each class."""
    total = wrap(guaranteed + burstable)
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        if not _is_tiered(setup):
            return {MEMORY_MIN: "0"}, {MEMORY_LOW: "0"}
        return {MEMORY_MIN: str(total)}, {MEMORY_LOW: str(burstable)}
    return (
        {MEMORY_MIN: str(total)} if total > 0 else {},
        {MEMORY_MIN: str(burstable)} if burstable > 0 else {},
    )


def _is_tiered(setup: NodeSetup) -> bool:
    return setup.kubelet.memory_reservation_policy is MemoryReservationPolicy.TIERED


def _protection(qos: QosClass) -> str:
    """Guaranteed memory is never reclaimed, the other classes' only under pressure."""
    return MEMORY_MIN if qos is QosClass.GUARANTEED else MEMORY_LOW
