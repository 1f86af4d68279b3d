"""An HTTPS server on loopback: real sockets, TLS, keep-alive; what it answers is a function's affair."""

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.cluster.certificates import Authority

GZIP_FROM_BYTES = 128 * 1024
"""From this size on an API server compresses for clients that offer gzip."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; `user` is the common name of its certificate, if it has one."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    user: str = ""

    @property
    def token(self) -> str:
        """The bearer token, empty without one."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sends back.

    With `promised_bytes` larger than the body the connection breaks off in the middle of it. With `chunks`
    the body is sent piece by piece as they come; one that is None breaks the connection off. With `hangs_up`
    there is no answer at all, with `raw` these bytes are sent in its place. With `talk` the connection is
    that function's once the headers are sent, and ends with it.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    promised_bytes: int | None = None
    chunks: Iterable[bytes | None] | None = None
    hangs_up: bool = False
    raw: bytes = b""
    talk: Callable[[BufferedIOBase, ssl.SSLSocket], None] | None = None


class HttpsServer:
    """A server in threads of this process.

    `requests` is what it was asked, in order of arrival; `raw_headers` are theirs, repeated ones included.
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        folder: Path,
        authority: Authority,
        *,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
        clients: Authority | None = None,
        port: int = 0,
    ) -> None:
        certificate, key = authority.server(*hosts).write(folder, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if clients is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=clients.certificate.decode())
        self.authority = authority
        self.requests: list[Request] = []
        self.raw_headers: list[list[tuple[str, str]]] = []
        self._answer = answer
        self._listener = _Listener(context, self._respond, port)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._listener.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        return self._listener.accepted

    def paths(self) -> list[str]:
        """The paths asked for, in order of arrival."""
        return [request.path for request in self.requests]

    def stop(self) -> None:
        """End as a process does: nobody listens any more, and every connection is closed."""
        self._end()
        for connection in self._listener.open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        getattr(self._answer, "end_watches", lambda: None)()

    def _end(self) -> None:
        self._listener.ended.set()
        self._listener.shutdown()
        self._listener.server_close()

    def _respond(self, request: Request, headers: list[tuple[str, str]]) -> Answer:
        self.requests.append(request)
        self.raw_headers.append(headers)
        return self._answer(request)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # The kernel drops the first packet of those beyond the queue: they come again after 1, 3 and 7 seconds.
    request_queue_size = 128

    def __init__(self, context: ssl.SSLContext, respond: Callable[..., Answer], port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.open: list[ssl.SSLSocket] = []
        self.context = context
        self.ended = threading.Event()
        self.respond = respond
        self.accepted = 0

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count the connection; its handshake belongs to its own thread."""
        self.accepted += 1
        wrapped = self.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        self.open.append(wrapped)
        super().process_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or that refuses our certificate, is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener
    connection: ssl.SSLSocket

    def setup(self) -> None:
        self.request.settimeout(30)
        self.request.do_handshake()
        super().setup()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing: what was asked is kept in `requests`."""

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
            user=_common_name(self.connection),
        )
        answer = self.server.respond(request, self.headers.items())
        self.server.ended.wait(answer.delay_seconds)
        if answer.hangs_up or answer.raw:
            self.wfile.write(answer.raw)
            self.close_connection = True
            return
        body = answer.body
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.talk is not None:
            self.end_headers()
            self.close_connection = True
            answer.talk(self.rfile, self.connection)
            return
        if answer.chunks is not None:
            self._send_chunks(answer.chunks)
            return
        if len(body) >= GZIP_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        promised = len(body) if answer.promised_bytes is None else answer.promised_bytes
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(body)
        if promised > len(body):
            self.close_connection = True

    def _send_chunks(self, chunks: Iterable[bytes | None]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            if chunk is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if chunk:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - http.server's names


def _common_name(connection: ssl.SSLSocket) -> str:
    found = connection.getpeercert()
    if not found:
        return ""
    subject: Any = found.get("subject", ())
    return next((value for part in subject for name, value in part if name == "commonName"), "")
