"""Files below /proc and /sys/fs/cgroup, read as they are found: processes vanish, some are not readable."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_qos.errors import InputError

PROC: Final = Path("/proc")
LARGEST_FILE: Final = 1 << 16
"""No file that is read here is larger; command lines are cut."""

SYSCTLS: Final = ("vm/oom_kill_allocating_task", "vm/panic_on_oom", "vm/overcommit_memory", "vm/swappiness")
"""What changes who dies, or whether anybody does."""


class AccessDenied(Exception):
    """A file is there, but not for us."""


def read(path: Path) -> str | None:
    """A file's text, None where it is gone or no file; what is no UTF-8 is spelled out. Raises Denied."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE)
    except PermissionError:
        raise AccessDenied from None
    except (OSError, ValueError):
        # Gone meanwhile (ENOENT, ESRCH), or an error of a file that only looks like one of /proc.
        return None
    return text.decode("utf-8", errors="backslashreplace")


def read_or_empty(path: Path) -> str:
    """A file's text, empty where there is none to be had."""
    try:
        return read(path) or ""
    except AccessDenied:
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
    found = fields(read_or_empty(proc / "meminfo"))
    return {name: value for name, text in found.items() if (value := number(text)) is not None}


def sysctls(proc: Path) -> dict[str, int]:
    """The settings that change who dies, as far as they can be read."""
    found = {name.replace("/", "."): number(read_or_empty(proc / "sys" / name)) for name in SYSCTLS}
    return {name: value for name, value in found.items() if value is not None}


def kernel_release(proc: Path) -> str:
    """`6.1.0-50-amd64`, empty if unknown."""
    release = read_or_empty(proc / "sys/kernel/osrelease").strip()
    words = read_or_empty(proc / "version").split()
    return release or (words[2] if len(words) > 2 else "")


def is_hidden(proc: Path) -> bool:
    """Whether processes of others are hidden from some users (the mount option hidepid)."""
    for line in (read_or_empty(proc / "self/mounts") or read_or_empty(proc / "mounts")).splitlines():
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
"""What decides which cgroup runs out, on which scale, and what dies there with the victim."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted tree of cgroups that has a controller."""

    root: Path
    version: int

    def files(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """Those of the named files that the cgroup has and that may be read."""
        found = {}
        for name in names:
            try:
                text = read(self.folder(path) / name)
            except AccessDenied:
                continue
            if text is not None:
                found[name] = text.strip("\n")
        return found

    def every_file(self, path: str) -> dict[str, str]:
        """All files of a cgroup that may be read."""
        try:
            names = sorted(found.name for found in self.folder(path).iterdir())
        except OSError:
            return {}
        return self.files(path, names)

    def folder(self, path: str) -> Path:
        """Where a cgroup is; one outside of what this cgroup namespace sees (`/..`) is not below the root."""
        return self.root / path.strip("/")


def hierarchy(root: Path = CGROUP, controller: str = "memory") -> Hierarchy | None:
    """Where a controller is: on v1 it has a mount of its own, else it is on v2; None where it is nowhere."""
    for folder in (root / controller, root):
        if (folder / "cgroup.procs").exists() and not (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 1)
    for folder in (root, root / "unified"):
        if (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 2)
    return None


def above(path: str) -> list[str]:
    """A cgroup and all that it is in but the root, which has no limits: the topmost first."""
    if not path.startswith("/") or ".." in path.split("/"):
        return []
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
