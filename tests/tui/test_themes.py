"""Every theme can be read, by those too who see other colours; worked out from its colours alone.

Contrast is WCAG 2's, the distance of colours CIE 1976's of CIE Lab, and what people see who lack a kind of
cone is simulated by the matrices of Machado, Oliveira and Fernandes (2009) for a severity of 1.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from textual.theme import Theme

from kubectl_qos.tui.themes import COLOUR_BLIND, CONTRAST, THEMES, next_theme

Rgb = tuple[float, float, float]
Matrix = tuple[Rgb, Rgb, Rgb]

TOKENS = ("foreground", "primary", "secondary", "accent", "warning", "error", "success")
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

OURS = [theme for theme in THEMES if not theme.ansi]
"""What the terminal's own colours are nobody knows."""
EACH = pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)


def linear(colour: str) -> Rgb:
    """The light of #rrggbb, each from 0 to 1."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return _light(red), _light(green), _light(blue)


def _light(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def blended(ground: str, colour: str, share: float) -> str:
    """A colour laid over a ground, as the style sheets' `$accent 30%`."""
    parts = [(int(ground[at : at + 2], 16), int(colour[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(below + (above - below) * share):02x}" for below, above in parts)


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
    found = getattr(theme, token)
    assert isinstance(found, str)
    return found


def grounds(theme: Theme) -> dict[str, str]:
    """What text stands on."""
    return {
        **{name: colour(theme, name) for name in ("background", "surface", "panel")},
        "cursor line": theme.variables["block-cursor-background"],
    }


def test_the_measures_are_those_of_the_standards() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert lab(linear("#ff0000")) == pytest.approx((53.24, 80.09, 67.20), abs=0.1)
    assert distance("#ff0000", "#00ff00", "all cones") == pytest.approx(170.6, abs=0.5)
    assert distance("#ff8080", "#7fc983", "deuteranopia") < 5 < distance("#ff8080", "#7fc983", "all cones")


@EACH
@pytest.mark.parametrize("token", TOKENS)
def test_text_can_be_read_on_every_ground(theme: Theme, token: str) -> None:
    least = 7 if theme is CONTRAST else 4.5
    found = {name: contrast(colour(theme, token), ground) for name, ground in grounds(theme).items()}
    assert {name: round(ratio, 2) for name, ratio in found.items() if ratio < least} == {}


@EACH
@pytest.mark.parametrize("token", ["foreground", "warning", "error"])
def test_text_can_be_read_in_a_focused_field(theme: Theme, token: str) -> None:
    ground = blended(colour(theme, "background"), colour(theme, "accent"), 0.3)
    assert contrast(colour(theme, token), ground) >= 4.5


@EACH
def test_messages_can_be_read(theme: Theme) -> None:
    made = theme.to_color_system().generate()
    for token in ("foreground", "text-success", "text-warning", "text-error"):
        assert contrast(made[token], made["panel-lighten-1"]) >= 4.5, token


@EACH
def test_the_calm_hue_is_not_the_accent(theme: Theme) -> None:
    assert theme.accent is not None
    assert distance(theme.primary, theme.accent, "all cones") >= 10
    assert theme.variables["block-cursor-foreground"] == theme.foreground


@EACH
def test_the_lines_of_cursor_and_title_show(theme: Theme) -> None:
    background, others = colour(theme, "background"), grounds(theme)
    for name in ("panel", "cursor line"):
        assert distance(background, others[name], "all cones") >= 6, name
    assert distance(others["panel"], others["cursor line"], "all cones") >= 6


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
    names = [theme.name for theme in THEMES]
    assert [next_theme(name) for name in names] == [*names[1:], names[0]]
    assert next_theme("textual-dark") == names[0]
