"""A change that the UI makes, and its lines on the screens. After a failed trial it reverts itself.

cluster/driver.py has the loop, edit/apply_state.py the steps, shell.py the pending changes, and
screens/apply.py the screens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs
from textual.app import App
from textual.message import Message

from kubectl_qos.cluster.background import attempt
from kubectl_qos.cluster.driver import Driver
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.edit.apply_state import Apply, Blocked, ConflictError, DryRunResult, Phase, UnknownOutcome
from kubectl_qos.edit.edits import PatchRequest, value_now
from kubectl_qos.edit.history import Entry, ValueConflict
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_reference
from kubectl_qos.edit.server_response import expected_response
from kubectl_qos.edit.status import Stage, TrialPlan
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present import changes as words
from kubectl_qos.present.changes import alternative, progress_line, trial_entry, unreverted
from kubectl_qos.present.format import duration, escape
from kubectl_qos.present.output import ARROW, Section
from kubectl_qos.present.preview import death_change
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.edit_target import REFUSED, EditTarget, finding_sections
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.text_view import TextLine, escape_lines, yaml_line

if TYPE_CHECKING:
    from kubectl_qos.cluster.source import Source
    from kubectl_qos.cluster.writer import Writer


@dataclass
class ChangeUpdated(Message, bubble=False):
    """A change has another state; with `confirms` a person has to confirm it now."""

    change: RunningChange
    confirms: bool


class Service(Protocol):
    """The part of `WriteService` (shell.py) that a change needs."""

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
    """A change of the UI; `target` is its object as it was read last.

    `writer` writes to the cluster that the change was made for. `undoing` is the change that reverts this one
    after a trial, or the reason why there is none. Once its screen `is_left`, its end is notified.
    """

    def __init__(self, service: Service, target: EditTarget, writer: Writer | None, change: Apply) -> None:
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
        """Say what is lost if the UI is left now: an answer or a trial; "" if nothing is."""
        if self.state.phase is Phase.SENDING:
            return f"{self.name}: sent, but not answered yet"
        is_followed = self.state.phase is Phase.FOLLOWING
        waits = is_followed or (self.state.reverts and self.undoing is None)
        if self.state.plan is None or not waits:
            return ""
        return f"{self.name}: still on trial; if you leave, the change stays and nothing reverts it"

    @property
    def outcome(self) -> str:
        error, done = self.state.error, "reverted" if self.state.undoes else "changed"
        if isinstance(error, UnknownOutcome):
            return f"{self.name}: {error}"
        return f"{self.name} was not {done}: {error}" if error is not None else f"{self.name} was {done}"

    @property
    def elapsed(self) -> float:
        """Return the seconds since the change was sent, by the clock of its cluster."""
        if self.sent_at is None:
            return 0
        return max((self.source.now() - self.sent_at).total_seconds(), 0)

    def leave(self) -> None:
        """Take note that no screen shows the change any more; what was sent is followed to its end."""
        self.is_left = True
        if self.state.phase is not Phase.FOLLOWING:
            self.advance(self.state.leave())
        if isinstance(self.undoing, RunningChange):
            self.undoing.leave()

    def run(self, work: Callable[[], Any], then: Callable[[Any], object], pause: float = 0.0) -> None:
        """Do work in a thread after a pause in seconds, and `then` in the UI's thread."""
        if pause:
            # Textual's timer drops its only call if the thread is busy for longer than the pause.
            asyncio.get_running_loop().call_later(pause, self._service.run, work, then)
        else:
            self._service.run(work, then)

    def show_state(self, before: Apply) -> None:
        """Update the screens, and notify how the change ends if no screen shows it."""
        has_left = before.phase if before.phase is not self.state.phase else None
        if self.state.phase is Phase.SENDING and has_left is not None:
            self.sent_at = self.source.now()
        self._service.updated(self)
        if has_left is Phase.SENDING:
            self._notify(self.outcome, failed=self.state.error is not None)
        self._notify_screens()
        if has_left is Phase.FOLLOWING:
            if self.state.plan is not None:
                self.run(self._record_trial, self._trial_recorded)
            elif (progress := self.state.progress) is not None:
                failed = progress.stage is not Stage.DONE and not progress.is_reverted
                self._notify(f"{self.name}: {progress_line(progress)}", failed=failed)

    def confirm(self, dry_run: DryRunResult) -> None:
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
        """Read the related objects, and the object itself if the change is made again after a conflict."""
        related, _, _ = super().read_related()
        if self.state.keeps_mine:
            self.target = self.target.refreshed(related.raw)
        return related, self.target.pod, self.target.preview(self.state.edits)

    def _record_trial(self) -> RelatedObjects | None:
        """Record how the trial went, and read what a revert needs, if there is to be one. Raises QosError."""
        self._tried = entry = trial_entry(self.state, int(self.state.seconds))
        self.history.put(entry)
        pod = pod_reference(entry.kind, entry.namespace, entry.name)
        return self.source.related(pod) if self.state.reverts else None

    def _trial_recorded(self, related: RelatedObjects | QosError | None) -> None:
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
        """Revert the change as it was applied, without a question. Raises QosError if that is impossible."""
        assert self.state.result is not None
        entry, target = self.state.result.entry, self.target
        change = self._service.begin_undo(entry, related, target.view_model, self.source)
        kinds = [strategy.kind for strategy in change.state.strategies]
        change.advance(change.state.choose(kinds.index(entry.strategy) if entry.strategy in kinds else 0))
        if change.state.conflicts:
            raise ConflictError("someone else has changed it since", change.state.conflicts)
        if change.state.blocked is not None:
            strategy = change.state.strategy
            why = strategy.reason if strategy is not None else "nothing can be sent"
            raise QosError(why, hint=alternative(change.state))
        change._is_automatic, change.is_left = True, self.is_left  # noqa: SLF001 - another one of this class
        change.advance(change.state.apply())
        return change


def promise_lines(state: Apply) -> list[TextLine]:
    """Return what a trial will do after the change is sent; nothing if the change is not on trial."""
    if state.plan is None:
        return []
    unreverted = words.unreverted_line(state)
    lines = [TextLine(f"  on trial {plan_line(state.plan)}", "changed")]
    return [*lines, *([TextLine(unreverted, "wrong")] if unreverted else [])]


def trial_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """Yield what the trial has seen so far, and what reverts the change; nothing if it is not on trial."""
    plan, trial = change.state.plan, change.state.trial
    if plan is None or change.state.result is None:
        return
    yield from (TextLine(f"  {line}") for line in words.trial_lines(trial))
    if change.state.phase is Phase.FOLLOWING:
        seen = words.trial_words(trial) or "none of these was seen"
        ended = "" if change.state.is_done else ", not done yet"
        so_far = f"{duration(int(change.elapsed))} so far{ended}: {seen}"
        yield TextLine(f"  on trial {plan_line(plan)}; {so_far}", "muted")
    else:
        yield from trial_end_lines(change, keys)


def trial_end_lines(change: RunningChange, keys: Keys) -> Iterator[TextLine]:
    """Yield whether a change has held on trial, and whether it is reverted."""
    state, progress = change.state, change.state.progress
    tried_for, seen = duration(int(state.seconds)), words.trial_words(state.trial)
    if progress is not None and progress.is_reverted:
        after = f"{progress.stage.value} after {tried_for}"
        yield TextLine(f"  {after}: {seen}" if seen else f"  {after}", "answer")
        return
    if seen:
        yield TextLine(f"! it did not hold: {seen}", "wrong")
    elif progress is not None and not state.is_done:
        yield TextLine(f"! last status after {tried_for}: {words.progress_line(progress)}", "wrong")
    elif state.trial.outcomes:
        yield TextLine(f"  it held for {tried_for}", "answer")
    else:
        yield TextLine("! no pod with the new values was seen", "wrong")
    yield from _revert_lines(change, keys)


def _revert_lines(change: RunningChange, keys: Keys) -> list[TextLine]:
    """Return how far a tried change is reverted, or which key reverts it."""
    undoing = change.undoing
    if isinstance(undoing, QosError):
        return error_lines("it is not reverted", undoing)
    if undoing is not None and undoing.state.error is not None:
        return error_lines("it is not reverted", undoing.state.error)
    if undoing is not None and undoing.state.result is not None:
        text = f"  {words.revert_line(undoing.state.progress)}"
        if undoing.state.is_done:
            return [TextLine(f"{text}: the previous values are restored", "answer")]
        return [TextLine(text, "changed"), *waiting_lines(undoing.state)]
    text = "reverting it …" if change.state.reverts else f"{keys.first('app.undo')} reverts it"
    return [TextLine(f"  {text}", "muted")]


def error_lines(about: str, error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Return an error, the values of a conflict, and the remedies or else the error's hint."""
    status = f" ({error.status})" if isinstance(error, ApiError) else ""
    lines = [TextLine(f"! {about}: {escape_lines(str(error))}{status}", "wrong")]
    if isinstance(error, ConflictError):
        lines += _conflict_lines(error.conflicts)
    hints = [error.hint] if error.hint and not remedies else []
    return [*lines, *(TextLine(f"  {escape_lines(text)}") for text in (*hints, *remedies))]


def _request_error_lines(error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Return why a change was not applied, or why its outcome is unknown."""
    about = "outcome unknown" if isinstance(error, UnknownOutcome) else "not applied"
    return error_lines(about, error, remedies)


def _conflict_lines(conflicts: Iterable[ValueConflict]) -> list[TextLine]:
    return [TextLine(f"    {line}", "changed") for line in words.conflict_lines(conflicts)]


def blocked_sentence(state: Apply, keys: Keys) -> str:
    """Return why nothing can be sent, empty if something can."""
    match state.blocked:
        case None:
            return ""
        case Blocked.LOADING:
            return "still loading owners and quotas"
        case Blocked.CONFLICT:
            return "someone else changed it: reload, or keep mine"
        case Blocked.NO_REQUEST:
            assert state.strategy is not None
            why = state.strategy.reason or "save the manifest, then delete and recreate the pod"
            return f"{words.strategy_title(state.strategy)}: {why}"
        case Blocked.UNREADABLE:
            return str(state.error)
        case Blocked.READ_ONLY:
            return f"{state.read_only}; {keys.first('apply.patch')} shows the patch, to save it"


def change_lines(state: Apply) -> list[TextLine]:
    """Return the values before and after the change, and those that someone else has changed."""
    if state.request is not None:
        lines = words.change_lines(state.request.before, state.request.edits)
    else:
        before = [structs.replace(edit, quantity=value_now(state.pod, edit)) for edit in state.edits]
        lines = words.change_lines(before, state.edits)
    text_lines = [TextLine(f"  {line}") for line in lines]
    if state.conflicts:
        text_lines.append(TextLine("! someone else has changed this since:", "wrong"))
        text_lines += _conflict_lines(state.conflicts)
    return text_lines


def answer_lines(state: Apply, target: EditTarget, keys: Keys) -> list[TextLine]:
    """Return the server's newest answer to the chosen strategy."""
    patch_remedy = f"{keys.first('apply.patch')} shows the patch, to save it"
    if state.error is not None:
        if not state.is_loaded:
            return error_lines("cannot be read", state.error)
        reload, keep = keys.first("apply.reload"), keys.first("apply.keep_mine")
        remedies = (
            f"{reload}  discard mine, reload",
            f"{keep}  keep mine: make the same change to the object as it is now, dry run first",
        )
        return _request_error_lines(state.error, remedies if state.has_conflict else ())
    if not state.is_loaded:
        return [TextLine("  loading related objects: owners, LimitRanges, quotas …", "muted")]
    if state.phase is Phase.DRY_RUN:
        after = ", confirmation follows" if state.confirms_next else ""
        return [TextLine(f"  dry run: waiting for {escape(target.source.title)} …{after}", "muted")]
    if state.request is None:
        return []
    if state.read_only is not None:
        return error_lines("cannot be applied", state.read_only, [patch_remedy])
    if state.accepted is not None:
        accepted = state.accepted
        first, *more = words.dry_run_lines(accepted.request, accepted.stored, accepted.warnings)
        return [TextLine(f"  {first}", "answer"), *(TextLine(f"  {line}", "changed") for line in more)]
    apply, dry_run = keys.first("apply.apply"), keys.first("apply.dry_run")
    next_keys = f"  {apply} applies it, after a dry run and a confirmation; {dry_run} only dry-runs it"
    return [TextLine(next_keys, "muted"), *_expected_lines(state)]


def _expected_lines(state: Apply) -> list[TextLine]:
    """Return the refusal that is expected of the server, unless a finding says the same."""
    if state.related is None or state.strategy is None:
        return []
    if any(section.title == REFUSED for section in state_findings(state)):
        return []
    refused = expected_response(state.preview, state.related, state.strategy.kind, state.request)
    return [TextLine(f"! {words.expected_response_line(refused)}", "wrong")] if refused is not None else []


def state_findings(state: Apply) -> tuple[Section, ...]:
    """Return the findings on the chosen strategy; the server's own refusal replaces the expected ones."""
    has_refused = state.error is not None
    return tuple(part for part in finding_sections(state) if not has_refused or part.title != REFUSED)


def request_lines(state: Apply, keys: Keys) -> list[TextLine]:
    """Return the exact request, or how to apply the change if there is none."""
    if state.strategy is None:
        return []
    if state.request is None:
        key = keys.first("apply.patch")
        return [TextLine(f"  {key} shows the patch and the manifest, to save them")]
    head, media_type, *body = words.request_lines(state.request)
    return [TextLine(head, "answer"), TextLine(media_type, "muted"), *map(yaml_line, body)]


def progress_lines(
    state: Apply, request: PatchRequest, context: str, seconds: int, keys: Keys
) -> Iterator[TextLine]:
    """Yield what was sent to a context `seconds` ago, what has been seen of it, and what comes next."""
    for line in words.change_lines(request.before, request.edits):
        yield TextLine(f"  {line}")
    if state.seen:
        yield TextLine("")
    effects = state.preview.effects_of(state.strategy.kind) if state.strategy is not None else None
    for status in state.seen:
        line = "accepted by the server"
        if status.progress is not None:
            line = words.progress_line(status.progress, effects, is_undo=bool(state.undoes))
        is_newest = status is state.seen[-1]
        mark, token = (">", "title") if is_newest else (" ", "muted")
        yield TextLine(f"{mark} {duration(status.seconds):>4}  {line}", token)
    if state.phase is Phase.FOLLOWING and state.error is not None:
        yield TextLine(f"! cannot check it now: {escape(str(state.error))}", "wrong")
    yield TextLine("")
    if state.phase is Phase.SENDING:
        yield TextLine(f"  sent to {escape(context)}, no answer yet, {duration(seconds)}")
    elif state.plan is not None and state.error is None:
        pass
    elif state.phase is Phase.FOLLOWING:
        yield from waiting_lines(state)
        yield TextLine(f"  watching it until it has settled, {duration(seconds)} so far", "muted")
    elif state.error is not None:
        yield from _request_error_lines(state.error)
    else:
        yield from _settled_lines(state, keys)


def _pod_now(then: Pod, view_model: ViewModel) -> Pod | None:
    """Return the same pod as it is now on its node, None if it is gone or replaced."""
    now = pod_named(view_model, (then.namespace, then.name), then.node_name)
    return now if now is not None and now.metadata.uid == then.metadata.uid else None


def killed_lines(
    then: Pod, view_model: ViewModel | None, sent_at: datetime | None = None
) -> Iterator[TextLine]:
    """Yield what has been killed of a pod since `then`, and how long before or after the change was sent."""
    now = _pod_now(then, view_model) if view_model is not None else None
    if now is None:
        return
    if now.is_terminal and not then.is_terminal:
        reason = escape(now.status.reason or now.status.phase)
        yield TextLine(f"! the pod has ended meanwhile: {reason}", "wrong")
    before = {status.name: status.ends[:1] for status in then.status.every_container}
    for status in now.status.every_container:
        last = status.ends[:1]
        if last and last[0].reason == "OOMKilled" and last != before.get(status.name):
            when, ended = "meanwhile", parse_time(last[0].finished_at)
            if sent_at is not None and ended is not None:
                seconds = int((ended - sent_at).total_seconds())
                side = "before" if seconds < 0 else "after"
                when = f"{duration(abs(seconds))} {side} the change was sent"
            yield TextLine(f"! {escape(status.name)} was OOMKilled {when}", "wrong")


def death_lines(target: EditTarget, view_model: ViewModel) -> Iterator[TextLine]:
    """Yield the next death of a pod before its change and now; nothing for a workload."""
    node = target.pod.node_name
    then, later = target.view_model.deaths(node), view_model.deaths(node)
    if _pod_now(target.pod, view_model) is not None and then is not None and later is not None:
        before, now = death_change(then.state, later.state, target.pod)
        yield TextLine(f"  next death of it {before}{', as before' if before == now else f' {ARROW} {now}'}")


def plan_line(plan: TrialPlan) -> str:
    """Say how long a change is on trial, and what reverts it."""
    return f"for {duration(int(plan.seconds))}, and reverted at: {', '.join(plan.undo_if)}"


def waiting_lines(state: Apply) -> Iterator[TextLine]:
    """Say that a lower limit has to wait until less memory is used."""
    if state.progress is not None and state.progress.waits_for_usage:
        yield TextLine(f"! {words.WAITS_FOR_USAGE}", "wrong")


def _settled_lines(state: Apply, keys: Keys) -> Iterator[TextLine]:
    if state.is_undone:
        return
    if not state.is_done:
        yield TextLine("! nothing more will happen by itself", "wrong")
    if not state.undoes:
        yield TextLine(f"  {keys.first('app.undo')} reverts it", "muted")
    elif state.is_done:
        yield TextLine("  the previous values are restored", "answer")
