"""Parse lines of kernel logs as dmesg, /dev/kmsg, journalctl, syslog, Talos and log stores write them.

Messages of another facility or program are left out, because any program may write lines like the kernel's.
Not here: the meaning of messages (qos/logs/), and messages over several lines (log_text.py).

Formats: util-linux dmesg(1), kernel Documentation/ABI/testing/dev-kmsg, systemd journalctl(1) -o, RFC 3164
and 5424, `talosctl dmesg` and Talos' log sinks, log files of the CRI and Docker, exports of Cloud Logging,
CloudWatch, Azure Monitor, Loki and Elasticsearch. Bottlerocket has a journal.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import structs

from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.logs.daemon_lines import SECOND_HAND, is_second_hand
from kubectl_qos.qos.logs.record import LogRecord


def parse_line(text: str, now: datetime | None = None) -> LogRecord | None:
    """Return the kernel's message in a line, or None. `now` gives the year of a time without one."""
    text = text.strip("\x1e\ufeff \t\r").removeprefix("data: ")
    fields: dict[str, Any] = {}
    position = 0
    named = _NAMED.match(text)
    if named is not None:
        name = named["name"] or named["bracketed"] or ""
        fields["node"], position = "" if name == "kernel" or name.isdigit() else name, named.end()
    while (piece := _PIECE.match(text, position)) is not None:
        position, kind = piece.end(), str(piece.lastgroup)
        if kind in _TIMES:
            _add_time(fields, kind, piece, now)
        elif not _add_piece(fields, kind, piece[kind]):
            return None
        source = _source_form(piece, kind).match(text, position)
        if source is not None:
            if source["program"] not in _PROGRAMS_READ and not is_second_hand(text):
                return None
            fields["program"] = source["program"].removeprefix("kernel")
            host = (source["host"] or "").strip(".")  # A copy may lack it.
            fields["node"], position = host or fields.get("node", ""), source.end()
            fields["is_kernel"] = source["program"] != "systemd"
        elif kind in {"iso", "kibana"} and (stream := _STREAM.match(text, position)) is not None:
            fields["node"], position = fields.get("node") or stream["name"], stream.end()
    if text.startswith("{", position):
        return _json_record(text[position:], fields, now)
    fields["program"] = _program(text[position:], fields.get("program", ""))
    if fields["program"] == _USER:
        return None
    return LogRecord(text[position:], **_as_second_hand(fields, text, now), is_bare=not position)


def _as_second_hand(fields: dict[str, Any], text: str, now: datetime | None) -> dict[str, Any]:
    """Mark a line in which a program repeats a kill by the kernel; its text may state the time."""
    if not is_second_hand(text):
        return fields
    logged, stated = {**fields, "program": SECOND_HAND, "is_kernel": False}, _OWN_TIME.search(text)
    if stated is None or fields.get("time"):
        return logged
    if stated["iso"]:
        return logged | {"time": _parse_time("iso", stated["iso"], now)}
    month = _MONTHS[(int(stated["month"]) - 1) % len(_MONTHS)]
    time = without_year(month, stated["day"], stated["clock"], now) if now is not None else ""
    return logged | {"time": time, "year_is_guessed": True}


def _program(message: str, program: str) -> str:
    """Return the program that killed, "" for the kernel.

    Daemons may write to the kernel's log, and systemd repeats kills by the kernel.
    """
    for mark, daemon in _KMSG_MARKS.items():
        if message.startswith(mark):
            return daemon
    return "" if program == "systemd" and message.endswith(_BY_KERNEL) else program


def _add_time(fields: dict[str, Any], kind: str, piece: re.Match[str], now: datetime | None) -> None:
    """Add a time; one without a year does not replace an earlier time."""
    if kind != "syslog" or not fields.get("time"):
        fields["time"] = _parse_time(kind, piece[kind], now) or fields.get("time", "")
        fields["year_is_guessed"] = kind == "syslog" or (kind == "ctime" and ":" in piece[kind][-5:])
    fields["is_kernel"] = (
        fields.get("is_kernel") or piece[0][0] == "[" or ("," in piece[0] and "T" in piece[0])
    )


def _add_piece(fields: dict[str, Any], kind: str, value: str) -> bool:
    """Add a piece of the prefix that is no time. Return False if the message is not the kernel's."""
    if kind == "wrapper":
        node = _NODE_LABEL.search(value)
        if node is not None:
            fields["node"] = node[1]
        return True
    fields["is_kernel"] = True
    if kind == "level":
        fields["program"] = "" if int(value) <= _KERNEL_LEVELS else _USER
        return True
    if kind == "facility":
        fields["program"] = "" if value == "kern" else _USER
        return value in {"kern", _USER}
    if kind == "kmsg":
        level, _, since_boot, *others = value.split(",")
        fields["uptime"] = int(since_boot) / 1_000_000
        fields["caller"] = next((part[7:] for part in others if part.startswith("caller=")), "")
        fields["program"] = "" if int(level) <= _KERNEL_LEVELS else _USER
        return True
    if kind != "source":
        fields[kind] = float(value) if kind == "uptime" else value
    return True


def _source_form(piece: re.Match[str], kind: str) -> re.Pattern[str]:
    """Return the form of node and program: they follow the time in journals and syslog, but not in dmesg."""
    is_of_dmesg = piece[0][0] == "[" or (kind == "iso" and "," in piece[0])
    if not is_of_dmesg and kind in {"syslog", "logread", "full", "unix", "iso"}:
        return _HOST
    return _AFTER_UPTIME if kind in {"uptime", "iso"} else _NEVER


def _parse_time(kind: str, text: str, now: datetime | None) -> str:
    try:
        if kind == "unix":
            return _rfc3339(datetime.fromtimestamp(float(text), UTC))
        if kind == "iso":
            text = text.replace(",", ".").replace(" +", "+").replace(" -", "-")
            return _rfc3339(datetime.fromisoformat(text))
        if kind == "full":
            date, clock, *zone = text.split()[1:]
            time = datetime.fromisoformat(f"{date}T{clock}")
            return _rfc3339(time.replace(tzinfo=UTC) if zone == ["UTC"] else time)
        words = text.replace(", ", " ").replace("@ ", "").split()[kind in {"ctime", "logread"} :]
        clock = next(word for word in words if ":" in word)
        month, day, *years = (word for word in words if word != clock)
        month, day = (day, month) if month.isdigit() else (month, day)
        if years:
            return _rfc3339(_datetime(int(years[0]), month, day, clock))
        return without_year(month, day, clock, now) if now is not None else ""
    except (ValueError, OverflowError, OSError):
        return ""


def without_year(month: str, day: str, clock: str, now: datetime) -> str:
    """Return the time in the latest year in which it is not in the future: RFC 3164 has no year."""
    latest = now.astimezone(UTC).replace(tzinfo=None) + timedelta(days=1)
    for year in range(latest.year, latest.year - _LEAP_YEARS, -1):
        try:
            time = _datetime(year, month, day, clock)
        except ValueError:
            continue
        if time <= latest:
            return _rfc3339(time)
    return ""


# Names of fields, in order of precedence.
_CONTENTS: Final = ("jsonPayload", "_source", "fields", "attributes", "result", "content")
_TEXTS: Final = "MESSAGE msg message log line textPayload @message body SyslogMessage _raw Line Message"
_MESSAGES: Final = (*_TEXTS.split(), *_CONTENTS)
_TIME_FIELDS: Final = "__REALTIME_TIMESTAMP talos-time timestamp @timestamp time ts TimeGenerated date _time"
_JSON_TIMES: Final = (*_TIME_FIELDS.split(), "Time", "Date", "timeUnixNano", "observedTimeUnixNano")
_NODE_FIELDS: Final = "_HOSTNAME node_name nodename node hostname host host.name Computer instance"
_JSON_NODES: Final = tuple(_NODE_FIELDS.split())
_LABELS: Final = (*_CONTENTS, "labels", "kubernetes", "resource", "host", "name")
_PROGRAMS: Final = ("SYSLOG_IDENTIFIER", "syslog_identifier", "ident", "ProcessName")
_FACILITIES: Final = ("facility", "fac", "Facility", "SYSLOG_FACILITY")


def entry_message(entry: dict[str, Any]) -> str | None:
    """Return the message of a log entry in JSON, None if it has none."""
    for name in _MESSAGES:
        value = entry.get(name)
        if isinstance(value, dict):
            value = value.get("stringValue") or entry_message(value)
        elif isinstance(value, list) and name == "MESSAGE":
            # A message that is not UTF-8 is an array of bytes.
            value = bytes(byte & 0xFF for byte in value if isinstance(byte, int)).decode(errors="replace")
        if isinstance(value, str):
            return value
    return None


def _json_record(text: str, outer: dict[str, Any], now: datetime | None) -> LogRecord | None:
    """Return the message in an entry of a journal or log store; the message may have its own prefix."""
    try:
        entry = msgspec.json.decode(text)
        message = entry_message(entry)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        message = None
    if message is None:
        return LogRecord(text, **outer)
    if entry.get("controller") == _TALOS_CONTROLLER and not message.startswith(_TALOS):
        message = f"{_TALOS}{message} {text}"
    transport = _first(entry, ("_TRANSPORT",))
    program, facility = _first(entry, _PROGRAMS), _first(entry, _FACILITIES)
    fields = outer | _json_times(entry, now)
    if is_second_hand(message):
        fields["program"] = SECOND_HAND
    elif program in _DAEMONS or message.startswith(tuple(_KMSG_MARKS)):
        fields["program"] = _program(message, program)
    # In syslog's format anything can claim to be the kernel; the journal's own transport is proof.
    elif (transport or program or "kernel") != "kernel" or (not transport and facility not in _OF_KERNEL):
        return None
    fields["node"] = _first(entry, _JSON_NODES) or outer.get("node", "")
    fields["is_kernel"] = bool(transport or program or facility) or fields.get("is_kernel", False)
    if transport:
        return LogRecord(message, **fields)
    inner = parse_line(message.rstrip("\n"), now)
    if inner is None:
        return None
    time = fields.get("time", "")
    return structs.replace(
        inner,
        time=time if inner.year_is_guessed and time else inner.time or time,
        year_is_guessed=inner.year_is_guessed and not time,
        uptime=inner.uptime if inner.uptime is not None else fields.get("uptime"),
        node=inner.node or fields["node"],
        is_kernel=inner.is_kernel or fields["is_kernel"],
        program=inner.program or fields.get("program", ""),
        is_bare=False,
    )


def _first(entry: dict[str, Any], names: Sequence[str]) -> str:
    """Return the first of these fields that has a value, in the entry or in an object inside it."""
    for name in names:
        value = entry.get(name)
        value = value.get("name", "") if isinstance(value, dict) else value
        if isinstance(value, str | int) and value != "":
            return str(value)
    nested = (values for name in _LABELS if isinstance(values := entry.get(name), dict))
    return next(filter(None, (_first(values, names) for values in nested)), "")


def _json_times(entry: dict[str, Any], now: datetime | None) -> dict[str, Any]:
    monotonic = _first(entry, ("_SOURCE_MONOTONIC_TIMESTAMP",))
    uptime: dict[str, Any] = {"uptime": int(monotonic) / 1e6} if _DIGITS.fullmatch(monotonic) else {}
    objects = [entry, *(value for value in map(entry.get, _LABELS) if isinstance(value, dict))]
    for value in filter(None, (values.get(name) for values in objects for name in _JSON_TIMES)):
        text = str(value)
        if isinstance(value, int | float) or _DIGITS.fullmatch(text):
            seconds = float(value)
            if seconds < _FIRST_EPOCH:
                return {"uptime": seconds, "is_kernel": True}
            # Seconds, or thousandths, millionths or billionths of them.
            while seconds > _LAST_EPOCH:
                seconds /= 1000
            text = f"{seconds:.6f}"
        record = parse_line(f"{text} x" if text[:1].isdigit() else f"[{text}] x", now)
        if record is not None and record.time:
            return uptime | {"time": record.time}
    return uptime


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH_FORMS: Final = (
    "jan|ene|gen|янв feb|fév|fev|фев mar|mär|mrt|мар apr|avr|abr|апр mai|may|maj|mag|mei|май|мая"
    " jun|juin|giu|июн jul|juil|lug|июл aug|aoû|ago|авг sep|set|сен oct|okt|ott|out|окт nov|ноя"
    " dec|déc|dez|dic|des|дек"
)
_MONTHS_BEGIN: Final = tuple(tuple(forms.split("|")) for forms in _MONTH_FORMS.split())
"""How months begin in English, German, French, Spanish, Italian, Portuguese, Dutch, Danish and Russian."""
_LEAP_YEARS: Final = 9
"""Nine years in a row have a leap year among them, also around 1900 and 2100."""


def _datetime(year: int, month: str, day: str, clock: str) -> datetime:
    """Return a time. `dmesg -T` writes months in the locale's language, perhaps as a number with 月 or 월."""
    word = month.casefold()
    names = (number for number, begins in enumerate(_MONTHS_BEGIN, 1) if word.startswith(begins))
    number = next(names, 0) or int(month.rstrip("月월"))
    return datetime.fromisoformat(f"{year:04}-{number:02}-{int(day):02}T{clock}")


def _rfc3339(time: datetime) -> str:
    if time.tzinfo is None:
        return time.isoformat()
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


_KERNEL_LEVELS: Final = 7
"""Higher priorities are of other facilities: programs wrote such lines to /dev/kmsg."""
_USER: Final = "user"
"""The facility of lines that programs write to the kernel's log."""
_KMSG_MARKS: Final = {killer.log.mark: killer.id for killer in KILLERS if killer.log.mark}
_TALOS: Final = "[talos] "
_TALOS_CONTROLLER: Final = "runtime.OOMController"
_BY_KERNEL: Final = (
    *("has been killed by the OOM killer.", "OOM killer killed some processes in this unit."),
    "Failed with result 'oom-kill'.",
)
_DAEMONS: Final = {"systemd", *(program for killer in KILLERS for program in killer.log.programs)}
_PROGRAMS_READ: Final = {"kernel", *_DAEMONS}
_OF_KERNEL: Final = frozenset({"", "kern", "kernel", "0"})
_FIRST_EPOCH: Final = 1e8
_LAST_EPOCH: Final = 1e11
_DIGITS: Final = re.compile(r"\d{1,19}", re.ASCII)
_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
MONTH: Final = "|".join(_MONTHS)
_ANY_MONTH: Final = r"[^\s\d\[\]<>:{}()/,]{3,9}|\d{1,2}[月월]"
"""A month in any language; `_MONTHS_BEGIN` knows some of them."""
_ISO: Final = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
_DELTA: Final = r"(?: <[ \d.]{1,24}>)?"
_CTIME: Final = rf"[^\[\]:]{{3,40}} {_CLOCK} \d{{4}}|[A-Z][a-z]{{2}} (?:{MONTH}) [ \d]\d {_CLOCK}"
_FACILITY: Final = r"kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d"

_TAG: Final = r"(?:(?<= [+-]\d{4} )[\w.*-]{1,253}: (?=\{\"))?"
"""The tag that fluentd prints before a record."""
_WRAPPER: Final = (
    r"(?:stdout|stderr) [FP]|\d\d:\d\d:\d\d(?= kernel: )|\{(?:\w{1,64}=\"(?:[^\"\\]|\\.)*\"(?:, ?)?)*\}"
)
_TITLE: Final = (
    r"\[ ?[A-Za-z][\w :-]{0,40}\](?= (?:(?:Memory cgroup out|Out) of memory|oom-kill|oom_reaper):)"
)
"""A title in brackets that a person added between the time and the kernel's words."""
_TIMES: Final = frozenset({"ctime", "logread", "iso", "syslog", "full", "unix", "kibana"})

_PIECE: Final = re.compile(
    "|".join(
        (
            r"<(?P<level>\d{1,3})>(?:1 )?",
            rf"\[ {{0,12}}(?P<uptime>\d{{1,12}}\.\d{{1,9}}){_DELTA}\] ?",
            r"\[ {0,12}(?P<caller>[TC]\d{1,10})\] ?",
            rf"\[(?P<ctime>{_CTIME}){_DELTA}\] ?",
            rf"\[?(?P<iso>{_ISO}(?: [+-]\d{{4}})?)(?: UTC)?\]?:?(?:[ \t]|$){_TAG}",
            rf"(?P<kibana>(?:{MONTH}) \d{{1,2}}, \d{{4}} @ {_CLOCK})[ \t]+",
            rf"(?P<logread>[A-Z][a-z]{{2}} (?:{MONTH}) [ \d]\d {_CLOCK} \d{{4}}) ",
            rf"\[?(?P<syslog>(?:{_ANY_MONTH}) [ \d]\d {_CLOCK})\]?:? ",
            rf"(?P<full>[A-Z][a-z]{{2}} \d{{4}}-\d\d-\d\d {_CLOCK} [A-Z+\-\d:]{{1,9}}) ",
            r"(?P<unix>\d{9,11}\.\d{1,9}) ",
            r"(?P<kmsg>\d{1,5},\d{1,20},\d{1,18},[^;\s]{1,64});",
            r"(?P<source>kernel): ?",
            rf"(?P<facility>{_FACILITY}) {{0,6}}: {{0,8}}[a-z]{{3,7}} {{0,6}}: ",
            rf"(?P<wrapper>\[(?:[A-Z][a-z]{{2}} )?{_CLOCK}\]|{_WRAPPER}|{_TITLE})[ \t]+",
        )
    ),
    re.ASCII,
)
_HOST: Final = re.compile(
    r" ?(?!CPU: |oom-kill:|oom_reaper: |memory(?:\+swap)?: |swap: |kmem: |Mem-Info:|Workqueue: |[a-z_]+:\d)"
    r"(?:(?P<host>(?!kern\.)[\w.:*-]{0,252}[\w.*-]) )?(?:[a-z]{3,8}\.[a-z]{3,7} )?"
    r"(?P<program>[\w@./-]{1,64})"
    r"(?:\[\d+\]: ?|: ?(?: (?=\[ *\d+\.\d))?| (?:-|\d+) [\w-]+ (?:-|(?:\[(?:[^\]\\]|\\.)*\])+) \ufeff?)",
    re.ASCII,
)
_AFTER_UPTIME: Final = re.compile(
    r"(?:(?P<host>[\w.:-]{0,252}[\w.-]) )?"
    rf"(?P<program>(?<= )kernel|(?:{'|'.join(sorted(_DAEMONS))})(?=\[))(?:\[\d+\])?: ",
    re.ASCII,
)
_NEVER: Final = re.compile("(?!)")
_OWN_TIME: Final = re.compile(
    rf'\b[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>{_CLOCK}) |\btime="(?P<iso>{_ISO})"', re.ASCII
)
_STREAM: Final = re.compile(
    r"(?P<name>[\w./:$@\[\]-]{1,512})"
    rf"(?:\t| (?=\[ *\d+\.\d|<\d{{1,3}}>|\{{\"|(?:{MONTH}) [ \d]\d \d\d:))",
    re.ASCII,
)
_NODE_LABEL: Final = re.compile(r'\b(?:node|nodename|node_name|hostname|host|instance)="([^"]{1,253})"')
_NAMED: Final = re.compile(
    r"(?:(?P<name>[\w.:-]{1,253}?)(?::| \|) |\[(?:(?P<bracketed>[\w./:-]{1,253})|[\w ]{1,60})\] |[-*] |\+ ?"
    r"|\d{1,13}[ \t]+|\d{9,11} [\w.-]{1,253} |(?:[a-z][\w.-]{0,252} ){1,2}"
    r"|(?:[\w./-]{1,253}[:-])?\d{1,9}[:-] ?|[\w./-]{0,253}\.(?:log|txt|\d)[:-])"
    rf"(?=<\d|\[ *\d+\.\d+\] |\[?{_ISO}|\[(?:{_CTIME})|(?:{MONTH}) [ \d]\d \d\d:|(?:{_FACILITY}) *:)",
    re.ASCII,
)
