"""A node's memory as a bar: its parts fill the cells exactly, in proportion to the node's bytes."""

from dataclasses import replace
from functools import cache
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kubectl_qos.analysis.group_table import NodeRow, build_node_rows
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.node_columns import (
    FILLS,
    FREE,
    NODE_COLUMNS,
    RESERVED,
    BarSegment,
    memory_bar,
    memory_ticks,
)
from kubectl_qos.qos.qos_class import QosClass

GI = 1 << 30
BYTES = st.integers(0, 1 << 50)
CAPACITY = st.integers(1, 1 << 45)
CELLS = st.integers(0, 200)


@cache
def demo() -> dict[str, NodeRow]:
    rows = build_node_rows(DemoSource().snapshot(Scope()), lambda *_: True).rows
    return {row.name: row for row in rows}


def row_of(
    used: tuple[int, int, int] | None, capacity: int | None = 16 * GI, allocatable: int | None = None
) -> NodeRow:
    """A node whose Guaranteed, Burstable and BestEffort pods use these amounts."""
    row = demo()["worker-1"]
    classes = (QosClass.GUARANTEED, QosClass.BURSTABLE, QosClass.BEST_EFFORT)
    found = None if used is None else dict(zip(classes, used, strict=True))
    memory = row.memory._replace(used=found)
    return replace(row, memory=memory, capacity=capacity, allocatable=allocatable)


def text(bar: tuple[BarSegment, ...]) -> str:
    return "".join(part.text for part in bar)


def cells_of(bar: tuple[BarSegment, ...], qos: QosClass) -> int:
    return sum(len(part.text) for part in bar if part.qos is qos)


@pytest.mark.parametrize(
    ("used", "allocatable", "bar"),
    [
        ((4, 4, 4), 16, "██G█▓▓B▓░░E░    "),
        ((4, 4, 4), 14, "██G█▓▓B▓░░E░  ··"),
        ((4, 4, 4), 10, "██G█▓▓B▓░░E░····"),
        ((3, 1, 2), None, "█G█▓░░          "),
        ((0, 0, 0), 15, "               ·"),
        ((0, 16, 0), 15, "▓▓▓▓▓▓▓▓B▓▓▓▓▓▓▓"),
        ((8, 8, 8), 15, "████G███▓▓▓▓B▓▓▓"),
        ((20, 8, 8), 15, "████████G███████"),
    ],
)
def test_a_bar_of_a_cell_a_gibibyte(used: tuple[int, int, int], allocatable: int | None, bar: str) -> None:
    guaranteed, burstable, best_effort = used
    row = row_of(
        (guaranteed * GI, burstable * GI, best_effort * GI),
        16 * GI,
        None if allocatable is None else allocatable * GI,
    )
    assert text(memory_bar(row, 16)) == bar


@given(st.tuples(BYTES, BYTES, BYTES), CAPACITY, st.none() | BYTES, CELLS)
def test_the_parts_add_up_to_the_cells(
    used: tuple[int, int, int], capacity: int, allocatable: int | None, cells: int
) -> None:
    bar = memory_bar(row_of(used, capacity, allocatable), cells)
    assert len(text(bar)) == cells
    assert all(part.text for part in bar)
    classes = [part.qos for part in bar if part.qos is not None]
    order = [qos for qos, _ in groupby(classes)]
    assert order == [qos for qos in FILLS if qos in classes], "each class once, in the order of their scores"
    free = [part.text[0] for part in bar if part.qos is None]
    assert free == [sign for sign in (FREE, RESERVED) if sign in free]
    assert all(len(set(part.text)) == 1 for part in bar if part.qos is None)
    for qos in order:
        letter, fill = "E" if qos is QosClass.BEST_EFFORT else qos.value[0], FILLS[qos]
        shown = text(tuple(part for part in bar if part.qos is qos))
        middle, rest = len(shown) // 2, len(shown) - len(shown) // 2 - 1
        assert shown == (fill * middle + letter + fill * rest if rest > 0 and middle else fill * len(shown))
        assert all(part.is_letter == (part.text == letter) for part in bar if part.qos is qos)


@given(st.tuples(BYTES, BYTES, BYTES), CAPACITY, CELLS)
def test_no_part_is_off_by_more_than_a_cell(used: tuple[int, int, int], capacity: int, cells: int) -> None:
    bar = memory_bar(row_of(used, capacity), cells)
    room = float(cells)
    for qos, amount in zip(FILLS, used, strict=True):
        exact = min(cells * amount / capacity, room)
        assert abs(cells_of(bar, qos) - exact) <= 1
        room -= exact


@given(st.tuples(BYTES, BYTES, BYTES), BYTES, CAPACITY, st.none() | BYTES, CELLS)
def test_more_use_leaves_no_more_room(
    used: tuple[int, int, int], more: int, capacity: int, allocatable: int | None, cells: int
) -> None:
    less = memory_bar(row_of(used, capacity, allocatable), cells)
    bar = memory_bar(row_of((used[0] + more, *used[1:]), capacity, allocatable), cells)
    assert cells_of(bar, QosClass.GUARANTEED) >= cells_of(less, QosClass.GUARANTEED)
    assert text(bar).count(FREE) <= text(less).count(FREE)
    assert text(bar).count(RESERVED) <= text(less).count(RESERVED)


def test_what_is_beyond_the_capacity_is_cut_off() -> None:
    bar = memory_bar(row_of((10 * GI, 10 * GI, 10 * GI), 16 * GI, 15 * GI), 32)
    assert len(text(bar)) == 32
    assert {qos: cells_of(bar, qos) for qos in QosClass} == {
        QosClass.GUARANTEED: 20,
        QosClass.BURSTABLE: 12,
        QosClass.BEST_EFFORT: 0,
    }


def test_without_use_or_capacity_there_is_no_bar() -> None:
    assert memory_bar(row_of(None), 20) == ()
    assert memory_bar(row_of((1, 1, 1), None), 20) == ()
    assert memory_bar(row_of((1, 1, 1), 0), 20) == ()


def test_a_node_without_use_is_free_but_for_what_is_reserved() -> None:
    assert memory_bar(row_of((0, 0, 0), 16 * GI, 12 * GI), 8) == (
        BarSegment(FREE * 6, None),
        BarSegment(RESERVED * 2, None),
    )


def test_a_sample_that_makes_no_sense_breaks_nothing() -> None:
    assert len(text(memory_bar(row_of((4 * GI, -9 * GI, 4 * GI)), 16))) == 16


def test_every_sign_is_a_cell_wide() -> None:
    for row in demo().values():
        for cells in range(70):
            assert cell_len(text(memory_bar(row, cells))) == cells


def test_the_nodes_of_the_demo() -> None:
    assert text(memory_bar(demo()["worker-2"], 32)).strip()
    for row in demo().values():
        used = row.memory.used
        assert used is not None
        assert row.capacity is not None
        assert row.allocatable is not None
        bar = memory_bar(row, 1000)
        for qos, amount in used.items():
            assert abs(cells_of(bar, qos) - 1000 * amount / row.capacity) <= 1
        assert text(bar).count(RESERVED) == round(1000 * (row.capacity - row.allocatable) / row.capacity)


def test_the_next_death_has_its_time() -> None:
    row = demo()["worker-2"]
    assert row.death is not None
    timed = replace(row, death=row.death._replace(seconds=40.0))
    texts = [NODE_COLUMNS["next_death"].cell(node, DEMO_TIME) for node in (row, timed)]
    assert texts == [f"+2Mi data/importer-5f7b9c-2vtxk:c, own limit 98%{when}" for when in ("", ", ~40 s")]


def test_the_kubelet_evicts_where_the_pods_have_grown_by_the_distance() -> None:
    """The node has 100Mi of its own more, but the limit of kubepods is nearer."""
    row = demo()["worker-2"]
    assert (row.memory.used_bytes, row.to_eviction) == (15185 << 20, 587 << 20)
    assert "eviction 15.4Gi" in memory_ticks(row, 80)
    assert "eviction 15.9Gi" in memory_ticks(replace(row, to_eviction=None), 80)
