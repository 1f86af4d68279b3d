"""Things to choose among or to switch, side by side; a click says which, what is on the screen knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget


class Option(NamedTuple):
    """One of them; a switch stands for itself, of all others one is chosen."""

    name: str
    is_on: bool
    is_switch: bool = False

    @property
    def text(self) -> str:
        """With its sign: colour is never the only one."""
        if self.is_switch:
            return f"[{'x' if self.is_on else ' '}] {self.name}"
        return f"{'>' if self.is_on else ' '} {self.name}"

    @property
    def gap(self) -> int:
        """So many cells before it."""
        return 2 if self.is_switch else 1


class OptionBar(Widget):
    """All of them beside each other, below each other where there is no room."""

    DEFAULT_CSS = "OptionBar { height: auto; width: 1fr; }"

    class Clicked(Message):
        """This one is meant."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        super().__init__()
        self._choices: tuple[Option, ...] = ()

    def show(self, choices: Sequence[Option]) -> None:
        """These."""
        if tuple(choices) != self._choices:
            self._choices = tuple(choices)
            self.refresh(layout=True)

    def _lines(self, width: int) -> list[list[Option]]:
        """As many of them in a line as there is room for."""
        lines: list[list[Option]] = [[]]
        room = width
        for one in self._choices:
            needed = one.gap + cell_len(one.text)
            if needed > room and lines[-1]:
                lines.append([])
                room = width
            lines[-1].append(one)
            room -= needed
        return lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line each."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """What is on stands out."""
        lines = [
            Content.assemble(
                *(
                    Content.assemble(
                        " " * one.gap, Content.styled(one.text, "bold $accent" if one.is_on else "")
                    )
                    for one in line
                )
            )
            for line in self._lines(self.content_size.width)
        ]
        return Content("\n").join(lines)

    def on_click(self, event: events.Click) -> None:
        """The one under the mouse."""
        place = event.get_content_offset(self)
        if place is None:
            return
        x = place.x
        for one in self._lines(self.content_size.width)[place.y]:
            x -= one.gap
            if 0 <= x < cell_len(one.text):
                self.post_message(self.Clicked(one.name))
            x -= cell_len(one.text)
