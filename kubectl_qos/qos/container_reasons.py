"""Why each file of a container's cgroup has its content, from the same inputs that made it."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.qos.container_resources import CriResources, effective_limit
from kubectl_qos.qos.reason import Reason, Rule


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
