"""The cgroups above the pods: kubepods, the two class cgroups, and the reserved ones.

Sources: pkg/kubelet/cm/node_container_manager_linux.go and qos_container_manager_linux.go. Three numbers
are called allocatable; here it is capacity minus reserved, the limit of kubepods, with no eviction threshold
taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, Node, NodeSetup, parse_threshold
from kubectl_qos.k8s.objects import CPU, EPHEMERAL_STORAGE, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity, truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, pod_requests
from kubectl_qos.qos.cgroup import cpu
from kubectl_qos.qos.cgroup import memory as hugepages
from kubectl_qos.qos.cgroup import memory as memory_qos
from kubectl_qos.qos.cgroup import names as cgroup_names
from kubectl_qos.qos.cgroup.names import CgroupName
from kubectl_qos.qos.cgroup.values import CgroupSettings
from kubectl_qos.qos.qos_class import QosClass, qos_class

PID: Final = "pid"

PODS: Final = "pods"
SYSTEM_RESERVED: Final = "system-reserved"
KUBE_RESERVED: Final = "kube-reserved"
SYSTEM_RESERVED_COMPRESSIBLE: Final = "system-reserved-compressible"
KUBE_RESERVED_COMPRESSIBLE: Final = "kube-reserved-compressible"


class CgroupWrite(NamedTuple):
    """One cgroup and what the kubelet writes there."""

    name: CgroupName
    settings: CgroupSettings


class Overcommitted(NamedTuple):
    """A resource of which more is reserved than there is; a kubelet refuses to start."""

    resource: str
    reserved: Quantity
    capacity: Quantity


def allocatable(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """Capacity minus reserved, never below zero (`GetNodeAllocatableAbsolute`)."""
    left = {}
    for name, quantity in capacity.items():
        rest = quantity - kubelet.system_reserved.get(name, ZERO)
        rest = rest - kubelet.kube_reserved.get(name, ZERO)
        left[name] = rest if rest.sign >= 0 else Quantity(0, 0, rest.format)
    return left


def reservation(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """What pods cannot have: reserved plus the hard eviction thresholds (`GetNodeAllocatableReservation`)."""
    thresholds = eviction_reservation(capacity, kubelet)
    reserved = {}
    for name in capacity:
        total = ZERO + kubelet.system_reserved.get(name, ZERO)
        total = total + kubelet.kube_reserved.get(name, ZERO) + thresholds.get(name, ZERO)
        if not total.is_zero:
            reserved[name] = total
    return reserved


def overcommitted(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> list[Overcommitted]:
    """What `validateNodeAllocatable` complains of."""
    return [
        Overcommitted(name, reserved, capacity[name])
        for name, reserved in reservation(capacity, kubelet).items()
        if capacity[name] < reserved
    ]


def eviction_reservation(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """The hard thresholds of memory and node disk as amounts (`hardEvictionReservation`)."""
    found = {}
    for signal, name in (
        ("memory.available", MEMORY),
        ("nodefs.available", EPHEMERAL_STORAGE),
    ):
        text = kubelet.eviction_hard.get(signal)
        if text is not None and text not in {"0%", "100%"}:
            found[name] = parse_threshold(text, capacity.get(name, ZERO))
    return found


def kubepods(capacity: Mapping[str, Quantity], cores: int, kubelet: Kubelet, release: Release) -> CgroupWrite:
    """The cgroup of all pods; limited to capacity minus reserved if `pods` is enforced.

    Args:
        capacity: of the node, with `pid` where the kernel's maximum is known.
        cores: how many CPUs the machine has.
        kubelet: its reservations and what it enforces.
        release: of the kubelet.
    """
    enforced = kubelet.cgroups_per_qos and PODS in kubelet.enforce_node_allocatable
    resources = allocatable(capacity, kubelet) if enforced else dict(capacity)
    settings = _of_resources(resources, cores, release)
    return CgroupWrite(cgroup_names.kubepods_name(kubelet), settings)


def reserved(cores: int, kubelet: Kubelet, release: Release) -> list[CgroupWrite]:
    """The kube-reserved and system-reserved cgroups, as far as they are enforced."""
    enforced = kubelet.enforce_node_allocatable
    wanted = [
        (SYSTEM_RESERVED, kubelet.system_reserved_cgroup, kubelet.system_reserved, False),
        (KUBE_RESERVED, kubelet.kube_reserved_cgroup, kubelet.kube_reserved, False),
    ]
    if release.has(Change.RESERVED_COMPRESSIBLE):
        wanted += [
            (
                SYSTEM_RESERVED_COMPRESSIBLE,
                kubelet.system_reserved_cgroup,
                kubelet.system_reserved,
                True,
            ),
            (KUBE_RESERVED_COMPRESSIBLE, kubelet.kube_reserved_cgroup, kubelet.kube_reserved, True),
        ]
    parse = (
        cgroup_names.parse_systemd
        if kubelet.cgroup_driver is CgroupDriver.SYSTEMD
        else cgroup_names.parse_cgroupfs
    )
    writes = []
    for key, path, resources, only_cpu in wanted:
        if key in enforced:
            settings = _of_resources(resources, cores, release, only_cpu=only_cpu)
            if release.enabled(Gate.MEMORY_QOS) and settings.memory_limit_bytes is not None:
                protection = {memory_qos.MEMORY_MIN: str(settings.memory_limit_bytes)}
                settings.unified.update(protection)
            writes.append(CgroupWrite(parse(path), settings))
    return writes


def classes_at_start(node: Node, kubelet: Kubelet) -> list[CgroupWrite]:
    """The class cgroups as a starting kubelet creates them, before it knows any pod."""
    unbounded = _unbounded(node)
    return [
        CgroupWrite(
            cgroup_names.class_name(QosClass.BEST_EFFORT, kubelet),
            CgroupSettings(cpu_shares=cpu.MIN_SHARES, hugepage_limits=unbounded),
        ),
        CgroupWrite(
            cgroup_names.class_name(QosClass.BURSTABLE, kubelet),
            CgroupSettings(hugepage_limits=unbounded),
        ),
    ]


def classes(pods: Iterable[Pod], setup: NodeSetup) -> list[CgroupWrite]:
    """Kubepods and the class cgroups as the kubelet keeps them every minute (`UpdateCgroups`).

    `pods` are the node's pods that have not ended, defaulted.
    """
    kubelet = setup.kubelet
    sums = _sums(pods, setup.release)
    kubepods_unified: dict[str, str] = {}
    burstable_unified: dict[str, str] = {}
    if memory_qos.is_enforced(setup):
        kubepods_unified, burstable_unified = memory_qos.class_files(
            sums.guaranteed_memory, sums.burstable_memory, setup
        )
    burstable_limit, best_effort_limit = _reserved_limits(sums, setup)
    unbounded = _unbounded(setup.node)
    return [
        CgroupWrite(
            cgroup_names.kubepods_name(kubelet),
            CgroupSettings(hugepage_limits=unbounded, unified=kubepods_unified),
        ),
        CgroupWrite(
            cgroup_names.class_name(QosClass.BEST_EFFORT, kubelet),
            CgroupSettings(
                cpu_shares=cpu.MIN_SHARES,
                hugepage_limits=unbounded,
                memory_limit_bytes=best_effort_limit,
            ),
        ),
        CgroupWrite(
            cgroup_names.class_name(QosClass.BURSTABLE, kubelet),
            CgroupSettings(
                cpu_shares=cpu.milli_to_shares(sums.burstable_cpu_milli),
                hugepage_limits=unbounded,
                memory_limit_bytes=burstable_limit,
                unified=burstable_unified,
            ),
        ),
    ]


class _Sums(NamedTuple):
    burstable_cpu_milli: int
    burstable_memory: int
    guaranteed_memory: int


def _sums(pods: Iterable[Pod], release: Release) -> _Sums:
    """Requests by class. The memory sums count pod-level resources even with the gate off, as upstream."""
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
            requested = pod_requests(pod, release).get(CPU, ZERO)
            cpu_milli = wrap(cpu_milli + requested.milli_value())
    return _Sums(cpu_milli, burstable, guaranteed)


def _reserved_limits(sums: _Sums, setup: NodeSetup) -> tuple[int | None, int | None]:
    """Memory limits of burstable and besteffort under QOSReserved (`setMemoryReserve`)."""
    percent = setup.kubelet.qos_reserved_percent.get(MEMORY)
    available = setup.node.allocatable_memory_bytes
    if percent is None or not available or not setup.release.enabled(Gate.QOS_RESERVED):
        return None, None
    burstable = wrap(available - truncating_div(wrap(sums.guaranteed_memory * percent), 100))
    best_effort = wrap(burstable - truncating_div(wrap(sums.burstable_memory * percent), 100))
    return burstable, best_effort


def _unbounded(node: Node) -> dict[int, int]:
    return {_size_bytes(size): hugepages.UNBOUNDED for size in node.hugepage_sizes}


def _size_bytes(size: str) -> int:
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
    return int(size[:-2]) * units[size[-2:]]


def _of_resources(
    resources: Mapping[str, Quantity], cores: int, release: Release, *, only_cpu: bool = False
) -> CgroupSettings:
    """`getCgroupConfig`: the settings that a resource list stands for."""
    cpus = ""
    if release.has(Change.KUBEPODS_CPUSET):
        cpus = f"0-{cores - 1}" if cores > 1 else "0"
    shares = cpu.milli_to_shares(resources[CPU].milli_value()) if CPU in resources else None
    if only_cpu:
        return CgroupSettings(cpu_shares=shares, cpus=cpus)
    return CgroupSettings(
        cpu_shares=shares,
        memory_limit_bytes=resources[MEMORY].value() if MEMORY in resources else None,
        pids_limit=resources[PID].value() if PID in resources else None,
        hugepage_limits=hugepages.limits_by_size(resources),
        cpus=cpus,
    )
