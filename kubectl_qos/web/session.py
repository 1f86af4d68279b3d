"""One page that is open and the process behind it."""

from __future__ import annotations

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

# -P: a yaml.py in the current folder is not ours.
COMMAND: Final = (sys.executable, "-P", "-m", "kubectl_qos.web.subprocess")
GRACE_SECONDS: Final = 3.0
"""How long a process may take to end before it is made to."""
_BEGIN: Final = b"__GANGLION__\n"
"""What the web driver of Textual writes before its packets."""
_KEPT_BYTES: Final = 4096
"""How much of the end of stderr is kept, for an error's sentence."""
_MOST_COLUMNS, _MOST_LINES = 1000, 500


class Session(AppService):
    """Passes on what a page and its process say to each other, until either ends.

    textual-serve would run its command by a shell and write errors to stdout; this runs the words as they
    are, shows errors in the page, and sees to it that the process is gone in the end.

    Args:
        words: the arguments of the UI.
        socket: the connection to the page.
        downloads: what the process has to deliver is announced there.
    """

    def __init__(
        self, words: Sequence[str], socket: web.WebSocketResponse, downloads: DownloadManager
    ) -> None:
        self._words = [*COMMAND, *words]
        self._socket = socket
        self._process_behind: Process | None = None
        self._relay: asyncio.Task[None] | None = None
        self._why = ""
        super().__init__(
            shlex.join(self._words),
            write_bytes=self._send_bytes,
            write_str=self._send_text,
            close=self._wait_for_the_end,
            download_manager=downloads,
        )

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Where the process reads."""
        assert self._process_behind is not None
        assert self._process_behind.stdin is not None
        return self._process_behind.stdin

    async def start(self, width: int, height: int) -> None:
        """Start the process, for a terminal of so many columns and lines."""
        width, height = _within(width, _MOST_COLUMNS), _within(height, _MOST_LINES)
        variables = {
            **os.environ,
            "TEXTUAL_DRIVER": "kubectl_qos.web.subprocess:PageDriver",
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "COLUMNS": str(width),
            "ROWS": str(height),
        }
        self._process_behind = await asyncio.create_subprocess_exec(
            *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=variables
        )
        self._relay = asyncio.create_task(self.run())

    async def take(self, message: str) -> None:
        """What the page says: keys, its size, whether it has the focus. What is none of it is ignored."""
        try:
            said = json.loads(message)
        except ValueError:
            return
        match said:
            case ["stdin", str(keys)]:
                await self.send_bytes(keys.encode("utf-8", "replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                await self.set_terminal_size(_within(width, _MOST_COLUMNS), _within(height, _MOST_LINES))
            case ["ping", str(when)]:
                await self._send_text(json.dumps(["pong", when]))
            case ["focus"]:
                await self.focus()
            case ["blur"]:
                await self.blur()

    async def run(self) -> None:
        """Pass on what the process writes, to its end; then say in the page why it ended and close that."""
        process = self._process_behind
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_end_of(process.stderr))
        try:
            await self._pass_on(process.stdout)
        except asyncio.IncompleteReadError:
            code = await process.wait()
            said = (await errors).decode("utf-8", "replace").strip()
            await say_ended(self._socket, self._why or (said if code else ""))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with what the process writes
            await say_ended(self._socket, f"error: unexpected {type(error).__name__}: {error}")

    async def stop(self, why: str = "") -> None:
        """End the process, kindly at first, and say why in the page; it is gone when this returns."""
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
        # A page that takes nothing any more would hold up what was still to be said to it.
        await asyncio.wait({self._relay}, timeout=GRACE_SECONDS)
        self._relay.cancel()

    async def _pass_on(self, stdout: asyncio.StreamReader) -> None:
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
        """What the process wants of the page; of links only those of the web are opened."""
        message = json.loads(data)
        if message["type"] != "open_url" or message["url"].startswith(("http://", "https://")):
            await super().on_meta(data)

    async def _send_bytes(self, data: bytes) -> None:
        # The process goes on writing for a moment after its page was closed.
        with suppress(ConnectionError):
            await self._socket.send_bytes(data)

    async def _send_text(self, text: str) -> None:
        with suppress(ConnectionError):
            await self._socket.send_str(text)

    async def _wait_for_the_end(self) -> None:
        """The page is closed by `run`, which then knows how the process ended."""


async def say_ended(socket: web.WebSocketResponse, why: str) -> None:
    """Close the connection to a page that shows why; without a reason the UI was left."""
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
