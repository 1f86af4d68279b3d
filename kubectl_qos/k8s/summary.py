"""What a kubelet says at /stats/summary of the memory of its pods, as far as we read it.

Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go. `rssBytes` is the cgroup's anonymous memory: the
kernel's own count of a process has its mapped files and shared memory too, which no API tells.
"""

from __future__ import annotations

import msgspec

from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage, UsageOrigin


class _Stats(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """Frozen, unknown fields skipped."""


class MemoryStats(_Stats, frozen=True):
    """A container's memory in bytes; `time` is when it was measured."""

    time: str = ""
    working_set_bytes: int | None = None
    rss_bytes: int | None = None


class SwapStats(_Stats, frozen=True):
    """A container's swap in bytes (1.28 and later)."""

    swap_usage_bytes: int | None = None


class ContainerStats(_Stats, frozen=True):
    """One container."""

    name: str = ""
    memory: MemoryStats | None = None
    swap: SwapStats | None = None


class PodReference(_Stats, frozen=True):
    """Whose numbers they are."""

    name: str = ""
    namespace: str = ""


class PodStats(_Stats, frozen=True):
    """One pod."""

    pod_ref: PodReference = PodReference()
    containers: tuple[ContainerStats, ...] = ()


class Summary(_Stats, frozen=True):
    """One node."""

    pods: tuple[PodStats, ...] = ()


def usage_of_summary(summary: Summary) -> dict[PodKey, PodUsage]:
    """Usage by namespace and name; a pod's time is that of its oldest measurement."""
    found = {}
    for pod in summary.pods:
        containers = {}
        times = []
        for container in pod.containers:
            memory, swap = container.memory, container.swap
            if memory is None or memory.working_set_bytes is None:
                continue
            swapped = swap.swap_usage_bytes if swap is not None else None
            containers[container.name] = ContainerUsage(memory.working_set_bytes, memory.rss_bytes, swapped)
            times.append(memory.time)
        found[pod.pod_ref.namespace, pod.pod_ref.name] = PodUsage.of_containers(
            containers, UsageOrigin.KUBELET_SUMMARY, min(times, default="")
        )
    return found
