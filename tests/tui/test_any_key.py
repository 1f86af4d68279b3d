"""No key at any moment, at no size, and with no answer of a source, may end the UI."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.actions import ACTIONS
from kubectl_qos.tui.app import QosApp
from tests.tui.sources import ScriptedSource, demo, settled, with_usage, without

LEAVING = {"q", "ctrl+c", "ctrl+q"}
KEYS = sorted(
    ({key for action in ACTIONS for key in action.keys} - LEAVING)
    | set("abilnoyz0123456789/.!-") - LEAVING
    | {"backspace", "delete", "ctrl+k", "ctrl+d", "ctrl+u", "f5", "é", "界", "enter"}
)
SIZES = [(80, 24), (120, 40), (60, 15), (59, 14), (200, 60), (30, 8), (1, 1)]
PRESSES = 90


@pytest.mark.parametrize("seed", range(2))
async def test_random_keys_clicks_sizes_and_answers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    refused = ServerUnreachable("no answer")
    answers: list[Snapshot | ServerUnreachable] = [demo(), with_usage(demo(), "thumbs-", 6 << 30)]
    answers += [without(demo(), "api-7d9c5b6f8-x2mzq"), Snapshot(), replace(demo(), nodes={}), refused]
    chance.shuffle(answers)
    source = ScriptedSource(*answers)
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    app = QosApp(source, Scope())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for _ in range(PRESSES):
            if chance.random() < 0.06:
                await pilot.resize_terminal(*chance.choice(SIZES))
            elif chance.random() < 0.06:
                width, height = app.size
                await pilot.click(offset=(chance.randrange(width), chance.randrange(height)))
            else:
                await pilot.press(chance.choice(KEYS))
            if app._exit:
                break
        await settled(pilot)
    assert not isinstance(app.return_value, Exception)


@pytest.mark.parametrize("size", [(80, 24), (30, 8)])
async def test_every_key_on_every_screen_of_an_empty_cluster(size: tuple[int, int]) -> None:
    async with QosApp(ScriptedSource(Snapshot()), Scope()).run_test(size=size) as pilot:
        await settled(pilot)
        for key in KEYS:
            await pilot.press(key)
            await pilot.press("escape")
        await pilot.pause()
