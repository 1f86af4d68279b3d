"""The events of a live cluster about one pod, and about the memory of its node."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from kubectl_qos.cluster.answers import Answers
from kubectl_qos.cluster.lists import PAGE_SIZE, Lister
from kubectl_qos.cluster.prefetch import Later
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.events import (
    NODE_EVENTS_NAMESPACE,
    Event,
    in_order,
    is_of_node_memory,
    reported_uid,
)
from kubectl_qos.k8s.kinds import segment
from kubectl_qos.k8s.objects import Pod

NODE_SECONDS: Final = 2.0
"""So long after the pod's events those of its node are waited for."""

_events = Lister(Event)


def events_of(answers: Answers, pod: Pod) -> tuple[Event, ...]:
    """The events about a pod and its node's memory, the newest last.

    The questions are those of `kubectl describe` (k8s.io/kubectl/pkg/describe/describe.go searchEvents), in
    pages; the node's are asked for meanwhile, and left out where they cannot be had soon.

    Raises QosError where the pod's cannot be had.
    """
    of_node: list[Event] = []
    meanwhile = Later(lambda: of_node.extend(_of_node(answers, pod.node_name)))
    of_pod = _of_pod(answers, pod)
    # Not for its result: a refusal is nothing to the pod's own events.
    meanwhile.wait(NODE_SECONDS)
    return in_order((*of_pod, *of_node))


def _of_pod(answers: Answers, pod: Pod) -> list[Event]:
    uid = reported_uid(pod)
    fields = {"involvedObject.name": pod.name}
    fields |= {"involvedObject.uid": uid} if uid else {"involvedObject.kind": pod.kind}
    try:
        return _asked(answers, pod.namespace, fields)
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            error.hint = (
                f"grant list on events in the namespace {pod.namespace}, as docs/rbac/events.yaml does"
            )
        raise


def _of_node(answers: Answers, name: str) -> list[Event]:
    """A kubelet names its node by the name alone, a controller by the uid too: asked for by the name."""
    if not name:
        return []
    fields = {"involvedObject.kind": "Node", "involvedObject.name": name}
    return [
        event for event in _asked(answers, NODE_EVENTS_NAMESPACE, fields) if is_of_node_memory(event, name)
    ]


def _asked(answers: Answers, namespace: str, fields: dict[str, str]) -> list[Event]:
    query = {"fieldSelector": ",".join(f"{name}={value}" for name, value in fields.items())}
    path = f"/api/v1/namespaces/{segment(namespace)}/events"
    # No server keeps events in its watch cache.
    return _events.fetch(answers, path, query, consistent=True, page_size=PAGE_SIZE).items
