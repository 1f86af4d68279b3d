"""The same looks and behaviour on every machine: no blinking, no animation, nothing from the environment."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_textual_snapshot
from syrupy.location import PyTestLocation
from textual import constants
from textual.widgets import Input

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
def _nothing_is_kept() -> Iterator[None]:
    """A UI never collects what it began with; in a process of many of them that would be kept for ever."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
