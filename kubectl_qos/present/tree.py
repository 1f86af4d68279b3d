"""The cgroup tree in words: as an indented tree, as flat lines for grep and diff, and as plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing
from kubectl_qos.present.explanation import short_path
from kubectl_qos.present.format import escape
from kubectl_qos.present.notes import missing_sentence
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory
from kubectl_qos.qos.ranking import ContainerKind

MOUNT: Final = "/sys/fs/cgroup"

_UID: Final = re.compile(r"(pod[0-9a-f]{8})(?:[0-9a-f]{24}|[-_][0-9a-f_-]{27})")

_BEFORE_POD: Final = re.compile(r"^.*-(?=pod[0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of the tree; `directory` is the one that it shows, None on a line of a file."""

    text: str
    directory: Directory | None = None


def tree_subject(tree: CgroupTree) -> str:
    """Which node this is, and what decides about its paths and files."""
    node, kubelet = tree.setup.node, tree.setup.kubelet
    name = f"node {escape(node.name)}" if node.name else "an assumed node"
    return (
        f"{name}, kubelet {tree.setup.release}, cgroup v{node.cgroup_version}, {kubelet.cgroup_driver} driver"
    )


def tree_lines(tree: CgroupTree, width: int | None = None) -> list[TreeLine]:
    """The directories, each with its files below it, their values in one column.

    Where lines would be wider than `width`, the names of pods and containers lose the middle of their ids,
    pods then also their class; those of `file_lines` are whole.
    """
    lines: list[TreeLine] = []
    for name_of in (_whole_name, _without_ids, _without_class):
        lines = list(_lines(tree, name_of))
        if width is None or all(len(line.text) <= width for line in lines):
            break
    return lines


def _lines(tree: CgroupTree, name_of: Callable[[_Row], str]) -> Iterator[TreeLine]:
    rows = list(_rows(tree.roots, "/", ""))
    column = max((len(row.bars) + len(name) for row in rows for name in row.directory.files), default=0)
    yield TreeLine(MOUNT)
    for row in rows:
        found = row.directory
        yield TreeLine("   ".join([row.branch + name_of(row), *_owners(found)]), found)
        for file, value in found.files.items():
            left = f"{row.bars}{file}"
            yield TreeLine(f"{left:<{column}} = {value}")


@dataclass(frozen=True, slots=True)
class _Row:
    """A directory with the characters before it, and those before its files."""

    directory: Directory
    name: str
    branch: str
    bars: str


def _rows(directories: Sequence[Directory], parent: str, indent: str) -> Iterator[_Row]:
    for number, found in enumerate(directories, start=1):
        is_last = number == len(directories)
        below = indent + ("   " if is_last else "│  ")
        name = str(PurePosixPath(found.path).relative_to(parent))
        bars = below + ("│  " if found.children else "   ")
        yield _Row(found, name, indent + ("└─ " if is_last else "├─ "), bars)
        yield from _rows(found.children, found.path, below)


def _whole_name(row: _Row) -> str:
    return escape(row.name)


def _without_ids(row: _Row) -> str:
    if row.directory.level not in {CgroupLevel.POD, CgroupLevel.CONTAINER}:
        return escape(row.name)
    return _UID.sub(r"\1…", short_path(row.directory.path))


def _without_class(row: _Row) -> str:
    return _BEFORE_POD.sub("…", _without_ids(row))


def _owners(found: Directory) -> Iterator[str]:
    """Whose directory it is, as it stands beside the name."""
    if found.container is not None:
        kind = found.container.kind
        yield f"container {escape(found.container.name)}"
        if kind is not ContainerKind.APP:
            yield f"({kind.value})"
    elif found.pod is not None:
        yield _pod_name(found.pod)
    if found.qos is not None:
        yield found.qos.value


def _pod_name(pod: Pod) -> str:
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name or "(unnamed)"
    kind = "" if pod.kind == "Pod" else f"{pod.kind.lower()} "
    return f"{kind}{escape(name)}"


def file_lines(tree: CgroupTree) -> Iterator[str]:
    """Each file with its whole path and its content, `path = value`, in the order of the tree."""
    for found in tree.walk():
        for name, value in found.files.items():
            yield f"{escape(absolute(found, name))} = {value}"


def absolute(found: Directory, file: str) -> str:
    """Where a file is; on cgroup v1 each controller has a tree of its own."""
    controller, slash, name = file.rpartition("/")
    return f"{MOUNT}{slash}{controller}{found.path}/{name}"


def tree_notes(trees: Sequence[CgroupTree], missing: Sequence[Missing]) -> list[str]:
    """What a reader has to know: what is missing, left out or assumed, each once.

    Where it does not hold for all of the trees, the nodes are named.
    """
    others = [one for one in missing if one.what != OTHER_PODS]
    some_unseen = len(others) < len(missing)
    nodes: dict[str, list[str]] = {}
    for tree in trees:
        for note in _notes(tree, some_unseen=some_unseen):
            nodes.setdefault(note, []).append(escape(tree.setup.node.name))
    return [
        *map(missing_sentence, others),
        *(note if len(names) == len(trees) else f"{_some(names)}: {note}" for note, names in nodes.items()),
    ]


def _notes(tree: CgroupTree, *, some_unseen: bool) -> Iterator[str]:
    if not tree.setup.kubelet.cgroups_per_qos:
        yield "cgroupsPerQOS is off: the kubelet makes no cgroups, the runtime decides where containers are"
        return
    if not tree.setup.node.name:
        yield "the values of kubepods and the classes count only the pods that are given here"
    elif some_unseen:
        yield (
            "the values of kubepods and the classes count only the pods that you may list"
            " (grant list on pods in all namespaces)"
        )
    if tree.left_out:
        pods = "pod that is" if tree.left_out == 1 else "pods that are"
        yield f"the values of kubepods and the classes count {tree.left_out} more {pods} not shown"
    yield f"not known, so left out of kubepods: {', '.join(tree.unknown)}"
    yield f"not measured, assumed: {', '.join(map(assumption_sentence, tree.assumptions))}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def tree_values(tree: CgroupTree, notes: Sequence[str]) -> dict[str, Any]:
    """The same facts for JSON and YAML: one object a directory, parents first; paths are below the mount."""
    setup = tree.setup
    return {
        "kind": "CgroupTree",
        "node": setup.node.name or None,
        "release": str(setup.release),
        "cgroup_version": setup.node.cgroup_version,
        "cgroup_driver": setup.kubelet.cgroup_driver.value,
        "mount": MOUNT,
        "directories": [_directory_values(found) for found in tree.walk()],
        "notes": list(notes),
    }


def _directory_values(found: Directory) -> dict[str, Any]:
    pod, container = found.pod, found.container
    return {
        "path": found.path,
        "level": found.level.value,
        "qos": found.qos.value if found.qos is not None else None,
        "namespace": pod.namespace if pod is not None else None,
        "pod": pod.name if pod is not None else None,
        "container": container.name if container is not None else None,
        "files": dict(found.files),
    }
