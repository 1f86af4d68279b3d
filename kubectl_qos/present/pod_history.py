"""The past of a pod in words: restarts, crash loops, ends of containers, why the pod ended, and its events.

Not here: which container restarts with which limit (restart_notes.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from kubectl_qos.analysis.pod_facts import PodFacts
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import NOT_ONLY_MEMORY, Event, EventList
from kubectl_qos.k8s.objects import ContainerStateTerminated, ContainerStatus, Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Missing, Snapshot
from kubectl_qos.present.evidence import DISRUPTIONS, EVENT_MEANINGS, evidence_sentence
from kubectl_qos.present.format import NONE, age, count, duration, escape
from kubectl_qos.present.killers import WORDS
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.output import Line, Section, aligned
from kubectl_qos.present.restart_notes import hidden_kill, peak_text, volume_sentence
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
    setup = prediction.setup
    for status in statuses:
        texts = hidden_kill(pod, status, usage, setup.release), peak_text(pod, status, usage, setup)
        lines += [Line(f"{escape(status.name)}: {text}") for text in texts if text]
    headline = f"restarted {count(restarts, 'time')}" if restarts else "never restarted"
    if pod.status.reason == "Evicted":
        headline = f"evicted, {headline}"
    return Section("History", headline, tuple(lines))


def _ends_by_log(pod: Pod, snapshot: Snapshot, logs: Sequence[KernelLog]) -> Mapping[tuple[object, ...], str]:
    """Return what certainly ended the containers of a pod, by container, exit code and time."""
    if not logs or not any(status.ends for status in pod.status.every_container):
        return {}
    from kubectl_qos.present.kills import mechanism_sentence
    from kubectl_qos.qos.kills.analyze import find_kills

    kills = find_kills(snapshot, EventList(), logs, is_included=lambda other: other is pod)
    certain = (kill for kill in kills if kill.pod and kill.diagnosis.confidence is Confidence.CERTAIN)
    return {(kill.container, kill.exit_code, kill.time): mechanism_sentence(kill) for kill in certain}


_MOST_QUOTED: Final = 300
_NO_PROOF: Final = (
    "neither OOMKilled nor exit code 137 proves what happened: with the systemd driver many victims of the"
    " kernel end as Error, and SIGKILL can come from elsewhere; see the node's kernel log"
)


def _disruptions(pod: Pod, now: datetime) -> Iterable[str]:
    """Say why the whole pod ended, by conditions too: a clean exit on SIGTERM lacks the reason Evicted."""
    kill = kubelet_kill(pod, ())
    for condition in pod.status.conditions or ():
        if condition.is_disruption:
            meaning = DISRUPTIONS.get(condition.reason, "disrupted")
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
    # A container that could not be started reports 1970 as its start time.
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
            return "OOM killed: the node or the limit of all pods was full; it has no limit"
        return "OOM killed: its own limit, its pod's or the node was full"
    if end.exit_code == SIGKILLED and not end.is_made_up:
        return "SIGKILL: perhaps for memory; the status alone does not tell"
    return _quote(end.message)


_EVENTS: Final = "Events"
LOADING: Final = Section(_EVENTS, "loading …")
MOST_SHOWN: Final = 50


class _MergedEvent(NamedTuple):
    type: str
    reason: str
    message: str
    times: int
    first: str
    last: str


def events_section(events: Sequence[Event], now: datetime) -> Section:
    """Return the section; `events` are as a source gives them, the newest last."""
    merged = list(_merge(reversed(events)))
    if not merged:
        return Section(_EVENTS, NONE)
    warnings = sum(event.type == "Warning" for event in merged)
    lines = [Line(text) for text in dict.fromkeys(filter(None, map(_event_meaning, merged)))]
    lines += _table(merged[:MOST_SHOWN], now)
    rest = len(merged) - MOST_SHOWN
    if rest > 0:
        older = count(rest, "older one", "older ones")
        lines.append(Line(f"and {older}: see kubectl get events"))
    newest = merged[0].last
    ago = f"{age(newest, now)} ago" if parse_time(newest) is not None else "at an unknown time"
    headline = f"{len(merged)}, {count(warnings, 'warning') if warnings else 'no warnings'}, the newest {ago}"
    return Section(_EVENTS, headline, tuple(lines))


def error_section(error: QosError) -> Section:
    """Say why there are no events, and the remedy."""
    missing = Missing("the list of the pod's events", escape(str(error)), error.hint)
    return Section(_EVENTS, "unknown", (Line(missing_sentence(missing)),))


def _merge(newest_first: Iterable[Event]) -> Iterator[_MergedEvent]:
    """Merge events with the same text, in the place of the newest."""
    groups: dict[tuple[str, str, str], list[Event]] = {}
    for event in newest_first:
        groups.setdefault((event.type, event.reason, event_text(event)), []).append(event)
    for key, equal in groups.items():
        oldest = min((event.first for event in equal if event.first), default="")
        yield _MergedEvent(*key, sum(event.times for event in equal), oldest, equal[0].last)


def event_text(event: Event) -> str:
    """Return the message on one line, with the container or node that it is about."""
    text = escape(" ".join(event.message.split()))
    node = escape(event.involved_object.name)
    if event.is_of_node:
        return text if node in text else f"node {node}: {text}"
    return f"{escape(event.container)}: {text}" if event.container else text


def _table(events: Sequence[_MergedEvent], now: datetime) -> Iterator[Line]:
    rows = [("LAST SEEN", "TYPE", "REASON", "COUNT")]
    for event in events:
        # As in kubectl describe: since the first time.
        times = "1" if event.times == 1 else f"x{event.times} over {age(event.first, now)}"
        rows.append((age(event.last, now), escape(event.type), escape(event.reason), times))
    texts = aligned(rows)
    width = max(map(len, texts))
    for text, message in zip(texts, ["MESSAGE", *(event.message or NONE for event in events)], strict=True):
        yield Line(text.ljust(width), message)


def _event_meaning(event: _MergedEvent) -> str:
    if event.reason in NOT_ONLY_MEMORY and "memory" not in event.message.lower():
        return ""
    meaning = EVENT_MEANINGS.get(event.reason, "")
    return f"{event.reason}: {meaning}" if meaning else ""
