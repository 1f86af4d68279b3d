"""A node that is only an object, and its kubelet: pods run at once, with the values that their spec has."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.quantity import Quantity
from tests.cluster.cluster_objects import node
from tests.real_cluster.clusters import Cluster, collection

HOG: Final = "hog"
HOG_BYTES: Final = 48 << 20
"""What a container of this name takes when it starts for the first time."""
LOOK_SECONDS: Final = 0.2
HEARTBEAT_SECONDS: Final = 5


class Kubelet:
    """It works from `start` to `end`, while there is a node of this name."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._node = node(name)
        self._node["metadata"]["labels"] = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        self._path = f"{collection(self._node)}/{name}"
        self._pods = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}"
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._cluster.create({**self._node, "status": {}})
        self._beat()
        # Without the controller of nodes the taint of a new node would stay.
        self._cluster.patch(self._path, {"spec": {"taints": None}})
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()
        self._cluster.request("DELETE", self._path)

    def _run(self) -> None:
        looks = 0
        while not self._ending.wait(LOOK_SECONDS):
            looks += 1
            try:
                if looks % (HEARTBEAT_SECONDS / LOOK_SECONDS) == 0:
                    self._beat()
                for pod in self._cluster.items(self._pods):
                    self._look_after(pod)
            except QosError:
                continue  # a test has stopped the server

    def _beat(self) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()}
        status = {**self._node["status"], "conditions": [ready]}
        self._cluster.patch(f"{self._path}/status", {"status": status})

    def _look_after(self, pod: Mapping[str, Any]) -> None:
        metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self._cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
        elif status["phase"] == "Pending" or status.get("observedGeneration") != metadata.get("generation"):
            names = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            new = {
                "phase": "Running",
                "conditions": [{"type": name, "status": "True"} for name in names],
                "containerStatuses": [_container_status(container) for container in spec["containers"]],
                "observedGeneration": metadata.get("generation"),
            }
            self._cluster.patch(f"{path}/status", {"status": new})


def _container_status(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = container["resources"]
    limit = resources.get("limits", {}).get("memory")
    is_killed = container["name"] == HOG and limit and Quantity.parse(limit).value() < HOG_BYTES
    killed = {"exitCode": 137, "reason": "OOMKilled", "startedAt": _now(), "finishedAt": _now()}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": int(is_killed),
        "state": {"running": {"startedAt": _now()}},
        "lastState": {"terminated": killed} if is_killed else {},
        "resources": resources,
        "allocatedResources": resources.get("requests", {}),
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
