"""Events of the core API, and which of them are about a pod or its node's memory.

cluster/kube_api.py reads them, present/pod_history.py shows them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubectl_qos.k8s.objects import ApiStruct, ObjectMeta, Pod
from kubectl_qos.k8s.snapshot import Missing

OOM_KILLING: Final = frozenset({"OOMKilling", "PodOOMKilling"})
"""Reasons of node-problem-detector; vendors have another one for pods."""
NODE_MEMORY_REASONS: Final = OOM_KILLING | frozenset(
    {"SystemOOM", "EvictionThresholdMet", "NodeNotReady"}
    | {"NodeHasInsufficientMemory", "NodeHasSufficientMemory"}
)
"""Reasons about memory, by a kubelet (pkg/kubelet/events, oom/oom_watcher_linux.go), the node lifecycle
controller and node-problem-detector (config/kernel-monitor.json).
"""

COMBINED: Final = "(combined from similar events): "
"""The prefix of a message with which a client sends similar events as one (client-go events_cache.go)."""
NODE_EVENTS_NAMESPACE: Final = "default"
"""The namespace of events about objects without one (client-go/tools/record makeEvent)."""

_CONTAINER = re.compile(r"spec\.(?:init|ephemeral)?[cC]ontainers\{(?P<name>[^}]*)\}")


class _InvolvedObject(ApiStruct, frozen=True):
    """The object of an event; `field_path` is a part of it such as `spec.containers{app}`."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class _EventSource(ApiStruct, frozen=True):
    component: str = ""
    host: str = ""


class EventSeries(ApiStruct, frozen=True):
    """How often an event that is a series has happened."""

    count: int = 0
    last_observed_time: str | None = None


class Event(ApiStruct, frozen=True):
    """A core/v1 Event; times are RFC 3339 texts, each of which may be absent."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: _InvolvedObject = _InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries | None = None
    source: _EventSource | None = None
    reporting_component: str = ""

    @property
    def own_message(self) -> str:
        """Return the message, without the prefix of a client that sends similar events as one."""
        return self.message.removeprefix(COMBINED)

    @property
    def times(self) -> int:
        """Return how often it has happened, at least once."""
        return max((self.series.count if self.series is not None else self.count) or 1, 1)

    @property
    def first(self) -> str:
        """Return when it happened first, empty if unknown."""
        return self.event_time or self.first_timestamp or self.last_timestamp or ""

    @property
    def last(self) -> str:
        """Return when it happened last, empty if unknown."""
        observed = self.series.last_observed_time if self.series is not None else None
        return observed or self.last_timestamp or self.event_time or self.first_timestamp or ""

    @property
    def component(self) -> str:
        """Return the reporter: `kubelet`, `default-scheduler`."""
        return (self.source.component if self.source is not None else "") or self.reporting_component

    @property
    def container(self) -> str:
        """Return the container that it is about, empty for the whole pod."""
        match = _CONTAINER.fullmatch(self.involved_object.field_path)
        return match["name"] if match is not None else ""

    @property
    def is_pod_oom(self) -> bool:
        """Return whether a controller says that the kernel killed in a pod: it is no event of a kubelet."""
        return self.involved_object.kind == "Pod" and "OOM" in self.reason

    @property
    def is_of_node(self) -> bool:
        """Return whether it is about a node rather than a pod."""
        return self.involved_object.kind == "Node"


class EventList(msgspec.Struct, frozen=True):
    """Events of one namespace or all; `of_nodes` is True if nodes' are included."""

    events: tuple[Event, ...] = ()
    of_nodes: bool = True
    missing: Missing | None = None


def reported_uid(pod: Pod) -> str:
    """Return the uid of a pod in events, empty if unknown.

    For a static pod it is the kubelet's own, not the mirror pod's
    (k8s.io/kubectl/pkg/describe/describe.go PodDescriber).
    """
    return pod.annotations.config_mirror or pod.metadata.uid


def is_about(event: Event, pod: Pod) -> bool:
    """Return whether an event is about a pod: by uid, or by name if a uid is unknown."""
    involved = event.involved_object
    uid = reported_uid(pod)
    if involved.uid and uid:
        return involved.uid == uid
    return (involved.kind, involved.namespace, involved.name) == (pod.kind, pod.namespace, pod.name)


def is_of_node_memory(event: Event, node_name: str) -> bool:
    """Return whether an event is about the memory of this node."""
    involved = event.involved_object
    if not node_name or not event.is_of_node or involved.name != node_name:
        return False
    # Disks and process ids have thresholds too.
    about_memory = event.reason != "EvictionThresholdMet" or "memory" in event.message
    return about_memory and event.reason in NODE_MEMORY_REASONS


def is_of_memory(event: Event) -> bool:
    """Return whether an event is about memory, a resize or a rollout."""
    if event.reason in NOT_ONLY_MEMORY and "memory" not in event.message.lower():
        return False
    return event.reason in NODE_MEMORY_REASONS | _OTHER_REASONS


def last_shortages(events: Iterable[Event]) -> dict[str, str]:
    """Return when memory was last short on each node: its kubelet evicted, or the kernel killed on it.

    Source: pkg/kubelet/eviction/eviction_manager.go.
    """
    shortages: dict[str, str] = {}
    for event in without_repeats(events):
        text = _SHORTAGES.get(event.reason)
        if text is None or text not in event.message:
            continue
        host = event.source.host if event.source is not None else ""
        if event.last:
            shortages[event.involved_object.name if event.is_of_node else host] = event.last
    return shortages


def system_ooms(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Return when the kernel killed on each node because the whole node was out of memory."""
    times: dict[str, tuple[str, ...]] = {}
    for event in without_repeats(events):
        if event.reason == "SystemOOM" and event.last:
            node = event.involved_object.name
            times[node] = (*times.get(node, ()), event.last)
    return times


def without_repeats(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, the newest last, without those that a restarted kubelet repeats.

    When it starts it reads the kernel's log since boot, and reports each kill of a full node once more.
    Source: pkg/kubelet/oom/oom_watcher_linux.go.
    """
    reported: set[tuple[str, str]] = set()
    for event in in_order(events):
        node = event.involved_object.name
        if event.reason == "Rebooted":
            reported = {report for report in reported if report[0] != node}
        elif event.reason == "SystemOOM":
            if (node, event.own_message) in reported:
                continue
            reported.add((node, event.own_message))
        yield event


_SHORTAGES: Final = {
    "EvictionThresholdMet": "reclaim memory",
    "Evicted": "low on resource: memory",
    "SystemOOM": "",
}
"""Reasons of events about shortages, with the part of the message that names memory."""
NOT_ONLY_MEMORY: Final = frozenset({"Evicted", "EvictionThresholdMet", "FailedScheduling"})
"""Reasons that may also be about disk, CPU or process ids: the message says which."""
_OTHER_REASONS: Final = frozenset(
    {
        *(*OOM_KILLING, "Evicted", "Preempted", "Preempting", "FailedScheduling", "OutOfmemory"),
        *("ResizeDeferred", "ResizeInfeasible", "ResizeError", "ResizeStarted", "ResizeCompleted"),
        "ScalingReplicaSet",
    }
)


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Sort events, the newest last, those without a time first.

    Times are in UTC with different precision: without the Z they compare as texts.
    """
    return tuple(sorted(events, key=lambda event: event.last.rstrip("Z")))
