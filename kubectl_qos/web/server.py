"""The server behind `kubectl qos web`: a page, a WebSocket with a process behind it, and downloads."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import quote

import textual_serve
from aiohttp import WSMsgType, web
from aiohttp.http import HttpProcessingError
from textual_serve.download_manager import DownloadManager

from kubectl_qos.errors import QosError
from kubectl_qos.web.auth import Authenticator, is_loopback, is_same_origin
from kubectl_qos.web.session import GRACE_SECONDS, Session, say_ended

MOST_VISITORS: Final = 16
_HEARTBEAT_SECONDS: Final = 15.0
_MOST_BYTES_OF_A_MESSAGE: Final = 1 << 20
"""What is pasted comes in one message."""
_FRONT_END: Final = Path(textual_serve.__file__).parent / "static"
_HEADERS: Final = {
    # xterm.js makes style elements, and Safari takes 'self' for http only; the latter is added for each host.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
    " font-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " connect-src 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "kubectl-qos",
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What is served, and where.

    Attributes:
        words: the arguments of the UI behind each page.
        address: the IP address or name to listen on.
        port: likewise; 0 is any free one.
        names: the names that the server goes by beside its address.
        browse: whether to open the page in a browser of this machine.
    """

    words: Sequence[str]
    address: str
    port: int
    names: Sequence[str] = ()
    browse: bool = False


def serve(site: ServerOptions, *, started: Callable[[str], None], warn: Callable[[str], None]) -> int:
    """Serve until a signal comes; the exit code that shells give to it.

    Args:
        site: what and where.
        started: is told the URL, with its token, once the server listens.
        warn: is told what the person who started it should know.

    Raises:
        QosError: the address or port cannot be listened on.
    """
    return asyncio.run(_serve(site, started, warn))


async def _serve(site: ServerOptions, started: Callable[[str], None], warn: Callable[[str], None]) -> int:
    listening = _listen(site.address, site.port)
    address, port = listening.getsockname()[:2]
    if not is_loopback(address):
        warn(
            f"warning: everybody who reaches {site.address} and has the URL sees what these credentials can"
            " read; the connection is not encrypted, so that whoever listens to it has the URL too"
        )
    authenticator = Authenticator(site.address, port, site.names)
    pages = Pages(site.words, authenticator)
    runner = web.AppRunner(pages.application(), access_log=None, shutdown_timeout=GRACE_SECONDS)
    stopped = _stopped()
    logging.getLogger("aiohttp.server").addFilter(_is_no_bad_request)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        started(authenticator.url())
        if site.browse:
            # Some browsers return only when they are closed.
            threading.Thread(target=_browse, args=(authenticator.url_for_once(), warn), daemon=True).start()
        return 128 + await stopped
    finally:
        await runner.cleanup()
        listening.close()


def _is_no_bad_request(record: logging.LogRecord) -> bool:
    """Whether it is worth telling: what is no HTTP, such as a port scan, is refused and that is all."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def _browse(url: str, warn: Callable[[str], None]) -> None:
    if not webbrowser.open(url):
        warn("no browser was found here: open the URL in one")


class Pages:
    """What the server answers to whom it lets in.

    Args:
        words: the arguments of the UI behind each page.
        authenticator: decides who is answered.
    """

    def __init__(self, words: Sequence[str], authenticator: Authenticator) -> None:
        self._words = words
        self._authenticator = authenticator
        self._downloads = DownloadManager()
        self._visitors: set[Session] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        own = files("kubectl_qos.web") / "page"
        self._own = {name: (own / name).read_text("utf-8") for name in ("page.html", "page.css", "page.js")}

    def application(self) -> web.Application:
        """The aiohttp application."""
        application = web.Application(middlewares=[self._authenticate])
        application.add_routes(
            [
                web.get("/", partial(self._send, "page.html", "text/html")),
                web.get("/page.css", partial(self._send, "page.css", "text/css")),
                web.get("/page.js", partial(self._send, "page.js", "text/javascript")),
                web.static("/static", _FRONT_END),
                web.get("/ws", self._visit),
                web.get("/download/{key}", self._download),
            ]
        )
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._end_all)
        return application

    @web.middleware
    async def _authenticate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not self._authenticator.answers_to(request.host):
            raise web.HTTPForbidden(
                text="This server does not go by that name; kubectl qos web --allow-host NAME lets it.\n"
            )
        if request.path == "/" and "token" in request.query:
            cookie = self._authenticator.cookie_for(request.query["token"])
            if cookie is not None:
                came_in = web.HTTPSeeOther("/")
                came_in.set_cookie(self._authenticator.cookie, cookie, httponly=True, samesite="Strict")
                raise came_in
        elif self._authenticator.knows(request.cookies.get(self._authenticator.cookie)):
            return await handler(request)
        raise web.HTTPForbidden(text="Open the URL that kubectl qos web has printed: it holds the token.\n")

    async def _send(self, name: str, kind: str, _: web.Request) -> web.Response:
        return web.Response(text=self._own[name], content_type=kind)

    async def _visit(self, request: web.Request) -> web.WebSocketResponse:
        if not is_same_origin(request.headers.get("Origin"), request.host):
            raise web.HTTPForbidden(text="Only a page of this server may connect to it.\n")
        page = web.WebSocketResponse(heartbeat=_HEARTBEAT_SECONDS, max_msg_size=_MOST_BYTES_OF_A_MESSAGE)
        await page.prepare(request)
        if len(self._visitors) >= MOST_VISITORS:
            await say_ended(page, f"{MOST_VISITORS} pages are open already, which is the most.")
            return page
        visitor = Session(self._words, page, self._downloads)
        self._visitors.add(visitor)
        try:
            await visitor.start(_number(request, "width", 80), _number(request, "height", 24))
            async for message in page:
                if message.type is WSMsgType.TEXT:
                    await visitor.take(message.data)
        finally:
            # A task of its own, since aiohttp may cancel this one when the browser has gone.
            leaving = asyncio.create_task(self._leave(visitor))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.shield(leaving)
        return page

    async def _leave(self, visitor: Session) -> None:
        try:
            await visitor.stop()
        finally:
            self._visitors.discard(visitor)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        try:
            wanted = await self._downloads.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound(text="There is no such download any more.\n") from None
        name = quote(wanted.file_name, safe="")
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            }
        )
        await response.prepare(request)
        async for chunk in self._downloads.download(key):
            await response.write(chunk)
        await response.write_eof()
        return response

    async def _end_all(self, _: web.Application) -> None:
        await asyncio.gather(*(visitor.stop("The server has ended.") for visitor in self._visitors))


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] += f" ws://{request.host} wss://{request.host}"


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else default


def _listen(address: str, port: int) -> socket.socket:
    """A socket that listens. Raises QosError."""
    try:
        family, *_, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    except OSError as error:
        # What Python adds in parentheses is the address once more.
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise QosError(
            f"{address} port {port} cannot be listened on: {reason}",
            hint="--port 0 takes any free port" if port else "",
        ) from None


def _stopped() -> asyncio.Future[int]:
    """The number of the signal that asks for the end, once it has come."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup has a signal ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            try:
                loop.add_signal_handler(number, stop, number)
            except NotImplementedError:
                break  # Windows interrupts the loop itself
    return stopped
