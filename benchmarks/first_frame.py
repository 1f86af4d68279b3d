"""The time until the terminal UI shows the next victim of the demo."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Sequence

from benchmarks.measure import AS_INSTALLED

VICTIM = b"api-7d9c5b6f8-x2mzq"


def first_frame(command: Sequence[str]) -> float:
    """The seconds from the start of the command with `--demo`, in a pseudo terminal of its own."""
    reader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 120))
    nobodys = {"KUBECTL_QOS_CONFIG": "", "KUBECTL_QOS_STATE": ""}
    environment = {**os.environ, **AS_INSTALLED, **nobodys, "TERM": "xterm-256color"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--demo"], stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    seen = b""
    while VICTIM not in seen:
        if not select.select([reader], [], [], 30)[0]:
            process.kill()
            raise SystemExit("the demo never came up")
        seen += os.read(reader, 65536)
    taken = time.perf_counter() - began
    process.kill()
    process.wait()
    os.close(reader)
    return taken
