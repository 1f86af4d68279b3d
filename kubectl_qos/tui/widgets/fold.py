"""A section with a title that says the answer, and a text below it that can be folded away."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.widgets.document import Document, TextLayout, wrapped


class FoldTitle(Widget, can_focus=True):
    """The line that stays; enter and a click fold and unfold."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.FOLD)

    folded = reactive(False)

    def __init__(self, title: str, answer: str, width: int, *, foldable: bool) -> None:
        super().__init__()
        self._title = title.ljust(width)
        self._answer = answer
        self._foldable = foldable

    def render(self) -> Content:
        """The sign of folding, the title, the answer."""
        sign = ("▸" if self.folded else "▾") if self._foldable else " "
        left = len(self._title) + 4
        lines = wrapped(self._answer, self.content_size.width - left, hanging="")
        answer = f"\n{' ' * left}".join(lines)
        return Content.assemble(
            f"{sign} ",
            Content.styled(self._title, "bold $accent"),
            "  ",
            Content.styled(answer, "bold"),
        )

    def action_fold(self) -> None:
        """Fold or unfold."""
        self.folded = not self.folded

    def on_click(self) -> None:
        """Likewise."""
        self.action_fold()


class Fold(Vertical):
    """A title and what is below it."""

    def __init__(self, title: str, answer: str, layout: TextLayout | None, width: int) -> None:
        super().__init__()
        self.title = FoldTitle(title, answer, width, foldable=layout is not None)
        self._body = Document(layout) if layout is not None else None

    def compose(self) -> ComposeResult:
        """The title, and the text if there is any."""
        yield self.title
        if self._body is not None:
            yield self._body

    def on_mount(self) -> None:
        """The text follows the title."""
        self.watch(self.title, "folded", self._show)

    def _show(self, folded: bool) -> None:
        if self._body is not None:
            self._body.display = not folded
