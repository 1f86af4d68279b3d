"""A section with a title that says the answer, and a text below it that can be folded away."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, TextView, wrapped


class CollapsibleTitle(Widget, can_focus=True):
    """The line that stays; enter and a click fold and unfold."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.FOLD)

    folded = reactive(False)
    foldable = reactive(False)
    answer = reactive("", layout=True)
    column = reactive(0, layout=True)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def render(self) -> Content:
        """The sign of folding, the title in its column, the answer."""
        sign = ("▸" if self.folded else "▾") if self.foldable else " "
        title = self._title.ljust(self.column)
        left = len(title) + 4
        lines = wrapped(self.answer, self.content_size.width - left, hanging="")
        answer = f"\n{' ' * left}".join(lines)
        return Content.assemble(
            f"{sign} ",
            Content.styled(title, "bold $accent"),
            "  ",
            Content.styled(answer, "bold"),
        )

    def action_fold(self) -> None:
        """Fold or unfold."""
        self.folded = not self.folded

    def on_click(self) -> None:
        """Likewise."""
        self.action_fold()


class Collapsible(Vertical):
    """A title and what is below it; both may change, and what is folded stays so."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = CollapsibleTitle(title)
        self._body = TextView(_nothing)

    def compose(self) -> ComposeResult:
        """The title, and the text if there is any."""
        yield self.title
        yield self._body

    def on_mount(self) -> None:
        """The text follows the title."""
        self.watch(self.title, "folded", self._show_body)

    def show_title(self, answer: str, column: int) -> None:
        """This answer, behind a title that takes so many cells."""
        self.title.answer = answer
        self.title.column = column

    def show_text(self, layout: TextLayout | None) -> None:
        """This text, or none, which then cannot be folded."""
        self.title.foldable = layout is not None
        self._body.show(layout or _nothing)
        self._show_body()

    def _show_body(self) -> None:
        self._body.display = self.title.foldable and not self.title.folded


def _nothing(_: int) -> list[TextLine]:
    return []
