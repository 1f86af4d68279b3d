"""The line at the foot where a filter (`/`) or a place (`:`) is typed; hidden until it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from kubectl_qos.tui.actions import Room, bindings

Completion = Callable[[str], str | None]


class _Completions(Suggester):
    """What a function completes; it may know more with the next answer of the source, so nothing is kept."""

    def __init__(self, complete: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The completed text."""
        return self._complete(value)


class Prompt(Vertical):
    """A sign and an input, and a line for the reason where the input is wrong."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.PROMPT)

    class Said(Message):
        """Something was typed after `sign`; `finished` with enter."""

        def __init__(self, sign: str, text: str, *, finished: bool) -> None:
            super().__init__()
            self.sign = sign
            self.text = text
            self.finished = finished

    class Left(Message):
        """The line was left with escape."""

        def __init__(self, sign: str) -> None:
            super().__init__()
            self.sign = sign

    def __init__(self, complete: Completion) -> None:
        super().__init__()
        self._complete = complete
        self._sign = ""

    def compose(self) -> ComposeResult:
        """The reason, above what is typed."""
        yield Label(id="reason", markup=False)
        with Horizontal():
            yield Label(id="sign", markup=False)
            yield Input(id="line", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """Hidden at first."""
        self.display = False

    def open(self, sign: str, text: str = "") -> None:
        """Show the line and type in it."""
        self._sign = sign
        line = self.query_one("#line", Input)
        self.query_one("#sign", Label).update(sign)
        self.refuse("")
        line.suggester = _Completions(self._complete) if sign == ":" else None
        with self.prevent(Input.Changed):
            line.value = text
        line.cursor_position = len(text)
        self.display = True
        self.screen.refresh_bindings()
        line.focus()

    def close(self) -> None:
        """Hide the line; whoever opened it moves the focus."""
        self.display = False
        self.screen.refresh_bindings()

    def refuse(self, reason: str) -> None:
        """Say what is wrong with the text, or that nothing is."""
        label = self.query_one("#reason", Label)
        label.display = bool(reason)
        label.update(f"! {reason}")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.post_message(self.Said(self._sign, event.value, finished=False))

    @on(Input.Submitted)
    def _finished(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Said(self._sign, event.value, finished=True))

    def action_complete(self) -> None:
        """Take the completion."""
        line = self.query_one("#line", Input)
        found = self._complete(line.value) if self._sign == ":" else None
        if found is not None:
            line.value = found
            line.cursor_position = len(found)

    def action_leave(self) -> None:
        """Leave without going anywhere."""
        self.post_message(self.Left(self._sign))
