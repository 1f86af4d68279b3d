"""Which colours are painted on which, and in which themes that cannot be read.

A screen is painted in a theme in which the colour of each token differs. So each painted colour tells its
token, and the contrast in all other themes is computed without painting again.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any, Final

from textual._context import visible_screen_stack
from textual.color import Color
from textual.screen import Screen
from textual.theme import Theme

from kubectl_qos.tui.themes import (
    COLOURS,
    LEAST_OF_FRAMES,
    LEAST_OF_TEXT,
    TEXT,
    THEMES,
    contrast,
    find_theme,
)

GROUNDS: Final = ("background", "surface", "panel")
VARIABLES: Final = tuple(THEMES[0].variables)
HEX: Final = {
    token: f"#{60 + 6 * number:02x}{200 - 5 * number:02x}{40 + 4 * number:02x}"
    for number, token in enumerate((*TEXT, *GROUNDS, *VARIABLES))
}
TOKENS: Final = {colour: token for token, colour in HEX.items()}
_STATED: Final[dict[str, Any]] = {token: HEX[token] for token in (*TEXT, *GROUNDS)}
PROBE: Final = Theme(
    "probe",
    **_STATED,
    variables={token: HEX[token] for token in VARIABLES},
)
READ: Final = {*string.ascii_letters, *string.digits, *string.punctuation}
Pair = tuple[str, str, bool]
"""A token on another one, and whether it is text."""


def painted(screen: Screen[object]) -> Iterator[tuple[Pair, str]]:
    """The pairs on a screen, each with a text in which it is."""
    visible_screen_stack.set(screen.app._background_screens)
    for strip in screen._compositor.render_strips():
        for text, style, _ in strip:
            if style is None or style.color is None or style.bgcolor is None or not text.strip():
                continue
            assert not style.dim
            front, ground = (colour.get_truecolor().hex for colour in (style.color, style.bgcolor))
            pair = TOKENS.get(front, front), TOKENS.get(ground, ground)
            for is_text in {sign in READ for sign in text.replace(" ", "")}:
                yield (*pair, is_text), text


def illegible(pairs: Mapping[Pair, str]) -> list[str]:
    """What is painted in no colour of the theme, or in one with too little contrast in some theme."""
    themes = [theme for name in COLOURS if (theme := find_theme(name, {})) is not None]
    wrong = []
    for (front, ground, is_text), text in sorted(pairs.items()):
        if front not in HEX or ground not in HEX:
            wrong.append(f"{front} on {ground}: {text!r}")
            continue
        ratios = {theme.name: contrast(colour(theme, front), colour(theme, ground)) for theme in themes}
        worst = min(ratios, key=ratios.__getitem__)
        if ratios[worst] < (LEAST_OF_TEXT if is_text else LEAST_OF_FRAMES):
            wrong.append(f"{front} on {ground} {ratios[worst]:.2f} in {worst}: {text!r}")
    return wrong


def colour(theme: Theme, token: str) -> Color:
    return Color.parse(theme.variables.get(token) or getattr(theme, token))
