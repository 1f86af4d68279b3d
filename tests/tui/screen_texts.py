"""Screens as text: their characters, then the words whose style carries a meaning.

Each test has a file in snapshots/tui, with a section for each screen, size and mode that it looks at:

    === explain 80x24
    the lines of the screen
    --- styles
    [success bold] live
    [error bold] +2Mi [error] 94% [warning] PR

The second part has a line for each line of the screen that has such a style. Colours are called as in the
theme.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App
from textual.color import Color
from textual.pilot import Pilot

from kubectl_qos.tui.terminal import plain

Size = tuple[int, int]
PLAIN: Final = dict.fromkeys(("foreground", "background", "surface", "panel"), "")
COLOURS: Final = {name: name for name in ("primary", "accent", "warning", "error", "success")} | PLAIN
BACKGROUNDS: Final = {
    "input-selection-background": "selected",
    "block-cursor-background": "cursor",
    "flash": "changed",
    "foreground": "caret",
    "warning": "on-warning",
    "error": "on-error",
    "background": "",
}
ATTRIBUTES: Final = ("bold", "dim", "italic", "underline", "reverse", "strike")
FRAMES: Final = frozenset("│▕▏▔▁▂▃▄▅▆▇ ")
"""Signs on many lines that mean nothing: sides of frames, and scroll bars."""
REPEATED: Final = re.compile(r"([^\w\s])\1{11,}")
SECTION: Final = re.compile(r"^=== (.*)\n", re.MULTILINE)
STYLES: Final = "--- styles\n"
AS_BEFORE: Final = "as before\n"


def sections_of(path: Path) -> dict[str, str]:
    """The sections of a file by their titles."""
    _, *parts = SECTION.split(path.read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


class ScreenTexts:
    """The sections of one test: compared with its file, or written into it."""

    def __init__(self, path: Path, *, is_renewed: bool) -> None:
        self._path = path
        self._is_renewed = is_renewed
        self._expected = sections_of(path) if path.exists() else {}
        self._seen: dict[str, str] = {}

    async def look(
        self, pilot: Pilot[Any], name: str, variant: str = "", *, sizes: Iterable[Size] = ()
    ) -> None:
        """Compare the screen, in each of some sizes; afterwards the terminal has the first of them."""
        wanted: list[Size | None] = [*sizes] or [None]
        for size in wanted:
            await _resize(pilot, size)
            title = " ".join(filter(None, (name, variant, "{}x{}".format(*size) if size else "")))
            # Styles are the same in each size.
            await self._compare(pilot, title, with_styles=size == wanted[0])
        await _resize(pilot, wanted[0])

    async def look_again(self, pilot: Pilot[Any], title: str, before: str) -> None:
        """Compare the screen in another mode with a section, of which it says only what differs."""
        await self._compare(pilot, title, before=self._seen[before])

    async def _compare(
        self, pilot: Pilot[Any], title: str, *, with_styles: bool = True, before: str = ""
    ) -> None:
        assert title not in self._seen
        await pilot.pause()
        assert pilot.app.screen.max_scroll_y == 0, "a screen, and a dialog, fits the terminal"
        expected = None if self._is_renewed else self._expected.get(title, "")
        for _ in range(20):  # A scroll bar may follow its content a moment later.
            seen = screen_and_styles(pilot.app, with_styles=with_styles)
            now = _differing(seen, before)
            if now == expected:
                break
            if self._is_renewed:
                expected = now
            await pilot.pause(0.05)
        self._seen[title] = now
        for line in seen.partition(STYLES)[0].splitlines():
            assert plain(line).isascii(), "a terminal without other signs shows it too"
            assert len(plain(line)) == cell_len(line), "each sign in its own cells"
        if now != expected:
            lines = difflib.unified_diff(
                (expected or "").splitlines(), now.splitlines(), title, "now", "", "", 1, ""
            )
            pytest.fail("\n".join((f"{self._path.name} differs:", *lines)), pytrace=False)

    def finish(self) -> None:
        """Write the file, or say which of its sections no test looks at."""
        if self._is_renewed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(f"=== {title}\n{section}" for title, section in self._seen.items())
            self._path.write_text(text, encoding="utf-8", newline="\n")
        else:
            assert [*self._expected] == [*self._seen], f"sections of {self._path.name}"


async def _resize(pilot: Pilot[Any], size: Size | None) -> None:
    if size is not None and size != pilot.app.size:
        await pilot.resize_terminal(*size)
        await pilot.pause()


def _differing(now: str, before: str) -> str:
    """What a screen says otherwise than before: its text, its styles, or both."""
    (text, _, styles), (old_text, _, old_styles) = now.partition(STYLES), before.partition(STYLES)
    if not before or (text, styles) == (old_text, old_styles):
        return AS_BEFORE if before else now
    return (AS_BEFORE if text == old_text else text) + (STYLES + styles if styles != old_styles else "")


def screen_and_styles(app: App[Any], *, with_styles: bool = True) -> str:
    """What a section holds about the screen of an application."""
    visible_screen_stack.set(app._background_screens)
    colours, backgrounds = _names_of_colours(app, COLOURS), _names_of_colours(app, BACKGROUNDS)
    text, styles = "", ""
    for strip in app.screen._compositor.render_strips():
        text += strip.text.rstrip() + "\n"
        styles += " ".join(_named_runs(strip, colours, backgrounds)) + "\n"
    return text + STYLES + re.sub(r"^\n", "", styles, flags=re.MULTILINE) if with_styles else text


def _names_of_colours(app: App[Any], names: Mapping[str, str]) -> dict[str, str]:
    """The names of colours in the theme of an application; of a colour with several, the last."""
    values = app.get_css_variables()
    colours = {token: Color.parse(values[token].split()[0]).rich_color.name.lower() for token in names}
    return {colours[token]: name for token, name in names.items()}


def _named_runs(
    line: Iterable[Segment], colours: Mapping[str, str], backgrounds: Mapping[str, str]
) -> Iterator[str]:
    runs: list[tuple[list[str], str]] = []
    behind: list[str] = []
    for text, given, _ in line:
        style = given or Style.null()
        before = behind
        behind = [backgrounds.get(style.bgcolor.name.lower(), "") if style.bgcolor else ""]
        behind += ["reverse" if style.reverse else ""]
        if text.isspace():
            names = runs[-1][0] if runs and before == behind else behind[:1]
        else:
            colour = colours.get(style.color.name.lower(), "") if style.color else ""
            names = [behind[0], colour, *(name for name in ATTRIBUTES if getattr(style, name))]
        runs.append((names, text))
    for names_of_run, group in groupby(runs, key=lambda run: " ".join(filter(None, run[0]))):
        words = "".join(text for _, text in group)
        if names_of_run and not {*words} <= FRAMES:
            words = REPEATED.sub(lambda run: f"{run[1]}×{len(run[0])}", " ".join(words.split()))
            yield f"[{names_of_run}] {words}".rstrip()
