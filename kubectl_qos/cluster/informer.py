"""The update stream of a live cluster: reflectors, each in a thread, and a loop for usage fill a store.

`next` runs in its caller's thread, and makes one update of all changes since the last.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from kubectl_qos.cluster.kube_api import KubeApi, KubeletConfigs, list_path
from kubectl_qos.cluster.reflector import EventHandler, Reflector
from kubectl_qos.cluster.source import Health, Update
from kubectl_qos.cluster.store import NODES, PODS, Store
from kubectl_qos.cluster.usage import UsageChoice, UsageReader, read_usage, with_shortages
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.selectors import field_term
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, NodeOverrides, Scope, Snapshot, Usage

T = TypeVar("T", Pod, NodeObject)

POLL_SECONDS: Final = 15.0
"""How often usage is read, and lists that may not be watched; metrics-server measures as often."""
FIRST_USAGE_SECONDS: Final = 3.0
"""How long the first update waits for usage: without it the order would soon change."""
GROWTH: Final = 8
"""While pods arrive, a new snapshot has this many times the pods of the last: ranking slows decoding down."""
PROBE_SECONDS: Final = 6.0
"""After all watches were silent this long, the server is asked for a sign of life, for half as long."""


class Informer:
    """The updates of a scope; if all pods are forbidden, of the default namespace."""

    def __init__(  # noqa: PLR0913 - what it reads, and how
        self,
        api: KubeApi,
        scope: Scope,
        *,
        usage: UsageChoice,
        reader: UsageReader | None = None,
        configs: KubeletConfigs | None,
        default_namespace: str | None,
        overrides: NodeOverrides,
        refresh_seconds: float | None = None,
    ) -> None:
        self._poll_seconds = refresh_seconds or POLL_SECONDS
        self._store = Store(overrides, api.client.now)
        self._api = api
        self._scope = scope
        self._usage, self._reader = usage, reader
        self._configs = configs
        self._default_namespace = default_namespace
        self._interner = Interner(ids=api.ids)
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
        self._watch_nodes()
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
        """Return whether the server is heard of now, whenever the last update was."""
        return self._store.health()

    def silent_seconds(self) -> float:
        """Return the seconds since the server was last heard of."""
        return self._store.silent_seconds()

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

    def _watch_nodes(self) -> None:
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
            self._scope = replace(self._scope, namespace=fewer)
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
        needs_list = self._usage is UsageChoice.SUMMARY or self._scope.shard is not None
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
            usage = read_usage(self._api, self._usage, self._scope.namespace, nodes, self._reader, of)
            return usage if self._configs is None else with_shortages(self._api, usage)
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
