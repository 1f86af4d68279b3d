"""The object whose requests and limits are changed, with all that its change is judged on.

Not here: the edits themselves (edit/), applying it (write_service.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.findings import Severity, find_findings
from kubectl_qos.edit.goals import Goal, outlive, rank_at_least
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import RelatedObjects, pod_from_raw
from kubectl_qos.edit.strategy import Strategy, find_strategies
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.apply import strategy_lines, strategy_title
from kubectl_qos.present.findings import finding_line
from kubectl_qos.present.output import Section, sentences
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.text_view import escape_lines


class EditTarget:
    """A pod, or the template of a workload, as it was at one moment.

    It keeps the source that it came from: the UI may go to another cluster while a screen is open, and a
    change is never written to another one than it was made for.
    """

    def __init__(self, pod: Pod, view_model: ViewModel, source: Source) -> None:
        snapshot = view_model.snapshot
        self.pod = pod
        self.view_model = view_model
        self.source = source
        self.setup = snapshot.setup(pod.node_name)
        self.usage = snapshot.usage.get((pod.namespace, pod.name)) if pod.kind == "Pod" else None
        self.missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name]

    @property
    def name(self) -> str:
        return pod_name(self.pod)

    def preview(self, edits: Iterable[Edit]) -> Preview:
        snapshot = self.view_model.snapshot
        return preview(self.pod, edits, self.setup, self._neighbours, snapshot.usage)

    def others(self) -> list[PodRow]:
        ranked = self.view_model.rows.nodes.get(self.pod.node_name)
        rows = ranked.rows if ranked is not None and self.pod.node_name else ()
        key = (self.pod.namespace, self.pod.name)
        return [row for row in rows if (row.pod.namespace, row.pod.name) != key]

    def outliving(self, pod: Pod, other: Pod) -> Goal:
        """What takes `pod`, which is this one with edits, behind another one of its node."""
        return outlive(pod, other, self.setup, self._neighbours, self.view_model.snapshot.usage)

    def ranking(self, pod: Pod, rank: int) -> Goal:
        """What takes `pod`, which is this one with edits, to a kill rank or a later one."""
        return rank_at_least(pod, rank, self.setup, self._neighbours, self.view_model.snapshot.usage)

    def now(self, raw: Mapping[str, Any]) -> EditTarget:
        """The same object as a server has it now. Raises QosError where nothing can be made of it."""
        return EditTarget(pod_from_raw(self.pod.kind, raw), self.view_model, self.source)


def related_sections(
    preview: Preview, subject: EditTarget, around: RelatedObjects | QosError | None
) -> tuple[Section, ...]:
    """What refuses the change, what warns of it, and the strategies; None is still being read."""
    if around is None:
        return (Section("Around it", "reading owners, LimitRanges, quotas …"),)
    if isinstance(around, QosError):
        return (Section("Around it", f"not known: {escape_lines(str(around))}", warns=True),)
    return tuple(_parts(preview, subject, around))


def _parts(preview: Preview, subject: EditTarget, around: RelatedObjects) -> Iterator[Section]:
    if preview.edits:
        found = find_strategies(subject.pod, preview.edits, preview, around)
        said = list(finding_sections(preview, subject, around, found[0].kind))
        yield from (part for part in said if part.warns)
        yield _strategies(found, is_refused=any(part.title == REFUSED for part in said))
        yield from (part for part in said if not part.warns)
    if around.missing:
        unread = sentences(*map(missing_sentence, around.missing))
        yield Section("Around it", "not all of it can be read", unread, warns=True)


def finding_sections(
    preview: Preview, subject: EditTarget, around: RelatedObjects, strategy: StrategyKind
) -> Iterator[Section]:
    """One part for each finding that the preview does not show itself, the most severe first."""
    for finding in find_findings(preview, around, strategy, subject.usage):
        if not finding.in_preview:
            title, warns = _TITLES[finding.severity], finding.severity is not Severity.NOTE
            yield Section(title, finding_line(finding), warns=warns)


REFUSED: Final = "Refused"
_TITLES: Final = {Severity.REFUSAL: REFUSED, Severity.WARNING: "Warning", Severity.NOTE: "Note"}


def _strategies(found: tuple[Strategy, ...], *, is_refused: bool) -> Section:
    possible = [strategy for strategy in found if strategy.is_possible]
    answer = strategy_title(possible[0]) if possible else "none is possible"
    if possible and is_refused:
        answer += ", and would be refused"
    return Section("Strategies", answer, sentences(*strategy_lines(found)), warns=not possible)
