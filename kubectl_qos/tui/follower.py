"""The thread that follows a source and posts its updates to the UI.

It is a daemon thread and not a worker of Textual, which waits for its workers at the end: quitting must not
wait for a server that hangs.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import structs
from textual.message import Message
from textual.message_pump import MessagePump

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.background import attempt
from kubectl_qos.cluster.source import LIVE, Health, Source, Update, UpdateStream
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import NODE_EVENTS_NAMESPACE
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.view_model import ViewModel, build_view_model

if TYPE_CHECKING:
    from kubectl_qos.tui.lists.base import BuiltList

BATCH_SECONDS: Final = 0.5
"""Changes within this time are shown at once."""
_SWITCH_SECONDS: Final = 0.0005
"""How long the thread may keep the interpreter while a key waits."""
_OBJECTS_PER_COLLECTION: Final = 20_000
"""Painting makes thousands of objects, and keeps few: collect garbage less often."""
_REST_PER_WORK: Final = 3
"""The thread rests this many times as long as it computed, so that keys are answered."""
_MAX_REST_SECONDS: Final = 5.0
"""With 50,000 pods the screen would otherwise be half a minute behind."""

FindPod = Callable[[Snapshot], Pod]
"""Finds the pod that the command line names. Raises QosError if there is none."""


@dataclass
class FollowerMessage(Message):
    """A message of a follower; `source` is what it follows."""

    source: Source | None = field(default=None, kw_only=True)


@dataclass
class Updated(FollowerMessage):
    """A new view model, with the rows of the list that is shown. `target` is the pod to edit at once."""

    view_model: ViewModel
    target: Pod | None = None
    built: BuiltList | None = None


@dataclass
class UpdateFailed(FollowerMessage):
    """The source could not be read; `fatal` if the pod to edit does not exist."""

    health: Health
    fatal: bool = False


class Follower:
    """Follows a source in a thread and posts its updates to the pump.

    `trends` gets every usage sample. `build_list` builds the rows of the list that is shown, in the thread.
    `find` finds the pod to edit at once in the first snapshot.
    """

    def __init__(
        self,
        pump: MessagePump,
        source: Source,
        scope: Scope,
        trends: Trends,
        build_list: Callable[[ViewModel], BuiltList | None],
        find: FindPod | None = None,
    ) -> None:
        self._pump = pump
        self._source = source
        self._scope = scope
        self._trends = trends
        self._build_list = build_list
        self._find = find
        self._stream: UpdateStream | None = None
        self._view_model: ViewModel | None = None
        self._requested = threading.Event()
        self._is_working = self._paused = self._closed = False
        self._shown_at = self._current_at = time.monotonic()

    def start(self) -> None:
        """Start the thread."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(_OBJECTS_PER_COLLECTION, *gc.get_threshold()[1:])
        threading.Thread(target=self._run, name="qos-follower", daemon=True).start()

    def refresh(self) -> None:
        """Read again now, paused or not."""
        if self._stream is not None:
            self._stream.refresh()
        self._requested.set()

    def health(self) -> Health:
        """Return the health of the source now. This also works while an update is computed."""
        return self._stream.health() if self._stream is not None else LIVE

    def behind_seconds(self) -> float:
        """Return for how long newer data has been there than the screen shows; call this every second."""
        now = time.monotonic()
        if self._stream is None or (self._stream.is_current() and not self._is_working):
            self._current_at = now
        return now - max(self._current_at, self._shown_at)

    def end_rest(self) -> None:
        """Compute the next update at once, unless paused."""
        if not self._paused:
            self._requested.set()

    def pause(self, paused: bool) -> None:
        """Stop or resume posting updates. The source is followed all the time."""
        self._paused = paused
        self._requested.set()

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        self._requested.set()

    def _run(self) -> None:
        try:
            stream = self._stream = self._source.follow(self._scope)
        except QosError as error:
            self._post(UpdateFailed(Health(error)))
            return
        while not self._closed:
            update = attempt(stream.next)
            if isinstance(update, QosError):
                self._post(UpdateFailed(Health(update)))
                return
            if update is None:
                return
            # Not the wall clock: on a busy machine this thread waits longer for a core than it computes.
            began, taken_at, self._is_working = time.thread_time(), time.monotonic(), True
            self._requested.clear()
            if update.snapshot is not None:
                update = structs.replace(update, snapshot=self._trends.with_rates(update.snapshot))
            message = message_for_update(update, self._view_model, self._find)
            if isinstance(message, Updated):
                is_first = self._view_model is None or self._view_model.arrived is not None
                if message.view_model.arrived is None:
                    message.view_model.compute_deaths()
                    node_events = partial(self._source.event_list, NODE_EVENTS_NAMESPACE)
                    message.view_model.find_kills(self._view_model, self._source.kernel_logs, node_events)
                    message.built, self._find = self._build_list(message.view_model), None
                if is_first and message.view_model.arrived is None:
                    # A full collection would visit all of this data, which has no cycles, for up to 100 ms.
                    gc.freeze()
                self._view_model = message.view_model
            self._post(message)
            self._shown_at, self._is_working = taken_at, False
            # While pods arrive there is no rest, so that the last ones are shown at once.
            self._rest(time.thread_time() - began if update.arrived is None else 0.0)

    def _rest(self, worked_seconds: float) -> None:
        rest = min(_REST_PER_WORK * worked_seconds, _MAX_REST_SECONDS)
        self._requested.wait(max(BATCH_SECONDS, rest))
        while self._paused and not self._closed and not self._requested.is_set():
            self._requested.wait()

    def _post(self, message: FollowerMessage) -> None:
        message.source = self._source
        with suppress(RuntimeError):  # the event loop is closed: the UI has ended
            self._pump.post_message(message)


def message_for_update(
    update: Update, before: ViewModel | None, find: FindPod | None
) -> Updated | UpdateFailed:
    """Return the message for an update. What has not changed is taken from the view model before it."""
    snapshot = update.snapshot
    if snapshot is None:
        return UpdateFailed(update.health)
    target = attempt(partial(find, snapshot)) if find is not None and update.arrived is None else None
    if isinstance(target, QosError):
        return UpdateFailed(Health(target), fatal=True)
    view_model = attempt(
        lambda: build_view_model(snapshot, update.scope, update.taken, update.notice, before, update.arrived)
    )
    if isinstance(view_model, QosError):
        return UpdateFailed(Health(view_model, update.taken))
    return Updated(view_model, target)
