"""Sections (present/output.py) as lines of the UI: of an explanation, and of a preview with its marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_qos.present.output import ARROW, Change, Line, Section
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, escape_lines, wrapped

NOTE_AT_MOST: Final = 46
"""Notes begin no further to the right than this."""
NOTE_AT_LEAST: Final = 26
"""A note with less room than this goes below its line."""
_TOKENS: Final = {"!": "wrong", "*": "changed", " ": "answer"}


def section_layout(section: Section) -> TextLayout:
    """What is below the title of a section."""
    return lambda width: list(_body(section, width, "  "))


def effects_layout(
    sections: Sequence[Section], wrong_fields: int = 0, missing: Sequence[str] = ()
) -> TextLayout:
    """The sections of a preview: `*` marks what changes, `!` what stands in the way.

    Args:
        sections: of the preview.
        wrong_fields: how many fields have an invalid text.
        missing: notes on what the effects need and nobody knows.
    """

    def layout(width: int) -> list[TextLine]:
        lines = []
        if wrong_fields:
            fields = "a field is" if wrong_fields == 1 else f"{wrong_fields} fields are"
            lines += [
                TextLine(text, "wrong") for text in wrapped(f"! {fields} wrong and counted as it was", width)
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
    column = max((length for length in lengths if length <= NOTE_AT_MOST), default=0)
    for line in section.lines:
        yield from _line(line, column, width, margin)


def _change(change: Change, label_width: int, before_width: int, width: int) -> list[TextLine]:
    label = change.label.ljust(label_width)
    if not change.changed:
        return [TextLine(f"    {label}  {change.before}")]
    text = f"  * {label}  {change.before.rjust(before_width)} {ARROW} {change.after}"
    if change.delta:
        text += f"  ({change.delta})"
    if len(text) <= width:
        return [TextLine(text, "changed")]
    return [
        TextLine(f"  * {change.label}", "changed"),
        TextLine(f"      {change.before}", "changed"),
        TextLine(f"    {ARROW} {change.after}", "changed"),
    ]


def _line(line: Line, column: int, width: int, margin: str) -> list[TextLine]:
    """A line with its note behind it or, without room, below it."""
    indent = margin + "  " * line.depth
    if not line.note:
        return [TextLine(text) for text in wrapped(line.text, width, indent)]
    left = indent + line.text
    begin = max(len(margin) + column, len(left)) + 3
    if width - begin < min(NOTE_AT_LEAST, len(line.note)):
        notes = wrapped(line.note, width, f"{indent}    ")
        texts = wrapped(line.text, width, indent)
        return [*map(TextLine, texts), *(TextLine(note, "muted") for note in notes)]
    first, *more = wrapped(line.note, width - begin, hanging="")
    return [TextLine(left.ljust(begin) + first), *(TextLine(" " * begin + text) for text in more)]
