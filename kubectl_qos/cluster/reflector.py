"""Follow one kind of object: list, watch, and list again when a watch cannot go on.

This is client-go's reflector (tools/cache/reflector.go): a streaming list if the server has it, else a list
and a watch from its resourceVersion; bookmarks.

We list again after a resourceVersion that is too old (410) or newer than the server's newest (it was restored
from a backup), and after an event that cannot be decoded; after 410 at once, unless the last list was too old
as well. A watch that is silent is opened again at once. Any other failure is retried from the same
resourceVersion, each time later than the last, but soon while the server says that it is ready.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from kubectl_qos.cluster.http import (
    PAGE_SIZE,
    Pager,
    RestClient,
    check_names,
    decode_body,
    decode_error,
    newest_revision,
    status_error,
)
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.objects import JsonDecoder, NodeObject, Pod
from kubectl_qos.k8s.snapshot import Arrived
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.net_errors import is_read_timeout, set_read_timeout

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

WATCH_SECONDS: Final = 290
"""About how long a server keeps a watch; proxies often end connections after five minutes."""
FIRST_RETRY_SECONDS: Final = 0.8
MAX_RETRY_SECONDS: Final = 30.0
_MAX_DOUBLINGS: Final = 10
_SOON_TRIES: Final = 10
"""How many tries come soon while a server that cannot serve yet says that it is ready."""
LIST_SILENCE_SECONDS: Final = 60.0
SILENCE_SECONDS: Final = 120.0
"""Twice the interval of bookmarks (apiserver/pkg/storage/cacher, defaultBookmarkFrequency)."""
_MIN_WATCH_SECONDS: Final = 1.0
ACCEPTED_SECONDS: Final = 1.0
"""A server that accepts a watch (HTTP 200) says within this that its resourceVersion is too old."""
_OPEN_SECONDS: Final = 30.0
"""How long a server may take to accept a watch."""
_READ_BYTES: Final = 1 << 16
_MAX_LINE_BYTES: Final = 1 << 26
_EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_NO_STREAMING_LIST: Final = frozenset({400, 403, 404, 405, 406, 415, 422, 500})
"""A server without streaming lists, or one that forbids watching, answers a streaming list with these."""
_NOT_YET: Final = frozenset({429, 503, 504})
"""A server that has begun to answer refuses with these what it cannot serve yet."""

T = TypeVar("T", bound=Pod | NodeObject)


@dataclass(frozen=True, slots=True)
class EventHandler(Generic[T]):
    """The callbacks of a reflector, called in its own thread.

    `arrive` gets the parts of the first list as they arrive, `replace` all items. `heard` says that the
    server answers, `synced` that the items are the server's, `out_of_sync` that they may be old and how many
    seconds later the next try is, `listing` that they are listed again. `polled` says that they may only be
    listed, with None that they may be watched again; after `refused` nothing more comes.
    """

    replace: Callable[[list[T]], None]
    put: Callable[[T], None]
    drop: Callable[[T], None]
    heard: Callable[[], None]
    synced: Callable[[], None]
    out_of_sync: Callable[[QosError, float], None]
    listing: Callable[[], None]
    polled: Callable[[ApiError | None], None]
    refused: Callable[[ApiError], None]
    arrive: Callable[[Sequence[T], Arrived], None] | None = None


class Reflector(Generic[T]):
    """Follows the items of a path with selectors until it is closed.

    `keep` reduces an item to what stays in memory, and returns None to leave it out. Items that may not be
    watched are listed every `poll_seconds`.
    """

    def __init__(  # noqa: PLR0913 - as in client-go
        self,
        client: RestClient,
        path: str,
        selectors: Mapping[str, str],
        item_type: type[T],
        keep: Callable[[T], T | None],
        handler: EventHandler[T],
        poll_seconds: float,
    ) -> None:
        self._client = client
        self._path = path
        self._selectors = selectors
        self._decoder = JsonDecoder(item_type)
        self._pager = Pager(item_type, keep)
        self._keep = keep
        self._handler = handler
        self._poll_seconds = poll_seconds
        self._wake = threading.Event()
        self._closed = False
        self._response: BaseHTTPResponse | None = None
        self._interruption: QosError | None = None
        self._revision = ""
        self._listed_from = "0"
        """The oldest resourceVersion that a list may have: 0 for any, empty for the newest."""
        self._is_server_ready = True
        self._streams = True
        self._may_watch = True
        self._has_listed = False
        self._failures = 0
        self._lists = 0
        """Lists since the last watch event."""

    def run(self) -> None:
        """Follow until closed or refused; the body of a thread."""
        while not self._closed:
            self._wake.clear()
            try:
                self._list_and_watch()
            except ApiError as error:
                if error.status == HTTPStatus.FORBIDDEN and not self._has_listed:
                    self._handler.refused(error)
                    return
                if error.status != HTTPStatus.GONE or not self._revision or self._lists > 1:
                    self._wait_for_retry(error)
                if error.status == HTTPStatus.GONE:
                    self._relist()
            except ServerUnreachable as error:
                self._wait_for_retry(error)
            except QosError as error:
                # The same watch would bring the same again.
                self._relist()
                self._wait_for_retry(error)
            except Exception as error:  # noqa: BLE001 - nothing else catches what a thread raises
                self._relist()
                hint = "this is a defect of kubectl-qos"
                self._wait_for_retry(QosError(f"unexpected {type(error).__name__}: {error}", hint))

    def retry_now(self) -> None:
        """End the wait for a retry, and begin again with short ones."""
        self._failures = 0
        self._wake.set()

    def note_server(self, *, ready: bool) -> None:
        """Note whether a stale server says that it is ready; once it does, retry at once."""
        if ready and not self._is_server_ready:
            self.retry_now()
        self._is_server_ready = ready

    def interrupt(self, error: QosError) -> None:
        """Report that the server does not answer, and end a read that may wait for it for ever."""
        self._interruption = error
        self._handler.out_of_sync(error, 0.0)
        self._stop_waiting()

    def close(self) -> None:
        """End, and also end a read that waits for the server."""
        self._closed = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self._wake.set()
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.shutdown()

    def _list_and_watch(self) -> None:
        if self._revision:
            self._check_past()
        if not self._revision:
            if self._has_listed:
                self._handler.listing()
            if self._streams:
                self._stream_list()
                return
            self._list()
        self._watch()

    def _check_past(self) -> None:
        """List again if a server restored from a backup would wait for the revision that we have seen."""
        try:
            newest = newest_revision(self._client.without_retries(), self._path)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            return
        if _order(newest) < _order(self._revision):
            log.log(log.DECISIONS, f"{self._path}: {newest} is older than {self._revision}: listing again")
            self._revision, self._listed_from = "", newest

    def _relist(self) -> None:
        """Let a list come next, of nothing older than the last revision."""
        self._revision, self._listed_from = "", self._revision

    def _list(self) -> None:
        client = self._client.without_retries()
        arrive = None if self._has_listed else self._handler.arrive
        result = self._pager.list_all(
            client, self._path, self._selectors, revision=self._listed_from, progress=arrive
        )
        self._handler.replace(result.items)
        self._listed(result.resource_version)

    def _stream_list(self) -> None:
        """Read objects, then changes, in one response (1.27 and later, if the server has it enabled)."""
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        items: dict[tuple[str, str], T] = {}
        began = time.monotonic()
        try:
            response = self._open(query, LIST_SILENCE_SECONDS)
            events = self._events(response)
            revision = self._read_initial(events, items)
        except ApiError as error:
            if error.status not in _NO_STREAMING_LIST or items:
                raise
            self._streams = False
            return
        except QosError:
            # It broke off, or has no end; a plain list may get through.
            self._streams = self._response is None
            self._response = None
            raise
        self._handler.replace(list(items.values()))
        self._listed(revision)
        self._handle(response, events, began)

    def _read_initial(
        self, events: Iterator[tuple[str, msgspec.Raw]], items: dict[tuple[str, str], T]
    ) -> str:
        arrive = None if self._has_listed else self._handler.arrive
        new: list[T] = []
        size = 0
        for event_type, raw in events:
            if event_type == "BOOKMARK":
                bookmark = decode_body(_bookmark, raw, self._path).metadata
                if (bookmark.annotations or {}).get(_INITIAL_EVENTS_END) == "true":
                    return bookmark.resource_version
            else:
                item = self._item(raw)
                size += len(raw)
                key = item.metadata.namespace, item.metadata.name
                if event_type == "DELETED":
                    items.pop(key, None)
                    continue
                kept = self._keep(item)
                if kept is None:
                    continue
                items[key] = kept
                if arrive is not None:
                    new.append(kept)
                    if len(new) >= PAGE_SIZE:
                        arrive(new, Arrived(len(items), None, size))
                        new = []
        raise QosError(f"{self._path}: the list ended before it was complete")

    def _listed(self, revision: str) -> None:
        self._revision, self._has_listed = revision, True
        # Back off if lists keep failing to lead to events.
        self._lists += 1
        self._failures = min(self._failures, self._lists)
        self._handler.synced()

    def _watch(self) -> None:
        began = time.monotonic()
        try:
            response = self._open({"resourceVersion": self._revision}, _OPEN_SECONDS)
            self._handle(response, self._events(response), began)
        except ApiError as error:
            if error.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED}:
                raise
            self._may_watch, self._lists = False, 0
            self._handler.polled(error)
            self._wake.wait(self._poll_seconds)
            self._revision, self._listed_from = "", "0"

    def _handle(
        self, response: BaseHTTPResponse, events: Iterator[tuple[str, msgspec.Raw]], began: float
    ) -> None:
        count, is_silent = 0, False
        set_read_timeout(response, SILENCE_SECONDS)
        # If nothing changes, no event comes for a minute.
        accepted = threading.Timer(ACCEPTED_SECONDS, self._handler.synced)
        accepted.daemon = True
        accepted.start()
        try:
            for event_type, raw in events:
                if event_type == "BOOKMARK":
                    self._advance(decode_body(_bookmark, raw, self._path).metadata.resource_version)
                else:
                    item = self._item(raw)
                    self._advance(item.metadata.resource_version)
                    kept = self._keep(item)
                    if kept is not None:
                        hand_on = self._handler.drop if event_type == "DELETED" else self._handler.put
                        hand_on(kept)
                if not count:
                    self._handler.synced()
                count += 1
                self._failures, self._lists = 0, 0
        except _Silent:
            is_silent = True
            log.log(log.REQUESTS, f"{self._path}: silent for {SILENCE_SECONDS:.0f} s: watching again")
        finally:
            accepted.cancel()
            accepted.join()
            lasted = time.monotonic() - began
            if lasted >= _MIN_WATCH_SECONDS:
                self._failures = 0
        if not (self._closed or count or is_silent) and lasted < _MIN_WATCH_SECONDS:
            text = "the server ended it before anything was received"
            raise QosError(f"very short watch: {self._path}: {text}")

    def _advance(self, revision: str) -> None:
        """Note a revision; events come in their order, except from a server with another past."""
        if _order(revision) < _order(self._revision):
            raise decode_error(self._path, ValueError(f"revision {revision} comes after {self._revision}"))
        self._revision = revision

    def _item(self, raw: msgspec.Raw) -> T:
        return check_names([decode_body(self._decoder, raw, self._path)], self._path)[0]

    def _open(self, query: Mapping[str, str], silence_seconds: float) -> BaseHTTPResponse:
        # A random time, so that watches do not end together.
        seconds = WATCH_SECONDS + random.randrange(WATCH_SECONDS // 5)  # noqa: S311 - nothing to guess
        watch = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        query = {**self._selectors, **watch, **query}
        self._response = self._interruption = None
        response = self._client.request_once(self._path, query, watch_seconds=silence_seconds)
        self._response = response
        self._handler.heard()
        if not self._may_watch:
            self._may_watch = True
            self._handler.polled(None)
        return response

    def _events(self, response: BaseHTTPResponse) -> Iterator[tuple[str, msgspec.Raw]]:
        try:
            for line in self._lines(response):
                event = decode_body(_event, line, self._path)
                if event.type == "ERROR":
                    error = status_error(bytes(event.object))
                    if self._failures and error.status != HTTPStatus.GONE:
                        # The same error at the same revision: a list may get past it.
                        self._relist()
                    raise error
                if event.type not in _EVENT_TYPES:
                    raise decode_error(self._path, ValueError(f"got invalid watch event type: {event.type}"))
                yield event.type, event.object
        finally:
            response.close()

    def _lines(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        pieces: list[bytes] = []
        size = 0
        while not self._closed:
            try:
                part = response.read1(_READ_BYTES, decode_content=True)
            except Exception as error:
                failure = self._interruption or self._client.unreachable(error)
                is_between = is_read_timeout(error) and not any(pieces)
                raise (_Silent(str(failure), failure.hint) if is_between else failure) from error
            self._handler.heard()
            if not part:
                break
            first, *others = part.split(b"\n")
            pieces.append(first)
            size += len(first)
            if others:
                *lines, rest = (b"".join(pieces), *others)
                yield from filter(bytes.strip, lines)
                pieces, size = [rest], len(rest)
            if size > _MAX_LINE_BYTES:
                raise decode_error(self._path, ValueError("an event has no end"))
        rest = b"".join(pieces)
        if rest.strip() and not self._closed:
            yield rest

    def _wait_for_retry(self, error: QosError) -> None:
        """Report the error and wait: longer each time, with jitter so that clients do not return together."""
        if self._closed:
            return
        failures = self._failures
        is_soon_over = isinstance(error, ServerUnreachable) or getattr(error, "status", 0) in _NOT_YET
        if self._is_server_ready and is_soon_over:
            failures = max(min(failures, 1), failures - _SOON_TRIES)
        seconds = min(FIRST_RETRY_SECONDS * 2 ** min(failures, _MAX_DOUBLINGS), MAX_RETRY_SECONDS)
        seconds *= 0.5 + random.random() / 2  # noqa: S311 - nothing to guess
        self._failures += 1
        if isinstance(error, ApiError) and error.retry_after is not None:
            seconds = max(error.retry_after, seconds)
        log.log(log.REQUESTS, f"{self._path}: retry in {seconds:.1f} s: {error}")
        self._handler.out_of_sync(error, seconds)
        self._wake.wait(seconds)


class _Silent(ServerUnreachable):
    """Nothing came for a while, and no event had begun."""


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = _BookmarkMeta()


_event = msgspec.json.Decoder(_WatchEvent)
_bookmark = msgspec.json.Decoder(_Bookmark)


def _order(revision: str) -> int:
    return int(revision) if revision.isascii() and revision.isdigit() else -1
