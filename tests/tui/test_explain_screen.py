from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.pilot import Pilot

from kubectl_qos.cluster.demo import DEMO_TIME, DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.explanation import Line, Section, explain_pod, text_lines
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import ExplainScreen, section_layout
from kubectl_qos.tui.widgets.document import Document, TextScroll
from kubectl_qos.tui.widgets.fold import Fold, FoldTitle
from tests.tui.sources import demo, pod_named, press, screen_text, settled

POD = "api-7d9c5b6f8-x2mzq"


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 40)) as found:
        await settled(found)
        await press(found, "d")
        yield found


def documents(pilot: Pilot[Any]) -> str:
    return "\n".join(
        line.text for document in pilot.app.screen.query(Document) for line in document.text_lines(400)
    )


async def test_it_says_all_that_the_command_line_says(pilot: Pilot[Any]) -> None:
    snapshot = demo()
    explanation = explain_pod(pod_named(snapshot, POD), snapshot, DEMO_TIME)
    assert explanation.subject in screen_text(pilot)
    shown = " ".join(documents(pilot).split())
    for section in explanation.sections:
        for line in section.lines:
            assert " ".join(line.text.split()) in shown
            assert " ".join(line.note.split()) in shown
    titles = [str(fold.title.render()) for fold in pilot.app.screen.query(Fold)]
    for section, title in zip(explanation.sections, titles, strict=True):
        assert section.title in title
        assert section.answer in title


async def test_answers_stand_before_their_proof(pilot: Pilot[Any]) -> None:
    text = screen_text(pilot)
    assert text.index("rank 1 of 17, oom_score 1390") < text.index("1000 - 1000 × 512Mi / 16Gi = 969")


async def test_sections_fold_by_key_and_by_mouse(pilot: Pilot[Any]) -> None:
    proof = "something is requested or limited"
    assert proof in screen_text(pilot)
    await press(pilot, "enter")
    assert proof not in screen_text(pilot)
    assert "Burstable, killed by how little it requests" in screen_text(pilot), "the answer stays"
    await press(pilot, "enter")
    assert proof in screen_text(pilot)
    await pilot.click(FoldTitle)
    await pilot.pause()
    assert proof not in screen_text(pilot)


async def test_all_sections_fold_and_unfold_together(pilot: Pilot[Any]) -> None:
    await press(pilot, "z")
    assert all(title.folded for title in pilot.app.screen.query(FoldTitle))
    assert "Eviction" in screen_text(pilot)
    await press(pilot, "z")
    assert not any(title.folded for title in pilot.app.screen.query(FoldTitle))


async def test_tab_goes_from_section_to_section(pilot: Pilot[Any]) -> None:
    titles = list(pilot.app.screen.query(FoldTitle))
    assert pilot.app.focused is titles[0]
    await press(pilot, "tab")
    assert pilot.app.focused is titles[1]
    await press(pilot, "shift+tab")
    assert pilot.app.focused is titles[0]


async def test_it_scrolls_like_a_pager(pilot: Pilot[Any]) -> None:
    await pilot.resize_terminal(80, 24)
    await pilot.pause()
    scroll = pilot.app.screen.query_one(TextScroll)
    await press(pilot, "G")
    assert scroll.scroll_offset.y == scroll.max_scroll_y > 0
    await press(pilot, "g")
    assert scroll.scroll_offset.y == 0
    await press(pilot, "j", "j", "k")
    assert scroll.scroll_offset.y == 1
    await press(pilot, "ctrl+f")
    assert scroll.scroll_offset.y > 10
    await press(pilot, "ctrl+b")
    assert scroll.scroll_offset.y <= 1


async def test_it_is_copied_as_the_command_line_prints_it(pilot: Pilot[Any]) -> None:
    await press(pilot, "c")
    snapshot = demo()
    explanation = explain_pod(pod_named(snapshot, POD), snapshot, DEMO_TIME)
    assert pilot.app.clipboard == "\n".join(text_lines(explanation))


async def test_e_edits_the_same_pod(pilot: Pilot[Any]) -> None:
    await press(pilot, "e")
    assert isinstance(pilot.app.screen, EditScreen)
    assert f"edit pod shop/{POD} on worker-2" in screen_text(pilot)
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, ExplainScreen)


async def test_pods_of_every_kind_can_be_explained() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app = pilot.app
        assert isinstance(app, QosApp)
        for pod in demo().pods[::4]:
            app.explain(pod)
            await pilot.pause()
            assert pod.name in screen_text(pilot)
            await press(pilot, "escape")


def test_notes_stand_behind_their_lines_or_below_where_there_is_no_room() -> None:
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
