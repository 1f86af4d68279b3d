"""Lines of kernel logs by dmesg, /dev/kmsg, journalctl, syslog or Talos, without what precedes the message.

Messages that are not the kernel's (another facility, another program) are left out, as anything may write
such lines. Not here: their meaning (oom_lines.py).

Formats: util-linux dmesg(1), kernel Documentation/ABI/testing/dev-kmsg, systemd journalctl(1) -o and
JOURNAL_EXPORT_FORMATS, RFC 3164 and 5424, `talosctl dmesg` and Talos' log sinks. Bottlerocket has a journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Final

import msgspec

LONGEST: Final = 65_536
"""Longer lines are cut; no kernel writes them, and no journal."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A message of the kernel; `time` is RFC 3339, `uptime` seconds since boot.

    `caller` is the thread or processor that a kernel with CONFIG_PRINTK_CALLER names; a continued message has
    neither a prefix nor a time.
    """

    message: str
    time: str = ""
    uptime: float | None = None
    node: str = ""
    caller: str = ""
    is_continued: bool = False


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of a file, one in memory at a time; what is not UTF-8 is replaced."""
    while piece := stream.readline(LONGEST):
        yield piece.decode(errors="replace").rstrip("\r\n")
        while piece and not piece.endswith(b"\n"):
            piece = stream.readline(LONGEST)


def parse_line(text: str, now: datetime | None = None) -> LogRecord | None:
    """The kernel's message in a line, or None; without a year it is of the latest one before `now`."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    is_indented = text.startswith((" ", "\t"))
    text = text.strip("\x1e\ufeff \t\r")
    if text.startswith(("{", "data: {")):
        try:
            return _journal_record(_entries.decode(text.removeprefix("data: ")))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
    fields: dict[str, Any] = {}
    position = 0
    named = _NAMED.match(text)
    if named is not None:
        fields["node"], position = named["name"] or named["bracketed"], named.end()
    while (piece := _PIECE.match(text, position)) is not None:
        position, kind = piece.end(), str(piece.lastgroup)
        if kind in _TIMES:
            fields["time"] = _parse_time(kind, piece[kind], now) or fields.get("time", "")
        elif not _add_piece(fields, kind, piece[kind]):
            return None
        source = _source_form(piece, kind).match(text, position)
        if source is not None:
            if source["program"] != "kernel":
                return None
            fields["node"], position = source["host"] or fields.get("node", ""), source.end()
    return LogRecord(text[position:], **fields, is_continued=is_indented and not position)


def _add_piece(fields: dict[str, Any], kind: str, value: str) -> bool:
    """Add a piece of the prefix that is not a time; False if the message is not the kernel's."""
    if kind == "level":
        return int(value) <= _KERNEL_LEVELS
    if kind == "facility":
        return value == "kern"
    if kind == "kmsg":
        level, _, since_boot, *others = value.split(",")
        fields["uptime"] = int(since_boot) / 1_000_000
        fields["caller"] = next((one[7:] for one in others if one.startswith("caller=")), "")
        return int(level) <= _KERNEL_LEVELS
    fields[kind] = float(value) if kind == "uptime" else value
    return True


def _source_form(piece: re.Match[str], kind: str) -> re.Pattern[str]:
    """What may name node and program: any after the times of a journal or syslog, but not of dmesg."""
    if kind in {"syslog", "full", "unix"} or (kind == "iso" and piece[0][0] != "[" and "," not in piece[0]):
        return _HOST
    return _HOST_KERNEL if kind == "uptime" else _NEVER


def _parse_time(kind: str, text: str, now: datetime | None = None) -> str:
    try:
        if kind == "unix":
            return _rfc3339(datetime.fromtimestamp(float(text), UTC))
        if kind == "iso":
            return _rfc3339(datetime.fromisoformat(text.replace(",", ".")))
        if kind == "full":
            date, clock, *zone = text.split()[1:]
            time = datetime.fromisoformat(f"{date}T{clock}")
            return _rfc3339(time.replace(tzinfo=UTC) if zone == ["UTC"] else time)
        if kind == "ctime":
            _, month, day, clock, year = text.split()
            return _rfc3339(_datetime(int(year), month, day, clock))
        month, day, clock = text.split()
        return _without_year(month, day, clock, now) if now is not None else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _without_year(month: str, day: str, clock: str, now: datetime) -> str:
    """RFC 3164 has no year: the latest one in which the time is not in the future."""
    latest = now.astimezone(UTC).replace(tzinfo=None) + timedelta(days=1)
    for year in range(latest.year, latest.year - _LEAP_YEARS, -1):
        try:
            time = _datetime(year, month, day, clock)
        except ValueError:
            continue
        if time <= latest:
            return _rfc3339(time)
    return ""


class _JournalEntry(msgspec.Struct, frozen=True):
    # Numbers are texts in a journal.
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="")
    source_monotonic: str = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default="")
    host: str = msgspec.field(name="_HOSTNAME", default="")
    transport: str = msgspec.field(name="_TRANSPORT", default="")
    identifier: str = msgspec.field(name="SYSLOG_IDENTIFIER", default="")
    talos_message: str = msgspec.field(name="msg", default="")
    talos_time: str = msgspec.field(name="talos-time", default="")
    talos_facility: str = msgspec.field(name="facility", default="")


_entries = msgspec.json.Decoder(_JournalEntry)
_EXPORTED: Final = frozenset(name for name in _JournalEntry.__struct_encode_fields__ if name.isupper())
EXPORT_BEGINS: Final = ("__CURSOR=", "__REALTIME_TIMESTAMP=")


class JournalExport:
    """An entry of `journalctl -o export`: a line for each field, and an empty line at the end."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def add(self, text: str) -> LogRecord | None:
        """The record that this line completes."""
        name, has_value, value = text.partition("=")
        if has_value and name in _EXPORTED:
            self._fields[name] = value
        return self.end() if not text else None

    def end(self) -> LogRecord | None:
        """The record of the fields so far."""
        fields, self._fields = self._fields, {}
        return _journal_record(msgspec.convert(fields, _JournalEntry))


def _journal_record(entry: _JournalEntry) -> LogRecord | None:
    if entry.talos_message:
        if entry.talos_facility not in {"", "kern"}:
            return None
        return LogRecord(entry.talos_message, _parse_time("iso", entry.talos_time))
    message = entry.message
    if isinstance(message, list):
        # A message that is not UTF-8 is an array of bytes.
        message = bytes(one & 0xFF for one in message).decode(errors="replace")
    # In syslog's format anything can claim to be the kernel; the journal's own transport is proof.
    is_kernel = entry.transport == "kernel" if entry.transport else entry.identifier in {"", "kernel"}
    if not message or not is_kernel:
        return None
    time = _parse_time("unix", _seconds(entry.realtime)) if entry.realtime else ""
    uptime = float(_seconds(entry.source_monotonic) or 0) or None
    return LogRecord(message, time, uptime, entry.host)


def _seconds(microseconds: str) -> str:
    return f"{int(microseconds) / 1_000_000:.6f}" if _DIGITS.fullmatch(microseconds) else ""


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEAP_YEARS: Final = 9
"""Among this many years there is always a leap year."""


def _datetime(year: int, month: str, day: str, clock: str) -> datetime:
    """`dmesg -T` writes months in the locale's language; a number before 月 or 월 is one."""
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month.rstrip("月월"))
    return datetime.fromisoformat(f"{year:04}-{number:02}-{int(day):02}T{clock}")


def _rfc3339(time: datetime) -> str:
    if time.tzinfo is None:
        return time.isoformat()
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


_KERNEL_LEVELS: Final = 7
"""Priorities above are of other facilities: programs wrote them to /dev/kmsg."""
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
