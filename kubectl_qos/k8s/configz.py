"""A kubelet's configuration as its configz endpoint shows it, decoded into what predictions use.

Source: staging/src/k8s.io/kubelet/config/v1beta1/types.go (KubeletConfiguration).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubectl_qos.k8s.kubelet import (
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Origin,
    duration_us,
    with_origin,
)
from kubectl_qos.k8s.objects import resource_list
from kubectl_qos.k8s.releases import Release


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


def kubelet_of(configz: Mapping[str, Any], release: Release) -> Kubelet:
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
        cpu_cfs_quota_period_us=duration_us(found.cpu_cfs_quota_period),
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
