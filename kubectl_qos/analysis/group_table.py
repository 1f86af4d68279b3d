"""Rows of workloads, namespaces and clusters: sums over their pods, and the worst pod or node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kubectl_qos.analysis.node_table import NodeRow, build_node_rows, worst_node_first
from kubectl_qos.analysis.pod_table import PodRow, is_at_risk, kill_order
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.qos_class import QosClass

if TYPE_CHECKING:
    from kubectl_qos.qos.kills.report import KernelLog

KeyT = TypeVar("KeyT", bound=Hashable)
KILLS_SINCE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class GroupRow(Generic[KeyT]):
    """A group of pods; amounts in bytes, None if unknown for all pods.

    Counts and amounts are those of pods that have not ended, except `restarts` and `oom_kills`.
    """

    key: KeyT
    pods: int
    classes: tuple[tuple[QosClass, int], ...]
    worst: PodRow
    """First pod in kill order."""
    victims: int
    """Next victims of their nodes."""
    at_risk: int
    memory: int | None
    request: int | None
    limit: int | None
    """Sum of the existing limits."""
    unlimited: int
    """Pods with a container without a limit."""
    restarts: int
    oom_kills: int
    own_words: tuple[str, ...]

    @property
    def request_percent(self) -> float | None:
        """Memory in use, of the requests."""
        return 100 * self.memory / self.request if self.memory is not None and self.request else None

    @property
    def common_words(self) -> tuple[str, ...]:
        """Classes of its pods."""
        return tuple(qos.value for qos, _ in self.classes)

    @property
    def words(self) -> str:
        """Filter text, in lower case."""
        return " ".join((*self.own_words, *self.common_words)).casefold()


def namespace_rows(rows: Iterable[PodRow]) -> list[GroupRow[str]]:
    """Return a row for each namespace with pods, next victims first."""
    groups = grouped(rows, lambda row: row.pod.metadata.namespace)
    group_rows = [group_row(name, pods, (name,)) for name, pods in groups.items()]
    return sorted(group_rows, key=lambda row: rank_order(row.worst))


def workload_rows(rows: Iterable[PodRow]) -> list[GroupRow[Workload]]:
    """Return a row for each workload with pods, next victims first."""
    group_rows = []
    for workload, pods in grouped(rows, lambda row: find_workload(row.pod)).items():
        kind, namespace, name = workload
        group_rows.append(group_row(workload, pods, (f"{namespace}/{name}", name, f"{kind}/{name}")))
    return sorted(group_rows, key=lambda row: rank_order(row.worst))


def grouped(rows: Iterable[PodRow], key_of: Callable[[PodRow], KeyT]) -> dict[KeyT, list[PodRow]]:
    """Group rows by a key, in order."""
    groups: dict[KeyT, list[PodRow]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    return groups


def group_row(key: KeyT, rows: list[PodRow], own_words: tuple[str, ...]) -> GroupRow[KeyT]:
    """Return the row of a group of at least one pod."""
    living = [row for row in rows if not row.pod.is_terminal]
    classes = [row.qos for row in living]
    return GroupRow(
        key=key,
        pods=len(living),
        classes=tuple((qos, classes.count(qos)) for qos in QosClass if qos in classes),
        worst=min(rows, key=rank_order),
        victims=sum(1 for row in rows if row.is_next_victim),
        at_risk=sum(map(is_at_risk, rows)),
        memory=known_sum(row.memory for row in living),
        request=known_sum(row.request for row in living),
        limit=known_sum(row.limit for row in living),
        unlimited=sum(row.limit is None for row in living),
        restarts=sum(row.restarts for row in rows),
        oom_kills=sum(row.oom_kills for row in rows),
        own_words=own_words,
    )


def rank_order(row: PodRow) -> tuple[object, ...]:
    """Return a sort key: next victims of any node first, pods without a rank last."""
    return row.rank is None, row.rank or 0, kill_order(row)


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the known amounts, None if there are none."""
    present = [amount for amount in amounts if amount is not None]
    return sum(present) if present else None


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """Summary of a cluster; None: unknown, or not read yet if `taken` is None too."""

    name: str
    is_open: bool = False
    """The UI follows this cluster."""
    version: str = ""
    nodes: int | None = None
    ready: int | None = None
    worst: NodeRow | None = None
    """First node with a bad condition, else the fullest."""
    next_death_node: NodeRow | None = None
    """Node of the nearest death."""
    kills: int | None = None
    """Kills of the last day."""
    taken: datetime | None = None
    error: QosError | None = None
    """Why the data is not newer."""

    @property
    def has_bad_node(self) -> bool:
        """Whether a node reports a bad condition."""
        return self.worst is not None and bool(self.worst.bad_conditions)

    @property
    def own_words(self) -> tuple[str, ...]:
        """Names of the context and of its worst node."""
        return (self.name,) if self.worst is None else (self.name, self.worst.name)

    common_words = ()
    """Words that several rows share: none."""

    @property
    def words(self) -> str:
        """Filter text, in lower case."""
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
    """Return the row of a cluster; `now` is on the cluster's clock, `taken` on the local one."""
    # Other tables need no kills.
    from kubectl_qos.qos.kills.analyze import find_kills, is_since

    rows = build_node_rows(snapshot, lambda *_: True).rows
    next_deaths = [(row.death.urgency, row.name, row) for row in rows if row.death is not None]
    kills = find_kills(snapshot, events, logs, outside_pods=False)
    return ClusterRow(
        name,
        version=server_version(snapshot),
        nodes=len(rows),
        ready=sum(row.bad_conditions is not None and "not-ready" not in row.bad_conditions for row in rows),
        worst=rows[0] if rows else None,
        next_death_node=min(next_deaths)[2] if next_deaths else None,
        kills=sum(is_since(kill, now - KILLS_SINCE) for kill in kills),
        taken=taken,
    )


def server_version(snapshot: Snapshot) -> str:
    """Return the server's version, else the kubelets' oldest and newest."""
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
    """Return the default sort key: order of the worst nodes, clusters without an answer last."""
    return (False, *worst_node_first(row.worst), row.name) if row.worst is not None else (True, row.name)
