"""Pools of connections to a server, through a proxy where there is one."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from kubectl_qos.transport import logging as log
from kubectl_qos.transport.proxy import find_proxy, without_credentials

if TYPE_CHECKING:
    from urllib3 import PoolManager

MAX_CONNECTIONS: Final = 12
"""Kept open: three watches and eight short requests, with one to spare."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_SOCKET_OPTIONS: Final = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # Seconds of silence before probes, and between them; macOS calls the first TCP_KEEPALIVE. A watch may be
    # silent for long, and nothing else would notice that its peer is gone.
    *((socket.IPPROTO_TCP, getattr(socket, n), v) for n, v in _KEEPALIVE.items() if hasattr(socket, n)),
]


def pool_manager(
    url: str, context: ssl.SSLContext | None, *, server_name: str | None = None, proxy: str | None = None
) -> PoolManager:
    """Connections to a server, by the configured `proxy` or that of the environment. Raises QosError."""
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
