"""What was applied, and reverting it: the same way, and never blindly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.edit import apply_state
from kubectl_qos.edit.edits import PatchRequest
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.tui.screens.apply import ApplyScreen, UndoScreen, _token
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from tests.tui.sources import API, Run, ScriptedSource, applied, demo, pod_named, running, with_usage
from tests.tui.writers import around, memory


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 0.02)


OURS = applied("0001", "256Mi", "512Mi")
"""What made the pod what it is in the demo."""


@pytest.mark.parametrize(
    ("state", "token"), [("did not hold", "warning"), ("held", ""), ("refused", "muted")]
)
def test_a_change_that_did_not_hold_is_highlighted(state: str, token: str) -> None:
    assert _token(replace(OURS, state=EntryState(state)), "state") == token


@asynccontextmanager
async def undoing(
    *entries: Entry, source: ScriptedSource | None = None, path: Path | None = None
) -> AsyncIterator[Run]:
    """The list of these."""
    history = HistoryFile(path)
    put(history, entries)
    async with running(source or ScriptedSource(demo()), "U", history=history) as pilot:
        assert isinstance(pilot.app.screen, UndoScreen)
        await pilot.until(lambda: len(table(pilot).rows) == len(entries))
        yield pilot


def put(history: HistoryFile, entries: Iterable[Entry]) -> None:
    for entry in entries:
        history.put(entry)


def table(pilot: Run) -> LineTable[Entry]:
    return pilot.app.screen.query_one(LineTable)


def last_write(pilot: Run) -> PatchRequest:
    return pilot.source.scripted.heard_of("write")[-1]


async def until_ready(pilot: Run) -> None:
    await pilot.until(lambda: isinstance(pilot.app.screen, ApplyScreen))


async def test_nothing_applied_says_so() -> None:
    async with undoing() as pilot:
        assert "Nothing has been applied yet." in pilot.words
        assert "u undo it" not in pilot.words
        await pilot.keys("u", "enter")
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_what_is_open_grows_older_and_sees_how_a_change_ends() -> None:
    async with undoing(replace(OURS, state=EntryState.ACCEPTED)) as pilot:
        assert "2m ago" in pilot.words
        assert "accepted" in pilot.words
        put(pilot.qos.writing.history, [OURS])
        pilot.source.later(300)
        view_model = pilot.qos.view_model
        assert view_model is not None
        pilot.qos.view_model = replace(view_model, snapshot=with_usage(view_model.snapshot, "crunch-", 5))
        await pilot.seen("7m ago")
        assert "accepted" not in pilot.words


async def test_it_is_reverted_the_same_way() -> None:
    async with undoing(OURS) as pilot:
        for how in ("u", "enter"):
            await pilot.keys(how)
            await until_ready(pilot)
            await pilot.keys("escape")
        await pilot.click(LineTable, offset=(9, 1 + HEADER), times=2)
        await until_ready(pilot)
        text = pilot.words
        assert f"revert a change of pod shop/{API}" in text
        assert "c requests.memory 512Mi → 256Mi" in text
        assert "> in place" in text
        assert not pilot.source.scripted.heard
        await pilot.keys("a")
        await pilot.seen("Write this to the cluster?")
        await pilot.keys("y")
        await pilot.seen("the previous values are restored")
        assert last_write(pilot).edits == (memory("256Mi"),)
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, UndoScreen)
        await pilot.until(lambda: len(table(pilot).rows) == 2)
        newest, oldest = pilot.qos.writing.history.entries()[::-1]
        assert (newest.undoes, oldest.id) == ("0001", "0001")
        assert "done (an undo)" in pilot.words
        assert "undone" in pilot.words
        await pilot.keys("down", "u")
        await pilot.seen("cannot be reverted: already reverted")


async def test_an_undo_can_be_reverted_too() -> None:
    undo = applied("0002", "1Gi", "512Mi", undoes="0001")
    async with undoing(applied("0001", "512Mi", "1Gi"), undo) as pilot:
        await pilot.keys("u")
        await until_ready(pilot)
        assert "c requests.memory 512Mi → 1Gi" in pilot.words


async def test_a_template_is_reverted_through_its_workload() -> None:
    entry = replace(OURS, kind="Deployment", name="api", uid="d-1", subresource="")
    async with undoing(entry) as pilot:
        await pilot.keys("u")
        await until_ready(pilot)
        assert "revert a change of deployment shop/api" in pilot.words
        assert "> through deployment/api 3 pods are replaced" in pilot.words
        assert "PATCH /apis/apps/v1/namespaces/shop/deployments/api?" in pilot.words
        assert [pod.kind for pod in pilot.source.looked_around] == ["Deployment"]


async def test_what_someone_else_changed_since_is_shown_as_three_values() -> None:
    source = ScriptedSource(demo())
    async with undoing(applied("0001", "256Mi", "1Gi"), source=source) as pilot:
        await pilot.keys("u")
        await until_ready(pilot)
        text = pilot.words
        assert "! someone else has changed this since:" in text
        assert "before ours theirs c requests.memory 256Mi 1Gi 512Mi" in text
        await pilot.keys("a")
        await pilot.seen("change c requests.memory 512Mi → 256Mi")


WHY_NOT: tuple[tuple[Entry, str], ...] = (
    (replace(OURS, id="0009", state=EntryState.REFUSED), "the server refused it: nothing was changed"),
    (
        replace(OURS, id="0008", context="prod"),
        "it was applied in prod, this is scripted: go there first (:ctx)",
    ),
    (applied("0007", "512Mi", "1Gi"), "nothing to undo"),
    (replace(OURS, id="0006", uid="another"), "was deleted and recreated since the change"),
)


async def test_what_cannot_be_reverted_says_why() -> None:
    async with undoing(*(entry for entry, _ in WHY_NOT)) as pilot:
        for _, sentence in WHY_NOT:
            await pilot.keys("u")
            await pilot.seen(sentence)
            assert "! cannot be reverted:" in pilot.words
            assert isinstance(pilot.app.screen, UndoScreen)
            await pilot.keys("down")
        assert not pilot.source.scripted.heard
    uid = pod_named(demo(), API).metadata.uid
    named = {"name": API, "namespace": "shop", "uid": uid}
    async with undoing(OURS) as pilot:
        pilot.source.around = ApiError(f'pods "{API}" not found', status=404, reason="NotFound")
        await pilot.keys("u")
        await pilot.seen(f'cannot be reverted: pods "{API}" not found (404)')
        pilot.source.around = lambda _: RelatedObjects(raw={"kind": "Pod", "metadata": named})
        await pilot.keys("u")
        await pilot.seen("container c is not valid for pod")
        assert isinstance(pilot.app.screen, UndoScreen)


async def test_what_may_have_happened_can_be_reverted() -> None:
    states = [replace(OURS, id=state, state=state) for state in (EntryState.SENT, EntryState.UNKNOWN)]
    async with undoing(*states) as pilot:
        for entry in reversed(states):
            assert table(pilot).row == entry
            assert "unknown" in pilot.words
            await pilot.keys("u")
            await until_ready(pilot)
            await pilot.keys("escape", "down")


async def test_an_answer_after_leaving_opens_nothing() -> None:
    source = ScriptedSource(demo())
    source.hold_around.clear()
    async with undoing(OURS, source=source) as pilot:
        undo = pilot.app.screen
        assert isinstance(undo, UndoScreen)
        await pilot.keys("u", "question_mark")
        source.hold_around.set()
        await pilot.until(lambda: undo._loading is None)
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, UndoScreen)
        # An answer after leaving opens nothing.
        source.hold_around.clear()
        source.looked_around.clear()
        await pilot.keys("u", "u")
        assert "loading the object" in pilot.words
        await pilot.keys("escape")
        source.hold_around.set()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        assert len(source.looked_around) == 1


async def test_reloading_reads_the_object_again() -> None:
    from kubectl_qos.edit.apply_state import ConflictError

    source = ScriptedSource(demo())
    source.scripted.dry_runs = [ConflictError("someone was faster", ())]
    async with undoing(OURS, source=source) as pilot:
        await pilot.keys("u")
        await until_ready(pilot)
        await pilot.keys("d")
        await pilot.seen("someone was faster")
        source.around = gone_back
        await pilot.keys("l")
        await pilot.seen("nothing to undo")
        assert isinstance(pilot.app.screen, UndoScreen)


def gone_back(pod: Pod) -> RelatedObjects:
    """Someone else has given the pod what it had before."""
    raw = dict(DemoSource().raw(pod))
    raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "256Mi"
    return structs.replace(around(pod_named(demo(), API)), raw=raw)


async def test_earlier_runs_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    async with undoing(OURS, path=path):
        pass
    async with running(ScriptedSource(demo()), history=HistoryFile(path)) as pilot:
        await pilot.go_to("undo")
        await pilot.until(lambda: len(table(pilot).rows) == 1)
        assert "512Mi" in pilot.words


async def test_a_history_that_cannot_be_kept_says_so_where_it_matters() -> None:
    history = HistoryFile(Path("/proc/nowhere/history"))
    async with running(ScriptedSource(demo()), history=history) as pilot:
        pilot.qos.edit(pod_named(demo(), API))
        await pilot.pause()
        await pilot.until(lambda: "reading owners" not in pilot.words)
        pilot.app.screen.form.put([memory("1Gi")])  # type: ignore[attr-defined]
        await pilot.keys("ctrl+s", "a")
        await pilot.seen("Write this to the cluster?")
        await pilot.keys("y")
        await pilot.seen("the change history is kept for this run only")
        await pilot.keys("escape", "U")
        await pilot.until(lambda: len(table(pilot).rows) == 1)


async def test_names_from_the_history_are_only_text() -> None:
    nasty = replace(OURS, name="[b]x\x1b[31m", context="[c]\x1b")
    async with undoing(nasty) as pilot:
        assert "shop/pod/[b]x\\x1b[31m in [c]\\x1b" in pilot.words
