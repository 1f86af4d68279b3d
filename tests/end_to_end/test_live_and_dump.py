"""Commands on a live cluster: a dump of it gives the same, and what may not be read is named."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos import __version__
from tests.cluster.changing_server import ChangingServer, reference, workload
from tests.cluster.cluster_objects import node, pod, recorded_metrics, recorded_node, recorded_pods
from tests.cluster.https_server import Answer
from tests.cluster.kubectl import KUBECTL, needs_kubectl
from tests.cluster.object_server import ObjectServer
from tests.cluster.replay import Replay, recorded
from tests.cluster.reviewer import READER, Reviewer, reviewed_right
from tests.end_to_end.command import Run, environment
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import EVERYTHING

TOP = [
    "-A",
    "-A -o json",
    "-A -o wide --no-headers",
    "-A --containers",
    "-n default",
    "-n kube-system",
    "--node node1",
    "-A -l set=truth",
    "-A --sort-by memory",
    "-n default gu-two bu-hog",
]
WITH_USAGE = [
    *(f"explain pod/{name} -n default -o json" for name in ("be-plain", "sidecar-large", "pl-sidecar")),
    "explain pod/static-crit-node1 -n kube-system -o json",
    "explain pod/bu-mem-3200mi -n default -o json",
    "simulate node/node1 --free 1Gi",
    "simulate node/node1 --free 1Gi -n shop",
    *(f"top {what}{output}" for what in ("nodes", "node/node1") for output in ("", " -o json", " -o wide")),
]


def dumped(path: Path, *items: Any) -> Path:
    """A dump in the form of `kubectl get -o json`, or -o yaml."""
    value = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
    path.write_text(json.dumps(value, indent=4) if path.suffix == ".json" else yaml.safe_dump(value))
    return path


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        *((f"top {line}", True) for line in TOP),
        *((f"top {line}", False) for line in TOP[:4]),
        *((one, True) for one in WITH_USAGE),
    ],
)
def test_a_real_node_and_a_dump_of_it(run: Run, live: Live, tmp_path: Path, line: str, usage: bool) -> None:
    samples = recorded_metrics() if usage else []
    live(ObjectServer(pods=recorded_pods(), nodes=[recorded_node()], metrics=samples or None))
    dump = dumped(tmp_path / "dump.json", *recorded_pods(), recorded_node(), *samples)
    from_server, from_dump = run(*line.split()), run(*line.split(), "-f", dump)
    assert from_server.code == from_dump.code == 0, from_server.err
    if line.endswith("json"):
        found = [json.loads(done.out) for done in (from_server, from_dump)]
        assert found[0].get("items", found[0]) == found[1].get("items", found[1])
    else:
        assert from_server.out == from_dump.out
    assert len(from_dump.lines) >= 2
    if line.startswith("simulate"):
        assert "PodDisruptionBudgets are read only from manifests (-f FILE.yaml)" in from_server.err


def test_a_workload_is_explained_by_its_pods_that_have_other_names(run: Run, live: Live) -> None:
    pods = [pod("web-1-x", labels={"pod-template-hash": "1"}), pod("other", namespace="else")]
    pods[0]["metadata"]["ownerReferences"] = [reference("ReplicaSet/web-1")]
    live(
        ChangingServer(
            pods=pods,
            nodes=[node("worker-1")],
            workloads=[
                workload("Deployment", "web", {}),
                workload("ReplicaSet", "web-1", {}, owner="Deployment/web"),
            ],
        )
    )
    done = run("explain", "deploy/web", "-n", "shop")
    assert done.lines[0].endswith(", the template of 1 pod on worker-1"), done.err


def test_the_ranking_is_a_full_one(run: Run, tmp_path: Path) -> None:
    """So that the comparison above is of something: 59 pods with a rank, and one that waits."""
    dump = dumped(tmp_path / "dump.yaml", *recorded_pods(), recorded_node(), *recorded_metrics())
    rows = json.loads(run("top", "-f", dump, "-o", "json").out)["items"]
    assert len(rows) == 60
    assert min(row["rank"] for row in rows if row["rank"] is not None) == 1
    assert [row["pod"] for row in rows if row["rank"] is None] == ["bu-mem-3200mi"]
    assert {row["qosClass"] for row in rows} == {"BestEffort", "Burstable", "Guaranteed"}


@needs_kubectl
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_kubectl_dumps_ranks_as_the_server_it_was_dumped_from(
    run: Run, live: Live, tmp_path: Path, form: str
) -> None:
    discovery = {
        path: recorded(name)["response"]["body"]
        for path, name in {"/api": "api", "/apis": "apis", "/api/v1": "api-v1-resources"}.items()
    }
    nodes = [recorded_node(), node("empty")]
    live(ObjectServer(pods=recorded_pods(), nodes=nodes, metrics=[], others=discovery))
    assert KUBECTL is not None
    dump = subprocess.run(
        [KUBECTL, "--cache-dir", str(tmp_path), "get", "pods,nodes", "-A", "-o", form],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
        env=environment(tmp_path),
    )
    from_dump = run("top", "-f", "-", "-A", given=dump.stdout)
    assert len(from_dump.lines) == 61
    assert run("top", "-A").out == from_dump.out


@pytest.mark.parametrize("flags", ["-n rec", "--node node-00001", "-n rec -o json"])
def test_the_replayed_server_ranks_as_its_dump(run: Run, live: Live, tmp_path: Path, flags: str) -> None:
    on_node = recorded("node-pods-rv0")["response"]["body"]["items"]
    known = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in on_node}
    more = [
        one
        for one in recorded("pods-list-ns")["response"]["body"]["items"]
        if ("rec", one["metadata"]["name"]) not in known and "-n" in flags.split()
    ]
    pods = [{"kind": "Pod", "apiVersion": "v1", **one} for one in [*on_node, *more]]
    dump = dumped(tmp_path / "dump.json", *pods, recorded("node-get")["response"]["body"])
    live(Replay())
    from_server, from_dump = run("top", *flags.split()), run("top", "-f", dump, *flags.split())
    assert from_server.code == from_dump.code == 0, from_server.err
    if "json" in flags:
        assert json.loads(from_server.out)["items"] == json.loads(from_dump.out)["items"]
    else:
        assert from_server.out == from_dump.out
        assert len(from_dump.lines) >= 9
    assert from_server.err.count("Metrics API not available") == 1


def test_missing_rights_cost_one_line_each_and_nothing_more(run: Run, live: Live) -> None:
    pods = [pod("web", request="1Gi"), pod("hog", namespace="x")]
    objects = ObjectServer(pods=pods, nodes=[node()], metrics=[])
    objects.forbidden = {
        "/api/v1/pods",
        "/api/v1/nodes/worker-1",
        "/apis/metrics.k8s.io/v1beta1/pods",
        "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods",
    }
    live(objects)
    done = run("top", "-n", "shop")
    assert done.code == 0
    assert [line.split()[:5] for line in done.lines[1:]] == [["-", "shop", "web", "worker-1", "Burstable"]]
    said = [line.partition(" is missing: ") for line in done.err.splitlines() if " is missing: " in line]
    starts = [start for start, _, _ in said]
    assert starts == ["the rest of these nodes' pods", "the nodes' memory capacity", "memory usage"]
    assert all("(grant " in why for _, _, why in said)


def test_the_namespace_of_the_context_is_meant(run: Run, live: Live) -> None:
    pods = [pod("web"), pod("hog", namespace="x")]
    live(ObjectServer(pods=pods, nodes=[node()], metrics=[]), namespace="shop")
    for flags, names in (([], ["web"]), (["-n", "x"], ["hog"]), (["-A"], ["web", "hog"])):
        assert run("top", "-o", "name", *flags).lines == [f"pod/{name}" for name in names]
    assert run("top", "-l", "app=none").err == "No resources found in shop namespace.\n"


def test_a_pod_that_is_not_there(run: Run, live: Live) -> None:
    live(ObjectServer(metrics=[]))
    for words in (["top", "none"], ["explain", "pod/none"]):
        assert run(*words)[:2] == (1, "")
        assert run(*words).err.splitlines()[0] == 'Error from server (NotFound): pods "none" not found'


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_kubeconfig_that_may_not_be_read(run: Run, live: Live) -> None:
    live(ObjectServer())
    path = run.home / ".kube" / "config"
    path.chmod(0)
    why = f'error: error loading config file "{path}": open {path}: permission denied\n'
    assert run("top") == (1, "", why)


def test_a_kubectl_plugin_by_its_name(tmp_path: Path) -> None:
    """`kubectl qos` finds the executable on the PATH and hands on every word."""
    executable = shutil.which("kubectl-qos", path=str(Path(sys.executable).parent))
    if executable is None or KUBECTL is None:
        pytest.skip("kubectl or the installed kubectl-qos is missing")
    variables = environment(tmp_path)
    variables["PATH"] = f"{Path(executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        [KUBECTL, "qos", "top", "--demo", "--node", "worker-2", "--no-headers"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=variables,
    )
    assert (done.returncode, done.stderr.count("\n")) == (0, 2)
    assert done.stdout.splitlines()[0].split()[:3] == ["1", "shop", "api-7d9c5b6f8-x2mzq"]


def test_the_pods_of_a_scope_are_compared_among_all_of_their_node(run: Run) -> None:
    compare = ("compare", "--demo", "--assume", "memory=32Gi", "-o", "json")
    everywhere = json.loads(run(*compare, "node/worker-2").out)
    of_data = json.loads(run(*compare, "-n", "data", "--node", "worker-2").out)
    assert [one for one in everywhere["pods"] if one["namespace"] == "data"] == of_data["pods"] != []
    assert everywhere["settings"] == {"memory": "32Gi"}


def test_a_live_cluster_is_compared(run: Run, live: Live) -> None:
    live(ObjectServer(pods=[pod("web", request="1Gi")], nodes=[node("worker-1")]))
    done = run("compare", "-A", "--to", "1.25", "-o", "yaml")
    assert done.code == 0
    assert "file: memory.oom.group" in done.out
    assert "memory usage is missing: " in done.err


@pytest.mark.parametrize("is_forbidden", [False, True])
def test_the_tree_of_a_live_node_has_the_pods_of_every_namespace(
    run: Run, live: Live, is_forbidden: bool
) -> None:
    objects = ObjectServer(
        pods=[pod("web", request="1Gi"), pod("hog", namespace="other")], nodes=[node()], metrics=[]
    )
    objects.forbidden = {"/api/v1/pods"} if is_forbidden else set()
    live(objects, namespace="shop")
    done = run("tree", "pod/web")
    assert done.code == 0, done.err
    assert done.err.count("count only the pods that you can list") == is_forbidden
    assert "ranks" not in done.err
    if is_forbidden:
        return
    assert "the values of kubepods and the classes include 1 more pod that is not shown" in done.err
    classes = (
        "burstable.slice/kubepods-burstable-poduid_of_web",
        "besteffort.slice/kubepods-besteffort-poduid_of_hog",
    )
    wanted = [f"/kubepods.slice/kubepods-{name}.slice" for name in classes]
    for words in (["node/worker-1"], []):
        done = run("tree", *words, "-o", "json")
        assert done.code == 0, done.err
        paths = [found["path"] for found in json.loads(done.out)["directories"]]
        assert [path for path in paths if path in wanted] == wanted
        assert "metrics" not in done.out.lower()


@pytest.mark.parametrize("rights", [[], EVERYTHING, READER], ids=["nothing", "everything", "a reader"])
def test_the_table_of_rights_fits_into_80_columns(run: Run, live: Live, rights: list[str]) -> None:
    live(Reviewer(rights), namespace="shop")
    assert max(map(len, run("can-i").lines)) <= 80


@pytest.mark.parametrize(
    ("flags", "namespaces"),
    [([], {"", "shop"}), (["-n", "web"], {"", "web"}), (["-A"], {""}), (["-A", "-n", "web"], {""})],
)
def test_the_namespace_of_the_reviews(run: Run, live: Live, flags: list[str], namespaces: set[str]) -> None:
    server = live(Reviewer(), namespace="shop")
    run("can-i", *flags)
    assert {reviewed_right(request).partition(" in ")[2] for request in server.requests} == namespaces


@pytest.mark.parametrize("may_list", [True, False])
def test_the_versions_for_a_bug_report(run: Run, live: Live, may_list: bool) -> None:
    objects = ObjectServer(nodes=[])
    columns = ("Name", "Version", "OS-Image", "Kernel-Version", "Container-Runtime")
    rows = [
        ("a", "v1.36.10", "Talos (v1.14.0)", "6.18", "containerd://2"),
        ("b", "v1.36.9", "Debian", "6.1", "cri-o://1"),
        ("c", "v1.36.9", "Debian", "6.1", "cri-o://1"),
        ("d", "²" + "1" * 5000, "Debian", "6.1", "cri-o://1"),
    ]
    table = {
        "columnDefinitions": [{"name": name} for name in columns],
        "rows": [{"cells": row} for row in rows],
    }
    objects.faults["/api/v1/nodes"] = Answer(body=json.dumps(table).encode())
    objects.forbidden = set() if may_list else {"/api/v1/nodes"}
    if not may_list:
        objects.faults.clear()
    live(objects)
    done = run("version", "-o", "json")
    versions = json.loads(done.out)
    assert versions["serverVersion"]["gitVersion"] == "v1.36.2"
    assert len(versions["notes"]) == may_list  # about the fourth kubelet
    software = [list(entry.values()) for entry in versions["nodeSoftware"]]
    assert software == ([[*rows[1][1:], 2], [*rows[0][1:], 1], [*rows[3][1:], 1]] if may_list else [])
    client = versions["clientVersion"]
    assert client["gitVersion"] == f"v{__version__}"
    assert client["pythonVersion"].endswith(platform.python_version())
    assert client["installedAs"] == "package"
    assert client["urllib3"] == importlib.metadata.version("urllib3")


def test_the_version_without_a_kubeconfig(run: Run) -> None:
    done = run("version")
    assert (done.code, len(done.lines)) == (1, 2)
    assert done.err.splitlines()[0] == "error: no kubeconfig found and not running in a pod"
    assert run("version", "--client", variables={"KUBECONFIG": "/none"}) == (0, done.out, "")
    assert json.loads(run("version", "-o", "json").out)["serverVersion"] is None
