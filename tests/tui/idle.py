"""When an application of a test is at rest: Textual guesses it from the time that the process takes.

Such a guess takes 20 ms for each key, and is wrong on a machine with something else to do. Here it is known:
nothing is ready in the event loop, no timer is about to run, and no thread of the UI works.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Final

SOON_SECONDS: Final = 0.018
"""A timer that runs within so long is waited for: the screen's own, which paints what has changed."""
LONGEST_SECONDS: Final = 1.0
"""An application that never rests is not waited for any longer."""
BLOCKED_SECONDS: Final = 0.02
"""A thread that has taken no time for so long waits for something itself."""
WORKER: Final = "qos-worker"


async def at_rest(*_: Any, **__: Any) -> bool:
    """Return once nothing happens unless a key is pressed, a source answers, or time passes."""
    loop: Any = asyncio.get_running_loop()
    worked, since = time.process_time(), time.monotonic()
    end = loop.time() + LONGEST_SECONDS
    while (now := loop.time()) < end:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        due = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=now + 1)
        if due <= now + SOON_SECONDS:
            await asyncio.sleep(max(due - now, 0))
            continue
        if not any(thread.name == WORKER for thread in threading.enumerate()):
            return True
        if (spent := time.process_time()) - worked > BLOCKED_SECONDS / 20:
            worked, since = spent, time.monotonic()
        elif time.monotonic() - since > BLOCKED_SECONDS:
            return True
        await asyncio.sleep(0.001)
    return True
