"""The lines of an OOM report, and the report that is built from them.

The wording of some differs by kernel; all forms since 3.10 are parsed. Source: Linux
mm/oom_kill.c and mm/memcontrol.c at v3.10, v4.4, v4.19, v5.0, v5.4, v6.1 and v6.8.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from kubectl_qos.host.log_lines import LogRecord
from kubectl_qos.qos.kills.report import Constraint, Invoker, Killed, MemoryState, OomReport, OomTask

MOST_TASKS: Final = 65_536
"""Rows of a table; the kernel's default limit of process ids is 32,768."""
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
    r"(?P<what>memory|swap|memory\+swap): usage (?P<usage>\d+)kB, limit (?P<limit>\d+)kB", re.ASCII
)
_COUNTER_PREFIXES: Final = {"memory": "", "swap": "swap_", "memory+swap": "memsw_"}
_MACHINE: Final = (
    (re.compile(r"(\d{1,18}) pages RAM$", re.ASCII), "ram_pages"),
    (re.compile(r"(\d{1,18}) pages reserved$", re.ASCII), "reserved_pages"),
    (re.compile(r"Total swap +=? ?(\d{1,18})kB", re.ASCII), "total_swap_kb"),
)
_HEADER: Final = re.compile(r"\[ *pid *\] +(?P<columns>uid +tgid +[a-z_ ]+ name)$")
_ROW: Final = re.compile(r"\[ *(?P<pid>\d{1,10})\] +(?P<rest>\d.*)", re.ASCII)
_COLUMNS: Final = {"oom_score_adj": "adj"} | {
    name: name for name in ("uid", "tgid", "rss", "pgtables_bytes", "swapents")
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
    ("anon_rss_kb", re.compile(r"anon-rss:(\d{1,18})kB", re.ASCII)),
    ("file_rss_kb", re.compile(r"file-rss:(\d{1,18})kB", re.ASCII)),
    ("shmem_rss_kb", re.compile(r"shmem-rss:(\d{1,18})kB", re.ASCII)),
    ("uid", re.compile(r"\bUID[: ](\d{1,10})\b", re.ASCII)),
    ("adj", re.compile(r"oom_score_adj:(-?\d{1,4})$", re.ASCII)),
    ("score", re.compile(r"\bscore (\d{1,10}) or sacrifice", re.ASCII)),
)
_ADJ: Final = re.compile(r"oom_score_adj=(-?\d{1,4})\b", re.ASCII)
_GROUP: Final = re.compile(r"Tasks in (?P<group>\S+) are going to be killed due to memory\.oom\.group set")
_NO_KILLABLE: Final = "Out of memory and no killable processes"
_MEMCG_WORDS: Final = "Memory cgroup out of memory"
_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class ReportBuilder:
    """A report that is built line by line."""

    def __init__(self, record: LogRecord, number: int) -> None:
        self.node = record.node
        self._report = OomReport(time=record.time, uptime=record.uptime, node=record.node, line=number)
        self._victims: list[Killed] = []
        self._chosen_line: Killed | None = None
        self._reaped: list[int] = []
        self._columns: list[str] = []
        self._tasks: list[OomTask] = []
        self._memory: dict[str, Any] = {}
        self._stats_memcg = ""
        self._is_over = False

    @classmethod
    def begin(cls, record: LogRecord, number: int) -> ReportBuilder | None:
        """The report that a line begins, None if it begins none."""
        report = cls(record, number)
        invoked = _INVOKED.match(record.message)
        if invoked is not None:
            adj = _ADJ.search(record.message, invoked.end())
            report._set(invoker=Invoker(invoked["comm"], None, int(adj[1]) if adj is not None else None))
            return report
        is_taken = report.take(record.message)
        has_kill = report._victims or report._chosen_line
        has_cause = report._report.constraint or report._report.group_kill
        return report if is_taken and (has_kill or has_cause) else None

    @property
    def is_inside(self) -> bool:
        """Whether the lines before the first victim are still coming."""
        return not self._victims and not self._is_over

    def add_reaped(self, pid: int) -> bool:
        """Add a process that the reaper has freed, if it is one of the victims."""
        if not any(victim.pid == pid for victim in self._victims):
            return False
        self._reaped.append(pid)
        return True

    def hand_over_victim(self, later: ReportBuilder) -> None:
        """Give a later report about a group the victim before it, which looked like one of the group here."""
        is_group = later._report.group_kill and not later._victims
        if is_group and self._report.group_kill and len(self._victims) > 1:
            later._victims.append(self._victims.pop())
            later._set(constraint=self._report.constraint)

    def take(self, message: str) -> bool:
        """Add a line; False if it is not part of this report."""
        if _INVOKED.match(message) is not None:
            return False
        killed = _KILLED.match(message)
        if killed is not None:
            return self._take_killed(killed)
        group = _GROUP.match(message)
        if group is not None:
            is_first = not self._report.group_kill
            if is_first:
                self._set(group_kill=group["group"][:_LONGEST_PATH])
            return is_first
        summary = _SUMMARY.match(message)
        is_complete = self._report.constraint is not None and self._report.chosen is not None
        if summary is not None and (self._victims or is_complete):
            return False
        return self.is_inside and self._take_inside(message, summary)

    def _set(self, **fields: Any) -> None:
        self._report = replace(self._report, **fields)

    def _take_killed(self, match: re.Match[str]) -> bool:
        pid, why = int(match["pid"]), match["why"] or ""
        killed = _parse_killed(pid, match["rest"] or "")
        constraint = self._report.constraint
        by_line = None
        if why:
            by_line = Constraint.MEMCG if why == _MEMCG_WORDS else Constraint.NONE
            if constraint is not None and (by_line is Constraint.MEMCG) != (constraint is Constraint.MEMCG):
                return False
        if not match["done"]:
            # Up to 5.0 the chosen process is logged first, then the killed one, which may be its child.
            if self._victims or self._chosen_line is not None:
                return False
            self._chosen_line = killed
            self._set(chosen=pid)
        elif self._victims and not self._report.group_kill:
            return False
        else:
            chosen = self._chosen_line
            if chosen is not None and chosen.pid == pid:
                killed = replace(killed, score=chosen.score)
            self._victims.append(killed)
        is_allocating = self._report.took_the_allocating or "oom_kill_allocating_task" in why
        self._set(constraint=constraint or by_line, took_the_allocating=is_allocating)
        return True

    def _take_inside(self, message: str, summary: re.Match[str] | None) -> bool:
        if summary is not None:
            if summary["constraint"] in {constraint.value for constraint in Constraint}:
                self._set(constraint=Constraint(summary["constraint"]))
        elif message.startswith("["):
            return self._take_task(message)
        elif (domain := _OLD_DOMAIN.match(message)) is not None:
            return self._take_domain(domain)
        elif message.startswith("CPU: "):
            return self._take_processor(message)
        elif message.startswith(_NO_KILLABLE):
            self._is_over = True
            return True
        if "memcg=" in message or ",task=" in message or message.startswith("task="):
            # A path that is too long for a line continues on the next.
            self._take_paths(message)
            return True
        return self._take_memory(message)

    def _take_domain(self, match: re.Match[str]) -> bool:
        """Up to 4.20 the domain has its own line; some vendors print it for the node too, as `host`."""
        if self._report.task_memcg:
            return False
        is_cgroup = match["domain"].startswith("/")
        self._set(
            task_memcg=match["task"][:_LONGEST_PATH],
            constraint=Constraint.MEMCG if is_cgroup else Constraint.NONE,
            oom_memcg=match["domain"][:_LONGEST_PATH] if is_cgroup else "",
        )
        return True

    def _take_paths(self, message: str) -> None:
        for form, name in ((_OOM_MEMCG, "oom_memcg"), (_TASK_MEMCG, "task_memcg")):
            path = form.search(message)
            if path is not None:
                self._set(**{name: path[1]})
        chosen = _CHOSEN.search(message)
        if chosen is not None:
            self._set(chosen=int(chosen[1]))

    def _take_processor(self, message: str) -> bool:
        match = _PROCESSOR.match(message)
        if match is None or self._report.kernel:
            return False
        invoker = self._report.invoker
        if invoker is not None:
            invoker = replace(invoker, pid=int(match["pid"]))
        self._set(kernel=match["kernel"], invoker=invoker)
        return True

    def _take_memory(self, message: str) -> bool:
        counters = _COUNTERS.match(message)
        if counters is not None:
            prefix = _COUNTER_PREFIXES[counters["what"]]
            self._memory |= {f"{prefix}{name}_kb": int(counters[name]) for name in ("usage", "limit")}
            return True
        stats = _STATS.match(message)
        if stats is not None:
            # On v1 those of all cgroups below follow; the first is the one that ran out.
            self._stats_memcg = self._stats_memcg or stats["domain"][:_LONGEST_PATH]
            return True
        for form, name in _MACHINE:
            match = form.match(message)
            if match is not None:
                self._memory[name] = int(match[1])
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
        # A process may have an empty name.
        if len(cells) < len(columns) or not all(map(_INTEGER.fullmatch, cells[: len(columns)])):
            return False
        self._tasks.append(_parse_task(int(row["pid"]), columns, cells))
        return True

    def report(self) -> OomReport:
        """The report of the lines so far."""
        victims = self._victims or ([self._chosen_line] if self._chosen_line is not None else [])
        invoker = self._report.invoker
        has_end = self._is_over or (bool(victims) and victims[0].anon_rss_kb is not None)
        return replace(
            self._report,
            oom_memcg=self._report.oom_memcg or self._stats_memcg,
            tasks=tuple(self._tasks),
            memory=MemoryState(**self._memory),
            victims=tuple(victims),
            reaped=tuple(self._reaped),
            incomplete=not has_end or invoker is None or invoker.pid is None,
        )


def _parse_task(pid: int, columns: list[str], cells: list[str]) -> OomTask:
    fields: dict[str, int] = {}
    tables = None
    for column, cell in zip(columns, cells, strict=False):
        if column in _PAGES_OF_TABLES:
            tables = (tables or 0) + int(cell)
        elif column in _COLUMNS:
            fields[_COLUMNS[column]] = int(cell)
    name = cells[len(columns)] if len(cells) > len(columns) else ""
    return OomTask(pid=pid, name=name, pgtables_pages=tables, **fields)


def _parse_killed(pid: int, rest: str) -> Killed:
    """What follows ` (`: the name, which may have any characters, then the numbers."""
    # The name may look like its end too: the last one counts.
    end = next(reversed(list(_AFTER_COMM.finditer(rest))), None)
    comm = rest[: end.start()] if end is not None else rest.removesuffix(")")
    numbers = rest[end.end() :] if end is not None else ""
    matches = {name: form.search(numbers) for name, form in _NUMBERS}
    sizes = {name: int(match[1]) for name, match in matches.items() if match is not None}
    return Killed(pid, comm[:64], **sizes)
