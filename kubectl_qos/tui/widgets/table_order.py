"""In which order a table's rows are shown, which of them, and where among them one is. Pure, no widgets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress, count, repeat
from operator import eq, is_
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from kubectl_qos.tui.widgets.table_cells import TableColumn

RowT = TypeVar("RowT")

NEARBY: Final = 500
"""So many rows on either side are looked at before all of them: most rows stay about where they were."""


class RowSelector(Protocol):
    """What leaves rows out, each by itself."""

    def selected(self, rows: Sequence[Any]) -> Sequence[Any]:
        """The rows that stay, in their order."""

    def implies(self, other: Self) -> bool:
        """Whether every row that stays here surely stays there too."""


class RowOrder(Generic[RowT]):
    """Rows as they are given, or by a column; those that it does not tell apart stay as they are given.

    Which of them are shown is no reason to sort again: sorting 150,000 rows takes longer than a key may. They
    are in tuples, because garbage collection looks through a long list again and again, but only once through
    a tuple.

    Args:
        natural: the key of the column by whose order rows are given.
        pinned: so many rows stay on top in every order.
    """

    def __init__(self, natural: str, pinned: int) -> None:
        self._natural = natural
        self._pinned = pinned
        self._given: Sequence[RowT] = ()
        self._narrowing: RowSelector | None = None
        self._column: TableColumn[RowT] | None = None
        self._turned = False
        self._whole: Sequence[RowT] | None = ()
        """All that are given in order, where they have been put in order."""
        self._rows: Sequence[RowT] = ()

    @property
    def rows(self) -> Sequence[RowT]:
        """The rows in order."""
        return self._rows

    @property
    def by(self) -> tuple[str, bool]:
        """The key of the column that is sorted by, and whether the other way round."""
        return self._column.key if self._column is not None else self._natural, self._turned

    def load(self, given: Sequence[RowT], narrowing: RowSelector | None = None) -> bool:
        """Take other rows, or show others of the very same ones; whether any of them is a new one."""
        old, before = self._given, self._narrowing
        same = given is old or (len(given) == len(old) and all(map(is_, given, old)))
        self._given, self._narrowing = given, narrowing
        if not same:
            self._whole = None
        if same and narrowing == before:
            pass
        elif same and narrowing is not None and (before is None or narrowing.implies(before)):
            self._rows = tuple(narrowing.selected(self._rows))
        elif self._whole is not None:
            self._rows = self._narrowed(self._whole)
        else:
            self._rows = self._ordered(self._narrowed(given))
        self._keep_whole()
        return not same

    def sort_by(self, column: TableColumn[RowT], *, turned: bool) -> None:
        """Another order of the same rows."""
        self._column, self._turned = column, turned
        shown = set(map(id, self._rows)) if len(self._rows) < len(self._given) else None
        rows = self._given if shown is None else tuple([row for row in self._given if id(row) in shown])
        self._whole, self._rows = None, self._ordered(rows)
        self._keep_whole()

    def _keep_whole(self) -> None:
        if len(self._rows) == len(self._given):
            self._whole = self._rows

    def _narrowed(self, rows: Sequence[RowT]) -> Sequence[RowT]:
        return rows if self._narrowing is None else tuple(self._narrowing.selected(rows))

    def _ordered(self, rows: Sequence[RowT]) -> Sequence[RowT]:
        column, turned = self._column, self._turned
        is_natural = column is None or column.key == self._natural
        if is_natural and not turned:
            return rows
        top = len(self._narrowed(self._given[: self._pinned]))
        pinned, free = rows[:top], rows[top:]
        if column is None or is_natural:
            return (*pinned, *free[::-1])
        return (*pinned, *sorted(free, key=column.sort_key, reverse=turned))


def row_index(row: RowT, rows: Sequence[RowT], near: int) -> int | None:
    """Where this very row is; None if it is not there."""
    if near < len(rows) and rows[near] is row:
        return near
    return next(compress(count(), map(is_, rows, repeat(row))), None)


def key_index(
    wanted: Hashable, rows: Sequence[RowT], key: Callable[[RowT], Hashable], near: int
) -> int | None:
    """Where the row of a key is, looked for near a place first; None if there is none."""
    for begin, end in ((max(near - NEARBY, 0), near + NEARBY), (0, len(rows))):
        same = map(eq, map(key, rows[begin:end]), repeat(wanted))
        place = next(compress(count(begin), same), None)
        if place is not None:
            return place
    return None
