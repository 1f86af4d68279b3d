"""The first line of every screen: what is shown, and how fresh it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

from kubectl_qos.present.format import binary, escape
from kubectl_qos.present.node_columns import memory_bar
from kubectl_qos.present.node_rows import NodeRow, build_node_row
from kubectl_qos.present.reasons import CLASSES
from kubectl_qos.tui.view_model import ViewModel

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


_STYLES: Final = {"success": "$success", "warning": "$warning", "": "$foreground"}
_LEAST_BAR: Final = 12


class MemoryLine(Widget):
    """The node of the row under the cursor."""

    DEFAULT_CSS = "MemoryLine { height: 1; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._of: tuple[ViewModel, str] | None = None
        self._row: NodeRow | None = None

    def show(self, facts: ViewModel | None, node: str) -> None:
        """Another node, or the same one as it is now."""
        if facts is None or not node:
            self._of, self._row = None, None
        elif self._of is None or self._of[0] is not facts or self._of[1] != node:
            self._of, self._row = (facts, node), build_node_row(facts.snapshot, node)
        self.refresh()

    def render(self) -> Content:
        """Name, capacity, bar, use, trouble; the bar takes what room there is."""
        row = self._row
        if row is None:
            return Content("")
        before = Content.styled(escape(row.name), "bold")
        trouble = [Content.styled(f"  !{one}", "bold $error") for one in row.troubles or ()]
        if row.capacity is None:
            unknown = Content.styled("  memory capacity unknown", "$secondary")
            return Content.assemble(before, unknown, *trouble)
        after = [Content(f"  {binary(row.capacity)}  ")]
        percent = row.used_percent
        if percent is None:
            after.append(Content.styled("usage unknown", "$secondary"))
        else:
            after.append(Content(f"pods use {percent:.0f}%"))
        after += trouble
        room = self.content_size.width - before.cell_length - sum(part.cell_length for part in after) - 2
        bar = memory_bar(row, room) if room >= _LEAST_BAR else ()
        return Content.assemble(
            before,
            "  ",
            *(Content.styled(part.text, _style(part.qos and CLASSES[part.qos].token)) for part in bar),
            *after,
        )


def _style(token: str | None) -> str:
    return "$secondary" if token is None else _STYLES[token]
