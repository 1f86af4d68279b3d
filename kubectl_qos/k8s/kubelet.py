"""A kubelet's configuration and a node's facts, each value with its origin.

`Kubelet` has the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that change a prediction;
`Node` has what the kubelet, the runtime and the kernel read from the machine. What is not known gets the
default of the node's release.

Not here: reading these from a cluster (cluster/), and what follows from them (qos/).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    ApiStruct,
    NodeObject,
    ResourceList,
    resource_list,
)
from kubectl_qos.k8s.quantity import Format, Quantity, from_float, parse_duration
from kubectl_qos.k8s.releases import CURRENT_RUNC, Change, OciRuntime, Release


class Origin(StrEnum):
    """Where a value came from, the most direct source first."""

    MEASURED = "measured"
    API = "from the API"
    CONFIGZ = "from kubelet configz"
    GIVEN = "given"
    ASSUMED = "assumed"


class CgroupDriver(StrEnum):
    """Who creates cgroups: systemd (as slices) or the kubelet itself."""

    SYSTEMD = "systemd"
    CGROUPFS = "cgroupfs"


class MemoryReservationPolicy(StrEnum):
    """What MemoryQoS reserves (1.36 and later)."""

    UNSET = ""
    """Absent: defaulting makes it None. A kubelet refuses it as a value."""
    NONE = "None"
    TIERED = "TieredReservation"


MIN_CFS_PERIOD_US: Final = 1_000
DEFAULT_CFS_PERIOD_US: Final = 100_000
MAX_CFS_PERIOD_US: Final = 1_000_000
DEFAULT_PAGE_SIZE: Final = 4096
ENFORCE_PODS: Final = "pods"
"""Of enforceNodeAllocatable: kubepods is limited."""
DEFAULT_EVICTION_HARD: Final[Mapping[str, str]] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithOrigins:
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def origin(self, field_name: str) -> Origin:
        """Where the value of a field came from; assumed if nothing else is known."""
        return self.origins.get(field_name, Origin.ASSUMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet(_WithOrigins):
    """The configuration of one kubelet. The defaults are those of a kubeadm node on release 1.36.

    `single_process_oom_kill` None is the kubelet's own default (false on cgroup v2, true on v1).
    `exclusive_cpu_containers` None means: as the CPU manager policy decides.
    Durations are microseconds, percentages whole numbers.
    """

    cgroup_driver: CgroupDriver = CgroupDriver.SYSTEMD
    cgroup_root: str = "/"
    cgroups_per_qos: bool = True
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period_us: int = DEFAULT_CFS_PERIOD_US
    cpu_manager_policy: str = "none"
    exclusive_cpu_containers: frozenset[str] | None = None
    pod_pids_limit: int = -1
    memory_throttling_factor: float | None = 0.9
    memory_reservation_policy: MemoryReservationPolicy = MemoryReservationPolicy.NONE
    memory_swap_behavior: str = ""
    single_process_oom_kill: bool | None = None
    qos_reserved_percent: Mapping[str, int] = field(default_factory=dict)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kube_reserved: ResourceList = EMPTY_RESOURCES
    system_reserved: ResourceList = EMPTY_RESOURCES
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    eviction_hard: Mapping[str, str] = field(default_factory=lambda: DEFAULT_EVICTION_HARD)
    eviction_soft: Mapping[str, str] = field(default_factory=dict)
    eviction_minimum_reclaim: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def defaults(release: Release) -> Kubelet:
        """The configuration of a kubelet of that release where only the systemd driver is configured."""
        if release.has(Change.MEMORY_HIGH_NEEDS_FACTOR):
            factor = None
        elif release.has(Change.MEMORY_HIGH_ABOVE_REQUEST):
            factor = 0.9
        else:
            factor = 0.8
        return Kubelet(memory_throttling_factor=factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(_WithOrigins):
    """The facts of one machine. Bytes are bytes, CPU is millicores.

    `allocatable_*` is capacity minus reserved (`GetNodeAllocatableAbsolute`), the limit of kubepods; in
    status.allocatable the eviction threshold is subtracted too. None is unknown.
    `declared_features` is status.declaredFeatures, which lists what the kubelet supports (1.36 and later).
    `runtime_oom_score_adj` is containerd's own where its `restrict_oom_score_adj` is on, else None.
    """

    name: str = ""
    memory_capacity_bytes: int | None = None
    swap_capacity_bytes: int = 0
    allocatable_memory_bytes: int | None = None
    allocatable_cpu_milli: int | None = None
    status_allocatable: ResourceList = EMPTY_RESOURCES
    capacity: ResourceList = EMPTY_RESOURCES
    declared_features: tuple[str, ...] | None = None
    page_size_bytes: int = DEFAULT_PAGE_SIZE
    hugepage_sizes: tuple[str, ...] = ()
    cgroup_version: int = 2
    swap_controller_available: bool = True
    kubelet_version: str = "1.36"
    runtime: str = "containerd"
    runtime_oom_score_adj: int | None = None
    oci_runtime: OciRuntime = CURRENT_RUNC
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What a prediction depends on besides the pod: the node, its kubelet's configuration and release."""

    node: Node
    kubelet: Kubelet
    release: Release

    @staticmethod
    def of(node: Node, kubelet: Kubelet | None = None, release: str | Release | None = None) -> NodeSetup:
        """The setup; by default with the node's own release, and the configuration of that release."""
        if not isinstance(release, Release):
            gates = kubelet.feature_gates if kubelet is not None else {}
            release = Release.of(release or node.kubelet_version, gates)
        return NodeSetup(node, kubelet or Kubelet.defaults(release), release)


def node_from_object(raw: NodeObject, kubelet: Kubelet) -> Node:
    """The facts of a Node object and its kubelet's configuration.

    Assumed are cgroup v2, 4 KiB pages, and no swap unless nodeInfo reports it. Capacity minus reserved is
    status.allocatable plus the hard eviction threshold and the hugepages, which
    pkg/kubelet/nodestatus/setters.go subtracts.
    """
    capacity = raw.status.capacity or EMPTY_RESOURCES
    hugepages = {name: size.value() for name, size in capacity.items() if name.startswith(HUGEPAGES_PREFIX)}
    page_sizes = sorted(Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value() for name in hugepages)
    allocatable = raw.status.allocatable or EMPTY_RESOURCES
    info = raw.status.node_info
    memory = capacity[MEMORY].value() if MEMORY in capacity else None
    origins = dict.fromkeys(("name", "kubelet_version", "runtime", "kernel", "hugepage_sizes"), Origin.API)
    if memory is not None:
        origins["memory_capacity_bytes"] = Origin.API
    swap = info.swap.capacity if info.swap is not None else None
    if swap is not None:
        origins["swap_capacity_bytes"] = Origin.API
    allocatable_memory = None
    if MEMORY in allocatable and memory is not None:
        hard = kubelet.eviction_hard.get("memory.available")
        threshold = parse_threshold(hard, capacity[MEMORY]).value() if hard else 0
        allocatable_memory = allocatable[MEMORY].value() + threshold + sum(hugepages.values())
        allocatable_memory = min(memory, allocatable_memory)
    return Node(
        name=raw.name,
        memory_capacity_bytes=memory,
        swap_capacity_bytes=swap or 0,
        allocatable_memory_bytes=allocatable_memory,
        allocatable_cpu_milli=allocatable[CPU].milli_value() if CPU in allocatable else None,
        status_allocatable=allocatable,
        capacity=capacity,
        declared_features=raw.status.declared_features or (),
        hugepage_sizes=tuple(map(hugepage_size_name, page_sizes)),
        kubelet_version=info.kubelet_version or "1.36",
        runtime=info.container_runtime_version or "containerd",
        kernel=info.kernel_version,
        origins=origins,
    )


def hugepage_size_name(size_bytes: int) -> str:
    """`2097152` as `2MB`, as in names of cgroup files (`HugePageUnitSizeFromByteSize`). Raises InputError."""
    units = ("B", "KB", "MB", "GB", "TB", "PB")
    index = 0
    while size_bytes % 1024 == 0 and index < len(units) - 1:
        size_bytes //= 1024
        index += 1
    if size_bytes > 1024 and index < len(units) - 1:
        raise InputError(
            f"size: {size_bytes}{units[index]} must be guaranteed to divisible into the largest units"
        )
    return f"{size_bytes}{units[index]}"


_Facts = TypeVar("_Facts", Kubelet, Node)


def with_origin(facts: _Facts, origin: Origin, **changes: Any) -> _Facts:
    """The facts with fields set, each with this origin."""
    if not changes:
        return facts
    return replace(facts, **changes, origins={**facts.origins, **dict.fromkeys(changes, origin)})


class _Configuration(ApiStruct, frozen=True):
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    cgroup_root: str = ""
    cgroups_per_qos: bool = msgspec.field(name="cgroupsPerQOS", default=True)
    cpu_cfs_quota: bool = msgspec.field(name="cpuCFSQuota", default=True)
    cpu_cfs_quota_period: str = msgspec.field(name="cpuCFSQuotaPeriod", default="100ms")
    cpu_manager_policy: str = "none"
    pod_pids_limit: int = -1
    memory_throttling_factor: float | None = None
    memory_reservation_policy: str = ""
    memory_swap: dict[str, Any] = msgspec.field(default_factory=dict)
    single_process_oom_kill: bool | None = msgspec.field(name="singleProcessOOMKill", default=None)
    qos_reserved: dict[str, str] = msgspec.field(default_factory=dict)
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)
    kube_reserved: dict[str, str] = msgspec.field(default_factory=dict)
    system_reserved: dict[str, str] = msgspec.field(default_factory=dict)
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    eviction_hard: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_soft: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: dict[str, str] = msgspec.field(default_factory=dict)


def kubelet_from_configz(configz: Mapping[str, Any], release: Release) -> Kubelet:
    """The configuration in `/configz`, with or without `kubeletconfig`. Raises msgspec.ValidationError."""
    raw = msgspec.convert(configz.get("kubeletconfig", configz), _Configuration)
    fields = msgspec.structs.asdict(raw) | {
        "cgroup_root": raw.cgroup_root or "/",
        "cpu_cfs_quota_period_us": parse_duration(raw.cpu_cfs_quota_period) // 1000,
        "memory_reservation_policy": MemoryReservationPolicy(raw.memory_reservation_policy or "None"),
        "memory_swap_behavior": str(raw.memory_swap.get("swapBehavior", "")),
        "qos_reserved_percent": {name: int(text.rstrip("%")) for name, text in raw.qos_reserved.items()},
        "kube_reserved": resource_list(raw.kube_reserved),
        "system_reserved": resource_list(raw.system_reserved),
    }
    for name in ("cpu_cfs_quota_period", "memory_swap", "qos_reserved"):
        del fields[name]
    return with_origin(Kubelet.defaults(release), Origin.CONFIGZ, **fields)


def parse_threshold(text: str, capacity: Quantity) -> Quantity:
    """`100Mi` or `5%` of a capacity; a percentage is a float32, as in the kubelet."""
    if not text.endswith("%"):
        return Quantity.parse(text)
    percentage = _float32(_float32(float(text.rstrip("%"))) / 100)
    return Quantity(from_float(float(capacity.value()) * percentage), 0, Format.BINARY_SI)


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
