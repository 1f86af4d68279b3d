"""How wide a table's columns are from one load to the next. Pure, no widgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from kubectl_qos.tui.widgets.table_layout import GAP, GUTTER, Layout

RowT = TypeVar("RowT")

NARROWEST: Final = 3
"""No column can be made narrower."""


class Widths:
    """What columns needed, and what a person chose instead; all of it in cells, by the column's key.

    A column keeps its width when its texts become shorter, so that columns do not jump with every refresh.
    """

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}
        self._needed: dict[str, int] = {}
        self._available = 0

    @property
    def chosen(self) -> dict[str, int]:
        """What a person chose."""
        return dict(self._chosen)

    @chosen.setter
    def chosen(self, widths: Mapping[str, int]) -> None:
        self._chosen = {key: max(width, NARROWEST) for key, width in widths.items()}

    def forget(self) -> None:
        """Measure anew, but keep what was chosen."""
        self._needed = {}

    def of(self, layout: Layout[RowT], available: int) -> Layout[RowT]:
        """The layout with the widths that its columns have here; others, or another room, begin anew."""
        measured = {column.key: width for column, width in zip(layout.columns, layout.widths, strict=True)}
        if measured.keys() != self._needed.keys() or available != self._available:
            self._needed, self._available = {}, available
        kept = {key: max(width, self._needed.get(key, 0)) for key, width in measured.items()}
        _give_back(kept, measured, available)
        self._needed = kept
        return replace(layout, widths=[self._chosen.get(key, width) for key, width in kept.items()])


def _give_back(kept: dict[str, int], measured: Mapping[str, int], available: int) -> None:
    """What fits when measured fits when kept: the last columns give back what they do not need."""
    gaps = GUTTER + GAP * max(len(kept) - 1, 0)
    too_wide = sum(kept.values()) - max(available - gaps, sum(measured.values()))
    for key in reversed(kept):
        returned = min(kept[key] - measured[key], max(too_wide, 0))
        kept[key] -= returned
        too_wide -= returned


def edge_at(layout: Layout[Any], x: int) -> str | None:
    """The key of the column whose right edge a cell of the whole line is: the one before the next column."""
    end = GUTTER
    for column, width in zip(layout.columns, layout.widths, strict=True):
        end += width + GAP
        if x == end - 1:
            return column.key
    return None
