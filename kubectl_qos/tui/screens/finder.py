"""The pod switcher: some letters of a name, and the pods that they may mean."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import BY_KEY
from kubectl_qos.present.rows import PodRow
from kubectl_qos.tui.fuzzy import found
from kubectl_qos.tui.lists.fitting import most_important
from kubectl_qos.tui.lists.pods import pod_token
from kubectl_qos.tui.screens.search import Search, Searched
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_layout import Layout

MOST: Final = 200
_KEYS: Final = ("namespace", "pod", "qos", "node", "rank")
_IMPORTANCE: Final = ("pod", "namespace", "rank", "node", "pod", "namespace", "node", "qos")
_SQUEEZED: Final = {"pod": 32, "namespace": 12, "node": 12}


class Finder(Search[PodRow]):
    """Pods by some letters of their names, in kill order at first."""

    def __init__(self, rows: Sequence[PodRow], now: datetime, *, title: str = "Find a pod") -> None:
        table = LineTable[PodRow](natural="", key=lambda row: row.key, token=pod_token)
        super().__init__(
            Searched(title, "some letters of a pod's name", self._found, self._fitting, self._nothing),
            table,
            now,
        )
        self._rows = rows

    def _found(self, query: str) -> Sequence[PodRow]:
        """Those whose namespace/name has the letters in their order."""
        return found(query, self._rows, MOST)

    def _fitting(self, rows: Sequence[PodRow], available: int) -> Layout[PodRow]:
        """What tells pods of similar names apart."""
        columns = [BY_KEY[key] for key in _KEYS]
        return most_important(columns, _IMPORTANCE, rows, self._now, available, _SQUEEZED)

    def _nothing(self, query: str) -> str:
        """Why there is none."""
        return f"No pod has the letters of {escape(query)}." if query else "There are no pods."
