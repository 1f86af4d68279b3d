"""Every death that memory may explain, with the mechanism, how sure that is, and what speaks for it.

From the statuses of pods, from events, and from kernel logs where there are any. A container's id, which the
kernel prints as part of a cgroup path, brings the two together. Not here: the words (present/kills.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from statistics import median
from typing import Final

from kubectl_qos.k8s.events import Event, EventList, is_about, is_of_node_memory
from kubectl_qos.k8s.objects import ContainerStateTerminated, ContainerStatus, Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.cgroup.names import PodCgroup, pod_cgroup, pod_uid
from kubectl_qos.qos.kills.diagnosis import (
    OOM_KILLED,
    SIGKILLED,
    DeathContext,
    MemoryLimits,
    NodeEvents,
    diagnosis_without_kernel,
    ended_evidence,
    kernel_diagnosis,
    kubelet_kill,
    memory_limits,
)
from kubectl_qos.qos.kills.evidence import (
    Diagnosis,
    Evidence,
    Fact,
    Kill,
    KillConfidence,
    KillMechanism,
    Need,
    parse_moment,
    seconds_between,
)
from kubectl_qos.qos.kills.report import KernelLog, OomReport, Unranked, VictimChoice, explain_choice
from kubectl_qos.qos.oom_score import SANDBOX_ADJ

AGREES_SECONDS: Final = 10.0
"""A container's end is reported so long after the kernel killed it, at most, to be taken for its effect."""
NEIGHBOUR_SECONDS: Final = 60.0
_KILL_SIGNAL: Final = 9


@dataclass(frozen=True, slots=True)
class Death:
    """An end of a container, by its status: `state` of the last one, `lastState` of the one before."""

    pod: Pod
    container: str
    end: ContainerStateTerminated
    state: str
    container_id: str
    runs_once: bool

    @property
    def time(self) -> str:
        """When it ended."""
        return self.end.finished_at or ""

    @property
    def is_sigkill(self) -> bool:
        """Whether it ended by SIGKILL, or with an OOM kill counted."""
        end = self.end
        return end.exit_code == SIGKILLED or end.signal == _KILL_SIGNAL or end.reason == OOM_KILLED


@dataclass(eq=False)
class _Reported:
    """A report with where it was found, and whose cgroup its victim was in."""

    report: OomReport
    log: KernelLog
    cgroup: PodCgroup | None
    is_taken: bool = field(default=False)


def find_kills(
    snapshot: Snapshot,
    event_list: EventList,
    logs: Sequence[KernelLog] = (),
    *,
    wanted: Callable[[Pod], bool] = lambda _: True,
    outside_pods: bool = True,
) -> list[Kill]:
    """The deaths of the wanted pods, the newest first, those of unknown time last.

    `outside_pods` adds what the kernel killed outside pods, and in pods that are gone.
    """
    return _KillAnalyzer(snapshot, event_list, logs).kills(wanted, outside_pods=outside_pods)


class _KillAnalyzer:
    """What is known of all deaths together."""

    def __init__(self, snapshot: Snapshot, event_list: EventList, logs: Sequence[KernelLog]) -> None:
        self._snapshot = snapshot
        self._event_list = event_list
        self._logs = logs
        self._reported = [
            _Reported(report, log, pod_cgroup(report.task_memcg or report.group_kill))
            for log in logs
            for report in log.reports
        ]
        self._by_container: dict[str, list[_Reported]] = {}
        for one in self._reported:
            if one.cgroup is not None and one.cgroup.container_id:
                self._by_container.setdefault(one.cgroup.container_id, []).append(one)
        self._by_uid = {uid: pod for pod in snapshot.pods if (uid := pod_uid(pod))}
        self._events_of: dict[str, list[Event]] = {}
        for event in event_list.events:
            self._events_of.setdefault(event.involved_object.name, []).append(event)

    def kills(self, wanted: Callable[[Pod], bool], *, outside_pods: bool) -> list[Kill]:
        """All of them in order."""
        found = [kill for pod in self._snapshot.pods if wanted(pod) for kill in self._of_pod(pod)]
        for one in self._reported:
            if one.is_taken:
                continue
            pod = self._by_uid.get(one.cgroup.pod_uid) if one.cgroup is not None else None
            if outside_pods if pod is None else wanted(pod):
                found.append(self._of_report(one, pod))
        return sorted(found, key=_newest_first)

    def _of_pod(self, pod: Pod) -> Iterator[Kill]:
        events = [event for event in self._events_of.get(pod.name, ()) if is_about(event, pod)]
        kubelet = kubelet_kill(pod, events)
        deaths = list(_deaths(pod))
        told = False
        for death in deaths:
            reported = self._reports_of(death)
            by_kubelet = (
                kubelet is not None
                and death.state == "state"
                and kubelet.has_ended(death.end, runs_once=death.runs_once)
            )
            if reported and (death.is_sigkill or any(one.report.group_kill for one in reported)):
                kill = self._by_kernel(death, reported)
                if by_kubelet and kubelet is not None:
                    diagnosis = kill.diagnosis
                    kill = replace(
                        kill, diagnosis=replace(diagnosis, evidence=(*diagnosis.evidence, *kubelet.evidence))
                    )
                told |= by_kubelet
                yield kill
            elif by_kubelet and kubelet is not None:
                told = True
                diagnosis = kubelet.diagnosis(death.end, death.state, only_container=len(pod.containers) == 1)
                yield self._kill(death, diagnosis)
            elif death.is_sigkill:
                around = self._around(death, events)
                yield self._kill(
                    death, diagnosis_without_kernel(death.end, death.state, death.container, around)
                )
        if kubelet is not None and not told:
            diagnosis = kubelet.diagnosis(None, "", only_container=True)
            yield _death_of(pod, diagnosis, kubelet.time)

    def _by_kernel(self, death: Death, reported: list[_Reported]) -> Kill:
        """A death that the kernel tells of: the last report is about it, the others about its processes."""
        for one in reported:
            one.is_taken = True
        last = reported[-1]
        by, evidence = kernel_diagnosis(last.report, last.log.title)
        if len(reported) > 1:
            evidence.append(Evidence(Fact.OTHER_PROCESSES, {"count": len(reported) - 1}))
        evidence += ended_evidence(death.end, death.state)
        evidence += self._limits(death.pod, death.container).evidence()
        sure, needs = KillConfidence.CERTAIN, None
        if by is KillMechanism.UNKNOWN:
            sure = KillConfidence.POSSIBLE
        elif not _is_of_whole_container(last.report) and not _agrees(last.report, death.time):
            sure, needs = KillConfidence.LIKELY, Need.WALL_CLOCK
        return self._kill(death, Diagnosis(by, sure, tuple(evidence), needs), last)

    def _of_report(self, one: _Reported, pod: Pod | None) -> Kill:
        """A kill that no status tells of: in a container that went on or is gone, or outside pods."""
        report, cgroup = one.report, one.cgroup
        by, evidence = kernel_diagnosis(report, one.log.title)
        container_id = cgroup.container_id if cgroup is not None else ""
        container = ""
        if pod is not None:
            ids = {_hex(status.container_id): status.name for status in pod.status.every_container}
            container = ids.get(container_id, "")
            if container and container_id:
                evidence.append(Evidence(Fact.WENT_ON))
            elif len(pod.containers) == 1 and not pod.init_containers and not pod.ephemeral_containers:
                container = pod.containers[0].name
            if container:
                evidence += self._limits(pod, container).evidence()
        time, is_estimated = report.time, False
        boot = self._booted.get(id(one.log)) if not time and report.uptime is not None else None
        if boot is not None and report.uptime is not None:
            found = boot + timedelta(seconds=report.uptime)
            time, is_estimated = found.isoformat(timespec="seconds").replace("+00:00", "Z"), True
        node = pod.node_name if pod is not None else one.log.node or report.node
        return Kill(
            Diagnosis(
                by,
                KillConfidence.POSSIBLE if by is KillMechanism.UNKNOWN else KillConfidence.CERTAIN,
                tuple(evidence),
            ),
            time,
            is_estimated,
            pod.namespace if pod is not None else "",
            pod.name if pod is not None else "",
            container,
            node,
            cgroup.pod_uid if cgroup is not None else "",
            container_id,
            cgroup=report.task_memcg or report.group_kill,
            report=report,
            choice=self._choice(report, node),
        )

    def _kill(self, death: Death, diagnosis: Diagnosis, reported: _Reported | None = None) -> Kill:
        report = reported.report if reported is not None else None
        found = replace(
            _death_of(death.pod, diagnosis, death.time),
            container=death.container,
            container_id=death.container_id,
            exit_code=death.end.exit_code,
            reason=death.end.reason,
        )
        if report is None:
            return found
        return replace(
            found,
            time=found.time or report.time,
            cgroup=report.task_memcg or report.group_kill,
            report=report,
            choice=self._choice(report, death.pod.node_name),
        )

    def _choice(self, report: OomReport, node: str) -> VictimChoice | Unranked:
        facts = self._snapshot.setup(node).node
        capacity = facts.memory_capacity_bytes
        return explain_choice(report, capacity + facts.swap_capacity_bytes if capacity else None)

    def _reports_of(self, death: Death) -> list[_Reported]:
        """By the id; where the status has none, by the pod and the time."""
        if death.container_id:
            return self._by_container.get(death.container_id, [])
        uid = pod_uid(death.pod)
        return [
            one
            for one in self._reported
            if uid and one.cgroup is not None and one.cgroup.pod_uid == uid and not one.is_taken
            if _agrees(one.report, death.time)
        ][-1:]

    def _limits(self, pod: Pod, container: str) -> MemoryLimits:
        return memory_limits(pod, container, self._snapshot.setup(pod.node_name))

    def _around(self, death: Death, events: Sequence[Event]) -> DeathContext:
        pod = death.pod
        logs = [log for log in self._logs if pod.node_name and pod.node_name in self._nodes_of(log)]
        limits = self._limits(pod, death.container)
        neighbours = 0
        if limits.nearest is None:
            neighbours = sum(self._is_neighbour(other, death) for other in self._unlimited)
        return DeathContext(
            limits=limits,
            of_node=self._node_events(pod.node_name),
            of_pod=events,
            being_deleted=pod.metadata.deletion_timestamp is not None,
            neighbours=neighbours,
            has_log=bool(logs),
            silent_log=next((log.title for log in logs if _is_silent(log, death.time)), None),
        )

    def _node_events(self, node: str) -> NodeEvents:
        event_list = self._event_list
        events = [event for event in self._events_of.get(node, ()) if is_of_node_memory(event, node)]
        return NodeEvents(events, self._since if event_list.of_nodes else None)

    @cached_property
    def _since(self) -> str | None:
        return min(
            (event.last for event in self._event_list.events if parse_moment(event.last)), default=None
        )

    @cached_property
    def _unlimited(self) -> list[Death]:
        """Containers without any limit that were OOMKilled: the limit of all pods, or the node."""
        return [
            death
            for pod in self._snapshot.pods
            for death in _deaths(pod)
            if death.end.reason == OOM_KILLED and self._limits(pod, death.container).nearest is None
        ]

    @staticmethod
    def _is_neighbour(other: Death, death: Death) -> bool:
        if other.pod.node_name != death.pod.node_name or other.container_id == death.container_id:
            return False
        apart = seconds_between(other.time, death.time)
        return apart is not None and abs(apart) <= NEIGHBOUR_SECONDS

    def _nodes_of(self, log: KernelLog) -> frozenset[str]:
        """Whose log it is: as a person says, as its lines say, or by the pods in it."""
        found = self._log_nodes.get(id(log))
        if found is None:
            found = frozenset({log.node}) if log.node else frozenset(self._guessed_nodes(log))
            self._log_nodes[id(log)] = found
        return found

    @cached_property
    def _log_nodes(self) -> dict[int, frozenset[str]]:
        return {}

    def _guessed_nodes(self, log: KernelLog) -> Iterator[str]:
        for one in self._reported:
            if one.log is log:
                pod = self._by_uid.get(one.cgroup.pod_uid) if one.cgroup is not None else None
                yield pod.node_name if pod is not None else one.report.node

    @cached_property
    def _booted(self) -> dict[int, datetime]:
        """When the machines of logs without wall-clock times booted, by deaths that are in statuses too."""
        ends = {
            death.container_id: death.time
            for pod in self._snapshot.pods
            for death in _deaths(pod)
            if death.is_sigkill and death.container_id
        }
        found: dict[int, list[float]] = {}
        for one in self._reported:
            ended = parse_moment(ends.get(one.cgroup.container_id)) if one.cgroup is not None else None
            if ended is not None and one.report.uptime is not None:
                found.setdefault(id(one.log), []).append(ended.timestamp() - one.report.uptime)
        return {log: datetime.fromtimestamp(median(boots), UTC) for log, boots in found.items()}


def _deaths(pod: Pod) -> Iterator[Death]:
    """The ends of its containers that are in its status, the last two of each."""
    status = pod.status
    sidecars = {one.name for one in pod.init_containers if one.restart_policy == "Always"}
    init = {one.name for one in status.init_container_statuses or ()} - sidecars
    for one in status.every_container:
        for name, end in _ends(one):
            container_id = end.container_id or (one.container_id if name == "state" else "")
            yield Death(pod, one.name, end, name, _hex(container_id), one.name in init)


def _ends(status: ContainerStatus) -> Iterable[tuple[str, ContainerStateTerminated]]:
    for name, state in (("state", status.state), ("lastState", status.last_state)):
        if state is not None and state.terminated is not None:
            yield name, state.terminated


def _death_of(pod: Pod, diagnosis: Diagnosis, time: str) -> Kill:
    return Kill(
        diagnosis, time, namespace=pod.namespace, pod=pod.name, node=pod.node_name, pod_uid=pod_uid(pod)
    )


def _hex(container_id: str) -> str:
    return container_id.rpartition("://")[2]


def _is_of_whole_container(report: OomReport) -> bool:
    """Whether the victim was all that the container had, so that its end is the container's."""
    others = [task for task in report.tasks if task.adj != SANDBOX_ADJ]
    return bool(report.group_kill) or len(others) == 1


def _agrees(report: OomReport, time: str) -> bool:
    """Whether a report is of about the time of an end; one without a zone, or without a time, never is."""
    if not report.time.endswith("Z"):
        return False
    after = seconds_between(report.time, time)
    return after is not None and -AGREES_SECONDS / 2 <= after <= AGREES_SECONDS


def _is_silent(log: KernelLog, time: str) -> bool:
    """Whether a log has all that happened at a time, and no kill there of which it does not say whose it was.

    Above its rate limit the kernel prints victims without their cgroups.
    """
    if not _covers(log, time):
        return False
    nameless = [one for one in log.reports if not (one.task_memcg or one.group_kill)]
    return not any(not one.time or _agrees(one, time) for one in nameless)


def _covers(log: KernelLog, time: str) -> bool:
    if log.left_out or not log.first.endswith("Z") or not log.last.endswith("Z"):
        return False
    since, until = seconds_between(log.first, time), seconds_between(time, log.last)
    return since is not None and until is not None and since >= AGREES_SECONDS and until >= 0


def _newest_first(kill: Kill) -> tuple[bool, float, str, str, str]:
    when = parse_moment(kill.time)
    return when is None, -(when.timestamp() if when else 0), kill.namespace, kill.pod, kill.container
