"""Requests to an API server: paged lists decoded as they arrive.

Not here: connections (connection.py), what a refusal is called (refusals.py), what a list is for (live.py).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from kubectl_qos.cluster.connection import Connection, unreachable
from kubectl_qos.cluster.prefetch import ahead
from kubectl_qos.cluster.refusals import MOST_RETRIES, refusal, retry_after
from kubectl_qos.cluster.usage import usage_by_pod
from kubectl_qos.cluster.workloads import path_of, segment
from kubectl_qos.errors import ApiError, QosError, QuantityError
from kubectl_qos.k8s.metrics import PodMetrics
from kubectl_qos.k8s.objects import NodeObject, Pod, decoder_of
from kubectl_qos.k8s.sharing import Sharing
from kubectl_qos.k8s.usage import PodKey, PodUsage

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

PAGE_SIZE: Final = 500

T = TypeVar("T")


class ListMeta(msgspec.Struct, rename="camel", frozen=True):
    """Where a list stands; `continue_token` asks for the next page."""

    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: list[T] = []


class _Head(msgspec.Struct):
    metadata: ListMeta = ListMeta()


_pods = decoder_of(Page[Pod])
_nodes = decoder_of(Page[NodeObject])
_metrics = decoder_of(Page[PodMetrics])
_pod = decoder_of(Pod)
_node = decoder_of(NodeObject)
_object = msgspec.json.Decoder(dict[str, Any])
_head = msgspec.json.Decoder(_Head)

Progress = Callable[[int, int | None], None]
"""Called with how many items have arrived, and how many there will be if the server says so."""


class Api:
    """The few requests that predictions need, each returning decoded values."""

    def __init__(self, connection: Connection, *, page_size: int = PAGE_SIZE) -> None:
        self._connection = connection
        self._page_size = page_size

    def server_version(self) -> str:
        """The API server's version such as `v1.36.2`."""
        return str(_decoded(_object, self._get("/version", {}), "the version").get("gitVersion", ""))

    def pods(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        progress: Progress | None = None,
    ) -> list[Pod]:
        """Pods of a namespace or of the whole cluster."""
        path = "/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{segment(namespace)}/pods"
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        return self._list(path, query, _pods, Sharing().pod, progress)

    def pod(self, namespace: str, name: str) -> Pod:
        """One pod."""
        return _decoded(_pod, self._get(path_of("Pod", namespace, name), {}), f"pod {name}")

    def plain(self, path: str, what: str) -> dict[str, Any]:
        """Any object as plain JSON, nothing left out."""
        return _decoded(_object, self._get(path, {}), what)

    def nodes(self) -> list[NodeObject]:
        """Every node."""
        return self._list("/api/v1/nodes", {}, _nodes, _as_it_is)

    def node(self, name: str) -> NodeObject:
        """One node."""
        return _decoded(_node, self._get(f"/api/v1/nodes/{segment(name)}", {}), f"node {name}")

    def configz(self, node: str) -> dict[str, Any]:
        """The configuration that a node's kubelet runs with, through the node proxy."""
        path = f"/api/v1/nodes/{segment(node)}/proxy/configz"
        return _decoded(_object, self._get(path, {}), f"the configuration of {node}'s kubelet")

    def pod_metrics(self, namespace: str | None = None) -> dict[PodKey, PodUsage]:
        """Usage as the metrics API has it; it knows no pages."""
        base = "/apis/metrics.k8s.io/v1beta1"
        path = f"{base}/pods" if namespace is None else f"{base}/namespaces/{segment(namespace)}/pods"
        return usage_by_pod(_let_go(_decoded(_metrics, self._get(path, {}), "pod metrics").items))

    def _list(
        self,
        path: str,
        query: Mapping[str, str],
        decoder: msgspec.json.Decoder[Page[T]],
        each: Callable[[T], T],
        progress: Progress | None = None,
    ) -> list[T]:
        """The items of all pages.

        A list that takes so long that its revision is gone before the last page (410) is asked for again,
        in one piece, as client-go does it (tools/pager FullListIfExpired).
        """
        try:
            return self._pages(path, query, decoder, each, progress, limit=self._page_size)
        except ApiError as error:
            if error.status != HTTPStatus.GONE:
                raise
        return self._pages(path, query, decoder, each, progress, limit=None)

    def _pages(
        self,
        path: str,
        query: Mapping[str, str],
        decoder: msgspec.json.Decoder[Page[T]],
        each: Callable[[T], T],
        progress: Progress | None,
        *,
        limit: int | None,
    ) -> list[T]:
        """The items of all pages; the next page is on its way while one is decoded."""
        found: list[T] = []
        for body in ahead(self._bodies(path, query, limit)):
            page = _decoded(decoder, body, path)
            found.extend(map(each, page.items))
            if progress is not None:
                left = page.metadata.remaining_item_count
                progress(len(found), len(found) + left if left is not None else None)
        return found

    def _bodies(self, path: str, query: Mapping[str, str], limit: int | None) -> Iterator[bytes]:
        token = ""
        while True:
            asked = {name: value for name, value in query.items() if value}
            if limit is not None:
                asked["limit"] = str(limit)
            if token:
                asked["continue"] = token
            body = self._get(path, asked)
            yield body
            before, token = token, _continue_token(body)
            if not token:
                return
            if token == before:
                raise QosError(f"the server's list for {path} does not get on: it repeats its continue token")

    def _get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The body of a successful answer. Raises ApiError in kubectl's words for any other."""
        response, body = self._answer(path, query)
        for _ in range(MOST_RETRIES):
            seconds = retry_after(response.status, response.headers)
            if seconds is None:
                break
            time.sleep(seconds)
            response, body = self._answer(path, query)
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(response.status, body, response.headers.get("Content-Type", ""))
        return body

    def _answer(self, path: str, query: Mapping[str, str]) -> tuple[BaseHTTPResponse, bytes]:
        response = self._connection.request("GET", path, query)
        try:
            body = response.read(decode_content=False)
        except Exception as error:
            raise unreachable(error, self._connection.server) from error
        finally:
            response.release_conn()
        return response, _unzipped(body, path) if response.headers.get("Content-Encoding") == "gzip" else body


def _unzipped(body: bytes, what: str) -> bytes:
    """What a gzip body holds, in one piece of memory: its last four bytes say how long that is.

    A length that deflate cannot reach is not believed.
    """
    length = min(int.from_bytes(body[-4:], "little"), len(body) * _MOST_DEFLATED)
    try:
        return zlib.decompress(body, zlib.MAX_WBITS | 16, bufsize=max(length, 1))
    except zlib.error as error:
        raise _unreadable(what, error) from None


_MOST_DEFLATED: Final = 1032
"""How many bytes one byte of a deflated text stands for at most."""


def _as_it_is(item: T) -> T:
    return item


def _let_go(items: list[T]) -> Iterator[T]:
    """The items, each forgotten once it is taken, so that no room is needed for all of them twice."""
    items.reverse()
    while items:
        yield items.pop()


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, QuantityError) as error:
        raise _unreadable(what, error) from None


def _unreadable(what: str, error: Exception) -> QosError:
    return QosError(
        f"the server's answer for {what} cannot be read: {error}",
        hint="a proxy between here and the API server may have answered in its place",
    )


def _continue_token(body: bytes) -> str:
    """The token of the next page, read before the page itself is decoded.

    Servers write the list's metadata before its items, so its first bytes are enough; should one not, the
    whole page is looked through.
    """
    head, items, _ = body[:_HEAD_BYTES].partition(b'"items"')
    if items and b'"metadata"' in head:
        with suppress(msgspec.MsgspecError):
            return _head.decode(head.rstrip().removesuffix(b",") + b"}").metadata.continue_token
    try:
        return _head.decode(body).metadata.continue_token
    except msgspec.MsgspecError:
        return ""


_HEAD_BYTES: Final = 4096
