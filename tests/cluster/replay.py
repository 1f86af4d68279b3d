"""The recorded exchanges of a real API server as answers.

A request is matched by method, path, user, the query parameters that change a list, and the headers that
change a representation. What was not recorded answers 404 with a Status, as the real one does.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import status
from tests.recordings.files import names_in, read_json

USERS = ("admin", "viewer")
"""Each user's bearer token is the name; a request without a token is anonymous."""

_MATTERS = ("continue", "labelSelector", "fieldSelector", "watch", "dryRun", "force")
_HEADERS = ("accept", "content-type", "impersonate-user")


class Replay:
    """Answers from the recordings, save those left out by name; of several that match, the first."""

    def __init__(self, *, without: Collection[str] = ()) -> None:
        self._exchanges = [found for found in exchanges() if found["name"] not in without]

    def __call__(self, request: Request) -> Answer:
        if request.token and request.token not in USERS:
            return answer_of(recorded("bad-token-401"))
        user = request.token or request.user or "anonymous"
        for exchange in self._exchanges:
            if exchange["user"] == user and _matches(exchange, request):
                return answer_of(exchange)
        return status(404, "NotFound", f"nothing was recorded for {request.method} {request.path}")


@cache
def exchanges() -> tuple[dict[str, Any], ...]:
    """Every recording, in order."""
    return tuple(read_json(name) for name in names_in("apiserver-1.36"))


def recorded(name: str) -> dict[str, Any]:
    return next(exchange for exchange in exchanges() if exchange["name"] == name)


def answer_of(exchange: Mapping[str, Any]) -> Answer:
    """The answer of a recording, as it went over the wire."""
    response = exchange["response"]
    if "lines" in response:
        body = "".join(f"{line}\n" for line in response["lines"]).encode()
    elif isinstance(response["body"], str):
        body = response["body"].encode()
    else:
        body = json.dumps(response["body"], separators=(",", ":")).encode()
    return Answer(response["status"], body, response["headers"].get("Content-Type", "text/plain"))


def _matches(exchange: Mapping[str, Any], request: Request) -> bool:
    recorded_request = exchange["request"]
    parts = urlsplit(recorded_request["path"])
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    headers = {name.lower(): value for name, value in recorded_request["headers"].items()}
    return (
        recorded_request["method"] == request.method
        and parts.path == request.path
        and all(query.get(name) == request.query.get(name) for name in _MATTERS)
        and all(headers.get(name) == request.headers.get(name) for name in _HEADERS)
        and _same_page(exchange, query.get("limit"), request.query.get("limit"))
        and (not request.body or json.loads(request.body) == recorded_request["body"])
    )


def _same_page(exchange: Mapping[str, Any], recorded_limit: str | None, limit: str | None) -> bool:
    """Whether a server would answer both limits alike: they are equal, or the list is shorter than both."""
    if recorded_limit == limit:
        return True
    body = exchange["response"].get("body")
    if not isinstance(body, dict) or "items" not in body:
        return True
    whole = not body["metadata"].get("continue") and "continue" not in exchange["request"]["path"]
    return whole and (limit is None or len(body["items"]) <= int(limit))
