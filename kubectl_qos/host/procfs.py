"""Read a node from a dump, or from /proc and /sys/fs/cgroup, whose files may vanish or be unreadable.

qos/process_order.py ranks its processes. A process is a thread group, as for the kernel. Source: Linux
mm/oom_kill.c (oom_badness, oom_unkillable_task, find_lock_task_mm) and fs/proc.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.quantity import MAX_INT64
from kubectl_qos.qos.cgroup.names import memory_path
from kubectl_qos.qos.process_order import HostProcess, HostView

PROC: Final = Path("/proc")
LARGEST_FILE: Final = 1 << 16
"""The most bytes of a file that are read: it cuts long command lines; no other file is larger."""

SYSCTLS: Final = ("vm/oom_kill_allocating_task", "vm/panic_on_oom", "vm/overcommit_memory", "vm/swappiness")
"""The settings that change which process is killed."""


class AccessDenied(Exception):
    """A file exists but may not be read."""


def read(path: Path) -> str | None:
    """Return the text of a file, its undecodable bytes escaped; None without a file. Raises AccessDenied."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE)
    except PermissionError:
        raise AccessDenied from None
    except (OSError, ValueError):
        # The process has ended (ENOENT, ESRCH), or this kernel does not have the file.
        return None
    return text.decode("utf-8", errors="backslashreplace")


def read_or_empty(path: Path) -> str:
    """Return the text of a file, empty if it cannot be read."""
    try:
        return read(path) or ""
    except AccessDenied:
        return ""


def process_ids(proc: Path) -> list[int]:
    """Return the ids of visible processes. Raises InputError if /proc does not exist or may not be read."""
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
    """Parse `Name: value` lines; if a name repeats, the first line counts."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name, value.strip())
    return fields


def parse_number(text: str | None) -> int | None:
    """Return the number that a text begins with; None without one, or if it is too large for a kernel."""
    match = _NUMBER.match(text or "")
    return int(match[1]) if match is not None else None


_NUMBER: Final = re.compile(r"\s*(-?[0-9]{1,18})(?:\s|$)")


def _parse_numbers(fields: Mapping[str, str]) -> dict[str, int]:
    return {name: number for name, text in fields.items() if (number := parse_number(text)) is not None}


def read_meminfo(proc: Path) -> dict[str, int]:
    """Return the sizes in /proc/meminfo in bytes; lines that count pages are left out."""
    fields = parse_fields(read_or_empty(proc / "meminfo"))
    sizes = {name: text for name, text in fields.items() if text.endswith("kB")}
    return {name: kib << 10 for name, kib in _parse_numbers(sizes).items()}


def is_hidden(proc: Path) -> bool:
    """Return whether users cannot see each other's processes (the mount option hidepid)."""
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
        *("memory.max", "memory.high", "memory.min", "memory.low", "memory.current"),
        *("memory.swap.max", "memory.swap.current", "memory.oom.group", "memory.events"),
    ),
    1: (
        *("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
        *("memory.usage_in_bytes", "memory.memsw.usage_in_bytes"),
        *("memory.swappiness", "memory.oom_control"),
    ),
}
"""The files that decide which cgroup runs out of memory, and which processes the kernel then kills."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup tree."""

    root: Path
    version: int

    def files(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """Return the content of those named files of a cgroup that exist and may be read."""
        # A path with `/..` is outside this cgroup namespace, and not below the root either.
        folder = self.root / path.strip("/")
        texts = {}
        for name in names:
            with suppress(AccessDenied):
                texts[name] = read(folder / name)
        return {name: text.strip("\n") for name, text in texts.items() if text is not None}


def find_hierarchy(root: Path, controller: str = "memory") -> Hierarchy | None:
    """Return the hierarchy with a controller: its own mount on v1, or that of v2; None without either."""
    for folder in (root / controller, root):
        if (folder / "cgroup.procs").exists() and not (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 1)
    for folder in (root, root / "unified"):
        if (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 2)
    return None


def with_parents(path: str) -> list[str]:
    """Return the parents of a cgroup and itself, from the top down; the root is omitted: it has no limits."""
    if not path.startswith("/") or ".." in path.split("/"):
        return []
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


LONGEST_COMMAND: Final = 4096
_CAP_SYS_ADMIN: Final = 21


class Memoryless(msgspec.Struct, frozen=True):
    """A kernel thread or a zombie: it has no memory and is never a victim."""

    is_kernel_thread: bool


def read_process(proc: Path, pid: int) -> HostProcess | Memoryless | None:
    """Return a process, or None if it has ended meanwhile. Raises AccessDenied."""
    folder = proc / str(pid)
    status = parse_fields(read(folder / "status") or "")
    # If the first thread has ended, another thread's status has the memory (find_lock_task_mm).
    with_memory = status if "VmRSS" in status else _status_of_thread(folder, status)
    if with_memory is None:
        # Kernel threads are kthreadd and its children.
        parent = parse_number(status.get("PPid"))
        return Memoryless(pid == 2 or parent == 2) if status else None
    adj = parse_number(read(folder / "oom_score_adj"))
    if adj is None or not -1000 <= adj <= 1000:
        return None
    comm, mask = read(folder / "comm"), status.get("CapEff", "")
    sizes = {name: max(parse_number(with_memory.get(name)) or 0, 0) << 10 for name in _SIZES}
    return HostProcess(
        pid=pid,
        ppid=parse_number(status.get("PPid")) or 0,
        comm=comm.removesuffix("\n") if comm else status.get("Name", ""),
        cmdline=read_or_empty(folder / "cmdline").rstrip("\0").replace("\0", " ")[:LONGEST_COMMAND],
        adj=adj,
        score=parse_number(read(folder / "oom_score")),
        rss_bytes=sizes["VmRSS"],
        anon_bytes=sizes["RssAnon"],
        swap_bytes=sizes["VmSwap"],
        # Before 4.15 the second level of page tables had its own line.
        page_table_bytes=sizes["VmPTE"] + sizes["VmPMD"],
        cgroup=memory_path(read_or_empty(folder / "cgroup")),
        uid=min(max(parse_number(status.get("Uid")) or 0, 0), 2**32 - 1),
        admin=bool(re.fullmatch(r"[0-9a-fA-F]{1,32}", mask) and int(mask, 16) >> _CAP_SYS_ADMIN & 1),
        borrows=_borrows(proc, status),
    )


_SIZES: Final = ("VmRSS", "RssAnon", "VmSwap", "VmPTE", "VmPMD")


def _status_of_thread(folder: Path, status: Mapping[str, str]) -> Mapping[str, str] | None:
    if (parse_number(status.get("Threads")) or 1) < 2:
        return None
    with suppress(OSError):
        for thread in sorted((folder / "task").iterdir()):
            fields = parse_fields(read(thread / "status") or "")
            if "VmRSS" in fields:
                return fields
    return None


def _borrows(proc: Path, status: Mapping[str, str]) -> bool:
    """Return whether a process borrows its parent's memory after vfork, while the parent waits (in_vfork)."""
    parent = parse_number(status.get("PPid"))
    if not parent:
        return False
    fields = parse_fields(read_or_empty(proc / str(parent) / "status"))
    is_waiting = fields.get("State", "").startswith("D")
    return is_waiting and all(fields.get(name) == status.get(name) for name in _MEMORY_OF_BOTH)


_MEMORY_OF_BOTH: Final = ("VmPeak", "VmSize", "VmHWM", "VmRSS", "VmData", "VmStk", "VmExe", "VmPTE")


def from_json(text: bytes | str, name: str) -> HostView:
    """Return the view in a dump. Raises InputError with the name of the dump."""
    try:
        view = msgspec.json.decode(text, type=HostView)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is not a dump of a node: {error}", hint="kubectl qos host -o json makes one"
        ) from None
    amounts = [*view.meminfo.values()]
    for process in view.processes:
        amounts += (process.rss_bytes, process.anon_bytes, process.swap_bytes, process.page_table_bytes)
    if view.page_size < 512 or view.total_pages <= 0:
        problem = "it has no memory size"
    elif not all(0 <= amount <= MAX_INT64 for amount in amounts):
        problem = "an amount of memory is below zero or far too large"
    elif not all(-1000 <= process.adj <= 1000 for process in view.processes):
        problem = "oom_score_adj goes from -1000 to 1000"
    else:
        return view
    raise InputError(f"{name} is not a dump of a node: {problem}")


def read_host(proc: Path = PROC, cgroup: Path = CGROUP) -> HostView:
    """Return the view of this node. Raises InputError if /proc cannot be read."""
    meminfo = read_meminfo(proc)
    processes, denied, kernel_threads = [], 0, 0
    for pid in process_ids(proc):
        try:
            process = read_process(proc, pid)
        except AccessDenied:
            denied += 1
            continue
        if isinstance(process, HostProcess):
            processes.append(process)
        elif process is not None:
            kernel_threads += process.is_kernel_thread
    if not meminfo.get("MemTotal"):
        raise InputError(
            f"{proc / 'meminfo'} has no memory size", hint="--proc-root takes the /proc of a node: /host/proc"
        )
    sysctls = {name.replace("/", "."): read_or_empty(proc / "sys" / name) for name in SYSCTLS}
    tree = find_hierarchy(cgroup)
    texts: dict[str, dict[str, str]] = {}
    if tree is not None:
        paths = sorted({path for process in processes for path in with_parents(process.cgroup)})
        texts = {path: tree.files(path, MEMORY_FILES[tree.version]) for path in paths}
    release = read_or_empty(proc / "sys/kernel/osrelease").strip()
    words = read_or_empty(proc / "version").split()
    return HostView(
        processes=tuple(processes),
        meminfo=meminfo,
        cgroups={path: files for path, files in texts.items() if files},
        kernel_release=release or (words[2] if len(words) > 2 else ""),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        page_size=os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096,
        cgroup_version=tree.version if tree is not None else 0,
        sysctls=_parse_numbers(sysctls),
        denied=denied,
        is_hidden=hasattr(os, "geteuid") and os.geteuid() != 0 and is_hidden(proc),
        is_whole=kernel_threads > 0 or is_hidden(proc),
    )
