"""Another time of the cluster: a track of the last hours with a node's memory and deaths, and a knob on it.

cluster/source.py has the cluster of a time, metrics/past.py reads the track.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import Final, Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Label, Static

from kubectl_qos.cluster.source import PastTime
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.metrics.past import Track
from kubectl_qos.present.format import duration, escape, full_name, rounded
from kubectl_qos.present.kill_columns import by_text
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.tui.actions import BindingGroup, actions_in_group
from kubectl_qos.tui.background import run_in_background
from kubectl_qos.tui.screens.dialogs import InputDialog
from kubectl_qos.tui.view import past_words
from kubectl_qos.tui.widgets.graph import BARS, GRAPH_HEIGHT, Band, graph
from kubectl_qos.tui.widgets.simulation import Slider
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, escape_lines

STEP, FAR, _HOUR = 300, 3600, 3600
"""Seconds of a step and of a large one."""
BEFORE: Final = 60
"""How many seconds before a death to look."""
_LABEL: Final = 8
"""The cells that the hour below the track takes, with a gap."""
_DEATHS: Final = 7
_DRAWN: Final = 24
"""The lines that a screen needs for a graph."""
NO_DEATHS: Final = "no OOM kill or eviction is known in this time"


@dataclass(frozen=True)
class Times:
    """A track with a knob: `chosen` is in seconds from the begin, at the end it is the present."""

    track: Track
    chosen: int

    @property
    def top(self) -> int:
        """Return the length of the track."""
        return max(int(self.track.end - self.track.begin), 1)

    @property
    def words(self) -> str:
        past = PastTime("", self.moment(self.chosen), self.top - self.chosen)
        return past_words(past) if past.ago_seconds else "the present"

    @cached_property
    def deaths(self) -> tuple[tuple[int, Kill], ...]:
        """Return the deaths with a known time, after that time."""
        timed = ((parse_time(kill.time), kill) for kill in self.track.kills)
        return tuple((round(at.timestamp() - self.track.begin), kill) for at, kill in timed if at is not None)

    def moment(self, seconds: int) -> datetime:
        """Return the time this many seconds after the begin."""
        return datetime.fromtimestamp(round(self.track.begin + seconds), UTC)

    def at(self, chosen: int) -> Times:
        """Return the track with the knob elsewhere, between the ends."""
        return Times(self.track, max(min(chosen, self.top), 0))

    def moved(self, where: str) -> Times:
        """Move by a step, to the minute before another death, or to the begin."""
        steps = {"earlier": -STEP, "later": STEP, "far_earlier": -FAR, "far_later": FAR, "begin": -self.top}
        if where in steps:
            return self.at(self.chosen + steps[where])
        places = [max(at - BEFORE, 0) for at, _ in self.deaths]
        if where == "next_death":
            return self.at(min((at for at in places if at > self.chosen), default=self.chosen))
        return self.at(max((at for at in places if at < self.chosen), default=self.chosen))

    def ticks(self, cells: int) -> str:
        """Return the hours below a track of this many cells, in UTC."""
        hours = next((hours for hours in (1, 2, 3, 4, 6) if cells * hours * _HOUR >= _LABEL * self.top), 12)
        line, step, end = "", hours * _HOUR, self.top - self.top * _LABEL // cells
        for at in range(-int(self.track.begin) % step, end, step):
            line = f"{line:<{round((cells - 1) * at / self.top)}}{self.moment(at):%H:%M}"
        return line

    def memory_lines(self, cells: int) -> list[TextLine]:
        """Draw a node's memory above a track of this many cells: the next victim's, else the fullest one."""
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

    def death_lines(self, most: int = _DEATHS) -> Iterator[TextLine]:
        """Yield the deaths around the knob, the next one after it marked."""
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
    """The track is read in a thread; enter takes the time under the knob."""

    def __init__(self, read: Callable[[], Track], past: PastTime | None) -> None:
        super().__init__()
        self._read, self._past = read, past
        self._times: Times | None = None

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
        times, past = Times(track, 0), self._past
        self._go(times.at(times.top if past is None else round(past.at.timestamp() - track.begin)))

    def _go(self, times: Times) -> None:
        self._times = times
        self.show_status(times.words)
        self.query_one(Slider).show(times.chosen, times.top, STEP, [at for at, _ in times.deaths])
        deaths = [TextLine(""), *times.death_lines()]
        has_room = self.app.size.height >= _DRAWN

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
