"""How far a change has come, judged from the object as it is now. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side
from kubectl_qos.edit.history import value_now
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import CPU, ContainerStatus, Pod, convert
from kubectl_qos.k8s.quantity import Quantity


class Stage(StrEnum):
    """Where a change stands."""

    WAITING = "waiting for the kubelet"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in progress"
    ERROR = "error"
    ROLLING = "rolling out"
    STUCK = "not progressing"
    OVERTAKEN = "changed again by someone else"
    GONE = "gone"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at it.

    Attributes:
        stage: where it stands.
        settled: nothing more will happen by itself; deferred and error are not settled, both are tried again.
        message: the server's or the kubelet's sentence, or what there is to know besides; may be empty.
        done: pods that have the change, None where that is not counted.
        total: pods that shall have it.
    """

    stage: Stage
    settled: bool
    message: str = ""
    done: int | None = None
    total: int | None = None


def number(raw: Any, *path: str) -> int | None:
    """The whole number at a path of plain JSON, None where there is none."""
    found = raw
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if type(found) is int else None


def text(raw: Any, *path: str) -> str:
    """The text at a path of plain JSON, empty where there is none."""
    found = raw
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


def conditions(raw: Any) -> dict[str, Mapping[str, Any]]:
    """The conditions of an object's status that are true or say why not, by their type."""
    status = raw.get("status") if isinstance(raw, Mapping) else None
    found = status.get("conditions") if isinstance(status, Mapping) else None
    if not isinstance(found, list):
        return {}
    return {text(one, "type"): one for one in found if isinstance(one, Mapping)}


PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
_PENDING: Final = {"Deferred": Stage.DEFERRED, "Infeasible": Stage.INFEASIBLE}
_BEFORE_CONDITIONS: Final = {"Proposed": Stage.WAITING, "InProgress": Stage.IN_PROGRESS, **_PENDING}
_LEAST_CPU_MILLI: Final = {Side.REQUESTS: 2, Side.LIMITS: 10}
"""Below this cgroups hold no smaller value, and what is read back of them is not what was asked for."""


def resize_progress(request: PatchRequest, pod: Pod, now: Mapping[str, Any]) -> Progress:
    """Where a resize stands.

    Args:
        request: what was sent.
        pod: the pod as it is.
        now: the same as plain JSON.
    """
    if pod.is_terminal:
        return Progress(Stage.GONE, settled=True, message=f"the pod has ended: {pod.status.phase}")
    if not pod.node_name:
        return Progress(
            Stage.DONE, settled=True, message="the pod is on no node yet: it will start with the values"
        )
    reported = _by_conditions(now) or _by_status(pod)
    if reported is not None:
        return reported
    observed = number(now, "status", "observedGeneration")
    is_observed = observed is None or observed >= (number(now, "metadata", "generation") or 0)
    if not is_observed or not all(_is_allocated(pod, edit) for edit in request.edits):
        return Progress(Stage.WAITING, settled=False)
    if not all(_is_actual(pod, edit) for edit in request.edits):
        return Progress(Stage.IN_PROGRESS, settled=False)
    return Progress(Stage.DONE, settled=True)


def _by_conditions(now: Mapping[str, Any]) -> Progress | None:
    """What a condition says of this version of the pod; one of an earlier version says nothing."""
    generation = number(now, "metadata", "generation") or 0
    found = {
        kind: one
        for kind, one in conditions(now).items()
        if text(one, "status") == "True" and (number(one, "observedGeneration") or generation) >= generation
    }
    pending, in_progress = found.get(PENDING), found.get(IN_PROGRESS)
    if pending is not None:
        stage = _PENDING.get(text(pending, "reason"), Stage.WAITING)
        return Progress(stage, settled=stage is Stage.INFEASIBLE, message=text(pending, "message"))
    if in_progress is not None:
        stage = Stage.ERROR if text(in_progress, "reason") == "Error" else Stage.IN_PROGRESS
        return Progress(stage, settled=False, message=text(in_progress, "message"))
    return None


def _by_status(pod: Pod) -> Progress | None:
    stage = _BEFORE_CONDITIONS.get(pod.status.resize)
    return None if stage is None else Progress(stage, settled=stage is Stage.INFEASIBLE)


def _is_allocated(pod: Pod, edit: Edit) -> bool:
    """Whether the kubelet has set aside what a request asks for; limits are not allocated."""
    if edit.side is Side.LIMITS:
        return True
    if edit.owner == POD_LEVEL:
        allocated = pod.status.allocated_resources
        return allocated is None or allocated.get(edit.resource) == value_now(pod, edit)
    status = _status(pod, edit.owner)
    if status is None:
        return False
    return status.allocated_resources is None or (
        status.allocated_resources.get(edit.resource) == value_now(pod, edit)
    )


def _is_actual(pod: Pod, edit: Edit) -> bool:
    """Whether the container runs with the value; one that does not run starts with what is allocated."""
    if edit.owner == POD_LEVEL:
        return True
    status = _status(pod, edit.owner)
    if status is None or not _runs(status) or status.resources is None:
        return status is not None
    actual = (getattr(status.resources, edit.side.value) or {}).get(edit.resource)
    return _as_held(edit, actual) == _as_held(edit, value_now(pod, edit))


def _as_held(edit: Edit, quantity: Quantity | None) -> Quantity | int | None:
    if quantity is None or edit.resource != CPU:
        return quantity
    return max(quantity.milli_value(), _LEAST_CPU_MILLI[edit.side])


def _runs(status: ContainerStatus) -> bool:
    state = status.state
    return state is not None and state.terminated is None and state.waiting is None


def _status(pod: Pod, name: str) -> ContainerStatus | None:
    return next((one for one in pod.status.every_container if one.name == name), None)


Json = Mapping[str, Any]
ON_DELETE: Final = "OnDelete"
DEADLINE: Final = "ProgressDeadlineExceeded"


def rollout_progress(kind: str, now: Json) -> Progress:
    """Where the rollout of a workload stands."""
    return _RULES[kind](now)


def _deployment(now: Json) -> Progress:
    replicas = _replicas(now)
    updated = _count(now, "updatedReplicas")
    found = conditions(now)
    if (now.get("spec") or {}).get("paused") is True:
        sentence = "the deployment is paused: its pods keep their values until it is resumed"
        return Progress(Stage.STUCK, settled=True, message=sentence, done=updated, total=replicas)
    if not _is_observed(now):
        return _rolling("deployment spec update to be observed", 0, replicas)
    progressing = found.get("Progressing", {})
    if text(progressing, "reason") == DEADLINE:
        sentence = text(progressing, "message") or f'deployment "{_name(now)}" exceeded its progress deadline'
        return Progress(Stage.STUCK, settled=True, message=sentence, done=updated, total=replicas)
    if updated < replicas:
        failure = found.get("ReplicaFailure", {})
        if text(failure, "status") == "True":
            # Tried again, and by a quota that has room again it gets on.
            return Progress(
                Stage.STUCK, settled=False, message=text(failure, "message"), done=updated, total=replicas
            )
        return _rolling(f"{updated} out of {replicas} new replicas have been updated", updated, replicas)
    existing, available = _count(now, "replicas"), _count(now, "availableReplicas")
    if existing > updated:
        return _rolling(f"{existing - updated} old replicas are pending termination", updated, replicas)
    if available < updated:
        return _rolling(f"{available} of {updated} updated replicas are available", updated, replicas)
    return Progress(Stage.DONE, settled=True, done=updated, total=replicas)


def _stateful_set(now: Json) -> Progress:
    replicas, updated = _replicas(now), _count(now, "updatedReplicas")
    if text(now, "spec", "updateStrategy", "type") == ON_DELETE:
        return _on_delete(updated, replicas)
    if not _is_observed(now):
        return _rolling("statefulset spec update to be observed", 0, replicas)
    partition = number(now, "spec", "updateStrategy", "rollingUpdate", "partition") or 0
    wanted = max(replicas - partition, 0)
    if updated < wanted:
        return _rolling(f"{updated} out of {wanted} new pods have been updated", updated, wanted)
    ready = _count(now, "readyReplicas")
    if ready < replicas:
        return _rolling(f"{replicas - ready} pods to be ready", updated, wanted)
    if partition:
        sentence = f"pods below the partition {partition} keep their values"
        return Progress(Stage.DONE, settled=True, message=sentence, done=updated, total=wanted)
    if text(now, "status", "updateRevision") != text(now, "status", "currentRevision"):
        return _rolling(
            f"{updated} pods at revision {text(now, 'status', 'updateRevision')}", updated, wanted
        )
    return Progress(Stage.DONE, settled=True, done=updated, total=wanted)


def _daemon_set(now: Json) -> Progress:
    desired, updated = _count(now, "desiredNumberScheduled"), _count(now, "updatedNumberScheduled")
    if text(now, "spec", "updateStrategy", "type") == ON_DELETE:
        return _on_delete(updated, desired)
    if not _is_observed(now):
        return _rolling("daemon set spec update to be observed", 0, desired)
    if updated < desired:
        return _rolling(f"{updated} out of {desired} new pods have been updated", updated, desired)
    available = _count(now, "numberAvailable")
    if available < desired:
        return _rolling(f"{available} of {desired} updated pods are available", updated, desired)
    return Progress(Stage.DONE, settled=True, done=updated, total=desired)


def _keeps_its_pods(now: Json) -> Progress:
    sentence = "existing pods keep their values: only new ones are made from the template"
    return Progress(Stage.DONE, settled=True, message=sentence, done=0, total=_count(now, "replicas"))


def _cron_job(now: Json) -> Progress:
    suspended = (now.get("spec") or {}).get("suspend") is True
    sentence = "it is suspended: the next run after it is resumed" if suspended else "the next run"
    return Progress(Stage.DONE, settled=True, message=f"{sentence} has the values; running jobs keep theirs")


_RULES: Final[Mapping[str, Callable[[Json], Progress]]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "ReplicaSet": _keeps_its_pods,
    "ReplicationController": _keeps_its_pods,
    "CronJob": _cron_job,
}


def _on_delete(updated: int, total: int) -> Progress:
    sentence = f"updateStrategy {ON_DELETE}: pods keep their values until they are deleted"
    return Progress(Stage.DONE, settled=True, message=sentence, done=updated, total=total)


def _rolling(waits_for: str, done: int, total: int) -> Progress:
    return Progress(Stage.ROLLING, settled=False, message=f"waiting: {waits_for}", done=done, total=total)


def _is_observed(now: Json) -> bool:
    return (number(now, "status", "observedGeneration") or 0) >= (number(now, "metadata", "generation") or 0)


def _replicas(now: Json) -> int:
    """Asked for; one where nothing is said."""
    found = number(now, "spec", "replicas")
    return 1 if found is None else found


def _count(now: Json, name: str) -> int:
    return number(now, "status", name) or 0


def _name(now: Json) -> str:
    return text(now, "metadata", "name")


def check_progress(request: PatchRequest, written: Json, now: Json | None) -> Progress:
    """How far a change has come.

    Args:
        request: what was sent.
        written: the object as the server answered.
        now: the object as it is; None where there is none of that name any more.

    Raises:
        msgspec.ValidationError: an object that is no such object.
    """
    if now is None:
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} is not there any more")
    if text(now, "metadata", "uid") != request.uid:
        sentence = f"{request.reference} was deleted, and made anew by someone else"
        return Progress(Stage.GONE, settled=True, message=sentence)
    pod = pod_from_object(request, now)
    stored = pod_from_object(request, written)
    if any(value_now(pod, edit) != value_now(stored, edit) for edit in request.edits):
        return Progress(Stage.OVERTAKEN, settled=True)
    if text(now, "metadata", "deletionTimestamp"):
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} is being deleted")
    if request.kind == "Pod":
        return resize_progress(request, pod, now)
    return rollout_progress(request.kind, now)


def pod_from_object(request: PatchRequest, raw: Json) -> Pod:
    """The pod, or the one of a workload's template. Raises msgspec.ValidationError."""
    return convert(raw, Pod) if request.kind == "Pod" else pod_from_workload(request.kind, raw)
