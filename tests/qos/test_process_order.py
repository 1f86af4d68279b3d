"""The order of measured processes: points, ties, those passed over, the formula, and what dies together."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, badness, proc_oom_score, restrict_adj
from kubectl_qos.qos.process_order import (
    HostProcess,
    NotRanked,
    RankedProcess,
    counted_pages,
    formula_in_use,
    oom_group,
    process_order,
)

TOTAL, PAGE = 4 << 20, 4096


def seen(
    pid: int,
    adj: int = 0,
    rss_kb: int = 1024,
    *,
    score: int | None = None,
    swap_kb: int = 0,
    pte_kb: int = 0,
    borrows: bool = False,
) -> HostProcess:
    return HostProcess(
        pid=pid,
        ppid=1,
        comm="app",
        adj=adj,
        rss_bytes=rss_kb << 10,
        score=score,
        swap_bytes=swap_kb << 10,
        page_table_bytes=pte_kb << 10,
        borrows=borrows,
    )


def order(
    *processes: HostProcess, kernel: Kernel = Kernel.SIGNED, is_whole: bool = True
) -> list[RankedProcess]:
    return list(process_order(processes, TOTAL, PAGE, kernel, is_whole=is_whole))


def test_points_decide_and_equal_ones_share_a_rank() -> None:
    found = order(seen(5, 0), seen(6, 1000), seen(7, 0), seen(8, -997), seen(9, 0, 4096))
    assert [(row.process.pid, row.rank, row.is_tied) for row in found] == [
        (6, 1, False),
        (9, 2, False),
        (5, 3, True),
        (7, 3, True),
        (8, 5, False),
    ]


def test_those_that_are_never_killed_come_last_without_a_rank() -> None:
    found = order(
        seen(1, 0, 1 << 20, score=0),
        seen(4, -1000, 1 << 22),
        seen(5),
        seen(6, 500, score=0),
        seen(7, borrows=True),
    )
    assert [(row.process.pid, row.rank, row.not_ranked) for row in found] == [
        (5, 1, None),
        (1, None, NotRanked.INIT),
        (4, None, NotRanked.ADJ),
        (6, None, NotRanked.SCORE),
        (7, None, NotRanked.VFORK),
    ]
    assert order(seen(1, score=666), is_whole=False)[0].rank == 1


def test_a_score_of_nothing_is_not_taken_for_a_refusal() -> None:
    assert order(seen(5, -999, 4, score=0))[0].rank == 1
    assert order(seen(5, 0, 4, score=0), kernel=Kernel.FLOORED)[0].rank == 1
    assert order(seen(5, 0, score=None))[0].rank == 1


def test_swap_and_page_tables_count() -> None:
    assert counted_pages(seen(5, rss_kb=8, swap_kb=8, pte_kb=8), PAGE) == 6
    assert counted_pages(seen(5, rss_kb=128, pte_kb=64), 65536) == 3


@pytest.mark.parametrize(
    ("score", "differs"), [(664, False), (668, False), (663, True), (669, True), (None, False)]
)
def test_two_points_are_no_difference(score: int | None, *, differs: bool) -> None:
    (row,) = order(seen(5, score=score))
    assert row.expected == 666
    assert row.differs is differs


@pytest.mark.parametrize(
    ("release", "scores", "kernel"),
    [
        ("6.1.0-50-amd64", [666, 668, 667], Kernel.SIGNED),
        ("4.19.91-vendor", [666, 667, 0], Kernel.SIGNED),
        ("4.19.91", [0, 1, 3], Kernel.FLOORED),
        ("3.10.0-1160.el7", [0, 1, 3], Kernel.MINUS_30),
        ("4.4.0", [0, 0], Kernel.MINUS_3_PERCENT),
        ("6.1.0", [0, 1, 2], Kernel.FLOORED),
        ("5.4.0", [], Kernel.FLOORED),
        ("", [666], Kernel.SIGNED),
    ],
)
def test_idle_processes_show_the_formula(release: str, scores: list[int], kernel: Kernel) -> None:
    init = seen(1, score=0)
    others = [seen(2, 500, score=1000), seen(3, 0, 8 << 20, score=999), seen(4, score=None)]
    found = [seen(10 + index, score=score) for index, score in enumerate(scores)]
    assert formula_in_use([init, *others, *found], release, TOTAL, PAGE) is kernel


@given(
    st.lists(st.tuples(st.integers(-1000, 1000), st.integers(0, 1 << 24)), min_size=1, max_size=20),
    st.sampled_from(Kernel),
)
def test_the_order_is_that_of_badness(drawn: list[tuple[int, int]], kernel: Kernel) -> None:
    found = order(*(seen(10 + index, adj, size) for index, (adj, size) in enumerate(drawn)), kernel=kernel)
    points = partial(badness, total_pages=TOTAL, kernel=kernel)
    candidates = [points(size // 4, adj) for adj, size in drawn if adj != OOM_SCORE_ADJ_MIN]
    for row in found:
        process = row.process
        assert row.points == points(process.rss_bytes // 4096, process.adj)
        if process.adj == OOM_SCORE_ADJ_MIN:
            assert (row.rank, row.expected) == (None, 0)
        else:
            assert row.rank == 1 + sum(other > row.points for other in candidates)
            assert row.is_tied is (candidates.count(row.points) > 1)
            assert row.expected == proc_oom_score(row.points, TOTAL, kernel)
    ranks = [row.rank for row in found if row.rank is not None]
    assert ranks == sorted(ranks)
    assert len(ranks) == len(candidates)


def test_the_highest_cgroup_with_oom_group_dies() -> None:
    groups = {"/kubepods/pod1", "/kubepods/pod1/c1"}
    assert oom_group("/kubepods/pod1/c1/own", groups) == "/kubepods/pod1"
    assert oom_group("/kubepods/pod1/c1", groups - {"/kubepods/pod1"}) == "/kubepods/pod1/c1"
    assert oom_group("/kubepods/pod10/c1", groups) is None, "pod10 is not below pod1"
    assert oom_group("/kubepods/pod10/c1", {"/"}) == "/"


def test_row_108_root_is_spared_by_old_kernels_only() -> None:
    def points(kernel: Kernel, *, admin: bool) -> int:
        return badness(100_000, 0, TOTAL, kernel, admin=admin)

    assert points(Kernel.SIGNED, admin=True) == points(Kernel.SIGNED, admin=False)
    assert points(Kernel.FLOORED, admin=True) == points(Kernel.FLOORED, admin=False)
    assert points(Kernel.MINUS_3_PERCENT, admin=True) == 97_000
    assert points(Kernel.MINUS_30, admin=True) == 1, "30 of 1000 of this machine is more than it uses"


def test_row_112_a_restricted_runtime_does_not_go_below_itself() -> None:
    assert [restrict_adj(adj, 0) for adj in (-997, -998, 938, 1000)] == [0, 0, 938, 1000]
    assert restrict_adj(-997, None) == -997
