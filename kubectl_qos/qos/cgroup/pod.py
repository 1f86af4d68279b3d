"""The pod's own cgroup: what the kubelet writes there when it creates it, and why.

Sources: pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod), pod_container_manager_linux.go
(EnsureExists). The values are written once; only an in-place resize touches them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import CgroupDriver, NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.resources import (
    Declared,
    Totals,
    declared_limits,
    kubelet_count,
    pod_limits,
    pod_requests,
)
from kubectl_qos.qos.cgroup import cpu
from kubectl_qos.qos.cgroup import memory as hugepages
from kubectl_qos.qos.cgroup import memory as memory_qos
from kubectl_qos.qos.cgroup.container import cfs_period_us, pod_has_exclusive_cpus
from kubectl_qos.qos.cgroup.values import CgroupSettings, in_reading_order, kubelet_files, read_back
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Reason, Rule

UPDATED_IN_PLACE: Final = frozenset(
    {"cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.low"}
    | {"cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes"}
)
"""The files that a resize rewrites in a living pod's cgroup; the others keep what they were created with."""


class PodTotals(NamedTuple):
    """What a pod's cgroup is sized by: its totals, and whether its limits count."""

    requests: Totals
    limits: Totals
    declared: Declared
    exclusive_cpus: bool

    @property
    def cpu_request_milli(self) -> int:
        """Millicores requested in all."""
        return self.requests.get(CPU, ZERO).milli_value()

    @property
    def cpu_limit_milli(self) -> int:
        """Millicores limited to, 0 for none."""
        return self.limits.get(CPU, ZERO).milli_value()

    @property
    def memory_request(self) -> int:
        """Bytes requested in all."""
        return self.requests.get(MEMORY, ZERO).value()

    @property
    def memory_limit(self) -> int:
        """Bytes limited to, 0 for none."""
        return self.limits.get(MEMORY, ZERO).value()


def pod_totals(pod: Pod, qos: QosClass, setup: NodeSetup) -> PodTotals:
    """The totals of a defaulted pod as its kubelet sees them."""
    release = setup.release
    return PodTotals(
        requests=pod_requests(pod, release, count=kubelet_count(release)),
        limits=pod_limits(pod, release),
        declared=declared_limits(pod, release),
        exclusive_cpus=pod_has_exclusive_cpus(pod, qos, setup),
    )


def pod_settings(
    pod: Pod,
    qos: QosClass,
    totals: PodTotals,
    setup: NodeSetup,
) -> CgroupSettings:
    """What the kubelet wants of the pod's cgroup (`ResourceConfigForPod` and the pids limit)."""
    kubelet = setup.kubelet
    unified = {}
    if memory_qos.is_enforced(setup):
        unified = memory_qos.pod_files(qos, totals.memory_request, setup)
    shares = cpu.MIN_SHARES
    quota = period = memory = None
    if qos is not QosClass.BEST_EFFORT:
        shares = cpu.milli_to_shares(totals.cpu_request_milli)
        if qos is QosClass.GUARANTEED or totals.declared.cpu:
            period = kubelet.cpu_cfs_quota_period_us
            quota = -1
            if kubelet.cpu_cfs_quota and not totals.exclusive_cpus:
                quota = cpu.milli_to_quota(totals.cpu_limit_milli, cfs_period_us(setup))
        if qos is QosClass.GUARANTEED or totals.declared.memory:
            memory = totals.memory_limit
    return CgroupSettings(
        cpu_shares=shares,
        cpu_quota_us=quota,
        cpu_period_us=period,
        memory_limit_bytes=memory,
        pids_limit=kubelet.pod_pids_limit if kubelet.pod_pids_limit > 0 else None,
        hugepage_limits=hugepages.pod_limits(pod, totals.requests, setup.release),
        unified=unified,
    )


def files_on_node(settings: CgroupSettings, setup: NodeSetup) -> dict[str, str]:
    """File to content of a kubelet cgroup as it reads back on the node.

    On top of what the kubelet writes: systemd's whole percents of CPU, the kernel's whole pages, and the
    kernel's defaults of the files that a reader looks for.
    """
    node, release = setup.node, setup.release
    systemd = setup.kubelet.cgroup_driver is CgroupDriver.SYSTEMD
    if systemd and settings.cpu_quota_us and release.has(Change.SYSTEMD_QUOTA_IS_WRITTEN):
        period = settings.cpu_period_us or 100_000
        quota = cpu.systemd_quota(settings.cpu_quota_us, period)
        settings = settings.with_quota(quota)
    written = kubelet_files(settings, node, release)
    files = {name: read_back(name, value, node.page_size_bytes) for name, value in written.items()}
    defaults = V1_DEFAULTS if node.cgroup_version == 1 else V2_DEFAULTS
    return in_reading_order({**defaults, **files})


V2_DEFAULTS: Mapping[str, str] = {"cpu.max": "max 100000", "memory.max": "max"}
V1_DEFAULTS: Mapping[str, str] = {"cpu/cpu.cfs_quota_us": "-1"}


def reasons(
    files: Mapping[str, str], totals: PodTotals, qos: QosClass, setup: NodeSetup
) -> dict[str, Reason]:
    """Why each of the pod's files has its content."""
    found: dict[str, Reason] = {}
    for name, value in files.items():
        short = name.rpartition("/")[2]
        if short in {"cpu.weight", "cpu.shares"}:
            inputs: dict[str, object] = {
                "cpu_milli": totals.cpu_request_milli if qos is not QosClass.BEST_EFFORT else 0,
                "shares": cpu.milli_to_shares(totals.cpu_request_milli),
                "curve": "linear",
            }
            found[name] = Reason(Rule.CPU_WEIGHT, value, inputs)
        elif short in {"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}:
            found[name] = _cpu_reason(value, totals, qos, setup)
        elif short in {"memory.max", "memory.limit_in_bytes"}:
            limited = value != "max"
            rule = Rule.MEMORY_LIMIT if limited else Rule.MEMORY_UNLIMITED
            inputs = {
                "limit": totals.memory_limit,
                "declared": totals.declared.memory,
                "page": setup.node.page_size_bytes,
            }
            found[name] = Reason(rule, value, inputs)
        elif short.startswith("hugetlb."):
            found[name] = Reason(Rule.HUGEPAGES, value)
        elif short == "pids.max":
            found[name] = Reason(Rule.PIDS, value, {"limit": setup.kubelet.pod_pids_limit})
        elif short in {"memory.min", "memory.low"}:
            inputs = {"request": totals.memory_request}
            found[name] = Reason(Rule.MEMORY_PROTECTION, value, inputs)
    return found


def _cpu_reason(value: str, totals: PodTotals, qos: QosClass, setup: NodeSetup) -> Reason:
    inputs: dict[str, object] = {
        "cpu_milli": totals.cpu_limit_milli,
        "declared": totals.declared.cpu,
        "period_us": setup.kubelet.cpu_cfs_quota_period_us,
        "enforced": setup.kubelet.cpu_cfs_quota,
    }
    if totals.exclusive_cpus and qos is QosClass.GUARANTEED:
        return Reason(Rule.CPU_EXCLUSIVE, value, inputs)
    if value.startswith("max") or value == "-1":
        return Reason(Rule.CPU_UNLIMITED, value, inputs)
    return Reason(Rule.CPU_QUOTA, value, inputs)
