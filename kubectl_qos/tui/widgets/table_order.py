"""In which order a table's rows are shown, and where among them one is. Pure, no widgets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import compress, count, repeat
from operator import is_
from typing import Generic, TypeVar

from kubectl_qos.tui.widgets.table_layout import TableColumn

RowT = TypeVar("RowT")


class Order(Generic[RowT]):
    """Rows as they are given, or by a column; those that it does not tell apart stay as they are given.

    Args:
        natural: the key of the column by whose order rows are given.
        pinned: so many rows stay on top in every order.
    """

    def __init__(self, natural: str, pinned: int) -> None:
        self._natural = natural
        self._pinned = pinned
        self._given: Sequence[RowT] = ()
        self._column: TableColumn[RowT] | None = None
        self._turned = False
        self._rows: Sequence[RowT] = ()

    @property
    def rows(self) -> Sequence[RowT]:
        """The rows in order."""
        return self._rows

    @property
    def by(self) -> tuple[str, bool]:
        """The key of the column that is sorted by, and whether the other way round."""
        return self._column.key if self._column is not None else self._natural, self._turned

    def load(self, given: Sequence[RowT]) -> None:
        """Take other rows; the very same ones are in order already."""
        if len(given) != len(self._given) or not all(map(is_, given, self._given)):
            self._given = given
            self._rows = self._ordered()

    def sort_by(self, column: TableColumn[RowT], *, turned: bool) -> None:
        """Another order of the same rows."""
        self._column, self._turned = column, turned
        self._rows = self._ordered()

    def _ordered(self) -> Sequence[RowT]:
        column, turned = self._column, self._turned
        is_natural = column is None or column.key == self._natural
        if is_natural and not turned:
            return self._given
        pinned, free = self._given[: self._pinned], self._given[self._pinned :]
        if column is None or is_natural:
            return [*pinned, *free[::-1]]
        ordered = sorted(free, key=column.sort_key, reverse=turned)
        return [*pinned, *ordered] if pinned else ordered


def place_of(row: RowT, rows: Sequence[RowT], key: Callable[[RowT], Hashable], near: int) -> int | None:
    """Where a row is now, or else the one of its key; None if there is none."""
    if near < len(rows) and rows[near] is row:
        return near
    same = next(compress(count(), map(is_, rows, repeat(row))), None)
    return same if same is not None else place_of_key(key(row), rows, key, near)


def place_of_key(
    wanted: Hashable, rows: Sequence[RowT], key: Callable[[RowT], Hashable], near: int
) -> int | None:
    """Where the row of a key is, looked for from a place outwards; None if there is none."""
    return next((index for index in outwards(near, len(rows)) if key(rows[index]) == wanted), None)


def outwards(start: int, length: int) -> Iterator[int]:
    """Every index, the nearest to a place first: most rows stay about where they were."""
    for distance in range(max(length, start + 1)):
        if start + distance < length:
            yield start + distance
        if 0 < distance <= start and start - distance < length:
            yield start - distance
