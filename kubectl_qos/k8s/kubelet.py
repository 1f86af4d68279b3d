"""A kubelet's configuration and a node's facts, each value with where it came from.

`Kubelet` holds the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that change a
prediction; `Node` what the kubelet, the runtime and the kernel read from the machine. Both are built from
what is known and completed with the defaults of the node's release, and remember which was which.

Not here: asking a cluster for these (cluster/), and what follows from them (qos/).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    NodeObject,
    ResourceList,
    resource_list,
)
from kubectl_qos.k8s.quantity import Format, Quantity, from_float
from kubectl_qos.k8s.releases import CURRENT_RUNC, Change, OciRuntime, Release


class Origin(StrEnum):
    """Where a value came from, from the most to the least direct."""

    MEASURED = "measured"
    API = "from the API"
    CONFIGZ = "from kubelet configz"
    GIVEN = "given"
    ASSUMED = "assumed"


class CgroupDriver(StrEnum):
    """Who creates the directories: systemd (slices) or the kubelet itself."""

    SYSTEMD = "systemd"
    CGROUPFS = "cgroupfs"


class MemoryReservationPolicy(StrEnum):
    """What MemoryQoS reserves (1.36 and later)."""

    UNSET = ""
    """Before defaulting, which makes it None; a kubelet refuses it as a value."""
    NONE = "None"
    TIERED = "TieredReservation"


DEFAULT_CFS_PERIOD_US: Final = 100_000
DEFAULT_PAGE_SIZE: Final = 4096
DEFAULT_EVICTION_HARD: Final[Mapping[str, str]] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """The configuration of one kubelet. The defaults are those of a kubeadm node on release 1.36.

    `single_process_oom_kill` None is the kubelet's own default (false on cgroup v2, true on v1).
    `exclusive_cpu_containers` None means: as the CPU manager policy would decide.
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
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @staticmethod
    def defaults(release: Release) -> Kubelet:
        """What a kubelet of that release runs with when nothing is configured but the systemd driver."""
        if release.has(Change.MEMORY_HIGH_NEEDS_FACTOR):
            factor = None
        elif release.has(Change.MEMORY_HIGH_ABOVE_REQUEST):
            factor = 0.9
        else:
            factor = 0.8
        return Kubelet(memory_throttling_factor=factor)

    def origin(self, field_name: str) -> Origin:
        """Where the value of a field came from; assumed unless somebody said otherwise."""
        return self.origins.get(field_name, Origin.ASSUMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The facts of one machine. Bytes are bytes, CPU is millicores.

    `allocatable_*` is capacity minus reserved (`GetNodeAllocatableAbsolute`), the limit of kubepods; it is
    not status.allocatable, which has the eviction threshold taken off as well. None is unknown.
    `declared_features` is status.declaredFeatures, what the kubelet says it supports (1.36 and later).
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
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def origin(self, field_name: str) -> Origin:
        """Where the value of a field came from; assumed unless somebody said otherwise."""
        return self.origins.get(field_name, Origin.ASSUMED)


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What a prediction depends on besides the pod: the machine, its kubelet's configuration and release."""

    node: Node
    kubelet: Kubelet
    release: Release

    @staticmethod
    def of(node: Node, kubelet: Kubelet | None = None, release: str | Release | None = None) -> NodeSetup:
        """The setup with what is not given completed: the node's own release, and its defaults."""
        if not isinstance(release, Release):
            gates = kubelet.feature_gates if kubelet is not None else {}
            release = Release.of(release or node.kubelet_version, gates)
        return NodeSetup(node, kubelet or Kubelet.defaults(release), release)


def node_from_object(found: NodeObject, kubelet: Kubelet) -> Node:
    """The facts that a Node object gives, completed with the kubelet's configuration.

    What the API does not say is assumed: cgroup v2, 4 KiB pages, and no swap unless nodeInfo reports it.
    Capacity minus reserved is status.allocatable with the hard eviction threshold and the hugepages put
    back (pkg/kubelet/nodestatus/setters.go takes them off).
    """
    capacity = found.status.capacity or EMPTY_RESOURCES
    allocatable = found.status.allocatable or EMPTY_RESOURCES
    info = found.status.node_info
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
        kept_free = parse_threshold(hard, capacity[MEMORY]).value() if hard else 0
        hugepages = sum(
            quantity.value() for name, quantity in capacity.items() if name.startswith(HUGEPAGES_PREFIX)
        )
        allocatable_memory = min(memory, allocatable[MEMORY].value() + kept_free + hugepages)
    return Node(
        name=found.name,
        memory_capacity_bytes=memory,
        swap_capacity_bytes=swap or 0,
        allocatable_memory_bytes=allocatable_memory,
        allocatable_cpu_milli=allocatable[CPU].milli_value() if CPU in allocatable else None,
        status_allocatable=allocatable,
        capacity=capacity,
        declared_features=found.status.declared_features or (),
        hugepage_sizes=tuple(_hugepage_sizes(capacity)),
        kubelet_version=info.kubelet_version or "1.36",
        runtime=info.container_runtime_version or "containerd",
        kernel=info.kernel_version,
        origins=origins,
    )


def _hugepage_sizes(capacity: ResourceList) -> list[str]:
    sizes = sorted(
        Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value()
        for name in capacity
        if name.startswith(HUGEPAGES_PREFIX)
    )
    return [hugepage_size_name(size) for size in sizes]


def hugepage_size_name(size_bytes: int) -> str:
    """`2097152` as `2MB`, the way cgroup files are named (`HugePageUnitSizeFromByteSize`).

    Raises InputError for a size that is no whole number of its largest unit.
    """
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


_DURATION_PART = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ns|us|µs|ms|s|m|h)")
_MICROSECONDS = {"ns": 0.001, "us": 1, "µs": 1, "ms": 1000, "s": 1e6, "m": 6e7, "h": 3.6e9}


def parse_duration_us(text: str) -> int:
    """A Go duration such as `100ms` in whole microseconds. Raises InputError for anything else."""
    position, total = 0, 0.0
    for part in _DURATION_PART.finditer(text):
        if part.start() != position:
            break
        total += float(part["number"]) * _MICROSECONDS[part["unit"]]
        position = part.end()
    if not text or position != len(text):
        raise InputError(f"{text!r} is not a duration such as 100ms")
    return int(total)


def with_origin(kubelet: Kubelet, origin: Origin, **changes: object) -> Kubelet:
    """The configuration with fields set, each remembering where it came from."""
    origins = {**kubelet.origins, **dict.fromkeys(changes, origin)}
    return replace(kubelet, origins=origins, **changes)  # type: ignore[arg-type]


class _MemorySwap(msgspec.Struct, rename="camel", frozen=True):
    swap_behavior: str = ""


class _Configuration(msgspec.Struct, rename="camel", frozen=True):
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    cgroup_root: str = ""
    cgroups_per_qos: bool = msgspec.field(name="cgroupsPerQOS", default=True)
    cpu_cfs_quota: bool = msgspec.field(name="cpuCFSQuota", default=True)
    cpu_cfs_quota_period: str = msgspec.field(name="cpuCFSQuotaPeriod", default="100ms")
    cpu_manager_policy: str = "none"
    pod_pids_limit: int = -1
    memory_throttling_factor: float | None = None
    memory_reservation_policy: str = ""
    memory_swap: _MemorySwap = _MemorySwap()
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
    """The configuration of a `/configz` answer, with or without its outer `kubeletconfig`.

    Every value is marked as coming from there. Raises msgspec.ValidationError for another shape.
    """
    found = msgspec.convert(configz.get("kubeletconfig", configz), _Configuration)
    policy = found.memory_reservation_policy or MemoryReservationPolicy.NONE.value
    return with_origin(
        Kubelet.defaults(release),
        Origin.CONFIGZ,
        cgroup_driver=found.cgroup_driver,
        cgroup_root=found.cgroup_root or "/",
        cgroups_per_qos=found.cgroups_per_qos,
        cpu_cfs_quota=found.cpu_cfs_quota,
        cpu_cfs_quota_period_us=parse_duration_us(found.cpu_cfs_quota_period),
        cpu_manager_policy=found.cpu_manager_policy,
        pod_pids_limit=found.pod_pids_limit,
        memory_throttling_factor=found.memory_throttling_factor,
        memory_reservation_policy=MemoryReservationPolicy(policy),
        memory_swap_behavior=found.memory_swap.swap_behavior,
        single_process_oom_kill=found.single_process_oom_kill,
        qos_reserved_percent={name: int(percent.rstrip("%")) for name, percent in found.qos_reserved.items()},
        feature_gates=found.feature_gates,
        kube_reserved=resource_list(found.kube_reserved),
        system_reserved=resource_list(found.system_reserved),
        kube_reserved_cgroup=found.kube_reserved_cgroup,
        system_reserved_cgroup=found.system_reserved_cgroup,
        enforce_node_allocatable=found.enforce_node_allocatable,
        eviction_hard=found.eviction_hard,
        eviction_soft=found.eviction_soft,
        eviction_minimum_reclaim=found.eviction_minimum_reclaim,
    )


def parse_threshold(text: str, capacity: Quantity) -> Quantity:
    """`100Mi` or `5%` of a capacity; a percentage is float32 upstream, and so here."""
    if not text.endswith("%"):
        return Quantity.parse(text)
    percentage = _float32(_float32(float(text.rstrip("%"))) / 100)
    return Quantity(from_float(float(capacity.value()) * percentage), 0, Format.BINARY_SI)


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
