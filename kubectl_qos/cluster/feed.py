"""What a source that is followed says: one moment after the other, each a whole and consistent snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from kubectl_qos.cluster.store import LIVE, Health
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.snapshot import Scope, Snapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known at one moment; no snapshot where nothing is known yet.

    `scope` is what may be asked for, and `notice` a sentence where that is less than was asked for. `taken`
    is when the snapshot was true.
    """

    snapshot: Snapshot | None
    scope: Scope
    health: Health
    taken: datetime
    notice: str = ""


class Feed(Protocol):
    """A source that is followed."""

    def next(self) -> Moment | None:
        """Wait for something new to say; None once the feed is closed."""

    def refresh(self) -> None:
        """Ask at once what is asked only now and then, and do not wait before the next try."""

    def close(self) -> None:
        """End it; whoever waits is let go."""


class Asking:
    """A feed for a source that can only be asked: at once, whenever it is refreshed, and every so often."""

    def __init__(
        self,
        ask: Callable[[Scope], Snapshot],
        scope: Scope,
        now: Callable[[], datetime],
        *,
        own_namespace: str | None = None,
        every_seconds: float | None = None,
    ) -> None:
        self._ask = ask
        self._scope = scope
        self._now = now
        self._own_namespace = own_namespace
        self._every_seconds = every_seconds
        self._wanted = threading.Event()
        self._wanted.set()
        self._closed = False
        self._last: Moment | None = None
        self._notice = ""

    def next(self) -> Moment | None:
        """The next answer, or the last one with what went wrong since."""
        self._wanted.wait(self._every_seconds)
        self._wanted.clear()
        if self._closed:
            return None
        taken = self._now()
        try:
            snapshot = self._narrowing(self._ask)
        except QosError as error:
            last = self._last or Moment(None, self._scope, LIVE, taken)
            retry_at = time.monotonic() + (self._every_seconds or 0)
            self._last = replace(last, health=Health(error, last.health.since or last.taken, retry_at))
        else:
            self._last = Moment(snapshot, self._scope, LIVE, taken, self._notice)
        return self._last

    def refresh(self) -> None:
        """Ask now."""
        self._wanted.set()

    def close(self) -> None:
        """Let go of who waits."""
        self._closed = True
        self._wanted.set()

    def _narrowing(self, ask: Callable[[Scope], Snapshot]) -> Snapshot:
        try:
            return ask(self._scope)
        except ApiError as error:
            narrower = narrowed(error, self._scope, self._own_namespace)
            if narrower is None:
                raise
            snapshot = ask(narrower)
            self._scope, self._notice = narrower, notice_of(error, narrower)
            return snapshot


def narrowed(error: ApiError, scope: Scope, own_namespace: str | None) -> Scope | None:
    """What is asked for instead where the whole cluster is forbidden: the user's own namespace."""
    if error.status != 403 or scope.namespace is not None or not own_namespace:
        return None
    return replace(scope, namespace=own_namespace)


def notice_of(error: ApiError, narrower: Scope) -> str:
    """The sentence about that."""
    return f"only namespace {narrower.namespace} is shown: {error}"
