"""A command to run in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)
