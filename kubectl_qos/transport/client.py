"""Pools of connections, direct or by a proxy; the one place that sets sockets up.

Not here: which proxy (proxy.py), whom to trust (tls.py), what is sent.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from kubectl_qos import __version__
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.auth import Credentials, impersonation, load_credentials
from kubectl_qos.transport.kubeconfig import ConnectionOptions, ResolvedContext, resolve_context
from kubectl_qos.transport.net_errors import BoundedResponse, parse_timeout, timeout_error, unreachable_error
from kubectl_qos.transport.proxy import find_proxy, without_credentials
from kubectl_qos.transport.tls import tls_context
from kubectl_qos.transport.validation import sendable, validate_context

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager, Timeout


MOST_KEPT: Final = 12
"""Connections that are kept open: three watches and eight short requests, with one to spare."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence before the peer is asked whether it lives, and how often; macOS has TCP_KEEPALIVE for
the first. A watch may be silent for long, so nothing else would notice that its peer is gone."""


def pool(
    url: str, context: ssl.SSLContext | None, *, server_name: str | None = None, proxy: str | None = None
) -> PoolManager:
    """A pool for a server; `proxy` is the configured one, without it the environment's counts.

    Raises QosError for a proxy that cannot be used.
    """
    import urllib3

    arguments: dict[str, Any] = {"maxsize": MOST_KEPT, "block": False, "socket_options": _socket_options()}
    if context is not None:
        arguments["ssl_context"] = context
        if server_name:
            arguments["server_hostname"] = server_name
        if context.verify_mode == ssl.CERT_NONE:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    found = find_proxy(url, proxy)
    strategy = f"by the proxy {without_credentials(found)}" if found else "without a proxy"
    log.log(log.WIRE, f"{log.shown_url(url)} is reached {strategy}")
    if not found:
        return urllib3.PoolManager(**arguments)
    parts = urlsplit(found)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        return SOCKSProxyManager(address, name or None, password or None, **arguments)
    if name:
        arguments["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=f"{name}:{password}")
    return urllib3.ProxyManager(address, **arguments)


def _socket_options() -> list[tuple[int, int, int]]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Where a server is asked what somebody may do; nothing is kept of it."""
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0
_NO_TIME_SECONDS: Final = 0.005
"""What is left of a deadline once a wait for all of it has ended, since clocks are read twice."""


class Connection:
    """One API server and the credentials for it; every request goes through `request`, from any thread."""

    def __init__(
        self,
        found: ResolvedContext,
        credentials: Credentials,
        base: str,
        *,
        request_seconds: float | None = None,
    ) -> None:
        self.context = found.context
        self.namespace = found.namespace
        self._base = base
        self._cluster = found.cluster
        self._credentials = credentials
        self._acting_as = impersonation(found.user)
        self._encoding = "identity" if found.cluster.get("disable-compression") else "gzip"
        self._request_seconds = request_seconds
        self._lock = threading.Lock()
        self._pair = credentials.pair()
        self._pool = self._new_pool()

    @property
    def server(self) -> str:
        """The server as kubectl names it in its messages: host, and port if the URL has one."""
        return urlsplit(self._base).netloc.rpartition("@")[2]

    def deadline(self) -> float | None:
        """When a request that starts now must be over, on the clock of `time.monotonic`; None is never.

        `request` keeps to it by itself, bodies included, so that readers need not look at it.
        """
        return None if self._request_seconds is None else time.monotonic() + self._request_seconds

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
        body: bytes | None = None,
        content_type: str = "application/json",
        read_seconds: float | None = None,
        is_watch: bool = False,
    ) -> BaseHTTPResponse:
        """The server's response with its body unread. Raises ServerUnreachable where there is none.

        Nothing that changes a cluster can be sent: only GET, and POST of an access review, which is a
        question; QosError for anything else. Credentials that the server does not take (401) are renewed
        once, if they can be, and the request is sent again.

        Args:
            method: the HTTP method.
            path: the path below the server's URL.
            query: parameters of the query.
            accept: what the answer may be.
            body: what is sent.
            content_type: what the body is.
            read_seconds: how long a silence of the server is borne.
            is_watch: the body ends when it will, so the request timeout counts until the answer begins.
        """
        if method != "GET" and (method, path) != ("POST", REVIEWS):
            raise QosError(f"{method} {path} is not sent: it is no question")
        headers = {"Accept": accept} | ({"Content-Type": content_type} if body is not None else {})
        url = self._url(path, query)
        return self._answered(method, url, headers, body, read_seconds=read_seconds, is_watch=is_watch)

    def patch(self, path: str, query: Mapping[str, str], body: bytes, content_type: str) -> BaseHTTPResponse:
        """The server's response to a change; called by access/changing.py alone.

        Sent once, and again only where credentials are not taken (401), which happens before anything else.
        Raises ServerUnreachable, whose `may_have_arrived` says whether some of the request left.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        return self._answered("PATCH", self._url(path, query), headers, body)

    def switched(
        self,
        path: str,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        *,
        read_seconds: float,
    ) -> BaseHTTPResponse:
        """The server's response to a GET that asks it to switch protocols; called by cluster/exec.py alone.

        A command in a container begins with a GET, yet is no mere question: what it does is up to the
        command. So it has a method of its own, and who calls it has but commands that read (READINGS there).
        """
        url = f"{self._base}{path}?{urlencode(query, quote_via=quote)}"
        return self._answered("GET", url, headers, None, read_seconds=read_seconds)

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return self._base + path + (f"?{urlencode(query, quote_via=quote)}" if query else "")

    def _answered(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        read_seconds: float | None = None,
        is_watch: bool = False,
    ) -> BaseHTTPResponse:
        """The response, with credentials that are taken if there are any."""
        deadline = self.deadline()
        silence = read_seconds or self._request_seconds or READ_SECONDS
        authorization = self._credentials.authorization()
        response = self._sent(method, url, authorization, headers, body, deadline, silence)
        if response.status == HTTPStatus.UNAUTHORIZED and self._is_renewed(authorization, response):
            log.log(log.REQUESTS, "the credentials were not taken, and are renewed: it is sent again")
            response.drain_conn()
            authorization = self._credentials.authorization()
            response = self._sent(method, url, authorization, headers, body, deadline, silence)
        if deadline is None:
            return response
        if is_watch:
            sock = getattr(response.connection, "sock", None)
            if sock is not None:
                sock.settimeout(read_seconds or READ_SECONDS)
            return response
        return cast("BaseHTTPResponse", BoundedResponse(response, deadline))

    def _sent(
        self,
        method: str,
        url: str,
        authorization: str,
        more: Mapping[str, str],
        body: bytes | None,
        deadline: float | None,
        silence: float,
    ) -> BaseHTTPResponse:
        from urllib3 import HTTPHeaderDict
        from urllib3.exceptions import HTTPError

        headers = HTTPHeaderDict(self._acting_as)
        headers["Accept-Encoding"] = self._encoding
        headers["User-Agent"] = f"kubectl-qos/{__version__}"
        headers.update(more)
        if authorization:
            headers["Authorization"] = authorization
        leaving = None if body is None else _BodySent(body)
        if body is not None:
            headers["Content-Length"] = str(len(body))
        asked = log.LoggedRequest(method, url, headers.items())
        try:
            response = self._current_pool().request(
                method,
                url,
                headers=HTTPHeaderDict((name, sendable(name, value)) for name, value in headers.items()),
                body=leaving,
                preload_content=False,
                retries=False,
                timeout=_timeout(deadline, silence),
            )
        except (HTTPError, OSError) as error:
            late = deadline is not None and deadline - time.monotonic() < _NO_TIME_SECONDS
            why = (
                timeout_error("exceeded while awaiting headers")
                if late
                else unreachable_error(error, self.server)
            )
            why.may_have_arrived = leaving is not None and leaving.has_begun
            asked.failed(why)
            raise why from error
        return asked.answered(response)

    def _is_renewed(self, refused: str, response: BaseHTTPResponse) -> bool:
        try:
            return self._credentials.renew(refused)
        except QosError:
            response.close()
            raise

    def _current_pool(self) -> PoolManager:
        """The pool for the certificate that holds now; a renewed one is shown on new connections only."""
        pair = self._credentials.pair()
        with self._lock:
            if pair != self._pair:
                self._pair = pair
                self._pool = self._new_pool()
            return self._pool

    def _new_pool(self) -> PoolManager:
        context = tls_context(self._cluster, self._pair) if _is_secure(self._base) else None
        name, proxy = self._cluster.get("tls-server-name"), self._cluster.get("proxy-url")
        return pool(self._base, context, server_name=name, proxy=proxy)


class _BodySent:
    """A body that knows whether any of it left: without its body no server acts on a request.

    It is taken after there is a connection, and after the headers were sent.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.has_begun = False

    def __iter__(self) -> Iterator[bytes]:
        self.has_begun = True
        yield self._body


def connect(options: ConnectionOptions) -> Connection:
    """A connection by kubeconfig, by flags or, in a pod, by its service account.

    Nothing is sent yet, but credential plugins may run. Raises QosError with the place and the remedy.
    """
    request_seconds = parse_timeout(options.request_timeout)
    found = resolve_context(options)
    validate_context(found)
    base = _base_url(found.cluster["server"])
    credentials = load_credentials(found, secure=_is_secure(base))
    return Connection(found, credentials, base, request_seconds=request_seconds)


def _timeout(deadline: float | None, silence: float) -> Timeout:
    from urllib3 import Timeout

    if deadline is None:
        return Timeout(connect=CONNECT_SECONDS, read=silence)
    # Some time must be left to give; a request that is late already fails at once.
    left = max(deadline - time.monotonic(), _NO_TIME_SECONDS / 5)
    return Timeout(connect=CONNECT_SECONDS, read=silence, total=left)


def _base_url(server: str) -> str:
    """The URL that paths are added to. Raises QosError for a server that is none.

    Without a scheme it is plain HTTP, whatever is said of TLS: `-s localhost:8001` finds kubectl proxy.

    Source: k8s.io/client-go/rest/url_utils.go (DefaultServerURL).
    """
    parts = urlsplit(server)
    if not (parts.scheme and parts.netloc):
        parts = urlsplit(f"http://{server}")
        if parts.path not in {"", "/"}:
            raise _no_server(server)
    try:
        usable = bool(parts.hostname) and (parts.port is None or parts.port >= 0)
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in parts.netloc):
        raise _no_server(server)
    if parts.scheme not in {"http", "https"}:
        raise ServerUnreachable(
            f'Unable to connect to the server: unsupported protocol scheme "{parts.scheme}"'
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _no_server(server: str) -> QosError:
    return QosError(f'host must be a URL or a host:port pair: "{without_credentials(server)}"')


def _is_secure(url: str) -> bool:
    return url.startswith("https:")
