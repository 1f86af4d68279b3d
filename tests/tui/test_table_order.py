from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.demo import DEMO_TIME
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.rows import kill_order, rows_of
from kubectl_qos.tui.facts import facts_of
from kubectl_qos.tui.widgets.table_order import Order, place_of
from tests.tui.sources import demo, with_usage
from tests.tui.test_line_table import NAME, SIZE, Row

ROWS = st.lists(st.builds(Row, st.sampled_from("abcdefgh"), st.integers(0, 3)), max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), ROWS),
        st.tuples(st.just("filter"), st.integers(0, 3)),
        st.tuples(st.just("again"), st.none()),
        st.tuples(st.just("sort"), st.tuples(st.sampled_from([NAME, SIZE]), st.booleans())),
    ),
    max_size=12,
)


def in_order(rows: list[Row], key: str, *, turned: bool, pinned: int) -> list[Row]:
    top, free = rows[:pinned], rows[pinned:]
    if key == "name":
        return top + (free[::-1] if turned else free)
    return top + sorted(free, key=lambda row: row.size if turned else -row.size)


@given(STEPS, st.integers(0, 2))
def test_whatever_is_done_the_order_is_that_of_a_plain_stable_sort(
    steps: list[tuple[str, Any]], pinned: int
) -> None:
    order: Order[Row] = Order("name", pinned)
    loaded: list[Row] = []
    for step, value in steps:
        if step == "sort":
            column, turned = value
            order.sort_by(column, turned=turned)
        else:
            if step == "load":
                loaded = value
            elif step == "filter":
                loaded = [row for row in loaded if row.size != value]
            else:
                loaded = list(loaded)
            order.load(loaded)
        key, turned = order.by
        expected = in_order(loaded, key, turned=turned, pinned=pinned)
        assert list(map(id, order.rows)) == list(map(id, expected))


def test_the_same_rows_are_not_sorted_again() -> None:
    order: Order[Row] = Order("name", 0)
    rows = [Row("a", 1), Row("b", 2)]
    order.load(rows)
    order.sort_by(SIZE, turned=False)
    shown = order.rows
    order.load(list(rows))
    assert order.rows is shown
    order.load([rows[0], Row("b", 2)])
    assert order.rows is not shown, "an equal row is another one"


@given(ROWS, st.integers(0, 20), st.integers(0, 20))
def test_a_row_is_found_by_identity_then_by_key(rows: list[Row], at: int, near: int) -> None:
    rows = [Row(f"{row.name}{index}", row.size) for index, row in enumerate(rows)]
    if at < len(rows):
        assert place_of(rows[at], rows, lambda row: row.name, near) == at
        assert place_of(Row(rows[at].name, 99), rows, lambda row: row.name, near) == at
    assert place_of(Row("nobody", 0), rows, lambda row: row.name, near) is None


def test_rows_come_in_kill_order_over_all_nodes() -> None:
    for containers in (False, True):
        rows = rows_of(demo(), Scope(), containers=containers).rows
        assert list(rows) == sorted(rows, key=kill_order)
        assert all(kill_order(one) <= kill_order(other) for one, other in pairwise(rows))


def test_rows_about_which_nothing_changed_are_the_very_same() -> None:
    before = facts_of(demo(), Scope(), DEMO_TIME)
    after = facts_of(with_usage(before.snapshot, "db-0", 2**30), Scope(), DEMO_TIME, before=before)
    plain = rows_of(after.snapshot, Scope()).rows
    assert after.rows.rows == plain
    old = {row.key: row for row in before.rows.rows}
    for row in after.rows.rows:
        assert (row is old[row.key]) == (row == old[row.key]), row.key
    assert 0 < sum(row is not old[row.key] for row in plain if row != old[row.key]) < len(plain) / 2
