"""What the API server lets a user do: SelfSubjectAccessReviews (k8s.io/api/authorization/v1/types.go)."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import msgspec

from kubectl_qos.cluster.background import run_all
from kubectl_qos.cluster.http import decode_body, read_body, retrying
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.rbac import AccessReview, Permission
from kubectl_qos.transport.client import REVIEWS, Connection

AT_ONCE: Final = 8
"""Fewer than the connections that are kept."""


class _Attributes(msgspec.Struct, frozen=True, omit_defaults=True):
    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    allowed: bool
    reason: str = ""
    evaluation_error: str = ""


class _Review(msgspec.Struct):
    status: _ReviewStatus


_review = msgspec.json.Decoder(_Review)


def review_access(
    connection: Connection, permissions: Iterable[Permission], namespace: str | None
) -> dict[Permission, AccessReview]:
    """The server's review of each permission; namespaced ones in this namespace, or in all for None.

    A server that refuses one review refuses every one, so the first is sent alone. Raises QosError.
    """
    requested = {
        item: _Attributes(
            item.verb, item.resource, item.group, item.subresource, item.namespace(namespace) or ""
        )
        for item in permissions
    }
    first, *others = dict.fromkeys(requested.values())
    try:
        reviews: dict[_Attributes, AccessReview | QosError] = {first: _review_one(connection, first)}
    except ServerUnreachable:
        raise
    except QosError as error:
        if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return dict.fromkeys(requested, AccessReview(None, str(error)))
    reviews |= run_all(lambda attributes: _review_one(connection, attributes), others, at_once=AT_ONCE)
    answers = {permission: reviews[attributes] for permission, attributes in requested.items()}
    return {
        permission: AccessReview(None, str(answer)) if isinstance(answer, QosError) else answer
        for permission, answer in answers.items()
    }


def _review_one(connection: Connection, attributes: _Attributes) -> AccessReview:
    request = msgspec.json.encode(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
    )

    def send() -> bytes:
        return read_body(connection.request("POST", REVIEWS, body=request), connection.server)

    status = decode_body(_review, retrying(send, "the access review"), "the access review").status
    return AccessReview(status.allowed, "; ".join(filter(None, (status.reason, status.evaluation_error))))
