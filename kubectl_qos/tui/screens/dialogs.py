"""The questions: yes or no, whether to write, a number, and the name of a file to save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label

from kubectl_qos.errors import QosError
from kubectl_qos.present.amounts import escape
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.saving import path_of, save
from kubectl_qos.tui.screens.once import Question
from kubectl_qos.tui.widgets.document import Document, plain


class Confirm(Question[bool]):
    """Yes or no; escape, n and the first button are no."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.CONFIRM)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, question: str, yes: str, no: str) -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """The question and two buttons."""
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            with Horizontal():
                yield Button(f"{self._no} (n)", id="no", compact=True)
                yield Button(f"{self._yes} (y)", id="yes", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_yes(self) -> None:
        """Do it."""
        self.dismiss(True)

    def action_no(self) -> None:
        """Do nothing."""
        self.dismiss(False)


class SaveAs(Question[Path | None]):
    """Asks for a file name and writes the file; one that exists only when enter is pressed again.

    A browser gets it as a download: whoever looks at a page writes nothing on the machine that serves it.

    Args:
        what: what is saved, in a few words.
        name: the name to begin with.
        text_for: the text for a path; it may look at the extension and raise QosError.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.SAVE)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, what: str, name: str, text_for: Callable[[Path], str]) -> None:
        super().__init__()
        self._what = what
        self._name = name
        self._text_for = text_for
        self._confirmed: Path | None = None

    def compose(self) -> ComposeResult:
        """The input, and a line for what is wrong with it."""
        with Vertical(classes="dialog"):
            yield Label(f"Save {self._what} as", markup=False)
            yield Input(self._name, compact=True, id="name", select_on_focus=False)
            yield Label("enter saves, esc leaves", id="verdict", markup=False)

    @on(Input.Changed)
    def _edited(self) -> None:
        self._confirmed = None
        self._say("enter saves, esc leaves")

    @on(Input.Submitted)
    def _named(self, event: Input.Submitted) -> None:
        try:
            path = path_of(event.value)
            text = self._text_for(path)
            if self.app.is_web:
                self.app.deliver_text(StringIO(text), save_filename=path.name)
            else:
                save(path, text, overwrite=path == self._confirmed)
        except FileExistsError:
            self._confirmed = path
            self._say(f"! {path} exists: enter again overwrites it, esc leaves", wrong=True)
        except QosError as error:
            self._say(f"! {error}{': ' + error.hint if error.hint else ''}", wrong=True)
        else:
            self.dismiss(path)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        label = self.query_one("#verdict", Label)
        label.update(text)
        label.set_class(wrong, "-wrong")

    def action_leave(self) -> None:
        """Nothing is written."""
        self.dismiss(None)


class ConfirmWrite(Question[bool]):
    """The last question before something is written: where, what, and what comes of it.

    No is focused, so that enter, pressed once too often, writes nothing. With a `name` that name has to be
    typed; no other key says yes then.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.CONFIRM)
    CSS_PATH = "dialogs.tcss"
    AUTO_FOCUS = "#name, #no"

    def __init__(self, lines: Sequence[str], name: str = "") -> None:
        super().__init__()
        self._lines = tuple(lines)
        self._expected = name

    def compose(self) -> ComposeResult:
        """What is confirmed, a field for the name if it is asked for, and two buttons."""
        with Vertical(classes="dialog wide"):
            yield Label("Write this to the cluster?", classes="question")
            yield Document(plain(self._lines), id="facts")
            if self._expected:
                yield Label(f"Type {escape(self._expected)} to apply it.", markup=False, id="verdict")
                yield Input(compact=True, id="name", select_on_focus=False)
            with Horizontal():
                yield Button(f"cancel ({'esc' if self._expected else 'n'})", id="no", compact=True)
                yield Button("apply" if self._expected else "apply (y)", id="yes", compact=True)

    def on_mount(self) -> None:
        """Without the name, nothing says yes."""
        self.query_one("#yes", Button).disabled = not self._is_named

    @property
    def _is_named(self) -> bool:
        return not self._expected or self.query_one("#name", Input).value.strip() == self._expected

    @on(Input.Changed)
    def _typed(self) -> None:
        self.query_one("#yes", Button).disabled = not self._is_named

    @on(Input.Submitted)
    def action_yes(self) -> None:
        """Write it, if that may be said."""
        if self._is_named:
            self.dismiss(True)
        else:
            verdict = self.query_one("#verdict", Label)
            verdict.update(f"! That is not {escape(self._expected)}. Type it to apply.")
            verdict.set_class(True, "-wrong")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_yes()
        else:
            self.dismiss(False)

    def action_no(self) -> None:
        """Write nothing."""
        self.dismiss(False)


class AskNumber(Question[int | None]):
    """A whole number from 1 on."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.ASK)
    CSS_PATH = "dialogs.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, question: str, most: int) -> None:
        super().__init__()
        self._question = question
        self._most = most

    def compose(self) -> ComposeResult:
        """The question and a field for the answer."""
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            yield Input(compact=True, restrict="[0-9]{0,6}", id="name")
            yield Label(f"1 to {self._most}; enter takes it, esc leaves", id="verdict", markup=False)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        number = int(event.value) if event.value.isdecimal() else 0
        if 1 <= number <= self._most:
            self.dismiss(number)
        else:
            verdict = self.query_one("#verdict", Label)
            verdict.update(f"! a number from 1 to {self._most} is needed")
            verdict.set_class(True, "-wrong")

    def action_leave(self) -> None:
        """No number."""
        self.dismiss(None)
