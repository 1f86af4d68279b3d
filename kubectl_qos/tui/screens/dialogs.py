"""Dialogs: a question, a file name, a number, and a text such as the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label

from kubectl_qos.errors import InputError, QosError
from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_columns import ALL_COLUMNS
from kubectl_qos.present.reasons import CLASSES, FLAG_MEANINGS, class_rule
from kubectl_qos.tui.actions import BindingGroup, Keys, actions_in_group
from kubectl_qos.tui.screens.base import Dialog, ResultT
from kubectl_qos.tui.widgets.text_view import TextLine, TextScroll, TextView, layout_lines, wrapped


class InputDialog(Dialog[ResultT]):
    """A dialog that says below its input what is expected, or with `!` what is wrong."""

    CSS_PATH = "dialogs.tcss"

    def show_status(self, text: str) -> None:
        label = self.query_one("#finding", Label)
        label.update(text)
        label.set_class(text.startswith("!"), "-wrong")


class _YesNoDialog(InputDialog[bool], group=BindingGroup.CONFIRM):
    """Escape, n and the first button mean no."""

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_yes()
        else:
            self.action_no()

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class ConfirmDialog(_YesNoDialog):
    """A question."""

    def __init__(self, question: str, yes: str, no: str) -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            with Horizontal():
                yield Button(f"{self._no} (n)", id="no", compact=True)
                yield Button(f"{self._yes} (y)", id="yes", compact=True)


class SaveAs(InputDialog[Path | None], group=BindingGroup.SAVE):
    """Asks for a file name and writes the file; an existing one only when enter is pressed again.

    A browser gets it as a download: a visitor writes nothing on the machine that serves the page. `text_for`
    may look at the extension of a path and raise QosError.
    """

    def __init__(self, what: str, name: str, text_for: Callable[[Path], str]) -> None:
        super().__init__()
        self._what = what
        self._name = name
        self._text_for = text_for
        self._confirmed: Path | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(f"Save {self._what} as", markup=False)
            yield Input(self._name, compact=True, id="name", select_on_focus=False)
            yield Label("enter saves, esc leaves", id="finding", markup=False)

    @on(Input.Changed)
    def _edited(self) -> None:
        self._confirmed = None
        self.show_status("enter saves, esc leaves")

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
            self.show_status(f"! {path} exists: enter again overwrites it, esc leaves")
        except QosError as error:
            self.show_status(f"! {error}{': ' + error.hint if error.hint else ''}")
        else:
            self.dismiss(path)


class ConfirmWrite(_YesNoDialog):
    """The last question before something is written: where, what, and what comes of it.

    No is focused, so that enter, pressed once too often, writes nothing. With a `name` that name has to be
    typed; no other key says yes then.
    """

    AUTO_FOCUS = "#name, #no"

    def __init__(self, question: str, lines: Sequence[str], name: str = "") -> None:
        super().__init__()
        self._question = question
        self._lines = tuple(lines)
        self._expected = name

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Label(self._question, classes="question", markup=False)
            yield TextView(layout_lines(map(TextLine, self._lines)), id="facts")
            if self._expected:
                yield Label(f"Type {escape(self._expected)} to apply it.", markup=False, id="finding")
                yield Input(compact=True, id="name", select_on_focus=False)
            with Horizontal():
                yield Button(f"cancel ({'esc' if self._expected else 'n'})", id="no", compact=True)
                yield Button("apply" if self._expected else "apply (y)", id="yes", compact=True)

    def on_mount(self) -> None:
        self.query_one("#yes", Button).disabled = not self._is_named

    @property
    def _is_named(self) -> bool:
        return not self._expected or self.query_one("#name", Input).value.strip() == self._expected

    @on(Input.Changed)
    def _typed(self) -> None:
        self.query_one("#yes", Button).disabled = not self._is_named

    @on(Input.Submitted)
    def action_yes(self) -> None:
        if self._is_named:
            self.dismiss(True)
        else:
            self.show_status(f"! That is not {escape(self._expected)}. Type it to apply.")


class NumberDialog(InputDialog[int | None], group=BindingGroup.NUMBER):
    """Asks for a whole number from 1 on."""

    AUTO_FOCUS = "Input"

    def __init__(self, question: str, most: int) -> None:
        super().__init__()
        self._question = question
        self._most = most

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            yield Input(compact=True, restrict="[0-9]{0,6}", id="name")
            yield Label(f"1 to {self._most}; enter takes it, esc leaves", id="finding", markup=False)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        number = int(event.value) if event.value.isdecimal() else 0
        if 1 <= number <= self._most:
            self.dismiss(number)
        else:
            self.show_status(f"! a number from 1 to {self._most} is needed")


def parse_path(name: str) -> Path:
    """The absolute path of a name as typed, `~` included. Raises InputError for an invalid name."""
    name = name.strip()
    if not name:
        raise InputError("a file name is needed")
    try:
        path = Path(name).expanduser()
        return path if path.is_absolute() else Path.cwd() / path
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name}: {error}") from None


def save(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write the text.

    Raises:
        FileExistsError: the file exists, and `overwrite` is not set.
        InputError: it cannot be written; the message names it and says why.
    """
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: {reason}") from None


class TextScreen(Dialog[None], group=BindingGroup.HELP):
    """A text with a title."""

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "TextScroll"

    def __init__(self, title: str, lines: Iterable[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            closes = self.qos.keys.first("help.close")
            yield Label(f"{self._title}   ({closes} closes)", id="heading", markup=False)
            with TextScroll():
                yield TextView(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        lines = []
        for line in self._lines:
            key, tab, words = line.partition("\t")
            if not tab:
                title = "title" if line and not line.startswith(" ") and self._title == "Help" else ""
                lines += [TextLine(text, title) for text in wrapped(line, width)]
                continue
            left = f"  {key:<16}"
            first, *more = wrapped(words, width - len(left), hanging="")
            lines.append(TextLine(left + first))
            lines += [TextLine(" " * len(left) + text) for text in more]
        return lines

    def action_close(self) -> None:
        self.dismiss()


_FILTERS: Final = (
    ("cart", "cart is in the name, namespace/name, node, class or flags, whatever the case"),
    ("^cart-.*-9", "every text is a regular expression; ^ and $ are the ends of each of those words"),
    ("!cart", "those that do not match; also before the forms below"),
    ("node:worker-2", "a column, by key, header or short form, holds it; node:=worker-2 is all of it"),
    ("memory:>1Gi", "compares: > >= < <= and =, which looks at what is shown; limit:none has none"),
    ("%limit:>=80", "likewise restarts:>0, oom_adj:<0, rank:1, risk:>=high, age:<2h"),
    ("-l app=web", "a label selector, to the end of the line"),
    ("qos:Burst !web", "terms with spaces between all have to hold"),
)


def help_lines(keys: Keys) -> Iterator[str]:
    """Every action with its keys, filters, columns, classes and flags; a tab separates key and meaning."""
    for group in BindingGroup:
        yield group.value
        for action in actions_in_group(group):
            yield f"{keys.shown(action)}\t{action.help}"
        yield ""
    yield "Filters"
    for form, meaning in _FILTERS:
        yield f"{form}\t{meaning}"
    yield ""
    yield "With the mouse"
    yield "click\tselect a row, a pane, a field; on a column's header: sort; in the footer: press that key"
    yield "double click\topen a row"
    yield "wheel\tscroll"
    yield ""
    yield "Columns"
    for column in ALL_COLUMNS:
        yield f"{column.header}\t{column.help}"
    yield ""
    yield "Classes"
    for qos, mark in CLASSES.items():
        yield f"{mark.letter} {mark.glyph} {qos.value}\t{class_rule(qos)}"
    yield ""
    yield "Flags"
    for flag, meaning in FLAG_MEANINGS.items():
        yield f"{flag}\t{meaning}"
