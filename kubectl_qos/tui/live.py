"""Asking a source without stopping the UI: a thread asks and works out, a message brings the answer.

Only messages cross from the threads to the widgets. Threads are daemons of our own rather than Textual's
pooled workers, because those are waited for at the end: quitting must not wait for a server that hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from textual.message import Message
from textual.message_pump import MessagePump

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.facts import Facts, facts_of

REFRESH_SECONDS = 15

Finder = Callable[[Snapshot], Pod]
"""Finds the pod that a person named on the command line. Raises QosError if there is none."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the asking goes; `error` is that of the last answer, None after a good one."""

    is_live: bool
    asking: bool = False
    paused: bool = False
    error: QosError | None = None


class Answered(Message):
    """The source answered; `scope` is what it allowed us to ask, `target` the pod to open at once."""

    def __init__(self, generation: int, facts: Facts, scope: Scope, target: Pod | None) -> None:
        super().__init__()
        self.generation = generation
        self.facts = facts
        self.scope = scope
        self.target = target


class Refused(Message):
    """The source gave no answer; `fatal` where the pod to open does not exist."""

    def __init__(self, generation: int, error: QosError, *, fatal: bool = False) -> None:
        super().__init__()
        self.generation = generation
        self.error = error
        self.fatal = fatal


class Questions:
    """Asks a source one question after the other; only the answer to the last one counts."""

    def __init__(self, pump: MessagePump, source: Source, scope: Scope, find: Finder | None = None) -> None:
        self._pump = pump
        self._source = source
        self._scope = scope
        self._find = find
        self._generation = 0

    def ask(self) -> None:
        """Ask again; an answer that is still under way will not count."""
        self._generation += 1
        generation, scope, find = self._generation, self._scope, self._find
        in_background(self._pump, lambda: answer(generation, self._source, scope, find))

    def accepts(self, message: Answered | Refused) -> bool:
        """Whether a message answers the last question. What it allowed is what is asked next time."""
        if message.generation != self._generation:
            return False
        if isinstance(message, Answered):
            self._scope, self._find = message.scope, None
        return True


def answer(generation: int, source: Source, scope: Scope, find: Finder | None) -> Message:
    """The source's answer as a message; runs in a thread."""
    try:
        found, allowed, notice = _snapshot(source, scope)
    except QosError as error:
        return Refused(generation, error)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return Refused(generation, _defect(error))
    try:
        target = find(found) if find is not None else None
    except QosError as error:
        return Refused(generation, error, fatal=True)
    try:
        facts = facts_of(found, allowed, source.now(), notice)
    except Exception as error:  # noqa: BLE001 - likewise
        return Refused(generation, _defect(error))
    return Answered(generation, facts, allowed, target)


def _snapshot(source: Source, scope: Scope) -> tuple[Snapshot, Scope, str]:
    """A snapshot; where the cluster is forbidden, that of the source's own namespace and a word about it."""
    try:
        return source.snapshot(scope), scope, ""
    except ApiError as error:
        namespace = source.default_namespace
        if error.status != 403 or scope.namespace is not None or not namespace:
            raise
        narrower = replace(scope, namespace=namespace)
        notice = f"only namespace {namespace} is shown: {error}"
        return source.snapshot(narrower), narrower, notice


def _defect(error: Exception) -> QosError:
    return QosError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a defect of kubectl-qos; kubectl qos top -v=9 shows where",
    )


def in_background(pump: MessagePump, work: Callable[[], Message]) -> None:
    """Run work in a thread and post the message that it returns."""

    def run() -> None:
        message = work()
        with suppress(RuntimeError):  # the loop is closed: the UI has ended meanwhile
            pump.post_message(message)

    threading.Thread(target=run, name="qos-question", daemon=True).start()
