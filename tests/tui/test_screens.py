"""Every screen as a picture or as text, compared with snapshots/tui (--snapshot-update renews them).

One application shows several screens, and each of them in several sizes: starting it is what takes time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs
from textual.app import App
from textual.filter import Monochrome

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.edit.apply_state import ConflictError, DryRunResult
from kubectl_qos.edit.edits import PatchRequest, Side
from kubectl_qos.edit.history import Entry, EntryState, ValueConflict
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import ObjectMeta, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import ResourceQuota, ResourceQuotaStatus
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens import browse
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.shell import ContextSwitch
from kubectl_qos.tui.terminal import AsciiFilter
from kubectl_qos.tui.widgets import line_table
from tests.tui.conftest import SNAPSHOTS, Look, Picture
from tests.tui.screen_texts import STYLES, ScreenTexts, Size, sections_of
from tests.tui.sources import (
    API,
    Answer,
    Run,
    ScriptedSource,
    applied,
    demo,
    of_pods_alone,
    running,
    with_usage,
    without,
)
from tests.tui.test_past import Store
from tests.tui.writers import around

SMALL: Final = (80, 24)
MIDDLE: Final = (120, 40)
BOTH: Final = (SMALL, MIDDLE)
ALL: Final = (*BOTH, (200, 60))
LISTS: Final = {"1": "nodes", "2": "namespaces", "3": "workloads", "5": "containers"}
"""The lists by their keys, without that of pods, which is the first."""
CHANGED: Final = ("tab", "shift+tab", "1", "G", "i")


@asynccontextmanager
async def shown(
    app: QosApp | None = None, size: Size = SMALL, *, notifications: bool = False, **options: Any
) -> AsyncIterator[Run]:
    """An application of the demo cluster that shows its first screen."""
    app = app or QosApp(DemoSource(), Scope(), **options)
    async with running(app, size=size, notifications=notifications) as pilot:
        await pilot.listed()
        yield pilot


async def gone(pilot: Run, text: str) -> None:
    await pilot.until(lambda: text not in pilot.words)


async def test_lists(screen_text: Look) -> None:
    async with shown() as pilot:
        await screen_text(pilot, "main", sizes=(*ALL, (100, 30), (160, 45)))
        for key, name in LISTS.items():
            await pilot.press_each(key)
            await screen_text(pilot, "list", name, sizes=ALL if name == "workloads" else BOTH)
        await pilot.resize_terminal(59, 14)
        await screen_text(pilot, "too_small")


def of_demo(**options: Any) -> QosApp:
    return QosApp(DemoSource(), Scope(), **options)


def live(*answers: Answer, **options: Any) -> QosApp:
    return QosApp(ScriptedSource(*answers), Scope(), **options)


def forbidden(what: str) -> str:
    return (
        f'Error from server (Forbidden): {what} is forbidden: User "ada" cannot list resource '
        f'"{what}" in API group "" at the cluster scope'
    )


class Single(NamedTuple):
    """The picture of a new application after some keys."""

    name: str
    variant: str = ""
    keys: Sequence[str] = ()
    app: Callable[[], QosApp] = of_demo
    sizes: Sequence[Size] = BOTH
    start: Size = SMALL


PARTLY: Final = (
    Missing(
        OTHER_PODS, forbidden("pods"), "grant list on pods in all namespaces; until then ranks are among"
    ),
    Missing("the nodes' memory capacity", forbidden("nodes"), "grant get and list on nodes"),
)
NO_METRICS: Final = (Missing("memory usage", "Metrics API not available", "install metrics-server"),)
NO_PODS: Final = ApiError(
    forbidden("pods"), status=403, reason="Forbidden", hint="grant list on pods, or give -n"
)
REFUSED: Final = ServerUnreachable(
    "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
    hint="kubectl config get-contexts lists the clusters that are configured",
)
CONTEXTS: Final = ContextSwitch(
    lambda: ("demo", "prod-eu", "prod-us", "staging"),
    lambda _: DemoSource(),
    lambda _: Store(),
)


def fleet() -> QosApp:
    """Two clusters that answer, and one that does not."""
    known = {name: ScriptedSource(demo()) for name in ("prod-eu", "prod-us")}
    known["prod-us"].answers = [with_usage(without(demo(), API), "crunch-", 2 << 30)]
    known["staging"] = ScriptedSource(REFUSED)
    for name, source in known.items():
        source.title = name
    contexts = ContextSwitch(lambda: tuple(known), lambda name: known[name or "prod-eu"], lambda _: Store())
    return QosApp(known["prod-eu"], Scope(), contexts=contexts)


NO_NODES: Final = replace(demo(), nodes={}, missing=PARTLY)
NO_USAGE: Final = replace(demo(), usage={}, node_usage={}, missing=NO_METRICS)
SINGLE: Final = (
    Single("list_of_one", "namespace", ("2", "j", "j", "enter")),
    Single("list_of_one", "workload", ("3", "enter")),
    Single("list_of_one", "pod", ("slash", *"prom", "enter", "i")),
    Single("list_of_one", "node-and-namespace", ("5", "tab", "j", "tab", "j")),
    Single("panes_of_a_narrow_terminal", keys=("tab", "j", "tab", "j"), sizes=()),
    Single("one_node", keys=("tab", "j", "enter", "j", "space")),
    Single("wide_scrolled", keys=("w", "right", "right", "right", "s", "S")),
    Single("contexts", keys=("colon", *"ctx", "enter", "down"), app=partial(of_demo, contexts=CONTEXTS)),
    Single("clusters", keys=("0",), app=fleet, sizes=(), start=MIDDLE),
    Single("read_only", app=partial(of_demo, readonly=True), sizes=(), start=MIDDLE),
    Single("paused", keys=("p",), app=partial(live, demo()), sizes=(), start=MIDDLE),
    Single("empty_cluster", app=lambda: QosApp(DemoSource(), Scope(namespace="nothing-here"))),
    Single("no_answer", app=partial(live, REFUSED)),
    Single("without_the_right_to_see_pods", app=partial(live, NO_PODS)),
    Single("without_the_right_to_see_nodes", "pods", (), partial(live, NO_NODES), (), MIDDLE),
    Single("without_the_right_to_see_nodes", "nodes", ("1",), partial(live, NO_NODES), (), MIDDLE),
    Single("without_usage", "pods", (), partial(live, NO_USAGE), (), MIDDLE),
    Single("without_usage", "nodes", ("1",), partial(live, NO_USAGE), (), MIDDLE),
    Single("without_usage_and_capacity", app=partial(live, replace(NO_USAGE, nodes={}))),
)


@pytest.mark.parametrize("single", SINGLE, ids=lambda single: "-".join(filter(None, single[:2])))
async def test_single(screen_text: Look, single: Single) -> None:
    async with shown(single.app(), single.start) as pilot:
        await pilot.press_each(*single.keys)
        await pilot.until(lambda: "no answer yet" not in pilot.text)
        await screen_text(pilot, single.name, single.variant, sizes=single.sizes)


async def test_the_prompt(screen_text: Look) -> None:
    async with shown() as pilot:
        for text, name in (("shop", "filter_while_typing"), ("-l app=a b", "filter_that_is_wrong")):
            await pilot.keys("slash")
            await pilot.type(text)
            await screen_text(pilot, name, sizes=BOTH)
            await pilot.keys("escape")
        await pilot.keys("colon")
        await pilot.type("pods sh")
        await screen_text(pilot, "going_to_a_place")
        await pilot.keys("escape")
        await pilot.filter_by("nothing-like-this")
        await screen_text(pilot, "filter_without_a_hit", sizes=BOTH)


async def test_screens_of_a_pod(screen_text: Look) -> None:
    async with shown() as pilot:
        await pilot.press_each("d")
        await screen_text(pilot, "explain", sizes=ALL)
        await pilot.press_each("z", "tab", "enter")
        await screen_text(pilot, "explain_folded")
        await pilot.press_each("escape", "v")
        await screen_text(pilot, "tree", sizes=BOTH)
        await pilot.press_each("escape", "u")
        await pilot.type("1.37 memory=32Gi")
        await screen_text(pilot, "compare", sizes=BOTH)


async def test_dialogs_and_texts_of_a_row(screen_text: Look) -> None:
    async with shown() as pilot:
        for key, until_gone, name in (
            ("F", "Looking for fixes", "fixes"),
            ("m", "", "menu"),
            ("y", "Reading", "yaml"),
            ("l", "Reading", "log"),
        ):
            for size in (SMALL, ALL[-1]):
                # What fits is worked out when they open.
                await pilot.resize_terminal(*size)
                await pilot.keys(key)
                if until_gone:
                    await gone(pilot, until_gone)
                await screen_text(pilot, name, sizes=[size])
                await pilot.keys("escape")


async def edit(pilot: Run, name: str) -> None:
    """Open the fields of a pod."""
    await pilot.filter_by(name)
    await pilot.keys("e")
    await gone(pilot, "reading owners")


async def test_edit(screen_text: Look) -> None:
    async with shown() as pilot:
        await edit(pilot, API)
        await screen_text(pilot, "edit_unchanged", sizes=BOTH)
        for text, name, sizes in (
            ("1x", "wrong_quantity", (SMALL,)),
            ("3Gi", "what_a_server_refuses", (SMALL,)),
            ("1Gi", "changed", ALL),
        ):
            await pilot.keys("tab", "shift+tab", *text)
            await screen_text(pilot, f"edit_{name}", sizes=sizes)
            await pilot.keys("ctrl+r")
        await pilot.keys("ctrl+g")
        await screen_text(pilot, "edit_made_guaranteed", sizes=(SMALL,))
        await pilot.keys("ctrl+s", "m", "m")
        await pilot.until(lambda: getattr(pilot.app.screen, "text", None) is not None)
        await screen_text(pilot, "manifest", sizes=BOTH)
        await pilot.keys("escape", "escape", "ctrl+r", *CHANGED)
        await pilot.keys("escape")
        await screen_text(pilot, "question_before_leaving")
        await pilot.keys("n", "ctrl+s", "m")
        await screen_text(pilot, "patch", sizes=BOTH)
        await pilot.keys("escape", "escape")
        await pilot.resize_terminal(*MIDDLE)
        await pilot.keys("ctrl+c")
        await screen_text(pilot, "question_before_leaving_in_the_middle")
    async with shown() as pilot:
        await edit(pilot, "trainer-gpu")
        await pilot.keys("1", "G")
        await screen_text(pilot, "edit_pod_level", sizes=BOTH)


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
MODIFIED: Final = f'Operation cannot be fulfilled on pods "{API}": the object has been modified'
CHANGED_SINCE: Final = f"pod/{API} was changed by someone else since it was read"
THREE_VALUES: Final = ValueConflict(
    "c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi"))
)
ROLLING: Final = Progress(Stage.ROLLING, settled=False, message="1 old pod is still there", done=1, total=3)


def less(request: PatchRequest) -> DryRunResult:
    """The server stores less than was requested, with a warning."""
    stored = (structs.replace(request.edits[0], quantity=Quantity.parse("768Mi")),)
    return DryRunResult(request, stored, {}, ("spec.template: this form is deprecated",))


class Stages(NamedTuple):
    """A change on its way: keys, what is seen after them, and the picture of it."""

    stages: tuple[tuple[Sequence[str], str, str], ...]
    fields: Sequence[str] = CHANGED
    answers: Mapping[str, list[Any]] = MappingProxyType({})
    quotas: tuple[ResourceQuota, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})


LIST: Final = ("ctrl+s",)
READY: Final = "through deployment/api"
APPLYING: Final = {
    "dry run": Stages(
        ((LIST, READY, "apply"), (("d",), "the server accepts it", "apply_dry_run")),
        answers={"dry_runs": [less]},
    ),
    "progress": Stages(
        (((*LIST, "tab", "a"), "Write this to the cluster?", "confirm"), (("y",), "1 of 3 pods", "progress")),
        answers={"looks": [ROLLING]},
    ),
    "by name": Stages(
        (((*LIST, "a", *"scrip", "enter"), "That is not scripted", "confirm_by_name"),),
        options={"settings": UserSettings(contexts={"scripted": ContextSettings(confirm="name")})},
    ),
    "refused": Stages(
        (((*LIST, "a", "y"), "! not applied", "progress_refused"),),
        answers={"writes": [ApiError(MODIFIED, status=409, reason="Conflict", hint="repeat the dry run")]},
    ),
    "class change": Stages(
        ((LIST, "> through deployment/api", "apply_class_change_refused_in_place"),), fields=("ctrl+g",)
    ),
    "conflict": Stages(
        (((*LIST, "d"), "someone else", "apply_conflict"),),
        answers={"dry_runs": [ConflictError(CHANGED_SINCE, (THREE_VALUES,))]},
    ),
    "read-only": Stages(((LIST, READY, "apply_read_only"),), options={"readonly": True}),
    "quota": Stages(
        (((), "team", "edit_quota_refuses"), ((*LIST, "d"), "! not applied", "apply_quota_refused")),
        answers={"dry_runs": [ApiError(FULL, status=403, reason="Forbidden")]},
        quotas=(QUOTA,),
    ),
}


@pytest.mark.parametrize("name", APPLYING)
async def test_applying(screen_text: Look, name: str) -> None:
    stages, fields, answers, quotas, options = APPLYING[name]
    source = ScriptedSource(demo())
    vars(source.scripted).update(answers)
    if quotas:
        source.around = lambda pod: structs.replace(around(pod), quotas=quotas)
    async with shown(QosApp(source, Scope(), **options)) as pilot:
        await edit(pilot, API)
        await pilot.keys(*fields)
        for pressed, until_seen, picture_name in stages:
            for key in pressed:
                await pilot.keys(key)
                await gone(pilot, "loading related objects")
                await gone(pilot, "waiting for scripted")
            await pilot.seen(until_seen)
            sizes = {"apply": ALL, "confirm": BOTH, "progress": BOTH}.get(picture_name, (SMALL,))
            await screen_text(pilot, picture_name, sizes=sizes)


def remembering(*entries: Entry) -> QosApp:
    """Someone who applied something before."""
    app = live(demo())
    for entry in entries:
        app.writing.history.put(entry)
    return app


ENTRIES: Final = (
    applied("0000", "128Mi", "256Mi", at="2026-11-18T09:00:00Z"),
    applied("0001", "256Mi", "512Mi"),
    applied("0002", "512Mi", "9Gi", state=EntryState.REFUSED, message="exceeded quota: team"),
)


async def test_undo(screen_text: Look) -> None:
    async with shown(remembering(*ENTRIES)) as pilot:
        await pilot.keys("U")
        await pilot.seen("exceeded quota")
        await pilot.keys("down")
        await screen_text(pilot, "undo", sizes=BOTH)
    async with shown(remembering(ENTRIES[1])) as pilot:
        for key, text in (
            ("U", "512Mi"),
            ("u", "> in place"),
            ("a", "Write this"),
            ("y", "previous values are restored"),
        ):
            await pilot.keys(key)
            await pilot.seen(text)
        await screen_text(pilot, "undone", sizes=BOTH)


async def test_loading(screen_text: Look) -> None:
    source = ScriptedSource(demo())
    source.hold.clear()
    async with running(source, size=SMALL, ready=False) as pilot:
        await pilot.pause()
        try:
            await screen_text(pilot, "loading", sizes=BOTH)
        finally:
            source.hold.set()


async def test_after_an_answer_that_did_not_come(screen_text: Look) -> None:
    source = ScriptedSource(demo(), REFUSED)
    async with shown(QosApp(source, Scope())) as pilot:
        source.later(75)
        await pilot.refresh()
        await screen_text(pilot, "stale", sizes=BOTH)


FEWER: Final = ("qos-ansi", "no-colour")
WALK: Final[Sequence[tuple[Sequence[str], str, str, Sequence[str]]]] = (
    ((), "", "pods", ("qos-light", "qos-ansi", "no-colour", "ascii")),
    (("d",), "", "explain", FEWER),
    (("escape", "slash", *API, "enter", "e"), "reading owners", "edit", ()),
    (CHANGED, "", "edit_changed", FEWER),
    (LIST, "loading related objects", "apply", ()),
    (("tab", "a"), "waiting for scripted", "confirm", FEWER),
)
"""Keys, what is gone when they have had their effect, the screen that is there then, and its modes."""


async def put_into(pilot: Run, mode: str) -> None:
    """Give a running application another theme, or the terminal fewer colours or signs."""
    app = pilot.qos
    app.choose_theme(mode if mode.startswith("qos-") else "qos-dark")
    app.no_color = mode == "no-colour"
    app._filters = [*(one for one in app._filters if not isinstance(one, Monochrome))]
    app._filters += [Monochrome()] * app.no_color
    app._more_filters = [AsciiFilter()] * (mode == "ascii")
    app._invalidate_css()
    app.refresh_css()
    for screen in app.screen_stack:
        for widget in screen.query("*"):
            widget.refresh(layout=True)
    await pilot.pause()


async def test_modes(picture: Picture, screen_texts: ScreenTexts) -> None:
    """Screens in other themes and with fewer colours: the styles that differ from the dark theme."""
    async with shown(live(demo()), MIDDLE) as pilot:
        for pressed, until_gone, screen, modes in WALK:
            for key in pressed:
                await pilot.press_each(key)
                if until_gone:
                    await gone(pilot, until_gone)
            if not modes:
                continue
            await picture(pilot, screen)
            await screen_texts.look(pilot, screen)
            for mode in modes:
                await put_into(pilot, mode)
                await screen_texts.look_again(pilot, f"{screen} {mode}", screen)
            await put_into(pilot, "qos-dark")


NOTES: Final = (
    "a.yaml: document 2: not a list",
    "b.yaml, line 17: spec.containers[0].resources.limits.memory: quantities must match a regular expression",
)


async def test_notes(screen_text: Look) -> None:
    async with shown(notes=NOTES) as pilot:
        await screen_text(pilot, "notes_below_the_list")
        await pilot.press_each("n")
        await screen_text(pilot, "notes", sizes=BOTH)


async def test_dialogs(screen_text: Look) -> None:
    async with shown() as pilot:
        await pilot.press_each("question_mark")
        await screen_text(pilot, "help", sizes=BOTH)
        await pilot.resize_terminal(*MIDDLE)
        await pilot.press_each(*"sort")
        await screen_text(pilot, "help_searched")
        await pilot.press_each("escape")
        await pilot.resize_terminal(*SMALL)
        for size in BOTH:
            # What fits is worked out when they open.
            await pilot.resize_terminal(*size)
            await pilot.press_each("f", *"cart", "down")
            await screen_text(pilot, "finder", sizes=[size])
            await pilot.press_each("escape", "ctrl+p")
            await screen_text(pilot, "palette", sizes=[size])
            await pilot.press_each("escape", "C", "j", "space", "J")
            await screen_text(pilot, "columns", sizes=[size])
            await pilot.press_each("escape")
        await pilot.resize_terminal(*SMALL)
        await pilot.press_each("f", *"zzz")
        await screen_text(pilot, "finder_without_a_hit")
        await pilot.press_each("escape", "x")
        await screen_text(pilot, "question_for_a_file_name")
        await pilot.resize_terminal(*MIDDLE)
        await pilot.press_each(*["backspace"] * 3, *"doc", "enter")
        await screen_text(pilot, "question_for_a_file_name_that_is_wrong")
        await pilot.press_each("escape", "d", "ctrl+p", *"co")
        await screen_text(pilot, "palette_searched")


async def test_notifications(screen_text: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def notify(self: QosApp, text: str, **options: Any) -> None:
        App.notify(self, text, **{**options, "timeout": 3600})

    monkeypatch.setattr(QosApp, "notify", notify)
    for name, pressed in (
        ("copied", ("j", "c")),
        ("nothing-to-copy", ("slash", *"zzz", "enter", "c")),
    ):
        async with shown(size=MIDDLE, notifications=True) as pilot:
            await pilot.press_each(*pressed)
            await screen_text(pilot, "said_in_passing", name)


async def test_a_list_being_worked_out(screen_text: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(size=MIDDLE) as pilot:
        monkeypatch.setattr(browse, "run_in_background", lambda *_: None)
        await pilot.keys("1")
        await screen_text(pilot, "a_list_being_worked_out")


async def renew(pilot: Run) -> None:
    """Request another answer, and wait until it is shown."""
    before = pilot.qos.view_model
    await pilot.refresh()
    await pilot.until(lambda: pilot.qos.view_model is not before)
    await pilot.listed()


@pytest.mark.parametrize(("key", "name"), [("4", "pods"), ("1", "nodes")])
async def test_cells_that_have_changed(
    screen_text: Look, monkeypatch: pytest.MonkeyPatch, key: str, name: str
) -> None:
    monkeypatch.setattr(line_table, "FLASH_SECONDS", 3600)
    newer = with_usage(with_usage(demo(), "crunch-", 700 << 20), "warehouse-", 9 << 30)
    app = QosApp(ScriptedSource(demo(), newer), Scope())
    app.animation_level = "full"
    async with shown(app, MIDDLE) as pilot:
        await pilot.press_each(key)
        await renew(pilot)
        await screen_text(pilot, "cells_that_have_changed", name)


def used(percent: int) -> Snapshot:
    """The demo in which every pod uses this percentage of its usage."""

    def of(usage: PodUsage) -> PodUsage:
        shares = {name: usage.of(name) for name in usage.names}
        amounts = {
            name: ContainerUsage(share.working_set_bytes * percent // 100)
            for name, share in shares.items()
            if share is not None
        }
        return PodUsage.of_containers(amounts, timestamp=usage.timestamp)

    snapshot = demo()
    return of_pods_alone(replace(snapshot, usage={key: of(usage) for key, usage in snapshot.usage.items()}))


TREND: Final = ("rank", "pod", "qos", "memory", "trend", "limit", "limit_percent")


async def test_trend(screen_text: Look) -> None:
    source = ScriptedSource(*(used(percent) for percent in (20, 35, 50, 45, 70, 85, 80, 100)))
    async with shown(QosApp(source, Scope(), settings=UserSettings(columns=TREND)), MIDDLE) as pilot:
        for _ in range(7):
            await renew(pilot)
        await pilot.keys("g")
        await screen_text(pilot, "trend")
        await pilot.keys("d")
        await pilot.seen("the last 8 samples, 386Mi to 1.9Gi")


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
    await pilot.press_each("d")
    source = pilot.qos.source
    assert isinstance(source, ScriptedSource)
    await pilot.until(lambda: not source.hold_events.is_set() or has_events(pilot))


def has_events(pilot: Run) -> bool:
    return isinstance(pilot.app.screen, ExplainScreen) and not pilot.app.screen._is_loading_events


async def test_explain_with_events(screen_text: Look) -> None:
    refused = ApiError(forbidden("events"), status=403, reason="Forbidden", hint="grant list on events")
    for name, events, sizes in (
        ("explain_with_events", EVENTS, BOTH),
        ("explain_with_events_refused", refused, ()),
    ):
        source = ScriptedSource(demo())
        source.pod_events = events
        async with shown(QosApp(source, Scope()), SMALL if sizes else MIDDLE) as pilot:
            await explain(pilot)
            await pilot.keys("G")
            await screen_text(pilot, name, sizes=sizes)
    source = ScriptedSource(demo(), without(demo(), API))
    source.hold_events.clear()
    async with shown(QosApp(source, Scope()), MIDDLE) as pilot:
        await explain(pilot)
        await pilot.keys("G")
        try:
            await screen_text(pilot, "explain_while_events_are_loading")
        finally:
            source.hold_events.set()
        await pilot.until(lambda: has_events(pilot))
        await pilot.keys("g")
        source.later(75)
        await renew(pilot)
        await pilot.until(lambda: has_events(pilot) and "gone since" in pilot.text)
        await screen_text(pilot, "explain_of_a_pod_that_is_gone")


SIMULATED: Final = {
    "free": ("o", *["shift+right"] * 3),
    "important": ("o", "end", "G"),
    "grow": ("j", "o", "tab", "shift+right"),
    "until-oom": ("o", "shift+tab", "E"),
}


async def work_out(pilot: Run, *pressed: str, until_gone: str) -> None:
    """The keys, each after what the one before has begun in a thread."""
    for key in pressed:
        await pilot.keys(key)
        await gone(pilot, until_gone)


@pytest.mark.parametrize("name", SIMULATED)
async def test_simulation(screen_text: Look, name: str) -> None:
    async with shown() as pilot:
        for size in BOTH:
            # What fits is worked out when it opens.
            await pilot.resize_terminal(*size)
            await work_out(pilot, *SIMULATED[name], until_gone="Simulating …")
            await screen_text(pilot, "simulation", name, sizes=[size])
            await pilot.press_each("escape", "g")


async def test_simulation_without_usage(screen_text: Look) -> None:
    async with shown(live(replace(demo(), usage={}, node_usage={}))) as pilot:
        await work_out(pilot, "o", until_gone="Simulating …")
        await screen_text(pilot, "simulation_without_usage")


async def test_kills(screen_text: Look) -> None:
    async with shown() as pilot:
        await work_out(pilot, "K", until_gone="Reading …")
        await screen_text(pilot, "kills", sizes=BOTH)
        await pilot.press_each("escape", "2", "G", "enter")
        await work_out(pilot, "K", until_gone="Reading …")
        await screen_text(pilot, "kills_of_none", sizes=BOTH)


async def test_kills_that_are_not_known(screen_text: Look) -> None:
    source = ScriptedSource(demo())
    source.hold_event_list.clear()
    async with shown(QosApp(source, Scope())) as pilot:
        await pilot.keys("K")
        await screen_text(pilot, "kills_while_they_are_read")
        source.hold_event_list.set()
    missing = Missing("the list of events", forbidden("events"), "grant list on events in all namespaces")
    unreachable = ServerUnreachable("cannot reach https://10.0.0.1:6443: refused", hint="is it up?")
    for name, happened in (
        ("kills_without_the_right_to_see_events", EventList(of_nodes=False, missing=missing)),
        ("kills_that_could_not_be_read", unreachable),
    ):
        source = ScriptedSource(demo())
        source.listed_events = happened
        async with shown(QosApp(source, Scope())) as pilot:
            await work_out(pilot, "K", until_gone="Reading …")
            await screen_text(pilot, name)


_CUT: Final = re.compile(r"[^\s…]+ ?…(?= |$)")
_SHORTENED: Final = re.compile(r"(?:Loading|Reading|Simulating).*…|\w+….(?:slice|scope)|[\w/]+…[-\w]+")
"""What is not cut: work under way, and names in the middle, as is done to long ones on purpose."""
_FRAMES: Final = frozenset("│╭╮╰╯─━▁▔▕▏ ")
_SCROLLED: Final = frozenset("▁▂▃▄▅▆▇")


@pytest.mark.parametrize(("width", "height"), [MIDDLE, ALL[-1]])
def test_nothing_is_cut_while_a_quarter_of_the_screen_is_blank(width: int, height: int) -> None:
    sections = {
        f"{path.stem}: {title}": text.partition(STYLES)[0].splitlines()
        for path in (SNAPSHOTS / "test_screens").glob("*.txt")
        for title, text in sections_of(path).items()
        if title.endswith(f"{width}x{height}")
    }
    assert len(sections) >= 4
    wasted = {}
    for title, section in sections.items():
        lines = [line.ljust(width) for line in section]
        halves = [lines[: height // 2], lines[height // 2 :]]
        columns = [slice(width // 2), slice(width // 2, width)]
        quarters = ["".join(line[part] for line in half) for half in halves for part in columns]
        used_cells = min(sum(sign not in _FRAMES for sign in quarter) for quarter in quarters)
        cut = [line for line in lines if _CUT.search(_SHORTENED.sub("", line))]
        scrolled = any(_SCROLLED & {*line[-3:]} for line in lines)
        if used_cells < width * height // 4 * 0.03 and (cut or scrolled):
            wasted[title] = cut
    assert wasted == {}
