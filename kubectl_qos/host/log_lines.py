"""Lines of kernel logs, whoever wrote them down: dmesg, /dev/kmsg, journalctl, syslog, Talos, Bottlerocket.

What stands before a message is taken off and understood: when, on which machine, by which context of the
kernel. A message that did not come from the kernel (another facility, another program) is left out: anybody
may write such lines. Not here: what messages mean (kernel_log.py).

Formats: util-linux dmesg(1), kernel Documentation/ABI/testing/dev-kmsg, systemd journalctl(1) -o and
JOURNAL_EXPORT_FORMATS, RFC 3164 and 5424, `talosctl dmesg` and Talos' log sinks. Bottlerocket has a journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, Final

import msgspec

LONGEST: Final = 65_536
"""Longer lines are cut: no kernel writes them, and a journal's JSON does not either."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One message of the kernel.

    `time` is RFC 3339, without a zone where the log says none; `uptime` seconds since boot. `caller` is the
    thread or processor that a kernel with CONFIG_PRINTK_CALLER names. `is_continued` is an indented line with
    nothing else before it: the message before it goes on.
    """

    message: str
    time: str = ""
    uptime: float | None = None
    node: str = ""
    caller: str = ""
    is_continued: bool = False


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of a file, one in memory at a time, decoded whatever they hold."""
    while piece := stream.readline(LONGEST):
        yield piece.decode(errors="replace").rstrip("\r\n")
        while piece and not piece.endswith(b"\n"):
            piece = stream.readline(LONGEST)


class PrefixParser:
    """Takes off what stands before messages. `now` gives lines without a year theirs: the latest possible."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now

    def record(self, text: str) -> LogRecord | None:
        """The message of a line, None where it is not the kernel's."""
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        is_indented = text.startswith((" ", "\t"))
        text = text.strip("\x1e\ufeff \t\r")
        if text.startswith(("{", "data: {")):
            return _json_record(text.removeprefix("data: "))
        return self._text_record(text, is_indented=is_indented)

    def _text_record(self, text: str, *, is_indented: bool) -> LogRecord | None:
        front = _Front()
        place = front.named(text)
        while (found := _PIECE.match(text, place)) is not None:
            place, kind = found.end(), str(found.lastgroup)
            said = found[kind]
            if kind in _TIMES:
                front.time = self._time(kind, said) or front.time
            elif not front.take(kind, said):
                return None
            who = _host_form(found, kind).match(text, place)
            if who is not None:
                if who["program"] != "kernel":
                    return None
                front.node, place = who["host"] or front.node, who.end()
        is_continued = is_indented and not place
        return LogRecord(text[place:], front.time, front.uptime, front.node, front.caller, is_continued)

    def _time(self, kind: str, text: str) -> str:
        """RFC 3339 of a time in one of the forms that logs use; empty for one that does not exist."""
        try:
            if kind == "unix":
                return _rfc3339(datetime.fromtimestamp(float(text), UTC))
            if kind == "iso":
                return _rfc3339(datetime.fromisoformat(text.replace(",", ".")))
            if kind == "full":
                date, clock, *zone = text.split()[1:]
                found = datetime.fromisoformat(f"{date}T{clock}")
                return _rfc3339(found.replace(tzinfo=UTC) if zone == ["UTC"] else found)
            if kind == "ctime":
                _, month, day, clock, year = text.split()
                return _rfc3339(_moment(int(year), month, day, clock))
            return self._without_year(*text.split())
        except (ValueError, OverflowError, OSError):
            return ""

    def _without_year(self, month: str, day: str, clock: str) -> str:
        """RFC 3164 has no year: it is the one that makes it the latest time that is not in the future."""
        if self._now is None:
            return ""
        latest = self._now.astimezone(UTC).replace(tzinfo=None) + timedelta(days=1)
        for year in range(latest.year, latest.year - _LEAP_YEARS, -1):
            try:
                found = _moment(year, month, day, clock)
            except ValueError:
                continue
            if found <= latest:
                return _rfc3339(found)
        return ""


class _Front:
    """What stands before a message, as far as it was read."""

    def __init__(self) -> None:
        self.time = self.node = self.caller = ""
        self.uptime: float | None = None

    def named(self, text: str) -> int:
        """Where a line goes on after the name of a machine that somebody put before everything."""
        found = _NAMED.match(text)
        if found is None:
            return 0
        self.node = found["name"] or found["bracketed"]
        return found.end()

    def take(self, kind: str, said: str) -> bool:
        """Whether a piece that is no time leaves it the kernel's."""
        if kind == "level":
            return int(said) <= _KERNEL_LEVELS
        if kind == "facility":
            return said == "kern"
        if kind == "uptime":
            self.uptime = float(said)
        elif kind == "caller":
            self.caller = said
        else:
            level, _, since_boot, *others = said.split(",")
            self.uptime = int(since_boot) / 1_000_000
            self.caller = next((one[7:] for one in others if one.startswith("caller=")), "")
            return int(level) <= _KERNEL_LEVELS
        return True


def _host_form(found: re.Match[str], kind: str) -> re.Pattern[str]:
    """What may name machine and program after this piece.

    After times of a journal or of syslog any program may; dmesg's own are in brackets or have a comma.
    """
    if kind in {"syslog", "full", "unix"} or (kind == "iso" and found[0][0] != "[" and "," not in found[0]):
        return _HOST
    return _HOST_KERNEL if kind == "uptime" else _NEVER


class JournalExport:
    """An entry of `journalctl -o export`: fields on lines of their own, and an empty line at the end."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def add(self, text: str) -> LogRecord | None:
        """The record that this line completes."""
        if not text:
            return self.end()
        name, has_value, value = text.partition("=")
        if has_value and name in _EXPORTED:
            self._fields[name] = value
        return None

    def end(self) -> LogRecord | None:
        """The entry so far."""
        found, self._fields = self._fields, {}
        return _journal_record(_JournalEntry(**{_EXPORTED[name]: value for name, value in found.items()}))


class _JournalEntry(msgspec.Struct, frozen=True):
    """A journal entry, or one of Talos, as far as we read it; numbers are texts in a journal."""

    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="")
    source_monotonic: str = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default="")
    host: str = msgspec.field(name="_HOSTNAME", default="")
    transport: str = msgspec.field(name="_TRANSPORT", default="")
    identifier: str = msgspec.field(name="SYSLOG_IDENTIFIER", default="")
    talos_message: str = msgspec.field(name="msg", default="")
    talos_time: str = msgspec.field(name="talos-time", default="")
    talos_facility: str = msgspec.field(name="facility", default="")


_EXPORTED: Final = {
    "MESSAGE": "message",
    "__REALTIME_TIMESTAMP": "realtime",
    "_SOURCE_MONOTONIC_TIMESTAMP": "source_monotonic",
    "_HOSTNAME": "host",
    "_TRANSPORT": "transport",
    "SYSLOG_IDENTIFIER": "identifier",
}
EXPORT_BEGINS: Final = ("__CURSOR=", "__REALTIME_TIMESTAMP=")
_entries = msgspec.json.Decoder(_JournalEntry)


def _json_record(text: str) -> LogRecord | None:
    try:
        entry = _entries.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return _journal_record(entry)


def _journal_record(entry: _JournalEntry) -> LogRecord | None:
    if entry.talos_message:
        if entry.talos_facility not in {"", "kern"}:
            return None
        return LogRecord(entry.talos_message, PrefixParser()._time("iso", entry.talos_time))  # noqa: SLF001 - its own
    message = entry.message
    if isinstance(message, list):
        # A message that is no UTF-8 is an array of bytes.
        message = bytes(one & 0xFF for one in message).decode(errors="replace")
    # A message by the journal's own road comes from the kernel; one in syslog's form only says so.
    is_kernel = entry.transport == "kernel" if entry.transport else entry.identifier in {"", "kernel"}
    if not message or not is_kernel:
        return None
    time = PrefixParser()._time("unix", _seconds(entry.realtime)) if entry.realtime else ""  # noqa: SLF001
    uptime = float(_seconds(entry.source_monotonic) or 0) or None
    return LogRecord(message, time, uptime, entry.host)


def _seconds(microseconds: str) -> str:
    return f"{int(microseconds) / 1_000_000:.6f}" if _DIGITS.fullmatch(microseconds) else ""


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEAP_YEARS: Final = 9
"""So many years back there is a February 29th for certain."""


def _moment(year: int, month: str, day: str, clock: str) -> datetime:
    """`dmesg -T` spells months as the locale does; a number before 月 or 월 is one."""
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month.rstrip("月월"))
    date = f"{year:04}-{number:02}-{int(day):02}"
    return datetime.fromisoformat(f"{date}T{clock}")


def _rfc3339(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


_KERNEL_LEVELS: Final = 7
"""Priorities above are of other facilities: written to /dev/kmsg by programs."""
_DIGITS: Final = re.compile(r"\d{1,18}", re.ASCII)
_ANSI: Final = re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]")
_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_MONTH: Final = "|".join(_MONTHS)
_ISO: Final = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
_CTIME: Final = rf"[^\[\]:]{{3,40}} {_CLOCK} \d{{4}}"
_FACILITY: Final = r"kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d"

_TIMES: Final = frozenset({"ctime", "iso", "syslog", "full", "unix"})

_PIECE: Final = re.compile(
    "|".join(
        (
            r"<(?P<level>\d{1,3})>(?:1 )?",
            r"\[ {0,12}(?P<uptime>\d{1,12}\.\d{1,9})\] ?",
            r"\[ {0,12}(?P<caller>[TC]\d{1,10})\] ?",
            rf"\[(?P<ctime>{_CTIME})\] ?",
            rf"\[?(?P<iso>{_ISO})\]?:? ",
            rf"(?P<syslog>(?:{_MONTH}) [ \d]\d {_CLOCK}) ",
            rf"(?P<full>[A-Z][a-z]{{2}} \d{{4}}-\d\d-\d\d {_CLOCK} [A-Z+\-\d:]{{1,9}}) ",
            r"(?P<unix>\d{9,11}\.\d{1,9}) ",
            r"(?P<kmsg>\d{1,5},\d{1,20},\d{1,18},[^;\s]{1,64});",
            rf"(?P<facility>{_FACILITY}) {{0,6}}: {{0,8}}[a-z]{{3,7}} {{0,6}}: ",
        )
    ),
    re.ASCII,
)
_HOST: Final = re.compile(
    r"(?:(?P<host>[\w.:-]{0,252}[\w.-]) )?(?:[a-z]{3,8}\.[a-z]{3,7} )?"
    r"(?P<program>[\w@./-]{1,64})(?:\[\d+\]: ?|: ?| - - - )",
    re.ASCII,
)
_HOST_KERNEL: Final = re.compile(r"(?P<host>[\w.:-]{0,252}[\w.-]) (?P<program>kernel): ", re.ASCII)
_NEVER: Final = re.compile("(?!)")
_NAMED: Final = re.compile(
    r"(?:(?P<name>[\w.:-]{1,253}?)(?::| \|) |\[(?P<bracketed>[\w./:-]{1,253})\] )"
    rf"(?=<\d|\[ *\d+\.\d+\] |\[?{_ISO}|\[{_CTIME}|(?:{_MONTH}) [ \d]\d \d\d:|(?:{_FACILITY}) *:)",
    re.ASCII,
)
