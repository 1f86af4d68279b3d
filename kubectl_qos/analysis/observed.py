"""What was read of containers and cgroups, as values made from the texts of files.

Paths are below the cgroup mount. On cgroup v1 the names of files begin with their controller, as in
predictions. Not here: reading (cluster/exec.py, host/) and comparing (verification.py).
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_qos.qos.cgroup.names import memory_path
from kubectl_qos.qos.process_order import HostProcess

MOUNT: Final = "/sys/fs/cgroup"
_ID: Final = re.compile(r"[0-9a-f]{64}")
_PROCESS: Final = re.compile(r"/proc/(\d+)/oom_score_adj")
_EVENTS: Final = re.compile(r"(?m)^(high|max|oom|oom_kill) (\d+)$")
_INNER: Final = "container"
"""The cgroup below a scope into which crun puts processes."""

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObservedProcess:
    """A process of a container; the pid is as seen from where it was read, the container or the node.

    `oom_score` is what /proc shows, None where that was not read.
    """

    pid: int
    name: str
    oom_score_adj: int
    oom_score: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """What was read of one container.

    `path` is None where the container cannot see its own. `beside` is the oom_score_adj of a process that the
    runtime started beside those of the container: the value that it gives to all processes there.
    """

    files: Files = field(default_factory=dict)
    processes: tuple[ObservedProcess, ...] = ()
    path: str | None = None
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """What was read of a pod or node: containers by name, and the directories above them by path."""

    containers: Mapping[str, ObservedContainer] = field(default_factory=dict)
    directories: Mapping[str, Files] = field(default_factory=dict)

    @property
    def memory_events(self) -> dict[str, dict[str, int]]:
        """How often each container reached its bounds since it started, where it has memory.events."""
        counts = {}
        for name, observed in self.containers.items():
            events = re.findall(_EVENTS, observed.files.get("memory.events", ""))
            if events:
                counts[name] = {event: int(times) for event, times in events}
        return counts


def pod_directory(container_path: str) -> str:
    """The pod's directory, from the path of a container or of its processes."""
    directory, name = posixpath.split(container_path)
    return posixpath.dirname(directory) if name == _INNER else directory


def container_scope(path: str) -> str:
    """The container's own directory, from the path of its processes."""
    return posixpath.dirname(path) if posixpath.basename(path) == _INNER else path


def by_container_id(paths: Iterable[str]) -> dict[str, str]:
    """Each container's directory, which has the limits, by the hex ID in its name."""
    scopes: dict[str, str] = {}
    for path in map(container_scope, paths):
        match = _ID.search(posixpath.basename(path))
        if match is not None:
            scopes.setdefault(match[0], path)
    return scopes


def observed_on_node(
    directories: Mapping[str, Files], processes: Iterable[HostProcess]
) -> dict[str, ObservedContainer]:
    """Every container that has a directory or a process on a node, by its hex ID."""
    inside: dict[str, list[ObservedProcess]] = {}
    for process in processes:
        observed = ObservedProcess(process.pid, process.comm, process.adj, process.score)
        inside.setdefault(container_scope(process.cgroup), []).append(observed)
    return {
        hex_id: ObservedContainer(directories.get(path, {}), tuple(inside.get(path, ())), path)
        for hex_id, path in by_container_id([*directories, *inside]).items()
    }


def observed_from_sections(sections: Mapping[str, str]) -> tuple[ObservedContainer, dict[str, Files]]:
    """A container as a process in it reads itself, and the directories above as far as it sees them.

    `sections` are the contents of files by their absolute path, `/proc/self/cgroup` among them; `$$` is the
    pid of the reading process. Raises ValueError for a number that is none.
    """
    own = sections.get("/proc/self/cgroup", "")
    path = _visible_path(own)
    scope = container_scope(path) if path else None
    reader = sections.get("$$", "").strip()
    processes = tuple(
        ObservedProcess(
            int(match[1]),
            sections.get(f"/proc/{match[1]}/comm", "").strip(),
            int(text),
            _integer(sections.get(f"/proc/{match[1]}/oom_score", "")),
        )
        for name, text in sections.items()
        if (match := _PROCESS.fullmatch(name)) is not None
        and match[1] != reader
        and _is_in_container(sections.get(f"/proc/{match[1]}/cgroup"), own)
    )
    beside = sections.get("/proc/self/oom_score_adj")
    directories: dict[str, dict[str, str]] = {}
    for name, text in sections.items():
        if name.startswith(f"{MOUNT}/"):
            directory, file = _split_file(name.removeprefix(MOUNT))
            directories.setdefault(directory, {})[file] = text.strip()
    root = directories.pop("/", {})
    files = directories.pop(scope, root) if scope is not None else root
    directories.pop(path or "/", None)
    container = ObservedContainer(files, processes, scope, int(beside) if beside is not None else None)
    return container, dict(directories)


def _integer(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _visible_path(text: str) -> str | None:
    """The path in `/proc/PID/cgroup`, None where the process is in a cgroup namespace of its own."""
    path = memory_path(text).strip()
    return None if path in {"", "/"} or path.startswith("/..") else path


def _is_in_container(text: str | None, own: str) -> bool:
    """Whether another process is in the cgroup of the reading one, or below it.

    Process 1 may be another container's: where processes are shared among the containers of a pod or with the
    node, others have paths such as `/../cri-containerd-….scope`.
    """
    if text is None:
        return True
    ours, theirs = (memory_path(lines).strip() or "/" for lines in (own, text))
    if theirs.startswith("/.."):
        return False
    return ours in {theirs, "/"} or theirs.startswith(f"{ours}/") or ours.startswith(f"{theirs}/")


_V1: Final = frozenset({"cpu", "memory", "pids", "cpuset", "hugetlb"})


def _split_file(path: str) -> tuple[str, str]:
    """The directory and the file's name as in predictions; v1 has a tree for each controller."""
    directory, name = posixpath.split(path)
    controller, _, rest = directory.removeprefix("/").partition("/")
    if controller in _V1:
        return f"/{rest}", f"{controller}/{name}"
    return directory or "/", name
