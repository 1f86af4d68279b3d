"""The cgroups above the pods: kubepods, the two class cgroups, and the reserved ones.

Sources: pkg/kubelet/cm/node_container_manager_linux.go and qos_container_manager_linux.go. Three numbers are
called allocatable; here it is capacity minus reserved, the limit of kubepods, before eviction thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity, truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, pod_requests
from kubectl_qos.qos.cgroup import names
from kubectl_qos.qos.cgroup.memory import MEMORY_MIN, class_memory_qos, has_memory_qos, hugepage_limits
from kubectl_qos.qos.cgroup.values import MIN_SHARES, CgroupSettings, milli_to_shares
from kubectl_qos.qos.qos_class import QosClass, qos_class

PID: Final = "pid"
"""The resource of which the kernel's maximum of process IDs is the capacity."""

PODS: Final = "pods"
SYSTEM_RESERVED: Final = "system-reserved"
KUBE_RESERVED: Final = "kube-reserved"
_COMPRESSIBLE: Final = "-compressible"
_UNBOUNDED: Final = 1 << 62
_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


class CgroupWrite(NamedTuple):
    """One cgroup and what the kubelet writes there."""

    name: names.CgroupName
    settings: CgroupSettings


def allocatable(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """Capacity minus reserved, never below zero (`GetNodeAllocatableAbsolute`)."""
    left = {}
    for name, quantity in capacity.items():
        rest = quantity - kubelet.system_reserved.get(name, ZERO)
        rest = rest - kubelet.kube_reserved.get(name, ZERO)
        left[name] = rest if rest.sign >= 0 else Quantity(0, 0, rest.format)
    return left


def kubepods(capacity: Mapping[str, Quantity], cores: int, kubelet: Kubelet, release: Release) -> CgroupWrite:
    """The cgroup of all pods; limited to capacity minus reserved if `pods` is enforced.

    Args:
        capacity: of the node, with `pid` where the kernel's maximum is known.
        cores: how many CPUs the machine has.
        kubelet: its reservations and what it enforces.
        release: of the kubelet.
    """
    is_enforced = kubelet.cgroups_per_qos and PODS in kubelet.enforce_node_allocatable
    resources = allocatable(capacity, kubelet) if is_enforced else capacity
    return CgroupWrite(names.kubepods_name(kubelet), _settings(resources, cores, release))


def reserved(cores: int, kubelet: Kubelet, release: Release) -> list[CgroupWrite]:
    """The kube-reserved and system-reserved cgroups, as far as they are enforced."""
    parse = names.parse_systemd if kubelet.cgroup_driver is CgroupDriver.SYSTEMD else names.parse_cgroupfs
    suffixes = ("", _COMPRESSIBLE) if release.has(Change.RESERVED_COMPRESSIBLE) else ("",)
    writes = []
    for suffix in suffixes:
        for key, path, resources in (
            (SYSTEM_RESERVED, kubelet.system_reserved_cgroup, kubelet.system_reserved),
            (KUBE_RESERVED, kubelet.kube_reserved_cgroup, kubelet.kube_reserved),
        ):
            if f"{key}{suffix}" not in kubelet.enforce_node_allocatable:
                continue
            settings = _settings(resources, cores, release, only_cpu=bool(suffix))
            if release.enabled(Gate.MEMORY_QOS) and settings.memory_limit_bytes is not None:
                settings.unified[MEMORY_MIN] = str(settings.memory_limit_bytes)
            writes.append(CgroupWrite(parse(path), settings))
    return writes


def classes(pods: Iterable[Pod], setup: NodeSetup) -> tuple[CgroupWrite, CgroupWrite, CgroupWrite]:
    """Kubepods, besteffort and burstable as the kubelet updates them every minute (`UpdateCgroups`).

    `pods` are the node's pods that have not ended, defaulted.
    """
    kubelet = setup.kubelet
    cpu_milli, burstable_memory, guaranteed_memory = _sum_requests(pods, setup.release)
    kubepods_unified: dict[str, str] = {}
    burstable_unified: dict[str, str] = {}
    if has_memory_qos(setup):
        kubepods_unified, burstable_unified = class_memory_qos(guaranteed_memory, burstable_memory, setup)
    burstable_limit, best_effort_limit = _qos_reserved_limits(burstable_memory, guaranteed_memory, setup)
    unbounded = unbounded_hugepages(setup.node)
    kubepods_settings = CgroupSettings(hugepage_limits=unbounded, unified=kubepods_unified)
    best_effort = CgroupSettings(
        cpu_shares=MIN_SHARES, hugepage_limits=unbounded, memory_limit_bytes=best_effort_limit
    )
    burstable = CgroupSettings(
        cpu_shares=milli_to_shares(cpu_milli),
        hugepage_limits=unbounded,
        memory_limit_bytes=burstable_limit,
        unified=burstable_unified,
    )
    return (
        CgroupWrite(names.kubepods_name(kubelet), kubepods_settings),
        CgroupWrite(names.class_name(QosClass.BEST_EFFORT, kubelet), best_effort),
        CgroupWrite(names.class_name(QosClass.BURSTABLE, kubelet), burstable),
    )


def unbounded_hugepages(node: Node) -> dict[int, int]:
    """The limit of each of the node's page sizes above the pods."""
    return {int(size[:-2]) * _UNITS[size[-2:]]: _UNBOUNDED for size in node.hugepage_sizes}


def _sum_requests(pods: Iterable[Pod], release: Release) -> tuple[int, int, int]:
    """The CPU of Burstable pods in millicores, their memory and that of Guaranteed ones in bytes.

    The memory sums count pod-level resources even with the gate off, as upstream.
    """
    cpu_milli = burstable = guaranteed = 0
    for pod in pods:
        qos = qos_class(pod, release)
        if qos is QosClass.BEST_EFFORT:
            continue
        pod_level = True if release.has(Change.STATUS_RESOURCES) else None
        memory = pod_requests(pod, release, pod_level=pod_level).get(MEMORY, ZERO).value()
        if qos is QosClass.GUARANTEED:
            guaranteed = wrap(guaranteed + memory)
        else:
            burstable = wrap(burstable + memory)
            cpu_milli = wrap(cpu_milli + pod_requests(pod, release).get(CPU, ZERO).milli_value())
    return cpu_milli, burstable, guaranteed


def _qos_reserved_limits(burstable: int, guaranteed: int, setup: NodeSetup) -> tuple[int | None, int | None]:
    """Memory limits of burstable and besteffort under QOSReserved (`setMemoryReserve`)."""
    percent = setup.kubelet.qos_reserved_percent.get(MEMORY)
    available = setup.node.allocatable_memory_bytes
    if percent is None or not available or not setup.release.enabled(Gate.QOS_RESERVED):
        return None, None
    burstable_limit = wrap(available - truncating_div(wrap(guaranteed * percent), 100))
    return burstable_limit, wrap(burstable_limit - truncating_div(wrap(burstable * percent), 100))


def _settings(
    resources: Mapping[str, Quantity], cores: int, release: Release, *, only_cpu: bool = False
) -> CgroupSettings:
    """`getCgroupConfig`: the settings that a resource list stands for."""
    cpus = ""
    if release.has(Change.KUBEPODS_CPUSET):
        cpus = f"0-{cores - 1}" if cores > 1 else "0"
    shares = milli_to_shares(resources[CPU].milli_value()) if CPU in resources else None
    if only_cpu:
        return CgroupSettings(cpu_shares=shares, cpus=cpus)
    return CgroupSettings(
        cpu_shares=shares,
        memory_limit_bytes=resources[MEMORY].value() if MEMORY in resources else None,
        pids_limit=resources[PID].value() if PID in resources else None,
        hugepage_limits=hugepage_limits(resources),
        cpus=cpus,
    )
