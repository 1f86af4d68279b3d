"""Make the embedded demo cluster from the recorded node and pods.

    python tests/recordings/make_demo.py            writes kubectl_qos/cluster/demo.json
    python tests/recordings/make_demo.py --check    exit code 1 if it would change

Each pod of the demo is a recorded pod, status and all, under another name, on another node, with requests,
limits and usage of its own. Deterministic: identities are made from the names.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


ROWS = [
    # worker-2 is short of memory: the node to look at.
    Row(
        "batch",
        "crunch-x2k9f",
        "worker-2",
        "be-plain",
        {"c": 1240},
        owner="Job/crunch",
        restarts=3,
        end="OOMKilled",
        days=0.4,
    ),
    Row(
        "batch",
        "report-cron-28934-lw4pz",
        "worker-2",
        "be-plain",
        {"c": 210},
        owner="Job/report-cron-28934",
        days=0.1,
    ),
    Row(
        "shop",
        "cart-6c7fd9b5d-9qj4t",
        "worker-2",
        "bu-multi",
        {"a": 812, "b": 41, "d": 37},
        {"a": ("250m/1Gi", "1/2Gi"), "d": ("-/64Mi", "-/-")},
        "ReplicaSet/cart-6c7fd9b5d",
    ),
    Row(
        "shop",
        "front-58d6c7d4f-abcde",
        "worker-2",
        "bu-mem-1gi",
        {"c": 512},
        {"c": ("500m/2Gi", "-/2Gi")},
        "ReplicaSet/front-58d6c7d4f",
        ("shop-critical", 100000),
    ),
    Row(
        "shop",
        "api-7d9c5b6f8-x2mzq",
        "worker-2",
        "bu-mem-64-128",
        {"c": 1930},
        {"c": ("250m/512Mi", "2/2Gi")},
        "ReplicaSet/api-7d9c5b6f8",
        ("shop-critical", 100000),
        2,
        "OOMKilled",
    ),
    Row(
        "shop",
        "api-7d9c5b6f8-k8vwl",
        "worker-2",
        "bu-mem-64-128",
        {"c": 640},
        {"c": ("250m/512Mi", "2/2Gi")},
        "ReplicaSet/api-7d9c5b6f8",
        ("shop-critical", 100000),
    ),
    Row(
        "shop",
        "search-0",
        "worker-2",
        "sidecar-small",
        {"s": 22, "c": 2890},
        {"s": ("10m/32Mi", "-/-"), "c": ("1/3Gi", "-/4Gi")},
        "StatefulSet/search",
        restarts=1,
        end="Error",
    ),
    Row(
        "data",
        "cache-0",
        "worker-2",
        "gu-cpu1-256",
        {"c": 1480},
        {"c": ("1/2Gi", "1/2Gi")},
        "StatefulSet/cache",
        ("shop-critical", 100000),
        days=41,
    ),
    Row(
        "data",
        "db-0",
        "worker-2",
        "gu-two",
        {"a": 3540, "b": 96},
        {"a": ("2/4Gi", "2/4Gi"), "b": ("100m/128Mi", "100m/128Mi")},
        "StatefulSet/db",
        ("data", 500000),
        days=41,
    ),
    Row(
        "data",
        "importer-5f7b9c-2vtxk",
        "worker-2",
        "bu-mem-odd",
        {"c": 115},
        owner="ReplicaSet/importer-5f7b9c",
    ),
    Row(
        "monitoring",
        "log-agent-4kx8d",
        "worker-2",
        "bu-mem-req-64mi",
        {"c": 182},
        {"c": ("50m/128Mi", "-/200Mi")},
        "DaemonSet/log-agent",
        days=41,
    ),
    Row(
        "monitoring",
        "node-exporter-wq2zn",
        "worker-2",
        "bu-cpu-100m",
        {"c": 24},
        owner="DaemonSet/node-exporter",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-proxy-7hc2x",
        "worker-2",
        "crit-node-bu",
        {"c": 42},
        {"c": ("100m/64Mi", "-/-")},
        "DaemonSet/kube-proxy",
        days=41,
    ),
    Row(
        "kube-system",
        "cni-agent-bx9td",
        "worker-2",
        "crit-node-bu",
        {"c": 118},
        {"c": ("100m/128Mi", "-/-")},
        "DaemonSet/cni-agent",
        days=41,
    ),
    Row(
        "ml", "notebook-0", "worker-2", "bu-mem-lim-8gi", {"c": 1105}, owner="StatefulSet/notebook", days=0.9
    ),
    Row(
        "ml",
        "trainer-gpu-0",
        "worker-2",
        "pl-bu-partial",
        {"a": 52, "b": 88},
        owner="StatefulSet/trainer-gpu",
        days=0.9,
    ),
    Row("team-a", "debug-shell", "worker-2", "be-two", {"a": 6, "b": 3}, days=0.02),
    # worker-1 is busy but healthy.
    Row(
        "shop",
        "cart-6c7fd9b5d-v5xk2",
        "worker-1",
        "bu-multi",
        {"a": 604, "b": 39, "d": 36},
        {"a": ("250m/1Gi", "1/2Gi"), "d": ("-/64Mi", "-/-")},
        "ReplicaSet/cart-6c7fd9b5d",
    ),
    Row(
        "shop",
        "front-58d6c7d4f-q7wnd",
        "worker-1",
        "bu-mem-1gi",
        {"c": 488},
        {"c": ("500m/2Gi", "-/2Gi")},
        "ReplicaSet/front-58d6c7d4f",
        ("shop-critical", 100000),
    ),
    Row(
        "shop",
        "checkout-84f9d7c6b-zx4mm",
        "worker-1",
        "gu-500m",
        {"c": 88},
        owner="ReplicaSet/checkout-84f9d7c6b",
        priority=("shop-critical", 100000),
    ),
    Row(
        "shop",
        "checkout-84f9d7c6b-r6t2h",
        "worker-1",
        "gu-frac",
        {"c": 71},
        owner="ReplicaSet/checkout-84f9d7c6b",
        priority=("shop-critical", 100000),
    ),
    Row(
        "shop",
        "mailer-6b8f4d-px2wd",
        "worker-1",
        "init-none-makes-burstable",
        {"c": 27},
        owner="ReplicaSet/mailer-6b8f4d",
    ),
    Row(
        "shop",
        "search-1",
        "worker-1",
        "sidecar-large",
        {"s": 140, "a": 58, "b": 30},
        owner="StatefulSet/search",
    ),
    Row(
        "shop",
        "promo-7c4b-l9dk2",
        "worker-1",
        "bu-mem-lim-only-64mi",
        {"c": 61},
        owner="ReplicaSet/promo-7c4b",
        restarts=7,
        end="OOMKilled",
    ),
    Row(
        "data",
        "db-1",
        "worker-1",
        "gu-two",
        {"a": 3410, "b": 92},
        {"a": ("2/4Gi", "2/4Gi"), "b": ("100m/128Mi", "100m/128Mi")},
        "StatefulSet/db",
        ("data", 500000),
        days=41,
    ),
    Row(
        "data",
        "queue-0",
        "worker-1",
        "sidecar-gu",
        {"s": 9, "c": 29},
        owner="StatefulSet/queue",
        priority=("data", 500000),
        days=41,
    ),
    Row(
        "data",
        "migrate-2026-11-tq8zn",
        "worker-1",
        "gu-init-done",
        {},
        owner="Job/migrate-2026-11",
        phase="Succeeded",
        end="Completed",
        days=1.2,
    ),
    Row(
        "batch",
        "thumbs-28934-d5k8p",
        "worker-1",
        "be-req-zero",
        {"c": 96},
        owner="Job/thumbs-28934",
        days=0.05,
    ),
    Row(
        "batch",
        "etl-28930-9xw2c",
        "worker-1",
        "bu-hog",
        {},
        owner="Job/etl-28930",
        phase="Failed",
        end="OOMKilled",
        days=0.6,
    ),
    Row(
        "monitoring",
        "prometheus-0",
        "worker-1",
        "bu-mem-1536mi",
        {"c": 1710},
        owner="StatefulSet/prometheus",
        days=41,
    ),
    Row(
        "monitoring",
        "log-agent-x7rtm",
        "worker-1",
        "bu-mem-req-64mi",
        {"c": 121},
        {"c": ("50m/128Mi", "-/200Mi")},
        "DaemonSet/log-agent",
        days=41,
    ),
    Row(
        "monitoring",
        "node-exporter-2qk6d",
        "worker-1",
        "bu-cpu-100m",
        {"c": 22},
        owner="DaemonSet/node-exporter",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-proxy-5m4vb",
        "worker-1",
        "crit-node-bu",
        {"c": 40},
        {"c": ("100m/64Mi", "-/-")},
        "DaemonSet/kube-proxy",
        days=41,
    ),
    Row(
        "kube-system",
        "cni-agent-8kt7s",
        "worker-1",
        "crit-node-bu",
        {"c": 109},
        {"c": ("100m/128Mi", "-/-")},
        "DaemonSet/cni-agent",
        days=41,
    ),
    Row(
        "kube-system",
        "coredns-6f6b679f8f-4bqjx",
        "worker-1",
        "crit-cluster-bu",
        {"c": 38},
        {"c": ("100m/70Mi", "-/170Mi")},
        "ReplicaSet/coredns-6f6b679f8f",
        days=41,
    ),
    Row(
        "sandboxed", "untrusted-6d8f-w4k2p", "worker-1", "ov-bu", {"c": 19}, owner="ReplicaSet/untrusted-6d8f"
    ),
    Row("team-a", "web-5d4f8c-8szcd", "worker-1", "gu-limits-only", {"c": 33}, owner="ReplicaSet/web-5d4f8c"),
    Row(
        "team-a",
        "worker-7b9-k4xqz",
        "worker-1",
        "bu-one-none",
        {"a": 25, "b": 12},
        owner="ReplicaSet/worker-7b9",
    ),
    # worker-3 has room, and an older kubelet.
    Row(
        "ml",
        "serving-6c9b-t8vdl",
        "worker-3",
        "pl-gu-empty",
        {"a": 60, "b": 31},
        owner="ReplicaSet/serving-6c9b",
        days=9,
    ),
    Row(
        "ml",
        "features-0",
        "worker-3",
        "pl-mem-req-only",
        {"a": 44, "b": 12},
        owner="StatefulSet/features",
        days=9,
    ),
    Row(
        "ml",
        "batch-score-28934-f2xwz",
        "worker-3",
        "pl-cpu-only",
        {"a": 380},
        owner="Job/batch-score-28934",
        days=0.2,
    ),
    Row(
        "ml",
        "gateway-58f-jq2md",
        "worker-3",
        "pl-sidecar",
        {"s": 7, "a": 51},
        owner="ReplicaSet/gateway-58f",
        days=9,
    ),
    Row(
        "data",
        "db-2",
        "worker-3",
        "gu-two",
        {"a": 3390, "b": 90},
        {"a": ("2/4Gi", "2/4Gi"), "b": ("100m/128Mi", "100m/128Mi")},
        "StatefulSet/db",
        ("data", 500000),
        days=41,
    ),
    Row(
        "data",
        "warehouse-0",
        "worker-3",
        "bu-mem-1gi",
        {"c": 7420},
        {"c": ("2/6Gi", "4/12Gi")},
        "StatefulSet/warehouse",
        days=20,
    ),
    Row(
        "batch",
        "backup-28934-nn5kt",
        "worker-3",
        "be-ephemeral-storage",
        {"c": 71},
        owner="Job/backup-28934",
        days=0.1,
    ),
    Row("sandboxed", "vm-runner-0", "worker-3", "ov-gu", {"c": 24}, owner="StatefulSet/vm-runner"),
    Row("sandboxed", "scratch", "worker-3", "ov-be", {"c": 11}),
    Row(
        "monitoring",
        "log-agent-m2wzk",
        "worker-3",
        "bu-mem-req-64mi",
        {"c": 96},
        {"c": ("50m/128Mi", "-/200Mi")},
        "DaemonSet/log-agent",
        days=41,
    ),
    Row(
        "monitoring",
        "node-exporter-vv8xp",
        "worker-3",
        "bu-cpu-100m",
        {"c": 21},
        owner="DaemonSet/node-exporter",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-proxy-qd92r",
        "worker-3",
        "crit-node-bu",
        {"c": 41},
        {"c": ("100m/64Mi", "-/-")},
        "DaemonSet/kube-proxy",
        days=41,
    ),
    Row(
        "kube-system",
        "cni-agent-wl5zf",
        "worker-3",
        "crit-node-bu",
        {"c": 111},
        {"c": ("100m/128Mi", "-/-")},
        "DaemonSet/cni-agent",
        days=41,
    ),
    Row(
        "kube-system",
        "metrics-server-7c8-p2x9b",
        "worker-3",
        "crit-cluster-be",
        {"c": 58},
        owner="ReplicaSet/metrics-server-7c8",
        days=41,
    ),
    Row(
        "team-a",
        "init-hangs-6f-92kzx",
        "worker-3",
        "init-waiting",
        {"i": 8},
        owner="ReplicaSet/init-hangs-6f",
        phase="Pending",
        days=0.3,
    ),
    # control-1 runs the control plane from files.
    Row(
        "kube-system",
        "etcd-control-1",
        "control-1",
        "static-crit-node1",
        {"c": 310},
        {"c": ("100m/100Mi", "-/-")},
        "Node/control-1",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-apiserver-control-1",
        "control-1",
        "static-crit-node1",
        {"c": 870},
        {"c": ("250m/-", "-/-")},
        "Node/control-1",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-scheduler-control-1",
        "control-1",
        "static-plain-node1",
        {"c": 52},
        {"c": ("100m/-", "-/-")},
        "Node/control-1",
        days=41,
    ),
    Row(
        "kube-system",
        "kube-proxy-x8k4w",
        "control-1",
        "crit-node-bu",
        {"c": 43},
        {"c": ("100m/64Mi", "-/-")},
        "DaemonSet/kube-proxy",
        days=41,
    ),
    Row(
        "kube-system",
        "cni-agent-zz3mt",
        "control-1",
        "crit-node-bu",
        {"c": 113},
        {"c": ("100m/128Mi", "-/-")},
        "DaemonSet/cni-agent",
        days=41,
    ),
    Row(
        "monitoring",
        "log-agent-h6d2q",
        "control-1",
        "bu-mem-req-64mi",
        {"c": 88},
        {"c": ("50m/128Mi", "-/200Mi")},
        "DaemonSet/log-agent",
        days=41,
    ),
    # Nowhere yet.
    Row(
        "ml",
        "huge-0",
        "",
        "bu-mem-3200mi",
        {},
        {"c": ("4/40Gi", "-/-")},
        "StatefulSet/huge",
        phase="Pending",
        days=0.1,
    ),
]


@dataclass(frozen=True)
class Happening:
    """One event of the demo; `first` and `last` are minutes before its noon, a pod is `namespace/name`."""

    about: str
    reason: str
    message: str
    last: float
    first: float = 0
    count: int = 1
    component: str = "kubelet"
    type: str = "Warning"
    container: str = ""


HAPPENINGS = [
    # worker-2 ran out of memory once, and is short of it again.
    Happening("worker-2", "SystemOOM", "System OOM encountered, victim process: crunch, pid: 48213", 144),
    Happening(
        "worker-2",
        "NodeHasInsufficientMemory",
        "Node worker-2 status is now: NodeHasInsufficientMemory",
        47,
        type="Normal",
    ),
    Happening("worker-2", "EvictionThresholdMet", "Attempting to reclaim memory", 1, 47, 14),
    Happening(
        "batch/crunch-x2k9f",
        "Scheduled",
        "Successfully assigned batch/crunch-x2k9f to worker-2",
        576,
        component="default-scheduler",
        type="Normal",
    ),
    Happening(
        "batch/crunch-x2k9f", "Started", "Container started", 144, 576, 4, type="Normal", container="c"
    ),
    Happening(
        "batch/crunch-x2k9f",
        "BackOff",
        "Back-off restarting failed container c in pod crunch-x2k9f_batch",
        144,
        300,
        5,
        container="c",
    ),
    Happening(
        "shop/api-7d9c5b6f8-x2mzq",
        "Unhealthy",
        "Readiness probe failed: context deadline exceeded",
        3,
        22,
        6,
        container="c",
    ),
    Happening(
        "team-a/debug-shell",
        "Scheduled",
        "Successfully assigned team-a/debug-shell to worker-2",
        29,
        component="default-scheduler",
        type="Normal",
    ),
    Happening("team-a/debug-shell", "Started", "Container started", 29, type="Normal", container="a"),
    Happening("team-a/debug-shell", "Started", "Container started", 29, type="Normal", container="b"),
    Happening(
        "ml/huge-0",
        "FailedScheduling",
        "0/4 nodes are available: 1 Insufficient cpu, 4 Insufficient memory. no new claims to deallocate,"
        " preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
        1,
        144,
        29,
        component="default-scheduler",
    ),
]


def make() -> str:
    """The demo cluster as one JSON List."""
    recorded = {}
    for line in (HERE / "node-1.36" / "measured-systemd.jsonl").read_text().splitlines():
        pod = json.loads(line)["pod"]
        recorded[pod["metadata"]["name"]] = pod
    node = json.loads((HERE / "node-1.36" / "node-systemd.json").read_text())["node"]
    items: list[Json] = [_node(name, node) for name in NODES]
    for row in ROWS:
        items.append(_pod(row, recorded[row.base]))
        if row.usage:
            items.append(_metrics(row))
    items += map(_event, HAPPENINGS)
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
    pressed = name == "worker-2"
    for condition in status["conditions"]:
        if condition["type"] == "MemoryPressure" and pressed:
            condition |= {"status": "True", "reason": "KubeletHasInsufficientMemory"}
            condition["message"] = "kubelet has insufficient memory available"
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
    asked = next(container for container in containers if container["name"] == name)["resources"]
    limits = {key: value for key, value in asked.get("limits", {}).items() if key in {"cpu", "memory"}}
    requests = {key: value for key, value in asked.get("requests", {}).items() if key in {"cpu", "memory"}}
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


def _event(happening: Happening) -> Json:
    namespace, _, name = happening.about.rpartition("/")
    first, last = _time((happening.first or happening.last) / 1440), _time(happening.last / 1440)
    digest = hashlib.sha256(f"{happening}".encode()).hexdigest()[:16]
    about: Json = {"kind": "Pod", "namespace": namespace, "name": name, "uid": _uid(namespace + name)}
    if not namespace:
        about = {"kind": "Node", "name": name, "uid": name}
    if happening.container:
        about["fieldPath"] = f"spec.containers{{{happening.container}}}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{digest}", "namespace": namespace or "default"},
        "involvedObject": about,
        "type": happening.type,
        "reason": happening.reason,
        "message": happening.message,
        "source": {"component": happening.component},
        "count": happening.count,
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
    print(f"{TARGET}: {len(ROWS)} pods, {len(text)} bytes")
