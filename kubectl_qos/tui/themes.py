"""The themes; the only room that knows colours. Everything else names tokens such as `$error`.

Each class and flag also has a letter, word or sign, so that any theme, and none, can be read.
"""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="qos-dark",
    primary="#5aa9e6",
    secondary="#7f8ea3",
    accent="#5aa9e6",
    warning="#e5b567",
    error="#ff6b6b",
    success="#7bc47f",
    foreground="#d7dce2",
    background="#14181d",
    surface="#1a1f26",
    panel="#262d36",
    dark=True,
    variables={"block-cursor-background": "#24435f", "block-cursor-foreground": "#d7dce2"},
)

LIGHT: Final = Theme(
    name="qos-light",
    primary="#0b62b0",
    secondary="#56616e",
    accent="#0b62b0",
    warning="#8a5a00",
    error="#b3261e",
    success="#1e6b34",
    foreground="#1d2329",
    background="#fafbfc",
    surface="#f0f2f5",
    panel="#dde2e8",
    dark=False,
    variables={"block-cursor-background": "#b9d3ec", "block-cursor-foreground": "#1d2329"},
)

CONTRAST: Final = Theme(
    name="qos-contrast",
    primary="#ffff00",
    secondary="#ffffff",
    accent="#ffff00",
    warning="#ffd700",
    error="#ff5f5f",
    success="#5fff5f",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#303030",
    dark=True,
    variables={"block-cursor-background": "#00205c", "block-cursor-foreground": "#ffffff"},
)

COLOUR_BLIND: Final = Theme(
    name="qos-deut",
    primary="#56b4e9",
    secondary="#999999",
    accent="#56b4e9",
    warning="#f0e442",
    error="#e69f00",
    success="#56b4e9",
    foreground="#e4e4e4",
    background="#121417",
    surface="#1a1d21",
    panel="#2a2f35",
    dark=True,
    variables={"block-cursor-background": "#1f4257", "block-cursor-foreground": "#e4e4e4"},
)
"""Blue and orange of Okabe and Ito's palette, which red-green blindness keeps apart."""

THEMES: Final = (DARK, LIGHT, CONTRAST, COLOUR_BLIND)


def next_theme(name: str) -> str:
    """The theme after this one; the first after one that is not ours."""
    names = [theme.name for theme in THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
