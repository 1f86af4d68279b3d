"""What was written to clusters, as values, and the edits that revert it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubectl_qos.edit.edits import Edit, Side, current
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity


class EntryState(StrEnum):
    """What is known of a write.

    `SENT` is put down before anything leaves: found later, it says that the program ended in between.
    """

    SENT = "sent"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One write.

    Attributes:
        id: unique among all entries; later ones sort after earlier ones.
        at: when it was sent, RFC 3339 in UTC.
        context: the kubeconfig context's name.
        server: the API server's address.
        kind: of the object; likewise `namespace`, `name`, `uid`.
        subresource: `resize` or empty.
        before: the values that were there, None for those that were not.
        after: the values that were sent; once it is done, what the server made of them.
        state: what is known of it.
        said: the server's or the network's sentence, where there is one.
        undoes: the id of the entry that this one took back, else empty.
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
    said: str = ""
    undoes: str = ""


class HistoryStore(Protocol):
    """Where writes are put down."""

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same id. Never fails: what cannot be kept is said later."""


@dataclass(frozen=True, slots=True)
class ValueConflict:
    """One value that is not what was expected: as it was, as we set or want it, and as it is now.

    None is a value that is not there, or whose container is not.
    """

    owner: str
    side: Side
    resource: str
    before: Quantity | None
    ours: Quantity | None
    theirs: Quantity | None

    @property
    def target(self) -> tuple[str, Side, str]:
        """Which value it is."""
        return self.owner, self.side, self.resource


def conflicts(planned: Entry | PatchRequest, pod: Pod) -> tuple[ValueConflict, ...]:
    """The values that somebody else has changed.

    Of a request those that are no longer what it was made for; of an entry those that are neither what was
    written nor, taken back already, what was there before.

    Args:
        planned: what is to be done, or was done.
        pod: the object as it is now; for workloads the pod of its template.
    """
    return tuple(_conflicts(planned, pod))


def _conflicts(planned: Entry | PatchRequest, pod: Pod) -> Iterator[ValueConflict]:
    after = planned.after if isinstance(planned, Entry) else planned.edits
    for old, new in zip(planned.before, after, strict=True):
        theirs = value_now(pod, new)
        expected = (old.quantity, new.quantity) if isinstance(planned, Entry) else (old.quantity,)
        if theirs not in expected:
            yield ValueConflict(*new.target, before=old.quantity, ours=new.quantity, theirs=theirs)


def undo_edits(entry: Entry, pod: Pod, *, uid: str = "") -> tuple[Edit, ...]:
    """The edits that bring back what was there before, those of conflicts included.

    Args:
        entry: what was written.
        pod: the object as it is now; for workloads the pod of its template.
        uid: the object's, where that is a workload: a template has none.

    Raises:
        QosError: it is another object, or everything is as it was.
    """
    name = f"{entry.kind.lower()}/{entry.name}"
    if (pod.kind, pod.namespace, pod.name) != (entry.kind, entry.namespace, entry.name):
        raise QosError(f"the change was of {name} in {entry.namespace}, not of {pod.kind.lower()}/{pod.name}")
    now = uid or pod.metadata.uid
    if now and entry.uid and now != entry.uid:
        raise QosError(
            f"{name} is another object than the one that was changed: it was deleted and made anew",
            hint="what it has now was written with it; edit it instead",
        )
    edits = tuple(old for old in entry.before if value_now(pod, old) != old.quantity)
    if not edits:
        raise QosError(f"nothing is left to undo: the values of {name} are what they were before")
    return edits


def value_now(pod: Pod, edit: Edit) -> Quantity | None:
    """What is at the edit's target, None too where the container is not there."""
    try:
        return current(pod, edit.owner, edit.side, edit.resource)
    except InputError:
        return None
