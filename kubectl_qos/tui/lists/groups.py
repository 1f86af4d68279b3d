"""Workloads and namespaces: their pods added up, those with the next victims first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.present.format import escape
from kubectl_qos.present.groups import (
    NAMESPACE_COLUMNS,
    WORKLOAD_COLUMNS,
    GroupColumn,
    GroupRow,
    group_row,
    grouped,
    rank_order,
)
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.tui.filters import Fields
from kubectl_qos.tui.lists.base import ListRows, all_columns, fitting_columns, newest_row
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.view import ListKind, View, count
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.table_cells import Layout, Token
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, wrapped

KeyT = TypeVar("KeyT", bound=Hashable)

_IMPORTANCE: Final = (
    "workload",
    "rank",
    "pods",
    "qos",
    "oom_score",
    "kind",
    "memory",
    "workload",
    "worst",
    "namespace",
    "at_risk",
    "node",
    "worst",
    "request",
    "limit",
    "restarts",
    "victims",
)
_SQUEEZED: Final = {"workload": 24, "namespace": 24, "worst": 24}


class _GroupList(ABC, Generic[KeyT]):
    """What workloads and namespaces have in common."""

    natural: Final = "rank"
    is_quick: Final = False
    columns: Mapping[str, GroupColumn]
    importance: Sequence[str]
    name: str

    def __init__(self, pods: PodList) -> None:
        self._pods = pods

    def layout(
        self,
        view: View,
        chosen: Sequence[str] | None,
        rows: Sequence[GroupRow[KeyT]],
        now: datetime,
        available: int,
    ) -> Layout[GroupRow[KeyT]]:
        """All columns, or the most important that fit."""
        if chosen is not None:
            return all_columns([self.columns[key] for key in chosen], rows, now, self.name)
        left_out = {"namespace"} if view.namespace is not None else set()
        columns = [column for key, column in self.columns.items() if key not in left_out]
        if view.wide:
            return all_columns(columns, rows, now, self.name)
        return fitting_columns(columns, self.importance, rows, now, available, _SQUEEZED)

    def key(self, row: GroupRow[KeyT]) -> Hashable:
        """What it is."""
        return row.key

    def token(self, row: GroupRow[KeyT], key: str, width: int) -> Token:
        """Those with a next victim stand out."""
        del width
        if row.victims and key in {"rank", "worst", "oom_score"}:
            return "victim"
        if key == "qos" and len(row.classes) == 1:
            return CLASSES[row.classes[0][0]].token
        if key in {"namespace", "kind", "node", "request", "limit"} and key != self.name:
            return "muted"
        return "warning" if key == "at_risk" and row.at_risk else ""

    def is_at_risk(self, row: GroupRow[KeyT]) -> bool:
        """Whether one of its pods is."""
        return bool(row.at_risk)

    def panel(self, row: GroupRow[KeyT], facts: ViewModel) -> TextLayout:
        """How many of its pods are in danger, then why the first of them dies."""
        worst = newest_row(row.worst, facts)
        words = f"{self.title(row)}: {count(row.pods, ListKind.PODS)}"
        if row.victims:
            words += f", {row.victims} the next victim of {'its' if row.victims == 1 else 'their'} node"
        if row.at_risk:
            words += f", {row.at_risk} with a flag of risk"
        if worst is None:
            return lambda width: [TextLine(line, "answer") for line in wrapped(words, width)]
        words += "; the first of them to die:"
        of_pod = self._pods.panel(worst, facts)

        def layout(width: int) -> list[TextLine]:
            return [*(TextLine(line, "answer") for line in wrapped(words, width, hanging="")), *of_pod(width)]

        return layout

    @abstractmethod
    def title(self, row: GroupRow[KeyT]) -> str:
        """What a sentence calls it."""

    def pod_of(self, row: GroupRow[KeyT], facts: ViewModel) -> PodRow | None:
        """The first of its pods to die, None where that is gone meanwhile."""
        return newest_row(row.worst, facts)

    def node_of(self, row: GroupRow[KeyT]) -> str:
        """That pod's node."""
        return row.worst.node


class WorkloadList(_GroupList[Workload]):
    """Deployments, StatefulSets and so on of the pods of a node or namespace."""

    kind: Final = ListKind.WORKLOADS
    columns = WORKLOAD_COLUMNS
    fields: Final = Fields(WORKLOAD_COLUMNS, {"ns": "namespace"}, lambda row: row.worst.pod.metadata.labels)
    importance = _IMPORTANCE
    name = "workload"

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Worked out anew: what a pod belongs to costs little."""
        del before
        rows = grouped(view.pod_rows(facts), lambda row: find_workload(row.pod))
        return _worked_out(
            [group_row(key, found, _words_of(key)) for key, found in rows.items()],
            facts,
        )

    def title(self, row: GroupRow[Workload]) -> str:
        """Kind, namespace and name."""
        kind, namespace, name = row.key
        return escape(f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}")

    def opened(self, view: View, row: GroupRow[Workload]) -> View | None:
        """Its pods."""
        return replace(view.whole, kind=ListKind.PODS, workload=row.key)


class NamespaceList(_GroupList[str]):
    """Every namespace that has pods."""

    kind: Final = ListKind.NAMESPACES
    columns = NAMESPACE_COLUMNS
    fields: Final = Fields(NAMESPACE_COLUMNS, {"ns": "namespace", "name": "namespace"}, None)
    importance = tuple("namespace" if key == "workload" else key for key in _IMPORTANCE if key != "namespace")
    name = "namespace"

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Worked out anew."""
        del before
        rows = grouped(view.pod_rows(facts), lambda row: row.pod.metadata.namespace)
        return _worked_out([group_row(key, found, (key,)) for key, found in rows.items()], facts)

    def title(self, row: GroupRow[str]) -> str:
        """Its name."""
        return f"namespace {escape(row.key)}" if row.key else "no namespace"

    def opened(self, view: View, row: GroupRow[str]) -> View | None:
        """Its pods."""
        return replace(view.whole, kind=ListKind.PODS, namespace=row.key)


def _words_of(workload: Workload) -> tuple[str, ...]:
    kind, namespace, name = workload
    return f"{namespace}/{name}", name, f"{kind}/{name}"


def _worked_out(rows: list[GroupRow[Any]], facts: ViewModel) -> ListRows:
    rows.sort(key=lambda row: rank_order(row.worst))
    return ListRows(rows, facts.rows.notes)
