"""The terminal UI of the demo in a pseudo terminal: how soon it is there, and how much it writes."""

from __future__ import annotations

import math
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.measure import AS_INSTALLED

VICTIM = b"api-7d9c5b6f8-x2mzq"


@contextmanager
def demo(command: Sequence[str], columns: int, lines: int) -> Iterator[int]:
    """Run the command with `--demo` in a pseudo terminal of this size; what it writes is read there."""
    reader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (lines, columns))
    nobodys = {"KUBECTL_QOS_CONFIG": "", "KUBECTL_QOS_STATE": ""}
    environment = {
        **os.environ,
        **AS_INSTALLED,
        **nobodys,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    process = subprocess.Popen(
        [*command, "--demo"], stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    try:
        yield reader
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def first_frame(command: Sequence[str]) -> float:
    """The seconds from the start of the command until it shows the next victim."""
    began = time.perf_counter()
    with demo(command, 120, 40) as reader:
        seen = b""
        while VICTIM not in seen:
            if not select.select([reader], [], [], 30)[0]:
                raise SystemExit("the demo never came up")
            seen += os.read(reader, 65536)
        return time.perf_counter() - began


def written(reader: int, seconds: float) -> tuple[int, float]:
    """How many bytes arrive within some seconds, and the seconds until the first of them."""
    began, total, first = time.perf_counter(), 0, math.inf
    while (left := began + seconds - time.perf_counter()) > 0:
        if select.select([reader], [], [], left)[0]:
            total += len(os.read(reader, 65536))
            first = min(first, time.perf_counter() - began)
    return total, first
