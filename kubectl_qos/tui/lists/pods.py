"""The lists of pods, of containers, and of coming deaths."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, cast

from msgspec import structs
from rich.cells import cell_len

from kubectl_qos.analysis.deaths import FEW_NODES, DeathRow, Deaths, death_rows
from kubectl_qos.analysis.pod_table import PodRow, PodRows, build_rows, is_at_risk
from kubectl_qos.analysis.trends import MOST, STEADY, Trends
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present import next_death
from kubectl_qos.present.format import NONE, UNKNOWN, count, escape, eta, full_name, rounded, shortened
from kubectl_qos.present.list_notes import pod_table_notes
from kubectl_qos.present.next_death import (
    bounded,
    distance,
    foretold,
    killer_label,
    killer_words,
    racing,
    victim,
)
from kubectl_qos.present.output import NUMBER, Align, column, largest_first
from kubectl_qos.present.pod_columns import (
    ALL_COLUMNS,
    BY_KEY,
    HISTORY_COLUMNS,
    PSI_COLUMNS,
    WIDE_KEYS,
    PodColumn,
)
from kubectl_qos.present.reasons import CLASSES, why_lines
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.qos.ranking import Flag
from kubectl_qos.qos.simulation.node_state import NodeState
from kubectl_qos.tui.filters import PODS, Fields
from kubectl_qos.tui.lists.base import ListDefinition, ListRows
from kubectl_qos.tui.view import ListKind, View, group_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.graph import fullness_token, sparkline
from kubectl_qos.tui.widgets.line_table import Spans
from kubectl_qos.tui.widgets.table import MAX_WIDTH, Layout, Token, moved
from kubectl_qos.tui.widgets.text_view import TextLayout, paragraphs, stacked

_FLAGS: Final = {
    Flag.CRITICAL: ("CR", "success"),
    Flag.PRIORITY: ("PR", "warning"),
    Flag.NEAR_LIMIT: ("NL", "warning"),
    Flag.OVER_REQUEST: ("OR", "warning"),
    Flag.RESIZING: ("RS", "accent"),
    Flag.STATIC: ("ST", "muted"),
    Flag.CLASS_DIFFERS: ("C≠", "warning"),
}
"""Two letters for each flag, which the panel spells out, and the token of its style."""
_IMPORTANT: Final = (
    "rank eviction pod memory qos namespace flags oom_score eta pod peak frees oom_score_adj growth node p99"
    " limit_percent dies trend flags psi60 request limit psi10 node namespace restarts age priority risk"
)
"""A key listed twice is shown cut first, whole later."""

SQUEEZED: Final = {"container": 16, "pod": 18, "node": 12, "namespace": 11, "flags": 8}

COMPACT_BELOW: Final = 120
"""Narrower tables have shorter texts."""
BARS_FROM: Final = 82
"""From this width on there is a bar next to memory."""

_FIRST: Final = ("rank", "namespace", "pod", "node")
_OTHERS: Final = tuple(key for key in WIDE_KEYS if key not in {*_FIRST, "dies", "frees", "eviction", "risk"})
_AFTER_MEMORY: Final = _OTHERS.index("memory") + 1
_PSI: Final = tuple(psi.key for psi in PSI_COLUMNS)
_DEATH: Final = (*_PSI, "frees", "eta", "dies")
_ORDER: Final = (
    *(*_FIRST, *_OTHERS[:_AFTER_MEMORY], "trend", "peak", "p99", "growth"),
    *(*_DEATH, *_OTHERS[_AFTER_MEMORY:]),
)
IMPORTANCE: Final = " ".join((_IMPORTANT, *(key for key in _ORDER if key not in _IMPORTANT.split())))
"""Columns, those first that are left out last; see fitting_columns."""
NO_RANK_YET: Final = "its rank among the pods of its node is known once all pods have arrived"
_DIED_SECONDS: Final = 15
"""For how long the row of a pod is highlighted after it died."""
TREND_WIDTH: Final = 8
_BAR_WIDTH: Final = 5
_NUMBER_WIDTH: Final = 7
_CHIPS_WIDTH: Final = 5
_MEMORY_WIDTH: Final = _BAR_WIDTH + 1 + _NUMBER_WIDTH
_MIN_VICTIM_WIDTH: Final = 12
"""The cells that a heading keeps of a victim's name."""
_MIN_NODE_WIDTH: Final = 12


def memory_cell(row: PodRow, now: datetime) -> str:
    """Return the memory in use, after a bar that shows how much of the limit it is, if there is one."""
    number = _dashed(BY_KEY["memory"]).cell(row, now).rjust(_NUMBER_WIDTH)
    if row.limit_percent is None:
        return " " * (_BAR_WIDTH + 1) + number
    filled = _filled_cells(row.limit_percent)
    return "━" * filled + "─" * (_BAR_WIDTH - filled) + " " + number


def _filled_cells(percent: float) -> int:
    return min(round(percent * _BAR_WIDTH / 100), _BAR_WIDTH)


def _dashed(column: PodColumn) -> PodColumn:
    """Return the column with `-` for unknown and none: the words would widen a column of numbers."""
    if column.align is not Align.RIGHT:
        return column

    def cell(row: PodRow, now: datetime) -> str:
        text = column.cell(row, now)
        return "-" if text in {NONE, UNKNOWN} else text

    return structs.replace(column, cell=cell)


_SHOWN: Final = {
    "qos": structs.replace(
        BY_KEY["qos"], width=3, cell=lambda row, _: f"{CLASSES[row.qos].letter} {CLASSES[row.qos].glyph}"
    ),
    "flags": structs.replace(
        BY_KEY["flags"],
        width=_CHIPS_WIDTH,
        cell=lambda row, _: " ".join([_FLAGS[flag][0] for flag in row.flags]),
    ),
    "eviction": structs.replace(BY_KEY["eviction"], align=Align.LEFT),
}
_BARS: Final = {"memory": structs.replace(BY_KEY["memory"], width=_MEMORY_WIDTH, cell=memory_cell)}
_COMPACT: Final = {"frees": structs.replace(_dashed(BY_KEY["frees"]), width=6)}


class _RankedList(ListDefinition[PodRow]):
    """What pods and containers have in common: they are in kill order, node after node."""

    natural = "rank"
    fields = PODS
    squeezed = SQUEEZED
    order: Sequence[str]
    grouped = True
    beside = MappingProxyType({"risk": ("flags", "namespace")})
    only_known = frozenset({"trend", "growth", "eta", "flags", *_PSI})

    def __init__(self, newest: Callable[[], ViewModel | None]) -> None:
        self._newest = newest

    def default_columns(self, view: View) -> Sequence[str]:
        """Leave out columns with the same value in every row, and those of Prometheus if there is none."""
        view_model = self._newest()
        has_history = view_model is not None and view_model.snapshot.history.containers
        of_store = [column.key for column in HISTORY_COLUMNS if self.columns.get(column.key) is column]
        same: dict[str, Any] = dict.fromkeys(of_store, None if has_history else "unknown") | {
            "node": view.node,
            "namespace": view.namespace or view.workload or view.pod,
            "pod": view.pod,
        }
        return [key for key in self.order if same.get(key) is None]

    def fit(
        self,
        columns: Sequence[PodColumn],
        rows: Sequence[PodRow],
        now: datetime,
        available: int,
        importance: str,
    ) -> Layout[PodRow]:
        looks = {
            **_SHOWN,
            **(_COMPACT if available < COMPACT_BELOW else {}),
            **(_BARS if available >= BARS_FROM else {}),
        }
        columns = [
            looks.get(column.key, column if available >= COMPACT_BELOW else _dashed(column))
            for column in columns
        ]
        # If no heading names the node, it is important: a rank is one of a node.
        return super().fit(columns, rows, now, available, moved(importance, "node", self.name))

    def key(self, row: PodRow) -> Hashable:
        return row.key

    def token(self, row: PodRow, key: str, width: int) -> Token:
        if key == "memory" and width == _MEMORY_WIDTH and row.limit_percent is not None:
            filled = _filled_cells(row.limit_percent)
            full = "warning" if Flag.NEAR_LIMIT in row.flags else "calm"
            return (filled, full), (_BAR_WIDTH - filled, "faint"), (1 + _NUMBER_WIDTH, "")
        if key == "flags" and width == _CHIPS_WIDTH and row.flags:
            chips = (_FLAGS[flag] for flag in row.flags)
            parts = [part for chip, token in chips for part in ((len(chip), token), (1, ""))]
            return tuple(parts[:-1])
        return pod_token(row, key, self._newest())

    group_of = attrgetter("node")

    def rank_token(self, row: PodRow) -> Token:
        return pod_token(row, "rank", self._newest())

    def heading(self, row: PodRow, width: int) -> Spans:
        """Return the name of the node, how full it is, and its next death if that is known."""
        view_model = self._newest()
        view = view_model.by_node.get(row.node) if view_model is not None else None
        if view_model is None or view is None:
            return (("── ", "faint"), (group_name(row.node, "node"), "muted"))
        percent = f" {view.group.percent_text}" if view.group.percent is not None else ""
        in_danger = view_model.is_in_danger(row.node)
        of_death = list[tuple[str, str]]()
        node = group_name(row.node, "node")
        room = width - len(f"── {percent} ")
        if deaths := view_model.known_deaths(row.node):
            death = racing(deaths[0])[0]
            far, by = f"─ next {distance(death)} ", f"{killer_words(death)} "
            room -= len(f"{far} {by}")
            node = shortened(node, max(room - min(len(victim(death)), _MIN_VICTIM_WIDTH), _MIN_NODE_WIDTH))
            name = shortened(victim(death), max(room - cell_len(node), _MIN_VICTIM_WIDTH))
            of_death = [(far, "muted"), (f"{name} ", "victim" if in_danger else ""), (by, "muted")]
        spans = [("── ", "faint"), (node, "error" if in_danger else "accent")]
        spans += [(f"{percent} ", "error" if in_danger else "muted"), *of_death]
        while (rest := width - sum(cell_len(text) for text, _ in spans)) < 0:
            spans.pop()
        return (*spans, ("─" * max(rest - 1, 0), "faint"))

    def is_at_risk(self, row: PodRow) -> bool:
        """Return whether it is at risk, or its node's next death or one by a node-wide killer is its own."""
        if is_at_risk(row):
            return True
        view_model = self._newest()
        deaths = view_model.known_deaths(row.node) if view_model is not None else ()
        near = [*deaths[:1], *(death for death in deaths if death.killer.is_node_wide)]
        return any(death.key == row.key[:2] for death in near)

    def node_of(self, row: PodRow) -> str:
        return row.node

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        return (*coming.death.key, "")


def pod_token(row: PodRow, key: str, view_model: ViewModel | None = None) -> Token:
    """Return the token of a cell's style: the next victim is highlighted only on a node in danger."""
    if key in {"rank", "pod", "container"}:
        died = view_model.kills_within(_DIED_SECONDS) if view_model is not None else ()
        if any((kill.namespace, kill.pod) == row.key[:2] for kill in died):
            return "error"
        if view_model is None or not view_model.is_in_danger(row.node):
            return ""
        if key == "rank":
            return "warning" if row.is_next_victim else ""
        node_deaths = view_model.deaths(row.node)
        first = node_deaths.deaths[0] if node_deaths is not None and node_deaths.deaths else None
        is_next = first is not None and first.key == row.key[:2] and row.container in {"", first.container}
        return "victim" if is_next else ""
    if key == "qos":
        return CLASSES[row.qos].token
    if key == "flags" and row.flags:
        return _FLAGS[row.flags[0]][1]
    if key == "eta":
        return "warning"
    if key == "trend":
        return fullness_token(row.memory or 0, row.limit)
    if key in {"namespace", "node", "age", "request", "limit", "dies", "oom_score_adj"}:
        return "muted"
    return ""


class PodList(_RankedList):
    """The pods of a node, namespace or workload in kill order."""

    kind = ListKind.PODS
    name = "pod"
    importance = IMPORTANCE
    order = _ORDER
    is_quick = True

    def __init__(self, trends: Trends, newest: Callable[[], ViewModel | None] = lambda: None) -> None:
        super().__init__(newest)
        self._trends = trends
        columns = {key: column for key, column in BY_KEY.items() if key not in {"container", "eta"}}
        self.columns = {**columns, "trend": _trend_column(trends), "eta": _eta_column(newest)}

    def default_columns(self, view: View) -> Sequence[str]:
        """Replace the kill rank by the eviction rank in eviction order."""
        keys = super().default_columns(view)
        return ["eviction" if key == "rank" else key for key in keys] if view.by_eviction else keys

    def natural_key(self, view: View) -> str:
        return "eviction" if view.by_eviction else self.natural

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Build the rows node by node, the fullest node first."""
        notes = view_model.notes
        if view_model.arrived is not None:
            rows = view.pod_rows(view_model)
        elif view.node is not None:
            rows = _in_order(view.pod_rows(view_model), view)
        elif (view.namespace, view.workload, view.by_eviction) == (None, None, False):
            return ListRows(view_model.in_order, notes, starts=view_model.starts)
        else:
            nodes = [group.key for group in view_model.nodes if group.key in view_model.rows.nodes]
            by_node = (_in_order(replace(view, node=node).pod_rows(view_model), view) for node in nodes)
            rows = tuple(chain.from_iterable(by_node))
        return ListRows(rows, notes)

    def panel(self, row: PodRow, view_model: ViewModel) -> TextLayout:
        """Say by what the pod dies first and when, what else may kill it, and why it has its rank."""
        if row.is_provisional:
            return paragraphs((f"{escape('/'.join(row.key[:2]))}: {NO_RANK_YET}", "answer"))
        setup = view_model.rows.nodes[row.node].setup
        prediction = predict_running(row.pod, setup)
        on_node = view_model.known_deaths(row.node)
        deaths = [death for death in on_node if death.key == row.key[:2]]
        lines = why_lines(prediction, row, view_model.rows, is_named=bool(deaths))
        full = full_name(*row.key[:2])
        answer, *others = (line.replace(full, shortened(full, MAX_WIDTH)) for line in lines)
        others += self._recent_memory_line(row)
        if not deaths:
            return paragraphs((answer, "answer"), *((line, "") for line in others))
        first, *later = deaths
        token = "wrong" if first is on_node[0] and view_model.is_in_danger(row.node) else "answer"
        several = len({death.container for death in deaths} - {""}) > 1
        texts = []
        for death in later:
            container = f"{escape(death.container)}: " if several and death.container else ""
            texts.append(f"{bounded(death)} ({container}{killer_words(death)})")
        others = [answer, *([f"also at {', '.join(texts)}"] if texts else []), *others]
        # The fullest limit comes first, but what is nearer may be reached before it.
        is_nearest = first.distance_bytes == min(death.distance_bytes for death in deaths)
        is_elsewhere = any(coming.node != row.node for coming in view_model.first_deaths[:1])
        is_next = first is on_node[0] and is_nearest and not is_elsewhere
        dies = foretold(first, is_first=is_next, with_else=False).replace(full, shortened(full, MAX_WIDTH))
        return paragraphs((dies, token), *((line, "") for line in others))

    def _recent_memory_line(self, row: PodRow) -> Iterator[str]:
        """Yield the pod's recent memory as a sparkline, unless it is steady."""
        kib = self._trends.of(row.key[:2])[-MOST:]
        lowest, highest = min(kib, default=0), max(kib, default=0)
        if highest - lowest > highest * STEADY:
            yield f"memory {sparkline(kib, None, MOST)} {rounded(lowest << 10)} to {rounded(highest << 10)}"

    def pod_of(self, row: PodRow, view_model: ViewModel) -> PodRow | None:
        return row


def _in_order(rows: Sequence[PodRow], view: View) -> Sequence[PodRow]:
    """Return the rows of a node, which are in kill order, in the order of the view."""
    return sorted(rows, key=BY_KEY["eviction"].sort_key) if view.by_eviction else rows


def _eta_column(newest: Callable[[], ViewModel | None]) -> PodColumn:
    def seconds(row: PodRow) -> float | None:
        if row.past.growth is not None:
            return row.past.eta
        view_model = newest()
        return None if view_model is None else view_model.times(row.node).get(row.key[:2])

    return column(
        "eta",
        seconds,
        "when the pod dies if memory goes on growing as it has: a straight line",
        NUMBER,
        cell=lambda row: eta(seconds(row)),
        width=7,
        ascending=True,
    )


def _trend_column(trends: Trends) -> PodColumn:
    def samples(row: PodRow) -> Sequence[int]:
        return trends.of(row.pod.key)

    def growth(row: PodRow) -> int | None:
        kib = samples(row)
        return kib[-1] - kib[0] if kib else None

    return column(
        "trend",
        lambda row: list(samples(row)),
        "memory in use since the UI was opened, with --prometheus in the last hours; from 0 to the limit,"
        " else lowest to peak",
        width=TREND_WIDTH,
        cell=lambda row: sparkline(samples(row), row.limit and row.limit // 1024, TREND_WIDTH),
        sort_key=lambda row: largest_first(growth(row)),
    )


_OF_PODS: Final = {"flags", "eviction", "risk", "limit_container"}
_IN_CONTAINERS: Final = [
    key for key in _ORDER if key not in {*_OF_PODS, "trend", "frees", "dies", "priority"}
]


class ContainerList(_RankedList):
    """The containers of a node, namespace, workload or pod, each with a rank of its own."""

    kind = ListKind.CONTAINERS
    name = "container"
    importance = (
        "rank container pod qos oom_score node oom_score_adj memory container pod namespace eta limit_percent"
        " peak growth request limit p99 node namespace restarts psi60 psi10 priority age"
    )
    order = (*_IN_CONTAINERS[:3], "container", *_IN_CONTAINERS[3:])
    columns: Mapping[str, PodColumn] = {
        column.key: column for column in (*ALL_COLUMNS, *HISTORY_COLUMNS) if column.key not in _OF_PODS
    }

    def __init__(self, pods: PodList, newest: Callable[[], ViewModel | None] = lambda: None) -> None:
        super().__init__(newest)
        self._pods = pods

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Build the containers of the pods in view, each ranked among all containers of its node."""
        scope = Scope(namespace=view.namespace, node=view.node)
        cache = cast("PodRows", before.cache) if before is not None else None
        built = build_rows(view_model.snapshot, scope, containers=True, before=cache)
        pods = {row.key[:2] for row in view.pod_rows(view_model)}
        if view.pod is not None:
            pods &= {view.pod}
        rows = [row for row in built.rows if row.key[:2] in pods]
        if view.node is None:
            places = {group.key: place for place, group in enumerate(view_model.nodes)}
            rows.sort(key=lambda row: places[row.node])
        return ListRows(rows, tuple(pod_table_notes(view_model.snapshot, built)), built)

    def panel(self, row: PodRow, view_model: ViewModel) -> TextLayout:
        """Say which rank the container has, then explain its pod."""
        pod = self.pod_of(row, view_model)
        words = escape(f"container {row.container} of {row.namespace}/{row.name}")
        if row.rank is not None:
            shared = ", shared," if row.tied else ""
            words += f": rank {row.rank}{shared} among the containers of {escape(row.node)}"
            words += f", oom_score {row.score}" if row.score is not None else ""
        title = paragraphs((words, "answer"))
        return title if pod is None else stacked(title, self._pods.panel(pod, view_model))

    def pod_of(self, row: PodRow, view_model: ViewModel) -> PodRow | None:
        return view_model.row_on(row.node, row.key[:2])

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        pod = view_model.row_on(coming.node, coming.death.key)
        return (*coming.death.key, coming.death.container or (pod.worst if pod is not None else ""))


# The column has no room for the condition, which the panel has, and for the fullness, which FULL has.
_DEATHS = tuple(
    structs.replace(column, cell=lambda row, _: killer_label(row.death, with_fullness=False))
    if column.key == "by"
    else column
    for column in next_death.COLUMNS
)


class DeathList(ListDefinition[DeathRow]):
    """The coming deaths on a node or in a namespace, by limits of pods and by killers of nodes."""

    kind = ListKind.DEATHS
    name = "victim"
    natural = "eta"
    columns = MappingProxyType({column.key: column for column in _DEATHS})
    fields = Fields(columns, None)
    importance = "victim distance by full eta node by victim frees before node"
    squeezed: Mapping[str, int] = MappingProxyType({"victim": 20, "by": 16, "node": 12})
    only_known = frozenset({"eta", "before"})

    def __init__(self, pods: PodList, newest: Callable[[], ViewModel | None]) -> None:
        self._pods = pods
        self._newest = newest

    def default_columns(self, view: View) -> Sequence[str]:
        view_model = self._newest()
        is_one = view.node is not None or (view_model is not None and len(view_model.by_node) == 1)
        return [key for key in self.columns if key != "node" or not is_one]

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Build the deaths on all nodes or, if there are many, on the fullest ones."""
        nodes = [name for name in view_model.node_names if view.node in {None, name}]
        snapshot, rows, states = view_model.snapshot, list[DeathRow](), dict[str, NodeState]()
        for name in nodes[:FEW_NODES]:
            on_node = view_model.deaths(name)
            if on_node is not None:
                states[name] = on_node.state
                rows += death_rows(snapshot, name, on_node.deaths)
        rows = [row for row in rows if view.namespace in {None, row.death.key[0]}]
        rows.sort(key=lambda row: row.death.urgency)
        more = len(nodes) - FEW_NODES
        hidden = [f"not those of {count(more, 'node')} that are less full: choose one"] if more > 0 else []
        return ListRows(rows, (*hidden, *next_death.notes(Deaths(tuple(rows), snapshot, states=states))))

    def key(self, row: DeathRow) -> Hashable:
        return row.node, row.death.mechanism, row.death.key, row.death.container

    def token(self, row: DeathRow, key: str, width: int) -> Token:
        if key == "victim":
            view_model = self._newest()
            first = view_model.first_deaths[:1] if view_model is not None else ()
            in_danger = view_model is not None and view_model.is_in_danger(row.node)
            return "victim" if in_danger and [self.key(death) for death in first] == [self.key(row)] else ""
        return "warning" if key == "eta" else "muted" if key in {"node", "frees", "before"} else ""

    def is_at_risk(self, row: DeathRow) -> bool:
        return not row.is_far

    def panel(self, row: DeathRow, view_model: ViewModel) -> TextLayout:
        """Explain the death, then its pod, which begins with its first death."""
        pod, deaths = self.pod_of(row, view_model), view_model.known_deaths(row.node)
        is_first = next((death for death in deaths if death.key == row.death.key), None) == row.death
        of_row = paragraphs((foretold(row.death, row.node, is_first=False), "answer"))
        if pod is None:
            return of_row
        of_pod = self._pods.panel(pod, view_model)
        return of_pod if is_first else stacked(of_row, of_pod)

    def pod_of(self, row: DeathRow, view_model: ViewModel) -> PodRow | None:
        return view_model.row_on(row.node, row.death.key)

    def node_of(self, row: DeathRow) -> str:
        return row.node

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        return self.key(coming)
