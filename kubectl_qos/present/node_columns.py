"""The registry of the columns of nodes, and their table. The nodes' side of present/columns.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from kubectl_qos.present.format import NONE, UNKNOWN, escape, mebibytes
from kubectl_qos.present.node_rows import NodeRow, trouble_first
from kubectl_qos.present.pod_columns import Align, ColumnOf, Holds, largest_first, named
from kubectl_qos.present.symbols import CLASSES
from kubectl_qos.qos.qos_class import QosClass

NodeColumn = ColumnOf[NodeRow]
"""A column of nodes."""

_Cell = Callable[[NodeRow], str]


def node_columns(keys: Iterable[str]) -> list[NodeColumn]:
    """The columns of these keys, in this order."""
    return [NODE_COLUMNS[key] for key in keys]


def node_column_named(name: str) -> NodeColumn:
    """The column of nodes that a person names by key, header or a common short form. Raises UsageError."""
    return named(name, NODE_COLUMNS, OTHER_NAMES)


def _amount(
    key: str,
    header: str,
    read: Callable[[NodeRow], int | None],
    text: str,
    *,
    otherwise: _Cell = lambda _: UNKNOWN,
    least_first: bool = False,
) -> NodeColumn:
    """Bytes, the largest first unless said otherwise."""

    def cell(row: NodeRow) -> str:
        found = read(row)
        return otherwise(row) if found is None else mebibytes(found)

    def order(row: NodeRow) -> float:
        found = read(row)
        if least_first:
            return math.inf if found is None else found
        return largest_first(found)

    return ColumnOf(
        key, header, Align.RIGHT, 8, lambda row, _: cell(row), read, order, text, holds=Holds.BYTES
    )


def _share(
    key: str, header: str, read: Callable[[NodeRow], float | None], text: str, *, at_least: bool = False
) -> NodeColumn:
    """A percentage, the largest first; `+` where it may be more because of pods without limits."""

    def cell(row: NodeRow) -> str:
        percent = read(row)
        more = "+" if at_least and row.memory.unlimited_pods else ""
        return UNKNOWN if percent is None else f"{percent:.0f}%{more}"

    def value(row: NodeRow) -> float | None:
        percent = read(row)
        return None if percent is None else round(percent, 1)

    return ColumnOf(
        key,
        header,
        Align.RIGHT,
        5,
        lambda row, _: cell(row),
        value,
        lambda row: largest_first(read(row)),
        text,
        holds=Holds.PERCENT,
    )


def _of_victim(
    key: str, header: str, align: Align, read: Callable[[NodeRow], Any], text: str, *, largest: bool = False
) -> NodeColumn:
    """Something of the next victim, `<unknown>` where nobody knows who that is."""

    def order(row: NodeRow) -> Any:
        found = read(row)
        return largest_first(found) if largest else (found is None, found or "")

    def cell(row: NodeRow) -> str:
        found = read(row)
        return _no_victim(row) if found is None else escape(str(found))

    holds = Holds.NUMBER if largest else Holds.WORDS
    return ColumnOf(key, header, align, 8, lambda row, _: cell(row), read, order, text, holds=holds)


def _no_victim(row: NodeRow) -> str:
    return UNKNOWN if row.memory.pods else NONE


def _no_threshold(row: NodeRow) -> str:
    return NONE if row.configured else UNKNOWN


def _victim_name(row: NodeRow) -> str | None:
    return None if row.victim is None else "/".join(row.victim.key)


def _victim(row: NodeRow) -> str:
    if row.victim is None:
        return _no_victim(row)
    letter = CLASSES[row.victim.qos].letter
    others = f", or {row.victim.others} more" if row.victim.others else ""
    return f"{escape('/'.join(row.victim.key))} {letter}{others}"


def _pressure(row: NodeRow) -> str:
    return UNKNOWN if row.troubles is None else ",".join(row.troubles) or NONE


_COLUMNS: Final[tuple[NodeColumn, ...]] = (
    ColumnOf(
        "node",
        "NODE",
        Align.LEFT,
        12,
        lambda row, _: escape(row.name),
        lambda row: row.name,
        lambda row: row.name,
        "the node's name",
    ),
    ColumnOf(
        "pods",
        "PODS",
        Align.RIGHT,
        4,
        lambda row, _: str(row.memory.pods),
        lambda row: row.memory.pods,
        lambda row: -row.memory.pods,
        "how many pods have processes there",
        holds=Holds.NUMBER,
    ),
    _amount(
        "guaranteed",
        "MEM_G",
        lambda row: row.used(QosClass.GUARANTEED),
        "memory in use (working set) by Guaranteed pods",
    ),
    _amount(
        "burstable",
        "MEM_B",
        lambda row: row.used(QosClass.BURSTABLE),
        "memory in use by Burstable pods",
    ),
    _amount(
        "best_effort",
        "MEM_E",
        lambda row: row.used(QosClass.BEST_EFFORT),
        "memory in use by BestEffort pods",
    ),
    _amount("used", "USED", lambda row: row.memory.used_bytes, "memory in use by all pods"),
    _amount("capacity", "CAPACITY", lambda row: row.capacity, "the machine's memory"),
    _share("used_percent", "%USED", lambda row: row.used_percent, "memory in use by pods, of the capacity"),
    _amount(
        "requests", "REQUESTS", lambda row: row.memory.requests_bytes, "memory requests of all pods together"
    ),
    _amount("allocatable", "ALLOCATABLE", lambda row: row.allocatable, "what pods can request in all"),
    _share("requests_percent", "%REQ", lambda row: row.requests_percent, "requests, of what is allocatable"),
    _amount("limits", "LIMITS", lambda row: row.memory.limits_bytes, "memory limits of all pods together"),
    _share(
        "limits_percent",
        "%LIM",
        lambda row: row.limits_percent,
        "limits, of the capacity; + where some containers have none",
        at_least=True,
    ),
    ColumnOf(
        "unlimited",
        "UNLIMITED",
        Align.RIGHT,
        9,
        lambda row, _: str(row.memory.unlimited_pods),
        lambda row: row.memory.unlimited_pods,
        lambda row: -row.memory.unlimited_pods,
        "how many pods have a container without a memory limit",
        holds=Holds.NUMBER,
    ),
    _amount(
        "worst",
        "WORST",
        lambda row: row.memory.worst_bytes,
        "memory in use if every container with a limit reaches it and the others stay as they are",
    ),
    _share(
        "worst_percent",
        "%WORST",
        lambda row: row.worst_percent,
        "that worst case, of the capacity; + where some containers have no limit",
        at_least=True,
    ),
    _amount(
        "eviction",
        "EVICTION",
        lambda row: row.eviction,
        "the hard threshold of memory.available, below which the kubelet evicts pods",
        otherwise=lambda row: NONE if row.capacity else UNKNOWN,
    ),
    _amount(
        "to_eviction",
        "TO_EVICTION",
        lambda row: row.to_eviction,
        "how much more memory pods can use before that, at most; below zero the kubelet already evicts",
        otherwise=lambda row: NONE if row.eviction is None and row.capacity else UNKNOWN,
        least_first=True,
    ),
    _amount(
        "soft_eviction",
        "SOFT",
        lambda row: row.soft_eviction,
        "the soft threshold, which has to be crossed for some time",
        otherwise=_no_threshold,
    ),
    _amount(
        "to_soft_eviction",
        "TO_SOFT",
        lambda row: row.to_soft_eviction,
        "how much more memory pods can use before the soft threshold, at most",
        otherwise=lambda row: _no_threshold(row) if row.soft_eviction is None else UNKNOWN,
        least_first=True,
    ),
    ColumnOf(
        "eviction_configured",
        "CONFIGURED",
        Align.LEFT,
        10,
        lambda row, _: "yes" if row.configured else "no",
        lambda row: row.configured,
        lambda row: not row.configured,
        "whether the thresholds are the kubelet's own; if not, the default is assumed",
    ),
    ColumnOf(
        "pressure",
        "PRESSURE",
        Align.LEFT,
        8,
        lambda row, _: _pressure(row),
        lambda row: None if row.troubles is None else list(row.troubles),
        trouble_first,
        "memory, disk or pids as the node itself reports it, or not-ready",
    ),
    _of_victim(
        "victim_score",
        "SCORE",
        Align.RIGHT,
        lambda row: None if row.victim is None else row.victim.oom_score,
        "its oom_score",
        largest=True,
    ),
    _of_victim(
        "victim_qos",
        "QOS",
        Align.LEFT,
        lambda row: None if row.victim is None else row.victim.qos.value,
        "its class",
    ),
    _of_victim(
        "victim_others",
        "OTHERS",
        Align.RIGHT,
        lambda row: None if row.victim is None else row.victim.others,
        "how many pods share its rank, so that one of them may go in its place",
        largest=True,
    ),
    ColumnOf(
        "next_victim",
        "NEXT_VICTIM",
        Align.LEFT,
        24,
        lambda row, _: _victim(row),
        _victim_name,
        lambda row: (row.victim is None, _victim_name(row) or "", row.name),
        "the pod that the kernel kills first when the node runs out of memory, and the letter of its class",
    ),
)

NODE_COLUMNS: Final = {column.key: column for column in _COLUMNS}

DEFAULT_KEYS: Final = (
    "node",
    "pods",
    "guaranteed",
    "burstable",
    "best_effort",
    "used_percent",
    "requests_percent",
    "limits_percent",
    "worst_percent",
    "pressure",
    "next_victim",
)
WIDE_KEYS: Final = (
    "node",
    "pods",
    "guaranteed",
    "burstable",
    "best_effort",
    "used",
    "capacity",
    "used_percent",
    "requests",
    "requests_percent",
    "limits",
    "limits_percent",
    "unlimited",
    "worst",
    "worst_percent",
    "eviction",
    "to_eviction",
    "soft_eviction",
    "pressure",
    "victim_score",
    "next_victim",
)
EVERY_KEYS: Final = tuple(NODE_COLUMNS)
"""Those of JSON, YAML and CSV."""
EVICTION_KEYS: Final = frozenset(
    {"eviction", "to_eviction", "soft_eviction", "to_soft_eviction", "eviction_configured"}
)
"""Those for which it matters what a kubelet is configured with."""

OTHER_NAMES: Final = {
    "name": "node",
    "memory": "used",
    "mem": "used",
    "usage": "used",
    "besteffort": "best_effort",
    "score": "victim_score",
    "qos": "victim_qos",
    "victim": "next_victim",
    **{column.header.lower(): column.key for column in _COLUMNS},
}
