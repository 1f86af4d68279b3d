"""Every key of the help screen does what is said of it; so do the foot, the palette and other keys for it.

CLAIMS says of each action how to come to where it is heard, and what is seen there before it and after it.
"""

from __future__ import annotations

import csv
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
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

from kubectl_qos.cluster.writer import ConflictError
from kubectl_qos.config.settings import Settings
from kubectl_qos.config.state import UiState
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui.actions import ACTIONS, Action, BindingGroup, Keys
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.context_switch import ContextSwitch
from kubectl_qos.tui.lists.table import ListTable
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.collapsible import CollapsibleTitle
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.table_cells import GAP, GUTTER
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
class Claim:
    """Where an action is heard, and what it does to what is seen.

    `come` leads there from the first screen. `before` is seen then, and `after` when the action was carried
    out and then `follow`. Of the two, `before` may be a condition, and `after` be made of what was seen.
    """

    come: Steps
    see: See
    before: Any
    after: Any
    follow: Steps | None = None
    size: tuple[int, int] = SIZE


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
    await until(pilot, lambda: left(pilot) or not (main.is_working_out or main._lister._running))


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


def strategy(pilot: Run) -> str:
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


def at_top(lines: Lines) -> bool:
    return lines.top == 0 and lines.most > lines.page


def at_end(lines: Lines) -> bool:
    return lines.top == lines.most > lines.page


def at_second_page(lines: Lines) -> bool:
    return lines.top == min(lines.page, lines.most) > 0


def a_line_down(lines: Lines) -> bool:
    return lines.top == 1 and lines.most > lines.page


def to(top: Callable[[Lines], int]) -> Callable[[Lines], Lines]:
    return lambda was: was._replace(top=top(was))


async def changed(pilot: Run) -> None:
    """The fields of the first pod, one of them changed."""
    await press(pilot, "e")
    await put("tab", text="1Gi")(pilot)


async def strategy_kind(pilot: Run) -> None:
    """The ways of that change, with the owner of the pod."""
    await changed(pilot)
    await press(pilot, "ctrl+s")
    await until(pilot, lambda: "through deployment/api" in words(pilot))


async def stale(pilot: Run) -> None:
    """The ways, when someone else has changed the pod meanwhile."""
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    source.scripted.rehearsals = [ConflictError("someone else was faster"), accepted]
    await strategy_kind(pilot)
    await press(pilot, "d")
    await until(pilot, lambda: "someone else was faster" in words(pilot))


async def sending(pilot: Run) -> None:
    """The change is sent, and no look at it tells anything yet."""
    source = app_of(pilot).source
    assert isinstance(source, ScriptedSource)
    source.scripted.looks = [WAITING]
    await strategy_kind(pilot)
    await press(pilot, "a")
    await until(pilot, lambda: screen(pilot) == "ConfirmWrite")
    await press(pilot, "y")
    await until(pilot, lambda: "waiting for the kubelet" in words(pilot))


async def applied(pilot: Run) -> None:
    """The list of what was applied, with one change."""
    request = PatchRequest(
        "Pod", "shop", API.partition("/")[2], "", "1", "resize", (memory("512Mi"),), (memory("256Mi"),), {}
    )
    app_of(pilot).writing.history.put(replace(entry_of(request, "0001"), context="prod"))
    await press(pilot, "U")
    await until(pilot, lambda: bool(table(pilot).rows))


async def simulated(pilot: Run) -> None:
    """Who dies on the node of the first pod."""
    await press(pilot, "o")
    await until(pilot, lambda: asks(pilot) == "free 1Gi")


async def killed(pilot: Run) -> None:
    """The list of deaths."""
    await press(pilot, "K")
    await until(pilot, lambda: bool(table(pilot).rows))


def told(pilot: Run) -> list[str]:
    """What is said in passing."""
    return [one.message for one in pilot.app._notifications]


def asks(pilot: Run) -> str:
    """What is simulated."""
    return " ".join(str(one.render()) for one in pilot.app.screen.query("#question").results(Static))


async def patched(pilot: Run) -> None:
    """The patch of the change, and the manifest behind it."""
    await strategy_kind(pilot)
    await press(pilot, "m")
    await until(pilot, lambda: getattr(pilot.app.screen, "_manifest", None) is not None)


async def asked(pilot: Run) -> None:
    """The question whether to leave the changed fields."""
    await changed(pilot)
    await press(pilot, "escape")


async def compared(pilot: Run) -> None:
    """What another cgroup version would change."""
    await put("u", text="cgroupVersion=1")(pilot)


async def previewed(pilot: Run) -> None:
    """Fields with a preview that is longer than the screen."""
    await keys("e", "ctrl+g")(pilot)


def opens(name: str, about: str = SECOND_POD) -> Claim:
    return Claim(keys("j"), together(screen, subject), ("MainScreen", ""), (name, about))


def lists(kind: ListKind, begin: ListKind, key: str) -> Claim:
    """The list has the focus, and its title says what it is of."""

    def seen(pilot: Run) -> tuple[ListKind, bool, str]:
        place = {ListKind.NODES: "cluster", ListKind.NAMESPACES: "namespaces"}.get(
            kind, "all nodes / all namespaces"
        )
        words = str(main_of(pilot).table.border_title).split("  ")
        return view(pilot).kind, words[0] == place and words[1].endswith(f" {kind}"), focus(pilot)

    return Claim(keys(key), seen, (begin, False, begin.value), (kind, True, kind.value))


def scrolls(begin: Callable[[Lines], bool], end: Callable[[Lines], int], *moved: str) -> tuple[Claim, ...]:
    """What a key of texts does to a tree, a manifest, a help screen and an explanation."""
    strategies = (keys("v", "g"), both(patched, keys("m")), keys("question_mark"), keys("d"))
    return tuple(
        Claim(both(strategy, keys(*moved)), scrolled, begin, to(end), size=(80, 16))
        for strategy in strategies
    )


def pages(
    come: Steps, begin: Callable[[Lines], bool], end: Callable[[Lines], int], *moved: str
) -> tuple[Claim, ...]:
    return (Claim(both(come, keys(*moved)), scrolled, begin, to(end), size=(80, 16)),)


def moves(begin: int, end: int, *moved: str) -> tuple[Claim, ...]:
    """What a key of tables does to the cursor, in the list of pods and in that of containers."""
    strategies = (keys(*moved), keys("5", *moved))
    return tuple(Claim(strategy, at, (begin, True), (end, True)) for strategy in strategies)


def leads(come: Steps, see: See, before: Any, after: Any, **options: Any) -> tuple[Claim, ...]:
    return (Claim(come, see, before, after, **options),)


def choosing(come: Steps, after: Any, before: Any = None) -> tuple[Claim, ...]:
    """What a key of the dialog does to the columns, seen after enter."""
    return (Claim(come, columns, before or FITTING, after, follow=keys("enter")),)


FITTING = ["rank", "pod", "node", "qos", "oom_score_adj", "oom_score", "memory", "flags"]
WIDE = [*FITTING[:1], "namespace", *FITTING[1:-1], "trend", "request", "limit", "limit_percent", "restarts"]
WIDE += ["priority", "eviction", "age", "flags"]
WITHOUT_POD = [key for key in FITTING if key != "pod"]
LAST = len(ALL) - 1
CONTAINERS_OF_FIRST = View(ListKind.CONTAINERS, "worker-2", "batch", pod=("batch", "crunch-x2k9f"))
ON_WORKER_2 = View(node="worker-2")
THEME_NAMES = [theme.name for theme in THEMES]
EVICTED = ["[x] eviction", "after 1 eviction"]
NOTED = ["Notes (esc"]
READ = "everything could be read, other than kernel logs"
shown = together(screen, focus)

CLAIMS: Final[dict[str, tuple[Claim, ...]]] = {
    "main.explain": (opens("ExplainScreen"),),
    "main.edit": (opens("EditScreen"),),
    "main.tree": (opens("TreeScreen", "node worker-2"),),
    "main.compare": (opens("CompareScreen"),),
    "main.filter": leads(
        nothing, together(prompt, focus), ((False, "", ""), "pods"), ((True, "/", ""), "line")
    ),
    "main.go_to": leads(
        nothing, together(prompt, focus), ((False, "", ""), "pods"), ((True, ":", ""), "line")
    ),
    "main.list_nodes": (lists(ListKind.NODES, ListKind.PODS, "4"),),
    "main.list_namespaces": (lists(ListKind.NAMESPACES, ListKind.PODS, "4"),),
    "main.list_workloads": (lists(ListKind.WORKLOADS, ListKind.NODES, "1"),),
    "main.list_pods": (lists(ListKind.PODS, ListKind.NODES, "1"),),
    "main.list_containers": (lists(ListKind.CONTAINERS, ListKind.NODES, "1"),),
    "main.containers": leads(keys("j"), view, View(), CONTAINERS_OF_FIRST),
    "main.next_pane": leads(nothing, focus, "pods", "side-nodes"),
    "main.previous_pane": leads(nothing, focus, "pods", "side-namespaces"),
    "main.sort": leads(nothing, order, (("rank", False), ALL), (("pod", False), sorted(ALL))),
    "main.turn": leads(
        keys("s"), order, (("pod", False), sorted(ALL)), (("pod", True), sorted(ALL, reverse=True))
    ),
    "main.at_risk": (
        Claim(nothing, names, ALL, AT_RISK),
        Claim(keys("z"), names, AT_RISK, ALL),
    ),
    "main.wide": (
        Claim(nothing, columns, FITTING, WIDE),
        Claim(keys("w"), columns, WIDE, FITTING),
    ),
    "main.find": leads(nothing, shown, ("MainScreen", "pods"), ("Finder", "Input")),
    "main.columns": leads(nothing, shown, ("MainScreen", "pods"), ("ColumnsScreen", "LineTable")),
    "main.mark": (
        Claim(keys("j"), marked, ([], 1), ([SECOND], 2)),
        Claim(keys("j", "space", "k"), marked, ([SECOND], 1), ([], 2)),
    ),
    "main.copy": (
        Claim(keys("j"), copied, [], ["POD", SECOND]),
        Claim(keys("space", "space"), copied, [], ["POD", FIRST, SECOND]),
    ),
    "main.export": leads(
        both(typed("slash", text="db-"), keys("enter")), exported, None, DATABASES, follow=keys("enter")
    ),
    "main.notes": leads(
        nothing, together(screen, said(NOTES[1])), ("MainScreen", []), ("TextScreen", [NOTES[1]])
    ),
    "main.back": (
        Claim(keys("tab"), focus, "side-nodes", "pods"),
        Claim(both(typed("slash", text="db-"), keys("enter")), names, DATABASES, ALL),
        Claim(keys("z"), names, AT_RISK, ALL),
        Claim(keys("space"), marked, ([FIRST], 1), ([], 1)),
        Claim(
            keys("1", "j", "enter", "j"),
            together(view, at),
            (View(node="worker-1"), (1, True)),
            (View(ListKind.NODES), (1, True)),
        ),
    ),
    "table.up": moves(5, 4, *"jjjjj"),
    "table.down": moves(1, 2, "j"),
    "table.first": moves(5, 0, *"jjjjj"),
    "table.last": (
        Claim(nothing, at, (0, True), (LAST, True)),
        Claim(keys("1"), at, (0, True), (3, True)),
    ),
    "table.page_up": moves(2 * PAGE + 3, PAGE + 3, "j", "j", "j", "pagedown", "pagedown"),
    "table.page_down": moves(3, PAGE + 3, "j", "j", "j"),
    "table.left": leads(keys("w", "right", "right", "right"), sideways, 24, 16),
    "table.right": leads(keys("w", "right"), sideways, 8, 16),
    "table.select": (
        Claim(keys("1"), view, View(ListKind.NODES), View(node="worker-2")),
        Claim(keys("2"), view, View(ListKind.NAMESPACES), View(namespace="shop")),
        Claim(
            keys("3"), view, View(ListKind.WORKLOADS), View(workload=Workload("Deployment", "shop", "api"))
        ),
        Claim(keys("4", "j"), together(screen, subject), ("MainScreen", ""), ("ExplainScreen", SECOND_POD)),
        Claim(keys("5"), together(screen, subject), ("MainScreen", ""), ("ExplainScreen", API)),
        Claim(keys("tab", "j"), together(focus, view), ("side-nodes", ON_WORKER_2), ("pods", ON_WORKER_2)),
        Claim(keys("shift+tab", "j"), focus, "side-namespaces", "pods"),
    ),
    "prompt.complete": (
        Claim(typed("slash", text="r"), prompt, (True, "/", "r"), (True, "/", "rank:")),
        Claim(typed("slash", "r", "tab", text=""), prompt, (True, "/", "rank:"), (True, "/", "rss:")),
        Claim(typed("colon", text="ns s"), prompt, (True, ":", "ns s"), (True, ":", "ns sandboxed")),
        Claim(
            both(typed("colon", text="ns s"), keys("tab")),
            prompt,
            (True, ":", "ns sandboxed"),
            (True, ":", "ns shop"),
        ),
    ),
    "prompt.earlier": (
        Claim(typed("slash", text="x"), prompt, (True, "/", "x"), (True, "/", "newer")),
        Claim(keys("slash", "up"), prompt, (True, "/", "newer"), (True, "/", "older")),
        Claim(keys("colon"), prompt, (True, ":", ""), (True, ":", "ns shop")),
    ),
    "prompt.later": (
        Claim(keys("slash", "x", "up", "up"), prompt, (True, "/", "older"), (True, "/", "newer")),
        Claim(keys("slash", "x", "up"), prompt, (True, "/", "newer"), (True, "/", "x")),
    ),
    "prompt.leave": (
        Claim(
            typed("slash", text="db-"),
            together(is_asked, names, focus),
            (True, DATABASES, "line"),
            (False, ALL, "pods"),
        ),
        Claim(typed("colon", text="ns"), together(is_asked, focus), (True, "line"), (False, "pods")),
    ),
    "explain.edit": leads(
        keys("j", "d"), together(screen, subject), ("ExplainScreen", SECOND_POD), ("EditScreen", SECOND_POD)
    ),
    "explain.copy": leads(keys("d"), begins("pod shop/api-7d9c5b6f8-x2mzq on worker-2"), False, True),
    "explain.next": (
        Claim(keys("d"), section, 0, 1),
        Claim(keys("d", "tab", "tab"), section, 2, 3),
    ),
    "explain.previous": leads(keys("d", "tab", "tab"), section, 2, 1),
    "explain.fold": (
        Claim(keys("d"), folded, [False] * 7, [True] * 7),
        Claim(keys("d", "z"), folded, [True] * 7, [False] * 7),
    ),
    "explain.back": (
        Claim(keys("j", "d"), together(screen, cursor), ("ExplainScreen", 1), ("MainScreen", 1)),
    ),
    "tree.copy": leads(
        keys("v"), begins("node worker-2, kubelet 1.36, cgroup v2, systemd driver"), False, True
    ),
    "tree.export": leads(keys("v"), has_line("worker-2-cgroups.txt"), None, True, follow=keys("enter")),
    "tree.back": leads(keys("j", "v"), together(screen, cursor), ("TreeScreen", 1), ("MainScreen", 1)),
    "compare.page_up": pages(compared, at_second_page, lambda _: 0, "pagedown"),
    "compare.page_down": pages(compared, at_top, lambda was: min(was.page, was.most)),
    "compare.copy": leads(compared, begins("node worker-2, kubelet 1.36, cgroupVersion=1"), False, True),
    "compare.back": leads(keys("j", "u"), together(screen, cursor), ("CompareScreen", 1), ("MainScreen", 1)),
    "fold.fold": (
        Claim(keys("d", "tab"), folded, [False] * 7, [False, True, *[False] * 5]),
        Claim(keys("d", "z", "tab"), folded, [True] * 7, [True, False, *[True] * 5]),
    ),
    "edit.land": leads(changed, screen, "EditScreen", "ApplyScreen"),
    "edit.outlive": leads(keys("e"), shown, ("EditScreen", "QuantityField"), ("Finder", "Input")),
    "edit.rank": leads(keys("e"), screen, "EditScreen", "AskNumber"),
    "edit.guaranteed": leads(keys("e"), fields, STORED, ["2", "2Gi", "2", "2Gi"]),
    "edit.reset": leads(changed, fields, CHANGED, STORED),
    "edit.below": leads(keys("e", "tab"), field, "requests.memory", "limits.memory"),
    "edit.above": leads(keys("e", "tab", "down"), field, "limits.memory", "requests.memory"),
    "edit.page_up": pages(previewed, at_second_page, lambda _: 0, "pagedown"),
    "edit.page_down": pages(previewed, at_top, lambda was: min(was.page, was.most)),
    "edit.back": (
        Claim(keys("e"), screen, "EditScreen", "MainScreen"),
        Claim(changed, screen, "EditScreen", "Confirm"),
    ),
    "landing.other": leads(strategy_kind, strategy, "in place", "through deployment/api"),
    "landing.previous_way": leads(strategy_kind, strategy, "in place", "through deployment/api"),
    "landing.dry_run": leads(strategy_kind, said("the server accepts it"), [], ["the server accepts it"]),
    "landing.apply": leads(strategy_kind, screen, "ApplyScreen", "ConfirmWrite"),
    "landing.patch": leads(
        strategy_kind, together(screen, shown_text), ("ApplyScreen", "patch"), ("PatchScreen", "patch")
    ),
    "landing.copy": leads(strategy_kind, begins("PATCH /api/v1/namespaces/shop/pods/api-"), False, True),
    "landing.look": leads(stale, screen, "ApplyScreen", "EditScreen"),
    "landing.ours": leads(
        stale, said("keep ours", "the server accepts it"), ["keep ours"], ["the server accepts it"]
    ),
    "landing.back": leads(
        strategy_kind, together(screen, fields), ("ApplyScreen", CHANGED), ("EditScreen", CHANGED)
    ),
    "progress.back": leads(sending, screen, "ProgressScreen", "MainScreen"),
    "undo.open": leads(applied, screen, "UndoScreen", "ApplyScreen"),
    "undo.back": leads(applied, screen, "UndoScreen", "MainScreen"),
    "main.simulate": (opens("SimulationScreen", "node worker-2"),),
    "main.kills": leads(nothing, screen, "MainScreen", "KillsScreen"),
    "simulation.less": leads(simulated, asks, "free 1Gi", "free 896Mi"),
    "simulation.more": leads(simulated, asks, "free 1Gi", "free 1.1Gi"),
    "simulation.far_less": leads(simulated, asks, "free 1Gi", "free 0 B"),
    "simulation.far_more": leads(simulated, asks, "free 1Gi", "free 2Gi"),
    "simulation.least": leads(simulated, asks, "free 1Gi", "free 0 B"),
    "simulation.most": leads(simulated, asks, "free 1Gi", "free 14.8Gi"),
    "simulation.mode": (
        Claim(simulated, said("> free memory", "> pod grows"), ["> free memory"], ["> pod grows"]),
        Claim(
            both(simulated, keys("tab", "tab", "tab")),
            said("> free memory", "> until OOM"),
            ["> until OOM"],
            ["> free memory"],
        ),
    ),
    "simulation.mode_before": leads(
        simulated, said("> free memory", "> until OOM"), ["> free memory"], ["> until OOM"]
    ),
    "simulation.who": leads(simulated, shown, ("SimulationScreen", "VictimTable"), ("Finder", "Input")),
    "simulation.eviction": leads(simulated, said("[x] eviction", "after 1 eviction"), [], EVICTED),
    "simulation.restarts": leads(simulated, said("[x] restarts"), [], ["[x] restarts"]),
    "simulation.explain": leads(
        simulated, together(screen, subject), ("SimulationScreen", "node worker-2"), ("ExplainScreen", API)
    ),
    "simulation.notes": leads(
        simulated, together(screen, said("Notes (esc")), ("SimulationScreen", []), ("TextScreen", NOTED)
    ),
    "simulation.copy": leads(simulated, begins("node worker-2, kubelet 1.36: its pods use"), False, True),
    "simulation.back": leads(simulated, screen, "SimulationScreen", "MainScreen"),
    "kills.explain": leads(
        killed, together(screen, subject), ("KillsScreen", ""), ("ExplainScreen", SECOND_POD)
    ),
    "kills.other": (
        Claim(killed, focus, "LineTable", "TextScroll"),
        Claim(both(killed, keys("tab")), focus, "TextScroll", "LineTable"),
    ),
    "kills.copy": leads(killed, begins("pod batch/crunch-x2k9f, container c on worker-2"), False, True),
    "kills.notes": leads(killed, told, [], [READ]),
    "kills.back": leads(killed, screen, "KillsScreen", "MainScreen"),
    "ask.leave": leads(
        keys("e", "ctrl+n"), together(screen, fields), ("AskNumber", STORED), ("EditScreen", STORED)
    ),
    "patch.other": (
        Claim(patched, shown_text, "patch", "manifest"),
        Claim(both(patched, keys("m")), shown_text, "manifest", "patch"),
    ),
    "patch.copy": (
        Claim(patched, begins("spec:"), False, True),
        Claim(both(patched, keys("m")), begins("kind: Pod"), False, True),
    ),
    "patch.save": leads(
        patched, has_line("api-7d9c5b6f8-x2mzq-patch.yaml", "memory: 1Gi"), None, True, follow=keys("enter")
    ),
    "patch.back": leads(
        patched, together(screen, fields), ("PatchScreen", CHANGED), ("ApplyScreen", CHANGED)
    ),
    "text.up": scrolls(a_line_down, lambda _: 0, "down")[::3],
    "text.down": scrolls(at_top, lambda _: 1)[::3],
    "text.first": scrolls(at_end, lambda _: 0, "G")[::3],
    "text.last": scrolls(at_top, lambda was: was.most),
    "text.page_up": scrolls(at_end, lambda was: max(was.most - was.page, 0), "G")[::3],
    "text.page_down": scrolls(at_top, lambda was: min(was.page, was.most))[::3],
    "save.leave": leads(
        keys("x"), together(screen, file("pods.csv")), ("SaveAs", None), ("MainScreen", None)
    ),
    "confirm.yes": leads(asked, screen, "Confirm", "MainScreen"),
    "confirm.no": leads(asked, together(screen, fields), ("Confirm", CHANGED), ("EditScreen", CHANGED)),
    "finder.above": (
        Claim(keys("f", "down", "down", "down"), at, (3, True), (2, True)),
        Claim(keys("ctrl+p", "down", "down", "down"), at, (3, True), (2, True)),
    ),
    "finder.below": (
        Claim(keys("f", "down"), at, (1, True), (2, True)),
        Claim(keys("ctrl+p", "down"), at, (1, True), (2, True)),
    ),
    "finder.leave": (
        Claim(typed("f", text="db-1"), together(screen, view), ("Finder", View()), ("MainScreen", View())),
        Claim(
            typed("ctrl+p", text="risk"), together(screen, view), ("Palette", View()), ("MainScreen", View())
        ),
    ),
    "columns.show": (
        *choosing(keys("C", "j"), WITHOUT_POD),
        Claim(keys("C", "j", "space", "k"), columns, FITTING, FITTING, follow=keys("enter")),
    ),
    "columns.lower": choosing(keys("C"), ["pod", "rank", *FITTING[2:]]),
    "columns.raise": choosing(keys("C", "j", "j"), ["rank", "node", "pod", *FITTING[3:]]),
    "columns.fitting": leads(
        keys("C", "j", "space", "enter", "C"),
        together(screen, columns),
        ("ColumnsScreen", WITHOUT_POD),
        ("MainScreen", FITTING),
    ),
    "columns.take": leads(
        keys("C", "j", "space"),
        together(screen, columns),
        ("ColumnsScreen", FITTING),
        ("MainScreen", WITHOUT_POD),
    ),
    "columns.leave": leads(
        keys("C", "j", "space"),
        together(screen, columns),
        ("ColumnsScreen", FITTING),
        ("MainScreen", FITTING),
    ),
    "choose.leave": leads(
        both(typed("colon", text="ctx"), keys("enter", "j")),
        together(screen, title),
        ("SelectDialog", "prod"),
        ("MainScreen", "prod"),
    ),
    "sheet.close": (
        Claim(keys("question_mark"), shown, ("TextScreen", "TextScroll"), ("MainScreen", "pods")),
        Claim(keys("n"), shown, ("TextScreen", "TextScroll"), ("MainScreen", "pods")),
    ),
    "app.help": leads(
        nothing,
        together(screen, said("Help (esc closes)")),
        ("MainScreen", []),
        ("TextScreen", ["Help (esc closes)"]),
    ),
    "app.previous": (
        Claim(
            keys("1", "j", "enter"),
            together(view, cursor),
            (View(node="worker-1"), 0),
            (View(ListKind.NODES), 1),
        ),
        Claim(keys("d"), screen, "ExplainScreen", "MainScreen"),
    ),
    "app.next_place": (
        Claim(keys("1", "left_square_bracket"), view, View(), View(ListKind.NODES)),
        Claim(
            keys("j", "d", "escape"),
            together(screen, subject),
            ("MainScreen", ""),
            ("ExplainScreen", SECOND_POD),
        ),
    ),
    "app.refresh": leads(
        keys("j"), together(questions, said("3072Mi")), (1, []), (2, ["3072Mi"]), follow=settled
    ),
    "app.pause": (
        Claim(nothing, state, "live", "paused"),
        Claim(keys("p"), state, "paused", "live"),
    ),
    "app.picture": leads(nothing, pictured, None, True, follow=keys("enter")),
    "app.undo": leads(nothing, screen, "MainScreen", "UndoScreen"),
    "app.theme": (
        *(
            Claim(keys(*"t" * number), theme, name, THEME_NAMES[(number + 1) % len(THEMES)])
            for number, name in enumerate(THEME_NAMES)
        ),
    ),
    "app.command_palette": (
        Claim(nothing, palette, False, True),
        Claim(keys("d"), palette, False, True),
        Claim(keys("e"), palette, False, True),
    ),
    "app.suspend": (
        Claim(nothing, sent, [], [signal.SIGTSTP]),
        Claim(keys("slash", "a"), sent, [], [signal.SIGTSTP]),
    ),
    "app.quit": (
        Claim(nothing, left, False, True),
        Claim(patched, together(left, screen), (False, "PatchScreen"), (False, "Confirm")),
    ),
    "app.interrupt": (
        Claim(nothing, left, False, True),
        Claim(keys("slash", "a"), left, False, True),
        Claim(keys("e"), left, False, True),
        Claim(changed, together(left, screen), (False, "EditScreen"), (False, "Confirm")),
        Claim(asked, left, False, True),
    ),
}


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


@asynccontextmanager
async def come_to(claim: Claim, settings: Settings | None = None) -> AsyncIterator[tuple[Run, Any]]:
    """Where the claim's action is heard, and what is seen there."""
    async with app(settings).run_test(size=claim.size) as pilot:
        await settled(pilot)
        await listed(pilot)
        await claim.come(pilot)
        yield pilot, await seen(pilot, claim.see, claim.before)


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


async def holds(claim: Claim, act: Steps, settings: Settings | None = None) -> None:
    """Come there, act, and see what the claim says."""
    async with come_to(claim, settings) as (pilot, before):
        after = claim.after(before) if callable(claim.after) else claim.after
        await act(pilot)
        if claim.follow is not None:
            await claim.follow(pilot)
        await seen(pilot, claim.see, after)


def by_key(key: str) -> Steps:
    return lambda pilot: press(pilot, key)


def by_foot(action: Action) -> Steps:
    async def steps(pilot: Run) -> None:
        found = [one for one in pilot.app.screen.query(FooterKey) if one.action.endswith(action.verb)]
        assert [one.description for one in found] == [action.label]
        await pilot.click(found[0])
        await pilot.pause()

    return steps


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


def cases(actions: Iterable[Action]) -> list[Any]:
    """The first claim of each of these actions, with its name."""
    return [
        pytest.param(action, claim, id=action.name)
        for action in actions
        for claim in CLAIMS.get(action.name, ())[:1]
    ]


def test_there_is_a_claim_for_every_action_and_for_nothing_else() -> None:
    assert CLAIMS.keys() == {action.name for action in ACTIONS}
    assert all(CLAIMS.values())


@pytest.mark.parametrize(
    ("key", "claim"),
    [
        pytest.param(key, claim, id=f"{action.name}-{number}-{key}")
        for action in ACTIONS
        for place, key in enumerate(action.keys)
        for number, claim in enumerate(CLAIMS.get(action.name, ())[: None if place == 0 else 1], start=1)
    ],
)
async def test_every_key_does_what_is_said_of_it(key: str, claim: Claim) -> None:
    await holds(claim, by_key(key))


@pytest.mark.parametrize(("action", "claim"), cases(action for action in ACTIONS if action.footer))
async def test_what_the_foot_shows_can_be_clicked(action: Action, claim: Claim) -> None:
    await holds(claim, by_foot(action))


@pytest.mark.parametrize(("action", "claim"), cases(action for action in ACTIONS if action.palette))
async def test_the_palette_has_it_by_its_label_with_its_key(action: Action, claim: Claim) -> None:
    await holds(claim, by_palette(action))


REBOUND: Final = (
    "main.turn",
    "table.last",
    "prompt.earlier",
    "explain.fold",
    "tree.copy",
    "compare.copy",
    "fold.fold",
    "edit.reset",
    "landing.copy",
    "progress.back",
    "undo.back",
    "simulation.restarts",
    "kills.copy",
    "ask.leave",
    "patch.other",
    "app.theme",
    "text.last",
    "save.leave",
    "confirm.no",
    "finder.leave",
    "columns.lower",
    "choose.leave",
    "sheet.close",
)


def test_an_action_of_every_room_gets_another_key() -> None:
    assert {ACTION[name].room for name in REBOUND} == set(BindingGroup)


@pytest.mark.parametrize("name", REBOUND)
async def test_another_key_does_it_and_the_old_ones_do_not(name: str) -> None:
    said = Settings(keys={name: (OTHER_KEY,)})
    claim = CLAIMS[name][0]
    await holds(claim, by_key(OTHER_KEY), said)
    async with come_to(claim, said) as (pilot, before):
        for key in ACTION[name].keys:
            await press(pilot, key)
            assert claim.see(pilot) == before


LISTS = ("1", "2", "3", "4", "5")
WHEEL: Final = 2
"""So many lines a notch of the wheel scrolls."""


@asynccontextmanager
async def list_of(key: str) -> AsyncIterator[tuple[Run, ListTable]]:
    """One of the lists, in a terminal that does not have the room for all of its lines."""
    async with app().run_test(size=(140, 15)) as pilot:
        await settled(pilot)
        await keys(key)(pilot)
        found = main_of(pilot).table
        assert len(found.rows) >= 4
        yield pilot, found


@pytest.mark.parametrize("key", LISTS)
async def test_a_click_takes_a_row_and_a_second_one_opens_it(key: str) -> None:
    async with list_of(key) as (pilot, found):
        assert at(pilot) == (0, True)
        await pilot.click(found, offset=(9, 1 + HEADER + 2))
        await pilot.pause()
        assert at(pilot) == (2, True)
        assert found.row is found.rows[2]
        row = found.rows[1]
        wanted = found.listing.opened(view(pilot), row)
        await pilot.click(found, offset=(9, 1 + HEADER + 1), times=2)
        await listed(pilot)
        if wanted is None:
            await seen(pilot, screen, "ExplainScreen")
            assert row.name in words(pilot)
        else:
            await seen(pilot, view, wanted)


@pytest.mark.parametrize("key", LISTS[1:])
async def test_the_wheel_scrolls_and_leaves_the_cursor(key: str) -> None:
    async with list_of(key) as (pilot, found):
        before = found.render_line(HEADER).text
        await wheel(pilot, events.MouseScrollDown, found)
        assert found.scroll_offset.y == WHEEL
        assert found.cursor == 0
        assert found.render_line(HEADER).text != before
        await wheel(pilot, events.MouseScrollUp, found)
        assert found.render_line(HEADER).text == before


@pytest.mark.parametrize("key", LISTS)
async def test_a_click_on_a_header_sorts_and_a_second_one_turns(key: str) -> None:
    async with list_of(key) as (pilot, found):
        given = list(found.rows)
        for number, column in enumerate(found.columns.columns):
            if column.key == found.listing.natural:
                continue
            await pilot.click(found, offset=(begin_of(found, number), 1))
            await pilot.pause()
            assert found.sorted_by == (column.key, False)
            assert list(found.rows) == sorted(given, key=column.sort_key)
            assert f"{column.header}▼" in found.render_line(0).text
            assert f"by {column.header}" in str(found.border_title)
            await pilot.click(found, offset=(begin_of(found, number), 1))
            await pilot.pause()
            assert found.sorted_by == (column.key, True)
            assert f"{column.header}▲" in found.render_line(0).text
            assert [column.sort_key(row) for row in found.rows] == sorted(
                map(column.sort_key, given), reverse=True
            )
            break


@pytest.mark.parametrize("key", LISTS)
async def test_an_edge_is_drawn_and_given_back(key: str) -> None:
    async with list_of(key) as (pilot, found):
        before = found.render_line(0).text
        width, edge = found.columns.widths[0], begin_of(found, 1) - 1
        await pilot.mouse_down(found, offset=(edge, 1))
        await pilot.hover(found, offset=(edge + 4, 1))
        await pilot.mouse_up(found, offset=(edge + 4, 1))
        await pilot.pause()
        assert found.columns.widths[0] == width + 4
        assert found.widths == {found.columns.columns[0].key: width + 4}
        assert found.render_line(0).text != before
        assert found.sorted_by == (found.listing.natural, False)
        await pilot.click(found, offset=(edge + 4, 1), times=2)
        await pilot.pause()
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


@pytest.mark.parametrize(
    "come",
    [keys("v", "g"), keys("question_mark"), keys("d"), compared, previewed],
    ids=["tree", "help", "explain", "compare", "edit"],
)
async def test_the_wheel_scrolls_texts(come: Steps) -> None:
    async with app().run_test(size=(80, 16)) as pilot:
        await settled(pilot)
        await come(pilot)
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


@pytest.mark.parametrize(("button", "where"), [("#no", "EditScreen"), ("#yes", "MainScreen")])
async def test_the_buttons_of_a_question_can_be_clicked(button: str, where: str) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await settled(pilot)
        await asked(pilot)
        await pilot.click(button)
        await seen(pilot, screen, where)


def begin_of(found: ListTable, number: int) -> int:
    """The first cell of a column on the screen."""
    return GUTTER + sum(width + GAP for width in found.columns.widths[:number])


async def wheel(pilot: Run, event: type[events.MouseEvent], widget: Widget) -> None:
    await pilot._post_mouse_events([event], widget, offset=(9, 4))
    await pilot.pause()
