"""The memory that containers use and how long they wait, by the metrics API and the kubelet's summary."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from kubectl_qos.k8s.objects import ApiStruct, Pod, all_containers
from kubectl_qos.k8s.quantity import Quantity, parse_time


class UsageOrigin(StrEnum):
    """The source of usage, in the words of notes."""

    METRICS_API = "the metrics API"
    KUBELET_SUMMARY = "the kubelets' summary"
    PROMETHEUS = "Prometheus"


class PsiData(ApiStruct, frozen=True, omit_defaults=False):
    """Percents of the last 10, 60 and 300 s, None if the source does not have that average."""

    avg10: float | None = None
    avg60: float | None = None
    avg300: float | None = None


NO_PSI: Final = PsiData()


class Psi(ApiStruct, frozen=True, omit_defaults=False):
    """The shares of time in which at least one task waited (some), and all non-idle tasks (full)."""

    some: PsiData = NO_PSI
    full: PsiData = NO_PSI


class Pressure(NamedTuple):
    """Pressure stall information of a node, pod or container; None if its source does not report it.

    Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go (PSIStats), gate KubeletPSI, stable in 1.36.
    """

    cpu: Psi | None
    memory: Psi | None
    io: Psi | None


def memory_psi(pressure: Pressure | None) -> PsiData:
    """Return the share of time in which some tasks waited for memory; NO_PSI if unknown."""
    return pressure.memory.some if pressure is not None and pressure.memory is not None else NO_PSI


class MemoryParts(ApiStruct, frozen=True, omit_defaults=False):
    """The charges of a cgroup, by the kernel's names (memory.stat); `otherBytes` is the rest.

    `swapBytes` are not part of the charges; null is unknown.
    """

    anon_bytes: int
    file_bytes: int | None = None
    shmem_bytes: int | None = None
    kernel_bytes: int | None = None
    other_bytes: int | None = None
    swap_bytes: int | None = None


class ContainerUsage(NamedTuple):
    """A container's memory in bytes, its parts, and its pressure; None is unknown.

    `largest_bytes` is the size of its largest process by the kernel's count.
    """

    working_set_bytes: int
    rss_bytes: int | None = None
    swap_bytes: int | None = None
    pressure: Pressure | None = None
    parts: MemoryParts | None = None
    largest_bytes: int | None = None

    @property
    def scored_bytes(self) -> int:
        """Return the size that badness counts for its largest process; all of its memory if unknown."""
        return self.kernel_bytes if self.largest_bytes is None else self.largest_bytes

    @property
    def kernel_bytes(self) -> int:
        """Estimate what the kernel counts: swap, and the larger of RSS and working set.

        A kubelet's RSS is anonymous memory alone (memory.stat anon), while the kernel counts mapped files and
        shared memory too. The working set has these, and page cache that is in use.
        """
        used = max(self.working_set_bytes, self.rss_bytes or 0)
        return used + self.swap_bytes if self.swap_bytes else used


class PodDetails(msgspec.Struct, frozen=True, gc=False):
    """Facts about a pod that only some sources have.

    `processes` is the number of its containers' processes, 0 if unknown. `volumes` are the bytes in its
    volumes, by name. `working_set_bytes` is that of its cgroup, with tmpfs pages of ended containers.
    """

    processes: int = 0
    pressure: Pressure | None = None
    volumes: tuple[tuple[str, int], ...] = ()
    working_set_bytes: int = 0


NO_DETAILS: Final = PodDetails()


class PodUsage(msgspec.Struct, frozen=True, gc=False):
    """A pod's memory, its source, and its time (RFC 3339).

    `amounts` are in the order of the containers' `names`. If only the working set is known, an amount is a
    plain number, and `details` is one object for all pods, which saves memory with 150,000 pods.
    """

    names: tuple[str, ...]
    amounts: tuple[ContainerUsage | int, ...]
    origin: UsageOrigin = UsageOrigin.METRICS_API
    timestamp: str = ""
    details: PodDetails = NO_DETAILS

    @staticmethod
    def of_containers(
        containers: Mapping[str, ContainerUsage],
        origin: UsageOrigin = UsageOrigin.METRICS_API,
        timestamp: str = "",
    ) -> PodUsage:
        """Return the usage of a pod by container name."""
        return PodUsage(tuple(containers), tuple(containers.values()), origin, timestamp)

    def of(self, container: str) -> ContainerUsage | None:
        """Return the usage of a container, None if unknown."""
        if container not in self.names:
            return None
        amount = self.amounts[self.names.index(container)]
        return ContainerUsage(amount) if isinstance(amount, int) else amount

    @property
    def containers(self) -> Iterator[tuple[str, ContainerUsage]]:
        """Yield the name and the usage of each container."""
        for name, amount in zip(self.names, self.amounts, strict=True):
            yield name, ContainerUsage(amount) if isinstance(amount, int) else amount

    @property
    def has_sizes(self) -> bool:
        """Return whether the largest process of each container is known."""
        return all(not isinstance(size, int) and size.largest_bytes is not None for size in self.amounts)

    @property
    def working_set_bytes(self) -> int:
        """Return the sum over the containers."""
        amounts = [amount if isinstance(amount, int) else amount.working_set_bytes for amount in self.amounts]
        # sum() would make another int for each of 150,000 pods, most of which have one container.
        return amounts[0] if len(amounts) == 1 else sum(amounts)

    @property
    def rss_bytes(self) -> int | None:
        """Return the sum over the containers, None unless known for each."""
        return _sum([None if isinstance(amount, int) else amount.rss_bytes for amount in self.amounts])

    @property
    def swap_bytes(self) -> int | None:
        """Return the sum over the containers, None unless known for each."""
        return _sum([None if isinstance(amount, int) else amount.swap_bytes for amount in self.amounts])


def ended_since(pod: Pod, usage: PodUsage | None) -> list[str]:
    """Return the containers that have ended since they were sampled: their usage is of an earlier run."""
    return ended_after(pod, usage.timestamp) if usage is not None and usage.timestamp else []


def ended_after(pod: Pod, time: str) -> list[str]:
    """Return the containers whose last end is later than a time (RFC 3339); none if that is not known."""
    # Few containers have ended: times are parsed only for them.
    ended = [status for status in pod.status.every_container if status.has_ended]
    sampled = parse_time(time) if ended else None
    if sampled is None:
        return []
    ends = ((status.name, parse_time(status.ends[0].finished_at)) for status in ended)
    return [name for name, end in ends if end is not None and end > sampled]


def usage_of_runs(pod: Pod, usage: PodUsage | None) -> PodUsage | None:
    """Return the usage of a pod without containers that have ended since; None if nothing is left."""
    ended = ended_since(pod, usage)
    if usage is None or not ended:
        return usage
    kept = [pair for pair in zip(usage.names, usage.amounts, strict=True) if pair[0] not in ended]
    if not kept:
        return None
    names, amounts = zip(*kept, strict=True)
    return replace(usage, names=names, amounts=amounts)


class Sampled(NamedTuple):
    """The source of usage, and the times of the oldest and newest sample (RFC 3339, empty if unknown).

    `with_more_processes` counts pods with more processes than containers, of unknown sizes;
    `with_unknown_processes` counts pods whose number of processes is unknown.
    """

    usage: Mapping[PodKey, PodUsage]
    origin: UsageOrigin
    oldest: str
    newest: str
    with_more_processes: int = 0
    with_unknown_processes: int = 0


PodKey = tuple[str, str]
"""Namespace and name."""
ContainerKey = tuple[PodKey, str]
"""A pod and the name of its container."""


class ContainerHistory(NamedTuple):
    """A container's memory over a time such as `7d` (`over`): peak and 99th percentile in bytes.

    `rate` is its growth in bytes per second if it has been linear until now, else 0. `is_leak`: this growth
    has lasted at least an hour and makes up at least half of the memory in use. `throttled` is the share of
    the CPU periods of the last hour in which it was throttled, 0 if that is little or unknown.
    """

    peak_bytes: int
    p99_bytes: int | None = None
    rate: float = 0.0
    is_leak: bool = False
    over: str = ""
    throttled: float = 0.0


class History(msgspec.Struct, frozen=True):
    """The history of containers in a store of metrics, `over` a time such as `7d` until now.

    `now` is the last usage of pods. `stat` is the statistic that `Snapshot.usage` shows, "" if it is the last
    usage too. `lines` are the usage of pods in KiB over at most a day, in equal steps, newest last, 0 if
    unknown.
    """

    containers: Mapping[ContainerKey, ContainerHistory]
    now: Mapping[PodKey, PodUsage]
    over: str = ""
    stat: str = ""
    lines: Mapping[PodKey, Sequence[int]] = msgspec.field(default_factory=dict)

    def of(self, pods: Iterable[Pod]) -> dict[ContainerKey, ContainerHistory]:
        """Return the history of the containers of these pods."""
        if not self.containers:
            return {}
        keys = ((pod.key, item.name) for pod in pods for item in all_containers(pod))
        return {key: self.containers[key] for key in keys if key in self.containers}


NO_HISTORY: Final = History({}, {})


def sampled(usage: Mapping[PodKey, PodUsage], before: Sampled | None = None) -> Sampled | None:
    """Return the source and times of this usage, None without usage; `before` if the usage is the same."""
    if before is not None and before.usage is usage:
        return before
    if not usage:
        return None
    times = [time for time in {pod.timestamp for pod in usage.values()} if parse_time(time) is not None]
    unsized = [pod for pod in usage.values() if not pod.has_sizes]
    more = sum(pod.details.processes > len(pod.names) for pod in unsized)
    unknown = sum(not pod.details.processes for pod in unsized)
    oldest, newest = min(times, default=""), max(times, default="")
    return Sampled(usage, origin_of(usage), oldest, newest, more, unknown)


def origin_of(usage: Mapping[PodKey, PodUsage]) -> UsageOrigin:
    """Return the source of this usage; the metrics API if there is none."""
    return next((pod.origin for pod in usage.values()), UsageOrigin.METRICS_API)


def _sum(amounts: list[int | None]) -> int | None:
    measured = [amount for amount in amounts if amount is not None]
    return sum(measured) if measured and len(measured) == len(amounts) else None


class _PodName(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class MemoryBytes(int):
    """A quantity of memory as whole bytes."""

    __slots__ = ()

    @staticmethod
    def from_json(raw: object) -> MemoryBytes:
        """Convert a decoded JSON quantity; Ki, the unit of metrics-server, is parsed without a Quantity."""
        if isinstance(raw, str) and raw.endswith("Ki") and raw.isascii() and raw[:-2].isdigit():
            return MemoryBytes(int(raw[:-2]) << 10)
        return MemoryBytes(Quantity.from_json(raw).value())


class _MemoryUsage(ApiStruct, frozen=True):
    """The usage of a container; not a ResourceList, because samples all differ and are not shared."""

    memory: MemoryBytes | None = None


class _ContainerMetrics(ApiStruct, frozen=True):
    name: str = ""
    usage: _MemoryUsage = _MemoryUsage()


class PodMetrics(ApiStruct, frozen=True):
    """A pod's sample of the metrics API."""

    metadata: _PodName = _PodName()
    timestamp: str = ""
    containers: tuple[_ContainerMetrics, ...] = ()


class NodeMetrics(ApiStruct, frozen=True):
    """A node's sample of the metrics API: the working set of the whole node, its own processes included."""

    metadata: _PodName = _PodName()
    timestamp: str = ""
    usage: _MemoryUsage = _MemoryUsage()


T = TypeVar("T")


def usage_by_node(samples: Iterable[NodeMetrics]) -> dict[str, int]:
    """Return the working set of nodes by name."""
    amounts = ((sample.metadata.name, sample.usage.memory) for sample in samples)
    return {name: int(memory) for name, memory in amounts if memory is not None}


def sampled_by_node(samples: Iterable[NodeMetrics]) -> dict[str, str]:
    """Return when nodes were sampled by name, as RFC 3339, of the samples that say it."""
    return {sample.metadata.name: sample.timestamp for sample in samples if sample.timestamp}


def usage_by_pod(
    samples: Iterable[PodMetrics], of: Container[PodKey] | None = None
) -> dict[PodKey, PodUsage]:
    """Return usage by namespace and name, of these pods or of all; equal parts of samples are shared.

    Samples without containers, which a metrics-server sends after its start, are ignored.
    """
    parts: dict[object, object] = {}

    def shared(part: T) -> T:
        return parts.setdefault(part, part)  # type: ignore[return-value]

    usage = {}
    for sample in samples:
        key = shared(sample.metadata.namespace), sample.metadata.name
        if of is not None and key not in of:
            continue
        containers = [container for container in sample.containers if container.usage.memory is not None]
        if not containers:
            continue
        names = shared(tuple([container.name for container in containers]))
        amounts = tuple([int(container.usage.memory or 0) for container in containers])
        usage[key] = PodUsage(names, amounts, timestamp=shared(sample.timestamp))
    return usage


class _PsiStats(ApiStruct, frozen=True):
    psi: Psi | None = None


class _MemoryStats(_PsiStats, frozen=True):
    time: str = ""
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None


class _SwapStats(ApiStruct, frozen=True):
    swap_usage_bytes: int | None = None
    swap_available_bytes: int | None = None


class _ProcessStats(ApiStruct, frozen=True):
    process_count: int = msgspec.field(name="process_count", default=0)


class _Stats(ApiStruct, frozen=True):
    cpu: _PsiStats = _PsiStats()
    memory: _MemoryStats | None = None
    io: _PsiStats = _PsiStats()
    swap: _SwapStats | None = None

    @property
    def working_set_bytes(self) -> int | None:
        return self.memory.working_set_bytes if self.memory is not None else None

    @property
    def pressure(self) -> Pressure | None:
        memory = self.memory.psi if self.memory is not None else None
        pressure = Pressure(self.cpu.psi, memory, self.io.psi)
        return pressure if any(pressure) else None


class _ContainerStats(_Stats, frozen=True):
    name: str = ""


class _VolumeStats(ApiStruct, frozen=True):
    name: str = ""
    used_bytes: int = 0


class _PodStats(_Stats, frozen=True):
    pod_ref: _PodName = _PodName()
    volume: tuple[_VolumeStats, ...] = ()
    containers: tuple[_ContainerStats, ...] = ()
    process_stats: _ProcessStats = msgspec.field(name="process_stats", default=_ProcessStats())


class _NodeStats(_Stats, frozen=True):
    node_name: str = ""

    @property
    def swap_capacity_bytes(self) -> int | None:
        """Return the bytes of swap that the node has, used and free; None if unknown."""
        swap = self.swap or _SwapStats()
        free, used = swap.swap_available_bytes, swap.swap_usage_bytes
        return None if free is None or used is None else free + used


class Summary(ApiStruct, frozen=True):
    """The kubelet's summary of its node (`/stats/summary`)."""

    node: _NodeStats = _NodeStats()
    pods: tuple[_PodStats, ...] = ()


def usage_from_summary(summary: Summary) -> dict[PodKey, PodUsage]:
    """Return usage by namespace and name; the time of a pod is its oldest measurement."""
    usage = {}
    for pod in summary.pods:
        containers = {}
        times = []
        for container in pod.containers:
            memory, swap = container.memory, container.swap
            if memory is not None and memory.working_set_bytes is not None:
                swap_bytes = swap.swap_usage_bytes if swap is not None else None
                containers[container.name] = ContainerUsage(
                    memory.working_set_bytes, memory.rss_bytes, swap_bytes, container.pressure
                )
                if memory.usage_bytes is not None and memory.rss_bytes is not None:
                    other = max(memory.usage_bytes - memory.rss_bytes, 0)
                    parts = MemoryParts(memory.rss_bytes, other_bytes=other, swap_bytes=swap_bytes)
                    containers[container.name] = containers[container.name]._replace(parts=parts)
                times.append(memory.time)
        if not containers:
            continue
        pod_usage = PodUsage.of_containers(containers, UsageOrigin.KUBELET_SUMMARY, min(times, default=""))
        volumes = tuple((volume.name, volume.used_bytes) for volume in pod.volume)
        of_pod = pod.working_set_bytes or 0
        details = PodDetails(pod.process_stats.process_count, pod.pressure, volumes, of_pod)
        usage[pod.pod_ref.namespace, pod.pod_ref.name] = replace(pod_usage, details=details)
    return usage
