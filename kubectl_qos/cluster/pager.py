"""Lists in pages, decoded item by item while they arrive (client-go's tools/pager)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from kubectl_qos.cluster.background import ahead
from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_body, decode_error
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.snapshot import Arrived
from kubectl_qos.transport import logging as log

T = TypeVar("T")

PAGE_SIZE: Final = 500
_PARTS_AHEAD: Final = 4

Progress = Callable[[Sequence[Any], Arrived], None]
"""Called with the items of each part of a list, and how much has arrived with them."""


class ListMeta(msgspec.Struct, rename="camel", frozen=True):
    """metav1.ListMeta; `continue_token` stands for the next page."""

    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class ListResult(NamedTuple, Generic[T]):
    """All items, and the resourceVersion that they had together."""

    items: list[T]
    resource_version: str


class Pager(Generic[T]):
    """Lists items of one type; `keep` makes what is kept of an item (see k8s/interning.py)."""

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
        """The items of all pages: from the watch cache, or with an empty `revision` from etcd.

        Those of another revision than 0 are nothing older. They come in one piece, as the watch cache has no
        pages of them, or from etcd where it is not so far (504). Pages come again in one piece if their
        resourceVersion expires (410), as in tools/pager FullListIfExpired.
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
                kept.extend(item for item in map(self._keep, items) if item is not None)
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
        """The items as they arrive with the bytes read for them, and the metadata with a page's last ones."""
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
    """The resourceVersion that a list has now, by etcd."""
    return decode_body(_page, client.whole(path, {"limit": "1"}), path).metadata.resource_version


def check_names(items: list[T], what: str) -> list[T]:
    """The same items. Raises QosError for one without a name: any JSON object decodes as an empty pod."""
    named: list[Any] = items
    if not all(item.metadata.name for item in named):
        raise decode_error(what, ValueError("an object has no name"))
    return items


def _parts(client: RestClient, path: str, query: Mapping[str, str]) -> Iterator[bytes | None]:
    """The parts of every page, None after each page; the next page is requested as soon as one is read."""
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

    Where `},{"metadata":` stands between two items, what lies before it decodes as a whole; inside an item
    that fails, and the next place is tried. A page written otherwise is decoded in one piece at its end.
    """

    def __init__(self, decoder: JsonDecoder[list[T]], what: str) -> None:
        self._decoder = decoder
        self._what = what
        self._head = b""
        self._rest = bytearray()
        self._is_in_items = False

    def feed(self, part: bytes) -> list[T]:
        """The items that are complete with this part. Raises QosError for what cannot be decoded."""
        searched = len(self._rest)
        self._rest += part
        if not self._is_in_items:
            start = _ITEMS.search(self._rest)
            if start is None:
                return []
            self._head = bytes(self._rest[: start.start()])
            # What is kept begins with the list's bracket.
            del self._rest[: start.end() - 1]
            self._is_in_items, searched = True, 0
        brace = self._rest.rfind(_BETWEEN, max(searched - len(_BETWEEN), 1))
        return self._until(brace + 1) if brace > 0 else []

    def close(self) -> tuple[list[T], ListMeta]:
        """The last items, and the page's metadata."""
        rest = self._rest
        if not self._is_in_items:
            page = decode_body(_page, rest, self._what)
            if page.items is msgspec.UNSET:
                raise decode_error(self._what, ValueError("it is no list"))
            return [], page.metadata
        end = rest.rfind(b"]")
        while end >= 0:
            # What follows the items may hold lists too: only behind theirs the rest makes an object.
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
    """A page's metadata, from its first bytes, or from its last ones where it is written last."""
    before, items, _ = head.partition(b'"items"')
    after = _AFTER_ITEMS.search(tail)
    texts = [before.rstrip().removesuffix(b",") + b"}"] if items and b'"metadata"' in before else []
    texts += [b"{" + after[1]] if after is not None else []
    for text in (*texts, head):
        with suppress(*UNDECODABLE):
            return _page.decode(text).metadata
    return ListMeta()
