"""With the filter nothing but ASCII is painted, and all stays where it was. The screens: test_screens.py."""

from __future__ import annotations

import itertools
from pathlib import Path
from unicodedata import east_asian_width

import pytest
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.style import Style
from textual._border import BORDER_CHARS
from textual.color import Color
from textual.scrollbar import ScrollBarRender

import kubectl_qos
from kubectl_qos.tui.terminal import AsciiFilter, needs_ascii, plain

BARS = "█▓▒░"
SPARKLINE = "▁▂▃▄▅▆▇█"


def test_every_sign_of_the_product_is_known() -> None:
    package = Path(kubectl_qos.__file__).parent
    signs = {sign for path in package.rglob("*.py") for sign in path.read_text(encoding="utf-8")}
    signs -= {
        sign for sign in signs if east_asian_width(sign) == "F"
    }  # Written in names, and in nothing else.
    assert [sign for sign in signs - {"?"} if "?" in plain(sign) and not sign.isalpha()] == []


def test_every_sign_that_textual_paints_has_a_plain_one() -> None:
    borders = [sign for box in BORDER_CHARS.values() for row in box for sign in row]
    bars = [*ScrollBarRender.VERTICAL_BARS, *ScrollBarRender.HORIZONTAL_BARS]
    found = {sign: plain(sign) for sign in {*borders, *bars}}
    assert all(replaced.isascii() and replaced != "?" and len(replaced) == 1 for replaced in found.values())


def test_every_sign_keeps_its_cells() -> None:
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
