"""Why one pod stands where it stands: the answers first, each with its proof below, to be folded away."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, Static

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.explanation import Explanation, Line, Section, explain_pod, text_lines
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.widgets.document import TextLayout, TextLine, TextScroll, wrapped
from kubectl_qos.tui.widgets.fold import Fold, FoldTitle
from kubectl_qos.tui.widgets.title_line import TitleLine

NOTE_AT_MOST: Final = 46
"""Notes begin no further to the right than this."""
NOTE_AT_LEAST: Final = 26
"""A note with less room than this goes below its line."""


class ExplainScreen(QosScreen):
    """The sections of `kubectl qos explain`, of a pod as it was when the screen was opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.EXPLAIN)
    CSS_PATH = "explain.tcss"
    AUTO_FOCUS = "FoldTitle"
    rooms = (Room.EXPLAIN,)

    def __init__(self, pod: Pod, facts: Facts) -> None:
        super().__init__()
        self._pod = pod
        self._facts = facts

    def compose(self) -> ComposeResult:
        """The subject, then a fold for each section."""
        explanation = self._explanation()
        width = max(len(section.title) for section in explanation.sections)
        yield TitleLine()
        yield Static(Content(explanation.subject + self.qos.as_of(self._facts)), id="subject")
        with TextScroll(can_focus=False), Vertical(id="sections"):
            for section in explanation.sections:
                layout = section_layout(section) if section.lines else None
                yield Fold(section.title, section.answer, layout, width)
        yield Footer(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The title of the moment."""
        self.qos.show_title()

    def _explanation(self) -> Explanation:
        return explain_pod(self._pod, self._facts.snapshot, self._facts.taken)

    def action_edit(self) -> None:
        """Change its requests and limits."""
        self.qos.edit(self._pod)

    def action_copy(self) -> None:
        """The same as text."""
        self.qos.copy("\n".join(text_lines(self._explanation())), "the explanation")

    def action_next(self) -> None:
        """The next section."""
        self.focus_next(FoldTitle)

    def action_previous(self) -> None:
        """The section before."""
        self.focus_previous(FoldTitle)

    def action_fold(self) -> None:
        """Fold everything; if everything is folded, unfold it."""
        titles = list(self.query(FoldTitle))
        folded = not all(title.folded for title in titles)
        for title in titles:
            title.folded = folded

    def action_back(self) -> None:
        """Back to where we came from."""
        self.dismiss()


def section_layout(section: Section) -> TextLayout:
    """The lines of a section: what is said to the left, why behind it or, without room, below it."""
    lengths = (2 * line.depth + len(line.text) for line in section.lines if line.note)
    column = max((length for length in lengths if length <= NOTE_AT_MOST), default=0)

    def layout(width: int) -> list[TextLine]:
        return [text for line in section.lines for text in _laid_out(line, column, width)]

    return layout


def _laid_out(line: Line, column: int, width: int) -> list[TextLine]:
    indent = "  " * (line.depth + 1)
    if not line.note:
        return [TextLine(text) for text in wrapped(line.text, width, indent)]
    left = indent + line.text
    begin = max(column + 2, len(left)) + 3
    if width - begin < min(NOTE_AT_LEAST, len(line.note)):
        notes = wrapped(line.note, width, f"{indent}    ")
        texts = wrapped(line.text, width, indent)
        return [*map(TextLine, texts), *(TextLine(note, "muted") for note in notes)]
    first, *more = wrapped(line.note, width - begin, hanging="")
    return [TextLine(left.ljust(begin) + first), *(TextLine(" " * begin + text) for text in more)]
