"""`-v`: how much is told, and where it goes.

Commands tell it on stderr. The terminal UI has the screen for itself, so each run of it has a file, which
nobody else may read and which does not grow without end. Not here: what is told (cluster/access/log.py).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubectl_qos.cli import streams
from kubectl_qos.present.format import escape

TRACEBACKS: Final = 9
MOST_BYTES: Final = 5_000_000
MOST_FILES: Final = 10
"""So many files are kept; with a new one the oldest goes."""


@contextmanager
def logging_to(options: argparse.Namespace, *, on_screen: bool) -> Iterator[None]:
    """What happens inside is told as -v has it; with `on_screen` in a file, which is named at the end."""
    level: int = getattr(options, "verbosity", 0)
    if not level:
        yield
        return
    from kubectl_qos.transport import logging as log

    file = _new_file() if on_screen else None
    if file is not None:
        log.start(level, file.write)
    elif not on_screen:
        log.start(level, streams.note)
    try:
        yield
    except Exception:
        if level >= TRACEBACKS:
            _tell_traceback()
        raise
    finally:
        log.stop()
        if file is not None:
            file.close()
            streams.note(f"what -v={level} tells is in {file.path}")


class LogFile:
    """A new file, for its owner's eyes only. Raises OSError.

    Args:
        path: where it is made.
        most_bytes: after so many a line says that it ends there.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self._most = most_bytes
        self._left = most_bytes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def write(self, line: str) -> None:
        """One more line, as long as there is room."""
        if self._left <= 0:
            return
        text = f"{escape(line)}\n".encode(errors="backslashreplace")
        self._left -= len(text)
        if self._left <= 0:
            text = f"the log ends here: it has its {self._most} bytes\n".encode()
        try:
            os.write(self._file, text)
        except OSError:
            self._left = 0

    def close(self) -> None:
        """Write no more."""
        self._left = 0
        os.close(self._file)


def _new_file() -> LogFile | None:
    """The file of this run; None, which is said, where none can be."""
    from datetime import datetime

    from kubectl_qos.config.paths import state_dir

    folder = state_dir()
    if folder is None:
        streams.note("nothing is logged: there is no folder for what is kept ($KUBECTL_QOS_STATE)")
        return None
    try:
        for old in sorted(folder.glob("log-*.txt"))[: 1 - MOST_FILES]:
            old.unlink(missing_ok=True)
        return LogFile(folder / f"log-{datetime.now():%Y%m%dT%H%M%S}-{os.getpid()}.txt")  # noqa: DTZ005 - local
    except OSError as error:
        streams.note(f"nothing is logged: {folder} cannot be written: {error.strerror}")
        return None


def _tell_traceback() -> None:
    import traceback

    for line in traceback.format_exc().splitlines():
        streams.note(line)
