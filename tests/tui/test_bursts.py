"""Keys that come faster than screens: those typed for one that is gone do nothing to the next one."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widget import Widget

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import Confirm
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.sources import press, settled

CHARACTERS = {"slash": "/", "colon": ":", "question_mark": "?", "left_square_bracket": "["}


async def burst(pilot: Pilot[Any], *keys: str) -> None:
    """All of them at once, as a terminal hands over what was typed while the UI was busy."""
    for key in keys:
        pilot.app.post_message(Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))
    for _ in range(5):
        await pilot.pause()


@pytest.mark.parametrize(
    ("opened", "leaving"),
    [
        *((opened, "escape") for opened in ("d", "e", "v", "u", "question_mark", "f", "C", "x", "ctrl+p")),
        *((opened, "enter") for opened in ("f", "C", "x")),
        ("d", "left_square_bracket"),
        ("v", "left_square_bracket"),
    ],
)
async def test_leaving_many_times_leaves_once(
    opened: str, leaving: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, opened)
        await burst(pilot, *[leaving] * 6)
        await press(pilot, *["escape"] * 3)
        assert isinstance(app.screen, MainScreen)
        assert len(app.screen_stack) == 1
        assert app.screen.table.rows


async def test_answering_a_question_many_times_answers_once() -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "e", "tab", "1", "G", "i", "escape")
        assert isinstance(app.screen, Confirm)
        await burst(pilot, "y", "y", "y", "escape")
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize("opening", ["d", "e", "v", "u", "f", "C", "x", "X"])
async def test_opening_many_times_opens_once(opening: str) -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await burst(pilot, *[opening] * 4)
        assert len(app.screen_stack) == 2


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "enter"])
@pytest.mark.parametrize("size", [(100, 30), (60, 15), (30, 4)])
async def test_keys_for_a_palette_that_is_not_laid_out_yet(key: str, size: tuple[int, int]) -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await burst(pilot, "ctrl+p", key, key, key)
        await burst(pilot, "s", key, "z", key, "backspace", key)
        await press(pilot, *["escape"] * 4)
        assert isinstance(app.screen, MainScreen)


async def test_what_follows_an_opening_key_is_for_the_screen_that_opens_or_for_nobody() -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await burst(pilot, "d", "escape", "d", "escape", "v", "escape")
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, MainScreen)


@pytest.mark.parametrize("behind", [("j",), ("d", "escape"), ("slash", "a"), ("ctrl+p",)])
async def test_what_is_typed_behind_q_is_lost_without_a_word(behind: tuple[str, ...]) -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await burst(pilot, "j", "q", *behind)
    assert app.return_code == 0


async def test_a_key_that_is_under_way_when_the_app_ends_goes_nowhere() -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await app._key_order.take(Key("j", "j"))
    app._key_order._rounds = 2
    await app._key_order.passed(app._key_order._number)
    assert not app.screen_stack


async def test_what_was_left_is_not_kept() -> None:
    app = QosApp(DemoSource(), Scope())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        for opened in ("d", "e", "v", "u", "question_mark", "f", "C", "x"):
            for _ in range(3):
                await press(pilot, opened, "escape")
        gc.collect()
        kept = Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, Widget))
    assert kept["FooterKey"] < 40
    assert {name for name in kept if name.endswith("Screen")} <= {"MainScreen"}
