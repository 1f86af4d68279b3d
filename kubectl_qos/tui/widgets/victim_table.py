"""The table of those who die, the next one first; or of whom each mechanism would hit first."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubectl_qos.present.simulation import REACH_COLUMNS, STEP_COLUMNS, VictimRow, reach_rows, victim_rows
from kubectl_qos.qos.simulation.engine import Simulation
from kubectl_qos.tui.lists.base import fitting_columns
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import Layout

_IMPORTANCE: Final = (
    "victim",
    "by",
    "more",
    "growth",
    "step",
    "freed",
    "free_after",
    "note",
    "victim",
    "note",
    "score",
    "qos",
    "container",
    "container",
)
_SQUEEZED: Final = {"victim": 20, "note": 14, "container": 6}


class VictimTable(LineTable[VictimRow]):
    """Shows a simulation."""

    def __init__(self) -> None:
        super().__init__(natural="step", key=lambda row: row.identity, token=_token)
        self.flashes = False

    def show(self, simulation: Simulation | None, now: datetime) -> None:
        """Its steps; its distances where it has some."""
        by_distance = simulation is not None and bool(simulation.distances)
        rows = (
            [] if simulation is None else reach_rows(simulation) if by_distance else victim_rows(simulation)
        )
        columns = REACH_COLUMNS if by_distance else STEP_COLUMNS

        def fitting(available: int) -> Layout[VictimRow]:
            return fitting_columns(columns, _IMPORTANCE, rows, now, available, _SQUEEZED)

        self.load(rows, fitting, now)


def _token(row: VictimRow, key: str) -> str:
    if row.is_important and key in {"victim", "note"}:
        return "warning"
    if row.place == 1 and key == "victim":
        return "victim"
    return "muted" if key in {"free_after", "container"} else ""
