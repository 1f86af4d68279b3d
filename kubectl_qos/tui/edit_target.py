"""The object whose requests and limits are changed, with what its preview needs, and the preview as lines.

edit/ has the edits, present/effects.py the numbers; shell.py applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from msgspec import structs
from rich.cells import cell_len

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.compare import (
    DeathsAt,
    LadderRow,
    NodeReplicas,
    ladder,
    node_of,
    recreate_all,
    usage_of,
    with_admitted_values,
)
from kubectl_qos.edit.edits import POD_LEVEL, Edit, apply_edits, own_edits
from kubectl_qos.edit.findings import Finding, Severity
from kubectl_qos.edit.goals import Goal, highest_goal, outlive, rank_at_least
from kubectl_qos.edit.preview import Effects, Preview, preview
from kubectl_qos.edit.related import RelatedObjects, pod_from_raw
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.present.changes import strategy_effect, strategy_title
from kubectl_qos.present.effects import apply_sections, cgroup_sections
from kubectl_qos.present.findings import finding_line
from kubectl_qos.present.format import UNKNOWN, binary, count, full_name, mebibytes, shortened
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.next_death import without_deaths
from kubectl_qos.present.output import ARROW, Line, Section, sentences
from kubectl_qos.present.preview import heading, moment_table, replicas_section, rollout_section
from kubectl_qos.present.reasons import CLASSES, no_rank_sentence
from kubectl_qos.present.timeline import timeline
from kubectl_qos.present.tree import readable
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.resource_form import SeenMemory
from kubectl_qos.tui.widgets.text_view import (
    TextLayout,
    TextLine,
    effects_layout,
    escape_lines,
    layout_lines,
    no_text,
    stacked,
    wrapped,
)

_KIB: Final = 1024
MAX_NODES: Final = 6
"""The most nodes on which pods of a workload are shown: each node is ranked again on every keystroke."""


class EditTarget:
    """A pod or the template of a workload, as it was at one moment.

    `pods` are the scheduled pods of the workload in kill order. `others_of_workload` counts those that are
    not shown, because they are on further nodes than MAX_NODES.

    It keeps its source: a change is only written to the cluster that it was made for, even if the UI goes to
    another cluster meanwhile.
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
        self.neighbours = [other for other in snapshot.pods if other.node_name == node]
        workload = find_workload(pod) if pod.kind in WORKLOADS else None
        rows = view_model.rows.rows if workload is not None else ()
        replicas = (view_model.pod_of(row) for row in rows if row.node and find_workload(row.pod) == workload)
        self.pods = [EditTarget(replica, view_model, source) for replica in replicas if replica.kind == "Pod"]
        self._nodes = tuple(dict.fromkeys(target.pod.node_name for target in self.pods))[:MAX_NODES]
        self.others_of_workload = sum(target.pod.node_name not in self._nodes for target in self.pods)

    @property
    def name(self) -> str:
        return pod_name(self.pod)

    def uses(self, trends: Trends) -> dict[str, SeenMemory]:
        """Return the current and peak usage of each container, and of the pod as POD_LEVEL.

        Of a workload it is that of the replica that uses most.
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
        return preview(pod, edits, self.setup, self.neighbours, snapshot.usage)

    def change(self, edits: tuple[Edit, ...], preview: Preview) -> Apply:
        return Apply(self.pod, edits, preview, usage=self.usage, history=self.seen)

    def replicas(self, preview: Preview) -> tuple[NodeReplicas, ...]:
        """Return the pods of a workload after all are recreated with the edits; empty if this is a pod."""
        snapshot = self.view_model.snapshot
        pods = [pod for node in self._nodes for pod in snapshot.by_node()[node]]
        return recreate_all(self.pod, preview.edits, replace(snapshot, pods=pods)) if pods else ()

    def others(self) -> list[PodRow]:
        """Return the rows of the pods that share a node with this one, or with a pod of this workload."""
        own = {self.pod.key, *(target.pod.key for target in self.pods)}
        ranked = map(self.view_model.rows.nodes.get, self._nodes or filter(None, [self.pod.node_name]))
        return [row for node in ranked if node is not None for row in node.rows if row.pod.key not in own]

    def outliving(self, edits: Sequence[Edit], other: Pod) -> Goal:
        """Return the further edits with which this, as edited, is killed after `other`."""

        def reach(pod: Pod, setup: NodeSetup, neighbours: Sequence[Pod]) -> Goal:
            return outlive(pod, other, setup, neighbours, self.view_model.snapshot.usage)

        return self._reach(edits, reach, other.node_name)

    def ranking(self, edits: Sequence[Edit], rank: int) -> Goal:
        """Return the further edits with which this, as edited, has the kill rank `rank` or a later one."""

        def reach(pod: Pod, setup: NodeSetup, neighbours: Sequence[Pod]) -> Goal:
            return rank_at_least(pod, rank, setup, neighbours, self.view_model.snapshot.usage)

        return self._reach(edits, reach)

    def _reach(
        self,
        edits: Sequence[Edit],
        reach: Callable[[Pod, NodeSetup, Sequence[Pod]], Goal],
        node: str | None = None,
    ) -> Goal:
        """Return a goal of the pod, or of all pods of the workload, those on a node if one is given."""
        own = {target.pod.key for target in self.pods}
        on_node = [target for target in self.pods if node in {None, target.pod.node_name}]
        goals = []
        for target in on_node or [self]:
            edited = apply_edits(target.pod, own_edits(target.pod, edits))
            others = [other for other in target.neighbours if other.key not in own]
            goals.append(reach(edited, target.setup, others))
        return highest_goal(goals)

    def refreshed(self, raw: Mapping[str, Any]) -> EditTarget:
        """Return the target with the object as the server has it now. Raises QosError."""
        return EditTarget(pod_from_raw(self.pod.kind, raw), self.view_model, self.source)


def related_sections(
    preview: Preview, target: EditTarget, related: RelatedObjects | QosError | None
) -> Iterator[Section]:
    """Yield refusals, warnings, strategies, room, the server's answer and how to apply a change.

    `related` is None while they are being read.
    """
    findings: Sequence[Finding] = ()
    workload = None
    if related is None:
        yield Section("Related objects", "reading owners, LimitRanges, quotas …")
    elif isinstance(related, QosError):
        yield Section("Related objects", f"not known: {escape_lines(str(related))}", warns=True)
    else:
        workload = related.raw
        if preview.edits:
            change, _ = target.change(preview.edits, preview).begin(related)
            findings, sections = change.findings, list(finding_sections(change))
            yield from (section for section in sections if section.warns)
            is_refused = any(section.title == REFUSED for section in sections)
            yield _strategies(change.strategies, is_refused=is_refused)
            yield from (section for section in sections if not section.warns)
        if related.missing:
            unread = sentences(*map(missing_sentence, related.missing))
            yield Section("Related objects", "not all of it can be read", unread, warns=True)
    yield from apply_sections(preview, workload, findings)


def finding_sections(change: Apply) -> Iterator[Section]:
    """Yield a section for each finding, the most severe first, without those that the preview shows."""
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


_GAP: Final = 3


def values_layout(effects: Effects) -> TextLayout:
    """Lay out the values in a column for each moment; changed values are highlighted."""
    headings, rows = moment_table(effects)
    label = max(len(row.label) for row in rows)
    columns = [
        max(len(heading), *(len(row.cells[number]) for row in rows)) + _GAP
        for number, heading in enumerate(headings)
    ]

    def layout(_: int) -> Iterator[TextLine]:
        heads = "".join(map(str.ljust, headings, columns)) if len(headings) > 1 else ""
        if heads:
            yield TextLine(" " * (label + _GAP) + heads.rstrip(), "muted")
        for row in rows:
            cells = [(cell.ljust(width), "") for cell, width in zip(row.cells, columns, strict=True)]
            for number, cell in enumerate(row.cells):
                if cell != row.cells[0]:
                    cells[number] = cells[number][0], "changed"
            yield TextLine.of((row.label.ljust(label + _GAP), "muted"), *cells, (row.delta, "muted"))

    return lambda width: list(layout(width))


def pods_layout(replicas: Sequence[NodeReplicas], pods_elsewhere: int, workload: Json | None) -> TextLayout:
    """Lay out what a rollout does to each pod of a workload; `pods_elsewhere` are only counted."""
    if not replicas:
        return no_text
    rollout = rollout_section(replicas, workload) if workload is not None else None
    pods = effects_layout((replicas_section(replicas), *([rollout] if rollout is not None else [])))
    more = f"    and {count(pods_elsewhere, 'pod')} on other nodes"
    lines = [TextLine(more, "muted")] if pods_elsewhere else []
    return stacked(pods, layout_lines([*lines, TextLine("")]))


def ladder_layout(effects: Effects, most: int) -> TextLayout:
    """Lay out the kill order around the changed pod, at most `most` pods."""
    rows = ladder(effects, most)
    rank = max((len(str(row.rank)) for row in rows), default=0)
    names = [full_name(row.pod.namespace, row.pod.name) for row in rows]
    score = max((len(_score(row)) for row in rows), default=0)
    used = max((len(_used(row)) for row in rows), default=0)
    steps = [heading(effects, row.when) if row.when is not None or not row.is_last else "" for row in rows]
    last = max(map(len, steps), default=0)

    def layout(width: int) -> Iterator[TextLine]:
        if not rows:
            why = no_rank_sentence(effects.after.pod, effects.ranking_after.basis)
            yield from (TextLine(text, "muted") for text in wrapped(why, width, hanging=""))
            return
        room = max(min(width - rank - score - max(used, last) - 10, max(map(cell_len, names))), 8)
        for row, name, step in zip(rows, names, steps, strict=True):
            if row.skipped and row is not rows[0]:
                yield TextLine(f"  {'⋮':>{rank}}  {count(row.skipped, 'pod')}", "muted")
            token = ("mine" if row.is_last else "muted") if row.is_changed else ""
            yield TextLine.of(
                (f"{'▸' if row.is_changed else ' '} {row.rank:>{rank}}  ", token),
                (f"{CLASSES[row.qos].letter} ", token or CLASSES[row.qos].token),
                (f"{shortened(name, room):<{room}}  {_score(row):>{score}}", token),
                (f"  {step or _used(row).rjust(used)}", token or "muted"),
            )

    return lambda width: list(layout(width))


def _score(row: LadderRow) -> str:
    return UNKNOWN if row.score is None else str(row.score)


def _used(row: LadderRow) -> str:
    return "" if row.used is None else mebibytes(row.used)


def deaths_layout(deaths: Sequence[DeathsAt], effects: Effects) -> TextLayout:
    """Draw the next deaths at each moment; deaths of the pod itself are highlighted."""
    used = f"{binary(deaths[0].state.used_bytes)}  " if deaths and deaths[0].deaths else ""
    headings = [heading(effects, at.when) for at in deaths] if len(deaths) > 1 else [used] * len(deaths)
    column, pod = max(map(len, headings), default=0) + 2, effects.before.pod
    key = pod.key

    def layout(width: int) -> Iterator[TextLine]:
        if not deaths:
            yield TextLine("unknown: it runs on no node, or the memory of its node is unknown", "muted")
        for head, moment in zip(headings, deaths, strict=True):
            if not moment.deaths:
                yield TextLine(f"{head.ljust(column)}{without_deaths(moment.state)}", "muted")
                continue
            for line in timeline(moment.deaths, width, head=head.ljust(column), pod=key):
                yield TextLine.of(*((span.text, span.style) for span in line))

    return lambda width: list(layout(width))


def with_units(section: Section) -> Section:
    """Add the values in Mi and cores after the raw ones."""
    changes = []
    for change in section.changes:
        old, new = readable(change.label, change.before), readable(change.label, change.after)
        units = f"{old or change.before} {ARROW} {new or change.after}" if old or new else ""
        changes.append(structs.replace(change, delta=", ".join(filter(None, (units, change.delta)))))
    return structs.replace(section, changes=tuple(changes))


def files_layout(effects: Effects, key: str, *, is_folded: bool) -> TextLayout:
    """Lay out the cgroup files that change: only how many, or each with its content before and after."""
    if not effects.files and not effects.changes_path:
        return effects_layout(tuple(cgroup_sections(effects)))
    sign, verb = ("▸", "shows") if is_folded else ("▾", "hides")
    moves = "the pod moves, " if effects.changes_path else ""
    heading = f"{sign} {moves}{count(len(effects.files), 'file')} changed   {key} {verb} them"
    folded = layout_lines([TextLine(heading, "changed")])
    if is_folded:
        return folded
    unfolded = effects_layout(tuple(map(with_units, cgroup_sections(effects))))
    return lambda width: [*folded(width), *unfolded(width)]
