"""With the filter nothing but ASCII is painted, on any screen, and everything stays where it was."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from unicodedata import east_asian_width

import pytest
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.style import Style
from textual._border import BORDER_CHARS
from textual.color import Color
from textual.filter import LineFilter
from textual.scrollbar import ScrollBarRender

import kubectl_qos
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import ConfirmDialog
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.themes import AsciiFilter, needs_ascii, plain
from tests.tui.sources import Run, running

BARS = "█▓▒░"
SPARKLINE = "▁▂▃▄▅▆▇█"


@pytest.fixture
def _in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    found = QosApp.get_line_filters
    ascii_filter = AsciiFilter()

    def with_ascii(app: QosApp) -> Sequence[LineFilter]:
        return [*found(app), ascii_filter]

    monkeypatch.setattr(QosApp, "get_line_filters", with_ascii)


def painted(pilot: Run) -> list[str]:
    """The lines of the whole terminal."""
    strips = pilot.app.screen._compositor.render_strips()
    return ["".join(strip.text for strip in line) for line in strips]


ROADS = [
    (),
    *((key,) for key in "devuxtwn12345"),
    *((key,) for key in ("question_mark", "slash", "colon", "tab", "enter", "ctrl+p")),
    ("e", "tab", "9", "ctrl+s"),
    ("e", "tab", "9", "escape"),
    ("slash", *"web", "enter"),
    ("colon", *"nodes", "tab"),
    ("u", *"release=1.37"),
    ("v", "x"),
    ("d", "z"),
]


def test_every_sign_of_the_product_is_known() -> None:
    package = Path(kubectl_qos.__file__).parent
    signs = {sign for path in package.rglob("*.py") for sign in path.read_text(encoding="utf-8")}
    signs -= {
        sign for sign in signs if east_asian_width(sign) == "F"
    }  # Written in names, and in nothing else.
    assert [sign for sign in signs - {"?"} if "?" in plain(sign) and not sign.isalpha()] == []


@pytest.mark.usefixtures("_in_ascii")
async def test_every_screen_is_painted_in_ascii() -> None:
    async with running() as pilot:
        for keys in ROADS:
            await pilot.keys(*keys)
            lines = painted(pilot)
            assert {sign for line in lines for sign in line if not sign.isascii()} == set(), keys
            assert {len(line) for line in lines} == {120}, keys
            while not isinstance(pilot.app.screen, MainScreen):
                await pilot.keys("y" if isinstance(pilot.app.screen, ConfirmDialog) else "escape")
            await pilot.keys("escape", "escape", "4")


async def test_without_the_filter_it_is_not() -> None:
    async with running(size=(80, 24)) as pilot:
        assert not "".join(painted(pilot)).isascii()


def test_every_sign_that_textual_paints_has_a_plain_one() -> None:
    borders = [sign for box in BORDER_CHARS.values() for row in box for sign in row]
    bars = [*ScrollBarRender.VERTICAL_BARS, *ScrollBarRender.HORIZONTAL_BARS]
    found = {sign: plain(sign) for sign in {*borders, *bars}}
    assert all(replaced.isascii() and replaced != "?" and len(replaced) == 1 for replaced in found.values())


def test_every_sign_stands_in_its_own_cells() -> None:
    signs = [chr(number) for number in itertools.chain(range(0xA0, 0x3400), range(0x1F300, 0x1F700))]
    for sign in signs:
        assert plain(sign).isascii()
        assert len(plain(sign)) == cell_len(sign), sign
    for text in (
        "naïve",
        "界面",
        "e\N{COMBINING ACUTE ACCENT}",
        "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}",
        "🔎 a",
    ):
        assert plain(text).isascii()
        assert len(plain(text)) == cell_len(text)


def test_what_the_ui_does_not_use_is_a_question_mark_in_each_cell() -> None:
    assert plain("naïve 界") == "na?ve ??"


def test_classes_bars_and_steps_stay_apart() -> None:
    for signs in ("●◐○", BARS, SPARKLINE, "▲▼", "▸▾", "←→↑↓", "✓✗"):
        assert len({plain(sign) for sign in signs}) == len(signs), signs
    assert plain("CLASS≠SPEC 2 × 3 …") == "CLASS!SPEC 2 x 3 ~"


def test_styles_and_control_codes_are_kept() -> None:
    style = Style(bold=True)
    control = Segment("\x1b[2J…", None, [(ControlType.CLEAR,)])
    untouched = Segment("plain", style)
    found = AsciiFilter().apply([Segment("a…", style), untouched, control], Color(0, 0, 0))
    assert found == [Segment("a~", style), untouched, control]
    assert found[1] is untouched


@pytest.mark.parametrize(
    ("term", "encoding", "needed"),
    [
        ("xterm-256color", "utf-8", False),
        ("xterm", "UTF-8", False),
        ("xterm", "utf8", False),
        ("screen-256color", "utf-8", False),
        ("vte-256color", "utf-8", False),
        (None, "utf-8", False),
        (None, "cp65001", False),
        ("xterm-256color", "ascii", True),
        ("xterm-256color", "ANSI_X3.4-1968", True),
        ("xterm-256color", "iso8859-1", True),
        ("xterm-256color", "no-such-encoding", True),
        ("xterm-256color", None, True),
        ("linux", "utf-8", True),
        ("linux-16color", "utf-8", True),
        ("screen.linux", "utf-8", True),
        ("vt100", "utf-8", True),
        ("vt220", "utf-8", True),
        ("VT102", "utf-8", True),
        ("dumb", "utf-8", True),
        ("ansi", "utf-8", True),
    ],
)
def test_which_terminals_need_it(term: str | None, encoding: str | None, needed: bool) -> None:
    environment = {} if term is None else {"TERM": term}
    assert needs_ascii(environment, encoding) is needed
