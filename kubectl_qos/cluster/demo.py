"""The embedded demo cluster: four nodes and some sixty pods of every kind, with usage.

Made from recordings of a real node by tests/recordings/make_demo.py; always the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.cluster.files import FileSource
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, NodeOverrides, Scope, Snapshot

if TYPE_CHECKING:
    from kubectl_qos.cluster.informer import UpdateStream
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.related import RelatedObjects

DEMO_FILE: Final = Path(__file__).with_name("demo.json")
DEMO_TIME: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""The moment at which the demo is frozen; ages are counted from it."""


class DemoSource:
    """The demo as a source."""

    title = "demo"
    is_live = False
    default_namespace = None

    def __init__(self, known: NodeOverrides = NO_OVERRIDES) -> None:
        self._known = known

    @cached_property
    def _files(self) -> FileSource:
        return FileSource([str(DEMO_FILE)], known=self._known)

    def now(self) -> datetime:
        """The demo's frozen moment."""
        return DEMO_TIME

    def snapshot(self, scope: Scope) -> Snapshot:
        """The whole demo cluster."""
        return self._files.snapshot(scope)

    def follow(self, scope: Scope) -> UpdateStream:
        """All of it, once, and again whenever it is asked for."""
        from kubectl_qos.cluster.informer import Poller

        return Poller(self.snapshot, scope, self.now)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The object as the demo has it."""
        return self._files.raw(pod)

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """What the demo says of a pod and its node."""
        return self._files.events(pod)

    def event_list(self, namespace: str | None) -> EventList:
        """What the demo says of all pods and nodes."""
        return self._files.event_list(namespace)

    def related(self, pod: Pod) -> RelatedObjects:
        """The object as the demo has it, with the owners that the demo has."""
        return self._files.related(pod)

    def writer(self) -> Writer:
        """Nobody: there is no cluster. Raises QosError."""
        raise QosError("nothing is sent: the demo is no cluster", hint="name a context of your kubeconfig")
