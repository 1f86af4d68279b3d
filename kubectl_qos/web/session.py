"""One open page and the process behind it."""

import asyncio
import json
import os
import shlex
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

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
