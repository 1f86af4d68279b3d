"""How the memory of pods has changed since the UI was opened, as bars of a cell each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import is_
from typing import Final

import msgspec

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present.format import parse_time
from kubectl_qos.present.node_rows import troubles
from kubectl_qos.present.pod_rows import PodRow, PodRows, build_rows
from kubectl_qos.qos.qos_class import QosClass

BARS: Final = "▁▂▃▄▅▆▇█"
MOST: Final = 32
"""So many samples of a pod are kept."""
_KIB: Final = 1024


class Trends:
    """The samples of each pod, the newest last. A thread adds, widgets read."""

    def __init__(self) -> None:
        self._last: Mapping[PodKey, PodUsage] = {}
        self._samples: dict[PodKey, array[int]] = {}

    def add(self, usage: Mapping[PodKey, PodUsage]) -> None:
        """Another answer: every pod with a new sample has one more; pods without usage are forgotten.

        The first answer costs nothing: a pod's first sample is kept when its second one comes.
        """
        last, kept = self._last, self._samples
        if usage is last:
            return
        found: dict[PodKey, array[int]] = {}
        for key, sample in usage.items():
            before, samples = last.get(key), kept.get(key)
            if before is None:
                continue
            if before is not sample and (before.timestamp, before) != (sample.timestamp, sample):
                samples = samples if samples is not None else array("Q", [_kibibytes(before)])
                samples = array("Q", [*samples[1 - MOST :], _kibibytes(sample)])
            if samples is not None:
                found[key] = samples
        self._last, self._samples = usage, found

    def clear(self) -> None:
        """Forget everything: other pods of the same names follow."""
        self._last, self._samples = {}, {}

    def of(self, key: PodKey) -> Sequence[int]:
        """What a pod used, in KiB, the newest last; nothing before its second sample."""
        return self._samples.get(key, ())


def sparkline(samples: Sequence[int], most: int | None, cells: int) -> str:
    """The last samples as bars, between nothing and `most`, or the highest of them where it is not known."""
    shown = samples[-cells:]
    highest = max(most or 0, *shown) if shown else 0
    if not highest:
        return ""
    return "".join(BARS[min(sample * len(BARS) // highest, len(BARS) - 1)] for sample in shown)


def _kibibytes(usage: PodUsage) -> int:
    return max(usage.working_set_bytes, 0) // _KIB


Identity = tuple[str, str, str]
"""Kind, namespace and name."""


class PodGroup(msgspec.Struct, frozen=True, gc=False):
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
        return round(100 * self.used / self.capacity)


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """One node, and the shown pods of each namespace on it; `made_of` is what that was worked out from."""

    group: PodGroup
    namespaces: Mapping[str, PodGroup]
    made_of: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ViewModel:
    """A snapshot with its rows in kill order; `taken` is when it was true, by the source's clock.

    `scope` is which pods were read, `notice` says where that is another one than was asked for. Two answers
    are never equal: to find that out pod by pod takes longer than to show the other one.
    """

    snapshot: Snapshot
    rows: PodRows
    nodes: tuple[PodGroup, ...]
    namespaces: Mapping[str, PodGroup]
    by_node: Mapping[str, NodeView]
    taken: datetime
    scope: Scope
    notice: str = ""

    def pod_of(self, row: PodRow) -> Pod:
        """The pod of a row as it is stored: rows hold it with the server's defaults filled in."""
        wanted = _identity(row.pod)
        pods = self.snapshot.by_node()[row.pod.node_name]
        return next(pod for pod in pods if _identity(pod) == wanted)


def newest(facts: ViewModel, pod: Pod) -> Pod | None:
    """The pod as it is now, wherever it runs by now; None if it is gone."""
    by_node = facts.snapshot.by_node()
    wanted = _identity(pod)
    for pods in (by_node.get(pod.node_name, ()), *by_node.values()):
        for one in pods:
            if _identity(one) == wanted:
                return one
    return None


def pod_named(facts: ViewModel, key: PodKey, node: str | None = None) -> Pod | None:
    """The pod of that namespace and name, on one node where one is named; None if it is not there."""
    pods = facts.snapshot.pods if node is None else facts.snapshot.by_node().get(node, ())
    return next((one for one in pods if (one.metadata.namespace, one.metadata.name) == key), None)


def build_view_model(
    snapshot: Snapshot, scope: Scope, taken: datetime, notice: str = "", before: ViewModel | None = None
) -> ViewModel:
    """Everything that the screens need of a snapshot; what is the same as before is taken over."""
    rows = build_rows(snapshot, scope, before=before.rows if before is not None else None)
    by_node = _by_node(snapshot, rows, before.by_node if before is not None else {})
    return ViewModel(
        snapshot=snapshot,
        rows=rows,
        nodes=tuple(_nodes(found.group for found in by_node.values())),
        namespaces=_namespaces(by_node.values()),
        by_node=by_node,
        taken=taken,
        scope=scope,
        notice=notice,
    )


def namespaces_on(facts: ViewModel, node: str | None, chosen: str | None = None) -> list[PodGroup]:
    """Every namespace with its pods on one node (None: on all), all of them together first.

    The `chosen` one is among them even while it has no pods: they may all be replaced at the moment.
    """
    names = sorted({*facts.namespaces, *([chosen] if chosen is not None else [])})
    if node is None:
        here = facts.namespaces
    else:
        here = facts.by_node[node].namespaces if node in facts.by_node else {}
    groups = [here.get(name) or _group(name, (), None) for name in names]
    return [_sum(None, groups), *groups]


def oldest_usage(facts: ViewModel) -> datetime | None:
    """When the oldest usage sample was taken, None where nobody says."""
    return parse_time(facts.rows.sampled.oldest) if facts.rows.sampled is not None else None


def _by_node(snapshot: Snapshot, rows: PodRows, before: Mapping[str, NodeView]) -> dict[str, NodeView]:
    """Every node that is known or has pods that are shown."""
    found: dict[str, NodeView] = {}
    pods = snapshot.by_node()
    for name in dict.fromkeys((*snapshot.nodes, *rows.nodes)):
        ranked, node = rows.nodes.get(name), snapshot.nodes.get(name)
        made_of = (ranked, pods.get(name), node, snapshot.usage, snapshot.kubelets.get(name))
        old = before.get(name)
        if old is not None and all(map(is_, old.made_of, made_of)):
            found[name] = old
            continue
        shown = ranked.rows if ranked is not None else ()
        group = _group(name, shown, _used(pods.get(name, ()), snapshot))
        if name:
            capacity = snapshot.setup(name).node.memory_capacity_bytes
            group = msgspec.structs.replace(
                group, capacity=capacity, troubles=troubles(node) if node is not None else ()
            )
        found[name] = NodeView(group, _by_namespace(shown), made_of)
    return found


def _by_namespace(rows: Iterable[PodRow]) -> dict[str, PodGroup]:
    found: dict[str, list[PodRow]] = {}
    for row in rows:
        found.setdefault(row.pod.metadata.namespace, []).append(row)
    return {name: _group(name, of_it, _total([row.memory for row in of_it])) for name, of_it in found.items()}


def _namespaces(nodes: Iterable[NodeView]) -> dict[str, PodGroup]:
    """Every namespace of which pods are shown, by name."""
    found: dict[str, list[PodGroup]] = {}
    for node in nodes:
        for name, group in node.namespaces.items():
            found.setdefault(name, []).append(group)
    return {name: _sum(name, found[name]) for name in sorted(found)}


def _nodes(groups: Iterable[PodGroup]) -> Iterable[PodGroup]:
    """All nodes together, then each one, the fullest first, then the pods without a node."""
    ordered = sorted(
        groups, key=lambda group: (group.key == "", group.percent is None, -(group.percent or 0), group.key)
    )
    machines = [group for group in ordered if group.key]
    capacities = [group.capacity for group in machines if group.capacity]
    yield msgspec.structs.replace(
        _sum(None, ordered),
        used=_total([group.used for group in machines]),
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
        _total([group.used for group in groups]),
    )


def _group(key: str, rows: Iterable[PodRow], used: int | None) -> PodGroup:
    classes = [row.qos for row in rows]
    return PodGroup(
        key,
        len(classes),
        classes.count(QosClass.GUARANTEED),
        classes.count(QosClass.BURSTABLE),
        classes.count(QosClass.BEST_EFFORT),
        used,
    )


def _used(pods: Iterable[Pod], snapshot: Snapshot) -> int | None:
    """What pods use, whether they were asked for or not."""
    found = [snapshot.usage.get((pod.metadata.namespace, pod.metadata.name)) for pod in pods]
    return _total([usage.working_set_bytes for usage in found if usage is not None])


def _total(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _identity(pod: Pod) -> Identity:
    return pod.kind, pod.namespace, pod.name
