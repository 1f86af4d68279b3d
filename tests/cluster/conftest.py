"""Connections to servers on loopback; nothing of the machine's own configuration is seen."""

from __future__ import annotations

import pytest

from tests.cluster.following import follow
from tests.cluster.serving import ConnectTo, authority, connect_to, own_home, serve

__all__ = ["ConnectTo", "authority", "connect_to", "follow", "own_home", "serve"]


@pytest.fixture(autouse=True)
def _own_home(own_home: None) -> None:
    pass
