"""Views, the sentences about them, and the history of locations. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Any, Final, NamedTuple

from rich.cells import cell_len

from kubectl_qos.analysis.group_table import server_version
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.cluster.source import LIVE, Health, PastTime
from kubectl_qos.edit.edits import Edit
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Arrived, Scope
from kubectl_qos.k8s.usage import PodKey, UsageOrigin
from kubectl_qos.present.format import arrived_text, count, duration, escape, shortened
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.view_model import ViewModel, living_pods, oldest_usage

_BAR_CELLS: Final = 6
_DAY_SECONDS: Final = 86_400
_BEHIND_SECONDS: Final = 5
"""From this age on, the title says how far the screen is behind."""
_RECENT_SECONDS: Final = 300
"""For how long the title counts a death."""
_MAX_SOURCE_WIDTH: Final = 40
"""Longer contexts or paths are cut, so that the counts after them fit."""

EVERYTHING: Final = RowFilter()
"""The filter that selects every row."""


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """How the source is followed; `loading` until it has answered."""

    is_live: bool
    loading: bool = False
    paused: bool = False
    health: Health = LIVE


class ListKind(StrEnum):
    """The kinds of lists; the value is the name."""

    CLUSTERS = "clusters"
    NODES = "nodes"
    NAMESPACES = "namespaces"
    WORKLOADS = "workloads"
    PODS = "pods"
    CONTAINERS = "containers"
    DEATHS = "deaths"


@dataclass(frozen=True, slots=True)
class View:
    """What the main screen lists: a kind of things, of one node, namespace, workload or pod (None: of all).

    `at_risk` lists only rows at risk, `wide` has all columns, `times` has times instead of ages. Pods are in
    kill order, or in eviction order with `by_eviction`.
    """

    kind: ListKind = ListKind.PODS
    node: str | None = None
    namespace: str | None = None
    workload: Workload | None = None
    pod: PodKey | None = None
    filter: RowFilter = EVERYTHING
    at_risk: bool = False
    wide: bool = False
    times: bool = False
    by_eviction: bool = False

    @property
    def unfiltered(self) -> View:
        """Return the same list with all rows, only the columns that fit, and ages."""
        return replace(self, filter=EVERYTHING, at_risk=False, wide=False, times=False)

    def within(self, scope: Scope) -> View:
        """Return the view narrowed to the node and namespace of the scope, where it has none itself."""
        node = scope.node if self.node is None else self.node
        return replace(
            self, node=node, namespace=scope.namespace if self.namespace is None else self.namespace
        )

    def pod_rows(self, view_model: ViewModel) -> Sequence[PodRow]:
        """Return the pods of the node, namespace and workload, in kill order."""
        rows = view_model.rows.rows
        if self.node is not None:
            ranked = view_model.rows.nodes.get(self.node)
            rows = ranked.rows if ranked is not None else ()
        if self.namespace is not None:
            rows = tuple([row for row in rows if row.namespace == self.namespace])
        if self.workload is not None:
            rows = tuple([row for row in rows if find_workload(row.pod) == self.workload])
        return rows


def view_values(view: View) -> dict[str, Any]:
    """Return what is saved of a view, as JSON: everything but its filter and how it is shown."""
    values = {"kind": view.kind.value, "node": view.node, "namespace": view.namespace}
    return {**values, "workload": None if view.workload is None else list(view.workload)}


def view_from_values(values: Mapping[str, Any]) -> View | None:
    """Return the saved view, None if the JSON has another form."""
    try:
        workload = values.get("workload")
        view = View(
            kind=ListKind(str(values.get("kind"))),
            node=values.get("node"),
            namespace=values.get("namespace"),
            workload=None if workload is None else Workload(*workload),
        )
    except (TypeError, ValueError):
        return None
    texts = (view.node, view.namespace, *(view.workload or ()))
    return view if all(text is None or isinstance(text, str) for text in texts) else None


_ORDERS: Final = {"RANK": "in kill order", "EVICTION": "in eviction order", "ETA": "the most urgent first"}
"""The title's words for the order of a column."""


class RowCounts(NamedTuple):
    """The numbers in the title of a list: `total` without a filter, `arrived` while pods still arrive."""

    shown: int
    total: int
    marked: int = 0
    ended: int = 0
    arrived: Arrived | None = None


def list_title(
    view: View, counts: RowCounts, sorted_by: str, *, eviction_key: str = "", width: int = 200
) -> str:
    """Return the title of a list: path, number of rows, and order.

    The `eviction_key` switches between kill order and eviction order. It is given only under memory pressure,
    and then the title also says which order decides. The order is worded as fully as `width` cells allow; if
    that is not enough, parts of the path such as `all nodes` are left out.
    """
    path, rows = breadcrumbs(view), _count_words(view, counts)
    orders = _order_words(view, sorted_by, eviction_key)
    for order in orders:
        title = f"{' / '.join(path)}  {rows}  {order}"
        if cell_len(title) <= width:
            return title
    short_path = " / ".join(part for part in path if not part.startswith("all "))
    return "  ".join(filter(None, (short_path, rows, orders[-1])))


def _count_words(view: View, counts: RowCounts) -> str:
    """Return `2 of 58 pods, 2 ended  filter api  1 marked`."""
    if counts.arrived is not None:
        words = [f"{arrived_text(*counts.arrived)} so far"]
        if counts.arrived.total:
            words.append(bar(100 * counts.arrived.items // counts.arrived.total))
    else:
        shown = f"{counts.shown:,} of " if counts.shown != counts.total else ""
        living = count(counts.total - counts.ended, view.kind.removesuffix("s"))
        words = [f"{shown}{living}" + (f", {counts.ended:,} ended" if counts.ended else "")]
    if view.filter:
        words.append(f"filter {view.filter.text}")
    if view.at_risk:
        words.append("only at risk")
    if counts.marked:
        words.append(f"{counts.marked:,} marked")
    return "  ".join(words)


def _order_words(view: View, sorted_by: str, eviction_key: str) -> list[str]:
    """Return the order in words, in all wordings, the longest first."""
    order = _ORDERS.get(sorted_by, f"by {sorted_by}")
    if sorted_by == "RANK" and view.kind in {ListKind.NAMESPACES, ListKind.WORKLOADS}:
        order = "by the worst rank on a node"  # no kill order spans nodes
    if not eviction_key:
        return [order]
    if view.by_eviction:
        return [f"{order}, which decides under memory pressure", f"{order}, decides now", order]
    return [
        f"{order}; under memory pressure the kubelet's eviction order decides: {eviction_key}",
        f"{order}; eviction decides: {eviction_key}",
        f"{order}; {eviction_key}: eviction",
    ]


def breadcrumbs(view: View) -> list[str]:
    """Return the path to what is listed: node, namespace, workload and pod."""
    if view.kind is ListKind.NODES:
        return ["cluster"]
    if view.kind in {ListKind.NAMESPACES, ListKind.CLUSTERS}:
        return [view.kind.value]
    path = [group_name(view.node, "node"), group_name(view.namespace, "namespace")]
    if view.workload is not None:
        path.append(escape(f"{view.workload.kind}/{view.workload.name}"))
    if view.pod is not None:
        path.append(escape(view.pod[1]))
    return path


def empty_sentence(view: View, view_model: ViewModel, title: str, total: int, keys: Keys) -> str:
    """Say why a list is empty, and which key shows rows. `total` is the number of rows without a filter."""
    if view.kind not in {ListKind.NODES, ListKind.CLUSTERS} and not view_model.rows.rows:
        scope, selector = view_model.scope, view_model.scope.selector_text
        place = _place_words(scope.namespace, scope.node) + (f" with {escape(selector)}" if selector else "")
        return f"There are no pods{place} of {escape(title)}." if place else _none("pods", title)
    if not total:
        if view.kind in {ListKind.NODES, ListKind.NAMESPACES}:
            return _none(view.kind, title)
        if view.kind is ListKind.DEATHS and not view_model.snapshot.usage:
            return "No death is foreseen: memory usage is unknown."
        words = f" of {escape(view.pod[1])}" if view.pod is not None else ""
        if view.workload is not None:
            words += f" of {view.workload.kind}/{escape(view.workload.name)}"
        words += _place_words(view.namespace, view.node)
        return f"There are no {view.kind}{words}. {keys.first('main.next_pane')} goes to other panes."
    kind = view.kind.removesuffix("s")
    back = keys.first("main.back")
    if view.filter and view.at_risk:
        return f"No {kind} at risk matches {view.filter.text}. {back} clears the filter."
    if view.filter:
        return f"No {kind} matches {view.filter.text}. {back} shows all {view.kind} again."
    return f"No {kind} here is at risk. {keys.first('main.at_risk')} shows all {view.kind}."


def _none(what: str, title: str) -> str:
    return f"There are no {what} in {escape(title)}."


def _place_words(namespace: str | None, node: str | None) -> str:
    words = ""
    if namespace is not None:
        words += f" in namespace {escape(namespace)}" if namespace else " in no namespace"
    if node is not None:
        words += f" on {group_name(node, 'node')}"
    return words


def ended_pods(view: View, view_model: ViewModel, rows: Sequence[PodRow]) -> int:
    """Return how many listed pods have ended."""
    if view.workload is not None or view.pod is not None:
        return sum([row.pod.is_terminal for row in rows])
    return len(rows) - living_pods(view_model, view.node, view.namespace)


def title_words(
    title: str, view_model: ViewModel | None, now: datetime, *, readonly: bool = False
) -> list[str]:
    """Return the words of the title line; without room, the last ones but the usage are left out first."""
    words = ["kubectl qos", " ".join(shortened(word, _MAX_SOURCE_WIDTH) for word in escape(title).split(" "))]
    if readonly:
        words.append("read-only")
    if view_model is not None:
        snapshot = view_model.snapshot
        words += [
            count(len(view_model.node_names), "node"),
            count(view_model.nodes[0].pods, "pod"),
        ]
        if kills := len(view_model.kills_within(_RECENT_SECONDS)):
            words.insert(2, f"{count(kills, 'death')} in {duration(_RECENT_SECONDS)}")
        if usage := usage_age(view_model, now):
            words.append(usage)
        if version := server_version(snapshot):
            words.append(version)
    return words


def usage_age(view_model: ViewModel, now: datetime) -> str:
    """Return how old the oldest usage is: `usage 15s old`; "" in the past, where all is as of one time."""
    snapshot, sampled = view_model.snapshot, oldest_usage(view_model)
    if sampled is None:
        return "no usage" if not snapshot.usage else "usage of unknown age"
    if snapshot.at:
        return ""
    usage = view_model.rows.sampled
    # The kubelets' summary has swap, which the kernel counts too.
    by_kubelet = usage is not None and usage.origin is UsageOrigin.KUBELET_SUMMARY
    old = duration(max(int((now - sampled).total_seconds()), 0))
    return f"{'memory and swap' if by_kubelet else 'usage'} {old} old"


def freshness(view_model: ViewModel | None, status: FollowStatus, behind_seconds: float = 0.0) -> str:
    """Say whether the view model is up to date: live, paused, stale since when, or read only once."""
    health = status.health
    if health.error is not None:
        seconds = math.ceil(health.retry_at - time.monotonic())
        retry = f", retry in {seconds} s" if seconds > 0 else ""
        since = health.since
        if view_model and since:
            return f"! stale since {since:%H:%M:%S %Z}{retry}"
        is_refusal = isinstance(health.error, ApiError) and health.error.status in {401, 403}
        return f"! {'refused' if is_refusal else 'no answer'}{retry}"
    if view_model is None or status.loading or view_model.arrived is not None:
        return "loading …"
    if not status.is_live:
        return "not live"
    if status.paused:
        return "paused"
    return f"live, {behind_seconds:.0f} s behind" if behind_seconds >= _BEHIND_SECONDS else "live"


def past_words(past: PastTime) -> str:
    """Return a time of the past: `2h ago, 14:02:10 UTC`."""
    date = "" if past.ago_seconds < _DAY_SECONDS else "%Y-%m-%d "
    return f"{duration(past.ago_seconds)} ago, {past.at:{date}%H:%M:%S %Z}"


def bar(percent: int) -> str:
    """Return a bar of _BAR_CELLS cells."""
    whole, half = divmod(min(max(percent, 0), 100) * _BAR_CELLS * 2 // 100, 2)
    return ("━" * whole + "╸" * half).ljust(_BAR_CELLS)


def group_name(key: str | None, kind: str) -> str:
    """Return `worker-1`, `all nodes` for None, and `no node` for the pods without one."""
    return f"all {kind}s" if key is None else escape(key) or f"no {kind}"


def pod_name(pod: Pod) -> str:
    """Return the name of a pod or the template of a workload in a sentence: `pod shop/web-0`."""
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name
    return f"{pod.kind.lower()} {escape(name)}"


class Detail(Enum):
    """The screens about one pod."""

    EXPLAIN = auto()
    EDIT = auto()
    TREE = auto()
    COMPARE = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the UI: a view and, above it, perhaps a screen about a pod as it was then.

    `edits` fill the fields of the edit screen. `row` is the key of the row that the cursor was on.
    """

    view: View
    detail: Detail | None = None
    pod: Pod | None = None
    edits: tuple[Edit, ...] = ()
    row: Hashable = field(default=None, compare=False)


class Navigation:
    """The visited locations, with back and forward as in a browser."""

    MOST: Final = 100

    def __init__(self, first: Location) -> None:
        self._locations = [first]
        self._index = 0

    @property
    def location(self) -> Location:
        return self._locations[self._index]

    def go(self, location: Location) -> None:
        """Go to another location. Forward has nothing then."""
        if location != self.location:
            self._locations = [*self._locations[: self._index + 1], location][-self.MOST :]
            self._index = len(self._locations) - 1

    def replace(self, location: Location) -> None:
        self._locations[self._index] = location

    def back(self) -> Location | None:
        return self._moved(-1)

    def forward(self) -> Location | None:
        return self._moved(1)

    def _moved(self, by: int) -> Location | None:
        index = self._index + by
        if not 0 <= index < len(self._locations):
            return None
        self._index = index
        return self.location
