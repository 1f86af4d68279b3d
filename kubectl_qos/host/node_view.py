"""A view of a node's processes and memory, which can be dumped and loaded elsewhere.

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
from kubectl_qos.host.procfs import (
    CGROUP,
    MEMORY_FILES,
    PROC,
    AccessDenied,
    Hierarchy,
    find_hierarchy,
    is_hidden,
    process_ids,
    read_kernel_release,
    read_meminfo,
    read_process,
    read_sysctls,
    with_parents,
)
from kubectl_qos.k8s.quantity import MAX_INT64
from kubectl_qos.qos.process_order import HostProcess

KIND: Final = "HostView"


class PodNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a pod and, by their ids, of its containers."""

    namespace: str
    name: str
    containers: dict[str, str] = {}


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """A node's processes, memory, and memory cgroups.

    `processes` are those that have memory, in the order of their ids; `is_whole` is whether they are the
    node's and not those of a PID namespace, `denied` how many may not be read, `is_hidden` whether the reader
    may not see those of other users. `meminfo` is in KiB, `page_size` in bytes; `cgroups` has the memory
    files of each cgroup with processes and of its parents, `cgroup_version` is 0 if no hierarchy counts
    memory. `time` is RFC 3339, `names` are those of pods, by UID, if requested.
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
        """What oom_score_adj is scaled by when the node runs out: RAM and swap (constrained_alloc)."""
        total = self.meminfo.get("MemTotal", 0) + self.meminfo.get("SwapTotal", 0)
        return total * 1024 // self.page_size

    def to_json(self) -> bytes:
        """The dump that `from_json` loads, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def from_json(text: bytes | str, name: str) -> HostView:
    """The view in a dump. Raises InputError with the name of the dump."""
    try:
        view = msgspec.json.decode(text, type=HostView)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is not a dump of a node: {error}", hint="kubectl qos host -o json makes one"
        ) from None
    amounts = [*view.meminfo.values()]
    for one in view.processes:
        amounts += (one.rss_kb, one.anon_kb, one.swap_kb, one.pte_kb)
    if view.kind != KIND:
        problem = f"its kind is {view.kind!r}"
    elif view.page_size < 512 or view.total_pages <= 0:
        problem = "it has no memory size"
    elif not all(0 <= amount <= MAX_INT64 for amount in amounts):
        problem = "an amount of memory is below zero or far too large"
    elif not all(-1000 <= one.adj <= 1000 for one in view.processes):
        problem = "oom_score_adj goes from -1000 to 1000"
    else:
        return view
    raise InputError(f"{name} is not a dump of a node: {problem}")


def read_host(proc: Path = PROC, cgroup: Path = CGROUP) -> HostView:
    """The view of this node. Raises InputError where /proc cannot be read."""
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
            f"{proc / 'meminfo'} has no memory size",
            hint="--proc-root takes the /proc of a node: /host/proc",
        )
    tree = find_hierarchy(cgroup)
    return HostView(
        processes=tuple(processes),
        meminfo=meminfo,
        cgroups=_read_cgroups(tree, processes) if tree is not None else {},
        kernel_release=read_kernel_release(proc),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        page_size=os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096,
        cgroup_version=tree.version if tree is not None else 0,
        sysctls=read_sysctls(proc),
        denied=denied,
        is_hidden=hasattr(os, "geteuid") and os.geteuid() != 0 and is_hidden(proc),
        is_whole=kernel_threads > 0 or is_hidden(proc),
    )


def _read_cgroups(tree: Hierarchy, processes: Iterable[HostProcess]) -> dict[str, dict[str, str]]:
    paths = sorted({path for process in processes for path in with_parents(process.cgroup)})
    texts = {path: tree.files(path, MEMORY_FILES[tree.version]) for path in paths}
    return {path: files for path, files in texts.items() if files}
