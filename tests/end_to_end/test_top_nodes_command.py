"""`top nodes` and `top --min-risk` from the outside: what is selected, ordered, printed, and said."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.present.node_columns import DEFAULT_KEYS, NODE_COLUMNS
from tests.cluster.cluster_objects import metrics, node, pod, recorded_metrics, recorded_node, recorded_pods
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.cluster.test_kubelet_configs import recorded_configz
from tests.end_to_end.command import Done, Run

USED = "the used memory is that of pods, without the node's own processes\n"
OBJECTS = [
    {**node("worker-1"), "metadata": {"name": "worker-1", "labels": {"pool": "a"}}},
    {**node("worker-2", memory="8Gi"), "metadata": {"name": "worker-2", "labels": {"pool": "b"}}},
    pod("web", request="1Gi", limit="2Gi"),
    pod("nodes", request="1Gi", limit="4Gi"),
    pod("batch", namespace="jobs", node="worker-2"),
    pod("waiting", namespace="jobs", node="", phase="Pending"),
    pod("done", namespace="jobs", phase="Succeeded", request="1Gi"),
    metrics("web", "1945Mi"),
    metrics("nodes", "1Gi"),
    metrics("batch", "6Gi", namespace="jobs"),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": OBJECTS}))
    return path


def items(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["items"]
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_the_table(run: Run, dump: Path) -> None:
    done = run("top", "nodes", "-f", dump)
    assert (done.code, done.err) == (0, USED)
    assert [cells(line) for line in done.lines] == [
        [
            *["NODE", "PODS", "MEM_G", "MEM_B", "MEM_E", "%USED", "%REQ", "%LIM", "%WORST"],
            *["PRESSURE", "NEXT_VICTIM"],
        ],
        ["worker-2", "1", "0Mi", "0Mi", "6144Mi", "75%", "0%", "0%+", "75%+", "<none>", "jobs/batch E"],
        ["worker-1", "2", "0Mi", "2969Mi", "0Mi", "18%", "12%", "38%", "38%", "<none>", "shop/web B"],
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nodes"], ["node/worker-2", "node/worker-1"]),
        (["node"], ["node/worker-2", "node/worker-1"]),
        (["no", "-n", "shop"], ["node/worker-2", "node/worker-1"]),
        (["nodes", "worker-1"], ["node/worker-1"]),
        (["node/worker-1"], ["node/worker-1"]),
        (["no/worker-1", "nodes/worker-2"], ["node/worker-2", "node/worker-1"]),
        (["nodes", "worker-1", "worker-2"], ["node/worker-2", "node/worker-1"]),
        (["nodes", "--node", "worker-2"], ["node/worker-2"]),
        (["nodes", "-l", "pool=a"], ["node/worker-1"]),
        (["nodes", "-l", "pool!=a"], ["node/worker-2"]),
        (["nodes", "--sort-by", "node"], ["node/worker-1", "node/worker-2"]),
        (["pods"], ["pod/batch", "pod/web", "pod/nodes", "pod/waiting", "pod/done"]),
        (["pods", "nodes"], ["pod/nodes"]),
        (["pod", "nodes", "web"], ["pod/web", "pod/nodes"]),
        (["pod/nodes"], ["pod/nodes"]),
        (["po/nodes", "pods/web"], ["pod/web", "pod/nodes"]),
        (["web", "nodes"], ["pod/web", "pod/nodes"]),
    ],
    ids=" ".join,
)
def test_what_the_words_mean(run: Run, dump: Path, words: list[str], expected: list[str]) -> None:
    done = run("top", *words, "-f", dump, "-o", "name")
    assert (done.code, done.lines) == (0, expected), done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pod/web", "node/worker-1"], "error: pods and nodes are two tables"),
        (["pod/web", "nodes"], "error: names with and without their type cannot be mixed"),
        (["a/b/c"], "error: names with and without their type cannot be mixed"),
        (["pod/web", "deploy/web"], 'error: top shows pods and nodes, and "deploy" is neither'),
        (["node/"], "error: resource(s) were provided, but no name was specified"),
        (["nodes", "--containers"], "error: --containers selects among pods, not among nodes"),
        (["nodes", "--min-risk", "low"], "error: --min-risk selects among pods, not among nodes"),
        (["nodes", "worker-1", "-l", "a=b"], "error: only one of NAME or selector can be provided"),
        (["nodes", "--sort-by=cpu"], "error: there is no column 'cpu' to sort by"),
        (["--sort-by=cpu"], "error: there is no column 'cpu' to sort by"),
        (["--sort-by=container"], "error: there is no column 'container' in a table of pods"),
        (["--min-risk", "some"], "error: argument --min-risk: invalid choice: 'some'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_words_are_one_sentence(run: Run, dump: Path, arguments: list[str], sentence: str) -> None:
    done = run("top", *arguments, "-f", dump)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(sentence), done.err
    assert len(done.err.splitlines()) <= 2


def test_a_column_that_is_refused_is_answered_by_those_that_there_are(run: Run, dump: Path) -> None:
    hint = run("top", "nodes", "-f", dump, "--sort-by=cpu").err.splitlines()[1]
    assert hint == f"hint: columns are: {', '.join(NODE_COLUMNS)}"


DESCENDING = (
    *("pods", "guaranteed", "burstable", "best_effort", "used", "capacity", "used_percent", "requests"),
    *("allocatable", "requests_percent", "limits", "limits_percent", "unlimited", "worst", "worst_percent"),
    *("eviction", "soft_eviction", "victim_score", "victim_others", "eviction_configured"),
)


@pytest.mark.parametrize("key", NODE_COLUMNS)
def test_every_column_can_be_sorted_by(run: Run, key: str) -> None:
    found = [item[key] for item in items(run("top", "nodes", "--demo", "-o", "json", "--sort-by", key))]
    assert len(found) == 4
    if key == "pressure":
        assert found == [["memory"], [], [], []]
        return
    known = [value for value in found if value is not None]
    assert known == sorted(known, reverse=key in DESCENDING)


def test_a_column_that_is_sorted_by_is_shown(run: Run) -> None:
    done = run("top", "nodes", "--demo", "--sort-by", "to_eviction")
    assert cells(done.lines[0])[-2:] == ["TO_EVICTION", "NEXT_VICTIM"]
    assert "the eviction threshold of 4 nodes is assumed" in done.err


def test_all_formats_say_the_same(run: Run, dump: Path) -> None:
    text = run("top", "nodes", "-f", dump, "-o", "json").out
    found = json.loads(text)
    assert found == yaml.safe_load(run("top", "nodes", "-f", dump, "-o", "yaml").out)
    assert found["kind"] == "NodeMemory"
    assert [note.partition(":")[0] for note in found["notes"]] == [
        "the used memory is that of pods, without the node's own processes",
        "the eviction threshold of 2 nodes is assumed to be the default, 100Mi",
    ]
    rows = list(csv.DictReader(run("top", "nodes", "-f", dump, "-o", "csv").lines))
    assert [list(row) for row in rows] == [list(item) for item in found["items"]]
    assert [row["best_effort"] for row in rows] == [str(6 << 30), "0"]
    assert [row["eviction_configured"] for row in rows] == ["false", "false"]
    assert [row["next_victim"] for row in rows] == ["jobs/batch", "shop/web"]
    plain = run("top", "nodes", "-f", dump, "--no-headers").lines
    assert [cells(line) for line in plain] == [
        cells(line) for line in run("top", "nodes", "-f", dump).lines[1:]
    ]


def test_a_node_that_is_not_there_is_told_beside_those_that_are(run: Run, dump: Path) -> None:
    done = run("top", "nodes", "worker-1", "none", "-f", dump, "-o", "name")
    assert (done.code, done.lines) == (1, ["node/worker-1"])
    assert done.err.splitlines()[-1] == 'Error from server (NotFound): nodes "none" not found'


@pytest.mark.parametrize("flags", [["-l", "pool=none"], ["--node", "none"]], ids=" ".join)
def test_nothing_found_is_no_error(run: Run, dump: Path, flags: list[str]) -> None:
    assert run("top", "nodes", "-f", dump, *flags) == Done(0, "", "No resources found\n")
    assert items(run("top", "nodes", "-f", dump, *flags, "-o", "json")) == []


def test_names_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "red\x1b[31m"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod(evil, node=evil), node(evil)]}))
    for output in ("wide", "csv", "name"):
        done = run("top", "nodes", "-f", path, "-o", output)
        assert done.code == 0, done.err
        assert done.out.replace("\n", "").isprintable()
        assert "red\\x1b[31m" in done.out


@pytest.mark.parametrize("flags", [["-o", "json"], ["-o", "wide"], []], ids=" ".join)
def test_a_live_cluster_and_a_dump_of_it_are_the_same(
    run: Run, serve: Serve, tmp_path: Path, flags: list[str]
) -> None:
    objects = [*recorded_pods(), recorded_node(), *recorded_metrics()]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    server = ObjectServer(pods=recorded_pods(), nodes=[recorded_node()], metrics=recorded_metrics())
    config = write(tmp_path / "config", kubeconfig(serve(server)))
    from_dump = run("top", "nodes", "-f", path, *flags)
    assert run("top", "nodes", "--kubeconfig", config, *flags) == from_dump
    assert run("top", "node/node1", "--kubeconfig", config, *flags) == from_dump
    assert from_dump.code == 0


def test_what_kubelets_are_configured_with_is_asked_for_where_it_is_shown(
    run: Run, serve: Serve, tmp_path: Path
) -> None:
    asked_for = "/api/v1/nodes/worker-1/proxy/configz"
    soft = recorded_configz(evictionSoft={"memory.available": "10%"})
    server = ObjectServer(pods=[pod("web")], nodes=[node()], metrics=[], others={asked_for: soft})
    served = serve(server)
    config = write(tmp_path / "config", kubeconfig(served))
    assert run("top", "nodes", "--kubeconfig", config).code == 0
    assert asked_for not in [request.path for request in served.requests]
    (item,) = items(run("top", "nodes", "--kubeconfig", config, "-o", "json"))
    assert (item["eviction_configured"], item["soft_eviction"]) == (True, 1717986944)


def test_whoever_may_only_read_one_namespace_sees_its_part_of_the_nodes(
    run: Run, serve: Serve, tmp_path: Path
) -> None:
    server = ObjectServer(
        pods=[pod("web", request="1Gi"), pod("hog", namespace="x", request="2Gi")],
        nodes=[node()],
        metrics=[metrics("web", "100Mi")],
    )
    server.forbidden = {"/api/v1/pods", "/apis/metrics.k8s.io/v1beta1/pods"}
    config = write(tmp_path / "config", kubeconfig(serve(server)))
    done = run("top", "nodes", "-n", "shop", "--kubeconfig", config, "-o", "json")
    (item,) = items(done)
    assert (item["pods"], item["requests"]) == (1, 1 << 30)
    assert "the rest of these nodes' pods is missing" in done.err
    refused = run("top", "nodes", "-A", "--kubeconfig", config)
    assert (refused.code, refused.out) == (1, "")
    assert "Forbidden" in refused.err


def test_the_help_explains_the_columns_and_the_levels(run: Run) -> None:
    done = run("top", "--help", variables={"COLUMNS": "200"})
    words = done.out.split()
    assert {NODE_COLUMNS[key].header for key in DEFAULT_KEYS[2:]} - {"PRESSURE"} <= set(words)
    assert (
        "low has processes, medium is flagged PRIORITY or OVER-REQUEST, high is flagged NEAR-LIMIT"
        in done.out
    )


RISKS = ["next", "high", "medium", "low", "none"]


def test_each_level_of_risk_shows_what_the_higher_ones_show_and_more(run: Run) -> None:
    everything = {item["pod"]: item for item in items(run("top", "--demo", "-o", "json"))}
    shown: list[str] = []
    for level in RISKS:
        found = items(run("top", "--demo", "-o", "json", "--min-risk", level))
        assert {item["risk"] for item in found if item["pod"] not in shown} == {level}
        assert set(shown) < {item["pod"] for item in found}
        assert all(item == everything[item["pod"]] for item in found), "ranks stay"
        shown = [item["pod"] for item in found]
    assert shown == list(everything)


def test_risk_of_containers_is_by_their_own_rank(run: Run) -> None:
    found = items(run("top", "--demo", "--containers", "--min-risk", "next", "-o", "json"))
    assert [(item["rank"], item["risk"]) for item in found] == [(1, "next")] * 4
    assert len({item["node"] for item in found}) == 4


def test_nothing_of_such_risk_is_no_error(run: Run, dump: Path) -> None:
    done = run("top", "-n", "shop", "-f", dump, "--min-risk", "next", "nodes")
    assert done.code == 2, "nodes are no pods"
    done = run("top", "pod/nodes", "-n", "shop", "-f", dump, "--min-risk", "high")
    assert done == Done(0, "", "No resources of risk high or higher found in shop namespace.\n")
