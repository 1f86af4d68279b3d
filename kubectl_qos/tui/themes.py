"""The themes. This is the only module with colours: all others name tokens such as `$error`.

`primary` is the calm hue of Burstable, the class of most pods. Classes and flags also differ
without colours. Text has a contrast of at least 4.5:1 (WCAG AA) on every background, also on the cursor line;
7:1 (AAA) in the high contrast theme. Frames have 3:1. A colour with less contrast, of a palette or of a
settings file, becomes lighter or darker until it has enough. In the theme of the terminal's own colours the
terminal decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from textual.color import BLACK, WHITE, Color
from textual.theme import BUILTIN_THEMES, Theme

from kubectl_qos.config.settings import ThemeColours

TEXT: Final = ("foreground", "primary", "secondary", "accent", "warning", "error", "success")
LEAST_OF_TEXT: Final = 4.5
LEAST_OF_FRAMES: Final = 3.0
_STEPS: Final = 32


def contrast(first: Color, second: Color) -> float:
    """Return the ratio of WCAG 2, from 1 to 21."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    parts = (part / 255 for part in colour.rgb)
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _legible(colour: Color, grounds: Collection[Color], least: float, towards: Sequence[Color]) -> Color:
    """Mix a colour with as little as possible of another one, until its contrast to all grounds is enough."""

    def worst(colour: Color) -> float:
        return min(contrast(colour, ground) for ground in grounds)

    other = max(towards, key=worst)
    blends = (colour.blend(other, step / _STEPS) for step in range(_STEPS))
    return next((blend for blend in blends if worst(blend) >= least), other)


def make_theme(name: str, colours: Mapping[str, str]) -> Theme:
    """Make a theme of the colours of background and text; other backgrounds are derived if not given."""
    parsed = {token: Color.parse(colour) for token, colour in colours.items()}
    background, extremes = parsed["background"], (WHITE, BLACK)
    for token, source, share in (
        ("surface", "foreground", 0.04),
        ("panel", "foreground", 0.09),
        ("cursor", "accent", 0.24),
        ("flash", "accent", 0.3),
    ):
        parsed.setdefault(token, background.blend(parsed[source], share))
    grounds = [parsed[token] for token in ("background", "surface", "panel", "cursor", "flash")]
    text = {token: _legible(parsed[token], grounds, LEAST_OF_TEXT, extremes) for token in TEXT}
    muted = text["secondary"]
    frame = _legible(background.blend(muted, 0.4), grounds[:3], LEAST_OF_FRAMES, [muted])
    fill = _legible(background.blend(text["success"], 0.75), grounds, LEAST_OF_TEXT, extremes)
    cursor, foreground = parsed["cursor"].hex, text["foreground"].hex
    tokens: dict[str, Any] = {token: text[token].hex for token in TEXT}
    tokens |= {token: parsed[token].hex for token in ("background", "surface", "panel")}
    return Theme(
        name,
        dark=background.brightness < 0.5,
        variables={
            "block-cursor-background": cursor,
            "block-cursor-foreground": foreground,
            "flash": parsed["flash"].hex,
            "frame": frame.hex,
            "fill": fill.hex,
            "input-selection-background": cursor,
            "input-selection-foreground": foreground,
            "input-cursor-background": foreground,
            "input-cursor-foreground": background.hex,
            "scrollbar": frame.hex,
            "scrollbar-hover": muted.hex,
            "scrollbar-active": text["accent"].hex,
            "scrollbar-background": background.hex,
            "scrollbar-background-hover": background.hex,
            "scrollbar-background-active": background.hex,
            "text-disabled": muted.hex,
            "text-muted": muted.hex,
        },
        **tokens,
    )


_TOKENS: Final = ("background", *TEXT, "surface", "panel", "cursor")
_OWN: Final = {
    # The background, foreground, primary, secondary, accent, warning, error and success, then its shades.
    "qos-dark": "#14181d #d7dce2 #97add4 #9dabbd #5aa9e6 #e5b567 #ff8c8c #8fdc94 #1a1f26 #262d36 #1f3a53",
    "qos-light": "#fafbfc #1d2329 #3d5a8a #4c5763 #0b5ca5 #734a00 #a01f19 #185c2b #f0f2f5 #dfe4ea #c8ddf1",
    "qos-contrast": "#000000 #ffffff #b8ccff #ffffff #5fe7ff #ffe600 #ff9494 #5fff5f #000000 #262626 #00205c",
    # Orange, yellow, bluish green and blue, after Okabe and Ito: with red-green blindness they still differ
    # in how blue and how bright they are.
    "qos-deut": "#121417 #e4e4e4 #94a6cc #adadad #4fa8e8 #fff04a #f09228 #00dc96 #1a1d21 #2a2f35 #193749",
}
_PALETTES: Final = {
    "dracula": "#282a36 #f5f5ef #a9b7dc #a3aac4 #bd95f7 #f1e08a #ff6e6e #5af58a",
    "everforest-dark": "#2c353b #d5c8ac #8fb3ad #98a39a #80bfb4 #dcbd80 #e88283 #a8c282",
    "everforest-light": "#fcf5e2 #56646c #3f7ca0 #7d8a85 #34a07c #b98300 #e2514f #7f9000",
    "gruvbox-dark": "#2a2827 #ead9b0 #87a89c #a89b86 #85a79a #f5ba32 #f54e38 #b6b92a",
    "gruvbox-light": "#f9efc8 #3e3836 #0f6c7b #7c6f66 #08697a #b07414 #9b0508 #77740f",
    "kanagawa": "#20202a #dad6bc #84a0d2 #8a8979 #957fb6 #e4c284 #e46878 #98ba6e",
    "monokai": "#282923 #f6f6f0 #9fb8d8 #a6a28e #66d6ec #e5d975 #f92f77 #a5e030",
    "nord": "#2f3541 #d9dfe9 #82a2c0 #9aa5b8 #89c1cf #eacb8c #c5666f #a4bf8d",
    "one-dark": "#292d35 #acb3c0 #8aa6cc #848b98 #62afee #e4c17c #df6d76 #99c47a",
    "rose-pine": "#1a1825 #e0def3 #9cb7d6 #908dab #c5a8e6 #f5c279 #ea7093 #9cced6",
    "snazzy": "#292b37 #eeefeb #9ab4dc #9699a8 #58c7fe #f2f89e #ff5d58 #5bf68f",
    "solarized-dark": "#03303d #93a1a1 #6f9fc4 #7f9195 #2a8cd2 #bb8c05 #e5443f #8a9e06",
    "solarized-light": "#fcf5e3 #576d75 #3b6f9a #72868b #2377b8 #9c7500 #d0302c #6d7d00",
}
"""Palettes by the names of k9s's skins."""
COLOURS: Final[Mapping[str, Mapping[str, str]]] = {
    name: dict(zip(_TOKENS, words.split(), strict=False)) for name, words in {**_OWN, **_PALETTES}.items()
}
"""The colours that a theme of the settings may start from."""

_BUILT_IN: Final = BUILTIN_THEMES["ansi-dark"]
ANSI: Final = replace(
    _BUILT_IN,
    name="qos-ansi",
    primary="ansi_cyan",
    secondary="ansi_default",
    accent="ansi_magenta",
    variables={
        **_BUILT_IN.variables,
        "block-cursor-background": "ansi_default",
        "flash": "ansi_default",
        "frame": "ansi_default",
        "fill": "ansi_green",
        "input-selection-background": "ansi_white",
        "input-selection-foreground": "ansi_black",
    },
)
"""The terminal's own sixteen colours; the cursor line is reversed."""

THEMES: Final = (*(make_theme(name, COLOURS[name]) for name in _OWN), ANSI)
"""The themes that the theme key goes through."""


def find_theme(name: str, own: Mapping[str, ThemeColours]) -> Theme | None:
    """Return a theme by its name: one of the settings (`own`), one of THEMES, or a palette."""
    if name in own:
        start, stated = COLOURS[own[name].start], own[name].colours
        if "background" in stated:  # derive the other backgrounds from this one
            start = {token: colour for token, colour in start.items() if token in TEXT}
        return make_theme(name, {**start, **stated})
    if name in _PALETTES:
        return make_theme(name, COLOURS[name])
    return next((theme for theme in THEMES if theme.name == name), None)


def next_name(name: str, names: Sequence[str]) -> str:
    """Return the name after another one, the first one after the last or an unknown one."""
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
