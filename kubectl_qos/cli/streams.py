"""The only writers of stdout and stderr: data goes to the first, everything else to the second."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper

from kubectl_qos.errors import QosError
from kubectl_qos.present.amounts import escape

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


def note(text: str) -> None:
    """A line that is no data; whatever a server or file put into it, it stays one line."""
    if sys.stderr is not None:
        sys.stderr.write(f"{escape(text)}\n")


def notes(lines: Iterable[str]) -> None:
    """Each line once, in order."""
    for line in dict.fromkeys(lines):
        note(line)


def error(found: QosError) -> None:
    """An error's sentence, those of its notes, and its remedy, each on a line."""
    text = str(found)
    note(text if text.startswith(_AS_KUBECTL_SAYS_IT) else f"error: {text}")
    for other in getattr(found, "__notes__", ()):
        note(f"error: {other}")
    if found.hint:
        note(f"hint: {found.hint}")


def _write(texts: Iterable[str]) -> None:
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
