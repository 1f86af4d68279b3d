"""Read the text of a log file in any compression and encoding, with each message on one line.

A message over several lines (indented JSON, JSON documents of many entries, entries of `journalctl -o export`
and `verbose`) becomes JSON on one line. log_lines.py reads the fields of messages.

Formats: util-linux dmesg(1), systemd journalctl(1) -o and JOURNAL_EXPORT_FORMATS, `gcloud logging read
--format=json`, `aws logs get-log-events`, the HTTP API of Loki.
"""

import codecs
import csv
import html
import io
import quopri
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain, islice, tee
from typing import Any, Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.host.log_lines import MONTH, entry_message, parse_line, without_year
from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.logs.record import message_start_in
from kubectl_qos.unpacking import packed_by, unpacked

LONGEST: Final = 65_536
"""Longer lines are cut; no kernel and no journal writes them."""
LONGEST_JSON: Final = 1 << 26
"""The longest JSON document in characters, which may be a whole log."""
_HEAD_BYTES: Final = 512
_REFUSED: Final = (
    (b"LPKSHHRH", "a journal file", "journalctl --file FILE -k -o short-iso > LOG"),
    (b"PK\3\4", "a zip archive", "unzip -p FILE > LOG"),
    (b"BZh", "compressed by bzip2", "bzip2 -dk FILE"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "lz4 -d FILE LOG"),
)


def read_lines(stream: io.BufferedReader) -> Iterator[str]:
    """Yield the lines of a file, one in memory at a time; undecodable bytes are replaced.

    Raises InputError, without the name of the file, for a format that is not text, and OSError or EOFError if
    the file cannot be read or decompressed.
    """
    by = packed_by(_peek(stream))
    content, broken = unpacked(stream, by) if by else (stream, OSError)
    try:
        head = _peek(content)
        for magic, name, remedy in _REFUSED:
            if head.startswith(magic):
                raise InputError(f"it is {name}", hint=remedy)
        if head[257:262] == b"ustar":
            raise InputError("it is a tar archive", hint="tar -xf FILE")
        text = io.TextIOWrapper(content, _encoding(head), errors="replace", newline="\n")
        while piece := text.readline(LONGEST):
            line = piece
            if piece.startswith(_JSON_BEGINS) and not piece.endswith("\n"):
                line = piece = piece + text.readline(LONGEST_JSON)
            yield line.rstrip("\r\n")
            while piece and not piece.endswith("\n"):
                piece = text.readline(LONGEST)
        text.detach()  # what opened the file closes it
    except broken as error:
        raise OSError(str(error)) from None


def _peek(content: Any) -> bytes:
    return bytes(content.peek(_HEAD_BYTES)[:_HEAD_BYTES])


def _encoding(head: bytes) -> str:
    """Detect the encoding by the byte order mark, else by the zero bytes of letters in UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = head[first::2].count(0), head[1 - first :: 2].count(0)
        if zeros > max(len(head) // 4, 1) and not others:
            return encoding
    return "utf-8-sig"


# --- one message a line

Numbered = tuple[int, str]
"""A message, and the number of its first line."""

_JSON_BEGINS: Final = ("{", '[{"', "[[")
_HAS_ENTRIES: Final = re.compile(r'\[\{|"fields" ?: ?\{|"MESSAGE" ?: ?\[|": ?\[ ?\[')
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]')
_ITEM: Final = re.compile(r"^[\s`]*(?:(?:[-*+]|\d{1,5}[.):])\s+(?=\S)|(?:#+|//) )")
_MOST_OF_LIST: Final = 0.8
_FIRST_LINES: Final = 1_000
_MARKUP: Final = re.compile(r"<[^<>]{1,40}>$")
_COMMENT: Final = re.compile(
    rf"^\s*(?:#+ (?=\[|(?:{MONTH}) [ \d]\d \d\d:|\d{{4}}-\d\d-\d\d[T ]\d\d:)|// (?!.*(?:\.\.|…)).*)"
)
"""Comment signs before a line, or a user's remark that does not say that lines are left out."""
_FOREIGN: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]{8,18}Z )?[^\[<]{4,100}?(?=(?:<\d>)?\[ *\+?\d{1,12}\.\d{6}\] )", re.ASCII
)
"""A prefix of minikube, or of the console of a hypervisor, before each line of the kernel."""
_OF_EVENT: Final = re.compile(
    r"\A(?:.{0,2000}\bOOMKilling\b(?:,Message)?:?\s*(?:[Nn]ode/\S{1,253}\s+)?|\s*Message:\s*)"
    r"(?:\(combined from similar events\): )?(?=(?:Memory cgroup out|Out) of memory)",
    re.ASCII,
)
"""The beginning of a copied event, up to its message."""
_OF_DETECTOR: Final = re.compile(
    r".{0,200} Timestamp:(\S{10} \S{8,18}) ([+-]\d{4}) .{0,60} Reason:OOMKilling Message:(.{1,2000}?)\}\].*"
)
"""A line of node-problem-detector, which repeats one of the kernel."""
_QUOTED: Final = re.compile(r"^(?:[ \t]*(?:>|\|(?!__GFP))[ \t]?){1,8}")
_REMARK: Final = re.compile(r"(?<=\S)[ \t]+(?:←|<-+|#)[ \t]\S.{0,200}$")
_REPLACED: Final = (
    ("\x1b", re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]"), ""),
    ("<", re.compile(r"</?(?:pre|code|p|br|div|span|li)\b[^<>]{0,80}>"), ""),
    (">", _QUOTED, ""),
    ("|", _QUOTED, ""),
    (" # ", _REMARK, ""),
    ("<-", _REMARK, ""),
    ("←", _REMARK, ""),
    ("│", re.compile(r"^[ \t]*│[ \t]?|[ \t]*│$"), ""),
    ("[", re.compile(r"^\s*\[(?:\.{2,}|…)\] (?=\S)"), ""),
    ("OOMKilling", _OF_DETECTOR, r"\1\2 kernel: \3"),
    ("OOMKilling", _OF_EVENT, ""),
    ("Message:", _OF_EVENT, ""),
)
"""Changes that undo what copying added to a line: a text that such lines contain, pattern, replacement."""
_OF_GUEST: Final = re.compile(
    r'time="(?P<time>[^"]{19,40})" .{0,400}? sandbox=(?P<id>[\w-]{1,128}) .{0,400}?'
    r'\bvmconsole="(?P<line>(?:[^"\\]|\\.)*).*',
    re.ASCII,
)
"""A line of Kata that quotes the kernel in the virtual machine of a pod."""
_PRINTABLE: Final = re.compile(r"\b(?:gfp_mask|order|oom_score_adj|constraint|pid)=3D", re.ASCII)
"""Fields with `=` written as `=3D`: only mails in quoted-printable have that (RFC 2045)."""
_EXPORT_BEGINS: Final = ("__CURSOR=", "__REALTIME_TIMESTAMP=")
_VERBOSE_BEGINS: Final = re.compile(r"[A-Z]\w\w \d{4}-\d\d-\d\d [\d:.]{8,16} [A-Z+\-\d:]{1,9} \[s=")
_HUMAN: Final = re.compile(
    rf"(?P<before>(?:[a-z]+ *:[a-z]+ *: )?)\[(?:(?P<month>{MONTH})(?P<day>[ \d]\d) (?P<clock>\d\d:\d\d)"
    r"| *\+(?P<later>\d{1,9}\.\d{1,9}))\] ",
    re.ASCII,
)
_LOST_END: Final = re.compile(r"\[(?<=[\w)]\[) *\d{1,12}\.\d{6}\] ", re.ASCII)
"""The time of a message right behind another one."""
_LENGTH_CHARACTERS: Final = 8
_DEEPEST_ENTRY: Final = 8


def messages(lines: Iterable[str], now: datetime | None = None) -> Iterator[Numbered]:
    """Yield each message on one line, also those of JSON, the journal's exports, CSV and `dmesg -H`.

    `dmesg -H` has the minute, then for each line the time since the line before; `now` gives the year.
    """
    parts = ((number, part) for number, line in enumerate(lines, 1) for part in _split(line))
    places, texts = tee(_decoded(_continued((number, _clean(text)) for number, text in parts)))
    cleaned = map(_with_cut, _without_list(text for _, text in texts))
    numbered = ((number, text) for (number, _), text in zip(places, cleaned, strict=True))
    minute = ""
    seconds = 0.0
    for number, text in numbered:
        if number == 1 and (columns := _columns(text)):
            yield from _rows(columns, numbered)
        elif text.startswith(_EXPORT_BEGINS) or _VERBOSE_BEGINS.match(text) is not None:
            yield from _exported(chain([(number, text)], numbered))
        elif text.startswith(_JSON_BEGINS) or text.strip() == "[":
            if text.endswith("}") and text[0] == "{" and _HAS_ENTRIES.search(text) is None:
                yield number, text
            else:
                yield from _document(chain([(number, text)], numbered))
        elif (human := _HUMAN.match(text)) is not None:
            if human["clock"]:
                clock = f"{human['clock']}:00"
                minute = without_year(human["month"], human["day"], clock, now) if now is not None else ""
                seconds = 0.0 if minute else seconds
            else:
                seconds += float(human["later"])
            time = f"{seconds:.6f}"
            if minute:
                when = datetime.fromisoformat(minute) + timedelta(seconds=seconds)
                time = f"{when:%b %e %H:%M:%S}"
            yield number, f"{human['before']}[{time}] {text[human.end() :]}"
        else:
            yield number, text


def _clean(line: str) -> str:
    """Remove colours, quotation marks and repeated line numbers."""
    line = html.unescape(line) if "&" in line else line
    line = line.replace("\xa0", " ")
    for mark, form, text in _REPLACED:
        if mark in line:
            line = form.sub(text, line)
    if "vmconsole=" in line and (guest := _OF_GUEST.search(line)) is not None:
        line = "{time} {id} {line}".format_map(guest.groupdict()).replace("\\", "")
    return line


def _continued(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Join lines that a person broke as a shell does, with a backslash at the end."""
    begin, before = 0, ""
    for number, line in lines:
        text = before + line.lstrip() if before else line
        begin, before = begin if before else number, text[:-1] if text.endswith("\\") else ""
        if not before or len(before) > LONGEST:
            yield begin, text
            before = ""
    if before:
        yield begin, before


def _decoded(lines: Iterator[Numbered]) -> Iterator[Numbered]:
    """Decode a mail in quoted-printable, in which `=` at the end of a line means that it goes on."""
    head = list(islice(lines, _FIRST_LINES))
    if not any(_PRINTABLE.search(text) for _, text in head):
        yield from chain(head, lines)
        return
    begin, rest = 0, ""
    for number, line in chain(head, lines):
        begin, text = begin or number, line.rstrip()
        is_broken = text.endswith("=") and len(rest) < LONGEST
        rest += quopri.decodestring(text.removesuffix("=").encode()).decode(errors="replace")
        *whole, rest = rest.split("\n") if is_broken else [*rest.split("\n"), ""]
        for part in whole:
            yield begin, part
        begin = 0 if not rest else number if whole else begin
    if rest:
        yield begin, rest


def _split(text: str) -> list[str]:
    """Split a text at line ends that a program has escaped or a copy has lost; JSON is not split."""
    if "{" in text:
        return [text]
    if "\\n" in text:
        return text.strip('"').split("\\n")
    end = _LOST_END.search(text)
    is_lost = end is not None and message_start_in(text[: end.start()])
    return [text[: end.start()], *_split(text[end.start() :])] if end is not None and is_lost else [text]


def _with_cut(line: str) -> str:
    """Mark a line as cut that ends with `>`, the mark of a pager."""
    return line[:-1] + CUT if line.endswith(">") and _MARKUP.search(line) is None else line


def _without_list(lines: Iterator[str]) -> Iterator[str]:
    """Remove what is before each line: bullets of a list, a program's prefix, or comment signs."""
    head = list(islice(lines, _FIRST_LINES))
    texts = [line for line in head if line and not line.isspace() and not line.startswith("```")]
    items = sum(_ITEM.match(text) is not None for text in texts)
    is_list = items > 1 and items >= _MOST_OF_LIST * len(texts)
    if texts and _columns(texts[0]):
        return chain(head, lines)
    if is_list:
        return (_ITEM.sub("", line).strip("`") or line for line in chain(head, lines))
    foreign = sum(_FOREIGN.match(text) is not None and _is_unread(text) for text in texts)
    if foreign > 1 and foreign >= _MOST_OF_LIST * len(texts):
        return (_FOREIGN.sub(r"\g<time>", line, count=1) for line in chain(head, lines))
    return (_COMMENT.sub("", line) for line in chain(head, lines))


def _is_unread(text: str) -> bool:
    """Return whether a parsed line still has the prefix of a program in its message."""
    record = parse_line(text)
    return record is not None and _FOREIGN.match(record.message) is not None


def _columns(header: str) -> list[str]:
    """Return the names of the columns if a line is the heading of a table with messages, else []."""
    is_text = header.isprintable() and len(header) < csv.field_size_limit()
    cells = next(csv.reader([header]), []) if is_text else []
    names = [cell.partition(" [")[0] for cell in cells]
    is_table = len(names) > 1 and entry_message(dict.fromkeys(names, "")) is not None
    return names if is_table else []


def _rows(columns: list[str], numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """Read comma separated values, as log stores export them; a message may have several lines."""
    reader = csv.reader(text + "\n" for _, text in numbered)
    yield 1, ",".join(columns)
    begin = 2
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "export the log as JSON or as text, or remove that line"
            raise InputError(f"line {begin} is no row of its table: {error}", hint) from None
        yield begin, msgspec.json.encode(dict(zip(columns, cells, strict=False))).decode()
        begin = reader.line_num + 2


def _document(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """Yield the entries of one JSON document; its lines if it has none."""
    kept: list[Numbered] = []
    begins: dict[int, list[int]] = {}
    depth = size = 0
    for number, text in numbered:
        kept.append((number, text))
        size += len(text)
        for token in _TOKEN.finditer(text):
            if token[0] in "[{":
                depth += 1
                if token[0] == "{" and depth <= _DEEPEST_ENTRY:
                    begins.setdefault(depth, []).append(number)
            elif token[0] in "]}":
                depth -= 1
        if depth <= 0 or size > LONGEST_JSON:
            break
    try:
        value = msgspec.json.decode("\n".join(text for _, text in kept).rstrip(", "))
        entries = list(_entries(value))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        entries = []
    if not entries:
        yield from kept
    at = next((starts for starts in begins.values() if len(starts) == len(entries)), [])
    for place, entry in enumerate(entries):
        yield at[place] if at else kept[0][0], msgspec.json.encode(entry).decode()


def _entries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in _rejoined(value):
            yield from _entries(item)
    elif isinstance(value, dict):
        value = _with_first_values(value)
        values, labels = value.get("values"), value.get("stream")
        columns, rows = value.get("columns"), value.get("rows")
        if isinstance(columns, list) and isinstance(rows, list):
            # Azure Monitor: a table, whose columns have names.
            names = [str(column.get("name")) for column in columns if isinstance(column, dict)]
            for row in rows:
                yield from _entries(dict(zip(names, row, strict=False)) if isinstance(row, list) else row)
        elif isinstance(values, list) and isinstance(labels, dict):
            # Loki: the lines of a stream, with its labels.
            for pair in values:
                if isinstance(pair, list) and len(pair) > 1:
                    yield {"timestamp": pair[0], "line": pair[1], "labels": labels}
        elif (message := entry_message(value)) is not None:
            yield value | {"MESSAGE": message} if "MESSAGE" in value else value
        else:
            yield from _entries(list(value.values()))


def _rejoined(items: list[Any]) -> list[Any]:
    """Return the items; fields of one row, as CloudWatch answers a query, become that row."""
    dicts = [item for item in items if isinstance(item, dict)]
    row = {name: item.get("value") for item in dicts if isinstance(name := item.get("field"), str)}
    return [row] if row and len(row) == len(items) else items


def _with_first_values(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with the first value of each of its `fields`: Kibana writes lists of values."""
    fields = entry.get("fields")
    if not isinstance(fields, dict):
        return entry
    firsts = {name: values[0] for name, values in fields.items() if isinstance(values, list) and values}
    return entry | {"fields": fields | firsts}


def _exported(numbered: Iterable[Numbered]) -> Iterator[Numbered]:
    """Read entries that have a line for each field; an empty line or the time of the next entry ends one.

    A field that is not text has a line with its name, then its length in eight bytes before the value.
    """
    fields: dict[str, str] = {}
    first, binary, value = 0, "", ""
    for number, text in chain(numbered, [(0, "")]):
        if binary and number:
            value += text
            if len(value) < _LENGTH_CHARACTERS:
                value += "\n"
                continue
            fields[binary], binary, value = value[_LENGTH_CHARACTERS:], "", ""
            continue
        is_time = _VERBOSE_BEGINS.match(text) is not None
        if fields and (is_time or not text):
            yield first, msgspec.json.encode(fields).decode()
            fields, first = {}, 0
        first = first or number
        name, has_value, rest = text.lstrip().partition("=")
        if is_time:
            fields["time"] = text.partition(" [s=")[0]
        elif has_value:
            fields[name] = rest
        elif name.isupper():
            binary = name
