"""The row of a cluster is what `top nodes`, `next` and `kills --since 24h` would print first."""

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

from kubectl_qos.analysis.deaths import deaths_on_nodes
from kubectl_qos.analysis.group_table import ClusterRow, build_node_rows, cluster_row, worst_first
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.errors import ServerUnreachable
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.next_death import killed_by, victim
from kubectl_qos.present.node_columns import CLUSTER_COLUMNS
from kubectl_qos.qos.kills.analyze import find_kills

DEMO = DemoSource()


def row_of(snapshot: Snapshot, *, now: timedelta = timedelta()) -> ClusterRow:
    events = DEMO.event_list(None)
    return cluster_row("prod", snapshot, events, now=DEMO_TIME + now, taken=DEMO_TIME)


def cell(row: ClusterRow, key: str) -> str:
    return CLUSTER_COLUMNS[key].cell(row, DEMO_TIME + timedelta(seconds=75))


def test_a_row_has_what_the_commands_find_first() -> None:
    snapshot = DEMO.snapshot(Scope())
    row, nodes = row_of(snapshot), build_node_rows(snapshot, lambda *_: True).rows
    nearest = deaths_on_nodes(snapshot, sorted(snapshot.nodes)).rows[0]
    assert row.worst == nodes[0]
    assert cell(row, "worst_node") == f"worker-2 {nodes[0].used_percent:.0f}%"
    assert (row.next_death_node is not None and row.next_death_node.name) == nearest.node
    assert victim(nearest.death) in cell(row, "next_death")
    assert killed_by(nearest.death) in cell(row, "next_death")
    assert (cell(row, "version"), cell(row, "nodes"), cell(row, "age")) == ("v1.34 to v1.36", "4/4", "75s")
    assert cell(replace(row, is_open=True), "age") == "live"
    # Of the deaths of yesterday none is of the last day.
    assert row.kills == len(find_kills(snapshot, DEMO.event_list(None))) > 0
    assert (row_of(snapshot, now=timedelta(days=2)).kills or 0) < row.kills


def test_a_failure_is_in_the_row_with_what_was_known() -> None:
    refused = ServerUnreachable("dial tcp 10.2.0.1:443: i/o timeout")
    known = replace(row_of(DEMO.snapshot(Scope())), error=refused)
    assert cell(known, "next_death") == str(refused)
    assert cell(replace(known, is_open=True), "age") == "75s", "nothing is live that fails"
    never = ClusterRow("prod", error=refused)
    assert [cell(never, key) for key in ("version", "nodes", "worst_node", "kills", "age")] == ["-"] * 5
    assert cell(ClusterRow("prod"), "next_death") == "no answer yet"


def test_the_cluster_in_most_trouble_is_first_and_one_without_an_answer_last() -> None:
    worst = row_of(DEMO.snapshot(Scope()))
    assert worst.worst is not None
    calm = replace(worst, worst=replace(worst.worst, bad_conditions=()))
    for rows in permutations([worst, calm, ClusterRow("a"), ClusterRow("b")]):
        assert sorted(rows, key=worst_first) == [worst, calm, ClusterRow("a"), ClusterRow("b")]
