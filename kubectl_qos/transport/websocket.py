"""Websocket messages on a connection that a server has switched, with limits on time and size.

client.py makes the connection, with TLS, proxy and credentials; websocket-client only reads and writes
frames. That library takes some 10 ms to import, so this module is imported inside functions. cluster/exec.py
reads the messages.
"""

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from websocket import ABNF, WebSocket, WebSocketException, WebSocketTimeoutException, frame_buffer

from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.transport.net_errors import DeadlinePassed, connection_error

_KEY_SUFFIX: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NORMAL_CLOSURE: Final = 1000
_MAX_CONTROL_BYTES: Final = 125


def request_headers(protocols: tuple[str, ...]) -> dict[str, str]:
    """Return the headers that request a switch, with a new key; `protocols` has the preferred one first."""
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }


def handshake_problem(sent: Mapping[str, str], received: Mapping[str, str]) -> str:
    """Return the problem with the server's headers of a switch, or ""."""
    key = f"{sent['Sec-WebSocket-Key']}{_KEY_SUFFIX}".encode()
    digest = hashlib.sha1(key, usedforsecurity=False).digest()
    if received.get("Upgrade", "").lower() != "websocket":
        return "it switched to something else than a websocket"
    if received.get("Sec-WebSocket-Accept", "").strip() != base64.b64encode(digest).decode():
        return "its Sec-WebSocket-Accept does not fit the key that was sent"
    protocols = sent["Sec-WebSocket-Protocol"]
    if received.get("Sec-WebSocket-Protocol", "").strip() not in protocols.split(", "):
        return f"it speaks none of {protocols}"
    return ""


class BoundedWebSocket(WebSocket):
    """A websocket that is read until `deadline`; `read1` reads bytes that came together with the headers."""

    def __init__(self, read1: Callable[[int], bytes], sock: Any, *, deadline: float, max_bytes: int) -> None:
        super().__init__(enable_multithread=False, skip_utf8_validation=True)
        self.sock = self._sock = sock
        self.frame_buffer = frame_buffer(self._read, skip_utf8_validation=True)
        self._read1 = read1
        self._deadline = deadline
        self._left = max_bytes

    def messages(self) -> Iterator[bytes]:
        """Yield each message until an orderly close. Raises ServerUnreachable, DeadlinePassed and OSError."""
        while True:
            try:
                opcode, payload = self.recv_data()
            except WebSocketTimeoutException:
                raise DeadlinePassed from None
            except WebSocketException as error:
                raise connection_error(f"websocket: {error}") from None
            if opcode != ABNF.OPCODE_CLOSE:
                yield payload
                continue
            # API servers end an exec with 1000, or without a code.
            code = int.from_bytes(payload[:2], "big") or _NORMAL_CLOSURE
            if code != _NORMAL_CLOSURE:
                reason = " ".join(payload[2:].decode(errors="replace").split())
                raise connection_error(f"websocket: close {code}{f' ({reason})' if reason else ''}")
            return

    def recv_frame(self) -> ABNF:
        """Read a frame, and refuse invalid ones that the library accepts. Raises WebSocketException."""
        frame = self.frame_buffer.recv_frame()
        if frame.mask_value:
            raise WebSocketException("a server must not mask its frames")
        if frame.opcode >= ABNF.OPCODE_CLOSE and not (frame.fin and len(frame.data) <= _MAX_CONTROL_BYTES):
            raise WebSocketException("a control frame is too long or in parts")
        return frame

    def send_close(self, status: int = _NORMAL_CLOSURE, reason: str | bytes = b"") -> None:
        """Send a close frame, without waiting for an answer; the server may be gone already."""
        with suppress(OSError, WebSocketException):
            super().send_close(status, reason)

    def _read(self, size: int) -> bytes:
        wait = self._deadline - time.monotonic()
        if wait <= 0:
            raise DeadlinePassed
        self._sock.settimeout(wait)
        try:
            part = self._read1(size)
        except TimeoutError:
            raise DeadlinePassed from None
        if not part:
            raise connection_error("the websocket broke off")
        self._left -= len(part)
        if self._left < 0:
            raise ServerUnreachable("the container's output exceeds the limit")
        return part
