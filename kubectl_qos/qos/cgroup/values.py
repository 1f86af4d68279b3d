"""What is written into cgroup files, from settings to `file = value`, for v1 and v2.

`CgroupSettings` is what the kubelet wants of a cgroup, whatever the version (its ResourceConfig);
`kubelet_files` what libcontainer then writes for pod, QoS and node level, and `container_files` what the
OCI runtime writes for a container.

Sources: pkg/kubelet/cm/cgroup_manager_linux.go (toResources), opencontainers/cgroups fs2 and fs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from kubectl_qos.k8s.kubelet import CgroupDriver, Node, NodeSetup
from kubectl_qos.k8s.releases import Change, Release
from kubectl_qos.qos.cgroup import cpu
from kubectl_qos.qos.cgroup import memory as hugepages
from kubectl_qos.qos.cgroup.container import CriResources


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupSettings:
    """What the kubelet wants of one cgroup; None is not touched. Bytes and microseconds.

    Hugepages are the exception: every size that is not named is limited to 0, as upstream.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_limit_bytes: int | None = None
    pids_limit: int | None = None
    hugepage_limits: dict[int, int] | None = None
    unified: dict[str, str] = field(default_factory=dict)
    cpus: str = ""

    def with_quota(self, quota_us: int) -> CgroupSettings:
        """The same with another CPU quota."""
        return replace(self, cpu_quota_us=quota_us)


def kubelet_files(settings: CgroupSettings, node: Node, release: Release) -> dict[str, str]:
    """File to content as the kubelet's cgroup library writes them; v1 files carry their controller."""
    limits = hugepages.by_file_name(settings.hugepage_limits or {}, node.hugepage_sizes)
    if node.cgroup_version == 1:
        return _v1_files(settings, limits, release)
    files = {}
    if settings.cpu_shares is not None:
        files["cpu.weight"] = str(cpu.shares_to_weight_linear(settings.cpu_shares))
    files |= _cpu_max(settings.cpu_quota_us or 0, settings.cpu_period_us or 0)
    if settings.memory_limit_bytes:
        files["memory.max"] = _number(settings.memory_limit_bytes)
    files |= _pids(settings.pids_limit, "", release)
    if settings.cpus:
        files["cpuset.cpus"] = settings.cpus
    files |= _hugetlb(limits, "max", "", release)
    return {**files, **settings.unified}


def _v1_files(settings: CgroupSettings, limits: dict[str, int], release: Release) -> dict[str, str]:
    files = {}
    if settings.cpu_shares:
        files["cpu/cpu.shares"] = str(settings.cpu_shares)
    if settings.cpu_period_us:
        files["cpu/cpu.cfs_period_us"] = str(settings.cpu_period_us)
    if settings.cpu_quota_us:
        files["cpu/cpu.cfs_quota_us"] = str(settings.cpu_quota_us)
    if settings.memory_limit_bytes:
        files["memory/memory.limit_in_bytes"] = str(settings.memory_limit_bytes)
    files |= _pids(settings.pids_limit, "pids/", release)
    if settings.cpus:
        files["cpuset/cpuset.cpus"] = settings.cpus
    return files | _hugetlb(limits, "limit_in_bytes", "hugetlb/", release)


def _cpu_max(quota_us: int, period_us: int) -> dict[str, str]:
    if not quota_us and not period_us:
        return {}
    quota = str(quota_us) if quota_us > 0 else "max"
    return {"cpu.max": f"{quota} {period_us or 100_000}"}


def _number(value: int) -> str:
    return "max" if value == -1 else str(value)


def _pids(limit: int | None, folder: str, release: Release) -> dict[str, str]:
    """pids.max; libraries up to the one of 1.34 take 0 as unset, newer ones write 1."""
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


def container_files(asked: CriResources, setup: NodeSetup) -> dict[str, str]:
    """File to content in the container's cgroup, as read back after the runtime has written them.

    The systemd driver's whole percents and the kernel's whole pages are applied.
    """
    node = setup.node
    runtime = node.oci_runtime
    page = node.page_size_bytes
    if node.cgroup_version == 1:
        return _v1_container_files(asked, node)
    weight = cpu.shares_to_weight_quadratic if runtime.has_quadratic_weight else cpu.shares_to_weight_linear
    files = {"cpu.weight": str(weight(asked.cpu_shares))}
    quota = asked.cpu_quota_us
    if setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD and runtime.rounds_quota:
        quota = cpu.systemd_quota(quota, asked.cpu_period_us)
    files |= _cpu_max(quota, asked.cpu_period_us) or {"cpu.max": "max 100000"}
    limit = asked.memory_limit_bytes
    files["memory.max"] = str(limit // page * page) if limit else "max"
    for size, pages in asked.hugepage_limits.items():
        files[f"hugetlb.{size}.max"] = str(pages) if _limits_hugepages(node) else "max"
    for name, value in asked.unified.items():
        files[name] = read_back(name, value, page)
    return in_reading_order(files)


def _v1_container_files(asked: CriResources, node: Node) -> dict[str, str]:
    page = node.page_size_bytes
    files = {"cpu/cpu.shares": str(asked.cpu_shares)}
    if asked.cpu_period_us:
        files["cpu/cpu.cfs_period_us"] = str(asked.cpu_period_us)
    files["cpu/cpu.cfs_quota_us"] = str(asked.cpu_quota_us or -1)
    if asked.memory_limit_bytes:
        files["memory/memory.limit_in_bytes"] = str(asked.memory_limit_bytes // page * page)
    if asked.memory_swap_limit_bytes:
        swap = asked.memory_swap_limit_bytes
        total = swap if swap < 0 else swap // page * page
        files["memory/memory.memsw.limit_in_bytes"] = str(total)
    if _limits_hugepages(node):
        for size, limit in asked.hugepage_limits.items():
            files[f"hugetlb/hugetlb.{size}.limit_in_bytes"] = str(limit)
    return files


def _limits_hugepages(node: Node) -> bool:
    """Containerd leaves hugetlb alone by default (`disable_hugetlb_controller`): the pod's limit rules."""
    return not node.runtime.startswith("containerd")


_PAGED = frozenset(
    {"memory.max", "memory.high", "memory.min", "memory.low", "memory.swap.max", "memory.limit_in_bytes"}
)


_FIRST = (
    "cpu.weight",
    "cpu.shares",
    "cpu.max",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "memory.max",
    "memory.limit_in_bytes",
)


def in_reading_order(files: Mapping[str, str]) -> dict[str, str]:
    """CPU first, then memory, then the rest by name: the order that a reader looks for."""
    return {name: files[name] for name in sorted(files, key=_place)}


@cache
def _place(name: str) -> tuple[int, bool, str]:
    short = name.rpartition("/")[2]
    known = _FIRST.index(short) if short in _FIRST else len(_FIRST)
    return known, not short.startswith("memory."), short


def read_back(name: str, value: str, page_size_bytes: int) -> str:
    """The content of a file after the kernel took it: byte limits are cut to whole pages."""
    if name.rpartition("/")[2] in _PAGED and value.isdigit():
        return str(int(value) // page_size_bytes * page_size_bytes)
    return value
