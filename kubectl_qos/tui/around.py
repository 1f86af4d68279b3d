"""What the surroundings of an object say to a change of it, as parts of the preview."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_qos.edit.landing import Way, ways
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.edit.verdict import Weight
from kubectl_qos.edit.verdicts import verdicts
from kubectl_qos.errors import QosError
from kubectl_qos.present.diff import Part
from kubectl_qos.present.landing import landing_lines, way_title
from kubectl_qos.present.notes import missing_sentence
from kubectl_qos.present.verdicts import verdict_line
from kubectl_qos.tui.change import Subject
from kubectl_qos.tui.widgets.document import harmless


def around_parts(
    preview: Preview, subject: Subject, around: Surroundings | QosError | None
) -> tuple[Part, ...]:
    """What refuses the change, what warns of it, and the ways that it can land; None is still being read."""
    if around is None:
        return (Part("Around it", "reading owners, LimitRanges, quotas …"),)
    if isinstance(around, QosError):
        return (Part("Around it", f"not known: {harmless(str(around))}", warns=True),)
    return tuple(_parts(preview, subject, around))


def _parts(preview: Preview, subject: Subject, around: Surroundings) -> Iterator[Part]:
    if preview.edits:
        found = ways(subject.pod, preview.edits, preview, around)
        said = list(verdict_parts(preview, subject, around, found[0].landing))
        yield from (part for part in said if part.warns)
        yield _ways(found, is_refused=any(part.title == REFUSED for part in said))
        yield from (part for part in said if not part.warns)
    if around.missing:
        unread = tuple(map(missing_sentence, around.missing))
        yield Part("Around it", "not all of it can be read", sentences=unread, warns=True)


def verdict_parts(preview: Preview, subject: Subject, around: Surroundings, road: Landing) -> Iterator[Part]:
    """One part for each verdict that the preview does not show itself, the most severe first."""
    for verdict in verdicts(preview, around, road, subject.usage):
        if not verdict.in_preview:
            title, warns = _TITLES[verdict.weight], verdict.weight is not Weight.TELLS
            yield Part(title, verdict_line(verdict), warns=warns)


REFUSED: Final = "Refused"
_TITLES: Final = {Weight.REFUSES: REFUSED, Weight.WARNS: "Warning", Weight.TELLS: "Note"}


def _ways(found: tuple[Way, ...], *, is_refused: bool) -> Part:
    possible = [way for way in found if way.is_possible]
    answer = way_title(possible[0]) if possible else "none is possible"
    if possible and is_refused:
        answer += ", and would be refused"
    return Part("Ways to land it", answer, sentences=tuple(landing_lines(found)), warns=not possible)
