"""Why a value is what it is: a tree of named rules with their inputs, never sentences.

The same evaluation that gives a number gives its Reason, so that an explanation cannot drift from the
number. `present/words.py` turns a Reason into a sentence for people; JSON output shows it as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Rule(StrEnum):
    """Every rule that a prediction can name."""

    CLASS_STORED = "class.stored"
    CLASS_BEST_EFFORT = "class.best-effort"
    CLASS_BURSTABLE = "class.burstable"
    CLASS_GUARANTEED = "class.guaranteed"
    CLASS_POD_LEVEL = "class.pod-level"
    LACKS_LIMIT = "class.lacks-limit"
    REQUEST_DIFFERS = "class.request-differs"
    REQUEST_ZERO = "class.request-zero"

    ADJ_NODE_CRITICAL = "adj.node-critical"
    ADJ_GUARANTEED = "adj.guaranteed"
    ADJ_BEST_EFFORT = "adj.best-effort"
    ADJ_BURSTABLE = "adj.burstable"
    ADJ_POD_LEVEL_SHARE = "adj.pod-level-share"
    ADJ_SIDECAR_FLOOR = "adj.sidecar-floor"
    ADJ_CLAMPED_LOW = "adj.clamped-low"
    ADJ_RESTRICTED = "adj.restricted"
    ADJ_BELOW_BEST_EFFORT = "adj.below-best-effort"

    CPU_WEIGHT = "cpu.weight"
    CPU_QUOTA = "cpu.quota"
    CPU_UNLIMITED = "cpu.unlimited"
    CPU_EXCLUSIVE = "cpu.exclusive"
    MEMORY_LIMIT = "memory.limit"
    MEMORY_UNLIMITED = "memory.unlimited"
    MEMORY_HIGH = "memory.high"
    MEMORY_PROTECTION = "memory.protection"
    MEMORY_OOM_GROUP = "memory.oom-group"
    SWAP_SHARE = "swap.share"
    SWAP_NONE = "swap.none"
    SWAP_UNLIMITED = "swap.unlimited"
    HUGEPAGES = "hugepages"
    PIDS = "pids"


SOURCES: Final[Mapping[Rule, str]] = {
    Rule.CLASS_STORED: "pkg/apis/core/v1/helper/qos/qos.go GetPodQOS",
    Rule.CLASS_BEST_EFFORT: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.CLASS_BURSTABLE: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.CLASS_GUARANTEED: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.CLASS_POD_LEVEL: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.LACKS_LIMIT: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.REQUEST_DIFFERS: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.REQUEST_ZERO: "pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS",
    Rule.ADJ_NODE_CRITICAL: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.ADJ_GUARANTEED: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.ADJ_BEST_EFFORT: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.ADJ_BURSTABLE: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.ADJ_POD_LEVEL_SHARE: "pkg/kubelet/qos/helpers.go remainingPodMemReqPerContainer",
    Rule.ADJ_SIDECAR_FLOOR: "pkg/kubelet/qos/helpers.go minRegularContainerMemory",
    Rule.ADJ_RESTRICTED: "containerd restrictOOMScoreAdj",
    Rule.ADJ_CLAMPED_LOW: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.ADJ_BELOW_BEST_EFFORT: "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust",
    Rule.CPU_WEIGHT: "pkg/kubelet/cm/helpers_linux.go MilliCPUToShares",
    Rule.CPU_QUOTA: "pkg/kubelet/cm/helpers_linux.go MilliCPUToQuota",
    Rule.CPU_UNLIMITED: "pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod",
    Rule.CPU_EXCLUSIVE: "pkg/kubelet/cm/container_manager_linux.go PodHasExclusiveCPUs",
    Rule.MEMORY_LIMIT: "pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod",
    Rule.MEMORY_UNLIMITED: "pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod",
    Rule.MEMORY_HIGH: "kuberuntime_container_linux.go generateLinuxContainerResources",
    Rule.MEMORY_PROTECTION: "kuberuntime_container_linux.go generateLinuxContainerResources",
    Rule.MEMORY_OOM_GROUP: "kuberuntime_container_linux.go calculateLinuxResources",
    Rule.SWAP_SHARE: "kuberuntime_container_linux.go calcSwapForBurstablePods",
    Rule.SWAP_NONE: "kuberuntime_container_linux.go GetContainerSwapBehavior",
    Rule.SWAP_UNLIMITED: "kuberuntime_container_linux.go GetContainerSwapBehavior",
    Rule.HUGEPAGES: "pkg/kubelet/cm/helpers_linux.go HugePageLimits",
    Rule.PIDS: "pkg/kubelet/cm/pod_container_manager_linux.go EnsureExists",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One step of an explanation.

    `inputs` are the values that went into the rule, by the names of the formula in docs/rules.md;
    `children` the steps that this one rests on.
    """

    rule: Rule
    result: object
    inputs: Mapping[str, object] = field(default_factory=dict)
    children: tuple[Reason, ...] = ()

    @property
    def source(self) -> str:
        """The upstream file and function that holds the rule."""
        return SOURCES[self.rule]
