"""The panes beside a list: the nodes and the namespaces on one of them, to choose among."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from textual.app import ComposeResult
from textual.containers import Vertical

from kubectl_qos.tui.facts import Facts, PodGroup, namespaces_on
from kubectl_qos.tui.lists.side_columns import (
    NAMESPACE_COLUMNS,
    NODE_COLUMNS,
    PaneColumn,
    group_layout,
    group_token,
    side_width,
)
from kubectl_qos.tui.view import View
from kubectl_qos.tui.widgets.line_table import LineTable


class Side(Vertical):
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

    def show(self, facts: Facts, view: View, now: datetime) -> None:
        """Load both panes and put their cursors where the view is; the first line is everything."""
        _load(self.nodes, NODE_COLUMNS, facts.nodes, view.node, now)
        self.show_namespaces(facts, view, now)

    def show_namespaces(self, facts: Facts, view: View, now: datetime) -> None:
        """Load the namespaces of the view's node."""
        groups = namespaces_on(facts, view.node, view.namespace)
        _load(self.namespaces, NAMESPACE_COLUMNS, groups, view.namespace, now)

    def fit(self, facts: Facts | None, now: datetime) -> None:
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
