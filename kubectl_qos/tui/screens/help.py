"""A text over the screen: the help, made from the registries of actions, columns and flags, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Label

from kubectl_qos.present.pod_columns import ALL_COLUMNS
from kubectl_qos.present.reasons import CLASS_MEANINGS, CLASSES, FLAG_MEANINGS
from kubectl_qos.tui.actions import BindingGroup, Keys, actions_in_group, bindings
from kubectl_qos.tui.app_protocol import host
from kubectl_qos.tui.screens.base import Dialog
from kubectl_qos.tui.widgets.text_view import TextLine, TextScroll, TextView, wrapped


class TextScreen(Dialog[None]):
    """A titled text that scrolls; escape, q and ? close it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.SHEET)
    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "TextScroll"

    def __init__(self, title: str, lines: Iterable[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        """The title and the text."""
        with Vertical(id="sheet"):
            closes = host(self.app).keys.first("sheet.close")
            yield Label(f"{self._title}   ({closes} closes)", id="heading", markup=False)
            with TextScroll():
                yield TextView(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        found = []
        for line in self._lines:
            key, tab, words = line.partition("\t")
            if not tab:
                title = "title" if line and not line.startswith(" ") and self._title == "Help" else ""
                found += [TextLine(text, title) for text in wrapped(line, width)]
                continue
            left = f"  {key:<16}"
            first, *more = wrapped(words, width - len(left), hanging="")
            found.append(TextLine(left + first))
            found += [TextLine(" " * len(left) + text) for text in more]
        return found

    def action_close(self) -> None:
        """Back to what is below."""
        self.dismiss()


_FILTERS: Final = (
    ("cart", "cart is in the name, namespace/name, node, class or flags, whatever the case"),
    ("^cart-.*-9", "every text is a regular expression; ^ and $ are the ends of each of those words"),
    ("!cart", "the other way round; also before the forms below"),
    ("node:worker-2", "a column, by key, header or short form, holds it; node:=worker-2 is all of it"),
    ("memory:>1Gi", "compares: > >= < <= and =, which looks at what is shown; limit:none has none"),
    ("%limit:>=80", "likewise restarts:>0, oom_adj:<0, rank:1, risk:>=high, age:<2h"),
    ("-l app=web", "a label selector, to the end of the line"),
    ("qos:Burst !web", "terms with spaces between all have to hold"),
)


def help_lines(keys: Keys) -> Iterator[str]:
    """Every action with its keys, filters, columns, classes and flags; a tab ends the left part of a line."""
    for room in BindingGroup:
        yield room.value
        for action in actions_in_group(room):
            yield f"{keys.shown(action)}\t{action.help}"
        yield ""
    yield "Filters"
    for form, meaning in _FILTERS:
        yield f"{form}\t{meaning}"
    yield ""
    yield "With the mouse"
    yield "click\ttake a row, a pane, a field; on a column's header: sort; at the foot: press that key"
    yield "double click\topen a row"
    yield "wheel\tscroll"
    yield ""
    yield "Columns"
    for column in ALL_COLUMNS:
        yield f"{column.header}\t{column.help}"
    yield ""
    yield "Classes"
    for qos, mark in CLASSES.items():
        yield f"{mark.letter} {mark.glyph} {qos.value}\t{CLASS_MEANINGS[qos]}"
    yield ""
    yield "Flags"
    for flag, meaning in FLAG_MEANINGS.items():
        yield f"{flag}\t{meaning}"
