"""A pod's events as a section of its explanation: the newest first, and what those of memory mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.present.explanation import ExplanationLine, Section
from kubectl_qos.present.format import NONE, age, escape, parse_time
from kubectl_qos.present.notes import missing_sentence

TITLE: Final = "Events"
ASKING: Final = Section(TITLE, "asking …")
SHOWN_AT_MOST: Final = 50

_HEADERS: Final = ("LAST SEEN", "TYPE", "REASON", "COUNT")


@dataclass(frozen=True, slots=True)
class MergedEvent:
    """Events that say the same, as one; `first` and `last` are RFC 3339 texts or empty."""

    type: str
    reason: str
    message: str
    times: int
    first: str
    last: str


def events_section(events: Sequence[Event], now: datetime) -> Section:
    """All of it; `events` are as a source gives them, the newest last."""
    event_list = list(_merged(reversed(events)))
    if not event_list:
        return Section(TITLE, NONE)
    warnings = sum(one.type == "Warning" for one in event_list)
    shown = event_list[:SHOWN_AT_MOST]
    lines = [ExplanationLine(text) for text in dict.fromkeys(filter(None, map(_meaning, event_list)))]
    lines += _table(shown, now)
    rest = len(event_list) - len(shown)
    if rest:
        lines.append(
            ExplanationLine(
                f"and {rest} older {'one' if rest == 1 else 'ones'}; kubectl get events has them all"
            )
        )
    answer = f"{len(event_list)}, {warnings or 'none'} of them {'a warning' if warnings == 1 else 'warnings'}"
    return Section(TITLE, f"{answer}, the newest {_ago(event_list[0].last, now)}", tuple(lines))


def refused_section(error: QosError) -> Section:
    """Why there are none to show, and what would change that."""
    missing = Missing("the list of the pod's events", escape(str(error)), error.hint)
    return Section(TITLE, "not known", (ExplanationLine(missing_sentence(missing)),))


def _merged(newest_first: Iterable[Event]) -> Iterator[MergedEvent]:
    """Equal ones together, at the place of the newest."""
    alike: dict[tuple[str, str, str], list[Event]] = {}
    for event in newest_first:
        alike.setdefault((event.type, event.reason, _message(event)), []).append(event)
    for (kind, reason, message), found in alike.items():
        oldest = min((event.first for event in found if event.first), default="")
        times = sum(event.times for event in found)
        yield MergedEvent(kind, reason, message, times, oldest, found[0].last)


def _message(event: Event) -> str:
    """On one line, and whose it is where that is not the whole pod."""
    text = escape(" ".join(event.message.split()))
    node = escape(event.involved_object.name)
    if event.is_of_node:
        return text if node in text else f"node {node}: {text}"
    return f"{escape(event.container)}: {text}" if event.container else text


def _table(event_list: Iterable[MergedEvent], now: datetime) -> Iterator[ExplanationLine]:
    """Columns that are padded; the message is the note behind them."""
    rows = [
        _HEADERS,
        *((age(one.last, now), escape(one.type), escape(one.reason), _count(one, now)) for one in event_list),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    messages = ["MESSAGE", *(one.message or NONE for one in event_list)]
    for row, message in zip(rows, messages, strict=True):
        yield ExplanationLine(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), message
        )


def _count(happening: MergedEvent, now: datetime) -> str:
    """`x3 over 10m`, as kubectl describe says it: since the first time."""
    if happening.times == 1:
        return "1"
    return f"x{happening.times} over {age(happening.first, now)}"


def _ago(when: str, now: datetime) -> str:
    return f"{age(when, now)} ago" if parse_time(when) is not None else "of an unknown time"


def _meaning(happening: MergedEvent) -> str:
    """What it means where it concerns memory, else nothing."""
    if happening.reason in _ABOUT_ANYTHING and "memory" not in happening.message.lower():
        return ""
    meaning = _MEANINGS.get(happening.reason, "")
    return f"{happening.reason}: {meaning}" if meaning else ""


_ABOUT_ANYTHING: Final = frozenset({"Evicted", "EvictionThresholdMet", "FailedScheduling"})
"""Reasons that may also be about disks, processors or process ids: their message says what."""

_MEANINGS: Final = {
    "SystemOOM": (
        "the node itself ran out of memory and its kernel killed by oom_score; the limit of a container,"
        " of a pod or of all pods together never causes it"
    ),
    "OOMKilling": (
        "the kernel killed a process for memory; it does not say whether a container's limit or the node's"
        " memory was at its end"
    ),
    "EvictionThresholdMet": (
        "the node is so short of memory that its kubelet evicts pods, by the rank under Eviction"
    ),
    "NodeHasInsufficientMemory": (
        "the node is under memory pressure: its kubelet evicts pods, and admits no BestEffort ones"
    ),
    "Evicted": "the kubelet ended the pod to get memory for its node, by the rank under Eviction; no OOM",
    "Preempted": (
        "the scheduler gave the pod's place to one of higher priority: by what is requested, not what is used"
    ),
    "Preempting": (
        "the kubelet ended the pod to make room for a critical one: by what is requested, not what is used"
    ),
    "FailedScheduling": (
        "nodes with insufficient memory have less of it unrequested than the pod requests; what pods use"
        " does not count"
    ),
    "OutOfmemory": "the kubelet refused the pod: it requests more memory than the requests of others leave",
    "ResizeDeferred": (
        "the node could hold the resized pod, but the requests of others leave too little now: it waits"
    ),
    "ResizeInfeasible": "the node can never hold what the resize asks for: the pod goes on as it was",
    "ResizeError": (
        "the resize could not be done and is tried again; until then the cgroup keeps its old values"
    ),
}
"""Reasons of pkg/kubelet/events and eviction, of the scheduler and of node-problem-detector."""
