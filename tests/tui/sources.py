"""Sources and helpers for tests of the UI: a cluster that says what a test tells it to, and patience."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import structs
from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.widgets import Input

from kubectl_qos.analysis.group_table import cluster_row
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.cluster.source import LIVE, Health, Source, Update, UpdateStream
from kubectl_qos.edit.edits import RESIZE, PatchRequest
from kubectl_qos.edit.history import Entry
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import ContainerState, ContainerStateTerminated, Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.base import ListRows
from kubectl_qos.tui.screens.base import KeyFooter
from kubectl_qos.tui.screens.main import MainScreen
from tests.tui.idle import UNSEEN
from tests.tui.writers import ScriptedWriter, around, memory, recorded

T = TypeVar("T")
Answer = Snapshot | QosError | Callable[[Scope], Snapshot]
NAMED_KEYS = {"/": "slash", ":": "colon", "!": "exclamation_mark", " ": "space", "-": "minus"}
NAMED_KEYS |= {"=": "equals_sign", ".": "full_stop", "_": "underscore", "<": "less_than_sign"}
NAMED_KEYS |= {"[": "left_square_bracket", "]": "right_square_bracket"}
API = "api-7d9c5b6f8-x2mzq"
"""The next victim of worker-2, and the first pod of the list."""


def given(answer: T | QosError, hold: threading.Event) -> T:
    """What a test says, once it is told to answer."""
    assert hold.wait(120)
    if isinstance(answer, QosError):
        raise answer
    return answer


class ScriptedStream(UpdateStream):
    """An answer at first, after each refresh, and at intervals; restricted to the scope as by informers."""

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
            self._last = structs.replace(
                last, health=Health(error, last.health.since or last.taken, retry_at)
            )
        return self._last

    def _snapshot(self) -> Snapshot:
        try:
            return self._source.snapshot(self._scope)
        except ApiError as error:
            own = self._source.default_namespace
            if error.status != 403 or self._scope.namespace is not None or own is None:
                raise
            narrower = self._scope._replace(namespace=own)
            snapshot = self._source.snapshot(narrower)
            self._scope, self._notice = narrower, f"only namespace {own} is shown: {error}"
            return snapshot

    def health(self) -> Health:
        return self._last.health if self._last is not None else LIVE

    def refresh(self) -> None:
        self._requested.set()

    def close(self) -> None:
        self._closed = True
        self._requested.set()


class ScriptedSource(Source):
    """A live source that gives one answer after the other, the last one for ever.

    `requested` holds the scopes of the questions; with `hold` cleared, answers wait until it is set.
    """

    is_live = True
    title = "scripted"
    default_namespace = None

    def __init__(self, *answers: Answer, default_namespace: str | None = None) -> None:
        self.default_namespace = default_namespace
        self.answers = list(answers)
        self.requested: list[Scope] = []
        self.moment = DEMO_TIME
        self.hold = threading.Event()
        self.hold.set()
        self.every_seconds: float | None = None
        self.pod_events: tuple[Event, ...] | QosError = ()
        self.event_requests: list[Pod] = []
        self.hold_events = threading.Event()
        self.hold_events.set()
        self.listed_events: EventList | QosError = EventList()
        self.event_list_requests: list[str | None] = []
        self.hold_event_list = threading.Event()
        self.hold_event_list.set()
        self.around: QosError | Callable[[Pod], RelatedObjects] = around
        self.looked_around: list[Pod] = []
        self.hold_around = threading.Event()
        self.hold_around.set()
        self.scripted = ScriptedWriter()
        self.unwritable: QosError | None = None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self.moment

    def snapshot(self, scope: Scope) -> Snapshot:
        with self._lock:
            self.requested.append(scope)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        assert self.hold.wait(120)
        if isinstance(answer, QosError):
            raise answer
        return answer if isinstance(answer, Snapshot) else answer(scope)

    def follow(self, scope: Scope) -> UpdateStream:
        return ScriptedStream(self, scope)

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """The pod as the demo has it."""
        return DemoSource().find(kind, namespace, name)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The object as the demo has it."""
        return DemoSource().raw(pod)

    def raw_node(self, name: str) -> dict[str, Any]:
        """The node as the demo has it."""
        return DemoSource().raw_node(name)

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """What the test says; with `hold_events` cleared, not before it is set."""
        self.event_requests.append(pod)
        return given(self.pod_events, self.hold_events)

    def event_list(self, namespace: str | None) -> EventList:
        """What the test says; with `hold_event_list` cleared, not before it is set."""
        self.event_list_requests.append(namespace)
        return given(self.listed_events, self.hold_event_list)

    def related(self, pod: Pod) -> RelatedObjects:
        """What the test says; with `hold_around` cleared, not before it is set."""
        self.looked_around.append(pod)
        return given(self.around, self.hold_around)(pod)

    def writer(self) -> ScriptedWriter:
        """The scripted one, unless the test says that there is none."""
        if self.unwritable is not None:
            raise self.unwritable
        return self.scripted

    def later(self, seconds: int) -> None:
        self.moment += timedelta(seconds=seconds)


NODES_OF_DEMO = ("worker-2", "worker-1", "worker-3", "control-1", "")
"""In the order of the list of all nodes: the fullest first."""


def node_after_node(rows: Iterable[PodRow]) -> list[PodRow]:
    """The order of the list of all nodes."""
    return sorted(rows, key=lambda row: NODES_OF_DEMO.index(row.node))


def demo() -> Snapshot:
    """The whole demo cluster."""
    return DemoSource().snapshot(Scope())


def pod_named(snapshot: Snapshot, name: str) -> Pod:
    """The pod whose name begins so."""
    return next(pod for pod in snapshot.pods if pod.name.startswith(name))


def applied(number: str, before: str, after: str, **other: Any) -> Entry:
    """A change of the memory of the pod `API` that was applied in place."""
    uid = pod_named(demo(), API).metadata.uid
    request = PatchRequest("Pod", "shop", API, uid, "41", RESIZE, (memory(after),), (memory(before),), {})
    return recorded(request, number, **other)


def one_cluster(name: str, snapshot: Snapshot) -> ListRows:
    """The list of a single cluster that has answered."""
    return ListRows([cluster_row(name, snapshot, EventList(), now=DEMO_TIME, taken=DEMO_TIME)])


def with_usage(snapshot: Snapshot, name: str, memory_bytes: int) -> Snapshot:
    """The snapshot with another usage of the first container of a pod."""
    pod = pod_named(snapshot, name)
    used = {pod.containers[0].name: ContainerUsage(memory_bytes)}
    usage = PodUsage.of_containers(used, timestamp="2026-11-20T11:59:48Z")
    return of_pods_alone(replace(snapshot, usage={**snapshot.usage, (pod.namespace, pod.name): usage}))


def of_pods_alone(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which nodes use what their pods use, as in the demo."""
    node_usage = dict.fromkeys(snapshot.nodes, 0)
    for pod in snapshot.pods:
        usage = None if pod.is_terminal else snapshot.usage_of(pod)
        if usage is not None and pod.node_name:
            node_usage[pod.node_name] += usage.working_set_bytes
    return replace(snapshot, node_usage=node_usage)


def without(snapshot: Snapshot, name: str) -> Snapshot:
    """The snapshot without a pod."""
    gone = pod_named(snapshot, name)
    return of_pods_alone(replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod is not gone)))


def died(pods: Snapshot, finished_at: str | None = None) -> Snapshot:
    """The snapshot in which the container of the changed pod was OOMKilled once more."""
    pod = pod_named(pods, API)
    (was,) = pod.status.every_container
    end = ContainerStateTerminated(exit_code=137, reason="OOMKilled", finished_at=finished_at)
    ended = ContainerState(terminated=end)
    now = msgspec.structs.replace(was, restart_count=was.restart_count + 1, last_state=ended)
    status = msgspec.structs.replace(pod.status, container_statuses=(now,))
    changed = msgspec.structs.replace(pod, status=status)
    return replace(pods, pods=tuple(changed if one is pod else one for one in pods.pods))


def renamed(snapshot: Snapshot, name: str, new: str) -> Snapshot:
    """The snapshot in which a pod has another name."""
    old = pod_named(snapshot, name)
    metadata = msgspec.structs.replace(old.metadata, name=new)
    pods = tuple(
        msgspec.structs.replace(pod, metadata=metadata) if pod is old else pod for pod in snapshot.pods
    )
    return replace(snapshot, pods=pods)


class Run(Pilot[Any]):
    """A running UI: what is on its screens, and keys with patience for what they do."""

    def __init__(self, app: QosApp) -> None:
        super().__init__(app)
        self.notifications: list[str] = []
        """What was notified, the newest last, also what is not shown any more."""
        notify = app.notify

        def noted(message: str, **options: Any) -> None:
            self.notifications.append(str(message))
            notify(message, **options)

        app.notify = noted  # type: ignore[method-assign]

    @property
    def qos(self) -> QosApp:
        assert isinstance(self.app, QosApp)
        return self.app

    @property
    def main(self) -> MainScreen:
        """The main screen, whatever is open above it."""
        screen = self.app.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    @property
    def source(self) -> ScriptedSource:
        assert isinstance(self.qos.source, ScriptedSource)
        return self.qos.source

    @property
    def screen_name(self) -> str:
        """The class of the screen on top."""
        return type(self.app.screen).__name__

    @property
    def names(self) -> list[str]:
        """The names of the pods that are shown, from the top."""
        return [row.name for row in self.main.table.rows]

    @property
    def text(self) -> str:
        """The whole text of the screen."""
        visible_screen_stack.set(self.app._background_screens)
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips[: self.app.size.height])

    @property
    def words(self) -> str:
        """The same without regard to where lines are broken, or to the frames of dialogs."""
        return " ".join(self.text.replace("│", " ").split())

    @property
    def footer(self) -> list[str]:
        """What the keys of the lowest line do, on the screen on top."""
        return [key.binding.description for line in self.app.screen.query(KeyFooter) for key in line.shown]

    def begin_at_first(self) -> None:
        """Put the cursor on the first row of every list and place: keys of tests count from there."""
        main = self.main
        main._go_to_first_death = lambda: main.table.action_first()  # type: ignore[method-assign]  # noqa: PLW0108 - of the list then
        main._begin()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        for _ in range(3_000):
            if condition():
                break
            await self.pause(0.01)
        assert condition()
        await self.pause()

    async def seen(self, text: str) -> None:
        """Wait until a text is on the screen."""
        await self.until(lambda: text in self.words)

    async def settled(self) -> None:
        """Wait until no request is under way and everything is painted."""
        await self.pause()
        await self.until(lambda: not self.qos.status.loading)

    async def listed(self) -> None:
        """Wait until the list is built, if there are facts to build it from."""
        await self.until(lambda: self.app._exit or self.qos.view_model is None or not self.main.is_building)

    async def keys(self, *keys: str) -> None:
        """Press keys one after the other, then wait for what they did."""
        await self.press(*keys)
        await self.pause()

    async def press_each(self, *keys: str) -> None:
        """Press keys, each after the list of the one before is built."""
        for key in keys:
            await self.keys(key)
            await self.listed()

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.keys(*(NAMED_KEYS.get(character, character) for character in text))

    async def put(self, text: str) -> None:
        """A text in the first line of the screen that can be typed in, as if it had been pasted."""
        self.app.screen.query(Input).first().value = text
        await self.pause()

    async def paste(self, text: str) -> None:
        """A text in the line that has the focus: one change, where typing is one for each character."""
        assert isinstance(self.app.focused, Input)
        self.app.focused.value = text
        self.app.focused.action_end()
        await self.pause()

    async def go_to(self, text: str) -> None:
        """Enter a text behind a colon."""
        await self.keys("colon")
        await self.paste(text)
        await self.keys("enter")

    async def filter_by(self, text: str) -> None:
        """Enter a filter."""
        await self.keys("slash")
        await self.paste(text)
        await self.keys("enter")

    async def refresh(self) -> None:
        """Request another answer, and wait for it."""
        await self.keys("r")
        await self.settled()


@asynccontextmanager
async def running(
    source: Source | QosApp | None = None,
    *pressed: str,
    size: tuple[int, int] = (120, 40),
    scope: Scope | None = None,
    ready: bool = True,
    notifications: bool = False,
    at_first: bool = True,
    painted: bool = False,
    **options: Any,
) -> AsyncIterator[Run]:
    """The UI of a source, of the demo by default, after keys; where it is ready, with the first answer.

    With `painted` every screen on the way is painted, otherwise those that a test looks at.

    Unless asked otherwise, the cursor begins on the first row of every list, not on who dies first.
    """
    if isinstance(source, QosApp):
        app = source
    else:
        app = QosApp(source or DemoSource(), scope or Scope(), **options)
    if not painted:
        UNSEEN.add(app)
    async with app.run_test(size=size, notifications=notifications):
        pilot = Run(app)
        await pilot.until(lambda: app.screen.focused is not None or not app.screen.focus_chain)
        if ready:
            await pilot.settled()
            if at_first:
                pilot.begin_at_first()
        await pilot.keys(*pressed)
        yield pilot
