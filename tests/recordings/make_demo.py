"""Make the embedded demo cluster from the recorded node and pods.

    python -m tests.recordings.make_demo            writes kubectl_qos/cluster/demo.json
    python -m tests.recordings.make_demo --check    exit code 1 if it would change

Each pod of the demo is a recorded pod, status and all, under another name, on another node, with requests,
limits and usage of its own. Deterministic: identities are made from the names.
"""

import copy
import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.recordings.files import read_json, read_lines

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "kubectl_qos" / "cluster" / "demo.json"
NOW = "2026-11-20T12:00:00Z"

Json = dict[str, Any]

NODES = {
    "control-1": ("4", 8, "v1.36.2"),
    "worker-1": ("8", 16, "v1.36.2"),
    "worker-2": ("8", 16, "v1.36.2"),
    "worker-3": ("16", 32, "v1.34.9"),
}
"""Name to CPUs, GiB of memory and kubelet version."""


@dataclass(frozen=True)
class Row:
    """One pod of the demo; `usage` is MiB by container, `resources` cpu and memory requests and limits.

    Resources are written `cpu/memory` for requests, then for limits, `-` for none.
    """

    namespace: str
    name: str
    node: str
    base: str
    usage: dict[str, int]
    resources: dict[str, tuple[str, str]] = field(default_factory=dict)
    owner: str = ""
    priority: tuple[str, int] = ("", 0)
    restarts: int = 0
    end: str = ""
    phase: str = "Running"
    days: float = 3


@dataclass(frozen=True)
class Happening:
    """One event of the demo: `first` and `last` are minutes before its noon, a pod is `namespace/name`."""

    about: str
    reason: str
    message: str
    last: float
    first: float = 0
    count: int = 1
    component: str = "kubelet"
    type: str = "Warning"
    container: str = ""


def rows() -> tuple[list[Row], list[Happening]]:
    """The pods and the events of the demo."""
    found = yaml.safe_load((HERE / "demo.yaml").read_text())
    return [Row(**row) for row in found["pods"]], [Happening(**event) for event in found["events"]]


def make() -> str:
    """The demo cluster as one JSON List."""
    recorded = {}
    for line in read_lines("node-1.36/measured-systemd.jsonl"):
        pod = json.loads(line)["pod"]
        recorded[pod["metadata"]["name"]] = pod
    node = read_json("node-1.36/node-systemd.json")["node"]
    items: list[Json] = [_node(name, node) for name in NODES]
    pods, events = rows()
    for row in pods:
        items.append(_pod(row, recorded[row.base]))
        if row.usage:
            items.append(_metrics(row))
    items += [_node_metrics(name, pods) for name in NODES]
    items += map(_event, events)
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, indent=1) + "\n"


def _node(name: str, recorded: Json) -> Json:
    cpus, gibibytes, version = NODES[name]
    node = copy.deepcopy(recorded)
    node["metadata"] = {"name": name, "uid": _uid(name), "creationTimestamp": _time(60)}
    status = node["status"]
    memory = gibibytes << 20
    status["capacity"] |= {"cpu": cpus, "memory": f"{memory}Ki"}
    reserved = (512 << 10) + (100 << 10)
    status["allocatable"] |= {"cpu": f"{int(cpus) * 1000 - 200}m", "memory": f"{memory - reserved}Ki"}
    status["nodeInfo"] |= {"kubeletVersion": version}
    for condition in status["conditions"]:
        condition |= {"lastHeartbeatTime": NOW, "lastTransitionTime": _time(60)}
        if condition["type"] == "MemoryPressure" and name == "worker-2":
            condition["lastTransitionTime"] = _time(24 / 1440)  # as its event
    status.pop("images", None)
    return node


def _labels(row: Row) -> Json:
    kind, _, name = row.owner.partition("/")
    labels = {"app": name or row.name}
    if kind == "ReplicaSet":
        labels["pod-template-hash"] = name.rpartition("-")[2]
    return labels


def _pod(row: Row, recorded: Json) -> Json:
    pod = copy.deepcopy(recorded)
    old = pod["metadata"]
    kept = {
        key: value
        for key, value in (old.get("annotations") or {}).items()
        if key.startswith("kubernetes.io/config")
    }
    digest = hashlib.sha256(row.name.encode()).hexdigest()[:32]
    if kept:
        kept["kubernetes.io/config.hash"] = kept["kubernetes.io/config.mirror"] = digest
    metadata: Json = {
        "name": row.name,
        "namespace": row.namespace,
        "uid": _uid(row.namespace + row.name),
        "creationTimestamp": _time(row.days),
        "labels": _labels(row),
    }
    if kept:
        metadata["annotations"] = kept
    if row.owner:
        kind, _, name = row.owner.partition("/")
        api = {"Job": "batch/v1", "Node": "v1"}.get(kind, "apps/v1")
        metadata["ownerReferences"] = [
            {"apiVersion": api, "kind": kind, "name": name, "uid": _uid(row.owner), "controller": True}
        ]
    spec: Json = {
        key: pod["spec"][key]
        for key in ("containers", "initContainers", "resources", "overhead", "ephemeralContainers")
        if key in pod["spec"]
    }
    for container in (
        *spec["containers"],
        *spec.get("initContainers", ()),
        *spec.get("ephemeralContainers", ()),
    ):
        for name in [key for key in container if key not in {"name", "image", "resources", "restartPolicy"}]:
            del container[name]
        if container["name"] in row.resources:
            container["resources"] = _resources(*row.resources[container["name"]])
    class_name, priority = row.priority
    if row.base.startswith(("crit", "static")):
        class_name = pod["spec"].get("priorityClassName", "")
        priority = pod["spec"].get("priority", 0)
    spec |= {
        "priority": priority,
        "nodeName": row.node,
        "restartPolicy": "Never" if "Job/" in row.owner else "Always",
    }
    if class_name:
        spec["priorityClassName"] = class_name
    if not row.node:
        del spec["nodeName"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": _status(row, pod),
    }


def _status(row: Row, pod: Json) -> Json:
    status = pod["status"]
    found: Json = {"phase": row.phase, "qosClass": status["qosClass"]}
    if not row.node:
        return found
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        statuses = []
        for number, recorded in enumerate(status.get(key) or ()):
            one = {name: recorded[name] for name in ("name", "state", "restartCount") if name in recorded}
            one["containerID"] = (
                "containerd://" + hashlib.sha256(f"{row.name}/{one['name']}".encode()).hexdigest()
            )
            main = key == "containerStatuses" and number == 0
            one["restartCount"] = row.restarts if main else 0
            if main and row.end:
                codes = {"OOMKilled": 137, "Error": 137, "Completed": 0}
                end = {
                    "terminated": {
                        "exitCode": codes[row.end],
                        "reason": row.end,
                        "startedAt": _time(row.days * 3 / 8),
                        "finishedAt": _time(row.days / 4),
                    }
                }
                one["state" if row.phase in {"Succeeded", "Failed"} else "lastState"] = end
            elif row.phase in {"Succeeded", "Failed"} and "running" in one["state"]:
                one["state"] = {
                    "terminated": {
                        "exitCode": 0,
                        "reason": "Completed",
                        "startedAt": _time(row.days * 3 / 8),
                        "finishedAt": _time(row.days / 4),
                    }
                }
            if "running" in one.get("state", {}):
                one["state"] = {"running": {"startedAt": _time(row.days)}}
                one["resources"] = _actual(pod, one["name"])
            statuses.append(one)
        if statuses:
            found[key] = statuses
    return found


def _actual(pod: Json, name: str) -> Json:
    """What a kubelet reports of a running container: its cpu and memory, requests completed from limits."""
    spec = pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ()))
    resources = next(container for container in containers if container["name"] == name)["resources"]
    limits = {key: value for key, value in resources.get("limits", {}).items() if key in {"cpu", "memory"}}
    requests = {
        key: value for key, value in resources.get("requests", {}).items() if key in {"cpu", "memory"}
    }
    found = {"limits": limits, "requests": {**limits, **requests}}
    return {side: values for side, values in found.items() if values}


def _metrics(row: Row) -> Json:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": row.name, "namespace": row.namespace},
        "timestamp": "2026-11-20T11:59:48Z",
        "window": "15s",
        "containers": [
            {"name": name, "usage": {"cpu": "12m", "memory": f"{mebibytes << 10}Ki"}}
            for name, mebibytes in row.usage.items()
        ],
    }


def _node_metrics(node: str, pods: list[Row]) -> Json:
    """The demo's nodes use no more than their pods."""
    used = sum(sum(row.usage.values()) for row in pods if row.node == node)
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": node},
        "timestamp": "2026-11-20T11:59:48Z",
        "window": "15s",
        "usage": {"cpu": "200m", "memory": f"{used << 10}Ki"},
    }


def _event(event: Happening) -> Json:
    namespace, _, name = event.about.rpartition("/")
    first, last = _time((event.first or event.last) / 1440), _time(event.last / 1440)
    digest = hashlib.sha256(f"{event}".encode()).hexdigest()[:16]
    about: Json = {"kind": "Pod", "namespace": namespace, "name": name, "uid": _uid(namespace + name)}
    if not namespace:
        about = {"kind": "Node", "name": name, "uid": name}
    if event.container:
        about["fieldPath"] = f"spec.containers{{{event.container}}}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{digest}", "namespace": namespace or "default"},
        "involvedObject": about,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component},
        "count": event.count,
        "firstTimestamp": first,
        "lastTimestamp": last,
    }


def _resources(requests: str, limits: str) -> Json:
    found = {}
    for side, text in (("requests", requests), ("limits", limits)):
        cpu, memory = text.split("/")
        values = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value != "-"}
        if values:
            found[side] = values
    return found


def _uid(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _time(days: float) -> str:
    """So many days before the demo's noon of 20 November 2026."""
    minutes = round(days * 24 * 60)
    day, rest = divmod(minutes, 24 * 60)
    hour, minute = divmod(12 * 60 - rest, 60) if rest <= 12 * 60 else divmod(36 * 60 - rest, 60)
    day += rest > 12 * 60
    month_days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    number, month = 20 - day, 11
    while number < 1:
        month -= 1
        number += month_days[month - 1]
    return f"2026-{month:02}-{number:02}T{hour:02}:{minute:02}:00Z"


if __name__ == "__main__":
    text = make()
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET} is not what {Path(__file__).name} makes")
    TARGET.write_text(text)
    print(f"{TARGET}: {len(text)} bytes")
