"""Applying a change: one pure state machine behind `set`, `undo` and the terminal UI.

Each step returns the next state and the command that follows from it. Only `confirm` returns `Send`, the
one request that changes anything. Not here: the loop (cluster/driver.py), words (present/changes.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from msgspec import structs

from kubectl_qos.edit.compare import node_of, usage_of, with_admitted_values
from kubectl_qos.edit.edits import Edit, PatchRequest, effective_edits
from kubectl_qos.edit.findings import Finding, find_findings
from kubectl_qos.edit.history import Entry, ValueConflict, find_conflicts
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.server_response import created_change
from kubectl_qos.edit.status import NO_TRIAL, Progress, Stage, Trial, TrialPlan
from kubectl_qos.edit.strategy import Strategy, find_strategies
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.quota import LimitRange
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import ContainerHistory, PodUsage

FIRST_PAUSE_SECONDS: Final = 0.3
LONGEST_PAUSE_SECONDS: Final = 2.0
TRIAL_PAUSE_SECONDS: Final = 5.0
PAUSE_GROWTH: Final = 1.5
"""The factor by which the pause between checks grows."""
_NO_PODS: Final = Snapshot()
DRY_RUN_AGAIN: Final = "review it and repeat the dry run"


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """A request that the server has accepted in a dry run; only `Writer.dry_run` returns one.

    `request` has the resourceVersion of the object on which it was tried. `raw` is the whole object as the
    server would store it, `stored` the values at the request's targets, which admission and defaulting may
    have changed.
    """

    request: PatchRequest
    stored: tuple[Edit, ...]
    raw: Json
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """A change that was made: its entry in the change history, and the object in the server's answer.

    `trial` is the state of the containers before the change was sent.
    """

    entry: Entry
    raw: Json
    request: PatchRequest
    trial: Trial = NO_TRIAL


class ConflictError(QosError):
    """Someone else has changed the object meanwhile: nothing was changed."""

    def __init__(self, message: str, conflicts: tuple[ValueConflict, ...] = ()) -> None:
        super().__init__(message, DRY_RUN_AGAIN)
        self.conflicts = conflicts


class UnknownOutcome(QosError):
    """The change may have been made. The message says what was seen since; `entry` is in the history."""

    def __init__(self, message: str, entry: Entry) -> None:
        super().__init__(message, "check the object first; nothing is sent again")
        self.entry = entry


class Phase(Enum):
    """The phase of a change."""

    LOADING = auto()
    """The related objects are read."""
    READY = auto()
    """A strategy can be chosen; the server may have accepted or refused a dry run or an earlier request."""
    DRY_RUN = auto()
    """The server tries the request."""
    CONFIRM = auto()
    """The user has to confirm."""
    SENDING = auto()
    """The request was sent; no answer yet."""
    FOLLOWING = auto()
    """The server has the change; the object is checked until it has settled."""
    SETTLED = auto()
    """Nothing follows: the change has settled, or the user has stopped waiting."""


class Blocked(Enum):
    """The reasons why no request can be sent."""

    LOADING = auto()
    UNREADABLE = auto()
    CONFLICT = auto()
    NO_REQUEST = auto()
    READ_ONLY = auto()


@dataclass(frozen=True, slots=True)
class Load:
    """Read the related objects; with `Apply.keeps_mine` also the object."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """Send this request as a dry run."""

    request: PatchRequest


@dataclass(frozen=True, slots=True)
class Confirm:
    """Show what will be changed, and let the user say yes or no."""

    dry_run: DryRunResult


@dataclass(frozen=True, slots=True)
class Send:
    """Make the change, once. `undoes` is the id of the history entry that it reverts, or ""."""

    dry_run: DryRunResult
    undoes: str


@dataclass(frozen=True, slots=True)
class Check:
    """Read the object after this pause."""

    result: ApplyResult
    pause_seconds: float


Command = Load | DryRun | Confirm | Send | Check


@dataclass(frozen=True, slots=True)
class Seen:
    """The progress at one time after the request was sent; None right after the server has accepted it."""

    seconds: int
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Apply:
    """The state of one change.

    Attributes:
        pod: the object to change; for a workload the pod of its template.
        undoes: the id of the history entry that the change reverts, else "".
        conflicts: values that someone else has changed since that entry.
        read_only: why nothing may be sent, else None.
        usage: the memory usage of the object; `history` has the metrics history of its containers.
        wanted: the kind of strategy to choose at first, if there is one.
        plan: the plan of a change on `trial`, else None.
        related: None before they are read.
        strategies: the possible ones first; empty before the related objects are read.
        chosen: the index of the chosen strategy.
        confirms_next: whether the confirmation follows an accepted dry run at once.
        accepted: the accepted dry run of the chosen strategy.
        keeps_mine: whether the same change is tried again on the object as it is now.
        seen: the stages so far, each once.
        seconds: the time of the last check after the request was sent.
        checks: the number of checks; `failed_checks` counts those that failed since the last success.
        error: the last error.
    """

    pod: Pod
    edits: tuple[Edit, ...]
    preview: Preview
    undoes: str = ""
    conflicts: tuple[ValueConflict, ...] = ()
    read_only: QosError | None = None
    usage: PodUsage | None = None
    history: Mapping[str, ContainerHistory] = field(default_factory=dict)
    wanted: StrategyKind | None = None
    plan: TrialPlan | None = None
    phase: Phase = Phase.LOADING
    related: RelatedObjects | None = None
    strategies: tuple[Strategy, ...] = ()
    chosen: int = 0
    confirms_next: bool = False
    accepted: DryRunResult | None = None
    keeps_mine: bool = False
    result: ApplyResult | None = None
    seen: tuple[Seen, ...] = ()
    trial: Trial = NO_TRIAL
    seconds: float = 0
    checks: int = 0
    failed_checks: int = 0
    error: QosError | None = None

    @classmethod
    def of(
        cls, pod: Pod, edits: Iterable[Edit], snapshot: Snapshot, ranges: Sequence[LimitRange] = ()
    ) -> Apply:
        """Return the change of a pod or workload, previewed on its node.

        `ranges` are the LimitRanges that complete a manifest's pod when it is created.
        """
        node = node_of(pod, snapshot.pods)
        setup, neighbours = snapshot.setup(node), snapshot.by_node().get(node, ())
        edits, created = effective_edits(pod, edits), with_admitted_values(pod, snapshot.pods)
        created, changes = (
            created_change(created, edits, ranges, setup.release) if ranges else (created, edits)
        )
        effects = preview(created, changes, setup, neighbours, snapshot.usage)
        effects = structs.replace(effects, edits=edits)
        usage, history = usage_of(pod, snapshot), snapshot.seen_of(pod)
        return cls(pod, effects.edits, effects, usage=usage, history=history)

    def as_undo(self, entry: Entry) -> Apply:
        """Return this change as the revert of an entry."""
        return replace(self, undoes=entry.id, conflicts=find_conflicts(entry, self.pod))

    def begin(self, related: RelatedObjects | None = None) -> Step:
        """Take the first step: read the related objects unless they are given."""
        return (self, Load()) if related is None else self.loaded(related)

    @property
    def strategy(self) -> Strategy | None:
        """Return the chosen strategy; None before the related objects are read."""
        return self.strategies[self.chosen] if self.is_loaded else None

    @property
    def is_loaded(self) -> bool:
        """Return whether the strategies belong to the object as it was read last."""
        return bool(self.strategies) and self.phase is not Phase.LOADING

    @property
    def request(self) -> PatchRequest | None:
        """Return the request of the chosen strategy."""
        return self.strategy.request if self.strategy is not None else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings on the change with the chosen strategy."""
        if self.strategy is None or self.related is None:
            return ()
        return find_findings(self.preview, self.related, self.strategy.kind, self.usage, self.history)

    @property
    def has_conflict(self) -> bool:
        """Return whether someone else has changed the same values, so that the user has to decide."""
        return isinstance(self.error, ConflictError)

    @property
    def progress(self) -> Progress | None:
        """Return the progress that was seen last."""
        return self.seen[-1].progress if self.seen else None

    @property
    def is_done(self) -> bool:
        """Return whether the change was last seen to be done."""
        return self.progress is not None and self.progress.stage is Stage.DONE

    @property
    def is_undone(self) -> bool:
        """Return whether a later change of ours was seen to revert it."""
        return self.progress is not None and self.progress.is_reverted

    @property
    def reverts(self) -> bool:
        """Return whether the plan reverts the change because of what was seen."""
        is_seen = self.plan is not None and not set(self.plan.undo_if).isdisjoint(self.trial.seen)
        return is_seen and not self.is_undone

    @property
    def blocked(self) -> Blocked | None:
        """Return why no request can be sent, or None."""
        if self.strategy is None:
            return Blocked.LOADING if self.error is None else Blocked.UNREADABLE
        if self.has_conflict:
            return Blocked.CONFLICT
        if self.request is None:
            return Blocked.NO_REQUEST
        return Blocked.READ_ONLY if self.read_only is not None else None

    def loaded(
        self, related: RelatedObjects | QosError, pod: Pod | None = None, preview: Preview | None = None
    ) -> Step:
        """Take the related objects, or the error; `pod` is the object if it was read again."""
        if self.phase is not Phase.LOADING:
            return self, None
        pod, preview = pod or self.pod, preview or self.preview
        kind = self.strategies[self.chosen].kind if self.strategies else self.wanted
        state = replace(self, phase=Phase.READY, keeps_mine=False, strategies=(), chosen=0)
        if isinstance(related, QosError):
            return replace(state, error=related), None
        try:
            strategies = find_strategies(pod, self.edits, preview, related)
        except QosError as error:
            return replace(state, error=error), None
        state = replace(
            state,
            pod=pod,
            preview=preview,
            conflicts=() if self.keeps_mine else self.conflicts,
            related=related,
            strategies=strategies,
            chosen=next((index for index, strategy in enumerate(strategies) if strategy.kind is kind), 0),
        )
        return state.dry_run() if self.keeps_mine else (state, None)

    def choose(self, index: int) -> Step:
        """Choose a strategy, and drop the server's answers about the old one."""
        if self.phase not in {Phase.READY, Phase.DRY_RUN} or not self.strategies:
            return self, None
        index %= len(self.strategies)
        if index == self.chosen:
            return self, None
        return replace(self._without_answers(), chosen=index), None

    def dry_run(self) -> Step:
        """Let the server try the request."""
        if self.phase is not Phase.READY or self.blocked is not None or self.request is None:
            return self, None
        return replace(self._without_answers(), phase=Phase.DRY_RUN), DryRun(self.request)

    def apply(self) -> Step:
        """Ask for confirmation, after a dry run if none was accepted yet."""
        if self.phase is Phase.READY and self.accepted is not None and self.blocked is None:
            return replace(self, phase=Phase.CONFIRM), Confirm(self.accepted)
        state, command = self.dry_run()
        return (replace(state, confirms_next=True) if state.phase is Phase.DRY_RUN else self), command

    def dry_run_answered(self, request: PatchRequest, answer: DryRunResult | QosError) -> Step:
        """Take the server's answer to a dry run; drop the answer to another strategy's request."""
        if self.phase is not Phase.DRY_RUN or request != self.request:
            return self, None
        state = replace(self, phase=Phase.READY, confirms_next=False)
        if isinstance(answer, QosError):
            return replace(state, error=answer), None
        state = replace(state, accepted=answer)
        return state.apply() if self.confirms_next else (state, None)

    def confirm(self, *, yes: bool) -> Step:
        """Take the user's answer; only yes sends anything."""
        if self.phase is not Phase.CONFIRM or self.accepted is None:
            return self, None
        if not yes:
            return replace(self, phase=Phase.READY), None
        return replace(self, phase=Phase.SENDING), Send(self.accepted, self.undoes)

    def sent(self, answer: ApplyResult | QosError, seconds: float = 0) -> Step:
        """Take the server's answer to the change, after these seconds."""
        if self.phase is not Phase.SENDING:
            return self, None
        if isinstance(answer, QosError):
            return replace(self._without_answers(), error=answer), None
        seen = (Seen(int(seconds), None),)
        state = replace(self, phase=Phase.FOLLOWING, result=answer, seen=seen, trial=answer.trial)
        return state, Check(answer, 0.0)

    def checked(self, answer: Progress | QosError, seconds: float = 0, changed: Snapshot = _NO_PODS) -> Step:
        """Take the progress, these seconds after the request was sent, or the error.

        A change on trial is checked even after it is done, with the pods that it has `changed`.
        """
        if self.phase is not Phase.FOLLOWING or self.result is None:
            return self, None
        pause = min(FIRST_PAUSE_SECONDS * PAUSE_GROWTH ** min(self.checks, 9), LONGEST_PAUSE_SECONDS)
        state = replace(self, checks=self.checks + 1, seconds=seconds)
        if isinstance(answer, QosError):
            state = replace(state, error=answer, failed_checks=self.failed_checks + 1)
        else:
            seen = self.seen if answer == self.progress else (*self.seen, Seen(int(seconds), answer))
            if self.progress is not None and self.progress.waits_for_usage and answer.waits_for_usage:
                # The kubelet retries every few seconds, and names the present usage each time.
                seen = (*self.seen[:-1], Seen(self.seen[-1].seconds, answer))
            state = replace(state, error=None, failed_checks=0, seen=seen)
            if self.plan is not None:
                state = replace(state, trial=self.trial.observe(changed.pods, changed.usage, answer))
            if self.plan is not None and answer.stage is Stage.DONE:
                pause = TRIAL_PAUSE_SECONDS
            elif answer.settled:
                return state.leave()
        if self.plan is not None:
            if state.reverts or seconds >= self.plan.seconds:
                return state.leave()
            pause = min(pause, self.plan.seconds - seconds)
        return state, Check(self.result, pause)

    def keep_mine(self) -> Step:
        """Repeat the change after a conflict on the object as it is now, beginning with its dry run."""
        if self.phase is not Phase.READY or not self.has_conflict:
            return self, None
        return replace(self._without_answers(), phase=Phase.LOADING, keeps_mine=True), Load()

    def leave(self) -> Step:
        """Stop waiting, unless a request was sent and not answered yet."""
        if self.phase is Phase.SENDING:
            return self, None
        return replace(self, phase=Phase.SETTLED), None

    def _without_answers(self) -> Apply:
        return replace(self, phase=Phase.READY, accepted=None, confirms_next=False, error=None)


Step = tuple[Apply, Command | None]
