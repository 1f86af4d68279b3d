"""Memory over time in blocks: in one line, or in several lines below a ceiling, stacked by class.

Not in braille, which has four steps of height in a cell instead of eight, and no fills that tell classes
apart without colour.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from kubectl_qos.analysis.group_table import NodeRow
from kubectl_qos.analysis.trends import MOST, STEADY
from kubectl_qos.present.format import binary, mebibytes, rounded
from kubectl_qos.present.node_columns import FILLS
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.tui.widgets.text_view import TextLine, wrapped

BARS: Final = "▁▂▃▄▅▆▇█"
_CEILING: Final = "┄"
_DEATH: Final = "✗"
_MIN_NODE_SAMPLES, _MIN_POD_SAMPLES = 2, 4
"""There is no graph of fewer samples."""
GRAPH_HEIGHT: Final = 4
_MAX_SAMPLE_CELLS: Final = 2
_WARNING_PERCENT, _ERROR_PERCENT = 80, 95
"""From these shares of a ceiling on, memory is in other colours."""
CLASS_TOKENS: Final[dict[QosClass | None, str]] = {
    None: "muted",
    **{qos: CLASSES[qos].token for qos in FILLS},
    QosClass.GUARANTEED: "filled",
}
"""The colours of classes, and of memory that no pod uses."""
SIMULATED: Final = "▒"
LEGEND: Final = ", ".join(f"{fill} {qos.value}" for qos, fill in FILLS.items())

Parts = tuple[tuple[str, str], ...]
"""Texts with their tokens."""


class Band(NamedTuple):
    """A part of the memory at each sample, drawn above the bands before it."""

    samples: Sequence[int]
    fill: str
    token: str


def fullness_token(used: int, ceiling: int | None) -> str:
    """Return the token of used bytes below a ceiling."""
    percent = 100 * used // ceiling if ceiling else 0
    return "error" if percent >= _ERROR_PERCENT else "warning" if percent >= _WARNING_PERCENT else "calm"


def sparkline(samples: Sequence[int], ceiling: int | None, cells: int) -> str:
    """Draw the last samples as bars from 0 to a ceiling; without one, from the lowest to the highest."""
    shown = samples[-cells:]
    lowest, highest = min(shown, default=0), max(shown, default=0)
    if ceiling:
        lowest, highest = 0, max(ceiling, highest)
    else:  # steady memory has low bars
        highest = max(highest, lowest + int(highest * STEADY) + 1)
    span = max(highest - lowest, 1)
    return "".join(BARS[min((sample - lowest) * len(BARS) // span, len(BARS) - 1)] for sample in shown)


def pod_graph(
    kib: Sequence[int],
    limit: int | None,
    width: int,
    times: Sequence[int] = (),
    deaths: Sequence[datetime] = (),
) -> list[TextLine]:
    """Draw the memory of a pod in KiB below its limit in bytes; without one, from the lowest to the highest.

    `times` are the times of the samples in seconds. `deaths`, the times when the pod died, are marked.
    """
    kib, ceiling = kib[-MOST:], limit >> 10 if limit else None
    lowest, highest = min(kib, default=0), max(kib, default=0)
    if len(kib) < _MIN_POD_SAMPLES or (not limit and highest - lowest <= highest * STEADY):
        return []
    text = mebibytes if rounded(lowest << 10) == rounded(highest << 10) else rounded
    labels = [binary(limit) if limit else text(highest << 10), *[""] * (GRAPH_HEIGHT - 2)]
    labels.append("0" if limit else text(lowest << 10))
    column = max(map(len, labels))
    wide = max(min((width - column - len("  limit")) // MOST, _MAX_SAMPLE_CELLS), 1)
    tokens = [fullness_token(sample, ceiling) for sample in kib for _ in range(wide)]
    columns = [sample for sample in kib for _ in range(wide)]
    bands = [
        Band([sample * (token == of) for sample, of in zip(columns, tokens, strict=True)], BARS[-1], token)
        for token in dict.fromkeys(tokens)
    ]
    span = 0 if limit else lowest, max(ceiling or 0, highest)
    lines = graph(bands, span, (GRAPH_HEIGHT, MOST * wide), (ceiling, "limit") if ceiling else None)
    shown = [
        TextLine.of((f"{label:>{column}} ", "muted"), *line)
        for label, line in zip(labels, lines, strict=True)
    ]
    seen = f"the last {len(kib)} samples, {text(lowest << 10)} to {text(highest << 10)}"
    if died := [time for time in deaths if times and time.timestamp() >= times[0]]:
        marks = {bisect_left(times, time.timestamp()) * wide for time in died}
        row = "".join(_DEATH if cell in marks else " " for cell in range(max(marks) + 1))
        shown.append(TextLine(f"{' ' * column} {row}", "error"))
        seen += f"; {_DEATH} died {', '.join(f'{time:%H:%M:%S}' for time in died)}"
    indent = " " * (column + 1)
    return [*shown, *(TextLine(line, "muted") for line in wrapped(seen, width, indent, ""))]


def node_graph(
    row: NodeRow,
    classes: Sequence[Sequence[int]],
    height: int,
    width: int,
    later: Sequence[tuple[int, bool]] = (),
) -> list[Parts]:
    """Draw the memory of a node below its capacity, in KiB by class, and where the kubelet evicts.

    `later` has the sum of all pods at simulated steps, and whether a pod is killed then, which is marked.
    """
    label = f"{binary(row.capacity or 0)} "
    room = width - len(label) - len(" kubelet evicts")
    wide = max(room // (2 * MOST if len(classes) > 1 and later else MOST), 1)
    if not row.capacity or len(classes) + len(later) < _MIN_NODE_SAMPLES or room < MOST:
        return []
    past = classes[-min(MOST, room // 2 // wide if later else MOST) :]
    later = later[: room // wide - len(past)]
    columns = [(*of_class, 0) for of_class in past] + [(0, 0, 0, used) for used, _ in later]
    fills = *((fill, CLASS_TOKENS[qos]) for qos, fill in FILLS.items()), (SIMULATED, "muted")
    bands = [
        Band([column[place] for column in columns for _ in range(wide)], *fill)
        for place, fill in enumerate(fills)
    ]
    ceiling = None
    if row.to_eviction is not None and row.memory.used_bytes is not None:
        ceiling = row.memory.used_bytes + row.to_eviction >> 10, "kubelet evicts"
    cells = room // wide * wide if later else MOST * wide
    lines = graph(bands, (0, row.capacity >> 10), (height, cells), ceiling)
    labels = [label, *[" " * len(label)] * (height - 2), f"{'0 ':>{len(label)}}"]
    drawn = [((text, "muted"), *line) for text, line in zip(labels, lines, strict=True)]
    if later:
        kills = "".join((_DEATH if is_kill else "").ljust(wide) for _, is_kill in later)
        drawn.append(((f"{'now':>{len(label) + wide * len(past)}}", "muted"), (kills, "error")))
    return drawn


def graph(
    bands: Sequence[Band],
    span: tuple[int, int],
    size: tuple[int, int],
    ceiling: tuple[int, str] | None = None,
) -> list[Parts]:
    """Draw bands as columns; `size` has the lines and cells, `span` the lowest and highest value.

    The top line comes first. The band that has most of a cell fills it. A ceiling is a value with a name; its
    line is drawn where nothing is used.
    """
    (lowest, highest), (height, cells), step = span, size, len(BARS)

    def level(value: int) -> int:
        return min(max((value - lowest) * height * step // max(highest - lowest, 1), 0), height * step)

    samples = zip(*(band.samples for band in bands), strict=True)
    columns = [[*map(level, accumulate(sizes, initial=0))] for sizes in samples]
    lines = []
    at = min(level(ceiling[0]), height * step - 1) // step if ceiling is not None else -1
    for number in reversed(range(height)):
        row = [_cell(bands, edges, number * step) for edges in columns]
        row += [("", "")] * (cells - len(row))
        empty, name = ((_CEILING, "faint"), f" {ceiling[1]}") if ceiling and number == at else ((" ", ""), "")
        runs = groupby((cell if cell[0] else empty for cell in row), itemgetter(1))
        lines.append((*(("".join(map(itemgetter(0), run)), token) for token, run in runs), (name, "muted")))
    return lines


def _cell(bands: Sequence[Band], edges: Sequence[int], base: int) -> tuple[str, str]:
    """Return the character of a cell and its token, both empty if nothing is used."""
    within = [min(max(edge - base, 0), len(BARS)) for edge in edges]
    if not within[-1]:
        return "", ""
    parts = [after - before for before, after in pairwise(within)]
    band = bands[parts.index(max(parts))]
    return band.fill if within[-1] == len(BARS) else BARS[within[-1] - 1], band.token
