"""Files below /proc, read as they are found: processes vanish, and some may not be read.

Not here: what they mean together (process.py, node_view.py). Formats: Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kubectl_qos.errors import InputError

PROC: Final = Path("/proc")
LARGEST_FILE: Final = 1 << 16
"""No file that is read here is larger; command lines are cut."""

SYSCTLS: Final = ("vm/oom_kill_allocating_task", "vm/panic_on_oom", "vm/overcommit_memory", "vm/swappiness")
"""What changes who dies, or whether anybody does."""


class Denied(Exception):
    """A file is there, but not for us."""


def read(path: Path) -> str | None:
    """A file's text, None where it is gone or no file; what is no UTF-8 is spelled out. Raises Denied."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE)
    except PermissionError:
        raise Denied from None
    except (OSError, ValueError):
        # Gone meanwhile (ENOENT, ESRCH), or an error of a file that only looks like one of /proc.
        return None
    return text.decode("utf-8", errors="backslashreplace")


def may_be(path: Path) -> str:
    """A file's text, empty where there is none to be had."""
    try:
        return read(path) or ""
    except Denied:
        return ""


def process_ids(proc: Path) -> list[int]:
    """The processes that can be seen. Raises InputError where there is no /proc, or none for us."""
    try:
        names = [found.name for found in proc.iterdir()]
    except PermissionError:
        raise InputError(f"{proc} may not be read", hint="run as root") from None
    except OSError as error:
        raise InputError(
            f"there is no {proc} to read: {error.strerror}",
            hint="kubectl qos host runs on a Linux node; elsewhere --from-dump reads what it wrote there",
        ) from None
    found = sorted(int(name) for name in names if name.isascii() and name.isdecimal())
    if not found:
        raise InputError(
            f"{proc} holds no processes", hint="--proc-root names the /proc of a node, as /host/proc"
        )
    return found


def fields(text: str) -> Mapping[str, str]:
    """`Name: value` lines, the first of each name."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name, value.strip())
    return found


def number(text: str | None) -> int | None:
    """The number that a text begins with, None where there is none or one that no kernel prints."""
    found = _NUMBER.match(text or "")
    return int(found[1]) if found is not None else None


_NUMBER: Final = re.compile(r"\s*(-?[0-9]{1,18})(?:\s|$)")


def kibibytes(found: Mapping[str, str], name: str) -> int:
    """A `kB` value of status or meminfo, 0 without one."""
    return max(number(found.get(name)) or 0, 0)


def memory(proc: Path) -> dict[str, int]:
    """/proc/meminfo in KiB; counts of pages as they are."""
    found = fields(may_be(proc / "meminfo"))
    return {name: value for name, text in found.items() if (value := number(text)) is not None}


def sysctls(proc: Path) -> dict[str, int]:
    """The settings that change who dies, as far as they can be read."""
    found = {name.replace("/", "."): number(may_be(proc / "sys" / name)) for name in SYSCTLS}
    return {name: value for name, value in found.items() if value is not None}


def kernel_release(proc: Path) -> str:
    """`6.1.0-50-amd64`, empty if unknown."""
    release = may_be(proc / "sys/kernel/osrelease").strip()
    words = may_be(proc / "version").split()
    return release or (words[2] if len(words) > 2 else "")


def is_hidden(proc: Path) -> bool:
    """Whether processes of others are hidden from some users (the mount option hidepid)."""
    for line in (may_be(proc / "self/mounts") or may_be(proc / "mounts")).splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == "proc":
            options = dict(word.partition("=")[::2] for word in words[3].split(","))
            if options.get("hidepid", "0") not in {"0", "off"}:
                return True
    return False


def threads(proc: Path, pid: int) -> Iterator[Path]:
    """The folders of the process's threads."""
    with contextlib.suppress(OSError):
        yield from sorted((proc / str(pid) / "task").iterdir())
