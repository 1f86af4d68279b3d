"""The same looks and behaviour on every machine: no blinking, no animation, nothing from the environment."""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import textual.app
import textual.pilot
from pytest_textual_snapshot import PseudoApp, PseudoConsole, node_to_report_path, normalize_svg
from textual import constants
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.widgets import Input

from kubectl_qos.tui import follower
from tests.tui.idle import at_rest

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots" / "tui"


Size = tuple[int, int]
Picture = Callable[..., Awaitable[None]]


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Picture:
    """Compare the screen with its picture in snapshots/tui; --snapshot-update renews it.

    The picture is called by the name, the variant and the size. With `sizes` there is one for each, and the
    terminal has the first one again.
    """

    async def compare(pilot: Pilot[Any], name: str, variant: str = "", *, sizes: Iterable[Size] = ()) -> None:
        wanted: list[Size | None] = [*sizes] or [None]
        for size in wanted:
            if size is not None and size != pilot.app.size:
                await pilot.resize_terminal(*size)
            await pilot.pause()
            assert pilot.app.screen.max_scroll_y == 0, "a screen, and a dialog, fits the terminal"
            called = "-".join(filter(None, (variant, "{}x{}".format(*size) if size else "")))
            path = (
                SNAPSHOTS
                / request.path.stem
                / (f"test_{name}[{called}].svg" if called else f"test_{name}.svg")
            )
            before = normalize_svg(path.read_text(encoding="utf-8")) if path.exists() else ""
            is_renewed = request.config.option.update_snapshots
            expected = before
            for _ in range(20):  # A scroll bar may follow its content a moment later.
                now = normalize_svg(pilot.app.export_screenshot(simplify=True))
                if now == expected:
                    break
                if is_renewed:
                    expected = now
                await pilot.pause(0.05)
            if is_renewed:
                path.write_text(now, encoding="utf-8", newline="\n")
            elif before != now:
                _report(request.node, path.stem, before, now)
                pytest.fail(f"{path.name} differs: see snapshot_report.html")
        if wanted[0] is not None and wanted[0] != pilot.app.size:
            await pilot.resize_terminal(*wanted[0])
            await pilot.pause()

    return compare


def _report(node: pytest.Item, name: str, before: str, now: str) -> None:
    """What the plugin shows side by side at the end."""
    app = PseudoApp(PseudoConsole(legacy_windows=False, size=(80, 24)))
    path, line, _ = node.reportinfo()
    data = False, before, now, app, path, line, name, "", "", True
    report = node_to_report_path(node)
    report.with_name(f"{report.name}_{name}").write_bytes(pickle.dumps(data))


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
    for owner, wait in ((textual.app, "wait_for_idle"), (textual.pilot, "wait_for_idle")):
        monkeypatch.setattr(owner, wait, at_rest)
    monkeypatch.setattr(Pilot, "_wait_for_screen", at_rest)


@pytest.fixture(autouse=True, scope="session")
def _styles_are_parsed_once() -> Iterator[None]:
    """Every application reads the same style sheets, and reads all again at each of its first screens."""
    if os.environ.get("QOS_MONKEY_SECONDS"):  # It measures memory.
        yield
        return
    parse = Stylesheet._parse_rules
    parsed: dict[Any, Any] = {}

    def parse_once(styles: Stylesheet, *source: Any, **named: Any) -> Any:
        key = *source, *named.values(), *styles._variables.items()
        if key not in parsed:
            parsed[key] = parse(styles, *source, **named)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def _garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The UI looks for garbage rarely, as there is one in a process; here every test starts another."""
    monkeypatch.setattr(follower, "gc", Mock(spec=gc, get_threshold=gc.get_threshold))
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
