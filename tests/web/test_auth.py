"""Who is let in, by token, by name and by origin."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from kubectl_qos.web.server import Authenticator, is_loopback, is_same_origin

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def token_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


@pytest.mark.parametrize(
    ("table", "address", "names", "host"),
    [(table, *row) for table in ("own", "foreign") for row in TABLES[table]],
)
def test_a_name_is_ours_or_is_not(table: str, address: str, names: tuple[str, ...], host: str) -> None:
    assert Authenticator(address, 8767, names).has_host(host) is (table == "own")


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


@pytest.mark.parametrize(("address", "start"), TABLES["urls"])
def test_the_url_is_one_that_a_browser_here_opens(address: str, start: str) -> None:
    assert Authenticator(address, 8767).url().startswith(start)


@pytest.mark.parametrize(("origin", "is_own"), TABLES["origins"])
def test_an_origin(origin: str | None, *, is_own: bool) -> None:
    assert is_same_origin(origin, "localhost:8767") is is_own


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.168.1.5")
