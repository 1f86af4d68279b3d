"""A small API server of given objects: lists in pages, selectors, single objects, metrics, and faults."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.cluster.https_server import Answer, Request

Object = Mapping[str, Any]
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>metrics\.k8s\.io/v1beta1|autoscaling\.k8s\.io/v1))"
    r"/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?"
)
_KINDS = {
    "pods": "Pod",
    "nodes": "Node",
    "events": "Event",
    "pods.metrics.k8s.io": "PodMetrics",
    "limitranges": "LimitRange",
    "resourcequotas": "ResourceQuota",
    "verticalpodautoscalers.autoscaling.k8s.io": "VerticalPodAutoscaler",
}


class ObjectServer:
    """Answers about objects. `faults` by path come before everything else.

    `forbidden` are paths that the user may not read, `absent` are resources that the server does not have;
    `expire_after` is how many pages of a list may be fetched before its continue token is too old.
    """

    def __init__(
        self,
        *,
        pods: Iterable[Object] = (),
        nodes: Iterable[Object] = (),
        events: Iterable[Object] = (),
        metrics: Iterable[Object] | None = None,
        limits: Iterable[Object] = (),
        others: Mapping[str, Object] | None = None,
        version: str = "v1.36.2",
    ) -> None:
        self.pods = sorted(pods, key=place)
        self.nodes = sorted(nodes, key=place)
        self.events = sorted(events, key=place)
        self.metrics = None if metrics is None else sorted(metrics, key=place)
        self.limits = [dict(found) for found in limits]
        self.others = dict(others or {})
        self.absent = {"verticalpodautoscalers.autoscaling.k8s.io"}
        self.faults: dict[str, Answer | Callable[[Request], Answer | None]] = {}
        self.forbidden: set[str] = set()
        self.expire_after: int | None = None
        self._version = version

    def __call__(self, request: Request) -> Answer:
        fault = self.faults.get(request.path)
        if callable(fault):
            fault = fault(request)
        if fault is not None:
            return fault
        if request.token not in {"admin", "viewer"} and not request.user:
            return status(401, "Unauthorized", "Unauthorized")
        if request.path in self.forbidden:
            return forbidden(request)
        if request.path == "/version":
            return _json({"major": "1", "minor": "36", "gitVersion": self._version})
        if request.path in self.others:
            return _json(self.others[request.path])
        match = _PATH.fullmatch(request.path)
        resource = _resource(match) if match is not None else ""
        objects = self._objects(resource)
        if match is None or objects is None:
            return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
        if match["name"]:
            return _one(resource, objects, match["namespace"], match["name"])
        return self._list(resource, objects, match["namespace"], request)

    def _objects(self, resource: str) -> Sequence[Object] | None:
        if resource in self.absent:
            return None
        lists = {"pods": self.pods, "nodes": self.nodes, "events": self.events}
        if resource in lists:
            return lists[resource]
        if resource == "namespaces":
            return [
                {"metadata": {"name": name}}
                for name in {found["metadata"]["namespace"] for found in self.pods}
            ]
        if resource == "pods.metrics.k8s.io":
            return self.metrics
        kind = _KINDS.get(resource)
        return None if kind is None else [found for found in self.limits if found["kind"] == kind]

    def list_revision(self) -> str:
        return "7"

    def _list(
        self, resource: str, objects: Sequence[Object], namespace: str | None, request: Request
    ) -> Answer:
        query = request.query
        chosen = [
            found
            for found in objects
            if (namespace is None or found["metadata"].get("namespace") == namespace)
            and _has_labels(found, query.get("labelSelector", ""))
            and has_fields(found, query.get("fieldSelector", ""))
        ]
        start = json.loads(base64.b64decode(query["continue"]))["start"] if "continue" in query else 0
        limit = int(query.get("limit") or 0) or len(chosen) or 1
        if self.expire_after is not None and start >= self.expire_after * limit:
            return status(410, "Expired", "The provided continue parameter is too old")
        metadata: dict[str, Any] = {"resourceVersion": self.list_revision()}
        if start + limit < len(chosen):
            token = json.dumps({"rv": 7, "start": start + limit})
            metadata["continue"] = base64.b64encode(token.encode()).decode()
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(chosen) - start - limit
        items = [without_kind(found) for found in chosen[start : start + limit]]
        return _json(
            {"kind": f"{_KINDS[resource]}List", "apiVersion": "v1", "metadata": metadata, "items": items}
        )


def status(code: int, reason: str, message: str) -> Answer:
    """A refusal as API servers word it."""
    return _json(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        },
        code,
    )


def forbidden(request: Request) -> Answer:
    """403 for a user who may not read what is at this path."""
    match = _PATH.fullmatch(request.path)
    assert match is not None
    resource, _, group = _resource(match).partition(".")
    verb = "get" if match["name"] else "list"
    where = f'in the namespace "{match["namespace"]}"' if match["namespace"] else "at the cluster scope"
    name = f' "{match["name"]}"' if match["name"] else ""
    cannot = f'User "viewer" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    return status(403, "Forbidden", f"{resource}{name} is forbidden: {cannot}")


def _resource(match: re.Match[str]) -> str:
    """`pods`, `pods.metrics.k8s.io`."""
    group = (match["group"] or "").partition("/")[0]
    return f"{match['resource']}.{group}" if group else match["resource"]


def _json(value: Object, code: int = 200) -> Answer:
    return Answer(code, json.dumps(value, separators=(",", ":")).encode())


def _one(resource: str, objects: Iterable[Object], namespace: str | None, name: str) -> Answer:
    for found in objects:
        metadata = found["metadata"]
        if metadata["name"] == name and metadata.get("namespace") == namespace:
            return _json(found)
    return status(404, "NotFound", f'{resource} "{name}" not found')


def place(found: Object) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def without_kind(found: Object) -> dict[str, Any]:
    """Items of a list say neither kind nor apiVersion."""
    return {name: value for name, value in found.items() if name not in {"kind", "apiVersion"}}


def _has_labels(found: Object, selector: str) -> bool:
    labels = found["metadata"].get("labels", {})
    return all(_holds(term, labels) for term in re.split(r",(?![^(]*\))", selector) if term)


def _holds(term: str, labels: Mapping[str, str]) -> bool:
    among = re.fullmatch(r"\s*(\S+)\s+(in|notin)\s+\(([^)]*)\)\s*", term)
    if among is not None:
        values = [value.strip() for value in among[3].split(",")]
        return (labels.get(among[1]) in values) is (among[2] == "in")
    key, operator, value = re.fullmatch(r"\s*(!?[^=!\s]+)\s*(==|=|!=)?\s*(\S*)\s*", term).groups()  # type: ignore[union-attr]
    if operator is None:
        return key[1:] not in labels if key.startswith("!") else key in labels
    return (labels.get(key) == value) is (operator != "!=")


def has_fields(found: Object, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, value = term.split("=")
        held: Any = found
        for part in path.split("."):
            held = held.get(part, "") if isinstance(held, Mapping) else ""
        if held != value:
            return False
    return True
