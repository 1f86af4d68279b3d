"""Evidence for the explanations of a death, and the resulting diagnosis.

Sources: pkg/kubelet/eviction/helpers.go (evictionMessage) and eviction_manager.go (evictPod),
pkg/kubelet/preemption/preemption.go, pkg/kubelet/nodeshutdown, pkg/kubelet/events/event.go. Not here: finding
the deaths and the facts about each (analyze.py), and the words (present/kills.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import chain
from typing import Any, Final

import msgspec

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import low_pod_limit
from kubectl_qos.k8s.events import OOM_KILLING, Event
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import (
    EPHEMERAL_STORAGE,
    MEMORY,
    UNKNOWN_CONTAINER,
    Condition,
    ContainerStateTerminated,
    Pod,
    all_containers,
)
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.qos.cgroup.names import PathLevel, container_of_unit, path_level, pod_cgroup
from kubectl_qos.qos.killers import BY_ID, BY_RANK, EVICTING, Killer, Mechanism
from kubectl_qos.qos.kills.report import AT_LEVEL, RUNTIME_INIT, Constraint, OomReport, seconds_between
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import FIRST_PROCESS_GONE, OOM_AT_START, oom_at_start

SIGKILLED: Final = 137
OOM_KILLED: Final = "OOMKilled"
EVICTED: Final = "Evicted"
PREEMPTING: Final = "Preempting"
ENDS: Final = frozenset({EVICTED, PREEMPTING, "Preempted"})
"""Reasons of the events of a kubelet, and of the scheduler, that end a pod."""
BY_KUBELET: Final = "TerminationByKubelet"
_BY_SCHEDULER: Final = "PreemptionByScheduler"
_DEADLINE: Final = "DeadlineExceeded"
WAITING: Final = "waiting"
"""Stands for a status field with an end: the container waits because it could not start."""

SLACK_SECONDS: Final = 2.0
"""Tolerance: events and statuses have whole seconds."""
NEAR_SECONDS: Final = 15.0
"""Tolerance: the kubelet of a node without memory reports late."""
STOPPING_SECONDS: Final = 120.0
"""Longest usual time from a stop to SIGKILL."""


class Fact(Enum):
    """A piece of evidence; the names after the colon are those of `Evidence.details`."""

    ENDED = "how the container ended, by its status: state, exit_code, reason"
    OOM_AT_START = "memory ran out while the runtime started it (certain if is_named): words, is_named"
    OOM_KILLED = "the runtime counted an OOM kill in the container's cgroup: by any limit, or the node's"
    INIT_RUNS_AGAIN = "it is an init container that ended with 0 but counts as failed"
    NOT_COUNTED = "it ended by SIGKILL, and the runtime counted no OOM kill"
    EXIT_IS_MADE_UP = "the kubelet lost sight of the container and filled in 137"
    POD_ENDED = "status.reason of the pod: reason, message"
    DISRUPTED = "the condition DisruptionTarget: reason, message"
    REFUSED_BEST_EFFORT = "its node had MemoryPressure and refused all BestEffort pods"
    REFUSED_BY_REQUESTS = "the requests of other pods on its node left no room for its own"
    EXCESS = "what containers of an evicted pod used above their requests: resource, above, is_all, priority"
    COMES_BACK = "its DaemonSet creates the pod again on the same node"
    OWN_STORAGE_LIMIT = "its own storage limit was exceeded: of, name, limit, is_memory"
    EVENT = "an event: reason, message, object, times"
    SYSTEM_OOM_OF_LIMIT = "this kubelet on this kernel reports kills at limits as SystemOOM too: release"
    NO_SYSTEM_OOM = "the node's events cover that time, and none is a SystemOOM"
    NO_EVENTS = "events of that time are unknown"
    BEING_DELETED = "the pod is being deleted"
    OWN_LIMIT = "the container has a memory limit: bytes"
    POD_LIMIT = "its pod has a memory limit: bytes"
    LOW_POD_LIMIT = (
        "a resize has not raised the pod's limit (kubernetes#138760): limit_bytes, and names of its container"
    )
    MEMORY_VOLUME = "volumes of the pod are in memory, and keep it after a restart: volumes"
    SAME_LIMIT = "the pod's limit includes the pause container, and is no larger than the container's"
    KUBELET_NAMES_POD = "a line of a kubelet in the same log names the pod"
    NO_LIMIT = "neither container nor pod has a memory limit"
    PEAK = "its peak usage in the minutes before, by the metrics history: bytes, title"
    LIMIT_NOT_SEEN = "its peak is well below the limit"
    NODE_PEAK = "peak usage of its node then, by the metrics history: bytes, capacity_bytes"
    NODE_PRESSURE = "its node had MemoryPressure then, by the metrics history"
    OOM_EVENTS = "cAdvisor counted OOM kills in the container: count"
    KERNEL = (
        "the kernel's report, or another program's log of the kill: outcome, why, constraint, memcg,"
        " limit_bytes, limit_of, pid, command, line, logged_by, named_by (whose line names the container)"
    )
    DAEMON = "a daemon killed it: daemon, cgroup, command, processes, why, line, title"
    ALSO_SIGNALLED = "a daemon sent the process a signal too: daemon"
    NOT_FULL = "another limit than memory's was reached: usage_bytes, limit_bytes"
    ALL_PODS = "the limit of all pods was reached; the machine was not full"
    MIXED_DRIVERS = "kubelet and runtime use different cgroup drivers: runtime"
    ALONE = "only one process was killed: is_in_container, and pid, command of an older one that lives"
    MAYBE_ALONE = "the log does not show whether other processes were killed with it: at_once"
    GROUP = "every process of the cgroup was killed with it (memory.oom.group): path, is_own"
    OTHER_PROCESSES = "the kernel reported earlier kills in this container: count"
    WENT_ON = "a process was killed, and its container kept running"
    KERNEL_SILENT = "a kernel log covers that time and has no report about the container: title"
    BY_NAME = "the killed process has the name of this container or its workload: command"
    EVENT_VICTIM = "an event of that time names a process: command, adj, range of the container's adj"
    OF_NODE = "the killed process is a service of the node: command"
    NEIGHBOURS = "other containers of the node without a limit were OOMKilled at that time: count"


class Evidence(msgspec.Struct, frozen=True):
    """A fact with its details; `time` is RFC 3339 or ""."""

    fact: Fact
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    time: str = ""


class Need(Enum):
    """What would make a diagnosis certain."""

    KERNEL_LOG = "the kernel log of its node"
    LOG_OF_THAT_TIME = "a kernel log of its node that goes back to its death"
    WALL_CLOCK = "a kernel log with wall-clock times, which tells when each process died"


class Diagnosis(msgspec.Struct, frozen=True):
    """A mechanism with confidence and evidence."""

    mechanism: Mechanism
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    needs: Need | None = None

    @property
    def killer(self) -> Killer | None:
        """The killer, if the mechanism is one of memory."""
        return BY_ID.get(self.mechanism)

    @property
    def evicts(self) -> bool:
        """Whether the kubelet evicted the pod for memory."""
        return self.killer is not None and self.killer.evicts


def ended_evidence(end: ContainerStateTerminated, state: str, limit: int = 0) -> Iterator[Evidence]:
    """Yield what a status says about a container's end; `state` is the status field, `limit` in bytes."""
    exit_code = end.known_exit_code if state != WAITING else None
    details = {"state": state, "exit_code": exit_code, "reason": end.reason}
    if end.reason == OOM_KILLED and exit_code != SIGKILLED:
        details["since"] = end.started_at or ""
    yield Evidence(Fact.ENDED, details, end.finished_at or "")
    words = oom_at_start(end.message, limit)
    if words:
        yield Evidence(Fact.OOM_AT_START, {"words": words, "is_named": bool(oom_at_start(end.message))})
    if end.reason == OOM_KILLED:
        yield Evidence(Fact.OOM_KILLED)
    if end.is_made_up:
        yield Evidence(Fact.EXIT_IS_MADE_UP)


def event_evidence(event: Event) -> Evidence:
    """Quote an event."""
    involved = event.involved_object
    about = "/".join(filter(None, (involved.kind, involved.name)))
    details = {"reason": event.reason, "message": event.message, "object": about, "times": event.times}
    return Evidence(Fact.EVENT, details, event.last)


# -- by the kernel's own words ------------------------------------------------------------------------------


def report_evidence(report: OomReport, title: str) -> Iterator[Evidence]:
    """Yield what a kernel's or daemon's report says; `title` is the name of its log."""
    victim, full = report.dead, report.memory.full
    where = {"line": report.line, "title": title or None}
    if report.daemon is not None:
        names = report.names or ((f"{victim.comm} ({victim.pid})",) if victim is not None else ())
        what = {"daemon": report.daemon.value, "cgroup": report.cgroup or None, "processes": list(names)}
        yield Evidence(Fact.DAEMON, {**what, "why": report.why or None, **where}, report.time)
        return
    details = {
        "outcome": report.outcome.name.lower(),
        "why": report.why or None,
        "constraint": report.constraint.value if report.constraint is not None else None,
        "memory_nodes": report.memory_nodes or None,
        "memcg": report.oom_memcg or None,
        "limit_bytes": None if full is None else full[2] << 10,
        "limit_of": None if full is None else full[0],
        "pid": victim.pid if victim is not None else None,
        "command": victim.comm if victim is not None else next(iter(report.names), None),
        "is_only_chosen": victim is not None and victim.is_only_chosen,
        "processes": len(report.processes),
    }
    programs = {"logged_by": report.logged_by, "named_by": report.named_by}
    details |= {name: program for name, program in programs.items() if program}
    yield Evidence(Fact.KERNEL, details | where, report.time)
    if report.also_by is not None:
        yield Evidence(Fact.ALSO_SIGNALLED, {"daemon": report.also_by.value})
    if full is not None and full[0] != "memory" and report.memory.limit_kb:
        usage, limit = report.memory.usage_kb or 0, report.memory.limit_kb
        yield Evidence(Fact.NOT_FULL, {"usage_bytes": usage << 10, "limit_bytes": limit << 10})
    if report.oom_memcg and path_level(report.oom_memcg) is PathLevel.PODS:
        yield Evidence(Fact.ALL_PODS)
    pod = pod_cgroup(report.cgroup)
    if pod is not None and pod.is_mixed:
        yield Evidence(Fact.MIXED_DRIVERS, {"runtime": pod.runtime})
    yield from _kill_scope(report)


def _kill_scope(report: OomReport) -> Iterator[Evidence]:
    """Yield whether the kernel killed a whole cgroup, or only one process of a container."""
    victim = report.dead
    if report.group_kill:
        is_own = report.group_kill == report.cgroup
        yield Evidence(Fact.GROUP, {"path": report.group_kill, "is_own": is_own})
        return
    is_in_container = pod_cgroup(report.cgroup) is not None or bool(container_of_unit(report.cgroup))
    is_of_runtime = report.is_of_sandbox or (victim is not None and RUNTIME_INIT.match(victim.comm))
    if is_of_runtime or (report.cgroup and not is_in_container):
        return
    if report.is_alone:
        older = report.oldest if pod_cgroup(report.oom_memcg) is not None else None
        went_on = {}
        if older is not None and victim is not None and older.pid not in {victim.pid, report.chosen}:
            went_on = {"pid": older.pid, "command": older.name}
        yield Evidence(Fact.ALONE, {"is_in_container": is_in_container, **went_on})
    elif victim is not None and report.constraint is Constraint.MEMCG:
        yield Evidence(Fact.MAYBE_ALONE, {"at_once": report.at_once} if report.at_once else {})


# -- by the kubelet -----------------------------------------------------------------------------

_LOW: Final = re.compile(r"low on resource: \[?(?P<resource>[\w-]+)", re.IGNORECASE)
_OLD_WORDS: Final = {
    "memorypressure": MEMORY,
    **dict.fromkeys(("diskpressure", "nodefs", "imagefs"), EPHEMERAL_STORAGE),
    **dict.fromkeys(("nodefsinodes", "imagefsinodes"), "inodes"),
}
"""Conditions and signals that kubelets before 1.13 name."""
_EXCESS: Final = re.compile(
    r"(?P<of>Container|Pod) (?P<name>\S+) was using (?P<used>\d[\w.]*),"
    r" (?:which exceeds its request of|request is) (?P<request>\d(?:[\w.]*\w)?)"
)
_OWN_STORAGE: Final = re.compile(
    r'(?P<container>Container) (?P<name>\S+) exceeded its local ephemeral storage limit "(?P<limit>[^"]*)"'
    r"|(?P<pod>Pod) ephemeral local storage usage exceeds the total limit of containers (?P<total>\d\w*)"
    r'|(?P<volume>Usage of EmptyDir volume) "(?P<mount>[^"]*)" exceeds the limit "(?P<size>[^"]*)"'
)
_REJECTED: Final = re.compile(r"The node had condition|didn't have enough resource|^Pod was rejected")
_REFUSALS: Final = {
    Fact.REFUSED_BEST_EFFORT: re.compile(r"had condition: \[MemoryPressure\]"),
    Fact.REFUSED_BY_REQUESTS: re.compile(r"didn't have enough resource: (?!pods)"),
}
"""Why a kubelet refuses a pod: eviction_manager.go Admit, and lifecycle/predicate.go for its requests."""
REFUSED: Final = r"OutOf[\w./-]+|\w+(?:Admission|Affinity|Alignment)Error"
"""Reasons of refused pods: pkg/kubelet/lifecycle/predicate.go (OutOfmemory), lifecycle/handlers.go, and the
managers of CPUs, memory and devices in pkg/kubelet/cm.
"""
_REFUSED: Final = re.compile(REFUSED)
_CRITICAL: Final = re.compile(r"Preempted in order to admit|preempted by Kubelet to accommodate a critical")
_HIGHER: Final = re.compile(r"^Preempted by |preempting to accommodate a higher priority pod")
_SHUTDOWN: Final = re.compile(r"imminent node shutdown|^Node is shutting")
MESSAGE_PATTERNS: Final = (
    *(OOM_AT_START, FIRST_PROCESS_GONE),
    *(_LOW, _EXCESS, _OWN_STORAGE, _REJECTED, _CRITICAL, _SHUTDOWN),
)
"""Patterns in messages."""


class KubeletKill(msgspec.Struct, frozen=True):
    """A pod that its kubelet or the scheduler ended; `time` is the event's, else the condition's, or "".

    `is_stated`: the pod's own reason is an eviction, which ends all of its containers.
    """

    mechanism: Mechanism
    time: str
    evidence: tuple[Evidence, ...]
    is_stated: bool = False

    def has_ended(self, end: ContainerStateTerminated, *, runs_once: bool) -> bool:
        """Return whether a container ended by it: not before, and not a completed init container.

        A shutdown explains only a SIGKILL that the runtime does not count as an OOM kill.
        """
        if self.mechanism is Mechanism.SHUTDOWN and (end.exit_code != SIGKILLED or end.reason == OOM_KILLED):
            return False
        after = seconds_between(self.time, end.finished_at)
        if after is not None:
            return after >= -SLACK_SECONDS
        return not (runs_once and end.exit_code == 0)

    def container_diagnosis(self, end: ContainerStateTerminated, state: str, *, is_only: bool) -> Diagnosis:
        """Return the diagnosis of one container. A SIGKILL may still be an earlier one of the kernel."""
        evidence = (*ended_evidence(end, state), *self.evidence)
        is_killed = end.exit_code == SIGKILLED and not end.is_made_up and not self.is_stated
        if is_killed or end.reason == OOM_KILLED:
            return Diagnosis(self.mechanism, Confidence.LIKELY, evidence, Need.KERNEL_LOG)
        is_certain = self.time or self.is_stated or is_only
        confidence = Confidence.CERTAIN if is_certain else Confidence.LIKELY
        return Diagnosis(self.mechanism, confidence, evidence)


def kubelet_kill(pod: Pod, events: Iterable[Event]) -> KubeletKill | None:
    """Return how the kubelet or the scheduler ended a pod, or the kubelet refused it; else None.

    A pod whose processes exit with 0 on SIGTERM gets phase Succeeded and no status.reason: then only the
    condition (1.26 and later) and the event show the eviction.
    """
    status = pod.status
    kubelet_events = [event for event in events if is_end(event)]
    evidence, messages, times = [], [], [event.last for event in kubelet_events]
    has_ended = status.reason in {EVICTED, PREEMPTING}
    is_refused = bool(_REFUSED.fullmatch(status.reason) or _REJECTED.search(status.message))
    if has_ended or is_refused or _SHUTDOWN.search(status.message):
        evidence.append(Evidence(Fact.POD_ENDED, {"reason": status.reason, "message": status.message}))
        messages.append(status.message)
    for condition in status.conditions or ():
        if condition.is_disruption and condition.reason in {BY_KUBELET, _BY_SCHEDULER}:
            evidence.append(_disruption_evidence(condition))
            messages.append(condition.message)
            times = times or [evidence[-1].time]
    evidence += map(event_evidence, kubelet_events)
    messages += [event.message for event in kubelet_events]
    if not evidence:
        return None
    low = next(filter(None, map(_LOW.search, messages)), None)
    word = low["resource"].lower() if low is not None else ""
    resource = _OLD_WORDS.get(word, word)
    own = next(filter(None, map(_OWN_STORAGE.search, messages)), None)
    mechanism = _kubelet_mechanism(pod, messages, resource, own)
    if mechanism is None:
        return None
    if resource:
        evidence.append(_excess(pod, messages, resource, is_old=word in _OLD_WORDS))
        if find_workload(pod)[0] == "DaemonSet":
            evidence.append(Evidence(Fact.COMES_BACK))
    elif own is not None:
        is_memory = own["mount"] in pod.memory_volumes
        what = next(kind for kind in ("container", "pod", "volume") if own[kind])
        name, limit = own["name"] or own["mount"] or "", own["limit"] or own["total"] or own["size"]
        details = {"of": what, "name": name, "limit": limit, "is_memory": is_memory}
        evidence.append(Evidence(Fact.OWN_STORAGE_LIMIT, details))
    elif mechanism is Mechanism.REJECTION:
        refusals = (fact for fact, pattern in _REFUSALS.items() if any(map(pattern.search, messages)))
        evidence += map(Evidence, refusals)
    return KubeletKill(mechanism, max(times, default=""), tuple(evidence), status.reason == EVICTED)


def is_end(event: Event) -> bool:
    """Return whether an event says that a kubelet or the scheduler ended a pod, or a kubelet refused it."""
    return event.reason in ENDS or _REFUSED.fullmatch(event.reason) is not None


def stop_of_pod(pod: Pod) -> Evidence | None:
    """Return why a whole pod is stopped: SIGKILL follows after the grace period."""
    status = pod.status
    for condition in status.conditions or ():
        if condition.is_disruption and condition.reason != BY_KUBELET:
            return _disruption_evidence(condition)
    if pod.metadata.deletion_timestamp is not None:
        return Evidence(Fact.BEING_DELETED)
    details = {"reason": status.reason, "message": status.message}
    return Evidence(Fact.POD_ENDED, details) if status.reason == _DEADLINE else None


def _disruption_evidence(condition: Condition) -> Evidence:
    details = {"reason": condition.reason, "message": condition.message}
    return Evidence(Fact.DISRUPTED, details, condition.last_transition_time or "")


def _kubelet_mechanism(
    pod: Pod, messages: Sequence[str], resource: str, own: re.Match[str] | None
) -> Mechanism | None:
    if any(map(_SHUTDOWN.search, messages)):
        return Mechanism.SHUTDOWN
    if pod.status.reason == PREEMPTING or any(map(_CRITICAL.search, messages)):
        return Mechanism.PREEMPTION
    if any(map(_HIGHER.search, messages)):
        return Mechanism.SCHEDULER
    if resource:
        return Mechanism(EVICTING.id) if resource == MEMORY else Mechanism.OTHER_EVICTION
    if own is not None:
        return Mechanism.VOLUME_LIMIT if own["volume"] else Mechanism.STORAGE_LIMIT
    if _REFUSED.fullmatch(pod.status.reason) or any(map(_REJECTED.search, messages)):
        return Mechanism.REJECTION
    return Mechanism.UNKNOWN_EVICTION if pod.status.reason == EVICTED and not any(messages) else None


def _excess(pod: Pod, messages: Sequence[str], resource: str, *, is_old: bool) -> Evidence:
    """Return the containers' usage above requests; `above` is None if no kubelet's whole message has it.

    Inodes and process IDs have no requests.
    """
    matches = [*chain.from_iterable(map(_EXCESS.finditer, messages))]
    of_pod = [match for match in matches if match["of"] == "Pod"]
    above = dict(_amounts(of_pod or matches)) if resource in {MEMORY, EPHEMERAL_STORAGE} else {}
    names = {container.name for container in pod.containers}
    priority: int | str | None = pod.spec.priority
    if priority is None and pod.spec.priority_class_name:
        priority = f"of PriorityClass {pod.spec.priority_class_name}"
    elif priority is None and pod.containers:
        priority = 0  # It stays unknown for a pod that only events name.
    # A pod of which a text shows nothing else may have its message only in part.
    is_known = bool(pod.metadata.uid or pod.containers)
    is_said = not is_old and is_known and any("node was low" in message for message in messages)
    details = {
        "resource": resource,
        "above": above or ({} if is_said else None),
        "is_all": bool(of_pod or (names and names <= above.keys())),
        "priority": priority,
    }
    return Evidence(Fact.EXCESS, details)


def _amounts(matches: Iterable[re.Match[str]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield usage and request of containers, or of the pod if it has its own request."""
    for match in matches:
        with suppress(QosError):
            used, request = (Quantity.parse(match[side]).value() for side in ("used", "request"))
            if used > request:
                yield match["name"], (used, request)


# -- without a report of the kernel ---------------------------------------------------------------------

UNLIMITED_BYTES: Final = 1 << 62


class MemoryLimits(msgspec.Struct, frozen=True):
    """Memory limits of a container and of its pod's cgroup, in bytes; unknown without the container's spec.

    `low` names the container if a resize did not raise the pod's limit.
    """

    own: int | None
    pod: int | None
    low: Mapping[str, str] | None = None
    volumes: tuple[str, ...] = ()
    is_known: bool = True

    @property
    def nearest(self) -> Mechanism | None:
        """Which limit is reached first, None without any.

        A container's memory is part of its pod's, together with the pause container's. So the cgroup of a
        pod with one container, and the same limit, runs out first.
        """
        if self.is_of_pod:
            return AT_LEVEL[PathLevel.POD]
        return AT_LEVEL[PathLevel.CONTAINER] if self.own is not None else None

    @property
    def least(self) -> int:
        """The smaller limit, 0 without any."""
        return min(filter(None, (self.own, self.pod)), default=0)

    @property
    def is_of_pod(self) -> bool:
        """Whether the pod's limit is reached first."""
        return self.pod is not None and (self.own is None or self.pod <= self.own)

    def evidence(self) -> Iterator[Evidence]:
        """Yield each limit, and how they compare."""
        if self.own is not None:
            yield Evidence(Fact.OWN_LIMIT, {"limit_bytes": self.own})
        if self.pod is not None:
            yield Evidence(Fact.POD_LIMIT, {"limit_bytes": self.pod})
        if self.low is not None:
            yield Evidence(Fact.LOW_POD_LIMIT, {"limit_bytes": self.pod, **self.low})
        elif self.own is not None and self.is_of_pod:
            yield Evidence(Fact.SAME_LIMIT)
        if self.nearest is None and self.is_known:
            yield Evidence(Fact.NO_LIMIT)
        if self.nearest is not None and self.volumes:
            yield Evidence(Fact.MEMORY_VOLUME, {"volumes": self.volumes})


def memory_limits(pod: Pod, container: str, setup: NodeSetup) -> MemoryLimits:
    """Return the limits as the kubelet writes them, or as in the spec if that cannot be predicted.

    A cut description of a pod has no spec, but statuses with the limits of the containers that it shows.
    """
    specs = [spec for spec in all_containers(pod) if spec.name == container]
    of_status = {
        status.name: status.resources.limits
        for status in pod.status.every_container
        if status.resources is not None
    }
    limits = specs[0].limits if specs else of_status.get(container)
    quantity = limits.get(MEMORY) if limits is not None else None
    stated = quantity.value() if quantity is not None else None
    if not specs:
        return MemoryLimits(stated, None, is_known=stated is not None)
    try:
        prediction = predict_running(pod, setup)
    except QosError:
        return MemoryLimits(stated, None)
    own, of_pod = map(_memory_limit, (prediction.container(container).cgroup.files, prediction.cgroup.files))
    if container == UNKNOWN_CONTAINER:
        return MemoryLimits(own or stated, None)
    # The kernel rounds a limit of less than a page down to 0.
    is_cut = of_pod == 0
    who = {"namespace": pod.namespace, "pod": pod.name, "container": container, "class": pod.status.qos_class}
    low = who if low_pod_limit(pod) is not None else None
    return MemoryLimits(own or stated, stated if is_cut else of_pod, low, volumes=pod.memory_volumes)


def _memory_limit(files: Mapping[str, str]) -> int | None:
    text = files.get("memory.max") or files.get("memory.limit_in_bytes") or ""
    return int(text) if text.isdecimal() and int(text) < UNLIMITED_BYTES else None


def is_near(event: Event, time: str, before: float = NEAR_SECONDS, after: float = NEAR_SECONDS) -> bool:
    """Return whether an event happened at about that time; repeats count from the first to the last."""
    first, last = seconds_between(event.first, time), seconds_between(event.last, time)
    return first is not None and last is not None and last <= before and first >= -after


class DeathContext(msgspec.Struct, frozen=True):
    """Facts around a death: limits, events of pod and node, neighbours, kernel logs.

    `node_events` are about the memory of the node, `events_since` is when events begin, None if they could
    not be read. `stop` is why the whole pod is ended. `neighbours` counts containers of the node without a
    limit that were OOMKilled then; `silent_log` is the title of a kernel log of the node that covers the time
    without a report.
    """

    limits: MemoryLimits
    node_events: Sequence[Event]
    events_since: str | None
    pod_events: Iterable[Event]
    stop: Evidence | None = None
    neighbours: int = 0
    has_log: bool = False
    silent_log: str | None = None


def diagnosis_without_kernel(
    end: ContainerStateTerminated, state: str, container: str, context: DeathContext
) -> Diagnosis:
    """Return the best explanation of a SIGKILL without a kernel report; certain if the runtime names it."""
    time = end.finished_at or ""
    limits, limit = context.limits, context.limits.least
    evidence = list(ended_evidence(end, state, limit))
    is_named, is_seen = bool(oom_at_start(end.message)), bool(oom_at_start(end.message, limit))
    if is_seen and (limits.nearest is not None or not limits.is_known):
        evidence += limits.evidence()
        if is_named:
            return Diagnosis(Mechanism.START_LIMIT, Confidence.CERTAIN, tuple(evidence))
        return Diagnosis(Mechanism.START_LIMIT, Confidence.LIKELY, tuple(evidence), Need.KERNEL_LOG)
    needs = Need.LOG_OF_THAT_TIME if context.has_log else Need.KERNEL_LOG
    if end.is_made_up:
        return Diagnosis(Mechanism.UNKNOWN, Confidence.POSSIBLE, tuple(evidence), needs)
    is_oom_killed = is_named or end.reason == OOM_KILLED
    pod_events = tuple(context.pod_events)
    hooks = [event for event in pod_events if _is_killed_hook(event, container, time)]
    # The kubelet stops a container whose hook failed: why the hook was killed remains open.
    stops = [] if hooks else [event for event in pod_events if _is_stop(event, container, time)]
    evidence += map(event_evidence, (*hooks, *stops))
    of_pod = [context.stop] if context.stop is not None and state == "state" else []
    evidence += of_pod
    is_silent = context.silent_log is not None
    if is_silent:
        evidence.append(Evidence(Fact.KERNEL_SILENT, {"title": context.silent_log}))
    if not is_oom_killed and (stops or of_pod or is_silent):
        return Diagnosis(Mechanism.SIGKILL, Confidence.LIKELY, tuple(evidence), None if is_silent else needs)
    if is_oom_killed and not limits.is_known:
        return Diagnosis(Mechanism.KERNEL, Confidence.LIKELY, tuple(evidence), needs)
    evidence += limits.evidence()
    mechanism, confidence, more = _mechanism_by_events(time, context, is_oom_killed=is_oom_killed)
    if confidence is Confidence.POSSIBLE and not is_oom_killed and end.exit_code == SIGKILLED:
        evidence.append(Evidence(Fact.NOT_COUNTED))
    return Diagnosis(mechanism, confidence, (*evidence, *more), needs)


def _is_stop(event: Event, container: str, time: str) -> bool:
    """Return whether the kubelet stopped the container then; an event without a time must name it."""
    if event.reason != "Killing" or event.container not in {"", container}:
        return False
    if not event.last:
        return f"Container {container} failed " in event.message
    return is_near(event, time, before=STOPPING_SECONDS, after=1)


def _is_killed_hook(event: Event, container: str, time: str) -> bool:
    """Return whether a process of the container's postStart hook ended by SIGKILL then."""
    if event.reason != "FailedPostStartHook" or event.container not in {"", container}:
        return False
    return f"exited with {SIGKILLED}" in event.message and (not event.last or is_near(event, time))


def _mechanism_by_events(
    time: str, context: DeathContext, *, is_oom_killed: bool
) -> tuple[Mechanism, Confidence, list[Evidence]]:
    limit, neighbours = context.limits.nearest, context.neighbours
    of_kills = (event for event in context.node_events if event.reason in {"SystemOOM", *OOM_KILLING})
    node_events = [event for event in of_kills if is_near(event, time)]
    evidence = list(map(event_evidence, node_events))
    if any(not event.own_message.startswith("Memory cgroup") for event in node_events):
        return Mechanism(BY_RANK.id), Confidence.POSSIBLE if limit else Confidence.LIKELY, evidence
    known_before = seconds_between(context.events_since, time)
    is_covered = known_before is not None and known_before >= 0
    evidence.append(Evidence(Fact.NO_SYSTEM_OOM if is_covered else Fact.NO_EVENTS))
    if limit is not None:
        if is_oom_killed or node_events:
            return limit, Confidence.LIKELY, evidence
        # Without events the node may have run out of memory instead.
        return limit if is_covered else Mechanism.UNKNOWN, Confidence.POSSIBLE, evidence
    if neighbours:
        evidence.append(Evidence(Fact.NEIGHBOURS, {"count": neighbours}))
    if is_covered and (is_oom_killed or neighbours):
        confidence = Confidence.LIKELY if is_oom_killed else Confidence.POSSIBLE
        return AT_LEVEL[PathLevel.PODS], confidence, evidence
    if is_oom_killed:
        return Mechanism.KERNEL, Confidence.LIKELY, evidence
    return Mechanism.UNKNOWN, Confidence.POSSIBLE, evidence
