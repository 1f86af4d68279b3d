"""The API server in memory whose patches can fail, and objects that others change meanwhile."""

import copy
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kubectl_qos.demo.api import last_segment, object_path, patched, resource_at
from kubectl_qos.k8s.kinds import WORKLOADS
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import Object, ObjectServer, status

RESIZE: Final = "/resize"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one patch: whether it is applied, and what is answered in place of the truth.

    Without an answer the connection is closed. With `gone` nobody listens any more afterwards.
    """

    applies: bool
    answer: Answer | None = None
    gone: bool = False


class ChangingServer(ObjectServer):
    """Pods, workloads and what limits their namespace; `patches` are those that came, in order.

    `fault` decides on each patch, None for none. `mutate` is what admission makes of every object that is
    stored or tried. With `ignores_dry_run` a dry run is done for real, as behind a proxy that drops it.
    """

    def __init__(
        self,
        *,
        pods: Iterable[Object] = (),
        nodes: Iterable[Object] = (),
        workloads: Iterable[Object] = (),
        limits: Iterable[Object] = (),
    ) -> None:
        super().__init__(pods=map(_stored, pods), nodes=nodes, metrics=[], limits=limits)
        self.others = {object_path(found): _stored(found) for found in workloads}
        self.patches: list[Request] = []
        self.fault: Callable[[Request], Fault | None] = lambda _: None
        self.mutate: Callable[[dict[str, Any]], None] = lambda _: None
        self.ignores_dry_run = False
        self.warnings: list[str] = []
        self.stop: Callable[[], None] = lambda: None

    def __call__(self, request: Request) -> Answer:
        return self._patch(request) if request.method == "PATCH" else super().__call__(request)

    # What others do to the objects meanwhile.

    def find(self, kind: str, name: str, namespace: str = "shop") -> dict[str, Any]:
        """A copy of what is there."""
        found = self.get(kind, namespace, name)
        assert found is not None
        return found

    def edit(self, kind: str, name: str, patch: Mapping[str, Any], *, manager: str = "other") -> None:
        """Somebody else's patch, of anything."""
        found = self.find(kind, name)
        self.store(object_path(found), patched(found, patch), patch, manager)

    def set(self, kind: str, name: str, **parts: Any) -> None:
        """Whole parts of an object: `status={...}`, as a controller writes them."""
        self.save(self.find(kind, name) | parts)

    def delete(self, kind: str, name: str) -> None:
        self.remove(kind, "shop", name)

    def recreate(self, kind: str, name: str) -> None:
        """Deleted and recreated: the same name, another uid."""
        found = self.find(kind, name)
        found["metadata"]["uid"] += "-again"
        found["metadata"].pop("managedFields", None)
        self.save(found)

    # Patches.

    def admit(self, new: dict[str, Any]) -> None:
        self.mutate(new)
        super().admit(new)

    def _patch(self, request: Request) -> Answer:
        self.patches.append(request)
        fault = self.fault(request)
        answer = self._apply(request) if fault is None or fault.applies else None
        if fault is None:
            assert answer is not None
            return answer
        if fault.gone:
            threading.Thread(target=self.stop, daemon=True).start()
        return fault.answer or Answer(hangs_up=True)

    def _apply(self, request: Request) -> Answer:
        refused = self._forbids(request)
        if refused is not None:
            return refused
        query = {key: value for key, value in request.query.items() if key != "dryRun"}
        answer = self.answer(request, query if self.ignores_dry_run else None)
        warned = ", ".join(f'299 - "{text}"' for text in self.warnings)
        return replace(answer, headers={"Warning": warned}) if warned else answer

    def _forbids(self, request: Request) -> Answer | None:
        if request.token in {"admin", "renewed"}:
            return None
        if request.token != "viewer":
            return status(401, "Unauthorized", "Unauthorized")
        path = request.path.removesuffix(RESIZE)
        resource, _, group = resource_at(path).partition(".")
        what = f'{resource_at(path)} "{last_segment(path)}" is forbidden'
        of = resource + request.path.removeprefix(path)
        cannot = f'User "viewer" cannot patch resource "{of}"'
        return status(403, "Forbidden", f'{what}: {cannot} in API group "{group}" in the namespace "shop"')


def _stored(raw: Object) -> dict[str, Any]:
    """An object as a server holds it."""
    found = copy.deepcopy(dict(raw))
    metadata = {"uid": f"uid-of-{found['metadata']['name']}", "resourceVersion": "500", "generation": 1}
    found["metadata"] = metadata | found["metadata"]
    return found


def workload(
    kind: str, name: str, resources: Mapping[str, Any], *, owner: str = "", **spec: Any
) -> dict[str, Any]:
    """A workload with one container `app`; `owner` is its controller: `Deployment/web`."""
    template: dict[str, Any] = {"spec": {"containers": [{"name": "app", "resources": dict(resources)}]}}
    for key in reversed(WORKLOADS[kind].template):
        template = {key: template}
    version = WORKLOADS[kind].group.removeprefix("/apis/").removeprefix("/api/")
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner:
        metadata["ownerReferences"] = [reference(owner)]
    return {"kind": kind, "apiVersion": version, "metadata": metadata, "spec": {**spec, **template}}


def reference(owner: str, version: str = "apps/v1") -> dict[str, Any]:
    """A controller reference to `Kind/name`."""
    kind, _, name = owner.partition("/")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}


def once(fault: Fault, *, dry_run: bool = False) -> Callable[[Request], Fault | None]:
    """The fault for the first patch that is, or is not, a dry run."""
    left = [fault]

    def decide(request: Request) -> Fault | None:
        return left.pop() if left and ("dryRun" in request.query) is dry_run else None

    return decide


def refusing(answer: Answer, *, retry_after: str = "") -> Fault:
    """Not applied, and answered so."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    return Fault(applies=False, answer=replace(answer, headers=headers))
