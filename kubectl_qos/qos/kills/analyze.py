"""Every OOM kill and eviction, certain or possible, with its diagnosis: mechanism, confidence and evidence.

Sources are pod statuses, events and kernel logs; container IDs, which kernels print in cgroup paths, join
them. Not here: the words (present/kills.py).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from statistics import median
from typing import Any, Final

import msgspec
from msgspec import structs

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import low_pod_limit
from kubectl_qos.k8s.events import Event, EventList, is_about, is_of_node_memory
from kubectl_qos.k8s.objects import UNKNOWN_CONTAINER, ContainerStateTerminated, ObjectMeta, Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.cgroup.names import container_of_unit, is_uid, pod_cgroup, pod_uid
from kubectl_qos.qos.killers import BY_ID, BY_RANK, Mechanism
from kubectl_qos.qos.kills.choice import Unranked, VictimChoice, explain_choice
from kubectl_qos.qos.kills.evidence import (
    NEAR_SECONDS,
    OOM_KILLED,
    SIGKILLED,
    WAITING,
    DeathContext,
    Diagnosis,
    Evidence,
    Fact,
    KubeletKill,
    MemoryLimits,
    Need,
    diagnosis_without_kernel,
    ended_evidence,
    event_evidence,
    is_end,
    kubelet_kill,
    memory_limits,
    report_evidence,
    stop_of_pod,
)
from kubectl_qos.qos.kills.report import Constraint, KernelLog, OomReport, distinct_reports, seconds_between
from kubectl_qos.qos.logs.daemon_lines import (
    SERVICES,
    container_by_name,
    event_reports,
    without_second_hand,
)
from kubectl_qos.qos.oom_score import SANDBOX_ADJ
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import oom_at_start, stated_limit
from kubectl_qos.qos.simulation.ceiling import CeilingScope

AGREES_SECONDS: Final = 10.0
"""A container's end within this time after a kernel kill counts as its effect."""
NEIGHBOUR_SECONDS: Final = 60.0
_KILL_SIGNAL: Final = 9
_CONTAINER: Final = re.compile(r"\bcontainer ['\"](?P<name>[a-z0-9][a-z0-9-]{0,62})['\"]")
_OLD_KERNELS: Final = ("3.", "4.")
"""Kernels whose message for a kill at a limit every kubelet recognizes."""


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """A death: of a container, of a process in a surviving container, or of a host process.

    `pod` is "" for processes outside pods, and if only the `pod_uid` in the kernel's path is known.
    `is_unlisted`: the list of pods, with their UIDs, lacks the pod. `container` is "" if only its ID is
    known, or if the whole pod died. `is_own`: it was at the limit of a pod with one container. `time` is RFC
    3339. Estimated times come from seconds since boot and other deaths in the same log, or from log lines
    without a year.
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
    is_unlisted: bool = False
    is_own: bool = False
    report: OomReport | None = None
    choice: VictimChoice | Unranked | None = None

    @property
    def score(self) -> int | None:
        """Score of the victim in /proc/PID/oom_score, if the kernel's numbers are known."""
        return self.choice.chosen.score if isinstance(self.choice, VictimChoice) else None

    @property
    def freed_bytes(self) -> int | None:
        """Memory held by the killed processes, according to the kernel."""
        freed = self.report.freed_kb if self.report is not None else None
        return None if freed is None else freed * 1024


def find_kills(
    snapshot: Snapshot,
    event_list: EventList,
    logs: Sequence[KernelLog] = (),
    *,
    is_included: Callable[[Pod], bool] = lambda _: True,
    outside_pods: bool = True,
) -> list[Kill]:
    """Find the deaths of the included pods, newest first; deaths of unknown time are last.

    `outside_pods` adds kills outside pods, and in deleted pods.
    """
    return _KillAnalyzer(snapshot, event_list, logs).kills(is_included, outside_pods=outside_pods)


def is_since(kill: Kill, moment: datetime) -> bool:
    """Return whether a kill was at this moment or later, or its time is unknown."""
    when = parse_time(kill.time)
    return when is None or when >= moment


def newest_first(kill: Kill) -> tuple[bool, float, float, str, str, str]:
    """Return a sort key: newest first, within a second by the times in the log, unknown times last."""
    when, by_log = parse_time(kill.time), 0.0
    if kill.report is not None:
        at, line = parse_time(kill.report.time), kill.report.line if when is not None else 0
        by_log = kill.report.uptime or (at.timestamp() if at is not None else line)
    moment = when.timestamp() if when is not None else 0
    return when is None, -moment, -by_log, kill.namespace, kill.pod, kill.container


class _Death(msgspec.Struct, frozen=True):
    """The end of a container by a field of its status: `state`, `lastState`, or WAITING if it never started.

    `runs_once`: it is an init container. `is_named`: the runtime names memory as the cause.
    """

    pod: Pod
    container: str
    end: ContainerStateTerminated
    state: str
    container_id: str
    runs_once: bool

    @property
    def time(self) -> str:
        return self.end.finished_at or ""

    @property
    def is_named(self) -> bool:
        return bool(oom_at_start(self.end.message, stated_limit(self.pod, self.container)))

    @property
    def is_sigkill(self) -> bool:
        end = self.end
        is_killed = end.exit_code == SIGKILLED or end.signal == _KILL_SIGNAL or end.reason == OOM_KILLED
        return is_killed or self.is_named


@dataclass(eq=False)
class _Reported:
    """A report with its log, and the pod and container of its victim ("" outside pods)."""

    report: OomReport
    log: KernelLog
    pod_uid: str
    container_id: str
    is_taken: bool = False

    @property
    def is_vague(self) -> bool:
        """Return whether it only says that the kernel killed something, which a status says better."""
        return bool(self.report.logged_by) and self.report.constraint is None


class _KillAnalyzer:
    def __init__(self, snapshot: Snapshot, event_list: EventList, logs: Sequence[KernelLog]) -> None:
        self._snapshot = snapshot
        self._event_list = event_list = structs.replace(
            event_list, events=without_second_hand(event_list.events)
        )
        self._logs = logs
        self._pods = {uid: pod for pod in snapshot.pods if (uid := pod_uid(pod))}
        # Text of kubectl and manifests have no UIDs.
        self._has_uids = bool(snapshot.pods) and all(map(pod_uid, snapshot.pods))
        self._reported: list[_Reported] = []
        self._by_container: dict[str, list[_Reported]] = {}
        for report, log in distinct_reports(logs):
            cgroup = pod_cgroup(report.cgroup)
            # A user may have masked the UID.
            is_known = cgroup is not None and (is_uid(cgroup.pod_uid) or cgroup.pod_uid in self._pods)
            ids = "", container_of_unit(report.cgroup)
            if cgroup is not None:
                ids = cgroup.pod_uid if is_known else "", cgroup.container_id
            self._reported.append(_Reported(report, log, *ids))
            if ids[1]:
                self._by_container.setdefault(ids[1], []).append(self._reported[-1])
        self._known_limits: dict[tuple[int, str], tuple[Pod, MemoryLimits]] = {}
        self._events: dict[str, list[Event]] = {}
        for event in event_list.events:
            self._events.setdefault(event.involved_object.name, []).append(event)

    def kills(self, is_included: Callable[[Pod], bool], *, outside_pods: bool) -> list[Kill]:
        pods = (*self._snapshot.pods, *self._gone_pods())
        kills = [kill for pod in pods if is_included(pod) for kill in self._pod_kills(pod)]
        for reported in self._reported:
            pod = self._pods.get(reported.pod_uid)
            is_shown = outside_pods if pod is None else is_included(pod)
            if is_shown and not reported.is_taken:
                kills.append(self._report_kill(reported, pod))
        without_event = dict(enumerate(kills))
        for event, report in self._event_reports():
            apart = {index: seconds_apart(kill, report) for index, kill in without_event.items()}
            near = [(seconds, index) for index, seconds in apart.items() if seconds is not None]
            if near:
                index = min(near)[1]
                if len(near) == 1:
                    kills[index] = self._with_victim(kills[index], report)
                if report.constraint is not Constraint.MEMCG:
                    del without_event[index]
                continue
            kill = self._event_kill(event, report)
            is_shown = is_included(self._pods[kill.pod_uid]) if kill.pod else outside_pods
            if is_shown:
                kills.append(kill)
        return sorted(kills, key=newest_first)

    def _gone_pods(self) -> Iterator[Pod]:
        """Yield pods that the list lacks, and that a kubelet ended or could not start according to events.

        A StatefulSet creates a pod again under the same name, with another UID.
        """
        listed = {pod.key: pod for pod in self._snapshot.pods if pod.kind == "Pod"}
        gone: dict[PodKey, dict[str, Pod]] = {}
        for event in self._event_list.events:
            involved = event.involved_object
            key, uid = (involved.namespace, involved.name), involved.uid
            is_of_end = is_end(event) or event.is_pod_oom or bool(oom_at_start(event.message))
            if is_of_end and involved.kind == "Pod" and not (key in listed and is_about(event, listed[key])):
                metadata = ObjectMeta(name=involved.name, namespace=involved.namespace, uid=uid)
                gone.setdefault(key, {})[uid] = Pod(metadata=metadata)
        for pods in gone.values():
            yield from (pod for uid, pod in pods.items() if uid or len(pods) == 1)

    def _with_victim(self, kill: Kill, report: OomReport) -> Kill:
        """Add the process that an event of the node names at the time of the kill."""
        pod, victim = self._pods.get(kill.pod_uid), report.victim
        if kill.report is not None or pod is None or victim is None or victim.adj is None:
            return kill
        try:
            prediction = predict_running(pod, self._snapshot.setup(pod.node_name)).container(kill.container)
        except QosError:
            return kill
        details = {"command": victim.comm, "adj": victim.adj, "range": prediction.oom_score_adj_range}
        evidence = (*kill.diagnosis.evidence, Evidence(Fact.EVENT_VICTIM, details))
        return structs.replace(kill, diagnosis=structs.replace(kill.diagnosis, evidence=evidence))

    def _event_kill(self, event: Event, report: OomReport) -> Kill:
        """Return a kill known only by a node event, which names no cgroup."""
        mechanism, evidence, victim = report.mechanism, [event_evidence(event)], report.victim
        confidence = Confidence.CERTAIN
        if mechanism is Mechanism.KERNEL:
            release = self._snapshot.setup(report.node).release
            evidence.append(Evidence(Fact.SYSTEM_OOM_OF_LIMIT, {"release": str(release)}))
        elif event.reason == "SystemOOM" and not self._has_release(report.node):
            old = f"before 1.{Change.SYSTEM_OOM_IS_OF_NODE.since}, which this may be,"
            evidence.append(Evidence(Fact.SYSTEM_OOM_OF_LIMIT, {"release": old}))
            confidence = Confidence.LIKELY
        pods = self._snapshot.by_node().get(report.node, ())
        is_service = victim is not None and victim.comm in SERVICES and mechanism == BY_RANK.id
        pod_and_container = None
        if victim is not None and not is_service:
            pod_and_container = container_by_name(pods, victim.comm)
        if pod_and_container is None or not pod_uid(pod_and_container[0]):
            evidence += [Evidence(Fact.OF_NODE, {"command": report.processes[0].comm})] if is_service else []
            needs = None if is_service else Need.KERNEL_LOG
            diagnosis = Diagnosis(mechanism, confidence, tuple(evidence), needs)
            return Kill(diagnosis=diagnosis, time=event.last, node=report.node, report=report)
        pod, container = pod_and_container
        evidence.append(Evidence(Fact.BY_NAME, {"command": report.processes[0].comm}))
        evidence += self._limits(pod, container).evidence()
        diagnosis = Diagnosis(mechanism, Confidence.POSSIBLE, tuple(evidence), Need.KERNEL_LOG)
        return _kill(pod, diagnosis, time=event.last, container=container, report=report)

    def _has_release(self, node_name: str) -> bool:
        """Return whether the release of a node's kubelet is known, or that of the server."""
        node = self._snapshot.nodes.get(node_name)
        stated = node.status.node_info.kubelet_version if node is not None else ""
        return bool(stated or self._snapshot.server_version)

    def _event_reports(self) -> Iterator[tuple[Event, OomReport]]:
        """Yield node events about kills, without a constraint where an old kubelet meets a new kernel.

        Such a kubelet takes a kill at a limit for one of a full node.
        """
        for event, report in event_reports(self._event_list.events):
            setup = self._snapshot.setup(report.node)
            is_old = not setup.release.has(Change.SYSTEM_OOM_IS_OF_NODE)
            is_vague = (
                is_old and event.reason == "SystemOOM" and not setup.node.kernel.startswith(_OLD_KERNELS)
            )
            yield event, replace(report, constraint=None) if is_vague else report

    def _pod_kills(self, pod: Pod) -> Iterator[Kill]:
        events = [event for event in self._events.get(pod.name, ()) if is_about(event, pod)]
        kubelet = kubelet_kill(pod, events)
        deaths, ended_by_kubelet, is_explained = [*_deaths(pod, events)], [], False
        if kubelet is not None:
            last_ends = (death for death in deaths if death.state == "state" and not death.is_named)
            ended_by_kubelet = [
                death for death in last_ends if kubelet.has_ended(death.end, runs_once=death.runs_once)
            ]
        for death in deaths:
            end, state = death.end, death.state
            alike = self._reports_of(death)
            reports = [reported for reported in alike if not reported.is_vague]
            for reported in alike:
                reported.is_taken |= reported.is_vague
            by_kubelet = kubelet if death in ended_by_kubelet else None
            if reports and (death.is_sigkill or any(reported.report.group_kill for reported in reports)):
                yield self._kernel_kill(death, reports, by_kubelet)
            elif by_kubelet is not None:
                is_only = len(pod.containers) == 1
                diagnosis = by_kubelet.container_diagnosis(end, state, is_only=is_only)
                if len(ended_by_kubelet) > 1 and diagnosis.confidence is Confidence.CERTAIN:
                    continue  # The whole pod died: one kill, below.
                yield _death_kill(death, diagnosis, time=death.time or by_kubelet.time)
            elif death.is_sigkill:
                context = self._context(death, events)
                yield _death_kill(death, diagnosis_without_kernel(end, state, death.container, context))
            is_explained |= by_kubelet is not None
        if not deaths and kubelet is None:
            yield from self._by_events(pod, events)
        if kubelet is not None and not is_explained and kubelet.mechanism is not Mechanism.SHUTDOWN:
            # An evicted pod stops being ready at about the time of the eviction.
            unready = (item.last_transition_time for item in pod.status.conditions or () if item.is_unready)
            time = kubelet.time or next(filter(None, unready), "")
            diagnosis = Diagnosis(kubelet.mechanism, Confidence.CERTAIN, kubelet.evidence)
            yield _kill(pod, diagnosis, time=time, time_is_estimated=time != kubelet.time)

    def _by_events(self, pod: Pod, events: Sequence[Event]) -> Iterator[Kill]:
        """Yield kills that only events report: failed starts, and OOM kills that controllers name."""
        starts = {event.container: event for event in events if oom_at_start(event.message)}
        for container, event in starts.items():
            limits = self._limits(pod, container or next((spec.name for spec in pod.containers), ""))
            limits = limits if container else structs.replace(limits, own=None)
            if limits.nearest is not None or not limits.is_known:
                words = Evidence(Fact.OOM_AT_START, {"words": oom_at_start(event.message), "is_named": True})
                evidence = (event_evidence(event), words, *limits.evidence())
                diagnosis = Diagnosis(Mechanism.START_LIMIT, Confidence.CERTAIN, evidence)
                yield _kill(pod, diagnosis, time=event.last, container=container)
        for event in (event for event in events if event.is_pod_oom):
            named = _CONTAINER.search(event.message)
            container = event.container or (named["name"] if named is not None else "")
            evidence = (event_evidence(event),)
            is_of_cgroup = "cgroup" in f"{event.reason} {event.message}".lower()
            mechanism = Mechanism.MEMORY_LIMIT if is_of_cgroup else Mechanism.KERNEL
            diagnosis = Diagnosis(mechanism, Confidence.LIKELY, evidence, Need.KERNEL_LOG)
            yield _kill(pod, diagnosis, time=event.last, container=container)

    def _kernel_kill(self, death: _Death, reports: list[_Reported], kubelet: KubeletKill | None) -> Kill:
        """Return a death with its last report; earlier reports are about other processes of the container."""
        for reported in reports:
            reported.is_taken = True
        report = reports[-1].report
        evidence = list(report_evidence(report, reports[-1].log.title))
        if len(reports) > 1:
            evidence.append(Evidence(Fact.OTHER_PROCESSES, {"count": len(reports) - 1}))
        evidence += ended_evidence(death.end, death.state)
        evidence += self._limits(death.pod, death.container).evidence()
        if kubelet is not None:
            evidence += kubelet.evidence
        confidence, needs = report.confidence, None
        if not _ends_container(report) and not _is_of_time(report, death.time):
            confidence, needs = Confidence.LIKELY, Need.WALL_CLOCK
        return _death_kill(
            death,
            Diagnosis(report.mechanism, confidence, tuple(evidence), needs),
            time=death.time or report.time,
            time_is_estimated=report.year_is_guessed and not death.time,
            **self._report_fields(report, death.pod.node_name),
        )

    def _report_kill(self, reported: _Reported, pod: Pod | None) -> Kill:
        """Return a kill without a status: in a surviving or deleted container, or outside pods."""
        report = reported.report
        evidence = list(report_evidence(report, reported.log.title))
        container = ""
        named = (reported.log.pods.get(key) for key in (reported.container_id, reported.pod_uid))
        namespace, name = pod.key if pod is not None else next(filter(None, named), ("", ""))
        if pod is None and name:
            container = UNKNOWN_CONTAINER
            evidence.append(Evidence(Fact.KUBELET_NAMES_POD))
        elif pod is not None:
            statuses, shown = pod.status.every_container, reported.container_id or "-"
            # A person may have shortened the ID.
            alike = (status.name for status in statuses if _hex(status.container_id).startswith(shown))
            container = next(alike, "")
            # A status may be older than the report.
            if container and reported.container_id and not _ends_container(report):
                evidence.append(Evidence(Fact.WENT_ON))
            elif len(pod.containers) == 1 and not pod.init_containers and not pod.ephemeral_containers:
                container = pod.containers[0].name
            if container:
                evidence += self._limits(pod, container).evidence()
        time, is_estimated = report.time, report.year_is_guessed
        if not time and report.uptime is not None and id(reported.log) in self._boot_times:
            moment = self._boot_times[id(reported.log)] + timedelta(seconds=report.uptime)
            time, is_estimated = moment.isoformat(timespec="seconds").replace("+00:00", "Z"), True
        node = pod.node_name if pod is not None else reported.log.node or report.node
        return Kill(
            diagnosis=Diagnosis(report.mechanism, report.confidence, tuple(evidence)),
            time=time,
            time_is_estimated=is_estimated,
            namespace=namespace,
            pod=name,
            container=container,
            node=node,
            pod_uid=reported.pod_uid,
            container_id=reported.container_id,
            is_unlisted=pod is None and self._has_uids,
            is_own=pod is not None and _is_own(pod, report.mechanism),
            **self._report_fields(report, node),
        )

    def _report_fields(self, report: OomReport, node: str) -> dict[str, Any]:
        facts = self._snapshot.setup(node).node
        capacity = facts.memory_capacity_bytes
        machine = capacity + facts.swap_capacity_bytes if capacity else None
        choice = explain_choice(report, machine) if report.daemon is None else None
        return {"cgroup": report.cgroup, "report": report, "choice": choice}

    def _reports_of(self, death: _Death) -> list[_Reported]:
        """Return the reports with the container's ID, else of its pod at that time."""
        if death.container_id in self._by_container:
            return self._by_container[death.container_id]
        uid = pod_uid(death.pod)
        of_pod = [reported for reported in self._reported if uid and reported.pod_uid == uid]
        # A daemon kills all containers of a pod at once.
        return [
            reported
            for reported in of_pod
            if (reported.report.daemon is not None or not (death.container_id or reported.is_taken))
            and _is_of_time(reported.report, death.time)
        ][-1:]

    def _limits(self, pod: Pod, container: str) -> MemoryLimits:
        key = id(pod), container
        if key not in self._known_limits:
            limits = memory_limits(pod, container, self._snapshot.setup(pod.node_name))
            self._known_limits[key] = pod, limits  # With its pod, so that no other one gets this id.
        return self._known_limits[key][1]

    def _context(self, death: _Death, events: Sequence[Event]) -> DeathContext:
        pod, node = death.pod, death.pod.node_name
        logs = [log for log in self._logs if node and node in self._log_nodes[id(log)]]
        node_events = [event for event in self._events.get(node, ()) if is_of_node_memory(event, node)]
        limits = self._limits(pod, death.container)
        neighbours = 0
        if limits.nearest is None:
            others = (other for other in self._unlimited if other.container_id != death.container_id)
            times = (other.time for other in others if other.pod.node_name == node)
            apart = [seconds_between(time, death.time) for time in times]
            neighbours = sum(seconds is not None and abs(seconds) <= NEIGHBOUR_SECONDS for seconds in apart)
        return DeathContext(
            limits=limits,
            node_events=node_events,
            events_since=self._events_since,
            pod_events=events,
            stop=stop_of_pod(pod),
            neighbours=neighbours,
            has_log=bool(logs),
            silent_log=next((log.title for log in logs if _is_silent(log, death.time)), None),
        )

    @cached_property
    def _events_since(self) -> str | None:
        """Time of the oldest event, None if node events could not be read."""
        if not self._event_list.of_nodes:
            return None
        return min((event.last for event in self._event_list.events if parse_time(event.last)), default=None)

    @cached_property
    def _unlimited(self) -> list[_Death]:
        """OOMKilled containers without a limit: killed at the limit of all pods, or on a full node."""
        deaths = (death for pod in self._snapshot.pods for death in _deaths(pod))
        killed = (death for death in deaths if death.end.reason == OOM_KILLED)
        return [death for death in killed if self._limits(death.pod, death.container).nearest is None]

    @cached_property
    def _log_nodes(self) -> dict[int, set[str]]:
        """Nodes of each log: named by the user, else by the pods in it, else by its lines."""
        nodes = {id(log): {log.node} if log.node else set() for log in self._logs}
        for reported in self._reported:
            if not reported.log.node:
                pod = self._pods.get(reported.pod_uid)
                nodes[id(reported.log)].add(pod.node_name if pod is not None else reported.report.node)
        return nodes

    @cached_property
    def _boot_times(self) -> dict[int, datetime]:
        """Boot times of machines whose logs lack wall-clock times, from deaths that statuses report too."""
        deaths = (death for pod in self._snapshot.pods for death in _deaths(pod) if death.is_sigkill)
        ends = {death.container_id: death.time for death in deaths if death.container_id}
        boots: dict[int, list[float]] = {}
        for reported in self._reported:
            ended = parse_time(ends.get(reported.container_id))
            if ended is not None and reported.report.uptime is not None:
                boots.setdefault(id(reported.log), []).append(ended.timestamp() - reported.report.uptime)
        return {log: datetime.fromtimestamp(median(seconds), UTC) for log, seconds in boots.items()}


def _is_own(pod: Pod, mechanism: Mechanism) -> bool:
    killer = BY_ID.get(mechanism)
    is_of_pod = killer is not None and killer.scope is CeilingScope.POD
    return is_of_pod and len(pod.containers) == 1 and low_pod_limit(pod) is None


def _kill(pod: Pod, diagnosis: Diagnosis, **fields: Any) -> Kill:
    return Kill(
        diagnosis=diagnosis,
        namespace=pod.namespace,
        pod=pod.name,
        node=pod.node_name,
        pod_uid=pod_uid(pod),
        is_own=_is_own(pod, diagnosis.mechanism),
        **fields,
    )


def _death_kill(death: _Death, diagnosis: Diagnosis, **fields: Any) -> Kill:
    exit_code = death.end.known_exit_code if death.state != WAITING else None
    stated = {"time": death.time, "exit_code": exit_code, "reason": death.end.reason}
    whose = {"container": death.container, "container_id": death.container_id}
    # isInitContainerFailed in pkg/kubelet/kuberuntime/helpers.go, from 1.23 on: an older kubelet went on
    started = any(
        status.state and not status.state.waiting for status in death.pod.status.container_statuses or ()
    )
    went_on = death.state == "state" and started
    if death.runs_once and exit_code == 0 and death.end.reason == OOM_KILLED and not went_on:
        diagnosis = structs.replace(diagnosis, evidence=(*diagnosis.evidence, Evidence(Fact.INIT_RUNS_AGAIN)))
    return _kill(death.pod, diagnosis, **(whose | stated | fields))


def _deaths(pod: Pod, events: Sequence[Event] = ()) -> Iterator[_Death]:
    sidecars = {container.name for container in pod.init_containers if container.restart_policy == "Always"}
    init = {status.name for status in pod.status.init_container_statuses or ()} - sidecars
    for status in pod.status.every_container:
        is_named = False
        for field_name, end in reversed(status.ends_by_field.items()):
            container_id = end.container_id or (status.container_id if field_name == "state" else "")
            death = _Death(pod, status.name, end, field_name, _hex(container_id), status.name in init)
            is_named |= death.is_named
            yield death
        waiting = status.state.waiting if status.state is not None else None
        names = {status.name, ""} if len(pod.containers) == 1 else {status.name}
        is_of_start = partial(oom_at_start, limit=stated_limit(pod, status.name))
        of_start = [event for event in events if event.container in names and is_of_start(event.message)]
        messages = [waiting.message if waiting is not None else "", *(event.message for event in of_start)]
        message = next(filter(is_of_start, messages), "")
        # lastState has a failed start too, unless the runtime deletes the container.
        if waiting is not None and message and not is_named:
            time = max((event.last for event in of_start), default="")
            end = ContainerStateTerminated(reason=waiting.reason, message=message, finished_at=time)
            yield _Death(pod, status.name, end, WAITING, "", status.name in init)


def seconds_apart(kill: Kill, report: OomReport) -> float | None:
    """Return the seconds between a kill and an event's report, None if they are different kills."""
    if kill.node not in {"", report.node}:
        return None
    victims = kill.report.processes if kill.report is not None else ()
    if report.victim is not None and victims:
        return 0 if report.victim.pid in {killed.pid for killed in victims} else None
    apart = seconds_between(kill.time, report.time)
    return abs(apart) if apart is not None and abs(apart) <= NEAR_SECONDS else None


def _hex(container_id: str) -> str:
    return container_id.rpartition("://")[2]


def _ends_container(report: OomReport) -> bool:
    """Return whether all processes of the container were killed, or its only one was."""
    return bool(report.group_kill) or sum(task.adj != SANDBOX_ADJ for task in report.tasks) == 1


def _is_of_time(report: OomReport, time: str) -> bool:
    """Return whether a report is from about the time of an end; False without a time or a zone."""
    if not report.time.endswith("Z"):
        return False
    after = seconds_between(report.time, time)
    return after is not None and -AGREES_SECONDS / 2 <= after <= AGREES_SECONDS


def _is_silent(log: KernelLog, time: str) -> bool:
    """Return whether a log covers a time and has no kill of an unknown cgroup then.

    Above its rate limit, the kernel prints victims without their cgroups.
    """
    if log.left_out or log.fragments or not log.first.endswith("Z") or not log.last.endswith("Z"):
        return False
    since, until = seconds_between(log.first, time), seconds_between(time, log.last)
    if since is None or until is None or since < AGREES_SECONDS or until < 0:
        return False
    nameless = [report for report in log.reports if not (report.task_memcg or report.group_kill)]
    return not any(not report.time or _is_of_time(report, time) for report in nameless)
