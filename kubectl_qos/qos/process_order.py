"""One kill by the kernel: who is chosen when memory runs out somewhere, and who dies with it.

Source: Linux mm/oom_kill.c (out_of_memory, select_bad_process, oom_evaluate_task, __oom_kill_process) and
mm/memcontrol.c (mem_cgroup_get_oom_group). Sizes are in pages. Not here: what a pod's processes are
(host/ reads them, qos/ranking.py stands in one for each container).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from kubectl_qos.qos.oom_score import Kernel, badness, kernel_formula, proc_oom_score

NEVER: Final = -1000
"""The oom_score_adj that makes a process immune, in a group kill too."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the kernel scores it.

    `cgroup` is its path below the mount, `pages` resident memory, swap entries and page tables together.
    """

    key: str
    cgroup: str
    adj: int
    pages: int


@dataclass(frozen=True, slots=True)
class OomDomain:
    """Where memory ran out: `/` is the machine, anything else the cgroup whose limit was hit.

    `total_pages` is what oom_score_adj is scaled by: RAM and swap of the machine, or the cgroup's limit.
    """

    path: str
    total_pages: int

    def holds(self, cgroup: str) -> bool:
        """Whether processes of that cgroup are in the running."""
        return is_below(cgroup, self.path)


@dataclass(frozen=True, slots=True)
class Kill:
    """What happens: the chosen process, those it tied with, and everything that dies.

    `group` is the cgroup that dies as a whole (memory.oom.group), None where one process does.
    """

    victim: Process
    points: int
    tied: tuple[Process, ...]
    dying: tuple[Process, ...]
    group: str | None

    @property
    def freed_pages(self) -> int:
        """What the dying processes used."""
        return sum(process.pages for process in self.dying)


def next_kill(
    processes: Iterable[Process],
    domain: OomDomain,
    kernel: Kernel = Kernel.SIGNED,
    oom_groups: Collection[str] = (),
) -> Kill | None:
    """The next victim of an OOM in that domain, None if nobody there may be killed.

    Args:
        processes: every process of the machine.
        domain: where memory ran out; only processes in it are looked at.
        kernel: which formula.
        oom_groups: the cgroups with memory.oom.group set (cgroup v2).

    Of processes with equal points the first one given is named; which one the kernel takes depends on the
    order in which it walks them, so they are listed in `tied`.
    """
    living = list(processes)
    scored = [
        (badness(process.pages, process.adj, domain.total_pages, kernel), process)
        for process in living
        if process.adj != NEVER and domain.holds(process.cgroup)
    ]
    if not scored:
        return None
    points = max(score for score, _ in scored)
    chosen, *tied = [process for score, process in scored if score == points]
    group = oom_group(chosen.cgroup, domain, oom_groups)
    dying = [chosen]
    if group is not None:
        dying = [process for process in living if process.adj != NEVER and is_below(process.cgroup, group)]
    return Kill(chosen, points, tuple(tied), tuple(dying), group)


def oom_group(cgroup: str, domain: OomDomain, oom_groups: Collection[str]) -> str | None:
    """The highest cgroup with memory.oom.group from the victim's up to the domain, None without one."""
    above = [path for path in oom_groups if is_below(cgroup, path) and domain.holds(path)]
    return min(above, key=len, default=None)


def limit_pages(
    memory_max_bytes: int,
    swap_max_bytes: int | None,
    total_swap_bytes: int,
    page: int,
    *,
    is_swappy: bool = True,
) -> int:
    """`mem_cgroup_get_max` on cgroup v2: the limit and what may be swapped, at least one page.

    `swap_max_bytes` None is no limit on swap; `is_swappy` whether vm.swappiness is above 0, without which
    swap does not count.
    """
    swap = total_swap_bytes if swap_max_bytes is None else min(swap_max_bytes, total_swap_bytes)
    return max(memory_max_bytes // page + (swap // page if is_swappy else 0), 1)


def limit_pages_v1(
    limit_bytes: int, memsw_bytes: int | None, total_swap_bytes: int, page: int, *, is_swappy: bool = True
) -> int:
    """The same on cgroup v1, where memory.memsw.limit_in_bytes is for memory and swap together.

    `memsw_bytes` None is a kernel that counts no swap; `is_swappy` whether the cgroup's own memory.swappiness
    is above 0.
    """
    swap = None if memsw_bytes is None else max(memsw_bytes - limit_bytes, 0)
    return limit_pages(limit_bytes, swap, total_swap_bytes, page, is_swappy=is_swappy)


def is_below(path: str, ancestor: str) -> bool:
    """Whether a cgroup is the other one or inside it."""
    return ancestor in {"/", path} or path.startswith(f"{ancestor}/")


SCORE_SLACK: Final = 2
"""Memory changes between two reads, and kernels since 6.2 count it approximately."""
IDLE_SCORE: Final = 600
"""An idle process with adj 0 shows about 666 with the newest formula, about 0 with those before."""


class ScoredProcess(Protocol):
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


ProcessT = TypeVar("ProcessT", bound=ScoredProcess)
ProcessT_co = TypeVar("ProcessT_co", bound=ScoredProcess, covariant=True)


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


def counted_pages(process: ScoredProcess, page: int) -> int:
    """What counts against a process: resident memory, swap and page tables."""
    return (process.rss_kb + process.swap_kb + process.pte_kb) * 1024 // page


def formula_in_use(processes: Sequence[ScoredProcess], release: str, total_pages: int, page: int) -> Kernel:
    """The formula of the kernel's version, unless the scores of idle processes show another.

    Some vendors have the newest formula in older kernels (kernel_of). Less than a twentieth of the machine is
    idle enough.
    """
    said = kernel_formula(release)
    idle = [
        process.score
        for process in processes
        if process.score is not None
        and process.adj == 0
        and process.pid != 1
        and not process.borrows
        and counted_pages(process, page) * 20 < total_pages
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
    points = badness(counted_pages(process, page), process.adj, total_pages, kernel, admin=process.admin)
    expected = proc_oom_score(points, total_pages, kernel)
    spared = _spared(process, expected, is_whole=is_whole)
    return RankedProcess(process, None, False, points, expected if spared is None else 0, spared)


def _spared(process: ScoredProcess, expected: int, *, is_whole: bool) -> Spared | None:
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
