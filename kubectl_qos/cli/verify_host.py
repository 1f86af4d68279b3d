"""What `verify` reads of a node itself: its /proc and /sys/fs/cgroup, or a dump of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kubectl_qos.cli.verify_reading import Read, Reader, Wanted, running
from kubectl_qos.errors import InputError
from kubectl_qos.host.node_view import HostView, from_json, read_host
from kubectl_qos.host.procfs import CGROUP, MEMORY_FILES, PROC, find_hierarchy
from kubectl_qos.k8s.kubelet import CgroupDriver
from kubectl_qos.qos.cgroup.names import kubepods_name, literal
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.qos.verify.compare import Unread
from kubectl_qos.qos.verify.observed import Files, Observed, ObservedContainer, observed_on_node

_LEFT_BEHIND: Final = ("memory.min", "memory.low", "memory.high")


def host_reader(dump: str | None, *, proc_root: str | None, cgroup_root: str | None) -> Reader:
    """Reads the node once for all pods."""

    def read(wanted: Wanted) -> tuple[list[Read], dict[str, Files]]:
        if dump is not None:
            view = from_json(_text(dump), dump)
            directories = of_view(view)
        else:
            root = Path(cgroup_root) if cgroup_root is not None else CGROUP
            view = read_host(Path(proc_root) if proc_root is not None else PROC, root)
            directories = _directories(root, view, wanted)
        containers = observed_on_node(directories, view.processes)
        return [
            _of_pod(wanted, place, containers, directories) for place in range(len(wanted.pods))
        ], directories

    return read


def of_view(view: HostView) -> dict[str, Files]:
    """The directories of a dump; on v1 its files are those of the memory controller."""
    if view.cgroup_version != 1:
        return dict(view.cgroups)
    return {
        path: {f"memory/{name}": text for name, text in files.items()} for path, files in view.cgroups.items()
    }


def _of_pod(
    wanted: Wanted, place: int, containers: Mapping[str, ObservedContainer], directories: Mapping[str, Files]
) -> Read:
    pod = wanted.pods[place]
    ids = {one.name: one.container_id.rpartition("://")[2] for one in pod.status.every_container}
    found, unread = {}, []
    for name in running(pod):
        container = containers.get(ids[name])
        if container is None:
            unread.append(Unread(name, "no cgroup here is that of its id", f"is this node {wanted.node}?"))
        else:
            found[name] = container
    if not found and not unread:
        unread.append(Unread("", "no container runs"))
    return Read(Observed(found, directories), tuple(unread))


def _directories(root: Path, view: HostView, wanted: Wanted) -> dict[str, Files]:
    """Every file that is predicted, in the directories that have processes and in those above all pods."""
    setup = wanted.setup
    on_node = wanted.snapshot.by_node().get(wanted.node, ())
    tree = cgroup_tree(on_node, setup)
    names = {name for one in tree.walk() for name in one.files} | set(_LEFT_BEHIND)
    names |= {f"memory/{name}" for name in MEMORY_FILES[1]} if setup.node.cgroup_version == 1 else set()
    paths = {*view.cgroups, *(one.path for one in tree.walk())}
    paths |= {literal(kubepods_name(setup.kubelet), driver) for driver in CgroupDriver}
    found = {path: _files(root, path, names) for path in sorted(paths)}
    return {path: files for path, files in found.items() if files}


def _files(root: Path, path: str, names: Iterable[str]) -> dict[str, str]:
    """The files of a directory, each in the tree of its controller where that has one."""
    found: dict[str, str] = {}
    for name in names:
        controller, _, file = name.rpartition("/")
        tree = find_hierarchy(root, controller or "memory")
        if tree is not None and (tree.version == 1) is bool(controller):
            for text in tree.files(path, (file,)).values():
                found[name] = text
    return found


def _text(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"open {name}: {(error.strerror or str(error)).lower()}") from None
