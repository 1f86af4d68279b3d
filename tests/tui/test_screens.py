"""Pictures of every screen, compared with those in snapshots/tui (--snapshot-update renews them)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from textual.app import App
from textual.pilot import Pilot

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.cluster.writer import ConflictError, DryRunResult
from kubectl_qos.config.settings import ContextSettings, Settings
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
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.context_switch import ContextSwitch
from kubectl_qos.tui.lists import table as lister
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.widgets import line_table
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
        await press(pilot, "enter", "e")
        await until(pilot, lambda: "reading owners" not in words(pilot))
        await press(pilot, *pressed)

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
    steps = opened("api-7d9c5b6f8-x2mzq", "tab", "1", "G", "i", "ctrl+s", "m")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_manifest(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await opened("api-7d9c5b6f8-x2mzq", "ctrl+g", "ctrl+s", "m", "m")(pilot)
        await until(pilot, lambda: getattr(pilot.app.screen, "text", None) is not None)

    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


CHANGED: Final = ("tab", "1", "G", "i")
API: Final = "api-7d9c5b6f8-x2mzq"


def scripted(**options: Any) -> tuple[QosApp, ScriptedSource]:
    """A cluster that takes changes."""
    source = ScriptedSource(demo())
    return QosApp(source, Scope(), **options), source


def landed(*pressed: str, until_seen: str = "through deployment/api") -> Steps:
    """The ways of a change, then these keys, each after what the one before led to."""

    async def steps(pilot: Pilot[Any]) -> None:
        await opened(API, *CHANGED, "ctrl+s")(pilot)
        await until(pilot, lambda: "reading what is around" not in words(pilot))
        for key in pressed:
            await press(pilot, key)
            await until(pilot, lambda: "asking scripted" not in words(pilot))
        await until(pilot, lambda: until_seen in words(pilot))

    return steps


@BOTH
def test_landing(snap_compare: Compare, size: Size) -> None:
    app, _ = scripted()
    assert snap_compare(app, terminal_size=size, run_before=landed())


@BOTH
def test_landing_rehearsed(snap_compare: Compare, size: Size) -> None:
    def less(request: PatchRequest) -> DryRunResult:
        stored = (replace(request.edits[0], quantity=Quantity.parse("768Mi")),)
        return DryRunResult(request, stored, {}, ("spec.template: this form is deprecated",))

    app, source = scripted()
    source.scripted.rehearsals = [less]
    assert snap_compare(app, terminal_size=size, run_before=landed("d", until_seen="the server accepts it"))


@BOTH
def test_landing_class_change_refused_in_place(snap_compare: Compare, size: Size) -> None:
    app, _ = scripted()

    async def steps(pilot: Pilot[Any]) -> None:
        await opened(API, "ctrl+g", "ctrl+s")(pilot)
        await until(pilot, lambda: "> through deployment/api" in words(pilot))

    assert snap_compare(app, terminal_size=size, run_before=steps)


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


@BOTH
def test_edit_quota_refuses(snap_compare: Compare, size: Size) -> None:
    app, _ = limited()
    assert snap_compare(app, terminal_size=size, run_before=opened(API, *CHANGED))


@BOTH
def test_landing_quota_refused(snap_compare: Compare, size: Size) -> None:
    app, source = limited()
    source.scripted.rehearsals = [ApiError(FULL, status=403, reason="Forbidden")]
    assert snap_compare(app, terminal_size=size, run_before=landed("d", until_seen="! not done"))


@BOTH
def test_landing_conflict(snap_compare: Compare, size: Size) -> None:
    found = ValueConflict("c", Side.REQUESTS, "memory", *map(Quantity.parse, ("512Mi", "1Gi", "2Gi")))
    sentence = f"pod/{API} was changed by someone else since it was looked at"
    app, source = scripted()
    source.scripted.rehearsals = [ConflictError(sentence, (found,))]
    assert snap_compare(app, terminal_size=size, run_before=landed("d", until_seen="someone else"))


@BOTH
def test_landing_read_only(snap_compare: Compare, size: Size) -> None:
    app, _ = scripted(readonly=True)
    assert snap_compare(app, terminal_size=size, run_before=landed())


@BOTH
def test_confirm(snap_compare: Compare, size: Size) -> None:
    app, _ = scripted()
    steps = landed("tab", "a", until_seen="Write this to the cluster?")
    assert snap_compare(app, terminal_size=size, run_before=steps)


@BOTH
def test_confirm_by_name(snap_compare: Compare, size: Size) -> None:
    settings = Settings(contexts={"scripted": ContextSettings(confirm="name")})
    app, _ = scripted(settings=settings)
    steps = landed("a", *"scrip", "enter", until_seen="That is not scripted")
    assert snap_compare(app, terminal_size=size, run_before=steps)


@BOTH
def test_progress(snap_compare: Compare, size: Size) -> None:
    app, source = scripted()
    rolling = Progress(Stage.ROLLING, settled=False, message="1 old pod is still there", done=1, total=3)
    source.scripted.looks = [rolling]
    steps = landed("tab", "a", "y", until_seen="1 of 3 pods")
    assert snap_compare(app, terminal_size=size, run_before=steps)


@BOTH
def test_progress_refused(snap_compare: Compare, size: Size) -> None:
    app, source = scripted()
    modified = f'Operation cannot be fulfilled on pods "{API}": the object has been modified'
    source.scripted.writes = [
        ApiError(modified, status=409, reason="Conflict", hint="rehearse the change again")
    ]
    assert snap_compare(app, terminal_size=size, run_before=landed("a", "y", until_seen="! not done"))


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


@BOTH
def test_undo(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "U")
        await until(pilot, lambda: "exceeded quota" in words(pilot))
        await press(pilot, "down")

    assert snap_compare(remembering(*ENTRIES), terminal_size=size, run_before=steps)


@BOTH
def test_undone(snap_compare: Compare, size: Size) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        await press(pilot, "U")
        await until(pilot, lambda: "512Mi" in words(pilot))
        for key, text in (("u", "> in place"), ("a", "Write this"), ("y", "back as they were")):
            await press(pilot, key)
            await until(pilot, lambda text=text: text in words(pilot))  # type: ignore[misc]

    assert snap_compare(remembering(ENTRIES[1]), terminal_size=size, run_before=steps)


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
    contexts = ContextSwitch(lambda: ("demo", "prod-eu", "prod-us", "staging"), lambda _: DemoSource())
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


SIMULATED: Final = {
    "free": ("o", *["shift+right"] * 3),
    "important": ("o", "end", "G"),
    "grow": ("j", "o", "tab", "shift+right"),
    "until-oom": ("o", "shift+tab", "E"),
}


def worked_out(*pressed: str, until_gone: str) -> Steps:
    """The keys, each after what the one before has begun in a thread."""

    async def steps(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        for key in pressed:
            await press(pilot, key)
            await until(pilot, lambda: until_gone not in words(pilot))

    return steps


@BOTH
@pytest.mark.parametrize("pressed", SIMULATED.values(), ids=list(SIMULATED))
def test_simulation(snap_compare: Compare, pressed: tuple[str, ...], size: Size) -> None:
    steps = worked_out(*pressed, until_gone="Working it out")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_simulation_without_usage(snap_compare: Compare) -> None:
    app = QosApp(ScriptedSource(replace(demo(), usage={})), Scope())
    steps = worked_out("o", until_gone="Working it out")
    assert snap_compare(app, terminal_size=(80, 24), run_before=steps)


@BOTH
def test_kills(snap_compare: Compare, size: Size) -> None:
    steps = worked_out("K", until_gone="Reading …")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


@BOTH
def test_kills_of_none(snap_compare: Compare, size: Size) -> None:
    steps = worked_out("2", "G", "enter", "K", until_gone="Reading …")
    assert snap_compare(demo_app(), terminal_size=size, run_before=steps)


def test_kills_while_they_are_read(snap_compare: Compare) -> None:
    source = ScriptedSource(demo())
    source.hold_happenings.clear()
    app = QosApp(source, Scope())
    assert snap_compare(app, terminal_size=(80, 24), run_before=keys("K"))
    source.hold_happenings.set()


def test_kills_without_the_right_to_see_events(snap_compare: Compare) -> None:
    source = ScriptedSource(demo())
    missing = Missing("the list of events", forbidden("events"), "grant list on events in all namespaces")
    source.happened = EventList(of_nodes=False, missing=missing)
    steps = worked_out("K", until_gone="Reading …")
    assert snap_compare(QosApp(source, Scope()), terminal_size=(80, 24), run_before=steps)


def test_kills_that_could_not_be_read(snap_compare: Compare) -> None:
    source = ScriptedSource(demo())
    source.happened = ServerUnreachable("cannot reach https://10.0.0.1:6443: refused", hint="is it up?")
    steps = worked_out("K", until_gone="Reading …")
    assert snap_compare(QosApp(source, Scope()), terminal_size=(80, 24), run_before=steps)
