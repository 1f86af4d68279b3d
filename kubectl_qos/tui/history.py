"""Where a person has been: back and forward, as in a browser. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.tui.view import View

MOST: Final = 100


class Detail(Enum):
    """The screens about one pod."""

    EXPLAIN = auto()
    EDIT = auto()
    TREE = auto()
    COMPARE = auto()


@dataclass(frozen=True, slots=True)
class Stop:
    """A place: what is listed, and the screen above it, of the pod as it was.

    `row` is the key of the row where the cursor was when the place was left.
    """

    view: View
    detail: Detail | None = None
    pod: Pod | None = None
    row: Hashable = field(default=None, compare=False)


class History:
    """The places that were gone to, and which of them is shown."""

    def __init__(self, first: Stop) -> None:
        self._places = [first]
        self._at = 0

    @property
    def place(self) -> Stop:
        """The place that is shown."""
        return self._places[self._at]

    def go(self, place: Stop) -> None:
        """Another place; what lay ahead is forgotten."""
        if place != self.place:
            self._places = [*self._places[: self._at + 1], place][-MOST:]
            self._at = len(self._places) - 1

    def replace(self, place: Stop) -> None:
        """The same place, seen otherwise."""
        self._places[self._at] = place

    def back(self) -> Stop | None:
        """The place before, None at the first."""
        return self._moved(-1)

    def forward(self) -> Stop | None:
        """The place that was left with back, None at the last."""
        return self._moved(1)

    def _moved(self, by: int) -> Stop | None:
        at = self._at + by
        if not 0 <= at < len(self._places):
            return None
        self._at = at
        return self.place
