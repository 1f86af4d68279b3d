"""Kubernetes minor releases and OCI runtime versions: what changed when, and which feature gates were on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError

OLDEST_MINOR: Final = 20
NEWEST_MINOR: Final = 37
SUPPORTED_MINORS: Final = range(25, NEWEST_MINOR + 1)


class Change(StrEnum):
    """A named difference between releases that alters a prediction."""

    ONLY_NODE_CRITICAL_IS_SPARED = "only system-node-critical pods get the lowest oom_score_adj"
    INIT_CONTAINERS_DECLARE_LIMITS = "init containers count when a pod's limits are declared"
    CONTAINER_SHARES_CLAMPED = "a container's cpu.shares are clamped to 262144"
    MISSING_CPU_REQUEST_TAKES_LIMIT = "only a missing, not a zero, CPU request takes the limit"
    HUGEPAGES_FROM_POD_REQUESTS = "pod hugepage limits come from the pod's total requests"
    MEMORY_HIGH_ABOVE_REQUEST = "memory.high lies between request and limit"
    SIDECARS = "restartable init containers are added to the pod's totals"
    CUMULATIVE_DECLARED_LIMITS = "init containers declare limits with their preceding sidecars"
    MEMORY_OOM_GROUP = "memory.oom.group is set on containers"
    SWAP_BY_UNIFIED = "swap is limited through memory.swap.max"
    STORED_QOS_CLASS = "status.qosClass is trusted when set"
    NO_UNLIMITED_SWAP = "UnlimitedSwap is gone; NoSwap is the default"
    CRITICAL_PODS_DO_NOT_SWAP = "critical pods get no swap"
    SINGLE_PROCESS_OOM_KILL = "singleProcessOOMKill can turn memory.oom.group off"
    STATUS_RESOURCES = "pod totals may use actual resources instead of allocated ones"
    SIDECAR_OOM_SCORE = "a sidecar is no easier to kill than the least protected container"
    POD_LEVEL_LIMIT_FALLBACK = "a container without a limit runs under the pod-level limit"
    POD_LEVEL_HUGEPAGES = "hugepages may be set at pod level"
    ALLOCATED_STATUS = "pod totals take the largest of spec, actual and allocated"
    POD_LEVEL_HUGEPAGE_LIMITS = "containers inherit the pod-level hugepage limit"
    EVICTION_COUNTS_POD_REQUESTS = "eviction compares usage with the pod's total requests"
    MEMORY_RESERVATION_POLICY = "memory.min and memory.low follow memoryReservationPolicy"
    MEMORY_HIGH_NEEDS_FACTOR = "memory.high is set only with a configured throttling factor"
    POD_LEVEL_NEEDS_A_KEY = "an empty spec.resources no longer decides the class"
    POD_LEVEL_DEFAULTS_IN_STRATEGY = "pod-level limits default from the containers' limits"
    RESERVED_COMPRESSIBLE = "reserved cgroups can be enforced for CPU only"
    KUBEPODS_CPUSET = "kubepods gets every CPU under CPU manager policy none"
    RSVD_HUGEPAGES = "hugetlb reservations are limited too"
    PIDS_LIMIT_OPTIONAL = "an unset pids limit and zero are told apart"
    QUADRATIC_CPU_WEIGHT = "the kubelet's cgroup library converts shares by the quadratic curve"
    RESIZE_SUBRESOURCE = "resources change in place through the resize subresource"
    POD_LEVEL_NEEDS_SUPPORT = "a kubelet with pod-level resources off refuses pods that have them"
    REFUSAL_NAMES_LIMIT = "a request above its limit is refused with the limit's value"
    REFUSAL_QUOTES_NAMES = "an unsupported value is quoted in its refusal"
    POD_REQUEST_MAY_BE_MISSING = "a missing pod-level request is no request of zero"
    ENFORCEMENT_WITHOUT_CGROUPS = "without cgroups per QoS each enforcement is refused by itself"
    RESIZE_OF_POD_LEVEL = "pods with pod-level resources may be resized, if the gate is on"
    INIT_RESIZE_NAMES_PATH = "a refused resize of an init container names its place"
    RESIZE_CHECKED_AGAINST_NODE = "a server refuses a resize beyond the node's allocatable"
    RESIZE_NEEDS_DECLARED_FEATURES = "a server refuses a resize that the node does not say it supports"
    RESIZE_BEYOND_NODE_IS_INFEASIBLE = "a resize beyond the whole node is Infeasible, not Deferred"
    MEMORY_LIMIT_ONLY_GROWS = "a memory limit does not shrink or appear without a restart"
    CGROUP_V1_IS_REFUSED = "a kubelet starts on cgroup v1 only with failCgroupV1 false"
    SYSTEMD_QUOTA_IS_WRITTEN = "the systemd driver writes a quota rounded to whole percents"


class _ChangeSpan(NamedTuple):
    """Since which minor, and up to which; `patches` names older minors that have it from a patch on."""

    since: int
    source: str
    patches: Mapping[int, int] = {}
    last: int = NEWEST_MINOR

    def holds(self, minor: int, patch: int | None) -> bool:
        if minor in self.patches:
            return patch is None or patch >= self.patches[minor]
        return self.since <= minor <= self.last


_CHANGES: Final[Mapping[Change, _ChangeSpan]] = {
    Change.ONLY_NODE_CRITICAL_IS_SPARED: _ChangeSpan(22, "pkg/kubelet/qos/policy.go (PR 99729)"),
    Change.INIT_CONTAINERS_DECLARE_LIMITS: _ChangeSpan(23, "pkg/kubelet/cm/helpers_linux.go"),
    Change.CONTAINER_SHARES_CLAMPED: _ChangeSpan(24, "pkg/kubelet/kuberuntime/helpers_linux.go"),
    Change.MISSING_CPU_REQUEST_TAKES_LIMIT: _ChangeSpan(26, "kuberuntime_container_linux.go"),
    Change.HUGEPAGES_FROM_POD_REQUESTS: _ChangeSpan(27, "pkg/kubelet/cm/helpers_linux.go"),
    Change.MEMORY_HIGH_ABOVE_REQUEST: _ChangeSpan(27, "kuberuntime_container_linux.go"),
    Change.SIDECARS: _ChangeSpan(28, "pkg/api/v1/resource/helpers.go"),
    Change.CUMULATIVE_DECLARED_LIMITS: _ChangeSpan(28, "pkg/api/v1/resource/helpers.go"),
    Change.MEMORY_OOM_GROUP: _ChangeSpan(28, "kuberuntime_container_linux.go"),
    Change.SWAP_BY_UNIFIED: _ChangeSpan(28, "kuberuntime_container_linux.go"),
    Change.STORED_QOS_CLASS: _ChangeSpan(29, "pkg/apis/core/v1/helper/qos/qos.go"),
    Change.NO_UNLIMITED_SWAP: _ChangeSpan(30, "kuberuntime_container_linux.go"),
    Change.CRITICAL_PODS_DO_NOT_SWAP: _ChangeSpan(31, "kuberuntime_container_linux.go"),
    Change.SINGLE_PROCESS_OOM_KILL: _ChangeSpan(32, "kuberuntime_container_linux.go"),
    Change.STATUS_RESOURCES: _ChangeSpan(32, "component-helpers/resource/helpers.go"),
    Change.SIDECAR_OOM_SCORE: _ChangeSpan(32, "pkg/kubelet/qos/policy.go"),
    Change.POD_LEVEL_LIMIT_FALLBACK: _ChangeSpan(32, "kuberuntime_container_linux.go"),
    Change.POD_LEVEL_HUGEPAGES: _ChangeSpan(33, "component-helpers/resource/helpers.go"),
    Change.ALLOCATED_STATUS: _ChangeSpan(33, "component-helpers/resource/helpers.go"),
    Change.POD_LEVEL_HUGEPAGE_LIMITS: _ChangeSpan(34, "kuberuntime_container_linux.go"),
    Change.EVICTION_COUNTS_POD_REQUESTS: _ChangeSpan(34, "pkg/api/v1/resource/helpers.go"),
    Change.MEMORY_RESERVATION_POLICY: _ChangeSpan(36, "kuberuntime_container_linux.go"),
    Change.MEMORY_HIGH_NEEDS_FACTOR: _ChangeSpan(37, "pkg/kubelet/apis/config/v1beta1/defaults.go"),
    Change.POD_LEVEL_NEEDS_A_KEY: _ChangeSpan(37, "pkg/apis/core/v1/helper/qos/qos.go (PR 137150)"),
    Change.POD_LEVEL_DEFAULTS_IN_STRATEGY: _ChangeSpan(37, "pkg/registry/core/pod (PR 140514)"),
    Change.RESERVED_COMPRESSIBLE: _ChangeSpan(32, "node_container_manager_linux.go"),
    Change.KUBEPODS_CPUSET: _ChangeSpan(28, "node_container_manager_linux.go"),
    Change.RSVD_HUGEPAGES: _ChangeSpan(29, "runc/libcontainer/cgroups/fs2/hugetlb.go"),
    Change.PIDS_LIMIT_OPTIONAL: _ChangeSpan(36, "opencontainers/cgroups/fs2/pids.go"),
    Change.QUADRATIC_CPU_WEIGHT: _ChangeSpan(33, "opencontainers/cgroups/utils.go"),
    Change.RESIZE_SUBRESOURCE: _ChangeSpan(32, "pkg/registry/core/pod/storage/storage.go"),
    Change.POD_LEVEL_NEEDS_SUPPORT: _ChangeSpan(34, "pkg/kubelet/lifecycle/features_linux.go"),
    Change.REFUSAL_NAMES_LIMIT: _ChangeSpan(27, "pkg/apis/core/validation/validation.go"),
    Change.REFUSAL_QUOTES_NAMES: _ChangeSpan(34, "apimachinery/pkg/util/validation/field/errors.go"),
    Change.POD_REQUEST_MAY_BE_MISSING: _ChangeSpan(34, "pkg/apis/core/validation/validation.go"),
    Change.ENFORCEMENT_WITHOUT_CGROUPS: _ChangeSpan(31, "pkg/kubelet/apis/config/validation/validation.go"),
    Change.RESIZE_OF_POD_LEVEL: _ChangeSpan(35, "pkg/apis/core/validation/validation.go"),
    Change.INIT_RESIZE_NAMES_PATH: _ChangeSpan(36, "pkg/apis/core/validation/validation.go"),
    Change.RESIZE_CHECKED_AGAINST_NODE: _ChangeSpan(36, "plugin/pkg/admission/podresize/admission.go"),
    Change.RESIZE_NEEDS_DECLARED_FEATURES: _ChangeSpan(
        36, "plugin/pkg/admission/nodedeclaredfeatures/admission.go"
    ),
    Change.RESIZE_BEYOND_NODE_IS_INFEASIBLE: _ChangeSpan(33, "pkg/kubelet/allocation", last=35),
    Change.MEMORY_LIMIT_ONLY_GROWS: _ChangeSpan(33, "pkg/apis/core/validation/validation.go", last=33),
    Change.CGROUP_V1_IS_REFUSED: _ChangeSpan(
        35, "pkg/kubelet/apis/config/v1beta1/defaults.go (failCgroupV1)"
    ),
    Change.SYSTEMD_QUOTA_IS_WRITTEN: _ChangeSpan(
        35, "opencontainers/cgroups systemd/common.go, v0.0.2 and later", {33: 11, 34: 7}
    ),
}


class Gate(StrEnum):
    """The feature gates that change a prediction."""

    POD_LEVEL_RESOURCES = "PodLevelResources"
    IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
    IN_PLACE_RESIZE_ALLOCATED_STATUS = "InPlacePodVerticalScalingAllocatedStatus"
    IN_PLACE_RESIZE_EXCLUSIVE_CPUS = "InPlacePodVerticalScalingExclusiveCPUs"
    IN_PLACE_RESIZE_INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"
    IN_PLACE_RESIZE_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
    POD_LEVEL_RESOURCE_MANAGERS = "PodLevelResourceManagers"
    SIDECAR_CONTAINERS = "SidecarContainers"
    MEMORY_QOS = "MemoryQoS"
    NODE_SWAP = "NodeSwap"
    NO_QUOTA_WITH_EXCLUSIVE_CPUS = "DisableCPUQuotaWithExclusiveCPUs"
    CUSTOM_CFS_QUOTA_PERIOD = "CustomCPUCFSQuotaPeriod"
    QOS_RESERVED = "QOSReserved"
    DRA_NODE_ALLOCATABLE = "DRANodeAllocatableResources"


class _GateStage(NamedTuple):
    since: int
    default: bool
    locked: bool = False


_GATES: Final[Mapping[Gate, tuple[_GateStage, ...]]] = {
    Gate.POD_LEVEL_RESOURCES: (_GateStage(32, False), _GateStage(34, True)),
    Gate.IN_PLACE_RESIZE: (_GateStage(27, False), _GateStage(33, True), _GateStage(35, True, locked=True)),
    Gate.IN_PLACE_RESIZE_ALLOCATED_STATUS: (_GateStage(32, False),),
    Gate.IN_PLACE_RESIZE_EXCLUSIVE_CPUS: (_GateStage(32, False),),
    Gate.IN_PLACE_RESIZE_INIT_CONTAINERS: (_GateStage(36, True), _GateStage(37, True, locked=True)),
    Gate.IN_PLACE_RESIZE_POD_LEVEL: (_GateStage(35, False), _GateStage(36, True)),
    Gate.POD_LEVEL_RESOURCE_MANAGERS: (_GateStage(36, False),),
    Gate.SIDECAR_CONTAINERS: (_GateStage(28, False), _GateStage(29, True), _GateStage(33, True, locked=True)),
    Gate.MEMORY_QOS: (_GateStage(22, False), _GateStage(37, True)),
    Gate.NODE_SWAP: (_GateStage(22, False), _GateStage(30, True), _GateStage(34, True, locked=True)),
    Gate.NO_QUOTA_WITH_EXCLUSIVE_CPUS: (_GateStage(33, True),),
    Gate.CUSTOM_CFS_QUOTA_PERIOD: (_GateStage(12, False), _GateStage(36, True)),
    Gate.QOS_RESERVED: (_GateStage(11, False),),
    Gate.DRA_NODE_ALLOCATABLE: (_GateStage(36, False),),
}
_LAST_MINOR: Final[Mapping[Gate, int]] = {Gate.IN_PLACE_RESIZE_ALLOCATED_STATUS: 35}
_GATE_OF_NAME: Final = {gate.value: gate for gate in Gate}

_VERSION = re.compile(r"v?1\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?(?:[-+.].*)?\+?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """One Kubernetes minor release together with the feature gates in force.

    Build it with `Release.of("1.36")`, which also takes a node's `kubeletVersion`. `assumed` is true
    where the version was not one we know and the nearest known one stands in for it.
    """

    minor: int
    patch: int | None
    gates: frozenset[Gate]
    changes: frozenset[Change]
    assumed: bool = False

    @staticmethod
    def of(version: str, gates: Mapping[str, bool] | None = None) -> Release:
        """The release of a version such as `1.36`, `v1.36.2` or `v1.31.4-eks-0123`.

        Args:
            version: a minor release, with or without patch and vendor suffix.
            gates: feature gates by their Kubernetes names; see `ignored_gates` for what is not applied.

        Raises:
            InputError: the text is not a Kubernetes 1.x version.
        """
        return _release(version, tuple(sorted((gates or {}).items())))

    def has(self, change: Change) -> bool:
        """Whether this release behaves so."""
        return change in self.changes

    def enabled(self, gate: Gate) -> bool:
        """Whether the gate exists in this release and is on."""
        return gate in self.gates

    def with_gates(self, gates: Mapping[str, bool]) -> Release:
        """This release with gates set; unknown and locked ones change nothing."""
        enabled = set(self.gates)
        for name, on in gates.items():
            gate = _GATE_OF_NAME.get(name)
            if gate is not None and _refusal(gate, on, self.minor) is None:
                (enabled.add if on else enabled.discard)(gate)
        return Release(self.minor, self.patch, frozenset(enabled), self.changes, self.assumed)

    def known_gates(self) -> dict[str, bool]:
        """Every gate of this release that changes a prediction, with its value."""
        return {gate.value: gate in self.gates for gate in Gate if _stage(gate, self.minor) is not None}

    def ignored_gates(self, gates: Mapping[str, bool]) -> dict[str, str]:
        """The gates that a kubelet of this release would refuse, each with `unknown` or `locked`."""
        reasons = {}
        for name, on in gates.items():
            gate = _GATE_OF_NAME.get(name)
            reason = "unknown" if gate is None else _refusal(gate, on, self.minor)
            if reason is not None:
                reasons[name] = reason
        return reasons

    def __str__(self) -> str:
        return f"1.{self.minor}"


@lru_cache(maxsize=256)
def _release(version: str, gates: tuple[tuple[str, bool], ...]) -> Release:
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise InputError(
            f"{version!r} is not a Kubernetes version",
            hint=f"write a minor release such as 1.36 (1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are known)",
        )
    asked = int(match["minor"])
    minor = min(max(asked, OLDEST_MINOR), NEWEST_MINOR)
    patch = int(match["patch"]) if match["patch"] and minor == asked else None
    enabled = frozenset(gate for gate in Gate if (stage := _stage(gate, minor)) is not None and stage.default)
    changes = frozenset(change for change, span in _CHANGES.items() if span.holds(minor, patch))
    release = Release(minor, patch, enabled, changes, assumed=minor != asked)
    return release.with_gates(dict(gates)) if gates else release


def change_source(change: Change) -> str:
    """The upstream file that shows the change, and the first release that has it."""
    span = _CHANGES[change]
    return f"{span.source}, since 1.{span.since}"


def _stage(gate: Gate, minor: int) -> _GateStage | None:
    if minor > _LAST_MINOR.get(gate, NEWEST_MINOR):
        return None
    stages = [stage for stage in _GATES[gate] if stage.since <= minor]
    return stages[-1] if stages else None


def _refusal(gate: Gate, on: bool, minor: int) -> str | None:
    stage = _stage(gate, minor)
    if stage is None:
        return "unknown"
    if stage.locked and on != stage.default:
        return "locked"
    return None


_TEXT = re.compile(r"(?P<name>runc|crun)(?:[ -]v?(?P<version>\d+(?:\.\d+)*))?")
_QUADRATIC_SINCE = {"runc": (1, 3, 2), "crun": (1, 23)}


class OciRuntime(NamedTuple):
    """`runc` or `crun`, and its version; an empty one stands for a current version."""

    name: str = "runc"
    version: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> OciRuntime:
        """`runc`, `runc 1.2.5` or `crun-1.22`. Raises InputError for anything else."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise InputError(
                f"{text!r} is no OCI runtime", hint="write runc or crun, and its version: crun-1.22"
            )
        version = found["version"]
        return OciRuntime(found["name"], tuple(map(int, version.split("."))) if version else ())

    def __str__(self) -> str:
        return " ".join([self.name, ".".join(map(str, self.version))]).strip()

    @property
    def has_quadratic_weight(self) -> bool:
        """Whether CPU shares become cpu.weight on the curve of 2025: since runc 1.3.2 and crun 1.23."""
        return not self.version or self.version >= _QUADRATIC_SINCE[self.name]

    @property
    def rounds_quota(self) -> bool:
        """Whether cpu.max has whole percents of a CPU under systemd: runc before 1.3.2 overwrites them."""
        return self.name == "crun" or self.has_quadratic_weight

    @property
    def has_process_cgroup(self) -> bool:
        """Whether processes are in a cgroup `container` below the scope (crun, systemd, cgroup v2)."""
        return self.name == "crun"


CURRENT_RUNC: Final = OciRuntime()
"""What nearly every node has, and so what is assumed."""
