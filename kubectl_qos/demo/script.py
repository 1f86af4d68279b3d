"""The demo's scripted events: memory growth, a rollout, deaths by each of the three killers, kernel logs.

Each second of the demo's clock is one step, and depends only on the clock and the writes.
`next_deaths` names the victim on a node. Kernels log like a 6.1 kernel (recordings/node-1.36, oom-*). Not
here: threads and the wall clock.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubectl_qos.demo.api import key_of, object_path, patched
from kubectl_qos.demo.world import (
    Controllers,
    Kubelets,
    World,
    container_statuses,
    memory_limit,
    report_resources,
)
from kubectl_qos.k8s.allocation import is_resizing, running_pod
from kubectl_qos.k8s.objects import DISRUPTION_TARGET, Json, Pod, all_containers, convert, nested
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.qos.cgroup.names import container_path, literal, pod_name
from kubectl_qos.qos.eviction import to_hard_eviction
from kubectl_qos.qos.killers import BY_RANK, EVICTING, Killer
from kubectl_qos.qos.kills.evidence import BY_KUBELET, EVICTED, OOM_KILLED, memory_limits
from kubectl_qos.qos.oom_score import PodAdj
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.simulation.next_death import NextDeath, next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node

SAMPLE_SECONDS: Final = 5
"""Interval of the metrics server; a real one has 15 s."""
RESTARTED: Final = ("Deployment", "shop", "front")
"""Workload that is restarted at RESTART_AT and then every RESTART_EVERY seconds."""
RESTART_AT: Final = 75
RESTART_EVERY: Final = 300
BACKOFF_SECONDS: Final = 10
MOST_BACKOFF_SECONDS: Final = 300
BACKOFF_FORGOTTEN: Final = 600
"""Delay before the third start of a container, which doubles with each start, its maximum, and the running
time that resets it, in seconds (MaxContainerBackOff in pkg/kubelet/kubelet.go)."""
PRESSURE_SECONDS: Final = 300
"""How long the kubelet reports MemoryPressure after its end (evictionPressureTransitionPeriod)."""
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_UNKNOWN: Final = 24 * _MIB
"""Usage of a new pod's container that the pod it replaces did not have."""


class RepeatedGrowth(NamedTuple):
    """Memory that grows by `rate` bytes per second from `least` to `most`, then again from `least`.

    `since` is the second of the demo in which it begins.
    """

    rate: int
    least: int
    most: int
    since: int = 0


GROWTHS: Final[Mapping[tuple[str, str], RepeatedGrowth]] = {
    ("data", "importer"): RepeatedGrowth(70 * _KIB, 106 * _MIB, 130 * _MIB),
    ("shop", "promo"): RepeatedGrowth(25 * _KIB, 58 * _MIB, 80 * _MIB),
    ("shop", "api"): RepeatedGrowth(180 * _KIB, 640 * _MIB, 2000 * _MIB),
    ("batch", "crunch"): RepeatedGrowth(400 * _KIB, 1240 * _MIB, 1330 * _MIB),
    ("ml", "notebook"): RepeatedGrowth(120 * _KIB, 1090 * _MIB, 1180 * _MIB),
    ("batch", "thumbs"): RepeatedGrowth(60 * _MIB, 96 * _MIB, 12 * _GIB, since=100),
}
"""By namespace and first part of the pod's name. importer and promo need more than their limits, thumbs more
than its node has."""
BACKUP_NODE: Final = "worker-3"
BACKUP_AT: Final = 270
_BACKUP: Final = "restic"
_BACKUP_RATE: Final = 400 * _MIB
"""A host process that fills its node faster than the kubelet checks."""
_CHECK_AT: Final = 9
"""The kubelets check their nodes in this second, and then after each delay of theirs."""


class Container(NamedTuple):
    """Identity of a container."""

    namespace: str
    pod: str
    name: str

    @property
    def growth(self) -> RepeatedGrowth | None:
        """Growth of its memory, if any."""
        return GROWTHS.get((self.namespace, self.pod.partition("-")[0]))


class Script:
    """Advances the cluster with the clock."""

    def __init__(self, items: list[dict[str, Any]], began: datetime) -> None:
        self.world = World(items, began)
        self._kernels = Kernels(self.world)
        self.logs = self._kernels.logs
        """Lines of the kernel log by node."""
        self._host_bytes: dict[str, int] = {}
        """Bytes that the host process uses, by node."""
        self.version = (0, 0)
        """A version that changes with every object and sample."""
        self._kubelets, self._controllers = Kubelets(self.world), Controllers(self.world)
        self._used = {
            Container(*key_of(sample), container["name"]): Quantity.parse(
                container["usage"]["memory"]
            ).value()
            for sample in self.world.api.metrics or ()
            for container in sample["containers"]
        }
        self._baseline = dict(self._used)
        self.killed_at: dict[Container, str] = {}
        """Limit at the container's last kill; "" if it had none."""
        self._starts: dict[Container, int] = {}
        """Second in which a container that waits starts."""
        self._backoff: dict[Container, tuple[int, int]] = {}
        """Seconds of the next delay, and second of the last start."""
        self._short_at: dict[str, int] = {}
        """The second of the last memory shortage, by node."""
        self._capacities = {
            raw["metadata"]["name"]: Quantity.parse(raw["status"]["capacity"]["memory"]).value()
            for raw in self.world.api.nodes
        }

    def advance(self, now: datetime) -> None:
        """Run all steps until `now`."""
        world, api = self.world, self.world.api
        with api.lock:
            last = int((now - world.began).total_seconds())
            while world.second < last:
                world.second += 1
                before = api.revision
                self._grow()
                self._watch_nodes()
                if world.second % RESTART_EVERY == RESTART_AT:
                    raw = api.get(*RESTARTED)
                    assert raw is not None
                    annotations = {"kubectl.kubernetes.io/restartedAt": world.now}
                    patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
                    api.store(object_path(raw), patched(raw, patch), patch, "kubectl-rollout")
                self._kubelets.step()
                self._controllers.step()
                self._hand_over_memory()
                if api.revision != before:
                    api.count_quotas()
                if world.second % SAMPLE_SECONDS == 0:
                    self._measure()
            api.now = world.now
            self.version = (api.revision, world.second // SAMPLE_SECONDS)

    def _grow(self) -> None:
        for container, used in list(self._used.items()):
            growth = container.growth
            if container in self._starts:
                if self.world.second >= self._starts[container]:
                    self._start(container)
            elif growth is not None and self.world.second >= growth.since:
                grown = used + growth.rate
                limit = self._limit(container)
                if limit is not None and grown >= limit:
                    raw = self._pod(container)
                    self._kernels.at_limit(raw, _status_of(raw, container.name), limit)
                    self._kill(container)
                    grown = min(growth.least, limit * 9 // 10)
                self._used[container] = growth.least if grown >= growth.most else grown

    def _limit(self, container: Container) -> int | None:
        """Return the limit in force in bytes: from the status, or a lower one that the kubelet kept."""
        raw = next(pod for pod in self.world.api.pods if key_of(pod) == container[:2])
        limit = memory_limit(_status_of(raw, container.name))
        kept = self._kubelets.kept_limits.get(object_path(raw))
        return limit if limit is None or kept is None else min(limit, kept)

    def _pod(self, container: Container) -> dict[str, Any]:
        raw = self.world.api.get("Pod", *container[:2])
        assert raw is not None
        return raw

    def _by_node(self) -> dict[str, list[Container]]:
        nodes = {key_of(raw): raw["spec"].get("nodeName", "") for raw in self.world.api.pods}
        by_node: dict[str, list[Container]] = {raw["metadata"]["name"]: [] for raw in self.world.api.nodes}
        for container in self._used:
            if container not in self._starts:
                by_node[nodes[container[:2]]].append(container)
        return by_node

    def _watch_nodes(self) -> None:
        """Kill on full nodes, and evict on those above the threshold."""
        second = self.world.second
        if second == BACKUP_AT or BACKUP_NODE in self._host_bytes:
            self._host_bytes[BACKUP_NODE] = self._host_bytes.get(BACKUP_NODE, 0) + _BACKUP_RATE
        for name, containers in self._by_node().items():
            pods, own = sum(self._used[container] for container in containers), self._host_bytes.get(name, 0)
            capacity = self._capacities[name]
            if pods + own >= capacity:
                self._kill_on_full_node(name, containers)
            elif pods + own > capacity * 19 // 20 and second % EVICTING.delay_seconds == _CHECK_AT:
                left = to_hard_eviction(self.world.snapshot().setup(name), pods, pods + own)
                if left is not None and left <= 0:
                    self._evict(name, left)
            if self._short_at.get(name) == second - PRESSURE_SECONDS:
                self._report_pressure(name, is_low=False)

    def _next_death(self, node: str, killer: Killer) -> NextDeath | None:
        """Return the next death by this killer, according to the last sample."""
        state = state_of_node(self.world.snapshot(), node)
        return next((death for death in next_deaths(state) if death.killer is killer), None)

    def _kill_on_full_node(self, node: str, containers: list[Container]) -> None:
        """Kill a container because the node is full; the host process ends then."""
        victim = self._next_death(node, BY_RANK)
        killed = Container(*victim.key, victim.container) if victim is not None else None
        if killed not in containers:  # it has ended since the last sample
            return
        processes = {}
        for container in containers:
            raw = self._pod(container)
            status = _status_of(raw, container.name)
            processes[container] = self._kernels.process(raw, status, self._used[container])
        process, own = processes[killed], self._host_bytes.pop(node, 0)
        invoker = Process(_BACKUP, self._kernels.pid(_BACKUP), 0, own) if own else process
        self._kernels.node_full(node, invoker, process, processes.values())
        message = f"System OOM encountered, victim process: {process.name}, pid: {process.pid}"
        self.world.event(self._node(node), "SystemOOM", message)
        self._used[killed] = self._baseline[killed] = process.used_bytes // 4
        self._kill(killed)

    def _evict(self, node: str, left: int) -> None:
        """Evict a pod; `left` is negative, the bytes below the threshold."""
        self._report_pressure(node, is_low=True)
        victim = self._next_death(node, EVICTING)
        if victim is None:
            return
        raw, amount = self._pod(Container(*victim.key, "")), max(100 * _MIB + left, 0) // _KIB
        message = f"The node was low on resource: memory. Threshold quantity: 100Mi, available: {amount}Ki. "
        for container in raw["spec"]["containers"]:
            request = container.get("resources", {}).get("requests", {}).get("memory", "0")
            used = self._used.get(Container(*victim.key, container["name"]), 0)
            if used > Quantity.parse(request).value():
                message += (
                    f"Container {container['name']} was using {used // _KIB}Ki, request is {request},"
                    " has larger consumption of memory. "
                )
        disrupted = {"type": DISRUPTION_TARGET, "status": "True", "reason": BY_KUBELET, "message": message}
        disrupted["lastTransitionTime"] = self.world.now
        raw["status"].setdefault("conditions", []).append(disrupted)
        self._end_pod(raw, {"exitCode": 143, "reason": "Error"}, {"reason": EVICTED, "message": message})
        self.world.event(raw, EVICTED, message)
        for name in [container["name"] for container in raw["spec"]["containers"]]:
            self.world.event(raw, "Killing", f"Stopping container {name}", container=name)

    def _end_pod(self, raw: dict[str, Any], end: Json, why: Json) -> None:
        """End a pod; its containers do not restart."""
        pod = key_of(raw)
        raw["status"] |= {"phase": "Failed", **why}
        for _, status in container_statuses(raw):
            if "running" in status["state"]:
                times = {"startedAt": status["state"]["running"]["startedAt"], "finishedAt": self.world.now}
                status["state"] = {"terminated": {**end, **times, "containerID": status["containerID"]}}
        self.world.api.save(raw)
        self._used = {container: used for container, used in self._used.items() if container[:2] != pod}
        for container in [container for container in self._starts if container[:2] == pod]:
            del self._starts[container]

    def _node(self, name: str) -> Json:
        return next(raw for raw in self.world.api.nodes if raw["metadata"]["name"] == name)

    def _report_pressure(self, name: str, *, is_low: bool) -> None:
        """Set the condition MemoryPressure, with events if it changes."""
        was_low = name in self._short_at
        self._short_at.pop(name, None)
        if is_low:
            self._short_at[name] = self.world.second
            self.world.event(self._node(name), "EvictionThresholdMet", "Attempting to reclaim memory")
        if was_low == is_low:
            return
        word = "Insufficient" if is_low else "Sufficient"
        raw = copy.deepcopy(dict(self._node(name)))
        condition = next(item for item in raw["status"]["conditions"] if item["type"] == "MemoryPressure")
        condition["status"], condition["reason"] = str(is_low), f"KubeletHas{word}Memory"
        condition["message"] = f"kubelet has {word.lower()} memory available"
        condition["lastTransitionTime"] = self.world.now
        self.world.api.save_node(raw)
        self.world.event(raw, f"NodeHas{word}Memory", f"Node {name} status is now: NodeHas{word}Memory")

    def _measure(self) -> None:
        """Take a sample; a quarter of the containers without growth vary by a percent."""
        pods: dict[tuple[str, str], list[Json]] = {}
        for container in [container for container in self._used if container not in self._starts]:
            digest = int(self.world.digest(container, self.world.second)[:4], 16)
            if container.growth is None and digest % 4 == 0:
                self._used[container] = self._baseline[container] * (1000 + digest // 4 % 21 - 10) // 1000
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
        whole = {
            node: self._host_bytes.get(node, 0) + sum(self._used[container] for container in containers)
            for node, containers in self._by_node().items()
        }
        self.world.api.node_metrics = [
            {"kind": "NodeMetrics", "metadata": {"name": node}, "usage": {"memory": f"{used // _KIB}Ki"}}
            for node, used in whole.items()
        ]

    def _hand_over_memory(self) -> None:
        """Give new pods some of the memory of the pods that they replace."""
        for old, new in self._controllers.replaced:
            gone = [container for container in self._used if container[:2] == key_of(old)]
            for container in gone:
                self._starts.pop(container, None)
                self._backoff.pop(container, None)
            used = {item.name: (self._used.pop(item), self._baseline.pop(item)) for item in gone}
            for status in [status for _, status in container_statuses(new) if "running" in status["state"]]:
                begun = Container(*key_of(new), status["name"])
                now, self._baseline[begun] = used.get(begun.name, (_UNKNOWN, _UNKNOWN))
                self._used[begun] = begun.growth.least if begun.growth is not None else now * 7 // 10
        self._controllers.replaced.clear()

    def _kill(self, container: Container) -> None:
        """Record a kernel kill; the kubelet restarts the container after a back-off, if the policy allows."""
        world, raw = self.world, self._pod(container)
        end = {"exitCode": 137, "reason": OOM_KILLED}
        if raw["spec"].get("restartPolicy") == "Never":
            self._end_pod(raw, end, {})
            return
        status = _status_of(raw, container.name)
        self.killed_at[container] = nested(status, "resources", "limits").get("memory", "")
        begun, id_ = status["state"]["running"]["startedAt"], status["containerID"]
        times = {"startedAt": begun, "finishedAt": world.now}
        status["lastState"] = {"terminated": {**end, **times, "containerID": id_}}
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
        """Start a container with its allocated resources."""
        world = self.world
        del self._starts[container]
        raw = self._pod(container)
        status, pod = _status_of(raw, container.name), convert(raw, Pod)
        status["state"] = {"running": {"startedAt": world.now}}
        status["restartCount"] += 1
        status["containerID"] = f"containerd://{world.digest(container, world.second)}"
        if not is_resizing(pod):
            report_resources(
                status, next(spec for spec in raw["spec"]["containers"] if spec["name"] == container.name)
            )
        world.api.save(raw)
        world.event(raw, "Started", "Container started", container=container.name)


def _status_of(raw: Json, container: str) -> dict[str, Any]:
    return next(status for _, status in container_statuses(raw) if status["name"] == container)


_PAGE: Final = 4096
_VERSION: Final = "Not tainted 6.1.0-50-cloud-amd64 #1  Debian 6.1.176-1"
_PAUSE: Final = "[  29839] 65535 29839      247        1    28672        0          -998 pause"
"""The pause process of a pod with one container."""
_HEADER: Final = (
    "Tasks state (memory values in pages):",
    "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
)


class Process(NamedTuple):
    """A process with all the memory of its container; paths are empty for a host process."""

    name: str
    pid: int
    adj: int
    used_bytes: int
    path: str = ""
    """Path of its cgroup."""
    pod_path: str = ""
    """Path of its pod's cgroup."""

    @property
    def page_tables(self) -> int:
        """Bytes of its page tables."""
        return self.used_bytes // _PAGE * 8 // _PAGE * _PAGE

    @property
    def task_row(self) -> str:
        """Its line in the task list."""
        pages = self.used_bytes // _PAGE
        row = f"{pages + 512:8} {pages - 64:8} {self.page_tables:8}"
        return f"[{self.pid:7}]     0 {self.pid:5} {row}        0 {self.adj:13} {self.name}"


class Kernels:
    """Kernels of all nodes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.logs: dict[str, list[str]] = {}
        """Log lines by node name."""

    def process(self, raw: Json, status: Json, used_bytes: int) -> Process:
        """Return the process of a running container."""
        pod = convert(raw, Pod)
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
        """Return a process ID that depends only on the cgroup."""
        return 20_000 + int(self._world.digest(path)[:4], 16) % 20_000

    def at_limit(self, raw: Json, status: Json, limit_bytes: int) -> None:
        """Log a kill at the limit of a container or of its pod."""
        pod = convert(raw, Pod)
        setup = self._world.snapshot().setup(pod.node_name)
        process, kib = self.process(raw, status, limit_bytes), limit_bytes // _KIB
        of_pod = memory_limits(pod, status["name"], setup).is_of_pod
        full = process.pod_path if of_pod else process.path
        lines = (
            f"memory: usage {kib}kB, limit {kib}kB, failcnt 18",
            "swap: usage 0kB, limit 0kB, failcnt 0",
            f"Memory cgroup stats for {full}:",
            *_HEADER,
            *([_PAUSE] if of_pod else []),
            process.task_row,
        )
        self._report(pod.node_name, process, process, lines, full)

    def node_full(self, node: str, invoker: Process, victim: Process, others: Iterable[Process]) -> None:
        """Log a kill on a full node."""
        processes = sorted({invoker, victim, *others}, key=lambda item: item.pid)
        rows = (process.task_row for process in processes)
        self._report(node, invoker, victim, ("Mem-Info:", *_HEADER, *rows))

    def _report(
        self, node: str, invoker: Process, victim: Process, lines: Iterable[str], full: str = ""
    ) -> None:
        """Log that the victim's container is killed, because a cgroup or the node is full."""
        kib, scope = victim.used_bytes // _KIB, invoker.path.rpartition("/")[2] or "/"
        kind, where = ("MEMCG", f"oom_memcg={full}") if full else ("NONE", "global_oom")
        chosen = (
            f"oom-kill:constraint=CONSTRAINT_{kind},nodemask=(null),cpuset={scope},mems_allowed=0,{where},"
            f"task_memcg={victim.path},task={victim.name},pid={victim.pid},uid=0"
        )
        killed = (
            f"{'Memory cgroup out of memory' if full else 'Out of memory'}: Killed process {victim.pid}"
            f" ({victim.name}) total-vm:{kib + 2048}kB, anon-rss:{kib - 900}kB, file-rss:644kB,"
            f" shmem-rss:0kB, UID:0 pgtables:{victim.page_tables // _KIB}kB oom_score_adj:{victim.adj}"
        )
        flags = f"gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={invoker.adj}"
        report = (
            f"{invoker.name} invoked oom-killer: {flags}",
            f"CPU: 0 PID: {invoker.pid} Comm: {invoker.name} {_VERSION}",
            *lines,
            chosen,
            killed,
            f"Tasks in {victim.path} are going to be killed due to memory.oom.group set",
            killed,
        )
        head = f"{self._world.now.replace('Z', '+00:00')} {node} kernel: "
        self.logs.setdefault(node, []).extend(head + line for line in report)
