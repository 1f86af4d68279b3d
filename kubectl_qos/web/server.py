"""The server of `kubectl qos web`: a page, a WebSocket with a process behind it, downloads, authentication.

Any page in a browser and any user of the machine can send requests to loopback ports. So requests need the
token, a secret of the person who started the server. The check of the Host header prevents DNS rebinding; the
check of the Origin header stops other sites' pages, which would send the person's cookie.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import shlex
import signal
import socket
import sys
import threading
import webbrowser
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final
from urllib.parse import quote

import textual_serve
from aiohttp import WSMsgType, web
from aiohttp.http import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from kubectl_qos.errors import QosError

# -P, so that a yaml.py in the current folder is not imported.
COMMAND: Final = (sys.executable, "-P", "-m", "kubectl_qos.web.subprocess")
GRACE_SECONDS: Final = 3.0
"""How long a process may take to end before it is killed."""
_BEGIN: Final = b"__GANGLION__\n"
"""The first bytes of Textual's web driver, before its packets."""
_KEPT_BYTES: Final = 4096
"""How much of the end of stderr is kept for an error."""
_MAX_COLUMNS, _MAX_LINES = 1000, 500


class Session(AppService):
    """Relays messages between a page and its process until either ends.

    Unlike its base class in textual-serve, which runs its command by a shell and writes errors to stdout, it
    uses no shell, shows errors in the page, and ends the process in any case. Files that the process delivers
    are registered in `downloads`.
    """

    def __init__(
        self, arguments: Sequence[str], socket: web.WebSocketResponse, downloads: DownloadManager
    ) -> None:
        self._command = [*COMMAND, *arguments]
        self._socket = socket
        self._process_behind: Process | None = None
        self._relay: asyncio.Task[None] | None = None
        self._why = ""
        super().__init__(
            shlex.join(self._command),
            write_bytes=self._send_bytes,
            write_str=self._send_text,
            close=self._do_not_close,
            download_manager=downloads,
        )

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """The stdin of the process."""
        assert self._process_behind is not None
        assert self._process_behind.stdin is not None
        return self._process_behind.stdin

    async def start(self, width: int, height: int) -> None:
        """Start the process, for a terminal of this size."""
        width, height = _within(width, _MAX_COLUMNS), _within(height, _MAX_LINES)
        variables = {
            **os.environ,
            "TEXTUAL_DRIVER": "kubectl_qos.web.subprocess:PageDriver",
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "COLUMNS": str(width),
            "ROWS": str(height),
        }
        self._process_behind = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=variables
        )
        self._relay = asyncio.create_task(self.run())

    async def receive(self, message: str) -> None:
        """Handle a message of the page: keys, its size, its focus. Unknown messages are ignored."""
        try:
            content = json.loads(message)
        except ValueError:
            return
        match content:
            case ["stdin", str(keys)]:
                await self.send_bytes(keys.encode("utf-8", "replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                await self.set_terminal_size(_within(width, _MAX_COLUMNS), _within(height, _MAX_LINES))
            case ["ping", str(when)]:
                await self._send_text(json.dumps(["pong", when]))
            case ["focus"]:
                await self.focus()
            case ["blur"]:
                await self.blur()

    async def run(self) -> None:
        """Relay the process's output to its end; then show in the page why it ended, and close the page."""
        process = self._process_behind
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_end_of(process.stderr))
        try:
            await self._relay_output(process.stdout)
        except asyncio.IncompleteReadError:
            code = await process.wait()
            text = (await errors).decode("utf-8", "replace").strip()
            await close_page(self._socket, self._why or (text if code else ""))
        except Exception as error:  # noqa: BLE001 - output of any kind
            await close_page(self._socket, f"error: unexpected {type(error).__name__}: {error}")

    async def stop(self, why: str = "") -> None:
        """End the process, by force if needed, and show why in the page."""
        process = self._process_behind
        if process is None or self._relay is None:
            return
        self._why = self._why or why
        await self._download_manager.cancel_app_downloads(self.app_service_id)
        for end in (self.stdin.close, process.terminate, process.kill):
            with suppress(ProcessLookupError):
                end()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
                break
        # A page that has stopped reading must not delay the end.
        await asyncio.wait({self._relay}, timeout=GRACE_SECONDS)
        self._relay.cancel()

    async def _relay_output(self, stdout: asyncio.StreamReader) -> None:
        await stdout.readuntil(_BEGIN)
        while True:
            kind = await stdout.readexactly(1)
            payload = await stdout.readexactly(int.from_bytes(await stdout.readexactly(4)))
            if kind == b"D":
                await self.on_data(payload)
            elif kind == b"M":
                await self.on_meta(payload)
            elif kind == b"P":
                await self.on_packed(payload)

    async def on_meta(self, data: bytes) -> None:
        """Relay a request of the process to the page; only links to websites are opened."""
        request = json.loads(data)
        if request["type"] != "open_url" or request["url"].startswith(("http://", "https://")):
            await super().on_meta(data)

    async def _send_bytes(self, data: bytes) -> None:
        # The process may still write shortly after its page was closed.
        with suppress(ConnectionError):
            await self._socket.send_bytes(data)

    async def _send_text(self, text: str) -> None:
        with suppress(ConnectionError):
            await self._socket.send_str(text)

    async def _do_not_close(self) -> None:
        """Do nothing: `run` closes the page, once it knows how the process ended."""


async def close_page(socket: web.WebSocketResponse, why: str) -> None:
    """Close the connection to a page with a reason to show; without one, the UI has ended."""
    with suppress(ConnectionError):
        await socket.send_json(["ended", why])
    await socket.close()


async def _end_of(stderr: asyncio.StreamReader) -> bytes:
    kept = b""
    while data := await stderr.read(_KEPT_BYTES):
        kept = (kept + data)[-_KEPT_BYTES:]
    return kept


def _within(number: int, most: int) -> int:
    return min(max(number, 1), most)


MAX_SESSIONS: Final = 16
_HEARTBEAT_SECONDS: Final = 15.0
_MAX_MESSAGE_BYTES: Final = 1 << 20
"""The limit has room for pasted text, which comes in one message."""
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[0-9a-z._-]+)(:(?P<port>[0-9]{1,5}))?")
_FRONT_END: Final = Path(textual_serve.__file__).parent / "static"
_HEADERS: Final = {
    # xterm.js needs inline styles. In Safari 'self' does not include ws:, so each response adds it.
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


async def serve(  # noqa: PLR0913 - the flags of a command
    arguments: Sequence[str],
    address: str,
    port: int,
    *,
    names: Sequence[str],
    browse: bool,
    started: Callable[[str], None],
    warn: Callable[[str], None],
) -> int:
    """Serve until a signal comes. Return the exit code that shells give to that signal.

    Each page runs the UI with `arguments`. `names` are further Host names of the server; port 0 is any free
    port. `started` is called with the page's URL once the server listens, `warn` with sentences for the
    person who started it; `browse` opens the page on this machine. Raises QosError if it cannot listen.
    """
    listening = _listen(address, port)
    ip, port = listening.getsockname()[:2]
    if not is_loopback(ip):
        warn(
            f"warning: everybody who reaches {address} and has the URL can see what these credentials"
            " can read; the connection is not encrypted, so the token in the URL can be intercepted"
        )
    authenticator = Authenticator(address, port, names)
    pages = Pages(arguments, authenticator)
    runner = web.AppRunner(pages.application(), access_log=None, shutdown_timeout=GRACE_SECONDS)
    stopped = _stop_signal()
    # Do not log requests that are not HTTP, such as those of a port scan.
    logging.getLogger("aiohttp.server").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
    )
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        started(authenticator.url())
        if browse:
            # Some browsers return only when they are closed, so a thread waits for it.
            threading.Thread(target=_browse, args=(authenticator.one_time_url(), warn), daemon=True).start()
        return 128 + await stopped
    finally:
        await runner.cleanup()
        listening.close()


def _browse(url: str, warn: Callable[[str], None]) -> None:
    if not webbrowser.open(url):
        warn("no browser found on this machine: open the URL in a browser")


class Pages:
    """Authenticates requests and answers them; each page runs the UI with `arguments`."""

    def __init__(self, arguments: Sequence[str], authenticator: Authenticator) -> None:
        self._arguments = arguments
        self._authenticator = authenticator
        self._downloads = DownloadManager()
        self._sessions: set[Session] = set()
        self._closing: set[asyncio.Task[None]] = set()
        own = files("kubectl_qos.web") / "page"
        self._own = {name: (own / name).read_text("utf-8") for name in ("page.html", "page.css", "page.js")}

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        application = web.Application(middlewares=[self._authenticate])
        application.add_routes(
            [
                web.get("/", partial(self._send, "page.html", "text/html")),
                web.get("/page.css", partial(self._send, "page.css", "text/css")),
                web.get("/page.js", partial(self._send, "page.js", "text/javascript")),
                web.static("/static", _FRONT_END),
                web.get("/ws", self._open_session),
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
        if not self._authenticator.has_host(request.host):
            raise web.HTTPForbidden(
                text="Unknown Host header: kubectl qos web --allow-host NAME allows it.\n"
            )
        if request.path == "/" and "token" in request.query:
            cookie = self._authenticator.cookie_for(request.query["token"])
            if cookie is not None:
                response = web.HTTPSeeOther("/")
                response.set_cookie(self._authenticator.cookie, cookie, httponly=True, samesite="Strict")
                raise response
        elif self._authenticator.has_cookie(request.cookies.get(self._authenticator.cookie)):
            return await handler(request)
        raise web.HTTPForbidden(text="Open the URL that kubectl qos web has printed: it holds the token.\n")

    async def _send(self, name: str, kind: str, _: web.Request) -> web.Response:
        return web.Response(text=self._own[name], content_type=kind)

    async def _open_session(self, request: web.Request) -> web.WebSocketResponse:
        if not is_same_origin(request.headers.get("Origin"), request.host):
            raise web.HTTPForbidden(text="Only a page of this server may connect to it.\n")
        page = web.WebSocketResponse(heartbeat=_HEARTBEAT_SECONDS, max_msg_size=_MAX_MESSAGE_BYTES)
        await page.prepare(request)
        if len(self._sessions) >= MAX_SESSIONS:
            await close_page(page, f"{MAX_SESSIONS} pages are open already, which is the most.")
            return page
        session = Session(self._arguments, page, self._downloads)
        self._sessions.add(session)
        try:
            await session.start(_number(request, "width", 80), _number(request, "height", 24))
            async for message in page:
                if message.type is WSMsgType.TEXT:
                    await session.receive(message.data)
        finally:
            # In a separate task, because aiohttp may cancel this one when the browser is gone.
            closing = asyncio.create_task(session.stop())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            closing.add_done_callback(lambda _: self._sessions.discard(session))
            await asyncio.shield(closing)
        return page

    async def _download(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        try:
            download = await self._downloads.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound(text="This download does not exist.\n") from None
        name = quote(download.file_name, safe="")
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
        await asyncio.gather(*(session.stop("The server has ended.") for session in self._sessions))


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] += f" ws://{request.host} wss://{request.host}"


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else default


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, *_, endpoint = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(endpoint[:2], family=family)
    except OSError as error:
        # Python adds the address in parentheses.
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise QosError(
            f"cannot listen on {address} port {port}: {reason}",
            hint="--port 0 takes any free port" if port else "",
        ) from None


def _stop_signal() -> asyncio.Future[int]:
    """Return a future for the number of the signal that ends the server."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Under nohup SIGHUP is ignored, and stays so.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            try:
                loop.add_signal_handler(number, stop, number)
            except NotImplementedError:
                break  # Windows interrupts the loop itself
    return stopped


class Authenticator:
    """Authenticates the requests to a server; `names` are further Host names, each `NAME` or `NAME:PORT`."""

    def __init__(self, address: str, port: int, names: Iterable[str] = ()) -> None:
        self._address = address.lower()
        self._port = port
        self._names = {name.lower() for name in names}
        self._token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()
        self.cookie = f"kubectl-qos-{port}"
        """The cookie's name has the port, because all ports of a host share cookies."""

    def url(self) -> str:
        """Return the page's URL with the token, which is valid as long as the server runs."""
        return self._url(self._token)

    def one_time_url(self) -> str:
        """Return a URL with a ticket that is valid once: others can see the browser's command line."""
        ticket = secrets.token_urlsafe(32)
        self._tickets.add(ticket)
        return self._url(ticket)

    def _url(self, token: str) -> str:
        ip = _ip(self._address)
        name = "localhost" if ip is not None and ip.is_unspecified else self._address
        return f"http://{f'[{name}]' if ':' in name else name}:{self._port}/?token={token}"

    def cookie_for(self, token: str) -> str | None:
        """Return the cookie's value for the token or an unused ticket; None for anything else."""
        ticket = next((ticket for ticket in self._tickets if _same(token, ticket)), None)
        if ticket is not None:
            self._tickets.discard(ticket)
        return self._token if ticket is not None or _same(token, self._token) else None

    def has_cookie(self, cookie: str | None) -> bool:
        """Return whether a cookie has the right value."""
        return cookie is not None and _same(cookie, self._token)

    def has_host(self, host: str) -> bool:
        """Return whether a Host header names this server.

        A loopback address may have any port, such as that of an SSH tunnel; DNS cannot redirect it.
        """
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return False
        name, port = match["name"].strip("[]"), int(match["port"] or 80)
        if self._names & {name, host.lower()}:
            return True
        ip = _ip(name)
        if name == "localhost" or (ip is not None and ip.is_loopback):
            return True
        own = _ip(self._address)
        if own is None:
            return name == self._address and port == self._port
        return ip is not None and (own.is_unspecified or ip == own) and port == self._port


def is_same_origin(origin: str | None, host: str) -> bool:
    """Return whether an Origin header names this host; browsers send one when they open a WebSocket."""
    scheme, _, authority = (origin or "").lower().partition("://")
    return scheme in {"http", "https"} and authority == host.lower()


def is_loopback(address: str) -> bool:
    """Return whether only programs on this machine reach this IP address."""
    ip = _ip(address)
    return ip is not None and ip.is_loopback


def _same(text: str, secret: str) -> bool:
    return secrets.compare_digest(text.encode("utf-8", "surrogateescape"), secret.encode())


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
