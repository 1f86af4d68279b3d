"""From the fields to a changed object and back: the screens of applying a change."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from textual.widgets import Button, Input

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.edit import apply_state
from kubectl_qos.edit.apply_state import ConflictError
from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.history import EntryState, ValueConflict
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress, Stage, TrialPlan
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.present.changes import entry_state
from kubectl_qos.tui.actions import ACTIONS, BindingGroup
from kubectl_qos.tui.screens.apply import ApplyScreen, PatchScreen, ProgressScreen, StrategyList, UndoScreen
from kubectl_qos.tui.screens.dialogs import ConfirmWrite
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.widgets.text_view import TextView
from tests.tui.idle import SOON_SECONDS
from tests.tui.sources import API, Run, ScriptedSource, demo, died, pod_named, running
from tests.tui.writers import DONE, RESIZING, WAITING, ScriptedWriter, around, memory

HERE = {BindingGroup.APP, BindingGroup.APPLY, BindingGroup.TEXT}
KEYS = sorted(
    {key for action in ACTIONS if action.group in HERE for key in action.keys}
    - {"q", "ctrl+c", "ctrl+q", "ctrl+z"}
    | {"enter", "space", "y", "n", "1", "e"}
)
"""What does something on the screen, and what is pressed by reflex."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other so soon that `pilot.pause` waits for the next one."""
    monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 0.005)


@asynccontextmanager
async def editing(
    source: Source | None = None, *, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[Run]:
    """The fields of a pod, one of them changed."""
    async with running(source or ScriptedSource(demo()), size=size, **options) as pilot:
        pilot.qos.edit(pod_named(demo(), API))
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, EditScreen)
        await pilot.until(lambda: "reading owners" not in pilot.words)
        screen.form.put([memory("1Gi")])
        await pilot.pause()
        yield pilot


@asynccontextmanager
async def strategies(source: Source | None = None, **options: Any) -> AsyncIterator[Run]:
    async with editing(source, **options) as pilot:
        await pilot.keys("ctrl+s")
        assert isinstance(pilot.app.screen, ApplyScreen)
        await pilot.until(lambda: "loading related objects" not in pilot.words)
        yield pilot


def writer_of(pilot: Run) -> ScriptedWriter:
    return pilot.source.scripted


def states(pilot: Run) -> list[EntryState]:
    return [entry.state for entry in pilot.qos.writing.history.entries()]


async def open_confirmation(pilot: Run) -> None:
    await pilot.keys("a")
    await pilot.until(lambda: pilot.screen_name == "ConfirmWrite")


async def confirmed(pilot: Run) -> None:
    await open_confirmation(pilot)
    await pilot.keys("y")


def storing(writer: ScriptedWriter, stored: str) -> Callable[[Pod], RelatedObjects]:
    """The related objects, and this memory request in the pod once something was written."""

    def now(pod: Pod) -> RelatedObjects:
        found = around(pod)
        if writer.heard_of("write"):
            raw = copy.deepcopy(found.raw)
            raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = stored
            found = structs.replace(found, raw=raw)
        return found

    return now


async def test_a_strategy_is_chosen_copied_and_never_written_by_reflex() -> None:
    async with strategies() as pilot:
        await pilot.keys("c")
        head, media, empty, *body = pilot.app.clipboard.splitlines()
        assert head.startswith("PATCH /api/v1/namespaces/shop/pods/")
        assert head.endswith("/resize?fieldManager=kubectl-qos&fieldValidation=Strict")
        assert (media, empty) == ("Content-Type: application/strategic-merge-patch+json", "")
        assert "        memory: 1Gi" in body
        # Reflexes do not write.
        for key in ("enter", "n", "escape", "space"):
            await open_confirmation(pilot)
            await pilot.keys(key)
            assert pilot.screen_name == ("ConfirmWrite" if key == "space" else "ApplyScreen")
        assert not writer_of(pilot).heard_of("write")
        await pilot.click("#no")
        await pilot.pause()
        assert pilot.screen_name == "ApplyScreen"
        # A screen below another one is not left in its place.
        below = pilot.app.screen_stack[-2]
        assert isinstance(below, EditScreen)
        below.dismiss()
        await pilot.pause()
        assert isinstance(pilot.app.screen, ApplyScreen)
        # Tab, shift+tab and a click choose a strategy.
        for choose in ("tab", "shift+tab"):
            await pilot.keys(choose)
            assert "> through deployment/api" in pilot.words
            assert "PATCH /apis/apps/v1/namespaces/shop/deployments/api?" in pilot.words
            await pilot.keys(choose)
            assert "> in place" in pilot.words
        await pilot.click(StrategyList, offset=(2, 1))
        await pilot.pause()
        assert "> through deployment/api" in pilot.words
        # The question can be clicked.
        await open_confirmation(pilot)
        await pilot.click("#yes")
        await pilot.until(lambda: pilot.screen_name == "ProgressScreen")
        assert len(writer_of(pilot).heard_of("write")) == 1


async def test_a_dry_run_that_is_answered_late_opens_nothing_over_another_screen() -> None:
    async with strategies() as pilot:
        for key, name in (("m", "PatchScreen"), ("escape", "EditScreen")):
            writer_of(pilot).hold_dry_run.clear()
            await pilot.keys("a", key)
            writer_of(pilot).hold_dry_run.set()
            await pilot.pause()
            assert pilot.screen_name == name
            if key == "m":
                await pilot.keys("escape", "escape", "ctrl+s")
        await pilot.keys("ctrl+s", "m")
        await pilot.until(lambda: pilot.screen_name == "PatchScreen")
        await pilot.keys("c", "escape", "escape")
        await pilot.until(lambda: isinstance(pilot.app.screen, EditScreen))
        assert isinstance(pilot.app.screen, EditScreen)
        assert not pilot.app.screen.unsaved


async def test_no_single_key_writes() -> None:
    """After a dry run, however often the one key is pressed."""
    async with strategies() as pilot:
        for key in KEYS:
            if pilot.screen_name != "ApplyScreen" or "the server accepts it" not in pilot.words:
                await back_to_apply(pilot)
                await pilot.keys("d")
                await pilot.seen("the server accepts it")
            await pilot.keys(key, key, key)
            assert not writer_of(pilot).heard_of("write"), key
        await back_to_apply(pilot)
        await pilot.keys("d")
        await pilot.seen("the server accepts it")
        await pilot.keys("q", "ctrl+q", "ctrl+c", "ctrl+c")
        assert pilot.app._exit
        assert not writer_of(pilot).heard_of("write"), "neither does leaving"


async def back_to_apply(pilot: Run) -> None:
    """From wherever a key led."""
    for _ in range(20):
        if isinstance(pilot.app.screen, ApplyScreen):
            return
        if isinstance(pilot.app.screen, MainScreen):
            pilot.qos.edit(pod_named(demo(), API))
            await pilot.pause()
        if isinstance(pilot.app.screen, EditScreen):
            pilot.app.screen.form.reset()
            pilot.app.screen.form.put([memory("1Gi")])
            await pilot.keys("ctrl+s")
        else:
            await pilot.keys("escape")
    raise AssertionError(pilot.screen_name)


async def test_where_the_name_must_be_typed_nothing_else_says_yes() -> None:
    """The name is that of the writer."""
    source = ScriptedSource(demo())
    source.scripted.named = "prod"
    by_name = UserSettings(contexts={"prod": ContextSettings(confirm="name")})
    async with strategies(source, settings=by_name) as pilot:
        await open_confirmation(pilot)
        assert "Type prod to apply it" in pilot.words
        yes = pilot.app.screen.query_one("#yes", Button)
        field = pilot.app.screen.query_one("#name", Input)
        assert pilot.app.focused is field
        for text in ("", "y", "PROD", "pro", "prodd"):
            field.value = text
            await pilot.pause()
            assert yes.disabled
            await pilot.keys("enter")
            assert "! That is not prod" in pilot.words
        await pilot.click("#yes")
        await pilot.keys("tab", "y")
        await pilot.pause()
        assert pilot.screen_name == "ConfirmWrite"
        assert not writer_of(pilot).heard_of("write")
        field.value = "prod"
        await pilot.pause()
        field.focus()
        await pilot.keys("enter")
        await pilot.until(lambda: pilot.screen_name == "ProgressScreen")
        assert len(writer_of(pilot).heard_of("write")) == 1


async def test_read_only_nothing_is_sent_and_the_key_says_why() -> None:
    sentence = "nothing is written: --readonly says read-only"
    async with strategies(readonly=True) as pilot:
        assert not {"apply", "dry run"} & set(pilot.footer)
        for key in ("a", "d"):
            await pilot.keys(key)
            assert sentence in pilot.notifications[-1]
        for key in ("enter", "y", "tab", "l", "o", "c"):
            await pilot.keys(key)
        assert not writer_of(pilot).heard


async def test_a_source_that_cannot_be_written_to_says_what_to_do_instead() -> None:
    async with strategies(DemoSource()) as pilot:
        assert "apply" not in pilot.footer
        assert "! cannot be applied: nothing is sent: demo is no cluster" in pilot.words
        await pilot.keys("a")
        assert pilot.notifications == ["nothing is sent: demo is no cluster; m shows the patch, to save it"]


async def test_every_stage_is_shown_until_it_settles() -> None:
    rolling = Progress(Stage.ROLLING, settled=False, message="1 old", done=1, total=3)
    async with strategies() as pilot:
        # Screens of one change are not stacked on each other.
        await pilot.keys("U", "U")
        assert sum(isinstance(one, UndoScreen) for one in pilot.app.screen_stack) == 1
        assert "the change history is open already" in pilot.notifications[-1]
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, ApplyScreen)
        writer_of(pilot).looks = [WAITING, RESIZING, ServerUnreachable("no answer"), rolling, DONE]
        await confirmed(pilot)
        await pilot.seen("reverts it")
        assert isinstance(pilot.app.screen, ProgressScreen)
        assert not any(isinstance(one, ConfirmWrite) for one in pilot.app.screen_stack)
        text = pilot.words
        for said in (
            "accepted by the server",
            "waiting for the kubelet",
            "in progress: the kubelet is at it",
            "rolling out: 1 of 3 pods: 1 old",
            "> 0s done",
        ):
            assert said in text
        looks = len(writer_of(pilot).heard_of("look"))
        assert looks == 5
        await pilot.pause()
        assert len(writer_of(pilot).heard_of("look")) == looks, "settled is settled"
        assert [request.resource_version for request in writer_of(pilot).heard_of("write")] == ["42"]
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen), "what was applied needs no fields any more"
        assert states(pilot) == [EntryState.DONE]


async def test_nothing_leads_back_to_the_progress_of_what_was_reverted() -> None:
    source = ScriptedSource(demo())
    source.around = storing(source.scripted, "1Gi")
    async with strategies(source) as pilot:
        source.scripted.looks = [DONE]
        await confirmed(pilot)
        await pilot.seen("U reverts it")
        await pilot.keys("U", "escape")
        assert isinstance(pilot.app.screen, ProgressScreen), "it still is as it was applied"
        await pilot.keys("U", "u")
        await pilot.until(lambda: pilot.screen_name == "ApplyScreen")
        await confirmed(pilot)
        await pilot.seen("the previous values are restored")
        await pilot.keys("escape")
        assert pilot.screen_name == "UndoScreen"
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_what_is_left_while_it_is_looked_at_is_followed_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 10 * SOON_SECONDS)  # else it is never at rest
    async with strategies() as pilot:
        writer_of(pilot).looks = [WAITING]
        await confirmed(pilot)
        await pilot.seen("waiting for the kubelet")
        await pilot.keys("escape")
        name = f"pod shop/{API} in place"
        assert pilot.notifications == [f"{name} goes on: its end will be shown, and U lists it"]
        assert isinstance(pilot.app.screen, MainScreen)
        writer_of(pilot).looks = [INFEASIBLE]
        await pilot.until(lambda: pilot.notifications[-1] == f"{name}: infeasible: too much")
        looks = len(writer_of(pilot).heard_of("look"))
        monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 0.005)
        await pilot.pause(3 * SOON_SECONDS)
        assert len(writer_of(pilot).heard_of("look")) == looks


async def test_leaving_the_ui_while_it_is_sent_needs_confirmation() -> None:
    async with strategies() as pilot:
        writer_of(pilot).hold_write.clear()
        await confirmed(pilot)
        await pilot.seen("no answer yet")
        await pilot.keys("ctrl+c")
        await pilot.seen("sent, but not answered yet")
        assert pilot.screen_name == "LeaveDialog"
        await pilot.keys("n")
        await pilot.until(lambda: pilot.screen_name == "ProgressScreen")
        await pilot.keys("escape")
        await pilot.until(lambda: pilot.screen_name == "MainScreen")
        assert "is under way" in pilot.notifications[-1]
        assert states(pilot) == [EntryState.SENT]
        assert "not answered yet" in pilot.qos.writing.leave_question, "also where its screen was left"
        writer_of(pilot).hold_write.set()
        await pilot.until(lambda: not pilot.qos.writing.leave_question)
        name = f"pod shop/{API} in place"
        await pilot.until(lambda: pilot.notifications[-2:] == [f"{name} was changed", f"{name}: done"])
        assert states(pilot) == [EntryState.DONE]


CONFLICT = ValueConflict("c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi")))
STALE = ConflictError("pod/x was changed by someone else since it was read", (CONFLICT,))


async def test_a_refused_write_is_a_sentence_and_a_conflict_blocks_until_the_fields_are_reloaded() -> None:
    async with strategies() as pilot:
        assert not {"reload", "keep mine"} & set(pilot.footer)
        for number, error in enumerate((ApiError("cannot patch", status=403), STALE), start=1):
            writer_of(pilot).writes = [error]
            await confirmed(pilot)
            await pilot.seen(f"! not applied: {error}")
            await pilot.keys("escape")
            assert pilot.screen_name == "ApplyScreen"
            assert f"! not applied: {error}" in pilot.words
            assert len(writer_of(pilot).heard_of("write")) == number, "nothing is retried"
            assert not writer_of(pilot).heard_of("look")
        assert "before ours theirs c requests.memory 512Mi 1Gi 2Gi" in pilot.words
        assert {"reload", "keep mine"} <= set(pilot.footer)
        heard = len(writer_of(pilot).heard)
        await pilot.keys("a", "d")
        assert pilot.notifications == ["someone else changed it: reload, or keep mine"] * 2
        assert len(writer_of(pilot).heard) == heard
        pilot.source.around = changed_to("2Gi")
        await pilot.keys("l")
        edit = pilot.app.screen
        assert isinstance(edit, EditScreen)
        await pilot.until(lambda: [one.value for one in edit.form.fields] == ["2Gi", "2Gi", "250m", "2"])
        assert not edit.unsaved
        assert edit.focused is edit.form.fields[0]


def changed_to(text: str) -> Any:
    """The related objects after somebody else has given the container this memory."""

    def answer(pod: Pod) -> RelatedObjects:
        found = around(pod)
        raw = dict(DemoSource().raw(pod))
        container = raw["spec"]["containers"][0]
        requests = {**container["resources"]["requests"], "memory": text}
        container["resources"] = {**container["resources"], "requests": requests}
        raw["metadata"] = {**raw["metadata"], "resourceVersion": "99"}
        return structs.replace(found, raw=raw)

    return answer


async def test_keeping_ours_makes_the_same_change_of_what_is_there_now() -> None:
    async with strategies() as pilot:
        writer_of(pilot).dry_runs.insert(0, STALE)
        await pilot.keys("d")
        await pilot.seen("changed by someone else")
        pilot.source.around = changed_to("2Gi")
        await pilot.keys("o")
        await pilot.seen("the server accepts it")
        assert "c requests.memory 2Gi → 1Gi" in pilot.words
        request = writer_of(pilot).heard_of("dry run")[-1]
        assert (str(request.before[0].quantity), request.resource_version) == ("2Gi", "99")
        assert not writer_of(pilot).heard_of("write")
        await confirmed(pilot)
        await pilot.seen("done")


async def test_the_fields_do_not_wait_for_related_objects_and_apply_waits_itself() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    async with running(source) as pilot:
        # An answer after the screen was left goes nowhere.
        pilot.qos.edit(pod_named(demo(), API))
        await pilot.keys("escape")
        source.hold_around.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        source.hold_around.clear()
        pilot.qos.edit(pod_named(demo(), API))
        await pilot.pause()
        assert "reading owners, LimitRanges, quotas" in pilot.words
        edit = pilot.app.screen
        assert isinstance(edit, EditScreen)
        edit.form.put([memory("1Gi")])
        await pilot.keys("ctrl+s")
        assert "loading related objects" in pilot.words
        await pilot.keys("a", "d", "tab", "c")
        assert not source.scripted.heard
        source.hold_around.set()
        await pilot.seen("> in place")
        await pilot.keys("escape")
        await pilot.seen("Strategies: in place")


async def test_what_cannot_be_read_is_said_in_the_preview_and_on_the_way() -> None:
    source = ScriptedSource(demo())
    source.around = ApiError('pods "api" is forbidden', status=403)
    async with editing(source) as pilot:
        assert '! Related objects: not known: pods "api" is forbidden' in pilot.words
        await pilot.keys("ctrl+s")
        await pilot.seen('! cannot be read: pods "api" is forbidden (403)')
        await pilot.keys("a")
        assert pilot.notifications[-1] == 'pods "api" is forbidden'
        await pilot.keys("m")
        assert isinstance(pilot.app.screen, PatchScreen)
        # What is partly unknown says so too.
        missing = Missing("the quotas", 'resourcequotas is forbidden: User "ada"', "grant list")
        source.around = lambda pod: structs.replace(around(pod), missing=(missing,))
        await pilot.keys("escape", "escape", "escape", "y")
        pilot.qos.edit(pod_named(demo(), API))
        await pilot.seen("! Related objects: not all of it can be read")
        said = pilot.app.screen.query_one("#before TextView", TextView).text_lines(80)
        assert any("resourcequotas is forbidden" in line.text for line in said)


async def test_a_change_is_written_to_the_cluster_that_it_was_made_for() -> None:
    """Another cluster may be opened late, while the fields are there already."""
    first, second = ScriptedSource(demo()), ScriptedSource(demo())
    second.title = second.scripted.named = "prod"
    async with editing(first) as pilot:
        pilot.qos.source = second
        await pilot.keys("ctrl+s")
        await open_confirmation(pilot)
        assert "cluster scripted" in pilot.words
        await pilot.keys("y")
        await pilot.until(lambda: bool(first.scripted.heard_of("write")))
        assert not second.scripted.heard


async def test_the_question_names_what_the_kubelet_puts_off() -> None:
    async with editing() as pilot:
        pilot.app.screen.form.put([memory("5Gi"), memory("6Gi", Side.LIMITS)])  # type: ignore[attr-defined]
        await pilot.keys("ctrl+s")
        await pilot.until(lambda: "loading related objects" not in pilot.words)
        await pilot.keys("a")
        await pilot.seen("Write this to the cluster although the kubelet would answer Deferred?")
        assert "! kubelet answers Deferred: Node didn't have enough resource: memory" in pilot.words


@pytest.mark.parametrize(("stored", "writes"), [("1Gi", 2), ("3Gi", 1)])
async def test_a_change_on_trial_that_does_not_hold_is_reverted(
    stored: str, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_state, "TRIAL_PAUSE_SECONDS", 0.005)
    source = ScriptedSource(lambda _: died(demo()) if len(writer.heard_of("look")) > 1 else demo())
    writer = source.scripted
    source.around = storing(writer, stored)
    async with strategies(source) as pilot:
        await pilot.keys("f")
        on_trial = "for 10m, and reverted at: restarts, oom, infeasible"
        assert f"on trial {on_trial}" in pilot.words
        await open_confirmation(pilot)
        assert f"on trial {on_trial}" in pilot.words, "what is confirmed"
        await pilot.keys("y")
        await pilot.seen("it did not hold: c restarted 1 time, c was OOMKilled 1 time")
        if writes == 2:
            await pilot.seen("it is reverted: the previous values are restored")
            assert writer.heard_of("write")[1].edits == (memory("512Mi"),)
        else:
            await pilot.seen("it is not reverted: someone else has changed it since")
            await pilot.until(lambda: "not reverted" in pilot.qos.writing.history.entries()[0].message)
        assert len(writer.heard_of("write")) == writes
        entries = pilot.qos.writing.history.entries()
        assert entries[0].state is EntryState.FAILED
        assert entries[0].message.startswith("0s: c restarted 1 time, c was OOMKilled 1 time; c used at most")
        assert [one.undoes for one in entries[1:]] == [entries[0].id] * (writes - 1)


INFEASIBLE = Progress(Stage.INFEASIBLE, settled=True, message="too much")


@pytest.mark.parametrize(
    ("look", "end"),
    [
        (DONE, "in place: it held for 0s; U reverts it"),
        (
            INFEASIBLE,
            "did not hold: the kubelet answers Infeasible: too much; it is not reverted: nothing to undo",
        ),
    ],
)
async def test_a_trial_goes_on_after_its_screen_is_left_and_its_end_is_notified(
    look: Progress, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_state, "TRIAL_PAUSE_SECONDS", 0.005)
    async with strategies() as pilot:
        writer = writer_of(pilot)
        writer.looks = [look]
        writer.hold_look.clear()
        await pilot.keys("f")
        await confirmed(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, ProgressScreen)
        await pilot.keys("escape")
        assert pilot.notifications[-1].endswith("stays on trial: its end will be shown, and U lists it")
        assert isinstance(pilot.app.screen, MainScreen)
        question = pilot.qos.writing.leave_question
        assert "still on trial; if you leave, the change stays and nothing reverts it" in question
        (entry,) = pilot.qos.writing.history.entries()
        assert entry_state(entry).startswith("on trial: until ")
        screen.change.advance((replace(screen.change.state, plan=TrialPlan(0.0)), None))
        writer.hold_look.set()
        await pilot.until(lambda: end in pilot.notifications[-1])
        assert pilot.qos.writing.leave_question == ""


async def test_a_change_on_trial_that_holds_stays() -> None:
    async with strategies() as pilot:
        await pilot.keys("f", "f")
        assert "on trial" not in pilot.words
        screen = pilot.app.screen
        assert isinstance(screen, ApplyScreen)
        screen.change.advance((replace(screen.change.state, plan=TrialPlan(0.0)), None))
        await confirmed(pilot)
        await pilot.seen("next death of it +118Mi own limit 94%, as before")
        await pilot.seen("it held for 0s")
        await pilot.seen("U reverts it")
        assert len(writer_of(pilot).heard_of("write")) == 1
