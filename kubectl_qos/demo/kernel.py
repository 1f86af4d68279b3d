"""What the kernels of the demo's nodes print about a kill, as a 6.1 kernel (recordings/node-1.36, oom-*).

Not here: whom they kill, and when (script.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubectl_qos.demo.world import World
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.objects import Json, all_containers, convert
from kubectl_qos.k8s.objects import Pod as PodObject
from kubectl_qos.qos.cgroup.names import container_path, literal, pod_name
from kubectl_qos.qos.kills.evidence import memory_limits
from kubectl_qos.qos.oom_score import PodAdj
from kubectl_qos.qos.qos_class import computed_class

_KIB: Final = 1 << 10
_PAGE: Final = 4096
_VERSION: Final = "Not tainted 6.1.0-50-cloud-amd64 #1  Debian 6.1.176-1"
_PAUSE: Final = "[  29839] 65535 29839      247        1    28672        0          -998 pause"
"""The other process of a pod of one container."""
_HEADER: Final = (
    "Tasks state (memory values in pages):",
    "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
)


class Process(NamedTuple):
    """A process with all the memory of its container; `path` is that of its cgroup, `pod_path` of its pod's.

    Both are empty for a process of the node itself.
    """

    name: str
    pid: int
    adj: int
    used_bytes: int
    path: str = ""
    pod_path: str = ""

    @property
    def _pages(self) -> int:
        return self.used_bytes // _PAGE

    @property
    def _tables(self) -> int:
        return self._pages * 8 // _PAGE * _PAGE

    @property
    def task(self) -> str:
        """Its line among the tasks."""
        pages = f"{self._pages + 512:8} {self._pages - 64:8} {self._tables:8}"
        return f"[{self.pid:7}]     0 {self.pid:5} {pages}        0 {self.adj:13} {self.name}"

    def invoked(self) -> Iterator[str]:
        """How a report begins when this process wants the memory."""
        yield (
            f"{self.name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={self.adj}"
        )
        yield f"CPU: 0 PID: {self.pid} Comm: {self.name} {_VERSION}"

    def chosen(self, constraint: str, invoker: Process, where: str) -> str:
        """The line that names it as the victim."""
        scope = invoker.path.rpartition("/")[2] or "/"
        return (
            f"oom-kill:constraint={constraint},nodemask=(null),cpuset={scope},mems_allowed=0,"
            f"{where},task_memcg={self.path},task={self.name},pid={self.pid},uid=0"
        )

    def killed(self, what: str) -> Iterator[str]:
        """How a report ends: every process of the container is killed."""
        kib = self.used_bytes // _KIB
        line = (
            f"{what}: Killed process {self.pid} ({self.name}) total-vm:{kib + 2048}kB,"
            f" anon-rss:{kib - 900}kB, file-rss:644kB, shmem-rss:0kB, UID:0 pgtables:{self._tables // _KIB}kB"
            f" oom_score_adj:{self.adj}"
        )
        yield line
        yield f"Tasks in {self.path} are going to be killed due to memory.oom.group set"
        yield line


class Kernels:
    """The kernels of all nodes; `logs` are the lines of each by the node's name."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.logs: dict[str, list[str]] = {}

    def process(self, raw: Json, status: Json, used_bytes: int) -> Process:
        """The process of a running container."""
        pod = convert(raw, PodObject)
        setup = self._world.snapshot().setup(pod.node_name)
        running, kubelet = running_pod(pod, setup.release), setup.kubelet
        qos = computed_class(running, setup.release)
        above = literal(pod_name(pod.metadata.uid, qos, kubelet), kubelet.cgroup_driver)
        path = container_path(above, status["containerID"], kubelet, "")
        adjs = PodAdj(running, qos, setup.node.memory_capacity_bytes, setup.release)
        adj = next(
            adjs.steps_for(item).adj for item in all_containers(running) if item.name == status["name"]
        )
        return Process(pod.name.partition("-")[0], self.pid(path), adj, used_bytes, path, above)

    def pid(self, path: str) -> int:
        """A process ID that only its cgroup decides on."""
        return 20_000 + int(self._world.digest(path)[:4], 16) % 20_000

    def at_limit(self, raw: Json, status: Json, limit_bytes: int) -> None:
        """Report a container that is killed at its limit, or at that of its pod."""
        pod = convert(raw, PodObject)
        setup = self._world.snapshot().setup(pod.node_name)
        process, kib = self.process(raw, status, limit_bytes), limit_bytes // _KIB
        of_pod = memory_limits(pod, status["name"], setup).is_of_pod
        full = process.pod_path if of_pod else process.path
        self._print(
            pod.node_name,
            *process.invoked(),
            f"memory: usage {kib}kB, limit {kib}kB, failcnt 18",
            "swap: usage 0kB, limit 0kB, failcnt 0",
            f"Memory cgroup stats for {full}:",
            *_HEADER,
            *([_PAUSE] if of_pod else []),
            process.task,
            process.chosen("CONSTRAINT_MEMCG", process, f"oom_memcg={full}"),
            *process.killed("Memory cgroup out of memory"),
        )

    def node_full(self, node: str, invoker: Process, victim: Process, others: Iterable[Process]) -> None:
        """Report a kill because the memory of the node is used up."""
        self._print(
            node,
            *invoker.invoked(),
            "Mem-Info:",
            *_HEADER,
            *(process.task for process in sorted({invoker, victim, *others}, key=lambda item: item.pid)),
            victim.chosen("CONSTRAINT_NONE", invoker, "global_oom"),
            *victim.killed("Out of memory"),
        )

    def _print(self, node: str, *lines: str) -> None:
        head = f"{self._world.now.replace('Z', '+00:00')} {node} kernel: "
        self.logs.setdefault(node, []).extend(head + line for line in lines)
