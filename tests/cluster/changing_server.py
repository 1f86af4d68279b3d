"""A small API server whose objects can be changed: strategic merge patches, preconditions, dry runs, faults.

Its words are those of the recorded server (recordings/apiserver-1.36, 054 to 073).
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kubectl_qos.edit.patch import CONTENT_TYPE
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS, api_path
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.qos_class import computed_class
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import Object, ObjectServer, status

RELEASE: Final = Release.of("1.36")
RESIZE: Final = "/resize"
_BY_NAME: Final = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes", "env"})


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
        self.others = {_path(found): _stored(found) for found in workloads}
        self.patches: list[Request] = []
        self.fault: Callable[[Request], Fault | None] = lambda _: None
        self.mutate: Callable[[dict[str, Any]], None] = lambda _: None
        self.ignores_dry_run = False
        self.warnings: list[str] = []
        self.stop: Callable[[], None] = lambda: None
        self._revision = 1000
        self._lock = threading.RLock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            return self._patch(request) if request.method == "PATCH" else super().__call__(request)

    # What others do to the objects meanwhile.

    def find(self, kind: str, name: str, namespace: str = "shop") -> dict[str, Any]:
        with self._lock:
            found = self._at(api_path(kind, namespace, name))
            assert found is not None
            return copy.deepcopy(found)

    def edit(self, kind: str, name: str, patch: Mapping[str, Any], *, manager: str = "other") -> None:
        """Somebody else's patch, of anything."""
        with self._lock:
            path = api_path(kind, "shop", name)
            self._store(path, patched(self.find(kind, name), patch), patch, manager, "")

    def set(self, kind: str, name: str, **parts: Any) -> None:
        """Whole parts of an object: `status={...}`, as a controller writes them."""
        with self._lock:
            found = self.find(kind, name) | parts
            self._put(api_path(kind, "shop", name), found)

    def delete(self, kind: str, name: str) -> None:
        with self._lock:
            self._put(api_path(kind, "shop", name), None)

    def recreate(self, kind: str, name: str) -> None:
        """Deleted and recreated: the same name, another uid."""
        with self._lock:
            found = self.find(kind, name)
            found["metadata"]["uid"] += "-again"
            found["metadata"].pop("managedFields", None)
            self._put(api_path(kind, "shop", name), found)

    # Patches.

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
        path = request.path.removesuffix(RESIZE)
        subresource = "resize" if path != request.path else ""
        refused = self._refused(request, path, subresource)
        if refused is not None:
            return refused
        if request.headers["content-type"] != CONTENT_TYPE:
            return status(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        patch = json.loads(request.body)
        held = self._at(path)
        if held is None:
            return status(404, "NotFound", f'{_resource(path)} "{_last(path)}" not found')
        stale = _precondition(path, held, patch.get("metadata", {}))
        if stale is not None:
            return stale
        new = patched(held, {key: value for key, value in patch.items() if key != "metadata"})
        self.mutate(new)
        _default(new)
        message = _invalid(held, new, subresource)
        if message:
            return status(422, "Invalid", message)
        is_dry = request.query.get("dryRun") == "All" and not self.ignores_dry_run
        manager = request.query.get("fieldManager", "unknown")
        stored = self._store(path, new, patch, manager, subresource, dry=is_dry)
        warned = ", ".join(f'299 - "{text}"' for text in self.warnings)
        return Answer(200, json.dumps(stored).encode(), headers={"Warning": warned} if warned else {})

    def _refused(self, request: Request, path: str, subresource: str) -> Answer | None:
        if request.token in {"admin", "renewed"}:
            return None
        if request.token != "viewer":
            return status(401, "Unauthorized", "Unauthorized")
        resource, _, group = _resource(path).partition(".")
        what = f'{_resource(path)} "{_last(path)}" is forbidden'
        of = f"{resource}/{subresource}" if subresource else resource
        cannot = f'User "viewer" cannot patch resource "{of}"'
        return status(403, "Forbidden", f'{what}: {cannot} in API group "{group}" in the namespace "shop"')

    def _store(
        self,
        path: str,
        new: dict[str, Any],
        patch: Mapping[str, Any],
        manager: str,
        subresource: str,
        *,
        dry: bool = False,
    ) -> dict[str, Any]:
        """The object as it is stored, or as it would be."""
        held = self._at(path)
        assert held is not None
        if _without_metadata(new) == _without_metadata(held):
            return held
        new = copy.deepcopy(new)
        if new.get("spec") != held.get("spec"):
            new["metadata"]["generation"] = held["metadata"].get("generation", 1) + 1
        _manage(new["metadata"], patch, manager, subresource)
        return new if dry else self._put(path, new)

    def _put(self, path: str, new: dict[str, Any] | None) -> Any:
        if new is not None:
            self._revision += 1
            new["metadata"]["resourceVersion"] = str(self._revision)
        if path in self.others:
            del self.others[path]
        if "/pods/" in path:
            kept = [found for found in self.pods if _path(found) != path]
            self.pods = kept if new is None else [*kept, new]
        elif new is not None:
            self.others[path] = new
        return new

    def _at(self, path: str) -> dict[str, Any] | None:
        if path in self.others:
            return dict(self.others[path])
        return next((dict(found) for found in self.pods if _path(found) == path), None)


def patched(held: Any, patch: Any) -> Any:
    """A strategic merge patch: maps merged, null removes, lists of named things merged by name."""
    if not isinstance(patch, Mapping) or not isinstance(held, Mapping):
        return _without_nulls(patch)
    new = dict(copy.deepcopy(dict(held)))
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif key in _BY_NAME and isinstance(value, list):
            new[key] = _merged(new.get(key) or [], value)
        else:
            new[key] = patched(new.get(key), value)
    return new


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return copy.deepcopy(value)


def _merged(held: list[Any], patch: list[Any]) -> list[Any]:
    by_name = {one["name"]: one for one in held}
    for one in patch:
        by_name[one["name"]] = patched(by_name.get(one["name"], {}), one)
    return list(by_name.values())


def _precondition(path: str, held: Mapping[str, Any], metadata: Mapping[str, Any]) -> Answer | None:
    name = held["metadata"]["name"]
    cannot = f'Operation cannot be fulfilled on {_resource(path)} "{name}": '
    if metadata.get("uid") not in {None, held["metadata"]["uid"]}:
        wanted, found = metadata["uid"], held["metadata"]["uid"]
        sentence = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        return status(409, "Conflict", cannot + sentence)
    if metadata.get("resourceVersion") not in {None, held["metadata"]["resourceVersion"]}:
        sentence = (
            "the object has been modified; please apply your changes to the latest version and try again"
        )
        return status(409, "Conflict", cannot + sentence)
    return None


def _default(new: dict[str, Any]) -> None:
    """A pod's requests default to its limits; templates stay as they are written."""
    if new["kind"] == "Pod":
        for container in new["spec"]["containers"]:
            limits = container.get("resources", {}).get("limits") or {}
            if limits:
                container["resources"]["requests"] = limits | container["resources"].get("requests", {})


def _invalid(held: Mapping[str, Any], new: Mapping[str, Any], subresource: str) -> str:
    """The recorded refusals, where they are simple."""
    kind, name = new["kind"], new["metadata"]["name"]
    if kind == "Job":
        return f'Job.batch "{name}" is invalid: spec.template: Invalid value: {{}}: field is immutable'
    if kind != "Pod" or held["spec"] == new["spec"]:
        return ""
    if not subresource:
        return f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change fields other than …'
    before, after = _pod(held), _pod(new)
    stored = computed_class(before, RELEASE)
    if stored is not computed_class(after, RELEASE):
        sentence = "Pod QOS Class may not change as a result of resizing"
        return f'Pod "{name}" is invalid: spec: Invalid value: "{stored.value}": {sentence}'
    for index, (old, changed) in enumerate(zip(before.containers, after.containers, strict=True)):
        for side in ("requests", "limits"):
            lists = [getattr(one.resources, side) or {} for one in (old, changed)]
            if set(lists[0]) - set(lists[1]):
                place = f"spec.containers[{index}].resources.{side}"
                return f'Pod "{name}" is invalid: {place}: Forbidden: resource {side} cannot be removed'
    return ""


def _pod(raw: Mapping[str, Any]) -> Pod:
    return default_pod(convert(raw, Pod), RELEASE)


def _manage(metadata: dict[str, Any], patch: Mapping[str, Any], manager: str, subresource: str) -> None:
    """Put the fields of a patch down as this manager's, and as nobody else's."""
    fields = _fields({key: value for key, value in patch.items() if key != "metadata"})
    entries = [
        entry | {"fieldsV1": _less(entry["fieldsV1"], fields)} for entry in metadata.get("managedFields", [])
    ]
    same = [
        entry
        for entry in entries
        if (entry["manager"], entry.get("subresource", "")) == (manager, subresource)
    ]
    if same:
        same[0]["fieldsV1"] = patched(same[0]["fieldsV1"], fields)
    else:
        entry = {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        entries.append(entry | ({"subresource": subresource} if subresource else {}))
    metadata["managedFields"] = entries


def _fields(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, one in value.items() if isinstance(value, Mapping) else ():
        if key in _BY_NAME and isinstance(one, list):
            found[f"f:{key}"] = {
                f"k:{json.dumps({'name': item['name']}, separators=(',', ':'))}": _fields(
                    {name: part for name, part in item.items() if name != "name"}
                )
                for item in one
            }
        elif one is not None:
            found[f"f:{key}"] = _fields(one)
    return found


def _less(fields: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without the leaves that somebody else has taken."""
    left: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in taken:
            left[key] = value
        elif value and (rest := _less(value, taken[key])):
            left[key] = rest
    return left


def _stored(raw: Object) -> dict[str, Any]:
    """An object as a server holds it."""
    found = copy.deepcopy(dict(raw))
    metadata = {"uid": f"uid-of-{found['metadata']['name']}", "resourceVersion": "500", "generation": 1}
    found["metadata"] = metadata | found["metadata"]
    return found


def _without_metadata(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "metadata"}


def _path(raw: Mapping[str, Any]) -> str:
    metadata = raw["metadata"]
    return api_path(raw.get("kind", "Pod"), metadata["namespace"], metadata["name"])


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _resource(path: str) -> str:
    """`deployments.apps`, as a refusal names it."""
    parts = path.split("/")
    return f"{parts[-2]}.{parts[2]}" if parts[1] == "apis" else parts[-2]


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
