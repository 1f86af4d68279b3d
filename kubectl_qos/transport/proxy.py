"""Which proxy leads to a server, decided as kubectl decides it: the kubeconfig's, else the environment's.

Source: golang.org/x/net/http/httpproxy (NO_PROXY with names, domains, addresses and CIDR blocks).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from kubectl_qos.errors import QosError

SCHEMES: Final = ("http", "https", "socks5")
"""What a kubeconfig may name; the environment may say socks5h too."""

_Address = IPv4Address | IPv6Address


def find_proxy(url: str, configured: str | None, environment: Mapping[str, str] | None = None) -> str | None:
    """The proxy's URL, None for a direct connection. Raises QosError for a kind that we cannot speak.

    A host behind a SOCKS proxy is looked up by the proxy, as Go does it, whatever the scheme's letters say.
    """
    found = configured or _from_environment(url, os.environ if environment is None else environment)
    if not found:
        return None
    if "://" not in found:
        found = f"http://{found}"
    trouble = proxy_problem(found.replace("socks5h://", "socks5://", 1))
    if trouble:
        raise QosError(
            f'invalid proxy address "{without_credentials(found)}": {trouble}',
            hint="name an http, https or socks5 proxy, or list the server in NO_PROXY",
        )
    return found.replace("socks5://", "socks5h://", 1)


def proxy_problem(proxy: str) -> str:
    """What client-go says of a kubeconfig's proxy-url that it refuses, empty for one that it takes.

    Source: k8s.io/client-go/tools/clientcmd/helpers.go parseProxyURL.
    """
    try:
        parts = urlsplit(proxy)
        _ = parts.port
    except ValueError:
        return f"could not parse: {without_credentials(proxy)}"
    if parts.scheme not in SCHEMES:
        return f'unsupported scheme "{parts.scheme}", must be http, https, or socks5'
    return ""


def without_credentials(url: str) -> str:
    """A URL, or what was meant to be one, without the name and password before its host."""
    return re.sub(r"^([^/@]*://)?.*@", r"\1", url, flags=re.DOTALL)


def _from_environment(url: str, variables: Mapping[str, str]) -> str | None:
    parts = urlsplit(url)
    name = f"{parts.scheme}_proxy"
    exceptions = variables.get("NO_PROXY") or variables.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _is_direct(parts.hostname or "", port, exceptions):
        return None
    return variables.get(name.upper()) or variables.get(name)


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    """Whether a host is reached without the proxy; this machine always is."""
    host = host.lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for pattern in exceptions.lower().replace(" ", "").split(","):
        name, _, wanted_port = pattern.rpartition(":")
        if name and ":" not in name and wanted_port.isdigit():
            if int(wanted_port) == port and _matches(host, address, name):
                return True
        elif pattern and _matches(host, address, pattern):
            return True
    return False


def _matches(host: str, address: _Address | None, pattern: str) -> bool:
    """`example.com` means the name and all below it, `.example.com` and `*.example.com` only those below."""
    if pattern == "*":
        return True
    if address is not None:
        try:
            return address in ip_network(pattern, strict=False)
        except ValueError:
            return False
    pattern = pattern.removeprefix("*")
    return host.endswith(pattern) if pattern.startswith(".") else f".{host}".endswith(f".{pattern}")


def _address(host: str) -> _Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
