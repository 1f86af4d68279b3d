"""How a cluster is reached: TLS as strict as kubectl's, one pool of connections, and why there is none.

Not here: which cluster is meant (kubeconfig.py), who we are there (credentials.py), what is asked (api.py).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import IncompleteRead, RemoteDisconnected
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from kubectl_qos import __version__
from kubectl_qos.cluster.credentials import Credentials, credentials_of, impersonation, pem_of
from kubectl_qos.cluster.kubeconfig import Target, target
from kubectl_qos.errors import QosError, ServerUnreachable

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """What the command line says about the connection; None is not given."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


class Connection:
    """One API server and the credentials for it; every request goes through `request`."""

    def __init__(self, found: Target, credentials: Credentials, namespace: str) -> None:
        self.context = found.context
        self.namespace = namespace
        self._base = _with_scheme(str(found.cluster["server"]).rstrip("/"), found)
        self._credentials = credentials
        self._acting_as = impersonation(found.user)
        self._encoding = "identity" if found.cluster.get("disable-compression") else "gzip"
        self._pool = _pool(self._base, found.cluster, credentials)

    @property
    def server(self) -> str:
        """The server as kubectl names it in its messages: host, and port if the URL has one."""
        return urlsplit(self._base).netloc.rpartition("@")[2]

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
    ) -> BaseHTTPResponse:
        """The server's response with its body unread. Raises ServerUnreachable where there is none."""
        from urllib3 import HTTPHeaderDict, Timeout
        from urllib3.exceptions import HTTPError

        headers = HTTPHeaderDict(self._acting_as)
        headers["Accept"] = accept
        headers["Accept-Encoding"] = self._encoding
        headers["User-Agent"] = f"kubectl-qos/{__version__}"
        authorization = self._credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        try:
            return self._pool.request(
                method,
                self._base + path + (f"?{urlencode(query, quote_via=quote)}" if query else ""),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            )
        except (HTTPError, OSError) as error:
            raise unreachable(error, self.server) from error


def connect(options: ConnectionOptions) -> Connection:
    """A connection by kubeconfig or, in a pod, by its service account.

    Nothing is sent yet, but credential plugins may run. Raises QosError with the place and the remedy.
    """
    found = target(options.kubeconfig, options.context)
    return Connection(found, credentials_of(found), options.namespace or found.namespace)


def tls_context(cluster: Mapping[str, Any], credentials: Credentials) -> ssl.SSLContext:
    """A context as strict as kubectl's: verified, but not stricter about the CA's form.

    Python >= 3.13 adds VERIFY_X509_STRICT, which refuses CAs without a key-usage extension or authority key
    id; Go, and so kubectl, takes them, and takes an intermediate CA as an anchor too.
    """
    ca = pem_of(cluster, "certificate-authority")
    try:
        context = ssl.create_default_context(cadata=ca.decode("ascii") if ca is not None else None)
    except (ssl.SSLError, ValueError):
        raise QosError("the kubeconfig's certificate-authority holds no PEM certificate") from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    credentials.add_certificate(context)
    return context


def _with_scheme(server: str, found: Target) -> str:
    """A server without a scheme is meant as https if anything about TLS is configured, as in client-go."""
    if "://" in server:
        return server
    entry = {**found.cluster, **found.user}
    names = ("certificate-authority", "client-certificate", "insecure-skip-tls-verify")
    secure = any(entry.get(name) or entry.get(f"{name}-data") for name in names)
    return f"{'https' if secure else 'http'}://{server}"


def _pool(server: str, cluster: Mapping[str, Any], credentials: Credentials) -> PoolManager:
    import urllib3

    from kubectl_qos.cluster.proxy import proxy_of

    arguments: dict[str, Any] = {"maxsize": 4, "num_pools": 4}
    if server.startswith("https"):
        arguments["ssl_context"] = tls_context(cluster, credentials)
        name = cluster.get("tls-server-name")
        if name:
            arguments["server_hostname"] = name
        if cluster.get("insecure-skip-tls-verify"):
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    proxy = proxy_of(server, cluster.get("proxy-url"))
    return urllib3.ProxyManager(proxy, **arguments) if proxy else urllib3.PoolManager(**arguments)


def unreachable(error: Exception, server: str) -> ServerUnreachable:
    """Kubectl's sentence for a connection that failed."""
    from urllib3.exceptions import ProxyError

    causes = list(_causes(error))
    by_proxy = isinstance(error, ProxyError)
    if not by_proxy and any(isinstance(one, ConnectionRefusedError) for one in causes):
        return ServerUnreachable(
            f"The connection to the server {server} was refused - did you specify the right host or port?"
        )
    reached = "the proxy" if by_proxy else server
    why = next(filter(None, (_reason(one, reached) for one in causes)), None) or _one_line(causes[-1])
    return ServerUnreachable(
        f"Unable to connect to the server: {'proxyconnect tcp: ' if by_proxy else ''}{why}"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, outermost first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _reason(error: BaseException, server: str) -> str:
    """Go's words for one failure, empty for an error that only wraps another."""
    from urllib3.exceptions import (
        ConnectTimeoutError,
        NameResolutionError,
        NewConnectionError,
        ReadTimeoutError,
    )

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or _one_line(error)}"
    if isinstance(error, NameResolutionError):
        return f"dial tcp: lookup {urlsplit(f'//{server}').hostname}: no such host"
    if isinstance(error, ReadTimeoutError):
        return f"no answer from {server} within {READ_SECONDS:.0f} s"
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        return f"dial tcp {server}: i/o timeout"
    if isinstance(error, IncompleteRead | RemoteDisconnected):
        return "unexpected EOF"
    if isinstance(error, OSError) and error.strerror:
        broken = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
        return f"{'read' if broken else 'dial'} tcp {server}: {error.strerror.lower()}"
    return ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
