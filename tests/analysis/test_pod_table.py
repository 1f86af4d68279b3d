"""Rows of pods: ranks among all pods of a node, flags, risks, notes, and the default order."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kubectl_qos.analysis.pod_table import PodRow, build_rows, is_at_risk, row_risk
from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Missing, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.list_notes import WITHOUT_USAGE, pod_table_notes
from kubectl_qos.present.output import aligned, find_column, table
from kubectl_qos.present.pod_columns import ALL_COLUMNS, BY_KEY
from kubectl_qos.qos.ranking import Flag, Risk

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MI = 1 << 20


def node(name: str = "n1", version: str = "v1.36.2") -> NodeObject:
    return convert(
        {
            "metadata": {"name": name},
            "status": {"capacity": {"cpu": "4", "memory": "16Gi"}, "nodeInfo": {"kubeletVersion": version}},
        },
        NodeObject,
    )


def pod(
    name: str, resources: str = "", more: str = "", status: str = "phase: Running", node_name: str = "n1"
) -> Pod:
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n}}\n"
        f"spec: {{nodeName: '{node_name}', containers: [{{name: c, resources: {{{resources}}}}}]{more}}}\n"
        f"status: {{{status}}}\n"
    )


def snapshot(*pods: Pod, usage: dict[str, int] | None = None, nodes: bool = True) -> Snapshot:
    found = {
        ("n", name): PodUsage.of_containers({"c": ContainerUsage(value * MI)})
        for name, value in (usage or {}).items()
    }
    return Snapshot(pods=pods, nodes={"n1": node()} if nodes else {}, usage=found)


def ranks(*rows: PodRow) -> list[tuple[str, int | None]]:
    return [(row.name, row.rank) for row in rows]


def test_a_pod_is_ranked_among_all_pods_of_its_node_not_only_those_shown() -> None:
    found = snapshot(pod("a"), pod("b", "requests: {memory: 1Gi}"), usage={"a": 10, "b": 10})
    rows = build_rows(found, Scope(names=frozenset({"b"})))
    assert ranks(*rows.rows) == [("b", 2)]


def test_equal_pods_share_a_rank_and_the_next_one_counts_them() -> None:
    found = snapshot(pod("a"), pod("b"), pod("c", "requests: {memory: 1Gi}"))
    rows = build_rows(found, Scope()).rows
    assert ranks(*rows) == [("a", 1), ("b", 1), ("c", 3)]
    assert [BY_KEY["rank"].cell(row, NOW) for row in rows] == ["1=", "1=", "3"]


def test_usage_can_put_a_burstable_pod_before_a_best_effort_one() -> None:
    found = snapshot(pod("small"), pod("big", "requests: {memory: 1Gi}"), usage={"small": 10, "big": 4000})
    assert ranks(*build_rows(found, Scope()).rows) == [("big", 1), ("small", 2)]


@pytest.mark.parametrize("status", ["phase: Succeeded", "phase: Failed"])
def test_a_pod_that_has_ended_has_no_rank(status: str) -> None:
    rows = build_rows(snapshot(pod("done", status=status), pod("b")), Scope()).rows
    assert ranks(*rows) == [("b", 1), ("done", None)]


def test_a_finished_init_container_does_not_count() -> None:
    status = (
        "phase: Running, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}],"
        " containerStatuses: [{name: c, state: {running: {}}}]"
    )
    found = pod("p", "requests: {memory: 8Gi}", ", initContainers: [{name: i}]", status)
    assert build_rows(snapshot(found), Scope()).rows[0].adj == 500


def test_an_unknown_capacity_gives_a_range_and_no_rank() -> None:
    unknown = snapshot(pod("b", "requests: {memory: 1Gi}"), nodes=False)
    rows = build_rows(unknown, Scope())
    assert ranks(*rows.rows) == [("b", None)]
    assert BY_KEY["oom_score_adj"].cell(rows.rows[0], NOW) == "3..999"
    assert any("capacity of n1 is unknown" in note for note in pod_table_notes(unknown, rows))


def notes_on(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(pod_table_notes(snapshot, build_rows(snapshot, Scope())))


def test_without_usage_the_order_says_what_it_rests_on() -> None:
    unmeasured = build_rows(snapshot(pod("a")), Scope())
    assert notes_on(snapshot(pod("a")))[0].startswith(
        "RANK is by oom_score_adj alone: memory usage is unknown; it comes"
    )
    assert [(row.rank, row_risk(row), is_at_risk(row)) for row in unmeasured.rows] == [(1, Risk.LOW, False)]
    assert notes_on(snapshot(pod("a"), pod("b"), usage={"a": 1})) == (f"1 pod {WITHOUT_USAGE}",)


def test_what_is_missing_is_one_line_with_the_remedy() -> None:
    found = Snapshot(missing=(Missing("memory usage", "Metrics API not available", "install it"),))
    assert notes_on(found) == ("memory usage is missing: Metrics API not available (install it)",)


LIMITED = "requests: {memory: 100Mi}, limits: {memory: 200Mi}"


@pytest.mark.parametrize(
    ("found", "used", "flags"),
    [
        (pod("p", LIMITED), 50, set()),
        (pod("p", LIMITED), 150, {Flag.OVER_REQUEST}),
        (pod("p", LIMITED), 180, {Flag.OVER_REQUEST, Flag.NEAR_LIMIT}),
        (pod("p", "", ", priorityClassName: system-node-critical, priority: 2000001000"), 1, {Flag.CRITICAL}),
        (pod("p", "", "", "phase: Running, qosClass: Guaranteed"), 1, {Flag.CLASS_DIFFERS}),
        (
            pod("p", "", "", "phase: Running, conditions: [{type: PodResizePending, status: 'True'}]"),
            1,
            {Flag.RESIZING},
        ),
    ],
)
def test_flags(found: Pod, used: int, flags: set[Flag]) -> None:
    assert set(build_rows(snapshot(found, usage={"p": used}), Scope()).rows[0].flags) == flags


@pytest.mark.parametrize(("ended", "is_near"), [("12:00:41", False), ("11:00:00", True)])
def test_usage_before_a_kill_raises_no_alarm_after_it(ended: str, is_near: bool) -> None:
    end = f"{{exitCode: 137, reason: OOMKilled, finishedAt: '2026-11-20T{ended}Z'}}"
    container = f"{{name: c, state: {{running: {{}}}}, lastState: {{terminated: {end}}}}}"
    status = f"phase: Running, containerStatuses: [{container}]"
    usage = PodUsage.of_containers({"c": ContainerUsage(199 * MI)}, timestamp="2026-11-20T12:00:40Z")
    sampled = snapshot(pod("p", LIMITED, "", status))
    row = build_rows(replace(sampled, usage={("n", "p"): usage}), Scope()).rows[0]
    assert (Flag.NEAR_LIMIT in row.flags, row.limit_percent is not None) == (is_near, is_near)


def test_a_high_priority_that_dies_before_a_lower_one_is_flagged() -> None:
    vital = pod("vital", "", ", priority: 1000")
    rows = build_rows(snapshot(vital, pod("cheap", "requests: {memory: 8Gi}")), Scope()).rows
    assert {row.name: Flag.PRIORITY in row.flags for row in rows} == {"vital": True, "cheap": False}
    equal = build_rows(snapshot(vital, pod("cheap")), Scope()).rows
    assert not any(Flag.PRIORITY in row.flags for row in equal), "of equals nobody knows who goes first"


def test_a_percentage_of_a_limit_is_of_one_container() -> None:
    two = pod_from_yaml(
        "kind: Pod\nmetadata: {name: p, namespace: n}\n"
        "spec: {nodeName: n1, containers: [{name: a, resources: {limits: {memory: 100Mi}}}, {name: b}]}\n"
    )
    usage = PodUsage.of_containers({"a": ContainerUsage(50 * MI), "b": ContainerUsage(900 * MI)})
    row = build_rows(Snapshot(pods=(two,), nodes={"n1": node()}, usage={("n", "p"): usage}), Scope()).rows[0]
    assert row.limit_percent == 50
    assert row.limit is None, "a sum over containers without limits means nothing"
    cells = [BY_KEY[key].cell(row, NOW) for key in ("limit", "limit_percent", "limit_container")]
    assert cells == ["<none>", "50% a", "a"]


def test_over_request_is_what_eviction_compares() -> None:
    """Before 1.34 the request of a sidecar counts as that of an init container: only the larger one."""
    pod = pod_from_yaml(
        "kind: Pod\nmetadata: {name: p, namespace: n}\nspec: {nodeName: n1, containers: [{name: a, resources:"
        " {requests: {memory: 100Mi}}}], initContainers: [{name: s, restartPolicy: Always, resources:"
        " {requests: {memory: 50Mi}}}]}\n"
    )
    used = PodUsage.of_containers({"a": ContainerUsage(120 * MI), "s": ContainerUsage(5 * MI)})
    for version, is_over in (("v1.33.0", True), ("v1.34.0", False)):
        nodes = {"n1": node(version=version)}
        (row,) = build_rows(Snapshot((pod,), nodes, {("n", "p"): used}), Scope()).rows
        assert (Flag.OVER_REQUEST in row.flags) is is_over


def test_a_pod_level_limit_is_shared_by_all_containers() -> None:
    two = pod_from_yaml(
        "kind: Pod\nmetadata: {name: p, namespace: n}\n"
        "spec: {nodeName: n1, resources: {limits: {memory: 200Mi}},"
        " containers: [{name: a, resources: {limits: {memory: 100Mi}}}, {name: b}]}\n"
    )
    usage = PodUsage.of_containers({"a": ContainerUsage(10 * MI), "b": ContainerUsage(180 * MI)})
    row = build_rows(Snapshot(pods=(two,), nodes={"n1": node()}, usage={("n", "p"): usage}), Scope()).rows[0]
    assert row.limit_percent == 95
    assert row.limit == 200 * MI
    assert Flag.NEAR_LIMIT in row.flags


def test_a_workload_is_no_row_beside_its_pods() -> None:
    """A dump of deployments, replicasets and pods has each template twice more."""
    owned = pod_from_yaml(
        "kind: Pod\nmetadata: {name: web-5d4f8c-x, namespace: n, labels: {pod-template-hash: 5d4f8c},"
        " ownerReferences: [{kind: ReplicaSet, name: web-5d4f8c, controller: true}]}\n"
        "spec: {nodeName: n1, containers: [{name: a}]}\n"
    )
    templates = [
        pod_from_workload(kind, {"metadata": {"name": name, "namespace": "n"}, "spec": {"template": {}}})
        for kind, name in (("Deployment", "web"), ("ReplicaSet", "web-5d4f8c"), ("Deployment", "idle"))
    ]
    rows = build_rows(Snapshot((owned, *templates), {"n1": node()}), Scope()).rows
    assert [(row.pod.kind, row.pod.name) for row in rows] == [("Pod", "web-5d4f8c-x"), ("Deployment", "idle")]


def test_containers_have_only_the_flags_that_they_cause() -> None:
    pod = pod_from_yaml(
        "kind: Pod\nmetadata: {name: p, namespace: n}\nspec: {nodeName: n1, containers: ["
        "{name: a, resources: {limits: {memory: 100Mi}, requests: {memory: 50Mi}}},"
        " {name: b, resources: {requests: {memory: 64Mi}, limits: {memory: 1Gi}}}]}\n"
    )
    usage = PodUsage.of_containers({"a": ContainerUsage(95 * MI), "b": ContainerUsage(60 * MI)})
    snapshot = Snapshot((pod,), {"n1": node()}, {("n", "p"): usage})
    rows = build_rows(snapshot, Scope(), containers=True).rows
    assert {row.container: set(row.flags) for row in rows} == {
        "a": {Flag.NEAR_LIMIT, Flag.OVER_REQUEST},
        "b": set(),
    }


def test_container_rows_have_ranks_of_their_own() -> None:
    source = DemoSource()
    scope = Scope(node="worker-2")
    rows = build_rows(source.snapshot(scope), scope, containers=True).rows
    cart = [row for row in rows if row.pod.name.startswith("cart")]
    assert [row.container for row in sorted(cart, key=lambda row: row.rank or 0)] == ["b", "d", "a"]
    assert all(row.rank for row in cart)


def test_the_scope_selects_by_label_node_and_namespace() -> None:
    source = DemoSource()
    everything = source.snapshot(Scope())
    api = build_rows(everything, Scope(selector=Selector.parse("app=api-7d9c5b6f8"))).rows
    assert {row.pod.name for row in api} == {"api-7d9c5b6f8-x2mzq", "api-7d9c5b6f8-k8vwl"}
    assert {row.pod.namespace for row in build_rows(everything, Scope(namespace="ml")).rows} == {"ml"}


@pytest.mark.parametrize("column", ALL_COLUMNS, ids=lambda column: column.key)
def test_every_column_has_cells_values_and_an_order(column: object) -> None:
    rows = build_rows(DemoSource().snapshot(Scope()), Scope()).rows
    found = BY_KEY[getattr(column, "key")]  # noqa: B009 - the fixture is untyped
    assert all(isinstance(found.cell(row, NOW), str) for row in rows)
    ordered = sorted(rows, key=found.sort_key)
    assert len(ordered) == len(rows)
    values = [found.value(row) for row in ordered]
    known = [value is not None for value in values]
    if found.key not in {"rank", "age"}:
        assert known == sorted(known, reverse=True), "unknown values come last"


def test_a_column_is_named_by_key_header_or_short_form() -> None:
    for name in ("OOM_SCORE", "score"):
        assert find_column(name, BY_KEY) is BY_KEY["oom_score"]
    with pytest.raises(UsageError, match="no column 'nope'"):
        find_column("nope", BY_KEY)


def test_tables_align_numbers_right_and_leave_no_space_at_the_end() -> None:
    rows = build_rows(snapshot(pod("a"), usage={"a": 1}), Scope()).rows
    printed = list(table(rows, [BY_KEY["pod"], BY_KEY["oom_score"], BY_KEY["flags"]], NOW))
    assert printed == ["POD   OOM_SCORE   FLAGS", "a          1332"]
    assert aligned([]) == []


REQUEST = "requests: {memory: 1Gi}"


def risks(*pods: Pod, nodes: bool = True, containers: bool = False) -> dict[str, Risk]:
    usage = {pod.name: 1 for pod in pods}
    rows = build_rows(snapshot(*pods, nodes=nodes, usage=usage), Scope(), containers=containers).rows
    return {row.container or row.name: row_risk(row) for row in rows}


def test_only_pods_with_processes_are_at_any_risk() -> None:
    found = risks(
        pod("runs", REQUEST),
        pod("waits", REQUEST, status="phase: Pending", node_name=""),
        pod("ended", REQUEST, status="phase: Succeeded"),
    )
    assert found == {"runs": Risk.NEXT, "waits": Risk.NONE, "ended": Risk.NONE}


def test_a_container_that_has_ended_is_at_none() -> None:
    status = (
        "phase: Running, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}],"
        " containerStatuses: [{name: c, state: {running: {}}}]"
    )
    two = pod("two", "", ", initContainers: [{name: i}]", status)
    assert risks(two, containers=True) == {"i": Risk.NONE, "c": Risk.NEXT}
    assert risks(two) == {"two": Risk.NEXT}


def test_where_the_order_is_unknown_a_running_pod_still_has_some_risk() -> None:
    assert risks(pod("runs", REQUEST), nodes=False) == {"runs": Risk.LOW}


def test_the_risk_column_has_the_word() -> None:
    assert BY_KEY["risk"].value(build_rows(snapshot(pod("a"), usage={"a": 1}), Scope()).rows[0]) == "next"
