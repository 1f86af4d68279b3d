"""What a source that is followed says: one moment after the other, each a whole and consistent snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Generic, Protocol

from kubectl_qos.cluster.api_errors import no_capacity, no_neighbours
from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.kube_api import KubeletConfigurations
from kubectl_qos.cluster.reflector import POLL_SECONDS, ListWatch, Reflector, T
from kubectl_qos.cluster.store import LIVE, NODES, PODS, Health, Store
from kubectl_qos.cluster.usage import Usage
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kinds import path_segment
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Missing, NodeOverrides, Scope, Snapshot


@dataclass(frozen=True, slots=True)
class Update:
    """What is known at one moment; no snapshot where nothing is known yet.

    `scope` is what may be asked for, and `notice` a sentence where that is less than was asked for. `taken`
    is when the snapshot was true.
    """

    snapshot: Snapshot | None
    scope: Scope
    health: Health
    taken: datetime
    notice: str = ""


class UpdateStream(Protocol):
    """A source that is followed."""

    def next(self) -> Update | None:
        """Wait for something new to say; None once the feed is closed."""

    def refresh(self) -> None:
        """Ask at once what is asked only now and then, and do not wait before the next try."""

    def close(self) -> None:
        """End it; whoever waits is let go."""


class Poller:
    """A feed for a source that can only be asked: at once, whenever it is refreshed, and every so often."""

    def __init__(
        self,
        ask: Callable[[Scope], Snapshot],
        scope: Scope,
        now: Callable[[], datetime],
        *,
        own_namespace: str | None = None,
        every_seconds: float | None = None,
    ) -> None:
        self._ask = ask
        self._scope = scope
        self._now = now
        self._own_namespace = own_namespace
        self._every_seconds = every_seconds
        self._wanted = threading.Event()
        self._wanted.set()
        self._closed = False
        self._last: Update | None = None
        self._notice = ""

    def next(self) -> Update | None:
        """The next answer, or the last one with what went wrong since."""
        self._wanted.wait(self._every_seconds)
        self._wanted.clear()
        if self._closed:
            return None
        taken = self._now()
        try:
            snapshot = self._narrowing(self._ask)
        except QosError as error:
            last = self._last or Update(None, self._scope, LIVE, taken)
            retry_at = time.monotonic() + (self._every_seconds or 0)
            self._last = replace(last, health=Health(error, last.health.since or last.taken, retry_at))
        else:
            self._last = Update(snapshot, self._scope, LIVE, taken, self._notice)
        return self._last

    def refresh(self) -> None:
        """Ask now."""
        self._wanted.set()

    def close(self) -> None:
        """Let go of who waits."""
        self._closed = True
        self._wanted.set()

    def _narrowing(self, ask: Callable[[Scope], Snapshot]) -> Snapshot:
        try:
            return ask(self._scope)
        except ApiError as error:
            narrower = narrowed(error, self._scope, self._own_namespace)
            if narrower is None:
                raise
            snapshot = ask(narrower)
            self._scope, self._notice = narrower, narrowed_notice(error, narrower)
            return snapshot


def narrowed(error: ApiError, scope: Scope, own_namespace: str | None) -> Scope | None:
    """What is asked for instead where the whole cluster is forbidden: the user's own namespace."""
    if error.status != 403 or scope.namespace is not None or not own_namespace:
        return None
    return replace(scope, namespace=own_namespace)


def narrowed_notice(error: ApiError, narrower: Scope) -> str:
    """The sentence about that."""
    return f"only namespace {narrower.namespace} is shown: {error}"


USAGE_SECONDS: Final = 15.0
"""So often metrics-server measures by default; the kubelets do so more often."""
FIRST_USAGE_SECONDS: Final = 3.0
"""So long the first moment waits for usage: without it the order would be another one a moment later."""


class Informer:
    """The feed of a live cluster.

    `read_usage` reads usage for a scope, of nodes that must be known before with `asks_nodes`; and
    `configurations` the kubelets' settings, if they are wanted. What cannot be watched is asked for every
    `refresh_seconds`, 15 if that is None.
    """

    def __init__(
        self,
        answers: RestClient,
        scope: Scope,
        *,
        now: Callable[[], datetime],
        read_usage: Callable[[Scope, Store], Usage],
        read_version: Callable[[], str],
        configurations: KubeletConfigurations | None,
        asks_nodes: bool,
        own_namespace: str | None,
        known: NodeOverrides,
        ids: bool,
        refresh_seconds: float | None = None,
    ) -> None:
        self.refresh_seconds = refresh_seconds
        self._answers = answers
        self._scope = scope
        self._now = now
        self._read_usage = read_usage
        self._read_version = read_version
        self._configurations = configurations
        self._asks_nodes = asks_nodes
        self._own_namespace = own_namespace
        self._store = Store(known, now)
        self._sharing = Interner(ids=ids)
        self._watches: list[Reflector[Pod] | Reflector[NodeObject]] = []
        self._notice = ""
        self._seen = 0
        self._begun = False
        self._closed = False
        self._measured = threading.Event()
        self._measure = threading.Event()
        self._watch_pods(None)
        self._watch_nodes()
        self._in_thread(self._keep_measuring)

    def next(self) -> Update | None:
        """Wait for the next change; whatever came together is one moment."""
        store = self._store
        while not self._closed:
            self._seen = store.wait(self._seen)
            if self._closed:
                break
            refused = store.refusal()
            if refused is not None:
                return self._nothing(Health(refused, self._now()))
            if store.is_complete():
                if not self._begun:
                    self._measured.wait(FIRST_USAGE_SECONDS)
                    self._begun = True
                health = store.health()
                taken = health.since or self._now()
                return Update(store.snapshot(), self._scope, health, taken, self._notice)
            health = store.health()
            if health.error is not None:
                return self._nothing(health)
        return None

    def refresh(self) -> None:
        """Measure usage anew, and try at once what waits for another try."""
        self._measure.set()
        for watch in self._watches:
            watch.retry_now()
        self._store.poke()

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        self._measure.set()
        self._measured.set()
        for watch in self._watches:
            watch.close()
        self._store.poke()

    def _nothing(self, health: Health) -> Update:
        return Update(None, self._scope, health, self._now())

    def _watch_pods(self, namespace: str | None) -> None:
        """Watch all pods (of the scope's node), or those of one namespace."""
        place = "pods" if namespace is None else f"namespaces/{path_segment(namespace)}/pods"
        fields = f"spec.nodeName={self._scope.node}" if self._scope.node else ""
        question = ListWatch(f"/api/v1/{place}", {"fieldSelector": fields}, self.refresh_seconds)
        self._start(Reflector(self._answers, question, Pod, self._sharing.pod, _PodHandler(self, namespace)))

    def _watch_nodes(self) -> None:
        fields = f"metadata.name={self._scope.node}" if self._scope.node else ""
        question = ListWatch("/api/v1/nodes", {"fieldSelector": fields}, self.refresh_seconds)
        self._start(Reflector(self._answers, question, NodeObject, self._sharing.node, _NodeHandler(self)))

    def _start(self, watch: Reflector[T]) -> None:
        self._watches.append(watch)  # type: ignore[arg-type]
        self._in_thread(watch.run)

    def pods_refused(self, error: ApiError, namespace: str | None) -> None:
        """Take fewer pods, or give up."""
        if namespace is None and self._scope.namespace is not None:
            self._store.note(PODS, no_neighbours(error))
            self._watch_pods(self._scope.namespace)
            return
        narrower = narrowed(error, self._scope, self._own_namespace) if namespace is None else None
        if narrower is None:
            self._store.refuse(PODS, error, None)
            return
        self._scope, self._notice = narrower, narrowed_notice(error, narrower)
        self._store.note(PODS, no_neighbours(error))
        self._watch_pods(narrower.namespace)

    def nodes_refused(self, error: ApiError) -> None:
        """Go on without the nodes, with the server's release in place of the kubelets'."""
        self._read_server_version()
        self._store.refuse(NODES, error, no_capacity(error))

    def nodes_failed(self, error: QosError, retry_seconds: float) -> None:
        """Until there are nodes, go on as if they were refused; the pods are there all the same."""
        if not self._store.is_listed(NODES):
            if not self._store.does_without(NODES):
                self._read_server_version()
            self._store.do_without(NODES, no_capacity(error))
        self._store.out_of_step(NODES, error, retry_seconds)

    def _read_server_version(self) -> None:
        try:
            self._store.set_server_version(self._read_version())
        except QosError:
            self._store.set_server_version("")

    @property
    def store(self) -> Store:
        """What the watches fill."""
        return self._store

    def _keep_measuring(self) -> None:
        """Usage, and the configurations of kubelets that are new, now and then."""
        version = 0
        while self._asks_nodes and not self._store.is_complete() and not self._closed:
            version = self._store.wait(version)
        while not self._closed:
            self._measure.clear()
            began = time.monotonic()
            usage = self._usage()
            self._store.set_usage(usage.by_pod, usage.missing)
            self._measured.set()
            if self._configurations is not None:
                self._configurations.read(self._store.nodes())
                self._store.set_kubelets(self._configurations.found)
            every = self.refresh_seconds or USAGE_SECONDS
            self._measure.wait(max(every, 3 * (time.monotonic() - began)))

    def _usage(self) -> Usage:
        try:
            return self._read_usage(self._scope, self._store)
        except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
            return Usage({}, Missing("memory usage", f"unexpected {type(error).__name__}: {error}"))

    def _in_thread(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="qos-follow", daemon=True).start()


class _EventHandler(Generic[T]):
    """What the watches of pods and nodes say alike."""

    def __init__(self, following: Informer, name: str) -> None:
        self._following = following
        self._store = following.store
        self._name = name

    def in_step(self) -> None:
        self._store.in_step(self._name)

    def out_of_step(self, error: QosError, retry_seconds: float) -> None:
        self._store.out_of_step(self._name, error, retry_seconds)

    def is_polled(self, error: ApiError | None) -> None:
        if error is None:
            self._store.note(f"watch {self._name}", None)
            return
        seconds = self._following.refresh_seconds or POLL_SECONDS
        remedy = f"grant watch on {self._name}; until then they are listed every {seconds:.0f} s"
        self._store.note(f"watch {self._name}", Missing(f"changes of {self._name}", str(error), remedy))


class _PodHandler(_EventHandler[Pod]):
    def __init__(self, following: Informer, namespace: str | None) -> None:
        super().__init__(following, PODS)
        self._namespace = namespace
        self.replace = self._store.replace_pods
        self.put = self._store.put_pod
        self.drop = self._store.drop_pod

    def refused(self, error: ApiError) -> None:
        self._following.pods_refused(error, self._namespace)


class _NodeHandler(_EventHandler[NodeObject]):
    def __init__(self, following: Informer) -> None:
        super().__init__(following, NODES)
        self.replace = self._replace
        self.put = self._store.put_node
        self.drop = self._store.drop_node

    def _replace(self, nodes: list[NodeObject]) -> None:
        self._store.note(NODES, None)
        self._store.replace_nodes(nodes)

    def out_of_step(self, error: QosError, retry_seconds: float) -> None:
        self._following.nodes_failed(error, retry_seconds)

    def refused(self, error: ApiError) -> None:
        self._following.nodes_refused(error)
