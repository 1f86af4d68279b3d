"""The report of an OOM kill by a kernel or a daemon, and finding the same report in several logs.

Source: Linux mm/oom_kill.c (dump_header, dump_tasks, __oom_kill_process). Not here: reading logs (host/), and
why the kernel chose its victim (choice.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Final

import msgspec
from msgspec import structs

from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.cgroup.names import CUT, PathLevel, container_of_unit, path_level, pod_cgroup
from kubectl_qos.qos.killers import BY_RANK, KILLERS, Mechanism
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, SANDBOX_ADJ
from kubectl_qos.qos.reason import Confidence

DEFAULT_PAGE_BYTES: Final = 4096
PAGE_SIZES: Final = (4096, 16384, 65536)
"""Page sizes: x86 and most arm64, some arm64 and loongarch64, arm64 and ppc64le with large pages."""
_MANY_TABLES: Final = 8
"""Page tables are whole pages. With fewer processes, their sizes may fit a large page size by chance."""
_SAME_SECONDS: Final = 60.0
"""Logs round times of lines (`dmesg -H` to minutes), and a log may have only the end of a report."""
_AT_ONCE: Final = 3.0
"""A runtime logs a kill within this time: it may print whole seconds, and the kernel's clock drifts."""
_SHORT_ID: Final = 20
"""conmon logs only these first characters of a container's ID."""
_MOST_ALIKE: Final = 16
"""With how many earlier reports of the same victim a report is compared."""


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds from one time to another, None if one is unknown."""
    first, second = parse_time(earlier), parse_time(later)
    return (second - first).total_seconds() if first is not None and second is not None else None


class Constraint(StrEnum):
    """What ran out of memory, by the names of `oom_constraint_text`."""

    NONE = "CONSTRAINT_NONE"
    """The machine."""
    CPUSET = "CONSTRAINT_CPUSET"
    """The memory nodes that a cpuset allows."""
    MEMORY_POLICY = "CONSTRAINT_MEMORY_POLICY"
    """The memory nodes that a memory policy allows."""
    MEMCG = "CONSTRAINT_MEMCG"
    """A cgroup, at its limit."""


class Outcome(Enum):
    """What the kernel did when memory ran out."""

    KILLED = "it killed a process"
    NOBODY = "it found no process that it may kill"
    PANIC = "it panicked, and the machine went down"
    UNKNOWN = "the log has only a middle part of the report, without what came of it"


class Invoker(msgspec.Struct, frozen=True):
    """The process that triggered the OOM, often another than the victim.

    `pid` is None if the log lacks the line with the processor.
    """

    comm: str
    pid: int | None = None
    adj: int | None = None


class OomTask(msgspec.Struct, frozen=True):
    """A row of the task table: a process with its sizes in pages.

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
        """Return the pages that `oom_badness` counts: resident pages, swap entries and page tables."""
        tables = self.pgtables_pages or 0
        if self.pgtables_bytes is not None:
            tables = self.pgtables_bytes // page_bytes
        return self.rss + self.swapents + tables


class Killed(msgspec.Struct, frozen=True):
    """A `Killed process` line, several with group kill; None for what a kernel does not print.

    `score` is printed by kernels up to 5.0: points in thousandths of the memory that ran out.
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
        """Whether the log only says that it was chosen: up to 5.0 a child may have been killed."""
        return self.score is not None and self.anon_rss_kb is None

    @property
    def rss_kb(self) -> int | None:
        """Its resident memory, None if the line is truncated before that."""
        parts = (self.anon_rss_kb, self.file_rss_kb, self.shmem_rss_kb)
        return None if self.anon_rss_kb is None else sum(part or 0 for part in parts)


class MemoryState(msgspec.Struct, frozen=True):
    """Counters of the memory that ran out: of a cgroup in KiB, of the machine in pages, swap in KiB.

    `swap_*` is memory.swap of cgroup v2, `memsw_*` memory and swap together of v1, `swap_kb` the part in swap
    by the statistics of v1, `dirty_kb` the part of files that is not written to disk. `total_swap_kb` and
    `ram_pages` are the machine's; `reserved_pages` of its RAM cannot be allocated. `is_short`: one of its
    memory zones was short.
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
    dirty_kb: int | None = None
    kernel_kb: int | None = None
    parts_of_kernel_kb: int | None = None
    ram_pages: int | None = None
    reserved_pages: int | None = None
    total_swap_kb: int | None = None
    free_swap_kb: int | None = None
    huge_kb: int | None = None
    shmem_pages: int | None = None
    page_kb: int | None = None
    swap_kb: int | None = None
    is_short: bool | None = None

    @property
    def total_ram_pages(self) -> int | None:
        """Memory that can be allocated (`totalram_pages()`)."""
        return None if self.ram_pages is None else max(self.ram_pages - (self.reserved_pages or 0), 1)

    @property
    def of_kernel_kb(self) -> int | None:
        """Kernel memory of the cgroup; before 5.18 the sum of its kinds."""
        return self.kernel_kb or self.parts_of_kernel_kb or self.kmem_usage_kb

    @property
    def is_v1(self) -> bool:
        """Whether the counters are those of cgroup v1."""
        return self.kmem_limit_kb is not None or self.memsw_limit_kb is not None

    @property
    def swapped_kb(self) -> int | None:
        """Memory of the cgroup in swap."""
        if (
            self.swap_usage_kb is None
            and self.swap_kb is None
            and None not in {self.memsw_usage_kb, self.usage_kb}
        ):
            return max((self.memsw_usage_kb or 0) - (self.usage_kb or 0), 0)
        return self.swap_usage_kb if self.swap_usage_kb is not None else self.swap_kb

    @property
    def full(self) -> tuple[str, int, int] | None:
        """Name, usage and limit (KiB) of the counter at its limit; None if the log lacks it.

        On v1, the counter of memory and swap, or of kernel memory, may be full before memory's.
        """
        if self.usage_kb is None or not self.limit_kb:
            return None
        counters: list[tuple[str, int | None, int | None]] = [("memory", self.usage_kb, self.limit_kb)]
        counters.append(("kernel memory", self.kmem_usage_kb, self.kmem_limit_kb))
        if (self.memsw_limit_kb or 0) > self.limit_kb:
            counters.append(("memory and swap together", self.memsw_usage_kb, self.memsw_limit_kb))
        usable = [(what, usage, limit) for what, usage, limit in counters if usage is not None and limit]
        what, usage, limit = max(usable, key=lambda counter: counter[1] / counter[2])
        is_full = usage >= limit * _FULL or self.swap_limit_kb is not None
        return (what, usage, limit) if is_full else None


_SANDBOX: Final = re.compile(r"[\da-f]{64}", re.ASCII)
AT_LEVEL: Final = {
    PathLevel.OTHER: Mechanism.CGROUP_LIMIT,
    **{level: Mechanism(killer.id) for killer in KILLERS for level in killer.levels},
}
"""What killed, by the kind of the cgroup that ran out."""
RUNTIME_INIT: Final = re.compile(r"(?:runc|youki):\[")
"""Name of a runtime's process before it executes the container's command."""
_FULL: Final = 0.99
"""A limit counts as reached above this share: others may have freed a little since."""
NOTHING_PRINTED: Final = MemoryState()


@dataclass(frozen=True, slots=True)
class OomReport:
    """A report, as far as the log has it; missing texts are ""."""

    time: str = ""
    """RFC 3339, if the log has wall-clock times; UTC if it names no zone."""
    uptime: float | None = None
    """Seconds since boot, if the log has those."""
    node: str = ""
    """The host name before the line."""
    kernel: str = ""
    """The release in the line with the processor."""
    invoker: Invoker | None = None
    order: int = 0
    """The allocation wanted 2 ** order pages in a row."""
    constraint: Constraint | None = None
    memory_nodes: str = ""
    """The NUMA nodes that ran out of memory, as the kernel lists them."""
    oom_memcg: str = ""
    task_memcg: str = ""
    tasks: tuple[OomTask, ...] = ()
    is_table_whole: bool = False
    """No process is missing in the table."""
    memory: MemoryState = NOTHING_PRINTED
    chosen: int | None = None
    """The pid in the oom-kill line."""
    victims: tuple[Killed, ...] = ()
    group_kill: str = ""
    reaped: tuple[int, ...] = ()
    ended_unit: str = ""
    """The unit of the victim, if systemd ended the rest of it (OOMPolicy)."""
    took_the_allocating: bool = False
    is_certain: bool = False
    """It has a line that only reports of the OOM killer have."""
    incomplete: bool = False
    """The log lacks its end, or its beginning, which the kernel's rate limit or buffer size cut off."""
    is_alone: bool = False
    """The log goes on, and no line kills the rest of the container."""
    at_once: int = 0
    """How many other kills at a limit within a second, without reports of their own, may be the same kill."""
    is_manual: bool | None = None
    """A user triggered it (SysRq f); None if the log lacks the beginning."""
    is_by_page_fault: bool = False
    """A page fault failed, perhaps at a limit of kernel memory: up to 5.15 memory may still be free."""
    outcome: Outcome = Outcome.KILLED
    daemon: Mechanism | None = None
    """The killer, if it is not the kernel; it says `why`, and at most the `names` of the processes."""
    why: str = ""
    names: tuple[str, ...] = ()
    logged_by: str = ""
    """The program that reports the kernel's kill, if the log lacks the kernel's own report."""
    named_by: str = ""
    """The program whose line names the container, by its time."""
    also_by: Mechanism | None = None
    """The daemon that sent the process a signal too."""
    older_than: tuple[int, int] | None = None
    """The kernel is older than this release, which changed the words of the report."""
    year_is_guessed: bool = False
    line: int = field(default=0, compare=False)

    @property
    def is_of_guest(self) -> bool:
        """Whether it is from the kernel of a Kata virtual machine, whose host name is the sandbox's ID."""
        return _SANDBOX.fullmatch(self.node) is not None

    @property
    def has_cause(self) -> bool:
        """Whether it says what ran out of memory or who was killed; otherwise it is useless."""
        is_known = bool(
            self.constraint or self.daemon or self.task_memcg or self.names or self.logged_by
        ) or self.outcome in {Outcome.NOBODY, Outcome.PANIC}
        return not self.incomplete or is_known or bool(self.victims or self.group_kill)

    @property
    def mechanism(self) -> Mechanism:
        """What killed: whose memory ran out, if the kernel did."""
        if self.daemon is not None:
            return self.daemon
        if self.outcome is Outcome.PANIC:
            return Mechanism.PANIC
        is_start = self.invoker is not None and RUNTIME_INIT.match(self.invoker.comm) is not None
        if self.outcome is Outcome.NOBODY and is_start:
            return Mechanism.START_LIMIT
        if self.is_manual or (self.is_manual is None and self.memory.is_short is False):
            return Mechanism.SYSRQ
        if self.constraint is None:
            return Mechanism.KERNEL
        if self.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}:
            return Mechanism.MEMORY_NODES
        if self.constraint is Constraint.NONE:
            return Mechanism.CGROUP_LIMIT if self.is_of_guest else Mechanism(BY_RANK.id)
        if not self.oom_memcg or self.oom_memcg.endswith(CUT):
            return Mechanism.MEMORY_LIMIT
        return AT_LEVEL[path_level(self.oom_memcg, self.task_memcg)]

    @property
    def confidence(self) -> Confidence:
        """LIKELY if the report fits another kind of kill too, else CERTAIN.

        That is so without an outcome, for a kill by SysRq without the beginning of its report, and after a
        page fault. It is also so for reports of other programs without a victim, and for the result of a
        unit: systemd gives the same one after a kill by systemd-oomd.
        """
        is_guess = self.is_manual is None and self.mechanism is Mechanism.SYSRQ
        is_guess |= self.outcome is Outcome.UNKNOWN
        is_guess |= self.is_by_page_fault and self.mechanism == BY_RANK.id
        is_of_other = self.logged_by or (self.ended_unit and not self.is_certain)
        is_guess |= bool(is_of_other) and self.victim is None and self.daemon is None
        return Confidence.LIKELY if is_guess else Confidence.CERTAIN

    @property
    def victim(self) -> Killed | None:
        """The chosen process; any others died with it."""
        return self.victims[0] if self.victims else None

    @property
    def dead(self) -> Killed | None:
        """The process that died first: up to 5.2 the kernel may name one of its threads."""
        victim = self.victim
        row = self.row(victim) if victim is not None else None
        if victim is None or row is None or victim.pid in {row.pid, row.tgid}:
            return victim
        return structs.replace(victim, pid=row.tgid or row.pid, comm=row.name)

    @property
    def is_of_sandbox(self) -> bool:
        """Whether the victim is the pause container, which belongs to no container of its pod."""
        dead = self.dead
        if dead is None or dead.comm != "pause":
            return False
        row = self.row(dead)
        return {dead.adj, row.adj if row is not None else None} <= {None, SANDBOX_ADJ}

    @property
    def processes(self) -> tuple[Killed, ...]:
        """Every killed process once: the first of a group is printed twice."""
        by_pid: dict[int, Killed] = {}
        for killed in self.victims:
            by_pid.setdefault(killed.pid, killed)
        return tuple(by_pid.values())

    @property
    def freed_kb(self) -> int | None:
        """Resident memory of the killed processes, None if no line has it.

        Processes that share memory count it each, so it is at most what the cgroup used.
        """
        sizes = [size for killed in self.processes if (size := killed.rss_kb) is not None]
        used = self.memory.usage_kb if self.constraint is Constraint.MEMCG else None
        return min(sum(sizes), used or sum(sizes)) if sizes else None

    @property
    def cgroup(self) -> str:
        """Path of the victim's cgroup, from the line that has most of it."""
        paths = [path for path in (self.task_memcg, self.group_kill, self.oom_memcg) if pod_cgroup(path)]
        of_containers = (path for path in paths if (pod := pod_cgroup(path)) and pod.container_id)
        return next(of_containers, paths[0] if paths else self.task_memcg or self.group_kill)

    @property
    def oldest(self) -> OomTask | None:
        """First process of the table that is of a container: neither pause, nor CRI-O's conmon."""
        outside = {SANDBOX_ADJ, OOM_SCORE_ADJ_MIN}
        return next((task for task in self.tasks if task.adj not in outside), None)

    def row(self, killed: Killed) -> OomTask | None:
        """Return the row of a killed process; up to 5.2 a thread is found by its process's total_vm."""
        by_id = (task for task in self.tasks if killed.pid in {task.pid, task.tgid})
        size = killed.total_vm_kb
        alike = [
            task for task in self.tasks if any(task.total_vm * page >> 10 == size for page in PAGE_SIZES)
        ]
        return next(by_id, alike[0] if len(alike) == 1 else None)

    @property
    def page_bytes(self) -> int:
        """Page size by which the parts of the report agree, 4096 if unknown."""
        if self.memory.page_kb is not None:
            return self.memory.page_kb << 10
        for killed in self.victims:
            task = self.row(killed)
            if task is None:
                continue
            for kib, pages in ((killed.total_vm_kb, task.total_vm), (killed.rss_kb, task.rss)):
                if kib and pages:
                    measured = kib * 1024 / pages
                    return min(PAGE_SIZES, key=lambda page: abs(page - measured))
        tables = [task.pgtables_bytes for task in self.tasks if task.pgtables_bytes]
        is_large = len(tables) >= _MANY_TABLES
        return next(
            (page for page in PAGE_SIZES[:0:-1] if is_large and not any(size % page for size in tables)),
            DEFAULT_PAGE_BYTES,
        )


class KernelLog(msgspec.Struct, frozen=True):
    """The reports of a log, oldest first, and the span of wall-clock times that it covers.

    `first` and `last` are RFC 3339, "" without such times, and without a zone if the lines have none.
    `left_out` counts reports that were too many to keep. `node` is the node that the user named.

    `fragments` are line numbers of reports that name neither cause nor victim; `unread` are line numbers with
    words of a report that cannot be parsed. `is_kernel`: a line says that it is the kernel's. `first_line` is
    the first that is not empty. `pods` are the namespaces and names of pods in lines of a kubelet, by UID
    and by container ID.
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
    pods: Mapping[str, tuple[str, str]] = {}

    def with_boot_time(self, seconds: float) -> KernelLog:
        """Return the log with wall-clock times if it has none, for a machine that booted at this time."""

        def with_time(report: OomReport) -> OomReport:
            if report.time or report.uptime is None:
                return report
            moment = datetime.fromtimestamp(seconds + report.uptime, UTC)
            return replace(report, time=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

        return structs.replace(self, reports=tuple(map(with_time, self.reports)))


def distinct_reports(logs: Iterable[KernelLog]) -> list[tuple[OomReport, KernelLog]]:
    """Return every report once, with the log that has most of it."""
    distinct: list[tuple[OomReport, KernelLog]] = []
    by_victim: dict[object, list[int]] = {}
    for report, log in _without_second_hand([(report, read) for read in logs for report in read.reports]):
        victim = report.victim
        alike = by_victim.setdefault((victim.pid, victim.comm) if victim else report.chosen, [])
        same = (place for place in alike[-_MOST_ALIKE:] if _are_same(distinct[place], (report, log)))
        place = next(same, None)
        if place is not None and report.daemon is not distinct[place][0].daemon:
            by_kernel, by_daemon = sorted(
                (distinct[place], (report, log)), key=lambda pair: bool(pair[0].daemon)
            )
            distinct[place] = (replace(by_kernel[0], also_by=by_daemon[0].daemon), by_kernel[1])
        elif place is None:
            alike.append(len(distinct))
            distinct.append((report, log))
        elif _lacks(distinct[place][0]) > _lacks(report):
            distinct[place] = (report, log)
    return distinct


def _without_second_hand(pairs: list[tuple[OomReport, KernelLog]]) -> Iterator[tuple[OomReport, KernelLog]]:
    """Yield the reports, without other programs' reports of a kill that a better report describes."""
    levels = [_level(report) for report, _ in pairs]
    better_names: list[set[object]] = [set() for _ in range(_LAST_LEVEL + 1)]
    for level, (report, _) in zip(levels, pairs, strict=True):
        for names in better_names[level + 1 :]:
            names.update(_names(report))
    for place, (report, log) in enumerate(pairs):
        level, names = levels[place], _names(report)
        around = range(max(place - _MOST_ALIKE, 0), min(place + _MOST_ALIKE, len(pairs)))
        better = [pairs[other][0] for other in around if levels[other] < level] if level > 1 else []
        is_known = not better_names[level].isdisjoint(names)
        # A report without names may be about any kill of that time.
        if not (
            is_known or any(not (names and other.cgroup) and _is_then(other, report) for other in better)
        ):
            near = [pairs[other] for other in around if other != place and pairs[other][1] is log]
            at_once = sum(_may_be_of_group(report, other) for other, _ in near)
            yield replace(_with_container(report, near), at_once=at_once), log


def _with_container(report: OomReport, near: Iterable[tuple[OomReport, KernelLog]]) -> OomReport:
    """Add the container that a runtime names at the time of a kill whose own cgroup the log lacks.

    Two kills at that time, or two containers, leave open which is whose.
    """
    if report.cgroup or report.logged_by or report.daemon is not None:
        return report
    same = [other for other, _ in near if other.node == report.node and _is_then(report, other, _AT_ONCE)]
    paths = {other.cgroup: other.logged_by for other in same if other.logged_by and other.cgroup}
    is_only = len(paths) == 1 and all(other.logged_by for other in same)
    return replace(report, task_memcg=min(paths), named_by=paths[min(paths)]) if is_only else report


def _may_be_of_group(report: OomReport, other: OomReport) -> bool:
    """Return whether two kills at a limit may be one of a group, whose first process alone has a report."""
    first, second = sorted((report, other), key=lambda kill: kill.line)
    apart = seconds_between(first.time, second.time)
    if first.uptime is not None and second.uptime is not None:
        apart = second.uptime - first.uptime
    is_bare = bool(first.victims and second.victims) and not (second.tasks or second.invoker or second.chosen)
    paths = {first.cgroup, second.cgroup} - {""}
    kinds = {(kill.constraint, kill.node, kill.group_kill, kill.daemon) for kill in (first, second)}
    is_same = len(paths) <= 1 and kinds == {(Constraint.MEMCG, first.node, "", None)}
    return is_bare and is_same and apart is not None and 0 <= apart <= 1


def _lacks(report: OomReport) -> tuple[bool, bool]:
    return report.outcome is Outcome.UNKNOWN, report.incomplete


def _level(report: OomReport) -> int:
    """Rank what a report says: 0 is the kernel's own, 1 has a victim, 2 a pod, 3 a cgroup, 4 nothing."""
    if not report.logged_by or report.victim is not None:
        return int(bool(report.logged_by))
    return 2 if pod_cgroup(report.cgroup) is not None else _LAST_LEVEL - bool(report.cgroup)


_LAST_LEVEL: Final = 4


def _names(report: OomReport) -> set[object]:
    """Return names that identify the victims of a report and their cgroup."""
    pod = pod_cgroup(report.cgroup)
    container = pod.container_id if pod is not None else container_of_unit(report.cgroup)
    cgroup = container[:_SHORT_ID] or report.cgroup
    return {(killed.pid, killed.comm) for killed in report.processes} | ({cgroup} if cgroup else set())


def _is_then(report: OomReport, other: OomReport, seconds: float = _SAME_SECONDS) -> bool:
    """Return whether two reports may be from the same moment; a shorter one needs their times."""
    apart = seconds_between(report.time, other.time)
    return seconds == _SAME_SECONDS if apart is None else abs(apart) < seconds


def _are_same(pair: tuple[OomReport, KernelLog], twin_pair: tuple[OomReport, KernelLog]) -> bool:
    """Return whether everything that both know is equal; the same name and ID may be killed again later."""
    (report, log), (twin, twin_log) = pair, twin_pair
    if report.daemon is not twin.daemon:
        is_here = "" in {report.node, twin.node} or report.node == twin.node
        return bool(report.victim) and is_here and _is_then(report, twin)
    pod, twin_pod = pod_cgroup(report.cgroup), pod_cgroup(twin.cgroup)
    values: list[tuple[object, object]] = [(report.freed_kb, twin.freed_kb), (log.node, twin_log.node)]
    if pod is not None and twin_pod is not None:
        values += [(pod.pod_uid, twin_pod.pod_uid), (pod.container_id, twin_pod.container_id)]
    elif not (report.cgroup + twin.cgroup).endswith(CUT):
        values.append((report.cgroup, twin.cgroup))
    if pod is None:
        # A pod is on one node only, even if logs call that node differently.
        values.append((report.node, twin.node))
    if any(a not in {None, ""} and b not in {None, "", a} for a, b in values):
        return False
    if report.uptime is not None and twin.uptime is not None:
        return abs(report.uptime - twin.uptime) < _SAME_SECONDS
    # One time with a zone and one without cannot be compared.
    is_comparable = report.time.endswith("Z") == twin.time.endswith("Z")
    apart = seconds_between(report.time, twin.time) if is_comparable else None
    return apart is None or abs(apart) < (_SAME_SECONDS if report.daemon is None else 1)
