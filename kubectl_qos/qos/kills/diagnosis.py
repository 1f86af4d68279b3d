"""What a kubelet ended for memory: evictions under pressure, and preemption to admit a critical pod.

Sources: pkg/kubelet/eviction/helpers.go (evictionMessage) and eviction_manager.go (evictPod),
pkg/kubelet/preemption/preemption.go, pkg/kubelet/events/event.go. A pod whose processes end well on SIGTERM
gets phase Succeeded and no status.reason: then only the condition (1.26 and later) and the event tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import MEMORY, ContainerStateTerminated, Pod, all_containers
from kubectl_qos.qos.cgroup.names import PathLevel, path_level
from kubectl_qos.qos.kills.evidence import (
    Diagnosis,
    Evidence,
    Fact,
    KillConfidence,
    KillMechanism,
    Need,
    parse_moment,
    seconds_between,
)
from kubectl_qos.qos.kills.report import Constraint, OomReport
from kubectl_qos.qos.prediction import predict

EVICTED: Final = "Evicted"
PREEMPTING: Final = "Preempting"
BY_KUBELET: Final = "TerminationByKubelet"
SLACK_SECONDS: Final = 2.0
"""Events and statuses have whole seconds."""

_MEMORY: Final = re.compile(r"low on resource: \[?memory", re.IGNORECASE)
_CRITICAL: Final = re.compile(r"Preempted in order to admit|preempted by Kubelet to accommodate a critical")
_EMPTY_DIR: Final = re.compile(r'Usage of EmptyDir volume "(?P<name>[^"]*)" exceeds')


@dataclass(frozen=True, slots=True)
class KubeletKill:
    """A pod that its kubelet ended; `time` is that of the event, empty without one.

    `is_said` is whether the resource is: the status of old kubelets may have no message.
    """

    by: KillMechanism
    time: str
    evidence: tuple[Evidence, ...]
    is_said: bool

    def has_ended(self, end: ContainerStateTerminated, *, runs_once: bool) -> bool:
        """Whether a container ended by it: not before, and not an init container that was done."""
        after = seconds_between(self.time, end.finished_at)
        if after is not None:
            return after >= -SLACK_SECONDS
        return not (runs_once and end.exit_code == 0)

    def diagnosis(
        self, end: ContainerStateTerminated | None, state: str, *, only_container: bool
    ) -> Diagnosis:
        """What is to be said of one of its containers, None for the pod as a whole.

        A SIGKILL may still be the kernel's, which is a matter of who came first.
        """
        evidence = (*(ended_evidence(end, state) if end is not None else ()), *self.evidence)
        if not self.is_said:
            return Diagnosis(self.by, KillConfidence.POSSIBLE, evidence, None)
        if end is None:
            return Diagnosis(self.by, KillConfidence.CERTAIN, evidence)
        killed = end.exit_code == SIGKILLED or end.reason == OOM_KILLED
        if killed:
            return Diagnosis(self.by, KillConfidence.LIKELY, evidence, Need.KERNEL_LOG)
        sure = KillConfidence.CERTAIN if self.time or only_container else KillConfidence.LIKELY
        return Diagnosis(self.by, sure, evidence)


def kubelet_kill(pod: Pod, events: Iterable[Event]) -> KubeletKill | None:
    """How its kubelet ended a pod for memory; None if it did not, or for disks or process ids."""
    status = pod.status
    told = [event for event in events if event.reason in {EVICTED, PREEMPTING}]
    evidence, messages = [], []
    if status.reason in {EVICTED, PREEMPTING}:
        evidence.append(Evidence(Fact.POD_ENDED, {"reason": status.reason, "message": status.message}))
        messages.append(status.message)
    for condition in status.conditions or ():
        is_kubelet = condition.reason == BY_KUBELET and condition.status == "True"
        if condition.type == "DisruptionTarget" and is_kubelet:
            said = {"reason": condition.reason, "message": condition.message}
            evidence.append(Evidence(Fact.DISRUPTED, said))
            messages.append(condition.message)
    evidence += map(event_evidence, told)
    messages += [event.message for event in told]
    if not evidence:
        return None
    time = max((event.last for event in told), default="")
    if status.reason == PREEMPTING or any(map(_CRITICAL.search, messages)):
        return KubeletKill(KillMechanism.PREEMPTION, time, tuple(evidence), is_said=True)
    if any(_MEMORY.search(message) for message in messages) or any(_in_memory(pod, messages)):
        return KubeletKill(KillMechanism.EVICTION, time, tuple(evidence), is_said=True)
    if not any(messages) and status.reason == EVICTED:
        return KubeletKill(KillMechanism.EVICTION, time, tuple(evidence), is_said=False)
    return None


def _in_memory(pod: Pod, messages: Iterable[str]) -> Iterator[bool]:
    """Whether a volume that was too full is one of medium Memory."""
    full = {found["name"] for message in messages if (found := _EMPTY_DIR.search(message)) is not None}
    for volume in pod.spec.volumes or ():
        if volume.name in full and volume.empty_dir is not None:
            yield volume.empty_dir.medium == "Memory"


SIGKILLED: Final = 137
NEAR_SECONDS: Final = 15.0
"""A kubelet of a node without memory reports late, and times of statuses are whole seconds."""
STOPPING_SECONDS: Final = 120.0
"""A stopped container has so long, and mostly less, until SIGKILL."""
STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
OOM_KILLED: Final = "OOMKilled"


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Memory limits of a container and of its pod's cgroup in bytes, None without."""

    own: int | None
    pod: int | None

    @property
    def nearest(self) -> KillMechanism | None:
        """Which of them is reached first.

        A container's memory is its pod's too, and so is that of the pause container. Of a pod with one
        container, whose limit is the pod's as well, it is the pod's cgroup that runs out.
        """
        if self.own is None:
            return KillMechanism.POD_LIMIT if self.pod is not None else None
        return (
            KillMechanism.POD_LIMIT
            if self.pod is not None and self.pod <= self.own
            else KillMechanism.CONTAINER_LIMIT
        )

    def evidence(self) -> Iterator[Evidence]:
        """What there is."""
        if self.own is not None:
            yield Evidence(Fact.OWN_LIMIT, {"bytes": self.own})
        if self.pod is not None:
            yield Evidence(Fact.POD_LIMIT, {"bytes": self.pod})
        if self.own is not None and self.nearest is KillMechanism.POD_LIMIT:
            yield Evidence(Fact.SAME_LIMIT)
        if self.nearest is None:
            yield Evidence(Fact.NO_LIMIT)


def memory_limits(pod: Pod, container: str, setup: NodeSetup) -> MemoryLimits:
    """The limits as the kubelet writes them; where that cannot be predicted, as the spec has them."""
    try:
        found = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
        own = _memory_limit(found.container(container).cgroup.files)
        return MemoryLimits(own, _memory_limit(found.cgroup.files))
    except QosError:
        spec = next((one for one in all_containers(pod) if one.name == container), None)
        limit = spec.limits.get(MEMORY) if spec is not None else None
        return MemoryLimits(limit.value() if limit is not None else None, None)


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


def kernel_diagnosis(report: OomReport, title: str) -> tuple[KillMechanism, list[Evidence]]:
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
    return oom_domain(report), evidence


def oom_domain(report: OomReport) -> KillMechanism:
    """Whose memory ran out, by the kernel's own words."""
    if report.constraint is None:
        return KillMechanism.UNKNOWN
    if report.constraint is not Constraint.MEMCG:
        return KillMechanism.NODE
    if not report.oom_memcg:
        return KillMechanism.UNKNOWN
    return _DOMAINS[path_level(report.oom_memcg, report.task_memcg)]


_DOMAINS: Final = {
    PathLevel.ABOVE: KillMechanism.NODE,
    PathLevel.PODS: KillMechanism.PODS_LIMIT,
    PathLevel.QOS_CLASS: KillMechanism.PODS_LIMIT,
    PathLevel.POD: KillMechanism.POD_LIMIT,
    PathLevel.CONTAINER: KillMechanism.CONTAINER_LIMIT,
    PathLevel.OTHER: KillMechanism.CGROUP_LIMIT,
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
class DeathContext:
    """What is known around a death: its limits, events of its pod and node, neighbours, the kernel's silence.

    `neighbours` counts containers of the node without a limit that were OOMKilled at that time;
    `silent_log` names a kernel log of the node that covers that time and does not have it.
    """

    limits: MemoryLimits
    of_node: NodeEvents
    of_pod: Iterable[Event]
    being_deleted: bool = False
    neighbours: int = 0
    has_log: bool = False
    silent_log: str | None = None


def diagnosis_without_kernel(
    end: ContainerStateTerminated, state: str, container: str, around: DeathContext
) -> Diagnosis:
    """The best explanation of a SIGKILL that no report of the kernel tells of; never certain."""
    time = end.finished_at or ""
    evidence = list(ended_evidence(end, state))
    needs = Need.LOG_OF_THAT_TIME if around.has_log else Need.KERNEL_LOG
    if end.reason == STATUS_UNKNOWN:
        return Diagnosis(KillMechanism.UNKNOWN, KillConfidence.POSSIBLE, tuple(evidence), needs)
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
        return Diagnosis(
            KillMechanism.SIGKILL, KillConfidence.LIKELY, tuple(evidence), None if is_silent else needs
        )
    evidence += around.limits.evidence()
    of_node = list(around.of_node.near(time, "SystemOOM", "OOMKilling"))
    evidence += map(event_evidence, of_node)
    of_machine = [event for event in of_node if not event.message.startswith("Memory cgroup")]
    covered = around.of_node.covers(time) and parse_moment(time) is not None
    if of_machine:
        return Diagnosis(
            KillMechanism.NODE,
            KillConfidence.POSSIBLE if limit else KillConfidence.LIKELY,
            tuple(evidence),
            needs,
        )
    evidence.append(Evidence(Fact.NO_SYSTEM_OOM if covered else Fact.NO_EVENTS))
    if limit is not None:
        sure = KillConfidence.LIKELY if oom_killed or of_node else KillConfidence.POSSIBLE
        return Diagnosis(limit, sure, tuple(evidence), needs)
    if around.neighbours:
        evidence.append(Evidence(Fact.NEIGHBOURS, {"count": around.neighbours}))
    if covered and (oom_killed or around.neighbours):
        sure = KillConfidence.LIKELY if oom_killed else KillConfidence.POSSIBLE
        return Diagnosis(KillMechanism.PODS_LIMIT, sure, tuple(evidence), needs)
    return Diagnosis(KillMechanism.UNKNOWN, KillConfidence.POSSIBLE, tuple(evidence), needs)
