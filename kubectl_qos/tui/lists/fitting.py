"""Which columns of a list are shown: those that a person chose, all, or the most important that fit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout, TableColumn, measured

RowT = TypeVar("RowT")


def all_columns(
    columns: Sequence[TableColumn[RowT]], rows: Sequence[RowT], now: datetime, name: str
) -> Layout[RowT]:
    """Every column, however wide that is; those up to the name stay when the others scroll sideways."""
    keys = [column.key for column in columns]
    fixed = keys.index(name) + 1 if name in keys else 0
    return Layout(columns, measured(columns, rows, now), fixed=fixed)


def most_important(
    columns: Sequence[TableColumn[RowT]],
    importance: Sequence[str],
    rows: Sequence[RowT],
    now: datetime,
    available: int,
    *,
    squeezed: str = "",
    least: int = 8,
) -> Layout[RowT]:
    """The columns that fit into so many cells.

    Args:
        columns: in the order in which they are shown.
        importance: their keys, those that stay the longest first.
        rows: what is listed.
        now: for ages.
        available: cells.
        squeezed: the key of the last column, which may be cut: twice in `importance`, cut and whole.
        least: so many cells of it at least.
    """
    widths = dict(zip([column.key for column in columns], measured(columns, rows, now), strict=True))
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in importance:
        if key not in widths:
            continue
        cut = key == squeezed and key not in kept
        width = min(widths[key], least) if cut else widths[key]
        needed = width - kept[key] if key in kept else width + (0 if key == squeezed else GAP)
        if needed > room:
            break
        kept[key] = width
        room -= needed
    if squeezed in kept:
        kept[squeezed] = min(widths[squeezed], kept[squeezed] + room)
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])
