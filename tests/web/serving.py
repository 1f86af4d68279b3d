"""`kubectl qos web` in a process of its own, as a person starts it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from tests.end_to_end.command import TIMEOUT_SECONDS, command, environment, signals_arrive

HAS_PROC = Path(f"/proc/self/task/{os.getpid()}/children").exists()
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="no /proc tells who started whom")


@dataclass
class Served:
    """A server that runs.

    Attributes:
        url: what it printed, token included.
        process: the process.
        home: the folder it runs in.
    """

    url: str
    process: asyncio.subprocess.Process
    home: Path

    @property
    def base(self) -> str:
        return self.url.partition("?")[0]

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def cookie(self) -> dict[str, str]:
        """The header of a browser that has come in."""
        return {"Cookie": f"kubectl-qos-{self.port}={self.token}"}

    @asynccontextmanager
    async def visit(self, **headers: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open the WebSocket as the page does; headers given replace the page's own."""
        sent = {**self.cookie, "Origin": self.base.rstrip("/"), **headers}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{self.base}ws?width=120&height=40", headers=sent) as socket,
        ):
            yield socket

    def children(self) -> list[int]:
        """The processes it has started, zombies among them."""
        task = Path(f"/proc/{self.process.pid}/task")
        while True:
            with suppress(FileNotFoundError):  # A thread ended meanwhile, and another has its processes.
                texts = [(thread / "children").read_text() for thread in task.iterdir()]
                return [int(one) for text in texts for one in text.split()]

    async def stop(self, number: int = signal.SIGINT) -> int:
        """Send it a signal; the exit code."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), TIMEOUT_SECONDS)


@asynccontextmanager
async def served(
    home: Path, *arguments: str | Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Served]:
    """A server on a free port; it ends with the block."""
    with signals_arrive():
        process = await asyncio.create_subprocess_exec(
            *command("web", "--port=0", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=home,
            env=environment(home, variables),
        )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), TIMEOUT_SECONDS)).decode()
        assert line.startswith("Starting to serve on http://"), (await process.stderr.read()).decode()
        yield Served(line.split()[-1], process, home)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        said, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_SECONDS)
    assert said == b""
    assert b"Traceback" not in errors, errors.decode()


async def until_gone(*processes: int) -> None:
    """Wait until none of these processes is there."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while any(map(_is_there, processes)):  # noqa: ASYNC110 - they are not our children
            await asyncio.sleep(0.02)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
