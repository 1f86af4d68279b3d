"""The recorded kernel logs, and the formats in which other programs write them."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from tests.recordings.files import read_json, read_lines

RUNS: Final = ("global-A", "kubepods-C", "memcg-cgroupfs", "memcg-oomgroup", "memcg-singleprocess")
BOOTED: Final = datetime(2026, 11, 20, 20, 58, 10, tzinfo=UTC)
_UPTIME = re.compile(r"\[ *(\d+\.\d+)\] (.*)")

Form = Callable[[float, str], str]


@cache
def recorded_log(run: str) -> tuple[str, ...]:
    """The lines of a run as dmesg printed them."""
    return tuple(read_lines(f"node-1.36/oom-{run}.dmesg.txt"))


@cache
def first_reports(run: str, count: int = 2) -> tuple[str, ...]:
    """The lines of the first reports of a run."""
    lines = recorded_log(run)
    begins = [number for number, line in enumerate(lines) if " invoked oom-killer: " in line]
    return lines[: begins[count]]


@cache
def recorded_run(run: str) -> Any:
    """Everything that was recorded of a run."""
    return read_json(f"node-1.36/oom-{run}.json")


def rewritten(lines: Iterable[str], form: Form) -> list[str]:
    """The same log by another program; continuations, which dmesg indents, do not change."""
    log = []
    for line in lines:
        record = _UPTIME.fullmatch(line)
        log += form(float(record[1]), record[2]).split("\n") if record is not None else [line]
    return log


def _at(uptime: float) -> datetime:
    return BOOTED + timedelta(seconds=uptime)


def _journal(uptime: float, message: str) -> str:
    time = str(int(_at(uptime).timestamp() * 1e6))
    entry = {"__CURSOR": "s=1", "__REALTIME_TIMESTAMP": time, "_TRANSPORT": "kernel", "_HOSTNAME": "node1"}
    entry |= {"SYSLOG_IDENTIFIER": "kernel", "MESSAGE": message}
    return json.dumps(entry | {"_SOURCE_MONOTONIC_TIMESTAMP": str(int(uptime * 1e6))})


def _export(uptime: float, message: str) -> str:
    time = int(_at(uptime).timestamp() * 1e6)
    fields = ["__CURSOR=s=1;i=2", f"__REALTIME_TIMESTAMP={time}", f"MESSAGE={message}"]
    return "\n".join([*fields, "_HOSTNAME=node1", "_TRANSPORT=kernel", "PRIORITY=4", ""])


def _talos_json(uptime: float, message: str) -> str:
    return json.dumps(
        {"facility": "kern", "msg": message, "talos-level": "warn", "talos-time": _at(uptime).isoformat()}
    )


FORMS: Final[dict[str, Form]] = {
    "dmesg": lambda up, text: f"[{up:12.6f}] {text}",
    "dmesg -T": lambda up, text: f"[{_at(up):%a %b %e %H:%M:%S %Y}] {text}",
    "dmesg -T in Japanese": lambda up, text: f"[金 11月 20 {_at(up):%H:%M:%S %Y}] {text}",
    "dmesg --time-format iso": lambda up, text: f"{_at(up):%Y-%m-%dT%H:%M:%S,%f}+00:00 {text}",
    "dmesg -r": lambda up, text: f"<4>[{up:12.6f}] {text}",
    "dmesg -x": lambda up, text: f"kern  :warn  : [{up:12.6f}] {text}",
    "dmesg -xT": lambda up, text: f"kern  :info  : [{_at(up):%a %b %e %H:%M:%S %Y}] {text}",
    "dmesg in colour": lambda up, text: f"\x1b[32m[{up:12.6f}] \x1b[0m{text}",
    "a caller": lambda up, text: f"[{up:12.6f}] [ T1234] {text}",
    "/dev/kmsg": lambda up, text: f"4,77,{int(up * 1e6)},-;{text}",
    "/dev/kmsg with a caller": lambda up, text: f"6,77,{int(up * 1e6)},-,caller=T1234;{text}",
    "journalctl": lambda up, text: f"{_at(up):%b %e %H:%M:%S} node1 kernel: {text}",
    "journalctl -o short-precise": lambda up, text: f"{_at(up):%b %e %H:%M:%S.%f} node1 kernel: {text}",
    "journalctl -o short-iso": lambda up, text: f"{_at(up):%Y-%m-%dT%H:%M:%S}+0000 node1 kernel: {text}",
    "journalctl -o short-iso-precise": lambda up, text: (
        f"{_at(up):%Y-%m-%dT%H:%M:%S.%f}+00:00 ip-10-0-1-7.ec2.internal kernel: {text}"
    ),
    "journalctl -o short-full": lambda up, text: f"{_at(up):%a %Y-%m-%d %H:%M:%S} UTC node1 kernel: {text}",
    "journalctl -o short-monotonic": lambda up, text: f"[{up:12.6f}] node1 kernel: {text}",
    "journalctl -o short-delta": lambda up, text: f"[{up:12.6f} <    0.000012 >] node1 kernel: {text}",
    "journalctl -o short-unix": lambda up, text: f"{_at(up).timestamp():.6f} node1 kernel: {text}",
    "journalctl -o cat": lambda _, text: text,
    "journalctl -o json": _journal,
    "journalctl -o json-seq": lambda up, text: f"\x1e{_journal(up, text)}",
    "journalctl -o json-sse": lambda up, text: f"data: {_journal(up, text)}\n",
    "journalctl -o export": _export,
    "syslog": lambda up, text: f"{_at(up):%b %e %H:%M:%S} node1 kernel: [{up:12.6f}] {text}",
    "syslog without a host": lambda up, text: f"{_at(up):%b %e %H:%M:%S} kernel: {text}",
    "syslog with an empty host": lambda up, text: f"{_at(up):%b %e %H:%M:%S}  kernel: {text}",
    "syslog with a facility": lambda up, text: f"{_at(up):%b %e %H:%M:%S} node1 kern.warn kernel: {text}",
    "rsyslog": lambda up, text: f"{_at(up):%Y-%m-%dT%H:%M:%S.%f}+00:00 node1 kernel: [{up:12.6f}] {text}",
    "RFC 5424": lambda up, text: f"<4>1 {_at(up):%Y-%m-%dT%H:%M:%S.%f}Z node1 kernel - - - {text}",
    "Talos": lambda up, text: f"kern: warning: [{_at(up):%Y-%m-%dT%H:%M:%S.%f}123Z]: {text}",
    "Talos, aligned": lambda up, text: f" kern:    info: [{_at(up):%Y-%m-%dT%H:%M:%S.%f}123Z]: {text}   ",
    "Talos, many nodes": lambda up, text: (
        f"10.200.70.91: kern: warning: [{_at(up):%Y-%m-%dT%H:%M:%S.%f}123Z]: {text}"
    ),
    "Talos, JSON": _talos_json,
    "kubectl logs --prefix": lambda up, text: f"[pod/npd-x/npd] [{up:12.6f}] {text}",
    "a name before it": lambda up, text: f"node1 | [{up:12.6f}] {text}",
    "fluentd": lambda up, text: (
        f"{_at(up):%Y-%m-%d %H:%M:%S.%f}000 +0000 host.kern: {json.dumps({'message': text, 'host': 'node1'})}"
    ),
    "Kata": lambda up, text: (
        f'time="{_at(up):%Y-%m-%dT%H:%M:%SZ}" level=debug msg="reading guest console" pid=77 sandbox=node1'
        f" source=virtcontainers vmconsole={json.dumps(f'[{up:12.6f}] {text}')}"
    ),
    "Windows": lambda up, text: f"[{up:12.6f}] {text}\r",
}
"""How programs write a message of the kernel, by seconds since boot."""
