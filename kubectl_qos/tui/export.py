"""Writing what is shown to a file that a person names; nothing that exists is overwritten unasked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from kubectl_qos.errors import InputError
from kubectl_qos.present.output import Column, table, table_values, to_csv, to_json, to_yaml
from kubectl_qos.tui.view import ListKind


def parse_path(name: str) -> Path:
    """The whole path of a name as typed, `~` included. Raises InputError for a name that is none."""
    name = name.strip()
    if not name:
        raise InputError("a file name is needed")
    try:
        path = Path(name).expanduser()
        return path if path.is_absolute() else Path.cwd() / path
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name}: {error}") from None


def save(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write the text.

    Raises:
        FileExistsError: the file is there already, and `overwrite` was not said.
        InputError: it cannot be written; the message names it and says why.
    """
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: {reason}") from None


_NAMES: Final = {
    ListKind.NODES: "NodeMemory",
    ListKind.NAMESPACES: "NamespaceRanking",
    ListKind.WORKLOADS: "WorkloadRanking",
    ListKind.PODS: "PodRanking",
    ListKind.CONTAINERS: "ContainerRanking",
}


def export_rows(
    path: Path,
    *,
    kind: ListKind,
    rows: Sequence[Any],
    columns: Sequence[Column[Any]],
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
