"""The line at the foot where a filter (`/`) or a place (`:`) is typed; hidden until it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from kubectl_qos.tui.actions import BindingGroup, bindings

Completion = Callable[[str], Iterable[str]]
"""Every text that a typed one can become, the likeliest first."""

HINTS: Final = {
    "/": "text or regex, !not, node:worker-2, memory:>1Gi, -l app=web",
    ":": "nodes, node NAME, ns, workloads, pods NAMESPACE, containers, help, q",
}
"""What an empty line says, by its sign."""


class _Completions(Suggester):
    """What a function completes; it may know more with the next answer of the source, so nothing is kept."""

    def __init__(self, complete: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The completed text."""
        return next(iter(self._complete(value)), None)


class InputHistory:
    """What was entered, the oldest first, and where in it a line stands that walks through it."""

    MOST: Final = 100

    def __init__(self, entered: Sequence[str] = ()) -> None:
        self._entered = list(entered)
        self._at = 0
        self._draft = ""

    @property
    def entered(self) -> tuple[str, ...]:
        """Everything, the newest last."""
        return tuple(self._entered)

    def add(self, text: str) -> None:
        """Something was entered; what was entered before moves to the end."""
        text = text.strip()
        if text:
            self._entered = [*(one for one in self._entered if one != text), text][-self.MOST :]

    def begin(self) -> None:
        """A line is opened: it stands after everything."""
        self._at = len(self._entered)

    def earlier(self, text: str) -> str:
        """What was entered before what the line holds; `text` itself where there is nothing earlier."""
        self._keep(text)
        for at in range(self._at - 1, -1, -1):
            if self._entered[at] != text:
                self._at = at
                return self._entered[at]
        return text

    def later(self, text: str) -> str:
        """The way back, down to what was typed before the first step."""
        self._keep(text)
        if self._at < len(self._entered):
            self._at += 1
        return self._entered[self._at] if self._at < len(self._entered) else self._draft

    def _keep(self, text: str) -> None:
        """What is typed or edited is a new line, after everything."""
        if self._at == len(self._entered) or self._entered[self._at] != text:
            self._at = len(self._entered)
            self._draft = text


class Prompt(Vertical):
    """A sign and an input, and a line for the reason where the input is wrong."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.PROMPT)

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

    def __init__(
        self, completions: Mapping[str, Completion], entered: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """By sign, `completions` completes, and `entered` is what was entered in earlier runs."""
        super().__init__()
        known = entered or {}
        self._completions = completions
        self._histories = {sign: InputHistory(known.get(sign, ())) for sign in completions}
        self._sign = ""
        self._offered: list[str] = []
        """The completions that tab goes through, from the one that the line holds."""

    def entered(self, sign: str) -> tuple[str, ...]:
        """What was entered after a sign, the newest last."""
        return self._histories[sign].entered

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
        line.suggester = _Completions(self._completions[sign])
        line.placeholder = HINTS.get(sign, "")
        self._histories[sign].begin()
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
        self._histories[self._sign].add(event.value)
        self._histories[self._sign].begin()
        self.post_message(self.Said(self._sign, event.value, finished=True))

    def action_complete(self) -> None:
        """Take the completion; again, the next one."""
        typed = self.query_one("#line", Input).value
        if self._offered and self._offered[0] == typed:
            self._offered = [*self._offered[1:], typed]
        else:
            self._offered = list(self._completions[self._sign](typed))
        if self._offered:
            self._put(self._offered[0])

    def action_earlier(self) -> None:
        """What was entered before."""
        self._put(self._histories[self._sign].earlier(self.query_one("#line", Input).value))

    def action_later(self) -> None:
        """Back from there."""
        self._put(self._histories[self._sign].later(self.query_one("#line", Input).value))

    def _put(self, text: str) -> None:
        line = self.query_one("#line", Input)
        line.value = text
        line.cursor_position = len(text)

    def action_leave(self) -> None:
        """Leave without going anywhere."""
        self.post_message(self.Left(self._sign))
