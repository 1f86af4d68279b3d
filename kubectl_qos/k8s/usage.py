"""How much memory containers use, as the metrics API and the kubelet's summary report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

import msgspec

from kubectl_qos.k8s.quantity import Quantity


class UsageOrigin(StrEnum):
    """Who measured; the value is how notes call it."""

    METRICS_API = "the metrics API"
    KUBELET_SUMMARY = "the kubelets' summary"


class ContainerUsage(NamedTuple):
    """One container's memory in bytes; None is not known."""

    working_set_bytes: int
    rss_bytes: int | None = None
    swap_bytes: int | None = None

    @property
    def kernel_bytes(self) -> int:
        """What stands for the kernel's count: RSS and swap, or the working set where that is all there is."""
        if self.rss_bytes is None:
            return self.working_set_bytes
        return self.rss_bytes + (self.swap_bytes or 0)


class PodUsage(msgspec.Struct, frozen=True, gc=False):
    """A pod's memory, who measured, and when (RFC 3339).

    `amounts` are the containers' in the order of `names`; of 150,000 pods they are held at once, so one of
    which only the working set is known is that number alone.
    """

    names: tuple[str, ...]
    amounts: tuple[ContainerUsage | int, ...]
    origin: UsageOrigin = UsageOrigin.METRICS_API
    timestamp: str = ""

    @staticmethod
    def of_containers(
        containers: Mapping[str, ContainerUsage],
        origin: UsageOrigin = UsageOrigin.METRICS_API,
        timestamp: str = "",
    ) -> PodUsage:
        """The same from a map of container names."""
        return PodUsage(tuple(containers), tuple(containers.values()), origin, timestamp)

    def of(self, container: str) -> ContainerUsage | None:
        """One container's."""
        if container not in self.names:
            return None
        return _whole(self.amounts[self.names.index(container)])

    @property
    def working_set_bytes(self) -> int:
        """The sum over the containers."""
        return sum([one if isinstance(one, int) else one.working_set_bytes for one in self.amounts])

    @property
    def rss_bytes(self) -> int | None:
        """The sum over the containers, None where it is not known of each."""
        return _sum([_whole(one).rss_bytes for one in self.amounts])

    @property
    def swap_bytes(self) -> int | None:
        """The sum over the containers, None where it is not known of each."""
        return _sum([_whole(one).swap_bytes for one in self.amounts])


@dataclass(frozen=True, slots=True)
class Sampled:
    """Who measured usage, and when (RFC 3339): the oldest and the newest sample, empty where nobody says."""

    of: Mapping[PodKey, PodUsage]
    origin: UsageOrigin
    oldest: str
    newest: str


PodKey = tuple[str, str]
"""Namespace and name."""


def sampled(usage: Mapping[PodKey, PodUsage], before: Sampled | None = None) -> Sampled | None:
    """When usage was measured, None without any; of the same usage it is not worked out again."""
    if before is not None and before.of is usage:
        return before
    if not usage:
        return None
    times = {found.timestamp for found in usage.values()} - {""}
    origin = next(iter(usage.values())).origin
    return Sampled(usage, origin, min(times, default=""), max(times, default=""))


def _whole(amount: ContainerUsage | int) -> ContainerUsage:
    return ContainerUsage(amount) if isinstance(amount, int) else amount


def _sum(amounts: list[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


T = TypeVar("T")


class MemoryBytes(int):
    """A quantity of memory of which only the number of bytes matters."""

    __slots__ = ()

    @staticmethod
    def from_json(raw: object) -> MemoryBytes:
        """A decoded JSON quantity; Ki, as metrics-server writes them, without the detour of a Quantity."""
        if isinstance(raw, str) and raw.endswith("Ki") and raw.isascii() and raw[:-2].isdigit():
            return MemoryBytes(int(raw[:-2]) << 10)
        return MemoryBytes(Quantity.from_json(raw).value())


class _Sample(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class Used(_Sample, frozen=True):
    """What a container used; no ResourceList, because no two samples are alike and none need be shared."""

    memory: MemoryBytes | None = None


class ContainerMetrics(_Sample, frozen=True):
    """Usage of one container; memory is the working set."""

    name: str = ""
    usage: Used = Used()


class SampleMeta(_Sample, frozen=True):
    """Whose sample it is."""

    name: str = ""
    namespace: str = ""


class PodMetrics(_Sample, frozen=True):
    """A pod's sample; `timestamp` is when it was taken."""

    metadata: SampleMeta = SampleMeta()
    timestamp: str = ""
    containers: tuple[ContainerMetrics, ...] = ()


def usage_by_pod(samples: Iterable[PodMetrics]) -> dict[PodKey, PodUsage]:
    """Usage by namespace and name; what many samples spell alike is held once."""
    held: dict[object, object] = {}

    def one(part: T) -> T:
        return held.setdefault(part, part)  # type: ignore[return-value]

    found = {}
    for sample in samples:
        known = [each for each in sample.containers if each.usage.memory is not None]
        names = one(tuple([each.name for each in known]))
        amounts = tuple([int(each.usage.memory or 0) for each in known])
        found[one(sample.metadata.namespace), sample.metadata.name] = PodUsage(
            names, amounts, timestamp=one(sample.timestamp)
        )
    return found


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


def usage_from_summary(summary: Summary) -> dict[PodKey, PodUsage]:
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
