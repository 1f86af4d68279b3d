"""Build the report of an OOM kill from the lines of a kernel's log, wherever that begins.

The kinds of lines are in oom_grammar.py, those of daemons in daemon_lines.py.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.kills.report import Constraint, Invoker, Killed, OomReport, Outcome, seconds_between
from kubectl_qos.qos.logs.oom_grammar import (
    LONGEST_PATH,
    PATH,
    SCORE_ADJ,
    MemoryLines,
    ReportPart,
    TaskTable,
    cgroup_path,
    constraint_of,
    is_within,
    killed_process,
    parse_message,
)
from kubectl_qos.qos.logs.record import LogRecord

_APART_SECONDS: Final = 1.0
"""Longest time between lines of a report: a serial console is slow, and times of day are rounded."""
_SLOW_SECONDS: Final = 60.0
"""Longest time between lines before the victim, on a thrashing node (25 s were seen).

oom_lock keeps other reports out meanwhile.
"""
_GAP_SECONDS: Final = 0.1
"""If a person left lines out, another report may have begun after this time."""
_REAPED_SECONDS: Final = 60.0
"""Longest time from a report's last line to one about a consequence of the kill."""
_BACK_SECONDS: Final = -0.5
"""A line may be this much older than the one before it."""

_NO_MASK: Final = re.compile(r"gfp_mask=0x0(?:\(|,)", re.ASCII)
_ORDER: Final = re.compile(r"\border=(-?\d{1,4})(?:,|$)", re.ASCII)
_RELEASE: Final = re.compile(r"ainted[: ].{0,200}?(?<![\d.])(\d{1,2}\.\d+[^\s#]{0,100}) #", re.ASCII)
_FIELD: Final = {name: re.compile(rf"(?:^|[,\s]){name}{PATH}") for name in ("oom_memcg", "task_memcg")}
_CHOSEN: Final = re.compile(
    r"(?:^|[,\s])task=(?P<comm>.{0,64}?)(?:, ?pid= ?(?:(?P<pid>\d{1,10}) ?,|\d*…?$)|$)", re.ASCII
)
_NODES: Final[dict[Constraint | None, re.Pattern[str]]] = {
    constraint: re.compile(rf"\b{name}=([\d,-]*\d)", re.ASCII)
    for constraint, name in ((Constraint.CPUSET, "mems_allowed"), (Constraint.MEMORY_POLICY, "nodemask"))
}
_SEARCHED: Final = re.compile(r"oom|kill|memory", re.IGNORECASE)
"""Words that people search a log for."""
_SYSRQ_THREAD: Final = "kworker"
"""Kernel thread that calls the OOM killer for a person (SysRq f)."""
_REST_OF_ROW: Final = re.compile(r"-?\d|[^\s=]+$", re.ASCII)
_CONTEXT: Final = frozenset({"trace", "statistic", "zone"})
"""Kinds of lines that nobody searches a log for."""


class ReportBuilder:
    """A report under construction, line by line.

    `has_gap`: lines were left out since its last one.
    """

    def __init__(self, record: LogRecord) -> None:
        self.has_gap = self._is_followed = self._has_context = False
        self._last = record
        self._kind = ""
        self._part = 0
        when = {"time": record.time, "uptime": record.uptime, "year_is_guessed": record.year_is_guessed}
        self._report = OomReport(node=record.node, line=record.line, **when)  # type: ignore[arg-type]
        self._victims: list[Killed] = []
        self._chosen: Killed | None = None
        self._has_summary = self._is_by_stack = False
        self._task = ""
        self._reaped: list[int] = []
        self._table = TaskTable()
        self._memory = MemoryLines()

    @classmethod
    def begin(cls, record: LogRecord) -> ReportBuilder | None:
        """Begin a report at a line, or return None if the line begins none."""
        report = cls(record)
        return report if report.add_line(record) else None

    @property
    def is_inside(self) -> bool:
        """Whether the lines before the first victim are still coming."""
        return self._part < ReportPart.KILLED

    @property
    def is_of_unit(self) -> bool:
        """Whether it has only systemd's line, whose process other lines may name."""
        return self._kind == "unit"

    @property
    def _is_slow(self) -> bool:
        """Whether its next line may be much later, up to the victim's: a chosen process is not yet one.

        The line about a group comes after the victim, even if the log lacks that one.
        """
        return self._report.invoker is not None and not (self._victims or self._report.group_kill)

    @property
    def _may_lack_prefix(self) -> bool:
        """Whether it has only the first line of a log, whose prefix people often miss when copying."""
        return self._last.is_bare and self._last.place == 1

    def is_near(self, record: LogRecord) -> bool:
        """Return whether a line's prefix allows it to be part of this report."""
        last = self._last
        is_same = (last.caller, last.is_bare) == (record.caller, record.is_bare)
        # The first line of a copy may have only a part of its prefix.
        is_same = is_same and (last.node == record.node or (not last.node and last.place == 1))
        # Of lines that a person has typed, only the first may have a prefix.
        is_next = (self._may_lack_prefix or record.is_bare) and record.place == last.place + 1
        seconds = _GAP_SECONDS if self.has_gap else _SLOW_SECONDS if self._is_slow else _APART_SECONDS
        return last.part == record.part and (is_same or is_next) and self._is_close(record, seconds)

    def _is_followed_by(self, record: LogRecord) -> bool:
        """Return whether a line, perhaps another program's, may report a consequence of this kill."""
        is_here = (record.node, record.part) == (self._last.node, self._last.part)
        return is_here and self._is_close(record, _REAPED_SECONDS)

    def seconds_to(self, record: LogRecord) -> float | None:
        """Return the seconds from the last line to another one, None if the time of one is unknown."""
        last = self._last
        if record.uptime is not None and last.uptime is not None:
            return record.uptime - last.uptime
        return seconds_between(last.time, record.time)

    def _is_close(self, record: LogRecord, seconds: float) -> bool:
        """Return whether a line has about the same time, or without times, whether no line was left out."""
        apart = self.seconds_to(record)
        if apart is None:
            return not self.has_gap and (self._may_lack_prefix or not record.has_time)
        return _BACK_SECONDS <= apart <= seconds

    def add_line(self, record: LogRecord) -> bool:
        """Add a line; return False if it is not part of this report."""
        parsed, is_in_table = parse_message(record.message.strip()), self._part == ReportPart.TABLE
        if parsed is None:
            is_of_row = record.is_bare and _REST_OF_ROW.match(record.message) is not None
            self._table.is_whole &= not (is_in_table and is_of_row)
            return False
        kind, part, groups = parsed
        if groups.get("what") == "swap" and record.is_bare and record.place == 1:
            return False  # It may have begun with "memory+".
        is_next = not self.has_gap and 0 <= record.place - self._last.place <= 1
        self._table.is_whole &= not (is_in_table and self.has_gap)
        if kind == "statistics":
            groups = {**groups, "previous": self._kind if is_next else ""}
        elif self._kind == "statistics" and not is_next:
            self._memory.end_statistics()
        is_late = part < self._part and kind != "summary"
        if is_late or not getattr(self, f"_parse_{kind}")(**groups):
            return False
        self._part = max(self._part, part)
        self._kind = kind
        self._has_context |= kind in _CONTEXT
        if self._may_lack_prefix and record.has_time and part > ReportPart.HEAD:
            self._set(is_manual=None)  # Its first line has no time, and may be of a kill before.
        when = self._last if not record.has_time and self._last.has_time else record
        self._last = when if when is record else structs.replace(when, place=record.place)
        self.has_gap = False
        if not self._report.node:
            self._set(node=record.node)
        # A node that stalls in its report kills long after the first line.
        is_kill = kind == "killed" and record.has_time and len(self._victims) <= 1
        if not self._report.time or is_kill:
            self._set(time=record.time, year_is_guessed=record.year_is_guessed)
        if is_kill:
            self._set(uptime=record.uptime)
        return True

    def add_reaped(self, record: LogRecord, pid: int, comm: str, *, is_only: bool) -> bool:
        """Add a process that the reaper has freed, if it is one of the victims; else return False.

        With its name, it may be a process of the table whose own line the log lacks: the kernel limits them.
        `is_only`: no other report is open, so it may be the process that systemd says of its unit.
        """
        if not self._is_followed_by(record):
            return False
        if pid not in {victim.pid for victim in self._dead}:
            is_open = not self._dead and self._report.outcome is Outcome.KILLED
            is_of_unit = is_only and self.is_of_unit and self._is_close(record, _APART_SECONDS)
            is_listed = (pid, comm) in {(task.pid, task.name) for task in self._table.tasks}
            if not is_open or not comm or not (is_listed or is_of_unit):
                return False
            self._victims.append(Killed(pid, comm))
            self._part = ReportPart.KILLED
        self._reaped.append(pid)
        self.note_continuation()
        return True

    def add_unit(self, record: LogRecord, unit: str, ended: str | None, *, is_only: bool) -> bool:
        """Add systemd's line about its unit, if it is about this kill; else return False.

        `is_only`: no other report is open, so a report without a path may take the unit as its cgroup.
        """
        path = self._report.task_memcg or self._report.group_kill
        if not self._is_followed_by(record) or (path and unit not in path and CUT not in path):
            return False
        self._set(ended_unit=unit if ended else self._report.ended_unit)
        if not path and is_only and self._is_close(record, _APART_SECONDS):
            self._set(task_memcg=unit)
        return True

    def note_continuation(self) -> None:
        """Note that the log goes on after the victim, if the line before the victim is there too."""
        self._is_followed |= bool(self._victims) and self._has_summary and not self.has_gap

    def merge_open(self, reports: deque[ReportBuilder]) -> deque[ReportBuilder]:
        """Return the reports without those that turn out to be about this kill.

        Merges (a) parts of this report that come before lines which a person has left out of a log without
        times, (b) systemd's line about its unit, which a journal may have before the kernel's, and (c) the
        other victims of its group, which is known only once its first process is killed a second time.
        """
        is_end = self._kind in {"summary", "killed"} and not (self._last.has_time or self._report.invoker)
        before = list(filter(self._may_continue, reports)) if is_end else []
        begin = next((place for place, part in enumerate(before) if self._is_of_invoker(part)), len(before))
        for part in reversed(before[begin:]):
            self._absorb_earlier(part)
        others = (report for report in reports if report not in before[begin:])
        return deque(report for report in others if report is self or not self._absorb(report))

    def _may_continue(self, part: ReportBuilder) -> bool:
        """Return whether a part without times may belong to the report that this one ends."""
        is_before = self._last.part == part._last.part and self._report.line > part._report.line
        constraints = {self._report.constraint, part._report.constraint} - {None}
        return is_before and len(constraints) < 2 and not (part._last.has_time or part._dead)

    def _is_of_invoker(self, part: ReportBuilder) -> bool:
        """Return whether the process that a part begins with is among those of this one."""
        tasks = (pid for task in self._table.tasks for pid in (task.pid, task.tgid))
        invoker = part._report.invoker
        return invoker is not None and invoker.pid in {*tasks, *(killed.pid for killed in self._dead)}

    def _absorb_earlier(self, part: ReportBuilder) -> None:
        """Take over what an earlier part of this report says."""
        self._memory = part._memory if self._memory.is_empty else self._memory
        self._table = self._table if self._table.tasks else part._table
        names = ("invoker", "order", "kernel", "task_memcg", "oom_memcg", "constraint", "is_manual")
        fields = {name: getattr(self._report, name) or getattr(part._report, name) for name in names}
        is_certain = self._report.is_certain or part._report.is_certain
        self._set(**fields, is_certain=is_certain, line=part._report.line)

    def _absorb(self, other: ReportBuilder) -> bool:
        """Take over what a report has, if it is only about this unit or victims of this group."""
        if other.is_of_unit:
            is_same = other._is_followed_by(self._last)
            is_same = is_same and other._report.task_memcg in self._report.task_memcg
            if is_same:
                self._set(ended_unit=self._report.ended_unit or other._report.ended_unit)
            return is_same
        if self._report.group_kill != CUT:
            return False
        is_only_kill = other._part == ReportPart.KILLED and not (other._has_summary or other._table.tasks)
        is_only_kill &= other._report.constraint in {None, self._report.constraint}
        if not is_only_kill or not other._memory.is_empty:
            return False
        if self.is_near(other._last) and other._report.line > self._report.line:
            self._victims += other._victims
            return True
        # A log may begin among the processes of a group, some of which are exiting already.
        if self._kind == "skipped" and other.is_near(self._last) and other._report.line < self._report.line:
            self._victims[:0] = other._victims
            when = ("time", "uptime", "line", "year_is_guessed")
            self._set(**{name: getattr(other._report, name) for name in when})
            return True
        return False

    def move_last_victim_to(self, later: ReportBuilder) -> None:
        """Move the last victim, which looked like part of this group, to a later report about a group."""
        is_group = later._report.group_kill and not later._victims
        if is_group and self._report.group_kill and len(self._victims) > 1:
            later._victims.append(self._victims.pop())
            later._set(constraint=self._report.constraint)

    def _set(self, **fields: Any) -> None:
        self._report = replace(self._report, **fields)

    def _constrain(self, constraint: Constraint | None) -> bool:
        """Set what was short of memory; return False if it is something else already."""
        current = self._report.constraint
        if constraint is None:
            return True
        if current is None or self._is_by_stack:
            self._set(constraint=constraint)
            self._is_by_stack = False
            return True
        return (current is Constraint.MEMCG) == (constraint is Constraint.MEMCG)

    def _parse_invoked(self, comm: str, rest: str) -> bool:
        if self._part and self._kind != "manual":
            return False
        adj, order = SCORE_ADJ.search(rest), _ORDER.search(rest)
        is_manual = None
        if order is not None:
            is_manual = order[1] == "-1"
        if is_manual is False and comm.startswith(_SYSRQ_THREAD) and "(" not in rest:
            is_manual = None  # Before 4.4 the order of a call by hand is 0.
        invoker = Invoker(comm, None, int(adj[1]) if adj is not None else None)
        self._set(invoker=invoker, is_certain=True, is_manual=self._report.is_manual or is_manual)
        self._set(is_by_page_fault=_NO_MASK.search(rest) is not None, order=int(order[1]) if order else 0)
        return True

    def _parse_processor(self, pid: str, rest: str) -> bool:
        invoker, release = self._report.invoker, _RELEASE.search(rest)
        if not self._part or self._report.kernel or release is None:
            return False
        if invoker is not None:
            invoker = structs.replace(invoker, pid=int(pid))
        self._set(kernel=release[1], invoker=invoker)
        return True

    def _parse_manual(self) -> bool:
        self._set(is_manual=True)
        return True

    def _parse_trace(self, memcg: str | None, node: str | None, begins: str | None) -> bool:
        """Parse the allocating process's stack, which a slow console spreads over seconds.

        A charge to a cgroup comes before the allocation, but a person may have left it out.
        """
        self._set(is_certain=self._report.is_certain or begins is not None)
        if not (self._part or begins) or self.has_gap:
            return False
        if node and self._report.constraint is None and self._report.is_certain:
            self._set(constraint=Constraint.NONE)
            self._is_by_stack = True
        return self._constrain(Constraint.MEMCG if memcg else None)

    def _parse_domain(self, task: str, domain: str) -> bool:
        """Parse the domain, which has its own line up to 4.20; some vendors print `host` for the node."""
        is_cgroup = domain.startswith(("/", CUT))
        if self._report.task_memcg or not self._constrain(Constraint.MEMCG if is_cgroup else Constraint.NONE):
            return False
        task, domain = (
            cgroup_path(task),
            cgroup_path(domain, is_whole=domain != "/" and is_within(task, domain)),
        )
        self._set(task_memcg=task, oom_memcg=domain if is_cgroup else "")
        return True

    def _parse_counter(self, what: str, usage: str, limit: str) -> bool:
        """Parse a counter of the cgroup; a vendor shows the process's cgroup on a full node too."""
        if self._report.constraint is Constraint.NONE and not self._is_by_stack:
            return True
        return self._constrain(Constraint.MEMCG) and self._memory.add_counter(what, usage, limit)

    def _parse_statistics(self, path: str, inline: str | None, previous: str) -> bool:
        is_taken = self._constrain(Constraint.MEMCG)
        return is_taken and self._memory.add_statistics(path[:LONGEST_PATH], inline or "", previous)

    def _parse_statistic(self, name: str, size: str) -> bool:
        return self._memory.add_statistic(name, size)

    def _parse_zone(self, **zone: str) -> bool:
        self._memory.add_zone(**zone)
        return self._part > 0

    def _parse_machine(self, begins: str | None, **sizes: str | None) -> bool:
        """Parse sizes of the machine; alone they may be about a failed allocation."""
        self._memory.add_machine(**sizes)
        return self._part > 0 or begins is not None

    def _parse_huge(self, total: str, kib: str) -> bool:
        self._memory.add_huge_pages(int(total), int(kib))
        return self._part > 0

    def _parse_title(self) -> bool:
        self._set(is_certain=True)
        return self._table.begin()

    def _parse_header(self, columns: str) -> bool:
        if not self._table.add_header(columns, is_first=ReportPart.HEAD < self._part < ReportPart.TABLE):
            return False
        self._set(is_certain=True, older_than=(4, 16) if self._table.has_pages else self._report.older_than)
        return True

    def _parse_row(self, pid: str, rest: str) -> bool:
        return self._table.add_row(int(pid), rest)

    def _parse_broken_row(self) -> bool:
        self._table.is_whole = False
        return self._part > 0

    @property
    def _is_table_sifted(self) -> bool:
        """Whether the table may come from a grep: all its other rows match words that people search for."""
        own = {killed.comm for killed in (*self._dead, self._report.invoker) if killed is not None}
        others = {task.name for task in self._table.tasks} - own
        return not self._has_context and all(_SEARCHED.search(name) for name in others)

    def _is_listed(self, pid: int, name: str) -> bool:
        """Return whether a process is in the table, as every victim is in a complete one.

        Before 5.3 it may be a thread.
        """
        tasks = self._table.tasks
        if not self._table.is_whole or not tasks or pid == self._report.chosen or self._is_table_sifted:
            return True
        may_be_thread = self._report.older_than is not None and self._last.has_time
        return may_be_thread or any(pid in {task.pid, task.tgid} or task.name == name for task in tasks)

    def _parse_summary(self, constraint: str, rest: str) -> bool:
        """Parse the oom-kill line; if a person moved it behind the victim, it has to name the victim."""
        named, domain = _CHOSEN.search(rest), self._memory.domain
        chosen = Killed(int(named["pid"] or 0), named["comm"]) if named is not None else Killed(0, "")
        paths = {name: path for name, form in _FIELD.items() if (path := form.search(rest)) is not None}
        fields = {name: cgroup_path(path[1], is_whole=bool(path[2])) for name, path in paths.items()}
        if self._part == ReportPart.KILLED:
            victim = self._victims[0] if self._victims and self._report.chosen is None else None
            is_same = victim is not None and chosen.comm == victim.comm and chosen.pid in {0, victim.pid}
        else:
            is_same = not chosen.pid or self._is_listed(chosen.pid, "")
        above = fields.get("oom_memcg", "")
        is_same = is_same and (CUT in domain + above or not domain or above in {"", domain})
        is_new = is_same and not self._has_summary and self._report.outcome is Outcome.KILLED
        # 5.0 to 5.2 name CONSTRAINT_NONE at a limit too.
        what = "CONSTRAINT_MEMCG" if above else constraint
        if not is_new or not self._constrain({member.value: member for member in Constraint}.get(what)):
            return False
        form = _NODES.get(self._report.constraint)
        nodes = form.search(rest) if form is not None else None
        self._set(**fields, chosen=chosen.pid or self._report.chosen, memory_nodes=nodes[1] if nodes else "")
        self._task = chosen.comm
        if chosen.pid:
            self._chosen = self._chosen or chosen
        self._has_summary = True
        return True

    def _parse_killed(self, why: str | None, done: str | None, pid: str, rest: str) -> bool:
        """Parse the victim; up to 5.0 the chosen process is logged first, and its child may be killed."""
        if "sharing same memory" in rest:
            return self._part > 0
        killed = killed_process(int(pid), rest)
        if killed.comm == CUT:
            killed = structs.replace(killed, comm=self._task or CUT)
        is_first_kill, chosen = self.is_inside, self._chosen
        is_not_chosen = self._has_summary and self._report.chosen not in {None, killed.pid}
        if (is_first_kill and is_not_chosen) or not self._is_listed(killed.pid, killed.comm):
            return False
        constraint = constraint_of(why) or self._report.constraint
        is_alike = (constraint is Constraint.MEMCG) == (self._report.constraint is Constraint.MEMCG)
        if done and is_alike and killed.pid in {victim.pid for victim in self._victims}:
            # In a group kill the first victim is logged twice; the line with the path may be missing.
            self._set(group_kill=self._report.group_kill or CUT)
        elif not is_alike and len(self._victims) == 1:
            # The first of a group is killed twice: the line about the group was not about this one.
            self._set(group_kill="")
        is_further = bool(self._victims) and not self._report.group_kill if done else not is_first_kill
        if is_further or not self._constrain(constraint_of(why)):
            return False
        if done:
            if chosen is not None and chosen.pid == killed.pid:
                comm = chosen.comm if killed.comm.endswith(CUT) else killed.comm
                killed = structs.replace(killed, comm=comm, score=chosen.score)
            self._victims.append(killed)
        else:
            self._chosen = killed
            self._set(chosen=killed.pid, older_than=self._report.older_than or (5, 1))
        is_allocating = self._report.took_the_allocating or "oom_kill_allocating_task" in (why or "")
        self._set(took_the_allocating=is_allocating)
        return True

    def _parse_unnumbered(self, why: str | None, comm: str | None) -> bool:
        """Parse a victim whose process ID a person has left out, or the sizes of one that is known."""
        names = {*self._report.names, *(killed.comm for killed in self._dead)}
        if not why:
            return bool(names) and comm in {None, *names}
        if not comm or self._report.names or names - {comm} or not self._constrain(constraint_of(why)):
            return False
        self._set(names=() if self._dead else (comm,))
        return True

    def _parse_skipped(self, why: str | None, pid: str) -> bool:
        """Parse a process that exits already: the chosen one, or after a victim, another of its group."""
        is_same = bool(self._victims) or self._report.chosen == int(pid)
        if not is_same or not self._constrain(constraint_of(why)):
            return False
        if self._victims:
            self._set(group_kill=self._report.group_kill or CUT)
        return True

    def _parse_group(self, group: str, rest: str) -> bool:
        is_whole = rest.startswith((" are going", " going"))
        group = cgroup_path(group.removesuffix("are"), is_whole=is_whole)
        task = self._report.task_memcg
        is_above = not task or CUT in task + group or is_within(task, group)
        if self._report.group_kill or not is_above:
            return False
        self._set(group_kill=group)
        return True

    def _parse_reaped(self, pid: str, comm: str) -> bool:
        if self._part:
            return False
        self._victims.append(Killed(int(pid), comm))
        self._reaped.append(int(pid))
        return True

    def _parse_unit(self, unit: str, ended: str | None) -> bool:
        if self._part:
            return False
        self._set(task_memcg=unit, ended_unit=unit if ended else "", is_certain=not ended)
        return True

    def _parse_nobody(self) -> bool:
        if self._dead or not (self._part or self._constrain(Constraint.NONE)):
            return False
        self._set(outcome=Outcome.NOBODY)
        return True

    def _parse_panic(self, rest: str) -> bool:
        if self._dead:
            return False
        self._set(outcome=Outcome.PANIC, why=rest)
        return True

    @property
    def _dead(self) -> list[Killed]:
        return self._victims or ([self._chosen] if self._chosen is not None else [])

    def report(self, *, is_filtered: bool) -> OomReport:
        """Return the report of the lines so far; `is_filtered`: a filter may have left lines out."""
        if self._kind == "statistics":
            self._memory.end_statistics()
        victims, invoker, memory = self._dead, self._report.invoker, self._memory.state()
        has_no_victim = self._report.outcome is not Outcome.KILLED
        said = (invoker, self._report.task_memcg, self._report.group_kill, self._report.names)
        if not (has_no_victim or victims or self._has_summary or any(said)):
            self._set(outcome=Outcome.UNKNOWN)
        has_end = has_no_victim or (bool(victims) and victims[0].anon_rss_kb is not None)
        domain, stated = self._memory.domain, self._report.oom_memcg
        is_whole = self._table.is_whole and bool(self._table.tasks) and self._part >= ReportPart.SUMMARY
        # Neither kernels before 5.1 nor cgroup v1 have groups.
        is_single = (
            (self._is_followed and not is_filtered)
            or (self._report.older_than or (9, 9)) <= (5, 1)
            or memory.is_v1
        )
        is_manual = self._report.is_manual
        if self._report.constraint not in {None, Constraint.NONE} or memory.is_short:
            is_manual = is_manual or False
            self._set(is_by_page_fault=False)
        return replace(
            self._report,
            oom_memcg=domain if domain and (not stated or stated.endswith(CUT)) else stated,
            tasks=tuple(self._table.tasks),
            is_table_whole=is_whole and not self._is_table_sifted,
            memory=memory,
            victims=() if has_no_victim else tuple(victims),
            reaped=tuple(self._reaped),
            is_alone=is_single and bool(victims) and not self._report.group_kill,
            is_manual=is_manual,
            incomplete=not has_end or invoker is None or invoker.pid is None,
        )
