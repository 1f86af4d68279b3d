"""Recorded writes to clusters as values, and the edits that revert them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubectl_qos.edit.edits import Edit, PatchRequest, Side, value_now
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity


class EntryState(StrEnum):
    """The known outcome of a write.

    `SENT` is recorded before the request is sent; an entry that stays so had no answer when the program
    ended. `ACCEPTED` means that the server stored the change, `DONE` that the kubelet or controller carried
    it out. A change on trial is `ON_TRIAL` after the server's answer, then `HELD` or `FAILED`.
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
    """One write, sent `at` a time in RFC 3339 and UTC; ids are unique, later ones sort after earlier ones."""

    id: str
    at: str
    context: str
    server: str
    kind: str
    namespace: str
    name: str
    uid: str
    subresource: str
    """`resize` or empty."""
    before: tuple[Edit, ...]
    """The previous values, None for absent ones."""
    after: tuple[Edit, ...]
    """The values that were sent, or stored once the server has accepted them."""
    state: EntryState
    message: str = ""
    """The server's or the network's sentence, or how the change ended."""
    undoes: str = ""
    """The id of the entry that this one reverts."""

    @property
    def is_stored(self) -> bool:
        """Return whether the server has the change."""
        return self.state not in {EntryState.SENT, EntryState.REFUSED, EntryState.UNKNOWN}

    @property
    def strategy(self) -> StrategyKind:
        """Return the strategy of the change."""
        return StrategyKind.IN_PLACE if self.subresource else StrategyKind.TEMPLATE

    @property
    def short_id(self) -> str:
        """The end of the id, short enough to type."""
        return self.id.rpartition("-")[2]

    @property
    def reference(self) -> str:
        """The object for sentences: `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"


class HistoryStore(Protocol):
    """Where writes are recorded."""

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same id. Never fails: problems are reported later."""

    def entries(self) -> tuple[Entry, ...]:
        """Return every entry, the oldest first."""


def undos(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the changes that revert others, by the ids of the latter; nodes may still have to apply them."""
    return {entry.undoes: entry for entry in entries if entry.undoes and entry.is_stored}


@dataclass(frozen=True, slots=True)
class ValueConflict:
    """A value that someone else changed: the old value, the one that we set or want, and the current one.

    None means that the value, or its container, is absent.
    """

    owner: str
    side: Side
    resource: str
    before: Quantity | None
    ours: Quantity | None
    theirs: Quantity | None


def find_conflicts(planned: Entry | PatchRequest, pod: Pod) -> tuple[ValueConflict, ...]:
    """Return the values that someone else has changed in an object (for a workload in its template).

    For a request to send these are values other than those that it was made for, for an entry to revert
    values other than the old one and the one that we wrote.
    """
    after = planned.after if isinstance(planned, Entry) else planned.edits
    conflicts = []
    for old, new in zip(planned.before, after, strict=True):
        theirs = value_now(pod, new)
        if theirs != old.quantity and not (isinstance(planned, Entry) and theirs == new.quantity):
            conflict = ValueConflict(*new.target, before=old.quantity, ours=new.quantity, theirs=theirs)
            conflicts.append(conflict)
    return tuple(conflicts)


def undo_edits(entry: Entry, pod: Pod, *, uid: str = "") -> tuple[Edit, ...]:
    """Return the edits that restore the previous values, even if someone else changed them since.

    `pod` is the current object, or for a workload the pod of its template, with the workload's `uid`. Raises
    QosError if it is another object, or already has the previous values.
    """
    name = entry.reference
    if (pod.kind, pod.namespace, pod.name) != (entry.kind, entry.namespace, entry.name):
        raise QosError(
            f"the change was made to {name} in {entry.namespace}, not to {pod.kind.lower()}/{pod.name}"
        )
    uid_now = uid or pod.metadata.uid
    if uid_now and entry.uid and uid_now != entry.uid:
        raise QosError(
            f"{name} was deleted and recreated since the change",
            hint="the new object has values of its own; change it with kubectl qos set",
        )
    edits = tuple(old for old in entry.before if value_now(pod, old) != old.quantity)
    if not edits:
        raise QosError(f"nothing to undo: {name} already has the previous values")
    return edits
