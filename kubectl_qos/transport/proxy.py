"""Find the proxy for a server as kubectl does: in the kubeconfig, else in the environment.

Source: golang.org/x/net/http/httpproxy (NO_PROXY with names, domains, addresses and CIDR blocks).
"""

import os
import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from kubectl_qos.errors import QosError

SCHEMES: Final = ("http", "https", "socks5")
"""The schemes that a kubeconfig may name; the environment may name socks5h too."""


def find_proxy(url: str, configured: str | None) -> str | None:
    """Return the URL of the proxy, or None. Raises QosError.

    SOCKS proxies resolve the host's name themselves, as in Go.
    """
    proxy = configured or _proxy_from_environment(url)
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    problem = proxy_problem(proxy.replace("socks5h://", "socks5://", 1))
    if problem:
        raise QosError(
            f'invalid proxy address "{without_credentials(proxy)}": {problem}',
            hint="name an http, https or socks5 proxy, or list the server in NO_PROXY",
        )
    return proxy.replace("socks5://", "socks5h://", 1)


def proxy_problem(proxy: str) -> str:
    """Return the reason why client-go refuses a proxy-url (clientcmd/helpers.go parseProxyURL), or ""."""
    try:
        parts = urlsplit(proxy)
        _ = parts.port
    except ValueError:
        return f"could not parse: {without_credentials(proxy)}"
    if parts.scheme not in SCHEMES:
        return f'unsupported scheme "{parts.scheme}", must be http, https, or socks5'
    return ""


def without_credentials(url: str) -> str:
    """Return a URL, valid or not, without the name and password before its host."""
    return re.sub(r"^([^/@]*://)?.*@", r"\1", url, flags=re.DOTALL)


def _proxy_from_environment(url: str) -> str | None:
    parts = urlsplit(url)
    exceptions = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _is_direct(parts.hostname or "", port, exceptions):
        return None
    name = f"{parts.scheme}_proxy"
    return os.environ.get(name.upper()) or os.environ.get(name)


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    host = host.lower().rstrip(".")
    address: IPv4Address | IPv6Address | None = None
    with suppress(ValueError):
        address = ip_address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for pattern in exceptions.lower().replace(" ", "").split(","):
        name, _, expected_port = pattern.rpartition(":")
        if name and ":" not in name and expected_port.isdigit():
            if int(expected_port) == port and _matches(host, address, name):
                return True
        elif pattern and _matches(host, address, pattern):
            return True
    return False


def _matches(host: str, address: IPv4Address | IPv6Address | None, pattern: str) -> bool:
    """Match a host: `example.com` matches itself and subdomains, `.example.com` and `*.` only subdomains."""
    if pattern == "*":
        return True
    if address is not None:
        try:
            return address in ip_network(pattern, strict=False)
        except ValueError:
            return False
    pattern = pattern.removeprefix("*")
    return host.endswith(pattern) if pattern.startswith(".") else f".{host}".endswith(f".{pattern}")
