"""Pools of connections, direct or by a proxy; the one place that sets sockets up.

Not here: which proxy (proxy.py), whom to trust (tls.py), what is sent.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from kubectl_qos.cluster.access import log
from kubectl_qos.cluster.access.proxy import proxy_of, without_credentials

if TYPE_CHECKING:
    from urllib3 import PoolManager

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
    found = proxy_of(url, proxy)
    way = f"by the proxy {without_credentials(found)}" if found else "without a proxy"
    log.say(log.WIRE, f"{log.shown_url(url)} is reached {way}")
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
