"""OOM reports out of kernel logs of any length: files, standard input, and /dev/kmsg of this machine."""

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
from kubectl_qos.host.log_lines import EXPORT_BEGINS, JournalExport, LogRecord, PrefixParser, read_lines
from kubectl_qos.host.oom_lines import ReportBuilder
from kubectl_qos.qos.kills.report import KernelLog, OomReport

MOST_REPORTS: Final = 5_000
MOST_TASKS: Final = 200_000
"""So much is kept, the newest: some 100 MB of memory."""
_MOST_AT_ONCE: Final = 16
"""So many reports are waited for: a reaper's line may follow, or a context of the kernel may go on."""
_FIRST_LINES: Final = 1_000
"""Among so many the first time of a log is looked for."""


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """All of a log. `now` gives lines of syslog, which have no year, theirs."""
    span = _TimeSpan(now)
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
    reading = _LogReader()
    for number, record in _records(lines, PrefixParser(now), reading):
        yield from reading.take(record, number)
    yield from reading.rest()


def _records(
    lines: Iterable[str], prefixes: PrefixParser, reading: _LogReader
) -> Iterator[tuple[int, LogRecord]]:
    """The records that may matter, with the number of their line."""
    exported: JournalExport | None = None
    for number, text in enumerate(lines, start=1):
        if exported is None and text.startswith(EXPORT_BEGINS):
            exported = JournalExport()
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


class _LogReader:
    """The reports that are not finished, by machine and by the kernel's context where lines name it."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], ReportBuilder] = {}
        self._waiting: deque[ReportBuilder] = deque()
        self._last_key = ("", "")

    @property
    def is_inside(self) -> bool:
        """Whether lines that mean something only within a report do so now."""
        return any(one.is_inside for one in self._open.values())

    def take(self, record: LogRecord, number: int) -> Iterator[OomReport]:
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
        begun = ReportBuilder.begun_by(record, number)
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

    def _close(self, oldest: ReportBuilder) -> OomReport:
        for key, one in list(self._open.items()):
            if one is oldest:
                del self._open[key]
        return oldest.report()

    def _reaped(self, record: LogRecord) -> None:
        found = _REAPED.match(record.message)
        if found is None:
            return
        pid = int(found[1])
        for one in reversed(self._waiting):
            if one.node == record.node and one.has_killed(pid):
                one.reaped.append(pid)
                return


_REAPED: Final = re.compile(r"oom_reaper: reaped process (\d{1,10}) \(", re.ASCII)


class _TimeSpan:
    """Counts lines, and keeps the first time and the last line while they pass by."""

    def __init__(self, now: datetime | None) -> None:
        self._prefixes = PrefixParser(now)
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


KMSG: Final = Path("/dev/kmsg")
STANDARD_INPUT: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_RECORD_BYTES: Final = 16_384
"""More than a record of /dev/kmsg can have; a shorter read of one fails."""


def read_file(path: str, node: str = "") -> KernelLog:
    """The reports in a file, gzipped or not; `-` is standard input. Raises InputError."""
    title = "standard input" if path == STANDARD_INPUT else path
    try:
        if path == STANDARD_INPUT:
            found = read_log(read_lines(sys.stdin.buffer), datetime.now(UTC))
        else:
            with Path(path).open("rb") as file:
                begin = file.read(2)
                file.seek(0)
                # gzip's own type is wider than what is asked of it.
                stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if begin == _GZIP else file
                found = read_log(read_lines(stream), datetime.now(UTC))
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the kernel log {path} cannot be read: {why}",
            hint="write it on the node: journalctl -k -o short-iso > FILE, or dmesg > FILE",
        ) from None
    return replace(found, node=node, title=title)


def read_kmsg(path: Path = KMSG, node: str = "") -> KernelLog:
    """What the kernel of this machine still has in its buffer. Raises InputError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened: {error.strerror}",
            hint="run as root on the node, or give a log with --kernel-log",
        ) from None
    try:
        found = read_log(_records_kmsg(handle))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    return replace(found.booted(booted), node=node, title=str(path))


def _records_kmsg(handle: int) -> Iterator[str]:
    """Each record with its continuation; a device gives one a read, a file in its place all of them."""
    rest = b""
    while True:
        with suppress(BrokenPipeError):
            # The record that was next has been overwritten: the one after it is given instead.
            try:
                piece = os.read(handle, _RECORD_BYTES)
            except BlockingIOError:
                break
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            # What has no end in sight is no record.
            rest = rest[-_RECORD_BYTES:]
    if rest:
        yield rest.decode(errors="replace")
