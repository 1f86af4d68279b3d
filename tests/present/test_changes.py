"""The words of applying a change, the same in both shells."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.edit.edits import POD_LEVEL, Edit, PatchRequest, Side, parse_quantity
from kubectl_qos.edit.history import Entry, EntryState, ValueConflict
from kubectl_qos.edit.preview import StrategyKind, preview
from kubectl_qos.edit.server_response import ServerRefusal
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.k8s.kubelet import Node
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.present.changes import (
    change_lines,
    confirm_lines,
    conflict_lines,
    dry_run_lines,
    entry_change,
    entry_object,
    entry_state,
    entry_when,
    expected_response_line,
    progress_line,
    request_lines,
    revert_line,
    strategy_lines,
)
from tests.edit.test_preview import SETUP, pod
from tests.entries import entry

WAITS = "reverting, waits for usage to fall: cannot decrease memory limits"
NASTY = "x\x1b[31m"
SHOWN = "x\\x1b[31m"


def edit(text: str, owner: str = "app") -> Edit:
    return Edit(owner, Side.REQUESTS, "memory", parse_quantity(text))


def request(**other: Any) -> PatchRequest:
    patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]}}
    found = PatchRequest("Pod", "shop", "web", "u", "7", "resize", (edit("1Gi"),), (edit(""),), patch)
    return structs.replace(found, **other)


def test_every_way_says_what_it_does_or_why_it_is_none() -> None:
    through = structs.replace(request(), kind="Deployment", subresource="")
    strategies = [
        Strategy(StrategyKind.IN_PLACE, request(), restarts=("app", NASTY)),
        Strategy(StrategyKind.TEMPLATE, through, pods=3, note="slowly"),
        Strategy(StrategyKind.RECREATE, None),
        Strategy(StrategyKind.NEVER, None, f"no {NASTY}"),
    ]
    assert strategy_lines(strategies) == [
        f"in place                containers app, {SHOWN} restart",
        "through deployment/web  3 pods are replaced; slowly",
        "as a manifest           save the manifest, then delete and recreate the pod; nothing is sent",
        f"impossible              no {SHOWN}",
    ]
    assert strategy_lines([]) == []


@pytest.mark.parametrize(
    ("strategy", "effect"),
    [
        (Strategy(StrategyKind.IN_PLACE, request()), "no container restarts"),
        (Strategy(StrategyKind.IN_PLACE, request(), restarts=("app",)), "container app restarts"),
        (Strategy(StrategyKind.TEMPLATE, request(), pods=None), "its pods are replaced"),
        (
            Strategy(StrategyKind.TEMPLATE, request(), pods=0, note="it is paused"),
            "no pods are replaced; it is paused",
        ),
        (Strategy(StrategyKind.TEMPLATE, request(), pods=1), "1 pod is replaced"),
    ],
)
def test_other_effects(strategy: Strategy, effect: str) -> None:
    assert strategy_lines([strategy])[0].endswith(effect)


def test_the_request_is_shown_as_it_is_sent() -> None:
    assert request_lines(request()) == [
        "PATCH /api/v1/namespaces/shop/pods/web/resize?fieldManager=kubectl-qos&fieldValidation=Strict",
        "Content-Type: application/strategic-merge-patch+json",
        "",
        "metadata:",
        "  uid: u",
        "  resourceVersion: '7'",
        "spec:",
        "  containers:",
        "  - name: app",
        "    resources:",
        "      requests:",
        "        memory: 1Gi",
    ]


def test_changes_name_what_was_there() -> None:
    removed = structs.replace(edit("1Gi", POD_LEVEL), quantity=None)
    lines = change_lines([edit("512Mi"), edit("1Gi", POD_LEVEL)], [edit("1Gi"), removed])
    assert lines == ["app requests.memory 512Mi → 1Gi", "spec.resources requests.memory 1Gi → <none>"]


def test_what_a_server_would_store_otherwise_is_said_and_an_equal_amount_is_not() -> None:
    accepted = "dry run: the server accepts it"
    assert dry_run_lines(request(), [edit("1024Mi")], []) == [accepted]
    assert dry_run_lines(request(), [structs.replace(edit("1Gi"), quantity=None)], [NASTY]) == [
        accepted,
        "! app requests.memory would be stored as <none>, not 1Gi",
        f"! the server warns: {SHOWN}",
    ]


def test_progress_counts_and_quotes() -> None:
    assert progress_line(Progress(Stage.DONE, settled=True)) == "done"
    rolling = Progress(Stage.ROLLING, settled=False, message=NASTY, done=0, total=1)
    assert progress_line(rolling) == f"rolling out: 0 of 1 pod: {SHOWN}"


def test_a_conflict_has_three_values() -> None:
    gib = Quantity.parse("1Gi")
    found = ValueConflict("app", Side.LIMITS, "cpu", None, gib, Quantity.parse("2"))
    assert conflict_lines([found]) == [
        "                before  ours  theirs",
        "app limits.cpu  <none>  1Gi   2",
    ]
    assert conflict_lines([]) == []


def test_a_forecast_quotes_the_server() -> None:
    line = expected_response_line(ServerRefusal(403, "Forbidden", NASTY))
    assert line == f"expected: the server refuses it: {SHOWN} (403 Forbidden)"


def test_an_entry_in_words() -> None:
    assert entry_object(entry(name=NASTY)) == f"shop/deployment/{SHOWN}"
    assert entry_object(entry(name=NASTY, namespace="")) == f"deployment/{SHOWN}"
    assert entry_change(entry()) == "app requests.memory 512Mi → 1Gi"


@pytest.mark.parametrize(
    ("found", "undo", "words"),
    [
        (entry(), None, "done"),
        (entry(), entry(undoes="1"), "undone"),
        (entry(), entry(undoes="1", state=EntryState.ACCEPTED), "reverting"),
        (entry(), entry(undoes="1", state=EntryState.ACCEPTED, message=WAITS), WAITS),
        (entry(state=EntryState.FAILED, message="1m"), entry(undoes="1"), "did not hold, reverted: 1m"),
        (
            entry(state=EntryState.FAILED),
            entry(undoes="1", state=EntryState.ACCEPTED, message=WAITS),
            f"did not hold, {WAITS}",
        ),
        (entry(undoes="0"), None, "done (an undo)"),
        (entry(state=EntryState.SENT), None, "unknown: sent, no answer recorded"),
        (entry(state=EntryState.REFUSED, message=NASTY), None, f"refused: {SHOWN}"),
        (entry(state=EntryState.UNKNOWN), None, "unknown"),
    ],
)
def test_how_an_entry_ended(found: Entry, undo: Entry | None, words: str) -> None:
    """A change is undone once what reverts it was seen to be carried out, and not before."""
    assert entry_state(found, undo) == words


def test_a_limit_that_the_kubelet_cannot_lower_waits_for_usage_to_fall() -> None:
    message = (
        "cannot decrease memory limits: [attempting to set pod memory limit (9) below current usage (8)]"
    )
    progress = Progress(Stage.ERROR, settled=False, message=message)
    assert progress_line(progress) == f"waits for usage to fall: {message}"
    assert revert_line(progress) == f"reverting, waits for usage to fall: {message}"
    assert revert_line(Progress(Stage.DONE, settled=True)) == "it is reverted"
    assert revert_line(None) == "reverting"


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-20T11:58:00Z", "2026-11-20 11:58:00 UTC, 2m ago"),
        ("2026-11-20T01:58:00+02:00", "2026-11-19 23:58:00 UTC, 12h ago"),
        (NASTY, SHOWN),
    ],
)
def test_when_it_was(at: str, words: str) -> None:
    assert entry_when(entry(at=at), datetime(2026, 11, 20, 12, tzinfo=UTC)) == words


@pytest.mark.parametrize(
    ("kind", "rank"),
    [
        (StrategyKind.IN_PLACE, "2 of 3 on n1 now; 3 once the kubelet resizes it and c restarts"),
        (StrategyKind.TEMPLATE, "2 of 3 on n1 now; 3 when recreated"),
    ],
)
def test_what_is_confirmed_has_the_moments_of_the_chosen_strategy(kind: StrategyKind, rank: str) -> None:
    pods = [pod(name, f"requests: {{memory: {size}}}") for name, size in (("low", "1Mi"), ("high", "4Gi"))]
    found = preview(pod("mine", "requests: {memory: 1Gi}"), [edit("14Gi", "c")], SETUP, pods)
    lines = confirm_lines("ctx", "server", request(), found, Strategy(kind, request()))
    assert f"kill rank  {rank}" in lines
    assert any(line.startswith("! kubelet  answers Deferred: ") for line in lines) is (
        kind is StrategyKind.IN_PLACE
    )


def test_what_is_confirmed_of_a_template_has_no_kill_rank() -> None:
    setup = structs.replace(SETUP, node=Node(name=""))
    found = preview(pod("mine", "requests: {memory: 1Gi}"), [edit("14Gi", "c")], setup, [])
    lines = confirm_lines("ctx", "server", request(), found, Strategy(StrategyKind.TEMPLATE, request()))
    assert [line.split("  ")[0] for line in lines][-3:] == ["change", "class", "effect"]
