"""A row for each workload or namespace, with sums over its pods."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubectl_qos.analysis.pod_table import PodRow, is_at_risk, kill_order
from kubectl_qos.k8s.kinds import Workload, find_workload
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


def namespace_rows(rows: Iterable[PodRow]) -> list[GroupRow[str]]:
    """A row for each namespace that has pods, those with the next victims first."""
    groups = grouped(rows, lambda row: row.pod.metadata.namespace)
    return sorted(
        (group_row(name, pods, (name,)) for name, pods in groups.items()),
        key=lambda row: rank_order(row.worst),
    )


def workload_rows(rows: Iterable[PodRow]) -> list[GroupRow[Workload]]:
    """A row for each workload that has pods, those with the next victims first."""
    groups = grouped(rows, lambda row: find_workload(row.pod))
    return sorted(
        (group_row(workload, pods, _words_of(workload)) for workload, pods in groups.items()),
        key=lambda row: rank_order(row.worst),
    )


def _words_of(workload: Workload) -> tuple[str, ...]:
    kind, namespace, name = workload
    return f"{namespace}/{name}", name, f"{kind}/{name}"


def grouped(rows: Iterable[PodRow], key_of: Callable[[PodRow], KeyT]) -> dict[KeyT, list[PodRow]]:
    """Group rows by a key, in their order."""
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
    present = [amount for amount in amounts if amount is not None]
    return sum(present) if present else None
