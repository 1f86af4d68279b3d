"""Quantities, times, counts and names as people read them, and ASCII for terminals that lack signs."""

# ruff: noqa: RUF001 - signs that look alike are what the table is about

import codecs
import re
from datetime import datetime
from typing import Final

from kubectl_qos.k8s.quantity import Quantity, parse_time

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"

_BINARY: Final = (
    *((1 << 60, "Ei"), (1 << 50, "Pi"), (1 << 40, "Ti")),
    *((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")),
)


def mebibytes(value: int) -> str:
    """Return whole Mi, rounded down as `kubectl top` does: `1240Mi`."""
    return f"{value >> 20}Mi"


def rounded(value: int) -> str:
    """Return bytes that change often: whole Mi rounded down, from 1Gi on Gi or Ti with one decimal."""
    if abs(value) < 1 << 30:
        return mebibytes(value)
    return f"{value / (1 << 30):.1f}Gi" if abs(value) < 1 << 40 else f"{value / (1 << 40):.1f}Ti"


def psi_text(percent: float | None) -> str:
    """Return the percent of time in which tasks waited: `12.3%`; `<none>` if unknown."""
    return NONE if percent is None else f"{percent:.1f}%"


def in_mi(value: int) -> str:
    """Return bytes in Mi with at most one decimal: `1240Mi`, `0.5Mi`; whole Gi as `2Gi`; `128 B` if 0 Mi."""
    text = f"{value / (1 << 20):.1f}Mi".replace(".0Mi", "Mi")
    return binary(value) if value and (text == "0Mi" or value % (1 << 30) == 0) else text


def binary(value: int) -> str:
    """Return bytes in the largest unit with at most one decimal: `1Gi`, `62.8Gi`, `900Mi`, `12 B`, `0`."""
    for size, suffix in _BINARY:
        if abs(value) >= size:
            whole, rest = divmod(value, size)
            if not rest:
                return f"{whole}{suffix}"
            return f"{value / size:.1f}{suffix}".replace(f".0{suffix}", suffix)
    return f"{value} B" if value else "0"


def quantity_text(quantity: Quantity | None) -> str:
    """Return a quantity as written, plain bytes in the largest unit, `<none>` for None."""
    if quantity is None:
        return NONE
    text = str(quantity)
    return binary(int(text)) if text.isdigit() and int(text) >= 1 << 20 else escape(text)


def percent(part: float, whole: float) -> str:
    """Return a rounded share: `98%`, `<1%` where 0 would say that there is nothing, or `>9999%`."""
    share = part / whole
    if share >= 100:
        return ">9999%"
    return f"{100 * share:.0f}%" if share >= 0.005 else "<1%"


def arrived_text(pods: int, total: int | None, size_bytes: int) -> str:
    """Return how much of a list of pods has arrived: `12,400 of 20,000 pods, 81 MB`."""
    of = f" of {total:,}" if total is not None else ""
    return f"{pods:,}{of} pods, {size_bytes / 1e6:,.0f} MB"


def cpu(milli: int) -> str:
    """Return millicores as `250m`, `2`."""
    return f"{milli // 1000}" if milli % 1000 == 0 else f"{milli}m"


def age(then: str | None, now: datetime) -> str:
    """Return how long ago a time was, as kubectl prints it: `45s`, `12m`, `5h`, `3d4h`, `120d`."""
    moment = parse_time(then)
    if moment is None:
        return UNKNOWN
    seconds = int((now - moment).total_seconds())
    return duration(seconds) if seconds >= 0 else "0s"


def duration(seconds: int) -> str:
    """Return a span of seconds in its two largest units (apimachinery/pkg/util/duration HumanDuration)."""
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def _two(most: int, unit: str, rest: int, rest_unit: str) -> str:
    return f"{most}{unit}{rest}{rest_unit}" if rest else f"{most}{unit}"


_VISIBLE: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    """Make text from a server harmless for a terminal: spell out control characters."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _VISIBLE.get(character, f"\\x{ord(character):02x}")
        for character in text
    )


_WITH_DOMAIN: Final = re.compile(r"([a-z][-a-z0-9]{3,})(?:\.[-a-z0-9]+)+")


def shortened(name: str, width: int) -> str:
    """Cut a name in its middle to `width` cells: names in a cluster differ at either end.

    Of a name with a domain, which nodes have in common, the host's name is kept first.
    """
    if len(name) <= width or width < 1 or " " in name or not name.isascii():
        return name
    if with_domain := _WITH_DOMAIN.fullmatch(name):
        name = with_domain[1]
        if len(name) < width:
            return f"{name}…"
    head = width // 2
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 pod`, `3 pods`; `plural` if it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def short_path(path: str) -> str:
    """Return the last component of a cgroup's path, with the container's id cut to twelve digits."""
    return escape(_LONG_ID.sub(r"\1…", path.rpartition("/")[2]))


_LONG_ID: Final = re.compile("([0-9a-f]{12})[0-9a-f]{52}")


def full_name(namespace: str, name: str, container: str = "") -> str:
    """Return `shop/web-0`, the name alone without a namespace, and `shop/web-0:app` for a container."""
    pod = escape("/".join(filter(None, (namespace, name)))) or "(unnamed)"
    return f"{pod}:{escape(container)}" if container else pod


def eta(seconds: float | None) -> str:
    """Return seconds as a rough estimate: `~45 s`, `~8 min`, `~3 h`, `~12 d`; "" if unknown."""
    if seconds is None:
        return ""
    for size, unit, most in ((1, "s", 90), (60, "min", 120), (3600, "h", 48)):
        if seconds < size * most:
            return f"~{max(round(seconds / size), 1)} {unit}"
    return f"~{round(seconds / 86400)} d"


def is_utf8(encoding: str | None) -> bool:
    """Return whether an encoding has every character; None is no encoding."""
    try:
        return encoding is not None and codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False


_SIGNS: Final = {
    # Lines, light ones and double or heavy ones, bars of classes, pointers, quotation marks and spaces.
    # The steps of a sparkline from low to high (▁ to █) look fuller and fuller.
    "-": "─┄┈╌╴╶▄▔▀–—‐‑−",
    "=": "━┅┉╍═╸╺╼╾▅",
    "|": "│┃┆┇┊┋╎╏║╵╷╹╻╽╿▏▎▍▌▋▊▉▐▕",
    "/": "╱",
    "\\": "╲",
    "X": "╳",
    "_": "▁",
    ".": "▂░·",
    ":": "▃▒⋮",
    "+": "▆▓▖▗▘▙▚▛▜▝▞▟±",
    "*": "▇•∙★◆",
    "#": "█■",
    "@": "●",
    "%": "◐",
    "o": "○⭘◇",
    "^": "▲▴↑⌃↗",
    "v": "▼▾↓✓⌄",
    "<": "◀◂←⏎⌫«‹≤",
    ">": "▶▸→»›⮞❯≥",
    "x": "×✗✕✖",
    "!": "≠",
    "~": "≈…",
    "u": "µμ",
    "'": "‘’",
    '"': "“”",
    " ": "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{FIGURE SPACE}",
    # Textual's palette begins with it, and it is two cells wide.
    "> ": "🔎",
}
ASCII: Final = dict.fromkeys(range(0x2500, 0x2580), "+") | {
    ord(sign): plain for plain, signs in _SIGNS.items() for sign in signs
}
"""The replacement of each character, equally wide."""


def replace_signs(error: UnicodeError) -> tuple[str, int]:
    """Handle encoding errors: ASCII for known signs, escapes for other characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacked = error.object[error.start : error.end]
    signs = (ASCII.get(ord(sign)) or sign.encode("ascii", "backslashreplace").decode() for sign in lacked)
    return "".join(signs), error.end
