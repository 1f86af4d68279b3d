"""What a change or a setting does, laid out as lines: `*` marks what changes, `!` what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_qos.present.diff import EffectSection, ValueChange
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, escape_lines, wrapped


def effects_layout(
    parts: tuple[EffectSection, ...], wrong_fields: int = 0, missing: Sequence[str] = ()
) -> TextLayout:
    """The preview as lines: `*` marks what changes, `!` what stands in the way.

    Args:
        parts: of the preview.
        wrong_fields: so many fields have a text that nothing can be made of.
        missing: what the effects would need and nobody knows.
    """

    def layout(width: int) -> list[TextLine]:
        lines = []
        if wrong_fields:
            fields = "a field is" if wrong_fields == 1 else f"{wrong_fields} fields are"
            lines += [
                TextLine(text, "wrong") for text in wrapped(f"! {fields} wrong and counted as it was", width)
            ]
        for part in parts:
            lines += _part(part, width)
        for sentence in missing:
            lines += [
                TextLine(text, "muted") for text in wrapped(f"note: {escape_lines(sentence)}", width, "  ")
            ]
        return lines

    return layout


def _part(part: EffectSection, width: int) -> list[TextLine]:
    sign, token = (" ", "answer")
    if part.warns:
        sign, token = "!", "wrong"
    elif part.changed:
        sign, token = "*", "changed"
    title = f"{sign} {part.title}"
    lines = [
        TextLine(text, token) for text in wrapped(f"{title}: {part.answer}" if part.answer else title, width)
    ]
    label_width = max((len(change.label) for change in part.changes), default=0)
    before_width = max((len(change.before) for change in part.changes), default=0)
    for change in part.changes:
        lines += _change(change, label_width, before_width, width)
    for sentence in part.sentences:
        lines += [TextLine(text) for text in wrapped(sentence, width, "    ")]
    return lines


def _change(change: ValueChange, label_width: int, before_width: int, width: int) -> list[TextLine]:
    label = change.label.ljust(label_width)
    if not change.changed:
        return [TextLine(f"    {label}  {change.before}")]
    text = f"  * {label}  {change.before.rjust(before_width)} → {change.after}"
    if change.delta:
        text += f"  ({change.delta})"
    if len(text) <= width:
        return [TextLine(text, "changed")]
    return [
        TextLine(f"  * {change.label}", "changed"),
        TextLine(f"      {change.before}", "changed"),
        TextLine(f"    → {change.after}", "changed"),
    ]
