"""The tables of `top`: pods or their containers by rank, namespaces, workloads, and nodes by memory."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Generic

from msgspec import structs

from kubectl_qos.analysis.deaths import by_node, first_deaths_of
from kubectl_qos.analysis.group_table import (
    GroupRow,
    NodeRow,
    build_node_rows,
    namespace_rows,
    rank_order,
    workload_rows,
    worst_node_first,
)
from kubectl_qos.analysis.pod_table import PodRow, PodRows, build_rows, row_risk
from kubectl_qos.cli import output
from kubectl_qos.cli.options import TableFormat, TableOptions
from kubectl_qos.cli.resources import Reference, not_found, note_injectors, with_limit_ranges
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.cli.tables import TableView
from kubectl_qos.errors import ApiError, UsageError
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.objects import NodeObject
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import UsageOrigin, origin_of
from kubectl_qos.present import node_columns, pod_columns
from kubectl_qos.present.format import NONE, escape
from kubectl_qos.present.list_notes import (
    eviction_notes,
    never_evicted_notes,
    node_table_notes,
    pod_table_notes,
    usage_sentence,
)
from kubectl_qos.present.next_death import rank_notes
from kubectl_qos.present.output import Column, Needs, RowT, column, find_column
from kubectl_qos.present.pod_columns import psi_notes
from kubectl_qos.qos.ranking import Risk


class _Table(Generic[RowT]):
    """The base of the tables; `_sorted_by` is the key of the column of --sort-by, or empty."""

    only_ranking = True

    def __init__(self, options: TableOptions, columns: Mapping[str, Column[RowT]]) -> None:
        self._options, self._format = options, options.format
        self._sort_column = find_column(options.sort_by, columns) if options.sort_by else None
        self._sorted_by = self._sort_column.key if self._sort_column is not None else ""

    def scope(self, resolved: ResolvedSource) -> Scope:
        """Return the scope of the shown pods; a source reads also the pods that they are ranked with."""
        return resolved.scope

    def snapshot(self, resolved: ResolvedSource) -> Snapshot:
        """Read the source."""
        snapshot = with_limit_ranges(resolved, scope := self.scope(resolved))[0]
        note_injectors(resolved, snapshot, filter(scope.matches, snapshot.pods))
        return snapshot

    def _order(self, default: Callable[[RowT], Any]) -> Callable[[RowT], Any]:
        return self._sort_column.sort_key if self._sort_column is not None else default

    def _hidden_first(self, keys: Iterable[str]) -> list[str]:
        """Return the columns that may be hidden: all but the column of --sort-by."""
        return [key for key in keys if key != self._sorted_by]

    def _columns(
        self,
        columns: Iterable[Column[RowT]],
        name: str,
        reference: Callable[[RowT], str],
        labels: Callable[[RowT], Mapping[str, str] | None] = lambda _: None,
    ) -> Iterator[Column[RowT]]:
        """Yield the columns and those of -L and --show-labels; with --show-kind names have their kind.

        Documents have only the labels of --show-labels.
        """
        for shown in columns:
            is_name = self._options.show_kind and shown.key == name
            yield structs.replace(shown, cell=lambda row, _: reference(row)) if is_name else shown
        if not self._format.has_values:
            for key in filter(None, ",".join(self._options.label_columns).split(",")):
                header = escape(key.rpartition("/")[2].upper())
                value = partial(lambda key, row: (labels(row) or {}).get(key), key)
                yield column(key, value, field=key, header=header, empty=NONE)
        if self._options.show_labels:
            yield column(
                "labels",
                lambda row: dict(labels(row) or {}),
                cell=lambda row: (
                    escape(",".join(f"{key}={value}" for key, value in (labels(row) or {}).items())) or NONE
                ),
            )


class PodTable(_Table[PodRow]):
    """Pods, or their containers."""

    def __init__(self, options: TableOptions, references: Collection[Reference], *, is_fleet: bool) -> None:
        super().__init__(options, pod_columns.BY_KEY)
        self._is_fleet = is_fleet
        self._references = [reference for reference in references if reference.name]
        if self._sorted_by == "container" and not options.containers:
            problem = f"there is no column {options.sort_by!r} in a table of pods"
            raise UsageError(problem, hint="add --containers")
        self._before: PodRows | None = None

    def view(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[PodRow]:
        """Return the ranking, sorted and filtered by the flags."""
        table = build_rows(snapshot, scope, containers=self._options.containers, before=self._before)
        if self._options.watch:
            self._before = table
        rows: Sequence[PodRow] = [row for row in table.rows if self._is_named(row)]
        deaths = first_deaths_of(snapshot, table)
        order = self._order(by_node(table, deaths))
        rows = sorted(rows, key=order)
        min_risk = self._options.min_risk
        if min_risk is not None:
            rows = [row for row in rows if row_risk(row) >= Risk[min_risk.upper()]]
        sampled = table.sampled if any(row.memory is not None for row in rows) else None
        if sampled is not None and self._is_fleet:
            sampled = sampled._replace(oldest="", newest="")  # times would give each cluster its own note
        usage = None
        if sampled is not None:
            usage = {"origin": sampled.origin, "oldestTime": sampled.oldest, "newestTime": sampled.newest}
        setups = {name: node.setup for name, node in table.nodes.items()}
        keys = [] if self._format.has_every_column else self._keys(table, scope)
        columns = [pod_columns.BY_KEY[key] for key in keys] or pod_columns.VALUE_COLUMNS
        hidden = self._hidden_first(pod_columns.HIDDEN_FIRST)
        if self._sorted_by:  # The ranks of several nodes in one list need NODE: FLAGS is hidden instead.
            hidden = ["flags" if key == "node" else key for key in hidden]
        nothing = f"No resources of risk {min_risk} or higher found" if min_risk else "No resources found"
        return TableView(
            kind="PodRank",
            rows=rows,
            columns=[
                *self._columns(columns, "pod", _pod_reference, lambda row: row.pod.metadata.labels),
            ],
            notes=(
                *pod_table_notes(snapshot, table),
                *rank_notes(deaths),
                *(never_evicted_notes(setups) if "eviction" in keys else ()),
                *psi_notes(keys, rows, origin_of(snapshot.usage)),
            ),
            key=lambda row: row.key,
            reference=_pod_reference,
            nothing=f"{nothing} in {scope.namespace} namespace." if scope.namespace else nothing,
            missing=not_found(
                "pods",
                (reference.name for reference in self._references if reference.kind == "Pod"),
                (row.pod.name for row in table.rows),
                snapshot.nodes,
            ),
            ages=(usage_sentence(sampled, now, snapshot.history),) if sampled is not None else (),
            facts={"usage": usage},
            at=snapshot.at,
            order=order,
            group=self._group(table, scope),
            hidden_first=hidden,
        )

    def _group(self, table: PodRows, scope: Scope) -> Callable[[PodRow], str] | None:
        """Return a function for the heading of a node's rows; None unless rows are listed node by node."""
        if self._sorted_by or self._is_fleet or len(table.nodes) < 2 or scope.node is not None:
            return None
        return lambda row: f"node {escape(row.node)}" if row.node else "without a node"

    def _is_named(self, row: PodRow) -> bool:
        named = self._references
        return not named or any(belongs_to(row.pod, reference.kind, reference.name) for reference in named)

    def _keys(self, rows: PodRows, scope: Scope) -> list[str]:
        """Return the keys of the columns: the node in a pipe or with several nodes; RSS and swap if known."""
        keys = list(pod_columns.DEFAULT_KEYS)
        if self._format.output == "wide":
            keys = list(pod_columns.WIDE_KEYS)
        elif self._sorted_by == "eviction":
            keys[keys.index("rank")] = "eviction"
        if self._options.containers:
            keys.insert(keys.index("pod") + 1, "container")
        has_node = output.terminal_width() is None or len(rows.nodes) > 1 or self._is_fleet
        if has_node and scope.node is None and "node" not in keys:
            keys.insert(keys.index("qos"), "node")
        others = list[str]()
        if rows.sampled is not None and rows.sampled.origin is not UsageOrigin.METRICS_API:
            others = pod_columns.keys_that_need(Needs.SUMMARY)
            others += pod_columns.keys_that_need(Needs.PSI) if self._format.output == "wide" else []
        if any(row.past.peak is not None for row in rows.rows):
            others += pod_columns.keys_that_need(Needs.HISTORY)
        keys[keys.index("memory") + 1 : keys.index("memory") + 1] = others
        if self._sorted_by and self._sorted_by not in keys:
            keys.insert(len(keys) - 1, self._sorted_by)
        return keys


def _pod_reference(row: PodRow) -> str:
    return escape(row.name if row.pod.kind != "Pod" else f"pod/{row.name}")


def _node_reference(row: NodeRow) -> str:
    return escape(f"node/{row.name}")


def _labels_of(node: NodeObject | None) -> Mapping[str, str] | None:
    return node.metadata.labels if node is not None else None


def _refuse_flags_of_pods(options: TableOptions, rows: str) -> None:
    for flag, value in {"--containers": options.containers, "--min-risk": options.min_risk}.items():
        if value:
            raise UsageError(f"{flag} cannot be used with {rows}", hint="it works with kubectl qos top pods")


class GroupTable(_Table[GroupRow[Any]]):
    """Namespaces or workloads with totals of their pods."""

    def __init__(self, options: TableOptions, kind: str) -> None:
        self._kind, by_kind = kind, {"Namespace": node_columns.NAMESPACE_COLUMNS}
        self._by_key = by_kind.get(kind, node_columns.WORKLOAD_COLUMNS)
        rows = f"{kind.lower()}s"
        _refuse_flags_of_pods(options, rows)
        if options.label_columns or options.show_labels:
            raise UsageError(
                f"labels are shown for pods and nodes, not for {rows}", hint="kubectl qos top pods"
            )
        super().__init__(options, self._by_key)

    def scope(self, resolved: ResolvedSource) -> Scope:
        """Return the namespace of -n, else for namespaces all of them, for workloads the context's."""
        if self._kind == "Namespace" and not resolved.has_namespace_flag:
            return resolved.scope._replace(namespace=None)
        return resolved.scope

    def view(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[GroupRow[Any]]:
        """Return a row for each namespace or workload, those with the next victims first."""
        table = build_rows(snapshot, scope)
        rows: list[GroupRow[Any]] = [
            *(namespace_rows(table.rows) if self._kind == "Namespace" else workload_rows(table.rows))
        ]
        if self._sort_column is not None:
            rows.sort(key=self._sort_column.sort_key)
        is_whole = self._format.has_every_column or self._format.output == "wide"
        columns = [
            shown
            for key, shown in self._by_key.items()
            if is_whole or shown.is_default or key == self._sorted_by
        ]
        return TableView(
            kind=f"{self._kind}Rank",
            rows=rows,
            columns=[*self._columns(columns, self._kind.lower(), self._reference)],
            notes=tuple(pod_table_notes(snapshot, table)),
            key=lambda row: row.key,
            reference=self._reference,
            nothing="No resources found",
            ages=(usage_sentence(table.sampled, now, snapshot.history),) if table.sampled is not None else (),
            at=snapshot.at,
            order=self._order(lambda row: rank_order(row.worst)),
            hidden_first=self._hidden_first(node_columns.GROUPS_HIDDEN_FIRST),
        )

    def _reference(self, row: GroupRow[Any]) -> str:
        if self._kind == "Namespace":
            return escape(f"namespace/{row.key}")
        is_pod = row.key.kind in {"Pod", "Static"}
        return escape(f"pod/{row.worst.name}" if is_pod else f"{row.key.kind.lower()}/{row.key.name}")


class NodeTable(_Table[NodeRow]):
    """Nodes, each with all of its pods."""

    def __init__(self, options: TableOptions, names: Collection[str]) -> None:
        _refuse_flags_of_pods(options, "nodes")
        super().__init__(options, node_columns.NODE_COLUMNS)
        self._names = names
        self._keys = self._choose_keys(options.format)
        self._selector = Selector()
        self._has_eviction = not node_columns.EVICTION_KEYS.isdisjoint(self._keys)
        # The next death depends on the kubelet's eviction thresholds, so its configuration is read.
        self.only_ranking = not self._has_eviction and "next_death" not in self._keys

    def scope(self, resolved: ResolvedSource) -> Scope:
        """Return a scope of all namespaces, because a node's memory is that of all its pods."""
        self._selector = resolved.scope.selector
        return Scope(node=resolved.scope.node)

    def snapshot(self, resolved: ResolvedSource) -> Snapshot:
        """Read the source; without the permission to list all pods, only those of one namespace."""
        scope = self.scope(resolved)
        try:
            return resolved.source.snapshot(scope)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN or resolved.scope.namespace is None:
                raise
        return resolved.source.snapshot(scope._replace(namespace=resolved.scope.namespace))

    def view(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[NodeRow]:
        """Return the nodes that the flags select, sorted."""
        table = build_node_rows(snapshot, lambda name, node: self._is_shown(name, node, scope))
        rows: Sequence[NodeRow] = table.rows
        if self._sort_column is not None:
            rows = sorted(rows, key=self._sort_column.sort_key)
        origin, keys = origin_of(snapshot.usage), self._keys
        if origin is UsageOrigin.METRICS_API and not self._format.has_every_column:
            columns = node_columns.NODE_COLUMNS
            keys = [key for key in keys if key == self._sorted_by or columns[key].needs is not Needs.PSI]
        of_default = [row for row in table.rows if not row.configured] if self._has_eviction else []
        assumed = {
            row.name: row.eviction for row in of_default if snapshot.setup(row.name).kubelet.evicts_by_default
        }
        return TableView(
            kind="NodeMemory",
            rows=rows,
            columns=[
                *self._columns(
                    map(node_columns.NODE_COLUMNS.__getitem__, keys),
                    "node",
                    _node_reference,
                    lambda row: _labels_of(snapshot.nodes.get(row.name)),
                )
            ],
            notes=(
                *node_table_notes(snapshot, table),
                *eviction_notes(assumed),
                *(() if self._format.has_every_column else psi_notes(keys, rows, origin)),
            ),
            key=lambda row: row.name,
            reference=_node_reference,
            nothing="No resources found",
            missing=not_found("nodes", self._names, (row.name for row in table.rows)),
            at=snapshot.at,
            order=self._order(worst_node_first),
            hidden_first=self._hidden_first(node_columns.HIDDEN_FIRST),
        )

    def _is_shown(self, name: str, node: NodeObject | None, scope: Scope) -> bool:
        return (
            (scope.node is None or name == scope.node)
            and (not self._names or name in self._names)
            and self._selector.matches(_labels_of(node))
        )

    def _choose_keys(self, format_: TableFormat) -> list[str]:
        if format_.has_every_column:
            return list(node_columns.NODE_COLUMNS)
        keys = list(node_columns.WIDE_KEYS if format_.output == "wide" else node_columns.DEFAULT_KEYS)
        if self._sorted_by and self._sorted_by not in keys:
            keys.insert(len(keys) - 1, self._sorted_by)
        return keys
