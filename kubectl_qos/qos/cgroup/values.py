"""Content of cgroup files, for v1 and v2.

`CgroupSettings` is what the kubelet sets on its own cgroups, `CriResources` what it asks of the container
runtime. Names of v1 files begin with their controller. CPU quotas and periods are microseconds.

Sources: pkg/kubelet/cm/cgroup_manager_linux.go (toResources) and helpers_linux.go, opencontainers/cgroups
(fs2, fs, utils.go, systemd/common.go).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from kubectl_qos.k8s.kubelet import CgroupDriver, Node, NodeSetup
from kubectl_qos.k8s.quantity import truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Release
from kubectl_qos.qos.cgroup.memory import named_hugepage_limits

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupSettings:
    """Settings of one kubelet cgroup (ResourceConfig); None: not written. Bytes and microseconds.

    Hugepages are an exception: every size without an entry is limited to 0, as upstream.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_limit_bytes: int | None = None
    pids_limit: int | None = None
    hugepage_limits: dict[int, int] | None = None
    unified: dict[str, str] = field(default_factory=dict)
    cpus: str = ""


@dataclass(frozen=True, slots=True)
class CriResources:
    """A LinuxContainerResources message of the CRI; `unified` has cgroup v2 files by name."""

    cpu_shares: int = 0
    cpu_quota_us: int = 0
    cpu_period_us: int = 0
    memory_limit_bytes: int = 0
    memory_swap_limit_bytes: int = 0
    oom_score_adj: int = 0
    hugepage_limits: dict[str, int] = field(default_factory=dict)
    unified: dict[str, str] = field(default_factory=dict)


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

    Both are microseconds: 133 ms of 100 ms becomes 140 ms. Unlimited and unset pass unchanged.
    """
    if quota_us <= 0:
        return quota_us
    per_second = quota_us * 1_000_000 // period_us
    if per_second % 10_000:
        per_second = (per_second // 10_000 + 1) * 10_000
    return per_second * period_us // 1_000_000


def kubelet_files(settings: CgroupSettings, node: Node, release: Release) -> dict[str, str]:
    """Return files with the content that the kubelet's cgroup library writes at pod, QoS and node level."""
    hugepages = named_hugepage_limits(settings.hugepage_limits or {}, node.hugepage_sizes)
    if node.cgroup_version == 1:
        return _v1_kubelet_files(settings, hugepages, release)
    files = {}
    if settings.cpu_shares is not None:
        files["cpu.weight"] = str(shares_to_weight_linear(settings.cpu_shares))
    files |= _cpu_max(settings.cpu_quota_us or 0, settings.cpu_period_us or 0)
    limit = settings.memory_limit_bytes
    if limit:
        files["memory.max"] = "max" if limit == -1 else str(limit)
    files |= _pids(settings.pids_limit, "", release)
    if settings.cpus:
        files["cpuset.cpus"] = settings.cpus
    files |= _hugetlb(hugepages, "max", "", release)
    return {**files, **settings.unified}


def files_on_node(settings: CgroupSettings, setup: NodeSetup) -> dict[str, str]:
    """Return files of a kubelet cgroup with their content as it reads back on the node.

    This adds systemd's whole percents of CPU, the kernel's whole pages, and defaults of unwritten files.
    """
    node, release = setup.node, setup.release
    is_systemd = setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD
    if is_systemd and settings.cpu_quota_us and release.has(Change.SYSTEMD_QUOTA_IS_WRITTEN):
        quota = systemd_quota(settings.cpu_quota_us, settings.cpu_period_us or _DEFAULT_PERIOD_US)
        settings = replace(settings, cpu_quota_us=quota)
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
    """Return files of the cgroup with the processes; `rounds`: systemd writes them."""
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


def _v1_kubelet_files(
    settings: CgroupSettings, hugepages: dict[str, int], release: Release
) -> dict[str, str]:
    numbers = {
        "cpu/cpu.shares": settings.cpu_shares,
        "cpu/cpu.cfs_period_us": settings.cpu_period_us,
        "cpu/cpu.cfs_quota_us": settings.cpu_quota_us,
        "memory/memory.limit_in_bytes": settings.memory_limit_bytes,
    }
    files = {name: str(number) for name, number in numbers.items() if number}
    files |= _pids(settings.pids_limit, "pids/", release)
    if settings.cpus:
        files["cpuset/cpuset.cpus"] = settings.cpus
    return files | _hugetlb(hugepages, "limit_in_bytes", "hugetlb/", release)


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


def _pids(limit: int | None, folder: str, release: Release) -> dict[str, str]:
    """Return pids.max; libraries up to 1.34 take 0 as unset, newer ones write 1."""
    if limit is None or (limit == 0 and not release.has(Change.PIDS_LIMIT_OPTIONAL)):
        return {}
    return {f"{folder}pids.max": "max" if limit < 0 else str(max(limit, 1))}


def _hugetlb(limits: dict[str, int], suffix: str, folder: str, release: Release) -> dict[str, str]:
    files = {}
    for size, limit in limits.items():
        files[f"{folder}hugetlb.{size}.{suffix}"] = str(limit)
        if release.has(Change.RSVD_HUGEPAGES):
            files[f"{folder}hugetlb.{size}.rsvd.{suffix}"] = str(limit)
    return files


def _limits_hugepages(node: Node) -> bool:
    """Return False for containerd, which by default leaves hugetlb alone (`disable_hugetlb_controller`)."""
    return not node.runtime.startswith("containerd")
