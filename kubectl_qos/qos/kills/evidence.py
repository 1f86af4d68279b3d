"""What speaks for one explanation of a death or another: facts as values, and the verdict that they lead to.

Not here: how a verdict is reached (kill_verdict.py, kills.py), and the words for it (present/kills.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from kubectl_qos.qos.kills.report import OomReport, Unranked, VictimChoice


class KillMechanism(Enum):
    """The mechanism of a death."""

    CONTAINER_LIMIT = "container limit"
    """The container's own memory limit: an OOM of its cgroup."""
    POD_LIMIT = "pod limit"
    """The limit of its pod: given, or the sum of its containers'."""
    PODS_LIMIT = "kubepods limit"
    """The limit of all pods of the node, or of those of a class."""
    NODE = "node"
    """The machine ran out of memory."""
    EVICTION = "kubelet eviction"
    """The kubelet ended the pod under memory pressure."""
    PREEMPTION = "kubelet preemption"
    """The kubelet ended the pod to admit a critical one."""
    SIGKILL = "other SIGKILL"
    """Somebody else: a kubelet that stops a container, a probe, a person."""
    CGROUP_LIMIT = "other limit"
    """The limit of a cgroup that is no pod's."""
    UNKNOWN = "unknown"


class KillConfidence(Enum):
    """How sure a verdict is, the surest first."""

    CERTAIN = "certain"
    """The kernel or the kubelet says so of this very container or pod."""
    LIKELY = "likely"
    """What is known fits, and nothing that could have been seen speaks for anything else."""
    POSSIBLE = "possible"
    """It fits, and so does something else."""


class Fact(Enum):
    """One piece of evidence, with what is in `Evidence.said`."""

    ENDED = "the status says how it ended: state, exit_code, reason"
    OOM_KILLED = "the runtime counted an OOM kill in the container's cgroup: by any limit, or the node's"
    EXIT_IS_MADE_UP = "the kubelet lost sight of the container and filled in 137"
    POD_ENDED = "status.reason of the pod: reason, message"
    DISRUPTED = "the condition DisruptionTarget: reason, message"
    EVENT = "an event: reason, message, object"
    NO_SYSTEM_OOM = "events of the node go back that far and none is a SystemOOM"
    NO_EVENTS = "events of that time are not known"
    BEING_DELETED = "the pod is being deleted"
    OWN_LIMIT = "the container has a memory limit: bytes"
    POD_LIMIT = "its pod has a memory limit: bytes"
    SAME_LIMIT = "the pod's limit is no larger than the container's, and holds the pause container too"
    NO_LIMIT = "neither container nor pod has a memory limit"
    KERNEL = "a report of the kernel: constraint, memcg, limit_kb, pid, comm, line, title"
    GROUP = "every process of the cgroup was killed with it (memory.oom.group): path, is_own"
    OTHER_PROCESSES = "more reports of the kernel about this container before: count"
    WENT_ON = "the container itself went on: a process in it was killed"
    KERNEL_SILENT = "a kernel log covers that time and has no report about the container: title"
    NEIGHBOURS = "other containers of the node without a limit were OOMKilled at that time: count"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A fact, and what it says in particular; `time` is RFC 3339 text or empty."""

    fact: Fact
    said: Mapping[str, Any] = field(default_factory=dict)
    time: str = ""


class Need(Enum):
    """What would make a verdict certain."""

    KERNEL_LOG = "the kernel log of its node"
    LOG_OF_THAT_TIME = "a kernel log of its node that goes back to its death"
    WALL_CLOCK = "a kernel log with wall-clock times, to tell which of its processes died when"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A mechanism with what speaks for it."""

    by: KillMechanism
    sure: KillConfidence
    evidence: tuple[Evidence, ...]
    needs: Need | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """One death: of a container, of a process in one that went on, or of a process of the node.

    `pod` is empty for processes outside pods, and for pods that are gone, whose `pod_uid` the kernel's path
    still tells. `container` is empty where only its id is known, or where the whole pod is meant. `time` is
    RFC 3339 text; estimated ones come from seconds since boot and other deaths in the same log.
    """

    diagnosis: Diagnosis
    time: str = ""
    time_is_estimated: bool = False
    namespace: str = ""
    pod: str = ""
    container: str = ""
    node: str = ""
    pod_uid: str = ""
    container_id: str = ""
    exit_code: int | None = None
    reason: str = ""
    cgroup: str = ""
    report: OomReport | None = None
    choice: VictimChoice | Unranked | None = None

    @property
    def score(self) -> int | None:
        """What /proc/PID/oom_score showed of the victim, as far as the kernel's numbers are known."""
        return self.choice.chosen.score if isinstance(self.choice, VictimChoice) else None

    @property
    def freed_bytes(self) -> int | None:
        """What its processes held in memory, by the kernel."""
        freed = self.report.freed_kb if self.report is not None else None
        return None if freed is None else freed * 1024


def parse_moment(text: str | None) -> datetime | None:
    """An RFC 3339 time, UTC where it names no zone; None for anything else."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """How long after the first time the second is, None if one is not known."""
    first, second = parse_moment(earlier), parse_moment(later)
    return (second - first).total_seconds() if first is not None and second is not None else None
