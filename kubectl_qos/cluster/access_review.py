"""What a person may do, as the API server itself judges it: SelfSubjectAccessReviews.

Source: k8s.io/api/authorization/v1/types.go. Not here: which rights are wanted (k8s/rights.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec

from kubectl_qos.cluster.api_errors import MOST_RETRIES, refusal, retry_after
from kubectl_qos.cluster.http import decode_error
from kubectl_qos.cluster.pager import side_by_side
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.rbac import AccessReview, Permission
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import REVIEWS, Connection
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

AT_ONCE: Final = 8
"""So many reviews are under way at a time, fewer than the connections that are kept."""


class _Attributes(msgspec.Struct, frozen=True, omit_defaults=True):
    """ResourceAttributes; no namespace is all of them."""

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
    connection: Connection, rights: Iterable[Permission], namespace: str | None
) -> dict[Permission, AccessReview]:
    """The server's verdict on each right, those of one namespace in this one, or in all for None.

    A server that refuses one review refuses every one, so the first goes ahead alone. Raises QosError where
    no server answers and where it does not know who asks.
    """
    wanted = {right: _attributes(right, namespace) for right in rights}
    first, *others = dict.fromkeys(wanted.values())
    try:
        found = {first: _reviewed(connection, first)}
    except ServerUnreachable:
        raise
    except QosError as error:
        if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return dict.fromkeys(wanted, AccessReview(None, str(error)))
    outcomes = side_by_side(lambda question: _access_review(connection, question), others, most=AT_ONCE)
    found |= {question: outcome() for question, outcome in outcomes.items()}
    return {right: found[attributes] for right, attributes in wanted.items()}


def _attributes(right: Permission, namespace: str | None) -> _Attributes:
    place = right.namespace(namespace) or ""
    return _Attributes(right.verb, right.resource, right.group, right.subresource, place)


def _access_review(connection: Connection, attributes: _Attributes) -> AccessReview:
    """One review, unknown where it could not be had."""
    try:
        return _reviewed(connection, attributes)
    except QosError as error:
        return AccessReview(None, str(error))


def _reviewed(connection: Connection, attributes: _Attributes) -> AccessReview:
    """One review. Raises QosError where it is refused, fails, or is not what was asked for."""
    body = msgspec.json.encode(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
    )
    response, said = _posted(connection, body)
    for _ in range(MOST_RETRIES):
        seconds = retry_after(response.status, response.headers)
        if seconds is None:
            break
        log.log(log.REQUESTS, f"the review is asked for again in {seconds:.0f} s")
        time.sleep(seconds)
        response, said = _posted(connection, body)
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(response.status, said, response.headers.get("Content-Type", ""))
    try:
        status = _review.decode(said).status
    except msgspec.MsgspecError as error:
        raise decode_error("the access review", error) from None
    return AccessReview(status.allowed, "; ".join(filter(None, (status.reason, status.evaluation_error))))


def _posted(connection: Connection, body: bytes) -> tuple[BaseHTTPResponse, bytes]:
    response = connection.request("POST", REVIEWS, body=body)
    try:
        return response, response.read(decode_content=True)
    except Exception as error:
        raise unreachable_error(error, connection.server) from error
    finally:
        response.release_conn()
