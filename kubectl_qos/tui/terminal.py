"""The terminal: only changed cells are written to it, in ASCII if need be, and keys are handled in order."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from rich.cells import cell_len, set_cell_size, split_graphemes
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer

from kubectl_qos.present.format import ASCII, is_utf8

Cell = tuple[str, str]
"""A text of one cell, and the codes of its style. The second cell of a wide text is empty."""

BUSY: Final = "     busy "
BUSY_SECONDS: Final = 0.1
"""After this time the UI shows that it works on a key."""
_MAX_GAP: Final = 4
"""Fewer unchanged cells than this are written too: to move the cursor over them takes more bytes."""
_SIMPLE: Final = re.compile("[ -~\xa1-\xac\u2500-\u25fc\u2800-\u28ff…·×→←↑↓≥≤≠▸▾✓✗]*")
"""Texts whose characters all take one cell on any terminal."""
_CODES: Final = re.compile(
    r"(?P<weight>(?:[1-57-9](?:;|$))*)"
    r"(?P<colour>3[0-79]|9[0-7]|38;5;\d+|38;2;\d+;\d+;\d+|);?"
    r"(?P<ground>4[0-79]|10[0-7]|48;5;\d+|48;2;\d+;\d+;\d+|)"
)


class Output:
    """Writes the cells that differ from those on the terminal, and the busy sign while a key takes long.

    Textual writes the whole region of each widget that is refreshed, though most cells are as before. That is
    too much for a slow line. A thread writes the busy sign, because Textual's thread is at work then.
    """

    def __init__(self, send: Callable[[str], object]) -> None:
        self.lock = threading.RLock()
        self._send = send
        self._lines: list[list[Cell | None]] = []
        self._timer: threading.Timer | None = None
        self._is_busy = False

    def forget(self) -> None:
        """Write every cell next time: the terminal was resized, or another program has written to it."""
        with self.lock:
            self._lines = []
            self._is_busy = False

    def await_change(self) -> None:
        """Show the busy sign after BUSY_SECONDS, unless the screen changes before."""
        self.stop_waiting()
        if not self._lines:
            return
        self._timer = threading.Timer(BUSY_SECONDS, self.show_busy)
        self._timer.daemon = True
        self._timer.start()

    def stop_waiting(self) -> None:
        """Do not show the busy sign, or remove it."""
        with self.lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._is_busy:
                self._send(self._end_busy())

    def show_busy(self) -> None:
        """Write the busy sign over the end of the first line, unless a change has come meanwhile."""
        with self.lock:
            is_late = self._timer is not None and self._timer.finished.is_set()
            if self._lines and not is_late:
                self._is_busy = True
                self._send(f"\x1b[1;{len(self._lines[0]) - len(BUSY) + 1}H\x1b[7m{BUSY}\x1b[m")

    def _end_busy(self) -> str:
        self._is_busy = False
        column = len(self._lines[0]) - len(BUSY)
        cells = [cell or (" ", "") for cell in self._lines[0][column:]]
        return f"\x1b[1;{column + 1}H{_text(cells)}"

    def changes(self, update: LayoutUpdate | ChopsUpdate) -> CompositorUpdate:
        """Return an update that leaves out the cells that are on the terminal when it is written."""
        return _Changes(self, update)

    def write(self, update: LayoutUpdate | ChopsUpdate, colours: ColorSystem) -> str:
        """Return the escape sequences and texts of the cells that an update changes."""
        runs: list[Cell] = []
        for y, x, strip in _pieces(update):
            while y >= len(self._lines):
                self._lines.append([])
            line = self._lines[y]
            cells, is_simple = _cells(strip, colours)
            line.extend([None] * (x + len(cells) - len(line)))
            before = line[x : x + len(cells)]
            if before == cells:
                continue
            line[x : x + len(cells)] = cells
            # Terminals disagree about the width of some characters: then write the whole piece.
            for begin, end in _changed(before, cells) if is_simple else [(0, len(cells))]:
                runs += (f"\x1b[{y + 1};{x + begin + 1}H", cells[begin][1]), *cells[begin:end]
        if not runs:
            return ""
        if self._timer is not None:
            self._timer.cancel()
        return _text(runs) + (self._end_busy() if self._is_busy else "")


def _text(cells: Iterable[Cell]) -> str:
    """Join cells, with escape sequences where the style changes."""
    written: list[str] = []
    before = ""
    for codes, group in groupby(cells, itemgetter(1)):
        written += _switch(before, codes), *map(itemgetter(0), group)
        before = codes
    return "".join(written) + _switch(before, "")


class _Changes(CompositorUpdate):
    def __init__(self, output: Output, update: LayoutUpdate | ChopsUpdate) -> None:
        self._output, self._update = output, update

    def render_segments(self, console: Console) -> str:
        system = console.color_system
        return self._output.write(
            self._update, ColorSystem.TRUECOLOR if system is None else COLOR_SYSTEMS[system]
        )


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield the line, column and content of each strip of an update, cropped as Textual does it."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if piece is not None and x <= last and end > first:
                yield y, x, piece if end <= last else piece.crop(0, last - x)


def _cells(strip: Strip, colours: ColorSystem) -> tuple[list[Cell], bool]:
    """Return the cells of a strip, and whether each character takes one cell on any terminal."""
    cells: list[Cell] = []
    is_simple = True
    for text, style, control in strip:
        if control:
            continue
        codes = "" if style is None else style._ansi or Strip.render_ansi(style, colours)  # noqa: SLF001 - cached
        if _SIMPLE.fullmatch(text):
            cells += [(sign, codes) for sign in text]
            continue
        is_simple = False
        for begin, end, width in split_graphemes(text)[0]:
            if width:
                cells += [(text[begin:end], codes), *[("", codes)] * (width - 1)]
            elif cells:
                cells[-1] = cells[-1][0] + text[begin:end], cells[-1][1]
    return cells, is_simple


def _changed(before: Sequence[Cell | None], cells: Sequence[Cell]) -> list[tuple[int, int]]:
    """Return where runs of changed cells begin and end; a run includes gaps of less than _MAX_GAP cells."""
    runs: list[tuple[int, int]] = []
    for place, (old, new) in enumerate(zip(before, cells, strict=True)):
        if old != new:
            begin = runs.pop()[0] if runs and place - runs[-1][1] < _MAX_GAP else place
            runs.append((begin, place + 1))
    return runs


@lru_cache(4096)
def _switch(before: str, codes: str) -> str:
    """Return the shortest sequence from one style to another."""
    old, new = _CODES.fullmatch(before), _CODES.fullmatch(codes)
    if not codes or old is None or new is None:
        return "" if before == codes else f"\x1b[0;{codes}m" if codes else "\x1b[m"
    weights, wanted = ({*match["weight"].split(";")} - {""} for match in (old, new))
    ended = {_ENDED_BY[weight] for weight in weights - wanted}
    switched = [*sorted(ended), *sorted(wanted if ended else wanted - weights)]
    for part, usual in (("colour", "39"), ("ground", "49")):
        if old[part] != new[part]:
            switched.append(new[part] or usual)
    return f"\x1b[{';'.join(switched)}m" if switched else ""


_ENDED_BY: Final = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}


_POOR: Final = re.compile(r"vt\d.*|dumb|(pc)?ansi.*|(screen\.)?linux.*|cons25.*|sun.*", re.IGNORECASE)


def needs_ascii(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Return whether a terminal shows ASCII only.

    The Linux console (TERM=linux) is such a terminal: its fonts have lines and blocks, but show the same sign
    for ◐, ▸, ━ and most steps of a sparkline. `encoding` is that of the stream that the UI is written to,
    None if it has none; it alone decides without TERM, as on Windows.
    """
    return not is_utf8(encoding) or _POOR.fullmatch(environment.get("TERM", "")) is not None


@lru_cache(4096)
def plain(text: str) -> str:
    """Return the text in ASCII in the same number of cells; characters without a replacement become `?`."""
    if text.isascii():
        return text
    signs = (sign if sign.isascii() else ASCII.get(ord(sign)) or "?" * cell_len(sign) for sign in text)
    # A combined character may be narrower than the sum of its parts.
    return set_cell_size("".join(signs), cell_len(text))


class AsciiFilter(LineFilter):
    """Replaces what is not ASCII before it is painted."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or segment.text.isascii()
            else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


ROUNDS: Final = 4
"""How many messages follow a key one after the other: its action may post messages, and those more."""
PATIENCE_SECONDS: Final = 0.5
"""The next key is handled after this time if a message is lost, as with a screen that is left."""

Typed = events.Key | events.Paste


@dataclass
class Passed(Message):
    """Follows a key through the message queues; `number` is that of the key."""

    number: int


class KeyOrder:
    """Handles a key or paste, by `handle`, only after the one before it has been handled.

    Textual sends a key to the focused widget, from where it bubbles up to the app, which looks for its
    binding. The next key does not wait for that: if `/edit` is typed quickly, its letters would be commands.
    So a message follows each key through the same queues; when it arrives, the key has been handled.
    """

    def __init__(self, app: App[Any], output: Output, handle: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._output = output
        self._handle = handle
        self._screens: list[Screen[Any]] = []
        self._waiting: deque[Typed] = deque()
        self._number = 0
        self._rounds = 0
        self._patience: Timer | None = None

    async def take(self, typed: Typed) -> None:
        """Handle a key or paste now or, if another one is being handled, after it."""
        self._waiting.append(typed)
        if not self._rounds:
            await self._next()

    async def passed(self, number: int) -> None:
        """Take note that a message has arrived; after the last one, handle the next key."""
        if number != self._number or not self._rounds:
            return
        self._rounds -= 1
        if self._rounds:
            self._follow()
        else:
            await self._next()

    async def _next(self) -> None:
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        self._rounds = 0
        if not self._waiting:
            if self._screens == self._app.screen_stack:  # another screen is still to be painted
                self._output.stop_waiting()
            return
        self._screens = [*self._app.screen_stack]
        self._output.await_change()
        self._rounds = ROUNDS
        self._number += 1
        self._patience = self._app.set_timer(PATIENCE_SECONDS, self._next)
        await self._handle(self._waiting.popleft())
        self._follow()

    def _follow(self) -> None:
        """Post a message to where the next key would go."""
        if self._app.screen_stack:  # while the app ends there is no screen
            (self._app.focused or self._app.screen).post_message(Passed(self._number))
