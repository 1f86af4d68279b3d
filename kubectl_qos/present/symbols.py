"""How a class or flag looks: letter, glyph, ASCII stand-in and the theme's name for its colour.

Colour is never the only carrier: each class has a letter, each flag a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from kubectl_qos.present.node_rows import NodeRow
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.qos.flags import Flag, Risk, risk
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import has_processes


@dataclass(frozen=True, slots=True)
class Mark:
    """The looks of one thing; `token` is a theme colour, not a colour."""

    letter: str
    glyph: str
    ascii: str
    token: str


CLASSES: Final = {
    QosClass.GUARANTEED: Mark("G", "●", "G", "success"),
    QosClass.BURSTABLE: Mark("B", "◐", "B", ""),
    QosClass.BEST_EFFORT: Mark("E", "○", "E", "warning"),
}

FLAG_TOKENS: Final = {
    Flag.CRITICAL: "success",
    Flag.PRIORITY: "warning",
    Flag.NEAR_LIMIT: "error",
    Flag.OVER_REQUEST: "warning",
    Flag.RESIZING: "accent",
    Flag.STATIC: "text-muted",
    Flag.CLASS_DIFFERS: "warning",
}


def row_risk(row: PodRow) -> Risk:
    """The level of a pod, or of a container: by its own rank and its pod's flags."""
    return risk(row.flags, row.rank, has_processes=has_processes(row.pod) and not row.ended)


FILLS: Final = {QosClass.GUARANTEED: "█", QosClass.BURSTABLE: "▓", QosClass.BEST_EFFORT: "░"}
FREE: Final = " "
RESERVED: Final = "·"
"""Capacity that is not allocatable: for the system, the kubelet, and the eviction threshold."""


class BarSegment(NamedTuple):
    """So many cells of a bar that mean the same; `qos` is None of what no pod uses."""

    text: str
    qos: QosClass | None


def memory_bar(row: NodeRow, cells: int) -> tuple[BarSegment, ...]:
    """The node's capacity in so many cells, nothing where it or the usage is not known.

    Edges are rounded each by itself, so that parts never add up to more or less than there is; what a class
    uses beyond the capacity is cut off. The letter of a class stands in the middle of its part.
    """
    used, capacity = row.memory.used, row.capacity
    if used is None or not capacity:
        return ()
    classes = list(FILLS)
    amounts = [max(used[qos], 0) for qos in classes]
    edges = [0]
    for amount in amounts:
        edges.append(edges[-1] + amount)
    cut = [min(round(cells * edge / capacity), cells) for edge in edges]
    parts = [
        BarSegment(_filled(qos, end - begin), qos)
        for qos, (begin, end) in zip(classes, pairwise(cut), strict=True)
    ]
    rest = cells - cut[-1]
    reserved = 0
    if row.allocatable is not None:
        reserved = min(round(cells * max(capacity - row.allocatable, 0) / capacity), rest)
    parts += [BarSegment(FREE * (rest - reserved), None), BarSegment(RESERVED * reserved, None)]
    return tuple(part for part in parts if part.text)


def _filled(qos: QosClass, cells: int) -> str:
    fill = FILLS[qos] * cells
    if cells < 3:
        return fill
    middle = cells // 2
    return fill[:middle] + CLASSES[qos].letter + fill[middle + 1 :]
