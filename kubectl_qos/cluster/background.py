"""Run work in threads, also for several clusters. The threads are daemons, so ctrl-c ends the program.

Waits are short and repeated, because a signal that arrives just before a wait does not end it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.kubeconfig import context_names

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_WAIT_SECONDS: Final = 0.5


class Future(Generic[T]):
    """A function's result, computed in a thread."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._value: T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._compute()
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            self._error = error

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`, and return whether the result is there."""
        self._thread.join(max(seconds, 0))
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for the value and return it. Raises what the function raised."""
        while not self.wait(_WAIT_SECONDS):
            pass
        if self._error is not None:
            raise self._error
        return self._value


def ahead(items: Iterable[T], *, at_most: int = 1) -> Iterator[T]:
    """Yield the items; a thread reads up to `at_most` of them in advance. Raises what the iterator raised."""
    queue: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
    free = threading.Semaphore(at_most)
    stopped = threading.Event()

    def make() -> None:
        try:
            for item in items:
                queue.put((item,))
                free.acquire()
                if stopped.is_set():
                    return
            queue.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the reader
            queue.put(error)

    threading.Thread(target=make, daemon=True).start()
    try:
        while (made := _next(queue)) is not None:
            if isinstance(made, BaseException):
                raise made
            free.release()
            yield made[0]
    finally:
        stopped.set()
        free.release()


def run_all(work: Callable[[K], T], items: Iterable[K], *, at_once: int) -> dict[K, T | QosError]:
    """Call `work` for each item, `at_once` at a time. A value is the QosError if one was raised."""
    return dict(as_completed(work, items, at_once=at_once))


def as_completed(
    work: Callable[[K], T], items: Iterable[K], *, at_once: int
) -> Iterator[tuple[K, T | QosError]]:
    """Like `run_all`, but yield each item as soon as it is done. Raises any other error of `work`."""
    waiting: SimpleQueue[K] = SimpleQueue()
    done: SimpleQueue[tuple[K, T | QosError] | BaseException] = SimpleQueue()
    for item in items:
        waiting.put(item)
    count = waiting.qsize()

    def run() -> None:
        try:
            with suppress(Empty):
                while True:
                    item = waiting.get_nowait()
                    try:
                        done.put((item, work(item)))
                    except QosError as error:
                        done.put((item, error))
        except BaseException as error:  # noqa: BLE001 - raised again by the reader
            done.put(error)

    for _ in range(min(at_once, count)):
        threading.Thread(target=run, daemon=True).start()
    for _ in range(count):
        result = _next(done)
        if isinstance(result, BaseException):
            raise result
        yield result


def _next(queue: SimpleQueue[T]) -> T:
    while True:
        with suppress(Empty):
            return queue.get(timeout=_WAIT_SECONDS)


CLUSTERS_AT_ONCE: Final = 4
"""How many clusters are read at a time; each takes two connections for its lists, and memory for its pods."""
_WILDCARDS: Final = frozenset("*?[")


def find_contexts(
    options: ConnectionOptions, patterns: Iterable[str] | None = None
) -> Mapping[str, ConnectionOptions]:
    """Return the contexts that match names or patterns (`prod-*`), in the kubeconfig's order; None means all.

    Raises UsageError for a name or pattern that matches none, QosError if the kubeconfig cannot be used.
    """
    names = context_names(options)
    hint = f"contexts are: {', '.join(names)}" if names else "the kubeconfig defines no contexts"
    chosen = set(names if patterns is None else ())
    for pattern in patterns or ():
        is_pattern = pattern not in names and not _WILDCARDS.isdisjoint(pattern)
        matching = {name for name in names if name == pattern or (is_pattern and fnmatchcase(name, pattern))}
        if not matching:
            what = f'no context matches "{pattern}"' if is_pattern else f'context "{pattern}" does not exist'
            raise UsageError(what, hint)
        chosen |= matching
    if not chosen:
        raise UsageError("no context is named", hint)
    return {name: options._replace(context=name) for name in names if name in chosen}


def read_each(contexts: Iterable[str], work: Callable[[str], T]) -> Iterator[tuple[str, T | QosError]]:
    """Yield what `work` returns for each context, as soon as it is done; a QosError does not stop the others.

    Only what `work` returns stays in memory: it reduces a snapshot before the next cluster begins.
    """
    return as_completed(work, contexts, at_once=CLUSTERS_AT_ONCE)


class _Pump(Protocol):
    """A widget, screen or app of the terminal UI."""

    def call_later(self, callback: Callable[..., object], *args: Any, **kwargs: Any) -> bool: ...


def run_in_background(pump: _Pump, work: Callable[[], T], then: Callable[[T | QosError], object]) -> None:
    """Run work in a thread, and `then` with its result in the UI's thread, unless the pump is closed."""

    def run() -> None:
        result = attempt(work)
        with suppress(RuntimeError):  # the event loop is closed: the UI has ended
            pump.call_later(then, result)

    threading.Thread(target=run, name="qos-worker", daemon=True).start()


def attempt(work: Callable[[], T]) -> T | QosError:
    """Return the result of work in a thread, or its error."""
    try:
        return work()
    except QosError as error:
        return error
    except Exception as error:  # noqa: BLE001 - nothing else would show an exception of a thread
        return QosError(
            f"unexpected {type(error).__name__}: {error}",
            hint="this is a defect of kubectl-qos; kubectl qos top -v=9 shows where",
        )
