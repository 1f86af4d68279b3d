"""A large generated cluster: nodes, pods and pod metrics as plain objects, the same on every run.

Pods are written as an API server sends them, managedFields included: some 6 KB of JSON each, of five
shapes that differ in containers, class and size.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NODE_MEMORY_KIB = 64 * 1024 * 1024
CREATED = "2026-11-01T08:00:00Z"
PODS_OF_WORKLOAD = 25


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of the pods of a workload: container names with their requests and limits."""

    name: str
    qos: str
    containers: tuple[tuple[str, Mapping[str, Any]], ...]
    sidecars: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    priority: int = 0
    priority_class: str = ""
    weight: int = 1


def _resources(cpu: str, memory: str, limit: str = "", cpu_limit: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"requests": {"cpu": cpu, "memory": memory}}
    limits = {"cpu": cpu_limit, "memory": limit}
    if limit:
        found = {"limits": {name: value for name, value in limits.items() if value}, **found}
    return found


_PROXY = ("mesh-proxy", _resources("100m", "128Mi", "1Gi", "2"))
SHAPES = (
    Shape("web", "Burstable", (("web", _resources("250m", "{}Mi", "2Gi")),), (_PROXY,), weight=4),
    Shape(
        "api",
        "Burstable",
        (("api", _resources("500m", "{}Mi", "4Gi", "2")), ("log-shipper", _resources("50m", "64Mi"))),
        weight=3,
    ),
    Shape(
        "store",
        "Guaranteed",
        (
            ("store", _resources("1", "2Gi", "2Gi", "1")),
            ("exporter", _resources("50m", "64Mi", "64Mi", "50m")),
        ),
        priority=100000,
        priority_class="business-critical",
        weight=1,
    ),
    Shape("batch", "BestEffort", (("step", {}), ("uploader", {})), weight=1),
    Shape(
        "agent",
        "Burstable",
        (("agent", _resources("100m", "{}Mi")), ("watcher", _resources("10m", "32Mi", "256Mi"))),
        priority=2000001000,
        priority_class="system-node-critical",
        weight=1,
    ),
)


def node_names(count: int) -> list[str]:
    """The names of the nodes."""
    return [f"worker-{number:03d}" for number in range(count)]


def node(name: str) -> dict[str, Any]:
    """A node of 64 Gi."""
    capacity = {"cpu": "16", "memory": f"{NODE_MEMORY_KIB}Ki", "pods": "250"}
    return {
        "metadata": {"name": name, "uid": _uid(random.Random(name)), "creationTimestamp": CREATED},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": {**capacity, "cpu": "15890m", "memory": f"{NODE_MEMORY_KIB - 1572864}Ki"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady"},
            ],
            "nodeInfo": {
                "kernelVersion": "6.1.0-50-cloud-amd64",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "containerRuntimeVersion": "containerd://2.3.4",
                "kubeletVersion": "v1.36.2",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def pods(count: int, nodes: list[str]) -> Iterator[dict[str, Any]]:
    """That many pods, spread over the nodes."""
    draw = random.Random(20000)
    shapes = [shape for shape in SHAPES for _ in range(shape.weight)]
    for number in range(count):
        workload = number // PODS_OF_WORKLOAD
        yield _pod(shapes[workload % len(shapes)], workload, nodes[number % len(nodes)], draw)


def metrics(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's sample as metrics.k8s.io gives it."""
    metadata = pod["metadata"]
    draw = random.Random(metadata["uid"])
    return {
        "metadata": {key: metadata[key] for key in ("name", "namespace", "labels", "creationTimestamp")},
        "timestamp": "2026-11-20T12:00:00Z",
        "window": "15.021s",
        "containers": [
            {
                "name": container["name"],
                "usage": {"cpu": f"{draw.randint(1, 10**9)}n", "memory": f"{draw.randint(4096, 1 << 20)}Ki"},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _pod(shape: Shape, workload: int, node_name: str, draw: random.Random) -> dict[str, Any]:
    app = f"{shape.name}-{workload:04d}"
    template = f"{workload * 7919:09x}"
    name = f"{app}-{template}-{_suffix(draw)}"
    volume = f"kube-api-access-{_suffix(draw)}"
    containers = [_container(*one, workload, volume) for one in shape.containers]
    sidecars = [{**_container(*one, workload, volume), "restartPolicy": "Always"} for one in shape.sidecars]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-{template}", "uid": _uid(draw)}
    spec: dict[str, Any] = {
        "volumes": [_token_volume(volume)],
        "containers": containers,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "serviceAccount": app,
        "nodeName": node_name,
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [_toleration("not-ready"), _toleration("unreachable")],
        "priority": shape.priority,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if sidecars:
        spec["initContainers"] = sidecars
    if shape.priority_class:
        spec["priorityClassName"] = shape.priority_class
    return {
        "metadata": {
            "name": name,
            "generateName": f"{app}-{template}-",
            "namespace": f"team-{workload % 40:02d}",
            "uid": _uid(draw),
            "resourceVersion": str(draw.randint(10**7, 10**8)),
            "generation": 1,
            "creationTimestamp": CREATED,
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/part-of": f"team-{workload % 40:02d}",
                "pod-template-hash": template,
            },
            "annotations": {
                "checksum/config": f"{draw.getrandbits(256):064x}",
            },
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": _managed_fields(containers),
        },
        "spec": spec,
        "status": _status(shape, containers, sidecars, draw),
    }


def _container(name: str, resources: Mapping[str, Any], workload: int, volume: str) -> dict[str, Any]:
    memory = 64 * (1 + workload % 24)
    filled = {
        side: {key: text.format(memory) for key, text in values.items()} for side, values in resources.items()
    }
    return {
        "name": name,
        "image": f"registry.example.com/team-{workload % 40:02d}/{name}:v1.{workload % 30}.0",
        "args": ["--config=/etc/app/config.yaml", "--log-level=info"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "GOMAXPROCS", "value": "2"}],
        "resources": filled,
        "volumeMounts": [
            {
                "name": volume,
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        ],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"},
            "periodSeconds": 10,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _status(
    shape: Shape, containers: list[dict[str, Any]], sidecars: list[dict[str, Any]], draw: random.Random
) -> dict[str, Any]:
    address = f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(256)}"
    status: dict[str, Any] = {
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "observedGeneration": 1,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": CREATED,
            }
            for kind in _CONDITIONS
        ],
        "hostIP": "10.0.2.15",
        "hostIPs": [{"ip": "10.0.2.15"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": CREATED,
        "containerStatuses": [_container_status(container, draw) for container in containers],
        "qosClass": shape.qos,
    }
    if sidecars:
        status["initContainerStatuses"] = [_container_status(container, draw) for container in sidecars]
    return status


def _container_status(container: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    return {
        "name": container["name"],
        "state": {"running": {"startedAt": CREATED}},
        "lastState": {},
        "ready": True,
        "restartCount": draw.choice((0, 0, 0, 1, 4)),
        "image": container["image"],
        "imageID": f"registry.example.com/{container['name']}@sha256:{draw.getrandbits(256):064x}",
        "containerID": f"containerd://{draw.getrandbits(256):064x}",
        "started": True,
        "allocatedResources": container["resources"].get("requests", {}),
        "resources": container["resources"],
    }


_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def _managed_fields(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """metadata.managedFields, a third of the bytes of a pod."""
    of_containers = {
        f'k:{{"name":"{container["name"]}"}}': {
            ".": {},
            **{f"f:{key}": _fields(value) for key, value in container.items()},
        }
        for container in containers
    }
    conditions: dict[str, Any] = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}}
        for kind in _CONDITIONS
    }
    by_controller = {
        "f:metadata": {"f:annotations": {".": {}}, "f:generateName": {}, "f:labels": {".": {}}},
        "f:spec": {"f:containers": of_containers, "f:dnsPolicy": {}, "f:enableServiceLinks": {}},
    }
    by_kubelet = {"f:status": {"f:conditions": conditions, "f:containerStatuses": {}, "f:phase": {}}}
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": CREATED,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for manager, fields in (("kube-controller-manager", by_controller), ("kubelet", by_kubelet))
    ]


def _fields(value: object) -> dict[str, Any]:
    return {f"f:{key}": _fields(inner) for key, inner in value.items()} if isinstance(value, dict) else {}


def _token_volume(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ],
            "defaultMode": 420,
        },
    }


def _toleration(condition: str) -> dict[str, Any]:
    return {
        "key": f"node.kubernetes.io/{condition}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


def _uid(draw: random.Random) -> str:
    digits = f"{draw.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _suffix(draw: random.Random) -> str:
    return "".join(draw.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
