"""Rows of nodes: memory, eviction thresholds, bad conditions and next death."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.kubelet import MEMORY_AVAILABLE, NodeSetup, Origin
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey, memory_psi
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
from kubectl_qos.qos.simulation.node_state import growth_on, ranked_node_state

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
    soft_eviction: int | None
    to_soft_eviction: int | None
    configured: bool
    """Whether the kubelet's configuration is known."""
    windows: bool = False
    psi10: float | None = None
    """PSI some avg10 of memory, in percent."""
    psi60: float | None = None
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

    @property
    def words(self) -> str:
        """Filter text, in lower case."""
        return " ".join((*self.own_words, *self.common_words)).casefold()

    def used(self, qos: QosClass) -> int | None:
        """Return the usage of the pods of a class, in bytes."""
        return None if self.memory.used is None else self.memory.used[qos]

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
    """Inputs of a node's kill order."""

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
    """Rows, nodes in trouble first, and rows by name for the next snapshot."""

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
    whole, own = snapshot.node_usage.get(name), snapshot.own_bytes(name)
    due = eviction_due(setup, ((row.pod, row.usage) for row in ranking.pods), own)
    used, evictable = memory.used_bytes, evictable_capacity(setup) or 0
    psi, deaths = memory_psi(snapshot.pressure.get(name)), _first_deaths(setup, ranking, own, snapshot)
    row = NodeRow(
        name=name,
        memory=memory,
        capacity=capacity,
        allocatable=schedulable_bytes(setup.node),
        victim=_victim(ranking, deaths),
        death=deaths[0] if deaths else None,
        bad_conditions=bad_conditions(node) if node is not None else None,
        eviction=memory_threshold(kubelet.eviction_hard.get(MEMORY_AVAILABLE), evictable),
        to_eviction=to_hard_eviction(setup, used, whole, due) if used is not None else None,
        soft_eviction=memory_threshold(kubelet.eviction_soft.get(MEMORY_AVAILABLE), evictable),
        to_soft_eviction=to_soft_eviction(setup, used, whole, due) if used is not None else None,
        configured=kubelet.origin("eviction_hard") is not Origin.ASSUMED,
        windows=setup.node.is_windows,
        psi10=psi.avg10,
        psi60=psi.avg60,
        whole=whole,
        own=own,
        is_bound=own is None or ranking.without_usage > 0,
    )
    order = OrderBasis(setup, ranking.basis, ranking.without_usage) if ranking.pods else None
    return CachedRow(row, order, made_from)


def _first_deaths(
    setup: NodeSetup, ranking: Ranking, own_bytes: int | None, snapshot: Snapshot
) -> list[NextDeath]:
    try:
        state = ranked_node_state(ranking, setup, own_bytes=own_bytes)
    except InputError:
        return []
    return first_deaths(replace(state, growth=growth_on(snapshot, setup.node.name)), (BY_RANK,))


def worst_node_first(row: NodeRow) -> tuple[object, ...]:
    """Return the default sort key: nodes with bad conditions, the fullest, then unknown usage by requests."""
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
