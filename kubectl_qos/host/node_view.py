"""What a node shows of itself at one moment: a value that can be written down and read elsewhere.

Not here: the order in which its processes are killed (qos/process_order.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.host.process import HostProcess, Memoryless, read_process
from kubectl_qos.host.procfs import (
    CGROUP,
    MEMORY_FILES,
    PROC,
    AccessDenied,
    above,
    hierarchy,
    is_hidden,
    kernel_release,
    memory,
    process_ids,
    sysctls,
)

KIND: Final = "HostView"
_MOST: Final = 2**63 - 1


class PodNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the API calls a pod and its containers, these by their ids."""

    namespace: str
    name: str
    containers: dict[str, str] = {}


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """A node's processes, memory, and memory cgroups.

    Args:
        processes: those that have memory of their own, by their ids.
        meminfo: /proc/meminfo, in KiB.
        cgroups: of each cgroup that has processes, and those above it, the files of its memory.
        kernel_release: such as `6.1.0-50-amd64`.
        time: when it was read (RFC 3339).
        page_size: bytes.
        cgroup_version: of the hierarchy that counts memory; 0 if there is none.
        sysctls: settings that change who dies.
        denied: how many processes may not be read.
        is_hidden: whether processes of others are hidden from whoever read this.
        is_whole: whether these are the machine's processes, and not only those of a PID namespace.
        names: of pods, by their UIDs, where somebody asked for them.
    """

    processes: tuple[HostProcess, ...]
    meminfo: dict[str, int]
    cgroups: dict[str, dict[str, str]] = {}
    kernel_release: str = ""
    time: str = ""
    page_size: int = 4096
    cgroup_version: int = 0
    sysctls: dict[str, int] = {}
    denied: int = 0
    is_hidden: bool = False
    is_whole: bool = True
    names: dict[str, PodNames] = {}
    kind: str = KIND

    @property
    def total_pages(self) -> int:
        """What oom_score_adj is scaled by when the machine runs out: RAM and swap (constrained_alloc)."""
        total = self.meminfo.get("MemTotal", 0) + self.meminfo.get("SwapTotal", 0)
        return total * 1024 // self.page_size

    def to_json(self) -> bytes:
        """The dump that `from_json` reads, a line for each process."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def from_json(text: bytes | str, name: str) -> HostView:
    """The view that was written down. Raises InputError, naming what was read."""
    try:
        found = msgspec.json.decode(text, type=HostView)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is no dump of a node: {error}", hint="kubectl qos host -o json makes one"
        ) from None
    amounts = (
        number
        for process in found.processes
        for number in (process.rss_kb, process.anon_kb, process.swap_kb, process.pte_kb)
    )
    if found.kind != KIND:
        raise InputError(f"{name} is no dump of a node: its kind is {found.kind!r}")
    if found.page_size < 512 or found.total_pages <= 0:
        raise InputError(f"{name} is no dump of a node: it does not say how much memory the node has")
    if not all(0 <= number <= _MOST for number in (*amounts, *found.meminfo.values())):
        raise InputError(f"{name} is no dump of a node: an amount of memory is below zero or far too large")
    if not all(-1000 <= process.adj <= 1000 for process in found.processes):
        raise InputError(f"{name} is no dump of a node: oom_score_adj goes from -1000 to 1000")
    return found


def read_host(proc: Path = PROC, cgroup: Path = CGROUP) -> HostView:
    """What a node shows now. Raises InputError where there is no /proc to read."""
    meminfo = memory(proc)
    processes, denied, kernel_threads = [], 0, 0
    for pid in process_ids(proc):
        try:
            found = read_process(proc, pid)
        except AccessDenied:
            denied += 1
            continue
        if isinstance(found, HostProcess):
            processes.append(found)
        elif isinstance(found, Memoryless):
            kernel_threads += found.is_kernel_thread
    if not meminfo.get("MemTotal"):
        raise InputError(
            f"{proc / 'meminfo'} does not say how much memory there is",
            hint="--proc-root names the /proc of a node, as /host/proc",
        )
    tree = hierarchy(cgroup)
    return HostView(
        processes=tuple(processes),
        meminfo=meminfo,
        cgroups=_cgroups(cgroup, processes),
        kernel_release=kernel_release(proc),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        page_size=os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096,
        cgroup_version=tree.version if tree is not None else 0,
        sysctls=sysctls(proc),
        denied=denied,
        is_hidden=bool(_uid()) and is_hidden(proc),
        is_whole=kernel_threads > 0 or is_hidden(proc),
    )


def _cgroups(root: Path, processes: Iterable[HostProcess]) -> dict[str, dict[str, str]]:
    tree = hierarchy(root)
    if tree is None:
        return {}
    paths = sorted({path for process in processes for path in above(process.cgroup)})
    read = {path: tree.files(path, MEMORY_FILES[tree.version]) for path in paths}
    return {path: files for path, files in read.items() if files}


def _uid() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0
