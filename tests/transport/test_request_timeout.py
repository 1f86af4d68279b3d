"""--request-timeout: kubectl's syntax, and requests that end with it however a server dawdles."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError

from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import ConnectionOptions, net_errors
from kubectl_qos.transport import client as connection_module
from kubectl_qos.transport.client import Connection, connect
from kubectl_qos.transport.net_errors import DeadlinePassed, parse_timeout, unreachable_error
from tests.cluster.https_server import Answer
from tests.cluster.serving import Serve
from tests.transport.proxies import listening

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TIMEOUT = 1.0


@contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A plain HTTP server that answers a request by this function; its URL."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        answer(connection)

    with listening(handle) as port:
        yield f"http://127.0.0.1:{port}"


PARTS = 100


def trickle(head: bytes, part: bytes, sent: list[bytes] | None = None) -> Callable[[socket.socket], None]:
    """Send small parts without a long pause, too many to be done before the deadline."""

    def answer(found: socket.socket) -> None:
        found.sendall(head)
        for _ in range(PARTS):
            found.sendall(part)
            if sent is not None:
                sent.append(part)
            time.sleep(0.05)

    return answer


def limited(url: str) -> Connection:
    return connect(ConnectionOptions(server=url, request_timeout=f"{TIMEOUT}s"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((text, None) for text in (None, "", "0", "0s", "-5s")),
        ("30", 30.0),
        ("+5", 5.0),
        ("1s", 1.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("250ms", 0.25),
        ("10us", 1e-5),
        ("10µs", 1e-5),
    ],
)
def test_durations(text: str | None, seconds: float | None) -> None:
    assert parse_timeout(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("text", ["x", "-1", "1d", "1 s", "s", "1.5", "1m30", ".s", "1s1", "\u0661s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(
        QosError, match=r"^Invalid timeout value\. Timeout must be a single integer in seconds"
    ):
        parse_timeout(text)


def test_a_server_that_is_silent() -> None:
    with served(lambda _: time.sleep(20)) as url, pytest.raises(ServerUnreachable) as caught:
        limited(url).request("GET", "/")
    assert str(caught.value) == (
        "Unable to connect to the server: net/http: request canceled"
        " (Client.Timeout exceeded while awaiting headers)"
    )


@pytest.mark.parametrize(
    ("head", "part"),
    [(HEAD, b"x"), (CHUNKED, b"1\r\nx\r\n"), (HEAD, b"")],
    ids=["length", "chunked", "silent"],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda response: response.read(decode_content=False),
        lambda response: response.read(100, decode_content=False),
    ],
    ids=["read", "read a part"],
)
def test_a_body_that_does_not_end(head: bytes, part: bytes, read: Callable[[Any], Any]) -> None:
    sent: list[bytes] = []
    with served(trickle(head, part, sent)) as url:
        response = limited(url).request("GET", "/")
        with pytest.raises(DeadlinePassed):
            read(response)
        assert len(sent) < PARTS


class LateAndSilent:
    """A response of which a byte comes at 0.8 s, and then nothing; `timeouts` are those of its socket."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timeouts: list[float] = []
        self.connection = SimpleNamespace(sock=SimpleNamespace(settimeout=self.timeouts.append))
        self.closed = False

    def read1(self, _amount: int | None, *, decode_content: bool | None) -> bytes:
        del decode_content
        if not self.now:
            self.now = 0.8
            return b"x"
        self.now += self.timeouts[-1]
        raise ReadTimeoutError(HTTPConnectionPool("h"), "/", "timed out")

    def close(self) -> None:
        self.closed = True


def test_silence_after_a_while_does_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    late: Any = LateAndSilent()
    monkeypatch.setattr(net_errors, "time", SimpleNamespace(monotonic=lambda: late.now))
    with pytest.raises(DeadlinePassed):
        net_errors.BoundedResponse(late, deadline=1.0).read()
    assert late.timeouts == pytest.approx([1.0, 0.2])
    assert late.closed


def test_a_connection_with_an_unfinished_body_is_not_used_again() -> None:
    def unfinished(found: socket.socket) -> None:
        found.sendall(HEAD + b"x")
        time.sleep(20)

    with served(unfinished) as url:
        connection = limited(url)
        for _ in range(2):
            response = connection.request("GET", "/")
            assert response.read1(1) == b"x"
            time.sleep(TIMEOUT)
            with pytest.raises(DeadlinePassed):
                response.read()
            response.release_conn()


def test_a_deadline_that_has_passed_reads_as_in_kubectl() -> None:
    assert str(unreachable_error(DeadlinePassed(), "h")) == (
        "Unable to connect to the server: net/http: request canceled"
        " (Client.Timeout or context cancellation while reading body)"
    )


def test_a_body_in_time_is_whole(serve: Serve) -> None:
    body = bytes(range(256)) * 4096
    url = serve(lambda _: Answer(body=body)).url
    connection = connect(
        ConnectionOptions(server=url, insecure_skip_tls_verify=True, request_timeout="20s", token="t")
    )
    whole = connection.request("GET", "/")
    assert whole.read(decode_content=True) == body
    parts = connection.request("GET", "/")
    assert parts.read(1000, decode_content=True) == body[:1000]
    assert parts.read(decode_content=True) == body[1000:]
    assert (whole.status, whole.headers["Content-Type"]) == (200, "application/json")


def test_connections_are_used_again(serve: Serve) -> None:
    server = serve(lambda _: Answer(body=b"x" * 5000))
    options = ConnectionOptions(server=server.url, insecure_skip_tls_verify=True, request_timeout="20s")
    connection = connect(options)
    for _ in range(3):
        response = connection.request("GET", "/")
        response.read()
        response.release_conn()
    assert server.connections == 1


def test_a_watch_goes_on_after_the_timeout() -> None:
    with served(trickle(CHUNKED, b"1\r\nx\r\n")) as url:
        response = limited(url).request("GET", "/", is_watch=True, read_seconds=5)
        for _ in range(PARTS // 5):
            assert response.read1(100) == b"x"
        response.close()


def test_a_watch_may_be_silent_for_longer_than_the_timeout() -> None:
    def late(found: socket.socket) -> None:
        found.sendall(CHUNKED)
        time.sleep(2 * TIMEOUT)
        found.sendall(b"1\r\nx\r\n")

    with served(late) as url:
        response = limited(url).request("GET", "/", is_watch=True, read_seconds=5)
        assert response.read1(100) == b"x"
        response.close()


def test_a_watch_must_begin_in_time() -> None:
    with served(lambda _: time.sleep(20)) as url, pytest.raises(ServerUnreachable, match=r"Client\.Timeout"):
        limited(url).request("GET", "/", is_watch=True, read_seconds=5)


def test_a_watch_may_be_silent_as_long_as_requested() -> None:
    with served(trickle(CHUNKED, b"")) as url:
        response = limited(url).request("GET", "/", is_watch=True, read_seconds=0.3)
        with pytest.raises(Exception, match="timed out"):
            response.read1(100)


def test_silence_is_allowed_for_as_long_as_requested() -> None:
    with served(lambda _: time.sleep(20)) as url, pytest.raises(ServerUnreachable, match="i/o timeout"):
        connect(ConnectionOptions(server=url)).request("GET", "/", read_seconds=0.2)


def test_a_long_timeout_bears_longer_silence_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "READ_SECONDS", 0.1)

    def late(found: socket.socket) -> None:
        time.sleep(0.5)
        found.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with served(late) as url:
        patient = connect(ConnectionOptions(server=url, request_timeout="20s"))
        assert patient.request("GET", "/").read() == b"ok"
        with pytest.raises(ServerUnreachable):
            connect(ConnectionOptions(server=url)).request("GET", "/")


def test_the_deadline_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    assert connect(ConnectionOptions(server="http://h")).deadline() is None
    deadline = connect(ConnectionOptions(server="http://h", request_timeout="10")).deadline()
    assert deadline == 110
