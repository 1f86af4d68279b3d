"""Why the kernel took this process: the points of every process that it could have taken, by its own numbers.

Source: Linux mm/oom_kill.c (oom_badness, oom_evaluate_task, dump_tasks) and mm/memcontrol.c
(mem_cgroup_get_max). The task table of a report holds what oom_badness looks at; before 4.17 also whether a
process has CAP_SYS_ADMIN, which no table says. Not here: predictions for what has not happened (oom_kill.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kubectl_qos.qos.oom_kill import NEVER
from kubectl_qos.qos.oom_report import Constraint, OomReport, OomTask
from kubectl_qos.qos.oom_score import Kernel, badness, kernel_of, proc_oom_score


class Unranked(Enum):
    """Why there is no ranking."""

    NO_VICTIM = "the log does not say who was killed"
    NO_TABLE = "the task table is not in the log (vm.oom_dump_tasks is 0, or the log was cut)"
    NO_TOTAL = "the log does not say how much memory oom_score_adj was scaled by"
    NOT_LISTED = "the victim is not in the task table"
    ALLOCATING = "vm.oom_kill_allocating_task is set: whoever asked for memory is killed, without a choice"


@dataclass(frozen=True, slots=True)
class Scored:
    """A process of the table with its points, in pages, by which the kernel chooses.

    `place` counts from 1, equal points share one. `score` is what /proc/PID/oom_score showed, None where the
    machine's memory is not known.
    """

    task: OomTask
    used_pages: int
    points: int
    place: int
    score: int | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Everybody who could have been killed, those with the most points first; `immune` had -1000.

    `chosen` is whom the kernel chose; up to 5.0 it may have killed a child in its place, `child` then.
    `swap_is_assumed` says that swap was counted as none because the log does not say how much there is.
    """

    total_pages: int
    page_bytes: int
    kernel: Kernel
    ranked: tuple[Scored, ...]
    chosen: Scored
    immune: int
    child: bool
    swap_is_assumed: bool

    @property
    def tied(self) -> tuple[Scored, ...]:
        """Others with as many points: which of them is taken depends on the order in which it walks them."""
        return tuple(one for one in self.ranked if one.place == self.chosen.place and one is not self.chosen)

    @property
    def runners_up(self) -> tuple[Scored, ...]:
        """Everybody else."""
        return tuple(one for one in self.ranked if one is not self.chosen)


def choice_of(report: OomReport, machine_bytes: int | None = None) -> Choice | Unranked:
    """How the kernel came to its victim.

    `machine_bytes` is RAM and swap of the machine, for scores: the report of a cgroup does not say it.
    """
    victim = report.victim
    if victim is None:
        return Unranked.NO_VICTIM
    if report.took_the_allocating:
        return Unranked.ALLOCATING
    if not report.tasks:
        return Unranked.NO_TABLE
    found = total_pages(report)
    if found is None:
        return Unranked.NO_TOTAL
    total, is_assumed = found
    page, kernel = report.page_bytes, kernel_of(report.kernel)
    machine = machine_pages(report) or (machine_bytes // page if machine_bytes else None)
    scored = sorted(
        (
            (-badness(task.counted_pages(page), task.adj, total, kernel), number, task)
            for number, task in enumerate(report.tasks)
            if task.adj != NEVER
        ),
    )
    places: dict[int, int] = {}
    ranked = []
    for number, (points, _, task) in enumerate(scored, start=1):
        used = task.counted_pages(page)
        score = None
        if machine is not None:
            score = proc_oom_score(badness(used, task.adj, machine, kernel), machine, kernel)
        ranked.append(Scored(task, used, -points, places.setdefault(points, number), score))
    wanted = victim.pid if report.chosen is None else report.chosen
    # A thread stands for its process where the first of its threads has ended.
    chosen = next((one for one in ranked if wanted in {one.task.pid, one.task.tgid}), None)
    if chosen is None:
        return Unranked.NOT_LISTED
    return Choice(
        total_pages=total,
        page_bytes=page,
        kernel=kernel,
        ranked=tuple(ranked),
        chosen=chosen,
        immune=len(report.tasks) - len(ranked),
        child=victim.pid not in {chosen.task.pid, chosen.task.tgid},
        swap_is_assumed=is_assumed,
    )


def machine_pages(report: OomReport) -> int | None:
    """RAM and swap of the machine, None where the report does not say it."""
    ram = report.memory.total_ram_pages
    if ram is None:
        return None
    return ram + (report.memory.total_swap_kb or 0) * 1024 // report.page_bytes


def total_pages(report: OomReport) -> tuple[int, bool] | None:
    """What oom_score_adj is scaled by (`constrained_alloc`), and whether swap was taken for none.

    A cgroup counts its limit, and the swap that it may have, of what the machine has. On cgroup v1 the
    second counter holds memory and swap together. None where it is not in the log: of a few NUMA nodes, which
    a cpuset or a policy allows, the kernel does not print the sum.
    """
    page, memory = report.page_bytes, report.memory
    if report.constraint is Constraint.NONE:
        found = machine_pages(report)
        return None if found is None else (found, False)
    if report.constraint is not Constraint.MEMCG or memory.limit_kb is None:
        return None
    may_swap_kb = memory.swap_limit_kb
    if memory.memsw_limit_kb is not None:
        may_swap_kb = max(memory.memsw_limit_kb - memory.limit_kb, 0)
    swap_kb = memory.total_swap_kb
    if may_swap_kb == 0:
        swap_kb = 0
    elif may_swap_kb is not None and swap_kb is not None:
        swap_kb = min(may_swap_kb, swap_kb)
    pages = (memory.limit_kb + (swap_kb or 0)) * 1024 // page
    return max(pages, 1), swap_kb is None
