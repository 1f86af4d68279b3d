"""The whole road of a newcomer, without a cluster: see a death, find why, fix it, and undo the fix."""

import pytest

from kubectl_qos.demo.script import SAMPLE_SECONDS
from kubectl_qos.demo.world import RESIZE_SECONDS
from kubectl_qos.edit import apply_state
from kubectl_qos.edit.history import EntryState
from kubectl_qos.tui.screens.edit import EditScreen
from tests.demo.living import FULL_AT, IMPORTER, Stepped, limit
from tests.tui.sources import Run, running


async def later(pilot: Run, demo: Stepped, seconds: int) -> None:
    """Step the clock, and wait until what happened is shown."""
    demo.seconds += seconds
    await pilot.keys("r")
    await pilot.settled()


async def carried_out(pilot: Run, demo: Stepped, changes: int, words: str) -> None:
    """Confirm a change, step the clock by what the kubelet takes, and wait for the end of it."""
    history = pilot.qos.writing.history
    await pilot.seen("Write this to the cluster?")
    await pilot.keys("y")
    await pilot.until(
        lambda: [one.state for one in history.entries()][changes - 1 :] == [EntryState.ACCEPTED]
    )
    demo.later(1)
    demo.later(RESIZE_SECONDS)
    await pilot.seen(words)


async def test_a_death_is_seen_explained_fixed_and_the_fix_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 0.1)
    demo = Stepped()
    async with running(demo, size=(200, 50)) as pilot:
        assert "live" in pilot.words
        for _ in range(7):
            await later(pilot, demo, SAMPLE_SECONDS)
        await pilot.filter_by("importer")
        row = next(line for line in pilot.text.splitlines() if f" {IMPORTER} " in line and "~7 s" in line)
        assert " NL " in row, "it is near its limit, and a straight line through its growth says when"
        await pilot.keys("w")
        # Paused, the list stays as it is.
        await pilot.keys("p")
        before = pilot.text
        demo.seconds = FULL_AT
        await pilot.pause()
        assert IMPORTER in before
        assert "paused" in pilot.words
        await pilot.keys("p")
        await later(pilot, demo, 1)
        await pilot.until(lambda: [row.restarts for row in pilot.main.table.rows] == [1])
        # Who died, and why.
        await pilot.go_to("kills")
        await pilot.seen(
            "certain: killed by the kernel at its own limit (the pod's memory limit), 2026-11-20T12:00:41Z"
        )
        assert "why this process the victim was importer" in pilot.words
        # The fix.
        await pilot.keys("enter", "e")
        screen = pilot.app.screen
        assert isinstance(screen, EditScreen)
        await pilot.until(lambda: "reading owners" not in pilot.words)
        screen.form.put([limit("160Mi")])
        await pilot.keys("ctrl+s")
        await pilot.seen("PATCH /api/v1/namespaces/data/pods/importer-")
        await pilot.keys("a")
        await carried_out(pilot, demo, 1, "U reverts it")
        # And back.
        await pilot.keys("escape")
        await pilot.keys("U")
        await pilot.seen("limits.memory 117.7Mi → 160Mi")
        await pilot.keys("u")
        await pilot.until(lambda: "loading" not in pilot.words)
        await pilot.keys("a")
        await carried_out(pilot, demo, 2, "the previous values are restored")
        entries = pilot.qos.writing.history.entries()
        assert [(entry.state, bool(entry.undoes)) for entry in entries] == [
            (EntryState.DONE, False),
            (EntryState.DONE, True),
        ]
    assert demo.pod().containers[0].limits["memory"].value() == 123456789


async def test_two_keys_from_a_cold_start_show_what_to_change_and_the_rest_applies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apply_state, "LONGEST_PAUSE_SECONDS", 0.1)
    demo = Stepped()
    async with running(demo, size=(80, 24), at_first=False) as pilot:
        for width, height in ((80, 24), (120, 35), (200, 50)):
            await pilot.resize_terminal(width, height)
            await pilot.seen("F fix container c: memory limit 117.7Mi → 144Mi, now, in place")
        await pilot.keys("F")
        await pilot.seen("own limit 98%: +2Mi → +29Mi")
        await pilot.keys("enter")
        await pilot.seen("limits.memory was 123456789")
        assert isinstance(pilot.app.screen, EditScreen)
        await pilot.until(lambda: "reading owners" not in pilot.words)
        await pilot.keys("ctrl+s")
        await pilot.seen("PATCH /api/v1/namespaces/data/pods/importer-")
        await pilot.keys("a")
        await carried_out(pilot, demo, 1, "U reverts it")
    assert demo.pod().containers[0].limits["memory"].value() == 144 << 20
