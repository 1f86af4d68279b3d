"""`kubectl qos simulate`: what it prints, in which format, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import recorded_metrics, recorded_node, recorded_pods
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run

NODE = {
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {
        "capacity": {"memory": "1Gi", "cpu": "2"},
        "allocatable": {"memory": "924Mi", "cpu": "2"},
        "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": "6.1"},
    },
}


def pod(name: str, used: str, **spec: Any) -> list[dict[str, Any]]:
    """A pod of one container on n1, and what it uses."""
    limits = spec.pop("limits", None)
    container: dict[str, Any] = {"name": "c", "resources": {"limits": limits} if limits else {}}
    metadata = {"name": name, "namespace": "x", "labels": {"app": name}}
    return [
        {
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": "n1", "containers": [container], **spec},
            "status": {"phase": "Running"},
        },
        {
            "kind": "PodMetrics",
            "metadata": metadata,
            "containers": [{"name": "c", "usage": {"memory": used}}],
        },
    ]


PDB = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web-pdb", "namespace": "x"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0},
}
OBJECTS = [
    NODE,
    *pod("batch", "300Mi", restartPolicy="Never"),
    *pod("web", "200Mi"),
    *pod("core", "50Mi", priority=2_000_000_000, priorityClassName="system-cluster-critical"),
    *pod("db", "100Mi", limits={"memory": "128Mi", "cpu": "1"}),
]


def dump(folder: Path, objects: list[dict[str, Any]], name: str = "dump.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return path


@pytest.fixture
def node(run: Run, tmp_path: Path) -> Any:
    path = dump(tmp_path, [*OBJECTS, PDB])

    def ask(*arguments: str | Path) -> Done:
        return run("simulate", "node/n1", "-f", path, *arguments)

    return ask


def steps(done: Done) -> list[list[str]]:
    """The cells of the table before the note."""
    lines = [line.split() for line in done.lines]
    return [line for line in lines if line and line[0].isdigit()]


def test_the_steps_and_what_comes_of_them(node: Any) -> None:
    done = node("--free", "450Mi")
    assert done.code == 0
    assert done.lines[0] == "node n1, kubelet 1.36: its pods use 650Mi of 1Gi"
    assert [line[2] for line in steps(done)] == ["x/batch", "x/web"]
    assert "! first important: PodDisruptionBudget web-pdb is violated" in done.out
    assert (
        done.lines[-1] == "after 2 kills 874Mi is free; the first important pod, x/web, is killed at step 2"
    )
    assert "neither the kernel nor node-pressure eviction respects PodDisruptionBudgets" in done.err
    assert "--restarts simulates that" in done.err


def test_what_lasts(node: Any) -> None:
    done = node("--free", "450Mi", "--restarts")
    assert [line[2] for line in steps(done)] == ["x/batch", "x/web", "x/core", "x/db"]
    assert done.lines[-1].startswith("after 4 kills 674Mi is free: 450Mi cannot be freed; ")


def test_growth_and_eviction(node: Any) -> None:
    limited = node("--grow", "pod/db=500Mi")
    assert [line[1:4] for line in steps(limited)] == [["pod", "limit", "x/db"]]
    assert "not every growing container survives to reach its size" in limited.lines[-1]
    of_node = node("--grow", "node=300Mi", "--eviction")
    assert [line[1:3] for line in steps(of_node)] == [["eviction", "x/batch"]]
    assert "(assumed)" in of_node.err
    fits = node("--grow", "pod/web:c=+100Mi")
    assert fits.lines[-1] == "nothing is killed: 274Mi is free then"
    both = node("--grow", "pod/web=+100Mi", "--grow", "node=150Mi", "-n", "x")
    assert both.lines[-1] == "nothing is killed: 124Mi is free then"


def test_critical_pods_are_refused(node: Any) -> None:
    done = node("--free", "640Mi", "--eviction")
    assert [line[1:3] for line in steps(done)] == [
        ["eviction", "x/batch"],
        ["eviction", "x/web"],
        ["eviction", "x/db"],
        ["node", "x/core"],
    ]
    assert "x/core refused: critical" in done.out
    assert "critical pods are not evicted: x/core" in done.err


def test_eviction_alone_and_limits(node: Any) -> None:
    assert node("--eviction").lines[-1] == "nothing is killed or evicted: 374Mi is available"
    assert node("--all-at-limit").lines[-1] == "nothing is killed: 346Mi is free then"
    until = node("--until-oom")
    assert until.lines[-1].startswith(
        "182Mi more, with each container at 128%, until the first is hit: x/db, container c"
    )


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_values(node: Any, output: str) -> None:
    done = node("--free", "450Mi", "--important", "app=db", "-o", output)
    values = json.loads(done.out) if output == "json" else yaml.safe_load(done.out)
    assert values["kind"] == "Simulation"
    assert values["firstImportantStep"] == 2
    assert values["scenario"]["freeBytes"] == 450 << 20
    first = values["steps"][0]
    assert (first["pod"], first["container"], first["oomScoreAdj"], first["by"]) == (
        "batch",
        "c",
        1000,
        "node",
    )
    assert first["freedBytes"] == 300 << 20
    assert values["after"]["freeBytes"] == 874 << 20
    assert values["notes"]
    assert done.err == ""


def test_what_if(node: Any, run: Run, tmp_path: Path) -> None:
    changed = pod("batch", "0", limits={"memory": "400Mi", "cpu": "1"})[0]
    path = dump(tmp_path, [changed], "change.json")
    done = node("--free", "250Mi", "--what-if", path)
    assert "now: after 1 kill 674Mi is free; no important pod is killed" in done.lines
    assert any(line.startswith("then: after 2 kills") for line in done.lines)
    values = json.loads(node("--free", "250Mi", "--what-if", path, "-o", "json").out)
    assert [step["pod"] for step in values["then"]["steps"]] == ["web", "core"]
    demo = run("simulate", "node/worker-2", "--demo", "--free", "1Gi", "--what-if", "-f", path)
    assert (demo.code, demo.err.splitlines()[0]) == (
        1,
        "error: none of pod/batch is on worker-2",
    )
    alone = run("simulate", "node/worker-2", "--demo", "--free", "1Gi", "--what-if")
    assert "--what-if needs changed manifests" in alone.err


def test_the_template_of_a_workload_changes_its_pods(run: Run, tmp_path: Path) -> None:
    objects = pod("api-7d9c5-x1", "200Mi")
    objects[0]["metadata"] |= {
        "labels": {"pod-template-hash": "7d9c5"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "api-7d9c5", "controller": True}],
    }
    path = dump(tmp_path, [NODE, *objects, *pod("other", "100Mi")])
    resources = {"requests": {"memory": "600Mi"}}
    template = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    change = {"kind": "Deployment", "metadata": {"name": "api"}, "spec": {"template": template}}
    other = {**change, "metadata": {"name": "elsewhere"}}
    changes = dump(tmp_path, [change, other], "change.json")
    done = run("simulate", "node/n1", "-f", path, "--free", "1Mi", "--what-if", changes, "-o", "json")
    values = json.loads(done.out)
    assert [values[when]["steps"][0]["pod"] for when in ("now", "then")] == ["api-7d9c5-x1", "other"]
    assert "deployment/elsewhere has no pod on n1" in done.err


def test_names_are_shown_and_do_nothing(run: Run, tmp_path: Path) -> None:
    path = dump(
        tmp_path, [NODE, *pod("web\x1b[31m", "200Mi", priority=1_500_000_000, priorityClassName="a\nb")]
    )
    done = run("simulate", "node/n1", "-f", path, "--free", "1Mi")
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert "web\\x1b[31m" in done.out
    assert "priority a\\nb" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what happens on the node?"),
        (("--free", "1Gi", "--until-oom"), "--free and --until-oom are two questions"),
        (("--free", "much"), "--free 'much'"),
        (("--free", "0"), "must be positive"),
        (("--grow", "web=1Gi"), "does not say what grows"),
        (("--grow", "pod/web"), "does not say what grows"),
        (("--grow", "pod/nobody=1Gi"), "pod nobody has no processes on n1"),
        (("--grow", "pod/web:d=1Gi"), "container d of pod web has no processes"),
        (("--grow", "pod/web=1Mi"), "container c uses 200Mi already"),
        (("--free", "1Gi", "--important", "a b"), "unable to parse label selector"),
        (("--free", "1Gi", "--what-if", "nothing.yaml"), "does not exist"),
    ],
)
def test_what_makes_no_question(node: Any, arguments: tuple[str, ...], message: str) -> None:
    done = node(*arguments)
    assert done.code in {1, 2}
    assert message in done.err
    assert done.out == ""


def test_which_node(run: Run, tmp_path: Path) -> None:
    path = dump(tmp_path, OBJECTS)
    assert "which node?" in run("simulate", "-f", path, "--free", "1Gi").err
    assert 'nodes "n2" not found' in run("simulate", "node/n2", "-f", path, "--free", "1Gi").err
    assert "what is simulated is a node" in run("simulate", "pod/web", "-f", path, "--free", "1Gi").err
    bare = dump(tmp_path, [OBJECTS[0], OBJECTS[1]], "bare.json")
    assert "memory usage is unknown" in run("simulate", "node/n1", "-f", bare, "--free", "1Gi").err
    no_node = dump(tmp_path, OBJECTS[1:], "pods.json")
    assert "capacity of n1 is unknown" in run("simulate", "node/n1", "-f", no_node, "--free", "1Gi").err
    assumed = run("simulate", "node/n1", "-f", no_node, "--free", "1Mi", "--node-memory", "1Gi")
    assert assumed.code == 0
    assert "the limit of kubepods is unknown" in assumed.err


@pytest.mark.parametrize("flags", [[], ["-n", "shop"]], ids=["everywhere", "one namespace"])
def test_a_live_node_and_its_dump_end_alike(run: Run, serve: Serve, tmp_path: Path, flags: list[str]) -> None:
    pods, nodes, samples = recorded_pods(), [recorded_node()], recorded_metrics()
    server = serve(ObjectServer(pods=pods, nodes=nodes, metrics=samples))
    config = str(write(tmp_path / "config", kubeconfig(server)))
    name = nodes[0]["metadata"]["name"]
    live = run("simulate", f"node/{name}", "--free", "1Gi", "--kubeconfig", config, *flags)
    path = dump(tmp_path, [*pods, *nodes, *samples])
    dumped = run("simulate", f"node/{name}", "--free", "1Gi", "-f", path)
    assert live.code == 0
    assert live.out == dumped.out
    assert "PodDisruptionBudgets are only taken from" in live.err
