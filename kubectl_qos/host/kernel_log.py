"""Read OOM reports from kernel logs of any length: files, standard input, and this node's /dev/kmsg."""

import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Final

from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.host.log_lines import parse_line
from kubectl_qos.host.log_text import Numbered, messages, read_lines
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.kills.report import KernelLog, OomReport
from kubectl_qos.qos.logs.daemon_lines import SECOND_HAND, DaemonKill, SecondHandKill, is_daemon_line
from kubectl_qos.qos.logs.oom_grammar import OF_UNIT, REAPED
from kubectl_qos.qos.logs.oom_lines import ReportBuilder
from kubectl_qos.qos.logs.record import LogRecord, gap_before_rest, is_continued, is_whole, message_start_in

MOST_REPORTS: Final = 5_000
MOST_TASKS: Final = 200_000
"""The newest tasks are kept; they take some 100 MB of memory."""
_MOST_OPEN: Final = 16
"""So many reports stay open, because the reaper's line or more of their context may follow."""
_FIRST_LINES: Final = 1_000
_MOST_REPEATED: Final = 40
"""More lines than a terminal shows at once, which is how far copies overlap."""

_RELEVANT: Final = re.compile(
    r"invoked oom-killer|oom-kill:|[Kk]ill(?:ed)? process|oom_reaper: |oom\.group set|killed as a result of"
)
"""Words of a report only: a note counts lines that have them but cannot be read."""
_IN_PROSE: Final = re.compile(
    r"(?!.*\w\[\d+\]: ).*?(?P<words>oom-kill:constraint=.*,task=[\w./:-]{1,15},pid=\d.*"
    r"|(?:(?:Memory cgroup out|Out) of memory: )?Killed process \d{1,10} \([\w./:-]{1,15}\),? .*)",
    re.ASCII,
)
"""A line of prose that quotes the kernel; it is read only if the text has no line of the kernel."""
_WORDS: Final = (
    *("oom", "ill", "ask", "emory", "total_vm", "Mem-Info", "SIG", "ictim", "usage", "panic", "CPU: "),
    *("OOM", "signal ", *(program for killer in KILLERS for program in killer.log.programs)),
)
"""Each line of a report has one of them, except the rows of tables."""
_ROW: Final = re.compile(r"\[ *\d{1,10}\] +\d{1,10} +\d")
_UNFILTERED: Final = re.compile(r" *(?:Call Trace:|Hardware name: |R\w\w: |</?TASK>)")
"""Lines that a search for OOM kills does not find: a log that has them is not filtered."""
_MARKS: Final = (
    "invoked oom-killer",
    "memory: usage",
    "oom-kill:",
    ": Kill ",
    "illed process",
    "oom_reaper:",
)
"""Parts of a report, in the kernel's order."""
_FOREIGN: Final = re.compile(r" [\w@.-]{1,64}\[\d{1,10}\]: ", re.ASCII)
"""The prefix of another program; a terminal may have broken such a line in two."""
_PART_OF_PREFIX: Final = re.compile(r"^(?:.{0,99}\bkernel: )?(?:\[?[ \d.]*\] )?(?=\S)", re.ASCII)
"""The rest of a prefix whose beginning was not copied."""
_OF_PLEG: Final = re.compile(
    r"SyncLoop \(PLEG\): (?:event for pod\W{2,4}pod=\W{1,2}(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)"
    r"|\W{1,2}(?P<old_name>[a-z0-9.-]+)_(?P<old_namespace>[a-z0-9-]+)\()"
    r".{0,60}\bID\W{1,5}(?P<uid>[\da-f-]{32,36})\b.{1,8}\bType\W{1,5}Container\w{4,8}\W{1,6}Data\W{1,5}"
    r"(?P<id>[\da-f]{64})\b",
    re.ASCII,
)
"""A kubelet's line about a container that it started or that ended: kubelet.go (syncLoopIteration)."""
_OF_POD: Final = re.compile(
    r'\bpod="(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)" podUID="?(?P<uid>[\da-f-]{32,36})\b'
    r"|\b(?P<old_name>[a-z0-9][a-z0-9.-]{0,252})_(?P<old_namespace>[a-z0-9-]+)\((?P<old_uid>[\da-f-]{32,36})\)",
    re.ASCII,
)
"""How a kubelet names a pod in its other lines; before 1.19 as `NAME_NAMESPACE(UID)`."""
_DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d(?=[T ]\d\d:\d\d)", re.ASCII)
_NEW_LINE: Final = re.compile(r"\n|\\x0a")
"""Line breaks in a message, as journals and /dev/kmsg write them."""
_LEAST_INDENT: Final = 2
_LONGEST_GAP: Final = 80
_GAP: Final = re.compile(
    r"\W*(?:\.(?: ?\.){2,}|…+|-{2,}|={3,}|\*{3,}|#{2,}|~{3,}|`{3,}\w*)\W*"
    r"|(?!</?TASK>|\[<)(?:<[^<>]*>|\[(?! *\d).*\]|\(.*\)|([-=*#~+])\1+ ?[^/:=]* ?\1+|(?://|#) .*|-+8<-+)"
    r"|.{0,40}\b(?:snip(?:ped)?|omitted|truncated|skipped|removed|more lines|lines later)\b.{0,40}",
    re.IGNORECASE,
)
"""A line in place of omitted lines, or between two logs."""
_HEADING: Final = re.compile(r"==> .{1,255} <==")
_LOST: Final = re.compile(r"Missed \d+ kernel messages|printk messages dropped|messages lost", re.ASCII)
"""How journald, rsyslog and the kernel say that the log lacks lines."""
KMSG: Final = Path("/dev/kmsg")
_RECORD_BYTES: Final = 16_384
"""More than a record of /dev/kmsg has: reading with a smaller buffer fails."""


def read_file(path: str, node: str = "") -> KernelLog:
    """Read the reports in a file, compressed or not; `-` is standard input. Raises InputError."""
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
    return structs.replace(log, node=node, title=title)


def read_kmsg(path: Path = KMSG, node: str = "") -> KernelLog:
    """Read the log in the buffer of this node's kernel. Raises InputError."""
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
    until = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # Whatever the time of its last line.
    return structs.replace(log.with_boot_time(booted), last=until, node=node, title=str(path))


def read_log(lines: Iterable[str], now: datetime | None = None) -> KernelLog:
    """Read a whole log, the oldest line first or last. `now` gives the year of times without one."""
    reader, pods = _LogReader(now), dict[str, tuple[str, str]]()
    reports: deque[OomReport] = deque()
    fragments: list[int] = []
    tables: list[OomReport] = []
    tasks = left_out = 0
    for report in reader.reports(messages(_noting_pods(lines, pods), now)):
        if not report.has_cause:
            if report.is_certain or report.tasks:
                fragments.append(report.line)
            if report.tasks and len(tables) < _MOST_OPEN:
                tables.append(report)
            continue
        reports.append(report)
        tasks += len(report.tasks)
        while len(reports) > MOST_REPORTS or (tasks > MOST_TASKS and len(reports) > 1):
            tasks -= len(reports.popleft().tasks)
            left_out += 1
    if not reports:
        # Even a table alone shows who used the memory.
        reports.extend(tables)
        fragments = [] if tables else fragments
    log = reader.lines
    return KernelLog(
        tuple(reports),
        log.first_time,
        log.last_time,
        left_out,
        log.count,
        fragments=tuple(fragments),
        unread=tuple(reader.unread),
        is_kernel=log.is_kernel,
        first_line=log.first_line,
        pods=pods,
    )


def _noting_pods(lines: Iterable[str], pods: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the lines, and note the pods that a kubelet names in between, by UID and container ID."""
    for line in lines:
        match = _OF_PLEG.search(line) if "(PLEG)" in line else None
        other = _OF_POD.search(line) if match is None and ".go:" in line else None
        of_pod = match or other
        if of_pod is not None and len(pods) < MOST_REPORTS:
            pod = of_pod["namespace"] or of_pod["old_namespace"], of_pod["name"] or of_pod["old_name"]
            keys = (match["id"], match["uid"]) if match is not None else (of_pod["uid"] or of_pod["old_uid"],)
            pods |= dict.fromkeys(keys, pod)
        yield line


def _check_understood(log: KernelLog, title: str) -> None:
    """Raise InputError unless a log without reports has lines of the kernel, which prove that it has none."""
    if log.reports or log.first_line == _NO_ENTRIES:
        return
    if not log.first_line:
        raise InputError(f"the kernel log {title} is empty", hint=_HINT)
    counted = _COUNTED.match(log.first_line)
    if counted is not None:
        raise InputError(f"{title} counts OOM kills in a cgroup, {counted[1]}, but names no process", _NAMES)
    other = next((other for other in _OTHER_FORMATS if other[0].match(log.first_line)), None)
    if log.is_kernel or other is None:
        if log.fragments:
            where = f"{title} line {log.fragments[0]}"
            raise InputError(f"{where}: an OOM report breaks off before its cause and its victim", hint=_HINT)
        if log.unread:
            where = f"{title} line {log.unread[0]}"
            raise InputError(f"{where}: part of an OOM report comes after an unknown prefix", hint=_HINT)
    if not log.is_kernel:
        _, what, hint = other or (None, "text without lines of the kernel", _HINT)
        what = f"it is {what}, and begins with {log.first_line[:60]!r}"
        raise InputError(f"the kernel log {title} is not understood: {what}", hint=hint)


def _is_gap(text: str) -> bool:
    if "messages" in text and _LOST.search(text) is not None:
        return True
    text = text.strip()
    return len(text) <= _LONGEST_GAP and _GAP.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class _Pending:
    """A message that may continue: its text, its parsed record, and its last line."""

    text: str
    record: LogRecord
    last: str

    def with_rest(self, space: str, rest: str, line: str, now: datetime | None) -> "_Pending | None":
        # The columns of a table end with spaces, unless they were stripped.
        text = f"{self.text.rstrip()}{' ' if self.text[-1:].isspace() else space}{rest}"
        record = parse_line(text, now)
        if record is None:
            return None
        if record.is_bare:
            whole = structs.replace(self.record, message=record.message)
        else:
            begin = self.record
            whole = structs.replace(record, line=begin.line, place=begin.place, part=begin.part)
        return _Pending(text, whole, line)


class _MessageReader:
    """Yields the messages of a log that may belong to reports, each joined from its lines."""

    def __init__(self, now: datetime | None, is_inside: Callable[[], bool]) -> None:
        self._now = now
        self._is_inside = is_inside
        self._width = self._indent = self._indent_of_rest = 0
        self._is_cut_at_width = self._is_year_known = self._is_foreign = False
        self._place = 0
        self._part = ""
        self._before: LogRecord | None = None
        self._last_line = ""
        self.prose: list[LogRecord] = []
        self.is_filtered = True
        self.first_time = self.first_line = ""
        self.count = 0
        self.is_kernel = False

    @property
    def last_time(self) -> str:
        """Return the time of the last line, which may be another program's, as in `journalctl -k`."""
        last = parse_line(_FOREIGN.sub(" kernel: ", self._last_line, count=1), self._now)
        return last.time if last is not None else ""

    def records(self, numbered: Iterator[Numbered]) -> Iterator[LogRecord | None]:
        """Yield the messages, and None where lines were left out."""
        pending: _Pending | None = None
        gap = ""
        for number, text in self._oldest_first(numbered):
            self.count = max(self.count, number)
            if not text or text.isspace():
                self._is_foreign = False
                continue
            self.first_line = text if _COUNTED.match(text) is not None else self.first_line or text
            quoted = _IN_PROSE.match(text) if not self.is_kernel else None
            if quoted is not None and (said := parse_line(text, self._now)) is not None:
                self.prose.append(
                    LogRecord(quoted["words"], said.time, is_bare=True, line=number, place=number)
                )
            if _is_gap(text):
                gap, self._is_foreign = gap + text, False
                self._part = text if _HEADING.fullmatch(text) is not None else self._part
                continue
            record = None
            if pending is not None:
                record = parse_line(text, self._now)
                whole = self._joined(pending, text, record) if not gap else None
                if whole is not None:
                    pending = whole
                    continue
                yield self._finished(pending)
                pending = None
            if gap:
                yield None
                gap = ""
            if not text[0].isspace():
                self._last_line = text
            self._place += 1
            pending = self._begin(number, text, record)
        if pending is not None:
            # Before an elision a line is whole, but not before the end of a quotation.
            yield self._finished(pending, is_last=not ("..." in gap or "…" in gap))

    def _oldest_first(self, numbered: Iterator[Numbered]) -> Iterable[Numbered]:
        """Reverse a log whose newest line is first, as log stores and `journalctl -r` write it."""
        head = list(islice(numbered, _FIRST_LINES))
        parsed = self._measure([text for _, text in head if text and not text.isspace()])
        marks = [place for _, text in head for place, mark in enumerate(_MARKS) if mark in text]
        steps = [next_place - place for place, next_place in pairwise(marks)]
        rises, falls = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
        times = [when for record in parsed if (when := _when(record)) is not None]
        is_falling = all(time >= next_time for time, next_time in pairwise(times))
        has_times = len(set(times)) > 1
        # A single fall may be between two reports: then times have to fall too.
        is_reversed = falls > rises and (has_times or falls > 1) if steps else has_times
        lines = chain(head, numbered)
        if not (is_falling and is_reversed):
            return lines
        is_bare = all(record.is_bare for record in parsed)
        records: list[list[Numbered]] = []
        for line in lines:
            record = parse_line(line[1], self._now)
            if is_bare or not records or record is None or not record.is_bare:
                records.append([])
            records[-1].append(line)
        return chain.from_iterable(reversed(records))

    def _measure(self, texts: list[str]) -> list[LogRecord]:
        """Find where lines are broken or cut, and the year; return the parsed lines."""
        self._indent = min((len(text) - len(text.lstrip()) for text in texts), default=0)
        lengths = Counter(len(text.strip()) for text in texts)
        longest = max(lengths, default=0)
        self._width = longest if lengths[longest] > 1 else 0
        full = [text for text in texts if self._is_full(text)]
        self._is_cut_at_width = len(full) > 2 and len({message_start_in(text) for text in full} - {""}) > 1
        records = [parse_line(text, self._now) for text in texts]
        rests = [
            len(rest) - len(rest.lstrip())
            for text, rest, record in zip(texts, texts[1:], records[1:], strict=False)
            if self._is_full(text) and record is not None and record.is_bare and not _is_gap(rest)
        ]
        self._indent_of_rest = min(rests, default=self._indent)
        parsed = [record for record in records if record is not None]
        days = {record.time[5:10] for record in parsed if record.year_is_guessed and record.time}
        dates = {match[0] for text in texts if days for match in _DATE.finditer(text) if match[0][5:] in days}
        with suppress(ValueError):
            if dates:
                self._now = datetime.fromisoformat(max(dates)).replace(tzinfo=UTC) + timedelta(days=1)
                self._is_year_known = True
        return parsed

    def _is_full(self, text: str) -> bool:
        return self._width > 0 and self._width in {len(text.strip()), len(text.rstrip()) - self._indent}

    def _joined(self, pending: _Pending, text: str, record: LogRecord | None) -> _Pending | None:
        """Join a line to the message before it; None if the line is a separate message."""
        if record is None:
            return None
        before = pending.record.message
        if not record.is_bare:
            is_more = is_continued(before, record.message)
            return pending.with_rest("", record.message, text, self._now) if is_more else None
        is_full = self._is_full(pending.last)
        rest = text.strip()
        if is_full and not text[: self._indent_of_rest].strip():
            rest = text[self._indent_of_rest :].rstrip()
        space = gap_before_rest(before, rest, is_full=is_full)
        return pending.with_rest(space, rest, text, self._now) if space is not None else None

    def _begin(self, number: int, text: str, record: LogRecord | None) -> _Pending | None:
        """Return the message that begins with this line, or None if no report can have it."""
        is_wanted = any(word in text for word in _WORDS) or _ROW.search(text) is not None
        is_wanted = is_wanted or self._is_inside() or self._is_full(text)
        is_first = not self.first_time and number <= _FIRST_LINES
        is_prefix = len(text) < _LONGEST_GAP and text.rstrip()[-1:] in ":[]"
        if is_wanted or is_first or not self.is_kernel or is_prefix:
            record = record or parse_line(text, self._now)
        if record is None:
            self._before = None
            self._is_foreign |= _FOREIGN.search(text) is not None
            return None
        if self._place == 1 and record.is_bare:
            text = _PART_OF_PREFIX.sub("", text)
            record = structs.replace(record, message=_PART_OF_PREFIX.sub("", record.message))
        if self._before is not None and record.is_bare and text[: self._indent + _LEAST_INDENT].isspace():
            # Only the first line of a message has a prefix, the others are indented.
            record = structs.replace(self._before, message=record.message)
        self._before = self._before if record.is_bare else record
        self._is_foreign &= record.is_bare and _ROW.match(record.message) is None
        if self._is_foreign:
            return None
        self.first_time = self.first_time or (record.time if is_first else "")
        self.is_kernel = self.is_kernel or record.is_kernel
        self.is_filtered &= _UNFILTERED.match(record.message) is None
        # A prefix alone may have lost its message to the next line.
        if not (is_wanted or gap_before_rest(record.message, "", is_full=False)):
            return None
        is_guessed = record.year_is_guessed and not self._is_year_known
        return _Pending(
            text,
            structs.replace(
                record, line=number, place=self._place, part=self._part, year_is_guessed=is_guessed
            ),
            text,
        )

    def _finished(self, pending: _Pending, *, is_last: bool = False) -> LogRecord:
        """Return the message, marked as cut if it may not end there."""
        message = pending.record.message
        is_cut = self._is_cut_at_width and self._is_full(pending.last)
        is_cut = is_cut and not (is_whole(message) and not message[-1:].isdigit())
        # Whether the last line of a log is whole is unknown.
        is_cut = is_cut or (is_last and not is_whole(message))
        return structs.replace(pending.record, message=message + CUT) if is_cut else pending.record


def _when(record: LogRecord) -> tuple[bool, float] | None:
    moment = parse_time(record.time)
    if moment is not None:
        return True, moment.timestamp()
    return (False, record.uptime) if record.uptime is not None else None


class _LogReader:
    """Collects the reports of a log; node, processor and time say to which open report a line belongs."""

    def __init__(self, now: datetime | None) -> None:
        self._open: deque[ReportBuilder] = deque()
        self._recent: deque[tuple[float, str]] = deque(maxlen=_MOST_REPEATED)
        self.lines = _MessageReader(now, lambda: any(report.is_inside for report in self._open))
        self.unread: list[int] = []

    def reports(self, numbered: Iterator[Numbered]) -> Iterator[OomReport]:
        has_cause = False
        for report in self._reports(numbered):
            has_cause |= report.has_cause
            yield report
        if not (has_cause or self.lines.is_kernel):
            for record in self.lines.prose:
                yield from self._take(record)
            yield from self._rest()

    def _reports(self, numbered: Iterator[Numbered]) -> Iterator[OomReport]:
        for record in self.lines.records(numbered):
            if record is None:
                for report in self._open:
                    report.has_gap = True
                continue
            if self._is_repeated(record):
                continue
            parts = _NEW_LINE.split(record.message)
            for message in parts:
                yield from self._take(structs.replace(record, message=message) if len(parts) > 1 else record)
        yield from self._rest()

    def _is_repeated(self, record: LogRecord) -> bool:
        """Return whether a user copied this line twice: no message repeats within a microsecond."""
        if record.uptime is None or self._recent.count((record.uptime, record.message)):
            return record.uptime is not None
        self._recent.append((record.uptime, record.message))
        return False

    def _take(self, record: LogRecord) -> Iterator[OomReport]:
        reaped = REAPED.match(record.message)
        is_only = len(self._open) == 1
        if reaped is not None and any(
            report.add_reaped(record, int(reaped["pid"]), comm, is_only=is_only)
            for comm in ("", reaped["comm"])
            for report in reversed(self._open)
        ):
            return
        of_unit = OF_UNIT.match(record.message)
        if of_unit is not None and any(
            report.add_unit(record, *of_unit.groups(), is_only=is_only) for report in self._open
        ):
            return
        is_daemon = bool(record.program) or (not record.is_kernel and is_daemon_line(record.message))
        kind = SecondHandKill if record.program == SECOND_HAND else DaemonKill if is_daemon else ReportBuilder
        near = [report for report in reversed(self._open) if report.is_near(record)]
        # A line without a time belongs to the newest report, if to any.
        near = [report for report in (near if record.has_time else near[:1]) if type(report) is kind]
        # A log may have reports of two nodes: the line belongs to the report with the nearest last line.
        near.sort(key=lambda report: (report.is_of_unit, abs(report.seconds_to(record) or 0)))
        for report in near:
            if report.add_line(record):
                self._open = report.merge_open(self._open)
                return
            if _MARKS[0] in record.message:
                report.note_continuation()
        begun = kind.begin(record)
        if begun is not None:
            for report in near[:1]:
                report.move_last_victim_to(begun)
            self._open.append(begun)
            self._open = begun.merge_open(self._open)
            if len(self._open) > _MOST_OPEN:
                yield self._close()
        elif not record.program and _RELEVANT.search(record.message) is not None:
            self.unread.append(record.line)

    def _rest(self) -> Iterator[OomReport]:
        while self._open:
            yield self._close()

    def _close(self) -> OomReport:
        return self._open.popleft().report(is_filtered=self.lines.is_filtered)


_COUNTED: Final = re.compile(r"oom_kill ([1-9]\d{0,9})\s*$", re.ASCII)
"""A line of memory.events (v2) or memory.oom_control (v1)."""
_HINT: Final = "write it on the node: journalctl -k -o short-iso > FILE, or dmesg > FILE"
_NAMES: Final = f"the kernel log names them; {_HINT}"
_NO_ENTRIES: Final = "-- No entries --"
_OTHER_FORMATS: Final = (
    (
        re.compile(
            r"Name: {2}|.*\b(?:kubectl|oc|k) (?:describe|get)\b|Events:$"
            r"|(?:NAMESPACE +)?(?:LAST SEEN |NAME +READY )"
        ),
        "output of kubectl",
        "give it with -f",
    ),
    (re.compile(r".*[\x00-\x06\ufffd]"), "binary data", _HINT),
    (re.compile(r'\{?\s*"?(?:apiVersion|kind)"?:'), "a Kubernetes object", "give it with -f"),
    (
        re.compile(r'[{\[]\s*(?:["{\[]|$)'),
        "JSON without messages of the kernel",
        "journalctl -k -o json > FILE",
    ),
    (re.compile(r"<[!?a-zA-Z]"), "XML or HTML", _HINT),
    (re.compile(r"---|[A-Za-z]\w*:(?: |$)"), "YAML", "gcloud logging read --format=json"),
    (
        re.compile(r".*(?:Got sys oom event|TaskOOM|Created an OOM event)"),
        "a log of the kubelet or of its runtime, which repeats OOM kills but not their cause",
        _HINT,
    ),
    (
        re.compile(r".*(?i:eviction[_ ]manager)"),
        "a log of the kubelet without a line about an OOM kill",
        "-f FILE reads its evictions; kubectl get pods,events -A -o json > FILE says more",
    ),
    (
        re.compile(
            r".*\b(?:kubelet|kubelite|k3s|rke2|crio|conmon|containerd|dockerd)(?:\[\d+\])?: "
            r"|(?:.*: )?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w-]+\.go:\d+\]"
        ),
        "a log of the kubelet or of a container runtime without a known line about an OOM kill",
        _HINT,
    ),
    (
        re.compile(
            r".{0,20}/sys/fs/cgroup/|(?:.{0,99}/)?memory\.[a-z]"
            r"|(?:low|high|max|oom|oom_kill|oom_kill_disable|anon|cache) \d{1,20}$"
        ),
        "text of a cgroup's files, which count OOM kills (oom_kill) but name no process",
        _HINT,
    ),
    (
        re.compile(f".*(?:{'|'.join(sign for killer in KILLERS for sign in killer.log.signs)})"),
        "a log of an OOM daemon in which no kill is understood",
        "give the lines that follow as well",
    ),
    (
        re.compile(r"(?!.*oom[-_]kill|.*Killed process)[^,\s]*(?:,[^,]+){2}|[^\t]*\t[^\t]*\t"),
        "a table of comma or tab separated values",
        _HINT,
    ),
)
"""Formats that are not understood, by their first line, with the remedy."""


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
            # Longer ones are not records.
            rest = rest[-_RECORD_BYTES:]
    if rest:
        yield rest.decode(errors="replace")
