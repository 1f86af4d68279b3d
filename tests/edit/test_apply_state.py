"""The state machine of a change: each step alone, and every walk that steps can make."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from kubectl_qos.edit.apply_state import (
    LONGEST_PAUSE_SECONDS,
    Apply,
    ApplyResult,
    Blocked,
    Check,
    Command,
    Confirm,
    ConflictError,
    DryRun,
    DryRunResult,
    Load,
    Phase,
    Seen,
    Send,
    Step,
    UnknownOutcome,
)
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import Owner, RelatedObjects
from kubectl_qos.edit.status import Progress, Stage, Trial, TrialCondition, TrialPlan
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from tests.cluster.changing_server import workload

SETUP = NodeSetup(Node(name="n1", memory_capacity_bytes=16 << 30), Kubelet(), Release.of("1.36"))
EDIT = Edit("app", Side.REQUESTS, "memory", Quantity.parse("96Mi"))
CONFLICT = ConflictError(
    "changed by someone else", (ValueConflict(*EDIT.target, *map(Quantity.parse, ("64Mi", "96Mi", "70Mi"))),)
)
REFUSED = ApiError("exceeded quota", status=403)
READ_ONLY = QosError("read-only")
WAITING = Progress(Stage.WAITING, settled=False)
ROLLING = Progress(Stage.ROLLING, settled=False, done=1, total=3)
DONE = Progress(Stage.DONE, settled=True)
STUCK = Progress(Stage.STUCK, settled=True)
NO_ENTRY: Any = None


def resources(memory: str) -> dict[str, Any]:
    return {"requests": {"memory": memory}, "limits": {"memory": "128Mi"}}


@cache
def observe(memory: str = "64Mi", version: str = "9") -> tuple[RelatedObjects, Pod, Preview]:
    """A pod with this memory request, of a Deployment: both can be changed."""
    raw = {
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-p", "resourceVersion": version},
        "spec": {"nodeName": "n1", "containers": [{"name": "app", "resources": resources(memory)}]},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }
    deployment = workload("Deployment", "web", resources("64Mi"))
    owner = Owner(deployment, pod_from_workload("Deployment", deployment))
    pod = convert(raw, Pod)
    return RelatedObjects(raw=raw, owners=(owner,)), pod, preview(pod, [EDIT], SETUP)


def begin(**options: Any) -> Apply:
    related, pod, effects = observe()
    state, command = Apply(pod, (EDIT,), effects, **options).begin(related)
    assert command is None
    return state


def accepted(state: Apply) -> DryRunResult:
    assert state.request is not None
    return DryRunResult(structs.replace(state.request, resource_version="10"), (EDIT,), {}, ())


def result_of(dry_run: DryRunResult) -> ApplyResult:
    return ApplyResult(NO_ENTRY, {}, dry_run.request)


def tried(state: Apply) -> Apply:
    """After a dry run that the server has accepted."""
    state, command = state.dry_run()
    assert isinstance(command, DryRun)
    state, command = state.dry_run_answered(command.request, accepted(state))
    assert command is None
    return state


def sending(**options: Any) -> tuple[Apply, Send]:
    state, command = tried(begin(**options)).apply()
    assert isinstance(command, Confirm)
    state, command = state.confirm(yes=True)
    assert isinstance(command, Send)
    return state, command


def following() -> Apply:
    state, command = sending()
    return state.sent(result_of(command.dry_run), 1)[0]


# -- the related objects --------------------------------------------------------------------------


def test_the_related_objects_are_read_first() -> None:
    related, pod, effects = observe()
    state, command = Apply(pod, (EDIT,), effects).begin()
    assert (state.phase, command, state.blocked) == (Phase.LOADING, Load(), Blocked.LOADING)
    assert (state.strategy, state.request, state.is_loaded) == (None, None, False)
    state, command = state.loaded(related, pod, effects)
    assert (state.phase, command, state.blocked) == (Phase.READY, None, None)
    assert [one.kind for one in state.strategies] == [StrategyKind.IN_PLACE, StrategyKind.TEMPLATE]
    assert state.loaded(REFUSED, pod, effects) == (state, None), "an answer that nobody waits for"


@pytest.mark.parametrize("answer", [REFUSED, RelatedObjects(raw={})], ids=["error", "no such container"])
def test_what_cannot_be_read_blocks(answer: RelatedObjects | QosError) -> None:
    _, pod, effects = observe()
    state, _ = Apply(pod, (structs.replace(EDIT, owner="gone"),), effects).begin()
    state, command = state.loaded(answer, pod, effects)
    assert (state.phase, state.blocked, command) == (Phase.READY, Blocked.UNREADABLE, None)
    assert state.error is not None
    assert state.apply()[1] is state.dry_run()[1] is None
    assert state.choose(1) == (state, None)


# -- strategies and why nothing can be sent -------------------------------------------------------


def test_strategies_are_chosen_in_a_circle() -> None:
    state = begin()
    other = state.choose(1)[0]
    assert other.strategy is state.strategies[1]
    assert other.request is not None
    assert other.request.kind == "Deployment"
    assert other.choose(2)[0].chosen == other.choose(-2)[0].chosen == 0
    assert state.choose(2) == (state, None), "the same one"


def test_another_strategy_drops_what_the_server_said() -> None:
    for state in (tried(begin()), begin().dry_run()[0].dry_run_answered(begin().request, REFUSED)[0]):  # type: ignore[arg-type]
        other = state.choose(1)[0]
        assert (other.accepted, other.error, other.phase) == (None, None, Phase.READY)
        back = other.choose(0)[0]
        assert back.accepted is None
        assert isinstance(back.apply()[1], DryRun), "it has to be tried again"


def test_what_is_read_only_or_has_no_request_is_never_sent() -> None:
    closed = begin(read_only=READ_ONLY)
    assert closed.blocked is Blocked.READ_ONLY
    related, pod, _ = observe()
    nothing = Apply(pod, (), preview(pod, [], SETUP)).begin(related)[0]
    assert nothing.blocked is Blocked.NO_REQUEST
    for state in (closed, nothing):
        assert state.dry_run() == state.apply() == state.confirm(yes=True) == (state, None)


# -- the dry run ----------------------------------------------------------------------------------


def test_a_dry_run_is_made_once() -> None:
    state, command = begin().dry_run()
    assert command == DryRun(state.request)  # type: ignore[arg-type]
    assert state.phase is Phase.DRY_RUN
    assert state.dry_run() == (state, None)


def test_apply_makes_the_dry_run_first_and_then_confirms() -> None:
    state, command = begin().apply()
    assert isinstance(command, DryRun)
    result = accepted(state)
    state, command = state.dry_run_answered(command.request, result)
    assert (state.phase, command) == (Phase.CONFIRM, Confirm(result))


def test_apply_during_a_dry_run_confirms_after_it() -> None:
    state, command = begin().dry_run()
    assert isinstance(command, DryRun)
    state, nothing = state.apply()
    assert nothing is None
    assert isinstance(state.dry_run_answered(command.request, accepted(state))[1], Confirm)


def test_a_refused_dry_run_confirms_nothing_and_can_be_repeated() -> None:
    state, command = begin().apply()
    assert isinstance(command, DryRun)
    state, nothing = state.dry_run_answered(command.request, REFUSED)
    assert (state.phase, state.error, nothing) == (Phase.READY, REFUSED, None)
    again, command = state.dry_run()
    assert isinstance(command, DryRun)
    assert (again.error, again.confirms_next) == (None, False), "the question was about the first one"


def test_the_answer_to_another_request_changes_nothing() -> None:
    state, command = begin().apply()
    assert isinstance(command, DryRun)
    result = accepted(state)
    chosen = state.choose(1)[0]
    assert chosen.dry_run_answered(command.request, result) == (chosen, None)
    trying = chosen.dry_run()[0]
    assert trying.dry_run_answered(command.request, result) == (trying, None)


# -- the confirmation -----------------------------------------------------------------------------


def test_only_a_yes_sends_and_only_once() -> None:
    confirming = tried(begin(undoes="0001")).apply()[0]
    assert confirming.confirm(yes=False) == (replace(confirming, phase=Phase.READY), None)
    sent, command = confirming.confirm(yes=True)
    assert confirming.accepted is not None
    assert (sent.phase, command) == (Phase.SENDING, Send(confirming.accepted, "0001"))
    assert sent.confirm(yes=True) == sent.dry_run() == sent.choose(1) == sent.keep_mine() == (sent, None)
    assert sent.apply() == (sent, None)


def test_without_a_question_a_yes_sends_nothing() -> None:
    for state in (begin(), tried(begin()), begin().dry_run()[0]):
        assert state.confirm(yes=True) == (state, None)


# -- after it was sent ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [REFUSED, CONFLICT, UnknownOutcome("unknown", NO_ENTRY)], ids=repr)
def test_a_refused_change_needs_another_dry_run(error: QosError) -> None:
    state, command = sending()[0].sent(error)
    assert (state.phase, state.error, command, state.accepted) == (Phase.READY, error, None, None)
    assert not isinstance(state.apply()[1], Confirm)
    assert state.sent(REFUSED) == (state, None)


def test_it_is_checked_until_it_has_settled() -> None:
    state, send = sending()
    state, command = state.sent(result_of(send.dry_run), 1)
    assert (state.phase, command) == (Phase.FOLLOWING, Check(result_of(send.dry_run), 0.0))
    for seconds, answer in ((2, WAITING), (3, WAITING), (4, ROLLING)):
        state, command = state.checked(answer, seconds)
        assert isinstance(command, Check)
    state, command = state.checked(DONE, 9)
    assert (state.phase, command, state.progress) == (Phase.SETTLED, None, DONE)
    assert state.seen == (Seen(1, None), Seen(2, WAITING), Seen(4, ROLLING), Seen(9, DONE))
    assert state.checked(WAITING) == state.sent(REFUSED) == state.apply() == (state, None)


def test_a_limit_that_waits_for_usage_is_one_line_however_often_the_kubelet_tries() -> None:
    state = following()
    for seconds, usage in ((4, 127395840), (8, 127754240), (14, 128112640)):
        why = f"cannot decrease memory limits: [below current usage ({usage})]"
        newest = Progress(Stage.ERROR, settled=False, message=why)
        state, _ = state.checked(newest, seconds)
    assert state.seen == (Seen(1, None), Seen(4, newest))


def killed(restarts: int) -> Snapshot:
    """The running pod after this many restarts."""
    status = {"containerStatuses": [{"name": "app", "restartCount": restarts, "state": {"running": {}}}]}
    return Snapshot(pods=(convert({**observe()[0].raw, "status": status}, Pod),))


def on_trial(*conditions: TrialCondition) -> Apply:
    """A change that is looked after for a minute."""
    state, send = sending(plan=TrialPlan(60.0, conditions))
    trial = Trial.begin(killed(0).pods, in_place=True)
    return state.sent(replace(result_of(send.dry_run), trial=trial), 0)[0]


def test_on_trial_it_is_checked_on_after_it_is_done_and_once_more_at_the_end() -> None:
    state, command = on_trial(TrialCondition.OOM).checked(DONE, 20.5, killed(0))
    assert isinstance(command, Check)
    assert (state.phase, command.pause_seconds) == (Phase.FOLLOWING, 5.0)
    state, command = state.checked(DONE, 58.0, killed(1))
    assert isinstance(command, Check)
    assert (state.reverts, command.pause_seconds) == (False, 2.0), "a restart reverts nothing here"
    state, command = state.checked(ServerUnreachable("no route"), 60.0)
    assert (state.phase, command, state.seconds) == (Phase.SETTLED, None, 60.0)


def test_on_trial_what_its_plan_names_ends_it_at_once() -> None:
    state, command = on_trial(TrialCondition.RESTARTS).checked(DONE, 20.0, killed(0))
    assert not state.reverts
    state, command = state.checked(DONE, 25.0, killed(1))
    assert (state.phase, command, state.reverts) == (Phase.SETTLED, None, True)
    undone = replace(state, seen=(Seen(26, Progress(Stage.UNDONE, settled=True)),))
    assert not undone.reverts, "somebody has reverted it already"


def test_whatever_settles_ends() -> None:
    assert following().checked(STUCK)[0].phase is Phase.SETTLED


def test_a_failed_check_is_repeated_and_forgotten_after_a_better_one() -> None:
    state = following()
    for number in (1, 2):
        state, command = state.checked(ServerUnreachable("no route"))
        assert isinstance(command, Check)
        assert (state.failed_checks, str(state.error), state.phase) == (number, "no route", Phase.FOLLOWING)
    state = state.checked(WAITING)[0]
    assert (state.failed_checks, state.error, state.progress) == (0, None, WAITING)


def test_pauses_grow_to_a_limit() -> None:
    state = following()
    pauses = []
    for _ in range(3000):
        state, command = state.checked(WAITING)
        assert isinstance(command, Check)
        pauses.append(command.pause_seconds)
    assert pauses[:2] == [0.3, pytest.approx(0.45)]
    assert pauses == sorted(pauses)
    assert max(pauses) == pauses[6] == LONGEST_PAUSE_SECONDS


# -- a conflict -----------------------------------------------------------------------------------


def conflicting(index: int = 0, **options: Any) -> Apply:
    state, command = begin(**options).choose(index)[0].apply()
    assert isinstance(command, DryRun)
    return state.dry_run_answered(command.request, CONFLICT)[0]


def test_a_conflict_blocks_until_a_person_decides() -> None:
    state = conflicting()
    assert state.blocked is Blocked.CONFLICT
    assert state.apply() == state.dry_run() == (state, None)
    assert begin().keep_mine() == (begin(), None), "there is nothing to decide"


@pytest.mark.parametrize("index", [0, 1])
def test_keeping_mine_tries_the_same_change_on_the_object_as_it_is_now(index: int) -> None:
    state = conflicting(index, conflicts=CONFLICT.conflicts)
    assert state.conflicts == CONFLICT.conflicts
    state, command = state.keep_mine()
    assert (state.phase, command, state.blocked) == (Phase.LOADING, Load(), Blocked.LOADING)
    related, pod, effects = observe("80Mi", "11")
    state, command = state.loaded(related, pod, effects)
    assert state.chosen == index, "by the same strategy"
    assert isinstance(command, DryRun)
    if index == 0:
        assert command.request.resource_version == "11"
        assert str(command.request.before[0].quantity) == "80Mi"
    assert (state.pod, state.preview, state.conflicts, state.error) == (pod, effects, (), None)
    assert not state.confirms_next


def test_keeping_mine_where_the_object_has_the_values_already_sends_nothing() -> None:
    related, pod, effects = observe("96Mi")
    state, command = conflicting().keep_mine()[0].loaded(related, pod, effects)
    assert command is None
    assert state.request is not None or state.blocked is Blocked.NO_REQUEST
    state = state.choose(next(i for i, one in enumerate(state.strategies) if "nothing" in one.reason))[0]
    assert state.blocked is Blocked.NO_REQUEST


def test_keeping_mine_of_what_cannot_be_read_now_ends_there() -> None:
    state = conflicting().keep_mine()[0]
    state, command = state.loaded(REFUSED, state.pod, state.preview)
    assert (state.blocked, command, state.keeps_mine) == (Blocked.UNREADABLE, None, False)


# -- leaving --------------------------------------------------------------------------------------


def test_nothing_goes_on_after_leaving() -> None:
    for state in (begin(), tried(begin()), begin().apply()[0], tried(begin()).apply()[0], following()):
        left = state.leave()[0]
        assert left.phase is Phase.SETTLED
        assert left.dry_run() == left.apply() == left.confirm(yes=True) == left.checked(DONE) == (left, None)


@pytest.mark.parametrize("error", [None, REFUSED], ids=["done", "refused"])
def test_the_answer_to_a_sent_request_is_taken_after_leaving(error: QosError | None) -> None:
    state, command = sending()
    assert state.leave() == (state, None)
    state, check = state.sent(error or result_of(command.dry_run))
    assert (state.error, state.phase) == (error, Phase.READY if error is not None else Phase.FOLLOWING)
    assert (state.result is None) == (check is None) == (error is not None)


# -- every walk -----------------------------------------------------------------------------------


ERRORS = st.sampled_from([REFUSED, CONFLICT, UnknownOutcome("unknown", NO_ENTRY)])


class Walks(RuleBasedStateMachine):
    """A shell that presses any key at any time, and a server that answers anything, late or twice.

    `commands` keeps every command: an answer to any of them may still come.
    """

    def __init__(self) -> None:
        super().__init__()
        _, pod, effects = observe()
        self.state, load = Apply(pod, (EDIT,), effects).begin()
        self.commands: list[Command | None] = [load]
        self.sent: list[DryRunResult] = []
        self.accepted: list[DryRunResult] = []

    def go(self, step: Step, *, answered_yes: bool = False) -> None:
        before, (self.state, command) = self.state, step
        if command is not None:
            self.commands.append(command)
        if isinstance(command, Send):
            assert answered_yes
            assert before.phase is Phase.CONFIRM
            assert command.dry_run is before.accepted
            assert any(command.dry_run is one for one in self.accepted)
            assert not any(command.dry_run is one for one in self.sent), "sent twice"
            assert before.request is not None
            assert structs.replace(command.dry_run.request, resource_version="") == structs.replace(
                before.request, resource_version=""
            )
            self.sent.append(command.dry_run)

    @rule(index=st.integers(-3, 3))
    def choose(self, index: int) -> None:
        self.go(self.state.choose(index))

    @rule()
    def dry_run(self) -> None:
        self.go(self.state.dry_run())

    @rule()
    def apply(self) -> None:
        self.go(self.state.apply())

    @rule(yes=st.booleans())
    def confirm(self, yes: bool) -> None:
        self.go(self.state.confirm(yes=yes), answered_yes=yes)

    @rule()
    def keep_mine(self) -> None:
        self.go(self.state.keep_mine())

    @precondition(lambda self: self.state.phase in {Phase.SENDING, Phase.FOLLOWING, Phase.SETTLED})
    @rule()
    def leave(self) -> None:
        self.go(self.state.leave())

    @rule(memory=st.sampled_from(["64Mi", "80Mi", "96Mi"]), error=st.none() | ERRORS)
    def load_answered(self, memory: str, error: QosError | None) -> None:
        related, pod, effects = observe(memory, memory)
        self.go(self.state.loaded(error or related, pod, effects))

    @rule(data=st.data(), error=st.none() | ERRORS)
    def dry_run_answered(self, data: st.DataObject, error: QosError | None) -> None:
        requests = [one.request for one in self.commands if isinstance(one, DryRun)]
        if not requests:
            return
        request = data.draw(st.sampled_from(requests))
        before, answer = (
            self.state,
            DryRunResult(structs.replace(request, resource_version="x"), (EDIT,), {}, ()),
        )
        self.go(self.state.dry_run_answered(request, error or answer))
        if self.state is not before and error is None:
            assert request == before.request, "an answer to a stale request"
            self.accepted.append(answer)

    @rule(error=st.none() | ERRORS)
    def send_answered(self, error: QosError | None) -> None:
        sends = [one for one in self.commands if isinstance(one, Send)]
        if sends:
            self.go(self.state.sent(error or result_of(sends[-1].dry_run)))

    @rule(answer=st.sampled_from([WAITING, ROLLING, DONE, STUCK]) | ERRORS)
    def check_answered(self, answer: Progress | QosError) -> None:
        self.go(self.state.checked(answer))

    @invariant()
    def phases_hold_what_they_need(self) -> None:
        state = self.state
        if state.phase in {Phase.CONFIRM, Phase.SENDING}:
            assert state.accepted is not None
            assert state.blocked is None
        if state.phase is Phase.FOLLOWING:
            assert state.result is not None
        if state.phase is Phase.DRY_RUN:
            assert state.accepted is None
            assert state.request is not None
        if state.accepted is not None and state.phase is Phase.READY:
            assert state.blocked is None, "what was accepted can be sent"
        assert state.confirms_next <= (state.phase is Phase.DRY_RUN)
        assert (state.phase is Phase.LOADING) <= (state.blocked is Blocked.LOADING)
        if state.result is not None:
            assert state.phase in {Phase.FOLLOWING, Phase.SETTLED}, "a change that was made is not made again"


TestWalks = Walks.TestCase
TestWalks.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=40)
