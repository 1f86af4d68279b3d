"""What a server said, laid out as lines: sentences, the three values of a conflict, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_qos.cluster.write import Rehearsed, Stale, Unsure
from kubectl_qos.edit.undo import Conflict
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.present.landing import conflict_lines, rehearsal_lines
from kubectl_qos.tui.widgets.document import TextLayout, TextLine, harmless, wrapped


def laid_out(lines: Iterable[TextLine]) -> TextLayout:
    """Lines that only wrap, each keeping its own indentation and style; a table is not broken."""
    kept = list(lines)

    def layout(width: int) -> list[TextLine]:
        found = []
        for line in kept:
            indent = line.text[: len(line.text) - len(line.text.lstrip(" "))]
            found += [
                TextLine(part, line.token)
                for part in (
                    [line.text] if len(line.text) <= width else wrapped(line.text.strip(), width, indent)
                )
            ]
        return found

    return layout


def error_lines(about: str, error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """A refusal in its own words, the three values of a conflict, its hint, and what can be done."""
    status = f" ({error.status})" if isinstance(error, ApiError) else ""
    lines = [TextLine(f"! {about}: {harmless(str(error))}{status}", "wrong")]
    if isinstance(error, Stale):
        lines += table_lines(error.conflicts)
    hints = [error.hint] if error.hint and not remedies else []
    return [*lines, *(TextLine(f"  {harmless(text)}") for text in (*hints, *remedies))]


def sent_error_lines(error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Why a change was not sent or not done, or is not known to be."""
    about = "not known to be done" if isinstance(error, Unsure) else "not done"
    return error_lines(about, error, remedies)


def table_lines(conflicts: Iterable[Conflict]) -> list[TextLine]:
    """Before, ours and theirs of each value."""
    return [TextLine(f"    {line}", "changed") for line in conflict_lines(conflicts)]


def accepted_lines(rehearsed: Rehearsed) -> list[TextLine]:
    """What a server said that accepted the dry run."""
    first, *more = rehearsal_lines(rehearsed.request, rehearsed.stored, rehearsed.warnings)
    return [TextLine(f"  {first}", "answer"), *(TextLine(f"  {line}", "changed") for line in more)]
