"""The prompt above the footer, for a filter after `/` or a command after `:`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.widgets.text_view import wrapped

Completion = Callable[[str], Iterable[str]]
"""Returns the completions of a text, the likeliest first."""

HINTS: Final = {
    "/": "text or regex, !not, node:worker-2, memory:>1Gi, -l app=web",
    ":": "a command, and what it is about: pod NAME, dp NAMESPACE, no NODE",
}
"""The placeholders by sign."""
_MAX_CHOICES, _CHOICE_LINES = 60, 3
"""At most that many completions are offered, in that many lines."""


class _Completions(Suggester):
    """The completions of a function, uncached: the next update may bring others."""

    def __init__(self, complete: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(self._complete(value)), None)


class InputHistory:
    """Entered texts, the oldest first, and which of them is in the input."""

    MOST: Final = 100

    def __init__(self, entered: Sequence[str] = ()) -> None:
        self.entered = tuple(entered)
        self._index = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Add an entry, or move it to the end if it is there already."""
        text = text.strip()
        if text:
            self.entered = (*(entry for entry in self.entered if entry != text), text)[-self.MOST :]

    def begin(self) -> None:
        """Start after the last entry."""
        self._index = len(self.entered)

    def earlier(self, text: str) -> str:
        """Return the entry before `text`; `text` itself if there is none."""
        self._update_draft(text)
        for index in range(self._index - 1, -1, -1):
            if self.entered[index] != text:
                self._index = index
                return self.entered[index]
        return text

    def later(self, text: str) -> str:
        """Return the next entry, after the last one the text that was typed before the first step."""
        self._update_draft(text)
        if self._index < len(self.entered):
            self._index += 1
        return self.entered[self._index] if self._index < len(self.entered) else self._draft

    def _update_draft(self, text: str) -> None:
        """Keep a text that is no entry as a draft after the last entry."""
        if self._index == len(self.entered) or self.entered[self._index] != text:
            self._index = len(self.entered)
            self._draft = text


class Prompt(Vertical):
    """A sign and an input, with an error or completions above them. Hidden until it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.PROMPT)

    @dataclass
    class Typed(Message):
        """A text was typed after `sign`; `finished` with enter."""

        sign: str
        text: str
        finished: bool

    @dataclass
    class Left(Message):
        """The prompt was left with escape."""

        sign: str

    def __init__(
        self, completions: Mapping[str, Completion], entered: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Make a prompt. `completions` and the entries of earlier runs, `entered`, are by sign."""
        super().__init__()
        self._completions = completions
        self._histories = {sign: InputHistory((entered or {}).get(sign, ())) for sign in completions}
        self._sign = ""
        self._offered: list[str] = []
        """The completions that tab goes through; the first one is in the input."""

    def entered(self, sign: str) -> tuple[str, ...]:
        """Return the entries after a sign, the newest last."""
        return self._histories[sign].entered

    def compose(self) -> ComposeResult:
        yield Label(id="reason", markup=False)
        yield Label(id="choices", markup=False)
        with Horizontal():
            yield Label(id="sign", markup=False)
            yield Input(id="line", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.display = False

    def open(self, sign: str, text: str = "") -> None:
        self._sign = sign
        line = self.query_one("#line", Input)
        self.query_one("#sign", Label).update(sign)
        self.show_error("")
        line.suggester = _Completions(self._completions[sign])
        line.placeholder = HINTS[sign]
        self._histories[sign].begin()
        with self.prevent(Input.Changed):
            line.value = text
        line.cursor_position = len(text)
        self.display = True
        self._show_choices(text)
        self.screen.refresh_bindings()
        line.focus()

    def close(self) -> None:
        self.display = False
        self.screen.refresh_bindings()

    def show_error(self, reason: str) -> None:
        label = self.query_one("#reason", Label)
        label.display = bool(reason)
        label.update(f"! {reason}")

    def _show_choices(self, text: str) -> None:
        """Show the completions of a command; those of a filter are only in the input."""
        label = self.query_one("#choices", Label)
        completions = islice(self._completions[self._sign](text), _MAX_CHOICES) if self._sign == ":" else ()
        names = [completion.rpartition(" ")[2] for completion in completions]
        label.display = bool(names)
        lines = list(wrapped("  ".join(names), self.app.size.width - 6, hanging=""))
        more = " …" if len(lines) > _CHOICE_LINES or len(names) == _MAX_CHOICES else ""
        label.update("\n".join(lines[:_CHOICE_LINES]) + more)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self._show_choices(event.value)
            self.post_message(self.Typed(self._sign, event.value, finished=False))

    @on(Input.Submitted)
    def _finished(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Typed(self._sign, event.value, finished=True))

    def keep(self, text: str) -> None:
        """Add a text, which was not mistyped, to the history."""
        self._histories[self._sign].add(text)
        self._histories[self._sign].begin()

    def action_complete(self) -> None:
        typed = self.query_one("#line", Input).value
        if self._offered and self._offered[0] == typed:
            self._offered = [*self._offered[1:], typed]
        else:
            self._offered = list(self._completions[self._sign](typed))
        if self._offered:
            self._put(self._offered[0])

    def action_earlier(self) -> None:
        self._put(self._histories[self._sign].earlier(self.query_one("#line", Input).value))

    def action_later(self) -> None:
        self._put(self._histories[self._sign].later(self.query_one("#line", Input).value))

    def _put(self, text: str) -> None:
        line = self.query_one("#line", Input)
        line.value = text
        line.cursor_position = len(text)

    def action_leave(self) -> None:
        self.post_message(self.Left(self._sign))
