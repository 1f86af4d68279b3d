"""Manifest files changed in place: the values of one object, and nothing else of the file that holds it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kubectl_qos.cluster import problems
from kubectl_qos.cluster.documents import BYTE_ORDER_MARK, Document, plain_documents
from kubectl_qos.cluster.files import FileSource, is_named
from kubectl_qos.cluster.rewriting import rewritten
from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.patch import edited
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod

_WRITABLE: Final = 0o222


def write(source: FileSource, pod: Pod, edits: Sequence[Edit]) -> str:
    """Make the edits in the file that holds the object, and return its name.

    The file is replaced at once, by one with the same mode; of a symbolic link, the file that it leads to.

    Raises:
        InputError: the object is not there, or more than once; the file cannot be written, or not in place.
    """
    found = [
        (name, content, document, path)
        for name, content in source.contents()
        for document in plain_documents(content, name)
        for path, raw in document.objects()
        if is_named(raw, pod)
    ]
    if len(found) != 1:
        there = f"there {len(found)} times" if found else "no longer there"
        raise InputError(f"{pod.kind.lower()}/{pod.name} is {there}", hint="run the command again")
    name, content, document, path = found[0]
    file = Path(name).resolve()
    _replace(file, name, _changed(content, name, document, _with_edits(document.value, path, pod, edits)))
    return name


def _with_edits(value: Any, path: tuple[str | int, ...], pod: Pod, edits: Sequence[Edit]) -> Any:
    """The whole document with the object changed."""
    if not path:
        return edited(value, pod, edits)
    items = list(value["items"])
    items[int(path[1])] = edited(items[int(path[1])], pod, edits)
    return {**value, "items": items}


def _changed(content: bytes, name: str, document: Document, wanted: Any) -> bytes:
    mark = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
    try:
        text = content.removeprefix(mark).decode()
    except UnicodeDecodeError as error:
        raise problems.not_text(name, error.start) from None
    end = document.begin + len(document.text)
    return mark + f"{text[: document.begin]}{rewritten(document, wanted)}{text[end:]}".encode()


def _replace(file: Path, name: str, content: bytes) -> None:
    """A file of its own takes the place of the old one. Raises InputError."""
    try:
        is_read_only = not file.stat().st_mode & _WRITABLE or not os.access(file, os.W_OK)
        if not is_read_only:
            _put(file, content)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from None
    if is_read_only:
        raise InputError(f"{name}: the file is read-only", hint="allow writing to it: chmod u+w")


def _put(file: Path, content: bytes) -> None:
    """Write beside the file, then take its place with its mode and owner. Raises OSError."""
    status = file.stat()
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        with suppress(OSError, AttributeError):  # only root gives files away, and Windows has no owners
            os.chown(temporary, status.st_uid, status.st_gid)
        Path(temporary).chmod(status.st_mode & 0o7777)
        Path(temporary).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
