"""Every key of the help screen does what the help says; so do the footer and the palette.

A step of a tour goes to a place where an action is bound, and says what shows there before and after it.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rich.color import ColorSystem
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.widget import Widget
from textual.widgets import Input, Static

from kubectl_qos.analysis.pod_table import build_rows, is_at_risk
from kubectl_qos.config.state import UiState
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import ACTIONS, Action, BindingGroup, Keys, actions_in_group
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.base import ListTable
from kubectl_qos.tui.lists.panes import ExplanationPanel, Timeline
from kubectl_qos.tui.screens.base import Dialog, KeyFooter, QosScreen, TitleLine
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import Collapsible, CollapsibleTitle
from kubectl_qos.tui.shell import ContextSwitch
from kubectl_qos.tui.themes import ANSI, THEMES
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.table import GAP, GUTTER
from kubectl_qos.tui.widgets.text_view import TextScroll
from tests.tui.contrast import PROBE, Pair, illegible, painted
from tests.tui.sources import API, Run, ScriptedSource, demo, node_after_node, running, with_usage
from tests.tui.test_past import Store

Steps = Callable[[Run], Awaitable[None]]
See = Callable[[Run], Any]

ROWS = node_after_node(build_rows(demo(), Scope()).rows)
ALL = [row.name for row in ROWS]
FIRST, SECOND = ALL[:2]
SENT: Final[list[int]] = []
PATIENCE = 200
"""So many hundredths of a second threads may take."""
NOTES = ("a.yaml: document 2: not a list", "b.yaml: empty")
SIZE: Final = (140, 31)


@dataclass(frozen=True)
class Step:
    """One action on a tour.

    `come` leads to where it is heard. Then `see` differs from `after`, which may be made of what was seen
    before. It is `after` once `key` is pressed (its first key where that is empty), or `act` is done instead,
    and then `follow`.
    """

    action: str
    see: See
    after: Any
    come: Steps | None = None
    key: str = ""
    act: Callable[[Action], Steps] | None = None
    follow: Steps | None = None

    @property
    def pressed(self) -> str:
        """Its key, empty where it is done without."""
        return "" if self.act else self.key or ACTION[self.action].keys[0]


@dataclass(frozen=True)
class Tour:
    """Steps in one application."""

    steps: tuple[Step, ...]
    size: tuple[int, int] = SIZE


def each_key(action: str, see: See, *afters: Any, come: Steps | None = None) -> tuple[Step, ...]:
    """A step for each key of an action."""
    keys = ACTION[action].keys
    assert len(keys) == len(afters), action
    return tuple(
        Step(action, see, after, come if number == 0 else None, key)
        for number, (key, after) in enumerate(zip(keys, afters, strict=True))
    )


def keys(*pressed: str) -> Steps:
    return lambda pilot: pilot.press_each(*pressed)


def typed(*before: str, text: str) -> Steps:
    return both(keys(*before), lambda pilot: pilot.type(text), Run.listed)


def put(*before: str, text: str) -> Steps:
    return both(keys(*before), lambda pilot: pilot.paste(text))


async def written(pilot: Run) -> None:
    """As in a terminal; without one nothing is written."""
    pilot.qos._output.write(pilot.app.screen._compositor.render_full_update(), ColorSystem.TRUECOLOR)


def shown(text: str) -> Steps:
    """Wait until a text is on the screen."""
    return lambda pilot: pilot.seen(text)


def leave(action: str = "help.close", to: str = "MainScreen", key: str = "") -> Step:
    return Step(action, screen_name, to, key=key)


def moved(top: Callable[[Lines], int]) -> Callable[[Lines], Lines]:
    return lambda was: was._replace(top=min(max(top(was), 0), was.most))


def view(pilot: Run) -> View:
    return pilot.main.view


def cursor(pilot: Run) -> int:
    return pilot.main.table.cursor


screen_name: See = attrgetter("screen_name")
names: See = attrgetter("names")


def prompting(pilot: Run) -> bool:
    return pilot.main.query_one(Prompt).display


def freshness(pilot: Run) -> str:
    """How fresh what is shown is, as the first line ends."""
    return pilot.text.splitlines()[0].split()[-1]


async def manifest(pilot: Run) -> None:
    """Wait for the manifest behind the patch."""
    await pilot.until(lambda: getattr(pilot.app.screen, "_manifest", None) is not None)


def left(pilot: Run) -> bool:
    return pilot.app._exit


def order(pilot: Run) -> tuple[tuple[str, bool], list[str]]:
    return pilot.main.table.sorted_by, pilot.names


def in_list(pilot: Run) -> tuple[str, str, str]:
    """The place and the kind that the title names, and what has the focus."""
    parts = str(pilot.main.table.border_title).split("  ")
    return parts[0], parts[1].split(",")[0].split()[-1], focus(pilot)


def listing(action: str, where: str, kind: ListKind) -> Step:
    return Step(action, in_list, (where, str(kind), kind.value))


def text_of(selector: str) -> See:
    """What is written in a line of the screen."""
    return lambda pilot: " ".join(
        str(one.render()) for one in pilot.app.screen.query(selector).results(Static)
    )


def copied_from(text: str) -> See:
    """Whether what was copied begins with a text."""
    return lambda pilot: pilot.app.clipboard.startswith(text)


def saved(name: str, *texts: str) -> See:
    """Whether a file has these texts, None where there is no such file."""
    return lambda _: all(text in Path(name).read_text() for text in texts) if Path(name).exists() else None


def both(*several: Steps) -> Steps:
    async def steps(pilot: Run) -> None:
        for one in several:
            await one(pilot)

    return steps


def together(*seen: See) -> See:
    return lambda pilot: tuple(one(pilot) for one in seen)


def palette(pilot: Run) -> bool:
    """Whether the palette is open and takes what is typed."""
    return pilot.screen_name == "Palette" and isinstance(pilot.app.focused, Input)


def subject(pilot: Run) -> str:
    """Which pod or node the screen is about."""
    text = text_of("#subject")(pilot)
    return next((name for name in (API_POD, SECOND_POD, "node worker-2") if name in text), "")


def columns(pilot: Run) -> list[str]:
    return [column.key for column in pilot.main.table.columns.columns]


def is_wide(pilot: Run) -> bool:
    """Whether columns that do not fit are shown, and no panes next to them."""
    return {*FITTING, "node", "restarts"} <= {*columns(pilot)} and not pilot.main.side.display


def focus(pilot: Run) -> str:
    """Where keys go: the widget by its id, else by its type."""
    focused = pilot.app.focused
    return (focused.id or type(focused).__name__) if focused is not None else ""


def table(pilot: Run) -> LineTable[Any]:
    """The table of the screen; of the main screen the list."""
    return pilot.main.table if pilot.screen_name == "MainScreen" else pilot.app.screen.query_one(LineTable)


def at(pilot: Run) -> tuple[int, bool]:
    """The place of the cursor, and whether its row is in sight with the sign of the cursor."""
    found = table(pilot)
    y = found._lines.first(found.cursor) + 1 - found.scroll_offset.y
    in_sight = 0 < y < found.scrollable_content_region.height
    return found.cursor, in_sight and found.render_line(y).text.startswith(">")


def marked(pilot: Run) -> tuple[list[str], int]:
    """The pods whose lines bear the sign of a mark, and the place of the cursor."""
    found = pilot.main.table
    lines = [found.render_line(y).text for y in range(1, found.content_size.height)]
    name = [column.key for column in found.columns.columns].index("pod")
    return [line[2:].split()[name] for line in lines if line[1:2] == "*"], found.cursor


def copied(pilot: Run) -> list[str]:
    """The names of the pods that were copied, below the header."""
    lines = [line.split() for line in pilot.app.clipboard.splitlines()]
    return [line[lines[0].index("POD")] for line in lines]


def prompt(pilot: Run) -> tuple[bool, str, str]:
    """Whether the line is open, its sign, and its text."""
    found = pilot.main.query_one(Prompt)
    return found.display, found._sign, found.query_one("#line", Input).value


def section(pilot: Run) -> int | None:
    """Which of the sections has the focus."""
    titles = list(pilot.app.screen.query(CollapsibleTitle))
    return next((number for number, one in enumerate(titles) if one.has_focus), None)


def folded(pilot: Run) -> list[bool]:
    """Of each section that has a text, whether the text is hidden."""
    found = []
    for title in pilot.app.screen.query(CollapsibleTitle):
        if title.section.lines:
            assert isinstance(title.parent, Collapsible)
            found.append(not title.parent.body.display)
            assert str(title.render())[0] == ("▸" if found[-1] else "▾")
    return found


def huge_pages(pilot: Run) -> bool:
    """Whether the tree has limits of huge pages."""
    return any("hugetlb" in row.file for row in table(pilot).rows)


def folded_pods(pilot: Run) -> int:
    """How many pods of the tree are folded: their containers are not there."""
    paths = {row.directory.path for row in table(pilot).rows}
    pods = {row.directory.path for row in table(pilot).rows if row.content.count("/")}
    return sum(not any(path.startswith(f"{pod}/") for path in paths) for pod in pods)


def fields(pilot: Run) -> list[str]:
    """Requests and limits of the pod, line by line."""
    found = next(one for one in pilot.app.screen_stack if isinstance(one, EditScreen))
    return [field.value for field in found.form.fields]


def field(pilot: Run) -> str:
    """Which of the fields has the focus."""
    return str(getattr(pilot.app.focused, "name_in_spec", ""))


def strategy(pilot: Run) -> str:
    """Which strategy bears the sign of the chosen one."""
    lines = [line for line in pilot.text.splitlines() if line.startswith(" > ")]
    return lines[0][3:].partition("  ")[0] if lines else ""


def theme(pilot: Run) -> str:
    """The theme whose ground is painted."""
    ground = pilot.app.screen.styles.background.hex.lower()
    return next((theme.name for theme in THEMES if (theme.background or "").lower() == ground), ANSI.name)


def said(*wanted: str) -> See:
    """Which of these texts are on the screen."""
    return lambda pilot: [text for text in wanted if text in pilot.words]


SECOND_POD = "batch/crunch-x2k9f"
API_POD = f"shop/{API}"
AT_RISK = [row.name for row in ROWS if is_at_risk(row)]
DATABASES = ["db-0", "db-1", "db-2"]
FOLDED: Final = [False, False, True, False, False, False, True]
"""Of an explanation at first: cgroup and what is assumed."""

ACTION = {action.name: action for action in ACTIONS}
PAGE: Final = 9
"""So many rows of a list are in sight."""


class Lines(NamedTuple):
    """How far a text is scrolled, how far it can be, and how many of its lines are in sight."""

    top: int
    most: int
    page: int


def scrolled(pilot: Run) -> Lines:
    scroll = pilot.app.screen.query_one(TextScroll)
    height = scroll.scrollable_content_region.height
    return Lines(int(scroll.scroll_offset.y), int(scroll.max_scroll_y), height)


async def change(pilot: Run) -> None:
    """The fields of the first pod, one of them changed."""
    await keys("escape", "escape", "escape", "g", "e")(pilot)
    await put(text="1Gi")(pilot)


async def rows(pilot: Run) -> None:
    """Wait for the rows of the screen's table."""
    await pilot.until(lambda: bool(table(pilot).rows))


compared = put("u", text="cgroupVersion=1")


def app() -> QosApp:
    """A cluster that answers otherwise when it is requested again, and a person who was here before."""
    source = ScriptedSource(demo(), with_usage(demo(), "crunch-", 3 << 30))
    source.title = "prod"
    return QosApp(
        source,
        Scope(),
        notes=NOTES,
        state=UiState(filters=("older", "newer"), places=("ns shop",)),
        contexts=ContextSwitch(lambda: ("prod", "test"), lambda _: source, lambda _: Store()),
    )


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has jobs, and hears of signals instead of us."""
    SENT.clear()
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)
    monkeypatch.setattr("textual.app.os.kill", lambda _, number: SENT.append(number))


async def look_until(pilot: Run, see: See, wanted: Any) -> None:
    """Look until what is wanted is seen; what comes from threads takes a moment."""
    for _ in range(PATIENCE):
        if see(pilot) == wanted:
            break
        await pilot.pause(0.01)
    assert see(pilot) == wanted


def by_footer(action: Action) -> Steps:
    async def steps(pilot: Run) -> None:
        ((place, _),) = in_footer(pilot, action)
        await pilot.click(KeyFooter, offset=(place, 0))
        await pilot.pause()

    return steps


def in_footer(pilot: Run, action: Action) -> list[tuple[int, str]]:
    """A cell of the action's key, and what is said there of it."""
    return [
        (place + 1, key.binding.description)
        for place, _, key in pilot.app.screen.query_one(KeyFooter).places()
        if key.binding.action.endswith(action.verb)
    ]


def by_palette(action: Action) -> Steps:
    async def steps(pilot: Run) -> None:
        await pilot.keys("ctrl+p")
        assert palette(pilot)
        await put(text=action.label)(pilot)
        rows = [(row.name, row.key, row.help) for row in table(pilot).rows]
        place = rows.index((action.label, Keys().first(action.name), action.help))
        await pilot.keys(*["down"] * place)
        line = table(pilot).render_line(at(pilot)[0] + HEADER).text
        assert line.split()[: 2 + action.label.count(" ")] == [">", *action.label.split()]
        assert f"  {Keys().first(action.name)}  " in line
        await pilot.keys("enter")

    return steps


def screen_and(*others: See) -> See:
    return together(screen_name, *others)


def scrolls(come: Steps) -> tuple[Step, ...]:
    """What every key of texts does to one that is longer than the screen."""
    return (
        *each_key("text.down", scrolled, *[moved(lambda was: was.top + 1)] * 2, come=come),
        *each_key("text.up", scrolled, *[moved(lambda was: was.top - 1)] * 2),
        *each_key("text.page_down", scrolled, *[moved(lambda was: was.top + was.page)] * 2),
        *each_key("text.page_up", scrolled, *[moved(lambda was: was.top - was.page)] * 2),
        Step("text.last", scrolled, moved(lambda was: was.most)),
        Step("text.first", scrolled, moved(lambda _: 0)),
        Step("text.last", scrolled, moved(lambda was: was.most), key="G"),
        Step("text.first", scrolled, moved(lambda _: 0), key="g"),
    )


PAGES: Final = (("page_down", lambda was: was.top + was.page), ("page_up", lambda _: 0))


def pages(group: str, come: Steps) -> tuple[Step, ...]:
    """A page down and up again, by each key."""
    return tuple(
        Step(f"{group}.{verb}", scrolled, moved(top), come if number + place == 0 else None, key)
        for number in range(len(ACTION[f"{group}.page_down"].keys))
        for place, (verb, top) in enumerate(PAGES)
        for key in ACTION[f"{group}.{verb}"].keys[number : number + 1]
    )


FITTING = ["rank", "namespace", "pod", "qos", "oom_score_adj", "oom_score", "memory"]
FITTING += ["frees", "flags"]
LAST = len(ALL) - 1
BY_EVICTION = [
    row.name for row in node_after_node(sorted(ROWS, key=lambda row: row.eviction_rank or len(ROWS)))
]
CONTAINERS_OF_SECOND = View(ListKind.CONTAINERS, "worker-2", "batch", pod=("batch", "crunch-x2k9f"))
ON_WORKER_2 = View(node="worker-2")
THEME_NAMES = [theme.name for theme in THEMES]
EVERYWHERE: Final = "all nodes / all namespaces"
ENTER = keys("enter")
OWN_TESTS: Final = {
    BindingGroup.APPLY: "apply_screen",
    BindingGroup.PROGRESS: "apply_screen",
    BindingGroup.EDIT: "edit_screen",
    BindingGroup.NUMBER: "edit_screen",
    BindingGroup.PAST: "past",
    BindingGroup.CONFIRM: "edit_screen",
    BindingGroup.PATCH: "edit_screen",
    BindingGroup.UNDO: "undo_screen",
    BindingGroup.SIMULATION: "simulation_screen",
    BindingGroup.KILLS: "kills_screen",
    BindingGroup.COLUMNS: "search_screens",
    BindingGroup.SELECT: "context_switch",
}
"""The test module in which the keys of a screen are pressed, if not in this one."""
SUBJECT = screen_and(subject)
FOCUS = screen_and(focus)
SCREENS: Final = {
    "main.explain": ("ExplainScreen", SECOND_POD, "explain.back"),
    "main.edit": ("EditScreen", SECOND_POD, "edit.back"),
    "main.tree": ("TreeScreen", "node worker-2", "tree.back"),
    "main.compare": ("CompareScreen", SECOND_POD, "compare.back"),
    "main.simulate": ("SimulationScreen", "node worker-2", "simulation.back"),
}
HELP = screen_and(said("In a list (here)"))
IN_HELP: Final = ("HelpScreen", ["In a list (here)"])

TOURS: Final[dict[str, Tour]] = {}


def tour(name: str, *steps: Step, size: tuple[int, int] = SIZE) -> None:
    TOURS[name] = Tour(steps, size)


tour(
    "screens",
    *(
        step
        for action, (name, about, back) in SCREENS.items()
        for step in (
            Step(action, SUBJECT, (name, about), keys("g", "j")),
            Step(back, screen_and(cursor), ("MainScreen", 1)),
        )
    ),
    Step("main.fix", screen_name, "FixDialog"),
    Step("app.help", screen_name, "HelpScreen"),
    leave("guide.close", "FixDialog"),
    leave("select.leave", "MainScreen"),
    Step("main.kills", screen_name, "KillsScreen"),
    leave("kills.back"),
    Step("app.undo", screen_name, "UndoScreen"),
    leave("undo.back"),
)

tour(
    "lists",
    listing("main.list_clusters", "clusters", ListKind.CLUSTERS),
    listing("main.list_nodes", "cluster", ListKind.NODES),
    listing("main.list_namespaces", "namespaces", ListKind.NAMESPACES),
    listing("main.list_workloads", EVERYWHERE, ListKind.WORKLOADS),
    listing("main.list_containers", EVERYWHERE, ListKind.CONTAINERS),
    listing("main.list_deaths", EVERYWHERE, ListKind.DEATHS),
    listing("main.list_pods", EVERYWHERE, ListKind.PODS),
    Step("main.next_pane", focus, "side-nodes"),
    Step("main.back", focus, "pods"),
    Step("main.previous_pane", focus, "side-namespaces"),
    Step("main.back", focus, "pods"),
    Step(
        "main.nearest",
        together(view, cursor),
        (View(node="worker-2"), 7),
        follow=shown("worker-2 / all namespaces"),
    ),
    Step("main.back", view, View()),
    Step("main.at_risk", names, AT_RISK),
    Step("main.at_risk", names, ALL),
    Step("main.back", names, ALL, keys("z")),
    Step("main.wide", is_wide, True),
    Step("main.wide", columns, FITTING),
    Step("main.mark", marked, ([SECOND], 2), keys("j")),
    Step("main.mark", marked, ([], 2), keys("k")),
    Step("main.copy", copied, ["POD", SECOND], keys("k")),
    Step("main.copy", copied, ["POD", FIRST, SECOND], keys("g", "space", "space")),
    Step("main.back", marked, ([], 2)),
    Step(
        "main.export",
        saved("pods.csv", *DATABASES),
        True,
        both(typed("slash", text="db-"), keys("enter")),
        follow=ENTER,
    ),
    Step("main.back", names, ALL),
    Step("main.containers", view, CONTAINERS_OF_SECOND, keys("g", "j")),
    Step("main.back", view, View()),
    Step("main.eviction", names, BY_EVICTION),
    Step("main.eviction", names, ALL),
    Step("main.sort", lambda pilot: order(pilot)[0], ("namespace", False)),
    Step("main.sort", order, (("pod", False), sorted(ALL))),
    Step("main.reverse", order, (("pod", True), sorted(ALL, reverse=True))),
    Step("main.sort", lambda pilot: order(pilot)[0], ("node", False), act=by_footer),
    Step("main.wide", is_wide, True, act=by_palette),
)

tour(
    "tables",
    *each_key("table.down", at, (1, True), (2, True)),
    *each_key("table.up", at, (1, True), (0, True)),
    *each_key("table.page_down", at, (PAGE, True), (2 * PAGE, True)),
    *each_key("table.page_up", at, (PAGE, True), (0, True)),
    Step("table.last", at, (LAST, True)),
    Step("table.first", at, (0, True)),
    Step("table.last", at, (LAST, True), key="G"),
    Step("table.first", at, (0, True), key="g"),
    Step("table.right", lambda pilot: int(table(pilot).scroll_offset.x), 5, keys("w")),
    Step("table.left", lambda pilot: int(table(pilot).scroll_offset.x), 0),
    Step("table.down", at, (1, True), keys("w", "5")),
    Step("table.select", SUBJECT, ("ExplainScreen", API_POD), keys("g")),
    leave("explain.back"),
    Step("table.select", SUBJECT, ("ExplainScreen", SECOND_POD), keys("4", "g", "j")),
    leave("explain.back"),
    Step("table.select", view, View(node="worker-2"), keys("1")),
    Step("table.select", view, View(namespace="shop"), keys("2", "g")),
    Step(
        "table.select", view, View(workload=Workload("Deployment", "shop", "api")), keys("escape", "3", "g")
    ),
    Step("table.last", at, (3, True), keys("escape", "1", "g")),
    Step(
        "table.select",
        together(focus, view),
        ("pods", ON_WORKER_2),
        keys("escape", "escape", "4", "tab", "g", "j"),
    ),
    Step("table.select", focus, "pods", keys("shift+tab", "j")),
)

tour(
    "prompt",
    Step("main.filter", together(prompt, focus), ((True, "/", ""), "line")),
    Step("prompt.complete", prompt, (True, "/", "rank:"), typed(text="r")),
    Step("prompt.complete", prompt, (True, "/", "rss:")),
    Step("prompt.leave", together(prompting, focus), (False, "pods")),
    Step("prompt.earlier", prompt, (True, "/", "newer"), typed("slash", text="x")),
    Step("prompt.earlier", prompt, (True, "/", "older")),
    Step("prompt.later", prompt, (True, "/", "newer")),
    Step("prompt.later", prompt, (True, "/", "x")),
    Step(
        "prompt.leave",
        together(prompting, names, focus),
        (False, ALL, "pods"),
        put(text="db-"),
        act=by_footer,
    ),
    Step("main.go_to", together(prompt, focus), ((True, ":", ""), "line")),
    Step("prompt.earlier", prompt, (True, ":", "ns shop")),
    Step("prompt.complete", prompt, (True, ":", "ns sandboxed"), put(text="ns s")),
    Step("prompt.leave", together(prompting, focus), (False, "pods")),
)

tour(
    "explain",
    Step("main.explain", SUBJECT, ("ExplainScreen", API_POD)),
    Step("explain.next", section, 1),
    Step("fold.fold", folded, [False, True, True, *[False] * 3, True]),
    Step("fold.fold", folded, [False, False, True, *[False] * 3, True]),
    Step("explain.fold", folded, [True] * 7),
    Step("fold.fold", folded, [True, False, *[True] * 5]),
    Step("fold.fold", folded, [True] * 7),
    Step("explain.next", section, 2),
    Step("explain.previous", section, 1),
    Step("explain.copy", copied_from("pod shop/api-7d9c5b6f8-x2mzq on worker-2"), after=True),
    Step("explain.tree", screen_name, "TreeScreen"),
    leave("tree.back", "ExplainScreen"),
    Step("explain.fix", screen_name, "FixDialog"),
    leave("select.leave", "ExplainScreen"),
    Step("explain.edit", SUBJECT, ("EditScreen", API_POD)),
    leave("edit.back", "ExplainScreen"),
    Step("explain.fold", folded, [False] * 7, act=by_palette),
)

tour(
    "tree and compare",
    Step(
        "tree.copy",
        copied_from("node worker-2, kubelet 1.36, cgroup v2, systemd driver"),
        after=True,
        come=keys("v"),
    ),
    Step("tree.fold", lambda pilot: len(table(pilot).rows), lambda was: was - 9),
    Step("tree.fold", lambda pilot: len(table(pilot).rows), lambda was: was + 9),
    Step("tree.everything", huge_pages, after=True),
    Step("tree.everything", huge_pages, after=False),
    Step("tree.fold_all", folded_pods, 0),
    Step("tree.fold_all", folded_pods, 17),
    Step("tree.search", screen_and(focus), ("TreeScreen", "search")),
    Step("tree.back", screen_and(focus), ("TreeScreen", "LineTable")),
    Step("tree.notes", screen_name, "TextScreen"),
    leave(to="TreeScreen"),
    Step("tree.export", saved("worker-2-cgroups.txt"), after=True, follow=ENTER),
    leave("tree.back"),
    Step(
        "compare.copy", copied_from("node worker-2, kubelet 1.36, cgroupVersion=1"), after=True, come=compared
    ),
)

tour(
    "texts",
    *scrolls(both(keys("y"), shown("apiVersion"))),
    leave("read.back"),
    *each_key("guide.down", scrolled, moved(lambda was: was.top + 1), come=keys("question_mark")),
    *each_key("guide.up", scrolled, moved(lambda was: was.top - 1)),
    *(
        step
        for down, up in zip(ACTION["guide.page_down"].keys, ACTION["guide.page_up"].keys, strict=True)
        for step in (
            Step("guide.page_down", scrolled, moved(lambda was: was.top + was.page), key=down),
            Step("guide.page_up", scrolled, moved(lambda _: 0), key=up),
        )
    ),
    leave("guide.close"),
    Step("text.last", scrolled, moved(lambda was: was.most), keys("d")),
    leave("explain.back"),
    *pages("compare", compared),
    leave("compare.back"),
    size=(80, 16),
)

tour(
    "dialogs",
    Step("main.find", FOCUS, ("Finder", "Input")),
    *each_key("search.below", at, (1, True), (2, True)),
    *each_key("search.above", at, (1, True), (0, True)),
    Step("search.leave", screen_and(view), ("MainScreen", View())),
    Step("app.command_palette", palette, after=True),
    *each_key("search.below", at, (1, True), (2, True)),
    *each_key("search.above", at, (1, True), (0, True)),
    Step("search.leave", screen_and(view), ("MainScreen", View()), typed(text="risk")),
    Step("main.columns", FOCUS, ("ColumnsScreen", "LineTable")),
    leave("columns.leave"),
    Step("save.leave", screen_and(saved("pods.csv")), ("MainScreen", None), keys("x")),
    *(
        step
        for key in ACTION["help.close"].keys
        for step in (
            Step("main.notes", screen_and(said(NOTES[1])), ("TextScreen", [NOTES[1]])),
            Step("help.close", FOCUS, ("MainScreen", "pods"), key=key),
        )
    ),
    *(
        step
        for number, key in enumerate(ACTION["guide.close"].keys)
        for step in (
            Step("app.help", HELP, IN_HELP, key=ACTION["app.help"].keys[number % 2]),
            Step("guide.close", FOCUS, ("MainScreen", "pods"), key=key),
        )
    ),
    Step("main.past", screen_name, "TimeSlider"),
    leave("past.leave"),
    Step("main.menu", FOCUS, ("Menu", "LineTable")),
    leave("select.leave"),
)

SORTED: Final = {
    "name": "pod",
    "class": "qos",
    "score": "oom_score",
    "adj": "oom_score_adj",
    "limit": "limit_percent",
    **{word: word for word in ("namespace", "node", "memory", "request", "restarts", "priority", "age")},
    "risk": "risk",
    "rank": "rank",
}
"""What each key sorts pods by, whether its column is shown or not."""

tour(
    "sorting",
    *(
        Step(f"main.sort_by_{word}", lambda pilot: order(pilot)[0], (key, False))
        for word, key in SORTED.items()
    ),
    Step("main.sort_by_rank", lambda pilot: order(pilot)[0], ("rank", True)),
    Step("main.ages", said("3d", "2026-11-17T12:00:00Z"), ["2026-11-17T12:00:00Z"], come=keys("w", "R")),
    size=(330, 31),
)

OWNER: Final = Workload("Deployment", "shop", "api")

tour(
    "objects",
    Step("main.owner", lambda pilot: getattr(pilot.main.table.row, "key", None), OWNER),
    Step(
        "main.yaml", said("YAML of deployment shop/api", "kind: Deployment"), ["YAML of deployment shop/api"]
    ),
    leave("read.back", key="q"),
    Step(
        "main.yaml",
        said(f"YAML of pod {API_POD}", "kind: Pod"),
        [f"YAML of pod {API_POD}", "kind: Pod"],
        keys("left_square_bracket"),
    ),
    Step("read.copy", copied_from("kind: Pod"), after=True),
    Step("read.save", saved(f"{API}.yaml", "kind: Pod"), after=True, follow=ENTER),
    leave("read.back"),
    Step("main.logs", said("! prod has no logs of containers"), ["! prod has no logs of containers"]),
    leave("read.back"),
    Step("explain.yaml", screen_name, "SourceTextScreen", keys("d")),
    leave("read.back", "ExplainScreen"),
    Step("explain.logs", screen_name, "SourceTextScreen"),
    leave("read.back", "ExplainScreen"),
    leave("explain.back", key="q"),
    Step("tree.back", screen_name, "MainScreen", keys("v"), "q"),
    size=(190, 31),
)

tour(
    "everywhere",
    Step(
        "app.save_screenshot",
        saved("kubectl-qos.svg", FIRST, SECOND, "RANK", "explain"),
        after=True,
        follow=ENTER,
    ),
    *each_key(
        "app.previous",
        together(view, cursor),
        (View(ListKind.NODES), 1),
        (View(), 0),
        come=keys("1", "j", "enter"),
    ),
    *each_key("app.next", view, View(ListKind.NODES), View(node="worker-1")),
    Step("app.previous", screen_name, "MainScreen", keys("d")),
    Step("app.next", screen_name, "ExplainScreen"),
    Step("app.command_palette", palette, after=True),
    leave("search.leave", "ExplainScreen"),
    Step("app.command_palette", palette, after=True, come=keys("e")),
    leave("search.leave", "EditScreen"),
    Step("app.refresh", lambda pilot: len(pilot.source.requested), 2, keys("escape", "escape")),
    Step("app.redraw", lambda pilot: len(pilot.qos._output._lines), 0, written),
    Step("app.pause", freshness, "paused"),
    Step("app.pause", freshness, "live"),
    Step("app.suspend", lambda _: SENT, [signal.SIGTSTP]),
    Step("app.suspend", lambda _: SENT, [signal.SIGTSTP] * 2, keys("slash", "a")),
    *(Step("app.theme", theme, name, keys("escape")) for name in THEME_NAMES[1:3]),
    Step("app.quit", left, after=True),
)

for key in ACTION["app.interrupt"].keys:
    tour(f"leaving the prompt by {key}", Step("app.interrupt", left, True, keys("slash", "a"), key))


async def take(pilot: Run, step: Step) -> None:
    """Carry out a step: nothing but what it says leads to what is seen after it."""
    action = ACTION[step.action]
    if step.come is not None:
        await step.come(pilot)
    before = step.see(pilot)
    after = step.after(before) if callable(step.after) else step.after
    assert before != after
    if action.footer and isinstance(pilot.app.screen, Dialog):
        assert f"{Keys().first(action.name)} {action.label}" in pilot.text
    elif action.footer:
        assert [label for _, label in in_footer(pilot, action)] == [action.label]
    screen = pilot.app.screen
    if isinstance(screen, QosScreen) and action.palette and action.group in {BindingGroup.APP, screen.group}:
        commands = pilot.qos._commands(screen)
        assert (action.label, Keys().first(action.name), action.help) in {
            (one.name, one.key, one.help) for one in commands
        }
    await (step.act(action)(pilot) if step.act else pilot.keys(step.pressed))
    if step.follow is not None:
        await step.follow(pilot)
    await look_until(pilot, step.see, after)


def test_every_key_of_every_action_is_pressed() -> None:
    """On a tour, or in the test of its screen; test_actions has what all of them are bound to."""
    steps = [step for tour in TOURS.values() for step in tour.steps]
    pressed = {(step.action, step.pressed) for step in steps if step.pressed}
    wanted = {
        (action.name, key) for action in ACTIONS for key in action.keys if action.group not in OWN_TESTS
    }
    assert wanted <= pressed
    for group, name in OWN_TESTS.items():
        text = Path(__file__).with_name(f"test_{name}.py").read_text(encoding="utf-8")
        for action in actions_in_group(group):
            assert any(f'"{key}"' in text for key in action.keys), action.name


@pytest.mark.parametrize("name", TOURS)
async def test_every_key_does_what_is_said_of_it(name: str) -> None:
    """And all that is seen on the way can be read in every theme."""
    tour = TOURS[name]
    pairs: dict[Pair, str] = {}
    async with running(app(), size=tour.size) as pilot:
        await pilot.listed()
        if all(step.action != "app.theme" for step in tour.steps):
            pilot.app.register_theme(PROBE)
            pilot.app.theme = PROBE.name
        for number, step in enumerate(tour.steps, start=1):
            try:
                await take(pilot, step)
                if pilot.app.theme == PROBE.name and pilot.app.is_running:
                    pairs |= painted(pilot.app.screen)
            except Exception as error:
                error.add_note(f"step {number} of the tour {name}: {step.action} {step.pressed}")
                raise
    assert illegible(pairs) == []


WHEEL: Final = 2
"""So many lines a notch of the wheel scrolls."""


async def test_lists_and_panes_are_clicked() -> None:
    async with running(app(), size=(140, 15)) as pilot:
        found = pilot.main.table
        await pilot.click(found, offset=(9, 2 + HEADER + 2))
        await pilot.pause()
        assert at(pilot) == (2, True)
        await pilot.click(found, offset=(9, 2 + HEADER + 1), times=2)
        await look_until(pilot, SUBJECT, ("ExplainScreen", SECOND_POD))
        await pilot.press_each("escape", "g", "tab")
        before = found.render_line(HEADER).text
        await wheel(pilot, events.MouseScrollDown, found)
        assert (found.scroll_offset.y, found.cursor) == (WHEEL, 0)
        await wheel(pilot, events.MouseScrollUp, found)
        assert found.render_line(HEADER).text == before
        for order_now, arrow in ((("pod", False), "▼"), (("pod", True), "▲")):
            await pilot.click(found, offset=(begin_of(found, 2), 1))
            await pilot.pause()
            assert found.sorted_by == order_now
            assert f"POD{arrow}" in found.render_line(0).text
        await pilot.resize_terminal(*SIZE)
        side = pilot.main.side
        await pilot.click(side.nodes, offset=(5, 1 + HEADER + 1))
        await pilot.listed()
        assert (focus(pilot), view(pilot).node) == ("side-nodes", "worker-2")
        await pilot.click(side.namespaces, offset=(5, 1 + HEADER + 1), times=2)
        await pilot.listed()
        assert (focus(pilot), view(pilot)) == ("pods", View(node="worker-2", namespace="batch"))


async def test_texts_titles_and_buttons_are_clicked() -> None:
    async with running(app(), "d", size=(80, 16)) as pilot:
        for number in (1, 2):
            await wheel(pilot, events.MouseScrollDown, pilot.app.screen.query_one(TextScroll))
            assert scrolled(pilot).top == WHEEL * number
        await pilot.resize_terminal(*SIZE)
        pilot.app.screen.query_one(TextScroll).scroll_home(animate=False)
        await pilot.pause()
        for folds in ([False, True, *FOLDED[2:]], FOLDED):
            await pilot.click(list(pilot.app.screen.query(CollapsibleTitle))[1])
            await pilot.pause()
            assert folded(pilot) == folds
        await both(change, keys("escape"))(pilot)
        for button, where in (("#no", "EditScreen"), ("#yes", "MainScreen")):
            await pilot.click(button)
            await look_until(pilot, screen_name, where)
            await pilot.keys("escape")


async def test_what_is_said_of_a_node_is_clicked() -> None:
    async with running(app(), size=SIZE) as pilot:
        await pilot.listed()
        picture, pods = pilot.main.query_one(Timeline), pilot.main.table
        picture.text_lines(picture.content_size.width)
        names = picture.spans[1]
        place = next(number for number, span in enumerate(names) if span.victim is not None)
        await pilot.click(picture, offset=(sum(len(span.text) for span in names[:place]) + 1, 1))
        await pilot.pause()
        assert pods.row is not None
        assert names[place].text == pods.row.name == "importer-5f7b9c-2vtxk"
        await look_until(pilot, fix_line, True)
        await pilot.click("NodePanel #fix", offset=(2, 0))
        await look_until(pilot, screen_name, "FixDialog")
        await pilot.keys("escape")
        await pilot.click(pods, offset=(5, 0))
        assert pilot.main.view.by_eviction
        await pilot.click(TitleLine, offset=(SIZE[0] - 3, 0))
        await look_until(pilot, freshness, "paused")
        await pilot.click("NodePanel #elsewhere", offset=(2, 0))
        assert pilot.main.view.node == "worker-1"
        assert pods.row is not None
        assert pods.row.name.startswith("promo-"), "whom the line named"
        await pilot.resize_terminal(80, 24)
        why = pilot.main.query_one(ExplanationPanel)
        first, second, *_ = why.text_lines(78)
        await pilot._post_mouse_events([events.MouseScrollDown], why)
        assert why.text_lines(78)[0].text == second.text
        await pilot._post_mouse_events([events.MouseScrollUp, events.MouseScrollUp], why)
        assert why.text_lines(78)[0] == first


def fix_line(pilot: Run) -> bool:
    return pilot.main.query_one("NodePanel #fix").display


def begin_of(found: ListTable, number: int) -> int:
    """The first cell of a column on the screen."""
    return GUTTER + sum(width + GAP for width in found.columns.widths[:number])


async def wheel(pilot: Run, event: type[events.MouseEvent], widget: Widget) -> None:
    await pilot._post_mouse_events([event], widget, offset=(9, 4))
    await pilot.pause()
