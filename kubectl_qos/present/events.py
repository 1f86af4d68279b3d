"""A pod's events as a section of its explanation: newest first, with the meaning of those about memory."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import NOT_ONLY_MEMORY, Event
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.present.format import NONE, age, count, escape
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.output import Line, Section, aligned

TITLE: Final = "Events"
LOADING: Final = Section(TITLE, "loading …")
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
        return Section(TITLE, NONE)
    warnings = sum(event.type == "Warning" for event in merged)
    lines = [Line(text) for text in dict.fromkeys(filter(None, map(_meaning, merged)))]
    lines += _table(merged[:MOST_SHOWN], now)
    rest = len(merged) - MOST_SHOWN
    if rest > 0:
        older = count(rest, "older one", "older ones")
        lines.append(Line(f"and {older}: see kubectl get events"))
    newest = merged[0].last
    ago = f"{age(newest, now)} ago" if parse_time(newest) is not None else "at an unknown time"
    answer = f"{len(merged)}, {count(warnings, 'warning') if warnings else 'no warnings'}, the newest {ago}"
    return Section(TITLE, answer, tuple(lines))


def error_section(error: QosError) -> Section:
    """Say why there are no events, and the remedy."""
    missing = Missing("the list of the pod's events", escape(str(error)), error.hint)
    return Section(TITLE, "unknown", (Line(missing_sentence(missing)),))


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


def _meaning(event: _MergedEvent) -> str:
    if event.reason in NOT_ONLY_MEMORY and "memory" not in event.message.lower():
        return ""
    meaning = MEANINGS.get(event.reason, "")
    return f"{event.reason}: {meaning}" if meaning else ""


MEANINGS: Final = {
    "SystemOOM": "the node ran out of memory and the kernel killed by oom_score; no limit was involved",
    "OOMKilling": "the kernel killed a process for memory, at a limit or because the node ran out",
    "EvictionThresholdMet": "the node is short of memory: the kubelet evicts pods by the rank under Eviction",
    "NodeHasInsufficientMemory": "memory pressure: the kubelet evicts pods and admits no BestEffort ones",
    "Evicted": "the kubelet ended the pod to free memory on its node, by the rank under Eviction; no OOM",
    "Preempted": "the scheduler removed the pod for one of higher priority: by requests, not by usage",
    "EvictedByVPA": "the VPA updater evicted the pod to give it other requests; no OOM, no pressure",
    "TaintManagerEviction": "the pod was deleted for a taint of its node; no OOM",
    "Preempting": "the kubelet ended the pod to make room for a critical one: by requests, not by usage",
    "FailedScheduling": "memory is insufficient by requests: usage does not count",
    "OutOfmemory": "the kubelet refused the pod: it requests more memory than other pods leave unrequested",
    "ResizeDeferred": "the resize fits the node, but other pods request too much now: it waits",
    "ResizeInfeasible": "the resize can never fit the node: the pod keeps its values",
    "ResizeError": "the resize failed and is retried; until then the cgroup keeps its old values",
}
"""Reasons of pkg/kubelet/events and eviction, of the scheduler and of node-problem-detector."""
