"""What a list is to the screen that shows it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from kubectl_qos.present.output import Column
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.tui.filters import Fields, RowFilter
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.table_cells import GAP, GUTTER, WIDEST, Layout, TableColumn, Token, measured
from kubectl_qos.tui.widgets.text_view import TextLayout

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class ListRows:
    """Everything that a view lists, before its filter, in the list's natural order.

    `notes` are what a reader has to know about it; `kept` is what the list needs to work it out faster the
    next time.
    """

    rows: Sequence[Any]
    notes: Sequence[str] = ()
    kept: object = None


class ListDefinition(Protocol[RowT]):
    """One kind of things to list. Nothing of it changes; rows are worked out wherever it is convenient."""

    @property
    def kind(self) -> ListKind:
        """What it lists."""

    @property
    def natural(self) -> str:
        """The key of the column in whose order rows are worked out."""

    @property
    def columns(self) -> Mapping[str, Column[RowT]]:
        """Every column that can be shown, in their order."""

    @property
    def fields(self) -> Fields:
        """What its filter can ask for."""

    @property
    def is_quick(self) -> bool:
        """Whether working it out takes no time that a person notices, however large the cluster."""

    def work_out(self, facts: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """The rows of a view; `before` is the last answer to the same question."""

    def layout(
        self, view: View, chosen: Sequence[str] | None, rows: Sequence[RowT], now: datetime, available: int
    ) -> Layout[RowT]:
        """The columns for so many cells; `chosen` are those that a person wants to see."""

    def key(self, row: RowT) -> Hashable:
        """What stays the same of a row when its values change."""

    def token(self, row: RowT, key: str, width: int) -> Token:
        """By which of the theme's tokens a cell is styled; `width` is the one that its column asks for."""

    def is_at_risk(self, row: RowT) -> bool:
        """Whether it stays when only those at risk are shown."""

    def panel(self, row: RowT, facts: ViewModel) -> TextLayout:
        """What is said of the row below the table: the answer first."""

    def opened(self, view: View, row: RowT) -> View | None:
        """Where enter goes to; None where it explains the row's pod."""

    def pod_of(self, row: RowT, facts: ViewModel) -> PodRow | None:
        """The pod that is explained and edited: its own, or the first of it to die."""

    def node_of(self, row: RowT) -> str:
        """The node whose memory is in question, empty for none or several."""


def newest_row(row: PodRow, facts: ViewModel) -> PodRow | None:
    """The pod's row as it is now: lists may still show what older facts said. None if it is gone."""
    ranked = facts.rows.nodes.get(row.node)
    wanted = row.pod.metadata.namespace, row.name, ""
    return next((one for one in ranked.rows if one.key == wanted), None) if ranked is not None else None


@dataclass(frozen=True, slots=True)
class RowSelection:
    """What of a list is shown: what the filter lets through, and all of that or only those at risk.

    `taken` is what ages are counted to.
    """

    listing: ListDefinition[Any]
    filter: RowFilter
    at_risk: bool
    taken: datetime

    def selected(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Those of the rows, in their order."""
        rows = self.filter.selected(rows, self.taken)
        return [row for row in rows if self.listing.is_at_risk(row)] if self.at_risk else rows

    def implies(self, other: RowSelection) -> bool:
        """Whether the other one surely lets every row through that this one does."""
        same = self.listing is other.listing and self.taken == other.taken
        return same and self.at_risk >= other.at_risk and self.filter.implies(other.filter)


def all_columns(
    columns: Sequence[TableColumn[RowT]], rows: Sequence[RowT], now: datetime, name: str
) -> Layout[RowT]:
    """Every column, however wide that is; those up to the name stay when the others scroll sideways."""
    keys = [column.key for column in columns]
    fixed = keys.index(name) + 1 if name in keys else 0
    return Layout(columns, measured(columns, rows, now), fixed=fixed)


def fitting_columns(
    columns: Sequence[TableColumn[RowT]],
    importance: Sequence[str],
    rows: Sequence[RowT],
    now: datetime,
    available: int,
    squeezed: Mapping[str, int],
) -> Layout[RowT]:
    """The columns that fit into so many cells.

    Args:
        columns: in the order in which they are shown.
        importance: their keys, those that stay the longest first.
        rows: what is listed.
        now: for ages.
        available: cells.
        squeezed: the keys of those that may be cut, and so many cells of them at least; each is twice in
            `importance`, cut and whole. What room is left is theirs.
    """
    widths = dict(zip([column.key for column in columns], measured(columns, rows, now), strict=True))
    kept: dict[str, int] = {}
    room = available - GUTTER
    for key in importance:
        if key not in widths:
            continue
        if key in kept:
            width, needed = widths[key], widths[key] - kept[key]
        else:
            width = min(widths[key], squeezed.get(key, WIDEST))
            # A gap is where the sorted column has its sign; the last one can go without when it is cut.
            needed = width if key in squeezed and key == columns[-1].key else width + GAP
        if needed > room:
            break
        kept[key] = width
        room -= needed
    for key in squeezed:
        if key in kept:
            more = min(widths[key] - kept[key], room)
            kept[key] += more
            room -= more
    chosen = [column for column in columns if column.key in kept]
    return Layout(chosen, [kept[column.key] for column in chosen])
