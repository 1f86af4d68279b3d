"""A process as the kernel sees it when it selects a victim.

Source: Linux mm/oom_kill.c (oom_badness, oom_unkillable_task, find_lock_task_mm) and fs/proc. A process is a
thread group: its threads share its memory and are not counted by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kubectl_qos.host.procfs import parse_fields, parse_number, read, read_or_empty
from kubectl_qos.qos.cgroup.names import memory_path
from kubectl_qos.qos.process_order import HostProcess

LONGEST_COMMAND: Final = 4096
_CAP_SYS_ADMIN: Final = 21


class Memoryless(msgspec.Struct, frozen=True):
    """A kernel thread or a zombie: it has no memory and is never a victim."""

    is_kernel_thread: bool


def read_process(proc: Path, pid: int) -> HostProcess | Memoryless | None:
    """A process, None where it has ended meanwhile. Raises AccessDenied."""
    folder = proc / str(pid)
    status = parse_fields(read(folder / "status") or "")
    # Where the first thread has ended the memory is the others' (find_lock_task_mm).
    with_memory = status if "VmRSS" in status else _status_of_thread(folder, status)
    if with_memory is None:
        # Kernel threads are kthreadd and its children.
        parent = parse_number(status.get("PPid"))
        return Memoryless(pid == 2 or parent == 2) if status else None
    adj = parse_number(read(folder / "oom_score_adj"))
    if adj is None or not -1000 <= adj <= 1000:
        return None
    comm = read(folder / "comm")
    sizes = {name: max(parse_number(with_memory.get(name)) or 0, 0) for name in _SIZES}
    return HostProcess(
        pid=pid,
        ppid=parse_number(status.get("PPid")) or 0,
        comm=comm.removesuffix("\n") if comm else status.get("Name", ""),
        cmdline=read_or_empty(folder / "cmdline").rstrip("\0").replace("\0", " ")[:LONGEST_COMMAND],
        adj=adj,
        score=parse_number(read(folder / "oom_score")),
        rss_kb=sizes["VmRSS"],
        anon_kb=sizes["RssAnon"],
        swap_kb=sizes["VmSwap"],
        # Before 4.15 the second level of page tables had its own line.
        pte_kb=sizes["VmPTE"] + sizes["VmPMD"],
        cgroup=memory_path(read_or_empty(folder / "cgroup")),
        uid=min(max(parse_number(status.get("Uid")) or 0, 0), 2**32 - 1),
        admin=_has_admin(status.get("CapEff", "")),
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
    """Whether it was created by vfork and uses the memory of its parent (in_vfork).

    No file says so: the parent then waits uninterruptibly, and both have the very same memory.
    """
    parent = parse_number(status.get("PPid"))
    if not parent:
        return False
    fields = parse_fields(read_or_empty(proc / str(parent) / "status"))
    is_waiting = fields.get("State", "").startswith("D")
    return is_waiting and all(fields.get(name) == status.get(name) for name in _MEMORY_OF_BOTH)


_MEMORY_OF_BOTH: Final = ("VmPeak", "VmSize", "VmHWM", "VmRSS", "VmData", "VmStk", "VmExe", "VmPTE")


def _has_admin(mask: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-fA-F]{1,32}", mask) and int(mask, 16) >> _CAP_SYS_ADMIN & 1)
