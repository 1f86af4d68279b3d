"""Pictures of every screen, compared with those in snapshots/tui (--snapshot-update renews them).

One application shows several screens, and each of them in several sizes: starting it is what takes time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
from textual.app import App
from textual.pilot import Pilot

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.config.settings import ContextSettings, Settings
from kubectl_qos.edit.apply import ConflictError, DryRunResult
from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.history import Entry, EntryState, ValueConflict
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import ObjectMeta, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import ResourceQuota, ResourceQuotaStatus
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.tui.app import ContextSwitch, QosApp
from kubectl_qos.tui.screens import browse
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.widgets import line_table
from tests.tui.conftest import Picture, Size
from tests.tui.sources import (
    ScriptedSource,
    app_of,
    demo,
    main_of,
    pod_named,
    press,
    screen_text,
    settled,
    type_text,
    until,
    with_usage,
    without,
    words,
)
from tests.tui.writers import around, entry_of, memory

Run = Pilot[Any]
SMALL: Final = (80, 24)
MIDDLE: Final = (120, 40)
BOTH: Final = (SMALL, MIDDLE)
ALL: Final = (*BOTH, (200, 60))
LISTS: Final = {"1": "nodes", "2": "namespaces", "3": "workloads", "5": "containers"}
"""The lists by their keys, without that of pods, which is the first."""
API: Final = "api-7d9c5b6f8-x2mzq"
CHANGED: Final = ("tab", "1", "G", "i")


@asynccontextmanager
async def shown(
    app: QosApp | None = None, size: Size = SMALL, *, notifications: bool = False, **options: Any
) -> AsyncIterator[Run]:
    """An application of the demo cluster that shows its first screen."""
    app = app or QosApp(DemoSource(), Scope(), **options)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await settled(pilot)
        await listed(pilot)
        yield pilot


async def listed(pilot: Run) -> None:
    """Wait until everything that is to be listed is worked out."""
    main = main_of(pilot)
    await until(pilot, lambda: main.qos.view_model is None or not main.is_building)


async def keys(pilot: Run, *pressed: str) -> None:
    """Each key after what the one before has listed."""
    for key in pressed:
        await press(pilot, key)
        await listed(pilot)


async def seen(pilot: Run, text: str) -> None:
    await until(pilot, lambda: text in words(pilot))


async def gone(pilot: Run, text: str) -> None:
    await until(pilot, lambda: text not in words(pilot))


async def test_lists(picture: Picture) -> None:
    async with shown() as pilot:
        await picture(pilot, "main", sizes=(*ALL, (100, 30)))
        for key, name in LISTS.items():
            await keys(pilot, key)
            await picture(pilot, "list", name, sizes=ALL)
        await pilot.resize_terminal(59, 14)
        await picture(pilot, "too_small")


OF_ONE: Final = {
    "namespace": ("2", "j", "j", "enter"),
    "workload": ("3", "enter"),
    "pod": ("slash", *"prom", "enter", "i"),
    "node-and-namespace": ("5", "tab", "j", "tab", "j"),
}


@pytest.mark.parametrize("name", OF_ONE)
async def test_list_of_one(picture: Picture, name: str) -> None:
    async with shown() as pilot:
        await keys(pilot, *OF_ONE[name])
        await picture(pilot, "list_of_one", name, sizes=BOTH)


async def test_panes_and_rows(picture: Picture) -> None:
    async with shown() as pilot:
        await keys(pilot, "tab", "j", "tab", "j")
        await picture(pilot, "panes_of_a_narrow_terminal")
    async with shown() as pilot:
        await keys(pilot, "tab", "j", "enter", "j", "space")
        await picture(pilot, "one_node", sizes=BOTH)
    async with shown() as pilot:
        await keys(pilot, "w", "right", "right", "right", "s", "S")
        await picture(pilot, "wide_scrolled", sizes=BOTH)


async def test_the_prompt(picture: Picture) -> None:
    async with shown() as pilot:
        for text, name in (("shop", "filter_while_typing"), ("-l app=a b", "filter_that_is_wrong")):
            await press(pilot, "slash")
            await type_text(pilot, text)
            await picture(pilot, name, sizes=BOTH)
            await press(pilot, "escape")
        await press(pilot, "colon")
        await type_text(pilot, "pods sh")
        await picture(pilot, "going_to_a_place")
        await press(pilot, "escape", "slash")
        await type_text(pilot, "nothing-like-this")
        await press(pilot, "enter")
        await picture(pilot, "filter_without_a_hit", sizes=BOTH)


async def test_screens_of_a_pod(picture: Picture) -> None:
    async with shown() as pilot:
        await keys(pilot, "d")
        await picture(pilot, "explain", sizes=ALL)
        await keys(pilot, "z", "tab", "enter")
        await picture(pilot, "explain_folded")
        await keys(pilot, "escape", "v")
        await picture(pilot, "tree", sizes=ALL)
        await keys(pilot, "escape", "u")
        await type_text(pilot, "1.37 memory=32Gi")
        await picture(pilot, "compare", sizes=ALL)


async def edit(pilot: Run, name: str) -> None:
    """Open the fields of a pod."""
    await press(pilot, "slash")
    await type_text(pilot, name)
    await press(pilot, "enter", "e")
    await gone(pilot, "reading owners")


async def test_edit(picture: Picture) -> None:
    async with shown() as pilot:
        await edit(pilot, API)
        await picture(pilot, "edit_unchanged", sizes=ALL)
        for text, name, sizes in (
            ("1x", "wrong_quantity", BOTH),
            ("3Gi", "what_a_server_refuses", BOTH),
            ("1Gi", "changed", ALL),
        ):
            await press(pilot, "tab", *text)
            await picture(pilot, f"edit_{name}", sizes=sizes)
            await press(pilot, "ctrl+r", "shift+tab")
        await press(pilot, "ctrl+g")
        await picture(pilot, "edit_made_guaranteed", sizes=BOTH)
        await press(pilot, "ctrl+s", "m", "m")
        await until(pilot, lambda: getattr(pilot.app.screen, "text", None) is not None)
        await picture(pilot, "manifest", sizes=BOTH)
        await press(pilot, "escape", "escape", "ctrl+r", *CHANGED)
        await press(pilot, "escape")
        await picture(pilot, "question_before_leaving")
        await press(pilot, "n", "ctrl+s", "m")
        await picture(pilot, "patch", sizes=ALL)
        await press(pilot, "escape", "escape")
        await pilot.resize_terminal(*MIDDLE)
        await press(pilot, "ctrl+c")
        await picture(pilot, "question_before_leaving_in_the_middle")
    async with shown() as pilot:
        await edit(pilot, "trainer-gpu")
        await press(pilot, "tab", "1", "G")
        await picture(pilot, "edit_pod_level", sizes=BOTH)


def scripted(**options: Any) -> tuple[QosApp, ScriptedSource]:
    """A cluster that takes changes."""
    source = ScriptedSource(demo())
    return QosApp(source, Scope(), **options), source


async def land(pilot: Run, *pressed: str, until_seen: str = "through deployment/api") -> None:
    """Change the pod, open the ways to apply that, and press keys, each after what the one before led to."""
    await edit(pilot, API)
    await press(pilot, *CHANGED, "ctrl+s")
    await gone(pilot, "loading related objects")
    await go_on(pilot, *pressed, until_seen=until_seen)


async def go_on(pilot: Run, *pressed: str, until_seen: str) -> None:
    for key in pressed:
        await press(pilot, key)
        await gone(pilot, "waiting for scripted")
    await seen(pilot, until_seen)


def less(request: PatchRequest) -> DryRunResult:
    """The server stores less than was asked for, with a warning."""
    stored = (replace(request.edits[0], quantity=Quantity.parse("768Mi")),)
    return DryRunResult(request, stored, {}, ("spec.template: this form is deprecated",))


async def test_landing(picture: Picture) -> None:
    app, source = scripted()
    source.scripted.rehearsals = [less]
    async with shown(app) as pilot:
        await land(pilot)
        await picture(pilot, "landing", sizes=BOTH)
        await go_on(pilot, "d", until_seen="the server accepts it")
        await picture(pilot, "landing_rehearsed", sizes=BOTH)


async def test_confirming_and_progress(picture: Picture) -> None:
    app, source = scripted()
    rolling = Progress(Stage.ROLLING, settled=False, message="1 old pod is still there", done=1, total=3)
    source.scripted.looks = [rolling]
    async with shown(app) as pilot:
        await land(pilot, "tab", "a", until_seen="Write this to the cluster?")
        await picture(pilot, "confirm", sizes=BOTH)
        await go_on(pilot, "y", until_seen="1 of 3 pods")
        await picture(pilot, "progress", sizes=BOTH)


async def test_confirming_by_name(picture: Picture) -> None:
    app, _ = scripted(settings=Settings(contexts={"scripted": ContextSettings(confirm="name")}))
    async with shown(app) as pilot:
        await land(pilot, "a", *"scrip", "enter", until_seen="That is not scripted")
        await picture(pilot, "confirm_by_name", sizes=BOTH)


async def test_a_write_that_is_refused(picture: Picture) -> None:
    app, source = scripted()
    modified = f'Operation cannot be fulfilled on pods "{API}": the object has been modified'
    source.scripted.writes = [
        ApiError(modified, status=409, reason="ValueConflict", hint="rehearse the change again")
    ]
    async with shown(app) as pilot:
        await land(pilot, "a", "y", until_seen="! not applied")
        await picture(pilot, "progress_refused", sizes=BOTH)


async def test_what_cannot_land(picture: Picture) -> None:
    app, _ = scripted()
    async with shown(app) as pilot:
        await edit(pilot, API)
        await press(pilot, "ctrl+g", "ctrl+s")
        await seen(pilot, "> through deployment/api")
        await picture(pilot, "landing_class_change_refused_in_place", sizes=BOTH)
    app, source = scripted()
    found = ValueConflict("c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi")))
    sentence = f"pod/{API} was changed by someone else since it was looked at"
    source.scripted.rehearsals = [ConflictError(sentence, (found,))]
    async with shown(app) as pilot:
        await land(pilot, "d", until_seen="someone else")
        await picture(pilot, "landing_conflict", sizes=BOTH)
    app, _ = scripted(readonly=True)
    async with shown(app) as pilot:
        await land(pilot)
        await picture(pilot, "landing_read_only", sizes=BOTH)


QUOTA: Final = ResourceQuota(
    metadata=ObjectMeta(name="team"),
    status=ResourceQuotaStatus(
        hard=resource_list({"requests.memory": "8Gi"}), used=resource_list({"requests.memory": "8000Mi"})
    ),
)
FULL: Final = (
    'Error from server (Forbidden): pods "api-7d9c5b6f8-x2mzq" is forbidden: exceeded quota: team, '
    "requested: requests.memory=512Mi, used: requests.memory=8000Mi, limited: requests.memory=8Gi"
)


def limited() -> tuple[QosApp, ScriptedSource]:
    """A namespace with too little left in its quota."""
    app, source = scripted()
    source.around = lambda pod: replace(around(pod), quotas=(QUOTA,))
    return app, source


async def test_a_quota_that_is_full(picture: Picture) -> None:
    app, source = limited()
    source.scripted.rehearsals = [ApiError(FULL, status=403, reason="Forbidden")]
    async with shown(app) as pilot:
        await edit(pilot, API)
        await press(pilot, *CHANGED)
        await picture(pilot, "edit_quota_refuses", sizes=BOTH)
        await press(pilot, "ctrl+s")
        await gone(pilot, "loading related objects")
        await go_on(pilot, "d", until_seen="! not applied")
        await picture(pilot, "landing_quota_refused", sizes=BOTH)


def remembering(*entries: Entry) -> QosApp:
    """Someone who applied something before."""
    app, _ = scripted()
    for entry in entries:
        app.writing.history.put(entry)
    return app


def entry(number: str, before: str, after: str, **other: Any) -> Entry:
    """A change of that pod."""
    uid = pod_named(demo(), API).metadata.uid
    request = PatchRequest("Pod", "shop", API, uid, "41", "resize", (memory(after),), (memory(before),), {})
    return replace(entry_of(request, number), **other)


ENTRIES: Final = (
    entry("0000", "128Mi", "256Mi", at="2026-11-18T09:00:00Z"),
    entry("0001", "256Mi", "512Mi"),
    entry("0002", "512Mi", "9Gi", state=EntryState.REFUSED, message="exceeded quota: team"),
)


async def test_undo(picture: Picture) -> None:
    async with shown(remembering(*ENTRIES)) as pilot:
        await press(pilot, "U")
        await seen(pilot, "exceeded quota")
        await press(pilot, "down")
        await picture(pilot, "undo", sizes=BOTH)
    async with shown(remembering(ENTRIES[1])) as pilot:
        for key, text in (
            ("U", "512Mi"),
            ("u", "> in place"),
            ("a", "Write this"),
            ("y", "previous values are restored"),
        ):
            await press(pilot, key)
            await seen(pilot, text)
        await picture(pilot, "undone", sizes=BOTH)


async def test_loading(picture: Picture) -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with QosApp(source, Scope()).run_test(size=SMALL) as pilot:
        await pilot.pause()
        try:
            await picture(pilot, "loading", sizes=BOTH)
        finally:
            source.hold.set()


REFUSED = ServerUnreachable(
    "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
    hint="kubectl config get-contexts lists the clusters that are configured",
)


async def test_without_an_answer(picture: Picture) -> None:
    async with shown(QosApp(ScriptedSource(REFUSED), Scope())) as pilot:
        await picture(pilot, "no_answer", sizes=BOTH)
    source = ScriptedSource(demo(), REFUSED)
    async with shown(QosApp(source, Scope())) as pilot:
        source.later(75)
        await press(pilot, "r")
        await settled(pilot)
        await picture(pilot, "stale", sizes=BOTH)


async def test_an_empty_cluster(picture: Picture) -> None:
    async with shown(QosApp(DemoSource(), Scope(namespace="nothing-here"))) as pilot:
        await picture(pilot, "empty_cluster", sizes=BOTH)


async def test_themes(picture: Picture) -> None:
    async with shown(size=MIDDLE) as pilot:
        for theme in THEMES[1:]:
            pilot.app.theme = theme.name
            await pilot.pause()
            await picture(pilot, "theme", theme.name)
            await keys(pilot, "1")
            await picture(pilot, "theme_of_nodes", theme.name)
            await keys(pilot, "4", "d")
            await picture(pilot, "theme_of_explain", theme.name)
            await keys(pilot, "escape")


async def test_without_colours(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(size=MIDDLE) as pilot:
        await keys(pilot, "1")
        await picture(pilot, "without_colours", "nodes")
        await keys(pilot, "4", "d")
        await picture(pilot, "without_colours", "explain")
        await keys(pilot, "escape", "e", *CHANGED)
        await picture(pilot, "without_colours", "edit")
        await keys(pilot, "escape", "y", "j", "space")
        await picture(pilot, "without_colour")


async def test_in_ascii(picture: Picture) -> None:
    async with shown(size=MIDDLE, ascii_only=True) as pilot:
        await picture(pilot, "in_ascii", "pods")
        await keys(pilot, "1")
        await picture(pilot, "in_ascii", "nodes")
        await keys(pilot, "4", "d")
        await picture(pilot, "in_ascii", "explain")


async def test_read_only(picture: Picture) -> None:
    async with shown(size=MIDDLE, readonly=True) as pilot:
        await picture(pilot, "read_only")


NOTES: Final = (
    "a.yaml: document 2: not a list",
    "b.yaml, line 17: spec.containers[0].resources.limits.memory: quantities must match a regular expression",
)


async def test_notes(picture: Picture) -> None:
    async with shown(notes=NOTES) as pilot:
        await picture(pilot, "notes_below_the_list")
        await keys(pilot, "n")
        await picture(pilot, "notes", sizes=BOTH)


async def test_dialogs(picture: Picture) -> None:
    async with shown() as pilot:
        await keys(pilot, "question_mark")
        await picture(pilot, "help", sizes=ALL)
        await pilot.resize_terminal(*MIDDLE)
        await keys(pilot, "G")
        await picture(pilot, "help_further_down")
        await keys(pilot, "escape")
        await pilot.resize_terminal(*SMALL)
        for size in ALL:
            # What fits is worked out when they open.
            await pilot.resize_terminal(*size)
            await keys(pilot, "f", *"cart", "down")
            await picture(pilot, "finder", sizes=[size])
            await keys(pilot, "escape", "ctrl+p")
            await picture(pilot, "palette", sizes=[size])
            await keys(pilot, "escape", "C", "j", "space", "J")
            await picture(pilot, "columns", sizes=[size])
            await keys(pilot, "escape")
        await pilot.resize_terminal(*SMALL)
        await keys(pilot, "f", *"zzz")
        await picture(pilot, "finder_without_a_hit")
        await keys(pilot, "escape", "x")
        await picture(pilot, "question_for_a_file_name")
        await pilot.resize_terminal(*MIDDLE)
        await keys(pilot, *["backspace"] * 3, *"doc", "enter")
        await picture(pilot, "question_for_a_file_name_that_is_wrong")
        await keys(pilot, "escape", "d", "ctrl+p", *"co")
        await picture(pilot, "palette_searched")


async def test_contexts(picture: Picture) -> None:
    contexts = ContextSwitch(lambda: ("demo", "prod-eu", "prod-us", "staging"), lambda _: DemoSource())
    async with shown(contexts=contexts) as pilot:
        await keys(pilot, "colon", *"ctx", "enter", "down")
        await picture(pilot, "contexts", sizes=BOTH)


async def test_notifications(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    def notify(self: QosApp, text: str, **options: Any) -> None:
        App.notify(self, text, **{**options, "timeout": 3600})

    monkeypatch.setattr(QosApp, "notify", notify)
    for name, pressed in (
        ("copied", ("j", "c")),
        ("nothing-to-copy", ("slash", *"zzz", "enter", "c")),
        ("theme", ("t",)),
    ):
        async with shown(size=MIDDLE, notifications=True) as pilot:
            await keys(pilot, *pressed)
            await picture(pilot, "said_in_passing", name)


async def test_paused(picture: Picture) -> None:
    async with shown(QosApp(ScriptedSource(demo()), Scope()), MIDDLE) as pilot:
        await keys(pilot, "p")
        await picture(pilot, "paused")


def forbidden(what: str) -> str:
    return (
        f'Error from server (Forbidden): {what} is forbidden: User "ada" cannot list resource '
        f'"{what}" in API group "" at the cluster scope'
    )


PARTLY: Final = (
    Missing(
        OTHER_PODS, forbidden("pods"), "grant list on pods in all namespaces; until then ranks are among"
    ),
    Missing("the nodes' memory capacity", forbidden("nodes"), "grant get and list on nodes"),
)


NO_METRICS: Final = Missing("memory usage", "Metrics API not available", "install metrics-server")


async def test_what_may_not_be_read(picture: Picture) -> None:
    refused = ApiError(
        forbidden("pods"), status=403, reason="Forbidden", hint="grant list on pods, or give -n"
    )
    async with shown(QosApp(ScriptedSource(refused), Scope())) as pilot:
        await picture(pilot, "without_the_right_to_see_pods", sizes=BOTH)
    for name, snapshot in (
        ("without_the_right_to_see_nodes", replace(demo(), nodes={}, missing=PARTLY)),
        ("without_usage", replace(demo(), usage={}, missing=(NO_METRICS,))),
    ):
        async with shown(QosApp(ScriptedSource(snapshot), Scope()), MIDDLE) as pilot:
            await picture(pilot, name, "pods")
            await keys(pilot, "1")
            await picture(pilot, name, "nodes")
    nothing = replace(demo(), usage={}, nodes={}, missing=(NO_METRICS,))
    async with shown(QosApp(ScriptedSource(nothing), Scope())) as pilot:
        await picture(pilot, "without_usage_and_capacity", sizes=BOTH)


async def test_a_list_being_worked_out(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(size=MIDDLE) as pilot:
        monkeypatch.setattr(browse, "run_in_background", lambda *_: None)
        await press(pilot, "1")
        await picture(pilot, "a_list_being_worked_out")


async def refresh(pilot: Pilot[Any]) -> None:
    """Ask again and wait until the answer is shown."""
    before = app_of(pilot).view_model
    await press(pilot, "r")
    await until(pilot, lambda: app_of(pilot).view_model is not before)
    await settled(pilot)
    await listed(pilot)


@pytest.mark.parametrize(("key", "name"), [("4", "pods"), ("1", "nodes")])
async def test_cells_that_have_changed(
    picture: Picture, monkeypatch: pytest.MonkeyPatch, key: str, name: str
) -> None:
    monkeypatch.setattr(line_table, "FLASH_SECONDS", 3600)
    newer = with_usage(with_usage(demo(), "crunch-", 700 << 20), "warehouse-", 9 << 30)
    app = QosApp(ScriptedSource(demo(), newer), Scope())
    app.animation_level = "full"
    async with shown(app, MIDDLE) as pilot:
        await keys(pilot, key)
        await refresh(pilot)
        await picture(pilot, "cells_that_have_changed", name)


def used(percent: int) -> Snapshot:
    """The demo when every pod uses so much of what it uses."""

    def of(usage: PodUsage) -> PodUsage:
        shares = {name: usage.of(name) for name in usage.names}
        amounts = {
            name: ContainerUsage(share.working_set_bytes * percent // 100)
            for name, share in shares.items()
            if share is not None
        }
        return PodUsage.of_containers(amounts, timestamp=usage.timestamp)

    snapshot = demo()
    return replace(snapshot, usage={key: of(usage) for key, usage in snapshot.usage.items()})


TREND: Final = ("rank", "pod", "qos", "memory", "trend", "limit", "limit_percent")


async def test_trend(picture: Picture) -> None:
    source = ScriptedSource(*(used(percent) for percent in (20, 35, 50, 45, 70, 85, 80, 100)))
    async with shown(QosApp(source, Scope(), settings=Settings(columns=TREND)), MIDDLE) as pilot:
        for _ in range(7):
            await refresh(pilot)
        await picture(pilot, "trend")


def event(reason: str, message: str, minute: int, kind: str = "Warning") -> Event:
    when = f"2026-11-20T11:{minute:02}:00Z"
    return Event(type=kind, reason=reason, message=message, last_timestamp=when)


EVENTS: Final = (
    event("Scheduled", "Successfully assigned shop/api-7d9c5b6f8-x2mzq to worker-2", 12, "Normal"),
    event("BackOff", "Back-off restarting failed container c in pod api-7d9c5b6f8-x2mzq", 40),
    event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 58),
)


async def explain(pilot: Run) -> None:
    """The first pod with its events, of which there may be none yet."""
    await keys(pilot, "d")
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    await until(pilot, lambda: not source.hold_events.is_set() or has_events(pilot))


def has_events(pilot: Run) -> bool:
    return isinstance(pilot.app.screen, ExplainScreen) and not pilot.app.screen._is_loading_events


async def test_explain_with_events(picture: Picture) -> None:
    source = ScriptedSource(demo())
    source.told = EVENTS
    async with shown(QosApp(source, Scope())) as pilot:
        await explain(pilot)
        await press(pilot, "G")
        await picture(pilot, "explain_with_events", sizes=BOTH)


async def test_explain_without_events(picture: Picture) -> None:
    source = ScriptedSource(demo())
    source.told = ApiError(forbidden("events"), status=403, reason="Forbidden", hint="grant list on events")
    async with shown(QosApp(source, Scope()), MIDDLE) as pilot:
        await explain(pilot)
        await press(pilot, "G")
        await picture(pilot, "explain_with_events_refused")
    source = ScriptedSource(demo())
    source.hold_events.clear()
    async with shown(QosApp(source, Scope()), MIDDLE) as pilot:
        await explain(pilot)
        await press(pilot, "G")
        try:
            await picture(pilot, "explain_while_events_are_asked_for")
        finally:
            source.hold_events.set()


async def test_explain_of_a_pod_that_is_gone(picture: Picture) -> None:
    source = ScriptedSource(demo(), without(demo(), API))
    async with shown(QosApp(source, Scope()), MIDDLE) as pilot:
        await explain(pilot)
        source.later(75)
        await refresh(pilot)
        await until(pilot, lambda: has_events(pilot) and "gone since" in screen_text(pilot))
        await picture(pilot, "explain_of_a_pod_that_is_gone")


SIMULATED: Final = {
    "free": ("o", *["shift+right"] * 3),
    "important": ("o", "end", "G"),
    "grow": ("j", "o", "tab", "shift+right"),
    "until-oom": ("o", "shift+tab", "E"),
}


async def work_out(pilot: Run, *pressed: str, until_gone: str) -> None:
    """The keys, each after what the one before has begun in a thread."""
    for key in pressed:
        await press(pilot, key)
        await gone(pilot, until_gone)


@pytest.mark.parametrize("name", SIMULATED)
async def test_simulation(picture: Picture, name: str) -> None:
    async with shown() as pilot:
        for size in BOTH:
            # What fits is worked out when it opens.
            await pilot.resize_terminal(*size)
            await work_out(pilot, *SIMULATED[name], until_gone="Simulating …")
            await picture(pilot, "simulation", name, sizes=[size])
            await keys(pilot, "escape", "g")


async def test_simulation_without_usage(picture: Picture) -> None:
    async with shown(QosApp(ScriptedSource(replace(demo(), usage={})), Scope())) as pilot:
        await work_out(pilot, "o", until_gone="Simulating …")
        await picture(pilot, "simulation_without_usage")


async def test_kills(picture: Picture) -> None:
    async with shown() as pilot:
        await work_out(pilot, "K", until_gone="Reading …")
        await picture(pilot, "kills", sizes=BOTH)
        await keys(pilot, "escape", "2", "G", "enter")
        await work_out(pilot, "K", until_gone="Reading …")
        await picture(pilot, "kills_of_none", sizes=BOTH)


async def test_kills_that_are_not_known(picture: Picture) -> None:
    source = ScriptedSource(demo())
    source.hold_happenings.clear()
    async with shown(QosApp(source, Scope())) as pilot:
        await press(pilot, "K")
        await picture(pilot, "kills_while_they_are_read")
        source.hold_happenings.set()
    missing = Missing("the list of events", forbidden("events"), "grant list on events in all namespaces")
    unreachable = ServerUnreachable("cannot reach https://10.0.0.1:6443: refused", hint="is it up?")
    for name, happened in (
        ("kills_without_the_right_to_see_events", EventList(of_nodes=False, missing=missing)),
        ("kills_that_could_not_be_read", unreachable),
    ):
        source = ScriptedSource(demo())
        source.happened = happened
        async with shown(QosApp(source, Scope())) as pilot:
            await work_out(pilot, "K", until_gone="Reading …")
            await picture(pilot, name)
