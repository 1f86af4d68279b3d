"""The past of a pod, as its explanation tells it: restarts, ends of containers, and why the pod ended."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from kubectl_qos.analysis.pod_facts import PodFacts
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import DISRUPTION_TARGET, ContainerStateTerminated, ContainerStatus, Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.crash_loops import hidden_kill, peak_text
from kubectl_qos.present.evidence import evidence_sentence, volume_sentence
from kubectl_qos.present.format import age, count, duration, escape
from kubectl_qos.present.killers import WORDS
from kubectl_qos.present.kills import mechanism_sentence
from kubectl_qos.present.output import Line, Section
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.kills.evidence import SIGKILLED, Fact, kubelet_kill, memory_limits
from kubectl_qos.qos.kills.report import KernelLog
from kubectl_qos.qos.prediction import Prediction
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import oom_at_start


def history_section(
    pod: Pod, facts: PodFacts, snapshot: Snapshot, now: datetime, logs: Sequence[KernelLog]
) -> Section | None:
    """Return what the status of a pod, and kernel logs, say of its past; None if they say nothing."""
    prediction, usage, ends_by_log = facts.prediction, facts.usage, _ends_by_log(pod, snapshot, logs)
    pod = prediction.pod
    statuses, disruptions = pod.status.every_container, list(_disruptions(pod, now))
    if not statuses and not disruptions:
        return None
    restarts = sum(status.restart_count for status in statuses)
    lines = [Line(text) for text in disruptions]
    lines += [line for status in statuses for line in _states(status, prediction, now, ends_by_log)]
    ends = [
        end
        for status in statuses
        for end in status.ends
        if (status.name, end.exit_code, end.finished_at) not in ends_by_log
    ]
    if any(end.reason == "OOMKilled" or end.exit_code == SIGKILLED for end in ends):
        lines.append(Line(_NO_PROOF))
        if pod.memory_volumes:
            lines.append(Line(volume_sentence(pod.memory_volumes)))
    release = prediction.setup.release
    for status in statuses:
        texts = hidden_kill(pod, status, usage, release), peak_text(pod, status, usage, release)
        lines += [Line(f"{escape(status.name)}: {text}") for text in texts if text]
    answer = f"restarted {count(restarts, 'time')}" if restarts else "never restarted"
    if pod.status.reason == "Evicted":
        answer = f"evicted, {answer}"
    return Section("History", answer, tuple(lines))


def _ends_by_log(pod: Pod, snapshot: Snapshot, logs: Sequence[KernelLog]) -> Mapping[tuple[object, ...], str]:
    """Return what certainly ended the containers of a pod, by container, exit code and time."""
    if not logs or not any(status.ends for status in pod.status.every_container):
        return {}
    kills = find_kills(snapshot, EventList(), logs, is_included=lambda other: other is pod)
    certain = (kill for kill in kills if kill.pod and kill.diagnosis.confidence is Confidence.CERTAIN)
    return {(kill.container, kill.exit_code, kill.time): mechanism_sentence(kill) for kill in certain}


_MOST_QUOTED: Final = 300
_NO_PROOF: Final = (
    "neither OOMKilled nor exit code 137 proves what happened: with the systemd driver many victims of the"
    " kernel end as Error, and SIGKILL can come from elsewhere; see the node's kernel log"
)
_DISRUPTIONS: Final = {
    "TerminationByKubelet": "ended by its kubelet: node pressure, a shutdown or room for a critical pod",
    "PreemptionByScheduler": "removed by the scheduler for a pod of higher priority",
    "EvictionByEvictionAPI": "evicted through the API, as by kubectl drain: not for memory",
    "DeletionByTaintManager": "evicted by a taint of its node",
    "DeletionByPodGC": "deleted because its node is gone",
}
"""k8s.io/api/core/v1/types.go PodReason, the reasons of the condition DisruptionTarget."""


def _disruptions(pod: Pod, now: datetime) -> Iterable[str]:
    """Say why the whole pod ended; a pod that exits cleanly on SIGTERM does not have the reason Evicted."""
    kill = kubelet_kill(pod, ())
    for condition in pod.status.conditions or ():
        if condition.type == DISRUPTION_TARGET and condition.status == "True":
            meaning = _DISRUPTIONS.get(condition.reason, "disrupted")
            if kill is not None and condition.reason == "TerminationByKubelet":
                meaning = WORDS[kill.mechanism].killed
            when = condition.last_transition_time
            ago = f", {age(when, now)} ago" if when else ""
            yield (f"{meaning} ({escape(condition.reason)})" if condition.reason else meaning) + ago
            if condition.message:
                yield escape(condition.message)
    evidence = kill.evidence if kill is not None else ()
    yield from (evidence_sentence(fact) for fact in evidence if fact.fact is not Fact.DISRUPTED)


def _states(
    status: ContainerStatus,
    prediction: Prediction,
    now: datetime,
    ends_by_log: Mapping[tuple[object, ...], str],
) -> Iterable[Line]:
    name = escape(status.name)
    waiting = status.state.waiting if status.state is not None else None
    if waiting is not None:
        meaning = "too little memory to start it: " if oom_at_start(waiting.message) else ""
        quoted = f"{meaning}{_quote(waiting.message)}"
        yield Line(f"{name} waits: {escape(waiting.reason or 'without a reason')}", quoted)
    for field_name, end in status.ends_by_field.items():
        word, reason = "ended" if field_name == "state" else "last ended", end.reason or "without a reason"
        by_log = ends_by_log.get((status.name, end.exit_code, end.finished_at))
        meaning = by_log or _meaning(end, status.name, prediction)
        yield Line(f"{name} {word} {escape(reason)}, exit code {end.exit_code}{_when(end, now)}", meaning)


def _when(end: ContainerStateTerminated, now: datetime) -> str:
    ago = f", {age(end.finished_at, now)} ago" if end.finished_at else ""
    started, finished = parse_time(end.started_at), parse_time(end.finished_at)
    # A container that could not be started has the start of the epoch.
    if started is None or finished is None or finished < started or not started.timestamp():
        return ago
    return f"{ago} after {duration(int((finished - started).total_seconds()))}"


def _quote(message: str) -> str:
    """Return a message of a kubelet, a runtime or an application on one line, cut if it is long."""
    line = " ".join(message.split())
    return escape(line if len(line) <= _MOST_QUOTED else f"{line[:_MOST_QUOTED]}…")


def _meaning(end: ContainerStateTerminated, container: str, prediction: Prediction) -> str:
    if oom_at_start(end.message):
        return f"too little memory to start it: {_quote(end.message)}"
    if end.reason == "OOMKilled":
        limits = memory_limits(prediction.pod, container, prediction.setup)
        if limits.nearest is None and limits.is_known:
            return "killed for memory: of all pods, or of the node; it has no limit of its own"
        return "killed for memory: at its own limit, its pod's, or of the node"
    if end.exit_code == SIGKILLED and not end.is_made_up:
        return "SIGKILL: perhaps for memory; the status alone does not tell"
    return _quote(end.message)
