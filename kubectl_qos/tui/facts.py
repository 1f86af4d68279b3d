"""One answer of a source, worked out once for all screens. Pure: made in a worker, read by the UI.

Not here: asking the source (live.py) and what of it is shown at the moment (view.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.amounts import parse_time
from kubectl_qos.present.rows import PodRow, Rows, rows_of
from kubectl_qos.qos.qos_class import QosClass

Identity = tuple[str, str, str]
"""Kind, namespace and name."""

PRESSURES: Final = {
    "MemoryPressure": "memory",
    "DiskPressure": "disk",
    "PIDPressure": "pids",
}


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods of a node or namespace in numbers; `key` None stands for all of them. Bytes are bytes.

    `used` is what the pods use, None where no usage is known; `troubles` are a node's own words.
    """

    key: str | None
    pods: int
    guaranteed: int
    burstable: int
    best_effort: int
    used: int | None
    capacity: int | None = None
    troubles: tuple[str, ...] = ()

    @property
    def percent(self) -> int | None:
        """How much of the capacity the pods use, None where either is unknown."""
        if self.used is None or not self.capacity:
            return None
        return 100 * self.used // self.capacity


@dataclass(frozen=True, slots=True)
class Facts:
    """A snapshot with its rows in kill order; `taken` is when it was asked for, by the source's clock.

    `notice` says where the answer is another one than was asked for.
    """

    snapshot: Snapshot
    rows: Rows
    nodes: tuple[PodGroup, ...]
    namespaces: tuple[str, ...]
    stored: Mapping[Identity, Pod]
    taken: datetime
    notice: str = ""

    def pod_of(self, row: PodRow) -> Pod:
        """The pod of a row as it is stored: rows hold it with the server's defaults filled in."""
        return self.stored[_identity(row.pod)]


def facts_of(snapshot: Snapshot, scope: Scope, taken: datetime, notice: str = "") -> Facts:
    """Everything that the screens need of a snapshot."""
    rows = rows_of(snapshot, scope)
    return Facts(
        snapshot=snapshot,
        rows=rows,
        nodes=tuple(_nodes(snapshot, rows.rows)),
        namespaces=tuple(sorted({row.pod.namespace for row in rows.rows})),
        stored={_identity(pod): pod for pod in snapshot.pods},
        taken=taken,
        notice=notice,
    )


def namespaces_on(facts: Facts, node: str | None) -> list[PodGroup]:
    """Every namespace with its pods on one node (None: on all), all of them together first."""
    by_namespace: dict[str, list[PodRow]] = {name: [] for name in facts.namespaces}
    everything = [row for row in facts.rows.rows if node is None or row.node == node]
    for row in everything:
        by_namespace[row.pod.namespace].append(row)
    groups = [_group(name, rows, _used(rows)) for name, rows in by_namespace.items()]
    return [_group(None, everything, _used(everything)), *groups]


def oldest_usage(facts: Facts) -> datetime | None:
    """When the oldest usage sample was taken, None where nobody says."""
    moments = (parse_time(usage.timestamp) for usage in facts.snapshot.usage.values())
    return min((moment for moment in moments if moment is not None), default=None)


def _nodes(snapshot: Snapshot, rows: Iterable[PodRow]) -> Iterable[PodGroup]:
    """All nodes together, then each one, the fullest first, then the pods without a node."""
    by_node: dict[str, list[PodRow]] = {name: [] for name in snapshot.nodes}
    for row in rows:
        by_node.setdefault(row.node, []).append(row)
    used = _used_by_node(snapshot)
    groups = []
    for name, of_node in by_node.items():
        group = _group(name, of_node, used.get(name))
        if name:
            capacity = snapshot.setup(name).node.memory_capacity_bytes
            group = replace(group, capacity=capacity, troubles=_troubles(snapshot.nodes.get(name)))
        groups.append(group)
    groups.sort(key=lambda group: (group.key == "", group.percent is None, -(group.percent or 0), group.key))
    yield _together(groups)
    yield from groups


def _together(groups: list[PodGroup]) -> PodGroup:
    machines = [group for group in groups if group.key]
    capacities = [group.capacity for group in machines if group.capacity]
    known = [group.used for group in machines if group.used is not None]
    return PodGroup(
        None,
        sum(group.pods for group in groups),
        sum(group.guaranteed for group in groups),
        sum(group.burstable for group in groups),
        sum(group.best_effort for group in groups),
        sum(known) if known else None,
        sum(capacities) if len(capacities) == len(machines) else None,
    )


def _group(key: str | None, rows: Iterable[PodRow], used: int | None) -> PodGroup:
    classes = [row.qos for row in rows]
    return PodGroup(
        key,
        len(classes),
        classes.count(QosClass.GUARANTEED),
        classes.count(QosClass.BURSTABLE),
        classes.count(QosClass.BEST_EFFORT),
        used,
    )


def _used(rows: Iterable[PodRow]) -> int | None:
    known = [row.memory for row in rows if row.memory is not None]
    return sum(known) if known else None


def _used_by_node(snapshot: Snapshot) -> dict[str, int]:
    """What the pods of each node use, whether they were asked for or not."""
    found: dict[str, int] = {}
    for pod in snapshot.pods:
        usage = snapshot.usage.get((pod.namespace, pod.name))
        if usage is not None:
            found[pod.node_name] = found.get(pod.node_name, 0) + usage.memory_bytes
    return found


def _troubles(node: NodeObject | None) -> tuple[str, ...]:
    """A node's pressures, and `not ready`."""
    found = []
    for condition in node.status.conditions or () if node is not None else ():
        if condition.type in PRESSURES and condition.status == "True":
            found.append(PRESSURES[condition.type])
        elif condition.type == "Ready" and condition.status != "True":
            found.append("not ready")
    return tuple(found)


def _identity(pod: Pod) -> Identity:
    return pod.kind, pod.namespace, pod.name
