"""The registry of columns: name, header, alignment, sort key and cell, for CLI, UI and CSV alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from kubectl_qos.errors import UsageError
from kubectl_qos.present.format import NONE, UNKNOWN, age, escape, mebibytes
from kubectl_qos.present.pod_rows import PodRow, kill_order
from kubectl_qos.present.symbols import row_risk
from kubectl_qos.qos.flags import WORDS, Flag
from kubectl_qos.qos.qos_class import QosClass

RowT = TypeVar("RowT")


class Align(StrEnum):
    """Text to the left, numbers to the right."""

    LEFT = "<"
    RIGHT = ">"


class Holds(StrEnum):
    """What the values of a column are, which says how they are compared."""

    WORDS = "words"
    NUMBER = "number"
    PERCENT = "percent"
    BYTES = "bytes"
    TIME = "time"
    LEVEL = "level"
    """One of its choices, from the least to the most."""


@dataclass(frozen=True, slots=True)
class ColumnOf(Generic[RowT]):
    """One column of a table of such rows. `cell` is what people read, `value` what JSON and CSV carry.

    `sort_key` orders ascending by what the column means; unknown values come last. Rows that it does not tell
    apart stay in the order that they have, which is their natural one: sorting is stable.
    `width` is what the UI reserves at least. `choices` are the only words that it can hold, if that is so.
    """

    key: str
    header: str
    align: Align
    width: int
    cell: Callable[[RowT, datetime], str]
    value: Callable[[RowT], Any]
    sort_key: Callable[[RowT], Any]
    help: str
    holds: Holds = Holds.WORDS
    choices: tuple[str, ...] = ()


Column = ColumnOf[PodRow]
"""A column of pods or containers."""


def amount_text(value: int | None, empty: str) -> str:
    """Bytes in Mi, or what stands for none."""
    return empty if value is None else mebibytes(value)


def largest_first(value: float | None) -> float:
    """Largest first; None after every number."""
    return math.inf if value is None else -value


def rank_text(row: PodRow) -> str:
    """The rank; `=` where it is shared, `-` where there is none."""
    if row.rank is None:
        return "-"
    return f"{row.rank}=" if row.tied else str(row.rank)


def _adj(row: PodRow) -> str:
    if row.adj is not None:
        return str(row.adj)
    return f"{row.adj_range[0]}..{row.adj_range[1]}"


def restarts_text(restarts: int, oom_kills: int) -> str:
    """Restarts, and how many of the last ends are reported as OOMKilled."""
    return f"{restarts} ({oom_kills} OOM)" if oom_kills else str(restarts)


def _percent(row: PodRow) -> str:
    if row.limit_percent is not None:
        return f"{row.limit_percent:.0f}%"
    return UNKNOWN if row.limit is not None else NONE


def _text(read: Callable[[PodRow], str]) -> Callable[[PodRow, datetime], str]:
    return lambda row, _: escape(read(row)) or NONE


COLUMNS: Final[tuple[Column, ...]] = (
    ColumnOf(
        "rank",
        "RANK",
        Align.LEFT,
        5,
        lambda row, _: rank_text(row),
        lambda row: row.rank,
        kill_order,
        "the kernel's kill order on the node, 1 is next; N= is shared, - has no processes",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "namespace",
        "NAMESPACE",
        Align.LEFT,
        11,
        _text(lambda row: row.pod.namespace),
        lambda row: row.pod.namespace,
        lambda row: row.pod.metadata.namespace,
        "the pod's namespace",
    ),
    ColumnOf(
        "pod",
        "POD",
        Align.LEFT,
        24,
        _text(lambda row: row.name),
        lambda row: row.name,
        lambda row: row.name,
        "the pod's name",
    ),
    ColumnOf(
        "container",
        "CONTAINER",
        Align.LEFT,
        12,
        _text(lambda row: row.container),
        lambda row: row.container,
        lambda row: row.container,
        "the container's name",
    ),
    ColumnOf(
        "node",
        "NODE",
        Align.LEFT,
        12,
        _text(lambda row: row.node),
        lambda row: row.node,
        lambda row: row.node,
        "the node that the pod runs on",
    ),
    ColumnOf(
        "qos",
        "QOS",
        Align.LEFT,
        10,
        lambda row, _: row.qos.value,
        lambda row: row.qos.value,
        lambda row: ("BestEffort", "Burstable", "Guaranteed").index(row.qos.value),
        "the class that the node acts on",
        choices=tuple(one.value for one in QosClass),
    ),
    ColumnOf(
        "oom_score_adj",
        "OOM_ADJ",
        Align.RIGHT,
        7,
        lambda row, _: _adj(row),
        lambda row: row.adj,
        lambda row: largest_first(row.adj),
        "oom_score_adj of the container that is killed first",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "oom_score",
        "OOM_SCORE",
        Align.RIGHT,
        9,
        lambda row, _: UNKNOWN if row.score is None else str(row.score),
        lambda row: row.score,
        lambda row: largest_first(row.score),
        "what /proc/PID/oom_score shows for that container",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "memory",
        "MEMORY",
        Align.RIGHT,
        8,
        lambda row, _: amount_text(row.memory, UNKNOWN),
        lambda row: row.memory,
        lambda row: largest_first(row.memory),
        "memory in use (working set)",
        holds=Holds.BYTES,
    ),
    ColumnOf(
        "rss",
        "RSS",
        Align.RIGHT,
        8,
        lambda row, _: amount_text(row.rss, UNKNOWN),
        lambda row: row.rss,
        lambda row: largest_first(row.rss),
        "anonymous memory in use, as the kubelet's summary has it (--usage=summary)",
        holds=Holds.BYTES,
    ),
    ColumnOf(
        "swap",
        "SWAP",
        Align.RIGHT,
        8,
        lambda row, _: amount_text(row.swap, UNKNOWN),
        lambda row: row.swap,
        lambda row: largest_first(row.swap),
        "swap in use, as the kubelet's summary has it (--usage=summary)",
        holds=Holds.BYTES,
    ),
    ColumnOf(
        "request",
        "REQUEST",
        Align.RIGHT,
        8,
        lambda row, _: amount_text(row.request, NONE),
        lambda row: row.request,
        lambda row: largest_first(row.request),
        "memory requested by the whole pod",
        holds=Holds.BYTES,
    ),
    ColumnOf(
        "limit",
        "LIMIT",
        Align.RIGHT,
        8,
        lambda row, _: amount_text(row.limit, NONE),
        lambda row: row.limit,
        lambda row: largest_first(row.limit),
        "memory limit of the whole pod, if every container has one",
        holds=Holds.BYTES,
    ),
    ColumnOf(
        "limit_percent",
        "%LIMIT",
        Align.RIGHT,
        6,
        lambda row, _: _percent(row),
        lambda row: None if row.limit_percent is None else round(row.limit_percent, 1),
        lambda row: largest_first(row.limit_percent),
        "the highest usage of any container against its own memory limit",
        holds=Holds.PERCENT,
    ),
    ColumnOf(
        "restarts",
        "RESTARTS",
        Align.LEFT,
        9,
        lambda row, _: restarts_text(row.restarts, row.oom_kills),
        lambda row: row.restarts,
        lambda row: -row.restarts,
        "container restarts, and how many last ended as OOMKilled",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "priority",
        "PRIORITY",
        Align.RIGHT,
        10,
        lambda row, _: str(row.pod.spec.priority or 0),
        lambda row: row.pod.spec.priority or 0,
        lambda row: -(row.pod.spec.priority or 0),
        "the pod's priority: eviction looks at it, the kernel does not",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "eviction",
        "EVICTION",
        Align.RIGHT,
        8,
        lambda row, _: UNKNOWN if row.eviction_rank is None else str(row.eviction_rank),
        lambda row: row.eviction_rank,
        lambda row: math.inf if row.eviction_rank is None else row.eviction_rank,
        "the kubelet's order of eviction under memory pressure on the node, a different order",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "age",
        "AGE",
        Align.LEFT,
        6,
        lambda row, now: age(row.pod.metadata.creation_timestamp, now),
        lambda row: row.pod.metadata.creation_timestamp,
        lambda row: row.pod.metadata.creation_timestamp or "~",
        "time since the pod was created",
        holds=Holds.TIME,
    ),
    ColumnOf(
        "risk",
        "RISK",
        Align.LEFT,
        6,
        lambda row, _: row_risk(row).word,
        lambda row: row_risk(row).word,
        lambda row: -row_risk(row),
        "none, low, medium (PRIORITY, OVER-REQUEST), high (NEAR-LIMIT) or next, the node's next victim",
        holds=Holds.LEVEL,
        choices=WORDS,
    ),
    ColumnOf(
        "flags",
        "FLAGS",
        Align.LEFT,
        14,
        lambda row, _: " ".join(row.flags) or "",
        lambda row: [flag.value for flag in row.flags],
        lambda row: (not row.flags, row.flags),
        "what must not be missed",
        choices=tuple(one.value for one in Flag),
    ),
)
BY_KEY: Final = {column.key: column for column in COLUMNS}

DEFAULT_KEYS: Final = (
    "rank",
    "namespace",
    "pod",
    "qos",
    "oom_score_adj",
    "oom_score",
    "memory",
    "request",
    "limit",
    "limit_percent",
    "restarts",
    "flags",
)
WIDE_KEYS: Final = (*DEFAULT_KEYS[:-1], "node", "priority", "eviction", "age", "flags")
EVERY_KEYS: Final = (*WIDE_KEYS[:-1], "risk", "flags")
"""Those of the widest output of the command line, and of JSON, YAML and CSV."""
EVICTION_KEYS: Final = tuple("eviction" if key == "rank" else key for key in DEFAULT_KEYS)

OTHER_NAMES: Final = {
    "adj": "oom_score_adj",
    "oom_adj": "oom_score_adj",
    "score": "oom_score",
    "mem": "memory",
    "usage": "memory",
    "class": "qos",
    "name": "pod",
    "%limit": "limit_percent",
    "ns": "namespace",
}


def columns(keys: Iterable[str]) -> list[Column]:
    """The columns of these keys, in this order."""
    return [BY_KEY[key] for key in keys]


def column_named(name: str) -> Column:
    """The column of pods that a person names by key, header or a common short form. Raises UsageError."""
    return named(name, BY_KEY, OTHER_NAMES)


def named(name: str, known: Mapping[str, ColumnOf[RowT]], other_names: Mapping[str, str]) -> ColumnOf[RowT]:
    """The column among these that a person names. Raises UsageError with those that there are."""
    key = name.lower().replace("-", "_")
    key = other_names.get(key, key)
    if key not in known:
        raise UsageError(f"there is no column {name!r} to sort by", hint=f"columns are: {', '.join(known)}")
    return known[key]
