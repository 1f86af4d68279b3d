"""Interactive shells with a terminal of their own, in which keys are pressed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios

from tests.completion.installed import Bin
from tests.end_to_end.command import TIMEOUT_SECONDS

COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUP = {
    "bash": 'eval "$(kubectl-qos completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -D -u; eval "$(kubectl-qos completion zsh)"',
    "fish": "kubectl-qos completion fish | source",
}
TAB = "\t"
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios;fcntl.ioctl(0, termios.TIOCSCTTY, 0);os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Fish runs only in a terminal that is its own, which a program has to ask for."""


class Shell:
    """A shell in which `kubectl-qos` completes for real, and otherwise prints its arguments in one line."""

    def __init__(self, name: str, installed: Bin, setup: str | None = None) -> None:
        installed.program(
            "kubectl-qos",
            "#!/bin/sh\n"
            f'case "$1" in __complete | completion) exec "{sys.executable}" -m kubectl_qos "$@" ;; esac\n'
            "printf 'got'\nprintf '<%s>' \"$@\"\necho '!'\n",
        )
        self._end, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *COMMANDS[name]],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=installed.home,
            env=installed.variables({"TERM": "dumb" if name == "fish" else "xterm"}),
            start_new_session=True,
        )
        os.close(inner)
        self._said = ""
        self.press(f"{setup or SETUP[name]}; echo rea''dy\r")
        self.until("ready")

    def press(self, keys: str) -> None:
        """As a person does, faster than the shell reads them."""
        os.write(self._end, keys.encode())

    def until(self, text: str) -> str:
        """What was said up to and with this text, since it was asked for the last time."""
        while text not in self._said:
            ready, _, _ = select.select([self._end], [], [], TIMEOUT_SECONDS)
            assert ready, self._said
            self._said += os.read(self._end, 1 << 16).decode(errors="replace")
        before, self._said = self._said.split(text, 1)
        return before + text

    def words(self, line: str) -> list[str]:
        """The words that the command gets when a line with TABs in it is entered."""
        self.press(f"{line}\r")
        self.until("got<")
        return self.until(">!").removesuffix(">!").split("><")

    def end(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_SECONDS)
        os.close(self._end)
