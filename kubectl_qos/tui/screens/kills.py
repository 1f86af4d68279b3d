"""What was killed, by which mechanism and how sure that is: the screen of `kubectl qos kills`.

Events are asked for, and deaths worked out, in a thread; a message brings them. Not here: kernel logs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime
from functools import partial
from operator import is_
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import OTHER_PODS
from kubectl_qos.present.format import escape
from kubectl_qos.present.kills import LATER, columns, detail_lines, nothing_sentence
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.follower import FollowStatus, in_background
from kubectl_qos.tui.go_to import Detail
from kubectl_qos.tui.lists.base import fitting_columns
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.footer import KeyFooter, unwatch
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.strategies import layout_lines
from kubectl_qos.tui.widgets.table_cells import Layout
from kubectl_qos.tui.widgets.text_view import (
    TextLine,
    TextScroll,
    TextView,
    escape_lines,
    note_lines,
    wrapped,
)
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.workers import KillScope, KillsLoaded, load_kills

_IMPORTANCE: Final = ("pod", "by", "sure", "time", "pod", "namespace", "container", "node", "node", "exit")
_IMPORTANCE_LAST: Final = ("reason",)
_LEFT_OUT: Final = frozenset({"score", "freed", "victim", "place"})
"""What only the kernel's log tells."""
_SQUEEZED: Final = {"pod": 16, "node": 8}
_TOKENS: Final = {
    Confidence.CERTAIN: "success",
    Confidence.LIKELY: "",
    Confidence.POSSIBLE: "muted",
}


class KillsScreen(QosScreen):
    """The deaths, the newest first; the whole of the one under the cursor below."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.KILLS)
    CSS_PATH = "kills.tcss"
    AUTO_FOCUS = "LineTable"
    rooms = (BindingGroup.KILLS,)

    def __init__(self, facts: ViewModel, *, node: str | None, namespace: str | None) -> None:
        super().__init__()
        self._whose = KillScope(node, facts.scope.namespace if namespace is None else namespace)
        self._facts = facts
        self._event_list: EventList | None = None
        self._kills: Sequence[Kill] = ()
        self._error: QosError | None = None
        self._is_working = self._is_stale = self._wants_events = False

    def compose(self) -> ComposeResult:
        """Whose deaths, the list, the evidence of one of them."""
        yield TitleLine()
        yield Static(Content(self._subject), id="subject")
        yield LineTable[Kill](natural="time", key=_key, token=_token)
        with TextScroll():
            yield TextView(self._layout, id="evidence")
        yield TextView(self._notes_layout, id="kills-notes")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Read, and again with every refresh and whenever pods have changed."""
        self.qos.show_title()
        self._wants_events = True
        self._read()
        self._show()
        self.watch(self.app, "facts", self._follow, init=False)
        self.watch(self.app, "status", self._refreshed, init=False)

    def on_unmount(self) -> None:
        """Follow nothing any more."""
        unwatch(self.app, self)

    @property
    def table(self) -> LineTable[Kill]:
        """The deaths."""
        return self.query_one(LineTable)

    @property
    def _subject(self) -> str:
        words = "what was killed"
        if self._whose.namespace:
            words += f" in namespace {escape(self._whose.namespace)}"
        return words + (f" on {escape(self._whose.node)}" if self._whose.node else "")

    def _follow(self, facts: ViewModel | None) -> None:
        """Usage changes all the time and kills nobody: only other pods are looked at."""
        if facts is None:
            return
        before, self._facts = self._facts.snapshot, facts
        pods = facts.snapshot.pods
        if len(pods) != len(before.pods) or not all(map(is_, pods, before.pods)):
            self._read()

    def _refreshed(self, before: FollowStatus, status: FollowStatus) -> None:
        """Who asks for new facts wants new events too."""
        if status.asking and not before.asking:
            self._wants_events = True
            self._read()

    def _read(self) -> None:
        """One question at a time: what changes meanwhile is looked at next."""
        self._is_stale = self._is_working
        if not self._is_working:
            self._is_working = True
            known = None if self._wants_events else self._event_list
            self._wants_events = False
            in_background(self, partial(load_kills, self.qos.source, self._facts, self._whose, known))

    def on_kills_loaded(self, message: KillsLoaded) -> None:
        """Show them; what was shown before stays where they could not be read."""
        self._is_working = False
        if isinstance(message.found, QosError):
            self._error = message.found
        else:
            self._event_list, self._kills = message.found
            self._error = None
        if self._is_stale:
            self._read()
        self._show()

    def _show(self) -> None:
        now, kills = self.qos.source.now(), self._kills
        empty = ""
        if not kills and self._error is None:
            empty = "Reading …" if self._event_list is None else nothing_sentence(self._whose.namespace)
        self.table.load(kills, partial(self._fitting, kills, now), now, empty=empty)
        self.query_one("#kills-notes", TextView).show(self._notes_layout)
        self._show_one()

    def _fitting(self, kills: Sequence[Kill], now: datetime, available: int) -> Layout[Kill]:
        shown = [column for column in columns(wide=True) if column.key not in _LEFT_OUT]
        importance = (*_IMPORTANCE, *_IMPORTANCE_LAST)
        return fitting_columns(shown, importance, kills, now, available, _SQUEEZED)

    @on(LineTable.Highlighted)
    def _show_one(self) -> None:
        self.query_one("#evidence", TextView).show(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        """A refusal before everything else; the evidence, or what would show here."""
        found: list[TextLine] = []
        if self._error is not None:
            hint = [TextLine(f"  {escape_lines(self._error.hint)}")] if self._error.hint else []
            error = TextLine(f"! {escape_lines(str(self._error))}", "wrong")
            found += [*layout_lines([error, *hint])(width), TextLine("")]
        kill = self.table.row
        if kill is not None:
            subject, blank, diagnosis, *others = detail_lines(kill, width)
            found += [TextLine(text, "answer") for text in wrapped(subject, width)]
            found += [TextLine(text, "title") for text in wrapped(diagnosis, width)]
            found += [TextLine(blank), *map(TextLine, others)]
        elif self._event_list is not None:
            found += [TextLine(text, "muted") for text in wrapped(LATER, width, hanging="")]
        return found

    def _notes_layout(self, width: int) -> list[TextLine]:
        key = self.qos.keys.first("kills.notes")
        return list(note_lines(self.notes_now(), key, width, is_roomy=False, style=""))

    def notes_now(self) -> list[str]:
        """What could not be read."""
        missing = [one for one in self._facts.snapshot.missing if one.what != OTHER_PODS]
        if self._event_list is not None and self._event_list.missing is not None:
            missing.insert(0, self._event_list.missing)
        return [escape_lines(missing_sentence(one)) for one in missing]

    @on(LineTable.Selected)
    def action_explain(self) -> None:
        """Why the pod stands where it stands, if it still lives."""
        kill = self.table.row
        if kill is None:
            self.qos.tell("there is no pod to open", wrong=True)
            return
        pod = pod_named(self._facts, (kill.namespace, kill.pod))
        if pod is None:
            self.qos.tell("that pod is gone", wrong=True)
        elif self.is_uppermost:
            self.qos.open(Detail.EXPLAIN, pod)

    def action_other(self) -> None:
        """From the list to the evidence, and back."""
        (self.query_one(TextScroll) if self.table.has_focus else self.table).focus()

    def action_notes(self) -> None:
        """Whole."""
        notes = self.notes_now()
        if notes:
            self.qos.read("Notes", notes)
        else:
            self.qos.tell("everything could be read, other than kernel logs")

    def action_copy(self) -> None:
        """All of them as text."""
        if not self.table.rows:
            self.qos.tell("there is nothing to copy", wrong=True)
            return
        blocks = ["\n".join(detail_lines(kill)) for kill in self.table.rows]
        self.qos.copy("\n\n".join(blocks) + "\n", "what was killed")

    def action_back(self) -> None:
        """Back to the list."""
        self.dismiss()


def _key(kill: Kill) -> Hashable:
    return kill.namespace, kill.pod, kill.container, kill.container_id, kill.time


def _token(kill: Kill, key: str) -> str:
    return _TOKENS[kill.diagnosis.confidence] if key == "sure" else ""
