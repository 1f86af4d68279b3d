"""The list of the kubeconfig's clusters, and the poller that reads their rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from kubectl_qos.analysis.group_table import ClusterRow, cluster_row, worst_first
from kubectl_qos.cluster.background import attempt, read_each, run_in_background
from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.format import age, count, duration, escape
from kubectl_qos.present.node_columns import CLUSTER_COLUMNS, death_text, no_answer, nodes_text, worst_text
from kubectl_qos.tui.filters import Fields
from kubectl_qos.tui.lists.base import ListDefinition, ListRows
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.table import Token
from kubectl_qos.tui.widgets.text_view import TextLayout, paragraphs

if TYPE_CHECKING:
    from kubectl_qos.tui.shell import ContextSwitch, Shell

POLL_SECONDS: Final = 60
"""The pause between two rounds, each of which lists all pods of all clusters."""
_OF_FILES: Final = frozenset({"used_percent", "error"})
"""Columns for JSON and CSV, which other columns show too."""


class ClusterPoller:
    """Reads the row of each context again and again while their list is shown.

    Of the open cluster only events are read: its follower has the rest. Connections to the others are kept,
    so that credential plugins do not run each time.
    """

    def __init__(self, app: Shell, contexts: ContextSwitch) -> None:
        self._app = app
        self._contexts = contexts
        self._rows: dict[str, ClusterRow] = {}
        self._sources: dict[str, Source] = {}
        self._timer: Timer | None = None
        self._is_reading = False

    def rows(self) -> ListRows:
        """Return the rows as far as they have been read, the cluster in most trouble first."""
        title = self._app.source.title
        is_live = self._app.source.is_live
        rows = [replace(row, is_open=row.name == title and is_live) for row in self._rows.values()]
        only = f"{title} has no other contexts: this list is of one cluster"
        return ListRows(sorted(rows, key=worst_first), [only] if list(self._rows) == [title] else ())

    def poll(self) -> None:
        """Begin to read all rows, again and again until the list is left."""
        if self._timer is not None:
            self._timer.stop()
        if not self._is_shown:
            return
        title = self._app.source.title
        if not self._is_reading:
            try:
                names = self._contexts.names()
            except QosError as error:
                self._app.warn(error)
                names = ()
            names = names if title in names else (title,)
            self._rows = {name: self._rows.get(name) or ClusterRow(name) for name in names}
            self._is_reading = True
            others = [name for name in names if name != title]
            run_in_background(self._app, partial(self._read_others, others), self._all_read)
        self.read_open()

    @property
    def _is_shown(self) -> bool:
        return self._app.is_listing(ListKind.CLUSTERS)

    def read_open(self) -> None:
        """Build the row of the open cluster from its view model and its events."""
        source, view_model, error = self._app.source, self._app.view_model, self._app.status.health.error
        if view_model is None or view_model.arrived is not None:
            if error is not None:
                self.take(source.title, error)
            return

        def read() -> ClusterRow:
            events, logs = source.event_list(view_model.scope.namespace), source.kernel_logs()
            snapshot, taken = view_model.snapshot, view_model.taken
            row = cluster_row(source.title, snapshot, events, logs, now=source.now(), taken=taken)
            return replace(row, error=error)

        run_in_background(self._app, read, partial(self.take, source.title))

    def _read_others(self, names: Sequence[str]) -> bool:
        """Read clusters and show each row as it comes; return whether the list was left meanwhile."""
        was_left = False
        for name, answer in read_each(names, lambda name: attempt(partial(self._read, name))):
            was_left |= answer is None
            if answer is not None:
                with suppress(RuntimeError):  # the event loop is closed: the UI has ended
                    self._app.call_later(self.take, name, answer)
        return was_left

    def _read(self, name: str) -> ClusterRow | None:
        """Read the row of a cluster; None after the list was left. Raises QosError."""
        if not self._is_shown:
            return None
        source = self._sources.pop(name, None) or self._contexts.open(name)
        snapshot, taken = source.snapshot(Scope()), self._app.source.now()
        row = cluster_row(name, snapshot, source.event_list(None), now=source.now(), taken=taken)
        self._sources[name] = source
        return row

    def take(self, name: str, answer: ClusterRow | QosError) -> bool:
        """Keep a row, or the last one with the error; return whether the list shows it."""
        is_known = name in self._rows
        if is_known:
            if isinstance(answer, QosError):
                answer = replace(self._rows[name], error=answer)
            self._rows[name] = answer
            if self._is_shown:
                self._app.show_rows()
        return is_known and self._is_shown

    def _all_read(self, was_left: bool | QosError) -> None:
        self._is_reading = False
        if was_left is True:
            self.poll()
        else:
            self._wait()

    def _wait(self) -> None:
        if self._is_shown:
            self._timer = self._app.set_timer(
                POLL_SECONDS, self._wait if self._app.status.paused else self.poll
            )


class ClusterList(ListDefinition[ClusterRow]):
    """Clusters, those with the worst nodes first."""

    kind = ListKind.CLUSTERS
    name = "cluster"
    natural = "worst_node"
    columns = {key: column for key, column in CLUSTER_COLUMNS.items() if key not in _OF_FILES}  # noqa: RUF012
    fields = Fields(CLUSTER_COLUMNS, None)
    importance = "cluster worst_node next_death age kills worst_node nodes cluster version next_death"
    squeezed: Mapping[str, int] = {"cluster": 12, "worst_node": 12, "next_death": 20}
    is_quick = True

    def __init__(self, rows: Callable[[], ListRows] = lambda: ListRows(()), retry_key: str = "") -> None:
        self._rows, self._retry_key = rows, retry_key

    def build(self, view_model: ViewModel, view: View, before: ListRows | None) -> ListRows:
        """Return the poller's rows; the view model is only of the open cluster."""
        return self._rows()

    def key(self, row: ClusterRow) -> Hashable:
        return row.name

    def token(self, row: ClusterRow, key: str, width: int) -> Token:
        if no_answer(row):
            return "warning" if key == "next_death" and row.error is not None else "muted"
        if row.has_bad_node and key in {"cluster", "worst_node"}:
            return "error"
        return "victim" if row.has_bad_node and key == "next_death" else ""

    def is_at_risk(self, row: ClusterRow) -> bool:
        """Return whether a node reports a bad condition, or the cluster does not answer."""
        return row.has_bad_node or row.error is not None

    def panel(self, row: ClusterRow, view_model: ViewModel) -> TextLayout:
        """Return whether it answers, then its worst node and its next death."""
        name, error, lines = escape(row.name), row.error, []
        if row.taken is None or error is not None:
            lines = [(f"{name}: {no_answer(row)}", "answer" if error is None else "wrong")]
        if error is not None:
            lines += [(escape(error.hint), "")] if error.hint else []
            retry = f"{self._retry_key} retries, as every {duration(POLL_SECONDS)}"
            lines.append((f"{retry}; kubectl get nodes --context {name} shows what kubectl gets", ""))
        if row.taken is not None:
            facts = f"{row.version}, {nodes_text(row)} nodes ready, worst {worst_text(row)}"
            facts += f"; {count(row.kills or 0, 'kill')} in the last day"
            ago = f", {age(row.taken.isoformat(), view_model.taken)} ago" if error is not None else ""
            lines.append((f"{name}{ago}: {facts}", "" if error is not None else "answer"))
        if row.next_death_node is not None:
            lines.append(
                (f"next on {escape(row.next_death_node.name)}: {death_text(replace(row, error=None))}", "")
            )
        return paragraphs(*lines)
