"""The update stream of a live cluster: reflectors, each in a thread, and a loop for usage fill a store.

The store is the one mutable state of a followed cluster; its consistent snapshots share what has not changed.
`next` runs in its caller's thread, and makes one update of all changes since the last.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from msgspec import structs

from kubectl_qos.cluster.kube_api import KubeletConfigs, UsageChoice, UsageSource, list_path
from kubectl_qos.cluster.reflector import EventHandler, Reflector
from kubectl_qos.cluster.source import LIVE, Health, Update
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.selectors import field_term
from kubectl_qos.k8s.snapshot import (
    NO_USAGE,
    OTHER_PODS,
    Arrived,
    Missing,
    NodeOverrides,
    PodsByNode,
    Scope,
    Snapshot,
    Usage,
)
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

    def is_version(self, version: int) -> bool:
        """Return whether nothing has changed since this version."""
        return self._version <= version

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
            return structs.replace(stale[-1], since=since) if stale else LIVE

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
        """Return the seconds since the server was heard from, or since it is stale."""
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
            by_pod, before_this = {**shared, **usage}, self._usage.by_pod
            # A source that measures more rarely than it is read brings nothing new: nothing is ranked again.
            self._usage = new._replace(by_pod=before_this if by_pod == before_this else by_pod)
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


T = TypeVar("T", Pod, NodeObject)

POLL_SECONDS: Final = 15.0
"""How often usage is read, and lists that may not be watched; metrics-server measures as often."""
FIRST_USAGE_SECONDS: Final = 3.0
"""How long the first update waits for usage: without it the order would soon change."""
GROWTH: Final = 8
"""While pods arrive, a new snapshot has this many times the pods of the last: ranking slows decoding down."""
PROBE_SECONDS: Final = 6.0
"""After all watches were silent this long, a request checks whether the server still answers."""


class Informer:
    """The updates of a scope; if all pods are forbidden, of the default namespace."""

    def __init__(
        self,
        scope: Scope,
        *,
        usage: UsageSource,
        configs: KubeletConfigs | None,
        default_namespace: str | None,
        overrides: NodeOverrides,
        refresh_seconds: float | None = None,
    ) -> None:
        self._poll_seconds = refresh_seconds or POLL_SECONDS
        self._usage, self._api = usage, usage.api
        self._store = Store(overrides, usage.api.client.now)
        self._scope = scope
        self._configs = configs
        self._default_namespace = default_namespace
        self._interner = Interner(ids=usage.api.ids)
        self._reflectors: list[Reflector[Pod] | Reflector[NodeObject]] = []
        self._notice = ""
        self._seen = 0
        self._part: tuple[int, Snapshot] = (0, Snapshot())
        """The number of pods in the last snapshot before the list was complete, and that snapshot."""
        self._has_begun = False
        self._closed = False
        self._has_usage = threading.Event()
        self._read_now = threading.Event()
        self._ending = threading.Event()
        self._watch_pods(None)
        handler = EventHandler(
            replace=self._replace_nodes,
            put=self._store.put_node,
            drop=self._store.drop_node,
            heard=self._store.heard,
            synced=partial(self._store.synced, NODES),
            out_of_sync=self._nodes_failed,
            listing=partial(self._store.listing, NODES),
            polled=partial(self._polled, NODES),
            refused=self._nodes_refused,
        )
        self._reflect(list_path("nodes"), "metadata.name", NodeObject, self._interner.node, handler)
        _start(self._keep_reading_usage)
        _start(self._keep_probing)

    def next(self) -> Update | None:
        """Wait for a change; changes that came together are one update. The first ones may lack pods."""
        store = self._store
        while not self._closed:
            self._seen = store.wait(self._seen)
            if self._closed:
                break
            health = store.health()
            if store.is_refused():
                return self._without_snapshot(health)
            if store.is_complete():
                if not self._has_begun:
                    self._has_usage.wait(FIRST_USAGE_SECONDS)
                    self._has_begun, self._part = True, (0, Snapshot())
                    health = store.health()
                taken = health.since or self._api.client.now()
                return Update(store.snapshot(), self._scope, health, taken, self._notice)
            if health.error is not None:
                return self._without_snapshot(health)
            arrived = store.arrived()
            if arrived is not None and not store.is_waited_for(NODES):
                if arrived.items >= GROWTH * self._part[0]:
                    self._part = arrived.items, store.snapshot()
                now = self._api.client.now()
                return Update(self._part[1], self._scope, health, now, self._notice, arrived)
        return None

    def health(self) -> Health:
        """Return whether the server is heard from now, whenever the last update was."""
        return self._store.health()

    def silent_seconds(self) -> float:
        """Return the seconds since the server was last heard from."""
        return self._store.silent_seconds()

    def is_current(self) -> bool:
        """Return whether nothing has changed since the last update."""
        return self._store.is_version(self._seen)

    def refresh(self) -> None:
        """Read usage now, and end every wait for a retry."""
        self._read_now.set()
        for reflector in self._reflectors:
            reflector.retry_now()
        self._store.notify()

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        self._ending.set()
        self._read_now.set()
        self._has_usage.set()
        for reflector in self._reflectors:
            reflector.close()
        self._store.notify()

    def _without_snapshot(self, health: Health) -> Update:
        return Update(None, self._scope, health, self._api.client.now())

    def _watch_pods(self, namespace: str | None) -> None:
        handler = EventHandler(
            replace=self._store.replace_pods,
            put=self._store.put_pod,
            drop=self._store.drop_pod,
            heard=self._store.heard,
            synced=partial(self._store.synced, PODS),
            out_of_sync=partial(self._store.out_of_sync, PODS),
            listing=partial(self._store.listing, PODS),
            polled=partial(self._polled, PODS),
            refused=partial(self._pods_refused, namespace),
            arrive=self._store.arrive,
        )
        self._reflect(list_path("pods", namespace), "spec.nodeName", Pod, self._interner.pod, handler)

    def _reflect(
        self, path: str, field: str, item_type: type[T], keep: Callable[[T], T], handler: EventHandler[T]
    ) -> None:
        selectors = {"fieldSelector": field_term(field, self._scope.node)} if self._scope.node else {}
        client, seconds, shard = self._api.client, self._poll_seconds, self._scope.shard

        def keep_mine(item: T) -> T | None:
            node_name: str = getattr(item, "node_name", item.metadata.name)
            return keep(item) if shard is None or shard.has(node_name) else None

        reflector = Reflector(client, path, selectors, item_type, keep_mine, handler, seconds)
        self._reflectors.append(reflector)
        _start(reflector.run)

    def _pods_refused(self, namespace: str | None, error: ApiError) -> None:
        fewer = self._scope.namespace
        if namespace is None and fewer is None and self._default_namespace:
            fewer = self._default_namespace
            self._scope = self._scope._replace(namespace=fewer)
            self._notice = f"only namespace {fewer} is shown: {error}"
        if namespace is not None or fewer is None:
            self._store.refuse(PODS, error, None)
            return
        self._store.note(PODS, no_neighbours(error))
        self._watch_pods(fewer)

    def _replace_nodes(self, nodes: list[NodeObject]) -> None:
        self._store.note(NODES, None)
        self._store.replace_nodes(nodes)

    def _nodes_refused(self, error: ApiError) -> None:
        """Go on without nodes; the server's release replaces the kubelets'."""
        self._store.set_server_version(self._api.server_version())
        self._store.refuse(NODES, error, no_capacity(error))

    def _nodes_failed(self, error: QosError, retry_seconds: float) -> None:
        """Until there are nodes, go on as if they were forbidden: pods are shown meanwhile."""
        if self._store.is_waited_for(NODES):
            self._store.set_server_version(self._api.server_version())
        self._store.make_optional(NODES, no_capacity(error))
        self._store.out_of_sync(NODES, error, retry_seconds)

    def _polled(self, watch: str, error: ApiError | None) -> None:
        remedy = f"grant watch on {watch}; until then they are listed every {self._poll_seconds:.0f} s"
        missing = Missing(f"the watch of {watch}", str(error), remedy) if error is not None else None
        self._store.note(f"watch {watch}", missing)

    def _keep_reading_usage(self) -> None:
        version = 0
        needs_list = self._usage.choice is UsageChoice.SUMMARY or self._scope.shard is not None
        while needs_list and not self._store.is_complete() and not self._closed:
            version = self._store.wait(version)
        while not self._closed:
            self._read_now.clear()
            began = time.monotonic()
            usage = self._read_usage()
            self._store.set_usage(usage)
            self._has_usage.set()
            if self._configs is not None:
                self._configs.read(self._store.nodes())
                self._store.set_kubelets(self._configs.by_node)
            self._read_now.wait(max(self._poll_seconds, 3 * (time.monotonic() - began)))

    def _keep_probing(self) -> None:
        """Tell a quiet cluster from a server that hangs, by a request; retry when it is ready again."""
        while not self._ending.wait(PROBE_SECONDS / 4):
            if self._store.health().error is not None:
                is_ready = self._api.client.is_ready(PROBE_SECONDS / 2)
                for reflector in self._reflectors:
                    reflector.note_server(ready=is_ready)
                continue
            if self._store.silent_seconds() < PROBE_SECONDS:
                continue
            try:
                self._api.client.probe(PROBE_SECONDS / 2)
                self._store.heard()
            except QosError as error:
                for reflector in self._reflectors:
                    reflector.interrupt(error)

    def _read_usage(self) -> Usage:
        try:
            nodes = self._store.nodes()
            of = self._store.pod_keys() if self._scope.shard is not None else None
            return self._usage.read(self._scope.namespace, nodes, of)
        except Exception as error:  # noqa: BLE001 - nothing else catches what a thread raises
            return Usage({}, Missing("memory usage", f"unexpected {type(error).__name__}: {error}"))


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="qos-informer", daemon=True).start()


def no_neighbours(error: QosError) -> Missing:
    """Return what is missing if the pods of other namespaces may not be listed."""
    remedy = "grant list on pods in all namespaces; until then ranks count only the pods shown"
    return Missing(OTHER_PODS, str(error), remedy)


def no_capacity(error: QosError) -> Missing:
    """Return what is missing if nodes cannot be read."""
    remedy = "grant get and list on nodes; or give --node-memory 16Gi"
    return Missing("the nodes' memory capacity", str(error), remedy)
