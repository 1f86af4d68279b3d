"""The lines of an OOM report, and the report that is built from them, wherever a log begins and ends.

The wording of some differs by kernel; all forms since 3.10 are parsed. Source: Linux
mm/oom_kill.c and mm/memcontrol.c at v3.10, v4.4, v4.19, v5.0, v5.4, v6.1, v6.8 and v6.18.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Any, Final

from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.kills.report import (
    Constraint,
    Invoker,
    Killed,
    MemoryState,
    OomReport,
    OomTask,
    seconds_between,
)
from kubectl_qos.qos.logs.record import LogRecord

MOST_TASKS: Final = 65_536
"""Rows of a table; the kernel's default limit of process ids is 32,768."""
_LONGEST_PATH: Final = 4_096
_APART_SECONDS: Final = 1.0
"""From one line of a report to the next: a serial console is slow, and times of day are rounded."""
_GAP_SECONDS: Final = 0.1
"""Where a person left lines out, another report may have begun."""
_REAPED_SECONDS: Final = 60.0
_BACK_SECONDS: Final = -0.5

_SCORE_ADJ: Final = re.compile(r"oom_score_adj[=:](-?\d{1,4})(?![\d…])", re.ASCII)
_RELEASE: Final = re.compile(r"ainted[: ].{0,200}?(\d+\.\d+[^\s#]{0,100}) #", re.ASCII)
_PATH: Final = rf"=([^,\s]{{1,{_LONGEST_PATH}}})(,?)"
_FIELD: Final = {name: re.compile(rf"(?:^|[,\s]){name}{_PATH}") for name in ("oom_memcg", "task_memcg")}
_CHOSEN: Final = re.compile(
    r"(?:^|[,\s])task=(?P<comm>.{0,64}?)(?:,pid=(?:(?P<pid>\d{1,10}),|\d*…?$)|$)", re.ASCII
)
_INLINE_STATISTIC: Final = re.compile(r"\b(cache|rss|shmem|swap):(\d{1,18})KB", re.ASCII)
_STATISTICS: Final = (
    dict.fromkeys(("anon", "rss"), "anon_kb")
    | dict.fromkeys(("file", "cache"), "file_kb")
    | {"shmem": "shmem_kb", "kernel": "kernel_kb"}
    | dict.fromkeys(
        ("kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "slab"), "parts_of_kernel_kb"
    )
)
"""Statistics of cgroup v2, and of v1; before 5.18 there is no sum of the kernel's."""
_COLUMNS: Final = {"oom_score_adj": "adj", "rss_shmem": "shmem"} | {
    name: name for name in ("uid", "tgid", "total_vm", "rss", "pgtables_bytes", "swapents")
}
_PAGES_OF_TABLES: Final = ("nr_ptes", "nr_pmds", "nr_puds")
_TABLES: Final = {7 + count: " ".join(_PAGES_OF_TABLES[: count + 1]) for count in range(3)} | {
    10: "rss_anon rss_file rss_shmem pgtables_bytes"
}
"""The columns between rss and swapents by how many numbers a row has, where the log lacks its header."""
_KNOWN_COLUMNS: Final = {*_COLUMNS, *_PAGES_OF_TABLES, "rss_anon", "rss_file"}
_REST_OF_ROW: Final = re.compile(r"-?\d|[^\s=]+$", re.ASCII)
"""What a terminal broke off."""
_LEAST_TABLE_BYTES: Final = 4_096
_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_AFTER_COMM: Final = re.compile(r"\),? *(?=(?:total-vm|anon-rss):|UID ?\d|score )")
_SIZES: Final = ("total-vm", "anon-rss", "file-rss", "shmem-rss")
_NUMBERS: Final = {
    f"{name.replace('-', '_')}_kb": re.compile(rf"{name}:(\d{{1,18}})kB", re.ASCII) for name in _SIZES
} | {
    "uid": re.compile(r"\bUID[: ]?(\d{1,10})(?![\d…])", re.ASCII),
    "adj": _SCORE_ADJ,
    "score": re.compile(r"\bscore (\d{1,10}) or sacrifice", re.ASCII),
}
_MEMCG_WORDS: Final = "Memory cgroup out of memory"
REAPED: Final = re.compile(
    r"oom_reaper: reaped process (?P<pid>\d{1,10}) \((?P<comm>.{0,64}?)\)(?:,|$)", re.ASCII
)

_HEAD, _MEMORY, _TABLE, _SUMMARY, KILLED, _ANY = range(1, 7)
"""The parts of a report, in the order in which a kernel prints them."""
_FORMS: Final = tuple(
    (re.compile(form, re.ASCII), stage, f"_take_{name}")
    for name, (stage, form) in {
        "invoked": (_HEAD, r"(?P<comm>.{0,15}?) invoked oom-killer: (?P<rest>.*)"),
        "processor": (_HEAD, r"CPU: \d+ (?:UID: \d+ )?PID: (?P<pid>\d{1,10}) Comm: (?P<rest>.{0,400})"),
        "manual": (_HEAD, r"(?:Workqueue: events )?moom_callback"),
        "trace": (_HEAD, r"Hardware name:|Call Trace:|</?TASK>|(?:\? )?[\w.]{1,100}\+0x[\da-f]+/0x"),
        "domain": (_MEMORY, r"Task in ?(?P<task>\S+) ?killed as a result of limit of ?(?P<domain>\S+)"),
        "counters": (
            _MEMORY,
            r"(?P<what>memory|swap|memory\+swap|kmem): usage (?P<usage>\d+)kB, limit (?P<limit>\d{1,18})kB",
        ),
        "statistics": (_MEMORY, r"Memory cgroup stats for ?(?P<domain>\S+):(?:\s(?P<inline>.*)|$)"),
        "statistic": (_MEMORY, r"(?P<name>[a-z_]{3,15}) (?P<size>\d{1,18})$"),
        "machine": (
            _MEMORY,
            (
                r"Mem-Info:(?P<begins>)|(?P<ram_pages>\d{1,18}) pages RAM$|(?P<reserved_pages>\d+) pages res"
                r"|Total swap +=? ?(?P<total_swap_kb>\d{1,18})kB|Node \d+ \w+: \d+\*(?P<page_kb>\d{1,3})kB "
                r"|mapped:\d+ shmem:(?P<shmem_pages>\d{1,18}) "
            ),
        ),
        "title": (_TABLE, r"Tasks state"),
        "header": (_TABLE, r"\[ *pid *\] +(?P<columns>uid +tgid +[a-z_ ]+ name)$"),
        "row": (_TABLE, r"\[ *(?P<pid>\d{1,10})\] +(?P<rest>\d.*)"),
        "broken_row": (_TABLE, r"\[ *\d{0,10}\]? *(?:…|$)"),
        "summary": (_ANY, r"oom-kill: ?constraint=(?P<constraint>[A-Z_]*)(?P<rest>.*)"),
        "killed": (
            KILLED,
            (
                r"(?:(?P<why>Memory cgroup out of memory|Out of memory[^:]{0,40}): ?)?"
                r"Kill(?P<done>ed)? ?process ?(?P<pid>\d{1,10})(?:, UID \d+,)? ?\((?P<rest>.*)"
            ),
        ),
        "group": (KILLED, r"Tasks in ?(?P<group>\S*)(?P<rest>.*)"),
        "reaped": (KILLED, REAPED.pattern),
        "no_killable": (KILLED, r"Out of memory and no killable processes"),
    }.items()
)


def _path(text: str, *, is_whole: bool = True) -> str:
    """A path, with the sign of a cut at its end where it does not end there."""
    shown = text.rstrip(f"{CUT}.")
    return text if is_whole and shown == text else f"{shown}{CUT}"


class ReportBuilder:
    """A report that is built line by line.

    `has_gap` is whether lines were left out since its last one.
    """

    def __init__(self, record: LogRecord) -> None:
        self.key = record.node, record.caller
        self.has_gap = self._is_followed = False
        self._last = record
        self._line = record.line
        self._stage = 0
        when = {"time": record.time, "uptime": record.uptime, "year_is_guessed": record.year_is_guessed}
        self._report = OomReport(node=record.node, line=record.line, **when)  # type: ignore[arg-type]
        self._victims: list[Killed] = []
        self._chosen: Killed | None = None
        self._has_summary = self._is_whole = self._is_over = False
        self._reaped: list[int] = []
        self._columns: list[str] = []
        self._tasks: list[OomTask] = []
        self._memory: dict[str, int] = {}
        self._stats_memcg = ""

    @classmethod
    def begin(cls, record: LogRecord) -> ReportBuilder | None:
        """The report that a line begins, None if it begins none."""
        report = cls(record)
        return report if report.take(record) else None

    @property
    def is_inside(self) -> bool:
        """Whether the lines before the first victim are still coming."""
        return self._stage < KILLED and not self._is_over

    def is_near(self, record: LogRecord, seconds: float = 0) -> bool:
        """Whether a line may be of this report by its time; without times, whether no line was left out."""
        last = self._last
        if record.uptime is not None and last.uptime is not None:
            apart: float | None = record.uptime - last.uptime
        else:
            apart = seconds_between(last.time, record.time)
        if apart is None:
            had_time, has_time = (bool(line.time) or line.uptime is not None for line in (last, record))
            # A line that has lost its beginning and time may be of any other report.
            is_apart = has_time and (had_time or record.line > self._line + 1)
            return not (self.has_gap or is_apart)
        return _BACK_SECONDS <= apart <= (seconds or (_GAP_SECONDS if self.has_gap else _APART_SECONDS))

    def take(self, record: LogRecord) -> bool:
        """Add a line; False if it is not part of this report."""
        for form, stage, name in _FORMS:
            match = form.match(record.message.strip())
            if match is not None:
                self._is_whole &= not (self.has_gap and self._stage == _TABLE)
                if stage < self._stage or not getattr(self, name)(**match.groupdict()):
                    return False
                self._stage = stage if stage < _ANY else self._stage
                self._line = record.line
                has_time = bool(record.time) or record.uptime is not None
                self._last, self.has_gap = record if has_time else self._last, False
                return True
        is_of_row = record.is_continued and _REST_OF_ROW.match(record.message) is not None
        self._is_whole &= not (is_of_row and self._stage == _TABLE)
        return False

    def add_reaped(self, record: LogRecord, pid: int) -> bool:
        """Add a process that the reaper has freed, if it is one of the victims."""
        if not self.is_near(record, _REAPED_SECONDS) or pid not in {victim.pid for victim in self._dead}:
            return False
        self._reaped.append(pid)
        self.follow()
        return True

    def follow(self) -> None:
        """Know that the log goes on after its victim, of which it has the beginning."""
        self._is_followed |= bool(self._victims) and self._has_summary and not self.has_gap

    def without_its_group(self, reports: deque[ReportBuilder]) -> deque[ReportBuilder]:
        """Take the victims of later reports: until the first of a group is killed again, all are of it."""
        if self._report.group_kill != CUT:
            return reports
        return deque(report for report in reports if not self._absorb(report))

    def _absorb(self, later: ReportBuilder) -> bool:
        is_bare = later._stage == KILLED and not (later._has_summary or later._tasks or later._memory)
        is_after = later._report.line > self._report.line and later.key == self.key
        is_absorbed = is_bare and is_after and self.is_near(later._last)
        self._victims += later._victims if is_absorbed else []
        return is_absorbed

    def hand_over_victim(self, later: ReportBuilder) -> None:
        """Give a later report about a group the victim before it, which looked like one of the group here."""
        is_group = later._report.group_kill and not later._victims
        if is_group and self._report.group_kill and len(self._victims) > 1:
            later._victims.append(self._victims.pop())
            later._set(constraint=self._report.constraint)

    def _set(self, **fields: Any) -> None:
        self._report = replace(self._report, **fields)

    def _constrain(self, constraint: Constraint | None) -> bool:
        """Set what was short of memory; False if it is something else."""
        current = self._report.constraint
        if current is None or constraint is None:
            self._set(constraint=current or constraint)
            return True
        return (current is Constraint.MEMCG) == (constraint is Constraint.MEMCG)

    def _take_invoked(self, comm: str, rest: str) -> bool:
        adj = _SCORE_ADJ.search(rest)
        invoker = Invoker(comm, None, int(adj[1]) if adj is not None else None)
        is_first = not self._stage
        if is_first:
            self._set(invoker=invoker, is_manual="order=-1," in rest)
        return is_first

    def _take_processor(self, pid: str, rest: str) -> bool:
        invoker, release = self._report.invoker, _RELEASE.search(rest)
        if not self._stage or self._report.kernel or release is None:
            return False
        if invoker is not None:
            invoker = replace(invoker, pid=int(pid))
        self._set(kernel=release[1], invoker=invoker)
        return True

    def _take_manual(self) -> bool:
        self._set(is_manual=True)
        return self._stage > 0

    def _take_trace(self) -> bool:
        """It says nothing, and how the time went on, which a slow console spreads over seconds."""
        return self._stage > 0 and not self.has_gap

    def _take_domain(self, task: str, domain: str) -> bool:
        """Up to 4.20 the domain has its own line; some vendors print it for the node too, as `host`."""
        is_cgroup = domain.startswith("/")
        if self._report.task_memcg or not self._constrain(Constraint.MEMCG if is_cgroup else Constraint.NONE):
            return False
        self._set(task_memcg=_path(task[:_LONGEST_PATH]))
        self._set(oom_memcg=_path(domain[:_LONGEST_PATH]) if is_cgroup else "")
        return True

    def _take_counters(self, what: str, usage: str, limit: str) -> bool:
        """Counters of the cgroup; a vendor shows those of the process on a full node too."""
        prefix = {"memory": "", "memory+swap": "memsw_"}.get(what, f"{what}_")
        if self._report.constraint is Constraint.NONE:
            return True
        if f"{prefix}usage_kb" in self._memory or not self._constrain(Constraint.MEMCG):
            return False
        self._memory |= {f"{prefix}usage_kb": int(usage), f"{prefix}limit_kb": int(limit)}
        return True

    def _take_statistics(self, domain: str, inline: str | None) -> bool:
        """On v1 those of all cgroups below follow: only the first is the one that ran out."""
        if not self._constrain(Constraint.MEMCG):
            return False
        is_first = not inline or ("usage_kb" in self._memory and not self.has_gap)
        self._stats_memcg = self._stats_memcg or (domain[:_LONGEST_PATH] if is_first else CUT)
        for name, size in _INLINE_STATISTIC.findall(inline or ""):
            self._count(name, int(size))
        return True

    def _take_statistic(self, name: str, size: str) -> bool:
        self._count(name, int(size) >> 10)
        return bool(self._stats_memcg)

    def _count(self, name: str, kib: int) -> None:
        key = _STATISTICS.get(name)
        if key is not None:
            self._memory[key] = self._memory.get(key, 0) + kib

    def _take_machine(self, begins: str | None, **sizes: str | None) -> bool:
        """Sizes of the machine; alone they are of a failed allocation too."""
        self._memory = {name: int(size) for name, size in sizes.items() if size} | self._memory
        return self._stage > 0 or begins is not None

    def _take_title(self) -> bool:
        self._is_whole = not self._columns
        return self._is_whole

    def _take_header(self, columns: str) -> bool:
        self._is_whole |= self._stage == _MEMORY
        if self._columns or self._tasks:
            return False
        names = columns.split()[:-1]
        self._columns = names if _KNOWN_COLUMNS.issuperset(names) else []
        if _PAGES_OF_TABLES[0] in self._columns:
            self._set(older_than=(4, 16))
        return True

    def _take_row(self, pid: str, rest: str) -> bool:
        """A process, whose columns follow from how many they are where the header is missing."""
        words = rest.split()
        count = next((n for n, word in enumerate(words) if not _INTEGER.fullmatch(word)), len(words))
        inferred = f"uid tgid total_vm rss {_TABLES.get(count, '')} swapents oom_score_adj".split()
        columns = self._columns or inferred
        # A process may have an empty name; without a header the name shows where the numbers end.
        has_name = count < len(words) and CUT not in words[count]
        is_odd = count not in _TABLES or words[1] != pid or not has_name
        if count < len(columns) or (not self._columns and is_odd):
            return self._take_broken_row()
        if len(self._tasks) < MOST_TASKS:
            self._tasks.append(_parse_task(int(pid), columns, rest.split(None, len(columns))))
        return True

    def _take_broken_row(self) -> bool:
        self._is_whole = False
        return self._stage > 0

    def _is_listed(self, pid: int, name: str) -> bool:
        """Whether a process is in the table, as it must be in a whole one; before 5.3 it may be a thread."""
        has_times = self._last.uptime is not None or bool(self._last.time)
        may_be_thread = self._report.older_than is not None and has_times
        is_shown = not self._is_whole or not self._tasks or may_be_thread or pid == self._report.chosen
        return is_shown or any(pid in {task.pid, task.tgid} or task.name == name for task in self._tasks)

    def _take_summary(self, constraint: str, rest: str) -> bool:
        """The oom-kill line; one that a person has put behind the victim has to name it."""
        named, stats = _CHOSEN.search(rest), self._stats_memcg
        chosen = Killed(int(named["pid"] or 0), named["comm"]) if named is not None else Killed(0, "")
        paths = {name: path for name, form in _FIELD.items() if (path := form.search(rest)) is not None}
        fields = {name: _path(path[1], is_whole=bool(path[2])) for name, path in paths.items()}
        domain = fields.get("oom_memcg", "")
        if self._stage == KILLED:
            is_same = bool(self._victims) and self._report.chosen is None
            is_same = (
                is_same and chosen.comm == self._victims[0].comm and chosen.pid in {0, self._victims[0].pid}
            )
        else:
            is_same = not chosen.pid or self._is_listed(chosen.pid, "")
        is_same = is_same and (CUT in stats + domain or not stats or domain in {"", stats})
        is_new = is_same and not (self._has_summary or self._is_over)
        if not is_new or not self._constrain({member.value: member for member in Constraint}.get(constraint)):
            return False
        self._set(**fields, chosen=chosen.pid or self._report.chosen)
        if chosen.pid:
            self._chosen = self._chosen or chosen
        self._has_summary = True
        self._stage = max(self._stage, _SUMMARY)
        return True

    def _take_killed(self, why: str | None, done: str | None, pid: str, rest: str) -> bool:
        """The victim; up to 5.0 the chosen process is logged first, and its child may be killed."""
        if "sharing same memory" in rest:
            return self._stage > 0
        killed = _parse_killed(int(pid), rest)
        by_words = Constraint.MEMCG if why == _MEMCG_WORDS else Constraint.NONE if why else None
        is_first, chosen = self._stage < KILLED, self._chosen
        is_other = self._has_summary and self._report.chosen not in {None, killed.pid}
        if is_first and (is_other or not self._is_listed(killed.pid, killed.comm)):
            return False
        if done and killed.pid in {victim.pid for victim in self._victims}:
            # Of a group the first is killed again; the line with its path may be missing.
            self._set(group_kill=self._report.group_kill or CUT)
        is_one_more = bool(self._victims) and not self._report.group_kill if done else not is_first
        if is_one_more or not self._constrain(by_words):
            return False
        if done:
            if chosen is not None and chosen.pid == killed.pid:
                comm = chosen.comm if killed.comm.endswith(CUT) else killed.comm
                killed = replace(killed, comm=comm, score=chosen.score)
            self._victims.append(killed)
        else:
            self._chosen = killed
            self._set(chosen=killed.pid, older_than=self._report.older_than or (5, 1))
        is_allocating = self._report.took_the_allocating or "oom_kill_allocating_task" in (why or "")
        self._set(took_the_allocating=is_allocating)
        return True

    def _take_group(self, group: str, rest: str) -> bool:
        is_whole = rest.startswith((" are going", " going"))
        group = _path(group[:_LONGEST_PATH].removesuffix("are"), is_whole=is_whole)
        task = self._report.task_memcg
        is_above = not task or CUT in task + group or f"{task}/".startswith(f"{group}/")
        if self._report.group_kill or not is_above:
            return False
        self._set(group_kill=group)
        return True

    def _take_reaped(self, pid: str, comm: str) -> bool:
        self._victims.append(Killed(int(pid), comm))
        self._reaped.append(int(pid))
        return not self._stage

    def _take_no_killable(self) -> bool:
        self._is_over = True
        return True

    @property
    def _dead(self) -> list[Killed]:
        return self._victims or ([self._chosen] if self._chosen is not None else [])

    def report(self, *, is_filtered: bool) -> OomReport:
        """The report of the lines so far, of a log of which a filter may have left lines out."""
        victims, invoker, memory = self._dead, self._report.invoker, MemoryState(**self._memory)
        has_end = self._is_over or (bool(victims) and victims[0].anon_rss_kb is not None)
        stats, domain = "" if self._stats_memcg == CUT else self._stats_memcg, self._report.oom_memcg
        # Neither kernels before 5.1 nor cgroup v1 have groups.
        is_single = (
            (self._is_followed and not is_filtered)
            or (self._report.older_than or (9, 9)) <= (5, 1)
            or memory.is_v1
        )
        return replace(
            self._report,
            oom_memcg=stats if stats and (not domain or domain.endswith(CUT)) else domain,
            tasks=tuple(self._tasks),
            is_table_whole=self._is_whole and bool(self._tasks) and self._stage >= _SUMMARY,
            memory=memory,
            victims=tuple(victims),
            reaped=tuple(self._reaped),
            is_alone=is_single and bool(victims) and not self._report.group_kill,
            incomplete=not has_end or invoker is None or invoker.pid is None,
        )


def _parse_task(pid: int, columns: list[str], cells: list[str]) -> OomTask:
    fields: dict[str, int] = {}
    tables = None
    for column, cell in zip(columns, cells, strict=False):
        is_in_bytes = column == "nr_ptes" and int(cell) >= _LEAST_TABLE_BYTES
        if column in _PAGES_OF_TABLES and not is_in_bytes:
            tables = (tables or 0) + int(cell)
        elif column in _COLUMNS or is_in_bytes:
            fields[_COLUMNS.get(column, "pgtables_bytes")] = int(cell)
    name = cells[len(columns)] if len(cells) > len(columns) else ""
    return OomTask(pid=pid, name=name, pgtables_pages=tables, **fields)


def _parse_killed(pid: int, rest: str) -> Killed:
    """What follows ` (`: the name, which may have any characters, then the numbers."""
    # The name may look like its end too: the last one counts.
    end = next(reversed(list(_AFTER_COMM.finditer(rest))), None)
    comm = rest[: end.start()] if end is not None else rest.rpartition(")")[0] or f"{rest}{CUT}"
    numbers = rest[end.end() :] if end is not None else ""
    matches = {name: form.search(numbers) for name, form in _NUMBERS.items()}
    sizes = {name: int(match[1]) for name, match in matches.items() if match is not None}
    return Killed(pid, comm[:64], **sizes)
