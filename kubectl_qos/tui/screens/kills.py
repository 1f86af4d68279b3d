"""The list of kills with their evidence, and the dialog that chooses a time of the past.

Threads read events and analyze kills. metrics/past.py reads the past from a store of metrics.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Label, Static

from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.cluster.source import PastTime, Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope
from kubectl_qos.metrics.past import Track
from kubectl_qos.present.format import duration, escape, full_name, rounded
from kubectl_qos.present.kill_columns import aged_columns
from kubectl_qos.present.kills import LATER, by_text, detail_lines, nothing_sentence
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.new_kills import with_seen
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.tui.actions import BindingGroup, actions_in_group
from kubectl_qos.tui.screens.base import BuiltInBackground, QosScreen
from kubectl_qos.tui.screens.dialogs import InputDialog
from kubectl_qos.tui.view import Detail, FollowStatus, past_words
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.graph import BARS, GRAPH_HEIGHT, Band, graph, pod_graph
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.simulation import Slider
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
"""Columns whose values only kernel logs have."""
_SQUEEZED: Final = {"pod": 16, "node": 8}
_GRAPH_FROM: Final = 30
"""From this height on there is a graph."""
_TOKENS: Final = {Confidence.CERTAIN: "success", Confidence.LIKELY: "", Confidence.POSSIBLE: "muted"}


class Loaded(NamedTuple):
    """The kills, the newest first, and what was read; a store has the `older` ones of `seconds`."""

    kills: Sequence[Kill]
    events: EventList
    older: Sequence[Kill]
    seconds: int
    missing: tuple[Missing, ...]


def load_kills(
    source: Source, view_model: ViewModel, scope: Scope, before: Loaded | None, past: Past | None
) -> Loaded:
    """Return the kills found in statuses, events, kernel logs, and the store of metrics. Raises QosError.

    What was read for the kills `before` is not read again.
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
    """Read events and the store's kills; return them, over how many seconds, and what could not be read."""
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


class KillsScreen(QosScreen, BuiltInBackground[Loaded], group=BindingGroup.KILLS):
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
        table = LineTable[Kill](
            natural="time",
            key=lambda kill: (kill.namespace, kill.pod, kill.container, kill.container_id, kill.time),
            token=lambda kill, key: _TOKENS[kill.diagnosis.confidence] if key == "sure" else "",
        )
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
        """Analyze again if pods have changed, and not only their usage."""
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
        """Analyze the kills; read events again if that was requested. Raises QosError."""
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
        """Return the error if there is one, and the evidence of the kill, or what would be shown here."""
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
        """Draw the memory of the pod, if samples from before its death were seen."""
        key, died, trends = (kill.namespace, kill.pod), parse_time(kill.time), self.qos.trends
        times, row = trends.times(key), self._newest.row_on(kill.node, key)
        if row is None or died is None or not times or self.app.size.height < _GRAPH_FROM:
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


STEP, FAR, _HOUR = 300, 3600, 3600
"""Seconds of a step, of a large step, and of an hour."""
BEFORE: Final = 60
"""How many seconds before a death the slider stops."""
_LABEL_WIDTH: Final = 8
"""The cells of an hour below the slider, with a gap."""
_MAX_DEATHS: Final = 7
_PAST_GRAPH_FROM: Final = 24
"""From this height on the dialog has a graph."""
NO_DEATHS: Final = "no OOM kill or eviction is known in this time"


@dataclass(frozen=True)
class ChosenTime:
    """A time in the last hours: `chosen` seconds after the track begins; the end is the present."""

    track: Track
    chosen: int

    @property
    def top(self) -> int:
        """Return the length of the track in seconds."""
        return max(int(self.track.end - self.track.begin), 1)

    @property
    def words(self) -> str:
        past = PastTime("", self.moment(self.chosen), self.top - self.chosen)
        return past_words(past) if past.ago_seconds else "the present"

    @cached_property
    def deaths(self) -> tuple[tuple[int, Kill], ...]:
        """Return the deaths whose time is known, with that time in seconds."""
        timed = ((parse_time(kill.time), kill) for kill in self.track.kills)
        return tuple((round(at.timestamp() - self.track.begin), kill) for at, kill in timed if at is not None)

    def moment(self, seconds: int) -> datetime:
        """Return the time that many seconds after the beginning."""
        return datetime.fromtimestamp(round(self.track.begin + seconds), UTC)

    def at(self, chosen: int) -> ChosenTime:
        """Return another time, between the ends of the track."""
        return ChosenTime(self.track, max(min(chosen, self.top), 0))

    def moved(self, where: str) -> ChosenTime:
        """Return the time after a move: a step, to the minute before another death, or to the beginning."""
        steps = {"earlier": -STEP, "later": STEP, "far_earlier": -FAR, "far_later": FAR, "begin": -self.top}
        if where in steps:
            return self.at(self.chosen + steps[where])
        places = [max(at - BEFORE, 0) for at, _ in self.deaths]
        if where == "next_death":
            return self.at(min((at for at in places if at > self.chosen), default=self.chosen))
        return self.at(max((at for at in places if at < self.chosen), default=self.chosen))

    def ticks(self, cells: int) -> str:
        """Return the hours below a slider of that many cells, in UTC."""
        hours = next(
            (hours for hours in (1, 2, 3, 4, 6) if cells * hours * _HOUR >= _LABEL_WIDTH * self.top), 12
        )
        line, step, end = "", hours * _HOUR, self.top - self.top * _LABEL_WIDTH // cells
        for at in range(-int(self.track.begin) % step, end, step):
            line = f"{line:<{round((cells - 1) * at / self.top)}}{self.moment(at):%H:%M}"
        return line

    def memory_lines(self, cells: int) -> list[TextLine]:
        """Draw the memory of the next victim's node, else of the fullest, above a slider."""
        memory = {node: points for node, points in self.track.memory.items() if points}
        later = (kill.node for at, kill in self.deaths if at >= self.chosen and kill.node in memory)
        node = next(later, max(memory, key=lambda name: memory[name][-1][1], default=""))
        if not node:
            return []
        points = memory[node]
        sizes = [int(used) for _, used in points]
        times = [self.track.begin + self.top * cell / (cells - 1) for cell in range(cells)]
        places = [bisect_right(points, time, key=itemgetter(0)) for time in times]
        columns = [sizes[place - 1] if place else 0 for place in places]
        lines = graph([Band(columns, BARS[-1], "calm")], (0, max(sizes)), (GRAPH_HEIGHT, cells))
        seen = f"memory of {escape(node)}, {rounded(min(sizes))} to {rounded(max(sizes))}"
        return [TextLine(f" {seen}", "muted"), *(TextLine.of((" ", ""), *line) for line in lines)]

    def death_lines(self, most: int = _MAX_DEATHS) -> Iterator[TextLine]:
        """Yield the deaths around the chosen time; the next one is marked."""
        marked = sum(at < self.chosen for at, _ in self.deaths)
        first = max(min(marked - most // 2, len(self.deaths) - most), 0)
        width = max((len(full_name(kill.namespace, kill.pod)) for _, kill in self.deaths), default=0)
        for place, (at, kill) in list(enumerate(self.deaths))[first : first + most]:
            time = f"{'~' if kill.time_is_estimated else ' '}{self.moment(at):%H:%M:%S}"
            by = f"{by_text(kill)}, {kill.diagnosis.confidence.value}"
            by += f", on {escape(kill.node)}" if kill.node else ""
            after = f"  {duration(at - self.chosen)} later" if place == marked else ""
            text = f"{time}  {full_name(kill.namespace, kill.pod):<{width}}  {by}{after}"
            token = "changed" if place == marked else "muted" if place < marked else ""
            yield TextLine(f"{'▸' if place == marked else ' '} {text}", token)
        if not self.deaths:
            yield TextLine(NO_DEATHS, "muted")


class TimeSlider(InputDialog[datetime | Literal["present"] | None], group=BindingGroup.PAST):
    """Chooses a time of the last hours, which a thread reads. The result may be the present."""

    def __init__(self, read: Callable[[], Track], past: PastTime | None) -> None:
        super().__init__()
        self._read, self._past = read, past
        self._times: ChosenTime | None = None

    def compose(self) -> ComposeResult:
        keys = self.qos.keys.first
        with Vertical(classes="dialog track") as dialog:
            dialog.border_title = "Another time"
            yield Label("reading the last day from Prometheus …", id="finding", markup=False)
            yield TextView(id="memory")
            yield Slider("", "now")
            yield TextView(id="deaths")
            actions = [action for action in actions_in_group(BindingGroup.PAST) if not action.footer]
            shown = [f"{keys(action.name)} {action.label}" for action in actions]
            yield Static("   ".join(shown), id="keys", markup=False)

    def on_mount(self) -> None:
        run_in_background(self, self._read, self._take)

    def _take(self, track: Track | QosError) -> None:
        if isinstance(track, QosError):
            for name in ("#memory", "Slider", "#deaths", "#keys"):
                self.query_one(name).display = False
            self.show_status(escape_lines(f"! {track}\n{track.hint}".rstrip()))
            return
        times, past = ChosenTime(track, 0), self._past
        self._go(times.at(times.top if past is None else round(past.at.timestamp() - track.begin)))

    def _go(self, times: ChosenTime) -> None:
        self._times = times
        self.show_status(times.words)
        self.query_one(Slider).show(times.chosen, times.top, STEP, [at for at, _ in times.deaths])
        deaths = [TextLine(""), *times.death_lines()]
        has_room = self.app.size.height >= _PAST_GRAPH_FROM

        def layout(width: int) -> list[TextLine]:
            return [TextLine(f" {times.ticks(width - len('  now'))}", "muted"), *deaths]

        def memory(width: int) -> list[TextLine]:
            return times.memory_lines(width - len("  now")) if has_room else []

        self.query_one("#deaths", TextView).show(layout)
        self.query_one("#memory", TextView).show(memory)

    @on(Slider.Moved)
    def _slid(self, event: Slider.Moved) -> None:
        if self._times is not None:
            self._go(self._times.at(event.amount))

    def action_move(self, where: str) -> None:
        if self._times is not None:
            self._go(self._times.moved(where))

    def action_take(self) -> None:
        times = self._times
        if times is not None:
            self.dismiss("present" if times.chosen == times.top else times.moment(times.chosen))

    def action_present(self) -> None:
        self.dismiss("present")
