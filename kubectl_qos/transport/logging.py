"""Log connections and decisions for `-v`, by the standard module `logging` and without secrets.

Levels are kubectl's: 4 decisions, 6 requests, 7 and 8 their headers, 9 TLS and proxies. Level 4 is INFO - 4
in `logging`, and so on. Never logged are tokens, passwords, keys, cookies, credentials in URLs, bodies, and
input and output of plugins; a header or a URL's parameter is masked unless it is known to be harmless.
cli/output.py decides where lines go.

Source: k8s.io/client-go/transport/round_trippers.go.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from ssl import SSLSocket
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

from kubectl_qos.transport.proxy import without_credentials

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

LOGGER: Final = "kubectl_qos"
DECISIONS: Final = 4
REQUESTS: Final = 6
REQUEST_HEADERS: Final = 7
RESPONSE_HEADERS: Final = 8
WIRE: Final = 9

MASKED: Final = "<masked>"
_SCHEMES: Final = frozenset({"basic", "bearer", "negotiate"})
_SHOWN_HEADERS: Final = frozenset(
    {
        *("accept", "accept-encoding", "age", "audit-id", "cache-control", "connection", "content-encoding"),
        *("content-length", "content-type", "date", "retry-after", "server", "transfer-encoding", "upgrade"),
        *("user-agent", "via", "warning", "x-content-type-options", "sec-websocket-protocol"),
    }
)
_SHOWN_PREFIXES: Final = ("impersonate-", "x-kubernetes-pf-")
_SHOWN_PARAMETERS: Final = frozenset(
    {
        *("allowWatchBookmarks", "container", "dryRun", "fieldManager", "fieldSelector", "fieldValidation"),
        *("includeObject", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch"),
        *("sendInitialEvents", "stderr", "stdout", "timeoutSeconds", "watch"),
    }
)


def is_logged(level: int) -> bool:
    """Return whether -v is this level or higher. This never imports `logging`, which is slow."""
    logging = sys.modules.get("logging")
    # Another thread may be importing the module just now.
    has_all = hasattr(logging, "getLogger")
    return logging is not None and has_all and logging.getLogger(LOGGER).isEnabledFor(logging.INFO - level)


def log(level: int, *lines: str, stacklevel: int = 2) -> None:
    """Log lines as one record, whose message is their tuple."""
    if is_logged(level):
        import logging

        logging.getLogger(LOGGER).log(logging.INFO - level, lines, stacklevel=stacklevel)


class LoggedRequest:
    """Logs a request: its headers when it is sent, its status when it is answered, its size at the end."""

    def __init__(self, method: str, url: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        self._name = f"{method} {masked_url(url)}" if is_logged(REQUESTS) else ""
        self._began = time.monotonic()
        if is_logged(REQUEST_HEADERS):
            log(REQUEST_HEADERS, f"{self._name} with", *_masked_headers(headers), stacklevel=3)

    def failed(self, error: Exception) -> None:
        """Log the error of a request without a response."""
        log(REQUESTS, f"{self._name} failed in {self._duration()}: {error}", stacklevel=3)

    def answered(self, response: BaseHTTPResponse) -> BaseHTTPResponse:
        """Log the response's status, and return the response; it logs its size when it ends."""
        if not is_logged(REQUESTS):
            return response
        status = f"{response.status} {response.reason}"
        headers = _masked_headers(response.headers.items()) if is_logged(RESPONSE_HEADERS) else ()
        sock: Any = getattr(response.connection, "sock", None)
        tls = []
        if is_logged(WIRE) and isinstance(sock, SSLSocket):
            tls = [f"    {sock.version()} {(sock.cipher() or ['without a cipher'])[0]}"]
        log(REQUESTS, f"{self._name} {status} in {self._duration()}", *headers, *tls, stacklevel=3)
        return cast("BaseHTTPResponse", _LoggedResponse(response, self))

    def ended(self, response: BaseHTTPResponse) -> None:
        """Log the size of a response that was read to its end or dropped."""
        is_switched = response.status == HTTPStatus.SWITCHING_PROTOCOLS
        what = "ended" if is_switched else f"received {response.tell()} bytes"
        log(REQUESTS, f"{self._name} {what} in {self._duration()}", stacklevel=5)

    def _duration(self) -> str:
        return milliseconds(time.monotonic() - self._began)


class _LoggedResponse:
    def __init__(self, response: BaseHTTPResponse, request: LoggedRequest) -> None:
        self._response = response
        self._request: LoggedRequest | None = request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def close(self) -> None:
        self._end()
        self._response.close()

    def release_conn(self) -> None:
        self._end()
        self._response.release_conn()

    def _end(self) -> None:
        if self._request is not None:
            self._request.ended(self._response)
            self._request = None


def masked_url(url: str) -> str:
    """Return a URL without credentials, and with the values of its harmless parameters only."""
    try:
        parts = urlsplit(without_credentials(url))
    except ValueError:
        return MASKED
    parameters = [(text, text.partition("=")[0]) for text in parts.query.split("&") if parts.query]
    query = "&".join(text if name in _SHOWN_PARAMETERS else f"{name}={MASKED}" for text, name in parameters)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def masked_header(name: str, value: str) -> str:
    """Return the value of a header, masked if it is not known to be harmless."""
    lower = name.lower()
    if lower in _SHOWN_HEADERS or lower.startswith(_SHOWN_PREFIXES):
        return value
    if lower == "location":
        return masked_url(value)
    scheme, _, rest = value.partition(" ")
    return f"{scheme} {MASKED}" if rest and scheme.lower() in _SCHEMES else MASKED


def _masked_headers(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"    {name}: {masked_header(name, value)}" for name, value in headers)


def milliseconds(seconds: float) -> str:
    """Format a duration like kubectl's log."""
    return f"{1000 * seconds:.0f} milliseconds"
