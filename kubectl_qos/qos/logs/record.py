"""A message of a log, and messages that a terminal, a pager or a mail program broke into several lines."""

import re
from dataclasses import dataclass
from typing import Final

from kubectl_qos.qos.cgroup.names import CUT


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A message of the kernel or of a daemon; `time` is RFC 3339, `uptime` seconds since boot.

    `caller` is the thread or processor that a kernel with CONFIG_PRINTK_CALLER names, `program` the daemon,
    empty for the kernel. A continued message has no prefix. `is_kernel` is whether the line itself says that
    it is the kernel's, `year_is_guessed` whether its time has none, `line` its place in the log.
    """

    message: str
    time: str = ""
    uptime: float | None = None
    node: str = ""
    caller: str = ""
    program: str = ""
    is_continued: bool = False
    is_kernel: bool = False
    year_is_guessed: bool = False
    line: int = 0


_BEGINS: Final = re.compile(
    r".{0,15}? invoked oom-killer: |CPU: \d|Tasks? (?:in |state)|(?:memory(?:\+swap)?|swap|kmem): usage"
    r"|Memory cgroup|Out of memory|Kill(?:ed)? process|oom-kill:|oom_reaper: |\[ *(?:\d+|pid) *\] |Mem-Info:"
    r"|Call Trace|Hardware name|\w+:? \d+(?:kB)?$"
)
_OUT_OF_MEMORY: Final = re.compile(r".*out of memory[^:]{0,40}:?$", re.IGNORECASE)
_ROW: Final = re.compile(r"\[ *\d{1,10}\] +\d")
_OPEN: Final = re.compile(
    r"oom-kill:(?!.*,uid=\d)|,?(?:oom|task)_memcg=|,?task=|Tasks? in\b(?!.*(?:oom\.group|limit of /))"
    r"|.*out of memory[^:]{0,40}: ?Kill[a-z ]{0,10}$"
    r"|(?:.*out of memory[^:]{0,40}: ?)?Kill(?:ed)? process(?!.*(?:oom_score_adj:-?\d|sacrifice|sharing))"
    r"|Memory cgroup stats for\b(?!.*:)|.{0,15}? invoked oom-killer:(?!.*oom_score_adj=-?\d)"
    r"|\[ *pid *\](?!.* name$)|\[ *\d{1,10}\](?: +-?\d+)*$",
    re.IGNORECASE,
)
_OF_PATH: Final = re.compile(r"[\w./:@-]+…?", re.ASCII)
_KERNELS_OWN: Final = re.compile(r",|(?:oom|task)_memcg=|task=")
"""The kernel itself continues a path that is too long for a line on the next one."""


_STATISTICS: Final = "Memory cgroup stats for "


def continues(before: str, message: str, *, has_prefix: bool) -> bool:
    """Whether a line goes on with the message before it, which breaks off."""
    if before.endswith(CUT) or not message:
        return False
    if not before:
        return not has_prefix
    if _KERNELS_OWN.match(message):
        return _OPEN.match(before) is not None
    if has_prefix or ("total-vm:" in before and "total-vm:" in message):
        return False
    if before.startswith("Task in ") and _OF_PATH.fullmatch(message):
        return True
    if before.startswith(_STATISTICS):
        is_cache = "cache:".startswith(message) or (before.rpartition(" ")[2] + message).startswith("cache:")
        if is_cache or message.startswith("cache:"):
            return True
    if message.isdigit():
        return _OPEN.match(before) is not None or before[-1:].isdigit()
    if _OUT_OF_MEMORY.match(before):
        return message.startswith("Kill")
    return _OPEN.match(before) is not None and _BEGINS.match(message) is None


def join(before: str, rest: str, *, is_hard: bool) -> str:
    """Two lines as the one that they were; `is_hard` is whether lines are broken at a width, not at spaces.

    Where it cannot be told whether two numbers of a table's row are one, the row is cut there.
    """
    if not before:
        return rest.lstrip()
    last, first = before[-1:], rest[:1]
    if _ROW.match(before):
        if last.isdigit() and first.isdigit():
            return before + rest if is_hard else before + CUT + rest
        needs_space = last.isdigit() and not first.isspace()
        return f"{before} {rest}" if needs_space else before + rest
    rest = rest.lstrip()
    if before.startswith(_STATISTICS) and last == ":":
        return f"{before} {rest}"
    is_one_word = is_hard or (last.isdigit() and first.isdigit()) or "/" in before.rpartition(" ")[2]
    return before + rest if is_one_word or "=" in before.rpartition(" ")[2] else f"{before} {rest}"
