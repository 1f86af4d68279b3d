"""The screens of a node: its cgroup tree, and what would differ on another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input

from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.tree import MOUNT, TreeRow, file_lines
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import TreeScreen
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.text_view import TextScroll
from tests.tui.sources import Run, ScriptedSource, demo, running

POD = "shop/api-7d9c5b6f8-x2mzq"


@pytest.fixture
async def pilot() -> AsyncIterator[Run]:
    async with running(None, "v", size=(200, 50)) as found:
        yield found


def table(pilot: Run) -> LineTable[TreeRow]:
    return pilot.app.screen.query_one(LineTable)


def files(pilot: Run) -> list[str]:
    """The files that are shown, as the command line lists them."""
    rows = [row for row in table(pilot).rows if row.file]
    return [f"{MOUNT}{row.directory.path}/{row.file} = {row.content}" for row in rows]


async def test_it_says_all_that_the_command_line_says(
    pilot: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = demo()
    tree = cgroup_tree(snapshot.by_node()["worker-2"], snapshot.setup("worker-2"))
    # At first the pod itself is unfolded, and huge pages that nobody uses are hidden.
    row = table(pilot).row
    assert row is not None
    assert row.content == f"{POD} Burstable"
    at_first = files(pilot)
    assert len([line for line in at_first if "memory.max = 2147483648" in line]) == 2
    assert not any("hugetlb" in line for line in at_first)
    assert "2147483648 2Gi" in pilot.words
    await pilot.keys("space")
    assert len(files(pilot)) < len(at_first)
    await pilot.keys("enter")
    assert files(pilot) == at_first
    # Unfolded it has every file.
    await pilot.keys("z", "a")
    assert files(pilot) == list(file_lines(tree))
    await pilot.keys("z", "a")
    assert len(files(pilot)) < len(at_first)
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
    assert "…pod" in pilot.text
    assert "not measured, assumed" in notes(pilot)


def notes(pilot: Run) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, TreeScreen)
    return " ".join(screen.notes_now())


async def test_a_narrow_tree_shows_what_its_files_have() -> None:
    async with running(size=(80, 24)) as pilot:
        await pilot.keys("tab", "j", "j", "tab", "tab", "v")
        await pilot.seen("node worker-1")
        assert "monitoring/prometheus-0 Burstable" in pilot.text
        assert "max 100000     no limit" in pilot.text


async def test_a_tree_is_searched() -> None:
    async with running(None, "v", "slash", size=(120, 40)) as pilot:
        await pilot.type("swap")
        assert files(pilot)
        assert all("memory.swap.max" in line for line in files(pilot))
        assert POD in pilot.words, "with what it belongs to"
        await pilot.type("x")
        assert "Nothing has swapx." in pilot.words
        await pilot.keys("backspace", "enter", "G")
        last = table(pilot).row
        assert last is not None
        await pilot.keys("escape")
        assert table(pilot).row.key == last.key, "it stays there, unfolded"  # type: ignore[union-attr]
        assert isinstance(pilot.app.screen, TreeScreen)
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)


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
        place = table(pilot).cursor
        await pilot.refresh()
        assert table(pilot).cursor == place


@pytest.fixture
async def compared() -> AsyncIterator[Run]:
    async with running(None, "u", size=(80, 24)) as found:
        yield found


async def test_what_differs_follows_the_line(compared: Run) -> None:
    await compared.keys("enter")
    assert "! type a release, settings, or both, such as 1.37 " in compared.words
    await compared.put("memory=32Gi")
    assert "c oom_score_adj 969 → 985 (+16)" in compared.words
    await compared.put("memory=16Gi")
    assert "The pod stays as it is" in compared.words
    await compared.put("1.37 ociRuntime=runc-1.3.1")
    assert "node worker-2, kubelet 1.36 → 1.37, ociRuntime=runc 1.3.1" not in compared.words
    assert "kubelet 1.36 → 1.37, ociRuntime=runc-1.3.1" in compared.words
    await compared.put("")
    assert "Type a release" in compared.words
    assert "cgroupDriver=cgroupfs|systemd" in compared.words
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
    assert scroll.scroll_y > before
    await compared.keys("pageup")
    assert scroll.scroll_y == before
    await compared.keys("ctrl+s")
    assert "cgroupVersion=1" in compared.app.clipboard
    assert "cpu/cpu.shares" in compared.app.clipboard
    await compared.keys("escape")
    assert isinstance(compared.app.screen, MainScreen)
    assert "RANK" in compared.text
