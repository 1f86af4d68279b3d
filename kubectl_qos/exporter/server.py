"""The HTTP server of the exporter: /metrics, /healthz, /readyz, and a page that links them.

/healthz and /readyz need no password: the kubelet's probes have none, and the answers have nothing secret.
Not here: what the metrics are (collector.py).
"""

import socket
import threading
import zlib
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kubectl_qos.errors import QosError
from kubectl_qos.exporter.collector import Exporter
from kubectl_qos.exporter.web_config import WebConfig, WebConfigFile

MAX_SCRAPES: Final = 8
"""So many at once; each has the whole exposition in memory."""
SILENCE_SECONDS: Final = 30.0
GRACE_SECONDS: Final = 5.0
"""How long scrapes may take that are under way when it ends."""
_GZIP_LEVEL: Final = 1
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_PLAIN: Final = "text/plain; charset=utf-8"
_PAGE: Final = b"""<!DOCTYPE html><title>kubectl-qos exporter</title><h1>kubectl-qos exporter</h1>
<ul><li><a href="/metrics">metrics</a><li><a href="/healthz">healthz</a><li><a href="/readyz">readyz</a></ul>
"""


class _Answer(NamedTuple):
    body: bytes
    content_type: str = _PLAIN
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


class Server(ThreadingHTTPServer):
    """Serves an exporter at an address. Raises QosError where it cannot listen there."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, host: str, port: int, exporter: Exporter, web_config: WebConfigFile) -> None:
        self.exporter = exporter
        self.web_config = web_config
        self.scrapes = threading.BoundedSemaphore(MAX_SCRAPES)
        try:
            found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            # Without a host every address: the IPv6 socket takes IPv4 too.
            self.address_family, _, _, _, address = max(found) if not host else found[0]
            super().__init__((str(address[0]), port), _Handler)
        except OSError as error:
            raise QosError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None

    @property
    def url(self) -> str:
        """Where the metrics are."""
        host, port = self.server_address[:2]
        scheme = "https" if self.web_config.current().tls is not None else "http"
        name = f"[{host!s}]" if ":" in str(host) else host
        return f"{scheme}://{name!s}:{port}/metrics"

    def server_bind(self) -> None:
        """Listen, for IPv4 too where it is every address of IPv6."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer in the connection's thread, so that a slow TLS handshake holds up nobody else."""
        tls = self.web_config.current().tls
        if tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(SILENCE_SECONDS)
        with tls.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off, or speaks no TLS, is not worth a traceback."""

    def end(self) -> None:
        """Stop listening, and let scrapes finish that are under way."""
        self.shutdown()
        self.server_close()
        for _ in range(MAX_SCRAPES):
            self.scrapes.acquire(timeout=GRACE_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "kubectl-qos"
    sys_version = ""
    timeout = SILENCE_SECONDS
    server: Server

    def do_GET(self) -> None:
        """Answer a GET."""
        config = self.server.web_config.current()
        answer = self._answer(config)
        self.send_response(answer.status)
        headers = {"X-Content-Type-Options": "nosniff", **config.headers, **dict(answer.headers)}
        headers |= {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815 - likewise

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Requests are not logged."""

    def _answer(self, config: WebConfig) -> _Answer:
        path, exporter = urlsplit(self.path).path, self.server.exporter
        probes: dict[str, Callable[[], str]] = {
            "/healthz": lambda: str(exporter.failure or ""),
            "/readyz": lambda: str(exporter.failure or exporter.not_ready()),
        }
        if path in probes:
            problem = probes[path]()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            return _Answer(f"{problem or 'ok'}\n".encode(), status=status)
        if config.users and not self._is_admitted(config):
            challenge = ("WWW-Authenticate", 'Basic realm="kubectl-qos"')
            return _Answer(b"Unauthorized\n", status=HTTPStatus.UNAUTHORIZED, headers=(challenge,))
        if path == "/":
            return _Answer(_PAGE, "text/html; charset=utf-8")
        if path == "/metrics":
            return self._metrics()
        return _Answer(b"404 page not found\n", status=HTTPStatus.NOT_FOUND)

    def _metrics(self) -> _Answer:
        if not self.server.scrapes.acquire(blocking=False):
            return _Answer(b"too many scrapes at once\n", status=HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            parts, content_type = self.server.exporter.exposition(self.headers.get("Accept", ""))
            if "gzip" not in self.headers.get("Accept-Encoding", ""):
                return _Answer(b"".join(parts), content_type)
            # Part by part: the whole text is 20 MB for 5,000 nodes.
            zipper = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
            zipped = b"".join((*map(zipper.compress, parts), zipper.flush()))
            return _Answer(zipped, content_type, headers=(("Content-Encoding", "gzip"),))
        finally:
            self.server.scrapes.release()

    def _is_admitted(self, config: WebConfig) -> bool:
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        try:
            user, colon, password = b64decode(encoded, validate=True).decode().partition(":")
        except (NoBase64, UnicodeError):
            return False
        return scheme.lower() == "basic" and bool(colon) and config.admits(user, password)
