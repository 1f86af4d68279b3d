"""Rows as the text of a file, in the format that the file's name asks for, and the screen as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from kubectl_qos.errors import InputError
from kubectl_qos.present.columns import ColumnOf
from kubectl_qos.present.structured import table_values, to_csv, to_json, to_yaml
from kubectl_qos.present.table import table
from kubectl_qos.tui.view import Kind

_NAMES: Final = {
    Kind.NODES: "NodeMemory",
    Kind.NAMESPACES: "NamespaceRanking",
    Kind.WORKLOADS: "WorkloadRanking",
    Kind.PODS: "PodRanking",
    Kind.CONTAINERS: "ContainerRanking",
}


def exported(
    path: Path,
    *,
    kind: Kind,
    rows: Sequence[Any],
    columns: Sequence[ColumnOf[Any]],
    notes: Sequence[str],
    now: datetime,
) -> str:
    """The rows with these columns. Raises InputError for an extension that is none of a format."""
    if path.suffix == ".csv":
        return to_csv(rows, columns)
    if path.suffix == ".txt":
        return "".join(f"{line}\n" for line in table(rows, columns, now))
    if path.suffix in {".json", ".yaml", ".yml"}:
        values = table_values(_NAMES[kind], rows, columns, notes)
        return to_json(values) if path.suffix == ".json" else to_yaml(values)
    raise InputError(
        f"{path.name}: the extension chooses the format", hint="end it in .csv, .json, .yaml or .txt"
    )


def screen_text(screen: Screen[Any]) -> str:
    """What is on a screen, line by line."""
    strips = screen._compositor.render_strips()  # noqa: SLF001 - Textual has pictures as SVG only
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)
