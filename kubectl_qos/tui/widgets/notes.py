"""Notes below everything else: all of them where there is room, else the first and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import set_cell_size

from kubectl_qos.tui.widgets.document import TextLine, wrapped


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
