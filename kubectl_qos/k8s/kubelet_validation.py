"""What a kubelet refuses about its own configuration, in its own words: it does not start with it.

Source: pkg/kubelet/apis/config/validation (validation.go, validation_linux.go). Only the fields that change
a prediction are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_qos.k8s.kubelet import DEFAULT_CFS_PERIOD_US, Kubelet, MemoryReservationPolicy
from kubectl_qos.k8s.releases import Change, Gate, Release

_ENFORCE = "enforceNodeAllocatable (--enforce-node-allocatable)"
_RESERVED = {
    "system-reserved": "systemReservedCgroup (--system-reserved-cgroup)",
    "kube-reserved": "kubeReservedCgroup (--kube-reserved-cgroup)",
}
_COMPRESSIBLE = "-compressible"
MOST_PERIOD_US = 1_000_000
LEAST_PERIOD_US = 1000


def kubelet_refusals(kubelet: Kubelet, release: Release, *, cgroup_version: int = 2) -> list[str]:
    """Every reason for which a kubelet of that release would not start, in the order of its own report."""
    found = [
        *_enforcement_as_a_whole(kubelet, release),
        *_cfs_period(kubelet, release),
        *_swap(kubelet, release),
        *_enforcement(kubelet, release),
        *_oom(kubelet, release, cgroup_version),
        *_memory_qos(kubelet, release),
    ]
    return [f"invalid configuration: {sentence}" for sentence in found]


def _cfs_period(kubelet: Kubelet, release: Release) -> Iterator[str]:
    period = kubelet.cpu_cfs_quota_period_us
    named = f"cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{go_duration(period)}}}"
    if not release.enabled(Gate.CUSTOM_CFS_QUOTA_PERIOD):
        if period != DEFAULT_CFS_PERIOD_US:
            yield f"{named} requires feature gate CustomCPUCFSQuotaPeriod"
    elif not LEAST_PERIOD_US <= period <= MOST_PERIOD_US:
        yield f"{named} must be between 1ms and 1sec, inclusive"


def _swap(kubelet: Kubelet, release: Release) -> Iterator[str]:
    behavior = kubelet.memory_swap_behavior
    if not release.enabled(Gate.NODE_SWAP):
        if behavior:
            yield "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled"
        return
    if release.has(Change.NO_UNLIMITED_SWAP):
        known, listed = {"", "NoSwap", "LimitedSwap"}, '"", "LimitedSwap" or "NoSwap"'
    else:
        known, listed = {"", "LimitedSwap", "UnlimitedSwap"}, '"", "LimitedSwap", or "UnlimitedSwap"'
    if behavior not in known:
        yield f'memorySwap.swapBehavior "{behavior}" must be one of: {listed}'


def _enforcement_as_a_whole(kubelet: Kubelet, release: Release) -> Iterator[str]:
    asked = kubelet.enforce_node_allocatable
    without_cgroups = asked and not kubelet.cgroups_per_qos
    if without_cgroups and not release.has(Change.ENFORCEMENT_WITHOUT_CGROUPS):
        yield f"{_ENFORCE} is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"


def _enforcement(kubelet: Kubelet, release: Release) -> Iterator[str]:
    asked = kubelet.enforce_node_allocatable
    if release.has(Change.RESERVED_COMPRESSIBLE):
        for key in _RESERVED:
            if {key, key + _COMPRESSIBLE} <= set(asked):
                yield f'both "{key}" and "{key}{_COMPRESSIBLE}" cannot be specified together in {_ENFORCE}'
    one_by_one = release.has(Change.ENFORCEMENT_WITHOUT_CGROUPS)
    for index, value in enumerate(asked):
        if one_by_one and value in asked[:index]:
            yield f'duplicated enforcements "{value}" in {_ENFORCE}'
            continue
        yield from _one_enforcement(value, kubelet, release)
        if one_by_one and not kubelet.cgroups_per_qos and _is_enforced(value, release):
            yield (
                "cgroupsPerQOS (--cgroups-per-qos) must be set to true when "
                f'"{value}" contained in {_ENFORCE}'
            )


def _one_enforcement(value: str, kubelet: Kubelet, release: Release) -> Iterator[str]:
    compressible = release.has(Change.RESERVED_COMPRESSIBLE)
    key = _reserved(value, release)
    cgroups = {
        "system-reserved": kubelet.system_reserved_cgroup,
        "kube-reserved": kubelet.kube_reserved_cgroup,
    }
    if key in cgroups:
        if not cgroups[key]:
            keys = f'"{key}" or "{key}{_COMPRESSIBLE}" included' if compressible else f'"{key}" contained'
            yield f"{_RESERVED[key]} must be specified when {keys} in {_ENFORCE}"
    elif value == "none":
        if len(kubelet.enforce_node_allocatable) > 1:
            yield f'{_ENFORCE} may not contain additional enforcements when "none" is specified'
    elif value != "pods":
        yield _unknown_enforcement(value, compressible=compressible)


def _reserved(value: str, release: Release) -> str:
    return value.removesuffix(_COMPRESSIBLE) if release.has(Change.RESERVED_COMPRESSIBLE) else value


def _is_enforced(value: str, release: Release) -> bool:
    return value == "pods" or _reserved(value, release) in _RESERVED


def _unknown_enforcement(value: str, *, compressible: bool) -> str:
    known = ["pods"]
    for key in _RESERVED:
        known += [key, key + _COMPRESSIBLE] if compressible else [key]
    separator = " or" if compressible else ", or"
    listed = ", ".join(f'"{one}"' for one in known)
    return f'option "{value}" specified for {_ENFORCE}. Valid options are {listed}{separator} "none"'


def _oom(kubelet: Kubelet, release: Release, cgroup_version: int) -> Iterator[str]:
    grouped = kubelet.single_process_oom_kill is False
    if grouped and cgroup_version == 1 and release.has(Change.SINGLE_PROCESS_OOM_KILL):
        yield "singleProcessOOMKill must not be explicitly set to false when using cgroup v1"


def _memory_qos(kubelet: Kubelet, release: Release) -> Iterator[str]:
    factor = kubelet.memory_throttling_factor
    on = release.enabled(Gate.MEMORY_QOS)
    if on and factor is None and not release.has(Change.MEMORY_HIGH_NEEDS_FACTOR):
        yield "memoryThrottlingFactor is required when MemoryQoS feature flag is enabled"
    if factor is not None and not 0 < factor <= 1:
        yield f"memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0"
    if release.has(Change.MEMORY_RESERVATION_POLICY):
        policy = kubelet.memory_reservation_policy
        if policy is MemoryReservationPolicy.TIERED and not on:
            yield f'memoryReservationPolicy "{policy}" requires MemoryQoS feature gate to be enabled'
        if policy is MemoryReservationPolicy.UNSET:
            yield (
                f'option "{policy}" specified for memoryReservationPolicy. '
                'Valid options are "None" or "TieredReservation"'
            )


def go_duration(duration_us: int) -> str:
    """Microseconds as Go prints a Duration below a minute: `100ms`, `123.456ms`, `1.5s`, `50µs`."""
    for unit, size in (("s", 1_000_000), ("ms", 1000)):
        if duration_us >= size:
            whole, rest = divmod(duration_us, size)
            digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
    return f"{duration_us}µs" if duration_us else "0s"
