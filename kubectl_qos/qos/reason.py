"""Explanations as values: rules with inputs, mechanisms of death, and confidence.

The evaluation that computes a number also returns its Reason, so that both always agree. `present/` turns
reasons into sentences; JSON has them as they are.
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
    """A rule of a prediction, with its upstream file and function."""

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
        """Create a member with its upstream source."""
        rule = str.__new__(cls, value)
        rule._value_ = value
        rule.source = source
        return rule


class Reason(msgspec.Struct, frozen=True):
    """A step of an explanation."""

    rule: Rule
    result: object
    inputs: Mapping[str, object] = {}
    """Inputs of the rule, by the names of the formula in docs/rules.md."""
    children: tuple[Reason, ...] = ()
    """Steps that this one depends on."""


KILLED: Final = "killed"
_EVICTED: Final = "evicted"


class Mechanism(StrEnum):
    """What ends a container or a pod; `verb` says what happens to the victim."""

    verb: str

    CONTAINER_LIMIT = "container limit"
    """The kernel, at the container's own memory limit."""
    POD_LIMIT = "pod limit"
    """The kernel, at the limit of the pod: declared, or the sum of its containers' limits."""
    KUBEPODS_LIMIT = "kubepods limit"
    """The kernel, at the limit of all pods of the node, or of a QoS class."""
    NODE = "node"
    """The kernel, when the machine runs out of memory."""
    MEMORY_NODES = "memory nodes"
    """The kernel, when the NUMA nodes run out that a cpuset or a memory policy allows."""
    START_LIMIT = "limit at start"
    """The kernel or the runtime: the limit is too small to start the container."""
    EVICTION = "kubelet eviction", _EVICTED
    """The kubelet, under memory pressure."""
    OTHER_EVICTION = "other eviction", _EVICTED
    """The kubelet, for storage, inodes or process IDs of the node."""
    VOLUME_LIMIT = "volume limit", _EVICTED
    """The kubelet, because an emptyDir exceeded its sizeLimit."""
    STORAGE_LIMIT = "storage limit", _EVICTED
    """The kubelet, because a container or pod exceeded its ephemeral-storage limit."""
    UNKNOWN_EVICTION = "unknown eviction", _EVICTED
    """The kubelet, for a reason that the pod's status does not name."""
    REJECTION = "not admitted"
    """The kubelet did not start the pod: the node was under pressure, or had no room."""
    PREEMPTION = "kubelet preemption", "preempted"
    """The kubelet, to admit a critical pod."""
    SHUTDOWN = "node shutdown"
    """The kubelet, when the node shuts down: SIGKILL after the grace period, not for memory."""
    SIGKILL = "other SIGKILL"
    """Another sender of SIGKILL: a kubelet that stops a container, a probe, or a person."""
    CGROUP_LIMIT = "other limit"
    """The kernel, at the limit of a cgroup that is not a pod's."""
    MEMORY_LIMIT = "memory limit"
    """The kernel, at a limit that the log does not name."""
    KERNEL = "OOM killer"
    """The kernel; the log does not say whether at a limit or on a full node."""
    PANIC = "kernel panic"
    """A kernel panic: the machine ran out of memory, and nothing was killed."""
    SYSRQ = "SysRq"
    """The kernel, because a person called the OOM killer: memory had not run out."""
    TALOS = "Talos"
    """The OOM controller of Talos, before the kernel."""
    SYSTEMD_OOMD = "systemd-oomd"
    EARLYOOM = "earlyoom"
    NOHANG = "nohang"
    OOMD = "oomd"
    UNKNOWN = "unknown"

    def __new__(cls, value: str, verb: str = KILLED) -> Self:
        """Create a member with the verb for its victims."""
        mechanism = str.__new__(cls, value)
        mechanism._value_ = value
        mechanism.verb = verb
        return mechanism

    @property
    def is_eviction(self) -> bool:
        """Whether the kubelet evicted the pod, for any resource."""
        return self.verb == _EVICTED


class Confidence(StrEnum):
    """Confidence of an explanation, highest first."""

    CERTAIN = "certain"
    """Stated by kernel, runtime or kubelet, or the only explanation of the values."""
    LIKELY = "likely"
    """All evidence fits, and nothing contradicts it."""
    POSSIBLE = "possible"
    """One of several explanations that fit."""
