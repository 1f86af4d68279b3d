"""Containers in kill order: what the kernel really chooses among."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import COLUMNS, Column
from kubectl_qos.present.rows import PodRow, Rows, rows_of
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.filters import PODS
from kubectl_qos.tui.lists.base import WorkedOut, newest_row
from kubectl_qos.tui.lists.pods import IMPORTANCE, Pods, pod_layout, pod_token
from kubectl_qos.tui.view import Kind, View
from kubectl_qos.tui.widgets.document import TextLayout, TextLine, wrapped
from kubectl_qos.tui.widgets.table_cells import Token
from kubectl_qos.tui.widgets.table_layout import Layout

_ORDER: Final = (
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


class Containers:
    """The containers of a node, namespace, workload or pod, each with its own score."""

    kind: Final = Kind.CONTAINERS
    natural: Final = "rank"
    fields: Final = PODS
    is_quick: Final = False
    columns: Mapping[str, Column] = {
        column.key: column for column in COLUMNS if column.key not in {"flags", "eviction", "risk"}
    }

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def work_out(self, facts: Facts, view: View, before: WorkedOut | None) -> WorkedOut:
        """Those of the pods that the view would list, each ranked among all of its node."""
        scope = Scope(namespace=view.namespace, node=view.node)
        known = cast("Rows", before.kept) if before is not None else None
        found = rows_of(facts.snapshot, scope, containers=True, before=known)
        shown = {row.key[:2] for row in view.pod_rows(facts)}
        if view.pod is not None:
            shown &= {view.pod}
        rows = [row for row in found.rows if row.key[:2] in shown]
        return WorkedOut(rows, found.notes, found)

    def layout(
        self, view: View, chosen: Sequence[str] | None, rows: Sequence[PodRow], now: datetime, available: int
    ) -> Layout[PodRow]:
        """All columns, or the most important that fit."""
        return pod_layout(self.columns, view, chosen, rows, now, available, _ORDER, _IMPORTANCE)

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

    def panel(self, row: PodRow, facts: Facts) -> TextLayout:
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

    def pod_of(self, row: PodRow, facts: Facts) -> PodRow | None:
        """Its pod, None where that is gone meanwhile."""
        return newest_row(row, facts)

    def node_of(self, row: PodRow) -> str:
        """Its node."""
        return row.node
