"""What all lists share: their definition, the cache of their rows, and the table that shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import structs
from textual.content import Content

from kubectl_qos.analysis.deaths import DeathRow
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.cluster.background import attempt
from kubectl_qos.config.state import UiState
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.present.format import UNKNOWN, escape
from kubectl_qos.present.node_columns import (
    CLUSTER_COLUMNS,
    NAMESPACE_COLUMNS,
    NODE_COLUMNS,
    WORKLOAD_COLUMNS,
)
from kubectl_qos.present.output import Column, ColumnType, json_parts, table, table_values, to_csv, to_yaml
from kubectl_qos.present.pod_columns import VALUE_COLUMNS
from kubectl_qos.tui.filters import Fields, RowFilter
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.line_table import LineTable, Spans
from kubectl_qos.tui.widgets.table import Layout, Token, fitting_columns, measured, moved
from kubectl_qos.tui.widgets.text_view import TextLayout

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class ListRows:
    """All rows of a view, without its filter, in the list's natural order.

    `notes` are remarks on them, `cache` makes the next build faster, `starts` are the indices at which groups
    begin, if they are known.
    """

    rows: Sequence[Any]
    notes: Sequence[str] = ()
    cache: object = None
    starts: Sequence[int] | None = None


_SAMPLED_ROWS: Final = 50
"""A column of `only_known` is left out if none of the first rows has a value."""


class ListDefinition(ABC, Generic[RowT]):
    """A kind of list. It has no state; any thread may build its rows."""

    kind: ListKind
    name: str
    """The key of the column with the name of a row."""
    natural: str
    """The key of the column in whose order rows are built."""
    columns: Mapping[str, Column[RowT]]
    """All columns that can be shown, in their order."""
    fields: Fields
    """What a filter can refer to."""
    importance: str
    """The keys of columns, those first that are left out last; see fitting_columns."""
    squeezed: Mapping[str, int]
    """The least widths of columns that may be cut."""
    is_quick = False
    """Whether rows are built so fast that no thread is needed, however large the cluster."""
    beside: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Columns that are as important as the one that rows are sorted by, by its key."""
    only_known: frozenset[str] = frozenset()
    """The keys of columns that are left out if no row has a value."""
    grouped = False
    """Whether rows in the natural order are grouped under headings."""
    group_of: Callable[[Any], Hashable] = id
    """Returns what the rows under one heading have in common."""
    most_height = 1
    """The most lines of a row."""

    def natural_key(self, view: View) -> str:
        """Return the key of the column that shows the natural order."""
        return self.natural

    def heading(self, row: RowT, width: int) -> Spans:
        """Return the line above the first row of a group."""
        return ()

    def row_line(self, row: RowT, number: int, height: int, layout: Layout[RowT], width: int) -> Spans:
        """Return a line of a row that has `height` lines; its second line has the number 1."""
        return ()

    @abstractmethod
    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Build the rows of a view; `before` are its rows from an older view model."""

    def layout(  # noqa: PLR0913 - what a table is laid out by
        self,
        view: View,
        chosen: Sequence[str] | None,
        rows: Sequence[RowT],
        now: datetime,
        available: int,
        *,
        by: str = "",
        has_headings: bool = False,
    ) -> Layout[RowT]:
        """Return the columns for a width in cells; `chosen` are those that a person chose.

        The name is always among them. In a wide view all columns follow those that fit; the columns up to the
        name stay when the others scroll sideways. The column that the rows are sorted `by` stays in sight.
        The node has no column if headings name it.
        """
        wanted = self.default_columns(view) if chosen is None else chosen
        without_name = [self.name] if self.name not in wanted else []
        unshown = [by] if chosen is None and by not in wanted else []
        keys = [key for key in (*without_name, *wanted, *unshown) if key in self.columns]
        columns = [_with_time(self.columns[key]) if view.times else self.columns[key] for key in keys]
        fitting: Layout[RowT] = Layout()
        if chosen is None:
            first = [column for column in columns if column.key != "node" or not has_headings]
            importance = self.importance
            for key in (*reversed(self.beside.get(by, ())), by):
                importance = moved(importance, key, self.name)
            fitting = self.fit(first, rows, now, available, importance)
            if not view.wide:
                return fitting
        others = [column for column in columns if column.key not in fitting.by_key]
        columns = [*fitting.columns, *others]
        names = [column.key for column in columns]
        fixed = names.index(self.name) + 1 if self.name in names else 0
        return Layout(columns, [*fitting.widths, *measured(others, rows, now)], fixed=fixed)

    def default_columns(self, view: View) -> Sequence[str]:
        """Return the keys of the columns that are shown as far as there is room."""
        return [key for key in self.columns if key != "namespace" or view.namespace is None]

    def fit(
        self,
        columns: Sequence[Column[RowT]],
        rows: Sequence[RowT],
        now: datetime,
        available: int,
        importance: str,
    ) -> Layout[RowT]:
        """Return the most important columns that fit."""
        sample = rows[:_SAMPLED_ROWS]
        optional = [column for column in columns if column.key in self.only_known]
        empty = [column.key for column in optional if not any(column.value(row) for row in sample)]
        columns = [column for column in columns if column.key not in empty]
        return fitting_columns(columns, importance, self.squeezed, rows, now, available)

    @abstractmethod
    def key(self, row: RowT) -> Hashable:
        """Return the identity of a row, which stays the same when its values change."""

    @abstractmethod
    def token(self, row: RowT, key: str, width: int) -> Token:
        """Return the token of a cell's style; `width` is the least width of its column."""

    @abstractmethod
    def is_at_risk(self, row: RowT) -> bool:
        """Return whether the row is shown when only rows at risk are."""

    @abstractmethod
    def panel(self, row: RowT, view_model: ViewModel) -> TextLayout:
        """Return the explanation of a row, its answer first."""

    def opened(self, view: View, row: RowT) -> View | None:
        """Return the view that enter goes to; None if it explains the row's pod."""
        return None

    def pod_of(self, row: RowT, view_model: ViewModel) -> PodRow | None:
        """Return the pod of a row, of a group the one that dies first; None if there is none."""
        return None

    def node_of(self, row: RowT) -> str:
        """Return the node of a row, "" if it has none."""
        return ""

    def victim_key(self, coming: DeathRow, view_model: ViewModel) -> Hashable:
        """Return the key of the row that has the victim of a death, None if none has."""
        return None


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Selects the rows that are shown: by a filter, and perhaps only those at risk.

    Ages are counted to the time `taken`.
    """

    definition: ListDefinition[Any]
    filter: RowFilter
    at_risk: bool
    taken: datetime

    def selected(self, rows: Sequence[Any]) -> Sequence[Any]:
        rows = self.filter.selected(rows, self.taken)
        return [row for row in rows if self.definition.is_at_risk(row)] if self.at_risk else rows

    def implies(self, other: RowSelection) -> bool:
        """Return whether `other` certainly selects every row that this one does."""
        same = self.definition is other.definition and self.taken == other.taken
        return same and self.at_risk >= other.at_risk and self.filter.implies(other.filter)


class ListQuery(NamedTuple):
    """A list and its view, without a filter."""

    definition: ListDefinition[Any]
    view: View


class BuiltList(NamedTuple):
    """The rows of a query from one view model, or why they could not be built."""

    query: ListQuery
    view_model: ViewModel
    rows: ListRows | QosError


class ListCache:
    """The rows of the list that is shown, built once from each view model.

    `rows` builds a quick list at once. Any other one is built in threads: with each update in the follower's
    (`build`), and after a person has chosen it in another one (`work_for`). `take` stores what they built.
    """

    def __init__(self) -> None:
        self._query: ListQuery | None = None
        """The list that is shown."""
        self._quick: BuiltList | None = None
        """The quick list that was built last."""
        self._built: BuiltList | None = None
        """The list that a thread has built last."""
        self._running: tuple[ListQuery, ViewModel] | None = None
        """What a thread other than the follower's is building."""
        self._failed: tuple[ListQuery, ViewModel] | None = None
        """What could not be built: it is not tried again."""

    @property
    def is_building(self) -> bool:
        return self._running is not None

    def build(self, view_model: ViewModel) -> BuiltList | None:
        """Build the list that is shown, from a new view model; runs in the follower's thread."""
        query = self._query
        return None if query is None or query.definition.is_quick else self._build(query, view_model)

    def _build(self, query: ListQuery, view_model: ViewModel) -> BuiltList:
        before = self._rows_of(self._built, query)
        rows = attempt(lambda: query.definition.build(view_model, query.view, before))
        return BuiltList(query, view_model, rows)

    @staticmethod
    def _rows_of(built: BuiltList | None, query: ListQuery) -> ListRows | None:
        if built is None or built.query != query or isinstance(built.rows, QosError):
            return None
        return built.rows

    def rows(self, query: ListQuery, view_model: ViewModel) -> ListRows | None:
        """Return the rows of a query, or its rows from an older view model, or None if there are none."""
        if query != self._query:
            self._query, self._failed = query, None
        if self._quick is not None and self._quick.view_model is not view_model:
            self._quick = None
        if not query.definition.is_quick:
            return self._rows_of(self._built, query)
        if self._quick is None or self._quick.query != query:
            self._quick = BuiltList(query, view_model, query.definition.build(view_model, query.view, None))
        return self._rows_of(self._quick, query)

    def work_for(self, query: ListQuery, view_model: ViewModel) -> Callable[[], BuiltList] | None:
        """Return work for a thread that builds the rows; None if nothing is to build, or a thread runs."""
        wanted = query, view_model
        built = self._built[:2] if self._built is not None else None
        if query.definition.is_quick or self._running is not None or wanted in {built, self._failed}:
            return None
        self._running = wanted
        return lambda: self._build(query, view_model)

    def take(self, built: BuiltList, *, is_update: bool = False) -> QosError | None:
        """Store the rows that a thread has built, or return its error.

        An update, from the follower's thread, is newer than what another thread still builds of the same
        list, which is dropped when it comes.
        """
        wanted = built.query, built.view_model
        if is_update:
            if self._running is not None and self._running[0] == built.query:
                self._running = None
        elif self._running == wanted:
            self._running = None
        else:
            return None
        if isinstance(built.rows, QosError):
            self._failed = wanted
            return built.rows
        self._built = built
        return None

    def clear(self) -> None:
        self._query = self._built = self._quick = self._failed = self._running = None


class ListTable(LineTable[Any]):
    """Shows one list; keeps its order, its marks and the columns that a person chose."""

    def __init__(self, definition: ListDefinition[Any]) -> None:
        super().__init__(
            natural=definition.natural,
            key=definition.key,
            token=self._token_for,
            unflashed=frozenset({"age"}),
            id=definition.kind.value,
        )
        self.definition = definition
        self.heading, self.row_line = definition.heading, definition.row_line
        self.most_height = definition.most_height
        self.chosen: tuple[str, ...] | None = None
        self._title = ""
        self._shown_order = self.sorted_by

    def _token_for(self, row: Any, key: str) -> Token:
        column = self.columns.column(key)
        return self.definition.token(row, key, column.width if column is not None else 0)

    def show(
        self,
        view: View,
        rows: Sequence[Any],
        now: datetime,
        empty: str,
        selection: RowSelection | None = None,
        starts: Sequence[int] | None = None,
    ) -> None:
        """Show the selected rows; groups begin at the indices `starts`, if they are known."""
        key, _ = order = self.sorted_by
        is_natural = key == self.definition.natural
        is_whole = not rows or not getattr(rows[0], "is_provisional", False)
        grouped = self.definition.grouped and view.node is None and view.pod is None
        groups = is_natural and grouped and is_whole
        self.group_of = self.definition.group_of if groups else None
        self.natural_shown = self.definition.natural_key(view)

        by = "" if is_natural else key
        fitting = partial(self.definition.layout, view, self.chosen, by=by, has_headings=groups)
        self.load(rows, fitting, now, empty=empty, selector=selection, starts=starts)
        if order != self._shown_order:
            self._shown_order = order
            self.call_after_refresh(self.scroll_to_sorted)

    def find_column(self, key: str) -> Column[Any] | None:
        """Return a column, shown or not."""
        return self.definition.columns.get(key)

    def set_title(self, title: str) -> None:
        """Set the title above the table."""
        if title != self._title:
            self._title = title
            self.border_title = Content(title)

    def restore(self, state: UiState) -> None:
        """Restore columns and order of the last run; pods always begin in kill order."""
        name, columns = self.definition.kind.value, self.definition.columns
        chosen = state.columns.get(name, ())
        if chosen and all(key in columns for key in chosen):
            self.chosen = tuple(chosen)
        key, is_reversed = state.sort.get(name, (self.definition.natural, False))
        if key in columns and not self.definition.grouped:
            self._order.sort_by(columns[key], is_reversed=is_reversed)

    def saved(self, state: UiState) -> UiState:
        name = self.definition.kind.value
        return replace(
            state,
            sort={**state.sort, name: self.sorted_by},
            columns={**state.columns, name: self.chosen or ()},
        )

    @property
    def marked_rows(self) -> list[Any]:
        """Return the marked rows that are shown; if none is marked, the one under the cursor."""
        if self.marked:
            return [row for row in self.rows if self.definition.key(row) in self.marked]
        return [self.row] if self.row is not None else []

    @property
    def shown_columns(self) -> list[Column[Any]]:
        return [self.definition.columns[column.key] for column in self.columns.columns]

    def text(self, rows: Sequence[Any], now: datetime) -> str:
        """Return rows as a table, as `kubectl qos top` prints them."""
        return "\n".join(table(rows, self.shown_columns, now))


@lru_cache
def _with_time(column: Column[Any]) -> Column[Any]:
    """Return the column with times instead of ages; cached, because a new column would repaint the table."""
    if column.type is not ColumnType.TIME:
        return column
    return structs.replace(column, cell=lambda row, _: escape(str(column.value(row) or UNKNOWN)))


_DOCUMENTS: Final[Mapping[ListKind, tuple[str, Sequence[Column[Any]]]]] = {
    ListKind.CLUSTERS: ("ClusterMemory", tuple(CLUSTER_COLUMNS.values())),
    ListKind.NODES: ("NodeMemory", tuple(NODE_COLUMNS.values())),
    ListKind.NAMESPACES: ("NamespaceRank", tuple(NAMESPACE_COLUMNS.values())),
    ListKind.WORKLOADS: ("WorkloadRank", tuple(WORKLOAD_COLUMNS.values())),
    ListKind.PODS: ("PodRank", VALUE_COLUMNS),
    ListKind.CONTAINERS: ("PodRank", VALUE_COLUMNS),
}
"""The kind and the columns of a list in JSON and YAML; deaths have other values."""


def export_rows(
    path: Path,
    *,
    kind: ListKind,
    rows: Sequence[Any],
    columns: Sequence[Column[Any]],
    notes: Sequence[str],
    now: datetime,
) -> str:
    """Return the text of a file with these rows. Raises InputError for an unknown extension."""
    if path.suffix == ".csv":
        return to_csv(rows, columns)
    if path.suffix == ".txt":
        return "".join(f"{line}\n" for line in table(rows, columns, now))
    if path.suffix in {".json", ".yaml", ".yml"}:
        from kubectl_qos.present.values import as_document

        if kind is ListKind.DEATHS:
            from kubectl_qos.present.values.incidents import DeathListValues, death_values

            values = as_document(DeathListValues(items=tuple(map(death_values, rows)), notes=tuple(notes)))
        else:
            name, columns = _DOCUMENTS[kind]
            values = as_document(table_values(name, rows, columns, notes))
        return "".join(json_parts(values)) if path.suffix == ".json" else to_yaml(values)
    raise InputError(
        f"{path.name}: the extension chooses the format", hint="end it in .csv, .json, .yaml or .txt"
    )
