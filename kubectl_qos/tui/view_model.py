"""What the screens show of a snapshot: rows, groups of pods, and how memory has changed. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import is_
from typing import Final

import msgspec

from kubectl_qos.cluster.source import Arrived
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present.groups import grouped, known_sum
from kubectl_qos.present.node_rows import troubles
from kubectl_qos.present.pod_rows import PodRow, PodRows, build_rows
from kubectl_qos.qos.qos_class import QosClass

BARS: Final = "▁▂▃▄▅▆▇█"
MOST: Final = 32
"""The samples that are kept of a pod."""
_KIB: Final = 1024


class Trends:
    """The samples of each pod, the newest last. A thread adds, widgets read."""

    def __init__(self) -> None:
        self._last: Mapping[PodKey, PodUsage] = {}
        self._samples: dict[PodKey, array[int]] = {}

    def add(self, usage: Mapping[PodKey, PodUsage]) -> None:
        """Add the new samples of pods; pods without usage are forgotten.

        The first call costs nothing: a pod's first sample is kept when its second one comes.
        """
        last, old_samples = self._last, self._samples
        if usage is last:
            return
        new_samples: dict[PodKey, array[int]] = {}
        for key, sample in usage.items():
            before, samples = last.get(key), old_samples.get(key)
            if before is None:
                continue
            if before is not sample and (before.timestamp, before) != (sample.timestamp, sample):
                samples = samples if samples is not None else array("Q", [_kibibytes(before)])
                samples = array("Q", [*samples[1 - MOST :], _kibibytes(sample)])
            if samples is not None:
                new_samples[key] = samples
        self._last, self._samples = usage, new_samples

    def clear(self) -> None:
        self._last, self._samples = {}, {}

    def of(self, key: PodKey) -> Sequence[int]:
        """What a pod used, in KiB, the newest last; nothing before its second sample."""
        return self._samples.get(key, ())


def sparkline(samples: Sequence[int], most: int | None, cells: int) -> str:
    """The last samples as bars, scaled from 0 to `most`, or to the peak where it is None."""
    shown = samples[-cells:]
    highest = max(most or 0, *shown) if shown else 0
    if not highest:
        return ""
    return "".join(BARS[min(sample * len(BARS) // highest, len(BARS) - 1)] for sample in shown)


def _kibibytes(usage: PodUsage) -> int:
    return max(usage.working_set_bytes, 0) // _KIB


class PodGroup(msgspec.Struct, frozen=True, gc=False):
    """The pods of a node or namespace that have not ended; `key` None stands for all. Bytes are bytes.

    `used` is what the pods use, None where no usage is known; `troubles` are those that a node reports.
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
        if self.used is None or not self.capacity:
            return None
        return round(100 * self.used / self.capacity)


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """One node, and the pods of each namespace on it; `inputs` is what it was built from."""

    group: PodGroup
    namespaces: Mapping[str, PodGroup]
    inputs: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ViewModel:
    """A snapshot with its rows in kill order; `taken` is when it was true, by the source's clock.

    `scope` is which pods were read, `notice` says where that is less than was requested. Two view models are
    never equal: comparing them pod by pod takes longer than showing the other one. `arrived` is None where
    all pods are there; before that their rows have no ranks, and the groups no usage.
    """

    snapshot: Snapshot
    rows: PodRows
    nodes: tuple[PodGroup, ...]
    namespaces: Mapping[str, PodGroup]
    by_node: Mapping[str, NodeView]
    taken: datetime
    scope: Scope
    notice: str = ""
    arrived: Arrived | None = None

    def pod_of(self, row: PodRow) -> Pod:
        """The stored pod of a row, which holds it with the server's defaults filled in."""
        identity = _identity(row.pod)
        pods = self.snapshot.by_node()[row.pod.node_name]
        return next(pod for pod in pods if _identity(pod) == identity)


def newest(view_model: ViewModel, pod: Pod) -> Pod | None:
    """The pod as it is now, on whatever node; None if it is gone."""
    by_node = view_model.snapshot.by_node()
    identity = _identity(pod)
    for pods in (by_node.get(pod.node_name, ()), *by_node.values()):
        for newer in pods:
            if _identity(newer) == identity:
                return newer
    return None


def pod_named(view_model: ViewModel, key: PodKey, node: str | None = None) -> Pod | None:
    """The pod of a namespace and name, on any node unless one is given; None without one."""
    pods = view_model.snapshot.pods if node is None else view_model.snapshot.by_node().get(node, ())
    return next((pod for pod in pods if (pod.metadata.namespace, pod.metadata.name) == key), None)


def build_view_model(
    snapshot: Snapshot,
    scope: Scope,
    taken: datetime,
    notice: str = "",
    before: ViewModel | None = None,
    arrived: Arrived | None = None,
) -> ViewModel:
    """The view model of a snapshot; what has not changed is taken from the one before."""
    provisional = arrived is not None
    known_rows = before.rows if before is not None else None
    rows = build_rows(snapshot, scope, provisional=provisional, before=known_rows)
    known_nodes = before.by_node if before is not None else {}
    by_node = _by_node(snapshot, rows, known_nodes, provisional=provisional)
    return ViewModel(
        snapshot=snapshot,
        rows=rows,
        nodes=tuple(_nodes(node.group for node in by_node.values())),
        namespaces=_namespaces(by_node.values()),
        by_node=by_node,
        taken=taken,
        scope=scope,
        notice=notice,
        arrived=arrived,
    )


def namespaces_on(view_model: ViewModel, node: str | None, chosen: str | None = None) -> list[PodGroup]:
    """Every namespace with its pods on one node (None: on all), all of them together first.

    The `chosen` one is there even without pods: they may all be about to be replaced.
    """
    names = sorted({*view_model.namespaces, *([chosen] if chosen is not None else [])})
    here = _on(view_model, node)
    groups = [here.get(name) or _group(name, (), None) for name in names]
    return [_sum(None, groups), *groups]


def living_pods(view_model: ViewModel, node: str | None, namespace: str | None) -> int:
    """How many pods of a node and a namespace (None: of all) have not ended."""
    groups = _on(view_model, node)
    return sum([group.pods for name, group in groups.items() if namespace in {None, name}])


def _on(view_model: ViewModel, node: str | None) -> Mapping[str, PodGroup]:
    if node is None:
        return view_model.namespaces
    return view_model.by_node[node].namespaces if node in view_model.by_node else {}


def oldest_usage(view_model: ViewModel) -> datetime | None:
    """When the oldest usage sample was taken, None where that is unknown."""
    return parse_time(view_model.rows.sampled.oldest) if view_model.rows.sampled is not None else None


def _by_node(
    snapshot: Snapshot, rows: PodRows, before: Mapping[str, NodeView], *, provisional: bool
) -> dict[str, NodeView]:
    views: dict[str, NodeView] = {}
    pods = snapshot.by_node()
    for name in dict.fromkeys((*snapshot.nodes, *rows.nodes)):
        ranked, node = rows.nodes.get(name), snapshot.nodes.get(name)
        inputs = (ranked, pods.get(name), node, snapshot.usage, snapshot.kubelets.get(name), provisional)
        old = before.get(name)
        if old is not None and all(map(is_, old.inputs, inputs)):
            views[name] = old
            continue
        shown = ranked.rows if ranked is not None else ()
        group = _group(name, shown, None if provisional else _used(pods.get(name, ()), snapshot))
        if name:
            capacity = snapshot.setup(name).node.memory_capacity_bytes
            group = msgspec.structs.replace(
                group, capacity=capacity, troubles=troubles(node) if node is not None else ()
            )
        views[name] = NodeView(group, _by_namespace(shown), inputs)
    return views


def _by_namespace(rows: Iterable[PodRow]) -> dict[str, PodGroup]:
    groups = grouped(rows, lambda row: row.pod.metadata.namespace)
    return {
        name: _group(name, pods, known_sum([row.memory for row in pods])) for name, pods in groups.items()
    }


def _namespaces(nodes: Iterable[NodeView]) -> dict[str, PodGroup]:
    groups: dict[str, list[PodGroup]] = {}
    for node in nodes:
        for name, group in node.namespaces.items():
            groups.setdefault(name, []).append(group)
    return {name: _sum(name, groups[name]) for name in sorted(groups)}


def _nodes(groups: Iterable[PodGroup]) -> Iterable[PodGroup]:
    """All nodes together, then each one, the fullest first, then the pods without a node."""
    ordered = sorted(
        groups, key=lambda group: (group.key == "", group.percent is None, -(group.percent or 0), group.key)
    )
    machines = [group for group in ordered if group.key]
    capacities = [group.capacity for group in machines if group.capacity]
    yield msgspec.structs.replace(
        _sum(None, ordered),
        used=known_sum([group.used for group in machines]),
        capacity=sum(capacities) if len(capacities) == len(machines) else None,
    )
    yield from ordered


def _sum(key: str | None, groups: Sequence[PodGroup]) -> PodGroup:
    return PodGroup(
        key,
        sum([group.pods for group in groups]),
        sum([group.guaranteed for group in groups]),
        sum([group.burstable for group in groups]),
        sum([group.best_effort for group in groups]),
        known_sum([group.used for group in groups]),
    )


def _group(key: str, rows: Iterable[PodRow], used: int | None) -> PodGroup:
    classes = [row.qos for row in rows if not row.pod.is_terminal]
    return PodGroup(
        key,
        len(classes),
        classes.count(QosClass.GUARANTEED),
        classes.count(QosClass.BURSTABLE),
        classes.count(QosClass.BEST_EFFORT),
        used,
    )


def _used(pods: Iterable[Pod], snapshot: Snapshot) -> int | None:
    """What pods that have not ended use, in scope or not."""
    living = [pod for pod in pods if not pod.is_terminal]
    usages = [snapshot.usage.get((pod.metadata.namespace, pod.metadata.name)) for pod in living]
    used = known_sum([usage.working_set_bytes for usage in usages if usage is not None])
    return used if living else 0


def _identity(pod: Pod) -> tuple[str, str, str]:
    return pod.kind, pod.namespace, pod.name
