"""A node's memory as a bar: what each class uses, what is free, and what pods cannot have."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from kubectl_qos.present.marks import CLASSES
from kubectl_qos.present.node_rows import NodeRow
from kubectl_qos.qos.qos_class import QosClass

FILLS: Final = {QosClass.GUARANTEED: "█", QosClass.BURSTABLE: "▓", QosClass.BEST_EFFORT: "░"}
FREE: Final = " "
RESERVED: Final = "·"
"""Capacity that is not allocatable: for the system, the kubelet, and the eviction threshold."""


class Part(NamedTuple):
    """So many cells of a bar that mean the same; `qos` is None of what no pod uses."""

    text: str
    qos: QosClass | None


def memory_bar(row: NodeRow, cells: int) -> tuple[Part, ...]:
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
        Part(_filled(qos, end - begin), qos) for qos, (begin, end) in zip(classes, pairwise(cut), strict=True)
    ]
    rest = cells - cut[-1]
    reserved = 0
    if row.allocatable is not None:
        reserved = min(round(cells * max(capacity - row.allocatable, 0) / capacity), rest)
    parts += [Part(FREE * (rest - reserved), None), Part(RESERVED * reserved, None)]
    return tuple(part for part in parts if part.text)


def _filled(qos: QosClass, cells: int) -> str:
    fill = FILLS[qos] * cells
    if cells < 3:
        return fill
    middle = cells // 2
    return fill[:middle] + CLASSES[qos].letter + fill[middle + 1 :]
