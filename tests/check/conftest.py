"""A command to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / ".git").mkdir()  # settings of folders above are of no repository of this test
    return Run(tmp_path)
