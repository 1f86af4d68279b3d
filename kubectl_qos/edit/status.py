"""The progress of an applied change by the present object: a resize, a rollout, or a trial. Pure.

A trial counts the runs of a container by `restartCount` and compares no clocks: the present run counts from
when the kubelet has carried out the change, later runs always. Not here: the steps of a change
(apply_state.py), reading pods (cluster/), and the words (present/changes.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.edit.edits import POD_LEVEL, Edit, PatchRequest, Side, value_now
from kubectl_qos.edit.related import decode_pod
from kubectl_qos.k8s.allocation import low_pod_limit, other_pod_limit
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    MEMORY,
    ContainerStatus,
    Json,
    Pod,
    all_containers,
    nested,
    nested_list,
)
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.qos_class import QosClass


def low_limit_sentence(limit: str, namespace: str, pod: str, container: str, qos: str) -> str:
    """Say that a resize left the limit of a pod's cgroup too low, and which command raises it."""
    both = " --requests memory=+1Mi" if qos == QosClass.GUARANTEED else ""
    command = f"kubectl qos set pod/{pod} -n {namespace} -c {container} --limits memory=+1Mi{both}"
    return (
        f"the memory limit of the whole pod is still {limit} (kubernetes#138760): to raise it, resize the"
        f" container while it runs ({command}), or recreate the pod"
    )


class Stage(StrEnum):
    """How far a change has come."""

    WAITING = "waiting for the kubelet"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in progress"
    NOT_RUNNING = "waiting for the container"
    ERROR = "error"
    ROLLING = "rolling out"
    STUCK = "not progressing"
    OVERTAKEN = "changed again by someone else"
    REVERTING = "reverting"
    UNDONE = "undone"
    GONE = "gone"
    DONE = "done"


class Progress(msgspec.Struct, frozen=True):
    """The progress of a change at one time: `done` of `total` pods have it, None if pods are not counted.

    `settled`: nothing more will happen by itself; DEFERRED and ERROR are retried. `message` is a sentence of
    the server or the kubelet, a note, or "".
    """

    stage: Stage
    settled: bool
    message: str = ""
    done: int | None = None
    total: int | None = None

    @property
    def is_reverted(self) -> bool:
        """Return whether a later change of ours reverts it."""
        return self.stage in {Stage.REVERTING, Stage.UNDONE}

    @property
    def waits_for_usage(self) -> bool:
        """Return whether the kubelet retries to lower a limit until usage is below it."""
        return self.stage is Stage.ERROR and self.message.startswith("cannot decrease memory limits")


def number(raw: Json, *path: str) -> int | None:
    """Return the whole number at a path of plain JSON, or None."""
    value = nested(raw, *path[:-1]).get(path[-1])
    return value if type(value) is int else None


def text(raw: Json, *path: str) -> str:
    """Return the text at a path of plain JSON, or ""."""
    value = nested(raw, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def _conditions(raw: Json) -> dict[str, Json]:
    return {text(condition, "type"): condition for condition in nested_list(raw, "status", "conditions")}


_PENDING: Final = {"Deferred": Stage.DEFERRED, "Infeasible": Stage.INFEASIBLE}
_BEFORE_CONDITIONS: Final = {"Proposed": Stage.WAITING, "InProgress": Stage.IN_PROGRESS, **_PENDING}
_LEAST_CPU_MILLI: Final = {Side.REQUESTS: 2, Side.LIMITS: 10}
"""The least values of cgroups, as which smaller values are read back."""


def _resize_progress(request: PatchRequest, pod: Pod, now: Json) -> Progress:
    if pod.is_terminal:
        return Progress(Stage.GONE, settled=True, message=f"the pod has ended: {pod.status.phase}")
    if not pod.node_name:
        sentence = "the pod is not scheduled yet: it will start with the new values"
        return Progress(Stage.DONE, settled=True, message=sentence)
    stage = _BEFORE_CONDITIONS.get(pod.status.resize)
    by_status = Progress(stage, settled=stage is Stage.INFEASIBLE) if stage is not None else None
    reported = _progress_from_conditions(now) or by_status
    if reported is not None:
        return reported
    observed = number(now, "status", "observedGeneration")
    is_observed = observed is None or observed >= _generation(now)
    if not is_observed or not all(_is_allocated(pod, edit) for edit in request.edits):
        return Progress(Stage.WAITING, settled=False)
    waiting = [edit.owner for edit in request.edits if _waits(pod, edit.owner)]
    if waiting:
        sentence = f"{' and '.join(dict.fromkeys(waiting))} does not run: it gets the values when it starts"
        return Progress(Stage.NOT_RUNNING, settled=False, message=sentence)
    if not all(_is_actual(pod, edit) for edit in request.edits) or other_pod_limit(pod) is not None:
        limit = low_pod_limit(pod)
        if limit is not None and any(status.ends for status in pod.status.every_container):
            who = pod.namespace, pod.name, pod.containers[0].name, pod.status.qos_class
            return Progress(Stage.ERROR, settled=True, message=low_limit_sentence(str(limit), *who))
        return Progress(Stage.IN_PROGRESS, settled=False)
    return Progress(Stage.DONE, settled=True)


def _generation(now: Json) -> int:
    return number(now, "metadata", "generation") or 0


def _progress_from_conditions(now: Json) -> Progress | None:
    """Return the progress by the pod's conditions, without conditions of an older generation."""
    generation = _generation(now)
    true = {
        kind: condition
        for kind, condition in _conditions(now).items()
        if text(condition, "status") == "True"
        and (number(condition, "observedGeneration") or generation) >= generation
    }
    pending, in_progress = true.get("PodResizePending"), true.get("PodResizeInProgress")
    if pending is not None:
        stage = _PENDING.get(text(pending, "reason"), Stage.WAITING)
        return Progress(stage, settled=stage is Stage.INFEASIBLE, message=text(pending, "message"))
    if in_progress is not None:
        stage = Stage.ERROR if text(in_progress, "reason") == "Error" else Stage.IN_PROGRESS
        return Progress(stage, settled=False, message=text(in_progress, "message"))
    return None


def _is_allocated(pod: Pod, edit: Edit) -> bool:
    """Return whether the kubelet has allocated a request; limits are not allocated."""
    if edit.side is Side.LIMITS:
        return True
    status = pod.status if edit.owner == POD_LEVEL else _find_status(pod, edit.owner)
    if status is None:
        return False
    allocated = status.allocated_resources
    return allocated is None or allocated.get(edit.resource) == value_now(pod, edit)


def _waits(pod: Pod, container: str) -> bool:
    """Return whether a container does not run but will be started."""
    status = _find_status(pod, container)
    if status is None or status.state is None or status.has_processes:
        return False
    ended, policy = status.state.terminated, pod.spec.restart_policy
    return ended is None or (policy != "Never" and (policy != "OnFailure" or ended.exit_code != 0))


def _is_actual(pod: Pod, edit: Edit) -> bool:
    """Return whether the container runs with the value; True if it does not run."""
    if edit.owner == POD_LEVEL:
        return True
    status = _find_status(pod, edit.owner)
    if status is None or status.state is None or not status.has_processes or status.resources is None:
        return status is not None
    actual = (getattr(status.resources, edit.side.value) or {}).get(edit.resource)
    return _in_cgroup(edit, actual) == _in_cgroup(edit, value_now(pod, edit))


def _in_cgroup(edit: Edit, quantity: Quantity | None) -> Quantity | int | None:
    if quantity is None or edit.resource != CPU:
        return quantity
    return max(quantity.milli_value(), _LEAST_CPU_MILLI[edit.side])


def _find_status(pod: Pod, container: str) -> ContainerStatus | None:
    return next((status for status in pod.status.every_container if status.name == container), None)


_ROLLED_OUT: Final = {"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemon set"}


def _rollout(kind: str, now: Json) -> Progress:
    """Return how far new pods have replaced the old ones, in the words of `kubectl rollout status`.

    Source: kubectl/pkg/polymorphichelpers/rollout_status.go.
    """
    is_daemon_set, is_deployment = kind == "DaemonSet", kind == "Deployment"
    pods = _count(now, "desiredNumberScheduled") if is_daemon_set else read_replicas(now)
    updated = _count(now, "updatedNumberScheduled" if is_daemon_set else "updatedReplicas")
    if (number(now, "status", "observedGeneration") or 0) < _generation(now):
        sentence = f"waiting: {_ROLLED_OUT[kind]} spec update to be observed"
        return Progress(Stage.ROLLING, False, sentence, 0, pods)
    note = unchanged_pods_note(kind, now)
    if is_on_delete(now) or (is_deployment and note):
        return Progress(Stage.STUCK if is_deployment else Stage.DONE, True, note, updated, pods)
    conditions, total = _conditions(now), max(pods - read_partition(now), 0)
    progressing, failure = conditions.get("Progressing", {}), conditions.get("ReplicaFailure", {})
    if text(progressing, "reason") == "ProgressDeadlineExceeded":
        late = f'deployment "{text(now, "metadata", "name")}" exceeded its progress deadline'
        return Progress(Stage.STUCK, True, text(progressing, "message") or late, updated, pods)
    if updated < total and text(failure, "status") == "True":
        # The controller retries, and succeeds once a quota has room again.
        return Progress(Stage.STUCK, False, text(failure, "message"), updated, pods)
    sentence = _unfinished(kind, now, updated, total)
    if sentence:
        return Progress(Stage.ROLLING, False, f"waiting: {sentence}", updated, total)
    return Progress(Stage.DONE, True, note, updated, total)


def _unfinished(kind: str, now: Json, updated: int, total: int) -> str:
    what = "replicas" if kind == "Deployment" else "pods"
    if updated < total:
        return f"{updated} out of {total} new {what} have been updated"
    if kind == "StatefulSet":
        not_ready = read_replicas(now) - _count(now, "readyReplicas")
        revision, is_whole = text(now, "status", "updateRevision"), not read_partition(now)
        is_current = revision == text(now, "status", "currentRevision")
        updating = "" if is_current or not is_whole else f"{updated} pods at revision {revision}"
        return f"{not_ready} pods to be ready" if not_ready > 0 else updating
    old = _count(now, "replicas") - updated
    if kind == "Deployment" and old > 0:
        return f"{old} old replicas are pending termination"
    needed, name = (updated, "availableReplicas") if kind == "Deployment" else (total, "numberAvailable")
    available = _count(now, name)
    return f"{available} of {needed} updated {what} are available" if available < needed else ""


def _count(now: Json, name: str) -> int:
    return number(now, "status", name) or 0


def read_replicas(workload: Json) -> int:
    """Return how many pods a workload should have; one by default."""
    replicas = number(workload, "spec", "replicas")
    return 1 if replicas is None else replicas


def read_partition(workload: Json) -> int:
    """Return how many pods of a StatefulSet a rollout leaves out."""
    return number(workload, "spec", "updateStrategy", "rollingUpdate", "partition") or 0


def is_on_delete(workload: Json) -> bool:
    """Return whether pods are replaced only when they are deleted by hand."""
    return text(workload, "spec", "updateStrategy", "type") == "OnDelete"


def unchanged_pods_note(kind: str, workload: Json) -> str:
    """Say which pods keep their values after a change of the template; "" if all are replaced."""
    if kind in {"ReplicaSet", "ReplicationController"}:
        return "existing pods keep their values: only new pods get the new ones"
    if kind == "Job":
        return "it is suspended: its pods get the new values once it is resumed"
    if kind == "CronJob":
        is_suspended = nested(workload, "spec").get("suspend") is True
        run = "it is suspended: the next run after it is resumed" if is_suspended else "the next run"
        return f"{run} gets the new values; running jobs keep theirs"
    if is_on_delete(workload):
        return "updateStrategy OnDelete: pods keep their values until they are deleted"
    if kind == "Deployment" and nested(workload, "spec").get("paused") is True:
        return "it is paused: its pods keep their values until it is resumed"
    if kind == "StatefulSet" and read_partition(workload):
        return f"pods below the partition {read_partition(workload)} keep their values"
    return ""


def with_scheduler_reason(
    progress: Progress, request: PatchRequest, written: Json, pods: Iterable[Pod]
) -> Progress:
    """Add why the scheduler has found no node for a pod with the new values."""
    stored = decode_pod(request.kind, written)
    for pod in pods:
        is_new = all(value_now(pod, edit) == value_now(stored, edit) for edit in request.edits)
        for condition in pod.status.conditions or ():
            if is_new and condition.is_unscheduled:
                message = f"{progress.message}; {pod.name} has no node: {condition.message}"
                return structs.replace(progress, message=message)
    return progress


def check_progress(request: PatchRequest, written: Json, now: Json | None) -> Progress:
    """Return the progress of a change since the server answered `written`; `now` is None if it is gone.

    Raises msgspec.ValidationError if an object cannot be decoded.
    """
    if now is None:
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} no longer exists")
    if text(now, "metadata", "uid") != request.uid:
        sentence = f"{request.reference} was deleted and recreated by someone else"
        return Progress(Stage.GONE, settled=True, message=sentence)
    pod, stored = decode_pod(request.kind, now), decode_pod(request.kind, written)
    if any(value_now(pod, edit) != value_now(stored, edit) for edit in request.edits):
        return Progress(Stage.OVERTAKEN, settled=True)
    if text(now, "metadata", "deletionTimestamp"):
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} is being deleted")
    if request.kind == "Pod":
        return _resize_progress(request, pod, now)
    if request.kind in _ROLLED_OUT:
        return _rollout(request.kind, now)
    counts = (0, _count(now, "replicas")) if request.kind in {"ReplicaSet", "ReplicationController"} else ()
    return Progress(Stage.DONE, True, unchanged_pods_note(request.kind, now), *counts)


class TrialCondition(StrEnum):
    """What reverts a change on trial."""

    RESTARTS = "restarts"
    OOM = "oom"
    INFEASIBLE = "infeasible"


class TrialPlan(NamedTuple):
    """How long a change is on trial after it was sent, and what reverts it."""

    seconds: float = 600.0
    undo_if: tuple[TrialCondition, ...] = tuple(TrialCondition)


class ContainerOutcome(msgspec.Struct, frozen=True):
    """What happened to a container since its run `first_run`, the first with the new values."""

    name: str
    first_run: int = 0
    restarts: int = 0
    oom_runs: frozenset[int] = frozenset()
    """The runs that ended OOMKilled."""
    peak_bytes: int | None = None
    """The most memory in use under the limit in force, None if not measured."""
    limit_bytes: int = 0
    """The limit in force, 0 without one."""
    request_bytes: int = 0
    """The request in force, 0 without one."""

    def observe(self, status: ContainerStatus, pod: Pod, usage: PodUsage | None) -> ContainerOutcome:
        """Return the outcome after another reading of the pod."""
        used = usage.of(self.name) if usage is not None and status.has_processes else None
        limit = _memory(status, pod, Side.LIMITS)
        seen = [used.working_set_bytes] if used is not None else []
        if limit == self.limit_bytes and self.peak_bytes is not None:
            seen.append(self.peak_bytes)
        own_runs = ((run, reason) for run, reason in _ended_runs(status) if run >= self.first_run)
        killed = {run for run, reason in own_runs if reason == "OOMKilled"}
        return structs.replace(
            self,
            restarts=max(self.restarts, status.restart_count - self.first_run),
            oom_runs=self.oom_runs | killed,
            peak_bytes=max(seen, default=None),
            limit_bytes=limit,
            request_bytes=_memory(status, pod, Side.REQUESTS),
        )


class Trial(msgspec.Struct, frozen=True):
    """What was seen after a change: the outcomes of containers, by the uid of their pod and their name."""

    outcomes: Mapping[tuple[str, str], ContainerOutcome] = msgspec.field(default_factory=dict)
    old: frozenset[str] = frozenset()
    """The uids of pods that a changed template replaces; they do not count."""
    restarting: frozenset[str] = frozenset()
    """The containers that the change itself restarts once."""
    infeasible: str | None = None
    """The kubelet's message."""

    @classmethod
    def begin(cls, pods: Iterable[Pod], *, in_place: bool, restarting: Collection[str] = ()) -> Trial:
        """Return the trial before the change is sent."""
        if not in_place:
            return cls(old=frozenset(pod.metadata.uid for pod in pods))
        outcomes = {
            # Count from the next run, or from the present run if it has not begun.
            (pod.metadata.uid, status.name): ContainerOutcome(
                status.name, status.restart_count + (status.has_processes or bool(status.ends))
            )
            for pod in pods
            for status in pod.status.every_container
        }
        return cls(outcomes, restarting=frozenset(restarting))

    def observe(self, pods: Iterable[Pod], usage: Mapping[PodKey, PodUsage], progress: Progress) -> Trial:
        """Return the trial after a reading of the pods and of the progress."""
        outcomes = dict(self.outcomes)
        for pod in pods:
            if pod.metadata.uid in self.old:
                continue
            used = usage.get(pod.key)
            for status in pod.status.every_container:
                key = pod.metadata.uid, status.name
                earlier = outcomes.get(key, ContainerOutcome(status.name))
                outcome = earlier.observe(status, pod, used)
                if progress.is_reverted or progress.stage is Stage.OVERTAKEN:
                    # Memory was measured with other values.
                    outcome = structs.replace(earlier, restarts=outcome.restarts, oom_runs=outcome.oom_runs)
                is_done = progress.stage is Stage.DONE and status.has_processes
                if is_done and status.name not in self.restarting:
                    outcome = structs.replace(outcome, first_run=min(outcome.first_run, status.restart_count))
                outcomes[key] = outcome
        message = progress.message if progress.stage is Stage.INFEASIBLE else self.infeasible
        return structs.replace(self, outcomes=outcomes, infeasible=message)

    @property
    def seen(self) -> tuple[TrialCondition, ...]:
        """Return the conditions that were seen."""
        outcomes = self.outcomes.values()
        is_reached = {
            TrialCondition.RESTARTS: any(outcome.restarts for outcome in outcomes),
            TrialCondition.OOM: any(outcome.oom_runs for outcome in outcomes),
            TrialCondition.INFEASIBLE: self.infeasible is not None,
        }
        return tuple(condition for condition, is_seen in is_reached.items() if is_seen)


NO_TRIAL: Final = Trial()


def _ended_runs(status: ContainerStatus) -> Iterator[tuple[int, str]]:
    """Yield the known ends with their runs; while a container waits, its last end is that of this run."""
    run, now, before = status.restart_count, status.state, status.last_state
    if now is not None and now.terminated is not None:
        yield run, now.terminated.reason
    if before is not None and before.terminated is not None:
        waits = now is not None and now.waiting is not None
        yield (run if waits else run - 1), before.terminated.reason


def _memory(status: ContainerStatus, pod: Pod, side: Side) -> int:
    """Return the bytes in force, or those of the spec if the status lacks them; for limits also the pod's."""
    specs = (container.resources for container in all_containers(pod) if container.name == status.name)
    resources = status.resources or next(specs, None)
    quantities = [(getattr(resources, side.value, None) or EMPTY_RESOURCES).get(MEMORY)]
    quantities += [other_pod_limit(pod)] if side is Side.LIMITS else []
    return min([quantity.value() for quantity in quantities if quantity is not None], default=0)
