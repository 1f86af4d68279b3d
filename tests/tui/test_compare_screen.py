from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import CompareScreen
from kubectl_qos.tui.widgets.text_view import TextScroll
from tests.tui.sources import press, screen_text, settled, words


@pytest.fixture(params=[(80, 24), (200, 50)], ids=["80x24", "200x50"])
async def pilot(request: pytest.FixtureRequest) -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=request.param) as found:
        await settled(found)
        await press(found, "u")
        yield found


async def put(pilot: Pilot[Any], text: str) -> None:
    pilot.app.screen.query_one(Input).value = text
    await pilot.pause()


async def test_it_asks_and_gives_an_example(pilot: Pilot[Any]) -> None:
    assert isinstance(pilot.app.screen, CompareScreen)
    assert "what if worker-2, kubelet 1.36, were different? pod shop/api-7d9c5b6f8-x2mzq" in words(pilot)
    assert "such as 1.37 cgroupVersion=1" in words(pilot)


async def test_what_differs_follows_the_line(pilot: Pilot[Any]) -> None:
    await put(pilot, "memory=32Gi")
    assert "c oom_score_adj 969 → 985 (+16)" in words(pilot)
    await put(pilot, "memory=16Gi")
    assert "Nothing changes" in words(pilot)
    await put(pilot, "1.37 ociRuntime=runc-1.3.1")
    assert "node worker-2, kubelet 1.36 → 1.37, ociRuntime=runc 1.3.1" not in words(pilot)
    assert "kubelet 1.36 → 1.37, ociRuntime=runc-1.3.1" in words(pilot)
    await put(pilot, "")
    assert "Type a release" in words(pilot)


async def test_what_is_wrong_is_said_and_what_was_shown_stays(pilot: Pilot[Any]) -> None:
    await put(pilot, "memory=32Gi")
    await put(pilot, "memory=32Gi cgroupVersion=3")
    assert "! cgroupVersion=3: must be 1 or 2" in words(pilot)
    assert "969 → 985" in words(pilot)


async def test_what_no_kubelet_starts_with(pilot: Pilot[Any]) -> None:
    await put(pilot, "memorySwap.swapBehavior=UnlimitedSwap")
    assert "! Kubelet: would not start" in words(pilot)
    await put(pilot, "cpuCFSQuotaPeriod=0s")
    assert "! cpuCFSQuotaPeriod=0s: must be a duration from 1ms to 1s" in words(pilot)


async def test_pages_copy_and_back(pilot: Pilot[Any]) -> None:
    await put(pilot, "cgroupVersion=1")
    scroll = pilot.app.screen.query_one(TextScroll)
    before = scroll.scroll_y
    await press(pilot, "pagedown")
    assert scroll.scroll_y > before or scroll.max_scroll_y == 0
    await press(pilot, "pageup")
    assert scroll.scroll_y == before
    await press(pilot, "ctrl+s")
    assert "cgroupVersion=1" in pilot.app.clipboard
    assert "cpu/cpu.shares" in pilot.app.clipboard
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen)
    assert "RANK" in screen_text(pilot)
