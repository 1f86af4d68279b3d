"""JSON, YAML and CSV of values that are already plain."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import ColumnOf, RowT

_CONTROLS: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls that JSON and YAML let through: of terminals, of lines and of the direction of writing; and halves
of characters, which no encoding has."""


def to_json(values: Any) -> str:
    """Indented JSON with a newline at the end, without characters that a terminal would act on."""
    text = json.dumps(values, indent=4, ensure_ascii=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def to_yaml(values: Any) -> str:
    """Block-style YAML in the order of the values."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = str(yaml.dump(values, Dumper=dumper, sort_keys=False, allow_unicode=True))
    if _CONTROLS.search(text) is None:
        return text
    return str(yaml.dump(values, Dumper=dumper, sort_keys=False, allow_unicode=False))


def to_csv(rows: Iterable[RowT], columns: Sequence[ColumnOf[RowT]]) -> str:
    """Comma separated values with the columns' keys as header; memory in bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.key for column in columns])
    for row in rows:
        writer.writerow([_cell(column.value(row)) for column in columns])
    return out.getvalue()


def table_values(
    kind: str, rows: Iterable[RowT], columns: Sequence[ColumnOf[RowT]], notes: Iterable[str]
) -> dict[str, Any]:
    """Any table for JSON and YAML: one object a row, keys as the columns', and what has to be known."""
    return {
        "kind": kind,
        "items": [{column.key: column.value(row) for column in columns} for row in rows],
        "notes": list(notes),
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))
