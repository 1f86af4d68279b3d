from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.geometry import Size
from textual.widgets import Static

from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.explanation import explain_pod, text_lines, with_fix
from kubectl_qos.present.output import Line, Section
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import Collapsible, CollapsibleTitle, ExplainScreen
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView, section_layout
from tests.tui.sources import API, Run, ScriptedSource, demo, died, pod_named, running, with_usage, without


async def explain(pilot: Run, name: str) -> ExplainScreen:
    """Open the explanation of a pod."""
    view_model = pilot.qos.view_model
    assert view_model is not None
    screen = ExplainScreen(pod_named(view_model.snapshot, name), view_model)
    pilot.app.push_screen(screen)
    await pilot.until(lambda: pilot.app.screen is screen)
    return screen


@asynccontextmanager
async def explaining(
    source: ScriptedSource, name: str = API, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Run]:
    async with running(source, size=size) as pilot:
        await explain(pilot, name)
        yield pilot


async def renew(pilot: Run) -> None:
    """Ask again, and wait until the screen shows what was answered."""
    before = pilot.qos.view_model
    await pilot.refresh()
    screen = pilot.app.screen
    assert isinstance(screen, ExplainScreen)
    await pilot.until(
        lambda: pilot.qos.view_model is not before and screen._view_model is pilot.qos.view_model
    )


def titles(pilot: Run) -> dict[str, str]:
    """The title of each section and its answer."""
    sections = [fold.title.section for fold in pilot.app.screen.query(Collapsible)]
    return {section.title: section.answer for section in sections}


def subject(pilot: Run) -> str:
    return str(pilot.app.screen.query_one("#subject", Static).render())


def event(reason: str, message: str = "") -> Event:
    when = "2026-11-20T11:59:00Z"
    return Event(type="Warning", reason=reason, message=message, last_timestamp=when)


def with_restarts(snapshot: Snapshot, name: str, count: int, uid: str | None = None) -> Snapshot:
    """The snapshot with another count of restarts of a pod's first container; with a uid, of another pod."""
    old = pod_named(snapshot, name)
    first, *others = old.status.container_statuses or ()
    status = msgspec.structs.replace(
        old.status, container_statuses=(msgspec.structs.replace(first, restart_count=count), *others)
    )
    metadata = msgspec.structs.replace(old.metadata, uid=uid or old.metadata.uid)
    new = msgspec.structs.replace(old, status=status, metadata=metadata)
    return replace(snapshot, pods=tuple(new if pod is old else pod for pod in snapshot.pods))


def questions() -> list[threading.Thread]:
    """What is under way in the background."""
    return [thread for thread in threading.enumerate() if thread.name == "qos-worker"]


def documents(pilot: Run) -> str:
    views = pilot.app.screen.query(TextView).exclude("CollapsibleTitle")
    return "\n".join(line.text for view in views for line in view.text_lines(400))


async def test_it_says_all_that_the_command_line_says() -> None:
    async with running(None, "d") as pilot:
        snapshot = demo()
        explanation = with_fix(explain_pod(pod_named(snapshot, API), snapshot, DEMO_TIME), snapshot)
        assert explanation.subject in pilot.text
        shown = " ".join(documents(pilot).split())
        for section in explanation.sections:
            for line in section.lines:
                assert " ".join(line.text.split()) in shown
                assert " ".join(line.note.split()) in shown
        answers = titles(pilot)
        assert list(answers)[-1] == "Events"
        dies, *folding = explanation.sections
        assert answers.keys() - {"Events"} == {section.title for section in folding}
        assert all(answers[section.title] == section.answer for section in folding)
        assert documents(pilot).startswith(dies.answer)
        # It is copied as the command line prints it.
        await pilot.keys("c")
        said, shown = pilot.app.clipboard.split("\n\nEvents ")
        assert said == "\n".join(text_lines(explanation))
        assert "readiness probe failed" in shown.lower()


async def test_pods_of_every_kind_can_be_explained_with_their_events_at_once() -> None:
    async with running(size=(80, 24)) as pilot:
        for pod in demo().pods[::16]:
            await explain(pilot, pod.name)
            assert pod.name in pilot.text
            await pilot.keys("escape")
        for name, events in (("huge-0", "1, 1 warning, the newest 60s ago"), ("db-2", "<none>")):
            await explain(pilot, name)
            assert titles(pilot)["Events"] == events
            assert ("usage does not count" in documents(pilot)) is (name == "huge-0")
            await pilot.keys("escape")


def test_notes_follow_their_lines_or_are_below_if_there_is_no_room() -> None:
    lines = (Line("a = 1", "because of this"), Line("long" * 10 + " = 2", "and of that, which is longer"))
    section = Section("cgroup", "v2", lines)
    wide = [line.text for line in section_layout(section)(100)]
    assert wide == [
        "  a = 1                                          because of this",
        f"  {'long' * 10} = 2   and of that, which is longer",
    ]
    narrow = [line.text for line in section_layout(section)(50)]
    assert narrow == [
        "  a = 1",
        "      because of this",
        f"  {'long' * 10} = 2",
        "      and of that, which is longer",
    ]


@pytest.mark.parametrize("width", [10, 40, 58, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    snapshot = demo()
    for pod in snapshot.pods[:12]:
        for section in explain_pod(pod, snapshot, DEMO_TIME).sections:
            for line in section_layout(section)(width):
                has_long_word = any(len(word) > width - 8 for word in line.text.split())
                assert len(line.text) <= max(width, 24) or has_long_word


async def test_events_are_requested_while_the_rest_shows_and_again_by_r() -> None:
    source = ScriptedSource(demo())
    source.pod_events = (
        event("SystemOOM", "victim process: x"),
        event("[bold]Odd[/bold]", "a\x1b[31m [red]b"),
    )
    source.hold_events.clear()
    async with explaining(source) as pilot:
        assert titles(pilot)["Events"] == "loading …"
        assert "rank 1 of 17" in pilot.text
        assert "SystemOOM" not in documents(pilot)
        await pilot.keys("enter")
        assert pilot.app.screen.query(CollapsibleTitle).first().folded, "keys are answered meanwhile"
        source.hold_events.set()
        await pilot.until(lambda: titles(pilot)["Events"] != "loading …")
        assert titles(pilot)["Events"] == ("2, 2 warnings, the newest 60s ago; read at 12:00:00 UTC")
        assert "SystemOOM: the node ran out of memory" in documents(pilot)
        await pilot.keys("G")
        assert "[bold]Odd[/bold]" in pilot.text, "text of a server is data"
        assert "a\\x1b[31m [red]b" in pilot.text
        # While requested again the events stay, by one question at a time.
        source.hold_events.clear()
        source.later(60)
        await renew(pilot)
        await pilot.until(lambda: titles(pilot)["Events"] == "loading …")
        assert "SystemOOM" in documents(pilot)
        source.later(1)
        await renew(pilot)
        assert [pod.name for pod in source.event_requests] == [API] * 2
        source.hold_events.set()
        await pilot.until(lambda: titles(pilot)["Events"].startswith("2, "))
        source.pod_events = (event("BackOff", "again"),)
        source.later(1)
        await renew(pilot)
        await pilot.until(lambda: titles(pilot)["Events"].startswith("1, "))
        assert titles(pilot)["Events"].endswith("the newest 2m2s ago; read at 12:01:02 UTC")
        source.pod_events = QosError("the connection was lost")
        source.later(1)
        await renew(pilot)
        await pilot.until(lambda: titles(pilot)["Events"].startswith("unknown"))
        assert "BackOff" not in documents(pilot)


async def test_a_defect_of_a_source_does_not_leave_the_question_open(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptedSource(demo())
    monkeypatch.setattr(source, "events", lambda _: 1 // 0)
    async with explaining(source) as pilot:
        await pilot.until(lambda: titles(pilot)["Events"].startswith("unknown"))
        assert "unexpected ZeroDivisionError" in documents(pilot)


async def test_an_answer_after_the_screen_was_left_is_dropped() -> None:
    source = ScriptedSource(demo())
    source.hold_events.clear()
    async with explaining(source) as pilot:
        left = pilot.app.screen
        await pilot.until(lambda: bool(source.event_requests))
        await pilot.keys("escape")
        assert pilot.app.screen is not left
        (thread,) = questions()
        source.pod_events = (event("BackOff"),)
        source.hold_events.set()
        await pilot.until(lambda: not thread.is_alive())
        assert not left.is_attached
        await explain(pilot, API)
        await pilot.until(lambda: titles(pilot)["Events"].startswith("1, "))


async def test_an_answer_to_a_question_given_up_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    before = demo()
    source = ScriptedSource(before, with_restarts(before, API, 0, uid="another"))
    held = threading.Event()

    def events_of(pod: Pod) -> tuple[Event, ...]:
        if pod.metadata.uid != "another":
            assert held.wait(120)
            return (event("Old"),)
        return event("New"), event("New", "too")

    monkeypatch.setattr(source, "events", events_of)
    async with explaining(source) as pilot:
        (late,) = questions()
        await renew(pilot)
        await pilot.until(lambda: titles(pilot)["Events"].startswith("2, "))
        held.set()
        await pilot.until(lambda: not late.is_alive())
        assert titles(pilot)["Events"].startswith("2, ")


@pytest.mark.parametrize(("width", "height"), [(60, 1), (30, 2), (24, 3)])
def test_a_title_has_no_empty_lines_at_the_width_that_it_gets(width: int, height: int) -> None:
    title = CollapsibleTitle(Section("Eviction", "rank 6 of 15 under memory pressure"))
    assert title.get_content_height(Size(width, 24), Size(width, 24), width) == height


async def test_the_graph_marks_deaths_that_were_seen() -> None:
    """The kernel killed it at 12:00:15, between the third sample and the fourth."""
    used = [(0, 700), (5, 800), (10, 1000), (20, 300), (25, 400)]
    answers = [sampled_at(demo(), second, mebibytes) for second, mebibytes in used]
    killed = [died(one, "2026-11-20T12:00:15Z") for one in answers[3:]]
    async with explaining(ScriptedSource(*answers[:3], *killed)) as pilot:
        for _ in answers[1:]:
            await renew(pilot)
        await pilot.until(lambda: "✗ died 12:00:15" in documents(pilot))
        lines = documents(pilot).splitlines()
        mark = next(line for line in lines if line.strip() == "✗")
        below = lines[lines.index(mark) - 1]
        assert below[mark.index("✗") - 1] != below[mark.index("✗")], "memory fell there"
        await pilot.resize_terminal(120, 40)
        await pilot.keys("escape", "K")
        await pilot.seen("killed by")
        await pilot.until(lambda: "✗ died 12:00:15" in pilot.words)


async def test_the_graph_is_that_of_the_node_if_it_kills_first() -> None:
    answers = [with_usage(demo(), "crunch", mebibytes << 20) for mebibytes in (1240, 1260)]
    async with explaining(ScriptedSource(*answers), "crunch") as pilot:
        assert "16Gi " not in documents(pilot), "one sample is no graph"
        await renew(pilot)
        await pilot.until(lambda: "┄ kubelet evicts" in documents(pilot))
        assert "worker-2: █ Guaranteed, ▓ Burstable, ░ BestEffort" in documents(pilot)


def sampled_at(snapshot: Snapshot, second: int, mebibytes: int) -> Snapshot:
    """The snapshot with a sample of `API` at that second after noon."""
    before = with_usage(snapshot, API, mebibytes << 20)
    key = pod_named(before, API).key
    stamp = f"2026-11-20T12:00:{second:02}Z"
    sample = msgspec.structs.replace(before.usage[key], timestamp=stamp)
    return replace(before, usage={**before.usage, key: sample})


async def test_it_follows_the_pod_and_folds_focus_and_place_stay() -> None:
    before = demo()
    changed = [with_usage(with_restarts(before, API, count), API, count << 20) for count in (9, 10)]
    source = ScriptedSource(before, *changed)
    async with explaining(source, size=(80, 24)) as pilot:
        await pilot.until(lambda: titles(pilot)["Events"].startswith("<none>"))
        assert titles(pilot)["OOM"].startswith("rank 1 of 17")
        said = subject(pilot)
        assert "as of" not in said
        await pilot.keys("tab", "enter", "tab")
        assert pilot.app.screen.query(CollapsibleTitle)[1].section.title == "OOM"
        scroll = pilot.app.screen.query_one(TextScroll)
        scroll.scroll_to(y=9, animate=False)
        await pilot.pause()
        focused = pilot.app.focused
        folded = [title.folded for title in pilot.app.screen.query(CollapsibleTitle)]
        assert sum(folded) == 3, "that one, and what is folded at first"
        assert scroll.scroll_offset.y == 9
        for count in (9, 10):
            await renew(pilot)
            assert titles(pilot)["History"] == f"restarted {count} times"
            assert pilot.app.focused is focused
            assert [title.folded for title in pilot.app.screen.query(CollapsibleTitle)] == folded
            assert scroll.scroll_offset.y == 9
            hidden = [document.display for document in pilot.app.screen.query(TextView)]
            assert hidden.count(False) >= 1
        assert not titles(pilot)["OOM"].startswith("rank 1 of 17")
        assert subject(pilot) == said
        await pilot.keys("c")
        assert "restarted 10 times" in pilot.app.clipboard
        await pilot.keys("e")
        assert isinstance(pilot.app.screen, EditScreen)


async def test_sections_come_and_go_in_their_order() -> None:
    before = demo()
    old = pod_named(before, API)
    bare = msgspec.structs.replace(
        old, status=msgspec.structs.replace(old.status, container_statuses=None, init_container_statuses=None)
    )
    without_history = replace(before, pods=tuple(bare if pod is old else pod for pod in before.pods))
    async with explaining(ScriptedSource(before, without_history, before)) as pilot:
        whole = list(titles(pilot))
        for title in pilot.app.screen.query(CollapsibleTitle):
            if title.section.title == "History":
                title.focus()
        await renew(pilot)
        await pilot.pause()
        assert list(titles(pilot)) == [title for title in whole if title != "History"]
        assert isinstance(pilot.app.focused, CollapsibleTitle)
        await renew(pilot)
        await pilot.pause()
        assert list(titles(pilot)) == whole
        assert "last ended OOMKilled" in documents(pilot)


def _noted(painted: list[Any], widget: Any, *_: Any, **__: Any) -> Any:
    painted.append(widget)
    return widget


async def test_nothing_is_painted_where_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptedSource(demo())
    async with explaining(source) as pilot:
        await pilot.until(lambda: titles(pilot)["Events"].startswith("<none>"))
        painted: list[CollapsibleTitle | TextView] = []
        for widget in pilot.app.screen.query(TextView):
            monkeypatch.setattr(widget, "refresh", partial(_noted, painted, widget))
        source.hold_events.clear()
        source.later(1)
        await renew(pilot)
        assert {title.section.title for title in painted if isinstance(title, CollapsibleTitle)} == {"Events"}
        assert all(isinstance(widget, CollapsibleTitle) for widget in painted)
        assert painted, "the question is"
        source.hold_events.set()


async def test_a_pod_that_is_gone_stays_as_it_was_last_and_comes_back() -> None:
    before = demo()
    another = with_restarts(before, API, 0, uid="another")
    source = ScriptedSource(before, without(before, API), without(before, API), before, another)
    async with explaining(source) as pilot:
        await pilot.until(lambda: "outlives" in documents(pilot))
        said, shown = subject(pilot), documents(pilot)
        source.later(65)
        await renew(pilot)
        assert subject(pilot) == f"{said}, gone since 12:01:05 UTC; last known state"
        assert documents(pilot) == shown
        source.later(60)
        await renew(pilot)
        assert "gone since 12:01:05 UTC" in subject(pilot), "the first time that it was not there"
        await pilot.keys("c")
        assert pilot.app.clipboard.startswith(subject(pilot))
        await renew(pilot)
        assert subject(pilot) == said
        # Another pod of that name is called one.
        source.later(5)
        source.pod_events = (event("Started"),)
        await renew(pilot)
        assert subject(pilot) == f"{said}, another pod of that name since 12:02:10 UTC"
        assert titles(pilot)["History"] == "never restarted"
        await pilot.until(lambda: titles(pilot)["Events"].startswith("1, "))
        assert source.event_requests[-1].metadata.uid == "another"


async def test_of_facts_that_come_quickly_the_newest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    before = demo()
    held, began = threading.Event(), threading.Event()
    worked: list[int] = []

    def slowly(*arguments: Any, **named: Any) -> Any:
        worked.append(1)
        began.set()
        assert held.wait(120)
        return explain_pod(*arguments, **named)

    async with explaining(ScriptedSource(before)) as pilot:
        monkeypatch.setattr("kubectl_qos.tui.screens.explain.explain_pod", slowly)
        app = pilot.qos
        assert app.view_model is not None
        for count in range(5, 15):
            app.view_model = replace(app.view_model, snapshot=with_restarts(before, API, count))
            await pilot.pause()
        assert began.is_set()
        assert titles(pilot)["History"] == "restarted 2 times"
        held.set()
        await pilot.until(lambda: titles(pilot)["History"] == "restarted 14 times")
        assert len(worked) == 2


async def test_a_defect_is_said_and_what_was_known_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptedSource(demo())
    async with explaining(source) as pilot:
        monkeypatch.setattr("kubectl_qos.tui.screens.explain.explain_pod", lambda *_, **__: 1 // 0)
        source.later(1)
        await renew(pilot)
        assert "last known state: unexpected ZeroDivisionError" in subject(pilot)
        assert titles(pilot)["OOM"].startswith("rank 1 of 17")
        monkeypatch.undo()
        source.later(1)
        await renew(pilot)
        assert "last known state" not in subject(pilot)


async def test_the_pod_of_a_template_has_no_events_and_stays_as_it_is(tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(
        "kind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: c}]}}}\n"
    )
    async with running(FileSource([str(manifest)])) as pilot:
        screen = await explain(pilot, "web")
        view_model = screen._view_model
        assert "Events" not in titles(pilot)
        await pilot.refresh()
        assert pilot.qos.view_model is not view_model
        assert screen._view_model is view_model
        assert subject(pilot).startswith("deployment web")


async def test_the_next_death_is_in_sight_also_where_no_change_is_cheap() -> None:
    async with running(None, size=(80, 24)) as pilot:
        screen = await explain(pilot, "db-0")
        await pilot.until(lambda: not screen._is_building)
        await pilot.pause()
        assert not screen.query_one("#cheapest").display
        assert screen.query_one(TextScroll).scroll_y == 0
        assert isinstance(screen.focused, CollapsibleTitle)
