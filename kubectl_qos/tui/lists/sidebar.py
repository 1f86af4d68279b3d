"""The columns of the panes beside a list: nodes and namespaces to choose among."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from textual.app import ComposeResult
from textual.containers import Vertical

from kubectl_qos.present.format import binary, escape
from kubectl_qos.present.output import Align
from kubectl_qos.tui.view import View
from kubectl_qos.tui.view_model import PodGroup, ViewModel, namespaces_on
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import GAP, GUTTER, Layout, measured

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


class Sidebar(Vertical):
    """Two tables whose cursors say which node and which namespace are listed."""

    def compose(self) -> ComposeResult:
        """Nodes above namespaces."""
        yield self._table("side-nodes", "used")
        yield self._table("side-namespaces", "name")

    @staticmethod
    def _table(name: str, natural: str) -> LineTable[PodGroup]:
        return LineTable[PodGroup](
            natural=natural, key=lambda group: group.key, token=group_token, pinned=1, id=name
        )

    @property
    def nodes(self) -> LineTable[PodGroup]:
        """The pane of nodes."""
        return self.query_one("#side-nodes", LineTable)

    @property
    def namespaces(self) -> LineTable[PodGroup]:
        """The pane of namespaces."""
        return self.query_one("#side-namespaces", LineTable)

    def on_mount(self) -> None:
        """What the panes are."""
        self.nodes.border_title = "Nodes"
        self.namespaces.border_title = "Namespaces"

    def show(self, facts: ViewModel, view: View, now: datetime) -> None:
        """Load both panes and put their cursors where the view is; the first line is everything."""
        _load(self.nodes, NODE_COLUMNS, facts.nodes, view.node, now)
        self.show_namespaces(facts, view, now)

    def show_namespaces(self, facts: ViewModel, view: View, now: datetime) -> None:
        """Load the namespaces of the view's node."""
        groups = namespaces_on(facts, view.node, view.namespace)
        _load(self.namespaces, NAMESPACE_COLUMNS, groups, view.namespace, now)

    def fit(self, facts: ViewModel | None, now: datetime) -> None:
        """As wide as the panes need; without facts, with the whole width for themselves."""
        self.styles.max_width = None if facts is None else side_width(facts.nodes, now)


def _load(
    table: LineTable[PodGroup],
    columns: Sequence[PaneColumn],
    groups: Sequence[PodGroup],
    chosen: str | None,
    now: datetime,
) -> None:
    table.load(groups, partial(group_layout, columns, groups, now), now)
    if not table.move_to(chosen):
        table.action_first()
