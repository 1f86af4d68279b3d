"""The questions: yes or no, and the name of a file to save."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label

from kubectl_qos.errors import QosError
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.saving import path_of, save
from kubectl_qos.tui.screens.once import Question


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
