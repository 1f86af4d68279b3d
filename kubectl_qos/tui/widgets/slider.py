"""A line to slide along: an amount between nothing and an end, by mouse; keys are the screen's."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from kubectl_qos.present.format import binary

_LEFT: Final = "0 "


class Slider(Widget):
    """Shows where the amount is; says where a person wants it."""

    DEFAULT_CSS = "Slider { height: 1; width: 1fr; }"

    class Moved(Message):
        """The amount is to be this, in steps."""

        def __init__(self, amount: int) -> None:
            super().__init__()
            self.amount = amount

    def __init__(self) -> None:
        super().__init__()
        self._amount, self._top, self._step = 0, 1, 1
        self._held = False

    def show(self, amount: int, top: int, step: int) -> None:
        """Where it is, where it ends, and to which multiples it goes."""
        if (amount, top, step) != (self._amount, self._top, self._step):
            self._amount, self._top, self._step = amount, top, step
            self.refresh()

    @property
    def _right(self) -> str:
        return f" {binary(self._top)}"

    @property
    def _cells(self) -> int:
        """Of the line between its ends."""
        return max(self.content_size.width - cell_len(_LEFT) - cell_len(self._right), 2)

    def render(self) -> Content:
        """What is before the knob, the knob, what is behind it."""
        place = round((self._cells - 1) * min(self._amount, self._top) / self._top)
        return Content.assemble(
            Content.styled(_LEFT, "$secondary"),
            Content.styled("━" * place, "$accent"),
            Content.styled("●", "bold $accent"),
            Content.styled("─" * (self._cells - place - 1), "$secondary"),
            Content.styled(self._right, "$secondary"),
        )

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """To here, and on with the mouse."""
        self._held = True
        self.capture_mouse()
        self._go_to(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """With the mouse."""
        if self._held:
            self._go_to(event)

    def on_mouse_up(self) -> None:
        """It stays."""
        self._held = False
        self.release_mouse()

    def _go_to(self, event: events.MouseEvent) -> None:
        cell = event.screen_x - self.content_region.x - cell_len(_LEFT)
        part = max(min(cell, self._cells - 1), 0) / (self._cells - 1)
        amount = self._top if part == 1 else round(part * self._top / self._step) * self._step
        if amount != self._amount:
            self.post_message(self.Moved(amount))
