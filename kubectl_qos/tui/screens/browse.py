"""What the first screen shows: a list, what to choose among beside it, why below it, and where that is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import var
from textual.widgets import ContentSwitcher, Static

from kubectl_qos.config.state import UiState
from kubectl_qos.present.format import escape
from kubectl_qos.tui.filters import filter_completions
from kubectl_qos.tui.follower import unexpected_error
from kubectl_qos.tui.go_to import Location, completions
from kubectl_qos.tui.lists.base import ListDefinition, ListRows, RowSelection
from kubectl_qos.tui.lists.registry import listings
from kubectl_qos.tui.lists.sidebar import Sidebar
from kubectl_qos.tui.lists.table import ListBuilt, ListTable, ListWorker
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view import ListKind, View, crumbs, empty_sentence
from kubectl_qos.tui.view_model import Trends, ViewModel
from kubectl_qos.tui.widgets.explanation_panel import ExplanationPanel
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.text_view import escape_lines
from kubectl_qos.tui.widgets.title_line import MemoryLine, TitleLine

BESIDE_SIDE: Final = frozenset({ListKind.PODS, ListKind.CONTAINERS, ListKind.WORKLOADS})
"""The lists of what is on the nodes and in the namespaces beside them."""


class BrowseScreen(QosScreen):
    """One view at a time of the app's facts, and the way through the views; keys are its heirs'."""

    AUTO_FOCUS = "#pods"

    view: var[View] = var(View())

    def __init__(self, trends: Trends, view: View) -> None:
        super().__init__()
        self.set_reactive(BrowseScreen.view, view)
        self._listings = listings(trends)
        self._lister = ListWorker(self)
        self._worked_out: ListRows | None = None
        self._awaited: Hashable = None
        self._chooses = False
        """Whether somebody moves through a pane: all of it is one step of the history."""

    def compose(self) -> ComposeResult:
        """Title, panes, list, why, prompt, keys."""
        yield TitleLine()
        yield Static(id="problem", markup=False)
        with Horizontal(id="body"):
            yield Sidebar(id="side")
            with Vertical(id="list"):
                yield MemoryLine()
                with ContentSwitcher(initial=self.view.kind.value):
                    for listing in self._listings.values():
                        yield ListTable(listing)
        yield ExplanationPanel()
        yield Static(id="notes", markup=False)
        kept = self.qos.state
        yield Prompt(
            {"/": self._filter_completions, ":": self._place_completions},
            {"/": kept.filters, ":": kept.places},
        )
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    @property
    def side(self) -> Sidebar:
        """The panes beside the list."""
        return self.query_one(Sidebar)

    @property
    def is_working_out(self) -> bool:
        """Whether the list's rows are still to come."""
        return self._worked_out is None

    @property
    def listing(self) -> ListDefinition[Any]:
        """What is listed."""
        return self._listings[self.view.kind]

    @property
    def table(self) -> ListTable:
        """The table of what is listed."""
        return self.query_one(f"#{self.view.kind.value}", ListTable)

    def on_mount(self) -> None:
        """Follow the app's facts and its state of asking."""
        for table in self.query(ListTable):
            table.restore(self.qos.state)
        columns = self.qos.settings.columns
        if columns is not None:
            self.query_one(f"#{ListKind.PODS.value}", ListTable).chosen = columns
        self._switch(self.view.kind)
        self.watch(self.app, "facts", self._show_facts)
        self.watch(self.app, "status", self._show_status)
        self.qos.show_title()

    def on_resize(self) -> None:
        """In a narrow terminal the side takes all of it."""
        self.call_after_refresh(self._fit_side)

    def _fit_side(self) -> None:
        narrow = self.has_class("-narrow")
        self.side.fit(None if narrow else self.qos.facts, self.qos.source.now())

    def _show_status(self) -> None:
        error = self.qos.status.health.error
        problem = self.query_one("#problem", Static)
        problem.display = error is not None
        if error is not None:
            hint = f"\n{error.hint}" if error.hint else ""
            again = self.qos.keys.first("app.refresh")
            problem.update(escape_lines(f"! {error}{hint}\n{again} asks again"))
        if self.qos.facts is None:
            self._show_list()

    def _show_facts(self, facts: ViewModel | None) -> None:
        if facts is None:
            self._lister.forget()
        else:
            self._leave_a_gone_node(facts)
            self._fit_side()
            self.side.show(facts, self.view, self.qos.source.now())
        self._show_list()

    def _leave_a_gone_node(self, facts: ViewModel) -> None:
        """All nodes instead, and not in silence: other pods are under the keys now."""
        node = self.view.node
        if node is None or node in facts.by_node:
            return
        what = f"{node} is gone" if node else "every pod has a node by now"
        self.qos.tell(f"{what}: all nodes are shown", wrong=True)
        self.see(replace(self.view, node=None))

    def watch_view(self, old: View, new: View) -> None:
        """Another selection shows other rows, from the first; the same rows keep their cursor."""
        if not self.is_mounted:
            return
        facts = self.qos.facts
        if old.kind != new.kind:
            self._switch(new.kind)
        if facts is not None and (old.node, old.namespace) != (new.node, new.namespace):
            self.side.show(facts, new, self.qos.source.now())
        was = self.table.row
        self._show_list()
        row, key = self.table.row, self.listing.key
        if row is not None and (was is None or key(was) != key(row)):
            self.table.action_first()

    def _switch(self, kind: ListKind) -> None:
        had_focus = self.focused is None or isinstance(self.focused, ListTable)
        self.query_one(ContentSwitcher).current = kind.value
        self.set_class(kind not in BESIDE_SIDE, "-alone")
        self.refresh_bindings()
        if had_focus or kind not in BESIDE_SIDE:
            self._focus_pane("list")

    @on(ListBuilt)
    def _list_worked_out(self, message: ListBuilt) -> None:
        try:
            self._lister.take(message)
        except Exception as error:  # noqa: BLE001 - whatever it was, the other lists go on
            self.qos.tell(str(unexpected_error(error)), wrong=True)
            if message.question.view == self.view.whole:
                return
        self._show_list()
        self._go_to_awaited()

    def _show_list(self) -> None:
        facts, table, view = self.qos.facts, self.table, self.view
        now = self.qos.source.now()
        found = self._lister.of(self.listing, facts, view) if facts is not None else None
        self._worked_out = found
        if facts is None or found is None:
            waits = facts is not None or self.qos.status.health.error is None
            asked = f"Asking {escape(self.qos.source.title)} for its pods …"
            empty = (asked if facts is None else "Working out the list …") if waits else ""
            table.show(view, [], now, empty)
        else:
            narrowed = RowSelection(self.listing, view.filter, view.at_risk, facts.taken)
            empty = empty_sentence(view, facts, self.qos.source.title, len(found.rows), self.qos.keys)
            table.show(view, found.rows, now, empty, narrowed)
        self._show_crumbs()
        self._show_why()
        self._show_notes()

    def _show_crumbs(self) -> None:
        table, found = self.table, self._worked_out
        if found is None:
            table.entitle(self.view.kind.capitalize())
            return
        key, turned = table.sorted_by
        order = self.listing.columns[key].header + (" turned" if turned else "")
        marked = len(table.marked)
        table.entitle(crumbs(self.view, len(table.rows), len(found.rows), order, marked))

    def _show_why(self) -> None:
        facts, row = self.qos.facts, self.table.row
        layout = self.listing.panel(row, facts) if facts is not None and row is not None else None
        self.query_one(ExplanationPanel).say(layout)
        node = self.view.node or (self.listing.node_of(row) if row is not None else "")
        self.query_one(MemoryLine).show(facts, node)

    def notes_now(self) -> list[str]:
        """What is missing, assumed, or other than asked for."""
        facts, found = self.qos.facts, self._worked_out
        if facts is None or found is None:
            return []
        notes = [*self.qos.notes, *([facts.notice] if facts.notice else []), *found.notes]
        return [escape_lines(note) for note in notes]

    def _show_notes(self) -> None:
        notes = self.notes_now()
        line = self.query_one("#notes", Static)
        line.display = bool(notes)
        if notes:
            key = self.qos.keys.first("main.notes")
            more = f"  ({key}: {len(notes) - 1} more)" if len(notes) > 1 else f"  ({key}: all of it)"
            line.update(f"note: {notes[0]}{more}")

    def kept(self, state: UiState) -> UiState:
        """The state with what of this screen the next run begins with."""
        prompt = self.query_one(Prompt)
        state = replace(state, filters=prompt.entered("/"), places=prompt.entered(":"))
        for table in self.query(ListTable):
            state = table.kept(state)
        return state

    def go(self, view: View) -> None:
        """Another place: back leads to the one that was shown."""
        if self.is_current:
            self.remember()
            self.qos.navigation.go(Location(view))
        self.view = view

    def remember(self) -> None:
        """Where the cursor is: coming back, it will be there again."""
        row = self.table.row
        if self.is_current and row is not None:
            navigation = self.qos.navigation
            navigation.replace(replace(navigation.place, row=self.listing.key(row)))

    def return_to(self, place: Location) -> None:
        """A place where we have been, with the cursor on the row where it was."""
        self.view = place.view
        if self.qos.facts is not None:
            self._leave_a_gone_node(self.qos.facts)
        self._awaited = place.row
        self._go_to_awaited()

    def _go_to_awaited(self) -> None:
        """Lists that are worked out in a thread have their rows a moment later."""
        if self._awaited is not None and self._worked_out is not None:
            self.table.move_to(self._awaited)
            self._awaited = None

    def see(self, view: View) -> None:
        """The same place, seen otherwise."""
        if self.is_current:
            self.qos.navigation.replace(Location(view))
        self.view = view

    @on(LineTable.Highlighted, "#side-nodes")
    @on(LineTable.Highlighted, "#side-namespaces")
    def _beside_chosen(self) -> None:
        """By where the cursors are now: a message may come when they have moved on."""
        node, namespace = self.side.nodes.row, self.side.namespaces.row
        if node is None or namespace is None:
            return
        if (node.key, namespace.key) == (self.view.node, self.view.namespace):
            return
        view = replace(self.view, node=node.key, namespace=namespace.key, workload=None, pod=None)
        (self.see if self._chooses else self.go)(view)
        self._chooses = True

    @on(LineTable.Highlighted, "ListTable")
    def _row_chosen(self) -> None:
        self._show_why()

    @on(LineTable.Sorted, "ListTable")
    def _rows_sorted(self) -> None:
        self._show_crumbs()

    @on(LineTable.Selected, "#side-nodes")
    @on(LineTable.Selected, "#side-namespaces")
    def _group_opened(self) -> None:
        self._focus_pane("list")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """In a narrow terminal the panes take turns: the focused one is shown."""
        if isinstance(event.widget, LineTable):
            in_list = isinstance(event.widget, ListTable)
            self._chooses &= not in_list
            self.set_class(not in_list, "-side")

    @property
    def _panes(self) -> tuple[LineTable[Any], ...]:
        """What tab goes through."""
        beside = (self.side.nodes, self.side.namespaces) if self.view.kind in BESIDE_SIDE else ()
        return (self.table, *beside)

    def _focus_pane(self, name: str) -> None:
        panes = {"nodes": self.side.nodes, "namespaces": self.side.namespaces}
        self.set_class(name in panes, "-side")
        panes.get(name, self.table).focus()

    def _focused_pane(self) -> int:
        return next((place for place, pane in enumerate(self._panes) if pane is self.focused), 0)

    def _filter_completions(self, text: str) -> Iterable[str]:
        return filter_completions(text, self.qos.facts, self.listing.fields)

    def _place_completions(self, text: str) -> Iterable[str]:
        return completions(text, self.qos.facts)
