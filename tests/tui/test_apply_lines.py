"""A change as lines, for every pod and workload there is, and in every phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.edit.apply_state import Apply, ApplyResult, ConflictError, Phase, UnknownOutcome
from kubectl_qos.edit.edits import Edit, Side, apply_edits
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_from_raw, pod_reference
from kubectl_qos.edit.status import Progress, Stage, Trial, TrialCondition, TrialPlan
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.objects import Pod, PodStatus
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.changes import WAITS_FOR_USAGE
from kubectl_qos.tui import running_change
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.edit_target import EditTarget, related_sections
from kubectl_qos.tui.shell import WriteService
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from kubectl_qos.tui.widgets.text_view import TextLine
from tests.tui.sources import API, ScriptedSource, demo, died, pod_named
from tests.tui.writers import DONE, WAITING, accepted, around, deployment, memory, recorded

KEYS = Keys()
NONE: Any = None
VALUES = (None, "0", "64Mi", "900Gi")


def test_what_was_killed_meanwhile_is_said(facts: ViewModel) -> None:
    then = pod_named(demo(), API)
    later = build_view_model(died(demo()), Scope(), DEMO_TIME)
    assert not list(running_change.killed_lines(then, facts))
    (line,) = running_change.killed_lines(then, later)
    assert line.text == "! c was OOMKilled meanwhile"
    (line,) = running_change.killed_lines(then, later, DEMO_TIME)
    assert line.text == "! c was OOMKilled meanwhile", "at an unknown time"
    for ended, when in (("11:59:50", "15s before"), ("12:00:07", "2s after")):
        killed = died(demo(), finished_at=f"2026-05-15T{ended}Z")
        later = build_view_model(killed, Scope(), DEMO_TIME)
        (line,) = running_change.killed_lines(then, later, datetime(2026, 5, 15, 12, 0, 5, tzinfo=UTC))
        assert line.text == f"! c was OOMKilled {when} the change was sent"
    evicted = msgspec.structs.replace(then, status=PodStatus(phase="Failed", reason="Evicted"))
    later = build_view_model(replace(demo(), pods=(evicted,)), Scope(), DEMO_TIME)
    (line,) = running_change.killed_lines(then, later)
    assert line.text == "! the pod has ended meanwhile: Evicted"


def test_the_next_death_is_said_as_it_was_and_as_it_is_now(facts: ViewModel) -> None:
    then = pod_named(demo(), API)
    target = EditTarget(then, facts, DemoSource())
    (line,) = running_change.death_lines(target, facts)
    assert line.text == "  next death of it +118Mi own limit 94%, as before"
    lowered = apply_edits(then, [structs.replace(memory("1940Mi"), side=Side.LIMITS)])
    pods = tuple(lowered if one.metadata.uid == then.metadata.uid else one for one in demo().pods)
    (line,) = running_change.death_lines(
        target, build_view_model(replace(demo(), pods=pods), Scope(), DEMO_TIME)
    )
    assert line.text == "  next death of it +118Mi own limit 94% → +10Mi own limit 99%"
    gone = tuple(one for one in demo().pods if one.metadata.uid != then.metadata.uid)
    assert not list(
        running_change.death_lines(target, build_view_model(replace(demo(), pods=gone), Scope(), DEMO_TIME))
    )


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (None, ["  reverting"]),
        (DONE, ["  it is reverted: the previous values are restored"]),
        (Progress(Stage.DEFERRED, settled=False, message="no memory"), ["  reverting, deferred: no memory"]),
        (
            Progress(Stage.ERROR, settled=False, message="cannot decrease memory limits: x"),
            [
                "  reverting, waits for usage to fall: cannot decrease memory limits: x",
                f"! {WAITS_FOR_USAGE}",
            ],
        ),
    ],
)
def test_what_the_kubelet_says_of_a_trial_that_is_reverted(progress: Progress | None, end: list[str]) -> None:
    is_done = progress is DONE
    undone = SimpleNamespace(error=None, result=1, progress=progress, is_done=is_done)
    undoing: Any = SimpleNamespace(state=undone)
    state = SimpleNamespace(progress=None, seconds=9, trial=Trial(infeasible=""), reverts=True)
    change: Any = SimpleNamespace(undoing=undoing, state=state)
    lines = [line.text for line in running_change.trial_end_lines(change, KEYS)]
    assert lines[-len(end) :] == end


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (Progress(Stage.UNDONE, settled=True), ["  undone after 9s"]),
        (
            Progress(Stage.ERROR, settled=False, message="too low"),
            ["! last status after 9s: error: too low", "  U reverts it"],
        ),
    ],
)
def test_how_a_trial_ends_that_nothing_reverts(progress: Progress, end: list[str]) -> None:
    state = SimpleNamespace(progress=progress, seconds=9, trial=Trial(), reverts=False, is_done=False)
    change: Any = SimpleNamespace(undoing=None, state=state)
    assert [line.text for line in running_change.trial_end_lines(change, KEYS)] == end


@pytest.mark.parametrize(
    ("is_done", "words"), [(True, "9s so far: no"), (False, "9s so far, not done yet: no")]
)
def test_a_trial_whose_change_is_not_carried_out_yet_says_so(is_done: bool, words: str) -> None:
    state = SimpleNamespace(result=1, phase=Phase.FOLLOWING, is_done=is_done, plan=TrialPlan(), trial=Trial())
    change: Any = SimpleNamespace(state=state, elapsed=9.0)
    (line,) = running_change.trial_lines(change, KEYS)
    assert words in line.text


@pytest.mark.parametrize(("limit", "warns"), [("700Mi", True), ("2Gi", False)])
def test_what_a_trial_promises_and_what_not(facts: ViewModel, limit: str, warns: bool) -> None:
    pod = pod_named(facts.snapshot, API)
    state, _ = begin(facts, pod, [structs.replace(memory(limit), side=Side.LIMITS)], around(pod))
    first, *more = running_change.promise_lines(replace(state, plan=TrialPlan()))
    assert first.text == "  on trial for 10m, and reverted at: restarts, oom, infeasible"
    why = "! cannot revert while a container waits after an OOM kill: before 1.36.4 kubelets raise"
    assert [line.text.startswith(why) for line in more] == [True] * warns
    state = replace(state, plan=TrialPlan(undo_if=(TrialCondition.RESTARTS,)))
    assert len(running_change.promise_lines(state)) == 1, "an OOM kill reverts nothing"


@pytest.fixture(scope="module")
def facts() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


def first_container(pod: Pod) -> str:
    return (*pod.containers, *pod.init_containers)[0].name


def begin(facts: ViewModel, pod: Pod, edits: list[Edit], related: RelatedObjects) -> tuple[Apply, EditTarget]:
    target = EditTarget(pod, facts, DemoSource())
    return target.change(tuple(edits), target.preview(edits)).begin(related)[0], target


def all_lines(state: Apply, target: EditTarget) -> list[TextLine]:
    running_change.state_findings(state)
    return [
        *running_change.change_lines(state),
        *running_change.answer_lines(state, target, KEYS),
        *running_change.request_lines(state, KEYS),
    ]


def test_lines_of_every_pod(facts: ViewModel) -> None:
    quantities = [None if text is None else Quantity.parse(text) for text in VALUES]
    related_of = {pod.metadata.uid: around(pod) for pod in facts.snapshot.pods}
    for pod, side, quantity in product(facts.snapshot.pods[::2], Side, quantities):
        edit = Edit(first_container(pod), side, "memory", quantity)
        related = related_of[pod.metadata.uid]
        state, target = begin(facts, pod, [edit], related)
        assert all(part.title for part in related_sections(state.preview, target, related))
        assert state.error is None
        for index in range(len(state.strategies)):
            state = state.choose(index)[0]
            assert all(line.text.isprintable() for line in all_lines(state, target))
            assert (running_change.blocked_sentence(state, KEYS) == "") == (state.blocked is None)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_lines_of_every_kind_of_workload(facts: ViewModel, kind: str) -> None:
    raw: dict[str, Any] = {**deployment("shop", "api"), "kind": kind}
    if kind == "CronJob":
        raw["spec"] = {"jobTemplate": {"spec": raw["spec"]}}
    state, target = begin(facts, pod_from_workload(kind, raw), [memory("1Gi")], RelatedObjects(raw=raw))
    assert state.strategy is not None
    assert state.strategy.kind is (StrategyKind.NEVER if kind == "Job" else StrategyKind.TEMPLATE)
    assert (state.request is None) == (kind == "Job")
    assert all_lines(state, target)


def test_a_template_has_the_priority_of_its_pods(facts: ViewModel) -> None:
    raw = deployment("shop", "api")
    raw["spec"]["template"]["spec"]["priorityClassName"] = "shop-critical"
    target = EditTarget(pod_from_workload("Deployment", raw), facts, DemoSource())
    assert target.preview([]).before.pod.spec.priority == target.pods[0].pod.spec.priority is not None


def test_a_workload_outlives_a_pod_on_a_node_of_its_pods(facts: ViewModel) -> None:
    """The value is that of `kubectl qos set deploy/api --outlive ml/notebook-0`."""
    target = EditTarget(pod_from_workload("Deployment", deployment("shop", "api")), facts, DemoSource())
    others = {row.pod.name: row.pod for row in target.others()}
    assert API not in others
    [edit] = target.outliving((), others["notebook-0"]).edits
    assert str(edit.quantity) == "852Mi"
    assert target.ranking((), 3).edits


def test_an_object_that_cannot_be_read_is_an_error(facts: ViewModel) -> None:
    with pytest.raises(QosError, match="the server's pod cannot be read"):
        pod_from_raw("Pod", {"spec": 1})
    assert EditTarget(pod_reference("Pod", "shop", "x"), facts, DemoSource()).others() == []


CONFLICT = ValueConflict("c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi")))
ERRORS: tuple[tuple[QosError, str], ...] = (
    (ApiError("modified", status=409, hint="try again"), "! not applied: modified (409) try again"),
    (ServerUnreachable("no answer", hint="look at the proxy"), "! not applied: no answer look at the proxy"),
    (ApiError("[bold]no\x1b[31m", status=403), "! not applied: [bold]no\\x1b[31m (403)"),
    (
        ConflictError("someone else", (CONFLICT,)),
        "! not applied: someone else before ours theirs c requests.memory 512Mi 1Gi 2Gi l discard mine",
    ),
    (
        UnknownOutcome("not known whether it was", NONE),
        "! outcome unknown: not known whether it was check the object first",
    ),
)


def api(facts: ViewModel) -> tuple[Apply, EditTarget]:
    pod = pod_named(facts.snapshot, API)
    return begin(facts, pod, [memory("1Gi")], around(pod))


def sent(state: Apply) -> Apply:
    assert state.request is not None
    state = state.apply()[0].dry_run_answered(state.request, accepted(state.request))[0]
    return state.confirm(yes=True)[0]


def followed(state: Apply, *answers: Progress | QosError) -> Apply:
    assert state.request is not None
    state = sent(state).sent(ApplyResult(recorded(state.request, "1"), {}, state.request), 1)[0]
    for seconds, answer in enumerate(answers, start=2):
        state = state.checked(answer, seconds)[0]
    return state


def progress(state: Apply) -> str:
    assert state.request is not None
    return text_of(running_change.progress_lines(state, state.request, "scripted", 9, KEYS))


def text_of(lines: Iterable[TextLine]) -> str:
    return " ".join(" ".join(line.text for line in lines).split())


@pytest.mark.parametrize(("error", "words"), ERRORS)
def test_a_refusal_is_a_sentence_where_it_was_tried_and_where_it_was_watched(
    facts: ViewModel, error: QosError, words: str
) -> None:
    state, target = api(facts)
    assert state.request is not None
    refused = state.dry_run()[0].dry_run_answered(state.request, error)[0]
    assert text_of(running_change.answer_lines(refused, target, KEYS)).startswith(words)
    refused = sent(state).sent(error)[0]
    assert text_of(running_change.answer_lines(refused, target, KEYS)).startswith(words)
    assert words.partition(" l discard")[0] in progress(refused)


def test_every_phase_of_sending(facts: ViewModel) -> None:
    state, target = api(facts)
    assert text_of(running_change.answer_lines(state.dry_run()[0], target, KEYS)).endswith(
        "waiting for demo …"
    )
    assert progress(sent(state)).endswith("sent to scripted, no answer yet, 9s")
    assert "> 1s accepted by the server watching it until it has settled, 9s so far" in progress(
        followed(state)
    )
    failed = progress(followed(state, WAITING, ServerUnreachable("no route")))
    assert "1s accepted by the server > 2s waiting for the kubelet ! cannot check it now: no route" in failed
    assert "no route" not in progress(followed(state, ServerUnreachable("no route"), WAITING))
    assert progress(followed(state, WAITING, DONE)).endswith(
        "> 3s done: c keeps its oom_score_adj until a restart U reverts it"
    )
    undone = progress(followed(replace(state, undoes="0001"), DONE))
    assert undone.endswith("until a restart the previous values are restored")


@pytest.mark.parametrize("stage", [Stage.INFEASIBLE, Stage.STUCK, Stage.OVERTAKEN, Stage.GONE])
def test_a_bad_end_is_an_end(facts: ViewModel, stage: Stage) -> None:
    ended = progress(followed(api(facts)[0], Progress(stage, settled=True, message="no room")))
    assert f"> 2s {stage.value}: no room ! nothing more will happen by itself" in ended


@pytest.mark.parametrize(
    ("settings", "readonly", "sentence"),
    [
        (UserSettings(), True, "nothing is written: --readonly says read-only"),
        (UserSettings(readonly=True), False, "nothing is written: your settings for scripted says read-only"),
        (
            UserSettings(contexts={"scripted": ContextSettings(readonly=True)}),
            False,
            "nothing is written: your settings for scripted says read-only",
        ),
        (UserSettings(readonly=True, contexts={"scripted": ContextSettings(readonly=False)}), False, ""),
    ],
)
def test_who_may_write(facts: ViewModel, settings: UserSettings, readonly: bool, sentence: str) -> None:
    app: Any = None
    service = WriteService(app, settings, KEYS, HistoryFile(None), readonly=readonly)
    pod = pod_named(facts.snapshot, API)
    target = EditTarget(pod, facts, ScriptedSource(demo()))
    state = service.begin(target, [memory("1Gi")], around(pod)).state
    assert str(state.read_only or "") == sentence
    assert (state.blocked is None) == (not sentence)
    assert sentence in running_change.blocked_sentence(state, KEYS)


class Screens:
    """An app without screens: what it shows in passing."""

    def __init__(self) -> None:
        self.screen_stack: list[Any] = []
        self.shown: list[tuple[str, str]] = []

    def notify(self, text: str, *, severity: str, **_: object) -> None:
        self.shown.append((text, severity))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "was changed"),
        (ApiError("modified", status=409), "was not changed: modified"),
        (UnknownOutcome("not known whether it was", NONE), "not known whether it was"),
    ],
)
def test_the_answer_to_a_change_that_was_left(facts: ViewModel, error: QosError | None, text: str) -> None:
    app: Any = Screens()
    service = WriteService(app, UserSettings(), KEYS, HistoryFile(None), readonly=False)
    service.run = lambda *_: None  # type: ignore[method-assign]
    pod = pod_named(facts.snapshot, API)
    change = service.begin(EditTarget(pod, facts, ScriptedSource(demo())), [memory("1Gi")], around(pod))
    request = change.state.request
    assert request is not None
    change.advance(change.state.apply())
    change.advance(change.state.dry_run_answered(request, accepted(request)))
    assert not service.leave_question
    change.advance(change.state.confirm(yes=True))
    assert "not answered yet" in service.leave_question
    change.leave()
    assert not app.shown
    change.advance(change.state.sent(error or ApplyResult(recorded(request, "1"), {}, request)))
    (shown,) = app.shown
    assert shown[0].startswith(f"pod shop/{API} in place")
    assert shown[0].endswith(text)
    assert shown[1] == ("information" if error is None else "warning")
    assert not service.leave_question
