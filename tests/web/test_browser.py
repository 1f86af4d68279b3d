"""The UI in a real browser, as a person sees it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp.test_utils import TestServer

import kubectl_qos.web.server
from kubectl_qos.web.server import Authenticator, Pages
from tests.web import delivering
from tests.web.browser import PROGRAM, TIMEOUT_SECONDS, Page, browser
from tests.web.serving import Served, needs_proc, served, until_gone

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed")

VICTIM = "importer-5f7b9c-2vtxk"


@dataclass
class Seen:
    """A page that shows the demo, its terminal, and the server behind it."""

    server: Served
    page: Page
    terminal: str

    async def shows(self, text: str) -> str:
        """Wait until the terminal shows the text."""
        return await self.page.shown(self.terminal, text)


@pytest.fixture
async def seen(tmp_path: Path) -> AsyncIterator[Seen]:
    async with served(tmp_path, "--demo") as server, browser(tmp_path / "browser") as opened:
        page = await opened(server.url)
        await page.resize(1280, 800)
        await page.until("document.body?.classList.contains('-first-byte')")
        demo = Seen(server, page, await page.terminal())
        await demo.shows(VICTIM)
        await page.until("document.activeElement.tagName === 'TEXTAREA'")
        yield demo


async def test_a_person_reads_the_ranking_an_explanation_and_the_help(seen: Seen) -> None:
    await seen.page.press("d")
    await seen.shows("Its death")
    await seen.page.press("Escape")
    await seen.shows("Its death")
    await seen.page.press("?")
    assert "such as sort" in await seen.shows("Help")
    assert seen.page.complaints == []
    own = f"127.0.0.1:{seen.server.port}"
    assert {urlsplit(url).netloc for url in seen.page.requests} == {own}


async def test_the_terminal_fills_the_window_and_follows_it(seen: Seen) -> None:
    for width, height in ((1280, 800), (900, 500)):
        await seen.page.resize(width, height)
        await seen.page.until(
            "(() => { const screen = document.querySelector('.xterm-screen').getBoundingClientRect();"
            " const left = innerWidth - screen.width, below = innerHeight - screen.height;"
            " return left >= 0 && left < 30 && below >= 0 && below < 30 })()"
        )
    # 900 pixels have room for 100 columns of 9.6: the last pane is redrawn, to their end.
    await seen.shows("live")


async def test_a_reload_by_f5_is_left_to_the_ui(seen: Seen) -> None:
    await seen.page.press("F5")
    await seen.page.press("?")
    await seen.shows("Help")
    assert len([url for url in seen.page.requests if url.startswith("ws:")]) == 1


async def test_a_copied_row_is_in_the_clipboard(seen: Seen) -> None:
    await seen.page.do(
        "Browser.grantPermissions",
        permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        origin=seen.server.base.rstrip("/"),
    )
    await seen.page.press("c")
    await seen.page.until(f"navigator.clipboard.readText().then((text) => text.includes('{VICTIM}'))")


@needs_proc
async def test_a_closed_page_ends_its_process(seen: Seen) -> None:
    children = seen.server.children()
    assert len(children) == 1
    await seen.page.do("Page.navigate", url="about:blank")
    await until_gone(*children)


async def test_a_ui_that_was_left_can_be_started_again(seen: Seen) -> None:
    await seen.page.press("q")
    await seen.page.until("ended.open && why.textContent === 'The session has ended.'")
    await seen.page.load_by("document.getElementById('again').click()")
    await seen.page.until("document.body?.classList.contains('-first-byte') && !ended.open")
    await seen.page.shown(await seen.page.terminal(), VICTIM)
    assert seen.page.complaints == []


async def test_a_server_that_ends_is_said(seen: Seen) -> None:
    assert await seen.server.stop() == 130
    await seen.page.until("ended.open")
    assert await seen.page.evaluate("why.textContent") == "The server has ended."
    assert seen.page.complaints == []


async def test_a_download_is_saved_by_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_qos.web.server, "COMMAND", (sys.executable, delivering.__file__))
    authenticator = Authenticator("127.0.0.1", 0)
    token = authenticator.url().partition("?")[2]
    (tmp_path / "saved").mkdir()
    async with (
        TestServer(Pages((), authenticator).application()) as server,
        browser(tmp_path / "browser") as opened,
    ):
        page = await opened(str(server.make_url(f"/?{token}")))
        await page.do("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "saved"))
        await page.until("document.activeElement?.tagName === 'TEXTAREA'")
        await page.press("s")
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await asyncio.to_thread(saved_texts, tmp_path / "saved"):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.02)
    assert saved_texts(tmp_path / "saved") == [delivering.TEXT]


def saved_texts(folder: Path) -> list[str]:
    """The texts of the files that a browser has finished."""
    finished = (path for path in folder.iterdir() if path.suffix == ".csv")
    return [path.read_text(encoding="utf-8") for path in finished]
