"""Recorded writes to clusters as values, and the edits that revert them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubectl_qos.edit.edits import Edit, Side, value_now
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity


class EntryState(StrEnum):
    """The known outcome of a write.

    `SENT` is recorded before anything leaves: found later, it says that the program ended in between. What
    the server has stored is `ACCEPTED`, and `DONE` only once the kubelet or the controller was seen to have
    carried it out. A change is `ON_TRIAL` from its answer on, and then `HELD`, or `FAILED`.
    """

    SENT = "sent"
    ACCEPTED = "accepted"
    DONE = "done"
    ON_TRIAL = "on trial"
    HELD = "held"
    FAILED = "did not hold"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One write, sent `at` a time in RFC 3339 and UTC; ids are unique, later ones sort after earlier ones.

    `before` are the previous values, None for absent ones; `after` are those that were sent, once accepted as
    the server stored them. `subresource` is `resize` or empty. `message` is the server's or the network's
    sentence, or how the change ended, and `undoes` the id of the entry that this one reverts; both may be
    empty.
    """

    id: str
    at: str
    context: str
    server: str
    kind: str
    namespace: str
    name: str
    uid: str
    subresource: str
    before: tuple[Edit, ...]
    after: tuple[Edit, ...]
    state: EntryState
    message: str = ""
    undoes: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether the server has the change."""
        return self.state not in {EntryState.SENT, EntryState.REFUSED, EntryState.UNKNOWN}

    @property
    def strategy(self) -> StrategyKind:
        """The strategy that it was made with."""
        return StrategyKind.IN_PLACE if self.subresource else StrategyKind.TEMPLATE

    @property
    def short_id(self) -> str:
        """The end of the id, which is what people type."""
        return self.id.rpartition("-")[2]

    @property
    def reference(self) -> str:
        """The object in sentences: `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"


class HistoryStore(Protocol):
    """Where writes are recorded."""

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same id. Never fails: problems are reported later."""

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, the oldest first."""


def undos(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The changes that revert others, by the ids of those; the server has them, its nodes perhaps not yet."""
    return {entry.undoes: entry for entry in entries if entry.undoes and entry.is_stored}


@dataclass(frozen=True, slots=True)
class ValueConflict:
    """A value that is not as expected: as it was before, as we set or want it, and as it is now.

    None is an absent value, or one of an absent container.
    """

    owner: str
    side: Side
    resource: str
    before: Quantity | None
    ours: Quantity | None
    theirs: Quantity | None


def find_conflicts(planned: Entry | PatchRequest, pod: Pod) -> tuple[ValueConflict, ...]:
    """The values that somebody else has changed, in an object as it is now (of a workload in its template).

    Of a request to send: those that are no longer what it was made for. Of an entry to revert: those that are
    neither what was written nor, already reverted, what there was before.
    """
    after = planned.after if isinstance(planned, Entry) else planned.edits
    conflicts = []
    for old, new in zip(planned.before, after, strict=True):
        theirs = value_now(pod, new)
        if theirs != old.quantity and not (isinstance(planned, Entry) and theirs == new.quantity):
            conflicts.append(
                ValueConflict(*new.target, before=old.quantity, ours=new.quantity, theirs=theirs)
            )
    return tuple(conflicts)


def undo_edits(entry: Entry, pod: Pod, *, uid: str = "") -> tuple[Edit, ...]:
    """The edits that restore the previous values, also where somebody else changed them since.

    `pod` is the object as it is now; of a workload the pod of its template, and `uid` the workload's. Raises
    QosError where it is another object, or has the previous values already.
    """
    name = entry.reference
    if (pod.kind, pod.namespace, pod.name) != (entry.kind, entry.namespace, entry.name):
        raise QosError(f"the change was of {name} in {entry.namespace}, not of {pod.kind.lower()}/{pod.name}")
    uid_now = uid or pod.metadata.uid
    if uid_now and entry.uid and uid_now != entry.uid:
        raise QosError(
            f"{name} was deleted and recreated since the change",
            hint="its values came with the new object; edit it instead",
        )
    edits = tuple(old for old in entry.before if value_now(pod, old) != old.quantity)
    if not edits:
        raise QosError(f"nothing to undo: {name} has the previous values already")
    return edits
