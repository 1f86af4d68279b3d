"""OOM reports from kernel logs of any length: files, standard input, and this node's /dev/kmsg."""

import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.host.log_lines import parse_line
from kubectl_qos.host.log_text import Numbered, messages, read_lines
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.kills.report import KernelLog, OomReport
from kubectl_qos.qos.logs.daemons import DaemonKill
from kubectl_qos.qos.logs.oom_lines import REAPED, ReportBuilder
from kubectl_qos.qos.logs.record import LogRecord, continues, join

MOST_REPORTS: Final = 5_000
MOST_TASKS: Final = 200_000
"""The newest are kept; they take some 100 MB of memory."""
_MOST_OPEN: Final = 16
"""A report stays open for a while: the reaper's line may follow, or more lines of its context."""
_FIRST_LINES: Final = 1_000

_RELEVANT: Final = re.compile(
    r"invoked oom-killer|oom-kill:|[Kk]ill(?:ed)? process|oom_reaper: |oom\.group set|killed as a result of"
)
"""What only a report has: behind an unknown prefix it is not read, and that is said."""
_WORDS: Final = ("oom", "ill", "asks", "emory", "total_vm", "Mem-Info", "SIG", "victim")
_ROW: Final = re.compile(r"\[ *\d{1,10}\] +\d{1,10} +\d")
_UNFILTERED: Final = re.compile(r" *(?:Call Trace:|Hardware name: |R\w\w: |</?TASK>)")
"""Nobody searches a log for these."""
_MARKS: Final = ("invoked oom-killer", "memory: usage", "oom-kill:", "illed process", "oom_reaper: ")
"""In the order in which a kernel writes them."""
_FOREIGN: Final = re.compile(r" [\w@.-]{1,64}\[\d{1,10}\]: ", re.ASCII)
"""A line of another program, whose rest a terminal may have broken off."""
_LONGEST_PREFIX: Final = 80
_LONGEST_GAP: Final = 200
_GAP: Final = re.compile(
    r"\W*(?:\.{3,}|…+|(?:<|\[|\()?(?:snip|cut|omitted|truncated)(?:>|\]|\))?|-{2,}|={3,}|\*{3,}|`{3,}\w*)\W*"
)
"""A line in place of what a person left out, or that separates two logs."""
_LOST: Final = re.compile(r"Missed \d+ kernel messages|printk messages dropped|messages lost", re.ASCII)
"""What journald, rsyslog and the kernel say of lines that the log lacks."""


def _is_gap(text: str) -> bool:
    is_lost = "messages" in text and _LOST.search(text) is not None
    return len(text) <= _LONGEST_GAP and (is_lost or _GAP.fullmatch(text) is not None)


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """A whole log, the oldest line first or last. Times without a year get theirs from `now`."""
    reader = _LogReader(now)
    reports: deque[OomReport] = deque()
    fragments: list[int] = []
    tasks = left_out = 0
    for report in reader.reports(messages(lines, now)):
        if not report.has_cause:
            fragments += [report.line] if report.invoker is not None or report.tasks else []
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
    """A log; several reports are open at once, as nodes, processors and times tell their lines apart."""

    def __init__(self, now: datetime | None) -> None:
        self._now = now
        self._open: deque[ReportBuilder] = deque()
        self._latest: ReportBuilder | None = None
        self._last_line = ""
        self._width = 0
        self._is_filtered = True
        self._is_foreign = False
        self.first_time = self.last_time = ""
        self.first_line = ""
        self.lines = 0
        self.unread: list[int] = []
        self.is_kernel = False

    def reports(self, numbered: Iterator[Numbered]) -> Iterator[OomReport]:
        for record in self._records(self._oldest_first(numbered)):
            for message in record.message.split("\n"):
                yield from self._take(replace(record, message=message))
        while self._open:
            yield self._close()
        last = parse_line(self._last_line, self._now)
        self.last_time = last.time if last is not None else ""

    def _oldest_first(self, numbered: Iterator[Numbered]) -> Iterable[Numbered]:
        """Log stores and `journalctl -r` write the newest line first; also find where lines are broken."""
        head = list(islice(numbered, _FIRST_LINES))
        widths = Counter(len(text.rstrip()) for _, text in head)
        longest = max(widths, default=0)
        self._width = longest if widths[longest] > 1 else 0
        marks = [place for _, text in head for place, mark in enumerate(_MARKS) if mark in text]
        steps = [next_place - place for place, next_place in pairwise(marks)]
        has_order = sum(step > 0 for step in steps) >= max(sum(step < 0 for step in steps), 1)
        times = [when for _, text in head if (when := self._when(text)) is not None]
        is_reversed = all(time >= next_time for time, next_time in pairwise(times)) and len(set(times)) > 1
        lines = chain(head, numbered)
        if not is_reversed or has_order:
            return lines
        records: list[list[Numbered]] = [[]]
        for line in lines:
            record = parse_line(line[1], self._now)
            if record is None or not record.is_continued:
                records.append([])
            records[-1].append(line)
        return chain.from_iterable(reversed(records[1:]))

    def _when(self, text: str) -> tuple[bool, float] | None:
        record = parse_line(text, self._now)
        moment = parse_time(record.time) if record is not None else None
        if moment is not None:
            return True, moment.timestamp()
        return (False, record.uptime) if record is not None and record.uptime is not None else None

    def _records(self, numbered: Iterable[Numbered]) -> Iterator[LogRecord]:
        """The messages that reports may have, those that were broken into several lines as one."""
        pending: LogRecord | None = None
        before = ""
        for number, text in numbered:
            self.lines = max(self.lines, number)
            if not text or text.isspace():
                self._is_foreign = False
                continue
            self.first_line = self.first_line or text
            if not text[0].isspace():
                self._last_line = text
            record = None
            if pending is not None:
                record = parse_line(text, self._now)
                whole = self._joined(pending, before, text, record)
                before = text.rstrip()
                if whole is not None:
                    pending = whole
                    continue
                yield pending
            record = self._record(number, text, record)
            pending, before = record, text.rstrip()
        if pending is not None:
            # Whether the last line of a log is whole is not known.
            is_path = pending.message.startswith("Task in ")
            yield replace(pending, message=pending.message + CUT) if is_path else pending

    def _joined(
        self, pending: LogRecord, before: str, text: str, record: LogRecord | None
    ) -> LogRecord | None:
        """The message before with this line, None if the line is one of its own."""
        if record is None or _is_gap(text):
            return None
        if not continues(pending.message, record.message, has_prefix=not record.is_continued):
            return None
        indent = min(len(line) - len(line.lstrip()) for line in (before, text))
        rest = text[indent:].rstrip() if record.is_continued else record.message
        is_hard = self._width > 0 and len(before) == self._width
        return replace(pending, message=join(pending.message, rest, is_hard=is_hard))

    def _record(self, number: int, text: str, record: LogRecord | None) -> LogRecord | None:
        """The message of a line that a report may have, else None."""
        if _is_gap(text):
            self._is_foreign = False
            for report in self._open:
                report.has_gap = True
            return None
        is_wanted = any(word in text for word in _WORDS) or _ROW.search(text) is not None
        is_wanted = is_wanted or any(report.is_inside for report in self._open)
        # A prefix alone may have lost its message to the next line.
        is_wanted = is_wanted or (len(text) < _LONGEST_PREFIX and text.rstrip()[-1:] in ":]")
        is_first = not self.first_time and number <= _FIRST_LINES
        if is_wanted or is_first or not self.is_kernel:
            record = record or parse_line(text, self._now)
        if record is None:
            self._is_foreign |= _FOREIGN.search(text) is not None
            return None
        self._is_foreign &= record.is_continued
        if self._is_foreign:
            return None
        self.first_time = self.first_time or (record.time if is_first else "")
        self.is_kernel = self.is_kernel or record.is_kernel
        self._is_filtered &= _UNFILTERED.match(record.message) is None
        return replace(record, line=number) if is_wanted else None

    def _take(self, record: LogRecord) -> Iterator[OomReport]:
        reaped = REAPED.match(record.message)
        if reaped is not None and any(
            report.add_reaped(record, int(reaped["pid"]))
            for report in reversed(self._open)
            if report.key[0] == record.node
        ):
            return
        kind = DaemonKill if record.program else ReportBuilder
        near = [report for report in self._near(record) if type(report) is kind]
        for report in near:
            if report.take(record):
                self._latest = report
                self._open = report.without_its_group(self._open)
                return
            if _MARKS[0] in record.message:
                report.follow()
        begun = kind.begin(record)
        if begun is not None:
            for report in near[:1]:
                report.hand_over_victim(begun)
            self._latest = begun
            self._open.append(begun)
            if len(self._open) > _MOST_OPEN:
                yield self._close()
        elif not record.program and _RELEVANT.search(record.message) is not None:
            self.unread.append(record.line)

    def _near(self, record: LogRecord) -> list[ReportBuilder]:
        """The open reports that a line may be of, the newest first; without a time only the newest."""
        if record.is_continued and self._latest is not None:
            # Only the first line of a message has a prefix.
            return [self._latest] if self._latest.is_near(record) else []
        key = record.node, record.caller
        near = [report for report in reversed(self._open) if report.key == key and report.is_near(record)]
        return near if record.time or record.uptime is not None else near[:1]

    def _close(self) -> OomReport:
        return self._open.popleft().report(is_filtered=self._is_filtered)


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
    (
        re.compile(r"Name: {2}|.*\bkubectl (?:describe|get)\b|(?:NAMESPACE +)?LAST SEEN "),
        "what kubectl prints",
        "give it with -f",
    ),
    (re.compile(r".*\x00"), "binary data", _HINT),
    (re.compile(r'\{?\s*"?(?:apiVersion|kind)"?:'), "a Kubernetes object", "give it with -f"),
    (re.compile(r"[{\[]"), "JSON without messages of the kernel", "journalctl -k -o json > FILE"),
    (re.compile(r"<[!?a-zA-Z]"), "XML or HTML", _HINT),
    (re.compile(r"---|[A-Za-z]\w*:(?: |$)"), "YAML", "gcloud logging read --format=json"),
    (
        re.compile(r"(?!.*oom[-_]kill|.*Killed process)[^,\t]*(?:,[^,]+){2}|[^\t]*\t[^\t]*\t"),
        "a table of comma or tab separated values",
        _HINT,
    ),
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
