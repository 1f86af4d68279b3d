"""Dialogs: questions, a file name, a number, a text such as notes, and the help."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label

from kubectl_qos.errors import InputError, QosError
from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_columns import ALL_COLUMNS
from kubectl_qos.present.reasons import CLASSES, FLAG_MEANINGS, class_rule
from kubectl_qos.tui.actions import Action, BindingGroup, Keys, actions_in_group
from kubectl_qos.tui.go_to import COMMAND_HELP
from kubectl_qos.tui.screens.base import Dialog, ResultT
from kubectl_qos.tui.widgets.text_view import TextLine, TextScroll, TextView, layout_lines, wrapped


class InputDialog(Dialog[ResultT]):
    """A dialog with a line below its input that says what is expected or, after `!`, what is wrong."""

    def show_status(self, text: str) -> None:
        label = self.query_one("#finding", Label)
        label.update(text)
        label.set_class(text.startswith("!"), "-wrong")


class _YesNoDialog(InputDialog[bool], group=BindingGroup.CONFIRM):
    """A question with the buttons `yes` and `no`."""

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_no(self) -> None:
        self.dismiss(False)


class LeaveDialog(_YesNoDialog):
    """Asks whether to leave though something is not saved, or has no answer yet."""

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog question"):
            yield Label(self._question, markup=False)
            with Horizontal():
                yield Button("stay (esc)", id="no", compact=True)
                yield Button("leave (y)", id="yes", compact=True)


class SaveAs(InputDialog[Path | None], group=BindingGroup.SAVE):
    """Asks for a file name and writes the file; enter has to be pressed twice to overwrite one.

    A browser gets a download instead: nothing is written on the machine that serves the page. `text_for`
    returns the text for a path, whose extension may choose the format, and may raise QosError.
    """

    enter_does = "save"

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
            yield Label(id="finding", markup=False)

    @on(Input.Changed)
    def _edited(self) -> None:
        self._confirmed = None
        self.show_status("")

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
            self.show_status("! " + error.with_hint(": "))
        else:
            self.dismiss(path)


_FRAME_WIDTH: Final = 6
"""Border and padding of a dialog on both sides."""


class ConfirmWrite(_YesNoDialog):
    """The last question before a change is written.

    `no` has the focus, so that enter, pressed once too often, writes nothing. With a `name`, that name has to
    be typed.
    """

    AUTO_FOCUS = "#name, #no"

    def __init__(self, question: str, lines: Sequence[str], name: str = "") -> None:
        super().__init__()
        self._question = question
        self._lines = tuple(lines)
        self._expected = name

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            yield TextView(layout_lines(map(TextLine, self._lines)), id="facts")
            if self._expected:
                yield Label(f"Type {escape(self._expected)} to apply it.", markup=False, id="finding")
                yield Input(compact=True, id="name", select_on_focus=False)
            with Horizontal():
                yield Button(f"cancel ({'esc' if self._expected else 'n'})", id="no", compact=True)
                yield Button("apply" if self._expected else "apply (y)", id="yes", compact=True)

    def border_keys(self) -> list[tuple[str, str]]:
        return [("enter", "apply"), ("esc", "no")] if self._expected else super().border_keys()

    def on_mount(self) -> None:
        self.query_one(".dialog").styles.width = max(map(cell_len, self._lines)) + _FRAME_WIDTH
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
    """Asks for a number from 1 to `most`."""

    enter_does = "take it"
    AUTO_FOCUS = "Input"

    def __init__(self, question: str, most: int) -> None:
        super().__init__()
        self._question = question
        self._most = most

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            yield Input(compact=True, restrict="[0-9]{0,6}", id="name")
            yield Label(f"1 to {self._most}", id="finding", markup=False)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        number = int(event.value) if event.value.isdecimal() else 0
        if 1 <= number <= self._most:
            self.dismiss(number)
        else:
            self.show_status(f"! a number from 1 to {self._most} is needed")


def parse_path(name: str) -> Path:
    """Return the absolute path of a name as typed, with `~` expanded. Raises InputError if it is invalid."""
    name = name.strip()
    if not name:
        raise InputError("a file name is needed")
    try:
        path = Path(name).expanduser()
        return path if path.is_absolute() else Path.cwd() / path
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name}: {error}") from None


def save(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write a file. Raises InputError, and FileExistsError unless `overwrite` is set."""
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

    AUTO_FOCUS = "TextScroll"

    def __init__(self, title: str, lines: Iterable[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="text") as dialog:
            dialog.border_title = Content(escape(self._title))
            with TextScroll():
                yield TextView(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        return [TextLine(text) for line in self._lines for text in wrapped(line, width)]


@dataclass(frozen=True, slots=True)
class HelpSection:
    """A part of the help: a heading, and keys or other words with their meanings."""

    title: str
    entries: tuple[tuple[str, str], ...]

    def searched(self, words: Sequence[str]) -> HelpSection:
        """Return the section with the entries that have all words, or with all if its heading has them.

        A single character is searched among the keys.
        """
        if len(words) == 1 and len(words[0]) == 1:
            entries = [entry for entry in self.entries if words[0] in entry[0].split()]
            return replace(self, entries=tuple(entries))
        if _has(self.title, words):
            return self
        return replace(self, entries=tuple([entry for entry in self.entries if _has(" ".join(entry), words)]))


def _section_lines(section: HelpSection, width: int) -> Iterator[TextLine]:
    yield TextLine(section.title, "title")
    for key, meaning in section.entries:
        left = f"  {key:<16}"
        first, *more = wrapped(meaning, width - len(left), hanging="")
        yield TextLine(left + first)
        for text in more:
            yield TextLine(" " * len(left) + text)


_COLUMN: Final = 76
"""The least width of a column of the help."""
_GAP: Final = 2


def _has(text: str, words: Sequence[str]) -> bool:
    text = text.casefold()
    return all(word.casefold() in text for word in words)


class HelpScreen(Dialog[None], group=BindingGroup.GUIDE):
    """The keys that work on the screen below, then all other help; what is typed searches it."""

    AUTO_FOCUS = "Input"

    def __init__(self, sections: Iterable[HelpSection]) -> None:
        super().__init__()
        self._sections = tuple(sections)
        self._query = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="help") as dialog:
            dialog.border_title = "Help"
            yield Input(placeholder="type a key, or a word such as sort", compact=True)
            with TextScroll(can_focus=False):
                yield TextView(self._layout)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.value == "?":
            # The key that opens the help closes it too, though in an input it is a character.
            self.dismiss()
            return
        self._query = event.value
        self.query_one(TextView).show(self._layout)
        self.query_one(TextScroll).scroll_home(animate=False)

    def _layout(self, width: int) -> list[TextLine]:
        words = self._query.split()
        columns: list[list[TextLine]] = [[] for _ in range(max(width // _COLUMN, 1))]
        column_width = width // len(columns) - _GAP * (len(columns) > 1)
        for section in (whole.searched(words) for whole in self._sections):
            if section.entries:
                shortest = min(columns, key=len)
                shortest += [*([TextLine("")] if shortest else []), *_section_lines(section, column_width)]
        if not columns[0]:
            return [TextLine(f"Nothing in the help matches {escape(self._query.strip())}.")]
        none = TextLine("")
        return [
            TextLine.of(*((set_cell_size(line.text, column_width + _GAP), line.token) for line in row))
            for row in zip_longest(*columns, fillvalue=none)
        ]

    def action_up(self) -> None:
        self.query_one(TextScroll).action_up()

    def action_down(self) -> None:
        self.query_one(TextScroll).action_down()


_FILTERS: Final = (
    ("cart", "name, namespace/name, node, class or flags contain cart, in any case"),
    ("^cart-.*-9", "a text is a regular expression; ^ and $ match the ends of each of those words"),
    ("!cart", "rows that do not match; also before the forms below"),
    ("node:worker-2", "a column (key, header or short form) contains it; node:=worker-2 for an exact match"),
    ("memory:>1Gi", "compare by > >= < <= and = (as shown); limit:none for rows without one"),
    ("%limit:>=80", "also restarts:>0, oom_adj:<0, rank:1, risk:>=high, age:<2h"),
    ("-l app=web", "a label selector, to the end of the line"),
    ("qos:Burst !web", "all terms must match"),
)


_MOUSE: Final = (
    ("click", "select a row, a pane, a field; on a column's header: sort; in the footer: press that key"),
    ("click there", "a death in the picture: its pod; the fix: all fixes; the title of pods: another order"),
    ("click live", "pause and resume"),
    ("shift and drag", "select text, in most terminals"),
    ("right click", "what can be done with the row"),
    ("double click", "open a row"),
    ("wheel", "scroll"),
)


def help_sections(
    keys: Keys, here: Sequence[BindingGroup] = (), idle: Collection[str] = ()
) -> Iterator[HelpSection]:
    """Yield the keys of the groups that are active `here`, all others, then commands, filters and columns.

    `idle` are the names of actions that do nothing now though their group is active.
    """

    def section(group: BindingGroup, note: str, actions: Iterable[Action]) -> HelpSection:
        entries = [(keys.shown(action), action.meaning) for action in actions]
        return HelpSection(group.value + note, tuple([entry for entry in entries if entry[0]]))

    for group in here:
        active = [action for action in actions_in_group(group) if action.name not in idle]
        yield section(group, " (here)", active)
    for group in BindingGroup:
        others = [action for action in actions_in_group(group) if group not in here or action.name in idle]
        if others:
            yield section(group, " (not here)" if group in here else "", others)
    yield HelpSection("Commands after :", COMMAND_HELP)
    yield HelpSection("Filters", _FILTERS)
    yield HelpSection("With the mouse", _MOUSE)
    yield HelpSection("Columns", tuple([(column.header, column.help) for column in ALL_COLUMNS]))
    classes = ((f"{mark.letter} {mark.glyph} {qos.value}", class_rule(qos)) for qos, mark in CLASSES.items())
    yield HelpSection("Classes", tuple(classes))
    yield HelpSection("Flags", tuple([(str(flag), meaning) for flag, meaning in FLAG_MEANINGS.items()]))
