"""Who is let in, by token, by name and by origin."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from kubectl_qos.web.server import Authenticator, is_loopback, is_same_origin


def token_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


@pytest.mark.parametrize(
    ("address", "names", "host"),
    [
        ("127.0.0.1", (), "127.0.0.1:8767"),
        ("127.0.0.1", (), "localhost:8767"),
        ("127.0.0.1", (), "LOCALHOST:8767"),
        ("127.0.0.1", (), "[::1]:8767"),
        ("127.0.0.1", (), "localhost:9000"),
        ("127.0.0.1", (), "localhost"),
        ("127.0.0.1", ("qos.example.com",), "qos.example.com"),
        ("127.0.0.1", ("QOS.example.com",), "qos.Example.com:444"),
        ("127.0.0.1", ("qos.example.com:444",), "qos.example.com:444"),
        ("10.0.0.5", (), "10.0.0.5:8767"),
        ("10.0.0.5", (), "localhost:9000"),
        ("0.0.0.0", (), "10.0.0.5:8767"),
        ("::", (), "[fd00::5]:8767"),
        ("box", (), "box:8767"),
    ],
)
def test_a_name_that_is_ours(address: str, names: tuple[str, ...], host: str) -> None:
    assert Authenticator(address, 8767, names).has_host(host)


@pytest.mark.parametrize(
    ("address", "names", "host"),
    [
        ("127.0.0.1", (), ""),
        ("127.0.0.1", (), "evil.example.com:8767"),
        ("127.0.0.1", (), "localhost.evil.example.com:8767"),
        ("127.0.0.1", (), "127.0.0.1.evil.example.com:8767"),
        ("127.0.0.1", (), "evil@localhost.evil:8767"),
        ("127.0.0.1", (), "10.0.0.5:8767"),
        ("127.0.0.1", (), "localhost:a"),
        ("127.0.0.1", (), "localhost:999999"),
        ("127.0.0.1", (), "localhost/"),
        ("127.0.0.1", (), "localhost; script-src *"),
        ("127.0.0.1", (), "[::1"),
        ("127.0.0.1", ("qos.example.com:444",), "qos.example.com:445"),
        ("127.0.0.1", ("qos.example.com",), "a.qos.example.com"),
        ("10.0.0.5", (), "10.0.0.6:8767"),
        ("10.0.0.5", (), "10.0.0.5:8768"),
        ("0.0.0.0", (), "evil.example.com:8767"),
        ("box", (), "other:8767"),
    ],
)
def test_a_name_that_is_not(address: str, names: tuple[str, ...], host: str) -> None:
    assert not Authenticator(address, 8767, names).has_host(host)


def test_the_token_and_nothing_else_gives_the_cookie() -> None:
    authenticator, other = Authenticator("127.0.0.1", 1), Authenticator("127.0.0.1", 1)
    token = token_of(authenticator.url())
    assert len(token) >= 43
    assert authenticator.has_cookie(authenticator.cookie_for(token))
    assert authenticator.has_cookie(authenticator.cookie_for(token))
    for wrong in ("", token[:-1], f"{token}x", token_of(other.url()), "ü", "\udc80"):
        assert authenticator.cookie_for(wrong) is None
        assert not authenticator.has_cookie(wrong)
    assert not authenticator.has_cookie(None)


def test_a_ticket_is_good_for_once() -> None:
    authenticator = Authenticator("127.0.0.1", 1)
    ticket = token_of(authenticator.one_time_url())
    assert not authenticator.has_cookie(ticket)
    assert authenticator.has_cookie(authenticator.cookie_for(ticket))
    assert authenticator.cookie_for(ticket) is None


@pytest.mark.parametrize(
    ("address", "start"),
    [
        ("127.0.0.1", "http://127.0.0.1:8767/?token="),
        ("::1", "http://[::1]:8767/?token="),
        ("0.0.0.0", "http://localhost:8767/?token="),
        ("box", "http://box:8767/?token="),
    ],
)
def test_the_url_is_one_that_a_browser_here_opens(address: str, start: str) -> None:
    assert Authenticator(address, 8767).url().startswith(start)


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        ("http://localhost:8767", True),
        ("https://localhost:8767", True),
        ("HTTP://LOCALHOST:8767", True),
        (None, False),
        ("", False),
        ("null", False),
        ("http://localhost:8768", False),
        ("http://localhost", False),
        ("http://evil.example.com", False),
        ("http://localhost:8767.evil.example.com", False),
        ("file://localhost:8767", False),
    ],
)
def test_an_origin(origin: str | None, *, is_own: bool) -> None:
    assert is_same_origin(origin, "localhost:8767") is is_own


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.168.1.5")
