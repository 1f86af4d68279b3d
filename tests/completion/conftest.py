"""Servers to complete names from."""

from pathlib import Path

import pytest

from tests.cluster.serving import authority, serve
from tests.completion.installed import Bin

__all__ = ["authority", "serve"]


@pytest.fixture
def installed(tmp_path: Path) -> Bin:
    return Bin(tmp_path)
