"""The deaths that wait on the nodes, the most urgent first: `kubectl qos next` as a list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kubectl_qos.analysis.deaths import FEW_NODES, DeathRow, Deaths, death_rows
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.present.format import count
from kubectl_qos.present.next_death import COLUMNS, foretold, killer_words, notes
from kubectl_qos.qos.simulation.node_state import NodeState
from kubectl_qos.tui.filters import Fields
from kubectl_qos.tui.lists.base import ListDefinition, ListRows, row_on
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.table import Token
from kubectl_qos.tui.widgets.text_view import TextLayout, paragraphs, stacked

# Why says on which condition: the column has no room for that.
_COLUMNS = tuple(
    replace(column, cell=lambda row, _: killer_words(row.death)) if column.key == "by" else column
    for column in COLUMNS
)


class DeathList(ListDefinition[DeathRow]):
    """Every limit and every killer that ends a pod of a node or namespace."""

    kind = ListKind.DEATHS
    name = "victim"
    natural = "full"
    columns = MappingProxyType({column.key: column for column in _COLUMNS})
    fields = Fields(columns, None)
    importance = "victim distance by eta full node by victim frees before node"
    squeezed: Mapping[str, int] = MappingProxyType({"victim": 20, "by": 16, "node": 12})
    only_known = frozenset({"eta", "before"})

    def __init__(self, pods: PodList, newest: Callable[[], ViewModel | None]) -> None:
        self._pods = pods
        self._newest = newest

    def default_columns(self, view: View) -> Sequence[str]:
        return [key for key in self.columns if key != "node" or view.node is None]

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Of many nodes only the fullest are looked at."""
        del before
        nodes = [group.key for group in view_model.nodes if group.key and view.node in {None, group.key}]
        snapshot, rows, states = view_model.snapshot, list[DeathRow](), dict[str, NodeState]()
        for name in nodes[:FEW_NODES]:
            waiting = view_model.deaths(name)
            if waiting is not None:
                states[name] = waiting.state
                rows += death_rows(snapshot, name, waiting.deaths)
        rows = [row for row in rows if view.namespace in {None, row.death.key[0]}]
        rows.sort(key=lambda row: row.death.urgency)
        more = len(nodes) - FEW_NODES
        hidden = [f"not those of {count(more, 'node')} that are less full: choose one"] if more > 0 else []
        return ListRows(rows, (*hidden, *notes(Deaths(tuple(rows), snapshot, states=states))))

    def key(self, row: DeathRow) -> Hashable:
        return row.node, row.death.mechanism, row.death.key, row.death.container

    def token(self, row: DeathRow, key: str, width: int) -> Token:
        del width
        if key == "victim":
            view_model = self._newest()
            first = view_model.first_deaths[:1] if view_model is not None else ()
            in_trouble = view_model is not None and view_model.is_in_trouble(row.node)
            return "victim" if in_trouble and [self.key(death) for death in first] == [self.key(row)] else ""
        return "warning" if key == "eta" else "muted" if key in {"node", "frees", "before"} else ""

    def is_at_risk(self, row: DeathRow) -> bool:
        return not row.is_far

    def panel(self, row: DeathRow, view_model: ViewModel) -> TextLayout:
        """This death, unless it is the first of its pod, with which the pod's own lines begin."""
        pod, waiting = self.pod_of(row, view_model), view_model.deaths(row.node)
        of_node = waiting.deaths if waiting is not None else ()
        is_first = next((death for death in of_node if death.key == row.death.key), None) == row.death
        of_row = paragraphs((foretold(row.death, row.node, is_first=False), "answer"))
        if pod is None:
            return of_row
        of_pod = self._pods.panel(pod, view_model)
        return of_pod if is_first else stacked(of_row, of_pod)

    def opened(self, view: View, row: DeathRow) -> View | None:
        del view, row
        return None

    def pod_of(self, row: DeathRow, view_model: ViewModel) -> PodRow | None:
        return row_on(view_model, row.node, row.death.key)

    def node_of(self, row: DeathRow) -> str:
        return row.node

    def dying_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        del view_model
        return self.key(coming)
