"""`tree` of a live node; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

CLASSES = ["/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice"]
WEB = f"{CLASSES[0]}/kubepods-burstable-poduid_of_web.slice"
HOG = f"{CLASSES[1]}/kubepods-besteffort-poduid_of_hog.slice"


def paths(done_out: str) -> list[str]:
    return [found["path"] for found in json.loads(done_out)["directories"]]


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
