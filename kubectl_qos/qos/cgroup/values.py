"""Content of cgroup files, for v1 and v2: memory with swap, hugepages and MemoryQoS, and CPU.

`CgroupSettings` are the kubelet's settings of its own cgroups, `CriResources` its request to the container
runtime. Names of v1 files begin with their controller. Memory is in bytes, CPU quotas and periods in
microseconds.

Sources: pkg/kubelet/cm/cgroup_manager_linux.go (toResources) and helpers_linux.go (HugePageLimits),
pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (generateLinuxContainerResources),
opencontainers/cgroups (fs2, fs, utils.go, systemd/common.go).
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.kubelet import CgroupDriver, MemoryReservationPolicy, Node, NodeSetup, hugepage_size_name
from kubectl_qos.k8s.objects import HUGEPAGES_PREFIX, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity, from_float, truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, pod_level_limits
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262144
SHARES_PER_CPU: Final = 1024
MIN_QUOTA_US: Final = 1000
MAX_WEIGHT: Final = 10000
_DEFAULT_PERIOD_US: Final = 100_000

V2_DEFAULTS: Final[Mapping[str, str]] = {"cpu.max": "max 100000", "memory.max": "max"}
V1_DEFAULTS: Final[Mapping[str, str]] = {"cpu/cpu.cfs_quota_us": "-1"}
UNWRITTEN: Final[Mapping[str, str]] = {
    **V1_DEFAULTS,
    **V2_DEFAULTS,
    **dict.fromkeys(("memory.min", "memory.low", "memory.oom.group"), "0"),
    **dict.fromkeys(("memory.high", "memory.swap.max", "pids.max"), "max"),
}
"""Defaults of files that nobody has written (Linux Documentation/admin-guide/cgroup-v2.rst)."""


class CgroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one kubelet cgroup (ResourceConfig); None: not written. Bytes and microseconds.

    Hugepages are an exception: every size without an entry is limited to 0, as upstream.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_limit_bytes: int | None = None
    pids_limit: int | None = None
    hugepage_limits: dict[int, int] | None = None
    unified: dict[str, str] = msgspec.field(default_factory=dict)
    cpus: str = ""


class CriResources(msgspec.Struct, frozen=True):
    """A LinuxContainerResources message of the CRI; `unified` has cgroup v2 files by name."""

    cpu_shares: int = 0
    cpu_quota_us: int = 0
    cpu_period_us: int = 0
    memory_limit_bytes: int = 0
    memory_swap_limit_bytes: int = 0
    oom_score_adj: int = 0
    hugepage_limits: dict[str, int] = msgspec.field(default_factory=dict)
    unified: dict[str, str] = msgspec.field(default_factory=dict)


def milli_to_shares(cpu_milli: int) -> int:
    """Return cpu.shares of a request (`MilliCPUToShares`): 1024 per CPU, within 2 and 262144."""
    shares = truncating_div(wrap(cpu_milli * SHARES_PER_CPU), 1000)
    return min(max(shares, MIN_SHARES), MAX_SHARES)


def milli_to_quota(cpu_milli: int, period_us: int) -> int:
    """Return the CFS quota of a limit (`MilliCPUToQuota`): at least 1 ms; 0 (unset) without a limit."""
    if cpu_milli == 0:
        return 0
    return max(truncating_div(wrap(cpu_milli * period_us), 1000), MIN_QUOTA_US)


def shares_to_weight_linear(shares: int) -> int:
    """Return cpu.weight as the kubelet writes it above containers (`getCPUWeight`, KEP-2254)."""
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    return 1 + (shares - MIN_SHARES) * (MAX_WEIGHT - 1) // (MAX_SHARES - MIN_SHARES)


def shares_to_weight_quadratic(shares: int) -> int:
    """Return cpu.weight as runc >= 1.3.2 and crun >= 1.23 write it (`ConvertCPUSharesToCgroupV2Value`).

    Maps 2 to 1, 1024 to 100 and 262144 to 10000; 0 (unset) stays 0.
    """
    if shares == 0:
        return 0
    if shares <= MIN_SHARES:
        return 1
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    if shares == SHARES_PER_CPU:
        return 100
    log = math.log2(shares)
    return math.ceil(math.pow(10, (log * log + 125 * log) / 612.0 - 7.0 / 34.0))


def systemd_quota(quota_us: int, period_us: int) -> int:
    """Return the quota after systemd's CPUQuota, which has whole percents (`addCPUQuota`, v0.0.2 and later).

    Both are microseconds: 13.3 ms in a period of 100 ms become 14 ms. Unlimited and unset stay the same.
    """
    if quota_us <= 0:
        return quota_us
    per_second = quota_us * 1_000_000 // period_us
    if per_second % 10_000:
        per_second = (per_second // 10_000 + 1) * 10_000
    return per_second * period_us // 1_000_000


def kubelet_files(settings: CgroupSettings, node: Node, release: Release) -> dict[str, str]:
    """Return files with the content that the kubelet's cgroup library writes at pod, QoS and node level."""
    is_v1, files = node.cgroup_version == 1, dict[str, str]()
    if is_v1:
        numbers = {
            "cpu/cpu.shares": settings.cpu_shares,
            "cpu/cpu.cfs_period_us": settings.cpu_period_us,
            "cpu/cpu.cfs_quota_us": settings.cpu_quota_us,
            "memory/memory.limit_in_bytes": settings.memory_limit_bytes,
        }
        files |= {name: str(number) for name, number in numbers.items() if number}
    else:
        if settings.cpu_shares is not None:
            files["cpu.weight"] = str(shares_to_weight_linear(settings.cpu_shares))
        files |= _cpu_max(settings.cpu_quota_us or 0, settings.cpu_period_us or 0)
        if limit := settings.memory_limit_bytes:
            files["memory.max"] = "max" if limit == -1 else str(limit)
    # Libraries up to 1.34 take 0 as unset, newer ones write 1.
    if (pids := settings.pids_limit) is not None and (pids or release.has(Change.PIDS_LIMIT_OPTIONAL)):
        files["pids/pids.max" if is_v1 else "pids.max"] = "max" if pids < 0 else str(max(pids, 1))
    if settings.cpus:
        files["cpuset/cpuset.cpus" if is_v1 else "cpuset.cpus"] = settings.cpus
    folder, suffix = ("hugetlb/", "limit_in_bytes") if is_v1 else ("", "max")
    hugepages = named_hugepage_limits(settings.hugepage_limits or {}, node.hugepage_sizes)
    for size, limit in hugepages.items():
        for reservation in ("", "rsvd.") if release.has(Change.RSVD_HUGEPAGES) else ("",):
            files[f"{folder}hugetlb.{size}.{reservation}{suffix}"] = str(limit)
    return files if is_v1 else {**files, **settings.unified}


def files_on_node(settings: CgroupSettings, setup: NodeSetup) -> dict[str, str]:
    """Return files of a kubelet cgroup with their content as it reads back on the node.

    This adds systemd's whole percents of CPU, the kernel's whole pages, and defaults of unwritten files.
    """
    node, release = setup.node, setup.release
    is_systemd = setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD
    if is_systemd and settings.cpu_quota_us and release.has(Change.SYSTEMD_QUOTA_IS_WRITTEN):
        quota = systemd_quota(settings.cpu_quota_us, settings.cpu_period_us or _DEFAULT_PERIOD_US)
        settings = structs.replace(settings, cpu_quota_us=quota)
    written = kubelet_files(settings, node, release)
    files = {name: read_back(name, value, node.page_size_bytes) for name, value in written.items()}
    defaults = V1_DEFAULTS if node.cgroup_version == 1 else V2_DEFAULTS
    return in_reading_order({**defaults, **files})


def has_process_cgroup(setup: NodeSetup) -> bool:
    """Return whether crun puts processes below the scope, so that systemd does not manage their cgroup."""
    delegates = setup.node.oci_runtime.has_process_cgroup and setup.node.cgroup_version == 2
    return delegates and setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD


def container_files(resources: CriResources, setup: NodeSetup) -> dict[str, str]:
    """Return files of the container's cgroup with their content as it reads back.

    This adds the systemd driver's whole percents and the kernel's whole pages. If processes have a cgroup
    below, the scope has only the values that crun tells systemd (append_resources in its cgroup-systemd.c);
    for swap that is the total of memory and swap, and the intended value is below.
    """
    files = process_files(resources, setup, rounds=True)
    if not has_process_cgroup(setup):
        return files
    files = {name: text for name, text in files.items() if name in _SYSTEMD_PROPERTIES}
    total = resources.memory_swap_limit_bytes or resources.memory_limit_bytes
    if total > 0 and setup.node.swap_controller_available:
        files["memory.swap.max"] = read_back("memory.swap.max", str(total), setup.node.page_size_bytes)
    return files


_SYSTEMD_PROPERTIES: Final = {"cpu.weight", "cpu.max", "memory.max", "memory.low", "memory.swap.max"}


def process_files(resources: CriResources, setup: NodeSetup, *, rounds: bool = False) -> dict[str, str]:
    """Return files of the cgroup with the processes; `rounds`: systemd writes and rounds the CPU quota."""
    node = setup.node
    runtime, page = node.oci_runtime, node.page_size_bytes
    if node.cgroup_version == 1:
        return _v1_container_files(resources, node)
    weight = shares_to_weight_quadratic if runtime.has_quadratic_weight else shares_to_weight_linear
    files = {"cpu.weight": str(weight(resources.cpu_shares))}
    quota, period = resources.cpu_quota_us, resources.cpu_period_us
    if rounds and setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD and runtime.rounds_quota:
        quota = systemd_quota(quota, period)
    files |= _cpu_max(quota, period) or {"cpu.max": V2_DEFAULTS["cpu.max"]}
    limit = resources.memory_limit_bytes
    files["memory.max"] = str(limit // page * page) if limit else "max"
    for size, pages in resources.hugepage_limits.items():
        files[f"hugetlb.{size}.max"] = str(pages) if _limits_hugepages(node) else "max"
    for name, value in resources.unified.items():
        files[name] = read_back(name, value, page)
    return in_reading_order(files)


def in_reading_order(files: Mapping[str, str]) -> dict[str, str]:
    """Sort files for reading: CPU, memory, then the rest by name."""
    return {name: files[name] for name in sorted(files, key=_reading_place)}


def read_back(name: str, value: str, page_size_bytes: int) -> str:
    """Return the content of a file after the kernel took it: byte limits are floored to whole pages."""
    if name.rpartition("/")[2] in _PAGED and value.isdigit():
        return str(int(value) // page_size_bytes * page_size_bytes)
    return value


_PAGED: Final = frozenset(
    {"memory.max", "memory.high", "memory.min", "memory.low", "memory.swap.max", "memory.limit_in_bytes"}
)
_FIRST: Final = (
    *("cpu.weight", "cpu.shares", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    *("memory.max", "memory.limit_in_bytes"),
)


@cache
def _reading_place(name: str) -> tuple[int, bool, str]:
    short = name.rpartition("/")[2]
    place = _FIRST.index(short) if short in _FIRST else len(_FIRST)
    return place, not short.startswith("memory."), short


def _v1_container_files(resources: CriResources, node: Node) -> dict[str, str]:
    page = node.page_size_bytes
    files = {"cpu/cpu.shares": str(resources.cpu_shares)}
    if resources.cpu_period_us:
        files["cpu/cpu.cfs_period_us"] = str(resources.cpu_period_us)
    files["cpu/cpu.cfs_quota_us"] = str(resources.cpu_quota_us or -1)
    if resources.memory_limit_bytes:
        files["memory/memory.limit_in_bytes"] = str(resources.memory_limit_bytes // page * page)
    total = resources.memory_swap_limit_bytes
    if total:
        files["memory/memory.memsw.limit_in_bytes"] = str(total if total < 0 else total // page * page)
    if _limits_hugepages(node):
        for size, limit in resources.hugepage_limits.items():
            files[f"hugetlb/hugetlb.{size}.limit_in_bytes"] = str(limit)
    return files


def _cpu_max(quota_us: int, period_us: int) -> dict[str, str]:
    if not quota_us and not period_us:
        return {}
    quota = str(quota_us) if quota_us > 0 else "max"
    return {"cpu.max": f"{quota} {period_us or _DEFAULT_PERIOD_US}"}


def _limits_hugepages(node: Node) -> bool:
    """Return False for containerd, which by default leaves hugetlb alone (`disable_hugetlb_controller`)."""
    return not node.runtime.startswith("containerd")


MEMORY_MIN: Final = "memory.min"
MEMORY_LOW: Final = "memory.low"
MEMORY_HIGH: Final = "memory.high"
MEMORY_SWAP_MAX: Final = "memory.swap.max"

# -- hugepages ----------------------------------------------------------------------------------------


def hugepage_limits(resources: Mapping[str, Quantity]) -> dict[int, int]:
    """Return the limit in bytes by page size, for every hugepages entry (`HugePageLimits`)."""
    limits: dict[int, int] = {}
    for name, quantity in resources.items():
        if name.startswith(HUGEPAGES_PREFIX):
            try:
                size = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value()
            except QuantityError:
                size = 0  # as upstream
            limits[size] = limits.get(size, 0) + quantity.value()
    return limits


def pod_hugepage_limits(pod: Pod, requests: Totals, release: Release) -> dict[int, int]:
    """Return the pod cgroup's limits: from its total requests; up to 1.26 summed over the containers."""
    if release.has(Change.HUGEPAGES_FROM_POD_REQUESTS):
        return hugepage_limits(requests)
    limits: dict[int, int] = {}
    for container in pod.containers:
        for size, limit in hugepage_limits(container.requests).items():
            limits[size] = limits.get(size, 0) + limit
    if release.has(Change.INIT_CONTAINERS_DECLARE_LIMITS):
        for container in pod.init_containers:
            for size, limit in hugepage_limits(container.requests).items():
                limits[size] = max(limits.get(size, limit), limit)
    return limits


def container_hugepage_limits(
    pod: Pod, container: Container, sizes: tuple[str, ...], release: Release
) -> dict[str, int]:
    """Return the container's limit for every page size of the node, 0 unless one is set.

    From 1.34, the pod-level limit applies to containers without one.
    """
    limits: dict[str, int] = {}
    if release.has(Change.POD_LEVEL_HUGEPAGE_LIMITS):
        limits = named_hugepage_limits(hugepage_limits(pod_level_limits(pod, release)))
    limits |= named_hugepage_limits(hugepage_limits(container.limits))
    return {size: limits.get(size, 0) for size in sizes}


def named_hugepage_limits(limits: Mapping[int, int], sizes: tuple[str, ...] = ()) -> dict[str, int]:
    """Return limits by the size in file names; `sizes` without a limit get 0."""
    named = {}
    for size, limit in limits.items():
        try:
            named[hugepage_size_name(size)] = limit
        except InputError:
            continue
    return {**named, **{size: 0 for size in sizes if size not in named}}


# -- swap ---------------------------------------------------------------------------------------------

NO_SWAP: Final = "NoSwap"
LIMITED_SWAP: Final = "LimitedSwap"
UNLIMITED_SWAP: Final = "UnlimitedSwap"


class Swap(NamedTuple):
    """Swap settings for the runtime: `swap_max` for cgroup v2, `memory_and_swap` as CRI's total in bytes.

    None and 0 are unset, "max" and -1 unlimited.
    """

    swap_max: str | None = None
    memory_and_swap: int = 0


def container_swap(
    pod: Pod, container: Container, qos: QosClass, memory_limit: int, setup: NodeSetup
) -> Swap:
    """Return the swap settings of one container; `memory_limit` is its limit in bytes, 0 without one."""
    node, release = setup.node, setup.release
    if not release.has(Change.SWAP_BY_UNIFIED):
        if not release.enabled(Gate.NODE_SWAP):
            return Swap()
        unlimited = setup.kubelet.memory_swap_behavior == UNLIMITED_SWAP
        return Swap(memory_and_swap=-1 if unlimited else memory_limit)
    if not node.swap_controller_available:
        return Swap()
    behavior = _swap_behavior(pod, container, qos, setup)
    if behavior == UNLIMITED_SWAP:
        return Swap("max")
    if node.cgroup_version == 1:
        return Swap(memory_and_swap=memory_limit)
    if behavior == LIMITED_SWAP:
        request = container.requests.get(MEMORY, ZERO).value()
        return Swap(str(_burstable_swap(request, node)))
    return Swap("0")


def _swap_behavior(pod: Pod, container: Container, qos: QosClass, setup: NodeSetup) -> str:
    """Return the swap behavior (`GetContainerSwapBehavior`); 1.28 and 1.29 limit only LimitedSwap."""
    release = setup.release
    is_v1 = setup.node.cgroup_version == 1
    behavior = setup.kubelet.memory_swap_behavior
    if not release.enabled(Gate.NODE_SWAP):
        return NO_SWAP
    if not release.has(Change.NO_UNLIMITED_SWAP) and behavior != LIMITED_SWAP:
        return NO_SWAP if is_v1 else UNLIMITED_SWAP
    if behavior != LIMITED_SWAP or is_v1:
        return NO_SWAP
    if release.has(Change.CRITICAL_PODS_DO_NOT_SWAP) and is_critical(pod):
        return NO_SWAP
    request = container.requests.get(MEMORY, ZERO)
    limit = container.limits.get(MEMORY, ZERO)
    if qos is not QosClass.BURSTABLE or request == limit:
        return NO_SWAP
    return LIMITED_SWAP


def _burstable_swap(request: int, node: Node) -> int:
    """Return the container's share of swap: request / capacity, in double precision, floored to a byte.

    Returns 0 if the request exceeds the machine (the kubelet logs an error and disallows swap). Source:
    calcSwapForBurstablePods.
    """
    capacity = node.memory_capacity_bytes or 0
    if capacity <= 0 or request > capacity:
        return 0
    return from_float(request / capacity * float(node.swap_capacity_bytes))


# -- MemoryQoS ----------------------------------------------------------------------------------------


def has_memory_qos(setup: NodeSetup) -> bool:
    """Return whether the gate is on and the node has cgroup v2, which MemoryQoS needs."""
    return setup.node.cgroup_version != 1 and setup.release.enabled(Gate.MEMORY_QOS)


def container_memory_qos(qos: QosClass, request: int, limit: int, setup: NodeSetup) -> dict[str, str]:
    """Return what MemoryQoS sets for a container with this request and limit in bytes (0 without one)."""
    files: dict[str, str] = {}
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        is_protected = request != 0 and _is_tiered(setup)
        files = {_protection(qos): str(request)} if is_protected else {MEMORY_MIN: "0", MEMORY_LOW: "0"}
    elif request != 0:
        files[MEMORY_MIN] = str(request)
    high = _memory_high(request, limit, setup)
    if high is not None:
        files[MEMORY_HIGH] = str(high)
    return files


def pod_memory_qos(qos: QosClass, request: int, limit: int, setup: NodeSetup) -> dict[str, str]:
    """Return the pod cgroup's protection and throttling, from bytes that include overhead.

    `limit` is that of a pod with pod-level resources, 0 if it has none.
    """
    files: dict[str, str] = {}
    if limit and setup.release.has(Change.POD_LEVEL_MEMORY_HIGH):
        high = _memory_high(request, limit, setup)
        files = {MEMORY_HIGH: str(high)} if high is not None else {}
    if request <= 0:
        return files
    if not setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        return files | {MEMORY_MIN: str(request)}
    return files | {_protection(qos): str(request)} if _is_tiered(setup) else files


def class_memory_qos(
    guaranteed: int, burstable: int, setup: NodeSetup
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the protection of kubepods and burstable, from the sums of requests of each class."""
    total = wrap(guaranteed + burstable)
    if setup.release.has(Change.MEMORY_RESERVATION_POLICY):
        if not _is_tiered(setup):
            return {MEMORY_MIN: "0"}, {MEMORY_LOW: "0"}
        return {MEMORY_MIN: str(total)}, {MEMORY_LOW: str(burstable)}
    kubepods, of_burstable = ({MEMORY_MIN: str(size)} if size > 0 else {} for size in (total, burstable))
    return kubepods, of_burstable


class HighTerms(NamedTuple):
    """The terms of memory.high, which is base + factor x (upper - base); `upper` is 0 if it is unknown."""

    base: int
    upper: int
    factor: float


def high_terms(request: int, limit: int, setup: NodeSetup) -> HighTerms:
    """Return the terms for a request and limit in bytes.

    The base is the request from 1.27 on. Without a limit the upper bound is the node's capacity minus the
    reserved memory, which counts as 0 if it is unknown.
    """
    all_pods = setup.node.allocatable_memory_bytes
    if all_pods is None:
        all_pods = setup.node.memory_capacity_bytes or 0
    return HighTerms(
        request if setup.release.has(Change.MEMORY_HIGH_ABOVE_REQUEST) else 0,
        limit or all_pods,
        setup.kubelet.memory_throttling_factor or 0.0,
    )


def _memory_high(request: int, limit: int, setup: NodeSetup) -> int | None:
    """Return the throttling threshold, or None if it is not set.

    From 1.27 it is floored to a page. The order of the floating point operations is the kubelet's.
    """
    node, release = setup.node, setup.release
    _, upper, factor = high_terms(request, limit, setup)
    if setup.kubelet.memory_throttling_factor is None or upper <= 0:
        return None
    if not release.has(Change.MEMORY_HIGH_ABOVE_REQUEST):
        high = from_float(float(upper) * factor)
        return high if high > request else None
    throttles_without_request = release.has(Change.MEMORY_HIGH_NEEDS_FACTOR) and request == 0
    if request == limit and not throttles_without_request:
        return None
    middle = float(request) + (float(upper) - float(request)) * float(factor)
    page = node.page_size_bytes
    high = wrap(from_float(math.floor(middle) / float(page)) * page)
    return high if high > max(request, 0) else None


def _is_tiered(setup: NodeSetup) -> bool:
    return setup.kubelet.memory_reservation_policy is MemoryReservationPolicy.TIERED


def _protection(qos: QosClass) -> str:
    """Return the file of a class: Guaranteed memory is never reclaimed, other memory only under pressure."""
    return MEMORY_MIN if qos is QosClass.GUARANTEED else MEMORY_LOW
