"""A table as a command shows it, in every output format: once, or again and again (watching.py)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.output import Column, RowT, table, table_values, to_csv, to_json, to_yaml


@dataclass(frozen=True, slots=True)
class TableView(Generic[RowT]):
    """Rows with their columns, and what has to be known about them.

    `key` names a row, `reference` is its name for `-o name`, `nothing` what is said where there are no rows.
    `ages` are notes that go with the time, for people; `facts` say the same to programs.
    """

    kind: str
    rows: Sequence[RowT]
    columns: Sequence[Column[RowT]]
    notes: tuple[str, ...]
    key: Callable[[RowT], Hashable]
    reference: Callable[[RowT], str]
    nothing: str
    missing: tuple[QosError, ...] = ()
    ages: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class TableCommand(Protocol):
    """What a command shows of a snapshot."""

    def scope(self, wanted: ResolvedSource) -> Scope:
        """What the source is asked for."""

    def snapshot(self, wanted: ResolvedSource) -> Snapshot:
        """The source's answer."""

    def shown(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[Any]:
        """The table of a snapshot."""


def print_table(shown: TableView[Any], options: argparse.Namespace, now: datetime) -> None:
    """Print the rows in the format that is asked for."""
    output = getattr(options, "output", None)
    if output in {"json", "yaml"}:
        values = table_values(shown.kind, shown.rows, shown.columns, shown.notes) | dict(shown.facts)
        streams.out_text(to_json(values) if output == "json" else to_yaml(values))
    elif output == "csv":
        streams.out_text(to_csv(shown.rows, shown.columns))
    elif output == "name":
        streams.out(map(shown.reference, shown.rows))
    elif not shown.rows:
        streams.note(shown.nothing)
    else:
        headers = not getattr(options, "no_headers", False)
        streams.out(table(shown.rows, shown.columns, now, headers=headers))


def problem_notes(problems: Iterable[str]) -> tuple[str, ...]:
    """What could not be read of files."""
    return tuple(f"error: {problem}" for problem in problems)
