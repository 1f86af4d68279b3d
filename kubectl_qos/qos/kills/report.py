"""The kernel's report of an OOM, and why it chose its victim, by its own numbers.

Source: Linux mm/oom_kill.c (dump_header, dump_tasks, __oom_kill_process). Not here: reading logs (host/).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Final

import msgspec

from kubectl_qos.k8s.kubelet import Daemon
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.cgroup.names import CUT, pod_cgroup
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

DEFAULT_PAGE_BYTES: Final = 4096
_PAGE_SIZES: Final = (4096, 16384, 65536)
"""Of x86 and most arm64, of some arm64 and of arm64 and ppc64le with large pages."""
_MANY_TABLES: Final = 8
"""Page tables are whole pages: with fewer processes their sizes may be multiples by chance."""
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
    total_vm: int = 0
    rss: int = 0
    shmem: int | None = None
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
    total_vm_kb: int | None = None

    @property
    def is_only_chosen(self) -> bool:
        """Whether the log has only that it was chosen: up to 5.0 a child of it may have been killed."""
        return self.score is not None and self.anon_rss_kb is None

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
    kmem_usage_kb: int | None = None
    kmem_limit_kb: int | None = None
    anon_kb: int | None = None
    file_kb: int | None = None
    shmem_kb: int | None = None
    kernel_kb: int | None = None
    parts_of_kernel_kb: int | None = None
    ram_pages: int | None = None
    reserved_pages: int | None = None
    total_swap_kb: int | None = None
    shmem_pages: int | None = None
    page_kb: int | None = None

    @property
    def total_ram_pages(self) -> int | None:
        """`totalram_pages()`: what can be allocated."""
        return None if self.ram_pages is None else max(self.ram_pages - (self.reserved_pages or 0), 1)

    @property
    def of_kernel_kb(self) -> int | None:
        """The kernel's memory in the cgroup; before 5.18 it is the sum of its kinds."""
        return self.kernel_kb or self.parts_of_kernel_kb or self.kmem_usage_kb

    @property
    def is_v1(self) -> bool:
        """Whether the counters are those of cgroup v1."""
        return self.kmem_limit_kb is not None or self.memsw_limit_kb is not None

    @property
    def full(self) -> tuple[str, int, int] | None:
        """Which counter of a cgroup is at its limit, with both in KiB: on v1 it need not be memory's."""
        counters = [("memory", self.usage_kb, self.limit_kb)]
        counters.append(("kernel memory", self.kmem_usage_kb, self.kmem_limit_kb))
        if (self.memsw_limit_kb or 0) > (self.limit_kb or 0):
            counters.append(("memory and swap together", self.memsw_usage_kb, self.memsw_limit_kb))
        usable = [(what, usage, limit) for what, usage, limit in counters if usage is not None and limit]
        is_known = self.usage_kb is not None and bool(self.limit_kb)
        return max(usable, key=lambda counter: counter[1] / counter[2]) if is_known else None


NOTHING_PRINTED: Final = MemoryState()


@dataclass(frozen=True, slots=True)
class OomReport:
    """One report, as far as the log has it; texts that are not in the log are empty.

    `time` is RFC 3339 text where the log has wall-clock times (UTC where it names no zone), `uptime` seconds
    since boot where it has those. `node` is the host name before the line. `kernel` is the release of the
    line with the processor. `chosen` is the pid of the oom-kill line.

    `incomplete` means that the log lacks a part of it: its beginning, where the kernel's own rate limit or
    the size of its buffer cut it, or its end. `is_table_whole` is whether no process is missing in the table,
    `older_than` the release in which words of it changed, `is_manual` whether a person asked for it (SysRq
    f), `is_alone` whether more lines follow, and none of them kills the rest of the container.

    A `daemon` other than the kernel says `why`, and of a whole cgroup the `names` of the processes at most.
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
    is_table_whole: bool = False
    memory: MemoryState = NOTHING_PRINTED
    chosen: int | None = None
    victims: tuple[Killed, ...] = ()
    group_kill: str = ""
    reaped: tuple[int, ...] = ()
    took_the_allocating: bool = False
    incomplete: bool = False
    is_alone: bool = False
    is_manual: bool = False
    daemon: Daemon | None = None
    why: str = ""
    names: tuple[str, ...] = ()
    older_than: tuple[int, int] | None = None
    year_is_guessed: bool = False
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
    def cgroup(self) -> str:
        """The path of the victim's cgroup: of the lines that name one, the one that tells most of it."""

        def detail(path: str) -> int:
            pod = pod_cgroup(path)
            return 0 if pod is None else 2 if pod.container_id else 1

        paths = self.task_memcg, self.group_kill, self.oom_memcg
        best = max(paths, key=detail)
        return best if detail(best) else self.task_memcg or self.group_kill

    @property
    def oldest(self) -> OomTask | None:
        """The first process of the table besides the pause container's."""
        return next((task for task in self.tasks if task.adj != SANDBOX_ADJ), None)

    def row(self, killed: Killed) -> OomTask | None:
        """Its row in the table; up to 5.2 a thread may be named, whose process has as much virtual memory."""
        by_id = (task for task in self.tasks if killed.pid in {task.pid, task.tgid})
        size = killed.total_vm_kb
        alike = [
            task for task in self.tasks if any(task.total_vm * page >> 10 == size for page in _PAGE_SIZES)
        ]
        return next(by_id, alike[0] if len(alike) == 1 else None)

    @property
    def page_bytes(self) -> int:
        """The page size by which the parts of the report agree, 4096 if unknown."""
        if self.memory.page_kb is not None:
            return self.memory.page_kb << 10
        for killed in self.victims:
            task = self.row(killed)
            sizes = (
                ((killed.total_vm_kb, task.total_vm), (killed.rss_kb, task.rss)) if task is not None else ()
            )
            for kib, pages in sizes:
                if kib and pages:
                    measured = kib * 1024 / pages
                    return min(_PAGE_SIZES, key=lambda page: abs(page - measured))
        tables = [task.pgtables_bytes for task in self.tasks if task.pgtables_bytes]
        is_large = len(tables) >= _MANY_TABLES
        return next(
            (page for page in _PAGE_SIZES[:0:-1] if is_large and not any(size % page for size in tables)),
            DEFAULT_PAGE_BYTES,
        )


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
    distinct: list[tuple[OomReport, KernelLog]] = []
    by_victim: dict[object, list[int]] = {}
    for log in logs:
        for report in log.reports:
            victim = report.victim
            alike = by_victim.setdefault((victim.pid, victim.comm) if victim else report.chosen, [])
            same = (place for place in alike[-_MOST_ALIKE:] if _are_same(distinct[place], (report, log)))
            place = next(same, None)
            if place is None:
                alike.append(len(distinct))
                distinct.append((report, log))
            elif distinct[place][0].incomplete and not report.incomplete:
                distinct[place] = (report, log)
    return distinct


def _are_same(pair: tuple[OomReport, KernelLog], twin_pair: tuple[OomReport, KernelLog]) -> bool:
    """Whether what both know is equal; a process of the same name and ID may be killed again, later."""
    (report, log), (twin, twin_log) = pair, twin_pair
    pod, twin_pod = pod_cgroup(report.cgroup), pod_cgroup(twin.cgroup)
    values: list[tuple[object, object]] = [(report.freed_kb, twin.freed_kb), (log.node, twin_log.node)]
    if pod is not None and twin_pod is not None:
        values += [(pod.pod_uid, twin_pod.pod_uid), (pod.container_id, twin_pod.container_id)]
    elif not (report.cgroup + twin.cgroup).endswith(CUT):
        values.append((report.cgroup, twin.cgroup))
    if pod is None:
        # A pod is on one node only, whatever the lines call that.
        values.append((report.node, twin.node))
    if any(a not in {None, ""} and b not in {None, "", a} for a, b in values):
        return False
    if report.uptime is not None and twin.uptime is not None:
        return abs(report.uptime - twin.uptime) < _SAME_SECONDS
    # One time with a zone and one without cannot be compared.
    is_comparable = report.time.endswith("Z") == twin.time.endswith("Z")
    apart = seconds_between(report.time, twin.time) if is_comparable else None
    return apart is None or abs(apart) < (_SAME_SECONDS if report.daemon is None else 1)


class MemoryUser(msgspec.Struct, frozen=True, rename="camel"):
    """A process of the report's table, those with the most resident memory first."""

    name: str
    pid: int
    oom_score_adj: int
    rss_bytes: int
    shmem_bytes: int | None
    swap_bytes: int
    is_in_pod: bool


_LEAST_OF_PODS: Final = 2
"""Of Burstable pods up to 1.21; services of a machine mostly have 0 or less."""


def memory_users(report: OomReport) -> list[MemoryUser]:
    """The processes of the table: in a pod by their oom_score_adj or by the cgroup that ran out."""
    page, is_pod = report.page_bytes, pod_cgroup(report.oom_memcg) is not None
    users = []
    for task in sorted(report.tasks, key=lambda task: -task.rss):
        is_in_pod = is_pod or task.adj == GUARANTEED_ADJ or task.adj >= _LEAST_OF_PODS or task.name == "pause"
        shmem = None if task.shmem is None else task.shmem * page
        sizes = task.rss * page, shmem, task.swapents * page
        users.append(MemoryUser(task.name, task.pid, task.adj, *sizes, is_in_pod))
    return users


def adjs_beside_own(report: OomReport) -> list[int]:
    """The oom_score_adj of the others of a pod or container where the victim has set its own, else empty.

    A kubelet gives the processes of a container one, and 1000 only to all of a pod.
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
    NOT_CHOSEN = "the log does not have the process that was chosen: up to 5.0 a child may be killed instead"
    NOT_LISTED = "the victim is not in the task table"
    ALLOCATING = "vm.oom_kill_allocating_task is set: the process that triggers the OOM is killed"


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """A process of the table with its points, in pages, by which the kernel chooses.

    `place` counts from 1, equal points share one. `points` are None where the limit is not in the log,
    `score`, what /proc/PID/oom_score showed, where the machine's memory is not known.
    """

    task: OomTask
    used_pages: int
    points: int | None
    place: int
    score: int | None


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """The candidates, those with the most points first; `immune` is how many had -1000.

    `chosen` is the one that the kernel chose; up to 5.0 it may have killed a `child` in its place.
    `total_pages` is None where the chosen one has the most points whatever the limit was. `swap_is_assumed`
    means that swap counts as none because the log does not say how much there is, `is_whole` that no process
    is missing.
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
        """It and those with as many points, in the order in which the kernel visits them."""
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
    row = report.row(victim)
    # A thread stands for its process where the first of its threads has ended.
    by_id = (task for task in report.tasks if report.chosen in {task.pid, task.tgid})
    chosen = next(by_id, row)
    if chosen is None or chosen.adj == OOM_SCORE_ADJ_MIN:
        return Unranked.NOT_LISTED
    page, scale = report.page_bytes, _total_pages(report)
    machine = _machine_pages(report) or (machine_bytes // page if machine_bytes else None)
    largest = max(task.counted_pages(page) for task in report.tasks)
    totals = [scale[0]] if scale is not None else [largest, _LARGEST_TOTAL]
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
        ranked = tuple(replace(scored, points=None) for scored in ranked)
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


_LARGEST_TOTAL: Final = 1 << 38
"""More pages than any machine has."""


def _formulas(report: OomReport) -> tuple[Kernel, ...]:
    """The kernel's formula by its release or its words, then the one that its vendor may use instead."""
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
