"""What the screens show of a snapshot: the rows of pods, sums of groups, deaths, kills. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, chain
from operator import is_
from typing import Final

import msgspec

from kubectl_qos.analysis.deaths import FEW_NODES, DeathRow, NodeDeaths, deaths_on_node
from kubectl_qos.analysis.group_table import bad_conditions, grouped, is_in_danger, known_sum
from kubectl_qos.analysis.pod_table import PodRow, PodRows, build_rows
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Arrived, Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.list_notes import pod_table_notes
from kubectl_qos.qos.eviction import eviction_due, schedulable_bytes, to_hard_eviction
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.new_kills import kills_since, without_repeats
from kubectl_qos.qos.kills.report import KernelLog
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.next_death import NextDeath

SOON_SECONDS: Final = 600
"""With a death within this time, a node is in danger."""
_MAX_KILLS: Final = 100
_LEAP_PERCENT: Final = 5
_MAX_UNORDERED: Final = timedelta(seconds=30)
"""Nodes are sorted again once one is _LEAP_PERCENT points fuller than one above it, or after this time."""


class PodGroup(msgspec.Struct, frozen=True, gc=False):
    """The pods of a node or namespace that have not ended, in numbers. Memory is in bytes.

    `key` is the name, None for all nodes or namespaces. `used` is None if no usage is known, and a
    lower bound if some pods `lack_usage`. A node also has `allocatable`, or its capacity if it reports no
    other, and `in_danger`, which is True if its memory is short.
    """

    key: str | None
    pods: int
    guaranteed: int
    burstable: int
    best_effort: int
    used: int | None
    allocatable: int | None = None
    bad_conditions: tuple[str, ...] = ()
    in_danger: bool = False
    lack_usage: bool = False

    @property
    def percent_text(self) -> str:
        """Return the percentage, with `+` if it is a lower bound."""
        return f"{self.percent}%{'+' if self.lack_usage else ''}"

    @property
    def percent(self) -> int | None:
        """Return the percentage as in kubectl top nodes, None if it is unknown."""
        if self.used is None or not self.allocatable:
            return None
        share = 100 * self.used // self.allocatable
        return share if share or not self.lack_usage else None  # "at least 0%" would say nothing


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """A node's sums, and the objects that they were built from."""

    group: PodGroup
    inputs: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ViewModel:
    """A snapshot with all that the screens show of it.

    Two view models are never equal: comparing them pod by pod takes longer than showing the other one.
    """

    snapshot: Snapshot
    rows: PodRows
    nodes: tuple[PodGroup, ...]
    """All nodes together, then each node, the fullest first."""
    namespaces: Mapping[str, PodGroup]
    by_node: Mapping[str, NodeView]
    in_order: Sequence[PodRow]
    """The pods of all nodes, node by node as in `nodes`, in kill order."""
    starts: Sequence[int]
    """The indices in `in_order` at which a node begins."""
    taken: datetime
    """The time of the snapshot, by the source's clock."""
    scope: Scope
    """Which pods were read."""
    notes: tuple[str, ...] = ()
    """Remarks on the ranks."""
    notice: str = ""
    """Why fewer pods were read than requested."""
    arrived: Arrived | None = None
    """How many pods have arrived; None: all. Before that, rows have no ranks and groups no usage."""
    unordered_since: datetime | None = None
    """When the nodes were last in another order than by fullness, None if they are in it."""
    kills: list[Kill] = field(default_factory=list)
    """The kills since the UI was opened, the newest first."""
    first_deaths: list[DeathRow] = field(default_factory=list)
    """The next death on each of the FEW_NODES fullest nodes, the most urgent first; none without usage."""
    cached_times: dict[str, Mapping[PodKey, float]] = field(default_factory=dict)
    cached_deaths: dict[str, tuple[tuple[object, ...], NodeDeaths | None]] = field(default_factory=dict)

    def deaths(self, node: str) -> NodeDeaths | None:
        """Return the coming deaths on a node, None if they are unknown. The first call computes them."""
        inputs = self.by_node[node].inputs if node in self.by_node else ()
        cached = self.cached_deaths.get(node)
        if cached is None or len(cached[0]) != len(inputs) or not all(map(is_, cached[0], inputs)):
            try:
                deaths = deaths_on_node(self.snapshot, node) if node else None
            except InputError:
                deaths = None
            cached = self.cached_deaths[node] = inputs, deaths
        return cached[1]

    def known_deaths(self, node: str) -> Sequence[NextDeath]:
        """Return the coming deaths on a node, none if they have not been computed for it as it is now."""
        inputs, node_deaths = self.cached_deaths.get(node, ((), None))
        is_same = node not in self.by_node or all(map(is_, inputs, self.by_node[node].inputs))
        return node_deaths.deaths if node_deaths is not None and is_same else ()

    def compute_deaths(self) -> None:
        """Compute `first_deaths`; runs in the follower's thread."""
        on_nodes = [(node, self.deaths(node)) for node in self.node_names[:FEW_NODES]]
        if self.snapshot.usage:
            first = [
                DeathRow(node, waiting.deaths[0]) for node, waiting in on_nodes if waiting and waiting.deaths
            ]
            self.first_deaths[:] = sorted(first, key=lambda row: row.death.urgency)

    def find_kills(
        self,
        before: ViewModel | None,
        logs: Callable[[], Sequence[KernelLog]],
        node_events: Callable[[], EventList],
    ) -> None:
        """Add the kills since an older view model; runs in the follower's thread."""
        if before is not None and before.arrived is None:
            newer = kills_since(before.snapshot, self.snapshot, logs, node_events)
            self.kills[:] = [*newer, *without_repeats(before.kills, newer)][:_MAX_KILLS]

    def kills_within(self, seconds: float) -> list[Kill]:
        """Return the kills of the last `seconds`, the newest first."""
        times = ((kill, parse_time(kill.time)) for kill in self.kills)
        return [kill for kill, time in times if time and (self.taken - time).total_seconds() <= seconds]

    def first_death_elsewhere(self, node: str) -> DeathRow | None:
        """Return the first death on another node than this one."""
        return next((coming for coming in self.first_deaths if coming.node != node), None)

    def is_under_pressure(self, node: str) -> bool:
        """Return whether the kubelet evicts, so that its order decides."""
        group = self.by_node[node].group if node in self.by_node else None
        if group is not None and group.in_danger and "memory" in group.bad_conditions:
            return True
        evictions = (death for death in self.known_deaths(node) if death.killer.evicts)
        return any(death.distance_bytes <= 0 and death.grace_seconds is None for death in evictions)

    def times(self, node: str) -> Mapping[PodKey, float]:
        """Return in how many seconds pods die at their present growth, as far as that is known."""
        deaths = self.known_deaths(node)
        if node not in self.cached_times and deaths:
            times = [(death.seconds, death.key) for death in deaths if death.seconds is not None]
            self.cached_times[node] = {key: time for time, key in sorted(times, reverse=True)}
        return self.cached_times.get(node, {})

    def is_in_danger(self, node: str) -> bool:
        """Return whether a node's memory is nearly full, or a pod dies there soon."""
        if node in self.by_node and self.by_node[node].group.in_danger:
            return True
        deaths = self.known_deaths(node)
        return bool(deaths) and deaths[0].urgency.seconds < SOON_SECONDS

    @property
    def node_names(self) -> list[str]:
        """Return the names of the nodes, the fullest first."""
        return [group.key for group in self.nodes if group.key]

    def pod_keys(self, node: str) -> list[PodKey]:
        return [pod.key for pod in self.snapshot.by_node().get(node, ()) if not pod.is_terminal]

    def pod_of(self, row: PodRow) -> Pod:
        """Return the pod of a row as it is stored. The row has it with the server's defaults filled in."""
        identity = _identity(row.pod)
        pods = self.snapshot.by_node()[row.node]
        return next(pod for pod in pods if _identity(pod) == identity)

    def row_on(self, node: str, key: PodKey) -> PodRow | None:
        """Return the row of a pod on a node, None if it is gone."""
        ranked = self.rows.nodes.get(node)
        rows = ranked.rows if ranked is not None else ()
        return next((row for row in rows if row.key == (*key, "")), None)


def newest(view_model: ViewModel, pod: Pod) -> Pod | None:
    """Return the pod as it is now, on whatever node; None if it is gone."""
    by_node = view_model.snapshot.by_node()
    identity = _identity(pod)
    for pods in (by_node.get(pod.node_name, ()), *by_node.values()):
        for newer in pods:
            if _identity(newer) == identity:
                return newer
    return None


def pod_named(view_model: ViewModel, key: PodKey, node: str | None = None) -> Pod | None:
    """Return the pod of a namespace and name, on any node unless one is given; None if there is none."""
    pods = view_model.snapshot.pods if node is None else view_model.snapshot.by_node().get(node, ())
    return next((pod for pod in pods if pod.key == key), None)


def build_view_model(
    snapshot: Snapshot,
    scope: Scope,
    taken: datetime,
    notice: str = "",
    before: ViewModel | None = None,
    arrived: Arrived | None = None,
) -> ViewModel:
    """Build the view model of a snapshot. What has not changed is taken from the view model before it."""
    provisional = arrived is not None
    known_rows = before.rows if before is not None else None
    rows = build_rows(snapshot, scope, provisional=provisional, before=known_rows)
    known_nodes = before.by_node if before is not None else {}
    by_node = _by_node(snapshot, rows, known_nodes, provisional=provisional)
    groups, unordered_since = _in_order([node.group for node in by_node.values()], taken, before)
    nodes = tuple(_with_total(groups))
    ranked = (rows.nodes.get(group.key) for group in nodes if group.key is not None)
    of_nodes = [node.rows for node in ranked if node is not None]
    return ViewModel(
        snapshot=snapshot,
        rows=rows,
        nodes=nodes,
        namespaces=_by_namespace(chain.from_iterable(of_nodes)),
        by_node=by_node,
        in_order=tuple(chain.from_iterable(of_nodes)),
        starts=tuple(accumulate(map(len, of_nodes[:-1]), initial=0)) if of_nodes else (),
        taken=taken,
        scope=scope,
        notes=tuple(pod_table_notes(snapshot, rows)),
        notice=notice,
        arrived=arrived,
        unordered_since=unordered_since,
        cached_deaths=before.cached_deaths if before is not None else {},
    )


def namespaces_on(view_model: ViewModel, node: str | None, chosen: str | None = None) -> list[PodGroup]:
    """Return all namespaces together, then each of them, with its pods on one node (None: on all nodes).

    The `chosen` namespace is there even without pods: they may all be about to be replaced.
    """
    names = sorted({*view_model.namespaces, *([chosen] if chosen is not None else [])})
    here = _namespaces(view_model, node)
    groups = [here.get(name) or _group(name, (), None) for name in names]
    return [_sum(None, groups), *groups]


def living_pods(view_model: ViewModel, node: str | None, namespace: str | None) -> int:
    """Return how many pods of a node and namespace (None: of all) have not ended."""
    groups = _namespaces(view_model, node)
    return sum([group.pods for name, group in groups.items() if namespace in {None, name}])


def _namespaces(view_model: ViewModel, node: str | None) -> Mapping[str, PodGroup]:
    if node is None:
        return view_model.namespaces
    ranked = view_model.rows.nodes.get(node)
    return _by_namespace(ranked.rows) if ranked is not None else {}


def oldest_usage(view_model: ViewModel) -> datetime | None:
    """Return when the oldest usage sample was taken, None if that is unknown."""
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
        living = [pod for pod in pods.get(name, ()) if not pod.is_terminal]  # in scope or not
        usages = (snapshot.usage.get(pod.key) for pod in living)
        used = known_sum(usage.working_set_bytes for usage in usages if usage is not None) if living else 0
        group = _group(name, shown, None if provisional else used)
        if name:
            setup = ranked.setup if ranked is not None else snapshot.setup(name)
            capacity = setup.node.memory_capacity_bytes
            reported = bad_conditions(node) if node is not None else ()
            whole = snapshot.node_usage.get(name)
            measured = ((pod, snapshot.usage_of(pod)) for pod in pods.get(name, ()))
            due = eviction_due(setup, measured, snapshot.own_bytes(name))
            left = (
                None
                if group.used is None
                else to_hard_eviction(setup, group.used, snapshot.used_bytes(name), due)
            )
            group = msgspec.structs.replace(
                group,
                used=whole or group.used,
                allocatable=schedulable_bytes(setup.node) or capacity,
                bad_conditions=reported,
                in_danger=is_in_danger(due, left, whole or group.used, capacity),
                lack_usage=not whole and ranked is not None and ranked.without_usage > 0,
            )
        views[name] = NodeView(group, inputs)
    return views


def _by_namespace(rows: Iterable[PodRow]) -> dict[str, PodGroup]:
    groups = grouped(rows, lambda row: row.namespace)
    return {
        name: _group(name, groups[name], known_sum([row.memory for row in groups[name]]))
        for name in sorted(groups)
    }


def _in_order(
    groups: Iterable[PodGroup], taken: datetime, before: ViewModel | None
) -> tuple[Sequence[PodGroup], datetime | None]:
    """Return the nodes by fullness, and since when they are in another order (None: they are by fullness).

    So that rows do not jump, they keep their order until one is much fuller, or for _MAX_UNORDERED.
    """
    ordered = sorted(
        groups, key=lambda group: (group.key == "", group.percent is None, -(group.percent or 0), group.key)
    )
    places = {group.key: place for place, group in enumerate(before.nodes)} if before is not None else {}
    if (
        before is None
        or before.arrived is not None
        or places.keys() != {None, *(group.key for group in ordered)}
    ):
        return ordered, None
    kept = sorted(ordered, key=lambda group: places[group.key])
    emptiest, leaps = 100, False
    for group in kept:
        leaps |= (group.percent or 0) - emptiest >= _LEAP_PERCENT
        emptiest = min(emptiest, group.percent or 0)
    since = before.unordered_since or taken
    if kept == ordered or leaps or taken - since >= _MAX_UNORDERED:
        return ordered, None
    return kept, since


def _with_total(ordered: Sequence[PodGroup]) -> Iterable[PodGroup]:
    """Yield all nodes together, then each one."""
    machines = [group for group in ordered if group.key]
    sizes = [group.allocatable for group in machines if group.allocatable]
    yield msgspec.structs.replace(
        _sum(None, ordered),
        used=known_sum([group.used for group in machines]),
        allocatable=sum(sizes) if len(sizes) == len(machines) else None,
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


def _identity(pod: Pod) -> tuple[str, str, str]:
    return pod.kind, pod.namespace, pod.name
