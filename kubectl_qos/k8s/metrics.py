"""Samples of the metrics API (metrics.k8s.io), as far as we read them, and the usage that they tell of.

Source: k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import PodKey, PodUsage

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
