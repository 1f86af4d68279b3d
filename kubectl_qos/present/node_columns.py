"""The columns of nodes, of workloads, namespaces and clusters, and the bar of a node's memory."""

from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from math import inf
from typing import Any, Final, NamedTuple

from msgspec import structs

from kubectl_qos.analysis.group_table import (
    ClusterRow,
    GroupRow,
    NodeRow,
    percent,
    rank_order,
    worst_first,
    worst_node_first,
)
from kubectl_qos.present.format import NONE, UNKNOWN, binary, escape, eta, full_name, mebibytes
from kubectl_qos.present.next_death import AT_MOST, death_condition, distance, killed_by, killer_words, victim
from kubectl_qos.present.output import (
    BYTES,
    NO_AGES,
    NUMBER,
    PERCENT,
    Align,
    Column,
    ColumnType,
    Needs,
    column,
    largest_first,
)
from kubectl_qos.present.pod_columns import PSI_COLUMNS, QOS_CHOICES, RESTARTS, rank_text
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass

NodeColumn = Column[NodeRow]


def _share(key: str, value: Callable[[NodeRow], float | None], text: str, header: str) -> NodeColumn:
    def cell(row: NodeRow) -> str:
        content = value(row)
        more = "+" if row.memory.unlimited_pods else ""
        return UNKNOWN if content is None else f"{content:.0f}%{more}"

    return column(key, value, text, PERCENT, cell=cell, header=header)


def _used_by(qos: QosClass, what: str) -> NodeColumn:
    of_class: NodeColumn = column(
        qos.name.lower(),
        lambda row: row.used(qos),
        f"{what} by {qos.value} pods",
        BYTES,
        header=f"MEM_{CLASSES[qos].letter}",
        names=(qos.value.lower(),),
    )
    return _at_least(of_class, lambda row: not row.memory.unmeasured[qos])


def _at_least(of: NodeColumn, is_known: Callable[[NodeRow], bool]) -> NodeColumn:
    """Return a column of sums: a sum with unknown parts has no value, and its cell a `+`."""

    def cell(row: NodeRow, now: datetime) -> str:
        text = of.cell(row, now)
        if is_known(row):
            return text
        return UNKNOWN if text in {UNKNOWN, "0%", "0Mi"} else f"{text}+"

    return structs.replace(of, value=lambda row: of.value(row) if is_known(row) else None, cell=cell)


def _no_victim(row: NodeRow) -> str:
    return UNKNOWN if row.memory.pods and not row.windows else NONE


def _no_threshold(row: NodeRow) -> str:
    return NONE if row.configured else UNKNOWN


def _bounded(of: NodeColumn) -> NodeColumn:
    """Return a column of distances that marks upper bounds."""

    def cell(row: NodeRow, now: datetime) -> str:
        return f"{AT_MOST if row.is_bound and (of.value(row) or 0) > 0 else ''}{of.cell(row, now)}"

    return structs.replace(of, cell=cell)


def _victim_name(row: NodeRow) -> str | None:
    return None if row.victim is None else "/".join(row.victim.key)


def _victim_text(row: NodeRow) -> str:
    if row.victim is None:
        return _no_victim(row)
    others = ""
    if row.victim.others:
        others = f", or {row.victim.others} more"
    elif row.victim.rival is not None and row.victim.rival != row.victim.key:
        others = f", or {full_name(*row.victim.rival)}"
    return f"{escape('/'.join(row.victim.key))} {CLASSES[row.victim.qos].letter}{others}"


def _death_text(row: NodeRow) -> str:
    death = row.death
    if death is None:
        return _no_victim(row)
    when = ", ".join(filter(None, (killer_words(death), eta(death.seconds))))
    return f"{distance(death)} {victim(death)}, {when}{death_condition(death, names_other=False)}"


_COLUMNS: Final[tuple[NodeColumn, ...]] = (
    column("node", lambda row: row.name, "the node's name", width=12, names=("name",)),
    column("pods", lambda row: row.memory.pods, "how many of its pods have not ended", NUMBER),
    _used_by(QosClass.GUARANTEED, "memory in use (working set; + where some pods' usage is unknown)"),
    _used_by(QosClass.BURSTABLE, "memory in use"),
    _used_by(QosClass.BEST_EFFORT, "memory in use"),
    _at_least(
        column(
            "used",
            lambda row: row.used_bytes,
            "memory in use, as kubectl top nodes shows it; of pods alone where OWN is unknown",
            BYTES,
            wide=1,
            names=("memory", "mem", "usage"),
        ),
        lambda row: row.is_used_known,
    ),
    column(
        "own", lambda row: row.own, "memory that the node uses outside of its pods", BYTES, needs=Needs.VALUES
    ),
    column("capacity", lambda row: row.capacity, "the machine's memory", BYTES, wide=1),
    _at_least(
        column(
            "used_percent",
            lambda row: row.used_percent,
            "memory in use, of what is allocatable, as kubectl top nodes shows it",
            PERCENT,
            cell=lambda row: UNKNOWN if row.used_percent is None else f"{int(row.used_percent)}%",
            header="%USED",
        ),
        lambda row: row.is_used_known,
    ),
    column("requests", lambda row: row.memory.requests_bytes, "memory requests of all pods", BYTES, wide=1),
    column(
        "allocatable",
        lambda row: row.allocatable,
        "what pods can request in total",
        BYTES,
        needs=Needs.VALUES,
    ),
    column(
        "requests_percent",
        lambda row: percent(row.memory.requests_bytes, row.allocatable),
        "requests, of what is allocatable",
        PERCENT,
        header="%REQ",
    ),
    column("limits", lambda row: row.memory.limits_bytes, "memory limits of all pods", BYTES, wide=1),
    _share(
        "limits_percent",
        lambda row: percent(row.memory.limits_bytes, row.capacity),
        "limits, of the capacity; + where some containers have none",
        header="%LIM",
    ),
    column(
        "unlimited",
        lambda row: row.memory.unlimited_pods,
        "how many pods have a container without a memory limit",
        NUMBER,
        field="unlimitedPods",
        wide=1,
    ),
    column(
        "worst",
        lambda row: row.memory.worst_bytes,
        "memory in use if every container with a limit reaches it and the others stay as they are",
        BYTES,
        wide=1,
    ),
    _share(
        "worst_percent",
        lambda row: row.worst_percent,
        "that worst case, of the capacity; + where some containers have no limit",
        header="%WORST",
    ),
    column(
        "eviction",
        lambda row: row.eviction,
        "the hard threshold of memory.available, below which the kubelet evicts pods",
        BYTES,
        field="evictionHardBytes",
        empty=lambda row: NONE if row.capacity else UNKNOWN,
        wide=1,
    ),
    column(
        "to_eviction",
        lambda row: row.nearest_eviction,
        "how much more memory may be used until the nearer of the hard and the soft threshold; below zero the"
        " kubelet evicts, by the soft one after its grace period",
        BYTES,
        empty=lambda row: NONE if row.eviction is None and row.capacity else UNKNOWN,
        ascending=True,
        wide=1,
    ),
    column(
        "soft_eviction",
        lambda row: row.soft_eviction,
        "the soft threshold, which must be exceeded for some time",
        BYTES,
        field="evictionSoftBytes",
        empty=_no_threshold,
        header="SOFT",
        wide=1,
    ),
    column(
        "to_soft_eviction",
        lambda row: row.to_soft_eviction,
        "how much more memory may be used before the soft threshold",
        BYTES,
        empty=lambda row: _no_threshold(row) if row.soft_eviction is None else UNKNOWN,
        ascending=True,
        header="TO_SOFT",
        needs=Needs.VALUES,
    ),
    column(
        "eviction_configured",
        lambda row: row.configured,
        "whether the thresholds are the kubelet's own; if not, the default is assumed",
        cell=lambda row: "yes" if row.configured else "no",
        sort_key=lambda row: not row.configured,
        header="CONFIGURED",
        needs=Needs.VALUES,
    ),
    column(
        "pressure",
        lambda row: None if row.bad_conditions is None else list(row.bad_conditions),
        "memory, disk or pids as the node itself reports it, or not-ready",
        cell=lambda row: UNKNOWN if row.bad_conditions is None else ",".join(row.bad_conditions) or NONE,
        sort_key=worst_node_first,
    ),
    *PSI_COLUMNS,
    column(
        "victim_score",
        lambda row: row.victim and row.victim.oom_score,
        "its oom_score",
        NUMBER,
        field="victimOOMScore",
        width=8,
        empty=_no_victim,
        header="OOM_SCORE",
        wide=1,
    ),
    column(
        "victim_qos",
        lambda row: row.victim and row.victim.qos.value,
        "its class",
        field="victimQOSClass",
        width=8,
        empty=_no_victim,
        sort_key=lambda row: (row.victim is None, row.victim and row.victim.qos.value),
        header="QOS",
        needs=Needs.VALUES,
    ),
    column(
        "victim_others",
        lambda row: row.victim and row.victim.others,
        "how many pods share its rank, so that one of them may be killed instead",
        NUMBER,
        width=8,
        empty=_no_victim,
        header="OTHERS",
        needs=Needs.VALUES,
    ),
    column(
        "kernel_victim",
        _victim_name,
        "the pod that the kernel kills first when the node runs out of memory, and the letter of its class",
        width=24,
        cell=_victim_text,
        sort_key=lambda row: (row.victim is None, _victim_name(row) or "", row.name),
        wide=1,
        names=("victim",),
    ),
    column(
        "death_in",
        lambda row: row.death and row.death.distance_bytes,
        "how much more memory until the next death, of its container, its pod, all pods or the node",
        BYTES,
        field="nextDeathInBytes",
        cell=lambda row: _no_victim(row) if row.death is None else distance(row.death),
        ascending=True,
        header="IN",
        needs=Needs.VALUES,
    ),
    column(
        "death_by",
        lambda row: row.death and killed_by(row.death),
        "which limit or which killer that is",
        field="nextDeathBy",
        empty=_no_victim,
        sort_key=lambda row: (row.death is None, row.death and killed_by(row.death)),
        header="BY",
        needs=Needs.VALUES,
    ),
    column(
        "next_death",
        lambda row: row.death and victim(row.death),
        "who dies next on the node, by whom, and how much more memory that takes",
        width=24,
        cell=_death_text,
        sort_key=lambda row: (row.death is None, row.death and row.death.urgency, row.name),
        names=("death",),
    ),
)

NODE_COLUMNS: Final = {node_column.key: node_column for node_column in _COLUMNS}
NODE_COLUMNS.update({key: _bounded(NODE_COLUMNS[key]) for key in ("to_eviction", "to_soft_eviction")})
DEFAULT_KEYS: Final = tuple(key for key, node_column in NODE_COLUMNS.items() if node_column.is_default)
WIDE_KEYS: Final = tuple(
    key
    for key, node_column in NODE_COLUMNS.items()
    if node_column.is_default or node_column.wide or node_column.needs is Needs.PSI
)
_HIDDEN: Final = "guaranteed burstable best_effort pods limits_percent requests_percent pressure"
HIDDEN_FIRST: Final = tuple(_HIDDEN.split())
EVICTION_KEYS: Final = frozenset(key for key in NODE_COLUMNS if "eviction" in key)
"""The columns that depend on the kubelet's configuration."""

FILLS: Final = {QosClass.GUARANTEED: "█", QosClass.BURSTABLE: "▓", QosClass.BEST_EFFORT: "░"}
FREE: Final = " "
RESERVED: Final = "·"
"""Capacity that is not allocatable: for the system, the kubelet, and the eviction threshold."""


class BarSegment(NamedTuple):
    """Adjacent cells of a bar with one meaning; `qos` is None for memory that no pod uses."""

    text: str
    qos: QosClass | None
    is_letter: bool = False


def memory_bar(row: NodeRow, cells: int) -> tuple[BarSegment, ...]:
    """Draw the capacity as a bar of `cells`; empty if it or the usage is unknown. Rounded segments add up."""
    used, capacity = row.memory.used, row.capacity
    if used is None or not capacity:
        return ()
    edges = [0]
    for qos in FILLS:
        edges.append(edges[-1] + max(used[qos], 0))
    ends = [min(round(cells * edge / capacity), cells) for edge in edges]
    segments = []
    for qos, (begin, end) in zip(FILLS, pairwise(ends), strict=True):
        fill, middle = FILLS[qos] * (end - begin), (end - begin) // 2
        if len(fill) > 2:
            parts = fill[:middle], CLASSES[qos].letter, fill[middle + 1 :]
            segments += [BarSegment(text, qos, text.isalpha()) for text in parts]
        else:
            segments.append(BarSegment(fill, qos))
    rest = cells - ends[-1]
    reserved = 0
    if row.allocatable is not None:
        reserved = min(round(cells * max(capacity - row.allocatable, 0) / capacity), rest)
    segments += [BarSegment(FREE * (rest - reserved), None), BarSegment(RESERVED * reserved, None)]
    return tuple(segment for segment in segments if segment.text)


def memory_ticks(row: NodeRow, cells: int) -> str:
    """Draw marks below a memory bar: where the kubelet evicts, and where allocatable memory ends."""
    if not row.capacity:
        return ""
    ends = {"allocatable": row.allocatable}
    if row.eviction is not None:
        ends["eviction"] = row.capacity - row.eviction
        if row.memory.used_bytes is not None and row.to_eviction is not None:
            ends["eviction"] = max(row.memory.used_bytes + row.to_eviction, 0)
    ticks = sorted(
        (min(cells * end // row.capacity, cells - 1), f"{name} {binary(end)}")
        for name, end in ends.items()
        if end
    )
    if not ticks:
        return ""
    marks = [" "] * cells
    for place, _ in ticks:
        marks[place] = "▲"
    names = ", ".join(name for _, name in ticks)
    first = ticks[0][0]
    return f"{names} ".rjust(first) + "".join(marks[first:]) if len(names) < first else "".join(marks)


GroupColumn = Column[GroupRow[Any]]
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
    """Sort by usage as a share of requests; usage without requests comes first."""
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
    column("oom_score", lambda row: row.worst.score, "/proc/PID/oom_score of that pod", NUMBER, wide=1),
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
    column("victims", lambda row: row.victims, "how many pods are their node's next victim", NUMBER, wide=1),
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
        wide=1,
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
        wide=1,
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
GROUPS_HIDDEN_FIRST: Final = ("restarts", "node", "qos", "worst", "kind", "request", "limit")


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
        _NOTHING
        if row.next_death_node is None
        else NODE_COLUMNS["next_death"].cell(row.next_death_node, NO_AGES)
    )


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
    column(
        "used_percent",
        lambda row: row.worst and row.worst.used_percent,
        "its memory in use",
        PERCENT,
        header="%USED",
    ),
    column("kills", lambda row: row.kills, "OOM kills and evictions of the last day", NUMBER, empty=_NOTHING),
    _updated(),
    column("error", lambda row: row.error and str(row.error), "why there is nothing newer"),
    column(
        "next_death",
        lambda row: row.next_death_node and NODE_COLUMNS["next_death"].value(row.next_death_node),
        "who dies next, by whom, and how much more memory that takes; or why there is no answer",
        width=24,
        cell=death_text,
        sort_key=lambda row: (
            row.next_death_node is None,
            row.next_death_node and NODE_COLUMNS["next_death"].sort_key(row.next_death_node),
        ),
    ),
)
CLUSTER_COLUMNS: Final = {field.key: field for field in _OF_CLUSTERS}
