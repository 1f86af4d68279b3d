"""Reads files below /proc and /sys/fs/cgroup, some of which vanish meanwhile or may not be read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_qos.errors import InputError

PROC: Final = Path("/proc")
LARGEST_FILE: Final = 1 << 16
"""Longer command lines are cut; no other file is larger."""

SYSCTLS: Final = ("vm/oom_kill_allocating_task", "vm/panic_on_oom", "vm/overcommit_memory", "vm/swappiness")
"""What changes which process is killed, or whether any is."""


class AccessDenied(Exception):
    """A file exists and may not be read."""


def read(path: Path) -> str | None:
    """The text of a file with odd bytes escaped, None where there is none. Raises AccessDenied."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE)
    except PermissionError:
        raise AccessDenied from None
    except (OSError, ValueError):
        # The process has ended (ENOENT, ESRCH), or the file only looks like one of /proc.
        return None
    return text.decode("utf-8", errors="backslashreplace")


def read_or_empty(path: Path) -> str:
    """The text of a file, empty where it cannot be read."""
    try:
        return read(path) or ""
    except AccessDenied:
        return ""


def process_ids(proc: Path) -> list[int]:
    """The visible processes. Raises InputError where /proc does not exist or may not be read."""
    try:
        names = [path.name for path in proc.iterdir()]
    except PermissionError:
        raise InputError(f"{proc} may not be read", hint="run as root") from None
    except OSError as error:
        raise InputError(
            f"{proc} cannot be read: {error.strerror}",
            hint="kubectl qos host runs on a Linux node; elsewhere --from-dump reads what it wrote there",
        ) from None
    ids = sorted(int(name) for name in names if name.isascii() and name.isdecimal())
    if not ids:
        raise InputError(f"{proc} has no processes", hint="--proc-root takes the /proc of a node: /host/proc")
    return ids


def parse_fields(text: str) -> Mapping[str, str]:
    """`Name: value` lines, the first of each name."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name, value.strip())
    return fields


def parse_number(text: str | None) -> int | None:
    """The number that a text begins with, None where there is none or one that no kernel prints."""
    match = _NUMBER.match(text or "")
    return int(match[1]) if match is not None else None


_NUMBER: Final = re.compile(r"\s*(-?[0-9]{1,18})(?:\s|$)")


def parse_numbers(fields: Mapping[str, str]) -> dict[str, int]:
    """The values that are numbers."""
    return {name: number for name, text in fields.items() if (number := parse_number(text)) is not None}


def read_meminfo(proc: Path) -> dict[str, int]:
    """/proc/meminfo in KiB; counts of pages are counts."""
    return parse_numbers(parse_fields(read_or_empty(proc / "meminfo")))


def read_sysctls(proc: Path) -> dict[str, int]:
    """The settings that change which process is killed, without those that cannot be read."""
    return parse_numbers({name.replace("/", "."): read_or_empty(proc / "sys" / name) for name in SYSCTLS})


def read_kernel_release(proc: Path) -> str:
    """`6.1.0-50-amd64`, empty if unknown."""
    release = read_or_empty(proc / "sys/kernel/osrelease").strip()
    words = read_or_empty(proc / "version").split()
    return release or (words[2] if len(words) > 2 else "")


def is_hidden(proc: Path) -> bool:
    """Whether users may not see each other's processes (the mount option hidepid)."""
    for line in (read_or_empty(proc / "self/mounts") or read_or_empty(proc / "mounts")).splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == "proc":
            options = dict(word.partition("=")[::2] for word in words[3].split(","))
            if options.get("hidepid", "0") not in {"0", "off"}:
                return True
    return False


CGROUP: Final = Path("/sys/fs/cgroup")

MEMORY_FILES: Final = {
    2: (
        "memory.max",
        "memory.high",
        "memory.min",
        "memory.low",
        "memory.current",
        "memory.swap.max",
        "memory.swap.current",
        "memory.oom.group",
        "memory.events",
    ),
    1: (
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.memsw.usage_in_bytes",
        "memory.swappiness",
        "memory.oom_control",
    ),
}
"""What decides which cgroup runs out of memory, how victims are scored there, and what is killed with one."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup tree with a controller."""

    root: Path
    version: int

    def files(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """The named files that a cgroup has, without those that may not be read."""
        # `/..` is outside of this cgroup namespace, and not below the root either.
        folder = self.root / path.strip("/")
        texts = {}
        for name in names:
            with contextlib.suppress(AccessDenied):
                texts[name] = read(folder / name)
        return {name: text.strip("\n") for name, text in texts.items() if text is not None}


def find_hierarchy(root: Path = CGROUP, controller: str = "memory") -> Hierarchy | None:
    """The hierarchy of a controller, which has its own mount on v1, or is on v2; None if neither."""
    for folder in (root / controller, root):
        if (folder / "cgroup.procs").exists() and not (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 1)
    for folder in (root, root / "unified"):
        if (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 2)
    return None


def with_parents(path: str) -> list[str]:
    """A cgroup after all its parents, without the root, which has no limits."""
    if not path.startswith("/") or ".." in path.split("/"):
        return []
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
