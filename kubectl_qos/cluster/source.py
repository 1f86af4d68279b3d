"""The protocol that every source of cluster facts obeys: a live cluster, files, the demo."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot

if TYPE_CHECKING:
    from kubectl_qos.cluster.informer import UpdateStream
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.related import RelatedObjects


class Source(Protocol):
    """Where pods, nodes and usage come from."""

    @property
    def title(self) -> str:
        """What a person calls it: a context, a file, `demo`."""

    @property
    def is_live(self) -> bool:
        """Whether asking again may give another answer."""

    @property
    def default_namespace(self) -> str | None:
        """The namespace that commands mean when none is given; None for all of them."""

    def now(self) -> datetime:
        """The moment that ages are counted from."""

    def snapshot(self, scope: Scope) -> Snapshot:
        """What is known now of the pods in scope and of what they are ranked against.

        Raises QosError where nothing at all can be said; what is only partly known is in
        `Snapshot.missing`.
        """

    def follow(self, scope: Scope) -> UpdateStream:
        """What is known from now on, as it changes; a source that is read once says it once."""

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The whole object behind a pod (the workload, for a template) as plain JSON.

        For manifests that keep what we do not read. Raises QosError if it is gone.
        """

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """What happened to a pod, and to the memory of its node, the newest last.

        Raises QosError where that cannot be had.
        """

    def related(self, pod: Pod) -> RelatedObjects:
        """The object behind a pod, its owners, and what limits its namespace; what is missing says so itself.

        Raises QosError where the object itself cannot be had.
        """

    def writer(self) -> Writer:
        """Who changes this cluster. Raises QosError where nothing may or can be changed."""


@runtime_checkable
class EventSource(Protocol):
    """A source that has the events of many pods, and not only those about one."""

    def event_list(self, namespace: str | None) -> EventList:
        """All events of a namespace, or of all, with those of nodes; it says itself what is missing."""
