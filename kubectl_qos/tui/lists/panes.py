"""The panes around a list: nodes and namespaces next to it, the next death above it, why below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from kubectl_qos.analysis.deaths import DeathRow, NodeDeaths, without_far
from kubectl_qos.analysis.group_table import NodeRow, build_node_row
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.usage import ContainerKey, PodKey
from kubectl_qos.present.format import binary, escape, psi_text, rounded, shortened
from kubectl_qos.present.list_notes import no_usage_reason, own_memory_phrase
from kubectl_qos.present.next_death import foretold
from kubectl_qos.present.node_columns import memory_bar, memory_ticks
from kubectl_qos.present.output import NUMBER, Align, Column, column
from kubectl_qos.present.timeline import LINES, LIST_BELOW, LISTED, Line, timeline
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth
from kubectl_qos.tui.view import View, bar, group_name
from kubectl_qos.tui.view_model import PodGroup, ViewModel, namespaces_on
from kubectl_qos.tui.widgets.graph import CLASS_TOKENS
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import GAP, Layout, fitting_columns, measured
from kubectl_qos.tui.widgets.text_view import TextLine, TextView, style_of

if TYPE_CHECKING:
    from kubectl_qos.tui.shell import Shell

PaneColumn = Column[PodGroup]

_IMPORTANCE: Final = "name used pressure pods name classes"
_MIN_NAME: Final = 10
_MIN_WIDTH: Final = 45
_HUGE_WIDTH: Final = 37
SCROLLBAR: Final = 1


def _used_percent(group: PodGroup) -> str:
    return f"{'?':>4}" if group.percent is None else f"{group.percent_text:>4} {bar(group.percent)}"


_CLASSES: Final[PaneColumn] = column(
    "classes",
    lambda group: group.guaranteed,
    type=NUMBER,
    header=" G   B   E",
    cell=lambda group: f"{group.guaranteed:>2}  {group.burstable:>2}  {group.best_effort:>2}",
)


def _name_column(kind: str) -> PaneColumn:
    return column(
        "name", lambda group: group.key, header=kind.upper(), cell=lambda group: group_name(group.key, kind)
    )


NODE_COLUMNS: Final[tuple[PaneColumn, ...]] = (
    _name_column("node"),
    column("used", lambda group: group.percent or -1, type=NUMBER, align=Align.LEFT, cell=_used_percent),
    _CLASSES,
    column(
        "pressure",
        lambda group: len(group.bad_conditions),
        type=NUMBER,
        header="!",
        align=Align.LEFT,
        cell=lambda group: " ".join(f"!{word[:3]}" for word in group.bad_conditions),
    ),
)

NAMESPACE_COLUMNS: Final[tuple[PaneColumn, ...]] = (
    _name_column("namespace"),
    column("pods", lambda group: group.pods, type=NUMBER),
    _CLASSES,
    column(
        "used",
        lambda group: group.used or -1,
        type=NUMBER,
        width=6,
        cell=lambda group: rounded(group.used) if group.used is not None else "?" if group.pods else "-",
    ),
)


def group_layout(
    columns: Sequence[PaneColumn], groups: Sequence[PodGroup], now: datetime, available: int
) -> Layout[PodGroup]:
    """Return the columns of a pane that fit: the classes are left out first, then names are cut."""
    # The last column needs no gap.
    return fitting_columns(columns, _IMPORTANCE, {"name": _MIN_NAME}, groups, now, available + GAP)


def group_token(group: PodGroup, key: str) -> str:
    """Return the token of a cell's style."""
    if group.bad_conditions and key in {"name", "used", "pressure"}:
        return "error"
    if not group.pods:
        return "muted"
    if key == "used" and group.percent is not None and group.percent >= 90:
        return "warning"
    return ""


class Sidebar(Vertical):
    """Two tables; their cursors choose the node and the namespace whose pods are listed."""

    def compose(self) -> ComposeResult:
        for name, natural in (("nodes", "used"), ("namespaces", "name")):
            table = LineTable[PodGroup](
                natural=natural, key=lambda group: group.key, token=group_token, pinned=1, id=f"side-{name}"
            )
            table.border_title = name.capitalize()
            yield table

    @property
    def nodes(self) -> LineTable[PodGroup]:
        return self.query_one("#side-nodes", LineTable)

    @property
    def namespaces(self) -> LineTable[PodGroup]:
        return self.query_one("#side-namespaces", LineTable)

    def show(self, view_model: ViewModel, view: View, now: datetime) -> None:
        """Load both tables and put their cursors on the node and namespace of the view."""
        namespaces = namespaces_on(view_model, view.node, view.namespace)
        _load(self.nodes, NODE_COLUMNS, view_model.nodes, view.node, now)
        _load(self.namespaces, NAMESPACE_COLUMNS, namespaces, view.namespace, now)

    def fit(self, view_model: ViewModel | None, now: datetime) -> None:
        """Limit the width to what the nodes need, and give long names more of a huge screen.

        Without a view model there is no limit.
        """
        if view_model is None:
            self.styles.max_width = self.styles.min_width = None
            return
        whole = Layout(NODE_COLUMNS, measured(NODE_COLUMNS, view_model.nodes, now))
        with_name = whole.line_width - whole.by_key["classes"] - GAP
        is_huge = self.screen.has_class("-huge")
        self.styles.min_width = min(with_name + SCROLLBAR, _HUGE_WIDTH) if is_huge else None
        self.styles.max_width = max(whole.line_width + SCROLLBAR, _MIN_WIDTH)


def _load(
    table: LineTable[PodGroup],
    columns: Sequence[PaneColumn],
    groups: Sequence[PodGroup],
    selected: str | None,
    now: datetime,
) -> None:
    table.load(groups, partial(group_layout, columns), now)
    if not table.move_to(selected):
        table.action_first()


class ExplanationPanel(TextView):
    """The explanation of the row under the cursor. `…` in its last line says that the wheel shows more."""

    _top = 0

    def text_lines(self, width: int) -> Sequence[TextLine]:
        lines, room = super().text_lines(width), self.content_size.height
        self._top = max(min(self._top, len(lines) - room), 0)
        shown = lines[self._top : self._top + room] if room > 0 else lines
        if not 0 < room < len(lines) - self._top:
            return shown
        last = shown[-1]
        return [*shown[:-1], replace(last, text=with_more(last.text, width))]

    def turn(self, lines: int | None = None) -> None:
        """Scroll down by some lines, or to the first one."""
        top = 0 if lines is None else max(self._top + lines, 0)
        if top != self._top:
            self._top = top
            self.refresh()

    def on_mouse_scroll_down(self) -> None:
        self.turn(1)

    def on_mouse_scroll_up(self) -> None:
        self.turn(-1)


def with_more(text: str, width: int) -> str:
    """Return a line with `…` at its end, cut between words and not inside a short parenthesis."""
    if cell_len(text) > width - 2:
        text = set_cell_size(text, width - 1).rpartition(" ")[0] or set_cell_size(text, width - 2)
    if text.count("(") > text.count(")") and text.rfind(" (") > width // 2:
        text = text.rpartition(" (")[0]
    return f"{text.rstrip()} …"


_MIN_BAR: Final = 8
_LEAST_NAME: Final = 15
"""The cells that a name keeps in a line that is cut."""


class MemoryLine(Widget):
    """The memory of a node as a bar, with its thresholds below it if there is room for a second line."""

    def __init__(self) -> None:
        super().__init__()
        self._row: NodeRow | None = None

    def show(self, row: NodeRow | None) -> None:
        if row is not self._row:
            self._row = row
            self.refresh()

    def render(self) -> Content:
        row = self._row
        if row is None:
            return Content("")
        before = Content.styled(shortened(escape(row.name), self.content_size.width // 3), "bold")
        words = [Content.styled(f"  !{word}", "bold $error") for word in row.bad_conditions or ()]
        if row.capacity is None:
            unknown = Content.styled("  memory capacity unknown", "$secondary")
            return Content.assemble(before, unknown, *words)
        after = [Content(f"  {binary(row.capacity)}  ")]
        if row.memory.used_bytes is None:
            after.append(Content.styled("usage unknown", "$secondary"))
        else:
            after.append(Content(f"pods use {binary(row.memory.used_bytes)}{own_memory_phrase(row.own)}"))
        if (psi60 := row.psi.avg60) is not None:
            after.append(Content.styled(f"  PSI60 {psi_text(psi60)}", "$secondary" if psi60 < 1 else ""))
        after += words
        room = self.content_size.width - before.cell_length - sum(part.cell_length for part in after) - 2
        bar = memory_bar(row, room) if room >= _MIN_BAR else ()
        line = Content.assemble(
            before,
            "  ",
            *(
                Content.styled(part.text, "reverse " * part.is_letter + style_of(CLASS_TOKENS[part.qos]))
                for part in bar
            ),
            *after,
        )
        if self.content_size.height < 2 or not bar:
            return line
        ticks = " " * (before.cell_length + 2) + memory_ticks(row, room)
        return Content.assemble(line, "\n", Content.styled(ticks, "$secondary"))


class Timeline(TextView):
    """Deaths on an axis, or as a list if there is too little width."""

    _deaths: Sequence[NextDeath] = ()
    spans: Sequence[Line] = ()

    def show_deaths(
        self, deaths: Sequence[NextDeath], *, growth: Growth = NO_GROWTH, in_danger: bool = False
    ) -> None:
        """Show deaths, the nearest first, as `present.timeline.timeline` draws them; none takes no room."""

        def layout(width: int) -> list[TextLine]:
            drawn = timeline(deaths, width, growth=growth, in_danger=in_danger)
            self.spans = drawn if deaths else ()
            return [TextLine.of(*((span.text, span.style) for span in line)) for line in self.spans]

        self._deaths = deaths
        self.show(layout)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        height = LINES if width >= LIST_BELOW else LISTED + 1
        return height if self._deaths else 0

    def victim_at(self, x: int, y: int) -> PodKey | None:
        """Return the pod that a cell shows."""
        place = self.part_at(x, y)
        return self.spans[place[0]][place[1]].victim if place is not None else None


def in_one_line(text: str, width: int, rest: str = "") -> str:
    """Shorten a line to a width: leave out its last clauses, and the middle of its longest words, two names.

    If clauses are left out, `rest` says at its end where they are, if there is room.
    """
    words = (word for word in text.partition(", ")[0].split(" ") if "#" not in word)
    # A domain goes first.
    names = sorted(sorted(words, key=len, reverse=True)[:2], key=lambda name: "." not in name)
    spare, more = sum(max(len(name) - _LEAST_NAME, 0) for name in names), ""
    while cell_len(text + more) - spare > width and ", " in text:
        text, more = text.rpartition(", ")[0], " …"
    if more and rest and cell_len(f"{text}{more}  {rest}") <= width:
        more += f"  {rest}"
    for name in names:
        room = max(len(name) + width - cell_len(text + more), min(len(name), _LEAST_NAME))
        text = text.replace(name, shortened(name, room), 1)
    text += more
    return text if cell_len(text) <= width else with_more(text, width)


class OneLine(Static):
    """One line of text. If it is too long, a shorter text is shown, cut to the width; see in_one_line."""

    _shorter = _rest = ""

    def __init__(self, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, markup=False)

    def show(self, text: str, shorter: str = "", rest: str = "") -> None:
        if (text, shorter, rest) != (self.content, self._shorter, self._rest):
            self._shorter, self._rest = shorter, rest
            self.update(text, layout=False)

    def render(self) -> Content:
        text, width = str(self.content), self.content_size.width
        if self._shorter and cell_len(text) > width:
            text = self._shorter
        return Content(in_one_line(text, width, self._rest))


class NodePanel(Vertical):
    """The next death on a node, its memory, a fix, and the next death on other nodes.

    Its height does not depend on the data.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[ViewModel, str, str] | None = None
        self._suggested: dict[str, tuple[NodeDeaths, str]] = {}
        self._is_suggesting = False
        self.border_title = "Next death"

    def compose(self) -> ComposeResult:
        yield OneLine("headline")
        yield MemoryLine()
        yield Timeline()
        yield OneLine("fix")
        yield OneLine("elsewhere")

    def show(
        self, view_model: ViewModel | None, node: str, fix_key: str, elsewhere: str, explain: str = ""
    ) -> None:
        """Show a node, or hide if there is none. `elsewhere` is the line about other nodes.

        `fix_key` opens the fixes; "" if nothing can be changed. `explain` has the key that explains the
        pod of the next death, "" if none does.
        """
        self.query_one("#elsewhere", OneLine).show(elsewhere)
        self.set_class(view_model is None or not node, "-empty")
        if view_model is None:
            self._suggested = {}
        if view_model is None or not node:
            self._shown = None
            self.query_one(MemoryLine).show(None)
            self.query_one(Timeline).show_deaths(())
        elif self._shown is None or self._shown[0] is not view_model or self._shown[1:] != (node, explain):
            self._shown = view_model, node, explain
            self.query_one(MemoryLine).show(build_node_row(view_model.snapshot, node))
            node_deaths = view_model.deaths(node)
            growth = node_deaths.state.growth if node_deaths is not None else NO_GROWTH
            deaths = node_deaths.deaths if node_deaths is not None else ()
            in_danger = view_model.is_in_danger(node)
            rows = without_far([DeathRow(node, death, death.seconds) for death in deaths])
            near = [row.death for row in rows]
            self.query_one(Timeline).show_deaths(near, growth=growth, in_danger=in_danger)
            headline = self.query_one("#headline", OneLine)
            headline.set_class(in_danger, "-danger")
            none = f"{escape(node)}: no next death is known"
            none = none if view_model.snapshot.usage else no_usage_reason(view_model.snapshot)
            # The next line begins with the node.
            text, shorter = (foretold(deaths[0], node), foretold(deaths[0])) if deaths else (none, "")
            headline.show(text, shorter, explain)
        self._show_suggestion(fix_key)

    def _show_suggestion(self, fix_key: str) -> None:
        """Show the fix for the node as it was computed last; a thread computes it again after a change."""
        view_model, node, _ = self._shown or (None, "", "")
        deaths = view_model.deaths(node) if view_model is not None else None
        line = self.query_one("#fix", OneLine)
        if view_model is None or deaths is None or not fix_key:
            line.show("")
            return
        of_deaths, suggestion = self._suggested.get(node, (None, ""))
        is_current = of_deaths is not None and _first(of_deaths) == _first(deaths)
        line.show(f"{fix_key} fix  {suggestion}" if suggestion and is_current else "")
        if of_deaths is deaths:
            return
        snapshot, suggested = view_model.snapshot, self._suggested

        def find() -> tuple[str, dict[ContainerKey, int]]:
            from kubectl_qos.tui.screens.fix_dialog import suggested_line

            return suggested_line(snapshot, node)

        def take(answer: tuple[str, dict[ContainerKey, int]] | QosError) -> None:
            self._is_suggesting = False
            line, offers = ("", {}) if isinstance(answer, QosError) else answer
            suggested[node] = deaths, line
            cast("Shell", self.app).trends.offers.update(offers)
            self._show_suggestion(fix_key)

        def begin() -> None:
            if not self._is_suggesting:
                self._is_suggesting = True
                run_in_background(self, find, take)

        # Paint first: the search would slow it down. The call is lost if a dialog closes meanwhile.
        self.call_after_refresh(begin)


def _first(deaths: NodeDeaths) -> tuple[ContainerKey, str] | None:
    """Return the victim and the killer of the first death, for which a fix is suggested."""
    first = deaths.deaths[0] if deaths.deaths else None
    return ((first.key, first.container), first.mechanism) if first is not None else None
