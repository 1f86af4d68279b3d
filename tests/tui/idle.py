"""When an application of a test is at rest: Textual guesses it from the time that the process takes.

Such a guess takes 20 ms for each key, and is wrong on a machine with something else to do. Here it is known:
nothing is ready in the event loop, no timer is about to run, and no thread of the UI works. Only then the
screen is painted, once for all that has changed: what is painted before is what nobody looks at. A test whose
application is in UNSEEN looks by itself: its screen is painted then.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any, Final
from weakref import WeakSet

from textual._context import active_app
from textual.app import App
from textual.screen import Screen

SOON_SECONDS: Final = 0.035
"""Timers due within this time are waited for: that of the screen paints what has changed."""
LONGEST_CPU_SECONDS: Final = 1.0
"""The most CPU time of an application that never rests; other programs' work does not count."""
LONGEST_SECONDS: Final = 60.0
BLOCKED_TIMES: Final = 10
"""A thread seen in one place this many times, 1 ms apart, waits for something that the test has to do."""
WORKER: Final = "qos-worker"
CHANGED: Final[set[Screen[Any]]] = set()
"""Screens that are still to be painted."""
UNSEEN: Final[WeakSet[App[Any]]] = WeakSet()
"""Applications whose screen is not painted before a test looks at it."""
paint_now: Final = Screen._compositor_refresh


def paint_at_rest(screen: Screen[Any]) -> None:
    """Stand in for `Screen._compositor_refresh`."""
    CHANGED.add(screen)


def paint() -> bool:
    """Paint what has changed; return whether that was anything."""
    screens = [*CHANGED]
    CHANGED.clear()
    for screen in screens:
        if screen.is_running and screen is screen.app.screen and screen.app in UNSEEN:
            screen._dirty_widgets.clear()
            screen.app._update_mouse_over(screen)
        elif screen.is_running:
            paint_now(screen)
    return bool(screens)


async def at_rest(*_: Any, **__: Any) -> bool:
    """Return once nothing happens unless a key is pressed, a source answers, or time passes."""
    loop: Any = asyncio.get_running_loop()
    app = active_app.get(None)
    waiting: list[tuple[int, int]] | None = None
    times = 0
    end, end_of_work = loop.time() + LONGEST_SECONDS, time.process_time() + LONGEST_CPU_SECONDS
    while (now := loop.time()) < end and time.process_time() < end_of_work:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        if app is not None and app._exit:
            return True  # Its screen is not painted any more, and its timer waits for that for ever.
        due = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=now + 1)
        if due <= now + SOON_SECONDS:
            await asyncio.sleep(max(due - now, 0))
            continue
        workers = [thread.ident for thread in threading.enumerate() if thread.name == WORKER]
        before, waiting = waiting, waits(workers)
        times = times + 1 if waiting is not None and waiting == before else 0
        if not workers or times > BLOCKED_TIMES:
            if paint():
                continue
            return True
        await asyncio.sleep(0.001)
    return True


def waits(workers: list[int | None]) -> list[tuple[int, int]] | None:
    """Where these threads wait for an event or a lock; None if one of them works."""
    running = sys._current_frames()
    frames = [running[worker] for worker in workers if worker in running]
    if any(frame.f_code.co_filename != threading.__file__ for frame in frames):
        return None
    return [(id(frame), frame.f_lasti) for frame in frames]
