"""The loop of a change: execute the commands of edit/apply_state.py, and pass their results to the next step.

Shells subclass `Driver` and implement run, show_state and confirm.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from kubectl_qos.cluster.source import Source, changed_pods
from kubectl_qos.cluster.writer import Writer
from kubectl_qos.edit import apply_state
from kubectl_qos.edit.apply_state import Apply, ApplyResult, DryRunResult, Step
from kubectl_qos.edit.history import EntryState, HistoryStore
from kubectl_qos.edit.preview import Preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress, Stage, Trial
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Snapshot


class Driver(ABC):
    """One change of a cluster. Only `advance` replaces its `state`; a read-only change has no writer."""

    state: Apply

    def __init__(self, source: Source, writer: Writer | None, history: HistoryStore) -> None:
        self.source = source
        self.history = history
        self._writer = writer

    @property
    def writer(self) -> Writer:
        """Return the writer; there is one unless the state is read-only."""
        assert self._writer is not None
        return self._writer

    @property
    @abstractmethod
    def elapsed(self) -> float:
        """Return the seconds since the change was sent, 0 before."""

    @abstractmethod
    def run(self, work: Callable[[], Any], then: Callable[[Any], object], pause: float = 0.0) -> None:
        """Wait for `pause` seconds, run `work`, and call `then` with its result or its QosError."""

    @abstractmethod
    def show_state(self, before: Apply) -> None:
        """Show the state that follows `before`."""

    @abstractmethod
    def confirm(self, dry_run: DryRunResult) -> None:
        """Ask the user to confirm, and pass the answer to `Apply.confirm`."""

    def advance(self, step: Step) -> None:
        """Go to the next state, show it, and execute its command."""
        before = self.state
        self.state, command = step
        if self.state is not before:
            self.show_state(before)
        match command:
            case apply_state.Load():
                self.run(self.read_related, self._loaded)
            case apply_state.DryRun(request):
                self.run(
                    partial(self.writer.dry_run, request),
                    lambda answer: self.advance(self.state.dry_run_answered(request, answer)),
                )
            case apply_state.Confirm(dry_run):
                self.confirm(dry_run)
            case apply_state.Send(dry_run, undoes):
                work = partial(self._send, dry_run, undoes)
                self.run(work, lambda answer: self.advance(self.state.sent(answer, self.elapsed)))
            case apply_state.Check(result, pause):
                self.run(partial(self._read_progress, result), self._checked, pause)

    def read_related(self) -> tuple[RelatedObjects, Pod, Preview]:
        """Read the related objects; return them with the object and preview for which they were read."""
        return self.source.related(self.state.pod), self.state.pod, self.state.preview

    def _loaded(self, answer: tuple[RelatedObjects, Pod, Preview] | QosError) -> None:
        self.advance(self.state.loaded(*answer) if isinstance(answer, tuple) else self.state.loaded(answer))

    def _send(self, dry_run: DryRunResult, undoes: str) -> ApplyResult:
        plan, request = self.state.plan, dry_run.request
        if plan is None:
            return self.writer.apply(dry_run, self.history, undoes=undoes)
        pods, restarts = changed_pods(self.source, request).pods, self.state.preview.restarts
        trial = Trial.begin(pods, in_place=bool(request.subresource), restarting=restarts)
        result = self.writer.apply(dry_run, self.history, undoes=undoes)
        at = parse_time(result.entry.at)
        until = f"until {at + timedelta(seconds=plan.seconds):%H:%M} UTC, " if at is not None else ""
        message = f"{until}as long as kubectl qos runs"
        entry = replace(result.entry, state=EntryState.ON_TRIAL, message=message)
        self.history.put(entry)
        return replace(result, entry=entry, trial=trial)

    def _read_progress(self, result: ApplyResult) -> tuple[Progress, Snapshot]:
        """Read the progress, and on trial the containers."""
        progress = self.writer.progress(result, self.history)
        if self.state.plan is None or progress.stage is Stage.GONE:
            return progress, Snapshot()
        return progress, changed_pods(self.source, result.request)

    def _checked(self, answer: tuple[Progress, Snapshot] | QosError) -> None:
        progress, changed = (answer, Snapshot()) if isinstance(answer, QosError) else answer
        self.advance(self.state.checked(progress, self.elapsed, changed))
