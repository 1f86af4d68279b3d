"""The change history: changes applied to clusters, in this run and in earlier ones, and reverting them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.source import Source, related_to
from kubectl_qos.edit.history import Entry, EntryState, undos
from kubectl_qos.edit.related import RelatedObjects, pod_reference
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.changes import change_lines, entry_change, entry_object, entry_state, entry_when
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, ColumnType, column, largest_first
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.apply_lines import error_lines
from kubectl_qos.tui.background import run_in_background
from kubectl_qos.tui.running_change import RunningChange
from kubectl_qos.tui.screens.apply import ApplyOutcome, ApplyScreen
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import Layout, fitting_columns
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, layout_lines

_IMPORTANCE: Final = "change object state when context object change context"
_SQUEEZED: Final = {"object": 16, "change": 20, "context": 8}


class UndoScreen(QosScreen, group=BindingGroup.UNDO):
    """The entries, the newest first; below them the whole entry under the cursor."""

    AUTO_FOCUS = "LineTable"

    def __init__(self, view_model: ViewModel, source: Source) -> None:
        super().__init__()
        self._view_model = view_model
        self._source = source
        self._undone: dict[str, Entry] = {}
        self._loading: Entry | None = None
        self._error: tuple[Entry, QosError] | None = None

    def compose_content(self) -> ComposeResult:
        yield Static(Content("change history"), id="subject")
        table = LineTable[Entry](natural="when", key=lambda entry: entry.id, token=_token)
        table.border_title = "Applied, the newest first"
        yield table
        entry = TextView(id="entry")
        entry.border_title = "Change"
        yield entry

    def on_mount(self) -> None:
        self.watch(self.app, "view_model", self._read)  # ages grow, and changes come to their ends

    @property
    def not_in_footer(self) -> Collection[str]:
        return () if self.table.rows else {"open"}

    @property
    def table(self) -> LineTable[Entry]:
        return self.query_one(LineTable)

    def _read(self) -> None:
        run_in_background(self, self.qos.writing.history.entries, self._history_loaded)

    def _history_loaded(self, history: Sequence[Entry] | QosError) -> None:
        entries = () if isinstance(history, QosError) else tuple(reversed(history))
        self._undone = undos(entries)
        now = self.qos.source.now()
        empty = "Nothing was applied yet." + (
            f" {problem}" if (problem := self.qos.writing.history.problem) else ""
        )
        self.table.load(entries, partial(self._fitting, entries, now), now, empty=empty)
        self.refresh_bindings()
        self._show()

    def _fitting(self, entries: Sequence[Entry], now: datetime, available: int) -> Layout[Entry]:
        contexts: list[Column[Entry]] = [column("context", lambda entry: entry.context)]
        columns = [
            column(
                "when", lambda entry: entry.at, type=ColumnType.TIME, header="AGE", sort_key=_newest_first
            ),
            *(contexts if len({entry.context for entry in entries}) > 1 else []),
            column("object", entry_object),
            column("change", entry_change),
            column("state", self._state),
        ]
        return fitting_columns(columns, _IMPORTANCE, entries, now, available, _SQUEEZED)

    def _state(self, entry: Entry) -> str:
        return entry_state(entry, self._undone.get(entry.id)).partition(":")[0]

    @on(LineTable.Highlighted)
    def _show(self) -> None:
        entry = self.table.row
        self.query_one("#entry", TextView).show(layout_lines(self._lines(entry) if entry is not None else []))

    def _lines(self, entry: Entry) -> list[TextLine]:
        lines = [TextLine(f"{entry_object(entry)} in {escape(entry.context)}", "answer")]
        lines.append(TextLine(f"  {entry_when(entry, self.qos.source.now())}", "muted"))
        lines += [TextLine(f"  {line}") for line in change_lines(entry.before, entry.after)]
        lines.append(TextLine(f"  {entry_state(entry, self._undone.get(entry.id))}"))
        if self._error is not None and self._error[0].id == entry.id:
            lines += error_lines("cannot be reverted", self._error[1])
        elif self._loading is not None and self._loading.id == entry.id:
            lines.append(TextLine("  loading the object …", "muted"))
        return lines

    @on(LineTable.Selected)
    def action_open(self) -> None:
        entry = self.table.row
        if entry is None or self._loading is not None:
            return
        why = self._why_not(entry)
        if why:
            self._error = entry, QosError(why)
        else:
            self._loading, self._error = entry, None
            pod = pod_reference(entry.kind, entry.namespace, entry.name)
            run_in_background(
                self, partial(related_to, self._source, pod), partial(self._related_loaded, entry)
            )
        self._show()

    def _why_not(self, entry: Entry) -> str:
        if entry.state is EntryState.REFUSED:
            return "the server refused it: nothing was changed"
        if (undo := self._undone.get(entry.id)) is not None:
            return "already reverted" if undo.state is EntryState.DONE else "it is being reverted"
        if entry.context != self._source.title:
            return f"it was applied in {entry.context}, this is {self._source.title}: go there first (:ctx)"
        return ""

    def _related_loaded(self, entry: Entry, related: RelatedObjects | QosError) -> None:
        self._loading = None
        try:
            screen = ApplyScreen(self._begin(entry, related))
        except QosError as error:
            self._error = entry, error
        else:
            if self.is_uppermost:
                self.qos.push_screen(screen, lambda _: self._came_back(screen))
        self._show()

    def _begin(self, entry: Entry, related: RelatedObjects | QosError) -> RunningChange:
        """Return the change that reverts an entry. Raises QosError if there is none."""
        if isinstance(related, QosError):
            raise related
        return self.qos.writing.begin_undo(entry, related, self._view_model, self._source)

    def _came_back(self, screen: ApplyScreen) -> None:
        self._read()
        if screen.outcome is ApplyOutcome.RELOAD:
            self.action_open()


def _newest_first(entry: Entry) -> float:
    when = parse_time(entry.at)
    return largest_first(when.timestamp() if when is not None else None)


def _token(entry: Entry, key: str) -> str:
    if key != "state":
        return ""
    if entry.is_stored and entry.state is not EntryState.FAILED:
        return ""
    return "muted" if entry.state is EntryState.REFUSED else "warning"
