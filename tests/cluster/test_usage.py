"""Usage from the kubelets' summary, and which number the kernel's order goes by."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from kubectl_qos.analysis.group_table import build_node_rows
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.kube_api import KubeApi, UsageChoice, UsageSource
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.snapshot import NO_USAGE, Scope, Snapshot, Usage
from kubectl_qos.k8s.usage import (
    ContainerUsage,
    History,
    PodUsage,
    Pressure,
    Summary,
    UsageOrigin,
    sampled,
    usage_by_pod,
    usage_from_summary,
)
from kubectl_qos.present.explanation import explain_pod, text_lines
from kubectl_qos.present.list_notes import old_usage_notes, usage_sentence
from kubectl_qos.present.pod_columns import PSI_COLUMNS, psi_notes
from kubectl_qos.present.values import as_document
from kubectl_qos.present.values.pods import explanation_values
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.following import held
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer
from tests.qos.recorded import pods_c, processes_c
from tests.recordings.files import read, read_json

MI = 1 << 20


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = read_json("node-1.36/stats-summary.json")
    return found


def proxied(name: str) -> str:
    return f"/api/v1/nodes/{name}/proxy/stats/summary"


def summary(**pods: tuple[int, int, int]) -> dict[str, Any]:
    """Working set, RSS and swap in Mi of the container `app` of some pods of the namespace `shop`."""
    return {
        "node": {"nodeName": "worker-1"},
        "pods": [
            {
                "podRef": {"name": name, "namespace": "shop"},
                "containers": [
                    {
                        "name": "app",
                        "memory": {
                            "time": "2026-11-20T12:00:00Z",
                            "workingSetBytes": working_set * MI,
                            "rssBytes": rss * MI,
                        },
                        "swap": {"swapUsageBytes": swap * MI},
                    }
                ],
            }
            for name, (working_set, rss, swap) in pods.items()
        ],
    }


def test_without_nodes_no_summary_is_requested(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    api = KubeApi(connect_to(server))
    assert UsageSource(api, UsageChoice.SUMMARY).read(None, []) == NO_USAGE
    assert server.requests == []


def taken(objects: ObjectServer, serve: Serve, connect_to: ConnectTo) -> tuple[Snapshot, HttpsServer]:
    server = serve(objects)
    source = LiveSource(connect_to(server), usage=UsageChoice.SUMMARY, ids="none", configz=False)
    return source.snapshot(Scope()), server


def test_the_recorded_summary_of_a_real_kubelet() -> None:
    found = usage_from_summary(JsonDecoder(Summary).decode(json.dumps(recorded()).encode()))
    assert len(found) == len(recorded()["pods"]) == 46
    partial = found["default", "pl-bu-partial"]
    of_b = partial.of("b")
    assert of_b is not None
    assert of_b[:3] == (204800, 45056, 0)
    assert partial.origin is UsageOrigin.KUBELET_SUMMARY
    for raw in recorded()["pods"]:
        usage = found[raw["podRef"]["namespace"], raw["podRef"]["name"]]
        assert usage.rss_bytes == sum(one["memory"]["rssBytes"] for one in raw["containers"])
        assert usage.working_set_bytes == sum(one["memory"]["workingSetBytes"] for one in raw["containers"])
        assert usage.timestamp == min(one["memory"]["time"] for one in raw["containers"])


def second_node() -> Summary:
    return JsonDecoder(Summary).decode(read("node-1.36-b/stats-summary.json"))


def test_shared_memory_counts_though_a_kubelet_calls_it_no_rss() -> None:
    """By a summary, against the processes of that node: RSS, swap and page tables that the kernel counts.

    Files that `tmpfs` wrote and does not map count for no process: for it the working set is an upper bound.
    """
    pods = {pod.name: pod for pod in pods_c("pending-resize")}
    off = {}
    for (_, name), usage in usage_from_summary(second_node()).items():
        statuses = pods[name].status.every_container if name in pods else ()
        for one_status in statuses:
            counted = [
                one.used_bytes
                for one in processes_c("pending-resize")
                if one.container_id and one_status.container_id.endswith(one.container_id)
            ]
            used = usage.of(one_status.name)
            if len(counted) == 1 and used is not None:
                off[name, one_status.name] = (
                    used.kernel_bytes - counted[0],
                    (used.rss_bytes or 0) - counted[0],
                )
    assert len(off) > 40
    assert {name for (name, _), (estimate, _) in off.items() if abs(estimate) > 2 * MI} == {"tmpfs"}
    estimate, by_rss = off["shm", "c"]
    assert abs(estimate) < MI < -by_rss // 20


def test_pressure_of_the_node_of_pods_and_of_containers() -> None:
    found = second_node()
    raw = read_json("node-1.36-b/stats-summary.json")

    def same(pressure: Pressure | None, stats: dict[str, Any]) -> bool:
        assert pressure is not None
        levels = {name: stats[name]["psi"] for name in ("cpu", "memory", "io")}
        ages = ("avg10", "avg60", "avg300")
        given = [levels[name][kind][one] for name in levels for kind in ("some", "full") for one in ages]
        ours = [
            getattr(getattr(getattr(pressure, name), kind), one)
            for name in levels
            for kind in ("some", "full")
            for one in ages
        ]
        return ours == given

    assert same(found.node.pressure, raw["node"])
    usage = usage_from_summary(found)
    for pod_stats in raw["pods"]:
        of_pod = usage[pod_stats["podRef"]["namespace"], pod_stats["podRef"]["name"]]
        assert same(of_pod.details.pressure, pod_stats)
        for stats in pod_stats["containers"]:
            of_container = of_pod.of(stats["name"])
            assert of_container is not None
            assert same(of_container.pressure, stats)
    assert found.node.pressure is not None
    assert found.node.pressure.cpu is not None
    assert found.node.pressure.cpu.some.avg60 == 90.47


def test_a_kubelet_without_pressure_says_nothing_of_it() -> None:
    assert Summary().node.pressure is None


def test_the_processes_of_pods_are_counted() -> None:
    found = sampled(usage_from_summary(second_node()))
    assert found is not None
    assert found.with_more_processes == 2, "be-children and ownadj"
    sentence = usage_sentence(found, DEMO_TIME)
    assert sentence.startswith("RANK is by swap and the larger of working set and RSS")
    assert sentence.endswith(
        "of each process: one per container is assumed, but 2 pods have more than one in a container"
    )
    by_metrics = sampled({("n", "a"): PodUsage(("c",), (1,))})
    assert by_metrics is not None
    assert usage_sentence(by_metrics, DEMO_TIME).endswith("of each process: one per container is assumed")


def test_usage_older_than_a_metrics_server_has_is_said() -> None:
    """A metrics server that reads each minute has none older than that and its own delay."""
    taken = PodUsage(("c",), (1,), timestamp=f"{DEMO_TIME:%Y-%m-%dT%H:%M:%SZ}")
    undated = PodUsage(("c",), (1,), timestamp="soon")
    snapshot = Snapshot(pods=(), nodes={}, usage={("n", "a"): taken, ("n", "b"): undated})
    notes = [[*old_usage_notes(snapshot, DEMO_TIME + timedelta(seconds=age))] for age in (0, 90, 91)]
    assert notes == [
        [],
        [],
        ["memory usage is from the metrics API, 91s old: growth since then is not counted"],
    ]
    assert [*old_usage_notes(Snapshot(pods=(), nodes={}), DEMO_TIME)] == []
    past = replace(snapshot, history=History({}, {}, "7d", "p99"))
    assert [*old_usage_notes(past, DEMO_TIME + timedelta(days=1))] == [], "which is no usage of a moment"


def test_a_live_snapshot_has_the_pressure_of_its_nodes(serve: Serve, connect_to: ConnectTo) -> None:
    raw = read_json("node-1.36-b/stats-summary.json")
    app = next(one for one in raw["pods"] if one["podRef"]["name"] == "shm")
    app |= {"podRef": {"name": "app", "namespace": "shop"}}
    objects = ObjectServer(
        pods=[pod("app")], nodes=[node()], others={proxied("worker-1"): {**raw, "pods": [app]}}
    )
    snapshot, _ = taken(objects, serve, connect_to)
    assert snapshot.setup("worker-1").node.swap_capacity_bytes == 2147479552, "the Node object says none"
    explained = explain_pod(snapshot.pods[0], snapshot, DEMO_TIME)
    said = " ".join(" ".join(text_lines(explained)).split())
    assert "Pressure tasks waited, in the last minute (PSI) pod cpu" in said
    assert "node cpu 90.5% some, 0.0% all; memory 0.0% some, 0.0% all; io 0.2% some, 0.0% all" in said
    values = as_document(explanation_values(explained))["pressure"]
    assert values["node"]["cpu"]["some"] == {"avg10": 83.28, "avg60": 90.47, "avg300": 52.29}
    assert set(values) == {"pod", "node"}
    (row,) = build_rows(snapshot, Scope()).rows
    (of_node,) = build_node_rows(snapshot, lambda *_: True).rows
    assert (row.psi.avg10, row.psi.avg60) == (0.0, 0.0)
    assert (of_node.psi.avg10, of_node.psi.avg60) == (0.0, 0.0)
    assert [one.cell(row, DEMO_TIME) for one in PSI_COLUMNS] == ["0.0%", "0.0%"]


def test_pressure_that_no_kubelet_reports_is_none_and_not_zero(serve: Serve, connect_to: ConnectTo) -> None:
    silent = summary(app=(7, 5, 0))
    objects = ObjectServer(pods=[pod("app")], nodes=[node()], others={proxied("worker-1"): silent})
    snapshot, _ = taken(objects, serve, connect_to)
    (row,) = build_rows(snapshot, Scope(), containers=True).rows
    assert (row.psi.avg10, row.psi.avg60) == (None, None)
    assert [one.cell(row, DEMO_TIME) for one in PSI_COLUMNS] == ["<none>", "<none>"]
    (note,) = psi_notes(["psi10"], [row], UsageOrigin.KUBELET_SUMMARY)
    assert note.startswith(
        "PSI10 and PSI60: the kubelets' summary has no pressure; kubelets report it from 1.34"
    )
    assert not list(psi_notes(["memory"], [row], UsageOrigin.KUBELET_SUMMARY))
    (note,) = psi_notes(["psi10"], [row], UsageOrigin.METRICS_API)
    assert "--usage=summary" in note
    section = " ".join(" ".join(text_lines(explain_pod(snapshot.pods[0], snapshot, DEMO_TIME))).split())
    assert "Pressure <none> the kubelets' summary has no pressure (PSI)" in section


def test_the_kernel_counts_the_working_set_and_swap(serve: Serve, connect_to: ConnectTo) -> None:
    """`cache` has the largest working set; `swapped` the least, with most of its memory in swap."""
    objects = ObjectServer(
        pods=[pod("cache"), pod("heap"), pod("swapped")],
        nodes=[node()],
        others={proxied("worker-1"): summary(cache=(900, 100, 0), heap=(500, 400, 0), swapped=(50, 40, 800))},
    )
    snapshot, _ = taken(objects, serve, connect_to)
    rows = build_rows(snapshot, Scope()).rows
    assert [row.name for row in rows] == ["cache", "swapped", "heap"]
    assert [(row.memory, row.rss, row.swap) for row in rows] == [
        (900 * MI, 100 * MI, 0),
        (50 * MI, 40 * MI, 800 * MI),
        (500 * MI, 400 * MI, 0),
    ]
    by_working_set = build_rows(
        Snapshot(
            pods=snapshot.pods,
            nodes=snapshot.nodes,
            usage={key: PodUsage(one.names, (one.working_set_bytes,)) for key, one in snapshot.usage.items()},
        ),
        Scope(),
    )
    assert [row.name for row in by_working_set.rows] == ["cache", "heap", "swapped"]


def test_every_node_with_pods_is_read_once(serve: Serve, connect_to: ConnectTo) -> None:
    names = [f"worker-{number}" for number in range(12)]
    objects = ObjectServer(
        pods=[pod(f"p-{name}", node=name) for name in names],
        nodes=[node(name) for name in (*names, "empty")],
        others={proxied(name): summary(**{f"p-{name}": (2, 1, 0)}) for name in names},
    )
    snapshot, server = taken(objects, serve, connect_to)
    assert len(snapshot.usage) == 12
    requested = [path for path in server.paths() if path.endswith("/summary")]
    assert sorted(requested) == sorted(map(proxied, names))


def test_a_missing_right_is_named_and_tried_once(serve: Serve, connect_to: ConnectTo) -> None:
    names = [f"worker-{number}" for number in range(4)]
    objects = ObjectServer(
        pods=[pod(f"p-{name}", node=name) for name in names], nodes=[node(name) for name in names]
    )
    refused = status(403, "Forbidden", 'nodes "worker-0" is forbidden: User "viewer" cannot get nodes/proxy')
    objects.faults |= {proxied(name): refused for name in names}
    snapshot, server = taken(objects, serve, connect_to)
    assert snapshot.usage == {}
    (missing,) = snapshot.missing
    assert missing.what == "memory usage"
    assert "cannot get nodes/proxy" in missing.why
    assert "nodes/proxy" in missing.remedy
    assert "commands in any container" in missing.remedy
    assert len([path for path in server.paths() if path.endswith("/summary")]) == 1


def test_pods_on_trial_have_the_usage_of_their_source(serve: Serve, connect_to: ConnectTo) -> None:
    """A cluster without a metrics API says it with --usage=summary alone."""
    others = {proxied("worker-1"): summary(web=(70, 60, 0))}
    server = serve(ObjectServer(pods=[pod("web")], nodes=[node("worker-1")], metrics=None, others=others))
    for choice, used in ((UsageChoice.SUMMARY, 70 * MI), (UsageChoice.METRICS, None)):
        found = LiveSource(connect_to(server), usage=choice).members("Pod", "shop", "web")
        usage = found.usage_of(found.pods[0])
        assert (usage and usage.working_set_bytes) == used


def test_a_kubelet_that_cannot_be_reached_leaves_the_others(serve: Serve, connect_to: ConnectTo) -> None:
    """A 500 as the recorded server answers for a node without an address."""
    objects = ObjectServer(
        pods=[pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n3")],
        nodes=[node("n1"), node("n2"), node("n3")],
        others={proxied("n2"): summary(b=(2, 1, 0))},
    )
    objects.faults[proxied("n1")] = status(500, "", "no preferred addresses found; known addresses: []")
    objects.faults[proxied("n3")] = Answer(body=b"<html>")
    snapshot, _ = taken(objects, serve, connect_to)
    assert set(snapshot.usage) == {("shop", "b")}
    (missing,) = snapshot.missing
    assert missing.what == "the memory usage of n1 and 1 more nodes"
    assert "no preferred addresses found" in missing.why


@pytest.mark.parametrize("choice", list(UsageChoice))
def test_a_stream_has_usage_from_its_first_update(connect_to: ConnectTo, choice: UsageChoice) -> None:
    objects = WatchServer(
        pods=[pod("a")],
        nodes=[node()],
        metrics=[metrics("a", "7Mi")],
        others={proxied("worker-1"): summary(a=(7, 5, 0))},
    )
    reader = None
    if choice is UsageChoice.PROMETHEUS:
        of_pod = PodUsage.of_containers({"app": ContainerUsage(7 * MI)}, UsageOrigin.PROMETHEUS)
        reader = lambda: Usage({("shop", "a"): of_pod})  # noqa: E731
    source = LiveSource(connect_to(objects), usage=choice, reader=reader, ids="none", configz=False)
    stream = source.follow(Scope())
    try:
        update = stream.next()
        assert update is not None
        found = {key: usage.working_set_bytes for key, usage in held(update).usage.items()}
        assert found == ({} if choice is UsageChoice.NONE else {("shop", "a"): 7 * MI})
    finally:
        stream.close()


def test_usage_knows_who_measured_it_and_when() -> None:
    samples = JsonDecoder(list[Any]).decode(b"[]")
    assert sampled(usage_by_pod(samples)) is None
    usage = {
        ("n", "a"): PodUsage(("c",), (1,), timestamp="2026-11-20T12:00:30Z"),
        ("n", "b"): PodUsage(("c",), (1,), timestamp="2026-11-20T12:00:05Z"),
        ("n", "c"): PodUsage(("c",), (1,)),
    }
    found = sampled(usage)
    assert found is not None
    assert (found.origin, found.oldest, found.newest) == (
        UsageOrigin.METRICS_API,
        "2026-11-20T12:00:05Z",
        "2026-11-20T12:00:30Z",
    )
    assert sampled(usage, found) is found
    assert sampled(dict(usage), found) is not found


def test_what_is_not_known_of_each_container_is_not_known_of_the_pod() -> None:
    usage = PodUsage.of_containers({"a": ContainerUsage(3, 2, 1), "b": ContainerUsage(5)})
    assert (usage.working_set_bytes, usage.rss_bytes, usage.swap_bytes) == (8, None, None)
    assert (usage.of("a"), usage.of("b"), usage.of("z")) == (ContainerUsage(3, 2, 1), ContainerUsage(5), None)
    usages = ContainerUsage(9, 2, 1), ContainerUsage(9, 2), ContainerUsage(9), ContainerUsage(2, 9)
    assert [one.kernel_bytes for one in usages] == [10, 9, 9, 9]
