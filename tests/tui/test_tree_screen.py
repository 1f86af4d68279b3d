from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.tree import file_lines, tree_lines
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import TreeScreen
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from tests.tui.sources import ScriptedSource, demo, press, screen_text, settled, type_text, words

POD = "shop/api-7d9c5b6f8-x2mzq"


@pytest.fixture(params=[(80, 24), (200, 50)], ids=["80x24", "200x50"])
async def pilot(request: pytest.FixtureRequest) -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=request.param) as found:
        await settled(found)
        await press(found, "v")
        yield found


def shown(pilot: Pilot[Any]) -> list[str]:
    """All lines of the tree, scrolled into sight or not."""
    document = pilot.app.screen.query_one(TextView)
    return [line.text for line in document.text_lines(document.content_size.width)]


async def test_it_opens_at_the_pod(pilot: Pilot[Any]) -> None:
    lines = screen_text(pilot).splitlines()
    assert "node worker-2, kubelet 1.36, cgroup v2, systemd driver" in lines[2]
    assert f"{POD}   Burstable" in lines[4]


async def test_it_says_all_that_the_command_line_says(pilot: Pilot[Any]) -> None:
    snapshot = demo()
    tree = cgroup_tree(snapshot.by_node()["worker-2"], snapshot.setup("worker-2"))
    width = pilot.app.screen.query_one(TextView).content_size.width
    expected = [line.text for line in tree_lines(tree, width)]
    assert shown(pilot)[: len(expected)] == expected
    assert "not measured, assumed: no swap" in " ".join(shown(pilot)[len(expected) :])


async def test_one_line_is_one_line(pilot: Pilot[Any]) -> None:
    document = pilot.app.screen.query_one(TextView)
    assert all(len(line) <= document.content_size.width for line in shown(pilot))
    assert document.size.height == len(shown(pilot))
    await press(pilot, "G")
    assert "enforceNodeAllocatable pods" in words(pilot)
    await press(pilot, "g")
    assert "/sys/fs/cgroup" in screen_text(pilot)


async def test_a_narrower_terminal_shortens_names(pilot: Pilot[Any]) -> None:
    await pilot.resize_terminal(80, 24)
    await pilot.pause()
    assert any(POD in line and "…pod" in line for line in shown(pilot))


async def test_copy_has_whole_names(pilot: Pilot[Any]) -> None:
    await press(pilot, "c")
    copied = pilot.app.clipboard.splitlines()
    assert copied[0] == "node worker-2, kubelet 1.36, cgroup v2, systemd driver"
    assert not any("…" in line for line in copied)


async def test_export_saves_every_file(
    pilot: Pilot[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await press(pilot, "x")
    assert pilot.app.screen.query_one(Input).value == "worker-2-cgroups.txt"
    await press(pilot, "enter")
    snapshot = demo()
    tree = cgroup_tree(snapshot.by_node()["worker-2"], snapshot.setup("worker-2"))
    assert (tmp_path / "worker-2-cgroups.txt").read_text().splitlines() == list(file_lines(tree))


async def test_escape_leads_back(pilot: Pilot[Any]) -> None:
    assert isinstance(pilot.app.screen, TreeScreen)
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_a_pod_without_a_node_is_on_an_assumed_one() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "huge-0")
        await press(pilot, "enter", "v")
        assert "an assumed node, kubelet" in screen_text(pilot)
        assert "ml/huge-0" in screen_text(pilot)


async def test_without_a_pod_there_is_no_tree() -> None:
    async with QosApp(DemoSource(), Scope(namespace="nothing")).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "v")
        assert isinstance(pilot.app.screen, MainScreen)


async def test_a_live_tree_says_when_it_was_taken_and_stays() -> None:
    async with QosApp(ScriptedSource(demo()), Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "v")
        assert "systemd driver, as of 12:00:00 UTC" in screen_text(pilot)
        place = pilot.app.screen.query_one(TextScroll).scroll_offset
        await press(pilot, "r")
        await settled(pilot)
        assert pilot.app.screen.query_one(TextScroll).scroll_offset == place
