"""The picture of the next deaths (present/timeline.py) as a widget, of a height that its width decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.timeline import LINES, LIST_BELOW, LISTED, Focus, Line, timeline
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth

STYLES: Final = {
    "": "",
    "axis": "$secondary",
    "now": "bold $accent",
    "mark": "$accent",
    "far": "bold",
    "near": "bold $warning",
    "danger": "bold $error",
    "time": "$warning",
    "muted": "$secondary",
    "mine": "bold $accent",
}
_COLOURLESS: Final = {
    **{name: style.partition("$")[0].strip() for name, style in STYLES.items()},
    "danger": "bold reverse",
}
"""Without colours the weight alone shows what matters."""


class Timeline(Widget):
    """Deaths on one axis; a list if it is narrow. A click on one chooses its victim."""

    @dataclass
    class Chosen(Message):
        """This pod was clicked."""

        pod: PodKey

    DEFAULT_CSS = "Timeline { height: auto; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[tuple[NextDeath, ...], Growth, bool] = ((), NO_GROWTH, False)
        self._drawn: tuple[int, list[Line]] = (-1, [])

    def show(
        self, deaths: Sequence[NextDeath], *, growth: Growth = NO_GROWTH, in_danger: bool = False
    ) -> None:
        """Show deaths, the nearest first; without any it takes no room. See `present.timeline.timeline`."""
        shown = tuple(deaths), growth, in_danger
        if shown != self._shown:
            is_other = bool(shown[0]) != bool(self._shown[0])
            self._shown, self._drawn = shown, (-1, [])
            self.refresh(layout=is_other)

    def lines(self, width: int) -> list[Line]:
        if self._drawn[0] != width:
            deaths, growth, in_danger = self._shown
            drawn = timeline(deaths, width, growth=growth, focus=Focus(in_danger=in_danger))
            self._drawn = width, drawn if deaths else []
        return self._drawn[1]

    def on_click(self, event: events.Click) -> None:
        if 0 <= event.y < len(lines := self.lines(self.content_size.width)):
            ends = accumulate(len(span.text) for span in lines[event.y])
            span = next((span for span, end in zip(lines[event.y], ends, strict=True) if event.x < end), None)
            if span is not None and span.victim is not None:
                self.post_message(self.Chosen(span.victim))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        height = LINES if width >= LIST_BELOW else LISTED + 1
        return height if self._shown[0] else 0

    def render(self) -> Content:
        styles = _COLOURLESS if self.app.no_color else STYLES
        return Content("\n").join(
            Content.assemble(*(Content.styled(span.text, styles[span.style]) for span in line))
            for line in self.lines(self.content_size.width)
        )
