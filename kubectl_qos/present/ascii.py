"""ASCII replacements for the characters of the output and the UI."""

# ruff: noqa: RUF001 - signs that look alike are what this is about

import codecs
from typing import Final


def is_utf8(encoding: str | None) -> bool:
    """Return whether an encoding has every character; None is no encoding."""
    try:
        return encoding is not None and codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False


def _signs() -> dict[int, str]:
    replacements = {0x2500 + number: "+" for number in range(128)}
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
        ("▃⋮", ":"),
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
        ("•∙★◆", "*"),
        ("↗", "^"),
        ("⭘◇", "o"),
        ("µμ", "u"),
        ("–—‐‑−", "-"),
        ("‘’", "'"),
        ("“”", '"'),
        ("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{FIGURE SPACE}", " "),
    )
    for signs, plain_sign in pairs:
        replacements.update((ord(sign), plain_sign) for sign in signs)
    # Textual's palette begins with it, and it is two cells wide.
    replacements[ord("🔎")] = "> "
    return replacements


ASCII: Final = _signs()
"""The replacement of each character, equally wide."""


def replace_signs(error: UnicodeError) -> tuple[str, int]:
    """Handle encoding errors: ASCII for known signs, escapes for other characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacked = error.object[error.start : error.end]
    signs = (ASCII.get(ord(sign)) or sign.encode("ascii", "backslashreplace").decode() for sign in lacked)
    return "".join(signs), error.end
