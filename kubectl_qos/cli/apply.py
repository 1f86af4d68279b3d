"""Applying a change from the command line: carries out the commands of the state machine, prints its states.

Shared by `set` and `undo`. With -o, stdout has the object alone, and everything else goes to stderr. Not
here: the steps of a change (edit/apply.py), and the flags (flags.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from kubectl_qos.cli import output
from kubectl_qos.cli.resources import reference
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cluster.source import changed_pods
from kubectl_qos.config.history_file import HistoryFile, history_path
from kubectl_qos.edit.apply import (
    Apply,
    ApplyResult,
    Check,
    Command,
    Confirm,
    ConflictError,
    DryRun,
    DryRunResult,
    Load,
    Phase,
    Send,
    Step,
)
from kubectl_qos.edit.findings import Finding, Severity, find_findings
from kubectl_qos.edit.goals import RankGoal
from kubectl_qos.edit.history import Entry
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.replicas import usage_of
from kubectl_qos.edit.server_response import with_group
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.edit.strategy import Strategy, choose_strategy
from kubectl_qos.edit.trial import Trial
from kubectl_qos.errors import EXIT_DID_NOT_HOLD, ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.objects import Json
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present import apply as present
from kubectl_qos.present.findings import answer_sentence, finding_line, findings_section
from kubectl_qos.present.format import duration
from kubectl_qos.present.output import Section, marked_lines, sentences
from kubectl_qos.present.reasons import missing_sentence

if TYPE_CHECKING:
    from kubectl_qos.cli.options import ApplyOptions, SourceOptions
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.config.settings import Settings

T = TypeVar("T")


class DidNotHold(QosError):
    """Something speaks against a change that was made; `entry` is in the change history."""

    exit_code = EXIT_DID_NOT_HOLD

    def __init__(self, message: str, entry: Entry, hint: str = "") -> None:
        super().__init__(message, hint)
        self.entry = entry


MOST_FAILED_CHECKS: Final = 3
REVERT_SECONDS: Final = 5.0
WAITING_SECONDS: Final = 60.0
"""How long a change that reverts another one is followed, and while its kubelet waits for usage to fall."""
_GONE: Final = (
    "the demo is gone when this command ends, and the change with it: kubectl qos --demo keeps both"
)


def resolve_cluster(source: SourceOptions, options: ApplyOptions) -> tuple[ResolvedSource, Settings]:
    """The cluster to change, and the person's settings.

    Raises UsageError where a person would have to be asked without a terminal, and QosError.
    """
    from kubectl_qos.config import config_file
    from kubectl_qos.config.settings import read_settings

    settings = read_settings(config_file())
    if options.dry_run == "none" and not options.yes and not output.is_interactive():
        raise UsageError(
            "confirmation needs a terminal: nothing is applied",
            hint="--yes applies without asking; --dry-run=client and --dry-run=server change nothing",
        )
    return resolve_source(source, write_settings=None if options.readonly else settings, lives=True), settings


def check_strategy(state: Apply, kind: StrategyKind | None) -> None:
    """Raise InputError unless the chosen strategy is of that kind, if given, and has a request."""
    strategy = state.strategy
    assert strategy is not None
    words = {StrategyKind.IN_PLACE: "in place", StrategyKind.TEMPLATE: "through its owner's template"}
    if kind is not None and strategy.kind is not kind:
        titles = ", ".join(map(present.strategy_title, state.strategies))
        raise InputError(
            f"{reference(state.pod)} cannot be changed {words[kind]}", hint=f"it can be: {titles}"
        )
    if strategy.request is None:
        how = words.get(strategy.kind, "from here")
        raise InputError(
            f"{reference(state.pod)} cannot be changed {how}: {strategy.reason or 'by hand only'}",
            hint=present.alternative(state, in_set=True),
        )


class ApplyShell:
    """Carries out the commands of one change, as far as the flags go; `goal` is the kill rank asked for.

    Raises QosError where nothing may be written to the cluster.
    """

    def __init__(
        self,
        resolved: ResolvedSource,
        options: ApplyOptions,
        settings: Settings,
        format_: str | None = None,
        goal: RankGoal | None = None,
    ) -> None:
        self.options = options
        self._resolved, self.source = resolved, resolved.source
        self._settings = settings
        self._format, self._goal = format_, goal
        self._print: Callable[[Sequence[str]], None] = output.print_lines if format_ is None else output.notes
        self._findings: tuple[Finding, ...] = ()
        self._refusal = ""
        self._sent_at = 0.0
        self._trial = Trial()
        self._tried: Entry | None = None
        self._is_revert = False
        self._lasts = resolved.lasts
        self.history = HistoryFile(history_path()) if self._lasts else HistoryFile(None, problem="")
        self.writer = None if options.dry_run == "client" else resolved.source.writer()

    def for_undo(self) -> ApplyShell:
        """One that reverts the change: without a question, and following it for some seconds alone."""
        again = replace(self.options, yes=True, force=True, for_seconds=None, undo_if=())
        shell = ApplyShell(self._resolved, again, self._settings, self._format)
        shell._is_revert = True
        return shell

    def load(self, begun: Step, snapshot: Snapshot, kind: StrategyKind | None) -> Apply:
        """The loaded state with the strategy of a kind, else the first one, after a report of them all."""
        state, command = begun
        if isinstance(command, Load):
            related = _attempt(lambda: self.source.related(state.pod))
            state, _ = state.loaded(related, state.pod, state.preview)
        if state.error is not None:
            raise state.error
        state, _ = state.choose(choose_strategy(state.strategies, kind))
        assert state.strategy is not None
        assert state.related is not None
        usage, seen = usage_of(state.pod, snapshot), snapshot.seen_of(state.pod)
        findings = find_findings(state.preview, state.related, state.strategy.kind, usage, seen)
        self._findings = findings
        sections = [
            findings_section(findings),
            Section("Strategies", lines=sentences(*present.strategy_lines(state.strategies))),
            _request_section(state.strategy),
        ]
        self._print(list(marked_lines(section for section in sections if section is not None)))
        output.notes(map(missing_sentence, state.related.missing))
        refusals = [finding for finding in findings if finding.severity is Severity.REFUSAL]
        self._refusal = finding_line(refusals[0]) if refusals else ""
        return state

    def apply(self, state: Apply) -> Apply:
        """Dry run, confirmation, change and watching; the last state.

        Raises QosError where that ends otherwise than with the change done, InputError where --dry-run=client
        expects that a server would refuse it.
        """
        request = state.request
        assert request is not None
        assert state.strategy is not None
        options, writer = self.options, self.writer
        is_unconfirmed = options.yes and not options.force and options.dry_run == "none"
        if is_unconfirmed and present.is_put_off(state.preview, state.strategy):
            raise QosError(
                f"{request.reference} is not changed: the kubelet {answer_sentence(state.preview.outcome)}",
                hint="choose other values or another node, or add --force to apply it all the same",
            )
        if writer is None:
            if self._refusal:
                name = f"{state.pod.kind.lower()}/{state.pod.name}"
                raise InputError(f"{name}: a server would refuse this: {self._refusal}")
            self._print([f"{_done_words(request)} (dry run)"])
            return state
        if warning := present.unreverted_line(state, self.options.undo_if):
            output.note(warning)
        state, command = state.dry_run() if self.options.dry_run == "server" else state.apply()
        try:
            while command is not None and not self.reverts:
                seen, said = state.seen, present.trial_words(self._trial)
                state, command = self._execute(writer, state, command)
                if state.progress is not None and state.seen is not seen:
                    self._print([f"{request.reference}: {_last_seen(state)}"])
                if said != (now := present.trial_words(self._trial)):
                    self._print([f"{request.reference}: {now}"])
        except KeyboardInterrupt:
            if state.phase is Phase.FOLLOWING:
                output.note(
                    f"stopped watching: {request.reference} is changed, last seen as:"
                    f" {_last_seen(state)}; the change goes on"
                )
            raise
        finally:
            self._keep_trial(state)
        self._conclude(state)
        return state

    @property
    def reverts(self) -> bool:
        """Whether something was seen for which the change is to be reverted."""
        return not set(self.options.undo_if).isdisjoint(self._trial.seen)

    def _keep_trial(self, state: Apply) -> None:
        """Put down what was seen of a change in the change history."""
        if self.options.for_seconds and state.result is not None:
            entry = state.result.entry
            self._tried = present.tried(entry, state.progress, self._trial, int(self._elapsed()))
            self.history.put(self._tried)

    def _conclude(self, state: Apply) -> None:
        """Say how a change has fared on trial. Raises QosError unless it is done, and has held then."""
        result, progress, trial = state.result, state.progress, self._trial
        if result is None or progress is None:
            return
        name = result.request.reference
        if self.options.for_seconds:
            self._print(present.trial_lines(trial))
        if trial.seen:
            raise DidNotHold(
                f"{name} did not hold: {present.trial_words(trial)}", self._tried or result.entry
            )
        if not state.is_done and self._is_revert:
            self.history.put(replace(result.entry, message=present.revert_line(progress)))
        elif not state.is_done:
            words = "and ended as" if progress.settled else "last seen as"
            raise QosError(f"{name} is changed, {words}: {_last_seen(state)}")
        if self.options.for_seconds:
            if not trial.fates:
                raise QosError(f"{name} is changed, but no pod with the new values was seen")
            self._print([f"{name} held for {duration(int(self._elapsed()))}"])

    def _execute(self, writer: Writer, state: Apply, command: Command) -> Step:
        match command:
            case DryRun(request):
                dry_run = _attempt(lambda: writer.dry_run(request))
                step = state.dry_run_answered(request, dry_run)
                return self._dry_run_answered(_checked(dry_run), step)
            case Confirm(dry_run):
                yes = self.options.yes or self._confirmed(writer, state, dry_run)
                if not yes:
                    raise QosError(f"aborted: {dry_run.request.reference} is not changed")
                return state.confirm(yes=yes)
            case Send(dry_run, undoes):
                return self._send(writer, state, dry_run, undoes)
            case Check(result, pause_seconds):
                return self._check(writer, state, result, pause_seconds)
            case Load():
                raise AssertionError("a loaded change is loaded again after a conflict only")

    def _dry_run_answered(self, dry_run: DryRunResult, step: Step) -> Step:
        self._print(present.dry_run_lines(dry_run.request, dry_run.stored, dry_run.warnings))
        if self.options.dry_run == "server":
            self._print_object(step[0], dry_run.request, dry_run.raw)
            self._print([f"{_done_words(dry_run.request)} (server dry run)"])
        return step

    def _confirmed(self, writer: Writer, state: Apply, dry_run: DryRunResult) -> bool:
        assert state.strategy is not None
        context, request = writer.context, dry_run.request
        output.notes(present.confirm_lines(context, writer.server, request, state.preview, state.strategy))
        by_name = self._settings.for_context(context).confirm == "name"
        what = "the context's name" if by_name else "yes"
        question = f"Apply this to {context}{present.although(state.preview, state.strategy)}? Type {what}:"
        return output.prompt(question) == (context if by_name else "yes")

    def _send(self, writer: Writer, state: Apply, dry_run: DryRunResult, undoes: str) -> Step:
        history = self.history
        if self.options.for_seconds:
            pods = changed_pods(self.source, dry_run.request).pods
            in_place, restarts = bool(dry_run.request.subresource), state.preview.restarts
            self._trial = Trial.begin(pods, in_place=in_place, restarting=restarts)
        result = _attempt(lambda: writer.apply(dry_run, history, undoes=undoes))
        if self.options.for_seconds and isinstance(result, ApplyResult):
            result = present.on_trial(result, self.options.for_seconds)
            history.put(result.entry)
        self._sent_at = time.monotonic()
        if history.problem:
            output.note(history.problem)
        step = state.sent(result)
        result = _checked(result)
        if not undoes:
            self._print_object(state, result.request, result.raw)
        self._print([_done_words(result.request)])
        if not undoes and not history.problem:
            output.note(f"to undo it: kubectl qos undo {result.entry.short_id}" if self._lasts else _GONE)
        return step[0].leave() if self.options.wait is False else step

    def _check(self, writer: Writer, state: Apply, result: ApplyResult, pause_seconds: float) -> Step:
        name = result.request.reference
        timeout = self.options.timeout_seconds
        if self.options.for_seconds:
            left = self.options.for_seconds - self._elapsed()
            if left <= 0:
                return state.leave()
            pause_seconds = min(pause_seconds, left)
        if timeout and pause_seconds and self._elapsed() + pause_seconds > timeout:
            raise QosError(
                f"timed out waiting for {name}: it is changed, last seen as: {_last_seen(state)}",
                hint="the change goes on; kubectl qos explain shows its state",
            )
        time.sleep(pause_seconds)
        answer = _attempt(lambda: self._look(writer, result))
        state, command = state.checked(answer, int(self._elapsed()), on_trial=bool(self.options.for_seconds))
        error = state.error
        waited = any(one.progress and one.progress.waits_for_usage for one in state.seen)
        most = WAITING_SECONDS if waited else REVERT_SECONDS
        if self._is_revert and (error is not None or self._elapsed() >= most):
            return state.leave()
        if error is not None and (isinstance(error, ApiError) or state.failed_checks == MOST_FAILED_CHECKS):
            raise QosError(f"{name} is changed, but its progress cannot be read: {error}", error.hint)
        return state, command

    def _look(self, writer: Writer, result: ApplyResult) -> Progress:
        """How far a change has come, and on trial what has become of its containers."""
        progress = writer.progress(result, self.history)
        if self.options.for_seconds:
            is_there = progress.stage is not Stage.GONE
            snapshot = changed_pods(self.source, result.request) if is_there else Snapshot()
            self._trial = self._trial.looked(snapshot.pods, snapshot.usage, progress)
        return progress

    def _elapsed(self) -> float:
        return time.monotonic() - self._sent_at

    def _print_object(self, state: Apply, request: PatchRequest, raw: Json) -> None:
        """With -o, the patch, the object in the server's answer, or the preview with both."""
        if self._format in {"patch", "manifest"}:
            output.print_yaml(dict(request.patch if self._format == "patch" else raw))
        elif self._format is not None:
            from kubectl_qos.present.values.changes import preview_values

            values = preview_values(
                state.preview,
                self._findings,
                state.strategies,
                goal=self._goal,
                patch=request.patch,
                manifest=raw,
                notes=(),
            )
            output.print_document(values, self._format)


def _attempt(work: Callable[[], T]) -> T | QosError:
    try:
        return work()
    except QosError as error:
        return error


def _checked(answer: T | QosError) -> T:
    """The answer; raises it where it is an error, after the three values of a conflict."""
    if isinstance(answer, ConflictError):
        output.notes(present.conflict_lines(answer.conflicts))
    if isinstance(answer, QosError):
        raise answer
    return answer


def _request_section(strategy: Strategy) -> Section | None:
    if strategy.request is None:
        return None
    lines = filter(None, present.request_lines(strategy.request))
    return Section("Request", present.strategy_title(strategy), sentences(*lines))


def _last_seen(state: Apply) -> str:
    if state.progress is None or state.strategy is None:
        return "not seen yet"
    effects = state.preview.effects_of(state.strategy.kind)
    return present.progress_line(state.progress, effects, undoes=state.undoes)


def _done_words(request: PatchRequest) -> str:
    kind = with_group(request.kind.lower(), request.kind)
    return f"{kind}/{request.name} {'resized' if request.subresource else 'patched'}"
