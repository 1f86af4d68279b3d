"""The main screen: what each key does on a list, and what is typed in the prompt."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Final

from textual import events, on

from kubectl_qos.analysis.deaths import FEW_NODES, Deaths, deaths_on_nodes
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import UNKNOWN, count, escape
from kubectl_qos.present.next_death import nothing
from kubectl_qos.tui.actions import BindingGroup, actions_in_group
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.go_to import GoTo, parse_go_to
from kubectl_qos.tui.lists.base import ListTable, export_rows
from kubectl_qos.tui.lists.panes import Timeline
from kubectl_qos.tui.screens.browse import ANNOUNCED_SECONDS, WITH_SIDEBAR, BrowseScreen
from kubectl_qos.tui.screens.search import ColumnsScreen, Finder, Menu
from kubectl_qos.tui.view import EVERYTHING, Detail, ListKind, View
from kubectl_qos.tui.view_model import PodGroup, ViewModel
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt

_VERBS: Final = frozenset(action.verb for action in actions_in_group(BindingGroup.MAIN))
_OF_ROW: Final = ("explain", "edit", "fix", "simulate", "yaml", "logs", "owner", "tree", "copy")
"""The actions in the menu of a row."""
_OF_OPEN_CLUSTER: Final = frozenset(
    {*_OF_ROW, "nearest", "past", "menu", "compare", "kills", "containers", "eviction", "ages", "find"}
    - {"copy"}
)
"""Actions that the list of clusters lacks: they are on pods and nodes of the open cluster."""
_SORTED_BY: Final = {
    "class": ("qos",),
    "score": ("oom_score",),
    "adj": ("oom_score_adj",),
    "memory": ("used", "memory"),
    "request": ("request", "requests_percent"),
    "limit": ("limit_percent", "limits_percent", "limit"),
    "risk": ("risk", "at_risk", "pressure"),
}
"""The columns of a sort key; each list has one of them. Other sort keys are columns themselves."""


class MainScreen(BrowseScreen, group=BindingGroup.MAIN):
    """The main screen with its keys."""

    no_notes = "nothing to note on this list; the explanation of a pod lists what is assumed"

    @on(LineTable.MenuRequested, "ListTable")
    def action_menu(self) -> None:
        row = self.table.row
        if row is None:
            self.qos.warn("there is no row")
            return
        by_verb = {action.verb: action for action in actions_in_group(BindingGroup.MAIN)}
        lines = {
            f"{self.qos.keys.first(by_verb[verb].name):<3} {by_verb[verb].label}": verb for verb in _OF_ROW
        }

        def run(line: str | None) -> None:
            if line is not None:
                self.call_later(self.run_action, lines[line])

        title = str(self.definition.columns[self.definition.name].value(row))
        self.qos.push_screen(Menu(title, tuple(lines), next(iter(lines)), header="WHAT TO DO"), run)

    @on(LineTable.Selected, "ListTable")
    def _row_opened(self, event: LineTable.Selected) -> None:
        view = self.definition.opened(self.view, event.row)
        if self.view.kind is ListKind.CLUSTERS:
            self.qos.go_into(event.row.name)
        elif view is not None:
            self.go(view)
        else:
            self.action_explain()

    def action_next_pane(self) -> None:
        self._focus_index(self._focused_pane() + 1)

    def action_previous_pane(self) -> None:
        self._focus_index(self._focused_pane() - 1)

    def _focus_index(self, index: int) -> None:
        pane: LineTable[PodGroup] | ListTable = self._panes[index % len(self._panes)]
        self.set_class(not isinstance(pane, ListTable), "-side")
        pane.focus()

    def action_back(self) -> None:
        """Go from a side pane to the list, clear the filter, show all rows, unmark all, or go back."""
        if self._focused_pane():
            self._focus_list()
        elif self.view.filter:
            self.change_view(replace(self.view, filter=EVERYTHING))
        elif self.view.at_risk:
            self.change_view(replace(self.view, at_risk=False))
        elif self.table.marked:
            self.table.mark(frozenset())
            self._show_title()
        else:
            self.qos.go_back()

    def action_list(self, kind: str) -> None:
        """Show another list, for the same node and namespace if both lists have the sidebar."""
        view = View(ListKind(kind), wide=self.view.wide)
        if view.kind in WITH_SIDEBAR and self.view.kind in WITH_SIDEBAR:
            view = replace(view, node=self.view.node, namespace=self.view.namespace)
        self.go(view)

    def action_containers(self) -> None:
        row = self._pod_row()
        if row is not None:
            view = View(ListKind.CONTAINERS, row.node, row.namespace, pod=row.pod.key, wide=self.view.wide)
            self.go(view)

    def action_explain(self) -> None:
        self._with_pod(Detail.EXPLAIN)

    def action_edit(self) -> None:
        """Edit the pod, or all pods of a workload."""
        view_model, row = self.qos.view_model, self.table.row
        if self.view.kind is not ListKind.WORKLOADS or view_model is None or row is None:
            self._with_pod(Detail.EDIT)
        elif (pod := self._pod_row()) is not None:
            self.qos.edit_workload(row.key, view_model.pod_of(pod))

    @on(events.Click, "NodePanel #fix")
    def action_fix(self) -> None:
        """List fixes for the deaths of the row's pod or workload, or of its node."""
        view_model, row = self.qos.whole_view_model(), self.table.row
        node = self.node_in_focus()
        if view_model is None or not node:
            if view_model is not None:
                self.qos.warn("there is no node to find fixes for")
            return
        pod = self.definition.pod_of(row, view_model) if row is not None else None
        from kubectl_qos.tui.screens.fix_dialog import list_fixes

        if row is None or pod is None or not pod.node or self.view.kind is ListKind.NODES:
            list_fixes(self.qos, view_model, node)
        elif self.view.kind is ListKind.WORKLOADS:
            placed = (other for other in view_model.rows.rows if other.node and not other.pod.is_terminal)
            replicas = [other for other in placed if find_workload(other.pod) == row.key]
            list_fixes(self.qos, view_model, node, [replica.pod.key for replica in replicas], row.key)
        else:
            list_fixes(self.qos, view_model, node, [pod.pod.key])

    def action_nearest(self) -> None:
        """Go to the next death of all nodes, which takes some time if there are many."""
        view_model = self.qos.whole_view_model()
        if view_model is None:
            return
        nodes = sorted(view_model.node_names)
        if len(nodes) > FEW_NODES:
            self.qos.notify(f"looking for the next death on {len(nodes):,} nodes …")
        work = partial(deaths_on_nodes, view_model.snapshot, nodes, only_next=True)
        run_in_background(self, work, self._nearest_found)

    def _nearest_found(self, deaths: Deaths | QosError) -> None:
        view_model = self.qos.view_model
        if isinstance(deaths, QosError) or not deaths.rows or view_model is None:
            self.qos.warn(deaths if isinstance(deaths, QosError) else nothing(deaths))
            return
        self._go_to_victim(view_model, deaths.rows[0].node, deaths.rows[0].death.key)

    def _go_to_victim(self, view_model: ViewModel, node: str, pod: PodKey) -> None:
        row = view_model.row_on(node, pod)
        if row is not None:
            self._go_to_pod(row)
        else:
            self.go(View(wide=self.view.wide, node=node))

    @on(events.Click, "Timeline")
    def _victim_clicked(self, event: events.Click) -> None:
        view_model, pod = self.qos.whole_view_model(), self.query_one(Timeline).victim_at(event.x, event.y)
        if view_model is not None and pod is not None:
            self._go_to_victim(view_model, self.node_in_focus(), pod)

    @on(events.Click, "NodePanel #elsewhere")
    def _elsewhere_clicked(self) -> None:
        """Go where the line points to: the kills, else the first death on another node."""
        view_model = self.qos.whole_view_model()
        if view_model is None:
            return
        coming = view_model.first_death_elsewhere(self.node_in_focus())
        if view_model.kills_within(ANNOUNCED_SECONDS):
            self.action_kills()
        elif coming is not None:
            self._go_to_victim(view_model, coming.node, coming.death.key)

    @on(events.Click, "ListTable")
    def _title_clicked(self, event: events.Click) -> None:
        """Switch between kill order and eviction order."""
        if event.y == 0 and self.view.kind is ListKind.PODS:
            self.action_eviction()

    def action_tree(self) -> None:
        self._with_pod(Detail.TREE)

    def action_yaml(self) -> None:
        """Show the YAML of the node, the workload or the pod."""
        from kubectl_qos.tui.screens.explain import node_screen, workload_screen, yaml_screen

        source = self.qos.source
        if self.view.kind is ListKind.NODES and self.table.row is not None:
            self.qos.push_screen(node_screen(source, self.table.row.name))
            return
        view_model, row = self.qos.view_model, self._pod_row()
        if view_model is None or row is None:
            return
        pod = view_model.pod_of(row)
        if self.view.kind is ListKind.WORKLOADS and self.table.row is not None:
            self.qos.push_screen(workload_screen(source, self.table.row.key, pod))
        else:
            self.qos.push_screen(yaml_screen(source, pod))

    def action_logs(self) -> None:
        view_model, row = self.qos.view_model, self._pod_row()
        if view_model is not None and row is not None:
            self.qos.show_log(view_model.pod_of(row), getattr(self.table.row, "container", ""))

    def action_owner(self) -> None:
        """Go to the workload of the pod, in the list of its namespace."""
        row = self._pod_row()
        if row is not None:
            self.go(View(ListKind.WORKLOADS, namespace=row.namespace, wide=self.view.wide))
            self._awaited_row = find_workload(row.pod)
            self._go_to_awaited_row()
            self._focus_list()

    def action_past(self) -> None:
        self.qos.choose_time()

    def action_compare(self) -> None:
        self._with_pod(Detail.COMPARE)

    def action_simulate(self) -> None:
        self._simulate(None)

    def _simulate(self, node: str | None) -> None:
        """Simulate the given node, or the node of the view or the row, or the fullest one."""
        view_model, row = self.qos.whole_view_model(), self.table.row
        if view_model is None:
            return
        fullest = next(iter(view_model.node_names), "")
        node = node or self.view.node or (self.definition.node_of(row) if row is not None else "") or fullest
        if not node:
            self.qos.warn("there is no node to simulate")
            return
        pod = None
        if row is not None and self.view.kind in WITH_SIDEBAR:
            pod = self.definition.pod_of(row, view_model)
        growing = pod.pod.key if pod is not None and pod.node == node else None
        from kubectl_qos.tui.screens.simulation import SimulationScreen

        self.qos.push_screen(SimulationScreen(node, view_model, growing))

    def action_kills(self) -> None:
        view_model, view = self.qos.whole_view_model(), self.view
        if view_model is None:
            return
        from kubectl_qos.tui.screens.kills import KillsScreen

        is_of_all = view.kind in {ListKind.NODES, ListKind.NAMESPACES}
        node, namespace = (None, None) if is_of_all else (view.node, view.namespace)
        self.qos.push_screen(KillsScreen(view_model, node=node, namespace=namespace))

    def _with_pod(self, detail: Detail, row: PodRow | None = None) -> None:
        view_model = self.qos.whole_view_model()
        row = row or (self._pod_row() if view_model is not None else None)
        if view_model is not None and row is not None:
            self.qos.open(detail, view_model.pod_of(row))

    def _pod_row(self) -> PodRow | None:
        view_model, row = self.qos.view_model, self.table.row
        if view_model is not None and row is not None:
            pod_row = self.definition.pod_of(row, view_model)
            if pod_row is not None:
                return pod_row
        self.qos.warn("there is no pod to open")
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable all keys while the prompt is open, and keys that do nothing on this list."""
        if action in _OF_OPEN_CLUSTER and self.view.kind is ListKind.CLUSTERS:
            return False
        if action in {"next_pane", "previous_pane"} and not self.has_sidebar:
            return False
        return action not in _VERBS or not any(isinstance(child, Prompt) for child in self.displayed_children)

    @property
    def not_in_footer(self) -> Collection[str]:
        """Return everything but the command prompt if the cluster could not be read."""
        is_unread = self.qos.view_model is None and self.qos.status.health.error is not None
        return _VERBS - {"go_to"} if is_unread and self.view.kind is not ListKind.CLUSTERS else ()

    def action_filter(self) -> None:
        self.query_one(Prompt).open("/", self.view.filter.text)

    def action_go_to(self) -> None:
        self.query_one(Prompt).open(":")

    @on(Prompt.Typed)
    def _prompt_typed(self, event: Prompt.Typed) -> None:
        prompt = self.query_one(Prompt)
        try:
            if event.sign == "/":
                self.change_view(
                    replace(self.view, filter=RowFilter.parse(event.text, self.definition.fields))
                )
            elif event.finished and event.text.strip():
                self._go_to(parse_go_to(event.text, self.qos.view_model), event.text)
                return
            prompt.show_error("")
        except InputError as error:
            prompt.show_error(error.with_hint())
            return
        if event.finished:
            prompt.keep(event.text)
            self._close_prompt()

    @on(Prompt.Left)
    def _prompt_left(self, event: Prompt.Left) -> None:
        if event.sign == "/":
            self.change_view(replace(self.view, filter=EVERYTHING))
        self._close_prompt()

    def _close_prompt(self) -> None:
        self.query_one(Prompt).close()
        self._focus_list()

    def _go_to(self, target: GoTo, text: str) -> None:
        self.query_one(Prompt).keep(text)
        destination = target.destination
        if destination == "q":
            self.qos.leave()
            return
        self._close_prompt()
        if target.view is not None:
            kind = self._definitions[target.view.kind]
            narrowed = RowFilter.parse(target.filter, kind.fields)
            self.go(replace(target.view, wide=self.view.wide, filter=narrowed))
        elif destination == "pod":
            self._go_to_pod(target.pod)
        elif destination in {"explain", "edit"}:
            self._with_pod(Detail[destination.upper()], target.pod)
        elif destination == "sim":
            self._simulate(target.name)
        elif destination == "ctx":
            self.qos.go_to_context(target.name)
        else:
            getattr(self.qos if destination in {"help", "undo"} else self, f"action_{destination}")()

    def action_sort(self) -> None:
        """Sort by the shown column after the present one, which may have been left out meanwhile."""
        key, _ = self.table.sorted_by
        every = list(self.definition.columns)
        shown = {column.key for column in self.table.columns.columns}
        after = every.index(key) + 1 if key in every else 0
        next_columns = [column for column in (*every[after:], *every[:after]) if column in shown]
        if next_columns:
            self.table.sort_by(next_columns[0])

    def action_sort_by(self, what: str) -> None:
        """Sort by a column; in reverse order if the rows are sorted by it already."""
        columns = {"name": (self.definition.name,), "rank": (self.definition.natural,)} | _SORTED_BY
        keys = [key for key in columns.get(what, (what,)) if key in self.definition.columns]
        if not keys:
            self.qos.warn(f"{self.view.kind} have no {what} to sort by")
            return
        key, is_reversed = self.table.sorted_by
        self.table.sort_by(keys[0], is_reversed=key == keys[0] and not is_reversed)

    def action_reverse(self) -> None:
        key, is_reversed = self.table.sorted_by
        self.table.sort_by(key, is_reversed=not is_reversed)

    def action_eviction(self) -> None:
        if self.view.kind is not ListKind.PODS:
            self.qos.warn("only pods have an eviction order")
            return
        self.table.sort_naturally()
        self.change_view(replace(self.view, by_eviction=not self.view.by_eviction))
        self.table.action_first()

    def action_at_risk(self) -> None:
        self.change_view(replace(self.view, at_risk=not self.view.at_risk))

    def action_wide(self) -> None:
        """Show all columns, or those that fit, instead of chosen ones."""
        self.table.chosen = None
        self.change_view(replace(self.view, wide=not self.view.wide))

    def action_ages(self) -> None:
        """Show ages, or times of creation. A notification has both if the column is out of sight."""
        table, row = self.table, self.table.row
        if row is None or "age" not in self.definition.columns:
            self.qos.warn(f"{self.view.kind} have no age")
            return
        self.change_view(replace(self.view, times=not self.view.times))
        if table.columns.column("age") is None or table.columns.line_width > table.size.width:
            column = self.definition.columns["age"]
            ago = column.cell(row, self.qos.source.now())
            self.qos.notify(
                f"{escape(row.name)} was created {ago} ago, {escape(column.value(row) or UNKNOWN)}"
            )

    def action_columns(self) -> None:
        table = self.table
        shown = [column.key for column in table.columns.columns]

        def take(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                table.chosen = chosen or None
                self._show_list()

        self.qos.push_screen(ColumnsScreen(self.definition.columns, shown, self.definition.name), take)

    def action_find(self) -> None:
        view_model = self.qos.view_model
        if view_model is not None:
            self.qos.push_screen(Finder(view_model.rows.rows, self.qos.source.now()), self._go_to_pod)

    def _go_to_pod(self, row: PodRow | None) -> None:
        if row is not None:
            self.go(View(wide=self.view.wide, node=row.node))
            self.table.move_to(row.key)
            self._focus_list()

    def action_mark(self) -> None:
        if self.table.row is not None:
            self.table.mark(self.table.marked ^ {self.definition.key(self.table.row)})
            self.table.action_down()
        self._show_title()

    def action_copy(self) -> None:
        rows, marked = self.table.marked_rows, len(self.table.marked)
        if not rows:
            back = self.qos.keys.first("main.back")
            hidden = f"no marked row is shown; {back} unmarks all"
            self.qos.warn(hidden if marked else "there is no row to copy")
            return
        text = self.table.text(rows, self.qos.source.now())
        what = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        what += f" of {marked} marked" if marked > len(rows) else ""
        self.qos.copy(text, f"{what} with a heading")

    def action_export(self) -> None:
        table, kind = self.table, self.view.kind
        if not table.rows:
            self.qos.warn("there are no rows to export")
            return
        if self.qos.whole_view_model() is None:
            return
        rows, columns, now = tuple(table.rows), table.shown_columns, self.qos.source.now()
        write = partial(export_rows, kind=kind, rows=rows, columns=columns, notes=self.notes_now(), now=now)
        self.qos.save_as(count(len(rows), kind.removesuffix("s")), f"{kind}.csv", write)
