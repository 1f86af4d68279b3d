"""`kubectl qos top`: pods by OOM kill priority."""

from __future__ import annotations

import argparse
from dataclasses import replace

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import Asked, asked
from kubectl_qos.errors import EXIT_ERROR, ApiError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import (
    DEFAULT_KEYS,
    EVICTION_KEYS,
    WIDE_KEYS,
    Column,
    column_named,
    columns,
)
from kubectl_qos.present.rows import PodRow, Rows, rows_of
from kubectl_qos.present.structured import ranking_values, to_csv, to_json, to_yaml
from kubectl_qos.present.table import pod_table


def run(options: argparse.Namespace) -> int:
    """Print the ranking; exit code 1 if a document or a named pod was wanting."""
    names = [name.removeprefix("pod/").removeprefix("pods/") for name in getattr(options, "names", [])]
    sort_by = getattr(options, "sort_by", None)
    sort_column = column_named(sort_by) if sort_by else None
    wanted = asked(options, names)
    containers = getattr(options, "containers", False)
    rows = rows_of(wanted.source.snapshot(wanted.scope), wanted.scope, containers=containers)
    keys = _keys(getattr(options, "output", None), sort_column, rows, wanted.scope, containers=containers)
    # Without the rankings of 20,000 pods there is room for their table.
    rows = Rows(rows.rows, notes=rows.notes)
    if sort_column is not None:
        rows = replace(rows, rows=tuple(sorted(rows.rows, key=sort_column.sort_key)))
    missing = _not_found(names, rows)
    if rows.rows or not (missing or wanted.failed):
        _print(rows, columns(keys), wanted, options)
    streams.notes((*(f"error: {problem}" for problem in wanted.problems), *rows.notes))
    for error in missing:
        streams.error(error)
    return EXIT_ERROR if wanted.failed or missing else 0


def _keys(
    output: str | None, sort_column: Column | None, rows: Rows, scope: Scope, *, containers: bool
) -> list[str]:
    """Which columns: of several nodes the node is shown too, of one namespace not the namespace."""
    keys: tuple[str, ...] = DEFAULT_KEYS
    if output in {"wide", "json", "yaml", "csv"}:
        keys = WIDE_KEYS
    elif sort_column is not None and sort_column.key == "eviction":
        keys = EVICTION_KEYS
    found = list(keys)
    if containers:
        found.insert(found.index("pod") + 1, "container")
    if len(rows.rankings) > 1 and scope.node is None and "node" not in found:
        found.insert(found.index("qos"), "node")
    if sort_column is not None and sort_column.key not in found:
        found.insert(len(found) - 1, sort_column.key)
    return found


def _print(rows: Rows, picked: list[Column], wanted: Asked, options: argparse.Namespace) -> None:
    output = getattr(options, "output", None)
    if output == "json":
        streams.out_text(to_json(ranking_values(rows, picked)))
    elif output == "yaml":
        streams.out_text(to_yaml(ranking_values(rows, picked)))
    elif output == "csv":
        streams.out_text(to_csv(rows.rows, picked))
    elif output == "name":
        streams.out(_reference(row) for row in rows.rows)
    elif not rows.rows:
        namespace = wanted.scope.namespace
        streams.note(f"No resources found in {namespace} namespace." if namespace else "No resources found")
    else:
        headers = not getattr(options, "no_headers", False)
        streams.out(pod_table(rows.rows, picked, wanted.source.now(), headers=headers))


def _reference(row: PodRow) -> str:
    return escape(row.name if row.pod.kind != "Pod" else f"pod/{row.name}")


def _not_found(names: list[str], rows: Rows) -> list[ApiError]:
    found = {row.pod.name for row in rows.rows}
    return [
        ApiError(f'Error from server (NotFound): pods "{name}" not found', status=404, reason="NotFound")
        for name in names
        if name not in found
    ]
