"""How much swap a container may use.

Source: kuberuntime_container_linux.go (configureContainerSwapResources, GetContainerSwapBehavior,
calcSwapForBurstablePods). Bytes throughout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubectl_qos.k8s.int64 import from_float
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.objects import MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Change, Gate
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass

NO_SWAP: Final = "NoSwap"
LIMITED_SWAP: Final = "LimitedSwap"
UNLIMITED_SWAP: Final = "UnlimitedSwap"
MEMORY_SWAP_MAX: Final = "memory.swap.max"


class Swap(NamedTuple):
    """What is asked of the runtime: `swap_max` for cgroup v2, `memory_and_swap` as CRI's total.

    In bytes; None and 0 are not set, "max" and -1 unlimited.
    """

    swap_max: str | None = None
    memory_and_swap: int = 0


def container_swap(
    pod: Pod,
    container: Container,
    qos: QosClass,
    memory_limit: int,
    setup: NodeSetup,
) -> Swap:
    """The swap settings of one container; `memory_limit` is the container's, in bytes, 0 if it has none."""
    node, release = setup.node, setup.release
    if not release.has(Change.SWAP_BY_UNIFIED):
        if not release.enabled(Gate.NODE_SWAP):
            return Swap()
        unlimited = setup.kubelet.memory_swap_behavior == UNLIMITED_SWAP
        return Swap(memory_and_swap=-1 if unlimited else memory_limit)
    if not node.swap_controller_available:
        return Swap()
    behavior = _behavior(pod, container, qos, setup)
    if behavior == UNLIMITED_SWAP:
        return Swap("max")
    if node.cgroup_version == 1:
        return Swap(memory_and_swap=memory_limit)
    if behavior == LIMITED_SWAP:
        request = container.requests.get(MEMORY, ZERO).value()
        return Swap(str(burstable_swap(request, node)))
    return Swap("0")


def _behavior(pod: Pod, container: Container, qos: QosClass, setup: NodeSetup) -> str:
    """`GetContainerSwapBehavior`; 1.28 and 1.29 took anything but LimitedSwap as unlimited."""
    release = setup.release
    v1 = setup.node.cgroup_version == 1
    behavior = setup.kubelet.memory_swap_behavior
    if not release.enabled(Gate.NODE_SWAP):
        return NO_SWAP
    if not release.has(Change.NO_UNLIMITED_SWAP) and behavior != LIMITED_SWAP:
        return NO_SWAP if v1 else UNLIMITED_SWAP
    if behavior != LIMITED_SWAP or v1:
        return NO_SWAP
    if release.has(Change.CRITICAL_PODS_DO_NOT_SWAP) and is_critical(pod):
        return NO_SWAP
    request = container.requests.get(MEMORY, ZERO)
    limit = container.limits.get(MEMORY, ZERO)
    if qos is not QosClass.BURSTABLE or request == limit:
        return NO_SWAP
    return LIMITED_SWAP


def burstable_swap(request: int, node: Node) -> int:
    """The container's share of swap: request / capacity of it, in double precision, cut to a byte.

    Zero where the request exceeds the machine (the kubelet logs an error and disallows swap).
    """
    capacity = node.memory_capacity_bytes or 0
    if capacity <= 0 or request > capacity:
        return 0
    return from_float(request / capacity * float(node.swap_capacity_bytes))
