"""Reads a node's processes and memory, and loads a dump of them; qos/process_order.py ranks them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.host.procfs import (
    CGROUP,
    MEMORY_FILES,
    PROC,
    AccessDenied,
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
from kubectl_qos.qos.process_order import HOST_VIEW_KIND, HostProcess, HostView


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
    if view.kind != HOST_VIEW_KIND:
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
            f"{proc / 'meminfo'} has no memory size", hint="--proc-root takes the /proc of a node: /host/proc"
        )
    tree = find_hierarchy(cgroup)
    texts: dict[str, dict[str, str]] = {}
    if tree is not None:
        paths = sorted({path for process in processes for path in with_parents(process.cgroup)})
        texts = {path: tree.files(path, MEMORY_FILES[tree.version]) for path in paths}
    return HostView(
        processes=tuple(processes),
        meminfo=meminfo,
        cgroups={path: files for path, files in texts.items() if files},
        kernel_release=read_kernel_release(proc),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        page_size=os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096,
        cgroup_version=tree.version if tree is not None else 0,
        sysctls=read_sysctls(proc),
        denied=denied,
        is_hidden=hasattr(os, "geteuid") and os.geteuid() != 0 and is_hidden(proc),
        is_whole=kernel_threads > 0 or is_hidden(proc),
    )
