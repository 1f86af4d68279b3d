"""The command with a terminal of its own, as a person has it."""

from __future__ import annotations

import codecs
import os
import pty
import select
import subprocess
from pathlib import Path

from tests.end_to_end.command import TIMEOUT_SECONDS, command, environment, signals_arrive


class Terminal:
    """The command with a terminal of its own, read until something was said."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self._end, inner = pty.openpty()
        with signals_arrive():
            self.process = subprocess.Popen(
                command(*arguments),
                stdin=inner,
                stdout=inner,
                stderr=inner,
                cwd=home,
                env=environment(home),
                start_new_session=True,
            )
        os.close(inner)
        self.said = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def until(self, text: str) -> str:
        """Everything so far, once this was said."""
        while text not in self.said:
            piece = self._read()
            assert piece, self.said
            self.said += piece
        return self.said

    def answer(self, text: str) -> None:
        os.write(self._end, f"{text}\n".encode())

    def ended(self) -> tuple[int, str]:
        """The exit code, and all that was said."""
        while piece := self._read():
            self.said += piece
        os.close(self._end)
        return self.process.wait(TIMEOUT_SECONDS), self.said.replace("\r\n", "\n")

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
