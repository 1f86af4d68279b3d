"""Keys one after the other: each is handled completely before the next one.

Textual sends a key to the focused widget, and looks for its binding when the key has bubbled from there to
the app. The next key does not wait for that: of `/edit`, typed quickly, the letters would be commands. So a
message follows each key through the same queues; when it arrives, the key has arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from textual import events
from textual.app import App
from textual.message import Message
from textual.timer import Timer

ROUNDS: Final = 4
"""The messages that follow a key: what it does, such as submitting an input, posts messages of its own."""
PATIENCE_SECONDS: Final = 0.5
"""A message is lost with a screen that is left; then the next key goes on after this time."""

Typed = events.Key | events.Paste


@dataclass
class Passed(Message):
    """Follows a key through the queues."""

    number: int


class KeyOrder:
    """The keys that wait for the one before; `handle` is what the app does with a key or a paste."""

    def __init__(self, app: App[Any], handle: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[Typed] = deque()
        self._number = 0
        self._rounds = 0
        self._patience: Timer | None = None

    async def take(self, typed: Typed) -> None:
        """Handle a key or a paste, after those before it."""
        self._waiting.append(typed)
        if not self._rounds:
            await self._next()

    async def passed(self, number: int) -> None:
        """Go on when a message that followed a key has arrived."""
        if number != self._number or not self._rounds:
            return
        self._rounds -= 1
        if self._rounds:
            self._follow()
        else:
            await self._next()

    async def _next(self) -> None:
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        self._rounds = 0
        if not self._waiting:
            return
        self._rounds = ROUNDS
        self._number += 1
        self._patience = self._app.set_timer(PATIENCE_SECONDS, self._next)
        await self._handle(self._waiting.popleft())
        self._follow()

    def _follow(self) -> None:
        """Post to where the next key would go now; while the app ends there is no screen."""
        if self._app.screen_stack:
            (self._app.focused or self._app.screen).post_message(Passed(self._number))
