"""`explain` from the outside: what it explains, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import node, pod
from tests.end_to_end.command import Run


def deployment(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]}}
    metadata = {"name": name, "namespace": "shop"}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": metadata,
        "spec": {"template": template},
    }


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    items = [node("worker-1"), pod("web", request="1Gi"), pod("hog", namespace="other"), deployment("front")]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def test_one_pod_among_its_neighbours(run: Run, dump: Path) -> None:
    done = run("explain", "pod/web", "-f", dump)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "pod shop/web on worker-1, kubelet 1.36"
    assert "OOM        rank 2 of 2, oom_score 1291" in done.lines
    assert "  killed before it: other/hog (1332)" in done.lines


@pytest.mark.parametrize("words", [["po/web"], ["pods", "web"], ["Pod", "web"]])
def test_kinds_as_kubectl_takes_them(run: Run, dump: Path, words: list[str]) -> None:
    assert run("explain", *words, "-f", dump).lines[0].startswith("pod shop/web")


def test_a_workload_by_its_template(run: Run, dump: Path) -> None:
    done = run("explain", "deploy/front", "-f", dump)
    assert done.code == 0
    assert done.lines[0] == "deployment shop/front, kubelet 1.36"
    assert "  app  adj 3..999   1000 - 1000 × request / capacity, capacity unknown" in done.lines


def test_several_are_told_apart(run: Run, dump: Path) -> None:
    done = run("explain", "pod/web", "deploy/front", "-f", dump)
    assert [line for line in done.lines if line.endswith(", kubelet 1.36")] == [
        "pod shop/web on worker-1, kubelet 1.36",
        "deployment shop/front, kubelet 1.36",
    ]
    values = json.loads(run("explain", "pod/web", "deploy/front", "-f", dump, "-o", "json").out)
    assert values["kind"] == "List"
    assert [item["name"] for item in values["items"]] == ["web", "front"]


def test_without_a_name_everything_in_the_file(run: Run, dump: Path) -> None:
    items = json.loads(run("explain", "-f", dump, "-o", "json").out)["items"]
    assert [item["name"] for item in items] == ["web", "hog", "front"]
    one = json.loads(run("explain", "-f", dump, "-n", "other", "-o", "json").out)
    assert (one["kind"], one["name"]) == ("PodExplanation", "hog")


def test_both_formats_carry_the_same_facts(run: Run, dump: Path) -> None:
    from_json = json.loads(run("explain", "pod/web", "-f", dump, "-o", "json").out)
    assert from_json == yaml.safe_load(run("explain", "pod/web", "-f", dump, "-o", "yaml").out)
    assert (from_json["qos"]["class"], from_json["rank"], from_json["oom_score"]) == ("Burstable", 2, 1291)
    assert from_json["containers"][0]["oom_score_adj"] == 938
    assert from_json["containers"][0]["reason"]["inputs"]["request"] == 1 << 30


def test_a_manifest_on_standard_input(run: Run) -> None:
    done = run(
        "explain", "-f", "-", given="kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}\n"
    )
    assert (done.code, done.lines[0]) == (0, "pod p, kubelet 1.36")


def test_good_documents_are_explained_beside_a_bad_one(run: Run, tmp_path: Path) -> None:
    good = "kind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a}]}\n"
    (tmp_path / "x.yaml").write_text(f"{good}---\nkind: Pod\nmetadata: {{name: bad}}\n")
    done = run("explain", "-f", "x.yaml")
    assert done.code == 1
    assert done.lines[0] == "pod good, kubelet 1.36"
    assert done.err == "error: x.yaml: document 2 (line 4): pod/bad: spec.containers: Required value\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["pod/none"], 1, 'error: pods "none" not found in dump.json'),
        (["deploy/none"], 1, 'error: deployments "none" not found in dump.json'),
        (["pod/hog", "-n", "shop"], 1, 'error: pods "hog" not found in dump.json'),
        (["-n", "none"], 1, "error: no pods to explain"),
        (["web"], 2, "error: resource(s) were provided, but no name was specified"),
        (["pod/"], 2, "error: resource(s) were provided, but no name was specified"),
        (["pod/a/b"], 2, "error: arguments in resource/name form may not have more than one slash"),
        (["pod/web", "hog"], 2, "error: there is no need to specify a resource type as a separate argument"),
        (["service/web"], 2, 'error: the server doesn\'t have a resource type "service" with pods'),
    ],
)
def test_what_cannot_be_explained(
    run: Run, dump: Path, arguments: list[str], code: int, sentence: str
) -> None:
    done = run("explain", "-f", dump.name, *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)


def test_names_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = pod("red\x1b[31m", namespace="n\x9b", node="worker\x1b-1", request="1Gi")
    evil["spec"]["containers"][0]["name"] = "c\x07\x1b[2J"
    evil["status"]["containerStatuses"] = [
        {
            "name": "c\x07\x1b[2J",
            "containerID": "containerd://\x1b[31m",
            "lastState": {"terminated": {"exitCode": 1, "reason": "Err\x1b[5mor"}},
        }
    ]
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps({"kind": "List", "items": [evil, node("worker\x1b-1"), pod("b", node="worker\x1b-1")]})
    )
    for output in ([], ["-o", "json"], ["-o", "yaml"]):
        done = run("explain", "pod/red\x1b[31m", "-f", path, *output)
        assert done.code == 0, done.err
        assert not set(done.out) & set("\x1b\x07\x9b"), output


def test_what_a_person_knows_of_the_nodes_counts(run: Run) -> None:
    done = run(
        *("explain", "--demo", "pod/db-0", "-n", "data"),
        *("--assume", "ociRuntime=crun-1.22", "--feature-gates", "MemoryQoS=true,NodeSwap=true"),
    )
    assert done.code == 0
    assert "its processes, by crun" in done.out
    assert "memory.min = 0" in done.out
    assert "a current runc" not in done.out
    assert "feature gates at their defaults" not in done.out


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--assume", "x=1"], "error: unknown node setting 'x'"),
        (["--feature-gates", "MemoryQoS"], "error: 'featureGates.MemoryQoS' is not KEY=VALUE"),
        (
            ["--feature-gates", "MemoryQoS=maybe"],
            "error: featureGates.MemoryQoS=maybe: must be true or false",
        ),
    ],
)
def test_what_a_person_cannot_know_is_refused(run: Run, flags: list[str], sentence: str) -> None:
    done = run("top", "--demo", *flags)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(sentence)
