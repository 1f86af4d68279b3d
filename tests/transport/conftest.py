"""Connections to servers on loopback; nothing of the machine's own configuration is seen."""

import pytest

from tests.cluster.serving import authority, connect_to, own_home, serve

__all__ = ["authority", "connect_to", "own_home", "serve"]


@pytest.fixture(autouse=True)
def _own_home(own_home: None) -> None:
    pass
