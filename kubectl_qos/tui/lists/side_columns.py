"""The columns of the panes beside a list: nodes and namespaces to choose among."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kubectl_qos.present.amounts import binary, escape
from kubectl_qos.present.columns import Align
from kubectl_qos.tui.facts import PodGroup
from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout, measured

_NEXT: Final = ("used", "pressure", "pods")
"""Which columns follow the name, the most important first."""
_CLASSES: Final = ("G", "B", "E")
"""All of these or none, where names are whole beside them."""
_NAME_AT_LEAST: Final = 10
_SIDE_AT_LEAST: Final = 45
SCROLLBAR: Final = 1


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
    """The columns of a pane that fit: the classes are left out first, then names are cut."""
    widths = dict(zip([column.key for column in columns], measured(columns, groups, now), strict=True))
    room = available - GUTTER - min(widths["name"], _NAME_AT_LEAST)
    kept = {"name"}
    for key in _NEXT:
        if key in widths and widths[key] + GAP <= room:
            kept.add(key)
            room -= widths[key] + GAP
    whole = max(widths["name"] - _NAME_AT_LEAST, 0)
    of_classes = sum(widths[key] + GAP for key in _CLASSES)
    if whole + of_classes <= room:
        kept.update(_CLASSES)
        room -= of_classes
    widths["name"] = min(widths["name"], _NAME_AT_LEAST + max(room, 0))
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [widths[column.key] for column in chosen])


def group_token(group: PodGroup, key: str) -> str:
    """A node under pressure stands out; what has no pods steps back."""
    if group.troubles and key in {"name", "used", "pressure"}:
        return "error"
    if not group.pods:
        return "muted"
    if key == "used" and group.percent is not None and group.percent >= 90:
        return "warning"
    return ""
