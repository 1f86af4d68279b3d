"""The API server in memory behind HTTP, with pages, labels, faults, and who may read what."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubectl_qos.demo.api import ObjectApi, Reply, list_page, parse_path, refusal, resource_of
from tests.cluster.https_server import Answer, Request

Object = Mapping[str, Any]


class ObjectServer(ObjectApi):
    """Answers about objects. `faults` by path come before everything else.

    `forbidden` are paths that the user may not read; `expire_after` is how many pages of a list may be
    fetched before its continue token is too old.
    """

    def __init__(self, **objects: Any) -> None:
        super().__init__(**objects)
        self.faults: dict[str, Answer | Callable[[Request], Answer | None]] = {}
        self.forbidden: set[str] = set()
        self.expire_after: int | None = None

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
        start, limit = page_start(request.query), int(request.query.get("limit") or 1)
        if self.expire_after is not None and start and start >= self.expire_after * limit:
            return status(410, "Expired", "The provided continue parameter is too old")
        return self.answer(request)

    def list_reply(self, resource: str, chosen: Sequence[Object], query: Mapping[str, str]) -> Reply:
        """A page of those with the labels."""
        selector = query.get("labelSelector", "")
        chosen = [found for found in chosen if _has_labels(found, selector)]
        start, limit = page_start(query), int(query.get("limit") or 0) or len(chosen) or 1
        metadata: dict[str, Any] = {"resourceVersion": self.list_revision()}
        if start + limit < len(chosen):
            token = json.dumps({"rv": 7, "start": start + limit})
            metadata["continue"] = base64.b64encode(token.encode()).decode()
            if not selector and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(chosen) - start - limit
        return list_page(resource, chosen[start : start + limit], metadata)

    def answer(self, request: Request, query: Mapping[str, str] | None = None) -> Answer:
        """What the server in memory answers, to another query if one is given."""
        content_type = request.headers.get("content-type", "")
        query = request.query if query is None else query
        return Answer(*self.reply(request.method, request.path, query, request.body, content_type))


def status(code: int, reason: str, message: str) -> Answer:
    """A refusal as API servers word it."""
    return Answer(*refusal(code, reason, message))


def forbidden(request: Request) -> Answer:
    """403 for a user who may not read what is at this path."""
    match = parse_path(request.path)
    assert match is not None
    resource, _, group = resource_of(match).partition(".")
    verb = "get" if match["name"] else "list"
    where = f'in the namespace "{match["namespace"]}"' if match["namespace"] else "at the cluster scope"
    name = f' "{match["name"]}"' if match["name"] else ""
    cannot = f'User "viewer" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    return status(403, "Forbidden", f"{resource}{name} is forbidden: {cannot}")


def page_start(query: Mapping[str, str]) -> int:
    """The number of the first item of a page."""
    return int(json.loads(base64.b64decode(query["continue"]))["start"]) if "continue" in query else 0


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
