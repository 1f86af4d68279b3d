"""A row for each cluster: what `top nodes`, `next` and `kills` find first in it, and how old that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubectl_qos.analysis.node_table import NodeRow, build_node_rows, trouble_first
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.kills.analyze import find_kills, is_since
from kubectl_qos.qos.kills.report import KernelLog

KILLS_SINCE: Final = timedelta(days=1)


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
    dying = [(row.death.urgency, row.name, row) for row in rows if row.death is not None]
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
