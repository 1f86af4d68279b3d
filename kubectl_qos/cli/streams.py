"""The only writers of stdout and stderr: data goes to the first, everything else to the second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from itertools import cycle
from typing import Final

from kubectl_qos.errors import QosError
from kubectl_qos.present.format import escape

_is_forgotten = False
_AS_KUBECTL_SAYS_IT = ("Error from server", "The connection to the server", "Unable to connect")


def prepare() -> None:
    """Spell out characters that the terminal's encoding lacks, where Python would give up."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def out(lines: Iterable[str]) -> None:
    """Lines of data. A reader that went away (`| head`) ends the writing quietly."""
    _write(f"{line}\n" for line in lines)


def out_text(text: str) -> None:
    """A text of data as it stands."""
    _write((text,))


def is_stdout_closed() -> bool:
    """Whether the reader of stdout went away (`| head`)."""
    return _is_forgotten


def note(text: str) -> None:
    """A line that is no data; whatever a server or file put into it, it stays one line."""
    end_progress()
    if sys.stderr is not None:
        sys.stderr.write(f"{escape(text)}\n")


def notes(lines: Iterable[str]) -> None:
    """Each line once, in order."""
    for line in dict.fromkeys(lines):
        note(line)


def is_interactive() -> bool:
    """Whether somebody sits there who can be asked: both ends are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ask(question: str) -> str:
    """The line that a person answers, without what is around it; empty where there is none."""
    end_progress()
    sys.stderr.write(f"{escape(question)} ")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def error(found: QosError) -> None:
    """An error's sentence, those of its notes, and its remedy, each on a line."""
    text = str(found)
    note(text if text.startswith(_AS_KUBECTL_SAYS_IT) else f"error: {text}")
    for other in getattr(found, "__notes__", ()):
        note(f"error: {other}")
    if found.hint:
        note(f"hint: {found.hint}")


class ProgressLine:
    """How many items of a long list have arrived, on one line of a terminal that disappears again."""

    def __init__(self) -> None:
        self._found = 0
        self._total: int | None = None
        self._ended = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._is_drawn = False
        if sys.stderr is not None and sys.stderr.isatty():
            threading.Thread(target=self._draw, daemon=True).start()

    def __call__(self, found: int, total: int | None) -> None:
        """So many have arrived, of so many if the server says."""
        self._found, self._total = found, total

    def end(self) -> None:
        """Leave nothing behind."""
        with self._one_at_a_time:
            self._ended.set()
            if self._is_drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _draw(self) -> None:
        for sign in cycle("|/-\\"):
            self._ended.wait(_PROGRESS_SECONDS)
            of = f" of {self._total:,}" if self._total is not None else ""
            with self._one_at_a_time:
                if self._ended.is_set():
                    return
                self._is_drawn = True
                count = f"{self._found:,}{of} pods" if self._found else "asking"
                sys.stderr.write(f"\r{sign} {count}\x1b[K")
                sys.stderr.flush()


_PROGRESS_SECONDS: Final = 0.25
_progress: list[ProgressLine] = []


def progress() -> ProgressLine:
    """A new progress line; it ends before anything else is written."""
    end_progress()
    _progress.append(ProgressLine())
    return _progress[-1]


def end_progress() -> None:
    """Clear the line, if there is one."""
    with suppress(IndexError):  # several threads may end it at once
        while True:
            _progress.pop().end()


def _write(texts: Iterable[str]) -> None:
    end_progress()
    if sys.stdout is None:
        raise QosError("standard output is closed")
    try:
        sys.stdout.writelines(texts)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    except OSError as found:
        _forget_stdout()
        raise QosError(f"standard output cannot be written: {found.strerror}") from None


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail again."""
    global _is_forgotten  # noqa: PLW0603 - as there is one stdout
    _is_forgotten = True
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
