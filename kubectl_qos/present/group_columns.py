"""The columns of workloads and namespaces, in the form of present/columns.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubectl_qos.present.amounts import NONE, UNKNOWN, escape
from kubectl_qos.present.columns import (
    Align,
    ColumnOf,
    Holds,
    amount_text,
    largest_first,
    rank_text,
    restarts_text,
)
from kubectl_qos.present.group_rows import GroupRow, rank_order
from kubectl_qos.present.marks import CLASSES
from kubectl_qos.qos.qos_class import QosClass

GroupColumn = ColumnOf[GroupRow[Any]]


def _text(key: str, header: str, width: int, read: Callable[[GroupRow[Any]], str], text: str) -> GroupColumn:
    return ColumnOf(
        key, header, Align.LEFT, width, lambda row, _: escape(read(row)) or NONE, read, read, text
    )


def _count(key: str, header: str, read: Callable[[GroupRow[Any]], int], text: str) -> GroupColumn:
    return ColumnOf(
        key,
        header,
        Align.RIGHT,
        len(header),
        lambda row, _: str(read(row)),
        read,
        lambda row: -read(row),
        text,
        holds=Holds.NUMBER,
    )


def _amount(
    key: str, header: str, read: Callable[[GroupRow[Any]], int | None], empty: str, text: str
) -> GroupColumn:
    return ColumnOf(
        key,
        header,
        Align.RIGHT,
        8,
        lambda row, _: amount_text(read(row), empty),
        read,
        lambda row: largest_first(read(row)),
        text,
        holds=Holds.BYTES,
    )


def _classes(row: GroupRow[Any]) -> str:
    """`Burstable`; of several classes each with its number: `1G 3B`."""
    if len(row.classes) == 1:
        return row.classes[0][0].value
    return " ".join(f"{number}{CLASSES[qos].letter}" for qos, number in row.classes)


def _most_endangered_first(row: GroupRow[Any]) -> list[int]:
    """Those with the most BestEffort pods first, as pods are."""
    numbers = dict(row.classes)
    return [-numbers.get(qos, 0) for qos in (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)]


_OF_PODS: Final[tuple[GroupColumn, ...]] = (
    _count("pods", "PODS", lambda row: row.pods, "how many pods it has here"),
    ColumnOf(
        "qos",
        "QOS",
        Align.LEFT,
        10,
        lambda row, _: _classes(row),
        lambda row: [qos.value for qos, _ in row.classes],
        _most_endangered_first,
        "the class of its pods; of several classes how many have each",
        choices=tuple(one.value for one in QosClass),
    ),
    ColumnOf(
        "rank",
        "RANK",
        Align.LEFT,
        5,
        lambda row, _: rank_text(row.worst),
        lambda row: row.worst.rank,
        lambda row: rank_order(row.worst),
        "the best rank of its pods in the kill order of their nodes, 1 is next",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "oom_score",
        "OOM_SCORE",
        Align.RIGHT,
        9,
        lambda row, _: UNKNOWN if row.worst.score is None else str(row.worst.score),
        lambda row: row.worst.score,
        lambda row: largest_first(row.worst.score),
        "what /proc/PID/oom_score shows for that pod",
        holds=Holds.NUMBER,
    ),
    _text("worst", "FIRST_TO_DIE", 24, lambda row: row.worst.name, "that pod"),
    _text("node", "NODE", 12, lambda row: row.worst.node, "that pod's node"),
    _count("victims", "VICTIMS", lambda row: row.victims, "how many pods are their node's next victim"),
    _count("at_risk", "AT_RISK", lambda row: row.at_risk, "how many pods have a flag of risk"),
    _amount("memory", "MEMORY", lambda row: row.memory, UNKNOWN, "memory in use (working set) by its pods"),
    _amount("request", "REQUEST", lambda row: row.request, NONE, "memory that its pods request together"),
    _amount(
        "limit", "LIMIT", lambda row: row.limit, NONE, "memory limits of its pods, if every one has a limit"
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
)

WORKLOAD_COLUMNS: Final[dict[str, GroupColumn]] = {
    column.key: column
    for column in (
        _text("namespace", "NAMESPACE", 11, lambda row: row.key.namespace, "the workload's namespace"),
        _text("kind", "KIND", 11, lambda row: row.key.kind, "Deployment, StatefulSet and so on"),
        _text("workload", "WORKLOAD", 20, lambda row: row.key.name, "the workload's name"),
        *_OF_PODS,
    )
}
NAMESPACE_COLUMNS: Final[dict[str, GroupColumn]] = {
    column.key: column
    for column in (
        _text("namespace", "NAMESPACE", 11, lambda row: row.key, "the namespace's name"),
        *_OF_PODS,
    )
}
