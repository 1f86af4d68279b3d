"""What runs behind one page: the whole program, with a browser as its terminal."""

from __future__ import annotations

import os
import runpy
import sys
from io import TextIOWrapper
from threading import Lock

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp


class PageDriver(WebDriver):
    """Keeps packets whole, and leaves the UI once nobody is at the other end, as when a terminal is closed.

    Frames are written by one thread and downloads by another; in a pipe long writes mix.
    """

    _one_at_a_time = Lock()

    def write(self, data: str) -> None:
        """Write what the terminal shows."""
        with self._one_at_a_time:
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a message to the server."""
        with self._one_at_a_time:
            super().write_meta(data)

    def write_binary_encoded(self, data: tuple[str | bytes, ...]) -> None:
        """Write a piece of a download."""
        with self._one_at_a_time:
            super().write_binary_encoded(data)

    def run_input_thread(self) -> None:
        """Take what is typed until there is no more of it."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno)
            self.send_message(ExitApp())


class _Terminal(TextIOWrapper):
    """A pipe that is a terminal, as far as the program has to know."""

    def isatty(self) -> bool:
        return True


def main() -> None:
    """Run the program with this process's arguments; it ends the process."""
    assert isinstance(sys.stdin, TextIOWrapper)
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdin = sys.__stdin__ = _Terminal(sys.stdin.detach())  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _Terminal(sys.stdout.detach())  # type: ignore[misc]
    runpy.run_module("kubectl_qos", run_name="__main__")


if __name__ == "__main__":
    main()
