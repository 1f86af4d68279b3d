"""Explanations as values: rules with their inputs, mechanisms of death, and how sure they are.

The same evaluation that gives a number gives its Reason, so that an explanation cannot drift from the number.
`present/` turns them into sentences; JSON output has them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

import msgspec

_QOS: Final = "pkg/apis/core/v1/helper/qos/qos.go"
_POLICY: Final = "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust"
_HELPERS: Final = "pkg/kubelet/qos/helpers.go"
_CM: Final = "pkg/kubelet/cm"
_RUNTIME: Final = "kuberuntime_container_linux.go"


class Rule(StrEnum):
    """Every rule that a prediction can name, with the upstream file and function that holds it."""

    source: str

    CLASS_STORED = "class.stored", f"{_QOS} GetPodQOS"
    CLASS_BEST_EFFORT = "class.best-effort", f"{_QOS} ComputePodQOS"
    CLASS_BURSTABLE = "class.burstable", f"{_QOS} ComputePodQOS"
    CLASS_GUARANTEED = "class.guaranteed", f"{_QOS} ComputePodQOS"
    CLASS_POD_LEVEL = "class.pod-level", f"{_QOS} ComputePodQOS"
    LACKS_LIMIT = "class.lacks-limit", f"{_QOS} ComputePodQOS"
    REQUEST_DIFFERS = "class.request-differs", f"{_QOS} ComputePodQOS"
    REQUEST_ZERO = "class.request-zero", f"{_QOS} ComputePodQOS"

    ADJ_NODE_CRITICAL = "adj.node-critical", _POLICY
    ADJ_GUARANTEED = "adj.guaranteed", _POLICY
    ADJ_BEST_EFFORT = "adj.best-effort", _POLICY
    ADJ_BURSTABLE = "adj.burstable", _POLICY
    ADJ_POD_LEVEL_SHARE = "adj.pod-level-share", f"{_HELPERS} remainingPodMemReqPerContainer"
    ADJ_SIDECAR_FLOOR = "adj.sidecar-floor", f"{_HELPERS} minRegularContainerMemory"
    ADJ_CLAMPED_LOW = "adj.clamped-low", _POLICY
    ADJ_RESTRICTED = "adj.restricted", "containerd restrictOOMScoreAdj"
    ADJ_BELOW_BEST_EFFORT = "adj.below-best-effort", _POLICY

    CPU_WEIGHT = "cpu.weight", f"{_CM}/helpers_linux.go MilliCPUToShares"
    CPU_QUOTA = "cpu.quota", f"{_CM}/helpers_linux.go MilliCPUToQuota"
    CPU_PERIOD = "cpu.period", f"{_CM}/helpers_linux.go ResourceConfigForPod"
    CPU_UNLIMITED = "cpu.unlimited", f"{_CM}/helpers_linux.go ResourceConfigForPod"
    CPU_EXCLUSIVE = "cpu.exclusive", f"{_CM}/container_manager_linux.go PodHasExclusiveCPUs"
    MEMORY_LIMIT = "memory.limit", f"{_CM}/helpers_linux.go ResourceConfigForPod"
    MEMORY_UNLIMITED = "memory.unlimited", f"{_CM}/helpers_linux.go ResourceConfigForPod"
    MEMORY_HIGH = "memory.high", f"{_RUNTIME} generateLinuxContainerResources"
    MEMORY_PROTECTION = "memory.protection", f"{_RUNTIME} generateLinuxContainerResources"
    MEMORY_OOM_GROUP = "memory.oom-group", f"{_RUNTIME} calculateLinuxResources"
    SWAP_SHARE = "swap.share", f"{_RUNTIME} calcSwapForBurstablePods"
    SWAP_OF_SCOPE = "swap.scope", "crun src/libcrun/cgroup-systemd.c get_memory_swap_max"
    SWAP_NONE = "swap.none", f"{_RUNTIME} GetContainerSwapBehavior"
    SWAP_UNLIMITED = "swap.unlimited", f"{_RUNTIME} GetContainerSwapBehavior"
    HUGEPAGES = "hugepages", f"{_CM}/helpers_linux.go HugePageLimits"
    PIDS = "pids", f"{_CM}/pod_container_manager_linux.go EnsureExists"

    def __new__(cls, value: str, source: str) -> Self:
        """A rule with its source beside its name."""
        rule = str.__new__(cls, value)
        rule._value_ = value
        rule.source = source
        return rule


class Reason(msgspec.Struct, frozen=True):
    """One step of an explanation.

    `inputs` are the values that went into the rule, by the names of the formula in docs/rules.md; `children`
    the steps that this one rests on.
    """

    rule: Rule
    result: object
    inputs: Mapping[str, object] = {}
    children: tuple[Reason, ...] = ()


KILLED: Final = "killed"
_EVICTED: Final = "evicted"


class Mechanism(StrEnum):
    """What ends a container or a pod; `verb` is what happens to its victims."""

    verb: str

    CONTAINER_LIMIT = "container limit"
    """The kernel, at the container's own memory limit."""
    POD_LIMIT = "pod limit"
    """The kernel, at the limit of its pod: given, or the sum of its containers'."""
    KUBEPODS_LIMIT = "kubepods limit"
    """The kernel, at the limit of all pods of the node, or of those of a class."""
    NODE = "node"
    """The kernel, as the machine runs out of memory."""
    MEMORY_NODES = "memory nodes"
    """The kernel, as those NUMA nodes run out that a cpuset or a memory policy allows."""
    START_LIMIT = "limit at start"
    """The kernel or the runtime, as a container is started: its limit is too small for that."""
    EVICTION = "kubelet eviction", _EVICTED
    """The kubelet, under memory pressure."""
    OTHER_EVICTION = "other eviction", _EVICTED
    """The kubelet, for storage, inodes or process IDs of the node."""
    VOLUME_LIMIT = "volume limit", _EVICTED
    """The kubelet, as an emptyDir held more than its sizeLimit."""
    STORAGE_LIMIT = "storage limit", _EVICTED
    """The kubelet, as a container wrote more than its ephemeral-storage limit, or a pod more than the sum."""
    UNKNOWN_EVICTION = "unknown eviction", _EVICTED
    """The kubelet, for what the pod's status does not name."""
    REJECTION = "not admitted"
    """The kubelet did not start it: the node was under pressure, or had no room."""
    PREEMPTION = "kubelet preemption", "preempted"
    """The kubelet, to admit a critical pod."""
    SHUTDOWN = "node shutdown"
    """The kubelet, as its node shuts down: SIGKILL after the grace period, and not for memory."""
    SIGKILL = "other SIGKILL"
    """Another sender of SIGKILL: a kubelet that stops a container, a probe, a person."""
    CGROUP_LIMIT = "other limit"
    """The kernel, at the limit of a cgroup that is no pod's."""
    MEMORY_LIMIT = "memory limit"
    """The kernel, at a limit that its log does not name."""
    KERNEL = "OOM killer"
    """The kernel, whose log does not say whether at a limit or as the machine ran out."""
    PANIC = "kernel panic"
    """The whole machine: its kernel panicked as memory ran out, and killed nothing."""
    SYSRQ = "SysRq"
    """The kernel, as a person called its OOM killer: no memory ran out."""
    TALOS = "Talos"
    """The OOM controller of Talos, before the kernel."""
    SYSTEMD_OOMD = "systemd-oomd"
    EARLYOOM = "earlyoom"
    UNKNOWN = "unknown"

    def __new__(cls, value: str, verb: str = KILLED) -> Self:
        """A mechanism with what it does beside its name."""
        mechanism = str.__new__(cls, value)
        mechanism._value_ = value
        mechanism.verb = verb
        return mechanism

    @property
    def is_eviction(self) -> bool:
        """Whether the kubelet evicted the pod, for whatever it was short of."""
        return self.verb == _EVICTED


class Confidence(StrEnum):
    """How sure an explanation is, the surest first."""

    CERTAIN = "certain"
    """The kernel, the runtime or the kubelet says so of this very one, or the values leave no other."""
    LIKELY = "likely"
    """The known facts fit, and none that could have been seen speaks for another."""
    POSSIBLE = "possible"
    """It fits, and so does another."""
