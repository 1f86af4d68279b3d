"""Pods and nodes of the official Python client (kubernetes.client), for programs that have them already."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import Kubelet, Node, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.releases import Release

T = TypeVar("T", Pod, NodeObject)


def pod_from_client(pod: Any) -> Pod:
    """A `V1Pod`. Raises InputError for what is none."""
    return _converted(pod, Pod, "V1Pod")


def node_from_client(node: Any) -> Node:
    """A `V1Node` with what its status tells; its kubelet is taken to be configured by default.

    Raises InputError for what is none.
    """
    found = _converted(node, NodeObject, "V1Node")
    release = Release.of(found.status.node_info.kubelet_version or "1.36", {})
    return node_from_object(found, Kubelet.defaults(release))


def _converted(given: Any, wanted: type[T], name: str) -> T:
    from kubernetes.client import ApiClient

    if type(given).__name__ != name:
        raise InputError(f"a kubernetes.client.{name} was expected, not {type(given).__name__}")
    try:
        return convert(ApiClient().sanitize_for_serialization(given), wanted)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {error}") from None
