"""The lines of one OOM report, and what is known of it while they come in.

Each kernel generation words some of them differently; every form since 3.10 is taken. Source: Linux
mm/oom_kill.c and mm/memcontrol.c at v3.10, v4.4, v4.19, v5.0, v5.4, v6.1 and v6.8.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from kubectl_qos.host.log_lines import LogRecord
from kubectl_qos.qos.kills.report import Constraint, Invoker, Killed, MemoryState, OomReport, OomTask

MOST_TASKS: Final = 65_536
"""Rows of one table; 32,768 is the kernel's default limit of process ids."""
_LONGEST_PATH: Final = 4_096

_INVOKED: Final = re.compile(r"(?P<comm>.{0,64}?) invoked oom-killer: ")
_PROCESSOR: Final = re.compile(
    r"CPU: \d+ (?:UID: \d+ )?PID: (?P<pid>\d{1,10}) Comm: .{0,200}ainted[: ].{0,200}?"
    r"(?P<kernel>\d+\.\d+[^\s#]{0,100}) #",
    re.ASCII,
)
_OLD_DOMAIN: Final = re.compile(r"Task in (?P<task>\S+) killed as a result of limit of (?P<domain>\S+)")
_STATS: Final = re.compile(r"Memory cgroup stats for (?P<domain>\S+?):")
_COUNTERS: Final = re.compile(
    r"(?P<what>memory|swap|memory\+swap): usage (?P<usage>\d+)kB, limit (?P<limit>\d+)kB"
    r"(?:, failcnt (?P<failcnt>\d+))?",
    re.ASCII,
)
_COUNTER_NAMES: Final = {
    "memory": ("usage_kb", "limit_kb"),
    "swap": ("swap_usage_kb", "swap_limit_kb"),
    "memory+swap": ("memsw_usage_kb", "memsw_limit_kb"),
}
_MACHINE: Final = (
    (re.compile(r"(\d{1,18}) pages RAM$", re.ASCII), "ram_pages"),
    (re.compile(r"(\d{1,18}) pages reserved$", re.ASCII), "reserved_pages"),
    (re.compile(r"\s*free:(\d{1,18}) free_pcp", re.ASCII), "free_pages"),
    (re.compile(r"Free swap +=? ?(\d{1,18})kB", re.ASCII), "free_swap_kb"),
    (re.compile(r"Total swap +=? ?(\d{1,18})kB", re.ASCII), "total_swap_kb"),
)
_HEADER: Final = re.compile(r"\[ *pid *\] +(?P<columns>uid +tgid +[a-z_ ]+ name)$")
_ROW: Final = re.compile(r"\[ *(?P<pid>\d{1,10})\] +(?P<rest>\d.*)", re.ASCII)
_ROW_OF: Final = {
    "uid": "uid",
    "tgid": "tgid",
    "total_vm": "total_vm",
    "rss": "rss",
    "rss_anon": "anon",
    "rss_file": "file",
    "rss_shmem": "shmem",
    "pgtables_bytes": "pgtables_bytes",
    "swapents": "swapents",
    "oom_score_adj": "adj",
}
_PAGES_OF_TABLES: Final = frozenset({"nr_ptes", "nr_pmds", "nr_puds"})

_SUMMARY: Final = re.compile(r"oom-kill:constraint=(?P<constraint>CONSTRAINT_[A-Z_]+)")
_OOM_MEMCG: Final = re.compile(r"(?:^|,)oom_memcg=([^,]{1,4096})")
_TASK_MEMCG: Final = re.compile(r"(?:^|,)task_memcg=([^,]{1,4096})")
_CHOSEN: Final = re.compile(r"(?:^|,)task=.{0,64}?,pid=(\d{1,10})(?:,|$)", re.ASCII)

_KILLED: Final = re.compile(
    r"(?:(?P<why>Memory cgroup out of memory|Out of memory[^:]{0,40}): )?"
    r"Kill(?P<done>ed)? process (?P<pid>\d{1,10})(?: \((?P<rest>.*))?$",
    re.ASCII,
)
_AFTER_COMM: Final = re.compile(r"\),? (?=total-vm:|UID |score )")
_NUMBERS: Final = (
    ("total_vm_kb", re.compile(r"total-vm:(\d{1,18})kB", re.ASCII)),
    ("anon_rss_kb", re.compile(r"anon-rss:(\d{1,18})kB", re.ASCII)),
    ("file_rss_kb", re.compile(r"file-rss:(\d{1,18})kB", re.ASCII)),
    ("shmem_rss_kb", re.compile(r"shmem-rss:(\d{1,18})kB", re.ASCII)),
    ("uid", re.compile(r"\bUID[: ](\d{1,10})\b", re.ASCII)),
    ("pgtables_kb", re.compile(r"pgtables:(\d{1,18})kB", re.ASCII)),
    ("adj", re.compile(r"oom_score_adj:(-?\d{1,4})$", re.ASCII)),
    ("score", re.compile(r"\bscore (\d{1,10}) or sacrifice", re.ASCII)),
)
_ADJ: Final = re.compile(r"oom_score_adj=(-?\d{1,4})\b", re.ASCII)
_GROUP: Final = re.compile(r"Tasks in (?P<group>\S+) are going to be killed due to memory\.oom\.group set")
_NOBODY: Final = "Out of memory and no killable processes"
_MEMCG_WORDS: Final = "Memory cgroup out of memory"


class ReportBuilder:
    """A report while its lines come in."""

    def __init__(self, record: LogRecord, number: int) -> None:
        self.node = record.node
        self.victims: list[Killed] = []
        self.reaped: list[int] = []
        self._record = record
        self._number = number
        self._invoker: Invoker | None = None
        self._kernel = ""
        self._constraint: Constraint | None = None
        self._oom_memcg = ""
        self._task_memcg = ""
        self._stats_of = ""
        self._columns: list[str] = []
        self._tasks: list[OomTask] = []
        self._memory: dict[str, Any] = {}
        self._chosen: int | None = None
        self._chosen_line: Killed | None = None
        self._group = ""
        self._allocating = False
        self._is_over = False

    @classmethod
    def begun_by(cls, record: LogRecord, number: int) -> ReportBuilder | None:
        """The report that a line begins, None if it begins none."""
        found = cls(record, number)
        invoked = _INVOKED.match(record.message)
        if invoked is not None:
            adj = _ADJ.search(record.message, invoked.end())
            found._invoker = Invoker(invoked["comm"], None, int(adj[1]) if adj is not None else None)
            return found
        return found if found.take(record.message) and found._is_telling else None

    @property
    def is_inside(self) -> bool:
        """Whether the lines before the first victim are still coming."""
        return not self.victims and not self._is_over

    @property
    def _is_telling(self) -> bool:
        return bool(self.victims or self._chosen_line or self._constraint or self._group)

    def has_killed(self, pid: int) -> bool:
        """Whether that process is among the victims."""
        return any(one.pid == pid for one in self.victims)

    def give_back(self, later: ReportBuilder) -> None:
        """Hand over the first victim of a report without a header, which looked like one of the group here.

        A line about a group comes after its first victim.
        """
        if later._group and not later.victims and self._group and len(self.victims) > 1:
            later.victims.append(self.victims.pop())
            later._constraint = self._constraint

    def take(self, message: str) -> bool:
        """Whether the line is part of this report."""
        if _INVOKED.match(message) is not None:
            return False
        killed = _KILLED.match(message)
        if killed is not None:
            return self._take_killed(killed)
        group = _GROUP.match(message)
        if group is not None:
            if self._group:
                return False
            self._group = group["group"][:_LONGEST_PATH]
            return True
        summary = _SUMMARY.match(message)
        if summary is not None and (
            self.victims or (self._constraint is not None and self._chosen is not None)
        ):
            return False
        return self.is_inside and self._take_inside(message, summary)

    def _take_killed(self, found: re.Match[str]) -> bool:
        pid = int(found["pid"])
        one = _killed(pid, found["rest"] or "")
        why = found["why"] or ""
        is_memcg = why == _MEMCG_WORDS if why else None
        before = self._constraint
        if is_memcg is not None and before is not None and is_memcg != (before is Constraint.MEMCG):
            return False
        if not found["done"]:
            # Up to 5.0 the choice is said first, then who is killed: a child in its place, maybe.
            if self.victims or self._chosen_line is not None:
                return False
            self._chosen_line, self._chosen = one, pid
        elif self.victims and not self._group:
            return False
        else:
            said = self._chosen_line
            if said is not None and said.pid == pid:
                one = replace(one, score=said.score)
            self.victims.append(one)
        if self._constraint is None and is_memcg is not None:
            self._constraint = Constraint.MEMCG if is_memcg else Constraint.NONE
        self._allocating |= "oom_kill_allocating_task" in why
        return True

    def _take_inside(self, message: str, summary: re.Match[str] | None) -> bool:
        if summary is not None:
            if summary["constraint"] in {one.value for one in Constraint}:
                self._constraint = Constraint(summary["constraint"])
        elif message.startswith("["):
            return self._take_task(message)
        elif (domain := _OLD_DOMAIN.match(message)) is not None:
            return self._take_domain(domain)
        elif message.startswith("CPU: "):
            return self._take_processor(message)
        elif message.startswith(_NOBODY):
            self._is_over = True
            return True
        if "memcg=" in message or ",task=" in message or message.startswith("task="):
            # A path that is too long for one line is continued on the next.
            self._take_paths(message)
            return True
        return self._take_memory(message)

    def _take_domain(self, found: re.Match[str]) -> bool:
        """Up to 4.20 a line of its own; some vendors' kernels print it for the machine too, as `host`."""
        if self._task_memcg:
            return False
        self._task_memcg = found["task"][:_LONGEST_PATH]
        is_cgroup = found["domain"].startswith("/")
        self._constraint = Constraint.MEMCG if is_cgroup else Constraint.NONE
        self._oom_memcg = found["domain"][:_LONGEST_PATH] if is_cgroup else ""
        return True

    def _take_paths(self, message: str) -> None:
        for form, name in ((_OOM_MEMCG, "_oom_memcg"), (_TASK_MEMCG, "_task_memcg")):
            path = form.search(message)
            if path is not None:
                setattr(self, name, path[1])
        chosen = _CHOSEN.search(message)
        if chosen is not None:
            self._chosen = int(chosen[1])

    def _take_processor(self, message: str) -> bool:
        found = _PROCESSOR.match(message)
        if found is None or self._kernel:
            return False
        self._kernel = found["kernel"]
        if self._invoker is not None:
            self._invoker = replace(self._invoker, pid=int(found["pid"]))
        return True

    def _take_memory(self, message: str) -> bool:
        counters = _COUNTERS.match(message)
        if counters is not None:
            usage, limit = _COUNTER_NAMES[counters["what"]]
            self._memory[usage], self._memory[limit] = int(counters["usage"]), int(counters["limit"])
            if counters["what"] == "memory" and counters["failcnt"]:
                self._memory["failcnt"] = int(counters["failcnt"])
            return True
        stats = _STATS.match(message)
        if stats is not None:
            # v1 goes on with those of every cgroup below; the first is that which ran out.
            self._stats_of = self._stats_of or stats["domain"][:_LONGEST_PATH]
            return True
        for form, name in _MACHINE:
            found = form.match(message)
            if found is not None:
                self._memory[name] = int(found[1])
                return True
        return False

    def _take_task(self, message: str) -> bool:
        header = _HEADER.match(message)
        if header is not None:
            self._columns = header["columns"].split()
            self._tasks = []
            return True
        row = _ROW.match(message)
        if row is None or not self._columns or len(self._tasks) >= MOST_TASKS:
            return False
        columns = self._columns[:-1]
        cells = row["rest"].split(None, len(columns))
        # A process may have no name at all.
        if len(cells) < len(columns) or not all(map(_INTEGER.fullmatch, cells[: len(columns)])):
            return False
        self._tasks.append(_task(int(row["pid"]), columns, cells))
        return True

    def report(self) -> OomReport:
        """What is known of it."""
        victims = tuple(self.victims)
        if not victims and self._chosen_line is not None:
            victims = (self._chosen_line,)
        first = victims[0] if victims else None
        is_whole = (
            self._invoker is not None
            and self._invoker.pid is not None
            and (self._is_over or (first is not None and first.anon_rss_kb is not None))
        )
        return OomReport(
            time=self._record.time,
            uptime=self._record.uptime,
            node=self.node,
            kernel=self._kernel,
            invoker=self._invoker,
            constraint=self._constraint,
            oom_memcg=self._oom_memcg or self._stats_of,
            task_memcg=self._task_memcg,
            tasks=tuple(self._tasks),
            has_table=bool(self._columns),
            memory=MemoryState(**self._memory),
            chosen=self._chosen,
            victims=victims,
            group_kill=self._group,
            reaped=tuple(self.reaped),
            took_the_allocating=self._allocating,
            incomplete=not is_whole,
            line=self._number,
        )


_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


def _task(pid: int, columns: list[str], cells: list[str]) -> OomTask:
    said: dict[str, int] = {}
    tables = None
    for column, cell in zip(columns, cells, strict=False):
        if column in _PAGES_OF_TABLES:
            tables = (tables or 0) + int(cell)
        elif column in _ROW_OF:
            said[_ROW_OF[column]] = int(cell)
    name = cells[len(columns)] if len(cells) > len(columns) else ""
    return OomTask(pid=pid, name=name, pgtables_pages=tables, **said)


def _killed(pid: int, rest: str) -> Killed:
    """What follows ` (`: the name, which may hold any character, then the numbers."""
    # Of several ends the last one is it: a name may look like the numbers.
    ends = next(reversed(list(_AFTER_COMM.finditer(rest))), None)
    comm = rest[: ends.start()] if ends is not None else rest.removesuffix(")")
    numbers = rest[ends.end() :] if ends is not None else ""
    said: dict[str, Any] = {}
    for name, form in _NUMBERS:
        found = form.search(numbers)
        if found is not None:
            said[name] = int(found[1])
    return Killed(pid, comm[:64], **said)
