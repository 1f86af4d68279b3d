"""The order of measured processes: points, ties, who is passed over, and which formula."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.qos.oom_score import Kernel, badness, proc_oom_score
from kubectl_qos.qos.process_order import (
    OomDomain,
    Process,
    RankedProcess,
    Spared,
    counted_pages,
    formula_in_use,
    next_kill,
    process_order,
)

TOTAL, PAGE = 4 << 20, 4096


@dataclass(frozen=True, slots=True)
class Seen:
    pid: int
    adj: int = 0
    rss_kb: int = 1024
    score: int | None = None
    ppid: int = 1
    comm: str = "app"
    cmdline: str = ""
    anon_kb: int = 0
    swap_kb: int = 0
    pte_kb: int = 0
    cgroup: str = ""
    uid: int = 0
    admin: bool = False
    borrows: bool = False


def order(
    *processes: Seen, kernel: Kernel = Kernel.SIGNED, is_whole: bool = True
) -> list[RankedProcess[Seen]]:
    return list(process_order(processes, TOTAL, PAGE, kernel, is_whole=is_whole))


def test_points_decide_and_equal_ones_share_a_rank() -> None:
    found = order(Seen(5, 0), Seen(6, 1000), Seen(7, 0), Seen(8, -997), Seen(9, 0, 4096))
    assert [(row.process.pid, row.rank, row.is_tied) for row in found] == [
        (6, 1, False),
        (9, 2, False),
        (5, 3, True),
        (7, 3, True),
        (8, 5, False),
    ]


def test_those_that_are_never_killed_come_last_without_a_rank() -> None:
    found = order(
        Seen(1, 0, 1 << 20, score=0),
        Seen(4, -1000, 1 << 22),
        Seen(5),
        Seen(6, 500, score=0),
        Seen(7, borrows=True),
    )
    assert [(row.process.pid, row.rank, row.spared) for row in found] == [
        (5, 1, None),
        (1, None, Spared.INIT),
        (4, None, Spared.ADJ),
        (6, None, Spared.SCORE),
        (7, None, Spared.VFORK),
    ]
    assert order(Seen(1, score=666), is_whole=False)[0].rank == 1


def test_a_score_of_nothing_is_not_taken_for_a_refusal() -> None:
    assert order(Seen(5, -999, 4, score=0))[0].rank == 1
    assert order(Seen(5, 0, 4, score=0), kernel=Kernel.FLOORED)[0].rank == 1
    assert order(Seen(5, 0, score=None))[0].rank == 1


def test_swap_and_page_tables_count() -> None:
    assert counted_pages(Seen(5, rss_kb=8, swap_kb=8, pte_kb=8), PAGE) == 6
    assert counted_pages(Seen(5, rss_kb=128, pte_kb=64), 65536) == 3


@pytest.mark.parametrize(
    ("score", "differs"), [(664, False), (668, False), (663, True), (669, True), (None, False)]
)
def test_two_points_are_no_difference(score: int | None, *, differs: bool) -> None:
    (row,) = order(Seen(5, score=score))
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
def test_idle_processes_tell_the_formula(release: str, scores: list[int], kernel: Kernel) -> None:
    init = Seen(1, score=0)
    others = [Seen(2, 500, score=1000), Seen(3, 0, 8 << 20, score=999), Seen(4, score=None)]
    found = [Seen(10 + index, score=score) for index, score in enumerate(scores)]
    assert formula_in_use([init, *others, *found], release, TOTAL, PAGE) is kernel


@given(
    st.lists(st.tuples(st.integers(-1000, 1000), st.integers(0, 1 << 24)), min_size=1, max_size=20),
    st.sampled_from(Kernel),
)
def test_the_first_is_the_next_kill(drawn: list[tuple[int, int]], kernel: Kernel) -> None:
    seen = [Seen(10 + index, adj, size) for index, (adj, size) in enumerate(drawn)]
    found = order(*seen, kernel=kernel)
    kill = next_kill(
        [Process(str(one.pid), "/", one.adj, one.rss_kb // 4) for one in seen], OomDomain("/", TOTAL), kernel
    )
    first = [row for row in found if row.rank == 1]
    assert {str(row.process.pid) for row in first} == (
        {one.key for one in (kill.victim, *kill.tied)} if kill is not None else set()
    )
    ranks = [row.rank for row in found if row.rank is not None]
    assert ranks == sorted(ranks)
    for row in found:
        points = badness(row.process.rss_kb // 4, row.process.adj, TOTAL, kernel)
        score = proc_oom_score(points, TOTAL, kernel) if row.spared is None else 0
        assert (row.points, row.expected) == (points, score)
