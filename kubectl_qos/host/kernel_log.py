"""OOM reports from kernel logs of any length: files, standard input, and this node's /dev/kmsg."""

from __future__ import annotations

import gzip
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from kubectl_qos.errors import InputError
from kubectl_qos.host.log_lines import EXPORT_BEGINS, JournalExport, LogRecord, parse_line, read_lines
from kubectl_qos.host.oom_lines import ReportBuilder
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
_REAPED: Final = re.compile(r"oom_reaper: reaped process (\d{1,10}) \(", re.ASCII)


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """A whole log. Lines of syslog, which have no year, get theirs from `now`."""
    reader = _LogReader(now)
    reports: deque[OomReport] = deque()
    tasks = left_out = 0
    for report in reader.reports(lines):
        reports.append(report)
        tasks += len(report.tasks)
        while len(reports) > MOST_REPORTS or (tasks > MOST_TASKS and len(reports) > 1):
            tasks -= len(reports.popleft().tasks)
            left_out += 1
    return KernelLog(tuple(reports), reader.first_time, reader.last_time, left_out, reader.lines)


class _LogReader:
    """A log; the current report is kept by node and by the kernel's context, where lines name it."""

    def __init__(self, now: datetime | None) -> None:
        self._now = now
        self._current: dict[tuple[str, str], ReportBuilder] = {}
        self._open: deque[ReportBuilder] = deque()
        self._last_key = ("", "")
        self._last_line = ""
        self.first_time = self.last_time = ""
        self.lines = 0

    def reports(self, lines: Iterable[str]) -> Iterator[OomReport]:
        for record in self._records(lines):
            yield from self._take(record)
        while self._open:
            yield self._close(self._open.popleft())
        self.last_time = self._time(self._last_line)

    def _time(self, text: str) -> str:
        record = parse_line(text, self._now)
        return record.time if record is not None else ""

    def _records(self, lines: Iterable[str]) -> Iterator[LogRecord]:
        export: JournalExport | None = None
        for text in lines:
            self.lines += 1
            if text and not self.first_time and self.lines <= _FIRST_LINES:
                self.first_time = self._time(text)
            if text and not text[0].isspace():
                self._last_line = text
            if export is None and text.startswith(EXPORT_BEGINS):
                export = JournalExport()
            record = None
            if export is not None:
                record = export.add(text)
            else:
                is_inside = any(report.is_inside for report in self._current.values())
                if is_inside or (("oom" in text or "ill" in text) and _RELEVANT.search(text)):
                    record = parse_line(text, self._now)
            if record is not None:
                yield record
        record = export.end() if export is not None else None
        if record is not None:
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
        report = ReportBuilder.begin(record, self.lines)
        if report is None:
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
    """The reports in a file, gzipped or not; `-` is standard input. Raises InputError."""
    title = "standard input" if path == "-" else path
    try:
        if path == "-":
            log = read_log(read_lines(sys.stdin.buffer), datetime.now(UTC))
        else:
            with Path(path).open("rb") as file:
                is_gzip = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if is_gzip else file
                log = read_log(read_lines(stream), datetime.now(UTC))
    except (OSError, EOFError) as error:
        raise InputError(
            f"the kernel log {path} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="write it on the node: journalctl -k -o short-iso > FILE, or dmesg > FILE",
        ) from None
    return replace(log, node=node, title=title)


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
