"""What happens in the demo by itself: memory creeps, containers are killed at their limits, a rollout.

Each second of the demo's clock is one step: everything follows from the seed, the clock and the writes.
Not here: threads, and what time it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubectl_qos.demo.api import object_path, patched
from kubectl_qos.demo.controllers import Controllers, Kubelets
from kubectl_qos.demo.world import World, container_statuses, memory_limit, report_resources
from kubectl_qos.k8s.allocation import is_resizing, running_pod
from kubectl_qos.k8s.objects import Json, Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.qos.cgroup.names import container_path, literal, pod_name
from kubectl_qos.qos.kills.evidence import memory_limits
from kubectl_qos.qos.oom_score import PodAdj
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.reason import Mechanism

SAMPLE_SECONDS: Final = 5
"""How often the metrics server measures; a real one takes 15 s."""
RESTARTED: Final = ("Deployment", "shop", "front")
"""What `kubectl rollout restart` is done to, at RESTART_AT and then every RESTART_EVERY seconds."""
RESTART_AT: Final = 75
RESTART_EVERY: Final = 300
BACKOFF_SECONDS: Final = 10
MOST_BACKOFF_SECONDS: Final = 300
BACKOFF_FORGOTTEN: Final = 600
"""How long a kubelet waits before it starts a container for the third time, then twice as long each time,
and after how many seconds of running it begins again (MaxContainerBackOff in pkg/kubelet/kubelet.go)."""
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_UNKNOWN: Final = 24 * _MIB
"""What a container uses that the pod before did not have."""
_PAGE: Final = 4096
_PAUSE: Final = "[  29839] 65535 29839      247        1    28672        0          -998 pause"
"""The other process of a pod of one container."""


class Creep(NamedTuple):
    """A container's memory: bytes that are added each second from `least` on; at `most` its work is done."""

    rate: int
    least: int
    most: int


CREEPS: Final[Mapping[tuple[str, str], Creep]] = {
    ("data", "importer"): Creep(70 * _KIB, 106 * _MIB, 130 * _MIB),
    ("shop", "promo"): Creep(25 * _KIB, 58 * _MIB, 80 * _MIB),
    ("shop", "api"): Creep(180 * _KIB, 640 * _MIB, 2000 * _MIB),
    ("batch", "crunch"): Creep(400 * _KIB, 1240 * _MIB, 1330 * _MIB),
    ("ml", "notebook"): Creep(120 * _KIB, 1090 * _MIB, 1180 * _MIB),
}
"""By namespace and beginning of the pod's name; importer and promo need more than their limits."""


class Container(NamedTuple):
    """Which container: namespace, pod and its own name."""

    namespace: str
    pod: str
    name: str

    @property
    def creep(self) -> Creep | None:
        """How its memory grows, if it does."""
        return CREEPS.get((self.namespace, self.pod.partition("-")[0]))


class Script:
    """Moves a cluster along with the clock; `logs` are the lines of each node's kernel log.

    `version` is another one whenever an object or a sample is.
    """

    def __init__(self, items: list[dict[str, Any]], began: datetime, seed: int = 0) -> None:
        self.world = World(items, began, seed)
        self.logs: dict[str, list[str]] = {}
        self.version = (0, 0)
        self._kubelets, self._controllers = Kubelets(self.world), Controllers(self.world)
        self._used = {
            Container(*_place(sample), one["name"]): Quantity.parse(one["usage"]["memory"]).value()
            for sample in self.world.api.metrics or ()
            for one in sample["containers"]
        }
        self._first = dict(self._used)
        self._starts: dict[Container, int] = {}
        self._backoff: dict[Container, tuple[int, int]] = {}

    def advance(self, now: datetime) -> None:
        """Do everything that happens until then."""
        world, api = self.world, self.world.api
        with api.lock:
            last = int((now - world.began).total_seconds())
            while world.second < last:
                world.second += 1
                before = api.revision
                self._grow()
                if world.second % RESTART_EVERY == RESTART_AT:
                    self._restart()
                self._kubelets.step()
                self._controllers.step()
                self._take_over()
                if api.revision != before:
                    api.count_quotas()
                if world.second % SAMPLE_SECONDS == 0:
                    self._measure()
            self.version = (api.revision, world.second // SAMPLE_SECONDS)

    def _grow(self) -> None:
        for container, used in self._used.items():
            creep = container.creep
            if container in self._starts:
                if self.world.second >= self._starts[container]:
                    self._start(container)
            elif creep is not None:
                grown = used + creep.rate
                limit = self._limit(container)
                if limit is not None and grown >= limit:
                    self._kill(container, limit)
                    grown = min(creep.least, limit * 9 // 10)
                self._used[container] = creep.least if grown >= creep.most else grown

    def _limit(self, container: Container) -> int | None:
        """The limit in force in bytes: that of the status, or one of the pod that its kubelet has kept."""
        raw = next(pod for pod in self.world.api.pods if _place(pod) == container[:2])
        limit = memory_limit(_status_of(raw, container.name))
        kept = self._kubelets.kept_limits.get(object_path(raw))
        return limit if limit is None or kept is None else min(limit, kept)

    def _measure(self) -> None:
        """A new sample: what creeps, and of the others a quarter, a percent more or less than at first."""
        pods: dict[tuple[str, str], list[Json]] = {}
        for container in [one for one in self._used if one not in self._starts]:
            digest = int(self.world.digest(container, self.world.second)[:4], 16)
            if container.creep is None and digest % 4 == 0:
                self._used[container] = self._first[container] * (1000 + digest // 4 % 21 - 10) // 1000
            usage = {"cpu": "12m", "memory": f"{self._used[container] // _KIB}Ki"}
            pods.setdefault(container[:2], []).append({"name": container.name, "usage": usage})
        self.world.api.metrics = [
            {
                "kind": "PodMetrics",
                "metadata": {"namespace": namespace, "name": name},
                "timestamp": self.world.now,
                "window": "15s",
                "containers": containers,
            }
            for (namespace, name), containers in sorted(pods.items())
        ]

    def _restart(self) -> None:
        raw = self.world.api.get(*RESTARTED)
        assert raw is not None
        annotations = {"kubectl.kubernetes.io/restartedAt": self.world.now}
        patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        self.world.api.store(object_path(raw), patched(raw, patch), patch, "kubectl-rollout")

    def _take_over(self) -> None:
        """New pods begin with some of the memory of those that they replace."""
        for old, new in self._controllers.replaced:
            gone = [one for one in self._used if one[:2] == _place(old)]
            for one in gone:
                self._starts.pop(one, None)
                self._backoff.pop(one, None)
            used = {one.name: (self._used.pop(one), self._first.pop(one)) for one in gone}
            for status in [one for _, one in container_statuses(new) if "running" in one["state"]]:
                begun = Container(*_place(new), status["name"])
                now, self._first[begun] = used.get(begun.name, (_UNKNOWN, _UNKNOWN))
                self._used[begun] = begun.creep.least if begun.creep is not None else now * 7 // 10
        self._controllers.replaced.clear()

    def _kill(self, container: Container, limit: int) -> None:
        """The kernel kills it and says why in its log; the kubelet starts it again, each time later."""
        world = self.world
        raw = world.api.get("Pod", *container[:2])
        assert raw is not None
        status = _status_of(raw, container.name)
        self._report(raw, status, limit)
        begun, id_ = status["state"]["running"]["startedAt"], status["containerID"]
        end = {"exitCode": 137, "reason": "OOMKilled", "startedAt": begun, "finishedAt": world.now}
        status["lastState"] = {"terminated": {**end, "containerID": id_}}
        wait, killed = self._backoff.get(container, (0, world.second))
        wait = 0 if world.second - killed >= BACKOFF_FORGOTTEN else wait
        longer = min(2 * wait, MOST_BACKOFF_SECONDS) or BACKOFF_SECONDS
        self._backoff[container] = longer, world.second + wait
        self._starts[container] = world.second + wait
        why = {"reason": "CrashLoopBackOff", "message": f"back-off {wait}s restarting failed container"}
        status["state"] = {"waiting": why}
        world.api.save(raw)
        if not wait:
            self._start(container)

    def _start(self, container: Container) -> None:
        """The kubelet starts a container with what it has allocated."""
        world = self.world
        del self._starts[container]
        raw = world.api.get("Pod", *container[:2])
        assert raw is not None
        status, pod = _status_of(raw, container.name), convert(raw, Pod)
        status["state"] = {"running": {"startedAt": world.now}}
        status["restartCount"] += 1
        status["containerID"] = f"containerd://{world.digest(container, world.second)}"
        if not is_resizing(pod):
            report_resources(
                status, next(one for one in raw["spec"]["containers"] if one["name"] == container.name)
            )
        world.api.save(raw)
        world.event(raw, "Started", "Container started", container=container.name)

    def _report(self, raw: Json, status: Json, limit: int) -> None:
        """The report of a 6.1 kernel about a container at its limit (recordings/node-1.36, oom-memcg-*)."""
        pod = convert(raw, Pod)
        setup = self.world.snapshot().setup(pod.node_name)
        running, kubelet = running_pod(pod, setup.release), setup.kubelet
        qos = computed_class(running, setup.release)
        above = literal(pod_name(pod.metadata.uid, qos, kubelet), kubelet.cgroup_driver)
        path = container_path(above, status["containerID"], kubelet, "")
        full = above if memory_limits(pod, status["name"], setup).nearest is Mechanism.POD_LIMIT else path
        adjs = PodAdj(running, qos, setup.node.memory_capacity_bytes, setup.release)
        adj = next(adjs.steps_for(one).adj for one in running.containers if one.name == status["name"])
        name, pid = pod.name.partition("-")[0], 20_000 + int(self.world.digest(path)[:4], 16) % 20_000
        kib, pages = limit // _KIB, limit // _PAGE
        tables = pages * 8 // _PAGE * _PAGE
        killed = (
            f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:{kib + 2048}kB,"
            f" anon-rss:{kib - 900}kB, file-rss:644kB, shmem-rss:0kB, UID:0 pgtables:{tables // _KIB}kB"
            f" oom_score_adj:{adj}"
        )
        scope = path.rpartition("/")[2]
        chosen = (
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={scope},mems_allowed=0,"
            f"oom_memcg={full},task_memcg={path},task={name},pid={pid},uid=0"
        )
        lines = (
            f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={adj}",
            f"CPU: 0 PID: {pid} Comm: {name} Not tainted 6.1.0-50-cloud-amd64 #1  Debian 6.1.176-1",
            f"memory: usage {kib}kB, limit {kib}kB, failcnt 18",
            "swap: usage 0kB, limit 0kB, failcnt 0",
            f"Memory cgroup stats for {full}:",
            "Tasks state (memory values in pages):",
            "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
            *([_PAUSE] if full == above else []),
            f"[{pid:7}]     0 {pid:5} {pages + 512:8} {pages - 64:8} {tables:8}        0 {adj:13} {name}",
            chosen,
            killed,
            f"Tasks in {path} are going to be killed due to memory.oom.group set",
            killed,
        )
        head = f"{self.world.now.replace('Z', '+00:00')} {pod.node_name} kernel: "
        self.logs.setdefault(pod.node_name, []).extend(head + line for line in lines)


def _place(raw: Json) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


def _status_of(raw: Json, container: str) -> dict[str, Any]:
    return next(status for _, status in container_statuses(raw) if status["name"] == container)
