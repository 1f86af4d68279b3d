"""The websocket side of a connection that a server has switched over: frames, and how they end.

RFC 6455, as much of it as reading what a server says needs: whole messages of one or more frames, pings,
the closing handshake. Time and bytes are bounded. Not here: how a server is asked to switch (connection.py),
what messages mean (cluster/exec.py).
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.transport.net_errors import DeadlinePassed

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MOST_OF_CONTROL: Final = 125
_NORMAL: Final = 1000
_MOST_CONTROL_FRAMES: Final = 10_000
"""A server that only pings would otherwise be listened to until the deadline."""

_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


class Wire(Protocol):
    """The buffered reader of a response: what came with the headers is in it."""

    def read1(self, size: int, /) -> bytes:
        """What is there, at most `size` bytes, waited for once; empty at the end."""


class Socket(Protocol):
    """Where to write, and how long to wait."""

    def settimeout(self, value: float | None, /) -> None:
        """The most that one wait may take."""

    def sendall(self, data: bytes, /) -> None:
        """Write all of it."""


def new_key() -> str:
    """A Sec-WebSocket-Key."""
    return base64.b64encode(os.urandom(16)).decode()


def request_headers(key: str, protocols: tuple[str, ...]) -> dict[str, str]:
    """The headers that ask for a switch, the most wanted protocol first."""
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }


def handshake_problem(headers: Mapping[str, str], key: str, protocols: tuple[str, ...]) -> str:
    """What is wrong with the headers of a switch, empty if nothing."""
    expected = base64.b64encode(hashlib.sha1(key.encode() + _MAGIC, usedforsecurity=False).digest()).decode()
    if headers.get("Upgrade", "").lower() != "websocket":
        return "it switched to something else than a websocket"
    if headers.get("Sec-WebSocket-Accept", "").strip() != expected:
        return "its Sec-WebSocket-Accept does not fit what was asked"
    if headers.get("Sec-WebSocket-Protocol", "").strip() not in protocols:
        return f"it speaks none of {', '.join(protocols)}"
    return ""


class WebSocket:
    """One websocket, read to its end. `most_bytes` bounds all that is read, `deadline` when that is over.

    The deadline is on the clock of `time.monotonic`.
    """

    def __init__(self, wire: Wire, sock: Socket, protocol: str, *, deadline: float, most_bytes: int) -> None:
        self.protocol = protocol
        self._wire = wire
        self._sock = sock
        self._deadline = deadline
        self._left = most_bytes

    def messages(self) -> Iterator[bytes]:
        """Each message, until the server closes in order.

        Raises:
            DeadlinePassed: it is late.
            ServerUnreachable: it broke off, broke the rules, or said too much.
            OSError: the connection failed.
        """
        parts: list[bytes] = []
        is_open = False
        controls = 0
        while True:
            is_last, code, payload = self._frame()
            if code in {_CLOSE, _PING, _PONG}:
                controls += 1
                if not is_last or len(payload) > _MOST_OF_CONTROL or controls > _MOST_CONTROL_FRAMES:
                    raise _broken("a control frame that is none")
                if code == _CLOSE:
                    self._answer(_CLOSE, payload[:2])
                    self._refuse_odd_end(payload)
                    return
                if code == _PING:
                    self._answer(_PONG, payload)
                continue
            if code not in {_TEXT, _BINARY, _CONTINUATION} or is_open is not (code == _CONTINUATION):
                raise _broken("frames out of order")
            parts.append(payload)
            is_open = not is_last
            if is_last:
                yield b"".join(parts)
                parts = []

    def close(self) -> None:
        """Say that we are done; nobody waits for the answer."""
        self._answer(_CLOSE, struct.pack(">H", _NORMAL))

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._read(2)
        if first & 0x70 or second & 0x80:
            raise _broken("extensions or a mask that nobody asked for")
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._read(8))
        return bool(first & 0x80), first & 0x0F, self._read(size)

    def _read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        self._left -= size
        if self._left < 0:
            raise ServerUnreachable("the container said more than it was asked for: the rest is not read")
        parts: list[bytes] = []
        missing = size
        while missing:
            wait = self._deadline - time.monotonic()
            if wait <= 0:
                raise DeadlinePassed
            self._sock.settimeout(wait)
            try:
                part = self._wire.read1(min(missing, 1 << 16))
            except TimeoutError:
                raise DeadlinePassed from None
            if not part:
                raise ServerUnreachable("Unable to connect to the server: the websocket broke off")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _answer(self, code: int, payload: bytes) -> None:
        """A control frame of ours; a client masks what it sends."""
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
        self._sock.settimeout(max(self._deadline - time.monotonic(), 0.001))
        try:
            self._sock.sendall(bytes((0x80 | code, 0x80 | len(payload))) + mask + masked)
        except OSError:
            if code != _CLOSE:
                raise

    @staticmethod
    def _refuse_odd_end(payload: bytes) -> None:
        """API servers end an exec with 1000, or without a code; anything else is trouble."""
        code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else _NORMAL
        if code != _NORMAL:
            why = " ".join(payload[2:].decode(errors="replace").split())
            raise ServerUnreachable(
                f"Unable to connect to the server: websocket: close {code}{f' ({why})' if why else ''}"
            )


def _broken(what: str) -> ServerUnreachable:
    return ServerUnreachable(f"Unable to connect to the server: websocket: {what}")
