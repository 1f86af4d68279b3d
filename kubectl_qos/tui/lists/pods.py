"""Pods in kill order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, cast

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Align, Column, largest_first
from kubectl_qos.present.pod_columns import ALL_COLUMNS, BY_KEY, WIDE_KEYS, PodColumn
from kubectl_qos.present.pod_rows import PodRow, PodRows, build_rows
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.flags import RISKS, Flag
from kubectl_qos.tui.filters import PODS
from kubectl_qos.tui.lists.base import ListRows, all_columns, fitting_columns, newest_row
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import Trends, ViewModel, sparkline
from kubectl_qos.tui.widgets.explanation_panel import explanation_layout
from kubectl_qos.tui.widgets.table_cells import Layout, Token
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, wrapped

FLAG_TOKENS: Final = {
    Flag.CRITICAL: "success",
    Flag.PRIORITY: "warning",
    Flag.NEAR_LIMIT: "error",
    Flag.OVER_REQUEST: "warning",
    Flag.RESIZING: "accent",
    Flag.STATIC: "text-muted",
    Flag.CLASS_DIFFERS: "warning",
}
IMPORTANCE: Final = (
    "rank",
    "pod",
    "qos",
    "oom_score",
    "node",
    "oom_score_adj",
    "memory",
    "pod",
    "flags",
    "namespace",
    "limit_percent",
    "request",
    "limit",
    "node",
    "namespace",
    "flags",
    "restarts",
    "trend",
    "priority",
    "eviction",
    "age",
)
"""Which columns stay when there is not room for all, the first the longest; twice: first cut, then whole."""

SQUEEZED: Final = {"container": 16, "pod": 32, "node": 16, "namespace": 12, "flags": 8}
"""Those that may be cut, and so many cells of them at least: one long name must not take what others need."""

COMPACT_BELOW: Final = 90
"""Narrower tables show the class as its letter and glyph."""

_FIRST: Final = ("rank", "namespace", "pod", "node")
_OTHERS: Final = tuple(key for key in WIDE_KEYS if key not in _FIRST)
_ORDER: Final = (
    *_FIRST,
    *_OTHERS[: _OTHERS.index("memory") + 1],
    "trend",
    *_OTHERS[_OTHERS.index("memory") + 1 :],
)
TREND: Final = 8
"""The cells of a trend: one for each of the last samples."""


def _class_mark(row: PodRow, _: datetime) -> str:
    mark = CLASSES[row.qos]
    return f"{mark.letter} {mark.glyph}"


_COMPACT_CLASS: Final = replace(BY_KEY["qos"], width=4, cell=_class_mark)


class PodList:
    """The pods of a node, namespace or workload in the kernel's order."""

    kind: Final = ListKind.PODS
    natural: Final = "rank"
    fields: Final = PODS
    is_quick: Final = True

    def __init__(self, trends: Trends) -> None:
        known = {key: column for key, column in BY_KEY.items() if key != "container"}
        self.columns: Mapping[str, PodColumn] = {**known, "trend": _trend_column(trends)}

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """They are worked out already."""
        del before
        return ListRows(view.pod_rows(facts), facts.rows.notes)

    def layout(
        self, view: View, chosen: Sequence[str] | None, rows: Sequence[PodRow], now: datetime, available: int
    ) -> Layout[PodRow]:
        """All columns, or the most important that fit; not those that say the same in every row."""
        return pod_layout(self.columns, view, chosen, rows, now, available)

    def key(self, row: PodRow) -> Hashable:
        """Namespace and name."""
        return row.key

    def token(self, row: PodRow, key: str, width: int) -> Token:
        """The next victim, the class, and flags of risk stand out."""
        del width
        return pod_token(row, key)

    def is_at_risk(self, row: PodRow) -> bool:
        """Whether it has a flag of risk."""
        return not RISKS.isdisjoint(row.flags)

    def panel(self, row: PodRow, facts: ViewModel) -> TextLayout:
        """Why it stands where it stands."""
        return explanation_layout(row, facts.rows)

    def opened(self, view: View, row: PodRow) -> View | None:
        """Its explanation."""
        del view, row
        return None

    def pod_of(self, row: PodRow, facts: ViewModel) -> PodRow | None:
        """The pod itself."""
        del facts
        return row

    def node_of(self, row: PodRow) -> str:
        """Its node."""
        return row.node


def _trend_column(trends: Trends) -> PodColumn:
    def samples(row: PodRow) -> Sequence[int]:
        return trends.of((row.pod.namespace, row.pod.name))

    def growth(row: PodRow) -> int | None:
        found = samples(row)
        return found[-1] - found[0] if found else None

    return Column(
        "trend",
        "TREND",
        Align.LEFT,
        TREND,
        lambda row, _: sparkline(samples(row), row.limit and row.limit // 1024, TREND),
        lambda row: list(samples(row)),
        lambda row: largest_first(growth(row)),
        "memory in use since the UI was opened, sample by sample, up to the limit or the highest of them",
    )


def pod_layout(
    known: Mapping[str, PodColumn],
    view: View,
    chosen: Sequence[str] | None,
    rows: Sequence[PodRow],
    now: datetime,
    available: int,
    order: Sequence[str] = _ORDER,
    importance: Sequence[str] = IMPORTANCE,
) -> Layout[PodRow]:
    """The columns of pods or containers for so many cells, but those that say the same in every row."""
    name = "container" if "container" in order else "pod"
    if chosen is not None:
        return all_columns([known[key] for key in chosen if key in known], rows, now, name)
    left_out = {
        key
        for key, known in (
            ("node", view.node),
            ("namespace", view.namespace or view.workload or view.pod),
            ("pod", view.pod),
        )
        if known is not None
    }
    keys = [key for key in order if key not in left_out]
    if view.wide:
        return all_columns([known[key] for key in keys], rows, now, name)
    columns = [_COMPACT_CLASS if key == "qos" and available < COMPACT_BELOW else known[key] for key in keys]
    return fitting_columns(columns, importance, rows, now, available, SQUEEZED)


def pod_token(row: PodRow, key: str) -> Token:
    """Which of the theme's tokens a cell of a pod or container has."""
    if key in {"rank", "pod", "container", "oom_score"} and row.rank == 1:
        return "victim"
    if key == "qos":
        return CLASSES[row.qos].token
    if key == "flags" and row.flags:
        return FLAG_TOKENS[row.flags[0]].removeprefix("text-")
    if key in {"namespace", "node", "age", "request", "limit"}:
        return "muted"
    return ""


_ORDER_CONTAINERS: Final = (
    "rank",
    "namespace",
    "pod",
    "container",
    "node",
    "qos",
    "oom_score_adj",
    "oom_score",
    "memory",
    "request",
    "limit",
    "limit_percent",
    "restarts",
    "age",
)
_OF_PODS: Final = tuple(key for key in IMPORTANCE if key not in {"rank", "flags"})
_SCORES: Final = _OF_PODS.index("memory") + 1
_IMPORTANCE: Final = ("rank", "container", *_OF_PODS[:_SCORES], "container", *_OF_PODS[_SCORES:])


class ContainerList:
    """The containers of a node, namespace, workload or pod, each with its own score."""

    kind: Final = ListKind.CONTAINERS
    natural: Final = "rank"
    fields: Final = PODS
    is_quick: Final = False
    columns: Mapping[str, PodColumn] = {
        column.key: column for column in ALL_COLUMNS if column.key not in {"flags", "eviction", "risk"}
    }

    def __init__(self, pods: PodList) -> None:
        self._pods = pods

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Those of the pods that the view would list, each ranked among all of its node."""
        scope = Scope(namespace=view.namespace, node=view.node)
        known = cast("PodRows", before.kept) if before is not None else None
        found = build_rows(facts.snapshot, scope, containers=True, before=known)
        shown = {row.key[:2] for row in view.pod_rows(facts)}
        if view.pod is not None:
            shown &= {view.pod}
        rows = [row for row in found.rows if row.key[:2] in shown]
        return ListRows(rows, found.notes, found)

    def layout(
        self, view: View, chosen: Sequence[str] | None, rows: Sequence[PodRow], now: datetime, available: int
    ) -> Layout[PodRow]:
        """All columns, or the most important that fit."""
        return pod_layout(self.columns, view, chosen, rows, now, available, _ORDER_CONTAINERS, _IMPORTANCE)

    def key(self, row: PodRow) -> Hashable:
        """Namespace, pod and container."""
        return row.key

    def token(self, row: PodRow, key: str, width: int) -> Token:
        """As of pods."""
        del width
        return pod_token(row, key)

    def is_at_risk(self, row: PodRow) -> bool:
        """Whether its pod has a flag of risk."""
        return self._pods.is_at_risk(row)

    def panel(self, row: PodRow, facts: ViewModel) -> TextLayout:
        """Where the container stands, then what there is to say of its pod."""
        pod = self.pod_of(row, facts)
        words = escape(f"container {row.container} of {row.pod.namespace}/{row.name}")
        if row.rank is not None:
            shared = ", shared," if row.tied else ""
            words += f": rank {row.rank}{shared} among the containers of {escape(row.node)}"
            words += f", oom_score {row.score}"
        if pod is None:
            return lambda width: [TextLine(line, "answer") for line in wrapped(words, width)]
        of_pod = self._pods.panel(pod, facts)

        def layout(width: int) -> list[TextLine]:
            return [*(TextLine(line, "answer") for line in wrapped(words, width, hanging="")), *of_pod(width)]

        return layout

    def opened(self, view: View, row: PodRow) -> View | None:
        """The explanation of its pod."""
        del view, row
        return None

    def pod_of(self, row: PodRow, facts: ViewModel) -> PodRow | None:
        """Its pod, None where that is gone meanwhile."""
        return newest_row(row, facts)

    def node_of(self, row: PodRow) -> str:
        """Its node."""
        return row.node
