"""For terminals that show nothing but ASCII: the last step of painting puts a plain sign for every other one.

Each sign takes as many cells as what it stands for, so that nothing moves. What is copied or saved is not
painted, and stays as it is.
"""

# ruff: noqa: RUF001 - signs that look alike are what this is about
from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_POOR: Final = re.compile(r"vt\d.*|dumb|(pc)?ansi.*|(screen\.)?linux.*|cons25.*|sun.*", re.IGNORECASE)


def needs_ascii(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether a terminal shows ASCII only.

    The Linux console (TERM=linux) counts: its fonts have 256 or 512 signs, with lines and blocks among them
    but without ◐, ▸, ━ and most steps of a sparkline, and show the same sign for each that they lack, so that
    classes could not be told apart. Without TERM, as on Windows, the encoding decides.

    Args:
        environment: the variables of the environment.
        encoding: that of the stream that the UI is written to (`sys.__stderr__`); None if it has none.
    """
    try:
        utf8 = encoding is not None and codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        utf8 = False
    return not utf8 or _POOR.fullmatch(environment.get("TERM", "")) is not None


def _signs() -> dict[int, str]:
    """What stands for each sign that the UI or Textual paints, as many cells wide."""
    found = {0x2500 + number: "+" for number in range(128)}
    pairs = (
        # Lines: light and double ones, heavy ones, and their halves.
        ("─┄┈╌╴╶", "-"),
        ("━┅┉╍═╸╺╼╾", "="),
        ("│┃┆┇┊┋╎╏║╵╷╹╻╽╿", "|"),
        ("╱", "/"),
        ("╲", "\\"),
        ("╳", "X"),
        # A sparkline from low to high, and bars of classes: each step looks fuller than the one before.
        ("▁", "_"),
        ("▂", "."),
        ("▃", ":"),
        ("▄▔▀", "-"),
        ("▅", "="),
        ("▆", "+"),
        ("▇", "*"),
        ("█■", "#"),
        ("▓", "+"),
        ("▒", "-"),
        ("░", "."),
        ("▏▎▍▌▋▊▉▐▕", "|"),
        ("▖▗▘▙▚▛▜▝▞▟", "+"),
        # Marks of classes, pointers and arrows.
        ("●", "@"),
        ("◐", "%"),
        ("○", "o"),
        ("▲▴↑⌃", "^"),
        ("▼▾↓✓⌄", "v"),
        ("◀◂←⏎⌫«‹", "<"),
        ("▶▸→»›⮞❯", ">"),
        ("×✗✕✖", "x"),
        ("≠", "!"),
        ("≤", "<"),
        ("≥", ">"),
        ("≈…", "~"),
        ("±", "+"),
        ("·", "."),
        ("•∙★", "*"),
        ("⭘", "o"),
        ("µμ", "u"),
        ("–—‐‑−", "-"),
        ("‘’", "'"),
        ("“”", '"'),
        ("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{FIGURE SPACE}", " "),
    )
    for signs, plain_sign in pairs:
        found.update((ord(sign), plain_sign) for sign in signs)
    # Textual's palette begins with it, and it is two cells wide.
    found[ord("🔎")] = "> "
    return found


_SIGNS: Final = _signs()


@lru_cache(4096)
def plain(text: str) -> str:
    """The text in ASCII, as many cells wide: what the UI does not use itself is `?` in each of its cells."""
    if text.isascii():
        return text
    signs = (sign if sign.isascii() else _SIGNS.get(ord(sign)) or "?" * cell_len(sign) for sign in text)
    # What several characters make together may be narrower than the sum of them.
    return set_cell_size("".join(signs), cell_len(text))


class AsciiFilter(LineFilter):
    """Paints lines in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """The segments with plain signs, in the same styles."""
        return [
            segment
            if segment.control or segment.text.isascii()
            else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]
