"""`-v`: a handler of standard logging that writes klog's lines.

Commands log to stderr. The terminal UI owns the screen, so it logs to a private file of bounded size. Not
here: what is logged (transport/logging.py).

Source: k8s.io/klog/v2 (the head of a line).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Final

from kubectl_qos.cli import output
from kubectl_qos.present.format import escape

TRACEBACKS: Final = 9
MAX_BYTES: Final = 5_000_000
MAX_FILES: Final = 10
"""How many files are kept; a new one replaces the oldest."""


@contextmanager
def logging_to(level: int, *, to_file: bool) -> Iterator[None]:
    """Log up to a verbosity level, `to_file` to a private file whose path is printed at the end."""
    file = _new_file() if to_file else None
    write = file.write if file is not None else None if to_file else output.note
    try:
        with klog(level, write) if write is not None else nullcontext():
            yield
    except Exception:
        if level >= TRACEBACKS:
            import traceback

            for line in traceback.format_exc().splitlines():
                output.note(line)
        raise
    finally:
        if file is not None:
            file.close()
            output.note(f"the log of -v={level} is in {file.path}")


@contextmanager
def klog(level: int, write: Callable[[str], None]) -> Iterator[None]:
    """Write log records up to a verbosity level, line by line as klog does."""
    import logging

    from kubectl_qos.transport.logging import LOGGER

    class KlogHandler(logging.Handler):
        """Keeps the lines of a record together, since handlers are locked."""

        def emit(self, record: logging.LogRecord) -> None:
            time = datetime.fromtimestamp(record.created)  # noqa: DTZ006 - the local time, as klog has it
            head = f"I{time:%m%d %H:%M:%S.%f} {record.process:7} {record.filename}:{record.lineno}] "
            for line in record.msg:
                write(f"{head}{line}")

    logger, handler = logging.getLogger(LOGGER), KlogHandler()
    logger.setLevel(max(logging.INFO - level, 1))
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(handler)


class LogFile:
    """A new file that only its owner may read; after `max_bytes` it ends with a line about that.

    Raises OSError.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._left = max_bytes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def write(self, line: str) -> None:
        """Write a line unless the file is full."""
        if self._left <= 0:
            return
        text = f"{escape(line)}\n".encode(errors="backslashreplace")
        self._left -= len(text)
        if self._left <= 0:
            text = f"the log is cut off at {self._max_bytes} bytes\n".encode()
        try:
            os.write(self._file, text)
        except OSError:
            self._left = 0

    def close(self) -> None:
        """Stop writing."""
        self._left = 0
        os.close(self._file)


def _new_file() -> LogFile | None:
    """Create the log file of this run; return None, with a note, if that fails."""
    from kubectl_qos.config import state_dir

    folder = state_dir()
    if folder is None:
        output.note("nothing is logged: there is no state folder ($KUBECTL_QOS_STATE)")
        return None
    try:
        for old in sorted(folder.glob("log-*.txt"))[: 1 - MAX_FILES]:
            old.unlink(missing_ok=True)
        return LogFile(folder / f"log-{datetime.now():%Y%m%dT%H%M%S}-{os.getpid()}.txt")  # noqa: DTZ005 - local
    except OSError as error:
        output.note(f"nothing is logged: {folder} cannot be written: {error.strerror}")
        return None
