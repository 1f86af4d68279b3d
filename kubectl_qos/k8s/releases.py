"""Kubernetes releases and OCI runtimes: which behaviour changed when, and which feature gates are on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Self

from kubectl_qos.errors import InputError

OLDEST_MINOR: Final = 20
NEWEST_MINOR: Final = 37
SUPPORTED_MINORS: Final = range(25, NEWEST_MINOR + 1)
DEFAULT_RELEASE: Final = "1.36"
"""The release of a node that does not state its own."""


class Change(StrEnum):
    """A change of a prediction `since` a minor release; the comment above each names the upstream file."""

    since: int

    def __new__(cls, since: int, text: str) -> Self:
        """Make a change with its text as value."""
        change = str.__new__(cls, text)
        change._value_ = text
        change.since = since
        return change

    # pkg/kubelet/oom/oom_watcher_linux.go with cAdvisor 0.39 (PR 99875)
    SYSTEM_OOM_IS_OF_NODE = 21, "SystemOOM is of a full node, not of a limit, also on kernels from 5.0 on"
    # pkg/kubelet/qos/policy.go (PR 99729)
    ONLY_NODE_CRITICAL_IS_SPARED = 22, "only system-node-critical pods get the lowest oom_score_adj"
    SIDECAR_OOM_SCORE = 32, "a sidecar is no easier to kill than the least protected container"
    # pkg/kubelet/cm/helpers_linux.go
    INIT_CONTAINERS_DECLARE_LIMITS = 23, "init containers count when a pod's limits are declared"
    HUGEPAGES_FROM_POD_REQUESTS = 27, "pod hugepage limits come from the pod's total requests"
    # pkg/kubelet/kuberuntime/kuberuntime_container_linux.go
    MISSING_CPU_REQUEST_TAKES_LIMIT = 26, "only a missing, not a zero, CPU request takes the limit"
    MEMORY_HIGH_ABOVE_REQUEST = 27, "memory.high lies between request and limit"
    MEMORY_OOM_GROUP = 28, "memory.oom.group is set on containers"
    SWAP_BY_UNIFIED = 28, "swap is limited through memory.swap.max"
    NO_UNLIMITED_SWAP = 30, "UnlimitedSwap is gone; NoSwap is the default"
    CRITICAL_PODS_DO_NOT_SWAP = 31, "critical pods get no swap"
    SINGLE_PROCESS_OOM_KILL = 32, "singleProcessOOMKill can turn memory.oom.group off"
    POD_LEVEL_LIMIT_FALLBACK = 32, "a container without a limit runs under the pod-level limit"
    POD_LEVEL_HUGEPAGE_LIMITS = 34, "containers inherit the pod-level hugepage limit"
    MEMORY_RESERVATION_POLICY = 36, "memory.min and memory.low follow memoryReservationPolicy"
    POD_LEVEL_MEMORY_HIGH = 37, "memory.high counts the pod-level limit, and the pod's cgroup has one too"
    # pkg/scheduler/framework/plugins/noderesources/fit.go (PR 116408)
    NOTHING_REQUESTED_FITS = 28, "what a pod does not request is not compared with what a node has free"
    # pkg/api/v1/resource/helpers.go
    SIDECARS = 28, "restartable init containers are added to the pod's totals"
    CUMULATIVE_DECLARED_LIMITS = 28, "init containers declare limits with their preceding sidecars"
    EVICTION_COUNTS_POD_REQUESTS = 34, "eviction compares usage with the pod's total requests"
    # pkg/apis/core/v1/helper/qos/qos.go
    STORED_QOS_CLASS = 29, "status.qosClass is trusted when set"
    # k8s.io/component-helpers/resource/helpers.go
    STATUS_RESOURCES = 32, "pod totals may use actual resources instead of allocated ones"
    POD_LEVEL_HUGEPAGES = 33, "hugepages may be set at pod level"
    ALLOCATED_STATUS = 33, "pod totals take the largest of spec, actual and allocated"
    # pkg/kubelet/cm/qos_container_manager_linux.go (PR 138903)
    MEMORY_QOS_IS_RESET = 37, "without MemoryQoS, memory.min and memory.low of kubepods and burstable are 0"
    # pkg/kubelet/kuberuntime/kuberuntime_manager.go (PR 137555)
    RUNTIME_MAY_REFUSE_RESIZE = 36, "the container runtime or NRI may refuse a resize at pod level"
    # pkg/kubelet/eviction/defaults_windows.go (PR 122922)
    WINDOWS_EVICTS_FOR_MEMORY = 31, "Windows nodes evict under memory pressure, by default below 500Mi"
    # pkg/kubelet/apis/config/v1beta1/defaults.go
    CGROUP_V1_IS_REFUSED = 35, "a kubelet starts on cgroup v1 only with failCgroupV1 false"
    MEMORY_HIGH_NEEDS_FACTOR = 37, "memory.high is set only with a configured throttling factor"
    # pkg/registry/core/pod (PR 140514)
    POD_LEVEL_DEFAULTS_IN_STRATEGY = 37, "pod-level limits default from the containers' limits"
    # pkg/kubelet/cm/node_container_manager_linux.go
    KUBEPODS_CPUSET = 28, "kubepods gets every CPU under CPU manager policy none"
    RESERVED_COMPRESSIBLE = 32, "reserved cgroups can be enforced for CPU only"
    # runc/libcontainer/cgroups/fs2/hugetlb.go
    RSVD_HUGEPAGES = 29, "hugetlb reservations are limited too"
    # opencontainers/cgroups/fs2/pids.go
    PIDS_LIMIT_OPTIONAL = 36, "an unset pids limit differs from zero"
    # opencontainers/cgroups/utils.go
    QUADRATIC_CPU_WEIGHT = 33, "the kubelet's cgroup library converts shares by the quadratic formula"
    # pkg/registry/core/pod/storage/storage.go
    RESIZE_SUBRESOURCE = 32, "resources change in place through the resize subresource"
    # pkg/kubelet/lifecycle/features_linux.go
    POD_LEVEL_NEEDS_SUPPORT = 34, "a kubelet with pod-level resources off refuses pods that have them"
    # pkg/apis/core/validation/validation.go
    REFUSAL_NAMES_LIMIT = 27, "a request above its limit is refused with the limit's value"
    MEMORY_LIMIT_ONLY_GROWS = 33, "a memory limit does not shrink or appear without a restart"
    POD_REQUEST_MAY_BE_MISSING = 34, "a missing pod-level request is not a request of zero"
    RESIZE_OF_POD_LEVEL = 35, "pods with pod-level resources may be resized, if the gate is on"
    INIT_RESIZE_NAMES_PATH = 36, "a refused resize of an init container names its path"
    # k8s.io/apimachinery/pkg/util/validation/field/errors.go
    REFUSAL_QUOTES_NAMES = 34, "an unsupported value is quoted in its refusal"
    # pkg/kubelet/apis/config/validation/validation.go
    ENFORCEMENT_WITHOUT_CGROUPS = 31, "without cgroups per QoS each enforcement is refused by itself"
    # plugin/pkg/admission/podresize/admission.go
    RESIZE_CHECKED_AGAINST_NODE = 36, "a server refuses a resize beyond the node's allocatable"
    # plugin/pkg/admission/nodedeclaredfeatures/admission.go
    RESIZE_NEEDS_DECLARED_FEATURES = 36, "a server refuses a resize that the node does not declare"
    # pkg/kubelet/allocation
    RESIZE_BEYOND_NODE_IS_INFEASIBLE = 33, "a resize beyond the whole node is Infeasible, not Deferred"
    # pkg/kubelet/kuberuntime/kuberuntime_manager.go (PR 140387)
    RESIZE_OF_STARTING_CONTAINER = 37, "a resize reaches the pod's cgroup also while the container waits"
    # opencontainers/cgroups systemd/common.go, v0.0.2 and later
    SYSTEMD_QUOTA_IS_WRITTEN = 35, "the systemd driver writes a quota rounded to whole percents"


_NEVER: Final = NEWEST_MINOR + 1


class Gate(StrEnum):
    """A gate of pkg/features/kube_features.go: the first minors in which it exists, is on, and is locked."""

    since: int
    on: int
    locked: int

    def __new__(cls, name: str, since: int, on: int = _NEVER, locked: int = _NEVER) -> Self:
        """Make a gate with its name in Kubernetes as value."""
        gate = str.__new__(cls, name)
        gate._value_ = name
        gate.since, gate.on, gate.locked = since, on, locked
        return gate

    POD_LEVEL_RESOURCES = "PodLevelResources", 32, 34
    IN_PLACE_RESIZE = "InPlacePodVerticalScaling", 27, 33, 35
    IN_PLACE_RESIZE_ALLOCATED_STATUS = "InPlacePodVerticalScalingAllocatedStatus", 32
    IN_PLACE_RESIZE_EXCLUSIVE_CPUS = "InPlacePodVerticalScalingExclusiveCPUs", 32
    IN_PLACE_RESIZE_EXCLUSIVE_MEMORY = "InPlacePodVerticalScalingExclusiveMemory", 34
    IN_PLACE_RESIZE_INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers", 36, 36, 37
    MUTABLE_SUSPENDED_JOBS = "MutablePodResourcesForSuspendedJobs", 35, 36
    IN_PLACE_RESIZE_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling", 35, 36
    IN_PLACE_RESIZE_VOLUMES = "InPlacePodVerticalScalingMemoryBackedVolumes", 37
    IN_PLACE_RESIZE_PREEMPTION = "InPlacePodVerticalScalingSchedulerPreemption", 37
    POD_LEVEL_FIX_QOS_CLASS = "PodLevelResourcesFixKubeletQOSClass", 37, 37
    POD_LEVEL_RESOURCE_MANAGERS = "PodLevelResourceManagers", 36
    PER_POD_PID_LIMIT = "PerPodPIDLimit", 37
    HUGEPAGE_AWARE_EVICTION = "HugepageAwareEviction", 37, 37
    SIDECAR_CONTAINERS = "SidecarContainers", 28, 29, 33
    MEMORY_QOS = "MemoryQoS", 22, 37
    NODE_SWAP = "NodeSwap", 22, 30, 34
    NO_QUOTA_WITH_EXCLUSIVE_CPUS = "DisableCPUQuotaWithExclusiveCPUs", 33, 33, 37
    CUSTOM_CFS_QUOTA_PERIOD = "CustomCPUCFSQuotaPeriod", 12, 36
    QOS_RESERVED = "QOSReserved", 11
    DRA_NODE_ALLOCATABLE = "DRANodeAllocatableResources", 36
    CONTAINER_RESTART_RULES = "ContainerRestartRules", 34, 35
    RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits", 35, 36


_LAST_MINOR: Final[Mapping[Change | Gate, int]] = {
    Change.MEMORY_LIMIT_ONLY_GROWS: 33,
    Change.RESIZE_BEYOND_NODE_IS_INFEASIBLE: 35,
    Gate.IN_PLACE_RESIZE_ALLOCATED_STATUS: 35,
}
_PATCHES: Final[Mapping[Change, Mapping[int, int]]] = {
    Change.SYSTEMD_QUOTA_IS_WRITTEN: {33: 11, 34: 7},
    # The first after PR 141003 and 141004, by date; PR 141005 for 1.34 was open in August 2026.
    Change.RESIZE_OF_STARTING_CONTAINER: {35: 9, 36: 4},
}
"""Older minors that have a change from a patch on."""
_GATE_OF_NAME: Final = {gate.value: gate for gate in Gate}

_VERSION = re.compile(r"v?1\.(?P<minor>\d{1,6})(?:\.(?P<patch>\d{1,6}))?(?:[-+.].*)?\+?", re.ASCII)


class Release(NamedTuple):
    """A Kubernetes minor release and its feature gates; `assumed` if it replaces an unknown version."""

    minor: int
    patch: int | None
    gates: frozenset[Gate]
    changes: frozenset[Change]
    assumed: bool = False

    @staticmethod
    def of(version: str, gates: Mapping[str, bool] | None = None) -> Release:
        """Return the release of `1.36` or `v1.31.4-eks-0123`; see `ignored_gates`. Raises InputError."""
        return _release(version, tuple(sorted((gates or {}).items())))

    @staticmethod
    def of_kubelet(version: str, server: str = "", gates: Mapping[str, bool] | None = None) -> Release:
        """Return the release of a kubelet; assume the server's if it states none, like virtual kubelets."""
        stated = next(text for text in (version, server, DEFAULT_RELEASE) if _VERSION.fullmatch(text.strip()))
        release = Release.of(stated, gates)
        return release if stated == version else release._replace(assumed=True)

    def has(self, change: Change) -> bool:
        """Return whether this release has the change."""
        return change in self.changes

    def next_with(self, change: Change) -> str:
        """Return the nearest release from this one on that has a change: `1.36.4`, `1.37`."""
        patches = {minor: patch for minor, patch in _PATCHES.get(change, {}).items() if minor >= self.minor}
        minor = min(patches, default=change.since)
        return f"1.{minor}.{patches[minor]}" if minor in patches else f"1.{minor}"

    def enabled(self, gate: Gate) -> bool:
        """Return whether the gate exists in this release and is on."""
        return gate in self.gates

    def with_gates(self, gates: Mapping[str, bool]) -> Release:
        """Return this release with gates set; unknown and locked ones change nothing."""
        ignored = self.ignored_gates(gates)
        wanted = {_GATE_OF_NAME[name]: on for name, on in gates.items() if name not in ignored}
        enabled = self.gates.difference(wanted) | {gate for gate, on in wanted.items() if on}
        return self._replace(gates=enabled)

    def ignored_gates(self, gates: Mapping[str, bool]) -> dict[str, str]:
        """Return the gates that a kubelet of this release refuses, each with `unknown` or `locked`."""
        reasons = {name: _refusal(_GATE_OF_NAME.get(name), on, self.minor) for name, on in gates.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

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
    requested = int(match["minor"])
    minor = min(max(requested, OLDEST_MINOR), NEWEST_MINOR)
    patch = int(match["patch"]) if match["patch"] and minor == requested else None
    enabled = frozenset(gate for gate in Gate if _has_gate(gate, minor) and minor >= gate.on)
    changes = frozenset(change for change in Change if _has_change(change, minor, patch))
    release = Release(minor, patch, enabled, changes, assumed=minor != requested)
    return release.with_gates(dict(gates)) if gates else release


def _has_change(change: Change, minor: int, patch: int | None) -> bool:
    """Return whether a release has a change; an unknown patch counts as the newest."""
    first_patch = _PATCHES.get(change, {}).get(minor)
    if first_patch is not None:
        return patch is None or patch >= first_patch
    return change.since <= minor <= _LAST_MINOR.get(change, NEWEST_MINOR)


def _has_gate(gate: Gate, minor: int) -> bool:
    return gate.since <= minor <= _LAST_MINOR.get(gate, NEWEST_MINOR)


def _refusal(gate: Gate | None, on: bool, minor: int) -> str | None:
    if gate is None or not _has_gate(gate, minor):
        return "unknown"
    return "locked" if not on and minor >= gate.locked else None


_RUNTIME = re.compile(r"(?P<name>runc|crun)(?:[ -]v?(?P<version>\d+(?:\.\d+)*))?")
_QUADRATIC_SINCE = {"runc": (1, 3, 2), "crun": (1, 23)}


class OciRuntime(NamedTuple):
    """`runc` or `crun` with its version; an empty version means a current one."""

    name: str = "runc"
    version: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> OciRuntime:
        """Parse `runc`, `runc 1.2.5` or `crun-1.22`. Raises InputError for anything else."""
        match = _RUNTIME.fullmatch(text.strip())
        if match is None:
            raise InputError(f"unknown OCI runtime {text!r}", hint="write runc or crun, as in crun-1.22")
        version = match["version"]
        return OciRuntime(match["name"], tuple(map(int, version.split("."))) if version else ())

    def __str__(self) -> str:
        return " ".join([self.name, ".".join(map(str, self.version))]).strip()

    @property
    def has_quadratic_weight(self) -> bool:
        """Return whether cpu.weight is by the quadratic formula: since runc 1.3.2 and crun 1.23."""
        return not self.version or self.version >= _QUADRATIC_SINCE[self.name]

    @property
    def rounds_quota(self) -> bool:
        """Return whether cpu.max has whole percents under systemd; runc before 1.3.2 overwrites them."""
        return self.name == "crun" or self.has_quadratic_weight

    @property
    def has_process_cgroup(self) -> bool:
        """Return whether processes are in `container` below the scope (crun, systemd, cgroup v2)."""
        return self.name == "crun"


CURRENT_RUNC: Final = OciRuntime()
"""The runtime of nearly every node, assumed if it is unknown."""

_RUNC_OF_CONTAINERD: Final = (
    *(((1, 5, 0), (1, 0)), ((1, 5, 12), (1, 1)), ((1, 6, 37), (1, 2)), ((1, 6, 39), (1, 3, 0))),
    *(((1, 7, 0), (1, 1)), ((1, 7, 24), (1, 2)), ((1, 7, 28), (1, 3, 0)), ((1, 7, 29), (1, 3, 3))),
    *(((2, 0, 0), (1, 2)), ((2, 0, 6), (1, 3, 0)), ((2, 0, 7), (1, 3, 3))),
    *(((2, 1, 0), (1, 3, 0)), ((2, 1, 5), (1, 3, 3)), ((2, 3, 0), (1, 4))),
)
"""The runc that containerd releases include, from each version on: script/setup/runc-version of its tags."""
_CRUN_SINCE_CRIO: Final = (1, 31)
_RUNTIME_VERSION = re.compile(r"(?P<name>containerd|cri-o)://v?(?P<version>\d+\.\d+(?:\.\d+)?)", re.ASCII)


def packaged_runtime(runtime: str) -> OciRuntime | None:
    """Return the OCI runtime packaged with `containerd://1.7.27` or `cri-o://1.31.0`; None if unknown.

    This is the runc in containerd's own packages; distributions may use another one. CRI-O's packages
    configure crun from 1.31 on.
    """
    match = _RUNTIME_VERSION.match(runtime)
    if match is None:
        return None
    version = tuple(map(int, match["version"].split(".")))
    if match["name"] == "cri-o":
        return OciRuntime("crun") if version >= _CRUN_SINCE_CRIO else None
    newest = version if len(version) > 2 else (*version, _NEWEST_PATCH)
    index = bisect_right(_RUNC_OF_CONTAINERD, newest, key=lambda pinned: pinned[0])
    return OciRuntime("runc", _RUNC_OF_CONTAINERD[index - 1][1]) if index else None


_NEWEST_PATCH: Final = 1 << 16
