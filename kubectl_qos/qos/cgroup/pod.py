"""Cgroups of a pod and its containers: what the kubelet sets or requests from the runtime, with reasons.

Sources: pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod) and pod_container_manager_linux.go
(EnsureExists), pkg/kubelet/kuberuntime/kuberuntime_container_linux.go. Values are written once; only an
in-place resize changes them for a running pod.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import structs

from kubectl_qos.k8s.kubelet import DEFAULT_CFS_PERIOD_US, NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, PIDS, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import (
    Declared,
    Totals,
    declared_limits,
    has_pod_level_resources,
    kubelet_count,
    pod_level_limits,
    pod_limits,
    pod_requests,
)
from kubectl_qos.qos.cgroup import values
from kubectl_qos.qos.cgroup.values import (
    MEMORY_HIGH,
    MEMORY_SWAP_MAX,
    container_hugepage_limits,
    container_memory_qos,
    container_swap,
    has_memory_qos,
    high_terms,
    pod_hugepage_limits,
    pod_memory_qos,
)
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Reason, Rule

UPDATED_IN_PLACE: Final = frozenset(
    {"cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.low"}
    | {"cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes"}
)
"""Files that a resize rewrites in a running pod's cgroup; others keep their values from creation."""

_OOM_GROUP: Final = "memory.oom.group"


class PodTotals(NamedTuple):
    """Totals that size a pod's cgroup, and whether its limits apply."""

    requests: Totals
    limits: Totals
    declared: Declared
    exclusive_cpus: bool

    @property
    def cpu_request_milli(self) -> int:
        """Total CPU request in millicores."""
        return self.requests.get(CPU, ZERO).milli_value()

    @property
    def memory_request(self) -> int:
        """Total memory request in bytes."""
        return self.requests.get(MEMORY, ZERO).value()

    @property
    def memory_limit(self) -> int:
        """Total memory limit in bytes, 0 for none."""
        return self.limits.get(MEMORY, ZERO).value()


def pod_totals(pod: Pod, qos: QosClass, setup: NodeSetup, limit: Quantity | None = None) -> PodTotals:
    """Return the totals of a defaulted pod as the kubelet sees them; `limit` replaces the memory limit."""
    release, limits = setup.release, pod_limits(pod, setup.release)
    return PodTotals(
        requests=pod_requests(pod, release, count=kubelet_count(release)),
        limits=limits if limit is None else {**limits, MEMORY: limit},
        declared=declared_limits(pod, release),
        exclusive_cpus=pod_has_exclusive_cpus(pod, qos, setup),
    )


def pod_settings(pod: Pod, qos: QosClass, totals: PodTotals, setup: NodeSetup) -> values.CgroupSettings:
    """Return the settings of the pod's cgroup (`ResourceConfigForPod` and the pids limit)."""
    kubelet = setup.kubelet
    shares = values.MIN_SHARES
    quota = period = memory = None
    if qos is not QosClass.BEST_EFFORT:
        shares = values.milli_to_shares(totals.cpu_request_milli)
        if qos is QosClass.GUARANTEED or totals.declared.cpu:
            period = kubelet.cpu_cfs_quota_period_us
            quota = -1
            if kubelet.cpu_cfs_quota and not totals.exclusive_cpus:
                quota = values.milli_to_quota(
                    totals.limits.get(CPU, ZERO).milli_value(), _cfs_period_us(setup)
                )
        if qos is QosClass.GUARANTEED or totals.declared.memory:
            memory = totals.memory_limit
    # The smaller of podPidsLimit and the pod's own limit counts
    # (pkg/kubelet/cm/pod_container_manager_linux.go, KEP-6063, cgroup v2).
    limits = [setup.kubelet.pod_pids_limit] if setup.kubelet.pod_pids_limit > 0 else []
    own = pod.spec.resources.limits if pod.spec.resources is not None else None
    if own and PIDS in own and setup.release.enabled(Gate.PER_POD_PID_LIMIT):
        limits += [own[PIDS].value()] if setup.node.cgroup_version != 1 else []
    is_throttled = totals.declared.memory and has_pod_level_resources(pod, setup.release)
    high_limit = totals.memory_limit if is_throttled else 0
    return values.CgroupSettings(
        cpu_shares=shares,
        cpu_quota_us=quota,
        cpu_period_us=period,
        memory_limit_bytes=memory,
        pids_limit=min(limits, default=None),
        hugepage_limits=pod_hugepage_limits(pod, totals.requests, setup.release),
        unified=pod_memory_qos(qos, totals.memory_request, high_limit, setup)
        if has_memory_qos(setup)
        else {},
    )


def container_resources(
    pod: Pod, container: Container, qos: QosClass, adj: int, setup: NodeSetup
) -> values.CriResources:
    """Return the CRI resources of one container of a defaulted pod."""
    memory_limit = _effective_limit(pod, container, MEMORY, setup.release).value()
    base = linux_resources(
        container.requests.get(CPU),
        _effective_limit(pod, container, CPU, setup.release),
        memory_limit,
        setup,
        exclusive=_has_exclusive_cpus(container, qos, setup),
    )
    unified = dict(base.unified)
    swap = container_swap(pod, container, qos, memory_limit, setup)
    if swap.swap_max is not None:
        unified[MEMORY_SWAP_MAX] = swap.swap_max
    if has_memory_qos(setup):
        request = container.requests.get(MEMORY, ZERO).value()
        unified |= container_memory_qos(qos, request, _throttling_limit(pod, container, setup.release), setup)
    return structs.replace(
        base,
        memory_swap_limit_bytes=swap.memory_and_swap,
        oom_score_adj=adj,
        hugepage_limits=container_hugepage_limits(pod, container, setup.node.hugepage_sizes, setup.release),
        unified=unified,
    )


def linux_resources(
    cpu_request: Quantity | None, cpu_limit: Quantity, memory_limit: int, setup: NodeSetup, *, exclusive: bool
) -> values.CriResources:
    """Return shares, quota, memory limit and memory.oom.group (`calculateLinuxResources`)."""
    takes_limit = cpu_request is None
    if not setup.release.has(Change.MISSING_CPU_REQUEST_TAKES_LIMIT):
        takes_limit = (cpu_request is None or cpu_request.is_zero) and not cpu_limit.is_zero
    counted = cpu_limit if takes_limit or cpu_request is None else cpu_request
    quota = period = 0
    if setup.kubelet.cpu_cfs_quota:
        period = _cfs_period_us(setup)
        quota = -1 if exclusive else values.milli_to_quota(cpu_limit.milli_value(), period)
    return values.CriResources(
        cpu_shares=values.milli_to_shares(counted.milli_value()),
        cpu_quota_us=quota,
        cpu_period_us=period,
        memory_limit_bytes=memory_limit,
        unified={_OOM_GROUP: "1"} if sets_oom_group(setup) else {},
    )


def sets_oom_group(setup: NodeSetup) -> bool:
    """Return whether memory.oom.group is set, so that the kernel kills all processes of a container."""
    release = setup.release
    if setup.node.cgroup_version == 1 or not release.has(Change.MEMORY_OOM_GROUP):
        return False
    return not (release.has(Change.SINGLE_PROCESS_OOM_KILL) and setup.kubelet.single_process_oom_kill)


def pod_has_exclusive_cpus(pod: Pod, qos: QosClass, setup: NodeSetup) -> bool:
    """Return whether any container has exclusive CPUs; with pod-level resource managers, whether all do."""
    release = setup.release
    containers = (*pod.init_containers, *pod.containers)
    exclusive = [_has_exclusive_cpus(container, qos, setup) for container in containers]
    if release.enabled(Gate.POD_LEVEL_RESOURCE_MANAGERS) and has_pod_level_resources(pod, release):
        return bool(exclusive) and all(exclusive)
    return any(exclusive)


def _has_exclusive_cpus(container: Container, qos: QosClass, setup: NodeSetup) -> bool:
    """Return whether the container has exclusive CPUs, and so no quota (1.33 and later).

    This takes the static CPU manager, a Guaranteed pod and a whole number of CPUs.
    """
    kubelet = setup.kubelet
    if not setup.release.enabled(Gate.NO_QUOTA_WITH_EXCLUSIVE_CPUS):
        return False
    if kubelet.exclusive_cpu_containers is not None:
        return container.name in kubelet.exclusive_cpu_containers
    if kubelet.cpu_manager_policy != "static" or qos is not QosClass.GUARANTEED:
        return False
    request = container.requests.get(CPU, ZERO)
    return request.sign > 0 and request.value() * 1000 == request.milli_value()


def _effective_limit(pod: Pod, container: Container, name: str, release: Release) -> Quantity:
    """Return the container's limit, or from 1.32 on the pod-level limit if it has none."""
    own = container.limits.get(name, ZERO)
    if own.is_zero and release.has(Change.POD_LEVEL_LIMIT_FALLBACK):
        return pod_level_limits(pod, release).get(name, ZERO)
    return own


def _throttling_limit(pod: Pod, container: Container, release: Release) -> int:
    """Return the limit in bytes from which memory.high is computed: until 1.36 only the container's own."""
    if release.has(Change.POD_LEVEL_MEMORY_HIGH):
        return _effective_limit(pod, container, MEMORY, release).value()
    return container.limits.get(MEMORY, ZERO).value()


def _cfs_period_us(setup: NodeSetup) -> int:
    """Return the period of quotas in microseconds: 100 ms unless the gate allows another."""
    if setup.release.enabled(Gate.CUSTOM_CFS_QUOTA_PERIOD):
        return setup.kubelet.cpu_cfs_quota_period_us
    return DEFAULT_CFS_PERIOD_US


_Inputs = Mapping[Rule, Mapping[str, object]]
"""Inputs of the reasons, by rule; others have none."""


def pod_reasons(
    files: Mapping[str, str], totals: PodTotals, qos: QosClass, setup: NodeSetup
) -> dict[str, Reason]:
    """Return the reason for each of the pod's files."""
    kubelet, page, request = setup.kubelet, setup.node.page_size_bytes, {"request": totals.memory_request}
    cpu_milli = totals.cpu_request_milli if qos is not QosClass.BEST_EFFORT else 0
    inputs: _Inputs = {
        Rule.CPU_WEIGHT: {
            "cpu_milli": cpu_milli,
            "shares": values.milli_to_shares(cpu_milli),
            "curve": "linear",
        },
        Rule.CPU_QUOTA: {
            "cpu_milli": totals.limits.get(CPU, ZERO).milli_value(),
            "declared": totals.declared.cpu,
            "period_us": kubelet.cpu_cfs_quota_period_us,
            "enforced": kubelet.cpu_cfs_quota,
        },
        Rule.MEMORY_LIMIT: {"limit": totals.memory_limit, "declared": totals.declared.memory, "page": page},
        Rule.MEMORY_PROTECTION: request,
        Rule.SWAP_SHARE: request,
        Rule.MEMORY_HIGH: _high_inputs(totals.memory_request, totals.memory_limit, setup),
        Rule.PIDS: {"limit": kubelet.pod_pids_limit},
    }
    is_exclusive = totals.exclusive_cpus and qos is QosClass.GUARANTEED
    return {name: _reason(name, value, inputs, is_exclusive=is_exclusive) for name, value in files.items()}


def container_reasons(
    files: Mapping[str, str],
    pod: Pod,
    container: Container,
    resources: values.CriResources,
    setup: NodeSetup,
    *,
    is_scope: bool,
) -> dict[str, Reason]:
    """Return the reason for each of the container's files; `is_scope`: processes are in a cgroup below."""
    node, limits, cpu_request = setup.node, container.limits, container.requests.get(CPU)
    cpu_limit = _effective_limit(pod, container, CPU, setup.release).milli_value()
    memory_request = container.requests.get(MEMORY, ZERO).value()
    inputs: _Inputs = {
        Rule.CPU_WEIGHT: {
            "cpu_milli": None if cpu_request is None else cpu_request.milli_value(),
            "limit_milli": cpu_limit if cpu_request is None else 0,
            "shares": resources.cpu_shares,
            "curve": "quadratic" if node.oci_runtime.has_quadratic_weight else "linear",
        },
        Rule.CPU_QUOTA: {
            "cpu_milli": cpu_limit,
            "own": not limits.get(CPU, ZERO).is_zero,
            "period_us": resources.cpu_period_us,
            "enforced": setup.kubelet.cpu_cfs_quota,
        },
        Rule.MEMORY_LIMIT: {
            "limit": resources.memory_limit_bytes,
            "own": not limits.get(MEMORY, ZERO).is_zero,
            "page": node.page_size_bytes,
        },
        Rule.MEMORY_PROTECTION: {"request": memory_request},
        Rule.SWAP_SHARE: {"request": memory_request},
        Rule.MEMORY_HIGH: _high_inputs(
            memory_request, _throttling_limit(pod, container, setup.release), setup
        ),
        Rule.PIDS: {"limit": setup.kubelet.pod_pids_limit},
    }
    is_exclusive = resources.cpu_quota_us == -1
    reasons = {name: _reason(name, value, inputs, is_exclusive=is_exclusive) for name, value in files.items()}
    if is_scope and MEMORY_SWAP_MAX in files:
        reasons[MEMORY_SWAP_MAX] = Reason(Rule.SWAP_OF_SCOPE, files[MEMORY_SWAP_MAX])
    return reasons


def _high_inputs(request: int, limit: int, setup: NodeSetup) -> Mapping[str, object]:
    return {"request": request, "limit": limit, **high_terms(request, limit, setup)._asdict()}


_RULES: Final = {
    **dict.fromkeys(("cpu.weight", "cpu.shares"), Rule.CPU_WEIGHT),
    **dict.fromkeys(("cpu.max", "cpu.cfs_quota_us"), Rule.CPU_QUOTA),
    "cpu.cfs_period_us": Rule.CPU_PERIOD,
    **dict.fromkeys(("memory.max", "memory.limit_in_bytes"), Rule.MEMORY_LIMIT),
    # In cgroup v1, memory and swap share a limit: without swap it is the memory limit.
    MEMORY_SWAP_MAX: Rule.SWAP_SHARE,
    "memory.memsw.limit_in_bytes": Rule.SWAP_NONE,
    MEMORY_HIGH: Rule.MEMORY_HIGH,
    _OOM_GROUP: Rule.MEMORY_OOM_GROUP,
    "pids.max": Rule.PIDS,
}
_UNLIMITED: Final = {
    Rule.CPU_QUOTA: Rule.CPU_UNLIMITED,
    Rule.MEMORY_LIMIT: Rule.MEMORY_UNLIMITED,
    **dict.fromkeys((Rule.SWAP_SHARE, Rule.SWAP_NONE), Rule.SWAP_UNLIMITED),
}


def _reason(file: str, value: str, inputs: _Inputs, *, is_exclusive: bool) -> Reason:
    name = file.rpartition("/")[2]
    rule = Rule.HUGEPAGES if name.startswith("hugetlb.") else _RULES.get(name, Rule.MEMORY_PROTECTION)
    facts = inputs.get(Rule.SWAP_SHARE if rule is Rule.SWAP_NONE else rule, {})
    if rule is Rule.CPU_QUOTA and is_exclusive:
        rule = Rule.CPU_EXCLUSIVE
    elif value.startswith("max") or value == "-1":
        rule = _UNLIMITED.get(rule, rule)
    elif rule is Rule.SWAP_SHARE and value == "0":
        rule = Rule.SWAP_NONE
    return Reason(rule, value, facts)
