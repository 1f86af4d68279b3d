"""`simulate` of a live node; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster_objects import recorded_metrics, recorded_node, recorded_pods
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run


def dump(folder: Path, objects: list[dict[str, Any]], name: str = "dump.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return path


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
