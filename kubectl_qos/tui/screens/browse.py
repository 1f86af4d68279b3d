"""The content of the main screen: a list, the panes around it, and views that are visited."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import var
from textual.widgets import ContentSwitcher, Static

from kubectl_qos.analysis.deaths import FEW_NODES
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.config.state import UiState
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.explanation import explain_pod
from kubectl_qos.present.format import arrived_text, escape
from kubectl_qos.present.kills import deaths_line
from kubectl_qos.present.list_notes import old_usage_notes
from kubectl_qos.present.next_death import foretold
from kubectl_qos.tui.filters import filter_completions
from kubectl_qos.tui.go_to import go_to_completions
from kubectl_qos.tui.lists.base import BuiltList, ListDefinition, ListQuery, ListRows, ListTable, RowSelection
from kubectl_qos.tui.lists.clusters import ClusterList
from kubectl_qos.tui.lists.groups import NamespaceList, NodeList, WorkloadList
from kubectl_qos.tui.lists.panes import ExplanationPanel, NodePanel, Sidebar
from kubectl_qos.tui.lists.pods import ContainerList, DeathList, PodList
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view import ListKind, Location, RowCounts, View, empty_sentence, ended_pods, list_title
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.text_view import (
    TextLayout,
    TextScroll,
    TextView,
    escape_lines,
    no_text,
    paragraphs,
    section_layout,
    stacked,
)

WITH_SIDEBAR: Final = frozenset({ListKind.PODS, ListKind.CONTAINERS, ListKind.WORKLOADS, ListKind.DEATHS})
"""The lists with a sidebar of nodes and namespaces."""


def list_definitions(
    trends: Trends,
    newest: Callable[[], ViewModel | None] = lambda: None,
    clusters: Callable[[], ListRows] = lambda: ListRows(()),
    retry_key: str = "",
) -> Mapping[ListKind, ListDefinition[Any]]:
    """Return the lists by kind, in the order of their keys; `newest` returns the view model that is shown."""
    pods = PodList(trends, newest)
    definitions = (
        ClusterList(clusters, retry_key),
        NodeList(trends, newest),
        NamespaceList(pods),
        WorkloadList(pods),
        pods,
        ContainerList(pods, newest),
        DeathList(pods, newest),
    )
    return {definition.kind: definition for definition in definitions}


_TITLE_MARGIN: Final = 4
"""The cells of the border at both ends of a title."""
ANNOUNCED_SECONDS: Final = 45
"""For how long a death is announced."""
_LEFT_OUT: Final = frozenset({"cgroup", "Assumed"})
"""Sections that only the screen of the explanation has."""


def explained(row: PodRow, view_model: ViewModel) -> TextLayout:
    """Return the explanation of a pod for the column next to the list."""
    pod, sampled = view_model.pod_of(row), view_model.rows.sampled
    sections = explain_pod(pod, view_model.snapshot, view_model.taken, sampled).sections
    shown = [section for section in sections if section.title not in _LEFT_OUT]
    titles = (paragraphs(("", ""), (f"{section.title}: {section.answer}", "title")) for section in shown)
    return stacked(*chain.from_iterable(zip(titles, map(section_layout, shown), strict=True)))


class BrowseScreen(QosScreen):
    """Shows one view of the app's view model. The subclass has the keys."""

    AUTO_FOCUS = "#pods"

    view: var[View] = var(View())

    def __init__(self, trends: Trends, view: View) -> None:
        super().__init__()
        self.set_reactive(BrowseScreen.view, view)
        self._trends = trends
        clusters, retry_key = self.qos.cluster_rows, self.qos.keys.first("app.refresh")
        self._definitions = list_definitions(trends, lambda: self.qos.view_model, clusters, retry_key)
        self._tables = {kind: ListTable(definition) for kind, definition in self._definitions.items()}
        """Mounted when they are shown for the first time."""
        self._rows: ListRows | None = None
        self._awaited_row: Hashable = None
        """The key of the row that the cursor goes to once it is there."""
        self._first_rows: dict[ListKind, Hashable] = {}
        """The key of the row that the cursor of each list was first put on."""
        self._explained: tuple[int, ViewModel | None, TextLayout] = 0, None, no_text
        self._moves_in_sidebar = False
        """Whether the last move was in the sidebar: several in a row are one step of the navigation."""

    def compose_content(self) -> ComposeResult:
        yield Static(id="problem", markup=False)
        yield NodePanel()
        with Horizontal(id="body"):
            yield Sidebar(id="side")
            with Vertical(id="list"), ContentSwitcher(initial=self.view.kind.value):
                yield self.table
            with TextScroll(id="detail", can_focus=False):
                yield TextView(id="explained")
        yield ExplanationPanel()
        yield Static(id="notes", markup=False)
        state = self.qos.state
        yield Prompt(
            {
                "/": lambda text: filter_completions(text, self.qos.view_model, self.definition.fields),
                ":": lambda text: go_to_completions(text, self.qos.view_model),
            },
            {"/": state.filters, ":": state.places},
        )

    @property
    def side(self) -> Sidebar:
        return self.query_one(Sidebar)

    @property
    def has_sidebar(self) -> bool:
        """Return whether the list has a sidebar of nodes and namespaces; a wide list has no room for it."""
        return self.view.kind in WITH_SIDEBAR and not self.view.wide

    @property
    def is_building(self) -> bool:
        return self._rows is None or self.qos.lists.is_building

    @property
    def definition(self) -> ListDefinition[Any]:
        return self._definitions[self.view.kind]

    @property
    def table(self) -> ListTable:
        return self._tables[self.view.kind]

    def on_mount(self) -> None:
        for table in self._tables.values():
            table.restore(self.qos.state)
        columns = self.qos.settings.columns
        if columns is not None:
            self._tables[ListKind.PODS].chosen = columns
        self.query_one(ExplanationPanel).border_title = self.query_one("#detail").border_title = "Why"
        self._switch(self.view.kind)
        self.watch(self.app, "view_model", self._show_view_model)
        self.watch(self.app, "status", self._show_status)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit_side)
        self.call_after_refresh(self._show_explanation)
        self.call_after_refresh(self._show_title)

    def _fit_side(self) -> None:
        narrow = self.has_class("-narrow")
        self.side.fit(None if narrow else self.qos.view_model, self.qos.source.now())

    def _show_status(self) -> None:
        error = self.qos.status.health.error
        problem = self.query_one("#problem", Static)
        problem.display = error is not None
        if error is not None:
            retry, clusters = map(self.qos.keys.first, ("app.refresh", "main.list_clusters"))
            keys = f"{retry} retries, {clusters} lists the clusters"
            problem.update(escape_lines("\n".join(["! " + error.with_hint("\n"), keys])))
        if self.qos.view_model is None:
            self._show_list()
            self.refresh_bindings()

    def _show_view_model(self, before: ViewModel | None, view_model: ViewModel | None) -> None:
        if view_model is None:
            self.qos.lists.clear()
            if before is not None:
                self.side.show(self._empty_view_model(), self.view, self.qos.source.now())
        else:
            self._leave_removed_node(view_model)
            self._fit_side()
            self.side.show(view_model, self.view, self.qos.source.now())
            if self.view.kind is ListKind.CLUSTERS and (before is None or before.arrived is not None):
                self.qos.read_open_cluster()
        is_at_first = self.table.cursor == 0
        self._show_list()
        if before is not None and before.arrived is not None and is_at_first:
            # Nobody has moved the cursor while pods arrived.
            self._begin()

    @property
    def has_chosen_row(self) -> bool:
        row = self.table.row
        if row is None or self.view.filter:
            return bool(self.view.filter)
        return self.definition.key(row) != self._first_rows.get(self.view.kind)

    def _begin(self) -> None:
        self._go_to_first_death()
        row = self.table.row
        self._first_rows[self.view.kind] = None if row is None else self.definition.key(row)

    def _go_to_first_death(self) -> None:
        """Put the cursor on the listed pod that dies first, else on the first row."""
        view_model, victim_key, node = self.qos.view_model, self.definition.victim_key, self.view.node
        for coming in view_model.first_deaths if view_model is not None else ():
            is_listed = node in {None, coming.node}
            if view_model and is_listed and self.table.move_to(victim_key(coming, view_model)):
                return
        self.table.action_first()

    def _leave_removed_node(self, view_model: ViewModel) -> None:
        """Show all nodes if the chosen one is gone, and say so: the keys act on other pods then."""
        node = self.view.node
        if node is None or node in view_model.by_node or view_model.arrived is not None:
            return
        reason = f"{node} is gone" if node else "every pod has a node now"
        self.qos.warn(f"{reason}: all nodes are shown")
        self.change_view(replace(self.view, node=None))

    def watch_view(self, old: View, new: View) -> None:
        """Show another view; the cursor goes to its first death unless its row is still there."""
        if not self.is_mounted:
            return
        view_model = self.qos.view_model
        if old.kind != new.kind:
            self.qos.keep_view(old)
        if (old.kind, old.wide) != (new.kind, new.wide):
            self._switch(new.kind)
        if view_model is not None and (old.node, old.namespace) != (new.node, new.namespace):
            self.side.show(view_model, new, self.qos.source.now())
        was = self.table.row
        self._show_list()
        row, key = self.table.row, self.definition.key
        if row is not None and (was is None or key(was) != key(row)):
            self._begin()

    def _switch(self, kind: ListKind) -> None:
        had_focus = self.focused is None or isinstance(self.focused, ListTable)
        lists = self.query_one(ContentSwitcher)
        if not self.table.is_attached:
            lists.mount(self.table)
        lists.current = kind.value
        # Classes of the screen would style every widget again.
        self.side.set_class(not self.has_sidebar, "-alone")
        for widget in self.query("#detail, ExplanationPanel"):
            widget.set_class(kind not in WITH_SIDEBAR, "-alone")
            widget.set_class(kind in {ListKind.CLUSTERS, ListKind.NODES}, "-full")
        if kind is ListKind.CLUSTERS:
            self._awaited_row = self.qos.source.title
            self.qos.poll_clusters()
        self.refresh_bindings()
        self.call_after_refresh(self._show_title)
        if had_focus or not self.has_sidebar:
            self._focus_list()

    def _take_list(self, built: BuiltList | QosError) -> None:
        error = built if isinstance(built, QosError) else self.qos.lists.take(built)
        if error is not None:
            self.qos.warn(error)
        self._show_list()
        self._go_to_awaited_row()

    def _find_rows(self) -> ListRows | None:
        """Return the rows of the view, None until a thread has built them."""
        view_model, lists = self._view_model, self.qos.lists
        if view_model is None:
            return None
        if self.view.kind is ListKind.CLUSTERS:
            return self.definition.build(view_model, self.view, None)
        if view_model.arrived is not None and not self.definition.is_quick:
            return None
        query = ListQuery(self.definition, self.view.unfiltered)
        rows = lists.rows(query, view_model)
        work = lists.work_for(query, view_model)
        if work is not None:
            run_in_background(self, work, self._take_list)
        return rows

    @property
    def _view_model(self) -> ViewModel | None:
        """Return the view model; the list of clusters needs none, and gets an empty one."""
        view_model = self.qos.view_model
        if view_model is not None or self.view.kind is not ListKind.CLUSTERS:
            return view_model
        return self._empty_view_model()

    def _empty_view_model(self) -> ViewModel:
        return build_view_model(Snapshot(), Scope(), self.qos.source.now())

    def show_rows(self) -> None:
        """Show rows that have changed though the view model has not."""
        self._show_list()
        self._go_to_awaited_row()

    @on(LineTable.Sorted, "ListTable")  # groups have headings in the natural order alone
    def _show_list(self) -> None:
        view_model, table, view = self._view_model, self.table, self.view
        now = self.qos.source.now()
        rows = self._rows = self._find_rows()
        if view_model is None or rows is None:
            empty = "Building the list …"
            if view_model is not None and view_model.arrived is not None:
                empty = f"{arrived_text(*view_model.arrived)} so far: this list needs all of them."
            elif view_model is None:
                has_failed = self.qos.status.health.error is not None
                empty = "" if has_failed else f"Loading pods from {escape(self.qos.source.title)} …"
            table.show(view, [], now, empty)
        else:
            selection = RowSelection(self.definition, view.filter, view.at_risk, view_model.taken)
            empty = empty_sentence(view, view_model, self.qos.source.title, len(rows.rows), self.qos.keys)
            table.show(view, rows.rows, now, empty, selection, rows.starts)
            if view.kind not in self._first_rows and view_model.arrived is None:
                self._begin()
        self._show_explanation()
        self._show_title()
        self._show_notes()

    def _show_title(self) -> None:
        view_model, table, rows = self._view_model, self.table, self._rows
        if view_model is None or rows is None:
            table.set_title(self.view.kind.capitalize())
            return
        key, is_reversed = table.sorted_by
        natural = self.definition.natural_key(self.view) if key == self.definition.natural else key
        order = self.definition.columns[natural].header + (" reversed" if is_reversed else "")
        of_pods = self.view.kind is ListKind.PODS
        ended = ended_pods(self.view, view_model, rows.rows) if of_pods else 0
        counts = RowCounts(
            len(table.rows), len(rows.rows), len(table.marked), ended, arrived=view_model.arrived
        )
        under_pressure = of_pods and view_model.is_under_pressure(self.node_in_focus())
        eviction_key = self.qos.keys.first("main.eviction") if under_pressure else ""
        view, width = self.view.within(view_model.scope), table.size.width - _TITLE_MARGIN
        table.set_title(list_title(view, counts, order, eviction_key=eviction_key, width=width))

    def node_in_focus(self) -> str:
        """Return the node of the view, else that of the next death, else that of the row."""
        view_model, row = self.qos.view_model, self.table.row
        if self.view.node is not None or self.view.kind is ListKind.CLUSTERS or view_model is None:
            return self.view.node or ""
        if view_model.first_deaths:
            return view_model.first_deaths[0].node
        return self.definition.node_of(row) if row is not None else ""

    def _show_explanation(self) -> None:
        view_model, row = self._view_model, self.table.row
        layout: TextLayout = no_text
        if view_model is not None and row is not None:
            layout = self.definition.panel(row, view_model)
        self.query_one(ExplanationPanel).show(layout)
        arriving = view_model is not None and view_model.arrived is not None
        if view_model is not None and row is not None and self.has_class("-huge"):
            pod = None if arriving else self.definition.pod_of(row, view_model)
            if pod is not None and self._explained[:2] != (id(pod), view_model):
                self._explained = id(pod), view_model, explained(pod, view_model)
            explanation = layout if pod is None else stacked(layout, self._explained[2])
            self.query_one("#explained", TextView).show(explanation)
        node = "" if arriving else self.node_in_focus()
        key = self.qos.keys.first("main.fix") if self.qos.source.past is None else ""
        elsewhere = self._elsewhere(view_model, node) if view_model is not None else ""
        self.query_one(NodePanel).show(view_model, node, key, elsewhere, self._explain_words(node))
        died = view_model is not None and bool(view_model.kills_within(ANNOUNCED_SECONDS))
        self.query_one("#elsewhere").set_class(died, "-died")

    def _explain_words(self, node: str) -> str:
        """Return the key that explains the pod of a node's next death, if the cursor is on it."""
        view_model, row = self.qos.view_model, self.table.row
        deaths = view_model.known_deaths(node) if view_model is not None and node else ()
        pod = self.definition.pod_of(row, view_model) if view_model is not None and row is not None else None
        is_of_death = pod is not None and any(death.key == pod.pod.key for death in deaths[:1])
        return f"{self.qos.keys.first('main.explain')} explain" if is_of_death else ""

    def _elsewhere(self, view_model: ViewModel, node: str) -> str:
        """Say who has just died, else who dies first on another node, with the key for that."""
        if died := view_model.kills_within(ANNOUNCED_SECONDS):
            return f"{self.qos.keys.first('main.kills')} why  {deaths_line(died)}"
        coming = view_model.first_death_elsewhere(node)
        if coming is None:
            return ""
        here = view_model.deaths(node)
        is_first = here is None or not here.deaths or coming.death.urgency < here.deaths[0].urgency
        key = f"{self.qos.keys.first('main.nearest')} sooner" if is_first else "then"
        return f"{key}  {foretold(coming.death, coming.node, is_first=is_first)}"

    def notes_now(self) -> list[str]:
        view_model, rows = self._view_model, self._rows
        if view_model is None or rows is None:
            return []
        ages = old_usage_notes(view_model.snapshot, self.qos.source.now(), view_model.rows.sampled)
        notes = [*self.qos.notes, *([view_model.notice] if view_model.notice else []), *ages, *rows.notes]
        nodes = len(view_model.node_names)
        is_of_nodes = self.view.node is None and self.view.kind not in {ListKind.CLUSTERS, ListKind.DEATHS}
        if nodes > FEW_NODES and is_of_nodes:
            fullest = f"the next death is that of the {FEW_NODES} fullest of {nodes:,} nodes"
            notes.append(f"{fullest}; {self.qos.keys.first('main.nearest')} looks at all of them")
        return [escape_lines(note) for note in notes]

    def _show_notes(self) -> None:
        notes = self.notes_now()
        line = self.query_one("#notes", Static)
        line.display = bool(notes)
        if notes:
            key = self.qos.keys.first("main.notes")
            more = f"  ({key}: {len(notes) - 1} more)" if len(notes) > 1 else f"  ({key}: all of it)"
            line.update(f"note: {notes[0]}{more}")

    def saved(self, state: UiState) -> UiState:
        prompt = self.query_one(Prompt)
        state = replace(state, filters=prompt.entered("/"), places=prompt.entered(":"))
        for table in self._tables.values():
            state = table.saved(state)
        return state

    def go(self, view: View) -> None:
        """Go to another view: back leads to the current one."""
        if self.is_current:
            self.remember_row()
            self.qos.navigation.go(Location(view))
        self.view = view

    def remember_row(self) -> None:
        row = self.table.row
        if self.is_current and row is not None:
            navigation = self.qos.navigation
            navigation.replace(replace(navigation.location, row=self.definition.key(row)))

    def return_to(self, location: Location) -> None:
        """Go back to a location, with the cursor on the row where it was."""
        self.view = location.view
        if self.qos.view_model is not None:
            self._leave_removed_node(self.qos.view_model)
        self._awaited_row = location.row
        self._go_to_awaited_row()

    def _go_to_awaited_row(self) -> None:
        if self._awaited_row is not None and self._rows is not None:
            self.table.move_to(self._awaited_row)
            self._awaited_row = None

    def change_view(self, view: View) -> None:
        if self.is_current:
            self.qos.navigation.replace(Location(view))
        self.view = view

    @on(LineTable.Highlighted, "#side-nodes")
    @on(LineTable.Highlighted, "#side-namespaces")
    def _list_selected_group(self) -> None:
        """List the pods of the node and namespace under the cursors."""
        node, namespace = self.side.nodes.row, self.side.namespaces.row
        if node is None or namespace is None:
            return
        if (node.key, namespace.key) == (self.view.node, self.view.namespace):
            return
        view = replace(self.view, node=node.key, namespace=namespace.key, workload=None, pod=None)
        if self._moves_in_sidebar:
            self.change_view(view)
        else:
            self.go(view)
        self._moves_in_sidebar = True

    @on(LineTable.Highlighted, "ListTable")
    def _explain_highlighted_row(self) -> None:
        self.query_one(ExplanationPanel).turn()
        self._show_explanation()
        self._show_title()

    @on(LineTable.Selected, "#side-nodes")
    @on(LineTable.Selected, "#side-namespaces")
    def _focus_list(self) -> None:
        self.remove_class("-side")
        self.table.focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, LineTable):
            in_list = isinstance(event.widget, ListTable)
            self._moves_in_sidebar &= not in_list
            self.set_class(not in_list, "-side")

    @property
    def _panes(self) -> tuple[LineTable[Any], ...]:
        sidebar = (self.side.nodes, self.side.namespaces) if self.has_sidebar else ()
        return (self.table, *sidebar)

    def _focused_pane(self) -> int:
        return next((index for index, pane in enumerate(self._panes) if pane is self.focused), 0)
