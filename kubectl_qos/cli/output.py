"""The only writers of stdout and stderr: data goes to stdout, everything else to stderr, the log of `-v` too.

The terminal UI owns the screen, so it logs to a private file of bounded size. Not here: what is logged
(transport/logging.py).

Source: k8s.io/klog/v2 (the head of a line of the log).
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from io import TextIOWrapper
from itertools import chain, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.errors import InputError, QosError, UsageError, without_secrets
from kubectl_qos.present.format import arrived_text, escape, is_utf8, replace_signs

if TYPE_CHECKING:
    from kubectl_qos.k8s.snapshot import Arrived
    from kubectl_qos.present.output import Section
    from kubectl_qos.present.values import Document

_is_closed = False
_KUBECTL_ERRORS: Final = ("Error from server", "The connection to the server", "Unable to connect")


def prepare() -> None:
    """Make the streams replace characters that their encoding lacks, so that printing does not fail."""
    codecs.register_error(replace_signs.__name__, replace_signs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=replace_signs.__name__)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of data; a closed pipe (`| head`) ends the output silently."""
    _write(f"{line}\n" for line in lines)


def print_prose(lines: Iterable[str]) -> None:
    """Print sentences, wrapped at the terminal's width."""
    from kubectl_qos.present.output import wrapped

    print_lines(wrapped(lines, terminal_width()))


def print_text(text: str) -> None:
    """Print data unchanged, without a final newline."""
    _write((text,))


def print_sections(subject: str, sections: Iterable[Section]) -> None:
    """Print a subject and the sections about it."""
    from kubectl_qos.present.output import marked_lines

    print_prose([subject, *marked_lines(sections)])


def print_document(
    values: Document | Mapping[str, Any], format_: str, *, headers: bool = True, at: str = ""
) -> None:
    """Print a document in the format of -o; `at` is the time of a document about the past.

    Raises UsageError for a template that cannot be read, InputError for one that does not fit it.
    """
    from kubectl_qos.present.output import json_parts, references, to_yaml, with_metadata
    from kubectl_qos.present.values import as_document, streamed_document

    name, _, template = format_.partition("=")
    if name == "json":
        _write(json_parts(streamed_document(values, at), ascii_only=_is_ascii_only()))
        return
    document = as_document(values, at)
    if name == "name":
        print_lines(dict.fromkeys(references(document)))
    elif name == "yaml":
        print_text(to_yaml(document, ascii_only=_is_ascii_only()))
    else:
        from kubectl_qos.present.jsonpath import render_columns, render_jsonpath

        if name.endswith("-file"):
            template = _read_template(template, columns=name.startswith("custom"))
        if not template and name.startswith("jsonpath"):
            hint = "-o jsonpath='{.items[*].pod}'; -o json shows the fields"
            raise UsageError("template format specified but no template given", hint)
        document = with_metadata(document)
        if name.startswith("jsonpath"):
            text = render_jsonpath(template, document)
        else:
            text = render_columns(template, document, headers=headers)
        if sys.stdout is not None and sys.stdout.isatty():
            text = re.sub(r"[^\n\t]+", lambda match: escape(match[0]), text)
        print_text(text)


def _read_template(path: str, *, columns: bool) -> str:
    """Return the template in a file; for columns its first line has the headers, its second the paths."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"error reading --template {path}: {reason}") from None
    lines = [*text.split("\n"), ""]
    return ",".join(map(":".join, zip(lines[0].split(), lines[1].split(), strict=False))) if columns else text


def print_items(items: Iterable[Document], format_: str, *, at: str = "") -> None:
    """Print one document, or several as one of kind List; `at` is as in `print_document`."""
    from kubectl_qos.present.values import ListValues, as_document

    rest = iter(items)
    first = [*islice(rest, 2)]
    several = {**as_document(ListValues(items=())), "items": map(as_document, chain(first, rest))}
    print_document(first[0] if len(first) == 1 else several, format_, at=at)


def print_yaml(values: object) -> None:
    """Print YAML that is not a document of ours: a patch or a manifest."""
    from kubectl_qos.present.output import to_yaml

    print_text(to_yaml(values, ascii_only=_is_ascii_only()))


def _is_ascii_only() -> bool:
    """Return True if stdout is not UTF-8: JSON and YAML then escape other characters than ASCII."""
    return not is_utf8(getattr(sys.stdout, "encoding", None))


def is_stdout_closed() -> bool:
    """Return True if the reader of stdout went away (`| head`)."""
    return _is_closed


def note(text: str) -> None:
    """Print a sentence on stderr: control characters escaped, and wrapped at the terminal's width."""
    end_progress()
    if sys.stderr is None:
        return
    lines = [escape(text)]
    if sys.stderr.isatty():
        from kubectl_qos.present.output import wrapped

        columns = 0
        with suppress(OSError):
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        lines = [*wrapped(lines, shutil.get_terminal_size((columns or 80, 24)).columns)]
    sys.stderr.writelines(f"{line}\n" for line in lines)


def notes(lines: Iterable[str]) -> None:
    """Print lines on stderr, each once, in order."""
    for line in dict.fromkeys(lines):
        note(line)


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout, or $COLUMNS; None if stdout is not a terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if is_terminal else None


def is_interactive() -> bool:
    """Return True if a person can answer: stdin and stderr are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def is_piped() -> bool:
    """Return True if standard input has a text that was not read yet: `< file`, or a pipe."""
    with suppress(AttributeError, ImportError, OSError, ValueError):
        from fcntl import ioctl
        from termios import FIONREAD

        return not sys.stdin.isatty() and any(ioctl(sys.stdin.fileno(), FIONREAD, bytes(4)))
    return False


def prompt(question: str) -> str:
    """Ask a person and return the stripped answer; "" at the end of input."""
    end_progress()
    sys.stderr.write(f"{escape(question)} ")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def print_error(error: QosError) -> None:
    """Print an error's sentence, its hint and its notes, each on a line."""
    text = str(error)
    note(text if text.startswith(_KUBECTL_ERRORS) else f"error: {text}")
    if error.hint:
        note(f"hint: {without_secrets(error.hint)}")
    for other in getattr(error, "__notes__", ()):
        note(f"error: {other}")


class ProgressLine:
    """A line that counts the pods that have arrived, below their first rows; its end clears both."""

    def __init__(self, doing: str) -> None:
        import threading

        self._doing, self._loaded = doing, ""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_drawn = False
        self._rows = 0
        if sys.stderr is not None and sys.stderr.isatty():
            threading.Thread(target=self._draw, daemon=True).start()

    def __call__(self, _: Sequence[Any], arrived: Arrived) -> None:
        """Update the count."""
        self._loaded = arrived_text(*arrived)

    def show_rows(self, lines: Sequence[str]) -> None:
        """Show dimmed lines above the count; they replace earlier ones."""
        with self._lock:
            if not self._ended.is_set():
                self._clear()
                sys.stderr.writelines(f"\x1b[2m{line}\x1b[0m\n" for line in lines)
                sys.stderr.flush()
                self._rows = len(lines)

    def end(self) -> None:
        """Clear the line and the rows."""
        with self._lock:
            self._ended.set()
            if self._is_drawn or self._rows:
                self._clear()
                sys.stderr.flush()

    def _clear(self) -> None:
        up = f"\x1b[{self._rows}A" if self._rows else ""
        sys.stderr.write(f"\r{up}\x1b[J")

    def _draw(self) -> None:
        for sign in cycle("|/-\\"):
            self._ended.wait(_PROGRESS_SECONDS)
            with self._lock:
                if self._ended.is_set():
                    return
                self._is_drawn = True
                sys.stderr.write(f"\r{sign} {self._doing}{self._loaded or 'loading pods'}\x1b[K")
                sys.stderr.flush()


_PROGRESS_SECONDS: Final = 0.25
_progress: list[ProgressLine] = []


def progress(doing: str = "") -> ProgressLine:
    """Return a new progress line that begins with `doing`; other output ends it first."""
    end_progress()
    _progress.append(ProgressLine(doing))
    return _progress[-1]


def show_first_rows(lines: Sequence[str]) -> None:
    """Show preliminary rows above the progress line, if there is one."""
    for line in _progress[-1:]:
        line.show_rows(lines)


def end_progress() -> None:
    """Clear the progress line, if there is one."""
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
        _close_stdout()
    except OSError as error:
        _close_stdout()
        raise QosError(f"standard output cannot be written: {error.strerror}") from None


def _close_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush cannot fail again."""
    global _is_closed  # noqa: PLW0603 - as there is one stdout
    _is_closed = True
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


TRACEBACKS: Final = 9
MAX_BYTES: Final = 5_000_000
MAX_FILES: Final = 10
"""How many files are kept; a new one replaces the oldest."""


@contextmanager
def logging_to(level: int, *, to_file: bool) -> Iterator[None]:
    """Log up to a verbosity level, to stderr or `to_file`: a private file, named at the end."""
    file = _new_file() if to_file else None
    write = file.write if file is not None else None if to_file else note
    try:
        with klog(level, write) if write is not None else nullcontext():
            yield
    except Exception:
        if level >= TRACEBACKS:
            import traceback

            for line in traceback.format_exc().splitlines():
                note(line)
        raise
    finally:
        if file is not None:
            file.close()
            note(f"the log of -v={level} is in {file.path}")


@contextmanager
def klog(level: int, write: Callable[[str], None]) -> Iterator[None]:
    """Write log records up to a verbosity level, line by line as klog does."""
    import logging

    from kubectl_qos.transport.logging import LOGGER

    class KlogHandler(logging.Handler):
        """Writes the lines of a record in one `emit`, which is locked: no other record comes between them."""

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
    """A new file that only its owner may read, cut off at `max_bytes`, with a line that says so.

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
    """Return the new log file of this run; print a note and return None if it cannot be created."""
    from kubectl_qos.config import state_dir

    folder = state_dir()
    if folder is None:
        note("nothing is logged: there is no state folder ($KUBECTL_QOS_STATE)")
        return None
    try:
        for old in sorted(folder.glob("log-*.txt"))[: 1 - MAX_FILES]:
            old.unlink(missing_ok=True)
        return LogFile(folder / f"log-{datetime.now():%Y%m%dT%H%M%S}-{os.getpid()}.txt")  # noqa: DTZ005 - local
    except OSError as error:
        note(f"nothing is logged: {folder} cannot be written: {error.strerror}")
        return None
