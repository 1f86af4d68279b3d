"""Text that is laid out for the width it gets, and a container that scrolls it with the keys of tables."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import set_cell_size
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from kubectl_qos.present.format import escape
from kubectl_qos.tui.actions import BindingGroup, bindings


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line as it is shown; `token` is one of STYLES."""

    text: str
    token: str = ""


TextLayout = Callable[[int], Sequence[TextLine]]
"""The lines for a width in cells."""

STYLES: Final = {
    "": "",
    "title": "bold $accent",
    "answer": "bold",
    "changed": "bold $warning",
    "wrong": "bold $error",
    "muted": "$secondary",
}

_COLOURLESS: Final = {
    **{token: style.partition("$")[0].strip() for token, style in STYLES.items()},
    "wrong": "bold underline",
}
"""Without colours the weight alone says what matters."""


def wrapped(text: str, width: int, indent: str = "", hanging: str = "  ") -> Iterator[str]:
    """Text in lines of at most this width; what follows the first line hangs deeper."""
    yield from textwrap.wrap(
        text,
        max(width, 16),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    ) or [""]


def escape_lines(text: str) -> str:
    """A text of several lines from a server or file, with its control characters spelled out."""
    return "\n".join(escape(line) for line in text.split("\n"))


def plain(lines: Iterable[str]) -> TextLayout:
    """A layout of lines that only wrap, each keeping its own indentation."""
    kept = list(lines)

    def layout(width: int) -> list[TextLine]:
        found = []
        for line in kept:
            indent = line[: len(line) - len(line.lstrip(" "))]
            found += [TextLine(part) for part in wrapped(line.strip(" "), width, indent)]
        return found

    return layout


def verbatim(text: str) -> TextLayout:
    """A layout of lines that are never broken."""
    lines = [TextLine(line) for line in text.splitlines()]
    return lambda _: lines


class TextView(Widget):
    """Lines of text, as many as there are."""

    DEFAULT_CSS = "TextView { height: auto; width: 1fr; }"

    def __init__(self, layout: TextLayout, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._text_layout = layout
        self._made: tuple[int, Sequence[TextLine]] = (-1, ())

    def show(self, layout: TextLayout) -> None:
        """Another text."""
        self._text_layout = layout
        self._made = (-1, ())
        self.refresh(layout=True)

    def text_lines(self, width: int) -> Sequence[TextLine]:
        """The lines for a width."""
        if self._made[0] != width:
            self._made = (width, self._text_layout(width))
        return self._made[1]

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """All the width there is."""
        del viewport
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line each."""
        del container, viewport
        return len(self.text_lines(width))

    def render(self) -> Content:
        """The lines with the theme's styles."""
        lines = self.text_lines(self.content_size.width)
        styles = _COLOURLESS if self.app.no_color else STYLES
        return Content("\n").join(Content.styled(line.text, styles[line.token]) for line in lines)


class TextScroll(VerticalScroll, inherit_bindings=False):
    """A container of text with the keys of a pager."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.TEXT)

    def action_up(self) -> None:
        """A line up."""
        self.scroll_relative(y=-1, animate=False)

    def action_down(self) -> None:
        """A line down."""
        self.scroll_relative(y=1, animate=False)

    def action_first(self) -> None:
        """The beginning."""
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        """The end."""
        self.scroll_end(animate=False)

    def action_page_up(self) -> None:
        """A page up."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """A page down."""
        self.scroll_page_down(animate=False)


def note_lines(
    notes: Sequence[str], key: str, width: int, *, is_roomy: bool, style: str = "muted"
) -> Iterator[TextLine]:
    """The lines of notes that have no control characters; `key` shows all of them."""
    if is_roomy or not notes:
        for note in notes:
            yield from (TextLine(text, style) for text in wrapped(note, width))
        return
    more = f"  ({key}: {len(notes)} {'note' if len(notes) == 1 else 'notes'})"
    room = max(width - len(more), 1)
    first = notes[0] if len(notes[0]) <= room else f"{set_cell_size(notes[0], room - 1)}…"
    yield TextLine(first + more, style)
