"""The demo's cluster as it begins: the recorded objects with their owners and a quota, and the demo's clock.

Not here: what happens to it (script.py, controllers.py).
"""

import copy
import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from kubectl_qos.cluster.files import FIRST_REVISION
from kubectl_qos.demo.api import ObjectApi, object_path
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload, template_path
from kubectl_qos.k8s.objects import Json, NodeObject, Pod, convert, nested, nested_list
from kubectl_qos.k8s.quantity import Quantity, parse_time
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import NodeMetrics, PodMetrics, usage_by_node, usage_by_pod
from kubectl_qos.qos.kills.evidence import OOM_KILLED

QUOTA: Final = {
    "kind": "ResourceQuota",
    "apiVersion": "v1",
    "metadata": {"name": "memory", "namespace": "data", "uid": "5d0c6c2e-0e7b-4f5e-8d8a-6b0f1f5f8a01"},
    "spec": {"hard": {"requests.memory": "23Gi"}},
    "status": {"hard": {"requests.memory": "23Gi"}},
}
"""It has room for a fix of the importer, and refuses a request of some GiB more."""
_OF_ONE_POD: Final = frozenset({"nodeName", "priority", "ephemeralContainers"})
_WARNINGS: Final = frozenset({"Evicted", "EvictionThresholdMet", "SystemOOM"})
_MOST_EVENTS: Final = 500
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Those of k8s.io/apimachinery/pkg/util/rand, which make no words."""


class World:
    """An API with the objects of a List, and what kubelets and controllers need to change them.

    `second` is how far it has come since `began`; `members` are the names of the pods of a workload, by path.
    """

    def __init__(self, items: list[dict[str, Any]], began: datetime, seed: int) -> None:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for item in items:
            item["metadata"] |= {"generation": 1, "resourceVersion": FIRST_REVISION}
            by_kind.setdefault(item["kind"], []).append(item)
        self.api = ObjectApi(
            pods=by_kind["Pod"],
            nodes=by_kind["Node"],
            events=by_kind["Event"],
            metrics=by_kind["PodMetrics"],
            node_metrics=by_kind["NodeMetrics"],
            limits=[copy.deepcopy(QUOTA)],
        )
        self.began = began
        self.second = 0
        self.members: dict[str, list[str]] = {}
        self._seed = seed
        for pod in by_kind["Pod"]:
            self._settle(pod)
            self._add_owners(pod)
        for path, names in self.members.items():
            raw, count = self.api.others[path], len(names)
            spec = {"replicas": count, **raw["spec"]}
            self.api.others[path] = {**raw, "spec": spec, "status": counts(raw, count, count)}
        self.api.count_quotas()

    @property
    def now(self) -> str:
        """The demo's time as objects have it."""
        return (self.began + timedelta(seconds=self.second)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def digest(self, *parts: object) -> str:
        """Hexadecimal digits that only these parts and the seed decide on."""
        return hashlib.sha256("/".join(map(str, (self._seed, *parts))).encode()).hexdigest()

    def suffix(self, *parts: object, length: int = 5) -> str:
        """The end of a made name."""
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in bytes.fromhex(self.digest(*parts))[:length])

    def uid(self, *parts: object) -> str:
        """An identity."""
        digits = self.digest(*parts)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"

    def snapshot(self) -> Snapshot:
        """Everything as rules take it."""
        nodes = (convert(raw, NodeObject) for raw in self.api.nodes)
        usage = usage_by_pod(convert(raw, PodMetrics) for raw in self.api.metrics or ())
        return Snapshot(
            tuple(convert(raw, Pod) for raw in self.api.pods),
            {node.name: node for node in nodes},
            usage,
            node_usage=usage_by_node(convert(raw, NodeMetrics) for raw in self.api.node_metrics or ()),
        )

    def event(
        self, about: Json, reason: str, message: str, *, component: str = "kubelet", container: str = ""
    ) -> None:
        """Report what happened to an object."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace")
        involved = {"kind": about["kind"], "name": metadata["name"], "uid": metadata["uid"]}
        involved |= {"namespace": namespace} if namespace is not None else {}
        involved |= {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
        name = f"{metadata['name']}.{self.digest(metadata['uid'], reason, self.second)[:16]}"
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"namespace": namespace or "default", "name": name},
            "involvedObject": involved,
            "type": "Warning" if reason in _WARNINGS else "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "count": 1,
            "firstTimestamp": self.now,
            "lastTimestamp": self.now,
        }
        self.api.events = [*self.api.events[-_MOST_EVENTS:], event]

    def _settle(self, pod: dict[str, Any]) -> None:
        """What recorded pods lack: a server's defaults, and what their kubelets have allocated."""
        self.api.admit(pod)
        pod["status"]["observedGeneration"] = 1
        for container, status in container_statuses(pod):
            if "resources" in status:
                report_resources(status, container)

    def _add_owners(self, pod: dict[str, Any]) -> None:
        """The workload that a pod names, and the Deployment that its name tells; templates like the pod."""
        references = nested_list(pod, "metadata", "ownerReferences")
        if not references or references[0]["kind"] not in WORKLOADS:
            return
        owner, top = references[0], find_workload(convert(pod, Pod))
        if top.kind == owner["kind"]:
            self._add_owner(pod, owner, [])
            return
        above = owner_reference(top.kind, top.name, self.uid(*top))
        self._add_owner(pod, owner, [above])
        self._add_owner(pod, above, [])

    def _add_owner(self, pod: dict[str, Any], owner: Json, above: list[Json]) -> None:
        kind, metadata = owner["kind"], pod["metadata"]
        labels = {key: value for key, value in metadata["labels"].items() if key != "pod-template-hash"}
        spec = {key: value for key, value in pod["spec"].items() if key not in _OF_ONE_POD}
        inner: dict[str, Any] = {"metadata": {"labels": labels}, "spec": copy.deepcopy(spec)}
        for key in reversed(template_path(kind)):
            inner = {key: inner}
        raw = {
            "kind": kind,
            "apiVersion": WORKLOADS[kind].group.removeprefix("/apis/"),
            "metadata": {
                **{key: metadata[key] for key in ("namespace", "creationTimestamp", "generation")},
                "name": owner["name"],
                "uid": owner["uid"],
                "resourceVersion": FIRST_REVISION,
                **({"ownerReferences": above} if above else {}),
            },
            **inner,
        }
        path = object_path(raw)
        self.api.others.setdefault(path, raw)
        self.members.setdefault(path, []).append(metadata["name"])


def counts(raw: Json, updated: int, total: int, failure: str = "") -> dict[str, Any]:
    """The status of a workload: its pods, those with the current template, and why no more can be made."""
    pods = ("replicas", "readyReplicas", "availableReplicas", "desiredNumberScheduled", "numberAvailable")
    conditions = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}]
    return {
        "observedGeneration": raw["metadata"]["generation"],
        **dict.fromkeys(pods, total),
        **dict.fromkeys(("updatedReplicas", "updatedNumberScheduled"), updated),
        **({"conditions": conditions} if failure else {}),
    }


def owner_reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """A reference to a controller."""
    version = WORKLOADS[kind].group.removeprefix("/apis/")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def container_statuses(pod: Json) -> Iterator[tuple[Json, dict[str, Any]]]:
    """Each container with its status, init containers and ephemeral ones too."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        by_name = {container["name"]: container for container in pod["spec"].get(key) or ()}
        for status in pod["status"].get(f"{key.removesuffix('s')}Statuses") or ():
            yield by_name[status["name"]], status


def memory_limit(status: Json) -> int | None:
    """The limit that a container has by its status, in bytes."""
    limit = nested(status, "resources", "limits").get("memory")
    return None if limit is None else Quantity.parse(limit).value()


_REPORTS: Final = 8
_REPORT_EVERY: Final = timedelta(seconds=10)


def container_log(
    raw: Json, container: str, now: datetime, *, is_previous: bool, killed_at: str | None = None
) -> str:
    """What a container said of its memory while it ran; one that the kernel kills has no last words.

    `killed_at` is the limit at the end of a previous run, empty without one, None where it is that of now.
    Raises QosError without such a run.
    """
    statuses = (status for _, status in container_statuses(raw))
    status = next((status for status in statuses if status["name"] == container), {})
    state = status.get("lastState" if is_previous else "state") or {}
    run = state.get("terminated") or state.get("running")
    if run is None:
        name = raw["metadata"]["name"]
        raise QosError(f'previous terminated container "{container}" in pod "{name}" not found')
    begin, end = parse_time(run["startedAt"]), parse_time(run.get("finishedAt")) or now
    assert begin is not None, "a run has a beginning"
    limit = nested(status, "resources", "limits").get("memory", "") if killed_at is None else killed_at
    most = Quantity.parse(limit).value() if limit else None
    lines = [f"{run['startedAt']} started, {f'memory limit {limit}' if limit else 'no memory limit'}"]
    for left in range(_REPORTS - 1, 0, -1):
        time = end - left * min((end - begin) / _REPORTS, _REPORT_EVERY)
        heap = f", heap {most * (98 - 2 * left) // 100 >> 20}Mi" if most is not None else ""
        lines.append(f"{time:%Y-%m-%dT%H:%M:%SZ} {int((time - begin).total_seconds())} items done{heap}")
    if run.get("exitCode") and run.get("reason") != OOM_KILLED:
        lines.append(f"{run['finishedAt']} exit {run['exitCode']}")
    return "\n".join(lines)


def report_resources(status: dict[str, Any], container: Json) -> None:
    """A kubelet has given a container what its spec says."""
    resources = copy.deepcopy(dict(container.get("resources") or {}))
    status["resources"] = resources
    status["allocatedResources"] = resources.get("requests", {})
