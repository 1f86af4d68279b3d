"""The explanation of a pod, which follows updates, and screens with an object as YAML or with a log.

Threads build explanations and read events. A result is dropped if there is a newer request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Final

from msgspec import structs
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from kubectl_qos.analysis.group_table import NodeRow, build_node_row
from kubectl_qos.analysis.pod_facts import MOST_SCORE
from kubectl_qos.cluster.background import attempt, run_in_background
from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.kinds import WORKLOADS, Workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.explanation import Explanation, explain_pod, text_lines, with_fix
from kubectl_qos.present.format import age, escape
from kubectl_qos.present.next_death import ITS_DEATH
from kubectl_qos.present.output import Section, to_yaml
from kubectl_qos.present.pod_history import LOADING, error_section, events_section
from kubectl_qos.present.preview import cheapest_section
from kubectl_qos.qos.kills.evidence import OOM_KILLED
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.screens.base import BuiltInBackground, QosScreen
from kubectl_qos.tui.view import Detail, FollowStatus, pod_name
from kubectl_qos.tui.view_model import ViewModel, newest
from kubectl_qos.tui.widgets.graph import GRAPH_HEIGHT, LEGEND, node_graph, pod_graph
from kubectl_qos.tui.widgets.text_view import (
    TextLine,
    TextScroll,
    TextView,
    escape_lines,
    layout_lines,
    no_text,
    paragraphs,
    section_layout,
    stacked,
    wrapped,
    yaml_line,
)

NOTHING: Final = "it is empty"


class SourceTextScreen(QosScreen, group=BindingGroup.READ):
    """A text that a thread reads once; `file` is the suggested file name."""

    AUTO_FOCUS = "TextScroll"

    def __init__(self, subject: str, file: str, read: Callable[[], str], *, at_end: bool = False) -> None:
        super().__init__()
        self._subject, self._file = subject, file
        self._read = read
        self._at_end = at_end
        self._text: str | None = None

    def compose_content(self) -> ComposeResult:
        yield Static(Content(self._subject), id="subject")
        with TextScroll():
            yield TextView(layout_lines([TextLine("reading …", "muted")]))

    def on_mount(self) -> None:
        run_in_background(self, self._read, self._take)

    def _take(self, text: str | QosError) -> None:
        if isinstance(text, QosError):
            problem = escape_lines("! " + text.with_hint("\n"))
            shown = [TextLine(line, "wrong") for line in problem.split("\n")]
        else:
            self._text = text
            look = yaml_line if self._file.endswith(".yaml") else TextLine
            shown = [look(escape(line)) for line in text.splitlines()] or [TextLine(NOTHING, "muted")]
        self.query_one(TextView).show(layout_lines(shown))
        if self._at_end:
            self.call_after_refresh(self.query_one(TextScroll).action_last)

    def action_copy(self) -> None:
        if self._text is None:
            self.qos.warn("there is nothing to copy")
        else:
            self.qos.copy(self._text, self._subject)

    def action_save(self) -> None:
        text = self._text
        if text is None:
            self.qos.warn("there is nothing to save")
        else:
            self.qos.save_as(self._subject, self._file, lambda _: text)


def yaml_screen(source: Source, pod: Pod) -> SourceTextScreen:
    """Return the YAML of a pod or of a workload's template."""
    return SourceTextScreen(f"YAML of {pod_name(pod)}", f"{pod.name}.yaml", lambda: _yaml(source.raw(pod)))


def workload_screen(source: Source, workload: Workload, pod: Pod) -> SourceTextScreen:
    """Return the YAML of a workload, or that of its pod if its kind cannot be read."""
    if workload.kind not in WORKLOADS:
        return yaml_screen(source, pod)

    name = escape(f"{workload.kind.lower()} {workload.namespace}/{workload.name}")
    return SourceTextScreen(
        f"YAML of {name}", f"{workload.name}.yaml", lambda: _yaml(source.raw(source.find(*workload)))
    )


def node_screen(source: Source, name: str) -> SourceTextScreen:
    """Return the YAML of a node."""
    return SourceTextScreen(
        f"YAML of node {escape(name)}", f"{name}.yaml", lambda: _yaml(source.raw_node(name))
    )


def _yaml(raw: Mapping[str, Any]) -> str:
    """Format an object without the managed fields, which kubectl leaves out too."""
    metadata = {key: value for key, value in raw.get("metadata", {}).items() if key != "managedFields"}
    return to_yaml({key: metadata if key == "metadata" else value for key, value in raw.items()})


def log_screen(source: Source, pod: Pod, container: str = "") -> SourceTextScreen:
    """Return the log of a container that has died, by default one that was OOMKilled. Raises QosError."""
    deaths = [
        (status, end)
        for status in pod.status.every_container
        for end in status.ends[:1]
        if end.exit_code and container in {"", status.name}
    ]
    if not deaths:
        what = f"container {container} of {pod_name(pod)} has not" if container else ""
        what = what or f"no container of {pod_name(pod)} has"
        raise QosError(f"{what} died: there is no log of a death")
    status, end = max(deaths, key=lambda death: (death[1].reason == OOM_KILLED, death[1].finished_at or ""))
    # If the container has not restarted, its current log is that of the death.
    is_previous = status.state is None or status.state.terminated is None
    subject = (
        f"last lines of container {escape(status.name)} of {pod_name(pod)}, "
        f"{escape(end.reason or 'ended')} {age(end.finished_at, source.now())} ago"
    )

    read = partial(source.log, pod, status.name, is_previous=is_previous)
    return SourceTextScreen(subject, f"{pod.name}-{status.name}.log", read, at_end=True)


_Explained = tuple[Pod, Explanation, Section | None, NodeRow | None] | None
"""The pod, its explanation, the cheapest change of class or rank, and its node if that kills it first."""
TWO_COLUMNS: Final = 120
"""From this width on there are two columns."""
_LEFT: Final = frozenset({"Class", "Pressure"})
"""The sections of the left column, which is then about as long as the right one."""
_FOLDED: Final = frozenset({"cgroup", "Assumed"})
"""The sections that are folded at first."""
_MAX_BAR: Final = 60
_GRAPH_FROM: Final = 24
"""From this height of the terminal on there is a graph, with the fix in sight below it."""

_LoadedEvents = tuple[Sequence[Event] | QosError, datetime]
"""The events or the error, and when they were read, by the source's clock."""


class ExplainScreen(QosScreen, BuiltInBackground[_Explained], group=BindingGroup.EXPLAIN):
    """The explanation of a pod as it is now, with its events. A template, which only files have, is fixed."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [*QosScreen.HORIZONTAL_BREAKPOINTS, (TWO_COLUMNS, "-two")]  # noqa: RUF012

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__()
        self._view_model = self._newest = view_model
        self._pod = pod
        self._explanation = explain_pod(pod, view_model.snapshot, view_model.taken)
        self._cheapest: Section | None = None
        self._shown_summary: object = None
        self._node: NodeRow | None = None
        self._memory: tuple[object, ...] = ()
        self._replaced = self._gone = ""
        self._events: _LoadedEvents | None = None
        self._request = 0
        self._is_loading_events = False
        self._folds: dict[str, Collapsible] = {}

    def compose_content(self) -> ComposeResult:
        yield Static(Content(self._subject), id="subject")
        sections = self._folding()
        with TextScroll(can_focus=False):
            with Container(id="columns"):
                with Vertical(id="left"):
                    yield TextView(id="dies")
                    yield TextView(self._summary_layout, id="summary")
                    yield from self._new_folds(sections, "left")
                    yield TextView(id="cheapest")
                with Vertical(id="right"):
                    yield from self._new_folds(sections, "right")
            with Vertical(id="below"):
                yield from self._new_folds(sections, "below")
        self._fill(sections)

    def _new_folds(self, sections: Sequence[Section], place: str) -> Iterator[Collapsible]:
        return (self._new_fold(section) for section in sections if _place(section) == place)

    def _new_fold(self, section: Section) -> Collapsible:
        fold = Collapsible(section, folded=section.title in _FOLDED)
        self._folds[section.title] = fold
        return fold

    def on_mount(self) -> None:
        self.set_focus(self.query(CollapsibleTitle).first(), scroll_visible=False)  # keep the top in sight
        self.rebuild()
        if self._pod.kind == "Pod":
            self._load_events()
            self.watch(self.app, "view_model", self.follow)
            self.watch(self.app, "status", self._refreshed, init=False)

    def build(self, view_model: ViewModel) -> _Explained:
        """Explain the pod of the same name, None if it is gone. On a node of 500 pods it takes 20 ms."""
        pod = newest(view_model, self._pod)
        if pod is None:
            return None
        sampled = view_model.rows.sampled
        logs = self.qos.source.kernel_logs()
        explanation = explain_pod(pod, view_model.snapshot, view_model.taken, sampled, logs=logs)
        explanation = with_fix(explanation, view_model.snapshot)
        cheapest = cheapest_section(pod, explanation.facts.row, view_model.snapshot)
        deaths = view_model.known_deaths(pod.node_name)
        first = next((death for death in deaths if death.key == pod.key), None)
        is_of_node = first is not None and first.killer.is_node_wide
        node = build_node_row(view_model.snapshot, pod.node_name) if is_of_node else None
        return pod, explanation, cheapest, node

    def show_built(self, built: _Explained | QosError) -> None:
        """Show the pod as it is now, or as it was last if it is gone."""
        since = f"{self._view_model.taken:%H:%M:%S %Z}"
        if built is None:
            self._gone = self._gone or f", gone since {since}; last known state"
        elif isinstance(built, QosError):
            self._gone = f", last known state: {built}"
        else:
            before, self._gone = self._pod, ""
            self._pod, self._explanation, self._cheapest, self._node = built
            if self._pod.metadata.uid != before.metadata.uid:
                self._replaced = f", another pod of that name since {since}"
                self._events = None
                self._load_events()
        self._show()

    def action_edit(self) -> None:
        self.qos.edit(self._pod)

    def action_fix(self) -> None:
        from kubectl_qos.tui.screens.fix_dialog import list_fixes

        if self._pod.kind == "Pod" and self._pod.node_name:
            list_fixes(self.qos, self._view_model, "", [self._pod.key])
        else:
            self.qos.warn("no pod of it runs on a node")

    def action_tree(self) -> None:
        self.qos.open(Detail.TREE, self._pod)

    def action_yaml(self) -> None:
        self.qos.push_screen(yaml_screen(self.qos.source, self._pod))

    def action_logs(self) -> None:
        self.qos.show_log(self._pod)

    def action_copy(self) -> None:
        whole = structs.replace(self._explanation, subject=self._subject, sections=tuple(self._sections()))
        self.qos.copy("\n".join(text_lines(whole)), "the explanation")

    def action_next(self) -> None:
        self.focus_next(CollapsibleTitle)

    def action_previous(self) -> None:
        self.focus_previous(CollapsibleTitle)

    def action_fold(self) -> None:
        titles = list(self.query(CollapsibleTitle))
        folded = not all(title.folded for title in titles)
        for title in titles:
            title.folded = folded

    @property
    def _subject(self) -> str:
        return self._explanation.subject + self._replaced + self._gone

    def _refreshed(self, before: FollowStatus, status: FollowStatus) -> None:
        """Read the events again, unless the last request has no answer yet."""
        if status.loading and not before.loading and not self._is_loading_events:
            self._load_events()

    def _load_events(self) -> None:
        """Read the events: from a server in a thread, from files at once."""
        self._request += 1
        self._is_loading_events = True
        source = self.qos.source

        def work() -> _LoadedEvents:
            return attempt(partial(source.events, self._pod)), source.now()

        if source.is_live:
            run_in_background(self, work, partial(self._take_events, self._request))
            self._show()
        else:
            self._take_events(self._request, work())

    def _take_events(self, request: int, events: _LoadedEvents | QosError) -> None:
        if request == self._request and not isinstance(events, QosError):
            self._is_loading_events = False
            self._events = events
            self._show()

    def _sections(self) -> list[Section]:
        events = [self._events_section()] if self._pod.kind == "Pod" else []
        return [*self._explanation.sections, *events]

    def _folding(self) -> list[Section]:
        """Return the sections that can be folded: all but the next death."""
        return [section for section in self._sections() if section.title != ITS_DEATH]

    def _events_section(self) -> Section:
        if self._events is None:
            return LOADING
        events, when = self._events
        if isinstance(events, QosError):
            section = error_section(events)
        else:
            section = events_section(events, max(when, self._view_model.taken))
        if self._is_loading_events:
            return structs.replace(section, answer=LOADING.answer)
        if self.qos.source.is_live:
            section = structs.replace(section, answer=f"{section.answer}; read at {when:%H:%M:%S %Z}")
        return section

    def _show(self) -> None:
        self.query_one("#subject", Static).update(Content(self._subject))
        sections = self._folding()
        for title in self._folds.keys() - {section.title for section in sections}:
            self._folds.pop(title).remove()
        below: dict[str, Collapsible] = {}
        for section in reversed(sections):
            place = _place(section)
            if section.title not in self._folds:
                self.query_one(f"#{place}").mount(self._new_fold(section), before=below.get(place))
            below[place] = self._folds[section.title]
        self._fill(sections)
        first = self._explanation.sections[0]
        trends, key = self.qos.trends, self._pod.key
        self._memory = tuple(trends.of(key)), tuple(trends.times(key)), self._died(), self._node
        summary = first, self._explanation.summary, self._explanation.formula, self._cheapest, self._memory
        if summary != self._shown_summary:
            self._shown_summary = summary
            self._show_summary()

    def _show_summary(self) -> None:
        first = self._explanation.sections[0]
        dies = self.query_one("#dies", TextView)
        cheapest = self.query_one("#cheapest", TextView)
        dies.display = first.title == ITS_DEATH
        dies.border_title = first.title
        answer = paragraphs((first.answer, "answer"))
        graph = self._graph if self.app.size.height >= _GRAPH_FROM else no_text
        dies.show(stacked(answer, graph, section_layout(first, "")))
        self.query_one("#summary", TextView).show(self._summary_layout)
        if self._cheapest is not None:
            cheapest.border_title = self._cheapest.title
            cheapest.show(section_layout(self._cheapest, ""))
        cheapest.display = self._cheapest is not None

    def _died(self) -> tuple[datetime, ...]:
        """Return when containers of the pod were seen to die."""
        kills = self._newest.kills
        times = (parse_time(kill.time) for kill in kills if (kill.namespace, kill.pod) == self._pod.key)
        return tuple(sorted(filter(None, times)))

    def _graph(self, width: int) -> Sequence[TextLine]:
        """Draw the memory of the node if a killer of the node is the first, else that of the pod."""
        row, trends = self._explanation.facts.row, self.qos.trends
        if self._node is not None:
            lines = node_graph(self._node, trends.of_node(self._node.name), GRAPH_HEIGHT, width)
            legend = [((f"{escape(self._node.name)}: {LEGEND}", "muted"),)] if lines else []
            return [TextLine.of(*parts) for parts in (*lines, *legend)]
        limit = row.limit if row is not None else None
        key = self._pod.key
        return pod_graph(trends.of(key), limit, width, trends.times(key), self._died())

    def _summary_layout(self, width: int) -> list[TextLine]:
        explanation = self._explanation
        lines = [TextLine(text, "answer") for text in wrapped(explanation.summary, width)]
        return [*lines, *score_lines(explanation, width)] if explanation.summary else []

    def _fill(self, sections: Sequence[Section]) -> None:
        column = max(len(section.title) for section in sections)
        for section in sections:
            self._folds[section.title].show(section, column)


def _place(section: Section) -> str:
    """Return the place of a section; events are below the columns, as they need the whole width."""
    return "left" if section.title in _LEFT else "below" if section.title == LOADING.title else "right"


def score_lines(explanation: Explanation, width: int) -> list[TextLine]:
    """Return the parts of a score as a bar, in numbers, and as the formula."""
    score = explanation.facts.score
    if score is None:
        return []
    cells = max(min(width, _MAX_BAR), 16)
    # A negative oom_score_adj reduces the base.
    of_adj = (("░", score.base, "muted"), ("▒", score.adj, "accent"))
    if score.adj < 0:
        of_adj = ("░", 0, "muted"), ("▒", max(score.base + score.adj, 0), "accent")
    bar, end = [], 0.0
    for sign, part, token in (*of_adj, ("█", score.usage, "warning")):
        begin, end = end, end + max(part, 0)
        bar.append((sign * (round(cells * end / MOST_SCORE) - round(cells * begin / MOST_SCORE)), token))
    bar.append(("·" * (cells - sum(len(text) for text, _ in bar)), "muted"))
    numbers = (
        *([("░ ", "muted"), (f"{score.base} base  ", "")] if score.base else []),
        *(("▒ ", "accent"), (f"{score.adj:+d} oom_score_adj  ", "")),
        *(("█ ", "warning"), (f"{score.usage:+d} memory  ", "")),
        (f"= {score.score}", "answer"),
    )
    formula = wrapped(f"{escape(score.container)}: {explanation.formula}", width)
    return [
        TextLine(""),
        TextLine.of(*bar),
        TextLine.of(*numbers),
        *(TextLine(text, "muted") for text in formula),
    ]


class CollapsibleTitle(TextView, can_focus=True):
    """The title of a section; enter or a click folds and unfolds the section."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.FOLD)

    folded = reactive(False)

    def __init__(self, section: Section) -> None:
        super().__init__(self._layout)
        self.section, self._column = section, 0

    def show_section(self, section: Section, column: int) -> None:
        """Show the title, and after `column` cells the answer."""
        self.section, self._column = section, column
        self.show(self._layout)

    def _layout(self, width: int) -> list[TextLine]:
        section = self.section
        sign = ("▸" if self.folded else "▾") if section.lines else " "
        title = section.title.ljust(self._column)
        left = len(title) + 4
        answer, *more = wrapped(section.answer, width - left, hanging="")
        first = (f"{sign} ", ""), (title, "title"), ("  ", ""), (answer, "answer")
        return [
            TextLine.of(*first),
            *(TextLine(" " * left + text, "answer") for text in more),
        ]

    def watch_folded(self) -> None:
        self.show(self._layout)

    def action_fold(self) -> None:
        self.folded = not self.folded

    def on_click(self) -> None:
        self.action_fold()


class Collapsible(Vertical):
    """A section with its title. Both may change, and a folded section stays folded."""

    def __init__(self, section: Section, *, folded: bool = False) -> None:
        super().__init__()
        self.title = CollapsibleTitle(section)
        self.title.set_reactive(CollapsibleTitle.folded, folded)
        self.body = TextView(section_layout(section))

    def compose(self) -> ComposeResult:
        yield self.title
        yield self.body

    def on_mount(self) -> None:
        self.watch(self.title, "folded", self._show_body)

    def show(self, section: Section, column: int) -> None:
        """Show another version of the section; an equal text is not laid out again."""
        if section.lines != self.title.section.lines:
            self.body.show(section_layout(section))
        self.title.show_section(section, column)
        self._show_body()

    def _show_body(self) -> None:
        self.body.display = bool(self.title.section.lines) and not self.title.folded
