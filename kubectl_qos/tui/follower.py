"""The threads of the UI: one that follows the source, and one for each piece of work that takes long.

Only messages and callbacks cross from a thread to the widgets. Threads are daemons of our own rather than
Textual's pooled workers, which are waited for at the end: quitting must not wait for a server that hangs.
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
_YOUNG: Final = 20_000
"""New objects per garbage collection. Painting makes thousands, and keeps few."""
_REST_PER_WORK: Final = 3
"""The thread rests this many times as long as it computed: keys are answered meanwhile."""
_MOST_REST_SECONDS: Final = 5.0
"""But no longer: with 50,000 pods what is shown would be half a minute old."""

FindPod = Callable[[Snapshot], Pod]
"""Finds the pod that the command line names. Raises QosError if there is none."""


@dataclass
class FollowerMessage(Message):
    """A message of the follower of this source."""

    source: Source | None = field(default=None, kw_only=True)


@dataclass
class Updated(FollowerMessage):
    """A new view model with the list that is shown; `target` is the pod to edit at once."""

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

    `trends` gets every usage sample, `build_list` builds the list that is shown from a new view model, in the
    thread, and `find` finds the pod to edit at once, in the first snapshot.
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
        """Start the thread. While it works it must hand over soon when a key is pressed."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
        threading.Thread(target=self._run, name="qos-follower", daemon=True).start()

    def refresh(self) -> None:
        """Read again now, paused or not."""
        if self._stream is not None:
            self._stream.refresh()
        self._requested.set()

    def health(self) -> Health:
        """Return the health of the source now, also while an update is computed."""
        return self._stream.health() if self._stream is not None else LIVE

    def behind_seconds(self) -> float:
        """Return the age of what is shown, 0 if nothing newer has come; to be called every second or so."""
        now = time.monotonic()
        if self._stream is None or (self._stream.is_current() and not self._is_working):
            self._current_at = now
        return now - max(self._current_at, self._shown_at)

    def end_rest(self) -> None:
        """Compute what is new at once, unless paused."""
        if not self._paused:
            self._requested.set()

    def pause(self, paused: bool) -> None:
        """Post no updates for a while; the source is still followed."""
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
            # On a busy machine this thread may wait for a core ten times as long as it computes.
            began, taken_at, self._is_working = time.thread_time(), time.monotonic(), True
            self._requested.clear()
            if update.snapshot is not None:
                update = structs.replace(update, snapshot=self._trends.taken(update.snapshot))
            message = message_for_update(update, self._view_model, self._find)
            if isinstance(message, Updated):
                is_first = self._view_model is None or self._view_model.arrived is not None
                if message.view_model.arrived is None:
                    message.view_model.compute_deaths()
                    node_events = partial(self._source.event_list, NODE_EVENTS_NAMESPACE)
                    message.view_model.find_kills(self._view_model, self._source.kernel_logs, node_events)
                    message.built, self._find = self._build_list(message.view_model), None
                if is_first and message.view_model.arrived is None:
                    # A full collection visits everything that is held, and delays keys by up to 100 ms.
                    # What is held now is data without cycles, for which reference counts are enough.
                    gc.freeze()
                self._view_model = message.view_model
            self._post(message)
            self._shown_at, self._is_working = taken_at, False
            # More pods are shown when there are many more, but the last ones at once.
            self._rest(time.thread_time() - began if update.arrived is None else 0.0)

    def _rest(self, worked_seconds: float) -> None:
        rest = min(_REST_PER_WORK * worked_seconds, _MOST_REST_SECONDS)
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
    """Return the message for an update, built from the view model before it; runs in the thread."""
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
