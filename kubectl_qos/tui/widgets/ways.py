"""The ways in which a change can land, one of them chosen."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.containers import Vertical
from textual.message import Message

from kubectl_qos.edit.landing import Way
from kubectl_qos.present.landing import way_effect, way_title
from kubectl_qos.tui.widgets.document import Document, TextLayout, TextLine, wrapped


class WayLine(Document):
    """One way; a click chooses it."""

    class Clicked(Message):
        """This one is to be chosen."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, number: int, layout: TextLayout) -> None:
        super().__init__(layout)
        self._number = number

    def on_click(self, event: events.Click) -> None:
        """Choose it."""
        event.stop()
        self.post_message(self.Clicked(self._number))


class Ways(Vertical):
    """All of them below each other; which one is chosen, the screen knows."""

    DEFAULT_CSS = "Ways { height: auto; }"

    def show(self, ways: Sequence[Way], chosen: int) -> None:
        """These, with a sign at the chosen one."""
        column = max((len(way_title(way)) for way in ways), default=0)
        layouts = [_layout(way, column, is_chosen=number == chosen) for number, way in enumerate(ways)]
        lines = list(self.query(WayLine))
        for line, layout in zip(lines, layouts, strict=False):
            line.show(layout)
        for line in lines[len(layouts) :]:
            line.remove()
        self.mount_all(WayLine(number, layouts[number]) for number in range(len(lines), len(layouts)))


def _layout(way: Way, column: int, *, is_chosen: bool) -> TextLayout:
    left = f"{'>' if is_chosen else ' '} {way_title(way).ljust(column)}  "
    token = "title" if is_chosen else "" if way.is_possible else "muted"

    def layout(width: int) -> list[TextLine]:
        first, *more = wrapped(way_effect(way), width - len(left), hanging="")
        return [TextLine(left + first, token), *(TextLine(" " * len(left) + text, token) for text in more)]

    return layout
