"""A cluster as it was: a snapshot rebuilt from kube-state-metrics and cAdvisor.

What a store does not have is listed as missing, not guessed. prometheus.py is the client, series.py reads
usage, deaths.py deaths over a time. Source: docs/metrics of kube-state-metrics 2.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import CPU, MEMORY, NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import NO_USAGE, Missing, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus, Sample
from kubectl_qos.metrics.series import INFO, NODE, UsageHistory, container_of, label, pod_of, rfc3339, select

_AMOUNTS: Final = (
    INFO,
    "kube_pod_container_info",
    "kube_pod_init_container_info",
    "kube_pod_(init_)?container_resource_(requests|limits)",
    "kube_pod_overhead_memory_bytes",
    "kube_pod_created",
    "kube_pod_(init_)?container_status_restarts_total",
    "kube_pod_container_status_last_terminated_(exitcode|timestamp)",
    "kube_node_info",
    "kube_node_status_(capacity|allocatable)",
)
_RESOURCES: Final = (CPU, MEMORY)
_LABELS: Final = ("kube_pod_labels", "kube_node_labels")
_STATES: Final = (
    "kube_pod_status_(phase|qos_class|reason)",
    "kube_pod_restart_policy",
    "kube_pod_(init_)?container_status_(waiting|terminated)(_reason)?",
    "kube_pod_container_status_last_terminated_reason",
    "kube_node_status_condition",
)
"""Series whose value is 1 for the state that is true."""
_PRIORITIES: Final = {"": 0, "system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_NOT_STORED: Final = Missing(
    "what no metric has",
    "volumes, pod-level resources, swap behaviour, kubelet settings",
    "defaults of the release are assumed",
)
_SOURCE: Final = "kube-state-metrics 2 has them, if it was scraped then"


@dataclass
class _Raw:
    """A pod or node as the API would have had it, put together from series."""

    name: str
    namespace: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    init: dict[str, dict[str, Any]] = field(default_factory=dict)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)

    def container(self, name: str, *, is_init: bool) -> dict[str, Any]:
        """Return a container, which is added if it is unknown."""
        return (self.init if is_init else self.containers).setdefault(name, {"name": name, "resources": {}})

    def container_status(self, name: str) -> dict[str, Any]:
        """Return the status of a container."""
        return self.statuses.setdefault(name, {"name": name})

    def pod(self) -> Pod:
        """Return the pod; a run that ended without a known reason has not ended."""
        for status in self.statuses.values():
            if "reason" not in status.get("lastState", {}).get("terminated", {"reason": ""}):
                del status["lastState"]
        of_init = [status for name, status in self.statuses.items() if name in self.init]
        others = [status for name, status in self.statuses.items() if name not in self.init]
        containers, init = [*self.containers.values()], [*self.init.values()]
        return convert(
            {
                "metadata": {"name": self.name, "namespace": self.namespace, **self.metadata},
                "spec": {"containers": containers, "initContainers": init, **self.spec},
                "status": {"containerStatuses": others, "initContainerStatuses": of_init, **self.status},
            },
            Pod,
        )

    def node(self) -> NodeObject:
        """Return the node."""
        metadata = {"name": self.name, **self.metadata}
        return convert({"metadata": metadata, "status": self.status}, NodeObject)


def read_snapshot(
    store: Prometheus, at: datetime, over_seconds: int, stat: str, *, usage: bool, keys: Collection[str] = ()
) -> Snapshot:
    """Read the cluster at a time; without `usage` not its memory. `keys` are those of labels that select.

    Raises QosError without its pods, and InputError if no object has a label of such a key.
    """
    moment = at.timestamp()
    samples = store.query(select(store, (*_AMOUNTS, *(_LABELS if keys else ()))), moment)
    samples += store.query(f"{select(store, _STATES)} == 1", moment)
    pods, nodes = _Builder(keys).build(samples)
    if not pods:
        raise InputError(
            f"{store.name} has no {INFO} at {rfc3339(at)}",
            hint="kube-state-metrics was not scraped then, the store does not go back so far, or a"
            " --prometheus-selector leaves it out",
        )
    stored = {key for raw in (*pods, *nodes) for key in raw.metadata.get("labels", ())}
    for key in sorted(set(keys) - stored):
        raise InputError(
            f"{store.name} has no label {key} of pods or nodes at {rfc3339(at)}",
            hint="kube-state-metrics exports those of --metric-labels-allowlist; -n, --node and names select"
            " too",
        )
    read = UsageHistory(store, over_seconds, stat, moment).read() if usage else NO_USAGE
    return Snapshot(
        pods=tuple(pod for raw in pods if (pod := raw.pod()).containers or pod.is_terminal),
        nodes={raw.name: raw.node() for raw in nodes if "capacity" in raw.status},
        usage=read.by_pod,
        node_usage=read.by_node,
        pressure=read.pressure,
        missing=(*_missing(pods, nodes), *((read.missing,) if read.missing is not None else ())),
        history=read.history,
        at=rfc3339(at),
    ).with_missing_releases()


def _missing(pods: Sequence[_Raw], nodes: Sequence[_Raw]) -> Iterator[Missing]:
    yield _NOT_STORED
    classes = {raw.spec.get("priorityClassName", "") for raw in pods}
    unknown = sorted(classes - _PRIORITIES.keys())
    if unknown:
        names = ", ".join(unknown[:5])
        yield Missing(f"the value of priority class {names}", "no metric has it", "0 is assumed")
    containers = (container for raw in pods for container in raw.containers.values())
    if not any(container.get("resources") for container in containers):
        yield Missing("requests and limits", "the store has none at that time", _SOURCE)
    without = [raw.name for raw in nodes if "capacity" not in raw.status]
    if without or not nodes:
        what = f"the capacity of {', '.join(without[:5]) or 'nodes'}"
        yield Missing(what, "the store has none then", _SOURCE)


class _Builder:
    """Puts pods and nodes together, a series at a time."""

    def __init__(self, keys: Collection[str]) -> None:
        # kube-state-metrics spells label names as Prometheus takes them (internal/store/utils.go).
        self._keys = {f"label_{_snake(key)}": key for key in keys}
        self._pods: dict[PodKey, _Raw] = {}
        self._nodes: dict[str, _Raw] = {}

    def build(self, samples: Sequence[Sample]) -> tuple[list[_Raw], list[_Raw]]:
        """Return the pods and nodes that kube-state-metrics has; series may come in any order."""
        for sample in samples:
            if sample.labels["__name__"] == INFO:
                self._add_pod(sample.labels)
        for sample in samples:
            name = sample.labels["__name__"]
            if name in _LABELS:
                self._add_labels(name, sample.labels)
            elif name.startswith("kube_node_"):
                self._add_to_node(name, sample)
            elif (raw := self._pods.get(pod_of(sample.labels))) is not None:
                container = container_of(sample.labels)
                if container is not None and "container_" in name:
                    self._add_to_container(raw, container[1], name, sample)
                else:
                    _add_to_pod(raw, name, sample)
        return list(self._pods.values()), list(self._nodes.values())

    def _add_pod(self, labels: Labels) -> None:
        key = pod_of(labels)
        raw = self._pods[key] = _Raw(key[1], key[0])
        uid, kind, owner = labels.get("uid", ""), labels.get("created_by_kind"), labels.get("created_by_name")
        raw.metadata["uid"] = uid
        raw.spec["nodeName"] = label(labels, NODE[:2])
        raw.spec["priorityClassName"] = labels.get("priority_class", "")
        raw.spec["priority"] = _PRIORITIES.get(labels.get("priority_class", ""), 0)
        if kind == "Node":
            raw.metadata["annotations"] = {"kubernetes.io/config.mirror": uid or key[1]}
        elif kind and owner and "<none>" not in {kind, owner}:
            raw.metadata["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]

    def _add_labels(self, name: str, labels: Labels) -> None:
        """Add the labels that select, by their own keys."""
        own = {key: labels[metric] for metric, key in self._keys.items() if metric in labels}
        of_pod, node = name == _LABELS[0], label(labels, NODE[:2])
        raw = self._pods.get(pod_of(labels)) if of_pod else self._nodes.setdefault(node, _Raw(node))
        if raw is not None:
            raw.metadata["labels"] = own

    @staticmethod
    def _add_to_container(raw: _Raw, container: str, name: str, sample: Sample) -> None:
        labels, is_init = sample.labels, "_init_" in name
        if name.endswith("container_info"):
            spec = raw.container(container, is_init=is_init)
            if labels.get("restart_policy"):
                spec["restartPolicy"] = labels["restart_policy"]
            raw.container_status(container)["containerID"] = labels.get("container_id", "")
        elif "_resource_" in name:
            side = "requests" if "_requests" in name else "limits"
            if (resource := labels.get("resource")) in _RESOURCES:
                resources = raw.container(container, is_init=is_init)["resources"]
                resources.setdefault(side, {})[resource] = _quantity(resource, sample.value)
        elif name.endswith("restarts_total"):
            raw.container_status(container)["restartCount"] = int(sample.value)
        elif "_last_terminated_" in name:
            end = raw.container_status(container).setdefault("lastState", {}).setdefault("terminated", {})
            if name.endswith("reason"):
                end["reason"] = labels.get("reason", "")
            elif name.endswith("exitcode"):
                end["exitCode"] = int(sample.value)
            else:
                end["finishedAt"] = rfc3339(sample.value)
        else:
            state = raw.container_status(container).setdefault("state", {})
            details = state.setdefault("waiting" if "_waiting" in name else "terminated", {})
            details |= {"reason": labels["reason"]} if labels.get("reason") else {}

    def _add_to_node(self, name: str, sample: Sample) -> None:
        labels = sample.labels
        node = label(labels, NODE[:2])
        raw = self._nodes.setdefault(node, _Raw(node))
        if name == "kube_node_info":
            raw.status["nodeInfo"] = {
                "kubeletVersion": labels.get("kubelet_version", ""),
                "kernelVersion": labels.get("kernel_version", ""),
                "osImage": labels.get("os_image", ""),
                "containerRuntimeVersion": labels.get("container_runtime_version", ""),
                "operatingSystem": "windows" if "windows" in labels.get("os_image", "").lower() else "linux",
            }
        elif name == "kube_node_status_condition":
            condition = {"type": labels.get("condition", ""), "status": labels.get("status", "").capitalize()}
            raw.status.setdefault("conditions", []).append(condition)
        elif (resource := labels.get("resource")) in _RESOURCES:
            side = "capacity" if "_capacity" in name else "allocatable"
            raw.status.setdefault(side, {})[resource] = _quantity(resource, sample.value)


def _snake(key: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"[^a-zA-Z0-9_]", "_", key)).lower()


def _add_to_pod(raw: _Raw, name: str, sample: Sample) -> None:
    labels = sample.labels
    if name == "kube_pod_status_phase":
        raw.status["phase"] = labels.get("phase", "")
    elif name == "kube_pod_status_qos_class":
        raw.status["qosClass"] = labels.get("qos_class", "")
    elif name == "kube_pod_status_reason":
        raw.status["reason"] = labels.get("reason", "")
    elif name == "kube_pod_restart_policy":
        raw.spec["restartPolicy"] = labels.get("type", "")
    elif name == "kube_pod_created":
        raw.metadata["creationTimestamp"] = rfc3339(sample.value)
    elif name == "kube_pod_overhead_memory_bytes":
        raw.spec["overhead"] = {MEMORY: _quantity(MEMORY, sample.value)}


def _quantity(resource: str, value: float) -> str:
    return str(round(value)) if resource == MEMORY else f"{round(value * 1000)}m"
