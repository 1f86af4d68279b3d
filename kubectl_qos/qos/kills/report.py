"""The kernel's report of an OOM, and why it chose its victim, by its own numbers.

Source: Linux mm/oom_kill.c (dump_header, dump_tasks, __oom_kill_process). Not here: reading logs (host/).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Final

from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.cgroup.names import pod_cgroup
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, badness, kernel_formula, proc_oom_score

DEFAULT_PAGE_BYTES: Final = 4096
_PAGE_SIZES: Final = (4096, 16384, 65536)
"""Of x86 and most arm64, of some arm64 and of arm64 and ppc64le with large pages."""
_SAME_SECONDS: Final = 60.0
"""Logs round the times of their lines, `dmesg -H` to minutes; another may have only the end of a report."""
_MOST_ALIKE: Final = 16
"""Reports with the same victim that are compared with another."""


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """How long after the first time the second is, None if one is not known."""
    first, second = parse_time(earlier), parse_time(later)
    return (second - first).total_seconds() if first is not None and second is not None else None


class Constraint(StrEnum):
    """What was short of memory, by the names that `oom_constraint_text` uses."""

    NONE = "CONSTRAINT_NONE"
    """The machine."""
    CPUSET = "CONSTRAINT_CPUSET"
    """The memory nodes that a cpuset allows."""
    MEMORY_POLICY = "CONSTRAINT_MEMORY_POLICY"
    """The memory nodes that a memory policy allows."""
    MEMCG = "CONSTRAINT_MEMCG"
    """A cgroup, by its limit."""


@dataclass(frozen=True, slots=True)
class Invoker:
    """The process that triggered the OOM; often not the one that is killed.

    `pid` is None where the line with the processor is not in the log.
    """

    comm: str
    pid: int | None = None
    adj: int | None = None


@dataclass(frozen=True, slots=True)
class OomTask:
    """A row of the task table: a process that could have been killed, sizes in pages.

    Page tables are printed as pages before 4.15 (nr_ptes, nr_pmds), as bytes since then.
    """

    pid: int
    name: str
    uid: int = 0
    tgid: int = 0
    rss: int = 0
    pgtables_bytes: int | None = None
    pgtables_pages: int | None = None
    swapents: int = 0
    adj: int = 0

    def counted_pages(self, page_bytes: int) -> int:
        """What `oom_badness` counts of it: resident pages, swap entries and page tables."""
        tables = self.pgtables_pages or 0
        if self.pgtables_bytes is not None:
            tables = self.pgtables_bytes // page_bytes
        return self.rss + self.swapents + tables


@dataclass(frozen=True, slots=True)
class Killed:
    """A `Killed process` line, several with group kill; what a kernel does not print is None.

    `score` is the one that kernels up to 5.0 print: points in thousandths of the memory that ran out.
    """

    pid: int
    comm: str
    anon_rss_kb: int | None = None
    file_rss_kb: int | None = None
    shmem_rss_kb: int | None = None
    uid: int | None = None
    adj: int | None = None
    score: int | None = None

    @property
    def rss_kb(self) -> int | None:
        """What it held in memory, None where the line breaks off before that."""
        parts = (self.anon_rss_kb, self.file_rss_kb, self.shmem_rss_kb)
        return None if self.anon_rss_kb is None else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Counters of the memory that ran out: of a cgroup in KiB, of the machine in pages, swap in KiB.

    `swap_*` is memory.swap of cgroup v2, `memsw_*` memory and swap together of v1. `total_swap_kb` is the
    machine's, `ram_pages` all of its memory, of which `reserved_pages` cannot be allocated.
    """

    usage_kb: int | None = None
    limit_kb: int | None = None
    swap_usage_kb: int | None = None
    swap_limit_kb: int | None = None
    memsw_usage_kb: int | None = None
    memsw_limit_kb: int | None = None
    ram_pages: int | None = None
    reserved_pages: int | None = None
    total_swap_kb: int | None = None

    @property
    def total_ram_pages(self) -> int | None:
        """`totalram_pages()`: what can be allocated."""
        return None if self.ram_pages is None else max(self.ram_pages - (self.reserved_pages or 0), 1)


NOTHING_PRINTED: Final = MemoryState()


@dataclass(frozen=True, slots=True)
class OomReport:
    """One report, as far as the log has it; texts that are not in the log are empty.

    `time` is RFC 3339 text where the log has wall-clock times (UTC where it names no zone), `uptime` seconds
    since boot where it has those. `node` is the host name before the line. `kernel` is the release of the
    line with the processor. `chosen` is the pid of the oom-kill line.

    `incomplete` means that the log lacks a part of it: its beginning, where the kernel's own rate limit or
    the size of its buffer cut it, or its end.
    """

    time: str = ""
    uptime: float | None = None
    node: str = ""
    kernel: str = ""
    invoker: Invoker | None = None
    constraint: Constraint | None = None
    oom_memcg: str = ""
    task_memcg: str = ""
    tasks: tuple[OomTask, ...] = ()
    memory: MemoryState = NOTHING_PRINTED
    chosen: int | None = None
    victims: tuple[Killed, ...] = ()
    group_kill: str = ""
    reaped: tuple[int, ...] = ()
    took_the_allocating: bool = False
    incomplete: bool = False
    line: int = field(default=0, compare=False)

    @property
    def has_cause(self) -> bool:
        """Whether it says what ran out of memory or who was killed; without, nothing follows from it."""
        return not self.incomplete or self.constraint is not None or bool(self.victims or self.group_kill)

    @property
    def victim(self) -> Killed | None:
        """The process that was chosen; any others died with it."""
        return self.victims[0] if self.victims else None

    @property
    def processes(self) -> tuple[Killed, ...]:
        """Every killed process once: the first of a group is printed twice."""
        by_pid: dict[int, Killed] = {}
        for killed in self.victims:
            by_pid.setdefault(killed.pid, killed)
        return tuple(by_pid.values())

    @property
    def freed_kb(self) -> int | None:
        """What the killed processes held in memory, None if no line has it."""
        sizes = [size for killed in self.processes if (size := killed.rss_kb) is not None]
        return sum(sizes) if sizes else None

    @property
    def page_bytes(self) -> int:
        """The page size by which the task table and the line of the same process agree, 4096 if unknown."""
        by_pid = {task.pid: task for task in self.tasks}
        for killed in self.victims:
            task, size = by_pid.get(killed.pid), killed.rss_kb
            if task is not None and task.rss and size:
                measured = size * 1024 / task.rss
                return min(_PAGE_SIZES, key=lambda page: abs(page - measured))
        return DEFAULT_PAGE_BYTES


@dataclass(frozen=True, slots=True)
class KernelLog:
    """A log's reports, the oldest first, and the span of wall-clock times that it covers.

    `first` and `last` are RFC 3339, empty where lines have no such times, without a zone where they name
    none. `left_out` reports were too many to keep. `node` is the node that the user named for it.

    `fragments` are the lines of reports that break off before they name a cause or a victim, `unread` those
    with words of a report behind what is not understood. `is_kernel` is whether any line says that it is the
    kernel's, `first_line` the first that is not empty.
    """

    reports: tuple[OomReport, ...]
    first: str = ""
    last: str = ""
    left_out: int = 0
    lines: int = 0
    node: str = ""
    title: str = ""
    fragments: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()
    is_kernel: bool = False
    first_line: str = ""

    def with_boot_time(self, seconds: float) -> KernelLog:
        """The same log with wall-clock times where it has none, of a machine that booted at that time."""

        def with_time(report: OomReport) -> OomReport:
            if report.time or report.uptime is None:
                return report
            moment = datetime.fromtimestamp(seconds + report.uptime, UTC)
            return replace(report, time=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

        return replace(self, reports=tuple(map(with_time, self.reports)))


def distinct_reports(logs: Iterable[KernelLog]) -> list[tuple[OomReport, KernelLog]]:
    """Every report with its log, once where the logs have it more often: the one that has most of it."""
    found: list[tuple[OomReport, KernelLog]] = []
    by_victim: dict[object, list[int]] = {}
    for log in logs:
        for report in log.reports:
            victim = report.victim
            alike = by_victim.setdefault((victim.pid, victim.comm) if victim else report.chosen, [])
            same = (place for place in alike[-_MOST_ALIKE:] if _are_same(found[place], (report, log)))
            place = next(same, None)
            if place is None:
                alike.append(len(found))
                found.append((report, log))
            elif found[place][0].incomplete and not report.incomplete:
                found[place] = (report, log)
    return found


def _are_same(one: tuple[OomReport, KernelLog], other: tuple[OomReport, KernelLog]) -> bool:
    """Whether what both know is equal; a process of the same name and ID may be killed again, later."""
    (report, log), (twin, twin_log) = one, other
    known = [
        (report.task_memcg, twin.task_memcg),
        (report.group_kill, twin.group_kill),
        (report.freed_kb, twin.freed_kb),
        (log.node, twin_log.node),
    ]
    if pod_cgroup(report.task_memcg) is None:
        # A pod is on one node only, whatever the lines call that.
        known.append((report.node, twin.node))
    if any(a not in {None, ""} and b not in {None, "", a} for a, b in known):
        return False
    if report.uptime is not None and twin.uptime is not None:
        return abs(report.uptime - twin.uptime) < _SAME_SECONDS
    # One time with a zone and one without cannot be compared.
    is_comparable = report.time.endswith("Z") == twin.time.endswith("Z")
    apart = seconds_between(report.time, twin.time) if is_comparable else None
    return apart is None or abs(apart) < _SAME_SECONDS


class Unranked(Enum):
    """Why there is no ranking."""

    NO_VICTIM = "the log does not say which process was killed"
    NO_TABLE = "the task table is not in the log (vm.oom_dump_tasks is 0, or the log was cut)"
    NO_TOTAL = "the log does not say how much memory oom_score_adj was scaled by"
    NOT_LISTED = "the victim is not in the task table"
    ALLOCATING = "vm.oom_kill_allocating_task is set: the process that triggers the OOM is killed"


@dataclass(frozen=True, slots=True)
class ScoredTask:
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
class VictimChoice:
    """The candidates, those with the most points first; `immune` is how many had -1000.

    `chosen` is the one that the kernel chose; up to 5.0 it may have killed a `child` in its place.
    `swap_is_assumed` means that swap counts as none because the log does not say how much there is.
    """

    total_pages: int
    page_bytes: int
    kernel: Kernel
    ranked: tuple[ScoredTask, ...]
    chosen: ScoredTask
    immune: int
    child: bool
    swap_is_assumed: bool

    @property
    def tied(self) -> tuple[ScoredTask, ...]:
        """Others with equal points: the order in which the kernel walks them decides between them."""
        return tuple(scored for scored in self.runners_up if scored.place == self.chosen.place)

    @property
    def runners_up(self) -> tuple[ScoredTask, ...]:
        """The other candidates."""
        return tuple(scored for scored in self.ranked if scored is not self.chosen)


def explain_choice(report: OomReport, machine_bytes: int | None = None) -> VictimChoice | Unranked:
    """How the kernel chose its victim.

    `machine_bytes` is RAM and swap of the machine, for scores: the report of a cgroup does not have it.
    """
    victim = report.victim
    if victim is None:
        return Unranked.NO_VICTIM
    if report.took_the_allocating:
        return Unranked.ALLOCATING
    if not report.tasks:
        return Unranked.NO_TABLE
    scale = _total_pages(report)
    if scale is None:
        return Unranked.NO_TOTAL
    total, swap_is_assumed = scale
    page, kernel = report.page_bytes, kernel_formula(report.kernel)
    machine = _machine_pages(report) or (machine_bytes // page if machine_bytes else None)
    ranked = _ranked_tasks(report.tasks, total, machine, page, kernel)
    pid = victim.pid if report.chosen is None else report.chosen
    # A thread stands for its process where the first of its threads has ended.
    chosen = next((scored for scored in ranked if pid in {scored.task.pid, scored.task.tgid}), None)
    if chosen is None:
        return Unranked.NOT_LISTED
    return VictimChoice(
        total_pages=total,
        page_bytes=page,
        kernel=kernel,
        ranked=ranked,
        chosen=chosen,
        immune=len(report.tasks) - len(ranked),
        child=victim.pid not in {chosen.task.pid, chosen.task.tgid},
        swap_is_assumed=swap_is_assumed,
    )


def _ranked_tasks(
    tasks: Sequence[OomTask], total: int, machine: int | None, page: int, kernel: Kernel
) -> tuple[ScoredTask, ...]:
    scored = [
        (badness(task.counted_pages(page), task.adj, total, kernel), task)
        for task in tasks
        if task.adj != OOM_SCORE_ADJ_MIN
    ]
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
    """What oom_score_adj is scaled by (`constrained_alloc`), and whether swap is assumed to be none.

    A cgroup counts its limit, and the swap that it may have, of what the machine has. On cgroup v1 the second
    counter holds memory and swap together. None where it is not in the log: for a few memory nodes, which a
    cpuset or a policy allows, the kernel does not print the sum.
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
    swap_kb = memory.total_swap_kb
    if may_swap_kb == 0:
        swap_kb = 0
    elif may_swap_kb is not None and swap_kb is not None:
        swap_kb = min(may_swap_kb, swap_kb)
    pages = (memory.limit_kb + (swap_kb or 0)) * 1024 // page
    return max(pages, 1), swap_kb is None
