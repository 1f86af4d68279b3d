"""The demo as a live source: it begins with a fixed snapshot, which a script changes as time passes.

Reads and writes run the same code as for a cluster, over a connection to an API in memory. Changes last as
long as the process. The script is imported only after the first snapshot has been shown.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from kubectl_qos.cluster.files import DEMO_FILE, DEMO_TIME, FIRST_REVISION, DemoSource
from kubectl_qos.cluster.source import LIVE, Source, StaticStream, Update, UpdateStream
from kubectl_qos.k8s.events import Event, EventList, last_shortages, system_ooms
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import NodeMetrics, PodMetrics, usage_by_node, usage_by_pod

if TYPE_CHECKING:
    from kubectl_qos.cluster.live import LiveSource
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.demo.api import Reply
    from kubectl_qos.demo.script import Script
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.qos.kills.report import KernelLog

TICK_SECONDS: Final = 1.0


def running_clock() -> Callable[[], datetime]:
    """Return a clock that starts at DEMO_TIME."""
    began = time.monotonic()
    return lambda: DEMO_TIME + timedelta(seconds=time.monotonic() - began)


class LivingDemo(Source):
    """The demo, driven by the clock `now`, which starts at DEMO_TIME.

    Without `may_write` there is no writer, without `has_usage` there are no measurements. A stream checks for
    changes every `tick_seconds`, or only on refresh if it is None.
    """

    title = "demo"
    is_live = True
    default_namespace = None

    def __init__(
        self,
        overrides: NodeOverrides = NO_OVERRIDES,
        *,
        may_write: bool = False,
        has_usage: bool = True,
        now: Callable[[], datetime] | None = None,
        tick_seconds: float | None = TICK_SECONDS,
    ) -> None:
        self._overrides = overrides
        self._may_write = may_write
        self._has_usage = has_usage
        self._lock = threading.Lock()
        self._script: Script | None = None
        self._first = self._last = DemoSource(overrides, has_usage=has_usage).snapshot(Scope())
        self._version: object = None
        self._metrics: object = None
        self._nodes: object = None
        self._events: object = None
        self._decoded = {pod.key: (FIRST_REVISION, pod) for pod in self._first.pods}
        self._now = now or running_clock()
        self.tick_seconds = tick_seconds

    def now(self) -> datetime:
        """Return the demo's time."""
        return self._now()

    def first(self) -> Snapshot:
        """Return the frozen first snapshot."""
        return self._first

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return the current snapshot; unchanged objects are identical to those of the last one."""
        script = self._advanced()
        with self._lock, script.world.api.lock:
            if script.version != self._version:
                self._version, self._last = script.version, self._decode(script)
            return self._last

    def _decode(self, script: Script) -> Snapshot:
        api = script.world.api
        before, self._decoded = self._decoded, {}
        usage, node_usage = self._last.usage, self._last.node_usage
        for raw in api.pods:
            key = raw["metadata"]["namespace"], raw["metadata"]["name"]
            revision = raw["metadata"]["resourceVersion"]
            decoded = before.get(key)
            if decoded is None or decoded[0] != revision:
                decoded = revision, convert(raw, Pod)
            self._decoded[key] = decoded
        if api.metrics is not self._metrics and self._has_usage:
            self._metrics = api.metrics
            usage = usage_by_pod(convert(raw, PodMetrics) for raw in api.metrics or ())
            node_usage = usage_by_node(convert(raw, NodeMetrics) for raw in api.node_metrics or ())
        nodes = self._last.nodes
        if api.nodes is not self._nodes:
            self._nodes = api.nodes
            nodes = {node.name: node for node in (convert(raw, NodeObject) for raw in api.nodes)}
        shortages, ooms = self._last.shortages, self._last.system_ooms
        if api.events is not self._events:
            self._events = api.events
            events = [convert(raw, Event) for raw in api.events]
            shortages, ooms = last_shortages(events), system_ooms(events)
        pods = tuple(pod for _, pod in self._decoded.values())
        return replace(
            self._last,
            pods=pods,
            nodes=nodes,
            usage=usage,
            node_usage=node_usage,
            shortages=shortages,
            system_ooms=ooms,
        )

    def follow(self, scope: Scope) -> UpdateStream:
        """Return a stream of the first snapshot and the changes after it."""
        return _DemoStream(self, scope)

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Return a pod or a workload's template; without a namespace, look in all. Raises ApiError."""
        api = self._advanced().world.api
        objects = (*api.pods, *api.others.values())
        for raw in objects:
            if namespace is None and (raw["kind"], raw["metadata"]["name"]) == (kind, name):
                namespace = raw["metadata"]["namespace"]
        return self._cluster().find(kind, namespace, name)

    def has(self, resource: str, name: str) -> bool:
        """Return whether a node or namespace exists."""
        return self._cluster().has(resource, name)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """Return the object."""
        return self._cluster().raw(pod)

    def raw_node(self, name: str) -> dict[str, Any]:
        """Return the node."""
        return self._cluster().raw_node(name)

    def log(self, pod: Pod, container: str, *, is_previous: bool) -> str:
        """Return the container's log. Raises QosError if there was no such run."""
        raw = self.raw(pod)
        from kubectl_qos.demo.script import Container
        from kubectl_qos.demo.world import container_log

        killed_at = self._advanced().killed_at if is_previous else {}
        limit = killed_at.get(Container(pod.namespace, pod.name, container))
        return container_log(raw, container, self.now(), is_previous=is_previous, killed_at=limit)

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """Return the recorded events of the pod and the new ones."""
        return self._cluster().events(pod)

    def event_list(self, namespace: str | None) -> EventList:
        """Return events of a namespace, or of all namespaces and of nodes."""
        return self._cluster().event_list(namespace)

    def kernel_logs(self) -> Sequence[KernelLog]:
        """Return the kernel log of each node."""
        from kubectl_qos.host.kernel_log import read_log

        logs = self._advanced().logs.items()
        return [
            structs.replace(read_log(lines), node=node, title=f"the log of {node}") for node, lines in logs
        ]

    def related(self, pod: Pod) -> RelatedObjects:
        """Return the object with its owners and the limits of its namespace."""
        return self._cluster().related(pod)

    def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
        """Return the snapshot with autoscalers."""
        return self._cluster().with_autoscalers(snapshot, namespace)

    def writer(self) -> Writer:
        """Return a writer for the life of this process. Raises QosError in read-only mode."""
        return self._cluster().writer()

    def _cluster(self) -> LiveSource:
        with self._lock:  # importing the same modules in two threads could show them half initialised
            from kubectl_qos.cluster.kube_api import UsageChoice
            from kubectl_qos.cluster.live import LiveSource
            from kubectl_qos.demo.api import MemoryConnection

        def reply(*request: Any) -> Reply:
            return self._advanced().world.api.reply(*request)

        connection = MemoryConnection(self.title, reply, self.now)
        return LiveSource(
            connection,
            may_write=self._may_write,
            usage=UsageChoice.METRICS if self._has_usage else UsageChoice.NONE,
            configz=False,
            overrides=self._overrides,
        )

    def _advanced(self) -> Script:
        with self._lock:
            from kubectl_qos.demo.script import Script

            if self._script is None:
                self._script = Script(json.loads(DEMO_FILE.read_bytes())["items"], DEMO_TIME)
                api = self._script.world.api
                self._metrics, self._nodes, self._events = api.metrics, api.nodes, api.events
            self._script.advance(self.now())
            return self._script


class _DemoStream(StaticStream):
    """The first snapshot, then an update after each change."""

    def __init__(self, demo: LivingDemo, scope: Scope) -> None:
        super().__init__(demo.snapshot, scope, demo.now)
        self._requested.clear()
        self._demo = demo
        self._last: Snapshot | None = None

    def next(self) -> Update | None:
        """Wait for a change, or for a refresh."""
        before = self._last
        if before is None:
            self._last = self._demo.first()
            return Update(self._last, self._scope, LIVE, DEMO_TIME)
        while self._last is before:
            is_requested = self._requested.wait(self._demo.tick_seconds)
            self._requested.clear()
            if self._closed:
                return None
            self._last = self._read(self._scope)
            if is_requested:
                break
        return Update(self._last, self._scope, LIVE, self._now())
