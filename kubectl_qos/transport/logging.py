"""What -v tells of the way to a cluster, as klog's lines for a sink that a shell sets.

Levels are kubectl's: 4 what was decided, 6 each request, 7 and 8 their headers, 9 TLS and proxies. What opens
a door is told at none of them: tokens, passwords, keys, cookies, credentials in URLs, what a plugin is given
and gives, bodies. So headers and parameters have to be known to be shown. Not here: where lines go, and that
they are harmless for a terminal (cli/verbosity.py).

Sources: k8s.io/klog/v2 (the head of a line), k8s.io/client-go/transport/round_trippers.go (its levels).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from ssl import SSLSocket
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

from kubectl_qos.transport.proxy import without_credentials

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

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
_SHOWN_BEGINNINGS: Final = ("impersonate-", "x-kubernetes-pf-")
_SHOWN_PARAMETERS: Final = frozenset(
    {
        *("allowWatchBookmarks", "container", "dryRun", "fieldManager", "fieldSelector", "fieldValidation"),
        *("includeObject", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch"),
        *("sendInitialEvents", "stderr", "stdout", "timeoutSeconds", "watch"),
    }
)

_one_at_a_time = threading.Lock()


def _nowhere(_: str) -> None:
    pass


_level = 0
_sink: Callable[[str], None] = _nowhere


def start(level: int, sink: Callable[[str], None]) -> None:
    """From now on tell `sink` what is of this level or below, line by line; one thread at a time."""
    global _level, _sink
    with _one_at_a_time:
        _level, _sink = level, sink


def stop() -> None:
    """Tell nothing more."""
    start(0, _nowhere)


def log(level: int, *lines: str) -> None:
    """Lines that stay together, if so much is wanted; klog's head names the place in our code."""
    if level > _level:
        return
    frame: Any = sys._getframe(1)  # noqa: SLF001 - klog looks at its callers as well
    while frame.f_code.co_filename == log.__code__.co_filename:
        frame = frame.f_back
    place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
    with _one_at_a_time:
        for line in lines:
            now = datetime.now()  # noqa: DTZ005 - the local time, as klog has it
            _sink(f"I{now:%m%d %H:%M:%S.%f} {os.getpid():7} {place}] {line}")


class LoggedRequest:
    """A request that is on its way, to be told once it is known how it ended."""

    def __init__(self, method: str, url: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        if _level < REQUESTS:
            return
        self._what = f"{method} {shown_url(url)}"
        self._began = time.monotonic()
        if _level >= REQUEST_HEADERS:
            log(REQUEST_HEADERS, f"{self._what} with", *_shown_headers(headers))

    def failed(self, why: Exception) -> None:
        """No answer came."""
        if _level >= REQUESTS:
            log(REQUESTS, f"{self._what} failed in {_milliseconds(self._began)}: {why}")

    def answered(self, response: BaseHTTPResponse) -> BaseHTTPResponse:
        """The same response, which tells later how much it brought."""
        if _level < REQUESTS:
            return response
        status = f"{response.status} {response.reason}"
        more = _shown_headers(response.headers.items()) if _level >= RESPONSE_HEADERS else ()
        tls = _tls(response) if _level >= WIRE else ()
        log(REQUESTS, f"{self._what} {status} in {_milliseconds(self._began)}", *more, *tls)
        return cast("BaseHTTPResponse", _LoggedResponse(response, self._what, self._began))


class _LoggedResponse:
    """A response that tells when it is over; everything else is the response's own."""

    def __init__(self, response: BaseHTTPResponse, what: str, began: float) -> None:
        self._response = response
        self._what = what
        self._began = began
        self._is_over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def close(self) -> None:
        """End it, with its connection."""
        self._over()
        self._response.close()

    def release_conn(self) -> None:
        """End it; its connection takes another request."""
        self._over()
        self._response.release_conn()

    def _over(self) -> None:
        if not self._is_over:
            self._is_over = True
            switched = self._response.status == HTTPStatus.SWITCHING_PROTOCOLS
            brought = "ended" if switched else f"brought {self._response.tell()} bytes"
            log(REQUESTS, f"{self._what} {brought} in {_milliseconds(self._began)}")


def shown_url(url: str) -> str:
    """A URL without credentials, and without the values of parameters that are not known to be harmless."""
    try:
        parts = urlsplit(without_credentials(url))
    except ValueError:
        return MASKED
    query = "&".join(map(_shown_parameter, parts.query.split("&"))) if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def shown_header(name: str, value: str) -> str:
    """The value of a header, masked if it is not known to be harmless."""
    lower = name.lower()
    if lower in _SHOWN_HEADERS or lower.startswith(_SHOWN_BEGINNINGS):
        return value
    if lower == "location":
        return shown_url(value)
    scheme, _, rest = value.partition(" ")
    return f"{scheme} {MASKED}" if rest and scheme.lower() in _SCHEMES else MASKED


def milliseconds(seconds: float) -> str:
    """A duration as kubectl writes it."""
    return f"{1000 * seconds:.0f} milliseconds"


def _milliseconds(began: float) -> str:
    return milliseconds(time.monotonic() - began)


def _shown_headers(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"    {name}: {shown_header(name, value)}" for name, value in headers)


def _tls(response: BaseHTTPResponse) -> Iterator[str]:
    """What the connection is encrypted by, unless it was given back already."""
    sock: Any = getattr(response.connection, "sock", None)
    if isinstance(sock, SSLSocket):
        yield f"    {sock.version()} {(sock.cipher() or ['without a cipher'])[0]}"


def _shown_parameter(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return parameter if name in _SHOWN_PARAMETERS else f"{name}={MASKED}"
