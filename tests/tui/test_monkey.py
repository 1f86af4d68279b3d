"""Random keys, mouse and resizes: no key at any moment, at no size, with no answer, may end the UI.

A minute of them may not grow either.
"""

from __future__ import annotations

import gc
import os
import random
import time
import tracemalloc
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.pilot import OutOfBounds
from textual.screen import Screen

import kubectl_qos
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.actions import ACTIONS, BindingGroup, actions_in_group
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import LeaveDialog
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.emulator import Emulator
from tests.tui.sources import API, Run, ScriptedSource, demo, running, with_usage, without

SECONDS = float(os.environ.get("QOS_MONKEY_SECONDS", "0"))
PRESSES = 60
SEED = int(os.environ.get("QOS_MONKEY_SEED", "1"))
GROWN_AT_MOST = 384 << 10
"""Bytes between the end of the first third and the end."""
SCREENS_AT_MOST = 8
"""The lists, and what the last message, binding or timer still names."""
OWN = tracemalloc.Filter(inclusive=True, filename_pattern=f"{Path(kubectl_qos.__file__).parent}/*")
"""What the product's own lines made: Textual's caches have bounds, and fill for minutes."""
LEAVING = {"q", "ctrl+c", "ctrl+q"}
KEYS = sorted({key for action in ACTIONS for key in action.keys} - LEAVING)
IN_LISTS = sorted({key for action in actions_in_group(BindingGroup.MAIN) for key in action.keys})
TYPED = [
    *"abdeginop0123456789.-:>=!^$*[]/@",
    "space",
    "backspace",
    "delete",
    "enter",
    "escape",
    "f5",
    "é",
    "界",
]
SIZES = [(80, 24), (120, 40), (200, 60), (60, 15), (59, 14), (300, 20), (30, 8), (1, 1)]

Step = Callable[[Run], Awaitable[Any]]


def step(chance: random.Random, app: QosApp) -> tuple[str, Step]:
    """What the monkey does next, and its name."""
    draw = chance.random()
    width, height = app.size
    # Not in the footer: it has quit.
    at = (chance.randrange(max(width, 1)), chance.randrange(max(height - 1, 1)))
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


async def home(pilot: Run) -> MainScreen:
    """Escape leads to the lists from everywhere."""
    for _ in range(30):
        if isinstance(pilot.app.screen, MainScreen):
            break
        await pilot.press("y" if isinstance(pilot.app.screen, LeaveDialog) else "escape")
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
    async with running(app, size=(100, 30), painted=True) as pilot:
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
                await pilot.settled()
                if main.table.rows:
                    main.table.focus()
                    await pilot.press("g", "j")
                    assert main.table.cursor == min(1, len(main.table.rows) - 1), list(done)
                if time.monotonic() > begin + SECONDS / 3:
                    gc.collect()
                    screens = [type(one).__name__ for one in gc.get_objects() if isinstance(one, Screen)]
                    assert len(screens) <= SCREENS_AT_MOST, screens
                    kept = tracemalloc.take_snapshot().filter_traces([OWN])
                    sizes.append(sum(trace.size for trace in kept.traces))
        except Exception as error:
            error.add_note(f"after {list(done)}")
            raise
        finally:
            tracemalloc.stop()
    assert not isinstance(app.return_value, Exception)
    assert min(sizes[-3:]) - min(sizes[:3]) < GROWN_AT_MOST, [size >> 10 for size in sizes]


async def test_random_keys_clicks_sizes_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.tui.screens.dialogs.save", lambda *_, **__: None)
    chance = random.Random(SEED)
    refused = ServerUnreachable("no answer")
    answers: list[Snapshot | ServerUnreachable] = [demo(), with_usage(demo(), "thumbs-", 6 << 30), refused]
    answers += [without(demo(), API), Snapshot(), replace(demo(), nodes={})]
    chance.shuffle(answers)
    app = QosApp(ScriptedSource(*answers), Scope())
    terminal = Emulator()

    def display(_: Screen[Any], update: LayoutUpdate | ChopsUpdate | None) -> None:
        if update is not None:
            terminal.feed(app._output.write(update, ColorSystem.TRUECOLOR))

    monkeypatch.setattr(app, "_display", display)
    async with running(app, size=(80, 24), ready=False, painted=True) as pilot:
        await pilot.pause()
        for _ in range(PRESSES):
            with suppress(OutOfBounds):
                await step(chance, app)[1](pilot)
            assert not app._exit
            await pilot.pause()
            assert terminal.shows(app.screen._compositor.render_strips())
        await pilot.settled()
    assert not isinstance(app.return_value, Exception)


async def test_every_key_on_every_screen_of_an_empty_cluster() -> None:
    async with running(ScriptedSource(Snapshot()), size=(80, 24), painted=True) as pilot:
        for key in KEYS:
            await pilot.press(key)
            await pilot.press("escape")
        await pilot.pause()
