"""The changes that the UI makes: their states, what carries out their commands, and who may write where.

Everything that writes goes through here. Not here: the steps of a change (edit/apply.py), and the screens
that show its state and feed it answers (screens/apply.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal

from textual.message import Message

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.config.settings import Settings
from kubectl_qos.edit import apply
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress
from kubectl_qos.errors import QosError
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.follower import run_in_background

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.tui.app import QosApp


@dataclass
class ChangeUpdated(Message, bubble=False):
    """A change has another state; `confirms` where a person has to be asked now."""

    change: RunningChange
    confirms: bool


class RunningChange:
    """A change of the UI: its state, which `take` alone replaces, and its object as it was read last.

    The writer is that of the cluster that the change was made for.
    """

    def __init__(
        self, service: WriteService, target: EditTarget, writer: Writer | None, begun: apply.Step
    ) -> None:
        self._service = service
        self._writer = writer
        self._sent_at: datetime | None = None
        self.target = target
        self.state, command = begun
        self._execute(command)

    @property
    def writer(self) -> Writer:
        """What sends its requests; there is one unless the state is read-only."""
        assert self._writer is not None
        return self._writer

    @property
    def name(self) -> str:
        """What sentences call it: `pod shop/web-0 in place`."""
        request, strategy = self.state.request, self.state.strategy
        if request is None or strategy is None:
            return self.target.name
        how = "in place" if strategy.kind is StrategyKind.IN_PLACE else "by its template"
        return f"{request.kind.lower()} {request.namespace}/{request.name} {how}"

    @property
    def elapsed_seconds(self) -> int:
        if self._sent_at is None:
            return 0
        return max(int((self.target.source.now() - self._sent_at).total_seconds()), 0)

    def take(self, step: apply.Step) -> None:
        """Go to the next state, carry out its command, and tell the screens."""
        before = self.state
        self.state, command = step
        self._execute(command)
        if self.state is not before:
            self._service.updated(self, before, confirms=isinstance(command, apply.Confirm))

    def _execute(self, command: apply.Command | None) -> None:
        run = self._service.run
        match command:
            case apply.Load():
                run(self._load, self._loaded)
            case apply.DryRun(request):
                run(partial(self.writer.dry_run, request), partial(self._dry_run_answered, request))
            case apply.Send(dry_run, undoes):
                self._sent_at = self.target.source.now()
                history = self._service.history
                run(partial(self.writer.apply, dry_run, history, undoes=undoes), self._sent)
            case apply.Check(result, 0.0):
                self._check(result)
            case apply.Check(result, pause_seconds):
                self._service.app.set_timer(pause_seconds, partial(self._check, result))

    def _load(self) -> tuple[RelatedObjects, EditTarget, Preview]:
        related, target = self.target.source.related(self.target.pod), self.target
        if self.state.keeps_mine:
            target = target.now(related.raw)
        return related, target, target.preview(self.state.edits)

    def _loaded(self, answer: tuple[RelatedObjects, EditTarget, Preview] | QosError) -> None:
        if isinstance(answer, QosError):
            self.take(self.state.loaded(answer, self.state.pod, self.state.preview))
        else:
            related, self.target, preview = answer
            self.take(self.state.loaded(related, self.target.pod, preview))

    def _dry_run_answered(self, request: PatchRequest, answer: apply.DryRunResult | QosError) -> None:
        self.take(self.state.dry_run_answered(request, answer))

    def _sent(self, answer: apply.ApplyResult | QosError) -> None:
        self.take(self.state.sent(answer, self.elapsed_seconds))

    def _check(self, result: apply.ApplyResult) -> None:
        if self.state.phase is apply.Phase.FOLLOWING:
            work = partial(self.writer.progress, result, self._service.history)
            self._service.run(work, self._checked)

    def _checked(self, answer: Progress | QosError) -> None:
        self.take(self.state.checked(answer, self.elapsed_seconds))


class WriteService:
    """Begins changes and posts a message to the app's screens when one is updated.

    `readonly` is whether the command line says that nothing is written.
    """

    def __init__(self, app: QosApp, settings: Settings, history: HistoryFile, *, readonly: bool) -> None:
        self._settings = settings
        self._readonly = readonly
        self._sending: list[RunningChange] = []
        self.app = app
        self.history = history
        self.run = partial(run_in_background, app)

    def is_readonly(self, context: str) -> bool:
        return self._readonly or bool(self._settings.for_context(context).readonly)

    def confirms_by_name(self, context: str) -> bool:
        """Whether the name of a context must be typed before anything is written to it."""
        return self._settings.for_context(context).confirm == "name"

    @property
    def leave_question(self) -> str:
        """What is asked before the UI is left; empty where no request waits for its answer."""
        names = " and ".join(change.name for change in self._sending)
        return f"{names}: it was sent, and there is no answer yet. Leave all the same?" if names else ""

    def begin(
        self,
        target: EditTarget,
        edits: Iterable[Edit],
        related: RelatedObjects | None = None,
        *,
        undoes: str = "",
        conflicts: Iterable[ValueConflict] = (),
    ) -> RunningChange:
        """A change that is shown next; see `Apply.begin`. Raises QosError where it cannot be previewed."""
        edits = tuple(edits)
        writer, read_only = None, None
        try:
            writer = self._writer(target.source)
        except QosError as error:
            read_only = error
        preview = target.preview(edits)
        step = apply.Apply.begin(
            target.pod, edits, preview, related, undoes=undoes, conflicts=conflicts, read_only=read_only
        )
        return RunningChange(self, target, writer, step)

    def _writer(self, source: Source) -> Writer:
        if self.is_readonly(source.title):
            by = "--readonly" if self._readonly else f"your settings for {source.title}"
            raise QosError(f"nothing is written: {by} says read-only")
        return source.writer()

    def updated(self, change: RunningChange, before: apply.Apply, *, confirms: bool) -> None:
        """Tell the screens; the answer to a change whose screen was left is shown in passing."""
        state = change.state
        if state.phase is apply.Phase.SENDING and before.phase is not apply.Phase.SENDING:
            self._sending.append(change)
        elif before.phase is apply.Phase.SENDING and state.phase is not apply.Phase.SENDING:
            self._sending.remove(change)
            if state.is_left:
                self._notify_ended(change)
        for screen in self.app.screen_stack:
            screen.post_message(ChangeUpdated(change, confirms=confirms))

    def _notify_ended(self, change: RunningChange) -> None:
        error = change.state.error
        if isinstance(error, apply.UnknownOutcome):
            text = f"{change.name}: {error}"
        elif error is not None:
            text = f"{change.name} was not changed: {error}"
        else:
            text = f"{change.name} was changed"
        severity: Literal["warning", "information"] = "information" if error is None else "warning"
        self.app.notify(text, severity=severity)
