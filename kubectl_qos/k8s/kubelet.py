"""A kubelet's configuration and a node's facts, each value with its origin.

`Kubelet` has the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that change a prediction;
`Node` has what the kubelet, the runtime and the kernel read from the machine. An unknown value gets the
default of the node's release. cluster/ reads them from a cluster.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    MEMORY_PRESSURE,
    ApiStruct,
    Condition,
    NodeObject,
    ResourceList,
    convert,
    resource_list,
)
from kubectl_qos.k8s.quantity import Quantity, from_float, parse_duration
from kubectl_qos.k8s.releases import CURRENT_RUNC, Change, OciRuntime, Release, packaged_runtime


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
"""The value of enforceNodeAllocatable that limits kubepods."""
DEFAULT_EVICTION_HARD: Final[Mapping[str, str]] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
MEMORY_AVAILABLE: Final = "memory.available"
"""The eviction signal of a node's memory."""
ALLOCATABLE_MEMORY_AVAILABLE: Final = "allocatableMemory.available"
"""The eviction signal of the memory that kubepods may use."""
AN_EVICTION: Final = "an eviction"
"""The basis of a threshold that the message of an evicted pod names."""
_WINDOWS_EVICTION_HARD: Final = {
    MEMORY_AVAILABLE: "500Mi",
    "nodefs.available": "10%",
    "imagefs.available": "15%",
}
LINUX: Final = "linux"
WINDOWS: Final = "windows"
_FIRST_KERNEL_WITH_V2: Final = (4, 15)
"""The first kernel with the CPU controller on cgroup v2; runc and the kubelet use v2 only with it."""


class _WithOrigins(msgspec.Struct, frozen=True, kw_only=True):
    origins: Mapping[str, Origin] = msgspec.field(default_factory=dict)
    basis: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Why a value of an assumed field is likely, such as `containerd 1.7.27` or `profile eks`."""

    def origin(self, field_name: str) -> Origin:
        return self.origins.get(field_name, Origin.ASSUMED)


class Kubelet(_WithOrigins, frozen=True, kw_only=True):
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
    memory_manager_policy: str = "None"
    exclusive_cpu_containers: frozenset[str] | None = None
    pod_pids_limit: int = -1
    memory_throttling_factor: float | None = 0.9
    memory_reservation_policy: MemoryReservationPolicy = MemoryReservationPolicy.NONE
    memory_swap_behavior: str = ""
    single_process_oom_kill: bool | None = None
    qos_reserved_percent: Mapping[str, int] = msgspec.field(default_factory=dict)
    feature_gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    kube_reserved: ResourceList = EMPTY_RESOURCES
    system_reserved: ResourceList = EMPTY_RESOURCES
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    eviction_hard: Mapping[str, str] = msgspec.field(default_factory=lambda: DEFAULT_EVICTION_HARD)
    eviction_soft: Mapping[str, str] = msgspec.field(default_factory=dict)
    eviction_soft_grace_period: Mapping[str, str] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def reserved_memory_bytes(self) -> int:
        """Return the memory that kubeReserved and systemReserved keep from pods."""
        return sum(
            amounts[MEMORY].value()
            for amounts in (self.kube_reserved, self.system_reserved)
            if MEMORY in amounts
        )

    @property
    def evicts_by_default(self) -> bool:
        """Return whether nothing states its hard thresholds: neither its configuration nor an eviction."""
        is_assumed = self.origin("eviction_hard") is Origin.ASSUMED
        return is_assumed and self.basis.get("eviction_hard") != AN_EVICTION

    @staticmethod
    @lru_cache(maxsize=256)
    def defaults(release: Release, operating_system: str = LINUX) -> Kubelet:
        """Return the configuration of a kubelet of that release that sets only the systemd driver."""
        if operating_system == WINDOWS:
            evicts = release.has(Change.WINDOWS_EVICTS_FOR_MEMORY)
            return Kubelet(eviction_hard=_WINDOWS_EVICTION_HARD if evicts else {})
        if release.has(Change.MEMORY_HIGH_NEEDS_FACTOR):
            factor = None
        elif release.has(Change.MEMORY_HIGH_ABOVE_REQUEST):
            factor = 0.9
        else:
            factor = 0.8
        return Kubelet(memory_throttling_factor=factor)


class Node(_WithOrigins, frozen=True, kw_only=True):
    """The facts of one machine. Bytes are bytes, CPU is millicores; None is unknown.

    `allocatable_*` is capacity minus reserved (`GetNodeAllocatableAbsolute`), the limit of kubepods;
    status.allocatable is less by the eviction threshold. `declared_features` is status.declaredFeatures, what
    the kubelet supports (1.36 and later). `runtime_oom_score_adj` is containerd's own oom_score_adj if
    `restrict_oom_score_adj` is on, else None. `oci_runtimes` has those of RuntimeClasses, by name.
    `userspace_oom_killer` is given: `systemd-oomd`, `talos`, `talos-1.12` or `none`; empty is unknown.
    `reports_pressure` is the condition MemoryPressure, which changed at `pressure_since` and was last sent at
    `pressure_sent`. `short_at` is the last event of the node about short memory, `full_at` when the kernel
    killed because the whole node was out of memory, `sampled_at` the time of its usage. Times are RFC 3339,
    empty if unknown.
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
    oci_runtimes: Mapping[str, OciRuntime] = msgspec.field(default_factory=dict)
    kernel: str = ""
    os_image: str = ""
    operating_system: str = LINUX
    userspace_oom_killer: str = ""
    reports_pressure: bool = False
    pressure_since: str = ""
    pressure_sent: str = ""
    short_at: str = ""
    full_at: tuple[str, ...] = ()
    sampled_at: str = ""

    @property
    def is_windows(self) -> bool:
        """Return whether there are neither cgroups nor oom_score_adj."""
        return self.operating_system == WINDOWS

    def for_runtime_class(self, name: str | None) -> Node:
        """Return the node with the OCI runtime of a RuntimeClass: as given, or by the name of the class."""
        if not name:
            return self
        given = self.oci_runtimes.get(name)
        if given is not None:
            return with_origin(self, Origin.GIVEN, oci_runtime=given)
        named = _NAMED_RUNTIME.search(name)
        if named is None or named[0] == self.oci_runtime.name:
            return self
        return with_origin(self, Origin.ASSUMED, f"RuntimeClass {name}", oci_runtime=OciRuntime(named[0]))


class NodeSetup(msgspec.Struct, frozen=True):
    """What a prediction depends on, apart from the pod: the node, its kubelet's configuration and release."""

    node: Node
    kubelet: Kubelet
    release: Release

    @staticmethod
    def of(node: Node, kubelet: Kubelet | None = None, release: str | Release | None = None) -> NodeSetup:
        """Return the setup; by default with the node's release, and that release's default configuration."""
        if not isinstance(release, Release):
            gates = kubelet.feature_gates if kubelet is not None else {}
            release = (
                Release.of(release, gates) if release else Release.of_kubelet(node.kubelet_version, "", gates)
            )
        return NodeSetup(node, kubelet or Kubelet.defaults(release), release)

    @property
    def assumes_no_reservations(self) -> bool:
        """Whether neither the node nor its kubelet says how much memory is kept from pods."""
        origins = {self.kubelet.origin(name) for name in ("kube_reserved", "system_reserved")}
        return self.node.allocatable_memory_bytes is None and origins == {Origin.ASSUMED}


def node_from_object(raw: NodeObject, kubelet: Kubelet) -> Node:
    """Return the facts of a Node object and its kubelet's configuration.

    It assumes cgroup v2 if the kernel has it, the OCI runtime in the package of the container runtime, 4 KiB
    pages, and no swap unless nodeInfo reports it.
    """
    capacity = raw.status.capacity or EMPTY_RESOURCES
    sizes = [name.removeprefix(HUGEPAGES_PREFIX) for name in capacity if name.startswith(HUGEPAGES_PREFIX)]
    page_sizes = sorted(Quantity.parse(size).value() for size in sizes)
    allocatable = raw.status.allocatable or EMPTY_RESOURCES
    info = raw.status.node_info
    memory = capacity[MEMORY].value() if MEMORY in capacity else None
    swap = info.swap.capacity if info.swap is not None else None
    stated: dict[str, Any] = {
        "name": raw.name,
        "memory_capacity_bytes": memory,
        "swap_capacity_bytes": swap,
        "kubelet_version": info.kubelet_version or None,
        "runtime": info.container_runtime_version or None,
        "kernel": info.kernel_version or None,
        "os_image": info.os_image or None,
        "operating_system": info.operating_system or None,
        "hugepage_sizes": tuple(map(hugepage_size_name, page_sizes)),
    }
    conditions = raw.status.conditions or ()
    pressure = next((item for item in conditions if item.type == MEMORY_PRESSURE), Condition())
    reported = {name: value for name, value in stated.items() if value is not None}
    node = Node(
        **reported,
        origins=dict.fromkeys(reported, Origin.API),
        reports_pressure=pressure.is_memory_pressure,
        pressure_since=pressure.last_transition_time or "",
        pressure_sent=pressure.last_heartbeat_time or "",
        allocatable_memory_bytes=kubepods_memory(capacity, allocatable, kubelet),
        allocatable_cpu_milli=allocatable[CPU].milli_value() if CPU in allocatable else None,
        status_allocatable=allocatable,
        capacity=capacity,
        declared_features=raw.status.declared_features or (),
    )
    return with_deduced(node)


def with_deduced(node: Node) -> Node:
    """Deduce cgroup version and OCI runtime from the node's kernel and container runtime."""
    deduced, basis = dict[str, Any](), {**node.basis}
    if node.origin("oci_runtime") is Origin.ASSUMED:
        runtime = packaged_runtime(node.runtime)
        deduced["oci_runtime"] = runtime or CURRENT_RUNC
        basis["oci_runtime"] = node.runtime.replace("://", " ") if runtime is not None else ""
    if node.origin("cgroup_version") is Origin.ASSUMED:
        release = _KERNEL.match(node.kernel)
        is_old = release is not None and (int(release[1]), int(release[2])) < _FIRST_KERNEL_WITH_V2
        deduced["cgroup_version"] = 1 if is_old else 2
        basis["cgroup_version"] = f"kernel {node.kernel}" if is_old else ""
    origins = {**node.origins, **dict.fromkeys(deduced, Origin.ASSUMED)}
    return structs.replace(
        node, **deduced, origins=origins, basis={name: why for name, why in basis.items() if why}
    )


_KERNEL: Final = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_NAMED_RUNTIME: Final = re.compile(r"(?<![a-z])(?:crun|runc)(?![a-z])")


def hugepages_bytes(capacity: ResourceList) -> int:
    """Return the memory that is set aside for hugepages."""
    return sum(size.value() for name, size in capacity.items() if name.startswith(HUGEPAGES_PREFIX))


def kubepods_memory(capacity: ResourceList, allocatable: ResourceList, kubelet: Kubelet) -> int | None:
    """Return capacity minus reserved bytes, from status.allocatable; None if that has no memory.

    The kubelet subtracts the hard eviction threshold and the hugepages too (nodestatus/setters.go).
    """
    if MEMORY not in allocatable or MEMORY not in capacity:
        return None
    size = capacity[MEMORY].value()
    threshold = threshold_bytes(kubelet.eviction_hard.get(MEMORY_AVAILABLE), size)
    return min(size, allocatable[MEMORY].value() + threshold + hugepages_bytes(capacity))


def hugepage_size_name(size_bytes: int) -> str:
    """Format `2097152` as `2MB`, as in cgroup files (`HugePageUnitSizeFromByteSize`). Raises InputError."""
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


def with_origin(facts: _Facts, origin: Origin, basis: str = "", /, **changes: Any) -> _Facts:
    """Return the facts with fields set, each with this origin and the basis of an assumption."""
    if not changes:
        return facts
    kept = {name: fact for name, fact in facts.basis.items() if name not in changes}
    return structs.replace(
        facts,
        **changes,
        origins={**facts.origins, **dict.fromkeys(changes, origin)},
        basis=kept | dict.fromkeys(changes, basis) if basis else kept,
    )


class _Configuration(ApiStruct, frozen=True):
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    cgroup_root: str = ""
    cgroups_per_qos: bool = msgspec.field(name="cgroupsPerQOS", default=True)
    cpu_cfs_quota: bool = msgspec.field(name="cpuCFSQuota", default=True)
    cpu_cfs_quota_period: str = msgspec.field(name="cpuCFSQuotaPeriod", default="100ms")
    cpu_manager_policy: str = "none"
    memory_manager_policy: str = "None"
    pod_pids_limit: int = -1
    memory_throttling_factor: float | str | None = None
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
    eviction_soft_grace_period: dict[str, str] = msgspec.field(default_factory=dict)
    eviction_minimum_reclaim: dict[str, str] = msgspec.field(default_factory=dict)


_OTHER_NAMES: Final = {
    "cpu_cfs_quota_period": "cpu_cfs_quota_period_us",
    "memory_swap": "memory_swap_behavior",
    "qos_reserved": "qos_reserved_percent",
}
"""Fields that have another name in `Kubelet`, because their values are converted."""


def kubelet_from_configz(configz: Mapping[str, Any], release: Release) -> Kubelet:
    """Return the configuration in `/configz`, with or without `kubeletconfig`, or in a kubelet's file.

    Fields that a file (with a kind) lacks have their defaults. Raises msgspec.ValidationError.
    """
    raw = convert(configz.get("kubeletconfig", configz), _Configuration)
    fields = msgspec.structs.asdict(raw) | {
        "cgroup_root": raw.cgroup_root or "/",
        # Files are decoded with numbers as texts, for quantities.
        "memory_throttling_factor": msgspec.convert(raw.memory_throttling_factor, float | None, strict=False),
        "cpu_cfs_quota_period_us": parse_duration(raw.cpu_cfs_quota_period) // 1000,
        "memory_reservation_policy": MemoryReservationPolicy(raw.memory_reservation_policy or "None"),
        "memory_swap_behavior": str(raw.memory_swap.get("swapBehavior", "")),
        "qos_reserved_percent": {name: int(text.rstrip("%")) for name, text in raw.qos_reserved.items()},
        "kube_reserved": resource_list(raw.kube_reserved),
        "system_reserved": resource_list(raw.system_reserved),
    }
    written = zip(_Configuration.__struct_encode_fields__, _Configuration.__struct_fields__, strict=True)
    for key, name in written:
        if "kind" in configz and key not in configz:
            fields.pop(_OTHER_NAMES.get(name, name))
        if name in _OTHER_NAMES:
            del fields[name]
    return with_origin(Kubelet.defaults(release), Origin.CONFIGZ, **fields)


def threshold_bytes(text: str | None, capacity_bytes: int) -> int:
    """Return the bytes of `100Mi`, or of `5%` of a capacity, 0 for no threshold.

    A percentage is a float32, as in the kubelet.
    """
    if not text or not text.endswith("%"):
        return Quantity.parse(text).value() if text else 0
    percentage = _float32(_float32(float(text.rstrip("%"))) / 100)
    return from_float(float(capacity_bytes) * percentage)


def threshold_of_evictions(messages: Iterable[str]) -> str:
    """Return the smallest threshold that a kubelet's messages about its evictions for memory name, or "".

    The smallest one, as a soft threshold is at least as large as the hard one. Since 1.26; source:
    pkg/kubelet/eviction/helpers.go (evictionMessage).
    """
    stated = (match[1] for message in messages if (match := _THRESHOLD.search(message)) is not None)
    return min(stated, key=lambda text: Quantity.parse(text).value(), default="")


_THRESHOLD: Final = re.compile(
    r"low on resource: memory\. Threshold quantity: (\d{1,19}(?:[KMGTPE]i?)?),", re.ASCII
)


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
