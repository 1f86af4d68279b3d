"""Explanations as values: rules with inputs, and confidence.

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

    ADJ_CRITICAL = "adj.critical", _POLICY
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


class Confidence(StrEnum):
    """Confidence of an explanation, highest first."""

    CERTAIN = "certain"
    """Stated by kernel, runtime or kubelet, or the only explanation of the values."""
    LIKELY = "likely"
    """All evidence fits, and nothing contradicts it."""
    POSSIBLE = "possible"
    """One of several explanations that fit."""
