"""A row for each cluster: what `top nodes`, `next` and `kills` find first in it, and how old that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kubectl_qos.analysis.node_table import NodeRow, build_node_rows, trouble_first
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.format import UNKNOWN, escape
from kubectl_qos.present.node_columns import NODE_COLUMNS
from kubectl_qos.present.output import NO_AGES, NUMBER, PERCENT, Column, ColumnType, column
from kubectl_qos.qos.kills.analyze import find_kills, is_since
from kubectl_qos.qos.kills.report import KernelLog

KILLS_SINCE: Final = timedelta(days=1)
_DEATH: Final = NODE_COLUMNS["next_death"]
_NOTHING: Final = "-"
"""What is known of a cluster that never answered."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """What is kept of a cluster; None is unknown, or not read yet where there is no `taken`.

    `worst` is the first node in trouble, else the fullest; `dying` the node of the nearest death. `kills` are
    those of the last day. `error` is why there is nothing newer. The UI follows the cluster that `is_open`.
    """

    name: str
    is_open: bool = False
    version: str = ""
    nodes: int | None = None
    ready: int | None = None
    worst: NodeRow | None = None
    dying: NodeRow | None = None
    kills: int | None = None
    taken: datetime | None = None
    error: QosError | None = None

    @property
    def is_in_trouble(self) -> bool:
        """Whether a node says that it is in trouble."""
        return self.worst is not None and bool(self.worst.troubles)

    @property
    def own_words(self) -> tuple[str, ...]:
        """What a filter finds: the names of the context and of its worst node."""
        return (self.name,) if self.worst is None else (self.name, self.worst.name)

    common_words = ()
    """Several rows have none of them in common."""

    @property
    def words(self) -> str:
        """Them in one line, in lower case."""
        return " ".join(self.own_words).casefold()


def cluster_row(
    name: str,
    snapshot: Snapshot,
    events: EventList,
    logs: Sequence[KernelLog] = (),
    *,
    now: datetime,
    taken: datetime,
) -> ClusterRow:
    """The row of a cluster: `now` by its own clock, `taken` by that which ages are counted to."""
    rows = build_node_rows(snapshot, lambda *_: True).rows
    dying = [(row.death.distance_bytes, row.name, row) for row in rows if row.death is not None]
    kills = find_kills(snapshot, events, logs, outside_pods=False)
    return ClusterRow(
        name,
        version=server_version(snapshot),
        nodes=len(rows),
        ready=sum(row.troubles is not None and "not-ready" not in row.troubles for row in rows),
        worst=rows[0] if rows else None,
        dying=min(dying)[2] if dying else None,
        kills=sum(is_since(kill, now - KILLS_SINCE) for kill in kills),
        taken=taken,
    )


def server_version(snapshot: Snapshot) -> str:
    """The server's version, else the kubelets' oldest and newest."""
    if snapshot.server_version:
        return f"v{snapshot.server_version.removeprefix('v')}"
    stated = {node.status.node_info.kubelet_version for node in snapshot.nodes.values()}
    ordered = sorted((text for text in stated if text.startswith(("v1.", "1."))), key=_as_numbers)
    if len(ordered) < 2:
        return "".join(ordered)
    oldest, newest = (version.rpartition(".")[0] for version in (ordered[0], ordered[-1]))
    return ordered[-1] if oldest == newest else f"{oldest} to {newest}"


def _as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.removeprefix("v").split("+")[0].split(".") if part.isdigit()]


def worst_first(row: ClusterRow) -> tuple[object, ...]:
    """The default sort key: by the worst node as nodes are, clusters without an answer last."""
    return (False, *trouble_first(row.worst), row.name) if row.worst is not None else (True, row.name)


def nodes_text(row: ClusterRow) -> str:
    """How many are ready, of how many: `5/6`."""
    return _NOTHING if row.nodes is None else f"{row.ready}/{row.nodes}"


def worst_text(row: ClusterRow) -> str:
    """The worst node with its memory in use and its troubles: `worker-2 81% !mem`."""
    worst = row.worst
    if worst is None:
        return _NOTHING
    percent = UNKNOWN if worst.used_percent is None else f"{worst.used_percent:.0f}%"
    return " ".join((escape(worst.name), percent, *(f"!{trouble[:3]}" for trouble in worst.troubles or ())))


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
    column("cluster", lambda row: row.name, "the context", width=12),
    column("version", lambda row: row.version or None, "the server's version", width=8, empty=_NOTHING),
    column("nodes", lambda row: row.nodes, "nodes that are ready, of all", NUMBER, cell=nodes_text),
    column(
        "worst_node",
        lambda row: row.worst and row.worst.name,
        "the first node in trouble, else the fullest: memory in use by pods, of the capacity",
        width=16,
        cell=worst_text,
        sort_key=worst_first,
    ),
    column("used_percent", _used_percent, "its memory in use", PERCENT, header="%USED"),
    column(
        "kills",
        lambda row: row.kills,
        "deaths of the last day that memory may explain",
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
CLUSTER_COLUMNS: Final = {one.key: one for one in _COLUMNS}
