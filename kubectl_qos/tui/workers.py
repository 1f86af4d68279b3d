"""Work of the screens that apply a change, in threads: messages bring the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from kubectl_qos.edit.history import HistoryStore
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress
from kubectl_qos.errors import QosError
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.follower import attempt

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import ApplyResult, DryRunResult, Writer


class RelatedLoaded(Message):
    """What there is around an object, or why that cannot be had; `subject` is whom it was asked for."""

    def __init__(self, subject: EditTarget, found: RelatedObjects | QosError) -> None:
        super().__init__()
        self.subject = subject
        self.found = found


class DryRunDone(Message):
    """The server's answer to the dry run of a request."""

    def __init__(self, request: PatchRequest, found: DryRunResult | QosError) -> None:
        super().__init__()
        self.request = request
        self.found = found


class ProgressChecked(Message):
    """How far a write has come, or why that cannot be seen now."""

    def __init__(self, found: Progress | QosError) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True, slots=True, eq=False)
class ApplyJob:
    """One write that a person confirmed.

    Attributes:
        writer: of the cluster that was named in the question.
        rehearsed: what its server accepted in the dry run.
        name: what sentences call it: `pod shop/web-0 in place`.
        undoes: the id of the entry of the journal that it takes back, else empty.
    """

    writer: Writer
    dry_run_result: DryRunResult
    name: str
    undoes: str = ""


class ApplyDone(Message):
    """The answer to a write."""

    def __init__(self, job: ApplyJob, found: ApplyResult | QosError) -> None:
        super().__init__()
        self.job = job
        self.found = found


def load_related(subject: EditTarget) -> RelatedLoaded:
    """Ask for what bears on a change of the object."""
    return RelatedLoaded(subject, attempt(lambda: subject.source.related(subject.pod)))


def run_dry_run(writer: Writer, request: PatchRequest) -> DryRunDone:
    """The dry run."""
    return DryRunDone(request, attempt(lambda: writer.dry_run(request)))


def run_apply(job: ApplyJob, history: HistoryStore) -> ApplyDone:
    """Write, once."""
    return ApplyDone(job, attempt(lambda: job.writer.apply(job.dry_run_result, history, undoes=job.undoes)))


def check_apply_progress(writer: Writer, written: ApplyResult) -> ProgressChecked:
    """Look once at what became of a write."""
    return ProgressChecked(attempt(lambda: writer.progress(written)))
