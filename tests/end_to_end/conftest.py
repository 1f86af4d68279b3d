"""A command to run, and servers to run it against."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.serving import authority, serve
from tests.end_to_end.command import Run

__all__ = ["authority", "serve"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)
