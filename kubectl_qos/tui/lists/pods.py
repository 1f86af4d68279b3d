"""Pods in kill order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from kubectl_qos.present.columns import BY_KEY, WIDE_KEYS, Align, Column, ColumnOf, largest_first
from kubectl_qos.present.marks import CLASSES, FLAG_TOKENS
from kubectl_qos.present.rows import PodRow
from kubectl_qos.qos.flags import RISKS
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.filters import PODS
from kubectl_qos.tui.lists.base import WorkedOut
from kubectl_qos.tui.lists.fitting import all_columns, most_important
from kubectl_qos.tui.trends import Trends, sparkline
from kubectl_qos.tui.view import Kind, View
from kubectl_qos.tui.widgets.document import TextLayout
from kubectl_qos.tui.widgets.table_cells import Token
from kubectl_qos.tui.widgets.table_layout import Layout
from kubectl_qos.tui.widgets.why import why_layout

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


class Pods:
    """The pods of a node, namespace or workload in the kernel's order."""

    kind: Final = Kind.PODS
    natural: Final = "rank"
    fields: Final = PODS
    is_quick: Final = True

    def __init__(self, trends: Trends) -> None:
        known = {key: column for key, column in BY_KEY.items() if key != "container"}
        self.columns: Mapping[str, Column] = {**known, "trend": _trend_column(trends)}

    def work_out(self, facts: Facts, view: View, before: WorkedOut | None) -> WorkedOut:
        """They are worked out already."""
        del before
        return WorkedOut(view.pod_rows(facts), facts.rows.notes)

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

    def panel(self, row: PodRow, facts: Facts) -> TextLayout:
        """Why it stands where it stands."""
        return why_layout(row, facts.rows)

    def opened(self, view: View, row: PodRow) -> View | None:
        """Its explanation."""
        del view, row
        return None

    def pod_of(self, row: PodRow, facts: Facts) -> PodRow | None:
        """The pod itself."""
        del facts
        return row

    def node_of(self, row: PodRow) -> str:
        """Its node."""
        return row.node


def _trend_column(trends: Trends) -> Column:
    def samples(row: PodRow) -> Sequence[int]:
        return trends.of((row.pod.namespace, row.pod.name))

    def growth(row: PodRow) -> int | None:
        found = samples(row)
        return found[-1] - found[0] if found else None

    return ColumnOf(
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
    known: Mapping[str, Column],
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
    return most_important(columns, importance, rows, now, available, SQUEEZED)


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
