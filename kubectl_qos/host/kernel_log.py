"""OOM reports out of a kernel log of any length, one line in memory at a time.

The kernel prints a report under oom_lock, so that two never mix; other messages may come between its lines,
the reaper's line comes later, and its buffer, its rate limit (oom_kill_process: ten reports in five seconds)
or whoever copied the log may leave out any part. What is there is given, and `incomplete` says that
something is not.

Source: Linux mm/oom_kill.c, mm/memcontrol.c, mm/show_mem.c (mm/page_alloc.c, lib/show_mem.c before), 3.10 to
6.x. Not here: what stands before a message (log_lines.py), the reports as values (qos/oom_report.py).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from kubectl_qos.host.log_lines import EXPORT_BEGINS, Exported, Prefixes, Record
from kubectl_qos.host.oom_lines import Building
from kubectl_qos.qos.oom_report import KernelLog, OomReport

MOST_REPORTS: Final = 5_000
MOST_TASKS: Final = 200_000
"""So much is kept, the newest: some 100 MB of memory."""
_MOST_AT_ONCE: Final = 16
"""So many reports are waited for: a reaper's line may follow, or a context of the kernel may go on."""
_FIRST_LINES: Final = 1_000
"""Among so many the first time of a log is looked for."""


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """All of a log. `now` gives lines of syslog, which have no year, theirs."""
    span = _Span(now)
    kept: deque[OomReport] = deque()
    tasks = left_out = 0
    for report in reports_in(span.watched(lines), now):
        kept.append(report)
        tasks += len(report.tasks)
        while len(kept) > MOST_REPORTS or (tasks > MOST_TASKS and len(kept) > 1):
            tasks -= len(kept.popleft().tasks)
            left_out += 1
    return KernelLog(tuple(kept), *span.ends(), left_out, span.lines)


def reports_in(lines: Iterable[str], now: datetime | None = None) -> Iterator[OomReport]:
    """Each report, in the order in which they begin."""
    reading = _Reading()
    for number, record in _records(lines, Prefixes(now), reading):
        yield from reading.take(record, number)
    yield from reading.rest()


def _records(lines: Iterable[str], prefixes: Prefixes, reading: _Reading) -> Iterator[tuple[int, Record]]:
    """The records that may matter, with the number of their line."""
    exported: Exported | None = None
    for number, text in enumerate(lines, start=1):
        if exported is None and text.startswith(EXPORT_BEGINS):
            exported = Exported()
        if exported is not None:
            record = exported.add(text)
        elif reading.is_inside or (("oom" in text or "ill" in text) and _RELEVANT.search(text)):
            record = prefixes.record(text)
        else:
            continue
        if record is not None:
            yield number, record
    last = exported.end() if exported is not None else None
    if last is not None:
        yield number, last


_RELEVANT: Final = re.compile(
    r"invoked oom-killer|oom-kill:|[Kk]ill(?:ed)? process|oom_reaper: |oom\.group set|killed as a result of"
)
"""What a report can begin with, and what comes after its first victim."""


class _Reading:
    """The reports that are not finished, by machine and by the kernel's context where lines name it."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Building] = {}
        self._waiting: deque[Building] = deque()
        self._last_key = ("", "")

    @property
    def is_inside(self) -> bool:
        """Whether lines that mean something only within a report do so now."""
        return any(one.is_inside for one in self._open.values())

    def take(self, record: Record, number: int) -> Iterator[OomReport]:
        """Put a line where it belongs; gives the reports that nothing more is expected of."""
        if not record.message:
            return
        if record.message.startswith("oom_reaper: "):
            self._reaped(record)
            return
        # A message of several lines has its prefix but once.
        key = self._last_key if record.is_continued else (record.node, record.caller)
        self._last_key = key
        current = self._open.get(key)
        if current is not None and current.take(record.message):
            return
        begun = Building.begun_by(record, number)
        if begun is None:
            return
        if current is not None:
            current.give_back(begun)
        # The newest comes last, so that the oldest is the one to go.
        self._open.pop(key, None)
        self._open[key] = begun
        self._waiting.append(begun)
        if len(self._waiting) > _MOST_AT_ONCE:
            yield self._close(self._waiting.popleft())

    def rest(self) -> Iterator[OomReport]:
        """What is left at the end."""
        while self._waiting:
            yield self._close(self._waiting.popleft())

    def _close(self, oldest: Building) -> OomReport:
        for key, one in list(self._open.items()):
            if one is oldest:
                del self._open[key]
        return oldest.report()

    def _reaped(self, record: Record) -> None:
        found = _REAPED.match(record.message)
        if found is None:
            return
        pid = int(found[1])
        for one in reversed(self._waiting):
            if one.node == record.node and one.has_killed(pid):
                one.reaped.append(pid)
                return


_REAPED: Final = re.compile(r"oom_reaper: reaped process (\d{1,10}) \(", re.ASCII)


class _Span:
    """Counts lines, and keeps the first time and the last line while they pass by."""

    def __init__(self, now: datetime | None) -> None:
        self._prefixes = Prefixes(now)
        self._first = ""
        self._last = ""
        self.lines = 0

    def watched(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines."""
        for text in lines:
            self.lines += 1
            if text:
                if not self._first and self.lines <= _FIRST_LINES:
                    self._first = self._time(text)
                if not text[0].isspace():
                    self._last = text
            yield text

    def ends(self) -> tuple[str, str]:
        """The first and the last time."""
        return self._first, self._time(self._last)

    def _time(self, text: str) -> str:
        record = self._prefixes.record(text)
        return record.time if record is not None else ""
