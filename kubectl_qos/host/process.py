"""One process as the kernel sees it when it looks for a victim.

Source: Linux mm/oom_kill.c (oom_badness, oom_unkillable_task, find_lock_task_mm) and fs/proc (what the files
of /proc/PID say). A process is a thread group: threads share its memory and are not counted on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kubectl_qos.host.procfs import AccessDenied, fields, kibibytes, number, read, read_or_empty, threads

LONGEST_COMMAND: Final = 4096
_CAP_SYS_ADMIN: Final = 21


class HostProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that has memory of its own.

    `score` is /proc/PID/oom_score, None where it could not be read; `cgroup` the path in the hierarchy that
    counts memory; `admin` whether it has CAP_SYS_ADMIN, which kernels before 4.17 look at; `borrows` that its
    memory is its parent's, which waits for it (vfork), so that the kernel passes over it.
    """

    pid: int
    ppid: int
    comm: str
    cmdline: str = ""
    adj: int
    score: int | None = None
    rss_kb: int
    anon_kb: int = 0
    swap_kb: int = 0
    pte_kb: int = 0
    cgroup: str = ""
    uid: int = 0
    admin: bool = False
    borrows: bool = False


class Memoryless(msgspec.Struct, frozen=True):
    """A kernel thread, or a process that has ended and is not reaped: nothing that could be killed."""

    is_kernel_thread: bool


def read_process(proc: Path, pid: int) -> HostProcess | Memoryless | None:
    """What the files of a process say, None where it vanished meanwhile. Raises Denied."""
    folder = proc / str(pid)
    status = fields(read(folder / "status") or "")
    # A first thread that has ended leaves the memory to the others (find_lock_task_mm).
    with_memory = status if "VmRSS" in status else _of_a_thread(proc, pid, status)
    if with_memory is None:
        if not status:
            return None
        return Memoryless(_is_kernel_thread(pid, status))
    adj = number(read(folder / "oom_score_adj"))
    if adj is None or not -1000 <= adj <= 1000:
        return None
    comm = read(folder / "comm")
    return HostProcess(
        pid=pid,
        ppid=number(status.get("PPid")) or 0,
        comm=comm.removesuffix("\n") if comm else status.get("Name", ""),
        cmdline=_command(folder),
        adj=adj,
        score=number(read(folder / "oom_score")),
        rss_kb=kibibytes(with_memory, "VmRSS"),
        anon_kb=kibibytes(with_memory, "RssAnon"),
        swap_kb=kibibytes(with_memory, "VmSwap"),
        # Before 4.15 the second level of page tables was a line of its own.
        pte_kb=kibibytes(with_memory, "VmPTE") + kibibytes(with_memory, "VmPMD"),
        cgroup=memory_path(read_or_empty(folder / "cgroup")),
        uid=min(max(number(status.get("Uid")) or 0, 0), 2**32 - 1),
        admin=_has_admin(status.get("CapEff", "")),
        borrows=_borrows(proc, status),
    )


def memory_path(text: str) -> str:
    """The path in the hierarchy that counts memory, of the lines of /proc/PID/cgroup.

    `4:memory:/a` on v1 and where both are mounted, `0::/a` on v2. A path may hold colons.
    """
    unified = ""
    for line in text.split("\n"):
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        number_of, controllers, path = parts
        if "memory" in controllers.split(","):
            return path
        if number_of == "0" and not controllers:
            unified = path
    return unified


def _of_a_thread(proc: Path, pid: int, status: Mapping[str, str]) -> Mapping[str, str] | None:
    if (number(status.get("Threads")) or 1) < 2:
        return None
    for folder in threads(proc, pid):
        found = fields(read(folder / "status") or "")
        if "VmRSS" in found:
            return found
    return None


def _is_kernel_thread(pid: int, status: Mapping[str, str]) -> bool:
    """Children of kthreadd, and it itself."""
    return pid == 2 or number(status.get("PPid")) == 2


def _borrows(proc: Path, status: Mapping[str, str]) -> bool:
    """Whether it was made by vfork and runs on its parent's memory (in_vfork).

    No file says so. The parent waits uninterruptibly then, and both have the very same memory.
    """
    parent = number(status.get("PPid"))
    if not parent:
        return False
    try:
        found = fields(read(proc / str(parent) / "status") or "")
    except AccessDenied:
        return False
    return found.get("State", "").startswith("D") and all(
        found.get(name) == status.get(name) for name in _MEMORY_OF_BOTH
    )


_MEMORY_OF_BOTH: Final = ("VmPeak", "VmSize", "VmHWM", "VmRSS", "VmData", "VmStk", "VmExe", "VmPTE")


def _command(folder: Path) -> str:
    words = read_or_empty(folder / "cmdline").rstrip("\0")
    return words.replace("\0", " ")[:LONGEST_COMMAND]


def _has_admin(mask: str) -> bool:
    try:
        return bool(int(mask, 16) >> _CAP_SYS_ADMIN & 1) and len(mask) <= 32
    except ValueError:
        return False
