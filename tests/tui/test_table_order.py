from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.analysis.pod_table import build_rows, kill_order
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.view_model import build_view_model
from kubectl_qos.tui.widgets import table as table_order
from kubectl_qos.tui.widgets.table import RowLines, RowOrder, group_starts, key_index, row_index
from tests.tui.sources import demo, with_usage
from tests.tui.test_line_table import NAME, SIZE, Row

ROWS = st.lists(st.builds(Row, st.text("abc", min_size=1, max_size=4), st.integers(0, 3)), max_size=12)


@dataclass(frozen=True)
class Typed:
    """Rows whose name begins with a text."""

    text: str

    def selected(self, rows: Sequence[Row]) -> Sequence[Row]:
        return [row for row in rows if row.name.startswith(self.text)] if self.text else rows

    def implies(self, other: Typed) -> bool:
        return self.text.startswith(other.text)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), ROWS),
        st.tuples(st.just("change"), st.tuples(st.integers(0, 11), st.integers(0, 3))),
        st.tuples(st.just("again"), st.none()),
        st.tuples(st.just("letter"), st.sampled_from("abc")),
        st.tuples(st.just("backspace"), st.none()),
        st.tuples(st.just("narrow"), st.one_of(st.none(), st.text("abc", max_size=2).map(Typed))),
        st.tuples(st.just("sort"), st.tuples(st.sampled_from([NAME, SIZE]), st.booleans())),
    ),
    max_size=20,
)


def in_order(rows: list[Row], key: str, *, is_reversed: bool, pinned: int) -> list[Row]:
    top, free = rows[:pinned], rows[pinned:]
    if key == "name":
        return top + (free[::-1] if is_reversed else free)
    return top + sorted(free, key=lambda row: row.size if is_reversed else -row.size)


@given(ROWS, STEPS, st.integers(0, 2))
def test_whatever_is_done_the_rows_are_those_of_a_plain_stable_sort_and_a_filter(
    loaded: list[Row], steps: list[tuple[str, Any]], pinned: int
) -> None:
    order: RowOrder[Row] = RowOrder("name", pinned)
    order.load(loaded)
    narrowing: Typed | None = None
    for step, value in steps:
        if step == "sort":
            column, is_reversed = value
            order.sort_by(column, is_reversed=is_reversed)
        else:
            if step == "load":
                loaded = value
            elif step == "change":
                place, size = value
                loaded = [replace(row, size=size) if place == at else row for at, row in enumerate(loaded)]
            elif step == "again":
                loaded = list(loaded)
            elif step == "narrow":
                narrowing = value
            elif narrowing is not None:
                narrowing = Typed(narrowing.text + value if step == "letter" else narrowing.text[:-1])
            order.load(loaded, narrowing)
        key, is_reversed = order.by
        expected: Sequence[Row] = in_order(loaded, key, is_reversed=is_reversed, pinned=pinned)
        if narrowing is not None:
            expected = narrowing.selected(expected)
        assert list(map(id, order.rows)) == list(map(id, expected))


def test_the_same_rows_are_not_sorted_again() -> None:
    order: RowOrder[Row] = RowOrder("name", 0)
    rows = [Row("a", 1), Row("b", 2)]
    order.load(rows)
    order.sort_by(SIZE, is_reversed=False)
    shown = order.rows
    order.load(list(rows))
    assert order.rows is shown
    order.load([rows[0], Row("b", 2)])
    assert order.rows is not shown, "an equal row is another one"


def test_while_a_filter_is_typed_nothing_is_sorted_and_what_is_left_out_is_not_looked_at_again() -> None:
    sorted_rows: list[str] = []
    looked_at: list[str] = []

    def size(row: Row) -> int:
        sorted_rows.append(row.name)
        return -row.size

    class Counting(Typed):
        def selected(self, rows: Sequence[Row]) -> Sequence[Row]:
            looked_at.extend(row.name for row in rows)
            return super().selected(rows)

    order: RowOrder[Row] = RowOrder("name", 0)
    rows = [Row("a", 1), Row("ab", 2), Row("abc", 3), Row("b", 4)]
    order.load(rows)
    order.sort_by(structs.replace(SIZE, sort_key=size), is_reversed=False)
    sorted_rows.clear()
    for text in ("a", "ab", "abc", "a", "b"):
        order.load(list(rows), Counting(text))
    order.load(rows)
    assert [row.name for row in order.rows] == ["b", "abc", "ab", "a"]
    assert not sorted_rows
    whole = ["b", "abc", "ab", "a"]
    assert looked_at == [*whole, *whole[1:], *whole[1:3], *whole, *whole]


@given(ROWS, st.integers(0, 20), st.integers(1, 4))
def test_a_row_is_found_by_identity_or_by_key(rows: list[Row], near: int, nearby: int) -> None:
    rows = [Row(f"{row.name}{index}", row.size) for index, row in enumerate(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_order, "NEARBY", nearby)
        for place, row in enumerate(rows):
            assert row_index(row, rows, near) == place
            assert row_index(replace(row), rows, near) is None
            assert key_index(row.name, rows, lambda row: row.name, near) == place
        assert key_index("nobody", rows, lambda row: row.name, near) is None


def test_rows_come_in_kill_order_over_all_nodes() -> None:
    for containers in (False, True):
        rows = build_rows(demo(), Scope(), containers=containers).rows
        assert list(rows) == sorted(rows, key=kill_order)
        assert all(kill_order(one) <= kill_order(other) for one, other in pairwise(rows))


def test_rows_about_which_nothing_changed_are_the_very_same() -> None:
    before = build_view_model(demo(), Scope(), DEMO_TIME)
    after = build_view_model(with_usage(before.snapshot, "db-0", 2**30), Scope(), DEMO_TIME, before=before)
    plain = build_rows(after.snapshot, Scope()).rows
    assert after.rows.rows == plain
    old = {row.key: row for row in before.rows.rows}
    for row in after.rows.rows:
        assert (row is old[row.key]) == (row == old[row.key]), row.key
    assert 0 < sum(row is not old[row.key] for row in plain if row != old[row.key]) < len(plain) / 2


@given(st.lists(st.sampled_from("aab"), max_size=30), st.integers(1, 4))
def test_every_line_is_of_a_row_or_a_heading(groups: list[str], height: int) -> None:
    starts = group_starts(groups)
    lines = RowLines(height, starts)
    assert [groups[start] for start in starts] == [group for group, _ in groupby(groups)]
    expected: list[tuple[int, int]] = []
    for index in range(len(groups)):
        if index in starts:
            assert lines.top(index) == len(expected)
            expected.append((index, -1))
        assert lines.first(index) == len(expected)
        expected += [(index, part) for part in range(height)]
    assert [lines.at(line) for line in range(lines.count(len(groups)))] == expected
