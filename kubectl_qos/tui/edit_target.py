"""The object whose requests and limits are changed, with everything that its change is judged on.

edit/ has the edits, write_service.py applies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.compare import NodeReplicas, node_of, recreate_all, usage_of, with_admitted_values
from kubectl_qos.edit.edits import POD_LEVEL, Edit
from kubectl_qos.edit.findings import Severity
from kubectl_qos.edit.goals import Goal, outlive, rank_at_least
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.edit.related import RelatedObjects, pod_from_raw
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.changes import strategy_effect, strategy_title
from kubectl_qos.present.findings import finding_line
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.output import Line, Section, sentences
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.resource_form import SeenMemory
from kubectl_qos.tui.widgets.text_view import escape_lines

_KIB: Final = 1024
MOST_NODES: Final = 6
"""The most nodes on which pods of a workload are shown: each is ranked at every key."""


class EditTarget:
    """A pod, or the template of a workload, as it was at one moment.

    `pods` are those of a workload that have a node, by their kill ranks there.

    It keeps its source: the UI may go to another cluster while a screen is open, and a change is only ever
    written to the cluster that it was made for.
    """

    def __init__(self, pod: Pod, view_model: ViewModel, source: Source) -> None:
        snapshot = view_model.snapshot
        self.pod = pod
        self.view_model = view_model
        self.source = source
        node = node_of(pod, snapshot.pods)
        self.setup = snapshot.setup(node)
        self.usage, self.seen = usage_of(pod, snapshot), snapshot.seen_of(pod)
        self.missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._neighbours = [other for other in snapshot.pods if other.node_name == node]
        workload = find_workload(pod) if pod.kind in WORKLOADS else None
        rows = view_model.rows.rows if workload is not None else ()
        replicas = (view_model.pod_of(row) for row in rows if row.node and find_workload(row.pod) == workload)
        self.pods = [EditTarget(replica, view_model, source) for replica in replicas if replica.kind == "Pod"]
        self._nodes = tuple(dict.fromkeys(target.pod.node_name for target in self.pods))[:MOST_NODES]

    @property
    def name(self) -> str:
        return pod_name(self.pod)

    def uses(self, trends: Trends) -> dict[str, SeenMemory]:
        """Return what each container uses and has used at most, and the pod as POD_LEVEL.

        Of a workload it is that of the pod that uses most. Values of a store of metrics come first.
        """
        if self.pods:
            of_pods = [pod.uses(trends) for pod in self.pods]
            names = dict.fromkeys(name for uses in of_pods for name in uses)
            by_name = {name: [uses[name] for uses in of_pods if name in uses] for name in names}
            most = {name: max(uses, key=attrgetter("used")) for name, uses in by_name.items()}
        else:
            most = self._sampled(trends)
        return {name: use._replace(seen=self.seen.get(name)) for name, use in most.items()}

    def _sampled(self, trends: Trends) -> dict[str, SeenMemory]:
        if self.usage is None:
            return {}
        key = self.pod.key
        peak = max(trends.of(key), default=0) * _KIB or None
        whole = SeenMemory(self.usage.working_set_bytes, peak)
        if len(self.usage.names) == 1:
            return {POD_LEVEL: whole, self.usage.names[0]: whole}
        amounts, peaks = {name: self.usage.of(name) for name in self.usage.names}, trends.peaks(key)
        uses = {
            name: SeenMemory(amount.working_set_bytes, peaks.get(name))
            for name, amount in amounts.items()
            if amount is not None
        }
        return {POD_LEVEL: whole, **uses}

    def preview(self, edits: Iterable[Edit]) -> Preview:
        snapshot = self.view_model.snapshot
        pod = with_admitted_values(self.pod, [target.pod for target in self.pods])
        return preview(pod, edits, self.setup, self._neighbours, snapshot.usage)

    def change(self, edits: tuple[Edit, ...], preview: Preview) -> Apply:
        return Apply(self.pod, edits, preview, usage=self.usage, history=self.seen)

    def replicas(self, preview: Preview) -> tuple[NodeReplicas, ...]:
        """Return the pods of a workload once all are recreated with the edits of a preview; none of a pod."""
        snapshot = self.view_model.snapshot
        pods = [pod for node in self._nodes for pod in snapshot.by_node()[node]]
        return recreate_all(self.pod, preview.edits, replace(snapshot, pods=pods)) if pods else ()

    @property
    def others_of_workload(self) -> int:
        """Return how many pods of a workload are on further nodes."""
        return sum(target.pod.node_name not in self._nodes for target in self.pods)

    def others(self) -> list[PodRow]:
        ranked = self.view_model.rows.nodes.get(self.pod.node_name)
        rows = ranked.rows if ranked is not None and self.pod.node_name else ()
        key = self.pod.key
        return [row for row in rows if row.pod.key != key]

    def outliving(self, pod: Pod, other: Pod) -> Goal:
        """Return the goal that `pod`, which is this one with edits, dies after another one of its node."""
        return outlive(pod, other, self.setup, self._neighbours, self.view_model.snapshot.usage)

    def ranking(self, pod: Pod, rank: int) -> Goal:
        """Return the goal that `pod`, which is this one with edits, has a kill rank or a later one."""
        return rank_at_least(pod, rank, self.setup, self._neighbours, self.view_model.snapshot.usage)

    def now(self, raw: Mapping[str, Any]) -> EditTarget:
        """Return the same object as a server has it now. Raises QosError if nothing can be made of it."""
        return EditTarget(pod_from_raw(self.pod.kind, raw), self.view_model, self.source)


def related_sections(
    preview: Preview, subject: EditTarget, around: RelatedObjects | QosError | None
) -> tuple[Section, ...]:
    """Return what refuses the change, what warns of it, and the strategies; None is still being read."""
    if around is None:
        return (Section("Around it", "reading owners, LimitRanges, quotas …"),)
    if isinstance(around, QosError):
        return (Section("Around it", f"not known: {escape_lines(str(around))}", warns=True),)
    return tuple(_parts(preview, subject, around))


def _parts(preview: Preview, subject: EditTarget, around: RelatedObjects) -> Iterator[Section]:
    if preview.edits:
        change, _ = subject.change(preview.edits, preview).begin(around)
        said = list(finding_sections(change))
        yield from (part for part in said if part.warns)
        yield _strategies(change.strategies, is_refused=any(part.title == REFUSED for part in said))
        yield from (part for part in said if not part.warns)
    if around.missing:
        unread = sentences(*map(missing_sentence, around.missing))
        yield Section("Around it", "not all of it can be read", unread, warns=True)


def finding_sections(change: Apply) -> Iterator[Section]:
    """Yield a section for each finding that the preview does not show itself, the most severe first."""
    for finding in change.findings:
        if not finding.in_preview:
            title, warns = _TITLES[finding.severity], finding.severity is not Severity.NOTE
            yield Section(title, finding_line(finding), warns=warns)


REFUSED: Final = "Refused"
_TITLES: Final = {Severity.REFUSAL: REFUSED, Severity.WARNING: "Warning", Severity.NOTE: "Note"}


def _strategies(strategies: tuple[Strategy, ...], *, is_refused: bool) -> Section:
    possible = [strategy for strategy in strategies if strategy.is_possible]
    answer = strategy_title(possible[0]) if possible else "none is possible"
    if possible and is_refused:
        answer += ", and would be refused"
    lines = tuple(Line(strategy_title(strategy), strategy_effect(strategy)) for strategy in strategies)
    return Section("Strategies", answer, lines, warns=not possible)
