"""Which columns of a list are shown: those that a person chose, all, or the most important that fit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, WIDEST, Layout, TableColumn, measured

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
    squeezed: Mapping[str, int],
) -> Layout[RowT]:
    """The columns that fit into so many cells.

    Args:
        columns: in the order in which they are shown.
        importance: their keys, those that stay the longest first.
        rows: what is listed.
        now: for ages.
        available: cells.
        squeezed: the keys of those that may be cut, and so many cells of them at least; each is twice in
            `importance`, cut and whole. What room is left is theirs.
    """
    widths = dict(zip([column.key for column in columns], measured(columns, rows, now), strict=True))
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in importance:
        if key not in widths:
            continue
        if key in kept:
            width, needed = widths[key], widths[key] - kept[key]
        else:
            width = min(widths[key], squeezed.get(key, WIDEST))
            # A gap is where the sorted column has its sign; the last one can go without when it is cut.
            needed = width if key in squeezed and key == columns[-1].key else width + GAP
        if needed > room:
            break
        kept[key] = width
        room -= needed
    for key in squeezed:
        if key in kept:
            more = min(widths[key] - kept[key], room)
            kept[key] += more
            room -= more
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])
