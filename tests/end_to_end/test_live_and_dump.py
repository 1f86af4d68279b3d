"""A live cluster and a dump of it are the same thing: one ranking, one explanation."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import node, pod, recorded_metrics, recorded_node, recorded_pods
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import KUBECTL, needs_kubectl
from tests.cluster.object_server import ObjectServer
from tests.cluster.replay import Replay, recorded
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run, environment

FLAGS = [
    ["-A"],
    ["-A", "-o", "json"],
    ["-A", "-o", "wide", "--no-headers"],
    ["-A", "--containers"],
    ["-n", "default"],
    ["-n", "kube-system"],
    ["--node", "node1"],
    ["-A", "-l", "set=truth"],
    ["-A", "--sort-by", "memory"],
    ["-n", "default", "gu-two", "bu-hog"],
]


def dumped(path: Path, *items: Iterable[Any]) -> Path:
    """A dump in the form of `kubectl get -o json`, or -o yaml."""
    value = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": [item for group in items for item in group],
    }
    path.write_text(json.dumps(value, indent=4) if path.suffix == ".json" else yaml.safe_dump(value))
    return path


def live(serve: Serve, folder: Path, objects: ObjectServer) -> list[str]:
    """The flags that lead to a server of these objects."""
    return ["--kubeconfig", str(write(folder / "config", kubeconfig(serve(objects))))]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("usage", [False, True], ids=["without usage", "with usage"])
def test_the_ranking_of_a_real_node(
    run: Run, serve: Serve, tmp_path: Path, flags: list[str], usage: bool
) -> None:
    samples = recorded_metrics() if usage else []
    server = ObjectServer(pods=recorded_pods(), nodes=[recorded_node()], metrics=samples or None)
    dump = dumped(tmp_path / "dump.json", recorded_pods(), [recorded_node()], samples)
    from_dump = run("top", "-f", dump, *flags)
    from_server = run("top", *live(serve, tmp_path, server), *flags)
    assert from_server.code == from_dump.code == 0, from_server.err
    if "json" in flags:
        assert json.loads(from_server.out)["items"] == json.loads(from_dump.out)["items"]
    else:
        assert from_server.out == from_dump.out
    assert len(from_dump.lines) > 2


def test_the_ranking_is_a_full_one(run: Run, tmp_path: Path) -> None:
    """So that the comparison above is of something: 59 pods with a rank, and one that waits."""
    dump = dumped(tmp_path / "dump.yaml", recorded_pods(), [recorded_node()], recorded_metrics())
    rows = json.loads(run("top", "-f", dump, "-o", "json").out)["items"]
    assert len(rows) == 60
    assert min(row["rank"] for row in rows if row["rank"] is not None) == 1
    assert [row["pod"] for row in rows if row["rank"] is None] == ["bu-mem-3200mi"]
    assert {row["qos"] for row in rows} == {"BestEffort", "Burstable", "Guaranteed"}


@pytest.mark.parametrize(
    "name", ["be-plain", "sidecar-large", "pl-sidecar", "static-crit-node1", "bu-mem-3200mi"]
)
def test_the_explanation_of_a_real_pod(run: Run, serve: Serve, tmp_path: Path, name: str) -> None:
    namespace = next(
        one["metadata"]["namespace"] for one in recorded_pods() if one["metadata"]["name"] == name
    )
    server = ObjectServer(pods=recorded_pods(), nodes=[recorded_node()], metrics=recorded_metrics())
    dump = dumped(tmp_path / "dump.json", recorded_pods(), [recorded_node()], recorded_metrics())
    arguments = ["explain", f"pod/{name}", "-n", namespace, "-o", "json"]
    from_server = run(*arguments, *live(serve, tmp_path, server))
    assert from_server.code == 0, from_server.err
    assert json.loads(from_server.out) == json.loads(run(*arguments, "-f", dump).out)


@needs_kubectl
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_kubectl_dumps_ranks_as_the_server_it_was_dumped_from(
    run: Run, serve: Serve, tmp_path: Path, form: str
) -> None:
    discovery = {
        path: recorded(name)["response"]["body"]
        for path, name in {"/api": "api", "/apis": "apis", "/api/v1": "api-v1-resources"}.items()
    }
    objects = ObjectServer(
        pods=recorded_pods(), nodes=[recorded_node(), node("empty")], metrics=[], others=discovery
    )
    flags = live(serve, tmp_path, objects)
    assert KUBECTL is not None
    dump = subprocess.run(
        [KUBECTL, *flags, "--cache-dir", str(tmp_path), "get", "pods,nodes", "-A", "-o", form],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
        env=environment(tmp_path),
    )
    from_dump = run("top", "-f", "-", "-A", given=dump.stdout)
    assert len(from_dump.lines) == 61
    assert run("top", "-A", *flags).out == from_dump.out


@pytest.mark.parametrize(
    "flags", [["-n", "rec"], ["--node", "node-00001"], ["-n", "rec", "-o", "json"]], ids=" ".join
)
def test_the_replayed_server_ranks_as_its_dump(
    run: Run, serve: Serve, tmp_path: Path, flags: list[str]
) -> None:
    on_node = recorded("node-pods-rv0")["response"]["body"]["items"]
    known = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in on_node}
    more = [
        one
        for one in recorded("pods-list-ns")["response"]["body"]["items"]
        if ("rec", one["metadata"]["name"]) not in known and "-n" in flags
    ]
    pods = [{"kind": "Pod", "apiVersion": "v1", **one} for one in [*on_node, *more]]
    dump = dumped(tmp_path / "dump.json", pods, [recorded("node-get")["response"]["body"]])
    config = write(tmp_path / "config", kubeconfig(serve(Replay())))
    from_server = run("top", "--kubeconfig", config, *flags)
    from_dump = run("top", "-f", dump, *flags)
    assert from_server.code == from_dump.code == 0, from_server.err
    if "json" in flags:
        assert json.loads(from_server.out)["items"] == json.loads(from_dump.out)["items"]
    else:
        assert from_server.out == from_dump.out
        assert len(from_dump.lines) >= 9
    assert from_server.err.count("Metrics API not available") == 1


def test_missing_rights_cost_one_line_each_and_nothing_more(run: Run, serve: Serve, tmp_path: Path) -> None:
    objects = ObjectServer(
        pods=[pod("web", request="1Gi"), pod("hog", namespace="x")], nodes=[node()], metrics=[]
    )
    objects.forbidden = {
        "/api/v1/pods",
        "/api/v1/nodes/worker-1",
        "/apis/metrics.k8s.io/v1beta1/pods",
        "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods",
    }
    done = run("top", "-n", "shop", *live(serve, tmp_path, objects))
    assert done.code == 0
    assert [line.split()[:4] for line in done.lines[1:]] == [["-", "shop", "web", "Burstable"]]
    starts = [line.partition(" is missing: ")[0] for line in done.err.splitlines() if " is missing: " in line]
    assert starts == ["the rest of these nodes' pods", "the nodes' memory capacity", "memory usage"]
    assert all("(grant " in line for line in done.err.splitlines() if " is missing: " in line)


def test_the_namespace_of_the_context_is_meant(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=[pod("web"), pod("hog", namespace="x")], nodes=[node()], metrics=[]))
    config = write(tmp_path / "config", kubeconfig(server, namespace="shop"))
    assert run("top", "--kubeconfig", config, "-o", "name").lines == ["pod/web"]
    assert run("top", "--kubeconfig", config, "-o", "name", "-n", "x").lines == ["pod/hog"]
    assert run("top", "--kubeconfig", config, "-o", "name", "-A").lines == ["pod/web", "pod/hog"]
    none = run("top", "--kubeconfig", config, "-l", "app=none")
    assert none.err == "No resources found in shop namespace.\n"


def test_the_environment_names_the_kubeconfig(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=[pod("web", namespace="default")], nodes=[node()], metrics=[]))
    config = write(tmp_path / "elsewhere", kubeconfig(server))
    done = run("top", "-o", "name", variables={"KUBECONFIG": str(config)})
    assert done.lines == ["pod/web"]


def test_a_kubectl_plugin_by_its_name(serve: Serve, tmp_path: Path) -> None:
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
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stdout.splitlines()[0].split()[:3] == ["1", "shop", "api-7d9c5b6f8-x2mzq"]
