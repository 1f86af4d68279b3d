"""One row per node: values only, in the units that columns print. The nodes' side of present/rows.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Final, NamedTuple

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import binary
from kubectl_qos.present.notes import ranking_notes
from kubectl_qos.qos.eviction import (
    MEMORY_AVAILABLE,
    memory_threshold,
    to_hard_eviction,
    to_soft_eviction,
)
from kubectl_qos.qos.node_memory import NodeMemory, node_memory, schedulable_bytes
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import Basis, Profiles, Ranking, rank_node

PRESSURES: Final = {"MemoryPressure": "memory", "DiskPressure": "disk", "PIDPressure": "pids"}
NOT_READY: Final = "not-ready"


class Victim(NamedTuple):
    """The pod of rank 1, the first by name of those that share it; `others` is how many do."""

    key: PodKey
    qos: QosClass
    oom_score: int | None
    others: int


@dataclass(frozen=True, slots=True)
class NodeRow:
    """What the tables show of a node. Bytes are bytes; None is not known.

    `allocatable` is what requests are counted against. `eviction` and `soft_eviction` are the kubelet's
    thresholds of memory.available, None also where there is none: `configured` says whether its
    configuration is known. `troubles` are the node's own words, None of a node that is not known.
    """

    name: str
    memory: NodeMemory
    capacity: int | None
    allocatable: int | None
    victim: Victim | None
    troubles: tuple[str, ...] | None
    eviction: int | None
    to_eviction: int | None
    soft_eviction: int | None
    to_soft_eviction: int | None
    configured: bool

    @property
    def own_words(self) -> tuple[str, ...]:
        """Its name, and that of its next victim."""
        return (self.name,) if self.victim is None else (self.name, "/".join(self.victim.key))

    @property
    def common_words(self) -> tuple[str, ...]:
        """Its troubles."""
        return self.troubles or ()

    @property
    def words(self) -> str:
        """All of those in one line, in small letters."""
        return " ".join((*self.own_words, *self.common_words)).casefold()

    def used(self, qos: QosClass) -> int | None:
        """What the pods of a class use, in bytes."""
        return None if self.memory.used is None else self.memory.used[qos]

    @property
    def used_percent(self) -> float | None:
        """What pods use of the capacity."""
        return _percent(self.memory.used_bytes, self.capacity)

    @property
    def requests_percent(self) -> float | None:
        """What pods request of what can be requested."""
        return _percent(self.memory.requests_bytes, self.allocatable)

    @property
    def limits_percent(self) -> float | None:
        """What pods are limited to, of the capacity."""
        return _percent(self.memory.limits_bytes, self.capacity)

    @property
    def worst_percent(self) -> float | None:
        """What pods use once they are at their limits, of the capacity."""
        return _percent(self.memory.worst_bytes, self.capacity)


class OrderBasis(NamedTuple):
    """What the kill order of a node rests on."""

    setup: NodeSetup
    basis: Basis
    without_usage: int


class CachedRow(NamedTuple):
    """A node's row, and what it was made of; `order` is None where the node has no pods."""

    row: NodeRow
    order: OrderBasis | None
    made_of: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Rows, those in trouble first, with what a reader has to know about them.

    `eviction_notes` are of interest only where eviction is shown. `nodes` is what each row was worked out
    from, by name.
    """

    rows: tuple[NodeRow, ...]
    notes: tuple[str, ...] = ()
    eviction_notes: tuple[str, ...] = ()
    nodes: Mapping[str, CachedRow] = field(default_factory=dict)


def build_node_rows(
    snapshot: Snapshot,
    shown: Callable[[str, NodeObject | None], bool],
    before: NodeRows | None = None,
) -> NodeRows:
    """A row for each node that is known or has pods, if it is to be `shown`, of all its pods.

    Of rows made `before`, those of nodes about which nothing has changed are taken over.
    """
    by_node = snapshot.by_node()
    known = before.nodes if before is not None else {}
    nodes: dict[str, CachedRow] = {}
    profiles: dict[tuple[int | None, Release], Profiles] = {}
    for name in {**snapshot.nodes, **by_node}:
        node = snapshot.nodes.get(name)
        if not name or not shown(name, node):
            continue
        made_of = (by_node.get(name), node, snapshot.kubelets.get(name), snapshot.usage)
        found = known.get(name)
        if found is None or not all(map(is_, found.made_of, made_of)):
            setup = snapshot.setup(name)
            key = setup.node.memory_capacity_bytes, setup.release
            alike = profiles.setdefault(key, Profiles(*key))
            found = _worked_out(name, snapshot, setup, alike, made_of)
        nodes[name] = found
    rows = sorted((found.row for found in nodes.values()), key=trouble_first)
    orders = {name: found.order for name, found in nodes.items() if found.order is not None}
    notes = [*ranking_notes(snapshot, orders)]
    if any(row.memory.used_bytes for row in rows):
        notes.append("the memory used is that of pods: what the node's own processes use is not in it")
    return NodeRows(tuple(rows), tuple(notes), tuple(_eviction_notes(rows)), nodes)


def build_node_row(snapshot: Snapshot, name: str) -> NodeRow:
    """The row of one node, known or not."""
    setup = snapshot.setup(name)
    alike = Profiles(setup.node.memory_capacity_bytes, setup.release)
    return _worked_out(name, snapshot, setup, alike, ()).row


def _worked_out(
    name: str, snapshot: Snapshot, setup: NodeSetup, alike: Profiles, made_of: tuple[object, ...]
) -> CachedRow:
    ranking = _ranking(snapshot.by_node().get(name, ()), setup, snapshot, alike)
    order = OrderBasis(setup, ranking.basis, ranking.without_usage) if ranking.pods else None
    return CachedRow(_row(name, snapshot.nodes.get(name), ranking, setup), order, made_of)


def trouble_first(row: NodeRow) -> tuple[object, ...]:
    """The default order: nodes in trouble, then the fullest, those of unknown usage last."""
    return not row.troubles, row.used_percent is None, -(row.used_percent or 0), row.name


def troubles(node: NodeObject) -> tuple[str, ...]:
    """A node's pressures, and whether it is not ready."""
    found = []
    for condition in node.status.conditions or ():
        if condition.type in PRESSURES and condition.status == "True":
            found.append(PRESSURES[condition.type])
        elif condition.type == "Ready" and condition.status != "True":
            found.append(NOT_READY)
    return tuple(found)


def _ranking(pods: Sequence[Pod], setup: NodeSetup, snapshot: Snapshot, alike: Profiles) -> Ranking:
    defaulted = [default_pod(pod, setup.release) for pod in pods]
    return rank_node(defaulted, setup.node, setup.release, snapshot.usage, alike)


def _row(name: str, found: NodeObject | None, ranking: Ranking, setup: NodeSetup) -> NodeRow:
    memory = node_memory(ranking, setup.release)
    kubelet, capacity = setup.kubelet, setup.node.memory_capacity_bytes
    used = memory.used_bytes
    return NodeRow(
        name=name,
        memory=memory,
        capacity=capacity,
        allocatable=schedulable_bytes(setup.node),
        victim=_victim(ranking),
        troubles=troubles(found) if found is not None else None,
        eviction=memory_threshold(kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity or 0),
        to_eviction=to_hard_eviction(setup, used) if used is not None else None,
        soft_eviction=memory_threshold(kubelet.eviction_soft.get(MEMORY_AVAILABLE), capacity or 0),
        to_soft_eviction=to_soft_eviction(setup, used) if used is not None else None,
        configured=kubelet.origin("eviction_hard") is not Origin.ASSUMED,
    )


def _victim(ranking: Ranking) -> Victim | None:
    first = [row for row in ranking.pods if row.rank == 1]
    if not first:
        return None
    one = first[0]
    score = one.worst.oom_score if one.worst is not None else None
    return Victim((one.pod.namespace, one.pod.name), one.qos, score, len(first) - 1)


def _eviction_notes(rows: Iterable[NodeRow]) -> Iterable[str]:
    assumed = [row for row in rows if not row.configured]
    thresholds = sorted({row.eviction for row in assumed if row.eviction is not None})
    if thresholds:
        of = assumed[0].name if len(assumed) == 1 else f"{len(assumed)} nodes"
        yield (
            f"the eviction threshold of {of} is assumed to be the default, {binary(thresholds[0])}:"
            " what the kubelet is configured with is not known"
        )


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole
