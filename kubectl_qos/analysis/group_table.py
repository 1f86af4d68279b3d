"""Rows of nodes, workloads, namespaces and clusters: their sums, their worst pod or node, and next deaths."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import is_
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kubectl_qos.analysis.pod_table import FILTER_TEXT, PodRow, is_at_risk, kill_order
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.kubelet import MEMORY_AVAILABLE, NodeSetup, Origin
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import NO_PSI, PodKey, PsiData, memory_psi
from kubectl_qos.qos.eviction import (
    Due,
    NodeMemory,
    evictable_capacity,
    eviction_due,
    is_short,
    memory_threshold,
    node_memory,
    schedulable_bytes,
    to_hard_eviction,
    to_soft_eviction,
)
from kubectl_qos.qos.killers import BY_RANK
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import Basis, ProfileCache, Profiles, Ranking, rank_node
from kubectl_qos.qos.simulation.next_death import NextDeath, first_deaths
from kubectl_qos.qos.simulation.node_state import NodeState, growth_on, ranked_node_state

_PRESSURES: Final = {"MemoryPressure": "memory", "DiskPressure": "disk", "PIDPressure": "pids"}


class Victim(NamedTuple):
    """The pod of rank 1, first by name."""

    key: PodKey
    qos: QosClass
    oom_score: int | None
    others: int
    """Other pods of rank 1."""
    rival: PodKey | None = None
    """Dies instead unless one process of the victim is large enough."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Values of a node, in bytes; None: unknown."""

    name: str
    memory: NodeMemory
    capacity: int | None
    allocatable: int | None
    """What pods can request."""
    victim: Victim | None
    """Pod that the kernel kills first."""
    death: NextDeath | None
    """Nearest death by any killer."""
    bad_conditions: tuple[str, ...] | None
    eviction: int | None
    """Hard threshold of memory.available; None also if there is none."""
    to_eviction: int | None
    """Growth until the hard threshold."""
    soft_eviction: int | None
    to_soft_eviction: int | None
    configured: bool
    """Whether the kubelet's configuration is known."""
    windows: bool = False
    psi: PsiData = NO_PSI
    """Pressure of memory, `some`."""
    whole: int | None = None
    """Usage of the whole node."""
    own: int | None = None
    """Usage outside pods."""
    is_bound: bool = False
    """Whether the distances to eviction are upper bounds."""

    @property
    def own_words(self) -> tuple[str, ...]:
        """Names of the node and of its next victim."""
        has_victim = self.death is not None and self.death.has_victim
        return (self.name, "/".join(self.death.key)) if self.death and has_victim else (self.name,)

    @property
    def common_words(self) -> tuple[str, ...]:
        """Words of its bad conditions."""
        return self.bad_conditions or ()

    words = FILTER_TEXT

    def used(self, qos: QosClass) -> int | None:
        """Return the usage of the pods of a class, in bytes."""
        return None if self.memory.used is None else self.memory.used[qos]

    @property
    def nearest_eviction(self) -> int | None:
        """Growth until the nearer of the hard and the soft threshold, None without any."""
        distances = (self.to_eviction, self.to_soft_eviction)
        return min((distance for distance in distances if distance is not None), default=None)

    @property
    def used_bytes(self) -> int | None:
        """Usage as in kubectl top nodes, or of its pods if only that is known."""
        return self.whole or self.memory.used_bytes

    @property
    def is_used_known(self) -> bool:
        """Whether `used_bytes` is complete."""
        return bool(self.whole) or not any(self.memory.unmeasured.values())

    @property
    def used_percent(self) -> float | None:
        """Usage as a share of allocatable, as in kubectl top nodes."""
        return percent(self.used_bytes, self.allocatable or self.capacity)

    @property
    def worst_percent(self) -> float | None:
        """Usage of pods at their limits, as a share of the capacity."""
        return percent(self.memory.worst_bytes, self.capacity)


def percent(part: int | None, whole: int | None) -> float | None:
    """Return a part in percent, None if part or whole is unknown."""
    return None if part is None or not whole else 100 * part / whole


class OrderBasis(NamedTuple):
    """Inputs to a node's kill order."""

    setup: NodeSetup
    basis: Basis
    without_usage: int


class CachedRow(NamedTuple):
    """A node's row with the objects it was computed from; `order` is None for a node without pods."""

    row: NodeRow
    order: OrderBasis | None
    made_from: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Rows in the order of `worst_node_first`, and rows by name for the next snapshot."""

    rows: tuple[NodeRow, ...]
    nodes: Mapping[str, CachedRow] = field(default_factory=dict)


def build_node_rows(
    snapshot: Snapshot, shown: Callable[[str, NodeObject | None], bool], before: NodeRows | None = None
) -> NodeRows:
    """Return a row for each node to show; unchanged rows are the objects of `before`."""
    by_node = snapshot.by_node()
    cached = before.nodes if before is not None else {}
    nodes: dict[str, CachedRow] = {}
    profiles = ProfileCache()
    for name in {**snapshot.nodes, **by_node}:
        node = snapshot.nodes.get(name)
        if not name or not shown(name, node):
            continue
        made_from = (by_node.get(name), node, snapshot.kubelets.get(name), snapshot.usage)
        row = cached.get(name)
        if row is None or not all(map(is_, row.made_from, made_from)):
            setup = snapshot.setup(name)
            row = _build_row(name, snapshot, setup, profiles.for_node(setup), made_from)
        nodes[name] = row
    rows = sorted((cached_row.row for cached_row in nodes.values()), key=worst_node_first)
    return NodeRows(tuple(rows), nodes)


def build_node_row(snapshot: Snapshot, name: str) -> NodeRow:
    """Return the row of one node."""
    setup = snapshot.setup(name)
    return _build_row(name, snapshot, setup, ProfileCache().for_node(setup), ()).row


def _build_row(
    name: str, snapshot: Snapshot, setup: NodeSetup, profiles: Profiles, made_from: tuple[object, ...]
) -> CachedRow:
    pods: Sequence[Pod] = snapshot.by_node().get(name, ())
    running = [running_pod(pod, setup.release) for pod in pods]
    ranking = rank_node(running, setup.node, setup.release, snapshot.usage, profiles)
    memory = node_memory(ranking, setup.release)
    node, kubelet, capacity = snapshot.nodes.get(name), setup.kubelet, setup.node.memory_capacity_bytes
    whole, own, now = snapshot.node_usage.get(name), snapshot.own_bytes(name), snapshot.used_bytes(name)
    due = eviction_due(setup, ((row.pod, row.usage) for row in ranking.pods), own)
    used, evictable = memory.used_bytes, evictable_capacity(setup) or 0
    state = ranked_state(snapshot, setup, ranking)
    deaths = first_deaths(state, (BY_RANK,)) if state is not None else []
    row = NodeRow(
        name=name,
        memory=memory,
        capacity=capacity,
        allocatable=schedulable_bytes(setup.node),
        victim=_victim(ranking, deaths),
        death=deaths[0] if deaths else None,
        bad_conditions=bad_conditions(node) if node is not None else None,
        eviction=memory_threshold(kubelet.eviction_hard.get(MEMORY_AVAILABLE), evictable),
        to_eviction=to_hard_eviction(setup, used, now, due) if used is not None else None,
        soft_eviction=memory_threshold(kubelet.eviction_soft.get(MEMORY_AVAILABLE), evictable),
        to_soft_eviction=to_soft_eviction(setup, used, now, due) if used is not None else None,
        configured=kubelet.origin("eviction_hard") is not Origin.ASSUMED,
        windows=setup.node.is_windows,
        psi=memory_psi(snapshot.pressure.get(name)),
        whole=whole,
        own=own,
        is_bound=own is None or ranking.without_usage > 0,
    )
    order = OrderBasis(setup, ranking.basis, ranking.without_usage) if ranking.pods else None
    return CachedRow(row, order, made_from)


def ranked_state(snapshot: Snapshot, setup: NodeSetup, ranking: Ranking) -> NodeState | None:
    """Return a node with its growth; None if nobody kills there (Windows)."""
    name = setup.node.name
    try:
        state = ranked_node_state(ranking, setup, own_bytes=snapshot.own_bytes(name))
    except InputError:
        return None
    return replace(state, growth=growth_on(snapshot, name))


def worst_node_first(row: NodeRow) -> tuple[object, ...]:
    """Return the default sort key: nodes with bad conditions first, then by usage; unknown usage is last."""
    used = row.used_percent
    requests = percent(row.memory.requests_bytes, row.allocatable) if used is None else 0
    return not row.bad_conditions, used is None, -(used or 0), -(requests or 0), row.name


def bad_conditions(node: NodeObject) -> tuple[str, ...]:
    """Return the words of a node's bad conditions: its pressures, and `not-ready`."""
    words = []
    for condition in node.status.conditions or ():
        if condition.type in _PRESSURES and condition.status == "True":
            words.append(_PRESSURES[condition.type])
        elif condition.type == "Ready" and condition.status != "True":
            words.append("not-ready")
    return tuple(words)


def is_in_danger(due: Due, to_eviction: int | None, used: int | None, capacity: int | None) -> bool:
    """Return whether a node's kubelet evicts now, or less than 5 % of its bytes is left."""
    if due is Due.NOW:
        return True
    if used is None or not capacity:
        return False
    return is_short(capacity - used if to_eviction is None else to_eviction, capacity)


def _victim(ranking: Ranking, deaths: Iterable[NextDeath]) -> Victim | None:
    first = [row for row in ranking.pods if row.rank == 1]
    if not first or first[0].worst is None or first[0].worst.usage is None:
        return None
    row, score = first[0], first[0].worst.oom_score
    key = row.pod.key
    rivals = (death.rival for death in deaths if death.killer.has_ranks and death.key == key)
    rival = next(filter(None, rivals), None)
    return Victim(key, row.qos, score, len(first) - 1, rival.key if rival is not None else None)


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
    def name(self) -> str:
        """The namespace, or `shop/api` for a workload."""
        return self.own_words[0]

    @property
    def request_percent(self) -> float | None:
        """Memory in use as a share of the requests."""
        return 100 * self.memory / self.request if self.memory is not None and self.request else None

    @property
    def common_words(self) -> tuple[str, ...]:
        """Classes of its pods."""
        return tuple(qos.value for qos, _ in self.classes)

    words = FILTER_TEXT


def namespace_rows(rows: Iterable[PodRow]) -> list[GroupRow[str]]:
    """Return a row for each namespace with pods, next victims first."""
    groups = grouped(rows, lambda row: row.namespace)
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

    words = FILTER_TEXT


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
    releases = [text for text in stated if text.startswith(("v1.", "1."))]
    ordered = sorted(releases, key=lambda text: [*map(int, re.findall(r"\d+", text))])
    if len(ordered) < 2:
        return "".join(ordered)
    oldest, newest = (version.rpartition(".")[0] for version in (ordered[0], ordered[-1]))
    return ordered[-1] if oldest == newest else f"{oldest} to {newest}"


def worst_first(row: ClusterRow) -> tuple[object, ...]:
    """Return the default sort key: order of the worst nodes, clusters without an answer last."""
    return (False, *worst_node_first(row.worst), row.name) if row.worst is not None else (True, row.name)
