"""Every theme can be read, by those too who see other colours; worked out from its colours alone.

Contrast is WCAG 2's, the distance of colours CIE 1976's of CIE Lab, and what people see who lack a kind of
cone is simulated by the matrices of Machado, Oliveira and Fernandes (2009) for a severity of 1.
"""

from __future__ import annotations

from itertools import combinations, product

import pytest
from textual.color import Color
from textual.theme import Theme

from kubectl_qos.config.settings import ThemeColours
from kubectl_qos.tui.themes import (
    COLOURS,
    LEAST_OF_FRAMES,
    LEAST_OF_TEXT,
    TEXT,
    THEMES,
    contrast,
    find_theme,
    next_name,
)

Rgb = tuple[float, float, float]
Matrix = tuple[Rgb, Rgb, Rgb]

SIGNALS = ("error", "warning", "success", "accent")
SIGHT: dict[str, Matrix] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
APART = 20
"""Lab distance; 2.3 is just noticeable side by side, 10 is seen at a glance."""

ALL = {name: theme for name in COLOURS if (theme := find_theme(name, {}))}
"""Without the terminal's own colours: what they are nobody knows."""
OURS = [theme for theme in THEMES if theme.name in ALL]
COLOUR_BLIND = ALL["qos-deut"]
EACH = pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
GROUNDS = ("background", "surface", "panel", "block-cursor-background", "flash")


def linear(colour: str) -> Rgb:
    """The light of #rrggbb, each from 0 to 1."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return _light(red), _light(green), _light(blue)


def _light(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def seen(colour: str, sight: str) -> Rgb:
    light = linear(colour)
    red, green, blue = (
        min(max(sum(factor * part for factor, part in zip(row, light, strict=True)), 0), 1)
        for row in SIGHT[sight]
    )
    return red, green, blue


def lab(light: Rgb) -> Rgb:
    red, green, blue = light
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, sight: str) -> float:
    pairs = zip(lab(seen(one, sight)), lab(seen(other, sight)), strict=True)
    return float(sum((left - right) ** 2 for left, right in pairs) ** 0.5)


def colour(theme: Theme, token: str) -> str:
    text = theme.variables.get(token) or getattr(theme, token)
    assert isinstance(text, str)
    return text


def ratio(theme: Theme, token: str, ground: str) -> float:
    return contrast(Color.parse(colour(theme, token)), Color.parse(colour(theme, ground)))


def test_the_measures_are_those_of_the_standards() -> None:
    assert contrast(Color.parse("#000000"), Color.parse("#ffffff")) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#ffffff")) == pytest.approx(4.48, abs=0.01)
    assert lab(linear("#ff0000")) == pytest.approx((53.24, 80.09, 67.20), abs=0.1)
    assert distance("#ff0000", "#00ff00", "all cones") == pytest.approx(170.6, abs=0.5)
    assert distance("#ff8080", "#7fc983", "deuteranopia") < 5 < distance("#ff8080", "#7fc983", "all cones")


OWN = {
    "none stated": ThemeColours("nord", {}),
    "another background": ThemeColours("qos-dark", {"background": "#fdf6e3", "accent": "#fdf6e3"}),
    "no contrast at all": ThemeColours(
        "qos-light", dict.fromkeys((*TEXT, *GROUNDS[:3], "cursor"), "#808080")
    ),
}


@pytest.mark.parametrize("name", [*ALL, *OWN])
def test_texts_and_frames_can_be_read_on_every_ground(name: str) -> None:
    """Whatever colours a palette or a person has: those with too little contrast are moved."""
    theme = find_theme(name, OWN)
    assert theme is not None
    best = 7 if name == "qos-contrast" else LEAST_OF_TEXT
    for token, ground in product((*TEXT, "fill"), GROUNDS):
        least = LEAST_OF_TEXT if token == "fill" or ground == "flash" else best
        assert ratio(theme, token, ground) >= least, (token, ground)
    assert min(ratio(theme, "frame", ground) for ground in GROUNDS[:3]) >= LEAST_OF_FRAMES


def test_a_theme_of_ones_own_has_the_colours_that_it_states() -> None:
    own = {"mine": ThemeColours("qos-dark", {"accent": "#ffaf00"}), "qos-light": ThemeColours("nord", {})}
    theme = find_theme("mine", own)
    assert theme is not None
    assert (theme.accent, theme.background) == ("#FFAF00", ALL["qos-dark"].background)
    assert find_theme("qos-light", own) != ALL["qos-light"]
    assert find_theme("none of them", own) is None


@EACH
def test_the_calm_hue_is_not_the_accent(theme: Theme) -> None:
    assert theme.accent is not None
    assert distance(theme.primary, theme.accent, "all cones") >= 10
    assert theme.variables["block-cursor-foreground"] == theme.foreground


@EACH
def test_the_lines_of_cursor_and_title_show(theme: Theme) -> None:
    for one, other in combinations(("background", "panel", "block-cursor-background"), 2):
        assert distance(colour(theme, one), colour(theme, other), "all cones") >= 6, other


@EACH
@pytest.mark.parametrize(("one", "other"), list(combinations(SIGNALS, 2)))
def test_signals_are_apart(theme: Theme, one: str, other: str) -> None:
    assert distance(colour(theme, one), colour(theme, other), "all cones") >= APART


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize(("one", "other"), list(combinations(SIGNALS, 2)))
def test_signals_are_apart_without_a_kind_of_cone(one: str, other: str, sight: str) -> None:
    assert distance(colour(COLOUR_BLIND, one), colour(COLOUR_BLIND, other), sight) >= APART


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("signal", SIGNALS)
def test_signals_are_apart_from_plain_text_without_a_kind_of_cone(signal: str, sight: str) -> None:
    for plain in ("foreground", "secondary"):
        assert distance(colour(COLOUR_BLIND, signal), colour(COLOUR_BLIND, plain), sight) >= 15, plain


def test_the_next_theme_goes_round() -> None:
    names = ["first", "second", "third"]
    assert [next_name(name, names) for name in names] == ["second", "third", "first"]
    assert next_name("another", names) == "first"
