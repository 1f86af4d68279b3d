"""Events of the core API as far as we read them, and which of them are about a pod or its node's memory.

Not here: where they come from (cluster/events.py), what is said of them (present/events.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from kubectl_qos.k8s.objects import ObjectMeta, Pod
from kubectl_qos.k8s.snapshot import Missing

NODE_MEMORY_REASONS: Final = frozenset(
    {
        "SystemOOM",
        "OOMKilling",
        "EvictionThresholdMet",
        "NodeHasInsufficientMemory",
        "NodeHasSufficientMemory",
        "NodeNotReady",
    }
)
"""What a kubelet (pkg/kubelet/events, oom/oom_watcher_linux.go), the node lifecycle controller and
node-problem-detector (config/kernel-monitor.json) say of a node that has to do with memory."""

NODE_EVENTS_NAMESPACE: Final = "default"
"""Where events about objects without a namespace are kept (client-go/tools/record makeEvent)."""

_CONTAINER = re.compile(r"spec\.(?:init|ephemeral)?[cC]ontainers\{(?P<name>[^}]*)\}")


class _EventObject(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class InvolvedObject(_EventObject, frozen=True):
    """What an event is about; `field_path` is a part of it such as `spec.containers{app}`."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventSource(_EventObject, frozen=True):
    """Who reported an event, in its older form."""

    component: str = ""


class EventSeries(_EventObject, frozen=True):
    """How often an event has happened, where it is kept as a series."""

    count: int = 0
    last_observed_time: str | None = None


class Event(_EventObject, frozen=True):
    """A core/v1 Event; times are RFC 3339 texts as the server sends them, each of which may be absent."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries | None = None
    source: EventSource | None = None
    reporting_component: str = ""

    @property
    def times(self) -> int:
        """How often it has happened, at least once."""
        counted = self.series.count if self.series is not None else self.count
        return max(counted or 1, 1)

    @property
    def first(self) -> str:
        """When it happened first; empty if it does not say."""
        return self.event_time or self.first_timestamp or self.last_timestamp or ""

    @property
    def last(self) -> str:
        """When it happened last; empty if it does not say."""
        observed = self.series.last_observed_time if self.series is not None else None
        return observed or self.last_timestamp or self.event_time or self.first_timestamp or ""

    @property
    def component(self) -> str:
        """Who reported it: `kubelet`, `default-scheduler`."""
        named = self.source.component if self.source is not None else ""
        return named or self.reporting_component

    @property
    def container(self) -> str:
        """The container that it is about, empty for all of the pod."""
        found = _CONTAINER.fullmatch(self.involved_object.field_path)
        return found["name"] if found is not None else ""

    @property
    def is_of_node(self) -> bool:
        """Whether it is about a node rather than a pod."""
        return self.involved_object.kind == "Node"


@dataclass(frozen=True, slots=True)
class EventList:
    """The events of one namespace or of all, and whether those of nodes are among them.

    `missing` says which could not be had.
    """

    events: tuple[Event, ...] = ()
    of_nodes: bool = True
    missing: Missing | None = None


def reported_uid(pod: Pod) -> str:
    """The uid that events name a pod by, empty where it has none.

    A kubelet names a static pod by its own id of it, not by that of the mirror pod
    (k8s.io/kubectl/pkg/describe/describe.go PodDescriber).
    """
    return pod.annotations.config_mirror or pod.metadata.uid


def is_about(event: Event, pod: Pod) -> bool:
    """Whether an event is about a pod: by its uid or, where that is not known, by its name."""
    involved = event.involved_object
    uid = reported_uid(pod)
    if involved.uid and uid:
        return involved.uid == uid
    return (involved.kind, involved.namespace, involved.name) == (pod.kind, pod.namespace, pod.name)


def is_of_node_memory(event: Event, node_name: str) -> bool:
    """Whether an event is about the memory of this node."""
    involved = event.involved_object
    if not node_name or not event.is_of_node or involved.name != node_name:
        return False
    # Thresholds are also of disks and process ids.
    about_memory = event.reason != "EvictionThresholdMet" or "memory" in event.message
    return about_memory and event.reason in NODE_MEMORY_REASONS


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """The newest last, those without a time first.

    Servers write times in UTC and with different precision: without the Z they compare as texts.
    """
    return tuple(sorted(events, key=lambda event: event.last.rstrip("Z")))
