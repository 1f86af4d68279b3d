"""The columns of pods and containers, for the command line, the UI and CSV."""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from kubectl_qos.analysis.pod_table import PodRow, kill_order, row_risk
from kubectl_qos.k8s.usage import UsageOrigin
from kubectl_qos.present.format import NONE, UNKNOWN, escape, eta, mebibytes, psi_text
from kubectl_qos.present.output import BYTES, NUMBER, PERCENT, Align, Column, ColumnType, Needs, column
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import WORDS, Flag

PodColumn = Column[PodRow]
QOS_CHOICES: Final = tuple(qos.value for qos in QosClass)


def rank_text(rank: int | None, *, tied: bool) -> str:
    """Return the rank; `=` if it is shared, `-` without one."""
    if rank is None:
        return "-"
    return f"{rank}=" if tied else str(rank)


def _limit_percent_text(row: PodRow) -> str:
    if row.limit_percent is not None:
        return f"{row.limit_percent:.0f}% {escape(row.limit_container)}".rstrip()
    return UNKNOWN if row.limit is not None else NONE


def _restarts_text(row: Any) -> str:
    if not row.oom_kills:
        return str(row.restarts)
    several = f"{row.oom_kills} " if row.oom_kills > 1 else ""
    return f"{row.restarts} ({several}last OOM)"


RESTARTS: Final[Column[Any]] = column(
    "restarts",
    lambda row: row.restarts,
    "container restarts, and how many containers last ended as OOMKilled; earlier ends are unknown",
    NUMBER,
    align=Align.LEFT,
    width=9,
    cell=_restarts_text,
)
"""For rows with `restarts` and `oom_kills`, the number of containers that last ended as OOMKilled."""

PSI_COLUMNS: Final[tuple[Column[Any], ...]] = tuple(
    column(
        f"psi{seconds}",
        value,
        f"the share of the last {seconds} s in which some tasks waited for memory (--usage=summary)",
        PERCENT,
        field=f"psiSome{seconds}Percent",
        cell=lambda row, value=value: psi_text(value(row)),  # type: ignore[misc]
        needs=Needs.PSI,
    )
    for seconds, value in ((10, attrgetter("psi.avg10")), (60, attrgetter("psi.avg60")))
)
"""For rows with `psi`: pressure stall information of memory."""


def psi_notes(shown: Iterable[str], rows: Iterable[Any], origin: UsageOrigin) -> Iterator[str]:
    """Explain the PSI columns that are shown, and why they have no values."""
    if all(psi.key not in shown for psi in PSI_COLUMNS):
        return
    if origin is UsageOrigin.METRICS_API:
        yield "PSI10 and PSI60: the metrics API has no pressure; use --usage=summary or --usage=prometheus"
    elif all(row.psi.avg60 is None for row in rows):
        yield f"PSI10 and PSI60: {origin} has no pressure; {WITH_PSI}"
    elif origin is UsageOrigin.PROMETHEUS:
        yield STORED_PSI


WITH_PSI: Final = "kubelets report it from 1.34 on (KubeletPSI), on cgroup v2 with a kernel that measures PSI"
STORED_PSI: Final = (
    "PSI60 is the mean of 2 minutes in Prometheus; PSI10 is unknown: stores are scraped too rarely for it"
)

ALL_COLUMNS: Final[tuple[PodColumn, ...]] = (
    column(
        "rank",
        lambda row: row.rank,
        "the kernel's kill order on the node, 1 is next; N= is shared, - has no running process",
        NUMBER,
        align=Align.LEFT,
        width=5,
        cell=lambda row: "~" if row.is_provisional else rank_text(row.rank, tied=row.tied),
        sort_key=kill_order,
    ),
    column("namespace", lambda row: row.namespace, "the pod's namespace", width=11, names=("ns",)),
    column("pod", lambda row: row.name, "the pod's name", width=24, names=("name",)),
    column("container", lambda row: row.container, "the container's name", width=12, needs=Needs.CONTAINERS),
    column("node", lambda row: row.node, "the pod's node", width=12, wide=3),
    column(
        "qos",
        lambda row: row.qos.value,
        "the class that the node acts on",
        field="qosClass",
        width=10,
        sort_key=lambda row: -QOS_CHOICES.index(row.qos.value),
        choices=QOS_CHOICES,
        names=("class",),
    ),
    column(
        "oom_score_adj",
        lambda row: row.adj,
        "oom_score_adj of the container with the highest oom_score",
        NUMBER,
        empty=lambda row: NONE if row.adj_range is None else "{}..{}".format(*row.adj_range),
        header="OOM_ADJ",
        names=("adj",),
    ),
    column(
        "oom_score",
        lambda row: row.score,
        "/proc/PID/oom_score of that container",
        NUMBER,
        empty=lambda row: NONE if row.windows else UNKNOWN,
        names=("score",),
    ),
    column("memory", lambda row: row.memory, "memory in use (working set)", BYTES, names=("mem", "usage")),
    column(
        "dies",
        lambda row: row.worst if row.rank is not None else None,
        "the container that the kernel kills when the pod's turn comes",
        field="dyingContainer",
        width=8,
        empty=NONE,
        sort_key=lambda row: (row.rank is None, row.worst),
        wide=1,
    ),
    column(
        "frees",
        lambda row: row.frees,
        "memory that its death frees: that container's alone",
        BYTES,
        field="freedBytes",
        empty=lambda row: NONE if row.rank is None else UNKNOWN,
        wide=2,
    ),
    column(
        "rss", lambda row: row.rss, "anonymous memory in use (--usage=summary)", BYTES, needs=Needs.SUMMARY
    ),
    column("swap", lambda row: row.swap, "swap in use (--usage=summary)", BYTES, needs=Needs.SUMMARY),
    *PSI_COLUMNS,
    column(
        "request",
        lambda row: row.request,
        "memory request of the whole pod, with the overhead of its RuntimeClass",
        BYTES,
        empty=NONE,
    ),
    column(
        "limit",
        lambda row: row.limit,
        "memory limit of the whole pod, with that overhead, if every container has one",
        BYTES,
        empty=NONE,
    ),
    column(
        "limit_percent",
        lambda row: row.limit_percent,
        "the highest usage of any container as a share of its own memory limit, and which of several it is",
        PERCENT,
        cell=_limit_percent_text,
        header="%LIMIT",
    ),
    column(
        "limit_container",
        lambda row: row.limit_container,
        "that container; none where the pod has only one, or the limit is that of the whole pod",
        needs=Needs.VALUES,
    ),
    RESTARTS,
    column(
        "priority",
        lambda row: row.pod.spec.priority or 0,
        "the pod's priority: it matters for eviction, not for the kernel",
        NUMBER,
        width=10,
        wide=4,
    ),
    column(
        "eviction",
        lambda row: row.eviction_rank,
        "the kubelet's eviction order under memory pressure on the node; it differs from RANK",
        NUMBER,
        field="evictionRank",
        empty=lambda row: UNKNOWN if row.is_evictable and not is_critical(row.pod) else "never",
        ascending=True,
        wide=5,
    ),
    column(
        "age",
        lambda row: row.pod.metadata.creation_timestamp,
        "time since the pod was created",
        ColumnType.TIME,
        field="creationTimestamp",
        width=6,
        sort_key=lambda row: row.pod.metadata.creation_timestamp or "~",
        wide=6,
    ),
    column(
        "risk",
        lambda row: row_risk(row).word,
        "none, low, medium (PRIORITY, OVER-REQUEST), high (NEAR-LIMIT) or next, the node's next victim",
        ColumnType.LEVEL,
        width=6,
        sort_key=lambda row: -row_risk(row),
        choices=WORDS,
        wide=7,
    ),
    column(
        "flags",
        lambda row: [flag.value for flag in row.flags],
        "warnings and special cases",
        width=14,
        cell=lambda row: " ".join(row.flags),
        sort_key=lambda row: (not row.flags, row.flags),
        choices=tuple(flag.value for flag in Flag),
    ),
)


HISTORY_COLUMNS: Final[tuple[PodColumn, ...]] = (
    column(
        "peak",
        lambda row: row.past.peak,
        "the most memory seen, of each container (Prometheus)",
        BYTES,
        needs=Needs.HISTORY,
    ),
    column(
        "p99",
        lambda row: row.past.p99,
        "the 99th percentile of memory (Prometheus)",
        BYTES,
        needs=Needs.HISTORY,
    ),
    column(
        "growth",
        lambda row: None if row.past.growth is None else round(row.past.growth * 3600),
        "growth per hour of memory that grows steadily (Prometheus)",
        NUMBER,
        field="growthBytesPerHour",
        cell=lambda row: f"+{mebibytes(round(row.past.growth * 3600))}/h" if row.past.growth else "-",
        needs=Needs.HISTORY,
    ),
    column(
        "eta",
        lambda row: None if row.past.eta is None else round(row.past.eta),
        "when the pod dies if memory keeps growing at that rate (Prometheus)",
        NUMBER,
        field="etaSeconds",
        cell=lambda row: eta(row.past.eta) or "-",
        ascending=True,
        needs=Needs.HISTORY,
    ),
)
BY_KEY: Final = {column.key: column for column in (*ALL_COLUMNS, *HISTORY_COLUMNS)}
DESIRED_COLUMNS: Final[tuple[PodColumn, ...]] = (
    column("desired_request", lambda row: row.desired[0], "the request of an unfinished resize", BYTES),
    column("desired_limit", lambda row: row.desired[1], "the limit of an unfinished resize", BYTES),
)
"""Only in JSON, YAML and CSV, which have every column."""
VALUE_COLUMNS: Final = (*ALL_COLUMNS, *HISTORY_COLUMNS, *DESIRED_COLUMNS)

DEFAULT_KEYS: Final = tuple(key for key, column in BY_KEY.items() if column.is_default)
_ADDED: Final = sorted((column for column in BY_KEY.values() if column.wide), key=attrgetter("wide"))
WIDE_KEYS: Final = (*DEFAULT_KEYS[:-1], *(column.key for column in _ADDED), *DEFAULT_KEYS[-1:])
"""The columns that -o wide adds come before FLAGS."""

_HIDDEN: Final = "swap rss growth p99 peak restarts request oom_score_adj limit qos oom_score node"
HIDDEN_FIRST: Final = tuple(_HIDDEN.split())


def keys_that_need(needs: Needs) -> list[str]:
    """Return the columns that are shown only if something is known."""
    return [key for key, column in BY_KEY.items() if column.needs is needs]
