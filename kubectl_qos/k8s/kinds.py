"""Kinds that make pods: kubectl's names for them, their pod template and API path, and a pod's owner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from kubectl_qos.k8s.defaulting import with_system_priority
from kubectl_qos.k8s.objects import ObjectMeta, OwnerReference, Pod, PodTemplate, convert

T = TypeVar("T")


class Kind(NamedTuple):
    """Where below spec the pod template is, and the API group's path."""

    template: tuple[str, ...]
    group: str


WORKLOADS: Final = {
    "Deployment": Kind(("template",), "/apis/apps/v1"),
    "StatefulSet": Kind(("template",), "/apis/apps/v1"),
    "DaemonSet": Kind(("template",), "/apis/apps/v1"),
    "ReplicaSet": Kind(("template",), "/apis/apps/v1"),
    "ReplicationController": Kind(("template",), "/api/v1"),
    "Job": Kind(("template",), "/apis/batch/v1"),
    "CronJob": Kind(("jobTemplate", "spec", "template"), "/apis/batch/v1"),
}


def pod_from_workload(kind: str, raw: Mapping[str, Any]) -> Pod:
    """The pod that a workload would make, under the workload's name and kind.

    Raises msgspec.ValidationError with the field's path in the workload.
    """
    template = _at(raw, template_path(kind), PodTemplate)
    metadata = _at(raw, ("metadata",), ObjectMeta)
    named = msgspec.structs.replace(
        template.metadata, name=metadata.name, namespace=metadata.namespace, uid=""
    )
    return with_system_priority(Pod(kind=kind, metadata=named, spec=template.spec))


def template_path(kind: str) -> tuple[str, ...]:
    """Where in a workload its pod template is; nowhere but in itself for a pod."""
    return ("spec", *WORKLOADS[kind].template) if kind in WORKLOADS else ()


def _at(raw: Mapping[str, Any], path: tuple[str, ...], wanted: type[T]) -> T:
    """What is at a path, as `wanted`; anything absent on the way there is empty."""
    inner: Any = raw
    for depth, key in enumerate(path, start=1):
        inner = inner.get(key)
        if inner is None:
            inner = {}
        elif not isinstance(inner, Mapping):
            path = path[:depth]
            break
    try:
        return convert(inner, wanted)
    except msgspec.ValidationError as error:
        message, _, below = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{message} - at `$.{'.'.join(path)}{below or '`'}") from None


def api_path(kind: str, namespace: str, name: str) -> str:
    """The path of a pod or workload on an API server."""
    group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
    return f"{group}/namespaces/{path_segment(namespace)}/{kind.lower()}s/{path_segment(name)}"


def path_segment(name: str) -> str:
    """A name as one segment of a path, whatever is in it."""
    return quote(name, safe="")


KIND_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("pod", "pods", "po"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cronjobs", "cj"),
    "Node": ("node", "nodes", "no"),
}
"""Each kind with its words, the singular first."""

_KINDS: Final = {word: kind for kind, words in KIND_NAMES.items() for word in words}


def parse_kind(word: str) -> str | None:
    """The kind that a word means, in upper or lower case; None for any other word."""
    return _KINDS.get(word.lower())


STATIC: Final = "Static"
"""The kind of pods that a kubelet made from files: their owner is the node."""
_HASH_LABEL: Final = "pod-template-hash"
_SCHEDULED: Final = re.compile(r"(.+)-\d{8}")


class Workload(NamedTuple):
    """What makes pods. A pod that nothing made stands for itself, with kind `Pod`."""

    kind: str
    namespace: str
    name: str


def find_workload(pod: Pod) -> Workload:
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
