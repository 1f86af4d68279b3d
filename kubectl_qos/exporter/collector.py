"""The exporter's metrics: families with help texts, the samples of each node, and the exposition.

Samples are formatted here and kept per node, because prometheus_client formats all of them at each scrape,
which takes seconds for 200,000 of them. A thread computes only changed nodes, so scrapes never wait.
prometheus_client exposes the exporter's own metrics. Names, units and help texts follow
https://prometheus.io/docs/practices/naming. Not here: HTTP (server.py).
"""

import gc
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kubectl_qos.analysis.group_table import is_in_danger, ranked_state
from kubectl_qos.analysis.pod_table import to_own_limit
from kubectl_qos.cluster.source import Source, Update, UpdateStream
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod, PodSpec
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.eviction import eviction_due, node_memory, to_hard_eviction, to_soft_eviction
from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.ranking import (
    ProfileCache,
    RankedPod,
    Ranking,
    is_inverted,
    lowest_priorities_after,
    rank_node,
)
from kubectl_qos.qos.simulation.next_death import NextDeath, first_deaths
from kubectl_qos.version import __version__

Value = tuple[str, str, float | int | None]
"""Name of the family, labels after the node's, and the value; None if the value is unknown."""
MIN_REST_SECONDS: Final = 1.0
"""Changes within this time are computed together."""
REST_PER_WORK: Final = 2
"""The pause is this many times as long as the computation, which leaves at most a third of a core to it."""
ZERO_SECONDS: Final = 60.0
"""A new counter is exported as 0 for this long, because increase() ignores the first value of a series."""
_END: Final = b"# EOF\n"
_SECONDS: Final = (0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True)
class Family(Collector):
    """A metric: name without prefix and suffix, help text, and type."""

    name: str
    help: str
    type: str = "gauge"

    @property
    def full_name(self) -> str:
        """Name of the family in OpenMetrics."""
        return f"kubectl_qos_{self.name}"

    @property
    def sample_name(self) -> str:
        """Name of its samples."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.type, "")
        return f"{self.full_name}{suffix}"

    def collect(self) -> Iterable[Metric]:
        """Return the metric without samples, to format its TYPE, UNIT and HELP lines."""
        unit = "bytes" if self.name.endswith("_bytes") else ""
        return [Metric(self.full_name, self.help, self.type, unit)]


FAMILIES: Final = (
    Family("node_pods", "Pods bound to the node that have not ended."),
    Family(
        "node_pods_without_usage", "Running pods without usage; distances of their node are upper bounds."
    ),
    Family("node_memory_capacity_bytes", "Memory capacity of the node."),
    Family("node_memory_used_bytes", "Working set of the node's pods, by QoS class."),
    Family(
        "node_own_memory_bytes",
        "Memory used outside pods; without this series, the node's distances are upper bounds.",
    ),
    Family("node_memory_worst_case_bytes", "Memory of the node's pods if every container reaches its limit."),
    Family(
        "node_eviction_distance_bytes", "Memory left until the kubelet evicts, below zero if it already does."
    ),
    Family("node_full_distance_bytes", "Memory left until the kernel kills because the node is full."),
    Family("node_in_trouble", "1 while the kubelet evicts, or with less than 5 % left before eviction."),
    Family("node_inversions", "Pods that the kernel would kill before a pod of lower priority."),
    Family("node_next_death", "Pod that dies next on the node, and the mechanism.", "info"),
    Family("node_next_death_distance_bytes", "Memory growth until the next death."),
    Family("node_next_death_priority", "Priority of the pod that dies next on the node."),
    Family(
        "node_killer_distance_bytes",
        "Memory growth until this killer acts; an upper bound for killers that act on pressure.",
    ),
    Family("pod_kill_rank", "Position in the kernel's kill order of the node; 1 is killed first."),
    Family("pod_oom_score", "The oom_score of the container that decides the pod's rank."),
    Family("pod_oom_score_adj", "The oom_score_adj of the container that decides the pod's rank."),
    Family(
        "pod_limit_distance_bytes", "Memory left until the nearest limit of the pod or of its containers."
    ),
    Family("pod_freed_bytes", "Memory freed if the container that decides the rank is killed."),
)
KILLS: Final = Family("kills", "OOM kills and evictions seen since the exporter started.", "counter")
_KILL_LABELS: Final = ("node", "namespace", "pod", "container", "mechanism")


def labels(**values: str) -> str:
    """Format labels for both text formats, without braces."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values.items())


_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def sample(family: Family, label_text: str, value: float) -> str:
    """Format one line; both text formats have the same."""
    return f"{family.sample_name}{{{label_text}}} {value}\n"


def node_samples(
    snapshot: Snapshot, name: str, scope: Scope, per_pod: int | None, profiles: ProfileCache
) -> tuple[bytes, ...]:
    """Return the samples of a node, one text for each of FAMILIES.

    `per_pod` limits pod metrics to the first pods in scope of the kill order; None is no limit.
    """
    setup = snapshot.setup(name)
    running = [running_pod(pod, setup.release) for pod in snapshot.by_node().get(name, ())]
    ranking = rank_node(running, setup.node, setup.release, snapshot.usage, profiles.for_node(setup))
    lines: dict[str, list[str]] = {family.name: [] for family in FAMILIES}
    node_label = labels(node=name)
    ranked = [row for row in ranking.pods if row.rank is not None and scope.matches(row.pod)]
    chosen = ranked if per_pod is None else ranked[:per_pod]
    for values in (
        _memory_values(snapshot, setup, ranking),
        _death_values(snapshot, setup, ranking),
        *map(_pod_values, chosen),
    ):
        for family, extra_labels, value in values:
            if value is not None:
                all_labels = f"{node_label},{extra_labels}" if extra_labels else node_label
                lines[family].append(sample(_BY_NAME[family], all_labels, value))
    return tuple("".join(family_lines).encode() for family_lines in lines.values())


_BY_NAME: Final = {family.name: family for family in FAMILIES}


def _memory_values(snapshot: Snapshot, setup: NodeSetup, ranking: Ranking) -> Iterator[Value]:
    name = setup.node.name
    whole, now = snapshot.node_usage.get(name), snapshot.used_bytes(name)
    memory, capacity = node_memory(ranking, setup.release), ranking.node.memory_capacity_bytes
    used, hard, soft = memory.used_bytes, None, None
    due = eviction_due(setup, ((row.pod, row.usage) for row in ranking.pods), snapshot.own_bytes(name))
    if used is not None:
        hard, soft = to_hard_eviction(setup, used, now, due), to_soft_eviction(setup, used, now, due)
    yield "node_pods", "", memory.pods
    yield "node_pods_without_usage", "", ranking.without_usage
    yield "node_memory_capacity_bytes", "", capacity
    for qos, amount in (memory.used or {}).items():
        yield "node_memory_used_bytes", labels(qos_class=qos), amount
    yield "node_own_memory_bytes", "", snapshot.own_bytes(name)
    yield "node_memory_worst_case_bytes", "", memory.worst_bytes
    yield "node_eviction_distance_bytes", labels(threshold="hard"), hard
    yield "node_eviction_distance_bytes", labels(threshold="soft"), soft
    yield "node_in_trouble", "", int(is_in_danger(due, hard, whole or used, capacity))
    lowest = lowest_priorities_after(ranking.pods)
    inversions = sum(map(is_inverted, ranking.pods, lowest))
    yield "node_inversions", "", inversions if used is not None else None


def _death_values(snapshot: Snapshot, setup: NodeSetup, ranking: Ranking) -> Iterator[Value]:
    """Yield nothing if nobody kills (Windows), or if the capacity or the usage of every pod is unknown."""
    state = ranked_state(snapshot, setup, ranking)
    if state is None or state.is_unmeasured:
        return
    yield "node_full_distance_bytes", "", state.use.free_bytes if state.capacity_bytes else None
    deaths = first_deaths(state, KILLERS)
    for death in deaths[:1]:
        spec = next((pod.pod.spec for pod in state.pods if pod.key == death.key), PodSpec())
        victim = labels(
            **_victim_labels(death),
            qos_class=death.qos or "",
            priority_class=spec.priority_class_name or "",
            own_limit="true" if death.is_own else "",
        )
        yield "node_next_death", victim, 1
        yield "node_next_death_distance_bytes", "", death.distance_bytes
        yield "node_next_death_priority", "", spec.priority or 0
    by_killer = {death.mechanism: death for death in reversed(deaths)}
    for death in by_killer.values():
        rival = {}
        if death.rival is not None:
            names = death.rival.namespace, death.rival.pod, death.rival.container
            rival = dict(zip(("rival_namespace", "rival_pod", "rival_container"), names, strict=True))
        yield "node_killer_distance_bytes", labels(**_victim_labels(death), **rival), death.distance_bytes


def _victim_labels(death: NextDeath) -> dict[str, str]:
    """Label the killer and its victim; an unknown victim has empty names."""
    namespace, pod = death.key
    return {"mechanism": death.mechanism, "namespace": namespace, "pod": pod, "container": death.container}


def _pod_values(row: RankedPod) -> Iterator[Value]:
    pod_labels, worst = labels(namespace=row.pod.namespace, pod=row.pod.name), row.worst
    if worst is not None:
        yield "pod_kill_rank", pod_labels, row.rank if worst.usage is not None else None
        yield "pod_oom_score", pod_labels, worst.oom_score
        yield "pod_oom_score_adj", pod_labels, worst.adj
        yield "pod_freed_bytes", pod_labels, worst.usage.kernel_bytes if worst.usage is not None else None
    yield "pod_limit_distance_bytes", pod_labels, to_own_limit(row)


class _Node(NamedTuple):
    """The samples of a node, and the objects from which they were computed."""

    samples: tuple[bytes, ...]
    made_from: tuple[object, ...]
    pods: Sequence[Pod]


class ClusterSamples:
    """The samples of every node, with metrics for the first `per_pod` pods of each (None: all)."""

    def __init__(self, per_pod: int | None) -> None:
        self._per_pod = per_pod
        self._nodes: dict[str, _Node] = {}
        self._kills = KillCounter()
        self._kill_samples = b""

    def update(self, snapshot: Snapshot, scope: Scope) -> int:
        """Compute the nodes that have changed, and return how many there were."""
        profiles = ProfileCache()
        computed, by_node, shard = 0, snapshot.by_node(), scope.shard
        names = [
            name
            for name in dict.fromkeys((*snapshot.nodes, *by_node))
            if name and (shard is None or shard.has(name))
        ]
        for name in names:
            pods = by_node.get(name, ())
            node_objects = snapshot.nodes.get(name), snapshot.kubelets.get(name)
            made_from = (*node_objects, snapshot.usage, snapshot.node_usage, snapshot.server_version, scope)
            node = self._nodes.get(name)
            is_same = node is not None and len(node.pods) == len(pods) and all(map(is_, node.pods, pods))
            if node is None or not is_same or not all(map(is_, node.made_from, made_from)):
                samples = node_samples(snapshot, name, scope, self._per_pod, profiles)
                computed += 1
                if not is_same:
                    self._kills.read(snapshot, name, node.pods if node is not None else (), scope)
                self._nodes[name] = _Node(samples, made_from, pods)
        for name in self._nodes.keys() - set(names):
            self._kills.forget(self._nodes.pop(name).pods)
        self._kills.has_begun = True
        self._kill_samples = "".join(
            sample(KILLS, labels(**dict(zip(_KILL_LABELS, key, strict=True))), number)
            for key, number in self._kills.published().items()
        ).encode()
        return computed

    def families(self) -> Iterator[tuple[Family, bytes]]:
        """Yield each family with all its samples."""
        nodes = list(self._nodes.values())
        for place, family in enumerate(FAMILIES):
            yield family, b"".join([node.samples[place] for node in nodes])
        yield KILLS, self._kill_samples


class KillCounter:
    """Counts deaths in pod statuses by node, namespace, pod, container and mechanism.

    Deaths before the first snapshot are not counted. The counters of a deleted pod are dropped.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], tuple[int, float]] = {}
        """Number of deaths, and the monotonic time in seconds of the first."""
        self.has_begun = False
        self._seen: dict[PodKey, set[tuple[str, str]]] = {}

    def published(self) -> dict[tuple[str, ...], int]:
        """Return the counters for a scrape."""
        before = time.monotonic() - ZERO_SECONDS
        return {key: number * (since <= before) for key, (number, since) in self._counts.items()}

    def read(self, snapshot: Snapshot, node: str, before: Sequence[Pod], scope: Scope) -> None:
        """Count new deaths on a node whose pods have changed."""
        pods = snapshot.by_node().get(node, ())
        same = {id(pod) for pod in before}
        ended = (
            pod for pod in pods if pod.status.reason or any(run.ends for run in pod.status.every_container)
        )
        changed = {id(pod) for pod in ended if id(pod) not in same}
        left = {pod.key for pod in pods}
        self.forget(pod for pod in before if pod.key not in left)
        if not changed:
            return
        alone = replace(snapshot, pods=pods)
        for kill in find_kills(
            alone, EventList(()), is_included=lambda pod: id(pod) in changed and scope.matches(pod)
        ):
            seen = self._seen.setdefault((kill.namespace, kill.pod), set())
            key = (node, kill.namespace, kill.pod, kill.container, str(kill.diagnosis.mechanism))
            is_new = (kill.container, kill.time) not in seen
            seen.add((kill.container, kill.time))
            number, since = self._counts.get(key, (0, time.monotonic()))
            self._counts[key] = number + int(is_new and self.has_begun), since

    def forget(self, pods: Iterable[Pod]) -> None:
        """Drop the counters of pods that are gone."""
        gone = {pod.key for pod in pods} & self._seen.keys()
        for key in gone:
            del self._seen[key]
        if gone:
            self._counts = {key: count for key, count in self._counts.items() if key[1:3] not in gone}


class Exporter:
    """Follows a source in a thread, and answers scrapes with the samples computed so far."""

    def __init__(
        self, source: Source, scope: Scope, per_pod: int | None, max_stale_seconds: float = math.inf
    ) -> None:
        self._source = source
        self._scope = scope
        self._max_stale_seconds = max_stale_seconds
        self.samples = ClusterSamples(per_pod)
        self._stream: UpdateStream | None = None
        self._ending = threading.Event()
        self.is_synced = False
        self.failure: QosError | None = None
        """The error that ended the thread."""
        self._own = _OwnMetrics(self.stale_seconds)
        self._own.pods_per_node.set(math.inf if per_pod is None else per_pod)

    def start(self) -> None:
        """Begin to follow. Raises QosError if the source cannot be followed."""
        self._stream = self._source.follow(self._scope)
        threading.Thread(target=self._run, args=(self._stream,), name="qos-exporter", daemon=True).start()

    def close(self) -> None:
        """Stop following."""
        self._ending.set()
        if self._stream is not None:
            self._stream.close()

    def stale_seconds(self) -> float:
        """Return the seconds since the API server was last heard from."""
        return self._stream.silent_seconds() if self._stream is not None else 0.0

    def not_ready(self) -> str:
        """Return why metrics are missing or stale, or "" if the exporter is ready."""
        error = self._stream.health().error if self._stream is not None else None
        stale_seconds = self.stale_seconds()
        if self.is_synced:
            is_old = error is not None and stale_seconds > self._max_stale_seconds
            return f"stale for {stale_seconds:.0f} s: {error}" if is_old else ""
        return f"not synced: {error}" if error is not None else "not synced yet"

    def exposition(self, accept: str) -> tuple[Iterator[bytes], str]:
        """Return the exposition in the format of an Accept header, in parts, and its content type."""
        encode, content_type = choose_encoder(accept)

        def parts() -> Iterator[bytes]:
            yield encode(self._own.registry).removesuffix(_END)
            for family, samples in self.samples.families() if self.is_synced else ():
                yield encode(family).removesuffix(_END)
                yield samples
            if "openmetrics" in content_type:
                yield _END

        return parts(), content_type

    def accept(self, update: Update) -> None:
        """Recompute the samples after an update."""
        snapshot = update.snapshot
        if snapshot is None or update.arrived is not None:
            return
        began = time.perf_counter()
        computed = self.samples.update(snapshot, update.scope)
        self._own.update_seconds.observe(time.perf_counter() - began)
        self._own.ranked_nodes.inc(computed)
        self._own.updated.set(time.time())
        self._own.pods.set(len(snapshot.pods))
        self._own.missing.clear()
        for missing in snapshot.missing:
            self._own.missing.labels(missing.what).set(1)
        if not self.is_synced:
            self.is_synced = True
            self._own.synced.set(1)
            # Keep the snapshot out of garbage collection: it has no cycles, and visiting it is slow.
            gc.freeze()

    def _run(self, stream: UpdateStream) -> None:
        try:
            while (update := stream.next()) is not None:
                began = time.thread_time()
                self.accept(update)
                if update.arrived is None:
                    worked = time.thread_time() - began
                    self._ending.wait(max(MIN_REST_SECONDS, REST_PER_WORK * worked))
        except QosError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001 - nothing else catches what a thread raises
            self.failure = QosError(f"unexpected {type(error).__name__}: {error}")


class _OwnMetrics:
    def __init__(self, stale_seconds: Callable[[], float]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        PlatformCollector(registry=own)
        Info("kubectl_qos_build", "Version of the exporter.", registry=own).info({"version": __version__})

        def gauge(name: str, help_: str, *labels: str) -> Gauge:
            return Gauge(f"kubectl_qos_exporter_{name}", help_, labels, registry=own)

        gauge("stale_seconds", "Time since the API server was last heard from.").set_function(stale_seconds)
        self.synced = gauge("synced", "1 once every watch has completed its first list.")
        self.updated = gauge("last_update_timestamp_seconds", "When node metrics were last computed.")
        self.pods = gauge("pods", "Pods in the snapshot.")
        self.pods_per_node = gauge("pods_per_node", "Pods of each node that have metrics, +Inf for all.")
        self.missing = gauge("missing", "1 for each kind of data that could not be read.", "what")
        name = "kubectl_qos_exporter_ranked_nodes"
        self.ranked_nodes = Counter(name, "Nodes whose metrics were computed.", registry=own)
        name, of = "kubectl_qos_exporter_update_duration_seconds", "Time to compute what has changed."
        self.update_seconds = Histogram(name, of, registry=own, buckets=_SECONDS)
