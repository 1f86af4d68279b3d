"""`kubectl qos top`: pods by OOM kill priority; `top nodes` is in top_nodes.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.tables import TableCommand, TableView, print_table, problem_notes
from kubectl_qos.cli.targets import top_kind
from kubectl_qos.errors import EXIT_ERROR, ApiError, UsageError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import UsageOrigin
from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_columns import (
    DEFAULT_KEYS,
    EVERY_KEYS,
    EVICTION_KEYS,
    PodColumn,
    find_pod_column,
    pod_columns,
)
from kubectl_qos.present.pod_rows import PodRow, PodRows, build_rows, row_risk
from kubectl_qos.present.reasons import usage_sentence, usage_values
from kubectl_qos.qos.flags import Risk


def run(options: argparse.Namespace) -> int:
    """Print the table; exit code 1 if a document or something named was wanting."""
    kind, names = top_kind(getattr(options, "names", []))
    tabled: TableCommand
    if kind == "Node":
        from kubectl_qos.cli.top_nodes import NodeTable

        tabled = NodeTable(options, names)
    else:
        tabled = PodTable(options, names)
    wanted = resolve_source(options, names)
    if getattr(options, "watch", False):
        from kubectl_qos.cli.watch import watch

        return watch(tabled, wanted, options)
    now = wanted.source.now
    shown = tabled.shown(tabled.snapshot(wanted), tabled.scope(wanted), now())
    if shown.rows or not (shown.missing or wanted.failed):
        print_table(shown, options, now())
    ages = shown.ages if getattr(options, "output", None) != "name" else ()
    streams.notes((*problem_notes(wanted.problems), *ages, *shown.notes))
    for error in shown.missing:
        streams.error(error)
    return EXIT_ERROR if wanted.failed or shown.missing else 0


class PodTable:
    """Pods, or their containers."""

    def __init__(self, options: argparse.Namespace, names: list[str]) -> None:
        self._options = options
        self._names = names
        self._containers = getattr(options, "containers", False)
        self._sort_column = _sort_column(getattr(options, "sort_by", None), containers=self._containers)
        self._least = getattr(options, "min_risk", None)
        self._before: PodRows | None = None

    def scope(self, wanted: ResolvedSource) -> Scope:
        """The pods that are shown; a source adds those that they are ranked among."""
        return wanted.scope

    def snapshot(self, wanted: ResolvedSource) -> Snapshot:
        """The source's answer."""
        return wanted.source.snapshot(wanted.scope)

    def shown(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[PodRow]:
        """The ranking, sorted and cut down to what is asked for."""
        found = build_rows(snapshot, scope, containers=self._containers, before=self._before)
        if getattr(self._options, "watch", False):
            self._before = found
        rows: Sequence[PodRow] = found.rows
        if self._sort_column is not None:
            rows = sorted(rows, key=self._sort_column.sort_key)
        if self._least is not None:
            rows = [row for row in rows if row_risk(row) >= Risk[self._least.upper()]]
        sampled = found.sampled if any(row.memory is not None for row in rows) else None
        nothing = (
            f"No resources of risk {self._least} or higher found" if self._least else "No resources found"
        )
        return TableView(
            kind="PodRanking",
            rows=rows,
            columns=pod_columns(self._keys(found, scope)),
            notes=found.notes,
            key=lambda row: row.key,
            reference=_reference,
            nothing=f"{nothing} in {scope.namespace} namespace." if scope.namespace else nothing,
            missing=tuple(_not_found(self._names, found)),
            ages=(usage_sentence(sampled, now),) if sampled is not None else (),
            facts={"usage": usage_values(sampled) if sampled is not None else None},
        )

    def _keys(self, rows: PodRows, scope: Scope) -> list[str]:
        """Which columns: of several nodes the node is shown too, of a kubelet's measure RSS and swap."""
        sort_key = self._sort_column.key if self._sort_column is not None else ""
        keys: tuple[str, ...] = DEFAULT_KEYS
        output = getattr(self._options, "output", None)
        if output in {"wide", "json", "yaml", "csv"}:
            keys = EVERY_KEYS
        elif sort_key == "eviction":
            keys = EVICTION_KEYS
        found = list(keys)
        if self._containers:
            found.insert(found.index("pod") + 1, "container")
        if len(rows.nodes) > 1 and scope.node is None and "node" not in found:
            found.insert(found.index("qos"), "node")
        by_kubelet = rows.sampled is not None and rows.sampled.origin is UsageOrigin.KUBELET_SUMMARY
        if by_kubelet or output in {"json", "yaml", "csv"}:
            found[found.index("memory") + 1 : found.index("memory") + 1] = ["rss", "swap"]
        if sort_key and sort_key not in found:
            found.insert(len(found) - 1, sort_key)
        return found


def _sort_column(name: str | None, *, containers: bool) -> PodColumn | None:
    found = find_pod_column(name) if name else None
    if found is not None and found.key == "container" and not containers:
        raise UsageError(f"there is no column {name!r} in a table of pods", hint="add --containers")
    return found


def _reference(row: PodRow) -> str:
    return escape(row.name if row.pod.kind != "Pod" else f"pod/{row.name}")


def _not_found(names: list[str], rows: PodRows) -> list[ApiError]:
    found = {row.pod.name for row in rows.rows}
    return [
        ApiError(f'Error from server (NotFound): pods "{name}" not found', status=404, reason="NotFound")
        for name in names
        if name not in found
    ]
