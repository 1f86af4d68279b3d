"""Keys that come faster than screens: those typed for one that is gone do nothing to the next one."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.events import Key
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import BindingGroup, actions_in_group
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import ConfirmDialog
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.sources import press, settled

CHARACTERS = {"slash": "/", "colon": ":", "question_mark": "?", "left_square_bracket": "["}


async def burst(pilot: Pilot[Any], *keys: str) -> None:
    """All of them at once, as a terminal hands over what was typed while the UI was busy."""
    for key in keys:
        pilot.app.post_message(Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))
    for _ in range(5):
        await pilot.pause()


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=(100, 30)) as found:
        await settled(found)
        yield found


LEAVING = (
    *((opened, "escape") for opened in ("d", "e", "v", "u", "question_mark", "f", "C", "x", "ctrl+p")),
    *((opened, "enter") for opened in ("f", "C", "x")),
    ("d", "left_square_bracket"),
    ("v", "left_square_bracket"),
)


async def test_leaving_many_times_leaves_once(pilot: Pilot[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    for opened, leaving in LEAVING:
        await press(pilot, opened)
        assert len(pilot.app.screen_stack) == 2
        await burst(pilot, *[leaving] * 6)
        await press(pilot, *["escape"] * 3)
        assert isinstance(pilot.app.screen, MainScreen), (opened, leaving)
        assert len(pilot.app.screen_stack) == 1
        assert pilot.app.screen.table.rows


async def test_answering_a_question_many_times_answers_once(pilot: Pilot[Any]) -> None:
    await press(pilot, "e", "tab", "1", "G", "i", "escape")
    assert isinstance(pilot.app.screen, ConfirmDialog)
    await burst(pilot, "y", "y", "y", "escape")
    assert len(pilot.app.screen_stack) == 1


async def test_opening_many_times_opens_once(pilot: Pilot[Any]) -> None:
    for opening in ("d", "e", "v", "u", "f", "C", "x", "X"):
        await burst(pilot, *[opening] * 4)
        assert len(pilot.app.screen_stack) == 2, opening
        await press(pilot, "escape")
        if isinstance(pilot.app.screen, ConfirmDialog):  # the other letters were typed into a field
            await press(pilot, "y")


async def test_keys_for_a_palette_that_is_not_laid_out_yet(pilot: Pilot[Any]) -> None:
    for size in ((100, 30), (60, 15), (30, 4)):
        await pilot.resize_terminal(*size)
        for key in ("pagedown", "pageup", "down", "up", "enter"):
            await burst(pilot, "ctrl+p", key, key, key)
            await burst(pilot, "s", key, "z", key, "backspace", key)
            await press(pilot, *["escape"] * 4)
            assert isinstance(pilot.app.screen, MainScreen), (size, key)


async def test_what_follows_an_opening_key_is_for_the_screen_that_opens_or_for_nobody(
    pilot: Pilot[Any],
) -> None:
    await burst(pilot, "d", "escape", "d", "escape", "v", "escape")
    await press(pilot, "escape", "escape")
    assert isinstance(pilot.app.screen, MainScreen)


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


async def test_what_was_left_is_not_kept(pilot: Pilot[Any]) -> None:
    for opened in ("d", "e", "v", "u", "question_mark", "f", "C", "x"):
        for _ in range(3):
            await press(pilot, opened, "escape")
    gc.collect()
    kept = Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, Widget))
    assert kept["FooterKey"] < 40
    assert {name for name in kept if name.endswith("Screen")} <= {"MainScreen"}


async def test_the_footer_is_composed_only_where_its_keys_are_others(
    pilot: Pilot[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    composed: list[Footer] = []
    compose = Footer.compose

    def counted(footer: Footer) -> ComposeResult:
        composed.append(footer)
        return compose(footer)

    monkeypatch.setattr(Footer, "compose", counted)
    await press(pilot, "j", "tab", "escape", "s")
    assert not composed
    await press(pilot, "slash")
    assert len(composed) == 1
    shown = [key.description for key in pilot.app.screen.query(FooterKey)]
    wanted = [action.label for action in actions_in_group(BindingGroup.PROMPT) if action.footer]
    assert shown[: len(wanted)] == wanted
