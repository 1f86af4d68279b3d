"""The command-line shell of a change: it asks, and prints each step.

Shared by `set`, `fix` and `undo`. With -o, stdout has only the object; everything else goes to stderr.
Not here: the loop (cluster/driver.py), the steps of a change (edit/apply_state.py), and the flags (flags.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.cli import output
from kubectl_qos.cli.resources import reference
from kubectl_qos.cli.sources import ResolvedSource, SourceNeeds, resolve_source
from kubectl_qos.cluster.driver import Driver
from kubectl_qos.config import config_file
from kubectl_qos.config.state import HistoryFile, history_path
from kubectl_qos.edit.apply_state import Apply, ConflictError, DryRunResult, Phase, Step
from kubectl_qos.edit.edits import PatchRequest
from kubectl_qos.edit.findings import Severity
from kubectl_qos.edit.goals import RankGoal
from kubectl_qos.edit.history import Entry
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.server_response import with_group
from kubectl_qos.edit.status import TrialCondition, TrialPlan
from kubectl_qos.errors import EXIT_DID_NOT_HOLD, ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.objects import Json
from kubectl_qos.present import changes as present
from kubectl_qos.present.findings import answer_sentence, finding_line, findings_section
from kubectl_qos.present.format import duration
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.output import Section, marked_lines, sentences

if TYPE_CHECKING:
    from kubectl_qos.cli.options import ApplyOptions, SourceOptions
    from kubectl_qos.config.settings import UserSettings


class DidNotHold(QosError):
    """A change was made, but did not pass its trial."""

    exit_code = EXIT_DID_NOT_HOLD


MOST_FAILED_CHECKS: Final = 3
REVERT_SECONDS: Final = 5.0
WAITING_SECONDS: Final = 60.0
"""Seconds to watch a revert; WAITING_SECONDS while the kubelet waits for usage to fall."""
_GONE: Final = (
    "the demo and this change end with the command; in the UI (kubectl qos --demo) they last until you leave"
)


def resolve_cluster(source: SourceOptions, options: ApplyOptions) -> tuple[ResolvedSource, UserSettings]:
    """Return the cluster to change, and the person's settings.

    Raises UsageError if a person would have to be asked without a terminal, and QosError.
    """
    from kubectl_qos.config.settings import read_settings

    settings = read_settings(config_file())
    if options.dry_run == "none" and not options.yes and not output.is_interactive():
        raise UsageError(
            "confirmation needs a terminal: nothing is applied",
            hint="--yes applies without asking; --dry-run=client and --dry-run=server change nothing",
        )
    needs = SourceNeeds(write_settings=None if options.readonly else settings, living_demo=True)
    return resolve_source(source, needs), settings


def check_strategy(state: Apply, kind: StrategyKind | None) -> None:
    """Raise InputError unless the chosen strategy is of that kind, if given, and has a request."""
    strategy = state.strategy
    assert strategy is not None
    words = {StrategyKind.IN_PLACE: "in place", StrategyKind.TEMPLATE: "through its owner's template"}
    if kind is not None and strategy.kind is not kind:
        titles = ", ".join(
            present.strategy_title(strategy) for strategy in state.strategies if strategy.is_possible
        )
        hint = titles and f"possible: {titles}"
        raise InputError(f"{reference(state.pod)} cannot be changed {words[kind]}", hint)
    if strategy.request is None:
        how = words.get(strategy.kind, "from here")
        raise InputError(
            f"{reference(state.pod)} cannot be changed {how}: {strategy.reason or 'by hand only'}",
            hint=present.alternative(state, may_add_by=kind is None),
        )


_FORCE: Final = "choose other {}, or add --force to apply it anyway"


class ApplyShell(Driver):
    """Drive one change from the flags of a command.

    `goal` is the requested kill rank, `tried` the entry in the change history after a trial. Raises QosError
    if nothing may be written to the cluster.
    """

    history: HistoryFile

    def __init__(
        self,
        resolved: ResolvedSource,
        options: ApplyOptions,
        settings: UserSettings,
        format_: str | None = None,
        goal: RankGoal | None = None,
    ) -> None:
        self._changes_persist = resolved.changes_persist
        history = HistoryFile(history_path()) if self._changes_persist else HistoryFile(None, problem="")
        writer = None if options.dry_run == "client" else resolved.source.writer()
        super().__init__(resolved.source, writer, history)
        self.options = options
        self._resolved = resolved
        self._settings = settings
        self._format, self._goal = format_, goal
        self._print: Callable[[Sequence[str]], None] = output.print_lines if format_ is None else output.notes
        self._sent_at: float | None = None
        self.tried: Entry | None = None
        self._is_revert = False
        self._next: tuple[Callable[[], Any], Callable[[Any], object], float] | None = None

    def for_undo(self) -> ApplyShell:
        """Return a shell that reverts the change without a question, and watches that for some seconds."""
        again = self.options._replace(yes=True, force=True, for_seconds=None, undo_if=())
        shell = ApplyShell(self._resolved, again, self._settings, self._format)
        shell._is_revert = True
        return shell

    @property
    def elapsed(self) -> float:
        """Return the seconds since the server's answer to the change."""
        return time.monotonic() - self._sent_at if self._sent_at is not None else 0.0

    def run(self, work: Callable[[], Any], then: Callable[[Any], object], pause: float = 0.0) -> None:
        """Queue the next piece of work, unless nobody waits for it any more."""
        is_followed = self.state.phase is Phase.FOLLOWING
        waited = any(attempt.progress and attempt.progress.waits_for_usage for attempt in self.state.seen)
        most = WAITING_SECONDS if waited else REVERT_SECONDS
        is_enough = self._is_revert and (self.state.error is not None or self.elapsed >= most)
        if not (is_followed and (is_enough or self.options.wait is False)):
            self._next = work, then, pause

    def _drive(self, step: Step) -> None:
        """Take a step and all that follow from it. Raises what `show` raises."""
        self.advance(step)
        timeout = self.options.timeout_seconds
        while self._next is not None:
            (work, then, pause), self._next = self._next, None
            if timeout and pause and self.elapsed + pause > timeout:
                raise QosError(
                    (
                        f"timed out waiting for {self._name}: it was changed, last status:"
                        f" {_last_seen(self.state)}"
                    ),
                    hint="the change goes on; kubectl qos explain shows its state",
                )
            if self.state.phase is Phase.FOLLOWING:
                time.sleep(pause)
            try:
                answer = work()
            except QosError as error:
                answer = error
            then(answer)

    @property
    def _name(self) -> str:
        assert self.state.request is not None
        return self.state.request.reference

    def load(self, change: Apply, related: RelatedObjects | None = None) -> Apply:
        """Print the findings, strategies and request of a change, and return it with them."""
        self.state = change
        self._drive(change.begin(related))
        state = self.state
        if state.error is not None:
            raise state.error
        assert state.strategy is not None
        assert state.related is not None
        strategies = Section("Strategies", lines=sentences(*present.strategy_lines(state.strategies)))
        sections = [*filter(None, [findings_section(state.findings)]), strategies]
        if state.request is not None:
            lines = sentences(*filter(None, present.request_lines(state.request)))
            sections.append(Section("Request", present.strategy_title(state.strategy), lines))
        self._print(list(marked_lines(sections)))
        output.notes(map(missing_sentence, state.related.missing))
        return state

    def apply(self) -> None:
        """Run the dry run, ask, send the change and watch it.

        Raises QosError if the change is not done in the end, InputError if a server is expected to refuse
        what is not sent.
        """
        state, options = self.state, self.options
        request = state.request
        assert request is not None
        assert state.strategy is not None
        self._check_expected(state, request.reference)
        if options.dry_run == "client":
            self._print([f"{_done_words(request)} (dry run)"])
            return
        if options.for_seconds:
            plan = TrialPlan(options.for_seconds, tuple(map(TrialCondition, options.undo_if)))
            state = replace(state, plan=plan)
        if warning := present.unreverted_line(state):
            output.note(warning)
        try:
            self._drive(state.dry_run() if options.dry_run == "server" else state.apply())
        except KeyboardInterrupt:
            if self.state.phase is Phase.FOLLOWING:
                output.note(
                    f"stopped watching: {request.reference} was changed, last status:"
                    f" {_last_seen(self.state)}; the change goes on"
                )
            raise
        finally:
            if self.state.plan is not None and self.state.result is not None:
                self.tried = present.trial_entry(self.state, int(self.elapsed))
                self.history.put(self.tried)
        self._conclude()

    def _check_expected(self, state: Apply, name: str) -> None:
        """Raise QosError for what is expected to fail, if nobody is asked or nothing is sent."""
        options, strategy = self.options, state.strategy
        assert strategy is not None
        is_unconfirmed = options.yes and not options.force and options.dry_run == "none"
        is_put_off = is_unconfirmed and present.is_put_off(state.preview, strategy)
        for finding in (finding for finding in state.findings if finding.stops):
            line, is_refusal = finding_line(finding), finding.severity is Severity.REFUSAL
            if is_refusal and (is_put_off or options.dry_run == "client"):
                pod = f"{state.pod.kind.lower()}/{state.pod.name}"
                raise InputError(f"{pod}: a server would refuse this: {line}")
            if is_unconfirmed and not is_refusal:
                raise QosError(f"{name} is not changed: {line}", hint=_FORCE.format("values"))
        if is_put_off:
            answer = answer_sentence(state.preview.outcome)
            hint = _FORCE.format("values or another node")
            raise QosError(f"{name} is not changed: the kubelet {answer}", hint=hint)

    def _conclude(self) -> None:
        """Print how the trial ended. Raises QosError unless the change is done and passed its trial."""
        state, result, progress, trial = self.state, self.state.result, self.state.progress, self.state.trial
        if result is None or progress is None:
            return
        if state.plan is not None:
            self._print(present.trial_lines(trial))
        if trial.seen:
            raise DidNotHold(f"{self._name} did not hold: {present.trial_words(trial)}")
        if not state.is_done and self._is_revert:
            self.history.put(replace(result.entry, message=present.revert_line(progress)))
        elif not state.is_done:
            words = "but" if progress.settled else "last status"
            raise QosError(f"{self._name} is changed, {words}: {_last_seen(state)}")
        if state.plan is not None:
            if not trial.outcomes:
                raise QosError(f"{self._name} is changed, but no pod with the new values has appeared")
            self._print([f"{self._name} held for {duration(int(self.elapsed))}"])

    def show_state(self, before: Apply) -> None:
        """Print the result of a step. Raises the error that ends a change."""
        if before.phase is Phase.DRY_RUN:
            self._show_dry_run()
        elif before.phase is Phase.SENDING:
            self._show_sent()
        elif before.phase is Phase.FOLLOWING:
            self._show_progress(before)

    def _raise_error(self) -> None:
        """Raise the error of a step, if any, after printing the three values of a conflict."""
        error = self.state.error
        if isinstance(error, ConflictError):
            output.notes(present.conflict_lines(error.conflicts))
        if error is not None:
            raise error

    def _show_dry_run(self) -> None:
        self._raise_error()
        dry_run = self.state.accepted
        assert dry_run is not None
        self._print(present.dry_run_lines(dry_run.request, dry_run.stored, dry_run.warnings))
        if self.options.dry_run == "server":
            self._print_object(dry_run.request, dry_run.raw)
            self._print([f"{_done_words(dry_run.request)} (server dry run)"])

    def confirm(self, dry_run: DryRunResult) -> None:
        """Ask a person unless --yes is given. Raises QosError if the answer is no."""
        state, writer, context = self.state, self.writer, self.writer.context
        if not self.options.yes and state.strategy is not None:
            change, strategy = state.preview, state.strategy
            output.notes(present.confirm_lines(context, writer.server, dry_run.request, change, strategy))
            by_name = self._settings.for_context(context).confirm == "name"
            what = "the context's name" if by_name else "yes"
            question = f"Apply this to {context}{present.kubelet_caveat(change, strategy)}? Type {what}:"
            if output.prompt(question) != (context if by_name else "yes"):
                raise QosError(f"aborted: {dry_run.request.reference} is not changed")
        self.advance(state.confirm(yes=True))

    def _show_sent(self) -> None:
        self._sent_at = time.monotonic()
        problem, result = self.history.problem, self.state.result
        if problem:
            output.note(problem)
        self._raise_error()
        assert result is not None
        if not self.state.undoes:
            self._print_object(result.request, result.raw)
        self._print([_done_words(result.request)])
        if not self.state.undoes and not problem:
            output.note(
                f"to undo it: kubectl qos undo {result.entry.short_id}" if self._changes_persist else _GONE
            )

    def _show_progress(self, before: Apply) -> None:
        state, error = self.state, self.state.error
        is_last = isinstance(error, ApiError) or state.failed_checks == MOST_FAILED_CHECKS
        if error is not None and is_last and not self._is_revert:
            raise QosError(f"{self._name} is changed, but its progress cannot be read: {error}", error.hint)
        if state.seen is not before.seen:
            self._print([f"{self._name}: {_last_seen(state)}"])
        if (words := present.trial_words(state.trial)) != present.trial_words(before.trial):
            self._print([f"{self._name}: {words}"])

    def _print_object(self, request: PatchRequest, raw: Json) -> None:
        """Print what -o asks for: the patch, the object in the server's answer, or the preview with both."""
        if self._format in {"patch", "manifest"}:
            output.print_yaml(dict(request.patch if self._format == "patch" else raw))
        elif self._format is not None:
            from kubectl_qos.present.values.changes import preview_values

            values = preview_values(self.state, goal=self._goal, patch=request.patch, manifest=raw, notes=())
            output.print_document(values, self._format)


def _last_seen(state: Apply) -> str:
    if state.progress is None or state.strategy is None:
        return "not seen yet"
    effects = state.preview.effects_of(state.strategy.kind)
    return present.progress_line(state.progress, effects, is_undo=bool(state.undoes))


def _done_words(request: PatchRequest) -> str:
    kind = with_group(request.kind.lower(), request.kind)
    return f"{kind}/{request.name} {'resized' if request.subresource else 'patched'}"
