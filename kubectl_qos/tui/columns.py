"""The columns of the UI's tables: the shared ones of pods, chosen by width, and those of the side panes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kubectl_qos.present.amounts import binary, escape
from kubectl_qos.present.columns import BY_KEY, WIDE_KEYS, Align
from kubectl_qos.present.marks import CLASSES, FLAG_TOKENS
from kubectl_qos.present.rows import PodRow
from kubectl_qos.tui.facts import PodGroup
from kubectl_qos.tui.view import View
from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout, measured

IMPORTANCE: Final = (
    "rank",
    "pod",
    "qos",
    "oom_score",
    "node",
    "oom_score_adj",
    "memory",
    "flags",
    "namespace",
    "limit_percent",
    "request",
    "limit",
    "flags",
    "restarts",
    "priority",
    "eviction",
    "age",
)
"""Which columns stay when there is not room for all, the first the longest: flags cut, later whole."""

COMPACT_BELOW: Final = 90
"""Narrower tables show the class as its letter and glyph."""

_ORDER: Final = ("rank", "namespace", "pod", "node", *(key for key in WIDE_KEYS[3:] if key != "node"))
_FLAGS_AT_LEAST: Final = 8
_NAME_AT_LEAST: Final = 10
_SIDE_AT_LEAST: Final = 45
SCROLLBAR: Final = 1


def _class_mark(row: PodRow, _: datetime) -> str:
    mark = CLASSES[row.qos]
    return f"{mark.letter} {mark.glyph}"


_COMPACT_CLASS: Final = replace(BY_KEY["qos"], width=4, cell=_class_mark)


def pod_layout(view: View, rows: Sequence[PodRow], now: datetime, available: int) -> Layout[PodRow]:
    """The columns of the pods' table: all of them, or the most important that fit into so many cells."""
    left_out = {
        key for key, chosen in (("node", view.node), ("namespace", view.namespace)) if chosen is not None
    }
    keys = [key for key in _ORDER if key not in left_out]
    columns = [_COMPACT_CLASS if key == "qos" and available < COMPACT_BELOW else BY_KEY[key] for key in keys]
    widths = dict(zip(keys, measured(columns, rows, now), strict=True))
    if view.wide:
        return Layout(columns, list(widths.values()), fixed=keys.index("pod") + 1)
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in IMPORTANCE:
        if key in left_out:
            continue
        width = min(widths[key], _FLAGS_AT_LEAST) if key == "flags" and key not in kept else widths[key]
        needed = width - kept[key] if key in kept else width + (0 if key == "flags" else GAP)
        if needed > room:
            break
        kept[key] = width
        room -= needed
    if "flags" in kept:
        kept["flags"] = min(widths["flags"], kept["flags"] + room)
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])


def pod_token(row: PodRow, key: str) -> str:
    """Which of the theme's tokens a cell has: the next victim, the class, and flags of risk stand out."""
    if key in {"rank", "pod", "oom_score"} and row.rank == 1:
        return "victim"
    if key == "qos":
        return CLASSES[row.qos].token
    if key == "flags" and row.flags:
        return FLAG_TOKENS[row.flags[0]].removeprefix("text-")
    if key in {"namespace", "node", "age", "request", "limit"}:
        return "muted"
    return ""


@dataclass(frozen=True, slots=True)
class PaneColumn:
    """A column of a pane of nodes or namespaces."""

    key: str
    header: str
    align: Align
    width: int
    cell: Callable[[PodGroup, datetime], str]
    sort_key: Callable[[PodGroup], Any]


_BAR: Final = 6


def _bar(percent: int) -> str:
    """A bar in halves of a cell."""
    whole, half = divmod(min(max(percent, 0), 100) * _BAR * 2 // 100, 2)
    return ("━" * whole + "╸" * half).ljust(_BAR)


def _used_percent(group: PodGroup, _: datetime) -> str:
    if group.percent is None:
        return f"{'?':>4}"
    return f"{group.percent:>3}% {_bar(group.percent)}"


def _counts() -> tuple[PaneColumn, ...]:
    def column(header: str, read: Callable[[PodGroup], int]) -> PaneColumn:
        return PaneColumn(
            header, header, Align.RIGHT, 2, lambda group, _: str(read(group)), lambda group: -read(group)
        )

    return (
        column("G", lambda group: group.guaranteed),
        column("B", lambda group: group.burstable),
        column("E", lambda group: group.best_effort),
    )


def _named(header: str, everything: str, nothing: str) -> PaneColumn:
    def cell(group: PodGroup, _: datetime) -> str:
        return everything if group.key is None else escape(group.key) or nothing

    return PaneColumn("name", header, Align.LEFT, 11, cell, lambda group: group.key or "")


NODE_COLUMNS: Final = (
    _named("NODE", "all nodes", "no node"),
    PaneColumn("used", "USED", Align.LEFT, 11, _used_percent, lambda group: -(group.percent or -1)),
    *_counts(),
    PaneColumn(
        "pressure",
        "!",
        Align.LEFT,
        3,
        lambda group, _: " ".join(f"!{trouble[:3]}" for trouble in group.troubles),
        lambda group: -len(group.troubles),
    ),
)

NAMESPACE_COLUMNS: Final = (
    _named("NAMESPACE", "all namespaces", "no namespace"),
    PaneColumn(
        "pods",
        "PODS",
        Align.RIGHT,
        4,
        lambda group, _: str(group.pods),
        lambda group: -group.pods,
    ),
    *_counts(),
    PaneColumn(
        "used",
        "USED",
        Align.RIGHT,
        6,
        lambda group, _: "?" if group.used is None else binary(group.used),
        lambda group: -(group.used or -1),
    ),
)


def side_width(groups: Sequence[PodGroup], now: datetime) -> int:
    """As wide as the panes are at most: what the nodes need with their names whole."""
    needed = Layout(NODE_COLUMNS, measured(NODE_COLUMNS, groups, now)).line_width + SCROLLBAR
    return max(needed, _SIDE_AT_LEAST)


def group_layout(
    columns: Sequence[PaneColumn], groups: Sequence[PodGroup], now: datetime, available: int
) -> Layout[PodGroup]:
    """The columns of a pane; names are cut where there is not room for everything."""
    widths = measured(columns, groups, now)
    too_wide = Layout(columns, widths).line_width - available
    widths[0] = max(widths[0] - max(too_wide, 0), min(widths[0], _NAME_AT_LEAST))
    return Layout(columns, widths)


def group_token(group: PodGroup, key: str) -> str:
    """A node under pressure stands out; what has no pods steps back."""
    if group.troubles and key in {"name", "used", "pressure"}:
        return "error"
    if not group.pods:
        return "muted"
    if key == "used" and group.percent is not None and group.percent >= 90:
        return "warning"
    return ""
