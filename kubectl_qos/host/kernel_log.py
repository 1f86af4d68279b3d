"""OOM reports from kernel logs of any length: files, standard input, and this node's /dev/kmsg."""

import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.host.log_lines import LogRecord, parse_line
from kubectl_qos.host.log_text import Numbered, messages, read_lines
from kubectl_qos.host.oom_lines import ReportBuilder
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.kills.report import KernelLog, OomReport

MOST_REPORTS: Final = 5_000
MOST_TASKS: Final = 200_000
"""The newest are kept; they take some 100 MB of memory."""
_MOST_OPEN: Final = 16
"""A report stays open for a while: the reaper's line may follow, or more lines of its context."""
_FIRST_LINES: Final = 1_000

_RELEVANT: Final = re.compile(
    r"invoked oom-killer|oom-kill:|[Kk]ill(?:ed)? process|oom_reaper: |oom\.group set|killed as a result of"
)
"""The beginnings of reports, and what follows their first victim."""
_BEGINS: Final = "invoked oom-killer"
_REAPED: Final = re.compile(r"oom_reaper: reaped process (\d{1,10}) \(", re.ASCII)


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """A whole log, the oldest line first or last. Times without a year get theirs from `now`."""
    reader = _LogReader(now)
    reports: deque[OomReport] = deque()
    fragments: list[int] = []
    tasks = left_out = 0
    for report in reader.reports(messages(lines, now)):
        if not report.has_cause:
            fragments.append(report.line)
            continue
        reports.append(report)
        tasks += len(report.tasks)
        while len(reports) > MOST_REPORTS or (tasks > MOST_TASKS and len(reports) > 1):
            tasks -= len(reports.popleft().tasks)
            left_out += 1
    return KernelLog(
        tuple(reports),
        reader.first_time,
        reader.last_time,
        left_out,
        reader.lines,
        fragments=tuple(fragments),
        unread=tuple(reader.unread),
        is_kernel=reader.is_kernel,
        first_line=reader.first_line,
    )


class _LogReader:
    """A log; the current report is kept by node and by the kernel's context, where lines name it."""

    def __init__(self, now: datetime | None) -> None:
        self._now = now
        self._current: dict[tuple[str, str], ReportBuilder] = {}
        self._open: deque[ReportBuilder] = deque()
        self._last_key = ("", "")
        self._last_line = ""
        self.first_time = self.last_time = ""
        self.first_line = ""
        self.lines = self._line = 0
        self.unread: list[int] = []
        self.is_kernel = False

    def reports(self, numbered: Iterator[Numbered]) -> Iterator[OomReport]:
        for record in self._records(self._oldest_first(numbered)):
            yield from self._take(record)
        while self._open:
            yield self._close(self._open.popleft())
        self.last_time = self._time(self._last_line)

    def _oldest_first(self, numbered: Iterator[Numbered]) -> Iterable[Numbered]:
        """Log stores and `journalctl -r` write the newest line first."""
        head = list(islice(numbered, _FIRST_LINES))
        first_mark = next((match[0] for _, text in head if (match := _RELEVANT.search(text))), "")
        times = [when for _, text in head if (when := self._when(text)) is not None]
        is_reversed = all(one >= other for one, other in pairwise(times)) and len(set(times)) > 1
        if is_reversed and first_mark != _BEGINS:
            return reversed([*head, *numbered])
        return chain(head, numbered)

    def _when(self, text: str) -> tuple[bool, float] | None:
        record = parse_line(text, self._now)
        moment = parse_time(record.time) if record is not None else None
        if moment is not None:
            return True, moment.timestamp()
        return (False, record.uptime) if record is not None and record.uptime is not None else None

    def _time(self, text: str) -> str:
        record = parse_line(text, self._now)
        return record.time if record is not None else ""

    def _records(self, numbered: Iterable[Numbered]) -> Iterator[LogRecord]:
        for self._line, text in numbered:
            self.lines = max(self.lines, self._line)
            if not text or text.isspace():
                continue
            self.first_line = self.first_line or text
            if not text[0].isspace():
                self._last_line = text
            is_inside = any(report.is_inside for report in self._current.values())
            is_relevant = ("oom" in text or "ill" in text) and _RELEVANT.search(text) is not None
            is_first = not self.first_time and self._line <= _FIRST_LINES
            if not (is_inside or is_relevant or is_first or not self.is_kernel):
                continue
            record = parse_line(text, self._now)
            if record is None:
                continue
            self.first_time = self.first_time or (record.time if is_first else "")
            self.is_kernel = self.is_kernel or record.is_kernel
            if is_inside or is_relevant:
                yield record

    def _take(self, record: LogRecord) -> Iterator[OomReport]:
        if not record.message:
            return
        if record.message.startswith("oom_reaper: "):
            match = _REAPED.match(record.message)
            if match is not None:
                reports = (report for report in reversed(self._open) if report.node == record.node)
                any(report.add_reaped(int(match[1])) for report in reports)
            return
        # Only the first line of a message has a prefix.
        key = self._last_key if record.is_continued else (record.node, record.caller)
        self._last_key = key
        current = self._current.get(key)
        if current is not None and current.take(record.message):
            return
        report = ReportBuilder.begin(record, self._line)
        if report is None:
            if _RELEVANT.search(record.message) is not None:
                self.unread.append(self._line)
            return
        if current is not None:
            current.hand_over_victim(report)
        # The newest comes last.
        self._current.pop(key, None)
        self._current[key] = report
        self._open.append(report)
        if len(self._open) > _MOST_OPEN:
            yield self._close(self._open.popleft())

    def _close(self, closed: ReportBuilder) -> OomReport:
        self._current = {key: report for key, report in self._current.items() if report is not closed}
        return closed.report()


KMSG: Final = Path("/dev/kmsg")
_RECORD_BYTES: Final = 16_384
"""More than a record of /dev/kmsg has; a shorter read fails."""


def read_file(path: str, node: str = "") -> KernelLog:
    """The reports in a file, compressed or not; `-` is standard input. Raises InputError."""
    title = "standard input" if path == "-" else path
    try:
        with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
            log = read_log(read_lines(file), datetime.now(UTC))
    except InputError as error:
        raise InputError(f"the kernel log {title} is not understood: {error}", hint=error.hint) from None
    except (OSError, EOFError) as error:
        raise InputError(
            f"the kernel log {title} cannot be read: {getattr(error, 'strerror', None) or error}", hint=_HINT
        ) from None
    _check_understood(log, title)
    return replace(log, node=node, title=title)


_HINT: Final = "write it on the node: journalctl -k -o short-iso > FILE, or dmesg > FILE"


def _check_understood(log: KernelLog, title: str) -> None:
    """That no report is in a log is certain only of one whose lines are the kernel's. Raises InputError."""
    if log.reports or log.first_line == _NO_ENTRIES:
        return
    if not log.first_line:
        raise InputError(f"the kernel log {title} is empty", hint=_HINT)
    other = next((other for other in _OTHER_FORMATS if other[0].match(log.first_line)), None)
    if log.is_kernel or other is None:
        if log.fragments:
            where, hint = f"{title} line {log.fragments[0]}", "give the lines that follow as well"
            raise InputError(f"{where}: an OOM report breaks off before its cause and its victim", hint=hint)
        if log.unread:
            where = f"{title} line {log.unread[0]}"
            raise InputError(f"{where}: part of an OOM report follows what is not understood", hint=_HINT)
    if not log.is_kernel:
        _, what, hint = other or (None, "text in which no line is the kernel's", _HINT)
        what = f"it is {what}, and begins with {log.first_line[:60]!r}"
        raise InputError(f"the kernel log {title} is not understood: {what}", hint=hint)


_NO_ENTRIES: Final = "-- No entries --"
_OTHER_FORMATS: Final = (
    (re.compile(r".*\x00"), "binary data", _HINT),
    (re.compile(r'\{?\s*"?(?:apiVersion|kind)"?:'), "a Kubernetes object", "give it with -f"),
    (re.compile(r"[{\[]"), "JSON without messages of the kernel", "journalctl -k -o json > FILE"),
    (re.compile(r"<[!?a-zA-Z]"), "XML or HTML", _HINT),
    (re.compile(r"---|[A-Za-z]\w*:(?: |$)"), "YAML", "gcloud logging read --format=json"),
    (re.compile(r"[^,\t]*(?:,[^,]+){2}|[^\t]*\t[^\t]*\t"), "a table of comma or tab separated values", _HINT),
)
"""By the first line; the hint is the remedy."""


def read_kmsg(path: Path = KMSG, node: str = "") -> KernelLog:
    """The log in the buffer of this node's kernel. Raises InputError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened: {error.strerror}",
            hint="run as root on the node, or give a log with --kernel-log",
        ) from None
    try:
        log = read_log(_lines_of_kmsg(handle))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    return replace(log.with_boot_time(booted), node=node, title=str(path))


def _lines_of_kmsg(handle: int) -> Iterator[str]:
    rest = b""
    while True:
        with suppress(BrokenPipeError):
            # The next record has been overwritten: the read after it gives another.
            try:
                piece = os.read(handle, _RECORD_BYTES)
            except BlockingIOError:
                break
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
            # Longer ones are no records.
            rest = rest[-_RECORD_BYTES:]
    if rest:
        yield rest.decode(errors="replace")
