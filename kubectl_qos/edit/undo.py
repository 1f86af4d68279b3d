"""Taking a write back, and who else has changed the same values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubectl_qos.edit.change import Edit, Side, current
from kubectl_qos.edit.journal import Entry
from kubectl_qos.edit.request import Request
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Conflict:
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


def conflicts(planned: Entry | Request, pod: Pod) -> tuple[Conflict, ...]:
    """The values that somebody else has changed.

    Of a request those that are no longer what it was made for; of an entry those that are neither what was
    written nor, taken back already, what was there before.

    Args:
        planned: what is to be done, or was done.
        pod: the object as it is now; for workloads the pod of its template.
    """
    return tuple(_conflicts(planned, pod))


def _conflicts(planned: Entry | Request, pod: Pod) -> Iterator[Conflict]:
    after = planned.after if isinstance(planned, Entry) else planned.edits
    for old, new in zip(planned.before, after, strict=True):
        theirs = value_now(pod, new)
        expected = (old.quantity, new.quantity) if isinstance(planned, Entry) else (old.quantity,)
        if theirs not in expected:
            yield Conflict(*new.target, before=old.quantity, ours=new.quantity, theirs=theirs)


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
