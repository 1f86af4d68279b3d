"""Pages whose processes are stand-ins: command lines, downloads, links, and how many there may be."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

import kubectl_qos.web.server
from kubectl_qos.web.server import MAX_SESSIONS, Authenticator, Pages
from tests.end_to_end.command import TIMEOUT_SECONDS
from tests.web import delivering

HOSTILE = ["a b", "'", '"', "$(id)", "`id`", "a;b", "a&&b", "%PATH%", "^&", "-A", "", "größe\n☃", "\\"]
SAY_WORDS = "import json, sys; print(json.dumps(sys.argv[1:]), file=sys.stderr); sys.exit(1)"
NO_UI = "import sys; print('__GANGLION__\\nM\\0\\0\\0\\1x', end='', flush=True); sys.stdin.read()"
ONLY_WAIT = "import sys; sys.stdin.read()"


class Client:
    """A browser that came in."""

    def __init__(self, client: TestClient[web.Request, web.Application], cookie: str) -> None:
        self._client = client
        self._cookie = cookie

    @asynccontextmanager
    async def visit(self) -> AsyncIterator[ClientWebSocketResponse]:
        """Open a page."""
        headers = {"Origin": str(self._client.make_url("")).rstrip("/"), "Cookie": self._cookie}
        async with self._client.ws_connect("/ws", headers=headers) as page:
            yield page

    async def download(self, key: str, *, cookie: bool = True) -> tuple[int, dict[str, str], str]:
        """The status, headers and text of a download."""
        headers = {"Cookie": self._cookie} if cookie else {}
        async with self._client.get(f"/download/{key}", headers=headers) as answer:
            return answer.status, dict(answer.headers), await answer.text("utf-8")


@asynccontextmanager
async def pages(words: Sequence[str] = ()) -> AsyncIterator[Client]:
    authenticator = Authenticator("127.0.0.1", 0)
    cookie = f"{authenticator.cookie}={authenticator.url().partition('token=')[2]}"
    async with TestClient(TestServer(Pages(words, authenticator).application())) as client:
        yield Client(client, cookie)


async def texts(page: ClientWebSocketResponse) -> list[list[object]]:
    """What the server says from now on, without the terminal's bytes, until it closes the page."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return [json.loads(said.data) async for said in page if said.type is WSMsgType.TEXT]


async def text(page: ClientWebSocketResponse) -> list[object]:
    """The next of them."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while (said := await page.receive()).type is not WSMsgType.TEXT:
            assert said.type is WSMsgType.BINARY
    found: list[object] = json.loads(said.data)
    return found


async def test_a_process_gets_its_words_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell reads them: what would be a command in one stays a word."""
    monkeypatch.setattr(kubectl_qos.web.server, "COMMAND", (sys.executable, "-c", SAY_WORDS))
    async with pages(HOSTILE) as client, client.visit() as page:
        ((kind, why),) = await texts(page)
    assert kind == "ended"
    assert json.loads(str(why)) == HOSTILE


async def test_a_process_that_is_no_ui_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_qos.web.server, "COMMAND", (sys.executable, "-S", "-c", NO_UI))
    async with pages() as client, client.visit() as page:
        ((kind, why),) = await texts(page)
    assert kind == "ended"
    assert str(why).startswith("error: unexpected JSONDecodeError: ")


async def test_only_so_many_pages_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_qos.web.server, "COMMAND", (sys.executable, "-S", "-c", ONLY_WAIT))
    refused = ["ended", f"{MAX_SESSIONS} pages are open already, which is the most."]
    async with pages() as client:
        async with AsyncExitStack() as opened:
            for _ in range(MAX_SESSIONS):
                await opened.enter_async_context(client.visit())
            async with client.visit() as page:
                assert await texts(page) == [refused]
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await first_answer(client) == refused:
                pass


async def first_answer(client: Client) -> list[object]:
    """What a new page gets first."""
    async with client.visit() as page:
        await page.send_json(["ping", "1"])
        return await text(page)


async def test_a_download_and_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_qos.web.server, "COMMAND", (sys.executable, delivering.__file__))
    async with pages() as client, client.visit() as page:
        await page.receive_bytes()
        await page.send_json(["stdin", "s"])
        assert await text(page) == ["open_url", {"url": delivering.LINK, "new_tab": True}]
        kind, key = await text(page)
        assert kind == "deliver_file_start"
        assert (await client.download(str(key), cookie=False))[0] == 403
        status, headers, content = await client.download(str(key))
        assert (status, content) == (200, delivering.TEXT)
        assert headers["Content-Type"] == "application/octet-stream"
        name = "gr%C3%B6%C3%9Fe%20%221%22%3B%20x%3D.csv"
        assert headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{name}"
        assert (await client.download(str(key)))[0] == 404
