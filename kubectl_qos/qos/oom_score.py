"""oom_score_adj of containers, and the kernel's badness and /proc/PID/oom_score.

Sources: pkg/kubelet/qos/policy.go and helpers.go (GetContainerOOMScoreAdjust), pkg/kubelet/types
(IsCriticalPod, IsNodeCriticalPod); Linux mm/oom_kill.c (oom_badness) and fs/proc/base.c
(proc_oom_score). Memory is in bytes unless a name says pages.
"""

from enum import Enum
from typing import Final

import msgspec

from kubectl_qos.errors import UnknownFact
from kubectl_qos.k8s.defaulting import SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import aggregate_requests, has_pod_level_requests, is_sidecar, resources_of_pod
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Reason, Rule

GUARANTEED_ADJ: Final = -997
BEST_EFFORT_ADJ: Final = 1000
SANDBOX_ADJ: Final = -998
LOWEST_BURSTABLE_ADJ: Final = 1000 + GUARANTEED_ADJ
OOM_SCORE_ADJ_MIN: Final = -1000
"""Makes a process immune, even if its whole cgroup is killed."""


def is_static(pod: Pod) -> bool:
    """Return whether the pod is from a manifest file or URL on the node (`IsStaticPod`)."""
    source = pod.annotations.config_source
    return source is not None and source != "api"


def is_mirror(pod: Pod) -> bool:
    """Return whether this is the API object of a static pod (`IsMirrorPod`)."""
    return pod.annotations.config_mirror is not None


def is_critical(pod: Pod) -> bool:
    """Return whether the pod is never evicted: static, mirror or priority at least 2e9 (`IsCriticalPod`)."""
    priority = pod.spec.priority
    return is_static(pod) or is_mirror(pod) or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY)


def is_node_critical(pod: Pod) -> bool:
    """Return whether the pod is critical by PriorityClass system-node-critical (`IsNodeCriticalPod`)."""
    return pod.spec.priority_class_name == SYSTEM_NODE_CRITICAL and is_critical(pod)


def burstable_adj(request: int, capacity: int) -> int:
    """Return a Burstable container's oom_score_adj for a request in bytes, before sidecar rule and clamps."""
    return 1000 - truncating_div(wrap(1000 * request), capacity)


def least_request(adj: int, capacity: int) -> int:
    """Return the least request in bytes for at most this oom_score_adj, which is at most 999 (Burstable)."""
    return 0 if adj >= BEST_EFFORT_ADJ - 1 else -(-(1000 - adj) * capacity // 1000)


class AdjSteps(msgspec.Struct, frozen=True):
    """An oom_score_adj with the steps to it. Memory in bytes.

    `raw` is the formula's result before the sidecar rule and the clamps, None if no formula applies.
    `sidecar_floor` is the oom_score_adj of the least protected app container, if it lowered the value.
    """

    adj: int
    rule: Rule
    request: int = 0
    pod_level_share: int = 0
    capacity: int = 0
    raw: int | None = None
    sidecar_floor: int | None = None
    clamp: Rule | None = None


class PodAdj:
    """oom_score_adj of the containers of one pod.

    `fixed` is the value of every container, None for Burstable pods, where it depends on memory requests.
    """

    __slots__ = ("_allocated", "_capacity", "_floor", "_pod", "_release", "_share", "fixed")

    def __init__(self, pod: Pod, qos: QosClass, memory_capacity: int | None, release: Release) -> None:
        self._pod = pod
        self._release = release
        self._capacity = memory_capacity
        self.fixed = _fixed_steps(pod, qos, release)
        self._share: int | None = None
        self._floor: int | None = None
        self._allocated: dict[str, int] | None = None

    def steps_for(self, container: Container) -> AdjSteps:
        """Return the value with its steps. Raises UnknownFact if the node's memory is needed but unknown."""
        if self.fixed is not None:
            return self.fixed
        capacity = self._capacity
        if not capacity:
            raise UnknownFact(
                "the node's memory capacity is not known",
                hint="without it a Burstable container's oom_score_adj lies anywhere from 3 to 999",
            )
        release = self._release
        request = self._request(container)
        share = self._pod_level_share()
        raw = burstable_adj(wrap(request + share), capacity)
        adj, floor = raw, None
        if is_sidecar(container, release) and release.has(Change.SIDECAR_OOM_SCORE):
            if self._floor is None and self._pod.containers:
                least = min(map(_memory_request, self._pod.containers))
                self._floor = burstable_adj(wrap(least + share), capacity)
            lowest = self._floor
            is_init = any(container.name == init.name for init in self._pod.init_containers)
            if lowest is not None and adj > lowest and is_init:
                adj = floor = lowest
        clamp = None
        if adj < LOWEST_BURSTABLE_ADJ:
            adj, clamp = LOWEST_BURSTABLE_ADJ, Rule.ADJ_CLAMPED_LOW
        elif adj == BEST_EFFORT_ADJ:
            adj, clamp = BEST_EFFORT_ADJ - 1, Rule.ADJ_BELOW_BEST_EFFORT
        return AdjSteps(adj, Rule.ADJ_BURSTABLE, request, share, capacity, raw, floor, clamp)

    def _request(self, container: Container) -> int:
        """Return the memory request; from 1.27 to 1.31 with in-place resize, the allocated one."""
        release = self._release
        if not release.has(Change.STATUS_RESOURCES) and release.enabled(Gate.IN_PLACE_RESIZE):
            if self._allocated is None:
                self._allocated = {
                    status.name: (status.allocated_resources or EMPTY_RESOURCES).get(MEMORY, ZERO).value()
                    for status in reversed(self._pod.status.container_statuses or ())
                }
            if container.name in self._allocated:
                return self._allocated[container.name]
        return _memory_request(container)

    def _pod_level_share(self) -> int:
        """Return each container's share of the pod-level memory request that no container claims."""
        if self._share is None:
            self._share = 0
            pod, release = self._pod, self._release
            if release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_requests(pod, release):
                memory = resources_of_pod(pod, "requests").get(MEMORY, ZERO)
                if not memory.is_zero:
                    claimed = aggregate_requests(pod, release).get(MEMORY, ZERO).value()
                    count = len(pod.containers) + len(pod.init_containers)
                    # Without containers the kubelet panics.
                    self._share = truncating_div(wrap(memory.value() - claimed), count) if count else 0
        return self._share


def _memory_request(container: Container) -> int:
    requests = container.resources.requests
    memory = requests.get(MEMORY) if requests else None
    return memory.value() if memory is not None else 0


def _fixed_steps(pod: Pod, qos: QosClass, release: Release) -> AdjSteps | None:
    """Return the value that does not depend on memory, or None for Burstable."""
    if is_node_critical(pod):
        return _NODE_CRITICAL
    if is_critical(pod) and not release.has(Change.ONLY_NODE_CRITICAL_IS_SPARED):
        return _CRITICAL
    if qos is QosClass.GUARANTEED:
        return _GUARANTEED
    if qos is QosClass.BEST_EFFORT:
        return _BEST_EFFORT
    return None


_CRITICAL: Final = AdjSteps(GUARANTEED_ADJ, Rule.ADJ_CRITICAL)
_NODE_CRITICAL: Final = AdjSteps(GUARANTEED_ADJ, Rule.ADJ_NODE_CRITICAL)
_GUARANTEED: Final = AdjSteps(GUARANTEED_ADJ, Rule.ADJ_GUARANTEED)
_BEST_EFFORT: Final = AdjSteps(BEST_EFFORT_ADJ, Rule.ADJ_BEST_EFFORT)


def restrict_adj(adj: int, runtime_adj: int | None) -> int:
    """Return the value that containerd sets with `restrict_oom_score_adj`: never below its own.

    `runtime_adj` is containerd's own oom_score_adj, None without that option (pkg/cri, restrictOOMScoreAdj).
    """
    return adj if runtime_adj is None else max(adj, runtime_adj)


def adj_reason(steps: AdjSteps, runtime_adj: int | None) -> Reason:
    """Return the steps as a Reason: the formula first, then what changed its result, the runtime last."""
    children, share = [], steps.pod_level_share
    if share:
        children.append(Reason(Rule.ADJ_POD_LEVEL_SHARE, share, {"share": share}))
    if steps.sidecar_floor is not None:
        children.append(Reason(Rule.ADJ_SIDECAR_FLOOR, steps.sidecar_floor, {"raw": steps.raw}))
    if steps.clamp is not None:
        children.append(Reason(steps.clamp, steps.adj, {"raw": steps.raw}))
    applied = restrict_adj(steps.adj, runtime_adj)
    if applied != steps.adj:
        children.append(Reason(Rule.ADJ_RESTRICTED, applied, {"raw": steps.adj}))
    inputs = dict[str, object]()
    if steps.rule is Rule.ADJ_BURSTABLE:
        inputs = {"request": steps.request, "share": share, "capacity": steps.capacity, "raw": steps.raw}
    return Reason(steps.rule, steps.adj, inputs, tuple(children))


class Kernel(Enum):
    """Formulas of kernels, oldest first."""

    MINUS_30 = "up to 3.13"
    """Processes with CAP_SYS_ADMIN: 30 less oom_score_adj."""
    MINUS_3_PERCENT = "3.14 to 4.16"
    """Processes with CAP_SYS_ADMIN: 3 % less of their own use."""
    FLOORED = "4.17 to 5.8"
    """No bonus; results below 1 become 1, as before."""
    SIGNED = "5.9 and later"
    """Negative results count, so that well protected processes differ."""


_SINCE: Final = ((5, 9, Kernel.SIGNED), (4, 17, Kernel.FLOORED), (3, 14, Kernel.MINUS_3_PERCENT))


def kernel_formula(version: str) -> Kernel:
    """Return the formula of a kernel version such as `6.1.0-13-amd64`, the newest for an unknown version.

    Some vendors backport the newest formula: then an idle process with adj 0 has an oom_score of about 666,
    with the older formulas about 0.
    """
    numbers = version.split("-", maxsplit=1)[0].split(".")
    try:
        parsed = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
    except ValueError:
        return Kernel.SIGNED
    return next((kernel for major, minor, kernel in _SINCE if parsed >= (major, minor)), Kernel.MINUS_30)


def badness(
    used_pages: int, adj: int, total_pages: int, kernel: Kernel = Kernel.SIGNED, *, admin: bool = False
) -> int:
    """Return the points by which the kernel chooses its victim, in pages (`oom_badness`).

    `used_pages` counts resident pages, swap entries and page tables; `total_pages` RAM and swap of the
    machine, or the limit of the cgroup that ran out. OOM_SCORE_ADJ_MIN is never chosen and must not be passed
    here; `admin` is CAP_SYS_ADMIN, which counts before 4.17 only.
    """
    if admin and kernel is Kernel.MINUS_30:
        adj -= 30
    if admin and kernel is Kernel.MINUS_3_PERCENT:
        used_pages -= used_pages * 3 // 100
    points = used_pages + adj * (total_pages // 1000)
    return points if kernel is Kernel.SIGNED else max(points, 1)


def most_adj(used_pages: int, most_points: int, total_pages: int, kernel: Kernel) -> int:
    """Return the highest oom_score_adj with at most `most_points`, or `NO_ADJ` if every value has more."""
    if kernel is not Kernel.SIGNED and most_points < 1:
        return NO_ADJ
    step = total_pages // 1000
    if step:
        return (most_points - used_pages) // step
    return BEST_EFFORT_ADJ if used_pages <= most_points else NO_ADJ


NO_ADJ: Final = -(1 << 62)


def proc_oom_score(points: int, total_pages: int, kernel: Kernel = Kernel.SIGNED) -> int:
    """Return the value of /proc/PID/oom_score for this badness; `total_pages` is the machine's."""
    if kernel is not Kernel.SIGNED:
        return points * 1000 // total_pages
    if points >= 0:  # nearly always; // truncates too, and faster
        return (1000 + points * 1000 // total_pages) * 2 // 3
    return truncating_div((1000 + truncating_div(points * 1000, total_pages)) * 2, 3)
