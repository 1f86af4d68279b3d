"""The journal of writes on disk: one JSON line for each thing that became known, the last line of an id wins.

Lines are only added, each forced to disk before anything is sent on its strength. Nothing here ever fails:
what cannot be kept on disk is kept for this run, and `problem` says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from kubectl_qos.config.paths import state_dir
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import Quantity

VERSION: Final = 1
MOST_ENTRIES: Final = 1_000
_MOST_LINES: Final = 4 * MOST_ENTRIES
"""A file of more lines is written anew with what still counts."""
_MOST_BYTES: Final = 16 << 20
_TRIES: Final = 10
_TEXTS: Final = (
    "id",
    "at",
    "context",
    "server",
    "kind",
    "namespace",
    "name",
    "uid",
    "subresource",
    "said",
    "undoes",
)


def history_path() -> Path | None:
    """The file beside that of `state_file`; None where nothing is kept."""
    folder = state_dir()
    return None if folder is None else folder / "journal.jsonl"


class HistoryFile:
    """The journal in a file, from any thread and beside other processes; without a path for this run only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._own: dict[str, Entry] = {}
        self.problem = (
            "" if path is not None else "no folder for the journal: changes are remembered for this run only"
        )

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same id."""
        with self._lock:
            self._own[entry.id] = entry
            if self._path is None:
                return
            try:
                _append(self._path, _line_of(entry))
                self.problem = ""
            except OSError as error:
                why = error.strerror or str(error)
                self.problem = f"{self._path}: {why}: changes are remembered for this run only"

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, the oldest first; lines that cannot be read are left out."""
        with self._lock:
            found = _read(self._path) | self._own
        return tuple(found[id_] for id_ in sorted(found)[-MOST_ENTRIES:])


def _append(path: Path, line: bytes) -> None:
    """Add a line for good. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path) as file:
        if file.seek(0, os.SEEK_END) and not _ends_a_line(file):
            line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        if sum(1 for _ in file) > _MOST_LINES:
            _shorten(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The file, ours alone while another process may have put a shorter one in its place. Raises OSError."""
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "a+b") as file:
            _lock(file)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    yield file
                    return
    raise OSError(0, "it is replaced again and again")


def _lock(file: IO[bytes]) -> None:
    """Where the system has such locks; released with the file."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _ends_a_line(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _shorten(path: Path) -> None:
    """Only the last line of each of the newest entries. Raises OSError."""
    found = _read(path)
    kept = [found[id_] for id_ in sorted(found)[-MOST_ENTRIES:]]
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(map(_line_of, kept))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _read(path: Path | None) -> dict[str, Entry]:
    """By id, each as its last line says."""
    found: dict[str, Entry] = {}
    try:
        if path is None or not path.is_file():
            return found
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _MOST_BYTES, 0))
            for line in file:
                entry = _entry_of(line)
                if entry is not None:
                    found[entry.id] = entry
    except OSError:
        return found
    return found


def _line_of(entry: Entry) -> bytes:
    said = asdict(entry) | {"before": _plain(entry.before), "after": _plain(entry.after)}
    return f"{json.dumps({'version': VERSION, **said})}\n".encode()


def _plain(edits: Iterable[Edit]) -> list[list[str | None]]:
    return [
        [edit.owner, edit.side.value, edit.resource, None if edit.quantity is None else str(edit.quantity)]
        for edit in edits
    ]


def _entry_of(line: bytes) -> Entry | None:
    """What a line says, None for one that is none of ours or broken."""
    try:
        said = json.loads(line)
        if not isinstance(said, dict) or said.get("version") != VERSION:
            return None
        texts = {name: said[name] for name in _TEXTS}
        if not said["id"] or not all(isinstance(text, str) for text in texts.values()):
            return None
        before, after = _edits(said["before"]), _edits(said["after"])
        if [edit.target for edit in before] != [edit.target for edit in after]:
            return None
        return Entry(**texts, before=before, after=after, state=EntryState(said["state"]))
    except (ValueError, KeyError, TypeError, RecursionError, QosError):
        return None


def _edits(said: Any) -> tuple[Edit, ...]:
    """Raises ValueError, TypeError or QosError."""
    return tuple(
        Edit(
            _text(owner), Side(side), _text(resource), None if value is None else Quantity.parse(_text(value))
        )
        for owner, side, resource, value in said
    )


def _text(said: Any) -> str:
    if not isinstance(said, str):
        raise TypeError(f"expected a text, not {said!r}")
    return said
