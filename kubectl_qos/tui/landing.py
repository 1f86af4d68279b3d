"""What the screens that land a change ask of a source, in threads: messages bring the answers.

A thread cannot be stopped: what it brings after its screen was left goes nowhere. The answer to a write goes
to the app, which is always there, and tells it wherever the person is by then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from textual.message import Message

from kubectl_qos.edit.journal import Journal
from kubectl_qos.edit.progress import Progress
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.errors import QosError
from kubectl_qos.tui.change import Subject
from kubectl_qos.tui.live import defect

if TYPE_CHECKING:
    from kubectl_qos.cluster.write import Rehearsed, Writer, Written

T = TypeVar("T")


class SurroundingsRead(Message):
    """What there is around an object, or why that cannot be had; `subject` is whom it was asked for."""

    def __init__(self, subject: Subject, found: Surroundings | QosError) -> None:
        super().__init__()
        self.subject = subject
        self.found = found


class Rehearsal(Message):
    """The server's answer to the dry run of a request."""

    def __init__(self, request: Request, found: Rehearsed | QosError) -> None:
        super().__init__()
        self.request = request
        self.found = found


class Looked(Message):
    """How far a write has come, or why that cannot be seen now."""

    def __init__(self, found: Progress | QosError) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One write that a person confirmed.

    Attributes:
        writer: of the cluster that was named in the question.
        rehearsed: what its server accepted in the dry run.
        name: what sentences call it: `pod shop/web-0 in place`.
        undoes: the id of the entry of the journal that it takes back, else empty.
    """

    writer: Writer
    rehearsed: Rehearsed
    name: str
    undoes: str = ""


class Sent(Message):
    """The answer to a write."""

    def __init__(self, job: Job, found: Written | QosError) -> None:
        super().__init__()
        self.job = job
        self.found = found


def read_surroundings(subject: Subject) -> SurroundingsRead:
    """Ask for what bears on a change of the object."""
    return SurroundingsRead(subject, _answer(lambda: subject.source.surroundings(subject.pod)))


def rehearse(writer: Writer, request: Request) -> Rehearsal:
    """The dry run."""
    return Rehearsal(request, _answer(lambda: writer.rehearse(request)))


def send(job: Job, journal: Journal) -> Sent:
    """Write, once."""
    return Sent(job, _answer(lambda: job.writer.write(job.rehearsed, journal, undoes=job.undoes)))


def look(writer: Writer, written: Written) -> Looked:
    """Look once at what became of a write."""
    return Looked(_answer(lambda: writer.progress(written)))


def _answer(ask: Callable[[], T]) -> T | QosError:
    try:
        return ask()
    except QosError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return defect(error)
