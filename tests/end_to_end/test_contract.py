"""What scripts read of each command; that it is as its schema says is looked at wherever a test runs one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import node, pod
from tests.contract import documents
from tests.end_to_end.command import Run

DEMO = (
    "top -A",
    "top -A --containers",
    "top nodes",
    "explain pod/db-0 pod/warehouse-0 -n data",
    "tree",
    "tree pod/db-0 -n data",
    "compare --to 1.37",
    "compare pod/db-0 -n data --assume cgroupDriver=cgroupfs",
    "kills -A",
    "report node/worker-2",
    "report pod/etl-28930-9xw2c",
    "simulate node/worker-2 --free 4Gi",
    "simulate node/worker-2 --until-oom --eviction",
    "simulate node/worker-2 --grow node=4Gi --important app=db",
    "fix node/worker-2",
    "fix deploy/api -n shop",
    "fix --priorities",
    "fix node/worker-2 --growth 20Mi",
    "next node/worker-2",
    "set pod/db-0 -n data --limits memory=5Gi",
    "set pod/db-0 -n data --class burstable",
    "set deployment/api -n shop --limits memory=5Gi",
    "version",
)


@pytest.mark.parametrize(
    ("words", "format_"), [*((words, "json") for words in DEMO), *((words, "yaml") for words in DEMO[::6])]
)
def test_every_output_is_as_its_schema_says(run: Run, words: str, format_: str) -> None:
    done = run(*words.split(), "--demo", "-o", format_)
    if not words.startswith("set deployment"):
        assert list(documents(done.out, format_))


def test_a_resize_has_its_status_its_values_and_what_follows(run: Run) -> None:
    found = explained(run, "Infeasible")
    assert found["resize"]["status"] == "Infeasible"
    assert found["resize"]["changes"] == [
        {"container": "app", "side": "requests", "resource": "memory", "before": "1Gi", "after": "9Gi"}
    ]
    (container,) = found["resize"]["containers"]
    assert container["oomScoreAdj"]["before"] > container["oomScoreAdj"]["after"]
    assert found["resize"]["rank"]["before"] == 1
    assert explained(run, "")["resize"] is None


def explained(run: Run, reason: str) -> Any:
    made = pod("web", request="9Gi" if reason else "1Gi")
    status = {
        "name": "app",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {}},
        "containerID": "x://1",
    }
    status |= {"image": "", "imageID": "", "allocatedResources": {"memory": "1Gi"}}
    status |= {"resources": {"requests": {"memory": "1Gi"}}}
    condition = {"type": "PodResizePending", "status": "True", "reason": reason}
    made["status"] = {"phase": "Running", "containerStatuses": [status]}
    made["status"] |= {"conditions": [condition]} if reason else {}
    (run.home / "x.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [made, node()]})
    )
    return json.loads(run("explain", "pod/web", "-n", "shop", "-f", "x.json", "-o", "json").out)


def test_compare_names_the_deaths_that_next_names_under_the_same_settings(run: Run) -> None:
    reserved = ("--demo", "--assume", "systemReserved=memory=1Gi")
    compared = run("compare", "node/worker-2", *reserved).out
    assert (
        "17 pods stay as they are: class, scores, rank and cgroup files; next deaths: sooner on 1 node"
        in " ".join(compared.split())
    )
    items = json.loads(run("next", "node/worker-2", *reserved, "-o", "json").out)["items"]
    deaths = {
        item["mechanism"]: item
        for item in items
        if item["mechanism"] in {"kubelet eviction", "kubepods limit"}
    }
    assert {line.strip() for line in compared.splitlines() if "→" in line and "Mi " in line} == {
        f"{killer}  {before} {who} → +{deaths[name]['distanceBytes'] >> 20}Mi {who}"
        for killer, name, before, who in (
            ("kubelet evicts", "kubelet eviction", "+587Mi", "batch/crunch-x2k9f"),
            ("kubepods limit", "kubepods limit", "+687Mi", "shop/api-7d9c5b6f8-x2mzq:c"),
        )
    }


def test_an_eviction_threshold_is_a_fact_for_next_and_a_change_for_compare(run: Run) -> None:
    threshold = ("node/worker-2", "--demo", "--assume", "evictionHard=memory.available<300Mi")
    note = "evictionHard is taken as what worker-2 has now"
    assert note in run("next", *threshold).err
    assert note not in run("next", *threshold[:2]).err
    for words, distance in ((threshold[:2], 687), (threshold, 887)):
        deaths = json.loads(run("next", *words, "-o", "json").out)["items"]
        (death,) = (death for death in deaths if death["mechanism"] == "kubepods limit")
        assert death["distanceBytes"] >> 20 == distance
    compared = run("compare", *threshold).out
    assert "+587Mi batch/crunch-x2k9f → +387Mi batch/crunch-x2k9f" in compared
    assert "kubepods limit" not in compared


def test_pods_without_a_node_are_in_no_note_on_nodes(run: Run) -> None:
    assert "RANK on" not in run("top", "--demo", "-n", "ml", "--assume", "memory=12Gi").err


def test_compare_has_the_thresholds_of_eviction(run: Run) -> None:
    words = (
        "compare",
        "node/worker-2",
        "--demo",
        "--assume",
        "evictionHard=memory.available=1Gi",
        "-o",
        "json",
    )
    found = json.loads(run(*words).out)
    assert found["before"]["evictionHard"]["memory.available"] == "100Mi"
    assert found["after"]["evictionHard"]["memory.available"] == "1Gi"


def test_the_preview_of_set_has_all_that_its_text_has(run: Run) -> None:
    words = ("set", "pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--limits", "memory=1Gi", "--demo")
    found = json.loads(run(*words, "-o", "json").out)
    assert found["object"] | {"uid": None} == {
        "kind": "Pod", "namespace": "shop", "name": "api-7d9c5b6f8-x2mzq", "uid": None,
    }  # fmt: skip
    assert [one["reason"] for one in found["findings"]] == ["ResizeNotDone", "LimitBelowUsage"]
    assert found["kubelet"]["status"] == "Error"
    assert {one["when"] for one in found["effects"]["files"]} == {"retried"}
    in_place, template = found["strategies"]
    assert (in_place["possible"], template["possible"]) == (True, True)
    assert in_place["request"]["body"]["spec"] == found["patch"]["spec"]
    assert found["patch"] == yaml.safe_load(run(*words, "-o", "patch").out)
    assert found["manifest"] == yaml.safe_load(run(*words, "-o", "manifest").out)


def test_a_printed_fix_says_what_it_gains(run: Run) -> None:
    """A pod may have two deaths ahead of it, and the patch that is printed is for one of them."""
    words = ("fix", "deploy/api", "-n", "shop", "--demo")
    first, second, *_ = json.loads(run(*words, "-o", "json").out)["items"]
    assert (first["death"]["mechanism"], second["death"]["mechanism"]) == ("pod limit", "kubepods limit")
    assert "own limit 94%: +118Mi → +1.1Gi, but first kubepods" in run(*words, "-o", "kustomize").err
    of_second = run(*words, "--apply", "2", "-o", "kustomize").err
    assert "kubepods limit: +687Mi → +1.9Gi" in of_second


def test_a_change_that_changes_nothing_has_no_patch(run: Run) -> None:
    words = ("set", "pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--limits", "memory=2Gi", "--demo", "-o", "json")
    found = json.loads(run(*words).out)
    assert (found["patch"], found["changes"], found["strategies"]) == (None, [], [])
    assert (found["kubelet"], found["goal"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "goal"),
    [
        ("--outlive batch/crunch-x2k9f", {"outlive": "batch/crunch-x2k9f", "rankBelow": None}),
        ("--outlive crunch-x2k9f", {"outlive": "crunch-x2k9f", "rankBelow": None}),
        ("--outlive po/crunch-x2k9f", {"outlive": "crunch-x2k9f", "rankBelow": None}),
        ("--rank-below 2", {"outlive": None, "rankBelow": 2}),
    ],
)
def test_a_preview_says_when_a_goal_is_reached(run: Run, words: str, goal: dict[str, object]) -> None:
    done = run("set", "pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--demo", "-o", "json", *words.split())
    found = json.loads(done.out)
    assert found["goal"] == {**goal, "when": "restart"}
    assert found["kubelet"] == {"status": "done", "message": ""}


def test_only_a_change_in_place_has_an_answer_of_the_kubelet(run: Run) -> None:
    words = ("set", "pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--demo", "-o", "json")
    recreated = json.loads(run(*words, "--class", "guaranteed").out)
    refused = json.loads(run(*words, "--limits", "memory=1Mi").out)
    assert (recreated["strategy"], recreated["kubelet"]) == ("the pod must be recreated", None)
    assert refused["refusals"]
    assert refused["kubelet"] is None
