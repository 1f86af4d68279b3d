"""CPU: millicores to shares, quota and weight, and back.

Sources: pkg/kubelet/cm/helpers_linux.go and cgroup_manager_linux.go; opencontainers/cgroups utils.go and
systemd/common.go. Quota and period are microseconds.
"""

from __future__ import annotations

import math
from typing import Final

from kubectl_qos.k8s.quantity import truncating_div, wrap

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262144
SHARES_PER_CPU: Final = 1024
MIN_QUOTA_US: Final = 1000
MAX_WEIGHT: Final = 10000


def milli_to_shares(cpu_milli: int) -> int:
    """cpu.shares of a request (`MilliCPUToShares`): 1024 a CPU, within 2 and 262144."""
    shares = truncating_div(wrap(cpu_milli * SHARES_PER_CPU), 1000)
    return min(max(shares, MIN_SHARES), MAX_SHARES)


def milli_to_quota(cpu_milli: int, period_us: int) -> int:
    """CFS quota of a limit (`MilliCPUToQuota`): at least 1 ms; 0, which is unset, for no limit."""
    if cpu_milli == 0:
        return 0
    return max(truncating_div(wrap(cpu_milli * period_us), 1000), MIN_QUOTA_US)


def shares_to_weight_linear(shares: int) -> int:
    """cpu.weight as the kubelet writes it at pod, QoS and kubepods level (`getCPUWeight`), KEP-2254."""
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    return 1 + (shares - MIN_SHARES) * (MAX_WEIGHT - 1) // (MAX_SHARES - MIN_SHARES)


def shares_to_weight_quadratic(shares: int) -> int:
    """cpu.weight as runc >= 1.3.2 and crun >= 1.23 write it (`ConvertCPUSharesToCgroupV2Value`).

    Maps 2 to 1, 1024 to 100 and 262144 to 10000; 0 stays 0, which is unset.
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


def shares_to_weight_linear_runtime(shares: int) -> int:
    """cpu.weight as runc up to 1.3.1 and crun up to 1.22 write it: linear in uint64, and 0 stays 0."""
    if shares == 0:
        return 0
    above = (shares - MIN_SHARES) * (MAX_WEIGHT - 1) % (1 << 64)
    return 1 + above // (MAX_SHARES - MIN_SHARES)


def weight_to_shares(weight: int) -> int:
    """The shares that a kubelet reads back from cpu.weight (`cpuWeightToCPUShares`); loses precision."""
    return (weight - 1) * (MAX_SHARES - MIN_SHARES) // (MAX_WEIGHT - 1) + MIN_SHARES


def shares_to_milli(shares: int) -> int:
    """Millicores of cpu.shares, rounded up (`SharesToMilliCPU`); 0 below the minimum."""
    return math.ceil(shares * 1000 / SHARES_PER_CPU) if shares >= MIN_SHARES else 0


def quota_to_milli(quota_us: int, period_us: int) -> int:
    """Millicores of a quota (`QuotaToMilliCPU`); 0 for unlimited."""
    return 0 if quota_us == -1 else truncating_div(quota_us * 1000, period_us)


def systemd_quota(quota_us: int, period_us: int) -> int:
    """The quota after systemd's CPUQuota, which knows whole percents (`addCPUQuota`, v0.0.2 and later).

    In microseconds; 133 ms of 100 ms becomes 140 ms. Unlimited and unset pass unchanged.
    """
    if quota_us <= 0:
        return quota_us
    per_second = quota_us * 1_000_000 // period_us
    if per_second % 10_000:
        per_second = (per_second // 10_000 + 1) * 10_000
    return per_second * period_us // 1_000_000
