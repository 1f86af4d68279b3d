"""Kinds that make pods: where the pod is inside them, and where a server keeps them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from kubectl_qos.k8s.objects import ObjectMeta, Pod, PodTemplate, convert
from kubectl_qos.k8s.priority import with_system_priority

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


def pod_of_workload(kind: str, raw: Mapping[str, Any]) -> Pod:
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


def path_of(kind: str, namespace: str, name: str) -> str:
    """The path of a pod or workload on an API server."""
    group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
    return f"{group}/namespaces/{segment(namespace)}/{kind.lower()}s/{segment(name)}"


def segment(name: str) -> str:
    """A name as one segment of a path, whatever is in it."""
    return quote(name, safe="")
