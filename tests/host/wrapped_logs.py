"""Whole kernel logs as programs, log stores and shells write them, and files that are none."""

# ruff: noqa: ARG005 - a form uses what its program writes

import gzip
import json
import lzma
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from tests.host.kernel_logs import BOOTED, FORMS, rewritten

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Lines = Iterable[str]
Wrapper = Callable[[list[str]], bytes]
_RECORD = re.compile(r"\[ *(\d+\.\d+)\] (.*)")
NODE: Final = "node1"


def _records(lines: Lines) -> Iterator[tuple[float, datetime, str]]:
    """Seconds since boot, time and message of each line; a continued one has those of the line before."""
    uptime = 0.0
    for line in lines:
        match = _RECORD.fullmatch(line)
        uptime, text = (float(match[1]), match[2]) if match is not None else (uptime, line.strip())
        yield uptime, BOOTED + timedelta(seconds=uptime), text


def _text(lines: Lines) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _each(form: Callable[[float, datetime, str], object]) -> Wrapper:
    """A line for each record; what is not text becomes JSON."""

    def wrapped(lines: list[str]) -> bytes:
        made = (form(*record) for record in _records(lines))
        return _text(one if isinstance(one, str) else json.dumps(one) for one in made)

    return wrapped


def _document(
    form: Callable[[float, datetime, str], object], indent: int | None = 2, **outer: Any
) -> Wrapper:
    """One JSON document with all records: a list, or the object in which they are `entries`."""

    def wrapped(lines: list[str]) -> bytes:
        entries = [form(*record) for record in _records(lines)]
        name = outer.get("name")
        return json.dumps({name: entries} if name else entries, indent=indent).encode()

    return wrapped


def _newest_first(wrapper: Wrapper) -> Wrapper:
    return lambda lines: b"\n".join(reversed(wrapper(lines).splitlines())) + b"\n"


def _form(name: str) -> Wrapper:
    return lambda lines: _text(rewritten(lines, FORMS[name]))


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}123Z"


def _micro(time: datetime) -> str:
    return str(int(time.timestamp() * 1e6))


def _entry(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    stamps = {"__REALTIME_TIMESTAMP": _micro(time), "_SOURCE_MONOTONIC_TIMESTAMP": str(int(uptime * 1e6))}
    return {**stamps, "PRIORITY": "4", "_TRANSPORT": "kernel", "_HOSTNAME": NODE, "MESSAGE": text}


def _json_pretty(lines: list[str]) -> bytes:
    entries = (json.dumps(_entry(*record), indent="\t") for record in _records(lines))
    return _text(entry.replace('": ', '" : ') for entry in entries)


def _bytes_of_messages(lines: list[str]) -> bytes:
    return _text(
        json.dumps(_entry(*record) | {"MESSAGE": list(record[2].encode())}) for record in _records(lines)
    )


def _export(lines: list[str]) -> bytes:
    """Every message in the form of those that are not text."""
    entries = []
    for record in _records(lines):
        fields = _entry(*record)
        message = str(fields.pop("MESSAGE")).encode()
        head = "".join(f"{name}={value}\n" for name, value in fields.items()).encode()
        entries.append(b"%sMESSAGE\n%s%s\n\n" % (head, len(message).to_bytes(8, "little"), message))
    return b"".join(entries)


def _verbose(uptime: float, time: datetime, text: str) -> str:
    fields = "\n".join(f"    {name}={value}" for name, value in _entry(uptime, time, text).items())
    return f"{time:%a %Y-%m-%d %H:%M:%S.%f} UTC [s=1;i=2]\n{fields}"


def _human(lines: list[str]) -> bytes:
    """`dmesg -H`: the minute where it changes, else how much later than the line before."""
    written, minute, before = [], "", 0.0
    for uptime, time, text in _records(lines):
        now = f"{time:%b%d %H:%M}"
        written.append(f"[{now}] {text}" if now != minute else f"[{uptime - before:+11.6f}] {text}")
        minute, before = now, uptime
    return _text(written)


def _delta(uptime: float, time: datetime, text: str) -> str:
    return f"[{uptime:12.6f} <{0.000012:12.6f}>] {text}"


def _cri(uptime: float, time: datetime, text: str) -> str:
    return f"{_utc(time)} stdout F [{uptime:12.6f}] {text}"


def _docker(uptime: float, time: datetime, text: str) -> dict[str, str]:
    return {"log": f"[{uptime:12.6f}] {text}\n", "stream": "stdout", "time": _utc(time)}


def _cloud_logging(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    payload = {"MESSAGE": text, "SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "kernel", "PRIORITY": "4"}
    resource = {"type": "k8s_node", "labels": {"node_name": NODE, "cluster_name": "prod"}}
    return {"insertId": "x", "jsonPayload": payload, "resource": resource, "timestamp": _utc(time)}


def _serial_console(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    return {"textPayload": f"[{uptime:12.6f}] {text}\r", "timestamp": _utc(time), "insertId": "x"}


def _cloudwatch(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    said = json.dumps({"host": NODE, "ident": "kernel", "message": text})
    return {"timestamp": int(time.timestamp() * 1000), "message": said, "ingestionTime": 1}


def _loki(uptime: float, time: datetime, text: str) -> str:
    return (
        f'{time:%Y-%m-%dT%H:%M:%SZ} {{job="systemd-journal", nodename="{NODE}", transport="kernel"}} {text}'
    )


def _loki_json(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    return {"labels": {"nodename": NODE}, "line": text, "timestamp": _utc(time)}


def _loki_api(lines: list[str]) -> bytes:
    values = [[str(int(time.timestamp() * 1e9)), text] for _, time, text in _records(lines)]
    result = [{"stream": {"nodename": NODE, "transport": "kernel"}, "values": values[::-1]}]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}}).encode()


def _elastic(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    source = {"@timestamp": _utc(time), "message": text, "host": {"name": NODE}, "tags": ["x"]}
    return {"_index": "logs", "_source": source}


def _azure(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    return {"TimeGenerated": _utc(time), "Computer": NODE, "Facility": "kern", "SyslogMessage": text}


def _kibana(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    fields = {"@timestamp": [_utc(time)], "message": [text], "host.name": [NODE], "tags": ["x", "y"]}
    return {"_index": "logs", "_id": "a", "_score": 1, "fields": fields}


def _splunk(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    result = {"_time": _utc(time), "host": NODE, "_raw": f"{time:%b %e %H:%M:%S} {NODE} kernel: {text}"}
    return {"preview": False, "offset": 0, "result": result}


def _datadog(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    return {"id": "x", "content": {"timestamp": _utc(time), "host": NODE, "message": text, "tags": ["x"]}}


def _otel(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    attributes = [{"key": "k8s.node.name", "value": {"stringValue": "x"}}]
    nano = str(int(time.timestamp() * 1e9))
    return {"timeUnixNano": nano, "body": {"stringValue": text}, "attributes": attributes}


def _query_row(uptime: float, time: datetime, text: str) -> list[dict[str, str]]:
    row = {"@timestamp": f"{time:%Y-%m-%d %H:%M:%S.000}", "@message": text, "@ptr": "x"}
    return [{"field": name, "value": value} for name, value in row.items()]


def _fluent_bit(uptime: float, time: datetime, text: str) -> dict[str, Any]:
    return {"date": time.timestamp(), "log": f"[{uptime:12.6f}] {text}", "kubernetes": {"host": NODE}}


def _plain(lines: list[str]) -> bytes:
    return _text(lines)


LOGS: Final[dict[str, Wrapper]] = {
    "dmesg": _plain,
    "dmesg -J": _document(lambda up, time, text: {"pri": 4, "time": up, "msg": text}, 3, name="dmesg"),
    "dmesg -J -x": _document(
        lambda up, time, text: {"fac": "kern", "pri": "warn", "time": up, "msg": text}, 3, name="dmesg"
    ),
    "dmesg -J -T": _document(
        lambda up, time, text: {"pri": 4, "time": f"{time:%a %b %e %H:%M:%S %Y}", "msg": text},
        3,
        name="dmesg",
    ),
    "dmesg -H": _human,
    "dmesg -H -x": lambda lines: re.sub(rb"(?m)^", b"kern  :warn  : ", _human(lines).rstrip()),
    "dmesg -H in colour": lambda lines: re.sub(rb"(?m)^(\[.{11}\] )", b"\x1b[32m\\1\x1b[0m", _human(lines)),
    "dmesg -d": _each(_delta),
    "dmesg -d -T": _each(lambda up, time, text: f"[{time:%a %b %e %H:%M:%S %Y} <    0.000012>] {text}"),
    "dmesg -T": _form("dmesg -T"),
    "dmesg -t": _each(lambda up, time, text: text),
    "dmesg of Windows' ssh": lambda lines: _text(lines).replace(b"\n", b"\r\n"),
    "journalctl -o short-iso": _form("journalctl -o short-iso"),
    "journalctl -r": _newest_first(
        _each(lambda up, time, text: f"{time:%Y-%m-%dT%H:%M:%S}+0000 {NODE} kernel: {text}")
    ),
    "journalctl -o json": _each(_entry),
    "journalctl -o json, bytes": _bytes_of_messages,
    "journalctl -o json-pretty": _json_pretty,
    "journalctl -o json | jq -s": _document(_entry),
    "journalctl -o export": _each(lambda up, time, text: FORMS["journalctl -o export"](up, text)),
    "journalctl -o export, bytes": _export,
    "journalctl -o verbose": _each(_verbose),
    "CRI": _each(_cri),
    "CRI, a daemon set that reads the journal": _each(
        lambda up, time, text: f"{_utc(time)} stderr F {json.dumps(_entry(up, time, text))}"
    ),
    "Docker": _each(_docker),
    "kubectl logs --timestamps": _each(lambda up, time, text: f"{_utc(time)} [{up:12.6f}] {text}"),
    "kubectl logs --timestamps of dmesg -t": _each(lambda up, time, text: f"{_utc(time)} {text}"),
    "Cloud Logging, a line each": _each(_cloud_logging),
    "gcloud logging read --format=json": lambda lines: json.dumps(
        [_cloud_logging(*record) for record in _records(lines)][::-1], indent=2
    ).encode(),
    "Cloud Logging, serial console": _each(_serial_console),
    "CloudWatch, a line each": _each(_cloudwatch),
    "aws logs get-log-events": _document(_cloudwatch, 4, name="events"),
    "aws logs tail": _each(
        lambda up, time, text: f"{time.isoformat()} ip-10-0-1-7.host {_cloudwatch(up, time, text)['message']}"
    ),
    "aws logs tail of dmesg": _each(
        lambda up, time, text: f"{time.isoformat()} ip-10-0-1-7/dmesg [{up:12.6f}] {text}"
    ),
    "logcli": _newest_first(_each(_loki)),
    "logcli --forward": _each(_loki),
    "logcli -o jsonl": _newest_first(_each(_loki_json)),
    "logcli -o raw": _each(lambda up, time, text: json.dumps(_entry(up, time, text))),
    "Loki's API": _loki_api,
    "Grafana's download": _newest_first(
        _each(lambda up, time, text: f"{time:%Y-%m-%dT%H:%M:%S.%f}Z\t{text}")
    ),
    "Elasticsearch, a line each": _each(_elastic),
    "Azure Monitor": _document(_azure),
    "Kibana": _document(_kibana),
    "Kibana, a document each": lambda lines: _text(
        json.dumps(_kibana(*record), indent=2) for record in _records(lines)
    ),
    "Splunk": _each(_splunk),
    "Datadog": _each(_datadog),
    "OpenTelemetry": _document(_otel, None, name="logRecords"),
    "aws logs get-query-results": _document(_query_row, 4, name="results"),
    "Fluent Bit": _each(_fluent_bit),
    "gzip": lambda lines: gzip.compress(_text(lines)),
    "xz": lambda lines: lzma.compress(_text(lines)),
    "zstd": lambda lines: zstd.compress(_text(lines)),
    "UTF-16 of PowerShell": lambda lines: _text(lines).decode().replace("\n", "\r\n").encode("utf-16"),
    "UTF-16 without a mark": lambda lines: _text(lines).decode().encode("utf-16-le"),
    "UTF-8 with a mark": lambda lines: b"\xef\xbb\xbf" + _text(lines),
    "UTF-16 in xz": lambda lines: lzma.compress(_text(lines).decode().encode("utf-16")),
}
"""How people have the log of a node, by the program that wrote it."""

_SOME: Final = ["[ 1470.437366] memhog invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=996"]
REFUSED: Final[dict[str, tuple[bytes, str]]] = {
    "nothing": (b"", "is empty"),
    "a journal file": (b"LPKSHHRH" + bytes(500), "it is a journal file"),
    "a zip archive": (b"PK\3\4" + bytes(500), "it is a zip archive"),
    "bzip2": (b"BZh91AY&SY" + bytes(50), "it is compressed by bzip2"),
    "lz4": (b"\x04\x22\x4d\x18" + bytes(50), "it is compressed by lz4"),
    "a tar archive": (b"var/log/kern.log".ljust(257, b"\0") + b"ustar\0" + bytes(500), "it is a tar archive"),
    "a tar archive in gzip": (
        gzip.compress(b"var/log/kern.log".ljust(257, b"\0") + b"ustar\0" + bytes(500)),
        "it is a tar archive",
    ),
    "broken gzip": (gzip.compress(b"x" * 9000)[:20], "cannot be read: Compressed file ended"),
    "gzip with a fault": (b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 80, "cannot be read: Error -3"),
    "xz with a fault": (lzma.compress(b"x" * 9000)[:-20] + bytes(20), "cannot be read"),
    "broken zstd": (zstd.compress(b"x" * 9000)[:12], "cannot be read"),
    "zstd with a fault": (b"\x28\xb5\x2f\xfd" + b"\xff" * 80, "cannot be read"),
    "a program": (b"\x7fELF\2\1\1" + bytes(500), "it is binary data"),
    "noise": (b"\xb5\x0fx,\xd4$2\x1f,\xf0+,", "it is binary data"),
    "gcloud's YAML": (
        b"---\ninsertId: x\njsonPayload:\n  MESSAGE: memhog invoked oom-killer: x\n",
        "it is YAML",
    ),
    "a pod": (b'{\n  "apiVersion": "v1",\n  "kind": "Pod"\n}\n', "it is JSON without messages of the kernel"),
    "a manifest": (b"apiVersion: v1\nkind: Pod\n", "it is a Kubernetes object"),
    "a page to log in": (b"<!DOCTYPE html>\n<html>", "it is XML or HTML"),
    "a table": (
        b'Date,Host,Message\n2026-11-20,node1,"Starting the kubelet"\n',
        "it is a table of comma or tab separated values",
    ),
    "dmesg without the right": (
        b"dmesg: read kernel buffer failed: Operation not permitted\n",
        "and begins with 'dmesg: read kernel buffer failed: Operation not permitted'",
    ),
    "a kubelet's log": (
        b'I1120 21:22:40.437366    1234 oom.go:10] "Starting"\n',
        "a log of the kubelet or of a container runtime without a known line",
    ),
    "a journal of CRI-O": (
        b'Nov 20 21:22:40 node1 crio[7]: time="x" level=info msg="Started container" PID=1\n',
        "a log of the kubelet or of a container runtime without a known line",
    ),
    "events of kubectl": (
        b"Events:\n  Warning  OOMKilling  2m  kernel-monitor, n1  Memory cgroup out of memory: Kill\n",
        "it is output of kubectl",
    ),
    "counters of a cgroup": (
        b"low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n",
        "counts OOM kills in a cgroup, 2, but names no process",
    ),
    "counters of a cgroup with their command": (
        b"$ cat /sys/fs/cgroup/kubepods/memory.events\nlow 0\n",
        "which count OOM kills (oom_kill)",
    ),
    "evictions of a kubelet": (
        b'I1120 21:22:40.43 7 eviction_manager.go:405] "Eviction manager: pods ranked" pods=["a/b"]\n',
        "a log of the kubelet without a line about an OOM kill",
    ),
    "the journal of a unit": (
        b"Nov 20 21:22:40 node1 kubelet[77]: Out of memory: Killed process 7 (x) total-vm:1kB\n",
        "a log of the kubelet or of a container runtime without a known line",
    ),
    "a time that was left out": (
        b"[<time>] vmm: page allocation failure: order:6\n",
        "without lines of the kernel",
    ),
    "earlyoom without a kill": (
        b"mem avail:   747 of  7935 MiB ( 9.41%)\n",
        "an OOM daemon in which no kill is understood",
    ),
    "an application's container": (
        b"2026-11-20T21:22:40.4Z stdout F started\n",
        "without lines of the kernel",
    ),
    "an unknown prefix": (
        b"[  492.6] eth0: link up\n21:22:40 kern/7 Out of memory: Killed process 7 (x) total-vm:1kB\n",
        "line 2: part of an OOM report comes after an unknown prefix",
    ),
    "a report that breaks off": (_text(_SOME), "line 1: an OOM report breaks off"),
    "a table without rows": (
        b"[  492.67] 30649 pages reserved\n[  492.68] Tasks state (memory values in pages):\n",
        "line 2: an OOM report breaks off",
    ),
    "a trace alone": (
        b"[ 149.1] Call Trace:\n[ 149.2]  [<ffffffff8adbae46>] out_of_memory+0x4b6/0x4f0\n",
        "line 2: an OOM report breaks off",
    ),
}
"""Files that are no kernel log, and what of the error names the reason."""
