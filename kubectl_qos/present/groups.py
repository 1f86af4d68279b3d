"""The columns of workloads and namespaces."""

from typing import Any, Final

from kubectl_qos.analysis.group_table import GroupRow, rank_order
from kubectl_qos.present.format import NONE
from kubectl_qos.present.output import BYTES, NUMBER, Align, Column, column
from kubectl_qos.present.pod_columns import QOS_CHOICES, RESTARTS, rank_text
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass

GroupColumn = Column[GroupRow[Any]]


def _classes(row: GroupRow[Any]) -> str:
    if len(row.classes) == 1:
        return row.classes[0][0].value
    return " ".join(f"{number}{CLASSES[qos].letter}" for qos, number in row.classes) or NONE


def _most_endangered_first(row: GroupRow[Any]) -> list[int]:
    numbers = dict(row.classes)
    return [-numbers.get(qos, 0) for qos in (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)]


_OF_PODS: Final[tuple[GroupColumn, ...]] = (
    column("pods", lambda row: row.pods, "how many of its pods have not ended", NUMBER),
    column(
        "qos",
        lambda row: list(row.common_words),
        "the class of its pods; of several classes how many have each",
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
        "how many pods are at risk: next of a killer, or with a flag of risk",
        NUMBER,
    ),
    column("memory", lambda row: row.memory, "memory in use (working set) by its pods", BYTES),
    column("request", lambda row: row.request, "memory requests of its pods", BYTES, empty=NONE),
    column("limit", lambda row: row.limit, "memory limits of its pods, if all have one", BYTES, empty=NONE),
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
WIDE_KEYS: Final = frozenset({"oom_score", "victims"})
"""What `top` shows with -o wide alone."""
HIDDEN_FIRST: Final = ("restarts", "node", "qos", "worst", "kind", "request", "limit")
"""What a narrow terminal does not show, in this order."""
