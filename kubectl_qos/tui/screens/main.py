"""The first screen: nodes and namespaces to browse, the pods of the selection in kill order, and why."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import var
from textual.widgets import Footer, Static

from kubectl_qos.errors import InputError
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.columns import BY_KEY
from kubectl_qos.present.rows import PodRow, Rows
from kubectl_qos.present.table import table
from kubectl_qos.tui.actions import Room, bindings, of_room
from kubectl_qos.tui.columns import (
    NAMESPACE_COLUMNS,
    NODE_COLUMNS,
    PaneColumn,
    group_layout,
    group_token,
    pod_layout,
    pod_token,
    side_width,
)
from kubectl_qos.tui.commands import Goal, completed, place_of
from kubectl_qos.tui.exports import exported
from kubectl_qos.tui.facts import Facts, PodGroup, namespaces_on
from kubectl_qos.tui.filter_completion import completed_filter
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view import EVERYTHING, View, crumbs, empty_sentence
from kubectl_qos.tui.widgets.document import harmless
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.table_layout import Layout
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.widgets.why import WhyPanel

PANES: Final = ("pods", "nodes", "namespaces")
_VERBS: Final = frozenset(action.verb for action in of_room(Room.MAIN))


class MainScreen(QosScreen):
    """Browse, filter, sort; everything else is one key away."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.MAIN)
    AUTO_FOCUS = "#pods"
    rooms = (Room.MAIN,)

    view: var[View] = var(View())
    marked: var[frozenset[Hashable]] = var(frozenset)

    def compose(self) -> ComposeResult:
        """Title, panes, why, prompt, keys."""
        yield TitleLine()
        yield Static(id="problem", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield self._group_table("nodes")
                yield self._group_table("namespaces")
            yield LineTable[PodRow](natural="rank", key=lambda row: row.key, token=pod_token, id="pods")
        yield WhyPanel()
        yield Static(id="notes", markup=False)
        yield Prompt({"/": self._completed_filter, ":": self._completed_place})
        yield Footer(show_command_palette=False, compact=True)
        yield TooSmall()

    @staticmethod
    def _group_table(name: str) -> LineTable[PodGroup]:
        natural = "used" if name == "nodes" else "name"
        return LineTable[PodGroup](
            natural=natural, key=lambda group: group.key, token=group_token, pinned=1, id=name
        )

    @property
    def pods(self) -> LineTable[PodRow]:
        """The table of pods."""
        return self.query_one("#pods", LineTable)

    @property
    def nodes(self) -> LineTable[PodGroup]:
        """The pane of nodes."""
        return self.query_one("#nodes", LineTable)

    @property
    def namespaces(self) -> LineTable[PodGroup]:
        """The pane of namespaces."""
        return self.query_one("#namespaces", LineTable)

    def on_mount(self) -> None:
        """Follow the app's facts and its state of asking."""
        self.nodes.border_title = "Nodes"
        self.namespaces.border_title = "Namespaces"
        self.watch(self.app, "facts", self._show_facts)
        self.watch(self.app, "status", self._show_status)
        self.qos.show_title()

    def on_resize(self) -> None:
        """In a narrow terminal the side takes all of it."""
        self.call_after_refresh(self._show_side)

    def _show_side(self) -> None:
        facts, side = self.qos.facts, self.query_one("#side")
        if facts is None or self.has_class("-narrow"):
            side.styles.max_width = None
        else:
            side.styles.max_width = side_width(facts.nodes, self.qos.source.now())

    def _show_status(self) -> None:
        error = self.qos.status.health.error
        problem = self.query_one("#problem", Static)
        problem.display = error is not None
        if error is not None:
            hint = f"\n{error.hint}" if error.hint else ""
            problem.update(harmless(f"! {error}{hint}\nr asks again"))
        if self.qos.facts is None:
            self._show_pods()

    def _show_facts(self, facts: Facts | None) -> None:
        if facts is not None:
            self._show_side()
            self._show_groups(self.nodes, NODE_COLUMNS, facts.nodes, self.view.node)
            self._show_namespaces(facts)
        self._show_pods()

    def _show_namespaces(self, facts: Facts) -> None:
        groups = namespaces_on(facts, self.view.node)
        self._show_groups(self.namespaces, NAMESPACE_COLUMNS, groups, self.view.namespace)

    def _show_groups(
        self,
        table: LineTable[PodGroup],
        columns: Sequence[PaneColumn],
        groups: Sequence[PodGroup],
        chosen: str | None,
    ) -> None:
        """Load a pane; if what was chosen is gone, everything is chosen."""
        now = self.qos.source.now()
        table.load(groups, partial(group_layout, columns, groups, now), now)
        if all(group.key != chosen for group in groups):
            table.action_first()

    def watch_view(self, old: View, new: View) -> None:
        """Another selection shows other pods."""
        if not self.is_mounted:
            return
        facts = self.qos.facts
        if facts is not None and old.node != new.node:
            self._show_namespaces(facts)
        was = self.pods.row
        self._show_pods()
        row = self.pods.row
        if row is not None and (was is None or was.key != row.key):
            self.pods.action_first()

    def _show_pods(self) -> None:
        facts, pods = self.qos.facts, self.pods
        now = self.qos.source.now()
        if facts is None:
            waits = self.qos.status.health.error is None
            empty = f"Asking {escape(self.qos.source.title)} for its pods …" if waits else ""
            pods.load([], lambda _: Layout(), now, empty=empty)
        else:
            rows = self.view.rows(facts)
            empty = empty_sentence(self.view, facts, self.qos.source.title)
            pods.load(rows, partial(pod_layout, self.view, rows, now), now, empty=empty)
        self._show_crumbs()
        self._show_why()
        self._show_notes()

    def _show_crumbs(self) -> None:
        facts, pods = self.qos.facts, self.pods
        if facts is None:
            pods.border_title = "Pods"
            return
        key, turned = pods.sorted_by
        order = BY_KEY[key].header + (" turned" if turned else "")
        total = len(self.view.selected(facts))
        pods.border_title = Content(crumbs(self.view, len(pods.rows), total, order))

    def _show_why(self) -> None:
        facts = self.qos.facts
        self.query_one(WhyPanel).explain(self.pods.row, facts.rows if facts is not None else None)

    def notes_now(self) -> list[str]:
        """What is missing, assumed, or other than asked for."""
        facts = self.qos.facts
        if facts is None:
            return []
        notes = [*self.qos.notes, *([facts.notice] if facts.notice else []), *facts.rows.notes]
        return [harmless(note) for note in notes]

    def _show_notes(self) -> None:
        notes = self.notes_now()
        line = self.query_one("#notes", Static)
        line.display = bool(notes)
        if notes:
            more = f"  (n: {len(notes) - 1} more)" if len(notes) > 1 else "  (n: all of it)"
            line.update(f"note: {notes[0]}{more}")

    @on(LineTable.Highlighted, "#nodes")
    def _node_chosen(self, event: LineTable.Highlighted) -> None:
        if event.row is not None:
            self.view = replace(self.view, node=event.row.key)

    @on(LineTable.Highlighted, "#namespaces")
    def _namespace_chosen(self, event: LineTable.Highlighted) -> None:
        if event.row is not None:
            self.view = replace(self.view, namespace=event.row.key)

    @on(LineTable.Highlighted, "#pods")
    def _pod_chosen(self) -> None:
        self._show_why()

    @on(LineTable.Sorted, "#pods")
    def _pods_sorted(self) -> None:
        self._show_crumbs()

    @on(LineTable.Selected, "#nodes")
    @on(LineTable.Selected, "#namespaces")
    def _group_opened(self) -> None:
        self._focus_pane("pods")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """In a narrow terminal the panes take turns: the focused one is shown."""
        if event.widget.id in PANES:
            self.set_class(event.widget.id != "pods", "-side")

    def _focus_pane(self, name: str) -> None:
        self.set_class(name != "pods", "-side")
        self.query_one(f"#{name}").focus()

    def _focused_pane(self) -> str:
        name = self.focused.id if self.focused is not None else None
        return name if name in PANES else "pods"

    def action_next_pane(self) -> None:
        """Pods, nodes, namespaces, and round again."""
        self._focus_pane(PANES[(PANES.index(self._focused_pane()) + 1) % len(PANES)])

    def action_previous_pane(self) -> None:
        """The other way round."""
        self._focus_pane(PANES[PANES.index(self._focused_pane()) - 1])

    def action_back(self) -> None:
        """From a side pane to the pods; there, one restriction after the other goes."""
        if self._focused_pane() != "pods":
            self._focus_pane("pods")
        elif self.view.filter:
            self.view = replace(self.view, filter=EVERYTHING)
        elif self.view.at_risk:
            self.view = replace(self.view, at_risk=False)
        elif self.marked:
            self._mark(frozenset())

    @on(LineTable.Selected, "#pods")
    def action_explain(self) -> None:
        """Why this pod stands where it stands."""
        self._with_pod(self.qos.explain)

    def action_edit(self) -> None:
        """Change its requests and limits."""
        self._with_pod(self.qos.edit)

    def action_tree(self) -> None:
        """The cgroups of its node."""
        self._with_pod(self.qos.show_cgroups)

    def action_compare(self) -> None:
        """What another release or setting would change for it."""
        self._with_pod(self.qos.compare)

    def _with_pod(self, open_screen: Callable[[Any], None]) -> None:
        facts, row = self.qos.facts, self.pods.row
        if facts is None or row is None:
            self.qos.tell("there is no pod to open", wrong=True)
        else:
            open_screen(facts.pod_of(row))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, the keys of the screen are letters."""
        del parameters
        return action not in _VERBS or not any(prompt.display for prompt in self.query(Prompt))

    def action_filter(self) -> None:
        """Type a filter; it works while it is typed."""
        self.query_one(Prompt).open("/", self.view.filter.text)

    def action_go_to(self) -> None:
        """Type a place."""
        self.query_one(Prompt).open(":")

    def _completed_filter(self, text: str) -> str | None:
        return completed_filter(text, self.qos.facts)

    def _completed_place(self, text: str) -> str | None:
        return completed(text, self.qos.facts)

    @on(Prompt.Said)
    def _said(self, event: Prompt.Said) -> None:
        prompt = self.query_one(Prompt)
        try:
            if event.sign == "/":
                self.view = replace(self.view, filter=RowFilter.parse(event.text))
            elif event.finished and event.text.strip():
                self._go_to(event.text)
                return
            prompt.refuse("")
        except InputError as error:
            prompt.refuse(f"{error}; {error.hint}" if error.hint else str(error))
            return
        if event.finished:
            self._close_prompt("pods")

    @on(Prompt.Left)
    def _prompt_left(self, event: Prompt.Left) -> None:
        if event.sign == "/":
            self.view = replace(self.view, filter=EVERYTHING)
        self._close_prompt("pods")

    def _close_prompt(self, pane: str) -> None:
        self.query_one(Prompt).close()
        self._focus_pane(pane)

    def _go_to(self, text: str) -> None:
        place = place_of(text, self.qos.facts)
        if place.goal is Goal.QUIT:
            self.qos.leave()
        elif place.goal is Goal.HELP:
            self._close_prompt("pods")
            self.qos.action_help()
        elif place.goal is Goal.NODES:
            self._close_prompt("nodes")
        elif place.goal is Goal.NAMESPACES:
            self._close_prompt("namespaces")
        elif place.goal is Goal.NODE:
            self.nodes.move_to(place.name)
            self._close_prompt("pods")
        else:
            self.namespaces.move_to(place.name)
            self._close_prompt("pods")

    def action_sort(self) -> None:
        """By the next of the columns in sight."""
        keys = [column.key for column in self.pods.columns.columns]
        if keys:
            key, _ = self.pods.sorted_by
            self.pods.sort_by(keys[(keys.index(key) + 1) % len(keys)] if key in keys else keys[0])

    def action_turn(self) -> None:
        """The same order, the other way round."""
        key, turned = self.pods.sorted_by
        self.pods.sort_by(key, turned=not turned)

    def action_at_risk(self) -> None:
        """Only pods with a flag of risk, or all."""
        self.view = replace(self.view, at_risk=not self.view.at_risk)

    def action_wide(self) -> None:
        """All columns, or those that fit."""
        self.view = replace(self.view, wide=not self.view.wide)

    def action_mark(self) -> None:
        """Mark the pod, or take its mark away, and go on to the next."""
        row = self.pods.row
        if row is not None:
            self._mark(self.marked ^ {row.key})
            self.pods.action_down()

    def _mark(self, keys: frozenset[Hashable]) -> None:
        self.marked = keys
        self.pods.mark(keys)

    def action_copy(self) -> None:
        """The marked rows, or the one under the cursor, as a table."""
        rows = [row for row in self.pods.rows if row.key in self.marked]
        if not rows and self.pods.row is not None:
            rows = [self.pods.row]
        if not rows:
            self.qos.tell("there is no row to copy", wrong=True)
            return
        columns = [BY_KEY[column.key] for column in self.pods.columns.columns]
        text = "\n".join(table(rows, columns, self.qos.source.now()))
        self.qos.copy(text, f"{len(rows)} row{'' if len(rows) == 1 else 's'}")

    def action_export(self) -> None:
        """What is shown, to a file."""
        if not self.pods.rows:
            self.qos.tell("there are no rows to export", wrong=True)
            return
        rows = Rows(tuple(self.pods.rows), notes=tuple(self.notes_now()))
        keys = [column.key for column in self.pods.columns.columns]
        self.qos.ask_and_save(f"{len(rows.rows)} rows", "pods.csv", lambda path: exported(path, rows, keys))

    def action_notes(self) -> None:
        """What is missing or assumed, whole."""
        notes = self.notes_now()
        if notes:
            self.qos.read("Notes", notes)
        else:
            self.qos.tell("nothing is missing and nothing had to be assumed for the ranks")
