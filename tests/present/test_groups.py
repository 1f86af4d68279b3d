"""Workloads and namespaces as their pods added up, and every column of them."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.group_table import GroupRow, group_row, grouped, rank_order
from kubectl_qos.analysis.pod_table import PodRow, build_rows, is_at_risk
from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.node_columns import NAMESPACE_COLUMNS, WORKLOAD_COLUMNS
from kubectl_qos.qos.qos_class import QosClass

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MI = 1 << 20


@cache
def pods() -> tuple[PodRow, ...]:
    """Those of the demo, some with usage, and the same where nothing of the nodes and of usage is known."""
    snapshot = DemoSource().snapshot(Scope())
    bare = replace(snapshot, nodes={}, usage={}, node_usage={})
    return (*build_rows(snapshot, Scope()).rows, *build_rows(bare, Scope()).rows)


def of_demo() -> tuple[PodRow, ...]:
    return pods()[:60]


def row_of(*rows: PodRow) -> GroupRow[str]:
    return group_row("x", list(rows), ("x",))


def workloads() -> dict[Workload, GroupRow[Workload]]:
    found = grouped(of_demo(), lambda row: find_workload(row.pod))
    return {key: group_row(key, rows, (key.name,)) for key, rows in found.items()}


def namespaces() -> dict[str, GroupRow[str]]:
    found = grouped(of_demo(), lambda row: row.pod.namespace)
    return {key: group_row(key, rows, (key,)) for key, rows in found.items()}


def total(amounts: list[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def assert_adds_up(row: GroupRow[Any], rows: list[PodRow]) -> None:
    living = [one for one in rows if not one.pod.is_terminal]
    assert row.pods == len(living)
    assert dict(row.classes) == Counter(one.qos for one in living)
    assert row.memory == total([one.memory for one in living])
    assert row.request == total([one.request for one in living])
    limits = [one.limit for one in living]
    assert (row.limit, row.unlimited) == (total(limits), limits.count(None))
    assert row.restarts == sum(one.restarts for one in rows)
    assert row.oom_kills == sum(one.oom_kills for one in rows)
    assert row.victims == sum(one.rank == 1 for one in rows)
    assert row.at_risk == sum(map(is_at_risk, rows))
    ranks = [one.rank for one in rows if one.rank is not None]
    assert row.worst in rows
    assert row.worst.rank == min(ranks, default=None)
    scores = [one.score for one in rows if one.rank == row.worst.rank and one.score is not None]
    assert row.worst.score == max(scores, default=None)


@given(st.lists(st.sampled_from(range(120)), min_size=1, max_size=12, unique=True))
def test_any_pods_add_up(chosen: list[int]) -> None:
    rows = [pods()[index] for index in chosen]
    assert_adds_up(row_of(*rows), rows)
    assert replace(row_of(*rows[::-1]), worst=rows[0]) == replace(row_of(*rows), worst=rows[0])


def test_every_workload_and_namespace_of_the_demo_adds_up_to_its_pods() -> None:
    for namespace, row in namespaces().items():
        assert_adds_up(row, [one for one in of_demo() if one.pod.namespace == namespace])
    for workload, of_it in workloads().items():
        assert_adds_up(of_it, [one for one in of_demo() if find_workload(one.pod) == workload])
    for rows in (namespaces().values(), workloads().values()):
        assert sum(row.pods for row in rows) == 58, "60, of which 2 have ended"
        assert sum(row.victims for row in rows) == sum(one.rank == 1 for one in of_demo()) == 4


def test_groups_keep_the_order_of_their_pods() -> None:
    for rows in grouped(of_demo(), lambda row: row.node).values():
        assert rows == [one for one in of_demo() if one.node == rows[0].node]


def test_the_worst_pod_is_that_of_the_best_rank_not_of_the_highest_score() -> None:
    row = workloads()[Workload("DaemonSet", "monitoring", "node-exporter")]
    ranks = {one.node: (one.rank, one.score) for one in of_demo() if find_workload(one.pod) == row.key}
    assert len(ranks) == 3
    assert (row.worst.rank, row.worst.score) == min(
        ranks.values(), key=lambda found: (found[0], -(found[1] or 0))
    )


def test_a_pod_without_a_rank_is_never_worse_than_one_with_a_rank() -> None:
    with_rank = [one for one in of_demo() if one.rank is not None]
    without = [one for one in of_demo() if one.rank is None]
    assert without
    for one in without:
        assert row_of(one, with_rank[-1]).worst is with_rank[-1]


def test_unknown_usage_is_not_nothing() -> None:
    unknown = next(one for one in pods()[60:] if one.memory is None)
    known = next(one for one in of_demo() if one.memory)
    assert row_of(unknown).memory is None
    assert row_of(unknown, known).memory == known.memory


def cells(row: GroupRow[Any], *keys: str) -> list[str]:
    return [WORKLOAD_COLUMNS[key].cell(row, NOW) for key in keys]


def test_limits_are_added_up_and_marked_where_a_pod_has_none() -> None:
    """Overcommitment shows also with pods without limits, and sorts by the limits there are."""
    limited = next(one for one in of_demo() if one.limit)
    unlimited = next(one for one in of_demo() if not one.limit)
    size = (limited.limit or 0) // MI
    keys = ("limit", "unlimited")
    assert cells(row_of(limited, limited), *keys) == [f"{2 * size}Mi", "0"]
    assert cells(row_of(limited, unlimited), *keys) == [f"{size}Mi+", "1"]
    assert cells(row_of(unlimited), *keys) == ["<none>", "1"]
    assert row_of(limited, unlimited).request == total([limited.request, unlimited.request])


def test_memory_in_use_is_compared_with_the_requests() -> None:
    row = replace(row_of(of_demo()[0]), memory=150 * MI, request=100 * MI)
    assert cells(row, "request_percent") == ["150%"]
    assert cells(replace(row, memory=None), "request_percent") == ["<unknown>"]
    assert cells(replace(row, request=None), "request_percent") == ["<none>"]


def test_memory_in_use_without_requests_overcommits_most() -> None:
    half = replace(row_of(of_demo()[0]), memory=50 * MI, request=100 * MI)
    most = replace(half, memory=150 * MI)
    unknown, idle = replace(half, memory=None), replace(half, memory=0, request=None)
    without, large = replace(half, request=None), replace(most, request=None)
    rows = [unknown, half, without, most, large, idle]
    column = WORKLOAD_COLUMNS["request_percent"]
    assert sorted(rows, key=column.sort_key)[:4] == [large, without, most, half]


def test_what_the_columns_of_a_workload_say() -> None:
    row = workloads()[Workload("Deployment", "shop", "api")]
    keys = ("namespace", "kind", "workload", "pods", "qos", "rank", "oom_score", "worst", "node", "victims")
    assert cells(row, *keys) == [
        *("shop", "Deployment", "api", "2", "Burstable", "1", "1390", "api-7d9c5b6f8-x2mzq", "worker-2", "1")
    ]
    of_it = [one for one in of_demo() if find_workload(one.pod) == row.key]
    memory, limit = sum(one.memory or 0 for one in of_it), sum(one.limit or 0 for one in of_it)
    assert cells(row, "memory", "limit") == [f"{memory // MI}Mi", f"{limit // MI}Mi"]


def test_several_classes_are_counted() -> None:
    one_of_each = [next(one for one in of_demo() if one.qos is qos) for qos in QosClass]
    burstable = next(one for one in of_demo() if one.qos is QosClass.BURSTABLE)
    assert cells(row_of(*one_of_each, burstable), "qos") == ["1G 2B 1E"]
    assert cells(row_of(burstable, burstable), "qos") == ["Burstable"]


def test_a_shared_rank_and_kills_are_marked() -> None:
    """Only the last end of each container is known, however often it has restarted."""
    one = msgspec.structs.replace(of_demo()[0], tied=True, rank=3, restarts=57, oom_kills=1)
    assert cells(row_of(one), "rank", "restarts") == ["3=", "57 (last OOM)"]
    assert cells(row_of(one, one), "restarts") == ["114 (2 last OOM)"]


def test_a_group_whose_pods_have_ended_has_no_pods_and_no_next_victim() -> None:
    ended = [one for one in of_demo() if one.pod.is_terminal]
    assert len(ended) == 2
    keys = ("pods", "qos", "rank", "worst", "request")
    assert cells(row_of(*ended), *keys) == ["0", "<none>", "-", "<none>", "<none>"]


def test_where_nothing_is_known_the_columns_say_so() -> None:
    pod = pod_from_yaml("kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n")
    (one,) = build_rows(Snapshot(pods=(pod,)), Scope()).rows
    key = find_workload(one.pod)
    row = group_row(key, [one], (key.name,))
    keys = ("namespace", "rank", "oom_score", "node", "memory", "request", "limit", "restarts", "victims")
    assert cells(row, *keys) == [
        *("<none>", "-", "<unknown>", "<none>", "<unknown>", "<none>", "<none>", "0", "0")
    ]


@pytest.mark.parametrize("key", WORKLOAD_COLUMNS)
def test_every_column_has_cells_values_and_an_order_with_unknown_values_last(key: str) -> None:
    column = WORKLOAD_COLUMNS[key]
    unknown = [group_row(find_workload(one.pod), [one], ("x",)) for one in pods()[60:]]
    several = [*workloads().values(), *unknown]
    assert all(column.cell(row, NOW) for row in several)
    ordered = sorted(several, key=column.sort_key)
    if key == "request_percent":  # without requests its share has no end, which is no unknown value
        ordered = [row for row in ordered if row.request]
    known = [column.value(row) is not None for row in ordered]
    assert known == sorted(known, reverse=True)
    numbers = [value for row in ordered if isinstance(value := column.value(row), int)]
    if key == "rank":
        assert numbers == sorted(numbers)
    else:
        assert numbers == sorted(numbers, reverse=True), "the largest first"


def test_the_natural_order_is_that_of_the_worst_pods() -> None:
    ordered = sorted(workloads().values(), key=WORKLOAD_COLUMNS["rank"].sort_key)
    assert [row.victims > 0 for row in ordered] == [True] * 4 + [False] * (len(ordered) - 4)
    assert [rank_order(row.worst) for row in ordered] == sorted(rank_order(row.worst) for row in ordered)
    scores = [row.worst.score or 0 for row in ordered[:4]]
    assert scores == sorted(scores, reverse=True)


def test_the_most_pods_without_requests_come_first_by_class() -> None:
    ordered = sorted(namespaces().values(), key=NAMESPACE_COLUMNS["qos"].sort_key)
    numbers = [dict(row.classes).get(QosClass.BEST_EFFORT, 0) for row in ordered]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > numbers[-1]


def test_what_a_server_sends_is_shown_escaped() -> None:
    key = Workload("Deployment", "n\n", "[bold]x\x1b[31m")
    one = msgspec.structs.replace(of_demo()[0], node="k\r", namespace="n\n", name="w\t")
    row = group_row(key, [one], (key.name,))
    assert cells(row, "namespace", "workload", "worst", "node") == [
        *("n\\n", "[bold]x\\x1b[31m", "w\\t", "k\\r")
    ]
    assert NAMESPACE_COLUMNS["namespace"].cell(group_row("n\n", [one], ()), NOW) == "n\\n"
