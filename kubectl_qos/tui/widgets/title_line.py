"""The first line of every screen: what is shown, and how fresh it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

_SEPARATOR: Final = "  "


class TitleLine(Widget):
    """Words to the left, the state to the right; the state is never cut off."""

    DEFAULT_CSS = "TitleLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._words: tuple[str, ...] = ("kubectl qos",)
        self._state = ""

    def show(self, words: Sequence[str], state: str) -> None:
        """Other words."""
        if (tuple(words), state) != (self._words, self._state):
            self._words, self._state = tuple(words), state
            self.refresh()

    def render(self) -> Content:
        """The line, cut to the width with a sign."""
        width = self.content_size.width
        rest = _SEPARATOR + _SEPARATOR.join(self._words[1:])
        room = max(width - cell_len(self._words[0]) - cell_len(self._state) - 1, 0)
        if cell_len(rest) > room:
            rest = set_cell_size(rest, max(room - 1, 0)) + "…"
        style = "bold $error" if self._state.startswith("!") else "bold $accent"
        return Content.assemble(
            Content.styled(self._words[0], "bold"),
            Content(set_cell_size(rest, room + 1)),
            Content.styled(self._state, style),
        )
