"""How much memory containers use, and which of the several numbers that is.

Pure values; where they are read from is `cluster/usage.py` and `cluster/summary.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec


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
