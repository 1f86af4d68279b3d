"""Which columns of a table fit into a width, by their importance.

lists/ has the columns of a list, table.py their widths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kubectl_qos.present.output import Column
from kubectl_qos.tui.widgets.table import GAP, GUTTER, MAX_WIDTH, Layout, RowT, measured


def moved(importance: str, key: str, after: str) -> str:
    """Move a column in the importance of columns, to after another one, if it stands later."""
    words = importance.split()
    if key in words and after in words and words.index(key) > words.index(after):
        words.remove(key)
        words.insert(words.index(after) + 1, key)
    return " ".join(words)


def fitting_columns(
    columns: Sequence[Column[RowT]],
    importance: str,
    rows: Sequence[RowT],
    now: datetime,
    available: int,
    squeezed: Mapping[str, int],
) -> Layout[RowT]:
    """Return the columns that fit.

    Args:
        columns: in the order in which they are shown.
        importance: their keys, those first that stay the longest.
        rows: what is listed.
        now: for ages.
        available: the width in cells.
        squeezed: the keys of those that may be cut, with their least widths; each is twice in `importance`,
            cut and whole, which is at most MAX_WIDTH. They share the remaining width.
    """
    most = max(available, MAX_WIDTH)
    whole = dict(zip([column.key for column in columns], measured(columns, rows, now, most), strict=True))
    widths = {key: min(width, MAX_WIDTH) for key, width in whole.items()}
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in importance.split():
        if key not in widths:
            continue
        if key in kept:
            width, needed = widths[key], widths[key] - kept[key]
        else:
            width = min(widths[key], squeezed.get(key, MAX_WIDTH))
            # The sign of the sorted column stands in the gap; the last column can go without when it is cut.
            needed = width if key in squeezed and key == columns[-1].key else width + GAP
        if needed > room:
            break
        kept[key] = width
        room -= needed
    for key in squeezed:
        if key in kept:
            more = min(whole[key] - kept[key], room)
            kept[key] += more
            room -= more
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])
