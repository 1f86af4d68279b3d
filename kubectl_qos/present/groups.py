"""The columns of workloads, namespaces and clusters."""

from datetime import datetime
from math import inf
from typing import Any, Final

from msgspec import structs

from kubectl_qos.analysis.group_table import ClusterRow, GroupRow, rank_order, worst_first
from kubectl_qos.present.format import NONE, UNKNOWN, escape, mebibytes
from kubectl_qos.present.node_columns import NODE_COLUMNS
from kubectl_qos.present.output import (
    BYTES,
    NO_AGES,
    NUMBER,
    PERCENT,
    Align,
    Column,
    ColumnType,
    column,
    largest_first,
)
from kubectl_qos.present.pod_columns import QOS_CHOICES, RESTARTS, rank_text
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass

GroupColumn = Column[GroupRow[Any]]
_DEATH: Final = NODE_COLUMNS["next_death"]
_NOTHING: Final = "-"
"""The cell of a cluster that never answered."""


def _classes(row: GroupRow[Any]) -> str:
    if len(row.classes) == 1:
        return row.classes[0][0].value
    return " ".join(f"{number}{CLASSES[qos].letter}" for qos, number in row.classes) or NONE


def _most_endangered_first(row: GroupRow[Any]) -> list[int]:
    numbers = dict(row.classes)
    return [-numbers.get(qos, 0) for qos in (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)]


def _most_overcommitted_first(row: GroupRow[Any]) -> tuple[float, float]:
    """Order by the share of the requests in use, which without requests has no end."""
    share = inf if row.memory and not row.request else row.request_percent
    return largest_first(share), largest_first(row.memory)


_OF_PODS: Final[tuple[GroupColumn, ...]] = (
    column("pods", lambda row: row.pods, "how many of its pods have not ended", NUMBER),
    column(
        "qos",
        lambda row: list(row.common_words),
        "the class of its pods, or how many pods have each class",
        field="qosClasses",
        width=10,
        cell=_classes,
        sort_key=_most_endangered_first,
        choices=QOS_CHOICES,
    ),
    column(
        "rank",
        lambda row: row.worst.rank,
        "the best rank of its pods in the kill order of their nodes, 1 is next",
        NUMBER,
        align=Align.LEFT,
        width=5,
        cell=lambda row: rank_text(row.worst.rank, tied=row.worst.tied),
        sort_key=lambda row: rank_order(row.worst),
    ),
    column("oom_score", lambda row: row.worst.score, "/proc/PID/oom_score of that pod", NUMBER),
    column(
        "worst",
        lambda row: row.worst.name if row.worst.rank is not None else None,
        "that pod",
        field="firstToDie",
        width=24,
        sort_key=lambda row: (row.worst.rank is None, row.worst.name),
        header="FIRST_TO_DIE",
    ),
    column("node", lambda row: row.worst.node, "that pod's node", width=12),
    column("victims", lambda row: row.victims, "how many pods are their node's next victim", NUMBER),
    column(
        "at_risk",
        lambda row: row.at_risk,
        "how many pods are at risk: the next victim of a killer, or with a risk flag",
        NUMBER,
    ),
    column("memory", lambda row: row.memory, "memory in use (working set) by its pods", BYTES),
    column("request", lambda row: row.request, "memory requests of its pods", BYTES, empty=NONE),
    column(
        "request_percent",
        lambda row: row.request_percent,
        "memory in use, of the requests: above 100 % it uses more than it asks for",
        PERCENT,
        header="%REQUEST",
        empty=lambda row: UNKNOWN if row.request else NONE,
        sort_key=_most_overcommitted_first,
    ),
    column(
        "limit",
        lambda row: row.limit,
        "memory limits of its pods, + where some have none",
        BYTES,
        cell=lambda row: (
            NONE if row.limit is None else f"{mebibytes(row.limit)}{'+' if row.unlimited else ''}"
        ),
    ),
    column(
        "unlimited",
        lambda row: row.unlimited,
        "how many pods have a container without a memory limit",
        NUMBER,
        field="unlimitedPods",
    ),
    RESTARTS,
)

_WORKLOAD: Final[tuple[GroupColumn, ...]] = (
    column("namespace", lambda row: row.key.namespace, "the workload's namespace", width=11, names=("ns",)),
    column("kind", lambda row: row.key.kind, "Deployment, StatefulSet and so on", width=11),
    column("workload", lambda row: row.key.name, "the workload's name", width=20),
)
_NAMESPACE: Final[GroupColumn] = column(
    "namespace", lambda row: row.key, "the namespace's name", width=11, names=("ns", "name")
)
WORKLOAD_COLUMNS: Final = {table_column.key: table_column for table_column in (*_WORKLOAD, *_OF_PODS)}
NAMESPACE_COLUMNS: Final = {table_column.key: table_column for table_column in (_NAMESPACE, *_OF_PODS)}
WIDE_KEYS: Final = frozenset({"oom_score", "victims", "request_percent", "unlimited"})
"""The columns that `top` shows only with -o wide."""
HIDDEN_FIRST: Final = ("restarts", "node", "qos", "worst", "kind", "request", "limit")


def nodes_text(row: ClusterRow) -> str:
    """Return how many nodes are ready, of how many: `5/6`."""
    return _NOTHING if row.nodes is None else f"{row.ready}/{row.nodes}"


def worst_text(row: ClusterRow) -> str:
    """Return the worst node with its memory in use and its bad conditions: `worker-2 81% !mem`."""
    worst = row.worst
    if worst is None:
        return _NOTHING
    used = NODE_COLUMNS["used_percent"].cell(worst, NO_AGES)
    return " ".join((escape(worst.name), used, *(f"!{word[:3]}" for word in worst.bad_conditions or ())))


def no_answer(row: ClusterRow) -> str:
    """Say why a cluster has no data, or no newer data; "" if it has answered."""
    if row.error is not None:
        return escape(str(row.error))
    return "" if row.taken is not None else "no answer yet"


def death_text(row: ClusterRow) -> str:
    """Return the next death as in the table of nodes, or why it is unknown."""
    return no_answer(row) or (
        _NOTHING if row.next_death_node is None else _DEATH.cell(row.next_death_node, NO_AGES)
    )


def _used_percent(row: ClusterRow) -> float | None:
    return None if row.worst is None else row.worst.used_percent


def _updated() -> Column[ClusterRow]:
    ages: Column[ClusterRow] = column(
        "age",
        lambda row: None if row.taken is None else row.taken.isoformat(),
        "when the row was read; live is the cluster that is open",
        ColumnType.TIME,
        field="updated",
        header="UPDATED",
        sort_key=lambda row: (row.taken is None, row.taken and -row.taken.timestamp()),
    )

    def cell(row: ClusterRow, now: datetime) -> str:
        if row.taken is None:
            return _NOTHING
        return "live" if row.is_open and row.error is None else ages.cell(row, now)

    return structs.replace(ages, cell=cell)


_OF_CLUSTERS: Final[tuple[Column[ClusterRow], ...]] = (
    column("cluster", lambda row: row.name, "the context", width=12, names=("name", "context")),
    column("version", lambda row: row.version or None, "the server's version", width=8, empty=_NOTHING),
    column("nodes", lambda row: row.nodes, "nodes that are ready, of all", NUMBER, cell=nodes_text),
    column(
        "worst_node",
        lambda row: row.worst and row.worst.name,
        "the first node in trouble, else the fullest: memory in use, of what is allocatable",
        width=16,
        cell=worst_text,
        sort_key=worst_first,
        names=("worst",),
    ),
    column("used_percent", _used_percent, "its memory in use", PERCENT, header="%USED"),
    column("kills", lambda row: row.kills, "OOM kills and evictions of the last day", NUMBER, empty=_NOTHING),
    _updated(),
    column("error", lambda row: row.error and str(row.error), "why there is nothing newer"),
    column(
        "next_death",
        lambda row: row.next_death_node and _DEATH.value(row.next_death_node),
        "who dies next, by whom, and how much more memory that takes; or why there is no answer",
        width=24,
        cell=death_text,
        sort_key=lambda row: (
            row.next_death_node is None,
            row.next_death_node and _DEATH.sort_key(row.next_death_node),
        ),
    ),
)
CLUSTER_COLUMNS: Final = {field.key: field for field in _OF_CLUSTERS}
