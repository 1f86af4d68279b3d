"""Reads files in a running container: an exec through the API server, by websocket.

One exec a container, with one of the commands below and no other: they read, and write nothing. The API
server takes an exec as a websocket, which begins with a GET. It asks for the right to `get` pods/exec, from
1.35 on for `create` as well (AuthorizePodWebsocketUpgradeCreatePermission).

Sources: k8s.io/apimachinery/pkg/util/remotecommand/constants.go (the protocols and their channels),
k8s.io/client-go/tools/remotecommand/v4.go (what the error channel says). Not here: frames
(access/websocket.py), what was read means (qos/measured.py).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubectl_qos.cluster.api_errors import refusal
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import api_path
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from kubectl_qos.transport.websocket import BoundedWebSocket

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
SECONDS: Final = 15.0
"""So long one exec may take, if --request-timeout does not say less."""
MOST_BYTES: Final = 1 << 20
MOST_PROCESSES: Final = 200

_STDOUT, _STDERR, _ERROR = 1, 2, 3
_MARK: Final = "==> "
_LONGEST_REFUSAL: Final = 1 << 16

_V2_FILES: Final = (
    "cpu.weight",
    "cpu.max",
    "memory.max",
    "memory.high",
    "memory.min",
    "memory.low",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
    "cpuset.cpus",
)
_V1_FILES: Final = (
    "cpu/cpu.shares",
    "cpu/cpu.cfs_quota_us",
    "cpu/cpu.cfs_period_us",
    "memory/memory.limit_in_bytes",
    "memory/memory.memsw.limit_in_bytes",
    "pids/pids.max",
    "cpuset/cpuset.cpus",
)
_MOUNT: Final = "/sys/fs/cgroup"

_LINE: Final = (
    'show() { [ -r "$1" ] && printf \'==> %s\\n\' "$1" &&'
    ' while IFS= read -r l || [ -n "$l" ]; do printf \'%s\\n\' "$l"; done <"$1"; }; '
    "printf '==> $$\\n%s\\n' $$; n=0; for p in /proc/self /proc/[0-9]*; do "
    f"n=$((n+1)); [ $n -gt {MOST_PROCESSES} ] && break; "
    "for f in cgroup oom_score_adj comm; do show $p/$f; done; done; "
    "c=; while IFS= read -r l; do case $l in 0::/*) c=${l#0::};; esac; done </proc/self/cgroup; "
    f'[ -r {_MOUNT}"$c"/cgroup.controllers ] && [ "$c" != / ] || c=; '
    f'while :; do for f in {" ".join(_V2_FILES)}; do show "{_MOUNT}$c/$f"; done; '
    f'for f in {_MOUNT}"$c"/hugetlb.*.max; do show "$f"; done; [ -n "$c" ] || break; c=${{c%/*}}; done; '
    f"for f in {' '.join(_V1_FILES)}; do show {_MOUNT}/$f; done; "
    f"for f in {_MOUNT}/hugetlb/hugetlb.*.limit_in_bytes; do show $f; done; exit 0"
)
SHELL: Final = ("sh", "-c", _LINE)
"""Only what the shell has built in: it starts no further process, and writes to its standard output alone.

Where the container sees the cgroups of the node (privileged, or without a cgroup namespace), those above its
own are read too.
"""

_CAT_FILES: Final = (
    "/proc/1/oom_score_adj",
    "/proc/self/oom_score_adj",
    *(f"{_MOUNT}/{name}" for name in _V2_FILES),
    *(f"{_MOUNT}/{name}" for name in _V1_FILES),
    "/proc/1/cgroup",
    "/proc/self/cgroup",
)
CAT: Final = ("cat", *_CAT_FILES)
"""For images without a shell; each file but the last two is one line, stderr names those that are absent."""

READINGS: Final = (SHELL, CAT)
"""The commands that are run, one after the other until one gives something."""

_HIERARCHY: Final = re.compile(r"\d+:[^:]*:/")
"""A line of /proc/PID/cgroup."""
_ABSENT: Final = re.compile(r"(/(?:proc|sys)/[\w./]+)")


class UnreadableContainer(QosError):
    """Nothing in the container could read its files."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: what it said, and the server's own word if it did not end well."""

    out: str
    err: str
    trouble: str = ""


class _ExecStatus(msgspec.Struct):
    status: str = ""
    message: str = ""
    reason: str = ""


_status = msgspec.json.Decoder(_ExecStatus)


def read_container(connection: Connection, namespace: str, pod: str, container: str) -> dict[str, str]:
    """The content of what files it has, by their path; `$$` is the pid of the shell that read them.

    Raises:
        ApiError: the server refused, in kubectl's words.
        ServerUnreachable: it could not be asked, or broke off.
        Unreadable: the image has neither sh nor cat, or what they said is of no use.
    """
    why: list[str] = []
    for command, understood in ((SHELL, _sections), (CAT, _lines)):
        ran = _run(connection, namespace, pod, container, command)
        said = f"{len(ran.out)} characters on stdout, {len(ran.err)} on stderr, {ran.trouble or 'success'}"
        log.log(log.REQUESTS, f"{command[0]} in {namespace}/{pod} {container}: {said}")
        found = understood(ran)
        if found:
            return found
        why.append(ran.trouble or f"{command[0]} said nothing of use")
    raise UnreadableContainer(
        f"neither sh nor cat could be run in it: {why[0]}",
        hint=f"kubectl debug -n {namespace} {pod} --target {container} --image busybox -it looks in from"
        " a container beside it, and --local on the node reads it without any",
    )


def _sections(ran: Ran) -> dict[str, str]:
    """What stands below each mark."""
    found: dict[str, list[str]] = {}
    held: list[str] | None = None
    for line in ran.out.splitlines():
        if line.startswith(_MARK):
            held = found.setdefault(line.removeprefix(_MARK), [])
        elif held is not None:
            held.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()} if "$$" in found else {}


def _lines(ran: Ran) -> dict[str, str]:
    """Lines in the order of the files, without those that stderr names; none at all if they do not add up."""
    absent = set(_ABSENT.findall(ran.err))
    there = [name for name in _CAT_FILES if name not in absent]
    lines = ran.out.splitlines()
    plain, last = there[:-2], there[-2:]
    rest = lines[len(plain) :]
    fits = last == list(_CAT_FILES[-2:]) and rest and not len(rest) % 2
    if not fits or not all(map(_HIERARCHY.match, rest)):
        return {}
    half = len(rest) // 2
    found = dict(zip(plain, lines, strict=False))
    return found | {last[0]: "\n".join(rest[:half]), last[1]: "\n".join(rest[half:])}


def _run(connection: Connection, namespace: str, pod: str, container: str, command: tuple[str, ...]) -> Ran:
    """Run one of READINGS and take what it says until it ends."""
    if command not in READINGS:
        raise QosError(f"{command[0]} is not run: it is no command that only reads")
    from kubectl_qos.transport.websocket import handshake_problem, request_headers

    end = time.monotonic() + SECONDS
    deadline = min(connection.deadline() or end, end)
    query = [("command", word) for word in command]
    query += [("container", container), ("stdout", "true"), ("stderr", "true")]
    headers = request_headers(PROTOCOLS)
    path = f"{api_path('Pod', namespace, pod)}/exec"
    response = connection.switch_protocols(path, query, headers, read_seconds=SECONDS)
    try:
        if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
            raise _refused(response)
        trouble = handshake_problem(headers, response.headers)
        if trouble:
            raise ServerUnreachable(
                f"Unable to connect to the server: {trouble}",
                hint="a proxy between here and the API server may not pass websockets on",
            )
        return _taken(_websocket(response, deadline))
    except OSError as error:
        raise unreachable_error(error, connection.server) from error
    finally:
        response.close()


def _refused(response: BaseHTTPResponse) -> QosError:
    """A server that did not switch: its refusal, or what it said in place of one."""
    try:
        said = response.read(_LONGEST_REFUSAL, decode_content=True)
    except Exception:  # noqa: BLE001 - the status alone says enough
        said = b""
    if HTTPStatus.OK <= response.status < HTTPStatus.BAD_REQUEST:
        return ServerUnreachable(
            f"Unable to connect to the server: it answered {response.status} in place of a websocket",
            hint="a proxy between here and the API server may not pass websockets on",
        )
    return refusal(response.status, said, response.headers.get("Content-Type", ""))


def _websocket(response: BaseHTTPResponse, deadline: float) -> BoundedWebSocket:
    """The connection that the response came on, with what its reader holds already.

    After a 101 http.client leaves the connection alone; the response holds its buffered reader.
    """
    from kubectl_qos.transport.websocket import BoundedWebSocket

    inner: Any = response
    while not hasattr(inner, "fp"):
        inner = inner._fp  # noqa: SLF001 - urllib3 has no public way to it
    sock: Any = getattr(response.connection, "sock", None)
    return BoundedWebSocket(inner.fp.read1, sock, deadline=deadline, max_bytes=MOST_BYTES)


def _taken(found: BoundedWebSocket) -> Ran:
    """Everything until the status comes; what follows it is none of ours."""
    out, err = bytearray(), bytearray()
    for message in found.messages():
        channel, said = message[:1], message[1:]
        if channel == bytes((_STDOUT,)):
            out += said
        elif channel == bytes((_STDERR,)):
            err += said
        elif channel == bytes((_ERROR,)) and said:
            # Without a word it only says that the channel is open.
            found.send_close()
            return Ran(_text(out), _text(err), _trouble(said))
    raise ServerUnreachable("Unable to connect to the server: the exec ended without saying how")


def _text(said: bytearray) -> str:
    return said.decode(errors="replace")


def _trouble(said: bytes) -> str:
    """What the error channel says: metav1.Status; empty for a success."""
    try:
        status = _status.decode(said)
    except msgspec.MsgspecError:
        return " ".join(said[:200].decode(errors="replace").split()) or "unknown"
    return "" if status.status == "Success" else status.message or status.reason or "unknown"
