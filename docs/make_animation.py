"""Make docs/pictures/road.svg from the living demo: deaths, why, and a fix. `make pictures`."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from make_pictures import PICTURES

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.edit import apply_state
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp, screen_text

SIZE: Final = (120, 30)
SECONDS: Final = 4
"""How long a frame is shown."""
SAMPLE: Final = 5
"""How many seconds the clock goes on at a time while growth is watched."""
GROWTH_SEEN: Final = 45
WAIT: Final = 3000
"""How often the screen is looked at before a step is given up."""


class Step(NamedTuple):
    """What leads to a frame: the clock's second, keys, words that are on the screen then, and the title."""

    second: int
    keys: Sequence[str]
    words: str
    title: str


STEPS: Final = (
    Step(0, (), "F fix", "0:00  who dies next, by whom, and how much memory away that is"),
    Step(35, (), "~", "0:35  memory grows, so there is a time too"),
    Step(40, (), "+0.1Mi", "0:40  the importer is about to reach its limit"),
    Step(45, (), "F fix", "0:45  the kernel has killed it, and it runs again"),
    Step(45, ("K",), "certain", "K  what was killed, by which limit, and the kernel's report of it"),
    Step(
        45, ("escape", "F"), "own limit", "F  what would put off the next death, tried before it is offered"
    ),
    Step(45, ("enter",), "limits.memory was", "enter  the fix, with its effect on score, rank and cgroup"),
    Step(45, ("ctrl+s",), "PATCH", "ctrl-s  the exact request"),
    Step(45, ("a",), "Write this", "a  after the server's dry run it asks"),
    Step(45, ("y",), "waiting for the kubelet", "y  applied in place"),
    Step(50, (), "own limit 45%", "0:50  the kubelet has resized it, without a restart"),
    Step(
        239,
        ("escape", "escape", "escape", "K"),
        "evicted",
        "4:00  on another node the kubelet evicts whom the demo has named",
    ),
    Step(325, ("g",), "the node ran out of memory", "5:25  and a full node: its kernel kills rank 1"),
)
STYLE: Final = """<style>
text {{ font: 20px Fira Code, ui-monospace, Menlo, Consolas, monospace; white-space: pre; }}
.title {{ font: bold 18px sans-serif; fill: #c5c8c6; text-anchor: middle; }}
.frame {{ visibility: hidden; animation: frame {all}s step-end infinite; }}
@keyframes frame {{ 0% {{ visibility: visible; }} {share}% {{ visibility: hidden; }} }}
@media (prefers-reduced-motion: reduce) {{ .frame {{ animation: none; }} #first {{ visibility: visible; }} }}
{styles}
</style>"""
_CLASS: Final = re.compile(r"\.terminal-\d+-(r\d+) \{ (.*?) \}")
# The rectangle of the window has a stroke, so it is none of these.
_RECT: Final = re.compile(r'<rect fill="([^"]*)" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"')
_TEXT: Final = re.compile(
    r'<text class="terminal-\d+-(r\d+)" x="(.*?)" y="(.*?)" textLength="(.*?)"[^>]*>(.*?)</text>'
)
_LINE: Final = 24.4


def shows(app: QosApp, words: str) -> bool:
    """Whether words are on the screen."""
    return words in screen_text(app.screen)


async def frames(state: Path) -> AsyncIterator[tuple[str, str]]:
    """The title and the screen after each step, as SVG; changes are put down in a folder."""
    second = 0
    demo = LivingDemo(may_write=True, now=lambda: DEMO_TIME + timedelta(seconds=second), tick_seconds=None)
    app = QosApp(demo, Scope(), history=HistoryFile(state / "history"))
    async with app.run_test(size=SIZE, notifications=False) as pilot:

        async def until(condition: Callable[[], bool]) -> None:
            for _ in range(WAIT):
                await pilot.pause(0.01)
                if condition():
                    return
            raise SystemExit(f"after {second} s this is on the screen:\n{screen_text(app.screen)}")

        for step in STEPS:
            while second < step.second:
                second = min(second + SAMPLE, step.second) if second < GROWTH_SEEN else step.second
                app.action_refresh()
                await until(lambda: app.view_model is not None and app.view_model.taken == demo.now())
            await pilot.press(*step.keys)
            await until(partial(shows, app, step.words))
            await pilot.pause(0.3)
            yield step.title, app.export_screenshot(simplify=True)


class Drawing:
    """Frames as SVG, in which equal lines of the screen are written once."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._classes: dict[str, str] = {}

    def frame(self, picture: str) -> str:
        """The lines of a screen, each a reference."""
        styles = {name: self._short(css, self._classes, "c") for name, css in _CLASS.findall(picture)}
        lines: dict[int, list[str]] = {}
        for fill, x, y, width, height in _RECT.findall(picture):
            rect = f'<rect fill="{fill}" x="{x}" y="1.5" width="{width}" height="{height}"/>'
            lines.setdefault(round((float(y) - 1.5) / _LINE), []).append(rect)
        for name, x, y, length, text in _TEXT.findall(picture):
            if text.replace("&#160;", ""):
                shown = f'<text class="{styles[name]}" x="{x}" y="20" textLength="{length}">{text}</text>'
                lines.setdefault(round((float(y) - 20) / _LINE), []).append(shown)
        names = {place: self._short("".join(parts), self._lines, "l") for place, parts in lines.items()}
        return "".join(f'<use href="#{name}" y="{place * _LINE:g}"/>' for place, name in names.items())

    @staticmethod
    def _short(text: str, known: dict[str, str], letter: str) -> str:
        return known.setdefault(text, f"{letter}{len(known)}")

    def svg(self, frames: Sequence[tuple[str, str]]) -> str:
        """One picture whose frames show one after the other, for ever."""
        width, height = SIZE[0] * 12.2 + 18, SIZE[1] * _LINE + 60
        styles = "\n".join(f".{name} {{{css}}}" for css, name in self._classes.items())
        style = STYLE.format(all=SECONDS * len(frames), share=round(100 / len(frames), 3), styles=styles)
        parts = [f'<svg viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg">', style]
        parts += ["<defs>", *(f'<g id="{name}">{line}</g>' for line, name in self._lines.items()), "</defs>"]
        parts.append(f'<rect fill="#14181d" width="{width:g}" height="{height:g}" rx="8"/>')
        for number, (title, frame) in enumerate(frames):
            name = ' id="first"' if not number else ""
            parts.append(f'<g class="frame"{name} style="animation-delay: {SECONDS * number}s">')
            parts.append(f'<text class="title" x="{width / 2:g}" y="27">{html.escape(title)}</text>')
            parts.append(f'<g transform="translate(9, 41)">{frame}</g></g>')
        return "\n".join([*parts, "</svg>\n"])


async def main() -> None:
    """The screens, as one picture."""
    apply_state.LONGEST_PAUSE_SECONDS = 0.1
    drawing, path = Drawing(), PICTURES / "road.svg"
    with TemporaryDirectory() as state:
        found = [(title, drawing.frame(picture)) async for title, picture in frames(Path(state))]
    path.write_text(drawing.svg(found), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    asyncio.run(main())
