"""Sends the one kind of request that changes a cluster. Imported by cluster/write.py alone.

A request is sent once. Whatever comes of it is an answer, or an error that says whether it may have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec

from kubectl_qos.cluster.api_errors import refusal, retry_after
from kubectl_qos.edit.patch import CONTENT_TYPE, PatchRequest
from kubectl_qos.errors import ApiError
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import parse_warnings, unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_MOST_BYTES: Final = 16 << 20
"""More than any object: etcd takes 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class PatchResponse:
    """A success: the body, and what the server warns of."""

    body: bytes
    warnings: tuple[str, ...]


def send_patch(connection: Connection, request: PatchRequest, *, dry_run: bool) -> PatchResponse:
    """The server's answer to a request, sent once.

    Raises:
        ApiError: it answered with something else than a success.
        ServerUnreachable: no whole answer came; `may_have_arrived` says whether the request left.
    """
    body = msgspec.json.encode(request.body)
    response = connection.patch(request.path, request.query(dry_run=dry_run), body, CONTENT_TYPE)
    is_success = HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES
    try:
        said = response.read(_MOST_BYTES, decode_content=True)
    except Exception as error:
        response.close()
        if not is_success:
            raise _refused(response, b"") from error
        broken = unreachable_error(error, connection.server)
        broken.may_have_arrived = True
        raise broken from error
    finally:
        response.release_conn()
    if not is_success:
        raise _refused(response, said)
    return PatchResponse(said, parse_warnings(_each(response.headers, "Warning")))


def _refused(response: BaseHTTPResponse, said: bytes) -> ApiError:
    error = refusal(response.status, said, response.headers.get("Content-Type", ""))
    error.retry_after = retry_after(response.status, response.headers)
    return error


def _each(headers: Mapping[str, str], name: str) -> list[str]:
    """Every value of a header that may be there several times."""
    from urllib3 import HTTPHeaderDict

    return headers.getlist(name) if isinstance(headers, HTTPHeaderDict) else [headers.get(name, "")]
