"""One line about the memory of a node: what each class uses of it, and whether the node is in trouble."""

from __future__ import annotations

from typing import Final

from textual.content import Content
from textual.widget import Widget

from kubectl_qos.present.amounts import binary, escape
from kubectl_qos.present.bars import memory_bar
from kubectl_qos.present.marks import CLASSES
from kubectl_qos.present.node_rows import NodeRow, node_row_of
from kubectl_qos.tui.facts import Facts

_STYLES: Final = {"success": "$success", "warning": "$warning", "": "$foreground"}
_LEAST_BAR: Final = 12


class MemoryLine(Widget):
    """The node of the row under the cursor."""

    DEFAULT_CSS = "MemoryLine { height: 1; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._of: tuple[Facts, str] | None = None
        self._row: NodeRow | None = None

    def show(self, facts: Facts | None, node: str) -> None:
        """Another node, or the same one as it is now."""
        if facts is None or not node:
            self._of, self._row = None, None
        elif self._of is None or self._of[0] is not facts or self._of[1] != node:
            self._of, self._row = (facts, node), node_row_of(facts.snapshot, node)
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
