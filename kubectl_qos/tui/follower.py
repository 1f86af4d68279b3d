"""Following a source without stopping the UI: a thread waits and works out, a message brings the outcome.

Only messages cross from the thread to the widgets. The thread is a daemon of our own rather than one of
Textual's pooled workers, because those are waited for at the end: quitting must not wait for a server that
hangs.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from textual.message import Message
from textual.message_pump import MessagePump

from kubectl_qos.cluster.source import LIVE, Health, Source, Update, UpdateStream
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.view_model import Trends, ViewModel, build_view_model

T = TypeVar("T")
BATCH_SECONDS: Final = 0.5
"""What changes within so long is shown at once."""
_SWITCH_SECONDS: Final = 0.0005
_YOUNG: Final = 20_000
"""So many new things are looked at for garbage at once. Painting makes thousands, and keeps few."""
_SHARE_OF_A_CORE: Final = 3
"""After working something out the thread rests so many times as long: keys are to be answered meanwhile."""

Finder = Callable[[Snapshot], Pod]
"""Finds the pod that a person named on the command line. Raises QosError if there is none."""


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """How the following goes; `asking` until there is an answer to the last question."""

    is_live: bool
    asking: bool = False
    paused: bool = False
    health: Health = LIVE


class FollowerMessage(Message):
    """Something that a follower says, of its own source."""

    source: Source | None = None


class Updated(FollowerMessage):
    """The source said something; `target` is the pod to open at once."""

    def __init__(self, facts: ViewModel, health: Health, target: Pod | None = None) -> None:
        super().__init__()
        self.facts = facts
        self.health = health
        self.target = target


class UpdateFailed(FollowerMessage):
    """The source could not say anything; `fatal` where the pod to open does not exist."""

    def __init__(self, health: Health, *, fatal: bool = False) -> None:
        super().__init__()
        self.health = health
        self.fatal = fatal


class Follower:
    """Follows a source in a thread and posts what it says."""

    def __init__(
        self, pump: MessagePump, source: Source, scope: Scope, trends: Trends, find: Finder | None = None
    ) -> None:
        self._pump = pump
        self._source = source
        self._scope = scope
        self._trends = trends
        self._find = find
        self._feed: UpdateStream | None = None
        self._facts: ViewModel | None = None
        self._wanted = threading.Event()
        self._paused = False
        self._closed = False

    def start(self) -> None:
        """Begin. From now on a thread may be busy: it must hand over soon when a key is pressed."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
        threading.Thread(target=self._run, name="qos-follower", daemon=True).start()

    def refresh(self) -> None:
        """Ask now, paused or not."""
        if self._feed is not None:
            self._feed.refresh()
        self._wanted.set()

    def pause(self, paused: bool) -> None:
        """Show nothing new for a while; it is taken in all the same."""
        self._paused = paused
        self._wanted.set()

    def close(self) -> None:
        """End."""
        self._closed = True
        if self._feed is not None:
            self._feed.close()
        self._wanted.set()

    def _run(self) -> None:
        try:
            feed = self._feed = self._source.follow(self._scope)
        except QosError as error:
            self._post(UpdateFailed(Health(error)))
            return
        while not self._closed:
            try:
                moment = feed.next()
            except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
                self._post(UpdateFailed(Health(unexpected_error(error))))
                return
            if moment is None:
                return
            began = time.monotonic()
            self._wanted.clear()
            if moment.snapshot is not None:
                self._trends.add(moment.snapshot.usage)
            message = message_for_update(moment, self._facts, self._find)
            if isinstance(message, Updated):
                if self._facts is None:
                    # A full collection looks at everything that is held, and stops keys for as long as
                    # 100 ms. What is held now is data without cycles: references are all that it needs.
                    gc.freeze()
                self._facts, self._find = message.facts, None
            self._post(message)
            self._rest(time.monotonic() - began)

    def _rest(self, worked_seconds: float) -> None:
        self._wanted.wait(max(BATCH_SECONDS, _SHARE_OF_A_CORE * worked_seconds))
        while self._paused and not self._closed and not self._wanted.is_set():
            self._wanted.wait()

    def _post(self, message: FollowerMessage) -> None:
        message.source = self._source
        with suppress(RuntimeError):  # the loop is closed: the UI has ended meanwhile
            self._pump.post_message(message)


def run_in_background(
    pump: MessagePump, work: Callable[[], T], then: Callable[[T | QosError], object]
) -> None:
    """Run work in a thread; `then` takes the result in the UI's thread, unless the pump is closed."""

    def run() -> None:
        result = attempt(work)
        with suppress(RuntimeError):  # the event loop is closed: the UI has ended
            pump.call_later(then, result)

    threading.Thread(target=run, name="qos-worker", daemon=True).start()


def in_background(pump: MessagePump, work: Callable[[], Message]) -> None:
    """Run work in a thread and post the message that it returns."""
    run_in_background(pump, work, lambda message: isinstance(message, Message) and pump.post_message(message))


def attempt(work: Callable[[], T]) -> T | QosError:
    """The result of work in a thread, or its error."""
    try:
        return work()
    except QosError as error:
        return error
    except Exception as error:  # noqa: BLE001 - nothing else would show an exception of a thread
        return unexpected_error(error)


def message_for_update(
    moment: Update, before: ViewModel | None, find: Finder | None
) -> Updated | UpdateFailed:
    """What a moment means for the UI; runs in the thread."""
    snapshot = moment.snapshot
    if snapshot is None:
        return UpdateFailed(moment.health)
    try:
        target = find(snapshot) if find is not None else None
    except QosError as error:
        return UpdateFailed(Health(error), fatal=True)
    try:
        facts = build_view_model(snapshot, moment.scope, moment.taken, moment.notice, before)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return UpdateFailed(Health(unexpected_error(error), moment.taken))
    return Updated(facts, moment.health, target)


def unexpected_error(error: Exception) -> QosError:
    """The sentence for what should not have happened in a thread."""
    return QosError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a defect of kubectl-qos; kubectl qos top -v=9 shows where",
    )
