"""Why no server answered, in kubectl's words, with a remedy where there is one.

Go's texts are kept where kubectl prints them; two are ours. A proxy that refuses is called a proxy, where
kubectl blames the server behind it; and a certificate for other names is only said not to be valid for ours,
since OpenSSL does not tell its names.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from http.client import BadStatusLine, IncompleteRead, RemoteDisconnected
from typing import Final
from urllib.parse import urlsplit

from kubectl_qos.cluster.access.deadlines import DeadlinePassed
from kubectl_qos.errors import ServerUnreachable

_UNKNOWN_AUTHORITY: Final = frozenset({2, 7, 18, 19, 20, 21})
_NOT_NOW: Final = frozenset({9, 10})
"""Codes of X509_verify_cert: a chain that no CA of ours ends, a certificate before or after its time."""

_HINTS: Final = {
    "signed by unknown authority": "--certificate-authority FILE names the CA of the server's certificate",
    "certificate is not valid for": "--tls-server-name NAME says whose certificate to expect",
    "does not look like a TLS": "does the server speak plain HTTP? then its URL begins with http://",
    "Client.Timeout": "--request-timeout says how long a request may take",
}


def unreachable(error: Exception, server: str) -> ServerUnreachable:
    """Kubectl's sentence for a connection that failed."""
    from urllib3.exceptions import ProxyError

    causes = list(_causes(error))
    socks = next((one for one in causes if type(one).__module__ == "socks"), None)
    by_proxy = socks is not None or isinstance(error, ProxyError)
    if not by_proxy and any(isinstance(one, ConnectionRefusedError) for one in causes):
        return ServerUnreachable(
            f"The connection to the server {server} was refused - did you specify the right host or port?"
        )
    if any(isinstance(one, DeadlinePassed) for one in causes):
        return timed_out("or context cancellation while reading body")
    reached = "the proxy" if by_proxy else server
    why = next(filter(None, (_reason(one, reached) for one in causes)), None) or _one_line(causes[-1])
    if socks is not None:
        why = f"socks connect tcp: {_one_line(socks)}"
    elif by_proxy:
        why = f"proxyconnect tcp: {why}"
    hint = next((hint for words, hint in _HINTS.items() if words in why), "")
    return ServerUnreachable(f"Unable to connect to the server: {why}", hint=hint)


def timed_out(when: str) -> ServerUnreachable:
    """The request timeout is over."""
    return ServerUnreachable(
        f"Unable to connect to the server: net/http: request canceled (Client.Timeout {when})",
        hint=_HINTS["Client.Timeout"],
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

    if isinstance(error, ssl.SSLError):
        return _tls_reason(error)
    if isinstance(error, NameResolutionError):
        return f"dial tcp: lookup {urlsplit(f'//{server}').hostname}: no such host"
    if isinstance(error, ReadTimeoutError):
        return f"read tcp {server}: i/o timeout"
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        return f"dial tcp {server}: i/o timeout"
    if isinstance(error, RemoteDisconnected):
        return "EOF"
    if isinstance(error, BadStatusLine):
        return f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{_one_line(error)}"'
    if isinstance(error, IncompleteRead):
        return "unexpected EOF"
    if isinstance(error, OSError) and error.strerror:
        broken = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
        return f"{'read' if broken else 'dial'} tcp {server}: {error.strerror.lower()}"
    return ""


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate_trouble(error)}"
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    reason = (error.reason or "").upper()
    if reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}:
        return "tls: first record does not look like a TLS handshake"
    alert = re.fullmatch(r"(?:TLSV\d+|SSLV3)_ALERT_(\w+)", reason)
    if alert:
        return f"remote error: tls: {alert[1].replace('_', ' ').lower()}"
    return f"tls: {reason.replace('_', ' ').lower() or _one_line(error)}"


def _certificate_trouble(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code in _NOT_NOW:
        return "certificate has expired or is not yet valid"
    name = re.search(r"not valid for '(.*)'", error.verify_message)
    return f"certificate is not valid for {name[1]}" if name else error.verify_message


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
