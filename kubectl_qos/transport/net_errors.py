"""Request timeouts, kubectl's sentences for servers that do not answer, and the warnings of a response."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.client import BadStatusLine, IncompleteRead, RemoteDisconnected
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kubectl_qos.errors import InputError, ServerUnreachable, UsageError
from kubectl_qos.k8s.quantity import parse_duration

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_READ_BYTES: Final = 1 << 16


class DeadlinePassed(TimeoutError):
    """The request timeout ended before the whole body had arrived."""


def parse_timeout(duration: str | None) -> float | None:
    """Return --request-timeout in seconds; None for no limit, as for zero and less. Raises UsageError."""
    if not duration:
        return None
    if re.fullmatch(r"\+?[0-9]+", duration):
        return float(duration) or None
    try:
        seconds = parse_duration(duration) / 1e9
    except InputError:
        raise UsageError(
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a"
            " corresponding time unit (e.g. 1s | 2m | 3h)"
        ) from None
    return seconds if seconds > 0 else None


def set_read_timeout(response: BaseHTTPResponse, seconds: float) -> None:
    """Set the timeout for each further read: how long the server may be silent."""
    sock = getattr(response.connection, "sock", None)
    if sock is not None:
        sock.settimeout(seconds)


class BoundedResponse:
    """A response whose whole body must arrive by a deadline (`time.monotonic`), however slowly it is sent."""

    def __init__(self, response: BaseHTTPResponse, deadline: float) -> None:
        self._response = response
        self._deadline = deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """Return the result of one read of the socket. Raises DeadlinePassed."""
        from urllib3.exceptions import ReadTimeoutError

        left = self._deadline - time.monotonic()
        with suppress(ReadTimeoutError):
            if left > 0:
                set_read_timeout(self._response, left)
                return self._response.read1(amt, decode_content=decode_content)
        # Otherwise the rest of this body would be read as the next response.
        self._response.close()
        raise DeadlinePassed

    def read(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """Return `amt` bytes, or all of the body; fewer only at its end. Raises DeadlinePassed."""
        parts: list[bytes] = []
        missing = amt
        while missing is None or missing > 0:
            part = self.read1(min(missing or _READ_BYTES, _READ_BYTES), decode_content)
            if not part:
                break
            parts.append(part)
            missing = None if missing is None else missing - len(part)
        return b"".join(parts)


_UNKNOWN_AUTHORITY: Final = frozenset({2, 7, 18, 19, 20, 21})
_WRONG_TIME: Final = frozenset({9, 10})
"""Codes of X509_verify_cert for a certificate that is not yet or no longer valid."""

_HINTS: Final = {
    "signed by unknown authority": "--certificate-authority FILE names the CA of the server's certificate",
    "certificate is not valid for": "--tls-server-name NAME says which name the certificate must have",
    "does not look like a TLS": "does the server speak plain HTTP? then its URL begins with http://",
    "Client.Timeout": "--request-timeout says how long a request may take",
}


def unreachable_error(error: Exception, server: str) -> ServerUnreachable:
    """Return an error with kubectl's sentence for a connection that failed."""
    from urllib3.exceptions import ProxyError

    chain = list(causes(error))
    socks = next((cause for cause in chain if type(cause).__module__ == "socks"), None)
    is_proxy = socks is not None or isinstance(error, ProxyError)
    if not is_proxy and any(isinstance(cause, ConnectionRefusedError) for cause in chain):
        return ServerUnreachable(
            f"The connection to the server {server} was refused - did you specify the right host or port?"
        )
    if any(isinstance(cause, DeadlinePassed) for cause in chain):
        return timeout_error("or context cancellation while reading body")
    peer = "the proxy" if is_proxy else server
    reason = next(filter(None, (_reason(cause, peer) for cause in chain)), None) or _one_line(chain[-1])
    if socks is not None:
        reason = f"socks connect tcp: {_one_line(socks)}"
    elif is_proxy:
        reason = f"proxyconnect tcp: {reason}"
    return connection_error(reason)


def timeout_error(detail: str) -> ServerUnreachable:
    """Return the error for a request that exceeded its timeout."""
    return connection_error(f"net/http: request canceled (Client.Timeout {detail})")


def is_read_timeout(error: Exception) -> bool:
    """Return whether the server accepted the connection, but sent nothing in time."""
    from urllib3.exceptions import ReadTimeoutError

    return any(isinstance(cause, DeadlinePassed | ReadTimeoutError) for cause in causes(error))


def connection_error(reason: str) -> ServerUnreachable:
    """Return an error with kubectl's sentence, and a remedy for the most frequent reasons."""
    hint = next((hint for words, hint in _HINTS.items() if words in reason), "")
    return ServerUnreachable(f"Unable to connect to the server: {reason}", hint)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, down to the first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _reason(error: BaseException, server: str) -> str:
    from urllib3 import exceptions

    if isinstance(error, ssl.SSLError):
        return _tls_reason(error)
    if isinstance(error, exceptions.NameResolutionError):
        return f"dial tcp: lookup {urlsplit(f'//{server}').hostname}: no such host"
    if isinstance(error, exceptions.ReadTimeoutError):
        return f"read tcp {server}: i/o timeout"
    is_timeout = isinstance(error, exceptions.ConnectTimeoutError)
    if is_timeout and not isinstance(error, exceptions.NewConnectionError):
        return f"dial tcp {server}: i/o timeout"
    if isinstance(error, RemoteDisconnected):
        return "EOF"
    if isinstance(error, BadStatusLine):
        return f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{_one_line(error)}"'
    if isinstance(error, IncompleteRead):
        return "unexpected EOF"
    if isinstance(error, OSError) and error.strerror:
        was_open = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
        return f"{'read' if was_open else 'dial'} tcp {server}: {error.strerror.lower()}"
    return ""


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _UNKNOWN_AUTHORITY:
            reason = "certificate signed by unknown authority"
        elif error.verify_code in _WRONG_TIME:
            reason = "certificate has expired or is not yet valid"
        else:
            name = re.search(r"not valid for '(.*)'", error.verify_message)
            reason = f"certificate is not valid for {name[1]}" if name else error.verify_message
        return f"tls: failed to verify certificate: x509: {reason}"
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    reason = (error.reason or "").upper()
    if reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}:
        return "tls: first record does not look like a TLS handshake"
    alert = re.fullmatch(r"(?:TLSV\d+|SSLV3)_ALERT_(\w+)", reason)
    if alert:
        return f"remote error: tls: {alert[1].replace('_', ' ').lower()}"
    return f"tls: {reason.replace('_', ' ').lower() or _one_line(error)}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def parse_warnings(values: Iterable[str]) -> tuple[str, ...]:
    """Return the texts of Warning headers, each once, on one line and without unprintable characters."""
    texts = (re.sub(r"\\(.)", r"\1", quoted) for value in values for quoted in _WARNING.findall(value))
    printable = ("".join(sign if sign.isprintable() else " " for sign in text) for text in texts)
    return tuple(dict.fromkeys(" ".join(text.split()) for text in printable))
