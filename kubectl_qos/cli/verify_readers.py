"""The readers of `verify`: by exec in containers, on the node itself, or from a dump of a node."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_qos.analysis.verification import (
    Files,
    Observed,
    ObservedContainer,
    Unread,
    observed_from_sections,
    observed_on_node,
)
from kubectl_qos.cli.commands.host import read_dump, roots
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.host.procfs import MEMORY_FILES, find_hierarchy, read_host
from kubectl_qos.k8s.kubelet import CgroupDriver, NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.cgroup.names import kubepods_name, literal
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.qos.process_order import HostView
from kubectl_qos.transport.client import Connection

MAX_CONCURRENT_EXECS: Final = 8
"""The limit spares the cluster: each exec opens a connection and starts a process in a container."""
_NOT_PREDICTED: Final = ("memory.min", "memory.low", "memory.high", "memory.events")


class VerifiedPods(NamedTuple):
    """The pods to verify, and their node."""

    pods: tuple[Pod, ...]
    snapshot: Snapshot
    node: str

    @property
    def setup(self) -> NodeSetup:
        """The node's setup, for predictions."""
        return self.snapshot.setup(self.node)

    def running(self) -> list[tuple[str, str, str]]:
        """Return the namespace, pod and name of each running container."""
        return [(pod.namespace, pod.name, name) for pod in self.pods for name in running_containers(pod)]


class PodReading(NamedTuple):
    """The values that were read of one pod, and errors for those that could not be read."""

    observed: Observed
    unread: tuple[Unread, ...] = ()
    failed: bool = False


Readings = tuple[Sequence[PodReading], Mapping[str, Files]]
"""The readings of all pods, and the files of the cgroups above them, by directory."""


def running_containers(pod: Pod) -> list[str]:
    """Return the names of running containers."""
    statuses = pod.status.every_container
    return [status.name for status in statuses if status.container_id and status.has_processes]


def read_by_exec(connection: Connection, pods: VerifiedPods) -> Readings:
    """Read every running container by one exec each, several at once. Raises QosError."""
    from kubectl_qos.cluster.background import run_all
    from kubectl_qos.cluster.exec import KubeletUnreachable, read_container

    containers = pods.running()
    silent: list[KubeletUnreachable] = []
    answered: list[tuple[str, str, str]] = []

    def read(container: tuple[str, str, str]) -> dict[str, str]:
        # The first ones start together: if none of them answers in time, the kubelet is unreachable.
        if silent and not answered:
            raise KubeletUnreachable("skipped: no other container answered", silent[0].hint)
        try:
            files = read_container(connection, *container)
        except KubeletUnreachable as error:
            silent.append(error)
            raise
        answered.append(container)
        return files

    outcomes = run_all(read, containers, at_once=MAX_CONCURRENT_EXECS)
    readings: list[PodReading] = []
    levels: dict[str, Files] = {}
    for pod in pods.pods:
        observed: dict[str, ObservedContainer] = {}
        unread: list[Unread] = []
        failed = False
        for name in running_containers(pod):
            files = outcomes[pod.namespace, pod.name, name]
            if isinstance(files, QosError):
                _raise_if_final(files, only=len(containers) == 1)
                failed = failed or isinstance(files, ApiError | ServerUnreachable)
                unread.append(Unread(name, str(files), files.hint or None))
                continue
            try:
                container, directories = observed_from_sections(files)
            except ValueError as error:
                unread.append(Unread(name, f"its output cannot be read: {error}", None))
            else:
                observed[name] = container
                levels |= directories
        readings.append(_reading(observed, dict(levels), unread, failed=failed))
    return readings, levels


def _reading(
    observed: Mapping[str, ObservedContainer],
    levels: Mapping[str, Files],
    unread: Sequence[Unread],
    *,
    failed: bool = False,
) -> PodReading:
    if not observed and not unread:
        unread = [Unread(None, "no container runs", None)]
    return PodReading(Observed(observed, levels), tuple(unread), failed)


def _raise_if_final(error: QosError, *, only: bool) -> None:
    """Raise the error of the only container, which a table would merely repeat."""
    if isinstance(error, ApiError) and error.reason == "Forbidden":
        error.hint = "docs/rbac/exec.yaml grants it; --local on the node needs no API permission"
    if only and isinstance(error, ApiError | ServerUnreachable):
        raise error


def read_local(proc_root: str | None, cgroup_root: str | None, pods: VerifiedPods) -> Readings:
    """Read this machine, which is the node, once for all pods. Raises QosError."""
    proc, cgroup = roots(proc_root, cgroup_root)
    host = read_host(proc, cgroup)
    # Read every compared or shown file, in cgroups with processes and in those above pods.
    setup = pods.setup
    tree = cgroup_tree(pods.snapshot.by_node().get(pods.node, ()), setup)
    names = {name for group in tree.walk() for name in group.files} | set(_NOT_PREDICTED)
    names |= {f"memory/{name}" for name in MEMORY_FILES[1]} if setup.node.cgroup_version == 1 else set()
    paths = {*host.cgroups, *(group.path for group in tree.walk())}
    paths |= {literal(kubepods_name(setup.kubelet), driver) for driver in CgroupDriver}
    directories = {path: _read_files(cgroup, path, names) for path in sorted(paths)}
    return _read_node(pods, host, {path: files for path, files in directories.items() if files})


def read_from_dump(path: str, pods: VerifiedPods) -> Readings:
    """Read the output of `host -o json` on the node. Raises QosError."""
    host = read_dump(path)
    directories: Mapping[str, Files] = host.cgroups
    if host.cgroup_version == 1:  # Its files are those of the memory controller.
        directories = {
            path: {f"memory/{name}": text for name, text in files.items()}
            for path, files in host.cgroups.items()
        }
    return _read_node(pods, host, directories)


def _read_node(pods: VerifiedPods, host: HostView, directories: Mapping[str, Files]) -> Readings:
    by_id = observed_on_node(directories, host.processes)
    readings = []
    for pod in pods.pods:
        ids = {status.name: status.container_id.rpartition("://")[2] for status in pod.status.every_container}
        running = running_containers(pod)
        observed = {name: by_id[ids[name]] for name in running if ids[name] in by_id}
        unread = [
            Unread(name, "this machine has no cgroup with its id", f"is this node {pods.node}?")
            for name in running
            if name not in observed
        ]
        readings.append(_reading(observed, directories, unread))
    return readings, directories


def _read_files(root: Path, path: str, names: Iterable[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for name in names:
        controller, _, file = name.rpartition("/")
        hierarchy = find_hierarchy(root, controller or "memory")
        if hierarchy is not None and (hierarchy.version == 1) is bool(controller):
            for text in hierarchy.files(path, (file,)).values():
                files[name] = text
    return files
