"""The interface of every source of pods and nodes (a cluster, files, the demo), and what only some offer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from kubectl_qos.errors import ApiError, InputError, QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.snapshot import Arrived, Missing, Scope, Snapshot

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.edits import PatchRequest
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.qos.kills.report import KernelLog


class Health(msgspec.Struct, frozen=True):
    """Live without an error, else stale since a time; `retry_at` is by `time.monotonic`, 0 for no retry."""

    error: QosError | None = None
    since: datetime | None = None
    retry_at: float = 0.0


LIVE: Final = Health()


class Update(msgspec.Struct, frozen=True):
    """A snapshot at the time `taken`, if there is one; `notice` says why `scope` is less than was requested.

    `arrived` is None if the snapshot has all pods, else how many it has so far.
    """

    snapshot: Snapshot | None
    scope: Scope
    health: Health
    taken: datetime
    notice: str = ""
    arrived: Arrived | None = None


class PastTime(NamedTuple):
    """A time of a context, and how many seconds ago it is."""

    context: str
    at: datetime
    ago_seconds: int


class ReportScope(msgspec.Struct, frozen=True):
    """The subject of a report: the name of a pod or workload or "", flags, and seconds or None for all."""

    name: str
    namespace: str | None
    node: str | None
    selector: str
    since_seconds: int | None
    kind: str = "Pod"


class UpdateStream(Protocol):
    """The updates of a source that is followed."""

    def next(self) -> Update | None:
        """Wait for the next update; None once the stream is closed."""

    def health(self) -> Health:
        """Return whether the source is heard from now, which the last update may not know."""
        return LIVE

    def silent_seconds(self) -> float:
        """Return the seconds since the source was heard from."""
        return 0.0

    def is_current(self) -> bool:
        """Return whether nothing has changed since the last update."""
        return True

    def refresh(self) -> None:
        """Read now what is read at intervals, and retry now what failed."""

    def close(self) -> None:
        """End the stream, and a `next` that waits."""


class StaticStream(UpdateStream):
    """The stream of a source that does not change: the same snapshot at first, and at every refresh."""

    def __init__(self, read: Callable[[Scope], Snapshot], scope: Scope, now: Callable[[], datetime]) -> None:
        self._read = read
        self._scope = scope
        self._now = now
        self._requested = threading.Event()
        self._requested.set()
        self._closed = False

    def next(self) -> Update | None:
        """Return the snapshot, once it is requested."""
        self._requested.wait()
        self._requested.clear()
        return None if self._closed else Update(self._read(self._scope), self._scope, LIVE, self._now())

    def refresh(self) -> None:
        """Request the snapshot once more."""
        self._requested.set()

    def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._requested.set()


class Source(Protocol):
    """A source of pods, nodes and usage."""

    report: ReportScope | None = None
    """The report that a bundle was written with; None for any other source."""

    @property
    def title(self) -> str:
        """Return its name for people: a context, a file, `demo`."""

    @property
    def is_live(self) -> bool:
        """Return whether it changes."""

    @property
    def past(self) -> PastTime | None:
        """Return which time it shows; None for the present."""
        return None

    @property
    def default_namespace(self) -> str | None:
        """Return the namespace of commands that name none; None for all of them."""

    @property
    def origin(self) -> str:
        """Return the title; of a bundle, that of the source that it was made of."""
        return self.title

    @property
    def is_from_files(self) -> bool:
        """Return whether it is files, also by way of a bundle: then all that is there is known."""
        return not self.is_live

    @property
    def is_recording(self) -> bool:
        """Return whether it was made at an unknown time, so that `now` is only the time of the command."""
        return False

    def now(self) -> datetime:
        """Return the time that ages are counted from."""

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return the pods in scope and what they are ranked against. Raises QosError if nothing is known."""

    def follow(self, scope: Scope) -> UpdateStream:
        """Follow the scope from now on; what does not change yields the same whenever it is refreshed."""
        return StaticStream(self.snapshot, scope, self.now)

    def members(self, kind: str, namespace: str, name: str) -> Snapshot:
        """Return a pod, or the pods of a workload, with their usage, perhaps with others. Raises QosError."""
        return self.snapshot(Scope(namespace=namespace))

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Return a pod, or the pod that a workload's template makes. Raises QosError if there is none."""

    def has(self, resource: str, name: str) -> bool:
        """Return whether one of `nodes` or `namespaces` has this name; True if that is unknown."""
        return True

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """Return the events about a pod and its node's memory, the newest last. Raises QosError."""
        return ()

    def event_list(self, namespace: str | None) -> EventList:
        """Return all events of a namespace, or of all, and of nodes; the result names what is missing."""
        return EventList(of_nodes=False)

    def kernel_logs(self) -> Sequence[KernelLog]:
        """Return the kernel logs that are known without files."""
        return ()

    def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
        """Add the VerticalPodAutoscalers of a namespace, or of all, that can be read."""
        return snapshot

    def partial_pods(self) -> Sequence[Pod]:
        """Return the pods of which only the status is known: for deaths, not for predictions."""
        return ()

    def disruption_budgets(self) -> Sequence[DisruptionBudget]:
        """Return the PodDisruptionBudgets, as far as they are known."""
        return ()

    def raw(self, pod: Pod) -> dict[str, Any]:
        """Return the whole object behind a pod, for a template the workload.

        Raises QosError if it is gone, or if the source has no objects.
        """
        raise self._without_objects()

    def raw_node(self, name: str) -> dict[str, Any]:
        """Return the whole node. Raises QosError if there is none, or if it may not be read."""
        raise self._without_objects()

    def related(self, pod: Pod) -> RelatedObjects:
        """Return an object, its owners and limits, and what is missing. Raises QosError if it is gone."""
        raise self._without_objects()

    def related_reader(self) -> Callable[[Pod], RelatedObjects]:
        """Return `related` for many pods: what a source must read for each of them, it reads once."""
        return self.related

    def _without_objects(self) -> QosError:
        return QosError(f"the store has no objects, owners or limits: {self.title} is rebuilt from metrics")

    def log(self, pod: Pod, container: str, *, is_previous: bool) -> str:
        """Return the last lines of a container, of its previous run or of this. Raises QosError."""
        raise QosError(f"{self.title} has no logs of containers")

    def writer(self) -> Writer:
        """Return the writer of a cluster. Raises QosError if changes are impossible or forbidden."""
        if self.past is not None or self.report is not None:
            raise QosError(f"nothing is sent: {self.title} is the past")
        raise QosError(
            f"nothing is sent: {self.title} is no cluster",
            hint="name a context of your kubeconfig; kubectl qos set -f FILE --write changes a file itself",
        )


def changed_pods(source: Source, request: PatchRequest) -> Snapshot:
    """Return the pods that a change is about, and their usage. Raises QosError."""
    kind, namespace, name = request.kind, request.namespace, request.name
    snapshot = source.members(kind, namespace, name)
    pods = (pod for pod in snapshot.pods if pod.namespace == namespace and belongs_to(pod, kind, name))
    return replace(snapshot, pods=tuple(pods))


class PastSource(Source):
    """A cluster at a past time: `read` reads its snapshot. It has no events, and nothing is written.

    `present` is the present by the clock of the store.
    """

    is_live = False
    title = ""
    default_namespace: str | None = None

    def __init__(
        self,
        context: str,
        default_namespace: str,
        at: datetime,
        read: Callable[[], Snapshot],
        present: Callable[[], datetime],
    ) -> None:
        self._context, self._at, self._read, self._present = context, at, read, present
        self.title = f"{context or 'the store'} at {at:%Y-%m-%d %H:%M:%S %Z}"
        self.default_namespace = default_namespace

    @property
    def past(self) -> PastTime:
        """Return that time."""
        ago = int((self._present() - self._at).total_seconds())
        return PastTime(self._context or "the store", self._at, max(ago, 0))

    def now(self) -> datetime:
        """Return that time: ages are counted until then."""
        return self._at

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return all pods of that time, whatever the scope, with the labels that it selects by."""
        return self._known

    @cached_property
    def _known(self) -> Snapshot:
        return self._read()

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Return a pod of that time; the store has no templates. Raises ApiError (NotFound), InputError."""
        if kind != "Pod":
            raise InputError(
                f"the store has no template of {kind.lower()}/{name}", hint="name one of its pods"
            )
        for pod in self._known.pods:
            if pod.name == name and namespace in {None, pod.namespace}:
                return pod
        raise ApiError.not_found("pods", name, hint=f"not in {self.title}")

    def has(self, resource: str, name: str) -> bool:
        """Return whether there was a node, or pods in a namespace."""
        if resource == "nodes":
            return name in self._known.nodes
        return any(pod.namespace == name for pod in self._known.pods)

    def event_list(self, namespace: str | None) -> EventList:
        """Return no events, and that they are missing."""
        return EventList(of_nodes=False, missing=Missing("the list of events", "a store of metrics has none"))


class NoCluster(Source):
    """In place of a cluster that could not be read: nothing is known, and why."""

    is_live = False
    is_recording = True
    title = "kernel logs alone"
    default_namespace: str | None = None

    def __init__(self, error: QosError, at: datetime) -> None:
        self._missing = Missing("the list of pods", str(error), error.hint)
        self._at = at

    def now(self) -> datetime:
        """Return the time of the command."""
        return self._at

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return no pods, and why."""
        return Snapshot(missing=(self._missing,))

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Raise ApiError (NotFound)."""
        raise ApiError.not_found(f"{kind.lower()}s", name)
