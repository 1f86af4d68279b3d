"""Connections to servers on loopback; nothing of the machine's own configuration is seen."""

from collections.abc import Callable

import pytest

from kubectl_qos.cluster import http
from tests.cluster.following import follow
from tests.cluster.serving import ConnectTo, authority, connect_to, own_home, serve

__all__ = ["ConnectTo", "authority", "connect_to", "follow", "own_home", "serve"]


PageSize = Callable[[int], None]


@pytest.fixture
def page_size(monkeypatch: pytest.MonkeyPatch) -> PageSize:
    """Set how many items a page has."""
    return lambda size: monkeypatch.setattr(http, "PAGE_SIZE", size)


@pytest.fixture(autouse=True)
def _own_home(own_home: None) -> None:
    pass
