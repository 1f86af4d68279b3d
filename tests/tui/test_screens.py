"""Pictures of every screen, compared with those in snapshots/tui (--snapshot-update renews them)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from textual.app import App
from textual.pilot import Pilot

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.config.settings import Settings
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.contexts import Contexts
from kubectl_qos.tui.lists import lister
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.widgets import line_table
from tests.tui.sources import (
    ScriptedSource,
    app_of,
    demo,
    main_of,
    press,
    screen_text,
    settled,
    type_text,
    until,
    with_usage,
    without,
)

Size = tuple[int, int]
Compare = Callable[..., bool]
Steps = Callable[[Pilot[Any]], Awaitable[None]]

BOTH = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
ALL = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
LISTS: Final = {"1": "nodes", "2": "namespaces", "3": "workloads", "5": "containers"}
"""The lists by their keys, without that of pods, which is the first."""
MIDDLE: Final = (120, 40)


def keys(*pressed: str) -> Steps:
    """Each key after what the one before has listed."""

    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        for key in pressed:
            await press(pilot, key)
            await listed(pilot)

    return steps


async def listed(pilot: Pilot[Any]) -> None:
    """Wait until everything that is to be listed is worked out."""
    main = main_of(pilot)
    await until(pilot, lambda: main.qos.facts is None or not (main.is_working_out or main._lister._running))


def demo_app(**options: Any) -> QosApp:
    return QosApp(DemoSource(), Scope(), **options)


@ALL
@pytest.mark.parametrize("key", LISTS, ids=list(LISTS.values()))
def test_list(snap_compare: Compare, key: str, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys(key))


OF_ONE: Final = {
    "namespace": ("2", "j", "j", "enter"),
    "workload": ("3", "enter"),
    "pod": ("slash", *"prom", "enter", "i"),
    "node-and-namespace": ("5", "tab", "j", "tab", "j"),
}


@BOTH
@pytest.mark.parametrize("pressed", OF_ONE.values(), ids=list(OF_ONE))
def test_list_of_one(snap_compare: Compare, pressed: tuple[str, ...], size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys(*pressed))


@pytest.mark.parametrize(
    "size", [(80, 24), (100, 30), (120, 40), (200, 60)], ids=["80x24", "100x30", "120x40", "200x60"]
)
def test_main(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys())


@BOTH
def test_one_node(snap_compare: Compare, size: Size) -> None:
    steps = keys("tab", "j", "enter", "j", "space")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_panes_of_a_narrow_terminal(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("tab", "j", "tab", "j"))


@BOTH
def test_wide_scrolled(snap_compare: Compare, size: Size) -> None:
    steps = keys("w", "right", "right", "right", "s", "S")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_while_typing(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "shop")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_that_is_wrong(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "-l app=a b")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_filter_without_a_hit(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "nothing-like-this")
        await press(pilot, "enter")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_going_to_a_place(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "colon")
        await type_text(pilot, "pods sh")
        await pilot.pause(0.1)

    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=steps)


@ALL
def test_explain(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("d"))


def test_explain_folded(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("d", "z", "tab", "enter"))


@ALL
def test_compare(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "u")
        await type_text(pilot, "1.37 memory=32Gi")

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@ALL
def test_tree(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("v"))


def opened(name: str, *pressed: str) -> Steps:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, name)
        await press(pilot, "enter", "e", *pressed)

    return steps


@ALL
def test_edit_unchanged(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=opened("api-7d9c5b6f8-x2mzq"))


@ALL
def test_edit_changed(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_made_guaranteed(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "ctrl+g")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_wrong_quantity(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "x")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_what_a_server_refuses(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "3", "G", "i")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_edit_pod_level(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=opened("trainer-gpu", "tab", "1", "G"))


@ALL
def test_patch(snap_compare: Compare, size: Size) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "ctrl+s")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_manifest(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await opened("api-7d9c5b6f8-x2mzq", "ctrl+g", "ctrl+s", "m")(pilot)
        await until(pilot, lambda: getattr(pilot.app.screen, "text", None) is not None)

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_question_before_leaving(snap_compare: Compare) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "escape")
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=steps)


def test_question_for_a_file_name(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("x"))


@ALL
def test_help(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("question_mark"))


def test_help_further_down(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(120, 40), run_before=keys("question_mark", "G"))


@BOTH
def test_loading(snap_compare: Compare, size: Size) -> None:
    source = ScriptedSource(demo())
    source.hold.clear()

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.pause()

    try:
        assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=steps)
    finally:
        source.hold.set()


REFUSED = ServerUnreachable(
    "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
    hint="kubectl config get-contexts lists the clusters that are configured",
)


@BOTH
def test_no_answer(snap_compare: Compare, size: Size) -> None:
    app = QosApp(ScriptedSource(REFUSED), Scope())
    assert snap_compare(app, terminal_size=size, run_before=keys())


@BOTH
def test_stale(snap_compare: Compare, size: Size) -> None:
    source = ScriptedSource(demo(), REFUSED)

    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        source.later(75)
        await press(pilot, "r")
        await settled(pilot)

    assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=steps)


@BOTH
def test_empty_cluster(snap_compare: Compare, size: Size) -> None:
    app = QosApp(DemoSource(), Scope(namespace="nothing-here"))
    assert snap_compare(app, terminal_size=size, run_before=keys())


@BOTH
def test_without_usage_and_capacity(snap_compare: Compare, size: Size) -> None:
    missing = Missing("memory usage", "Metrics API not available", "install metrics-server")
    source = ScriptedSource(replace(demo(), usage={}, nodes={}, missing=(missing,)))
    assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=keys())


def test_too_small(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(59, 14), run_before=keys())


def test_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(demo_app(), terminal_size=(120, 40), run_before=keys("j", "space"))


EVERY_THEME = pytest.mark.parametrize("name", [theme.name for theme in THEMES[1:]])


def themed(name: str, *pressed: str) -> Steps:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        pilot.app.theme = name
        await keys(*pressed)(pilot)

    return steps


@EVERY_THEME
def test_theme(snap_compare: Compare, name: str) -> None:
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=themed(name))


@EVERY_THEME
def test_theme_of_nodes(snap_compare: Compare, name: str) -> None:
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=themed(name, "1"))


@EVERY_THEME
def test_theme_of_explain(snap_compare: Compare, name: str) -> None:
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=themed(name, "d"))


POOR: Final = {"pods": (), "nodes": ("1",), "explain": ("d",), "edit": ("e", "tab", "1", "G", "i")}
"""What is to be read in poor terminals: keys by a name."""


@pytest.mark.parametrize(
    "pressed", [POOR["nodes"], POOR["edit"], POOR["explain"]], ids=["nodes", "edit", "explain"]
)
def test_without_colours(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, pressed: tuple[str, ...]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=keys(*pressed))


@pytest.mark.parametrize(
    "pressed", [POOR["pods"], POOR["nodes"], POOR["explain"]], ids=["pods", "nodes", "explain"]
)
def test_in_ascii(snap_compare: Compare, pressed: tuple[str, ...]) -> None:
    app = demo_app(ascii_only=True)
    assert snap_compare(app, terminal_size=MIDDLE, run_before=keys(*pressed))


def test_read_only(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(readonly=True), terminal_size=MIDDLE, run_before=keys())


NOTES: Final = (
    "a.yaml: document 2: not a list",
    "b.yaml, line 17: spec.containers[0].resources.limits.memory: quantities must match a regular expression",
)


@BOTH
def test_notes(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(notes=NOTES), terminal_size=size, run_before=keys("n"))


def test_notes_below_the_list(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(notes=NOTES), terminal_size=(80, 24), run_before=keys())


@ALL
def test_finder(snap_compare: Compare, size: Size) -> None:
    steps = keys("f", *"cart", "down")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_finder_without_a_hit(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=(80, 24), run_before=keys("f", *"zzz"))


@ALL
def test_columns(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("C", "j", "space", "J"))


@BOTH
def test_contexts(snap_compare: Compare, size: Size) -> None:
    contexts = Contexts(lambda: ("demo", "prod-eu", "prod-us", "staging"), lambda _: DemoSource())
    steps = keys("colon", *"ctx", "enter", "down")
    assert snap_compare(demo_app(contexts=contexts), terminal_size=size, run_before=steps)


@ALL
def test_palette(snap_compare: Compare, size: Size) -> None:
    assert snap_compare(demo_app(), terminal_size=size, run_before=keys("ctrl+p"))


def test_palette_searched(snap_compare: Compare) -> None:
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=keys("d", "ctrl+p", *"co"))


def test_question_before_leaving_in_the_middle(snap_compare: Compare) -> None:
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "ctrl+c")
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=steps)


def test_question_for_a_file_name_that_is_wrong(snap_compare: Compare) -> None:
    steps = keys("x", *["backspace"] * 3, *"doc", "enter")
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=steps)


@pytest.mark.parametrize(
    "pressed",
    [("j", "c"), ("slash", *"zzz", "enter", "c"), ("t",)],
    ids=["copied", "nothing-to-copy", "theme"],
)
def test_said_in_passing(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, pressed: tuple[str, ...]
) -> None:
    def notify(self: QosApp, text: str, **options: Any) -> None:
        App.notify(self, text, **{**options, "timeout": 3600})

    monkeypatch.setattr(QosApp, "notify", notify)
    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=keys(*pressed))


def test_paused(snap_compare: Compare) -> None:
    app = QosApp(ScriptedSource(demo()), Scope())
    assert snap_compare(app, terminal_size=MIDDLE, run_before=keys("p"))


def forbidden(what: str) -> str:
    return (
        f'Error from server (Forbidden): {what} is forbidden: User "ada" cannot list resource '
        f'"{what}" in API group "" at the cluster scope'
    )


@BOTH
def test_without_the_right_to_see_pods(snap_compare: Compare, size: Size) -> None:
    refused = ApiError(
        forbidden("pods"), status=403, reason="Forbidden", hint="grant list on pods, or give -n"
    )
    app = QosApp(ScriptedSource(refused), Scope())
    assert snap_compare(app, terminal_size=size, run_before=keys())


PARTLY: Final = (
    Missing(
        OTHER_PODS, forbidden("pods"), "grant list on pods in all namespaces; until then ranks are among"
    ),
    Missing("the nodes' memory capacity", forbidden("nodes"), "grant get and list on nodes"),
)


@pytest.mark.parametrize("key", ["4", "1"], ids=["pods", "nodes"])
def test_without_the_right_to_see_nodes(snap_compare: Compare, key: str) -> None:
    source = ScriptedSource(replace(demo(), nodes={}, missing=PARTLY))
    assert snap_compare(QosApp(source, Scope()), terminal_size=MIDDLE, run_before=keys(key))


NO_METRICS: Final = Missing("memory usage", "Metrics API not available", "install metrics-server")


@pytest.mark.parametrize("key", ["4", "1"], ids=["pods", "nodes"])
def test_without_usage(snap_compare: Compare, key: str) -> None:
    source = ScriptedSource(replace(demo(), usage={}, missing=(NO_METRICS,)))
    assert snap_compare(QosApp(source, Scope()), terminal_size=MIDDLE, run_before=keys(key))


def test_a_list_being_worked_out(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await keys()(pilot)
        monkeypatch.setattr(lister, "in_background", lambda *_: None)
        await press(pilot, "1")

    assert snap_compare(demo_app(), terminal_size=MIDDLE, run_before=steps)


async def refresh(pilot: Pilot[Any]) -> None:
    """Ask again and wait until the answer is shown."""
    before = app_of(pilot).facts
    await press(pilot, "r")
    await until(pilot, lambda: app_of(pilot).facts is not before)
    await settled(pilot)
    await listed(pilot)


@pytest.mark.parametrize("key", ["4", "1"], ids=["pods", "nodes"])
def test_cells_that_have_changed(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(line_table, "FLASH_SECONDS", 3600)
    newer = with_usage(with_usage(demo(), "crunch-", 700 << 20), "warehouse-", 9 << 30)
    app = QosApp(ScriptedSource(demo(), newer), Scope())
    app.animation_level = "full"

    async def steps(pilot: Pilot[Any]) -> None:
        await keys(key)(pilot)
        await refresh(pilot)

    assert snap_compare(app, terminal_size=MIDDLE, run_before=steps)


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


def test_trend(snap_compare: Compare) -> None:
    source = ScriptedSource(*(used(percent) for percent in (20, 35, 50, 45, 70, 85, 80, 100)))
    app = QosApp(source, Scope(), settings=Settings(columns=TREND))

    async def steps(pilot: Pilot[Any]) -> None:
        await keys()(pilot)
        for _ in range(7):
            await refresh(pilot)

    assert snap_compare(app, terminal_size=MIDDLE, run_before=steps)


def event(reason: str, message: str, minute: int, kind: str = "Warning") -> Event:
    when = f"2026-11-20T11:{minute:02}:00Z"
    return Event(type=kind, reason=reason, message=message, last_timestamp=when)


EVENTS: Final = (
    event("Scheduled", "Successfully assigned shop/api-7d9c5b6f8-x2mzq to worker-2", 12, "Normal"),
    event("BackOff", "Back-off restarting failed container c in pod api-7d9c5b6f8-x2mzq", 40),
    event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 58),
)


def explained(source: ScriptedSource) -> Steps:
    """The first pod explained, with its last section in sight."""

    async def steps(pilot: Pilot[Any]) -> None:
        await keys("d")(pilot)
        await until(pilot, lambda: not source.hold_events.is_set() or told(pilot))
        await press(pilot, "G")

    return steps


def told(pilot: Pilot[Any]) -> bool:
    return isinstance(pilot.app.screen, ExplainScreen) and not pilot.app.screen._is_asking


@BOTH
def test_explain_with_events(snap_compare: Compare, size: Size) -> None:
    source = ScriptedSource(demo())
    source.told = EVENTS
    assert snap_compare(QosApp(source, Scope()), terminal_size=size, run_before=explained(source))


def test_explain_with_events_refused(snap_compare: Compare) -> None:
    source = ScriptedSource(demo())
    source.told = ApiError(forbidden("events"), status=403, reason="Forbidden", hint="grant list on events")
    assert snap_compare(QosApp(source, Scope()), terminal_size=MIDDLE, run_before=explained(source))


def test_explain_while_events_are_asked_for(snap_compare: Compare) -> None:
    source = ScriptedSource(demo())
    source.hold_events.clear()
    try:
        assert snap_compare(QosApp(source, Scope()), terminal_size=MIDDLE, run_before=explained(source))
    finally:
        source.hold_events.set()


def test_explain_of_a_pod_that_is_gone(snap_compare: Compare) -> None:
    source = ScriptedSource(demo(), without(demo(), "api-7d9c5b6f8-x2mzq"))

    async def steps(pilot: Pilot[Any]) -> None:
        await keys("d")(pilot)
        await until(pilot, lambda: told(pilot))
        source.later(75)
        await refresh(pilot)
        await until(pilot, lambda: told(pilot) and "gone since" in screen_text(pilot))

    assert snap_compare(QosApp(source, Scope()), terminal_size=MIDDLE, run_before=steps)
