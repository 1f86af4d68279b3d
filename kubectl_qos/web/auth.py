"""Authentication: who has the token, under a name that is ours, from a page that is ours.

Any page that a person looks at can send requests to their loopback ports, and so can every other user of the
machine. The token keeps out whoever does not have it, the Host header those that had their own name point at
us (DNS rebinding), the Origin header pages of others that connect with the person's cookie.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[0-9a-z._-]+)(:(?P<port>[0-9]{1,5}))?")


class Authenticator:
    """The authentication of one server.

    Args:
        address: what it was told to listen on, an IP address or a name.
        port: where it listens.
        names: further names that it goes by, each `NAME` or `NAME:PORT`.
    """

    def __init__(self, address: str, port: int, names: Iterable[str] = ()) -> None:
        self._address = address.lower()
        self._port = port
        self._names = {name.lower() for name in names}
        self._token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()
        self.cookie = f"kubectl-qos-{port}"
        """The cookie's name; cookies are shared by all ports of a host."""

    def url(self) -> str:
        """The address of the page with the token, which a person keeps."""
        return self._url(self._token)

    def url_for_once(self) -> str:
        """The same with a ticket in place of the token, for a command line that other users can see."""
        ticket = secrets.token_urlsafe(32)
        self._tickets.add(ticket)
        return self._url(ticket)

    def _url(self, token: str) -> str:
        ip = _ip(self._address)
        name = "localhost" if ip is not None and ip.is_unspecified else self._address
        return f"http://{f'[{name}]' if ':' in name else name}:{self._port}/?token={token}"

    def cookie_for(self, token: str) -> str | None:
        """The value of the cookie in exchange for the token or a ticket; None for anything else."""
        ticket = next((one for one in self._tickets if _same(one, token)), None)
        if ticket is not None:
            self._tickets.discard(ticket)
        return self._token if ticket is not None or _same(token, self._token) else None

    def knows(self, cookie: str | None) -> bool:
        """Whether this is the value of our cookie."""
        return cookie is not None and _same(cookie, self._token)

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names us.

        Loopback addresses may have any port, as that of an SSH tunnel: nobody can make them point elsewhere.
        """
        place = _HOST.fullmatch(host.lower())
        if place is None:
            return False
        name, port = place["name"].strip("[]"), int(place["port"] or 80)
        if self._names & {name, host.lower()}:
            return True
        ip = _ip(name)
        if name == "localhost" or (ip is not None and ip.is_loopback):
            return True
        own = _ip(self._address)
        is_ours = (
            name == self._address if own is None else ip is not None and (own.is_unspecified or ip == own)
        )
        return is_ours and port == self._port


def is_same_origin(origin: str | None, host: str) -> bool:
    """Whether an Origin header is that of a page of this host; browsers send it with every WebSocket."""
    scheme, _, place = (origin or "").lower().partition("://")
    return scheme in {"http", "https"} and place == host.lower()


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine reach this IP address."""
    ip = _ip(address)
    return ip is not None and ip.is_loopback


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
