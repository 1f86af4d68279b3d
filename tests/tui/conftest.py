"""The same looks and behaviour on every machine: no blinking, no animation, nothing from the environment."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import pytest_textual_snapshot
from syrupy.location import PyTestLocation
from textual import constants
from textual.widgets import Input

from kubectl_qos.tui import live

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots" / "tui"


class TopLevelSvg(pytest_textual_snapshot.SVGImageExtension):  # type: ignore[misc]
    """Pictures lie in the top-level folder, by the name of their test module."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(SNAPSHOTS / test_location.basename)


@pytest.fixture(autouse=True)
def _one_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "COLORTERM", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in (
        ("TEXTUAL_ANIMATIONS", "none"),
        ("COLOR_SYSTEM", "truecolor"),
        ("FILTERS", ""),
        ("DRIVER", None),
        ("SMOOTH_SCROLL", False),
    ):
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda _: None)
    monkeypatch.setattr(pytest_textual_snapshot, "SVGImageExtension", TopLevelSvg)


@pytest.fixture(autouse=True)
def _garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The UI looks for garbage rarely, as there is one in a process; here every test starts another."""
    monkeypatch.setattr(live, "gc", Mock(spec=gc, get_threshold=gc.get_threshold))
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
