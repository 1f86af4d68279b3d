"""One row per workload or namespace: the pods of each added up, and which of them dies first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubectl_qos.present.rows import PodRow, kill_order
from kubectl_qos.qos.flags import RISKS
from kubectl_qos.qos.qos_class import QosClass

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class GroupRow(Generic[KeyT]):
    """Pods that belong together. Bytes; None where nothing is known of any of them.

    `worst` is the pod of the best rank on its node, among those of equal rank the one of the highest score;
    `victims` how many are their node's next victim; `at_risk` how many have a flag of risk. `own_words` are
    what a filter finds it by.
    """

    key: KeyT
    pods: int
    classes: tuple[tuple[QosClass, int], ...]
    worst: PodRow
    victims: int
    at_risk: int
    memory: int | None
    request: int | None
    limit: int | None
    restarts: int
    oom_kills: int
    own_words: tuple[str, ...]

    @property
    def common_words(self) -> tuple[str, ...]:
        """The classes of its pods."""
        return tuple(qos.value for qos, _ in self.classes)

    @property
    def words(self) -> str:
        """Its own words and those in one line, in small letters."""
        return " ".join((*self.own_words, *self.common_words)).casefold()


def grouped(rows: Iterable[PodRow], key_of: Callable[[PodRow], KeyT]) -> dict[KeyT, list[PodRow]]:
    """The rows of each key, in the order in which they come."""
    found: dict[KeyT, list[PodRow]] = {}
    for row in rows:
        found.setdefault(key_of(row), []).append(row)
    return found


def group_row(key: KeyT, rows: list[PodRow], own_words: tuple[str, ...]) -> GroupRow[KeyT]:
    """The row of a group that has pods."""
    classes = [row.qos for row in rows]
    counts = tuple((qos, classes.count(qos)) for qos in QosClass if qos in classes)
    return GroupRow(
        key=key,
        pods=len(rows),
        classes=counts,
        worst=min(rows, key=rank_order),
        victims=sum(1 for row in rows if row.rank == 1),
        at_risk=sum(1 for row in rows if not RISKS.isdisjoint(row.flags)),
        memory=_sum(row.memory for row in rows),
        request=_sum(row.request for row in rows),
        limit=None if any(row.limit is None for row in rows) else _sum(row.limit for row in rows),
        restarts=sum(row.restarts for row in rows),
        oom_kills=sum(row.oom_kills for row in rows),
        own_words=own_words,
    )


def rank_order(row: PodRow) -> tuple[object, ...]:
    """Next victims of any node first; those without a rank last."""
    return row.rank is None, row.rank or 0, kill_order(row)


def _sum(amounts: Iterable[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
