"""An API server in memory: lists, single objects, and patches with what refuses them.

The words are those of the recorded server (tests/recordings/apiserver-1.36, 054 to 073). A change is refused
where the rules of edit/server_response.py expect that of a real server. Not here: connections, who may do
what, and what kubelets and controllers do with a stored object (controllers.py).
"""

import copy
import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_qos.edit.patch import CONTENT_TYPE, METHOD, RESIZE
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import LIMIT_RANGES, QUOTAS, RelatedObjects, convert_all, decode_pod
from kubectl_qos.edit.server_response import ChangedObject, ServerRefusal, change_refusal
from kubectl_qos.k8s.kinds import api_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Json, NodeObject, Pod, convert, nested
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.quota import quota_usage
from kubectl_qos.k8s.snapshot import Snapshot

_PATH: Final = re.compile(
    r"/(?:api/v1|apis/(?P<group>metrics\.k8s\.io/v1beta1|autoscaling\.k8s\.io/v1|autoscaling/v2|policy/v1))"
    r"/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?"
)
_KINDS: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "events": "Event",
    "pods.metrics.k8s.io": "PodMetrics",
    "nodes.metrics.k8s.io": "NodeMetrics",
    "limitranges": "LimitRange",
    "resourcequotas": "ResourceQuota",
    "horizontalpodautoscalers.autoscaling": "HorizontalPodAutoscaler",
    "verticalpodautoscalers.autoscaling.k8s.io": "VerticalPodAutoscaler",
    "poddisruptionbudgets.policy": "PodDisruptionBudget",
}
_BY_NAME: Final = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes", "env"})
"""Lists that a strategic merge patch merges by the names of their items."""


class Reply(NamedTuple):
    """What the server answers; `body` is of `content_type`."""

    status: int
    body: bytes
    content_type: str = "application/json"


class ObjectApi:
    """The objects of a cluster, whole as the API has them; its methods may be called by several threads.

    `others` are found by their path alone: workloads. `absent` are resources that the server does not have.
    `revision` is the newest resourceVersion, `now` the time of changes (RFC 3339), empty without a clock.
    """

    def __init__(
        self,
        *,
        pods: Iterable[Json] = (),
        nodes: Iterable[Json] = (),
        events: Iterable[Json] = (),
        metrics: Iterable[Json] | None = None,
        node_metrics: Iterable[Json] | None = None,
        limits: Iterable[Json] = (),
        others: Mapping[str, Json] | None = None,
        version: str = "v1.36.2",
    ) -> None:
        self.pods = sorted(pods, key=place)
        self.nodes = sorted(nodes, key=place)
        self.events = sorted(events, key=place)
        self.metrics = None if metrics is None else sorted(metrics, key=place)
        self.node_metrics = None if node_metrics is None else list(node_metrics)
        self.limits = [dict(found) for found in limits]
        self.others = dict(others or {})
        self.absent = {"verticalpodautoscalers.autoscaling.k8s.io"}
        self.lock = threading.RLock()
        self.revision = 1000
        self.now = ""
        self._version = version

    def reply(
        self, method: str, path: str, query: Mapping[str, str], body: bytes = b"", content_type: str = ""
    ) -> Reply:
        """The answer to a GET or a PATCH."""
        with self.lock:
            if method == METHOD:
                return self._change(path, query, body, content_type)
            return self._read(path, query)

    # Objects, for whoever else changes them.

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """A copy of a pod or workload; what is stored is replaced, and never changed."""
        return copy.deepcopy(self._at(api_path(kind, namespace, name)))

    def save(self, found: Json) -> dict[str, Any]:
        """Store a copy of a pod or workload under a new revision."""
        with self.lock:
            return self._put(object_path(found), copy.deepcopy(dict(found)))

    def save_node(self, found: Json) -> None:
        """Store a node under a new revision."""
        with self.lock:
            self.revision += 1
            self.nodes = [found if place(one) == place(found) else one for one in self.nodes]

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Delete a pod or workload."""
        with self.lock:
            path = api_path(kind, namespace, name)
            self.pods = [one for one in self.pods if object_path(one) != path]
            self.others.pop(path, None)
            self.revision += 1

    def creation_refusal(self, pod: Json) -> str:
        """Why a pod of a template is refused, in the server's words, or empty."""
        metadata = {key: one for key, one in pod["metadata"].items() if key != "uid"}  # it is not counted yet
        new = {**pod, "metadata": metadata}
        refused = self._refusal_of(new, new, StrategyKind.RECREATE)
        return refused.message if refused is not None else ""

    def count_quotas(self) -> None:
        """Count what the pods use of their quotas, as the quota controller does."""
        for quota in self.limits:
            if quota["kind"] == QUOTAS.kind:
                used = dict.fromkeys(quota["status"]["hard"], ZERO)
                for raw in self.pods:
                    if raw["metadata"]["namespace"] == quota["metadata"]["namespace"]:
                        usage = quota_usage(convert(raw, Pod), self._setup("").release)
                        used = {name: amount + usage.get(name, ZERO) for name, amount in used.items()}
                quota["status"]["used"] = {name: str(amount) for name, amount in used.items()}

    # Reading.

    def _read(self, path: str, query: Mapping[str, str]) -> Reply:
        if path == "/version":
            return _json({"major": "1", "minor": "36", "gitVersion": self._version})
        if path in self.others:
            return _json(self.others[path])
        match = _PATH.fullmatch(path)
        if resource_at(path) in map(resource_at, self.others):
            return refusal(404, "NotFound", f'{resource_at(path)} "{last_segment(path)}" not found')
        resource = resource_of(match) if match is not None else ""
        objects = self._objects(resource)
        if match is None or objects is None:
            return Reply(404, b"404 page not found\n", "text/plain; charset=utf-8")
        if match["name"]:
            return _one(resource, objects, match["namespace"], match["name"])
        chosen = [
            found
            for found in objects
            if match["namespace"] in {None, found["metadata"].get("namespace")}
            and has_fields(found, query.get("fieldSelector", ""))
        ]
        return self.list_reply(resource, chosen, query)

    def _objects(self, resource: str) -> Sequence[Json] | None:
        if resource in self.absent:
            return None
        lists = {"pods": self.pods, "nodes": self.nodes, "events": self.events}
        if resource in lists:
            return lists[resource]
        if resource == "namespaces":
            names = {found["metadata"]["namespace"] for found in self.pods}
            return [{"metadata": {"name": name}} for name in names]
        if resource == "pods.metrics.k8s.io":
            return self.metrics
        if resource == "nodes.metrics.k8s.io":
            return self.node_metrics
        kind = _KINDS.get(resource)
        return None if kind is None else [found for found in self.limits if found["kind"] == kind]

    def list_revision(self) -> str:
        """The resourceVersion of a list."""
        return "7"

    def list_reply(self, resource: str, chosen: Sequence[Json], query: Mapping[str, str]) -> Reply:
        """All that is chosen, in one page."""
        del query
        return list_page(resource, chosen, {"resourceVersion": self.list_revision()})

    # Patches.

    def _change(self, path: str, query: Mapping[str, str], body: bytes, content_type: str) -> Reply:
        subresource = RESIZE if path.endswith(f"/{RESIZE}") else ""
        path = path.removesuffix(f"/{RESIZE}")
        if content_type != CONTENT_TYPE:
            return refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        held = self._at(path)
        if held is None:
            return refusal(404, "NotFound", f'{resource_at(path)} "{last_segment(path)}" not found')
        patch = json.loads(body)
        stale = _stale(path, held, patch.get("metadata", {}))
        if stale:
            return refusal(409, "Conflict", stale)
        new = patched(held, {key: value for key, value in patch.items() if key != "metadata"})
        self.admit(new)
        strategy = StrategyKind.IN_PLACE if subresource else StrategyKind.TEMPLATE
        refused = self._refusal_of(held, new, strategy) if held["spec"] != new["spec"] else None
        if refused is not None:
            return refusal(*refused)
        manager, dry = query.get("fieldManager", "unknown"), query.get("dryRun") == "All"
        return _json(self.store(path, new, patch, manager, subresource, dry=dry))

    def admit(self, new: dict[str, Any]) -> None:
        """A pod's requests default to its limits; templates stay as they are written."""
        for container in new["spec"]["containers"] if new["kind"] == "Pod" else ():
            limits = container.get("resources", {}).get("limits") or {}
            if limits:
                container["resources"]["requests"] = limits | container["resources"].get("requests", {})

    def _refusal_of(self, held: Json, new: Json, strategy: StrategyKind) -> ServerRefusal | None:
        kind, namespace = str(new["kind"]), new["metadata"].get("namespace")
        near = [one for one in self.limits if one["metadata"].get("namespace") == namespace]
        ranges, quotas = convert_all(near, LIMIT_RANGES), convert_all(near, QUOTAS)
        old = decode_pod(kind, held)
        target = ChangedObject(held, old, decode_pod(kind, new), ())
        related = RelatedObjects(held, limit_ranges=ranges, quotas=quotas)
        return change_refusal(target, related, self._setup(old.node_name), strategy)

    def _setup(self, node: str) -> NodeSetup:
        nodes = {one["metadata"]["name"]: convert(one, NodeObject) for one in self.nodes}
        return Snapshot(nodes=nodes, server_version=self._version).setup(node)

    def store(
        self,
        path: str,
        new: dict[str, Any],
        patch: Json,
        manager: str,
        subresource: str = "",
        *,
        dry: bool = False,
    ) -> dict[str, Any]:
        """The object as it is stored after a patch of a manager, or as it would be."""
        held = self._at(path)
        assert held is not None
        if _without_metadata(new) == _without_metadata(held):
            return held
        new = copy.deepcopy(new)
        if new.get("spec") != held.get("spec"):
            new["metadata"]["generation"] = held["metadata"].get("generation", 1) + 1
        _manage(new["metadata"], patch, {"manager": manager, "subresource": subresource, "time": self.now})
        return new if dry else self._put(path, new)

    def _put(self, path: str, new: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        if "/pods/" in path:
            self.pods = sorted([*(one for one in self.pods if object_path(one) != path), new], key=place)
        else:
            self.others[path] = new
        return new

    def _at(self, path: str) -> dict[str, Any] | None:
        if path in self.others:
            return dict(self.others[path])
        return next((dict(found) for found in self.pods if object_path(found) == path), None)


def refusal(code: int, reason: str, message: str) -> Reply:
    """A refusal as API servers word it."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return _json({**status, "message": message, "reason": reason, "code": code}, code)


def _json(value: Json, code: int = 200) -> Reply:
    return Reply(code, json.dumps(value, separators=(",", ":")).encode())


def list_page(resource: str, items: Iterable[Json], metadata: Json) -> Reply:
    """A List of objects, without what the kind of the list says already."""
    kind = f"{_KINDS[resource]}List"
    return _json(
        {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": [*map(without_kind, items)]}
    )


def _one(resource: str, objects: Iterable[Json], namespace: str | None, name: str) -> Reply:
    for found in objects:
        metadata = found["metadata"]
        if metadata["name"] == name and metadata.get("namespace") == namespace:
            return _json(found)
    return refusal(404, "NotFound", f'{resource} "{name}" not found')


def parse_path(path: str) -> re.Match[str] | None:
    """The `group`, `namespace`, `resource` and `name` of the path of a list or of an object in one."""
    return _PATH.fullmatch(path)


def resource_of(match: re.Match[str]) -> str:
    """`pods`, `pods.metrics.k8s.io`."""
    group = (match["group"] or "").partition("/")[0]
    return f"{match['resource']}.{group}" if group else match["resource"]


def place(found: Json) -> tuple[str, str]:
    """The namespace and name, by which lists are ordered."""
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def without_kind(found: Json) -> dict[str, Any]:
    """Items of a list say neither kind nor apiVersion."""
    return {name: value for name, value in found.items() if name not in {"kind", "apiVersion"}}


def has_fields(found: Json, selector: str) -> bool:
    """Whether an object is one that a field selector selects."""
    for term in filter(None, selector.split(",")):
        path, value = term.split("=")
        *outer, last = path.split(".")
        if nested(found, *outer).get(last, "") != value:
            return False
    return True


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


def _stale(path: str, held: Json, metadata: Json) -> str:
    """Why a patch is of another object, or of an earlier version of it."""
    cannot = f'Operation cannot be fulfilled on {resource_at(path)} "{held["metadata"]["name"]}": '
    if metadata.get("uid") not in {None, held["metadata"]["uid"]}:
        wanted, found = metadata["uid"], held["metadata"]["uid"]
        return f"{cannot}Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    if metadata.get("resourceVersion") not in {None, held["metadata"]["resourceVersion"]}:
        return (
            f"{cannot}the object has been modified; please apply your changes to the latest version and try"
            " again"
        )
    return ""


def _manage(metadata: dict[str, Any], patch: Json, by: Json) -> None:
    """Put the fields of a patch down as this manager's, and as nobody else's."""
    fields = _fields({key: value for key, value in patch.items() if key != "metadata"})
    entries = [
        entry | {"fieldsV1": _less(entry["fieldsV1"], fields)} for entry in metadata.get("managedFields", [])
    ]
    who = "manager", "subresource"
    same: Json = next((one for one in entries if all(one.get(key, "") == by[key] for key in who)), {})
    entry = {"manager": "", "operation": "Update", "fieldsType": "FieldsV1"}
    entry |= {key: one for key, one in by.items() if one}
    entry["fieldsV1"] = patched(same.get("fieldsV1", {}), fields)
    metadata["managedFields"] = [*(one for one in entries if one is not same), entry]


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


def _less(fields: Json, taken: Json) -> dict[str, Any]:
    """The fields without the leaves that somebody else has taken."""
    left: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in taken:
            left[key] = value
        elif value and (rest := _less(value, taken[key])):
            left[key] = rest
    return left


def _without_metadata(raw: Json) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "metadata"}


def object_path(raw: Json) -> str:
    """The path of a pod or workload."""
    return api_path(raw.get("kind", "Pod"), *place(raw))


def last_segment(path: str) -> str:
    """The name at the end of a path."""
    return path.rpartition("/")[2]


def resource_at(path: str) -> str:
    """`deployments.apps`, as a refusal names what is at a path."""
    parts = path.split("/")
    group = f".{parts[2]}" if parts[1:2] == ["apis"] and len(parts) > 2 else ""
    return f"{parts[-2]}{group}" if len(parts) > 1 else ""
