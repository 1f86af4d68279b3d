"""Victims of a simulation as rows of a table that is sorted, scrolled and opened; words: simulation.py."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.columns import Align, ColumnOf, largest_first
from kubectl_qos.present.simulation import (
    REACH_ALIGNS,
    REACH_TITLES,
    STEP_ALIGNS,
    STEP_TITLES,
    reach_cells,
    step_cells,
)
from kubectl_qos.qos.scenario import Simulation


@dataclass(frozen=True, slots=True)
class VictimRow:
    """A step, or the first victim of a mechanism; `key` is its pod, `identity` what stays the same of it.

    `is_next` is true of the very first one, `is_important` of the first step that hits an important pod.
    """

    place: int
    key: PodKey
    identity: Hashable
    cells: Mapping[str, str]
    is_next: bool
    is_important: bool = False


VictimColumn = ColumnOf[VictimRow]
"""A column of victims."""


def victim_rows(simulation: Simulation) -> list[VictimRow]:
    """The steps in order."""
    first = simulation.first_important
    return [
        VictimRow(
            place,
            step.key,
            (step.mechanism, step.key, step.container),
            _named(STEP_TITLES, cells),
            is_next=place == 1,
            is_important=place == first,
        )
        for place, (step, cells) in enumerate(
            zip(simulation.steps, step_cells(simulation), strict=True), start=1
        )
    ]


def reach_rows(simulation: Simulation) -> list[VictimRow]:
    """Whom each mechanism would hit first, the nearest first."""
    return [
        VictimRow(place, one.key, one.mechanism, _named(REACH_TITLES, cells), is_next=place == 1)
        for place, (one, cells) in enumerate(
            zip(simulation.reaches, reach_cells(simulation), strict=True), start=1
        )
    ]


def _named(titles: Iterable[str], cells: Sequence[str]) -> dict[str, str]:
    return dict(zip(titles, cells, strict=True))


def _column(title: str, align: Align) -> VictimColumn:
    def text(row: VictimRow) -> str:
        return row.cells.get(title, "")

    def sort_key(row: VictimRow) -> object:
        if title == STEP_TITLES[0]:
            return row.place
        if align is Align.LEFT:
            return text(row)
        number = text(row).rstrip("Mi%")
        return largest_first(int(number) if number.lstrip("-").isdigit() else None)

    return ColumnOf(title.lower(), title, align, 4, lambda row, _: text(row), text, sort_key, "")


STEP_COLUMNS: Final = tuple(map(_column, STEP_TITLES, STEP_ALIGNS))
REACH_COLUMNS: Final = tuple(map(_column, REACH_TITLES, REACH_ALIGNS))
