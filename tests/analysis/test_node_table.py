"""Rows of nodes: what is summed, what is not known, the default order, and every column's cells and order."""

from dataclasses import replace
from datetime import UTC, datetime
from operator import is_
from random import Random

import pytest
from hypothesis import settings
from msgspec.structs import replace as replace_struct

from kubectl_qos.analysis.group_table import NodeRow, NodeRows, build_node_row, build_node_rows
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.kubelet import Kubelet, Origin, with_origin
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Missing, PodsByNode, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.list_notes import capacity_sentence, eviction_notes, node_table_notes
from kubectl_qos.present.node_columns import (
    DEFAULT_KEYS,
    EVICTION_KEYS,
    NODE_COLUMNS,
    WIDE_KEYS,
)
from kubectl_qos.present.output import Column, find_column, table
from kubectl_qos.qos.qos_class import QosClass

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MI, GI = 1 << 20, 1 << 30
ASSUMED = (
    "the eviction threshold of n1 is assumed to be the default, 100Mi: no kubelet configuration states one"
)
USED_NOTE = (
    "memory used outside pods on n1 is unknown: to show it, grant list on nodes.metrics.k8s.io"
    " (docs/rbac/nodes.yaml), or use --usage=summary, or NodeMetrics with -f"
)


def node(name: str = "n1", memory: str = "16Gi", **conditions: str) -> NodeObject:
    return convert(
        {
            "metadata": {"name": name},
            "status": {
                "capacity": {"memory": memory},
                "allocatable": {"memory": memory},
                "conditions": [{"type": key, "status": value} for key, value in conditions.items()],
                "nodeInfo": {"kubeletVersion": "v1.36.2"},
            },
        },
        NodeObject,
    )


def pod(name: str, resources: str = "", node_name: str = "n1") -> Pod:
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n}}\n"
        f"spec: {{nodeName: {node_name}, containers: [{{name: c, resources: {{{resources}}}}}]}}\n"
        "status: {phase: Running}\n"
    )


def snapshot_of(*pods: Pod, nodes: tuple[NodeObject, ...] = (node(),), **used: int) -> Snapshot:
    usage = {
        ("n", name): PodUsage.of_containers({"c": ContainerUsage(value * MI)}) for name, value in used.items()
    }
    return Snapshot(pods=pods, nodes={one.name: one for one in nodes}, usage=usage)


def rows(*pods: Pod, nodes: tuple[NodeObject, ...] = (node(),), **used: int) -> NodeRows:
    return taken(snapshot_of(*pods, nodes=nodes, **used))


def notes_on(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(node_table_notes(snapshot, taken(snapshot)))


def demo() -> NodeRows:
    return build_node_rows(DemoSource().snapshot(Scope()), lambda *_: True)


def cells(row: NodeRow, *keys: str) -> list[str]:
    return [NODE_COLUMNS[key].cell(row, NOW) for key in keys]


def test_the_demo_adds_up_to_what_its_pods_show() -> None:
    """Pods and nodes are two tables of the same facts."""
    pods = build_rows(DemoSource().snapshot(Scope()), Scope()).rows
    for row in demo().rows:
        there = [one for one in pods if one.node == row.name and one.score is not None]
        assert row.memory.pods == len(there)
        for qos in QosClass:
            assert row.used(qos) == sum(one.memory or 0 for one in there if one.qos is qos)
        assert row.memory.requests_bytes == sum(one.request or 0 for one in there)
        assert row.memory.used_bytes == sum(row.used(qos) or 0 for qos in QosClass)
        (first,) = [one for one in there if one.rank == 1]
        assert row.victim is not None
        assert row.victim._replace(rival=None) == (
            (first.pod.namespace, first.name),
            *(first.qos, first.score, 0, None),
        )


def test_trouble_comes_first_then_the_fullest_and_what_is_not_known_last() -> None:
    nodes = (
        node("a-empty"),
        node("b-half"),
        node("c-full"),
        node("d-lost", Ready="Unknown"),
        node("e-full", MemoryPressure="True", DiskPressure="True", PIDPressure="False", Ready="True"),
    )
    names = {"half": "b-half", "full": "c-full", "lost": "d-lost", "tight": "e-full", "silent": "a-dark"}
    pods = [pod(name, node_name=place) for name, place in names.items()]
    found = rows(*pods, nodes=(*nodes, node("a-dark")), half=8000, full=16000, lost=1, tight=9000)
    assert [row.name for row in found.rows] == ["e-full", "d-lost", "c-full", "b-half", "a-empty", "a-dark"]
    assert [cells(row, "pressure") for row in found.rows[:3]] == [["memory,disk"], ["not-ready"], ["<none>"]]
    assert [row.used_percent for row in found.rows[-2:]] == [0, None]


def test_nodes_of_unknown_usage_are_sorted_by_what_is_requested() -> None:
    requests = {"a": "1Gi", "b": "12Gi", "c": "3Gi"}
    pods = [pod(name, f"requests: {{memory: {size}}}", name) for name, size in requests.items()]
    assert [row.name for row in rows(*pods, nodes=tuple(map(node, requests))).rows] == ["b", "c", "a"]


def test_a_full_node_counts_page_cache_that_free_does_not() -> None:
    busy, idle = (
        replace(snapshot_of(nodes=(node("n1"),)), node_usage={"n1": used * MI}) for used in (15_900, 9_000)
    )
    assert any(
        "n1 uses 15.5Gi" in note and "the free command counts as available" in note for note in notes_on(busy)
    )
    assert all("free shows" not in note for note in notes_on(idle))
    half = node("n1", "8Gi").status.allocatable
    reserved = replace_struct(node("n1"), status=replace_struct(node("n1").status, allocatable=half))
    small = replace(idle, nodes={"n1": reserved})
    assert any("n1 uses 8.8Gi, 55% of its capacity" in note for note in notes_on(small))


def test_a_node_that_is_not_known_has_what_its_pods_say() -> None:
    (row,) = rows(pod("a", "limits: {memory: 1Gi}"), nodes=(), a=100).rows
    assert cells(row, "pods", "burstable", "limits", "worst") == ["1", "100Mi", "1024Mi", "1024Mi"]
    unknown = (
        *("capacity", "allocatable", "used_percent", "requests_percent", "limits_percent"),
        *("worst_percent", "pressure", "kernel_victim", "victim_score", "to_eviction", "soft_eviction"),
    )
    assert cells(row, *unknown) == ["<unknown>"] * len(unknown)


def test_without_usage_the_rest_is_still_known() -> None:
    snapshot = snapshot_of(pod("a", "limits: {memory: 8Gi}"), pod("b"))
    (row,) = taken(snapshot).rows
    assert cells(row, "guaranteed", "used", "used_percent", "to_eviction") == ["<unknown>"] * 4
    assert cells(row, "requests_percent", "worst", "worst_percent", "unlimited") == [
        *("50%", "<unknown>", "<unknown>", "1")
    ]
    assert cells(row, "kernel_victim", "next_death", "death_in", "death_by") == ["<unknown>"] * 4
    (note,) = notes_on(snapshot)
    assert note.startswith("who dies next is unknown: memory usage is unknown; it comes from the metrics")


def test_a_node_without_pods_is_empty_not_unknown() -> None:
    found = rows()
    assert cells(found.rows[0], "pods", "used", "used_percent", "kernel_victim", "victim_qos") == [
        *("0", "0Mi", "0%", "<none>", "<none>")
    ]
    assert notes_on(snapshot_of()) == ()


def test_victims_that_cannot_be_distinguished_are_counted() -> None:
    (row,) = rows(pod("a"), pod("b"), pod("c"), pod("d", "limits: {memory: 1Gi}"), a=1, b=1, c=1, d=1).rows
    assert cells(row, "kernel_victim", "victim_others") == ["n/a E, or 2 more", "2"]


def test_without_a_sample_of_the_node_its_pods_count_and_distances_are_upper_bounds() -> None:
    snapshot = snapshot_of(pod("a"), a=1000)
    assert cells(taken(snapshot).rows[0], "used", "own", "to_eviction") == [
        "1000Mi",
        "<unknown>",
        "at most 15284Mi",
    ]
    assert notes_on(snapshot) == (USED_NOTE,)


def test_what_a_node_uses_is_what_kubectl_top_nodes_shows() -> None:
    usage = {("n", "a"): PodUsage.of_containers({"c": ContainerUsage(1000 * MI)})}
    snapshot = Snapshot((pod("a"),), nodes={"n1": node()}, usage=usage, node_usage={"n1": 1300 * MI})
    columns = ["used", "own", "used_percent", "to_eviction", "death_in"]
    assert cells(taken(snapshot).rows[0], *columns) == ["1300Mi", "300Mi", "7%", "14984Mi", "+14.6Gi"]
    assert notes_on(snapshot) == ()


def test_a_sum_without_some_pods_is_marked_and_no_value() -> None:
    pods = pod("a"), pod("b"), pod("c", "limits: {memory: 1Gi}")
    (row,) = rows(*pods, a=1000, c=200).rows
    assert cells(row, "best_effort", "burstable", "used", "used_percent") == [
        "1000Mi+",
        "200Mi",
        "1200Mi+",
        "7%+",
    ]
    columns = [NODE_COLUMNS[key] for key in ("best_effort", "burstable", "used", "used_percent", "worst")]
    assert [column.value(row) for column in columns] == [None, 200 * MI, None, None, None]
    (row,) = rows(*pods, c=200).rows
    assert cells(row, "best_effort", "burstable", "used") == ["<unknown>", "200Mi", "200Mi+"]


def test_what_is_missing_is_said_as_in_the_table_of_pods() -> None:
    found = Snapshot(nodes={"n1": node()}, missing=(Missing("memory usage", "not there", "install it"),))
    assert notes_on(found) == ("memory usage is missing: not there (install it)",)


@pytest.mark.parametrize(
    ("kubelets", "columns", "notes"),
    [
        ({}, ["100Mi", "at most 15284Mi", "<unknown>", "<unknown>", "no"], [ASSUMED]),
        (
            {"eviction_hard": {"memory.available": "1Gi"}, "eviction_soft": {"memory.available": "25%"}},
            ["1024Mi", "at most 11288Mi", "4096Mi", "at most 11288Mi", "yes"],
            [],
        ),
        ({"eviction_hard": {}}, ["<none>", "<none>", "<none>", "<none>", "yes"], []),
    ],
)
def test_eviction_thresholds_and_where_they_come_from(
    kubelets: dict[str, object], columns: list[str], notes: list[str]
) -> None:
    """Pods use 1000Mi of 16384Mi, all of which is allocatable."""
    configured = {"n1": with_origin(Kubelet(), Origin.CONFIGZ, **kubelets)} if kubelets else {}
    usage = {("n", "a"): PodUsage.of_containers({"c": ContainerUsage(1000 * MI)})}
    found = build_node_rows(
        Snapshot(pods=(pod("a"),), nodes={"n1": node()}, usage=usage, kubelets=configured), lambda *_: True
    )
    keys = ["eviction", "to_eviction", "soft_eviction", "to_soft_eviction", "eviction_configured"]
    assert set(keys) == EVICTION_KEYS
    assert cells(found.rows[0], *keys) == columns
    assumed = {row.name: row.eviction for row in found.rows if not row.configured}
    assert list(eviction_notes(assumed)) == notes


def test_of_several_nodes_the_assumption_is_said_once() -> None:
    assumed = dict.fromkeys(("n1", "n2", "windows"), 100 * MI) | {"windows": None}
    (note,) = eviction_notes(assumed)
    assert note.partition(" is assumed")[0] == "the eviction threshold of 2 nodes"


def test_of_many_nodes_without_a_capacity_three_are_named() -> None:
    sentence = capacity_sentence(["c", "b", "a", "", "\x1b"])
    assert sentence.startswith("the memory capacity of \\x1b, a, b and 1 more is unknown: ")


@pytest.mark.parametrize("key", NODE_COLUMNS)
def test_every_column_has_cells_values_and_an_order(key: str) -> None:
    several = (*demo().rows, *rows(pod("a"), nodes=()).rows, *rows().rows)
    column = NODE_COLUMNS[key]
    assert all(column.cell(row, NOW) for row in several)
    ordered = sorted(several, key=column.sort_key)
    known = [column.value(row) is not None for row in ordered]
    if key != "pressure":
        assert known == sorted(known, reverse=True), "unknown values come last"


def test_the_tables_are_made_of_the_columns_that_there_are() -> None:
    assert set(DEFAULT_KEYS) < set(WIDE_KEYS) < set(NODE_COLUMNS)
    lines = list(table(demo().rows, [NODE_COLUMNS[key] for key in DEFAULT_KEYS], NOW))
    assert all(len(line) <= 140 for line in lines[:-1]), "but for control-1 with its long name"
    assert not EVICTION_KEYS & set(DEFAULT_KEYS)


def test_a_column_is_named_by_key_header_or_short_form() -> None:
    def find(name: str) -> Column[NodeRow]:
        return find_column(name, NODE_COLUMNS)

    for column in NODE_COLUMNS.values():
        assert find(column.header) is find(column.key) is column
    assert find("memory") is NODE_COLUMNS["used"]
    with pytest.raises(UsageError, match="no column 'cpu' to sort by"):
        find("cpu")


def taken(snapshot: Snapshot, before: NodeRows | None = None) -> NodeRows:
    return build_node_rows(snapshot, lambda *_: True, before)


def changed_pods(snapshot: Snapshot, random: Random) -> Snapshot:
    pods = list(snapshot.pods)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(pods))
        if random.random() < 0.5:
            del pods[at]
        else:
            spec = replace_struct(pods[at].spec, node_name=random.choice([*snapshot.nodes, "", "unknown"]))
            pods[at] = replace_struct(pods[at], spec=spec)
    return replace(snapshot, pods=tuple(pods))


def changed_usage(snapshot: Snapshot, random: Random) -> Snapshot:
    usage = dict(snapshot.usage)
    for key in random.sample(sorted(usage), min(3, len(usage))):
        names = usage[key].names
        usage[key] = PodUsage.of_containers(
            {name: ContainerUsage(random.randrange(8 * GI)) for name in names}
        )
    return replace(snapshot, usage=usage if random.random() < 0.8 else {})


def changed_nodes(snapshot: Snapshot, random: Random) -> Snapshot:
    nodes = dict(snapshot.nodes)
    name = random.choice([*nodes, "new"])
    if random.random() < 0.3:
        nodes.pop(name, None)
    else:
        nodes[name] = node(
            name, f"{random.randrange(1, 64)}Gi", MemoryPressure=random.choice(["True", "False"])
        )
    return replace(snapshot, nodes=nodes)


def changed_kubelets(snapshot: Snapshot, random: Random) -> Snapshot:
    threshold = {"eviction_hard": {"memory.available": f"{random.randrange(1, 4)}Gi"}}
    kubelet = with_origin(Kubelet(), Origin.CONFIGZ, **threshold)
    return replace(snapshot, kubelets={**snapshot.kubelets, random.choice([*snapshot.nodes, "new"]): kubelet})


@pytest.mark.parametrize("seed", range(settings().max_examples // 7))
def test_rows_made_of_earlier_ones_equal_new_ones(seed: int) -> None:
    random = Random(seed)
    snapshot = DemoSource().snapshot(Scope())
    before = taken(snapshot)
    for _ in range(8):
        change = random.choice([changed_pods, changed_usage, changed_nodes, changed_kubelets])
        snapshot = change(snapshot, random)
        found, fresh = taken(snapshot, before), taken(snapshot)
        assert found.rows == fresh.rows
        assert list(node_table_notes(snapshot, found)) == list(node_table_notes(snapshot, fresh))
        assert set(found.nodes) == set(fresh.nodes)
        assert [build_node_row(snapshot, row.name) for row in found.rows] == list(fresh.rows)
        before = found


def by_node(snapshot: Snapshot) -> Snapshot:
    """The same pods, held as a followed cluster holds them: the lists of nodes stay the same objects."""
    return replace(snapshot, pods=PodsByNode(snapshot.by_node()))


def test_only_the_rows_of_nodes_that_changed_are_other_objects() -> None:
    snapshot = by_node(DemoSource().snapshot(Scope()))
    before = taken(snapshot)
    assert all(map(is_, taken(replace(snapshot), before).rows, before.rows)), "nothing has changed"
    pods = {**snapshot.by_node(), "worker-1": snapshot.by_node()["worker-1"][1:]}
    nodes = {**snapshot.nodes, "worker-3": node("worker-3", "32Gi")}
    kubelets = {"control-1": Kubelet()}
    after = taken(replace(snapshot, pods=PodsByNode(pods), nodes=nodes, kubelets=kubelets), before)
    same = {row.name for row in before.rows for one in after.rows if one is row}
    assert same == {"worker-2"}


def test_other_usage_changes_every_row_and_a_node_that_is_not_shown_has_none() -> None:
    snapshot = by_node(DemoSource().snapshot(Scope()))
    before = taken(snapshot)
    after = taken(replace(snapshot, usage=dict(snapshot.usage)), before)
    assert not {id(row) for row in before.rows} & {id(row) for row in after.rows}
    assert after.rows == before.rows
    one = build_node_rows(snapshot, lambda name, _: name == "worker-2", before)
    assert [row.name for row in one.rows] == list(one.nodes) == ["worker-2"]
    assert one.rows[0] is before.nodes["worker-2"].row


@pytest.mark.parametrize("name", ["worker-2", "control-1", "nope", ""])
def test_the_row_of_one_node(name: str) -> None:
    snapshot = DemoSource().snapshot(Scope())
    known = {row.name: row for row in demo().rows}
    found = build_node_row(snapshot, name)
    if name in known:
        assert found == known[name]
    else:
        assert (found.name, found.capacity, found.bad_conditions) == (name, None, None)
    assert build_node_row(replace(snapshot, pods=()), name).memory.pods == 0
