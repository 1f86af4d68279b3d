"""Views, the sentences about them, and the history of locations. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Any, Final

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

_BAR: Final = 6
_DAY: Final = 86_400
_BEHIND_SECONDS: Final = 5
"""What is shown may be that old before the title says so."""
_LATELY: Final = 300
_TITLE: Final = 40
"""Longer contexts or paths are cut to this many cells, so that the counts after them fit."""

EVERYTHING: Final = RowFilter()
"""The filter that selects every row."""


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """The state of following; `loading` until the source has answered."""

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
    """A list, of which node, namespace, workload and pod (None: all), and how much of it.

    With `times` it shows times instead of ages. Pods are in kill order, or `by_eviction` in the kubelet's.
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
    """Return a view as JSON, kept for the next run without its filter."""
    values = {"kind": view.kind.value, "node": view.node, "namespace": view.namespace}
    return {**values, "workload": None if view.workload is None else list(view.workload)}


def view_from_values(values: Mapping[str, Any]) -> View | None:
    """Return the view of such JSON, None if it has another form."""
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


def list_title(  # noqa: PLR0913 - the parts of one line
    view: View,
    shown: int,
    total: int,
    sorted_by: str,
    marked: int = 0,
    ended: int = 0,
    arrived: Arrived | None = None,
    *,
    pressure_key: str = "",
    width: int = 200,
) -> str:
    """Return the title of a list: path, number of rows, number of ended pods, and order.

    While pods arrive it says how many there are so far. Under memory pressure it says whose order decides, in
    more words if the width in cells allows them; `pressure_key` then changes the order. Parts of the path
    that narrow nothing down are left out if it does not fit.
    """
    number = f"{shown:,} of " if shown != total else ""
    number += count(total - ended, view.kind.removesuffix("s")) + (f", {ended:,} ended" if ended else "")
    words = [number]
    if arrived is not None:
        words = [f"{arrived_text(*arrived)} so far"]
        if arrived.total:
            words.append(bar(100 * arrived.items // arrived.total))
    if view.filter:
        words.append(f"filter {view.filter.text}")
    if view.at_risk:
        words.append("only at risk")
    if marked:
        words.append(f"{marked:,} marked")
    path, rows = breadcrumbs(view), "  ".join(words)
    order = _ORDERS.get(sorted_by, f"by {sorted_by}")
    if sorted_by == "RANK" and view.kind in {ListKind.NAMESPACES, ListKind.WORKLOADS}:
        order = "by the worst rank on a node"  # no kill order spans nodes
    orders = [order]
    if pressure_key and view.by_eviction:
        orders = [f"{order}, which decides under memory pressure", f"{order}, decides now", order]
    elif pressure_key:
        orders = [
            f"{order}; under memory pressure the kubelet's eviction order decides: {pressure_key}",
            f"{order}; eviction decides: {pressure_key}",
            f"{order}; {pressure_key}: eviction",
        ]
    titles = [f"{' / '.join(path)}  {rows}  {order}" for order in orders]
    chosen = [part for part in path if not part.startswith("all ")]
    titles.append("  ".join(filter(None, (" / ".join(chosen), rows, orders[-1]))))
    return next((title for title in titles if cell_len(title) <= width), titles[-1])


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
    """Return why nothing is listed, and which key shows rows; `total` counts the rows without a filter."""
    if view.kind not in {ListKind.NODES, ListKind.CLUSTERS} and not view_model.rows.rows:
        scope, selector = view_model.scope, view_model.scope.selector_text
        place = _place_words(scope.namespace, scope.node) + (f" with {escape(selector)}" if selector else "")
        return f"There are no pods{place} of {escape(title)}." if place else _none("pods", title)
    if not total:
        if view.kind in {ListKind.NODES, ListKind.NAMESPACES}:
            return _none(view.kind, title)
        if view.kind is ListKind.DEATHS and not view_model.snapshot.usage:
            return "No death is foreseen: memory usage is unknown."
        return f"There are no {view.kind}{_where(view)}. {keys.first('main.next_pane')} goes to other panes."
    kind = view.kind.removesuffix("s")
    back = keys.first("main.back")
    if view.filter and view.at_risk:
        return f"No {kind} at risk matches {view.filter.text}. {back} clears the filter."
    if view.filter:
        return f"No {kind} matches {view.filter.text}. {back} shows all {total:,} again."
    return f"No {kind} here is at risk. {keys.first('main.at_risk')} shows all {total:,}."


def _none(what: str, title: str) -> str:
    return f"There are no {what} in {escape(title)}."


def _place_words(namespace: str | None, node: str | None) -> str:
    words = ""
    if namespace is not None:
        words += f" in namespace {escape(namespace)}" if namespace else " in no namespace"
    if node is not None:
        words += f" on {group_name(node, 'node')}"
    return words


def _where(view: View) -> str:
    words = ""
    if view.pod is not None:
        words += f" of {escape(view.pod[1])}"
    if view.workload is not None:
        words += f" of {view.workload.kind}/{escape(view.workload.name)}"
    return words + _place_words(view.namespace, view.node)


def ended_pods(view: View, view_model: ViewModel, rows: Sequence[PodRow]) -> int:
    """Return how many listed pods have ended; the view model counts living pods, but of no workload."""
    if view.workload is not None or view.pod is not None:
        return sum([row.pod.is_terminal for row in rows])
    return len(rows) - living_pods(view_model, view.node, view.namespace)


def title_words(
    title: str, view_model: ViewModel | None, now: datetime, *, readonly: bool = False
) -> list[str]:
    """Return the title line: source, counts, the age of usage, and last the version, which is cut first."""
    words = ["kubectl qos", " ".join(shortened(word, _TITLE) for word in escape(title).split(" "))]
    if readonly:
        words.append("read-only")
    if view_model is not None:
        snapshot = view_model.snapshot
        words += [
            count(len([name for name in view_model.by_node if name]), "node"),
            count(view_model.nodes[0].pods, "pod"),
        ]
        if kills := len(view_model.kills_within(_LATELY)):
            words.insert(2, f"{count(kills, 'death')} in {duration(_LATELY)}")
        sampled = oldest_usage(view_model)
        if sampled is None:
            words.append("no usage" if not snapshot.usage else "usage of unknown age")
        elif not snapshot.at:
            words.append(
                f"{_measure(view_model)} {duration(max(int((now - sampled).total_seconds()), 0))} old"
            )
        if version := server_version(snapshot):
            words.append(version)
    return words


def freshness(view_model: ViewModel | None, status: FollowStatus, behind_seconds: float = 0.0) -> str:
    """Return whether the view model is up to date: live, paused, stale and since when, or read once."""
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
    """Return the time, for people who must not take it for the present: `2h ago, 14:02:10 UTC`."""
    date = "" if past.ago_seconds < _DAY else "%Y-%m-%d "
    return f"{duration(past.ago_seconds)} ago, {past.at:{date}%H:%M:%S %Z}"


def bar(percent: int) -> str:
    """Draw a bar of six cells."""
    whole, half = divmod(min(max(percent, 0), 100) * _BAR * 2 // 100, 2)
    return ("━" * whole + "╸" * half).ljust(_BAR)


def _measure(view_model: ViewModel) -> str:
    """Return what usage is: the kubelets' summary has swap, which the kernel counts too."""
    sampled = view_model.rows.sampled
    by_kubelet = sampled is not None and sampled.origin is UsageOrigin.KUBELET_SUMMARY
    return "memory and swap" if by_kubelet else "usage"


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
    """Where a person is: the view, and the screen above it, of the pod as it was.

    `edits` fill the fields of an edit. `row` is the key of the row where the cursor was when the location was
    left.
    """

    view: View
    detail: Detail | None = None
    pod: Pod | None = None
    edits: tuple[Edit, ...] = ()
    row: Hashable = field(default=None, compare=False)


class Navigation:
    """The locations that were visited, and which of them is shown: back and forward, as in a browser."""

    MOST: Final = 100

    def __init__(self, first: Location) -> None:
        self._locations = [first]
        self._index = 0

    @property
    def location(self) -> Location:
        return self._locations[self._index]

    def go(self, location: Location) -> None:
        """Go to another location; those that lay ahead are forgotten."""
        if location != self.location:
            self._locations = [*self._locations[: self._index + 1], location][-self.MOST :]
            self._index = len(self._locations) - 1

    def replace(self, location: Location) -> None:
        self._locations[self._index] = location

    def back(self) -> Location | None:
        return self._moved(-1)

    def forward(self) -> Location | None:
        """Return the location that was left with back, None at the last."""
        return self._moved(1)

    def _moved(self, by: int) -> Location | None:
        index = self._index + by
        if not 0 <= index < len(self._locations):
            return None
        self._index = index
        return self.location
