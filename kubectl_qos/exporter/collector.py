"""Keeps the samples of every node up to date, follows a source in a thread, and makes the exposition of them.

Only nodes that have changed are computed again. A scrape joins what is there, so it never waits for that. The
exporter's own metrics are those of prometheus_client. Not here: HTTP (server.py).
"""

import gc
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
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

from kubectl_qos.cluster.source import Source, Update, UpdateStream
from kubectl_qos.errors import QosError
from kubectl_qos.exporter.series import FAMILIES, KILLS, Family, ProfileCache, kill_samples, node_samples
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.version import __version__

MIN_REST_SECONDS: Final = 1.0
"""What changes within this time is computed at once."""
SHARE_OF_A_CORE: Final = 2
"""It rests this many times as long as it computed: at most a third of a core goes into that."""
ZERO_SECONDS: Final = 60.0
"""For so long a new counter is published as 0: increase() lacks what a series begins with."""
_END: Final = b"# EOF\n"
_SECONDS: Final = (0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30)


class _Node(NamedTuple):
    """The samples of a node, and the objects that they were made from."""

    samples: tuple[bytes, ...]
    made_from: tuple[object, ...]
    pods: Sequence[Pod]


class ClusterSamples:
    """The samples of every node; of pods those of the first `per_pod` of each, of all for None."""

    def __init__(self, per_pod: int | None) -> None:
        self._per_pod = per_pod
        self._nodes: dict[str, _Node] = {}
        self._kills = KillCounter()
        self._kill_samples = b""

    def update(self, snapshot: Snapshot, scope: Scope) -> int:
        """Compute what has changed; returns of how many nodes."""
        profiles: ProfileCache = {}
        computed, by_node, shard = 0, snapshot.by_node(), scope.shard
        names = [
            name
            for name in dict.fromkeys((*snapshot.nodes, *by_node))
            if name and (shard is None or shard.has(name))
        ]
        for name in names:
            pods = by_node.get(name, ())
            own = snapshot.nodes.get(name), snapshot.kubelets.get(name)
            made_from = (*own, snapshot.usage, snapshot.node_usage, snapshot.server_version, scope)
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
        self._kill_samples = kill_samples(self._kills.published())
        return computed

    def families(self) -> Iterator[tuple[Family, bytes]]:
        """Each family with all its samples."""
        nodes = list(self._nodes.values())
        for place, family in enumerate(FAMILIES):
            yield family, b"".join([node.samples[place] for node in nodes])
        yield KILLS, self._kill_samples


class KillCounter:
    """Counts deaths in the status of pods by node, namespace, pod, container and mechanism.

    Those of the first snapshot count as zero. The counters of a pod go with it.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], tuple[int, float]] = {}
        """How many, and since when they are counted."""
        self.has_begun = False
        self._seen: dict[PodKey, set[tuple[str, str]]] = {}

    def published(self) -> dict[tuple[str, ...], int]:
        """The counters as a scrape has them."""
        before = time.monotonic() - ZERO_SECONDS
        return {key: number * (since <= before) for key, (number, since) in self._counts.items()}

    def read(self, snapshot: Snapshot, node: str, before: Sequence[Pod], scope: Scope) -> None:
        """Count what is new on a node whose pods have changed."""
        pods = snapshot.by_node().get(node, ())
        same = {id(pod) for pod in before}
        ended = (
            pod for pod in pods if pod.status.reason or any(run.ends for run in pod.status.every_container)
        )
        changed = {id(pod) for pod in ended if id(pod) not in same}
        left = {(pod.namespace, pod.name) for pod in pods}
        self.forget(pod for pod in before if (pod.namespace, pod.name) not in left)
        if not changed:
            return
        alone = replace(snapshot, pods=pods)
        for kill in find_kills(
            alone, EventList(()), is_included=lambda pod: id(pod) in changed and scope.matches(pod)
        ):
            seen = self._seen.setdefault((kill.namespace, kill.pod), set())
            labels = (node, kill.namespace, kill.pod, kill.container, str(kill.diagnosis.mechanism))
            is_new = (kill.container, kill.time) not in seen
            seen.add((kill.container, kill.time))
            number, since = self._counts.get(labels, (0, time.monotonic()))
            self._counts[labels] = number + int(is_new and self.has_begun), since

    def forget(self, pods: Iterable[Pod]) -> None:
        """Drop the counters of pods that are gone."""
        gone = {(pod.namespace, pod.name) for pod in pods} & self._seen.keys()
        for key in gone:
            del self._seen[key]
        if gone:
            self._counts = {key: count for key, count in self._counts.items() if key[1:3] not in gone}


class Exporter:
    """Follows a source in a thread, and answers scrapes with what is known."""

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
        """Why nothing is followed any longer."""
        self._own = _OwnMetrics(self.stale_seconds)
        self._own.pods_per_node.set(math.inf if per_pod is None else per_pod)

    def start(self) -> None:
        """Begin to follow. Raises QosError where there is nothing to follow."""
        self._stream = self._source.follow(self._scope)
        threading.Thread(target=self._run, args=(self._stream,), name="qos-exporter", daemon=True).start()

    def close(self) -> None:
        """Stop following."""
        self._ending.set()
        if self._stream is not None:
            self._stream.close()

    def stale_seconds(self) -> float:
        """Return for how long the server has not been heard of."""
        return self._stream.silent_seconds() if self._stream is not None else 0.0

    def not_ready(self) -> str:
        """Why there are no metrics of the cluster, or only old ones; empty if there are."""
        error = self._stream.health().error if self._stream is not None else None
        stale_seconds = self.stale_seconds()
        if self.is_synced:
            is_old = error is not None and stale_seconds > self._max_stale_seconds
            return f"stale for {stale_seconds:.0f} s: {error}" if is_old else ""
        return f"not synced: {error}" if error is not None else "not synced yet"

    def exposition(self, accept: str) -> tuple[Iterator[bytes], str]:
        """Everything in the format that an Accept header asks for, in parts, and its content type."""
        encode, content_type = choose_encoder(accept)

        def parts() -> Iterator[bytes]:
            yield encode(self._own.registry).removesuffix(_END)
            for family, samples in self.samples.families() if self.is_synced else ():
                yield encode(_Described(family)).removesuffix(_END)
                yield samples
            if "openmetrics" in content_type:
                yield _END

        return parts(), content_type

    def take(self, update: Update) -> None:
        """Bring the samples up to date."""
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
            # A full collection visits everything that is held; what is held now is data without cycles.
            gc.freeze()

    def _run(self, stream: UpdateStream) -> None:
        try:
            while (update := stream.next()) is not None:
                began = time.thread_time()
                self.take(update)
                if update.arrived is None:
                    worked = time.thread_time() - began
                    self._ending.wait(max(MIN_REST_SECONDS, SHARE_OF_A_CORE * worked))
        except QosError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001 - nothing else catches what a thread raises
            self.failure = QosError(f"unexpected {type(error).__name__}: {error}")


class _OwnMetrics:
    """What the exporter says about itself."""

    def __init__(self, stale_seconds: Callable[[], float]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        PlatformCollector(registry=own)
        Info("kubectl_qos_build", "Version of the exporter.", registry=own).info({"version": __version__})

        def gauge(name: str, help_: str, *labels: str) -> Gauge:
            return Gauge(f"kubectl_qos_exporter_{name}", help_, labels, registry=own)

        gauge("stale_seconds", "Time since the API server was last heard of.").set_function(stale_seconds)
        self.synced = gauge("synced", "1 once every watch has listed what there is.")
        self.updated = gauge("last_update_timestamp_seconds", "When metrics of nodes were last computed.")
        self.pods = gauge("pods", "Pods that are watched.")
        self.pods_per_node = gauge("pods_per_node", "How many pods of each node have metrics, +Inf for all.")
        self.missing = gauge("missing", "1 for what could not be read.", "what")
        name = "kubectl_qos_exporter_ranked_nodes"
        self.ranked_nodes = Counter(name, "Nodes whose metrics were computed.", registry=own)
        name, of = "kubectl_qos_exporter_update_duration_seconds", "Time to compute what has changed."
        self.update_seconds = Histogram(name, of, registry=own, buckets=_SECONDS)


class _Described(Collector):
    """A family without samples, for the lines that describe it."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        """The family."""
        family, unit = self._family, "bytes" if self._family.name.endswith("_bytes") else ""
        return [Metric(family.full_name, family.help, family.type, unit)]
