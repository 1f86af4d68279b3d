"""Requests to an API server: bodies as they arrive, unzipped, and refusals in kubectl's words.

Sources: k8s.io/apimachinery/pkg/api/errors/errors.go (NewGenericServerResponse), k8s.io/client-go/rest,
k8s.io/kubectl/pkg/cmd/util/helpers.go (StandardErrorMessage). Not here: what bodies mean (pager.py).
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kubectl_qos.errors import ApiError, QosError, QuantityError, ServerUnreachable
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

T = TypeVar("T")

PART_BYTES: Final = 1 << 20
UNDECODABLE: Final = (msgspec.MsgspecError, QuantityError, UnicodeDecodeError, RecursionError)
"""What decoding raises for an unexpected body, however odd it is."""

MAX_RETRIES: Final = 10
_MAX_RETRY_SECONDS: Final = 30.0
_MAX_QUOTED_CHARACTERS: Final = 200
_MAX_ERROR_BODY_BYTES: Final = 1 << 20
_CLOCK_TOLERANCE: Final = timedelta(seconds=5)
"""The header Date is in whole seconds and takes its time to arrive."""


class RestClient:
    """Sends GETs to one server, again where it says when; a refusal is an ApiError in kubectl's words."""

    def __init__(self, connection: Connection, *, retries: bool = True) -> None:
        self._connection = connection
        self._retries = retries
        self._ahead = timedelta()

    def without_retries(self) -> RestClient:
        """A client of the same server for callers that retry themselves, or not at all."""
        return RestClient(self._connection, retries=False)

    def now(self) -> datetime:
        """The present by the server's clock: its timestamps are compared with this, and ours may be wrong."""
        return datetime.now(UTC) + self._ahead

    def whole(self, path: str, query: Mapping[str, str]) -> bytes:
        """The whole body."""
        return b"".join(self.parts(path, query))

    def parts(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """The body, part by part; the request is sent when the first part is read."""
        send = partial(self.request_once, path, query)
        response = retrying(send, path, self._connection.deadline()) if self._retries else send()
        try:
            raw = self._raw_parts(response)
            zipped = response.headers.get("Content-Encoding") == "gzip"
            yield from _unzipped(raw, path) if zipped else raw
        finally:
            response.release_conn()

    def request_once(
        self, path: str, query: Mapping[str, str], *, watch_seconds: float | None = None
    ) -> BaseHTTPResponse:
        """A successful response with its body unread; of a watch the server may be silent `watch_seconds`."""
        is_watch = watch_seconds is not None
        response = self._connection.request("GET", path, query, read_seconds=watch_seconds, is_watch=is_watch)
        with suppress(ValueError, TypeError):
            ahead = parsedate_to_datetime(response.headers.get("Date") or "") - datetime.now(UTC)
            self._ahead = ahead if abs(ahead) > _CLOCK_TOLERANCE else timedelta()
        if not _is_success(response):
            raise read_api_error(response)
        return response

    def probe(self, seconds: float) -> None:
        """Send the cheapest request. Raises ServerUnreachable if nothing answers in time."""
        with suppress(ApiError):
            self.request_once("/version", {}, watch_seconds=seconds).drain_conn()

    def is_ready(self, seconds: float) -> bool:
        """Whether the server says so in time, or answers that it does not tell this user."""
        try:
            self.request_once("/readyz", {}, watch_seconds=seconds).drain_conn()
        except QosError as error:
            return isinstance(error, ApiError) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return True

    def unreachable(self, error: Exception) -> ServerUnreachable:
        """Kubectl's sentence for an answer that broke off."""
        return unreachable_error(error, self._connection.server)

    def _raw_parts(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            while part := response.read(PART_BYTES, decode_content=False):
                yield part
        except Exception as error:
            response.close()
            raise self.unreachable(error) from error


def retrying(send: Callable[[], T], what: str, deadline: float | None = None) -> T:
    """What `send` returns, called again where an ApiError says when, until the monotonic deadline."""
    for _ in range(MAX_RETRIES):
        try:
            return send()
        except ApiError as error:
            wait = error.retry_after
            if wait is None or (deadline is not None and time.monotonic() + wait >= deadline):
                raise
            log.log(log.REQUESTS, f"{what}: retry in {wait:.0f} s: {error}")
            time.sleep(wait)
    return send()


def read_body(response: BaseHTTPResponse, server: str, max_bytes: int | None = None) -> bytes:
    """The body of a success. Raises ServerUnreachable where it breaks off, ApiError for any other status."""
    if not _is_success(response):
        raise read_api_error(response)
    try:
        return response.read(max_bytes, decode_content=True)
    except Exception as error:
        response.close()
        raise unreachable_error(error, server) from error
    finally:
        response.release_conn()


def _is_success(response: BaseHTTPResponse) -> bool:
    return HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES


def read_api_error(response: BaseHTTPResponse) -> ApiError:
    """The error that a response stands for, by its status alone where its body cannot be read."""
    try:
        body = response.read(_MAX_ERROR_BODY_BYTES, decode_content=True)
    except Exception:  # noqa: BLE001 - the status alone says enough
        body = b""
    finally:
        response.release_conn()
    error = api_error(response.status, body, response.headers.get("Content-Type", ""))
    error.retry_after = retry_after(response.status, response.headers)
    return error


def decode_error(what: str, error: Exception) -> QosError:
    """The error for an unexpected body."""
    return QosError(
        f"the server's answer for {what} cannot be read: {error}",
        hint="a proxy between here and the API server may have answered in its place",
    )


def decode_body(
    decoder: msgspec.json.Decoder[T] | JsonDecoder[T], body: bytes | bytearray | msgspec.Raw, what: str
) -> T:
    """A decoded body. Raises QosError for an unexpected one."""
    try:
        return decoder.decode(body)
    except UNDECODABLE as error:
        raise decode_error(what, error) from None


def _unzipped(parts: Iterator[bytes], what: str) -> Iterator[bytes]:
    """Unzipped in parts again, so that there need not be room for the whole body."""
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for part in parts:
            left = part
            while left:
                yield unzip.decompress(left, PART_BYTES)
                left = unzip.unconsumed_tail
        yield unzip.flush()
    except zlib.error as error:
        raise decode_error(what, error) from None
    if not unzip.eof:
        raise decode_error(what, EOFError("the compressed body breaks off"))


_GENERIC: Final[Mapping[int, tuple[str, str]]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        (
            "the server was unable to return a response in the time allotted, but may still be processing"
            " the request"
        ),
    ),
}
"""What client-go makes of an answer without a Status: a proxy's, say."""


class Status(msgspec.Struct):
    """metav1.Status; `status` is `Success` or `Failure`."""

    kind: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = HTTPStatus.INTERNAL_SERVER_ERROR


status_decoder = msgspec.json.Decoder(Status)


def api_error(status: int, body: bytes, content_type: str = "") -> ApiError:
    """A refusal in the words of the server, or in client-go's where it has none."""
    if status == HTTPStatus.UNAUTHORIZED:
        return ApiError(
            "You must be logged in to the server (Unauthorized)",
            status=status,
            reason="Unauthorized",
            hint="the token or certificate has expired or is not known to this cluster",
        )
    try:
        answer = status_decoder.decode(body)
    except msgspec.MsgspecError:
        answer = Status()
    if answer.kind == "Status" and (answer.message or answer.reason):
        reason, message = answer.reason, answer.message or "unknown"
    else:
        is_text = not content_type or content_type.startswith("text/")
        reason, message = _generic(status, body if is_text else b"")
    where = f"Error from server ({reason})" if reason else "Error from server"
    return ApiError(f"{where}: {message}", status=status, reason=reason)


def status_error(status: bytes) -> ApiError:
    """The error of a metav1.Status that came without an HTTP status of its own."""
    code: int = HTTPStatus.INTERNAL_SERVER_ERROR
    with suppress(*UNDECODABLE):
        code = status_decoder.decode(status).code
    return api_error(code, status, "application/json")


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """In how many seconds the server wants the request again; None for never, or too late to wait."""
    if status != HTTPStatus.TOO_MANY_REQUESTS and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    text = headers.get("Retry-After", "")
    seconds = float(text) if text.isascii() and text.isdigit() else None
    return seconds if seconds is not None and seconds <= _MAX_RETRY_SECONDS else None


def _generic(status: int, text: bytes) -> tuple[str, str]:
    quoted = " ".join(text.decode(errors="replace").split())[:_MAX_QUOTED_CHARACTERS] or "unknown"
    if status in _GENERIC:
        return _GENERIC[status]
    if status == HTTPStatus.FORBIDDEN:
        return "Forbidden", quoted
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        why = f"an error on the server ({json.dumps(quoted)}) has prevented the request from succeeding"
        return "InternalError", why
    return "", f"the server responded with the status code {status} but did not return more information"
