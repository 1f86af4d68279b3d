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

TEMPLATE = (
    "kind: {kind}\napiVersion: apps/v1\nmetadata: {{name: front}}\n"
    "spec: {{template: {{spec: {{containers: [{{name: a}}]}}}}}}\n"
)
MANIFEST = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}\n"


def test_one_pod_in_full(run: Run) -> None:
    done = run("compare", "--demo", "pod/db-0", "-n", "data", "--set", "cgroupDriver=cgroupfs")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "node worker-2, kubelet 1.36, cgroupDriver=cgroupfs"
    assert "* cgroup: moves in the tree" in done.lines


def test_a_pod_that_stays_as_it_is(run: Run) -> None:
    done = run("compare", "--demo", "pod/db-0", "-n", "data", "--set", "kernel=6.12")
    assert done.lines[1:] == ["  Nothing changes: class, scores, rank and cgroup files stay the same"]


def test_a_kubelet_that_would_not_start_is_said_first(run: Run) -> None:
    done = run("compare", "--demo", "node/worker-2", "--set", "cgroupVersion=1")
    assert done.lines[1:3] == [
        "! Kubelet: would not start",
        "    cgroup v1 is refused from 1.35 on, unless failCgroupV1 is set to false",
    ]
    values = json.loads(
        run("compare", "--demo", "node/worker-2", "--set", "cgroupVersion=1", "-o", "json").out
    )
    assert values["kubeletRefusals"] == [done.lines[2].strip()]


def test_where_the_processes_go_with_crun(run: Run) -> None:
    done = run("compare", "--demo", "pod/db-0", "-n", "data", "--set", "ociRuntime=crun")
    assert "* cgroup: the containers' processes move" in done.lines
    assert done.lines[-1].endswith(".scope/container")


def test_a_row_shows_the_container_that_would_be_killed_first(run: Run) -> None:
    (row,) = (
        line for line in run("compare", "--demo", "node/worker-2", "--to", "1.30").lines if "search-0" in line
    )
    assert "813 → 999" in row
    assert "1326 → 1333" in row


def test_ended_pods_are_left_out(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    items = [node("worker-1"), pod("web"), pod("ended", phase="Succeeded")]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    done = run("compare", "-f", path, "node/worker-1", "--set", "cgroupDriver=cgroupfs")
    assert "web" in done.out
    assert "ended" not in done.out
    alone = run("compare", "-f", path, "pod/ended", "--set", "cgroupDriver=cgroupfs")
    assert alone.lines[1:] == ["  Nothing changes: the pod has ended: it has no processes"]


def test_the_stored_class_decides_since_1_29(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    stored = pod("web", request="1Gi")
    stored["status"]["qosClass"] = "Guaranteed"
    older = node("worker-1")
    older["status"]["nodeInfo"]["kubeletVersion"] = "v1.28.3"
    path.write_text(json.dumps({"kind": "List", "items": [older, stored]}))
    done = run("compare", "-f", path, "pod/web", "--to", "1.29")
    assert done.lines[1:3] == [
        "* Class: Burstable → Guaranteed",
        "    status.qosClass says Guaranteed, though the spec computes Burstable",
    ]


def test_templates_are_named_by_their_kind(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("---\n".join(TEMPLATE.format(kind=kind) for kind in ("Deployment", "StatefulSet")))
    rows = run("compare", "-f", path, "--set", "cgroupDriver=cgroupfs").out
    assert "deployment/front" in rows
    assert "statefulset/front" in rows


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
    assert done.err == "", "every pod differs"


def test_pods_that_stay_as_they_are_are_counted(run: Run) -> None:
    flags = ["--set", "memoryThrottlingFactor=0.5", "--feature-gates", "MemoryQoS=true"]
    done = run("compare", "--demo", "node/worker-2", *flags)
    rows = [line for line in done.lines if "worker-2" in line and "Burstable" in line]
    assert done.err == f"{17 - len(rows)} of 17 pods stay as they are\n"
    assert 0 < len(rows) < 17


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
    assert done.err.startswith("memory usage is missing: ")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--demo"], 2, "error: nothing to compare with"),
        (["--demo", "--to", "1.99"], 2, "error: unknown release 1.99"),
        (["--demo", "--to", "next"], 1, "error: 'next' is not a Kubernetes version"),
        (["--demo", "--set", "cgroupVersion=3"], 2, "error: cgroupVersion=3: must be 1 or 2"),
        (["--demo", "--set", "x=1"], 2, "error: unknown node setting 'x'"),
        (["--demo", "--to", "1.37", "pod/none"], 1, 'error: pods "none" not found'),
        (["--demo", "--to", "1.37", "-n", "none"], 1, "error: no pods to compare"),
        (["--demo", "--to", "1.37", "pod/a", "pod/b"], 2, "error: one pod, workload or node"),
    ],
)
def test_what_cannot_be_compared(run: Run, arguments: list[str], code: int, sentence: str) -> None:
    done = run("compare", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)
