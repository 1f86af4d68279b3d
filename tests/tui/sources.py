"""Sources and helpers for tests of the UI: a cluster that says what a test tells it to, and patience."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
from textual.pilot import Pilot

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.cluster.source import LIVE, Health, Update, UpdateStream
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.writers import ScriptedWriter, around

Answer = Snapshot | QosError | Callable[[Scope], Snapshot]


class ScriptedStream:
    """An answer at first, whenever it is refreshed, and every so often; narrowed as an informer does it."""

    def __init__(self, source: ScriptedSource, scope: Scope) -> None:
        self._source = source
        self._scope = scope
        self._requested = threading.Event()
        self._requested.set()
        self._closed = False
        self._last: Update | None = None
        self._notice = ""

    def next(self) -> Update | None:
        """The next answer, or the last one with what went wrong since."""
        self._requested.wait(self._source.every_seconds)
        self._requested.clear()
        if self._closed:
            return None
        taken = self._source.now()
        try:
            self._last = Update(self._snapshot(), self._scope, LIVE, taken, self._notice)
        except QosError as error:
            last = self._last or Update(None, self._scope, LIVE, taken)
            retry_at = time.monotonic() + (self._source.every_seconds or 0)
            self._last = replace(last, health=Health(error, last.health.since or last.taken, retry_at))
        return self._last

    def _snapshot(self) -> Snapshot:
        try:
            return self._source.snapshot(self._scope)
        except ApiError as error:
            own = self._source.default_namespace
            if error.status != 403 or self._scope.namespace is not None or own is None:
                raise
            narrower = replace(self._scope, namespace=own)
            snapshot = self._source.snapshot(narrower)
            self._scope, self._notice = narrower, f"only namespace {own} is shown: {error}"
            return snapshot

    def refresh(self) -> None:
        """Ask now."""
        self._requested.set()

    def close(self) -> None:
        """End."""
        self._closed = True
        self._requested.set()


class ScriptedSource:
    """A live source that gives one answer after the other, the last one for ever.

    `asked` holds the scopes of the questions; with `hold` cleared, answers wait until it is set.
    """

    is_live = True

    def __init__(self, *answers: Answer, default_namespace: str | None = None) -> None:
        self.title = "scripted"
        self.default_namespace = default_namespace
        self.answers = list(answers)
        self.asked: list[Scope] = []
        self.moment = DEMO_TIME
        self.hold = threading.Event()
        self.hold.set()
        self.every_seconds: float | None = None
        self.told: tuple[Event, ...] | QosError = ()
        self.told_about: list[Pod] = []
        self.hold_events = threading.Event()
        self.hold_events.set()
        self.happened: EventList | QosError = EventList()
        self.asked_what_happened: list[str | None] = []
        self.hold_happenings = threading.Event()
        self.hold_happenings.set()
        self.around: QosError | Callable[[Pod], RelatedObjects] = around
        self.looked_around: list[Pod] = []
        self.hold_around = threading.Event()
        self.hold_around.set()
        self.scripted = ScriptedWriter()
        self.unwritable: QosError | None = None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The moment that the test says."""
        return self.moment

    def snapshot(self, scope: Scope) -> Snapshot:
        """The next answer."""
        with self._lock:
            self.asked.append(scope)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        assert self.hold.wait(10)
        if isinstance(answer, QosError):
            raise answer
        return answer if isinstance(answer, Snapshot) else answer(scope)

    def follow(self, scope: Scope) -> UpdateStream:
        """One answer each time it is refreshed."""
        return ScriptedStream(self, scope)

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """The pod as the demo has it."""
        return DemoSource().find(kind, namespace, name)

    def disruption_budgets(self) -> tuple[DisruptionBudget, ...]:
        """None."""
        return ()

    def locations(self, pods: Collection[Pod]) -> list[str]:
        """Their names."""
        return [pod.name for pod in pods]

    def change_file(self, pod: Pod, edits: Sequence[Edit]) -> str:
        """There is no file."""
        raise AssertionError((pod, edits))

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The object as the demo has it."""
        return DemoSource().raw(pod)

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """What the test says; with `hold_events` cleared, not before it is set."""
        self.told_about.append(pod)
        told = self.told
        assert self.hold_events.wait(10)
        if isinstance(told, QosError):
            raise told
        return told

    def event_list(self, namespace: str | None) -> EventList:
        """What the test says; with `hold_happenings` cleared, not before it is set."""
        self.asked_what_happened.append(namespace)
        happened = self.happened
        assert self.hold_happenings.wait(10)
        if isinstance(happened, QosError):
            raise happened
        return happened

    def related(self, pod: Pod) -> RelatedObjects:
        """What the test says; with `hold_around` cleared, not before it is set."""
        self.looked_around.append(pod)
        answer = self.around
        assert self.hold_around.wait(10)
        if isinstance(answer, QosError):
            raise answer
        return answer(pod)

    def writer(self) -> ScriptedWriter:
        """The scripted one, unless the test says that there is none."""
        if self.unwritable is not None:
            raise self.unwritable
        return self.scripted

    def later(self, seconds: int) -> None:
        """Time passes."""
        self.moment += timedelta(seconds=seconds)


def demo() -> Snapshot:
    """The whole demo cluster."""
    return DemoSource().snapshot(Scope())


def pod_named(snapshot: Snapshot, name: str) -> Pod:
    """The pod whose name begins so."""
    return next(pod for pod in snapshot.pods if pod.name.startswith(name))


def with_usage(snapshot: Snapshot, name: str, memory_bytes: int) -> Snapshot:
    """The snapshot in which the first container of a pod uses so much."""
    pod = pod_named(snapshot, name)
    used = {pod.containers[0].name: ContainerUsage(memory_bytes)}
    usage = PodUsage.of_containers(used, timestamp="2026-11-20T11:59:48Z")
    return replace(snapshot, usage={**snapshot.usage, (pod.namespace, pod.name): usage})


def without(snapshot: Snapshot, name: str) -> Snapshot:
    """The snapshot without a pod."""
    gone = pod_named(snapshot, name)
    return replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod is not gone))


def renamed(snapshot: Snapshot, name: str, new: str) -> Snapshot:
    """The snapshot in which a pod has another name."""
    old = pod_named(snapshot, name)
    metadata = msgspec.structs.replace(old.metadata, name=new)
    pods = tuple(
        msgspec.structs.replace(pod, metadata=metadata) if pod is old else pod for pod in snapshot.pods
    )
    return replace(snapshot, pods=pods)


def app_of(pilot: Pilot[Any]) -> QosApp:
    """The app, by its own type."""
    assert isinstance(pilot.app, QosApp)
    return pilot.app


def main_of(pilot: Pilot[Any]) -> MainScreen:
    """The main screen, whatever is open above it."""
    screen = pilot.app.screen_stack[0]
    assert isinstance(screen, MainScreen)
    return screen


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until no question is under way and everything is painted."""
    app = app_of(pilot)
    await pilot.pause()
    for _ in range(500):
        if not app.status.loading:
            break
        await pilot.pause(0.01)
    assert not app.status.loading
    await pilot.pause()


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(500):
        if condition():
            break
        await pilot.pause(0.01)
    assert condition()
    await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other, then wait for what they did."""
    await pilot.press(*keys)
    await pilot.pause()


async def type_text(pilot: Pilot[Any], text: str) -> None:
    """Type a text."""
    names = {
        "/": "slash",
        ":": "colon",
        "!": "exclamation_mark",
        " ": "space",
        "-": "minus",
        "=": "equals_sign",
    }
    names |= {".": "full_stop", "_": "underscore"}
    await press(pilot, *(names.get(character, character) for character in text))


def names(pilot: Pilot[Any]) -> list[str]:
    """The names of the pods that are shown, from the top."""
    return [row.name for row in main_of(pilot).table.rows]


def screen_text(pilot: Pilot[Any]) -> str:
    """Everything that stands on the screen, as text."""
    width, height = pilot.app.size
    del width
    compositor = pilot.app.screen._compositor
    strips = compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips[:height])


def words(pilot: Pilot[Any]) -> str:
    """The same without regard to where lines are broken, or to the frames of dialogs."""
    return " ".join(screen_text(pilot).replace("│", " ").split())
