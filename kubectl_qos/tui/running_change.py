"""A change that the UI makes: its state, and what carries out its commands.

Not here: the steps of a change (edit/apply.py), which changes there are (write_service.py), and the screens
that show its state and feed it answers (screens/apply.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from textual.app import App
from textual.message import Message

from kubectl_qos.cluster.source import changed_pods
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.edit import apply
from kubectl_qos.edit.history import Entry
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_reference
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.edit.strategy import choose_strategy
from kubectl_qos.edit.trial import Trial, TrialPlan
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present import apply as of_trial
from kubectl_qos.present.apply import alternative, on_trial, progress_line, tried, unreverted
from kubectl_qos.present.format import duration
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.apply_lines import error_lines, plan_line, waiting_lines
from kubectl_qos.tui.background import attempt
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.widgets.text_view import TextLine

if TYPE_CHECKING:
    from kubectl_qos.cluster.source import Source
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.tui.view_model import ViewModel


@dataclass
class ChangeUpdated(Message, bubble=False):
    """A change has another state; `confirms` where a person has to be asked now."""

    change: RunningChange
    confirms: bool


class Service(Protocol):
    """What a change needs of the service that began it."""

    app: App[Any]
    keys: Keys
    history: HistoryFile

    def run(self, work: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run work in a thread, and `then` with its result or its QosError in the UI's thread."""

    def updated(self, change: RunningChange) -> None:
        """Remember what is pending."""

    def begin_undo(
        self, entry: Entry, related: RelatedObjects, view_model: ViewModel, source: Source
    ) -> RunningChange:
        """The change that reverts an entry. Raises QosError where there is none."""


class RunningChange:
    """A change of the UI: its state, which `take` alone replaces, and its object as it was read last.

    The writer is that of the cluster that the change was made for. With a `plan` it is on `trial` once it is
    sent; `undoing` is then what reverts it, or why nothing does. Of one that `is_left` the end is notified.
    """

    def __init__(
        self, service: Service, target: EditTarget, writer: Writer | None, begun: apply.Step
    ) -> None:
        self._service = service
        self._writer = writer
        self.sent_at: datetime | None = None
        self._is_automatic = False
        self.is_left = False
        self.plan: TrialPlan | None = None
        self.trial = Trial()
        self.tried_seconds = 0
        self._tried: Entry | None = None
        self.undoing: RunningChange | QosError | None = None
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
    def pending(self) -> str:
        """What leaving the UI would leave open: an answer, or a trial; else empty."""
        if self.state.phase is apply.Phase.SENDING:
            return f"{self.name}: it was sent, and there is no answer yet"
        is_followed = self.state.phase is apply.Phase.FOLLOWING
        on_trial = self.plan is not None and (is_followed or (self.reverts and self.undoing is None))
        return (
            f"{self.name}: it is on trial; the change stays, and nothing reverts it then" if on_trial else ""
        )

    @property
    def outcome(self) -> str:
        """How its request ended, in one sentence."""
        error, done = self.state.error, "reverted" if self.state.undoes else "changed"
        if isinstance(error, apply.UnknownOutcome):
            return f"{self.name}: {error}"
        return f"{self.name} was not {done}: {error}" if error is not None else f"{self.name} was {done}"

    @property
    def elapsed_seconds(self) -> int:
        if self.sent_at is None:
            return 0
        return max(int((self.target.source.now() - self.sent_at).total_seconds()), 0)

    def leave(self) -> None:
        """Nobody looks at it any more: what was sent is followed to its end all the same."""
        self.is_left = True
        if self.state.phase is not apply.Phase.FOLLOWING:
            self.take(self.state.leave())
        if isinstance(self.undoing, RunningChange):
            self.undoing.leave()

    def take(self, step: apply.Step) -> None:
        """Go to the next state, carry out its command, and tell the screens."""
        before = self.state
        self.state, command = step
        if self._is_automatic and isinstance(command, apply.Confirm):
            self.state, command = self.state.confirm(yes=True)
        self._execute(command)
        if self.state is not before:
            self._service.updated(self)
            if before.phase is apply.Phase.SENDING is not self.state.phase:
                self._notify(self.outcome, failed=self.state.error is not None)
            message = ChangeUpdated(self, confirms=isinstance(command, apply.Confirm))
            for screen in self._service.app.screen_stack:
                screen.post_message(message)

    def _notify(self, text: str, *, failed: bool) -> None:
        if self.is_left:
            self._service.app.notify(text, severity="warning" if failed else "information", timeout=20)

    def _execute(self, command: apply.Command | None) -> None:
        run = self._service.run
        match command:
            case apply.Load():
                run(self._load, self._loaded)
            case apply.DryRun(request):
                run(partial(self.writer.dry_run, request), partial(self._dry_run_answered, request))
            case apply.Send(dry_run, undoes):
                self.sent_at = self.target.source.now()
                run(partial(self._send, dry_run, undoes), self._sent)
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

    def _send(self, dry_run: apply.DryRunResult, undoes: str) -> apply.ApplyResult:
        if self.plan is not None:
            request, restarts = dry_run.request, self.state.preview.restarts
            pods = changed_pods(self.target.source, request).pods
            self.trial = Trial.begin(pods, in_place=bool(request.subresource), restarting=restarts)
        result = self.writer.apply(dry_run, self._service.history, undoes=undoes)
        if self.plan is not None:
            result = on_trial(result, self.plan.seconds)
            self._service.history.put(result.entry)
        return result

    def _sent(self, answer: apply.ApplyResult | QosError) -> None:
        self.take(self.state.sent(answer, self.elapsed_seconds))

    def _check(self, result: apply.ApplyResult) -> None:
        if self.state.phase is apply.Phase.FOLLOWING:
            self._service.run(partial(self._look, result), self._checked)

    def _look(self, result: apply.ApplyResult) -> Progress:
        """How far it has come, and on trial what has become of its containers."""
        progress, source = self.writer.progress(result, self._service.history), self.target.source
        if self.plan is not None:
            is_there = progress.stage is not Stage.GONE
            found = changed_pods(source, result.request) if is_there else Snapshot()
            self.trial = self.trial.looked(found.pods, found.usage, progress)
        return progress

    def _checked(self, answer: Progress | QosError) -> None:
        plan, seconds = self.plan, self.elapsed_seconds
        was_followed = self.state.phase is apply.Phase.FOLLOWING
        step = self.state.checked(answer, seconds, on_trial=plan is not None)
        if plan is not None and (self.reverts or seconds >= plan.seconds):
            step = step[0].leave()
        self.tried_seconds = seconds
        self.take(step)
        if was_followed and self.state.phase is apply.Phase.SETTLED:
            if plan is not None:
                self._service.run(self._end_trial, self._trial_ended)
            elif (progress := self.state.progress) is not None:
                failed = progress.stage is not Stage.DONE and not progress.is_reverted
                self._notify(f"{self.name}: {progress_line(progress)}", failed=failed)

    @property
    def reverts(self) -> bool:
        """Whether something was seen for which it is to be reverted."""
        plan, is_undone = self.plan, self.state.is_undone
        return plan is not None and not is_undone and not set(plan.undo_if).isdisjoint(self.trial.seen)

    def _end_trial(self) -> RelatedObjects | None:
        """Put down what was seen, and read what is needed to revert it. Raises QosError."""
        assert self.state.result is not None
        entry = tried(self.state.result.entry, self.state.progress, self.trial, self.tried_seconds)
        self._tried = entry
        self._service.history.put(entry)
        pod = pod_reference(entry.kind, entry.namespace, entry.name)
        return self.target.source.related(pod) if self.reverts else None

    def _trial_ended(self, related: RelatedObjects | QosError | None) -> None:
        if isinstance(related, RelatedObjects):
            self.undoing = attempt(partial(self._undo, related))
        else:
            self.undoing = related
        if isinstance(self.undoing, QosError) and self._tried is not None:
            entry = unreverted(self._tried, self.undoing)
            self._service.run(partial(self._service.history.put, entry), lambda _: None)
        self._service.updated(self)
        end = [line.text.lstrip(" !") for line in trial_end_lines(self, self._service.keys)]
        self._notify(f"{self.name}: {'; '.join(end)}", failed=bool(self.trial.seen))

    def _undo(self, related: RelatedObjects) -> RunningChange:
        """Revert it as it was applied, without a question. Raises QosError where that cannot be."""
        assert self.state.result is not None
        entry, target = self.state.result.entry, self.target
        change = self._service.begin_undo(entry, related, target.view_model, target.source)
        kind = StrategyKind.IN_PLACE if entry.subresource else StrategyKind.TEMPLATE
        change.take(change.state.choose(choose_strategy(change.state.strategies, kind)))
        if change.state.conflicts:
            raise apply.ConflictError("someone else has changed it since", change.state.conflicts)
        if change.state.blocked is not None:
            strategy = change.state.strategy
            why = strategy.reason if strategy is not None else "nothing can be sent"
            raise QosError(why, hint=alternative(change.state))
        change._is_automatic, change.is_left = True, self.is_left  # noqa: SLF001 - another one of this class
        change.take(change.state.apply())
        return change


def promise_lines(change: RunningChange) -> list[TextLine]:
    """What a change on trial is promised before it is sent, and what not; nothing of another one."""
    if change.plan is None:
        return []
    unreverted = of_trial.unreverted_line(change.state, change.plan.undo_if)
    lines = [TextLine(f"  on trial {plan_line(change.plan)}", "changed")]
    return [*lines, *([TextLine(unreverted, "wrong")] if unreverted else [])]


def trial_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """How a change on trial has fared so far, and what reverts it; nothing of another one."""
    plan, trial = change.plan, change.trial
    if plan is None or change.state.result is None:
        return
    yield from (TextLine(f"  {line}") for line in of_trial.trial_lines(trial))
    if change.state.phase is apply.Phase.FOLLOWING:
        seen = of_trial.trial_words(trial) or "nothing of that was seen"
        ended = "" if change.state.is_done else ", not done yet"
        so_far = f"{duration(change.elapsed_seconds)} so far{ended}: {seen}"
        yield TextLine(f"  on trial {plan_line(plan)}; {so_far}", "muted")
    else:
        yield from trial_end_lines(change, keys)


def trial_end_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """Whether a change has held on trial, and whether it is reverted."""
    undoing, seen = change.undoing, of_trial.trial_words(change.trial)
    progress = change.state.progress
    if progress is not None and progress.is_reverted:
        after = f"{progress.stage.value} after {duration(change.tried_seconds)}"
        yield TextLine(f"  {': '.join(filter(None, [after, seen]))}", "answer")
        return
    if seen:
        yield TextLine(f"! it did not hold: {seen}", "wrong")
    elif change.state.progress is not None and not change.state.is_done:
        last = of_trial.progress_line(change.state.progress)
        yield TextLine(f"! after {duration(change.tried_seconds)} last seen as: {last}", "wrong")
    elif change.trial.fates:
        yield TextLine(f"  it held for {duration(change.tried_seconds)}", "answer")
    else:
        yield TextLine("! no pod with the new values was seen", "wrong")
    failed = undoing if undoing is None or isinstance(undoing, QosError) else undoing.state.error
    if failed is not None:
        yield from error_lines("it is not reverted", failed)
    elif undoing is not None and not isinstance(undoing, QosError) and undoing.state.result is not None:
        restored = ": the previous values are restored" if undoing.state.is_done else ""
        line = f"  {of_trial.revert_line(undoing.state.progress)}{restored}"
        yield TextLine(line, "answer" if restored else "changed")
        yield from waiting_lines(undoing.state)
    elif change.reverts:
        yield TextLine("  reverting it …", "muted")
    else:
        yield TextLine(f"  {keys.first('app.undo')} reverts it", "muted")
