"""The server in a process of its own: who is answered, with which headers, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.end_to_end.command import TIMEOUT_SECONDS
from tests.web.serving import HAS_PROC, Served, needs_proc, served, until_gone

PATHS = ["", "page.css", "page.js", "static/js/textual.js", "ws", "download/x"]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server that no test stops; a file of its folder is no module of its UIs."""
    home = tmp_path_factory.mktemp("home")
    async with served(home, "--demo") as running:
        (home / "textual.py").write_text("raise SystemExit('loaded')")
        yield running
        assert await running.stop() == 130
        assert running.process.stderr is not None
        assert await running.process.stderr.read() == b""


@pytest_asyncio.fixture(loop_scope="module")
async def server(shared: Served) -> AsyncIterator[Served]:
    yield shared
    if HAS_PROC:
        await until_gone(*shared.children())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield client


async def first_frame(page: aiohttp.ClientWebSocketResponse) -> None:
    """Wait until the UI has drawn something."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while len(await page.receive_bytes()) < 200:
            pass


async def read_on(page: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in page:
        pass


def words_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


async def test_without_the_token_nothing_is_answered(server: Served, session: aiohttp.ClientSession) -> None:
    wrong = {"Cookie": f"kubectl-qos-{server.port}={server.token[::-1]}"}
    for path in [*PATHS, "favicon.ico", "?token=x", f"page.js?token={server.token}", "?token=%C3%BC"]:
        for headers in ({}, wrong):
            async with session.get(f"{server.base}{path}", headers=headers) as answer:
                assert (answer.status, await answer.text()) == (
                    403,
                    "Open the URL that kubectl qos web has printed: it holds the token.\n",
                ), path


async def test_the_token_becomes_a_cookie_that_opens_the_page(
    server: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(server.url, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
    value, *attributes = cookie.split("; ")
    assert value == server.cookie["Cookie"]
    assert set(attributes) == {"HttpOnly", "Path=/", "SameSite=Strict"}
    found = {}
    for path in PATHS:
        async with session.get(f"{server.base}{path}", headers={"Cookie": value}) as answer:
            found[path] = answer.status
    assert found == {**dict.fromkeys(PATHS, 200), "ws": 403, "download/x": 404}


async def test_a_browser_is_opened_with_a_ticket_that_is_good_for_once(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    said = tmp_path / "said"
    os.mkfifo(said)  # so that reading waits for it
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {said}\n')
    browser.chmod(0o700)
    async with served(tmp_path, "--demo", "--open", variables={"BROWSER": str(browser)}) as server:
        url = (await asyncio.wait_for(asyncio.to_thread(said.read_text), TIMEOUT_SECONDS)).strip()
        assert url.startswith(server.base)
        assert server.token not in url
        for status in (303, 403):
            async with session.get(url, allow_redirects=False) as answer:
                assert answer.status == status
        assert await server.stop() == 130


async def test_without_a_browser_it_is_said(tmp_path: Path) -> None:
    async with served(tmp_path, "--demo", "--open", variables={"PATH": "", "BROWSER": "none"}) as server:
        assert server.process.stderr is not None
        said = await asyncio.wait_for(server.process.stderr.readline(), TIMEOUT_SECONDS)
    assert said == b"no browser found on this machine: open the URL in a browser\n"


@pytest.mark.parametrize(
    "request_", [b"\x16\x03\x01\x02\x00\x01", b"x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"]
)
async def test_what_is_no_request_is_refused_without_a_word(server: Served, request_: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request_)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), TIMEOUT_SECONDS)
    writer.close()  # When the server ends, it has said nothing.


@pytest.mark.parametrize("host", ["evil.example.com", "evil.example.com:{port}", "192.0.2.1:{port}", ""])
async def test_under_another_name_nothing_is_answered(
    server: Served, session: aiohttp.ClientSession, host: str
) -> None:
    headers = {**server.cookie, "Host": host.format(port=server.port)}
    for path in (*PATHS, f"?token={server.token}"):
        async with session.get(f"{server.base}{path}", headers=headers, allow_redirects=False) as answer:
            assert answer.status == 403
            assert "Set-Cookie" not in answer.headers


@needs_proc
async def test_a_name_and_writes_that_are_allowed(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    async with served(tmp_path, "--demo", "--allow-host", "qos.example.com", "--allow-writes") as server:
        headers = {**server.cookie, "Host": "qos.example.com"}
        async with session.get(server.base, headers=headers) as answer:
            assert answer.status == 200
        async with server.visit(Host="qos.example.com", Origin="https://qos.example.com") as page:
            await first_frame(page)
            (child,) = server.children()
            assert "--readonly" not in words_of(child)


@needs_proc
@pytest.mark.parametrize("origin", ["http://evil.example.com", "http://localhost:1", "null", ""])
async def test_pages_of_others_cannot_connect(server: Served, origin: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with server.visit(Origin=origin):
            pass
    assert refused.value.status == 403
    assert server.children() == []


async def test_every_answer_has_the_headers_that_keep_others_out(
    server: Served, session: aiohttp.ClientSession
) -> None:
    wanted = {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
            " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'"
            f" ws://127.0.0.1:{server.port} wss://127.0.0.1:{server.port}"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Server": "kubectl-qos",
    }
    for path in (*PATHS, "none", f"?token={server.token}"):
        for headers in ({}, server.cookie):
            async with session.get(f"{server.base}{path}", headers=headers, allow_redirects=False) as answer:
                assert {name: answer.headers.get(name) for name in wanted} == wanted, path


async def test_the_page_names_no_other_host(server: Served, session: aiohttp.ClientSession) -> None:
    for path in ("", "page.css", "page.js", "static/js/textual.js", "static/css/xterm.css"):
        async with session.get(f"{server.base}{path}", headers=server.cookie) as answer:
            text = await answer.text()
        loaded = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)([^"']*)|url\(["']?([^"')]*)""", text)
        assert [one for pair in loaded for one in pair if "//" in one] == [], path
        if not path.startswith("static/"):
            assert "//" not in text.replace("</", ""), path


async def test_the_ui_is_drawn_and_takes_keys(server: Served) -> None:
    async with server.visit() as page:
        await first_frame(page)
        for odd in (
            "[",
            "{}",
            "[1]",
            '["stdin"]',
            '["resize", {"width": -5, "height": 1e9}]',
            '["resize", 3]',
        ):
            await page.send_str(odd)
        await page.send_json(["ping", "7"])
        await page.send_json(["resize", {"width": 10**9, "height": -(10**9)}])
        await page.send_json(["resize", {"width": 100, "height": 30}])
        await page.send_json(["stdin", "q"])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            said = [json.loads(one.data) async for one in page if one.type is aiohttp.WSMsgType.TEXT]
    assert said == [["pong", "7"], ["ended", ""]]


async def test_why_a_ui_did_not_start_is_said_in_the_page(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n")
    async with served(tmp_path, "-f", "x.yaml") as server:
        (tmp_path / "x.yaml").unlink()
        async with server.visit() as page:
            said = await asyncio.wait_for(page.receive_json(), TIMEOUT_SECONDS)
    assert said == ["ended", 'error: the path "x.yaml" does not exist']


@needs_proc
async def test_each_page_has_a_process_that_ends_with_it(server: Served) -> None:
    async with server.visit() as first:
        await first_frame(first)
        # A page that nobody reads does not answer the server's pings.
        reading = asyncio.create_task(read_on(first))
        (of_the_first,) = server.children()
        assert {"--readonly", "--demo"} <= set(words_of(of_the_first))
        async with server.visit() as second:
            await first_frame(second)
            (of_the_second,) = set(server.children()) - {of_the_first}
        await until_gone(of_the_second)
        assert server.children() == [of_the_first]
        reading.cancel()
    await until_gone(of_the_first)
    assert server.children() == []


@needs_proc
async def test_a_process_that_does_not_end_by_itself_is_ended(server: Served) -> None:
    async with server.visit() as page:
        await first_frame(page)
        (child,) = server.children()
        os.kill(child, signal.SIGSTOP)
    await until_gone(child)


@needs_proc
@pytest.mark.parametrize(
    ("number", "code", "pages"),
    [(signal.SIGINT, 130, 2), (signal.SIGHUP, 129, 1), (signal.SIGKILL, -9, 1)],
)
async def test_all_processes_end_with_the_server(tmp_path: Path, number: int, code: int, pages: int) -> None:
    async with served(tmp_path, "--demo") as server, AsyncExitStack() as visits:
        # A page that nobody reads does not answer the server's pings either.
        for _ in range(pages):
            await first_frame(await visits.enter_async_context(server.visit()))
        children = server.children()
        assert len(children) == pages
        assert await server.stop(number) == code
        await until_gone(*children)
        assert server.process.stderr is not None
        assert await server.process.stderr.read() == b""
