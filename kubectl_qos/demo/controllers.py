"""What follows a write in the demo: kubelets carry out resizes, controllers replace the pods of a template.

A resize is answered by `qos/resize.py`, a pod of a template refused by `edit/server_response.py`.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.demo.api import object_path
from kubectl_qos.demo.world import (
    World,
    container_statuses,
    counts,
    memory_limit,
    owner_reference,
    report_resources,
)
from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, RESIZE_PENDING, running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Json, Pod, convert, nested, nested_list
from kubectl_qos.k8s.releases import Change
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.resize import ResizeStatus, node_fit, resize_outcome

RESIZE_SECONDS: Final = 2
RETRY_SECONDS: Final = 5
"""After which a kubelet tries again what it could not carry out."""
ROLLOUT_SECONDS: Final = 4
"""Between two pods of a rollout."""
_ROLLING: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_RESIZE: Final = frozenset({RESIZE_PENDING, RESIZE_IN_PROGRESS})


class Kubelets:
    """The resizes that are not carried out yet, by path of the pod with the second of the next try.

    `kept_limits` are those of pods of one container that were to be raised while it did not run: kubelets
    before kubernetes#140387 leave them as they are.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._due: dict[str, int] = {}
        self.kept_limits: dict[str, int] = {}

    def step(self) -> None:
        """Answer what is new, and carry out what is due."""
        api, second = self._world.api, self._world.second
        for raw in api.pods:
            is_new = raw["metadata"]["generation"] != raw["status"]["observedGeneration"]
            if is_new or (self._due and second >= self._due.get(object_path(raw), second + 1)):
                self._due[object_path(raw)] = second + (RESIZE_SECONDS if is_new else RETRY_SECONDS)
                self._answer(raw)

    def _answer(self, raw: Json) -> None:
        """The kubelet's answer as a condition; at the second time it is carried out where it can be."""
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
    """The pods that have the old template, and the second in which the next one is replaced."""

    left: list[str]
    due: int


class Controllers:
    """The rollouts under way, by path of the workload; `replaced` has old pods, each with the new one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rollouts: dict[str, _Rollout] = {}
        self.replaced: list[tuple[Json, Json]] = []

    def step(self) -> None:
        """Begin a rollout for each template that has changed, and replace the pods that are due."""
        world = self._world
        for path, raw in list(world.api.others.items()):
            members, rollout, failure = world.members.get(path, []), self._rollouts.get(path), ""
            if raw["metadata"]["generation"] != raw["status"]["observedGeneration"]:
                left = list(members) if raw["kind"] in _ROLLING else []
                rollout = self._rollouts[path] = _Rollout(left, world.second + 1)
            elif rollout is None or world.second < rollout.due:
                continue
            elif rollout.left:
                failure = self._replace(path, raw, rollout.left[0])
                rollout.due = world.second + ROLLOUT_SECONDS
                del rollout.left[: 0 if failure else 1]
            done = len(members) - len(rollout.left)
            world.api.save({**raw, "status": counts(raw, done, len(members), failure)})
            if not rollout.left:
                del self._rollouts[path]

    def _replace(self, path: str, workload: Json, old_name: str) -> str:
        """Replace a pod by one of the template; why that is refused, or empty."""
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
        """The name of a new pod, its controller and its own labels."""
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
        """The status of a new pod whose containers have started, from that of the pod before it."""
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
