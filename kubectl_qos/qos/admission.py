"""What a kubelet makes of a pod that is bound to its node: refused, admitted, or admitted at others' cost.

Sources: pkg/kubelet/lifecycle (features_linux.go), pkg/kubelet/eviction/eviction_manager.go (Admit),
pkg/kubelet/preemption/preemption.go, pkg/kubelet/types/pod_update.go (Preemptable). Preemption is the one
place where the kubelet looks at the QoS class to choose victims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import eviction_request, has_pod_level_resources
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass, qos_class

PODS: Final = "pods"
"""The resource of which every pod needs one."""

_CLASSES: Final = (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)


class NotAdmitted(NamedTuple):
    """The reason and message with which the pod ends up Failed."""

    reason: str
    message: str


def not_admitted(
    pod: Pod,
    release: Release,
    pressure: Iterable[str] = (),
    *,
    tolerates_memory_pressure: bool = False,
) -> NotAdmitted | None:
    """Why the kubelet refuses to start the pod, None if it does not.

    Args:
        pod: a defaulted pod.
        release: the kubelet's, with its gates.
        pressure: the node's conditions in force, such as MemoryPressure.
        tolerates_memory_pressure: whether the pod tolerates node.kubernetes.io/memory-pressure:NoSchedule.
    """
    unsupported = not release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_resources(pod, release)
    if unsupported and release.has(Change.POD_LEVEL_NEEDS_SUPPORT):
        return NotAdmitted("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")
    conditions = list(pressure)
    if not conditions or is_critical(pod):
        return None
    if conditions == ["MemoryPressure"] and (
        tolerates_memory_pressure or qos_class(pod, release) is not QosClass.BEST_EFFORT
    ):
        return None
    return NotAdmitted("Evicted", f"The node had condition: [{' '.join(conditions)}]. ")


def may_preempt(preemptor: Pod, other: Pod) -> bool:
    """`Preemptable`: critical before not critical, else the higher priority."""
    if is_critical(preemptor) and not is_critical(other):
        return True
    mine, its = preemptor.spec.priority, other.spec.priority
    return mine is not None and its is not None and mine > its


def preempted_for(
    critical: Pod, running: Sequence[Pod], missing: Mapping[str, int], release: Release
) -> list[Pod] | None:
    """The pods that the kubelet kills so that a critical pod fits (`getPodsToPreempt`).

    Args:
        critical: the pod to be admitted.
        running: the pods of the node, in the kubelet's order, which decides between equals.
        missing: what is missing: CPU in millicores, memory in bytes, `pods` in pods.
        release: the kubelet's.

    Returns:
        BestEffort pods first, then Burstable, then Guaranteed, each class only as far as the classes before
        it do not suffice. None if even all together do not.
    """
    by_class: dict[QosClass, list[Pod]] = {qos: [] for qos in _CLASSES}
    for pod in running:
        if may_preempt(critical, pod):
            by_class[qos_class(pod, release)].append(pod)
    if _less(missing, [pod for pods in by_class.values() for pod in pods], release):
        return None
    chosen: dict[QosClass, list[Pod]] = {}
    for qos in reversed(_CLASSES):
        cheaper = [pod for other in _CLASSES[: _CLASSES.index(qos)] for pod in by_class[other]]
        decided = [pod for pods in chosen.values() for pod in pods]
        chosen[qos] = _nearest(by_class[qos], _less(missing, cheaper + decided, release), release)
    return [pod for qos in _CLASSES for pod in chosen[qos]]


def _nearest(pods: Sequence[Pod], missing: Mapping[str, int], release: Release) -> list[Pod]:
    """`getPodsToPreemptByDistance`: each round the pod that leaves the least, of equals the smaller."""
    left, chosen = list(pods), []
    while missing:
        best = 0
        for index, pod in enumerate(left):
            distance, shortest = _distance(pod, missing, release), _distance(left[best], missing, release)
            if distance < shortest or (distance == shortest and _is_smaller(pod, left[best], release)):
                best = index
        missing = _less(missing, [left[best]], release)
        chosen.append(left[best])
        left[best] = left[-1]
        left.pop()
    return chosen


def _request(pod: Pod, resource: str, release: Release) -> int:
    if resource == PODS:
        return 1
    found = eviction_request(pod, release, resource)
    return found.milli_value() if resource == CPU else found.value()


def _less(missing: Mapping[str, int], pods: Iterable[Pod], release: Release) -> dict[str, int]:
    """What is still missing once those pods are gone."""
    gone = list(pods)
    left = {
        name: amount - sum(_request(pod, name, release) for pod in gone) for name, amount in missing.items()
    }
    return {name: amount for name, amount in left.items() if amount > 0}


def _distance(pod: Pod, missing: Mapping[str, int], release: Release) -> float:
    shares = [max(amount - _request(pod, name, release), 0) / amount for name, amount in missing.items()]
    return sum(share**2 for share in shares)


def _is_smaller(pod: Pod, other: Pod, release: Release) -> bool:
    """`smallerResourceRequest`: by memory, then by CPU; an equal pod counts as smaller."""
    return [_request(pod, name, release) for name in (MEMORY, CPU)] <= [
        _request(other, name, release) for name in (MEMORY, CPU)
    ]
