"""Keys that come faster than screens: those typed for one that is gone do nothing to the next one."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest
from textual.events import Key
from textual.widget import Widget

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui import terminal
from kubectl_qos.tui.actions import BindingGroup, actions_in_group
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.base import KeyFooter
from kubectl_qos.tui.screens.dialogs import LeaveDialog
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.sources import NAMED_KEYS, Run, running

CHARACTERS = {key: character for character, key in NAMED_KEYS.items()} | {"question_mark": "?"}


async def burst(pilot: Run, *keys: str) -> None:
    """All of them at once, as a terminal hands over what was typed while the UI was busy."""
    for key in keys:
        pilot.app.post_message(Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))
    await pilot.pause()


@pytest.fixture
async def pilot() -> AsyncIterator[Run]:
    async with running(size=(100, 30)) as found:
        yield found


LEAVING = (
    *((opened, "escape") for opened in ("d", "e", "question_mark", "ctrl+p")),
    *((opened, "enter") for opened in ("f", "C", "x")),
    ("v", "left_square_bracket"),
)


async def test_leaving_and_opening_many_times_does_it_once(
    pilot: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    for opened, leaving in LEAVING:
        await pilot.keys(opened)
        assert len(pilot.app.screen_stack) == 2
        await burst(pilot, *[leaving] * 4)
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen), (opened, leaving)
        assert len(pilot.app.screen_stack) == 1
        assert pilot.app.screen.table.rows
    # Opening many times opens once.
    for opening in ("d", "e", "f", "C", "X"):
        await burst(pilot, *[opening] * 3)
        assert len(pilot.app.screen_stack) == 2, opening
        await pilot.keys("escape")
        if isinstance(pilot.app.screen, LeaveDialog):  # the other letters were typed into a field
            await pilot.keys("y")
    # Answering a question many times answers once.
    await pilot.keys("e", "tab", "1", "G", "i", "escape")
    assert isinstance(pilot.app.screen, LeaveDialog)
    await burst(pilot, "y", "y", "y", "escape")
    assert len(pilot.app.screen_stack) == 1


async def test_keys_for_a_palette_that_is_not_laid_out_yet(pilot: Run) -> None:
    for size in ((100, 30), (30, 4)):
        await pilot.resize_terminal(*size)
        for key in ("pagedown", "pageup", "down", "up", "enter"):
            await burst(pilot, "ctrl+p", key, key, key)
            await burst(pilot, "s", key, "z", key, "backspace", key)
            await pilot.keys(*["escape"] * 4)
            assert isinstance(pilot.app.screen, MainScreen), (size, key)


@pytest.mark.parametrize("behind", [("d", "escape"), ("slash", "a")])
async def test_what_is_typed_behind_q_is_lost_without_a_word(behind: tuple[str, ...]) -> None:
    app = QosApp(DemoSource(), Scope())
    async with running(app, size=(100, 30)) as pilot:
        await burst(pilot, "j", "q", *behind)
    assert app.return_code == 0


async def test_a_key_that_is_under_way_when_the_app_ends_goes_nowhere() -> None:
    app = QosApp(DemoSource(), Scope())
    async with running(app, size=(100, 30)):
        await app._key_order.take(Key("j", "j"))
    app._key_order._rounds = 2
    await app._key_order.passed(app._key_order._number)
    assert not app.screen_stack


def widgets() -> Counter[str]:
    """How many widgets of each class are alive, those of other tests included."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, Widget))


async def test_what_was_left_is_not_kept(pilot: Run) -> None:
    before = widgets()
    for opened in ("d", "e", "v", "u", "question_mark", "f", "C", "x"):
        await pilot.keys(opened, "escape")
    kept = widgets() - before
    assert not {name for name in kept if name.endswith(("Screen", "Footer"))}


async def test_the_footer_is_painted_only_where_its_keys_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    render = Mock(side_effect=KeyFooter.render)
    async with running(size=(100, 30), painted=True) as pilot:
        monkeypatch.setattr(KeyFooter, "render", lambda footer: render(footer))  # noqa: PLW0108 - a method
        await pilot.keys("j", "tab", "escape", "s")
        render.assert_not_called()
        await pilot.keys("slash")
        render.assert_called_once()
        wanted = [action.label for action in actions_in_group(BindingGroup.PROMPT) if action.footer]
        assert pilot.footer[: len(wanted)] == wanted


def typed(pilot: Run, *keys: str) -> None:
    """What is typed faster than it is taken."""
    named = {**NAMED_KEYS, "\r": "enter", "\x1b": "escape"}
    driver = pilot.app._driver
    assert driver is not None
    for key in keys:
        driver.send_message(Key(named.get(key, key), key))


async def test_what_is_typed_ahead_goes_where_the_keys_before_it_led(
    pilot: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 60)
    main = pilot.main
    typed(pilot, *"/edex")
    await pilot.until(lambda: main.view.filter.text == "edex")
    assert not main.view.wide, "the letters of a filter are no commands"
    await pilot.keys("escape")
    for _ in range(3):
        typed(pilot, *"d\x1bj")
    await pilot.until(lambda: main.table.cursor == 3)
    assert len(pilot.app.screen_stack) == 1
    typed(pilot, *":node worker-1\rjj fcart\r")
    await pilot.until(lambda: pilot.names[main.table.cursor].startswith("cart-"))
    assert main.view.node == "worker-1"
    assert len(main.table.marked) == 1


async def test_a_key_whose_way_is_lost_does_not_stop_the_others(
    pilot: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QosApp, "on_passed", lambda *_: None)
    typed(pilot, *"jjj")
    await pilot.until(lambda: pilot.main.table.cursor == 3)
