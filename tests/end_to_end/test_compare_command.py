"""`compare` from the outside: one pod in full, a table of many, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

MANIFEST = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}\n"


def test_one_pod_in_full(run: Run) -> None:
    done = run("compare", "--demo", "pod/db-0", "-n", "data", "--set", "cgroupDriver=cgroupfs")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "node worker-2, kubelet 1.36, cgroupDriver=cgroupfs"
    assert "* cgroup: another place in the tree" in done.lines


def test_a_pod_that_stays_as_it_is(run: Run) -> None:
    done = run("compare", "--demo", "pod/db-0", "-n", "data", "--set", "kernel=6.12")
    assert done.lines[1:] == ["  Nothing changes: class, scores, rank and cgroup files stay as they are"]


def test_a_node_as_a_table(run: Run) -> None:
    done = run("compare", "--demo", "node/worker-2", "--set", "memory=32Gi")
    assert done.code == 0
    assert done.lines[:3] == [
        "node worker-2, kubelet 1.36, memory=32Gi",
        "* cgroup /kubepods.slice",
        "    memory.max  16642998272 → 33822867456",
    ]
    first = done.lines[5].split("   ")
    assert [cell.strip() for cell in first if cell][2:6] == [
        "api-7d9c5b6f8-x2mzq",
        "worker-2",
        "Burstable",
        "969 → 985",
    ]
    assert done.err.strip().endswith("of 17 pods stay as they are")


def test_the_pods_of_a_scope_are_compared_among_all_of_their_node(run: Run) -> None:
    everywhere = json.loads(
        run("compare", "--demo", "node/worker-2", "--set", "memory=32Gi", "-o", "json").out
    )
    of_data = json.loads(
        run(
            *("compare", "--demo", "-n", "data", "--node", "worker-2"),
            *("--set", "memory=32Gi", "-o", "json"),
        ).out
    )
    assert [one for one in everywhere["pods"] if one["namespace"] == "data"] == of_data["pods"] != []
    assert everywhere["settings"] == {"memory": "32Gi"}


def test_a_manifest_on_an_assumed_node(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(MANIFEST)
    done = run("compare", "-f", path, "pod/p", "--set", "ociRuntime=crun-1.22")
    assert done.code == 0
    assert "cpu.weight  100 → 39" in done.out


def test_a_live_cluster(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=[pod("web", request="1Gi")], nodes=[node("worker-1")]))
    config = write(tmp_path / "config", kubeconfig(server))
    done = run("compare", "--kubeconfig", config, "-A", "--to", "1.25", "-o", "yaml")
    assert done.code == 0
    assert "file: memory.oom.group" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--demo"], 2, "error: nothing to compare with"),
        (["--demo", "--to", "1.99"], 2, "error: Kubernetes 1.99 is not known"),
        (["--demo", "--to", "next"], 1, "error: 'next' is not a Kubernetes version"),
        (["--demo", "--set", "cgroupVersion=3"], 2, "error: cgroupVersion=3: one of 1, 2 is needed"),
        (["--demo", "--set", "x=1"], 2, "error: there is no setting 'x'"),
        (["--demo", "--to", "1.37", "pod/none"], 1, 'error: pods "none" not found'),
        (["--demo", "--to", "1.37", "-n", "none"], 1, "error: no pods to compare"),
        (["--demo", "--to", "1.37", "pod/a", "pod/b"], 2, "error: one pod, workload or node"),
    ],
)
def test_what_cannot_be_compared(run: Run, arguments: list[str], code: int, sentence: str) -> None:
    done = run("compare", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)
