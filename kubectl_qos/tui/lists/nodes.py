"""The cluster: every node with its memory as a bar, its pressure, and whom the kernel kills next there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, cast

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import binary, escape
from kubectl_qos.present.node_columns import (
    FILLS,
    NODE_COLUMNS,
    OTHER_NAMES,
    RESERVED,
    NodeColumn,
    memory_bar,
)
from kubectl_qos.present.node_rows import NodeRow, NodeRows, build_node_rows, trouble_first
from kubectl_qos.present.output import Align, Column
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.tui.filters import Fields
from kubectl_qos.tui.lists.base import ListRows, all_columns, fitting_columns
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.table_cells import GAP, Layout, Token
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, wrapped

_IMPORTANCE: Final = (
    "node",
    "memory",
    "used_percent",
    "pressure",
    "next_victim",
    "node",
    "next_victim",
    "pods",
    "worst_percent",
    "requests_percent",
    "limits_percent",
    "guaranteed",
    "burstable",
    "best_effort",
    "capacity",
    "used",
    "to_eviction",
)
_LEFT_OUT: Final = frozenset(
    {"victim_qos", "victim_others", "eviction_configured", "soft_eviction", "to_soft_eviction"}
)
"""Columns of files, which only repeat or explain others here."""
_BAR_TOKENS: Final[dict[QosClass | None, str]] = {
    None: "muted",
    **{qos: CLASSES[qos].token for qos in FILLS},
}
_BAR: Final = 20
_WIDEST_BAR: Final = 60
_SQUEEZED: Final = {"node": 20, "next_victim": 20}
_VICTIMS: Final = 4


def _bar_column(cells: int) -> NodeColumn:
    return Column(
        "memory",
        "MEMORY",
        Align.LEFT,
        cells,
        lambda row, _: "".join(part.text for part in memory_bar(row, cells)) or "?",
        lambda row: None if row.used_percent is None else round(row.used_percent, 1),
        trouble_first,
        "the node's memory: "
        + ", ".join(f"{fill} {qos.value}" for qos, fill in FILLS.items())
        + f", {RESERVED}"
        " reserved for the system",
    )


def _columns(cells: int) -> dict[str, NodeColumn]:
    named = {key: column for key, column in NODE_COLUMNS.items() if key not in _LEFT_OUT}
    return {"node": named.pop("node"), "memory": _bar_column(cells), **named}


class NodeList:
    """Nodes in trouble first, then the fullest."""

    kind: Final = ListKind.NODES
    natural: Final = "memory"
    is_quick: Final = False
    columns: Mapping[str, NodeColumn] = _columns(_BAR)
    fields: Final = Fields(NODE_COLUMNS, OTHER_NAMES, None)

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Every node; those about which nothing has changed are taken over."""
        del view
        known = cast("NodeRows", before.kept) if before is not None else None
        found = build_node_rows(facts.snapshot, lambda *_: True, known)
        return ListRows(found.rows, found.notes, found)

    def layout(
        self, view: View, chosen: Sequence[str] | None, rows: Sequence[NodeRow], now: datetime, available: int
    ) -> Layout[NodeRow]:
        """All columns, or the most important that fit; the bar takes what room is left."""
        if chosen is not None:
            return all_columns([self.columns[key] for key in chosen], rows, now, "node")
        if view.wide:
            return all_columns(list(self.columns.values()), rows, now, "node")
        found = fitting_columns(
            list(self.columns.values()),
            _IMPORTANCE,
            rows,
            now,
            available,
            _SQUEEZED,
        )
        room = max(available - found.line_width - GAP, 0)
        if not any(row.memory.used is not None and row.capacity for row in rows):
            return found
        columns, widths = list(found.columns), list(found.widths)
        for place, column in enumerate(columns):
            if column.key == "memory":
                widths[place] = max(widths[place], min(widths[place] + room, _WIDEST_BAR))
                columns[place] = _bar_column(widths[place])
        return Layout(columns, widths)

    def key(self, row: NodeRow) -> Hashable:
        """Its name."""
        return row.name

    def token(self, row: NodeRow, key: str, width: int) -> Token:
        """The bar by class; a node in trouble and the next victim stand out."""
        if key == "memory":
            return tuple((len(part.text), _BAR_TOKENS[part.qos]) for part in memory_bar(row, width))
        if key in {"node", "pressure", "used_percent"} and row.troubles:
            return "error"
        if key == "next_victim":
            return "victim" if row.troubles else ""
        if key == "used_percent" and (row.used_percent or 0) >= 90:
            return "warning"
        return "muted" if key in {"capacity", "requests", "limits", "allocatable"} else ""

    def is_at_risk(self, row: NodeRow) -> bool:
        """Whether the node says that it is in trouble, or more than all of it may be used."""
        return bool(row.troubles) or (row.worst_percent or 0) > 100

    def panel(self, row: NodeRow, facts: ViewModel) -> TextLayout:
        """Who dies first there, and who after that."""
        sentences = list(_sentences(row, facts))

        def layout(width: int) -> list[TextLine]:
            first, *others = sentences
            token = "wrong" if row.victim is not None else "answer"
            return [
                *(TextLine(line, token) for line in wrapped(first, width, hanging="")),
                *(TextLine(line) for other in others for line in wrapped(other, width, hanging="")),
            ]

        return layout

    def opened(self, view: View, row: NodeRow) -> View | None:
        """Its pods."""
        return replace(view.whole, kind=ListKind.PODS, node=row.name)

    def pod_of(self, row: NodeRow, facts: ViewModel) -> PodRow | None:
        """Its next victim, None where that is not among the pods that were asked for."""
        return next((one for one in _victims(row, facts) if one.rank == 1), None)

    def node_of(self, row: NodeRow) -> str:
        """Itself."""
        return row.name


def _victims(row: NodeRow, facts: ViewModel) -> list[PodRow]:
    """The first pods in its kill order."""
    ranked = facts.rows.nodes.get(row.name)
    found = [one for one in ranked.rows if one.rank is not None] if ranked is not None else []
    return sorted(found, key=lambda one: (one.rank, one.key))[:_VICTIMS]


def _sentences(row: NodeRow, facts: ViewModel) -> list[str]:
    name = escape(row.name)
    if row.victim is None:
        found = [f"{name}: {_why_nobody(row)}"]
    else:
        victims = _victims(row, facts)
        first = _named(row.victim.key, row.victim.oom_score, row.victim.qos)
        if victims and victims[0].rank == 1:
            first = _named_row(victims.pop(0))
        found = [f"{name}: if memory runs out now, first to die: {first}"]
        if victims and _all_are_shown(row, facts):
            found.append(f"then {', '.join(map(_named_row, victims))}")
    if row.to_eviction is not None:
        if row.to_eviction < 0:
            found.append("the kubelet evicts pods already: its threshold is crossed")
        else:
            found.append(
                f"the kubelet evicts pods once they use {binary(row.to_eviction)} more, at the latest"
            )
    return found


def _why_nobody(row: NodeRow) -> str:
    if not row.memory.pods:
        return "no pods are there, nothing would be killed"
    if row.capacity is None:
        return "the order in which its pods die is unknown: the node's memory capacity is not known"
    return "no pod there can be killed, or its order is not known"


def _all_are_shown(row: NodeRow, facts: ViewModel) -> bool:
    """Whether the pods that were asked for are all that have a rank on the node."""
    ranked = facts.rows.nodes.get(row.name)
    return ranked is not None and ranked.ranked == sum(1 for one in ranked.rows if one.rank is not None)


def _named_row(row: PodRow) -> str:
    return _named((row.pod.namespace, row.name), row.score, row.qos)


def _named(key: PodKey, oom_score: int | None, qos: QosClass) -> str:
    score = "" if oom_score is None else f"{oom_score}, "
    return f"{escape('/'.join(key))} ({score}{CLASSES[qos].letter})"
