"""Runs a command in a separate process and measures time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Modules are compiled once: where a shell forbids that, every start would compile all of them again."""


class Run(NamedTuple):
    """Wall time and CPU time in seconds, peak memory in bytes."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, *, exit_code: int = 0) -> Run:
    """The measurements of one run. Raises CalledProcessError if it ended with another exit code."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **AS_INSTALLED, **(environment or {})},
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != exit_code:
        raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def interleaved(
    commands: Mapping[str, Sequence[str]], times: int, environment: Mapping[str, str] | None = None
) -> dict[str, Run]:
    """The median of each command over rounds in which each runs once, so that noise hits them alike."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            runs[name].append(run(command, environment))
    return {name: Run(*map(median, zip(*found, strict=True))) for name, found in runs.items()}
