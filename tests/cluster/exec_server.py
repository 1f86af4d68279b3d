"""The server's side of an exec: a handshake, then frames on the channels of v4 and v5, in order or not."""

import base64
import hashlib
import json
import ssl
import struct
from collections.abc import Callable, Iterable, Sequence
from io import BufferedIOBase

from tests.cluster.https_server import Answer, Request

OUT, ERR, STATUS = 1, 2, 3
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SUCCESS = json.dumps({"metadata": {}, "status": "Success"}).encode()


def failure(message: str, reason: str = "InternalError") -> bytes:
    """What the error channel says of a command that did not end well."""
    return json.dumps({"status": "Failure", "message": message, "reason": reason}).encode()


def exit_code(code: int) -> bytes:
    """What it says of an exit code other than 0."""
    return failure(f"command terminated with non-zero exit code: exit status {code}", "NonZeroExitCode")


def frame(payload: bytes, code: int = 2, *, last: bool = True, size: int | None = None) -> bytes:
    """One frame as a server sends it; with `size` it claims another one."""
    length = len(payload) if size is None else size
    if length < 126:
        head = bytes((length,))
    elif length < 1 << 16:
        head = b"\x7e" + struct.pack(">H", length)
    else:
        head = b"\x7f" + struct.pack(">Q", length)
    return bytes((code | (0x80 if last else 0),)) + head + payload


def said(channel: int, payload: bytes) -> bytes:
    return frame(bytes((channel,)) + payload)


def close(code: int = 1000, why: bytes = b"") -> bytes:
    return frame(struct.pack(">H", code) + why, 8)


def ended(out: bytes = b"", err: bytes = b"", status: bytes = SUCCESS) -> list[bytes]:
    """The frames of a command that ran."""
    return [said(OUT, out), said(ERR, err), said(STATUS, status), close()]


def received(stream: BufferedIOBase) -> tuple[int, bytes]:
    """A frame of the client, unmasked; a client masks all that it sends."""
    first, second = stream.read(2)
    assert second & 0x80
    mask = stream.read(4)
    payload = stream.read(second & 0x7F)
    return first & 0x0F, bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


def switched(
    request: Request,
    frames: Iterable[bytes] | Callable[[BufferedIOBase, ssl.SSLSocket], object],
    *,
    speaks: Sequence[str] = ("v5.channel.k8s.io", "v4.channel.k8s.io"),
    accept: str | None = None,
) -> Answer:
    """A switch to the best protocol that both speak, and what is said then."""
    offered = [one.strip() for one in request.headers["sec-websocket-protocol"].split(",")]
    chosen = next((one for one in speaks if one in offered), "")
    key = request.headers["sec-websocket-key"].encode()
    digest = base64.b64encode(hashlib.sha1(key + MAGIC, usedforsecurity=False).digest()).decode()

    def talk(stream: BufferedIOBase, connection: ssl.SSLSocket) -> None:
        if callable(frames):
            frames(stream, connection)
            return
        last = b""
        for last in frames:
            connection.sendall(last)
        if last[:1] == b"\x88":
            # What the client sent must not be thrown away: that resets the connection.
            while stream.read1(1024):
                pass

    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept or digest}
    return Answer(101, headers=headers | {"Sec-WebSocket-Protocol": chosen}, talk=talk)
