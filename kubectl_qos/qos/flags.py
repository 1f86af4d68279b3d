"""Flags and the risk level: what to notice about a pod of a ranking, in one word each."""

from collections.abc import Collection, Sequence
from enum import IntEnum, StrEnum
from operator import itemgetter
from typing import Final

from kubectl_qos.k8s.allocation import ResizingPod
from kubectl_qos.qos.oom_score import is_mirror, is_node_critical, is_static
from kubectl_qos.qos.ranking import RankedPod

NEAR_LIMIT_PERCENT: Final = 90


class Flag(StrEnum):
    """One thing to notice about a pod."""

    CRITICAL = "CRITICAL"
    """system-node-critical: neither class nor requests decide its oom_score_adj."""
    PRIORITY = "PRIORITY"
    """A higher priority than a pod that would outlive it: the kernel does not look at priority."""
    NEAR_LIMIT = "NEAR-LIMIT"
    """At least 90 % of a memory limit is used: its containers may be killed whatever the node has left."""
    OVER_REQUEST = "OVER-REQUEST"
    """Uses more memory than it requests: it is evicted before pods that do not."""
    RESIZING = "RESIZING"
    """A resize is pending or in progress: the node does not run what the spec says."""
    STATIC = "STATIC"
    """From a file on the node: never evicted, not changeable through the API."""
    CLASS_DIFFERS = "CLASS≠SPEC"
    """The stored class is not the one of the spec."""


RISKS: Final = frozenset({Flag.PRIORITY, Flag.NEAR_LIMIT, Flag.OVER_REQUEST})
"""The flags that make a pod "at risk"."""


def flags(row: RankedPod, percent: float | None, lowest_priority_after: int | None) -> list[Flag]:
    """The flags of a pod, the most severe first.

    It is as its node runs it (`running_pod`). `percent` is that of `limit_percent`; `lowest_priority_after`
    the lowest priority among the pods of the node that would outlive it.
    """
    pod, profile = row.pod, row.profile
    raised = []
    if is_node_critical(pod):
        raised.append(Flag.CRITICAL)
    if is_inverted(row, lowest_priority_after):
        raised.append(Flag.PRIORITY)
    if percent is not None and percent >= NEAR_LIMIT_PERCENT:
        raised.append(Flag.NEAR_LIMIT)
    if row.usage is not None and 0 < profile.eviction_request.value() < row.usage.working_set_bytes:
        raised.append(Flag.OVER_REQUEST)
    if isinstance(pod, ResizingPod):
        raised.append(Flag.RESIZING)
    if is_static(pod) or is_mirror(pod):
        raised.append(Flag.STATIC)
    stored = pod.status.qos_class
    if stored and stored != profile.computed_class:
        raised.append(Flag.CLASS_DIFFERS)
    return raised


def is_inverted(row: RankedPod, lowest_priority_after: int | None) -> bool:
    """Whether a pod is killed before one of lower priority, the lowest of those that would outlive it."""
    if row.rank is None or lowest_priority_after is None:
        return False
    return (row.pod.spec.priority or 0) > lowest_priority_after


def limit_percent(row: RankedPod) -> tuple[float | None, str]:
    """The highest usage against its own limit, of any container or of the pod if it has a pod-level limit.

    With the container's name if the pod has several and the limit is not the pod's. None without a limit or
    usage. Never against a sum: where some containers have no limit it means nothing.
    """
    usage, profile = row.usage, row.profile
    if usage is None:
        return None, ""
    percents = []
    if profile.pod_level_limit_bytes:
        percents.append((100 * usage.working_set_bytes / profile.pod_level_limit_bytes, ""))
    for container in profile.containers:
        used = usage.of(container.name) if container.limit_bytes else None
        if used is not None:
            name = container.name if len(profile.containers) > 1 else ""
            percents.append((100 * used.working_set_bytes / container.limit_bytes, name))
    return max(percents, key=itemgetter(0), default=(None, ""))


def lowest_priorities_after(ranked: Sequence[RankedPod]) -> list[int | None]:
    """For each ranked pod, the lowest priority of those with a later rank."""
    lowest: list[int | None] = []
    after: int | None = None
    least: int | None = None
    rank: int | None = None
    for row in reversed(ranked):
        if row.rank != rank:
            rank, after = row.rank, least
        lowest.append(after)
        priority = row.pod.spec.priority or 0
        least = priority if least is None else min(least, priority)
    lowest.reverse()
    return lowest


class Risk(IntEnum):
    """How close a pod is to being killed, the closest the highest."""

    NONE = 0
    """No processes on any node: it has ended, or is not bound yet."""
    LOW = 1
    """It runs without any flag of risk."""
    MEDIUM = 2
    """PRIORITY or OVER-REQUEST: killed before something less important, or evicted early."""
    HIGH = 3
    """NEAR-LIMIT: its own limit is enough to kill it, whatever the node has left."""
    NEXT = 4
    """Rank 1: the first that is killed when its node runs out of memory."""

    @property
    def word(self) -> str:
        """Its name on the command line and in tables."""
        return self.name.lower()


WORDS: Final = tuple(level.word for level in Risk)


def risk(flags: Collection[Flag], rank: int | None, *, has_processes: bool) -> Risk:
    """The highest level that applies."""
    if not has_processes:
        return Risk.NONE
    if rank == 1:
        return Risk.NEXT
    if Flag.NEAR_LIMIT in flags:
        return Risk.HIGH
    return Risk.LOW if RISKS.isdisjoint(flags) else Risk.MEDIUM
