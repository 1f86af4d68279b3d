"""The columns of clusters."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from kubectl_qos.analysis.cluster_table import ClusterRow, worst_first
from kubectl_qos.present.format import escape
from kubectl_qos.present.node_columns import NODE_COLUMNS
from kubectl_qos.present.output import NO_AGES, NUMBER, PERCENT, Column, ColumnType, column

_DEATH: Final = NODE_COLUMNS["next_death"]
_NOTHING: Final = "-"
"""What is known of a cluster that never answered."""


def nodes_text(row: ClusterRow) -> str:
    """How many are ready, of how many: `5/6`."""
    return _NOTHING if row.nodes is None else f"{row.ready}/{row.nodes}"


def worst_text(row: ClusterRow) -> str:
    """The worst node with its memory in use and its troubles: `worker-2 81% !mem`."""
    worst = row.worst
    if worst is None:
        return _NOTHING
    used = NODE_COLUMNS["used_percent"].cell(worst, NO_AGES)
    return " ".join((escape(worst.name), used, *(f"!{trouble[:3]}" for trouble in worst.troubles or ())))


def no_answer(row: ClusterRow) -> str:
    """Why nothing, or nothing newer, is known of a cluster; empty where it has answered."""
    if row.error is not None:
        return escape(str(row.error))
    return "" if row.taken is not None else "no answer yet"


def death_text(row: ClusterRow) -> str:
    """The next death as nodes have it, or why it is not known."""
    return no_answer(row) or (_NOTHING if row.dying is None else _DEATH.cell(row.dying, NO_AGES))


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

    return replace(ages, cell=cell)


_COLUMNS: Final[tuple[Column[ClusterRow], ...]] = (
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
    column(
        "kills",
        lambda row: row.kills,
        "OOM kills and evictions of the last day",
        NUMBER,
        empty=_NOTHING,
    ),
    _updated(),
    column("error", lambda row: row.error and str(row.error), "why there is nothing newer"),
    column(
        "next_death",
        lambda row: row.dying and _DEATH.value(row.dying),
        "who dies next, by whom, and how much more memory that takes; or why there is no answer",
        width=24,
        cell=death_text,
        sort_key=lambda row: (row.dying is None, row.dying and _DEATH.sort_key(row.dying)),
    ),
)
CLUSTER_COLUMNS: Final = {field.key: field for field in _COLUMNS}
