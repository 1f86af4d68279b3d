"""Messages of a log, and the grammar of a report's lines: their beginnings and ends.

The grammar joins lines that a terminal, a pager, a mail program or a person broke.
"""

import re
from typing import Final

import msgspec

from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.killers import KILLERS


class LogRecord(msgspec.Struct, frozen=True):
    """A message of the kernel or of a daemon; `time` is RFC 3339, `uptime` seconds since boot.

    `caller` is the thread or processor named with CONFIG_PRINTK_CALLER, `program` the daemon, "" for the
    kernel. A bare message has no prefix. `is_kernel`: the line itself says that it is the kernel's.
    `year_is_guessed`: its time has none. `line` is where it begins, `place` the number of messages of any
    kind before it, `part` the heading above it (`==> FILE <==`), as tail prints it for several files.
    """

    message: str
    time: str = ""
    uptime: float | None = None
    node: str = ""
    caller: str = ""
    program: str = ""
    is_bare: bool = False
    is_kernel: bool = False
    year_is_guessed: bool = False
    line: int = 0
    place: int = 0
    part: str = ""

    @property
    def has_time(self) -> bool:
        """Whether its line has a time."""
        return bool(self.time) or self.uptime is not None


BREAK: Final = "\v"
"""Marks a broken row or header, if only columns can tell whether the break is within a word."""
_ALWAYS: Final = ""
_ENDS: Final = {
    begin: re.compile(end)
    for end, begins in {
        r"(?:-rss:\d+kB|oom_score_adj:-?\d+|child|memory|\.\.\.|task)$": (
            *("Memory cgroup out of memory: ", "Out of memory: ", "Out of memory (", "Out of memory and "),
            *("Killed process ", "Kill process "),
        ),
        r",uid=\d+$": ("oom-kill:",),
        r" set$": ("Tasks in ",),
        r"result of limit of ?\S*(?:[\da-f]{64}|\.scope)$": ("Task in ",),
        r"(?::|KB)$": ("Memory cgroup stats for ",),
        r" failcnt \d+$": ("memory: usage ", "memory+swap: usage ", "swap: usage ", "kmem: usage "),
        r"-rss:\d+kB$": ("oom_reaper: reaped process ",),
        r" #\d": ("CPU: ",),
        r"(?:enabled|on memory|\.\.\.)$": ("Kernel panic - not syncing: ",),
        _ALWAYS: ("Tasks state", "Mem-Info:", "Call Trace:", "Hardware name: "),
        **{end: begins for killer in KILLERS for end, begins in killer.log.ends.items()},
    }.items()
    for begin in begins
}
"""Ends of whole messages, by their beginning."""
_END_OF_HEAD: Final = re.compile(r"oom_score_adj=-?\d+$")
_HEADER: Final = re.compile(r"\[ *pid *\]")
_END_OF_HEADER: Final = re.compile(r" name$")
_ROW: Final = re.compile(r"\[ *\d{1,10}\] +\d")
_END_OF_ROW: Final = re.compile(rf"\](?: +-?\d+){{7,}} +[^\s{BREAK}]")
_PART_OF_ROW: Final = re.compile(r"\[ *(?:\d{0,10}|p(?:id?)?) *\]?\s*$")
STATISTIC: Final = re.compile(r"(?P<name>[a-z][a-z_0-9]{2,40}) (?P<size>\d{1,18})$", re.ASCII)
_FURTHER_FIELD: Final = re.compile(
    r",|(?:due to|being|for killing) |[a-z_-]{2,20}:-?\d+[kK]B|(?:oom_score_adj|UID):-?\d"
)
"""No message begins like this: it continues the line before, even if that may be whole."""
_PATH: Final = re.compile(r"[\w./:@-]+…?", re.ASCII)
_OF_SUMMARY: Final = re.compile(r"[\w./:@+()\\-]*(?:[,=]|$)|.{0,15},pid=")
_PREFIX_ONLY: Final = frozenset({"", "["})
_WHOLE_WORD: Final = re.compile(r"[,:)]$|kB$|KB$")
_IN_NUMBER: Final = re.compile(r"\d[\d.]|\.\d", re.ASCII)
_SIZES: Final = re.compile(
    r"(?:total-vm|(?:anon|file|shmem)-rss|pgtables|oom_score_adj|UID|process|cgroup|Killed|Kill(?= ))\b"
)


def _end(message: str) -> re.Pattern[str] | None:
    """Return the end of a report's message by its beginning, None if it is not a report's."""
    for begin, end in _ENDS.items():
        if message.startswith(begin):
            return end
    if " invoked oom-killer:" in message[:40]:
        return _END_OF_HEAD
    if _ROW.match(message) is not None:
        return _END_OF_ROW
    return _END_OF_HEADER if _HEADER.match(message) is not None else None


def begins(message: str) -> bool:
    """Return whether a message begins like one of a report."""
    return _end(message) is not None or STATISTIC.match(message) is not None


def message_start_in(text: str) -> str:
    """Return the beginning of a report's message within a line, or ""."""
    return next((begin for begin in _ENDS if begin in text), "")


def is_whole(message: str) -> bool:
    """Return whether a message is complete, as far as its words tell."""
    end = _end(message)
    return STATISTIC.match(message) is None if end is None else end.search(message) is not None


def _is_part_of_beginning(message: str) -> bool:
    return any(begin.startswith(message) for begin in _ENDS) or _PART_OF_ROW.match(message) is not None


def gap_before_rest(before: str, rest: str, *, is_full: bool) -> str | None:
    """Return the text between a message and the line that continues it; None if that is a new message.

    `is_full`: the message is as long as the lines of its log get.
    """
    if before in _PREFIX_ONLY:
        return " "
    if before.endswith(CUT) or not rest:
        return None
    end = _end(before)
    if end is None and _is_part_of_beginning(before):
        for space in ("", " "):
            whole = before + space + rest
            if _end(whole) is not None or _is_part_of_beginning(whole):
                return space
    if begins(rest):
        return None
    is_of_number = rest.isdigit() and before[-1:].isdigit()
    is_more = _FURTHER_FIELD.match(rest) is not None or is_of_number
    if end is None or (end.search(before) is not None and not is_more):
        is_of_statistic = is_of_number and STATISTIC.match(before) is not None
        return "" if is_full or is_of_statistic else None
    is_of_path = before.startswith("Task in ") and "result of limit of" in before
    if is_of_path and _PATH.fullmatch(rest.strip()) is None:
        return None
    if before.startswith("oom-kill:") and _OF_SUMMARY.match(rest) is None:
        return None
    return _space(before, rest, is_full=is_full, is_row=end in {_END_OF_ROW, _END_OF_HEADER})


def _space(before: str, rest: str, *, is_full: bool, is_row: bool) -> str:
    last, first, word = before[-1], rest[0], before.rpartition(" ")[2]
    if first.isspace() or (is_row and last == "-"):
        return ""
    if is_row:
        is_in_word = last.isdigit() == first.isdigit() and (last.isalnum() or last == "_")
        return BREAK if is_in_word else " "
    is_of_size = _SIZES.match(word) is not None
    is_in_size = last == ":" if is_of_size else _SIZES.match(word + rest) is not None
    is_in_size = is_in_size or first in ":)" or last == "("
    if not is_in_size and _FURTHER_FIELD.match(rest) is not None:
        return " "
    is_in_number = _IN_NUMBER.fullmatch(last + first) is not None
    is_in_word = "/" in word or "=" in word or (":" in word and _WHOLE_WORD.search(word) is None)
    return "" if is_full or is_in_number or is_in_word or is_in_size else " "


def is_continued(before: str, message: str) -> bool:
    """Return whether the kernel continues a message on its own line, because a path is too long."""
    return before.startswith("oom-kill:") and message.startswith((",", "oom_memcg=", "task_memcg=", "task="))
