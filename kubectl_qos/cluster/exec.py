"""Read files in a running container: an exec through the API server, as a websocket.

Each container gets one exec of the command below, which only reads. The websocket begins with a GET,
so it needs permission to `get` pods/exec, and from 1.35 on to `create` it as well
(AuthorizePodWebsocketUpgradeCreatePermission). transport/client.py requests the switch; websocket-client,
which takes some 10 ms to import, reads and writes the frames, so this module is imported where it is used.

Sources: k8s.io/apimachinery/pkg/util/remotecommand/constants.go (the protocols and their channels),
k8s.io/client-go/tools/remotecommand/v4.go (the error channel). The meaning of the files is in
analysis/verification.py.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from websocket import ABNF, WebSocket, WebSocketException, WebSocketTimeoutException, frame_buffer

from kubectl_qos.cluster.http import read_api_error, status_decoder
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import api_path
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import (
    DeadlinePassed,
    connection_error,
    is_read_timeout,
    unreachable_error,
)

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

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


PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
SECONDS: Final = 15.0
"""The time limit of one exec without --request-timeout."""
MAX_BYTES: Final = 1 << 20
MAX_PROCESSES: Final = 200

_STDOUT, _ERROR = 1, 3
_HEADING: Final = "==> "

_V2_FILES: Final = (
    "cpu.weight cpu.max memory.max memory.high memory.min memory.low memory.swap.max memory.oom.group"
    " pids.max cpuset.cpus"
)
_V1_FILES: Final = (
    "cpu/cpu.shares cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes"
    " memory/memory.memsw.limit_in_bytes pids/pids.max cpuset/cpuset.cpus"
)
_MOUNT: Final = "/sys/fs/cgroup"

_LINE: Final = (
    'show() { [ -r "$1" ] && printf \'==> %s\\n\' "$1" &&'
    ' while IFS= read -r l || [ -n "$l" ]; do printf \'%s\\n\' "$l"; done <"$1"; }; '
    "printf '==> $$\\n%s\\n' $$; n=0; for p in /proc/self /proc/[0-9]*; do "
    f"n=$((n+1)); [ $n -gt {MAX_PROCESSES} ] && break; "
    "for f in cgroup oom_score_adj oom_score comm; do show $p/$f; done; done; "
    "c=; while IFS= read -r l; do case $l in 0::/*) c=${l#0::};; esac; done </proc/self/cgroup; "
    f'[ -r {_MOUNT}"$c"/cgroup.controllers ] && [ "$c" != / ] || c=; '
    f'while :; do for f in {_V2_FILES} memory.events; do show "{_MOUNT}$c/$f"; done; '
    f'for f in {_MOUNT}"$c"/hugetlb.*.max; do show "$f"; done; [ -n "$c" ] || break; c=${{c%/*}}; done; '
    f"for f in {_V1_FILES}; do show {_MOUNT}/$f; done; "
    f"for f in {_MOUNT}/hugetlb/hugetlb.*.limit_in_bytes; do show $f; done; exit 0"
)
SHELL: Final = ("sh", "-c", _LINE)
"""Built-ins of the shell alone: no further process starts, and nothing is written but standard output.

If the container sees the cgroups of the node (privileged, or without a cgroup namespace), the cgroups above
its own are read too.
"""


class KubeletUnreachable(ServerUnreachable):
    """The API server answered, but the kubelet or the container did not answer in time."""


def read_container(connection: Connection, namespace: str, pod: str, container: str) -> dict[str, str]:
    """Return the files by path; `$$` is the reader's pid. Raises KubeletUnreachable, QosError."""
    began = time.monotonic()
    deadline = connection.deadline() or began + SECONDS
    query = [("command", word) for word in SHELL] + [("container", container), ("stdout", "true")]
    headers = request_headers(PROTOCOLS)
    path = f"{api_path('Pod', namespace, pod)}/exec"
    try:
        response = connection.switch_protocols(path, query, headers, read_seconds=deadline - began)
        output, error = _converse(response, headers, deadline, connection.server)
    except ServerUnreachable as unreachable:
        if not is_read_timeout(unreachable):
            raise
        raise KubeletUnreachable(
            f"no answer within {deadline - began:.3g} s: the API server was reached, but not the node's"
            " kubelet, or the container has too little CPU to answer",
            hint="--request-timeout 90s waits longer; --local on the node needs no kubelet",
        ) from unreachable
    where = f"{SHELL[0]} in {namespace}/{pod} {container}"
    log.log(log.REQUESTS, f"{where}: {len(output)} characters on stdout, {error or 'success'}")
    files = _parse_sections(output)
    if not files:
        raise QosError(
            f"sh could not be run in it: {error or 'it printed nothing useful'}",
            hint=f"kubectl debug -n {namespace} {pod} --target {container} --image busybox -it looks in from"
            " a container next to it, and --local on the node reads it without any",
        )
    return files


def _parse_sections(output: str) -> dict[str, str]:
    sections: dict[str, list[str]] = {}
    section: list[str] | None = None
    for line in output.splitlines():
        if line.startswith(_HEADING):
            section = sections.setdefault(line.removeprefix(_HEADING), [])
        elif section is not None:
            section.append(line)
    return {name: "\n".join(lines) for name, lines in sections.items()} if "$$" in sections else {}


def _converse(
    response: BaseHTTPResponse, headers: Mapping[str, str], deadline: float, server: str
) -> tuple[str, str]:
    """Return what the command printed, and its error, empty for success."""
    try:
        if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
            if HTTPStatus.OK <= response.status < HTTPStatus.BAD_REQUEST:
                raise _no_websocket(f"it answered {response.status} in place of a websocket")
            raise read_api_error(response)
        problem = handshake_problem(headers, response.headers)
        if problem:
            raise _no_websocket(problem)
        # Take over the connection, which http.client leaves alone after a 101, and what it has buffered.
        inner: Any = response
        while not hasattr(inner, "fp"):
            inner = inner._fp  # noqa: SLF001 - urllib3 has no public way to it
        sock: Any = getattr(response.connection, "sock", None)
        socket = BoundedWebSocket(inner.fp.read1, sock, deadline=deadline, max_bytes=MAX_BYTES)
        output = bytearray()
        for message in socket.messages():
            channel, data = message[0] if message else 0, message[1:]
            if channel == _STDOUT:
                output += data
            elif channel == _ERROR and data:
                # An empty message only says that the channel is open.
                socket.send_close()
                return output.decode(errors="replace"), _error_message(data)
        raise ServerUnreachable("Unable to connect to the server: the exec ended without a status")
    except OSError as error:
        raise unreachable_error(error, server) from error
    finally:
        response.close()


def _no_websocket(why: str) -> ServerUnreachable:
    return ServerUnreachable(
        f"Unable to connect to the server: {why}",
        hint="a proxy between here and the API server may block websockets",
    )


def _error_message(data: bytes) -> str:
    try:
        status = status_decoder.decode(data)
    except msgspec.MsgspecError:
        return " ".join(data[:200].decode(errors="replace").split()) or "unknown"
    return "" if status.status == "Success" else status.message or status.reason or "unknown"
