"""How a class or flag looks: letter, glyph, ASCII stand-in and the theme's name for its colour.

Colour is never the only carrier: each class has a letter, each flag a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubectl_qos.qos.flags import Flag
from kubectl_qos.qos.qos_class import QosClass


@dataclass(frozen=True, slots=True)
class Mark:
    """The looks of one thing; `token` is a theme colour, not a colour."""

    letter: str
    glyph: str
    ascii: str
    token: str


CLASSES: Final = {
    QosClass.GUARANTEED: Mark("G", "●", "G", "success"),
    QosClass.BURSTABLE: Mark("B", "◐", "B", ""),
    QosClass.BEST_EFFORT: Mark("E", "○", "E", "warning"),
}

FLAG_TOKENS: Final = {
    Flag.CRITICAL: "success",
    Flag.PRIORITY: "warning",
    Flag.NEAR_LIMIT: "error",
    Flag.OVER_REQUEST: "warning",
    Flag.RESIZING: "accent",
    Flag.STATIC: "text-muted",
    Flag.CLASS_DIFFERS: "warning",
}
