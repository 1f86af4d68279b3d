from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from msgspec.structs import replace

from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.format import shortened
from kubectl_qos.present.output import Align, Needs, column
from kubectl_qos.present.pod_columns import WIDE_KEYS, keys_that_need
from kubectl_qos.tui.lists.panes import NAMESPACE_COLUMNS, NODE_COLUMNS, group_layout, group_token
from kubectl_qos.tui.lists.pods import (
    BARS_FROM,
    COMPACT_BELOW,
    IMPORTANCE,
    ContainerList,
    PodList,
    pod_token,
)
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import build_view_model
from kubectl_qos.tui.widgets.table import STYLES, fitted, fitting_columns
from tests.tui.sources import demo, one_cluster, renamed

PODS = PodList(Trends())
PSI_KEYS = keys_that_need(Needs.PSI)
SHOWN = [key for key in WIDE_KEYS if key != "risk"]
"""The risk is in the colours of a row, and a column only if rows are sorted by it."""


@cache
def rows() -> tuple[PodRow, ...]:
    return build_rows(demo(), Scope()).rows


def keys(view: View, available: int) -> list[str]:
    layout = PODS.layout(view, None, rows(), DEMO_TIME, available, has_headings=view.node is None)
    return [column.key for column in layout.columns]


@pytest.mark.parametrize("available", range(20, 260, 7))
def test_what_is_chosen_fits(available: int) -> None:
    layout = PODS.layout(View(), None, rows(), DEMO_TIME, available)
    assert layout.line_width <= available


def test_a_text_is_not_cut_while_there_is_room() -> None:
    columns = [column("what", str), column("when", lambda _: "now")]
    for room, width in ((200, 90), (100, 90), (94, 84), (70, 60)):
        found = fitting_columns(columns, "what what when", {"what": 20}, ["x" * 90], DEMO_TIME, room)
        assert found.widths == [width, 4], room


def test_the_more_important_a_column_the_longer_it_stays() -> None:
    for widths in (range(20, BARS_FROM), range(BARS_FROM, COMPACT_BELOW), range(COMPACT_BELOW, 260)):
        shown = [set(keys(View(), available)) for available in widths[::3]]
        assert all(narrower <= wider for narrower, wider in pairwise(shown))
    assert set(IMPORTANCE.split()) == {*SHOWN, "risk", *PSI_KEYS, "trend", *keys_that_need(Needs.HISTORY)}
    assert set(keys(View(), 260)) == {*SHOWN} - {"eviction", "node"}, "what nothing is known of takes no room"


def test_at_80_columns_rank_pod_class_score_and_memory_are_there() -> None:
    chosen = ["rank", "namespace", "pod", "qos", "oom_score", "memory", "flags"]
    assert keys(View(), 79) == keys(View(node="worker-2"), 79) == chosen
    assert keys(View(by_eviction=True), 79)[0] == "eviction"


@pytest.mark.parametrize("width", [73, 79])
def test_sorted_by_risk_a_row_says_what_the_risk_is_and_of_which_pod(width: int) -> None:
    layout = PODS.layout(View(), None, rows(), DEMO_TIME, width, by="risk")
    assert {"namespace", "pod", "node", "flags", "risk"} <= layout.by_key.keys()


def test_in_one_namespace_what_a_death_frees_takes_the_place_of_its_name() -> None:
    chosen = ["rank", "pod", "qos", "oom_score", "memory", "frees", "flags"]
    assert keys(View(namespace="shop"), 79) == chosen
    assert "namespace" not in keys(View(namespace="shop"), 250)


@pytest.mark.parametrize("width", [60, 79, 130])
def test_wide_adds_every_column_to_those_that_fit_and_fixes_the_names(width: int) -> None:
    wide = PODS.layout(View(wide=True), None, rows(), DEMO_TIME, width, has_headings=True)
    fitting = keys(View(), width)
    assert {*wide.by_key} == {*SHOWN, *PSI_KEYS, "trend", "eta"} - {"eviction"}
    assert [*wide.by_key][: len(fitting)] == fitting
    assert [*wide.by_key][: wide.fixed] == fitting[: fitting.index("pod") + 1]


def test_wide_at_200_columns_has_the_trend_in_sight() -> None:
    trends, (first, *_) = Trends(), rows()
    for mebibytes in (60, 90):
        trends.add({first.key[:2]: PodUsage.of_containers({"c": ContainerUsage(mebibytes << 20)})})
    pods = PodList(trends)
    wide = pods.layout(View(wide=True), None, rows(), DEMO_TIME, 134, has_headings=True)
    names = [*wide.by_key]
    assert wide.fixed_width + sum(wide.widths[wide.fixed : names.index("trend") + 1]) < 134


def test_workloads_have_their_namespace_at_80_columns() -> None:
    view_model = build_view_model(demo(), Scope(), DEMO_TIME)
    workloads = list_definitions(Trends())[ListKind.WORKLOADS]
    listed = workloads.build(view_model, View(ListKind.WORKLOADS), None).rows
    assert "namespace" in workloads.layout(View(ListKind.WORKLOADS), None, listed, DEMO_TIME, 79).by_key


def test_the_class_is_a_letter_and_a_glyph() -> None:
    fitting = PODS.layout(View(), None, rows(), DEMO_TIME, 79).column("qos")
    assert fitting is not None
    assert fitting.cell(rows()[0], DEMO_TIME) == "B ◐"


def test_every_token_has_a_style() -> None:
    snapshot = demo()
    found = build_view_model(snapshot, Scope(), DEMO_TIME)
    tokens = {pod_token(row, key, found) for row in found.rows.rows for key in SHOWN}
    assert "victim" in tokens
    columns = (*NODE_COLUMNS, *NAMESPACE_COLUMNS)
    groups = (*found.nodes, replace(found.nodes[1], bad_conditions=("memory",)))
    tokens |= {group_token(group, column.key) for group in groups for column in columns}
    assert tokens - {""} <= set(STYLES)
    assert {"victim", "error", "success", "warning", "muted"} <= tokens


def test_long_node_names_are_cut_and_the_numbers_stay() -> None:
    snapshot = demo()
    node = next(iter(snapshot.nodes.values()))
    found = build_view_model(snapshot, Scope(), DEMO_TIME)
    groups = tuple(replace(group, key=f"ip-10-0-0-1.{node.name}.compute.internal") for group in found.nodes)
    layout = group_layout(NODE_COLUMNS, groups, DEMO_TIME, 45)
    assert layout.line_width <= 45
    assert layout.widths[0] >= 10


def test_markup_and_control_characters_of_a_server_are_only_text() -> None:
    nasty = renamed(demo(), "db-0", "[bold]x\x1b[31m")
    row = next(row for row in build_rows(nasty, Scope()).rows if "bold" in row.name)
    column = PODS.layout(View(), None, [row], DEMO_TIME, 100).column("pod")
    assert column is not None
    assert column.cell(row, DEMO_TIME) == "[bold]x\\x1b[31m"


LONG = "x" * 253


@pytest.mark.parametrize("width", [59, 68, 79, 87])
@pytest.mark.parametrize("kind", list(ListKind))
def test_one_long_name_hides_no_other_columns(kind: ListKind, width: int) -> None:
    def keys(snapshot: Snapshot) -> list[str]:
        view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
        clusters = one_cluster(LONG, snapshot)
        listing = list_definitions(Trends(), clusters=lambda: clusters)[kind]
        rows = listing.build(view_model, View(kind), None).rows
        layout = listing.layout(View(kind), None, rows, DEMO_TIME, width)
        assert layout.line_width <= width
        return [column.key for column in layout.columns]

    needed = {
        ListKind.CLUSTERS: {"cluster", "worst_node", "next_death"},
        ListKind.NODES: {"node", "memory", "used_percent"},
        ListKind.NAMESPACES: {"namespace", "rank", "pods", "qos"},
        ListKind.WORKLOADS: {"workload", "rank", "pods", "qos"},
        ListKind.PODS: {"rank", "pod", "qos"},
        ListKind.CONTAINERS: {"rank", "container", "pod"},
        ListKind.DEATHS: {"victim", "distance", "by"},
    }[kind]
    assert needed <= set(keys(renamed(demo(), "crunch", LONG)))


def test_a_long_name_leaves_the_score_its_room_at_80_columns() -> None:
    rows = build_rows(renamed(demo(), "crunch", LONG), Scope()).rows
    shown = PODS.layout(View(), None, rows, DEMO_TIME, 79, has_headings=True).by_key
    assert {"rank", "pod", "qos", "namespace", "oom_score", "memory"} <= set(shown)


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("worker-1", 8, "worker-1"),
        ("gke-prod-pool-3f2a-x8k2", 11, "gke-p…-x8k2"),
        ("ip-10-1-140-17.eu-central-1.compute.internal", 15, "ip-10-1-140-17…"),
        ("ip-10-1-140-17.eu-central-1.compute.internal", 11, "ip-10…40-17"),
        ("10.1.140.17", 9, "10.1…0.17"),
        ("gke-prod-pool-3f2a-x8k2", 2, "g…"),
        ("gke-prod-pool-3f2a-x8k2", 1, "…"),
        ("NEAR-LIMIT OVER-REQUEST", 12, "NEAR-LIMIT O…"[:11] + "…"),
        ("日本語日本語", 5, "日本…"),
    ],
)
def test_a_name_is_cut_in_its_middle_for_nodes_begin_alike(name: str, width: int, shown: str) -> None:
    assert fitted(shortened(name, width), width, Align.LEFT) == shown


@pytest.mark.parametrize("width", [59, 79, 140])
def test_without_headings_a_rank_has_its_node(width: int) -> None:
    for listing in (PODS, ContainerList(PODS)):
        shown = listing.layout(View(), None, rows(), DEMO_TIME, width, has_headings=False).by_key
        assert {"rank", "node", listing.name} <= set(shown)


@pytest.mark.parametrize("width", [58, 60, 78, 83, 101, 140])
def test_no_column_repeats_the_headings(width: int) -> None:
    """The room is for the namespace, unless a person chose the columns or wants all of them."""
    shown = PODS.layout(View(), None, rows(), DEMO_TIME, width, has_headings=True).by_key
    assert "node" not in shown
    assert "namespace" in shown, "the same name may be in several of them"
    for view, chosen in ((View(wide=True), None), (View(), ("pod", "node"))):
        assert "node" in PODS.layout(view, chosen, rows(), DEMO_TIME, width, has_headings=True).by_key


@pytest.mark.parametrize("width", [56, 62, 78])
def test_a_heading_cuts_the_victim_and_not_the_killer(width: int) -> None:
    view_model = build_view_model(demo(), Scope(), DEMO_TIME)
    view_model.compute_deaths()
    pods = PodList(Trends(), lambda: view_model)
    text = "".join(part for part, _ in pods.heading(view_model.in_order[0], width))
    assert ("data/i" in text, "own limit 98%" in text, len(text) <= width) == (True, True, True)
