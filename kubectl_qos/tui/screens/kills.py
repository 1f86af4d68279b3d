"""Kills, each with its mechanism and how sure that is: the screen of `kubectl qos kills`.

Threads read events and analyze kills. Kernel logs are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope
from kubectl_qos.present.format import escape
from kubectl_qos.present.kill_columns import aged_columns
from kubectl_qos.present.kills import LATER, detail_lines, nothing_sentence
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.new_kills import with_seen
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.screens.base import Built, QosScreen
from kubectl_qos.tui.view import Detail, FollowStatus
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.graph import pod_graph
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.table import fitting_columns
from kubectl_qos.tui.widgets.text_view import (
    TextLine,
    TextScroll,
    TextView,
    escape_lines,
    layout_lines,
    note_lines,
    wrapped,
)

if TYPE_CHECKING:
    from kubectl_qos.tui.shell import Past

_IMPORTANCE: Final = "pod by sure time pod namespace container node node exit reason"
_LEFT_OUT: Final = frozenset({"score", "freed", "victim", "place"})
"""Only the kernel's log has these."""
_SQUEEZED: Final = {"pod": 16, "node": 8}
_DRAWN: Final = 30
"""The lines that a screen needs for a graph."""
_TOKENS: Final = {Confidence.CERTAIN: "success", Confidence.LIKELY: "", Confidence.POSSIBLE: "muted"}


class Loaded(NamedTuple):
    """The kills, the newest first, and what was read for them: `older` are those of the last `seconds`."""

    kills: Sequence[Kill]
    events: EventList
    older: Sequence[Kill]
    seconds: int
    missing: tuple[Missing, ...]


def load_kills(
    source: Source, view_model: ViewModel, scope: Scope, before: Loaded | None, past: Past | None
) -> Loaded:
    """Return kills by statuses, events and kernel logs, and by the store of metrics of a past.

    Raises QosError. What was read before is not read again.
    """
    events, older, seconds, missing = _read(source, scope, past) if before is None else before[1:]
    kills: Sequence[Kill] = find_kills(
        view_model.snapshot,
        events,
        source.kernel_logs(),
        is_included=lambda pod: view_model.scope.matches(pod) and scope.matches(pod),
        outside_pods=False,
    )
    if older:
        from kubectl_qos.metrics.past import with_older

        kills = with_older(kills, older, seconds)
    kills = with_seen(kills, view_model.kills)
    return Loaded(kills, events, older, seconds, missing)


def _read(
    source: Source, scope: Scope, past: Past | None
) -> tuple[EventList, Sequence[Kill], int, tuple[Missing, ...]]:
    """Read events, the deaths that a store has with their time, and what is missing. Raises QosError."""
    events = source.event_list(scope.namespace)
    missing = [events.missing] if events.missing is not None else []
    older: Sequence[Kill] = ()
    seconds = 0
    try:
        if past is not None:
            older, seconds = past.older_deaths(source.now(), is_past=source.past is not None)
    except QosError as error:
        missing.append(Missing("the list of older deaths", str(error), error.hint))
    shown = [
        kill
        for kill in older
        if scope.namespace in {None, kill.namespace} and scope.node in {None, kill.node}
    ]
    return events, shown, seconds, tuple(missing)


class KillsScreen(QosScreen, Built[Loaded], group=BindingGroup.KILLS):
    """The kills, the newest first, and the evidence of the one under the cursor."""

    AUTO_FOCUS = "LineTable"
    no_notes = "everything was read, except kernel logs"

    def __init__(self, view_model: ViewModel, *, node: str | None, namespace: str | None) -> None:
        super().__init__()
        in_namespace = view_model.scope.namespace if namespace is None else namespace
        self._scope = Scope(node=node, namespace=in_namespace)
        self._view_model = self._newest = view_model
        self._loaded: Loaded | None = None
        self._error: QosError | None = None
        self._wants_events = True

    def compose_content(self) -> ComposeResult:
        yield Static(Content(self._subject), id="subject")
        table = LineTable[Kill](natural="time", key=_key, token=_token)
        table.border_title = "Kills"
        yield table
        with TextScroll() as evidence:
            evidence.border_title = "Evidence"
            yield TextView(self._layout, id="evidence")
        yield TextView(self._notes_layout, id="kills-notes")

    def on_mount(self) -> None:
        self.rebuild()
        self._show()
        self.watch(self.app, "view_model", self._follow, init=False)
        self.watch(self.app, "status", self._refreshed, init=False)

    @property
    def table(self) -> LineTable[Kill]:
        return self.query_one(LineTable)

    @property
    def not_in_footer(self) -> Collection[str]:
        return () if self.table.rows else {"explain", "fix", "copy", "logs"}

    @property
    def _subject(self) -> str:
        words = "what was killed"
        if self._scope.namespace:
            words += f" in namespace {escape(self._scope.namespace)}"
        return words + (f" on {escape(self._scope.node)}" if self._scope.node else "")

    def _follow(self, view_model: ViewModel | None) -> None:
        """Analyze again after a change of pods: usage and ages change all the time, but make no kills."""
        if view_model is None:
            return
        before, pods = self._newest.snapshot.pods, view_model.snapshot.pods
        self._newest = view_model
        if len(pods) != len(before) or not all(map(is_, pods, before)):
            self.rebuild()
        else:
            self._show()

    def _refreshed(self, before: FollowStatus, status: FollowStatus) -> None:
        if status.loading and not before.loading:
            self._wants_events = True
            self.rebuild()

    def build(self, view_model: ViewModel) -> Loaded:
        """Analyze the kills; events are read again if that was requested. Raises QosError."""
        before, self._wants_events = None if self._wants_events else self._loaded, False
        return load_kills(self.qos.source, view_model, self._scope, before, self.qos.past())

    def show_built(self, built: Loaded | QosError) -> None:
        """Show the kills; those shown before stay if events could not be read."""
        if isinstance(built, QosError):
            self._error = built
        else:
            self._loaded, self._error = built, None
        self._show()

    def _show(self) -> None:
        now, kills = self.qos.source.now(), self._loaded.kills if self._loaded is not None else ()
        empty = ""
        if not kills and self._error is None:
            empty = "Reading …" if self._loaded is None else nothing_sentence(self._scope.namespace)
        shown = [column for column in aged_columns() if column.key not in _LEFT_OUT]
        self.table.load(kills, partial(fitting_columns, shown, _IMPORTANCE, _SQUEEZED), now, empty=empty)
        self.refresh_bindings()
        self.table.styles.max_height = max(len(kills), 4) + HEADER + 2
        self.query_one("#kills-notes", TextView).show(self._notes_layout)
        self._show_evidence()

    @on(LineTable.Highlighted)
    def _show_evidence(self) -> None:
        self.query_one("#evidence", TextView).show(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        """Return an error before everything else; then the evidence, or what would show here."""
        lines: list[TextLine] = []
        if self._error is not None:
            hint = [TextLine(f"  {escape_lines(self._error.hint)}")] if self._error.hint else []
            error = TextLine(f"! {escape_lines(str(self._error))}", "wrong")
            lines += [*layout_lines([error, *hint])(width), TextLine("")]
        kill = self.table.row
        if kill is not None:
            subject, blank, diagnosis, *others = detail_lines(kill, width)
            lines += [TextLine(text, "answer") for text in wrapped(subject, width)]
            lines += [TextLine(text, "changed") for text in wrapped(diagnosis, width)]
            lines += [TextLine(blank), *self._graph(kill, width), *layout_lines(map(TextLine, others))(width)]
        elif self._loaded is not None:
            lines += [TextLine(text, "muted") for text in wrapped(LATER, width, hanging="")]
        return lines

    def _graph(self, kill: Kill, width: int) -> list[TextLine]:
        """Draw the memory of a pod around its death, if that was watched."""
        key, died, trends = (kill.namespace, kill.pod), parse_time(kill.time), self.qos.trends
        times, ranked = trends.times(key), self._newest.rows.nodes.get(kill.node)
        row = next((row for row in ranked.rows if row.pod.key == key), None) if ranked is not None else None
        if row is None or died is None or not times or self.app.size.height < _DRAWN:
            return []
        if died.timestamp() < times[0]:
            return []
        lines = pod_graph(trends.of(key), row.limit, width, times, [died])
        return [*lines, TextLine("")] if lines else []

    def _notes_layout(self, width: int) -> list[TextLine]:
        key = self.qos.keys.first("kills.notes")
        return list(note_lines(self.notes_now(), key, width, is_roomy=False, style=""))

    def notes_now(self) -> list[str]:
        of_events = self._loaded.missing if self._loaded is not None else ()
        of_pods = (part for part in self._newest.snapshot.missing if part.what != OTHER_PODS)
        return [escape_lines(missing_sentence(part)) for part in (*of_events, *of_pods)]

    @on(LineTable.Selected)
    def action_explain(self) -> None:
        pod = self._chosen_pod()
        if pod is not None and self.is_uppermost:
            self.qos.open(Detail.EXPLAIN, pod)

    def _chosen_pod(self) -> Pod | None:
        kill = self.table.row
        pod = pod_named(self._newest, (kill.namespace, kill.pod)) if kill is not None else None
        if pod is None:
            self.qos.warn("that pod is gone" if kill else "there is no pod to open")
        return pod

    def action_fix(self) -> None:
        from kubectl_qos.tui.screens.fix_dialog import fix_workload_of

        kill = self.table.row
        if kill is None:
            self.qos.warn("there is no pod to open")
        else:
            fix_workload_of(self.qos, self._newest, (kill.namespace, kill.pod))

    def action_logs(self) -> None:
        kill, pod = self.table.row, self._chosen_pod()
        if kill is not None and pod is not None:
            self.qos.show_log(pod, kill.container)

    def action_next_pane(self) -> None:
        pane = self.query_one(TextScroll) if self.table.has_focus else self.table
        pane.focus()

    def action_copy(self) -> None:
        if not self.table.rows:
            self.qos.warn("there is nothing to copy")
            return
        blocks = ["\n".join(detail_lines(kill)) for kill in self.table.rows]
        self.qos.copy("\n\n".join(blocks) + "\n", "what was killed")


def _key(kill: Kill) -> Hashable:
    return kill.namespace, kill.pod, kill.container, kill.container_id, kill.time


def _token(kill: Kill, key: str) -> str:
    return _TOKENS[kill.diagnosis.confidence] if key == "sure" else ""
