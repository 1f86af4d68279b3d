"""One kill by the kernel: who is chosen when memory runs out somewhere, and who dies with it.

Source: Linux mm/oom_kill.c (out_of_memory, select_bad_process, oom_evaluate_task, __oom_kill_process) and
mm/memcontrol.c (mem_cgroup_get_oom_group). Sizes are in pages. Not here: what a pod's processes are
(host/ reads them, qos/ranking.py stands in one for each container).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from kubectl_qos.qos.oom_score import Kernel, badness

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
class Domain:
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
    domain: Domain,
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
    group = group_of(chosen.cgroup, domain, oom_groups)
    dying = [chosen]
    if group is not None:
        dying = [process for process in living if process.adj != NEVER and is_below(process.cgroup, group)]
    return Kill(chosen, points, tuple(tied), tuple(dying), group)


def group_of(cgroup: str, domain: Domain, oom_groups: Collection[str]) -> str | None:
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
