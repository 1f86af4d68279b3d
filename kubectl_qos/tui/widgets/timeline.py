"""The picture of the next deaths (present/timeline.py) as a widget, of a height that its width decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.style import Style
from textual.widget import Widget

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
    """Deaths on one axis; a list if it is narrow. The style at each has its `victim`, for clicks."""

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

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        height = LINES if width >= LIST_BELOW else LISTED + 1
        return height if self._shown[0] else 0

    def render(self) -> Content:
        styles = _COLOURLESS if self.app.no_color else STYLES
        return Content("\n").join(
            Content.assemble(
                *(
                    Content.styled(span.text, styles[span.style]).stylize(
                        Style.from_meta({"victim": span.victim})
                    )
                    for span in line
                )
            )
            for line in self.lines(self.content_size.width)
        )
