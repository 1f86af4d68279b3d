"""`tree` from the outside: which trees, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

CLASSES = ["/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice"]
WEB = f"{CLASSES[0]}/kubepods-burstable-poduid_of_web.slice"
HOG = f"{CLASSES[1]}/kubepods-besteffort-poduid_of_hog.slice"
MANIFEST = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}\n"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    items = [
        node("worker-1"),
        node("worker-2"),
        pod("web", request="1Gi"),
        pod("hog", namespace="other"),
        pod("ended", phase="Succeeded"),
        pod("far", node="worker-2"),
    ]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def paths(done_out: str) -> list[str]:
    return [found["path"] for found in json.loads(done_out)["directories"]]


def test_one_node_with_every_pod_that_lives(run: Run, dump: Path) -> None:
    done = run("tree", "node/worker-1", "-f", dump)
    assert done.code == 0
    assert done.lines[:3] == [
        "node worker-1, kubelet 1.36, cgroup v2, systemd driver",
        "/sys/fs/cgroup",
        "└─ kubepods.slice",
    ]
    assert "   │  memory.max                = 17179869184" in done.lines
    assert "   │  └─ kubepods-burstable-poduid_of_web.slice   shop/web   Burstable" in done.lines
    assert "ended" not in done.out
    assert "not measured, assumed: " in done.err
    assert len({line.index(" = ") for line in done.lines if " = " in line}) == 1


@pytest.mark.parametrize("words", [["no/worker-1"], ["nodes", "worker-1"], ["Node", "worker-1"]])
def test_nodes_as_kubectl_takes_them(run: Run, dump: Path, words: list[str]) -> None:
    assert run("tree", *words, "-f", dump).lines[0].startswith("node worker-1,")


def test_without_a_name_every_node(run: Run, dump: Path) -> None:
    done = run("tree", "-f", dump)
    assert [line for line in done.lines if line.startswith("node ")] == [
        "node worker-1, kubelet 1.36, cgroup v2, systemd driver",
        "node worker-2, kubelet 1.36, cgroup v2, systemd driver",
    ]
    assert done.err.count("not measured, assumed") == 1
    items = json.loads(run("tree", "-f", dump, "-o", "json").out)["items"]
    assert [item["node"] for item in items] == ["worker-1", "worker-2"]
    lines = run("tree", "-f", dump, "--files").lines
    assert [line for line in lines if not line.startswith("/sys/fs/cgroup/")] == [
        "# node worker-1, kubelet 1.36, cgroup v2, systemd driver",
        "",
        "# node worker-2, kubelet 1.36, cgroup v2, systemd driver",
    ]


def test_the_way_to_one_pod(run: Run, dump: Path) -> None:
    done = run("tree", "pod/web", "-f", dump, "-o", "json")
    assert paths(done.out)[:3] == ["/kubepods.slice", CLASSES[0], WEB]
    assert len(paths(done.out)) == 4
    assert done.err == ""


def test_lines_for_grep_and_diff(run: Run, dump: Path) -> None:
    done = run("tree", "node/worker-1", "-f", dump, "--files")
    assert all(line.startswith("/sys/fs/cgroup/kubepods.slice/") and " = " in line for line in done.lines)
    assert f"/sys/fs/cgroup{WEB}/memory.max = max" in done.lines
    values = json.loads(run("tree", "node/worker-1", "-f", dump, "-o", "json").out)
    assert done.lines == [
        f"/sys/fs/cgroup{found['path']}/{name} = {value}"
        for found in values["directories"]
        for name, value in found["files"].items()
    ]


def test_as_if_the_node_had_cgroup_v1(run: Run, dump: Path) -> None:
    done = run("tree", "pod/web", "-f", dump, "--files", "--cgroup-version", "1")
    assert f"/sys/fs/cgroup/cpu{WEB}/cpu.shares = 2" in done.lines
    assert "cgroup v" not in done.err
    assert "/sys/fs/cgroup/memory/kubepods.slice/memory.limit_in_bytes = 17179869184" in done.lines


def test_both_formats_carry_the_same_facts(run: Run, dump: Path) -> None:
    from_json = json.loads(run("tree", "node/worker-1", "-f", dump, "-o", "json").out)
    assert from_json == yaml.safe_load(run("tree", "node/worker-1", "-f", dump, "-o", "yaml").out)
    assert (from_json["kind"], from_json["cgroup_version"]) == ("CgroupTree", 2)
    of_pod = next(found for found in from_json["directories"] if found["level"] == "pod")
    assert (of_pod["namespace"], of_pod["pod"], of_pod["qos"]) == ("shop", "web", "Burstable")
    of_container = next(found for found in from_json["directories"] if found["level"] == "container")
    assert (of_container["pod"], of_container["container"]) == ("web", "app")
    assert any(note.startswith("not measured, assumed: ") for note in from_json["notes"])


def test_pods_that_are_not_shown_still_count(run: Run, dump: Path) -> None:
    done = run("tree", "node/worker-1", "-f", dump, "-n", "other", "-o", "json")
    values = json.loads(done.out)
    assert paths(done.out)[:4] == ["/kubepods.slice", *CLASSES, HOG]
    assert "the values of kubepods and the classes count 1 more pod that is not shown" in values["notes"]


def test_a_manifest_is_on_an_assumed_node(run: Run) -> None:
    done = run("tree", "-f", "-", given=MANIFEST)
    assert done.lines[0] == "an assumed node, kubelet 1.36, cgroup v2, systemd driver"
    assert "kubepods-besteffort-pod<uid>.slice   p   BestEffort" in done.out
    assert "count only the given pods" in done.err
    assert "unknown, so left out of kubepods: cpu.weight, memory.max, pids.max" in done.err
    with_memory = run("tree", "pod/p", "-f", "-", "--node-memory", "16Gi", "--files", given=MANIFEST)
    assert "/sys/fs/cgroup/kubepods.slice/memory.max = 17179869184" in with_memory.lines


def test_a_pod_without_a_node_is_in_no_tree(run: Run, dump: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(MANIFEST)
    done = run("tree", "-f", dump, "-f", "p.yaml")
    assert done.err.splitlines()[-1] == "1 pod without a node is in no tree"


def serving(serve: Serve, folder: Path, forbidden: set[str] | None = None) -> list[Any]:
    pods = [pod("web", request="1Gi"), pod("hog", namespace="other")]
    objects = ObjectServer(pods=pods, nodes=[node()], metrics=[])
    objects.forbidden = forbidden or set()
    return ["--kubeconfig", write(folder / "config", kubeconfig(serve(objects), namespace="shop"))]


def test_a_live_node_has_the_pods_of_every_namespace(run: Run, serve: Serve, tmp_path: Path) -> None:
    flags = serving(serve, tmp_path)
    for words in (["node/worker-1"], []):
        done = run("tree", *words, *flags, "-o", "json")
        assert done.code == 0, done.err
        assert [path for path in paths(done.out) if path in {WEB, HOG}] == [WEB, HOG]
        assert "metrics" not in done.out.lower()
    done = run("tree", "pod/web", *flags)
    assert "the values of kubepods and the classes count 1 more pod that is not shown" in done.err


def test_pods_that_may_not_be_listed_cannot_count(run: Run, serve: Serve, tmp_path: Path) -> None:
    done = run("tree", "pod/web", *serving(serve, tmp_path, {"/api/v1/pods"}))
    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if "count only the pods that you can list" in line]
    assert len(lines) == 1
    assert "ranks" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["node/none"], 1, 'error: nodes "none" not found in dump.json'),
        (["pod/none"], 1, 'error: pods "none" not found in dump.json'),
        (["pod/ended"], 1, "error: pod ended has ended: its cgroup is gone"),
        (["node"], 2, "error: one node can be shown at a time"),
        (["node/a", "node/b"], 2, "error: one node can be shown at a time"),
        (["pod/web", "pod/hog"], 2, "error: one node or pod can be shown at a time"),
        (["web"], 2, "error: resource(s) were provided, but no name was specified"),
        (["--files", "-o", "json"], 2, "error: --files and -o cannot be used together"),
        (["--cgroup-version", "3"], 2, "error: argument --cgroup-version: invalid choice: 3"),
    ],
)
def test_what_cannot_be_shown(run: Run, dump: Path, arguments: list[str], code: int, sentence: str) -> None:
    done = run("tree", "-f", dump.name, *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)


def test_names_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = pod("red\x1b[31m", namespace="n\x9b", node="worker\x1b-1", request="1Gi")
    evil["metadata"]["uid"] = "u\x1b[2J"
    evil["spec"]["containers"][0]["name"] = "c\x07"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [evil, node("worker\x1b-1")]}))
    for flags in ([], ["--files"], ["-o", "json"], ["-o", "yaml"]):
        done = run("tree", "-f", path, *flags)
        assert done.code == 0, done.err
        assert not set(done.out + done.err) & set("\x1b\x07\x9b"), flags
