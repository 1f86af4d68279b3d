"""What the kernel said of one OOM: who asked for memory, what ran out, who could have been killed, who was.

Source: Linux mm/oom_kill.c (dump_header, dump_oom_summary, dump_tasks, __oom_kill_process, oom_reap_task,
mem_cgroup_print_oom_group) and mm/memcontrol.c (mem_cgroup_print_oom_meminfo), 4.x to 6.x. Everything is as
printed: sizes in the unit of their name, tasks in pages. Not here: reading it from a log
(host/kernel_log.py), and what follows from it (kill_choice.py, kills.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

DEFAULT_PAGE_BYTES: Final = 4096
_PAGE_SIZES: Final = (4096, 16384, 65536)
"""Of x86 and most arm64, of some arm64 and of arm64 and ppc64le with large pages."""


class Constraint(StrEnum):
    """What was short of memory, by the names that `oom_constraint_text` uses."""

    NONE = "CONSTRAINT_NONE"
    """The machine."""
    CPUSET = "CONSTRAINT_CPUSET"
    """The NUMA nodes that a cpuset allows."""
    MEMORY_POLICY = "CONSTRAINT_MEMORY_POLICY"
    """The NUMA nodes that a memory policy allows."""
    MEMCG = "CONSTRAINT_MEMCG"
    """A cgroup, by its limit."""


@dataclass(frozen=True, slots=True)
class Invoker:
    """Whose request for memory could not be met; often not the process that is killed.

    `pid` is None where the line with the processor is not in the log.
    """

    comm: str
    pid: int | None = None
    adj: int | None = None


@dataclass(frozen=True, slots=True)
class OomTask:
    """A row of the task table: a process that could have been killed, sizes in pages.

    `page_tables` is what the kernel counts of them: pages before 4.15 (nr_ptes, nr_pmds), since then
    `pgtables_bytes` divided by the page size. `anon`, `file` and `shmem` are printed since 6.8.
    """

    pid: int
    name: str
    uid: int = 0
    tgid: int = 0
    total_vm: int = 0
    rss: int = 0
    pgtables_bytes: int | None = None
    pgtables_pages: int | None = None
    swapents: int = 0
    adj: int = 0
    anon: int | None = None
    file: int | None = None
    shmem: int | None = None

    def counted_pages(self, page_bytes: int) -> int:
        """What `oom_badness` counts of it: resident pages, swap entries and page tables."""
        tables = self.pgtables_pages or 0
        if self.pgtables_bytes is not None:
            tables = self.pgtables_bytes // page_bytes
        return self.rss + self.swapents + tables


@dataclass(frozen=True, slots=True)
class Killed:
    """A `Killed process` line; what a kernel does not print is None. With group kill there are several.

    `score` is the one that kernels up to 5.0 print: points in thousandths of the memory that was short.
    """

    pid: int
    comm: str
    total_vm_kb: int | None = None
    anon_rss_kb: int | None = None
    file_rss_kb: int | None = None
    shmem_rss_kb: int | None = None
    uid: int | None = None
    pgtables_kb: int | None = None
    adj: int | None = None
    score: int | None = None

    @property
    def rss_kb(self) -> int | None:
        """What it held in memory, None where the line breaks off before that."""
        parts = (self.anon_rss_kb, self.file_rss_kb, self.shmem_rss_kb)
        return None if self.anon_rss_kb is None else sum(part or 0 for part in parts)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Counters of what was short: of a cgroup in KiB, of the machine in pages, swap of both in KiB.

    `swap_*` is memory.swap of cgroup v2, `memsw_*` memory and swap together of v1. `total_swap_kb` is the
    machine's, `ram_pages` all of its memory, from which `reserved_pages` are not the kernel's to give.
    """

    usage_kb: int | None = None
    limit_kb: int | None = None
    failcnt: int | None = None
    swap_usage_kb: int | None = None
    swap_limit_kb: int | None = None
    memsw_usage_kb: int | None = None
    memsw_limit_kb: int | None = None
    ram_pages: int | None = None
    reserved_pages: int | None = None
    free_pages: int | None = None
    total_swap_kb: int | None = None
    free_swap_kb: int | None = None

    @property
    def total_ram_pages(self) -> int | None:
        """`totalram_pages()`: what the kernel can give."""
        return None if self.ram_pages is None else max(self.ram_pages - (self.reserved_pages or 0), 1)


NOTHING_PRINTED: Final = MemoryState()


@dataclass(frozen=True, slots=True)
class OomReport:
    """One report, as far as the log has it.

    `time` is RFC 3339 text where the log has wall-clock times, `uptime` seconds since boot where it has
    those. A time without a zone is taken for UTC. `node` is the host name before the line, if there is one.
    `kernel` is the release of the line with the processor. `chosen` is the pid of the oom-kill line. Empty
    texts are not in the log. `has_table` says whether the task table is (vm.oom_dump_tasks).

    `incomplete` says that the log lacks a part of it: its beginning, as where the kernel's own rate limit or
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
    has_table: bool = False
    memory: MemoryState = NOTHING_PRINTED
    chosen: int | None = None
    victims: tuple[Killed, ...] = ()
    group_kill: str = ""
    reaped: tuple[int, ...] = ()
    took_the_allocating: bool = False
    incomplete: bool = False
    line: int = field(default=0, compare=False)

    @property
    def victim(self) -> Killed | None:
        """The process that was chosen; what else died went with it."""
        return self.victims[0] if self.victims else None

    @property
    def processes(self) -> tuple[Killed, ...]:
        """Every killed process once: the first of a group is printed twice."""
        found: dict[int, Killed] = {}
        for one in self.victims:
            found.setdefault(one.pid, one)
        return tuple(found.values())

    @property
    def freed_kb(self) -> int | None:
        """What the killed processes held in memory, None if no line says so."""
        sizes = [size for one in self.processes if (size := one.rss_kb) is not None]
        return sum(sizes) if sizes else None

    @property
    def page_bytes(self) -> int:
        """The page size by which the task table and the line of the same process agree, 4096 if unknown."""
        by_pid = {task.pid: task for task in self.tasks}
        for one in self.victims:
            task, size = by_pid.get(one.pid), one.rss_kb
            if task is not None and task.rss and size:
                found = size * 1024 / task.rss
                return min(_PAGE_SIZES, key=lambda page: abs(page - found))
        return DEFAULT_PAGE_BYTES


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What a log says: its reports, the oldest first, and the span of wall-clock times that it covers.

    `first` and `last` are RFC 3339, empty where lines have no such times, without a zone where they name
    none. `left_out` reports were too many to keep. `node` is whose log a person says it is.
    """

    reports: tuple[OomReport, ...]
    first: str = ""
    last: str = ""
    left_out: int = 0
    lines: int = 0
    node: str = ""
    title: str = ""

    def booted(self, seconds: float) -> KernelLog:
        """The same log with wall-clock times where it has none, of a machine that booted at that time."""

        def timed(report: OomReport) -> OomReport:
            if report.time or report.uptime is None:
                return report
            moment = datetime.fromtimestamp(seconds + report.uptime, UTC)
            return replace(report, time=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

        return replace(self, reports=tuple(map(timed, self.reports)))
