"""A change that the UI makes: it informs the screens, and reverts itself after a trial.

cluster/driver.py has the loop, edit/apply_state.py the steps, write_service.py the list of changes;
screens/apply.py shows the state and feeds it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from textual.app import App
from textual.message import Message

from kubectl_qos.cluster.driver import Driver
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.edit import apply_state
from kubectl_qos.edit.history import Entry
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_reference
from kubectl_qos.edit.status import Stage
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present import changes as of_trial
from kubectl_qos.present.changes import alternative, progress_line, tried, unreverted
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
    """A change has another state; `confirms` if a person has to be asked now."""

    change: RunningChange
    confirms: bool


class Service(Protocol):
    """The part of the service that a change needs."""

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
        """Return the change that reverts an entry. Raises QosError if there is none."""


class RunningChange(Driver):
    """A change of the UI, and its object as it was read last.

    The writer is that of the cluster that the change was made for. `undoing` is what reverts it after a
    trial, or why nothing does. Once it `is_left`, its end is notified.
    """

    def __init__(
        self, service: Service, target: EditTarget, writer: Writer | None, change: apply_state.Apply
    ) -> None:
        super().__init__(target.source, writer, service.history)
        self._service = service
        self.sent_at: datetime | None = None
        self._is_automatic = False
        self.is_left = False
        self._tried: Entry | None = None
        self.undoing: RunningChange | QosError | None = None
        self.target = target
        self.state = change

    @property
    def name(self) -> str:
        """Return its name in sentences: `pod shop/web-0 in place`."""
        request, strategy = self.state.request, self.state.strategy
        if request is None or strategy is None:
            return self.target.name
        how = "in place" if strategy.kind is StrategyKind.IN_PLACE else "by its template"
        return f"{request.kind.lower()} {request.namespace}/{request.name} {how}"

    @property
    def pending(self) -> str:
        """Return what leaving the UI would leave open: an answer, or a trial; else empty."""
        if self.state.phase is apply_state.Phase.SENDING:
            return f"{self.name}: it was sent, and there is no answer yet"
        is_followed = self.state.phase is apply_state.Phase.FOLLOWING
        waits = is_followed or (self.state.reverts and self.undoing is None)
        if self.state.plan is None or not waits:
            return ""
        return f"{self.name}: it is on trial; the change stays, and nothing reverts it then"

    @property
    def outcome(self) -> str:
        error, done = self.state.error, "reverted" if self.state.undoes else "changed"
        if isinstance(error, apply_state.UnknownOutcome):
            return f"{self.name}: {error}"
        return f"{self.name} was not {done}: {error}" if error is not None else f"{self.name} was {done}"

    @property
    def elapsed(self) -> float:
        """Return the seconds since the change was sent, by the clock of its cluster."""
        if self.sent_at is None:
            return 0
        return max((self.source.now() - self.sent_at).total_seconds(), 0)

    def leave(self) -> None:
        """Follow what was sent to its end, though nobody looks at it any more."""
        self.is_left = True
        if self.state.phase is not apply_state.Phase.FOLLOWING:
            self.advance(self.state.leave())
        if isinstance(self.undoing, RunningChange):
            self.undoing.leave()

    def run(self, work: Callable[[], Any], then: Callable[[Any], object], pause: float = 0.0) -> None:
        """Do work in a thread, and what follows in the UI's."""
        if pause:
            # Textual's timer drops its one call when the thread is held up for longer than the pause.
            asyncio.get_running_loop().call_later(pause, self._service.run, work, then)
        else:
            self._service.run(work, then)

    def show_state(self, before: apply_state.Apply) -> None:
        """Tell the screens, or notify how a change ends that nobody looks at."""
        has_left = before.phase if before.phase is not self.state.phase else None
        if self.state.phase is apply_state.Phase.SENDING and has_left is not None:
            self.sent_at = self.source.now()
        self._service.updated(self)
        if has_left is apply_state.Phase.SENDING:
            self._notify(self.outcome, failed=self.state.error is not None)
        self._notify_screens()
        if has_left is apply_state.Phase.FOLLOWING:
            if self.state.plan is not None:
                self.run(self._end_trial, self._trial_ended)
            elif (progress := self.state.progress) is not None:
                failed = progress.stage is not Stage.DONE and not progress.is_reverted
                self._notify(f"{self.name}: {progress_line(progress)}", failed=failed)

    def confirm(self, dry_run: apply_state.DryRunResult) -> None:
        """Let the uppermost screen ask, unless the change is made without a question."""
        if self._is_automatic:
            self.advance(self.state.confirm(yes=True))
        else:
            self._notify_screens(confirms=True)

    def _notify_screens(self, *, confirms: bool = False) -> None:
        for screen in self._service.app.screen_stack:
            screen.post_message(ChangeUpdated(self, confirms))

    def _notify(self, text: str, *, failed: bool) -> None:
        if self.is_left:
            self._service.app.notify(text, severity="warning" if failed else "information", timeout=20)

    def read_related(self) -> tuple[RelatedObjects, Pod, Preview]:
        """Read the related objects, and the object as it is now if the change is kept."""
        related, _, _ = super().read_related()
        if self.state.keeps_mine:
            self.target = self.target.now(related.raw)
        return related, self.target.pod, self.target.preview(self.state.edits)

    def _end_trial(self) -> RelatedObjects | None:
        """Record what was seen, and read what is needed to revert it. Raises QosError."""
        from kubectl_qos.cluster.source import related_to

        self._tried = entry = tried(self.state, int(self.state.seconds))
        self.history.put(entry)
        pod = pod_reference(entry.kind, entry.namespace, entry.name)
        return related_to(self.source, pod) if self.state.reverts else None

    def _trial_ended(self, related: RelatedObjects | QosError | None) -> None:
        if isinstance(related, RelatedObjects):
            self.undoing = attempt(partial(self._undo, related))
        else:
            self.undoing = related
        if isinstance(self.undoing, QosError) and self._tried is not None:
            entry = unreverted(self._tried, self.undoing)
            self.run(partial(self.history.put, entry), lambda _: None)
        self._service.updated(self)
        end = [line.text.lstrip(" !") for line in trial_end_lines(self, self._service.keys)]
        self._notify(f"{self.name}: {'; '.join(end)}", failed=bool(self.state.trial.seen))

    def _undo(self, related: RelatedObjects) -> RunningChange:
        """Revert it as it was applied, without a question. Raises QosError if that is impossible."""
        assert self.state.result is not None
        entry, target = self.state.result.entry, self.target
        change = self._service.begin_undo(entry, related, target.view_model, self.source)
        kinds = [strategy.kind for strategy in change.state.strategies]
        change.advance(change.state.choose(kinds.index(entry.strategy) if entry.strategy in kinds else 0))
        if change.state.conflicts:
            raise apply_state.ConflictError("someone else has changed it since", change.state.conflicts)
        if change.state.blocked is not None:
            strategy = change.state.strategy
            why = strategy.reason if strategy is not None else "nothing can be sent"
            raise QosError(why, hint=alternative(change.state))
        change._is_automatic, change.is_left = True, self.is_left  # noqa: SLF001 - another one of this class
        change.advance(change.state.apply())
        return change


def promise_lines(state: apply_state.Apply) -> list[TextLine]:
    """Return what a trial promises before the change is sent, and what not; nothing of another change."""
    if state.plan is None:
        return []
    unreverted = of_trial.unreverted_line(state)
    lines = [TextLine(f"  on trial {plan_line(state.plan)}", "changed")]
    return [*lines, *([TextLine(unreverted, "wrong")] if unreverted else [])]


def trial_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """Yield how a change on trial has fared so far, and what reverts it; nothing of another change."""
    plan, trial = change.state.plan, change.state.trial
    if plan is None or change.state.result is None:
        return
    yield from (TextLine(f"  {line}") for line in of_trial.trial_lines(trial))
    if change.state.phase is apply_state.Phase.FOLLOWING:
        seen = of_trial.trial_words(trial) or "nothing of that was seen"
        ended = "" if change.state.is_done else ", not done yet"
        so_far = f"{duration(int(change.elapsed))} so far{ended}: {seen}"
        yield TextLine(f"  on trial {plan_line(plan)}; {so_far}", "muted")
    else:
        yield from trial_end_lines(change, keys)


def trial_end_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """Yield whether a change has held on trial, and whether it is reverted."""
    undoing, state = change.undoing, change.state
    progress, seen, tried_for = (
        state.progress,
        of_trial.trial_words(state.trial),
        duration(int(state.seconds)),
    )
    if progress is not None and progress.is_reverted:
        after = f"{progress.stage.value} after {tried_for}"
        yield TextLine(f"  {': '.join(filter(None, [after, seen]))}", "answer")
        return
    if seen:
        yield TextLine(f"! it did not hold: {seen}", "wrong")
    elif progress is not None and not state.is_done:
        yield TextLine(f"! after {tried_for} last seen as: {of_trial.progress_line(progress)}", "wrong")
    elif state.trial.outcomes:
        yield TextLine(f"  it held for {tried_for}", "answer")
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
    elif state.reverts:
        yield TextLine("  reverting it …", "muted")
    else:
        yield TextLine(f"  {keys.first('app.undo')} reverts it", "muted")
