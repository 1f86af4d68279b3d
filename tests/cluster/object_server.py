"""The API server in memory behind HTTP: who may read what, and faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubectl_qos.demo.api import ObjectApi, page_start, parse_path, refusal, resource_of
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
