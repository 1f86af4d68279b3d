"""What the kubelet asks of the container runtime (LinuxContainerResources of the CRI), and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_qos.k8s.kubelet import DEFAULT_CFS_PERIOD_US, NodeSetup
from kubectl_qos.k8s.objects import CPU, EMPTY_RESOURCES, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import has_pod_level_resources, pod_limits, pod_requests
from kubectl_qos.qos.cgroup import cpu
from kubectl_qos.qos.cgroup import memory as hugepages
from kubectl_qos.qos.cgroup import memory as memory_qos
from kubectl_qos.qos.cgroup import memory as swap
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Reason, Rule


@dataclass(frozen=True, slots=True)
class CriResources:
    """One LinuxContainerResources message; `unified` are cgroup v2 files by name."""

    cpu_shares: int = 0
    cpu_quota_us: int = 0
    cpu_period_us: int = 0
    memory_limit_bytes: int = 0
    memory_swap_limit_bytes: int = 0
    oom_score_adj: int = 0
    hugepage_limits: dict[str, int] = field(default_factory=dict)
    unified: dict[str, str] = field(default_factory=dict)


def container_resources(
    pod: Pod,
    container: Container,
    qos: QosClass,
    adj: int,
    setup: NodeSetup,
) -> CriResources:
    """What is asked for one container of a defaulted pod."""
    cpu_limit = effective_limit(pod, container, CPU, setup.release)
    memory_limit = effective_limit(pod, container, MEMORY, setup.release).value()
    exclusive = has_exclusive_cpus(container, qos, setup)
    base = _calculate(
        container.requests.get(CPU),
        cpu_limit,
        memory_limit,
        setup,
        exclusive=exclusive,
    )
    unified = dict(base.unified)
    swapping = swap.container_swap(pod, container, qos, memory_limit, setup)
    if swapping.swap_max is not None:
        unified[swap.MEMORY_SWAP_MAX] = swapping.swap_max
    if memory_qos.is_enforced(setup):
        unified |= memory_qos.container_files(
            qos,
            container.requests.get(MEMORY, ZERO).value(),
            container.limits.get(MEMORY, ZERO).value(),
            setup,
        )
    return CriResources(
        cpu_shares=base.cpu_shares,
        cpu_quota_us=base.cpu_quota_us,
        cpu_period_us=base.cpu_period_us,
        memory_limit_bytes=memory_limit,
        memory_swap_limit_bytes=swapping.memory_and_swap,
        oom_score_adj=adj,
        hugepage_limits=hugepages.container_limits(pod, container, setup.node.hugepage_sizes, setup.release),
        unified=unified,
    )


def sandbox_resources(pod: Pod, qos: QosClass, setup: NodeSetup) -> CriResources:
    """The pod's total without overhead: a hint that runc ignores and VM runtimes size their guest by."""
    requests = pod_requests(pod, setup.release, overhead=False)
    limits = pod_limits(pod, setup.release, overhead=False)
    return _calculate(
        requests.get(CPU),
        limits.get(CPU, ZERO),
        limits.get(MEMORY, ZERO).value(),
        setup,
        exclusive=pod_has_exclusive_cpus(pod, qos, setup),
    )


def sandbox_overhead(pod: Pod, setup: NodeSetup) -> CriResources:
    """The RuntimeClass overhead as if it were a container with requests equal to limits."""
    if pod.spec.overhead is None:
        return CriResources()
    overhead = pod.spec.overhead
    overhead_cpu = overhead.get(CPU, ZERO)
    return _calculate(
        overhead_cpu,
        overhead_cpu,
        overhead.get(MEMORY, ZERO).value(),
        setup,
        exclusive=False,
    )


def effective_limit(pod: Pod, container: Container, name: str, release: Release) -> Quantity:
    """The container's limit; where it has none, from 1.32 on, the pod-level limit."""
    own = container.limits.get(name, ZERO)
    if not own.is_zero or not (
        release.has(Change.POD_LEVEL_LIMIT_FALLBACK)
        and release.enabled(Gate.POD_LEVEL_RESOURCES)
        and has_pod_level_resources(pod, release)
        and pod.spec.resources is not None
    ):
        return own
    return (pod.spec.resources.limits or EMPTY_RESOURCES).get(name, ZERO)


def has_exclusive_cpus(container: Container, qos: QosClass, setup: NodeSetup) -> bool:
    """Whether the container owns whole CPUs and so runs without a quota (1.33 and later).

    Under the static CPU manager that is a Guaranteed pod's container with a whole number of CPUs.
    """
    kubelet = setup.kubelet
    if not setup.release.enabled(Gate.NO_QUOTA_WITH_EXCLUSIVE_CPUS):
        return False
    if kubelet.exclusive_cpu_containers is not None:
        return container.name in kubelet.exclusive_cpu_containers
    if kubelet.cpu_manager_policy != "static" or qos is not QosClass.GUARANTEED:
        return False
    requested = container.requests.get(CPU, ZERO)
    return requested.sign > 0 and requested.value() * 1000 == requested.milli_value()


def pod_has_exclusive_cpus(pod: Pod, qos: QosClass, setup: NodeSetup) -> bool:
    """Whether any container of the pod does; with pod-level resource managers, whether all do."""
    release = setup.release
    containers = (*pod.init_containers, *pod.containers)
    owned = [has_exclusive_cpus(container, qos, setup) for container in containers]
    if release.enabled(Gate.POD_LEVEL_RESOURCE_MANAGERS) and has_pod_level_resources(pod, release):
        return bool(owned) and all(owned)
    return any(owned)


def sends_oom_group(setup: NodeSetup) -> bool:
    """Whether memory.oom.group is set, so that the kernel kills a container whole."""
    release = setup.release
    if setup.node.cgroup_version == 1 or not release.has(Change.MEMORY_OOM_GROUP):
        return False
    return not (release.has(Change.SINGLE_PROCESS_OOM_KILL) and setup.kubelet.single_process_oom_kill)


def cfs_period_us(setup: NodeSetup) -> int:
    """The period that quotas are computed with: 100 ms unless the gate allows another."""
    if setup.release.enabled(Gate.CUSTOM_CFS_QUOTA_PERIOD):
        return setup.kubelet.cpu_cfs_quota_period_us
    return DEFAULT_CFS_PERIOD_US


def _calculate(
    cpu_request: Quantity | None,
    cpu_limit: Quantity,
    memory_limit: int,
    setup: NodeSetup,
    *,
    exclusive: bool,
) -> CriResources:
    """`calculateLinuxResources`: shares, quota, memory limit and the kill unit."""
    takes_limit = cpu_request is None
    if not setup.release.has(Change.MISSING_CPU_REQUEST_TAKES_LIMIT):
        takes_limit = (cpu_request is None or cpu_request.is_zero) and not cpu_limit.is_zero
    shares_of = cpu_limit if takes_limit or cpu_request is None else cpu_request
    quota = period = 0
    if setup.kubelet.cpu_cfs_quota:
        period = cfs_period_us(setup)
        quota = -1 if exclusive else cpu.milli_to_quota(cpu_limit.milli_value(), period)
    return CriResources(
        cpu_shares=cpu.milli_to_shares(shares_of.milli_value()),
        cpu_quota_us=quota,
        cpu_period_us=period,
        memory_limit_bytes=memory_limit,
        unified={"memory.oom.group": "1"} if sends_oom_group(setup) else {},
    )


def reasons(
    files: Mapping[str, str],
    pod: Pod,
    container: Container,
    asked: CriResources,
    setup: NodeSetup,
) -> dict[str, Reason]:
    """File name to reason, for the files of `container_files`."""
    found: dict[str, Reason] = {}
    for name, value in files.items():
        short = name.rpartition("/")[2]
        if short in {"cpu.weight", "cpu.shares"}:
            requested = container.requests.get(CPU)
            inputs: dict[str, object] = {
                "cpu_milli": None if requested is None else requested.milli_value(),
                "shares": asked.cpu_shares,
                "curve": "quadratic" if setup.node.oci_runtime.has_quadratic_weight else "linear",
            }
            found[name] = Reason(Rule.CPU_WEIGHT, value, inputs)
        elif short in {"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}:
            found[name] = _cpu_reason(value, pod, container, asked, setup)
        elif short in {"memory.max", "memory.limit_in_bytes"}:
            own = not container.limits.get(MEMORY, ZERO).is_zero
            rule = Rule.MEMORY_UNLIMITED if value == "max" else Rule.MEMORY_LIMIT
            limit = {"limit": asked.memory_limit_bytes, "own": own, "page": setup.node.page_size_bytes}
            found[name] = Reason(rule, value, limit)
        else:
            found[name] = _other_reason(short, value, container)
    return found


def _cpu_reason(
    value: str,
    pod: Pod,
    container: Container,
    asked: CriResources,
    setup: NodeSetup,
) -> Reason:
    limit = effective_limit(pod, container, CPU, setup.release)
    inputs: dict[str, object] = {
        "cpu_milli": limit.milli_value(),
        "own": not container.limits.get(CPU, ZERO).is_zero,
        "period_us": asked.cpu_period_us,
        "enforced": setup.kubelet.cpu_cfs_quota,
    }
    if asked.cpu_quota_us == -1:
        return Reason(Rule.CPU_EXCLUSIVE, value, inputs)
    if value.startswith("max") or value == "-1":
        return Reason(Rule.CPU_UNLIMITED, value, inputs)
    return Reason(Rule.CPU_QUOTA, value, inputs)


def _other_reason(name: str, value: str, container: Container) -> Reason:
    if name == "memory.oom.group":
        return Reason(Rule.MEMORY_OOM_GROUP, value)
    if name.startswith("hugetlb."):
        return Reason(Rule.HUGEPAGES, value)
    request = container.requests.get(MEMORY, ZERO).value()
    if name in {"memory.swap.max", "memory.memsw.limit_in_bytes"}:
        return Reason(_swap_rule(name, value), value, {"request": request})
    if name == "memory.high":
        limit = container.limits.get(MEMORY, ZERO).value()
        return Reason(Rule.MEMORY_HIGH, value, {"request": request, "limit": limit})
    return Reason(Rule.MEMORY_PROTECTION, value, {"request": request})


def _swap_rule(name: str, value: str) -> Rule:
    """In cgroup v1 memory and swap have one limit, which is that of memory where there is no swap."""
    if value in {"max", "-1"}:
        return Rule.SWAP_UNLIMITED
    limited = name == "memory.swap.max" and value != "0"
    return Rule.SWAP_SHARE if limited else Rule.SWAP_NONE
