"""The change history on disk: a JSON line for each thing that became known; the last line of an id counts.

Lines are only added, each forced to disk before anything is sent on its strength. Nothing here ever fails:
what cannot be written is remembered for this run, and `problem` says so.
"""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.config import state_path
from kubectl_qos.edit.history import Entry
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import Quantity

VERSION: Final = 1
MAX_ENTRIES: Final = 1_000
_MAX_LINES: Final = 4 * MAX_ENTRIES
"""A longer file is replaced by one with the lines that count."""
_MAX_BYTES: Final = 16 << 20
_MAX_TRIES: Final = 10
_FIELDS: Final = {"version", *(field.name for field in fields(Entry))}
_NOT_WRITTEN: Final = "the change history is kept for this run only"


def history_path() -> Path | None:
    """The file; None where nothing is kept."""
    return state_path("history.jsonl")


class HistoryFile:
    """The change history in a file, for several threads and processes; without a path for this run only.

    `problem` says why where a person would expect a file.
    """

    def __init__(self, path: Path | None, problem: str = f"no state folder: {_NOT_WRITTEN}") -> None:
        self._path = path
        self._lock = threading.Lock()
        self._own: dict[str, Entry] = {}
        self.problem = "" if path is not None else problem

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same id."""
        with self._lock:
            is_known = self._own.get(entry.id) == entry
            self._own[entry.id] = entry
            if self._path is None or is_known:
                return
            try:
                _append(self._path, _encode(entry))
                self.problem = ""
            except OSError as error:
                self.problem = f"{self._path}: {error.strerror or error}: {_NOT_WRITTEN}"

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, the oldest first; lines that cannot be read are left out."""
        with self._lock:
            entries = _read(self._path) | self._own
        return tuple(entries[id_] for id_ in sorted(entries)[-MAX_ENTRIES:])


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        if sum(1 for _ in file) > _MAX_LINES:
            entries = _read(path)
            newest = [entries[id_] for id_ in sorted(entries)[-MAX_ENTRIES:]]
            replace_file(path, b"".join(map(_encode, newest)))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The file, locked where the system can; another process may replace it meanwhile. Raises OSError."""
    for _ in range(_MAX_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "a+b") as file:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    yield file
                    return
    raise OSError(0, "it is replaced again and again")


def _read(path: Path | None) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    with contextlib.suppress(OSError):
        if path is not None and path.is_file():
            with path.open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - _MAX_BYTES, 0))
                for line in file:
                    entry = _decode(line)
                    if entry is not None:
                        entries[entry.id] = entry
    return entries


def _encode(entry: Entry) -> bytes:
    # msgspec's own JSON cannot have the lone surrogates that a message may have.
    values = msgspec.to_builtins(entry, enc_hook=str)
    return f"{json.dumps({'version': VERSION, **values})}\n".encode()


def _decode(line: bytes) -> Entry | None:
    try:
        values = json.loads(line)
        if not isinstance(values, dict) or not values.keys() >= _FIELDS or values["version"] != VERSION:
            return None
        entry = msgspec.convert(values, Entry, dec_hook=_parse)
    except (ValueError, RecursionError, QosError):
        return None
    targets = [[edit.target for edit in edits] for edits in (entry.before, entry.after)]
    return entry if entry.id and targets[0] == targets[1] else None


def _parse(type_: type, value: Any) -> Any:
    if type_ is Quantity and isinstance(value, str):
        return Quantity.parse(value)
    raise TypeError(value)
