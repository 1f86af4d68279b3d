"""The themes, and the only module with colours: everything else names tokens such as `$error`.

`primary` is the calm hue of Burstable, the class of most pods. Each class and flag also has a letter, word or
sign, so that any theme, and none, can be read. Every token that is text has a contrast of 4.5:1 (WCAG AA) or
more on every background of text, the cursor line included; in the high contrast theme 7:1 (AAA). Only in the
theme of the terminal's own colours that is up to the terminal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from textual.theme import BUILTIN_THEMES, Theme

DARK: Final = Theme(
    name="qos-dark",
    primary="#97add4",
    secondary="#9dabbd",
    accent="#5aa9e6",
    warning="#e5b567",
    error="#ff8c8c",
    success="#8fdc94",
    foreground="#d7dce2",
    background="#14181d",
    surface="#1a1f26",
    panel="#262d36",
    variables={"block-cursor-background": "#1f3a53", "block-cursor-foreground": "#d7dce2"},
)

LIGHT: Final = Theme(
    name="qos-light",
    primary="#3d5a8a",
    secondary="#4c5763",
    accent="#0b5ca5",
    warning="#734a00",
    error="#a01f19",
    success="#185c2b",
    foreground="#1d2329",
    background="#fafbfc",
    surface="#f0f2f5",
    panel="#dfe4ea",
    dark=False,
    variables={"block-cursor-background": "#c8ddf1", "block-cursor-foreground": "#1d2329"},
)

CONTRAST: Final = Theme(
    name="qos-contrast",
    primary="#b8ccff",
    secondary="#ffffff",
    accent="#5fe7ff",
    warning="#ffe600",
    error="#ff9494",
    success="#5fff5f",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#262626",
    variables={"block-cursor-background": "#00205c", "block-cursor-foreground": "#ffffff"},
)

COLOUR_BLIND: Final = Theme(
    name="qos-deut",
    primary="#94a6cc",
    secondary="#adadad",
    accent="#4fa8e8",
    warning="#fff04a",
    error="#f09228",
    success="#00dc96",
    foreground="#e4e4e4",
    background="#121417",
    surface="#1a1d21",
    panel="#2a2f35",
    variables={"block-cursor-background": "#193749", "block-cursor-foreground": "#e4e4e4"},
)
"""Orange, yellow, bluish green and blue, after Okabe and Ito: red-green blindness keeps all four apart, since
what it takes from their hues is left in how blue and how bright they are."""

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
        "input-selection-background": "ansi_white",
        "input-selection-foreground": "ansi_black",
    },
)
"""The terminal's own sixteen colours, whichever they are; the cursor line is reversed."""

THEMES: Final = (DARK, LIGHT, CONTRAST, COLOUR_BLIND, ANSI)


def next_theme(name: str) -> str:
    """The theme after this one; the first after one that is not ours."""
    names = [theme.name for theme in THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
