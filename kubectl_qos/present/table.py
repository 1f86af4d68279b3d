"""Plain text tables as kubectl prints them: upper-case headers, three spaces, no borders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from kubectl_qos.present.columns import Align, Column
from kubectl_qos.present.rows import PodRow

GAP: Final = "   "


def pod_table(
    rows: Iterable[PodRow], columns: Sequence[Column], now: datetime, *, headers: bool = True
) -> Iterator[str]:
    """The lines of a table of pods."""
    cells = [[column.cell(row, now) for column in columns] for row in rows]
    titles = [column.header for column in columns] if headers else None
    return lines(cells, [column.align for column in columns], titles)


def lines(
    cells: Sequence[Sequence[str]],
    aligns: Sequence[Align],
    titles: Sequence[str] | None = None,
) -> Iterator[str]:
    """Cells in columns as wide as their widest cell, without spaces at the end of a line."""
    everything = [titles, *cells] if titles is not None else cells
    widths = [max(map(len, column), default=0) for column in zip(*everything, strict=True)]
    form = GAP.join(
        f"{{:{align}{width}}}" if width else "{}" for align, width in zip(aligns, widths, strict=True)
    )
    for row in everything:
        yield form.format(*row).rstrip()
