"""An exec into a container: the handshake, frames in every shape, both protocols, refusals, odd servers."""

import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.verification import observed_from_sections
from kubectl_qos.cluster import exec as exec_module
from kubectl_qos.cluster.exec import PROTOCOLS, SHELL, BoundedWebSocket, KubeletUnreachable, read_container
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.cluster.conftest import ConnectTo
from tests.cluster.exec_server import (
    ERR,
    OUT,
    STATUS,
    SUCCESS,
    close,
    ended,
    exit_code,
    failure,
    frame,
    received,
    said,
    switched,
)
from tests.cluster.https_server import Answer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.transport.proxies import ConnectProxy, SocksProxy, through

TEXT = b"==> $$\n7\n==> /proc/self/cgroup\n0::/\n==> /sys/fs/cgroup/memory.max\n123453440\n"
READ = {"$$": "7", "/proc/self/cgroup": "0::/", "/sys/fs/cgroup/memory.max": "123453440"}
NO_SH = failure('exec: "sh": executable file not found in $PATH: unknown')

Execute = Callable[[Any], dict[str, str]]


@pytest.fixture
def execute(connect_to: ConnectTo) -> Execute:
    """Read a container behind a server that says these frames, or answers by this function."""

    def read(answer: Any) -> dict[str, str]:
        by = answer if callable(answer) else lambda request: switched(request, answer)
        return read_container(connect_to(by), "shop", "web-0", "app")

    return read


def test_the_request(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(lambda request: switched(request, ended(TEXT)))
    connection = connect_to(server, user={"token": "admin"})
    assert read_container(connection, "shop", "web-0", "app") == READ
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/api/v1/namespaces/shop/pods/web-0/exec")
    assert request.token == "admin"
    assert (request.query["container"], request.query["stdout"]) == ("app", "true")
    assert {"stderr", "stdin", "tty"}.isdisjoint(request.query)
    assert request.headers["sec-websocket-version"] == "13"
    assert request.headers["sec-websocket-protocol"] == ", ".join(PROTOCOLS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_protocols(execute: Execute, protocol: str) -> None:
    assert execute(lambda request: switched(request, ended(TEXT), speaks=[protocol])) == READ


@pytest.mark.parametrize("kind", ["http", "socks"])
def test_it_goes_through_the_same_proxy(serve: Serve, connect_to: ConnectTo, kind: str) -> None:
    server = serve(lambda request: switched(request, ended(TEXT)))
    proxy = ConnectProxy() if kind == "http" else SocksProxy()
    url = proxy.url if isinstance(proxy, ConnectProxy) else f"socks5://{proxy.address}"
    connection = connect_to(
        server, cluster=through(url, server) | {"server": server.url}, user={"token": "t"}
    )
    if kind == "socks":
        connection = connect_to(server, cluster=through(url, server), user={"token": "t"})
    assert read_container(connection, "shop", "web-0", "app") == READ
    assert len(proxy.requested) == 1
    assert server.requests[0].token == "t"


def test_credentials_are_renewed_as_for_a_list(serve: Serve, connect_to: ConnectTo) -> None:
    """A 401 comes before any switch."""
    server = serve(lambda _: status(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(ApiError, match="You must be logged in"):
        read_container(connect_to(server, user={"token": "old"}), "shop", "web-0", "app")
    assert {request.token for request in server.requests} == {"old"}


def test_a_name_is_one_segment_of_the_path(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(lambda request: switched(request, ended(TEXT)))
    read_container(connect_to(server), "shop", "../secrets/x", "app&command=rm")
    (request,) = server.requests
    assert request.path == "/api/v1/namespaces/shop/pods/..%2Fsecrets%2Fx/exec"
    assert request.query["container"] == "app&command=rm"
    assert request.query["command"] == SHELL[-1]


def test_a_message_in_many_frames_with_pings_between(execute: Execute) -> None:
    message = bytes((OUT,)) + TEXT
    cut = [message[place : place + 9] for place in range(0, len(message), 9)]
    frames = [
        frame(part, 0 if number else 2, last=number == len(cut) - 1) + frame(b"are you there", 9)
        for number, part in enumerate(cut)
    ]
    assert execute([*frames, said(STATUS, SUCCESS), close()]) == READ


def test_output_in_many_messages_and_all_at_once(execute: Execute) -> None:
    assert execute([said(OUT, bytes((byte,))) for byte in TEXT] + ended()) == READ
    assert execute([b"".join(ended(TEXT))]) == READ


def test_empty_messages_come_first(execute: Execute) -> None:
    """API servers open each channel with an empty message."""
    assert execute([said(OUT, b""), said(ERR, b""), said(STATUS, b""), *ended(TEXT)]) == READ


def test_a_ping_is_answered_with_its_own_words(execute: Execute) -> None:
    heard: list[tuple[int, bytes]] = []
    done = threading.Event()

    def talk(stream: BufferedIOBase, connection: ssl.SSLSocket) -> None:
        connection.sendall(frame(b"7x", 9))
        heard.append(received(stream))
        connection.sendall(b"".join(ended(TEXT)[:-1]))
        heard.append(received(stream))
        done.set()

    assert execute(lambda request: switched(request, talk)) == READ
    assert done.wait(120)
    assert heard == [(10, b"7x"), (8, (1000).to_bytes(2, "big"))]


@pytest.mark.parametrize("size", [125, 126, 65535, 65536, 300_000])
def test_sizes_at_which_the_header_grows(execute: Execute, size: int) -> None:
    text = TEXT + b"==> /x\n" + b"y" * (size - len(TEXT) - 8)
    assert len(text) == size - 1
    assert len(execute(ended(text))["/x"]) == size - len(TEXT) - 8


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (status(403, "Forbidden", 'pods "web-0" is forbidden'), ApiError, r"\(Forbidden\): pods"),
        (status(404, "NotFound", 'pods "web-0" not found'), ApiError, r"\(NotFound\): pods"),
        (status(400, "BadRequest", "container app is not valid"), ApiError, "container app is not valid"),
        (status(500, "InternalError", "container not found"), ApiError, "container not found"),
        (Answer(403, b"<html>", "text/html"), ApiError, "Forbidden"),
        (Answer(200, b"hello"), ServerUnreachable, "it answered 200 in place of a websocket"),
        (Answer(hangs_up=True), ServerUnreachable, "EOF"),
        (Answer(101, headers={"Upgrade": "tcp"}), ServerUnreachable, "something else than a websocket"),
    ],
    ids=["403", "404", "400", "500", "html", "200", "nothing", "no websocket"],
)
def test_a_server_that_does_not_switch(
    serve: Serve, connect_to: ConnectTo, answer: Answer, kind: type[QosError], message: str
) -> None:
    server = serve(lambda _: answer)
    with pytest.raises(kind, match=message):
        read_container(connect_to(server), "shop", "web-0", "app")
    assert len(server.requests) == 1


def test_a_key_that_was_not_ours_and_a_protocol_that_nobody_speaks(execute: Execute) -> None:
    with pytest.raises(ServerUnreachable, match="Sec-WebSocket-Accept"):
        execute(lambda request: switched(request, ended(TEXT), accept="bm8="))
    with pytest.raises(ServerUnreachable, match="speaks none of v5"):
        execute(lambda request: switched(request, ended(TEXT), speaks=["v9.channel.k8s.io"]))


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([said(OUT, TEXT)], "broke off"),
        ([said(OUT, TEXT), close()], "without a status"),
        ([said(OUT, TEXT), close(1011, b"kubelet\x1b is\ngone")], "close 1011"),
        ([frame(b"\x01half", last=False)], "broke off"),
        ([frame(b"\x01half", last=False), *ended(TEXT)], "websocket: Illegal frame"),
        ([frame(b"\x01half", 0), *ended(TEXT)], "websocket: Illegal frame"),
        ([frame(b"", 3), *ended(TEXT)], "websocket: Invalid opcode 3"),
        ([b"\xc2\x00", *ended(TEXT)], "websocket: rsv is not implemented"),
        ([b"\x82\x80\0\0\0\0", *ended(TEXT)], "a server must not mask"),
        ([frame(b"x", 9, last=False), *ended(TEXT)], "websocket: Invalid ping frame"),
        ([frame(b"x", 10, last=False), *ended(TEXT)], "a control frame is too long or in parts"),
        ([frame(b"x" * 126, 9), *ended(TEXT)], "a control frame is too long or in parts"),
        ([frame(b"", size=1 << 40)], "broke off"),
        ([frame(b"", size=1 << 40), *[b"x" * 70_000] * 20], "output exceeds the limit"),
        ([said(OUT, b"x" * 70_000)] * 20, "output exceeds the limit"),
    ],
)
def test_servers_that_break_the_rules(execute: Execute, frames: list[bytes], message: str) -> None:
    with pytest.raises(ServerUnreachable, match=message):
        execute(frames)


def test_a_server_that_hangs_is_left(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_module, "SECONDS", 1.0)
    done = threading.Event()
    started = time.monotonic()
    with pytest.raises(KubeletUnreachable, match=r"no answer within 1 s: the API server was reached"):
        execute(lambda request: switched(request, lambda *_: done.wait(60)))
    assert time.monotonic() - started < 30
    done.set()


def test_a_server_that_trickles_is_left(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_module, "SECONDS", 0.5)

    def talk(_: BufferedIOBase, connection: ssl.SSLSocket) -> None:
        for byte in said(OUT, b"x" * 1000):
            connection.sendall(bytes((byte,)))
            time.sleep(0.05)

    started = time.monotonic()
    with pytest.raises(KubeletUnreachable, match="no answer within"):
        execute(lambda request: switched(request, talk))
    assert time.monotonic() - started < 30


def test_the_request_timeout_counts(serve: Serve, tmp_path: Path) -> None:
    done = threading.Event()
    server = serve(lambda request: switched(request, lambda *_: done.wait(60)))
    config = write(tmp_path / "kubeconfig", kubeconfig(server))
    connection = connect(ConnectionOptions(kubeconfig=str(config), request_timeout="1500ms"))
    started = time.monotonic()
    with pytest.raises(KubeletUnreachable, match=r"no answer within 1\.5 s"):
        read_container(connection, "shop", "web-0", "app")
    assert time.monotonic() - started < 30
    done.set()


def test_a_longer_request_timeout_counts_too(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with little CPU takes longer than the default."""
    monkeypatch.setattr(exec_module, "SECONDS", 0.05)
    server = serve(lambda request: replace(switched(request, ended(TEXT)), delay_seconds=0.2))
    config = write(tmp_path / "kubeconfig", kubeconfig(server))
    connection = connect(ConnectionOptions(kubeconfig=str(config), request_timeout="60s"))
    assert read_container(connection, "shop", "web-0", "app") == READ


def test_an_api_server_that_waits_for_a_kubelet_was_reached(
    serve: Serve, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends no headers before the kubelet has answered it."""
    monkeypatch.setattr(exec_module, "SECONDS", 1.0)
    server = serve(lambda request: replace(switched(request, ended(TEXT)), delay_seconds=20))
    with pytest.raises(KubeletUnreachable) as raised:
        read_container(connect_to(server), "shop", "web-0", "app")
    assert "Unable to connect to the server" not in str(raised.value)
    assert "--request-timeout" in raised.value.hint


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (ended(status=NO_SH), 'exec: "sh": executable file not found'),
        (ended(os.urandom(5000), os.urandom(5000)), "it printed nothing useful"),
        (ended(), "it printed nothing useful"),
    ],
    ids=["no shell", "garbage", "nothing"],
)
def test_without_an_answer_it_is_said_what_would_help(
    execute: Execute, frames: list[bytes], why: str
) -> None:
    with pytest.raises(QosError, match=f"sh could not be run in it: {why}") as raised:
        execute(frames)
    assert "kubectl debug -n shop web-0" in raised.value.hint
    assert "--local" in raised.value.hint


def test_an_exit_code_does_not_take_away_what_was_said(execute: Execute) -> None:
    assert execute(ended(TEXT, b"sh: trouble", exit_code(3))) == READ


def test_a_status_that_is_none_is_no_success(execute: Execute) -> None:
    with pytest.raises(QosError, match="no json here"):
        execute(ended(b"", b"", b"no json here"))


@given(st.binary(max_size=400), st.integers(1, 40))
def test_any_bytes_end_in_an_error_or_in_messages(garbage: bytes, step: int) -> None:
    left = [garbage[place : place + step] for place in range(0, len(garbage), step)]

    def read1(size: int) -> bytes:
        if not left:
            return b""
        part, left[0] = left[0][:size], left[0][size:]
        if not left[0]:
            left.pop(0)
        return part

    class Sock:
        def settimeout(self, value: float | None, /) -> None:
            assert value is not None

        def gettimeout(self) -> float:
            return 1.0

        def send(self, data: bytes, /) -> int:
            assert data
            return len(data)

    found = BoundedWebSocket(read1, Sock(), deadline=time.monotonic() + 60, max_bytes=1 << 20)
    try:
        total = sum(map(len, found.messages()))
    except ServerUnreachable:
        return
    assert total <= len(garbage)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_line_does_what_it_says_in_a_real_shell(shell: str) -> None:
    done = subprocess.run([shell, *SHELL[1:]], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0
    found = exec_module._parse_sections(done.stdout)
    own = Path("/proc/self/oom_score_adj").read_text().strip()
    assert found["/proc/self/oom_score_adj"] == own
    assert found["/proc/self/comm"] == shell
    container, _ = observed_from_sections(found)
    assert container.runtime_adj == int(own)
    reader = int(found["$$"])
    assert reader not in {process.pid for process in container.processes}


def test_the_line_starts_nothing_and_writes_nothing() -> None:
    line = SHELL[2]
    assert ">" not in line.replace("==>", "")
    for word in ("$(", "`", " | ", "& ", "exec ", "eval "):
        assert word not in line.replace("&& ", "").replace("$((", "")
