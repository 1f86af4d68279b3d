"""One row per node: values only, in the units that columns print. The nodes' side of present/rows.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.amounts import binary
from kubectl_qos.present.notes import ranking_notes
from kubectl_qos.qos.node_memory import (
    SIGNAL,
    NodeMemory,
    memory_threshold,
    node_memory,
    schedulable_bytes,
    to_hard_eviction,
    to_soft_eviction,
)
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

    def used(self, qos: QosClass) -> int | None:
        """What the pods of a class use."""
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


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Rows, those in trouble first, with what a reader has to know about them.

    `eviction_notes` are of interest only where eviction is shown.
    """

    rows: tuple[NodeRow, ...]
    notes: tuple[str, ...] = ()
    eviction_notes: tuple[str, ...] = ()


class _Order(NamedTuple):
    setup: NodeSetup
    basis: Basis
    without_usage: int


def node_rows_of(snapshot: Snapshot, shown: Callable[[str, NodeObject | None], bool]) -> NodeRows:
    """A row for each node that is known or has pods, if it is to be `shown`, of all its pods."""
    by_node = snapshot.by_node()
    rows = []
    orders: dict[str, _Order] = {}
    profiles: dict[tuple[int | None, Release], Profiles] = {}
    for name in {**snapshot.nodes, **by_node}:
        found = snapshot.nodes.get(name)
        if not name or not shown(name, found):
            continue
        setup = snapshot.setup(name)
        key = setup.node.memory_capacity_bytes, setup.release
        ranking = _ranking(by_node.get(name, ()), setup, snapshot, profiles.setdefault(key, Profiles(*key)))
        rows.append(_row(name, found, ranking, setup))
        if ranking.pods:
            orders[name] = _Order(setup, ranking.basis, ranking.without_usage)
    rows.sort(key=trouble_first)
    notes = [*ranking_notes(snapshot, orders)]
    if any(row.memory.used_bytes for row in rows):
        notes.append("the memory used is that of pods: what the node's own processes use is not in it")
    return NodeRows(tuple(rows), tuple(notes), tuple(_eviction_notes(rows)))


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
        eviction=memory_threshold(kubelet.eviction_hard.get(SIGNAL), capacity or 0),
        to_eviction=to_hard_eviction(setup, used) if used is not None else None,
        soft_eviction=memory_threshold(kubelet.eviction_soft.get(SIGNAL), capacity or 0),
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
