"""Workloads and namespaces: a row for each, with sums over its pods, and the columns."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kubectl_qos.analysis.pod_table import PodRow, is_at_risk, kill_order
from kubectl_qos.present.format import NONE
from kubectl_qos.present.output import BYTES, NUMBER, Align, Column, column
from kubectl_qos.present.pod_columns import QOS_CHOICES, RESTARTS, rank_text
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class GroupRow(Generic[KeyT]):
    """Pods that belong together, in bytes; None where nothing is known of any of them.

    `pods`, `classes` and amounts are those of pods that have not ended. `worst` is the pod with the best
    rank; `victims` and `at_risk` count next victims and pods at risk.
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
        """Both in one line, in lower case."""
        return " ".join((*self.own_words, *self.common_words)).casefold()


def grouped(rows: Iterable[PodRow], key_of: Callable[[PodRow], KeyT]) -> dict[KeyT, list[PodRow]]:
    """The rows of each key, in their order."""
    groups: dict[KeyT, list[PodRow]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    return groups


def group_row(key: KeyT, rows: list[PodRow], own_words: tuple[str, ...]) -> GroupRow[KeyT]:
    """The row of a group of at least one pod, ended or not."""
    living = [row for row in rows if not row.pod.is_terminal]
    classes = [row.qos for row in living]
    return GroupRow(
        key=key,
        pods=len(living),
        classes=tuple((qos, classes.count(qos)) for qos in QosClass if qos in classes),
        worst=min(rows, key=rank_order),
        victims=sum(1 for row in rows if row.is_next_victim),
        at_risk=sum(map(is_at_risk, rows)),
        memory=known_sum(row.memory for row in living),
        request=known_sum(row.request for row in living),
        limit=None if any(row.limit is None for row in living) else known_sum(row.limit for row in living),
        restarts=sum(row.restarts for row in rows),
        oom_kills=sum(row.oom_kills for row in rows),
        own_words=own_words,
    )


def rank_order(row: PodRow) -> tuple[object, ...]:
    """A sort key: next victims of any node first, pods without a rank last."""
    return row.rank is None, row.rank or 0, kill_order(row)


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """The sum of the known amounts, None without any."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


GroupColumn = Column[GroupRow[Any]]


def _classes(row: GroupRow[Any]) -> str:
    if len(row.classes) == 1:
        return row.classes[0][0].value
    return " ".join(f"{number}{CLASSES[qos].letter}" for qos, number in row.classes) or NONE


def _most_endangered_first(row: GroupRow[Any]) -> list[int]:
    numbers = dict(row.classes)
    return [-numbers.get(qos, 0) for qos in (QosClass.BEST_EFFORT, QosClass.BURSTABLE, QosClass.GUARANTEED)]


_OF_PODS: Final[tuple[GroupColumn, ...]] = (
    column("pods", lambda row: row.pods, "how many of its pods have not ended", NUMBER),
    column(
        "qos",
        lambda row: list(row.common_words),
        "the class of its pods; of several classes how many have each",
        field="qosClasses",
        width=10,
        cell=_classes,
        sort_key=_most_endangered_first,
        choices=QOS_CHOICES,
    ),
    column(
        "rank",
        lambda row: row.worst.rank,
        "the best rank of its pods in the kill order of their nodes, 1 is next",
        NUMBER,
        align=Align.LEFT,
        width=5,
        cell=lambda row: rank_text(row.worst.rank, tied=row.worst.tied),
        sort_key=lambda row: rank_order(row.worst),
    ),
    column("oom_score", lambda row: row.worst.score, "/proc/PID/oom_score of that pod", NUMBER),
    column(
        "worst",
        lambda row: row.worst.name if row.worst.rank is not None else None,
        "that pod",
        field="firstToDie",
        width=24,
        sort_key=lambda row: (row.worst.rank is None, row.worst.name),
        header="FIRST_TO_DIE",
    ),
    column("node", lambda row: row.worst.node, "that pod's node", width=12),
    column("victims", lambda row: row.victims, "how many pods are their node's next victim", NUMBER),
    column(
        "at_risk",
        lambda row: row.at_risk,
        "how many pods are at risk: next of a killer, or with a flag of risk",
        NUMBER,
    ),
    column("memory", lambda row: row.memory, "memory in use (working set) by its pods", BYTES),
    column("request", lambda row: row.request, "memory requests of its pods", BYTES, empty=NONE),
    column("limit", lambda row: row.limit, "memory limits of its pods, if all have one", BYTES, empty=NONE),
    RESTARTS,
)

_WORKLOAD: Final[tuple[GroupColumn, ...]] = (
    column("namespace", lambda row: row.key.namespace, "the workload's namespace", width=11),
    column("kind", lambda row: row.key.kind, "Deployment, StatefulSet and so on", width=11),
    column("workload", lambda row: row.key.name, "the workload's name", width=20),
)
_NAMESPACE: Final[GroupColumn] = column("namespace", lambda row: row.key, "the namespace's name", width=11)
WORKLOAD_COLUMNS: Final = {one.key: one for one in (*_WORKLOAD, *_OF_PODS)}
NAMESPACE_COLUMNS: Final = {one.key: one for one in (_NAMESPACE, *_OF_PODS)}
