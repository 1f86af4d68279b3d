"""Work that goes on in a thread meanwhile: the next page of a list, or another list altogether.

The threads are daemons: whoever stops waiting for them, for an error or for ctrl-c, is not held up. Waits are
cut into pieces, because a signal that comes just before a wait begins does not end it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Final, Generic, NoReturn, TypeVar

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


class Later(Generic[T]):
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

    for worker in [Later(run) for _ in range(min(most, waiting.qsize()))]:
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
