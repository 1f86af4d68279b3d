"""The files kept between runs: the state of the UI, and the change history.

Unusable parts of the state are ignored. The history is append-only JSON Lines; the last line with an id
counts, and each line is on disk before a request is sent. Failures raise no error: the content is kept for
this run, and `problem` says why.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any, Final, get_type_hints

import msgspec

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.config import state_path
from kubectl_qos.edit.history import Entry
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import Quantity

_STATE_VERSION: Final = 1
_MAX_STATE_BYTES: Final = 1 << 20
MAX_LINES: Final = 50
MAX_CONTEXTS: Final = 50
Json = dict[str, Any]
_HISTORY_VERSION: Final = 1
MAX_ENTRIES: Final = 1_000
_MAX_HISTORY_LINES: Final = 4 * MAX_ENTRIES
"""A longer file is replaced by one with only the lines that count."""
_MAX_HISTORY_BYTES: Final = 16 << 20
_MAX_TRIES: Final = 10
_FIELDS: Final = {"version", *(field.name for field in fields(Entry))}
_NOT_WRITTEN: Final = "the change history is kept for this run only"


@dataclass(frozen=True, slots=True)
class UiState:
    """The state of the UI after the last run.

    The keys of `sort` (a column, and whether its order is reversed) and `columns` are names of lists, those
    of `filters`, `places` and `views` the titles of contexts; the newest is the last.
    """

    theme: str | None = None
    view: Json | None = None
    sort: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    wide: bool = False
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    views: Mapping[str, Json] = field(default_factory=dict)

    def with_view(self, title: str, view: Json) -> UiState:
        """Return the state with this view as the newest of its context."""
        others = {other: kept for other, kept in self.views.items() if other != title}
        return replace(self, view=view, views={**others, title: view}).shortened()

    def shortened(self) -> UiState:
        """Return the state with the newest filters, places and contexts only."""
        return replace(
            self,
            filters=self.filters[-MAX_LINES:],
            places=self.places[-MAX_LINES:],
            views=dict(list(self.views.items())[-MAX_CONTEXTS:]),
        )


def load_state(path: Path | None) -> UiState:
    """Return the usable parts of the file; never raises."""
    try:
        if path is None or not path.is_file() or path.stat().st_size > _MAX_STATE_BYTES:
            return UiState()
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return UiState()
    if not isinstance(values, dict) or values.get("version") != _STATE_VERSION:
        return UiState()
    fields: dict[str, Any] = {}
    for name, type_ in get_type_hints(UiState).items():
        with suppress(KeyError, msgspec.ValidationError):
            fields[name] = msgspec.convert(values[name], type_)
    return UiState(**fields).shortened()


def save_state(path: Path | None, state: UiState) -> bool:
    """Write the file for its owner only, if possible. Raises TypeError or ValueError if `view` is no JSON."""
    if path is None:
        return False
    text = json.dumps({"version": _STATE_VERSION, **asdict(state.shortened())}, allow_nan=False)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError:
        return False
    return True


def history_path() -> Path | None:
    """Return the path of the change history; None without a state folder."""
    return state_path("history.jsonl")


class HistoryFile:
    """The change history in a file, for several threads and processes; without a path for this run only.

    `problem` says why the history is not in a file.
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
        """Return every entry, the oldest first, without lines that cannot be read."""
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
        if sum(1 for _ in file) > _MAX_HISTORY_LINES:
            entries = _read(path)
            newest = [entries[id_] for id_ in sorted(entries)[-MAX_ENTRIES:]]
            replace_file(path, b"".join(map(_encode, newest)))


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open the file and lock it if the system can; open it again if another process replaced it meanwhile.

    Raises OSError.
    """
    for _ in range(_MAX_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "a+b") as file:
            with suppress(ImportError, OSError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    yield file
                    return
    raise OSError(0, "other processes keep replacing it")


def _read(path: Path | None) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    with suppress(OSError):
        if path is not None and path.is_file():
            with path.open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - _MAX_HISTORY_BYTES, 0))
                for line in file:
                    entry = _decode(line)
                    if entry is not None:
                        entries[entry.id] = entry
    return entries


def _encode(entry: Entry) -> bytes:
    # msgspec's JSON encoder refuses lone surrogates, which a message may contain.
    values = msgspec.to_builtins(entry, enc_hook=str)
    return f"{json.dumps({'version': _HISTORY_VERSION, **values})}\n".encode()


def _decode(line: bytes) -> Entry | None:
    try:
        values = json.loads(line)
        is_whole = isinstance(values, dict) and values.keys() >= _FIELDS
        if not is_whole or values["version"] != _HISTORY_VERSION:
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
