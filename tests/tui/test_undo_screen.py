"""What was applied, and taking it back: by the same road, and never blindly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.edit import apply
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.edit.patch import RESIZE, PatchRequest
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.apply import ApplyScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.undo import UndoScreen
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from tests.tui.sources import ScriptedSource, app_of, demo, pod_named, press, settled, type_text, until, words
from tests.tui.writers import around, deployment, entry_of, memory

Run = Pilot[Any]
API = "api-7d9c5b6f8-x2mzq"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "LONGEST_PAUSE_SECONDS", 0.02)


def applied(number: str, before: str, after: str, **other: Any) -> Entry:
    """A change of the pod that was applied in place."""
    uid = pod_named(demo(), API).metadata.uid
    request = PatchRequest("Pod", "shop", API, uid, "41", RESIZE, (memory(after),), (memory(before),), {})
    return replace(entry_of(request, number), **other)


OURS = applied("0001", "256Mi", "512Mi")
"""What made the pod what it is in the demo."""


@asynccontextmanager
async def undoing(
    *entries: Entry, source: ScriptedSource | None = None, path: Path | None = None
) -> AsyncIterator[Run]:
    """The list of these."""
    history = HistoryFile(path)
    put(history, entries)
    app = QosApp(source or ScriptedSource(demo()), Scope(), history=history)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "U")
        assert isinstance(pilot.app.screen, UndoScreen)
        await until(pilot, lambda: len(table(pilot).rows) == len(entries))
        yield pilot


def put(history: HistoryFile, entries: Iterable[Entry]) -> None:
    for entry in entries:
        history.put(entry)


def table(pilot: Run) -> LineTable[Entry]:
    return pilot.app.screen.query_one(LineTable)


def source_of(pilot: Run) -> ScriptedSource:
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    return source


def last_write(pilot: Run) -> PatchRequest:
    return source_of(pilot).scripted.heard_of("write")[-1]


async def seen(pilot: Run, text: str) -> None:
    await until(pilot, lambda: text in words(pilot))


async def on_the_way(pilot: Run) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, ApplyScreen))


async def test_the_newest_is_first_and_the_one_under_the_cursor_is_whole() -> None:
    older = applied("0000", "128Mi", "256Mi", at="2026-11-19T09:00:00Z")
    refused = applied("0002", "512Mi", "9Gi", state=EntryState.REFUSED, message="exceeded quota [team]")
    async with undoing(older, OURS, refused) as pilot:
        assert [row.id for row in table(pilot).rows] == ["0002", "0001", "0000"]
        assert "refused: exceeded quota [team]" in words(pilot)
        await press(pilot, "down", "down")
        assert f"shop/pod/{API} in scripted c requests.memory 128Mi → 256Mi done" in words(pilot)
        assert "2026-11-19 09:00" in words(pilot)


async def test_nothing_applied_says_so() -> None:
    async with undoing() as pilot:
        assert "Nothing was applied yet." in words(pilot)
        await press(pilot, "u", "enter")
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_it_is_taken_back_by_the_same_road() -> None:
    async with undoing(OURS) as pilot:
        for how in ("u", "enter"):
            await press(pilot, how)
            await on_the_way(pilot)
            await press(pilot, "escape")
        await pilot.click(LineTable, offset=(9, 1 + HEADER), times=2)
        await on_the_way(pilot)
        text = words(pilot)
        assert f"revert a change of pod shop/{API}" in text
        assert "c requests.memory 512Mi → 256Mi" in text
        assert "> in place" in text
        assert not source_of(pilot).scripted.heard
        await press(pilot, "a")
        await seen(pilot, "Write this to the cluster?")
        await press(pilot, "y")
        await seen(pilot, "the previous values are restored")
        assert last_write(pilot).edits == (memory("256Mi"),)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, UndoScreen)
        await until(pilot, lambda: len(table(pilot).rows) == 2)
        newest, oldest = app_of(pilot).writing.history.entries()[::-1]
        assert (newest.undoes, oldest.id) == ("0001", "0001")
        assert "done (an undo)" in words(pilot)
        assert "undone" in words(pilot)
        await press(pilot, "down", "u")
        await seen(pilot, "cannot be reverted: already reverted")


async def test_an_undo_can_be_taken_back_too() -> None:
    source = ScriptedSource(demo())
    undo = applied("0002", "1Gi", "512Mi", undoes="0001")
    async with undoing(applied("0001", "512Mi", "1Gi"), undo, source=source) as pilot:
        await press(pilot, "u")
        await on_the_way(pilot)
        assert "c requests.memory 512Mi → 1Gi" in words(pilot)


async def test_a_template_is_taken_back_through_its_workload() -> None:
    entry = replace(OURS, kind="Deployment", name="api", uid="d-1", subresource="")
    async with undoing(entry) as pilot:
        await press(pilot, "u")
        await on_the_way(pilot)
        assert "revert a change of deployment shop/api" in words(pilot)
        assert "> through deployment/api 3 pods are replaced" in words(pilot)
        assert "PATCH /apis/apps/v1/namespaces/shop/deployments/api?" in words(pilot)
        assert [pod.kind for pod in source_of(pilot).looked_around] == ["Deployment"]


async def test_what_someone_else_changed_since_is_shown_as_three_values() -> None:
    source = ScriptedSource(demo())
    async with undoing(applied("0001", "256Mi", "1Gi"), source=source) as pilot:
        await press(pilot, "u")
        await on_the_way(pilot)
        text = words(pilot)
        assert "! someone else has changed this since:" in text
        assert "before ours theirs c requests.memory 256Mi 1Gi 512Mi" in text
        await press(pilot, "a")
        await seen(pilot, "change c requests.memory 512Mi → 256Mi")


WHY_NOT: tuple[tuple[Entry, str], ...] = (
    (replace(OURS, state=EntryState.REFUSED), "the server refused it: nothing was changed"),
    (replace(OURS, context="prod"), "it was applied in prod, this is scripted: go there first (:ctx)"),
    (applied("0001", "512Mi", "1Gi"), "nothing to undo"),
    (replace(OURS, uid="another"), "was deleted and recreated since the change"),
)


async def test_what_cannot_be_taken_back_says_why() -> None:
    for entry, sentence in WHY_NOT:
        async with undoing(entry) as pilot:
            await press(pilot, "u")
            await seen(pilot, "! cannot be reverted:")
            assert sentence in words(pilot)
            assert isinstance(pilot.app.screen, UndoScreen)
            assert not source_of(pilot).scripted.heard


async def test_a_pod_that_is_gone_says_so() -> None:
    source = ScriptedSource(demo())
    source.around = ApiError(f'pods "{API}" not found', status=404, reason="NotFound")
    async with undoing(OURS, source=source) as pilot:
        await press(pilot, "u")
        await seen(pilot, f'cannot be reverted: pods "{API}" not found (404)')


async def test_an_object_that_nothing_can_be_made_of_says_so() -> None:
    source = ScriptedSource(demo())
    uid = pod_named(demo(), API).metadata.uid
    named = {"name": API, "namespace": "shop", "uid": uid}
    source.around = lambda _: RelatedObjects(raw={"kind": "Pod", "metadata": named})
    async with undoing(OURS, source=source) as pilot:
        await press(pilot, "u")
        await seen(pilot, "container c is not valid for pod")
        assert isinstance(pilot.app.screen, UndoScreen)


@pytest.mark.parametrize("state", [EntryState.SENT, EntryState.UNKNOWN])
async def test_what_may_have_happened_can_be_taken_back(state: EntryState) -> None:
    async with undoing(replace(OURS, state=state, message="connection reset")) as pilot:
        assert "unknown" in words(pilot)
        await press(pilot, "u")
        await on_the_way(pilot)


async def test_an_answer_after_leaving_opens_nothing() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    async with undoing(OURS, source=source) as pilot:
        await press(pilot, "u", "u")
        assert "loading the object" in words(pilot)
        await press(pilot, "escape")
        source.hold_around.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        assert len(source.looked_around) == 1


async def test_an_answer_under_another_screen_opens_nothing() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    async with undoing(OURS, source=source) as pilot:
        undo = pilot.app.screen
        assert isinstance(undo, UndoScreen)
        await press(pilot, "u", "question_mark")
        source.hold_around.set()
        await until(pilot, lambda: undo._loading is None)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, UndoScreen)


async def test_looking_again_asks_anew_what_is_there() -> None:
    from kubectl_qos.edit.apply import ConflictError

    source = ScriptedSource(demo())
    source.scripted.rehearsals = [ConflictError("someone was faster", ())]
    async with undoing(OURS, source=source) as pilot:
        await press(pilot, "u")
        await on_the_way(pilot)
        await press(pilot, "d")
        await seen(pilot, "someone was faster")
        source.around = gone_back
        await press(pilot, "l")
        await seen(pilot, "nothing to undo")
        assert isinstance(pilot.app.screen, UndoScreen)


def gone_back(pod: Pod) -> RelatedObjects:
    """Someone else has given the pod what it had before."""
    raw = dict(DemoSource().raw(pod))
    raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "256Mi"
    return replace(around(pod_named(demo(), API)), raw=raw)


async def test_earlier_runs_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    async with undoing(OURS, path=path):
        pass
    app = QosApp(ScriptedSource(demo()), Scope(), history=HistoryFile(path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "colon")
        await type_text(pilot, "undo")
        await press(pilot, "enter")
        await until(pilot, lambda: len(table(pilot).rows) == 1)
        assert "512Mi" in words(pilot)


async def test_a_journal_that_cannot_be_kept_says_so_where_it_matters() -> None:
    app = QosApp(ScriptedSource(demo()), Scope(), history=HistoryFile(Path("/proc/nowhere/journal")))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        app.edit(pod_named(demo(), API))
        await pilot.pause()
        await until(pilot, lambda: "reading owners" not in words(pilot))
        app.screen.form.put([memory("1Gi")])  # type: ignore[attr-defined]
        await press(pilot, "ctrl+s", "a")
        await seen(pilot, "Write this to the cluster?")
        await press(pilot, "y")
        await seen(pilot, "the change history is kept for this run only")
        await press(pilot, "escape", "U")
        await until(pilot, lambda: len(table(pilot).rows) == 1)


async def test_names_from_the_journal_are_only_text() -> None:
    nasty = replace(OURS, name="[b]x\x1b[31m", context="[c]\x1b")
    async with undoing(nasty) as pilot:
        assert "shop/pod/[b]x\\x1b[31m in [c]\\x1b" in words(pilot)


def test_the_scripted_deployment_has_the_container() -> None:
    assert deployment("shop", "api")["spec"]["template"]["spec"]["containers"][0]["name"] == "c"
