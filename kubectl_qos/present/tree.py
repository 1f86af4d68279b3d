"""The cgroup tree as an indented tree, and as flat lines for grep and diff."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from kubectl_qos.errors import first_few
from kubectl_qos.k8s.kubelet import MEMORY_AVAILABLE, NodeSetup, threshold_bytes
from kubectl_qos.k8s.objects import MEMORY
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing
from kubectl_qos.present.format import binary, count, escape, full_name, short_path
from kubectl_qos.present.list_notes import killer_notes, missing_sentence, profile_notes
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory
from kubectl_qos.qos.ranking import ContainerKind

MOUNT: Final = "/sys/fs/cgroup"

_UID: Final = re.compile(r"(pod[0-9a-f]{8})(?:[0-9a-f]{24}|[-_][0-9a-f_-]{27})")
_BEFORE_POD: Final = re.compile(r"^.*-(?=pod[0-9a-f]{8})")


def tree_subject(tree: CgroupTree) -> str:
    """Return the node, and what its paths and files depend on."""
    node, kubelet = tree.setup.node, tree.setup.kubelet
    name = f"node {escape(node.name)}" if node.name else "an assumed node"
    if node.is_windows:
        return f"{name}, kubelet {tree.setup.release}, Windows"
    return (
        f"{name}, kubelet {tree.setup.release}, cgroup v{node.cgroup_version}, {kubelet.cgroup_driver} driver"
    )


def tree_lines(tree: CgroupTree, width: int | None = None) -> list[str]:
    """Return the directories with their files; ids and classes in names are cut to fit into `width`."""
    rows, lines = tree_rows(tree), list[str]()
    column = max((len(row.branch) + len(row.file) for row in rows if row.file), default=0)
    for shortened in range(3):
        lines = [MOUNT]
        for row in rows:
            left = row.branch + row.names[shortened]
            of_directory = "   ".join([left, *_owners(row.directory)])
            lines.append(f"{left:<{column}} = {row.content}" if row.file else of_directory)
        if width is None or all(len(line) <= width for line in lines):
            break
    return lines


class TreeRow(NamedTuple):
    """A directory, or one of its files with its content. `branch` is what is drawn before the name.

    `names` are the whole name and two shorter forms; the `content` of a directory names its owner.
    """

    directory: Directory
    branch: str
    names: tuple[str, str, str]
    content: str
    file: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return a key that stays the same when other rows fold."""
        return self.directory.path, self.file

    @property
    def meaning(self) -> str:
        """Return a file's content for people: `2Gi`, `2 CPUs`; "" if the content is clear."""
        return readable(self.file, self.content) if self.file else ""


def tree_rows(tree: CgroupTree, *, with_noise: bool = True) -> list[TreeRow]:
    """Return the rows of the whole tree; without noise, no limits of huge pages that nobody requested."""
    rows = _rows(tree.roots, "/", "")
    return [row for row in rows if with_noise or not is_noise(row.file, row.content)]


def _rows(directories: Sequence[Directory], parent: str, indent: str) -> Iterator[TreeRow]:
    for number, directory in enumerate(directories, start=1):
        is_last = number == len(directories)
        below = indent + ("   " if is_last else "│  ")
        name = short = shortest = escape(str(PurePosixPath(directory.path).relative_to(parent)))
        if directory.level in {CgroupLevel.POD, CgroupLevel.CONTAINER}:
            short = _UID.sub(r"\1…", short_path(directory.path))
            shortest = _BEFORE_POD.sub("…", short)
        branch, owners = indent + ("└─ " if is_last else "├─ "), " ".join(_owners(directory))
        yield TreeRow(directory, branch, (name, short, shortest), owners)
        bars = below + ("│  " if directory.children else "   ")
        for file, value in directory.files.items():
            yield TreeRow(directory, bars, (file, file, file), value, file)
        yield from _rows(directory.children, directory.path, below)


def is_noise(file: str, value: str) -> bool:
    """Return whether a file has the value of every pod without huge pages."""
    return "hugetlb." in file and (value in {"0", "max"} or (value.isdigit() and int(value) >= _NO_LIMIT))


_NO_LIMIT: Final = 1 << 62
"""Without a limit cgroup v1 has the largest multiple of a page below 2^63."""


def readable(file: str, value: str) -> str:
    """Return a file's content for people: `2Gi`, `2 CPUs`, `no limit`; "" if the content is clear."""
    if file.endswith("cpu.max"):
        quota, _, period = value.partition(" ")
        return f"{int(quota) / int(period):g} CPUs" if quota.isdigit() and period.isdigit() else "no limit"
    if value == "max":
        return "no limit"
    if ("memory." in file or "hugetlb." in file) and value.isdigit() and int(value) >= 1 << 10:
        return binary(int(value)) if int(value) < _NO_LIMIT else "no limit"
    return ""


def _owners(directory: Directory) -> Iterator[str]:
    if directory.container is not None:
        kind = directory.container.kind
        yield f"container {escape(directory.container.name)}"
        if kind is not ContainerKind.APP:
            yield f"({kind.value})"
    elif directory.pod is not None:
        pod = directory.pod
        yield ("" if pod.kind == "Pod" else f"{pod.kind.lower()} ") + full_name(pod.namespace, pod.name)
    if directory.qos is not None:
        yield directory.qos.value


def file_lines(tree: CgroupTree) -> Iterator[str]:
    """Yield each file with its absolute path and content, `path = value`, in the order of the tree."""
    for directory in tree.walk():
        for name, value in directory.files.items():
            # On cgroup v1 each controller has its own tree.
            controller, slash, file = name.rpartition("/")
            yield f"{escape(f'{MOUNT}{slash}{controller}{directory.path}/{file}')} = {value}"


def tree_notes(trees: Iterable[CgroupTree], missing: Sequence[Missing]) -> list[str]:
    """Return what is missing, left out or assumed; a note about some trees names their nodes."""
    others = [part for part in missing if part.what != OTHER_PODS]
    nodes: dict[str, list[str]] = {}
    shown = 0
    for tree in trees:
        shown += 1
        for note in _notes(tree, pods_are_missing=len(others) < len(missing)):
            nodes.setdefault(note, []).append(escape(tree.setup.node.name))
    has_kubepods = not tree.setup.node.is_windows and tree.setup.kubelet.cgroups_per_qos
    is_whole = shown == 1 and not tree.left_out and has_kubepods
    return [
        *(_reserved(tree.setup) if is_whole else ()),
        *map(missing_sentence, others),
        *(note if len(names) == shown else f"{first_few(names)}: {note}" for note, names in nodes.items()),
    ]


def _reserved(setup: NodeSetup) -> Iterator[str]:
    """Say why kubepods has less memory than the node, and allocatable less than kubepods."""
    capacity, most = setup.node.memory_capacity_bytes, setup.node.allocatable_memory_bytes
    allocatable = setup.node.status_allocatable.get(MEMORY)
    if capacity is None or most is None or allocatable is None or most >= capacity:
        return
    sides = {"kubeReserved": setup.kubelet.kube_reserved, "systemReserved": setup.kubelet.system_reserved}
    reserved = [f"{name} {binary(side[MEMORY].value())}" for name, side in sides.items() if MEMORY in side]
    kept = f"{binary(capacity - most)} of the node's {binary(capacity)} are reserved"
    kept += f" ({', '.join(reserved)})" if reserved else ""
    threshold = binary(threshold_bytes(setup.kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity))
    yield (
        f"{kept}: kubepods has the rest; allocatable ({binary(allocatable.value())}) also excludes"
        f" hugepages and the eviction threshold of {threshold}"
    )


def _notes(tree: CgroupTree, *, pods_are_missing: bool) -> Iterator[str]:
    yield from killer_notes({"": tree.setup}, has_ranks=False)
    if tree.setup.node.is_windows:
        return
    if not tree.setup.kubelet.cgroups_per_qos:
        yield "cgroupsPerQOS is off: the kubelet creates no cgroups, the runtime decides where containers are"
        return
    if not tree.setup.node.name:
        yield "the values of kubepods and the classes count only the given pods"
    elif pods_are_missing:
        yield (
            "the values of kubepods and the classes count only the pods that you can list"
            " (grant list on pods in all namespaces)"
        )
    if tree.left_out:
        more = count(tree.left_out, "more pod that is", "more pods that are")
        yield f"the values of kubepods and the classes include {more} not shown"
    yield f"unknown, so left out of kubepods: {', '.join(tree.unknown)}"
    yield f"not measured, assumed: {', '.join(map(assumption_sentence, tree.assumptions))}"
    yield from profile_notes(tree.assumptions)
