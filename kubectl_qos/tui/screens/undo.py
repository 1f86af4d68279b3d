"""What was applied to clusters, in this run and in earlier ones, and the way to take it back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.edit.history import Entry, EntryState, find_conflicts, undo_edits
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import QosError
from kubectl_qos.present.apply import change_lines, entry_change, entry_object, entry_state, entry_when
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, column
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.edit_target import EditTarget, pod_from_raw, stub
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.lists.base import fitting_columns
from kubectl_qos.tui.screens.apply import ApplyOutcome, ApplyScreen
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.strategies import error_lines, layout_lines
from kubectl_qos.tui.widgets.table_cells import Layout
from kubectl_qos.tui.widgets.text_view import TextLine, TextView
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.workers import RelatedLoaded, load_related

_IMPORTANCE: Final = ("change", "object", "state", "when", "context", "object", "change", "context")
_SQUEEZED: Final = {"object": 16, "change": 20, "context": 8}


class HistoryLoaded(Message):
    """The entries of the journal, the newest first."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.entries = entries


class UndoScreen(QosScreen):
    """The writes, the newest first; the whole of the one under the cursor below."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.UNDO)
    CSS_PATH = "apply.tcss"
    AUTO_FOCUS = "LineTable"
    rooms = (BindingGroup.UNDO,)

    def __init__(self, facts: ViewModel, source: Source) -> None:
        super().__init__()
        self._facts = facts
        self._source = source
        self._undone: frozenset[str] = frozenset()
        self._asked: tuple[Entry, EditTarget] | None = None
        self._error: tuple[Entry, QosError] | None = None

    def compose(self) -> ComposeResult:
        """The table, and the entry."""
        yield TitleLine()
        yield Static(Content("what was applied"), id="subject")
        yield LineTable[Entry](natural="when", key=lambda entry: entry.id, token=_token)
        yield TextView(layout_lines([]), id="entry")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Read the journal."""
        self.qos.show_title()
        self._read()

    @property
    def table(self) -> LineTable[Entry]:
        """The entries."""
        return self.query_one(LineTable)

    def _read(self) -> None:
        in_background(self, partial(_remembered, self.qos.writing.history))

    def on_history_loaded(self, message: HistoryLoaded) -> None:
        """Show them."""
        self._undone = frozenset(
            entry.undoes for entry in message.entries if entry.undoes and entry.state is EntryState.DONE
        )
        now = self.qos.source.now()
        empty = "Nothing was applied yet." + (
            f" {problem}" if (problem := self.qos.writing.history.problem) else ""
        )
        self.table.load(message.entries, partial(self._fitting, message.entries, now), now, empty=empty)
        self._show()

    def _fitting(self, entries: Sequence[Entry], now: datetime, available: int) -> Layout[Entry]:
        contexts: list[Column[Entry]] = [column("context", lambda entry: entry.context)]
        columns = [
            column("when", lambda entry: entry_when(entry, now), header="WHEN (UTC)"),
            *(contexts if len({entry.context for entry in entries}) > 1 else []),
            column("object", entry_object),
            column("change", entry_change),
            column("state", self._state),
        ]
        return fitting_columns(columns, _IMPORTANCE, entries, now, available, _SQUEEZED)

    def _state(self, entry: Entry) -> str:
        return entry_state(entry, undone=entry.id in self._undone).partition(":")[0]

    @on(LineTable.Highlighted)
    def _show(self) -> None:
        entry = self.table.row
        self.query_one("#entry", TextView).show(layout_lines(self._lines(entry) if entry is not None else []))

    def _lines(self, entry: Entry) -> list[TextLine]:
        lines = [TextLine(f"{entry_object(entry)} in {escape(entry.context)}", "answer")]
        lines += [TextLine(f"  {line}") for line in change_lines(entry.before, entry.after)]
        lines.append(TextLine(f"  {entry_state(entry, undone=entry.id in self._undone)}"))
        if self._error is not None and self._error[0].id == entry.id:
            lines += error_lines("it cannot be taken back", self._error[1])
        elif self._asked is not None and self._asked[0].id == entry.id:
            lines.append(TextLine("  asking what is there now …", "muted"))
        return lines

    @on(LineTable.Selected)
    def action_open(self) -> None:
        """Ask what is there now; then the way to take it back."""
        entry = self.table.row
        if entry is None or self._asked is not None:
            return
        why = self._why_not(entry)
        if why:
            self._error = entry, QosError(why)
        else:
            subject = EditTarget(stub(entry.kind, entry.namespace, entry.name), self._facts, self._source)
            self._asked, self._error = (entry, subject), None
            in_background(self, partial(load_related, subject))
        self._show()

    def _why_not(self, entry: Entry) -> str:
        if entry.state is EntryState.REFUSED:
            return "the server refused it: nothing was changed"
        if entry.id in self._undone:
            return "it was taken back already"
        if entry.context != self._source.title:
            return f"it was applied in {entry.context}, this is {self._source.title}: go there first (:ctx)"
        return ""

    def on_related_loaded(self, message: RelatedLoaded) -> None:
        """The way, with what is there now."""
        if self._asked is None or message.subject is not self._asked[1]:
            return
        entry, self._asked = self._asked[0], None
        try:
            screen = self._way_back(entry, message.found)
        except QosError as error:
            self._error = entry, error
        else:
            if self.is_uppermost:
                self.qos.push_screen(screen, lambda _: self._came_back(screen))
        self._show()

    def _way_back(self, entry: Entry, found: RelatedObjects | QosError) -> ApplyScreen:
        """The way of what takes it back. Raises QosError where there is none."""
        if isinstance(found, QosError):
            raise found
        pod = pod_from_raw(entry.kind, found.raw)
        uid = str((found.raw.get("metadata") or {}).get("uid", ""))
        return ApplyScreen(
            EditTarget(pod, self._facts, self._source),
            undo_edits(entry, pod, uid=uid),
            found,
            undoes=entry.id,
            conflicts=find_conflicts(entry, pod),
        )

    def _came_back(self, screen: ApplyScreen) -> None:
        """The journal may have more by now."""
        self._read()
        if screen.end is ApplyOutcome.LOOK_AGAIN:
            self.action_open()


def _remembered(history: HistoryFile) -> HistoryLoaded:
    """Read the journal; runs in a thread, a home folder may be far away."""
    return HistoryLoaded(tuple(reversed(history.entries())))


def _token(entry: Entry, key: str) -> str:
    if key != "state":
        return ""
    return {EntryState.DONE: "", EntryState.REFUSED: "muted"}.get(entry.state, "warning")
