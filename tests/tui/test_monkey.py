"""A minute of random keys, mouse and resizes: nothing may raise, hang or grow."""

from __future__ import annotations

import gc
import os
import random
import time
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import OutOfBounds, Pilot

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import ACTIONS, BindingGroup, actions_in_group
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import ConfirmDialog
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.sources import settled

SECONDS = float(os.environ.get("QOS_MONKEY_SECONDS", "0"))
SEED = int(os.environ.get("QOS_MONKEY_SEED", "1"))
GROWN_AT_MOST = 4 << 20
"""Bytes of Python objects between the end of the first third and the end."""
LEAVING = {"q", "ctrl+c", "ctrl+q"}
KEYS = sorted({key for action in ACTIONS for key in action.keys} - LEAVING)
IN_LISTS = sorted({key for action in actions_in_group(BindingGroup.MAIN) for key in action.keys})
TYPED = [*"abdeginop0123456789.-:>=!^$*[]/@", "space", "backspace", "delete", "enter", "escape", "é", "界"]
SIZES = [(80, 24), (120, 40), (200, 60), (60, 15), (59, 14), (300, 20), (30, 8), (1, 1)]

Step = Callable[[Pilot[Any]], Awaitable[Any]]


def step(chance: random.Random, app: QosApp) -> tuple[str, Step]:
    """What the monkey does next, and its name."""
    draw = chance.random()
    width, height = app.size
    at = (chance.randrange(max(width, 1)), chance.randrange(max(height, 1)))
    if draw < 0.03:
        size = chance.choice(SIZES)
        return f"resize {size}", lambda pilot: pilot.resize_terminal(*size)
    if draw < 0.10:
        times = chance.choice((1, 1, 2))
        return f"click {at} x{times}", lambda pilot: pilot.click(offset=at, times=times)
    if draw < 0.13:
        return f"hover {at}", lambda pilot: pilot.hover(offset=at)
    key = chance.choice(IN_LISTS if draw < 0.45 else KEYS if draw < 0.8 else TYPED)
    return key, lambda pilot: pilot.press(key)


async def home(pilot: Pilot[Any]) -> MainScreen:
    """Escape leads to the lists from everywhere."""
    for _ in range(30):
        if isinstance(pilot.app.screen, MainScreen):
            break
        await pilot.press("y" if isinstance(pilot.app.screen, ConfirmDialog) else "escape")
    assert isinstance(pilot.app.screen, MainScreen)
    return pilot.app.screen


@pytest.mark.skipif(not SECONDS, reason="it takes a minute: make monkey")
async def test_a_minute_of_a_monkey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    chance = random.Random(SEED)
    done: deque[str] = deque(maxlen=40)
    app = QosApp(DemoSource(), Scope())
    begin = time.monotonic()
    sizes: list[int] = []
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        tracemalloc.start()
        try:
            while time.monotonic() < begin + SECONDS:
                for _ in range(50):
                    name, act = step(chance, app)
                    done.append(name)
                    try:
                        await act(pilot)
                    except OutOfBounds:
                        done.append("(nothing there)")
                    assert not app._exit, f"it left by itself after {list(done)}"
                await pilot.resize_terminal(100, 30)
                main = await home(pilot)
                await pilot.press("escape", "escape", "escape", "4", "g")
                await settled(pilot)
                if main.table.rows:
                    main.table.focus()
                    await pilot.press("g", "j")
                    assert main.table.cursor == min(1, len(main.table.rows) - 1), list(done)
                if time.monotonic() > begin + SECONDS / 3:
                    gc.collect()
                    sizes.append(tracemalloc.get_traced_memory()[0])
        except Exception as error:
            error.add_note(f"after {list(done)}")
            raise
        finally:
            tracemalloc.stop()
    assert not isinstance(app.return_value, Exception)
    assert min(sizes[-3:]) - min(sizes[:3]) < GROWN_AT_MOST, [size >> 20 for size in sizes]
