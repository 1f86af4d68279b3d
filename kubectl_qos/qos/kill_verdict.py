"""The verdict on one death, from what is known of it. Neither OOMKilled nor exit code 137 decides alone.

Sources: containerd (TaskOOM by memory.events oom_kill, which counts kills by whatever limit), CRI-O the same;
with the systemd driver the scope is often gone before that is read, and an OOM victim ends as `Error`.
pkg/kubelet/oom/oom_watcher_linux.go makes SystemOOM events for OOMs of the node only.
pkg/kubelet/kubelet_pods.go (ContainerStatusUnknown, exit code 137). Not here: which deaths there are
(kills.py), what the kubelet itself ended (kubelet_kills.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import MEMORY, ContainerStateTerminated, Pod, all_containers
from kubectl_qos.qos.cgroup_path import Level, level_of
from kubectl_qos.qos.kill_facts import By, Evidence, Fact, Need, Sure, Verdict, moment, seconds_between
from kubectl_qos.qos.oom_report import Constraint, OomReport
from kubectl_qos.qos.prediction import predict

SIGKILLED: Final = 137
NEAR_SECONDS: Final = 15.0
"""A kubelet of a node without memory reports late, and times of statuses are whole seconds."""
STOPPING_SECONDS: Final = 120.0
"""A stopped container has so long, and mostly less, until SIGKILL."""
STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
OOM_KILLED: Final = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Limits:
    """Memory limits of a container and of its pod's cgroup in bytes, None without."""

    own: int | None
    pod: int | None

    @property
    def nearest(self) -> By | None:
        """Which of them is reached first.

        A container's memory is its pod's too, and so is that of the pause container. Of a pod with one
        container, whose limit is the pod's as well, it is the pod's cgroup that runs out.
        """
        if self.own is None:
            return By.POD_LIMIT if self.pod is not None else None
        return By.POD_LIMIT if self.pod is not None and self.pod <= self.own else By.CONTAINER_LIMIT

    def evidence(self) -> Iterator[Evidence]:
        """What there is."""
        if self.own is not None:
            yield Evidence(Fact.OWN_LIMIT, {"bytes": self.own})
        if self.pod is not None:
            yield Evidence(Fact.POD_LIMIT, {"bytes": self.pod})
        if self.own is not None and self.nearest is By.POD_LIMIT:
            yield Evidence(Fact.SAME_LIMIT)
        if self.nearest is None:
            yield Evidence(Fact.NO_LIMIT)


def limits_of(pod: Pod, container: str, setup: NodeSetup) -> Limits:
    """The limits as the kubelet writes them; where that cannot be predicted, as the spec has them."""
    try:
        found = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
        own = _memory_limit(found.container(container).cgroup.files)
        return Limits(own, _memory_limit(found.cgroup.files))
    except QosError:
        spec = next((one for one in all_containers(pod) if one.name == container), None)
        limit = spec.limits.get(MEMORY) if spec is not None else None
        return Limits(limit.value() if limit is not None else None, None)


def _memory_limit(files: object) -> int | None:
    assert hasattr(files, "get")
    text = files.get("memory.max") or files.get("memory.limit_in_bytes") or ""
    return int(text) if text.isdecimal() and int(text) < _NO_LIMIT else None


_NO_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """The events of a node's memory, and from when on events are known; None if they could not be had."""

    events: Sequence[Event]
    since: str | None

    def covers(self, time: str) -> bool:
        """Whether an event of that time would be known."""
        after = seconds_between(self.since, time)
        return after is not None and after >= 0

    def near(self, time: str, *reasons: str) -> Iterator[Event]:
        """Those for these reasons at about that time."""
        for event in self.events:
            if event.reason in reasons and is_near(event, time):
                yield event


def is_near(event: Event, time: str, before: float = NEAR_SECONDS, after: float = NEAR_SECONDS) -> bool:
    """Whether an event happened at about that time; one that repeats has happened all the while."""
    first, last = seconds_between(event.first, time), seconds_between(event.last, time)
    return first is not None and last is not None and last <= before and first >= -after


def kernel_verdict(report: OomReport, title: str) -> tuple[By, list[Evidence]]:
    """What the kernel says of a kill: which limit, if any."""
    victim = report.victim
    said = {
        "constraint": report.constraint.value if report.constraint is not None else None,
        "memcg": report.oom_memcg or None,
        "limit_kb": report.memory.limit_kb,
        "pid": victim.pid if victim is not None else None,
        "comm": victim.comm if victim is not None else None,
        "processes": len(report.processes),
        "line": report.line,
        "title": title or None,
    }
    evidence = [Evidence(Fact.KERNEL, said, report.time)]
    if report.group_kill:
        is_own = report.group_kill == report.task_memcg
        evidence.append(Evidence(Fact.GROUP, {"path": report.group_kill, "is_own": is_own}))
    return domain_of(report), evidence


def domain_of(report: OomReport) -> By:
    """Whose memory ran out, by the kernel's own words."""
    if report.constraint is None:
        return By.UNKNOWN
    if report.constraint is not Constraint.MEMCG:
        return By.NODE
    if not report.oom_memcg:
        return By.UNKNOWN
    return _DOMAINS[level_of(report.oom_memcg, report.task_memcg)]


_DOMAINS: Final = {
    Level.ABOVE: By.NODE,
    Level.PODS: By.PODS_LIMIT,
    Level.QOS_CLASS: By.PODS_LIMIT,
    Level.POD: By.POD_LIMIT,
    Level.CONTAINER: By.CONTAINER_LIMIT,
    Level.OTHER: By.CGROUP_LIMIT,
}


def ended_evidence(end: ContainerStateTerminated, state: str) -> Iterator[Evidence]:
    """What a container's status says."""
    said = {"state": state, "exit_code": end.exit_code, "reason": end.reason}
    yield Evidence(Fact.ENDED, said, end.finished_at or "")
    if end.reason == OOM_KILLED:
        yield Evidence(Fact.OOM_KILLED)
    if end.reason == STATUS_UNKNOWN:
        yield Evidence(Fact.EXIT_IS_MADE_UP)


def event_evidence(event: Event) -> Evidence:
    """An event as evidence."""
    involved = event.involved_object
    said = {"reason": event.reason, "message": event.message, "object": f"{involved.kind}/{involved.name}"}
    return Evidence(Fact.EVENT, said, event.last)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around a death: its limits, events of its pod and node, neighbours, the kernel's silence.

    `neighbours` counts containers of the node without a limit that were OOMKilled at that time;
    `silent_log` names a kernel log of the node that covers that time and does not have it.
    """

    limits: Limits
    of_node: NodeEvents
    of_pod: Iterable[Event]
    being_deleted: bool = False
    neighbours: int = 0
    has_log: bool = False
    silent_log: str | None = None


def verdict_without_kernel(
    end: ContainerStateTerminated, state: str, container: str, around: Surroundings
) -> Verdict:
    """The best explanation of a SIGKILL that no report of the kernel tells of; never certain."""
    time = end.finished_at or ""
    evidence = list(ended_evidence(end, state))
    needs = Need.LOG_OF_THAT_TIME if around.has_log else Need.KERNEL_LOG
    if end.reason == STATUS_UNKNOWN:
        return Verdict(By.UNKNOWN, Sure.POSSIBLE, tuple(evidence), needs)
    oom_killed = end.reason == OOM_KILLED
    limit = around.limits.nearest
    stopping = [
        event
        for event in around.of_pod
        if event.reason == "Killing"
        and event.container in {"", container}
        and is_near(event, time, before=STOPPING_SECONDS, after=1)
    ]
    evidence += map(event_evidence, stopping)
    if around.being_deleted and state == "state":
        evidence.append(Evidence(Fact.BEING_DELETED))
    is_silent = around.silent_log is not None
    if is_silent:
        evidence.append(Evidence(Fact.KERNEL_SILENT, {"title": around.silent_log}))
    if not oom_killed and (stopping or (around.being_deleted and state == "state") or is_silent):
        return Verdict(By.SIGKILL, Sure.LIKELY, tuple(evidence), None if is_silent else needs)
    evidence += around.limits.evidence()
    of_node = list(around.of_node.near(time, "SystemOOM", "OOMKilling"))
    evidence += map(event_evidence, of_node)
    of_machine = [event for event in of_node if not event.message.startswith("Memory cgroup")]
    covered = around.of_node.covers(time) and moment(time) is not None
    if of_machine:
        return Verdict(By.NODE, Sure.POSSIBLE if limit else Sure.LIKELY, tuple(evidence), needs)
    evidence.append(Evidence(Fact.NO_SYSTEM_OOM if covered else Fact.NO_EVENTS))
    if limit is not None:
        sure = Sure.LIKELY if oom_killed or of_node else Sure.POSSIBLE
        return Verdict(limit, sure, tuple(evidence), needs)
    if around.neighbours:
        evidence.append(Evidence(Fact.NEIGHBOURS, {"count": around.neighbours}))
    if covered and (oom_killed or around.neighbours):
        sure = Sure.LIKELY if oom_killed else Sure.POSSIBLE
        return Verdict(By.PODS_LIMIT, sure, tuple(evidence), needs)
    return Verdict(By.UNKNOWN, Sure.POSSIBLE, tuple(evidence), needs)
