"""The kernel's order of a machine's processes, from what each of them is measured to use.

Source: Linux mm/oom_kill.c (select_bad_process, oom_evaluate_task, oom_badness, oom_unkillable_task). Not
here: pods by what the API says of them (ranking.py), and what a kill frees (oom_kill.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from kubectl_qos.qos.oom_kill import NEVER
from kubectl_qos.qos.oom_score import Kernel, badness, kernel_of, proc_oom_score

SCORE_SLACK: Final = 2
"""Memory changes between two reads, and kernels since 6.2 count it approximately."""
IDLE_SCORE: Final = 600
"""An idle process with adj 0 shows about 666 with the newest formula, about 0 with those before."""


class Measured(Protocol):
    """A process as /proc shows it; sizes in KiB."""

    @property
    def pid(self) -> int: ...  # noqa: D102
    @property
    def ppid(self) -> int: ...  # noqa: D102
    @property
    def comm(self) -> str: ...  # noqa: D102
    @property
    def cmdline(self) -> str: ...  # noqa: D102
    @property
    def adj(self) -> int: ...  # noqa: D102
    @property
    def score(self) -> int | None: ...  # noqa: D102
    @property
    def rss_kb(self) -> int: ...  # noqa: D102
    @property
    def anon_kb(self) -> int: ...  # noqa: D102
    @property
    def swap_kb(self) -> int: ...  # noqa: D102
    @property
    def pte_kb(self) -> int: ...  # noqa: D102
    @property
    def cgroup(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> int: ...  # noqa: D102
    @property
    def admin(self) -> bool: ...  # noqa: D102
    @property
    def borrows(self) -> bool: ...  # noqa: D102


class Spared(Enum):
    """Why the kernel does not look at a process."""

    ADJ = "oom_score_adj is -1000"
    INIT = "it is the machine's init"
    VFORK = "its memory is its parent's, which waits for it"
    SCORE = "the kernel scores it 0: it is about to end, or shares the memory of one that is never killed"


ProcessT = TypeVar("ProcessT", bound=Measured)
ProcessT_co = TypeVar("ProcessT_co", bound=Measured, covariant=True)


@dataclass(frozen=True, slots=True)
class RankedProcess(Generic[ProcessT_co]):
    """A process in the order of kills; no rank where the kernel does not look at it.

    `points` is badness in pages, by which the kernel chooses, `expected` what /proc should show: 0 for those
    without a rank.
    """

    process: ProcessT_co
    rank: int | None
    is_tied: bool
    points: int
    expected: int
    spared: Spared | None

    @property
    def differs(self) -> bool:
        """Whether /proc shows another score than the formula gives."""
        score = self.process.score
        return self.spared is None and score is not None and abs(score - self.expected) > SCORE_SLACK


def process_order(
    processes: Iterable[ProcessT], total_pages: int, page: int, kernel: Kernel, *, is_whole: bool
) -> tuple[RankedProcess[ProcessT], ...]:
    """The processes that may be killed, the next victim first, then the others.

    Args:
        processes: those that have memory.
        total_pages: RAM and swap.
        page: bytes.
        kernel: which formula.
        is_whole: whether process 1 is the machine's init, and not that of a PID namespace.
    """
    rows = [_row(process, total_pages, page, kernel, is_whole=is_whole) for process in processes]
    looked_at = sorted((row for row in rows if row.spared is None), key=lambda row: (-row.points, _pid(row)))
    ranked: list[RankedProcess[ProcessT]] = []
    for index, row in enumerate(looked_at):
        beside = [looked_at[near].points for near in (index - 1, index + 1) if 0 <= near < len(looked_at)]
        is_first = not ranked or ranked[-1].points != row.points
        rank = index + 1 if is_first else ranked[-1].rank
        ranked.append(RankedProcess(row.process, rank, row.points in beside, row.points, row.expected, None))
    others = sorted((row for row in rows if row.spared is not None), key=_pid)
    return (*ranked, *others)


def pages_of(process: Measured, page: int) -> int:
    """What counts against a process: resident memory, swap and page tables."""
    return (process.rss_kb + process.swap_kb + process.pte_kb) * 1024 // page


def formula_in_use(processes: Sequence[Measured], release: str, total_pages: int, page: int) -> Kernel:
    """The formula of the kernel's version, unless the scores of idle processes show another.

    Some vendors have the newest formula in older kernels (kernel_of). Less than a twentieth of the machine is
    idle enough.
    """
    said = kernel_of(release)
    idle = [
        process.score
        for process in processes
        if process.score is not None
        and process.adj == 0
        and process.pid != 1
        and not process.borrows
        and pages_of(process, page) * 20 < total_pages
    ]
    if not idle:
        return said
    is_signed = sum(score >= IDLE_SCORE for score in idle) * 2 > len(idle)
    if is_signed:
        return Kernel.SIGNED
    return Kernel.FLOORED if said is Kernel.SIGNED else said


def _row(
    process: ProcessT, total_pages: int, page: int, kernel: Kernel, *, is_whole: bool
) -> RankedProcess[ProcessT]:
    points = badness(pages_of(process, page), process.adj, total_pages, kernel, admin=process.admin)
    expected = proc_oom_score(points, total_pages, kernel)
    spared = _spared(process, expected, is_whole=is_whole)
    return RankedProcess(process, None, False, points, expected if spared is None else 0, spared)


def _spared(process: Measured, expected: int, *, is_whole: bool) -> Spared | None:
    if process.adj == NEVER:
        return Spared.ADJ
    if process.pid == 1 and is_whole:
        return Spared.INIT
    if process.borrows:
        return Spared.VFORK
    if process.score == 0 and expected > SCORE_SLACK:
        return Spared.SCORE
    return None


def _pid(row: RankedProcess[ProcessT]) -> int:
    return row.process.pid
