"""One kind of object followed: listed, then watched, and listed again where a watch cannot go on.

As client-go's reflector does it (tools/cache/reflector.go): a streaming list where the server offers one,
else a list and a watch from its revision; bookmarks; a revision that is too old (410), an event that cannot
be understood and a watch without a word mean a new list; everything else means another try from where it
was. Each try comes later than the one before.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import msgspec

from kubectl_qos.cluster.api_errors import refusal
from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_body, decode_error
from kubectl_qos.cluster.pager import Pager, named
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.objects import ObjectMeta, json_decoder
from kubectl_qos.transport import logging as log

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

WATCH_SECONDS: Final = 290
"""After so long a server ends a watch, give or take; proxies often end connections after five minutes."""
POLL_SECONDS: Final = 15.0
"""So often a list is asked for where it may not be watched."""
FIRST_RETRY_SECONDS: Final = 0.8
LONGEST_RETRY_SECONDS: Final = 30.0
LIST_SILENCE_SECONDS: Final = 60.0
"""So long a streaming list may bring nothing before its end."""
LONGEST_WORDLESS_SECONDS: Final = 150.0
"""Bookmarks come every minute: a watch that brought nothing for so long may follow what is no more."""
_SHORTEST_WATCH_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 30.0
_READ_BYTES: Final = 1 << 16
_LONGEST_LINE: Final = 1 << 26
_KINDS: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_NO_STREAMING_LIST: Final = frozenset({400, 403, 404, 405, 406, 415, 422, 500})
"""With these a streaming list is refused by a server that has none, or where watching is not allowed."""


class WatchedObject(Protocol):
    """An object of the API."""

    @property
    def metadata(self) -> ObjectMeta:
        """Names and revision."""


T = TypeVar("T", bound=WatchedObject)


class EventHandler(Protocol, Generic[T]):
    """Who keeps what a watch finds; called from the watch's own thread."""

    def replace(self, items: list[T]) -> None:
        """These are all there are."""

    def put(self, item: T) -> None:
        """One is new or has changed."""

    def drop(self, item: T) -> None:
        """One is gone."""

    def in_step(self) -> None:
        """What was put is what the server has."""

    def out_of_step(self, error: QosError, retry_seconds: float) -> None:
        """What was put may be old, and when the server is asked again."""

    def is_polled(self, error: ApiError | None) -> None:
        """It may be listed, but not watched; None when it may be again."""

    def refused(self, error: ApiError) -> None:
        """It may not be listed, and never was; nothing more will come."""


@dataclass(frozen=True, slots=True)
class ListWatch:
    """What is followed: a path with selectors; listed every `poll_seconds` where it may not be watched."""

    path: str
    query: Mapping[str, str]
    poll_seconds: float | None = None


class Reflector(Generic[T]):
    """Follows one question until it is closed."""

    def __init__(
        self,
        answers: RestClient,
        question: ListWatch,
        wanted: type[T],
        each: Callable[[T], T],
        sink: EventHandler[T],
    ) -> None:
        self._answers = answers
        self._question = question
        self._decoder = json_decoder(wanted)
        self._lister = Pager(wanted, each)
        self._each = each
        self._sink = sink
        self._wake = threading.Event()
        self._closed = False
        self._response: BaseHTTPResponse | None = None
        self._revision = ""
        self._consistent = False
        self._streams = True
        self._may_watch = True
        self._listed = False
        self._is_new = False
        self._failures = 0

    def run(self) -> None:
        """Follow until closed or refused; the body of a thread."""
        while not self._closed:
            self._wake.clear()
            try:
                self._round()
            except ApiError as error:
                if error.status == HTTPStatus.FORBIDDEN and not self._listed:
                    self._sink.refused(error)
                    return
                if error.status != HTTPStatus.GONE or not self._revision or self._is_new:
                    self._failed(error)
                if error.status == HTTPStatus.GONE:
                    self._start_anew()
            except ServerUnreachable as error:
                self._failed(error)
            except QosError as error:
                # The same watch would bring the same again.
                self._start_anew()
                self._failed(error)
            except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
                self._start_anew()
                self._failed(_defect(error))

    def retry_now(self) -> None:
        """Do not wait any longer."""
        self._wake.set()

    def close(self) -> None:
        """End; a read that waits for the server is ended with it."""
        self._closed = True
        self._wake.set()
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.shutdown()

    def _round(self) -> None:
        """List if need be, then watch until the server ends it."""
        if not self._revision:
            if self._streams:
                self._stream_list()
                return
            self._list()
        self._watch()

    def _start_anew(self) -> None:
        """List before watching, past the watch cache, which may be what is too old."""
        self._revision, self._consistent = "", True

    def _list(self) -> None:
        question = self._question
        answers = self._answers.impatient()
        found = self._lister.fetch(answers, question.path, question.query, consistent=self._consistent)
        self._sink.replace(found.items)
        self._is_listed(found.resource_version)

    def _stream_list(self) -> None:
        """Objects first, then changes, in one answer (1.27 and later, where the server has it enabled)."""
        asked = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        found: dict[tuple[str, str], T] = {}
        began = time.monotonic()
        try:
            response = self._opened(asked, LIST_SILENCE_SECONDS)
            events = self._events(response)
            revision = self._initial(events, found)
        except ApiError as error:
            if error.status not in _NO_STREAMING_LIST or found:
                raise
            self._streams = False
            return
        except QosError:
            # It has broken off, or has no end; a plain list may get through.
            self._streams = self._response is None
            self._response = None
            raise
        self._answers.bear_silence(response, WATCH_SECONDS + _SILENCE_SECONDS)
        self._sink.replace(list(found.values()))
        self._is_listed(revision)
        self._take(events, began)

    def _initial(self, events: Iterator[tuple[str, msgspec.Raw]], found: dict[tuple[str, str], T]) -> str:
        """Take in what comes before the bookmark that ends a streaming list; the bookmark's revision."""
        for kind, raw in events:
            if kind == "BOOKMARK":
                bookmark = decode_body(_bookmark, raw, self._question.path).metadata
                if (bookmark.annotations or {}).get(_INITIAL_EVENTS_END) == "true":
                    return bookmark.resource_version
            else:
                item = self._item(raw)
                key = item.metadata.namespace, item.metadata.name
                if kind == "DELETED":
                    found.pop(key, None)
                else:
                    found[key] = self._each(item)
        raise _ended(self._question.path)

    def _is_listed(self, revision: str) -> None:
        self._revision, self._listed, self._consistent, self._is_new = revision, True, False, True
        self._sink.in_step()

    def _watch(self) -> None:
        began = time.monotonic()
        try:
            response = self._opened({"resourceVersion": self._revision}, self._seconds() + _SILENCE_SECONDS)
            # The server has taken the watch, so nothing was missed.
            self._sink.in_step()
            self._take(self._events(response), began)
        except ApiError as error:
            if error.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED}:
                raise
            self._may_watch = False
            self._sink.is_polled(error)
            self._wake.wait(self._question.poll_seconds or POLL_SECONDS)
            self._revision = ""

    def _take(self, events: Iterator[tuple[str, msgspec.Raw]], began: float) -> None:
        """Hand on what comes until the server ends the watch."""
        taken = 0
        try:
            for kind, raw in events:
                self._take_one(kind, raw)
                taken += 1
                self._failures, self._is_new = 0, False
        finally:
            lasted = time.monotonic() - began
            if lasted >= _SHORTEST_WATCH_SECONDS:
                self._failures = 0
        if self._closed or taken:
            return
        if lasted < _SHORTEST_WATCH_SECONDS:
            raise _ended(self._question.path)
        if lasted > LONGEST_WORDLESS_SECONDS:
            self._start_anew()

    def _take_one(self, kind: str, raw: msgspec.Raw) -> None:
        if kind == "BOOKMARK":
            self._reach(decode_body(_bookmark, raw, self._question.path).metadata.resource_version)
            return
        item = self._item(raw)
        self._reach(item.metadata.resource_version)
        (self._sink.drop if kind == "DELETED" else self._sink.put)(self._each(item))

    def _reach(self, revision: str) -> None:
        """Events come in the order of their revisions, save from a server with another past."""
        if _order(revision) < _order(self._revision):
            raise decode_error(
                self._question.path, ValueError(f"revision {revision} comes after {self._revision}")
            )
        self._revision = revision

    def _item(self, raw: msgspec.Raw) -> T:
        path = self._question.path
        return named([decode_body(self._decoder, raw, path)], path)[0]

    def _seconds(self) -> int:
        """How long a watch shall last; not all as long, lest all end at once."""
        return WATCH_SECONDS + random.randrange(WATCH_SECONDS // 5)  # noqa: S311 - nothing to guess

    def _opened(self, asked: Mapping[str, str], silence_seconds: float) -> BaseHTTPResponse:
        """A watch that the server has taken."""
        query = {
            **{name: value for name, value in self._question.query.items() if value},
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._seconds()),
            **asked,
        }
        self._response = None
        response = self._answers.at_once(self._question.path, query, watch_seconds=silence_seconds)
        self._response = response
        if not self._may_watch:
            self._may_watch = True
            self._sink.is_polled(None)
        return response

    def _events(self, response: BaseHTTPResponse) -> Iterator[tuple[str, msgspec.Raw]]:
        """The events of one watch, each as its type and its object. Raises the ApiError of an ERROR event."""
        try:
            for line in self._lines(response):
                event = decode_body(_event, line, self._question.path)
                if event.type == "ERROR":
                    if self._failures:
                        # Said again at the same place: a list may get past it.
                        self._start_anew()
                    raise _refusal(event.object)
                if event.type not in _KINDS:
                    raise decode_error(
                        self._question.path, ValueError(f"got invalid watch event type: {event.type}")
                    )
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
                raise self._answers.unreachable(error) from error
            if not part:
                break
            first, *others = part.split(b"\n")
            pieces.append(first)
            size += len(first)
            if others:
                *lines, rest = (b"".join(pieces), *others)
                yield from filter(bytes.strip, lines)
                pieces, size = [rest], len(rest)
            if size > _LONGEST_LINE:
                raise decode_error(self._question.path, ValueError("an event has no end"))
        rest = b"".join(pieces)
        if rest.strip() and not self._closed:
            yield rest

    def _failed(self, error: QosError) -> None:
        """Say so, and wait: longer each time, and by chance, lest all who wait come back at once."""
        if self._closed:
            return
        seconds = min(FIRST_RETRY_SECONDS * 2**self._failures, LONGEST_RETRY_SECONDS)
        seconds *= 0.5 + random.random() / 2  # noqa: S311 - nothing to guess
        self._failures += 1
        wanted = getattr(error, "retry_after", None)
        if wanted is not None:
            seconds = max(wanted, seconds)
        log.log(log.REQUESTS, f"{self._question.path} is asked for again in {seconds:.1f} s: {error}")
        self._sink.out_of_step(error, seconds)
        self._wake.wait(seconds)


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = _BookmarkMeta()


class _Code(msgspec.Struct):
    code: int = 500


_event = msgspec.json.Decoder(_WatchEvent)
_bookmark = msgspec.json.Decoder(_Bookmark)
_code = msgspec.json.Decoder(_Code)


def _refusal(raw: msgspec.Raw) -> ApiError:
    """The error of an ERROR event, whose object is a Status."""
    with suppress(*UNDECODABLE):
        return refusal(_code.decode(raw).code, bytes(raw), "application/json")
    return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, bytes(raw), "application/json")


def _ended(path: str) -> QosError:
    return QosError(f"very short watch: {path}: the server ended it before anything was received")


def _order(revision: str) -> int:
    """Where a revision stands among others; one that is no number stands before all."""
    return int(revision) if revision.isascii() and revision.isdigit() else -1


def _defect(error: Exception) -> QosError:
    return QosError(f"unexpected {type(error).__name__}: {error}", hint="this is a defect of kubectl-qos")
