"""The same looks and behaviour on every machine: no blinking, no animation, nothing from the environment."""

from __future__ import annotations

import gc
import os
import pickle
import re
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
import textual.app
import textual.pilot
from pytest_textual_snapshot import PseudoApp, PseudoConsole, node_to_report_path, normalize_svg
from textual import constants
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from kubectl_qos.tui import follower
from tests.tui.idle import at_rest, paint_at_rest
from tests.tui.screen_texts import ScreenTexts

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots" / "tui"


Picture = Callable[..., Awaitable[None]]
Look = Callable[..., Awaitable[None]]
FAILED = pytest.StashKey[bool]()


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Picture:
    """Compare the screen with its picture in snapshots/tui; --snapshot-update renews it."""

    async def compare(pilot: Pilot[Any], name: str) -> None:
        await pilot.pause()
        path = SNAPSHOTS / request.path.stem / f"{name}.svg"
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

    return compare


@pytest.fixture
def screen_texts(request: pytest.FixtureRequest) -> Iterator[ScreenTexts]:
    """Screens as text; the file is called by the test, and --snapshot-update renews it."""
    name = re.sub("[^a-z0-9]+", "_", request.node.name.removeprefix("test_")).strip("_")
    path = SNAPSHOTS / request.path.stem / f"{name}.txt"
    texts = ScreenTexts(path, is_renewed=request.config.option.update_snapshots)
    yield texts
    if not request.node.stash.get(FAILED, False):
        texts.finish()


@pytest.fixture
def screen_text(screen_texts: ScreenTexts) -> Look:
    """Compare the screen as text: of a name, a variant, and in each of some sizes."""
    return screen_texts.look


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


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
    monkeypatch.setattr(Screen, "_compositor_refresh", paint_at_rest)


@pytest.fixture(autouse=True, scope="session")
def _styles_are_parsed_once() -> Iterator[None]:
    """Every application reads the same style sheets, and reads all again at each of its first screens."""
    if os.environ.get("QOS_MONKEY_SECONDS"):  # It measures memory.
        yield
        return
    parse_rules, parse = Stylesheet._parse_rules, Stylesheet.parse
    parsed_rules: dict[Any, Any] = {}
    parsed: dict[Any, tuple[Any, Any]] = {}

    def parse_rules_once(styles: Stylesheet, *source: Any, **named: Any) -> Any:
        key = *source, *named.values(), *styles._variables.items()
        if key not in parsed_rules:
            parsed_rules[key] = parse_rules(styles, *source, **named)
        return parsed_rules[key]

    def parse_once(styles: Stylesheet) -> None:
        key = *styles.source.items(), *styles._variables.items()
        if styles._invalid_css or key not in parsed:
            parse(styles)
            parsed[key] = styles.rules, styles.rules_map
        styles._rules, styles._rules_map = parsed[key]
        styles._require_parse = False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_rules_once)
        patch.setattr(Stylesheet, "parse", parse_once)
        patch.setattr(Stylesheet, "apply", apply_matched)
        # Every widget looks up all rules in a set; that of Python itself is the same, without a call.
        patch.setattr(RuleSet, "__hash__", object.__hash__)
        yield


MATCHED: Final[dict[Any, tuple[RulesMap, tuple[bool, ...]]]] = {}
apply_rules: Final = Stylesheet.apply
STYLED: Final = "_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even"


def styled_as(styles: Stylesheet, node: DOMNode) -> tuple[Any, ...]:
    """What rules a widget matches depends on it, what it is in, and the modes of the application."""
    app = node.app
    modes = app.app_focus, app.current_theme.dark, app.native_ansi_color, app.no_color, app.is_inline
    path = [
        (type(above), above._id, frozenset(above._classes), above._pseudo_classes_cache_key)
        for above in node.css_path_nodes
    ]
    return id(styles.rules), modes, *path


def apply_matched(styles: Stylesheet, node: DOMNode, *, animate: bool = False, cache: Any = None) -> None:
    """Stand in for `Stylesheet.apply`, with the rules that a widget like this one has matched before."""
    key = styled_as(styles, node)
    if key not in MATCHED:
        found: dict[Any, RulesMap] = {}
        apply_rules(styles, node, animate=animate, cache=found)
        if found:  # What it matches depends on more, and Textual asks no cache, otherwise.
            MATCHED[key] = next(iter(found.values())), tuple(getattr(node, name) for name in STYLED)
    elif getattr(node, "styled_as", None) != key:
        rules, values = MATCHED[key]
        for name, value in zip(STYLED, values, strict=True):
            setattr(node, name, value)
        styles.replace_rules(node, rules, animate=animate)
        styles._process_component_classes(node)
    vars(node)["styled_as"] = key


@pytest.fixture(autouse=True)
def _garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The UI looks for garbage rarely, as there is one in a process; here every test starts another."""
    monkeypatch.setattr(follower, "gc", Mock(spec=gc, get_threshold=gc.get_threshold))
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
