"""Parse lines of a kernel's OOM report: their kinds, and what those about memory say.

Wording differs between kernels; all forms since 3.10 are parsed. What the lines of one report say together is
in oom_lines.py. Lines about memory are statistics of cgroups, sizes of the machine, the task table. Before
5.2, kernels also print a line of statistics for each cgroup below: only the line after the counters is about
the cgroup that ran out, and its usage is the sum of all.

Sources: Linux mm/oom_kill.c (dump_tasks), mm/memcontrol.c (mem_cgroup_print_oom_info, memory_stat_format) and
mm/show_mem.c at v3.10, v4.4, v4.19, v5.0, v5.4, v6.1, v6.8 and v6.18; systemd's src/core/unit.c (since 247).
"""

import os.path
import re
from enum import IntEnum
from functools import lru_cache
from itertools import product
from typing import Any, Final

from kubectl_qos.k8s.quantity import MAX_INT64
from kubectl_qos.qos.cgroup.names import CUT, pod_cgroup
from kubectl_qos.qos.kills.report import PAGE_SIZES, Constraint, Killed, MemoryState, OomTask
from kubectl_qos.qos.logs.record import BREAK

LONGEST_PATH: Final = 4_096
SCORE_ADJ: Final = re.compile(r"oom_score_adj[=:](-?\d{1,4})(?![\d…])", re.ASCII)
PATH: Final = rf"=([^,\s]{{1,{LONGEST_PATH}}})(,?)"
_LEFT_OUT: Final = re.compile(r"/(?:\.{2,}|…)(?=/|$)")
_AFTER_COMM: Final = re.compile(r"(?:\),? *|^)(?=(?:total-vm|anon-rss):|UID ?\d|score )")
_NUMBERS: Final = {
    f"{name.replace('-', '_')}_kb": re.compile(rf"{name}:(\d{{1,18}})kB", re.ASCII)
    for name in ("total-vm", "anon-rss", "file-rss", "shmem-rss")
} | {
    "uid": re.compile(r"\bUID[: ]?(\d{1,10})(?![\d…])", re.ASCII),
    "adj": SCORE_ADJ,
    "score": re.compile(r"\bscore (\d{1,10}) or (?:sacrifice|a child)", re.ASCII),
}
_MEMCG_WORDS: Final = "Memory cgroup out of memory"


class ReportPart(IntEnum):
    """The parts of a report, in the order of the kernel; a summary may be anywhere."""

    HEAD = 1
    DOMAIN = 2
    COUNTERS = 3
    STATISTICS = 4
    TABLE = 5
    SUMMARY = 6
    KILLED = 7


_GRAMMAR: Final = r"""
HEAD invoked (?P<comm>.{0,15}?) invoked oom-killer: (?P<rest>.*)
HEAD processor CPU: \d+ (?:UID: \d+ )?PID: (?P<pid>\d{1,10}) Comm: (?P<rest>.{0,400})
HEAD manual (?:Workqueue: events )?moom_callback|(?:sysrq: )?(?:SysRq ?: )?Manual OOM execution
HEAD trace Hardware name:|Call [Tt]race:|</?TASK>|(?:.{1,99} from )?(?:\[<[\da-f]{1,16}>\] )?\(?(?:\? )?
    (?:(?P<memcg>(?<!\? )(?:mem_cgroup_o|(?:__mem_cgroup_)?try_charge))
    |(?P<node>(?<!\? )__alloc_(?:frozen_)?pages)|(?P<begins>dump_header|oom_kill_process|out_of_memory)|)
    [\w.]{0,100}\+0x[\da-f]+/0x
DOMAIN domain Task in ?(?P<task>\S+) ?killed as a result of limit of ?(?P<domain>\S+)
COUNTERS counter (?P<what>memory|swap|memory\+swap|kmem): usage (?P<usage>\d{1,18})kB,
     limit (?P<limit>\d{1,18})kB
COUNTERS zone (?P<zone>Node \d+ \w+) free:(?P<free>\d{1,18})kB .{0,99}?\bhigh:(?P<high>\d{1,18})kB
    \b.{0,400}?\bpresent:(?P<present>\d{1,18})kB
COUNTERS machine Mem-Info:(?P<begins>)|(?P<ram_pages>\d{1,18}) pages RAM$
    |(?P<reserved_pages>\d{1,18}) pages res
    |Total swap +=? ?(?P<total_swap_kb>\d{1,18})kB|Free swap +=? ?(?P<free_swap_kb>\d{1,18})kB
    |Node \d+ \w+: \d+\*(?P<page_kb>\d{1,3})kB\b
    |mapped:\d+ shmem:(?P<shmem_pages>\d{1,18})\b
COUNTERS huge Node \d+ hugepages_total=(?P<total>\d{1,12}) .{0,60}size=(?P<kib>\d{1,9})kB
STATISTICS statistics Memory cgroup stats for ?(?P<path>/\S*):(?:\s(?P<inline>.*)|$)
STATISTICS statistic (?P<name>[a-z][a-z_0-9]{2,40}) (?P<size>\d{1,18})$
TABLE title Tasks state
TABLE header \[ *pid *\] +(?P<columns>uid\s+tgid\s+[a-z_\s]+)\sname$
TABLE row \[ *(?P<pid>\d{1,10})\] +(?P<rest>\d.*)
TABLE broken_row \[ *\d{0,10}\]? *(?:…|$)
SUMMARY summary oom-kill: ?constraint=(?P<constraint>[A-Z_]*)(?P<rest>.*)
KILLED killed WHY [Kk]ill(?P<done>ed)? ?process ?(?P<pid>\d{1,10})(?:, UID \d+,)?
     ?(?:\(|(?=total-vm:))(?P<rest>.*)
KILLED unnumbered WHY Kill(?:ed)? process (?:[^\s()\d]{1,12} )?(?:\((?P<comm>[^()]{1,64})\)|total-vm:)
KILLED skipped WHY OOM victim (?P<pid>\d{1,10}) \(.{0,64}?\) is already exiting
KILLED unit (?P<unit>\S{1,255}\.[a-z]{4,9}): (?:A process of this unit has been killed by the OOM killer
    |The kernel OOM killer killed some processes in this unit|(?P<ended>Failed with result 'oom-kill'))
KILLED group Tasks in ?(?P<group>\S*)(?P<rest>.*)
KILLED reaped oom_reaper: reaped process (?P<pid>\d{1,10}) \((?P<comm>.{0,64}?)\)(?:,|$)
KILLED nobody Out of memory and no killable processes
KILLED panic Kernel panic - not syncing: (?i:out of memory|System is deadlocked on memory)(?P<rest>.*)
"""
"""Part of the report, kind of line, and its form; an indented line continues the one before."""
_WHY: Final = r"(?:(?P<why>Memory cgroup out of memory|Out of [mM]emory[^:]{0,40}): ?)?"
_FORMS: Final = {
    kind: (ReportPart[part], re.compile(form.replace("WHY ", _WHY), re.ASCII))
    for part, kind, form in (
        line.split(" ", 2) for line in _GRAMMAR.strip().replace("\n    ", "").split("\n")
    )
}
REAPED: Final = _FORMS["reaped"][1]
OF_UNIT: Final = _FORMS["unit"][1]


@lru_cache(maxsize=4)
def parse_message(message: str) -> tuple[str, ReportPart, dict[str, Any]] | None:
    """Return the kind of a report's line, its part of the report, and its values."""
    for name, (part, form) in _FORMS.items():
        match = form.match(message)
        if match is not None:
            return name, part, match.groupdict()
    return None


def cgroup_path(text: str, *, is_whole: bool = True) -> str:
    """Return a path, with CUT at its end if it is truncated or a user left a part out."""
    left_out = _LEFT_OUT.search(text)
    text, is_whole = text[: left_out.start() if left_out else LONGEST_PATH], is_whole and not left_out
    shown = text.rstrip(f"{CUT}./") if text != "/" else text
    return text if is_whole and shown == text else f"{shown}{CUT}"


def constraint_of(why: str | None) -> Constraint | None:
    """Return what ran out of memory by the words before a victim, None if there are none."""
    if not why:
        return None
    return Constraint.MEMCG if why == _MEMCG_WORDS else Constraint.NONE


def killed_process(pid: int, rest: str) -> Killed:
    """Parse the text after ` (`: the name, which may have any characters, then the numbers."""
    # The name may contain what looks like its end: the last match counts.
    end = next(reversed(list(_AFTER_COMM.finditer(rest))), None)
    comm = rest[: end.start()] or CUT if end is not None else rest.rpartition(")")[0] or f"{rest}{CUT}"
    numbers = rest[end.end() :] if end is not None else ""
    matches = {name: form.search(numbers) for name, form in _NUMBERS.items()}
    sizes = {name: int(match[1]) for name, match in matches.items() if match is not None}
    return Killed(pid, comm[:64], **sizes)


_INLINE: Final = re.compile(r"\b([a-z_]{3,20}):(\d{1,18})KB", re.ASCII)
_INLINE_WHOLE: Final = re.compile(r"[a-z_]{3,20}:\d{1,18}KB(?: [a-z_]{3,20}:\d{1,18}KB)*", re.ASCII)
_FIRST: Final = frozenset({"anon", "cache"})
"""The first statistic of a cgroup, on v2 and v1."""
_KINDS: Final = {
    "anon": "anon_kb",
    "rss": "anon_kb",
    "file": "file_kb",
    "cache": "file_kb",
    "shmem": "shmem_kb",
    "dirty": "dirty_kb",
    "file_dirty": "dirty_kb",
    "kernel": "kernel_kb",
    "swap": "swap_kb",
}
"""Statistics of cgroup v2 and v1; those of v1 with `total_` include cgroups below."""
_NO_LIMIT_KB: Final = 1 << 53
"""A counter without a limit has one page less (PAGE_COUNTER_MAX in include/linux/page_counter.h)."""
_KERNEL_KINDS: Final = ("kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "slab")
_LARGEST_KERNEL_KINDS: Final = frozenset({"kernel_stack", "pagetables", "slab"})
_COUNTERS: Final = {"memory": "", "memory+swap": "memsw_"}
MOST_TASKS: Final = 65_536
"""Limit of table rows; the kernel's default limit of process ids is 32,768."""
_MOST_BREAKS: Final = 4
_COLUMNS: Final = {"oom_score_adj": "adj", "rss_shmem": "shmem"} | {
    name: name for name in ("uid", "tgid", "total_vm", "rss", "pgtables_bytes", "swapents")
}
_PAGES_OF_TABLES: Final = ("nr_ptes", "nr_pmds", "nr_puds")
_KINDS_OF_PAGES: Final = ("rss_anon", "rss_file", "rss_shmem")
_OLDEST_COLUMNS: Final = {"cpu", "oom_adj"}
"""Columns up to 3.6 and on RHEL 6, in place of page tables and swap."""
_KNOWN_COLUMNS: Final = {*_COLUMNS, *_PAGES_OF_TABLES, *_KINDS_OF_PAGES, *_OLDEST_COLUMNS}
_TABLES: Final = {7 + count: " ".join(_PAGES_OF_TABLES[: count + 1]) for count in range(3)} | {
    10: "rss_anon rss_file rss_shmem pgtables_bytes"
}
"""Columns between rss and swapents by how many numbers a row has, if the log lacks the header."""
_LEAST_TABLE_BYTES: Final = 4_096
_LARGEST_ADJ: Final = 1_000
_RACE_PAGES: Final = 1_024
"""How much rss may differ from the sum of its kinds: the kernel reads the counters one after the other."""
_UNFLUSHED_KB: Final = 4_096
"""How much one statistic may be older than another."""
_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


def is_within(path: str, above: str) -> bool:
    """Return whether a cgroup is `above` or below it."""
    return f"{path}/".startswith(f"{above.rstrip('/')}/")


class MemoryLines:
    """Values of the memory lines so far."""

    def __init__(self) -> None:
        self._domain = self._title = ""
        self._below: list[str] = []
        self._counters: dict[str, int] = {}
        self._statistics: dict[str, int] = {}
        self._machine: dict[str, int] = {}
        self._zones: dict[str, tuple[int, int, int]] = {}
        self._is_whole = False

    @property
    def is_empty(self) -> bool:
        """Whether no line was about memory."""
        return not (self._counters or self._statistics or self._machine or self._domain or self._below)

    def add_counter(self, what: str, usage: str, limit: str) -> bool:
        """Add a counter of the cgroup; return False if it exists already."""
        name = _COUNTERS.get(what, f"{what}_")
        if f"{name}usage_kb" in self._counters:
            return False
        self._counters |= {f"{name}usage_kb": int(usage), f"{name}limit_kb": int(limit)}
        page_kb = _NO_LIMIT_KB - int(limit)
        if page_kb << 10 in PAGE_SIZES:
            self._machine.setdefault("page_kb", page_kb)
        return True

    @property
    def domain(self) -> str:
        """Cgroup that ran out according to its statistics; it may be below a truncated path.

        Cgroup v1 has lines for all cgroups below too, and a user may have left out the first.
        """
        if not self._below:
            return self._domain
        path = os.path.commonpath(self._below)
        pod = pod_cgroup(path)
        if pod is not None and pod.is_mixed:
            return path
        return f"{path if pod is None or not pod.container_id else path.rpartition('/')[0]}/{CUT}"

    def add_statistics(self, path: str, inline: str, previous: str) -> bool:
        """Add statistics of a cgroup; `previous` is the kind of the line before."""
        if self._domain or (self._below and not inline):
            return False
        if inline:
            is_next = (
                previous == "counter" if not self._below else self._is_whole and previous == "statistics"
            )
            sizes = _INLINE.findall(inline)
            # All lines name the same kinds: a line with fewer is truncated.
            is_like_others = not self._below or self._statistics.keys() == {name for name, _ in sizes}
            self._is_whole = is_next and is_like_others and _INLINE_WHOLE.fullmatch(inline) is not None
            self._below.append(path)
            for name, size in sizes:
                self._statistics[name] = self._statistics.get(name, 0) + int(size)
        else:
            self._title = path
            self._domain = path if previous == "counter" else CUT
        return True

    def end_statistics(self) -> None:
        """Note that lines are missing after the last statistics."""
        self._is_whole = False

    def add_statistic(self, name: str, size: str) -> bool:
        """Add a statistic of the cgroup, in bytes; return False if it is another cgroup's."""
        if not self._title or name in self._statistics or not (self._statistics or name in _FIRST):
            return False
        self._domain = self._title
        self._statistics[name] = int(size) >> 10
        return True

    def add_machine(self, **sizes: str | None) -> None:
        """Add sizes of the machine."""
        self._machine = {name: int(size) for name, size in sizes.items() if size} | self._machine

    def add_huge_pages(self, total: int, kib: int) -> None:
        """Add the huge pages of one size that a NUMA node reserves."""
        self._machine["huge_kb"] = self._machine.get("huge_kb", 0) + total * kib

    def add_zone(self, zone: str, free: str, high: str, present: str) -> None:
        """Add a zone of memory, in KiB."""
        self._zones[zone] = int(free), int(high), int(present)

    def _kinds(self) -> dict[str, int]:
        if self._below and not self._is_whole:
            return {}
        # file includes shmem: if it is smaller, the lines are from two reports.
        if self._statistics.get("shmem", 0) > self._statistics.get("file", MAX_INT64) + _UNFLUSHED_KB:
            return {}
        totals = {name for name in self._statistics if name.startswith("total_")}
        values = self._statistics | {name.removeprefix("total_"): self._statistics[name] for name in totals}
        kinds = {key: values[name] for name, key in _KINDS.items() if name in values}
        anonymous = [values.get(name) for name in ("inactive_anon", "active_anon", "unevictable", "rss")]
        if self._below and "shmem" not in values and None not in anonymous:
            # Before 4.10 shmem follows from the lists of anonymous pages, which include tmpfs.
            inactive, active, locked, own = (size or 0 for size in anonymous)
            kinds["shmem_kb"] = min(max(inactive + active + locked - own, 0), values.get("cache", 0))
        if values.keys() >= _LARGEST_KERNEL_KINDS:
            kinds["parts_of_kernel_kb"] = sum(values.get(name, 0) for name in _KERNEL_KINDS)
        return kinds

    def state(self) -> MemoryState:
        """Return the values of all lines."""
        pages, present = self._machine.get("ram_pages", 0), sum(size for _, _, size in self._zones.values())
        is_short = None  # The log may lack some zones.
        if self._zones and present in {pages * size >> 10 for size in PAGE_SIZES}:
            is_short = any(free <= high for free, high, _ in self._zones.values())
        return MemoryState(**self._counters, **self._kinds(), **self._machine, is_short=is_short)


class TaskTable:
    """Rows of the task table so far; `is_whole`: it has its beginning, and no row is known to be missing."""

    def __init__(self) -> None:
        self.tasks: list[OomTask] = []
        self.is_whole = False
        self._columns: list[str] = []
        self._pids: set[int] = set()

    @property
    def has_pages(self) -> bool:
        """Whether page tables are counted in pages or not shown, as before 4.16."""
        return not {_PAGES_OF_TABLES[0], *_OLDEST_COLUMNS}.isdisjoint(self._columns)

    def begin(self) -> bool:
        """Begin with the title; return False if the table has begun."""
        if self._columns or self.tasks:
            return False
        self.is_whole = True
        return True

    def add_header(self, text: str, *, is_first: bool) -> bool:
        """Add the column names; `is_first`: no row can be before. Return False if they exist already."""
        if self._columns or self.tasks:
            return False
        self.is_whole |= is_first
        names = next(
            (names for text in _readings(text) if _KNOWN_COLUMNS.issuperset(names := text.split())), []
        )
        self.is_whole &= bool(names)
        self._columns = names
        return True

    def add_row(self, pid: int, text: str) -> bool:
        """Add a process; return False if it is of another table."""
        if pid in self._pids:
            return False
        self.is_whole &= bool(self._columns)  # No kernel prints the title without them.
        readings = _readings(text)
        rows = [row for reading in readings if (row := self._cells(pid, reading)) is not None]
        if len(rows) > 1:
            rows = [(columns, cells) for columns, cells in rows if not _INTEGER.fullmatch(cells[-1])]
        if len(rows) != 1:
            self.is_whole = False
            return True
        self._pids.add(pid)
        if len(self.tasks) < MOST_TASKS:
            self.tasks.append(_task(pid, *rows[0]))
        return True

    def _cells(self, pid: int, text: str) -> tuple[list[str], list[str]] | None:
        """Return the columns and cells of a row, or None if they do not fit together.

        Without a header, the count of numbers before the name tells which table it is.
        """
        words = text.split()
        count = next((n for n, word in enumerate(words) if not _INTEGER.fullmatch(word)), len(words))
        columns = (
            self._columns or f"uid tgid total_vm rss {_TABLES.get(count, '')} swapents oom_score_adj".split()
        )
        # The name of a process may be a number; behind one there are columns of another table.
        if len(words) <= len(columns) or count not in {len(columns), len(words)} or count > len(columns) + 1:
            return None
        if not self._columns and (count not in _TABLES or words[1] != str(pid) or CUT in words[count]):
            return None
        sizes = dict(zip(columns, words, strict=False))
        kinds = sum(int(sizes.get(name, 0)) for name in _KINDS_OF_PAGES)
        if _KINDS_OF_PAGES[0] in sizes and abs(int(sizes["rss"]) - kinds) > _RACE_PAGES:
            return None
        if abs(int(sizes.get("oom_score_adj", 0))) > _LARGEST_ADJ:
            return None
        return columns, text.split(None, len(columns))


def _readings(text: str) -> list[str]:
    """Return the possible original texts of one that was broken within a word or between two."""
    parts = text.split(BREAK)
    if len(parts) > _MOST_BREAKS + 1:
        return []
    return [
        "".join(map("".join, zip(parts, (*spaces, ""), strict=True)))
        for spaces in product(("", " "), repeat=len(parts) - 1)
    ]


def _task(pid: int, columns: list[str], cells: list[str]) -> OomTask:
    fields: dict[str, int] = {}
    tables = None
    for column, cell in zip(columns, cells, strict=False):
        is_in_bytes = column == "nr_ptes" and int(cell) >= _LEAST_TABLE_BYTES
        if column in _PAGES_OF_TABLES and not is_in_bytes:
            tables = (tables or 0) + int(cell)
        elif column in _COLUMNS or is_in_bytes:
            fields[_COLUMNS.get(column, "pgtables_bytes")] = int(cell)
    return OomTask(pid=pid, name=cells[-1], pgtables_pages=tables, **fields)
