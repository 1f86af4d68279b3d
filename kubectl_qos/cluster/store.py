"""The one mutable state of a followed cluster; consistent snapshots share what has not changed."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from kubectl_qos.cluster.source import LIVE, Health
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import NO_USAGE, Arrived, Missing, NodeOverrides, PodsByNode, Snapshot, Usage
from kubectl_qos.k8s.usage import PodKey

PODS: Final = "pods"
NODES: Final = "nodes"
_WAIT_SECONDS: Final = 0.5


@dataclass(slots=True)
class _WatchState:
    listed: bool = False
    optional: bool = False
    health: Health = LIVE


class Store:
    """Pods by node, nodes, and everything else that a snapshot has."""

    def __init__(self, overrides: NodeOverrides, now: Callable[[], datetime]) -> None:
        self._overrides = overrides
        self._now = now
        self._changed = threading.Condition()  # its lock may be taken again by its holder
        self._version = 0
        self._pods: dict[str, dict[PodKey, Pod]] = {}
        self._tuples: dict[str, tuple[Pod, ...]] = {}
        """The pods of each node as snapshots have them; absent after a change."""
        self._nodes: dict[str, NodeObject] = {}
        self._usage = NO_USAGE
        self._kubelets: Mapping[str, Kubelet] = {}
        self._missing: dict[str, Missing] = {}
        self._server_version = ""
        self._arrived: Arrived | None = None
        self._watches = {PODS: _WatchState(), NODES: _WatchState()}
        self._refusal: Health | None = None
        self._heard = time.monotonic()

    def wait(self, version: int) -> int:
        """Return the store's version, once it is newer than the given one."""
        with self._changed:
            # In pieces: a signal that comes just before a wait begins does not end it.
            while self._version <= version:
                self._changed.wait(_WAIT_SECONDS)
            return self._version

    def snapshot(self) -> Snapshot:
        """Return everything at this moment."""
        with self._changed:
            for node in [node for node in self._pods if node not in self._tuples]:
                if self._pods[node]:
                    self._tuples[node] = tuple(self._pods[node].values())
                else:
                    del self._pods[node]
            snapshot = Snapshot(
                pods=PodsByNode(dict(self._tuples)),
                nodes=dict(self._nodes),
                kubelets=self._kubelets,
                missing=tuple(self._missing.values()),
                overrides=self._overrides,
                server_version=self._server_version,
            )
            return snapshot.with_usage(self._usage).with_missing_releases()

    def health(self) -> Health:
        """Return the health: stale since the oldest stale watch, with the latest error and its retry."""
        with self._changed:
            if self._refusal is not None:
                return self._refusal
            stale = [watch.health for watch in self._watches.values() if watch.health.error is not None]
            since = min((health.since for health in stale if health.since is not None), default=None)
            return replace(stale[-1], since=since) if stale else LIVE

    def is_complete(self) -> bool:
        """Return whether every watch that is not optional has listed."""
        with self._changed:
            return all(watch.listed or watch.optional for watch in self._watches.values())

    def is_waited_for(self, watch: str) -> bool:
        """Return whether there is no snapshot until this watch has listed."""
        with self._changed:
            return not (self._watches[watch].listed or self._watches[watch].optional)

    def make_optional(self, watch: str, missing: Missing) -> None:
        """Make snapshots without a watch until it has listed."""
        with self._changed:
            if not self._watches[watch].listed:
                self._watches[watch].optional = True
                self.note(watch, missing)

    def is_refused(self) -> bool:
        """Return whether no pod may be listed at all."""
        with self._changed:
            return self._refusal is not None

    def heard(self) -> None:
        """Note that the server has answered a request or a watch."""
        self._heard = time.monotonic()

    def silent_seconds(self) -> float:
        """Return the seconds since the server was heard of, or since it is stale."""
        since = self.health().since
        if since is None:
            return time.monotonic() - self._heard
        return max((self._now() - since).total_seconds(), 0.0)

    def notify(self) -> None:
        """Wake the threads that wait."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def set_usage(self, new: Usage) -> None:
        """Set the usage of pods and nodes; a pod that is missing in it keeps its last sample."""
        with self._changed:
            usage, missing = new.by_pod, new.missing
            if missing is not None:
                earlier = self._usage.by_pod
                keys = (pods.keys() & earlier.keys() for pods in self._pods.values())
                before = {key: earlier[key] for key in chain.from_iterable(keys)}
                if before and not usage:
                    missing = Missing("newer memory usage", missing.why)
                usage = {**before, **usage}
            # With the keys of the pods: those of samples are other texts, 130 bytes for each pod.
            shared = {key: usage[key] for pods in self._pods.values() for key in pods if key in usage}
            self._usage = new._replace(by_pod={**shared, **usage})
            self.note("usage", missing)

    def set_kubelets(self, kubelets: Mapping[str, Kubelet]) -> None:
        """Set the kubelets' configurations."""
        with self._changed:
            if kubelets != self._kubelets:
                self._kubelets = kubelets
                self.notify()

    def set_server_version(self, version: str) -> None:
        """Set the release that replaces the kubelets' if no node is known."""
        with self._changed:
            self._server_version = version

    def pod_keys(self) -> set[PodKey]:
        """Return the keys of the pods that are known."""
        with self._changed:
            return set(chain.from_iterable(self._pods.values()))

    def nodes(self) -> Mapping[str, NodeObject]:
        """Return the nodes that are known."""
        with self._changed:
            return dict(self._nodes)

    def note(self, subject: str, missing: Missing | None) -> None:
        """Note that something is missing, or no longer."""
        with self._changed:
            if missing is None:
                self._missing.pop(subject, None)
            else:
                self._missing[subject] = missing
            self.notify()

    def arrive(self, pods: Iterable[Pod], arrived: Arrived) -> None:
        """Keep pods of the first list before all of them are there."""
        with self._changed:
            for pod in pods:
                self._pods.setdefault(pod.node_name, {})[pod.metadata.namespace, pod.metadata.name] = pod
                self._tuples.pop(pod.node_name, None)
            self._arrived = arrived
            self._watches[PODS].health = LIVE
            self.notify()

    def arrived(self) -> Arrived | None:
        """Return how many pods of the first list are there, None before the first of them."""
        with self._changed:
            return self._arrived

    def replace_pods(self, pods: Iterable[Pod]) -> None:
        """Replace all pods; nodes whose pods are equal keep their tuples."""
        by_node: dict[str, dict[PodKey, Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.node_name, {})[pod.metadata.namespace, pod.metadata.name] = pod
        with self._changed:
            for node, node_pods in by_node.items():
                if node_pods == self._pods.get(node):
                    by_node[node] = self._pods[node]
                else:
                    self._tuples.pop(node, None)
            for node in self._pods.keys() - by_node.keys():
                self._tuples.pop(node, None)
            self._pods = by_node
            self.notify()

    def put_pod(self, pod: Pod) -> None:
        """Store a new or changed pod, or one that was bound to a node; an equal pod changes nothing."""
        with self._changed:
            node_pods = self._pods.setdefault(pod.node_name, {})
            key = pod.key
            if node_pods.get(key) == pod:
                return
            if key not in node_pods:
                self._remove(key, "")
            node_pods[key] = pod
            self._tuples.pop(pod.node_name, None)
            self.notify()

    def drop_pod(self, pod: Pod) -> None:
        """Remove a deleted pod."""
        with self._changed:
            if self._remove(pod.key, pod.node_name):
                self.notify()

    def replace_nodes(self, nodes: Iterable[NodeObject]) -> None:
        """Replace all nodes."""
        with self._changed:
            before = self._nodes
            by_name = {node.name: node for node in nodes}
            self._nodes = {
                name: before[name] if before.get(name) == node else node for name, node in by_name.items()
            }
            self.notify()

    def put_node(self, node: NodeObject) -> None:
        """Store a new or changed node."""
        with self._changed:
            if self._nodes.get(node.name) != node:
                self._nodes[node.name] = node
                self.notify()

    def drop_node(self, node: NodeObject) -> None:
        """Remove a deleted node."""
        with self._changed:
            if self._nodes.pop(node.name, None) is not None:
                self.notify()

    def synced(self, watch: str) -> None:
        """Note that a watch has brought everything that the server has."""
        with self._changed:
            state = self._watches[watch]
            if not state.listed or state.health is not LIVE:
                state.listed, state.health = True, LIVE
                self.notify()

    def out_of_sync(self, watch: str, error: QosError, retry_seconds: float | None) -> None:
        """Note that a watch has lost the server and tries again (None: now); its objects stay."""
        with self._changed:
            # The last of them is the one that failed last.
            state = self._watches[watch] = self._watches.pop(watch)
            monotonic = time.monotonic()
            since = state.health.since or self._now() - timedelta(seconds=monotonic - self._heard)
            retry_at = monotonic + retry_seconds if retry_seconds is not None else 0.0
            state.health = Health(error, since, retry_at)
            self.notify()

    def listing(self, watch: str) -> None:
        """Note that a watch is listed again; if it was stale, that is the reason why it still is."""
        with self._changed:
            if self._watches[watch].health.error is not None:
                self.out_of_sync(watch, QosError(f"listing {watch} again"), None)

    def refuse(self, watch: str, error: ApiError, missing: Missing | None) -> None:
        """Note that a watch is forbidden; with `missing`, snapshots are made without it."""
        with self._changed:
            self._watches[watch] = _WatchState(listed=True)
            if missing is None:
                self._refusal = Health(error, self._now())
            self.note(watch, missing)

    def _remove(self, key: PodKey, node: str) -> bool:
        for name in chain((node,), self._pods):
            if self._pods.get(name, {}).pop(key, None) is not None:
                self._tuples.pop(name, None)
                return True
        return False
