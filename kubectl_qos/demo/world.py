"""The demo's objects (with owners and a quota), its clock, and its simulated kubelets and controllers.

Kubelets carry out resizes, and controllers replace the pods of a changed template. qos/resize.py decides how
a kubelet answers, edit/server_response.py whether the server refuses a pod. Not here: scripted events
(script.py).
"""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kubectl_qos.cluster.files import FIRST_REVISION
from kubectl_qos.demo.api import ObjectApi, object_path
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, RESIZE_PENDING, running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload, template_path
from kubectl_qos.k8s.objects import Json, NodeObject, Pod, convert, nested, nested_list
from kubectl_qos.k8s.quantity import Quantity, parse_time
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import NodeMetrics, PodMetrics, usage_by_node, usage_by_pod
from kubectl_qos.qos.kills.evidence import OOM_KILLED
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.resize import ResizeStatus, node_fit, resize_outcome

QUOTA: Final = {
    "kind": "ResourceQuota",
    "apiVersion": "v1",
    "metadata": {"name": "memory", "namespace": "data", "uid": "5d0c6c2e-0e7b-4f5e-8d8a-6b0f1f5f8a01"},
    "spec": {"hard": {"requests.memory": "23Gi"}},
    "status": {"hard": {"requests.memory": "23Gi"}},
}
"""Leaves room for a fix of the importer, and refuses a request of some GiB more."""
_OF_ONE_POD: Final = frozenset({"nodeName", "priority", "ephemeralContainers"})
_WARNINGS: Final = frozenset({"Evicted", "EvictionThresholdMet", "SystemOOM"})
_MOST_EVENTS: Final = 500
_SEED: Final = 0
"""The seed of the demo's generated names."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of k8s.io/apimachinery/pkg/util/rand, which cannot form words."""


class World:
    """An API with the objects of a List, the demo's clock, and helpers for its controllers."""

    def __init__(self, items: list[dict[str, Any]], began: datetime) -> None:
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
        """Seconds since `began`."""
        self.members: dict[str, list[str]] = {}
        """Pod names by the path of their workload."""
        for pod in by_kind["Pod"]:
            # Recorded pods lack a server's defaults, and the kubelet's allocated resources.
            self.api.admit(pod)
            pod["status"]["observedGeneration"] = 1
            for container, status in container_statuses(pod):
                if "resources" in status:
                    report_resources(status, container)
            self._add_owners(pod)
        for path, names in self.members.items():
            raw, count = self.api.others[path], len(names)
            spec = {"replicas": count, **raw["spec"]}
            self.api.others[path] = {**raw, "spec": spec, "status": counts(raw, count, count)}
        self.api.count_quotas()

    @property
    def now(self) -> str:
        """The current time of the demo, as in objects."""
        return (self.began + timedelta(seconds=self.second)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def digest(self, *parts: object) -> str:
        """Return hexadecimal digits that depend only on the parts."""
        return hashlib.sha256("/".join(map(str, (_SEED, *parts))).encode()).hexdigest()

    def suffix(self, *parts: object, length: int = 5) -> str:
        """Return a suffix for a generated name."""
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in bytes.fromhex(self.digest(*parts))[:length])

    def uid(self, *parts: object) -> str:
        """Return a UID."""
        digits = self.digest(*parts)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"

    def snapshot(self) -> Snapshot:
        """Return the current objects as a snapshot."""
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
        """Add an event about an object."""
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

    def _add_owners(self, pod: dict[str, Any]) -> None:
        """Add the workload that the pod names, and the Deployment above a ReplicaSet."""
        references = nested_list(pod, "metadata", "ownerReferences")
        if not references or references[0]["kind"] not in WORKLOADS:
            return
        owner, top = references[0], find_workload(convert(pod, Pod))
        is_top = top.kind == owner["kind"]
        above = [] if is_top else [owner_reference(top.kind, top.name, self.uid(*top))]
        self._add_owner(pod, owner, above)
        for reference in above:
            self._add_owner(pod, reference, [])

    def _add_owner(self, pod: dict[str, Any], owner: Json, above: Sequence[Json]) -> None:
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
    """Return the status of a workload: pods, updated pods, and why no more can be created."""
    pods = ("replicas", "readyReplicas", "availableReplicas", "desiredNumberScheduled", "numberAvailable")
    conditions = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}]
    return {
        "observedGeneration": raw["metadata"]["generation"],
        **dict.fromkeys(pods, total),
        **dict.fromkeys(("updatedReplicas", "updatedNumberScheduled"), updated),
        **({"conditions": conditions} if failure else {}),
    }


def owner_reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """Return an ownerReference to a controller."""
    version = WORKLOADS[kind].group.removeprefix("/apis/")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def container_statuses(pod: Json) -> Iterator[tuple[Json, dict[str, Any]]]:
    """Yield each container with its status: app, init and ephemeral containers."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        by_name = {container["name"]: container for container in pod["spec"].get(key) or ()}
        for status in pod["status"].get(f"{key.removesuffix('s')}Statuses") or ():
            yield by_name[status["name"]], status


def memory_limit(status: Json) -> int | None:
    """Return a container's limit from its status, in bytes."""
    limit = nested(status, "resources", "limits").get("memory")
    return None if limit is None else Quantity.parse(limit).value()


_REPORTS: Final = 8
_REPORT_EVERY: Final = timedelta(seconds=10)


def container_log(
    raw: Json, container: str, now: datetime, *, is_previous: bool, killed_at: str | None = None
) -> str:
    """Return a container's log; a container that the kernel kills has no last line.

    `killed_at` is the limit that ended the previous run ("" without one; None: the current limit). Raises
    QosError if there is no such run.
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
    """Report the resources of the spec as allocated and in use."""
    resources = copy.deepcopy(dict(container.get("resources") or {}))
    status["resources"] = resources
    status["allocatedResources"] = resources.get("requests", {})


RESIZE_SECONDS: Final = 2
RETRY_SECONDS: Final = 5
"""Seconds until a kubelet tries again."""
ROLLOUT_SECONDS: Final = 4
"""Seconds between two pods of a rollout."""
_ROLLING: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_RESIZE: Final = frozenset({RESIZE_PENDING, RESIZE_IN_PROGRESS})


class Kubelets:
    """The kubelets of all nodes, with their resizes in progress."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._due: dict[str, int] = {}
        """The second of the next try, by pod path."""
        self.kept_limits: dict[str, int] = {}
        """Limits that a resize of a stopped container did not raise, by pod path: kubelets before
        kubernetes#140387 keep the old limit of the pod's cgroup."""

    def step(self) -> None:
        """Run for a second: answer new resizes, and carry out those that are due."""
        api, second = self._world.api, self._world.second
        for raw in api.pods:
            is_new = raw["metadata"]["generation"] != raw["status"]["observedGeneration"]
            if is_new or (self._due and second >= self._due.get(object_path(raw), second + 1)):
                self._due[object_path(raw)] = second + (RESIZE_SECONDS if is_new else RETRY_SECONDS)
                self._answer(raw)

    def _answer(self, raw: Json) -> None:
        """Set the answer as a condition; on the second call carry out the resize if it fits."""
        world, generation = self._world, raw["metadata"]["generation"]
        pod, snapshot = convert(raw, Pod), world.snapshot()
        setup = snapshot.setup(pod.node_name)
        others = [other for other in snapshot.by_node()[pod.node_name] if other.name != pod.name]
        old, wanted = running_pod(pod, setup.release), default_pod(pod, setup.release)
        fits = node_fit(wanted, others, setup)
        outcome = resize_outcome(old, wanted, setup, fits, snapshot.usage_of(pod))
        is_new = generation != raw["status"]["observedGeneration"]
        new = copy.deepcopy(dict(raw))
        status = new["status"] | {"observedGeneration": generation}
        conditions = [
            item for item in nested_list(new, "status", "conditions") if item["type"] not in _RESIZE
        ]
        new["status"] = status
        status["conditions"] = conditions
        if outcome.answer is ResizeStatus.ACTUATED and not is_new:
            del self._due[object_path(raw)]
            has_fix = setup.release.has(Change.RESIZE_OF_STARTING_CONTAINER)
            for container, container_status in container_statuses(new):
                if "running" in container_status.get("state", {}):
                    report_resources(container_status, container)
                    self.kept_limits.pop(object_path(raw), None)
                elif not has_fix and (limit := memory_limit(container_status)) is not None:
                    self.kept_limits.setdefault(object_path(raw), limit)
            world.event(new, "ResizeCompleted", "Pod resize completed")
        else:
            is_pending = outcome.answer in {ResizeStatus.DEFERRED, ResizeStatus.INFEASIBLE}
            why = {"reason": outcome.answer.value, "message": outcome.message} if outcome.message else {}
            type_ = RESIZE_PENDING if is_pending else RESIZE_IN_PROGRESS
            conditions.append({"type": type_, "status": "True", "observedGeneration": generation, **why})
        world.api.save(new)


@dataclass
class _Rollout:
    """A rollout: pods still to replace, and the second of the next replacement."""

    remaining: list[str]
    due: int


class Controllers:
    """The controllers of workloads, with their rollouts in progress by path of the workload."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rollouts: dict[str, _Rollout] = {}
        self.replaced: list[tuple[Json, Json]] = []
        """Replaced pods, each with its new pod."""

    def step(self) -> None:
        """Run for a second: begin rollouts of changed templates, and replace the pods that are due."""
        world = self._world
        for path, raw in list(world.api.others.items()):
            members, rollout, failure = world.members.get(path, []), self._rollouts.get(path), ""
            if raw["metadata"]["generation"] != raw["status"]["observedGeneration"]:
                remaining = list(members) if raw["kind"] in _ROLLING else []
                rollout = self._rollouts[path] = _Rollout(remaining, world.second + 1)
            elif rollout is None or world.second < rollout.due:
                continue
            elif rollout.remaining:
                failure = self._replace(path, raw, rollout.remaining[0])
                rollout.due = world.second + ROLLOUT_SECONDS
                if not failure:
                    del rollout.remaining[0]
            done = len(members) - len(rollout.remaining)
            world.api.save({**raw, "status": counts(raw, done, len(members), failure)})
            if not rollout.remaining:
                del self._rollouts[path]

    def _replace(self, path: str, workload: Json, old_name: str) -> str:
        """Replace a pod by one of the template. Return the refusal message or ""."""
        world, namespace = self._world, workload["metadata"]["namespace"]
        old = world.api.get("Pod", namespace, old_name)
        assert old is not None
        name, owner, labels = self._names(workload, old_name)
        template = workload["spec"]["template"]
        placed = {key: old["spec"][key] for key in ("nodeName", "priority") if key in old["spec"]}
        new = {**old, "spec": {**copy.deepcopy(template["spec"]), **placed}}
        new["metadata"] = {
            "name": name,
            "namespace": namespace,
            "uid": world.uid("Pod", name, world.second),
            "creationTimestamp": world.now,
            "generation": 1,
            "labels": {**nested(template, "metadata").get("labels", {}), **labels},
            "ownerReferences": [owner],
        }
        world.api.admit(new)
        failure = world.api.creation_refusal(new)
        if failure:
            return failure
        self._start(new, old)
        world.api.remove("Pod", namespace, old_name)
        world.members[path] = [name if member == old_name else member for member in world.members[path]]
        self.replaced.append((old, world.api.save(new)))
        assigned = f"Successfully assigned {namespace}/{name} to {placed.get('nodeName', '')}"
        world.event(new, "Scheduled", assigned, component="default-scheduler")
        world.event(new, "Started", "Container started")
        return ""

    def _names(self, workload: Json, old_name: str) -> tuple[str, Json, Mapping[str, str]]:
        """Return the name of a new pod, its controller and its own labels."""
        world, kind, metadata = self._world, workload["kind"], workload["metadata"]
        reference = owner_reference(kind, metadata["name"], metadata["uid"])
        suffix = world.suffix(old_name, world.second)
        if kind == "StatefulSet":
            return old_name, reference, {}
        if kind == "DaemonSet":
            return f"{metadata['name']}-{suffix}", reference, {}
        template = workload["spec"]["template"]
        revision = world.suffix(json.dumps(template, sort_keys=True), length=9)
        name = f"{metadata['name']}-{revision}"
        identity = {"name": name, "namespace": metadata["namespace"], "uid": world.uid("ReplicaSet", name)}
        raw = {**workload, "kind": "ReplicaSet"}
        raw["metadata"] = {**identity, "generation": 1, "ownerReferences": [reference]}
        raw["status"] = counts(raw, 0, 0)
        if world.api.get("ReplicaSet", metadata["namespace"], name) is None:
            world.api.save(raw)
        owner = owner_reference("ReplicaSet", name, identity["uid"])
        return f"{name}-{suffix}", owner, {"pod-template-hash": revision}

    def _start(self, new: dict[str, Any], old: Json) -> None:
        """Set the status of a new pod with running containers, from the status of the old pod."""
        pod, world = convert(new, Pod), self._world
        release = world.snapshot().setup(pod.node_name).release
        states = {status["name"]: status["state"] for _, status in container_statuses(old)}
        qos_class = computed_class(default_pod(pod, release), release).value
        new["status"] = {"phase": "Running", "qosClass": qos_class, "observedGeneration": 1}
        for key in ("containers", "initContainers"):
            new["status"][f"{key.removesuffix('s')}Statuses"] = [
                {
                    "name": container["name"],
                    "state": states.get(container["name"], {"running": {}}),
                    "restartCount": 0,
                    "containerID": f"containerd://{world.digest(pod.metadata.uid, container['name'])}",
                }
                for container in new["spec"].get(key) or ()
            ]
        for container, status in container_statuses(new):
            if "running" in status["state"]:
                status["state"] = {"running": {"startedAt": world.now}}
                report_resources(status, container)
