"""What the examples of the documentation need: the demo as a dump, manifests, logs, a node's dump."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubectl_qos.cluster.files import DEMO_FILE
from tests.cluster.cluster_objects import pod
from tests.end_to_end.command import Run
from tests.host.fake_node import FakeNode, recorded_node
from tests.recordings.files import read


def dump() -> str:
    """The demo cluster with a Deployment, as kubectl would print it."""
    objects = json.loads(DEMO_FILE.read_text(encoding="utf-8"))
    objects["items"].append(deployment("api"))
    return json.dumps(objects)


def deployment(name: str) -> dict[str, Any]:
    """A Deployment of the namespace shop with one container `app`."""
    resources = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": f"{name}:1.4", "resources": resources}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-of-{name}"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def single(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as a person writes it: without what only a server fills in."""
    del manifest["metadata"]["uid"]
    return {name: value for name, value in manifest.items() if name != "status"}


def kernel_log() -> str:
    """The recorded one of a node that ran out of memory."""
    return read("node-1.36/oom-global-A.dmesg.txt").decode()


def build(folder: Path) -> FakeNode:
    """Fill the folder in which the examples run; the node that a host command finds is next to it."""
    node, _, _ = recorded_node(folder.with_name("node"), "systemd")
    folder.mkdir()
    (folder / "dump.json").write_text(dump(), encoding="utf-8")
    for name in ("deployment.yaml", "deploy.yaml"):
        (folder / name).write_text(json.dumps(single(deployment("web"))), encoding="utf-8")
    (folder / "manifests").mkdir()
    for name in ("manifests/web.yaml", "web.yaml"):
        (folder / name).write_text(json.dumps(single(deployment("web"))), encoding="utf-8")
    written = single(pod("web-0", request="512Mi", limit="1Gi"))
    (folder / "pod.yaml").write_text(json.dumps(written), encoding="utf-8")
    changed = single(pod("notebook-0", namespace="ml", request="4Gi", limit="8Gi"))
    (folder / "change.yaml").write_text(json.dumps(changed), encoding="utf-8")
    roots = ("--proc-root", node.proc, "--cgroup-root", node.cgroup)
    for name in ("node.json", "host.json"):
        (folder / name).write_text(Run(folder)("host", *roots, "-o", "json").out, encoding="utf-8")
    for name in ("oom.log", "w2.log", "w3.log", "w7.log"):
        (folder / name).write_bytes(read("node-1.36/oom-global-A.dmesg.txt"))
    return node
