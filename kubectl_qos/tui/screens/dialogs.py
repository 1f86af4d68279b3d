"""One of several names to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label

from kubectl_qos.errors import QosError
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Align, Column
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.export import parse_path, save
from kubectl_qos.tui.screens.base import Dialog
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table_cells import GUTTER, Layout
from kubectl_qos.tui.widgets.text_view import TextView, plain


class SelectDialog(Dialog[str | None]):
    """Names below each other; enter chooses one, escape none. `present` is the one that holds now."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.CHOOSE)
    CSS_PATH = "dialog_table.tcss"

    def __init__(self, title: str, names: Sequence[str], present: str) -> None:
        super().__init__()
        self._title = title
        self._names = tuple(names)
        self._present = present

    def compose(self) -> ComposeResult:
        """The names."""
        with Vertical(id="choose", classes="dialog-table"):
            yield LineTable[str](natural="", key=str, token=lambda *_: "")

    def on_mount(self) -> None:
        """The present one is under the cursor."""
        self.query_one("#choose").border_title = self._title
        table = self.query_one(LineTable)
        table.load(self._names, partial(_layout, self._title.upper()), datetime.now(UTC))
        table.move_to(self._present)

    @on(LineTable.Selected)
    def _chosen(self, event: LineTable.Selected) -> None:
        self.dismiss(event.row)

    def action_leave(self) -> None:
        """As it was."""
        self.dismiss(None)


def _name(name: str, _: datetime) -> str:
    return escape(name)


def _layout(header: str, available: int) -> Layout[str]:
    column = Column("name", header, Align.LEFT, 8, _name, str, str, "its name")
    return Layout((column,), (max(available - GUTTER, 1),))


class Confirm(Dialog[bool]):
    """Yes or no; escape, n and the first button are no."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.CONFIRM)
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


class SaveAs(Dialog[Path | None]):
    """Asks for a file name and writes the file; one that exists only when enter is pressed again.

    A browser gets it as a download: whoever looks at a page writes nothing on the machine that serves it.

    Args:
        what: what is saved, in a few words.
        name: the name to begin with.
        text_for: the text for a path; it may look at the extension and raise QosError.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.SAVE)
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
            path = parse_path(event.value)
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


class ConfirmWrite(Dialog[bool]):
    """The last question before something is written: where, what, and what comes of it.

    No is focused, so that enter, pressed once too often, writes nothing. With a `name` that name has to be
    typed; no other key says yes then.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.CONFIRM)
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
            yield TextView(plain(self._lines), id="facts")
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


class AskNumber(Dialog[int | None]):
    """A whole number from 1 on."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.ASK)
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
