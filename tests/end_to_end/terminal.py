"""The command in a process with a terminal of its own, as a person has it, or with its output in a pipe."""

from __future__ import annotations

import codecs
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path

from tests.end_to_end.command import TIMEOUT_SECONDS, command, environment, signals_arrive


class Terminal:
    """The command, and what it has said so far on its terminal.

    With a size or as a pipe, only stdout is there; `errors` is what it says on stderr then.
    """

    def __init__(
        self, home: Path, *arguments: str, size: tuple[int, int] | None = None, pipe: bool = False
    ) -> None:
        self._end, inner = os.pipe() if pipe else pty.openpty()
        self._errors = home / "stderr"
        if size is not None:
            ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        with signals_arrive(), self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command(*arguments),
                stdin=subprocess.DEVNULL if pipe else inner,
                stdout=inner,
                stderr=errors if pipe or size is not None else inner,
                cwd=home,
                env=environment(home),
                start_new_session=True,
            )
        os.close(inner)
        self.said = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def until(self, found: str | Callable[[str], bool]) -> str:
        """Everything so far, once this was said. A screen that is drawn again and again is not waited for."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not (found in self.said if isinstance(found, str) else found(self.said)):
            assert time.monotonic() < end, (self.said[-4_000:], self.errors())
            piece = self._read()
            assert piece, (self.said, self.errors())
            self.said += piece
        return self.said

    def answer(self, text: str) -> None:
        os.write(self._end, f"{text}\n".encode())

    def errors(self) -> str:
        return self._errors.read_text()

    def ended(self) -> tuple[int, str]:
        """The exit code, and all that was said."""
        while piece := self._read():
            self.said += piece
        self.close()
        return self.process.wait(TIMEOUT_SECONDS), self.said.replace("\r\n", "\n")

    def close(self) -> None:
        """Go away, as a reader of its output may."""
        if self._end >= 0:
            os.close(self._end)
        self._end = -1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    def _read(self) -> str:
        ready, _, _ = select.select([self._end], [], [], TIMEOUT_SECONDS)
        if not ready:
            self.process.kill()
            raise TimeoutError(f"nothing more was said after: {self.said}")
        try:
            piece = os.read(self._end, 1 << 16)
        except OSError:  # the other end is closed
            return ""
        return self._decode(piece) or (self._read() if piece else "")
