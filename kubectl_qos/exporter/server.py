"""The exporter's HTTP server: /metrics, /healthz, /readyz, and a page that links them.

/healthz and /readyz need no password: the kubelet's probes have none, and the answers are not secret.
Source of the configuration: github.com/prometheus/exporter-toolkit, docs/web-configuration.md. Not here: the
metrics (collector.py).
"""

import hashlib
import socket
import ssl
import threading
import time
import zlib
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.exporter.collector import Exporter

_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS: Final = {
    "": ssl.CERT_NONE,
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS_FILES: Final = ("cert_file", "key_file", "client_ca_file")
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "tls_server_config": frozenset({*_TLS_FILES, "client_auth_type", "min_version", "max_version"}),
    "http_server_config": frozenset({"headers", "http2"}),
}
_BCRYPT: Final = ("$2a$", "$2b$", "$2y$")
_BCRYPT_BYTES: Final = 72
_UNKNOWN_USER: Final = "$2b$10$QOsUqBrXqJ0O7mr5yTpv2.uLDqi0.dEmQhrb4z.dYEDI2t6OlyAyS"
"""A hash that no password matches: checking it makes an unknown user take as long as a known one."""


@dataclass(frozen=True)
class WebConfig:
    """Settings from one read of the file; `checked` caches the results of password checks."""

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    checked: dict[bytes, bool] = field(default_factory=dict)

    def admits(self, user: str, password: str) -> bool:
        """Return whether a user has this password."""
        import bcrypt

        password_hash = self.users.get(user, _UNKNOWN_USER)
        key = hashlib.sha256(f"{user}\0{password_hash}\0{password}".encode()).digest()
        if key not in self.checked:
            if len(self.checked) > 1000:  # someone is guessing passwords
                self.checked.clear()
            is_right = bcrypt.checkpw(password.encode()[:_BCRYPT_BYTES], password_hash.encode())
            self.checked[key] = is_right and user in self.users
        return self.checked[key]


class WebConfigFile:
    """The web configuration file of Prometheus exporters: TLS, basic authentication, response headers.

    Like the Prometheus exporters, it reads the file and the certificates again when they change. Without a
    path, the configuration is empty. Unsupported settings are errors.
    """

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path is not None else None
        self._files: tuple[Path, ...] = (self._path,) if self._path is not None else ()
        self._times = self._modified()
        self._config = self._read()

    def current(self) -> WebConfig:
        """Return the last valid configuration."""
        times = self._modified()
        if times != self._times:
            self._times = times
            try:
                self._config = self._read()
            except QosError:
                return self._config  # The file may be half written; its next change is read.
            self._times = self._modified()
        return self._config

    def _modified(self) -> list[int]:
        return [path.stat().st_mtime_ns if path.exists() else 0 for path in self._files]

    def _read(self) -> WebConfig:
        if self._path is None:
            return WebConfig()
        try:
            raw = yaml.safe_load(self._path.read_text(encoding="utf-8"))
        except (OSError, UnicodeError, yaml.YAMLError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error).replace("\n", " ")
            raise InputError(f"{self._path}: {reason}") from None
        section = self._sections({} if raw is None else raw)
        users = {str(name): str(text) for name, text in section["basic_auth_users"].items()}
        for user, text in users.items():
            if not text.startswith(_BCRYPT):
                raise self._error(
                    f"the password of {user} is not a bcrypt hash", "htpasswd -nBC 10 '' makes one"
                )
        headers = section["http_server_config"].get("headers") or {}
        tls = self._tls(section["tls_server_config"])
        return WebConfig(tls, users, {str(name): str(text) for name, text in headers.items()})

    def _sections(self, raw: Any) -> dict[str, dict[str, Any]]:
        names = (*_KEYS, "basic_auth_users")
        if not isinstance(raw, dict) or not all(isinstance(raw.get(name) or {}, dict) for name in names):
            raise self._error("the file and its sections must be mappings")
        sections = {name: raw.get(name) or {} for name in names}
        unknown = [str(key) for key in raw if key not in names]
        for name, keys in _KEYS.items():
            unknown += [f"{name}.{key}" for key in sections[name] if key not in keys]
        if unknown:
            raise self._error(f"{unknown[0]} is not supported", "docs/exporter.md has what is")
        return sections

    def _tls(self, raw: Mapping[str, Any]) -> ssl.SSLContext | None:
        if not raw:
            return None
        assert self._path is not None
        files = {name: self._path.parent / str(raw[name]) for name in _TLS_FILES if raw.get(name)}
        for name in _TLS_FILES[:2]:
            if name not in files:
                raise self._error(f"tls_server_config needs {name}")
        self._files = (self._path, *files.values())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._choice(_VERSIONS, raw, "min_version", "TLS12")
        context.maximum_version = self._choice(_VERSIONS, raw, "max_version", "TLS13")
        try:
            context.load_cert_chain(files["cert_file"], files["key_file"])
            if "client_ca_file" in files:
                context.load_verify_locations(files["client_ca_file"])
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(map(str, files.values()))
            raise self._error(f"the certificates cannot be used ({names}): {error}") from None
        context.verify_mode = self._choice(_CLIENTS, raw, "client_auth_type", "")
        if context.verify_mode is not ssl.CERT_NONE and "client_ca_file" not in files:
            raise self._error(f"client_auth_type {raw['client_auth_type']} needs client_ca_file")
        return context

    def _choice(self, values: Mapping[str, Any], raw: Mapping[str, Any], key: str, default: str) -> Any:
        text = str(raw.get(key) or default)
        if text not in values:
            raise self._error(f"{key} {text} is not supported", f"write {', '.join(filter(None, values))}")
        return values[text]

    def _error(self, sentence: str, hint: str = "") -> QosError:
        return UsageError(f"{self._path}: {sentence}", hint=hint)


MAX_SCRAPES: Final = 8
"""The most scrapes that are served at once; each holds the whole exposition in memory."""
IDLE_TIMEOUT_SECONDS: Final = 30.0
GRACE_SECONDS: Final = 5.0
"""The total time that scrapes in progress get when the server ends."""
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
    """Serves an exporter at an address. Raises QosError if it cannot listen there."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, host: str, port: int, exporter: Exporter, web_config: WebConfigFile) -> None:
        self.exporter = exporter
        self.web_config = web_config
        self.scrapes = threading.BoundedSemaphore(MAX_SCRAPES)
        try:
            every_address = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104
            addresses = socket.getaddrinfo(host or every_address, port, type=socket.SOCK_STREAM)
            self.address_family, _, _, _, address = addresses[0]
            super().__init__((str(address[0]), port), _Handler)
        except OSError as error:
            raise QosError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None

    @property
    def url(self) -> str:
        """URL of the metrics."""
        host, port = self.server_address[:2]
        scheme = "https" if self.web_config.current().tls is not None else "http"
        name = f"[{host!s}]" if ":" in str(host) else host
        return f"{scheme}://{name!s}:{port}/metrics"

    def server_bind(self) -> None:
        """Listen; on `::` also on all IPv4 addresses."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Handle the request in its own thread, so that a slow TLS handshake does not block others."""
        tls = self.web_config.current().tls
        if tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(IDLE_TIMEOUT_SECONDS)
        with tls.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback for a client that disconnects or does not speak TLS."""

    def end(self) -> None:
        """Stop listening, and let scrapes in progress finish."""
        self.shutdown()
        self.server_close()
        end = time.monotonic() + GRACE_SECONDS
        for _ in range(MAX_SCRAPES):
            self.scrapes.acquire(timeout=max(end - time.monotonic(), 0))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "kubectl-qos"
    sys_version = ""
    timeout = IDLE_TIMEOUT_SECONDS
    server: Server

    def do_GET(self) -> None:
        config, scrapes = self.server.web_config.current(), self.server.scrapes
        answer = self._answer(config)
        if answer is not None:
            self._send(answer, config)
        elif scrapes.acquire(blocking=False):
            try:
                self._send(self._metrics(), config)
            finally:
                scrapes.release()
        else:
            too_many = _Answer(b"too many scrapes at once\n", status=HTTPStatus.SERVICE_UNAVAILABLE)
            self._send(too_many, config)

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def _send(self, answer: _Answer, config: WebConfig) -> None:
        self.send_response(answer.status)
        headers = {"X-Content-Type-Options": "nosniff", **config.headers, **dict(answer.headers)}
        headers |= {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Log nothing."""

    def _answer(self, config: WebConfig) -> _Answer | None:
        """Return the answer to a request, or None for a scrape."""
        path, exporter = urlsplit(self.path).path, self.server.exporter
        if path in {"/healthz", "/readyz"}:
            problem = str(exporter.failure or (exporter.not_ready() if path == "/readyz" else ""))
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            return _Answer(f"{problem or 'ok'}\n".encode(), status=status)
        if config.users and not self._is_admitted(config):
            challenge = ("WWW-Authenticate", 'Basic realm="kubectl-qos"')
            return _Answer(b"Unauthorized\n", status=HTTPStatus.UNAUTHORIZED, headers=(challenge,))
        if path == "/":
            return _Answer(_PAGE, "text/html; charset=utf-8")
        if path == "/metrics":
            return None
        return _Answer(b"404 page not found\n", status=HTTPStatus.NOT_FOUND)

    def _metrics(self) -> _Answer:
        parts, content_type = self.server.exporter.exposition(self.headers.get("Accept", ""))
        if "gzip" not in self.headers.get("Accept-Encoding", ""):
            return _Answer(b"".join(parts), content_type)
        # Compress part by part: the whole text is 20 MB for 5,000 nodes.
        zipper = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
        zipped = b"".join((*map(zipper.compress, parts), zipper.flush()))
        return _Answer(zipped, content_type, headers=(("Content-Encoding", "gzip"),))

    def _is_admitted(self, config: WebConfig) -> bool:
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        try:
            user, colon, password = b64decode(encoded, validate=True).decode().partition(":")
        except (NoBase64, UnicodeError):
            return False
        return scheme.lower() == "basic" and bool(colon) and config.admits(user, password)
