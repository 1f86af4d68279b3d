"""Text that is laid out for a width, and a container that scrolls it with the keys of a pager."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from kubectl_qos.present.format import escape
from kubectl_qos.present.output import ARROW, Line, Section, ValueChange
from kubectl_qos.tui.actions import BindingGroup, bindings


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line; `token` is one of STYLES or a colour of the theme. Each of the `parts` has its own token."""

    text: str
    token: str = ""
    parts: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(*parts: tuple[str, str]) -> TextLine:
        """Return a line of texts with their tokens."""
        return TextLine("".join(text for text, _ in parts), "", parts)


TextLayout = Callable[[int], Sequence[TextLine]]
"""Returns the lines for a width in cells."""

STYLES: Final = {
    "": "",
    "title": "bold $accent",
    "answer": "bold",
    "changed": "bold $warning",
    "wrong": "bold $error",
    "danger": "bold $error",
    "muted": "$secondary",
    "calm": "$primary",
    "mine": "bold $accent",
    "key": "$accent",
    "filled": "$fill",
    "faint": "$secondary",
}


def style_of(token: str) -> str:
    """Return the style of a token, for a terminal with colours."""
    return STYLES.get(token, f"${token}")


_COLOURLESS: Final = {
    **{token: style.partition("$")[0].strip() for token, style in STYLES.items()},
    "wrong": "bold underline",
    "danger": "bold reverse",
}
"""Styles for a terminal without colours."""


def wrapped(text: str, width: int, indent: str = "", hanging: str = "  ") -> Iterator[str]:
    """Yield a text in lines of at most this width; `hanging` indents all lines but the first."""
    yield from textwrap.wrap(
        text,
        max(width, 16),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    ) or [""]


def escape_lines(text: str) -> str:
    """Escape the control characters of a text from a server or file, but not its line ends."""
    return "\n".join(escape(line) for line in text.split("\n"))


def layout_lines(lines: Iterable[TextLine]) -> TextLayout:
    """Wrap long lines, which keep their indentation and token."""
    kept = list(lines)

    def layout(width: int) -> list[TextLine]:
        lines = []
        for line in kept:
            indent = line.text[: len(line.text) - len(line.text.lstrip(" "))]
            if len(line.text) <= width:
                lines.append(line)
                continue
            lines += [TextLine(part, line.token) for part in wrapped(line.text.strip(), width, indent)]
        return lines

    return layout


def yaml_layout(text: str) -> TextLayout:
    """Lay out YAML, whose lines are not wrapped."""
    lines = [yaml_line(line) for line in text.splitlines()]
    return lambda _: lines


_YAML_KEY: Final = re.compile(r"""(\s*(?:- )*)([^\s#'":][^:]*|"[^"]*"|'[^']*')(:)(\s.*|)$""")


def yaml_line(line: str) -> TextLine:
    """Return a line of YAML, with its key in colour."""
    match = _YAML_KEY.match(line)
    if match is None:
        return TextLine(line, "muted" if line.lstrip().startswith("#") else "")
    indent, key, colon, value = match.groups()
    return TextLine.of((indent, "muted"), (key, "key"), (colon, "muted"), (value, ""))


def paragraphs(*texts: tuple[str, str]) -> TextLayout:
    """Lay out texts with their tokens, each on a new line."""
    return lambda width: [
        TextLine(line, token) for text, token in texts for line in wrapped(text, width, hanging="")
    ]


def stacked(*layouts: TextLayout) -> TextLayout:
    """Return layouts below each other."""
    return lambda width: [line for layout in layouts for line in layout(width)]


def no_text(_: int) -> list[TextLine]:
    """Lay out nothing."""
    return []


class TextView(Widget):
    """Lines of text, as a layout returns them for the width."""

    def __init__(
        self,
        layout: TextLayout = no_text,
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._text_layout = layout
        self._laid_out: tuple[int, Sequence[TextLine]] = (-1, ())

    def show(self, layout: TextLayout) -> None:
        """Show other lines. The screen is laid out again only if their number changes."""
        (width, before), self._text_layout, self._laid_out = self._laid_out, layout, (-1, ())
        if width < 0:
            self.refresh(layout=True)
        elif (lines := TextView.text_lines(self, width)) != before:
            height = self.styles.height
            is_fixed = height is not None and not height.is_auto
            self.refresh(layout=len(lines) != len(before) and not is_fixed)

    def text_lines(self, width: int) -> Sequence[TextLine]:
        if self._laid_out[0] != width:
            self._laid_out = (width, self._text_layout(width))
        return self._laid_out[1]

    def part_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Return the line and the part of it that a cell shows, None if it shows none."""
        line = self._laid_out[1][y : y + 1]
        ends = accumulate(cell_len(text) for text, _ in line[0].parts) if line else ()
        return next(((y, part) for part, end in enumerate(ends) if x < end), None)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.text_lines(width))

    def render(self) -> Content:
        lines = self.text_lines(self.content_size.width)
        return Content("\n").join(map(self._content, lines))

    def _content(self, line: TextLine) -> Content:
        parts = line.parts or ((line.text, line.token),)
        return Content.assemble(*((text, self._style(token)) for text, token in parts))

    def _style(self, token: str) -> str:
        return _COLOURLESS.get(token, "") if self.app.no_color else style_of(token)


class TextScroll(VerticalScroll, inherit_bindings=False):
    """A container of text with the keys of a pager."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.TEXT)

    def action_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def action_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)


def note_lines(
    notes: Sequence[str], key: str, width: int, *, is_roomy: bool, style: str = "muted"
) -> Iterator[TextLine]:
    """Yield the lines of notes or, without room, the first note and the key that shows all."""
    if is_roomy or not notes:
        for note in notes:
            yield from (TextLine(text, style) for text in wrapped(note, width))
        return
    more = f"  ({key}: {len(notes)} {'note' if len(notes) == 1 else 'notes'})"
    room = max(width - len(more), 1)
    first = notes[0] if len(notes[0]) <= room else f"{set_cell_size(notes[0], room - 1)}…"
    yield TextLine(first + more, style)


MAX_NOTE_COLUMN: Final = 46
"""The last column in which the notes of a section begin."""
MIN_NOTE_WIDTH: Final = 26
"""With less room than this, a note is below its line."""
_TOKENS: Final = {"!": "wrong", "*": "changed", " ": "answer"}


def section_layout(section: Section, margin: str = "  ") -> TextLayout:
    """Lay out what is below the title of a section."""
    return lambda width: list(_body(section, width, margin))


def effects_layout(
    sections: Sequence[Section], wrong_fields: int = 0, missing: Sequence[str] = ()
) -> TextLayout:
    """Lay out the sections of a preview: `*` marks a change, `!` an obstacle.

    `wrong_fields` is how many fields have an invalid text. `missing` are notes on unknown values.
    """

    def layout(width: int) -> list[TextLine]:
        lines = []
        if wrong_fields:
            fields = "a field is" if wrong_fields == 1 else f"{wrong_fields} fields are"
            lines += [
                TextLine(text, "wrong") for text in wrapped(f"! {fields} wrong: the old value counts", width)
            ]
        for section in sections:
            heading = wrapped(f"{section.mark} {section.heading}", width)
            lines += [TextLine(text, _TOKENS[section.mark]) for text in heading]
            lines += _body(section, width, "    ")
        for sentence in missing:
            lines += [
                TextLine(text, "muted") for text in wrapped(f"note: {escape_lines(sentence)}", width, "  ")
            ]
        return lines

    return layout


def _body(section: Section, width: int, margin: str) -> Iterator[TextLine]:
    label_width = max((len(change.label) for change in section.changes), default=0)
    before_width = max((len(change.before) for change in section.changes), default=0)
    for change in section.changes:
        yield from _change(change, label_width, before_width, width)
    lengths = (2 * line.depth + len(line.text) for line in section.lines if line.note)
    column = max((length for length in lengths if length <= MAX_NOTE_COLUMN), default=0)
    for line in section.lines:
        yield from _line(line, column, width, margin)


def _change(change: ValueChange, label_width: int, before_width: int, width: int) -> list[TextLine]:
    label = change.label.ljust(label_width)
    token, mark = ("changed", "*") if change.changed else ("", " ")
    text, values = f"  {mark} {label}  {change.before}", [("  ", change.before)]
    if change.changed:
        text = f"  * {label}  {change.before.rjust(before_width)} {ARROW} {change.after}"
        text += f"  ({change.delta})" if change.delta else ""
        values.append((f"{ARROW} ", change.after))
    if len(text) <= width:
        return [TextLine(text, token)]
    below = (line for sign, value in values for line in wrapped(sign + value, width, "    "))
    return [TextLine(line, token) for line in (f"  {mark} {change.label}", *below)]


def _line(line: Line, column: int, width: int, margin: str) -> list[TextLine]:
    """Return a line and its note, which is on the next line if there is no room."""
    indent = margin + "  " * line.depth
    if not line.note:
        return [TextLine(text) for text in wrapped(line.text, width, indent)]
    left = indent + line.text
    begin = max(len(margin) + column, len(left)) + 3
    longest = max(map(len, line.note.split()))
    if width - begin < min(max(MIN_NOTE_WIDTH, longest), len(line.note)):
        notes = wrapped(line.note, width, f"{indent}    ")
        texts = wrapped(line.text, width, indent)
        return [*map(TextLine, texts), *(TextLine(note, "muted") for note in notes)]
    first, *more = wrapped(line.note, width - begin, hanging="")
    return [TextLine(left.ljust(begin) + first), *(TextLine(" " * begin + text) for text in more)]
