"""An API server in memory, and a connection to it: lists, single objects, and patches.

Messages are those of the recorded server (tests/recordings/apiserver-1.36, 054 to 073). A change is refused
if edit/server_response.py expects it of a real server. Not here: authorization, and what kubelets and
controllers do with a stored object (world.py).
"""

import copy
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import format_datetime
from io import BytesIO
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from urllib3 import BaseHTTPResponse, HTTPResponse

from kubectl_qos.edit.edits import CONTENT_TYPE, METHOD, RESIZE
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import LIMIT_RANGES, QUOTAS, RelatedObjects, convert_all, decode_pod
from kubectl_qos.edit.server_response import ChangedObject, ServerRefusal, change_refusal
from kubectl_qos.k8s.kinds import api_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Json, NodeObject, Pod, convert, nested
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.quota import quota_usage
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.transport.client import ApiRequest, Connection

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
    """An HTTP response."""

    status: int
    body: bytes
    content_type: str = "application/json"


class ObjectApi:
    """The objects of a cluster as the API returns them. Thread-safe."""

    def __init__(  # noqa: PLR0913 - the lists of a cluster
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
        self.pods = sorted(pods, key=key_of)
        self.nodes = sorted(nodes, key=key_of)
        self.events = sorted(events, key=key_of)
        self.metrics = None if metrics is None else sorted(metrics, key=key_of)
        self.node_metrics = None if node_metrics is None else list(node_metrics)
        self.limits = [dict(raw) for raw in limits]
        self.others = dict(others or {})
        """Workloads by path."""
        self.absent = {"verticalpodautoscalers.autoscaling.k8s.io"}
        """Resources that the server does not have."""
        self.lock = threading.RLock()
        self.revision = 1000
        """Newest resourceVersion."""
        self.now = ""
        """Time of changes (RFC 3339); "" without a clock."""
        self._version = version

    def reply(
        self, method: str, path: str, query: Mapping[str, str], body: bytes = b"", content_type: str = ""
    ) -> Reply:
        """Answer a GET or a PATCH."""
        with self.lock:
            if method == METHOD:
                return self._change(path, query, body, content_type)
            return self._read(path, query)

    # Objects, for the demo's controllers.

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Return a copy of a pod or workload; stored objects are replaced, never changed."""
        return copy.deepcopy(self._at(api_path(kind, namespace, name)))

    def save(self, raw: Json) -> dict[str, Any]:
        """Store a copy of a pod or workload under a new revision."""
        with self.lock:
            return self._put(object_path(raw), copy.deepcopy(dict(raw)))

    def save_node(self, node: Json) -> None:
        """Store a node under a new revision."""
        with self.lock:
            self.revision += 1
            self.nodes = [node if key_of(old) == key_of(node) else old for old in self.nodes]

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Delete a pod or workload."""
        with self.lock:
            path = api_path(kind, namespace, name)
            self.pods = [pod for pod in self.pods if object_path(pod) != path]
            self.others.pop(path, None)
            self.revision += 1

    def creation_refusal(self, pod: Json) -> str:
        """Return the server's message if it refuses to create the pod, or ""."""
        # With a UID, quotas would take it for an existing pod.
        metadata = {key: value for key, value in pod["metadata"].items() if key != "uid"}
        new = {**pod, "metadata": metadata}
        refused = self._refusal_of(new, new, StrategyKind.RECREATE)
        return refused.message if refused is not None else ""

    def count_quotas(self) -> None:
        """Update the usage of quotas as the quota controller does."""
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
            key = match["namespace"] or "", match["name"]
            raw = next((raw for raw in objects if key_of(raw) == key), None)
            not_found = f'{resource} "{match["name"]}" not found'
            return _json(raw) if raw is not None else refusal(404, "NotFound", not_found)
        chosen = [
            raw
            for raw in objects
            if match["namespace"] in {None, raw["metadata"].get("namespace")}
            and has_fields(raw, query.get("fieldSelector", ""))
        ]
        return self.list_reply(resource, chosen, query)

    def _objects(self, resource: str) -> Sequence[Json] | None:
        if resource in self.absent:
            return None
        lists = {"pods": self.pods, "nodes": self.nodes, "events": self.events}
        if resource in lists:
            return lists[resource]
        if resource == "namespaces":
            names = {pod["metadata"]["namespace"] for pod in self.pods}
            return [{"metadata": {"name": name}} for name in names]
        if resource == "pods.metrics.k8s.io":
            return self.metrics
        if resource == "nodes.metrics.k8s.io":
            return self.node_metrics
        kind = _KINDS.get(resource)
        return None if kind is None else [raw for raw in self.limits if raw["kind"] == kind]

    def list_revision(self) -> str:
        """Return the resourceVersion of a list."""
        return "7"

    def list_reply(self, resource: str, chosen: Sequence[Json], query: Mapping[str, str]) -> Reply:
        """Return all selected objects in one page."""
        return list_page(resource, chosen, {"resourceVersion": self.list_revision()})

    # Patches.

    def _change(self, path: str, query: Mapping[str, str], body: bytes, content_type: str) -> Reply:
        subresource = RESIZE if path.endswith(f"/{RESIZE}") else ""
        path = path.removesuffix(f"/{RESIZE}")
        if content_type != CONTENT_TYPE:
            return refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        stored = self._at(path)
        if stored is None:
            return refusal(404, "NotFound", f'{resource_at(path)} "{last_segment(path)}" not found')
        patch = json.loads(body)
        stale = _conflict(path, stored, patch.get("metadata", {}))
        if stale:
            return refusal(409, "Conflict", stale)
        new = patched(stored, _without_metadata(patch))
        self.admit(new)
        strategy = StrategyKind.IN_PLACE if subresource else StrategyKind.TEMPLATE
        refused = self._refusal_of(stored, new, strategy) if stored["spec"] != new["spec"] else None
        if refused is not None:
            return refusal(*refused)
        manager, dry = query.get("fieldManager", "unknown"), query.get("dryRun") == "All"
        return _json(self.store(path, new, patch, manager, subresource, dry=dry))

    def admit(self, new: dict[str, Any]) -> None:
        """Default a pod's requests to its limits; leave templates alone."""
        for container in new["spec"]["containers"] if new["kind"] == "Pod" else ():
            limits = container.get("resources", {}).get("limits") or {}
            if limits:
                container["resources"]["requests"] = limits | container["resources"].get("requests", {})

    def _refusal_of(self, stored: Json, new: Json, strategy: StrategyKind) -> ServerRefusal | None:
        kind, namespace = str(new["kind"]), new["metadata"].get("namespace")
        limits = [raw for raw in self.limits if raw["metadata"].get("namespace") == namespace]
        ranges, quotas = convert_all(limits, LIMIT_RANGES), convert_all(limits, QUOTAS)
        old = decode_pod(kind, stored)
        target = ChangedObject(stored, old, decode_pod(kind, new), ())
        related = RelatedObjects(stored, limit_ranges=ranges, quotas=quotas)
        return change_refusal(target, related, self._setup(old.node_name), strategy)

    def _setup(self, node: str) -> NodeSetup:
        nodes = {raw["metadata"]["name"]: convert(raw, NodeObject) for raw in self.nodes}
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
        """Return the object as stored after a manager's patch; with `dry`, do not store it."""
        stored = self._at(path)
        assert stored is not None
        if _without_metadata(new) == _without_metadata(stored):
            return stored
        new = copy.deepcopy(new)
        if new.get("spec") != stored.get("spec"):
            new["metadata"]["generation"] = stored["metadata"].get("generation", 1) + 1
        _record_manager(
            new["metadata"], patch, {"manager": manager, "subresource": subresource, "time": self.now}
        )
        return new if dry else self._put(path, new)

    def _put(self, path: str, new: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        if "/pods/" in path:
            self.pods = sorted([*(pod for pod in self.pods if object_path(pod) != path), new], key=key_of)
        else:
            self.others[path] = new
        return new

    def _at(self, path: str) -> dict[str, Any] | None:
        if path in self.others:
            return dict(self.others[path])
        return next((dict(pod) for pod in self.pods if object_path(pod) == path), None)


def refusal(code: int, reason: str, message: str) -> Reply:
    """Return a Status that refuses a request."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return _json({**status, "message": message, "reason": reason, "code": code}, code)


def _json(value: Json, code: int = 200) -> Reply:
    return Reply(code, json.dumps(value, separators=(",", ":")).encode())


def list_page(resource: str, items: Iterable[Json], metadata: Json) -> Reply:
    """Return a List, whose items have neither kind nor apiVersion."""
    kind = f"{_KINDS[resource]}List"
    return _json(
        {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": [*map(without_kind, items)]}
    )


def parse_path(path: str) -> re.Match[str] | None:
    """Match the path of a list or object: `group`, `namespace`, `resource` and `name`."""
    return _PATH.fullmatch(path)


def resource_of(match: re.Match[str]) -> str:
    """Return the resource with its group, as in `pods.metrics.k8s.io`."""
    group = (match["group"] or "").partition("/")[0]
    return f"{match['resource']}.{group}" if group else match["resource"]


def key_of(raw: Json) -> tuple[str, str]:
    """Return namespace and name, the sort key of lists."""
    return raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def without_kind(raw: Json) -> dict[str, Any]:
    """Return an item as lists have it, without kind and apiVersion."""
    return {name: value for name, value in raw.items() if name not in {"kind", "apiVersion"}}


def has_fields(raw: Json, selector: str) -> bool:
    """Return whether a field selector selects an object."""
    for term in re.findall(r"(?:\\.|[^\\,])+", selector):
        path, _, escaped = term.partition("=")
        value = re.sub(r"\\(.)", r"\1", escaped)
        *outer, last = path.split(".")
        if nested(raw, *outer).get(last, "") != value:
            return False
    return True


def patched(old: Any, patch: Any) -> Any:
    """Apply a strategic merge patch: merge maps, remove nulls, merge lists of named items by name."""
    if not isinstance(patch, Mapping) or not isinstance(old, Mapping):
        return _without_nulls(patch)
    new = dict(copy.deepcopy(dict(old)))
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif key in _BY_NAME and isinstance(value, list):
            by_name = {item["name"]: item for item in new.get(key) or ()}
            for item in value:
                by_name[item["name"]] = patched(by_name.get(item["name"], {}), item)
            new[key] = list(by_name.values())
        else:
            new[key] = patched(new.get(key), value)
    return new


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return copy.deepcopy(value)


def _conflict(path: str, stored: Json, metadata: Json) -> str:
    """Return the conflict message if a patch is for another object or an older version, or ""."""
    cannot = f'Operation cannot be fulfilled on {resource_at(path)} "{stored["metadata"]["name"]}": '
    if metadata.get("uid") not in {None, stored["metadata"]["uid"]}:
        wanted, actual = metadata["uid"], stored["metadata"]["uid"]
        return f"{cannot}Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}"
    if metadata.get("resourceVersion") not in {None, stored["metadata"]["resourceVersion"]}:
        return (
            f"{cannot}the object has been modified; please apply your changes to the latest version and try"
            " again"
        )
    return ""


def _record_manager(metadata: dict[str, Any], patch: Json, by: Json) -> None:
    """Record a manager as the only owner of the patch's fields (managedFields)."""
    fields = _managed_fields(_without_metadata(patch))
    entries = [
        entry | {"fieldsV1": _fields_without(entry["fieldsV1"], fields)}
        for entry in metadata.get("managedFields", [])
    ]
    who = "manager", "subresource"
    same: Json = next((old for old in entries if all(old.get(key, "") == by[key] for key in who)), {})
    entry = {"manager": "", "operation": "Update", "fieldsType": "FieldsV1"}
    entry |= {key: text for key, text in by.items() if text}
    entry["fieldsV1"] = patched(same.get("fieldsV1", {}), fields)
    metadata["managedFields"] = [*(old for old in entries if old is not same), entry]


def _managed_fields(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if key in _BY_NAME and isinstance(inner, list):
            fields[f"f:{key}"] = {
                f"k:{json.dumps({'name': item['name']}, separators=(',', ':'))}": _managed_fields(
                    {name: part for name, part in item.items() if name != "name"}
                )
                for item in inner
            }
        elif inner is not None:
            fields[f"f:{key}"] = _managed_fields(inner)
    return fields


def _fields_without(fields: Json, taken: Json) -> dict[str, Any]:
    """Return the fields without the leaves in `taken`."""
    left: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in taken:
            left[key] = value
        elif value and (rest := _fields_without(value, taken[key])):
            left[key] = rest
    return left


def _without_metadata(raw: Json) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "metadata"}


def object_path(raw: Json) -> str:
    """Return the API path of a pod or workload."""
    return api_path(raw.get("kind", "Pod"), *key_of(raw))


def last_segment(path: str) -> str:
    """Return the name at the end of a path."""
    return path.rpartition("/")[2]


def resource_at(path: str) -> str:
    """Return the resource at a path as refusals name it, as in `deployments.apps`."""
    parts = path.split("/")
    group = f".{parts[2]}" if parts[1:2] == ["apis"] and len(parts) > 2 else ""
    return f"{parts[-2]}{group}" if len(parts) > 1 else ""


Answer = Callable[[str, str, Mapping[str, str], bytes, str], Reply]
"""Answers a method, path, query, body and content type."""


class MemoryConnection(Connection):
    """A connection to a server in this process; `now` is the server's clock."""

    def __init__(self, context: str, answer: Answer, now: Callable[[], datetime]) -> None:
        self.context = context
        self.namespace = "default"
        self._base_url = "https://in-memory"
        self._request_seconds = None
        self._answer = answer
        self._now = now

    def _respond(self, request: ApiRequest) -> BaseHTTPResponse:
        url, type_ = urlsplit(request.url), request.headers.get("Content-Type", "")
        reply = self._answer(request.method, url.path, dict(parse_qsl(url.query)), request.body or b"", type_)
        date = format_datetime(self._now(), usegmt=True)
        headers = {"Content-Type": reply.content_type, "Date": date}
        return HTTPResponse(BytesIO(reply.body), headers, reply.status, preload_content=False)
