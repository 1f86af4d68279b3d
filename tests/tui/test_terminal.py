"""The UI in a terminal of its own: signals, its end, its size and what it leaves behind."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest


class Terminal:
    """The program in a terminal of its own: what it paints, and what becomes of it."""

    def __init__(self, state: Path, *, size: tuple[int, int] = (24, 80), **environment: str) -> None:
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, size)
        self.ours = ours
        self.painted = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kubectl_qos", "--demo"],
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "KUBECTL_QOS_CONFIG": "",
                "KUBECTL_QOS_STATE": str(state),
                **environment,
            },
        )
        os.close(its)

    def read(self, seconds: float) -> bool:
        """Take what it paints within so long; whether there was anything."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        try:
            found = os.read(self.ours, 65536)
        except OSError:  # nobody is at the other end any more
            return False
        self.painted += found
        return bool(found)

    def until_painted(self, text: str) -> None:
        """Wait for a text."""
        end = time.monotonic() + 60
        while text.encode() not in self.painted and time.monotonic() < end:
            self.read(0.1)
        assert text.encode() in self.painted

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.process.wait(1)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        with suppress(OSError):
            os.close(self.ours)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def open_one(**given: Any) -> Terminal:
        opened.append(Terminal(tmp_path / "state", **given))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_terminated_it_gives_the_terminal_back_and_keeps_what_q_keeps(terminals: Any, tmp_path: Path) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.write(terminal.ours, b"2")
    terminal.until_painted("8 namespaces")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM
    assert b"\x1b[?1049l" in terminal.painted, "the screen as it was before"
    assert b"\x1b[?1000l" in terminal.painted, "no mouse any more"
    assert '"namespaces"' in (tmp_path / "state" / "state.json").read_text(encoding="utf-8")


def test_when_its_terminal_is_closed_it_ends_and_keeps_what_q_keeps(terminals: Any, tmp_path: Path) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.close(terminal.ours)
    terminal.process.send_signal(signal.SIGHUP)  # which shells send; here it leads its own session
    assert terminal.process.wait(30) == 128 + signal.SIGHUP
    assert (tmp_path / "state" / "state.json").exists()


def test_when_its_terminal_goes_away_without_a_word_it_ends_too(terminals: Any) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.close(terminal.ours)
    assert terminal.process.wait(30) == 128 + signal.SIGHUP


def test_a_terminal_without_a_size_gets_the_usual_one(terminals: Any) -> None:
    terminal = terminals(size=(0, 0))
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    assert termios.tcgetwinsize(terminal.ours) == (24, 80)


def test_ctrl_z_suspends_and_back_in_front_everything_is_painted_again(terminals: Any) -> None:
    terminal = terminals()
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    os.write(terminal.ours, b"\x1a")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        terminal.read(0.05)
        pid, status = os.waitpid(terminal.process.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            break
    else:
        pytest.fail("it goes on")
    while terminal.read(0.2):
        pass
    assert b"\x1b[?1049l" in terminal.painted
    terminal.painted = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until_painted("api-7d9c5b6f8-x2mzq")
    terminal.until_painted("quit")


def test_a_terminal_that_cannot_be_painted_on_is_refused(terminals: Any) -> None:
    terminal = terminals(TERM="dumb")
    assert terminal.ended() == 1
    said = re.sub(r"\s+", " ", terminal.painted.decode())
    assert "TERM=dumb" in said
    assert "kubectl qos top prints the ranking" in said
