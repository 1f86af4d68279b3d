"""A server that answers access reviews by a list of rights."""

import json
from collections.abc import Iterable
from typing import Any

from kubectl_qos.transport.client import REVIEWS
from tests.cluster.https_server import Answer, Request

READER = ("get pods in shop", "list pods in shop", "watch pods in shop")


class Reviewer:
    """Allows these rights, said as `list pods.metrics.k8s.io in shop`; without a namespace, in all.

    `faults` by a right come before that; `said` are further fields of each status.
    """

    def __init__(self, allowed: Iterable[str] = (), **said: Any) -> None:
        self.allowed = set(allowed)
        self.said = said
        self.faults: dict[str, Answer] = {}

    def __call__(self, request: Request) -> Answer:
        assert (request.method, request.path) == ("POST", REVIEWS)
        assert request.headers["content-type"] == "application/json"
        right = reviewed_right(request)
        if right in self.faults:
            return self.faults[right]
        return review(allowed=right in self.allowed, **self.said)


def reviewed_right(request: Request) -> str:
    """The right that a review asks for."""
    requested = json.loads(request.body)["spec"]["resourceAttributes"]
    group = f".{requested['group']}" if requested.get("group") else ""
    subresource = f"/{requested['subresource']}" if requested.get("subresource") else ""
    namespace = f" in {requested['namespace']}" if requested.get("namespace") else ""
    return f"{requested['verb']} {requested['resource']}{group}{subresource}{namespace}"


def review(**status: Any) -> Answer:
    body = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }
    return Answer(201, json.dumps(body).encode())
