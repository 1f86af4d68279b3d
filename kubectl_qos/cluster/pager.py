"""Work that goes on in a thread meanwhile: the next page of a list, or another list altogether.

The threads are daemons: whoever stops waiting for them, for an error or for ctrl-c, is not held up. Waits are
cut into pieces, because a signal that comes just before a wait begins does not end it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_body, decode_error
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import json_decoder
from kubectl_qos.transport import logging as log

T = TypeVar("T")
K = TypeVar("K")

_WAIT_SECONDS: Final = 0.5


def ahead(items: Iterable[T], *, most: int = 1) -> Iterator[T]:
    """The same items, the next ones made in a thread while the previous one is worked on.

    At most `most` finished items wait. Raises what making them raised, after the items before it.
    """
    queue: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
    room = threading.Semaphore(most)
    stopped = threading.Event()

    def make() -> None:
        try:
            for item in items:
                queue.put(_value(item))
                room.acquire()
                if stopped.is_set():
                    return
            queue.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the reader
            queue.put(_raising(error))

    threading.Thread(target=make, daemon=True).start()
    try:
        while (found := _next(queue)) is not None:
            room.release()
            yield found()
    finally:
        stopped.set()
        room.release()


class Future(Generic[T]):
    """A value computed in a thread meanwhile."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._outcome: Callable[[], T]

        def run() -> None:
            try:
                self._outcome = _value(compute())
            except BaseException as error:  # noqa: BLE001 - raised again by result()
                self._outcome = _raising(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the value, but no longer than this."""
        self._thread.join(seconds)

    @property
    def is_done(self) -> bool:
        """Whether the value, or the error, is there."""
        return not self._thread.is_alive()

    def result(self) -> T:
        """The value, waited for. Raises what computing it raised."""
        while self._thread.is_alive():
            self._thread.join(_WAIT_SECONDS)
        return self._outcome()


def side_by_side(work: Callable[[K], T], items: Iterable[K], *, most: int) -> dict[K, Callable[[], T]]:
    """Work on each item, on so many at a time at most; each outcome is a function that gives or raises it."""
    waiting: SimpleQueue[K] = SimpleQueue()
    found: dict[K, Callable[[], T]] = {}
    for item in items:
        waiting.put(item)

    def run() -> None:
        while True:
            try:
                item = waiting.get_nowait()
            except Empty:
                return
            try:
                found[item] = _value(work(item))
            except Exception as error:  # noqa: BLE001 - raised again by whoever takes the outcome
                found[item] = _raising(error)

    for worker in [Future(run) for _ in range(min(most, waiting.qsize()))]:
        worker.result()
    return found


def _next(queue: SimpleQueue[T]) -> T:
    while True:
        try:
            return queue.get(timeout=_WAIT_SECONDS)
        except Empty:
            continue


def _value(value: T) -> Callable[[], T]:
    return lambda: value


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def raise_it() -> NoReturn:
        raise error

    return raise_it


PAGE_SIZE: Final = 500


Progress = Callable[[int, int | None], None]
"""Called with how many items have arrived, and how many there will be if the server says so."""


class ListMeta(msgspec.Struct, rename="camel", frozen=True):
    """Where a list stands; `continue_token` asks for the next page."""

    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


@dataclass(frozen=True, slots=True)
class ListResult(Generic[T]):
    """All items, and the revision that they stand for."""

    items: list[T]
    resource_version: str


class Pager(Generic[T]):
    """Lists of one kind of item; `each` makes what is kept of an item (see k8s/sharing.py)."""

    def __init__(self, wanted: type[T], each: Callable[[T], Any] | None = None) -> None:
        self._decoder = json_decoder(list[wanted])  # type: ignore[valid-type]
        self._each = each

    def fetch(
        self,
        answers: RestClient,
        path: str,
        query: Mapping[str, str],
        *,
        consistent: bool = False,
        page_size: int = PAGE_SIZE,
        progress: Progress | None = None,
    ) -> ListResult[T]:
        """The items of all pages: as the watch cache has them, or with `consistent` as they are now.

        A list that takes so long that its revision is gone before the last page (410) is asked for again,
        in one piece, as client-go does it (tools/pager FullListIfExpired).
        """
        asked = {name: value for name, value in query.items() if value}
        if not consistent:
            asked["resourceVersion"] = "0"
        chosen = "".join(f", {name} {value}" for name, value in query.items() if value)
        log.log(log.DECISIONS, f"list {path}{'' if consistent else ' as the watch cache has it'}{chosen}")
        try:
            return self.pages(answers, path, {**asked, "limit": str(page_size)}, progress)
        except ApiError as error:
            if error.status != HTTPStatus.GONE:
                raise
        log.log(log.DECISIONS, f"list {path} again in one piece: it took longer than its revision is kept")
        return self.pages(answers, path, asked, progress)

    def pages(
        self, answers: RestClient, path: str, query: Mapping[str, str], progress: Progress | None = None
    ) -> ListResult[T]:
        """The items of all pages of exactly this question."""
        found: list[T] = []
        meta = ListMeta()
        total: int | None = None
        for items, page in self.stream(answers, path, query):
            found.extend(map(self._each, items) if self._each is not None else items)
            if page is not None:
                left = page.remaining_item_count
                meta, total = page, len(found) + left if left is not None else None
            if progress is not None and found:
                progress(len(found), total)
        return ListResult(found, meta.resource_version)

    def stream(
        self, answers: RestClient, path: str, query: Mapping[str, str]
    ) -> Iterator[tuple[list[T], ListMeta | None]]:
        """The items as they arrive, and with the last ones of a page what it says of itself."""
        page: PageItems[T] = PageItems(self._decoder, path)
        meta = ListMeta()
        for part in ahead(_parts(answers, path, query), most=_PARTS_AHEAD):
            if part is not None:
                yield named(page.feed(part), path), None
            else:
                items, meta = page.close()
                yield named(items, path), meta
                page = PageItems(self._decoder, path)
        if meta.continue_token:
            raise decode_error(path, EOFError("the list goes on, but where it does was not found"))


def named(items: list[T], what: str) -> list[T]:
    """The same items. Raises QosError for what no server holds: any JSON object decodes as an empty pod."""
    found: list[Any] = items
    if not all(item.metadata.name for item in found):
        raise decode_error(what, ValueError("an object has no name"))
    return items


def _parts(answers: RestClient, path: str, query: Mapping[str, str]) -> Iterator[bytes | None]:
    """The parts of every page, None after each page; the next page is asked for as soon as one is read."""
    token = ""
    while True:
        head, tail = b"", b""
        for part in answers.parts(path, query):
            head = head or part[:_END_BYTES]
            tail = (tail + part[-_END_BYTES:])[-_END_BYTES:]
            yield part
        yield None
        before, token = token, _meta(head, tail).continue_token
        if not token:
            return
        if token == before:
            raise QosError(f"the server's list for {path} does not get on: it repeats its continue token")
        query = {name: value for name, value in query.items() if name != "resourceVersion"}
        query["continue"] = token


class PageItems(Generic[T]):
    """Cuts one page into items while it arrives.

    Servers write `"items":[{"metadata":…},{"metadata":…}]`. Where `},{"metadata":` stands between two items,
    what lies before it decodes as a whole; where it does not (inside an item), decoding fails and the next
    place is taken. A page written otherwise is decoded in one piece at its end.
    """

    def __init__(self, decoder: msgspec.json.Decoder[list[T]], what: str) -> None:
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
        place = self._rest.rfind(_BETWEEN, max(searched - len(_BETWEEN), 1))
        return self._until(place + 1) if place > 0 else []

    def close(self) -> tuple[list[T], ListMeta]:
        """The last items, and what the list says of itself."""
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

    def _until(self, place: int) -> list[T]:
        """The items before a comma, if it stands between two of them."""
        rest = self._rest
        rest[place] = _CLOSE
        try:
            with memoryview(rest) as view, view[: place + 1] as piece:
                items = self._decoder.decode(piece)
        except UNDECODABLE as error:
            if type(error) is msgspec.DecodeError:
                rest[place] = _COMMA
                return []
            raise decode_error(self._what, error) from None
        del rest[:place]
        rest[0] = _OPEN
        return items


class _Page(msgspec.Struct):
    """A page without items, or with its items left out."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_page = msgspec.json.Decoder(_Page)
_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[')
_AFTER_ITEMS: Final = re.compile(rb'\]\s*,\s*("metadata"\s*:.*)', re.DOTALL)
_BETWEEN: Final = b'},{"metadata":'
_OPEN, _CLOSE, _COMMA = b"[],"
_END_BYTES: Final = 4096
_PARTS_AHEAD: Final = 4


def _meta(head: bytes, tail: bytes) -> ListMeta:
    """What a page says of itself, from its first bytes, or from its last ones where it says so at the end."""
    before, items, _ = head.partition(b'"items"')
    after = _AFTER_ITEMS.search(tail)
    texts = [before.rstrip().removesuffix(b",") + b"}"] if items and b'"metadata"' in before else []
    texts += [b"{" + after[1]] if after is not None else []
    for text in (*texts, head):
        with suppress(*UNDECODABLE):
            return _page.decode(text).metadata
    return ListMeta()
