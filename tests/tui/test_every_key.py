"""Every key of the help screen does what is said of it; so do the foot, the palette and other keys for it.

CLAIMS says of each action how to come to where it is heard, and what is seen there before it and after it.
"""

from __future__ import annotations

import csv
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.widgets._footer import FooterKey

from kubectl_qos.config.settings import Settings
from kubectl_qos.config.state import UiState
from kubectl_qos.edit.apply import ConflictError
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui.actions import ACTIONS, Action, Keys
from kubectl_qos.tui.app import ContextSwitch, QosApp
from kubectl_qos.tui.lists.base import ListTable
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import CollapsibleTitle
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.table import GAP, GUTTER
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from tests.tui.sources import (
    ScriptedSource,
    app_of,
    demo,
    main_of,
    names,
    press,
    screen_text,
    settled,
    type_text,
    until,
    with_usage,
    words,
)
from tests.tui.writers import WAITING, accepted, entry_of, memory

Run = Pilot[Any]
Steps = Callable[[Run], Awaitable[None]]
See = Callable[[Run], Any]

ROWS = build_rows(demo(), Scope()).rows
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
    async def steps(pilot: Run) -> None:
        for key in pressed:
            await press(pilot, key)
            await listed(pilot)

    return steps


def typed(*before: str, text: str) -> Steps:
    async def steps(pilot: Run) -> None:
        await keys(*before)(pilot)
        await type_text(pilot, text)
        await listed(pilot)

    return steps


def put(*before: str, text: str) -> Steps:
    """A text in the line that has the focus, as if it had been pasted."""

    async def steps(pilot: Run) -> None:
        await keys(*before)(pilot)
        assert isinstance(pilot.app.focused, Input)
        pilot.app.focused.value = text
        await pilot.pause()

    return steps


def both(*several: Steps) -> Steps:
    async def steps(pilot: Run) -> None:
        for one in several:
            await one(pilot)

    return steps


async def nothing(pilot: Run) -> None:
    await pilot.pause()


async def listed(pilot: Run) -> None:
    """Wait until everything that is to be listed is worked out."""
    main = main_of(pilot)
    await until(pilot, lambda: left(pilot) or not main.is_building)


def together(*seen: See) -> See:
    return lambda pilot: tuple(one(pilot) for one in seen)


def screen(pilot: Run) -> str:
    return type(pilot.app.screen).__name__


def palette(pilot: Run) -> bool:
    """Whether the palette is open and takes what is typed."""
    return screen(pilot) == "Palette" and isinstance(pilot.app.focused, Input)


def subject(pilot: Run) -> str:
    """Which pod or node the screen is about."""
    text = " ".join(str(one.render()) for one in pilot.app.screen.query("#subject").results(Static))
    return next((name for name in (API, SECOND_POD, "node worker-2") if name in text), "")


def view(pilot: Run) -> View:
    return main_of(pilot).view


def order(pilot: Run) -> tuple[tuple[str, bool], list[str]]:
    return main_of(pilot).table.sorted_by, names(pilot)


def columns(pilot: Run) -> list[str]:
    return [column.key for column in main_of(pilot).table.columns.columns]


def focus(pilot: Run) -> str:
    """Where keys go: the widget by its id, else by its type."""
    focused = pilot.app.focused
    return (focused.id or type(focused).__name__) if focused is not None else ""


def table(pilot: Run) -> LineTable[Any]:
    """The table of the screen; of the main screen the list."""
    return main_of(pilot).table if screen(pilot) == "MainScreen" else pilot.app.screen.query_one(LineTable)


def cursor(pilot: Run) -> int:
    return main_of(pilot).table.cursor


def at(pilot: Run) -> tuple[int, bool]:
    """The place of the cursor, and whether its row is in sight with the sign of the cursor."""
    found = table(pilot)
    y = found.cursor + 1 - found.scroll_offset.y
    in_sight = 0 < y < found.scrollable_content_region.height
    return found.cursor, in_sight and found.render_line(y).text.startswith(">")


def sideways(pilot: Run) -> int:
    return int(main_of(pilot).table.scroll_offset.x)


def marked(pilot: Run) -> tuple[list[str], int]:
    """The pods whose lines bear the sign of a mark, and the place of the cursor."""
    found = main_of(pilot).table
    lines = [found.render_line(y).text for y in range(1, found.content_size.height)]
    return [line[2:].split()[1] for line in lines if line[1:2] == "*"], found.cursor


def copied(pilot: Run) -> list[str]:
    """The second column of what was copied."""
    return [line.split()[1] for line in pilot.app.clipboard.splitlines()]


def begins(text: str) -> See:
    """Whether what was copied begins with a text."""
    return lambda pilot: pilot.app.clipboard.startswith(text)


def file(name: str) -> See:
    return lambda _: Path(name).read_text() if Path(name).exists() else None


def has_line(name: str, text: str = "") -> See:
    """Whether a file has a text, None where there is no such file."""
    return lambda _: text in Path(name).read_text() if Path(name).exists() else None


def exported(_: Run) -> list[str] | None:
    """The pods of the file."""
    path = Path("pods.csv")
    return [row["pod"] for row in csv.DictReader(path.read_text().splitlines())] if path.exists() else None


def pictured(_: Run) -> bool | None:
    """Whether the picture has what was on the screen."""
    path = Path("kubectl-qos.svg")
    text = path.read_text() if path.exists() else ""
    return all(name in text for name in (FIRST, SECOND, "RANK", "explain")) if text else None


def prompt(pilot: Run) -> tuple[bool, str, str]:
    """Whether the line is open, its sign, and what stands in it."""
    found = main_of(pilot).query_one(Prompt)
    return found.display, found._sign, found.query_one("#line", Input).value


def is_asked(pilot: Run) -> bool:
    return main_of(pilot).query_one(Prompt).display


def section(pilot: Run) -> int | None:
    """Which of the sections has the focus."""
    titles = list(pilot.app.screen.query(CollapsibleTitle))
    return next((number for number, one in enumerate(titles) if one.has_focus), None)


def folded(pilot: Run) -> list[bool]:
    """Of each section that has a text, whether the text is hidden."""
    found = []
    for title in pilot.app.screen.query(CollapsibleTitle):
        if title.foldable:
            assert title.parent is not None
            found.append(not title.parent.query_one(TextView).display)
            assert str(title.render())[0] == ("▸" if found[-1] else "▾")
    return found


def fields(pilot: Run) -> list[str]:
    """Requests and limits of the pod, line by line."""
    found = next(one for one in pilot.app.screen_stack if isinstance(one, EditScreen))
    return [field.value for field in found.form.fields]


def field(pilot: Run) -> str:
    """Which of the fields has the focus."""
    return str(getattr(pilot.app.focused, "name_in_spec", ""))


def shown_text(pilot: Run) -> str | None:
    """Which of the two texts of a change is shown, by what only it begins with."""
    lines = [line.strip() for line in screen_text(pilot).splitlines()]
    found = {"spec:": "patch", "kind: Pod": "manifest"}
    return next((found[line] for line in lines if line in found), None)


def way(pilot: Run) -> str:
    """Which way of landing bears the sign of the chosen one."""
    lines = [line for line in screen_text(pilot).splitlines() if line.startswith(" > ")]
    return lines[0][3:].partition("  ")[0] if lines else ""


def left(pilot: Run) -> bool:
    return pilot.app._exit


def theme(pilot: Run) -> str:
    """The theme whose ground is painted."""
    ground = pilot.app.screen.styles.background.hex.lower()
    return next(theme.name for theme in THEMES if theme.background == ground)


def title(pilot: Run) -> str:
    """Of which cluster it is."""
    return app_of(pilot).source.title


def state(pilot: Run) -> str:
    """How fresh what is shown is, as the first line ends."""
    return screen_text(pilot).splitlines()[0].split()[-1]


def sent(_: Run) -> list[int]:
    """The signals that the process sent itself."""
    return SENT


def questions(pilot: Run) -> int:
    """So many times the cluster was asked."""
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    return len(source.asked)


def said(*wanted: str) -> See:
    """Which of these texts are on the screen."""
    return lambda pilot: [text for text in wanted if text in words(pilot)]


SECOND_POD = "batch/crunch-x2k9f"
API = "shop/api-7d9c5b6f8-x2mzq"
AT_RISK = [row.name for row in ROWS if {"PRIORITY", "NEAR-LIMIT", "OVER-REQUEST"} & set(row.flags)]
DATABASES = ["db-0", "db-1", "db-2"]
STORED, CHANGED = ["250m", "512Mi", "2", "2Gi"], ["250m", "1Gi", "2", "2Gi"]
OTHER_KEY: Final = "f9"
ACTION = {action.name: action for action in ACTIONS}
PAGE: Final = 20
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
    await put("tab", text="1Gi")(pilot)


async def ways(pilot: Run) -> None:
    """Wait for the ways of a change, with the owner of the pod."""
    await until(pilot, lambda: "through deployment/api" in words(pilot))


async def manifest(pilot: Run) -> None:
    """Wait for the manifest behind the patch."""
    await until(pilot, lambda: getattr(pilot.app.screen, "_manifest", None) is not None)


async def stale(pilot: Run) -> None:
    """A dry run, when someone else has changed the pod meanwhile."""
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    source.scripted.rehearsals = [ConflictError("someone else was faster"), accepted]
    await press(pilot, "d")
    await until(pilot, lambda: "someone else was faster" in words(pilot))


async def sending(pilot: Run) -> None:
    """The change is sent, and the kubelet does not act on it yet."""
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    source.scripted.looks = [WAITING]
    await both(keys("ctrl+s"), ways)(pilot)
    await press(pilot, "a")
    await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
    await press(pilot, "y")
    await until(pilot, lambda: "waiting for the kubelet" in words(pilot))


async def journal(pilot: Run) -> None:
    """A change that was applied before."""
    request = PatchRequest(
        "Pod", "shop", API.partition("/")[2], "", "1", "resize", (memory("512Mi"),), (memory("256Mi"),), {}
    )
    app_of(pilot).writing.history.put(replace(entry_of(request, "0001"), context="prod"))
    await pilot.pause()


async def rows(pilot: Run) -> None:
    """Wait for the rows of the screen's table."""
    await until(pilot, lambda: bool(table(pilot).rows))


async def simulated(pilot: Run) -> None:
    """The kills on the node of the first pod."""
    await press(pilot, "o")
    await until(pilot, lambda: asks(pilot) == "free 1Gi")


def told(pilot: Run) -> list[str]:
    """The notifications."""
    return [one.message for one in pilot.app._notifications]


def asks(pilot: Run) -> str:
    """What is simulated."""
    return " ".join(str(one.render()) for one in pilot.app.screen.query("#question").results(Static))


compared = put("u", text="cgroupVersion=1")


def app(settings: Settings | None = None) -> QosApp:
    """A cluster that answers otherwise when it is asked again, and a person who was here before."""
    source = ScriptedSource(demo(), with_usage(demo(), "crunch-", 3 << 30))
    source.title = "prod"
    return QosApp(
        source,
        Scope(),
        notes=NOTES,
        settings=settings or Settings(),
        state=UiState(filters=("older", "newer"), places=("ns shop",)),
        contexts=ContextSwitch(lambda: ("prod", "test"), lambda _: source),
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


async def seen(pilot: Run, see: See, wanted: Any) -> Any:
    """Look until what is wanted is seen; what comes from threads takes a moment."""
    for _ in range(PATIENCE):
        found = see(pilot)
        if wanted(found) if callable(wanted) else found == wanted:
            return found
        await pilot.pause(0.01)
    found = see(pilot)
    assert not callable(wanted) or wanted(found), found
    assert callable(wanted) or found == wanted
    return found


def by_foot(action: Action) -> Steps:
    async def steps(pilot: Run) -> None:
        (key,) = in_foot(pilot, action)
        await pilot.click(key)
        await pilot.pause()

    return steps


def in_foot(pilot: Run, action: Action) -> list[FooterKey]:
    return [one for one in pilot.app.screen.query(FooterKey) if one.action.endswith(action.verb)]


def by_palette(action: Action) -> Steps:
    async def steps(pilot: Run) -> None:
        await press(pilot, "ctrl+p")
        assert palette(pilot)
        await put(text=action.label)(pilot)
        rows = [(row.name, row.key, row.help) for row in table(pilot).rows]
        place = rows.index((action.label, Keys().first(action.name), action.help))
        await press(pilot, *["down"] * place)
        line = table(pilot).render_line(at(pilot)[0] + HEADER).text
        assert line.split()[: 2 + action.label.count(" ")] == [">", *action.label.split()]
        assert f"  {Keys().first(action.name)}  " in line
        await press(pilot, "enter")

    return steps


def screen_and(*others: See) -> See:
    return together(screen, *others)


def in_list(pilot: Run) -> tuple[str, str, str]:
    """The place and the kind that the title names, and what has the focus."""
    words = str(main_of(pilot).table.border_title).split("  ")
    return words[0], words[1].split()[-1], focus(pilot)


def listing(action: str, where: str, kind: ListKind) -> Step:
    return Step(action, in_list, (where, str(kind), kind.value))


def leave(action: str = "help.close", to: str = "MainScreen", key: str = "") -> Step:
    return Step(action, screen, to, key=key)


def moved(top: Callable[[Lines], int]) -> Callable[[Lines], Lines]:
    return lambda was: was._replace(top=min(max(top(was), 0), was.most))


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


def pages(room: str, come: Steps) -> tuple[Step, ...]:
    """A page down and up again, by each key."""
    down, up = ACTION[f"{room}.page_down"].keys, ACTION[f"{room}.page_up"].keys
    return tuple(
        Step(f"{room}.{verb}", scrolled, moved(top), come if number + place == 0 else None, key)
        for number, pair in enumerate(zip(down, up, strict=True))
        for place, (key, verb, top) in enumerate(
            [
                (pair[0], "page_down", lambda was: was.top + was.page),
                (pair[1], "page_up", lambda _: 0),
            ]
        )
    )


FITTING = ["rank", "pod", "node", "qos", "oom_score_adj", "oom_score", "memory", "flags"]
WIDE = [*FITTING[:1], "namespace", *FITTING[1:-1], "trend", "request", "limit", "limit_percent", "restarts"]
WIDE += ["priority", "eviction", "age", "flags"]
WITHOUT_POD = [key for key in FITTING if key != "pod"]
LAST = len(ALL) - 1
CONTAINERS_OF_SECOND = View(ListKind.CONTAINERS, "worker-2", "batch", pod=("batch", "crunch-x2k9f"))
ON_WORKER_2 = View(node="worker-2")
THEME_NAMES = [theme.name for theme in THEMES]
MODES: Final = ("> free memory", "> pod grows", "> until OOM")
EVICTED = ["[x] eviction", "after 1 eviction"]
READ: Final = "everything could be read, other than kernel logs"
ACCEPTED: Final = "the server accepts it"
PATCH_FILE: Final = "api-7d9c5b6f8-x2mzq-patch.yaml"
EVERYWHERE: Final = "all nodes / all namespaces"
ENTER = keys("enter")
FROM_LIST = keys("escape", "escape", "escape", "4", "g")
OTHER_KEYS: Final = {
    "main.wide": "f2",
    "table.last": "f3",
    "app.theme": "f4",
    "prompt.earlier": "f5",
    "explain.fold": "f6",
    "fold.fold": "f7",
    "edit.guaranteed": "f8",
    "search.leave": "f9",
}

SUBJECT = screen_and(subject)
FOCUS = screen_and(focus)
IN_EDIT = screen_and(fields)
SCREENS: Final = {
    "main.explain": ("ExplainScreen", SECOND_POD, "explain.back"),
    "main.edit": ("EditScreen", SECOND_POD, "edit.back"),
    "main.tree": ("TreeScreen", "node worker-2", "tree.back"),
    "main.compare": ("CompareScreen", SECOND_POD, "compare.back"),
    "main.simulate": ("SimulationScreen", "node worker-2", "simulation.back"),
}
HELP = screen_and(said("Help (esc closes)"))
IN_HELP: Final = ("TextScreen", ["Help (esc closes)"])

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
    Step("main.kills", screen, "KillsScreen"),
    leave("kills.back"),
    Step("main.explain", SUBJECT, ("ExplainScreen", SECOND_POD), act=by_foot),
    leave("explain.back"),
    Step("main.tree", SUBJECT, ("TreeScreen", "node worker-2"), act=by_palette),
    leave("tree.back"),
)

tour(
    "lists",
    listing("main.list_nodes", "cluster", ListKind.NODES),
    listing("main.list_namespaces", "namespaces", ListKind.NAMESPACES),
    listing("main.list_workloads", EVERYWHERE, ListKind.WORKLOADS),
    listing("main.list_containers", EVERYWHERE, ListKind.CONTAINERS),
    listing("main.list_pods", EVERYWHERE, ListKind.PODS),
    Step("main.next_pane", focus, "side-nodes"),
    Step("main.back", focus, "pods"),
    Step("main.previous_pane", focus, "side-namespaces"),
    Step("main.back", focus, "pods"),
    Step("main.at_risk", names, AT_RISK),
    Step("main.at_risk", names, ALL),
    Step("main.back", names, ALL, keys("z")),
    Step("main.wide", columns, WIDE),
    Step("main.wide", columns, FITTING),
    Step("main.mark", marked, ([SECOND], 2), keys("j")),
    Step("main.mark", marked, ([], 2), keys("k")),
    Step("main.copy", copied, ["POD", SECOND], keys("k")),
    Step("main.copy", copied, ["POD", FIRST, SECOND], keys("g", "space", "space")),
    Step("main.back", marked, ([], 2)),
    Step("main.export", exported, DATABASES, both(typed("slash", text="db-"), keys("enter")), follow=ENTER),
    Step("main.back", names, ALL),
    Step("main.containers", view, CONTAINERS_OF_SECOND, keys("g", "j")),
    Step("main.back", view, View()),
    Step("main.sort", order, (("pod", False), sorted(ALL))),
    Step("main.reverse", order, (("pod", True), sorted(ALL, reverse=True))),
    Step("main.sort", lambda pilot: order(pilot)[0], ("node", False), act=by_foot),
    Step("main.wide", columns, WIDE, act=by_palette),
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
    Step("table.right", sideways, 8, keys("w")),
    Step("table.left", sideways, 0),
    Step("table.down", at, (1, True), keys("w", "5")),
    Step("table.select", SUBJECT, ("ExplainScreen", API), keys("g")),
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
    Step("prompt.leave", together(is_asked, focus), (False, "pods")),
    Step("prompt.earlier", prompt, (True, "/", "newer"), typed("slash", text="x")),
    Step("prompt.earlier", prompt, (True, "/", "older")),
    Step("prompt.later", prompt, (True, "/", "newer")),
    Step("prompt.later", prompt, (True, "/", "x")),
    Step(
        "prompt.leave", together(is_asked, names, focus), (False, ALL, "pods"), put(text="db-"), act=by_foot
    ),
    Step("main.go_to", together(prompt, focus), ((True, ":", ""), "line")),
    Step("prompt.earlier", prompt, (True, ":", "ns shop")),
    Step("prompt.complete", prompt, (True, ":", "ns sandboxed"), put(text="ns s")),
    Step("prompt.complete", prompt, (True, ":", "ns shop"), act=by_foot),
    Step("prompt.leave", together(is_asked, focus), (False, "pods")),
    Step("main.go_to", is_asked, after=True, act=by_palette),
)

tour(
    "explain",
    Step("main.explain", SUBJECT, ("ExplainScreen", API)),
    Step("explain.next", section, 1),
    Step("fold.fold", folded, [False, True, *[False] * 5]),
    Step("fold.fold", folded, [False] * 7),
    Step("explain.fold", folded, [True] * 7),
    Step("fold.fold", folded, [True, False, *[True] * 5]),
    Step("fold.fold", folded, [True] * 7),
    Step("explain.fold", folded, [False] * 7, act=by_foot),
    Step("explain.next", section, 2),
    Step("explain.previous", section, 1),
    Step("explain.copy", begins("pod shop/api-7d9c5b6f8-x2mzq on worker-2"), after=True),
    Step("explain.edit", SUBJECT, ("EditScreen", API)),
    leave("edit.back", "ExplainScreen"),
    Step("explain.fold", folded, [True] * 7, act=by_palette),
)

tour(
    "tree and compare",
    Step(
        "tree.copy",
        begins("node worker-2, kubelet 1.36, cgroup v2, systemd driver"),
        after=True,
        come=keys("v"),
    ),
    Step("tree.export", has_line("worker-2-cgroups.txt"), after=True, follow=ENTER),
    Step("tree.back", screen, "MainScreen", act=by_foot),
    Step("compare.copy", begins("node worker-2, kubelet 1.36, cgroupVersion=1"), after=True, come=compared),
    Step("compare.back", screen, "MainScreen", act=by_foot),
)

tour(
    "texts",
    *scrolls(keys("question_mark")),
    leave(),
    Step("text.last", scrolled, moved(lambda was: was.most), keys("v", "g")),
    leave("tree.back"),
    Step("text.last", scrolled, moved(lambda was: was.most), keys("d")),
    leave("explain.back"),
    *pages("compare", compared),
    leave("compare.back"),
    *pages("edit", keys("e", "ctrl+g")),
    Step(
        "text.last",
        scrolled,
        moved(lambda was: was.most),
        both(keys("escape", "y"), change, keys("ctrl+s"), ways, keys("m"), manifest, keys("m")),
    ),
    size=(80, 16),
)

tour(
    "edit",
    Step("edit.below", field, "limits.memory", keys("e", "tab")),
    Step("edit.above", field, "requests.memory"),
    Step("edit.outlive", FOCUS, ("Finder", "Input")),
    leave("search.leave", "EditScreen"),
    Step("edit.rank", screen, "AskNumber"),
    Step("number.leave", IN_EDIT, ("EditScreen", STORED)),
    Step("edit.guaranteed", fields, ["2", "2Gi", "2", "2Gi"]),
    Step("edit.reset", fields, STORED),
    Step("edit.guaranteed", fields, ["2", "2Gi", "2", "2Gi"], act=by_foot),
    Step("edit.reset", fields, STORED, act=by_palette),
    Step("edit.back", screen, "Confirm", put(text="1Gi")),
    *(
        step
        for key in ACTION["confirm.no"].keys
        for step in (
            Step("confirm.no", IN_EDIT, ("EditScreen", CHANGED), key=key),
            Step("edit.back", screen, "Confirm"),
        )
    ),
    leave("confirm.yes"),
)

tour(
    "landing",
    Step("edit.apply", screen, "ApplyScreen", change),
    Step("apply.next_strategy", way, "through deployment/api", ways),
    Step("apply.previous_strategy", way, "in place"),
    Step("apply.next_strategy", way, "through deployment/api", act=by_foot),
    Step("apply.previous_strategy", way, "in place", act=by_palette),
    Step("apply.dry_run", said(ACCEPTED), [ACCEPTED]),
    Step("apply.copy", begins("PATCH /api/v1/namespaces/shop/pods/api-"), after=True),
    Step("apply.patch", screen_and(shown_text), ("PatchScreen", "patch")),
    Step("patch.copy", begins("spec:"), after=True),
    *each_key("patch.other", shown_text, "manifest", "patch", come=manifest),
    Step("patch.save", has_line(PATCH_FILE, "memory: 1Gi"), after=True, follow=ENTER),
    Step("patch.save", screen, "SaveAs", key="ctrl+s"),
    leave("save.leave", "PatchScreen"),
    Step("patch.copy", begins("kind: Pod"), after=True, come=keys("m"), act=by_foot),
    Step("patch.other", shown_text, "patch", act=by_palette),
    leave("patch.back", "ApplyScreen"),
    Step("apply.apply", screen, "ConfirmWrite"),
    leave("confirm.no", "ApplyScreen", key="n"),
    Step("apply.keep_mine", said("keep mine", ACCEPTED), [ACCEPTED], stale),
    Step("apply.reload", screen, "EditScreen", stale),
    Step("apply.back", IN_EDIT, ("EditScreen", CHANGED), both(change, keys("ctrl+s"))),
    Step("progress.back", screen, "MainScreen", sending),
)

tour(
    "undo",
    Step("app.undo", screen, "UndoScreen", journal),
    Step("undo.open", screen, "ApplyScreen", rows),
    leave("apply.back", "UndoScreen"),
    Step("undo.open", screen, "ApplyScreen", rows, act=by_palette),
    leave("apply.back", "UndoScreen"),
    Step("undo.open", screen, "ApplyScreen", rows, act=by_foot),
    leave("apply.back", "UndoScreen"),
    Step("undo.back", screen, "MainScreen"),
)

tour(
    "simulation",
    *each_key("simulation.less", asks, "free 896Mi", "free 768Mi", come=simulated),
    *each_key("simulation.more", asks, "free 896Mi", "free 1Gi"),
    *each_key("simulation.far_more", asks, "free 2Gi", "free 3Gi"),
    *each_key("simulation.far_less", asks, "free 2Gi", "free 1Gi"),
    Step("simulation.least", asks, "free 0 B"),
    Step("simulation.most", asks, "free 14.8Gi"),
    Step("simulation.mode", said(*MODES), ["> pod grows"]),
    Step("simulation.previous_mode", said(*MODES), ["> free memory"]),
    Step("simulation.previous_mode", said(*MODES), ["> until OOM"]),
    Step("simulation.mode", said(*MODES), ["> free memory"], act=by_foot),
    Step("simulation.restarts", said("[x] restarts"), ["[x] restarts"]),
    Step("simulation.restarts", said("[x] restarts"), []),
    Step("simulation.eviction", said(*EVICTED), EVICTED, keys("home", "shift+right")),
    Step("simulation.eviction", said(*EVICTED), [], act=by_palette),
    Step("simulation.copy", begins("node worker-2, kubelet 1.36: its pods use"), after=True),
    Step("simulation.notes", screen_and(said("Notes (esc")), ("TextScreen", ["Notes (esc"])),
    leave("help.close", "SimulationScreen"),
    Step("simulation.explain", SUBJECT, ("ExplainScreen", API)),
    leave("explain.back", "SimulationScreen"),
    Step("simulation.growing_pod", FOCUS, ("Finder", "Input")),
    leave("search.leave", "SimulationScreen"),
)

tour(
    "kills",
    *each_key("kills.next_pane", focus, "TextScroll", "LineTable", come=both(keys("K"), rows)),
    Step("kills.next_pane", focus, "TextScroll", act=by_foot),
    Step("kills.copy", begins("pod batch/crunch-x2k9f, container c on worker-2"), after=True),
    Step("kills.notes", lambda pilot: told(pilot)[-1:], [READ]),
    Step("kills.explain", SUBJECT, ("ExplainScreen", SECOND_POD)),
    leave("explain.back", "KillsScreen"),
    Step("kills.explain", SUBJECT, ("ExplainScreen", SECOND_POD), act=by_palette),
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
    Step("columns.show", columns, WITHOUT_POD, keys("j"), follow=ENTER),
    Step("columns.fitting", screen_and(columns), ("MainScreen", FITTING), keys("C")),
    Step("columns.lower", columns, ["pod", "rank", *FITTING[2:]], keys("C"), follow=ENTER),
    Step("columns.fitting", screen_and(columns), ("MainScreen", FITTING), keys("C")),
    Step("columns.raise", columns, ["rank", "node", "pod", *FITTING[3:]], keys("C", "j", "j"), follow=ENTER),
    Step("columns.fitting", screen_and(columns), ("MainScreen", FITTING), keys("C")),
    Step("columns.leave", screen_and(columns), ("MainScreen", FITTING), keys("C", "j", "space")),
    Step("columns.take", screen_and(columns), ("MainScreen", WITHOUT_POD), keys("C", "j", "space")),
    Step(
        "select.leave",
        screen_and(title),
        ("MainScreen", "prod"),
        both(typed("colon", text="ctx"), keys("enter", "j")),
    ),
    Step("save.leave", screen_and(file("pods.csv")), ("MainScreen", None), keys("x")),
    Step("main.notes", screen_and(said(NOTES[1])), ("TextScreen", [NOTES[1]])),
    *(
        step
        for number, key in enumerate(ACTION["help.close"].keys)
        for step in (
            *([Step("app.help", HELP, IN_HELP, key=ACTION["app.help"].keys[number % 2])] if number else []),
            Step("help.close", FOCUS, ("MainScreen", "pods"), key=key),
        )
    ),
    Step("app.help", HELP, IN_HELP, act=by_foot),
)

tour(
    "everywhere",
    Step("app.save_screenshot", pictured, after=True, follow=ENTER),
    *each_key(
        "app.previous",
        together(view, cursor),
        (View(ListKind.NODES), 1),
        (View(), 0),
        come=keys("1", "j", "enter"),
    ),
    *each_key("app.next", view, View(ListKind.NODES), View(node="worker-1")),
    Step("app.previous", screen, "MainScreen", keys("d")),
    Step("app.next", screen, "ExplainScreen"),
    Step("app.command_palette", palette, after=True),
    leave("search.leave", "ExplainScreen"),
    Step("app.command_palette", palette, after=True, come=keys("e")),
    leave("search.leave", "EditScreen"),
    Step("app.refresh", questions, 2, keys("escape", "escape")),
    Step("app.pause", state, "paused"),
    Step("app.pause", state, "live", act=by_palette),
    Step("app.suspend", sent, [signal.SIGTSTP]),
    Step("app.suspend", sent, [signal.SIGTSTP] * 2, keys("slash", "a")),
    *(
        Step("app.theme", theme, THEME_NAMES[(number + 1) % len(THEME_NAMES)], keys("escape"))
        for number in range(len(THEME_NAMES))
    ),
    Step("app.quit", left, after=True),
)

tour(
    "leaving a change",
    Step("app.quit", screen, "Confirm", both(change, keys("ctrl+s"), ways, keys("m"))),
    leave("confirm.no", "PatchScreen"),
    Step("app.interrupt", screen, "Confirm"),
    Step("app.interrupt", left, after=True, key="ctrl+q"),
)
tour("leaving the prompt", Step("app.interrupt", left, after=True, come=keys("slash", "a")))
tour(
    "other keys",
    *(
        Step(action, see, after, come, key=OTHER_KEYS[action])
        for action, see, after, come in (
            ("main.wide", columns, WIDE, None),
            ("table.last", at, (LAST, True), None),
            ("app.theme", theme, THEME_NAMES[1], None),
            ("prompt.earlier", prompt, (True, "/", "newer"), keys("slash")),
            ("explain.fold", folded, [True] * 7, keys("escape", "g", "d")),
            ("fold.fold", folded, [True, False, *[True] * 5], keys("tab")),
            ("edit.guaranteed", fields, ["2", "2Gi", "2", "2Gi"], keys("escape", "g", "e")),
            ("search.leave", screen, "EditScreen", keys("ctrl+o")),
        )
    ),
)


async def take(pilot: Run, step: Step, *, rebound: bool = False) -> None:
    """Carry out a step: nothing but what it says leads to what is seen after it."""
    action = ACTION[step.action]
    if step.come is not None:
        await step.come(pilot)
    before = step.see(pilot)
    after = step.after(before) if callable(step.after) else step.after
    assert before != after
    if action.footer:
        assert [key.description for key in in_foot(pilot, action)] == [action.label]
    if rebound:
        for key in action.keys:
            await press(pilot, key)
            assert step.see(pilot) == before
    elif action.palette:
        commands = app_of(pilot)._commands(pilot.app.screen)
        assert (action.label, Keys().first(action.name), action.help) in {
            (one.name, one.key, one.help) for one in commands
        }
    await (step.act(action)(pilot) if step.act else press(pilot, step.pressed))
    if step.follow is not None:
        await step.follow(pilot)
    await seen(pilot, step.see, after)


def test_every_key_of_every_action_is_pressed_on_a_tour() -> None:
    pressed = {
        (step.action, step.pressed)
        for name, tour in TOURS.items()
        for step in tour.steps
        if step.pressed and name != "other keys"
    }
    assert pressed == {(action.name, key) for action in ACTIONS for key in action.keys}


@pytest.mark.parametrize("name", TOURS)
async def test_every_key_does_what_is_said_of_it(name: str) -> None:
    tour, rebound = TOURS[name], name == "other keys"
    settings = Settings(keys={action: (key,) for action, key in OTHER_KEYS.items()}) if rebound else None
    async with app(settings).run_test(size=tour.size) as pilot:
        await settled(pilot)
        await listed(pilot)
        for number, step in enumerate(tour.steps, start=1):
            try:
                await take(pilot, step, rebound=rebound)
            except Exception as error:
                error.add_note(f"step {number} of the tour {name}: {step.action} {step.pressed}")
                raise


LISTS = ("1", "2", "3", "4", "5")
WHEEL: Final = 2
"""So many lines a notch of the wheel scrolls."""


@pytest.fixture
async def small() -> AsyncIterator[Run]:
    """A terminal that does not have the room for all lines of its lists."""
    async with app().run_test(size=(140, 15)) as pilot:
        await settled(pilot)
        yield pilot


async def open_list(pilot: Run, key: str) -> ListTable:
    await keys("escape", "escape", key, "g")(pilot)
    found = main_of(pilot).table
    assert len(found.rows) >= 4
    return found


async def test_a_click_takes_a_row_and_a_second_one_opens_it(small: Run) -> None:
    for key in LISTS:
        found = await open_list(small, key)
        assert at(small) == (0, True)
        await small.click(found, offset=(9, 1 + HEADER + 2))
        await small.pause()
        assert at(small) == (2, True)
        assert found.row is found.rows[2]
        row = found.rows[1]
        wanted = found.definition.opened(view(small), row)
        await small.click(found, offset=(9, 1 + HEADER + 1), times=2)
        await listed(small)
        if wanted is None:
            await seen(small, screen, "ExplainScreen")
            assert row.name in words(small)
        else:
            await seen(small, view, wanted)


async def test_the_wheel_scrolls_and_leaves_the_cursor(small: Run) -> None:
    for key in LISTS[1:]:
        found = await open_list(small, key)
        before = found.render_line(HEADER).text
        await wheel(small, events.MouseScrollDown, found)
        assert found.scroll_offset.y == WHEEL
        assert found.cursor == 0
        assert found.render_line(HEADER).text != before
        await wheel(small, events.MouseScrollUp, found)
        assert found.render_line(HEADER).text == before


async def test_a_click_on_a_header_sorts_and_a_second_one_turns(small: Run) -> None:
    for key in LISTS:
        found = await open_list(small, key)
        given = list(found.rows)
        number, column = next(
            (number, column)
            for number, column in enumerate(found.columns.columns)
            if column.key != found.definition.natural
        )
        for turned, arrow in ((False, "▼"), (True, "▲")):
            await small.click(found, offset=(begin_of(found, number), 1))
            await small.pause()
            assert found.sorted_by == (column.key, turned)
            in_order = sorted(map(column.sort_key, given), reverse=turned)
            assert [column.sort_key(row) for row in found.rows] == in_order
            assert f"{column.header}{arrow}" in found.render_line(0).text
            assert f"by {column.header}" in str(found.border_title)


async def test_an_edge_is_drawn_and_given_back(small: Run) -> None:
    for key in LISTS:
        found = await open_list(small, key)
        before = found.render_line(0).text
        width, edge = found.columns.widths[0], begin_of(found, 1) - 1
        await small.mouse_down(found, offset=(edge, 1))
        await small.hover(found, offset=(edge + 4, 1))
        await small.mouse_up(found, offset=(edge + 4, 1))
        await small.pause()
        assert found.columns.widths[0] == width + 4
        assert found.widths == {found.columns.columns[0].key: width + 4}
        assert found.render_line(0).text != before
        assert found.sorted_by == (found.definition.natural, False)
        await small.click(found, offset=(edge + 4, 1), times=2)
        await small.pause()
        assert found.widths == {}
        assert found.render_line(0).text == before


async def test_a_click_takes_a_pane_and_its_row() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await settled(pilot)
        side = main_of(pilot).side
        await pilot.click(side.nodes, offset=(5, 1 + HEADER + 1))
        await listed(pilot)
        assert (focus(pilot), view(pilot).node) == ("side-nodes", "worker-2")
        await pilot.click(side.namespaces, offset=(5, 1 + HEADER + 1), times=2)
        await listed(pilot)
        assert (focus(pilot), view(pilot)) == ("pods", View(node="worker-2", namespace="batch"))


async def test_the_wheel_scrolls_texts() -> None:
    async with app().run_test(size=(80, 16)) as pilot:
        await settled(pilot)
        for come in (keys("v", "g"), keys("question_mark"), keys("d"), compared, keys("e", "ctrl+g")):
            await both(keys("escape"), come)(pilot)
            scroll = pilot.app.screen.query_one(TextScroll)
            for number in (1, 2, 3):
                await wheel(pilot, events.MouseScrollDown, scroll)
                assert scrolled(pilot).top == WHEEL * number
            await wheel(pilot, events.MouseScrollUp, scroll)
            assert scrolled(pilot).top == WHEEL * 2


async def test_a_click_on_the_title_of_a_section_folds_it() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await settled(pilot)
        await keys("d")(pilot)
        for wanted in ([False, True, *[False] * 5], [False] * 7):
            await pilot.click(list(pilot.app.screen.query(CollapsibleTitle))[1])
            await pilot.pause()
            assert folded(pilot) == wanted


async def test_the_buttons_of_a_question_can_be_clicked() -> None:
    async with app().run_test(size=SIZE) as pilot:
        await settled(pilot)
        await both(change, keys("escape"))(pilot)
        for button, where in (("#no", "EditScreen"), ("#yes", "MainScreen")):
            await pilot.click(button)
            await seen(pilot, screen, where)
            await press(pilot, "escape")


def begin_of(found: ListTable, number: int) -> int:
    """The first cell of a column on the screen."""
    return GUTTER + sum(width + GAP for width in found.columns.widths[:number])


async def wheel(pilot: Run, event: type[events.MouseEvent], widget: Widget) -> None:
    await pilot._post_mouse_events([event], widget, offset=(9, 4))
    await pilot.pause()
