"""`compare` of a part of a node and of a live cluster; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run


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


def test_a_live_cluster(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=[pod("web", request="1Gi")], nodes=[node("worker-1")]))
    config = write(tmp_path / "config", kubeconfig(server))
    done = run("compare", "--kubeconfig", config, "-A", "--to", "1.25", "-o", "yaml")
    assert done.code == 0
    assert "file: memory.oom.group" in done.out
    assert done.err.startswith("memory usage is missing: ")
