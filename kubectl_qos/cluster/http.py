"""Requests to an API server: lists are decoded while they arrive, and errors are in kubectl's words.

Sources: k8s.io/apimachinery/pkg/api/errors/errors.go (NewGenericServerResponse), k8s.io/client-go/rest and
tools/pager, k8s.io/kubectl/pkg/cmd/util/helpers.go (StandardErrorMessage).
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from kubectl_qos.cluster.background import ahead
from kubectl_qos.errors import ApiError, QosError, QuantityError, ServerUnreachable
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.snapshot import Arrived
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse


T = TypeVar("T")

PART_BYTES: Final = 1 << 20
UNDECODABLE: Final = (msgspec.MsgspecError, QuantityError, UnicodeDecodeError, RecursionError)
"""All errors that decoding an unexpected body may raise."""

Progress = Callable[[Sequence[Any], Arrived], None]
"""Called with the items of each part of a list, and how much of the list has arrived."""

PAGE_SIZE: Final = 500
MAX_RETRIES: Final = 10
_MAX_RETRY_SECONDS: Final = 30.0
_PARTS_AHEAD: Final = 4
_MAX_QUOTED_CHARACTERS: Final = 200
_MAX_ERROR_BODY_BYTES: Final = 1 << 20
_CLOCK_TOLERANCE: Final = timedelta(seconds=5)
"""The header Date has whole seconds, and is old when it arrives."""


class RestClient:
    """Sends GETs to one server, repeated after Retry-After. Errors are ApiErrors in kubectl's words."""

    def __init__(self, connection: Connection, *, retries: bool = True) -> None:
        self._connection = connection
        self._retries = retries
        self._ahead = timedelta()

    def without_retries(self) -> RestClient:
        """Return a client of the same server for callers that retry themselves, or not at all."""
        return RestClient(self._connection, retries=False)

    def now(self) -> datetime:
        """Return the present by the server's clock, to compare it with the server's timestamps."""
        return datetime.now(UTC) + self._ahead

    def whole(self, path: str, query: Mapping[str, str]) -> bytes:
        """Return the whole body."""
        return b"".join(self.parts(path, query))

    def parts(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the body part by part; the request is sent when the first part is read."""
        send = partial(self.request_once, path, query)
        response = retrying(send, path, self._connection.deadline()) if self._retries else send()
        try:
            raw, zipped = self._raw_parts(response), response.headers.get("Content-Encoding") == "gzip"
            yield from _unzipped(raw, path) if zipped else raw
        finally:
            response.release_conn()

    def request_once(
        self, path: str, query: Mapping[str, str], *, watch_seconds: float | None = None
    ) -> BaseHTTPResponse:
        """Return a successful response with an unread body; a watch may be silent for `watch_seconds`."""
        is_watch = watch_seconds is not None
        response = self._connection.request("GET", path, query, read_seconds=watch_seconds, is_watch=is_watch)
        with suppress(ValueError, TypeError):
            ahead = parsedate_to_datetime(response.headers.get("Date") or "") - datetime.now(UTC)
            self._ahead = ahead if abs(ahead) > _CLOCK_TOLERANCE else timedelta()
        if not _is_success(response):
            raise read_api_error(response)
        return response

    def probe(self, seconds: float) -> None:
        """Send the cheapest request. Raises ServerUnreachable if there is no answer in time."""
        with suppress(ApiError):
            self.request_once("/version", {}, watch_seconds=seconds).drain_conn()

    def is_ready(self, seconds: float) -> bool:
        """Return whether the server answers in time that it is ready, or refuses to tell this user."""
        try:
            self.request_once("/readyz", {}, watch_seconds=seconds).drain_conn()
        except QosError as error:
            return isinstance(error, ApiError) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return True

    def unreachable(self, error: Exception) -> ServerUnreachable:
        """Return kubectl's error for an answer that broke off."""
        return unreachable_error(error, self._connection.server)

    def _raw_parts(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            while part := response.read(PART_BYTES, decode_content=False):
                yield part
        except Exception as error:
            response.close()
            raise self.unreachable(error) from error


def retrying(send: Callable[[], T], what: str, deadline: float | None = None) -> T:
    """Return the result of `send`, called again after an ApiError's `retry_after`, until the deadline."""
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
    """Return the body of a success. Raises ServerUnreachable if it breaks off, ApiError for another one."""
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
    """Return the error of a response, only by its status if its body cannot be read."""
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
    """Return the error for an unexpected body."""
    return QosError(
        f"the server's answer for {what} cannot be read: {error}",
        hint="a proxy between here and the API server may have answered in its place",
    )


def decode_body(
    decoder: msgspec.json.Decoder[T] | JsonDecoder[T], body: bytes | bytearray | msgspec.Raw, what: str
) -> T:
    """Return the decoded body. Raises QosError for an unexpected one."""
    try:
        return decoder.decode(body)
    except UNDECODABLE as error:
        raise decode_error(what, error) from None


def _unzipped(parts: Iterator[bytes], what: str) -> Iterator[bytes]:
    """Unzip the body part by part, so that it never is in memory as a whole."""
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
"""Client-go's words for an answer without a Status, such as a proxy's."""


class Status(msgspec.Struct):
    """metav1.Status."""

    kind: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = HTTPStatus.INTERNAL_SERVER_ERROR


status_decoder = msgspec.json.Decoder(Status)


def api_error(status: int, body: bytes, content_type: str = "") -> ApiError:
    """Return the error in the words of the server, or in client-go's if it has none."""
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
    """Return the error of a metav1.Status that came without an HTTP status."""
    code: int = HTTPStatus.INTERNAL_SERVER_ERROR
    with suppress(*UNDECODABLE):
        code = status_decoder.decode(status).code
    return api_error(code, status, "application/json")


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which to send the request again; None: never, or after too long a wait."""
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


class ListMeta(msgspec.Struct, rename="camel", frozen=True):
    """metav1.ListMeta; `continue_token` requests the next page."""

    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class ListResult(NamedTuple, Generic[T]):
    """All items, and the resourceVersion of the list."""

    items: list[T]
    resource_version: str


class Pager(Generic[T]):
    """Lists items of one type; `keep` reduces an item to what stays in memory (see k8s/interning.py)."""

    def __init__(self, item_type: type[T], keep: Callable[[T], Any] | None = None) -> None:
        self._decoder = JsonDecoder(list[item_type])  # type: ignore[valid-type]
        self._keep = keep

    def list_all(
        self,
        client: RestClient,
        path: str,
        query: Mapping[str, str],
        *,
        revision: str = "0",
        progress: Progress | None = None,
    ) -> ListResult[T]:
        """Return the items of all pages: from the watch cache, or with an empty `revision` from etcd.

        With a `revision` other than 0, the list is at least that new. It comes in one piece, because the
        watch cache has no pages for it, or from etcd if the watch cache is older (504). If the
        resourceVersion of pages expires (410), the list is requested again in one piece, as in tools/pager
        FullListIfExpired.
        """
        parameters = {name: value for name, value in query.items() if value}
        selectors = "".join(f", {name} {value}" for name, value in parameters.items())
        of_cache = {"resourceVersion": revision} if revision else {}
        pages = {"limit": str(PAGE_SIZE)}
        log.log(log.DECISIONS, f"list {path}{' from the watch cache' if revision else ''}{selectors}")
        if revision not in {"", "0"}:
            try:
                not_older = {**parameters, **of_cache, "resourceVersionMatch": "NotOlderThan"}
                return self._pages(client, path, not_older, progress)
            except ApiError as error:
                if error.status not in {HTTPStatus.GONE, HTTPStatus.GATEWAY_TIMEOUT}:
                    raise
            log.log(log.DECISIONS, f"list {path} from etcd: the watch cache has no revision {revision}")
            of_cache = {}
        try:
            return self._pages(client, path, {**parameters, **of_cache, **pages}, progress)
        except ApiError as error:
            if error.status != HTTPStatus.GONE:
                raise
        log.log(log.DECISIONS, f"list {path} again in one piece: its resourceVersion expired meanwhile")
        return self._pages(client, path, {**parameters, **of_cache}, progress)

    def _pages(
        self, client: RestClient, path: str, query: Mapping[str, str], progress: Progress | None
    ) -> ListResult[T]:
        kept: list[T] = []
        meta = ListMeta()
        total: int | None = None
        size = 0
        for items, page, read in self.stream(client, path, query):
            before = len(kept)
            if self._keep is not None:
                kept.extend(filter(None, map(self._keep, items)))
            else:
                kept.extend(items)
            size += read
            if page is not None:
                left = page.remaining_item_count
                meta, total = page, len(kept) + left if left is not None else None
            if progress is not None and kept:
                progress(kept[before:], Arrived(len(kept), total, size))
        return ListResult(kept, meta.resource_version)

    def stream(
        self, client: RestClient, path: str, query: Mapping[str, str]
    ) -> Iterator[tuple[list[T], ListMeta | None, int]]:
        """Yield items as they arrive, the bytes read for them, and the metadata at the end of a page."""
        page: PageItems[T] = PageItems(self._decoder, path)
        meta = ListMeta()
        for part in ahead(_parts(client, path, query), at_most=_PARTS_AHEAD):
            if part is not None:
                yield check_names(page.feed(part), path), None, len(part)
            else:
                items, meta = page.close()
                yield check_names(items, path), meta, 0
                page = PageItems(self._decoder, path)
        if meta.continue_token:
            raise decode_error(path, EOFError("the list goes on, but its continue token was not found"))


def newest_revision(client: RestClient, path: str) -> str:
    """Return the current resourceVersion of a list, from etcd."""
    return decode_body(_page, client.whole(path, {"limit": "1"}), path).metadata.resource_version


def check_names(items: list[T], what: str) -> list[T]:
    """Return the items. Raises QosError for one without a name: any JSON object decodes as an empty pod."""
    named: list[Any] = items
    if not all(item.metadata.name for item in named):
        raise decode_error(what, ValueError("an object has no name"))
    return items


def _parts(client: RestClient, path: str, query: Mapping[str, str]) -> Iterator[bytes | None]:
    """Yield the parts of every page, and None after each page."""
    token = ""
    while True:
        head, tail = b"", b""
        for part in client.parts(path, query):
            head = head or part[:_END_BYTES]
            tail = (tail + part[-_END_BYTES:])[-_END_BYTES:]
            yield part
        yield None
        before, token = token, _meta(head, tail).continue_token
        if not token:
            return
        if token == before:
            raise QosError(f"the server's list for {path} does not end: it repeats its continue token")
        query = {name: value for name, value in query.items() if name != "resourceVersion"}
        query["continue"] = token


class PageItems(Generic[T]):
    """Cuts one page into items while it arrives.

    A page is cut at `},{"metadata":` between two items. The same bytes may be inside an item; then the
    bytes before them do not decode, and a later place is tried. A page of another form is decoded at its end,
    in one piece.
    """

    def __init__(self, decoder: JsonDecoder[list[T]], what: str) -> None:
        self._decoder = decoder
        self._what = what
        self._head = b""
        self._rest = bytearray()
        self._is_in_items = False

    def feed(self, part: bytes) -> list[T]:
        """Return the items that this part completes. Raises QosError if they cannot be decoded."""
        searched = len(self._rest)
        self._rest += part
        if not self._is_in_items:
            start = _ITEMS.search(self._rest)
            if start is None:
                return []
            self._head = bytes(self._rest[: start.start()])
            # What stays begins with the list's bracket.
            del self._rest[: start.end() - 1]
            self._is_in_items, searched = True, 0
        brace = self._rest.rfind(_BETWEEN, max(searched - len(_BETWEEN), 1))
        return self._until(brace + 1) if brace > 0 else []

    def close(self) -> tuple[list[T], ListMeta]:
        """Return the last items, and the page's metadata."""
        rest = self._rest
        if not self._is_in_items:
            page = decode_body(_page, rest, self._what)
            if page.items is msgspec.UNSET:
                raise decode_error(self._what, ValueError("it is no list"))
            return [], page.metadata
        end = rest.rfind(b"]")
        while end >= 0:
            # The metadata may have brackets too: only what follows the items' bracket completes an object.
            with suppress(*UNDECODABLE):
                meta = _page.decode(self._head + b'"items":[]' + rest[end + 1 :]).metadata
                del rest[end + 1 :]
                return decode_body(self._decoder, rest, self._what), meta
            end = rest.rfind(b"]", 0, end)
        raise decode_error(self._what, EOFError("the list breaks off"))

    def _until(self, comma: int) -> list[T]:
        rest = self._rest
        rest[comma] = _CLOSE
        try:
            with memoryview(rest) as view, view[: comma + 1] as piece:
                items = self._decoder.decode(piece)
        except UNDECODABLE as error:
            if type(error) is msgspec.DecodeError:
                rest[comma] = _COMMA
                return []
            raise decode_error(self._what, error) from None
        del rest[:comma]
        rest[0] = _OPEN
        return items


class _Page(msgspec.Struct):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_page = msgspec.json.Decoder(_Page)
_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[')
_AFTER_ITEMS: Final = re.compile(rb'\]\s*,\s*("metadata"\s*:.*)', re.DOTALL)
_BETWEEN: Final = b'},{"metadata":'
_OPEN, _CLOSE, _COMMA = b"[],"
_END_BYTES: Final = 4096


def _meta(head: bytes, tail: bytes) -> ListMeta:
    """Return a page's metadata, from its first bytes, or from its last bytes if it comes after the items."""
    before, items, _ = head.partition(b'"items"')
    after = _AFTER_ITEMS.search(tail)
    texts = [before.rstrip().removesuffix(b",") + b"}"] if items and b'"metadata"' in before else []
    texts += [b"{" + after[1]] if after is not None else []
    for text in (*texts, head):
        with suppress(*UNDECODABLE):
            return _page.decode(text).metadata
    return ListMeta()
