"""Recorded reports of kernels as people paste them: cut, wrapped, indented, quoted, mixed.

`python -m tests.host.broken_reports MINUTES [SEED]` makes them until one says something wrong.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.kills import detail_lines
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.choice import VictimChoice
from kubectl_qos.qos.kills.report import KernelLog
from tests.host.kernel_logs import FORMS, RUNS, recorded_log, rewritten
from tests.recordings.files import read_lines

NOW: Final = datetime(2026, 11, 24, tzinfo=UTC)
UNKNOWN_LIMITS: Final = frozenset({Mechanism.MEMORY_LIMIT, Mechanism.KERNEL, Mechanism.UNKNOWN})
Lines = list[str]


@cache
def recorded_logs() -> tuple[tuple[str, ...], ...]:
    """Every log with reports of a real kernel, as dmesg or journalctl printed it, and those of older ones."""
    pending = read_lines("node-1.36-c/pending-resize-oom.dmesg.txt")
    newer = read_lines("node-1.36-d/oom-6.12.log")
    paths = enumerate(sorted(Path(__file__).parent.glob("linux-*.txt")), 5)
    written = (_with_uptimes(path.read_text().splitlines(), 1000 * place) for place, path in paths)
    return (*map(recorded_log, RUNS), tuple(pending), tuple(newer), *written)


def _with_uptimes(lines: Lines, begin: int) -> tuple[str, ...]:
    """As dmesg prints them: the other lines of a message, which are indented, have no time."""
    is_in_two = any("4.4.0" in line for line in lines)
    return tuple(
        line
        if line.startswith(" " * 8)
        else f"[{begin + n / 1000:12.6f}] {line.replace('8308', '9308') if is_in_two else line}"
        for n, line in enumerate(lines)
    )


def kills_of(log: KernelLog) -> list[Kill]:
    """What is said of a log alone."""
    return find_kills(Snapshot(), EventList(), [log])


def claims(kill: Kill) -> dict[str, Any]:
    """What is said of a kill, by name; what is not known is None."""
    report, choice = kill.report, kill.choice
    assert report is not None
    victim, memory = report.victim, report.memory
    ranking = choice if isinstance(choice, VictimChoice) and choice.is_whole else None
    mechanism = kill.diagnosis.mechanism
    is_unknown = mechanism in UNKNOWN_LIMITS or (mechanism == "node" and report.is_manual is None)
    return {
        "command": victim.comm.replace(" ", "") if victim is not None and victim.comm[-1:] != "…" else None,
        "mechanism": None if is_unknown else mechanism,
        "pod": kill.pod_uid or None,
        "container": kill.container_id or None,
        "limit": memory.full,
        "kinds of memory": (memory.anon_kb, memory.file_kb, memory.shmem_kb, memory.swapped_kb),
        "swap": (memory.swap_usage_kb, memory.swap_limit_kb),
        "anonymous": victim.anon_rss_kb if victim is not None else None,
        "place": (ranking.chosen.place, len(ranking.ranked)) if ranking is not None else None,
        "users": [(task.pid, task.rss, task.adj) for task in report.tasks] if report.is_table_whole else None,
        "is of a group": True if report.group_kill else False if report.is_alone else None,
        "kernel": report.kernel or None,
    }


def _differences(said: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """The names of what is said, and is not so; of several values each may be unknown."""
    for name, value in said.items():
        whole = known[name]
        pairs = zip(value, whole or value, strict=False) if isinstance(value, tuple) else [(value, whole)]
        if any(part is not None and part != other and (part or other) for part, other in pairs):
            yield name


@cache
def whole_kills() -> tuple[Kill, ...]:
    """The kills of the whole logs."""
    return tuple(kill for lines in recorded_logs() for kill in kills_of(read_log(lines)))


@cache
def known_claims() -> Mapping[int, dict[str, Any]]:
    """What is said of each victim in the whole logs."""
    with_victim = [(kill, kill.report.victim) for kill in whole_kills() if kill.report is not None]
    return {victim.pid: claims(kill) for kill, victim in with_victim if victim is not None}


@cache
def others_killed() -> Mapping[int, dict[str, Any]]:
    """The others of groups: a log that begins among them has no first one."""
    others: dict[int, dict[str, Any]] = {}
    for kill in whole_kills():
        report = kill.report
        assert report is not None
        for killed in report.processes[1:]:
            own = {"command": killed.comm.replace(" ", ""), "anonymous": killed.anon_rss_kb}
            others[killed.pid] = claims(kill) | own | {"place": None}
        # Up to 5.0 the log may end before the child that was killed instead.
        for task in report.tasks:
            if task.pid == report.chosen:
                others[task.pid] = claims(kill) | {"command": task.name.replace(" ", "")}
    return others


def wrong_claims(log: KernelLog) -> Iterator[str]:
    """What is said of a broken log and not of the whole one; of a kill without a victim, nothing of any."""
    for kill in kills_of(log):
        assert "".join(detail_lines(kill)).isprintable()
        victim, said = kill.report.victim if kill.report is not None else None, claims(kill)
        if victim is None:
            if not any(not list(_differences(said, known)) for known in known_claims().values()):
                yield f"no kill is like {said}"
            continue
        known = known_claims().get(victim.pid) or others_killed().get(victim.pid)
        if known is None:
            yield f"process {victim.pid} ({victim.comm}) was not killed"
            continue
        for name in _differences(said, known):
            yield f"{name} of process {victim.pid} is {known[name]}, not {said[name]}"


# --- how logs are broken


def cut(lines: Lines, random: Random) -> Lines:
    """A part of a log, which begins and ends anywhere."""
    begin = random.randrange(len(lines))
    return lines[begin : begin + random.randrange(1, 260)]


def cut_in_lines(lines: Lines, random: Random) -> Lines:
    """The same in the middle of the first line and the last."""
    first, last = lines[0][random.randrange(60) :], lines[-1][: random.randrange(1, len(lines[-1]) + 2)]
    return [first, *lines[1:-1], last] if len(lines) > 1 else lines


def _pieces(line: str, width: int, indent: str = "") -> Lines:
    starts = range(0, max(len(line), 1), width)
    return [(indent if at else "") + line[at : at + width].rstrip() for at in starts]


def hard_wrapped(lines: Lines, random: Random, width: int = 0) -> Lines:
    """As a terminal breaks lines, at a width."""
    width = width or random.randrange(60, 240)
    return [piece for line in lines for piece in _pieces(line, width)]


def wrapped_with_indent(lines: Lines, random: Random, width: int = 0) -> Lines:
    """As an editor breaks lines: what goes on is indented."""
    width, indent = width or random.randrange(60, 200), " " * random.choice((2, 4))
    return [piece for line in lines for piece in _pieces(line, width, indent)]


def word_wrapped(lines: Lines, random: Random, width: int = 0) -> Lines:
    """As a mail program breaks lines, at spaces."""
    width = width or random.randrange(60, 240)
    form = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return [piece for line in lines for piece in form.wrap(line) or [""]]


def cut_by_pager(lines: Lines, random: Random) -> Lines:
    """As a pager shows long lines."""
    width, sign = random.randrange(60, 400), random.choice((">", "…"))
    return [line if len(line) <= width else line[: width - 1] + sign for line in lines]


def cut_by_columns(lines: Lines, random: Random) -> Lines:
    """As a screen that shows no more leaves them: nothing marks a cut.

    A path that ends before a slash looks whole: only there something wrong may be said.
    """
    width = random.randrange(60, 400)
    return [line[: width + (line[width : width + 1] == "/")] for line in lines]


def indented(lines: Lines, random: Random) -> Lines:
    """As a block of code."""
    return [" " * random.choice((4,)) + line for line in lines]


def quoted(lines: Lines, random: Random) -> Lines:
    """As in an answer, of somebody or of an answer."""
    mark = random.choice(("> ", ">", "> > "))
    return ["```", *(f"{mark}{line}" for line in lines), "```"]


def listed(lines: Lines, random: Random) -> Lines:
    """As a list in Markdown, with numbers or as code."""
    form = random.choice(("- {}", "* `{}`", "- `{}`", "{n}. {}", "  {n}) `{}`"))
    return [form.format(line.strip(), n=number) for number, line in enumerate(lines, 1)]


def mixed(lines: Lines, random: Random) -> Lines:
    """With lines of other programs between."""
    others = [
        'Nov 20 21:22:40 node1 containerd[77]: time="2026-11-20T21:22:40Z" level=info msg="TaskOOM event"',
        "Nov 20 21:22:40 node1 k3s[7]: E1120 21:22:40 kubelet.go:7] Killed process 1 (x) total-vm:1kB",
        'Nov 20 21:22:40 node1 kubelet[7]: I1120 21:22:40.1 7 m:7] Created an OOM event in container "/" at',
        "Nov 20 21:22:40 node1 systemd[1]: a.scope: A process of this unit has been killed by the OOM kille",
    ]
    return [part for line in lines for part in ([random.choice(others)] * (random.random() < 0.1)) + [line]]


def grepped(lines: Lines, random: Random) -> Lines:
    """As grep leaves them."""
    words = random.choice(
        (("oom", "OOM"), ("ill",), ("oom", "emory"), ("Killed process",), ("oom-kill", "memhog"))
    )
    return [line for line in lines if any(word in line for word in words)] or ["x"]


def in_form(lines: Lines, random: Random) -> Lines:
    """As another program prints the log, as text and with times."""
    others = ("export", "json", "JSON", "fluentd", "Kata", "-o cat")
    form = FORMS[random.choice([name for name in FORMS if not any(word in name for word in others)])]
    return rewritten(lines, form) if lines[0].startswith("[") else lines


def left_out(lines: Lines, random: Random) -> Lines:
    """With a part left out, and a mark in its place."""
    at, size = random.randrange(len(lines)), random.randrange(1, 60)
    return [*lines[:at], random.choice(MARKS), *lines[at + size :]]


MARKS: Final = (
    *("...", "[...]", "…", "……", "<snip>", "-----", ". . .", "--8<--", "[... 120 lines omitted ...]", "```"),
    *("<output omitted>", "(some lines later)", "[truncated 20 lines]", "# ...", "*** later that day ***"),
    *("... 14 more lines ...", "-- Reboot --"),
)
"""What people write in place of lines."""
BREAKS: Final[tuple[Callable[[Lines, Random], Lines], ...]] = (
    *(in_form, grepped, left_out, mixed, cut_by_pager, cut_by_columns),
    *(hard_wrapped, word_wrapped, wrapped_with_indent, indented, listed, quoted),
)
"""In the order in which a log is written, searched, shown and pasted."""


def broken(random: Random) -> Lines:
    """Parts of recorded logs: one, some after each other, or mixed as the times of their lines allow."""
    logs = random.sample(recorded_logs(), random.choice((1, 1, 2, 3)))
    pieces = [cut(list(log), random) for log in logs]
    lines = pieces[0]
    for piece in pieces[1:]:
        while len(piece) > 1 and piece[0][:1] == " ":
            piece.pop(0)
        lines = [*lines, "...", *piece] if random.random() < 0.5 else interleaved(lines, piece, random)
    if random.random() < 0.5:
        # Only the next line says whose a line without its time is: it has to be of the same log.
        is_followed = lines[1:2] in (pieces[0][1:2], ["..."])
        first, *others = cut_in_lines(lines, random)
        lines = [first if is_followed else lines[0], *others]
    for change in sorted(random.sample(BREAKS, random.choice((0, 1, 1, 2, 3))), key=BREAKS.index):
        lines = change(lines, random)
    return lines


def interleaved(one: Lines, other: Lines, random: Random) -> Lines:
    """Two logs in one file: each keeps its order, and lines of several lines stay together.

    What is left of a message without its beginning stays first: behind a line of the other log it goes on.
    """
    begin = next((n for n, line in enumerate(one) if line[:1] != " "), len(one))
    lines, queues = one[:begin], [one[begin:], list(other)]
    while all(queues):
        queue = random.choice(queues)
        for _ in range(random.randrange(1, 30)):
            lines.append(queue.pop(0))
            while queue and queue[0][:1] == " ":
                lines.append(queue.pop(0))
            if not queue:
                break
    return lines + queues[0] + queues[1]


def main(minutes: float, seed: int) -> int:
    """Break logs for so long; print the first one of which something wrong is said."""
    end, count = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        lines = broken(Random(seed + count))
        wrong = list(wrong_claims(read_log(lines, NOW)))
        if wrong:
            print("\n".join(lines), f"\nseed {seed + count}:", *wrong, sep="\n  ")  # noqa: T201
            return 1
        count += 1
    print(f"{count} logs, from seed {seed} on: nothing wrong")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])))
