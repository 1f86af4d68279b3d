"""What several of these tests need of the machine."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def unpack_all(archive: tarfile.TarFile, folder: Path) -> None:
    """Filters came with 3.11.4; later versions warn where none is named."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)
