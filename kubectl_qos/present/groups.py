"""One row per workload or namespace: the pods of each added up, and which of them dies first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kubectl_qos.present.format import NONE, UNKNOWN, escape
from kubectl_qos.present.pod_columns import (
    Align,
    ColumnOf,
    Holds,
    amount_text,
    largest_first,
    rank_text,
    restarts_text,
)
from kubectl_qos.present.pod_rows import PodRow, kill_order
from kubectl_qos.present.symbols import CLASSES
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


GroupColumn = ColumnOf[GroupRow[Any]]


def _text(key: str, header: str, width: int, read: Callable[[GroupRow[Any]], str], text: str) -> GroupColumn:
    return ColumnOf(
        key, header, Align.LEFT, width, lambda row, _: escape(read(row)) or NONE, read, read, text
    )


def _count(key: str, header: str, read: Callable[[GroupRow[Any]], int], text: str) -> GroupColumn:
    return ColumnOf(
        key,
        header,
        Align.RIGHT,
        len(header),
        lambda row, _: str(read(row)),
        read,
        lambda row: -read(row),
        text,
        holds=Holds.NUMBER,
    )


def _amount(
    key: str, header: str, read: Callable[[GroupRow[Any]], int | None], empty: str, text: str
) -> GroupColumn:
    return ColumnOf(
        key,
        header,
        Align.RIGHT,
        8,
        lambda row, _: amount_text(read(row), empty),
        read,
        lambda row: largest_first(read(row)),
        text,
        holds=Holds.BYTES,
    )


def _classes(row: GroupRow[Any]) -> str:
    """`Burstable`; of several classes each with its number: `1G 3B`."""
    if len(row.classes) == 1:
        return row.classes[0][0].value
    return " ".join(f"{number}{CLASSES[qos].letter}" for qos, number in row.classes)


def _most_endangered_first(row: GroupRow[Any]) -> list[int]:
    """Those with the most BestEffort pods first, as pods are."""
    numbers = dict(row.classes)
    return [-numbers.get(qos, 0) for qos in (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)]


_OF_PODS: Final[tuple[GroupColumn, ...]] = (
    _count("pods", "PODS", lambda row: row.pods, "how many pods it has here"),
    ColumnOf(
        "qos",
        "QOS",
        Align.LEFT,
        10,
        lambda row, _: _classes(row),
        lambda row: [qos.value for qos, _ in row.classes],
        _most_endangered_first,
        "the class of its pods; of several classes how many have each",
        choices=tuple(one.value for one in QosClass),
    ),
    ColumnOf(
        "rank",
        "RANK",
        Align.LEFT,
        5,
        lambda row, _: rank_text(row.worst),
        lambda row: row.worst.rank,
        lambda row: rank_order(row.worst),
        "the best rank of its pods in the kill order of their nodes, 1 is next",
        holds=Holds.NUMBER,
    ),
    ColumnOf(
        "oom_score",
        "OOM_SCORE",
        Align.RIGHT,
        9,
        lambda row, _: UNKNOWN if row.worst.score is None else str(row.worst.score),
        lambda row: row.worst.score,
        lambda row: largest_first(row.worst.score),
        "what /proc/PID/oom_score shows for that pod",
        holds=Holds.NUMBER,
    ),
    _text("worst", "FIRST_TO_DIE", 24, lambda row: row.worst.name, "that pod"),
    _text("node", "NODE", 12, lambda row: row.worst.node, "that pod's node"),
    _count("victims", "VICTIMS", lambda row: row.victims, "how many pods are their node's next victim"),
    _count("at_risk", "AT_RISK", lambda row: row.at_risk, "how many pods have a flag of risk"),
    _amount("memory", "MEMORY", lambda row: row.memory, UNKNOWN, "memory in use (working set) by its pods"),
    _amount("request", "REQUEST", lambda row: row.request, NONE, "memory that its pods request together"),
    _amount(
        "limit", "LIMIT", lambda row: row.limit, NONE, "memory limits of its pods, if every one has a limit"
    ),
    ColumnOf(
        "restarts",
        "RESTARTS",
        Align.LEFT,
        9,
        lambda row, _: restarts_text(row.restarts, row.oom_kills),
        lambda row: row.restarts,
        lambda row: -row.restarts,
        "container restarts, and how many last ended as OOMKilled",
        holds=Holds.NUMBER,
    ),
)

WORKLOAD_COLUMNS: Final[dict[str, GroupColumn]] = {
    column.key: column
    for column in (
        _text("namespace", "NAMESPACE", 11, lambda row: row.key.namespace, "the workload's namespace"),
        _text("kind", "KIND", 11, lambda row: row.key.kind, "Deployment, StatefulSet and so on"),
        _text("workload", "WORKLOAD", 20, lambda row: row.key.name, "the workload's name"),
        *_OF_PODS,
    )
}
NAMESPACE_COLUMNS: Final[dict[str, GroupColumn]] = {
    column.key: column
    for column in (
        _text("namespace", "NAMESPACE", 11, lambda row: row.key, "the namespace's name"),
        *_OF_PODS,
    )
}
