"""The grammar of a kernel's OOM report: its kinds of lines, and the values in each.

Wording differs between kernels; all forms since 3.10 are parsed. oom_lines.py puts the lines of a report
together.
Sources: Linux mm/oom_kill.c and mm/memcontrol.c at v3.10, v4.4, v4.19, v5.0, v5.4, v6.1, v6.8 and v6.18;
systemd's src/core/unit.c (since 247).
"""

import re
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.kills.report import Constraint, Killed

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
    "score": re.compile(r"\bscore (\d{1,10}) or sacrifice", re.ASCII),
}
_MEMCG_WORDS: Final = "Memory cgroup out of memory"


class ReportPart(IntEnum):
    """The parts of a report, in the order of the kernel; a summary may stand anywhere."""

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
KILLED killed WHY Kill(?P<done>ed)? ?process ?(?P<pid>\d{1,10})(?:, UID \d+,)?
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
_WHY: Final = r"(?:(?P<why>Memory cgroup out of memory|Out of memory[^:]{0,40}): ?)?"
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
