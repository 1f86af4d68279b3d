"""What happens in the demo by itself: memory creeps, a rollout, deaths by each of the three killers.

Each second of the demo's clock is one step: everything follows from the seed, the clock and the writes. Who
is killed on a node is whom `next_deaths` names. Not here: threads, what time it is, what kernels print.
"""

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubectl_qos.demo.api import object_path, patched, place
from kubectl_qos.demo.controllers import Controllers, Kubelets
from kubectl_qos.demo.kernel import Kernels, Process
from kubectl_qos.demo.world import World, container_statuses, memory_limit, report_resources
from kubectl_qos.k8s.allocation import is_resizing
from kubectl_qos.k8s.objects import DISRUPTION_TARGET, Json, Pod, convert, nested
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.qos.eviction import to_hard_eviction
from kubectl_qos.qos.killers import BY_RANK, EVICTING, Killer
from kubectl_qos.qos.kills.evidence import BY_KUBELET, EVICTED, OOM_KILLED
from kubectl_qos.qos.simulation.next_death import NextDeath, next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node

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
PRESSURE_SECONDS: Final = 300
"""For how long a node that had too little memory says so (evictionPressureTransitionPeriod)."""
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_UNKNOWN: Final = 24 * _MIB
"""What a container uses that the pod before did not have."""


class Creep(NamedTuple):
    """Memory that grows: bytes that are added each second from `least` on; at `most` the work is done.

    `since` is the second of the demo in which that begins.
    """

    rate: int
    least: int
    most: int
    since: int = 0


CREEPS: Final[Mapping[tuple[str, str], Creep]] = {
    ("data", "importer"): Creep(70 * _KIB, 106 * _MIB, 130 * _MIB),
    ("shop", "promo"): Creep(25 * _KIB, 58 * _MIB, 80 * _MIB),
    ("shop", "api"): Creep(180 * _KIB, 640 * _MIB, 2000 * _MIB),
    ("batch", "crunch"): Creep(400 * _KIB, 1240 * _MIB, 1330 * _MIB),
    ("ml", "notebook"): Creep(120 * _KIB, 1090 * _MIB, 1180 * _MIB),
    ("batch", "thumbs"): Creep(60 * _MIB, 96 * _MIB, 12 * _GIB, since=100),
}
"""By namespace and beginning of the pod's name; importer and promo need more than their limits, and thumbs
more than its node has."""
BACKUP_NODE: Final = "worker-3"
BACKUP_AT: Final = 270
_BACKUP: Final = "restic"
_BACKUP_RATE: Final = 400 * _MIB
"""A process outside of pods, which from then on fills its node faster than the kubelet notices."""


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

    `version` is another one whenever an object or a sample is; `killed_at` has the limits at the last kills,
    empty without one.
    """

    def __init__(self, items: list[dict[str, Any]], began: datetime, seed: int = 0) -> None:
        self.world = World(items, began, seed)
        self._kernels = Kernels(self.world)
        self.logs = self._kernels.logs
        self._own: dict[str, int] = {}
        self.version = (0, 0)
        self._kubelets, self._controllers = Kubelets(self.world), Controllers(self.world)
        self._used = {
            Container(*place(sample), container["name"]): Quantity.parse(container["usage"]["memory"]).value()
            for sample in self.world.api.metrics or ()
            for container in sample["containers"]
        }
        self._first = dict(self._used)
        self.killed_at: dict[Container, str] = {}
        self._starts: dict[Container, int] = {}
        self._backoff: dict[Container, tuple[int, int]] = {}
        self._pressed: dict[str, int] = {}
        self._capacities = {
            raw["metadata"]["name"]: Quantity.parse(raw["status"]["capacity"]["memory"]).value()
            for raw in self.world.api.nodes
        }

    def advance(self, now: datetime) -> None:
        """Do everything that happens until then."""
        world, api = self.world, self.world.api
        with api.lock:
            last = int((now - world.began).total_seconds())
            while world.second < last:
                world.second += 1
                before = api.revision
                self._grow()
                self._watch_nodes()
                if world.second % RESTART_EVERY == RESTART_AT:
                    self._restart()
                self._kubelets.step()
                self._controllers.step()
                self._take_over()
                if api.revision != before:
                    api.count_quotas()
                if world.second % SAMPLE_SECONDS == 0:
                    self._measure()
            api.now = world.now
            self.version = (api.revision, world.second // SAMPLE_SECONDS)

    def _grow(self) -> None:
        for container, used in list(self._used.items()):
            creep = container.creep
            if container in self._starts:
                if self.world.second >= self._starts[container]:
                    self._start(container)
            elif creep is not None and self.world.second >= creep.since:
                grown = used + creep.rate
                limit = self._limit(container)
                if limit is not None and grown >= limit:
                    raw = self._pod(container)
                    self._kernels.at_limit(raw, _status_of(raw, container.name), limit)
                    self._kill(container)
                    grown = min(creep.least, limit * 9 // 10)
                self._used[container] = creep.least if grown >= creep.most else grown

    def _limit(self, container: Container) -> int | None:
        """The limit in force in bytes: that of the status, or one of the pod that its kubelet has kept."""
        raw = next(pod for pod in self.world.api.pods if place(pod) == container[:2])
        limit = memory_limit(_status_of(raw, container.name))
        kept = self._kubelets.kept_limits.get(object_path(raw))
        return limit if limit is None or kept is None else min(limit, kept)

    def _pod(self, container: Container) -> dict[str, Any]:
        raw = self.world.api.get("Pod", *container[:2])
        assert raw is not None
        return raw

    def _by_node(self) -> dict[str, list[Container]]:
        """The running containers of each node."""
        nodes = {place(raw): raw["spec"].get("nodeName", "") for raw in self.world.api.pods}
        by_node: dict[str, list[Container]] = {raw["metadata"]["name"]: [] for raw in self.world.api.nodes}
        for container in self._used:
            if container not in self._starts:
                by_node[nodes[container[:2]]].append(container)
        return by_node

    def _watch_nodes(self) -> None:
        """Kill on nodes that are full, and evict from those that nearly are."""
        second = self.world.second
        if second == BACKUP_AT or BACKUP_NODE in self._own:
            self._own[BACKUP_NODE] = self._own.get(BACKUP_NODE, 0) + _BACKUP_RATE
        for name, containers in self._by_node().items():
            pods, own = sum(self._used[container] for container in containers), self._own.get(name, 0)
            capacity = self._capacities[name]
            if pods + own >= capacity:
                self._fill(name, containers)
            elif pods + own > capacity * 19 // 20:
                left = to_hard_eviction(self.world.snapshot().setup(name), pods, pods + own)
                if left is not None and left <= 0:
                    self._evict(name, left)
            if self._pressed.get(name) == second - PRESSURE_SECONDS:
                self._report_pressure(name, is_low=False)

    def _next(self, node: str, killer: Killer) -> NextDeath | None:
        """Whom this killer of a node kills next, by the last sample."""
        state = state_of_node(self.world.snapshot(), node)
        return next((death for death in next_deaths(state) if death.killer is killer), None)

    def _fill(self, node: str, containers: list[Container]) -> None:
        """The kernel kills a container because its node is full; the process of the node ends then."""
        victim = self._next(node, BY_RANK)
        killed = Container(*victim.key, victim.container) if victim is not None else None
        if killed not in containers:  # it has ended since the last sample
            return
        processes = {}
        for container in containers:
            raw = self._pod(container)
            status = _status_of(raw, container.name)
            processes[container] = self._kernels.process(raw, status, self._used[container])
        process, own = processes[killed], self._own.pop(node, 0)
        invoker = Process(_BACKUP, self._kernels.pid(_BACKUP), 0, own) if own else process
        self._kernels.node_full(node, invoker, process, processes.values())
        message = f"System OOM encountered, victim process: {process.name}, pid: {process.pid}"
        self.world.event(self._node(node), "SystemOOM", message)
        self._used[killed] = self._first[killed] = process.used_bytes // 4
        self._kill(killed)

    def _evict(self, node: str, left: int) -> None:
        """The kubelet evicts a pod: so much is left before its threshold, which is less than nothing."""
        self._report_pressure(node, is_low=True)
        victim = self._next(node, EVICTING)
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
        self._fail(raw, {"exitCode": 143, "reason": "Error"}, {"reason": EVICTED, "message": message})
        self.world.event(raw, EVICTED, message)
        for name in [container["name"] for container in raw["spec"]["containers"]]:
            self.world.event(raw, "Killing", f"Stopping container {name}", container=name)

    def _fail(self, raw: dict[str, Any], end: Json, why: Json) -> None:
        """A pod whose containers are not started again."""
        pod = place(raw)
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
        """The kubelet's condition MemoryPressure, with its events where that changes."""
        was_low = name in self._pressed
        self._pressed.pop(name, None)
        if is_low:
            self._pressed[name] = self.world.second
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
        """A new sample: what creeps, and of the others a quarter, a percent more or less than at first."""
        pods: dict[tuple[str, str], list[Json]] = {}
        for container in [container for container in self._used if container not in self._starts]:
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
        whole = {
            node: self._own.get(node, 0) + sum(self._used[container] for container in containers)
            for node, containers in self._by_node().items()
        }
        self.world.api.node_metrics = [
            {"kind": "NodeMetrics", "metadata": {"name": node}, "usage": {"memory": f"{used // _KIB}Ki"}}
            for node, used in whole.items()
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
            gone = [container for container in self._used if container[:2] == place(old)]
            for container in gone:
                self._starts.pop(container, None)
                self._backoff.pop(container, None)
            used = {item.name: (self._used.pop(item), self._first.pop(item)) for item in gone}
            for status in [status for _, status in container_statuses(new) if "running" in status["state"]]:
                begun = Container(*place(new), status["name"])
                now, self._first[begun] = used.get(begun.name, (_UNKNOWN, _UNKNOWN))
                self._used[begun] = begun.creep.least if begun.creep is not None else now * 7 // 10
        self._controllers.replaced.clear()

    def _kill(self, container: Container) -> None:
        """The kernel has killed it; the kubelet starts it again where it may, each time later."""
        world, raw = self.world, self._pod(container)
        end = {"exitCode": 137, "reason": OOM_KILLED}
        if raw["spec"].get("restartPolicy") == "Never":
            self._fail(raw, end, {})
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
                status, next(spec for spec in raw["spec"]["containers"] if spec["name"] == container.name)
            )
        world.api.save(raw)
        world.event(raw, "Started", "Container started", container=container.name)


def _status_of(raw: Json, container: str) -> dict[str, Any]:
    return next(status for _, status in container_statuses(raw) if status["name"] == container)
