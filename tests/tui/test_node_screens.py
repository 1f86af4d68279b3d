"""The screens of a node: its cgroup tree, and what would differ on another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.tree import file_lines, tree_lines
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from tests.tui.sources import Run, ScriptedSource, demo, running

POD = "shop/api-7d9c5b6f8-x2mzq"


@pytest.fixture(params=[(80, 24), (200, 50)], ids=["80x24", "200x50"])
async def pilot(request: pytest.FixtureRequest) -> AsyncIterator[Run]:
    async with running(None, "v", size=request.param) as found:
        yield found


def shown(pilot: Run) -> list[str]:
    """All lines of the tree, scrolled into sight or not."""
    document = pilot.app.screen.query_one(TextView)
    return [line.text for line in document.text_lines(document.content_size.width)]


async def test_it_says_all_that_the_command_line_says(
    pilot: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = demo()
    tree = cgroup_tree(snapshot.by_node()["worker-2"], snapshot.setup("worker-2"))
    width = pilot.app.screen.query_one(TextView).content_size.width
    expected = [line.text for line in tree_lines(tree, width)]
    assert shown(pilot)[: len(expected)] == expected
    assert "not measured, assumed: no swap" in " ".join(shown(pilot)[len(expected) :])
    # One line is one line.
    document = pilot.app.screen.query_one(TextView)
    assert all(len(line) <= document.content_size.width for line in shown(pilot))
    assert document.size.height == len(shown(pilot))
    await pilot.keys("G")
    assert "enforceNodeAllocatable pods" in pilot.words
    await pilot.keys("g")
    assert "/sys/fs/cgroup" in pilot.text
    # Copy has whole names.
    await pilot.keys("c")
    copied = pilot.app.clipboard.splitlines()
    assert copied[0] == "node worker-2, kubelet 1.36, cgroup v2, systemd driver"
    assert not any("…" in line for line in copied)
    # Export saves every file.
    monkeypatch.chdir(tmp_path)
    await pilot.keys("x")
    assert pilot.app.screen.query_one(Input).value == "worker-2-cgroups.txt"
    await pilot.keys("enter")
    assert (tmp_path / "worker-2-cgroups.txt").read_text().splitlines() == list(file_lines(tree))
    # A narrower terminal shortens names.
    await pilot.resize_terminal(80, 24)
    await pilot.pause()
    assert any(POD in line and "…pod" in line for line in shown(pilot))


async def test_a_pod_without_a_node_is_on_an_assumed_one() -> None:
    async with running(None, "slash") as pilot:
        await pilot.type("huge-0")
        await pilot.keys("enter", "v")
        assert "an assumed node, kubelet" in pilot.text
        assert "ml/huge-0" in pilot.text


async def test_without_a_pod_there_is_no_tree() -> None:
    async with running(None, "v", size=(80, 24), scope=Scope(namespace="nothing")) as pilot:
        assert isinstance(pilot.app.screen, MainScreen)


async def test_a_live_tree_says_when_it_was_taken_and_stays() -> None:
    async with running(ScriptedSource(demo()), "v") as pilot:
        assert "systemd driver, as of 12:00:00 UTC" in pilot.text
        place = pilot.app.screen.query_one(TextScroll).scroll_offset
        await pilot.refresh()
        assert pilot.app.screen.query_one(TextScroll).scroll_offset == place


@pytest.fixture(params=[(80, 24), (200, 50)], ids=["80x24", "200x50"])
async def compared(request: pytest.FixtureRequest) -> AsyncIterator[Run]:
    async with running(None, "u", size=request.param) as found:
        yield found


async def test_what_differs_follows_the_line(compared: Run) -> None:
    await compared.put("memory=32Gi")
    assert "c oom_score_adj 969 → 985 (+16)" in compared.words
    await compared.put("memory=16Gi")
    assert "Nothing changes" in compared.words
    await compared.put("1.37 ociRuntime=runc-1.3.1")
    assert "node worker-2, kubelet 1.36 → 1.37, ociRuntime=runc 1.3.1" not in compared.words
    assert "kubelet 1.36 → 1.37, ociRuntime=runc-1.3.1" in compared.words
    await compared.put("")
    assert "Type a release" in compared.words
    # What is wrong is said and what was shown stays.
    await compared.put("memory=32Gi")
    await compared.put("memory=32Gi cgroupVersion=3")
    assert "! cgroupVersion=3: must be 1 or 2" in compared.words
    assert "969 → 985" in compared.words
    # What no kubelet starts with.
    await compared.put("memorySwap.swapBehavior=UnlimitedSwap")
    assert "! Kubelet: would not start" in compared.words
    await compared.put("cpuCFSQuotaPeriod=0s")
    assert "! cpuCFSQuotaPeriod=0s: must be a duration from 1ms to 1s" in compared.words
    # Pages copy and back.
    await compared.put("cgroupVersion=1")
    scroll = compared.app.screen.query_one(TextScroll)
    before = scroll.scroll_y
    await compared.keys("pagedown")
    assert scroll.scroll_y > before or scroll.max_scroll_y == 0
    await compared.keys("pageup")
    assert scroll.scroll_y == before
    await compared.keys("ctrl+s")
    assert "cgroupVersion=1" in compared.app.clipboard
    assert "cpu/cpu.shares" in compared.app.clipboard
    await compared.keys("escape")
    assert isinstance(compared.app.screen, MainScreen)
    assert "RANK" in compared.text
