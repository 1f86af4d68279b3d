"""Which workload a pod belongs to, as far as the pod itself says so."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import OwnerReference, Pod

STATIC: Final = "Static"
"""The kind of pods that a kubelet made from files: their owner is the node."""
_HASH_LABEL: Final = "pod-template-hash"
_SCHEDULED: Final = re.compile(r"(.+)-\d{8}")


class Workload(NamedTuple):
    """What makes pods. A pod that nothing made stands for itself, with kind `Pod`."""

    kind: str
    namespace: str
    name: str


def workload_of(pod: Pod) -> Workload:
    """The workload of a pod: its controller, or the Deployment or CronJob behind that one.

    Those behind are not named by the pod. A Deployment calls its ReplicaSets by its own name and the
    pod-template-hash that their pods carry as a label; a CronJob its Jobs by its own name and the scheduled
    time in minutes, which has eight digits. Source: pkg/controller/deployment/sync.go (getNewReplicaSet),
    pkg/controller/cronjob/utils.go (getJobName).
    """
    metadata = pod.metadata
    owner = _controller(metadata.owner_references or ())
    if owner is None:
        return Workload(pod.kind, metadata.namespace, metadata.name)
    kind, name = owner.kind, owner.name
    if kind == "Node":
        return Workload(STATIC, metadata.namespace, metadata.name.removesuffix(f"-{name}"))
    if kind == "ReplicaSet":
        labels = metadata.labels
        template = labels.get(_HASH_LABEL) if labels is not None else None
        if template and name.endswith(f"-{template}"):
            kind, name = "Deployment", name.removesuffix(f"-{template}")
    elif kind == "Job":
        scheduled = _SCHEDULED.fullmatch(name)
        if scheduled is not None:
            kind, name = "CronJob", scheduled[1]
    return Workload(kind, metadata.namespace, name)


def _controller(owners: tuple[OwnerReference, ...]) -> OwnerReference | None:
    """The owner that is the controller, else the only one."""
    found = next((owner for owner in owners if owner.controller), None)
    return found if found is not None or len(owners) != 1 else owners[0]
