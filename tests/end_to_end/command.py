"""The command line in a process of its own, as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TIMEOUT_SECONDS = 60


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout."""
        return self.out.splitlines()


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the machine's own configuration but where programs are."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", **(more or {})}


def command(*arguments: str | Path) -> list[str]:
    """The words that start it."""
    return [sys.executable, "-m", "kubectl_qos", *map(str, arguments)]


class Run:
    """Runs the command in a folder that is its home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(
        self, *arguments: str | Path, given: str | bytes = b"", variables: Mapping[str, str] | None = None
    ) -> Done:
        """Run it to its end; `given` is its standard input."""
        done = subprocess.run(
            command(*arguments),
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            cwd=self.home,
            env=environment(self.home, variables),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
