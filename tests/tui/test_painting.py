"""What is written to the terminal leads to what is painted, and is no longer than it has to be."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from kubectl_qos.tui.terminal import Output
from tests.tui.emulator import Emulator
from tests.tui.idle import paint_now
from tests.tui.sources import running

STYLES = [
    None,
    Style(),
    *(Style.parse(words) for words in ("bold", "reverse", "red", "on blue", "bold dim red on blue")),
    *(Style.parse(words) for words in ("#102030 on #405060", "bold #102030 on #405060", "color(200)")),
]
TEXTS = ["api-7d9c", "  12Mi", "━━──", "界面", "🔎", "─" * 30]
WIDTH = 40


def line(*parts: tuple[str, Style | None]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(WIDTH)


def whole(*strips: Strip) -> LayoutUpdate:
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, WIDTH, len(strips)))


def written(output: Output, update: LayoutUpdate | ChopsUpdate) -> str:
    return output.write(update, ColorSystem.TRUECOLOR)


@pytest.mark.parametrize("seed", range(20))
def test_the_terminal_shows_what_is_painted(seed: int) -> None:
    chance = random.Random(seed)

    def some() -> Strip:
        return line(*((chance.choice(TEXTS), chance.choice(STYLES)) for _ in range(4)))

    strips = [some() for _ in range(3)]
    terminal, output = Emulator(), Output(str)
    terminal.feed(written(output, whole(*strips)))
    for _ in range(20):
        y = chance.randrange(3)
        strips[y] = chance.choice([some(), chance.choice(strips)])
        cut = chance.randrange(1, WIDTH)
        pieces = strips[y].divide([cut, WIDTH])
        strips[y] = Strip.join(pieces)  # a wide sign that is cut in two is blank
        chops = [{0: pieces[0], cut: pieces[1]} if row == y else {} for row in range(3)]
        terminal.feed(written(output, ChopsUpdate(chops, [(y, 0, WIDTH)], [[cut, WIDTH]] * 3)))
        assert terminal.shows(strips)


PLAIN, BOLD = Style.parse("#102030 on #405060"), Style.parse("bold #102030 on #405060")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([("12Mi", PLAIN)], [("12Mi", PLAIN)], "", id="nothing"),
        pytest.param(
            [("12Mi of 16", PLAIN)],
            [("13Mi of 17", PLAIN)],
            "\x1b[38;2;16;32;48;48;2;64;80;96m\x1b[1;2H3\x1b[1;10H7\x1b[m",
            id="two digits in one style",
        ),
        pytest.param(
            [("12Mi", PLAIN)],
            [("1", PLAIN), ("3M", BOLD), ("j", PLAIN)],
            "\x1b[1;38;2;16;32;48;48;2;64;80;96m\x1b[1;2H3M\x1b[22mj\x1b[m",
            id="a weight alone",
        ),
        pytest.param([("12Mi", None)], [("34Mk", None)], "\x1b[1;1H34Mk", id="near ones at once"),
        pytest.param(
            [("界12", None)], [("界13", None)], "\x1b[1;1H界13" + " " * 36, id="next to a wide sign all of it"
        ),
        pytest.param(
            [("e\N{COMBINING ACUTE ACCENT}12", None)],
            [("e\N{COMBINING ACUTE ACCENT}13", None)],
            "\x1b[1;1He\N{COMBINING ACUTE ACCENT}13" + " " * 37,
            id="next to a sign of two characters all of it",
        ),
    ],
)
def test_only_what_changes_is_written(
    before: list[tuple[str, Style | None]], after: list[tuple[str, Style | None]], expected: str
) -> None:
    output = Output(str)
    written(output, whole(line(*before)))
    assert written(output, whole(line(*after))) == expected
    assert written(output, whole(line(*after))) == ""
    output.forget()
    assert "13" in expected or len(written(output, whole(line(*after)))) >= WIDTH


def test_a_key_that_takes_its_time_says_so_until_something_changes() -> None:
    terminal = Emulator()
    output = Output(terminal.feed)
    output.await_change()
    assert output._timer is None, "nothing is painted yet"
    calm, changed = line(("title", BOLD)), line(("other", BOLD))
    terminal.feed(written(output, whole(calm)))
    output.await_change()
    assert output._timer is not None
    assert output._timer.interval < 0.15
    output.show_busy()
    assert "".join(text for text, _ in terminal.cells[0].values()) == "title".ljust(WIDTH - 6) + " busy "
    terminal.feed(written(output, whole(calm)))
    assert not terminal.shows([calm]), "a painting that changes nothing is no answer"
    terminal.feed(written(output, whole(changed)))
    assert terminal.shows([changed])
    assert output._timer.finished.is_set()
    output.show_busy()
    assert terminal.shows([changed]), "its time was over while the change was painted"
    output.await_change()
    output.show_busy()
    output.stop_waiting()
    assert terminal.shows([changed])
    assert output._timer.finished.is_set()


async def test_a_screen_is_painted_once_its_widgets_have_their_sizes_and_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before that, sections are separated, and no key is shown."""
    frames: list[str] = []

    def display(_: App[Any], screen: Screen[Any], update: object) -> None:
        if update is not None:
            frames.append("\n".join(strip.text for strip in screen._compositor.render_strips()))

    async with running(size=(120, 40), painted=True) as pilot:
        monkeypatch.setattr(Screen, "_compositor_refresh", paint_now)
        monkeypatch.setattr(App, "_display", display)
        for key, footer in (("d", "e edit"), ("K", "d explain"), ("question_mark", "? help")):
            frames.clear()
            await pilot.press(key)
            await pilot.until(lambda: bool(frames))
            await pilot.settled()
            assert footer in frames[0].splitlines()[-1]
            # The fix of the next death follows once it is found.
            assert frames[0].splitlines()[:4] == frames[-1].splitlines()[:4]
            await pilot.keys("escape")


def test_a_sign_that_others_have_written_over_is_not_taken_away() -> None:
    """As where ctrl-z takes its time: the shell had the terminal when the key is done."""
    terminal = Emulator()
    output = Output(terminal.feed)
    terminal.feed(written(output, whole(line(("title", BOLD)))))
    output.show_busy()
    output.forget()
    output.stop_waiting()
    terminal.feed(written(output, whole(line(("title", BOLD)))))
