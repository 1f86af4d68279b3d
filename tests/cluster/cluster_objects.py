"""Pods, nodes and metrics for tests: small made-up ones, and the recorded node with its sixty pods."""

import json
from functools import cache
from typing import Any

from tests.recordings.files import read_json, read_lines, read_rows


def pod(
    name: str,
    *,
    namespace: str = "shop",
    node: str = "worker-1",
    request: str = "",
    limit: str = "",
    labels: dict[str, str] | None = None,
    phase: str = "Running",
) -> dict[str, Any]:
    """A pod with one container `app`."""
    resources: dict[str, Any] = {}
    if request:
        resources["requests"] = {"memory": request}
    if limit:
        resources["limits"] = {"memory": limit}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-11-20T08:00:00Z",
            "labels": labels or {},
        },
        "spec": {
            "containers": [{"name": "app", "resources": resources}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase, "qosClass": "Burstable" if resources else "BestEffort"},
    }


def node(name: str = "worker-1", *, memory: str = "16Gi") -> dict[str, Any]:
    """A node of 1.36."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "status": {
            "capacity": {"cpu": "4", "memory": memory, "pods": "110"},
            "allocatable": {"cpu": "4", "memory": memory, "pods": "110"},
            "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": "6.1.0"},
        },
    }


def metrics(name: str, memory: str, *, namespace: str = "shop") -> dict[str, Any]:
    """A sample of the container `app`."""
    return {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": name, "namespace": namespace},
        "timestamp": "2026-11-20T12:00:00Z",
        "window": "15s",
        "containers": [{"name": "app", "usage": {"cpu": "1n", "memory": memory}}],
    }


def event(kind: str, reason: str, message: str, at: str) -> dict[str, Any]:
    """An event of the node, or of a pod on it that is gone, of that time of the day."""
    name, namespace = ("worker-1", "default") if kind == "Node" else ("gone", "shop")
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"{name}.{reason}.{at}", "namespace": namespace},
        "involvedObject": {"kind": kind, "name": name},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": "worker-1"},
        "lastTimestamp": f"2026-11-20T{at}Z",
    }


def threshold(at: str, resource: str = "memory") -> dict[str, Any]:
    return event("Node", "EvictionThresholdMet", f"Attempting to reclaim {resource}", at)


def system_oom(at: str, pid: int = 4711) -> dict[str, Any]:
    return event("Node", "SystemOOM", f"System OOM encountered, victim process: c, pid: {pid}", at)


def evicted(at: str, resource: str = "memory") -> dict[str, Any]:
    return event("Pod", "Evicted", f"The node was low on resource: {resource}. ", at)


@cache
def recorded_events() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The events of real nodes, one out of memory and one evicting pods, each with which it was."""
    lines = read_rows("node-1.36/events.jsonl")
    return tuple(
        (line["recording"], {"kind": "Event", "apiVersion": "v1", **line["event"]}) for line in lines
    )


@cache
def recorded_pods() -> tuple[dict[str, Any], ...]:
    """The pods of a real node as its API server had them."""
    lines = read_lines("node-1.36/measured-systemd.jsonl")
    return tuple({"kind": "Pod", "apiVersion": "v1", **json.loads(line)["pod"]} for line in lines)


@cache
def recorded_node() -> dict[str, Any]:
    found: dict[str, Any] = read_json("node-1.36/node-systemd.json")["node"]
    return found


def recorded_metrics() -> list[dict[str, Any]]:
    """A sample for each container of the recorded pods; made up, but no two pods alike."""
    return [
        {
            "kind": "PodMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {key: found["metadata"][key] for key in ("name", "namespace")},
            "timestamp": "2026-11-20T21:20:00Z",
            "window": "15s",
            "containers": [
                {"name": container["name"], "usage": {"memory": f"{(number * 7919) % 90000 + 1000}Ki"}}
                for container in found["spec"]["containers"]
            ],
        }
        for number, found in enumerate(recorded_pods())
        if found["spec"].get("nodeName")
    ]
