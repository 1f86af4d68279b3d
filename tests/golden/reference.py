"""What the golden vectors hold and kubectl_qos does not need: translations of the real code, for comparing.

Sources: pkg/kubelet/eviction/helpers.go, pkg/kubelet/cm (helpers_linux.go, cgroup_manager_linux.go,
node_container_manager_linux.go, qos_container_manager_linux.go), kuberuntime_sandbox_linux.go,
opencontainers/cgroups utils.go.
"""

import math
import posixpath
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, threshold_bytes
from kubectl_qos.k8s.objects import CPU, EPHEMERAL_STORAGE, MEMORY, Pod, Volume
from kubectl_qos.k8s.quantity import ZERO, Quantity, in_bytes, truncating_div
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import Totals, eviction_request, pod_limits, pod_requests
from kubectl_qos.qos.cgroup.names import CgroupName, class_name, to_systemd
from kubectl_qos.qos.cgroup.pod import linux_resources, pod_has_exclusive_cpus
from kubectl_qos.qos.cgroup.tree import CgroupWrite, unbounded_hugepages
from kubectl_qos.qos.cgroup.values import (
    MAX_SHARES,
    MAX_WEIGHT,
    MIN_SHARES,
    SHARES_PER_CPU,
    CgroupSettings,
    CriResources,
)
from kubectl_qos.qos.eviction import eviction_key, eviction_ranks
from kubectl_qos.qos.qos_class import QosClass


class PodStats(NamedTuple):
    """What the kubelet measured of a pod."""

    working_set_bytes: int
    processes: int
    container_disk_bytes: int
    volume_disk_bytes: Mapping[str, int]


def eviction_positions(
    signal: str, pods: Sequence[Pod], stats: Sequence[PodStats | None], release: Release
) -> list[int]:
    """Each pod's place in the order of eviction for memory, pid or disk; equal pods share one."""
    if signal == "memory":
        requests = [eviction_request(pod, release, MEMORY) for pod in pods]
        return eviction_ranks(pods, [one and one.working_set_bytes for one in stats], requests)
    keys: list[tuple[int, ...]] = []
    for pod, one in zip(pods, stats, strict=True):
        priority = pod.spec.priority or 0
        if signal == "pid":
            keys.append((priority, 0 if one is None else 1, -one.processes if one is not None else 0))
        else:
            keys.append(
                eviction_key(priority, None if one is None else _disk_over_request(pod, one, release))
            )
    return [1 + sum(other < key for other in keys) for key in keys]


def _disk_over_request(pod: Pod, stats: PodStats, release: Release) -> int:
    local = [volume.name for volume in pod.spec.volumes or () if _is_local(volume)]
    used = stats.container_disk_bytes + sum(stats.volume_disk_bytes.get(name, 0) for name in local)
    return used * 10**9 - eviction_request(pod, release, EPHEMERAL_STORAGE).nano


def _is_local(volume: Volume) -> bool:
    disk_empty_dir = volume.empty_dir is not None and volume.empty_dir.medium == ""
    others = (volume.host_path, volume.config_map, volume.git_repo)
    return disk_empty_dir or any(one is not None for one in others)


def sandbox_resources(pod: Pod, qos: QosClass, setup: NodeSetup) -> CriResources:
    """The pod's total without overhead: a hint that runc ignores and VM runtimes size their guest by."""
    requests = pod_requests(pod, setup.release, overhead=False)
    limits = pod_limits(pod, setup.release, overhead=False)
    return linux_resources(
        requests.get(CPU),
        limits.get(CPU, ZERO),
        limits.get(MEMORY, ZERO).value(),
        setup,
        exclusive=pod_has_exclusive_cpus(pod, qos, setup),
    )


def sandbox_overhead(pod: Pod, setup: NodeSetup) -> CriResources:
    """The RuntimeClass overhead as if it were a container with requests equal to limits."""
    overhead = pod.spec.overhead
    if overhead is None:
        return CriResources()
    cpu, memory = overhead.get(CPU, ZERO), overhead.get(MEMORY, ZERO)
    return linux_resources(cpu, cpu, memory.value(), setup, exclusive=False)


def classes_at_start(node: Node, kubelet: Kubelet) -> list[CgroupWrite]:
    """The class cgroups as a starting kubelet creates them, before it knows any pod."""
    unbounded = unbounded_hugepages(node)
    return [
        CgroupWrite(
            class_name(QosClass.BEST_EFFORT, kubelet),
            CgroupSettings(cpu_shares=MIN_SHARES, hugepage_limits=unbounded),
        ),
        CgroupWrite(class_name(QosClass.BURSTABLE, kubelet), CgroupSettings(hugepage_limits=unbounded)),
    ]


def reservation(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """Reserved plus the hard eviction thresholds (`GetNodeAllocatableReservation`)."""
    thresholds = {}
    for signal, name in (("memory.available", MEMORY), ("nodefs.available", EPHEMERAL_STORAGE)):
        text = kubelet.eviction_hard.get(signal)
        if text is not None and text not in {"0%", "100%"}:
            thresholds[name] = in_bytes(threshold_bytes(text, capacity.get(name, ZERO).value()))
    totals = {
        name: ZERO
        + kubelet.system_reserved.get(name, ZERO)
        + kubelet.kube_reserved.get(name, ZERO)
        + thresholds.get(name, ZERO)
        for name in capacity
    }
    return {name: total for name, total in totals.items() if not total.is_zero}


def systemd_unit(name: CgroupName) -> tuple[str, str]:
    """The parent slice and the slice itself, as systemctl knows them."""
    directory, unit = posixpath.split(to_systemd(name))
    return posixpath.basename(directory) if directory != "/" else "-.slice", unit


def shares_to_weight_linear_runtime(shares: int) -> int:
    """cpu.weight as runc up to 1.3.1 and crun up to 1.22 write it: linear in uint64, and 0 stays 0."""
    if shares == 0:
        return 0
    return 1 + (shares - MIN_SHARES) * (MAX_WEIGHT - 1) % (1 << 64) // (MAX_SHARES - MIN_SHARES)


def weight_to_shares(weight: int) -> int:
    """The shares that a kubelet reads back from cpu.weight (`cpuWeightToCPUShares`)."""
    return (weight - 1) * (MAX_SHARES - MIN_SHARES) // (MAX_WEIGHT - 1) + MIN_SHARES


def shares_to_milli(shares: int) -> int:
    """Millicores of cpu.shares, rounded up (`SharesToMilliCPU`)."""
    return math.ceil(shares * 1000 / SHARES_PER_CPU) if shares >= MIN_SHARES else 0


def quota_to_milli(quota_us: int, period_us: int) -> int:
    """Millicores of a quota (`QuotaToMilliCPU`)."""
    return 0 if quota_us == -1 else truncating_div(quota_us * 1000, period_us)
