"""From the fields to a changed object and back: the screens of applying a change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input
from textual.widgets._footer import FooterKey

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import ContextSettings, Settings
from kubectl_qos.edit import apply
from kubectl_qos.edit.apply import ConflictError, DryRunResult
from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.history import EntryState, ValueConflict
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Missing, Scope
from kubectl_qos.tui.actions import ACTIONS
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.apply import ApplyScreen, ProgressScreen
from kubectl_qos.tui.screens.dialogs import ConfirmWrite
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.screens.undo import UndoScreen
from kubectl_qos.tui.widgets.strategies import StrategyLine
from tests.tui.sources import ScriptedSource, app_of, demo, pod_named, press, settled, until, words
from tests.tui.writers import CONTEXT, DONE, RESIZING, SERVER, WAITING, ScriptedWriter, around, memory

Run = Pilot[Any]
API = "api-7d9c5b6f8-x2mzq"
LEAVING = ("q", "ctrl+c", "ctrl+q")
KEYS = sorted(
    {key for action in ACTIONS for key in action.keys} - {*LEAVING, "ctrl+z"}
    | {"enter", "space", "y", "n", "1", "e"}
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other so soon that `pilot.pause` waits for the next one."""
    monkeypatch.setattr(apply, "LONGEST_PAUSE_SECONDS", 0.005)


@asynccontextmanager
async def editing(
    source: Source | None = None, *, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[Run]:
    """The fields of a pod, one of them changed."""
    app = QosApp(source or ScriptedSource(demo()), Scope(), **options)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        app.edit(pod_named(demo(), API))
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, EditScreen)
        await until(pilot, lambda: "reading owners" not in words(pilot))
        screen.form.put([memory("1Gi")])
        await pilot.pause()
        yield pilot


@asynccontextmanager
async def strategy_kind(source: Source | None = None, **options: Any) -> AsyncIterator[Run]:
    """The ways of that change."""
    async with editing(source, **options) as pilot:
        await press(pilot, "ctrl+s")
        assert isinstance(pilot.app.screen, ApplyScreen)
        await until(pilot, lambda: "loading related objects" not in words(pilot))
        yield pilot


def source_of(pilot: Run) -> ScriptedSource:
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    return source


def writer_of(pilot: Run) -> ScriptedWriter:
    return source_of(pilot).scripted


def screen(pilot: Run) -> str:
    return type(pilot.app.screen).__name__


def footer(pilot: Run) -> list[str]:
    return [key.description for key in pilot.app.screen.query(FooterKey)]


def told(pilot: Run) -> list[str]:
    return [one.message for one in pilot.app._notifications]


def last_told(pilot: Run) -> str:
    return told(pilot)[-1] if told(pilot) else ""


def states(pilot: Run) -> list[EntryState]:
    return [entry.state for entry in app_of(pilot).writing.history.entries()]


async def seen(pilot: Run, text: str) -> None:
    await until(pilot, lambda: text in words(pilot))


async def confirmed(pilot: Run) -> None:
    """Asked, and answered with yes."""
    await press(pilot, "a")
    await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
    await press(pilot, "y")


# -- the ways and their requests ------------------------------------------------------------------


def slow_to_rehearse() -> ScriptedSource:
    """A server that answers a dry run only once it is let go."""
    source = ScriptedSource(demo())
    source.scripted.hold_rehearsal.clear()
    return source


async def test_the_ways_and_the_exact_request_are_shown() -> None:
    async with strategy_kind() as pilot:
        text = words(pilot)
        assert "c requests.memory 512Mi → 1Gi" in text
        assert "> in place no container restarts" in text
        assert "through deployment/api 3 pods are replaced" in text
        assert f"PATCH /api/v1/namespaces/shop/pods/{API}/resize?fieldManager=kubectl-qos" in text
        assert "no dry run yet; d sends one" in text
        assert not writer_of(pilot).heard


async def test_tab_shift_tab_and_a_click_choose_a_way() -> None:
    async with strategy_kind() as pilot:
        for choose in ("tab", "shift+tab"):
            await press(pilot, choose)
            assert "> through deployment/api" in words(pilot)
            assert "PATCH /apis/apps/v1/namespaces/shop/deployments/api?" in words(pilot)
            await press(pilot, choose)
            assert "> in place" in words(pilot)
        await pilot.click(list(pilot.app.screen.query(StrategyLine))[1])
        await pilot.pause()
        assert "> through deployment/api" in words(pilot)


async def test_the_request_is_copied_as_it_is_shown() -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "c")
        head, media, empty, *body = pilot.app.clipboard.splitlines()
        assert head.startswith("PATCH /api/v1/namespaces/shop/pods/")
        assert head.endswith("/resize?fieldManager=kubectl-qos&fieldValidation=Strict")
        assert (media, empty) == ("Content-Type: application/strategic-merge-patch+json", "")
        assert "        memory: 1Gi" in body


async def test_the_patch_and_the_manifest_stay_near() -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "m")
        assert isinstance(pilot.app.screen, PatchScreen)
        await press(pilot, "c", "escape", "escape")
        assert isinstance(pilot.app.screen, EditScreen)
        assert not pilot.app.screen.unsaved


# -- the dry run ----------------------------------------------------------------------------------


async def test_the_dry_run_by_one_key_says_what_the_server_would_store_otherwise() -> None:
    def less(request: PatchRequest) -> DryRunResult:
        return DryRunResult(
            request, (replace(request.edits[0], quantity=Quantity.parse("768Mi")),), {}, ("old API",)
        )

    source = ScriptedSource(demo())
    source.scripted.rehearsals = [less]
    async with strategy_kind(source) as pilot:
        await press(pilot, "d")
        await seen(pilot, "dry run: the server accepts it")
        assert "! c requests.memory would be stored as 768Mi, not 1Gi" in words(pilot)
        assert "! the server warns: old API" in words(pilot)
        assert [kind for kind, _ in writer_of(pilot).heard] == ["dry run"]
        await press(pilot, "a")
        assert screen(pilot) == "ConfirmWrite"
        assert "would be stored as 768Mi, not 1Gi" in words(pilot), "also where it is confirmed"
        assert [kind for kind, _ in writer_of(pilot).heard] == ["dry run"], "it need not be asked twice"


async def test_a_dry_run_that_is_answered_after_the_screen_was_left_asks_nothing() -> None:
    source = slow_to_rehearse()
    async with strategy_kind(source) as pilot:
        await press(pilot, "a", "escape")
        source.scripted.hold_rehearsal.set()
        await pilot.pause()
        assert screen(pilot) == "EditScreen"
        await press(pilot, "ctrl+s")
        await press(pilot, "m")
        assert screen(pilot) == "PatchScreen"


async def test_the_question_does_not_come_over_another_screen() -> None:
    source = slow_to_rehearse()
    async with strategy_kind(source) as pilot:
        await press(pilot, "a", "m")
        source.scripted.hold_rehearsal.set()
        await pilot.pause()
        assert screen(pilot) == "PatchScreen"


# -- the question ---------------------------------------------------------------------------------


async def test_the_question_names_cluster_namespace_object_and_effect() -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "a")
        await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
        text = words(pilot)
        for said in (
            f"cluster {CONTEXT} {SERVER}",
            "namespace shop",
            f"object pod/{API}",
            "change c requests.memory 512Mi → 1Gi",
            "class Burstable, stays",
            "kill rank 1 → 3 of 17 on worker-2",
            "effect no container restarts",
        ):
            assert said in text
        assert pilot.app.focused is pilot.app.screen.query_one("#no")


async def test_reflexes_do_not_write() -> None:
    async with strategy_kind() as pilot:
        for key in ("enter", "n", "escape", "space"):
            await press(pilot, "a")
            await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
            await press(pilot, key)
            assert screen(pilot) == ("ConfirmWrite" if key == "space" else "ApplyScreen")
        assert not writer_of(pilot).heard_of("write")


async def test_no_single_key_writes() -> None:
    """Whatever is rehearsed already, and however often the one key is pressed."""
    async with strategy_kind() as pilot:
        for key in KEYS:
            if screen(pilot) != "ApplyScreen" or "the server accepts it" not in words(pilot):
                await back_to_landing(pilot)
                await press(pilot, "d")
                await seen(pilot, "the server accepts it")
            await press(pilot, key, key, key)
            assert not writer_of(pilot).heard_of("write"), key


@pytest.mark.parametrize("key", LEAVING)
async def test_no_key_that_leaves_writes(key: str) -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "d")
        await seen(pilot, "the server accepts it")
        await press(pilot, key, key, key)
        assert not writer_of(pilot).heard_of("write")


async def back_to_landing(pilot: Run) -> None:
    """From wherever a key led."""
    for _ in range(20):
        if isinstance(pilot.app.screen, ApplyScreen):
            return
        if isinstance(pilot.app.screen, MainScreen):
            app_of(pilot).edit(pod_named(demo(), API))
            await pilot.pause()
        if isinstance(pilot.app.screen, EditScreen):
            pilot.app.screen.form.reset()
            pilot.app.screen.form.put([memory("1Gi")])
            await press(pilot, "ctrl+s")
        else:
            await press(pilot, "escape")
    raise AssertionError(screen(pilot))


async def test_the_question_can_be_clicked() -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "a")
        await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
        await pilot.click("#no")
        await pilot.pause()
        assert screen(pilot) == "ApplyScreen"
        await press(pilot, "a")
        await pilot.click("#yes")
        await until(pilot, lambda: screen(pilot) == "ProgressScreen")
        assert len(writer_of(pilot).heard_of("write")) == 1


BY_NAME = Settings(contexts={CONTEXT: ContextSettings(confirm="name")})


async def test_where_the_name_must_be_typed_nothing_else_says_yes() -> None:
    async with strategy_kind(settings=BY_NAME) as pilot:
        await press(pilot, "a")
        await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
        yes = pilot.app.screen.query_one("#yes", Button)
        field = pilot.app.screen.query_one("#name", Input)
        assert pilot.app.focused is field
        for text in ("", "y", "SCRIPTED", "scripte", "scriptedd"):
            field.value = text
            await pilot.pause()
            assert yes.disabled
            await press(pilot, "enter")
            assert "! That is not scripted" in words(pilot)
        await pilot.click("#yes")
        await press(pilot, "tab", "y")
        await pilot.pause()
        assert screen(pilot) == "ConfirmWrite"
        assert not writer_of(pilot).heard_of("write")
        field.value = "scripted"
        await pilot.pause()
        field.focus()
        await press(pilot, "enter")
        await until(pilot, lambda: screen(pilot) == "ProgressScreen")
        assert len(writer_of(pilot).heard_of("write")) == 1


async def test_the_name_asked_for_is_that_of_the_writer() -> None:
    source = ScriptedSource(demo())
    source.scripted.named = "prod"
    settings = Settings(contexts={"prod": ContextSettings(confirm="name")})
    async with strategy_kind(source, settings=settings) as pilot:
        await press(pilot, "a")
        await seen(pilot, "Type prod to apply it")


# -- without the right to write -------------------------------------------------------------------


async def test_read_only_nothing_is_sent_and_the_key_says_why() -> None:
    sentence = "nothing is written: --readonly says read-only"
    async with strategy_kind(readonly=True) as pilot:
        assert not {"apply", "dry run"} & set(footer(pilot))
        assert sentence in words(pilot)
        assert "m shows the patch, to save it" in words(pilot)
        for key in ("a", "d"):
            await press(pilot, key)
            assert sentence in told(pilot)[-1]
        for key in ("enter", "y", "tab", "l", "o", "c"):
            await press(pilot, key)
        assert not writer_of(pilot).heard


async def test_a_source_that_cannot_be_written_to_says_what_to_do_instead() -> None:
    async with strategy_kind(DemoSource()) as pilot:
        assert "apply" not in footer(pilot)
        assert "! cannot be applied: nothing is sent: the demo is no cluster" in words(pilot)
        await press(pilot, "a")
        assert told(pilot) == ["nothing is sent: the demo is no cluster; m shows the patch, to save it"]


# -- after it was sent ----------------------------------------------------------------------------


async def test_every_stage_is_shown_until_it_settles() -> None:
    source = ScriptedSource(demo())
    rolling = Progress(Stage.ROLLING, settled=False, message="1 old", done=1, total=3)
    source.scripted.looks = [WAITING, RESIZING, ServerUnreachable("no answer"), rolling, DONE]
    async with strategy_kind(source) as pilot:
        await confirmed(pilot)
        await seen(pilot, "reverts it")
        text = words(pilot)
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
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MainScreen), "what was applied needs no fields any more"
        assert states(pilot) == [EntryState.DONE]


async def test_leaving_while_it_is_looked_at_ends_the_looking_and_says_so() -> None:
    source = ScriptedSource(demo())
    source.scripted.looks = [WAITING]
    async with strategy_kind(source) as pilot:
        await confirmed(pilot)
        await seen(pilot, "waiting for the kubelet")
        await press(pilot, "escape")
        assert told(pilot) == [f"stopped watching pod shop/{API} in place; the change goes on, U lists it"]
        looks = len(writer_of(pilot).heard_of("look"))
        await pilot.pause()
        assert len(writer_of(pilot).heard_of("look")) <= looks + 1
        assert isinstance(pilot.app.screen, MainScreen)


async def test_a_write_is_told_though_its_screen_was_left() -> None:
    source = ScriptedSource(demo())
    source.scripted.hold_write.clear()
    async with strategy_kind(source) as pilot:
        await confirmed(pilot)
        await seen(pilot, "no answer yet")
        await press(pilot, "escape")
        await until(pilot, lambda: "is under way" in last_told(pilot))
        assert states(pilot) == [EntryState.SENT]
        source.scripted.hold_write.set()
        await until(pilot, lambda: last_told(pilot) == f"pod shop/{API} in place was changed")
        assert states(pilot) == [EntryState.DONE]
        assert not writer_of(pilot).heard_of("look")


async def test_leaving_the_ui_while_it_is_sent_asks() -> None:
    source = ScriptedSource(demo())
    source.scripted.hold_write.clear()
    async with strategy_kind(source) as pilot:
        await confirmed(pilot)
        await seen(pilot, "no answer yet")
        await press(pilot, "q")
        await seen(pilot, "it was sent, and there is no answer yet")
        assert screen(pilot) == "Confirm"
        await press(pilot, "n")
        await until(pilot, lambda: screen(pilot) == "ProgressScreen")
        await press(pilot, "escape")
        await until(pilot, lambda: screen(pilot) == "MainScreen")
        assert "no answer yet" in app_of(pilot).writing.leave_question, "also where its screen was left"
        source.scripted.hold_write.set()
        await until(pilot, lambda: not app_of(pilot).writing.leave_question)


CONFLICT = ValueConflict("c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi")))
STALE = ConflictError("pod/x was changed by someone else since it was looked at", (CONFLICT,))


async def test_a_refused_write_is_a_sentence_here_and_where_one_came_from() -> None:
    async with strategy_kind() as pilot:
        for number, error in enumerate((ApiError("cannot patch", status=403), STALE), start=1):
            writer_of(pilot).writes = [error]
            await confirmed(pilot)
            await seen(pilot, f"! not applied: {error}")
            await press(pilot, "escape")
            assert screen(pilot) == "ApplyScreen"
            assert f"! not applied: {error}" in words(pilot)
            assert len(writer_of(pilot).heard_of("write")) == number, "nothing is retried"
            assert not writer_of(pilot).heard_of("look")
        assert {"reload", "keep mine"} <= set(footer(pilot))


# -- when someone else was faster -----------------------------------------------------------------


async def test_a_conflict_shows_three_values_and_what_to_do() -> None:
    source = ScriptedSource(demo())
    source.scripted.rehearsals = [STALE]
    async with strategy_kind(source) as pilot:
        assert not {"reload", "keep mine"} & set(footer(pilot))
        await press(pilot, "a")
        await seen(pilot, "changed by someone else")
        text = words(pilot)
        assert "before ours theirs c requests.memory 512Mi 1Gi 2Gi" in text
        assert "l discard mine, reload" in text
        assert "o keep mine" in text
        assert {"reload", "keep mine"} <= set(footer(pilot))
        await press(pilot, "a")
        await press(pilot, "d")
        assert told(pilot) == ["someone else changed it: reload, or keep mine"] * 2
        assert len(writer_of(pilot).heard) == 1


def changed_to(text: str) -> Any:
    """The surroundings when someone else has given the container so much memory."""

    def answer(pod: Pod) -> RelatedObjects:
        found = around(pod)
        raw = dict(DemoSource().raw(pod))
        container = raw["spec"]["containers"][0]
        requests = {**container["resources"]["requests"], "memory": text}
        container["resources"] = {**container["resources"], "requests": requests}
        raw["metadata"] = {**raw["metadata"], "resourceVersion": "99"}
        return replace(found, raw=raw)

    return answer


async def test_keeping_ours_makes_the_same_change_of_what_is_there_now() -> None:
    source = ScriptedSource(demo())
    source.scripted.rehearsals = [STALE, *source.scripted.rehearsals]
    async with strategy_kind(source) as pilot:
        await press(pilot, "d")
        await seen(pilot, "changed by someone else")
        source.around = changed_to("2Gi")
        await press(pilot, "o")
        await seen(pilot, "the server accepts it")
        assert "c requests.memory 2Gi → 1Gi" in words(pilot)
        request = writer_of(pilot).heard_of("dry run")[-1]
        assert (str(request.before[0].quantity), request.resource_version) == ("2Gi", "99")
        assert not writer_of(pilot).heard_of("write")
        await confirmed(pilot)
        await seen(pilot, "done")


async def test_looking_again_has_the_fields_of_what_is_there_now() -> None:
    source = ScriptedSource(demo())
    source.scripted.rehearsals = [STALE]
    async with strategy_kind(source) as pilot:
        await press(pilot, "d")
        await seen(pilot, "changed by someone else")
        source.around = changed_to("2Gi")
        await press(pilot, "l")
        edit = pilot.app.screen
        assert isinstance(edit, EditScreen)
        await until(pilot, lambda: [one.value for one in edit.form.fields] == ["250m", "2Gi", "2", "2Gi"])
        assert not edit.unsaved
        assert edit.focused is edit.form.fields[0]


# -- what is around it ----------------------------------------------------------------------------


async def test_the_fields_do_not_wait_for_what_is_around_and_landing_waits_itself() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    app = QosApp(source, Scope())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        app.edit(pod_named(demo(), API))
        await pilot.pause()
        assert "reading owners, LimitRanges, quotas" in words(pilot)
        edit = pilot.app.screen
        assert isinstance(edit, EditScreen)
        edit.form.put([memory("1Gi")])
        await press(pilot, "ctrl+s")
        assert "loading related objects" in words(pilot)
        await press(pilot, "a", "d", "tab", "c")
        assert not source.scripted.heard
        source.hold_around.set()
        await seen(pilot, "> in place")
        await press(pilot, "escape")
        assert "Strategies: in place" in words(pilot)


async def test_what_cannot_be_read_is_said_in_the_preview_and_on_the_way() -> None:
    source = ScriptedSource(demo())
    source.around = ApiError('pods "api" is forbidden', status=403)
    async with editing(source) as pilot:
        assert '! Around it: not known: pods "api" is forbidden' in words(pilot)
        await press(pilot, "ctrl+s")
        await seen(pilot, '! cannot be read: pods "api" is forbidden (403)')
        await press(pilot, "a")
        assert told(pilot)[-1] == 'pods "api" is forbidden'
        await press(pilot, "m")
        assert isinstance(pilot.app.screen, PatchScreen)


async def test_what_is_partly_unknown_says_so() -> None:
    source = ScriptedSource(demo())
    missing = Missing("the quotas", 'resourcequotas is forbidden: User "ada"', "grant list")
    source.around = lambda pod: replace(around(pod), missing=(missing,))
    async with editing(source) as pilot:
        assert "! Around it: not all of it can be read" in words(pilot)
        assert "resourcequotas is forbidden" in words(pilot)


async def test_answers_after_the_screens_were_left_go_nowhere() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    app = QosApp(source, Scope())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        app.edit(pod_named(demo(), API))
        await press(pilot, "escape")
        source.hold_around.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)


async def test_a_change_is_written_to_the_cluster_that_it_was_made_for() -> None:
    """Another cluster may be opened late, while the fields are there already."""
    first, second = ScriptedSource(demo()), ScriptedSource(demo())
    second.title = second.scripted.named = "prod"
    async with editing(first) as pilot:
        app_of(pilot).source = second
        await press(pilot, "ctrl+s", "a")
        await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
        assert "cluster scripted" in words(pilot)
        await press(pilot, "y")
        await until(pilot, lambda: bool(first.scripted.heard_of("write")))
        assert not second.scripted.heard


async def test_at_80_columns_the_foot_has_every_action() -> None:
    size = (80, 24)
    async with strategy_kind(size=size) as pilot:
        last = pilot.app.screen.query(FooterKey).last()
        assert last.region.right <= size[0]
        assert footer(pilot) == ["strategy", "dry run", "apply", "patch", "back", "help", "quit"]
        assert isinstance(pilot.app.screen, ApplyScreen)
        assert pilot.app.screen.change.state.strategies[0].kind is StrategyKind.IN_PLACE
    async with editing(size=size) as pilot:
        assert pilot.app.screen.query(FooterKey).last().region.right <= size[0]


async def test_screens_of_one_change_are_not_stacked_on_each_other() -> None:
    async with strategy_kind() as pilot:
        await press(pilot, "U")
        assert isinstance(pilot.app.screen, UndoScreen)
        await press(pilot, "U")
        assert sum(isinstance(one, UndoScreen) for one in pilot.app.screen_stack) == 1
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ApplyScreen)
        await confirmed(pilot)
        await seen(pilot, "done")
        assert isinstance(pilot.app.screen, ProgressScreen)
        assert not any(isinstance(one, ConfirmWrite) for one in pilot.app.screen_stack)


async def test_a_screen_below_another_one_is_not_left_in_its_place() -> None:
    async with strategy_kind() as pilot:
        below = pilot.app.screen_stack[-2]
        assert isinstance(below, EditScreen)
        below.dismiss()
        await pilot.pause()
        assert isinstance(pilot.app.screen, ApplyScreen)
