"""The lists of nodes, namespaces and workloads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from types import MappingProxyType
from typing import Final, TypeVar, cast

from msgspec import structs
from rich.cells import cell_len

from kubectl_qos.analysis.deaths import DeathRow, most_important
from kubectl_qos.analysis.group_table import (
    GroupRow,
    NodeRow,
    NodeRows,
    build_node_rows,
    namespace_rows,
    workload_rows,
    worst_node_first,
)
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import binary, count, escape, eta, shortened
from kubectl_qos.present.list_notes import no_usage_reason, node_table_notes
from kubectl_qos.present.next_death import (
    death_condition,
    distance,
    foretold,
    killer_label,
    short_victim,
    victim,
)
from kubectl_qos.present.node_columns import (
    NAMESPACE_COLUMNS,
    NODE_COLUMNS,
    RESERVED,
    WORKLOAD_COLUMNS,
    NodeColumn,
    memory_bar,
    memory_ticks,
)
from kubectl_qos.present.output import column
from kubectl_qos.present.pod_columns import PSI_COLUMNS
from kubectl_qos.present.reasons import CLASSES, stalls
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.tui.filters import Fields
from kubectl_qos.tui.lists.base import ListDefinition, ListRows
from kubectl_qos.tui.lists.panes import in_one_line
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.graph import CLASS_TOKENS, LEGEND, Parts, fullness_token, node_graph, sparkline
from kubectl_qos.tui.widgets.line_table import Spans
from kubectl_qos.tui.widgets.table import GAP, GUTTER, INVERSE, Layout, Token
from kubectl_qos.tui.widgets.text_view import TextLayout, paragraphs, stacked

KeyT = TypeVar("KeyT", bound=Hashable)

_SQUEEZED: Final[Mapping[str, int]] = {"workload": 24, "namespace": 24, "worst": 18}


class _GroupList(ListDefinition[GroupRow[KeyT]]):
    """What workloads and namespaces have in common; the worst rank comes first."""

    natural = "rank"
    squeezed: Mapping[str, int] = _SQUEEZED

    def __init__(self, pods: PodList) -> None:
        self._pods = pods

    @abstractmethod
    def title(self, row: GroupRow[KeyT]) -> str:
        """Return the name of the group in a sentence."""

    def key(self, row: GroupRow[KeyT]) -> Hashable:
        return row.key

    def token(self, row: GroupRow[KeyT], key: str, width: int) -> Token:
        if row.victims and key in {"rank", "worst"}:
            return self._pods.rank_token(row.worst)
        if key == "qos" and len(row.classes) == 1:
            return CLASSES[row.classes[0][0]].token
        if key in {"namespace", "kind", "node", "request", "limit"} and key != self.name:
            return "muted"
        return "warning" if key == "at_risk" and row.at_risk else ""

    def is_at_risk(self, row: GroupRow[KeyT]) -> bool:
        return bool(row.at_risk)

    def panel(self, row: GroupRow[KeyT], view_model: ViewModel) -> TextLayout:
        """Explain the pod of the group that dies first, then count the pods at risk."""
        pod = self.pod_of(row, view_model)
        words = f"{self.title(row)}: {count(row.pods, 'pod')}"
        if row.victims:
            words += f", {count(row.victims, 'next victim')} of a full node"
        if row.at_risk:
            words += f", {row.at_risk} at risk"
        title = paragraphs((words, ""))
        return title if pod is None else stacked(self._pods.panel(pod, view_model), title)

    def pod_of(self, row: GroupRow[KeyT], view_model: ViewModel) -> PodRow | None:
        """Return the pod that is the first to die on its node, else the one with the worst rank."""
        for coming in view_model.first_deaths:
            if self.victim_key(coming, view_model) == row.key:
                return view_model.row_on(coming.node, coming.death.key)
        return view_model.row_on(row.worst.node, row.worst.key[:2])

    def node_of(self, row: GroupRow[KeyT]) -> str:
        return row.worst.node


class WorkloadList(_GroupList[Workload]):
    """Deployments, StatefulSets and so on of the pods of a node or namespace."""

    kind = ListKind.WORKLOADS
    name = "workload"
    columns = WORKLOAD_COLUMNS
    fields = Fields(WORKLOAD_COLUMNS, lambda row: row.worst.pod.metadata.labels)
    squeezed = MappingProxyType({**_SQUEEZED, "namespace": 11})
    importance = (
        "workload rank pods qos namespace oom_score memory kind workload namespace worst at_risk node worst"
        " request limit restarts victims request_percent unlimited"
    )

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        return ListRows(workload_rows(view.pod_rows(view_model)), view_model.notes)

    def title(self, row: GroupRow[Workload]) -> str:
        kind, namespace, name = row.key
        return escape(f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}")

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        pod = view_model.row_on(coming.node, coming.death.key)
        return find_workload(pod.pod) if pod is not None else None

    def opened(self, view: View, row: GroupRow[Workload]) -> View | None:
        return replace(view.unfiltered, kind=ListKind.PODS, workload=row.key)


class NamespaceList(_GroupList[str]):
    """Every namespace that has pods."""

    kind = ListKind.NAMESPACES
    name = "namespace"
    columns = NAMESPACE_COLUMNS
    fields = Fields(NAMESPACE_COLUMNS, None)
    importance = (
        "namespace rank pods qos oom_score kind memory namespace worst at_risk node worst request limit"
        " restarts victims request_percent unlimited"
    )

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        return ListRows(namespace_rows(view.pod_rows(view_model)), view_model.notes)

    def title(self, row: GroupRow[str]) -> str:
        return f"namespace {escape(row.key)}" if row.key else "no namespace"

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        return coming.death.key[0]

    def opened(self, view: View, row: GroupRow[str]) -> View | None:
        return replace(view.unfiltered, kind=ListKind.PODS, namespace=row.key)


_OF_FILES: Final = frozenset(
    {"victim_qos", "victim_others", "eviction_configured", "soft_eviction", "to_soft_eviction"}
    | {"death_in", "death_by"}
)
"""Columns for JSON and CSV, which other columns show too."""
_MIN_BAR, _MAX_BAR = 20, 60
_NAMED_VICTIMS: Final = 4
"""How many of the next victims the panel names."""
_MIN_DEATH_COLUMN: Final = 44
"""If the column of the next death is narrower, the later deaths are in separate lines."""
_DEATHS_PER_LINE: Final = 2
_MIN_NAME: Final = 9
_FULL_HEIGHT: Final = 3
"""The last line of a row with more lines than this is empty."""
_MIN_GRAPH: Final = 2
"""The least lines of a graph."""


def _bar_column(cells: int) -> NodeColumn:
    return column(
        "memory",
        lambda row: None if row.used_percent is None else round(row.used_percent, 1),
        f"the node's memory: {LEGEND}, {RESERVED} reserved for the system",
        width=cells,
        cell=lambda row: "".join(part.text for part in memory_bar(row, cells)) or "?",
        sort_key=worst_node_first,
    )


def _death_column(whole: NodeColumn, cells: int) -> NodeColumn:
    """Return the column for a width in cells: names and clauses are cut, but never killer and time."""

    def cell(row: NodeRow, now: datetime) -> str:
        text = whole.cell(row, now).removesuffix(death_condition(row.death, names_other=False))
        name = victim(row.death) if row.death is not None else ""
        room = cells - cell_len(text) + len(name)
        shorter = text.replace(name, shortened(name, room), 1) if room >= _MIN_NAME else text
        return in_one_line(shorter, cells)

    return structs.replace(whole, cell=cell)


_COLUMNS: Final = {key: column for key, column in NODE_COLUMNS.items() if key not in _OF_FILES}


class NodeList(ListDefinition[NodeRow]):
    """Nodes with bad conditions first, then the fullest."""

    kind = ListKind.NODES
    name = "node"
    natural = "memory"
    columns = {"node": _COLUMNS["node"], "memory": _bar_column(_MIN_BAR)} | _COLUMNS
    fields = Fields(NODE_COLUMNS, None)
    importance = (
        "node memory used_percent next_death next_death node pressure psi60 psi10 pods worst_percent"
        " requests_percent limits_percent guaranteed burstable best_effort capacity used to_eviction"
    )
    squeezed: Mapping[str, int] = MappingProxyType({"node": 20, "next_death": 26})
    only_known = frozenset(psi.key for psi in PSI_COLUMNS)
    most_height = 8

    def __init__(self, trends: Trends, newest: Callable[[], ViewModel | None] = lambda: None) -> None:
        self._trends = trends
        self._newest = newest
        self._drawn: tuple[NodeRow | None, tuple[int, int], list[Parts]] = None, (0, 0), []

    def _is_in_danger(self, row: NodeRow) -> bool:
        view_model = self._newest()
        return view_model is not None and view_model.is_in_danger(row.name)

    def row_line(self, row: NodeRow, number: int, height: int, layout: Layout[NodeRow], width: int) -> Spans:
        """Return a line of the graph, or usage so far and the bar's ticks, and then later deaths.

        If the column of the next death is wide enough, the later deaths are below it, one a line. Otherwise
        the graph begins a line later, and deaths are in the lines without a graph.
        """
        view_model = self._newest()
        if view_model is None or number == height - 1 >= _FULL_HEIGHT:
            return ()
        ends = accumulate((cells + GAP for cells in layout.widths), initial=GUTTER)
        starts = dict(zip(layout.by_key, ends, strict=False))
        column = starts.get("next_death", width)
        is_narrow = width - column < _MIN_DEATH_COLUMN
        most_lines = max(height - 1, _FULL_HEIGHT)
        first = 1 + is_narrow
        graph_width = (width if is_narrow else column) - GUTTER - GAP
        graph = self._graph(row, min(height, most_lines) - first, graph_width)
        spans: Spans = ()
        if graph and number >= first:
            spans = ((" " * GUTTER, ""), *graph[number - first])
        elif number == first and "memory" in starts and row.memory.used_bytes is not None:
            samples = self._trends.total(view_model.pod_keys(row.name))
            spans = _trend_spans(row, samples, starts["memory"] - GUTTER, layout.by_key["memory"])
        if not is_narrow:
            begin, end = number, number + 1
        elif number == 1 or (number > first and not graph):
            begin = int("next_death" in starts) + _DEATHS_PER_LINE * max(number - first, 0)
            end = begin + _DEATHS_PER_LINE
        else:
            return spans
        most = most_lines * _DEATHS_PER_LINE if is_narrow and height > _FULL_HEIGHT else most_lines
        node_deaths = view_model.deaths(row.name)
        deaths = most_important(node_deaths.deaths, most)[begin:end] if node_deaths is not None else ()
        gap = (GUTTER if is_narrow else column) - sum(cell_len(text) for text, _ in spans)
        room = width // _DEATHS_PER_LINE if is_narrow else width - column
        for death in deaths:
            spans += ((" " * gap, ""), *_death_spans(death, room, is_narrow=is_narrow))
            gap = GAP
        return spans

    def _graph(self, row: NodeRow, height: int, width: int) -> list[Parts]:
        """Return the lines of a node's graph, none without room. The last graph is cached."""
        if self._drawn[0] is not row or self._drawn[1] != (height, width):
            classes = self._trends.of_node(row.name) if height >= _MIN_GRAPH else ()
            lines = node_graph(row, classes, height, width)
            self._drawn = row, (height, width), lines
        return self._drawn[2]

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Build the rows of all nodes; those of unchanged nodes are reused."""
        cache = cast("NodeRows", before.cache) if before is not None else None
        nodes = build_node_rows(view_model.snapshot, lambda *_: True, cache)
        return ListRows(nodes.rows, tuple(node_table_notes(view_model.snapshot, nodes)), nodes)

    def fit(
        self,
        columns: Sequence[NodeColumn],
        rows: Sequence[NodeRow],
        now: datetime,
        available: int,
        importance: str,
    ) -> Layout[NodeRow]:
        layout = super().fit(columns, rows, now, available, importance)
        has_bars = any(row.memory.used is not None and row.capacity for row in rows)
        room = max(available - layout.line_width - GAP, 0)
        shown, widths = list(layout.columns), list(layout.widths)
        for index, node_column in enumerate(layout.columns):
            if node_column.key == "memory" and has_bars:
                widths[index] = max(widths[index], min(widths[index] + room, _MAX_BAR))
                shown[index] = _bar_column(widths[index])
            elif node_column.key == "next_death":
                shown[index] = _death_column(node_column, widths[index])
        return Layout(shown, widths)

    def key(self, row: NodeRow) -> Hashable:
        return row.name

    def token(self, row: NodeRow, key: str, width: int) -> Token:
        if key == "memory":
            bar = memory_bar(row, width)
            return tuple((len(part.text), INVERSE * part.is_letter + CLASS_TOKENS[part.qos]) for part in bar)
        if key in {"node", "pressure", "used_percent"} and row.bad_conditions:
            return "error"
        if key == "next_death":
            return "victim" if self._is_in_danger(row) else ""
        if key == "used_percent" and (row.used_percent or 0) >= 90:
            return "warning"
        return "muted" if key in {"capacity", "requests", "limits", "allocatable"} else ""

    def is_at_risk(self, row: NodeRow) -> bool:
        """Return whether it reports a bad condition, or its pods may use more memory than it has."""
        return bool(row.bad_conditions) or (row.worst_percent or 0) > 100

    def panel(self, row: NodeRow, view_model: ViewModel) -> TextLayout:
        first, *others = _sentences(row, view_model)
        token = "wrong" if self._is_in_danger(row) else "answer"
        return paragraphs((first, token), *((sentence, "") for sentence in others))

    def opened(self, view: View, row: NodeRow) -> View | None:
        return replace(view.unfiltered, kind=ListKind.PODS, node=row.name)

    def pod_of(self, row: NodeRow, view_model: ViewModel) -> PodRow | None:
        """Return the pod that dies next on the node, else the kernel's next victim; None if not in scope."""
        dying = view_model.row_on(row.name, row.death.key) if row.death is not None else None
        return dying or next((pod for pod in _victims(row, view_model) if pod.is_next_victim), None)

    def node_of(self, row: NodeRow) -> str:
        return row.name

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        return coming.node


def _trend_spans(row: NodeRow, samples: Sequence[int], width: int, bar_width: int) -> Spans:
    """Return the usage so far, and the ticks of the bar that begins after `width` cells."""
    trend = sparkline(samples, row.capacity and row.capacity >> 10, width - GAP)
    token = fullness_token(row.memory.used_bytes or 0, row.capacity)
    return ((" " * GUTTER, ""), (trend.ljust(width), token), (memory_ticks(row, bar_width), "faint"))


def _death_spans(death: NextDeath, room: int, *, is_narrow: bool) -> Spans:
    """Return a death in a width in cells; only the victim's name is shortened."""
    far, name = f"{distance(death)} ", short_victim(death) if is_narrow else victim(death)
    how = "".join(f", {words}" for words in (killer_label(death), eta(death.seconds)) if words)
    return ((far + shortened(name, max(room - GAP - len(far + how), GAP)), ""), (how, "muted"))


def _victims(row: NodeRow, view_model: ViewModel) -> list[PodRow]:
    ranked = view_model.rows.nodes.get(row.name)
    pods = [pod for pod in ranked.rows if pod.rank is not None] if ranked is not None else []
    return sorted(pods, key=lambda pod: (pod.rank, pod.key))[:_NAMED_VICTIMS]


def _sentences(row: NodeRow, view_model: ViewModel) -> list[str]:
    name = escape(row.name)
    sentences = []
    if row.death is not None:
        sentences.append(f"{name}: {foretold(row.death)}")
    sentences += stalls(row.psi.avg60)
    if row.victim is None:
        sentences += [f"{name}: {_why_no_victim(row, view_model.snapshot)}"]
    else:
        victims = _victims(row, view_model)
        first = _named(row.victim.key, row.victim.oom_score, row.victim.qos)
        if victims and victims[0].is_next_victim:
            first = _named_row(victims.pop(0))
        sentences.append(f"{name}: if memory runs out, first to die: {first}")
        ranked = view_model.rows.nodes.get(row.name)
        is_whole = ranked is not None and ranked.ranked == sum(pod.rank is not None for pod in ranked.rows)
        if victims and is_whole:
            sentences.append(f"then {', '.join(map(_named_row, victims))}")
    nearest = row.nearest_eviction
    if nearest is not None:
        if row.to_eviction is not None and row.to_eviction <= 0:
            sentences.append("the kubelet is evicting pods")
        elif nearest <= 0:
            sentences.append("the kubelet evicts pods after its grace period")
        else:
            sentences.append(
                f"the kubelet evicts pods once {binary(nearest)} more is used"
                f"{', at the latest' if row.is_bound else ''}"
            )
    return sentences


def _why_no_victim(row: NodeRow, snapshot: Snapshot) -> str:
    if not row.memory.pods:
        return "it has no pods, nothing would be killed"
    if row.capacity is None:
        return "the kill order is unknown: the node's memory capacity is unknown"
    if row.memory.used is None:
        return no_usage_reason(snapshot)
    return "none of its pods can be killed, or their order is unknown"


def _named_row(row: PodRow) -> str:
    return _named((row.namespace, row.name), row.score, row.qos)


def _named(key: PodKey, oom_score: int | None, qos: QosClass) -> str:
    score = "" if oom_score is None else f"{oom_score}, "
    return f"{escape('/'.join(key))} ({score}{CLASSES[qos].letter})"
