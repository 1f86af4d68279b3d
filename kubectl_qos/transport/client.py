"""Connections to API servers: sockets, credentials, timeouts, and a method for each kind of request."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions, StoreOptions, net_errors
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.auth import Credentials, impersonation_headers, load_credentials
from kubectl_qos.transport.kubeconfig import ResolvedContext, resolve_context, validate_context
from kubectl_qos.transport.proxy import find_proxy, without_credentials
from kubectl_qos.transport.tls import tls_context
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""The path of the POST that asks for a user's permissions; it changes nothing."""
QUERIES: Final = ("/api/v1/query", "/api/v1/query_range")
"""The paths of the POSTs that query a store with Prometheus' HTTP API; they change nothing."""
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0
STORE_SECONDS: Final = 30.0
"""The time limit of a query."""
_CLOCK_SECONDS: Final = 0.005
"""A request that fails with less than this left has used up its deadline: two clocks are compared."""
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
MAX_CONNECTIONS: Final = 12
"""The connections that are kept open: for three watches and eight short requests, and a spare one."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_SOCKET_OPTIONS: Final = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # Seconds of silence before the first probe, and between probes; macOS calls the former TCP_KEEPALIVE.
    # A watch may be silent for long, and only probes notice that its peer is gone.
    *((socket.IPPROTO_TCP, getattr(socket, n), v) for n, v in _KEEPALIVE.items() if hasattr(socket, n)),
]


def connect(options: ConnectionOptions, *, has_terminal: bool = True) -> Connection:
    """Return a connection by flags, kubeconfig or service account. Raises QosError.

    Credential plugins may run; with `has_terminal` they may ask a person.
    """
    request_seconds = net_errors.parse_timeout(options.request_timeout)
    context = resolve_context(options)
    validate_context(context)
    base_url = _base_url(context.cluster["server"])
    secure = base_url.startswith("https:")
    credentials = load_credentials(context, secure=secure, has_terminal=has_terminal)
    return Connection(context, credentials, base_url, request_seconds=request_seconds)


def connect_store(options: StoreOptions, request_timeout: str | None = None) -> Connection:
    """Return a connection to a store of metrics; its URL may have a name and password. Raises QosError."""
    base_url = _base_url(options.url)
    parts = urlsplit(base_url)
    host = parts.netloc.rpartition("@")[2]
    user = {
        "token": options.token,
        "tokenFile": options.token_file,
        "username": options.username or unquote(parts.username or ""),
        "password": options.password or unquote(parts.password or ""),
        "client-certificate": options.cert_file,
        "client-key": options.key_file,
    }
    cluster = {
        "certificate-authority": options.ca_file,
        "insecure-skip-tls-verify": options.insecure_skip_verify,
        "tls-server-name": options.server_name,
    }
    context = ResolvedContext("", "", cluster, user)
    # Unlike a kubeconfig's user, these credentials are meant for this URL, so plain HTTP sends them too.
    return Connection(
        context,
        load_credentials(context, secure=True),
        urlunsplit(parts._replace(netloc=host)),
        request_seconds=net_errors.parse_timeout(request_timeout) or STORE_SECONDS,
        headers={"X-Scope-OrgID": options.org_id} if options.org_id else {},
    )


class Connection:
    """One server and the credentials for it; used by several threads."""

    def __init__(
        self,
        context: ResolvedContext,
        credentials: Credentials,
        base_url: str,
        *,
        request_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.context = context.context
        self.namespace = context.namespace
        self._base_url = base_url
        self._cluster = context.cluster
        self._credentials = credentials
        self._headers = [*impersonation_headers(context.user), *(headers or {}).items()]
        self._encoding = "identity" if context.cluster.get("disable-compression") else "gzip"
        self._request_seconds = request_seconds
        self._lock = threading.Lock()
        self._pair = credentials.pair()
        self._pool = self._new_pool()

    @property
    def server(self) -> str:
        """The server as kubectl's errors name it: the host, and the port if the URL has one."""
        return urlsplit(self._base_url).netloc.rpartition("@")[2]

    def deadline(self) -> float | None:
        """Return when (`time.monotonic`) a request that starts now must end; None without a limit."""
        return None if self._request_seconds is None else time.monotonic() + self._request_seconds

    def request(  # noqa: PLR0913 - an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
        body: bytes | None = None,
        read_seconds: float | None = None,
        is_watch: bool = False,
    ) -> BaseHTTPResponse:
        """Return the response, with an unread body, to a GET or the POST of an access review.

        The server may be silent for `read_seconds`; the request timeout covers only the start of a watch.
        Raises ServerUnreachable without a response. Other requests are not sent, but raise QosError.
        """
        if method != "GET" and (method, path) != ("POST", REVIEWS):
            raise QosError(f"{method} {path} is not sent: it could change something")
        headers = {"Accept": accept} | ({"Content-Type": "application/json"} if body is not None else {})
        url = self._url(path, list((query or {}).items()))
        return self._respond(ApiRequest(method, url, headers, body, read_seconds, is_watch))

    def query(self, path: str, form: Mapping[str, str]) -> BaseHTTPResponse:
        """Return the response to a query of a store: a POST, because queries may be too long for a URL.

        Raises ServerUnreachable without a response. Requests to other paths are not sent, but raise QosError.
        """
        if path not in QUERIES:
            raise QosError(f"POST {path} is not sent: it is no query")
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        return self._respond(ApiRequest("POST", self._url(path, ()), headers, urlencode(form).encode()))

    def patch(self, path: str, query: Mapping[str, str], body: bytes, content_type: str) -> BaseHTTPResponse:
        """Return the response to a PATCH; only for cluster/writer.py.

        The request is repeated only after a 401, when nothing has changed yet. Raises ServerUnreachable,
        whose `may_have_arrived` is True if part of the request was sent.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        return self._respond(ApiRequest("PATCH", self._url(path, list(query.items())), headers, body))

    def switch_protocols(
        self, path: str, query: Sequence[tuple[str, str]], headers: Mapping[str, str], *, read_seconds: float
    ) -> BaseHTTPResponse:
        """Return the response to a GET that switches protocols; only for cluster/exec.py, which reads."""
        return self._respond(ApiRequest("GET", self._url(path, query), headers, read_seconds=read_seconds))

    def _url(self, path: str, query: Sequence[tuple[str, str]]) -> str:
        return self._base_url + path + (f"?{urlencode(query, quote_via=quote)}" if query else "")

    def _respond(self, request: ApiRequest) -> BaseHTTPResponse:
        """Send a request, and send it once more with renewed credentials if the server refuses them (401)."""
        deadline = self.deadline()
        authorization = self._credentials.authorization()
        response = self._send(request, authorization, deadline)
        if response.status == HTTPStatus.UNAUTHORIZED:
            try:
                is_renewed = self._credentials.renew(authorization)
            except QosError:
                response.close()
                raise
            if is_renewed:
                log.log(log.REQUESTS, "the credentials were refused and renewed: sending it again")
                response.drain_conn()
                response = self._send(request, self._credentials.authorization(), deadline)
        if deadline is None:
            return response
        if not request.is_watch:
            return cast("BaseHTTPResponse", net_errors.BoundedResponse(response, deadline))
        net_errors.set_read_timeout(response, request.read_seconds or READ_SECONDS)
        return response

    def _send(self, request: ApiRequest, authorization: str, deadline: float | None) -> BaseHTTPResponse:
        from urllib3 import HTTPHeaderDict, Timeout
        from urllib3.exceptions import HTTPError

        headers = HTTPHeaderDict(self._headers)
        headers["Accept-Encoding"] = self._encoding
        headers["User-Agent"] = f"kubectl-qos/{__version__}"
        headers.update(request.headers)
        if authorization:
            headers["Authorization"] = authorization
        body = None if request.body is None else _SentBody(request.body)
        if request.body is not None:
            headers["Content-Length"] = str(len(request.body))
        logged = log.LoggedRequest(request.method, request.url, headers.items())
        silence = request.read_seconds or self._request_seconds or READ_SECONDS
        # urllib3 refuses a timeout of zero; with this one a late request fails at once.
        left = None if deadline is None else max(deadline - time.monotonic(), _CLOCK_SECONDS / 5)
        try:
            response = self._current_pool().request(
                request.method,
                request.url,
                headers=HTTPHeaderDict((name, _header_value(name, value)) for name, value in headers.items()),
                body=body,
                preload_content=False,
                retries=False,
                timeout=Timeout(connect=min(CONNECT_SECONDS, silence), read=silence, total=left),
            )
        except (HTTPError, OSError) as error:
            is_late = deadline is not None and deadline - time.monotonic() < _CLOCK_SECONDS
            late = net_errors.timeout_error("exceeded while awaiting headers")
            failure = late if is_late else net_errors.unreachable_error(error, self.server)
            failure.may_have_arrived = body is not None and body.has_begun
            logged.failed(failure)
            raise failure from error
        return logged.answered(response)

    def _current_pool(self) -> PoolManager:
        """Return the pool for the current certificate; a renewed certificate needs new connections."""
        pair = self._credentials.pair()
        with self._lock:
            if pair != self._pair:
                self._pair = pair
                self._pool = self._new_pool()
            return self._pool

    def _new_pool(self) -> PoolManager:
        context = tls_context(self._cluster, self._pair) if self._base_url.startswith("https:") else None
        name, proxy = self._cluster.get("tls-server-name"), self._cluster.get("proxy-url")
        return pool_manager(self._base_url, context, server_name=name, proxy=proxy)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request: the full URL, and the headers that only this request has."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    read_seconds: float | None = None
    is_watch: bool = False


class _SentBody:
    """A body that records whether sending has begun: before that, no server can act on the request."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.has_begun = False

    def __iter__(self) -> Iterator[bytes]:
        self.has_begun = True
        yield self._body


def _header_value(name: str, value: str) -> str:
    """Return a header's value such that Python's http.client sends it in UTF-8.

    Raises ServerUnreachable for a value that golang.org/x/net/http/httpguts refuses; Python's own error would
    repeat the value, which may be a token.
    """
    if _CONTROL_CHARACTERS.search(value):
        raise net_errors.connection_error(f'net/http: invalid header field value for "{name}"')
    return value.encode().decode("latin-1")


def _base_url(server: str) -> str:
    """Return the URL that paths are appended to, like client-go's DefaultServerURL. Raises QosError.

    A server without a scheme gets http:// even with TLS settings: `-s localhost:8001` finds kubectl proxy.
    """
    invalid = QosError(f'host must be a URL or a host:port pair: "{without_credentials(server)}"')
    parts = urlsplit(server)
    if not (parts.scheme and parts.netloc):
        parts = urlsplit(f"http://{server}")
        if parts.path not in {"", "/"}:
            raise invalid
    try:
        is_valid = bool(parts.hostname) and (parts.port is None or parts.port >= 0)
    except ValueError:
        is_valid = False
    if not is_valid or any(character.isspace() for character in parts.netloc):
        raise invalid
    if parts.scheme not in {"http", "https"}:
        raise net_errors.connection_error(f'unsupported protocol scheme "{parts.scheme}"')
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def pool_manager(
    url: str, context: ssl.SSLContext | None, *, server_name: str | None = None, proxy: str | None = None
) -> PoolManager:
    """Return a pool of connections to a server, through `proxy` or the environment's. Raises QosError."""
    import urllib3

    options: dict[str, Any] = {"maxsize": MAX_CONNECTIONS, "socket_options": _SOCKET_OPTIONS}
    if context is not None:
        options["ssl_context"] = context
        if server_name:
            options["server_hostname"] = server_name
        if context.verify_mode == ssl.CERT_NONE:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    proxy = find_proxy(url, proxy)
    route = f"through the proxy {without_credentials(proxy)}" if proxy else "without a proxy"
    log.log(log.WIRE, f"connecting to {log.masked_url(url)} {route}")
    if not proxy:
        return urllib3.PoolManager(**options)
    parts = urlsplit(proxy)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        return SOCKSProxyManager(address, name or None, password or None, **options)
    if name:
        options["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=f"{name}:{password}")
    return urllib3.ProxyManager(address, **options)
