"""Where kernel logs come from: files, standard input, and /dev/kmsg of the machine that this runs on."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from kubectl_qos.errors import InputError
from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.host.log_lines import lines_of
from kubectl_qos.qos.oom_report import KernelLog

KMSG: Final = Path("/dev/kmsg")
STANDARD_INPUT: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_RECORD_BYTES: Final = 16_384
"""More than a record of /dev/kmsg can have; a shorter read of one fails."""


def read_file(path: str, node: str = "") -> KernelLog:
    """The reports in a file, gzipped or not; `-` is standard input. Raises InputError."""
    title = "standard input" if path == STANDARD_INPUT else path
    try:
        if path == STANDARD_INPUT:
            found = read_log(lines_of(sys.stdin.buffer), datetime.now(UTC))
        else:
            with Path(path).open("rb") as file:
                begin = file.read(2)
                file.seek(0)
                # gzip's own type is wider than what is asked of it.
                stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if begin == _GZIP else file
                found = read_log(lines_of(stream), datetime.now(UTC))
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the kernel log {path} cannot be read: {why}",
            hint="write it on the node: journalctl -k -o short-iso > FILE, or dmesg > FILE",
        ) from None
    return replace(found, node=node, title=title)


def read_kmsg(path: Path = KMSG, node: str = "") -> KernelLog:
    """What the kernel of this machine still has in its buffer. Raises InputError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened: {error.strerror}",
            hint="run as root on the node, or give a log with --kernel-log",
        ) from None
    try:
        found = read_log(_records(handle))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    return replace(found.booted(booted), node=node, title=str(path))


def _records(handle: int) -> Iterator[str]:
    """Each record with its continuation; a device gives one a read, a file in its place all of them."""
    rest = b""
    while True:
        with suppress(BrokenPipeError):
            # The record that was next has been overwritten: the one after it is given instead.
            try:
                piece = os.read(handle, _RECORD_BYTES)
            except BlockingIOError:
                break
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            # What has no end in sight is no record.
            rest = rest[-_RECORD_BYTES:]
    if rest:
        yield rest.decode(errors="replace")
