"""Pods and containers in kill order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import column, largest_first
from kubectl_qos.present.pod_columns import ALL_COLUMNS, BY_KEY, WIDE_KEYS, PodColumn
from kubectl_qos.present.pod_rows import PodRow, PodRows, build_rows
from kubectl_qos.present.reasons import CLASSES, why_lines
from kubectl_qos.qos.flags import RISKS, Flag
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.tui.filters import PODS
from kubectl_qos.tui.lists.base import ListDefinition, ListRows, newest_row
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import Trends, ViewModel, sparkline
from kubectl_qos.tui.widgets.table import Layout, Token
from kubectl_qos.tui.widgets.text_view import TextLayout, paragraphs, stacked

FLAG_TOKENS: Final = {
    Flag.CRITICAL: "success",
    Flag.PRIORITY: "warning",
    Flag.NEAR_LIMIT: "error",
    Flag.OVER_REQUEST: "warning",
    Flag.RESIZING: "accent",
    Flag.STATIC: "muted",
    Flag.CLASS_DIFFERS: "warning",
}
IMPORTANCE: Final = (
    "rank pod qos oom_score node oom_score_adj memory pod flags namespace limit_percent request limit node"
    " namespace flags restarts trend priority eviction age"
)
"""The columns that stay the longest first; see fitting_columns."""

SQUEEZED: Final = {"container": 16, "pod": 32, "node": 16, "namespace": 12, "flags": 8}

COMPACT_BELOW: Final = 90
"""Narrower tables show the class as its letter and glyph."""

_FIRST: Final = ("rank", "namespace", "pod", "node")
_OTHERS: Final = tuple(key for key in WIDE_KEYS if key not in _FIRST)
_AFTER_MEMORY: Final = _OTHERS.index("memory") + 1
_ORDER: Final = (*_FIRST, *_OTHERS[:_AFTER_MEMORY], "trend", *_OTHERS[_AFTER_MEMORY:])
NO_RANK_YET: Final = "its rank among the pods of its node is known once all pods have arrived"
TREND: Final = 8
"""The cells of a trend: one for each of the last samples."""
_COMPACT_CLASS: Final = replace(
    BY_KEY["qos"], width=4, cell=lambda row, _: f"{CLASSES[row.qos].letter} {CLASSES[row.qos].glyph}"
)


class _RankedList(ListDefinition[PodRow]):
    """What pods and containers have in common."""

    natural = "rank"
    fields = PODS
    squeezed = SQUEEZED
    order: Sequence[str]

    def default_columns(self, view: View) -> Sequence[str]:
        """Not those that say the same in every row."""
        same: dict[str, Any] = {
            "node": view.node,
            "namespace": view.namespace or view.workload or view.pod,
            "pod": view.pod,
        }
        return [key for key in self.order if same.get(key) is None]

    def fit(
        self, columns: Sequence[PodColumn], rows: Sequence[PodRow], now: datetime, available: int
    ) -> Layout[PodRow]:
        if available < COMPACT_BELOW:
            columns = [_COMPACT_CLASS if column.key == "qos" else column for column in columns]
        return super().fit(columns, rows, now, available)

    def key(self, row: PodRow) -> Hashable:
        return row.key

    def token(self, row: PodRow, key: str, width: int) -> Token:
        del width
        return pod_token(row, key)

    def is_at_risk(self, row: PodRow) -> bool:
        return not RISKS.isdisjoint(row.flags)

    def opened(self, view: View, row: PodRow) -> View | None:
        del view, row
        return None

    def node_of(self, row: PodRow) -> str:
        return row.node


def pod_token(row: PodRow, key: str) -> Token:
    """The theme's token of a cell of a pod or container."""
    if key in {"rank", "pod", "container", "oom_score"} and row.rank == 1:
        return "victim"
    if key == "qos":
        return CLASSES[row.qos].token
    if key == "flags" and row.flags:
        return FLAG_TOKENS[row.flags[0]]
    if key in {"namespace", "node", "age", "request", "limit"}:
        return "muted"
    return ""


class PodList(_RankedList):
    """The pods of a node, namespace or workload in the kernel's order."""

    kind = ListKind.PODS
    name = "pod"
    importance = IMPORTANCE
    order = _ORDER
    is_quick = True

    def __init__(self, trends: Trends) -> None:
        columns = {key: column for key, column in BY_KEY.items() if key != "container"}
        self.columns = {**columns, "trend": _trend_column(trends)}

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        del before
        return ListRows(view.pod_rows(view_model), view_model.rows.notes)

    def panel(self, row: PodRow, view_model: ViewModel) -> TextLayout:
        """Why its rank is what it is; a next victim stands out."""
        if row.is_provisional:
            return paragraphs((f"{escape('/'.join(row.key[:2]))}: {NO_RANK_YET}", "answer"))
        setup = view_model.rows.nodes[row.node].setup
        prediction = predict_running(row.pod, setup)
        answer, *others = why_lines(prediction, row, view_model.rows)
        token = "wrong" if row.rank == 1 else "answer"
        return paragraphs((answer, token), *((line, "") for line in others))

    def pod_of(self, row: PodRow, view_model: ViewModel) -> PodRow | None:
        del view_model
        return row


def _trend_column(trends: Trends) -> PodColumn:
    def samples(row: PodRow) -> Sequence[int]:
        return trends.of((row.pod.namespace, row.pod.name))

    def growth(row: PodRow) -> int | None:
        kib = samples(row)
        return kib[-1] - kib[0] if kib else None

    return column(
        "trend",
        lambda row: list(samples(row)),
        "memory in use since the UI was opened, scaled from 0 to the limit, else to the peak",
        width=TREND,
        cell=lambda row: sparkline(samples(row), row.limit and row.limit // 1024, TREND),
        sort_key=lambda row: largest_first(growth(row)),
    )


_CONTAINER_KEYS: Final = (
    "rank namespace pod container node qos oom_score_adj oom_score memory request limit limit_percent"
    " restarts age"
)
_OF_PODS: Final = {"flags", "eviction", "risk", "limit_container"}


class ContainerList(_RankedList):
    """The containers of a node, namespace, workload or pod, each with its own score."""

    kind = ListKind.CONTAINERS
    name = "container"
    importance = (
        "rank container pod qos oom_score node oom_score_adj memory container pod namespace limit_percent"
        " request limit node namespace restarts trend priority eviction age"
    )
    order = _CONTAINER_KEYS.split()
    columns: Mapping[str, PodColumn] = {
        column.key: column for column in ALL_COLUMNS if column.key not in _OF_PODS
    }

    def __init__(self, pods: PodList) -> None:
        self._pods = pods

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """The containers of the pods that the view would list, each ranked among all of its node."""
        scope = Scope(namespace=view.namespace, node=view.node)
        cache = cast("PodRows", before.cache) if before is not None else None
        built = build_rows(view_model.snapshot, scope, containers=True, before=cache)
        pods = {row.key[:2] for row in view.pod_rows(view_model)}
        if view.pod is not None:
            pods &= {view.pod}
        return ListRows([row for row in built.rows if row.key[:2] in pods], built.notes, built)

    def panel(self, row: PodRow, view_model: ViewModel) -> TextLayout:
        """The rank of the container, then the explanation of its pod."""
        pod = self.pod_of(row, view_model)
        words = escape(f"container {row.container} of {row.pod.namespace}/{row.name}")
        if row.rank is not None:
            shared = ", shared," if row.tied else ""
            words += f": rank {row.rank}{shared} among the containers of {escape(row.node)}"
            words += f", oom_score {row.score}"
        title = paragraphs((words, "answer"))
        return title if pod is None else stacked(title, self._pods.panel(pod, view_model))

    def pod_of(self, row: PodRow, view_model: ViewModel) -> PodRow | None:
        return newest_row(row, view_model)
