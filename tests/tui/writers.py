"""A cluster that takes changes as a test says: what it answers, and what it heard."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import structs

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.cluster.writer import Writer
from kubectl_qos.edit.apply_state import ApplyResult, DryRunResult, UnknownOutcome
from kubectl_qos.edit.edits import Edit, PatchRequest, Side, parse_quantity
from kubectl_qos.edit.history import Entry, EntryState, HistoryStore
from kubectl_qos.edit.related import Owner, RelatedObjects
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod
from tests.entries import entry_of

T = TypeVar("T")
CONTEXT = "scripted"
SERVER = "10.0.0.1:6443"
WAITING = Progress(Stage.WAITING, settled=False)
RESIZING = Progress(Stage.IN_PROGRESS, settled=False, message="the kubelet is at it")
DONE = Progress(Stage.DONE, settled=True)


class ScriptedWriter(Writer):
    """Gives the answers of its lists, the last of each for ever; `hold_*` makes them wait until it is set.

    `heard` are the requests by what they were: `dry run`, `write` and `look`.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, PatchRequest]] = []
        self.dry_runs: list[QosError | Callable[[PatchRequest], DryRunResult]] = [accepted]
        self.writes: list[QosError | None] = [None]
        self.looks: list[QosError | Progress] = [DONE]
        self.named = CONTEXT
        self.hold_dry_run, self.hold_write, self.hold_look = (_open() for _ in range(3))
        self._numbers = itertools.count(1)

    @property
    def context(self) -> str:
        return self.named

    @property
    def server(self) -> str:
        return SERVER

    def heard_of(self, kind: str) -> list[PatchRequest]:
        """The requests of one kind."""
        return [request for heard, request in self.heard if heard == kind]

    def dry_run(self, request: PatchRequest) -> DryRunResult:
        self.heard.append(("dry run", request))
        answer = _next(self.dry_runs)
        assert self.hold_dry_run.wait(60)
        if isinstance(answer, QosError):
            raise answer
        return answer(request)

    def apply(self, dry_run_result: DryRunResult, history: HistoryStore, *, undoes: str = "") -> ApplyResult:
        request = dry_run_result.request
        self.heard.append(("write", request))
        entry = recorded(request, f"9{next(self._numbers):03}", context=self.named, undoes=undoes)
        history.put(replace(entry, state=EntryState.SENT))
        answer = _next(self.writes)
        assert self.hold_write.wait(60)
        if isinstance(answer, QosError):
            state = EntryState.UNKNOWN if isinstance(answer, UnknownOutcome) else EntryState.REFUSED
            history.put(replace(entry, state=state, message=str(answer)))
            raise answer
        history.put(entry)
        return ApplyResult(entry, dry_run_result.raw, request)

    def progress(self, written: ApplyResult, history: HistoryStore) -> Progress:
        del history
        self.heard.append(("look", written.request))
        answer = _next(self.looks)
        assert self.hold_look.wait(60)
        if isinstance(answer, QosError):
            raise answer
        return answer


def accepted(request: PatchRequest) -> DryRunResult:
    """The server takes it as it is."""
    return DryRunResult(structs.replace(request, resource_version="42"), request.edits, {}, ())


def recorded(request: PatchRequest, number: str, **values: Any) -> Entry:
    """What the change history has of a write that was done."""
    return entry_of(request, **({"id": number, "context": CONTEXT, "server": SERVER} | values))


def around(pod: Pod) -> RelatedObjects:
    """The demo's object; a pod of the Deployment `api` with its owners, a workload as itself."""
    if pod.kind == "Deployment":
        return RelatedObjects(raw=deployment(pod.namespace, pod.name))
    found = DemoSource().related(pod)
    if not pod.name.startswith("api-"):
        return found
    raw = deployment(pod.namespace, "api")
    return structs.replace(found, owners=(Owner(raw, pod_from_workload("Deployment", raw)),))


def deployment(namespace: str, name: str, memory: str = "512Mi") -> dict[str, Any]:
    """A Deployment of three pods with the containers of the demo's pod."""
    resources = {"requests": {"cpu": "250m", "memory": memory}, "limits": {"cpu": "2", "memory": "2Gi"}}
    template = {"spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}}
    metadata = {"name": name, "namespace": namespace, "uid": "d-1", "resourceVersion": "7"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 3, "template": template}}


def memory(text: str, side: Side = Side.REQUESTS) -> Edit:
    """The memory of the container `c`."""
    return Edit("c", side, "memory", parse_quantity(text))


def _next(answers: list[T]) -> T:
    return answers.pop(0) if len(answers) > 1 else answers[0]


def _open() -> threading.Event:
    event = threading.Event()
    event.set()
    return event
