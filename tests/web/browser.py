"""A headless Chromium, driven by its DevTools protocol."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

TIMEOUT_SECONDS: Final = 60
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PROGRAM: Final = next((found for found in map(shutil.which, _NAMES) if found), None)
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-3d-apis",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
# The page keeps its terminal to itself; DevTools finds it among all objects.
_IS_TERMINAL: Final = "function() { return this.find((one) => Object.hasOwn(one, 'fitAddon')).terminal }"
_SHOWS: Final = """function(text, milliseconds) {
  return new Promise((resolve) => {
    const look = () => {
      const buffer = this.buffer.active;
      const lines = Array.from({length: this.rows}, (_, row) => buffer.getLine(row).translateToString(true));
      if (lines.some((line) => line.includes(text))) resolve(lines.join("\\n"));
      return lines;
    };
    this.onWriteParsed(look);
    setTimeout(() => resolve(`${text} is not in:\\n${look().join("\\n")}`), milliseconds);
    look();
  });
}"""
_KEYS: Final = {"Escape": ("Escape", 27), "F5": ("F5", 116), "Enter": ("Enter", 13)}


class Page:
    """A page that is open.

    Attributes:
        requests: the addresses that it has asked for.
        complaints: the errors and warnings of its console.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = asyncio.Event()

    async def listen(self) -> None:
        """Take answers and events, to the end of the connection."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said)
            else:
                self._note(said["method"], said["params"])

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Network.webSocketCreated":
            self.requests.append(about["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(str(about["entry"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in {"error", "warning"}:
            self.complaints.append(str(about["args"]))
        elif event == "Page.loadEventFired":
            self._loaded.set()

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        said = await asyncio.wait_for(answer, TIMEOUT_SECONDS)
        assert "error" not in said, (method, said)
        result: dict[str, Any] = said["result"]
        return result

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = await self.do("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def load_by(self, expression: str) -> None:
        """Evaluate what loads another page, and wait for it: nothing can be evaluated in between."""
        self._loaded.clear()
        await self.evaluate(expression)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self._loaded.wait()

    async def terminal(self) -> str:
        """The id of the page's terminal, an object of xterm.js."""
        every = await self.do("Runtime.evaluate", expression="Object.prototype")
        found = await self.do("Runtime.queryObjects", prototypeObjectId=every["result"]["objectId"])
        done = await self.do(
            "Runtime.callFunctionOn", functionDeclaration=_IS_TERMINAL, objectId=found["objects"]["objectId"]
        )
        terminal: str = done["result"]["objectId"]
        return terminal

    async def shown(self, terminal: str, text: str) -> str:
        """What the terminal shows once this text is part of it."""
        done = await self.do(
            "Runtime.callFunctionOn",
            functionDeclaration=_SHOWS,
            arguments=[{"value": text}, {"value": TIMEOUT_SECONDS * 500}],
            objectId=terminal,
            awaitPromise=True,
            returnByValue=True,
        )
        lines: str = done["result"]["value"]
        assert not lines.startswith(f"{text} is not in:"), lines
        return lines

    async def until(self, expression: str) -> None:
        """Wait until an expression in the page holds."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await self.evaluate(expression):  # noqa: ASYNC110 - pages have no event for everything
                await asyncio.sleep(0.02)

    async def press(self, key: str, *, control: bool = False) -> None:
        """Press and release a key: a character or the name of another."""
        name, code = _KEYS.get(key) or (key, ord(key.upper()) if key.isalpha() else 0)
        event = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 2 if control else 0}
        is_typed = len(name) == 1 and not control
        await self.do(
            "Input.dispatchKeyEvent", type="keyDown", **event, **({"text": name} if is_typed else {})
        )
        await self.do("Input.dispatchKeyEvent", type="keyUp", **event)

    async def resize(self, width: int, height: int) -> None:
        """Give the window another size, in pixels."""
        await self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Callable[[str], Awaitable[Page]]]:
    """A browser with its profile in this folder; what it gives opens a page. It ends with the block."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *_FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )
    listening: list[asyncio.Task[None]] = []
    async with aiohttp.ClientSession() as session:
        try:
            port = await _port(folder / "DevToolsActivePort")

            async def opened(url: str) -> Page:
                async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                    address = (await answer.json())["webSocketDebuggerUrl"]
                page = Page(await session.ws_connect(address, max_msg_size=0))
                listening.append(asyncio.create_task(page.listen()))
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await page.do(f"{domain}.enable")
                await page.do("Page.navigate", url=url)
                return page

            yield opened
        finally:
            for task in listening:
                task.cancel()
            with suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait_for(process.wait(), TIMEOUT_SECONDS)


async def _port(path: Path) -> int:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            with suppress(FileNotFoundError, IndexError):
                return int((await asyncio.to_thread(path.read_text)).splitlines()[0])
            await asyncio.sleep(0.05)
