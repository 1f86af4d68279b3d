"""What a person sees of the demo cluster, to the letter."""

from __future__ import annotations

import pytest

from kubectl_qos.cluster.files import DEMO_FILE
from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import assert_as_kept
from tests.recordings import make_demo


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("top", []),
        ("top-wide", ["-o", "wide"]),
        ("top-risk", ["--min-risk", "high"]),
        ("top-one-node", ["--node", "worker-2"]),
        ("top-one-namespace", ["-n", "shop"]),
        ("top-containers", ["-n", "shop", "--containers"]),
        ("top-eviction", ["--node", "worker-2", "--sort-by", "eviction"]),
        ("top-csv", ["-n", "data", "-o", "csv"]),
        ("top-name", ["-n", "data", "-o", "name"]),
        ("top-json", ["-n", "team-a", "-o", "json"]),
        ("top-yaml", ["-n", "team-a", "-o", "yaml"]),
    ],
)
def test_top(run: Run, name: str, arguments: list[str]) -> None:
    done = run("top", "--demo", *arguments)
    assert done.code == 0
    assert_as_kept(name, done.out + done.err)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("top-nodes", []),
        ("top-nodes-wide", ["-o", "wide"]),
        ("top-nodes-sorted", ["--sort-by", "soft_eviction", "--no-headers"]),
        ("top-nodes-csv", ["-o", "csv"]),
        ("top-nodes-name", ["-o", "name"]),
        ("top-nodes-json", ["-o", "json", "--node", "worker-2"]),
        ("top-nodes-yaml", ["-o", "yaml", "--node", "worker-2"]),
    ],
)
def test_top_nodes(run: Run, name: str, arguments: list[str]) -> None:
    done = run("top", "nodes", "--demo", *arguments)
    assert done.code == 0
    assert_as_kept(name, done.out + done.err)


@pytest.mark.parametrize(
    ("namespace", "pod"),
    [
        ("shop", "api-7d9c5b6f8-x2mzq"),
        ("data", "db-0"),
        ("batch", "crunch-x2k9f"),
        ("kube-system", "kube-apiserver-control-1"),
        ("sandboxed", "vm-runner-0"),
        ("ml", "huge-0"),
    ],
)
def test_explain(run: Run, namespace: str, pod: str) -> None:
    done = run("explain", f"pod/{pod}", "-n", namespace, "--demo")
    assert (done.code, done.err) == (0, "")
    assert_as_kept(f"explain-{pod}", done.out)


def test_explain_as_values(run: Run) -> None:
    done = run("explain", "pod/db-0", "-n", "data", "--demo", "-o", "yaml")
    assert (done.code, done.err) == (0, "")
    assert_as_kept("explain-db-0-yaml", done.out)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tree-node", ["node/worker-3"]),
        ("tree-pod", ["pod/db-0", "-n", "data"]),
        ("tree-files", ["pod/db-0", "-n", "data", "--files", "--cgroup-version", "1"]),
        ("tree-yaml", ["pod/db-0", "-n", "data", "-o", "yaml"]),
    ],
)
def test_tree(run: Run, name: str, arguments: list[str]) -> None:
    done = run("tree", "--demo", *arguments)
    assert done.code == 0
    assert_as_kept(name, done.out + done.err)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("compare-node", ["node/worker-3", "--to", "1.37"]),
        ("compare-pod", ["pod/db-0", "-n", "data", "--set", "featureGates.MemoryQoS=true"]),
        ("compare-yaml", ["pod/db-0", "-n", "data", "--set", "cgroupVersion=1", "-o", "yaml"]),
    ],
)
def test_compare(run: Run, name: str, arguments: list[str]) -> None:
    done = run("compare", "--demo", *arguments)
    assert done.code == 0
    assert_as_kept(name, done.out + done.err)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("set-in-place", ["pod/api-7d9c5b6f8-x2mzq", "--requests", "memory=1Gi", "--limits", "memory=3Gi"]),
        ("set-to-guaranteed", ["pod/search-0", "--to", "guaranteed"]),
        ("set-to-burstable", ["pod/db-0", "-n", "data", "--to", "burstable"]),
        ("set-nothing", ["pod/db-0", "-n", "data", "--to", "guaranteed"]),
        ("set-patch", ["pod/gateway-58f-jq2md", "--pod-level", "--limits", "memory=1Gi,cpu-", "-o", "patch"]),
        ("set-yaml", ["pod/db-0", "-n", "data", "-c", "b", "--limits", "memory=256Mi", "-o", "yaml"]),
    ],
)
def test_set(run: Run, name: str, arguments: list[str]) -> None:
    done = run("set", "--demo", *arguments)
    assert done.code == 0
    assert_as_kept(name, done.out + done.err)


def test_the_demo_is_made_of_the_recordings() -> None:
    assert make_demo.make() == DEMO_FILE.read_text(encoding="utf-8")
