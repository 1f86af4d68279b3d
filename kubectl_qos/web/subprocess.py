"""The process behind one page: the whole program, with a browser as its terminal."""

import os
import runpy
import sys
from io import TextIOWrapper
from threading import Lock

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp


class PageDriver(WebDriver):
    """A driver that writes whole packets, and ends the UI when the page is closed, as a terminal would.

    A lock keeps packets whole: one thread writes frames, another one downloads.
    """

    _lock = Lock()

    def write(self, data: str) -> None:
        """Write output of the terminal."""
        with self._lock:
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a request to the page."""
        with self._lock:
            super().write_meta(data)

    def write_binary_encoded(self, data: tuple[str | bytes, ...]) -> None:
        """Write a part of a download."""
        with self._lock:
            super().write_binary_encoded(data)

    def run_input_thread(self) -> None:
        """Read input to its end."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno)
            self.send_message(ExitApp())


class _Terminal(TextIOWrapper):
    def isatty(self) -> bool:
        return True


def main() -> None:
    """Run the program with the arguments of this process, then end the process."""
    assert isinstance(sys.stdin, TextIOWrapper)
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdin = sys.__stdin__ = _Terminal(sys.stdin.detach())  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _Terminal(sys.stdout.detach())  # type: ignore[misc]
    runpy.run_module("kubectl_qos", run_name="__main__")


if __name__ == "__main__":
    main()
