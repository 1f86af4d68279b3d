"""The first screen: what each key does on the list of the cluster's things, and what is typed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.binding import BindingType

from kubectl_qos.errors import InputError
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.tui.actions import BindingGroup, actions_in_group, bindings
from kubectl_qos.tui.export import export_rows
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.go_to import Destination, Detail, parse_target
from kubectl_qos.tui.lists.table import ListTable
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.screens.browse import BESIDE_SIDE, BrowseScreen
from kubectl_qos.tui.screens.columns import ColumnsScreen
from kubectl_qos.tui.screens.factory import kills_screen, simulation_screen
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.view import EVERYTHING, ListKind, View, count
from kubectl_qos.tui.view_model import PodGroup
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt

_VERBS: Final = frozenset(action.verb for action in actions_in_group(BindingGroup.MAIN))


class MainScreen(BrowseScreen):
    """Browse, filter, sort; everything else is one key away."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.MAIN)
    binding_groups = (BindingGroup.MAIN,)

    @on(LineTable.Selected, "ListTable")
    def _row_opened(self, event: LineTable.Selected) -> None:
        place = self.listing.opened(self.view, event.row)
        if place is not None:
            self.go(place)
        else:
            self.action_explain()

    def action_next_pane(self) -> None:
        """List, nodes, namespaces, and round again."""
        self._turn_to(self._focused_pane() + 1)

    def action_previous_pane(self) -> None:
        """The other way round."""
        self._turn_to(self._focused_pane() - 1)

    def _turn_to(self, place: int) -> None:
        pane: LineTable[PodGroup] | ListTable = self._panes[place % len(self._panes)]
        self.set_class(not isinstance(pane, ListTable), "-side")
        pane.focus()

    def action_back(self) -> None:
        """From a side pane to the list; there one restriction after the other goes, then the place itself."""
        if self._focused_pane():
            self._focus_pane("list")
        elif self.view.filter:
            self.see(replace(self.view, filter=EVERYTHING))
        elif self.view.at_risk:
            self.see(replace(self.view, at_risk=False))
        elif self.table.marked:
            self.table.mark_all(frozenset())
            self._show_crumbs()
        else:
            self.qos.action_previous()

    def action_list_nodes(self) -> None:
        """The cluster."""
        self.show_kind(ListKind.NODES)

    def action_list_namespaces(self) -> None:
        """Every namespace."""
        self.show_kind(ListKind.NAMESPACES)

    def action_list_workloads(self) -> None:
        """Those of the node and namespace."""
        self.show_kind(ListKind.WORKLOADS)

    def action_list_pods(self) -> None:
        """Those of the node and namespace."""
        self.show_kind(ListKind.PODS)

    def action_list_containers(self) -> None:
        """Those of the node and namespace."""
        self.show_kind(ListKind.CONTAINERS)

    def show_kind(self, kind: ListKind) -> None:
        """Another list of the same node and namespace; nodes and namespaces are listed all."""
        view = View(kind, wide=self.view.wide)
        if kind in BESIDE_SIDE and self.view.kind in BESIDE_SIDE:
            view = replace(view, node=self.view.node, namespace=self.view.namespace)
        self.go(view)

    def action_containers(self) -> None:
        """The containers of the pod under the cursor."""
        row = self._pod_row()
        if row is not None:
            pod = row.pod.namespace, row.pod.name
            self.go(View(ListKind.CONTAINERS, row.node, row.pod.namespace, pod=pod, wide=self.view.wide))

    def action_explain(self) -> None:
        """Why this pod stands where it stands."""
        self._with_pod(Detail.EXPLAIN)

    def action_edit(self) -> None:
        """Change its requests and limits."""
        self._with_pod(Detail.EDIT)

    def action_tree(self) -> None:
        """The cgroups of its node."""
        self._with_pod(Detail.TREE)

    def action_compare(self) -> None:
        """What another release or setting would change for it."""
        self._with_pod(Detail.COMPARE)

    def action_simulate(self) -> None:
        """Who dies as memory fills, on the node of the line."""
        self._simulate(None)

    def _simulate(self, node: str | None) -> None:
        facts, row = self.qos.facts, self.table.row
        node = node or self.view.node or (self.listing.node_of(row) if row is not None else "")
        pod = None
        if facts is not None and row is not None and self.view.kind in BESIDE_SIDE:
            pod = self.listing.pod_of(row, facts)
        self._survey(partial(simulation_screen, facts, node, pod))

    def action_kills(self) -> None:
        """What was killed there."""
        self._survey(partial(kills_screen, self.qos.facts, self.view))

    def _survey(self, screen: Callable[[], QosScreen]) -> None:
        try:
            self.qos.push_screen(screen())
        except InputError as error:
            self.qos.tell(str(error), wrong=True)

    def _with_pod(self, detail: Detail) -> None:
        facts, row = self.qos.facts, self._pod_row()
        if facts is not None and row is not None:
            self.qos.open(detail, facts.pod_of(row))

    def _pod_row(self) -> PodRow | None:
        facts, row = self.qos.facts, self.table.row
        found = self.listing.pod_of(row, facts) if facts is not None and row is not None else None
        if found is None:
            self.qos.tell("there is no pod to open", wrong=True)
        return found

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, the keys of the screen are letters; panes are beside some lists only."""
        del parameters
        if action in {"next_pane", "previous_pane"} and self.view.kind not in BESIDE_SIDE:
            return False
        return action not in _VERBS or not any(prompt.display for prompt in self.query(Prompt))

    def action_filter(self) -> None:
        """Type a filter; it works while it is typed."""
        self.query_one(Prompt).open("/", self.view.filter.text)

    def action_go_to(self) -> None:
        """Type a place."""
        self.query_one(Prompt).open(":")

    @on(Prompt.Said)
    def _said(self, event: Prompt.Said) -> None:
        prompt = self.query_one(Prompt)
        try:
            if event.sign == "/":
                self.see(replace(self.view, filter=RowFilter.parse(event.text, self.listing.fields)))
            elif event.finished and event.text.strip():
                self._go_to(event.text)
                return
            prompt.refuse("")
        except InputError as error:
            prompt.refuse(f"{error}; {error.hint}" if error.hint else str(error))
            return
        if event.finished:
            self._close_prompt()

    @on(Prompt.Left)
    def _prompt_left(self, event: Prompt.Left) -> None:
        if event.sign == "/":
            self.see(replace(self.view, filter=EVERYTHING))
        self._close_prompt()

    def _close_prompt(self) -> None:
        self.query_one(Prompt).close()
        self._focus_pane("list")

    def _go_to(self, text: str) -> None:
        place = parse_target(text, self.qos.facts)
        if place.goal is Destination.QUIT:
            self.qos.leave()
            return
        self._close_prompt()
        if place.goal is Destination.HELP:
            self.qos.action_help()
        elif place.goal is Destination.UNDO:
            self.qos.action_undo()
        elif place.goal is Destination.KILLS:
            self.action_kills()
        elif place.goal is Destination.SIMULATION:
            self._simulate(place.name)
        elif place.goal is Destination.CONTEXT:
            self.qos.go_to_context(place.name)
        elif place.view is not None:
            self.go(replace(place.view, wide=self.view.wide))

    def action_sort(self) -> None:
        """By the next of the columns in sight."""
        keys = [column.key for column in self.table.columns.columns]
        if keys:
            key, _ = self.table.sorted_by
            self.table.sort_by(keys[(keys.index(key) + 1) % len(keys)] if key in keys else keys[0])

    def action_reverse(self) -> None:
        """The same order, the other way round."""
        key, turned = self.table.sorted_by
        self.table.sort_by(key, turned=not turned)

    def action_at_risk(self) -> None:
        """Only those at risk, or all."""
        self.see(replace(self.view, at_risk=not self.view.at_risk))

    def action_wide(self) -> None:
        """All columns, or those that fit; a choice of columns is given up."""
        self.table.chosen = None
        self.see(replace(self.view, wide=not self.view.wide))

    def action_columns(self) -> None:
        """Choose columns and their order."""
        table, listing = self.table, self.listing
        shown = [column.key for column in table.columns.columns]

        def take(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                table.chosen = chosen or None
                self._show_list()

        self.qos.push_screen(ColumnsScreen(listing.columns, shown), take)

    def action_find(self) -> None:
        """Go to a pod by some letters of its name."""
        facts = self.qos.facts
        if facts is not None:
            self.qos.push_screen(Finder(facts.rows.rows, self.qos.source.now()), self._go_to_pod)

    def _go_to_pod(self, row: PodRow | None) -> None:
        if row is not None:
            self.go(View(wide=self.view.wide, node=row.node))
            self.table.move_to(row.key)
            self._focus_pane("list")

    def action_mark(self) -> None:
        """Mark the row, or take its mark away, and go on to the next."""
        self.table.toggle_mark()
        self._show_crumbs()

    def action_copy(self) -> None:
        """The marked rows, or the one under the cursor, as a table."""
        rows, marked = self.table.marked_rows, len(self.table.marked)
        if not rows:
            back = self.qos.keys.first("main.back")
            hidden = f"no marked row is shown; {back} takes the marks away"
            self.qos.tell(hidden if marked else "there is no row to copy", wrong=True)
            return
        text = self.table.text(rows, self.qos.source.now())
        what = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        self.qos.copy(text, f"{what} of {marked} marked" if marked > len(rows) else what)

    def action_export(self) -> None:
        """What is shown, to a file."""
        table, kind = self.table, self.view.kind
        if not table.rows:
            self.qos.tell("there are no rows to export", wrong=True)
            return
        rows, columns, now = tuple(table.rows), table.shown_columns, self.qos.source.now()
        write = partial(export_rows, kind=kind, rows=rows, columns=columns, notes=self.notes_now(), now=now)
        self.qos.ask_and_save(count(len(rows), kind), f"{kind}.csv", write)

    def action_notes(self) -> None:
        """What is missing or assumed, whole."""
        notes = self.notes_now()
        if notes:
            self.qos.read("Notes", notes)
        else:
            self.qos.tell("nothing is missing and nothing had to be assumed for the ranks")
