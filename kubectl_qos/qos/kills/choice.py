"""Why the kernel chose a process, by its own numbers, and who used the memory that ran out.

Source: Linux mm/oom_kill.c (oom_badness, select_bad_process). Not here: the report's values (report.py).
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec
from msgspec import structs

from kubectl_qos.qos.cgroup.names import CUT, class_of_path, pod_cgroup
from kubectl_qos.qos.kills.report import Constraint, OomReport, OomTask
from kubectl_qos.qos.oom_score import (
    BEST_EFFORT_ADJ,
    GUARANTEED_ADJ,
    OOM_SCORE_ADJ_MIN,
    SANDBOX_ADJ,
    Kernel,
    badness,
    kernel_formula,
    proc_oom_score,
)


class MemoryUser(msgspec.Struct, frozen=True, rename="camel"):
    """A process of the report's table; processes with the most resident memory come first."""

    name: str
    pid: int
    oom_score_adj: int
    rss_bytes: int
    shmem_bytes: int | None
    swap_bytes: int
    is_in_pod: bool


_LEAST_OF_PODS: Final = 2
"""Lowest oom_score_adj of Burstable pods up to 1.21; host services mostly have 0 or less."""


def memory_users(report: OomReport) -> list[MemoryUser]:
    """Return the processes of the table; cgroups of the report or oom_score_adj tell which are in pods."""
    page, is_pod = report.page_bytes, pod_cgroup(report.oom_memcg) is not None
    row = report.row(report.victim) if report.victim is not None else None
    path, qos = report.task_memcg, class_of_path(report.task_memcg)
    is_path_known = bool(path) and (qos is not None or not path.endswith(CUT))
    own = (row.name, row.adj) if row is not None and is_path_known and not is_pod else None
    users = []
    for task in sorted(report.tasks, key=lambda task: -task.rss):
        is_in_pod = is_pod or task.adj == GUARANTEED_ADJ or task.adj >= _LEAST_OF_PODS or task.name == "pause"
        if (task.name, task.adj) == own:
            is_in_pod = qos is not None
        shmem = None if task.shmem is None else task.shmem * page
        sizes = task.rss * page, shmem, task.swapents * page
        users.append(MemoryUser(task.name, task.pid, task.adj, *sizes, is_in_pod))
    return users


def inherited_adjs(report: OomReport) -> list[int]:
    """Return the oom_score_adj of other processes of the container, if the victim has set its own; else [].

    A kubelet gives all processes of a container the same value, and only 1000 to all of a pod.
    """
    row, pod = report.row(report.victim) if report.victim is not None else None, pod_cgroup(report.oom_memcg)
    others = [task for task in report.tasks if task.adj != SANDBOX_ADJ and task is not row]
    if row is None or pod is None or any(task.adj == row.adj for task in others):
        return []
    is_own = pod.container_id or row.adj == BEST_EFFORT_ADJ or any(task.name == row.name for task in others)
    return sorted({task.adj for task in others}) if is_own else []


class Unranked(Enum):
    """Why there is no ranking."""

    NO_VICTIM = "the log does not say which process was killed"
    NO_TABLE = "the task table is not in the log (vm.oom_dump_tasks is 0, or the log was cut)"
    NO_TOTAL = "the log does not say how much memory oom_score_adj was scaled by"
    NOT_CHOSEN = "the log does not name the process that was chosen: up to 5.0 a child may be killed instead"
    NOT_LISTED = "the victim is not in the task table"
    SWAPOFF = "swapoff is always killed first, because it moves what is in swap into memory"
    ALLOCATING = "vm.oom_kill_allocating_task is set: the process that triggers the OOM is killed"


class ScoredTask(msgspec.Struct, frozen=True):
    """A process of the table with its points in pages; the kernel chooses the most.

    `place` counts from 1; equal points share a place. `points` is None if the log lacks the limit, `score`
    (in /proc/PID/oom_score) if the machine's memory is unknown.
    """

    task: OomTask
    used_pages: int
    points: int | None
    place: int
    score: int | None


class VictimChoice(msgspec.Struct, frozen=True):
    """The candidates, most points first; `immune` counts processes with -1000.

    `chosen` is the kernel's choice; up to 5.0 it may have killed a `child` instead. `total_pages` is None if
    the log lacks it, but `chosen` has the most points for any total. `swap_is_assumed`: only swap in use
    counts, because the log does not say how much there is. `is_whole`: no process is missing.
    """

    total_pages: int | None
    page_bytes: int
    kernel: Kernel
    ranked: tuple[ScoredTask, ...]
    chosen: ScoredTask
    immune: int
    child: bool
    swap_is_assumed: bool
    is_whole: bool

    @property
    def equals(self) -> tuple[ScoredTask, ...]:
        """The chosen process and those with equal points, in the order in which the kernel visits them."""
        return tuple(scored for scored in self.ranked if scored.place == self.chosen.place)

    @property
    def tied(self) -> tuple[ScoredTask, ...]:
        """Others with equal points: kernels before 5.3 keep the first that they visit, newer ones the last.

        Since f168a9a54ec3 (mem_cgroup_scan_tasks visits processes, no threads) leaders need no preference.
        """
        return tuple(scored for scored in self.equals if scored is not self.chosen)

    @property
    def runners_up(self) -> tuple[ScoredTask, ...]:
        """The other candidates."""
        return tuple(scored for scored in self.ranked if scored is not self.chosen)


_SWAPOFF: Final = "swapoff"


def explain_choice(report: OomReport, machine_bytes: int | None = None) -> VictimChoice | Unranked:
    """Explain how the kernel chose its victim.

    `machine_bytes` is RAM and swap of the machine, for scores: the report of a cgroup does not have it.
    """
    victim = report.victim
    if victim is None:
        return Unranked.NO_TABLE if report.names and not report.tasks else Unranked.NO_VICTIM
    if report.took_the_allocating or victim.comm == _SWAPOFF:
        return Unranked.SWAPOFF if victim.comm == _SWAPOFF else Unranked.ALLOCATING
    if not report.tasks:
        return Unranked.NO_TABLE
    row = report.row(victim)
    # If the first thread of a process has ended, the table has another thread in its place.
    by_id = (task for task in report.tasks if report.chosen in {task.pid, task.tgid})
    chosen = next(by_id, row)
    if chosen is None or chosen.adj == OOM_SCORE_ADJ_MIN:
        return Unranked.NOT_LISTED
    page, scale = report.page_bytes, _total_pages(report)
    machine = _machine_pages(report) or (machine_bytes // page if machine_bytes else None)
    totals = _possible_totals(report)
    for kernel in _formulas(report):
        rankings = [_ranked_tasks(report.tasks, total, machine, page, kernel) for total in totals]
        ranked = rankings[0]
        places = [next(scored for scored in ranking if scored.task is chosen) for ranking in rankings]
        if all(scored.place == 1 for scored in places):
            break
    else:
        if scale is None:
            return Unranked.NO_TOTAL
        if report.chosen is None and report.older_than is not None:
            return Unranked.NOT_CHOSEN
        kernel = _formulas(report)[0]
        ranked = _ranked_tasks(report.tasks, totals[0], machine, page, kernel)
    if scale is None:
        ranked = tuple(structs.replace(scored, points=None) for scored in ranked)
    return VictimChoice(
        total_pages=scale[0] if scale is not None else None,
        page_bytes=page,
        kernel=kernel,
        ranked=ranked,
        chosen=next(scored for scored in ranked if scored.task is chosen),
        immune=len(report.tasks) - len(ranked),
        child=row is not chosen,
        swap_is_assumed=scale is not None and scale[1],
        is_whole=report.is_table_whole,
    )


def first_of_table(report: OomReport) -> OomTask | None:
    """Return the process with the most points by every possible formula and total; None for a tie.

    A sandbox has the fewest points: if it comes first, rows are missing.
    """
    rankings = [
        _ranked_tasks(report.tasks, total, None, report.page_bytes, kernel)
        for kernel in _formulas(report)
        for total in _possible_totals(report)
    ]
    firsts = {scored.task for ranking in rankings for scored in ranking if scored.place == 1}
    first = firsts.pop() if len(firsts) == 1 else None
    return first if first is not None and first.adj != SANDBOX_ADJ else None


def _possible_totals(report: OomReport) -> list[int]:
    """Return the total that scales oom_score_adj; if the log lacks it, the smallest and largest possible."""
    scale = _total_pages(report)
    largest = max((task.counted_pages(report.page_bytes) for task in report.tasks), default=0)
    return [scale[0]] if scale is not None else [largest, _LARGEST_TOTAL]


_LARGEST_TOTAL: Final = 1 << 38
"""More pages than any machine has."""


def _formulas(report: OomReport) -> tuple[Kernel, ...]:
    """Return the kernel's formula, by its release or its words, then a newer one that vendors backport."""
    kernel = kernel_formula(report.kernel)
    if not report.kernel and report.older_than is not None:
        kernel = Kernel.FLOORED if report.older_than > (4, 16) else Kernel.MINUS_3_PERCENT
    is_new = bool(report.kernel) or any(task.shmem is not None for task in report.tasks)
    if kernel is Kernel.SIGNED:
        return (kernel,) if is_new else (kernel, Kernel.FLOORED)
    return (kernel, Kernel.SIGNED) if kernel is Kernel.FLOORED else (kernel,)


def _ranked_tasks(
    tasks: Sequence[OomTask], total: int, machine: int | None, page: int, kernel: Kernel
) -> tuple[ScoredTask, ...]:
    candidates = [task for task in tasks if task.adj != OOM_SCORE_ADJ_MIN]
    scored = [(badness(task.counted_pages(page), task.adj, total, kernel), task) for task in candidates]
    scored.sort(key=lambda pair: -pair[0])
    places: dict[int, int] = {}
    ranked = []
    for place, (points, task) in enumerate(scored, start=1):
        used = task.counted_pages(page)
        score = None
        if machine is not None:
            score = proc_oom_score(badness(used, task.adj, machine, kernel), machine, kernel)
        ranked.append(ScoredTask(task, used, points, places.setdefault(points, place), score))
    return tuple(ranked)


def _machine_pages(report: OomReport) -> int | None:
    ram = report.memory.total_ram_pages
    if ram is None:
        return None
    return ram + (report.memory.total_swap_kb or 0) * 1024 // report.page_bytes


def _total_pages(report: OomReport) -> tuple[int, bool] | None:
    """Return the pages that scale oom_score_adj (`constrained_alloc`), and whether their swap is assumed.

    A cgroup counts its limit plus the machine's swap that it may use. On cgroup v1, the second counter has
    memory and swap together. None if the log lacks the total: the kernel does not print the sum of the memory
    nodes that a cpuset or policy allows.
    """
    page, memory = report.page_bytes, report.memory
    if report.constraint is Constraint.NONE:
        machine = _machine_pages(report)
        return None if machine is None else (machine, False)
    if report.constraint is not Constraint.MEMCG or memory.limit_kb is None:
        return None
    may_swap_kb = memory.swap_limit_kb
    if memory.memsw_limit_kb is not None:
        may_swap_kb = max(memory.memsw_limit_kb - memory.limit_kb, 0)
    # The machine has at least as much swap as is in use here.
    in_use_kb = max(memory.swapped_kb or 0, sum(task.swapents for task in report.tasks) * page >> 10)
    swap_kb = in_use_kb if memory.total_swap_kb is None else memory.total_swap_kb
    if may_swap_kb is not None:
        swap_kb = min(may_swap_kb, swap_kb)
    pages = (memory.limit_kb + swap_kb) * 1024 // page
    return max(pages, 1), memory.total_swap_kb is None and swap_kb != may_swap_kb
