"""`kubectl qos top nodes`: the memory of nodes, and who is killed next on each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus

from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.cli.tables import TableView
from kubectl_qos.errors import ApiError, UsageError
from kubectl_qos.k8s.objects import NodeObject
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.format import escape
from kubectl_qos.present.node_columns import (
    DEFAULT_KEYS,
    EVERY_KEYS,
    EVICTION_KEYS,
    WIDE_KEYS,
    find_node_column,
    node_columns,
)
from kubectl_qos.present.node_rows import NodeRow, NodeRows, build_node_rows


class NodeTable:
    """Nodes, each with all of its pods."""

    def __init__(self, options: argparse.Namespace, names: Sequence[str]) -> None:
        for flag, word in (("containers", "--containers"), ("min_risk", "--min-risk")):
            if getattr(options, flag, None):
                raise UsageError(f"{word} selects among pods, not among nodes", hint="kubectl qos top pods")
        self._names = names
        sort_by = getattr(options, "sort_by", None)
        self._sort_column = find_node_column(sort_by) if sort_by else None
        self._keys = self._columns(getattr(options, "output", None))
        self._selector = Selector()
        options.only_ranking = EVICTION_KEYS.isdisjoint(self._keys)
        if len(names) == 1 and getattr(options, "node", None) is None:
            options.node = names[0]

    def scope(self, wanted: ResolvedSource) -> Scope:
        """Every pod of the nodes: their memory is no namespace's."""
        self._selector = wanted.scope.selector
        return Scope(node=wanted.scope.node)

    def snapshot(self, wanted: ResolvedSource) -> Snapshot:
        """The source's answer; without the right to list all pods, with those of one namespace."""
        scope = self.scope(wanted)
        try:
            return wanted.source.snapshot(scope)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN or wanted.scope.namespace is None:
                raise
        return wanted.source.snapshot(replace(scope, namespace=wanted.scope.namespace))

    def shown(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[NodeRow]:
        """The nodes that are asked for."""
        del now
        found = build_node_rows(snapshot, lambda name, node: self._is_wanted(name, node, scope))
        rows: Sequence[NodeRow] = found.rows
        if self._sort_column is not None:
            rows = sorted(rows, key=self._sort_column.sort_key)
        evictions = () if EVICTION_KEYS.isdisjoint(self._keys) else found.eviction_notes
        return TableView(
            kind="NodeMemory",
            rows=rows,
            columns=node_columns(self._keys),
            notes=(*found.notes, *evictions),
            key=lambda row: row.name,
            reference=lambda row: escape(f"node/{row.name}"),
            nothing="No resources found",
            missing=tuple(self._not_found(found)),
        )

    def _is_wanted(self, name: str, found: NodeObject | None, scope: Scope) -> bool:
        return (
            (scope.node is None or name == scope.node)
            and (not self._names or name in self._names)
            and self._selector.matches(found.metadata.labels if found is not None else None)
        )

    def _columns(self, output: str | None) -> list[str]:
        if output in {"json", "yaml", "csv"}:
            return list(EVERY_KEYS)
        found = list(WIDE_KEYS if output == "wide" else DEFAULT_KEYS)
        if self._sort_column is not None and self._sort_column.key not in found:
            found.insert(len(found) - 1, self._sort_column.key)
        return found

    def _not_found(self, rows: NodeRows) -> list[ApiError]:
        found = {row.name for row in rows.rows}
        return [
            ApiError(f'Error from server (NotFound): nodes "{name}" not found', status=404, reason="NotFound")
            for name in self._names
            if name not in found
        ]
