"""How far the rollout of a changed template has come.

Source: k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go; its sentences are shortened. What it
refuses to follow (OnDelete, ReplicaSets, CronJobs) settles at once, because nothing rolls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_qos.edit.progress import Progress, Stage, conditions, number, text

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
