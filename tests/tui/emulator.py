"""A terminal that understands what the UI writes: where text goes, and in which style."""

from __future__ import annotations

import re
from collections import defaultdict

from rich.cells import split_graphemes
from rich.color import ColorSystem
from textual.strip import Strip

from kubectl_qos.tui.terminal import _cells

Style = frozenset[tuple[str, str]]
Shown = tuple[str, Style]

_TOKEN = re.compile(r"\x1b\[(?P<codes>[\d;]*)(?P<end>[Hm])|(?P<text>[^\x1b]+)")
_ON_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}


def styled(codes: str, before: Style = frozenset()) -> Style:
    """The style after a sequence of SGR codes."""
    style = dict(before)
    parts = codes.split(";")
    while parts:
        code = parts.pop(0)
        if code in {"", "0"}:
            style.clear()
        elif code in {"38", "48"}:
            length = {"2": 4, "5": 2}[parts[0]]
            style[code[0]] = ";".join(parts[:length])
            del parts[:length]
        elif code in {"39", "49"}:
            style.pop(code[0], None)
        elif code in _ON_OFF:
            style[f"weight {code}"] = code
        elif code in _ON_OFF.values():
            for weight, end in _ON_OFF.items():
                if end == code:
                    style.pop(f"weight {weight}", None)
        else:
            assert re.fullmatch("[349][0-7]|10[0-7]", code), code
            number = int(code)
            style["4" if 40 <= number < 50 or number >= 100 else "3"] = code
    return frozenset(style.items())


class Emulator:
    """Its cells by line and column; a cell that was never written is empty."""

    def __init__(self) -> None:
        self.cells: dict[int, dict[int, Shown]] = defaultdict(dict)
        self._style: Style = frozenset()
        self._at = 0, 0

    def feed(self, written: str) -> None:
        assert "".join(token[0] for token in _TOKEN.finditer(written)) == written
        for token in _TOKEN.finditer(written):
            codes, text = token["codes"], token["text"]
            if text is not None:
                self._write(text)
            elif token["end"] == "m":
                self._style = styled(codes, self._style)
            else:
                line, column = map(int, codes.split(";"))
                self._at = line - 1, column - 1

    def _write(self, text: str) -> None:
        y, x = self._at
        for begin, end, width in split_graphemes(text)[0]:
            for place in range(width):
                self.cells[y][x + place] = ("" if place else text[begin:end]), self._style
            x += width
        self._at = y, x

    def shows(self, strips: list[Strip]) -> bool:
        """Whether it shows these lines."""
        for y, strip in enumerate(strips):
            for x, (text, codes) in enumerate(_cells(strip, ColorSystem.TRUECOLOR)[0]):
                if self.cells[y].get(x) != (text, styled(codes)):
                    return False
        return True
