"""The lists of nodes, namespaces, workloads, pods and containers, and the ways between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.widgets import Label, Static

from kubectl_qos.analysis.deaths import DeathRow, deaths_on_node
from kubectl_qos.analysis.group_table import NodeRow, build_node_rows
from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.output import table
from kubectl_qos.tui.lists.base import ListDefinition, export_rows
from kubectl_qos.tui.lists.clusters import ClusterPoller
from kubectl_qos.tui.lists.groups import NodeList
from kubectl_qos.tui.lists.panes import ExplanationPanel, NodePanel
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.screens.dialogs import SaveAs
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import CompareScreen, TreeScreen
from kubectl_qos.tui.view import ListKind, View, ended_pods
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.demo.living import FULL_AT, Stepped
from tests.tui.sources import (
    Run,
    ScriptedSource,
    demo,
    node_after_node,
    one_cluster,
    renamed,
    running,
    with_usage,
    without,
)

GIB = 1 << 30
KEYS = {
    "1": ListKind.NODES,
    "2": ListKind.NAMESPACES,
    "3": ListKind.WORKLOADS,
    "4": ListKind.PODS,
    "5": ListKind.CONTAINERS,
    "6": ListKind.DEATHS,
}
ROWS = node_after_node(build_rows(demo(), Scope()).rows)
CONTAINERS = node_after_node(build_rows(demo(), Scope(), containers=True).rows)
DEATHS = [
    DeathRow(node, death)
    for node in sorted({row.node for row in ROWS if row.node})
    for death in deaths_on_node(demo(), node).deaths
]
ALONE = {ListKind.NODES, ListKind.NAMESPACES}
IMPORTER = ("data", "importer-5f7b9c-2vtxk")


@pytest.fixture
async def wide() -> AsyncIterator[Run]:
    async with running() as found:
        yield found


async def to(pilot: Run, *keys: str) -> MainScreen:
    """Press keys, each after what the one before has listed."""
    await pilot.press_each(*keys)
    return pilot.main


def death_key(row: DeathRow) -> Any:
    return row.node, row.death.mechanism, row.death.key, row.death.container


def keys_of(pilot: Run) -> list[Any]:
    """What is listed, from the top."""
    screen = pilot.main
    return [screen.definition.key(row) for row in screen.table.rows]


def at(pilot: Run) -> Any:
    """What the cursor is on."""
    screen = pilot.main
    return screen.definition.key(screen.table.row) if screen.table.row is not None else None


def why(pilot: Run) -> str:
    return " ".join(line.text for line in pilot.main.query_one(ExplanationPanel).text_lines(300))


def title(pilot: Run) -> str:
    return str(pilot.main.table.border_title)


def counted(kind: ListKind, rows: Collection[Any]) -> str:
    """As the title counts them: pods that have ended apart, as the line above does not count them."""
    ended = sum(row.ended for row in rows) if kind is ListKind.PODS else 0
    return f"{len(rows) - ended} {kind}{f', {ended} ended' if ended else ''}"


def expected(kind: ListKind) -> set[Any]:
    """What the whole demo has of a kind."""
    found: dict[ListKind, set[Any]] = {
        ListKind.NODES: {row.node for row in ROWS if row.node},
        ListKind.NAMESPACES: {row.pod.namespace for row in ROWS},
        ListKind.WORKLOADS: {find_workload(row.pod) for row in ROWS},
        ListKind.PODS: {row.key for row in ROWS},
        ListKind.CONTAINERS: {row.key for row in CONTAINERS},
        ListKind.DEATHS: {death_key(row) for row in DEATHS},
    }
    return found[kind]


async def test_every_list_and_the_headline_begin_with_who_dies_first() -> None:
    async with running(at_first=False) as pilot:
        first = "data/importer-5f7b9c-2vtxk:c on worker-2 dies next: own limit 98%, +2Mi"
        assert first in pilot.text.splitlines()[2]
        assert at(pilot) == (*IMPORTER, "")
        assert why(pilot).startswith("data/importer-5f7b9c-2vtxk:c dies next: own limit 98%, +2Mi")
        for key, row in {
            "1": "worker-2",
            "2": "data",
            "3": Workload("Deployment", "data", "importer"),
            "5": (*IMPORTER, "c"),
            "6": ("worker-2", "pod limit", IMPORTER, "c"),
        }.items():
            await to(pilot, key)
            assert at(pilot) == row
            assert "data/importer-5f7b9c-2vtxk:c dies next" in why(pilot)
            assert first in pilot.text, "of all nodes, whatever the row"
        await to(pilot, "4", "tab", "j", "j")
        assert pilot.main.view.node == "worker-1"
        assert at(pilot)[1].startswith("promo-"), "a node that is chosen begins with its own"
        assert f"! sooner  {first}" in pilot.text


async def test_among_many_nodes_the_list_begins_with_the_death_of_its_headline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubectl_qos.tui.view_model.FEW_NODES", 1)
    async with running(at_first=False) as pilot:
        await pilot.seen("data/importer-5f7b9c-2vtxk:c on worker-2 dies next")
        assert at(pilot) == (*IMPORTER, "")


async def test_the_panel_has_the_same_lines_whatever_the_data(wide: Run) -> None:
    for size, lines in (((120, 40), 10), ((80, 24), 7), ((60, 15), 2)):
        await wide.resize_terminal(*size)
        for key in ("4", "tab", "j", "j", "j", "j"):
            await wide.keys(key)
            assert wide.main.query_one(NodePanel).outer_size.height == lines, (size, key)


async def test_a_fix_is_searched_again_after_a_dialog_that_closed_dropped_the_search() -> None:
    async with running(size=(120, 40)) as pilot:
        panel, line = pilot.main.query_one(NodePanel), pilot.main.query_one("#fix", Static)
        await pilot.seen(fix := "F fix container c: memory limit 117.7Mi → 144Mi")
        of_deaths, suggestion = panel._suggested.pop("worker-2")

        def show_without_search() -> None:
            with pytest.MonkeyPatch.context() as dropping:
                dropping.setattr(NodePanel, "call_after_refresh", lambda *_: True)
                pilot.main._show_explanation()

        show_without_search()
        assert not line.content
        pilot.main._show_explanation()
        await pilot.seen(fix)
        panel._suggested["worker-2"] = of_deaths._replace(deaths=of_deaths.deaths[1:]), suggestion
        show_without_search()
        assert not line.content, "the fix of another death"


async def test_a_death_is_shown_counted_and_highlighted() -> None:
    source = ScriptedSource(Stepped(FULL_AT - 1).snapshot(Scope()), Stepped(FULL_AT + 4).snapshot(Scope()))
    async with running(source) as pilot:
        assert "deaths in" not in pilot.text
        assert not pilot.main.query_one("#elsewhere").has_class("-died")
        await pilot.refresh()
        died = "data/importer-5f7b9c-2vtxk:c"
        await pilot.seen(f"K why 12:00:41 {died} own limit")
        assert pilot.main.query_one("#elsewhere").has_class("-died")
        assert "  scripted  1 death in 5m  4 nodes  58 pods  " in pilot.text.splitlines()[0]
        row = next(row for row in pilot.main.table.rows if row.key[:2] == IMPORTER)
        assert pilot.main.table._token_for(row, "pod") == "error"


def next_of(node: str) -> set[tuple[str, str]]:
    """The nearest death on a node, and that by each killer of the whole node."""
    if not node:
        return set()
    deaths = deaths_on_node(demo(), node).deaths
    return {death.key for death in deaths if death is deaths[0] or death.killer.is_node_wide}


async def test_i_lists_the_containers_inside(wide: Run) -> None:
    row = next(row for row in ROWS if len([one for one in CONTAINERS if one.name == row.name]) > 2)
    wide.main.table.move_to(row.key)
    screen = await to(wide, "i")
    pod = row.pod.namespace, row.name
    assert screen.view == View(ListKind.CONTAINERS, row.node, row.pod.namespace, pod=pod)
    assert keys_of(wide) == [one.key for one in CONTAINERS if one.key[:2] == pod]
    assert title(wide).startswith(f"{row.node} / {row.pod.namespace} / {row.name}  ")
    await to(wide, "i")
    assert screen.view.pod == pod, "of a container, those of its pod"
    await to(wide, "1", "i")
    assert screen.view.pod == IMPORTER, "of a node, those of the first to die"


async def test_bars_are_painted_in_the_colours_of_the_classes_and_a_container_by_its_rank(wide: Run) -> None:
    screen = await to(wide, "1")
    column = screen.table.columns.column("memory")
    assert column is not None
    row = next(row for row in screen.table.rows if row.name == "worker-2")
    token = screen.table._token_for(row, "memory")
    text, begin = column.cell(row, DEMO_TIME), 0
    signs = {"filled": "█G", "calm": "▓B", "warning": "░E", "muted": " ·"}
    assert not isinstance(token, str)
    for length, style in token:
        assert set(text[begin : begin + length]) <= set(signs[style.removeprefix("inverse ")])
        begin += length
    assert begin == len(text)
    assert text in wide.text
    # A container is judged by its own rank, and a filter does not promise all.
    await to(wide, *["escape"] * 5, "4", "g")
    screen = await to(wide, "5")
    row = next(row for row in screen.table.rows if row.rank and row.rank > 5 and not row.tied)
    screen.table.move_to(row.key)
    await wide.pause()
    said = f"container {row.container} of {row.pod.namespace}/{row.name}: rank {row.rank} among"
    assert why(wide).startswith(said), "judged by its own rank"
    await to(wide, "4", "z")
    await wide.filter_by("untrusted")
    assert "No pod at risk matches untrusted. esc clears the filter." in wide.text


def test_a_row_of_a_list_of_groups_opens_its_pods() -> None:
    for kind, restriction in (
        (ListKind.NODES, "node"),
        (ListKind.NAMESPACES, "namespace"),
        (ListKind.WORKLOADS, "workload"),
    ):
        listing, rows = listed(kind, facts_for())
        opened = listing.opened(View(kind), rows[2])
        assert opened is not None
        assert (opened.kind, getattr(opened, restriction)) == (ListKind.PODS, listing.key(rows[2]))


async def test_the_other_lists_are_of_the_node_and_namespace_that_are_chosen(wide: Run) -> None:
    await to(wide, "1", "enter", "3")
    of_node = [row for row in ROWS if row.node == "worker-2"]
    assert set(keys_of(wide)) == {find_workload(row.pod) for row in of_node}
    await to(wide, "5")
    assert keys_of(wide) == [row.key for row in CONTAINERS if row.node == "worker-2"]
    await to(wide, "tab", "tab", "j", "enter")
    assert wide.main.view == View(ListKind.CONTAINERS, "worker-2", "batch")
    assert keys_of(wide) == [
        row.key for row in CONTAINERS if (row.node, row.pod.namespace) == ("worker-2", "batch")
    ]
    await to(wide, "4")
    assert wide.main.view == View(node="worker-2", namespace="batch")
    await to(wide, "2")
    assert set(keys_of(wide)) == expected(ListKind.NAMESPACES)
    await to(wide, "4")
    assert wide.main.view == View()


def placed(pilot: Run) -> tuple[View, Any, Any, Any]:
    """Where we are: the view and what all three cursors are on."""
    screen = pilot.main
    if screen.view.kind in ALONE:
        return screen.view, at(pilot), None, None
    nodes, namespaces = screen.side.nodes.row, screen.side.namespaces.row
    return screen.view, at(pilot), nodes and nodes.key, namespaces and namespaces.key


async def test_back_is_on_the_row_where_the_cursor_was(wide: Run) -> None:
    for key, into in (("1", "enter"), ("2", "enter"), ("3", "enter"), ("4", "i")):
        await to(wide, key, "j", "j")
        place = wide.main.view, at(wide)
        for back in ("left_square_bracket", "escape"):
            await to(wide, into, back)
            assert (wide.main.view, at(wide)) == place
    await to(wide, "1", "j", "enter", "left_square_bracket", "left_square_bracket")
    assert (wide.main.view, at(wide)) == place


async def test_moving_filtering_and_risk_belong_to_the_place(wide: Run) -> None:
    screen = await to(wide, "tab", "j", "j", "j", "k")
    assert screen.view.node == "worker-1"
    await to(wide, "tab", "j", "j")
    chosen = screen.view
    assert chosen.namespace is not None
    await to(wide, "enter", "left_square_bracket")
    assert screen.view == View()
    assert (screen.side.nodes.cursor, screen.side.namespaces.cursor) == (0, 0)
    await to(wide, "right_square_bracket")
    assert placed(wide)[0] == chosen
    assert placed(wide)[2:] == (chosen.node, chosen.namespace)
    await to(wide, "tab", "j", "enter", "left_square_bracket")
    assert screen.view == chosen, "another visit to the panes is another step"
    # A filter and only at risk belong to the place.
    await to(wide, *["escape"] * 5, "4", "g")
    await to(wide, "slash")
    await wide.type("shop")
    await to(wide, "enter", "z")
    view, shown = wide.main.view, wide.names
    assert (view.filter.text, view.at_risk) == ("shop", True)
    await to(wide, "1", "enter")
    assert wide.main.view == View(node="worker-2")
    await to(wide, "left_square_bracket", "left_square_bracket")
    assert (wide.main.view, wide.names) == (view, shown)
    await to(wide, "escape", "escape")
    assert wide.main.view == View(), "first the filter goes, then only at risk"


SCREENS = {"v": TreeScreen, "u": CompareScreen}


async def test_back_and_forward_through_screens(wide: Run) -> None:
    await to(wide, "1", "enter", "j", "j")
    place = placed(wide)
    for key, kind in SCREENS.items():
        await to(wide, key)
        assert isinstance(wide.app.screen, kind)
        text = wide.text
        await to(wide, "escape")
        assert placed(wide) == place
        assert isinstance(wide.app.screen, MainScreen)
        await to(wide, "right_square_bracket")
        assert isinstance(wide.app.screen, kind)
        assert wide.text == text
        await to(wide, "escape")
        assert placed(wide) == place
    await to(wide, "left_square_bracket")
    assert placed(wide)[0] == View(ListKind.NODES)
    # Back and forward through two screens.
    await to(wide, "escape", "escape")
    await to(wide, "d", "e")
    assert isinstance(wide.app.screen, EditScreen)
    await to(wide, "escape")
    assert isinstance(wide.app.screen, ExplainScreen)
    await to(wide, "left_square_bracket")
    assert isinstance(wide.app.screen, MainScreen)
    await to(wide, "right_square_bracket", "right_square_bracket")
    assert isinstance(wide.app.screen, EditScreen)
    await to(wide, "escape", "escape")
    assert isinstance(wide.app.screen, MainScreen)
    assert len(wide.app.screen_stack) == 1


async def test_order_and_risk_in_every_list(wide: Run) -> None:
    for key, kind in KEYS.items():
        screen = await to(wide, key)
        table, natural = screen.table, keys_of(wide)
        fitting = {column.key for column in table.columns.columns}
        await to(wide, "w")
        assert {column.key for column in table.columns.columns} > fitting
        await to(wide, "w", "s")
        columns = [column.key for column in table.columns.columns]
        by, _ = table.sorted_by
        every = list(screen.definition.columns)
        after = every[every.index(screen.definition.natural) + 1 :]
        assert by == next(key for key in after if key in columns)
        column = screen.definition.columns[by]
        ordered = [column.sort_key(row) for row in table.rows]
        assert ordered == sorted(ordered)
        assert f"by {column.header}" in title(wide)
        await to(wide, "S")
        assert [column.sort_key(row) for row in table.rows] == sorted(ordered, reverse=True)
        assert f"by {column.header} reversed" in title(wide)
        table.sort_by(screen.definition.natural)
        assert keys_of(wide) == natural, kind
    # Only those at risk.

    def is_risky(row: PodRow) -> bool:
        has_flag = "NEAR-LIMIT" in row.flags
        has_flag |= row.adj != -997 and bool({"PRIORITY", "OVER-REQUEST"} & set(row.flags))
        return has_flag or row.key[:2] in next_of(row.node)

    risky = {row.key for row in ROWS if is_risky(row)}
    pods = [row for row in ROWS if row.key in risky]
    wanted: dict[ListKind, set[Any]] = {
        ListKind.NODES: {
            row.name
            for row in build_node_rows(demo(), lambda *_: True).rows
            if row.bad_conditions or (row.worst_percent or 0) > 100
        },
        ListKind.NAMESPACES: {row.pod.namespace for row in pods},
        ListKind.WORKLOADS: {find_workload(row.pod) for row in pods},
        ListKind.PODS: risky,
        ListKind.CONTAINERS: {row.key for row in CONTAINERS if is_risky(row)},
        ListKind.DEATHS: {death_key(row) for row in DEATHS if not row.is_far},
    }
    for key, kind in KEYS.items():
        await to(wide, key, "z")
        assert set(keys_of(wide)) == wanted[kind] <= expected(kind)
        assert "only at risk" in title(wide)
        await to(wide, "z")
        assert set(keys_of(wide)) == expected(kind)


async def save(pilot: Run, key: str, path: Path, *, twice: bool = False) -> None:
    await pilot.keys(key)
    assert isinstance(pilot.app.screen, SaveAs)
    await pilot.put(str(path))
    await pilot.keys(*["enter"] * (1 + twice))
    await pilot.until(lambda: isinstance(pilot.app.screen, MainScreen))


async def test_every_list_is_copied_and_exported_as_it_is_shown(wide: Run, tmp_path: Path) -> None:
    for (key, kind), extension in zip(
        KEYS.items(), ("csv", "json", "yaml", "csv", "json", "txt"), strict=True
    ):
        screen = await to(wide, key, "j", "space", "space", "c")
        rows, columns = screen.table.rows, screen.table.shown_columns
        assert wide.app.clipboard.splitlines() == list(table(rows[1:3], columns, DEMO_TIME))
        await to(wide, "escape", "c", "g")
        assert len(wide.app.clipboard.splitlines()) == 2
        path = tmp_path / f"{kind}.{extension}"
        await save(wide, "x", path)
        notes = screen.notes_now()
        exported = export_rows(path, kind=kind, rows=rows, columns=columns, notes=notes, now=DEMO_TIME)
        assert path.read_text() == exported
    text = wide.text
    await save(wide, "X", tmp_path / "deaths.txt", twice=True)
    assert (tmp_path / "deaths.txt").read_text() == f"{text}\n"
    await save(wide, "X", tmp_path / "deaths.svg")
    assert (tmp_path / "deaths.svg").read_text().startswith("<svg")
    assert "worker-2" in (tmp_path / "deaths.svg").read_text()
    await wide.keys("x")
    for name in ("out", "out.xml", ".csv", "out.csv.gz"):
        await wide.put(str(tmp_path / name))
        await wide.keys("enter")
        assert isinstance(wide.app.screen, SaveAs)
        said = str(wide.app.screen.query_one("#finding", Label).render())
        assert said == f"! {name}: the extension chooses the format: end it in .csv, .json, .yaml or .txt"


async def test_every_list_follows_new_facts_with_the_cursor_on_its_row() -> None:
    before = demo()
    after = without(with_usage(before, "thumbs-", 6 * GIB), "web-5d4f8c-8szcd")
    async with running(ScriptedSource(*[before, after] * len(KEYS))) as pilot:
        for key, kind in KEYS.items():
            screen = await to(pilot, key, "j", "j", "space", "k")
            row, marked, rows = at(pilot), screen.table.marked, list(screen.table.rows)
            await pilot.refresh()
            await pilot.listed()
            assert at(pilot) == row
            assert screen.table.marked == marked
            assert list(screen.table.rows) == list(listed(kind, facts_for(snapshot=after))[1])
            assert list(screen.table.rows) != rows, kind
            assert counted(kind, screen.table.rows) in title(pilot)
            await pilot.refresh()


def listed(kind: ListKind, view_model: ViewModel) -> tuple[ListDefinition[Any], Sequence[Any]]:
    """A list and its rows."""
    listing = list_definitions(Trends())[kind]
    return listing, listing.build(view_model, View(kind), None).rows


def explained(listing: ListDefinition[Any], row: Any, view_model: ViewModel) -> str:
    return " ".join(line.text for line in listing.panel(row, view_model)(200))


def test_only_the_headlines_death_is_next_in_the_panel() -> None:
    view_model = facts_for()
    view_model.compute_deaths()
    pods = list_definitions(Trends(), lambda: view_model)[ListKind.PODS]
    for name, words in (
        ("importer-", "data/importer-5f7b9c-2vtxk:c dies next: own limit 98%, +2Mi"),
        ("promo-", "shop/promo-7c4b-l9dk2:c dies at +3Mi: own limit 95%"),
        ("db-2", "data/db-2:a dies at +706Mi: own limit 83%"),
    ):
        row = next(row for row in view_model.rows.rows if row.name.startswith(name))
        said = explained(pods, row, view_model)
        assert said.startswith(words)
        assert ("also at +38Mi (b: own limit 70%)" in said) == (name == "db-2")


def facts_for(scope: Scope | None = None, snapshot: Snapshot | None = None) -> ViewModel:
    return build_view_model(snapshot or demo(), scope or Scope(), DEMO_TIME)


@pytest.mark.parametrize("kind", list(ListKind))
def test_rows_of_an_older_view_model_are_explained_when_their_pods_and_nodes_are_gone(kind: ListKind) -> None:
    listing, rows = listed(kind, facts_for())
    without_node = replace(
        demo(),
        pods=tuple(pod for pod in demo().pods if pod.node_name != "worker-2"),
        nodes={name: node for name, node in demo().nodes.items() if name != "worker-2"},
    )
    one_less = without(demo(), "api-7d9c5b6f8-x2mzq")
    for snapshot in (without_node, one_less, replace(demo(), pods=())):
        view_model = facts_for(snapshot=snapshot)
        for row in rows:
            if kind is ListKind.PODS and row.node not in view_model.rows.nodes:
                continue  # their list is never older than the view_model
            assert explained(listing, row, view_model)
            pod = listing.pod_of(row, view_model)
            if pod is not None and kind is not ListKind.PODS:
                assert view_model.pod_of(pod) in snapshot.pods
            listing.node_of(row)


@pytest.mark.parametrize(
    "scope", [Scope(namespace="shop"), Scope(node="worker-1"), Scope(selector=Selector.parse("app=db"))]
)
def test_lists_of_a_part_of_the_cluster_hold_no_other_pods(scope: Scope) -> None:
    view_model = facts_for(scope)
    pods = {row.key for row in view_model.rows.rows}
    living = len(pods) - ended_pods(View(), view_model, view_model.rows.rows)
    assert 0 < living < 58
    _, found = listed(ListKind.CONTAINERS, view_model)
    assert {(*row.key[:2], "") for row in found} == pods
    for kind in (ListKind.NAMESPACES, ListKind.WORKLOADS):
        assert sum(row.pods for row in listed(kind, view_model)[1]) == living


async def test_the_title_names_what_alone_was_read() -> None:
    async with running(scope=Scope(namespace="shop", node="worker-1")) as pilot:
        assert title(pilot).startswith("worker-1 / shop  ")


def test_the_next_victim_of_a_node_is_named_even_outside_the_scope() -> None:
    view_model = facts_for(Scope(namespace="data"))
    nodes, rows = listed(ListKind.NODES, view_model)
    row = next(row for row in rows if row.name == "worker-2")
    said = explained(nodes, row, view_model)
    assert said.startswith("worker-2: data/importer-5f7b9c-2vtxk:c dies next: own limit 98%, +2Mi")
    assert "worker-2: if memory runs out, first to die: shop/api-7d9c5b6f8-x2mzq (1390, B)" in said
    assert " then " not in said, "who comes after it is not known among all of them"
    pod = nodes.pod_of(row, view_model)
    assert pod is not None
    assert pod.key[:2] == IMPORTER
    assert nodes.pod_of(row, facts_for(Scope(namespace="ml"))) is None


def test_a_narrow_next_death_keeps_its_killer_and_its_time() -> None:
    view_model = facts_for()
    nodes, rows = listed(ListKind.NODES, view_model)
    row = next(row for row in rows if row.name == "worker-2")
    assert row.death is not None
    soon = replace(row, death=row.death._replace(seconds=7.0))
    layout = nodes.layout(View(ListKind.NODES), None, [soon, *rows[1:]], DEMO_TIME, 78)
    cell = layout.columns[-1].cell(soon, DEMO_TIME)
    assert cell.startswith("+2Mi data/")
    assert cell.endswith(":c, own limit 98%, ~7 s")
    assert len(cell) <= layout.widths[-1]
    soon = replace(soon, name="ip-10-1-140-17.eu-central-1.compute.internal")
    layout = nodes.layout(View(ListKind.NODES), None, [soon, *rows[1:]], DEMO_TIME, 118)
    assert (
        layout.columns[-1].cell(soon, DEMO_TIME).endswith("data/importer-5f7b9c-2vtxk:c, own limit 98%, ~7 s")
    )


def test_a_very_long_name_leaves_the_panel_room_for_the_answer() -> None:
    pod = "n" * 200
    view_model = facts_for(snapshot=renamed(demo(), "importer", pod))
    listing, rows = listed(ListKind.PODS, view_model)
    text = explained(listing, next(row for row in rows if row.name.startswith("n" * 100)), view_model)
    assert "n…n" in text
    assert "n" * 100 not in text


def further(nodes: NodeList, row: NodeRow, height: int, width: int) -> list[str]:
    """The lines of a row after the first one."""
    layout = nodes.layout(View(ListKind.NODES), None, [row], DEMO_TIME, width)
    return [
        "".join(text for text, _ in nodes.row_line(row, number, height, layout, width)).rstrip()
        for number in range(1, height)
    ]


@pytest.mark.parametrize("width", [78, 118, 198])
def test_a_tall_row_of_a_node_has_its_graph_and_more_of_its_deaths(width: int) -> None:
    trends, snapshot = Trends(), demo()
    later = with_usage(snapshot, "crunch-", 3 << 30)
    for one in (snapshot, later):
        trends.with_rates(one)
    view_model = facts_for(snapshot=later)
    nodes = NodeList(trends, lambda: view_model)
    row = next(row for row in build_node_rows(later, lambda *_: True).rows if row.name == "worker-2")
    low, tall = further(nodes, row, 4, width), further(nodes, row, 8, width)
    assert sum(" kubelet evicts" in line and "┄" in line for line in tall) == 1
    assert sum("█" in line for line in tall) > sum("█" in line for line in low) or width == 78
    assert sum("+" in line for line in tall) > sum("+" in line for line in low) or width == 78
    assert low[-1] == tall[-1] == "", "rows are separated"


def test_a_node_of_unknown_usage_has_no_ends_of_a_bar() -> None:
    view_model = facts_for(snapshot=replace(demo(), usage={}, node_usage={}))
    nodes = NodeList(Trends(), lambda: view_model)
    rows = build_node_rows(view_model.snapshot, lambda *_: True).rows
    assert all("▲" not in line for row in rows for line in further(nodes, row, 4, 118))


def test_the_deaths_of_a_single_node_do_not_name_it() -> None:
    snapshot = demo()
    single = replace(
        snapshot, nodes={"worker-2": snapshot.nodes["worker-2"]}, pods=snapshot.by_node()["worker-2"]
    )
    for one, is_named in ((snapshot, True), (single, False)):
        deaths = list_definitions(Trends(), partial(facts_for, None, one))[ListKind.DEATHS]
        assert ("node" in deaths.default_columns(View(ListKind.DEATHS))) is is_named


def test_files_are_no_live_cluster() -> None:
    source = ScriptedSource(demo())
    poller = ClusterPoller(cast("Any", SimpleNamespace(source=source)), cast("Any", None))
    poller._rows[source.title] = replace(one_cluster(source.title, demo()).rows[0], taken=DEMO_TIME)
    assert [row.is_open for row in poller.rows().rows] == [source.is_live]
    source.is_live = not source.is_live
    assert [row.is_open for row in poller.rows().rows] == [source.is_live]


def test_a_node_without_a_next_victim_says_so() -> None:
    for snapshot, why in (
        (replace(demo(), pods=()), "it has no pods"),
        (replace(demo(), nodes={}, usage={}, node_usage={}), "the kill order is unknown"),
    ):
        view_model = facts_for(snapshot=snapshot)
        nodes, rows = listed(ListKind.NODES, view_model)
        for row in rows:
            if row.victim is None:
                assert f"{row.name}: {why}" in explained(nodes, row, view_model)
                assert nodes.pod_of(row, view_model) is None


@pytest.mark.parametrize("available", [58, 78, 89, 118, 150, 198, 300])
@pytest.mark.parametrize("usage", [True, False])
def test_the_columns_of_every_list_fit_with_and_without_usage(available: int, usage: bool) -> None:
    snapshot = demo() if usage else replace(demo(), usage={}, node_usage={})
    for kind in ListKind:
        listing, rows = listed(kind, facts_for(snapshot=snapshot))
        layout = listing.layout(View(kind), None, rows, DEMO_TIME, available)
        assert layout.line_width <= available
        for column, width in zip(layout.columns, layout.widths, strict=True):
            for row in rows:
                token = listing.token(row, column.key, column.width)
                if not isinstance(token, str):
                    assert sum(length for length, _ in token) in {0, len(column.cell(row, DEMO_TIME)), width}
        if kind is ListKind.NODES:
            memory = layout.widths[[column.key for column in layout.columns].index("memory")]
            assert memory >= 20 if usage else memory == len("MEMORY")


async def test_forward_to_a_pod_that_is_gone_says_so_and_stays() -> None:
    async with running(ScriptedSource(demo(), without(demo(), "db-0"))) as pilot:
        pilot.main.table.move_to(("data", "db-0", ""))
        await to(pilot, "d", "escape", "r")
        await pilot.settled()
        for _ in range(2):
            await to(pilot, "right_square_bracket")
            assert isinstance(pilot.app.screen, MainScreen)
            assert pilot.notifications[-1] == "that pod is gone"
        await to(pilot, "j", "d")
        assert isinstance(pilot.app.screen, ExplainScreen)
        await to(pilot, "escape", "left_square_bracket")
        assert isinstance(pilot.app.screen, MainScreen)
        assert pilot.main.view == View()


async def test_marks_are_counted_and_hidden_ones_never_give_way_to_the_cursor(wide: Run) -> None:
    await wide.keys("space", "space")
    assert "58 pods, 2 ended  2 marked  in kill order" in wide.text
    await wide.filter_by("warehouse")
    await wide.keys("c")
    assert wide.notifications[-1] == "no marked row is shown; esc unmarks all"
    assert wide.qos.clipboard == ""
    await wide.keys("escape")
    await wide.filter_by("crunch")
    await wide.keys("c")
    assert wide.notifications[-1].startswith("copied 1 row of 2 marked")
    await wide.keys("escape", "escape")
    assert "marked" not in wide.text.splitlines()[2]
