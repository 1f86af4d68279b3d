"""Rows as the text of a file, in the format that the file's name asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kubectl_qos.errors import InputError
from kubectl_qos.present.columns import columns
from kubectl_qos.present.rows import Rows
from kubectl_qos.present.structured import ranking_values, to_csv, to_json, to_yaml


def exported(path: Path, rows: Rows, keys: Sequence[str]) -> str:
    """The rows with these columns as csv, json or yaml. Raises InputError for another extension."""
    chosen = columns(keys)
    if path.suffix == ".csv":
        return to_csv(rows.rows, chosen)
    if path.suffix == ".json":
        return to_json(ranking_values(rows, chosen))
    if path.suffix in {".yaml", ".yml"}:
        return to_yaml(ranking_values(rows, chosen))
    raise InputError(f"{path.name}: the extension chooses the format", hint="end it in .csv, .json or .yaml")
