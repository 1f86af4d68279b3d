"""The effects of an edit as lines: values at each moment, the ladder of kill ranks, the next deaths, files.

present/effects.py has the numbers, edit_target.py the sentences of findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.cells import cell_len

from kubectl_qos.edit.compare import DeathsAt, LadderRow, NodeReplicas, ladder
from kubectl_qos.edit.preview import Effects
from kubectl_qos.k8s.objects import Json
from kubectl_qos.present.effects import cgroup_sections
from kubectl_qos.present.format import UNKNOWN, binary, count, full_name, mebibytes, shortened
from kubectl_qos.present.next_death import without_deaths
from kubectl_qos.present.output import ARROW, Section
from kubectl_qos.present.preview import heading, moment_table, replicas_section, rollout_section
from kubectl_qos.present.reasons import CLASSES, no_rank_sentence
from kubectl_qos.present.timeline import Focus, timeline
from kubectl_qos.present.tree import readable
from kubectl_qos.tui.widgets.text_view import (
    TextLayout,
    TextLine,
    effects_layout,
    layout_lines,
    no_text,
    stacked,
    wrapped,
)

_GAP: Final = 3


def values_layout(effects: Effects) -> TextLayout:
    """Return a column for each moment; changed values stand out."""
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


def pods_layout(replicas: Sequence[NodeReplicas], others: int, workload: Json | None) -> TextLayout:
    """Return what a rollout does to each pod of a workload, `others` of them elsewhere."""
    if not replicas:
        return no_text
    rollout = rollout_section(replicas, workload) if workload is not None else None
    pods = effects_layout((replicas_section(replicas), *([rollout] if rollout is not None else [])))
    more = [TextLine(f"    and {count(others, 'pod')} on other nodes", "muted")] if others else []
    return stacked(pods, layout_lines([*more, TextLine("")]))


def ladder_layout(effects: Effects, most: int) -> TextLayout:
    """Return the pods around the changed one in kill order, which moves as its values do."""
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


_TOKENS: Final = {
    "axis": "muted",
    "now": "title",
    "mark": "key",
    "far": "answer",
    "near": "changed",
    "danger": "wrong",
    "time": "warning",
}
"""The tokens of styles of a timeline's spans that have another name."""


def deaths_layout(deaths: Sequence[DeathsAt], effects: Effects) -> TextLayout:
    """Draw the next deaths at each moment at which they differ; the pod's own stand out."""
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
            for line in timeline(moment.deaths, width, head=head.ljust(column), focus=Focus(key)):
                yield TextLine.of(*((span.text, _TOKENS.get(span.style, span.style)) for span in line))

    return lambda width: list(layout(width))


def with_units(section: Section) -> Section:
    """Add values in people's units after the raw ones."""
    changes = []
    for change in section.changes:
        old, new = readable(change.label, change.before), readable(change.label, change.after)
        units = f"{old or change.before} {ARROW} {new or change.after}" if old or new else ""
        changes.append(replace(change, delta=", ".join(filter(None, (units, change.delta)))))
    return replace(section, changes=tuple(changes))


def files_layout(effects: Effects, key: str, *, is_folded: bool) -> TextLayout:
    """Return the cgroup files that change: how many, or each with its content before and after."""
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
